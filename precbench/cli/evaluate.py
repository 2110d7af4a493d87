"""``precbench evaluate``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from precbench.cli.options import NOT_HELD, Json, takes
from precbench.cli.own import FileLayout, plain_value


@takes(FileLayout)
def evaluate(
    model: Annotated[
        Path, typer.Argument(help="Model file that fit or compare has saved.")
    ],
    file: Annotated[
        Path, typer.Argument(help="File of new rows whose labels are known by now.")
    ],
    label: Annotated[
        str | None, typer.Option(help="Label column [default: the model's].")
    ] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option(
            help="Label of the rows to find; repeatable [default: the model's]."
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            help=(
                "Length of the list: rows (100) or a fraction [default: that of the"
                " model]."
            ),
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Another model file, to compare the lists of two models."),
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            metavar="HITS",
            help="Exit with code 5 if the list has fewer than HITS hits.",
        ),
    ] = None,
    as_json: Json = False,
    *,
    options: FileLayout,
) -> int:
    """Count the hits of a model on new labelled rows, against its forecast.

    The forecast is the number of hits that `score` expects of this list, with an
    interval for 95 % of cases. The verdict is as forecast (JSON: kept), fewer or more.
    If scores are tied at the end of the list, hits are the mean over all orders of the
    tied rows. With --against, Fisher's exact test compares the hits among the rows that
    only one of the two lists has.

    Exit code 5: with --fail-below, there are fewer hits.

    \b
    Examples:
      precbench evaluate top.npz may.csv --k 100
      precbench evaluate top.npz may.csv --against last.npz
    """
    # here, as the import takes long
    from precbench.advice.evaluation import evaluate as evaluate_model

    result = evaluate_model(
        model,
        file,
        label=label,
        positive=positive,
        k=None if k is None else plain_value(k),
        against=against,
        **options.layout,
    )
    print(json.dumps(result.to_dict()) if as_json else repr(result))
    if fail_below is not None and result.hits < fail_below:
        return NOT_HELD
    return 0

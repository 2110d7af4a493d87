"""``precbench fit``."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from precbench.cli import completion
from precbench.cli.options import Json, NoRowHashes, takes
from precbench.cli.own import OwnRows, check_target, plain_value, write_open
from precbench.cli.screen_tables import show_length
from precbench.core.errors import InputError
from precbench.core.text import count

if TYPE_CHECKING:
    from precbench.model.model import Model

# Parameters of a solver that have an option of their own
_OWN_OPTIONS = {"k": "--k", "random_state": "--seed"}


@dataclass(frozen=True, kw_only=True)
class FitOptions(OwnRows):
    save: Annotated[
        Path, typer.Option(help="Model file to write; an existing file is replaced.")
    ]
    solver: Annotated[
        str | None,
        typer.Option(
            help=(
                "Solver, see precbench list solvers, or FILE.py:CLASS [default:"
                " hist-gradient-boosting; sgd-avg with --fourier and for sparse rows]."
            ),
            autocompletion=completion.solvers,
        ),
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help=(
                "Parameter of the solver, such as epochs=50 (see precbench list solvers"
                " --json); repeatable."
            ),
        ),
    ] = None
    scaling: Annotated[
        str | None,
        typer.Option(
            help=(
                "Scaling: standardise, unit (columns from 0 to 1), unit-norm (rows of"
                " norm 1), standardise-unit-norm (both) or none [default: standardise;"
                " none for sparse rows and for trees]."
            )
        ),
    ] = None
    fourier: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "Number of random Fourier features that replace the features, so that a"
                " linear solver can learn a nonlinear ranking."
            ),
        ),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(
            help=(
                "Column of weights of the rows, for logistic-regression, linear-svm, "
                "hist-gradient-boosting and lightgbm (tables only)."
            )
        ),
    ] = None
    splits: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="Number of splits to measure the quality on."
        ),
    ] = 5
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the splits and of the solver.")
    ] = 0
    no_row_hashes: NoRowHashes = False
    as_json: Json = False


@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit a ranking model to your own file, estimate its quality, and save it.

    To estimate the quality, models are fitted to 70 % of the rows and measured at the
    top of the other rows: as large a share of these rows as k is of your list, which
    has as many rows as the file, or --list-rows rows. With --time, models are fitted to
    all earlier rows and measured on the period that follows, by default a tenth of the
    rows. The quality is the mean over splits, with a 95 % interval that allows for rows
    shared by splits; compare tells whether another method is better. The importance of
    each column is measured, and printed by show. The saved model is fitted to all rows.
    During training, solvers cap k at the number of positives, with a warning. The
    columns of label, groups, time and weight are not features. Dates (2024-05-31,
    2024-05-31T18:00) are converted to days since the earliest one.

    \b
    Examples:
      precbench fit mine.csv --label churned --positive yes --drop id \\
          --categorical one-hot --missing median --save top.npz
      precbench fit payments.parquet --label fraud --time when --k 50 \\
          --save top.npz
      precbench fit mine.svm.gz --solver perceptron-avg --k 100 --save top.npz

    \b
    Formats, recognised by the suffix or given by --format:
      .csv .tsv .parquet .xlsx       the first line has the column names
      .svm .libsvm .svmlight .txt    LABEL INDEX:VALUE ..., indices from 1
      .npz                           arrays X and y, or data, indices, indptr,
                                     shape (CSR) and y
    """
    from precbench.advice.training import fit as fit_table  # which takes long to import

    worth = options.checked_worth()
    gain = None
    cost = None
    if worth is not None:
        gain = worth.column or worth.gain  # the name of a column, or a number
        cost = worth.cost
    params = _params(options)
    check_target("--save", options.save, {"the file of the rows": options.file})
    with options.suggesting("fit"):
        own, unlabelled = options.tables()
        model = fit_table(
            own,
            k=options.lengths,
            solver=options.solver,
            params=params,
            scaling=cast("Any", options.scaling),
            fourier=options.fourier,
            weight=options.weight,
            gain=gain,
            cost=cost or 0.0,
            list_rows=options.list_rows,
            n_splits=options.splits,
            random_state=options.seed,
            allow=options.allow or (),
            **options.reading,
        )
        sentence_on_list = None
        if unlabelled is not None:
            sentence_on_list = write_open(model, unlabelled, options)
    model.save(options.save, row_hashes=not options.no_row_hashes)
    if options.as_json:
        facts = {"model": str(options.save), "solver": model.solver, **model.about}
        print(json.dumps(facts))
        return
    _print_model(model, options.save)
    if sentence_on_list is not None:
        print(sentence_on_list)


def _print_model(model: "Model", path: Path) -> None:
    """Print what a model was fitted to, and its quality."""
    from precbench.advice.quality import describe_quality, quality_of

    facts = model.about
    sizes = [
        f"{facts['rows']:,} rows",
        count(facts["features"], "feature"),
        f"{facts['positives']:,} positive",
    ]
    if facts["groups"]:
        sizes.append(count(facts["groups"], "group"))
    print(", ".join(sizes))
    columns = model.encoding.columns if model.encoding else ()
    dates = [
        f"{column.name} (from {column.origin})"
        for column in columns
        if column.origin is not None
    ]
    if dates:
        print(f"date columns converted to days: {', '.join(dates)}")
    quality = quality_of(model, str(path))
    # Both are missing only of models that were fitted in other ways.
    assert quality is not None
    assert quality.length is not None
    print(describe_quality(quality))
    show_length(quality.length)
    print(f"{model.solver}, fitted to all rows: {path}")


def _params(options: FitOptions) -> dict[str, Any]:
    """Parse the options ``--param NAME=VALUE`` into parameters of the solver."""
    params: dict[str, Any] = {}
    for option in options.param or ():
        name, equals, text = option.partition("=")
        if not equals:
            raise InputError(
                f"--param {option!r}: expected NAME=VALUE, for example epochs=5"
            )
        if name in params:
            raise InputError(
                f"the parameter {name} is given twice (--param); give one value"
            )
        if name in _OWN_OPTIONS:
            raise InputError(
                f"the parameter {name} has its own option; give {_OWN_OPTIONS[name]}"
                " instead"
            )
        params[name] = plain_value(text)
    return params

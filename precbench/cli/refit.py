"""``precbench refit``."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from precbench.cli.options import Json, NoRowHashes, takes
from precbench.cli.own import OwnColumns, check_target


@dataclass(frozen=True, kw_only=True)
class RefitOptions(OwnColumns):
    save: Annotated[
        Path, typer.Option(help="Model file to write; an existing file is replaced.")
    ]
    no_row_hashes: NoRowHashes = False
    as_json: Json = False


@takes(RefitOptions)
def refit(
    model: Annotated[
        Path, typer.Argument(help="Model file that fit or compare has saved.")
    ],
    *,
    options: RefitOptions,
) -> None:
    """Fit the recipe of a saved model to new labelled rows, and say what has changed.

    Solver, parameters, scaling, label, positive, k, gains and the options that say what
    the columns are come from the model; an option that is given here replaces that of
    the model. How the file is written (separator, encoding, sheet) is detected anew.
    Columns of --drop, --id, --categorical, --numeric and --allow that the file no
    longer has are left out.

    What is printed: rows and positives, before and now; the quality on held-out rows,
    before and now; columns that are new or no longer used, and new categories; and how
    many of the first k new rows are on the lists of both models. The new model has
    learnt these rows, so lists of rows to come will have more in common. Which list is
    better, evaluate --against says, on rows that neither model has learnt.

    \b
    Examples:
      precbench refit top.npz june.csv --save june.npz
      precbench refit top.npz june.csv --missing median --save june.npz
    """
    from precbench.advice.refitting import refit as refit_model  # takes long to import

    others = {"the file of the rows": options.file}
    check_target("--save", options.save, others)
    with options.suggesting(shlex.join(["refit", str(model)])):
        result = refit_model(
            model, options.file, allow=options.allow or (), **options.reading
        )
    result.model.save(options.save, row_hashes=not options.no_row_hashes)
    if options.as_json:
        print(json.dumps({"model": str(options.save), **result.to_dict()}))
        return
    print(result)
    print(f"{result.model.solver}, fitted to all rows: {options.save}")

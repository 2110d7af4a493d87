"""``precbench score``."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, cast

import pandas as pd
import typer

from precbench.cli.options import Json
from precbench.cli.own import Form, plain_warnings
from precbench.data.own.encoding import Gaps
from precbench.data.own.read import read_new_blocks
from precbench.errors import InputError
from precbench.files import replacing
from precbench.text import without_formula


def score(
    model: Annotated[Path, typer.Argument(help="Model file, see fit.")],
    file: Annotated[
        Path, typer.Argument(help="Rows to rank, with the same features as the fitted file.")
    ],
    top: Annotated[
        int | None, typer.Option(min=1, help="Number of rows to list [default: all].")
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column of row identifiers (tables).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .csv or .parquet; an existing file is replaced."),
    ] = None,
    probability: Annotated[
        bool, typer.Option("--probability", help="Add the column probability, of a hit.")
    ] = False,
    explain: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of columns to name that raise the score of a listed row most, and the one "
            "that lowers it most; with --top.",
        ),
    ] = None,
    form: Form = None,
    as_json: Json = False,
) -> None:
    """Rank the rows of a file and list the top, highest score first.

    The output is CSV, or Parquet with --out FILE.parquet, with the columns rank, row, id (with
    --id) and score, and with --probability that of a hit, calibrated on rows that the model was
    not fitted to. Ranks and row numbers start at 1; the header line is not counted. Rows with
    equal scores keep their order. In CSV an id that a spreadsheet would run as a formula gets an
    apostrophe: before =, +, - and @ at its beginning or after a separator, unless it is a number.

    With --explain N the columns raises_1 to raises_N and lowers_1 say why a row has its score, as
    "amount = 250" or "city = Oslo": what its value changes against the training rows (a Shapley
    value). They are empty where no other column does. JSON has the lists raises and lowers, with
    the contributions.

    A label column is not needed, and columns unknown to the model are ignored. An svmlight
    row needs some number in place of its label. Tables are read in pieces, so they may be
    larger than memory. Values that are filled in, and categories that the fitted rows did not
    have, are counted on stderr.

    \b
    Examples:
      precbench score top.npz new.csv --top 100 --id customer > top.csv
      precbench score top.npz new.csv --top 100 --id customer --explain 3
      precbench score top.npz new.parquet --out scores.parquet
    """
    if out is not None:
        _check_out(out, {"the model": model, "the file of the rows": file}, as_json)
    if explain is not None and top is None:
        raise InputError("--explain explains the rows that --top lists: give --top, too")
    from precbench.advice.model import Model  # which takes long to import
    from precbench.advice.reasons import Listing

    loaded = Model.load(model)
    if loaded.encoding is None:
        raise InputError(f"{model} was fitted to arrays, not to a file: score rows from Python")
    why, gaps = None if explain is None else Listing(loaded, explain), Gaps()
    with plain_warnings():
        blocks = read_new_blocks(file, loaded.encoding, cast("Any", form), row_id, gaps)
        if probability:
            loaded.probabilities([])  # refuses a model that has none before it reads the rows
        blocks = blocks if why is None else why.noting(blocks, gaps)
        listed = None if why is None else why.rows
        ranking, n_rows = loaded.rank_blocks(blocks, top, n_jobs=-1, listed=listed)
    scores = ranking["score"].to_numpy()
    if probability:
        ranking["probability"] = loaded.probabilities(scores)
    records = None
    if why is not None:
        ranking, records = why.explained(ranking)
    if as_json:
        print(json.dumps(ranking.to_dict("records") if records is None else records))
    elif out is None:
        _without_formulas(ranking).to_csv(sys.stdout, index=False)
    else:
        _write(ranking, out)
    if loaded.calibration is not None and len(scores):
        hits, low, high = loaded.calibration.expected(scores, n_rows)
        print(
            f"about {hits:,.1f} hits expected among the listed, {low:,.0f} to {high:,.0f} in 95 % "
            "of such lists",
            file=sys.stderr,
        )
    place = "" if out is None else f": {out}"
    print(f"{n_rows:,} rows ranked, {len(ranking):,} listed{place}", file=sys.stderr)


def _check_out(out: Path, others: dict[str, Path], as_json: bool) -> None:
    if as_json:
        raise InputError("--json prints the rows and --out writes them: give one of the two")
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out {out}: the name should end with .csv or .parquet")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    if out.exists() and not out.is_file():
        raise InputError(f"--out {out} is not a regular file: name another")
    if out.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"--out {out}: Parquet files need pyarrow; install precbench[parquet]")
    for what, path in others.items():
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"--out {out} is {what}: give the ranking another name")


def _write(ranking: pd.DataFrame, out: Path) -> None:
    """Write a ranking as CSV or Parquet, whole or not at all."""
    with replacing(out) as unfinished:
        if out.suffix == ".csv":
            _without_formulas(ranking).to_csv(unfinished, index=False)
        else:
            ranking.to_parquet(unfinished, index=False)


def _without_formulas(ranking: pd.DataFrame) -> pd.DataFrame:
    texts = ranking.select_dtypes(exclude="number")
    safe = {str(name): [*map(without_formula, texts[name])] for name in texts}
    return ranking.assign(**safe)

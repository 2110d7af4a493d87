"""``precbench score``."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from precbench.cli.options import NOT_HELD, Json, takes
from precbench.cli.own import FileLayout, check_target
from precbench.core.errors import InputError
from precbench.core.files import replacing
from precbench.core.kinds import LIST_SUFFIXES


@takes(FileLayout)
def score(
    model: Annotated[
        Path, typer.Argument(help="Model file that fit or compare has saved.")
    ],
    file: Annotated[
        Path,
        typer.Argument(
            help=(
                "File of rows to rank, with the same features as the fitted file; -"
                " means CSV from standard input."
            )
        ),
    ],
    top: Annotated[
        int | None, typer.Option(min=1, help="Number of rows to list [default: all].")
    ] = None,
    row_id: Annotated[
        str | None,
        typer.Option("--id", help="Column that identifies the rows (tables only)."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Columns to list beside the scores, such as name,phone, or the word all"
                " for every column (tables only)."
            )
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: .csv, .xlsx or .parquet; an existing file is replaced."
        ),
    ] = None,
    probability: Annotated[
        bool,
        typer.Option(
            "--probability", help="Add a column with the probability of a hit."
        ),
    ] = False,
    drift: Annotated[
        Path | None,
        typer.Option(
            help=(
                "JSON file to write: how far the rows are from the training rows of the"
                " model."
            )
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with code 5 if --drift finds drift; the list is still written.",
        ),
    ] = False,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--last",
            help=(
                "Earlier list, .csv or .parquet, to count how many of its rows are"
                " listed again (compared by --id, else by row number)."
            ),
        ),
    ] = None,
    explain: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "For each listed row, name this number of columns that raise the score"
                " most, and the column that lowers the score most; needs --top."
            ),
        ),
    ] = None,
    refuse_gaps: Annotated[
        bool,
        typer.Option("--refuse-gaps", help="Stop with an error if a value is missing."),
    ] = False,
    as_json: Json = False,
    *,
    options: FileLayout,
) -> int:
    """Rank the rows of a file and list the top, highest score first.

    The output is CSV, or the format of the suffix of --out. Its columns are rank, row,
    the columns of --id and --keep, score, and with --probability the probability of a
    hit, calibrated on held-out rows. Ranks and row numbers start at 1; blank rows
    count, the header line does not. Rows with equal scores keep their order.

    With --explain N, the columns raises_1 to raises_N and lowers_1 name the values with
    the largest contributions to the score, such as "amount = 250" or "city = Oslo". A
    contribution is a Shapley value, relative to the training rows. A cell is empty if
    no further column contributes. JSON has the lists raises and lowers, with the
    contributions.

    A label column is not needed, and columns unknown to the model are ignored. An
    svmlight row needs any number in place of its label. Tables are read in chunks, so
    they may be larger than memory. Messages on stderr count imputed values and unseen
    categories.

    There is drift if the population stability index (PSI) of a column or of the scores
    is above 0.25 and above what chance explains, or if rows are outside the range of a
    column. With --drift or --last, --json prints an object with list, hits, drift and
    last, otherwise the list.

    Exit code 5: with --strict, there is drift.

    \b
    Examples:
      precbench score top.npz new.csv --top 100 --id customer > top.csv
      precbench score top.npz new.csv --top 100 --id customer --explain 3
      precbench score top.npz new.parquet --out scores.parquet
      precbench score top.npz new.csv --top 100 --id customer --out top.csv \\
          --last top.csv --drift drift.json --strict
    """
    if explain is not None and top is None:
        raise InputError(
            "the option --explain needs --top; give the number of rows to list"
        )
    if strict and drift is None:
        raise InputError("the option --strict needs --drift; give a JSON file to write")
    if as_json and out is not None:
        raise InputError("give either --json or --out, which exclude each other")
    inputs = {"the model": model, "the file of the rows": file}
    _check_targets(inputs, out=out, drift=drift, earlier=earlier)
    # here, as the import takes long
    from precbench.model.scored_list import score as score_rows

    with _on_disk(file) as path:
        result = score_rows(
            model,
            path,
            top=top,
            id=row_id,
            keep=keep or (),
            probability=probability,
            drift=drift is not None,
            last=earlier,
            explain=explain,
            refuse_gaps=refuse_gaps,
            **options.layout,
        )
    if drift is not None:
        with replacing(drift) as unfinished:
            unfinished.write_text(json.dumps(result.drift, indent=1))
    if as_json:
        has_more = drift is not None or earlier is not None
        print(json.dumps(result.to_dict() if has_more else result.records()))
    elif out is not None:
        result.write(out)
    else:
        result.rows.to_csv(sys.stdout, index=False)
    summary = f"{result.n_rows:,} rows ranked, {len(result.ranking):,} listed"
    if out is not None:
        summary = f"{summary}: {out}"
    print(*result.sentences(), summary, sep="\n", file=sys.stderr)
    return NOT_HELD if strict and result.has_drifted else 0


def _check_targets(
    inputs: Mapping[str, Path],
    *,
    out: Path | None,
    drift: Path | None,
    earlier: Path | None,
) -> None:
    """Refuse a file to write that cannot be written, or that the command reads.

    The list `out` may replace the `earlier` list, once that has been read.
    """
    if out is not None:
        check_target("--out", out, inputs, LIST_SUFFIXES)
    if drift is not None:
        others = dict(inputs)
        if out is not None:
            others["--out"] = out
        if earlier is not None:
            others["--last"] = earlier
        check_target("--drift", drift, others, [".json"])


@contextmanager
def _on_disk(file: Path) -> Iterator[Path]:
    """Yield the path of the rows; for "-", of a temporary copy of standard input."""
    if str(file) != "-":
        yield file
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        with path.open("wb") as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
        yield path

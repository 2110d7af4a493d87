"""``precbench score``."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from precbench.cli.options import NOT_HELD, Json, takes
from precbench.cli.own import LISTS, FileLayout, check_target, load_model, with_numbers, write_list
from precbench.core.errors import InputError
from precbench.core.files import replacing
from precbench.tables.encoding import Encoding, Gaps
from precbench.tables.own_file import read_new_blocks
from precbench.tables.own_table import TABLES, format_of


@takes(FileLayout)
def score(
    model: Annotated[Path, typer.Argument(help="Model file that fit or compare has saved.")],
    file: Annotated[
        Path,
        typer.Argument(
            help="File of rows to rank, with the same features as the fitted file; - means CSV "
            "from standard input."
        ),
    ],
    top: Annotated[
        int | None, typer.Option(min=1, help="Number of rows to list [default: all].")
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column that identifies the rows (tables only).")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to list beside the scores, such as name,phone, or the word all for every "
            "column (tables only)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write: .csv, .xlsx or .parquet; an existing file is replaced."),
    ] = None,
    probability: Annotated[
        bool, typer.Option("--probability", help="Add a column with the probability of a hit.")
    ] = False,
    drift: Annotated[
        Path | None,
        typer.Option(
            help="JSON file to write: how far the rows are from the training rows of the model."
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit with code 5 if --drift finds drift; the list is still written."
        ),
    ] = False,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--last",
            help="Earlier list, .csv or .parquet, to count how many of its rows are listed again "
            "(compared by --id, else by row number).",
        ),
    ] = None,
    explain: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="For each listed row, name this number of columns that raise the score most, and "
            "the column that lowers the score most; needs --top.",
        ),
    ] = None,
    refuse_gaps: Annotated[
        bool, typer.Option("--refuse-gaps", help="Stop with an error if a value is missing.")
    ] = False,
    as_json: Json = False,
    *,
    options: FileLayout,
) -> int:
    """Rank the rows of a file and list the top, highest score first.

    The output is CSV, or the format of the suffix of --out. Its columns are rank, row, the columns
    of --id and --keep, score, and with --probability the probability of a hit, calibrated on
    held-out rows. Ranks and row numbers start at 1; blank rows count, the header line does not.
    Rows with equal scores keep their order.

    With --explain N, the columns raises_1 to raises_N and lowers_1 name the values with the largest
    contributions to the score, such as "amount = 250" or "city = Oslo". A contribution is a Shapley
    value, relative to the training rows. A cell is empty if no further column contributes. JSON has
    the lists raises and lowers, with the contributions.

    A label column is not needed, and columns unknown to the model are ignored. An svmlight row
    needs any number in place of its label. Tables are read in chunks, so they may be larger than
    memory. Messages on stderr count imputed values and unseen categories.

    There is drift if the population stability index (PSI) of a column or of the scores is above
    0.25 and above what chance explains, or if rows are outside the range of a column. With --drift
    or --last, --json prints an object with list, hits, drift and last, otherwise the list.

    Exit code 5: with --strict, there is drift.

    \b
    Examples:
      precbench score top.npz new.csv --top 100 --id customer > top.csv
      precbench score top.npz new.csv --top 100 --id customer --explain 3
      precbench score top.npz new.parquet --out scores.parquet
      precbench score top.npz new.csv --top 100 --id customer --out top.csv \\
          --last top.csv --drift drift.json --strict
    """
    # Refuse options that contradict each other, and a file to write that is also read.
    others = {"the model": model, "the file of the rows": file}  # that no output may replace
    if out is not None:
        if as_json:
            raise InputError("give either --json or --out, which exclude each other")
        check_target("--out", out, others, LISTS)
    if drift is not None:
        others |= {name: path for name, path in {"--out": out, "--last": earlier}.items() if path}
        check_target("--drift", drift, others, [".json"])
    elif strict:
        raise InputError("the option --strict needs --drift; give a JSON file to write")
    if explain is not None and top is None:
        raise InputError("the option --explain needs --top; give the number of rows to list")
    earlier_names = None if earlier is None else _read_names(earlier, row_id or "row")
    from precbench.model.drift import describe_drift
    from precbench.model.reasons import Listing

    # Prepare what gathers drift, reasons, gaps and training rows while the rows are ranked.
    loaded, encoding = load_model(model)
    monitor = None if drift is None else loaded.drift()  # gathers what --drift reports
    explainer = None if explain is None else Listing(loaded, explain)  # keeps the rows to explain
    gaps = Gaps() if monitor is None else monitor.gaps  # missing values, unseen categories
    gaps.refuse = refuse_gaps
    training_rows, n_seen = loaded.training_rows, 0  # n_seen: training rows ranked here

    def watch(X: Any, scores: NDArray[np.float64]) -> None:
        # Pass a block of rows to `monitor`; count training rows in the block into `n_seen`.
        nonlocal n_seen
        if monitor is not None:
            monitor.add(X, scores)
        if training_rows is not None:
            n_seen += training_rows.count(X)

    with _on_disk(file) as path:
        columns = [*([row_id] if row_id else ()), *(keep or ())]  # to list beside the scores
        blocks = read_new_blocks(path, encoding, keep=columns, gaps=gaps, **options.layout)
        if probability:
            loaded.probabilities([])  # raises before the rows are read, if the model has none
        blocks = blocks if explainer is None else explainer.noting(blocks, gaps)
        listed = None if explainer is None else explainer.rows  # `rank_blocks` fills this
        ranking, n_rows = loaded.rank_blocks(blocks, top, n_jobs=-1, watch=watch, listed=listed)
    # Complete the list: numbers, probabilities, reasons, and the row numbers of the file.
    ranking = with_numbers(ranking) if as_json else ranking  # CSV keeps the text of the file
    scores = ranking["score"].to_numpy()
    if probability:
        ranking["probability"] = loaded.probabilities(scores)
    records = None  # the rows for --json, with reasons
    if explainer is not None:
        ranking, records = explainer.with_reasons(ranking)
    ranking["row"] = gaps.places_of(ranking["row"])  # numbers in the file, blank rows included
    for record, row in zip(records or (), ranking["row"].tolist(), strict=False):  # None: no record
        record["row"] = row
    # What is said of the list: in `report` for JSON, in `sentences` for people.
    report: dict[str, Any] = dict.fromkeys(("hits", "drift", "last"))  # None if not computed
    sentences = []
    if loaded.calibration is not None and len(scores):
        report["hits"] = hits = loaded.calibration.expected(scores, n_rows)._asdict()
        sentences.append(
            "expect about {mean:,.1f} hits among the listed rows ({low:,.0f} to {high:,.0f} in "
            "95 % of such lists)".format(**hits)
        )
    if training_rows is not None and (sentence := training_rows.sentence(n_seen, n_rows)):
        sentences.append(sentence)
    if monitor is not None and drift is not None:
        report["drift"] = summary = monitor.summary()
        sentences.append(describe_drift(summary))
        with replacing(drift) as unfinished:
            unfinished.write_text(json.dumps(summary, indent=1))
    if earlier_names is not None:
        report["last"] = overlap = _compare_names(ranking[row_id or "row"], earlier_names)
        sentences.append(
            "{again:,} of the {listed:,} listed rows were on the last list of {before:,} (Jaccard "
            "{jaccard:.2f})".format(**overlap)
        )
    if as_json:
        rows = ranking.to_dict("records") if records is None else records
        print(json.dumps(rows if drift is None and earlier is None else {"list": rows, **report}))
    elif out is None:
        ranking.to_csv(sys.stdout, index=False)
    else:
        write_list(ranking, out)
    sentences.append(f"{n_rows:,} rows ranked, {len(ranking):,} listed{f': {out}' if out else ''}")
    print(*sentences, sep="\n", file=sys.stderr)
    return NOT_HELD if strict and report["drift"]["drift"] else 0  # --strict comes with --drift


@contextmanager
def _on_disk(file: Path) -> Iterator[Path]:
    """Yield the path of the rows: `file`, or for "-" a temporary copy of standard input."""
    if str(file) != "-":
        yield file
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        with path.open("wb") as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
        yield path


def _read_names(earlier: Path, column: str) -> set[str]:
    """Return the entries of a column of an earlier list: ids, or row numbers as text."""
    if (kind := format_of(earlier)) not in TABLES:
        raise InputError(f"--last {earlier} is {kind}; give a CSV or Parquet list that score wrote")
    blocks = read_new_blocks(earlier, Encoding("csv", 0, dense=True), keep=[column])  # no features
    return {name for _, columns in blocks for name in columns[column]}


def _compare_names(names: pd.Series, before: set[str]) -> dict[str, Any]:
    """Count names on this list, the earlier list and both lists; `jaccard`: the share on both."""
    now = set(names.astype(str))
    again, n_union = len(now & before), len(now | before)
    return {"listed": len(now), "before": len(before), "again": again, "jaccard": again / n_union}

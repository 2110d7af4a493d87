"""``precbench plot`` and ``precbench report``."""

import json
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from precbench.advice.advised_report import write_report
from precbench.claims import read_evidence
from precbench.cli.options import RESULTS, Json
from precbench.core.errors import InputError
from precbench.core.files import write_whole
from precbench.report.html import ledger_about, render
from precbench.report.table import text_table
from precbench.results.folders import PAGE, find_result_folders

# Files of the results of an experiment, and of a study
_MARKS = ("results.csv", "illustration.json")


def plot_results(
    results: Annotated[Path, typer.Argument(help=RESULTS)],
    as_json: Json = False,
) -> None:
    """Redraw the tables and figures of finished runs from their CSV files.

    \b
    Examples:
      precbench plot results/letter
      precbench plot results/
    """
    written = {}
    for folder in finished_folders(results):
        paths = [str(path) for path in write_report(folder).files]
        written[str(folder)] = paths
        if not as_json:
            print("\n".join(paths), flush=True)
    if as_json:
        print(json.dumps(written, indent=1))


def finished_folders(results: Path) -> list[Path]:
    """Return the folders with results: `results`, or those in it; raise if none."""
    folders = find_result_folders(results, *_MARKS)
    if not folders:
        raise InputError(
            f"neither {results} nor a folder in it has a {' or '.join(_MARKS)}; run an"
            " experiment, or resume an interrupted run with the same command (see"
            " precbench status)"
        )
    return folders


def write_pages(
    results: Annotated[Path, typer.Argument(help=RESULTS)],
    as_json: Json = False,
) -> None:
    """Write finished runs as HTML pages, to read or to mail.

    report.html in each folder of results holds tables, figures, protocol, verdicts on
    the published numbers, and for each number the trials behind it with the command
    that repeats them. The report is one file that loads nothing. A folder of several
    reports gets an index.html.

    \b
    Examples:
      precbench report results/letter
      precbench report results/
    """
    folders = finished_folders(results)
    ledger = ledger_about(read_evidence([results]))
    rows = []
    written = []
    for folder in folders:
        page = write_report(folder, "changed", ledger).page
        assert page is not None  # None only with "none" in place of "changed"
        content = "; ".join([page.fact, *page.marks])
        rows.append([page.title, page.source or "", content, page.verdicts])
        written.append(folder / PAGE)
        if not as_json:
            print(folder / PAGE, flush=True)  # at once: the next page takes time
    if folders != [results]:  # a folder of several, which gets an index
        index = results / "index.html"
        header = ["report", "after", "what is in it", "published numbers"]
        table = text_table("Experiments and studies", header, rows)
        links = [f"{quote(folder.name)}/{PAGE}" for folder in folders]
        write_whole({index: render("index.html.j2", table=table, links=links)})
        written.insert(0, index)
        if not as_json:
            print(index)
    if as_json:
        print(json.dumps([str(path) for path in written], indent=1))

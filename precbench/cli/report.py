"""``precbench plot`` and ``precbench report``."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from precbench.advice.report import write_report
from precbench.claims import read_evidence
from precbench.cli.options import Json
from precbench.errors import InputError
from precbench.files import write_whole
from precbench.report.folder import PAGE
from precbench.report.html import ledger_about, render
from precbench.store import find_result_folders

_MARKS = ("results.csv", "illustration.json")


def plot_results(
    results: Annotated[Path, typer.Argument(help="Folder of results, or of one experiment.")],
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
        written[str(folder)] = paths = [str(path) for path in write_report(folder).files]
        if not as_json:
            print("\n".join(paths), flush=True)
    if as_json:
        print(json.dumps(written, indent=1))


def finished_folders(results: Path) -> list[Path]:
    """Return the folder if it holds results, or its subfolders that do."""
    folders = find_result_folders(results, *_MARKS)
    if not folders:
        raise InputError(
            f"neither {results} nor a folder in it has a {' or '.join(_MARKS)}: run an experiment, "
            "or resume an interrupted one with the same command (see precbench status)"
        )
    return folders


def write_pages(
    results: Annotated[Path, typer.Argument(help="Folder of results, or of one experiment.")],
    as_json: Json = False,
) -> None:
    """Write finished runs as HTML pages, to read or to mail.

    report.html in each folder of results holds tables, figures, protocol, verdicts on the published
    numbers, and the trials behind each number with the command that repeats it. It is one file that
    loads nothing. A folder of several gets an index.html.

    \b
    Examples:
      precbench report results/letter
      precbench report results/
    """
    folders = finished_folders(results)
    ledger = ledger_about(read_evidence([results]))
    pages = []
    for folder in folders:
        report = write_report(folder, "changed", ledger)
        assert report.page is not None
        pages.append(replace(report.page, html=""))  # all pages together would be large
        if not as_json:
            print(folder / PAGE, flush=True)  # a figure takes half a second
    written = [folder / PAGE for folder in folders]
    if folders != [results]:
        index = results / "index.html"
        write_whole({index: render("index.html.j2", entries=pages)})
        written.insert(0, index)
        if not as_json:
            print(index)
    if as_json:
        print(json.dumps([str(path) for path in written], indent=1))

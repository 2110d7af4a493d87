"""``precbench report``."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from precbench.advice.report import write_report
from precbench.claims import read_evidence
from precbench.cli.options import Json
from precbench.cli.plot import finished_folders
from precbench.files import write_whole
from precbench.report.folder import PAGE
from precbench.report.html import index_page, ledger_about
from precbench.store import Store


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
    for folder in folders:
        Store(folder).load()
    ledger = ledger_about(read_evidence([results]))
    pages = []
    for folder in folders:
        report = write_report(folder, "changed", ledger)
        assert report.page is not None
        pages.append(replace(report.page, html=""))  # all of them would not be small
        if not as_json:
            print(folder / PAGE, flush=True)  # a figure takes half a second
    written = [folder / PAGE for folder in folders]
    if folders != [results]:
        index = results / "index.html"
        write_whole({index: index_page(pages)})
        written.insert(0, index)
        if not as_json:
            print(index)
    if as_json:
        print(json.dumps([str(path) for path in written], indent=1))

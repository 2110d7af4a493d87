"""The tables, figures and page of a results folder, of an experiment or a study."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from precbench.claims import Evidence, LedgerRow
from precbench.claims.evidence import Outcomes
from precbench.core.files import write_whole
from precbench.report.figures import write_figures
from precbench.report.html import (
    Advised,
    Page,
    experiment_page,
    ledger_about,
    study_page,
)
from precbench.report.study_tables import draw_study, read_study, study_tables
from precbench.report.summary_tables import make_tables, markdown_page, write_tables
from precbench.report.table import Table
from precbench.results.folders import PAGE
from precbench.results.read import Run, plain_strings, read_run, read_values
from precbench.results.summary import summarise

Figures = Literal["all", "changed", "none"]

# Files of a results folder from which all other files are made
_INPUTS = (
    "experiment.json",
    "results.csv",
    "precision-k.csv",
    "roc.csv",
    "roc-counts.csv",
    "illustration.json",
    "values.csv",
    "length.json",
    "pictures.json",
)


class Report(NamedTuple):
    """The tables of a results folder, the written files, and the page."""

    tables: list[Table]
    files: list[Path]
    page: Page | None = None  # None if no figures were asked for


@plain_strings
def write_report(
    folder: str | os.PathLike[str],
    figures: Figures = "all",
    ledger: Mapping[str, Sequence[LedgerRow]] | None = None,
    advise: Callable[[Run, Sequence[Path]], Advised] | None = None,
) -> Report:
    """Write all tables and figures of a results folder, and a page with them.

    `figures` are "all", "changed" (figures older than the results) or "none", which
    also means no page. `ledger` has the verdicts by name of the experiment; by default
    verdicts come from the folder alone. `advise` returns what the page says beside the
    results, and draws figures that are older than the files of the second argument.
    Equal results give equal bytes.
    """
    folder = Path(folder)
    inputs = [folder / name for name in _INPUTS if (folder / name).is_file()]
    # Without sources all figures are drawn.
    sources = inputs if figures == "changed" else []
    has_page = figures != "none"
    is_study = (folder / "illustration.json").is_file()
    if is_study:
        report = _report_on_study(folder, has_page, sources, ledger)
    else:
        report = _report_on_experiment(folder, has_page, sources, ledger, advise)
    if report.page is not None:
        write_whole({folder / PAGE: report.page.html})
    return report


def _report_on_study(
    folder: Path,
    has_page: bool,
    sources: Sequence[Path],
    ledger: Mapping[str, Sequence[LedgerRow]] | None,
) -> Report:
    """Write tables and, for a page, figures of a study; return these with the page."""
    measured = read_values(folder)
    study = read_study(measured)
    tables = study_tables(study)
    markdown = folder / "tables.md"
    write_whole({markdown: markdown_page(study.title, study.source, tables)})
    if not has_page:
        return Report(tables, [markdown])
    figures = draw_study(study, sources)
    evidence = Evidence(values={study.name: measured.values})
    verdicts = _verdicts(study.name, ledger, evidence, study.smoke)
    page = study_page(measured, tables, figures, verdicts)
    return Report(tables, [markdown, *figures], page)


def _report_on_experiment(
    folder: Path,
    has_page: bool,
    sources: Sequence[Path],
    ledger: Mapping[str, Sequence[LedgerRow]] | None,
    advise: Callable[[Run, Sequence[Path]], Advised] | None,
) -> Report:
    """Write tables and, for a page, figures of a run; return these with the page."""
    run = read_run(folder)
    summary = summarise(run.results, run.losses, run.test_shares)
    tables = make_tables(run, summary)
    files = write_tables(run, summary, tables)
    if not has_page:
        return Report(tables, files)
    figures = write_figures(run, summary, sources)
    evidence = Evidence(outcomes={run.name: Outcomes(run)})
    verdicts = _verdicts(run.name, ledger, evidence, run.smoke)
    advised = Advised() if advise is None else advise(run, sources)
    page = experiment_page(run, tables, figures, verdicts, advised)
    return Report(tables, [*files, *figures, *advised.files], page)


def _verdicts(
    name: str,
    ledger: Mapping[str, Sequence[LedgerRow]] | None,
    evidence: Evidence,
    smoke: bool,
) -> Sequence[LedgerRow]:
    """Return the verdicts about one experiment or study; a smoke size has none."""
    if smoke:
        return []
    if ledger is None:
        ledger = ledger_about(evidence)
    return ledger.get(name, [])

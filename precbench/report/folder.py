"""All tables and figures of a results folder, of an experiment or a study, and its page."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple

from precbench.claims import Evidence, LedgerRow
from precbench.claims.evidence import Outcomes
from precbench.files import write_whole
from precbench.report.figures import write_figures
from precbench.report.html import Page, experiment_page, ledger_about, study_page
from precbench.report.length import draw_length, read_length
from precbench.report.study import draw_study, is_study, study_tables, write_study_tables
from precbench.report.table import Table
from precbench.report.tables import make_tables, summarise, write_tables
from precbench.results import plain_strings, read_run, read_values
from precbench.sources import code_of
from precbench.strict_json import Fields, checked, load

__all__ = ["Figures", "Report", "write_report"]

Figures = Literal["all", "changed", "none"]

_INPUTS = (
    *("experiment.json", "results.csv", "precision-k.csv", "roc.csv", "roc-counts.csv"),
    *("illustration.json", "values.csv"),
)
NOT_DRAWING = (
    *("advice", "cli", "runner", "score", "survey"),
    *("data", "experiment", "solvers"),
)
"""Parts of the package that no report imports, by the contracts in ``pyproject.toml``."""


class Report(NamedTuple):
    """The tables of a results folder, the files in which they and the figures are, and the page."""

    tables: list[Table]
    files: list[Path]
    page: Page | None = None


PAGE = "report.html"


@plain_strings
def write_report(
    folder: str | os.PathLike[str],
    figures: Figures = "all",
    ledger: Mapping[str, Sequence[LedgerRow]] | None = None,
    n_jobs: int = 1,
) -> Report:
    """Write all tables and figures of a results folder, and the page that shows them.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``.
    figures : {"all", "changed", "none"}, default="all"
        Which figures to draw; "changed" leaves those that were drawn from the same results by the
        same code; "none" writes no page either.
    ledger : mapping of str to sequence of LedgerRow, optional
        The verdicts on what was printed about the results, by name of the experiment; by default
        those of this folder alone.
    n_jobs : int, default=1
        Number of figures of an experiment to draw at a time, see
        `precbench.report.figures.write_figures`.

    Returns
    -------
    Report
        The same results give the same bytes.

    Raises
    ------
    InputError
        If a file is missing or malformed.
    """
    folder = Path(folder)
    if is_study(folder):
        tables, files = study_tables(folder), write_study_tables(folder)
        if figures == "none":
            return Report(tables, files)
        drawn = _drawn(folder, partial(draw_study, folder), keep=figures == "changed")
        study, values = read_values(folder)
        rows = _about(
            study["name"], ledger, Evidence(values={study["name"]: values}), study["smoke"]
        )
        page = study_page(folder, study, tables, drawn, rows)
    else:
        run = read_run(folder)
        summary = summarise(run.results, run.losses, run.test_shares)
        tables = make_tables(run, summary)
        files = write_tables(run, summary, tables)
        if figures == "none":
            return Report(tables, files)
        draw = partial(write_figures, run, summary, n_jobs)
        drawn = _drawn(folder, draw, keep=figures == "changed")
        rows = _about(run.name, ledger, Evidence(outcomes={run.name: Outcomes(run)}), run.smoke)
        length, more = read_length(folder) or (None, [])
        drawn += [] if length is None else draw_length(length, folder)
        page = experiment_page(run, summary, tables, drawn, rows, length, more)
    write_whole({folder / PAGE: page.html})
    return Report(tables, files + drawn, page)


def _about(
    name: str,
    ledger: Mapping[str, Sequence[LedgerRow]] | None,
    evidence: Evidence,
    smoke: bool,
) -> Sequence[LedgerRow]:
    """Return the verdicts about one folder; the smoke size decides nothing."""
    if smoke:
        return []
    return (ledger_about(evidence) if ledger is None else ledger).get(name, [])


class _Drawn(Fields):
    inputs: str
    files: list[str]


def _drawn(folder: Path, draw: Callable[[], list[Path]], keep: bool) -> list[Path]:
    """Draw the figures of a folder, unless those there may be kept and are of the same inputs."""
    mark, inputs = folder / "figures" / "drawn.json", _hash_of_inputs(folder)
    if keep and mark.is_file():
        here = {path.name: path for path in mark.parent.iterdir()}
        try:
            known = checked(load(mark.read_bytes()), _Drawn)
        except ValueError:  # edited
            known = _Drawn(inputs="", files=[])
        if known.inputs == inputs and here.keys() >= set(known.files):
            return [here[name] for name in known.files]
    # Until all are drawn, so that an interrupted drawing does not pass for a whole one.
    mark.unlink(missing_ok=True)
    files = draw()
    if files:
        content = {"inputs": inputs, "files": [path.name for path in files]}
        write_whole({mark: json.dumps(content, indent=1)})
    return files


def _hash_of_inputs(folder: Path) -> str:
    """Hash the results of a folder, and the code that draws."""
    results = [folder / name for name in _INPUTS if (folder / name).is_file()]
    return _hash(results, version("matplotlib") + code_of("precbench", NOT_DRAWING))


def _hash(files: Iterable[Path], more: str) -> str:
    digest = hashlib.sha256(more.encode())
    for path in files:
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()

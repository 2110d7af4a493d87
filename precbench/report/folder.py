"""All tables and figures of a results folder, of an experiment or a study."""

import os
from pathlib import Path
from typing import NamedTuple

from precbench.report.figures import write_figures
from precbench.report.studies import is_study, study_tables, write_study_report
from precbench.report.tables import Table, make_tables, summarise, write_tables
from precbench.results import read_run

__all__ = ["Report", "write_report"]


class Report(NamedTuple):
    """The tables of a results folder, and the files in which they and the figures are."""

    tables: list[Table]
    files: list[Path]


def write_report(folder: str | os.PathLike[str]) -> Report:
    """Write all tables and figures of a results folder.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``.

    Returns
    -------
    Report
        The same results give the same bytes.

    Raises
    ------
    InputError
        If a file is missing or malformed.
    """
    if is_study(folder):
        return Report(study_tables(folder), write_study_report(folder))
    run = read_run(folder)
    summary = summarise(run.results, run.losses, run.test_shares)
    tables = make_tables(run, summary)
    return Report(tables, write_tables(run, summary, tables) + write_figures(run, summary))

"""All tables and figures of a results folder."""

import os
from pathlib import Path

from precbench.report.figures import write_figures
from precbench.report.studies import (
    is_study,
    study_tables,
    write_study_report,
)
from precbench.report.studies.kar2015 import bounds_table, write_bounds_report
from precbench.report.tables import Table, make_tables, write_tables
from precbench.results import read_run

__all__ = ["folder_tables", "write_report"]


def write_report(folder: str | os.PathLike[str]) -> list[Path]:
    """Write everything that can be made from the files of a results folder.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``.

    Returns
    -------
    list of pathlib.Path
    """
    if is_study(folder):
        return write_study_report(folder)
    written = write_tables(folder) + write_figures(folder)
    return written + write_bounds_report(folder) if _has_bounds(folder) else written


def folder_tables(folder: str | os.PathLike[str]) -> list[Table]:
    """Return the tables of a results folder.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``.

    Returns
    -------
    list of Table
    """
    if is_study(folder):
        return study_tables(folder)
    tables = make_tables(read_run(folder))
    return [*tables, bounds_table(folder)] if _has_bounds(folder) else tables


def _has_bounds(folder: str | os.PathLike[str]) -> bool:
    return (Path(folder) / "bounds.csv").exists()

"""All tables and figures of a results folder, of an experiment or a study."""

import os
from pathlib import Path

from precbench.report.figures import write_figures
from precbench.report.studies import is_study, study_tables, write_study_report
from precbench.report.tables import Table, make_tables, write_tables
from precbench.results import read_run

__all__ = ["folder_tables", "write_report"]


def write_report(folder: str | os.PathLike[str]) -> list[Path]:
    """Write all tables and figures of a results folder.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Raises
    ------
    InputError
        If a file is missing or malformed.
    """
    if is_study(folder):
        return write_study_report(folder)
    return write_tables(folder) + write_figures(folder)


def folder_tables(folder: str | os.PathLike[str]) -> list[Table]:
    """Return the tables of a results folder.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``.

    Returns
    -------
    list of Table

    Raises
    ------
    InputError
        If a file is missing or malformed.
    """
    if is_study(folder):
        return study_tables(folder)
    return make_tables(read_run(folder))

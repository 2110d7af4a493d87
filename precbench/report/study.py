"""Studies: ``values.csv`` as tables and a figure, as ``illustration.json`` describes it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from precbench.errors import InputError
from precbench.files import write_whole
from precbench.report.sheet import Sheet
from precbench.report.table import Table, text_table
from precbench.report.tables import markdown_page, three_digits
from precbench.results import read_csv, read_description
from precbench.store import SCHEMA
from precbench.studies import STUDIES, Result
from precbench.text import one_line

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "draw_study",
    "is_study",
    "study_tables",
    "value_table",
    "write_study_tables",
]

_TITLE = 0.25  # inches of the size of a study


def is_study(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a study rather than an experiment."""
    return (Path(folder) / "illustration.json").is_file()


def study_tables(folder: str | os.PathLike[str]) -> list[Table]:
    """Lay out the numbers of a study.

    Parameters
    ----------
    folder : path-like
        ``results/<name>``, with ``illustration.json`` and ``values.csv``.

    Raises
    ------
    InputError
        If a file is missing, malformed or of a newer precbench.
    """
    result = _read(folder)
    with _showing(folder):
        return list(STUDIES[result.kind].tables(result))


def write_study_tables(folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``tables.md``.

    Parameters
    ----------
    folder : path-like
        As for `study_tables`.

    Raises
    ------
    InputError
        As for `study_tables`.
    """
    folder, result, tables = Path(folder), _read(folder), study_tables(folder)
    text = folder / "tables.md"
    write_whole({text: markdown_page(result.title, result.source, tables)})
    return [text]


def draw_study(folder: str | os.PathLike[str], sources: Sequence[Path] = ()) -> list[Path]:
    """Write ``figures/<kind>.pdf``, ``.png`` and ``.svg``.

    Parameters
    ----------
    folder : path-like
        As for `study_tables`.
    sources : sequence of pathlib.Path
        See `Sheet.save`.

    Returns
    -------
    list of pathlib.Path
        The same numbers give the same bytes.

    Raises
    ------
    InputError
        As for `study_tables`.
    """
    folder, result = Path(folder), _read(folder)
    kind, stem = STUDIES[result.kind], folder / "figures" / result.kind
    width, height = kind.size
    with _showing(folder):
        sheet = Sheet(
            result.title,
            lambda figure: kind.draw(figure, result),
            width,
            height - _TITLE,
            caption=[kind.caption.format(**result.parameters)],
            smoke=result.smoke,
        )
        return sheet.save(stem, sources=sources)


def value_table(result: Result, rows: "pd.DataFrame", columns: list[str], note: str = "") -> Table:
    """Lay out values below each other."""
    texts = [rows[column].map(str) for column in columns]
    values = rows["value"].map(three_digits)
    header = ["", *columns[1:], "value"]
    notes = [note] if note else []
    return text_table(result.title, header, zip(*texts, values, strict=True), *notes)


@contextmanager
def _showing(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Report numbers and parameters that the study's own table or figure cannot show."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise InputError(
            f"{Path(folder) / 'values.csv'} and illustration.json do not hold what this kind of "
            f"study shows ({type(error).__name__}: {one_line(str(error))}); run it again"
        ) from error


def _read(folder: str | os.PathLike[str]) -> Result:
    description = read_description(folder)
    where = Path(folder) / "illustration.json"
    if description["schema"] not in range(1, SCHEMA + 1):
        raise InputError(
            f"{where} was written by a newer precbench (schema {description['schema']}): update "
            "precbench, or write elsewhere with --out"
        )
    if description["kind"] not in STUDIES:
        raise InputError(
            f"{where} is of a kind of study that is not installed, {description['kind']!r}: update "
            "precbench, or install the package that adds it"
        )
    kind = STUDIES[description["kind"]]
    columns = dict.fromkeys(kind.text, str) | dict.fromkeys((*kind.numbers, "value"), float)
    values = read_csv(Path(folder) / "values.csv", columns)
    if description["smoke"]:
        description["title"] += ", smoke size"
    return Result(values, **{field.name: description[field.name] for field in fields(Result)[1:]})

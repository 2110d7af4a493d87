"""Types that the presentations of all studies share."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from precbench.report.table import Table, text_table
from precbench.report.tables import three_digits

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

__all__ = ["Presentation", "Result", "value_table"]


@dataclass(frozen=True)
class Result:
    """The files of a study: its numbers and their description."""

    values: pd.DataFrame
    name: str
    title: str
    source: str | None
    kind: str
    parameters: dict[str, Any]
    smoke: bool


@dataclass(frozen=True)
class Presentation:
    """How a kind of study is read from ``values.csv``, tabulated and drawn.

    Attributes
    ----------
    text, numbers : tuple of str
        Columns other than ``value``.
    tables, draw : callable
    size : tuple of float
        Width and height of the figure in inches, without its caption.
    caption : str
        With names of parameters in braces.
    """

    text: tuple[str, ...]
    numbers: tuple[str, ...]
    tables: Callable[[Result], Iterator[Table]]
    draw: Callable[["SubFigure", Result], None]
    size: tuple[float, float]
    caption: str


def value_table(result: Result, rows: pd.DataFrame, columns: list[str], note: str = "") -> Table:
    """Lay out values below each other."""
    texts = [rows[column].map(str) for column in columns]
    values = rows["value"].map(three_digits)
    header = ["", *columns[1:], "value"]
    notes = [note] if note else []
    return text_table(result.title, header, zip(*texts, values, strict=True), *notes)

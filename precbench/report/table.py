"""What a table holds, in whatever format it is written."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A cell of a table, in bold if it stands out, mostly as the best of its column."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table, independent of the output format.

    Attributes
    ----------
    title : str
    header : list of str
    rows : list of list of Cell
    notes : list of str
        Sentences below the table.
    warning : str
        What stands above the numbers, of synthetic data.
    dataset : str
        Empty where it is not of the trials on one data set.
    best : str
        What a cell in bold is.
    n_spare : int
        Number of the last columns that a narrow screen may leave out.
    columns : list of tuple of str
        Then, for each column but the first, the label of a metric or the name of a time in
        `summarise`, and the point of the sweep.
    """

    title: str
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)
    warning: str = ""
    dataset: str = ""
    best: str = "best value"
    n_spare: int = 0
    columns: list[tuple[str, str]] = field(default_factory=list)


def text_table(
    title: str, header: Iterable[str], rows: Iterable[Iterable[str]], *notes: str
) -> Table:
    """Lay out texts, none of which is the best of its column.

    Parameters
    ----------
    title : str
    header : iterable of str
    rows : iterable of iterable of str
    *notes : str
        Sentences below the table.
    """
    return Table(title, [*header], [[*map(Cell, row)] for row in rows], [*notes])

"""Tables, independent of the output format."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A cell of a table; `Table.best` says what bold marks."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)  # sentences below the rows
    warning: str = ""  # above the rows, if data are synthetic
    dataset: str = ""  # of all trials in the table; "" if they have several, or none
    best: str = "best value"  # what bold marks in a column


def text_table(
    title: str, header: Iterable[str], rows: Iterable[Iterable[str]], *notes: str
) -> Table:
    """Return a table of plain texts, none of them bold, with notes below."""
    return Table(title, [*header], [[*map(Cell, row)] for row in rows], [*notes])

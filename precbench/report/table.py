"""Tables, independent of the output format."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A cell of a table; what bold marks is said by `Table.best`."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)  # sentences below
    warning: str = ""  # above the numbers, if data are synthetic
    dataset: str = ""  # of the trials, if all are on one
    best: str = "best value"  # of a column: what bold marks


def text_table(
    title: str, header: Iterable[str], rows: Iterable[Iterable[str]], *notes: str
) -> Table:
    """Return a table of plain texts, none of them bold, with notes below."""
    return Table(title, [*header], [[*map(Cell, row)] for row in rows], [*notes])

"""Tables, independent of the output format."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A cell of a table; bold marks mostly the best of its column."""

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
    best: str = "best value"  # what bold means


def text_table(
    title: str, header: Iterable[str], rows: Iterable[Iterable[str]], *notes: str
) -> Table:
    """Lay out texts, with notes below; none is the best of its column."""
    return Table(title, [*header], [[*map(Cell, row)] for row in rows], [*notes])

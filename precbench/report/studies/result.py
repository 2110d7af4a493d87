"""What every illustration needs to be shown."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from precbench.report.tables import Cell, Table, three_digits

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

__all__ = ["Kind", "Shown", "listed"]


@dataclass(frozen=True)
class Shown:
    """What an illustration left in its folder."""

    values: pd.DataFrame
    name: str
    title: str
    source: str | None
    kind: str
    parameters: dict[str, Any]
    smoke: bool


@dataclass(frozen=True)
class Kind:
    """How a kind of illustration is read and shown."""

    text: tuple[str, ...]
    numbers: tuple[str, ...]
    tables: Callable[[Shown], Iterator[Table]]
    draw: Callable[["SubFigure", Shown], None]
    size: tuple[float, float]
    caption: str  # with the parameters in braces


def listed(shown: Shown, rows: pd.DataFrame, columns: list[str], note: str = "") -> Table:
    """Lay out values below each other."""
    texts = zip(*(rows[column] for column in columns), strict=True)
    return Table(
        title=shown.title,
        stand_in=False,
        header=["", *columns[1:], "value"],
        rows=[
            [*(Cell(str(text)) for text in said), Cell(three_digits(value))]
            for said, value in zip(texts, rows["value"], strict=True)
        ],
        notes=[note] if note else [],
    )

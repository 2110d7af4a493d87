"""Common parts of the figures of studies."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from precbench.report.style import Style, name_curves, solver_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import SubFigure


def side_by_side(
    figure: "SubFigure", table: pd.DataFrame, column: str, **options: Any
) -> Iterator[tuple["Axes", str, pd.DataFrame]]:
    """Yield axes side by side for the entries of a column, with the entry and its rows."""
    entries = list(dict.fromkeys(table[column]))
    grid = figure.subplots(1, len(entries), squeeze=False, **options)[0]
    for axes, entry in zip(grid, entries, strict=True):
        yield axes, entry, table[table[column] == entry]


def draw_curves(
    axes: "Axes", table: pd.DataFrame, names: pd.Series, x: str, y: str = "value"
) -> None:
    styles = solver_styles(list(dict.fromkeys(names)))
    for name, rows in table.groupby(names, sort=False):
        look: dict[str, Any] = styles[str(name)]._asdict()
        axes.plot(rows[x], rows[y], label=name, **look)


def name_labelled_curves(axes: "Axes") -> None:
    lines = {str(line.get_label()): line for line in axes.lines}
    named = {name: line for name, line in lines.items() if not name.startswith("_")}
    ends = {name: np.ravel(line.get_ydata())[-1] for name, line in named.items()}
    looks = {
        name: {part: getattr(line, f"get_{part}")() for part in Style._fields}
        for name, line in named.items()
    }
    name_curves(axes, looks, ends)


def draw_beside(
    axes: "Axes", i: int, heights: ArrayLike, color: str, label: object
) -> "BarContainer":
    """Draw the bars of the first or the second of two sides."""
    places = np.arange(np.size(heights)) + 0.4 * i - 0.2
    return axes.bar(places, heights, 0.38, color=color, label=label)

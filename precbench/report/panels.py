"""Common parts of the figures of studies."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from precbench.report.style import End, Style, name_ends, solver_styles

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


def name_curves(axes: "Axes", height: float) -> None:
    """Write the labels of curves at their ends; `height` of the axes is in inches, roughly."""
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    ends = []
    for line in axes.lines:
        if not str(line.get_label()).startswith("_"):
            look = {name: getattr(line, f"get_{name}")() for name in Style._fields}
            ends.append(End(str(line.get_label()), np.ravel(line.get_ydata())[-1], look))
    name_ends(axes, ends, height)


def draw_beside(
    axes: "Axes", i: int, heights: ArrayLike, color: str, label: object
) -> "BarContainer":
    """Draw the bars of the first or the second of two sides."""
    places = np.arange(np.size(heights)) + 0.4 * i - 0.2
    return axes.bar(places, heights, 0.38, color=color, label=label)

"""The figures of studies: curves in panels."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from precbench.core.studies import Result, SubFigure
from precbench.report.style import Axes, log_scale, solver_styles


def draw_panels(
    figure: SubFigure,
    table: pd.DataFrame,
    *,
    x: str,
    panel: str,
    curve: str,
    dashes: Mapping[str, Any],
    log: Sequence[Literal["x", "y"]] = ("x", "y"),
    n_columns: int = 4,
    **labels: str,
) -> list[Axes]:
    """Draw ``value`` against the column `x`, and return the axes of the panels.

    Each entry of the column `panel` has a panel, each entry of `curve` a colour, each
    entry of ``quantity`` that is a key of `dashes` a line style; other rows are left
    out. `log` names the logarithmic axes, `labels` are ``xlabel`` and ``ylabel``; one
    legend names all curves. Text in `x` or ``value`` is shown in the order of the
    table.
    """
    table = table[table["quantity"].isin(dashes)]
    if "y" in log:
        table = table[table["value"] > 0]  # a log axis has no place for other values
    names = list(dict.fromkeys(table[panel]))
    n_columns = max(1, min(n_columns, len(names)))
    n_rows = max(1, math.ceil(len(names) / n_columns))
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    looks = solver_styles(list(dict.fromkeys(table[curve])))
    lines: dict[str, Any] = {}  # the first line of each curve, by label, for the legend
    for axes, name in zip(grid, names, strict=False):
        rows = table[table[panel] == name]
        for (label, quantity), points in rows.groupby([curve, "quantity"], sort=False):
            look = looks[label]
            style = dashes[quantity]
            [line] = axes.plot(
                points[x],
                points["value"],
                color=look.color,
                linestyle=style,
                # Markers would hide dashes.
                marker=look.marker if style in ("", "-") else "",
                markevery=math.ceil(len(points) / 20),  # about 20 markers
            )
            lines.setdefault(label, line)
        for which in log:
            log_scale(axes, which)
        axes.set(title=name, **labels)
    for axes in grid[len(names) :]:  # places without a panel
        axes.remove()
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=3)
    return list(grid[: len(names)])


def in_panels(
    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda values: values, **options: Any
) -> Callable[[SubFigure, Result], Any]:
    """Return the ``draw`` of a study whose figure `draw_panels` makes alone.

    The figure shows what `rows` makes of the values of the study, by default all
    values.
    """

    def draw(figure: SubFigure, result: Result) -> list[Axes]:
        return draw_panels(figure, rows(result.values), **options)

    return draw

"""The study of growing costs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from precbench.report.panels import name_labelled_curves, side_by_side
from precbench.report.style import log_scale, solver_styles
from precbench.report.table import Table, text_table
from precbench.report.tables import three_digits
from precbench.studies import Result, StudyKind

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


def _tables(result: Result) -> Iterator[Table]:
    for name, curve in result.values.groupby("curve", sort=False):
        cells = zip(
            curve["size"].map("{:,.0f}".format), curve["value"].map(three_digits), strict=True
        )
        yield text_table(f"{result.title}: {name}", ["size", curve["quantity"].iloc[0]], cells)


def _draw(figure: "SubFigure", result: Result) -> None:
    looks = solver_styles(list(result.parameters["curves"]))
    for axes, measure, of_measure in side_by_side(figure, result.values, "quantity"):
        for name, rows in of_measure.groupby("curve", sort=False):
            size, cost = rows["size"].to_numpy(), rows["value"].to_numpy()
            look = looks[str(name)]
            axes.plot(size, cost, marker=look.marker, color=look.color, label=name)
            curve = result.parameters["curves"][name]
            x = size * np.log(size) if curve.get("times_log") else size
            stated = cost[-1] * (x / x[-1]) ** curve["exponent"]
            axes.plot(size, stated, "--", color=look.color, linewidth=0.8)
        log_scale(axes, "x")
        log_scale(axes, "y")
        axes.set(xlabel="size", ylabel=measure)
        name_labelled_curves(axes)


GROWING_COSTS = StudyKind(
    compute="precbench.papers.costs.growth:growing_costs",
    text=("curve", "quantity"),
    numbers=("size",),
    tables=_tables,
    draw=_draw,
    size=(8.4, 3.6),
    caption="Cost of a fit against the size of what grows, the least of {repetitions} fits. "
    "Dashed: the stated power, from the last point. Seconds are those of the CPU on one "
    "thread, without the check of the input.",
)

"""The study of growing costs."""

import numpy as np
import pandas as pd

from precbench.core.studies import Result, StudyKind, SubFigure
from precbench.report.panels import draw_panels
from precbench.report.study_tables import tabulate


def _draw(figure: SubFigure, result: Result) -> None:
    """Draw the measured costs, and the stated power through the last cost."""
    # `draw_panels` takes the line style from "quantity", which hence moves to
    # "measure".
    measured = result.values.assign(
        measure=result.values["quantity"], quantity="measured"
    )
    parts = [measured]
    for name, rows in measured.groupby("curve", sort=False):
        curve = result.parameters["curves"][name]
        size = rows["size"]  # n, or n log n
        if curve.get("times_log"):
            size = size * np.log(size)
        stated = rows["value"].iloc[-1] * (size / size.iloc[-1]) ** curve["exponent"]
        parts.append(rows.assign(quantity="stated", value=stated))
    draw_panels(
        figure,
        pd.concat(parts),
        x="size",
        panel="measure",
        curve="curve",
        dashes={"measured": "-", "stated": "--"},
    )


GROWING_COSTS = StudyKind(
    compute="precbench.papers.costs.growth:growing_costs",
    text=("curve", "quantity"),
    numbers=("size",),
    tables=tabulate(["curve", "size"], across="quantity"),
    draw=_draw,
    size=(8.4, 4.4),
    caption=(
        "Cost of a fit against the size of what grows, the least of {repetitions} fits."
        " Dashed: the stated power, through the last point. Seconds are those of the"
        " CPU on one thread, without the check of the input."
    ),
)

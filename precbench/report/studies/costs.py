"""The study of growing costs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from precbench.report.figures import solver_styles
from precbench.report.studies.result import Presentation, Result
from precbench.report.tables import Cell, Table, three_digits

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

__all__ = ["PRESENTATIONS"]


def _tables(result: Result) -> Iterator[Table]:
    slopes = result.values[result.values["size"].isna()].pivot(
        index="curve", columns="quantity", values="value"
    )
    yield Table(
        title=result.title,
        header=["", "slope", "stated"],
        rows=[
            [Cell(name), Cell(f"{of['slope']:.2f}"), Cell(f"{of['stated slope']:g}")]
            for name, of in result.parameters["curves"].items()
            for of in [slopes.loc[name]]
        ],
        notes=["Of the logarithm of the cost, against that of the size or of n log n."],
    )
    for name, rows in result.values.dropna(subset="size").groupby("curve", sort=False):
        yield Table(
            title=f"{result.title}: {name}",
            header=["size", str(rows["quantity"].iloc[0])],
            rows=[
                [Cell(f"{size:,.0f}"), Cell(three_digits(value))]
                for size, value in zip(rows["size"], rows["value"], strict=True)
            ],
        )


def _draw(figure: "SubFigure", result: Result) -> None:
    measured = result.values.dropna(subset="size")
    measures = list(dict.fromkeys(measured["quantity"]))
    looks = solver_styles(list(result.parameters["curves"]))
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    for axes, measure in zip(panels, measures, strict=True):
        for name, rows in measured[measured["quantity"] == measure].groupby("curve", sort=False):
            size, cost = rows["size"].to_numpy(), rows["value"].to_numpy()
            look = looks[str(name)]
            axes.plot(size, cost, marker=look.marker, color=look.color, label=name)
            curve = result.parameters["curves"][name]
            x = size * np.log(size) if curve.get("times_log") else size
            stated = cost[-1] * (x / x[-1]) ** curve["exponent"]
            axes.plot(size, stated, "--", color=look.color, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="size", ylabel=measure)
        axes.legend(fontsize=7)


PRESENTATIONS = {
    "growing-costs": Presentation(
        text=("curve", "quantity"),
        numbers=("size",),
        tables=_tables,
        draw=_draw,
        size=(8.4, 3.6),
        caption="Cost of a fit against the size of what grows, the least of {repetitions} fits. "
        "Dashed: the stated power, from the last point. Seconds are those of the CPU on one "
        "thread, without the check of the input.",
    ),
}

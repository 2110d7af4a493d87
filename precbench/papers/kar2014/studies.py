"""The studies of kar2014."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from precbench.report.panels import name_labelled_curves, side_by_side
from precbench.report.study import value_table
from precbench.report.style import log_scale, solver_styles
from precbench.report.table import Table, text_table
from precbench.report.tables import three_digits
from precbench.studies import Result, StudyKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


_NAMES = {"prbep": "PRBEP", "prec@k": "Prec@k", "pauc": "pAUC", "pauc, logistic": "pAUC, logistic"}
_NAMES |= {"f1": "F1", "g-mean": "G-mean"}


def _grid(
    figure: "SubFigure", table: pd.DataFrame, column: str, **labels: str
) -> Iterator[tuple["Axes", pd.DataFrame]]:
    """Yield the axes and rows of each panel: a row per objective, a column per data set."""
    places = sorted(table[column].unique())
    objectives, datasets = (list(dict.fromkeys(table[c])) for c in ("objective", "dataset"))
    grid = figure.subplots(len(objectives), len(datasets), sharex=True, sharey="row", squeeze=False)
    for line, objective in zip(grid, objectives, strict=True):
        for axes, dataset in zip(line, datasets, strict=True):
            rows = table[(table["objective"] == objective) & (table["dataset"] == dataset)]
            title = f"{_NAMES[str(objective)]}, {dataset}"
            axes.set(xscale="log", yscale="log", title=title, **labels)
            yield axes, rows
            axes.set_xticks(places, [f"{place:,.0f}" for place in places])
            axes.set_xticks([], minor=True)
            axes.label_outer()


def _tables_by(result: Result, column: str, quantities: list[str], note: str) -> Iterator[Table]:
    others = [c for c in result.values if c not in (column, "quantity", "value")]
    for key, rows in result.values.dropna(subset=column).groupby(others, sort=False):
        wide = rows.pivot(index=column, columns="quantity", values="value")
        wide = wide[[quantity for quantity in quantities if quantity in wide]]
        yield text_table(
            f"{result.title}: {', '.join(map(str, key))}",
            [column, *wide],
            [(f"{at:,.0f}", *map(three_digits, row)) for at, *row in wide.itertuples(name=None)],
            note,
        )


# Regret

_QUANTITIES = [
    *("regret", "regret, at most", "bound", "sqrt(s) times the bound", "proof of Lemma 13"),
    *("w = 0", "rate", "constant", "forward loss", "forward bound", "largest step"),
    *("regret, lone positive", "regret, balanced"),
]


def _regret_tables(result: Result) -> Iterator[Table]:
    note = (
        "At most: an upper bound, by the certified gaps. w = 0: the regret of always playing 0. "
        "Constant: that regret, at most, divided by the rate."
    )
    yield from _tables_by(result, "horizon", _QUANTITIES, note)
    facts = result.values[result.values["horizon"].isna()]
    yield value_table(result, facts, ["quantity"], "Ratios to the distance of the two weights.")


def _draw_regret(figure: "SubFigure", result: Result) -> None:
    table = result.values.dropna(subset="horizon")
    ways = list(dict.fromkeys(table["rows"]))
    colours, lines = solver_styles(ways), dict[str, Any]()
    labels = {"xlabel": "T (rows)", "ylabel": "regret"}
    for axes, rows in _grid(figure, table, "horizon", **labels):
        for way in ways:
            for quantity, dashes in (("regret, at most", "-"), ("bound", "--")):
                curve = rows[(rows["rows"] == way) & (rows["quantity"] == quantity)]
                [lines[f"{quantity.partition(',')[0]}, {way}"]] = axes.plot(
                    curve["horizon"],
                    curve["value"],
                    color=colours[way].color,
                    linestyle=dashes,
                    marker=colours[way].marker if dashes == "-" else "",
                )
        trivial = rows[(rows["rows"] == ways[0]) & (rows["quantity"] == "w = 0")]
        [lines["w = 0"]] = axes.plot(
            trivial["horizon"], trivial["value"], color="0.6", linewidth=0.8
        )
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=2)


# Uniform convergence


def _convergence_tables(result: Result) -> Iterator[Table]:
    yield from _tables_by(
        result,
        "size",
        ["deviation", "rate", "constant"],
        "Deviation: the 95 % quantile over samples of the largest over all w.",
    )


def _draw_convergence(figure: "SubFigure", result: Result) -> None:
    lines: dict[str, Any] = {}
    looks = solver_styles(["deviation", "slope"])
    table = result.values.dropna(subset="size")
    labels = {"xlabel": "s (rows of the sample)", "ylabel": "deviation"}
    for axes, rows in _grid(figure, table, "size", **labels):
        curve = rows[rows["quantity"] == "deviation"]
        size, deviation = curve["size"].to_numpy(), curve["value"].to_numpy()
        [lines["deviation"]] = axes.plot(
            size, deviation, marker="o", color=looks["deviation"].color
        )
        [lines["slope -1/2 from the first size"]] = axes.plot(
            size, deviation[0] * np.sqrt(size[0] / size), "--", color="0.4"
        )
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=2)


# Errors


def _draw_errors(figure: "SubFigure", result: Result) -> None:
    named = result.values.assign(name=result.values["dataset"] + ", " + result.values["objective"])
    looks = solver_styles(list(dict.fromkeys(named["name"])))
    for axes, theorem, rows in side_by_side(figure, named, "theorem"):
        for name, curve in rows.groupby("name", sort=False):
            wide = curve.pivot(index="size", columns="quantity", values="value")
            axes.plot(
                wide.index, wide["excess"], color=looks[str(name)].color, marker="o", label=name
            )
            axes.plot(wide.index, wide["bound"], "--", color=looks[str(name)].color, linewidth=0.8)
        log_scale(axes, "x")
        size = "T (rows of the stream)" if "4" in theorem else "s (rows of a buffer)"
        axes.set(title=theorem, xlabel=size, ylabel="excess")
        name_labelled_curves(axes)


ERROR_BOUNDS = StudyKind(
    compute="precbench.papers.kar2014.theory:error_bounds",
    text=("theorem", "dataset", "objective", "quantity"),
    numbers=("size",),
    tables=partial(
        _tables_by,
        column="size",
        quantities=["excess", "bound", "w = 0"],
        note="Excess: less that of the best w, and of Theorem 4 less the regret; the 95 % "
        "quantile. Bound: with the constant 1 where it is open. w = 0: the excess of w = 0.",
    ),
    draw=_draw_errors,
    size=(8.4, 4.6),
    caption="Excess over the best w of a ball of radius {radius}; dashed: the bounds, with the "
    "constant 1 where it is open. Left: of the mean w of follow the regularised leader on "
    "streams of T rows, less the regret; right: of one pass of 1PMB over {rows} rows with "
    "buffers of s.",
)

REGRET = StudyKind(
    compute="precbench.papers.kar2014.theory:regret",
    text=("dataset", "objective", "rows", "quantity"),
    numbers=("horizon",),
    tables=_regret_tables,
    draw=_draw_regret,
    size=(7.6, 6.4),
    caption="Regret of follow the regularised leader in a ball of radius {radius}, an upper "
    "bound by the certified gaps, and the bound of Theorem 1; grey: the regret of w = 0, "
    "which learns nothing. Each T is a run of its own. Prec@k takes the share {top} of the "
    "rows, pAUC the share {beta} of the negatives.",
)

UNIFORM_CONVERGENCE = StudyKind(
    compute="precbench.papers.kar2014.theory:uniform_convergence",
    text=("dataset", "objective", "quantity"),
    numbers=("size",),
    tables=_convergence_tables,
    draw=_draw_convergence,
    size=(7.6, 6.4),
    caption="Largest deviation of the surrogate on a sample from that on all rows, over "
    "{weights} weights in a ball of radius {radius}: the 95 % quantile over {samples} samples. "
    "Prec@k takes the share {top} of the rows, pAUC the share {beta} of the negatives.",
)

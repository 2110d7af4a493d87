"""The studies of kar2015."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from precbench.report.panels import draw_curves, name_labelled_curves, side_by_side
from precbench.report.study import value_table
from precbench.report.style import log_scale, solver_styles
from precbench.report.table import Table, text_table
from precbench.report.tables import three_digits
from precbench.studies import Result, StudyKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


_KEYS = ["theorem", "measure", "solver", "dataset", "batch_size"]
_MISTAKES = ["measured", "bound", "trivial"]
_OPEN_ENDED = ["measured", "explicit part", "rate", "constant"]


def _tables(result: Result) -> Iterator[Table]:
    values = result.values
    wide = _by_split(values)
    counted = wide["bound"].notna()
    mistakes = wide[counted].assign(holds=wide["measured"] <= wide["bound"])
    groups = mistakes.groupby(_KEYS, sort=False)
    means = groups[_MISTAKES].mean().map(_digits)
    means["holds"] = [f"{holds.sum()} of {len(holds)}" for _, holds in groups["holds"]]
    yield _table(
        result,
        "mistakes",
        means,
        "Means over the splits, and in how many of them the bound holds. Trivial: the most "
        "mistakes that the batches allow, so that a larger bound is vacuous.",
    )
    groups = wide[~counted].groupby(_KEYS, sort=False)
    columns: dict[str, Any] = dict.fromkeys(_OPEN_ENDED, "mean") | {"constant": "max"}
    yield _table(
        result,
        "up to an open constant",
        groups[_OPEN_ENDED].agg(columns).map(_digits),
        "Means over the splits. The bound is the explicit part plus a constant times the rate; "
        "the last column is the largest constant that any split needs. It should stay bounded as "
        "b grows.",
    )


def _by_split(values: pd.DataFrame) -> pd.DataFrame:
    rows = values.dropna(subset="batch_size").fillna({"split": 0})
    wide = rows.pivot(index=[*_KEYS, "split"], columns="quantity", values="value").reset_index()
    number = wide["theorem"].str.extract(r"(\d+)", expand=False).astype(int)
    return wide.loc[number.sort_values(kind="stable").index]


def _table(result: Result, name: str, wide: pd.DataFrame, note: str) -> Table:
    return text_table(
        f"{result.title}: {name}",
        ["", "measure", "solver", "data", "b", *wide],
        [(*key, f"{b:.0f}", *texts) for (*key, b), *texts in wide.itertuples(name=None)],
        note,
    )


def _digits(value: float) -> str:
    return three_digits(value) if value == value else ""


def _draw(figure: "SubFigure", result: Result) -> None:
    wide = _by_split(result.values)
    wide["share"] = wide["measured"] / wide["bound"]
    uniform = wide["theorem"] == "Theorem 12"
    curves = (
        (wide[wide["bound"].notna()], "share", "mistakes as a fraction of the bound"),
        (wide[uniform], "measured", "deviation in Theorem 12"),
        (
            wide[~uniform & wide["bound"].isna()],
            "constant",
            "smallest factor with which it holds",
        ),
    )
    for axes, (rows, column, label) in zip(figure.subplots(1, 3), curves, strict=True):
        _draw_means(axes, rows, column)
        axes.set(xscale="log", yscale="log", xlabel="b (rows of a batch)", ylabel=label)
        sizes = sorted(rows["batch_size"].unique())
        axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        axes.minorticks_off()
        axes.legend(fontsize=6.5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.axes[0].axhline(1, color="black", linewidth=0.8)


def _draw_means(axes: "Axes", rows: pd.DataFrame, column: str) -> None:
    means = rows.groupby(_KEYS, sort=False)[column].mean().reset_index()
    abbreviated = means["theorem"].str.replace("Theorem", "Th.").str.replace("Corollary", "Cor.")
    open_ended = means["measure"].where(means["solver"] == "", means["solver"])
    names = abbreviated + ", " + open_ended + ", " + means["dataset"]
    drawn = means[column] > 0  # a logarithmic axis has no place for 0
    draw_curves(axes, means[drawn], names, "batch_size", column)
    if column == "measured" and len(means):
        size = np.sort(means["batch_size"].unique())
        guide = means["measured"].max() * np.sqrt(size[0] / size)
        axes.plot(size, guide, ":", color="0.4", label="slope -1/2")


def _law_tables(result: Result) -> Iterator[Table]:
    values, keys = result.values, ["place", "law", "scores"]
    wide = values.pivot(index=keys, columns="quantity", values="value")
    quantities = ["excess", "control", "vectors"]
    wide = wide.loc[pd.MultiIndex.from_frame(values[keys].drop_duplicates()), quantities]
    yield text_table(
        result.title,
        ["", "law", "scores", *quantities],
        [(*key, *map("{:.3g}".format, numbers)) for key, *numbers in wide.itertuples(name=None)],
        "The largest excess of the left side over the right one; a law holds where it is not "
        "above 0 except for rounding. The same scores break the control.",
    )


def _draw_laws(figure: "SubFigure", result: Result) -> None:
    axes = figure.subplots()
    largest = result.values.groupby(["law", "quantity"], sort=False)["value"].max().unstack()
    places = np.arange(len(largest))[::-1]
    for quantity, marker in (("excess", "o"), ("control", "x")):
        axes.plot(
            largest[quantity], places, marker, label=quantity, color="black", fillstyle="none"
        )
    axes.set_yticks(places, list(largest.index))
    axes.set_xlabel("largest excess of the left side")
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.legend()


def _draw_appendix(figure: "SubFigure", result: Result) -> None:
    axes, values = figure.subplots(), result.values
    signs = {"struct(w)": 1, "struct(-w)": -1, "loss(-w)": -1}
    looks = solver_styles(list(signs))
    for quantity, sign in signs.items():
        rows = values[values["quantity"] == quantity]
        weights = sign * rows["weight"].astype(float)
        look: dict[str, Any] = looks[quantity]._asdict()
        axes.plot(weights, rows["value"], label=quantity, **look)
    axes.set(xlabel="w", ylabel="struct, and the loss prec@1")
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.legend()


_OF = ["dataset", "rows", "surrogate"]
_LEAST = "w = 0 is a minimiser"


def _tables_of_minima(result: Result) -> Iterator[Table]:
    values = result.values
    wide = values.pivot(index=_OF, columns="eta0", values="value")
    wide = wide.reindex(pd.MultiIndex.from_frame(values[_OF].drop_duplicates()))
    least = values[values["quantity"] == _LEAST].set_index(_OF)["value"]
    learnt = wide[[step for step in wide if step == step]]
    yield text_table(
        result.title,
        ["data", "rows", "surrogate", _LEAST, *(f"eta0 = {step:g}" for step in learnt)],
        [
            (
                *key,
                "yes" if least[key] else "no",
                *("" if np.isnan(number) else three_digits(number) for number in numbers),
            )
            for key, *numbers in learnt.itertuples(name=None)
        ],
        "The surrogate of all rows at the w of SGD@k, as a multiple of its value at w = 0.",
    )


def _draw_minima(figure: "SubFigure", result: Result) -> None:
    learnt = result.values.dropna(subset="eta0")
    for axes, kind, rows in side_by_side(figure, learnt, "rows", sharey=True):
        draw_curves(axes, rows, rows["dataset"] + ", " + rows["surrogate"], "eta0")
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="eta0", title=f"rows {kind}")
    figure.axes[0].set_ylabel("surrogate, relative to w = 0")
    name_labelled_curves(figure.axes[-1])


_FITS = {
    "minimum": "minimum",
    "bound": "bound",
    "norm of the best w": "norm, best",
    "norm of the last w": "norm, last",
    "measure of w = 0": "test, w = 0",
    "measure of the best w": "test, best",
    "measure of the last w": "test, last",
    "iterations": "iterations",
}
_FIT = ["dataset", "problem", "C"]


def _tables_of_optima(result: Result) -> Iterator[Table]:
    values = result.values[result.values["iteration"].isna()]
    wide = values.pivot(index=_FIT, columns="quantity", values="value")
    wide = wide.reindex(pd.MultiIndex.from_frame(values[_FIT].drop_duplicates()))
    yield text_table(
        result.title,
        ["data", "problem", "C", *_FITS.values(), "converged"],
        [
            (dataset, problem, f"{C:g}", *map(three_digits, numbers), "yes" if converged else "no")
            for (dataset, problem, C), *numbers, converged in wide[
                [*_FITS, "converged"]
            ].itertuples(name=None)
        ],
        "The smallest value found and the lower bound, as multiples of the value at w = 0; the "
        "norms of the best w and of the last iterate; what both, and w = 0, reach in the test.",
    )


def _draw_optima(figure: "SubFigure", result: Result) -> None:
    paths = result.values.dropna(subset="iteration")
    strengths = list(dict.fromkeys(paths["C"]))
    grid = figure.subplots(2, len(strengths), sharex="col", sharey="row", squeeze=False)
    looks = solver_styles(["value", "best", "bound so far", "measure"])
    names = {"value": "the iterate", "best": "the best so far", "bound so far": "lower bound"}
    for column, C in enumerate(strengths):
        curves = paths[paths["C"] == C]
        above, below = grid[:, column]
        for quantity, axes in (*((name, above) for name in names), ("measure", below)):
            curve = curves[curves["quantity"] == quantity]
            label = names.get(quantity, "the iterate")
            axes.plot(curve["iteration"], curve["value"], color=looks[quantity].color, label=label)
        above.axhline(1, color="black", linewidth=0.8)
        above.set(title=f"{curves['dataset'].iloc[0]}, C = {C:g}", ylim=(0, 2))
        below.set(xlabel="iteration")
    grid[0, 0].set_ylabel("value, relative to w = 0")
    grid[1, 0].set_ylabel(f"{paths['problem'].iloc[0]}, test rows")
    grid[0, 0].legend(loc="lower right")


def _rate_tables(result: Result) -> Iterator[Table]:
    values = result.values.assign(b=result.values["batch_size"].map("{:.0f}".format))
    yield value_table(result, values, ["theorem", "solver", "quantity", "b"])


def _draw_rates(figure: "SubFigure", result: Result) -> None:
    axes = figure.subplots()
    constants = result.values[result.values["quantity"] == "constant"]
    names = constants["theorem"] + ", " + constants["solver"]
    draw_curves(axes, constants, names, "batch_size")
    log_scale(axes, "x")
    axes.set(
        xlabel="b = T (batches, and rows of each)", ylabel="smallest factor with which it holds"
    )
    axes.axhline(0, color="0.6", linewidth=0.8)
    name_labelled_curves(axes)


PRECISION_RATES = StudyKind(
    compute="precbench.papers.kar2015.bounds:precision_rates",
    text=("theorem", "solver", "quantity"),
    numbers=("batch_size",),
    tables=_rate_tables,
    draw=_draw_rates,
    size=(6.4, 3.6),
    caption="Each bound has a factor that the paper leaves open. The smallest with which the "
    "bound holds, the mean over {repetitions} streams of b batches of b rows of {dataset}; it "
    "should not grow with b.",
)

PRECISION_LAWS = StudyKind(
    compute="precbench.papers.kar2015.laws:precision_laws",
    text=("place", "law", "scores", "quantity"),
    numbers=(),
    tables=_law_tables,
    draw=_draw_laws,
    size=(7.0, 3.6),
    caption="The largest excess of the left side of each law over its right side, over "
    "{vectors} random score vectors of each of three sorts and {starts} searches of {steps} "
    "moves, in units of the largest score; crosses: the control, a statement that does not hold.",
)

APPENDIX_A = StudyKind(
    compute="precbench.papers.kar2015.laws:appendix_a",
    text=("quantity", "weight"),
    numbers=(),
    tables=lambda result: [value_table(result, result.values, ["quantity", "weight"])],
    draw=_draw_appendix,
    size=(5.0, 3.4),
    caption="The struct surrogate on the six points, as scaled in Appendix A: it prefers "
    "negative weights, at which the loss prec@1 is 1.",
    quick=True,
)

SURROGATE_MINIMA = StudyKind(
    compute="precbench.papers.kar2015.minima:surrogate_minima",
    text=("dataset", "rows", "surrogate", "quantity"),
    numbers=("eta0",),
    tables=_tables_of_minima,
    draw=_draw_minima,
    size=(9.0, 3.8),
    caption="The surrogate of all rows at the w of SGD@k after {epochs} passes, relative to "
    "its value at w = 0, where all scores tie; k is {k} of the positives. Below 1 something "
    "was minimised.",
)

CUTTING_PLANE_MINIMA = StudyKind(
    compute="precbench.papers.kar2015.minima:cutting_plane_minima",
    text=("dataset", "problem", "quantity"),
    numbers=("C", "iteration"),
    tables=_tables_of_optima,
    draw=_draw_optima,
    size=(10.0, 4.6),
    caption="Above, the value of each iterate of the cutting plane, the smallest so far and the "
    "lower bound, as multiples of the value at w = 0, where all scores tie; below, what it "
    "reaches on the test rows.",
)

PRECISION_BOUNDS = StudyKind(
    compute="precbench.papers.kar2015.bounds:precision_bounds",
    text=("theorem", "measure", "solver", "dataset", "quantity"),
    numbers=("split", "batch_size"),
    tables=_tables,
    draw=_draw,
    size=(10.0, 5.2),
    caption="Left: mistakes of one pass as a fraction of their bounds; above 1 a theorem would "
    "fail. Middle: the largest deviation of a sample of b rows from all rows, over {weights} w "
    "near the optimum: its 95 % quantile over {samples} samples. Right: the bounds of Theorems "
    "13 and 15 have a factor that the paper leaves open; the smallest with which they hold, "
    "where it is not 0. Means over {splits} splits; k is {k} of the positives of a batch.",
)

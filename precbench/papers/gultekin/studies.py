"""The studies of gultekin."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from precbench.report.study import value_table
from precbench.report.style import solver_styles
from precbench.report.table import Table, text_table
from precbench.report.tables import three_digits
from precbench.studies import Result, StudyKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


# Gaussian mixtures

_METHODS = {
    "likelihood-ratio": "the likelihood ratio",
    "optimum": "the optimum of the risk",
    "bbr-pairs": "BBR, loop over all pairs",
    "bbr": "BBR",
    "lcbr": "LCBR",
}
_LOOKS = solver_styles(list(_METHODS))
_DASHES: dict[str, Any] = {"likelihood-ratio": (0, (1, 1)), "optimum": "--", "bbr-pairs": "-."}
_ROWS = (("risk", "risk"), ("auc", "AUC"), ("seconds", "CPU seconds"))


def _mixture_tables(result: Result) -> Iterator[Table]:
    table = result.values
    for measure, name in (*_ROWS, ("seconds with checks", "CPU seconds with checks of the input")):
        rows = table[(table["part"] == "pairs") & (table["measure"] == measure)]
        yield _by_components(result, rows, name)
    for part, name in (("speed", "times as fast"), ("covariance", "not isotropic")):
        rows = table[(table["part"] == part) & table["components"].notna()]
        yield _by_components(result, rows, name, ["method", "measure", "statistic"])
    skewed = table[(table["part"] == "skew") & (table["statistic"] == "mean")]
    wide = skewed.pivot(index="share", columns="method", values="value")
    yield text_table(
        f"{result.title}: AUC by fraction of positives",
        ["", *(_METHODS[str(method)] for method in wide)],
        [
            (f"{share:g}", *map("{:.4f}".format, values))
            for share, *values in wide.itertuples(name=None)
        ],
        "Means over the experiments.",
    )


def _by_components(
    result: Result, rows: pd.DataFrame, name: str, keys: list[str] | None = None
) -> Table:
    rows = rows.assign(pairs=[f"{s:,.0f}" if s > 0 else "" for s in rows["pairs"]])
    keys = keys or ["method", "pairs", "statistic"]
    wide = rows.set_index([*keys, "components"])["value"].unstack()  # sort=False: wrong in pandas 2
    order = pd.MultiIndex.from_frame(rows[keys].drop_duplicates())
    wide = wide.reindex(order, columns=rows["components"].unique())
    return text_table(
        f"{result.title}: {name}",
        ["", *keys[1:], *(f"K = {k:.0f}" for k in wide)],
        [(*map(str, key), *map(_digits, values)) for key, *values in wide.itertuples(name=None)],
    )


def _digits(value: float) -> str:
    if value != value:  # an accumulation too short to be timed
        return "–"
    return f"{value:.4f}" if 0.05 <= abs(value) < 1 else three_digits(value)


def _draw_mixtures(figure: "SubFigure", result: Result) -> None:
    table = result.values[result.values["statistic"].isin(["mean", "least"])]
    problems = result.parameters["problems"]
    grid = figure.add_gridspec(4, len(problems))
    letters, lines = iter("abcdefghijklmnopqrstuvwxyz"), dict[str, Any]()
    by_pairs = table[(table["part"] == "pairs") & (table["pairs"] != 1)]
    for i, (measure, name) in enumerate(_ROWS):
        for j, problem in enumerate(problems):
            axes = figure.add_subplot(grid[i, j])
            k, sigma = problem["components"], problem["sigma"]
            rows = by_pairs[(by_pairs["components"] == k) & (by_pairs["measure"] == measure)]
            _draw_methods(axes, rows, "pairs", lines)
            axes.set_title(f"({next(letters)}) {name}, K = {k}, σ = {sigma:g}")
            if measure == "seconds":
                axes.set(yscale="log", xlabel="S (pairs)")
            if j == 0:
                axes.set_ylabel(name)
    axes = figure.add_subplot(grid[3, len(problems) // 2])
    _draw_methods(axes, table[table["part"] == "skew"], "share", lines)
    k = result.parameters["skewed"]["components"]
    axes.set(
        title=f"({next(letters)}) AUC, K = {k}", xlabel="ρ (fraction of positives)", ylabel="AUC"
    )
    ordered = [label for label in _METHODS.values() if label in lines]
    aside = figure.add_subplot(grid[3, 0])
    aside.axis("off")
    aside.legend([lines[label] for label in ordered], ordered, loc="center left")


def _draw_methods(axes: "Axes", table: pd.DataFrame, x: str, lines: dict[str, Any]) -> None:
    """Draw a curve for each method, or a line for one that has no x."""
    for method, rows in table.groupby("method", sort=False):
        look, label = _LOOKS[str(method)], _METHODS[str(method)]
        style: dict[str, Any] = {"color": look.color, "linestyle": _DASHES.get(str(method), "-")}
        if rows[x].notna().all() and rows[x].nunique() > 1:
            style |= {"marker": look.marker, "markersize": 3.5}
            [lines[label]] = axes.plot(rows[x], rows["value"], **style)
        else:
            lines.setdefault(label, axes.axhline(rows["value"].iloc[0], **style))


# Bounds

_QUANTITIES = ("measured", "re-derived", "printed")
_BOUND_LOOKS = dict(zip(_QUANTITIES, ("-", "--", (0, (1, 1))), strict=True))
_PANELS = (
    ("Lemma 1", "rows"),
    ("Theorem 1", "rows"),
    ("Lemma 2 (i)", "pairs"),
    ("Lemma 2 (ii)", "pairs"),
    ("Theorem 2", "pairs"),
    ("Theorem 3", "pairs"),
)
_TAILS = ("Theorem 2", "Lemma 2 (ii), coins")


def _bound_tables(result: Result) -> Iterator[Table]:
    table = result.values
    deviations = table[table["what"] == "deviation"]
    for statement, rows in deviations.groupby("statement", sort=False):
        wide = rows.fillna({"pairs": 0}).pivot(
            index=["rows", "pairs"], columns="quantity", values="value"
        )
        wide = wide[[name for name in _QUANTITIES if name in wide]]
        yield text_table(
            f"{result.title}: {statement}",
            ["N", "S", *wide],
            [
                (f"{n:,.0f}", f"{s:,.0f}" if s else "", *map("{:.3g}".format, values))
                for (n, s), *values in wide.itertuples(name=None)
            ],
            "Deviations that are exceeded with the probability delta, and their bounds.",
        )
    others = table[table["what"] == "largest ratio"]
    yield value_table(
        result,
        others,
        ["what", "statement", "quantity"],
        "Ratios of a probability to its bound.",
    )
    tails = table[table["what"] == "probability"]
    for (tail, s), rows in tails.groupby(["statement", "pairs"], sort=False):
        wide = rows.pivot(index="epsilon", columns="quantity", values="value")
        wide = wide[[name for name in _QUANTITIES if name in wide]]
        yield text_table(
            f"{result.title}: probabilities of {tail}, S = {s:,.0f}",
            ["epsilon", *wide],
            (map("{:.3g}".format, row) for row in wide.itertuples(name=None)),
        )


def _draw_bounds(figure: "SubFigure", result: Result) -> None:
    table, largest = result.values, max(result.parameters["rows"])
    grid, lines = figure.subplots(2, 4).flatten(), dict[str, Any]()
    colours = solver_styles(_QUANTITIES)
    at_zero = table.loc[table["statement"] == "w = 0", "value"].iloc[-1]
    for axes, (statement, x) in zip(grid, _PANELS, strict=False):
        rows = table[(table["what"] == "deviation") & (table["statement"] == statement)]
        rows = rows[rows["rows"] == largest] if x == "pairs" else rows
        _draw_quantities(axes, rows, x, colours, lines)
        if statement.startswith("Theorem"):
            lines["w = 0"] = axes.axhline(at_zero, color="0.6", linewidth=0.8)
        axes.set(title=statement, xscale="log", xlabel="S" if x == "pairs" else "N")
    for axes, tail in zip(grid[len(_PANELS) :], _TAILS, strict=True):
        rows = table[(table["what"] == "probability") & (table["statement"] == tail)]
        s = rows["pairs"].max()
        rows = rows[(rows["pairs"] == s) & (rows["value"] > 0)]
        _draw_quantities(axes, rows, "epsilon", colours, lines)
        axes.set(title=tail, xlabel=f"ε (S = {s:,.0f})")
        axes.set_xscale("log" if tail == "Theorem 2" else "linear")
    for i, name in ((0, "deviation"), (4, "deviation"), (6, "probability")):
        grid[i].set_ylabel(name)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)


def _draw_quantities(
    axes: "Axes", table: pd.DataFrame, x: str, looks: dict[str, Any], lines: dict[str, Any]
) -> None:
    for quantity, rows in table.groupby("quantity", sort=False):
        look = looks[str(quantity)]
        [lines[str(quantity)]] = axes.plot(
            rows[x],
            rows["value"],
            color=look.color,
            linestyle=_BOUND_LOOKS[str(quantity)],
            marker=look.marker if quantity == "measured" and x != "epsilon" else "",
        )
    axes.set_yscale("log")


GAUSSIAN_MIXTURES = StudyKind(
    compute="precbench.papers.gultekin.gaussians:gaussian_mixtures",
    text=("part", "method", "measure", "statistic"),
    numbers=("components", "pairs", "share"),
    tables=_mixture_tables,
    draw=_draw_mixtures,
    size=(8.4, 9.0),
    caption="Mixtures of K Gaussians in {features} dimensions. Means over {repetitions} "
    "experiments, each with a new mixture, {rows} rows and new pairs; risk (with its 1/2) and "
    "AUC are those of the distribution. BBR takes all pairs, and its seconds are those of its "
    "moments where no loop is named; seconds are the least of the experiments, from the first "
    "call of the trace. Last panel: {skewed_pairs} pairs for LCBR.",
)

PAIR_BOUNDS = StudyKind(
    compute="precbench.papers.gultekin.bounds:pair_bounds",
    text=("what", "statement", "quantity"),
    numbers=("rows", "pairs", "epsilon"),
    tables=_bound_tables,
    draw=_draw_bounds,
    size=(10.0, 5.2),
    caption="Deviations that are exceeded with probability {delta}, over {draws} draws, and "
    "their bounds by lemmas and theorems; with S pairs, of the largest sample. Grey: the "
    "excess of w = 0, which has learned nothing, over the optimum. Last two panels: the "
    "probability that a deviation reaches ε, in the last one exact, for a sample on a line "
    "with half of each class at 1 and half at -1. Balls of radius W = {radius}, {features} "
    "features.",
)

"""The studies of rudin2009."""

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from precbench.core.studies import Result, StudyKind, SubFigure
from precbench.ranking.metrics import Metric
from precbench.report.panels import draw_panels, in_panels
from precbench.report.study_tables import tabulate, value_table
from precbench.report.style import Axes
from precbench.report.table import Cell, Table

_TEX = {
    "1/ln(1+z)": r"$1/\ln(1+z)$, of the DCG",
    "1/z": r"$1/z$, of the average reciprocal rank",
    "-ln(1+z)": r"$-\ln(1+z)$, of the IR push",
    "|a^(1/p) - b^(1/p)|": r"$|a^{1/p}-b^{1/p}|$",
    "min(|a - b| a^(1/p - 1), |a - b|^(1/p))": (
        r"$\min(|a-b|\,a^{1/p-1},\ |a-b|^{1/p})$"
    ),
    "|a - b|^(1/p)": r"$|a-b|^{1/p}$",
}


def _comparable(result: Result) -> list[list[str]]:
    """Return the names of the lists, grouped by their numbers of rows of each class."""
    groups: dict[Any, list[str]] = {}  # by ((label, count), ...)
    for name, ranked in result.parameters["lists"].items():
        counts = tuple(sorted(Counter(ranked["labels"]).items()))
        groups.setdefault(counts, []).append(name)
    return list(groups.values())


def _measures(result: Result) -> dict[str, Metric]:
    """Return the metrics of the study by label."""
    metrics = {}
    for entry in result.parameters["measures"]:  # a name, or {name: parameters}
        by_name = entry if isinstance(entry, dict) else {entry: {}}
        for name, params in by_name.items():
            metric = Metric(name, params)
            metrics[metric.label] = metric
    return metrics


def _ranked_tables(result: Result) -> Iterator[Table]:
    """Yield a table for each scale of the scores and each group of comparable lists."""
    metrics = _measures(result)
    for scale, rows in result.values.groupby("scale", sort=False):
        for lists in _comparable(result):
            of_lists = rows[rows["list"].isin(lists)]
            values = of_lists.pivot(index="measure", columns="list", values="value")
            values = values[lists]  # in the order of the study
            yield Table(
                title=f"{result.title}: {', '.join(lists)}, {_scaled(scale)}",
                header=["", *lists],
                rows=[
                    _ranked_row(metric, values.loc[label].tolist())
                    for label, metric in metrics.items()
                ],
                notes=["Bold: the list that the measure prefers."],
            )


def _ranked_row(metric: Metric, values: list[float]) -> list[Cell]:
    """Return the name of a metric and its values, the best in bold."""
    # No value is bold where all are equal.
    best = min(values) if metric.smaller_is_better else max(values)
    all_equal = len(set(values)) == 1
    cells = [
        Cell(f"{value:,.7g}", bold=value == best and not all_equal) for value in values
    ]
    return [Cell(metric.written), *cells]


def _draw_ranked(figure: SubFigure, result: Result) -> None:
    """Draw the norm of each risk of a list over that of the first of its group."""
    table = _with_powers(result)
    norms = table.pivot(index=["scale", "loss", "p"], columns="list", values="norm")
    groups = [] if table.empty else _comparable(result)
    parts = []
    for first, *others in groups:
        for other in others:
            ratios = (norms[other] / norms[first]).dropna()
            part = ratios.rename("value").reset_index()
            part["panel"] = f"{other} / {first}, " + part["scale"].map(_scaled)
            part["quantity"] = "ratio"
            parts.append(part)
    if not parts:
        figure.text(
            0.5, 0.5, "No two lists to compare by a risk with a power p.", ha="center"
        )
        return
    panels = draw_panels(
        figure,
        pd.concat(parts),
        x="p",
        panel="panel",
        curve="loss",
        dashes={"ratio": "-"},
        log=(),
        n_columns=2,
        xlabel="p",
    )
    for axes in panels:
        axes.axhline(1, color="black", linewidth=0.8, zorder=1)  # equal norms


def _scaled(scale: Any) -> str:
    return "scores as given" if scale == 1 else f"scores × {scale:g}"


def _with_powers(result: Result) -> pd.DataFrame:
    """Return the rows of p-norm risks R, with their p, loss and norm R^(1/p)."""
    p_of = {}  # by label of the measure
    loss_of = {}
    for label, metric in _measures(result).items():
        if metric.name == "pnorm_risk" and not metric.params.get("log"):
            p_of[label] = float(metric.params["p"])
            loss_of[label] = metric.params.get("loss", "zero-one")
    rows = result.values[result.values["measure"].isin(p_of)]
    p = rows["measure"].map(p_of)
    loss = rows["measure"].map(loss_of)
    return rows.assign(p=p, loss=loss, norm=rows["value"] ** (1 / p))


def _pair_tables(result: Result) -> Iterator[Table]:
    """Yield the shares of the negatives, then of the positives."""
    for side, other in (("negative", "positive"), ("positive", "negative")):
        sums = result.values[result.values[other] == "all"]
        note = (
            f"Share of each {side}, by its rank among the {side}s; 1 has the highest"
            " score."
        )
        yield value_table(result, sums, ["objective"], note, across=side)


def _draw_pairs(figure: SubFigure, result: Result) -> None:
    """Draw the share of each pair as an image, a panel for each objective."""
    is_sum = (result.values[["positive", "negative"]] == "all").any(axis=1)
    pairs = result.values[~is_sum].astype({"positive": int, "negative": int})
    names = list(dict.fromkeys(pairs["objective"]))
    panels = figure.subplots(
        math.ceil(len(names) / 3), 3, sharex=True, sharey=True, squeeze=False
    )
    for axes in panels.flat[len(names) :]:  # left over in the last row
        axes.remove()
    for axes, name in zip(panels.flat, names, strict=False):
        _draw_shares(axes, name, pairs[pairs["objective"] == name])
    for axes in panels[-1]:
        axes.set_xlabel("negative (1: highest score)")
    for axes in panels[:, 0]:
        axes.set_ylabel("positive (1: highest score)")


def _draw_shares(axes: Axes, name: str, pairs: pd.DataFrame) -> None:
    """Draw the shares of the pairs in an objective, ranks at the centres of squares."""
    shares = pairs.pivot(index="positive", columns="negative", values="value")
    largest = pairs["value"].max()
    axes.imshow(
        shares,
        cmap="gray",
        vmin=0,
        vmax=largest,
        origin="lower",
        extent=(0.5, shares.shape[1] + 0.5, 0.5, shares.shape[0] + 0.5),
        aspect="equal",
    )
    title = "IR push" if name == "IR" else name.replace("=", " = ")
    axes.set_title(f"{title} (white: {largest:.1%})")
    axes.set(xticks=shares.columns, yticks=shares.index)
    axes.grid(False)


def _draw_curves(figure: SubFigure, result: Result, x: str, ylabel: str) -> None:
    """Draw all curves over the column `x`."""
    table = result.values.dropna(subset=x)  # without the facts, which have no x
    table = table.assign(curve=table["curve"].map(_TEX), quantity="", panel="")
    draw_panels(
        figure,
        table,
        x=x,
        panel="panel",
        curve="curve",
        dashes={"": "-"},
        log=(),
        xlabel=x,
        ylabel=ylabel,
    )


def _draw_lemma(figure: SubFigure, result: Result) -> None:
    _draw_curves(figure, result, "b", "difference of roots and its bounds")
    [axes] = figure.axes
    # Up to b = 2 a the first term of the minimum is the smaller.
    axes.axvspan(
        0, min(2 * result.parameters["a"], 1), color="0.94", linewidth=0, zorder=0
    )
    axes.set_ylim(bottom=0)


def _draw_fits(figure: SubFigure, result: Result) -> None:
    """Draw the means of each fit as dots, a panel for each measure."""
    # The statistic is the quantity that `draw_panels` chooses: "mean", no standard
    # errors.
    table = result.values.assign(quantity=result.values["statistic"])
    table["panel"] = table["dataset"] + ": " + table["measure"]
    panels = draw_panels(
        figure,
        table,
        x="fit",
        panel="panel",
        curve="rows",
        dashes={"mean": ""},
        log=(),
        n_columns=table["measure"].nunique(),  # a row of panels for each data set
    )
    for axes in panels:
        axes.tick_params(axis="x", labelsize=7, labelrotation=60)
        axes.title.set_fontsize(8)


def _theorem_tables(result: Result) -> Iterator[Table]:
    """Yield a table of what has no size, and one of deviations by size."""
    # The row without a statement is left out: its value 1 is there for claims, which
    # compare the ratios with it.
    table = result.values[result.values["statement"] != ""]
    has_size = table["size"].notna()
    yield value_table(result, table[~has_size], ["statement", "p", "quantity"])
    note = (
        "Deviations that are exceeded with probability 0.05; a bound above 1 is"
        " vacuous. The size is that of each class, I = K."
    )
    by_size = ["statement", "p", "size"]
    yield value_table(result, table[has_size], by_size, note, across="quantity")


def _draw_theorems(figure: SubFigure, result: Result) -> None:
    """Draw deviations and bounds by size, a panel by theorem and a curve by p."""
    table = result.values.dropna(subset="size")
    table = table.assign(power=table["p"].map("p = {:g}".format))
    panels = draw_panels(
        figure,
        table,
        x="size",
        panel="statement",
        curve="power",
        xlabel="I = K",
        dashes={"measured": "-", "bound": "--"},
    )
    for axes in panels:
        axes.axhline(1, color="0.6", linewidth=0.8)  # no deviation can exceed 1


_FITS = ["dataset", "rows", "fit", "statistic"]
_DRAWS = (
    "Means over the training sets, and standard errors of these draws, which share"
    " rows: on new rows they would be larger."
)

PUSH_THEOREMS = StudyKind(
    compute="precbench.papers.rudin2009.theorems:push_theorems",
    text=("statement", "quantity"),
    numbers=("p", "size"),
    tables=_theorem_tables,
    draw=_draw_theorems,
    size=(8.4, 3.2),
    caption=(
        "Deviations that are exceeded with probability 0.05 over {draws} training sets,"
        " of a class of {rankers} functions (Lemma 9: of one); dots and lines: measured"
        " (no dot where it is 0), dashed: the bounds. Grey: 1, which no deviation"
        " exceeds."
    ),
)

PUSH_OBJECTIVES = StudyKind(
    compute="precbench.papers.rudin2009.theorems:push_objectives",
    text=("dataset", "fit", "rows", "measure", "statistic"),
    numbers=(),
    tables=tabulate(_FITS, f"{_DRAWS} Risks are shares.", across="measure"),
    draw=_draw_fits,
    size=(10.0, 4.6),
    caption=(
        "Means over {repetitions} training sets of {rows} rows. Risks are norms of the "
        "heights as shares of the positives; smaller is better, except for the AUC."
    ),
)

PUSH_VARIANTS = StudyKind(
    compute="precbench.papers.rudin2009.lists:push_variants",
    text=("dataset", "fit", "rows", "measure", "statistic"),
    numbers=(),
    tables=tabulate(
        _FITS,
        f"{_DRAWS} R^(1/p) is the p-norm of the heights; of crucial and other pairs the"
        " share ranked correctly.",
        across="measure",
    ),
    draw=_draw_fits,
    size=(10.0, 3.0),
    caption=(
        "Means over {repetitions} training sets of {rows} rows, p = {p}. Top: the"
        " p-norm of the heights of the negatives, which the push at the top minimises;"
        " bottom: that of the positives, which the push at the bottom minimises;"
        " smaller is better. The crucial pairs are those of the {crucial} positives"
        " that the push at the top ranks lowest."
    ),
)

RANKED_LISTS = StudyKind(
    compute="precbench.papers.rudin2009.lists:ranked_lists",
    text=("list", "measure"),
    numbers=("scale",),
    tables=_ranked_tables,
    draw=_draw_ranked,
    size=(6.4, 5.8),
    caption=(
        "The p-th root of each risk of a list, divided by the root of the first list"
        " with as many positives and negatives, whose scores are multiplied by the same"
        " factor (no factor changes the zero-one risk). Where a curve is below 1, the"
        " objective prefers its list."
    ),
    quick=True,
)

PAIR_CONTRIBUTIONS = StudyKind(
    compute="precbench.papers.rudin2009.lists:pair_shares",
    text=("objective", "positive", "negative"),
    numbers=(),
    tables=_pair_tables,
    draw=_draw_pairs,
    size=(6.4, 6.0),
    caption=(
        "Fraction of the objective due to each pair, with the exponential loss. Lighter"
        " is larger: black is 0, and white the largest fraction of each panel."
    ),
    quick=True,
)

DISCOUNT_FACTORS = StudyKind(
    compute="precbench.papers.rudin2009.lists:discount_factors",
    text=("curve",),
    numbers=("z",),
    # of no curve
    tables=tabulate(["curve"], rows=lambda values: values[values["z"].isna()]),
    draw=partial(_draw_curves, x="z", ylabel="discounting factor"),
    size=(6.4, 3.6),
    caption=(
        "Weight of a positive example at rank z, for the IR push at reverse height z."
    ),
    quick=True,
)

LEMMA_7 = StudyKind(
    compute="precbench.papers.rudin2009.lists:lemma_7",
    text=("curve",),
    numbers=("b",),
    # of no curve
    tables=tabulate(["curve"], rows=lambda values: values[values["b"].isna()]),
    draw=_draw_lemma,
    size=(6.4, 3.6),
    caption=(
        "a = {a}, p = {p}. Grey: where the first term of the minimum is the smaller"
        " one."
    ),
    quick=True,
)

ONE_DIMENSIONAL = StudyKind(
    compute="precbench.papers.rudin2009.lists:one_dimensional",
    text=("part", "function", "quantity"),
    numbers=(),
    tables=tabulate(
        ["part", "function", "quantity"],
        "I is the number of positives; measures of training sets are means.",
    ),
    draw=in_panels(
        x="function",
        panel="quantity",
        curve="part",
        dashes={"R_max / I": "", "AUC": ""},
        log=(),
    ),
    size=(8.4, 3.2),
    caption=(
        "A share ε = {epsilon} of the distribution, outside of [-1, 1], decides which"
        " of an increasing and a decreasing function has the smaller R_max: means of"
        " training sets of m = {m} rows, of those that miss the share, and of the test"
        " set; I is the number of positives."
    ),
    quick=True,
)

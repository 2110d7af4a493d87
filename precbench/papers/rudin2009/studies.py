"""The studies of rudin2009."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from precbench.metrics import Metric
from precbench.report.panels import draw_beside, side_by_side
from precbench.report.study import value_table
from precbench.report.style import Style, solver_styles
from precbench.report.table import Cell, Table, text_table
from precbench.studies import STUDIES, Result, StudyKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


_TEX = {
    "1/ln(1+z)": r"$1/\ln(1+z)$, of the DCG",
    "1/z": r"$1/z$, of the average reciprocal rank",
    "-ln(1+z)": r"$-\ln(1+z)$, of the IR push",
    "|a^(1/p) - b^(1/p)|": r"$|a^{1/p}-b^{1/p}|$",
    "min(|a - b| a^(1/p - 1), |a - b|^(1/p))": r"$\min(|a-b|\,a^{1/p-1},\ |a-b|^{1/p})$",
    "|a - b|^(1/p)": r"$|a-b|^{1/p}$",
}


# Ranked lists


def _comparable(result: Result) -> list[list[str]]:
    groups: dict[Any, list[str]] = {}
    for name, ranked in result.parameters["lists"].items():
        groups.setdefault(tuple(sorted(Counter(ranked["labels"]).items())), []).append(name)
    return list(groups.values())


def _measures(result: Result) -> dict[str, Metric]:
    metrics = [
        Metric(*next(iter(entry.items()))) if isinstance(entry, dict) else Metric(entry, {})
        for entry in result.parameters["measures"]
    ]
    return {metric.label: metric for metric in metrics}


def _ranked_tables(result: Result) -> Iterator[Table]:
    for scale, of_scale in result.values.groupby("scale", sort=False):
        for lists in _comparable(result):
            rows = of_scale[of_scale["list"].isin(lists)]
            wide = rows.pivot(index="measure", columns="list", values="value")[lists]
            yield Table(
                title=f"{result.title}: {', '.join(lists)}, {_scaled(scale)}",
                header=["", *lists],
                rows=[
                    _ranked_row(metric, wide.T[label].tolist())
                    for label, metric in _measures(result).items()
                ],
                notes=["Bold: the list that the measure prefers."],
            )


def _ranked_row(metric: Metric, values: list[float]) -> list[Cell]:
    best = min(values) if metric.smaller_is_better else max(values)
    bold = [value == best and len(set(values)) > 1 for value in values]
    cells = [Cell(f"{value:,.7g}", chosen) for value, chosen in zip(values, bold, strict=True)]
    return [Cell(metric.written), *cells]


def _draw_ranked(figure: "SubFigure", result: Result) -> None:
    groups = [group for group in _comparable(result) if len(group) > 1]
    table = _with_powers(result)
    if table.empty or not groups:
        figure.text(0.5, 0.5, "No two lists to compare by a risk with a power p.", ha="center")
        return
    losses, scales = (list(dict.fromkeys(table[column])) for column in ("loss", "scale"))
    curves = [f"{other}, {loss}" for _, *others in groups for other in others for loss in losses]
    looks, lines = solver_styles(curves), {}
    panels = figure.subplots(len(scales), len(groups), sharex=True, sharey="col", squeeze=False)
    for row, scale in zip(panels, scales, strict=True):
        for axes, (first, *others) in zip(row, groups, strict=True):
            for other, loss in itertools.product(others, losses):
                rows = table[(table["scale"] == scale) & (table["loss"] == loss)]
                norms = rows.pivot(index="p", columns="list", values="norm")
                name = f"{other}, {loss}"
                look: dict[str, Any] = looks[name]._asdict()
                [lines[name]] = axes.plot(norms[other] / norms[first], **look)
            axes.axhline(1, color="black", linewidth=0.8, zorder=1)
            axes.set(title=_scaled(scale), ylabel=f"multiple of the risk of {first}")
    for axes in panels[-1]:
        axes.set_xlabel("p")
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=3)


def _scaled(scale: Any) -> str:
    return "scores as given" if scale == 1 else f"scores multiplied by {scale:g}"


def _with_powers(result: Result) -> pd.DataFrame:
    """Return the risks R with a power p, with their ``loss``, ``p`` and ``norm``, R^(1/p)."""
    risks = [
        (label, float(metric.params["p"]), metric.params.get("loss", "zero-one"))
        for label, metric in _measures(result).items()
        if metric.name == "pnorm_risk" and not metric.params.get("log")
    ]
    table = result.values.merge(pd.DataFrame(risks, columns=["measure", "p", "loss"]))
    return table.assign(norm=table["value"] ** (1 / table["p"]))


# Contributions of pairs


def _pair_tables(result: Result) -> Iterator[Table]:
    for side, other in (("negative", "positive"), ("positive", "negative")):
        sums = result.values[result.values[other] == "all"]
        yield text_table(
            f"{result.title}: fraction of each {side}",
            ["", *dict.fromkeys(sums[side])],
            [
                (str(name), *rows["value"].map("{:.1%}".format))
                for name, rows in sums.groupby("objective", sort=False)
            ],
            f"Columns: the rank of the {side} among the {side}s; 1 has the highest score.",
        )


def _draw_pairs(figure: "SubFigure", result: Result) -> None:
    pairs = result.values[~(result.values[["positive", "negative"]] == "all").any(axis=1)]
    pairs = pairs.astype({"positive": int, "negative": int})
    names = list(dict.fromkeys(pairs["objective"]))
    panels = figure.subplots(-(-len(names) // 3), 3, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.remove()
    for axes, name in zip(panels.flat, names, strict=False):
        rows = pairs[pairs["objective"] == name]
        shares = rows.pivot(index="positive", columns="negative", values="value")
        largest = rows["value"].max()
        extent = (0.5, shares.shape[1] + 0.5, 0.5, shares.shape[0] + 0.5)
        axes.imshow(
            shares, cmap="gray", vmin=0, vmax=largest, origin="lower", extent=extent, aspect="equal"
        )
        title = "IR push" if name == "IR" else name.replace("=", " = ")
        axes.set_title(f"{title} (white: {largest:.1%})")
        axes.set(xticks=shares.columns, yticks=shares.index)
        axes.grid(False)
    for axes in panels[-1]:
        axes.set_xlabel("negative (1: highest score)")
    for axes in panels[:, 0]:
        axes.set_ylabel("positive (1: highest score)")


# Curves


def _curve_tables(result: Result) -> Iterator[Table]:
    [x] = STUDIES[result.kind].numbers
    yield value_table(result, result.values[result.values[x].isna()], ["curve"])


def _draw_curves(figure: "SubFigure", result: Result, x: str, y: str) -> None:
    axes = figure.add_subplot()
    table = result.values.dropna(subset=x)
    looks = solver_styles(["perceptron-avg", "perceptron-max", "sgd-avg"])
    for (name, rows), look in zip(table.groupby("curve", sort=False), looks.values(), strict=True):
        axes.plot(
            rows[x],
            rows["value"],
            color=look.color,
            linestyle=look.linestyle,
            label=_TEX[str(name)],
        )
    axes.set(xlabel=x, ylabel=y)
    axes.margins(x=0)
    axes.legend()


def _draw_lemma(figure: "SubFigure", result: Result) -> None:
    _draw_curves(figure, result, "b", "difference of roots and its bounds")
    [axes] = figure.axes
    axes.axvspan(0, min(2 * result.parameters["a"], 1), color="0.94", linewidth=0, zorder=0)
    axes.set_ylim(bottom=0)


# One dimension

_COLOURS = solver_styles(["positives", "negatives", "increasing", "decreasing"])


def _draw_one_dimensional(figure: "SubFigure", result: Result) -> None:
    left, middle, right = figure.subplots(1, 3, width_ratios=[4, 3, 4])
    value = result.values.set_index(["part", "function", "quantity"])["value"]
    _draw_distribution(left, value["distribution"][""])
    _draw_choices(middle, value["training sets"])
    _draw_measures(right, value)


def _draw_distribution(axes: "Axes", masses: pd.Series) -> None:
    for start, (label, mass) in zip((-2, -1, 0, 1), masses.items(), strict=True):
        sign = str(label).partition(" ")[0]
        axes.bar(
            start,
            mass,
            1,
            align="edge",
            color=_COLOURS[sign].color,
            label=sign if start < 0 else "",
        )
        axes.text(start + 0.5, mass * 1.1, f"{100 * mass:.3g} %", ha="center", fontsize=8)
    axes.set(yscale="log", ylim=(masses.min() / 10, masses.max() * 10), xticks=range(-2, 3))
    axes.set(xlabel="x", ylabel="density (log scale)", title="distribution")
    axes.legend(loc="upper center", ncols=2, handlelength=1)


def _draw_choices(axes: "Axes", values: pd.Series) -> None:
    bars = {
        "(1 − ε)$^m$": values["", "(1 - epsilon)^m"],
        "miss ε": values["", "share that miss epsilon"],
        "choose\nincreasing": values["increasing", "share that choose it"],
    }
    drawn = axes.bar(list(bars), list(bars.values()), color="0.75")
    axes.bar_label(drawn, fmt="%.3f", fontsize=8)
    axes.set(ylim=(0, 1.1), title="fraction of the training sets")
    axes.grid(axis="x", visible=False)


def _draw_measures(axes: "Axes", value: pd.Series) -> None:
    parts = {"train": "training sets that miss epsilon", "test": "test set"}
    names = ["R_max / I", "AUC"]
    for i, function in enumerate(("increasing", "decreasing")):
        heights = [value[part, function, name] for name in names for part in parts.values()]
        drawn = draw_beside(axes, i, heights, _COLOURS[function].color, function)
        axes.bar_label(drawn, fmt="%.2g", fontsize=8)
    ticks = [f"{name}\n{part}" for name in ("$R_{\\max}/I$", "AUC") for part in parts]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set(ylim=(0, 1.3), title="both functions")
    axes.legend(loc="upper center", ncols=2, handlelength=1)
    axes.grid(axis="x", visible=False)


# Variants of the push

_PUSH_MEASURES = ("top, R^(1/p)", "bottom, R^(1/p)", "AUC", "crucial pairs", "other pairs")


def _tables_of_fits(result: Result, what: str, note: str) -> Iterator[Table]:
    for (dataset, part), rows in result.values.groupby(["dataset", "rows"], sort=False):
        fits, measures = (list(dict.fromkeys(rows[column])) for column in ("fit", "measure"))
        wide = rows.pivot(index="fit", columns=["measure", "statistic"], values="value")
        yield text_table(
            f"{result.title}: {dataset}, {part} rows",
            [what, *measures],
            [(fit, *(_mean(wide[measure].loc[fit]) for measure in measures)) for fit in fits],
            "Means over the training sets ± standard errors of these draws, which share rows: on "
            f"new rows they would be larger. {note}",
        )


def _mean(values: pd.Series) -> str:
    mean, error = values["mean"], values["standard error"]
    return f"{mean:.3g} ± {error:.1g}" if mean == mean else ""


def _draw_test_means(
    figure: "SubFigure", result: Result, measures: Sequence[str], n_panels: int, **ticks: float
) -> Iterator[tuple["Axes", pd.Series, dict[str, Style]]]:
    """Draw a row of panels for each data set; yield the last panel, its means and the looks."""
    means = result.values[result.values["statistic"] == "mean"]
    datasets = list(dict.fromkeys(means["dataset"]))
    looks = solver_styles(list(dict.fromkeys(means["fit"])))
    grid = figure.subplots(len(datasets), n_panels, squeeze=False)
    for panels, dataset in zip(grid, datasets, strict=True):
        rows = means[means["dataset"] == dataset].set_index(["rows", "measure", "fit"])["value"]
        for axes, measure in zip(panels, measures, strict=False):
            test = rows["test"][measure]
            axes.bar(test.index, test, color=[looks[fit].color for fit in test.index])
            axes.set_title(f"{measure.replace('R^(1/p)', '$R^{1/p}$')}, test", fontsize=8)
        for axes in panels:
            axes.tick_params(axis="x", **ticks)
            axes.grid(axis="x", visible=False)
        panels[0].set_ylabel(dataset)
        yield panels[-1], rows, looks


def _draw_pushes(figure: "SubFigure", result: Result) -> None:
    drawn = _draw_test_means(figure, result, _PUSH_MEASURES[:3], 4, labelsize=7, rotation=20)
    for axes, rows, looks in drawn:
        pairs = rows["training"][list(_PUSH_MEASURES[3:])].unstack("fit")
        for i, (fit, shares) in enumerate(pairs.items()):
            draw_beside(axes, i, shares, looks[str(fit)].color, fit)
        axes.set_xticks(range(len(pairs)), pairs.index)
        axes.set_ylim(0, 1)
        axes.set_title("ranked correctly, training", fontsize=8)


# Theorems


def _theorem_tables(result: Result) -> Iterator[Table]:
    table = result.values[result.values["statement"] != ""]
    facts = table[table["size"].isna()]
    facts = facts.assign(p=facts["p"].map(_power))
    yield value_table(result, facts, ["statement", "p", "quantity"])
    for statement, rows in table.dropna(subset="size").groupby("statement", sort=False):
        wide = rows.pivot(index=["p", "size"], columns="quantity", values="value")
        wide = wide[["measured", "bound"]]
        yield text_table(
            f"{result.title}: {statement}",
            ["p", "I = K", *wide],
            [
                (_power(p), f"{n:,.0f}", *map("{:.3g}".format, values))
                for (p, n), *values in wide.itertuples(name=None)
            ],
            "Deviations that are exceeded with probability 0.05; a bound above 1 is vacuous.",
        )


def _power(p: float) -> str:
    return f"{p:g}" if p == p else ""


def _draw_theorems(figure: "SubFigure", result: Result) -> None:
    table = result.values.dropna(subset="size")
    looks = solver_styles([_power(p) for p in result.parameters["powers"]])
    for axes, statement, of_one in side_by_side(figure, table, "statement", sharey=True):
        for p, rows in of_one.groupby("p", sort=False):
            look = looks[_power(float(str(p)))]
            for quantity, dashes in (("measured", "-"), ("bound", "--")):
                curve = rows[(rows["quantity"] == quantity) & (rows["value"] > 0)]
                label = f"p = {p:g}" if quantity == "measured" else None
                marker = look.marker if quantity == "measured" else ""
                axes.plot(
                    curve["size"],
                    curve["value"],
                    linestyle=dashes,
                    marker=marker,
                    color=look.color,
                    label=label,
                )
        axes.axhline(1, color="0.6", linewidth=0.8)
        axes.set(title=statement, xscale="log", yscale="log", xlabel="I = K")
    figure.axes[0].set_ylabel("deviation")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _draw_objectives(figure: "SubFigure", result: Result) -> None:
    measures = list(dict.fromkeys(result.values["measure"]))
    list(_draw_test_means(figure, result, measures, len(measures), labelsize=6, rotation=60))


PUSH_THEOREMS = StudyKind(
    compute="precbench.papers.rudin2009.theorems:push_theorems",
    text=("statement", "quantity"),
    numbers=("p", "size"),
    tables=_theorem_tables,
    draw=_draw_theorems,
    size=(8.4, 3.2),
    caption="Deviations that are exceeded with probability 0.05 over {draws} training sets, of "
    "a class of {rankers} functions (Lemma 9: of one); dots and lines: measured (no dot where "
    "it is 0), dashed: the bounds. Grey: 1, which no deviation exceeds.",
)

PUSH_OBJECTIVES = StudyKind(
    compute="precbench.papers.rudin2009.theorems:push_objectives",
    text=("dataset", "fit", "rows", "measure", "statistic"),
    numbers=(),
    tables=partial(_tables_of_fits, what="minimised", note="Risks are shares."),
    draw=_draw_objectives,
    size=(10.0, 4.6),
    caption="Means over {repetitions} training sets of {rows} rows, on the other rows. Risks "
    "are norms of the heights as shares of the positives; smaller is better, except for the AUC.",
)

PUSH_VARIANTS = StudyKind(
    compute="precbench.papers.rudin2009.lists:push_variants",
    text=("dataset", "fit", "rows", "measure", "statistic"),
    numbers=(),
    tables=partial(
        _tables_of_fits,
        what="push",
        note="R^(1/p) is the p-norm of the heights; of the crucial and the other pairs the share "
        "ranked correctly.",
    ),
    draw=_draw_pushes,
    size=(10.0, 3.0),
    caption="Means over {repetitions} training sets of {rows} rows, p = {p}. Left: the p-norm "
    "of the heights of the negatives, which the push at the top minimises; then that of the "
    "positives, which the push at the bottom minimises; smaller is better. Right: the crucial "
    "pairs are those of the {crucial} positives that the push at the top ranks lowest.",
)

RANKED_LISTS = StudyKind(
    compute="precbench.papers.rudin2009.lists:ranked_lists",
    text=("list", "measure"),
    numbers=("scale",),
    tables=_ranked_tables,
    draw=_draw_ranked,
    size=(6.4, 5.8),
    caption="The p-th root of each risk of a list, divided by that of the first list with as "
    "many positives and negatives, whose scores are multiplied by the same factor (no factor "
    "changes the zero-one risk). Where a curve is below 1, the objective prefers its list.",
    quick=True,
)

PAIR_CONTRIBUTIONS = StudyKind(
    compute="precbench.papers.rudin2009.lists:pair_shares",
    text=("objective", "positive", "negative"),
    numbers=(),
    tables=_pair_tables,
    draw=_draw_pairs,
    size=(6.4, 6.0),
    caption="Fraction of the objective due to each pair, with the exponential loss. Lighter is "
    "larger: black is 0, and white the largest fraction of each panel.",
    quick=True,
)

DISCOUNT_FACTORS = StudyKind(
    compute="precbench.papers.rudin2009.lists:discount_factors",
    text=("curve",),
    numbers=("z",),
    tables=_curve_tables,
    draw=partial(_draw_curves, x="z", y="discounting factor"),
    size=(6.4, 3.6),
    caption="Weight of a positive example at rank z, for the IR push at reverse height z.",
    quick=True,
)

LEMMA_7 = StudyKind(
    compute="precbench.papers.rudin2009.lists:lemma_7",
    text=("curve",),
    numbers=("b",),
    tables=_curve_tables,
    draw=_draw_lemma,
    size=(6.4, 3.6),
    caption="a = {a}, p = {p}. Grey: where the first term of the minimum is the smaller one.",
    quick=True,
)

ONE_DIMENSIONAL = StudyKind(
    compute="precbench.papers.rudin2009.lists:one_dimensional",
    text=("part", "function", "quantity"),
    numbers=(),
    tables=lambda result: [
        value_table(
            result,
            result.values,
            ["part", "function", "quantity"],
            "I is the number of positives; measures of training sets are means.",
        )
    ],
    draw=_draw_one_dimensional,
    size=(8.4, 3.2),
    caption="A share ε = {epsilon} of the distribution, outside of [-1, 1], decides which of "
    "an increasing and a decreasing function has the smaller R_max. Middle: training sets of m "
    "= {m} rows that miss it, and that choose the increasing function. Right: training sets "
    "that miss it, and the test set; I is the number of positives.",
    quick=True,
)

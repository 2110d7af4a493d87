"""The studies of gultekin."""

from collections.abc import Iterator

import pandas as pd

from precbench.core.studies import Result, StudyKind, SubFigure
from precbench.report.panels import draw_panels
from precbench.report.study_tables import tabulate, value_table
from precbench.report.style import log_scale
from precbench.report.table import Table

_METHODS = {
    "bbr": "BBR",
    "bbr-pairs": "BBR, loop over all pairs",
    "lcbr": "LCBR",
    "optimum": "the optimum of the risk",
    "likelihood-ratio": "the likelihood ratio",
}
_MEASURES = {"risk": "risk", "auc": "AUC", "seconds": "CPU seconds"}


def _mixture_tables(result: Result) -> Iterator[Table]:
    """Yield a table for each part of the figure."""
    keys = ["part", "method", "pairs", "share", "measure", "statistic"]
    note = "Columns: K, the components."
    for _, part in result.values.groupby("part", sort=False):
        yield value_table(result, part, keys, note, across="components")


def _draw_mixtures(figure: SubFigure, result: Result) -> None:
    """Draw Figure 1: risk, AUC and seconds by pairs, then AUC by share of positives."""
    # "least" is the statistic of seconds.
    shown = result.values[result.values["statistic"].isin(["mean", "least"])]
    # A fit on one pair is only timed.
    by_pairs = shown[(shown["part"] == "pairs") & (shown["pairs"] != 1)]
    # A method without a number of pairs is a horizontal line from the fewest to the
    # most pairs.
    constant = by_pairs[by_pairs["pairs"].isna()]
    ends = [constant.assign(pairs=end) for end in by_pairs["pairs"].agg(["min", "max"])]
    by_pairs = pd.concat([by_pairs.dropna(subset="pairs"), *ends])
    parts = []
    for measure, title in _MEASURES.items():
        parts.append(by_pairs[by_pairs["measure"] == measure].assign(panel=title))
    # The last panel has the share of positives on its axis, in place of the pairs.
    skewed = shown[shown["part"] == "skew"]
    title = "AUC by fraction of positives"
    parts.append(skewed.assign(pairs=skewed["share"], panel=title))
    table = pd.concat(parts)
    table["panel"] += table["components"].map(", K = {:.0f}".format)
    table["curve"] = table["method"].map(_METHODS)
    table["quantity"] = "mean"  # all lines are solid
    panels = draw_panels(
        figure,
        table,
        x="pairs",
        panel="panel",
        curve="curve",
        dashes={"mean": "-"},
        n_columns=3,
        log=(),
        xlabel="S (pairs), ρ (fraction of positives)",
    )
    for axes in panels:
        if "seconds" in axes.get_title():
            log_scale(axes, "y")


def _draw_bounds(figure: SubFigure, result: Result) -> None:
    """Draw deviations of all statements and probabilities of two, with their bounds."""
    table = result.values[result.values["statement"] != "w = 0"]
    # Deviations are drawn by pairs, of the most rows only, or by rows where there are
    # no pairs; probabilities by epsilon, of the most pairs only.
    x = table["epsilon"].fillna(table["pairs"]).fillna(table["rows"])
    has_most_rows = table["rows"] == table["rows"].max()
    has_most_pairs = table["pairs"] == table["pairs"].max()
    is_deviation = table["what"] == "deviation"
    is_deviation &= table["pairs"].isna() | has_most_rows
    is_curve = table["what"] == "probability"
    is_curve &= table["statement"].isin(["Theorem 2", "Lemma 2 (ii), coins"])
    is_curve &= has_most_pairs
    prefix = table["epsilon"].isna().map({True: "", False: "probability, "})
    table = table.assign(x=x, panel=prefix + table["statement"])
    table = table[is_deviation | is_curve]
    draw_panels(
        figure,
        table,
        x="x",
        panel="panel",
        curve="quantity",
        xlabel="N, S, or ε of probabilities",
        dashes={"measured": "-", "re-derived": "--", "printed": ":"},
    )


GAUSSIAN_MIXTURES = StudyKind(
    compute="precbench.papers.gultekin.gaussians:gaussian_mixtures",
    text=("part", "method", "measure", "statistic"),
    numbers=("components", "pairs", "share"),
    tables=_mixture_tables,
    draw=_draw_mixtures,
    size=(8.4, 9.0),
    caption=(
        "Mixtures of K Gaussians in {features} dimensions. Means over {repetitions}"
        " experiments, each with a new mixture, {rows} rows and new pairs; risk (with"
        " its 1/2) and AUC are those of the distribution. BBR takes all pairs, and its"
        " seconds are those of its moments where no loop is named; seconds are the"
        " least of the experiments, from the first call of the trace. By the pairs of"
        " LCBR; last panel: {skewed_pairs} pairs."
    ),
)

PAIR_BOUNDS = StudyKind(
    compute="precbench.papers.gultekin.lemmas:pair_bounds",
    text=("what", "statement", "quantity"),
    numbers=("rows", "pairs", "epsilon"),
    tables=tabulate(
        ["what", "statement", "rows", "pairs", "epsilon"],
        "Deviations that are exceeded with the probability delta, probabilities that a"
        " deviation reaches epsilon, and their bounds. Largest ratio: of a probability"
        " to its bound.",
        across="quantity",
    ),
    draw=_draw_bounds,
    size=(10.0, 5.2),
    caption=(
        "Deviations that are exceeded with probability {delta}, over {draws} draws, and"
        " their bounds by lemmas and theorems; with S pairs, of the largest sample."
        " Last two panels: the probability that a deviation reaches ε, in the last one"
        " exact, for a sample on a line with half of each class at 1 and half at -1."
        " Balls of radius W = {radius}, {features} features."
    ),
)

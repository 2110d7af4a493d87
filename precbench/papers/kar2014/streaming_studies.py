"""The studies of kar2014."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from precbench.core.studies import Result, StudyKind, SubFigure
from precbench.report.panels import draw_panels, in_panels
from precbench.report.study_tables import tabulate, value_table
from precbench.report.table import Table


def _regret_tables(result: Result) -> Iterator[Table]:
    """Yield the regret on streams, then the ratios of Lemmas 2, 10 and 12."""
    has_stream = result.values["horizon"].notna()
    note = (
        "At most: an upper bound, by the certified gaps. w = 0: the regret of always"
        " playing 0. Constant: the regret, at most, divided by the rate."
    )
    keys = ["dataset", "objective", "rows", "horizon"]
    yield value_table(result, result.values[has_stream], keys, note, across="quantity")
    ratios = result.values[~has_stream]
    yield value_table(
        result, ratios, ["quantity"], "Multiples of the distance of two weights."
    )


def _draw_by_objective(figure: SubFigure, result: Result, **options: Any) -> None:
    """Draw a panel for each objective, a row of panels for each data set."""
    table = result.values[result.values["dataset"] != ""]  # without Lemmas 2, 10 and 12
    named = table.assign(panel=table["dataset"] + ", " + table["objective"])
    draw_panels(
        figure, named, panel="panel", n_columns=table["objective"].nunique(), **options
    )


def _by_dataset_and_objective(values: pd.DataFrame) -> pd.DataFrame:
    return values.assign(curve=values["dataset"] + ", " + values["objective"])


ERROR_BOUNDS = StudyKind(
    compute="precbench.papers.kar2014.theory:error_bounds",
    text=("theorem", "dataset", "objective", "quantity"),
    numbers=("size",),
    tables=tabulate(
        ["theorem", "dataset", "objective", "size"],
        "Excess: the risk less that of the best w, in Theorem 4 also less the regret;"
        " its 95 % quantile. Bound: with the constant 1 where it is open. w = 0: the"
        " excess of w = 0.",
        across="quantity",
    ),
    draw=in_panels(
        _by_dataset_and_objective,
        x="size",
        panel="theorem",
        curve="curve",
        dashes={"excess": "-", "bound": "--"},
        log=("x",),
        xlabel="T (rows of the stream), s (rows of a buffer)",
        ylabel="excess",
    ),
    size=(8.4, 4.6),
    caption=(
        "Excess over the best w of a ball of radius {radius}; dashed: the bounds, with"
        " the constant 1 where it is open. Left: of the mean w of follow the"
        " regularised leader on streams of T rows, less the regret; right: of one pass"
        " of 1PMB over {rows} rows with buffers of s."
    ),
)

REGRET = StudyKind(
    compute="precbench.papers.kar2014.theory:regret",
    text=("dataset", "objective", "rows", "quantity"),
    numbers=("horizon",),
    tables=_regret_tables,
    draw=partial(
        _draw_by_objective,
        x="horizon",
        curve="rows",
        xlabel="T (rows)",
        ylabel="regret",
        dashes={"regret, at most": "-", "bound": "--", "w = 0": ":"},
    ),
    size=(7.6, 6.4),
    caption=(
        "Regret of follow the regularised leader in a ball of radius {radius}, an upper"
        " bound by the certified gaps; dashed: the bound of Theorem 1; dotted: the"
        " regret of w = 0, which learns nothing. Each T is a run of its own. Prec@k"
        " takes the share {top} of the rows, pAUC the share {beta} of the negatives."
    ),
)

UNIFORM_CONVERGENCE = StudyKind(
    compute="precbench.papers.kar2014.theory:uniform_convergence",
    text=("dataset", "objective", "quantity"),
    numbers=("size",),
    tables=tabulate(
        ["dataset", "objective", "size"],
        "Deviation: the 95 % quantile over samples of the largest over all w.",
        across="quantity",
    ),
    draw=partial(
        _draw_by_objective,
        x="size",
        curve="quantity",
        dashes={"deviation": "-", "rate": "--"},
        xlabel="s (rows of the sample)",
        ylabel="deviation",
    ),
    size=(7.6, 6.4),
    caption=(
        "Largest deviation of the surrogate on a sample from that on all rows, over"
        " {weights} weights in a ball of radius {radius}: the 95 % quantile over"
        " {samples} samples. Dashed: sqrt(log(1/δ) / s), the rate without its constant."
        " Prec@k takes the share {top} of the rows, pAUC the share {beta} of the"
        " negatives."
    ),
)

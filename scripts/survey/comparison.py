"""Figures that compare methods over many data sets.

Mean ranks with groups, and profiles.

Each is written as PDF, PNG and SVG, with its numbers as CSV.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from precbench.core.errors import InputError
from precbench.ranking.statistics import LEVEL, mean_ranks
from precbench.report.sheet import Sheet
from precbench.report.style import Style, solver_styles
from scripts.survey.over_data_sets import (
    cliques,
    friedman_test,
    pairwise_signed_rank,
    performance_profile,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

__all__ = ["Ranking", "rank", "write_profiles", "write_ranks"]

_WIDTH = 6.4  # inches, as all lengths
_AXIS = 3.2  # the x axis at least
_PROFILE = 3.4
_ENTRY = 0.17  # of a legend
_LEGEND = 1.2  # its lines and margins
_LABEL = 0.18  # from one label to the next
_BAR = 0.12
_LETTER = 0.066
_GAP = 0.08
_TICKS = 12
_DENSE = 12  # steps; with more, only some have a marker
_NEAR = 0.01  # up to this distance from the best value the axis is linear


class Ranking(NamedTuple):
    """Methods compared over data sets, the best mean rank first."""

    ranks: pd.Series
    groups: list[tuple[str, ...]]
    p: pd.DataFrame
    friedman: float
    n_datasets: int


def rank(values: pd.DataFrame) -> Ranking:
    """Rank methods over data sets, and group those statistically indistinguishable."""
    lacking = ~np.isfinite(values.to_numpy(dtype=float))
    if lacking.any():
        row, column = np.argwhere(lacking)[0]
        raise InputError(
            f"{values.columns[column]} has no value on {values.index[row]}: ranks need"
            " all methods on every data set, so leave the one or the other out"
        )
    ranks, p = mean_ranks(values), pairwise_signed_rank(values)
    groups = [tuple(values.columns[list(group)]) for group in cliques(ranks, p)]
    order = np.argsort(ranks, kind="stable")
    names = values.columns[order]
    return Ranking(
        ranks=pd.Series(ranks[order], index=names, name="mean_rank"),
        groups=groups,
        p=pd.DataFrame(p[np.ix_(order, order)], index=names, columns=names),
        friedman=friedman_test(values),
        n_datasets=len(values),
    )


def write_ranks(
    values: pd.DataFrame, stem: Path, title: str, caption: str = ""
) -> list[Path]:
    """Draw a critical-difference diagram.

    Mean ranks, with indistinguishable methods joined.

    Of `values`, a row for each data set and a column for each method, larger is better.
    Writes a CSV, a PDF, a PNG and an SVG. After Demsar 2006, Section 3.2.4, with tests
    of pairs in place of one critical difference.
    """
    ranking = rank(values)
    groups_of = []
    for method in ranking.ranks.index:
        numbers = [i for i, group in enumerate(ranking.groups, 1) if method in group]
        groups_of.append(" ".join(map(str, numbers)))
    table = ranking.ranks.to_frame().assign(groups=groups_of)
    table = table.join(ranking.p.add_prefix("p, "))
    tests = (
        f"Mean ranks over {ranking.n_datasets} data sets, 1 is the best (Friedman, in"
        f" the form of Iman and Davenport: p = {ranking.friedman:.2g}). Each bar joins"
        " methods, marked by dots, that are statistically indistinguishable"
        f" (Wilcoxon's signed-rank tests with Holm's correction, {100 * LEVEL:g} %)."
    )
    styles = solver_styles(list(values.columns))
    draw, width, height = _diagram(ranking, styles)
    sheet = Sheet(title, draw, width, height, caption=[f"{caption} {tests}"])
    return sheet.save(stem, table.rename_axis("solver").reset_index())


def _diagram(
    ranking: Ranking, styles: Mapping[str, Style]
) -> tuple[Callable[["SubFigure"], None], float, float]:
    """Lay out a diagram in inches from its upper left corner.

    Return its width and height, too.
    """
    ranks = ranking.ranks
    k = len(ranks)
    left = math.ceil(k / 2)  # labels at the left
    sides = [list(ranks.index[:left]), list(ranks.index[: left - 1 : -1])]
    longest = [max(map(len, side)) for side in sides]
    start = _LETTER * longest[0] + 4 * _GAP
    end = _LETTER * longest[1] + 4 * _GAP
    width = max(_WIDTH, start + _AXIS + end)
    axis = 0.3
    below = axis + _BAR * (len(ranking.groups) + 1)
    height = below + _LABEL * left + _GAP

    def place(mean_rank: float) -> float:
        return start + (width - end - start) * (mean_rank - 1) / (k - 1)

    def draw(figure: "SubFigure") -> None:
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        axes.plot([place(1), place(k)], [axis, axis], color="black", linewidth=1)
        for tick in range(1, k + 1, math.ceil(k / _TICKS)):
            x = place(tick)
            axes.plot([x, x], [axis - 0.05, axis], color="black", linewidth=1)
            axes.text(x, axis - 0.08, str(tick), ha="center", va="bottom", fontsize=8)
        for side, edge, align in zip(
            sides, (start, width - end), ("right", "left"), strict=True
        ):
            for i, method in enumerate(side):
                _draw_method(
                    axes,
                    method,
                    styles[method],
                    x=place(ranks[method]),
                    axis=axis,
                    y=below + _LABEL * (i + 0.5),
                    edge=edge,
                    align=align,
                )
        for i, group in enumerate(ranking.groups):
            _draw_group(axes, [place(ranks[m]) for m in group], axis + _BAR * (i + 1))

    return draw, width, height


def _draw_method(
    axes: "Axes",
    method: str,
    style: Style,
    *,
    x: float,
    axis: float,
    y: float,
    edge: float,
    align: str,
) -> None:
    """Mark a mean rank on the axis, and lead a line from it to its name at an edge."""
    out = -_GAP if align == "right" else _GAP
    line = [x, x, edge + 2 * out], [axis, y, y]
    axes.plot(*line, color=style.color, linewidth=1)
    axes.plot([x], [axis], color=style.color, marker=style.marker, clip_on=False)
    axes.text(
        edge + 2.5 * out,
        y,
        method,
        ha=align,
        va="center",
        fontsize=8,
        parse_math=False,
    )


def _draw_group(axes: "Axes", xs: list[float], y: float) -> None:
    """Join methods that are indistinguishable by a bar, with a dot for each."""
    axes.plot(
        [xs[0], xs[-1]],
        [y, y],
        color="0.25",
        linewidth=2.5,
        solid_capstyle="round",
    )
    axes.plot(xs, [y] * len(xs), "o", color="0.25", markersize=4.5)


def write_profiles(
    values: pd.DataFrame,
    of: Literal["value", "time"],
    stem: Path,
    title: str,
    caption: str = "",
) -> list[Path]:
    """Draw the fraction of data sets on which methods are within tau of the best.

    Of `values`, a row for each data set and a column for each method, NaN where it has
    no result. Writes a CSV, a PDF, a PNG and an SVG.
    """
    tau, share = performance_profile(values, of)
    methods = list(values.columns)
    table = pd.DataFrame(
        {
            "solver": np.repeat(methods, len(tau)),
            "tau": np.tile(tau, len(methods)),
            "share": share.ravel(),
        }
    )
    styles = solver_styles(methods)
    shares = dict(zip(methods, share, strict=True))
    draw = partial(_draw_profiles, tau=tau, shares=shares, styles=styles, of=of)
    width = _AXIS + _LEGEND + _LETTER * max(map(len, methods))
    height = _ENTRY * len(methods) + 2 * _GAP
    text = f"{caption} Over {len(values)} data sets; a curve that lies above is better."
    sheet = Sheet(
        title, draw, max(_WIDTH, width), max(_PROFILE, height), caption=[text]
    )
    return sheet.save(stem, table)


def _draw_profiles(
    figure: "SubFigure",
    tau: np.ndarray,
    shares: Mapping[str, np.ndarray],
    styles: Mapping[str, Style],
    of: Literal["value", "time"],
) -> None:
    axes: Axes = figure.add_subplot()
    end = 1.1 * tau[-1] if tau[-1] > tau[0] else tau[0] + 1
    at = np.append(tau, end)
    lines: list[Any] = []
    for i, (method, share) in enumerate(shares.items()):
        lines += axes.plot(
            at,
            np.append(share, share[-1]),
            drawstyle="steps-post",
            markevery=(0.15 * i / len(shares), 0.15) if len(at) > _DENSE else None,
            **styles[method]._asdict(),
        )
    if of == "time":
        axes.set_xscale("log")
        axes.set_xlabel("τ (at most τ times the shortest, log scale)")
    else:
        axes.set_xscale("symlog", linthresh=_NEAR)
        ticks = [0, *(tick for tick in (_NEAR, 0.1, 1) if tick <= end)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlabel(f"τ (at most τ below the best, log scale above {_NEAR:g})")
    axes.set_xlim(tau[0], end)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("fraction of the data sets")
    legend = figure.legend(lines, [""] * len(lines), loc="outside right upper")
    for text, method in zip(legend.get_texts(), shares, strict=True):
        text.set_text(method)
        text.set_parse_math(False)

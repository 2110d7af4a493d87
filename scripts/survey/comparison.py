"""Figures that compare methods over many data sets: mean ranks, and profiles.

Each is written as PDF, PNG and SVG, with its numbers as CSV.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """Methods compared over data sets, the best mean rank first.

    Attributes
    ----------
    ranks : pandas.Series
        Mean ranks, by method.
    groups : list of tuple of str
        Methods that are statistically indistinguishable.
    p : pandas.DataFrame
        The p-value of each pair, adjusted for their number.
    friedman : float
        The p-value that all have the same mean rank.
    n_datasets : int
    """

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
    """Draw mean ranks on an axis, with indistinguishable methods joined by bars.

    `values` has a row for each data set and a column for each method, larger is better.
    Writes a CSV, a PDF, a PNG and an SVG. The diagram is that of Demsar 2006, Section
    3.2.4, with tests of pairs in place of one critical difference.
    """
    ranking = rank(values)
    groups = [_groups_of(method, ranking) for method in ranking.ranks.index]
    table = ranking.ranks.to_frame().assign(groups=groups)
    table = table.join(ranking.p.add_prefix("p, "))
    tests = (
        f"Mean ranks over {ranking.n_datasets} data sets, 1 is the best (Friedman, in"
        f" the form of Iman and Davenport: p = {ranking.friedman:.2g}). Each bar joins"
        " methods, marked by dots, that are statistically indistinguishable"
        f" (Wilcoxon's signed-rank tests with Holm's correction, {100 * LEVEL:g} %)."
    )
    styles = solver_styles(list(values.columns))
    layout = _lay_out(ranking)
    draw = partial(_draw_diagram, layout=layout, ranking=ranking, styles=styles)
    text = f"{caption} {tests}"
    sheet = Sheet(title, draw, layout.width, layout.height, caption=[text])
    return sheet.save(stem, table.rename_axis("solver").reset_index())


def _groups_of(method: str, ranking: Ranking) -> str:
    """Return the numbers of the groups that have a method, counted from 1."""
    groups = enumerate(ranking.groups, start=1)
    return " ".join(str(number) for number, group in groups if method in group)


@dataclass(frozen=True)
class _Layout:
    """Where the parts of a diagram are, in inches from its upper left corner.

    Attributes
    ----------
    left, right : sequence of str
        The methods whose names are at each side, from the top down.
    left_margin, right_margin : float
        Widths of the names, beside the axis.
    width, height : float
    axis : float
        How far the axis is from the top.
    names : float
        How far the first line of names is from the top.
    """

    left: Sequence[str]
    right: Sequence[str]
    left_margin: float
    right_margin: float
    width: float
    height: float
    axis: float
    names: float

    def x(self, mean_rank: float) -> float:
        """Return the place of a mean rank on the axis."""
        length = self.width - self.right_margin - self.left_margin
        n_methods = len(self.left) + len(self.right)
        return self.left_margin + length * (mean_rank - 1) / (n_methods - 1)


def _lay_out(ranking: Ranking) -> _Layout:
    """Give the better half of the methods a name at the left, the others at the right.

    The names at the right begin with the last method, so that no lines cross.
    """
    methods = list(ranking.ranks.index)
    n_left = math.ceil(len(methods) / 2)
    left = methods[:n_left]
    right = methods[n_left:][::-1]
    left_margin = _LETTER * max(map(len, left)) + 4 * _GAP
    right_margin = _LETTER * max(map(len, right)) + 4 * _GAP
    axis = 0.3
    names = axis + _BAR * (len(ranking.groups) + 1)
    return _Layout(
        left=left,
        right=right,
        left_margin=left_margin,
        right_margin=right_margin,
        width=max(_WIDTH, left_margin + _AXIS + right_margin),
        height=names + _LABEL * n_left + _GAP,
        axis=axis,
        names=names,
    )


def _draw_diagram(
    figure: "SubFigure", layout: _Layout, ranking: Ranking, styles: Mapping[str, Style]
) -> None:
    """Draw the axis with its ticks, the methods at both sides, and bars of groups."""
    n_methods = len(ranking.ranks)
    axis = layout.axis
    limits = {"xlim": (0, layout.width), "ylim": (layout.height, 0)}
    axes = figure.add_axes((0, 0, 1, 1), **limits)
    axes.axis("off")
    ends = [layout.x(1), layout.x(n_methods)]
    axes.plot(ends, [axis, axis], color="black", linewidth=1)
    for tick in range(1, n_methods + 1, math.ceil(n_methods / _TICKS)):
        x = layout.x(tick)
        axes.plot([x, x], [axis - 0.05, axis], color="black", linewidth=1)
        axes.text(x, axis - 0.08, str(tick), ha="center", va="bottom", fontsize=8)
    for i, method in enumerate(layout.left):
        _draw_method(
            axes,
            method,
            styles[method],
            x=layout.x(ranking.ranks[method]),
            axis=axis,
            y=layout.names + _LABEL * (i + 0.5),
            edge=layout.left_margin,
            align="right",
        )
    for i, method in enumerate(layout.right):
        _draw_method(
            axes,
            method,
            styles[method],
            x=layout.x(ranking.ranks[method]),
            axis=axis,
            y=layout.names + _LABEL * (i + 0.5),
            edge=layout.width - layout.right_margin,
            align="left",
        )
    for i, group in enumerate(ranking.groups, start=1):
        xs = [layout.x(ranking.ranks[method]) for method in group]
        _draw_group(axes, xs, axis + _BAR * i)


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
    outwards = -_GAP if align == "right" else _GAP
    axes.plot([x, x, edge + 2 * outwards], [axis, y, y], color=style.color, linewidth=1)
    axes.plot([x], [axis], color=style.color, marker=style.marker, clip_on=False)
    axes.text(
        edge + 2.5 * outwards,
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
    measure: Literal["value", "time"],
    stem: Path,
    title: str,
    caption: str = "",
) -> list[Path]:
    """Draw the fraction of data sets on which methods are within tau of the best.

    `values`, or times, have a row for each data set and a column for each method, NaN
    where it has no result. Writes a CSV, a PDF, a PNG and an SVG.
    """
    tau, share = performance_profile(values, measure)
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
    draw = partial(
        _draw_profiles, tau=tau, shares=shares, styles=styles, measure=measure
    )
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
    measure: Literal["value", "time"],
) -> None:
    """Draw each profile as steps; the last step goes on beyond the largest tau."""
    axes: Axes = figure.add_subplot()
    end = 1.1 * tau[-1] if tau[-1] > tau[0] else tau[0] + 1
    x = np.append(tau, end)
    lines: list[Any] = []
    for i, (method, share) in enumerate(shares.items()):
        # Markers of the methods are at different places, so that none hides another.
        first_marker = 0.15 * i / len(shares)
        lines += axes.plot(
            x,
            np.append(share, share[-1]),
            drawstyle="steps-post",
            markevery=(first_marker, 0.15) if len(x) > _DENSE else None,
            **styles[method]._asdict(),
        )
    if measure == "time":
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

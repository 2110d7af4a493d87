"""Whether stated probabilities hold at the top of held-out lists."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, model_validator

from precbench.core.strict_json import Count, Fields
from precbench.core.text import count
from precbench.model.calibration import Calibration
from precbench.ranking.statistics import binomial_interval, distinct_rows
from precbench.ranking.topk import HeldOut, sums_at
from precbench.report.sheet import Sheet

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

_MOST_BINS = 10
_LEAST_ROWS = 30  # different rows in a bin (chosen)
# Inches of the drawing.
_WIDTH = 4.0
_HEIGHT = 2.8

_Share = Annotated[float, Field(ge=0, le=1)]


class Bin(Fields):
    """Rows of the held-out lists, from rank `first` to rank `last` of each list.

    Attributes
    ----------
    first, last : int
        Ranks from 1, of a list of mean length.
    stated : float
        Mean of the probabilities that the curve of the other lists states.
    precision : float
        Share of hits.
    low, high : float
        Ends of the 95 % interval of `precision`.
    """

    first: Annotated[Count, Field(ge=1)]
    last: Count
    stated: _Share
    precision: _Share
    low: _Share
    high: _Share


class Reliability(Fields):
    """Stated probabilities beside the hits of held-out rows, by rank.

    Attributes
    ----------
    method : str
    splits : int
    rows : int
        Rows of a held-out list, on average.
    bins : list of Bin
        From the top down.
    """

    method: str
    splits: Count
    rows: Count
    bins: Annotated[list[Bin], Field(min_length=2)]

    @model_validator(mode="after")
    def _descends(self) -> Self:
        """Require bins of rows that follow each other from the first row."""
        next_row = 1
        for place, of_bin in enumerate(self.bins):
            if of_bin.first != next_row or of_bin.last < of_bin.first:
                raise ValueError(
                    f"bins.{place}: expected rows from {next_row}, found rows"
                    f" {of_bin.first} to {of_bin.last}"
                )
            if not of_bin.low <= of_bin.precision <= of_bin.high:
                raise ValueError(f"bins.{place}: precision is outside its interval")
            next_row = of_bin.last + 1
        return self

    @property
    def table(self) -> pd.DataFrame:
        """The bins, with a row for each."""
        return pd.DataFrame([of_bin.model_dump() for of_bin in self.bins])


def measure_reliability(
    lists: Sequence[HeldOut],
    rows: Sequence[NDArray[np.intp]],
    test_share: float,
    k: int,
    *,
    method: str = "",
) -> Reliability | None:
    """Compare the probabilities stated for held-out rows with the hits among them.

    The probabilities of a list are of a curve that knows nothing of it: the curve of
    the other lists without the rows that they share with this one. With these rows, the
    curve of random splits would have seen nearly all labels that it is tested on.

    Parameters
    ----------
    lists : sequence of HeldOut
    rows : sequence of ndarray
        Row numbers of each list in the file.
    test_share : float
        Share of the rows in a held-out list.
    k : int
        Rows at the top of a held-out list. Bins have so many rows, or more where so few
        say little.
    method : str

    Returns
    -------
    Reliability or None
        None if a single list, or too few rows, leave nothing to compare.
    """
    n_held = float(np.mean([len(held.y) for held in lists]))
    edges = _bin_edges(len(lists), n_held, test_share, k)
    if len(edges) < 3:
        return None
    stated = []
    precisions = []
    for place, held in enumerate(lists):
        others = _other_lists(lists, rows, place)
        if not others:
            return None
        probabilities = Calibration.fit(others, test_share).probabilities(held.scores)
        depths = edges * (len(held.y) / n_held)
        stated.append(_means_between(probabilities, held.scores, depths))
        precisions.append(_means_between(held.y > 0, held.scores, depths))
    bins = []
    for i, (mean_stated, mean_precision) in enumerate(
        zip(np.mean(stated, axis=0), np.mean(precisions, axis=0), strict=True)
    ):
        share = min(max(float(mean_precision), 0.0), 1.0)  # rounding may leave [0, 1]
        # A row that stands in several lists counts once.
        n_rows = distinct_rows(len(lists), edges[i + 1] - edges[i], test_share)
        low, high = binomial_interval(share, round(n_rows))
        bins.append(
            Bin(
                first=round(edges[i]) + 1,
                last=round(edges[i + 1]),
                stated=min(max(float(mean_stated), 0.0), 1.0),
                precision=share,
                low=min(low, share),
                high=max(high, share),
            )
        )
    return Reliability(method=method, splits=len(lists), rows=round(n_held), bins=bins)


def _bin_edges(
    n_lists: int, n_held: float, test_share: float, k: int
) -> NDArray[np.float64]:
    """Return the depths in a list of `n_held` rows at which bins begin and end.

    There are up to ten bins of k rows. They have fewer rows where ten would be more
    than the list, and more rows where all lists together have fewer than `_LEAST_ROWS`
    different ones in a bin. If the list ends before the tenth, the last has what is
    left.
    """
    size = min(k, math.ceil(n_held / _MOST_BINS))
    least = math.ceil(_LEAST_ROWS / distinct_rows(n_lists, 1, test_share))
    size = max(size, least)
    n_bins = min(_MOST_BINS, int(n_held // size))
    edges = size * np.arange(n_bins + 1.0)
    if n_bins < _MOST_BINS:
        edges[-1] = n_held
    return edges


def _other_lists(
    lists: Sequence[HeldOut], rows: Sequence[NDArray[np.intp]], place: int
) -> list[HeldOut]:
    """Return the lists but for that at `place`, without the rows that this one has."""
    others = []
    for i, held in enumerate(lists):
        is_other = ~np.isin(rows[i], rows[place])
        if i != place and is_other.any():
            others.append(HeldOut(held.y[is_other], held.scores[is_other]))
    return others


def _means_between(
    values: NDArray, scores: NDArray[np.float64], depths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean of `values` between successive depths of the ranked list."""
    sums = sums_at(values, scores, depths)
    means: NDArray[np.float64] = np.diff(sums) / np.diff(depths)
    return means


def reliability_sheet(reliability: Reliability) -> Sheet:
    """Return a figure of the share of hits against the stated probability."""
    first = reliability.bins[0].last
    caption = (
        f"Of {reliability.method}, on {count(reliability.splits, 'held-out list')} of"
        f" {reliability.rows:,} rows, each by the probabilities of the others. Points:"
        f" successive rows from the top, {first:,} of each list; filled: the first"
        f" {first:,}; lines: 95 % intervals; diagonal: as stated."
    )
    return Sheet(
        "Calibration at the top",
        draw=partial(_draw, reliability=reliability),
        width=_WIDTH,
        height=_HEIGHT,
        caption=[caption],
    )


def _draw(figure: "SubFigure", reliability: Reliability) -> None:
    axes = figure.add_subplot()
    bins = reliability.table
    axes.vlines(bins["stated"], bins["low"], bins["high"], color="C0", linewidth=1)
    axes.plot(
        bins["stated"],
        bins["precision"],
        color="C0",
        linestyle="",
        marker="o",
        markerfacecolor="white",
    )
    # The bin at the very top is filled.
    axes.plot(
        bins["stated"][:1], bins["precision"][:1], color="C0", linestyle="", marker="o"
    )
    most = 1.05 * max(bins["stated"].max(), bins["high"].max())
    axes.plot([0, most], [0, most], color="0.5", linewidth=0.8, zorder=1)
    axes.set(
        xlim=(0, most),
        ylim=(0, most),
        xlabel="stated probability",
        ylabel="share of hits",
    )

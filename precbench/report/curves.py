"""Curves over the splits of an experiment, summarised by medians and quartiles."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_MOST_VALUES = 1_000_000  # of all curves together, in memory at a time


class _Curve(NamedTuple):
    """The points of a curve on one split, by rising x."""

    x: np.ndarray
    y: np.ndarray


def value_against_time(
    trials: pd.DataFrame, clock: str = "wall_seconds"
) -> pd.DataFrame:
    """Summarise the curves of one solver over its splits, by training time on `clock`.

    A curve begins at its first checkpoint with a positive time; a value holds until the
    next value, the last value for ever. Each row has the time of a checkpoint
    (``seconds``) from when all curves have begun, the quartiles, and how many splits
    trained at least so long (``reached``).
    """
    steps = trials[(trials[clock] > 0) & trials["value"].notna()].sort_values(
        clock, kind="stable"
    )
    curves = _by_split(steps, clock, "value")
    all_have_begun = max((curve.x[0] for curve in curves), default=np.inf)
    grid = np.unique(steps[clock].to_numpy())
    grid = grid[grid >= all_have_begun]
    summary = _quartiles_in_pieces("seconds", grid, curves, _last_value)
    ends = np.sort([curve.x[-1] for curve in curves])
    n_ended_before = np.searchsorted(ends, summary["seconds"])
    return summary.assign(reached=len(ends) - n_ended_before)


def _last_value(now: np.ndarray, times: np.ndarray, values: np.ndarray) -> np.ndarray:
    return values[np.searchsorted(times, now, "right") - 1]


def roc(vertices: pd.DataFrame, fpr: np.ndarray) -> pd.DataFrame:
    """Summarise the ROC curves of one solver at the rates `fpr`.

    A vertical step counts with its top: `np.interp` takes the last of equal rates,
    which is the highest one once they are sorted.
    """
    curves = _by_split(vertices.sort_values(["fpr", "tpr"]), "fpr", "tpr")
    if not curves:  # there are no quartiles at any rate
        fpr = fpr[:0]
    return _quartiles_in_pieces("fpr", fpr, curves, np.interp)


def precision_against_k(
    curves: pd.DataFrame, x: str, mark: float | None = None
) -> pd.DataFrame:
    """Summarise a solver's curves of prec@k by column `x`, and at `mark`.

    Quartiles need all curves, so they reach from where the last curve begins to where
    the first curve ends.
    """
    of_splits = _by_split(curves.sort_values(x), x, "precision")
    start = max((curve.x[0] for curve in of_splits), default=np.inf)
    end = min((curve.x[-1] for curve in of_splits), default=np.inf)
    places = list(curves[x])
    if mark is not None:
        places.append(mark)
    grid = np.unique(places)
    grid = grid[(grid >= start) & (grid <= end)]
    return _quartiles_in_pieces(x, grid, of_splits, _next_value)


def _next_value(place: np.ndarray, xs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values at the next points, as a share of positives is rounded up."""
    return values[np.searchsorted(xs, place, "left")]


def value_against_sweep(finals: pd.DataFrame, parameter: str) -> pd.DataFrame:
    """Summarise the final values of one solver by the swept parameter."""
    measured = finals[finals["value"].notna()]
    tables = []  # of one row for each swept value
    for x, values in measured.groupby(parameter, sort=False)["value"]:
        of_splits = [np.array([value]) for value in values]  # at the one place x
        tables.append(_quartiles(parameter, np.array([x]), of_splits))
    if not tables:
        return _quartiles(parameter, np.empty(0), [])
    return pd.concat(tables, ignore_index=True)


def value_against_share(trials: pd.DataFrame) -> pd.DataFrame:
    """Summarise a solver's curves by the percentage of row visits so far."""
    learnt = trials[(trials["rows_seen"] > 0) & trials["value"].notna()]
    rows_in_all = learnt.groupby("split")["rows_seen"].transform("max")
    percent = (100 * learnt["rows_seen"] / rows_in_all).round(0)
    return value_against_sweep(learnt.assign(share=percent), "share")


def _by_split(rows: pd.DataFrame, x: str, y: str) -> list[_Curve]:
    """Return the columns x and y of each split."""
    return [
        _Curve(of_split[x].to_numpy(), of_split[y].to_numpy())
        for _, of_split in rows.groupby("split")
    ]


def _quartiles_in_pieces(
    name: str,
    x: np.ndarray,
    curves: Sequence[_Curve],
    read: Callable[..., Any],
) -> pd.DataFrame:
    """Return the quartiles of ``read(x, curve.x, curve.y)`` over the curves.

    About `_MOST_VALUES` values are in memory at a time.
    """
    tables = []
    for piece in np.array_split(x, 1 + len(x) * len(curves) // _MOST_VALUES):
        values = [read(piece, curve.x, curve.y) for curve in curves]
        tables.append(_quartiles(name, piece, values))
    return pd.concat(tables, ignore_index=True)


def _quartiles(name: str, x: np.ndarray, values: Sequence[np.ndarray]) -> pd.DataFrame:
    """Return a row for each of `x`, with the quartiles of the values at it.

    `values` has an array for each split, as long as `x`.
    """
    if len(x) > 0:
        with np.errstate(invalid="ignore"):  # between two risks that have overflowed
            q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    else:
        q25, median, q75 = np.empty((3, 0))
    return pd.DataFrame(
        {name: x, "n_splits": len(values), "q25": q25, "median": median, "q75": q75}
    )

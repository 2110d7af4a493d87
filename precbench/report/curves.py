"""Curves over the splits of an experiment, summarised by medians and quartiles."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

_MOST_VALUES = 1_000_000  # of all curves together, in memory at a time


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
    # when the last curve begins
    start = max((times[0] for times, _ in curves), default=np.inf)
    grid = np.unique(steps[clock].to_numpy())
    summary = _in_pieces(
        "seconds",
        grid[grid >= start],
        curves,
        # last so far
        lambda now, times, values: values[np.searchsorted(times, now, "right") - 1],
    )
    # `reached` counts ends at or after a time
    ends = np.sort([times[-1] for times, _ in curves])
    return summary.assign(reached=len(ends) - np.searchsorted(ends, summary["seconds"]))


def roc(vertices: pd.DataFrame, fpr: np.ndarray) -> pd.DataFrame:
    """Summarise the ROC curves of one solver at the rates `fpr`.

    Of a vertical step the top.
    """
    curves = _by_split(vertices.sort_values(["fpr", "tpr"]), "fpr", "tpr")
    # `np.interp` takes the last of equal rates, which the sort makes the top of the
    # step. no curve: no row
    return _in_pieces("fpr", fpr if curves else fpr[:0], curves, np.interp)


def precision_against_k(
    curves: pd.DataFrame, x: str, mark: float | None = None
) -> pd.DataFrame:
    """Summarise a solver's curves of prec@k by column `x`, and at `mark`."""
    points = _by_split(curves.sort_values(x), x, "precision")
    grid = np.unique([*curves[x], *([] if mark is None else [mark])])
    # Quartiles need all curves: from where the last curve begins to where the first
    # curve ends.
    start = max((xs[0] for xs, _ in points), default=np.inf)
    end = min((xs[-1] for xs, _ in points), default=np.inf)
    return _in_pieces(
        x,
        grid[(grid >= start) & (grid <= end)],
        points,
        # The next point, since a fraction of the positives is rounded up
        lambda place, xs, values: values[np.searchsorted(xs, place, "left")],
    )


def value_against_sweep(finals: pd.DataFrame, parameter: str) -> pd.DataFrame:
    """Summarise the final values of one solver by the swept parameter."""
    groups = finals[finals["value"].notna()].groupby(parameter, sort=False)["value"]
    # a table of one row for each swept value; each split is a curve of one point
    rows = [
        _quartiles(parameter, np.array([x]), [np.array([value]) for value in values])
        for x, values in groups
    ]
    return pd.concat(
        rows or [_quartiles(parameter, np.empty(0), [])], ignore_index=True
    )


def value_against_share(trials: pd.DataFrame) -> pd.DataFrame:
    """Summarise a solver's curves by the percentage of row visits so far."""
    learnt = trials[(trials["rows_seen"] > 0) & trials["value"].notna()]
    share = (
        100
        * learnt["rows_seen"]
        / learnt.groupby("split")["rows_seen"].transform("max")
    )
    # by whole percent
    return value_against_sweep(learnt.assign(share=share.round(0)), "share")


def _by_split(
    rows: pd.DataFrame, x: str, y: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the columns x and y of each split."""
    return [
        (curve[x].to_numpy(), curve[y].to_numpy()) for _, curve in rows.groupby("split")
    ]


def _in_pieces(
    name: str,
    x: np.ndarray,
    curves: Sequence[tuple[np.ndarray, np.ndarray]],
    read: Callable[..., Any],
) -> pd.DataFrame:
    """Return the quartiles of ``read(x, *curve)`` over the curves."""
    # In pieces, so that about `_MOST_VALUES` values are in memory at a time.
    pieces = np.array_split(x, 1 + len(x) * len(curves) // _MOST_VALUES)
    return pd.concat(
        [
            _quartiles(name, piece, [read(piece, *curve) for curve in curves])
            for piece in pieces
        ],
        ignore_index=True,
    )


def _quartiles(name: str, x: np.ndarray, curves: Sequence[np.ndarray]) -> pd.DataFrame:
    """Return a row for each of `x`, at which `curves` has the values of each split."""
    with np.errstate(invalid="ignore"):  # between two risks that have overflowed
        q = (
            np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
            if len(x)
            else np.empty((3, 0))
        )
    return pd.DataFrame(
        {name: x, "n_splits": len(curves), "q25": q[0], "median": q[1], "q75": q[2]}
    )

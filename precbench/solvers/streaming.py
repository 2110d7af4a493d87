"""Training on rows that come piece by piece, checked when their file was opened."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.solvers.base import Trace
from precbench.solvers.passes import OnlineRanker
from precbench.solvers.rows import as_rows

__all__ = ["OnlineRanker", "fit_pieces"]

Visits = Iterable[tuple[Any, NDArray[np.float64], NDArray[np.int32]]]


def fit_pieces(
    solver: OnlineRanker, n_features: int, visits: Callable[[], Visits], trace: Trace | None = None
) -> None:
    """Do as `fit` does, with rows that are read again in each epoch.

    This is what `partial_fit` on one piece after the other comes to, without its checks, which
    take longer than the learning.

    Parameters
    ----------
    solver : OnlineRanker
    n_features : int
    visits : callable
        Called for each epoch; yields finite float64 rows (C order or CSR), labels -1 or +1, and
        the rows to visit, whose number is a multiple of the batch size but at the last.
    trace : callable, optional
        As in `fit`. Its first call comes before the first piece is asked for, so that the time
        to read counts.
    """
    solver.n_features_in_ = n_features
    solver.classes_ = np.array([-1.0, 1.0])
    solver._reset(n_features)
    stopped = trace is not None and bool(trace(solver))
    while not stopped and solver.n_iter_ < solver.epochs:
        for X, y, order in visits():
            length = min(solver.batch_size, len(order))
            stopped = solver._visit(as_rows(X), y.astype(np.int8), order, length, trace)
            if stopped:
                break
        solver.n_iter_ += 1
    solver._warn_if_lost()

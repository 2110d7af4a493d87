"""`k` as a number of training rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.solvers.base import warn
from precbench.topk import TopK, training_k

__all__ = ["top_of_training"]


def top_of_training(k: TopK, labels: NDArray[Any]) -> int:
    """Return `k` as a number of training rows, at most the number of positives.

    A greater k is reported once, by a `ConvergenceWarning`.

    Parameters
    ----------
    k : int, float or str
        See `precbench.topk.check_k`.
    labels : ndarray, shape (n_samples,)
        Above 0 for positives.

    Returns
    -------
    int
    """
    n_pos = int(np.count_nonzero(labels > 0))
    first, count = training_k(k, n_pos, len(labels))
    if count > n_pos:
        rows = f" ({count:,} rows)" if isinstance(k, str) else ""
        warn(f"k = {k}{rows} exceeds the number of positives, {n_pos:,}: training uses no more")
    return first

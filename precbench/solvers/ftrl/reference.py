"""FTRL as kar2014 writes it, in NumPy and with a general solver.

The losses are computed by sorting, each plane below them by its definition, and

    w_{t+1} = argmin l_t(w) + eta/2 ||w||^2   in the ball,

with l_t the loss of the first t rows.

The number of planes grows exponentially: for few rows only. The solver has to come to
the same w (tests/test_ftrl.py).
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.solvers.cutting_plane.reference import lowest_point


def loss(
    X: NDArray[np.float64],
    y: NDArray[Any],
    w: NDArray[np.float64],
    *,
    pairs: bool,
    n_top: int,
) -> float:
    """Return the loss of these rows: of pairs (pauc), or the struct surrogate.

    `n_top` is the number of the highest negatives that form pairs, or k.
    """
    scores, positive = X @ w, y > 0
    if pairs:  # the sum of max(0, 1 - (s_i - s_j))
        negatives = sorted(scores[~positive], reverse=True)[:n_top]
        hinges = [max(0.0, 1 - (s - r)) for s in scores[positive] for r in negatives]
        return float(sum(hinges))
    # The struct surrogate is the maximum over the y' with k ones of
    #     #(ones on negatives) + sum_i (y'_i - y_i) s_i.
    highest = sorted(scores + ~positive, reverse=True)[:n_top]
    return float(sum(highest) - scores[positive].sum())


def planes(
    X: NDArray[np.float64], y: NDArray[Any], *, pairs: bool, n_top: int
) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """Yield offset and slope of the planes whose maximum is the loss."""
    if pairs:
        yield from hinge_planes(X, y, n_top)
        return
    for chosen in combinations(range(len(y)), n_top):
        ones = np.isin(np.arange(len(y)), chosen)
        offset = float(np.sum(ones & (y < 0)))
        slope = (ones.astype(int) - (y > 0)) @ X
        yield offset, slope


def hinge_planes(
    X: NDArray[np.float64], y: NDArray[Any], n_top: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the planes below the hinges of pairs with the first negatives."""
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    for top in combinations(neg, n_top):
        differences = [X[j] - X[i] for i in pos for j in top]
        pairs = np.array(differences).reshape(-1, X.shape[1])
        for active in product((0, 1), repeat=len(pairs)):
            yield sum(active), np.array(active) @ pairs


def leader(
    X: NDArray[np.float64],
    y: NDArray[Any],
    *,
    pairs: bool,
    n_top: int,
    eta: float,
    radius: float,
) -> NDArray[np.float64]:
    """Return the w in the ball with the least loss plus ``eta/2 ||w||^2``."""
    listed = list(planes(X, y, pairs=pairs, n_top=n_top))
    offsets = np.array([offset for offset, _slope in listed], dtype=float)
    slopes = np.array([slope for _offset, slope in listed])
    return lowest_point(offsets, slopes, curvature=eta, radius=radius)

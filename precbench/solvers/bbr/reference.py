"""BBR and LCBR as Gultekin and Paisley write them, in NumPy, pair by pair.

The solvers have to give the same moments and the same w (tests/test_bbr.py).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq


def pair_moments(
    X: NDArray[np.float64],
    y: NDArray[Any],
    pairs: Iterable[tuple[int, int]] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mu and Sigma by lines 1 to 8 of Algorithm 1, or of 2 for given pairs.

    A pair (i, j) is that of the i-th positive and the j-th negative.
    """
    pos, neg = X[y > 0], X[y < 0]
    if pairs is None:
        pairs = [(i, j) for i in range(len(pos)) for j in range(len(neg))]
    pairs = list(pairs)
    n_features = X.shape[1]
    mean = np.zeros(n_features)
    second = np.zeros((n_features, n_features))
    for i, j in pairs:
        z = pos[i] - neg[j]
        mean += z / len(pairs)
        second += np.outer(z, z) / len(pairs)
    return mean, second


def minimiser(
    mean: NDArray[np.float64], second: NDArray[np.float64], radius: float | None = None
) -> NDArray[np.float64]:
    """Return the w of ``||w|| <= radius`` with the least ``w' Sigma w / 2 - mu' w``.

    Here mu is `mean` and Sigma is `second`, the second moments, which must be regular.
    The minimiser is ``(Sigma + m I)^-1 mu``, with m = 0 if that lies in the ball, else
    with the m that puts it on the edge.
    """

    def solution(m: float) -> NDArray[np.float64]:
        return np.asarray(
            np.linalg.solve(second + m * np.eye(len(mean)), mean), np.float64
        )

    w = solution(0.0)
    if radius is None or np.linalg.norm(w) <= radius:
        return w

    def excess(m: float) -> float:
        return float(np.linalg.norm(solution(m)) - radius)

    high = float(np.linalg.norm(mean)) / radius  # there the norm is below the radius
    return solution(brentq(excess, 0.0, high))

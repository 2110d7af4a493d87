"""TopPush by its definition, in NumPy: the problem, its dual, and accelerated descent.

The solver, whose projections take linear time, has to come to the same w
(tests/test_push.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq


def primal(
    w: NDArray[np.float64],
    X: NDArray[np.float64],
    y: NDArray[Any],
    C: float,
    n_top: int,
) -> float:
    """Return ``P(w) = 1/2 ||w||^2 + C/m sum_i max(0, 1 + t(w) - <w, x_i>)^2``."""
    t = np.sort(X[y < 0] @ w)[-n_top:].mean()  # the mean of the K highest negatives
    return float(w @ w / 2 + C * np.mean(np.maximum(0, 1 + t - X[y > 0] @ w) ** 2))


def projected(
    point: NDArray[np.float64], y: NDArray[Any], n_top: int
) -> NDArray[np.float64]:
    """Return the dual c nearest to `point`.

    c is at least 0 on positives. With s the sum over the positives, c is between
    ``-s / K`` and 0 on negatives, where its sum is -s. For a given s it is

        max(0, point - a)                  on positives,
        -min(s / K, max(0, -point - b))    on negatives,

    with a and b such that both sums are s. The best s is where the distance has no
    slope: ``a + b + (sum of what is cut off) / K = 0``.
    """
    pos, neg = point[y > 0], -point[y < 0]
    spread = float(np.abs(point).sum()) + 1.0  # above each sum sought

    def shift(values: NDArray[np.float64], total: float, most: float) -> float:
        """Return the a with which ``values - a``, kept in [0, most], sum to `total`."""

        def excess(a: float) -> float:
            return float(np.minimum(most, np.maximum(0, values - a)).sum() - total)

        return brentq(excess, values.min() - spread, values.max(), xtol=1e-14)

    def slope(total: float) -> float:
        """Return the slope of the distance at s = total."""
        a, b = shift(pos, total, np.inf), shift(neg, total, total / n_top)
        cut_off = np.maximum(0, neg - b - total / n_top).sum()
        return -a - b - cut_off / n_top

    c = np.zeros_like(point)
    if slope(1e-13 * spread) >= 0:  # no c is nearer than 0
        return c
    total = brentq(slope, 1e-13 * spread, spread, xtol=1e-14)
    a, b = shift(pos, total, np.inf), shift(neg, total, total / n_top)
    c[y > 0] = np.maximum(0, pos - a)
    c[y < 0] = -np.minimum(total / n_top, np.maximum(0, neg - b))
    return c


def toppush(
    X: NDArray[np.float64], y: NDArray[Any], *, C: float, n_top: int, n_steps: int
) -> NDArray[np.float64]:
    """Return w after steps of Nesterov's method (Li et al. 2014, Algorithm 1).

    The dual is

        D(c) = C/m sum_i (c_i - c_i^2 / 4) - 1/2 ||w||^2,   w = C/m sum_r c_r x_r.

    The length of the steps comes from the largest singular value of X.
    """
    positive = (y > 0).astype(float)
    weight = C / positive.sum()  # C/m
    lipschitz = weight * np.linalg.norm(X, 2) ** 2 + 0.5  # of the gradient of -D m/C
    length = 1 / lipschitz
    current = ahead = np.zeros(len(y))
    momentum = 1.0
    for _ in range(n_steps):
        gradient = weight * X @ (X.T @ ahead) + positive * (ahead / 2 - 1)  # of -D m/C
        previous = current
        current = projected(ahead - length * gradient, y, n_top)
        turns_back = (current - ahead) @ (current - previous) < 0
        if turns_back:  # the restart of O'Donoghue, Candes 2015
            ahead, momentum = current, 1.0
        else:
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            factor = (momentum - 1) / next_momentum
            ahead = current + factor * (current - previous)
            momentum = next_momentum
    return weight * X.T @ current

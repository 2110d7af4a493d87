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
    """Return the nearest dual c.

    C >= 0 on positives, sum 0, ``-total / K <= c <= 0`` on negatives.

    The total is the sum over the positives. For a total s the positives are ``max(0,
    point - a)``, and the negatives ``-min(s / K, max(0, -point - b))``, with a and b
    such that both sums are s; the best s is where the distance has no slope: ``a + b +
    (sum of what is cut off) / K = 0``.
    """
    pos, neg = point[y > 0], -point[y < 0]
    spread = float(np.abs(point).sum()) + 1.0

    def shift(values: NDArray[np.float64], total: float, most: float) -> float:
        def excess(a: float) -> float:
            return float(np.minimum(most, np.maximum(0, values - a)).sum() - total)

        return brentq(excess, values.min() - spread, values.max(), xtol=1e-14)

    def slope(total: float) -> float:
        a, b = shift(pos, total, np.inf), shift(neg, total, total / n_top)
        cut_off = np.maximum(0, neg - b - total / n_top).sum()
        return -a - b - cut_off / n_top

    c = np.zeros_like(point)
    if slope(1e-13 * spread) >= 0:  # no c is nearer than 0
        return c
    total = brentq(slope, 1e-13 * spread, spread, xtol=1e-14)
    c[y > 0] = np.maximum(0, pos - shift(pos, total, np.inf))
    c[y < 0] = -np.minimum(
        total / n_top, np.maximum(0, neg - shift(neg, total, total / n_top))
    )
    return c


def toppush(
    X: NDArray[np.float64], y: NDArray[Any], *, C: float, n_top: int, n_steps: int
) -> NDArray[np.float64]:
    """Return w after steps of Nesterov's method (Li et al. 2014, Algorithm 1).

    The dual is ``D(c) = C/m sum_i (c_i - c_i^2 / 4) - 1/2 ||w||^2`` with ``w = C/m sum
    c x``. The length of the steps comes from the largest singular value of X.
    """
    positive = (y > 0).astype(float)
    weight = C / positive.sum()  # C/m
    # 1 / Lipschitz constant of -D m/C
    length = 1 / (weight * np.linalg.norm(X, 2) ** 2 + 0.5)
    now = ahead = np.zeros(len(y))
    momentum = 1.0
    for _ in range(n_steps):
        gradient = weight * X @ (X.T @ ahead) + positive * (ahead / 2 - 1)  # of -D m/C
        before, start = now, ahead
        now = projected(start - length * gradient, y, n_top)
        # the step turns back: O'Donoghue, Candes 2015
        if (now - start) @ (now - before) < 0:
            momentum, ahead = 1.0, now
        else:
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = now + (momentum - 1) / grown * (now - before)
            momentum = grown
    return weight * X.T @ now

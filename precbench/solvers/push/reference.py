"""The pushes as rudin2009 writes them, in NumPy over all pairs.

The risks with their gradients in the scores, and the algorithm of Fig. 2. The kernels,
which are linear in the rows for the exponential loss, have to give the same numbers
(tests/test_push.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq


def pnorm_push(
    y: NDArray[Any],
    scores: NDArray[np.float64],
    p: float,
    loss: str = "exponential",
    push: str = "top",
    bottom_weight: float = 1.0,
) -> tuple[float, NDArray[np.float64]]:
    """Return the logarithm of R and its gradient (rudin2009, sections 2 and 7).

    The gradient is that in the scores.
    At the top, ``R = sum_k (sum_i loss(s_i - s_k))**p`` over negatives k and positives
    i; at the bottom, ``R = sum_i (sum_k loss(s_i - s_k))**p``; "both" is the first plus
    `bottom_weight` times the second. R itself overflows soon.
    """
    z = _differences(y, scores)
    log_losses = z
    slopes = np.ones_like(z)  # derivatives of the losses, divided by the losses
    if loss == "logistic":
        losses = np.logaddexp(0, z)
        # For z far below 0 the loss is e^z but for rounding, and may underflow.
        underflows = z < -36
        log_losses = np.where(underflows, z, np.log(np.where(underflows, 1.0, losses)))
        slopes = np.exp(-np.logaddexp(0, -z) - log_losses)
    # The weight of each side, by the axis that its inner sum runs over.
    top, bottom = 0, 1
    weights = {
        "top": {top: 1.0},
        "bottom": {bottom: 1.0},
        "both": {top: 1.0, bottom: bottom_weight},
    }[push]
    log_risks = {}  # p log h of each outer row, by side
    log_terms = []  # log of each side's part of R
    for side, weight in weights.items():
        log_risks[side] = p * np.logaddexp.reduce(log_losses, axis=side)
        log_terms.append(np.logaddexp.reduce(log_risks[side]) + np.log(weight))
    total = np.logaddexp.reduce(log_terms)
    # The derivative of log R in z_ik is weight p h^(p - 1) loss'(z_ik) / R.
    by_pairs = np.zeros_like(z)
    for side, weight in weights.items():
        log_heights = np.expand_dims((p - 1) / p * log_risks[side], side)
        by_pairs += weight * p * np.exp(log_heights + log_losses - total) * slopes
    return total, _by_scores(y, by_pairs)


def ir_push(
    y: NDArray[Any], scores: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return ``sum_i ln(1 + sum_k exp(s_k - s_i))`` and its gradient (rudin2009, (2)).

    The gradient is that in the scores.
    """
    z = _differences(y, scores)
    terms = np.logaddexp(0, np.logaddexp.reduce(z, axis=1))
    return terms.sum(), _by_scores(y, np.exp(z - terms[:, None]))


def _differences(y: NDArray[Any], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``s_k - s_i``, a row for each positive i, a column for each negative k."""
    return scores[y < 0] - scores[y > 0][:, None]


def _by_scores(y: NDArray[Any], by_pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum derivatives in ``s_k - s_i`` up to derivatives in the scores."""
    gradient = np.empty(len(y))
    gradient[y > 0] = -by_pairs.sum(axis=1)
    gradient[y < 0] = by_pairs.sum(axis=0)
    return gradient


def pnorm_push_path(
    X: NDArray[np.float64], y: NDArray[Any], p: float, max_iter: int
) -> list[tuple[int, float]]:
    """Return the features chosen and the steps along them (rudin2009, Fig. 2).

    The steps are computed over the matrix M of all pairs.
    """
    # M[j] holds x_ij - x_kj of all pairs (i, k), for each feature j.
    M = np.moveaxis(X[y > 0][:, None] - X[y < 0], 2, 0)
    d = np.full(M.shape[1:], 1 / M[0].size)  # weights of the pairs
    path = []
    for _ in range(max_iter):
        # The derivative along feature j, of which the largest decides, is
        #     sum_ik d_ik (sum_i' d_i'k)^(p - 1) M_ikj.
        priced = d * d.sum(axis=0) ** (p - 1)
        j = int(np.argmax(np.abs(np.tensordot(M, priced))))

        def derivative(step: float, column: Any = M[j], d: Any = d) -> float:
            weights = d * np.exp(-step * column)
            heights = weights.sum(axis=0)
            prices = (heights / heights.max()) ** (p - 1)
            return -(prices @ (weights * column).sum(axis=0))

        end = -np.sign(derivative(0.0))
        while derivative(end) * end < 0:
            end *= 2
        eps = np.finfo(float).eps
        step = brentq(derivative, 0.0, end, xtol=1e-300, rtol=4 * eps, maxiter=2000)
        d = d * np.exp(-step * M[j])
        d /= d.sum()
        path.append((j, step))
    return path

"""The algorithm of the P-Norm Push over all pairs, with NumPy: slow, and easy to check."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq


def pnorm_push_path(
    X: NDArray[np.float64], y: NDArray[np.float64], p: float, max_iter: int
) -> list[tuple[int, float]]:
    """rudin2009, Fig. 2, over the matrix M of all pairs: the columns chosen and the steps."""
    M = np.moveaxis(X[y > 0][:, None] - X[y < 0], 2, 0)
    d, path = np.full(M.shape[1:], 1 / M[0].size), []
    for _ in range(max_iter):
        priced = d * d.sum(axis=0) ** (p - 1)
        j = int(np.argmax(np.abs(np.tensordot(M, priced))))

        def derivative(step: float, column: Any = M[j], d: Any = d) -> float:
            weights = d * np.exp(-step * column)
            heights = weights.sum(axis=0)
            return -(((heights / heights.max()) ** (p - 1)) @ (weights * column).sum(axis=0))

        end = -np.sign(derivative(0.0))
        while derivative(end) * end < 0:
            end *= 2
        step = brentq(derivative, 0.0, end, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=2000)
        d = d * np.exp(-step * M[j])
        d /= d.sum()
        path.append((j, step))
    return path

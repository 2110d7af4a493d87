"""OAM, PGD, AdaOAM and SPAM as their papers write them, row by row.

Each function takes the parameters from a solver and returns w after each row of
`order`, shape (n_rows, n_features). The kernel, whose sums over the earlier rows do not
grow with their number, has to give the same numbers (tests/test_twins.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq


def oam_path(
    X: NDArray[np.float64], y: NDArray[Any], order: Any, solver: Any
) -> NDArray[Any]:
    """Zhao et al. 2011, Algorithms 1 to 4, with one draw a row for the reservoirs."""
    rng = np.random.default_rng(solver.random_state).spawn(1)[0]
    size = solver.reservoir_size
    reservoir: dict[int, list[NDArray[np.float64]]] = {1: [], -1: []}  # B+ and B-
    n_seen = {1: 0, -1: 0}
    w = np.zeros(X.shape[1])
    path = []
    for x, label in zip(X[order], y[order], strict=True):
        # C_t = C max(1, N / |B|): each row of the reservoir stands for N / |B| rows
        penalty = solver.C * max(1, n_seen[-label] / size)
        differences = [label * (x - other) for other in reservoir[-label]]
        if solver.update == "sequential":  # Algorithm 3
            for z in differences:
                loss = max(0.0, 1 - w @ z)
                if z.any():  # two equal rows teach nothing
                    w = w + min(penalty / 2, loss / (z @ z)) * z
        else:  # Algorithm 4
            violating = [z for z in differences if w @ z <= 1]
            # The zeros are for a row without a violating pair.
            w = w + penalty / 2 * np.sum([*violating, np.zeros_like(w)], axis=0)
        n_seen[label] += 1  # Algorithm 2, by Vitter's Algorithm R
        place = rng.integers(0, n_seen[label])
        if len(reservoir[label]) < size:
            reservoir[label].append(x)
        elif place < size:
            reservoir[label][place] = x
        path.append(w)
    return np.array(path)


def pgd_path(
    X: NDArray[np.float64], y: NDArray[Any], order: Any, solver: Any
) -> NDArray[Any]:
    """Boissier et al. 2016: a step by the mean gradient of pairs with earlier rows.

    The loss of a pair is (y_i - y_j - w' z)^2 / 2, with z = x_i - x_j.
    """
    w = np.zeros(X.shape[1])
    path = []
    for t, i in enumerate(order, start=1):
        gradient = np.zeros_like(w)
        for j in order[: t - 1]:
            z = X[i] - X[j]
            gradient += (w @ z - (y[i] - y[j])) * z / (t - 1)
        w = w - solver.eta0 / t**solver.power_t * gradient
        path.append(w)
    return np.array(path)


def adaoam_path(
    X: NDArray[np.float64], y: NDArray[Any], order: Any, solver: Any
) -> NDArray[Any]:
    """Ding et al. 2015, Algorithm 1, the gradient pair by pair."""
    radius = 1 / np.sqrt(solver.reg)
    w = np.zeros(X.shape[1])
    squares = np.zeros(X.shape[1])
    path = []
    for t, i in enumerate(order):
        others = [j for j in order[:t] if y[j] != y[i]]
        if others:
            gradient = solver.reg * w
            for j in others:
                z = y[i] * (X[i] - X[j])
                gradient = gradient - (1 - w @ z) * z / len(others)
            squares += gradient**2
            h = solver.delta + np.sqrt(squares)
            w = _projected(w - solver.eta0 * gradient / h, h, radius)
        path.append(w)
    return np.array(path)


def _projected(
    u: NDArray[np.float64], h: NDArray[np.float64], radius: float
) -> NDArray[np.float64]:
    """Return the w of the ball ``||w|| <= radius`` of least ``sum(h (w - u)^2)``.

    Outside of the ball it is ``h u / (h + nu)``, for the nu that puts it on the sphere.
    """
    if np.linalg.norm(u) <= radius:
        return u

    def excess(nu: float) -> float:
        return float(np.linalg.norm(h * u / (h + nu)) - radius)

    high = 1.0
    while excess(high) > 0:
        high *= 2
    nu = brentq(excess, 0, high, xtol=1e-300, rtol=4 * np.finfo(float).eps)
    return h * u / (h + nu)


def spam_path(
    X: NDArray[np.float64], y: NDArray[Any], order: Any, solver: Any, known: Any = None
) -> NDArray[Any]:
    """Natole et al. 2018, Algorithm 1, with a, b and alpha.

    `known` are the rows of a first pass, which give p and the means of both classes;
    without it these are estimated from the rows so far.
    """
    w = np.zeros(X.shape[1])
    path = []
    for t, i in enumerate(order, start=1):
        rows = order[:t] if known is None else known
        pos, neg = X[rows][y[rows] > 0], X[rows][y[rows] < 0]
        if len(pos) and len(neg):
            p = len(pos) / len(rows)
            a, b = w @ pos.mean(axis=0), w @ neg.mean(axis=0)
            alpha = b - a
            x = X[i]
            score = w @ x
            if y[i] > 0:
                gradient = 2 * (1 - p) * ((score - a) - (1 + alpha)) * x
            else:
                gradient = 2 * p * ((score - b) + (1 + alpha)) * x
            eta = solver.eta0 / np.sqrt(t)
            u = w - eta * gradient
            # The prox of the elastic net:
            #     sign(u) max(0, |u| - eta l1_reg) / (1 + eta reg)
            shrunk = np.sign(u) * np.maximum(0, np.abs(u) - eta * solver.l1_reg)
            w = shrunk / (1 + eta * solver.reg)
        path.append(w)
    return np.array(path)

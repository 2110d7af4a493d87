"""The cutting plane as Joachims, Finley and Yu write it, with a general solver.

`one_slack` adds a plane at one w after another, each the best for the planes so far,
until the risk is hardly above the planes. `lowest_point` is the problem of one turn.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize


def lowest_point(
    offsets: NDArray[np.float64],
    slopes: NDArray[np.float64],
    curvature: float = 1.0,
    C: float = 1.0,
    radius: float | None = None,
) -> NDArray[np.float64]:
    """Minimise ``curvature / 2 ||w||^2 + C max(offsets + slopes @ w)`` in a ball.

    A general solver minimises over v, which is w followed by a bound xi of the planes,
    and begins away from the solution.
    """
    n_weights = slopes.shape[1]
    constraints = [
        {  # xi - (offset + slope' w) >= 0 for each plane
            "type": "ineq",
            "fun": lambda v: v[-1] - offsets - slopes @ v[:-1],
            "jac": lambda v: np.column_stack((-slopes, np.ones(len(slopes)))),
        }
    ]
    if radius is not None:
        constraints.append(
            {  # radius^2 - ||w||^2 >= 0
                "type": "ineq",
                "fun": lambda v: radius**2 - v[:-1] @ v[:-1],
                "jac": lambda v: np.append(-2 * v[:-1], 0),
            }
        )
    solution = minimize(
        lambda v: 0.5 * curvature * v[:-1] @ v[:-1] + C * v[-1],
        np.append(np.full(n_weights, 0.01), np.abs(offsets).max() + 1),
        jac=lambda v: np.append(curvature * v[:-1], C),
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    w = solution.x[:-1]
    if radius is None:
        return w
    return w * min(1.0, radius / max(float(np.linalg.norm(w)), 1e-300))


def one_slack(
    risk: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    n_weights: int,
    C: float,
    tol: float,
) -> NDArray[np.float64]:
    """Minimise ``1/2 ||w||^2 + C R(w)`` (Joachims et al. 2009, Algorithm 3).

    `risk` returns R and a subgradient at w. The result exceeds the minimum by at most
    ``C tol``.
    """
    offsets: list[float] = []
    slopes: list[NDArray[np.float64]] = []
    w = np.zeros(n_weights)
    while True:
        value, tangent = risk(w)
        heights = [
            offset + slope @ w for offset, slope in zip(offsets, slopes, strict=True)
        ]
        if heights and value <= max(heights) + tol:
            return w
        offsets.append(float(value - tangent @ w))
        slopes.append(tangent)
        w = lowest_point(np.array(offsets), np.array(slopes), C=C)

"""The minimiser of a convex quadratic function over a ball around 0."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.core.errors import InputError

_EPS = float(np.finfo(np.float64).eps)
_RELATIVE_NOISE = 1e-10  # parts of `mean` below this share of its norm are rounding


def minimise_over_ball(
    second: ArrayLike,
    mean: ArrayLike,
    radius: float | None = None,
    *,
    mean_in_range: bool = False,
) -> NDArray[np.float64]:
    """Minimise ``w' second w / 2 - mean' w``, with ``||w|| <= radius`` if it is given.

    `second` has no negative eigenvalue. The shortest of several minimisers is returned.
    A part of `mean` outside the range (column space) of `second` is left out if tiny,
    as a rounding error, or with `mean_in_range`. Else the function falls without end
    along the part, so give a radius.
    """
    second = np.asarray(second, dtype=np.float64)
    mean = np.asarray(mean, dtype=np.float64)
    curvatures, axes = np.linalg.eigh(second)
    greatest_curvature = curvatures[-1]  # they ascend
    # Eigenvalues up to this floor count as 0: scale features whose scales differ by
    # more than 1e7.
    floor = len(mean) * _EPS * greatest_curvature
    return minimise_along_axes(curvatures, axes, floor, mean, radius, mean_in_range)


def minimise_along_axes(
    curvatures: NDArray[np.float64],
    axes: NDArray[np.float64],
    floor: float | NDArray[np.float64],
    mean: NDArray[np.float64],
    radius: float | None,
    mean_in_range: bool,
) -> NDArray[np.float64]:
    """Return the w of `minimise_over_ball` from the eigenvectors of `second`."""
    # The minimiser is
    #     w = (second + multiplier I)^-1 mean.
    # The multiplier is 0 if then w lies in the ball; else w has the norm `radius`. All
    # coordinates below are along the eigenvectors.
    slopes = axes.T @ mean  # coordinates of the mean
    used = (curvatures > floor) & (slopes != 0)  # eigenvalues up to `floor` count as 0
    out_of_range = 0.0 if mean_in_range else float(np.linalg.norm(slopes[~used]))
    if out_of_range > _RELATIVE_NOISE * np.linalg.norm(mean):
        if radius is None:
            raise InputError(
                "the argument mean has a part outside the range of the argument second,"
                " so that no w minimises the risk; give a radius"
            )
        # Along axes of curvature 0 w goes to the edge of the ball.
        used = slopes != 0
    curvature = np.maximum(curvatures[used], 0)  # rounding may bring one below 0
    slope = slopes[used]
    # Along an axis of curvature 0 only the ball, which then has a radius, ends w.
    if radius is None or (
        curvature.all() and np.linalg.norm(slope / curvature) <= radius
    ):
        return axes[:, used] @ (slope / curvature)  # w with a multiplier of 0
    norm = float(np.linalg.norm(slope))
    if norm == 0:  # only where squares of tiny slopes underflow
        return np.zeros(len(mean))
    # Solve the problem for a ball of radius 1 and a mean of norm 1, and scale the
    # solution back.
    in_unit_ball = _over_unit_ball(curvature * (radius / norm), slope / norm)
    return axes[:, used] @ (radius * in_unit_ball)


def _over_unit_ball(
    curvature: NDArray[np.float64], slope: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``slope / (curvature + m)`` for the least m >= 0 with a norm <= 1."""
    # The m sought is the root of
    #     f(m) = 1 / ||w|| - 1,   w_i = slope_i / (curvature_i + m),
    # which Newton's method finds by steps of -f / f', where
    #     f'(m) = sum_i (w_i^2 / (curvature_i + m)) / ||w||^3.
    # f is concave, so that the steps never pass the root if they start below it (More
    # and Sorensen, "Computing a trust region step", SIAM J. Sci. Stat. Comput. 4(3),
    # 1983). They start where the greatest |w_i| is 1, or at 0.
    multiplier = max(0.0, float((np.abs(slope) - curvature).max()))
    while True:
        w = slope / (curvature + multiplier)
        length = float(np.linalg.norm(w))
        if length <= 1:
            return w
        # -f / f' = (||w|| - 1) ||w||^2 / sum_i (w_i^2 / (curvature_i + m))
        step = (length - 1) * length**2 / float(w**2 @ (1 / (curvature + multiplier)))
        # If the step is too short to change the multiplier, w is longer than 1 by
        # rounding only.
        if not step > 2 * _EPS * multiplier:
            return w / length
        multiplier += step

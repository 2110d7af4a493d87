"""The minimiser of a convex quadratic function over a ball around 0."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.core.errors import InputError

_EPS = float(np.finfo(np.float64).eps)
# of the norm of `mean`: smaller parts of it are rounding errors
_RELATIVE_NOISE = 1e-10


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
    second, mean = (
        np.asarray(second, dtype=np.float64),
        np.asarray(mean, dtype=np.float64),
    )
    # eigenvalues, ascending, and eigenvectors
    curvatures, axes = np.linalg.eigh(second)
    # Eigenvalues up to this floor count as 0: scale features whose scales differ by
    # more than 1e7.
    floor = len(mean) * _EPS * curvatures[-1]
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
    # w is (second + multiplier I)^-1 mean. The multiplier is 0 if then w lies in the
    # ball; else w has the norm `radius`. All coordinates below are along the
    # eigenvectors.
    slopes = axes.T @ mean  # coordinates of the mean
    used = (curvatures > floor) & (slopes != 0)  # eigenvalues up to `floor` count as 0
    out_of_range = 0.0 if mean_in_range else float(np.linalg.norm(slopes[~used]))
    if out_of_range > _RELATIVE_NOISE * np.linalg.norm(mean):
        if radius is None:
            raise InputError(
                "the argument mean has a part outside the range of the argument second,"
                " so that no w minimises the risk; give a radius"
            )
        # also axes of curvature 0, along which w goes to the edge of the ball
        used = slopes != 0
    # none below 0 by rounding
    curvature, slope = np.maximum(curvatures[used], 0), slopes[used]
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
    # By Newton's method on f(m) = ``1 / ||w|| - 1``, with steps of -f / f'. f is
    # concave, so that the steps never pass the root of f, the m sought, if they start
    # below the root (More and Sorensen, "Computing a trust region step", SIAM J. Sci.
    # Stat. Comput. 4(3), 1983). With w_i = slope_i / (curvature_i + m), f' is sum_i
    # (w_i^2 / (curvature_i + m)) / ||w||^3. below it some |w_i| is > 1
    multiplier = max(0.0, float((np.abs(slope) - curvature).max()))
    while True:
        w = slope / (curvature + multiplier)
        length = float(np.linalg.norm(w))
        if length <= 1:
            return w
        # -f / f'
        step = (length - 1) * length**2 / float(w**2 @ (1 / (curvature + multiplier)))
        # If the step is too short to change the multiplier, w is longer than 1 by
        # rounding only.
        if not step > 2 * _EPS * multiplier:
            return w / length
        multiplier += step

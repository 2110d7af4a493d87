"""Planes below a convex function, and the best weights against all of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.solvers.common.rows import as_rows, dot, linear_scores, weighted_sum
from precbench.solvers.cutting_plane.kernel import dual, solve_master, solve_positive

_MASTER_STEPS = 1_000  # by pairs of planes, in a call of `Bundle.improve`
_RIDGE = 1e-12  # of the largest diagonal entry of a matrix, see `_newton_step`


class Point(NamedTuple):
    """A risk at some weights, and its subgradient with respect to the scores."""

    w: NDArray[np.float64]
    scores: NDArray[np.float64]
    risk: float
    subgradient: NDArray[np.float64]

    def primal(self, C: float) -> float:  # P, the regularised risk
        return 0.5 * dot(self.w, self.w) + C * self.risk


class Bundle:
    """Planes below a risk, and the least ``1/2 ||w||^2 + C max_j plane_j(w)``."""

    # This w is
    #     w = -sum_j alpha_j slope_j,
    # where the weights alpha >= 0 of the planes sum to C and maximise the dual value
    #     sum_j alpha_j offset_j - 1/2 ||w||^2.

    _PATIENCE = 50  # a plane without weight in so many solutions is dropped
    _MOST_CALLS_WITHOUT_RISE = 20  # of `improve`: rounding allows no more
    _ARRAYS: tuple[str, ...] = (  # the arrays that have a row for each plane
        "_offsets",
        "_slopes",
        "_alpha",
        "_idle",
    )

    def __init__(self, C: float, n_weights: int):
        self._C = C  # the sum of the weights alpha of the planes
        self._n_planes = 0  # the arrays may have room for more
        # A plane is offset + slope' w.
        self._offsets = np.empty(0)
        self._slopes = np.empty((0, n_weights))
        self._gram = np.empty((0, 0))  # slope_i' slope_j of all pairs of planes
        self._alpha = np.empty(0)
        self._idle = np.empty(0, dtype=int)  # solutions since alpha was last above 0
        self._best_dual = -np.inf  # since the last `add`
        self._calls_without_rise = 0  # of `improve` since the best dual value rose

    def add(self, point: Point, slope: NDArray[np.float64]) -> None:
        """Add the plane that has this slope in w and touches the risk at a point."""
        m = self._n_planes
        if m == len(self._offsets):  # double the capacity, so that copies are few
            self._rearrange(np.arange(m), capacity=max(64, 2 * m))
        self._slopes[m] = slope
        self._offsets[m] = point.risk - dot(slope, point.w)
        products = linear_scores(as_rows(self._slopes[: m + 1]), slope)
        self._gram[m, : m + 1] = self._gram[: m + 1, m] = products
        self._alpha[m] = 0.0 if m else self._C  # the first plane has all of C
        self._idle[m] = 0
        self._n_planes += 1
        # `improve` has a new problem to solve.
        self._best_dual = -np.inf
        self._calls_without_rise = 0

    @property
    def is_stuck(self) -> bool:
        """Whether `improve` has gone on for long without any effect but rounding."""
        return self._calls_without_rise >= self._MOST_CALLS_WITHOUT_RISE

    def improve(self, tol: float) -> bool:
        """Raise the dual value; return whether it is the greatest, up to `tol`.

        It counts as greatest if moving a unit of weight between two planes raises it by
        at most `tol`. Then drop the planes that have had no weight for long.
        """
        m = self._n_planes
        # `solve_master` writes to alpha, a view of `_alpha`, and to the gradient.
        alpha, gradient = self._alpha[:m], np.empty(m)
        steps = solve_master(
            self._gram, self._offsets[:m], alpha, gradient, tol, _MASTER_STEPS
        )
        if steps == _MASTER_STEPS:  # not optimal yet
            self._newton_step(gradient)
            value = self._dual(alpha)
            has_risen = value > self._best_dual
            if has_risen:
                self._calls_without_rise = 0
            else:
                self._calls_without_rise += 1
            self._best_dual = max(self._best_dual, value)
            return False
        idle = self._idle[:m]
        # how many solutions in a row have given a plane no weight
        idle[:] = np.where(alpha > 0, 0, idle + 1)
        if (idle >= self._PATIENCE).any():
            used = np.flatnonzero(idle < self._PATIENCE)
            self._rearrange(used, capacity=len(self._offsets))
        return True

    def _newton_step(self, gradient: NDArray[np.float64]) -> None:
        """Move all weights above 0 at once, where steps by pairs are slow.

        They go towards the greatest dual value for the same sum, as far as no weight
        falls below 0. `gradient` is the gradient of the negative dual value. `_alpha`
        changes only if the dual value rises.
        """
        m = self._n_planes
        active = np.flatnonzero(self._alpha[:m] > 0)
        alpha = self._alpha[active]
        K = self._gram[np.ix_(active, active)]
        # Planes that depend on each other would leave K singular without this ridge.
        K[np.diag_indices_from(K)] += _RIDGE * K.diagonal().max()
        solutions = np.stack((gradient[active], np.ones(len(active))))
        if not solve_positive(K, solutions):  # singular; else rows b become K^-1 b
            return
        by_gradient, by_ones = solutions  # K^-1 gradient and K^-1 1
        # The step sums to 0. After it the gradient, which is then
        #     gradient + K step,
        # is the same for all planes.
        step = by_ones * (by_gradient.sum() / by_ones.sum()) - by_gradient
        falls = step < 0
        length_to_0 = np.min(alpha[falls] / -step[falls], initial=1.0)
        length = min(1.0, length_to_0)
        new = np.zeros(m)
        new[active] = np.maximum(alpha + length * step, 0.0)
        new *= self._C / new.sum()  # clipping and rounding have moved the sum
        if self._dual(new) > self._dual(self._alpha[:m]):
            self._alpha[:m] = new

    def _dual(self, alpha: NDArray[np.float64]) -> float:
        """Return the dual value for some weights of the planes."""
        return dual(self._gram, self._offsets[: len(alpha)], alpha)

    def weights(self) -> NDArray[np.float64]:
        """Return w, by the present alpha."""
        return -self._weighted_slope(self._alpha[: self._n_planes])

    def _weighted_slope(self, alpha: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``sum_j alpha_j slope_j``."""
        slopes = self._slopes[: len(alpha)]
        return weighted_sum(as_rows(slopes), alpha, slopes.shape[1])

    def bound(self) -> float:
        """Return the dual value: no w has a lower ``1/2 ||w||^2 + C R(w)``."""
        m = self._n_planes
        w = self.weights()
        return dot(self._alpha[:m], self._offsets[:m]) - 0.5 * dot(w, w)

    def _rearrange(self, planes: NDArray[np.intp], capacity: int) -> None:
        """Keep the planes with these indices, and room for `capacity` planes."""
        m = self._n_planes = len(planes)
        for name in self._ARRAYS:  # in which each plane has a row
            old = getattr(self, name)
            new = old
            if capacity != len(old):
                new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:m] = old[planes]  # which is a copy, so that `new` may be `old`
            setattr(self, name, new)
        old_gram = self._gram
        if capacity != len(old_gram):
            self._gram = np.empty((capacity, capacity))
        self._gram[:m, :m] = old_gram[np.ix_(planes, planes)]

"""Planes below a convex function, and the best weights against all of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.kernels import cutting_plane
from precbench.solvers.rows import as_rows, dot, linear_scores, weighted_sum

_MASTER_STEPS = 1_000  # between two calls of the trace
_RIDGE = 1e-12


class Point(NamedTuple):
    """A risk at some weights, and its subgradient with respect to the scores."""

    w: NDArray[np.float64]
    scores: NDArray[np.float64]
    risk: float
    subgradient: NDArray[np.float64]

    def primal(self, C: float) -> float:
        return 0.5 * dot(self.w, self.w) + C * self.risk


class Bundle:
    """Planes below a convex function; the best w against all is -sum_j alpha_j slope_j."""

    _PATIENCE = 50  # solutions without weight after which a plane is dropped
    _MOST_IDLE_CALLS = 20  # of `improve`, after which double precision does not allow more
    _ARRAYS: tuple[str, ...] = ("_offsets", "_slopes", "_alpha", "_idle")  # a line per plane

    def __init__(self, C: float, n_weights: int):
        self._C = C
        self._n_planes = 0
        self._offsets, self._slopes = np.empty(0), np.empty((0, n_weights))
        self._gram = np.empty((0, 0))
        self._alpha, self._idle = np.empty(0), np.empty(0, dtype=int)
        self._best_dual, self._idle_calls = -np.inf, 0

    def add(self, point: Point, slope: NDArray[np.float64]) -> None:
        """Add the plane with this slope that touches the function at a point."""
        m = self._n_planes
        if m == len(self._offsets):
            # Doubled, so that planes are seldom copied.
            self._rearrange(np.arange(m), max(64, 2 * m))
        self._slopes[m], self._offsets[m] = slope, point.risk - dot(slope, point.w)
        products = linear_scores(as_rows(self._slopes[: m + 1]), slope)
        self._gram[m, : m + 1] = self._gram[: m + 1, m] = products
        # The weights sum to C from the first plane on.
        self._alpha[m], self._idle[m] = 0.0 if m else self._C, 0
        self._n_planes += 1
        self._best_dual, self._idle_calls = -np.inf, 0

    @property
    def is_stuck(self) -> bool:
        """Whether `improve` has gone on for long without any effect but rounding."""
        return self._idle_calls >= self._MOST_IDLE_CALLS

    def improve(self, tol: float) -> bool:
        """Continue to solve for the plane weights alpha; return whether their gap is at most tol.

        Planes that have had no weight for long are dropped.
        """
        m = self._n_planes
        alpha, gradient = self._alpha[:m], np.empty(m)
        steps = cutting_plane.solve_master(
            self._gram, self._offsets[:m], alpha, gradient, tol, _MASTER_STEPS
        )
        if steps == _MASTER_STEPS:
            self._newton_step(gradient)
            dual = self._dual(self._alpha[:m])
            self._idle_calls = 0 if dual > self._best_dual else self._idle_calls + 1
            self._best_dual = max(self._best_dual, dual)
            return False
        idle = self._idle[:m]
        idle[:] = np.where(alpha > 0, 0, idle + 1)
        if (idle >= self._PATIENCE).any():
            self._rearrange(np.flatnonzero(idle < self._PATIENCE), len(self._offsets))
        return True

    def _newton_step(self, gradient: NDArray[np.float64]) -> None:
        """Take a Newton step for the planes that carry weight, where steps by pairs are slow."""
        m = self._n_planes
        active = np.flatnonzero(self._alpha[:m] > 0)
        alpha, K = self._alpha[active], self._gram[np.ix_(active, active)]
        # Planes that depend on each other would leave K singular without this ridge.
        K[np.diag_indices_from(K)] += _RIDGE * K.diagonal().max()
        towards, level = right = np.stack((gradient[active], np.ones(len(active))))
        if not cutting_plane.solve_positive(K, right):
            return
        step = level * (towards.sum() / level.sum()) - towards  # sums to 0
        falls = step < 0
        length = min(1.0, np.min(alpha[falls] / -step[falls], initial=1.0))
        new = np.zeros(m)
        new[active] = np.maximum(alpha + length * step, 0.0)
        # Clipping and rounding have moved the sum.
        new *= self._C / new.sum()
        if self._dual(new) > self._dual(self._alpha[:m]):
            self._alpha[:m] = new

    def _dual(self, alpha: NDArray[np.float64]) -> float:
        m = self._n_planes
        return cutting_plane.dual(self._gram, self._offsets[:m], alpha)

    def weights(self) -> NDArray[np.float64]:
        return -self._mean_slope(self._alpha[: self._n_planes])

    def _mean_slope(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_sum(as_rows(self._slopes[: len(shares)]), shares, self._slopes.shape[1])

    def bound(self) -> float:
        """Return the value of the dual problem, below which no w goes."""
        m, w = self._n_planes, self.weights()
        return dot(self._alpha[:m], self._offsets[:m]) - 0.5 * dot(w, w)

    def _rearrange(self, planes: NDArray[np.intp], capacity: int) -> None:
        """Keep some of the planes, in arrays with room for `capacity`."""
        m = self._n_planes = len(planes)
        for name in self._ARRAYS:
            old = getattr(self, name)
            new = old if capacity == len(old) else np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:m] = old[planes]
            setattr(self, name, new)
        old = self._gram
        self._gram = old if capacity == len(old) else np.empty((capacity, capacity))
        self._gram[:m, :m] = old[np.ix_(planes, planes)]

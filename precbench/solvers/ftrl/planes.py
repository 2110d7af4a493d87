"""Losses of the first n rows of a stream, and planes below them for any n."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from precbench.ranking.losses import pair_hinges, struct
from precbench.ranking.topk import k_by_size, top_rows
from precbench.solvers.common.rows import (
    Rows,
    as_rows,
    dot,
    linear_scores,
    norm,
    weighted_sum,
)
from precbench.solvers.cutting_plane.bundle import Bundle, Point

_MOST_TURNS = 50  # of `solve`; `_active_set` has one more for each plane
# of `improve`, each of up to 1,000 steps by pairs, before the active-set method
_TRIES = 8
_RANK = 1e-12  # of the largest singular value: smaller ones count as 0


class Bound(NamedTuple):
    """A bound F(w) >= value + curvature/2 ||w - w_0||^2 in the ball, for some w_0."""

    # F has a term ``eta/2 ||w||^2``: if F(w) <= value + gap, w is within sqrt(2 gap /
    # eta) of the best w. The two are within r = sqrt(2 gap / curvature) of w_0, so at
    # most 2 r apart.

    value: float
    curvature: float

    def error(self, gap: float, eta: float) -> float:
        """Return how far a w with this gap may lie from the best w."""
        return float(np.sqrt(2 * gap / max(eta, self.curvature / 4)))

    def gap_within(self, distance: float, eta: float) -> float:
        """Return the gap of which `error` is `distance`."""
        return 0.5 * max(eta, self.curvature / 4) * distance**2


class IncrementalLoss(ABC):
    """The losses of the first n rows, for all n, and planes below them."""

    n_chosen = 0  # rows whose choice by a plane must be known to extend the plane

    def __init__(self, X: Any, positive: NDArray[np.bool_]):
        self.X, self.positive = X, positive
        self._all = as_rows(X)
        squares = X.multiply(X) if sparse.issparse(X) else X * X
        self.largest_norm = float(np.sqrt(squares.sum(axis=1).max()))

    @abstractmethod
    def lipschitz(self) -> NDArray[np.float64]:
        """Return a Lipschitz constant of what each row adds to the loss, see `FTRL`."""

    @abstractmethod
    def evaluate(
        self, scores: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the loss of the first rows, and a subgradient in their scores."""

    @abstractmethod
    def extension(
        self, start: int, scores: NDArray[np.float64], chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | float]:
        """Return what to add to the slopes and offsets of planes from `start` on.

        The planes then lie below the loss of the n > start rows, and high at w with
        these `scores`. `chosen` (n_planes, n_chosen), the negatives each plane has
        chosen, is updated in place.
        """

    def at(self, w: NDArray[np.float64], n: int) -> Point:
        """Return w with loss and subgradient on the first `n` rows.

        NaN where scores overflow.
        """
        scores = linear_scores(self._first(n), w)
        if not np.isfinite(scores).all():
            return Point(
                w, scores, risk=np.nan, subgradient=np.full_like(scores, np.nan)
            )
        # risk and subgradient of these rows
        return Point(w, scores, *self.evaluate(scores))

    def by_weights(self, by_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        # X' by_scores
        return weighted_sum(self._first(len(by_scores)), by_scores, self.X.shape[1])

    def _first(self, n: int) -> Rows:
        """Return the first n rows without copying them."""
        rows = self._all
        if rows.indptr.size:  # CSR: entries beyond the last indptr are not read
            return rows._replace(indptr=rows.indptr[: n + 1], n_rows=n)
        return rows._replace(data=rows.data[: n * rows.n_features], n_rows=n)


class IncrementalStruct(IncrementalLoss):
    """The struct surrogate with a number of ones that grows with the rows."""

    def __init__(self, X: Any, positive: NDArray[np.bool_], top: float | int | None):
        super().__init__(X, positive)
        self._n_ones = (  # by number of rows so far; without `top` as many as positives
            np.append(0, np.cumsum(positive))
            if top is None
            else k_by_size(top, len(positive))
        )

    def lipschitz(self) -> NDArray[np.float64]:
        """Return 4 R, R the largest norm, for the G_t <= 8 of kar2014 on a ball.

        In the scaling of its equation (3) G_t is <= 4 on a ball of half the radius. 2 R
        would be enough: a row adds to the sum of the k largest z_i = s_i + 1[y_i = 0]
        either [z - z_(k)]_+, if k stays, or max(z, z_(k+1)), if k grows; at each w,
        z_(k) moves like the score of one row.
        """
        return np.full(len(self.positive), 4 * self.largest_norm)

    def evaluate(
        self, scores: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        n = len(scores)
        return struct(scores, self.positive[:n], self._n_ones[n])

    def extension(self, start, scores, chosen):
        # The new rows add to the loss at least their struct surrogate, with the ones
        # they add to k. Return slope and offset of the plane that touches this
        # surrogate at the new scores.
        n, new = len(scores), slice(start, None)
        by_scores = np.zeros(n)  # the slope by the scores; 0 for rows before `start`
        n_more = self._n_ones[n] - self._n_ones[start]  # ones that the new rows add
        value, by_scores[new] = struct(scores[new], self.positive[start:n], n_more)
        # for all planes
        return self.by_weights(by_scores), value - dot(by_scores, scores)


class IncrementalPartialAUC(IncrementalLoss):
    """The hinges of all pairs of a positive and one of the highest negatives."""

    def __init__(self, X: Any, positive: NDArray[np.bool_], beta: float):
        super().__init__(X, positive)
        self.n_chosen = len(positive)
        # Numbers of positives and of negatives among the first n rows, by n.
        self._n_pos, n_neg = (
            np.append(0, np.cumsum(mask)) for mask in (positive, ~positive)
        )
        # negatives in the top of n rows, by n
        self._n_top = k_by_size(beta, n_neg[-1])[n_neg]

    def lipschitz(self) -> NDArray[np.float64]:
        # A new negative of score s adds [f(s) - f(s_(m))]_+ or f(max(s, s_(m+1))), with
        # f(s) its hinges with all positives; a new positive adds its hinges with m
        # negatives. Each hinge moves like a difference of two scores.
        pairs = np.where(self.positive, self._n_top[1:], self._n_pos[1:])
        return 2 * self.largest_norm * pairs

    def evaluate(
        self, scores: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        positive = self.positive[: len(scores)]
        top = top_rows(scores, ~positive, self._n_top[len(scores)])
        return pair_hinges(scores, np.flatnonzero(positive), top)

    def extension(self, start, scores, chosen):
        """Return what new pairs with a hinge above 0 add.

        Mark in `chosen` the new negatives that enter the top: the highest, as many as
        the top grows by. A plane may keep the negatives it chose: any choice of as many
        negatives as the top has gives a bound below the loss.
        """
        n, positive = len(scores), self.positive[: len(scores)]
        new_neg = start + np.flatnonzero(~positive[start:])
        entering = top_rows(scores, new_neg, self._n_top[n] - self._n_top[start])
        value, by_scores = pair_hinges(scores, np.flatnonzero(positive), entering)
        # The pairs of entering negatives with all positives add the same to all planes.
        slopes, offsets = self.by_weights(by_scores), value - dot(by_scores, scores)
        new_pos, earlier = start + np.flatnonzero(positive[start:]), chosen[:, :start]
        if new_pos.size:  # pairs with the negatives that a plane chose before
            # By new positive and row: whether their pair has a hinge above 0.
            is_active = 1 + scores[:start] > scores[new_pos, np.newaxis]
            slopes, offsets = self._with_pairs(
                slopes, offsets, new_pos, earlier, is_active
            )
        chosen[:, entering] = True
        return slopes, offsets

    def _with_pairs(self, slopes, offsets, new_pos, earlier, is_active):
        # Return slopes and offsets by plane, with the active pairs of new positives i
        # and negatives j that the plane chose earlier: a pair adds x_j - x_i to the
        # slope and 1 to the offset. by plane and positive
        pairs_of_pos = earlier.astype(float) @ is_active.T.astype(float)
        # numbers of pairs by plane and negative
        pairs_of_neg = earlier * is_active.sum(axis=0)
        slopes = slopes + _weighted_sums(
            self._first(earlier.shape[1]), pairs_of_neg.astype(float)
        )
        slopes -= _weighted_sums(as_rows(self.X[new_pos]), pairs_of_pos)
        return slopes, offsets + pairs_of_pos.sum(axis=1)


def _weighted_sums(rows: Rows, coefs: NDArray[np.float64]) -> NDArray[np.float64]:
    # row by row
    return np.stack([weighted_sum(rows, coef, rows.n_features) for coef in coefs])


class Planes(Bundle):
    """Planes below the loss so far, and the best w in the ball against them."""

    _PATIENCE = 20
    _ARRAYS = (*Bundle._ARRAYS, "_chosen")

    def __init__(self, loss: IncrementalLoss, eta: float):
        n_features = loss.X.shape[1]
        super().__init__(
            1 / eta, n_features
        )  # eta/2 ||w||^2 + loss, over eta: C of `Bundle` is 1/eta
        self._strength = eta  # of the penalty strength/2 ||w||^2, which `solve` adapts
        self.loss = loss
        # by plane and row: see `add`
        self._chosen = np.empty((0, loss.n_chosen), dtype=bool)
        zero = np.zeros(n_features)
        # A plane at height 0, exact before the first row, so that `extend` always has a
        # plane.
        self.add(
            Point(zero, scores=np.empty(0), risk=0.0, subgradient=np.empty(0)),
            slope=zero,
        )

    def add(self, point: Point, slope: NDArray[np.float64]) -> None:
        """Add a plane, and note its chosen rows.

        The rows with a subgradient above 0.
        """
        super().add(point, slope)
        # empty if the loss needs no choices
        by_scores = point.subgradient[: self.loss.n_chosen]
        chosen = self._chosen[self._n_planes - 1]  # a view, changed in place
        chosen[:] = False
        chosen[: len(by_scores)] = by_scores > 0

    def extend(self, start: int, point: Point) -> None:
        """Extend all planes from the first `start` rows to all rows of `point`."""
        m = self._n_planes
        added, offsets = self.loss.extension(start, point.scores, self._chosen[:m])
        slopes, gram = self._slopes[:m], self._gram[:m, :m]  # views, changed in place
        # one a for all planes: (s + a)'(t + a) = s't + s'a + t'a + a'a
        if added.ndim == 1:
            products = linear_scores(as_rows(slopes), added)
            gram += products + products[:, np.newaxis] + dot(added, added)
        slopes += added
        self._offsets[:m] += offsets
        if added.ndim == 2:  # a slope for each plane: compute all products
            for i, slope in enumerate(slopes):
                gram[i, : i + 1] = gram[: i + 1, i] = linear_scores(
                    as_rows(slopes[: i + 1]), slope
                )

    def solve(
        self, eta: float, radius: float, tol: float
    ) -> tuple[NDArray[np.float64], Bound]:
        """Minimise ``eta/2 ||w||^2`` plus the highest plane over the ball.

        Return w and a bound.
        """
        # If the best w of the ball has the norm `radius`, this w is also the best of
        # all w for a stronger penalty, ``strength/2 ||w||^2``. A turn solves for one
        # strength; with its `next_strength` the same mean slope gives a w in the ball.
        # The strength sought is equal to its `next_strength`: secants of two turns lead
        # there. The bound holds after any turn.
        too_weak, too_strong = eta, np.inf  # strengths, around the strength sought
        strength_before = next_before = np.nan  # of the turn before: none yet
        for _ in range(_MOST_TURNS):
            self._rescale(max(eta, self._strength))  # plane weights sum to 1 / strength
            strength, w = self._strength, self._best(0.5 * tol)
            m = self._n_planes  # `_best` may have dropped planes
            next_strength = max(eta, strength * norm(w) / radius)
            w = w * (strength / next_strength)  # now in the ball
            heights = self._offsets[:m] + linear_scores(as_rows(self._slopes[:m]), w)
            primal = float(np.max(heights)) + 0.5 * eta * dot(w, w)
            bound = self.bound_in_ball(eta, radius)
            if primal - bound.value <= tol:
                break
            if next_strength > strength:  # w left the ball: the penalty is too weak
                too_weak = max(too_weak, strength)
            else:
                too_strong = min(too_strong, strength)
            # Go on with `next_strength`, or with a secant of two turns if it is in the
            # bracket.
            self._strength = next_strength
            if strength_before != strength:
                steepness = (next_strength - next_before) / (strength - strength_before)
                if steepness < 1:  # else the secant leads away, or is NaN in turn 1
                    secant = (next_strength - steepness * strength) / (1 - steepness)
                    self._strength = (
                        secant if too_weak < secant < too_strong else next_strength
                    )
            strength_before, next_before = strength, next_strength
        return w, bound

    def _best(self, tol: float) -> NDArray[np.float64]:
        """Return the best of all w, in the ball or not, for the current strength."""
        # calls until one returns True
        if any(self.improve(tol) for _ in range(_TRIES)):
            return self.weights()
        return self._active_set(tol)

    def _active_set(self, tol: float) -> NDArray[np.float64]:
        """Set `_alpha` and return the best w, by an active-set method.

        A turn moves towards the corner, the best w where all active planes have the
        same height. If there is no corner, the turn raises their mean height and keeps
        w. A plane whose share falls to 0 on the way is dropped. Else the highest plane
        at the new w becomes active.
        """
        m, strength = self._n_planes, self._strength
        slopes, offsets = self._slopes[:m], self._offsets[:m]
        shares = self._alpha[:m] / self._C  # the plane weights, scaled to a sum of 1
        active, w = shares > 0, -(shares @ slopes) / strength
        for _ in range(_MOST_TURNS + m):
            heights = offsets + slopes @ w
            # others: to reach the height of `first`
            first, *others = np.flatnonzero(active)
            others_change, w_change, length = self._towards_corner(
                edges=slopes[others] - slopes[first],
                rises=heights[first] - heights[others],
                # of penalty and mean plane, near 0
                gradient=strength * w + shares @ slopes,
                tol=tol,
            )
            change = np.zeros(m)
            # sums to 0
            change[others], change[first] = others_change, -others_change.sum()
            falls = np.flatnonzero(change < 0)
            # Go to the corner, or only until the first share reaches 0.
            # lengths at which these shares reach 0
            zero_at = shares[falls] / -change[falls]
            first_zero = zero_at.min(initial=np.inf)
            length = min(length, first_zero)
            shares, w = np.maximum(shares + length * change, 0.0), w + length * w_change
            if length == first_zero:  # before the corner: go on without this plane
                dropped = falls[np.argmin(zero_at)]
                # 0 exactly, not up to rounding
                shares[dropped], active[dropped] = 0.0, False
                continue
            heights = offsets + slopes @ w
            highest = int(np.argmax(heights))
            # the gap to the dual value
            if heights[highest] - float(shares @ heights) <= tol:
                break
            active[highest] = True
        self._alpha[:m] = shares * (self._C / shares.sum())
        return w

    def _towards_corner(
        self,
        edges: NDArray[np.float64],
        rises: NDArray[np.float64],
        gradient: NDArray[np.float64],
        tol: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        # Return the changes of the shares of all active planes but the first, the
        # change of w, and the factor of both changes that leads to the corner: 1, or
        # infinity if there is no corner. `edges` are the slopes of these planes less
        # that of the first, `rises` the height of the first less their heights. At the
        # corner ``edges @ w_change = rises``, and the gradient of penalty and mean
        # plane, ``gradient + strength w_change + edges' shares_change``, is 0. edges =
        # U diag(sizes) V
        U, sizes, V = np.linalg.svd(edges, full_matrices=False)
        rank = int(np.sum(sizes > _RANK * sizes.max(initial=0.0)))
        U, sizes, V = U[:, :rank], sizes[:rank], V[:rank]
        coordinates = U.T @ rises
        # the negative of the rises that no w_change brings
        unmet = U @ coordinates - rises
        # no corner: raise the mean height at the same w
        if np.abs(unmet).max(initial=0.0) > tol:
            return unmet, np.zeros_like(gradient), np.inf
        # Within the span of the edges the rises determine w_change, so that there
        # shares_change has to bring the gradient to 0; outside of the span w_change
        # does.
        w_within, gradient_within = coordinates / sizes, V @ gradient
        w_change = V.T @ w_within - (gradient - V.T @ gradient_within) / self._strength
        shares_change = -(U @ ((gradient_within + self._strength * w_within) / sizes))
        return shares_change, w_change, 1.0

    def bound_in_ball(self, eta: float, radius: float) -> Bound:
        """Return the least mean plane plus ``eta/2 ||w||^2`` in the ball."""
        m = self._n_planes
        shares = self._alpha[:m] / self._alpha[:m].sum()
        height = dot(shares, self._offsets[:m])  # of the mean plane at w = 0
        length = norm(self._weighted_slope(shares))
        if length <= eta * radius:  # the best w, -slope / eta or 0, is in the ball
            return Bound(
                height - (0.5 * length**2 / eta if eta else 0.0), curvature=eta
            )
        # The best w is -radius / length times the slope, on the sphere: that adds
        # curvature.
        return Bound(
            height - radius * (length - 0.5 * eta * radius), curvature=length / radius
        )

    def _rescale(self, strength: float) -> None:
        # the plane weights then sum to 1 / strength
        self._strength, self._C = strength, 1 / strength
        alpha = self._alpha[: self._n_planes]
        alpha *= self._C / alpha.sum()  # in place: a view

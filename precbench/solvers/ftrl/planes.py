"""Losses of the first n rows of a stream, and planes below them for any n."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from precbench.ranking.losses import pair_hinges, struct
from precbench.ranking.topk import k_by_n_pos, top_rows
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
# Calls of `improve`, each of up to 1,000 steps by pairs, before `_active_set` is used.
_TRIES = 8
_RANK = 1e-12  # singular values below this share of the largest count as 0


class Bound(NamedTuple):
    """A bound F(w) >= value + curvature/2 ||w - w_0||^2 in the ball, for some w_0.

    F is the loss plus the penalty eta/2 ||w||^2.
    """

    # By the penalty, if F(w) <= value + gap, the distance of w from the best w is at
    # most
    #     sqrt(2 gap / eta).
    # Both lie within r = sqrt(2 gap / curvature) of w_0: it is also at most 2 r.

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
        """Return what to add to slopes and offsets of planes for the rows from `start`.

        Before, each plane lies below the loss of the first `start` rows; after the
        addition it lies below the loss of all rows. At the w that gives the rows these
        `scores`, what is added is as high as it can be. It is one slope
        (n_features,) and one number for all planes, or a row of slopes and a number for
        each. `chosen` (n_planes, n_chosen), the negatives each plane has chosen, is
        updated in place.
        """

    def at(self, w: NDArray[np.float64], n: int) -> Point:
        """Return w with its loss and subgradient on the first `n` rows.

        Both are NaN where scores overflow.
        """
        scores = linear_scores(self._first(n), w)
        if not np.isfinite(scores).all():
            return Point(
                w, scores, risk=np.nan, subgradient=np.full_like(scores, np.nan)
            )
        loss, subgradient = self.evaluate(scores)
        return Point(w, scores, loss, subgradient)

    def by_weights(self, by_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the subgradient in w, ``X' by_scores`` over the first rows."""
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
        # The entry n is k for the first n rows: without `top` the number of positives.
        if top is None:
            self._n_ones = np.append(0, np.cumsum(positive))
        else:  # `top` is of the rows, which take the place of the positives
            self._n_ones = k_by_n_pos(top, len(positive))

    def lipschitz(self) -> NDArray[np.float64]:
        """Return 4 R, R the largest norm, for the G_t <= 8 of kar2014 on a ball.

        The bound G_t <= 8, in the scaling of its equation (3), is G_t <= 4 here, on a
        ball of half the radius. 2 R would be enough. A row adds to the sum of the k
        largest ``z_i = s_i + 1[y_i = 0]`` either ``max(0, z - z_(k))``, if k stays, or
        ``max(z, z_(k+1))``, if k grows; at each w, z_(k) moves like the score of one
        row.
        """
        return np.full(len(self.positive), 4 * self.largest_norm)

    def evaluate(
        self, scores: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        n = len(scores)
        return struct(scores, self.positive[:n], self._n_ones[n])

    def extension(self, start, scores, chosen):
        """Return a plane that touches the struct surrogate of the new rows.

        Their surrogate, with the ones that they add to k, is the least that they add to
        the loss. So all planes get the same slope and offset.
        """
        n = len(scores)
        n_new_ones = self._n_ones[n] - self._n_ones[start]
        value, by_new_scores = struct(
            scores[start:], self.positive[start:n], n_new_ones
        )
        by_scores = np.zeros(n)
        by_scores[start:] = by_new_scores
        return self.by_weights(by_scores), value - dot(by_scores, scores)


class IncrementalPartialAUC(IncrementalLoss):
    """The hinges of all pairs of a positive and one of the highest negatives."""

    def __init__(self, X: Any, positive: NDArray[np.bool_], beta: float):
        super().__init__(X, positive)
        self.n_chosen = len(positive)
        # Numbers of the positives, of the negatives, and of the negatives in the top
        # among the first n rows, by n.
        self._n_pos = np.append(0, np.cumsum(positive))
        n_neg = np.append(0, np.cumsum(~positive))
        # `beta` is a fraction of the negatives, in the place of the positives.
        self._n_top = k_by_n_pos(beta, n_neg[-1])[n_neg]

    def lipschitz(self) -> NDArray[np.float64]:
        """Return 2 R, R the largest norm, times the pairs that each row may add.

        With f(s) the sum of the hinges of a score s with all positives, and m negatives
        in the top, a new negative of score s adds

            max(0, f(s) - f(s_(m)))   or, if the top grows,   f(max(s, s_(m+1))).

        A new positive adds its hinges with m negatives. A hinge, or above 0 a hinge of
        s less that of s_(m) with the same positive, moves like a difference of two
        scores, or not at all.
        """
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
        slopes = self.by_weights(by_scores)
        offsets = value - dot(by_scores, scores)
        new_pos = start + np.flatnonzero(positive[start:])
        chosen_earlier = chosen[:, :start]
        if new_pos.size:  # pairs with the negatives that a plane chose before
            # Whether the pair of a new positive and an earlier row has a hinge above 0.
            is_active = 1 + scores[:start] > scores[new_pos, np.newaxis]
            slopes, offsets = self._with_pairs(
                slopes, offsets, new_pos, chosen_earlier, is_active
            )
        chosen[:, entering] = True
        return slopes, offsets

    def _with_pairs(self, slopes, offsets, new_pos, chosen_earlier, is_active):
        """Return slopes and offsets by plane, with the active pairs of new positives.

        The pairs are those of a new positive i and a negative j that the plane chose
        earlier. Each adds ``x_j - x_i`` to the slope and 1 to the offset.
        """
        # Numbers of pairs: by plane and new positive, and by plane and negative.
        pairs_of_pos = chosen_earlier.astype(float) @ is_active.T.astype(float)
        pairs_of_neg = (chosen_earlier * is_active.sum(axis=0)).astype(float)
        earlier_rows = self._first(chosen_earlier.shape[1])
        slopes = slopes + _weighted_sums(earlier_rows, pairs_of_neg)
        slopes -= _weighted_sums(as_rows(self.X[new_pos]), pairs_of_pos)
        return slopes, offsets + pairs_of_pos.sum(axis=1)


def _weighted_sums(rows: Rows, coefs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted sum of the rows for each row of `coefs`."""
    return np.stack([weighted_sum(rows, coef, rows.n_features) for coef in coefs])


class Planes(Bundle):
    """Planes below the loss so far, and the best w in the ball against them."""

    _PATIENCE = 20
    _ARRAYS = (*Bundle._ARRAYS, "_chosen")

    def __init__(self, loss: IncrementalLoss, eta: float):
        n_features = loss.X.shape[1]
        # A `Bundle` minimises 1/2 ||w||^2 + C loss: this is eta/2 ||w||^2 + loss,
        # divided by eta, for C = 1/eta.
        super().__init__(1 / eta, n_features)
        self._strength = eta  # of the penalty strength/2 ||w||^2, which `solve` adapts
        self.loss = loss
        # Whether a plane (n_planes) has chosen a row (n_chosen): see `add`.
        self._chosen = np.empty((0, loss.n_chosen), dtype=bool)
        # A plane at height 0 is exact before the first row, and gives `extend` a plane
        # to begin with.
        zero = np.zeros(n_features)
        before_first_row = Point(
            zero, scores=np.empty(0), risk=0.0, subgradient=np.empty(0)
        )
        self.add(before_first_row, slope=zero)

    def add(self, point: Point, slope: NDArray[np.float64]) -> None:
        """Add a plane; the rows with a subgradient above 0 are those it has chosen."""
        super().add(point, slope)
        by_scores = point.subgradient[: self.loss.n_chosen]  # none without choices
        chosen = self._chosen[self._n_planes - 1]  # a view, changed in place
        chosen[:] = False
        chosen[: len(by_scores)] = by_scores > 0

    def extend(self, start: int, point: Point) -> None:
        """Extend all planes from the first `start` rows to all rows of `point`."""
        m = self._n_planes
        added, offsets = self.loss.extension(start, point.scores, self._chosen[:m])
        self._offsets[:m] += offsets
        slopes, gram = self._slopes[:m], self._gram[:m, :m]  # views, changed in place
        if added.ndim == 1:  # the same a for all planes
            # (s + a)'(t + a) = s't + s'a + t'a + a'a
            products = linear_scores(as_rows(slopes), added)
            gram += products + products[:, np.newaxis] + dot(added, added)
            slopes += added
        else:  # one for each plane: compute all products anew
            slopes += added
            for i, slope in enumerate(slopes):
                products = linear_scores(as_rows(slopes[: i + 1]), slope)
                gram[i, : i + 1] = gram[: i + 1, i] = products

    def solve(
        self, eta: float, radius: float, tol: float
    ) -> tuple[NDArray[np.float64], Bound]:
        """Minimise ``eta/2 ||w||^2`` plus the highest plane over the ball.

        Return w and a bound, which holds after any turn.
        """
        # If the best w of the ball has the norm `radius`, this w is also the best of
        # all w for a stronger penalty, strength/2 ||w||^2. A turn solves for one
        # strength: w is the mean slope of the planes times -1/strength. If this w is
        # outside the ball, the `next_strength` would shrink it to the sphere.
        search = _StrengthSearch(eta)
        for _ in range(_MOST_TURNS):
            self._rescale(max(eta, self._strength))
            strength = self._strength
            w = self._best(0.5 * tol)
            m = self._n_planes  # `_best` may have dropped planes
            next_strength = max(eta, strength * norm(w) / radius)
            w = w * (strength / next_strength)  # now in the ball
            heights = self._offsets[:m] + linear_scores(as_rows(self._slopes[:m]), w)
            primal = float(np.max(heights)) + 0.5 * eta * dot(w, w)
            bound = self.bound_in_ball(eta, radius)
            if primal - bound.value <= tol:
                break
            self._strength = search.after(strength, next_strength)
        return w, bound

    def _best(self, tol: float) -> NDArray[np.float64]:
        """Return the best of all w, in the ball or not, for the current strength."""
        for _ in range(_TRIES):
            if self.improve(tol):
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
        active = shares > 0
        w = -(shares @ slopes) / strength
        for _ in range(_MOST_TURNS + m):
            heights = offsets + slopes @ w
            first, *others = np.flatnonzero(active)
            move = self._towards_corner(
                edges=slopes[others] - slopes[first],
                rises=heights[first] - heights[others],
                gradient=strength * w + shares @ slopes,
                tol=tol,
            )
            change = np.zeros(m)  # of the shares: sums to 0
            change[others] = move.others_change
            change[first] = -move.others_change.sum()
            # Go to the corner, or only until the first share reaches 0.
            falling = np.flatnonzero(change < 0)
            lengths_to_0 = shares[falling] / -change[falling]
            length_to_0 = lengths_to_0.min(initial=np.inf)
            length = min(move.length, length_to_0)
            shares = np.maximum(shares + length * change, 0.0)
            w = w + length * move.w_change
            if length == length_to_0:  # before the corner: go on without this plane
                dropped = falling[np.argmin(lengths_to_0)]
                shares[dropped] = 0.0  # exactly, not up to rounding
                active[dropped] = False
                continue
            heights = offsets + slopes @ w
            highest = int(np.argmax(heights))
            gap = heights[highest] - float(shares @ heights)  # to the dual value
            if gap <= tol:
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
    ) -> "_Move":
        """Return the move to the corner of the active planes.

        `edges` are the slopes of all active planes but the first, less that of the
        first; `rises` are what they have to rise by, the height of the first less their
        heights; `gradient`, near 0, is that of penalty and mean plane.
        """
        # At the corner
        #     edges @ w_change = rises,
        #     gradient + strength w_change + edges' others_change = 0.
        # These are solved by the singular values, edges = U diag(sizes) V.
        U, sizes, V = np.linalg.svd(edges, full_matrices=False)
        rank = int(np.sum(sizes > _RANK * sizes.max(initial=0.0)))
        U, sizes, V = U[:, :rank], sizes[:rank], V[:rank]
        coordinates = U.T @ rises
        unmet_rises = rises - U @ coordinates  # those that no w_change brings
        if np.abs(unmet_rises).max(initial=0.0) > tol:
            # There is no corner: raise the mean height at the same w.
            return _Move(-unmet_rises, np.zeros_like(gradient), length=np.inf)
        # Within the span of the edges the rises determine w_change, so that there
        # others_change has to bring the gradient to 0; outside of the span w_change
        # does.
        w_within = coordinates / sizes
        gradient_within = V @ gradient
        w_change = V.T @ w_within - (gradient - V.T @ gradient_within) / self._strength
        others_change = -(U @ ((gradient_within + self._strength * w_within) / sizes))
        return _Move(others_change, w_change, length=1.0)

    def bound_in_ball(self, eta: float, radius: float) -> Bound:
        """Return the least mean plane plus ``eta/2 ||w||^2`` in the ball."""
        m = self._n_planes
        shares = self._alpha[:m] / self._alpha[:m].sum()
        height = dot(shares, self._offsets[:m])  # of the mean plane at w = 0
        length = norm(self._weighted_slope(shares))  # of the slope of the mean plane
        if length <= eta * radius:  # the best w, -slope / eta or 0, is in the ball
            fall = 0.5 * length**2 / eta if eta else 0.0
            return Bound(height - fall, curvature=eta)
        # The best w, -radius / length times the slope, is on the sphere, which adds
        # curvature.
        fall = radius * (length - 0.5 * eta * radius)
        return Bound(height - fall, curvature=length / radius)

    def _rescale(self, strength: float) -> None:
        """Set the strength of the penalty; plane weights then sum to 1 / strength."""
        self._strength = strength
        self._C = 1 / strength
        alpha = self._alpha[: self._n_planes]
        alpha *= self._C / alpha.sum()  # in place: a view


class _StrengthSearch:
    """The search for a strength of the penalty that is its own `next_strength`."""

    def __init__(self, eta: float):
        self._too_weak = eta  # the strength sought lies between these two
        self._too_strong = np.inf
        self._previous_strength = np.nan  # of the turn before: none yet
        self._previous_next = np.nan

    def after(self, strength: float, next_strength: float) -> float:
        """Return the strength to try after a turn.

        It is the secant of the last two turns if this leads to the strength sought,
        else `next_strength`.
        """
        if next_strength > strength:  # w left the ball: the penalty is too weak
            self._too_weak = max(self._too_weak, strength)
        else:
            self._too_strong = min(self._too_strong, strength)
        to_try = next_strength
        if self._previous_strength != strength:
            rise = next_strength - self._previous_next
            steepness = rise / (strength - self._previous_strength)
            if steepness < 1:  # else the secant leads away; NaN after the first turn
                secant = (next_strength - steepness * strength) / (1 - steepness)
                if self._too_weak < secant < self._too_strong:
                    to_try = secant
        self._previous_strength = strength
        self._previous_next = next_strength
        return to_try


class _Move(NamedTuple):
    """Changes that lead to a corner of planes if they are multiplied by `length`."""

    others_change: NDArray[np.float64]  # of the shares of all planes but the first
    w_change: NDArray[np.float64]
    length: float  # 1, or infinite if there is no corner

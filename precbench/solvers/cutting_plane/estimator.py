"""The cutting-plane method on the risk of all training rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.losses import OBJECTIVES, PrecisionAtK
from precbench.ranking.topk import TopK, top_rows
from precbench.solvers.common.base import LinearRanker, Trace, top_of_training, warn
from precbench.solvers.common.parameters import (
    BOOLEAN,
    COUNT,
    POSITIVE,
    SHARE,
    Allowed,
    K,
    one_of,
)
from precbench.solvers.common.rows import (
    STORED,
    as_rows,
    dot,
    linear_scores,
    weighted_sum,
)
from precbench.solvers.cutting_plane.bundle import Bundle, Point
from precbench.solvers.cutting_plane.kernel import worst_table

# A function of scores and a mask of the positives, which returns a loss and its
# subgradient in the scores.
_Evaluate = Callable[
    [NDArray[np.float64], NDArray[np.bool_]], tuple[float, NDArray[np.float64]]
]
_MOST_PROBES = 5  # points of a line that a search for a smaller P tries
# The second plane of an iteration touches the risk this share of the way from the best
# point to the iterate.
_FROM_BEST = 0.1


@dataclass(kw_only=True, eq=False, repr=False)
class CuttingPlane(LinearRanker):
    """Cutting planes, as SVMperf: minimise a regularised risk of all training rows.

    The problem, in the scaling of SVMperf, is

        P(w) = 1/2 ||w||^2 + C R(w),   R a loss in percent,

    with the risk R of the objective, in the scores s = X w of n rows, n_pos of them
    positive and n_neg negative:

    ``prec@k``
        ``100 max [#(ones on negatives) / k + 1/n sum_i (y'_i - y_i) s_i]`` over the
        labellings y' with k ones: 100/k times the struct surrogate at the scores
        ``k/n s``. With k = n_pos it is the break-even point (PRBEP). With `at_least_k`:
        over the labellings with m >= k ones, and their loss divided by m.
    ``pauc``, ``auc``
        100 times the mean of the hinges ``max(0, 1 - (s_i - s_j))`` over the pairs of a
        positive i and one of the ``ceil(beta n_neg)`` highest negatives j, or over all
        pairs.
    ``f1``
        ``100 max [1 - F1(y, y') + 1/n sum_i (y'_i - y_i) s_i]`` over all labellings y'.

    Each iteration adds planes that touch R from below and solves for the best w against
    all planes (1-slack): the next iterate, and a lower bound of P. The smallest P so
    far is sought on the line from the best w to each iterate; the second plane of an
    iteration is taken on that line, near the best w, which damps the zig-zag of the
    iterates. The method is the batch baseline of the papers: exact, with a proof of its
    gap, and slow on many rows.

    Parameters
    ----------
    objective : {"prec@k", "pauc", "f1", "auc"}, default="prec@k"
        The risk, see above.
    k : float, int or str, default=0.25
        Length of the top of the list, for "prec@k" only. An int is a number of rows, a
        float in (0, 1] a fraction of the positives, and text such as "1 %" a fraction
        of the rows; fractions are rounded up. So 1 is a single row, and 1.0 as many
        rows as there are positives. Training takes at most as many rows as there are
        positives, and warns if `k` is more.
    beta : float, default=0.1
        Fraction of the negatives in (0, 1], rounded up, that form pairs; for "pauc"
        only.
    at_least_k : bool, default=False
        For "prec@k" only: whether to take the risk that SVMperf minimises, whose
        labellings have k ones or more. It appends a constant column to the rows.
    C : float, default=1.0
        Weight of the risk, above 0.
    tol : float, default=1e-3
        Stop when the smallest P exceeds the lower bound by at most this fraction of
        itself, a number above 0.
    max_iter : int, default=5000
        Most iterations, at least 1; each visits all rows.
    keep : {"last", "best"}, default="last"
        Which w is the model: that of the "last" iterate, or the "best", of the smallest
        P.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``, plus `intercept_` if
        there is one.
    intercept_ : float
        Weight of a constant column, part of w also where the norm of w is taken. Only
        if the objective is "f1", or "prec@k" with `at_least_k`.
    best_weights_ : ndarray of shape (n_features,) or (n_features + 1,)
        The w of the smallest P; an intercept comes last.
    primal_ : float
        The smallest P so far.
    lower_bound_ : float
        A number that no P(w) goes below, except for rounding.
    gap_ : float
        `primal_` less `lower_bound_`. `best_weights_` and the last iterate lie within
        ``sqrt(2 gap_)`` of the minimiser, except for rounding.
    primal_path_ : ndarray of shape (n_iter,)
        P of each iterate.
    best_path_ : ndarray of shape (n_iter,)
        The smallest P after each iteration.
    lower_bound_path_ : ndarray of shape (n_iter,)
        The lower bound after each iteration.
    converged_ : bool
        Whether `gap_` is at most `tol` times the absolute value of `primal_`.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. With "prec@k"
        the first `k` training rows score above it, with other objectives as many as
        there are positives, except for ties. Only after a `fit` without a trace, and
        not with an `intercept_`.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Iterations so far: iterates that were assessed.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each iteration.

    Notes
    -----
    R of "prec@k" with k < n_pos is not cut off at 0, and without `at_least_k` has no
    intercept. There SVMperf solves another problem: it takes at least k ones, has a
    slack variable that is not negative, and appends a constant column. It also stops at
    a gap of 0.1 C; where the minimum is flat, as for rare positives that no w ranks
    first, w then depends on chance.

    A `ConvergenceWarning` says that `max_iter` iterations, or double precision, did not
    bring the gap down to `tol`.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML
    2005, for the risks "prec@k" and "f1". The first is, up to its scaling, (3) of
    kar2015 (Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the
    top", ICML 2015). Joachims, Finley, Yu, "Cutting-plane training of structural SVMs",
    Machine Learning 2009, for the 1-slack method. Narasimhan, Agarwal, "SVM pAUC
    tight", KDD 2013, for "pauc". Franc, Sonnenburg, "Optimized cutting plane algorithm
    for support vector machines", ICML 2008, for the search along the line.

    Examples
    --------
    >>> from precbench import CuttingPlane
    >>> ranker = CuttingPlane("auc", C=0.01).fit([[1.0], [-1.0]], [1, 0])
    >>> ranker.coef_.round(3).tolist()  # the minimiser of w**2 / 2 + max(0, 1 - 2 w)
    [0.5]
    >>> round(ranker.primal_, 3), ranker.converged_
    (0.125, True)
    """

    objective: str = field(default="prec@k", kw_only=False)
    k: TopK = 0.25
    beta: float = 0.1
    at_least_k: bool = False
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = 5000
    keep: str = "last"

    algorithm_version = 2
    row_cost = 4.0
    dtypes = STORED

    allowed = Allowed(
        objective=one_of(*OBJECTIVES),
        k=K,
        beta=SHARE,
        at_least_k=BOOLEAN,
        C=POSITIVE,
        tol=POSITIVE,
        max_iter=COUNT,
        keep=one_of("last", "best"),
    )

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Add planes below the risk, and minimise over them, until P is near its bound.

        A turn assesses the iterate, which is 0 in the first turn, adds planes there and
        near `best`, the point of the least P, and finds the next iterate.
        """
        risk = TrainingRisk(
            X,
            labels,
            self.objective,
            k=self.k,
            beta=self.beta,
            at_least=self.at_least_k,
        )
        self.best_weights_ = np.zeros(risk.n_weights)
        self._publish(self.best_weights_, has_intercept=risk.has_intercept)
        self.n_iter_ = self.n_rows_seen_ = 0
        self.primal_ = self.gap_ = np.inf  # no P has been computed yet
        self.lower_bound_ = -np.inf
        self.primal_path_ = self.best_path_ = self.lower_bound_path_ = np.empty(0)
        self.converged_ = False
        if trace(self):  # before any row is read
            return
        bundle = Bundle(self.C, risk.n_weights)
        best = iterate = risk.at(self.best_weights_)
        while True:
            tangent_points = [iterate]
            is_first = self.n_iter_ == 0  # then the iterate is `best`
            if not is_first and np.isfinite(iterate.risk):
                best = _search(best, iterate, risk, self.C, self.lower_bound_)
                near_best = risk.between(best, iterate, _FROM_BEST)
                tangent_points.append(near_best)
            self._assess(iterate, best, risk)
            if trace(self) or self.converged_ or self._gave_up():
                break
            for point in tangent_points:
                bundle.add(point, risk.subgradient(point))
            if not self._solve(bundle, trace):
                break
            self.lower_bound_ = max(self.lower_bound_, bundle.bound())
            iterate = risk.at(bundle.weights())

    def _assess(self, iterate: Point, best: Point, risk: "TrainingRisk") -> None:
        """Publish the model, the regularised risk P with its bounds, and counters."""
        model = best if self.keep == "best" else iterate
        self._publish(model.w, has_intercept=risk.has_intercept)
        self.best_weights_ = best.w
        self.primal_ = best.primal(self.C)
        self.gap_ = self.primal_ - self.lower_bound_
        self.primal_path_ = np.append(self.primal_path_, iterate.primal(self.C))
        self.best_path_ = np.append(self.best_path_, self.primal_)
        self.lower_bound_path_ = np.append(self.lower_bound_path_, self.lower_bound_)
        self.converged_ = bool(self.gap_ <= self.tol * abs(self.primal_))
        self.n_iter_ += 1
        self.n_rows_seen_ += len(iterate.scores)

    def _gave_up(self) -> bool:
        """Return whether the fit ends by an overflow or, with a warning, `max_iter`."""
        if not np.isfinite(self.primal_path_[-1]):
            # `fit` reports these weights as an overflow.
            self.coef_ = np.full_like(self.coef_, np.nan)
            return True
        if self.n_iter_ == self.max_iter:
            warn(
                f"CuttingPlane has not converged: gap_ is {self.gap_:.3g} after "
                f"max_iter={self.max_iter} iterations; raise max_iter or tol"
            )
            return True
        return False

    def _solve(self, bundle: Bundle, trace: Trace) -> bool:
        """Find the weights of the planes.

        Return False if rounding or the trace ends the fit.
        """
        gap = self.gap_ if np.isfinite(self.gap_) else 0.0  # none before a solution
        final_gap = self.tol * abs(self.primal_)
        # The solution may be off by a small part of the gap, or of the gap at the end.
        allowed = max(0.02 * gap, 0.1 * final_gap)
        while not bundle.improve(allowed / self.C):
            if bundle.is_stuck:
                warn(
                    f"CuttingPlane has not converged: gap_ is {self.gap_:.3g} after"
                    f" {self.n_iter_} iterations, and double precision allows no"
                    " smaller gap; scale the features, or take a smaller C"
                )
                return False
            if trace(self):
                return False
        return True


class TrainingRisk:
    """The risk R(w) of `CuttingPlane` in percent; w may end with an intercept."""

    def __init__(
        self,
        X: Any,
        labels: NDArray[np.int8],
        objective: str,
        *,
        k: TopK,
        beta: float,
        at_least: bool = False,
    ):
        self._rows = as_rows(X)
        self._positive = labels > 0
        n = len(labels)
        n_pos = int(np.count_nonzero(self._positive))
        # In the scores s
        #     risk = percent * evaluate(s / spread).
        # For "prec@k" and "f1" the spread turns the weight of s in `evaluate` into the
        # 1/n of `CuttingPlane`.
        self._evaluate: _Evaluate
        self._spread: float
        if objective == "prec@k" and at_least:  # weighs s by 1
            self._evaluate = partial(_at_least_k, k=top_of_training(k, labels))
            self._percent = 100.0
            self._spread = n
            self.has_intercept = True  # as in SVMperf
        elif objective == "prec@k":  # weighs s by 1, and is k times the risk
            top = top_of_training(k, labels)
            self._evaluate = PrecisionAtK(top).evaluate
            self._percent = 100.0 / top
            self._spread = n / top
            self.has_intercept = False
        else:
            parameters = {"beta": beta} if objective == "pauc" else {}
            self._evaluate = OBJECTIVES[objective](**parameters).evaluate
            self._percent = 100.0
            # "f1" weighs s by 1/n_pos; "auc" and "pauc" are hinges of s itself.
            self._spread = n / n_pos if objective == "f1" else 1.0
            self.has_intercept = OBJECTIVES[objective].has_threshold
        self._n_features = X.shape[1]  # without the intercept
        self.n_weights = X.shape[1] + self.has_intercept

    def at(self, w: NDArray[np.float64]) -> Point:
        """Return w with its scores, risk and subgradient."""
        scores = linear_scores(self._rows, w[: self._n_features])
        if self.has_intercept:
            scores = scores + w[-1]
        return self._point(w, scores)

    def between(self, start: Point, end: Point, t: float) -> Point:
        """Return the point ``start + t (end - start)``, and its scores likewise."""
        scores = end.scores - start.scores
        scores *= t  # in place, as below: no further arrays of n_rows
        scores += start.scores
        return self._point(start.w + t * (end.w - start.w), scores)

    def _point(self, w: NDArray[np.float64], scores: NDArray[np.float64]) -> Point:
        """Return w with its scores, risk and subgradient by scores.

        Risk and subgradient are NaN where scores have overflowed.
        """
        if not np.isfinite(scores).all():
            return Point(
                w, scores, risk=np.nan, subgradient=np.full_like(scores, np.nan)
            )
        spread_scores = scores if self._spread == 1 else scores / self._spread
        value, subgradient = self._evaluate(spread_scores, self._positive)
        # By the chain rule, from that of `value` by the spread scores.
        subgradient *= self._percent / self._spread
        return Point(w, scores, self._percent * value, subgradient)

    def subgradient(self, point: Point) -> NDArray[np.float64]:
        """Return the subgradient by weights, that by an intercept last."""
        by_scores = point.subgradient
        by_weights = weighted_sum(self._rows, by_scores, self._n_features)
        if self.has_intercept:
            return np.append(by_weights, by_scores.sum())
        return by_weights


def _at_least_k(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], k: int
) -> tuple[float, NDArray[np.float64]]:
    """Return the risk of `at_least_k`, and a subgradient by the scores s.

    The risk is the share of negatives among the ones, plus ``sum_i (y'_i - y_i) s_i``,
    for the worst labelling y' with k ones or more: with ones on the `n_true` highest
    positives and the `n_false` highest negatives.
    """
    pos, neg = np.flatnonzero(positive), np.flatnonzero(~positive)
    descending_pos = -np.sort(-scores[pos])
    descending_neg = -np.sort(-scores[neg])
    n_true, n_false = worst_table(descending_pos, descending_neg, k)
    # y' - y is -1 on positives without a one, 1 on negatives with a one, else 0.
    subgradient = np.zeros_like(scores)
    subgradient[pos] = -1
    subgradient[top_rows(scores, pos, n_true)] = 0
    subgradient[top_rows(scores, neg, n_false)] = 1
    return n_false / (n_true + n_false) + dot(subgradient, scores), subgradient


class _Tangent(NamedTuple):
    """A line ``offset + slope t`` below a convex function."""

    offset: float
    slope: float

    def at(self, t: float) -> float:
        return self.offset + self.slope * t


class _Parabola(NamedTuple):
    """The function ``constant + linear t + 1/2 square t^2``."""

    constant: float
    linear: float
    square: float

    def at(self, t: float) -> float:
        return self.constant + t * (self.linear + 0.5 * t * self.square)

    def slope_at(self, t: float) -> float:
        return self.linear + t * self.square


def _search(
    best: Point, iterate: Point, risk: TrainingRisk, C: float, lower_bound: float
) -> Point:
    """Return the point of the least P on the ray from the best point to the iterate."""
    # At w = origin.w + t direction
    #     P = penalty(t) + C risk(t),   penalty(t) = 1/2 ||w||^2.
    # The convex risk lies above its tangents `left` and `right` at the ends of an
    # interval of t around the minimum of P. The next probe, which becomes a new end, is
    # where the penalty plus the higher of these tangents is least.
    origin = best
    direction = iterate.w - origin.w
    scores_change = iterate.scores - origin.scores  # per unit of t
    penalty = _Parabola(
        constant=0.5 * dot(origin.w, origin.w),
        linear=dot(origin.w, direction),
        square=dot(direction, direction),
    )

    def tangent(t: float, point: Point) -> _Tangent:  # of C times the risk, at t
        slope = C * dot(point.subgradient, scores_change)
        return _Tangent(C * point.risk - slope * t, slope)

    left = tangent(0.0, origin)
    right: _Tangent | None = None  # no right end yet
    is_rising = penalty.linear + left.slope >= 0
    is_too_short = not penalty.square  # for the ray to tell
    if is_rising or is_too_short:
        return best
    probe = iterate
    t = 1.0  # where the iterate is
    for _ in range(_MOST_PROBES):
        if probe.primal(C) < best.primal(C):
            best = probe
        latest = tangent(t, probe)
        slope = penalty.slope_at(t) + latest.slope  # of P at t
        if slope < 0:  # the minimum lies beyond
            left = latest
        else:
            right = latest
        t = _lowest(penalty, left, right)
        tangents = [left] if right is None else [left, right]
        # No point of the ray has P < least. Stop if P = least would close at most 10 %
        # of the gap.
        least = penalty.at(t) + max(line.at(t) for line in tangents)
        gap = best.primal(C) - lower_bound
        if best.primal(C) - least <= 0.1 * gap:
            break
        probe = risk.between(origin, iterate, t)
    return best


def _lowest(parabola: _Parabola, left: _Tangent, right: _Tangent | None) -> float:
    """Return the t of the least value of a parabola plus the higher of two tangents."""
    # Before the crossing the left tangent is the higher one, after it the right one.
    lowest_on_left = -(parabola.linear + left.slope) / parabola.square
    if right is None:
        return lowest_on_left
    if right.slope <= left.slope:  # for a convex risk by rounding only
        return lowest_on_left
    lowest_on_right = -(parabola.linear + right.slope) / parabola.square
    crossing = (left.offset - right.offset) / (right.slope - left.slope)
    if lowest_on_left < crossing:
        return lowest_on_left
    if lowest_on_right > crossing:
        return lowest_on_right
    return crossing  # falling before it, rising after it

"""TopPush: the positives above the highest negatives, by descent in the dual."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.ranking.topk import ceil_share
from precbench.solvers.common.base import LinearRanker, Trace
from precbench.solvers.common.parameters import COUNT, POSITIVE, SHARE_OR_COUNT, Allowed
from precbench.solvers.common.rows import (
    STORED,
    as_rows,
    dot,
    linear_scores,
    weighted_sum,
)
from precbench.solvers.toppush.kernel import project, project_capped


class _Point(NamedTuple):
    """Dual variables c, ``v = X' c`` and ``scores = X v``, which are linear in c."""

    c: NDArray[np.float64]
    v: NDArray[np.float64]
    scores: NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class TopPush(LinearRanker):
    """TopPush: push the positives above the highest negatives, in linear time.

    The problem, with m positives i and the negatives j, is

        P(w) = 1/2 ||w||^2 + C/m sum_i max(0, 1 + t(w) - <w, x_i>)^2,
        t(w) = mean of the K largest <w, x_j>.

    With K = 1 a positive costs nothing once it lies above all negatives by a margin of
    1, and the method suits lists that shall begin with positives only; a larger K
    tolerates some negatives among them. The dual has a variable c for each row, not
    negative for positives, not positive for negatives, of sum 0, and on no negative
    larger than 1/K of the sum over the positives:

        D(c) = C/m sum_i (c_i - c_i^2 / 4) - 1/2 ||w||^2,   w = C/m sum_r c_r x_r,

    the last sum being over all rows r.

    Each iteration is a step of Nesterov's accelerated gradient method in c, restarted
    whenever it turns back.

    Parameters
    ----------
    top_negatives : int or float, default=1
        Number K of the highest negatives above which the positives are pushed. An int,
        at least 1, is a count; a float in (0, 1] is a fraction of the negatives,
        rounded up. The solver "toppush-k" has 0.05.
    C : float, default=1.0
        Weight of the loss, above 0; the paper's lambda is 1 / C.
    tol : float, default=1e-4
        Stop when P exceeds its lower bound by at most this fraction of itself, a number
        above 0.
    max_iter : int, default=100
        Most iterations, at least 1. Each takes two products with the rows, and one more
        for each time that it shortens its step. Worth tuning, see the notes.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    primal_ : float
        P at `coef_`.
    lower_bound_ : float
        The largest D so far, a number that no P(w) goes below, except for rounding.
    gap_ : float
        `primal_` less `lower_bound_`; `coef_` lies within ``sqrt(2 gap_)`` of the
        minimiser.
    converged_ : bool
        Whether `gap_` is at most `tol` times `primal_`.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Iterations so far.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each iteration.

    Raises
    ------
    InputError
        By `fit`, if `top_negatives` is a count of more negatives than there are.

    Notes
    -----
    The minimiser is w = 0, whatever C, where the mean of the positives is a weighted
    mean of the negatives with no weight above 1/K: for K = 1, where it lies in their
    convex hull, as it does on most large sets with few features. What ranks there is an
    iterate, which `max_iter` decides. A fit that ends at `max_iter` gives no warning.

    Algorithm 1 of the paper projects for K = 1 alone; a larger K bounds the variables
    of the negatives besides.

    References
    ----------
    Li, Jin, Zhou, "Top rank optimization in linear time", NIPS 2014: equation (4) with
    the truncated quadratic loss, Theorem 1 and Algorithm 1, for K = 1. Zhang et al.,
    "tau-FPL: tolerance-constrained learning in linear time", AAAI 2018, for K as a
    share. Adam, Macha, Smidl, Pevny, "General framework for binary classification on
    top samples", 2020 (TopPushK), and Macha, Adam, Smidl, "Nonlinear classifiers for
    ranking problems based on kernelized SVM", 2020, for the dual. O'Donoghue, Candes,
    "Adaptive restart for accelerated gradient schemes", 2015, for the restart.

    Examples
    --------
    >>> from precbench import TopPush
    >>> X, y = [[2.0], [0.0], [0.0], [3.0]], [1, 0, 0, 0]
    >>> for K in (1, 3):  # the positive lies between negatives, but not at their mean
    ...     print(K, abs(TopPush(top_negatives=K).fit(X, y).coef_[0]).round(2))
    1 0.0
    3 0.67
    """

    top_negatives: int | float = 1
    C: float = 1.0
    tol: float = 1e-4
    max_iter: int = 100

    dtypes = STORED

    allowed = Allowed(
        top_negatives=SHARE_OR_COUNT, C=POSITIVE, tol=POSITIVE, max_iter=COUNT
    )
    row_cost = 2.0

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Maximise the dual D by projected gradient steps with momentum."""
        # They minimise -D divided by C/m, which is
        #     f(c) = C/m ||v||^2 / 2 + sum_i (c_i^2 / 4 - c_i),   i positive.
        # Each step starts from `ahead`, the current iterate extrapolated by its
        # momentum.
        rows = as_rows(X)
        n_top = self._count(int(np.count_nonzero(labels < 0)))  # K
        is_positive = (labels > 0).astype(np.float64)  # 1 or 0
        weight = self.C / is_positive.sum()  # C/m
        self._start(rows.n_features)
        self.primal_ = self.C  # P(0) = C, as 1 + t(0) - <0, x_i> = 1
        self.lower_bound_ = 0.0  # D(0)
        self.gap_ = self.primal_
        self.converged_ = False
        current = ahead = _Point(
            c=np.zeros(rows.n_rows),
            v=np.zeros(rows.n_features),
            scores=np.zeros(rows.n_rows),
        )
        momentum = 1.0
        lipschitz = 1.0  # the step has the length 1 / lipschitz
        while not trace(self) and self.n_iter_ < self.max_iter and not self.converged_:
            # The gradient of f at `ahead` is C/m X v + c_i / 2 - 1, the last two terms
            # for positives only.
            gradient = weight * ahead.scores + is_positive * (ahead.c / 2 - 1)
            # Shorten the step until its quadratic model bounds f from above.
            while True:
                c = _project(ahead.c - gradient / lipschitz, labels, n_top)
                v = weighted_sum(rows, c, rows.n_features)  # X' c
                step = c - ahead.c
                change = v - ahead.v
                # The second derivative of f along the step, times the square of its
                # length.
                curvature = (
                    weight * dot(change, change) + dot(is_positive * step, step) / 2
                )
                is_too_long = curvature > lipschitz * dot(step, step)
                if not is_too_long:
                    break
                lipschitz *= 2  # never halved again: the steps only get shorter
            previous = current
            current = _Point(c, v, linear_scores(rows, v))
            self._assess(current, labels, weight, n_top)
            if not np.isfinite(self.gap_):
                # `fit` reports these weights as an overflow.
                self.coef_ = np.full_like(self.coef_, np.nan)
                return
            turns_back = dot(step, current.c - previous.c) < 0
            if turns_back:  # the step went against the move of the iterates: restart
                ahead, momentum = current, 1.0
            else:
                ahead, momentum = _extrapolate(previous, current, momentum)

    def _count(self, n_neg: int) -> int:
        """Return K, the parameter `top_negatives`, as a count of negatives."""
        if not isinstance(self.top_negatives, Integral):
            return ceil_share(float(self.top_negatives), n_neg)
        if self.top_negatives > n_neg:
            raise InputError(
                f"top_negatives = {self.top_negatives} exceeds the number of negatives,"
                f" {n_neg}; give a smaller count, or a fraction of the negatives in"
                " (0, 1]"
            )
        return int(self.top_negatives)

    def _assess(
        self, point: _Point, labels: NDArray[np.int8], weight: float, n_top: int
    ) -> None:
        """Publish the weights of a point; update P, its bound D and the counters."""
        positive = labels > 0
        w = weight * point.v  # C/m X' c
        scores = weight * point.scores  # X w
        half_square = weight**2 * dot(point.v, point.v) / 2  # 1/2 ||w||^2
        self._publish(w)
        # P(w) = 1/2 ||w||^2 + C/m sum_i max(0, 1 + t(w) - <w, x_i>)^2
        t = _mean_of_highest(scores[~positive], n_top)
        hinges = np.maximum(0.0, 1 + t - scores[positive])
        self.primal_ = half_square + weight * dot(hinges, hinges)
        # D(c) = C/m sum_i (c_i - c_i^2 / 4) - 1/2 ||w||^2
        c_pos = point.c[positive]
        total = dot(c_pos, np.ones_like(c_pos))  # with equal bits on any machine
        bound = weight * (total - dot(c_pos, c_pos) / 4) - half_square
        self.lower_bound_ = max(self.lower_bound_, bound)
        self.gap_ = self.primal_ - self.lower_bound_
        self.converged_ = bool(self.gap_ <= self.tol * self.primal_)
        self.n_iter_ += 1
        self.n_rows_seen_ += len(labels)


def _extrapolate(
    previous: _Point, current: _Point, momentum: float
) -> tuple[_Point, float]:
    """Return the point ahead, to which momentum carries, and the next momentum.

    The momenta are Nesterov's sequence.
    """
    next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
    factor = (momentum - 1) / next_momentum
    ahead = _Point(
        c=current.c + factor * (current.c - previous.c),
        v=current.v + factor * (current.v - previous.v),
        scores=current.scores + factor * (current.scores - previous.scores),
    )
    return ahead, next_momentum


def _project(
    point: NDArray[np.float64], labels: NDArray[np.int8], n_top: int
) -> NDArray[np.float64]:
    """Return the nearest c to `point` that satisfies the constraints of D.

    The constraints are those of `TopPush`.
    """
    c = np.empty_like(point)  # written by the kernels
    if n_top == 1:
        project(point, labels, c)
    else:
        # The kernel needs the K-th largest -point of a negative, and the next largest.
        parted = np.partition(-point[labels < 0], -n_top)  # the K largest come last
        kth_largest = parted[-n_top]
        next_largest = parted[:-n_top].max(initial=-np.inf)
        project_capped(point, labels, n_top, kth_largest, next_largest, c)
    return c


def _mean_of_highest(scores: NDArray[np.float64], count: int) -> float:
    """Return the mean of the `count` highest scores."""
    lowest = np.partition(scores, -count)[-count]  # of the `count` highest
    # Relative to `lowest`, so that the mean of equal scores is exactly their value.
    above = np.maximum(scores - lowest, 0)  # 0 for all other scores
    return lowest + dot(above, np.ones_like(above)) / count

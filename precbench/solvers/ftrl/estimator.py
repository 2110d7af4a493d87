"""Follow the regularised leader, for losses that are not sums over the rows."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from precbench.solvers.common.base import LinearRanker, Trace, untraced, warn
from precbench.solvers.common.driver import Shuffle, visiting_order
from precbench.solvers.common.parameters import (
    BOOLEAN,
    COUNT,
    POSITIVE,
    SEED,
    SHARE,
    SHARE_OR_COUNT,
    SHUFFLE,
    Allowed,
    as_generator,
    one_of,
)
from precbench.solvers.common.rows import dot, with_short_indices
from precbench.solvers.cutting_plane.bundle import Point
from precbench.solvers.ftrl.planes import (
    Bound,
    IncrementalLoss,
    IncrementalPartialAUC,
    IncrementalStruct,
    Planes,
)

_EPS = float(np.finfo(float).eps)
_PATIENCE = 10  # evaluations that bring the gap no closer to 0
_BETWEEN_TRACES = 10  # evaluations


@dataclass(kw_only=True, eq=False, repr=False)
class FTRL(LinearRanker):
    """Follow the regularised leader: after each row, the best w for all rows so far.

    With l_t the loss of the first t rows, and w_1 = 0,

        w_(t+1) = argmin l_t(w) + eta/2 ||w||^2    over the ball ||w|| <= radius.

    The penalty of row t is what it adds to the loss, L_t(w) = l_t(w) - l_(t-1)(w), at
    w_t; l_0 = 0. The losses, in the scores s = X w of t rows, n_pos of them positive
    and n_neg negative:

    ``prec@k``
        ``max [#(ones on negatives) + sum_i (y'_i - y_i) s_i]`` over the labellings y'
        with k ones: the struct surrogate, a sum. k is `top` of all rows so far, and may
        exceed n_pos.
    ``prbep``
        The same with k = n_pos, the break-even point.
    ``pauc``
        The sum (no mean) of the hinges ``max(0, 1 - (s_i - s_j))`` of each positive i
        and each of the ``ceil(beta n_neg)`` highest negatives j.

    Every L_t has a Lipschitz constant G_t. With eta = sqrt(2 sum_t G_t^2) / radius the
    penalties sum to at most l_T(w) + radius sqrt(2 sum_t G_t^2) for each w in the ball.
    Use the method to measure regret: its time grows with the square of the number of
    rows, so that it is no method for large sets.

    Parameters
    ----------
    objective : {"prec@k", "prbep", "pauc"}, default="prbep"
        The loss, see above.
    top : float or int, default=0.25
        k of "prec@k": a float in (0, 1] is a fraction of the rows so far, rounded up;
        an int, at least 1, is a number of rows, of which at most all so far are taken.
    beta : float, default=0.1
        Fraction in (0, 1] of the negatives so far, rounded up, for "pauc".
    radius : float, default=1.0
        Radius of the ball, above 0.
    eta : float or None, default=None
        Weight of the regulariser, above 0; None for the value above, which needs the
        number of rows in advance: a fit has one horizon.
    batch_size : int, default=1
        Number of rows, at least 1, after which w is computed. The penalty of a batch is
        the loss that it adds.
    average : bool, default=False
        Whether the model is the mean of w_1, ..., w_t, all that were played, instead of
        w_(t+1).
    tol : float, default=1e-4
        Largest distance, as a fraction of the radius and above 0, of each w_t from the
        exact w_t. If it is not reached, there is a warning.
    max_iter : int, default=1000
        Most evaluations of the loss between two batches, at least 1.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows. True or "rows" draws a random order. "blocks" draws an order
        of blocks of 32 neighbouring rows, fit for rows that already lie in random
        order. False keeps the stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows. An int of at least 0 gives the same order in each
        fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    eta_ : float
        Weight of the regulariser: `eta`, or the value above in its place.
    lipschitz_ : ndarray of shape (n_batches,)
        The constants G_t. With R the largest norm of a row they are, for "prec@k" and
        "prbep", 4 R; for "pauc" ``2 R ceil(beta n_neg)`` if row t is positive and
        ``2 R n_pos`` if it is negative. Of a batch it is the sum over its rows.
    penalties_ : ndarray of shape (n_batches,)
        L_t(w_t) of the batches so far. They sum to the loss of the player; `leader` has
        the loss of the best w.
    gap_ : float
        The largest certified gap of a regularised loss so far.
    error_ : float
        The largest certified distance of a w_t from the exact w_t: each penalty is off
        by at most G_t times this.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Batches so far.
    n_rows_seen_ : int
        Rows scored, repeated visits included: in each evaluation of the loss all rows
        so far.

    Notes
    -----
    Theorem 1 of the paper has the norm of the compared w in place of the radius, but
    one eta does not suit all w. The paper leaves "pauc" to its full version.

    References
    ----------
    kar2014 (Kar, Narasimhan, Jain, "Online and stochastic gradient methods for
    non-decomposable loss functions", NIPS 2014), section 3 with Theorem 1, and
    appendices A to E. Its (3) at w is ``4 l(w/2) + 2 n_pos - 2 k - t`` for this l; its
    (6) is L_t.

    Examples
    --------
    >>> from precbench import FTRL
    >>> ranker = FTRL(shuffle=False).fit([[1.0], [-1.0]] * 6, [1, 0] * 6)
    >>> ranker.penalties_[1::2].round(1).tolist()  # of negatives, at the w before
    [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]
    """

    objective: str = field(default="prbep", kw_only=False)
    top: float | int = 0.25
    beta: float = 0.1
    radius: float = 1.0
    eta: float | None = None
    batch_size: int = 1
    average: bool = False
    tol: float = 1e-4
    max_iter: int = 1000
    shuffle: Shuffle = True
    random_state: Any = None

    algorithm_version = 2

    allowed = Allowed(
        objective=one_of("prec@k", "prbep", "pauc"),
        top=SHARE_OR_COUNT,
        beta=SHARE,
        radius=POSITIVE,
        eta=[None, *POSITIVE],
        batch_size=COUNT,
        average=BOOLEAN,
        tol=POSITIVE,
        max_iter=COUNT,
        shuffle=SHUFFLE,
        random_state=SEED,
    )

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Put the rows in order, drop empty columns, and learn batch by batch."""
        if self.shuffle is not False:
            rng = as_generator(self.random_state)
            order = visiting_order(len(labels), self.shuffle, rng)
            X, labels = X[order], labels[order]
        n_features = X.shape[1]
        X = with_short_indices(X)
        used_columns = np.arange(n_features)
        if sparse.issparse(X) and X.nnz:
            # Planes are dense vectors: they are shorter without columns of zeros.
            used_columns = np.unique(X.indices)
            X = X[:, used_columns]
        loss = self._loss(X, labels > 0)
        starts = np.arange(0, len(labels), self.batch_size)
        self.lipschitz_ = np.add.reduceat(loss.lipschitz(), starts)  # G_t by batch
        self.eta_ = self._eta()
        self._start(n_features)
        self.penalties_ = np.empty(0)
        self.gap_ = self.error_ = 0.0  # the largest so far
        if not trace(self):
            self._play(loss, used_columns, starts, trace)

    def _play(
        self,
        loss: IncrementalLoss,
        used_columns: NDArray[np.intp],
        starts: NDArray[np.intp],
        trace: Trace,
    ) -> None:
        """Note each batch's penalty at w, then compute the best w for all rows so far.

        `used_columns` are the columns of X that the loss has, `starts` the first row of
        each batch.
        """
        n_features = len(self.coef_)
        n_rows = len(loss.positive)
        # Since eta ||w|| <= sum_t G_t for each w, the regulariser may reach
        #     eta ||w||^2 <= (sum_t G_t)^2 / eta.
        penalty_overflows = not np.isfinite(self.lipschitz_.sum() ** 2 / self.eta_)
        penalties = np.empty(len(starts))
        planes = Planes(loss, self.eta_)
        w = np.zeros(len(used_columns))  # w_1
        mean = w  # of the w so far
        risk_before = 0.0  # no row has a loss yet
        n_failed = 0
        for t, start in enumerate(starts.tolist()):
            n_so_far = min(n_rows, start + int(self.batch_size))  # with this batch
            point = loss.at(w, n_so_far)
            if penalty_overflows or not np.isfinite(point.risk):
                # `fit` reports these weights as an overflow.
                self.coef_ = np.full(n_features, np.nan)
                break
            # L_t(w_t) = l_t(w_t) - l_(t-1)(w_t)
            penalties[t] = point.risk - risk_before
            mean = mean + (w - mean) / (t + 1)
            planes.extend(start, point)
            descent = self._descend(
                planes, point, self.eta_, distance=self.tol * self.radius, trace=trace
            )
            if descent is None:  # the trace ends the fit
                break
            w = descent.point.w
            risk_before = descent.point.risk
            n_failed += not descent.converged
            # Publish the model and what describes the steps so far.
            self.coef_ = np.zeros(n_features)
            self.coef_[used_columns] = mean if self.average else w
            self.penalties_ = penalties[: t + 1]
            self.gap_ = max(self.gap_, descent.gap)
            self.error_ = max(self.error_, descent.error)
            self.n_iter_ += 1
            self.n_rows_seen_ += n_so_far * descent.n_evaluations
            if trace(self):
                break
        if n_failed:
            warn(
                f"the weights of FTRL may be off by up to {self.error_:.3g} in"
                f" {n_failed} of {self.n_iter_} updates, more than tol={self.tol:g}"
                f" times the radius; raise max_iter above {self.max_iter}; if that does"
                " not help, raise tol"
            )

    def leader(self, X: Any, y: ArrayLike) -> "Leader":
        """Compute the w in the ball with the least loss: the regret compares with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the fit, or others with the same features.
        y : array-like of shape (n_samples,)
            Labels as in the fit.

        Returns
        -------
        Leader
            The regret is ``(penalties_.sum() - leader.loss) / n_samples``, for "pauc"
            divided by ``beta n_pos n_neg`` instead. The gap is at most a thousandth of
            the bound of the regret for these rows, or there is a warning.

        Raises
        ------
        InputError
            If labels or rows are invalid.
        """
        check_is_fitted(self)
        X, labels = self._check_input(X, y, reset=False)
        loss = self._loss(X, labels > 0)
        # The bound of the regret is radius sqrt(2 sum_t G_t^2).
        regret_bound = self.radius * float(np.sqrt(2 * np.sum(loss.lipschitz() ** 2)))
        tol = 1e-3 * regret_bound
        eta = regret_bound / self.radius**2
        if eta == 0:  # all rows are 0
            eta = 1.0
        point = loss.at(np.zeros(X.shape[1]), len(labels))
        planes = Planes(loss, eta)
        planes.extend(start=0, point=point)
        # Planes alone may leave w open, hence a penalty eta/2 ||w||^2. Its weight falls
        # until the loss is near the bound of the least loss, or the penalty negligible.
        # A descent ends at a gap of 0.1 (eta radius^2 + tol).
        while True:
            descent = self._descend(
                planes, point, eta, tol=0.1 * eta * self.radius**2 + 0.1 * tol
            )
            assert descent is not None  # without a trace
            least_loss_bound = planes.bound_in_ball(eta=0.0, radius=self.radius).value
            gap = descent.point.risk - least_loss_bound
            is_negligible = eta * self.radius**2 < 1e-3 * tol
            if gap <= tol or is_negligible:
                break
            point = descent.point
            eta = 0.1 * eta
        if gap > tol:
            warn(
                f"the loss of FTRL.leader may exceed the least loss by {gap:.3g}, more"
                f" than the {tol:.3g} aimed at; raise max_iter above {self.max_iter};"
                " if that does not help, double precision is the limit"
            )
        return Leader(descent.point.w, loss=float(descent.point.risk), gap=float(gap))

    def _loss(self, X: Any, positive: NDArray[np.bool_]) -> IncrementalLoss:
        if self.objective == "pauc":
            return IncrementalPartialAUC(X, positive, float(self.beta))
        if self.objective == "prec@k":
            return IncrementalStruct(X, positive, self.top)
        return IncrementalStruct(X, positive, top=None)  # as many as positives

    def _eta(self) -> float:
        """Return the given `eta`, or ``sqrt(2 sum_t G_t^2) / radius``."""
        if self.eta is not None:
            return float(self.eta)
        eta = float(np.sqrt(2 * np.sum(self.lipschitz_**2))) / self.radius
        return eta if eta > 0 else 1.0  # all rows are 0, and so is w

    def _descend(
        self,
        planes: Planes,
        point: Point,
        eta: float,
        *,
        tol: float = 0.0,
        distance: float = 0.0,
        trace: Trace = untraced,
    ) -> "_Descent | None":
        """Minimise the loss so far plus ``eta/2 ||w||^2`` in the ball, from `point`.

        Add a plane at one w after another, each the best for the planes so far, until
        the gap to the lower bound is at most `tol`, or proves the best w within
        `distance` of the minimiser, or gets no smaller. Return the best w with its gap,
        or None if the trace ends the fit.
        """

        def primal(point: Point) -> float:  # the loss plus the penalty
            return point.risk + 0.5 * eta * dot(point.w, point.w)

        best = point
        lower = Bound(value=-np.inf, curvature=eta)
        target_gap = max(tol, lower.gap_within(distance, eta))
        gap = 0.0  # none is known yet
        least_gap = np.inf
        n_idle = 0  # evaluations since the least gap
        for n_evaluations in range(1, self.max_iter + 1):
            planes.add(point, planes.loss.by_weights(point.subgradient))
            # `solve` may be off by a small part of the target, or of the gap that is
            # left.
            allowed = max(0.1 * target_gap, 0.02 * gap)
            w, bound = planes.solve(eta, self.radius, tol=allowed)
            lower = max(lower, bound)  # tuples compare by `value` first
            gap = max(0.0, primal(best) - lower.value)
            target_gap = max(tol, lower.gap_within(distance, eta))
            if gap <= target_gap:
                break
            n_idle += 1
            rounding = _EPS * abs(lower.value)
            if gap < least_gap - rounding:
                least_gap = gap
                n_idle = 0
            if n_idle == _PATIENCE:
                break
            if n_evaluations % _BETWEEN_TRACES == 0 and trace(self):
                return None
            point = planes.loss.at(w, len(point.scores))
            best = min(best, point, key=primal)
        return _Descent(
            best,
            gap,
            error=lower.error(gap, eta),
            n_evaluations=n_evaluations,
            converged=gap <= target_gap,
        )


class Leader(NamedTuple):
    """The best w in hindsight; no w of the ball has a loss below ``loss - gap``."""

    w: NDArray[np.float64]
    loss: float
    gap: float


class _Descent(NamedTuple):
    point: Point
    gap: float  # of the regularised loss at the point
    error: float  # bound of the distance from the exact w
    n_evaluations: int
    converged: bool

"""Follow the regularised leader for losses that are no sums over the rows."""

import warnings
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from precbench.errors import InputError
from precbench.objectives import pair_hinges
from precbench.solvers.base import (
    K_CONSTRAINT,
    LinearRanker,
    Rows,
    Trace,
    as_rows,
    linear_scores,
    warn_of_overflow,
    weighted_sum,
)
from precbench.solvers.bundle import Bundle, Point
from precbench.solvers.minibatch import k_by_size
from precbench.solvers.passes import Shuffle, visiting_order
from precbench.surrogates import SURROGATES, first_rows

__all__ = ["FTRL", "Leader"]

_MOST_TURNS = 50
_TRIES = 8  # of 1,000 steps by pairs, before active sets
_PATIENCE = 10  # evaluations that bring the gap no closer to 0
_BETWEEN_LOOKS = 10  # evaluations, at the clock
_EPS = float(np.finfo(float).eps)
_RANK = 1e-12  # of the largest singular value


class FTRL(LinearRanker):
    """Follow the regularised leader: after each row, the best w for all rows so far.

    With l_t the loss of the first t rows, and w_1 = 0,

        w_{t+1} = argmin l_t(w) + eta/2 ||w||^2    over the ball ||w|| <= radius.

    The penalty of row t is what it adds to the loss, L_t(w) = l_t(w) - l_{t-1}(w), at w_t; l_0 = 0.
    The losses, in the scores s = X w of t rows, n_pos of them positive and n_neg negative:

    ``prec@k``
        ``max [#(ones on negatives) + sum_i (y'_i - y_i) s_i]`` over the labellings y' with k
        ones: the struct surrogate, a sum. Unlike elsewhere in this package k is a count of *all*
        rows so far, which `top` gives, and may exceed n_pos.
    ``prbep``
        The same with k = n_pos, which grows with the positives.
    ``pauc``
        The sum (no mean) of the hinges ``[1 - (s_i - s_j)]_+`` of each positive i and each of
        the ``ceil(beta n_neg)`` highest negatives j; 0 while there are rows of one class only.

    Every L_t has a Lipschitz constant G_t, and with eta = sqrt(2 sum_t G_t^2) / radius the
    penalties sum to at most l_T(w) + radius sqrt(2 sum_t G_t^2) for each w in the ball. That eta
    wants the number of rows beforehand: a fit is a run of one horizon.

    Parameters
    ----------
    objective : {"prec@k", "prbep", "pauc"}, default="prbep"
    top : float or int, default=0.25
        k of "prec@k": a share of the rows so far in (0, 1], rounded up, or a count, at first cut
        to their number.
    beta : float, default=0.1
        Share of the negatives so far in (0, 1], rounded up, for "pauc".
    radius : float, default=1.0
    eta : float or None, default=None
        None for the value above.
    batch_size : int, default=1
        Rows that come at a time: w is found anew after each batch, and a penalty is what the
        batch adds.
    average : bool, default=False
        Give the mean of w_1, ..., w_t, all that were played, instead of w_{t+1}.
    tol : float, default=1e-4
        Each w_t is found to within tol * radius of the exact one. Where the digits of the loss do
        not suffice for that, as for a very small tol or eta, there is a warning.
    max_iter : int, default=1000
        Most evaluations of the loss between two rows.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows, as for the mini-batch methods; False for the stored order.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    eta_ : float
    lipschitz_ : ndarray of shape (n_batches,)
        The constants G_t: with R the largest norm of a row, for "prec@k" and "prbep" 4 R, for
        "pauc" ``2 R ceil(beta n_neg)`` if row t is positive and ``2 R n_pos`` if it is negative;
        the sum of these over the rows of a batch.
    penalties_ : ndarray of shape (n_batches,)
        L_t(w_t). They sum to the loss of the player; see `leader` for that of the best w.
    gap_ : float
        The largest certified gap of a regularised loss: ||w_t - exact w_t|| <=
        sqrt(2 gap_ / eta_).
    error_ : float
        The largest certified ||w_t - exact w_t||, less than that where the ball pulls more than
        eta does: each penalty is off by at most G_t times this.
    n_iter_ : int
        Batches so far.

    Notes
    -----
    kar2014 (3) at w is ``4 l(w/2) + 2 n_pos - 2 k - t`` for this l: its G_t <= 8 on a ball is
    G_t <= 4 on one of half the radius here. 2 R is enough. Row t adds ``[z - z_(k)]_+`` to the sum
    of the k largest z_i = s_i + 1[y_i = 0] when k stays, and ``max(z, z_(k+1))`` when it grows;
    as z_(k), at each w, moves like the score of one row, no case has a slope longer than 2 R.
    In "pauc" likewise a new negative adds ``[f(s) - f(s_(m))]_+`` or ``f(max(s, s_(m+1)))`` with
    f(s) its hinges with all positives, and each hinge moves like a difference of two scores; a
    new positive adds its hinges with m negatives. The paper leaves "pauc" to its full version.

    The bound is Theorem 1 with the radius in place of ||w||: one eta does not suit all w, as
    its "for all w" has it.

    The loss of rows 1, ..., t is a maximum of planes, and each extends to a plane of rows
    1, ..., t+1: the bundle of a cutting-plane method is kept from row to row. Memory grows with
    the bundle; the time of a row is a few evaluations of the loss of all rows so far, so that
    of all rows is quadratic.

    References
    ----------
    Kar, Narasimhan, Jain, "Online and stochastic gradient methods for non-decomposable loss
    functions", NIPS 2014, section 3 and appendices A to E.
    """

    algorithm_version = 2

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "objective": [StrOptions({"prec@k", "prbep", "pauc"})],
        "top": K_CONSTRAINT,
        "beta": [Interval(Real, 0, 1, closed="right")],
        "radius": [Interval(Real, 0, None, closed="neither")],
        "eta": [None, Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "average": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean", StrOptions({"rows", "blocks"})],
        "random_state": [None, Interval(Integral, 0, None, closed="left"), np.random.Generator],
    }

    def __init__(
        self,
        objective: str = "prbep",
        *,
        top: float | int = 0.25,
        beta: float = 0.1,
        radius: float = 1.0,
        eta: float | None = None,
        batch_size: int = 1,
        average: bool = False,
        tol: float = 1e-4,
        max_iter: int = 1000,
        shuffle: Shuffle = True,
        random_state: Any = None,
    ):
        self.objective = objective
        self.top = top
        self.beta = beta
        self.radius = radius
        self.eta = eta
        self.batch_size = batch_size
        self.average = average
        self.tol = tol
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace | None) -> None:
        if self.shuffle is not False:
            rng = np.random.default_rng(self.random_state)
            order = visiting_order(len(labels), self.shuffle, rng)
            X, labels = X[order], labels[order]
        loss = self._loss(X, labels > 0)
        starts = np.arange(0, len(labels), self.batch_size)
        with np.errstate(over="ignore", invalid="ignore"):
            self.lipschitz_ = np.add.reduceat(loss.lipschitz(), starts)
            self.eta_ = self._eta()
            overflows = not np.isfinite(self.lipschitz_.sum() ** 2 / self.eta_)
        self.coef_ = mean = np.zeros(X.shape[1])
        penalties = np.empty(len(starts))
        self.penalties_ = penalties[:0]
        self.gap_ = self.error_ = 0.0
        self.n_iter_ = self.n_rows_seen_ = 0
        if trace is not None and trace(self):
            return
        planes = _Planes(loss, self.eta_)
        w, before, n_failed = self.coef_, 0.0, 0
        for t, start in enumerate(starts.tolist()):
            n = min(len(labels), start + int(self.batch_size))
            point = loss.at(w, n)
            if overflows or not np.isfinite(point.risk):
                self.coef_ = np.full_like(w, np.nan)
                warn_of_overflow()
                break
            penalties[t] = point.risk - before
            mean = mean + (w - mean) / (t + 1)
            planes.extend(start, point)
            found = self._descend(
                planes, point, self.eta_, distance=self.tol * self.radius, trace=trace
            )
            if found is None:
                break
            w, before = found.point.w, found.point.risk
            self.gap_ = max(self.gap_, found.gap)
            self.error_ = max(self.error_, found.error)
            self.coef_ = mean if self.average else w
            self.penalties_ = penalties[: t + 1]
            n_failed += not found.converged
            self.n_iter_ += 1
            self.n_rows_seen_ += n * found.n_evaluations
            if trace is not None and trace(self):
                break
        if n_failed:
            warnings.warn(
                f"{n_failed} of {self.n_iter_} times w is not certain to within tol={self.tol:g} "
                f"of the radius, but to within {self.error_:.3g}: max_iter={self.max_iter} "
                "evaluations of the loss, or its digits, are too few",
                ConvergenceWarning,
                stacklevel=4,
            )

    def leader(self, X: Any, y: ArrayLike) -> "Leader":
        """Find the w in the ball with the least loss of all rows, which regret compares with.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels as in the fit.

        Returns
        -------
        Leader
            The regret is ``(penalties_.sum() - leader.loss) / n_samples``, for "pauc" divided by
            ``beta n_pos n_neg`` instead. The gap is at most a thousandth of the bound of the
            regret that `fit` promises for these rows, or there is a warning.

        Raises
        ------
        InputError
            If the rows are so long that their products overflow, or y has other labels than
            in the fit.
        """
        check_is_fitted(self)
        X, labels = self._checked(X, y, reset=False)
        loss = self._loss(X, labels > 0)
        n = len(labels)
        with np.errstate(over="ignore", invalid="ignore"):
            constants = loss.lipschitz()
            overflows = not np.isfinite(constants.sum() ** 2)
        if overflows:
            raise InputError(
                f"the products of rows overflow, the longest is {loss.largest_norm:.3g}: scale "
                "the features"
            )
        bound = self.radius * float(np.sqrt(2 * np.sum(constants**2)))
        enough, eta = 1e-3 * bound, bound / self.radius**2 or 1.0
        point = loss.at(np.zeros(X.shape[1]), n)
        planes = _Planes(loss, eta)
        planes.extend(0, point)
        while True:
            found = self._descend(
                planes, point, eta, enough=0.1 * eta * self.radius**2 + 0.1 * enough
            )
            assert found is not None  # without a trace
            lower = planes.bound_in_ball(0.0, self.radius).value
            gap = found.point.risk - lower
            if gap <= enough or eta * self.radius**2 < 1e-3 * enough:
                break
            point, eta = found.point, 0.1 * eta
        if gap > enough:
            warnings.warn(
                f"the loss of the leader is certain to within {gap:.3g} only, not {enough:.3g}: "
                f"max_iter={self.max_iter} evaluations of the loss, or its digits, are too few",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Leader(found.point.w, float(found.point.risk), float(gap))

    def _loss(self, X: Any, positive: NDArray[np.bool_]) -> "_Loss":
        if self.objective == "pauc":
            return _PartialAUC(X, positive, float(self.beta))
        return _Struct(X, positive, self.top if self.objective == "prec@k" else None)

    def _eta(self) -> float:
        if self.eta is not None:
            return float(self.eta)
        eta = float(np.sqrt(2 * np.sum(self.lipschitz_**2))) / self.radius
        return eta if eta > 0 else 1.0  # all rows are 0, and so is w

    def _descend(
        self,
        planes: "_Planes",
        point: Point,
        eta: float,
        *,
        enough: float = 0.0,
        distance: float = 0.0,
        trace: Trace | None = None,
    ) -> "_Descent | None":
        """Go down from a point of all rows so far until the gap, or the error, is small enough.

        Return None if the trace ends the fit.
        """

        def primal(point: Point) -> float:
            return point.risk + 0.5 * eta * float(point.w @ point.w)

        best, lower = point, _Bound(-np.inf, eta)
        needed = max(enough, lower.gap_within(distance, eta))
        gap, least, n_idle = 0.0, np.inf, 0
        for n_evaluations in range(1, self.max_iter + 1):
            planes.add(point, planes.loss.slope(point.pull))
            w = planes.solve(eta, self.radius, max(0.1 * needed, 0.02 * gap))
            lower = max(lower, planes.bound_in_ball(eta, self.radius))
            gap = max(0.0, primal(best) - lower.value)
            needed = max(enough, lower.gap_within(distance, eta))
            if gap <= needed:
                break
            if gap < least - planes.rounding():
                least, n_idle = gap, 0
            else:
                n_idle += 1
            if n_idle == _PATIENCE:
                break
            if trace is not None and n_evaluations % _BETWEEN_LOOKS == 0 and trace(self):
                return None
            point = planes.loss.at(w, len(point.scores))
            best = min(best, point, key=primal)
        return _Descent(best, gap, lower.error(gap, eta), n_evaluations, gap <= needed)


class Leader(NamedTuple):
    """The best w in hindsight.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
    loss : float
    gap : float
        No w of the ball has a loss below ``loss - gap``.
    """

    w: NDArray[np.float64]
    loss: float
    gap: float


class _Bound(NamedTuple):
    """A value v and a pull p such that F(w) >= v + p/2 ||w - w_0||^2 in the ball, for some w_0.

    F is a loss and ``eta/2 ||w||^2``. With F(w) <= v + gap this holds w and the best w to within
    sqrt(2 gap / p) of w_0, so to twice this of each other.
    """

    value: float
    pull: float

    def error(self, gap: float, eta: float) -> float:
        """Return how far a w with this gap can be from the best."""
        return float(np.sqrt(2 * gap / max(eta, self.pull / 4)))

    def gap_within(self, distance: float, eta: float) -> float:
        """Return the largest gap with no more than this error."""
        return 0.5 * max(eta, self.pull / 4) * distance**2


class _Descent(NamedTuple):
    point: Point
    gap: float
    error: float
    n_evaluations: int
    converged: bool


class _Loss(ABC):
    """The losses of the first n rows, for all n, and how their planes grow with n."""

    n_chosen = 0
    """Length of what a plane must remember to be extended: which rows, the first n, it chose."""

    def __init__(self, X: Any, positive: NDArray[np.bool_]):
        self.X, self.positive = X, positive
        self._all = as_rows(X)
        with np.errstate(over="ignore"):
            squares = X.multiply(X) if sparse.issparse(X) else X * X
            self.largest_norm = float(np.sqrt(squares.sum(axis=1).max()))

    @abstractmethod
    def lipschitz(self) -> NDArray[np.float64]:
        """Return a Lipschitz constant of the penalty of each row."""

    @abstractmethod
    def evaluate(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the loss of so many rows, and a subgradient with respect to the scores."""

    @abstractmethod
    def extension(
        self, start: int, scores: NDArray[np.float64], chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | float]:
        """Return what rows from `start` on add to the slopes and offsets of planes.

        Of all extensions those that are high at these scores. For each plane, `chosen` says
        which negatives it has chosen, and is brought up to date.
        """

    def at(self, w: NDArray[np.float64], n: int) -> Point:
        """Return the loss of the first n rows, NaN where the scores overflow."""
        scores = linear_scores(self._first(n), w)
        if not np.isfinite(scores).all():
            return Point(w, scores, np.nan, np.full_like(scores, np.nan))
        return Point(w, scores, *self.evaluate(scores))

    def slope(self, pull: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the first rows, each times its pull."""
        return weighted_sum(self._first(len(pull)), pull, self.X.shape[1])

    def _first(self, n: int) -> Rows:
        data, indices, indptr, _ = self._all
        if indptr.size:
            return Rows(data, indices, indptr[: n + 1], n)
        return Rows(data[: n * self.X.shape[1]], indices, indptr, n)


class _Struct(_Loss):
    """The struct surrogate with a number of ones that grows with the rows."""

    def __init__(self, X: Any, positive: NDArray[np.bool_], top: float | int | None):
        super().__init__(X, positive)
        self._n_ones = (
            np.append(0, np.cumsum(positive)) if top is None else k_by_size(top, len(positive))
        )

    def lipschitz(self) -> NDArray[np.float64]:
        return np.full(len(self.positive), 4 * self.largest_norm)

    def evaluate(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        n = len(scores)
        return SURROGATES["struct"].evaluate(scores, self.positive[:n], self._n_ones[n])

    def extension(self, start, scores, chosen):
        n, new = len(scores), slice(start, None)
        pull = np.zeros(n)
        n_more = self._n_ones[n] - self._n_ones[start]
        value, pull[new] = SURROGATES["struct"].evaluate(
            scores[new], self.positive[start:n], n_more
        )
        return self.slope(pull), value - float(pull @ scores)


class _PartialAUC(_Loss):
    """The hinges of all pairs of a positive and one of the highest negatives."""

    def __init__(self, X: Any, positive: NDArray[np.bool_], beta: float):
        super().__init__(X, positive)
        self.n_chosen = len(positive)
        self._n_pos, n_neg = (np.append(0, np.cumsum(of)) for of in (positive, ~positive))
        self._n_top = k_by_size(beta, n_neg[-1])[n_neg]

    def lipschitz(self) -> NDArray[np.float64]:
        pairs = np.where(self.positive, self._n_top[1:], self._n_pos[1:])
        return 2 * self.largest_norm * pairs

    def evaluate(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        positive = self.positive[: len(scores)]
        top = first_rows(scores, np.flatnonzero(~positive), self._n_top[len(scores)])
        return pair_hinges(scores, np.flatnonzero(positive), top)

    def extension(self, start, scores, chosen):
        n, positive = len(scores), self.positive[: len(scores)]
        new = start + np.flatnonzero(~positive[start:])
        entering = first_rows(scores, new, self._n_top[n] - self._n_top[start])
        value, pull = pair_hinges(scores, np.flatnonzero(positive), entering)
        slopes, offsets = self.slope(pull), value - float(pull @ scores)
        late = start + np.flatnonzero(positive[start:])
        if late.size:  # meets what each plane has chosen before
            active = 1 + scores[:start] > scores[late, np.newaxis]
            old = chosen[:, :start]
            n_met = old.astype(float) @ active.T.astype(float)
            by_row = old * active.sum(axis=0)
            slopes = slopes + (self.X[:start].T @ by_row.T).T - n_met @ self.X[late]
            offsets = offsets + n_met.sum(axis=1)
        chosen[:, entering] = True
        return slopes, offsets


class _Planes(Bundle):
    """Planes below the loss of the rows so far, the best w in the ball against all of them."""

    _PATIENCE = 20
    _OF_PLANES = (*Bundle._OF_PLANES, "_chosen")

    def __init__(self, loss: _Loss, eta: float):
        n_features = loss.X.shape[1]
        super().__init__(1 / eta, n_features)
        self._strength = eta
        self.loss = loss
        self._chosen = np.empty((0, loss.n_chosen), dtype=bool)
        nothing = np.zeros(n_features)  # the loss of no rows
        self.add(Point(nothing, np.empty(0), 0.0, np.empty(0)), nothing)

    def add(self, point: Point, slope: NDArray[np.float64]) -> None:
        super().add(point, slope)
        pull = point.pull[: self.loss.n_chosen]
        chosen = self._chosen[self._n_planes - 1]
        chosen[:] = False
        chosen[: len(pull)] = pull > 0

    def extend(self, start: int, point: Point) -> None:
        """Turn planes of the first `start` rows into planes of all rows that a point has."""
        m = self._n_planes
        slopes, offsets = self.loss.extension(start, point.scores, self._chosen[:m])
        self._slopes[:m] += slopes
        self._offsets[:m] += offsets
        self._gram[:m, :m] = self._slopes[:m] @ self._slopes[:m].T

    def solve(self, eta: float, radius: float, enough: float) -> NDArray[np.float64]:
        """Return the best w for ``eta/2 ||w||^2`` plus the planes, in the ball, to `enough`.

        In the ball it is the best for some stronger pull to 0, with ``||w|| = radius``. A pull
        asks for another: that which brings the same mean of the planes into the ball. The pull
        that asks for itself is sought by secants.
        """
        low, high, last = eta, np.inf, None
        for _ in range(_MOST_TURNS):
            self._rescale(max(eta, self._strength))
            tried, w = self._strength, self._best(0.5 * enough)
            wanted = max(eta, tried * float(np.linalg.norm(w)) / radius)
            w = w * (tried / wanted)
            value = self._height(w) + 0.5 * eta * float(w @ w)
            if value - self.bound_in_ball(eta, radius).value <= enough:
                break
            if abs(wanted - tried) <= _EPS * tried:  # w has no more digits
                break
            low, high = (max(low, tried), high) if wanted > tried else (low, min(high, tried))
            self._strength = wanted
            if last is not None and last[0] != tried:
                steepness = (wanted - last[1]) / (tried - last[0])
                if steepness < 1:
                    guess = (wanted - steepness * tried) / (1 - steepness)
                    self._strength = guess if low < guess < high else wanted
            last = tried, wanted
        return w

    def _best(self, enough: float) -> NDArray[np.float64]:
        """Return the best w for this strength, whatever its length."""
        m = self._n_planes
        noise = _EPS * self._C * float(self._gram[:m, :m].diagonal().max())
        done = any(self.improve(max(enough, noise)) for _ in range(_TRIES))
        if done and noise <= enough:
            return self.weights()
        return self._settle(max(enough, 8 * self.rounding()))

    def _settle(self, enough: float) -> NDArray[np.float64]:
        """Find the best w for this strength by active sets, to almost all digits.

        Where planes meet in a corner, the weights of the dual give w as the small difference of
        large numbers. Here it solves the equations of the corner instead. A turn goes to where
        the active planes meet, or as far as a plane has no weight left and is dropped; or if they
        don't meet, raises the mean of their heights at w until one is dropped. At the corner the
        highest plane becomes active; if it is so already, another turn takes away the rounding of
        the last.
        """
        m, strength = self._n_planes, self._strength
        slopes, offsets = self._slopes[:m], self._offsets[:m]
        shares = self._alpha[:m] / self._C
        active, again, w = shares > 0, False, -(shares @ slopes) / strength
        for _ in range(_MOST_TURNS + m):
            heights = offsets + slopes @ w
            first, *others = np.flatnonzero(active)
            step, shift, length = self._towards_corner(
                slopes[others] - slopes[first],
                heights[first] - heights[others],
                strength * w + shares @ slopes,
                max(enough, 8 * _EPS * float(np.abs(heights).max())),
            )
            change = np.zeros(m)
            change[others], change[first] = step, -step.sum()
            falls = np.flatnonzero(change < 0)
            with np.errstate(over="ignore"):
                room = shares[falls] / -change[falls]
            blocked = room.min(initial=np.inf) <= length
            length = min(length, room.min(initial=np.inf))
            shares, w = np.maximum(shares + length * change, 0.0), w + length * shift
            if blocked:
                dropped = falls[np.argmin(room)]
                shares[dropped], active[dropped] = 0.0, False
                continue
            heights = offsets + slopes @ w
            highest = int(np.argmax(heights))
            if heights[highest] - float(shares @ heights) <= enough or (again and active[highest]):
                break
            again, active[highest] = active[highest], True
        self._alpha[:m] = shares * (self._C / shares.sum())
        return w

    def _towards_corner(
        self,
        edges: NDArray[np.float64],
        rises: NDArray[np.float64],
        pull: NDArray[np.float64],
        enough: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return a direction of the shares of all planes but the first, of w, and how far to go.

        The slopes of the others less that of the first are `edges`, the heights `-rises`; at the
        best w for the active planes the pull is 0.
        """
        U, sizes, V = np.linalg.svd(edges, full_matrices=False)
        rank = int(np.sum(sizes > _RANK * sizes.max(initial=0.0)))
        U, sizes, V = U[:, :rank], sizes[:rank], V[:rank]
        coordinates = U.T @ rises
        apart = U @ coordinates - rises
        if np.abs(apart).max(initial=0.0) > enough:
            return apart, np.zeros_like(pull), np.inf
        within = coordinates / sizes
        across = V @ pull
        shift = V.T @ within - (pull - V.T @ across) / self._strength
        return -(U @ ((across + self._strength * within) / sizes)), shift, 1.0

    def bound_in_ball(self, eta: float, radius: float) -> _Bound:
        """Return a lower bound of ``eta/2 ||w||^2`` plus the loss in the ball."""
        m = self._n_planes
        shares = self._alpha[:m] / self._alpha[:m].sum()
        height = float(shares @ self._offsets[:m])
        length = float(np.linalg.norm(shares @ self._slopes[:m]))
        if length <= eta * radius:
            return _Bound(height - (0.5 * length**2 / eta if eta else 0.0), eta)
        return _Bound(height - radius * (length - 0.5 * eta * radius), length / radius)

    def rounding(self) -> float:
        """Return half a unit in the last place of the largest offset, more or less."""
        return _EPS * float(np.abs(self._offsets[: self._n_planes]).max())

    def _rescale(self, strength: float) -> None:
        self._strength, self._C = strength, 1 / strength
        alpha = self._alpha[: self._n_planes]
        alpha *= self._C / alpha.sum()

    def _height(self, w: NDArray[np.float64]) -> float:
        m = self._n_planes
        return float(np.max(self._offsets[:m] + self._slopes[:m] @ w))

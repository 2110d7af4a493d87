"""The risks of the pushes: value, gradient, Hessian and line search."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, logsumexp, softmax

from precbench.solvers.common.rows import as_rows, linear_scores, weighted_sum
from precbench.solvers.push.kernel import (
    class_sums,
    derivatives_along,
    pair_gradient,
    pair_heights,
)

_EPS = float(np.finfo(np.float64).eps)
_EVALUATED = 2**21  # pairs that a kernel visits in a fraction of 0.1 s
_BLOCK_VALUES = 2**20  # of a temporary matrix
_THIN = 0.2  # below this share of non-zeros sparse products are faster than dense ones
_ROUNDING = 1e-6  # relative to the greatest difference of scores
# A step along a direction is the last if it changes by at most this share of itself: by
# Newton's method it then has all digits, and bisection goes on to the last digits.
_NEWTON_TOL = 1e-9
_BISECTION_TOL = 4e-16


class Evaluation(NamedTuple):
    """A risk at one w.

    `noise` bounds the rounding error of each entry of the `gradient`.
    """

    scores: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]
    log_risk: float
    noise: float


class Classes:
    """The relation "every positive above every negative"."""

    def __init__(self, labels: NDArray[np.int8]):
        self.pos, self.neg = np.flatnonzero(labels > 0), np.flatnonzero(labels < 0)

    def extreme_gaps(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return the least and greatest gap ``values[i] - values[k]``.

        i is a positive, k a negative.
        """
        pos, neg = values[self.pos], values[self.neg]
        return float(pos.min() - neg.max()), float(pos.max() - neg.min())

    def least_gap_above_0(self, values: NDArray[np.float64]) -> float:
        """Return the least gap above 0 of a positive and a negative.

        No gap may be below 0.
        """
        least, _most = self.extreme_gaps(values)
        if least > 0:
            return least
        # The lowest positive ties with the highest negative. The least gap is that from
        # their value to the nearest other one.
        gaps = np.abs(values - values[self.pos].min())
        return float(gaps[gaps > 0].min())


class PairLists(NamedTuple):
    """A relation: rows ``upper[starts[m]:stops[m]]`` should rank above `lower[m]`."""

    upper: NDArray[np.int32]
    lower: NDArray[np.int32]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]

    @classmethod
    def of_labels(cls, labels: NDArray[np.int8]) -> Self:
        """Put every positive above every negative: each list has all positives."""
        upper = np.flatnonzero(labels > 0).astype(np.int32)
        lower = np.flatnonzero(labels < 0).astype(np.int32)
        starts = np.zeros(len(lower), dtype=np.int32)
        stops = np.full(len(lower), len(upper), dtype=np.int32)
        return cls(upper, lower, starts, stops)

    @classmethod
    def of_matrix(cls, columns: sparse.csc_array | sparse.csr_array) -> Self:
        """Make a list for each column (CSC) or row (CSR) that has entries.

        Its number becomes the lower row, the indices of its entries the upper rows.
        """
        indptr = columns.indptr.astype(np.int32)
        lower = np.flatnonzero(np.diff(indptr)).astype(np.int32)
        upper = columns.indices.astype(np.int32)
        return cls(upper, lower, indptr[lower], indptr[lower + 1])

    def slices(self, most: int) -> Iterator[tuple[int, int]]:
        """Cut the lists into slices of at most `most` pairs, or of one longer list.

        Yield the number of the first list of each slice, and of the first list after
        it.
        """
        n_pairs_up_to = np.cumsum(self.stops - self.starts, dtype=np.int64)
        first = 0
        while first < len(n_pairs_up_to):
            n_before = n_pairs_up_to[first - 1] if first else 0
            n_fitting = np.searchsorted(n_pairs_up_to, n_before + most, "right")
            stop = max(first + 1, int(n_fitting))
            yield first, stop
            first = stop

    def blocks(self, most: int) -> Iterator["PairBlock"]:
        """Yield the lists in blocks of at most `most` pairs, or of one longer list."""
        for first, stop in self.slices(most):
            lists = slice(first, stop)
            starts, stops = self.starts[lists], self.stops[lists]
            upper = [
                self.upper[start:end] for start, end in zip(starts, stops, strict=True)
            ]
            lengths = stops - starts
            begins = np.cumsum(lengths) - lengths
            yield PairBlock(lists, np.concatenate(upper), begins, lengths)

    def differences(self, values: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield ``values[upper] - values[lower]`` of all pairs, in blocks."""
        for block in self.blocks(_BLOCK_VALUES):
            lower_values = values[self.lower[block.lists]]
            yield values[block.upper] - np.repeat(lower_values, block.lengths)

    def extreme_gaps(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return the least and greatest gap, as `Classes.extreme_gaps` does."""
        least_by_block = []
        most_by_block = []
        for gaps in self.differences(values):
            least_by_block.append(gaps.min())
            most_by_block.append(gaps.max())
        return float(min(least_by_block)), float(max(most_by_block))

    def least_gap_above_0(self, values: NDArray[np.float64]) -> float:
        """Return the least gap above 0, as `Classes.least_gap_above_0` does."""
        least = math.inf
        for gaps in self.differences(values):
            least = min(least, float(gaps[gaps > 0].min(initial=np.inf)))
        return least


class PairBlock(NamedTuple):
    """Some of the lists, with their upper rows one list after the other."""

    lists: slice  # numbers of the lists
    upper: NDArray[np.int32]
    begins: NDArray[np.int64]  # place in `upper` where each list begins
    lengths: NDArray[np.int32]  # number of pairs of each list


class PushRisk(ABC):
    """A convex risk of the scores ``X @ w``."""

    def __init__(self, X: Any, relation: Classes | PairLists):
        self.X = X
        self.rows = as_rows(X)
        self.relation = relation

    @abstractmethod
    def at(self, w: NDArray[np.float64]) -> Evaluation:
        """Return the risk and its gradient at w."""

    @abstractmethod
    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the matrix of second derivatives of the value of `at`."""

    def step_along(self, point: Evaluation, direction: NDArray[np.float64]) -> float:
        """Return the step to the root of the derivative along a direction of scores.

        The direction must rank some pair rightly and some pair wrongly.
        """
        largest = max(float(direction.max()), -float(direction.min()))
        return self._root_along(point, direction / largest) / largest

    @abstractmethod
    def _root_along(self, point: Evaluation, unit: NDArray[np.float64]) -> float:
        """Return `step_along` a direction whose largest absolute entry is 1."""

    @cached_property
    def largest(self) -> float:
        """The greatest absolute value in X."""
        data = self.rows.data
        return float(max(data.max(initial=0), -data.min(initial=0)))

    def is_unbounded_along(self, axes: NDArray[np.float64]) -> bool:
        """Return whether the risk falls without end along a column of `axes`, or back.

        It does so if for a column w, of norm 1, the scores X w or -X w rank some pair
        rightly and none wrongly. Differences below a millionth of the greatest
        difference, or of the largest value in X, count as 0.
        """
        for axis in axes.T:
            scores = linear_scores(self.rows, np.ascontiguousarray(axis))
            least, most = self.relation.extreme_gaps(scores)
            if -least > most:  # the scores -X w have the greater gap
                least, most = -most, -least
            if most > _ROUNDING * self.largest and least >= -_ROUNDING * most:
                return True
        return False

    def column(self, j: int) -> NDArray[np.float64]:
        """Return a column of X as a dense vector."""
        return _dense(self.X[:, [j]]).ravel()

    def by_weights(self, by_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient in w from the gradient in the scores."""
        return weighted_sum(self.rows, by_scores, self.X.shape[1])

    def noise(self, by_scores: NDArray[np.float64]) -> float:
        """Return how far an entry of `by_weights(by_scores)` may be off by rounding."""
        # Each term of its sum is off by about 4 _EPS times the term.
        return 4 * _EPS * float(np.abs(by_scores).sum()) * self.largest

    def scatter(
        self, weights: NDArray[np.float64], centre: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return ``sum_i weights[i] (x_i - centre)(x_i - centre)'``."""
        total = np.zeros((len(centre), len(centre)))
        weighted = np.flatnonzero(weights)  # the other rows add nothing
        n_stored = self.rows.data.size
        n_dense = self.rows.n_rows * len(centre)
        is_thin = n_stored < _THIN * n_dense
        n_values = n_stored if is_thin else n_dense
        n_block_rows = max(1, _BLOCK_VALUES * self.rows.n_rows // max(1, n_values))
        for start in range(0, len(weighted), n_block_rows):
            rows = weighted[start : start + n_block_rows]
            if is_thin:  # the rows stay sparse, and the centre is taken off below
                part = self.X[rows]
                total += (part.T @ part.multiply(weights[rows, None])).toarray()
            else:
                centred = _dense(self.X[rows]) - centre
                total += centred.T @ (centred * weights[rows, None])
        if is_thin:
            # With the weights v and the centre c,
            #     sum_i v_i (x_i - c)(x_i - c)'
            #         = sum_i v_i x_i x_i' + (sum_i v_i) c c' - crossed - crossed',
            #     crossed = c (sum_i v_i x_i)'.
            crossed = np.outer(centre, self.by_weights(weights))
            total += weights.sum() * np.outer(centre, centre) - crossed - crossed.T
        return total


def _dense(X: Any) -> NDArray[np.float64]:
    return (X.toarray() if sparse.issparse(X) else X).astype(np.float64, copy=False)


class Term(NamedTuple):
    """A term of an `ExponentialRisk`: the rates a and b of its G, and what is added."""

    rate_pos: float
    rate_neg: float
    constant: float


class _TermValues(NamedTuple):
    """The terms of an `ExponentialRisk` at one w; of two classes, positives first."""

    scores: NDArray[np.float64]
    values: NDArray[np.float64]  # v_m of each term
    logs: NDArray[np.float64]  # log of the sum of exponentials, (n_terms, 2)
    means: NDArray[np.float64]  # mean row that these weigh, (n_terms, 2, n_features)

    @property
    def gradients(self) -> NDArray[np.float64]:
        """The gradient of each v_m: the mean of the negatives less the positives'."""
        return self.means[:, 1] - self.means[:, 0]


class ExponentialRisk(PushRisk):
    """``log(R) / p`` for the exponential loss and all pairs of two classes."""

    # With the scores s of positives i and negatives k, and the rates a and b and the
    # constant c_m of term m,
    #     G_m = 1/a log sum_i exp(-a s_i) + 1/b log sum_k exp(b s_k),
    #     v_m = G_m + c_m,
    #     log(R) / p = 1/p log sum_m exp(p v_m).

    def __init__(
        self, X: Any, labels: NDArray[np.int8], p: float, terms: Sequence[Term]
    ):
        super().__init__(X, Classes(labels))
        self.labels = labels
        self.p = p
        self.terms = terms
        highest_rate = max(max(term.rate_pos, term.rate_neg) for term in terms)
        # A step of this length changes exponents by 4 at most.
        self.reach = 4 / highest_rate

    def at(self, w: NDArray[np.float64]) -> Evaluation:
        at_w = self._terms_at(w)
        gradients = at_w.gradients
        if len(at_w.values) == 1:
            value, gradient = float(at_w.values[0]), gradients[0]
        else:  # a term for the push at the top, and one for the push at the bottom
            gradient = softmax(self.p * at_w.values) @ gradients
            value = float(logsumexp(self.p * at_w.values)) / self.p
        # As in `self.noise`, but from the entries of the means, whose weights sum to 1.
        noise = 4 * _EPS * float(np.abs(at_w.means).max(initial=0))
        return Evaluation(
            at_w.scores, value, gradient, log_risk=self.p * value, noise=noise
        )

    def _terms_at(self, w: NDArray[np.float64]) -> _TermValues:
        """Return the scores at w, and the values and means of all terms."""
        rows = self.rows
        n_terms = len(self.terms)
        length = max(1, rows.per_slice() // 4)  # of a slice, in rows
        scores = np.empty(rows.n_rows)
        values = np.empty(n_terms)
        logs = np.empty((n_terms, 2))
        means = np.zeros((n_terms, 2, len(w)))
        for m, term in enumerate(self.terms):
            # The kernel updates `peaks`, `totals` and the sums in `means[m]` in place.
            peaks = np.full(2, -np.inf)
            totals = np.zeros(2)
            for start in range(0, rows.n_rows, length):
                class_sums(
                    rows,
                    self.labels,
                    w,
                    rate_pos=term.rate_pos,
                    rate_neg=term.rate_neg,
                    start=start,
                    stop=min(rows.n_rows, start + length),
                    scores=scores,
                    peaks=peaks,
                    totals=totals,
                    sums=means[m],
                )
            means[m] /= totals[:, None]
            logs[m] = peaks + np.log(totals)
            log_pos, log_neg = logs[m]
            values[m] = (
                log_pos / term.rate_pos + log_neg / term.rate_neg + term.constant
            )
        return _TermValues(scores, values, logs, means)

    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the matrix of second derivatives of log(R) / p."""
        # With the gradients g_m of the v_m, o = softmax(p v) and g = sum_m o_m g_m,
        #     (log(R) / p)'' = sum_m o_m (v_m'' + p g_m g_m') - p g g'.
        # v_m'' sums over the classes the rate times the covariance of the rows
        # (`scatter`), weighted by their exponentials.
        at_w = self._terms_at(w)
        shares = softmax(self.p * at_w.values)  # o_m
        gradients = at_w.gradients  # g_m
        mean = shares @ gradients  # g
        total = -self.p * np.outer(mean, mean)
        negative = self.labels < 0
        class_number = negative.astype(np.intp)
        for m, term in enumerate(self.terms):
            total += shares[m] * self.p * np.outer(gradients[m], gradients[m])
            rates = np.where(negative, term.rate_neg, -term.rate_pos)
            # The weights of each class sum to 1.
            weights = np.exp(rates * at_w.scores - at_w.logs[m, class_number])
            mean_pos, mean_neg = at_w.means[m]
            scatter_pos = self.scatter(weights * ~negative, mean_pos)
            total += shares[m] * term.rate_pos * scatter_pos
            scatter_neg = self.scatter(weights * negative, mean_neg)
            total += shares[m] * term.rate_neg * scatter_neg
        return total

    def _root_along(self, point: Evaluation, unit: NDArray[np.float64]) -> float:
        """Find the root by Newton's method.

        The derivative grows with the step: its root is between `low`, the last step
        where it was negative, and `high`, the last where it was positive. Until both
        are finite each change of the step is bounded; afterwards the steps stay between
        the two.
        """
        terms = np.array(self.terms)
        low, high = -math.inf, math.inf
        step = 0.0
        while True:
            slope, curvature = derivatives_along(
                point.scores, self.labels, unit, terms, self.p, step
            )
            if abs(slope) <= _EPS:  # 0 but for rounding
                return step
            if slope < 0:
                low = step
            else:
                high = step
            has_both_ends = math.isfinite(low) and math.isfinite(high)
            newton_step = step - slope / curvature if curvature > 0 else math.inf
            # The bound grows with the step, so that far roots are reached soon.
            most = self.reach + 4 * abs(step)
            if has_both_ends and low < newton_step < high:
                next_step, tol = newton_step, _NEWTON_TOL
            elif has_both_ends:
                next_step, tol = low + (high - low) / 2, _BISECTION_TOL
            elif abs(newton_step - step) <= most:
                next_step, tol = newton_step, _NEWTON_TOL
            else:  # too far, or NaN: a bounded step is never the last
                next_step, tol = step + (most if slope < 0 else -most), 0.0
            if abs(next_step - step) <= tol * abs(step):
                return next_step
            step = next_step


class ScoreRisk(PushRisk):
    """A risk that gives its derivatives with respect to the scores."""

    @abstractmethod
    def by_scores(
        self, scores: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the risk, in `PairwiseRisk` log(R) / p, and its gradient by scores."""

    def _root_along(self, point: Evaluation, unit: NDArray[np.float64]) -> float:
        def slope(step: float) -> float:
            """Return the derivative along `unit`, which grows with the step."""
            _risk, gradient = self.by_scores(point.scores + step * unit)
            return float(gradient @ unit)

        # Go from 0 in the direction of lower risk, each time twice as far, until past
        # the root.
        end = -np.sign(slope(0.0))
        while slope(end) * end < 0:
            end *= 2
        return brentq(slope, 0.0, end, xtol=1e-300, rtol=4 * _EPS)  # to the last digits


class Side(NamedTuple):
    """A term of a `PairwiseRisk`: the push at the top or at the bottom.

    The push at the bottom is the push at the top of the negated scores, with all pairs
    turned round.
    """

    sign: float  # of the scores: 1 at the top, -1 at the bottom
    constant: float  # the logarithm of the weight of the term, divided by p
    pairs: PairLists


class PairwiseRisk(ScoreRisk):
    """The risk over listed pairs, with the exponential or the logistic loss."""

    # Minimised is log(R) / p for the exponential loss and R^(1/p), the p-norm of the
    # h_k, for the logistic loss: each is convex.

    def __init__(
        self,
        X: Any,
        relation: Classes | PairLists,
        p: float,
        logistic: bool,
        sides: Sequence[Side],
    ):
        super().__init__(X, relation)
        self.p = p
        self.logistic = logistic
        self.sides = sides

    def at(self, w: NDArray[np.float64]) -> Evaluation:
        scores = linear_scores(self.rows, w)
        value, by_scores = self.by_scores(scores)  # of log(R) / p
        gradient = self.by_weights(by_scores)
        log_risk = self.p * value
        noise = self.noise(by_scores)
        if self.logistic:  # from log(R) / p to R^(1/p), by the chain rule
            value = float(np.exp(value))
            gradient *= value
            noise *= value
        return Evaluation(scores, value, gradient, log_risk=log_risk, noise=noise)

    def by_scores(
        self, scores: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        # h_k is the sum of the loss over the pairs of row k: of negatives k at the top,
        # of positives k, with turned signs, at the bottom. With the weight c of the
        # side of row k,
        #     log(R) / p = 1/p log sum_k c h_k^p,
        #     its gradient = sum_k o_k h_k' / h_k,   o_k = c h_k^p / R.
        weighted_by_side = self._weighted_log_heights(scores)
        log_risks = self.p * np.concatenate(weighted_by_side)
        ends = np.cumsum([len(weighted) for weighted in weighted_by_side])
        shares_by_side = np.split(softmax(log_risks), ends[:-1])  # o_k
        gradient = np.zeros(len(scores))
        for side, weighted, shares in zip(
            self.sides, weighted_by_side, shares_by_side, strict=True
        ):
            signed = side.sign * scores
            gradient_of_side = np.zeros(len(scores))
            for first, stop in side.pairs.slices(_EVALUATED):
                pair_gradient(  # adds to `gradient_of_side` in place
                    signed,
                    *side.pairs,
                    logistic=self.logistic,
                    first=first,
                    last=stop,
                    log_heights=weighted - side.constant,
                    weights=shares,
                    gradient=gradient_of_side,
                )
            gradient += side.sign * gradient_of_side
        return float(logsumexp(log_risks)) / self.p, gradient

    def _weighted_log_heights(
        self, scores: NDArray[np.float64]
    ) -> list[NDArray[np.float64]]:
        """Return by side ``log h_k`` of its lower rows k, plus the side's constant."""
        weighted_by_side = []
        for side in self.sides:
            log_heights = np.empty(len(side.pairs.lower))
            signed = side.sign * scores
            for first, stop in side.pairs.slices(_EVALUATED):
                pair_heights(  # fills `log_heights` from first to stop
                    signed,
                    *side.pairs,
                    logistic=self.logistic,
                    first=first,
                    last=stop,
                    log_heights=log_heights,
                )
            weighted_by_side.append(log_heights + side.constant)
        return weighted_by_side

    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the matrix of second derivatives, summed over blocks of pairs (i, k).

        They are those of log(R) / p or, with the logistic loss, of R^(1/p).
        """
        # With h_k and o_k as in `by_scores`,
        #     (log(R) / p)'' = sum_k o_k (h_k'' / h_k + (p - 1) r_k r_k') - p g g',
        #     r_k = h_k' / h_k,   g = sum_k o_k r_k,
        #     (R^(1/p))'' = R^(1/p) ((log(R) / p)'' + g g').
        scores = linear_scores(self.rows, w)
        weighted_by_side = self._weighted_log_heights(scores)
        log_risk = float(logsumexp(self.p * np.concatenate(weighted_by_side)))
        n_features = len(w)
        n_block_pairs = max(1, _BLOCK_VALUES // n_features)
        total = np.zeros((n_features, n_features))
        mean = np.zeros(n_features)
        for side, weighted in zip(self.sides, weighted_by_side, strict=True):
            for block in side.pairs.blocks(n_block_pairs):
                lower = side.pairs.lower[block.lists]  # the rows k
                # Of each pair: z = s_k - s_i, at the bottom s_i - s_k, its gradient in
                # w, and log h_k.
                lower_scores = np.repeat(scores[lower], block.lengths)
                z = side.sign * (lower_scores - scores[block.upper])
                lower_rows = np.repeat(_dense(self.X[lower]), block.lengths, axis=0)
                differences = side.sign * (lower_rows - _dense(self.X[block.upper]))
                log_heights = weighted[block.lists] - side.constant
                slope, curvature = self._loss_derivatives(
                    z, np.repeat(log_heights, block.lengths)
                )
                shares = np.exp(self.p * weighted[block.lists] - log_risk)  # o_k
                r = np.add.reduceat(differences * slope[:, None], block.begins)  # r_k
                weights = np.repeat(shares, block.lengths) * curvature
                total += differences.T @ (differences * weights[:, None])
                total += (self.p - 1) * (r.T @ (r * shares[:, None]))
                mean += shares @ r  # g
        if self.logistic:
            # (log(R) / p)'' + g g', in which -p g g' + g g' = -(p - 1) g g'
            factor = total - (self.p - 1) * np.outer(mean, mean)
            return np.exp(log_risk / self.p) * factor
        return total - self.p * np.outer(mean, mean)

    def _loss_derivatives(
        self, z: NDArray[np.float64], log_heights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return first and second derivative of the loss in z, each divided by h_k.

        `log_heights` holds log h_k of each pair.
        """
        # With the logistic loss, where expit(z) = exp(-ln(1 + exp(-z))), they are
        #     expit(z) / h_k   and   expit(z) expit(-z) / h_k,
        # with the exponential loss both are exp(z) / h_k.
        if self.logistic:
            slope = np.exp(-np.logaddexp(0, -z) - log_heights)
            return slope, slope * expit(-z)
        slope = np.exp(z - log_heights)
        return slope, slope


class InformationRetrievalRisk(ScoreRisk):
    """The objective of the IR Push, equation (2): a sum over the positives."""

    def __init__(self, X: Any, labels: NDArray[np.int8]):
        super().__init__(X, Classes(labels))
        self.positive = labels > 0

    def at(self, w: NDArray[np.float64]) -> Evaluation:
        scores = linear_scores(self.rows, w)
        value, by_scores = self.by_scores(scores)
        return Evaluation(
            scores,
            value,
            gradient=self.by_weights(by_scores),
            log_risk=float(np.log(value)),
            noise=self.noise(by_scores),
        )

    def by_scores(
        self, scores: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the risk and its gradient by the scores."""
        # R = sum_i ln(1 + exp(above_i)),   above_i = ln sum_k exp(s_k - s_i),
        # over the positives i and the negatives k.
        pos, neg = scores[self.positive], scores[~self.positive]
        above = logsumexp(neg) - pos
        gradient = np.empty(len(scores))
        gradient[self.positive] = -expit(above)
        gradient[~self.positive] = softmax(neg) * expit(above).sum()
        return float(np.logaddexp(0, above).sum()), gradient

    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        # With above_i as in `by_scores`, a_i = expit(above_i), q the softmax of the
        # scores of the negatives k and c = sum_k q_k x_k,
        #     R'' = sum_i a_i (1 - a_i) (x_i - c)(x_i - c)'
        #           + sum_i a_i sum_k q_k (x_k - c)(x_k - c)'.
        scores = linear_scores(self.rows, w)
        pos, neg = scores[self.positive], scores[~self.positive]
        above = logsumexp(neg) - pos
        shares = np.zeros(len(scores))  # q, and 0 for positives
        shares[~self.positive] = np.exp(log_softmax(neg))  # q = exp(ln q)
        weights = shares * expit(above).sum()  # of negatives, 0 for positives
        weights[self.positive] = expit(above) * expit(-above)  # a_i (1 - a_i)
        return self.scatter(weights, centre=self.by_weights(shares))  # c

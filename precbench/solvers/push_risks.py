"""The risks of the pushes: value, gradient, Hessian and line search."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, logsumexp, softmax

from precbench.kernels import push
from precbench.solvers.rows import as_rows, linear_scores, weighted_sum

_EPS = float(np.finfo(np.float64).eps)
_EVALUATED = 2**21  # rows, or pairs, that a kernel visits in a fraction of 0.1 s
_BLOCK_VALUES = 2**20  # of a temporary matrix
_THIN = 0.2  # fraction of non-zeros below which sparse products are faster than dense ones
_ROUNDING = 1e-6  # relative to the greatest difference of scores


class Evaluation(NamedTuple):
    """A risk at one w; `noise` bounds the rounding error of each entry of the `gradient`."""

    scores: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]
    log_risk: float
    noise: float


class Classes:
    """The relation "every positive above every negative"."""

    def __init__(self, labels: NDArray[np.int8]):
        self.pos, self.neg = np.flatnonzero(labels > 0), np.flatnonzero(labels < 0)

    def range(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return the least and the greatest ``values[i] - values[k]`` over the pairs."""
        pos, neg = values[self.pos], values[self.neg]
        return float(pos.min() - neg.max()), float(pos.max() - neg.min())

    def least_gap(self, values: NDArray[np.float64]) -> float:
        """Return the least ``values[i] - values[k]`` above 0; no pair may have a negative one."""
        least, _ = self.range(values)
        if least > 0:
            return least
        # The lowest positive is as high as the highest negative: all gaps are from this value.
        gaps = np.abs(values - values[self.pos].min())
        return float(gaps[gaps > 0].min())


class PairLists(NamedTuple):
    """A relation as lists: the rows ``upper[starts[m]:stops[m]]`` should rank above `lower[m]`."""

    upper: NDArray[np.int32]
    lower: NDArray[np.int32]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]

    @classmethod
    def of_labels(cls, labels: NDArray[np.int8]) -> Self:
        upper, lower = (np.flatnonzero(side).astype(np.int32) for side in (labels > 0, labels < 0))
        starts = np.zeros(len(lower), dtype=np.int32)
        return cls(upper, lower, starts, np.full(len(lower), len(upper), dtype=np.int32))

    @classmethod
    def of_matrix(cls, columns: sparse.csc_array | sparse.csr_array) -> Self:
        """Make a list of each column of a CSC matrix, or row of a CSR one, that has entries."""
        indptr = columns.indptr.astype(np.int32)
        lower = np.flatnonzero(np.diff(indptr)).astype(np.int32)
        upper = columns.indices.astype(np.int32)
        return cls(upper, lower, indptr[lower], indptr[lower + 1])

    def slices(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of lists with at most `most` pairs each; a longer list is on its own."""
        ends = np.cumsum(self.stops - self.starts, dtype=np.int64)
        first = 0
        while first < len(ends):
            n_before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, n_before + most, "right")))
            yield first, last
            first = last

    def blocks(self, most: int) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.intp]]]:
        """Yield slices of the lists, their upper rows one after the other, and where each begins.

        The number of all pairs of a slice ends its last array.
        """
        for first, last in self.slices(most):
            part = slice(first, last)
            lists = zip(self.starts[part], self.stops[part], strict=True)
            upper = np.concatenate([self.upper[start:stop] for start, stop in lists])
            begins = np.concatenate(([0], np.cumsum((self.stops - self.starts)[part])))
            yield part, upper, begins

    def differences(self, values: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield ``values[upper] - values[lower]`` of all pairs, in blocks."""
        for part, upper, begins in self.blocks(_BLOCK_VALUES):
            yield values[upper] - np.repeat(values[self.lower[part]], np.diff(begins))

    def range(self, values: NDArray[np.float64]) -> tuple[float, float]:
        ranges = [(block.min(), block.max()) for block in self.differences(values)]
        return float(min(low for low, _ in ranges)), float(max(high for _, high in ranges))

    def least_gap(self, values: NDArray[np.float64]) -> float:
        blocks = self.differences(values)
        return float(min(block[block > 0].min(initial=np.inf) for block in blocks))


class PushRisk(ABC):
    """A convex risk of the scores ``X @ w``."""

    def __init__(self, X: Any, relation: Classes | PairLists):
        self.X = X
        self.rows = as_rows(X)
        self.relation = relation

    @abstractmethod
    def at(self, w: NDArray[np.float64]) -> Evaluation: ...

    @abstractmethod
    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]: ...

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
        data = self.rows.data
        return float(max(data.max(initial=0), -data.min(initial=0)))

    def is_unbounded_along(self, axes: NDArray[np.float64]) -> bool:
        """Return whether one of the columns, of norm 1, ranks some pair rightly and none wrongly.

        Its opposite may do so, too. Differences below a millionth of the greatest count as 0.
        """
        for axis in axes.T:
            scores = linear_scores(self.rows, np.ascontiguousarray(axis))
            low, high = self.relation.range(scores)
            least, most = (low, high) if high >= -low else (-high, -low)  # of axis or opposite
            if most > _ROUNDING * self.largest and least >= -_ROUNDING * most:
                return True
        return False

    def column(self, j: int) -> NDArray[np.float64]:
        return _dense(self.X[:, [j]]).ravel()

    def by_weights(self, by_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient in w from the gradient in the scores."""
        return weighted_sum(self.rows, by_scores, self.X.shape[1])

    def noise(self, by_scores: NDArray[np.float64]) -> float:
        return 4 * _EPS * float(np.abs(by_scores).sum()) * self.largest

    def scatter(
        self, weights: NDArray[np.float64], centre: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return ``sum_i weights[i] (x_i - centre)(x_i - centre)'``."""
        total = np.zeros((len(centre), len(centre)))
        weighted = np.flatnonzero(weights)
        n_values = self.rows.n_rows * len(centre)
        is_thin = self.rows.data.size < _THIN * n_values
        if is_thin:
            n_values = self.rows.data.size
        length = max(1, _BLOCK_VALUES * self.rows.n_rows // max(1, n_values))
        for start in range(0, len(weighted), length):
            rows = weighted[start : start + length]
            if is_thin:  # stays sparse: the centre is subtracted from the total below
                part = self.X[rows]
                total += (part.T @ part.multiply(weights[rows, None])).toarray()
            else:
                centred = _dense(self.X[rows]) - centre
                total += centred.T @ (centred * weights[rows, None])
        if is_thin:
            crossed = np.outer(centre, self.by_weights(weights))
            total += weights.sum() * np.outer(centre, centre) - crossed - crossed.T
        return total


def _dense(X: Any) -> NDArray[np.float64]:
    dense = X.toarray() if sparse.issparse(X) else X
    return dense.astype(np.float64, copy=False)


class ExponentialRisk(PushRisk):
    """``log(R) / p`` for the exponential loss and all pairs of two classes."""

    # ``terms`` holds the rates (a, b) and a constant c of each term of R, see the kernels:
    # ``log(R) / p = 1/p log sum_m exp(p (G_m + c_m))``.

    def __init__(self, X: Any, labels: NDArray[np.int8], p: float, terms: NDArray[np.float64]):
        super().__init__(X, Classes(labels))
        self.labels, self.p, self.terms = labels, p, terms
        self.reach = 4 / float(terms[:, :2].max())  # of a step that changes the weights little

    def at(self, w: NDArray[np.float64]) -> Evaluation:
        # The gradient of a term is the mean row of the negatives less that of the positives.
        scores, values, _, means = self._terms_at(w)
        value, gradients = values[0], means[:, 1] - means[:, 0]
        gradient = gradients[0]
        if len(values) > 1:  # top and bottom
            gradient = softmax(self.p * values) @ gradients
            value = logsumexp(self.p * values) / self.p
        noise = 4 * _EPS * float(np.abs(means).max(initial=0))
        return Evaluation(scores, float(value), gradient, self.p * float(value), noise)

    def _terms_at(self, w: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return the scores, and of each term m its value and sums by class, 0 the positives."""
        # These are ``G_m + c_m`` (n_terms,), and for each class the logarithm of the sum of the
        # exponentials (n_terms, 2) and the mean row that they weigh (n_terms, 2, n_features).
        rows, n_terms = self.rows, len(self.terms)
        scores, length = np.empty(rows.n_rows), max(1, rows.per_slice() // 4)
        values, logs, means = (
            np.empty(n_terms),
            np.empty((n_terms, 2)),
            np.zeros((n_terms, 2, len(w))),
        )
        for m, (rate_pos, rate_neg, constant) in enumerate(self.terms.tolist()):
            peaks, totals = np.full(2, -np.inf), np.zeros(2)
            for start in range(0, rows.n_rows, length):
                push.class_sums(
                    rows, self.labels, w, rate_pos, rate_neg, start,
                    min(rows.n_rows, start + length), scores, peaks, totals, means[m],
                )  # fmt: skip
            means[m] /= totals[:, None]
            logs[m] = peaks + np.log(totals)
            values[m] = logs[m, 0] / rate_pos + logs[m, 1] / rate_neg + constant
        return scores, values, logs, means

    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the second derivatives: those within the terms, and between their gradients."""
        scores, values, logs, means = self._terms_at(w)
        shares, gradients = softmax(self.p * values), means[:, 1] - means[:, 0]
        mean = shares @ gradients
        total = -self.p * np.outer(mean, mean)
        negative = self.labels < 0
        for m, (rate_pos, rate_neg, _) in enumerate(self.terms):
            total += shares[m] * self.p * np.outer(gradients[m], gradients[m])
            exponents = np.where(negative, rate_neg, -rate_pos) * scores
            weights = np.exp(exponents - logs[m, negative.astype(np.intp)])
            total += shares[m] * rate_pos * self.scatter(weights * ~negative, means[m, 0])
            total += shares[m] * rate_neg * self.scatter(weights * negative, means[m, 1])
        return total

    def _root_along(self, point: Evaluation, unit: NDArray[np.float64]) -> float:
        # Newton's method for the root, kept within the bracket (low, high) once both are known.
        low, high, step, done = -math.inf, math.inf, 0.0, False
        while not done:
            slope, curvature = push.derivatives_along(
                point.scores, self.labels, unit, self.terms, self.p, step
            )
            low, high = (step, high) if slope < 0 else (low, step)
            proposal = step - slope / curvature if curvature > 0 else math.inf
            tol = 1e-9  # Newton's method then has all digits
            # Without a bracket, a step where the curvature nearly vanishes could go anywhere.
            if math.isinf(low) or math.isinf(high):
                most = self.reach + 4 * abs(step)
                if not abs(proposal - step) <= most:
                    proposal, tol = step + (most if slope < 0 else -most), 0.0
            elif not low < proposal < high:
                proposal, tol = low + (high - low) / 2, 4e-16
            if abs(slope) <= _EPS:
                break
            done = abs(proposal - step) <= tol * abs(step)
            step = proposal
        return step


class ScoreRisk(PushRisk):
    """A risk that gives its derivatives with respect to the scores."""

    @abstractmethod
    def by_scores(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the risk (`PairwiseRisk`: ``log(R) / p``) and its gradient in the scores."""

    def _root_along(self, point: Evaluation, unit: NDArray[np.float64]) -> float:
        def slope(step: float) -> float:
            return float(self.by_scores(point.scores + step * unit)[1] @ unit)

        end = -np.sign(slope(0.0))  # doubled until the root lies between 0 and the end
        while slope(end) * end < 0:
            end *= 2
        return brentq(slope, 0.0, end, xtol=1e-300, rtol=4 * _EPS)


class PairwiseRisk(ScoreRisk):
    """The risk over listed pairs, with the exponential or the logistic loss."""

    # Minimised is ``log(R) / p`` for the exponential loss and ``R ** (1/p)``, the p-norm of the
    # h_k, for the logistic one: each is convex. ``sides`` holds a sign, a constant and a relation
    # for each term of R: the push at the bottom is that at the top of the negated scores with all
    # pairs turned round.

    def __init__(
        self,
        X: Any,
        relation: Classes | PairLists,
        p: float,
        logistic: bool,
        sides: list[tuple[float, float, PairLists]],
    ):
        super().__init__(X, relation)
        self.p, self.logistic, self.sides = p, logistic, sides

    def at(self, w: NDArray[np.float64]) -> Evaluation:
        # `by_scores` gives ``log(R) / p`` and its gradient in the scores.
        scores = linear_scores(self.rows, w)
        value, by_scores = self.by_scores(scores)
        gradient, log_risk = self.by_weights(by_scores), self.p * value
        noise = self.noise(by_scores)
        if self.logistic:  # minimises R ** (1/p) instead of its logarithm
            value = float(np.exp(value))
            gradient *= value
            noise *= value
        return Evaluation(scores, value, gradient, log_risk, noise)

    def by_scores(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return ``log(R) / p`` and its gradient with respect to the scores."""
        heights = self._log_heights(scores)
        log_risks = self.p * np.concatenate(heights)
        weights = np.split(softmax(log_risks), np.cumsum([len(h) for h in heights])[:-1])
        gradient = np.zeros(len(scores))
        for (sign, constant, pairs), log_heights, shares in zip(
            self.sides, heights, weights, strict=True
        ):
            part, signed = np.zeros(len(scores)), sign * scores
            for first, last in pairs.slices(_EVALUATED):
                push.pair_gradient(
                    signed, *pairs, self.logistic, first, last,
                    log_heights - constant, shares, part,
                )  # fmt: skip
            gradient += sign * part
        return float(logsumexp(log_risks)) / self.p, gradient

    def _log_heights(self, scores: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return ``log h_k`` plus the constant of the side, an array for each side."""
        heights = []
        for sign, constant, pairs in self.sides:
            log_heights, signed = np.empty(len(pairs.lower)), sign * scores
            for first, last in pairs.slices(_EVALUATED):
                push.pair_heights(signed, *pairs, self.logistic, first, last, log_heights)
            heights.append(log_heights + constant)
        return heights

    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the second derivatives, from blocks of pairs."""
        # With h_k' and h_k'' the derivatives of h_k and shares ``o_k ~ h_k ** p``,
        #
        #     (log(R) / p)'' = sum_k o_k (h_k''/h_k + (p - 1) r_k r_k') - p g g',   r_k = h_k'/h_k,
        #     g = sum_k o_k r_k,  and for R ** (1/p) that plus g g', times R ** (1/p).
        scores = linear_scores(self.rows, w)
        heights = self._log_heights(scores)
        log_risk = float(logsumexp(self.p * np.concatenate(heights)))
        n = len(w)
        total, mean = np.zeros((n, n)), np.zeros(n)
        for (sign, constant, pairs), log_heights in zip(self.sides, heights, strict=True):
            for part, upper, begins in pairs.blocks(max(1, _BLOCK_VALUES // n)):
                lists, lower = np.diff(begins), pairs.lower[part]
                z = sign * (np.repeat(scores[lower], lists) - scores[upper])
                log_h = np.repeat(log_heights[part] - constant, lists)
                slope = np.exp((-np.logaddexp(0, -z) if self.logistic else z) - log_h)
                curvature = slope * expit(-z) if self.logistic else slope
                shares = np.exp(self.p * log_heights[part] - log_risk)
                differences = sign * (
                    np.repeat(_dense(self.X[lower]), lists, axis=0) - _dense(self.X[upper])
                )
                r = np.add.reduceat(differences * slope[:, None], begins[:-1])
                weights = np.repeat(shares, lists) * curvature
                total += differences.T @ (differences * weights[:, None])
                total += (self.p - 1) * (r.T @ (r * shares[:, None]))
                mean += shares @ r
        if self.logistic:
            return np.exp(log_risk / self.p) * (total - (self.p - 1) * np.outer(mean, mean))
        return total - self.p * np.outer(mean, mean)


class InformationRetrievalRisk(ScoreRisk):
    """The objective of the IR Push, equation (2): a sum over the positives."""

    def __init__(self, X: Any, labels: NDArray[np.int8]):
        super().__init__(X, Classes(labels))
        self.positive = labels > 0

    def at(self, w: NDArray[np.float64]) -> Evaluation:
        scores = linear_scores(self.rows, w)
        value, by_scores = self.by_scores(scores)
        gradient, log_risk = self.by_weights(by_scores), float(np.log(value))
        return Evaluation(scores, value, gradient, log_risk, self.noise(by_scores))

    def by_scores(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        # above_i = log sum_k exp(s_k - s_i), of which the risk sums ln(1 + exp(above_i)).
        pos, neg = scores[self.positive], scores[~self.positive]
        above = logsumexp(neg) - pos
        gradient = np.empty(len(scores))
        gradient[self.positive] = -expit(above)
        gradient[~self.positive] = softmax(neg) * expit(above).sum()
        return float(np.logaddexp(0, above).sum()), gradient

    def hessian(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the second derivatives: a weighted scatter around the soft maximal negative."""
        scores = linear_scores(self.rows, w)
        pos, log_shares = scores[self.positive], log_softmax(scores[~self.positive])
        above = logsumexp(scores[~self.positive]) - pos
        shares = np.zeros(len(scores))
        shares[~self.positive] = np.exp(log_shares)
        weights = shares * expit(above).sum()
        weights[self.positive] = expit(above) * expit(-above)
        return self.scatter(weights, self.by_weights(shares))

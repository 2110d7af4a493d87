r"""Losses of a whole ranked list, as value and subgradient with respect to the scores.

Given scores s and labels y in {0, 1} of n rows, n₊ of them positive and n₋ negative,
write :math:`\Delta(y, \hat y) = \sum_i (1 - y_i) \hat y_i` for the false positives and
:math:`K(y, \hat y) = \sum_i y_i \hat y_i` for the true positives of a candidate
labelling :math:`\hat y` with exactly k <= n₊ ones. The loss prec@k is the number of
negatives among the k highest scores (1). `SURROGATES` are maxima over all such
candidates:

.. math::

   struct &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i (\hat y_i - y_i) s_i\}
          \; (3)

   ramp &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i \hat y_i s_i\}
          - (\text{sum of the k highest positive scores})
          \; (4)

   max &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i (\hat y_i - y_i) s_i
          + \text{sum of the n₊ - k highest false negative scores}\}
          \; (6)

   avg &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i (\hat y_i - y_i) s_i
          + \frac{n_+ - k}{n_+ - K(y, \hat y)} \sum_i (1 - \hat y_i) y_i s_i\}
          \; (7)

where 0/0 = 0. Always prec@k <= ramp <= avg <= max, and ramp, avg, max are 0 exactly if
the weak (k, 1)-, the (k, 1)-, the strong 1-margin holds (`margins`). For k = n₊ all
four surrogates are equal. For k < n₊ struct may fall below the loss and even below 0,
and adding c to all scores adds (k - n₊)c to struct; the other surrogates do not change.

Sorting replaces the maximum over candidates: with s⁺ and s⁻ the descending scores of
the two classes, the best candidate with k' true positives takes the k' highest
positives and the k - k' highest negatives.

`OBJECTIVES` are the convex losses that solvers minimise:

``prec@k``
    struct; k = n₊, the break-even point (PRBEP), is the only case in which it is an
    upper bound on the loss.
``pauc``
    The mean hinge over the pairs of a positive and one of the :math:`m = \lceil\beta
    n_-\rceil` highest negatives, :math:`\frac{1}{n_+ m} \sum_i \sum_{j \le m} [1 -
    (s^+_i - s^-_j)]_+`.
``auc``
    The mean hinge over all pairs, that is, pauc with β = 1.
``f1``
    :math:`\max_{\hat y \in \{0,1\}^n} \{1 - F_1(y, \hat y) + \frac{1}{n_+} \sum_i (\hat
    y_i - y_i) s_i\}`. A score above 0 means "positive", so the linear model needs an
    intercept.

All are piecewise linear. Of rows with equal scores, the one with the lower index comes
first.

References
----------
kar2015
    Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the top",
    ICML 2015; the equation numbers above.
kar2014
    Kar, Narasimhan, Jain, "Online and stochastic gradient methods for non-decomposable
    loss functions", NIPS 2014.

Joachims, "A support vector method for multivariate performance measures", ICML 2005.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.core.kernels.linear import dot
from precbench.ranking.metrics import check_ranking
from precbench.ranking.pairs_kernel import count_pairs
from precbench.ranking.topk import ceil_share, check_beta, resolve_k, top_rows

__all__ = [
    "AUC",
    "F1",
    "OBJECTIVES",
    "SURROGATES",
    "AvgSurrogate",
    "Loss",
    "Margins",
    "MaxSurrogate",
    "PartialAUC",
    "PrecisionAtK",
    "RampSurrogate",
    "StructSurrogate",
    "Surrogate",
    "margins",
    "pair_hinges",
    "prec_loss",
    "struct",
]

# Value and subgradient.
Evaluation = tuple[float, NDArray[np.float64]]


@dataclass(frozen=True)
class Loss(ABC):
    """A loss of the scores of a set of rows; its fields are its parameters.

    Attributes
    ----------
    name : str
        Key in `SURROGATES` or `OBJECTIVES`.
    is_convex : bool
        Whether the loss is convex in the scores.
    has_threshold : bool
        Whether the score 0 divides the classes, so that a linear model needs an
        intercept.

    Examples
    --------
    >>> from precbench.ranking.losses import OBJECTIVES
    >>> sorted(OBJECTIVES)
    ['auc', 'f1', 'pauc', 'prec@k']
    """

    name: ClassVar[str]
    is_convex: ClassVar[bool] = True
    has_threshold: ClassVar[bool] = False

    def value(
        self, scores: ArrayLike, y: ArrayLike, k: float | int | None = None
    ) -> float:
        """Return the loss at these scores.

        Parameters
        ----------
        scores, y : array-like of shape (n_samples,)
            Finite scores, and labels with two distinct values, the greater the positive
            class.
        k : float or int, optional
            For a surrogate: fraction of the positives (float in (0, 1], rounded up) or
            count (int >= 1). By default the `k` of the instance, which is None in
            `SURROGATES`.

        Returns
        -------
        float
            For a surrogate on the scale of prec@k, which lies between 0 and k.

        Raises
        ------
        InputError
            If scores, labels or a parameter are invalid, such as a k above the number
            of positives.
        """
        value, _subgradient = self._evaluation(scores, y, k)
        return value

    def subgradient(
        self, scores: ArrayLike, y: ArrayLike, k: float | int | None = None
    ) -> NDArray[np.float64]:
        """Return a subgradient with respect to the scores, of shape (n_samples,).

        See `value`.

        If several candidates attain the maximum, the first one in the order of the
        class counts.
        """
        _value, subgradient = self._evaluation(scores, y, k)
        return subgradient

    def _evaluation(
        self, scores: ArrayLike, y: ArrayLike, k: float | int | None
    ) -> Evaluation:
        """Check the arguments, and evaluate the loss with `k` in place of its own."""
        positive, checked = check_ranking(y, scores)
        given: dict[str, Any] = {} if k is None else {"k": k}
        loss = replace(self, **given)
        return loss.evaluate(np.ascontiguousarray(checked), positive)

    @abstractmethod
    def evaluate(
        self, scores: NDArray[np.float64], positive: NDArray[np.bool_]
    ) -> Evaluation:
        """Return value and subgradient for finite scores, given a mask of positives."""


@dataclass(frozen=True)
class Surrogate(Loss):
    """A surrogate for the loss prec@k.

    Parameters
    ----------
    k : float or int, optional
        Fraction of the positives in (0, 1], rounded up, or a count of at most n₊.

    Examples
    --------
    >>> from precbench.ranking.losses import SURROGATES
    >>> [name for name in SURROGATES if SURROGATES[name].is_convex]
    ['max', 'avg', 'struct']
    """

    k: float | int | None = None

    def count(self, positive: NDArray[np.bool_]) -> int:
        """Return k as a number of rows; raise an error if the instance has no k."""
        return resolve_k(self.k, int(np.count_nonzero(positive)))  # type: ignore[arg-type]


def _rank(scores: NDArray, member: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the rows of the mask `member` by descending score, ties in order."""
    rows = np.flatnonzero(member)
    return rows[np.argsort(-scores[rows], kind="stable")]


def _sums_of_first(values: NDArray) -> NDArray:
    """Return an array whose entry n is the sum of the first n values."""
    return np.concatenate(([0.0], np.cumsum(values)))


def _augmented_top_less(
    scores: NDArray, positive: NDArray[np.bool_], k: int, subtracted: NDArray
) -> Evaluation:
    """Return the sum of the k highest v_i, less the sum of s_i over `subtracted` rows.

    The augmented scores are v_i = s_i + 1[y_i = 0]. The second result is the
    subgradient with respect to the scores s.
    """
    augmented = scores + ~positive
    top = top_rows(augmented, rows=None, count=k)
    gradient = np.zeros_like(scores)
    gradient[top] = 1
    gradient[subtracted] -= 1
    # Each negative in the top adds its 1.
    n_negatives = np.count_nonzero(~positive[top])
    return n_negatives + dot(gradient, scores), gradient


def struct(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], k: int
) -> Evaluation:
    """Return value and subgradient of `StructSurrogate`, also for one class only.

    `k` is a number of rows, 0 <= k <= n.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.ranking.losses import struct
    >>> scores, positive = np.array([0.5, 2.0, 0.0]), np.array([False, True, False])
    >>> value, gradient = struct(scores, positive, 1)
    >>> float(value), gradient.tolist()
    (0.0, [0.0, 0.0, 0.0])
    """
    return _augmented_top_less(scores, positive, k, subtracted=np.flatnonzero(positive))


@dataclass(frozen=True)
class StructSurrogate(Surrogate):
    """The structural surrogate of Joachims (2005), kar2015 (3).

    With A the rows of the k highest v_i = s_i + 1[y_i = 0]: the sum of v_i over A minus
    all positive scores. Subgradient: 1[A] - 1[positives]. An upper bound on the loss
    only for k = n₊.

    Examples
    --------
    >>> from precbench.ranking.losses import StructSurrogate
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(StructSurrogate(k=1).value(scores, y))  # 2 - (2 - 1)
    1.0
    """

    name = "struct"

    def evaluate(self, scores, positive):
        return struct(scores, positive, self.count(positive))


@dataclass(frozen=True)
class RampSurrogate(Surrogate):
    """The ramp surrogate, kar2015 (4): tight, but not convex.

    With A the rows of the k highest v_i = s_i + 1[y_i = 0]: the sum of v_i over A minus
    the k highest positive scores. Subgradient: 1[A] - 1[k highest positives].

    Examples
    --------
    >>> from precbench.ranking.losses import RampSurrogate
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(RampSurrogate(k=1).value(scores, y))  # 2 - 2: a positive is first
    0.0
    """

    name = "ramp"
    is_convex = False

    def evaluate(self, scores, positive):
        k = self.count(positive)
        return _augmented_top_less(
            scores, positive, k, subtracted=top_rows(scores, positive, k)
        )


@dataclass(frozen=True)
class MaxSurrogate(Surrogate):
    """The max surrogate, kar2015 (6).

    The sum over j = 1..min(k, n₋) of the hinges [1 + s⁻_j - (j-th lowest positive
    score)]_+, which never increase in j. Subgradient: +1, -1 on negative and positive
    of each pair with a hinge > 0.

    Examples
    --------
    >>> from precbench.ranking.losses import MaxSurrogate
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(MaxSurrogate(k=1).value(scores, y))  # 1 + 0.5 - (-1)
    2.5
    """

    name = "max"

    def evaluate(self, scores, positive):
        """Sum ``[1 + s_j - s_i]_+`` over min(k, n₋) pairs.

        The highest negative j with the lowest positive i, the second highest with the
        second lowest, and so on.
        """
        neg = _rank(scores, ~positive)[: self.count(positive)]  # the highest first
        pos = _rank(scores, positive)[::-1][: neg.size]  # the lowest first
        hinges = 1 + scores[neg] - scores[pos]
        active = hinges > 0
        gradient = np.zeros_like(scores)
        gradient[neg[active]] = 1
        gradient[pos[active]] = -1
        return float(hinges[active].sum()), gradient


@dataclass(frozen=True)
class AvgSurrogate(Surrogate):
    """The avg surrogate, kar2015 (7) and Algorithm 4.

    The maximum over the number k' of true positives, max(0, k - n₋) <= k' <= k, of (k -
    k') + (k - k' highest negative scores) - D (positive scores except the k' highest),
    with D = (k - k') / (n₊ - k'). Subgradient: +1 on the negatives, -D on the positives
    of these sums, for the first k' that attains the maximum.

    Examples
    --------
    >>> from precbench.ranking.losses import AvgSurrogate
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(AvgSurrogate(k=1).value(scores, y))  # 1 + 0.5 - (2 - 1) / 2, for k' = 0
    1.0
    """

    name = "avg"

    def evaluate(self, scores, positive):
        """Maximise over the number of true positives.

        Of labellings with a (above: k') true and b = k - a false positives, the best
        takes the highest s⁺_i and s⁻_j. Its value, by prefix sums for all a, is

            b + sum_{j <= b} s⁻_j - D sum_{i > a} s⁺_i,

        with D = b / (n₊ - a), or 0 for b = 0.
        """
        k = self.count(positive)
        pos = _rank(scores, positive)
        neg = _rank(scores, ~positive)
        pos_sums = _sums_of_first(scores[pos])
        neg_sums = _sums_of_first(scores[neg])
        n_true = np.arange(max(0, k - neg.size), k + 1)  # all a
        n_false = k - n_true  # b for each a
        # D for each a. If a = n₊, b is 0, and so is D.
        weights = n_false / np.maximum(pos.size - n_true, 1)
        other_pos_sums = pos_sums[-1] - pos_sums[n_true]  # sum_{i > a} s⁺_i
        values = n_false + neg_sums[n_false] - weights * other_pos_sums
        best = int(np.argmax(values))  # of equal values the first
        gradient = np.zeros_like(scores)
        gradient[neg[: n_false[best]]] += 1
        gradient[pos[n_true[best] :]] -= weights[best]
        return float(values[best]), gradient


@dataclass(frozen=True)
class PrecisionAtK(StructSurrogate):
    """The struct surrogate as an objective.

    kar2014 (3) is 4 times this loss at half the scores, plus a constant.

    Parameters
    ----------
    k : float or int, default=0.25
        Fraction of the positives in (0, 1], rounded up, or a count of at most n₊.

    Examples
    --------
    >>> from precbench.ranking.losses import PrecisionAtK
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(PrecisionAtK(k=2).value(scores, y))  # 2 + 1.5 - (2 - 1)
    2.5
    """

    k: float | int = 0.25
    name = "prec@k"


@dataclass(frozen=True)
class PartialAUC(Loss):
    """The hinge loss of the partial AUC, kar2014 (5), as a mean over its pairs.

    Parameters
    ----------
    beta : float, default=0.1
        Fraction of the negatives in (0, 1]: the ``ceil(beta n₋)`` highest are used.

    Notes
    -----
    Never below 1 - pAUC, whatever the weight of a tied pair. Convex, because the
    highest negatives maximise the sum of hinges over all sets of this size; subgradient
    as in kar2014, appendix H.

    Examples
    --------
    >>> from precbench.ranking.losses import PartialAUC
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(PartialAUC(beta=0.5).value(scores, y))  # (0 + 2.5) / 2, against 0.5
    1.25
    """

    beta: float = 0.1
    name = "pauc"

    def __post_init__(self):
        check_beta(self.beta)

    def evaluate(self, scores, positive):
        pos = np.flatnonzero(positive)
        n_top = ceil_share(self.beta, positive.size - pos.size)
        neg = top_rows(scores, ~positive, count=n_top)
        value, gradient = pair_hinges(scores, pos, neg)
        n_pairs = pos.size * neg.size
        return value / n_pairs, gradient / n_pairs


@dataclass(frozen=True)
class AUC(Loss):
    """The mean hinge loss over all pairs: `PartialAUC` with ``beta=1``.

    Examples
    --------
    >>> from precbench.ranking.losses import AUC
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(AUC().value(scores, y))  # (0 + 0 + 2.5 + 2) / 4, of all pairs
    1.125
    """

    name = "auc"

    def evaluate(self, scores, positive):
        return PartialAUC(beta=1.0).evaluate(scores, positive)


def pair_hinges(
    scores: NDArray[np.float64], pos: NDArray[np.intp], neg: NDArray[np.intp]
) -> Evaluation:
    """Return the sum of ``[1 - (s_i - s_j)]_+`` over pairs of rows i and j.

    The second result is a subgradient, which counts the active pairs of each row (hinge
    above 0), negatively for rows i.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples,)
    pos, neg : ndarray of int
        The rows i and j; either may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.ranking.losses import pair_hinges
    >>> scores = np.array([2.0, 0.5, 0.0])
    >>> pair_hinges(scores, np.array([0, 1]), np.array([2]))  # 0 and 1 - 0.5
    (0.5, array([-0., -1.,  1.]))
    """
    # A pair is active if s_i < 1 + s_j, or -(1 + s_j) < -s_i. Counting is faster if the
    # first array is the shorter one.
    values = scores[pos]
    thresholds = 1 + scores[neg]
    if pos.size <= neg.size:
        per_pos, per_neg = _count_pairs(values, thresholds)
    else:
        per_neg, per_pos = _count_pairs(-thresholds, -values)
    value = dot(per_neg, thresholds) - dot(per_pos, values)  # sum of the active hinges
    gradient = np.zeros_like(scores)
    gradient[neg] = per_neg
    gradient[pos] = -per_pos
    return value, gradient


def _count_pairs(
    few: NDArray[np.float64], many: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count the pairs with ``few[i] < many[j]``, for each i and for each j."""
    few_counts = np.zeros(few.size)
    many_counts = np.zeros(many.size)
    if few.size:  # the kernel needs one value or more
        # The kernel writes to both counts, and works in `starts` and `heads`.
        starts = np.empty(few.size + 1, dtype=np.int32)
        heads = np.empty(few.size + 1)
        count_pairs(few, np.sort(few), many, starts, few_counts, many_counts, heads)
    return few_counts, many_counts


@dataclass(frozen=True)
class F1(Loss):
    """The struct surrogate of Joachims (2005) for the loss 1 - F1.

    Never below 1 - F1 for predictions positive where the score is above 0, nor below 0.
    Joachims' surrogate takes n₊ times the scores; dividing by n₊ makes the scale of
    scores independent of the number of rows. O(n log n), in place of Joachims' O(n₊
    n₋). Of equally good numbers of true and false positives, the smallest number of
    true, then of false positives counts.

    Examples
    --------
    >>> from precbench.ranking.losses import F1
    >>> scores, y = [2.0, 0.5, 0.0, -1.0], [1, 0, 0, 1]
    >>> float(F1().value(scores, y))  # of the first three: 1 - F1 = 0.6, plus 1.5 / 2
    1.35
    """

    name = "f1"
    has_threshold = True

    def evaluate(self, scores, positive):
        """Maximise over labellings.

        The best with a true and b false positives takes the a highest positives s⁺_i
        and the b highest negatives s⁻_j. As F1 is 2 a / (n₊ + a + b), its value times
        n₊ is

            n₊ (n₊ - a + b) / (n₊ + a + b) - sum_{i > a} s⁺_i + sum_{j <= b} s⁻_j.
        """
        pos = _rank(scores, positive)
        # Lower negatives never add to the maximum, see `_best_false_positives`.
        neg = _rank(scores, ~positive & (scores > -0.5))
        n_pos = pos.size  # n₊
        n_true = np.arange(n_pos + 1)  # all a
        n_false = _best_false_positives(n_pos, scores[neg])  # the best b for each a
        sums_of_lowest = _sums_of_first(scores[pos][::-1])
        lost = sums_of_lowest[::-1]  # sum_{i > a} s⁺_i
        gained = _sums_of_first(scores[neg])[n_false]  # sum_{j <= b} s⁻_j
        # n₊ (1 - F1) for each a
        losses = n_pos * (n_pos - n_true + n_false) / (n_pos + n_true + n_false)
        values = losses + (gained - lost)
        best_true = int(np.argmax(values))  # its place, as n_true counts from 0
        best_false = n_false[best_true]
        gradient = np.zeros_like(scores)
        gradient[pos[best_true:]] = -1 / n_pos
        gradient[neg[:best_false]] = 1 / n_pos
        return float(values[best_true]) / n_pos, gradient


def _best_false_positives(n_pos: int, negatives: NDArray) -> NDArray[np.intp]:
    """Return the best number of false positives b for each number of true ones a.

    `negatives` are the descending scores s⁻. One more false positive adds

        2 a n₊ / ((n₊ + a + b) (n₊ + a + b + 1)) + s⁻_{b+1}

    to the value of `F1.evaluate`. This never grows with b, so bisection finds the best
    b, for all a at once. The fraction is below 1/2.
    """
    n_true = np.arange(n_pos + 1)
    padded = np.append(negatives, -np.inf)  # behind the last negative none pays
    n_false = np.zeros_like(n_true)
    bound = np.full_like(n_true, len(negatives))
    while np.any(n_false < bound):  # n_false <= best b <= bound
        middle = (n_false + bound) // 2
        size = n_pos + n_true + middle
        gain = 2 * n_true * n_pos / (size * (size + 1)) + padded[middle]
        pays = gain > 0  # for one more than `middle`
        n_false = np.where(pays, middle + 1, n_false)
        bound = np.where(pays, bound, middle)
    return n_false


SURROGATES: dict[str, Surrogate] = {
    surrogate.name: surrogate
    for surrogate in (
        RampSurrogate(),
        MaxSurrogate(),
        AvgSurrogate(),
        StructSurrogate(),
    )
}

OBJECTIVES: dict[str, type[Loss]] = {
    objective.name: objective for objective in (PrecisionAtK, PartialAUC, F1, AUC)
}


def prec_loss(scores: ArrayLike, y: ArrayLike, k: float | int) -> int:
    """Return the loss prec@k, kar2015 (1): the negatives among the k highest scores.

    Among equal scores the lower row index comes first.

    Parameters
    ----------
    scores, y : array-like of shape (n_samples,)
    k : float or int
        All as for `Loss.value`.

    Examples
    --------
    >>> from precbench.ranking.losses import prec_loss
    >>> int(prec_loss([0.9, 0.8, 0.1], [0, 1, 1], k=2))
    1
    """
    positive, checked = check_ranking(y, scores)
    count = resolve_k(k, int(np.count_nonzero(positive)))
    top = top_rows(checked, rows=None, count=count)
    return int(np.count_nonzero(~positive[top]))


@dataclass(frozen=True)
class Margins:
    """The greatest margins that scores realise, in units of the scores.

    Each is a mean less the highest negative score. Weak >= average >= strong.

    Attributes
    ----------
    weak : float
        Of the weak (k, γ)-margin, kar2015 Definition 2: of the k-th highest positive
        score.
    average : float
        Of the (k, γ)-margin, Definition 5: of the n₊ - k + 1 lowest positive scores.
    strong : float
        Of the strong γ-margin, Definition 4: of the lowest positive score.

    Examples
    --------
    >>> from precbench.ranking.losses import margins
    >>> margins([3.0, 1.0, 0.5, 0.0], [1, 1, 0, 0], k=1).weak  # 3 less 0.5
    2.5
    """

    weak: float
    average: float
    strong: float


def margins(scores: ArrayLike, y: ArrayLike, k: float | int) -> Margins:
    """Return the `Margins` that these scores realise.

    A margin is negative where classes overlap.

    Parameters
    ----------
    scores, y, k
        As in `prec_loss`.

    Examples
    --------
    >>> from precbench.ranking.losses import margins
    >>> margins([3.0, 1.0, 0.5, 0.0], [1, 1, 0, 0], k=1)
    Margins(weak=2.5, average=1.5, strong=0.5)
    """
    positive, checked = check_ranking(y, scores)
    count = resolve_k(k, int(np.count_nonzero(positive)))
    descending = -np.sort(-checked[positive])
    from_kth = descending[count - 1 :]  # the n₊ - k + 1 lowest positive scores
    top_negative = checked[~positive].max()
    return Margins(
        weak=float(from_kth[0] - top_negative),
        average=float(from_kth.mean() - top_negative),
        strong=float(from_kth[-1] - top_negative),
    )

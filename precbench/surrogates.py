r"""Surrogates of the loss prec@k: values and subgradients, vectorised and readable.

Given scores s and labels y in {0, 1} of n examples, n₊ of them positive, and k <= n₊, write
:math:`\Delta(y, \hat y) = \sum_i (1 - y_i) \hat y_i` for the false positives and
:math:`K(y, \hat y) = \sum_i y_i \hat y_i` for the true positives of a candidate labelling
:math:`\hat y` with exactly k ones. The loss is the number of negatives among the k highest
scores (1). The surrogates are maxima over all such candidates:

.. math::

   struct &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i (\hat y_i - y_i) s_i\}            \; (3)

   ramp &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i \hat y_i s_i\}
           - (\text{sum of the k highest positive scores})                                \; (4)

   max &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i (\hat y_i - y_i) s_i
          + \text{sum of the n₊ - k highest false negative scores}\}                      \; (6)

   avg &= \max_{\hat y} \{\Delta(y, \hat y) + \sum_i (\hat y_i - y_i) s_i
          + \frac{n_+ - k}{n_+ - K(y, \hat y)} \sum_i (1 - \hat y_i) y_i s_i\}            \; (7)

where 0/0 is read as 0. Always prec@k <= ramp <= avg <= max, and ramp, avg, max are 0 exactly
when the weak (k, 1)-, the (k, 1)-, the strong 1-margin holds (`margins`). For k = n₊ all four
surrogates are equal. For k < n₊ struct may fall below the loss and even below 0, and adding c
to all scores adds (k - n₊)c to it; the others do not change.

Sorting replaces the maximum over candidates: with s⁺ and s⁻ the sorted scores of the two
classes, the best candidate with k' true positives takes the k' highest positives and the k - k'
highest negatives. In every order the lower row index comes first among equal scores.

Equation numbers are those of Kar, Narasimhan, Jain, "Surrogate functions for maximizing
precision at the top", ICML 2015.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.metrics import check_ranking, resolve_k

__all__ = [
    "SURROGATES",
    "AvgSurrogate",
    "Margins",
    "MaxSurrogate",
    "RampSurrogate",
    "StructSurrogate",
    "Surrogate",
    "margins",
    "prec_loss",
]


def _prepare(scores: ArrayLike, y: ArrayLike, k: float | int) -> tuple[NDArray, NDArray, int]:
    positive, checked = check_ranking(y, scores)
    return checked, positive, resolve_k(k, int(positive.sum()))


def _descending(values: NDArray) -> NDArray[np.intp]:
    return np.argsort(-values, kind="stable")


def _ranked_rows(scores: NDArray, member: NDArray[np.bool_]) -> NDArray[np.intp]:
    rows = np.flatnonzero(member)
    return rows[_descending(scores[rows])]


def _prefix_sums(values: NDArray) -> NDArray:
    return np.concatenate(([0.0], np.cumsum(values)))


def _most_violating(scores: NDArray, positive: NDArray[np.bool_], k: int) -> tuple[NDArray, float]:
    """Find the k rows that maximise their sum of score + 1[negative], and that sum."""
    augmented = scores + ~positive
    rows = _descending(augmented)[:k]
    return rows, float(augmented[rows].sum())


@dataclass(frozen=True)
class Surrogate(ABC):
    """A surrogate of the loss prec@k as a function of the scores.

    Attributes
    ----------
    name : str
        Key in `SURROGATES`.
    is_convex : bool
        Whether it is convex in the scores.
    upper_bounds_loss : bool
        Whether it is never below the loss prec@k.
    """

    name: ClassVar[str]
    is_convex: ClassVar[bool]
    upper_bounds_loss: ClassVar[bool]

    def value(self, scores: ArrayLike, y: ArrayLike, k: float | int) -> float:
        """Return the surrogate at these scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Finite scores.
        y : array-like of shape (n_samples,)
            Labels with exactly two distinct values; the greater is the positive class.
        k : float or int
            Share of the positives (float in (0, 1], rounded up) or count (int >= 1).

        Returns
        -------
        float
            On the scale of the loss, which lies between 0 and k.

        Raises
        ------
        InputError
            If k exceeds the number of positives, or scores or labels are malformed.
        """
        return self._evaluate(*_prepare(scores, y, k))[0]

    def subgradient(self, scores: ArrayLike, y: ArrayLike, k: float | int) -> NDArray[np.float64]:
        """Return a subgradient with respect to the scores (the gradient where it is smooth).

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Finite scores.
        y : array-like of shape (n_samples,)
            Labels with exactly two distinct values; the greater is the positive class.
        k : float or int
            Share of the positives (float in (0, 1], rounded up) or count (int >= 1).

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            Where several candidates attain the maximum: that of the first, in the order that
            the class states.

        Raises
        ------
        InputError
            If k exceeds the number of positives, or scores or labels are malformed.
        """
        return self._evaluate(*_prepare(scores, y, k))[1]

    @abstractmethod
    def _evaluate(
        self, scores: NDArray, positive: NDArray[np.bool_], k: int
    ) -> tuple[float, NDArray[np.float64]]:
        """Return value and subgradient for checked input."""


@dataclass(frozen=True)
class RampSurrogate(Surrogate):
    """The ramp surrogate, kar2015 (4): tight, but not convex.

    With A the k highest of s_i + 1[y_i = 0]: the sum of these over A less the sum of the k
    highest positive scores. Subgradient: 1[A] - 1[k highest positives].
    """

    name = "ramp"
    is_convex = False
    upper_bounds_loss = True

    def _evaluate(self, scores, positive, k):
        chosen, chosen_sum = _most_violating(scores, positive, k)
        best = _ranked_rows(scores, positive)[:k]
        gradient = np.zeros_like(scores)
        gradient[chosen] += 1
        gradient[best] -= 1
        return chosen_sum - float(scores[best].sum()), gradient


@dataclass(frozen=True)
class StructSurrogate(Surrogate):
    """The structural surrogate of Joachims (2005), kar2015 (3): below the loss at times.

    With A the k highest of s_i + 1[y_i = 0]: the sum of these over A less the sum of all
    positive scores. Subgradient: 1[A] - 1[positives]. Only for k = n₊ an upper bound.
    """

    name = "struct"
    is_convex = True
    upper_bounds_loss = False

    def _evaluate(self, scores, positive, k):
        chosen, chosen_sum = _most_violating(scores, positive, k)
        gradient = np.zeros_like(scores)
        gradient[chosen] += 1
        gradient[positive] -= 1
        return chosen_sum - float(scores[positive].sum()), gradient


@dataclass(frozen=True)
class MaxSurrogate(Surrogate):
    """The max surrogate, kar2015 (6).

    The sum of the positive ones among the brackets 1 + s⁻_j - (j-th lowest positive score),
    j = 1..min(k, n₋); they never increase in j. Subgradient: +1 on the negative and -1 on the
    positive of each pair with a positive bracket.
    """

    name = "max"
    is_convex = True
    upper_bounds_loss = True

    def _evaluate(self, scores, positive, k):
        neg = _ranked_rows(scores, ~positive)[:k]
        pos = _ranked_rows(scores, positive)[::-1][: neg.size]
        brackets = 1 + scores[neg] - scores[pos]
        active = brackets > 0
        gradient = np.zeros_like(scores)
        gradient[neg[active]] = 1
        gradient[pos[active]] = -1
        return float(brackets[active].sum()), gradient


@dataclass(frozen=True)
class AvgSurrogate(Surrogate):
    """The avg surrogate, kar2015 (7) and Algorithm 4.

    The maximum over the number k' of true positives, max(0, k - n₋) <= k' <= k, of
    (k - k') + (k - k' highest negative scores) - D (positive scores but the k' highest), with
    D = (k - k') / (n₊ - k'). Subgradient: +1 on those negatives, -D on those positives, for
    the first k' that attains the maximum.
    """

    name = "avg"
    is_convex = True
    upper_bounds_loss = True

    def _evaluate(self, scores, positive, k):
        pos, neg = _ranked_rows(scores, positive), _ranked_rows(scores, ~positive)
        pos_sums, neg_sums = _prefix_sums(scores[pos]), _prefix_sums(scores[neg])
        n_true = np.arange(max(0, k - neg.size), k + 1)
        n_false = k - n_true
        weights = np.zeros(n_true.size)
        np.divide(n_false, pos.size - n_true, out=weights, where=n_false > 0)
        values = n_false + neg_sums[n_false] - weights * (pos_sums[-1] - pos_sums[n_true])
        first = int(np.argmax(values))
        gradient = np.zeros_like(scores)
        gradient[neg[: n_false[first]]] += 1
        gradient[pos[n_true[first] :]] -= weights[first]
        return float(values[first]), gradient


def prec_loss(scores: ArrayLike, y: ArrayLike, k: float | int) -> int:
    """Return the loss prec@k: the number of negatives among the k highest scores.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Finite scores; among equal ones the lower row index stands first.
    y : array-like of shape (n_samples,)
        Labels with exactly two distinct values; the greater is the positive class.
    k : float or int
        Share of the positives (float in (0, 1], rounded up) or count (int >= 1).

    Returns
    -------
    int
        Between 0 and k.

    Raises
    ------
    InputError
        If k exceeds the number of positives, or scores or labels are malformed.

    Notes
    -----
    kar2015 (1). The metric `precbench.metrics.precision_at_k` averages over the ties instead.
    """
    checked, positive, count = _prepare(scores, y, k)
    return int(np.sum(~positive[_descending(checked)[:count]]))


@dataclass(frozen=True)
class Margins:
    """The margins that scores realise; weak >= average >= strong.

    Attributes
    ----------
    weak : float
        Greatest γ of the weak (k, γ)-margin, kar2015 Definition 2: the k-th highest positive
        score less the highest negative one.
    average : float
        Greatest γ of the (k, γ)-margin, Definition 5: the mean of the n₊ - k + 1 lowest positive
        scores less the highest negative one.
    strong : float
        Greatest γ of the strong γ-margin, Definition 4: the lowest positive score less the
        highest negative one.
    """

    weak: float
    average: float
    strong: float


def margins(scores: ArrayLike, y: ArrayLike, k: float | int) -> Margins:
    """Return the greatest margins of kar2015 that these scores realise.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Finite scores.
    y : array-like of shape (n_samples,)
        Labels with exactly two distinct values; the greater is the positive class.
    k : float or int
        Share of the positives (float in (0, 1], rounded up) or count (int >= 1).

    Returns
    -------
    Margins
        In units of the scores; negative when the classes overlap.

    Raises
    ------
    InputError
        If k exceeds the number of positives, or scores or labels are malformed.
    """
    checked, positive, count = _prepare(scores, y, k)
    lowest = -np.sort(-checked[positive])[count - 1 :]
    top_negative = checked[~positive].max()
    return Margins(
        weak=float(lowest[0] - top_negative),
        average=float(lowest.mean() - top_negative),
        strong=float(lowest[-1] - top_negative),
    )


SURROGATES: dict[str, Surrogate] = {
    surrogate.name: surrogate
    for surrogate in (RampSurrogate(), MaxSurrogate(), AvgSurrogate(), StructSurrogate())
}

r"""Losses of a whole set of rows that solvers minimise: value and subgradient, readable.

Given scores s of n rows, n₊ of them positive and n₋ negative, each objective is convex and
piecewise linear in s. An instance holds the parameters, so that any solver takes any objective:

``prec@k``
    The struct surrogate of `precbench.surrogates` in its scaling, a sum; with k = n₊ that of the
    break-even point (PRBEP), the only case in which it bounds its loss.
``pauc``
    The mean hinge over the pairs of a positive and one of the :math:`m = \lceil\beta n_-\rceil`
    highest negatives,
    :math:`\frac{1}{n_+ m} \sum_i \sum_{j \le m} [1 - (s^+_i - s^-_j)]_+`.
``auc``
    The same over all pairs, β = 1.
``f1``
    :math:`\max_{\hat y \in \{0,1\}^n} \{1 - F_1(y, \hat y) + \frac{1}{n_+} \sum_i (\hat y_i -
    y_i) s_i\}`. A score above 0 means "positive", so the linear model needs an intercept.

In every order the lower row index comes first among equal scores.

References
----------
Kar, Narasimhan, Jain, "Online and stochastic gradient methods for non-decomposable loss
functions", NIPS 2014 (kar2014); Joachims, "A support vector method for multivariate performance
measures", ICML 2005.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.metrics import check_ranking
from precbench.surrogates import SURROGATES
from precbench.topk import ceil_share, check_beta, first_rows, resolve_k

__all__ = ["AUC", "F1", "OBJECTIVES", "Objective", "PartialAUC", "PrecisionAtK"]


@dataclass(frozen=True)
class Objective(ABC):
    """A convex loss of the scores of a set of rows.

    Attributes
    ----------
    name : str
        Key in `OBJECTIVES`.
    has_threshold : bool
        Whether the score 0 divides the classes, so that a linear model needs an intercept.
    """

    name: ClassVar[str]
    has_threshold: ClassVar[bool] = False

    def value(self, scores: ArrayLike, y: ArrayLike) -> float:
        """Return the objective at these scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Finite scores.
        y : array-like of shape (n_samples,)
            Labels with exactly two distinct values; the greater is the positive class.

        Returns
        -------
        float

        Raises
        ------
        InputError
            If scores or labels are malformed, or a parameter does not fit them.
        """
        positive, checked = check_ranking(y, scores)
        return self.evaluate(checked, positive)[0]

    def subgradient(self, scores: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Return a subgradient with respect to the scores (the gradient where it is smooth).

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Finite scores.
        y : array-like of shape (n_samples,)
            Labels with exactly two distinct values; the greater is the positive class.

        Returns
        -------
        ndarray of float64, shape (n_samples,)

        Raises
        ------
        InputError
            If scores or labels are malformed, or a parameter does not fit them.
        """
        positive, checked = check_ranking(y, scores)
        return self.evaluate(checked, positive)[1]

    @abstractmethod
    def evaluate(
        self, scores: NDArray[np.float64], positive: NDArray[np.bool_]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return value and subgradient for input that is known to be sound.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_samples,)
            Finite.
        positive : ndarray of bool, shape (n_samples,)
            Rows of both classes.

        Returns
        -------
        value : float
        subgradient : ndarray of float64, shape (n_samples,)
        """


@dataclass(frozen=True)
class PrecisionAtK(Objective):
    """The struct surrogate of prec@k, kar2015 (3): ``SURROGATES["struct"]``, below 0 at times.

    Parameters
    ----------
    k : float or int, default=0.25
        Share of the positives in (0, 1], rounded up, or a count of rows; more than n₊ is an error.

    Notes
    -----
    Never below the loss prec@k for k = n₊, when it is the surrogate of PRBEP. kar2014 (3) is
    4 times this at half the scores, plus a constant. O(n log n).
    """

    k: float | int = 0.25
    name = "prec@k"

    def evaluate(self, scores, positive):
        """Return value and subgradient; see the base class."""
        k = resolve_k(self.k, int(np.count_nonzero(positive)))
        return SURROGATES["struct"].evaluate(scores, positive, k)


@dataclass(frozen=True)
class PartialAUC(Objective):
    """The hinge loss of the partial AUC, kar2014 (5), as a mean over its pairs.

    Parameters
    ----------
    beta : float, default=0.1
        Share of the negatives in (0, 1]: the ``ceil(beta n₋)`` highest count.

    Raises
    ------
    InputError
        If `beta` lies outside (0, 1].

    Notes
    -----
    Never below 1 - pAUC, whatever a tied pair counts, and unchanged when all scores are shifted.
    Convex, for a positive meets the largest sum of hinges over all sets of so many negatives;
    subgradient as in kar2014, appendix H, where a hinge of 0 takes no part. Sorting the positives
    and the chosen bars 1 + s⁻ counts the active pairs of every row: O(n log n).
    """

    beta: float = 0.1
    name = "pauc"

    def __post_init__(self):
        check_beta(self.beta)

    def evaluate(self, scores, positive):
        """Return value and subgradient; see the base class."""
        pos, neg = np.flatnonzero(positive), np.flatnonzero(~positive)
        neg = first_rows(scores, neg, ceil_share(self.beta, neg.size))
        value, gradient = pair_hinges(scores, pos, neg)
        n_pairs = pos.size * neg.size
        return value / n_pairs, gradient / n_pairs


@dataclass(frozen=True)
class AUC(Objective):
    """The mean hinge loss over all pairs: `PartialAUC` with ``beta=1``."""

    name = "auc"

    def evaluate(self, scores, positive):
        """Return value and subgradient; see the base class."""
        return PartialAUC(beta=1.0).evaluate(scores, positive)


@dataclass(frozen=True)
class F1(Objective):
    r"""The struct surrogate of Joachims (2005) for the loss 1 - F1.

    Never below 1 - F1 of the rule "positive when the score is above 0", nor below 0. Joachims
    sums over the rows, so that his is this at n₊ times the scores; divided by n₊ a false positive
    costs as much as a score of 1/2, whatever the number of rows.

    Notes
    -----
    The loss depends on the counts a of true and b of false positives only, and the best labelling
    with these counts takes the a highest positives and the b highest negatives. n₊ times the
    objective is therefore the maximum over a and b of

    .. math::

        n_+ \frac{n_+ - a + b}{n_+ + a + b} - \sum_{i > a} s^+_i + \sum_{j \le b} s^-_j .

    One more false positive adds
    :math:`\frac{2 a n_+}{(n_+ + a + b)(n_+ + a + b + 1)} + s^-_{b+1}`, which never grows with b
    and, the scores apart, grows with a: the sum is concave in b, the best b is found by bisection
    and never falls as a grows. As the first term is below 1/2, negatives at -1/2 or below are
    out. O(n log n), in place of Joachims' O(n₊ n₋). Of several best tables the first a is taken,
    with its smallest b.
    """

    name = "f1"
    has_threshold = True

    def evaluate(self, scores, positive):
        """Return value and subgradient; see the base class."""
        pos = _ranked(scores, np.flatnonzero(positive))
        neg = _ranked(scores, np.flatnonzero(~positive & (scores > -0.5)))
        n_pos, n_true = pos.size, np.arange(pos.size + 1)
        padded = np.append(scores[neg], -np.inf)
        n_false, bound = np.zeros_like(n_true), np.full_like(n_true, neg.size)
        while np.any(n_false < bound):
            middle = (n_false + bound) // 2
            size = n_pos + n_true + middle
            pays = 2 * n_true * n_pos / (size * (size + 1)) + padded[middle] > 0
            n_false, bound = np.where(pays, middle + 1, n_false), np.where(pays, bound, middle)
        lost = np.append(np.cumsum(scores[pos][::-1])[::-1], 0.0)
        gained = np.append(0.0, np.cumsum(scores[neg]))[n_false]
        values = n_pos * (n_pos - n_true + n_false) / (n_pos + n_true + n_false) + (gained - lost)
        best = int(np.argmax(values))
        gradient = np.zeros_like(scores)
        gradient[pos[best:]] = -1 / n_pos
        gradient[neg[: n_false[best]]] = 1 / n_pos
        return float(values[best]) / n_pos, gradient


def pair_hinges(
    scores: NDArray[np.float64], pos: NDArray[np.intp], neg: NDArray[np.intp]
) -> tuple[float, NDArray[np.float64]]:
    """Return the sum of ``[1 - (s_i - s_j)]_+`` over pairs of rows, and a subgradient.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples,)
    pos, neg : ndarray of int
        The rows i and j; either may be empty.

    Returns
    -------
    value : float
    subgradient : ndarray of float64, shape (n_samples,)
        Counts of active pairs: a hinge of 0 takes no part.
    """
    bars = 1 + scores[neg]
    n_below = np.searchsorted(np.sort(scores[pos]), bars, "left")
    n_above = neg.size - np.searchsorted(np.sort(bars), scores[pos], "right")
    gradient = np.zeros_like(scores)
    gradient[neg] = n_below
    gradient[pos] = -n_above
    return float(n_below @ bars - n_above @ scores[pos]), gradient


def _ranked(scores: NDArray, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows from the highest score down."""
    return rows[np.argsort(-scores[rows], kind="stable")]


OBJECTIVES: dict[str, type[Objective]] = {
    objective.name: objective for objective in (PrecisionAtK, PartialAUC, F1, AUC)
}

r"""Surrogates of the loss prec@k, and the P-Norm Push: values and subgradients, readable.

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

`pnorm_push` and `ir_push` are the objectives of Rudin, "The P-Norm Push", JMLR 10, 2009
(rudin2009), by definition: over the matrix of all pairs. `pair_contributions` and
`ir_pair_contributions` divide them among the pairs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.metrics import check_ranking
from precbench.topk import first_rows, resolve_k

__all__ = [
    "SURROGATES",
    "AvgSurrogate",
    "Margins",
    "MaxSurrogate",
    "RampSurrogate",
    "StructSurrogate",
    "Surrogate",
    "ir_pair_contributions",
    "ir_push",
    "margins",
    "pair_contributions",
    "pnorm_push",
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


def _most_violating(scores: NDArray, positive: NDArray[np.bool_], k: int) -> tuple[NDArray, int]:
    """Find the k rows that maximise their sum of score + 1[negative], and count the negatives."""
    rows = first_rows(scores + ~positive, np.arange(len(scores)), k)
    return rows, int(np.count_nonzero(~positive[rows]))


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
        return self.evaluate(*_prepare(scores, y, k))[0]

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
        return self.evaluate(*_prepare(scores, y, k))[1]

    @abstractmethod
    def evaluate(
        self, scores: NDArray, positive: NDArray[np.bool_], k: int
    ) -> tuple[float, NDArray[np.float64]]:
        """Return value and subgradient for input that is known to be sound.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_samples,)
            Finite.
        positive : ndarray of bool, shape (n_samples,)
            Rows of both classes.
        k : int
            At most the number of positives.

        Returns
        -------
        value : float
        subgradient : ndarray of float64, shape (n_samples,)
        """


@dataclass(frozen=True)
class RampSurrogate(Surrogate):
    """The ramp surrogate, kar2015 (4): tight, but not convex.

    With A the k highest of s_i + 1[y_i = 0]: the sum of these over A less the sum of the k
    highest positive scores. Subgradient: 1[A] - 1[k highest positives].
    """

    name = "ramp"
    is_convex = False
    upper_bounds_loss = True

    def evaluate(self, scores, positive, k):
        """Return value and subgradient; see the base class."""
        chosen, n_false = _most_violating(scores, positive, k)
        gradient = np.zeros_like(scores)
        gradient[chosen] = 1
        gradient[first_rows(scores, np.flatnonzero(positive), k)] -= 1
        return n_false + float(gradient @ scores), gradient


@dataclass(frozen=True)
class StructSurrogate(Surrogate):
    """The structural surrogate of Joachims (2005), kar2015 (3): below the loss at times.

    With A the k highest of s_i + 1[y_i = 0]: the sum of these over A less the sum of all
    positive scores. Subgradient: 1[A] - 1[positives]. Only for k = n₊ an upper bound. `evaluate`
    takes any k up to the number of rows, k = 0 and rows of one class included.
    """

    name = "struct"
    is_convex = True
    upper_bounds_loss = False

    def evaluate(self, scores, positive, k):
        """Return value and subgradient; see the base class."""
        chosen, n_false = _most_violating(scores, positive, k)
        gradient = np.zeros_like(scores)
        gradient[chosen] = 1
        gradient[positive] -= 1
        return n_false + float(gradient @ scores), gradient


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

    def evaluate(self, scores, positive, k):
        """Return value and subgradient; see the base class."""
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

    def evaluate(self, scores, positive, k):
        """Return value and subgradient; see the base class."""
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


def pnorm_push(
    y_true: ArrayLike,
    y_score: ArrayLike,
    p: float,
    *,
    loss: Literal["exponential", "logistic"] = "exponential",
    push: Literal["top", "bottom", "both"] = "top",
    bottom_weight: float = 1.0,
) -> tuple[float, NDArray[np.float64]]:
    """Return ``log R`` of the P-Norm Push and its gradient with respect to the scores.

    At the top, ``R = sum_k (sum_i loss(s_i - s_k))**p`` over negatives k and positives i; at the
    bottom, ``R = sum_i (sum_k loss(s_i - s_k))**p``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with exactly two distinct values; the greater is the positive class.
    y_score : array-like of shape (n_samples,)
        Finite scores; larger means more positive.
    p : float
        Power, at least 1 for a convex R.
    loss : {"exponential", "logistic"}, default="exponential"
        ``exp(-r)`` or ``ln(1 + exp(-r))``.
    push : {"top", "bottom", "both"}, default="top"
        "both" is the risk at the top plus `bottom_weight` times that at the bottom.
    bottom_weight : float, default=1.0

    Returns
    -------
    log_risk : float
        Safe for any p; R itself overflows soon.
    gradient : ndarray of float64, shape (n_samples,)
        Of `log_risk`; times R it is that of R.

    Raises
    ------
    InputError
        If scores or labels are malformed.

    Notes
    -----
    rudin2009, sections 2 and 7. Takes memory for all pairs.
    """
    positive, scores = check_ranking(y_true, y_score)
    z = _misranking(positive, scores)
    log_losses, slopes = z, np.ones_like(z)
    if loss == "logistic":
        losses = np.logaddexp(0, z)
        # Where the loss underflows it is e^z.
        log_losses = np.where(z < -36, z, np.log(np.where(z < -36, 1.0, losses)))
        slopes = np.exp(-np.logaddexp(0, -z) - log_losses)
    sides = {"top": [0], "bottom": [1], "both": [0, 1]}[push]
    log_risks = [p * np.logaddexp.reduce(log_losses, axis=side) for side in sides]
    weights = [1.0, bottom_weight] if push == "both" else [1.0]
    totals = [
        np.logaddexp.reduce(log_risk) + np.log(weight)
        for log_risk, weight in zip(log_risks, weights, strict=True)
    ]
    total = float(np.logaddexp.reduce(totals))
    pulls = np.zeros_like(z)
    for side, log_risk, weight in zip(sides, log_risks, weights, strict=True):
        priced = np.expand_dims((p - 1) / p * log_risk, side)
        pulls += weight * p * np.exp(priced + log_losses - total) * slopes
    return total, _by_scores(positive, pulls)


def ir_push(y_true: ArrayLike, y_score: ArrayLike) -> tuple[float, NDArray[np.float64]]:
    """Return the objective of the IR Push and its gradient with respect to the scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with exactly two distinct values; the greater is the positive class.
    y_score : array-like of shape (n_samples,)
        Finite scores; larger means more positive.

    Returns
    -------
    risk : float
        ``sum_i ln(1 + sum_k exp(s_k - s_i))`` over positives i and negatives k.
    gradient : ndarray of float64, shape (n_samples,)

    Raises
    ------
    InputError
        If scores or labels are malformed.

    Notes
    -----
    rudin2009 (2). Takes memory for all pairs.
    """
    positive, scores = check_ranking(y_true, y_score)
    z = _misranking(positive, scores)
    terms = np.logaddexp(0, np.logaddexp.reduce(z, axis=1))
    return float(terms.sum()), _by_scores(positive, np.exp(z - terms[:, None]))


def pair_contributions(
    y_true: ArrayLike, y_score: ArrayLike, p: float, *, shares: bool = False
) -> NDArray[np.float64]:
    """Return what each pair contributes to the exponential risk of the P-Norm Push.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with exactly two distinct values; the greater is the positive class.
    y_score : array-like of shape (n_samples,)
        Finite scores; larger means more positive.
    p : float
        Power.
    shares : bool, default=False
        Divide by the total, the risk: then nothing overflows.

    Returns
    -------
    ndarray of float64, shape (n_pos, n_neg)
        Positives and negatives in order of score, from the highest: the contribution of the
        negative, ``(sum_i e^(s_k - s_i))**p``, times the share of the positive in its sum.

    Raises
    ------
    InputError
        If scores or labels are malformed.

    Notes
    -----
    rudin2009, Fig. 1.
    """
    z = _misranking(*_ranked(*check_ranking(y_true, y_score)))
    log_heights = np.logaddexp.reduce(z, axis=0)
    total = np.logaddexp.reduce(p * log_heights) if shares else 0.0
    with np.errstate(over="ignore"):
        return np.exp((p - 1) * log_heights + z - total)


def ir_pair_contributions(
    y_true: ArrayLike, y_score: ArrayLike, *, shares: bool = False
) -> NDArray[np.float64]:
    """Return what each pair contributes to the objective of the IR Push.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with exactly two distinct values; the greater is the positive class.
    y_score : array-like of shape (n_samples,)
        Finite scores; larger means more positive.
    shares : bool, default=False
        Divide by the total, the objective.

    Returns
    -------
    ndarray of float64, shape (n_pos, n_neg)
        Positives and negatives in order of score, from the highest: the contribution of the
        positive, ``ln(1 + sum_k e^(s_k - s_i))``, times the share of the negative in its sum.

    Raises
    ------
    InputError
        If scores or labels are malformed.

    Notes
    -----
    rudin2009, Fig. 4.
    """
    z = _misranking(*_ranked(*check_ranking(y_true, y_score)))
    log_sums = np.logaddexp.reduce(z, axis=1, keepdims=True)
    contributions = np.logaddexp(0, log_sums) * np.exp(z - log_sums)
    return contributions / contributions.sum() if shares else contributions


def _ranked(positive: NDArray[np.bool_], scores: NDArray) -> tuple[NDArray[np.bool_], NDArray]:
    order = _descending(scores)
    return positive[order], scores[order]


def _misranking(positive: NDArray[np.bool_], scores: NDArray) -> NDArray[np.float64]:
    """Return ``s_k - s_i``, a row for each positive i and a column for each negative k."""
    return scores[~positive] - scores[positive][:, None]


def _by_scores(positive: NDArray[np.bool_], pulls: NDArray) -> NDArray[np.float64]:
    """Sum derivatives with respect to ``s_k - s_i`` up to those with respect to the scores."""
    gradient = np.empty(positive.size)
    gradient[positive] = -pulls.sum(axis=1)
    gradient[~positive] = pulls.sum(axis=0)
    return gradient

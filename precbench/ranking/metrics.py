"""Metrics of a ranked list with two classes; `METRICS` maps names to them.

Every function takes ``(y_true, y_score)`` in the order of scikit-learn: two distinct
labels, the greater of which is the positive class, and finite real scores, larger for
more positive. The order of the rows does not matter; each docstring says how tied
scores are treated. All raise `InputError` for malformed labels or scores (see
`check_ranking`) and for invalid parameters.

References
----------
kar2014, kar2015
    See `precbench.ranking.losses`.
ash2022
    Ash, Hughes-Oliver, "Confidence bands and hypothesis tests for hit enrichment
    curves", Journal of Cheminformatics 14:50, 2022.
rudin2009
    Rudin, "The P-Norm Push: a simple convex ranking algorithm that concentrates at the
    top of the list", JMLR 10, 2009.
"""

import functools
import inspect
import math
import numbers
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.core.errors import InputError
from precbench.core.registry import Registry
from precbench.ranking.topk import TopK, ceil_share, check_beta, resolve_k, split_at

__all__ = [
    "METRICS",
    "Metric",
    "MetricSpec",
    "auc",
    "average_precision",
    "average_reciprocal_rank",
    "check_ranking",
    "dcg",
    "f1",
    "f1_max",
    "interval_at_k",
    "lift_at_k",
    "partial_auc",
    "partial_auc_mcclish",
    "partial_pr_auc",
    "pnorm_risk",
    "prbep",
    "precision_at_k",
    "r_max",
    "recall_at_fpr",
    "recall_at_k",
    "roc_curve",
]

Ties = Literal["expected", "best", "worst"]
TiedPairs = Literal["half", "correct", "error"]
PairLoss = Literal["zero-one", "exponential", "logistic"]

_CREDIT = {"half": 0.5, "correct": 1.0, "error": 0.0}  # weights of a tied pair
_BLOCK_PAIRS = 2**20  # of positives and negatives at once: 8 MiB
_SMALL = -36.0  # for z below this number, ln(1 + e^z) is e^z in double precision


def check_ranking(
    y_true: ArrayLike, y_score: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray]:
    """Validate labels and scores, and return them as arrays.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Labels with two distinct values, the greater the positive class; finite scores.

    Returns
    -------
    positive : ndarray of bool, shape (n_samples,)
    scores : ndarray of float64, shape (n_samples,)

    Raises
    ------
    InputError
        If an array is empty or not one-dimensional, the lengths differ, there are not
        exactly two labels, or a score is not finite or loses digits as float64.

    Examples
    --------
    >>> from precbench.ranking.metrics import check_ranking
    >>> check_ranking([0, 1], [0.5, 0.25])
    (array([False,  True]), array([0.5 , 0.25]))
    """
    labels = np.asarray(y_true)
    if labels.ndim != 1:
        raise InputError(
            f"the labels have shape {labels.shape}; give a one-dimensional array"
        )
    scores = as_scores(y_score, labels.size)
    if labels.size == 0:
        raise InputError(
            "the labels and scores are empty; give at least one row of each class"
        )
    if not (math.isfinite(scores.min()) and math.isfinite(scores.max())):
        index = int(np.argmin(np.isfinite(scores)))  # the first that is not finite
        raise InputError(
            f"the score at index {index} is {scores[index]}; give finite scores"
        )
    return _is_positive(labels), scores


def as_scores(values: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Return one float64 score for each row, finite or not.

    Refuse other shapes, and integers that lose digits.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(
            f"the scores have shape {array.shape}; give a one-dimensional array"
        )
    if array.size != n_rows:
        raise InputError(
            f"there are {array.size} scores for {n_rows} rows; give a score per row"
        )
    if array.dtype.kind not in "biuf":  # booleans, integers and floats
        raise InputError(f"the scores have the type {array.dtype}; give real numbers")
    if array.dtype == np.float64:
        return array
    scores = array.astype(np.float64)
    with np.errstate(invalid="ignore"):  # a large integer may overflow on the way back
        is_exact = np.array_equal(scores.astype(array.dtype), array, equal_nan=True)
    if not is_exact:
        raise InputError(
            "scores lose digits as float64 and may tie; give ranks (largest: best)"
        )
    return scores


def _is_positive(labels: NDArray) -> NDArray[np.bool_]:
    """Return a mask of the rows with the greater label.

    Raise an error if there are not two labels.
    """
    if labels.dtype == object:
        values = labels.tolist()
        if None in values:
            raise InputError(
                f"the label of row {values.index(None) + 1} is missing; leave it out"
            )
        labels = np.array(values)  # NumPy infers a common type
    if labels.dtype.kind not in "biufSU":  # S: bytes, U: text
        raise InputError(
            f"the labels have the type {labels.dtype}; give numbers, booleans or"
            " strings"
        )
    # Comparing with two values takes linear time, np.unique would sort.
    first = labels[0]
    is_first = labels == first
    place = np.argmin(is_first)  # of the first row with another label
    if is_first[place]:  # there is no such row: `argmin` then returns 0
        raise InputError(
            f"all {labels.size} labels are {first}; give rows of both classes"
        )
    second = labels[place]
    is_second = labels == second
    if np.count_nonzero(is_first) + np.count_nonzero(is_second) < labels.size:
        missing = labels != labels  # true for NaN only, and defined for strings
        if missing.any():
            raise InputError(
                f"the label at index {int(np.argmax(missing))} is nan; drop this row"
            )
        other = labels[np.argmin(is_first | is_second)]
        raise InputError(
            f"the labels have more than two values, among them {first}, {second} and"
            f" {other}; map the positive class to 1 and all other labels to 0"
        )
    return is_second if second > first else is_first


def precision_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: TopK, ties: Ties = "expected"
) -> float:
    """Fraction of positives among the `k` highest scores; takes linear time.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
    k : float, int or str
        Fraction of the positives (float in (0, 1], rounded up), count of rows (int >=
        1), or fraction of the rows (a string such as ``"1 %"``, rounded up); at most
        the number of rows.
    ties : {"expected", "best", "worst"}, default="expected"
        How ties with the `k`-th highest score are broken: the mean over all orders of
        the tied rows, or the order with the largest or the smallest value.

    Returns
    -------
    float
        In [0, 1]. The loss of kar2015 (1) is ``k * (1 - precision_at_k)``.

    Examples
    --------
    >>> from precbench.ranking.metrics import precision_at_k
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> precision_at_k(y, scores, k=2)
    0.5
    >>> round(precision_at_k([0, 1, 0, 0], [1, 1, 1, 0], k=1), 3)  # one of three tied
    0.333
    """
    positive, scores = check_ranking(y_true, y_score)
    count = _count_at_k(k, positive)
    return _hits(positive, scores, count, ties) / count


def recall_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: TopK, ties: Ties = "expected"
) -> float:
    """Fraction of the positives that are among the `k` highest scores.

    Takes linear time.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
    k : float, int or str
    ties : {"expected", "best", "worst"}, default="expected"
        `k` and `ties` are as in `precision_at_k`.

    Returns
    -------
    float
        In [0, 1], and at most k divided by the number of positives.

    Examples
    --------
    >>> from precbench.ranking.metrics import recall_at_k
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(recall_at_k(y, scores, k=2), 3)  # 1 of the 3 positives
    0.333
    """
    positive, scores = check_ranking(y_true, y_score)
    hits = _hits(positive, scores, _count_at_k(k, positive), ties)
    return hits / int(np.count_nonzero(positive))


def lift_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: TopK, ties: Ties = "expected"
) -> float:
    """Precision at `k` as a multiple of the fraction of positives in all rows.

    1 is chance. In drug discovery the lift is called enrichment factor. Takes linear
    time.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
    k : float, int or str
    ties : {"expected", "best", "worst"}, default="expected"
        `k` and `ties` are as in `precision_at_k`.

    Returns
    -------
    float
        At least 0; at most n_samples divided by the greater of k and the number of
        positives.

    Examples
    --------
    >>> from precbench.ranking.metrics import lift_at_k
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(lift_at_k(y, scores, k=1), 3)  # 1 / (3/5)
    1.667
    """
    positive, scores = check_ranking(y_true, y_score)
    count = _count_at_k(k, positive)
    hits = _hits(positive, scores, count, ties)
    return hits * positive.size / (count * int(np.count_nonzero(positive)))


def interval_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: TopK, level: float = 0.05
) -> tuple[float, float]:
    """Return a confidence interval of precision at `k`, from a single list.

    The interval is for the mean precision over new lists of as many rows, drawn as
    these rows were. As the `k`-th highest score varies between lists, the variance is
    not binomial.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two values; the greater is the positive class.
    y_score : array-like of shape (n_samples,)
        Finite scores; larger is more likely positive.
    k : float, int or str
        Length of the top of the list. An int is a number of rows, a float in (0, 1] a
        fraction of the positives, and text such as "1 %" a fraction of the rows;
        fractions are rounded up. So 1 is a single row, and 1.0 as many rows as there
        are positives.
    level : float, default=0.05
        Significance level, in (0, 1): the confidence is 1 minus this.

    Returns
    -------
    low, high : float
        The ends of the interval, between 0 and 1.

    Raises
    ------
    InputError
        If labels, scores or `level` are invalid, or `k` is no length of a list of these
        rows.

    Notes
    -----
    With P the precision, L the fraction of positives near rank k, and n rows, the
    variance of P is ``(P (1 - P) + (P - L)**2 (1 - k/n)) / k``, which follows as that
    of the recall in ash2022 (EmProc). The interval is Wilson's for a share with this
    variance. In simulations (200 to 10,000 rows, k from 10 to 500) the 95 % interval
    covers the mean precision in 93 to 99 % of lists, but Wilson's interval for k
    independent draws only in 81 % at worst.

    Examples
    --------
    >>> from precbench import interval_at_k
    >>> y = [1, 1, 0, 1] + [0] * 96
    >>> tuple(round(float(v), 2) for v in interval_at_k(y, range(100, 0, -1), k=4))
    (0.23, 0.97)
    """
    positive, scores = check_ranking(y_true, y_score)
    # Half of a very small level may round to 0.
    if not isinstance(level, numbers.Real) or not 0 < level / 2 < 0.5:
        raise InputError(
            f"level = {level} is invalid; give a significance level in (0, 1)"
        )
    n = positive.size
    count = _count_at_k(k, positive)
    hits = _hits(positive, scores, count)
    # The ranks start + 1 to stop, near k, estimate L: 5 on either side for k = 10, 73
    # for k = 500. The power 4/5 is that of the number of neighbours in a local mean of
    # the least squared error; 0.5 and 5 were chosen. The interval hardly depends on
    # them: in simulations (200 to 10,000 rows, k from 10 to 500) factors from 0.25 to 1
    # and powers from 0.5 to 1 covered the mean precision in 96 % of lists on average.
    half = max(5, math.ceil(0.5 * count**0.8))
    start = max(0, count - half)
    stop = min(n, count + half)
    near = _hits(positive, scores, stop)
    if start > 0:
        near -= _hits(positive, scores, start)
    local = (near + 0.5) / (stop - start + 1)  # L, but never 0 or 1
    below_top = 1 - count / n  # fraction of rows
    share = (hits + 0.5) / (count + 1)  # P in the variance, but never 0 or 1
    # The variance of the Notes, divided by that of k independent draws, P (1 - P) / k.
    excess = 1 + (share - local) ** 2 * below_top / (share * (1 - share))
    n_independent = count / excess  # draws with this variance
    return _wilson(hits / count, n_independent, level)


def _wilson(share: float, size: float, level: float) -> tuple[float, float]:
    """Return Wilson's (1927) interval for a share of hits among `size` draws.

    With the quantile z of the confidence 1 - level, and n draws, which need not be a
    whole number, the ends for a share p are

        (p + z^2 / (2 n) -+ z sqrt(p (1 - p) / n + (z / (2 n))^2)) / (1 + z^2 / n).
    """
    z = -NormalDist().inv_cdf(level / 2)  # inv_cdf(1 - level / 2) would round
    centre = share + z**2 / (2 * size)
    half_width = z * math.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2)
    divisor = 1 + z**2 / size
    low = (centre - half_width) / divisor
    high = (centre + half_width) / divisor
    return max(0.0, low), min(1.0, high)


def _count_at_k(k: TopK, positive: NDArray[np.bool_]) -> int:
    """Return `k` as a number of rows."""
    return resolve_k(k, int(np.count_nonzero(positive)), positive.size)


def _hits(
    positive: NDArray[np.bool_], scores: NDArray, count: int, ties: Ties = "expected"
) -> float:
    """Count the positives among the `count` >= 1 highest scores.

    The mean over orders of tied rows may be a fraction. Rows above the last score of
    the top count in full.
    """
    top = split_at(scores, count)
    free = top.n_tied_in_top  # places left for tied rows
    n_tied = top.tied.size
    tied_pos = int(positive[top.tied].sum())
    match ties:
        case "expected":  # the mean over all orders of the tied rows
            hits = free * tied_pos / n_tied
        case "best":  # tied positives come first
            hits = min(free, tied_pos)
        case "worst":  # tied negatives come first
            hits = max(0, free - (n_tied - tied_pos))
        case _:
            raise InputError(
                f"ties = {ties!r} is unknown; give 'expected', 'best' or 'worst'"
            )
    return int(positive[top.above].sum()) + hits


def prbep(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Precision-recall break-even point: precision at k = number of positives.

    Ties count with their expected value.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)

    Returns
    -------
    float
        In [0, 1]; kar2015 §3.4 and kar2014 §5.

    Examples
    --------
    >>> from precbench.ranking.metrics import prbep
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(prbep(y, scores), 3)  # 2 of the first 3
    0.667
    """
    return precision_at_k(y_true, y_score, k=1.0)  # a fraction of the positives


def partial_auc(
    y_true: ArrayLike, y_score: ArrayLike, beta: float, tied_pairs: TiedPairs = "half"
) -> float:
    """Partial area under the ROC curve for false positive rates in [0, `beta`].

    The fraction of correctly ordered pairs of a positive and one of the ``ceil(beta *
    n_neg)`` highest negatives: kar2014 (4), divided by the number of its pairs.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
    beta : float
        Fraction of the negatives, in (0, 1].
    tied_pairs : {"half", "correct", "error"}, default="half"
        Weight of a pair with equal scores: 1/2, 1 as in kar2014 (4), or 0.

    Returns
    -------
    float
        In [0, 1]; 1 is perfect. See `partial_auc_mcclish` for scikit-learn's scale.

    Examples
    --------
    >>> from precbench.ranking.metrics import partial_auc
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(partial_auc(y, scores, beta=0.5), 3)  # against the highest negative
    0.333
    """
    positive, scores = check_ranking(y_true, y_score)
    if tied_pairs not in _CREDIT:
        raise InputError(
            f"tied_pairs = {tied_pairs!r} is unknown; give 'half', 'correct' or 'error'"
        )
    n_pos = int(np.count_nonzero(positive))
    n_top = ceil_share(check_beta(beta), scores.size - n_pos)
    # Thresholds descend. Negatives that enter at a threshold are below the positives
    # that entered before, and tied with the positives that enter at the same threshold.
    counts = _cumulative_counts(positive, scores)
    new_negatives = np.diff(np.minimum(counts.fp, n_top), prepend=0)
    n_right = int(new_negatives[1:] @ counts.tp[:-1])  # pairs in the right order
    n_tied = int(new_negatives @ counts.tp) - n_right  # pairs with equal scores
    return (n_right + _CREDIT[tied_pairs] * n_tied) / (n_pos * n_top)


def auc(y_true: ArrayLike, y_score: ArrayLike, tied_pairs: TiedPairs = "half") -> float:
    """Area under the ROC curve.

    The fraction of correctly ordered pairs of the two classes.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
    tied_pairs : {"half", "correct", "error"}, default="half"
        Weight of a pair with equal scores: 1/2, 1 or 0.

    Returns
    -------
    float
        In [0, 1]. Equals `partial_auc` with ``beta=1``.

    Examples
    --------
    >>> from precbench.ranking.metrics import auc
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(auc(y, scores), 3)  # 4 of 6 pairs
    0.667
    """
    return partial_auc(y_true, y_score, beta=1.0, tied_pairs=tied_pairs)


def partial_auc_mcclish(y_true: ArrayLike, y_score: ArrayLike, beta: float) -> float:
    """Partial area under the ROC curve on McClish's scale: 1/2 is chance, 1 is perfect.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Tied scores form a straight segment of the curve.
    beta : float
        Largest false positive rate, in (0, 1]; the curve is interpolated there.

    Returns
    -------
    float
        ``(1 + (area - chance) / (beta - chance)) / 2`` with ``chance = beta**2 / 2``,
        as ``sklearn.metrics.roc_auc_score(max_fpr=beta)``. McClish, "Analyzing a
        portion of the ROC curve", Medical Decision Making 9(3), 1989.

    Examples
    --------
    >>> from precbench.ranking.metrics import partial_auc_mcclish
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> # area 1/6; by chance 1/8, perfect 1/2
    >>> round(partial_auc_mcclish(y, scores, beta=0.5), 3)
    0.556
    """
    beta = check_beta(beta)
    fpr, tpr, _thresholds = roc_curve(y_true, y_score)
    inside = fpr <= beta
    x = np.append(fpr[inside], beta)
    y = np.append(tpr[inside], np.interp(beta, fpr, tpr))
    chance = beta**2 / 2
    return float(1 + (np.trapezoid(y, x) - chance) / (beta - chance)) / 2


def partial_pr_auc(
    y_true: ArrayLike, y_score: ArrayLike, recall: float = 0.95
) -> float:
    """Area under the precision-recall curve from `recall` to 1, divided by its width.

    The result is the mean precision at these recalls. The precision at a recall is
    taken at the highest threshold with this recall or more: the curve is a step
    function, not interpolated.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Rows with equal scores are above a threshold together.
    recall : float, default=0.95
        Where the area begins, in [0, 1); 0 gives
        ``sklearn.metrics.average_precision_score``.

    Returns
    -------
    float
        In (0, 1]; chance is the fraction of positives. Kumar, Narasimhan, Cotter,
        "Implicit rate-constrained optimization of non-decomposable objectives", ICML
        2021, section 5.3, which leaves the interpolation open.

    Examples
    --------
    >>> from precbench.ranking.metrics import partial_pr_auc
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> # precision 2/3 up to the recall 2/3, then 3/4
    >>> round(partial_pr_auc(y, scores, recall=0.5), 3)
    0.722
    """
    is_number = isinstance(recall, numbers.Real) and not isinstance(recall, bool)
    if not is_number or not 0 <= recall < 1:
        raise InputError(f"recall = {recall} is invalid; give a number in [0, 1)")
    counts = _cumulative_counts(*check_ranking(y_true, y_score))
    precisions = counts.tp / (counts.tp + counts.fp)
    recalls = counts.tp / counts.tp[-1]
    # Widths of the steps of the curve, cut off at the recall where the area begins.
    start = float(recall)
    widths = np.diff(np.maximum(recalls, start), prepend=start)
    return float(np.dot(widths, precisions) / widths.sum())


def recall_at_fpr(y_true: ArrayLike, y_score: ArrayLike, beta: float) -> float:
    """Recall at the lowest threshold that at most `beta` of the negatives pass.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Rows with equal scores pass a threshold together.
    beta : float
        Largest false positive rate, in (0, 1].

    Returns
    -------
    float
        The true positive rate at this threshold, in [0, 1].

    Examples
    --------
    >>> from precbench.ranking.metrics import recall_at_fpr
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> recall_at_fpr(y, scores, beta=0.5)  # 0.8 may pass, and 0.2 is above 0.1
    1.0
    """
    fpr, tpr, _thresholds = roc_curve(y_true, y_score)
    # 1e-12 allows for the rounding of fpr.
    return float(tpr[fpr <= check_beta(beta) * (1 + 1e-12)].max())


class _CumulativeCounts(NamedTuple):
    """True and false positives at each threshold.

    The thresholds are the distinct scores, descending. A row is predicted positive if
    its score is >= the threshold; at the last one all rows are.
    """

    tp: NDArray[np.intp]
    fp: NDArray[np.intp]
    thresholds: NDArray


def _cumulative_counts(
    positive: NDArray[np.bool_], scores: NDArray
) -> _CumulativeCounts:
    """Count the positives and the negatives that score at least each threshold."""
    ascending = np.sort(scores)
    is_first_of_equal = np.append(True, ascending[1:] != ascending[:-1])
    n_below = np.flatnonzero(is_first_of_equal)[::-1]  # rows below each threshold
    thresholds = ascending[n_below] + 0.0  # turns -0.0 into 0.0
    ascending_pos = np.sort(scores[positive])
    n_pos_below = np.searchsorted(ascending_pos, thresholds)
    tp = ascending_pos.size - n_pos_below
    n_predicted = scores.size - n_below
    return _CumulativeCounts(tp=tp, fp=n_predicted - tp, thresholds=thresholds)


def f1(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """F1 of predicting positive when the score is above 0.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        A score of 0 counts as negative.

    Returns
    -------
    float
        ``2 TP / (2 TP + FP + FN)``, in [0, 1]; 0 when nothing is predicted positive.

    Examples
    --------
    >>> from precbench.ranking.metrics import f1
    >>> f1([0, 1, 1], [0.5, 2.0, -1.0])  # 2 * 1 / (2 * 1 + 1 + 1)
    0.5
    """
    positive, scores = check_ranking(y_true, y_score)
    predicted = scores > 0
    tp = int(positive[predicted].sum())
    # In 2 TP + FP + FN, TP + FN are all positives and TP + FP all that are predicted.
    return 2 * tp / int(positive.sum() + predicted.sum())


def f1_max(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """F1 at the best threshold; a threshold never splits tied scores.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> from precbench.ranking.metrics import f1_max
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(f1_max(y, scores), 3)  # all but the last: 2 * 3 / (2 * 3 + 1)
    0.857
    """
    counts = _cumulative_counts(*check_ranking(y_true, y_score))
    n_pos = counts.tp[-1]
    # F1 = 2 TP / (2 TP + FP + FN), in which TP + FN are all positives.
    return float(np.max(2 * counts.tp / (n_pos + counts.tp + counts.fp)))


def average_precision(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Average precision, the area under the steps of the precision-recall curve.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)

    Returns
    -------
    float
        In (0, 1]: the mean over the positives of the precision among the rows that are
        scored no lower, so that tied rows share the last place among them.

    Examples
    --------
    >>> from precbench.ranking.metrics import average_precision
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(average_precision(y, scores), 3)  # (1 + 2/3 + 3/4) / 3
    0.806
    """
    counts = _cumulative_counts(*check_ranking(y_true, y_score))
    precisions = counts.tp / (counts.tp + counts.fp)
    new_positives = np.diff(counts.tp, prepend=0)
    n_pos = counts.tp[-1]
    return float(new_positives @ precisions / n_pos)


def pnorm_risk(
    y_true: ArrayLike,
    y_score: ArrayLike,
    p: float,
    *,
    loss: PairLoss = "zero-one",
    log: bool = False,
) -> float:
    """Risk R_{p,loss} of the P-Norm Push; smaller is better.

    The sum over the negatives of ``h**p``, where h is the sum over the positives of a
    loss of the difference r of scores, positive minus negative (rudin2009, section 2).
    With the zero-one loss h is the Height of the negative, the number of positives with
    at most its score.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
    p : float
        Power, finite and above 0; with the zero-one loss, p = 1 counts misordered
        pairs.
    loss : {"zero-one", "exponential", "logistic"}, default="zero-one"
        1 for r <= 0 (else 0), ``exp(-r)``, or ``ln(1 + exp(-r))``. The logistic loss
        takes time linear in the number of pairs; divided by ln 2 it would bound the
        zero-one loss from above.
    log : bool, default=False
        Return the natural logarithm, which does not overflow.

    Returns
    -------
    float
        At least 0; ``inf`` if the risk overflows. With `log`, ``-inf`` for a risk of 0.

    Examples
    --------
    >>> from precbench.ranking.metrics import pnorm_risk
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> [pnorm_risk(y, scores, p) for p in (1, 2)]  # 2 + 0 inverted pairs, 2² + 0²
    [2.0, 4.0]
    """
    positive, scores = check_ranking(y_true, y_score)
    if isinstance(p, bool) or not isinstance(p, numbers.Real) or not 0 < p < math.inf:
        raise InputError(f"p = {p} is invalid; give a finite number above 0")
    p = float(p)
    pos, neg = scores[positive], scores[~positive]
    match loss:
        case "zero-one":
            heights = _heights(pos, neg).astype(np.float64)
            if not log:
                with np.errstate(over="ignore"):
                    return float(np.sum(heights**p))
            with np.errstate(divide="ignore"):  # log 0 is -inf
                log_risk = _log_sum_exp(p * np.log(heights))
        case "exponential":
            # (sum_i exp(-s_i))**p sum_k exp(s_k)**p, positives i, negatives k
            log_risk = p * _log_sum_exp(-pos) + _log_sum_exp(p * neg)
        case "logistic":
            log_risk = _log_sum_exp(p * _log_logistic_heights(pos, neg))
        case _:
            raise InputError(
                f"loss = {loss!r} is unknown; give 'zero-one', 'exponential' or"
                " 'logistic'"
            )
    if log:
        return log_risk
    with np.errstate(over="ignore"):
        return float(np.exp(log_risk))


def _log_sum_exp(values: NDArray) -> float:
    """Return ``log(sum(exp(values)))`` without overflow."""
    peak = float(values.max())
    if peak == -math.inf:  # all terms are 0
        return peak
    return peak + math.log(float(np.sum(np.exp(values - peak))))


def _heights(pos: NDArray, neg: NDArray) -> NDArray[np.intp]:
    """Return how many positives do not outrank each negative, in ascending order."""
    return np.searchsorted(np.sort(pos), np.sort(neg), "right")


def _log_logistic_heights(
    pos: NDArray, neg: NDArray, n_block_pairs: int = _BLOCK_PAIRS
) -> NDArray[np.float64]:
    """Return ``ln sum_i ln(1 + exp(neg[k] - pos[i]))`` for each negative k.

    Nothing overflows. `n_block_pairs` pairs are held in memory at a time.
    """
    logs = np.empty(neg.size)
    length = max(1, n_block_pairs // pos.size)  # negatives in a block
    for start in range(0, neg.size, length):
        z = neg[start : start + length, None] - pos  # a row for each negative
        # Below _SMALL ln(1 + e^z) is e^z in double precision. Its logarithm is z, even
        # if e^z is 0.
        log_losses = np.log(np.logaddexp(0, np.maximum(z, _SMALL)))
        log_losses[z < _SMALL] = z[z < _SMALL]
        peaks = log_losses.max(axis=1)
        sums = np.exp(log_losses - peaks[:, None]).sum(axis=1)
        logs[start : start + length] = peaks + np.log(sums)
    return logs


def r_max(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """R_max, the number of positives that do not outrank the highest negative.

    Smaller is better. A positive tied with the highest negative counts.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)

    Returns
    -------
    float
        Between 0 and the number of positives: the greatest Height of a negative
        (rudin2009, section 2). ``pnorm_risk ** (1/p)`` tends to R_max as p grows.

    Examples
    --------
    >>> from precbench.ranking.metrics import r_max
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> r_max(y, scores)  # 0.7 and 0.2 are below 0.8
    2.0
    """
    positive, scores = check_ranking(y_true, y_score)
    return float(np.count_nonzero(scores[positive] <= scores[~positive].max()))


def _ranks_of_positives(y_true: ArrayLike, y_score: ArrayLike) -> NDArray[np.intp]:
    """Return the Rank of each positive: how many rows, with itself, score no lower."""
    positive, scores = check_ranking(y_true, y_score)
    return scores.size - np.searchsorted(
        np.sort(scores), np.sort(scores[positive]), "left"
    )


def dcg(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Discounted cumulative gain, the sum over the positives of 1 / ln(1 + Rank).

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)

    Returns
    -------
    float
        Above 0, not normalised. The Rank of a row is the number of rows, itself
        included, with at least its score, so tied rows share the worst rank among them.
        rudin2009, section 7.

    Examples
    --------
    >>> from precbench.ranking.metrics import dcg
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(dcg(y, scores), 3)  # 1 / ln(2) + 1 / ln(4) + 1 / ln(5)
    2.785
    """
    return float(np.sum(1 / np.log1p(_ranks_of_positives(y_true, y_score))))


def average_reciprocal_rank(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """AveR, the sum (despite its name) over the positives of 1 / Rank.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)

    Returns
    -------
    float
        Above 0; Rank as in `dcg`. rudin2009, section 7.

    Examples
    --------
    >>> from precbench.ranking.metrics import average_reciprocal_rank
    >>> y, scores = [0, 1, 0, 1, 1], [0.1, 0.9, 0.8, 0.7, 0.2]
    >>> round(average_reciprocal_rank(y, scores), 3)  # 1 + 1/3 + 1/4
    1.583
    """
    return float(np.sum(1 / _ranks_of_positives(y_true, y_score)))


def roc_curve(
    y_true: ArrayLike, y_score: ArrayLike
) -> tuple[NDArray, NDArray, NDArray]:
    """Vertices of the ROC curve, one for each distinct score.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)

    Returns
    -------
    fpr, tpr : ndarray of float64, shape (n_distinct + 1,)
        False and true positive rates, from (0, 0) to (1, 1).
    thresholds : ndarray of float64, shape (n_distinct + 1,)
        Descending, from ``inf``: a row is predicted positive from this score on.
        All three as ``sklearn.metrics.roc_curve(drop_intermediate=False)``.

    Examples
    --------
    >>> from precbench.ranking.metrics import roc_curve
    >>> fpr, tpr = roc_curve([0, 1, 1], [0.2, 0.8, 0.1])[:2]
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 1.0])
    """
    counts = _cumulative_counts(*check_ranking(y_true, y_score))
    fpr = np.concatenate(([0.0], counts.fp / counts.fp[-1]))
    tpr = np.concatenate(([0.0], counts.tp / counts.tp[-1]))
    return fpr, tpr, np.concatenate(([np.inf], counts.thresholds))


@dataclass(eq=False)
class MetricSpec:
    """A metric function and its properties; calling the object calls the function.

    Attributes
    ----------
    function : callable
        Takes labels, scores and the parameters of the metric.
    written : str
        Notation in text and figures; a name in braces stands for a parameter.
    smaller_is_better : bool, default=False

    Examples
    --------
    >>> from precbench.ranking.metrics import METRICS
    >>> spec = METRICS["r_max"]
    >>> spec.smaller_is_better, spec([0, 1, 1], [0.5, 0.9, 0.1])
    (True, 1.0)
    """

    function: Callable[..., float]
    written: str
    smaller_is_better: bool = False

    def __post_init__(self) -> None:
        """Take over the signature and the docstring of the function."""
        functools.update_wrapper(self, self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> float:
        return self.function(*args, **kwargs)

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults of parameters, `inspect.Parameter.empty` if required."""
        signature = inspect.signature(self.function)
        _labels, _scores, *parameters = signature.parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}


def check_metric(member: Any) -> MetricSpec:
    """Return the metric that a package adds; a function is made into a `MetricSpec`."""
    if not callable(member) or isinstance(member, type):
        raise InputError(
            f"the metric is a {type(member).__name__}; name a function or MetricSpec"
        )
    if len(inspect.signature(member).parameters) < 2:
        raise InputError(
            "the metric takes fewer than two arguments; let the function take labels"
            " and scores"
        )
    if isinstance(member, MetricSpec):
        return member
    return MetricSpec(member, member.__name__)


_BUILT_IN: dict[str, MetricSpec] = {
    spec.function.__name__: spec
    for spec in (
        MetricSpec(precision_at_k, "prec@{k}"),
        MetricSpec(recall_at_k, "recall@{k}"),
        MetricSpec(lift_at_k, "lift@{k}"),
        MetricSpec(partial_auc, "pAUC({beta})"),
        MetricSpec(partial_auc_mcclish, "McClish pAUC({beta})"),
        MetricSpec(partial_pr_auc, "PR-AUC (recall ≥ {recall})"),
        MetricSpec(recall_at_fpr, "recall at FPR {beta}"),
        MetricSpec(auc, "AUC"),
        MetricSpec(prbep, "PRBEP"),
        MetricSpec(average_precision, "average precision"),
        MetricSpec(f1, "F1"),
        MetricSpec(f1_max, "max F1"),
        MetricSpec(pnorm_risk, "p-norm risk, p = {p}", smaller_is_better=True),
        MetricSpec(r_max, "R_max", smaller_is_better=True),
        MetricSpec(dcg, "DCG"),
        MetricSpec(average_reciprocal_rank, "average reciprocal rank"),
    )
}

METRICS = Registry("precbench.metrics", _BUILT_IN, check_metric)


@dataclass(frozen=True)
class Metric:
    """A metric with given parameters, called with labels and scores.

    Attributes
    ----------
    name : str
        Key in `METRICS`.
    params : dict

    Examples
    --------
    >>> from precbench.ranking.metrics import Metric
    >>> metric = Metric("precision_at_k", {"k": 2})
    >>> metric([0, 1, 1], [0.1, 0.9, 0.8])
    1.0
    """

    name: str
    params: dict[str, Any]

    def __call__(self, y_true: ArrayLike, y_score: ArrayLike) -> float:
        return self._spec(y_true, y_score, **self.params)

    @property
    def _spec(self) -> MetricSpec:
        return METRICS[self.name]

    @property
    def label(self) -> str:
        """The name in result files, for example ``precision_at_k(k=0.25)``."""
        if not self.params:
            return self.name
        return f"{self.name}({_assignments(self.params)})"

    @property
    def written(self) -> str:
        """The notation in text and figures, such as ``prec@0.25``, ``prec@5.56 %``."""
        pattern = self._spec.written
        shown: dict[str, Any] = {}
        # `parse` splits the pattern into texts, each with the name in braces after it.
        for _text, name, *_ in string.Formatter().parse(pattern):
            if name:
                shown[name] = self._shown(name)
        text = pattern.format(**shown)
        # At most three digits before a %: 5.5556 % becomes 5.56 %.
        text = re.sub(r"[\d.]+(?= %)", _three_digits, text)
        # The given parameters for which the pattern has no braces.
        others = {
            name: value for name, value in self.params.items() if name not in shown
        }
        return f"{text} ({_assignments(others)})" if others else text

    def _shown(self, parameter: str) -> Any:
        """Return the given value of a parameter, else its default, else its name."""
        if parameter in self.params:
            return self.params[parameter]
        default = self._spec.parameters.get(parameter, inspect.Parameter.empty)
        return parameter if default is inspect.Parameter.empty else default

    @property
    def smaller_is_better(self) -> bool:
        return self._spec.smaller_is_better

    def check_size(self, n_pos: int, n_rows: int) -> None:
        """Require a list with as many rows as the `k` of the metric, if it has one."""
        if "k" in self._spec.parameters:
            resolve_k(self.params["k"], n_pos, n_rows)

    def replace(self, **params: Any) -> "Metric":
        """Return the metric with other parameters; unknown names are ignored."""
        changed = dict(self.params)
        for name, value in params.items():
            if name in self._spec.parameters:
                changed[name] = value
        return Metric(self.name, changed)


def _three_digits(number: re.Match[str]) -> str:
    return f"{float(number[0]):.3g}"


def _assignments(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())

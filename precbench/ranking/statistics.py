"""Statistics over overlapping splits, with a corrected variance, and over data sets.

References
----------
nadeau2003
    Nadeau, Bengio, "Inference for the generalization error", Machine Learning 52.
bouckaert2004
    Bouckaert, Frank, "Evaluating the replicability of significance tests", PAKDD.
hanley1982
    Hanley, McNeil, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", Radiology 143.
clopper1934
    Clopper, Pearson, "The use of confidence or fiducial limits", Biometrika 26.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, logit, ndtri, stdtr, stdtrit

from precbench.core.errors import InputError

__all__ = [
    "LEVEL",
    "NO_WIDTH",
    "Interval",
    "PairedTest",
    "Posterior",
    "auc_interval",
    "bayesian_signed_rank",
    "binomial_interval",
    "expected_hits",
    "expected_total",
    "levels",
    "mean_ranks",
    "resampled_interval",
    "resampled_test",
    "share_interval",
]

LEVEL = 0.05  # of significance: intervals are of 95 %
# A narrower interval of values in [0, 1] is due to rounding alone.
NO_WIDTH = 1e-9
# Differences below this share of the largest value are due to rounding.
_EQUAL = 1e-12


class Interval(NamedTuple):
    """A mean over splits and its confidence interval.

    For one split the ends are NaN.
    """

    mean: float
    low: float
    high: float


class PairedTest(NamedTuple):
    """The mean difference of two methods over the same splits, its interval, and p.

    `p` is two-sided, and NaN for one split.
    """

    mean: float
    low: float
    high: float
    p: float


def resampled_interval(values: ArrayLike, test_share: float) -> Interval:
    """Return the mean over splits with its corrected confidence interval.

    The variance of the mean of J values with variance s^2 is (1 / J + n_test / n_train)
    s^2, and Student's t has J - 1 degrees of freedom (nadeau2003, bouckaert2004). One
    split has no interval.

    Parameters
    ----------
    values : array-like of shape (n_splits,)
        One value for each split, or for each fold of each repetition.
    test_share : float
        n_test / (n_test + n_train), in [0, 1); 0 for draws that share no rows.
    """
    checked = _splits(values)
    # Some risks are near the largest float.
    with np.errstate(over="ignore", invalid="ignore"):
        mean, error = _mean_and_error(checked, test_share)
        half_width = error * _quantile(len(checked))
        return Interval(mean, mean - half_width, mean + half_width)


def share_interval(values: ArrayLike, test_share: float) -> Interval:
    """Return the mean of shares in [0, 1] over splits with an interval within 0 and 1.

    The interval is `resampled_interval`, carried over to the log odds of the mean by
    the delta method. For a mean of 0 or 1, `resampled_interval` is cut off at 0 and 1.
    """
    mean, low, high = resampled_interval(values, test_share)
    if not 0 < mean < 1:
        return Interval(mean, max(low, 0.0), min(high, 1.0))
    # The derivative of the log odds is 1 / (p (1 - p)).
    half_of_log_odds = (high - mean) / (mean * (1 - mean))
    low_share, high_share = _from_log_odds(mean, half_of_log_odds)
    # By rounding, an end may pass the mean.
    return Interval(mean, min(low_share, mean), max(high_share, mean))


def _from_log_odds(share: float, half_width: float) -> tuple[float, float]:
    """Return the ends of the interval of `half_width` log odds on either side."""
    low, high = expit(logit(share) + np.array([-half_width, half_width])).tolist()
    return low, high


def auc_interval(
    values: ArrayLike, test_share: float, n_pos: int, n_neg: int
) -> Interval:
    """Return the mean AUC over splits with an interval within 0 and 1.

    The interval is `share_interval`, and at least that of one AUC of all rows of the
    file, since no splits of a file know more than its rows. So values that agree by
    chance, or values of 1, do not look certain.

    Parameters
    ----------
    values : array-like of shape (n_splits,)
        The AUC of each split.
    test_share : float
        As for `resampled_interval`.
    n_pos, n_neg : int
        Rows of each class in the file.
    """
    mean, low, high = share_interval(values, test_share)
    # An AUC of 0 or 1 would have no variance: it counts as if half a row of the rarer
    # class were misplaced.
    margin = 0.5 / min(n_pos, n_neg)
    auc = min(max(mean, margin), 1 - margin)
    # Variance of one AUC A (hanley1982, equation 1 with Q1 and Q2 of equation 2):
    # (A (1 - A) + (n_pos - 1) (Q1 - A^2) + (n_neg - 1) (Q2 - A^2)) / (n_pos n_neg)
    q1 = auc / (2 - auc)  # the chance that two positives are above one negative
    q2 = 2 * auc**2 / (1 + auc)  # the chance that one positive is above two negatives
    pairs_variance = auc * (1 - auc)
    pairs_variance += (n_pos - 1) * (q1 - auc**2)
    pairs_variance += (n_neg - 1) * (q2 - auc**2)
    error = np.sqrt(pairs_variance / (n_pos * n_neg))
    # The derivative of the log odds is 1 / (A (1 - A)).
    half_of_log_odds = ndtri(1 - LEVEL / 2) * error / (auc * (1 - auc))
    file_low, file_high = _from_log_odds(auc, half_of_log_odds)
    # The ends of one split are NaN, which these functions ignore.
    lowest = float(np.fmin(low, file_low))
    highest = float(np.fmax(high, file_high))
    return Interval(mean, min(lowest, mean), max(highest, mean))


def resampled_test(
    first: ArrayLike, second: ArrayLike, test_share: float
) -> PairedTest:
    """Test whether two methods differ over splits, by the corrected resampled t-test.

    Parameters
    ----------
    first, second : array-like of shape (n_splits,)
        In the order of the splits.
    test_share : float
        As for `resampled_interval`.

    Returns
    -------
    PairedTest
        Of ``first - second``. Equal differences have no variance: p = 1 if 0, else a
        sign test.
    """
    one, other = _splits(first), _splits(second)
    if len(one) != len(other):
        raise InputError(
            f"the first method has {len(one)} values and the second {len(other)}; give"
            " each method a value for each split"
        )
    n = len(one)
    # Differences up to `rounding` count as equal.
    rounding = _EQUAL * max(np.abs(one).max(), np.abs(other).max())
    # Some risks are near the largest float.
    with np.errstate(over="ignore", invalid="ignore"):
        differences = one - other
        mean, error = _mean_and_error(differences, test_share)
        half_width = error * _quantile(n)
        if n == 1:
            p = np.nan
        elif np.ptp(differences) > rounding:  # both tails of Student's t
            p = 2 * float(stdtr(n - 1, -np.divide(abs(mean), error)))
        elif abs(mean) <= rounding:  # no difference on any split
            p = 1.0
        else:  # the same difference on all splits: the sign test
            p = 2.0 ** (1 - n)
        return PairedTest(mean, mean - half_width, mean + half_width, p)


def narrowing(n_splits: int, n_later: int, test_share: float) -> float:
    """Return the ratio of the widths of intervals over `n_later` and `n_splits` splits.

    The intervals are those of `resampled_test`, for differences that spread alike.
    """
    share = _checked_share(test_share)

    def width(n: int) -> float:
        return _quantile(n) * float(np.sqrt(1 / n + share / (1 - share)))

    return width(n_later) / width(n_splits)


def binomial_interval(share: float, n: int) -> tuple[float, float]:
    """Return the confidence interval of a share of `n` independent draws (clopper1934).

    ``share * n`` need not be a whole number. The interval is never a single point.
    """
    hits = share * n
    # The ends are quantiles of beta distributions.
    low = betaincinv(hits, n - hits + 1, LEVEL / 2) if hits > 0 else 0.0
    high = betaincinv(hits + 1, n - hits, 1 - LEVEL / 2) if hits < n else 1.0
    return float(low), float(high)


def _mean_and_error(
    values: NDArray[np.float64], test_share: float
) -> tuple[float, float]:
    """Return mean and standard error, corrected for overlapping splits.

    The error of one split is NaN.
    """
    n = len(values)
    share = _checked_share(test_share)
    if n == 1:
        return float(values[0]), np.nan
    # 1 / J + n_test / n_train, see `resampled_interval`.
    inflation = 1 / n + share / (1 - share)
    return float(values.mean()), float(np.sqrt(inflation) * values.std(ddof=1))


def _checked_share(test_share: float) -> float:
    if not 0 <= test_share < 1:
        raise InputError(
            f"test_share = {test_share} is outside [0, 1); give a share of the rows"
        )
    return test_share


def _quantile(n: int) -> float:
    """Return the quantile of Student's t for the 95 % interval of n values.

    NaN for one value.
    """
    return float(stdtrit(n - 1, 1 - LEVEL / 2)) if n > 1 else np.nan


def expected_hits(
    precisions: ArrayLike,
    tested: float,
    test_share: float,
    k: int,
    *,
    share_of_lists: float = 0.0,
) -> Interval:
    """Predict the hits among the first `k` rows of a new list, with an interval.

    The precision of the new list is a beta variable whose mean is about that of
    `precisions`. Its variance is the sum of

    - the variance of the mean over splits (see `resampled_interval`; few splits widen
      it as in Student's interval) or, if it is greater, that of a mean over the
      distinct rows at the top of all splits;
    - the variance of a mean over `k` rows;
    - `share_of_lists` times the variance between lists, which is that of `precisions`
      less that of a mean over `tested` rows.

    The ends of the interval are rounded outwards.

    Parameters
    ----------
    precisions : array-like of shape (n_splits,)
        Of the first `tested` rows of the held-out list of each split.
    tested : float
        Rows at the top of a held-out list; the same share of this list as `k` is of the
        new list.
    test_share : float
        As for `resampled_interval`.
    k : int
    share_of_lists : float
        How much of the variance between lists the new list has: 0 if its scores are
        known, and tell what kind of list it is; else the rows of a held-out list
        divided by those of the new list, since a longer list has more groups, whose
        differences average out.
    """
    values = _splits(precisions)
    _check_lengths(tested, k)
    n_rows = distinct_rows(len(values), tested, test_share)
    mean = float(values.mean())
    # One row more, half a hit: precisions that are all 0 or all 1 would have no
    # variance.
    shrunk = (n_rows * mean + 0.5) / (n_rows + 1)
    spread = shrunk * (1 - shrunk)  # variance of a row, a hit or not
    # the first two terms of the variance
    variance = _variance_of_list(values, spread, n_rows, test_share, k)
    if len(values) > 1:
        # the variance between lists
        between = max(0.0, float(values.var(ddof=1)) - spread / tested)
        variance += share_of_lists * between * _widening(len(values))
    # The variance of a beta variable of mean m is m (1 - m) / (a + b + 1), which is
    # less than `spread`: 1.001 keeps a + b above 0.
    variance = min(variance, spread / 1.001)
    a_plus_b = spread / variance - 1
    a = shrunk * a_plus_b
    b = (1 - shrunk) * a_plus_b
    low = betaincinv(a, b, LEVEL / 2)
    high = betaincinv(a, b, 1 - LEVEL / 2)
    return Interval(k * mean, float(np.floor(k * low)), float(np.ceil(k * high)))


def expected_total(
    means: ArrayLike, spread: float, tested: float, test_share: float, k: int | None
) -> Interval:
    """Predict the total of the first `k` rows' amounts in a new list, with an interval.

    Parameters
    ----------
    means : array-like of shape (n_splits,)
        Mean amount of the first `tested` rows of the held-out list of each split.
    spread : float
        Variance of the amounts of these rows.
    tested, test_share, k
        See `expected_hits`; with None for `k`, the mean over all new rows is predicted.
    """
    values = _splits(means)
    _check_lengths(tested, k)
    n_rows = distinct_rows(len(values), tested, test_share)
    # As in `expected_hits`, but amounts have no bounds: a normal interval, which is not
    # rounded.
    variance = _variance_of_list(values, spread, n_rows, test_share, k)
    half_width = np.sqrt(variance) * ndtri(1 - LEVEL / 2)
    mean = values.mean()
    n_amounts = 1 if k is None else k  # without k, the mean itself is predicted
    return Interval(
        mean=float(n_amounts * mean),
        low=float(n_amounts * (mean - half_width)),
        high=float(n_amounts * (mean + half_width)),
    )


def _check_lengths(tested: float, k: int | None) -> None:
    """Refuse lengths of lists of no rows; without `k` there is no new list."""
    _require_positive("tested", tested)
    if k is not None:
        _require_positive("k", k)


def distinct_rows(n_splits: int, tested: float, test_share: float) -> float:
    """Return the expected number of different rows in samples of `tested` rows.

    Each of `n_splits` samples is the fraction `test_share` of one set of rows; for 0,
    no two samples share a row.
    """
    _require_positive("tested", tested)
    share = _checked_share(test_share)
    if share == 0:
        return tested * n_splits
    # Each of tested / share rows is in any of the samples with the chance
    # 1 - (1 - share)**n_splits.
    chance = -np.expm1(n_splits * np.log1p(-share))
    return tested * float(chance / share)


def _require_positive(name: str, number: float) -> None:
    if not number > 0:
        raise InputError(f"{name} = {number} is not above 0; give a positive number")


def _variance_of_list(
    values: NDArray[np.float64],
    spread: float,
    n_rows: float,
    test_share: float,
    k: int | None,
) -> float:
    """Return the variance of the mean of k new rows about the mean over splits.

    It is the variance of the mean over splits plus `spread` / k.
    """
    # At least the variance over `n_rows` independent rows, since few splits may agree
    # by chance.
    variance_of_mean = spread / n_rows
    _mean, error = _mean_and_error(values, test_share)
    if not np.isnan(error):  # NaN for one split
        over_splits = error**2 * _widening(len(values))
        variance_of_mean = max(over_splits, variance_of_mean)
    if k is None:
        return variance_of_mean
    return variance_of_mean + spread / k


def _widening(n: int) -> float:
    """Return the factor by which to raise a variance of n values.

    A normal interval with the raised variance is as wide as Student's: the factor is
    the square of the ratio of Student's and the normal quantile.
    """
    return float((_quantile(n) / ndtri(1 - LEVEL / 2)) ** 2)


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    """Return values of any shape as float64; NaN is allowed."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the values are not all numbers ({error}); give an array of numbers"
        ) from error


def _splits(values: ArrayLike) -> NDArray[np.float64]:
    """Return the values of splits as a vector of float64.

    Require one or more, all finite.
    """
    checked = _vector(values, "values of the splits", "split")
    if not len(checked):
        raise InputError(
            "no values of splits were given; give one value for each split"
        )
    if not np.isfinite(checked).all():
        raise InputError(
            f"the value of split {int(np.argmin(np.isfinite(checked)))}, counted from"
            " 0, is not finite; leave this split out for all methods"
        )
    return checked


def _vector(values: ArrayLike, name: str, each: str) -> NDArray[np.float64]:
    """Return values as a vector of float64; NaN is allowed.

    For the error message, `name` is the plural of the values, and `each` what has one.
    """
    numbers = _numbers(values)
    if numbers.ndim != 1:
        raise InputError(
            f"found {name} of the shape {numbers.shape}; give one number for each"
            f" {each}"
        )
    return numbers


def levels(values: ArrayLike) -> NDArray[np.float64]:
    """Return the place of each value in ascending order, from 0.

    Equal values share a place, and NaN stays NaN. Differences by rounding do not count:
    a mean depends on the order of summation.
    """
    numbers = _vector(values, "values", "item")
    if not len(numbers):
        return np.empty(0)
    order = np.argsort(numbers)  # NaN come last
    greatest = np.abs(numbers[np.isfinite(numbers)]).max(initial=0)
    with np.errstate(invalid="ignore"):  # the difference of equal infinities
        begins_place = np.diff(numbers[order]) > _EQUAL * greatest
    places = np.empty(len(numbers))
    places[order] = np.cumsum([0, *begins_place])
    places[np.isnan(numbers)] = np.nan
    return places


def mean_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return the mean rank of each method over the data sets, from 1 for the best.

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)
        Larger is better; tied methods get the mean of their ranks.
    """
    from scipy.stats import rankdata  # takes half a second to import

    # `rankdata` gives 1 to the least, which is to be the best.
    negated_levels = [-levels(row) for row in _table(values)]
    ranks: NDArray[np.float64] = rankdata(negated_levels, axis=-1)
    return ranks.mean(axis=0)


def _table(values: ArrayLike) -> NDArray[np.float64]:
    """Return values as a float64 array (n_datasets, n_methods).

    Require two methods or more.
    """
    table = _numbers(values)
    if table.ndim != 2 or len(table) < 1 or table.shape[1] < 2:
        raise InputError(
            f"the values have the shape {table.shape}; give a row for each data set and"
            " a column for each of two or more methods"
        )
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise InputError(
            f"method {column} has the value {table[row, column]} on data set {row}"
            " (both counted from 0); leave out the method or the data set"
        )
    return table


def _pairs(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the values of two methods on the same data sets as two columns."""
    if np.shape(first) != np.shape(second):
        raise InputError(
            f"the two methods have values of shapes {np.shape(first)} and"
            f" {np.shape(second)}; give a pair of values for each data set"
        )
    return _table(np.column_stack([_numbers(first), _numbers(second)]))


class Posterior(NamedTuple):
    """Probabilities that the first method, neither or the second is better.

    They are of a new data set.
    """

    first: float
    equivalent: float
    second: float


def bayesian_signed_rank(first: ArrayLike, second: ArrayLike, rope: float) -> Posterior:
    """Compare two methods over data sets by the Bayesian signed-rank test.

    The probabilities are means of the posterior, a Dirichlet process on the differences
    (Benavoli et al., JMLR 18, 2017, Section 4), in closed form.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
    rope : float
        Half the width of the region of practical equivalence.
    """
    table = _pairs(first, second)
    # The prior counts as half a data set, on which the methods are equal.
    differences = np.append(0.0, table[:, 0] - table[:, 1])
    strength = np.append(0.5, np.ones(len(table)))
    total = strength.sum()
    # With probabilities w of Dirichlet(strength s, of the sum S) for the differences,
    # E[w_i w_j] = (s_i s_j + [i = j] s_i) / (S (S + 1)).
    joint = (np.outer(strength, strength) + np.diag(strength)) / (total * (total + 1))
    # A pair of differences z counts by its mean (z_i + z_j) / 2.
    sums = differences[:, None] + differences
    is_above = sums > 2 * rope
    is_below = sums < -2 * rope
    above = float(joint[is_above].sum())
    below = float(joint[is_below].sum())
    return Posterior(above, 1 - above - below, below)

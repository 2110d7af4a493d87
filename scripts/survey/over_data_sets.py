"""Tests of methods over several data sets, and performance profiles.

References
----------
demsar2006 : Demsar, "Statistical comparisons of classifiers over multiple data sets",
    JMLR 7.
benavoli2016 : Benavoli, Corani, Mangili, "Should we really use post-hoc tests based on
    mean-ranks?", JMLR 17.
dolan2002 : Dolan, More, "Benchmarking optimization software with performance profiles",
    Math. Program. 91.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc
from scipy.stats import rankdata

from precbench.core.errors import InputError
from precbench.ranking.statistics import LEVEL, mean_ranks

_EQUAL = 1e-12  # of the larger of two numbers: smaller differences are due to rounding


def friedman_test(values: ArrayLike) -> float:
    """Return the p-value that all methods have the same mean rank (demsar2006).

    In the form of Iman and Davenport, with the variance of the tied ranks. The result
    is 1 if all mean ranks are equal, else NaN for one data set.

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)
        Finite; larger is better.
    """
    ranks = np.array([mean_ranks([row]) for row in np.asarray(values)])
    n, k = ranks.shape
    centre = (k + 1) / 2  # the mean rank
    between = n * ((ranks.mean(axis=0) - centre) ** 2).sum()  # 0 for equal mean ranks
    if between <= _EQUAL * n:
        return 1.0
    variance = ((ranks - centre) ** 2).sum() / (n * (k - 1))
    statistic = between / variance  # Friedman's chi-square
    rest = n * (k - 1) - statistic  # 0 where all data sets rank the methods alike
    if n == 1:
        return np.nan
    ratio = (n - 1) * statistic / rest if rest > _EQUAL * statistic else np.inf
    return float(fdtrc(k - 1, (k - 1) * (n - 1), ratio))  # upper tail of F


def signed_rank_test(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value that two methods do not differ, by Wilcoxon's test.

    Differences of 0 are ranked and count half for each side. The p-value is exact, even
    with ties and zeros; 1 if all differences are 0.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
    """
    table = np.column_stack([first, second])
    scale = np.abs(table).max() or 1.0  # rounding is relative to the largest value
    differences = np.round((table[:, 0] - table[:, 1]) / scale, 12)  # ties stay ties
    ranks = rankdata(np.abs(differences))
    positive = float(ranks[differences > 0].sum())
    negative = float(ranks[differences < 0].sum())
    observed = abs(positive - negative)
    # Mean ranks of ties are halves: doubled, all sums are integers. A difference of 0
    # adds half its rank to both sides, and drops out of the difference of the sums.
    doubled_ranks = np.rint(2 * ranks[differences != 0]).astype(int)
    # probability[t]: share of all 2^n choices of signs for which the doubled ranks of
    # the positive differences sum to t. It is built rank by rank: half of the choices
    # add the rank to the sum.
    probability = np.ones(1)
    for rank in doubled_ranks:
        shift = np.zeros(rank)
        without = np.append(probability, shift)
        including = np.append(shift, probability)
        probability = (without + including) / 2
    # Twice the positive sum minus the negative one, for each doubled positive sum.
    differences_of_sums = 2 * np.arange(len(probability)) - doubled_ranks.sum()
    is_extreme = np.abs(differences_of_sums) >= round(2 * observed)
    return min(float(probability[is_extreme].sum()), 1.0)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted for the number of tests, by Holm's step-down method."""
    raw = np.asarray(p, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    # The smallest is multiplied by n, the next by n - 1, and so on.
    steps = raw[order] * np.arange(len(raw), 0, -1)
    adjusted = np.empty_like(raw)
    rising = np.maximum.accumulate(steps)  # never falls as p grows
    adjusted[order] = np.minimum(rising, 1)
    return adjusted


def pairwise_signed_rank(values: ArrayLike) -> NDArray[np.float64]:
    """Return Wilcoxon's p-value of each pair, adjusted by Holm (benavoli2016).

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)

    Returns
    -------
    ndarray of shape (n_methods, n_methods)
        Symmetric, with ones on the diagonal.
    """
    table = np.asarray(values, dtype=np.float64)
    n_methods = table.shape[1]
    rows, columns = np.triu_indices(n_methods, k=1)  # pairs above the diagonal
    p = []
    for i, j in zip(rows, columns, strict=True):
        p.append(signed_rank_test(table[:, i], table[:, j]))
    adjusted = np.ones((n_methods, n_methods))
    adjusted[rows, columns] = holm(p)
    adjusted[columns, rows] = adjusted[rows, columns]
    return adjusted


def cliques(ranks: ArrayLike, p: NDArray[np.float64]) -> list[tuple[int, ...]]:
    """Return the groups of methods of which no two are told apart by their p-value.

    Parameters
    ----------
    ranks : array-like of shape (n_methods,)
        Mean ranks.
    p : ndarray of shape (n_methods, n_methods)
        For example from `pairwise_signed_rank`.

    Returns
    -------
    list of tuple of int
        The groups of two or more to which no other method can be added, in the order of
        the ranks.
    """
    order = np.argsort(ranks, kind="stable")
    # From here on, methods are numbered by rank.
    alike = p[np.ix_(order, order)] > LEVEL
    np.fill_diagonal(alike, False)
    neighbours = [set(np.flatnonzero(row).tolist()) for row in alike]
    groups = _maximal_cliques(
        group=set(),
        candidates=set(range(len(order))),
        excluded=set(),
        neighbours=neighbours,
    )
    ordered = sorted(sorted(group) for group in groups if len(group) > 1)
    return [tuple(int(order[i]) for i in group) for group in ordered]


def _maximal_cliques(
    group: set[int],
    candidates: set[int],
    excluded: set[int],
    neighbours: list[set[int]],
) -> Iterator[set[int]]:
    """Yield the maximal cliques that contain `group` (Bron and Kerbosch 1973)."""
    # All `candidates` and `excluded` are linked to all of `group`. Cliques with an
    # excluded member were yielded before: a group that an excluded member could join is
    # not maximal. Neither is a group with no new members but neighbours of the pivot:
    # the pivot could join.
    if not candidates and not excluded:
        yield group
        return
    pivot = max(candidates | excluded, key=lambda i: len(neighbours[i] & candidates))
    for i in sorted(candidates - neighbours[pivot]):
        near = neighbours[i]
        yield from _maximal_cliques(
            group=group | {i},
            candidates=candidates & near,
            excluded=excluded & near,
            neighbours=neighbours,
        )
        candidates = candidates - {i}
        excluded = excluded | {i}


def performance_profile(
    values: ArrayLike, measure: Literal["value", "time"]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the fraction of data sets on which a method is within tau of the best.

    See dolan2002.

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)
        NaN where a method has no result; data sets without any result are left out.
    measure : {"value", "time"}
        Values (larger is better): at most tau below the best; times: at most tau times
        the least.

    Returns
    -------
    tau : ndarray of shape (n_steps,)
        The distances from the best that occur, ascending from 0 (of values) or 1 (of
        times).
    share : ndarray of shape (n_methods, n_steps)
    """
    given = np.asarray(values, dtype=np.float64)
    is_result = np.isfinite(given)
    if not is_result.any():
        raise InputError("no method has a value on any data set; give at least one")
    has_result = is_result.any(axis=1)  # of data sets
    table = np.where(is_result, given, np.nan)[has_result]
    if measure == "time":
        if (table <= 0).any():  # false for NaN
            least = np.nanmin(table)
            raise InputError(f"the least time is {least} seconds; give times above 0")
        behind = table / np.nanmin(table, axis=1, keepdims=True)
    else:
        # Rounded, so that equal distances are one step of the profile.
        behind = np.round(np.nanmax(table, axis=1, keepdims=True) - table, 12)
    tau = np.unique(behind[np.isfinite(behind)])
    is_within = behind[:, :, None] <= tau  # data sets, methods, steps; false for NaN
    return tau, is_within.mean(axis=0)

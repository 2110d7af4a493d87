"""Tests over data sets as published, by brute force, and against SciPy and others."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from precbench.core.errors import InputError
from precbench.ranking.statistics import mean_ranks
from scripts.survey.over_data_sets import (
    cliques,
    friedman_test,
    holm,
    pairwise_signed_rank,
    performance_profile,
    signed_rank_test,
)
from tests.sentences import raises

# Demsar 2006, Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets.
# On "voting" 0.975 was printed twice, with the ranks 2 and 3.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],  # adult (sample)
        [0.599, 0.591, 0.590, 0.569],  # breast cancer
        [0.954, 0.971, 0.968, 0.967],  # breast cancer wisconsin
        [0.628, 0.661, 0.654, 0.657],  # cmc
        [0.882, 0.888, 0.886, 0.898],  # ionosphere
        [0.936, 0.931, 0.916, 0.931],  # iris
        [0.661, 0.668, 0.609, 0.685],  # liver disorders
        [0.583, 0.583, 0.563, 0.625],  # lung cancer
        [0.775, 0.838, 0.866, 0.875],  # lymphography
        [1.000, 1.000, 1.000, 1.000],  # mushroom
        [0.940, 0.962, 0.965, 0.962],  # primary tumor
        [0.619, 0.666, 0.614, 0.669],  # rheum
        [0.972, 0.981, 0.9751, 0.975],  # voting
        [0.957, 0.978, 0.946, 0.970],  # wine
    ]
)

few = st.integers(0, 5).map(float)  # many ties
shapes = st.tuples(st.integers(2, 7), st.integers(2, 5))
tables = shapes.flatmap(lambda shape: arrays(float, shape, elements=few))


def test_the_example_of_demsar():
    printed = [3.143, 2.000, 2.893, 1.964]
    np.testing.assert_allclose(mean_ranks(DEMSAR), printed, atol=5e-4)
    assert friedman_test(DEMSAR) < 0.05
    plain, with_m, _with_cf, _with_both = DEMSAR.T
    assert signed_rank_test(with_m, plain) < 0.05  # his Table 2


@given(tables)
def test_friedman_is_the_analysis_of_variance_of_the_ranks(values):
    """In the form of Iman and Davenport."""
    p = friedman_test(values)
    n, k = values.shape
    ranks = scipy.stats.rankdata(-values, axis=1)
    mean_ranks_of_methods = ranks.mean(axis=0)
    between = n * mean_ranks_of_methods.var(ddof=1)
    rest = ((ranks - mean_ranks_of_methods) ** 2).sum() / ((n - 1) * (k - 1))
    if between == 0:
        assert p == 1
    elif rest > 1e-9:
        expected = scipy.stats.f.sf(between / rest, k - 1, (k - 1) * (n - 1))
        assert p == pytest.approx(expected, abs=1e-9)


@given(arrays(float, st.tuples(st.just(2), st.integers(1, 8)), elements=few))
def test_signed_ranks_by_brute_force(values):
    first, second = values
    differences = first - second
    is_unequal = differences != 0
    ranks = scipy.stats.rankdata(np.abs(differences))[is_unequal]
    observed = abs(np.dot(ranks, np.sign(differences[is_unequal])))
    sums = []
    for signs in itertools.product([-1, 1], repeat=len(ranks)):
        sums.append(abs(np.dot(ranks, signs)))
    expected = np.mean(np.array(sums) >= observed - 1e-9)
    assert signed_rank_test(first, second) == pytest.approx(expected)


@pytest.mark.extras("scikit_posthocs")
def test_signed_ranks_and_holm_are_those_of_scipy_and_posthocs():
    import scikit_posthocs  # imports pyplot and more

    values = np.random.default_rng(3).standard_normal((12, 5)) + np.linspace(0, 2, 5)
    first, second = values[:, 0], values[:, 1]
    expected = scipy.stats.wilcoxon(first, second, method="exact")
    assert signed_rank_test(first, second) == pytest.approx(expected.pvalue)
    p = pairwise_signed_rank(values)
    frame = scikit_posthocs.posthoc_wilcoxon(list(values.T), p_adjust="holm")
    np.testing.assert_allclose(p, frame.to_numpy())
    off_diagonal = p[~np.eye(5, dtype=bool)]
    assert (off_diagonal < 0.05).any()
    assert (off_diagonal > 0.05).any()


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 1.0]), [0.09, 0.04, 0.09, 1.0])


@given(st.integers(1, 6).flatmap(lambda n: arrays(bool, (n, n))), st.randoms())
def test_groups_are_all_that_are_alike_and_cannot_grow(drawn, random):
    n = len(drawn)
    differ = np.triu(drawn, 1) | np.triu(drawn, 1).T
    ranks = random.sample(range(n), n)
    groups = cliques(ranks, np.where(differ, 0.05, 0.06))
    alike = []
    for size in range(2, n + 1):
        for group in itertools.combinations(range(n), size):
            if not differ[np.ix_(group, group)].any():
                alike.append(set(group))
    largest = [group for group in alike if not any(group < other for other in alike)]
    assert sorted(map(sorted, groups)) == sorted(map(sorted, largest))
    for group in groups:
        assert [ranks[i] for i in group] == sorted(ranks[i] for i in group)
    assert groups == sorted(groups, key=lambda group: [ranks[i] for i in group])


def test_profile_of_values_by_hand():
    nan = np.nan
    values = [
        [0.9, 0.8, 0.9],
        [1.0, 0.7, nan],
        [0.5, 0.55, 0.3],
        [nan, nan, nan],  # left out
    ]
    tau, share = performance_profile(values, "value")
    np.testing.assert_allclose(tau, [0, 0.05, 0.1, 0.25, 0.3])
    of_three = [
        [2, 3, 3, 3, 3],
        [1, 1, 2, 2, 3],
        [1, 1, 1, 2, 2],
    ]
    np.testing.assert_allclose(3 * share, of_three)


def test_profile_of_times_by_hand():
    tau, share = performance_profile([[1, 2, 8], [np.nan, 3, 3]], "time")
    np.testing.assert_allclose(tau, [1, 2, 8])
    np.testing.assert_allclose(2 * share, [[1, 1, 1], [1, 2, 2], [1, 1, 2]])


def test_a_profile_without_a_value_is_refused():
    with raises(InputError, "method"):
        performance_profile([[np.nan, np.nan]], "value")


def test_a_profile_with_a_time_of_zero_is_refused():
    with raises(InputError, "0"):
        performance_profile([[0.0, 1.0]], "time")

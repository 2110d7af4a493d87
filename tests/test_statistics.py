"""Statistics: examples as published, by hand and by brute force, and against SciPy and others."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import roc_auc_score

from precbench.core.errors import InputError
from precbench.ranking.metrics import interval_at_k
from precbench.ranking.statistics import (
    auc_interval,
    bayesian_signed_rank,
    binomial_interval,
    cliques,
    expected_hits,
    expected_total,
    friedman_test,
    holm,
    levels,
    mean_ranks,
    pairwise_signed_rank,
    performance_profile,
    resampled_interval,
    resampled_test,
    share_interval,
    signed_rank_test,
)
from tests.sentences import raises

# Demsar 2006, Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets. On "voting"
# 0.975 was printed twice, with the ranks 2 and 3.
DEMSAR = np.array([
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
])  # fmt: skip

few = st.integers(0, 5).map(float)  # many ties
shapes = st.tuples(st.integers(2, 7), st.integers(2, 5))
tables = shapes.flatmap(lambda shape: arrays(float, shape, elements=few))


def test_the_formula_of_nadeau_and_bengio_by_hand():
    # s^2 = 0.001, (1/5 + 3/7) s^2 = 0.0251^2, and t has the quantile 2.776 with 4 degrees.
    values = [0.80, 0.84, 0.82, 0.86, 0.78]
    mean, low, high = resampled_interval(values, 0.3)
    assert (mean, low, high) == pytest.approx((0.82, 0.82 - 0.06961, 0.82 + 0.06961), abs=1e-5)
    # Two repetitions of 3 folds: (1/6 + 1/2) s^2, 5 degrees, quantile 2.5706; s^2 = 0.00035.
    mean, low, high = resampled_interval([0.70, 0.75, 0.72, 0.71, 0.74, 0.73], 1 / 3)
    assert (mean, high - mean) == pytest.approx((0.725, 2.570582 * np.sqrt(0.00035 * 2 / 3)))
    test = resampled_test(values, [0.79, 0.80, 0.83, 0.81, 0.75], 0.3)
    differences = [0.01, 0.04, -0.01, 0.05, 0.03]  # mean 0.024, s^2 = 0.00058
    assert test[:3] == pytest.approx(resampled_interval(differences, 0.3))
    t = 0.024 / np.sqrt((1 / 5 + 3 / 7) * 0.00058)
    assert test.p == pytest.approx(2 * scipy.stats.t.sf(t, 4))


def test_draws_that_share_nothing_have_the_ordinary_interval():
    a, b = np.random.default_rng(0).standard_normal((2, 12))
    expected = scipy.stats.ttest_rel(a, b)
    found = resampled_test(a, b, 0.0)
    assert found.p == pytest.approx(expected.pvalue)
    assert found[1:3] == pytest.approx(tuple(expected.confidence_interval()))


def test_one_split_has_no_interval_and_equal_values_are_a_tie():
    assert resampled_interval([0.8], 0.3) == pytest.approx((0.8, np.nan, np.nan), nan_ok=True)
    assert np.isnan(resampled_test([0.8], [0.7], 0.3).p)
    assert resampled_test([0.1, 0.7], [0.1, 0.7], 0.3) == (0, 0, 0, 1)
    always = np.array([0.1, 0.4, 0.3, 0.5, 0.2])
    assert resampled_test(always + 0.1, always, 0.3).p == 2**-4  # though 0.5 - 0.4 is not 0.1
    assert resampled_interval([1.0, 1.0], 0.3) == (1, 1, 1)
    assert resampled_interval([1e300, 3e300], 0.3)[1:] == (-np.inf, np.inf)  # without a warning
    assert np.isnan(resampled_test([1e308, 1e308], [-1e308, 1e308], 0.3).p)


def test_the_example_of_demsar():
    np.testing.assert_allclose(mean_ranks(DEMSAR), [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert friedman_test(DEMSAR) < 0.05
    assert signed_rank_test(DEMSAR[:, 1], DEMSAR[:, 0]) < 0.05  # his Table 2


@given(tables)
def test_friedman_is_the_analysis_of_variance_of_the_ranks(values):
    """In the form of Iman and Davenport."""
    found, (n, k) = friedman_test(values), values.shape
    ranks = scipy.stats.rankdata(-values, axis=1)
    rest = ((ranks - ranks.mean(axis=0)) ** 2).sum() / ((n - 1) * (k - 1))
    between = n * ranks.mean(axis=0).var(ddof=1)
    if between == 0:
        assert found == 1
    elif rest > 1e-9:
        expected = scipy.stats.f.sf(between / rest, k - 1, (k - 1) * (n - 1))
        assert found == pytest.approx(expected, abs=1e-9)


@given(arrays(float, st.tuples(st.just(2), st.integers(1, 8)), elements=few))
def test_signed_ranks_by_brute_force(values):
    first, second = values
    differences = first - second
    ranks = scipy.stats.rankdata(np.abs(differences))[differences != 0]
    signs = itertools.product([-1, 1], repeat=len(ranks))
    sums = [abs(np.dot(ranks, sign)) for sign in signs]
    observed = abs(np.dot(ranks, np.sign(differences[differences != 0])))
    expected = np.mean(np.array(sums) >= observed - 1e-9)
    assert signed_rank_test(first, second) == pytest.approx(expected)


@pytest.mark.extras("scikit_posthocs")
def test_signed_ranks_and_holm_are_those_of_scipy_and_posthocs():
    import scikit_posthocs  # imports pyplot and more

    values = np.random.default_rng(3).standard_normal((12, 5)) + np.linspace(0, 2, 5)
    expected = scipy.stats.wilcoxon(values[:, 0], values[:, 1], method="exact")
    assert signed_rank_test(values[:, 0], values[:, 1]) == pytest.approx(expected.pvalue)
    p = pairwise_signed_rank(values)
    frame = scikit_posthocs.posthoc_wilcoxon(list(values.T), p_adjust="holm")
    np.testing.assert_allclose(p, frame.to_numpy())
    assert (p < 0.05).any() and (p[~np.eye(5, dtype=bool)] > 0.05).any()
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 1.0]), [0.09, 0.04, 0.09, 1.0])


@given(st.integers(1, 6).flatmap(lambda n: arrays(bool, (n, n))), st.randoms())
def test_groups_are_all_that_are_alike_and_cannot_grow(told, random):
    n = len(told)
    told = np.triu(told, 1) | np.triu(told, 1).T
    ranks = random.sample(range(n), n)
    found = cliques(ranks, np.where(told, 0.05, 0.06))
    alike = [
        set(group)
        for size in range(2, n + 1)
        for group in itertools.combinations(range(n), size)
        if not told[np.ix_(group, group)].any()
    ]
    largest = [group for group in alike if not any(group < other for other in alike)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, largest))
    for group in found:
        assert [ranks[i] for i in group] == sorted(ranks[i] for i in group)
    assert found == sorted(found, key=lambda group: [ranks[i] for i in group])


@given(st.permutations([0.1, 0.2, 0.3, 0.7, 1e-3]), st.sampled_from([1.0, 1e-9, 1e30]))
def test_the_order_of_the_splits_decides_on_no_rank(values, scale):
    one = scale * np.mean([0.1, 0.2, 0.3, 0.7, 1e-3])
    other, more = scale * np.add.reduce(values) / 5, scale * np.mean(values) * (1 + 1e-9)
    ranks = list(levels([other, np.nan, more, one, 0.0]))
    assert ranks == pytest.approx([1, np.nan, 2, 1, 0], nan_ok=True)
    assert list(mean_ranks([[one, other, more]] * 2)) == [2.5, 2.5, 1]


def test_levels_of_values_without_a_scale():
    assert list(levels([np.inf, 1.0, np.inf, -np.inf, -np.inf])) == [2, 1, 2, 0, 0]
    assert list(levels([0.0, -0.0])) == [0, 0] and list(levels([])) == []


def test_profile_of_values_and_times_by_hand():
    nan = np.nan
    values = [[0.9, 0.8, 0.9], [1.0, 0.7, nan], [0.5, 0.55, 0.3], [nan, nan, nan]]
    tau, share = performance_profile(values, "value")
    np.testing.assert_allclose(tau, [0, 0.05, 0.1, 0.25, 0.3])
    np.testing.assert_allclose(3 * share, [[2, 3, 3, 3, 3], [1, 1, 2, 2, 3], [1, 1, 1, 2, 2]])
    tau, share = performance_profile([[1, 2, 8], [nan, 3, 3]], "time")
    np.testing.assert_allclose(tau, [1, 2, 8])
    np.testing.assert_allclose(2 * share, [[1, 1, 1], [1, 2, 2], [1, 1, 2]])


@pytest.mark.parametrize(
    ("precision", "tested", "k"), [(0.02, 10, 10), (0.3, 20, 200), (0.97, 100, 20)]
)
def test_predicted_hits_hold_those_of_new_lists(precision, tested, k):
    """Splits that share no rows, each list with hits of its own: by simulation."""
    rng = np.random.default_rng(0)
    n = 1500
    lists = rng.binomial(tested, precision, (n, 10)) / tested
    held = 0
    for values, hits in zip(lists, rng.binomial(k, precision, n), strict=True):
        mean, low, high = expected_hits(values, tested, 0.0, k)
        assert mean == pytest.approx(k * values.mean()) and 0 <= low < high <= k
        held += low <= hits <= high
    assert held / n >= 0.95


def test_predicted_hits_of_one_split_and_of_splits_that_differ():
    assert expected_hits([0.0], 1, 0.3, 5) == (0.0, 0.0, 5.0)
    assert expected_hits([0.4, 0.5], 20, 1e-300, 9) == expected_hits([0.4, 0.5], 20, 0.0, 9)
    lists = [0.5] * 5, [0.4, 0.6] * 5
    widths = [np.ptp(expected_hits(values, 100, 0.3, 100)[1:]) for values in lists]
    assert widths[1] > widths[0] > 2 * 1.96 * 5


@example(np.full(2, 2e-311), 0.0)
@given(arrays(np.float64, st.integers(2, 9), elements=st.floats(0, 1)), st.floats(0, 0.9))
def test_the_interval_of_a_share_is_one_of_shares(values, test_share):
    """Around the mean, and as long as the other one where that is far from both ends."""
    mean, low, high = share_interval(values, test_share)
    assert 0 <= low <= mean * (1 + 1e-12) <= (1 + 1e-9) * high <= 1 + 1e-9


def test_the_interval_of_a_share_by_hand():
    values = np.array([0.48, 0.5, 0.52])
    plain, within = resampled_interval(values, 0.3), share_interval(values, 0.3)
    assert within.mean == plain.mean
    np.testing.assert_allclose(within[1:], plain[1:], rtol=0.02)
    wide = share_interval([0.0, 0.2, 0.8], 0.3)
    half = resampled_interval([0.0, 0.2, 0.8], 0.3).high - 1 / 3
    log_odds = np.log(0.5) + np.array([-1, 1]) * half / (1 / 3 * 2 / 3)
    np.testing.assert_allclose(wide[1:], 1 / (1 + np.exp(-log_odds)), rtol=1e-12)
    assert share_interval([1.0, 1.0], 0.3) == (1, 1, 1)
    assert np.isnan(share_interval([0.3], 0.3)[1:]).all()


@pytest.mark.parametrize(("n_pos", "n_neg"), [(3, 50), (40, 40), (200, 30)])
def test_the_interval_of_an_auc_is_at_least_that_of_its_rows(n_pos, n_neg):
    """The error of hanley1982 is that of scores with exponential distributions, here drawn."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], [n_pos, n_neg])
    rate = 0.25  # of positives, so that they score above 1 / (1 + rate) = 80 % of the others
    scales = np.where(y > 0, 1 / rate, 1.0)
    aucs = [roc_auc_score(y, rng.exponential(scales)) for _ in range(4000)]
    mean, low, high = auc_interval([0.8, 0.8], 0.3, n_pos, n_neg)
    assert mean == 0.8
    log_odds = np.log([low / (1 - low), high / (1 - high)])
    error = np.diff(log_odds)[0] / (2 * 1.959964) * 0.8 * 0.2
    assert error == pytest.approx(np.std(aucs), rel=0.05)


def test_the_interval_of_an_auc_is_that_of_splits_where_these_differ():
    values = [0.6, 0.7, 0.9]
    assert auc_interval(values, 0.3, 400, 4000) == share_interval(values, 0.3)


@pytest.mark.parametrize("value", [0.0, 0.5, 0.937, 1.0])
@pytest.mark.parametrize("n_splits", [1, 2, 5])
def test_no_interval_of_an_auc_vanishes(value, n_splits):
    mean, low, high = auc_interval([value] * n_splits, 0.3, 21, 99)
    assert mean == value
    assert low <= value <= high and high - low > 0.01


def test_the_binomial_interval_is_that_of_clopper_and_pearson():
    for hits in (0, 1, 7, 20):
        exact = scipy.stats.binomtest(hits, 20).proportion_ci(method="exact")
        assert binomial_interval(hits / 20, 20) == pytest.approx([*exact], abs=1e-12)


@pytest.mark.parametrize(("call", "parts"), [
    *((lambda f=f, values=values, share=share: f(values, share), places)
     for f in (resampled_interval, lambda values, share: resampled_test(values, values, share))
     for values, share, places in (([], 0.3, ""), ([[0.5]], 0.3, ""), ([0.5, np.nan], 0.3, ""),
     ([0.5, 0.6], 1.0, "test_share"), ([0.5, 0.6], -0.1, "test_share"))),
    (lambda: resampled_test([0.5, 0.6], [0.5], 0.3), "2 1"),
    (lambda: mean_ranks([[0.5, np.nan], [0.5, 0.4]]), "1 0"),
    (lambda: friedman_test([[0.5], [0.6]]), "methods"),
    (lambda: signed_rank_test([0.5, 0.6], [0.5]), "pair"),
    (lambda: performance_profile([[np.nan, np.nan]], "value"), "method"),
    (lambda: performance_profile([[0.0, 1.0]], "time"), "0"),
    (lambda: expected_hits([], 10, 0.3, 5), ""), (lambda: holm(None), "p shape () test"),
    (lambda: levels(3.0), "values shape ()"),
    (lambda: bayesian_signed_rank([], [1.0], 0.01), "0 and 1 values"),
    (lambda: bayesian_signed_rank([], [], 0.01), "shape (0, 2)"),
    (lambda: expected_hits([0.5], 0, 0.3, 5), "tested = 0"),
    (lambda: expected_hits([0.5], 5, 0.3, 0), "k = 0"),
    (lambda: expected_hits([0.5], 5, 1.0, 5), "test_share 1.0"),
    (lambda: expected_total([0.5], 1.0, 0, 0.3, None), "tested = 0"),
    (lambda: cliques([1, 2], [[1]]), "(1, 1) 2"),
    *((lambda f=f, text=text: f(text), "not numbers")
     for f in (holm, mean_ranks, lambda v: signed_rank_test(v, v)) for text in (["a"], [{}], [1j])),
])  # fmt: skip
def test_arguments_without_a_meaning_get_a_sentence(call, parts):
    with raises(InputError, parts):
        call()


def test_an_interval_of_nearly_every_confidence_is_nearly_everything():
    ends = interval_at_k([1, 0, 1, 0], [4, 3, 2, 1], k=2, level=1e-300)
    assert ends == pytest.approx((0, 1), abs=0.01)

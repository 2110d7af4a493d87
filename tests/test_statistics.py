"""Statistics.

Examples as published, by hand and by brute force, and against SciPy and others.
"""

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, logit

from precbench.core.errors import InputError
from precbench.ranking.metrics import interval_at_k
from precbench.ranking.statistics import (
    Interval,
    PairedTest,
    auc_interval,
    bayesian_signed_rank,
    binomial_interval,
    expected_hits,
    expected_total,
    levels,
    mean_ranks,
    resampled_interval,
    resampled_test,
    share_interval,
)
from tests.sentences import raises


def test_the_formula_of_nadeau_and_bengio_by_hand():
    """With s^2 = 0.001, (1/5 + 3/7) s^2 = 0.0251^2, and 4 degrees of freedom."""
    interval = resampled_interval([0.80, 0.84, 0.82, 0.86, 0.78], 0.3)
    half_width = 0.06961  # 2.776, the quantile of t, times 0.0251
    assert interval.mean == pytest.approx(0.82, abs=1e-5)
    assert interval.low == pytest.approx(0.82 - half_width, abs=1e-5)
    assert interval.high == pytest.approx(0.82 + half_width, abs=1e-5)


def test_the_interval_of_two_repetitions_of_three_folds_by_hand():
    """With s^2 = 0.00035, (1/6 + 1/2) s^2, and 5 degrees of freedom."""
    interval = resampled_interval([0.70, 0.75, 0.72, 0.71, 0.74, 0.73], 1 / 3)
    quantile = 2.570582
    half_width = quantile * np.sqrt(0.00035 * 2 / 3)
    assert interval.mean == pytest.approx(0.725)
    assert interval.high - interval.mean == pytest.approx(half_width)


def test_a_paired_test_by_hand():
    values = [0.80, 0.84, 0.82, 0.86, 0.78]
    test = resampled_test(values, [0.79, 0.80, 0.83, 0.81, 0.75], 0.3)
    differences = [0.01, 0.04, -0.01, 0.05, 0.03]  # mean 0.024, s^2 = 0.00058
    interval = resampled_interval(differences, 0.3)
    t = 0.024 / np.sqrt((1 / 5 + 3 / 7) * 0.00058)
    assert test.mean == pytest.approx(interval.mean)
    assert test.low == pytest.approx(interval.low)
    assert test.high == pytest.approx(interval.high)
    assert test.p == pytest.approx(2 * scipy.stats.t.sf(t, 4))


def test_draws_that_share_nothing_have_the_ordinary_interval():
    values, other_values = np.random.default_rng(0).standard_normal((2, 12))
    ordinary = scipy.stats.ttest_rel(values, other_values)
    ordinary_interval = ordinary.confidence_interval()
    test = resampled_test(values, other_values, 0.0)
    assert test.p == pytest.approx(ordinary.pvalue)
    assert test.low == pytest.approx(ordinary_interval.low)
    assert test.high == pytest.approx(ordinary_interval.high)


def test_one_split_has_no_interval_and_no_p():
    interval = resampled_interval([0.8], 0.3)
    assert interval.mean == pytest.approx(0.8)
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)
    assert np.isnan(resampled_test([0.8], [0.7], 0.3).p)


def test_equal_values_are_a_tie():
    tie = PairedTest(mean=0, low=0, high=0, p=1)
    assert resampled_test([0.1, 0.7], [0.1, 0.7], 0.3) == tie
    assert resampled_interval([1.0, 1.0], 0.3) == Interval(mean=1, low=1, high=1)


def test_a_method_that_is_always_better_by_as_much_has_the_p_of_its_signs():
    values = np.array([0.1, 0.4, 0.3, 0.5, 0.2])
    better = values + 0.1  # of which 0.5 - 0.4 is not 0.1
    assert resampled_test(better, values, 0.3).p == 2**-4


def test_an_interval_may_overflow_without_a_warning():
    interval = resampled_interval([1e300, 3e300], 0.3)
    assert interval.low == -np.inf
    assert interval.high == np.inf
    assert np.isnan(resampled_test([1e308, 1e308], [-1e308, 1e308], 0.3).p)


@given(st.permutations([0.1, 0.2, 0.3, 0.7, 1e-3]), st.sampled_from([1.0, 1e-9, 1e30]))
def test_the_order_of_the_splits_decides_on_no_rank(values, scale):
    mean = scale * np.mean([0.1, 0.2, 0.3, 0.7, 1e-3])
    mean_in_other_order = scale * np.add.reduce(values) / 5
    more = scale * np.mean(values) * (1 + 1e-9)
    ranks = list(levels([mean_in_other_order, np.nan, more, mean, 0.0]))
    assert ranks == pytest.approx([1, np.nan, 2, 1, 0], nan_ok=True)
    on_two_sets = [[mean, mean_in_other_order, more]] * 2
    assert list(mean_ranks(on_two_sets)) == [2.5, 2.5, 1]


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        pytest.param(
            [np.inf, 1.0, np.inf, -np.inf, -np.inf], [2, 1, 2, 0, 0], id="infinite"
        ),
        pytest.param([0.0, -0.0], [0, 0], id="zeros of both signs"),
        pytest.param([], [], id="no values"),
    ],
)
def test_levels_of_values_without_a_scale(values, ranks):
    assert list(levels(values)) == ranks


@pytest.mark.parametrize(
    ("precision", "tested", "k"), [(0.02, 10, 10), (0.3, 20, 200), (0.97, 100, 20)]
)
def test_predicted_hits_hold_those_of_new_lists(precision, tested, k):
    """Splits that share no rows, each list with hits of its own: by simulation."""
    rng = np.random.default_rng(0)
    n = 1500
    lists = rng.binomial(tested, precision, (n, 10)) / tested
    n_within = 0
    for values, hits in zip(lists, rng.binomial(k, precision, n), strict=True):
        mean, low, high = expected_hits(values, tested, 0.0, k)
        assert mean == pytest.approx(k * values.mean())
        assert 0 <= low < high <= k
        n_within += low <= hits <= high
    assert n_within / n >= 0.95


def test_hits_predicted_by_one_split_without_hits():
    predicted = expected_hits([0.0], tested=1, test_share=0.3, k=5)
    assert predicted == Interval(mean=0.0, low=0.0, high=5.0)


def test_hits_predicted_by_splits_that_share_nearly_nothing():
    nearly_nothing = expected_hits([0.4, 0.5], tested=20, test_share=1e-300, k=9)
    nothing = expected_hits([0.4, 0.5], tested=20, test_share=0.0, k=9)
    assert nearly_nothing == nothing


def test_hits_predicted_by_splits_that_differ_are_less_certain():
    def width(values):
        predicted = expected_hits(values, tested=100, test_share=0.3, k=100)
        return predicted.high - predicted.low

    binomial_width = 2 * 1.96 * 5
    assert width([0.4, 0.6] * 5) > width([0.5] * 5) > binomial_width


@example(np.full(2, 2e-311), 0.0)
@given(
    arrays(np.float64, st.integers(2, 9), elements=st.floats(0, 1)), st.floats(0, 0.9)
)
def test_the_interval_of_a_share_is_one_of_shares(values, test_share):
    """Around the mean, and as long as the other one far from both ends."""
    mean, low, high = share_interval(values, test_share)
    assert 0 <= low <= mean * (1 + 1e-12) <= (1 + 1e-9) * high <= 1 + 1e-9


def test_the_interval_of_a_share_far_from_both_ends_is_the_plain_one():
    values = np.array([0.48, 0.5, 0.52])
    plain = resampled_interval(values, 0.3)
    of_share = share_interval(values, 0.3)
    assert of_share.mean == plain.mean
    np.testing.assert_allclose(of_share.low, plain.low, rtol=0.02)
    np.testing.assert_allclose(of_share.high, plain.high, rtol=0.02)


def test_the_interval_of_a_share_by_hand():
    """The mean 1/3 has the odds 1/2; log odds have the slope 1 / (p (1 - p))."""
    values = [0.0, 0.2, 0.8]
    half_width = resampled_interval(values, 0.3).high - 1 / 3
    half_width_of_log_odds = half_width / (1 / 3 * 2 / 3)
    low, high = expit(np.log(0.5) + np.array([-1, 1]) * half_width_of_log_odds)
    of_share = share_interval(values, 0.3)
    np.testing.assert_allclose(of_share.low, low, rtol=1e-12)
    np.testing.assert_allclose(of_share.high, high, rtol=1e-12)


def test_a_share_that_is_1_on_all_splits_has_an_interval_without_a_width():
    assert share_interval([1.0, 1.0], 0.3) == Interval(mean=1, low=1, high=1)


def test_a_share_of_one_split_has_no_interval():
    of_share = share_interval([0.3], 0.3)
    assert np.isnan(of_share.low)
    assert np.isnan(of_share.high)


@pytest.mark.parametrize(("n_pos", "n_neg"), [(3, 50), (40, 40), (200, 30)])
def test_the_interval_of_an_auc_is_at_least_that_of_its_rows(n_pos, n_neg):
    """The error of hanley1982 is that of scores with exponential distributions, here
    drawn.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], [n_pos, n_neg])
    # Positives score above 1 / (1 + rate) = 80 % of the others.
    rate = 0.25
    scales = np.where(y > 0, 1 / rate, 1.0)
    ranks = scipy.stats.rankdata(rng.exponential(scales, (4000, len(y))), axis=1)
    # the pairs in which the positive scores higher
    pairs = ranks[:, y > 0].sum(axis=1) - n_pos * (n_pos + 1) / 2
    aucs = pairs / (n_pos * n_neg)
    interval = auc_interval([0.8, 0.8], 0.3, n_pos, n_neg)
    assert interval.mean == 0.8
    error_of_log_odds = (logit(interval.high) - logit(interval.low)) / (2 * 1.959964)
    error = error_of_log_odds * 0.8 * 0.2
    assert error == pytest.approx(np.std(aucs), rel=0.05)


def test_the_interval_of_an_auc_is_that_of_splits_where_these_differ():
    values = [0.6, 0.7, 0.9]
    assert auc_interval(values, 0.3, 400, 4000) == share_interval(values, 0.3)


@pytest.mark.parametrize("value", [0.0, 0.5, 0.937, 1.0])
@pytest.mark.parametrize("n_splits", [1, 2, 5])
def test_no_interval_of_an_auc_vanishes(value, n_splits):
    mean, low, high = auc_interval([value] * n_splits, 0.3, 21, 99)
    assert mean == value
    assert low <= value <= high
    assert high - low > 0.01


@pytest.mark.parametrize("hits", [0, 1, 7, 20])
def test_the_binomial_interval_is_that_of_clopper_and_pearson(hits):
    exact = scipy.stats.binomtest(hits, 20).proportion_ci(method="exact")
    assert binomial_interval(hits / 20, 20) == pytest.approx([*exact], abs=1e-12)


@pytest.mark.parametrize(
    ("values", "test_share", "places"),
    [
        pytest.param([], 0.3, "", id="no values"),
        pytest.param([[0.5]], 0.3, "", id="a matrix"),
        pytest.param([0.5, np.nan], 0.3, "", id="NaN"),
        pytest.param([0.5, 0.6], 1.0, "test_share", id="a split holds out all rows"),
        pytest.param([0.5, 0.6], -0.1, "test_share", id="a negative share"),
    ],
)
def test_values_and_shares_without_a_meaning_get_a_sentence(values, test_share, places):
    with raises(InputError, places):
        resampled_interval(values, test_share)
    with raises(InputError, places):
        resampled_test(values, values, test_share)


@pytest.mark.parametrize("rank", [levels, mean_ranks])
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["a"], id="text"),
        pytest.param([{}], id="dict"),
        pytest.param([1j], id="complex"),
    ],
)
def test_what_is_no_number_has_no_rank(rank, values):
    with raises(InputError, "not numbers"):
        rank(values)


@pytest.mark.parametrize(
    ("function", "arguments", "places"),
    [
        pytest.param(
            resampled_test, ([0.5, 0.6], [0.5], 0.3), "2 1", id="values without a pair"
        ),
        pytest.param(
            mean_ranks, ([[0.5, np.nan], [0.5, 0.4]],), "1 0", id="NaN has no rank"
        ),
        pytest.param(mean_ranks, ([[0.5], [0.6]],), "methods", id="one method"),
        pytest.param(levels, (3.0,), "values shape ()", id="a number, not values"),
        pytest.param(
            bayesian_signed_rank, ([0.5, 0.6], [0.5], 0.01), "pair", id="no pairs"
        ),
        pytest.param(
            bayesian_signed_rank, ([], [1.0], 0.01), "0 and 1 values", id="one value"
        ),
        pytest.param(
            bayesian_signed_rank, ([], [], 0.01), "shape (0, 2)", id="no data sets"
        ),
        pytest.param(expected_hits, ([], 10, 0.3, 5), "", id="no splits"),
        pytest.param(
            expected_hits, ([0.5], 0, 0.3, 5), "tested = 0", id="no tested rows"
        ),
        pytest.param(expected_hits, ([0.5], 5, 0.3, 0), "k = 0", id="an empty top"),
        pytest.param(
            expected_hits, ([0.5], 5, 1.0, 5), "test_share 1.0", id="no training rows"
        ),
        pytest.param(
            expected_total,
            ([0.5], 1.0, 0, 0.3, None),
            "tested = 0",
            id="no rows with amounts",
        ),
    ],
)
def test_arguments_without_a_meaning_get_a_sentence(function, arguments, places):
    with raises(InputError, places):
        function(*arguments)


def test_an_interval_of_nearly_every_confidence_is_nearly_everything():
    ends = interval_at_k([1, 0, 1, 0], [4, 3, 2, 1], k=2, level=1e-300)
    assert ends == pytest.approx((0, 1), abs=0.01)

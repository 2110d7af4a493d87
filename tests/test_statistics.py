"""Statistics.

Examples as published, by hand and by brute force, and against SciPy and others.
"""

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
    # s^2 = 0.001, (1/5 + 3/7) s^2 = 0.0251^2, and t has the quantile 2.776 with 4
    # degrees.
    values = [0.80, 0.84, 0.82, 0.86, 0.78]
    mean, low, high = resampled_interval(values, 0.3)
    assert (mean, low, high) == pytest.approx(
        (0.82, 0.82 - 0.06961, 0.82 + 0.06961), abs=1e-5
    )
    # Two repetitions of 3 folds: (1/6 + 1/2) s^2, 5 degrees, quantile 2.5706; s^2 =
    # 0.00035.
    mean, low, high = resampled_interval([0.70, 0.75, 0.72, 0.71, 0.74, 0.73], 1 / 3)
    assert (mean, high - mean) == pytest.approx(
        (0.725, 2.570582 * np.sqrt(0.00035 * 2 / 3))
    )
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
    assert resampled_interval([0.8], 0.3) == pytest.approx(
        (0.8, np.nan, np.nan), nan_ok=True
    )
    assert np.isnan(resampled_test([0.8], [0.7], 0.3).p)
    assert resampled_test([0.1, 0.7], [0.1, 0.7], 0.3) == (0, 0, 0, 1)
    always = np.array([0.1, 0.4, 0.3, 0.5, 0.2])
    # though 0.5 - 0.4 is not 0.1
    assert resampled_test(always + 0.1, always, 0.3).p == 2**-4
    assert resampled_interval([1.0, 1.0], 0.3) == (1, 1, 1)
    # without a warning
    assert resampled_interval([1e300, 3e300], 0.3)[1:] == (-np.inf, np.inf)
    assert np.isnan(resampled_test([1e308, 1e308], [-1e308, 1e308], 0.3).p)


@given(st.permutations([0.1, 0.2, 0.3, 0.7, 1e-3]), st.sampled_from([1.0, 1e-9, 1e30]))
def test_the_order_of_the_splits_decides_on_no_rank(values, scale):
    one = scale * np.mean([0.1, 0.2, 0.3, 0.7, 1e-3])
    other, more = (
        scale * np.add.reduce(values) / 5,
        scale * np.mean(values) * (1 + 1e-9),
    )
    ranks = list(levels([other, np.nan, more, one, 0.0]))
    assert ranks == pytest.approx([1, np.nan, 2, 1, 0], nan_ok=True)
    assert list(mean_ranks([[one, other, more]] * 2)) == [2.5, 2.5, 1]


def test_levels_of_values_without_a_scale():
    assert list(levels([np.inf, 1.0, np.inf, -np.inf, -np.inf])) == [2, 1, 2, 0, 0]
    assert list(levels([0.0, -0.0])) == [0, 0] and list(levels([])) == []


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
    assert expected_hits([0.4, 0.5], 20, 1e-300, 9) == expected_hits(
        [0.4, 0.5], 20, 0.0, 9
    )
    lists = [0.5] * 5, [0.4, 0.6] * 5
    widths = [np.ptp(expected_hits(values, 100, 0.3, 100)[1:]) for values in lists]
    assert widths[1] > widths[0] > 2 * 1.96 * 5


@example(np.full(2, 2e-311), 0.0)
@given(
    arrays(np.float64, st.integers(2, 9), elements=st.floats(0, 1)), st.floats(0, 0.9)
)
def test_the_interval_of_a_share_is_one_of_shares(values, test_share):
    """Around the mean, and as long as the other one far from both ends."""
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
    """The error of hanley1982 is that of scores with exponential distributions, here
    drawn.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], [n_pos, n_neg])
    # of positives, so that they score above 1 / (1 + rate) = 80 % of the others
    rate = 0.25
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


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        *(
            (lambda f=f, values=values, share=share: f(values, share), places)
            for f in (
                resampled_interval,
                lambda values, share: resampled_test(values, values, share),
            )
            for values, share, places in (
                ([], 0.3, ""),
                ([[0.5]], 0.3, ""),
                ([0.5, np.nan], 0.3, ""),
                ([0.5, 0.6], 1.0, "test_share"),
                ([0.5, 0.6], -0.1, "test_share"),
            )
        ),
        (lambda: resampled_test([0.5, 0.6], [0.5], 0.3), "2 1"),
        (lambda: mean_ranks([[0.5, np.nan], [0.5, 0.4]]), "1 0"),
        (lambda: mean_ranks([[0.5], [0.6]]), "methods"),
        (lambda: bayesian_signed_rank([0.5, 0.6], [0.5], 0.01), "pair"),
        (lambda: expected_hits([], 10, 0.3, 5), ""),
        (lambda: levels(3.0), "values shape ()"),
        (lambda: bayesian_signed_rank([], [1.0], 0.01), "0 and 1 values"),
        (lambda: bayesian_signed_rank([], [], 0.01), "shape (0, 2)"),
        (lambda: expected_hits([0.5], 0, 0.3, 5), "tested = 0"),
        (lambda: expected_hits([0.5], 5, 0.3, 0), "k = 0"),
        (lambda: expected_hits([0.5], 5, 1.0, 5), "test_share 1.0"),
        (lambda: expected_total([0.5], 1.0, 0, 0.3, None), "tested = 0"),
        *(
            (lambda f=f, text=text: f(text), "not numbers")
            for f in (levels, mean_ranks)
            for text in (["a"], [{}], [1j])
        ),
    ],
)
def test_arguments_without_a_meaning_get_a_sentence(call, parts):
    with raises(InputError, parts):
        call()


def test_an_interval_of_nearly_every_confidence_is_nearly_everything():
    ends = interval_at_k([1, 0, 1, 0], [4, 3, 2, 1], k=2, level=1e-300)
    assert ends == pytest.approx((0, 1), abs=0.01)

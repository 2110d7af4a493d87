"""The statistics behind the verdicts, from their definitions."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from precbench.claims.verdicts import (
    agrees,
    has_spread,
    mean_test,
    parse_printed,
    place,
    sign_test,
)
from precbench.errors import InputError
from tests.claims.helpers import normal
from tests.sentences import raises


@pytest.mark.parametrize(("text", "power", "value", "unit"), [
    ("33", 0, 33, 1), ("17,160.17", 0, 17160.17, 0.01), ("2.73*10^3", 0, 2730, 10),
    ("2.056 * 10^4", 0, 20560, 10), ("6.5515", 10, 6.5515e10, 1e6), ("90%", -2, 0.90, 0.01),
    ("9.57 %", 0, 9.57, 0.01), ("-0.50", 0, -0.5, 0.01), ("56.50*10^7", 2, 5.65e10, 1e7),
    ("16.5K", 0, 16500, 100),
])  # fmt: skip
def test_printed_numbers(text, power, value, unit):
    assert parse_printed(text, power) == pytest.approx((value, unit), rel=1e-15)


@pytest.mark.parametrize(
    "text",
    ["", "f_1", "0.83.70", "10^", "1.5e3", ".5", "1 2", "0,55", "1234,5", "1,2345", "٣.٥"],
)
def test_invalid_printed_numbers(text):
    with raises(InputError, f"'{text}'"):
        parse_printed(text)


@given(st.integers(1, 10**9), st.integers(0, 6), st.integers(-3, 12), st.floats(-3, 3))
def test_a_number_agrees_within_half_a_unit(digits, decimals, power, units):
    """In exact arithmetic, away from the edge, where rounding may decide."""
    assume(abs(abs(units) - 0.5) > 1e-3)
    whole, rest = divmod(digits, 10**decimals)
    text = f"{whole:,}" + (f".{rest:0{decimals}}" if decimals else "")
    exact = Fraction(digits) * Fraction(10) ** (power - decimals)
    printed = parse_printed(text, power)
    assert printed.value == float(exact)
    unit = Fraction(10) ** (power - decimals)
    measured = float(exact + Fraction(units) * unit)
    assert agrees(printed, measured) == (abs(units) < 0.5)
    assume(abs(units) > 1e-3 and abs(units - 1) > 1e-3)
    assert agrees(printed, measured, truncated=True) == (0 <= units < 1)


def test_edges_of_agreement():
    tie = parse_printed("0.1")
    assert agrees(tie, 0.15) and agrees(tie, 0.05) and not agrees(tie, 0.150001)
    assert agrees(parse_printed("1.56*10^5"), 156_638, truncated=True)
    assert not agrees(parse_printed("1.56*10^5"), 156_638)
    assert not agrees(parse_printed("1.56*10^5"), 155_999, truncated=True)
    assert not agrees(tie, math.nan) and not agrees(tie, math.inf)


def mahalanobis(row, others):
    away = row - others.mean(axis=0)
    return float(away @ np.linalg.inv(np.atleast_2d(np.cov(others.T))) @ away)


def literal(rows):
    """Return p, p of all rows, and the limit of the distance of each row."""
    scores = [
        ([mahalanobis(row, np.delete(samples, i, axis=0)) for i, row in enumerate(samples)], here)
        for printed, samples in rows
        for here in [mahalanobis(printed, samples)]
    ]

    def scaled(value, each):
        middle, high = np.quantile(np.log(each), [0.5, 0.95])
        return (math.log(value) - middle) / (high - middle)

    farthest = np.max([[scaled(value, each) for value in each] for each, _ in scores], axis=0)
    n = len(farthest)
    # What is above it has, with itself, at most 5 % of all n + 1 as far out.
    threshold = min(f for f in farthest if 1 + sum(g > f for g in farthest) <= 0.05 * (n + 1))
    for each, here in scores:
        middle, high = np.quantile(np.log(each), [0.5, 0.95])
        yield (
            (1 + sum(e >= here for e in each)) / (n + 1),
            (1 + sum(f >= scaled(here, each) for f in farthest)) / (n + 1),
            math.exp(middle + threshold * (high - middle)),
        )


@pytest.mark.parametrize("seed", range(3))
def test_placement_follows_its_definition(seed):
    rng = np.random.default_rng(seed)
    samples = rng.standard_t(3, (37 + seed, 4)) * [1, 10, 0.1, 5] + [0, 100, 0, -3]
    samples[:, 1] += 20 * samples[:, 0]
    printed = np.array([0, 100, 0, -3]) + rng.standard_normal(4)
    printed[1] = samples[5, 1]
    rows = [(printed[part], samples[:, part]) for part in (slice(0, 3), slice(3, 4))]
    placed = place(rows)
    for (values, ours), found, (p, p_of_all, limit) in zip(
        rows, placed, literal(rows), strict=True
    ):
        assert (found.p, found.p_of_all) == pytest.approx((p, p_of_all))
        for error, unit in zip(found.smallest_error, np.eye(len(values)), strict=True):
            away = ours.mean(axis=0) + error * unit
            assert mahalanobis(away, ours) == pytest.approx(limit)


def test_the_power_is_what_it_says():
    """An error just below the smallest that is detected is not, one just above it is."""
    rng = np.random.default_rng(3)
    table = [rng.standard_t(2.5, (150, 5)).cumsum(axis=1) for _ in range(3)]
    centres = [(row.mean(axis=0), row) for row in table]
    placed = place(centres)
    assert all(row.p_of_all > 0.05 for row in placed)
    for i, j, sign in product(range(3), range(5), (-1, 1)):
        for factor, is_found in ((0.999, False), (1.001, True)):
            error = sign * factor * placed[i].smallest_error[j] * np.eye(5)[j]
            planted = [*centres[:i], (centres[i][0] + error, table[i]), *centres[i + 1 :]]
            assert [row.p_of_all <= 0.05 for row in place(planted)] == [
                is_found and row == i for row in range(3)
            ]


def test_columns_that_are_always_alike():
    samples = normal(150)[:, None] * [1, 1, 2]
    [same] = place([(np.array([0.8, 0.8, 1.6]), samples)])
    [other] = place([(np.array([0.8, 0.8001, 1.6]), samples)])
    assert same.p_of_all > 0.05 and other.p_of_all <= 0.05
    assert (same.smallest_error == 0).all()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_spread_is_positive_whichever_repetition_is_left_out(sample):
    sample = np.array(sample, float)
    if has_spread(sample):
        for i in range(len(sample)):
            low, high = np.quantile(np.delete(sample, i), [0.25, 0.75])
            assert high > low
    if len(sample) >= 8 and len(set(sample)) == len(sample):
        assert has_spread(sample)
    assert not has_spread(np.full(len(sample), 0.5))


def share_of_coins(wins, n):
    """Count all outcomes of n coins with at least so many wins."""
    return sum(sum(coins) >= wins for coins in product((0, 1), repeat=n)) / 2**n


@pytest.mark.parametrize(("wins", "losses", "ties"), [(3, 0, 0), (5, 4, 2), (0, 6, 1), (9, 1, 5)])
def test_sign_test_counts_coins(wins, losses, ties):
    better = np.array([1.0] * wins + [0.0] * losses + [0.5] * ties)
    found = sign_test(better, np.full(better.size, 0.5))
    assert found == (wins, losses, pytest.approx(share_of_coins(wins, wins + losses)))


@given(st.lists(st.integers(-2, 2), max_size=60))
def test_sign_test_is_one_sided(differences):
    better = np.array(differences, float)
    wins, losses, p = sign_test(better, np.zeros(better.size))
    assert (wins, losses) == (sum(better > 0), sum(better < 0))
    n = wins + losses
    assert p == pytest.approx(binomtest(wins, n, alternative="greater").pvalue if n else 1)


def test_t_tests_are_one_sided():
    rng = np.random.default_rng(0)
    for shift in (-0.3, 0.0, 0.3):
        sample = rng.standard_normal(20) + shift
        assert mean_test(sample) == pytest.approx(
            ttest_1samp(sample, 0, alternative="greater").pvalue
        )
    assert [mean_test([v] * 5) for v in (-1, 0, 1)] == [1, 1, 0]

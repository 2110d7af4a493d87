"""The statistics behind the verdicts, from their definitions, and those on printed
means.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from precbench.claims.verdicts import (
    MIN_REPETITIONS,
    MIN_SPLITS,
    Verdict,
    agrees,
    has_spread,
    mean_test,
    parse_printed,
    place,
    sign_test,
)
from precbench.core.errors import InputError
from tests.claims.helpers import auc_of, expect, judged, mean, normal, write_results
from tests.sentences import raises, tells


@pytest.mark.parametrize(
    ("text", "power", "value", "unit"),
    [
        pytest.param("33", 0, 33, 1, id="integer"),
        pytest.param("17,160.17", 0, 17160.17, 0.01, id="comma for thousands"),
        pytest.param("2.73*10^3", 0, 2730, 10, id="power in the text"),
        pytest.param("2.056 * 10^4", 0, 20560, 10, id="power in the text with blanks"),
        pytest.param("6.5515", 10, 6.5515e10, 1e6, id="power of the table"),
        pytest.param("90%", -2, 0.90, 0.01, id="percent as a share"),
        pytest.param("9.57 %", 0, 9.57, 0.01, id="percent"),
        pytest.param("-0.50", 0, -0.5, 0.01, id="negative"),
        pytest.param("56.50*10^7", 2, 5.65e10, 1e7, id="both powers"),
        pytest.param("16.5K", 0, 16500, 100, id="thousands by K"),
    ],
)
def test_printed_numbers(text, power, value, unit):
    assert parse_printed(text, power) == pytest.approx((value, unit), rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f_1",
        "0.83.70",
        "10^",
        "1.5e3",
        ".5",
        "1 2",
        "0,55",
        "1234,5",
        "1,2345",
        "٣.٥",
    ],
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
    assert agrees(tie, 0.15)
    assert agrees(tie, 0.05)
    assert not agrees(tie, 0.150001)
    assert agrees(parse_printed("1.56*10^5"), 156_638, truncated=True)
    assert not agrees(parse_printed("1.56*10^5"), 156_638)
    assert not agrees(parse_printed("1.56*10^5"), 155_999, truncated=True)
    assert not agrees(tie, math.nan)
    assert not agrees(tie, math.inf)


def mahalanobis(row, others):
    away = row - others.mean(axis=0)
    return float(away @ np.linalg.inv(np.atleast_2d(np.cov(others.T))) @ away)


def literal(rows):
    """Return p, p of all rows, and the limit of the distance of each row."""
    scores = [
        (
            [
                mahalanobis(row, np.delete(samples, i, axis=0))
                for i, row in enumerate(samples)
            ],
            here,
        )
        for printed, samples in rows
        for here in [mahalanobis(printed, samples)]
    ]

    def scaled(value, each):
        middle, high = np.quantile(np.log(each), [0.5, 0.95])
        return (math.log(value) - middle) / (high - middle)

    farthest = np.max(
        [[scaled(value, each) for value in each] for each, _ in scores], axis=0
    )
    n = len(farthest)
    # What is above it has, with itself, at most 5 % of all n + 1 as far out.
    threshold = min(
        f for f in farthest if 1 + sum(g > f for g in farthest) <= 0.05 * (n + 1)
    )
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
    for (values, ours), placement, (p, p_of_all, limit) in zip(
        rows, placed, literal(rows), strict=True
    ):
        assert (placement.p, placement.p_of_all) == pytest.approx((p, p_of_all))
        for error, unit in zip(
            placement.smallest_error, np.eye(len(values)), strict=True
        ):
            assert mahalanobis(ours.mean(axis=0) + error * unit, ours) == pytest.approx(
                limit
            )


def test_the_power_is_what_it_says():
    """An error just below the smallest detectable is missed, one above it is not."""
    rng = np.random.default_rng(3)
    table = [rng.standard_t(2.5, (150, 5)).cumsum(axis=1) for _ in range(3)]
    centres = [(row.mean(axis=0), row) for row in table]
    placed = place(centres)
    assert all(row.p_of_all > 0.05 for row in placed)
    for i, j, sign in product(range(3), range(5), (-1, 1)):
        for factor, is_found in ((0.999, False), (1.001, True)):
            error = sign * factor * placed[i].smallest_error[j] * np.eye(5)[j]
            planted = [
                *centres[:i],
                (centres[i][0] + error, table[i]),
                *centres[i + 1 :],
            ]
            are_far = [row.p_of_all <= 0.05 for row in place(planted)]
            assert are_far == [is_found and row == i for row in range(3)]


def test_columns_that_are_always_alike():
    samples = normal(150)[:, None] * [1, 1, 2]
    [same] = place([(np.array([0.8, 0.8, 1.6]), samples)])
    [other] = place([(np.array([0.8, 0.8001, 1.6]), samples)])
    assert same.p_of_all > 0.05
    assert other.p_of_all <= 0.05
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


@pytest.mark.parametrize(
    ("wins", "losses", "ties"), [(3, 0, 0), (5, 4, 2), (0, 6, 1), (9, 1, 5)]
)
def test_sign_test_counts_coins(wins, losses, ties):
    better = np.array([1.0] * wins + [0.0] * losses + [0.5] * ties)
    test = sign_test(better, np.full(better.size, 0.5))
    assert test == (wins, losses, pytest.approx(share_of_coins(wins, wins + losses)))


@given(st.lists(st.integers(-2, 2), max_size=60))
def test_sign_test_is_one_sided(differences):
    better = np.array(differences, float)
    wins, losses, p = sign_test(better, np.zeros(better.size))
    assert (wins, losses) == (sum(better > 0), sum(better < 0))
    n = wins + losses
    assert p == pytest.approx(
        binomtest(wins, n, alternative="greater").pvalue if n else 1
    )


def test_t_tests_are_one_sided():
    rng = np.random.default_rng(0)
    for shift in (-0.3, 0.0, 0.3):
        sample = rng.standard_normal(20) + shift
        expected = ttest_1samp(sample, 0, alternative="greater").pvalue
        assert mean_test(sample) == pytest.approx(expected)
    assert [mean_test([v] * 5) for v in (-1, 0, 1)] == [1, 1, 0]


# --- verdicts on printed means ---


FEW, UNDECIDED = MIN_REPETITIONS - 1, Verdict.INCONCLUSIVE
NOT_FINITE, EQUAL = (
    "a repetition has no finite value",
    "half of the repetitions are equal",
)
TOO_FEW = f"needs {MIN_REPETITIONS} repetitions"
NO_FIRST = {"first_solver": "b", "first_printed": "0.8"}
DEVIATION = {"deviations": ["half-scores", "half-scores"]}
CASES = [
    (normal(1), mean("0.8"), UNDECIDED, TOO_FEW),
    (normal(FEW), mean("0.1"), UNDECIDED, TOO_FEW),
    (normal(120), mean("0.99", **NO_FIRST), Verdict.NOT_REPRODUCED, "first"),
    (normal(120), mean("0.8", **DEVIATION), Verdict.WITH_DEVIATION, ""),
    ([0.0, *np.exp(normal(120))], mean("1", logarithm=True), UNDECIDED, NOT_FINITE),
    ([0.5] * 150, mean("0.5"), UNDECIDED, EQUAL),
    ([np.inf] * 120, mean("0.9"), UNDECIDED, NOT_FINITE),
]


@pytest.mark.parametrize(("values", "about", "verdict", "words"), CASES)
def test_what_is_judged(tmp_path, values, about, verdict, words):
    [row] = judged([about], write_results(tmp_path, auc_of(a=values)))
    assert (row.verdict, row.runs) == (verdict, len(values))
    assert words in row.reason
    assert row.deviation == ("half-scores" if about.deviations else "")
    assert (row.measured == "") == (words == NOT_FINITE)


def test_mean_is_judged_by_the_threshold(tmp_path):
    ours = normal(200)
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.8f}")], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert row.runs == 200
    assert float(row.measured) == pytest.approx(np.median(ours), rel=1e-5)
    low, high = map(float, row.spread.split(" to "))
    assert (low, high) == pytest.approx(np.quantile(ours, [0.25, 0.75]), rel=1e-3)
    for factor, verdict in ((0.99, Verdict.REPRODUCED), (1.01, Verdict.NOT_REPRODUCED)):
        for sign in (-1, 1):
            printed = np.mean(ours) * (1 + sign * factor * row.smallest_error)
            [planted] = judged([mean(f"{printed:.10f}")], folder)
            assert planted.verdict is verdict
            assert planted.smallest_error == pytest.approx(row.smallest_error)
    [beyond] = judged([mean(f"{ours.max() * 1.001:.10f}")], folder)
    tells(beyond.reason, "p above")


@pytest.mark.parametrize(
    ("printed", "power", "n", "verdict"),
    [
        pytest.param("0.9", 0, 50, Verdict.REPRODUCED, id="as it is"),
        pytest.param("90", -2, 50, Verdict.REPRODUCED, id="in percent"),
        pytest.param("89%", -2, 50, Verdict.NOT_REPRODUCED, id="another digit"),
        pytest.param("0.9", 0, 19, Verdict.INCONCLUSIVE, id="too few splits"),
    ],
)
def test_printed_average_agrees_to_its_digits(tmp_path, printed, power, n, verdict):
    values = np.tile([0.88, 0.916], n)[:n]  # mean 0.898
    folder = write_results(tmp_path, auc_of(a=values))
    [row] = judged([mean(printed, averaged=True, power_of_ten=power)], folder)
    assert (row.verdict, row.measured) == (verdict, f"{values.mean():.6g}")
    assert (row.runs, row.deviation) == (n, "")


def test_a_mean_of_logarithms(tmp_path):
    with raises(InputError, "'0.00'"):
        mean("0.5", logarithm=True).scaled("0.00")
    ours = np.exp(normal(150, 20, 1.5))
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.3f}", logarithm=True)], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert float(row.measured) == pytest.approx(np.median(ours), rel=1e-4)
    middle = np.exp(np.log(ours).mean())
    # Where the power of ten is ours, and another one passes as well, no digits could be
    # wrong.
    for power, passes in ((0, Verdict.REPRODUCED), (8, Verdict.NO_POWER)):
        for factor, verdict in ((0.99, passes), (1.01, Verdict.NOT_REPRODUCED)):
            times = math.exp(math.log1p(row.smallest_error) * factor)
            for wrong in (middle * times, middle / times):
                text = f"{wrong / 10**power:.9f}"
                [planted] = judged(
                    [mean(text, logarithm=True, power_of_ten=power)], folder
                )
                assert planted.verdict is verdict
    near = np.exp(normal(150, 20, 0.3))
    folder = write_results(tmp_path / "near", auc_of(a=near))
    scaled = {"logarithm": True, "power_of_ten": 8}
    [row] = judged([mean(f"{np.median(near) / 1e8:.9f}", **scaled)], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert row.smallest_error < math.sqrt(10) - 1


@pytest.mark.parametrize(
    ("power", "verdicts"),
    [(18, ["reproduced", "no power"]), (17, ["reproduced", "not reproduced"])],
)
def test_a_power_of_ten_that_is_ours_has_to_fit_those_that_were_printed(
    tmp_path, power, verdicts
):
    """Alone another one passes as well; with a row of the same draws only one does."""
    common, own = (
        normal(MIN_REPETITIONS, 0, 1.0),
        normal(MIN_REPETITIONS, 0, 0.2, seed=1),
    )
    logs = {"pnorm_risk(p=2)": 7 + common, "pnorm_risk(p=16)": 42 + 2 * common + own}
    cells = {
        ("housing", "a", metric, "test"): np.exp(values)
        for metric, values in logs.items()
    }
    folder = write_results(tmp_path, cells)
    risks = [{"metric": metric, "logarithm": True} for metric in logs]
    printed = mean("1096", **risks[0]), mean("1.739", power_of_ten=power, **risks[1])
    [_, row] = expect(folder, *zip(printed, verdicts, strict=True))
    tells(
        row.reason, f"10^{power - 1} 10^{power + 1}" if power == 18 else "powers column"
    )


def test_a_repetition_without_a_fold_does_not_count(tmp_path):
    folds = dict(enumerate(normal(3 * MIN_REPETITIONS)))
    values = np.reshape(list(folds.values()), (-1, 3)).mean(axis=1)
    lacking = {split: value for split, value in folds.items() if split != 4}
    for name, cell, runs in (
        ("a", folds, 100),
        ("b", lacking, 99),
        ("c", [0.8, 0.7], 0),
    ):
        [row] = judged(
            [mean("0.8")], write_results(tmp_path / name, auc_of(a=cell), folds=3)
        )
        assert (row.verdict is Verdict.REPRODUCED, row.runs) == (cell is folds, runs)
        middle = f"{np.median(values):.6g}"
        assert (row.measured == middle) == (cell is folds)


def test_cell_without_spread_leaves_the_threshold_alone(tmp_path):
    """Its distances are infinite.

    Were it judged, nothing would be farther than it allows.
    """
    hits = np.where(np.arange(200) % 10 == 0, 0.9, 1.0)
    folder = write_results(tmp_path, auc_of(a=normal(200), hits=hits))
    verdicts = ("reproduced", "not reproduced", "inconclusive")
    claims = mean("0.80"), mean("0.99"), mean("0.1", "hits")
    expect(folder, *zip(claims, verdicts, strict=True))


def test_the_right_side_of_the_first_column_is_a_trend(tmp_path):
    first = {"first_solver": "a", "first_printed": "0.800"}
    cells = auc_of(
        a=normal(120), b=normal(120, 0.85, seed=1), c=normal(120, 0.8, seed=2)
    )
    folder = write_results(tmp_path, cells)
    wrong = "not reproduced"
    rows = expect(
        folder,
        (mean("0.990", "b", **first), "trend only"),
        (mean("0.600", "b", **first), wrong),
        (mean("0.990", "c", **first), wrong),
        (mean("0.990", "a", **first), wrong),
        (mean("0.990", "b"), wrong),
    )
    wins = sum(
        cells["housing", "b", "auc", "test"] > cells["housing", "a", "auc", "test"]
    )
    for row, places in zip(
        rows, (f"{wins} 120", f"{120 - wins} 120", "", "first"), strict=False
    ):
        tells(row.reason, places)


def test_a_trend_is_paired_by_repetition(tmp_path):
    """The other side lacks some repetitions.

    What lies in the same place is not the same split.
    """
    hard = np.tile([0.0, 0.5], 100)
    b = {i: hard[i] + 0.01 + normal(1, 0, 1e-4, i)[0] for i in range(200)}
    a = {i: hard[i] + normal(1, 0, 1e-4, 500 + i)[0] for i in range(200) if i != 0}
    folder = write_results(tmp_path, auc_of(a=a, b=b))
    [row] = judged([mean("99", "b", first_solver="a", first_printed="1")], folder)
    assert row.verdict is Verdict.TREND_ONLY
    tells(row.reason, "199")


def test_all_means_are_judged_by_repetitions_that_all_have(tmp_path):
    a = dict(enumerate(normal(220)))
    folder = write_results(
        tmp_path, auc_of(a=a, b={i: a[i] ** 2 for i in range(60, 220)})
    )
    claims = [mean("0.8", number=1), mean("0.64", "b", number=2)]
    assert {(row.runs, row.verdict) for row in judged(claims, folder)} == {
        (160, "reproduced")
    }
    apart = auc_of(
        a={i: a[i] for i in range(110)}, b={i: a[i] for i in range(110, 220)}
    )
    reasons = {
        row.reason for row in judged(claims, write_results(tmp_path / "b", apart))
    }
    assert reasons == {f"needs {MIN_REPETITIONS} repetitions that all cells have"}


def test_approximately_and_means_of_few_runs(tmp_path):
    draws = normal(40, 0.892, 0.01)
    draws += 0.892 - draws.mean()
    folder = write_results(tmp_path, auc_of(a=draws))
    half = 2.0227 * draws.std(ddof=1) * (1 / 40 + 1 / 5) ** 0.5
    near = mean(f"{0.892 + 0.99 * half:.6f}", runs=5)
    [*_, row, _] = expect(
        folder,
        (mean("90%", averaged=True, power_of_ten=-2), "not reproduced"),
        (mean("90%", averaged=True, power_of_ten=-2, margin=0.01), "reproduced"),
        (near, "reproduced"),
        (mean(f"{0.892 - 1.01 * half:.6f}", runs=5), "not reproduced"),
    )
    assert row.smallest_error == pytest.approx(half / 0.892, rel=1e-3)
    few = write_results(tmp_path / "few", auc_of(a=draws[: MIN_SPLITS - 1]))
    expect(few, (near, "inconclusive"))


def test_a_mean_of_few_runs_may_be_of_logarithms(tmp_path):
    logarithms = normal(150, 20, 0.1)
    middle = math.exp(logarithms.mean())
    folder = write_results(tmp_path, auc_of(a=np.exp(logarithms)))
    [row] = judged([mean(f"{middle:.3f}", logarithm=True, runs=5)], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert float(row.measured) == pytest.approx(middle, rel=1e-5)
    half = 1.976 * logarithms.std(ddof=1) * (1 / 150 + 1 / 5) ** 0.5
    assert row.smallest_error == pytest.approx(math.expm1(half), rel=1e-3)


def test_digits_are_compared_with_no_logarithm():
    with raises(ValueError, "averaged"):
        mean("0.5", averaged=True, logarithm=True)

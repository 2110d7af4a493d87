"""The statistics behind the verdicts, from their definitions, and printed means."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from precbench.claims.kinds.mean import MeanClaim
from precbench.claims.verdicts import (
    MIN_REPETITIONS,
    MIN_SPLITS,
    PrintedRow,
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


@dataclass(frozen=True)
class LiteralRow:
    """The squared distances of a row, each by its definition."""

    of_print: float
    of_samples: list  # of each repetition from all others

    @classmethod
    def of(cls, row):
        of_samples = [
            mahalanobis(sample, np.delete(row.samples, i, axis=0))
            for i, sample in enumerate(row.samples)
        ]
        return cls(mahalanobis(row.printed, row.samples), of_samples)

    def scaled(self, distance):
        """Return 0 for the median of the repetitions, 1 for their 95 % point."""
        middle, high = np.quantile(np.log(self.of_samples), [0.5, 0.95])
        return (math.log(distance) - middle) / (high - middle)

    def unscaled(self, scaled):
        middle, high = np.quantile(np.log(self.of_samples), [0.5, 0.95])
        return math.exp(middle + scaled * (high - middle))


def share_as_far(distance, distances):
    """Return the share that is as far out as the print, which counts as one."""
    n_as_far = sum(other >= distance for other in distances)
    return (1 + n_as_far) / (len(distances) + 1)


@pytest.mark.parametrize("seed", range(3))
def test_placement_follows_its_definition(seed):
    rng = np.random.default_rng(seed)
    samples = rng.standard_t(3, (37 + seed, 4)) * [1, 10, 0.1, 5] + [0, 100, 0, -3]
    samples[:, 1] += 20 * samples[:, 0]
    printed = np.array([0, 100, 0, -3]) + rng.standard_normal(4)
    printed[1] = samples[5, 1]
    rows = [
        PrintedRow(printed[:3], samples[:, :3]),
        PrintedRow(printed[3:], samples[:, 3:]),
    ]
    literal = [LiteralRow.of(row) for row in rows]
    # by repetition: how far out the row is that lies farthest
    scaled = [[row.scaled(distance) for distance in row.of_samples] for row in literal]
    farthest = np.max(scaled, axis=0)
    # What is above it has, with itself, at most 5 % of all n + 1 as far out.
    threshold = min(
        distance
        for distance in farthest
        if 1 + sum(farthest > distance) <= 0.05 * (len(farthest) + 1)
    )
    for row, expected, placement in zip(rows, literal, place(rows), strict=True):
        p = share_as_far(expected.of_print, expected.of_samples)
        assert placement.p == pytest.approx(p)
        p_of_all = share_as_far(expected.scaled(expected.of_print), farthest)
        assert placement.p_of_all == pytest.approx(p_of_all)
        limit = expected.unscaled(threshold)
        centre = row.samples.mean(axis=0)
        for i, error in enumerate(placement.smallest_error):
            wrong = centre.copy()
            wrong[i] += error
            assert mahalanobis(wrong, row.samples) == pytest.approx(limit)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("factor", "is_detected"),
    [
        pytest.param(0.999, False, id="just below the smallest error"),
        pytest.param(1.001, True, id="just above the smallest error"),
    ],
)
def test_the_power_is_what_it_says(factor, is_detected, sign):
    rng = np.random.default_rng(3)
    tables = [rng.standard_t(2.5, (150, 5)).cumsum(axis=1) for _ in range(3)]
    centres = [PrintedRow(samples.mean(axis=0), samples) for samples in tables]
    placements = place(centres)
    assert all(placement.passes for placement in placements)
    for i, j in product(range(3), range(5)):
        printed = centres[i].printed.copy()
        printed[j] += sign * factor * placements[i].smallest_error[j]
        with_error = list(centres)
        with_error[i] = centres[i]._replace(printed=printed)
        passes = [placement.passes for placement in place(with_error)]
        expected = [True, True, True]
        expected[i] = not is_detected
        assert passes == expected


def test_columns_that_are_always_alike():
    samples = normal(150)[:, None] * [1, 1, 2]
    [same] = place([PrintedRow(np.array([0.8, 0.8, 1.6]), samples)])
    [other] = place([PrintedRow(np.array([0.8, 0.8001, 1.6]), samples)])
    assert same.passes
    assert not other.passes
    assert (same.smallest_error == 0).all()


def test_a_row_passes_above_a_p_of_5_percent():
    placement = place([PrintedRow(np.array([0.8]), normal(150)[:, None])])[0]
    assert not placement._replace(p_of_all=0.05).passes
    assert placement._replace(p_of_all=0.0501).passes


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
    test = sign_test(better, np.zeros(better.size))
    assert test.wins == sum(better > 0)
    assert test.losses == sum(better < 0)
    n = test.wins + test.losses
    p = binomtest(test.wins, n, alternative="greater").pvalue if n else 1
    assert test.p == pytest.approx(p)


@pytest.mark.parametrize("shift", [-0.3, 0.0, 0.3])
def test_t_tests_are_one_sided(shift):
    sample = np.random.default_rng(0).standard_normal(20) + shift
    expected = ttest_1samp(sample, 0, alternative="greater").pvalue
    assert mean_test(sample) == pytest.approx(expected)


@pytest.mark.parametrize(("value", "p"), [(-1, 1), (0, 1), (1, 0)])
def test_of_equal_values_a_t_test_leaves_no_doubt(value, p):
    assert mean_test([value] * 5) == p


# --- verdicts on printed means ---


@dataclass(frozen=True)
class Case:
    """Values of solver a by repetition, a claim on their mean, and its row."""

    values: list
    claim: MeanClaim
    verdict: Verdict
    words: str = ""
    deviation: str = ""
    is_measured: bool = True  # whether the row has a value


TOO_FEW = f"needs {MIN_REPETITIONS} repetitions"
NOT_FINITE = "a repetition has no finite value"
CASES = {
    "one repetition": Case(
        normal(1), mean("0.8"), verdict=Verdict.INCONCLUSIVE, words=TOO_FEW
    ),
    "too few repetitions": Case(
        normal(MIN_REPETITIONS - 1),
        mean("0.1"),
        verdict=Verdict.INCONCLUSIVE,
        words=TOO_FEW,
    ),
    "a first solver that was not measured": Case(
        normal(120),
        mean("0.99", first_solver="b", first_printed="0.8"),
        verdict=Verdict.NOT_REPRODUCED,
        words="the first of its row was not measured",
    ),
    "a deviation that is named twice": Case(
        normal(120),
        mean("0.8", deviations=["half-scores", "half-scores"]),
        verdict=Verdict.WITH_DEVIATION,
        deviation="half-scores",
    ),
    "the logarithm of 0": Case(
        [0.0, *np.exp(normal(120))],
        mean("1", logarithm=True),
        verdict=Verdict.INCONCLUSIVE,
        words=NOT_FINITE,
        is_measured=False,
    ),
    "equal values": Case(
        [0.5] * 150,
        mean("0.5"),
        verdict=Verdict.INCONCLUSIVE,
        words="half of the repetitions are equal",
    ),
    "infinite values": Case(
        [np.inf] * 120,
        mean("0.9"),
        verdict=Verdict.INCONCLUSIVE,
        words=NOT_FINITE,
        is_measured=False,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_judged(tmp_path, case):
    [row] = judged([case.claim], write_results(tmp_path, auc_of(a=case.values)))
    assert row.verdict is case.verdict
    assert row.runs == len(case.values)
    assert case.words in row.reason
    assert row.deviation == case.deviation
    assert bool(row.measured) == case.is_measured


def test_mean_is_judged_by_the_threshold(tmp_path):
    ours = normal(200)
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.8f}")], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert row.runs == 200
    assert float(row.measured) == pytest.approx(np.median(ours), rel=1e-5)
    quartiles = [float(text) for text in row.spread.split(" to ")]
    assert quartiles == pytest.approx(np.quantile(ours, [0.25, 0.75]), rel=1e-3)
    for factor, verdict in ((0.99, Verdict.REPRODUCED), (1.01, Verdict.NOT_REPRODUCED)):
        for sign in (-1, 1):
            printed = np.mean(ours) * (1 + sign * factor * row.smallest_error)
            [wrong] = judged([mean(f"{printed:.10f}")], folder)
            assert wrong.verdict is verdict
            assert wrong.smallest_error == pytest.approx(row.smallest_error)


@pytest.mark.parametrize(
    ("printed", "places"),
    [
        pytest.param(normal(200).max() * 1.001, "p above", id="above"),
        pytest.param(normal(200).min() * 0.999, "p below", id="below"),
    ],
)
def test_of_a_print_beyond_all_draws_the_side_is_named(tmp_path, printed, places):
    folder = write_results(tmp_path, auc_of(a=normal(200)))
    [row] = judged([mean(f"{printed:.10f}")], folder)
    tells(row.reason, places)


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
    assert row.verdict is verdict
    assert row.measured == f"{values.mean():.6g}"
    assert row.runs == n
    assert row.deviation == ""


WIDE_LOGARITHMS = normal(150, 20, 1.5)


def test_a_mean_of_logarithms_is_shown_as_a_number(tmp_path):
    ours = np.exp(WIDE_LOGARITHMS)
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.3f}", logarithm=True)], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert float(row.measured) == pytest.approx(np.median(ours), rel=1e-4)


def test_a_number_of_0_has_no_logarithm():
    with raises(InputError, "'0.00'"):
        mean("0.5", logarithm=True).scaled("0.00")


@pytest.mark.parametrize(
    ("power", "factor", "verdict"),
    [
        pytest.param(0, 0.99, Verdict.REPRODUCED, id="below the smallest error"),
        pytest.param(0, 1.01, Verdict.NOT_REPRODUCED, id="above the smallest error"),
        # Another power of ten passes as well: no digits could be wrong.
        pytest.param(8, 0.99, Verdict.NO_POWER, id="below, with our power of ten"),
        pytest.param(
            8, 1.01, Verdict.NOT_REPRODUCED, id="above, with our power of ten"
        ),
    ],
)
def test_a_mean_of_logarithms_is_judged_by_the_threshold(
    tmp_path, power, factor, verdict
):
    ours = np.exp(WIDE_LOGARITHMS)
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.3f}", logarithm=True)], folder)
    middle = math.exp(WIDE_LOGARITHMS.mean())
    error = math.exp(math.log1p(row.smallest_error) * factor)
    for wrong in (middle * error, middle / error):
        printed = f"{wrong / 10**power:.9f}"
        wrong_claim = mean(printed, logarithm=True, power_of_ten=power)
        [row_of_wrong] = judged([wrong_claim], folder)
        assert row_of_wrong.verdict is verdict


def test_our_power_of_ten_is_decided_where_no_other_passes(tmp_path):
    ours = np.exp(normal(150, 20, 0.3))
    folder = write_results(tmp_path, auc_of(a=ours))
    printed = f"{np.median(ours) / 1e8:.9f}"
    [row] = judged([mean(printed, logarithm=True, power_of_ten=8)], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert row.smallest_error < math.sqrt(10) - 1


@pytest.mark.parametrize(
    ("power", "verdict", "places"),
    [
        pytest.param(18, "no power", "10^17 10^19", id="alone others pass as well"),
        pytest.param(17, "not reproduced", "powers column", id="does not fit"),
    ],
)
def test_a_power_of_ten_that_is_ours_has_to_fit_those_that_were_printed(
    tmp_path, power, verdict, places
):
    """With a row of the same draws only one power fits."""
    common = normal(MIN_REPETITIONS, 0, 1.0)
    own = normal(MIN_REPETITIONS, 0, 0.2, seed=1)
    cells = {
        ("housing", "a", "pnorm_risk(p=2)", "test"): np.exp(7 + common),
        ("housing", "a", "pnorm_risk(p=16)", "test"): np.exp(42 + 2 * common + own),
    }
    folder = write_results(tmp_path, cells)
    given = mean("1096", metric="pnorm_risk(p=2)", logarithm=True)
    chosen = mean(
        "1.739", metric="pnorm_risk(p=16)", logarithm=True, power_of_ten=power
    )
    [_, row] = expect(folder, (given, "reproduced"), (chosen, verdict))
    tells(row.reason, places)


ALL_FOLDS = dict(enumerate(normal(3 * MIN_REPETITIONS)))
MEANS_OF_FOLDS = np.reshape(list(ALL_FOLDS.values()), (-1, 3)).mean(axis=1)
MEDIAN = f"{np.median(MEANS_OF_FOLDS):.6g}"


def test_a_repetition_counts_as_the_mean_of_its_folds(tmp_path):
    folder = write_results(tmp_path, auc_of(a=ALL_FOLDS), folds=3)
    [row] = judged([mean("0.8")], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert row.runs == MIN_REPETITIONS
    assert row.measured == MEDIAN


@pytest.mark.parametrize(
    ("folds", "runs"),
    [
        pytest.param(
            {split: value for split, value in ALL_FOLDS.items() if split != 4},
            MIN_REPETITIONS - 1,
            id="one fold is missing",
        ),
        pytest.param([0.8, 0.7], 0, id="two folds of three"),
    ],
)
def test_a_repetition_without_a_fold_does_not_count(tmp_path, folds, runs):
    folder = write_results(tmp_path, auc_of(a=folds), folds=3)
    [row] = judged([mean("0.8")], folder)
    assert row.verdict is Verdict.INCONCLUSIVE
    assert row.runs == runs
    assert row.measured != MEDIAN


def test_cell_without_spread_leaves_the_threshold_alone(tmp_path):
    """Its distances are infinite.

    Were it judged, nothing would be farther than it allows.
    """
    hits = np.where(np.arange(200) % 10 == 0, 0.9, 1.0)
    folder = write_results(tmp_path, auc_of(a=normal(200), hits=hits))
    expect(
        folder,
        (mean("0.80"), "reproduced"),
        (mean("0.99"), "not reproduced"),
        (mean("0.1", "hits"), "inconclusive"),
    )


AFTER_A = {"first_solver": "a", "first_printed": "0.800"}
NEAR_0_8 = normal(120)
NEAR_0_85 = normal(120, 0.85, seed=1)
WINS = sum(NEAR_0_85 > NEAR_0_8)


@pytest.mark.parametrize(
    ("published_claim", "verdict", "places"),
    [
        pytest.param(
            mean("0.990", "b", **AFTER_A),
            "trend only",
            f"{WINS} 120",
            id="above, as printed",
        ),
        pytest.param(
            mean("0.600", "b", **AFTER_A),
            "not reproduced",
            f"{120 - WINS} 120",
            id="above, where below is printed",
        ),
        pytest.param(
            mean("0.800", "b", **AFTER_A),
            "not reproduced",
            "0 120",
            id="above, where an equal number is printed",
        ),
        pytest.param(
            mean("0.990", "c", **AFTER_A), "not reproduced", "120", id="on neither side"
        ),
        pytest.param(
            mean("0.990", "a", **AFTER_A), "not reproduced", "first", id="the first"
        ),
        pytest.param(mean("0.990", "b"), "not reproduced", "first", id="no first"),
    ],
)
def test_the_right_side_of_the_first_column_is_a_trend(
    tmp_path, published_claim, verdict, places
):
    draws = auc_of(a=NEAR_0_8, b=NEAR_0_85, c=normal(120, 0.8, seed=2))
    [row] = judged([published_claim], write_results(tmp_path, draws))
    assert row.verdict == verdict
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


A_AND_B = [mean("0.8", number=1), mean("0.64", "b", number=2)]


def test_all_means_are_judged_by_repetitions_that_all_have(tmp_path):
    a = dict(enumerate(normal(220)))
    b = {i: a[i] ** 2 for i in range(60, 220)}
    folder = write_results(tmp_path, auc_of(a=a, b=b))
    for row in judged(A_AND_B, folder):
        assert row.runs == 160
        assert row.verdict is Verdict.REPRODUCED


def test_no_mean_is_judged_by_repetitions_that_others_lack(tmp_path):
    draws = normal(220)
    a = dict(enumerate(draws[:110]))
    b = dict(enumerate(draws[110:], start=110))
    folder = write_results(tmp_path, auc_of(a=a, b=b))
    for row in judged(A_AND_B, folder):
        assert row.reason == f"needs {MIN_REPETITIONS} repetitions that all cells have"


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

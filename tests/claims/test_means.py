"""Verdicts on printed means."""

import math

import numpy as np
import pytest

from precbench.claims.verdicts import MIN_REPETITIONS, MIN_SPLITS, Verdict
from precbench.errors import InputError
from tests.claims.helpers import auc_of, expect, judged, mean, normal, write_results
from tests.sentences import raises, tells

FEW, UNDECIDED = MIN_REPETITIONS - 1, Verdict.INCONCLUSIVE
NOT_FINITE, EQUAL = "a repetition has no finite value", "half of the repetitions are equal"
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
    assert (row.verdict, row.runs) == (verdict, len(values)) and words in row.reason
    assert row.deviation == ("half-scores" if about.deviations else "")
    assert (row.measured == "") == (words == NOT_FINITE)


def test_mean_is_judged_by_the_threshold(tmp_path):
    ours = normal(200)
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.8f}")], folder)
    assert row.verdict is Verdict.REPRODUCED and row.runs == 200
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


@pytest.mark.parametrize(("printed", "power", "n", "verdict"), [
    ("0.9", 0, 50, Verdict.REPRODUCED), ("90", -2, 50, Verdict.REPRODUCED),
    ("89%", -2, 50, Verdict.NOT_REPRODUCED), ("0.9", 0, 19, Verdict.INCONCLUSIVE),
])  # fmt: skip
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
    # Where the power of ten is ours, and another one passes as well, no digits could be wrong.
    for power, passes in ((0, Verdict.REPRODUCED), (8, Verdict.NO_POWER)):
        for factor, verdict in ((0.99, passes), (1.01, Verdict.NOT_REPRODUCED)):
            times = math.exp(math.log1p(row.smallest_error) * factor)
            for wrong in (middle * times, middle / times):
                text = f"{wrong / 10**power:.9f}"
                [planted] = judged([mean(text, logarithm=True, power_of_ten=power)], folder)
                assert planted.verdict is verdict
    near = np.exp(normal(150, 20, 0.3))
    folder = write_results(tmp_path / "near", auc_of(a=near))
    scaled = {"logarithm": True, "power_of_ten": 8}
    [row] = judged([mean(f"{np.median(near) / 1e8:.9f}", **scaled)], folder)
    assert row.verdict is Verdict.REPRODUCED and row.smallest_error < math.sqrt(10) - 1


@pytest.mark.parametrize(
    ("power", "verdicts"),
    [(18, ["reproduced", "no power"]), (17, ["reproduced", "not reproduced"])],
)
def test_a_power_of_ten_that_is_ours_has_to_fit_those_that_were_printed(tmp_path, power, verdicts):
    """Alone another one passes as well; with a row of the same draws only one does."""
    common, own = normal(MIN_REPETITIONS, 0, 1.0), normal(MIN_REPETITIONS, 0, 0.2, seed=1)
    logs = {"pnorm_risk(p=2)": 7 + common, "pnorm_risk(p=16)": 42 + 2 * common + own}
    cells = {("housing", "a", metric, "test"): np.exp(values) for metric, values in logs.items()}
    folder = write_results(tmp_path, cells)
    risks = [{"metric": metric, "logarithm": True} for metric in logs]
    printed = mean("1096", **risks[0]), mean("1.739", power_of_ten=power, **risks[1])
    [_, row] = expect(folder, *zip(printed, verdicts, strict=True))
    tells(row.reason, f"10^{power - 1} 10^{power + 1}" if power == 18 else "powers column")


def test_a_repetition_without_a_fold_does_not_count(tmp_path):
    folds = dict(enumerate(normal(3 * MIN_REPETITIONS)))
    values = np.reshape(list(folds.values()), (-1, 3)).mean(axis=1)
    lacking = {split: value for split, value in folds.items() if split != 4}
    for name, cell, runs in (("a", folds, 100), ("b", lacking, 99), ("c", [0.8, 0.7], 0)):
        [row] = judged([mean("0.8")], write_results(tmp_path / name, auc_of(a=cell), folds=3))
        assert (row.verdict is Verdict.REPRODUCED, row.runs) == (cell is folds, runs)
        middle = f"{np.median(values):.6g}"
        assert (row.measured == middle) == (cell is folds)


def test_cell_without_spread_leaves_the_threshold_alone(tmp_path):
    """Its distances are infinite: were it judged, nothing would be farther than it allows."""
    hits = np.where(np.arange(200) % 10 == 0, 0.9, 1.0)
    folder = write_results(tmp_path, auc_of(a=normal(200), hits=hits))
    verdicts = ("reproduced", "not reproduced", "inconclusive")
    claims = mean("0.80"), mean("0.99"), mean("0.1", "hits")
    expect(folder, *zip(claims, verdicts, strict=True))


def test_the_right_side_of_the_first_column_is_a_trend(tmp_path):
    first = {"first_solver": "a", "first_printed": "0.800"}
    cells = auc_of(a=normal(120), b=normal(120, 0.85, seed=1), c=normal(120, 0.8, seed=2))
    folder = write_results(tmp_path, cells)
    wrong = "not reproduced"
    rows = expect(
        folder, (mean("0.990", "b", **first), "trend only"), (mean("0.600", "b", **first), wrong),
        (mean("0.990", "c", **first), wrong), (mean("0.990", "a", **first), wrong),
        (mean("0.990", "b"), wrong),
    )  # fmt: skip
    wins = sum(cells["housing", "b", "auc", "test"] > cells["housing", "a", "auc", "test"])
    for row, places in zip(rows, (f"{wins} 120", f"{120 - wins} 120", "", "first"), strict=False):
        tells(row.reason, places)


def test_a_trend_is_paired_by_repetition(tmp_path):
    """The other side lacks some repetitions: what lies in the same place is not the same split."""
    hard = np.tile([0.0, 0.5], 100)
    b = {i: hard[i] + 0.01 + normal(1, 0, 1e-4, i)[0] for i in range(200)}
    a = {i: hard[i] + normal(1, 0, 1e-4, 500 + i)[0] for i in range(200) if i != 0}
    folder = write_results(tmp_path, auc_of(a=a, b=b))
    [row] = judged([mean("99", "b", first_solver="a", first_printed="1")], folder)
    assert row.verdict is Verdict.TREND_ONLY
    tells(row.reason, "199")


def test_all_means_are_judged_by_repetitions_that_all_have(tmp_path):
    a = dict(enumerate(normal(220)))
    folder = write_results(tmp_path, auc_of(a=a, b={i: a[i] ** 2 for i in range(60, 220)}))
    claims = [mean("0.8", number=1), mean("0.64", "b", number=2)]
    assert {(row.runs, row.verdict) for row in judged(claims, folder)} == {(160, "reproduced")}
    apart = auc_of(a={i: a[i] for i in range(110)}, b={i: a[i] for i in range(110, 220)})
    reasons = {row.reason for row in judged(claims, write_results(tmp_path / "b", apart))}
    assert reasons == {f"needs {MIN_REPETITIONS} repetitions that all cells have"}


def test_approximately_and_means_of_few_runs(tmp_path):
    draws = normal(40, 0.892, 0.01)
    draws += 0.892 - draws.mean()
    folder = write_results(tmp_path, auc_of(a=draws))
    half = 2.0227 * draws.std(ddof=1) * (1 / 40 + 1 / 5) ** 0.5
    near = mean(f"{0.892 + 0.99 * half:.6f}", runs=5)
    [*_, row, _] = expect(
        folder, (mean("90%", averaged=True, power_of_ten=-2), "not reproduced"),
        (mean("90%", averaged=True, power_of_ten=-2, margin=0.01), "reproduced"),
        (near, "reproduced"), (mean(f"{0.892 - 1.01 * half:.6f}", runs=5), "not reproduced"),
    )  # fmt: skip
    assert row.smallest_error == pytest.approx(half / 0.892, rel=1e-3)
    few = write_results(tmp_path / "few", auc_of(a=draws[: MIN_SPLITS - 1]))
    expect(few, (near, "inconclusive"))

"""Verdicts on orders, spreads and times of solvers, and on counts of data sets."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from precbench.claims.evidence import WALL_SECONDS
from precbench.claims.kinds.kind import Minimum
from precbench.claims.verdicts import (
    MIN_REPETITIONS,
    MIN_SPLITS,
    MIN_TIMED_SPLITS,
    Verdict,
)
from scripts.survey.tables import apart
from tests.claims.helpers import (
    TIMED,
    auc_of,
    claim,
    expect,
    judged,
    mean,
    normal,
    order,
    ratio,
    write_results,
    write_sweep,
)
from tests.sentences import names, raises, tells

DEVIATION = {"deviations": ["half-scores"]}
# values of solvers by split
HARD = np.tile([0.0, 0.5], 15)
EVEN = np.linspace(0.2, 0.9, 20)
CERTAIN = {"deterministic": True}
REPRODUCED = Verdict.REPRODUCED
NOT_REPRODUCED = Verdict.NOT_REPRODUCED
TREND_ONLY = Verdict.TREND_ONLY
NO_POWER = Verdict.NO_POWER
INCONCLUSIVE = Verdict.INCONCLUSIVE
NO_DATA = Verdict.NO_DATA
WITH_DEVIATION = Verdict.WITH_DEVIATION
FEW_TIMED = [0.5] * (MIN_TIMED_SPLITS - 1)
ONE = {"a": [1.0], "b": [0.0]}
TIMED_SPLITS = {"a": [0.5] * MIN_SPLITS, "b": [0.5] * MIN_SPLITS}
EARLY = dict.fromkeys(range(9), 0.5)
LATE = dict.fromkeys(range(9, 18), 0.5)
PAIRED = {
    "a": {i: HARD[i] + 0.01 for i in range(30)},
    "b": {i: HARD[i] for i in range(29, 0, -1)},
}


@dataclass(frozen=True)
class Case:
    """Values of solvers by split, a claim on them, and its row of the ledger."""

    values: dict
    claim: object
    verdict: Verdict
    words: str = ""


CASES = {
    "too few splits for one draw": Case(
        {"a": normal(99, 0.9), "b": normal(99)},
        order(one_draw=True),
        verdict=INCONCLUSIVE,
        words="100 splits",
    ),
    "splits are paired": Case(
        PAIRED, order(), verdict=REPRODUCED, words="holds in 29 of 29, fails in 0"
    ),
    "within the margin": Case(
        {"a": EVEN - 0.009, "b": EVEN},
        order(margin=0.01),
        verdict=REPRODUCED,
        words="holds in 20 of 20, fails in 0",
    ),
    "beyond the margin": Case(
        {"a": EVEN - 0.009, "b": EVEN}, order(margin=0.008), verdict=NOT_REPRODUCED
    ),
    "times": Case(TIMED_SPLITS, order(metric=WALL_SECONDS), verdict=REPRODUCED),
    "times the other way": Case(
        TIMED_SPLITS, order("b", "a", metric=WALL_SECONDS), verdict=NOT_REPRODUCED
    ),
    "too few timed splits": Case(
        {"a": FEW_TIMED, "b": FEW_TIMED},
        ratio(),
        verdict=INCONCLUSIVE,
        words="5 splits",
    ),
    "timed splits that are not paired": Case(
        {"a": EARLY, "b": LATE}, ratio(), verdict=INCONCLUSIVE, words="5 splits"
    ),
    "a mean of 0": Case({"a": [0.0] * 20}, mean("0.0", runs=5), verdict=REPRODUCED),
    "a mean other than 0": Case(
        {"a": [0.0] * 20}, mean("0.1", runs=5), verdict=NOT_REPRODUCED
    ),
    "one split": Case(ONE, order(), verdict=INCONCLUSIVE, words="20 splits"),
    "one split of a deterministic solver": Case(
        ONE, order(**CERTAIN), verdict=REPRODUCED, words="nothing is left to chance"
    ),
    "one split the other way": Case(
        ONE, order("b", "a", **CERTAIN), verdict=NOT_REPRODUCED
    ),
    "equal values of a deterministic solver": Case(
        {"a": [0.5], "b": [0.5]}, order(**CERTAIN), verdict=NOT_REPRODUCED
    ),
    "no such checkpoint": Case(
        ONE, order(checkpoint=7, **CERTAIN), verdict=INCONCLUSIVE, words="needs 1 split"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_judged(tmp_path, case):
    folder = write_results(tmp_path, auc_of(**case.values), seconds=TIMED)
    [row] = judged([case.claim], folder)
    assert row.verdict is case.verdict
    assert case.words in f"{row.measured} {row.reason}"


def test_a_claim_may_look_at_a_checkpoint(tmp_path):
    folder = write_results(tmp_path, auc_of(a=[0.9] * 20, b=[0.8] * 20))
    table = pd.read_csv(folder / "results.csv")
    table.loc[(table["checkpoint"] == 0) & (table["solver"] == "a"), "value"] = 0.1
    table.to_csv(folder / "results.csv", index=False)
    expect(
        folder,
        (order(), REPRODUCED),
        (order(checkpoint=0), NOT_REPRODUCED),
        (order(checkpoint=7), INCONCLUSIVE),
    )


@pytest.mark.parametrize(
    ("wins", "losses", "ties", "verdict"),
    [
        pytest.param(MIN_SPLITS - 1, 0, 0, INCONCLUSIVE, id="too few splits"),
        pytest.param(15, 5, 0, REPRODUCED, id="p = 0.021"),
        pytest.param(14, 6, 0, TREND_ONLY, id="p = 0.058"),
        pytest.param(10, 10, 0, NOT_REPRODUCED, id="as many wins as losses"),
        pytest.param(4, 0, 16, TREND_ONLY, id="few wins beside ties"),
        pytest.param(5, 0, 15, REPRODUCED, id="enough wins beside ties"),
        pytest.param(0, 0, 20, NOT_REPRODUCED, id="ties alone"),
    ],
)
def test_orders(tmp_path, wins, losses, ties, verdict):
    b = np.linspace(0.2, 0.9, wins + losses + ties)
    a = b + np.repeat([0.01, -0.01, 0], [wins, losses, ties])
    [row] = judged([order()], write_results(tmp_path, auc_of(a=a, b=b)))
    assert row.verdict is verdict
    assert row.runs == b.size
    assert row.reason
    assert row.measured == f"holds in {wins} of {b.size}, fails in {losses}"


@pytest.mark.parametrize(
    ("better", "worse", "wins", "fields", "verdict"),
    [
        # Best of two against one: two of three by chance.
        pytest.param(
            ["a", "b"],
            ["c"],
            16,
            {},
            TREND_ONLY,
            id="best of two, p = 0.15; 0.006 for a coin",
        ),
        pytest.param(
            ["a", "b"], ["c"], 18, {}, REPRODUCED, id="best of two, p = 0.018"
        ),
        pytest.param(
            ["c"],
            ["a", "b"],
            8,
            {},
            NOT_REPRODUCED,
            id="one against two, most splits lost, whatever chance gives",
        ),
        pytest.param(["c"], ["a", "b"], 15, {}, REPRODUCED, id="one against two"),
        # One draw of the paper: two of three, or one of three, by chance.
        pytest.param(
            ["a", "b"],
            ["c"],
            67,
            {"one_draw": True},
            NO_POWER,
            id="best of two, as by chance in one draw",
        ),
        pytest.param(
            ["a", "b"],
            ["c"],
            80,
            {"one_draw": True},
            REPRODUCED,
            id="best of two, more than by chance in one draw",
        ),
        pytest.param(
            ["c"],
            ["a", "b"],
            10,
            {"one_draw": True},
            NO_POWER,
            id="one against two, as by chance in one draw",
        ),
        pytest.param(
            ["c"],
            ["a", "b"],
            5,
            {"one_draw": True},
            NOT_REPRODUCED,
            id="one against two, less than by chance in one draw",
        ),
    ],
)
def test_the_best_of_several_is_against_chance(
    tmp_path, better, worse, wins, fields, verdict
):
    n = MIN_REPETITIONS if fields else MIN_SPLITS
    low, high = np.full(n, 0.4), np.full(n, 0.6)
    side = np.where(np.arange(n) < wins, high, low)
    values = {**dict.fromkeys(better, side), **dict.fromkeys(worse, low + 0.1)}
    folder = write_results(tmp_path, auc_of(**values))
    [row] = judged(
        [claim("order", "best", better=better, worse=worse, **fields)], folder
    )
    assert row.verdict is verdict
    assert row.measured == f"holds in {wins} of {n}, fails in {n - wins}"
    chance = len(better) / 3 if len(better) > 1 or fields else 0.5
    assert (f"against {chance:.0%} by chance" in row.reason) == (chance != 0.5)


RISK = "pnorm_risk(p=4)"  # of which less is better


def sides(better, worse, **fields):
    """Return the claim that one side of several solvers is better than another."""
    return claim("order", "better", better=better, worse=worse, **fields)


@pytest.mark.parametrize(
    ("published_claim", "verdict"),
    [
        pytest.param(order("high", "low"), REPRODUCED, id="more is better"),
        pytest.param(order("low", "high"), NOT_REPRODUCED, id="less is worse"),
        pytest.param(
            order("low", "high", metric=RISK), REPRODUCED, id="less risk is better"
        ),
        pytest.param(
            order("high", "low", metric=RISK), NOT_REPRODUCED, id="more risk is worse"
        ),
        pytest.param(
            order("high", "low", metric="dcg"), REPRODUCED, id="on the test part"
        ),
        pytest.param(
            order("low", "high", metric="dcg", part="training"),
            REPRODUCED,
            id="on the training part",
        ),
        pytest.param(
            sides(["other", "high"], ["low", "other"]), REPRODUCED, id="the best"
        ),
        pytest.param(
            sides(["low", "high"], ["between"], metric=RISK),
            REPRODUCED,
            id="the least risk",
        ),
        pytest.param(
            sides(["low", "other"], ["low", "high"], of="gap"),
            REPRODUCED,
            id="the smaller gap",
        ),
        pytest.param(
            sides(["low", "high"], ["low", "other"], of="gap"),
            NOT_REPRODUCED,
            id="the larger gap",
        ),
    ],
)
def test_compared_values_of_an_order(tmp_path, published_claim, verdict):
    low = normal(30, 0.3)
    high = normal(30, 0.7, seed=1)
    cells = auc_of(low=low, high=high, other=low - 0.01)
    cells["housing", "low", RISK, "test"] = low
    cells["housing", "high", RISK, "test"] = high
    cells["housing", "between", RISK, "test"] = (low + high) / 2
    cells["housing", "low", "dcg", "test"] = low
    cells["housing", "high", "dcg", "test"] = high
    cells["housing", "low", "dcg", "training"] = high
    cells["housing", "high", "dcg", "training"] = low
    [row] = judged([published_claim], write_results(tmp_path, cells))
    assert row.verdict is verdict


@dataclass(frozen=True)
class Curves:
    """Values of two solvers at their checkpoints, after 0.5 at w = 0."""

    smooth: list  # a checkpoint each 0.01 s
    zigzag: list  # a checkpoint each second


def write_curves(folder, curves):
    """Write results whose splits all have these curves."""
    ends = {"smooth": [1.0] * MIN_SPLITS, "zigzag": [1.0] * MIN_SPLITS}
    path = write_results(folder, auc_of(**ends)) / "results.csv"
    table = pd.read_csv(path)
    final = table[table["final"]]
    points = []
    for solver, values, seconds in (
        ("smooth", curves.smooth, 0.01),
        ("zigzag", curves.zigzag, 1.0),
    ):
        of_solver = final[final["solver"] == solver]
        for i, value in enumerate([0.5, *values]):
            point = of_solver.assign(
                checkpoint=i,
                rows_seen=i,
                wall_seconds=i * seconds,
                value=value,
                final=i == len(values),
            )
            points.append(point)
    pd.concat(points).to_csv(path, index=False)
    return path.parent


FALLING = Curves(smooth=[0.6, 0.7, 0.8, 0.79], zigzag=[0.8, 0.3, 0.785, 0.2, 0.78])
RISING = Curves(smooth=[0.3, 0.46, 0.6], zigzag=[0.1, 0.3, 0.2, 0.45])
# Tied scores may have a high value: here that of w = 0, which the first row keeps.
TIED_AT_FIRST = Curves(smooth=[0.3, 0.46], zigzag=[0.5, 0.3, 0.2, 0.45])


def test_whole_curves_are_compared(tmp_path):
    folder = write_curves(tmp_path, FALLING)
    falls = {"of": "falls", "fall_by": 0.02}
    expect(
        folder,
        # 0 of 3 steps against 2 of 4
        (order("smooth", "zigzag", **falls), REPRODUCED),
        (order("zigzag", "smooth", **falls), NOT_REPRODUCED),
        # no step of either
        (order("smooth", "zigzag", of="falls", fall_by=0.6), NOT_REPRODUCED),
        # 0.1 against 0.279
        (order("smooth", "zigzag", of="shortfall"), REPRODUCED),
        (order("zigzag", "smooth", of="shortfall"), NOT_REPRODUCED),
        # 0.7 against 0.2
        (order("smooth", "zigzag", checkpoint=2, worse_checkpoint=4), REPRODUCED),
        (order("smooth", "zigzag", checkpoint=2, worse_checkpoint=3), NOT_REPRODUCED),
    )


@pytest.mark.parametrize(
    ("curves", "within", "slower", "faster"),
    [
        pytest.param(FALLING, 0.001, 1.0, 0.03, id="to 0.779"),
        pytest.param(FALLING, 0.1, 1.0, 0.02, id="to 0.68"),
        pytest.param(FALLING, None, 5.0, 0.04, id="to the final weights"),
        pytest.param(
            RISING, 0.01, 4.0, 0.02, id="to the final value of the worse side, 0.44"
        ),
        pytest.param(
            TIED_AT_FIRST, 0.01, 4.0, 0.02, id="to 0.44, which w = 0 does not count for"
        ),
    ],
)
def test_times_to_an_accuracy(tmp_path, curves, within, slower, faster):
    fields = {"slower": "zigzag", "faster": "smooth", "metric": "auc"}
    published_claim = claim("ratio", "30", within=within, **fields)
    [row] = judged([published_claim], write_curves(tmp_path, curves))
    assert float(row.measured) == pytest.approx(slower / faster, rel=5e-3)


@pytest.mark.parametrize(
    ("curves", "n_splits"),
    [
        pytest.param(FALLING, MIN_SPLITS, id="two of four steps"),
        pytest.param(RISING, 0, id="no step"),
        pytest.param(TIED_AT_FIRST, 0, id="from 0.5 to 0.3, but 0.5 is of w = 0"),
    ],
)
def test_steps_that_fall_by_more_than_15_percent(tmp_path, curves, n_splits):
    published_claim = order("smooth", "zigzag", of="falls", fall_by=0.15)
    [row] = judged([published_claim], write_curves(tmp_path, curves))
    assert row.measured == f"holds in {n_splits} of {MIN_SPLITS}, fails in 0"


def test_small_spread(tmp_path):
    draws = normal(30, spread=0.02)
    error = draws.std(ddof=1) / 30**0.5
    low = claim("spread", "small", solver="a", at_most=0.99 * error)
    high = claim("spread", "small", solver="a", at_most=1.01 * error)
    [row, _] = expect(
        write_results(tmp_path, auc_of(a=draws)),
        (high, REPRODUCED),
        (low, NOT_REPRODUCED),
    )
    assert float(row.measured) == pytest.approx(error, rel=0.01)
    expect(
        write_results(tmp_path / "few", auc_of(a=draws[: MIN_SPLITS - 1])),
        (high, INCONCLUSIVE),
    )


@dataclass(frozen=True)
class Shortfall:
    """Values on two data sets, and verdicts on how far b falls behind."""

    values: dict  # by solver
    more_than_a: Verdict
    by_over_5_percent: Verdict
    n_splits: int = MIN_SPLITS


SHORTFALLS = {
    "b by a half, a by a tenth": Shortfall(
        {"a": (0.9, 0.8), "b": (1.0, 0.5)},
        more_than_a=REPRODUCED,
        by_over_5_percent=REPRODUCED,
    ),
    "b by a tenth, a by a half": Shortfall(
        {"a": (0.5, 1.0), "b": (1.0, 0.9)},
        more_than_a=NOT_REPRODUCED,
        by_over_5_percent=REPRODUCED,
    ),
    "b by 4 %, a by 1 %": Shortfall(
        {"a": (1.0, 0.99), "b": (0.96, 1.0)},
        more_than_a=REPRODUCED,
        by_over_5_percent=NOT_REPRODUCED,
    ),
    "both, behind another solver": Shortfall(
        {"a": (0.8, 0.8), "b": (0.9, 0.9), "c": (1.0, 1.0)},
        more_than_a=NOT_REPRODUCED,
        by_over_5_percent=REPRODUCED,
    ),
    "too few splits": Shortfall(
        {"a": (0.9, 0.8), "b": (1.0, 0.5)},
        more_than_a=INCONCLUSIVE,
        by_over_5_percent=INCONCLUSIVE,
        n_splits=MIN_SPLITS - 1,
    ),
}


@pytest.mark.parametrize("case", SHORTFALLS.values(), ids=SHORTFALLS)
def test_consistency_is_the_largest_shortfall(tmp_path, case):
    cells = {}
    for solver, (on_housing, on_adult) in case.values.items():
        cells["housing", solver, "auc", "test"] = [on_housing] * case.n_splits
        cells["adult", solver, "auc", "test"] = [on_adult] * case.n_splits
    fields = {
        "datasets": ["housing", "adult"],
        "metric": "auc",
        "among": list(case.values),
        "unsteady": ["b"],
    }
    folder = write_results(tmp_path, cells)
    expect(
        folder,
        (claim("consistency", "the most", steady=["a"], **fields), case.more_than_a),
        (
            claim("consistency", "large", margin=0.05, **fields),
            case.by_over_5_percent,
        ),
    )


@pytest.mark.parametrize(
    ("means", "spread", "n", "verdict"),
    [
        pytest.param((0.80, 0.77, 0.80), 0.01, 20, REPRODUCED, id="varies less"),
        pytest.param((0.80, 0.74, 0.80), 0.01, 20, NOT_REPRODUCED, id="varies more"),
        pytest.param(
            (0.80, 0.77, 0.80),
            0.2,
            20,
            INCONCLUSIVE,
            id="varies less, with a large spread",
        ),
        pytest.param((0.80, 0.80, 0.80), 0.0, 20, REPRODUCED, id="does not vary"),
        pytest.param(
            (0.80, 0.70, 0.80),
            0.0,
            20,
            NOT_REPRODUCED,
            id="varies more, without spread",
        ),
        pytest.param((0.80, 0.79, 0.81), 0.01, 19, INCONCLUSIVE, id="too few splits"),
    ],
)
def test_variation_over_a_sweep(tmp_path, means, spread, n, verdict):
    folder = write_results(tmp_path, auc_of(a=[0.5] * n))
    table = pd.read_csv(folder / "results.csv").query("final")
    points = [
        table.assign(value=normal(n, mean, spread, seed=i))
        for i, mean in enumerate(means)
    ]
    write_sweep(folder, "batch_size", points)
    fields = {"dataset": "housing", "solver": "a", "metric": "auc", "at_most": 0.05}
    [row] = judged([claim("variation", "5%", **fields)], folder)
    assert row.verdict is verdict
    assert row.runs == n
    assert row.measured.endswith("%")


@pytest.fixture
def sweep(tmp_path):
    """Results of two solvers at three points of a sweep."""
    folder = write_results(tmp_path, auc_of(a=[0.5] * 20, b=[0.5] * 20))
    table = pd.read_csv(folder / "results.csv").query("final")
    of_a = table[table["solver"] == "a"]
    of_b = table[table["solver"] == "b"]
    points = []
    for mean_of_a, mean_of_b in ((0.8, 0.5), (0.79, 0.49), (0.4, 0.48)):
        at_point = [
            of_a.assign(value=normal(20, mean_of_a, 1e-4)),
            of_b.assign(value=normal(20, mean_of_b, 1e-4)),
        ]
        points.append(pd.concat(at_point))
    write_sweep(folder, "batch_size", points)
    return folder


FIRST, SECOND, THIRD = "batch_size=0", "batch_size=1", "batch_size=2"


def small_variation(**fields):
    """Return the claim that solver a varies by 5 % at most."""
    return claim("variation", "5%", solver="a", metric="auc", at_most=0.05, **fields)


@pytest.mark.parametrize(
    ("published_claim", "verdict"),
    [
        pytest.param(
            order("a", "a", at=SECOND, worse_at=THIRD),
            REPRODUCED,
            id="one solver at two points",
        ),
        pytest.param(
            order("a", "a", at=THIRD, worse_at=SECOND),
            NOT_REPRODUCED,
            id="one solver at two points, turned",
        ),
        pytest.param(
            order("a", "b", at=THIRD), NOT_REPRODUCED, id="two solvers at a point"
        ),
        pytest.param(order("b", "a", of="variation"), REPRODUCED, id="less variation"),
        pytest.param(
            order("a", "b", of="variation"), NOT_REPRODUCED, id="more variation"
        ),
        pytest.param(
            small_variation(points=[FIRST, SECOND]), REPRODUCED, id="at two points"
        ),
        pytest.param(small_variation(), NOT_REPRODUCED, id="at all points"),
    ],
)
def test_points_of_a_sweep_are_compared(sweep, published_claim, verdict):
    [row] = judged([published_claim], sweep)
    assert row.verdict is verdict


def test_a_point_that_the_sweep_has_not_is_named(sweep):
    [row] = judged([order("a", "b", at="batch_size=9")], sweep)
    assert row.verdict is NO_DATA
    tells(row.reason, "batch_size=9")


TURNED = claim("ratio", "3", slower="a", faster="b")


@pytest.mark.parametrize(
    ("published_claim", "verdict", "measured"),
    [
        pytest.param(ratio("3"), REPRODUCED, "3", id="equal"),
        pytest.param(ratio("1.6"), REPRODUCED, "3", id="less than twice the print"),
        pytest.param(ratio("5.9"), REPRODUCED, "3", id="more than half of the print"),
        pytest.param(ratio("1.4"), TREND_ONLY, "3", id="more than twice the print"),
        pytest.param(ratio("6.1"), TREND_ONLY, "3", id="less than half of the print"),
        pytest.param(ratio("1.4", at_least=True), REPRODUCED, "3", id="at least"),
        pytest.param(
            ratio("3.1", at_least=True), TREND_ONLY, "3", id="less than at least"
        ),
        pytest.param(
            ratio("3", **DEVIATION), WITH_DEVIATION, "3", id="with a deviation"
        ),
        pytest.param(TURNED, NOT_REPRODUCED, "0.333", id="the other side is faster"),
    ],
)
def test_ratios_of_times(tmp_path, published_claim, verdict, measured):
    values = [0.5] * MIN_TIMED_SPLITS
    folder = write_results(tmp_path, auc_of(a=values, b=values), seconds=TIMED)
    [row] = judged([published_claim], folder)
    assert row.verdict is verdict
    assert row.measured == measured
    assert row.runs == MIN_TIMED_SPLITS


def test_a_ratio_is_the_median_over_paired_splits(tmp_path):
    values = [0.5] * 5
    in_reverse = dict.fromkeys(range(4, -1, -1), 0.5)
    folder = write_results(tmp_path, auc_of(a=values, b=in_reverse))
    table = pd.read_csv(folder / "results.csv")
    is_slow = table["solver"] == "b"
    factors = np.where(is_slow, [2, 9, 3, 4, 1] * 4, 1)
    table["wall_seconds"] = (table["split"] + 1.0) * factors
    table.to_csv(folder / "results.csv", index=False)
    final = table[table["final"]].pivot(
        index="split", columns="solver", values="wall_seconds"
    )
    median = (final["b"] / final["a"]).median()
    [row] = judged([ratio()], folder)
    assert float(row.measured) == pytest.approx(median, rel=1e-2)


@pytest.mark.parametrize(
    "timed",
    [
        pytest.param(ratio(), id="ratio"),
        pytest.param(order(metric=WALL_SECONDS), id="order"),
    ],
)
@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        pytest.param(
            {"timing": lambda solver: "parallel" if solver == "b" else "sequential"},
            NO_DATA,
            "trials",
            id="one of them in parallel",
        ),
        pytest.param({"run": str}, NO_DATA, "runs", id="two runs"),
        pytest.param({"machine": str}, NO_DATA, "machines", id="two machines"),
        pytest.param(
            {"run": lambda solver: "2b" if solver == "c" else "1a"},
            REPRODUCED,
            "",
            id="another run of a solver that is not compared",
        ),
    ],
)
def test_times_must_be_of_one_sequential_run(tmp_path, timed, changes, verdict, words):
    """Of those that are compared; values may come from two runs."""
    cells = auc_of(**dict.fromkeys("abc", [0.5] * MIN_SPLITS))
    folder = write_results(tmp_path, cells, seconds=TIMED | {"c": 1.0}, **changes)
    of_times, _ = expect(folder, (timed, verdict), (order(), NOT_REPRODUCED))
    names(of_times.reason, words)


@pytest.mark.parametrize(
    ("quantity", "printed", "fields", "verdict", "measured"),
    [
        pytest.param("rows", "506", {}, REPRODUCED, "506", id="rows"),
        pytest.param("rows", "507", {}, NOT_REPRODUCED, "506", id="other rows"),
        pytest.param("features", "11", {}, NOT_REPRODUCED, "13", id="other features"),
        pytest.param("columns", "14", DEVIATION, WITH_DEVIATION, "14", id="columns"),
        pytest.param(
            "columns", "13", DEVIATION, NOT_REPRODUCED, "14", id="other columns"
        ),
        pytest.param("positives", "35", {}, REPRODUCED, "35", id="positives"),
        pytest.param("negatives", "471", {}, REPRODUCED, "471", id="negatives"),
        pytest.param("share", "6.92%", {}, REPRODUCED, "6.916996", id="share"),
        pytest.param(
            "share", "6.93%", {}, NOT_REPRODUCED, "6.916996", id="other share"
        ),
        pytest.param(
            "positives_per_fold",
            "12",
            {},
            REPRODUCED,
            "11.666667",
            id="positives of a fold",
        ),
        pytest.param(
            "positives_per_fold",
            "11",
            {},
            NOT_REPRODUCED,
            "11.666667",
            id="other positives of a fold",
        ),
        pytest.param(
            "training_rows", "0.4K", {}, REPRODUCED, "400", id="training rows"
        ),
    ],
)
def test_facts(tmp_path, quantity, printed, fields, verdict, measured):
    folder = write_results(tmp_path, auc_of(a=[0.5]), folds=3)
    [row] = judged([claim("fact", printed, of=quantity, **fields)], folder)
    assert row.verdict is verdict
    assert row.measured == measured


MINIMA = pd.DataFrame(
    {"dataset": ["housing", "letter"], "problem": "struct", "value": [1.0, 0.0]}
)
AT_ZERO = {"solver": "b", "study": "minima", "config": "kar2015/minima", "cell": {}}


@pytest.mark.parametrize(
    ("studies", "verdict", "words", "runs"),
    [
        pytest.param(
            {"minima": MINIMA}, NO_POWER, "b w = 0 housing", MIN_SPLITS, id="at zero"
        ),
        pytest.param(
            {"minima": MINIMA.assign(value=0.0)},
            REPRODUCED,
            "",
            MIN_SPLITS,
            id="elsewhere",
        ),
        pytest.param({}, NO_DATA, "kar2015/minima", 0, id="no study"),
        pytest.param(
            {"minima": MINIMA[1:]}, NO_DATA, "housing", 0, id="not this data set"
        ),
    ],
)
@pytest.mark.parametrize(
    "published_claim",
    [
        pytest.param(order(minimum=AT_ZERO), id="order"),
        pytest.param(ratio(minimum=AT_ZERO), id="ratio"),
    ],
)
def test_nothing_rests_on_a_problem_whose_minimum_is_at_zero(
    tmp_path, published_claim, studies, verdict, words, runs
):
    """What the solver returns is a point on the way to a ranking of nothing."""
    cells = auc_of(a=[0.9] * MIN_SPLITS, b=[0.5] * MIN_SPLITS)
    folder = write_results(tmp_path, cells, seconds=TIMED)
    [row] = judged([published_claim], folder, values=studies)
    assert row.verdict is verdict
    assert row.runs == runs
    for word in words.split():
        assert word in row.reason


def test_the_others_are_compared_without_it(tmp_path):
    cells = auc_of(a=[0.7] * MIN_SPLITS, b=[0.9] * MIN_SPLITS, c=[0.6] * MIN_SPLITS)
    folder = write_results(tmp_path, cells)
    both = claim("order", "better", better=["a"], worse=["b", "c"], minimum=AT_ZERO)
    consistent = claim(
        "consistency",
        "steady",
        datasets=["housing"],
        metric="auc",
        among=["a", "b", "c"],
        steady=["a"],
        unsteady=["b", "c"],
        minimum=AT_ZERO,
    )
    expect(
        folder,
        (both, NOT_REPRODUCED),
        (consistent, NOT_REPRODUCED),
        values={"minima": MINIMA.assign(value=0.0)},
    )
    rows = expect(
        folder, (both, REPRODUCED), (consistent, REPRODUCED), values={"minima": MINIMA}
    )
    for row in rows:
        tells(row.reason, "b w = 0")


def better_than(*worse):
    return claim("order", "better", better=["a"], worse=list(worse))


@pytest.fixture
def four_solvers(tmp_path):
    """Results in which a is the best of four."""
    worse = {name: [0.5] * MIN_SPLITS for name in "bcd"}
    return write_results(tmp_path, auc_of(a=[0.9] * MIN_SPLITS, **worse))


HALF = MIN_SPLITS // 2


def test_no_value_of_fits_that_were_stopped_decides(four_solvers):
    """Where half of them were stopped."""
    stop(four_solvers, "b", HALF)
    stopped, other = expect(
        four_solvers, (better_than("b"), INCONCLUSIVE), (better_than("c"), REPRODUCED)
    )
    assert stopped.measured == "holds in 20 of 20, fails in 0"
    tells(stopped.reason, f"b {HALF} {MIN_SPLITS} housing")
    assert other.reason.startswith("sign")


def test_values_decide_if_fewer_than_half_of_the_fits_were_stopped(four_solvers):
    stop(four_solvers, "b", HALF - 1)
    [stopped] = expect(four_solvers, (better_than("b"), REPRODUCED))
    assert stopped.measured == "holds in 20 of 20, fails in 0"


@pytest.mark.parametrize(
    ("n_stopped", "n_left_out"),
    [
        pytest.param(HALF, [1, 2], id="half"),
        pytest.param(HALF - 1, [0, 0], id="fewer than half"),
    ],
)
def test_solvers_whose_fits_were_stopped_are_left_out(
    four_solvers, n_stopped, n_left_out
):
    stop(four_solvers, "b", n_stopped)
    [row] = expect(four_solvers, (better_than("b", "c"), REPRODUCED))
    assert row.reason.count("left out") == n_left_out[0]
    stop(four_solvers, "c", n_stopped)
    [row] = expect(four_solvers, (better_than("b", "c", "d"), REPRODUCED))
    assert row.reason.count("left out") == n_left_out[1]


@pytest.mark.parametrize(
    ("n_stopped", "verdict", "verdict_on_times"),
    [
        pytest.param(HALF, INCONCLUSIVE, INCONCLUSIVE, id="half"),
        # all times are equal
        pytest.param(HALF - 1, REPRODUCED, NOT_REPRODUCED, id="fewer than half"),
    ],
)
def test_no_fits_decide_whose_tuning_was_stopped(
    four_solvers, n_stopped, verdict, verdict_on_times
):
    """With another parameter both the value and the time would be others."""
    stop(four_solvers, "b", n_stopped, "tuning limit")
    rows = expect(
        four_solvers,
        (order(), verdict),
        (order(metric=WALL_SECONDS), verdict_on_times),
    )
    for row in rows:
        tells(row.reason, f"tuning limit {n_stopped}")


@pytest.mark.parametrize(
    ("n", "verdict"),
    [
        pytest.param(HALF - 1, REPRODUCED, id="fewer than half"),
        pytest.param(HALF, INCONCLUSIVE, id="half"),
    ],
)
def test_a_minimum_that_was_not_reached_decides_nothing(tmp_path, n, verdict):
    """But the way to it may be judged."""
    values = [0.9] * MIN_SPLITS
    folder = write_results(tmp_path, auc_of(a=values, b=[0.5] * MIN_SPLITS))
    table = pd.read_csv(
        folder / "results.csv", keep_default_na=False, dtype={"converged": str}
    )
    table.loc[table["solver"] == "b", "converged"] = (table["split"] >= n).astype(str)
    table.to_csv(folder / "results.csv", index=False)
    cell = {"quantity": "w = 0 is a minimiser"}
    minimum = Minimum(solver="b", study="study", config="letter", cell=cell)
    study = pd.DataFrame({"dataset": ["housing"], **cell, "value": [0.0]})
    [row, _] = expect(
        folder,
        (order(minimum=minimum), verdict),
        (order(), REPRODUCED),
        values={"study": study},
    )
    tells(row.reason, f"max_iter {n} {MIN_SPLITS} housing")


@pytest.mark.parametrize(
    ("published_claim", "verdict"),
    [
        pytest.param(order(metric=WALL_SECONDS), REPRODUCED, id="it is too long still"),
        pytest.param(
            order("b", "a", metric=WALL_SECONDS), INCONCLUSIVE, id="it may be longer"
        ),
        pytest.param(ratio(at_least=True), REPRODUCED, id="the ratio is enough"),
        pytest.param(
            ratio("100", at_least=True), INCONCLUSIVE, id="the ratio may be larger"
        ),
        pytest.param(
            ratio(at_least=True, within=0.1, metric="auc"),
            INCONCLUSIVE,
            id="to an accuracy it is no bound",
        ),
    ],
)
def test_a_time_that_was_cut_short_is_a_lower_bound(tmp_path, published_claim, verdict):
    values = [0.5] * MIN_SPLITS
    folder = write_results(tmp_path, auc_of(a=values, b=values), seconds=TIMED)
    stop(folder, "b", MIN_SPLITS)
    [row] = judged([published_claim], folder)
    assert row.verdict is verdict
    tells(row.reason, "b 20 20 housing")


def test_a_ratio_counts_the_stopped_trials_that_have_its_metric(tmp_path):
    """Of 20 trials 10 have the metric, and 5 of these were stopped: too many."""
    cells = auc_of(a=[0.5] * MIN_SPLITS, b=[0.5] * MIN_SPLITS)
    for solver in "ab":
        cells["housing", solver, "f1", "test"] = [0.5] * (MIN_SPLITS // 2)
    folder = write_results(tmp_path, cells, seconds=TIMED)
    stop(folder, "b", MIN_SPLITS // 4)
    to_f1, to_auc = expect(
        folder,
        (ratio(within=0.1, metric="f1"), INCONCLUSIVE),
        (ratio(within=0.1, metric="auc"), REPRODUCED),
    )
    assert to_f1.reason == "a limit stopped b in 5 of 10 on housing"
    tells(to_auc.reason, "b 5 20 housing")


def test_no_mean_of_one_draw_decides_where_half_of_the_fits_were_stopped(tmp_path):
    folder = write_results(tmp_path, auc_of(a=normal(100)))
    [row] = judged([mean("0.8")], folder)
    assert row.verdict.holds
    stop(folder, "a", 50)
    [row] = judged([mean("0.8")], folder)
    assert row.verdict is INCONCLUSIVE
    assert row.reason == "a limit stopped a in 50 of 100 on housing"


def test_times_to_an_accuracy_need_a_metric():
    with raises(ValueError, "within metric"):
        ratio(within=0.1)


def stop(folder, solver, n, by="limit"):
    """Let a limit stop a solver in the first splits."""
    table = pd.read_csv(folder / "results.csv", keep_default_na=False)
    table.loc[(table["solver"] == solver) & (table["split"] < n), "stopped"] = by
    table.to_csv(folder / "results.csv", index=False)


@pytest.mark.parametrize(
    ("printed", "verdict"), [("0.5", REPRODUCED), ("0.9", NOT_REPRODUCED)]
)
def test_what_another_source_says_was_printed_is_never_decided(
    tmp_path, printed, verdict
):
    folder = write_results(tmp_path, auc_of(a=normal(20, 0.5)))
    firsthand = mean(printed, runs=1, secondhand=False)
    secondhand = mean(printed, runs=1, secondhand=True)
    decided, undecided = expect(
        folder, (firsthand, verdict), (secondhand, INCONCLUSIVE)
    )
    assert undecided.reason.startswith(f"would be {verdict}; ")
    assert undecided.measured == decided.measured
    assert apart(firsthand) == ""
    assert apart(secondhand) == ", second-hand"


def test_what_was_chosen_after_our_results_can_fail_but_not_pass(tmp_path):
    folder = write_results(tmp_path, auc_of(a=normal(20, 0.9), b=normal(20)))
    passing = order("a", "b", after_results=True)
    failing = order("b", "a", after_results=True)
    [passed, _] = expect(folder, (passing, NO_POWER), (failing, NOT_REPRODUCED))
    tells(passed.reason, "after results")

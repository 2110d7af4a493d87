"""Verdicts on what studies compute, and on statements."""

import json

import numpy as np
import pandas as pd
import pytest

from precbench.claims import read_evidence
from precbench.claims.kinds.stated import Reading
from precbench.claims.verdicts import Verdict, fitted_slope
from precbench.errors import InputError
from tests.claims.helpers import claim, judged
from tests.sentences import raises, tells

TABLE = pd.DataFrame(
    {"scale": [1.0, 0.5] * 2, "list": ["f1", "f1", "f2", "f2"], "value": [4.0, 1.25, 3.0, 7.0]}
)

HALVED = Reading(cell={"scale": 0.5}, deviation="half-scores")

F1 = {"cell": {"list": "f1"}, "readings": (Reading(cell={"scale": 1.0}), HALVED)}

LEAST = {"argmin": "list", "among": ["f1", "f2"], "readings": F1["readings"]}

FULL, HALF = ({"cell": {"list": "f1", "scale": scale}} for scale in (1.0, 0.5))

CUT_OFF = {"truncated": True, "deviations": ["truncated-cell"]}


DEVIATING = "reproduced with deviation"


@pytest.mark.parametrize(
    ("printed", "fields", "verdict", "deviation", "measured"),
    [
        ("4", F1, "reproduced", "", "4"),
        ("1.3", F1, DEVIATING, "half-scores", "1.25"),
        ("5", F1, "not reproduced", "", "4"),
        ("1.2", HALF, "reproduced", "", "1.25"),
        ("1.1", HALF, "not reproduced", "", "1.25"),
        ("1.2", HALF | CUT_OFF, DEVIATING, "truncated-cell", "1.25"),
        ("1.3", HALF | CUT_OFF, "not reproduced", "truncated-cell", "1.25"),
        ("f_2", LEAST, "reproduced", "", "f2"),
        ("f_1", LEAST, DEVIATING, "half-scores", "f1"),
        ("f_3", LEAST, "not reproduced", "", "f2"),
        ("four", FULL | {"expected": 4.0}, "reproduced", "", "4"),
        ("four", FULL | {"expected": 4.1}, "not reproduced", "", "4"),
        ("many", FULL | {"at_least": 4.0}, "reproduced", "", "4"),
        ("many", FULL | {"at_least": 4.1}, "not reproduced", "", "4"),
        ("some", FULL | {"at_least": 0.0}, "reproduced", "", "4"),
    ],
)
def test_exact_numbers(printed, fields, verdict, deviation, measured):
    [row] = judged([claim("exact", printed, **fields)], values={"toy": TABLE})
    assert (row.verdict, row.deviation, row.measured) == (verdict, deviation, measured)
    assert row.runs == 1


CURVES = pd.DataFrame(
    {
        "horizon": [10, 100] * 4,
        "quantity": ["regret"] * 2 + ["bound"] * 2 + ["lower"] * 2 + ["w = 0"] * 2,
        "value": [0.2, 0.1, 0.8, 0.3, 0.15, 0.05, 1.0, 0.2],
    }
)

REGRET = {"cell": {"quantity": "regret"}, "by": {"quantity": "bound"}}


IDLE_AT, LOWER = ({"quantity": name} for name in ("w = 0", "lower"))
BETWEEN = {"cell": REGRET["cell"] | {"horizon": 100}, "by": REGRET["cell"] | {"horizon": 10}}
BELOW = [  # fields, verdict, and what was measured
    (REGRET, "reproduced", "holds in 2 of 2, ratio 0.25 to 0.333"),
    (REGRET | {"factor": 0.3}, "not reproduced", "holds in 1 of 2, ratio 0.25 to 0.333"),
    (REGRET | {"factor": 0.3, "open_constant": True}, "inconclusive", ""),
    (REGRET | {"factor": 0.2, "margin": 0.04}, "reproduced", ""),
    (REGRET | {"deviations": ["x"]}, "reproduced with deviation", ""),
    (REGRET | {"by": LOWER}, "not reproduced", ""),
    (REGRET | {"by": LOWER | {"horizon": 10}}, "not reproduced", "1 of 2, ratio 0.667 to 1.33"),
    (BETWEEN, "reproduced", "0.1 against 0.2"),
    (REGRET | {"open_constant": True}, "trend only", ""),
    (REGRET | {"open_constant": True, "trivial": LOWER}, "no power", ""),
    (REGRET | {"trivial": IDLE_AT}, "reproduced", ""),
    (REGRET | {"trivial": LOWER}, "no power", ""),
    (REGRET | {"trivial": IDLE_AT | {"horizon": 10}}, "reproduced", ""),
    (REGRET | {"trivial": IDLE_AT | {"horizon": 100}}, "no power", ""),
    (REGRET | {"by": LOWER, "trivial": LOWER}, "not reproduced", ""),
]


@pytest.mark.parametrize(("fields", "verdict", "measured"), BELOW)
def test_values_below_others(fields, verdict, measured):
    [row] = judged([claim("bound", "below", **fields)], values={"toy": CURVES})
    assert row.verdict == verdict and measured in row.measured


@pytest.mark.parametrize(("telling", "verdict"), [(1, "no power"), (2, "reproduced")])
def test_at_least_half_of_the_bounds_can_fail(telling, verdict):
    """One of four is no evidence; two are, however far the others lie above w = 0."""
    trivial = [3.0] * telling + [1.0] * (4 - telling)
    quantities = np.repeat(["regret", "bound", "w = 0"], 4)
    values = [0.5] * 4 + [2.0] * 4 + trivial
    table = pd.DataFrame({"size": [1, 2, 3, 4] * 3, "quantity": quantities, "value": values})
    fields = REGRET | {"trivial": IDLE_AT}
    [row] = judged([claim("bound", "below", **fields)], values={"toy": table})
    assert row.verdict == verdict
    tells(row.reason, f"{telling} 4")


def test_nothing_against_nothing():
    """0 is no more than 0, whatever a method does; a control that is above it shows otherwise."""
    table = CURVES.assign(value=[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    for fields, verdict in ((REGRET, "no power"), (REGRET | {"trivial": LOWER}, "reproduced")):
        [row] = judged([claim("bound", "below", **fields)], values={"toy": table})
        assert row.verdict == verdict


SIZES = np.array([100.0, 200, 400, 800, 1600])


def falling(*powers, noise=0.0):
    """Return curves that fall or grow with these powers of the sizes."""
    rng = np.random.default_rng(0)
    noises = [np.exp(noise * rng.standard_normal(len(SIZES))) for _ in powers]
    columns = {"size": SIZES, "quantity": "deviation"}
    curves = [
        pd.DataFrame({"data": str(i), **columns, "value": 3 * SIZES**power * noises[i]})
        for i, power in enumerate(powers)
    ]
    return pd.concat(curves, ignore_index=True)


def rate(exponent=-0.5, **fields):
    fields = {"cell": {"quantity": "deviation"}, "against": "size", "exponent": exponent} | fields
    return claim("rate", "O(1 / sqrt(n))", **fields)


@pytest.mark.parametrize(
    ("powers", "noise", "fields", "verdict"),
    [
        ((-0.5,), 0.02, {}, "trend only"),
        ((-0.9, -0.5), 0.02, {}, "trend only"),  # an upper bound may be loose
        ((-0.4,), 0.01, {}, "inconclusive"),  # no size refutes an O
        ((-0.5, -0.5, -0.4), 0.01, {}, "inconclusive"),
        ((-0.42, -0.42, -0.42), 0.08, {}, "trend only"),  # one of three would exclude it alone
        ((-0.4,), 1.0, {}, "no power"),  # nor can it be told from one that does not fall
        ((-0.5,), 0.02, {"trivial": -0.49}, "no power"),
        ((2.0,), 0.02, {"exponent": 2}, "trend only"),
        ((1.0,), 0.02, {"exponent": 2}, "trend only"),
        ((2.2,), 0.02, {"exponent": 2}, "inconclusive"),
        ((0.0,), 0.02, {"exponent": 0, "trivial": 0.5}, "trend only"),
        ((0.3,), 0.02, {"exponent": 0, "trivial": 0.5}, "inconclusive"),
        ((-0.5,), 0.02, {"deviations": ["half-scores"]}, "trend only"),
    ],
)
def test_rates_show_or_do_not(powers, noise, fields, verdict):
    [row] = judged([rate(**fields)], values={"toy": falling(*powers, noise=noise)})
    assert row.verdict == verdict, row
    assert row.deviation == " ".join(fields.get("deviations", []))
    assert row.runs == len(SIZES) * len(powers) and row.reason
    if len(powers) == 1:
        tells(row.measured, "slope")


def test_a_rate_of_nothing_has_no_power():
    """A curve at 0 says nothing, and neither do three of which two lie there."""
    table = falling(-0.5, noise=0.02)
    nothing = [table.assign(data=name, value=0.0) for name in "ab"]
    for curves in (nothing, [table, *nothing]):
        [row] = judged([rate()], values={"toy": pd.concat(curves)})
        assert row.verdict is Verdict.NO_POWER and row.runs == len(SIZES) * len(curves)
    [row] = judged([rate()], values={"toy": pd.concat([table, nothing[0]])})
    assert row.verdict is Verdict.TREND_ONLY
    [row] = judged([rate()], values={"toy": table[:2]})
    assert row.verdict is Verdict.NO_POWER  # two points have a slope, but no interval


def test_a_rate_against_the_values_of_the_stated_one():
    """And against n log n."""
    slow = falling(-0.25, noise=0.01)
    stated = slow.assign(quantity="rate", value=SIZES**-0.25)
    fields = {"cell": {"quantity": "deviation"}, "against": "size", "by": {"quantity": "rate"}}
    about = claim("rate", "O(n^(-1/4))", **fields)
    for power, verdict in ((-0.25, "trend only"), (-0.5, "inconclusive")):
        of_stated = stated.assign(value=SIZES**power)
        [row] = judged([about], values={"toy": pd.concat([slow, of_stated])})
        assert row.verdict == verdict
    cost = slow.assign(value=SIZES * np.log(SIZES) * np.exp([0, 0.01, -0.01, 0.02, 0]))
    for times_log, verdict in ((True, "trend only"), (False, "inconclusive")):
        [row] = judged([rate(1, times_log=times_log)], values={"toy": cost})
        assert row.verdict == verdict
    for wrong in ({"exponent": -1}, {"times_log": True}):
        with raises(ValueError, "by"):
            claim("rate", "O(n)", **fields, **wrong)
    with raises(ValueError, "exponent"):
        claim("rate", "O(n)", cell={}, against="size")


def test_the_interval_of_a_slope_covers_it():
    rng = np.random.default_rng(1)
    x = np.log(SIZES)
    covered = [
        (found := fitted_slope(x, np.exp(1 - 0.5 * x + 0.2 * rng.standard_normal(len(x))))).low
        <= -0.5
        <= found.high
        for _ in range(1000)
    ]
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize(
    ("about", "table", "what"),
    [
        (claim("bound", "below", **REGRET | {"by": {"quantity": "regrets"}}), CURVES, "2 0"),
        (claim("bound", "below", **REGRET | {"by": {"colour": "red"}}), CURVES, "colour"),
        (claim("exact", "4", cell={"list": "f1"}), TABLE, "2"),
        (claim("exact", "4", cell={"list": "f9"}), TABLE, "0"),
        (claim("exact", "4", cell={"colour": "red"}), TABLE, "colour"),
    ],
)
def test_values_that_cannot_be_compared(about, table, what):
    with raises(InputError, f"toy/table-1/0 {what}"):
        judged([about], values={"toy": table})


def test_a_study_of_smoke_size_decides_nothing(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    about = {"schema": 1, "name": "toy", "title": "Toy", "source": None, "kind": "lemma-7"}
    CURVES.to_csv(folder / "values.csv", index=False)
    for smoke in (False, True):
        text = json.dumps({**about, "parameters": {}, "smoke": smoke})
        (folder / "illustration.json").write_text(text)
        evidence = read_evidence([tmp_path])
        assert evidence.has_results and bool(evidence.values) != smoke
        [row] = judged([claim("bound", "below", **REGRET)], tmp_path, values=evidence.values)
        assert row.verdict == ("no data" if smoke else "reproduced")


FORMULA = {"reason": "a formula"}


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        (FORMULA | {"config": "letter"}, Verdict.NOT_TESTABLE),
        (FORMULA | {"config": "kar2099/fig1"}, Verdict.NOT_TESTABLE),
        (FORMULA | {"deviations": ["half-scores"]}, Verdict.NOT_TESTABLE),
        ({"untested": "no experiment varies n"}, Verdict.NO_CONFIG),
    ],
)
def test_statements_are_not_testable(fields, verdict):
    """Whatever was measured, and whether or not a config stands beside them."""
    [row] = judged([claim("statement", "1 / n", **fields)])
    assert (row.verdict, row.runs, row.measured, row.kind) == (verdict, 0, "", "statement")
    assert row.reason == fields.get("reason", fields.get("untested"))
    assert row.deviation == " ".join(fields.get("deviations", []))


@pytest.mark.parametrize("fields", [{}, FORMULA | {"untested": "no experiment varies n"}])
def test_a_statement_has_one_reason(fields):
    with raises(ValueError, "reason"):
        claim("statement", "1 / n", **fields)

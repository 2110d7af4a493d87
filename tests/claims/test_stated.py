"""Verdicts on what studies compute, and on statements."""

import json

import numpy as np
import pandas as pd
import pytest

from precbench.claims import read_evidence
from precbench.claims.kinds.stated import Reading
from precbench.claims.verdicts import fitted_slope
from precbench.core.errors import InputError
from tests.claims.helpers import claim, judged
from tests.sentences import raises

YES, NO, DEVIATING = "reproduced", "not reproduced", "reproduced with deviation"
TREND, IDLE, UNDECIDED = "trend only", "no power", "inconclusive"

TABLE = pd.DataFrame(
    {
        "scale": [1.0, 0.5] * 2,
        "list": ["f1", "f1", "f2", "f2"],
        "value": [4.0, 1.25, 3.0, 7.0],
    }
)
HALVED = Reading(cell={"scale": 0.5}, deviation="half-scores")
F1 = {"cell": {"list": "f1"}, "readings": (Reading(cell={"scale": 1.0}), HALVED)}
LEAST = {"argmin": "list", "among": ["f1", "f2"], "readings": F1["readings"]}
FULL, HALF = ({"cell": {"list": "f1", "scale": scale}} for scale in (1.0, 0.5))
CUT_OFF = HALF | {"truncated": True, "deviations": ["truncated-cell"]}
# printed, fields, verdict, deviation, and what was measured
EXACT = [
    ("4", F1, YES, "", "4"), ("1.3", F1, DEVIATING, "half-scores", "1.25"), ("5", F1, NO, "", "4"),
    ("1.2", HALF, YES, "", "1.25"), ("1.1", HALF, NO, "", "1.25"),
    ("1.2", CUT_OFF, DEVIATING, "truncated-cell", "1.25"),
    ("1.3", CUT_OFF, NO, "truncated-cell", "1.25"), ("f_2", LEAST, YES, "", "f2"),
    ("f_1", LEAST, DEVIATING, "half-scores", "f1"), ("f_3", LEAST, NO, "", "f2"),
    ("four", FULL | {"expected": 4.0}, YES, "", "4"),
    ("four", FULL | {"expected": 4.1}, NO, "", "4"),
    ("many", FULL | {"at_least": 4.0}, YES, "", "4"),
    ("many", FULL | {"at_least": 4.1}, NO, "", "4"),
    ("some", FULL | {"at_least": 0.0}, YES, "", "4"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("printed", "fields", "verdict", "deviation", "measured"), EXACT
)
def test_exact_numbers(printed, fields, verdict, deviation, measured):
    [row] = judged([claim("exact", printed, **fields)], values={"toy": TABLE})
    assert (row.verdict, row.deviation, row.measured) == (verdict, deviation, measured)
    assert row.runs == 1


def quantities(**values):
    """Return the values of some quantities at the same places."""
    names = [name for name, of_one in values.items() for _ in of_one]
    places = [10.0**i for of_one in values.values() for i in range(1, len(of_one) + 1)]
    flat = [value for of_one in values.values() for value in of_one]
    return pd.DataFrame({"horizon": places, "quantity": names, "value": flat})


CURVES = quantities(
    regret=[0.2, 0.1], bound=[0.8, 0.3], lower=[0.15, 0.05], zero=[1.0, 0.2]
)
NOTHING = CURVES.assign(value=[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
# Of four bounds one or two can fail, however far the others lie above w = 0.
FOUR = {"regret": [0.5] * 4, "bound": [2.0] * 4}
ONE, TWO = (quantities(**FOUR, zero=[3.0] * n + [1.0] * (4 - n)) for n in (1, 2))
REGRET = {"cell": {"quantity": "regret"}, "by": {"quantity": "bound"}}
AT_ZERO, LOWER = ({"quantity": name} for name in ("zero", "lower"))
BETWEEN = {
    "cell": REGRET["cell"] | {"horizon": 100},
    "by": REGRET["cell"] | {"horizon": 10},
}
OPEN = {"open_constant": True}
# more fields, table, verdict, and what was measured, or the reason
BELOW = [
    ({}, CURVES, YES, "holds in 2 of 2, ratio 0.25 to 0.333"),
    ({"factor": 0.3}, CURVES, NO, "holds in 1 of 2, ratio 0.25 to 0.333"),
    ({"factor": 0.3} | OPEN, CURVES, UNDECIDED, ""),
    ({"factor": 0.2, "margin": 0.04}, CURVES, YES, ""),
    ({"deviations": ["x"]}, CURVES, DEVIATING, ""), ({"by": LOWER}, CURVES, NO, ""),
    ({"by": LOWER | {"horizon": 10}}, CURVES, NO, "1 of 2, ratio 0.667 to 1.33"),
    (BETWEEN, CURVES, YES, "0.1 against 0.2"), (OPEN, CURVES, TREND, ""),
    (OPEN | {"trivial": LOWER}, CURVES, IDLE, ""), ({"trivial": AT_ZERO}, CURVES, YES, ""),
    ({"trivial": LOWER}, CURVES, IDLE, ""),
    ({"trivial": AT_ZERO | {"horizon": 10}}, CURVES, YES, ""),
    ({"trivial": AT_ZERO | {"horizon": 100}}, CURVES, IDLE, ""),
    ({"by": LOWER, "trivial": LOWER}, CURVES, NO, ""), ({"trivial": AT_ZERO}, ONE, IDLE, "1 of 4"),
    ({"trivial": AT_ZERO}, TWO, YES, "2 of 4"),
    # 0 is no more than 0, whatever a method does; a control above it shows otherwise.
    ({}, NOTHING, IDLE, "0 of 2"), ({"trivial": LOWER}, NOTHING, YES, ""),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "table", "verdict", "words"), BELOW)
def test_values_below_others(fields, table, verdict, words):
    [row] = judged([claim("bound", "below", **REGRET | fields)], values={"toy": table})
    assert row.verdict == verdict and words in f"{row.measured} {row.reason}"


SIZES = np.array([100.0, 200, 400, 800, 1600])


def falling(*powers, noise=0.02):
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
    fields = {
        "cell": {"quantity": "deviation"},
        "against": "size",
        "exponent": exponent,
    } | fields
    return claim("rate", "O(1 / sqrt(n))", **fields)


def with_stated(power):
    """Return a curve that falls with the power -1/4, beside the stated one."""
    slow = falling(-0.25, noise=0.01)
    return pd.concat([slow, slow.assign(quantity="rate", value=SIZES**power)])


ROOT_RATE = falling(-0.5)
ZEROS = [ROOT_RATE.assign(data=name, value=0.0) for name in "ab"]
BY = {"cell": {"quantity": "deviation"}, "against": "size", "by": {"quantity": "rate"}}
OF_STATED = claim("rate", "O(n^(-1/4))", **BY)
LOGARITHMIC = SIZES * np.log(SIZES) * np.exp([0, 0.01, -0.01, 0.02, 0])
RATES = [
    (rate(), ROOT_RATE, TREND), (rate(deviations=["half-scores"]), ROOT_RATE, TREND),
    (rate(), falling(-0.9, -0.5), TREND),  # an upper bound may be loose
    (rate(), falling(-0.4, noise=0.01), UNDECIDED),  # no size refutes an O
    (rate(), falling(-0.5, -0.5, -0.4, noise=0.01), UNDECIDED),
    # one would exclude it alone
    (rate(), falling(-0.42, -0.42, -0.42, noise=0.08), TREND),
    # nor can it be told from one that does not fall
    (rate(), falling(-0.4, noise=1.0), IDLE),
    (rate(trivial=-0.49), ROOT_RATE, IDLE), (rate(2), falling(2.0), TREND),
    (rate(2), falling(1.0), TREND), (rate(2), falling(2.2), UNDECIDED),
    (rate(0, trivial=0.5), falling(0.0), TREND), (rate(0, trivial=0.5), falling(0.3), UNDECIDED),
    # A curve at 0 says nothing, and neither do three of which two lie there.
    (rate(), pd.concat(ZEROS), IDLE), (rate(), pd.concat([ROOT_RATE, *ZEROS]), IDLE),
    (rate(), pd.concat([ROOT_RATE, ZEROS[0]]), TREND),
    (rate(), ROOT_RATE[:2], IDLE),  # two points have a slope, but no interval
    (OF_STATED, with_stated(-0.25), TREND), (OF_STATED, with_stated(-0.5), UNDECIDED),
    (rate(1, times_log=True), ROOT_RATE.assign(value=LOGARITHMIC), TREND),
    (rate(1), ROOT_RATE.assign(value=LOGARITHMIC), UNDECIDED),
]  # fmt: skip


@pytest.mark.parametrize(("about", "table", "verdict"), RATES)
def test_rates_show_or_do_not(about, table, verdict):
    [row] = judged([about], values={"toy": table})
    assert row.verdict == verdict and row.reason, row
    assert row.deviation == " ".join(about.deviations)
    assert row.runs == (table["quantity"] == "deviation").sum()


@pytest.mark.parametrize(("fields", "what"), [
    (BY | {"exponent": -1}, "by"), (BY | {"times_log": True}, "by"),
    ({"cell": {}, "against": "size"}, "exponent"),
])  # fmt: skip
def test_a_rate_has_one_scale(fields, what):
    with raises(ValueError, what):
        claim("rate", "O(n)", **fields)


def test_the_interval_of_a_slope_covers_it():
    rng, x = np.random.default_rng(1), np.log(SIZES)
    draws = (
        np.exp(1 - 0.5 * x + 0.2 * rng.standard_normal(len(x))) for _ in range(1000)
    )
    slopes = [fitted_slope(x, values) for values in draws]
    assert (
        0.93 <= np.mean([slope.low <= -0.5 <= slope.high for slope in slopes]) <= 0.97
    )


@pytest.mark.parametrize(("about", "table", "what"), [
    (claim("bound", "below", **REGRET | {"by": {"quantity": "regrets"}}), CURVES, "2 0"),
    (claim("bound", "below", **REGRET | {"by": {"colour": "red"}}), CURVES, "colour"),
    (claim("exact", "4", cell={"list": "f1"}), TABLE, "2"),
    (claim("exact", "4", cell={"list": "f9"}), TABLE, "0"),
    (claim("exact", "4", cell={"colour": "red"}), TABLE, "colour"),
])  # fmt: skip
def test_values_that_cannot_be_compared(about, table, what):
    with raises(InputError, f"toy/table-1/0 {what}"):
        judged([about], values={"toy": table})


def test_a_study_of_smoke_size_decides_nothing(tmp_path):
    about = {
        "schema": 1,
        "name": "toy",
        "title": "Toy",
        "source": None,
        "kind": "lemma-7",
    }
    CURVES.to_csv(tmp_path / "values.csv", index=False)
    for smoke in (False, True):
        text = json.dumps({**about, "parameters": {}, "smoke": smoke})
        (tmp_path / "illustration.json").write_text(text)
        evidence = read_evidence([tmp_path])
        assert evidence.has_results and bool(evidence.values) != smoke
        [row] = judged([claim("bound", "below", **REGRET)], values=evidence.values)
        assert row.verdict == ("no data" if smoke else YES)


FORMULA, UNTESTED = {"reason": "a formula"}, {"untested": "no experiment varies n"}


@pytest.mark.parametrize(
    "fields",
    [
        FORMULA,
        FORMULA | {"config": "kar2099/fig1", "deviations": ["half-scores"]},
        UNTESTED,
    ],
)
def test_statements_are_not_testable(fields):
    """Whatever was measured, and whether or not a config stands beside them."""
    [row] = judged([claim("statement", "1 / n", **fields)])
    assert row.verdict == ("no config" if "untested" in fields else "not testable")
    assert (row.runs, row.measured, row.kind) == (0, "", "statement")
    assert row.reason == fields.get("reason", fields.get("untested"))
    assert row.deviation == " ".join(fields.get("deviations", []))


@pytest.mark.parametrize("fields", [{}, FORMULA | UNTESTED])
def test_a_statement_has_one_reason(fields):
    with raises(ValueError, "reason"):
        claim("statement", "1 / n", **fields)

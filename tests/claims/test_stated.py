"""Verdicts on what studies compute, and on statements."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from precbench.claims import read_evidence
from precbench.claims.kinds.stated import Reading
from precbench.claims.verdicts import fitted_slope
from precbench.core.errors import InputError
from tests.claims.helpers import claim, judged
from tests.sentences import raises

REPRODUCED = "reproduced"
WITH_DEVIATION = "reproduced with deviation"
NOT_REPRODUCED = "not reproduced"
TREND_ONLY = "trend only"
NO_POWER = "no power"
INCONCLUSIVE = "inconclusive"

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
FULL = {"cell": {"list": "f1", "scale": 1.0}}
HALF = {"cell": {"list": "f1", "scale": 0.5}}
CUT_OFF = HALF | {"truncated": True, "deviations": ["truncated-cell"]}


@dataclass(frozen=True)
class Exact:
    """A printed number, more fields of its claim, and the row of the ledger."""

    printed: str
    fields: dict
    verdict: str
    measured: str
    deviation: str = ""


EXACT = {
    "the first reading": Exact("4", F1, verdict=REPRODUCED, measured="4"),
    "another reading": Exact(
        "1.3", F1, verdict=WITH_DEVIATION, deviation="half-scores", measured="1.25"
    ),
    "no reading": Exact("5", F1, verdict=NOT_REPRODUCED, measured="4"),
    "rounded": Exact("1.2", HALF, verdict=REPRODUCED, measured="1.25"),
    "rounded to another digit": Exact(
        "1.1", HALF, verdict=NOT_REPRODUCED, measured="1.25"
    ),
    "a truncated cell": Exact(
        "1.2",
        CUT_OFF,
        verdict=WITH_DEVIATION,
        deviation="truncated-cell",
        measured="1.25",
    ),
    "a truncated cell that differs": Exact(
        "1.3",
        CUT_OFF,
        verdict=NOT_REPRODUCED,
        deviation="truncated-cell",
        measured="1.25",
    ),
    "the least": Exact("f_2", LEAST, verdict=REPRODUCED, measured="f2"),
    "the least in another reading": Exact(
        "f_1", LEAST, verdict=WITH_DEVIATION, deviation="half-scores", measured="f1"
    ),
    "never the least": Exact("f_3", LEAST, verdict=NOT_REPRODUCED, measured="f2"),
    "as expected": Exact(
        "four", FULL | {"expected": 4.0}, verdict=REPRODUCED, measured="4"
    ),
    "other than expected": Exact(
        "four", FULL | {"expected": 4.1}, verdict=NOT_REPRODUCED, measured="4"
    ),
    "at least": Exact(
        "many", FULL | {"at_least": 4.0}, verdict=REPRODUCED, measured="4"
    ),
    "less than at least": Exact(
        "many", FULL | {"at_least": 4.1}, verdict=NOT_REPRODUCED, measured="4"
    ),
    "more than at least 0": Exact(
        "some", FULL | {"at_least": 0.0}, verdict=REPRODUCED, measured="4"
    ),
}


@pytest.mark.parametrize("case", EXACT.values(), ids=EXACT)
def test_exact_numbers(case):
    exact = claim("exact", case.printed, **case.fields)
    [row] = judged([exact], values={"toy": TABLE})
    assert row.verdict == case.verdict
    assert row.deviation == case.deviation
    assert row.measured == case.measured
    assert row.runs == 1


def quantities(**values):
    """Return the values of some quantities at the same places."""
    rows = []
    for name, curve in values.items():
        for i, value in enumerate(curve, start=1):
            rows.append({"horizon": 10.0**i, "quantity": name, "value": value})
    return pd.DataFrame(rows)


CURVES = quantities(
    regret=[0.2, 0.1], bound=[0.8, 0.3], lower=[0.15, 0.05], zero=[1.0, 0.2]
)
NOTHING = CURVES.assign(value=[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
# Of four bounds one or two can fail, however far the others lie above w = 0.
FOUR = {"regret": [0.5] * 4, "bound": [2.0] * 4}
ONE = quantities(**FOUR, zero=[3.0, 1.0, 1.0, 1.0])
TWO = quantities(**FOUR, zero=[3.0, 3.0, 1.0, 1.0])
REGRET = {"cell": {"quantity": "regret"}, "by": {"quantity": "bound"}}
AT_ZERO = {"quantity": "zero"}
LOWER = {"quantity": "lower"}
BETWEEN = {
    "cell": REGRET["cell"] | {"horizon": 100},
    "by": REGRET["cell"] | {"horizon": 10},
}
OPEN = {"open_constant": True}


@dataclass(frozen=True)
class Below:
    """More fields of the claim that the regret is below its bound, and its row."""

    fields: dict
    table: pd.DataFrame
    verdict: str
    words: str = ""


BELOW = {
    "below in all places": Below(
        {},
        table=CURVES,
        verdict=REPRODUCED,
        words="holds in 2 of 2, ratio 0.25 to 0.333",
    ),
    "a factor that one place exceeds": Below(
        {"factor": 0.3},
        table=CURVES,
        verdict=NOT_REPRODUCED,
        words="holds in 1 of 2, ratio 0.25 to 0.333",
    ),
    "a factor with an open constant": Below(
        {"factor": 0.3} | OPEN, table=CURVES, verdict=INCONCLUSIVE
    ),
    "a margin": Below(
        {"factor": 0.2, "margin": 0.04}, table=CURVES, verdict=REPRODUCED
    ),
    "a deviation": Below({"deviations": ["x"]}, table=CURVES, verdict=WITH_DEVIATION),
    "above in all places": Below({"by": LOWER}, table=CURVES, verdict=NOT_REPRODUCED),
    "against one place": Below(
        {"by": LOWER | {"horizon": 10}},
        table=CURVES,
        verdict=NOT_REPRODUCED,
        words="1 of 2, ratio 0.667 to 1.33",
    ),
    "one place against another": Below(
        BETWEEN, table=CURVES, verdict=REPRODUCED, words="0.1 against 0.2"
    ),
    "an open constant": Below(OPEN, table=CURVES, verdict=TREND_ONLY),
    "an open constant, and w = 0 is below too": Below(
        OPEN | {"trivial": LOWER}, table=CURVES, verdict=NO_POWER
    ),
    "w = 0 is not below": Below({"trivial": AT_ZERO}, table=CURVES, verdict=REPRODUCED),
    "w = 0 is below": Below({"trivial": LOWER}, table=CURVES, verdict=NO_POWER),
    "w = 0 in one place is not below": Below(
        {"trivial": AT_ZERO | {"horizon": 10}}, table=CURVES, verdict=REPRODUCED
    ),
    "w = 0 in another place is below": Below(
        {"trivial": AT_ZERO | {"horizon": 100}}, table=CURVES, verdict=NO_POWER
    ),
    "above, and w = 0 is below": Below(
        {"by": LOWER, "trivial": LOWER}, table=CURVES, verdict=NOT_REPRODUCED
    ),
    "one of four bounds can fail": Below(
        {"trivial": AT_ZERO}, table=ONE, verdict=NO_POWER, words="1 of 4"
    ),
    "two of four bounds can fail": Below(
        {"trivial": AT_ZERO}, table=TWO, verdict=REPRODUCED, words="2 of 4"
    ),
    "0 is no more than 0, whatever a method does": Below(
        {}, table=NOTHING, verdict=NO_POWER, words="0 of 2"
    ),
    "a control above 0 shows otherwise": Below(
        {"trivial": LOWER}, table=NOTHING, verdict=REPRODUCED
    ),
}


@pytest.mark.parametrize("case", BELOW.values(), ids=BELOW)
def test_values_below_others(case):
    bound = claim("bound", "below", **REGRET | case.fields)
    [row] = judged([bound], values={"toy": case.table})
    assert row.verdict == case.verdict
    assert case.words in f"{row.measured} {row.reason}"


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
    pytest.param(rate(), ROOT_RATE, TREND_ONLY, id="as the root"),
    pytest.param(
        rate(deviations=["half-scores"]), ROOT_RATE, TREND_ONLY, id="with a deviation"
    ),
    pytest.param(
        rate(), falling(-0.9, -0.5), TREND_ONLY, id="an upper bound may be loose"
    ),
    pytest.param(
        rate(), falling(-0.4, noise=0.01), INCONCLUSIVE, id="no size refutes an O"
    ),
    pytest.param(
        rate(),
        falling(-0.5, -0.5, -0.4, noise=0.01),
        INCONCLUSIVE,
        id="one of three falls slower",
    ),
    pytest.param(
        rate(),
        falling(-0.42, -0.42, -0.42, noise=0.08),
        TREND_ONLY,
        id="one of three would exclude it alone",
    ),
    pytest.param(
        rate(),
        falling(-0.4, noise=1.0),
        NO_POWER,
        id="cannot be told from one that does not fall",
    ),
    pytest.param(rate(trivial=-0.49), ROOT_RATE, NO_POWER, id="w = 0 falls alike"),
    pytest.param(rate(2), falling(2.0), TREND_ONLY, id="as the square"),
    pytest.param(
        rate(2), falling(1.0), TREND_ONLY, id="linear, and so below the square"
    ),
    pytest.param(rate(2), falling(2.2), INCONCLUSIVE, id="above the square"),
    pytest.param(rate(0, trivial=0.5), falling(0.0), TREND_ONLY, id="constant"),
    pytest.param(
        rate(0, trivial=0.5),
        falling(0.3),
        INCONCLUSIVE,
        id="grows where a constant is stated",
    ),
    # A curve at 0 says nothing, and neither do three of which two lie there.
    pytest.param(rate(), pd.concat(ZEROS), NO_POWER, id="at 0"),
    pytest.param(
        rate(), pd.concat([ROOT_RATE, *ZEROS]), NO_POWER, id="two of three at 0"
    ),
    pytest.param(
        rate(), pd.concat([ROOT_RATE, ZEROS[0]]), TREND_ONLY, id="one of two at 0"
    ),
    pytest.param(
        rate(), ROOT_RATE[:2], NO_POWER, id="two points have a slope, but no interval"
    ),
    pytest.param(OF_STATED, with_stated(-0.25), TREND_ONLY, id="as a stated curve"),
    pytest.param(
        OF_STATED,
        with_stated(-0.5),
        INCONCLUSIVE,
        id="a stated curve that falls faster",
    ),
    pytest.param(
        rate(1, times_log=True),
        ROOT_RATE.assign(value=LOGARITHMIC),
        TREND_ONLY,
        id="n log n",
    ),
    pytest.param(
        rate(1),
        ROOT_RATE.assign(value=LOGARITHMIC),
        INCONCLUSIVE,
        id="n log n where n is stated",
    ),
]


@pytest.mark.parametrize(("published_claim", "table", "verdict"), RATES)
def test_rates_show_or_do_not(published_claim, table, verdict):
    [row] = judged([published_claim], values={"toy": table})
    assert row.verdict == verdict
    assert row.reason
    assert row.deviation == " ".join(published_claim.deviations)
    assert row.runs == (table["quantity"] == "deviation").sum()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param(BY | {"exponent": -1}, "by", id="a curve and an exponent"),
        pytest.param(BY | {"times_log": True}, "by", id="a curve and a logarithm"),
        pytest.param({"cell": {}, "against": "size"}, "exponent", id="no exponent"),
    ],
)
def test_a_rate_has_one_scale(fields, words):
    with raises(ValueError, words):
        claim("rate", "O(n)", **fields)


def test_the_interval_of_a_slope_covers_it():
    rng = np.random.default_rng(1)
    x = np.log(SIZES)
    is_covered = []
    for _ in range(1000):
        values = np.exp(1 - 0.5 * x + 0.2 * rng.standard_normal(len(x)))
        slope = fitted_slope(x, values)
        is_covered.append(slope.low <= -0.5 <= slope.high)
    assert 0.93 <= np.mean(is_covered) <= 0.97


@pytest.mark.parametrize(
    ("published_claim", "table", "places"),
    [
        pytest.param(
            claim("bound", "below", **REGRET | {"by": {"quantity": "regrets"}}),
            CURVES,
            "2 0",
            id="nothing to compare with",
        ),
        pytest.param(
            claim("bound", "below", **REGRET | {"by": {"colour": "red"}}),
            CURVES,
            "colour",
            id="no such column to compare with",
        ),
        pytest.param(
            claim("exact", "4", cell={"list": "f1"}), TABLE, "2", id="two cells"
        ),
        pytest.param(
            claim("exact", "4", cell={"list": "f9"}), TABLE, "0", id="no cell"
        ),
        pytest.param(
            claim("exact", "4", cell={"colour": "red"}),
            TABLE,
            "colour",
            id="no such column",
        ),
    ],
)
def test_values_that_cannot_be_compared(published_claim, table, places):
    with raises(InputError, f"toy/table-1/0 {places}"):
        judged([published_claim], values={"toy": table})


@pytest.mark.parametrize(
    ("smoke", "verdict"),
    [
        pytest.param(False, REPRODUCED, id="full size"),
        pytest.param(True, "no data", id="smoke size"),
    ],
)
def test_a_study_of_smoke_size_decides_nothing(tmp_path, smoke, verdict):
    study = {
        "schema": 1,
        "name": "toy",
        "title": "Toy",
        "source": None,
        "kind": "lemma-7",
        "parameters": {},
        "smoke": smoke,
    }
    (tmp_path / "illustration.json").write_text(json.dumps(study))
    CURVES.to_csv(tmp_path / "values.csv", index=False)
    evidence = read_evidence([tmp_path])
    assert evidence.has_results
    assert list(evidence.values) == ([] if smoke else ["toy"])
    [row] = judged([claim("bound", "below", **REGRET)], values=evidence.values)
    assert row.verdict == verdict


FORMULA = {"reason": "a formula"}
UNTESTED = {"untested": "no experiment varies n"}


@pytest.mark.parametrize(
    ("fields", "verdict", "reason"),
    [
        pytest.param(FORMULA, "not testable", "a formula", id="a formula"),
        pytest.param(
            FORMULA | {"config": "kar2099/fig1", "deviations": ["half-scores"]},
            "not testable",
            "a formula",
            id="a formula beside no config",
        ),
        pytest.param(UNTESTED, "no config", "no experiment varies n", id="untested"),
    ],
)
def test_statements_are_not_testable(fields, verdict, reason):
    """Whatever was measured, and whether or not a config stands beside them."""
    [row] = judged([claim("statement", "1 / n", **fields)])
    assert row.verdict == verdict
    assert row.reason == reason
    assert row.runs == 0
    assert row.measured == ""
    assert row.kind == "statement"
    assert row.deviation == " ".join(fields.get("deviations", []))


@pytest.mark.parametrize(
    "fields",
    [pytest.param({}, id="none"), pytest.param(FORMULA | UNTESTED, id="two")],
)
def test_a_statement_has_one_reason(fields):
    with raises(ValueError, "reason"):
        claim("statement", "1 / n", **fields)

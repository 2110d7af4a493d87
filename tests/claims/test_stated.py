"""Verdicts on what studies compute, and on statements."""

import json

import pandas as pd
import pytest

from precbench.claims import read_evidence
from precbench.claims.kinds.exact import Reading
from precbench.claims.verdicts import Verdict
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


@pytest.mark.parametrize(
    ("printed", "fields", "verdict", "deviation", "measured"),
    [
        ("4", F1, Verdict.REPRODUCED, "", "4"),
        ("1.3", F1, Verdict.WITH_DEVIATION, "half-scores", "1.25"),
        ("5", F1, Verdict.NOT_REPRODUCED, "", "4"),
        ("1.2", HALF, Verdict.REPRODUCED, "", "1.25"),
        ("1.1", HALF, Verdict.NOT_REPRODUCED, "", "1.25"),
        ("1.2", HALF | CUT_OFF, Verdict.WITH_DEVIATION, "truncated-cell", "1.25"),
        ("1.3", HALF | CUT_OFF, Verdict.NOT_REPRODUCED, "truncated-cell", "1.25"),
        ("f_2", LEAST, Verdict.REPRODUCED, "", "f2"),
        ("f_1", LEAST, Verdict.WITH_DEVIATION, "half-scores", "f1"),
        ("f_3", LEAST, Verdict.NOT_REPRODUCED, "", "f2"),
        ("four", FULL | {"expected": 4.0}, Verdict.REPRODUCED, "", "4"),
        ("four", FULL | {"expected": 4.1}, Verdict.NOT_REPRODUCED, "", "4"),
        ("many", FULL | {"at_least": 4.0}, Verdict.REPRODUCED, "", "4"),
        ("many", FULL | {"at_least": 4.1}, Verdict.NOT_REPRODUCED, "", "4"),
        ("some", FULL | {"at_least": 0.0}, Verdict.REPRODUCED, "", "4"),
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


@pytest.mark.parametrize(
    ("fields", "verdict", "measured"),
    [
        (REGRET, Verdict.REPRODUCED, "holds in 2 of 2, ratio 0.25 to 0.333"),
        (REGRET | {"factor": 0.3}, Verdict.NOT_REPRODUCED, "holds in 1 of 2, ratio 0.25 to 0.333"),
        (REGRET | {"factor": 0.3, "open_constant": True}, Verdict.INCONCLUSIVE, None),
        (REGRET | {"factor": 0.2, "margin": 0.04}, Verdict.REPRODUCED, None),
        (REGRET | {"deviations": ["x"]}, Verdict.WITH_DEVIATION, None),
        (REGRET | {"by": {"quantity": "lower"}}, Verdict.NOT_REPRODUCED, None),
        (
            REGRET | {"by": {"quantity": "lower", "horizon": 10}},
            Verdict.NOT_REPRODUCED,
            "holds in 1 of 2, ratio 0.667 to 1.33",
        ),
        (
            {"cell": {**REGRET["cell"], "horizon": 100}, "by": {**REGRET["cell"], "horizon": 10}},
            Verdict.REPRODUCED,
            "0.1 against 0.2",
        ),
        (REGRET | {"trivial": {"quantity": "w = 0"}}, Verdict.REPRODUCED, None),
        (REGRET | {"trivial": {"quantity": "lower"}}, Verdict.NO_POWER, None),
        (REGRET | {"trivial": {"quantity": "w = 0", "horizon": 10}}, Verdict.REPRODUCED, None),
        (REGRET | {"trivial": {"quantity": "w = 0", "horizon": 100}}, Verdict.NO_POWER, None),
        (
            REGRET | {"by": {"quantity": "lower"}, "trivial": {"quantity": "lower"}},
            Verdict.NOT_REPRODUCED,
            None,
        ),
    ],
)
def test_values_below_others(tmp_path, fields, verdict, measured):
    study_folder(tmp_path / "toy", CURVES)
    evidence = read_evidence([tmp_path])
    [row] = judged([claim("bound", "below", **fields)], values=evidence.values)
    assert row.verdict == verdict and measured in (None, row.measured)


def study_folder(folder, values, **changes):
    """Write a study's folder and return it."""
    about = {"schema": 1, "name": "toy", "title": "Toy", "source": None, "kind": "lemma-7"}
    folder.mkdir(parents=True)
    text = json.dumps({**about, "parameters": {}, "smoke": False, **changes})
    (folder / "illustration.json").write_text(text)
    values.to_csv(folder / "values.csv", index=False)
    return folder


def test_values_that_cannot_be_compared(tmp_path):
    missing = REGRET | {"by": {"quantity": "regrets"}}
    for fields, what in [(missing, "2 0"), (REGRET | {"by": {"colour": "red"}}, "colour")]:
        with raises(InputError, f"toy/table-1/0 {what}"):
            judged([claim("bound", "below", **fields)], values={"toy": CURVES})
    study_folder(tmp_path / "toy", CURVES, smoke=True)
    evidence = read_evidence([tmp_path])
    assert evidence.found and not evidence.values
    [row] = judged([claim("bound", "below", **REGRET)], tmp_path)
    assert row.verdict is Verdict.NO_DATA
    tells(row.reason, "letter")


def test_exact_claim_must_select_one_value():
    for cell, what in [({"list": "f1"}, "2"), ({"list": "f9"}, "0"), ({"colour": "red"}, "colour")]:
        with raises(InputError, f"toy/table-1/0 {what}"):
            judged([claim("exact", "4", cell=cell)], values={"toy": TABLE})


def test_statements_are_not_testable():
    """Whatever was measured, and whether or not a config stands beside them."""
    for config in ("letter", "kar2099/fig1"):
        formula = claim("statement", "1 / n", reason="a formula", config=config)
        [row] = judged([formula])
        assert (row.verdict, row.reason, row.kind) == ("not testable", "a formula", "statement")
        assert row.runs == 0 and row.measured == "" and row.deviation == ""
    slip = claim("statement", "1 / n", reason="a formula", deviations=["half-scores"])
    [row] = judged([slip])
    assert row.verdict is Verdict.NOT_TESTABLE and row.deviation == "half-scores"
    [row] = judged([claim("statement", "O(n)", untested="no experiment varies n")])
    assert row.verdict is Verdict.NO_CONFIG and row.reason == "no experiment varies n"
    for fields in ({}, {"reason": "a formula", "untested": "no experiment varies n"}):
        with raises(ValueError, "reason", words=False):
            claim("statement", "1 / n", **fields)


def test_former_key_of_the_trivial_model():
    old = claim("bound", "below", **REGRET, idle={"quantity": "w = 0"})
    assert old == claim("bound", "below", **REGRET, trivial={"quantity": "w = 0"})

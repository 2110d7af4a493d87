"""Folders of results, and the verdicts where they hold nothing."""

import re

import pandas as pd
import pytest

from precbench.claims import read_evidence
from precbench.claims.evidence import WALL_SECONDS
from precbench.claims.kinds.measured import FactClaim
from precbench.claims.verdicts import Verdict
from precbench.errors import InputError
from tests.claims.helpers import (
    TIMED,
    auc_of,
    claim,
    judged,
    mean,
    normal,
    order,
    ratio,
    write_results,
    write_sweep,
)
from tests.sentences import raises, tells

EVERY_KIND = [
    mean("0.8", number="mean"),
    order(number="order"),
    order(number="times", metric=WALL_SECONDS),
    ratio(number="ratio"),
    claim("fact", "506", of="rows", number="fact"),
]


@pytest.mark.parametrize("published_claim", EVERY_KIND, ids=lambda c: c.id.split("/")[2])
def test_no_verdict_without_results(tmp_path, published_claim):
    cells = auc_of(a=normal(120, 0.8), b=normal(120, 0.7))
    good = write_results(tmp_path / "good", cells, seconds=TIMED)
    [row] = judged([published_claim], good)
    assert row.verdict is Verdict.REPRODUCED

    def not_judged(claims, *folders, verdict=Verdict.NO_DATA):
        [row] = judged(claims, *folders)
        assert row.verdict is verdict and row.runs == 0 and row.measured == ""
        return row.reason

    stand_in = write_results(tmp_path / "stand-in", cells, seconds=TIMED, stand_in=True)
    assert not_judged([published_claim], stand_in) == "synthetic data stood in for housing"
    smoke = write_results(tmp_path / "smoke", cells, seconds=TIMED, smoke=True)
    missing = "not in these results: precbench run letter"
    assert not_judged([published_claim], smoke) == missing
    assert not_judged([published_claim]) == missing
    other = {("adult", *key[1:]): values for key, values in cells.items()}
    reason = not_judged([published_claim], write_results(tmp_path / "other", other, seconds=TIMED))
    assert re.match("the results hold no(thing| auc of [ab]) (of|on) housing", reason)
    failed = write_results(tmp_path / "failed", cells, seconds=TIMED, status="failed")
    if not isinstance(published_claim, FactClaim):
        assert not_judged([published_claim], failed).startswith("the results hold no auc of")
        alone = {key: values for key, values in cells.items() if key[1] == "c"} | auc_of(c=[0.5])
        lacks = write_results(tmp_path / "lacks", alone)
        assert "no auc of a on housing (test set)" in not_judged([published_claim], lacks) or (
            "no auc of b on housing (test set)" in not_judged([published_claim], lacks)
        )
    later = published_claim.model_copy(update={"untested": "no experiment times it"})
    reason = not_judged([later], good, verdict=Verdict.NO_CONFIG)
    assert reason == "no experiment times it"
    later = published_claim.model_copy(update={"config": "kar2099/fig1"})
    reason = not_judged([later], good, verdict=Verdict.NO_CONFIG)
    assert reason == "there is no config kar2099/fig1 yet"


def test_one_stand_in_split_excludes_all(tmp_path):
    folder = write_results(tmp_path, auc_of(a=normal(120)))
    table = pd.read_csv(folder / "results.csv")
    table.loc[0, "stand_in"] = True
    table.to_csv(folder / "results.csv", index=False)
    assert judged([mean("0.8")], folder)[0].verdict is Verdict.NO_DATA


def test_points_of_a_sweep_cannot_be_named(tmp_path):
    folder = write_results(tmp_path, auc_of(a=[0.5] * 30, b=[0.4] * 30), seconds=TIMED)
    table = pd.read_csv(folder / "results.csv")
    write_sweep(folder, "batch_size", [table, table])
    for row in judged(EVERY_KIND[:4], folder):
        assert row.verdict is Verdict.NO_DATA
        tells(row.reason, "sweep")


def test_folders_of_results(tmp_path):
    folder = write_results(tmp_path / "all", auc_of(a=[0.5]))
    assert set(read_evidence([tmp_path / "all"]).outcomes) == {"toy"}
    assert set(read_evidence([folder]).outcomes) == {"toy"}
    assert read_evidence([folder]).has_results and not read_evidence([tmp_path]).has_results
    other = write_results(tmp_path / "other", auc_of(a=[0.6]))
    with raises(InputError, f"{folder} {other} toy"):
        read_evidence([folder, other])
    with raises(InputError, str(tmp_path / "none")):
        read_evidence([tmp_path / "none"])
    (other / "experiment.json").write_text("{")
    with raises(InputError, "experiment.json"):
        read_evidence([other])

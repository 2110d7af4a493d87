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
    mean("0.8", number="mean"), order(number="order"), order(number="times", metric=WALL_SECONDS),
    ratio(number="ratio"), claim("fact", "506", of="rows", number="fact"),
]  # fmt: skip


CELLS = auc_of(a=normal(120, 0.8), b=normal(120, 0.7))
ELSEWHERE = {("adult", *key[1:]): values for key, values in CELLS.items()}
each_kind = pytest.mark.parametrize(
    "published_claim", EVERY_KIND, ids=lambda claim: claim.id.split("/")[2]
)


@each_kind
@pytest.mark.parametrize(("cells", "how", "reason"), [
    (CELLS, {"stand_in": True}, "synthetic data stood in for housing"),
    (CELLS, {"smoke": True}, "not in these results: precbench run letter"),
    (ELSEWHERE, {}, "the results hold no(thing| auc of [ab]) (of|on) housing"),
    (CELLS, {"status": "failed"}, "the results hold no auc of"),
    (auc_of(c=[0.5]), {}, r"the results hold no auc of [ab] on housing \(test set\)"),
])  # fmt: skip
def test_no_verdict_without_results(tmp_path, published_claim, cells, how, reason):
    if isinstance(published_claim, FactClaim) and ("status" in how or len(cells) == 1):
        return  # a count of rows needs no values
    folder = write_results(tmp_path, cells, seconds=TIMED | {"c": 1.0}, **how)
    [row] = judged([published_claim], folder)
    assert (row.verdict, row.runs, row.measured) == (Verdict.NO_DATA, 0, "")
    assert re.match(reason, row.reason)


@each_kind
def test_no_verdict_without_a_config(tmp_path, published_claim):
    good = write_results(tmp_path, CELLS, seconds=TIMED)
    assert judged([published_claim], good)[0].verdict is Verdict.REPRODUCED
    for changes, reason in (
        ({"untested": "no experiment times it"}, "no experiment times it"),
        ({"config": "kar2099/fig1"}, "there is no config kar2099/fig1 yet"),
    ):
        [row] = judged([published_claim.model_copy(update=changes)], good)
        assert (row.verdict, row.reason) == (Verdict.NO_CONFIG, reason)


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
    for given in (tmp_path / "all", folder):
        assert set(read_evidence([given]).outcomes) == {"toy"}
    assert read_evidence([folder]).has_results and not read_evidence([tmp_path]).has_results
    other = write_results(tmp_path / "other", auc_of(a=[0.6]))
    with raises(InputError, f"{folder} {other} toy"):
        read_evidence([folder, other])
    with raises(InputError, str(tmp_path / "none")):
        read_evidence([tmp_path / "none"])

"""The ledger.

Regressions, updates, files, tables and lists, and where results hold nothing.
"""

import json
import re
from dataclasses import replace
from itertools import chain, product

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precbench.claims import load_deviations, read_evidence
from precbench.claims.evidence import WALL_SECONDS
from precbench.claims.kinds.measured import FactClaim
from precbench.claims.ledger import LedgerRow, changes, read_ledger, to_csv, updated
from precbench.claims.verdicts import Verdict
from precbench.core.errors import InputError
from precbench.report.ledger_tables import (
    counts_table,
    ledger_markdown,
    missing_table,
    open_table,
)
from tests.claims.helpers import (
    TIMED,
    auc_of,
    claim,
    judged,
    mean,
    normal,
    order,
    ratio,
    row_of,
    write_results,
    write_sweep,
)
from tests.helpers import succeed
from tests.sentences import raises, refused, tells


def test_regressions():
    decided = [Verdict.REPRODUCED, Verdict.WITH_DEVIATION]
    decided += [Verdict.TREND_ONLY, Verdict.NOT_REPRODUCED]
    for kind, before, after in product(
        ("mean", "exact", "order", "rate"), Verdict, Verdict
    ):
        changed = [*changes([row_of("x", after, kind)], [row_of("x", before, kind)])]
        if before is Verdict.NO_POWER and after in decided:
            [change] = changed
            assert change.worse == (after is Verdict.NOT_REPRODUCED)
        elif before is after or before not in decided:
            assert not changed
        elif after in decided:
            [change] = changed
            assert change.worse == (decided.index(after) > decided.index(before))
        else:
            # an exact number can always be computed; results are no reason for the
            # others
            fixed = after in (Verdict.NO_POWER, Verdict.NO_CONFIG, Verdict.NOT_TESTABLE)
            # no run cuts a study short
            fixed |= kind == "rate" and after is Verdict.INCONCLUSIVE
            assert [change.worse for change in changed] == [True] * (
                kind == "exact" or fixed
            )
    new = [row_of("new", Verdict.NOT_REPRODUCED)]
    assert not [*changes(new, [row_of("x", Verdict.REPRODUCED)])]


STATEMENT, BLUNT = ({"kind": "statement"}, {"runs": 200})
UPDATES = [  # before, now, and which of them stays
    ((Verdict.REPRODUCED, {"measured": "1"}), (Verdict.INCONCLUSIVE, {"measured": "7"}), "before"),
    ((Verdict.TREND_ONLY, {}), (Verdict.NOT_REPRODUCED, {}), "now"),
    ((Verdict.NO_DATA, {}), (Verdict.REPRODUCED, {}), "now"),
    ((Verdict.INCONCLUSIVE, {"runs": 5}), (Verdict.NO_DATA, {}), "before"),
    ((Verdict.NO_DATA, {}), (Verdict.INCONCLUSIVE, {"runs": 5}), "now"),
    ((Verdict.REPRODUCED, {}), (Verdict.NOT_TESTABLE, STATEMENT), "now"),
    ((Verdict.NOT_TESTABLE, STATEMENT), (Verdict.NO_DATA, {}), "now"),
    *(((before, {}), (Verdict.NO_POWER, BLUNT), "now")
     for before in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.INCONCLUSIVE)),
    ((Verdict.NO_POWER, BLUNT), (Verdict.NO_DATA, {}), "before"),
    # A study is never cut short, however many values it compares.
    *(((Verdict.REPRODUCED, {"kind": kind, "runs": 50}), (verdict, {"kind": kind, **runs}), stays)
     for kind, verdict, runs, stays in (
        ("mean", Verdict.INCONCLUSIVE, {"runs": 0}, "before"),
        ("mean", Verdict.INCONCLUSIVE, {"runs": 49}, "before"),
        ("mean", Verdict.INCONCLUSIVE, {"runs": 50}, "now"),
        ("bound", Verdict.INCONCLUSIVE, {"runs": 9}, "now"),
        *((kind, Verdict.NO_DATA, {}, "before") for kind in ("mean", "bound")),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("before", "now", "stays"), UPDATES)
def test_what_an_update_keeps(before, now, stays):
    old, new = (row_of("a", verdict, **about) for verdict, about in (before, now))
    gone, added = row_of("gone", Verdict.REPRODUCED), row_of("new", Verdict.NO_CONFIG)
    assert updated([new, added], [old, gone]) == [
        {"before": old, "now": new}[stays],
        added,
    ]


def test_a_row_that_is_kept_quotes_the_claim_as_it_is_now():
    """The verdict of other days stands under the deviations that the claim names today."""
    old = row_of("a", Verdict.REPRODUCED, runs=50, measured="1.01")
    now = row_of(
        "a", Verdict.NO_DATA, deviation="half-scores", reason="not in these results"
    )
    [row] = updated([now], [old])
    assert (row.verdict, row.deviation) == (Verdict.WITH_DEVIATION, "half-scores")
    assert (row.measured, row.runs, row.reason) == ("1.01", 50, "")
    [row] = updated([replace(now, deviation="")], [row])
    assert (row.verdict, row.deviation) == (Verdict.REPRODUCED, "")
    of_another_kind = replace(now, kind="order")
    assert updated([of_another_kind], [old]) == [of_another_kind]
    exact = row_of(
        "a", Verdict.WITH_DEVIATION, "exact", deviation="half-scores", runs=1
    )
    assert updated([row_of("a", Verdict.NO_DATA, "exact")], [exact]) == [exact]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


@settings(max_examples=30)
@given(texts, texts, st.sampled_from(Verdict), st.none() | st.floats(0, 1e6))
def test_ledger_round_trip(tmp_path_factory, printed, reason, verdict, number):
    row = LedgerRow("p/t/x", "p", "T", "mean", printed, verdict=verdict, reason=reason,
                    smallest_error=number, runs=3)  # fmt: skip
    path = tmp_path_factory.mktemp("ledger") / "ledger.csv"
    path.write_text(to_csv([row]), encoding="utf-8", newline="")
    [read] = read_ledger(path)
    assert (read.printed, read.reason, read.verdict, read.runs) == (
        printed,
        reason,
        verdict,
        3,
    )
    assert read.smallest_error == (
        None if number is None else pytest.approx(number, rel=1e-3)
    )


def test_tables_of_the_ledger():
    verdicts = [v for i, v in enumerate(Verdict, start=1) for _ in range(i)]
    ledger = [row_of(str(i), v, reason=f"{v} | why") for i, v in enumerate(verdicts)]
    ledger += [replace(ledger[0], id=f"toy/table-{i}/x") for i in (10, 2)]
    counts = [[cell.text for cell in row] for row in counts_table(ledger).rows]
    assert [row[1] for row in counts] == ["table-1", "table-2", "table-10", ""]
    assert counts[0][2:] == [*"123456789"] and counts[-1][2:] == ["3", *"23456789"]
    shown = open_table(ledger).rows
    hidden = {"reproduced", "no data", "no config", "not testable"}
    assert {row[0].text for row in shown} == {
        r.id for r in ledger if r.verdict not in hidden
    }
    assert [row[5].text for row in shown[:5]] == ["not reproduced"] * 4 + ["trend only"]
    missing = [row[-1].text for row in missing_table(ledger).rows]
    assert missing == ["7", "8"] and ledger_markdown(ledger).count("\\| why") >= len(
        verdicts
    )


# --- ``precbench list`` of claims and deviations ---


def listed(*options):
    return json.loads(succeed("list", *options, "--json").stdout)


def test_claims_are_listed_by_paper_place_and_verdict(claims, reference, monkeypatch):
    monkeypatch.setattr("precbench.claims.load_claims", lambda: claims)
    everything = listed("claims")
    assert [member["name"] for member in everything] == [c.id for c in claims]
    for member in everything:
        assert member["verdict"] == reference[member["name"]].verdict
        assert (member["paper"], member["place"]) == tuple(
            member["name"].split("/")[:2]
        )
        assert (
            member["printed"] in member["about"] and member["where"] in member["about"]
        )
    keys = ("paper", "place", "verdict")
    for values in product(
        (None, "kar2014"), (None, "table-2"), (None, "not reproduced")
    ):
        wanted = {key: value for key, value in zip(keys, values, strict=True) if value}
        options = [
            (f"--{key}".replace("place", "table"), value)
            for key, value in wanted.items()
        ]
        expected = [member for member in everything if wanted.items() <= member.items()]
        assert listed("claims", *chain(*options)) == expected


def test_deviations_are_listed():
    members = {member["name"]: member for member in listed("deviations")}
    deviations = load_deviations()
    assert set(members) == set(deviations)
    about = members["half-scores"]["about"]
    assert "rudin2009" in about and "precbench run rudin2009/tables-1-2" in about
    of_paper = {
        member["name"] for member in listed("deviations", "--paper", "gultekin")
    }
    assert of_paper == {name for name, d in deviations.items() if d.paper == "gultekin"}


@pytest.mark.parametrize(("arguments", "what"), [
    (["claims", "--paper", "rudin"], "'rudin' 'rudin2009'"),
    (["claims", "--table", "tabel-3"], "'table-3'"),
    (["claims", "--verdict", "not reprodced"], "'not reproduced'"),
    (["claims", "--verdict", "x"], "'x'"), (["solvers", "--paper", "rudin2009"], "solvers paper"),
    (["deviations", "--verdict", "no data"], "deviations verdict"), (["claim"], "'claim' 'claims'"),
])  # fmt: skip
def test_unknown_values_of_filters(arguments, what):
    refused(["list", *arguments], what)


# --- folders of results, and the verdicts where they hold nothing ---


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
    (CELLS, {"smoke": True}, "no results of .*: make them with precbench run letter"),
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
    for update, reason in (
        ({"untested": "no experiment times it"}, "no experiment times it"),
        ({"config": "kar2099/fig1"}, "there is no config kar2099/fig1 yet"),
    ):
        [row] = judged([published_claim.model_copy(update=update)], good)
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
    for place in (tmp_path / "all", folder):
        assert set(read_evidence([place]).outcomes) == {"toy"}
    assert (
        read_evidence([folder]).has_results
        and not read_evidence([tmp_path]).has_results
    )
    other = write_results(tmp_path / "other", auc_of(a=[0.6]))
    with raises(InputError, f"{folder} {other} toy"):
        read_evidence([folder, other])
    with raises(InputError, str(tmp_path / "none")):
        read_evidence([tmp_path / "none"])

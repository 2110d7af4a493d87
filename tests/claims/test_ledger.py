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


REPRODUCED = Verdict.REPRODUCED
NOT_REPRODUCED = Verdict.NOT_REPRODUCED
NOT_TESTABLE = Verdict.NOT_TESTABLE
TREND_ONLY = Verdict.TREND_ONLY
INCONCLUSIVE = Verdict.INCONCLUSIVE
NO_DATA = Verdict.NO_DATA
NO_POWER = Verdict.NO_POWER


def ledger_row(verdict, **fields):
    return row_of("a", verdict, **fields)


def statement():
    return ledger_row(NOT_TESTABLE, kind="statement")


def no_power():
    return ledger_row(NO_POWER, runs=200)


# A row of the ledger, and the row of the next results that replaces it.
REPLACED = {
    "a trend by another verdict": (ledger_row(TREND_ONLY), ledger_row(NOT_REPRODUCED)),
    "no data by a verdict": (ledger_row(NO_DATA), ledger_row(REPRODUCED)),
    "no data by too few runs": (ledger_row(NO_DATA), ledger_row(INCONCLUSIVE, runs=5)),
    "a verdict by a statement": (ledger_row(REPRODUCED), statement()),
    "a statement by no data": (statement(), ledger_row(NO_DATA)),
    "reproduced by no power": (ledger_row(REPRODUCED), no_power()),
    "not reproduced by no power": (ledger_row(NOT_REPRODUCED), no_power()),
    "inconclusive by no power": (ledger_row(INCONCLUSIVE), no_power()),
    "a verdict by as many runs": (
        ledger_row(REPRODUCED, kind="mean", runs=50),
        ledger_row(INCONCLUSIVE, kind="mean", runs=50),
    ),
    # A study is never cut short, however many values it compares.
    "a study by another study": (
        ledger_row(REPRODUCED, kind="bound", runs=50),
        ledger_row(INCONCLUSIVE, kind="bound", runs=9),
    ),
}
# A row of the ledger, and the row of the next results that does not replace it.
PRESERVED = {
    "a verdict from an inconclusive one": (
        ledger_row(REPRODUCED, measured="1"),
        ledger_row(INCONCLUSIVE, measured="7"),
    ),
    "too few runs from no data": (
        ledger_row(INCONCLUSIVE, runs=5),
        ledger_row(NO_DATA),
    ),
    "no power from no data": (no_power(), ledger_row(NO_DATA)),
    "a verdict from no runs": (
        ledger_row(REPRODUCED, kind="mean", runs=50),
        ledger_row(INCONCLUSIVE, kind="mean", runs=0),
    ),
    "a verdict from fewer runs": (
        ledger_row(REPRODUCED, kind="mean", runs=50),
        ledger_row(INCONCLUSIVE, kind="mean", runs=49),
    ),
    "a mean from no data": (
        ledger_row(REPRODUCED, kind="mean", runs=50),
        ledger_row(NO_DATA, kind="mean"),
    ),
    "a study from no data": (
        ledger_row(REPRODUCED, kind="bound", runs=50),
        ledger_row(NO_DATA, kind="bound"),
    ),
}


@pytest.mark.parametrize(("before", "now"), REPLACED.values(), ids=REPLACED)
def test_an_update_replaces_a_row(before, now):
    assert updated([now], [before]) == [now]


@pytest.mark.parametrize(("before", "now"), PRESERVED.values(), ids=PRESERVED)
def test_an_update_preserves_a_row(before, now):
    assert updated([now], [before]) == [before]


def test_an_update_adds_new_rows_and_removes_those_of_no_claim():
    gone = row_of("gone", REPRODUCED)
    added = row_of("new", Verdict.NO_CONFIG)
    remaining = ledger_row(REPRODUCED)
    assert updated([remaining, added], [ledger_row(NO_DATA), gone]) == [
        remaining,
        added,
    ]


def test_a_row_that_is_kept_quotes_the_claim_as_it_is_now():
    """The old verdict stands under the deviations that the claim names today."""
    old = row_of("a", Verdict.REPRODUCED, runs=50, measured="1.01")
    now = row_of(
        "a", Verdict.NO_DATA, deviation="half-scores", reason="not in these results"
    )
    [row] = updated([now], [old])
    assert (row.verdict, row.deviation) == (Verdict.WITH_DEVIATION, "half-scores")
    assert row.measured == "1.01"
    assert row.runs == 50
    assert row.reason == ""
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
    row = LedgerRow(
        "p/t/x",
        "p",
        "T",
        "mean",
        printed,
        verdict=verdict,
        reason=reason,
        smallest_error=number,
        runs=3,
    )
    path = tmp_path_factory.mktemp("ledger") / "ledger.csv"
    path.write_text(to_csv([row]), encoding="utf-8", newline="")
    [read] = read_ledger(path)
    assert read.printed == printed
    assert read.reason == reason
    assert read.verdict == verdict
    assert read.runs == 3
    assert read.smallest_error == (
        None if number is None else pytest.approx(number, rel=1e-3)
    )


def test_tables_of_the_ledger():
    verdicts = [v for i, v in enumerate(Verdict, start=1) for _ in range(i)]
    ledger = [row_of(str(i), v, reason=f"{v} | why") for i, v in enumerate(verdicts)]
    ledger += [replace(ledger[0], id=f"toy/table-{i}/x") for i in (10, 2)]
    counts = [[cell.text for cell in row] for row in counts_table(ledger).rows]
    assert [row[1] for row in counts] == ["table-1", "table-2", "table-10", ""]
    assert counts[0][2:] == [*"123456789"]
    assert counts[-1][2:] == ["3", *"23456789"]
    shown = open_table(ledger).rows
    hidden = {"reproduced", "no data", "no config", "not testable"}
    assert {row[0].text for row in shown} == {
        r.id for r in ledger if r.verdict not in hidden
    }
    assert [row[5].text for row in shown[:5]] == ["not reproduced"] * 4 + ["trend only"]
    missing = [row[-1].text for row in missing_table(ledger).rows]
    assert missing == ["7", "8"]
    assert ledger_markdown(ledger).count("\\| why") >= len(verdicts)


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
        assert member["printed"] in member["about"]
        assert member["where"] in member["about"]
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
    assert "rudin2009" in about
    assert "precbench run rudin2009/tables-1-2" in about
    of_paper = {
        member["name"] for member in listed("deviations", "--paper", "gultekin")
    }
    assert of_paper == {name for name, d in deviations.items() if d.paper == "gultekin"}


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        pytest.param(
            ["claims", "--paper", "rudin"], "'rudin' 'rudin2009'", id="part of a paper"
        ),
        pytest.param(
            ["claims", "--table", "tabel-3"], "'table-3'", id="misspelt table"
        ),
        pytest.param(
            ["claims", "--verdict", "not reprodced"],
            "'not reproduced'",
            id="misspelt verdict",
        ),
        pytest.param(["claims", "--verdict", "x"], "'x'", id="unknown verdict"),
        pytest.param(
            ["solvers", "--paper", "rudin2009"],
            "solvers paper",
            id="solvers have no paper",
        ),
        pytest.param(
            ["deviations", "--verdict", "no data"],
            "deviations verdict",
            id="deviations have no verdict",
        ),
        pytest.param(["claim"], "'claim' 'claims'", id="misspelt list"),
    ],
)
def test_unknown_values_of_filters(arguments, places):
    refused(["list", *arguments], places)


# --- folders of results, and the verdicts where they hold nothing ---


EVERY_KIND = [
    mean("0.8", number="mean"),
    order(number="order"),
    order(number="times", metric=WALL_SECONDS),
    ratio(number="ratio"),
    claim("fact", "506", of="rows", number="fact"),
]


CELLS = auc_of(a=normal(120, 0.8), b=normal(120, 0.7))
ELSEWHERE = {("adult", *key[1:]): values for key, values in CELLS.items()}
each_kind = pytest.mark.parametrize(
    "published_claim", EVERY_KIND, ids=lambda claim: claim.id.split("/")[2]
)


@each_kind
@pytest.mark.parametrize(
    ("cells", "changes", "reason"),
    [
        pytest.param(
            CELLS,
            {"stand_in": True},
            "synthetic data stood in for housing",
            id="synthetic data",
        ),
        pytest.param(
            CELLS,
            {"smoke": True},
            "no results of .*: make them with precbench run letter",
            id="smoke size",
        ),
        pytest.param(
            ELSEWHERE,
            {},
            "the results hold no(thing| auc of [ab]) (of|on) housing",
            id="another data set",
        ),
        pytest.param(
            CELLS,
            {"status": "failed"},
            "the results hold no auc of",
            id="failed trials",
        ),
        pytest.param(
            auc_of(c=[0.5]),
            {},
            r"the results hold no auc of [ab] on housing \(test set\)",
            id="other solvers",
        ),
    ],
)
def test_no_verdict_without_results(tmp_path, published_claim, cells, changes, reason):
    if isinstance(published_claim, FactClaim) and (
        "status" in changes or len(cells) == 1
    ):
        return  # a count of rows needs no values
    folder = write_results(tmp_path, cells, seconds=TIMED | {"c": 1.0}, **changes)
    [row] = judged([published_claim], folder)
    assert row.verdict == Verdict.NO_DATA
    assert row.runs == 0
    assert row.measured == ""
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
    assert read_evidence([folder]).has_results
    assert not read_evidence([tmp_path]).has_results
    other = write_results(tmp_path / "other", auc_of(a=[0.6]))
    with raises(InputError, f"{folder} {other} toy"):
        read_evidence([folder, other])
    with raises(InputError, str(tmp_path / "none")):
        read_evidence([tmp_path / "none"])

"""The ledger.

Regressions, updates, files, tables and lists, and where results hold nothing.
"""

import json
import re
from dataclasses import replace
from itertools import compress, product

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

# from the best to the worst
DECISIONS = [
    Verdict.REPRODUCED,
    Verdict.WITH_DEVIATION,
    Verdict.TREND_ONLY,
    Verdict.NOT_REPRODUCED,
]
# Missing results are no reason for these.
FIXED = [Verdict.NO_POWER, Verdict.NO_CONFIG, Verdict.NOT_TESTABLE]


def changes_to(verdict, reference, kind):
    """Return the changes of a claim whose verdict in the reference is another one."""
    return list(changes([row_of("x", verdict, kind)], [row_of("x", reference, kind)]))


@pytest.mark.parametrize("kind", ["mean", "exact", "order", "rate"])
def test_a_decision_after_another_is_worse_if_its_rank_is(kind):
    for reference, verdict in product(DECISIONS, DECISIONS):
        if verdict is reference:
            assert not changes_to(verdict, reference, kind)
        else:
            [change] = changes_to(verdict, reference, kind)
            is_worse = DECISIONS.index(verdict) > DECISIONS.index(reference)
            assert change.worse == is_worse


@pytest.mark.parametrize("kind", ["mean", "exact", "order", "rate"])
def test_after_no_power_only_not_reproduced_is_worse(kind):
    for verdict in DECISIONS:
        [change] = changes_to(verdict, Verdict.NO_POWER, kind)
        assert change.worse == (verdict is Verdict.NOT_REPRODUCED)


@pytest.mark.parametrize(
    ("kind", "worse"),
    [
        pytest.param("mean", FIXED, id="mean"),
        pytest.param("order", FIXED, id="order"),
        # An exact number can always be computed.
        pytest.param(
            "exact", [*FIXED, Verdict.INCONCLUSIVE, Verdict.NO_DATA], id="exact"
        ),
        # No run cuts a study short.
        pytest.param("rate", [*FIXED, Verdict.INCONCLUSIVE], id="rate"),
    ],
)
def test_no_decision_is_worse_where_no_missing_results_are_the_reason(kind, worse):
    for reference, verdict in product(DECISIONS, set(Verdict) - set(DECISIONS)):
        worsened = [change.worse for change in changes_to(verdict, reference, kind)]
        assert worsened == ([True] if verdict in worse else [])


@pytest.mark.parametrize("kind", ["mean", "exact", "order", "rate"])
def test_no_verdict_changes_that_was_not_settled(kind):
    for verdict in Verdict:
        for reference in set(Verdict) - {*DECISIONS, Verdict.NO_POWER}:
            assert not changes_to(verdict, reference, kind)
    for verdict in set(Verdict) - set(DECISIONS):
        assert not changes_to(verdict, Verdict.NO_POWER, kind)


def test_a_new_claim_is_no_change():
    new = [row_of("new", Verdict.NOT_REPRODUCED)]
    assert not list(changes(new, [row_of("x", Verdict.REPRODUCED)]))


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


@pytest.mark.parametrize(("old", "new"), REPLACED.values(), ids=REPLACED)
def test_an_update_replaces_a_row(old, new):
    assert updated([new], [old]) == [new]


@pytest.mark.parametrize(("old", "new"), PRESERVED.values(), ids=PRESERVED)
def test_an_update_preserves_a_row(old, new):
    assert updated([new], [old]) == [old]


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
    old = row_of("a", REPRODUCED, runs=50, measured="1.01")
    new = row_of("a", NO_DATA, deviation="half-scores", reason="not in these results")
    [quoted] = updated([new], [old])
    assert quoted.verdict is Verdict.WITH_DEVIATION
    assert quoted.deviation == "half-scores"
    assert quoted.measured == "1.01"
    assert quoted.runs == 50
    assert quoted.reason == ""
    [without_deviation] = updated([replace(new, deviation="")], [quoted])
    assert without_deviation.verdict is REPRODUCED
    assert without_deviation.deviation == ""


def test_a_claim_of_another_kind_has_no_old_row():
    old = row_of("a", REPRODUCED, runs=50)
    new = row_of("a", NO_DATA, kind="order")
    assert updated([new], [old]) == [new]


def test_an_exact_number_keeps_the_reading_that_agreed():
    old = row_of("a", Verdict.WITH_DEVIATION, "exact", deviation="half-scores", runs=1)
    new = row_of("a", NO_DATA, "exact")
    assert updated([new], [old]) == [old]


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
    if number is None:
        assert read.smallest_error is None
    else:
        assert read.smallest_error == pytest.approx(number, rel=1e-3)


def ledger_of_all_verdicts():
    """Return one row that is reproduced, two with a deviation, and so on to nine.

    Two more rows that are reproduced are of other tables.
    """
    ledger = []
    for i, verdict in enumerate(Verdict):
        for j in range(i + 1):
            ledger.append(row_of(f"{i}-{j}", verdict, reason=f"{verdict} | why"))
    tenth = replace(ledger[0], id="toy/table-10/x")
    second = replace(ledger[0], id="toy/table-2/x")
    return [*ledger, tenth, second]


def test_verdicts_are_counted_by_place_and_in_all():
    table = counts_table(ledger_of_all_verdicts())
    places = [row[1].text for row in table.rows]
    assert places == ["table-1", "table-2", "table-10", ""]
    counts = [[cell.text for cell in row[2:]] for row in table.rows]
    assert counts[0] == [*"123456789"]
    assert counts[-1] == ["3", *"23456789"]


def test_open_claims_are_shown_from_the_worst():
    ledger = ledger_of_all_verdicts()
    hidden = {"reproduced", "no data", "no config", "not testable"}
    rows = open_table(ledger).rows
    assert {row[0].text for row in rows} == {
        row.id for row in ledger if row.verdict not in hidden
    }
    verdicts = [row[5].text for row in rows]
    assert verdicts[:5] == ["not reproduced"] * 4 + ["trend only"]


def test_claims_without_values_are_counted():
    table = missing_table(ledger_of_all_verdicts())
    assert [row[-1].text for row in table.rows] == ["7", "8"]


def test_a_bar_in_a_reason_ends_no_cell():
    ledger = ledger_of_all_verdicts()
    assert ledger_markdown(ledger).count("\\| why") >= len(ledger) - 2


# --- ``precbench list`` of claims and deviations ---


def listed(*options):
    return json.loads(succeed("list", *options, "--json").stdout)


def test_claims_are_listed_by_paper_place_and_verdict(claims, reference, monkeypatch):
    monkeypatch.setattr("precbench.claims.load_claims", lambda: claims)
    everything = listed("claims")
    assert [member["name"] for member in everything] == [c.id for c in claims]
    for member in everything:
        paper, place, *_ = member["name"].split("/")
        assert member["paper"] == paper
        assert member["place"] == place
        assert member["verdict"] == reference[member["name"]].verdict
        assert member["printed"] in member["about"]
        assert member["where"] in member["about"]
    options = {
        "paper": ["--paper", "kar2014"],
        "place": ["--table", "table-2"],
        "verdict": ["--verdict", "not reproduced"],
    }
    for are_given in product((False, True), repeat=3):
        given = list(compress(options, are_given))
        expected = [
            member
            for member in everything
            if all(member[key] == options[key][1] for key in given)
        ]
        chosen = [text for key in given for text in options[key]]
        assert listed("claims", *chosen) == expected


def test_deviations_are_listed():
    members = {member["name"]: member for member in listed("deviations")}
    deviations = load_deviations()
    assert set(members) == set(deviations)
    description = members["half-scores"]["about"]
    assert "rudin2009" in description
    assert "precbench run rudin2009/tables-1-2" in description
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
    needs_values = not isinstance(published_claim, FactClaim)
    if not needs_values and ("status" in changes or len(cells) == 1):
        return
    folder = write_results(tmp_path, cells, seconds=TIMED | {"c": 1.0}, **changes)
    [row] = judged([published_claim], folder)
    assert row.verdict == Verdict.NO_DATA
    assert row.runs == 0
    assert row.measured == ""
    assert re.match(reason, row.reason)


@each_kind
def test_no_verdict_without_a_config(tmp_path, published_claim):
    folder = write_results(tmp_path, CELLS, seconds=TIMED)
    assert judged([published_claim], folder)[0].verdict is Verdict.REPRODUCED
    for update, reason in (
        ({"untested": "no experiment times it"}, "no experiment times it"),
        ({"config": "kar2099/fig1"}, "there is no config kar2099/fig1 yet"),
    ):
        [row] = judged([published_claim.model_copy(update=update)], folder)
        assert row.verdict is Verdict.NO_CONFIG
        assert row.reason == reason


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

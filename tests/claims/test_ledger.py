"""The ledger: regressions, updates, its files and tables."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precbench.claims.ledger import LedgerRow, changes, read_ledger, to_csv, updated
from precbench.claims.verdicts import Verdict
from precbench.report.ledger import counts_table, ledger_markdown, missing_table, open_table
from tests.claims.helpers import row_of


def test_regressions():
    decided = [Verdict.REPRODUCED, Verdict.WITH_DEVIATION]
    decided += [Verdict.TREND_ONLY, Verdict.NOT_REPRODUCED]
    for kind, before, after in product(("mean", "exact", "order", "rate"), Verdict, Verdict):
        found = changes([row_of("x", after, kind)], [row_of("x", before, kind)])
        if before is Verdict.NO_POWER and after in decided:
            [change] = found
            assert change.worse == (after is Verdict.NOT_REPRODUCED)
        elif before is after or before not in decided:
            assert not found
        elif after in decided:
            [change] = found
            assert change.worse == (decided.index(after) > decided.index(before))
        else:  # an exact number can always be computed; results are no reason for the others
            fixed = after in (Verdict.NO_POWER, Verdict.NO_CONFIG, Verdict.NOT_TESTABLE)
            fixed |= kind == "rate" and after is Verdict.INCONCLUSIVE  # no run cuts a study short
            assert [change.worse for change in found] == [True] * (kind == "exact" or fixed)
    assert not changes([row_of("new", Verdict.NOT_REPRODUCED)], [row_of("x", Verdict.REPRODUCED)])


STATEMENT, BLUNT = ({"kind": "statement"}, {"runs": 200})
UPDATES = [  # before, now, and which of them stays
    ((Verdict.REPRODUCED, {"measured": "1"}), (Verdict.INCONCLUSIVE, {"measured": "7"}), "before"),
    ((Verdict.TREND_ONLY, {}), (Verdict.NOT_REPRODUCED, {}), "now"),
    ((Verdict.NO_DATA, {}), (Verdict.REPRODUCED, {}), "now"),
    ((Verdict.INCONCLUSIVE, {"runs": 5}), (Verdict.NO_DATA, {}), "before"),
    ((Verdict.NO_DATA, {}), (Verdict.INCONCLUSIVE, {"runs": 5}), "now"),
    ((Verdict.REPRODUCED, {}), (Verdict.NOT_TESTABLE, STATEMENT), "now"),
    ((Verdict.NOT_TESTABLE, STATEMENT), (Verdict.NO_DATA, {}), "now"),
    *(
        ((before, {}), (Verdict.NO_POWER, BLUNT), "now")
        for before in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.INCONCLUSIVE)
    ),
    ((Verdict.NO_POWER, BLUNT), (Verdict.NO_DATA, {}), "before"),
    # A study is never cut short, however many values it compares.
    *(
        ((Verdict.REPRODUCED, {"kind": kind, "runs": 50}), (verdict, {"kind": kind, **runs}), stays)
        for kind, verdict, runs, stays in (
            ("mean", Verdict.INCONCLUSIVE, {"runs": 0}, "before"),
            ("mean", Verdict.INCONCLUSIVE, {"runs": 49}, "before"),
            ("mean", Verdict.INCONCLUSIVE, {"runs": 50}, "now"),
            ("bound", Verdict.INCONCLUSIVE, {"runs": 9}, "now"),
            ("mean", Verdict.NO_DATA, {}, "before"),
            ("bound", Verdict.NO_DATA, {}, "before"),
        )
    ),
]


@pytest.mark.parametrize(("before", "now", "stays"), UPDATES)
def test_what_an_update_keeps(before, now, stays):
    old, new = (row_of("a", verdict, **about) for verdict, about in (before, now))
    gone, added = row_of("gone", Verdict.REPRODUCED), row_of("new", Verdict.NO_CONFIG)
    row = {"before": old, "now": new}[stays]
    assert updated([new, added], [old, gone]) == [row, added]


def test_a_row_that_is_kept_quotes_the_claim_as_it_is_now():
    """The verdict of other days stands under the deviations that the claim names today."""
    old = row_of("a", Verdict.REPRODUCED, runs=50, measured="1.01")
    now = row_of("a", Verdict.NO_DATA, deviation="half-scores", reason="not in these results")
    [row] = updated([now], [old])
    assert (row.verdict, row.deviation) == (Verdict.WITH_DEVIATION, "half-scores")
    assert (row.measured, row.runs, row.reason) == ("1.01", 50, "")
    [row] = updated([replace(now, deviation="")], [row])
    assert (row.verdict, row.deviation) == (Verdict.REPRODUCED, "")
    of_another_kind = replace(now, kind="order")
    assert updated([of_another_kind], [old]) == [of_another_kind]
    exact = row_of("a", Verdict.WITH_DEVIATION, "exact", deviation="half-scores", runs=1)
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
    assert (read.printed, read.reason, read.verdict, read.runs) == (printed, reason, verdict, 3)
    assert read.smallest_error == (None if number is None else pytest.approx(number, rel=1e-3))


def test_tables_of_the_ledger():
    verdicts = [v for i, v in enumerate(Verdict, start=1) for _ in range(i)]
    ledger = [row_of(str(i), v, reason=f"{v} | why") for i, v in enumerate(verdicts)]
    ledger += [replace(ledger[0], id=f"toy/table-{i}/x") for i in (10, 2)]
    counts = [[cell.text for cell in row] for row in counts_table(ledger).rows]
    assert [row[1] for row in counts] == ["table-1", "table-2", "table-10", ""]
    assert counts[0][2:] == [*"123456789"] and counts[-1][2:] == ["3", *"23456789"]
    shown = open_table(ledger).rows
    hidden = {"reproduced", "no data", "no config", "not testable"}
    assert {row[0].text for row in shown} == {r.id for r in ledger if r.verdict not in hidden}
    assert [row[5].text for row in shown[:5]] == ["not reproduced"] * 4 + ["trend only"]
    missing = [row[-1].text for row in missing_table(ledger).rows]
    assert missing == ["7", "8"] and ledger_markdown(ledger).count("\\| why") >= len(verdicts)

"""The programs that measure: ratios and their targets, peers, large files."""

import pandas as pd
import pytest

from scripts import peers, scale
from scripts.bench import Case
from scripts.peers import CONTESTANTS, OURS, VW, Size

TIMES = {"slow": lambda: 3.0, "fast": lambda: 1.5, "other": lambda: 1.0}


def test_times_are_related_to_the_yardstick(capsys):
    case = Case("a pass", TIMES, yardstick="fast", most={"slow": 1.9})
    rows = case.measure(rounds=2)
    about = {"bench": "a pass", "to": "fast", "least": False}
    assert rows == [
        {**about, "of": "slow", "ratio": 2.0, "target": 1.9, "met": False},
        {**about, "of": "other", "ratio": 0.67, "target": None, "met": True},
    ]
    assert "slow to fast: 2.00 x (at most 1.9, missed)" in capsys.readouterr().out


# --- the contest of peers: missing ones are skipped, a wrong ranking is noticed ---


TINY = Size(600, 20, 6, 0.2)


def test_contestants_that_are_installed_run_and_a_missing_one_is_skipped(
    monkeypatch, capsys
):
    pytest.importorskip("vowpalwabbit")
    missing = CONTESTANTS[VW]._replace(module="no_such_module")
    few = {name: CONTESTANTS[name] for name in (OURS, VW)}
    monkeypatch.setattr(peers, "CONTESTANTS", {**few, "missing": missing})
    rows, figures = peers.contest("tiny", TINY, rounds=1, test_rows=600)
    assert [row["of"] for row in rows] == [OURS, VW]
    assert "missing: skipped, vowpalwabbit is not installed" in capsys.readouterr().out
    assert all(row["prec_quarter"] > 0.5 and row["memory_mb"] > 10 for row in rows)
    assert {figure["to"] for figure in figures if figure["of"] == OURS} > {VW}


# --- the figures of large files, at a small size ---


@pytest.mark.extras("pyarrow")
def test_a_pass_over_each_kind_of_file_is_measured(capsys):
    table = pd.DataFrame(scale.streams(3000, rounds=1))
    assert list(table["of"].value_counts()) == [5, 5] and (table["seconds"] > 0).all()

"""The programs that measure: ratios and their targets, peers, large files."""

import pandas as pd
import pytest

from scripts import peers, scale
from scripts.bench import Case
from scripts.peers import CONTESTANTS, OURS, VW, Package, Size


def test_times_are_related_to_the_yardstick(capsys):
    contestants = {"slow": lambda: 3.0, "fast": lambda: 1.5, "other": lambda: 1.0}
    case = Case("a pass", contestants, yardstick="fast", most={"slow": 1.9})
    slow, other = case.measure(rounds=2)
    common = {"bench": "a pass", "to": "fast", "least": False}
    assert slow == common | {"of": "slow", "ratio": 2.0, "target": 1.9, "met": False}
    assert other == common | {"of": "other", "ratio": 0.67, "target": None, "met": True}
    assert "slow to fast: 2.00 x (at most 1.9, missed)" in capsys.readouterr().out


# --- the contest of peers: missing ones are skipped, a wrong ranking is noticed ---


TINY = Size(rows=600, columns=20, drawn=6, share=0.2)


def test_contestants_that_are_installed_run_and_a_missing_one_is_skipped(capsys):
    pytest.importorskip("vowpalwabbit")
    missing = CONTESTANTS[VW]._replace(package=Package("vowpalwabbit", "no_such"))
    contestants = {
        OURS: CONTESTANTS[OURS],
        VW: CONTESTANTS[VW],
        "missing": missing,
    }
    contest = peers.contest(
        "tiny", TINY, rounds=1, test_rows=600, contestants=contestants
    )
    assert [row["of"] for row in contest.rows] == [OURS, VW]
    assert "missing: skipped, vowpalwabbit is not installed" in capsys.readouterr().out
    for row in contest.rows:
        assert row["prec_quarter"] > 0.5
        assert row["memory_mb"] > 10
    rivals_of_ours = {ratio["to"] for ratio in contest.ratios if ratio["of"] == OURS}
    assert rivals_of_ours > {VW}


# --- the figures of large files, at a small size ---


@pytest.mark.extras("pyarrow")
def test_a_pass_over_each_kind_of_file_is_measured():
    table = pd.DataFrame(scale.streams(3000, rounds=1))
    assert table["of"].value_counts().to_dict() == {"npy": 5, "Parquet": 5}
    assert (table["seconds"] > 0).all()

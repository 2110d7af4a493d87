"""The contest of peers: who is missing is skipped, and a wrong ranking is noticed."""

import numpy as np
import pandas as pd
import pytest

from scripts import peers
from scripts.peers import CONTESTANTS, OURS, THREADS, VW, WHY, Size

TINY = Size(600, 20, 6, 0.2)


def test_contestants_that_are_installed_run_and_a_missing_one_is_skipped(monkeypatch, capsys):
    pytest.importorskip("vowpalwabbit")
    missing = CONTESTANTS[VW]._replace(module="no_such_module")
    few = {name: CONTESTANTS[name] for name in (OURS, VW)}
    monkeypatch.setattr(peers, "CONTESTANTS", {**few, "missing": missing})
    rows, figures = peers.contest("tiny", TINY, rounds=1, test_rows=600)
    assert [row["of"] for row in rows] == [OURS, VW]
    assert "missing: skipped, vowpalwabbit is not installed" in capsys.readouterr().out
    assert all(row["prec_quarter"] > 0.5 and row["memory_mb"] > 10 for row in rows)
    assert {figure["to"] for figure in figures if figure["of"] == OURS} > {VW}


@pytest.mark.parametrize("name", CONTESTANTS)
def test_contestant_ranks_better_than_chance_and_reversed_scores_are_noticed(
    name, tmp_path, monkeypatch
):
    peer = CONTESTANTS[name]
    pytest.importorskip(peer.module)
    peers.write_all(TINY, tmp_path, 600)

    def held(**changed):
        monkeypatch.setitem(peers.CONTESTANTS, name, peer._replace(**changed))
        row = {"bench": "tiny", "of": name, **peers.measured(name, tmp_path, TINY.columns)}
        return peers.judged(row, TINY.share, [])

    [right] = held()
    assert right["met"] and right["ratio"] > 2

    def reversed_steps(*args):
        yield None
        for scorer in [step for step in peer.steps(*args) if step]:
            yield lambda X, scorer=scorer: -np.asarray(scorer(X))

    [wrong] = held(steps=reversed_steps)
    assert not wrong["met"]


def test_a_miss_is_told_with_its_reason():
    rows = [
        {"bench": "48,842 x 123", "of": of, "total": time, "total_wall": time, "prec_quarter": top}
        for of, time, top in ((OURS, 3.0, 0.8), (THREADS, 2.0, 0.8), (VW, 5.0, 0.9))
    ]
    told = peers.missed_list(pd.DataFrame(rows)).splitlines()
    reasons = [WHY[key] for key in (f"{OURS} to {VW}", f"{OURS} to {VW}, prec@0.25", "speed-up")]
    assert [line.split("; ")[1] for line in told] == [f"{reason}." for reason in reasons]
    assert [line.split(" x (")[0].split()[-1] for line in told] == ["0.60", "0.89", "1.50"]
    assert peers.missed_list(pd.DataFrame([rows[2]])) == "None is missed.\n"
    rows[0]["total_wall"], rows[2]["total"] = 4.0, 9.0
    [_, unjudged] = peers.missed_list(pd.DataFrame(rows)).splitlines()
    assert unjudged.endswith(f"speed-up: 2.00 x; not judged: {peers.OTHER_WORK}.")

"""The contest of peers: who is missing is skipped, and a wrong ranking is noticed."""

import pytest

from scripts import peers
from scripts.peers import CONTESTANTS, OURS, VW, Size

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

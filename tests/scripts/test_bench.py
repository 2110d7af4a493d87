"""The bench: how ratios are taken and held to their targets."""

from pathlib import Path

import pandas as pd
import pytest

from scripts import bench
from scripts.bench import Case

TIMES = {"slow": lambda: 3.0, "fast": lambda: 1.5, "other": lambda: 1.0}


def test_times_are_related_to_the_yardstick(capsys):
    rows = Case("a pass", TIMES, "fast", {"slow": 1.9}).measure(2)
    about = {"bench": "a pass", "to": "fast", "least": False}
    assert rows == [
        {**about, "of": "slow", "ratio": 2.0, "target": 1.9, "met": False},
        {**about, "of": "other", "ratio": 0.67, "target": None, "met": True},
    ]
    assert "slow to fast: 2.00 x (at most 1.9, missed)" in capsys.readouterr().out


def test_a_speed_up_is_that_of_the_yardstick_and_shown_where_it_has_a_target():
    [row] = Case("speed-up", TIMES, "slow", least={"other": 3}).measure(1)
    assert (row["of"], row["to"], row["ratio"]) == ("slow", "other", 3.0)
    assert row["least"] and row["met"]
    [row] = Case("speed-up", TIMES, "slow", least={"fast": 3}).measure(1)
    assert not row["met"]


def test_without_a_yardstick_times_are_shown_alone_with_their_notes(capsys):
    assert Case("shown", TIMES, note=lambda name, t: f"{name} {t:g}!").measure(1) == []
    assert "slow 3!" in capsys.readouterr().out


def test_what_misses_its_target_is_told_last_with_what_takes_the_time(capsys):
    slow = {"2pmb, pauc": lambda: 3.0, "other": lambda: 2.0, "fast": lambda: 1.0}
    rows = Case("stored", slow, "fast", {"2pmb, pauc": 2.0, "other": 1.0}).measure(1)
    capsys.readouterr()
    assert bench.report(rows) == rows
    assert capsys.readouterr().out.splitlines()[1:] == [
        "0 of 2 ratios within their targets",
        "  stored, 2pmb, pauc to fast: 3.00 x (at most 2, missed)",
        f"    {bench.WHY['2pmb, pauc']}",
        "  stored, other to fast: 2.00 x (at most 1, missed)",
    ]


def test_rounds_are_taken_in_turn():
    order = []
    contestants = {name: lambda name=name: order.append(name) or 1.0 for name in "ab"}
    Case("turns", contestants, fewer=2).measure(5)
    assert order == ["a", "b"] * 2


ROW = {"bench": "a pass", "of": "slow", "to": "fast", "least": False}


def test_what_takes_longer_than_before_is_lost():
    """A speed-up is slower where it is less; of several measurements the median counts."""
    before = pd.DataFrame([{**ROW, "ratio": 2.0}, {**ROW, "of": "other", "ratio": 10.0}])

    def lost(*rows):
        return bench.lost(pd.DataFrame([{**ROW, **row} for row in rows]), before)

    assert lost({"ratio": 2.2}, {"of": "new", "ratio": 9.0}) == set()
    [told] = lost({"ratio": 2.4})
    assert "2.40 x" in told and "it was 2.00 x" in told
    assert not lost({"ratio": 2.1}, {"ratio": 2.2}, {"ratio": 9.0})
    assert lost({"of": "other", "ratio": 8.0, "least": True})
    assert not lost({"of": "other", "ratio": 12.0, "least": True})


@pytest.mark.parametrize(("ratios", "is_slower"), [([2.5, 2.5], True), ([2.5, 2.0], False)])
def test_what_is_slower_than_another_checkout_twice_is_told(monkeypatch, ratios, is_slower):
    """The two take turns; noise that does not repeat is none."""
    folders = []

    def measured(folder, name, rounds):
        of_base = folder == Path("base")
        ratio = 2.0 if of_base else ratios[folders.count(folder) // bench.TURNS]
        folders.append(folder)
        return pd.DataFrame([{**ROW, "ratio": ratio}])

    monkeypatch.setattr(bench, "_measured_in", measured)
    assert bool(bench.slower("a pass", Path("base"), 1)) == is_slower
    assert folders == [Path("base"), bench.ROOT] * 2 * bench.TURNS


def test_a_checkout_is_measured_by_its_own_code_and_keeps_its_figures(tmp_path):
    kept = tmp_path / "results" / "reference" / "bench.csv"
    kept.parent.mkdir(parents=True)
    kept.write_text("bench,of\nkept,a\n")
    program = tmp_path / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "measured,$*" >> results/reference/bench.csv\nexit 1\n')
    program.chmod(0o755)
    [row] = bench._measured_in(tmp_path, "csr", 7).to_dict("records")
    assert row["bench"] == "measured" and "--only csr --rounds 7" in row["of"]
    assert kept.read_text() == "bench,of\nkept,a\n"

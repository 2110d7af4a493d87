"""The bench: how ratios are taken and held to their targets."""

import pandas as pd

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


def test_what_is_slower_than_before_twice_fails(capsys):
    """A speed-up is slower where it is less; noise that does not repeat is none."""
    row = {"bench": "a pass", "of": "slow", "to": "fast", "target": None, "least": False}
    before = pd.DataFrame([{**row, "ratio": 2.0}, {**row, "of": "other", "ratio": 10.0}])
    assert bench.lost([{**row, "ratio": 2.2}, {**row, "of": "new", "ratio": 9.0}], before) == set()
    [told] = bench.lost([{**row, "ratio": 2.4}], before)
    assert "2.40 x" in told and "it was 2.00 x" in told
    assert bench.lost([{**row, "of": "other", "ratio": 8.0, "least": True}], before)
    assert not bench.lost([{**row, "of": "other", "ratio": 12.0, "least": True}], before)

    def once(ratio):
        times = {"slow": lambda: ratio, "fast": lambda: 1.0}
        return [Case("a pass", times, "fast", {"slow": 9.0})]

    benches = [lambda: once(2.0), lambda: once(2.5)]  # the first was slower by noise
    measured = [[{**row, "ratio": 2.5}]] * 2
    assert bench._slower(benches, measured, before, 1) == 1
    assert capsys.readouterr().out.count("it was") == 1

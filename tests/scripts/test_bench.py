"""The bench: how ratios are taken and held to their targets."""

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

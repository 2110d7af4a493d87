"""The bench: how ratios are taken and held to their targets."""

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

"""The figures of large files and of workers, at a small size."""

import numpy as np
import pandas as pd
import pytest

from precbench import SGDAtK
from scripts import scale


def test_a_pass_over_each_kind_of_file_is_measured(capsys):
    table = pd.DataFrame(scale.streams(3000, rounds=1))
    assert list(table["of"].value_counts()) == [5, 5] and (table["seconds"] > 0).all()
    assert "reading the file" in scale.scale_table(table, "stream")


def test_what_workers_send_is_counted(capsys, monkeypatch):
    monkeypatch.setattr(scale, "LONG", 100)
    n = 2000  # so that the vectors of each tenth are longer
    table = pd.DataFrame(scale.workers(n, 3, rounds=1))
    moved = table.drop_duplicates("of").set_index("of")["bytes_a_row"]
    # Scores of 8 bytes come back, products take as many; labels are one byte.
    assert moved["`cutting-plane`, 3 columns"] == 16
    assert moved["`bbr`, 3 columns"] == 1
    for part in ("workers", "paper"):
        assert scale.scale_table(table, part).count("\n") == 2 + len(scale.WHOLE)


def test_the_mean_of_one_pass_is_the_pass():
    rng = np.random.default_rng(0)
    X, rows = rng.standard_normal((800, 3)), np.arange(800)
    y = X[:, 0] > 1
    one = scale._mean_of_passes(X, y, [rows], 0.1)
    assert (one == SGDAtK(eta0=0.1).partial_fit(X, y).coef_).all()
    halves = [scale._mean_of_passes(X, y, [half], 0.1) for half in np.array_split(rows, 2)]
    both = scale._mean_of_passes(X, y, np.array_split(rows, 2), 0.1)
    assert both == pytest.approx(np.mean(halves, axis=0))

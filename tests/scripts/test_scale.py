"""The figures of large files, at a small size."""

import numpy as np
import pandas as pd
import pytest

from precbench import SGDAtK
from scripts import scale


def test_a_pass_over_each_kind_of_file_is_measured(capsys):
    table = pd.DataFrame(scale.streams(3000, rounds=1))
    assert list(table["of"].value_counts()) == [5, 5] and (table["seconds"] > 0).all()
    assert "reading the file" in scale.scale_table(table, "stream")


def test_the_mean_of_one_pass_is_the_pass():
    rng = np.random.default_rng(0)
    X, rows = rng.standard_normal((800, 3)), np.arange(800)
    y = X[:, 0] > 1
    one = scale._mean_of_passes(X, y, [rows], 0.1)
    assert (one == SGDAtK(eta0=0.1).partial_fit(X, y).coef_).all()
    halves = [scale._mean_of_passes(X, y, [half], 0.1) for half in np.array_split(rows, 2)]
    both = scale._mean_of_passes(X, y, np.array_split(rows, 2), 0.1)
    assert both == pytest.approx(np.mean(halves, axis=0))

"""A trial copies the training rows once and nothing else of their size."""

import sys

import numpy as np
import pytest

from tests.helpers import printed_numbers

PROGRAM = """
import os
import sys
from math import inf
import numpy as np
from precbench.data import Dataset
from precbench.experiment import load_config
from precbench.runner.worker import Job, run_job
from precbench.store import Store

config, folder, npy = sys.argv[1:]
X = np.load(npy, mmap_mode="r")
y = np.where(np.arange(len(X)) % 10, -1.0, 1.0)
data = Dataset("mine", "mine", np.asarray(X), y, "0" * 64)
for i, trial in enumerate(load_config(config).trials()):
    if os.fork():  # each trial has a process of its own, whose peak begins anew
        assert os.wait()[1] == 0
        continue
    key = f"{i:064}"
    job = Job(trial, key, folder, data, inf, inf, "sequential", "none", "none")
    before = peak()
    assert run_job(job) == "ok", Store(folder).read(key).reason
    print((peak() - before) * 1024 / X.nbytes)
    sys.exit()
"""


@pytest.mark.promise("R4")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux only")
def test_peak_memory_of_a_trial(small, tmp_path):
    """All rows mapped (1.0) and the training set (0.7), within 2.5 of the matrix."""
    rows = tmp_path / "X.npy"
    np.save(rows, np.random.default_rng(0).standard_normal((100_000, 60)))  # 48 MB
    config = small(
        solvers="{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}}, "
        "cutting-plane: {max_iter: 5}, logistic-regression: {max_iter: 5}, "
        "linear-svm: {max_iter: 5}}",
        common="{k: 0.25, epochs: 2, shuffle: blocks}",
        protocol="{n_splits: 1}",
        scaling="standardise",
    )
    *peaks, linear_svm = printed_numbers(PROGRAM, config, tmp_path / "out", rows)
    assert len(peaks) == 4 and max(peaks) <= 2.5
    # LIBLINEAR copies the training set, 16 bytes for each value and two more for each row.
    assert linear_svm - max(peaks) <= 1.1 * 0.7 * 2 * 62 / 60

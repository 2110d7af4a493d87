"""A trial copies the training rows once and nothing else of their size."""

import sys

import numpy as np
import pytest

from tests.helpers import printed_number

PROGRAM = """
import sys
import numpy as np
from precbench.data import Dataset
from precbench.experiment import load_config
from precbench.runner.worker import Job, run_job
from precbench.store import Store

config, folder, label, npy = sys.argv[1:]
X = np.load(npy, mmap_mode="r")
y = np.where(np.arange(len(X)) % 10, -1.0, 1.0)
data = Dataset("mine", "mine", np.asarray(X), y, "0" * 64)
[trial] = [t for t in load_config(config).trials() if t.label == label]
job = Job(trial, "0" * 64, folder, data, float("inf"), "sequential", "none", "none")
before = peak()
assert run_job(job) == "ok", Store(folder).read("0" * 64)["reason"]
print((peak() - before) * 1024 / X.nbytes)
"""


@pytest.fixture(scope="module")
def rows_of_96_mb(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, np.random.default_rng(0).standard_normal((200_000, 60)))
    return path


@pytest.mark.promise("R6")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux only")
@pytest.mark.parametrize(
    ("label", "most"),
    [
        ("perceptron-avg", 2.5),
        ("sgd-avg", 2.5),
        ("cutting-plane", 2.5),
        ("logistic-regression", 2.5),
        ("linear-svm", 3.5),  # LIBLINEAR keeps rows of its own, 16 bytes a value
    ],
)
def test_peak_memory_of_a_trial(small, tmp_path, rows_of_96_mb, label, most):
    """All rows mapped (1.0) and the training part (0.7), within 2.5 of the matrix."""
    config = small(
        solvers="{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}}, "
        "cutting-plane: {max_iter: 5}, logistic-regression: {max_iter: 5}, "
        "linear-svm: {max_iter: 5}}",
        common="{k: 0.25, epochs: 2, shuffle: blocks}",
        protocol="{n_splits: 1}",
        scaling="standardise",
    )
    assert printed_number(PROGRAM, config, tmp_path / "out", label, rows_of_96_mb) <= most

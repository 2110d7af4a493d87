"""A trial copies the training rows once and nothing else of their size."""

import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import sys
import numpy as np
from precbench.data import Dataset
from precbench.experiment import load_experiment
from precbench.runner.worker import Job, run_job
from precbench.store import Store

def peak():  # ru_maxrss would begin at that of the parent process
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

config, folder, label, npy = sys.argv[1:]
X = np.load(npy, mmap_mode="r")
y = np.where(np.arange(len(X)) % 10, -1.0, 1.0)
data = Dataset("mine", "mine", np.asarray(X), y, "0" * 64)
[trial] = [t for t in load_experiment(config).trials() if t.label == label]
job = Job(trial, "0" * 64, folder, data, float("inf"), "sequential", "none", "none")
before = peak()
assert run_job(job) == "ok", Store(folder).read("0" * 64)["reason"]
print((peak() - before) * 1024 / X.nbytes)
"""


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
def test_peak_memory_of_a_trial(small, tmp_path, label, most):
    """All rows mapped (1.0) and the training part (0.7), within 2.5 of the matrix."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.standard_normal((200_000, 60)))
    config = small(
        solvers="{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}}, "
        "cutting-plane: {max_iter: 5}, logistic-regression: {max_iter: 5}, "
        "linear-svm: {max_iter: 5}}",
        common="{k: 0.25, epochs: 2, shuffle: blocks}",
        protocol="{n_splits: 1}",
        scaling="standardise",
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, config, tmp_path / "out", label, tmp_path / "X.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) <= most

"""A command killed while it writes leaves each file whole or as before, and can be given again."""

import os
import random
import shutil
import signal
import sys
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest

from precbench.npz import unpack
from tests.helpers import invoke, numbers, succeed
from tests.test_faults import Disk, run_in_this_process

CONFIG = """
name: mine
title: Mine
datasets: [{file: rows.csv, label: y}]
protocol: {n_splits: 2}
solvers: {perceptron-avg: {epochs: 1}}
metrics: [auc]
plots: []
checkpoints: 2
"""
FIT = ["rows.csv", "--label", "y", "--k", "3", "--splits", "2", "--solver", "sgd-avg"]
COMMANDS = {
    "compare": ["compare", *FIT, "--jobs", "1", "--out", "out"],
    "fit": ["fit", *FIT, "--save", "model.npz"],
    "score": ["score", "scorer.npz", "rows.csv", "--out", "top.csv"],
    "report": ["report", "results"],
    "merge": ["merge", "results", "other", "--out", "out", "--config", "mine.yaml", "--no-plots"],
    "data add": ["data", "add", "housing", "housing.data"],
}


def prepare(folder, name, mirror):
    """Write what a command reads, and former versions of the files that it replaces."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.standard_normal((120, 3)).round(3), columns=["a", "b", "c"])
    rows.assign(y=(rows["a"] + rows["b"] > 0.5).astype(int)).to_csv(
        folder / "rows.csv", index=False
    )
    (folder / "mine.yaml").write_text(CONFIG)
    (folder / "top.csv").write_text("former\n")
    (folder / "model.npz").write_bytes(b"former")
    before = {
        "score": [["fit", *FIT, "--save", "scorer.npz"]],
        "report": [["run", "mine.yaml"]],
        "merge": [
            ["run", "mine.yaml", "--splits", "0"],
            ["run", "mine.yaml", "--splits", "1", "--out", "other"],
        ],
    }
    for arguments in before.get(name, []):
        assert invoke(*arguments).exit_code == 0
    if name == "data add":
        shutil.copy(mirror / "housing" / "housing.data", folder)


def made(name, folder, cache):
    """Return what a command has made, without times."""
    if name == "compare":
        [results] = (folder / "out").glob("compare-*")
        return numbers(results).to_csv()
    if name == "merge":
        return numbers(folder / "out" / "mine").to_csv()
    if name == "fit":
        return unpack(folder / "model.npz", ["coef"])["coef"].tobytes()
    if name == "data add":
        return sha256((cache / "files" / "housing" / "housing.data").read_bytes()).hexdigest()
    return (folder / {"score": "top.csv", "report": "results/mine/report.html"}[name]).read_bytes()


def killed(disk, n, arguments):
    """Give a command in a copy of this process that is killed as it touches the disk again."""
    child = os.fork()
    if not child:
        disk.touch = lambda: disk.count_and_die(n)
        invoke(*arguments)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


class Deadly(Disk):
    """A disk of which the n-th use is the last thing that the process does."""

    def count_and_die(self, n):
        self.n_calls += 1
        if self.n_calls == n:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="copies a process that has threads")
@pytest.mark.promise("R1")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_while_it_writes_leaves_nothing_half_written(
    name, tmp_path, cache, monkeypatch, request, size, figure
):
    mirror = request.getfixturevalue("mirror") if name == "data add" else None
    whole = tmp_path / "whole"
    whole.mkdir()
    monkeypatch.chdir(whole)
    run_in_this_process(monkeypatch)
    prepare(whole, name, mirror)
    shutil.copytree(whole, tmp_path / "before")
    disk = Deadly("", monkeypatch)
    assert invoke(*COMMANDS[name]).exit_code == 0
    expected, n_calls = made(name, whole, cache), disk.n_calls
    rng, kills = random.Random(0), size(2, 60)
    for n in sorted(rng.sample(range(1, n_calls + 1), min(kills, n_calls))):
        folder = tmp_path / str(n)
        shutil.copytree(tmp_path / "before", folder)
        shutil.rmtree(cache, ignore_errors=True)
        monkeypatch.chdir(folder)
        disk.n_calls = 0
        assert killed(disk, n, COMMANDS[name]), n
        for former in ("top.csv", "model.npz"):
            content = (folder / former).read_bytes()
            assert content.startswith(b"former") or content == (whole / former).read_bytes()
        succeed(*COMMANDS[name])
        assert made(name, folder, cache) == expected, n
    figure(f"{kills} commands killed while they write")

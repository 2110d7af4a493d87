"""Promises that are no matter of one module, most measured over rounds."""

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.results.store import Store
from precbench.runner import run_plan, to_do
from precbench.solvers import SOLVERS
from tests import laws, plant
from tests.helpers import ROOT, numbers, records, session, succeed, wait_until
from tests.sentences import raises
from tests.test_run import shared_memory_of

PRECBENCH = [sys.executable, "-m", "precbench"]


def finished(folder):
    """Read every file whole; return the records of those that are done, with times."""
    store = Store(folder)
    for record in store.records():
        store.arrays(record.key)
    for path in folder.rglob("*.json"):
        if "running" not in path.parts:  # marks are of no use after a kill
            json.loads(path.read_text())
    for path in folder.rglob("*.png"):
        Image.open(path).load()
    done = {record.key for record in store.records() if record.status == "ok"}
    times = records(folder)
    return {path: time for path, time in times.items() if path.stem in done}


class Undisturbed(NamedTuple):
    """A command that was not killed: how long it took, and what it left.

    Attributes
    ----------
    command : list of str
    seconds : float
    folder : str
        The name of its folder of results.
    numbers : pandas.DataFrame
    """

    command: list
    seconds: float
    folder: str
    numbers: pd.DataFrame


def run_undisturbed(command, out):
    command = [str(word) for word in command]
    start = time.monotonic()
    subprocess.run([*PRECBENCH, *command, "--out", out], check=True)
    seconds = time.monotonic() - start
    [folder] = out.iterdir()
    return Undisturbed(command, seconds, folder.name, numbers(folder))


def kill_parent(process):
    """Kill the parent alone, which its workers must not outlive."""
    process.kill()
    process.wait()
    wait_until(lambda: not session(process.pid), 60)
    assert not shared_memory_of(process.pid)


def kill_all(process):
    """Kill all processes at once, joblib's that removes its semaphores, too."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: not session(process.pid), 60)
    for path in shared_memory_of(process.pid):
        assert path.name.startswith("sem.loky-")
        path.unlink()


@pytest.mark.promise("R1", "R2")
@pytest.mark.measured
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.timeout(7200)
def test_runs_killed_at_random_moments_end_with_the_undisturbed_numbers(
    small, tmp_path, size, figure
):
    epochs = size(500, 1500)
    config = small(
        solvers=(
            f"{{perceptron-avg: {{epochs: {epochs}}}, sgd-avg: {{epochs:"
            f" {epochs + 1}}}, cutting-plane: }}"
        ),
        protocol="{n_splits: 4}",
        plots=size("[]", "[accuracy-time]"),
    )
    table = [tmp_path / "mine.csv", "--label", "label", "--k", "20"]
    solvers = ["--solver", "sgd-avg", "--solver", "cutting-plane"]
    compare = ["compare", *table, *solvers, "--splits", size(2, 4)]
    run = run_undisturbed(["run", config], tmp_path / "run")
    comparison = run_undisturbed(compare, tmp_path / "comparison")
    ways = [
        (run, kill_parent),
        (comparison, kill_parent),
        (run, kill_all),
        (comparison, kill_all),
    ]
    rng = random.Random(0)
    n_kills = size(4, 200)
    n_finished = 0
    for number, (whole, kill) in zip(range(n_kills), itertools.cycle(ways)):
        out = tmp_path / str(number)
        jobs = str(rng.randint(1, 2))
        process = subprocess.Popen(
            [*PRECBENCH, *whole.command, "--out", out, "--jobs", jobs],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(rng.uniform(0, whole.seconds))
        kill(process)
        folder = out / whole.folder
        done = finished(folder)
        succeed(*whole.command, "--out", out)
        assert done.items() <= records(folder).items(), "a finished trial was repeated"
        pd.testing.assert_frame_equal(numbers(folder), whole.numbers, check_exact=True)
        n_finished += len(done)
    figure(f"{n_kills} kills at random moments")
    figure(f"{n_finished} finished trials kept")
    figure("0 repeated")
    figure("0 processes and 0 entries of shared memory left")


# Fits with these parameters do not end.
ENDLESS = {"epochs": 10**8, "max_iter": 10**8, "tol": 1e-300, "n_pairs": 10**8}


class Interrupt:
    """An interrupt of this process, as by a terminal, after so many seconds."""

    def __init__(self, seconds):
        self.timer = threading.Timer(seconds, self.interrupt)
        self.moment = None

    def interrupt(self):
        self.moment = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.promise("R2")
@pytest.mark.alone
@pytest.mark.measured
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")  # of fits that cannot end
def test_every_solver_responds_to_an_interrupt(size, figure):
    """`fit` trains in the process that the terminal interrupts."""
    X, y = laws.problem(n=size(4_000, 20_000), d=50)
    waits = {}
    for name, factory in SOLVERS.items():
        solver = laws.quick(factory, **ENDLESS)
        interrupt = Interrupt(size(0.1, 0.3))
        interrupt.timer.start()
        try:
            solver.fit(X, y)
            interrupt.timer.cancel()
            interrupt.timer.join()
        except KeyboardInterrupt:
            waits[name] = time.monotonic() - interrupt.moment
    slowest = max(waits, key=waits.get)
    assert waits[slowest] < 60
    figure(f"{len(waits)} solvers interrupted")
    figure(f"the slowest to respond, {slowest}, after {waits[slowest]:.2f} s")


COMMANDS = [
    "run small.yaml --out out --jobs 2 --json",
    "fit mine.csv --label label --save top.npz --json",
    "check out --json",
    "score top.npz mine.csv",
    "run small.yaml --out out",
    "--help",
    "plot out/small",
    "list solvers",
    "list solvers --json",
    "list configs --json",
    "list claims --json",
    "data info letter --json",
]


@pytest.mark.promise("R19")
@pytest.mark.measured
def test_output_is_clean_for_machines(small, work_folder, monkeypatch, size, figure):
    """A terminal is announced, but the output goes into a pipe."""
    monkeypatch.setenv("TERM", "xterm-256color")
    small()
    commands = size(COMMANDS[:6], COMMANDS)
    for command in commands:
        done = subprocess.run(
            [*PRECBENCH, *command.split()], capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stderr)
        assert "\x1b" not in done.stdout + done.stderr, command
        if "--json" in command:
            json.loads(done.stdout)
    figure(f"{len(commands)} commands into a pipe")


@pytest.mark.promise("R20")
@pytest.mark.alone
@pytest.mark.measured
def test_a_repeated_trial_takes_the_same_time(small, tmp_path, size, figure):
    config = small(solvers="{sgd-avg: {epochs: 3000}}", protocol="{n_splits: 1}")
    plan = make_plan(load_config(config))
    store = Store(tmp_path / "out")
    n_rounds = size(10, 50)
    wall = []
    cpu = []
    for _ in range(n_rounds):
        jobs = to_do(plan, store, force=True)
        [(job, status)] = run_plan(plan, store, jobs, n_workers=1)
        assert status == "ok"
        times = store.arrays(job.key)
        wall.append(times["wall_seconds"][-1])
        cpu.append(times["cpu_seconds"][-1])
    low, median, high = np.quantile(wall, [0.25, 0.5, 0.75])
    share = (high - low) / median
    ratio = np.sum(wall) / np.sum(cpu)
    assert share < 1
    assert 0.95 < ratio < 20
    figure(
        f"interquartile range of {n_rounds} runs of one trial {share:.1%} of the median"
    )
    figure(f"wall time {ratio:.2f} of CPU time")


@pytest.mark.promise("R13")
def test_the_package_reads_no_pickle():
    between_processes_of_a_run = ROOT / "precbench" / "runner" / "dispatch.py"
    unsafe = re.compile(r"allow_pickle=True|import pickle|pickle\.load|joblib\.load")
    for path in (ROOT / "precbench").rglob("*.py"):
        if path == between_processes_of_a_run:
            continue
        text = path.read_text()
        assert not unsafe.search(text), path
        for call in re.findall(r"np\.load\(.*", text):
            assert "allow_pickle=False" in call, path


@pytest.mark.measured
@pytest.mark.promise("R14", "R13")
@pytest.mark.timeout(7200)
def test_mutated_files_are_read_or_refused(size, figure, tmp_path):
    n_cases = size(1500, 100_000)
    options = ["--cases", str(n_cases), "--folder", tmp_path / "fuzz"]
    command = [sys.executable, ROOT / "tests" / "fuzz" / "run.py", *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"fuzz: {n_cases:,} mutated files in" in done.stdout
    figure(f"{n_cases} mutated files")


# --- the errors that tests/plant.py plants ---


def test_each_error_is_planted_in_one_place():
    errors = plant.plants()
    assert len(errors) >= 40
    assert len({error.name for error in errors}) == len(errors)
    for error in errors:
        text = error.text(ROOT)
        assert text != plant.read(ROOT / error.file)
        if error.file.endswith(".py"):
            # Code that does not run would be found by all.
            compile(text, error.file, "exec")


def test_the_copy_lacks_the_results_and_has_the_package_of_that_name():
    names = ["results", "precbench"]
    assert plant.left_out(str(ROOT), names) == {"results"}
    assert plant.left_out(str(ROOT / "precbench"), names) == set()


def test_an_error_whose_text_is_not_there_is_refused():
    lost = plant.Plant("lost", "README.md", old="a text that is not there", new="")
    with raises(ValueError, "0"):
        lost.text(ROOT)


def test_an_error_in_the_results_is_there_while_a_check_runs(tmp_path):
    for results in (tmp_path / "tree" / "results", tmp_path / "results"):
        results.mkdir(parents=True)
        (results / "values.csv").write_text("value\n1\n")
    file = tmp_path / "tree" / "results" / "values.csv"
    copy = plant.Copy(tmp_path, parts=[])
    texts = []
    copy.run = lambda *command: texts.append(file.read_text())
    error = plant.Plant("another value", "results/values.csv", old="1", new="2")
    list(plant.examine(error, copy, {}, ["values"]))
    assert texts == ["value\n2\n"]
    assert file.read_text() == "value\n1\n"

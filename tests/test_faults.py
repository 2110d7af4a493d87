"""After any fault, the same command ends with the numbers of an undisturbed run."""

import builtins
import errno
import io
import itertools
import os
import random
import shutil
import signal
import sys
import time
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest

import precbench.cli.report  # noqa: F401 (it has the true `write_report`, see `no_report`)
from precbench.core import processes
from precbench.core.npz import unpack
from precbench.report.folder import Report
from precbench.results.store import Store
from tests.helpers import TOY_SVM, invoke, make_card, numbers, run, succeed
from tests.sentences import done_already


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Leave out tables and figures, which are made from the tested files."""
    module = "precbench.advice.advised_report"
    monkeypatch.setattr(f"{module}.write_report", lambda *_, **__: Report([], []))


@pytest.fixture
def tiny(small):
    """A config of two trials."""
    return small(
        solvers="{perceptron-avg: }", common="{k: 0.5, epochs: 1}", checkpoints="2"
    )


MACHINE = {
    **dict.fromkeys(["os", "machine", "cpu", "python"], "none"),
    **dict.fromkeys(["cores", "commit", "dirty"]),
    "memory_gib": 1.0,
    "packages": {},
}


@pytest.fixture
def in_this_process(in_this_process, monkeypatch):
    """Trials run where they meet the faults too."""
    monkeypatch.setattr("precbench.runner.environment", lambda: MACHINE)


def assert_same(folder, other):
    pd.testing.assert_frame_equal(numbers(folder), numbers(other), check_exact=True)


# --- writing ---


class Disk:
    """Counts what is done to files below a folder, and lets the n-th deed fail.

    A full disk stays full; any other fault passes.
    """

    def __init__(self, folder, monkeypatch):
        self._folder, self._n, self._error, self.n_calls = str(folder), 0, 0, 0
        for name in ("mkdir", "replace"):
            monkeypatch.setattr(os, name, self._guarded(getattr(os, name)))
        for module in (io, builtins):
            monkeypatch.setattr(module, "open", self._open(open))

    def fail(self, n, error):
        self._n, self._error, self.n_calls = n, error, 0

    def touch(self):
        self.n_calls += 1
        stays = self._error == errno.ENOSPC and self.n_calls > self._n > 0
        if self.n_calls == self._n or stays:
            raise OSError(self._error, os.strerror(self._error))

    def _is_below(self, path):
        is_path = isinstance(path, str | os.PathLike)  # not the number of an open file
        return is_path and str(Path(path).absolute()).startswith(self._folder)

    def _guarded(self, function):
        def guarded(path, *arguments, **options):
            if self._is_below(path):
                self.touch()
            return function(path, *arguments, **options)

        return guarded

    def _open(self, function):
        def opened(path, mode="r", *arguments, **options):
            if not self._is_below(path) or not set(mode) & set("wax+"):
                return function(path, mode, *arguments, **options)
            self.touch()
            return Stream(function(path, mode, *arguments, **options), self)

        return opened


class Stream:
    """A stream that writes half of what it is given before it fails."""

    def __init__(self, stream, disk):
        self._stream, self._disk = stream, disk

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stream.close()

    def write(self, content):
        try:
            self._disk.touch()
        except OSError:
            self._stream.write(content[: len(content) // 2])
            raise
        return self._stream.write(content)


@pytest.mark.promise("R1", "R4")
def test_a_fault_of_the_disk_at_any_moment(
    tiny, tmp_path, in_this_process, monkeypatch, size, figure
):
    disk = Disk(tmp_path / "out", monkeypatch)
    assert run(tiny, tmp_path / "out").exit_code == 0
    n_calls = disk.n_calls
    assert n_calls > 40
    errors = [errno.ENOSPC, errno.EIO, errno.EINTR]
    faults = [(n, errors[n // 5 % 3]) for n in range(1, n_calls + 1, 5)]
    faults = size(
        faults, [(n, error) for n in range(1, n_calls + 1) for error in errors]
    )
    for n, error in faults:
        out = tmp_path / "out" / f"{n} {error}"
        disk.fail(n, error)
        result = run(tiny, out)
        assert result.exit_code in (0, 1), (n, error, result.output)
        assert not isinstance(result.exception, Exception)
        assert "Traceback" not in result.output
        assert error != errno.ENOSPC or (
            result.exit_code == 1 and "disk full" in result.output
        )
        assert disk.n_calls >= n
        disk.fail(0, 0)
        kept = len(Store(out / "small").keys())
        assert done_already(succeed("run", tiny, "--out", out).output) == kept
        assert_same(out / "small", tmp_path / "out" / "small")
        assert not [*out.glob("**/*.tmp"), *(out / "small" / "running").glob("*")]
    figure(f"{len(faults)} faults of the disk")


# --- a command killed while it writes ---

FIT = [
    "mine.csv",
    "--label",
    "label",
    "--k",
    "3",
    "--splits",
    "2",
    "--solver",
    "sgd-avg",
]
BEFORE = {
    "score": [["fit", *FIT, "--save", "scorer.npz"]],
    "report": [["run", "small.yaml"]],
    "merge": [
        ["run", "small.yaml", "--splits", "0"],
        ["run", "small.yaml", "--splits", "1", "--out", "other"],
    ],
}
COMMANDS = {
    "compare": ["compare", *FIT, "--jobs", "1", "--out", "out"],
    "fit": ["fit", *FIT, "--save", "model.npz"],
    "score": ["score", "scorer.npz", "mine.csv", "--out", "top.csv"],
    "report": ["report", "results"],
    "merge": [
        "merge",
        "results",
        "other",
        "--out",
        "out",
        "--config",
        "small.yaml",
        "--no-plots",
    ],
    "data add": ["data", "add", "toy", "toy.svm"],
}


def made(name, folder, cache):
    """Return what a command has made, without times."""
    if name in ("compare", "merge"):
        [results] = [
            *(folder / "out").glob("compare-*"),
            *(folder / "out").glob("small"),
        ]
        return numbers(results).to_csv()
    if name == "fit":
        return unpack(folder / "model.npz", ["coef"])["coef"].tobytes()
    if name == "data add":
        return sha256((cache / "files" / "toys" / "toy.svm").read_bytes()).hexdigest()
    return (
        folder / {"score": "top.csv", "report": "results/small/report.html"}[name]
    ).read_bytes()


def killed(disk, n, arguments):
    """Run a command in a copy of this process, killed as it touches the disk for the
    n-th time.
    """
    child = os.fork()
    if not child:
        disk.touch = lambda: next(calls) < n or os.kill(os.getpid(), signal.SIGKILL)
        calls = itertools.count(1)
        invoke(*arguments)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.skipif(sys.platform != "linux", reason="copies a process that has threads")
@pytest.mark.promise("R1")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_while_it_writes_leaves_nothing_half_written(
    name, tiny, tmp_path, in_this_process, cache, add_card, monkeypatch, size, figure
):
    before, whole = tmp_path / "before", tmp_path / "whole"
    before.mkdir()
    for file in ("mine.csv", tiny.name):
        shutil.copy(tmp_path / file, before)
    for former in ("top.csv", "model.npz"):
        (before / former).write_bytes(b"former")
    (before / "toy.svm").write_bytes(TOY_SVM)
    add_card(make_card())
    monkeypatch.chdir(before)
    for arguments in BEFORE.get(name, []):
        succeed(*arguments)
    shutil.copytree(before, whole)
    monkeypatch.chdir(whole)
    disk = Disk(tmp_path, monkeypatch)
    succeed(*COMMANDS[name])
    expected, n_calls = made(name, whole, cache), disk.n_calls
    rng, kills = random.Random(0), size(2, 60)
    for n in sorted(rng.sample(range(1, n_calls + 1), min(kills, n_calls))):
        folder = tmp_path / str(n)
        shutil.copytree(before, folder)
        shutil.rmtree(cache, ignore_errors=True)
        monkeypatch.chdir(folder)
        assert killed(disk, n, COMMANDS[name]), n
        for former in ("top.csv", "model.npz"):
            content = (folder / former).read_bytes()
            assert (
                content.startswith(b"former")
                or content == (whole / former).read_bytes()
            )
        succeed(*COMMANDS[name])
        assert made(name, folder, cache) == expected, n
    figure(f"{kills} commands killed while they write")


# --- dying workers ---

KILLER = """
import importlib, itertools, os, signal, sys

def die():
    for number in range(int(os.environ["KILLS"])):
        try:
            mark = os.path.join(os.path.dirname(__file__), str(number))
            os.open(mark, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)

def deadly(*arguments):
    if next(calls) == int(n):
        die()
    return real(*arguments)

if any("popen_loky" in argument for argument in sys.orig_argv):
    module, function, n = os.environ["KILL_AT"].split(":")
    owner, calls = importlib.import_module(module), itertools.count(1)
    real = getattr(owner, function)
    setattr(owner, function, deadly)
"""
# A worker dies in the n-th call of a function
PHASES = {
    "start": "os:getppid:1",
    "training": "time:process_time:1",
    "writing": "os:replace:1",
    "between arrays and mark": "os:replace:2",
}
ONCE = [(phase, 1) for phase in ("training", "between arrays and mark")]


@pytest.mark.measured
@pytest.mark.promise("R1", "R3")
@pytest.mark.timeout(1200)
def test_a_worker_killed_in_any_phase(
    tiny, tmp_path, monkeypatch, request, size, figure
):
    succeed("run", tiny, "--out", tmp_path / "undisturbed")
    cases = size(ONCE, [(phase, n_kills) for phase in PHASES for n_kills in (1, 2)])
    request.addfinalizer(processes.end)
    for phase, n_kills in cases:
        out, killer = (
            tmp_path / f"{phase} {n_kills}" / name for name in ("out", "killer")
        )
        killer.mkdir(parents=True)
        (killer / "sitecustomize.py").write_text(KILLER)
        monkeypatch.setenv("PYTHONPATH", str(killer))
        monkeypatch.setenv("KILL_AT", PHASES[phase])
        monkeypatch.setenv("KILLS", str(n_kills))
        processes.end()
        result = run(tiny, out)
        assert not isinstance(result.exception, Exception), (phase, result.output)
        assert sum(path.name.isdecimal() for path in killer.iterdir()) == n_kills, phase
        assert result.exit_code == 0 or n_kills > 1, (phase, result.output)
        succeed("run", tiny, "--out", out)
        assert_same(out / "small", tmp_path / "undisturbed" / "small")
    figure(f"{sum(n_kills for _, n_kills in cases)} workers killed in a chosen phase")


# --- the rest of the world ---


def test_a_clock_that_jumps(tiny, tmp_path, in_this_process, monkeypatch):
    assert run(tiny, tmp_path / "undisturbed").exit_code == 0
    rng = random.Random(0)

    def jumping(clock):
        offsets = [0.0]

        def read():
            if rng.random() < 0.2:
                offsets.append(offsets[-1] + rng.choice([-1e6, 1e6]))
            return clock() + offsets[-1]

        return read

    for name in ("time", "monotonic", "perf_counter", "process_time"):
        monkeypatch.setattr(time, name, jumping(getattr(time, name)))
    succeed("run", tiny, "--out", tmp_path / "out")
    assert_same(tmp_path / "out" / "small", tmp_path / "undisturbed" / "small")

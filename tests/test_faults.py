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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Trials run in the process that meets the faults."""
    monkeypatch.setattr("precbench.runner.environment", lambda: MACHINE)


def assert_same(folder, other):
    pd.testing.assert_frame_equal(numbers(folder), numbers(other), check_exact=True)


# --- writing ---


class Disk:
    """Counts what is done to files below a folder, and lets the n-th call fail.

    A full disk stays full; any other fault passes.
    """

    def __init__(self, folder, monkeypatch):
        self._folder = str(folder)
        self.fail_never()
        for name in ("mkdir", "replace"):
            monkeypatch.setattr(os, name, self._guarded(getattr(os, name)))
        for module in (io, builtins):
            monkeypatch.setattr(module, "open", self._open(open))

    def fail_never(self):
        self.fail_at(0, 0)

    def fail_at(self, n, error):
        self._failing_call = n
        self._error = error
        self.n_calls = 0

    def touch(self):
        self.n_calls += 1
        is_full = self._error == errno.ENOSPC and self.n_calls > self._failing_call > 0
        if self.n_calls == self._failing_call or is_full:
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
            is_written = bool(set(mode) & set("wax+"))
            if self._is_below(path) and is_written:
                self.touch()
                return Stream(function(path, mode, *arguments, **options), self)
            return function(path, mode, *arguments, **options)

        return opened


class Stream:
    """A stream that writes half of what it is given before it fails."""

    def __init__(self, stream, disk):
        self._stream = stream
        self._disk = disk

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
    some_faults = [(n, errors[n // 5 % 3]) for n in range(1, n_calls + 1, 5)]
    all_faults = list(itertools.product(range(1, n_calls + 1), errors))
    faults = size(some_faults, all_faults)
    for n, error in faults:
        out = tmp_path / "out" / f"{n} {error}"
        disk.fail_at(n, error)
        result = run(tiny, out)
        assert result.exit_code in (0, 1), (n, error, result.output)
        assert not isinstance(result.exception, Exception)
        assert "Traceback" not in result.output
        if error == errno.ENOSPC:
            assert result.exit_code == 1
            assert "disk full" in result.output
        assert disk.n_calls >= n

        disk.fail_never()
        n_records = len(Store(out / "small").keys())
        resumed = succeed("run", tiny, "--out", out)
        assert done_already(resumed.output) == n_records
        assert_same(out / "small", tmp_path / "out" / "small")
        assert not [*out.glob("**/*.tmp")]
        assert not [*(out / "small" / "running").glob("*")]
    figure(f"{len(faults)} faults of the disk")


# --- a command killed while it writes ---

FIT = "mine.csv --label label --k 3 --splits 2 --solver sgd-avg"


@dataclass(frozen=True)
class Command:
    """A command that is killed, and what it needs."""

    line: str
    result: Callable[[Path], Any]  # what it has made in a folder, without times
    needs: Sequence[str] = ()  # commands that run first


def numbers_in_out(folder):
    out = folder / "out"
    [results] = [*out.glob("compare-*"), *out.glob("small")]
    return numbers(results).to_csv()


COMMANDS = {
    "compare": Command(f"compare {FIT} --jobs 1 --out out", numbers_in_out),
    "fit": Command(
        f"fit {FIT} --save model.npz",
        lambda folder: unpack(folder / "model.npz", ["coef"])["coef"].tobytes(),
    ),
    "score": Command(
        "score scorer.npz mine.csv --out top.csv",
        lambda folder: (folder / "top.csv").read_bytes(),
        needs=[f"fit {FIT} --save scorer.npz"],
    ),
    "report": Command(
        "report results",
        lambda folder: (folder / "results/small/report.html").read_bytes(),
        needs=["run small.yaml"],
    ),
    "merge": Command(
        "merge results other --out out --config small.yaml --no-plots",
        numbers_in_out,
        needs=["run small.yaml --splits 0", "run small.yaml --splits 1 --out other"],
    ),
    "data add": Command(
        "data add toy toy.svm",
        lambda folder: (folder.parent / "cache/files/toys/toy.svm").read_bytes(),
    ),
}


def is_killed(disk, n, line):
    """Run a command in a copy of this process, which is killed at the n-th call.

    Calls are those that touch the disk. Return whether it came to that.
    """
    child = os.fork()
    if child == 0:
        calls = itertools.count(1)

        def kill_at_n():
            if next(calls) == n:
                os.kill(os.getpid(), signal.SIGKILL)

        disk.touch = kill_at_n
        invoke(*line.split())
        os._exit(0)
    _child, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


FORMER_FILES = ("top.csv", "model.npz")


@pytest.fixture
def start_folder(tiny, tmp_path, add_card):
    """A folder with a config, its rows, a file for a card, and files of former runs."""
    folder = tmp_path / "start"
    folder.mkdir()
    shutil.copy(tmp_path / "mine.csv", folder)
    shutil.copy(tiny, folder)
    (folder / "toy.svm").write_bytes(TOY_SVM)
    add_card(make_card())
    for former in FORMER_FILES:
        (folder / former).write_bytes(b"former")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="copies a process that has threads")
@pytest.mark.promise("R1")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_while_it_writes_leaves_nothing_half_written(
    name, start_folder, tmp_path, in_this_process, cache, monkeypatch, size, figure
):
    command = COMMANDS[name]
    monkeypatch.chdir(start_folder)
    for line in command.needs:
        succeed(*line.split())

    whole = tmp_path / "whole"
    shutil.copytree(start_folder, whole)
    monkeypatch.chdir(whole)
    disk = Disk(tmp_path, monkeypatch)
    succeed(*command.line.split())
    n_calls = disk.n_calls
    expected = command.result(whole)

    n_kills = size(2, 60)
    calls = range(1, n_calls + 1)
    for n in sorted(random.Random(0).sample(calls, min(n_kills, n_calls))):
        folder = tmp_path / str(n)
        shutil.copytree(start_folder, folder)
        shutil.rmtree(cache, ignore_errors=True)
        monkeypatch.chdir(folder)
        assert is_killed(disk, n, command.line), n
        for file in FORMER_FILES:
            content = (folder / file).read_bytes()
            is_former = content.startswith(b"former")
            assert is_former or content == (whole / file).read_bytes()
        succeed(*command.line.split())
        assert command.result(folder) == expected, n
    figure(f"{n_kills} commands killed while they write")


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
# module:function:n, the n-th call in which a worker dies
PHASES = {
    "start": "os:getppid:1",
    "training": "time:process_time:1",
    "writing": "os:replace:1",
    "between arrays and mark": "os:replace:2",
}
# phases, each with the number of workers that die
SOME_CASES = [("training", 1), ("between arrays and mark", 1)]
ALL_CASES = list(itertools.product(PHASES, (1, 2)))


@pytest.mark.measured
@pytest.mark.promise("R1", "R3")
@pytest.mark.timeout(1200)
def test_a_worker_killed_in_any_phase(
    tiny, tmp_path, monkeypatch, request, size, figure
):
    succeed("run", tiny, "--out", tmp_path / "undisturbed")
    cases = size(SOME_CASES, ALL_CASES)
    request.addfinalizer(processes.end)
    for phase, n_kills in cases:
        out = tmp_path / f"{phase} {n_kills}" / "out"
        killer = tmp_path / f"{phase} {n_kills}" / "killer"
        killer.mkdir(parents=True)
        (killer / "sitecustomize.py").write_text(KILLER)
        monkeypatch.setenv("PYTHONPATH", str(killer))
        monkeypatch.setenv("KILL_AT", PHASES[phase])
        monkeypatch.setenv("KILLS", str(n_kills))
        processes.end()
        result = run(tiny, out)
        assert not isinstance(result.exception, Exception), (phase, result.output)
        marks = [path for path in killer.iterdir() if path.name.isdecimal()]
        assert len(marks) == n_kills, phase
        if n_kills == 1:
            assert result.exit_code == 0, (phase, result.output)
        succeed("run", tiny, "--out", out)
        assert_same(out / "small", tmp_path / "undisturbed" / "small")
    n_killed = sum(n_kills for _phase, n_kills in cases)
    figure(f"{n_killed} workers killed in a chosen phase")


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

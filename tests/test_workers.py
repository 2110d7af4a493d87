"""Worker processes.

They import no file of the current folder, and are replaced when they die.
"""

import os
import signal
import subprocess
import sys
import warnings
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import pytest

from precbench.cli.group import one_line_warnings
from precbench.core import processes
from tests.helpers import session, wait_until


@pytest.fixture(autouse=True)
def end_processes():
    yield
    processes.end()


PLANTED = """
import os
open(os.path.join(os.path.dirname(__file__), "executed"), "w").close()
"""


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param(["--jobs", "1"], id="of this machine"),
        pytest.param(
            ["--cluster", "local:1"],
            id="of a cluster",
            marks=pytest.mark.extras("distributed"),
        ),
    ],
)
def test_no_process_imports_a_file_of_the_current_folder(small, tmp_path, workers):
    config = small(solvers="{perceptron-avg: }", protocol="{n_splits: 1}")
    folder = tmp_path / "here"
    for name in ("precbench/__init__.py", "joblib.py", "numpy.py", "distributed.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(PLANTED)
    precbench = Path(sys.executable).with_name("precbench")
    options = ["--no-plots", *workers, "--out", tmp_path / "out"]
    environment = dict(os.environ)
    environment.pop("PYTHONSAFEPATH", None)
    subprocess.run(
        [precbench, "run", config, *options], check=True, cwd=folder, env=environment
    )
    assert not list(folder.rglob("executed"))


class Surroundings(NamedTuple):
    """What the process of a call is."""

    number: int  # of the call
    pid: int
    blas_threads: str
    path: list[str]


def surroundings(number):
    threads = os.environ["OPENBLAS_NUM_THREADS"]
    return Surroundings(number, os.getpid(), threads, sys.path)


def test_workers_that_began_early_are_used_with_the_path_of_their_parent():
    processes.begin(2, "os:getpid")
    calls = [(number,) for number in range(5)]
    first = list(processes.run(surroundings, calls, 2))
    second = list(processes.run(surroundings, calls, 2))
    assert sorted(call.number for call in first) == [0, 1, 2, 3, 4]
    pids = {call.pid for call in first + second}
    assert len(pids) <= 2
    assert os.getpid() not in pids
    assert {call.blas_threads for call in first} == {"1"}
    for call in first:
        assert call.path == sys.path


def die_if_1(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_dead_worker_ends_the_calls_and_the_next_ones_have_others():
    calls = [(number,) for number in range(4)]
    with pytest.raises(BrokenProcessPool):
        list(processes.run(die_if_1, calls, 2))
    assert list(processes.run(die_if_1, [(7,)], 1)) == [7]


def test_the_end_waits_for_the_thread_that_sends_calls():
    """This thread removes the last semaphores; joblib's tracker warns of others."""
    executor = processes.begin(2)
    list(executor.map(int, range(10)))
    sending = executor._call_queue._thread
    del executor
    processes.end()
    assert not sending.is_alive()


def test_the_end_comes_while_calls_are_being_sent():
    """A thread that fails gives a warning, which is an error here."""
    executor = processes.begin(2)
    list(executor.map(int, range(10)))  # both are at work
    workers = [*executor._processes.values()]
    for _ in range(5000):
        executor.submit(int)
    processes.end()
    assert not any(worker.is_alive() for worker in workers)


CHILD = """
import subprocess, sys, time
from precbench.core import processes
executor = processes.begin(2)
executor.submit(subprocess.run, [sys.executable, "-c", "import time; time.sleep(600)"])
time.sleep(2)
processes.end()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_the_end_needs_no_other_program(tmp_path):
    """Such as pgrep, with which joblib would look for what workers started."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env=os.environ | {"PATH": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors == ""
    wait_until(lambda: not session(process.pid))


def handler_of_interrupts(_number):
    return signal.getsignal(signal.SIGINT)


def test_workers_leave_ctrl_c_to_their_parent():
    """Else it would look like a `KeyboardInterrupt` that a package raises."""
    handlers = list(processes.run(handler_of_interrupts, [(0,)], 1))
    assert handlers == [signal.SIG_IGN]


def test_only_warnings_that_a_user_can_act_on_are_shown(capsys):
    with one_line_warnings():
        # of joblib
        warnings.warn("A worker stopped while some jobs were given", stacklevel=1)
        warnings.warn("k exceeds the positives", stacklevel=1)
    assert capsys.readouterr().err == "precbench: warning: k exceeds the positives\n"

"""No process outlives a run, whenever the run is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from precbench import processes
from tests.helpers import session, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def workers(leader):
    return [line for line in session(leader).values() if b"_fork_when_asked" in line]


@pytest.mark.promise("R2")
@pytest.mark.parametrize("delay", [0.0, 0.5])
def test_workers_do_not_outlive_a_parent_killed_while_they_start(small, tmp_path, delay):
    command = [sys.executable, "-m", "precbench", "run", str(small()), "--jobs", "2"]
    parent = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: workers(parent.pid), 60)
    time.sleep(delay)
    os.kill(parent.pid, signal.SIGKILL)
    assert parent.wait() == -signal.SIGKILL
    wait_until(lambda: not session(parent.pid), 60)
    assert not session(parent.pid)


SLOW_IMPORT = """
import os, sys, time

class Slow:
    def find_spec(self, name, *_):
        if name == os.environ.get("SLOW"):
            open(os.environ["SLOW_REACHED"], "w").close()
            time.sleep(60)

sys.meta_path.insert(0, Slow())
"""
START_OF_A_CLUSTER = """
import os
from precbench.runner.remote import _process

os.environ["SLOW"] = "precbench.runner.remote"
_process()
input()
"""


@pytest.mark.promise("R2")
def test_processes_of_a_cluster_end_with_their_parent_before_they_import_anything(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    reached = tmp_path / "reached"
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    parent = subprocess.Popen(
        [sys.executable, "-c", START_OF_A_CLUSTER],
        env={**os.environ, "PYTHONPATH": paths, "SLOW_REACHED": str(reached)},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(reached.exists, 60)
    assert len(session(parent.pid)) == 2
    parent.kill()
    parent.wait()
    parent.stdin.close()
    wait_until(lambda: not session(parent.pid), 20)


def place():
    return os.getpid(), os.getcwd(), os.environ.get("HERE"), sys.path[0]  # noqa: PTH109


def killed(number):
    if number:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)  # until the other has died
    return "survived"


def test_calls_meet_the_folder_the_paths_and_the_environment_of_now(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERE", "now")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    results = dict(processes.run(((n, place, ()) for n in range(5)), 2))
    pids = {pid for pid, *_ in results.values()}
    assert sorted(results) == [0, 1, 2, 3, 4]
    assert len(pids) == 2 and os.getpid() not in pids
    expected = (str(tmp_path), "now", str(tmp_path / "modules"))
    assert {tuple(others) for _, *others in results.values()} == {expected}


def test_no_call_begins_after_a_process_has_died():
    calls = ((n, killed, (n,)) for n in range(4))
    assert dict(processes.run(calls, 2)) == {1: None, 0: "survived"}
    assert next(calls)[0] == 2


def test_an_error_of_a_function_is_raised_and_ends_the_others():
    started = time.monotonic()
    calls = [("sleeps", time.sleep, (60,)), ("fails", divmod, (1, 0))]
    with pytest.raises(ZeroDivisionError):
        dict(processes.run(calls, 2))
    assert time.monotonic() - started < 50


def test_the_process_from_which_others_are_forked_is_begun_anew_if_it_was_killed():
    processes.begin(processes.OF_TRIALS)
    os.kill(processes._origin._popen.pid, signal.SIGKILL)
    assert dict(processes.run([("sum", sum, ([1, 2],))], 1)) == {"sum": 3}

"""No process outlives a run, whenever the run is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.helpers import session, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def workers(leader):
    return [line for line in session(leader).values() if b"popen_loky" in line]


@pytest.mark.promise("R4")
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

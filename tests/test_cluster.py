"""Runs on a Dask cluster.

The same numbers as on one machine, whatever happens to its processes.
"""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from unittest.mock import Mock

import pandas as pd
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

from precbench.core.errors import InputError, PrecbenchError
from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.results.store import Store
from precbench.runner import run_plan, to_do
from precbench.runner.cluster import (
    Cluster,
    _refuse_other_versions,
    _share_of_core,
    connect,
    versions,
)
from precbench.runner.heartbeats import Heartbeats, Stuck
from tests.helpers import (
    Deadly,
    invoke,
    numbers,
    records,
    run,
    served,
    session,
    wait_until,
)
from tests.sentences import names, raises, refused, tells
from tests.test_promises import PRECBENCH, finished

WAIT_SECONDS = 120
# for a test, which must not wait for ever as its subject may
TEST_SECONDS = 2 * WAIT_SECONDS
pytestmark = [pytest.mark.timeout(TEST_SECONDS), pytest.mark.extras("distributed")]


def kill_session(leader):
    for number in session(leader.pid):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(number, signal.SIGKILL)


@pytest.fixture
def start(tmp_path):
    """Start commands of Dask, which are ended with the test.

    They are ended after a time anyway, so that a test that waits for a stopped process
    goes on.
    """
    started = []

    def kill_all():
        for process in started:
            kill_session(process)

    last_moment = threading.Timer(TEST_SECONDS, kill_all)
    last_moment.daemon = True
    last_moment.start()

    def start(*arguments, **environment):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        path = {"PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            [*command, "--dashboard-address", "127.0.0.1:0"],
            cwd=tmp_path,
            env={**os.environ, **path, **environment},
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    last_moment.cancel()
    kill_all()
    for process in started:
        process.wait()


@pytest.fixture
def start_scheduler(start):
    """Start a scheduler on the loopback address, which writes a file."""

    def start_scheduler(file):
        file.unlink(missing_ok=True)
        process = start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file
        )
        until(file.exists)
        return process

    return start_scheduler


@pytest.fixture
def start_worker(start, tmp_path):
    """Start a worker that has no data."""
    no_data = {"PRECBENCH_CACHE": str(tmp_path / "empty"), "PRECBENCH_MIRROR": ""}
    command = ["worker", "--nthreads", 1, "--scheduler-file"]
    return lambda file, *options: start(*command, file, *options, **no_data)


until = partial(wait_until, seconds=WAIT_SECONDS)


def scheduler_in_this_process(file):
    """Return a scheduler without workers, which writes a file."""
    return distributed.LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"scheduler_file": str(file)},
    )


def test_workers_get_their_data_from_the_client(
    start_worker, tmp_path, in_this_process, no_page, monkeypatch
):
    # the stand-in will do
    monkeypatch.setattr("precbench.cli.outlook.to_fetch", lambda part: {})
    file = tmp_path / "scheduler.json"
    scheduler = scheduler_in_this_process(file)
    start_worker(file, "--no-nanny")
    part = ["--smoke", "--solver", "sgd-avg", "--solver", "linear-svm"]
    on_cluster = ["--cluster", file, *part]

    plan = invoke("run", "letter", *on_cluster, "--dry-run", "--out", tmp_path)
    tells(plan.output, "of 1 worker")
    done = run("letter", tmp_path / "cluster", *on_cluster)
    assert done.exit_code == 0, done.output
    names(done.output, "cluster 1 http://127.0.0.1")
    run("letter", tmp_path / "here", *part)
    numbers_of_cluster = numbers(tmp_path / "cluster" / "letter-smoke")
    assert numbers_of_cluster.equals(numbers(tmp_path / "here" / "letter-smoke"))

    scheduler.close()
    refused(["run", "letter", *on_cluster, "--cluster-wait", "1", "--force"], code=1)


class DaskProcesses:
    """A scheduler and two workers, which are started again if they have been killed."""

    def __init__(self, file, start_scheduler, start_worker):
        self.file = file
        self._start_scheduler = start_scheduler
        self._start_worker = start_worker
        self._scheduler = start_scheduler(file)
        self._workers = [start_worker(file), start_worker(file)]

    def kill(self, victim, client):
        """Kill processes; return the codes with which the client may end then."""
        worker = self._workers[0]
        killed = {
            "worker": list(session(worker.pid)),
            "worker alone": spawned_by(worker),  # its nanny starts another
            "client": [client.pid],
            "scheduler": [self._scheduler.pid],
        }
        for pid in killed[victim]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # 0 if the client was at its end
        codes = {"client": {0, -signal.SIGKILL}, "scheduler": {0, 1}}
        return codes.get(victim, {0})

    def start_dead(self, victim):
        """Start again what has died; without a scheduler, workers die."""
        if victim == "scheduler":
            until(lambda: not any(session(worker.pid) for worker in self._workers))
            self._scheduler = self._start_scheduler(self.file)
        for place, worker in enumerate(self._workers):
            if worker.poll() is not None:
                until_gone(worker)
                self._workers[place] = self._start_worker(self.file)

    def end(self):
        for process in (*self._workers, self._scheduler):
            process.terminate()
            until_gone(process)


VICTIMS = ["worker", "client", "scheduler", "worker alone", "client", "scheduler"]


@pytest.mark.promise("R1", "R2", "R3")
@pytest.mark.alone
@pytest.mark.measured
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.timeout(7200)
def test_kills_on_a_cluster_end_with_the_undisturbed_numbers(
    small, start_scheduler, start_worker, tmp_path, size, figure
):
    epochs = size(500, 1500)
    entries = (
        f"perceptron-avg: {{epochs: {epochs}}}",
        f"sgd-avg: {{epochs: {epochs + 1}}}",
        "cutting-plane: ",
    )
    config = small(solvers=f"{{{', '.join(entries)}}}", protocol="{n_splits: 4}")
    file = tmp_path / "scheduler.json"
    dask_processes = DaskProcesses(file, start_scheduler, start_worker)

    def begin(out):
        client = subprocess.Popen(
            [*PRECBENCH, "run", config, "--cluster", file, "--out", out],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until((out / "small" / "asked.json").exists)
        return client

    client = begin(tmp_path / "undisturbed")
    start = time.monotonic()
    assert client.wait(WAIT_SECONDS) == 0
    length = time.monotonic() - start
    undisturbed_numbers = numbers(tmp_path / "undisturbed" / "small")

    rng = random.Random(0)
    n_finished = 0  # trials of all runs, at the time of the kills
    n_kills = size(1, 30)
    for number in range(n_kills):
        victim = VICTIMS[number % len(VICTIMS)]
        out = tmp_path / str(number)
        client = begin(out)
        time.sleep(rng.uniform(0, length))
        codes = dask_processes.kill(victim, client)
        assert client.wait(WAIT_SECONDS) in codes
        until_gone(client)
        dask_processes.start_dead(victim)

        finished_records = finished(out / "small")
        resumed = run(config, out, "--cluster", file, "--cluster-wait", WAIT_SECONDS)
        assert resumed.exit_code == 0, resumed.output
        all_records = records(out / "small")
        assert finished_records.items() <= all_records.items(), "a trial was repeated"
        pd.testing.assert_frame_equal(
            numbers(out / "small"), undisturbed_numbers, check_exact=True
        )
        n_finished += len(finished_records)
    dask_processes.end()
    figure(
        f"{n_kills} kills of a worker, of the client or of the scheduler of a cluster"
    )
    figure(f"{n_finished} finished trials kept")
    figure("0 repeated")
    figure("0 processes of a cluster left")


def until_gone(leader):
    """Wait until a process and all that it started have ended."""
    until(lambda: not session(leader.pid))


def spawned_by(leader):
    """Return the ids of the processes that a nanny, or a local cluster, has started."""
    commands = session(leader.pid).items()
    return [pid for pid, command in commands if b"spawn_main" in command]


@pytest.mark.parametrize(
    ("address", "code"),
    [
        pytest.param("local:0", 2, id="no workers"),
        pytest.param("tls://127.0.0.1:1", 1, id="no scheduler with TLS"),
        pytest.param("tcp://127.0.0.1:1", 1, id="no scheduler"),
    ],
)
def test_no_such_cluster(small, address, code):
    refused(["run", small(), "--cluster", address, "--cluster-wait", "0.2"], code=code)


def client_that_knows(workers):
    """Return a client whose scheduler describes workers.

    Each has jobs that never end.
    """

    async def identity():
        return {"workers": workers}

    async def processing():
        return {address: [] for address in workers}

    def sync(question, *arguments, callback_timeout):
        coroutine = question(*arguments)
        try:
            coroutine.send(None)
        except StopIteration as answer:
            return answer.value

    async def nthreads():
        return workers

    return Mock(
        sync=sync,
        processing=processing,
        nthreads=nthreads,
        scheduler=Mock(identity=identity),
    )


IDLE_WORKER = {"last_seen": 0.0, "metrics": {}}


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param({}, id="without workers"),
        pytest.param({"there": IDLE_WORKER}, id="with an idle worker"),
    ],
)
def test_a_cluster_that_keeps_jobs_back_is_reported(
    small, tmp_path, monkeypatch, workers
):
    monkeypatch.setattr("precbench.runner.cluster._LOOK_SECONDS", 0.01)
    plan = make_plan(load_config(small()))
    store = Store(tmp_path / "out")
    trials = to_do(plan, store)
    cluster = Cluster(client_that_knows(workers), "tcp://here", wait=0.1)
    with raises(PrecbenchError, "tcp://here 0.1"):
        list(run_plan(plan, store, trials, n_workers=2, elsewhere=cluster.run))


def test_a_cluster_gets_no_trials_that_are_timed(small, tmp_path):
    plan = make_plan(load_config(small()))
    store = Store(tmp_path / "out")
    trials = to_do(plan, store)
    cluster = Cluster(client_that_knows({}), "tcp://here", wait=0.1)
    with raises(InputError, "--timing --cluster --shard"):
        list(run_plan(plan, store, trials, n_workers=1, elsewhere=cluster.run))


class LastLook(NamedTuple):
    """The first look that shows a stuck worker, or the last of all looks."""

    number: int
    stuck: Stuck | None


def look_until_stuck(
    jobs,
    *,
    sends_heartbeats,
    is_executing=False,
    nanny=None,
    seconds=1.0,
    timeout=20.0,
):
    """Look at a worker, each `seconds`, until it is stuck, or for 100 times.

    `jobs` returns the keys of the jobs of the worker by the number of the look.
    """
    heartbeats = Heartbeats(most_counted=2.0)
    worker = {
        "last_seen": 0.0,
        "metrics": {"task_counts": {"executing": 1}} if is_executing else {},
        "nanny": nanny,
    }
    for number in range(100):
        if sends_heartbeats:
            worker["last_seen"] += 1
        keys = jobs(number)
        stuck = heartbeats.look(
            seconds,
            {"there": worker},
            {"there": keys},
            dict.fromkeys(keys, timeout),
            longest_silence=10.0,
        )
        if stuck:
            [stuck_worker] = stuck
            return LastLook(number, stuck_worker)
    return LastLook(100, None)


def one_job(_number):
    return ["a"]


def two_jobs(_number):
    return ["a", "b"]


def another_job_each_15_looks(number):
    return [f"{number // 15}", "last"]


def test_a_worker_without_heartbeats_is_stuck():
    look = look_until_stuck(one_job, sends_heartbeats=False)
    assert look.number == 11
    assert look.stuck.address == "there"
    assert look.stuck.is_silent
    assert not look.stuck.has_nanny


def test_a_stuck_worker_may_have_a_nanny():
    look = look_until_stuck(one_job, sends_heartbeats=False, nanny="tcp://nanny")
    assert look.stuck.has_nanny


def test_a_worker_with_heartbeats_has_the_timeout_of_a_trial():
    look = look_until_stuck(two_jobs, sends_heartbeats=True, is_executing=True)
    assert 20 < look.number < 100
    assert not look.stuck.is_silent


def test_the_timeout_of_a_trial_is_not_counted_while_its_rows_are_sent():
    look = look_until_stuck(two_jobs, sends_heartbeats=True)
    assert look.stuck is None


def test_each_trial_has_its_timeout():
    look = look_until_stuck(
        another_job_each_15_looks, sends_heartbeats=True, is_executing=True
    )
    assert look.stuck is None


def test_a_pause_of_the_client_is_no_silence_of_a_worker():
    look = look_until_stuck(one_job, sends_heartbeats=False, seconds=3600.0)
    assert look.number > 2


@pytest.fixture
def forty(small):
    """A plan of forty short trials."""
    config = small(
        solvers="{perceptron-avg: }", protocol="{n_splits: 40}", checkpoints="2"
    )
    return make_plan(load_config(config))


def run_on(cluster, plan, store, *, stop=None):
    """Run the trials that are left on a cluster, and return their statuses.

    When the first has ended, the process `stop` is stopped, if it is given.
    """
    statuses = []
    trials = to_do(plan, store)
    ends = run_plan(plan, store, trials, n_workers=2, elsewhere=cluster.run)
    for _job, status in ends:
        statuses.append(status)
        if stop is not None and len(statuses) == 1:
            os.kill(stop.pid, signal.SIGSTOP)
    return statuses


def test_a_worker_that_stops_is_ended_and_without_others_the_run_ends(
    forty, start_worker, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "precbench.runner.cluster.heartbeat_interval", lambda n_workers: 0.2
    )
    store = Store(tmp_path / "out")
    file = tmp_path / "scheduler.json"
    with scheduler_in_this_process(file):
        worker = start_worker(file, "--no-nanny")
        with connect(str(file), WAIT_SECONDS) as cluster:
            hasty = replace(cluster, wait=0.5)
            (address,) = cluster.client.nthreads()
            with (
                pytest.warns(UserWarning, match=f"{address} has sent no heartbeat for"),
                raises(PrecbenchError, f"{file} 0.5"),
            ):
                run_on(hasty, forty, store, stop=worker)
        n_left = len(to_do(forty, store))
        assert 0 < n_left < 40

        start_worker(file, "--no-nanny")
        with connect(str(file), WAIT_SECONDS) as cluster:
            statuses = run_on(cluster, forty, store)
    assert statuses == ["ok"] * n_left


def test_a_scheduler_that_stops_is_reported(
    forty, small, start_scheduler, start_worker, tmp_path, monkeypatch
):
    file = tmp_path / "scheduler.json"
    scheduler = start_scheduler(file)
    start_worker(file, "--no-nanny")
    with (
        raises(PrecbenchError, f"scheduler {file} 5"),
        connect(str(file), WAIT_SECONDS) as cluster,
    ):
        patient = replace(cluster, wait=5.0)
        run_on(patient, forty, Store(tmp_path / "out"), stop=scheduler)
    os.kill(scheduler.pid, signal.SIGSTOP)  # even if it was too slow for the wait above
    monkeypatch.setattr("precbench.runner.cluster._LEAST_ANSWER_SECONDS", 0.5)
    on_cluster = ["--cluster", file, "--cluster-wait", "0.5"]
    refused(["run", small(), *on_cluster, "--out", tmp_path], code=1)


@pytest.fixture
def local_run(tmp_path):
    """Start a run with a worker of its own; return both when two trials have ended."""
    clients = []

    def local_run(config, *options):
        command = [*PRECBENCH, "run", config, "--cluster", "local:1", *options]
        client = subprocess.Popen(
            [*command, "--out", tmp_path],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        clients.append(client)
        until(lambda: len(list((tmp_path / "small" / "trials").glob("*.json"))) > 1)
        [worker] = spawned_by(client)
        return client, worker

    yield local_run
    for client in clients:
        kill_session(client)
        client.wait()


@pytest.mark.measured
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("is_interrupted", [False, True], ids=["waits", "Ctrl-C"])
def test_a_stopped_worker_of_this_machine_is_replaced(small, local_run, is_interrupted):
    config = small(solvers="{perceptron-avg: , sgd-avg: }", protocol="{n_splits: 60}")
    client, worker = local_run(config, "--cluster-wait", "15")
    os.kill(worker, signal.SIGSTOP)
    if is_interrupted:
        time.sleep(2)
        client.send_signal(signal.SIGINT)
    _output, errors = client.communicate(timeout=WAIT_SECONDS)
    if is_interrupted:
        assert client.returncode == 130
        tells(errors, "stopped kept")
    else:
        assert client.returncode == 0, errors
        tells(errors, "heartbeat trials")
    until_gone(client)


def compute_without_threads():
    """Search for a pattern for many seconds, in which no other thread runs."""
    re.match("(a+)+$", "a" * 27 + "b")


@pytest.mark.measured
def test_a_nanny_knows_whether_a_silent_worker_computes():
    with connect("local:1", WAIT_SECONDS) as cluster:
        client = cluster.client
        (address,) = client.nthreads()
        worker = client.run(os.getpid)[address]

        def share_of_core():
            return client.sync(_share_of_core, client, address)

        assert share_of_core() < 0.5
        future = client.submit(compute_without_threads)
        until(lambda: share_of_core() > 0.1)
        os.kill(worker, signal.SIGSTOP)
        assert share_of_core() < 0.01
        del future


def test_a_trial_that_kills_workers_is_recorded_as_crashed(small, tmp_path):
    """Dask gives it up.

    The others, which may have waited beside it, have their results.
    """
    plan = make_plan(load_config(small(protocol="{n_splits: 2}")))
    store = Store(tmp_path / "out")
    trials = to_do(plan, store)
    first_key, deadly_key, *other_keys = trials
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        connect("local:1") as cluster,
    ):
        with_deadly_rows = served(plan, {1: Deadly()})
        ends = run_plan(
            with_deadly_rows, store, trials, n_workers=2, elsewhere=cluster.run
        )
        statuses = {job.key: status for job, status in ends}
    of_others = dict.fromkeys([first_key, *other_keys], "ok")
    assert statuses == {deadly_key: "crashed", **of_others}
    record = store.read(deadly_key)
    assert record.status == "crashed"
    assert "died twice" in record.reason


def test_workers_with_other_versions_are_refused():
    cluster = Mock(wait=1.0)
    cluster.ask.return_value = {"tcp://there": versions() | {"numpy": "1.0"}}
    with raises(PrecbenchError, "tcp://there numpy 1.0"):
        _refuse_other_versions(cluster)


def test_workers_without_an_answer_are_refused():
    cluster = Mock(wait=1.0)
    cluster.ask.return_value = {"tcp://there": None}
    with raises(PrecbenchError, "tcp://there answered"):
        _refuse_other_versions(cluster)


def test_without_dask_the_error_names_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "precbench.runner.cluster", raising=False)
    refused(["run", small(), "--cluster", "local:1"], "'precbench[cluster]'")

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
from precbench.runner.heartbeats import Heartbeats
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
    """Start a command of Dask.

    All that it started is ended with the test, and after a time.

    A test that waits for a stopped process then goes on, even if it waits while it is
    being ended.
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
        started.append(
            subprocess.Popen(
                [*command, "--dashboard-address", "127.0.0.1:0"],
                cwd=tmp_path,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    **environment,
                },
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return started[-1]

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
    nothing = {"PRECBENCH_CACHE": str(tmp_path / "empty"), "PRECBENCH_MIRROR": ""}
    command = ["worker", "--nthreads", 1, "--scheduler-file"]
    return lambda file, *options: start(*command, file, *options, **nothing)


until = partial(wait_until, seconds=WAIT_SECONDS)


def test_workers_get_their_data_from_the_client(
    start_worker, tmp_path, in_this_process, no_page, monkeypatch
):
    # the stand-in will do
    monkeypatch.setattr("precbench.cli.outlook.to_fetch", lambda part: {})
    file = tmp_path / "scheduler.json"
    scheduler = distributed.LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"scheduler_file": str(file)},
    )
    start_worker(file, "--no-nanny")
    where = [
        "--cluster",
        file,
        "--smoke",
        "--solver",
        "sgd-avg",
        "--solver",
        "linear-svm",
    ]
    planned = invoke("run", "letter", *where, "--dry-run", "--out", tmp_path)
    tells(planned.output, "of 1 worker")
    done = run("letter", tmp_path / "cluster", *where)
    assert done.exit_code == 0, done.output
    run("letter", tmp_path / "one", *where[2:])
    one, other = (
        numbers(tmp_path / name / "letter-smoke") for name in ("one", "cluster")
    )
    assert one.equals(other)
    names(done.output, "cluster 1 http://127.0.0.1")
    scheduler.close()
    refused(["run", "letter", *where, "--cluster-wait", "1", "--force"], code=1)


@pytest.mark.promise("R1", "R2", "R3")
@pytest.mark.alone
@pytest.mark.measured
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.timeout(7200)
def test_kills_on_a_cluster_end_with_the_undisturbed_numbers(
    small, start_scheduler, start_worker, tmp_path, size, figure
):
    """Of a worker, with all its processes or alone, of the client, and of the
    scheduler.
    """
    epochs = size(500, 1500)
    config = small(
        solvers=(
            f"{{perceptron-avg: {{epochs: {epochs}}}, sgd-avg: {{epochs:"
            f" {epochs + 1}}}, cutting-plane: }}"
        ),
        protocol="{n_splits: 4}",
    )
    file = tmp_path / "scheduler.json"
    scheduler = start_scheduler(file)
    workers = [start_worker(file), start_worker(file)]

    def begin(out):
        client = subprocess.Popen(
            [*PRECBENCH, "run", config, "--cluster", file, "--out", out],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until((out / "small" / "asked.json").exists)
        return client, time.monotonic()

    client, began = begin(tmp_path / "whole")
    assert client.wait(WAIT_SECONDS) == 0
    length, whole = time.monotonic() - began, numbers(tmp_path / "whole" / "small")
    rng, kept_in_all, kills = random.Random(0), 0, size(1, 30)
    for kill in range(kills):
        out = tmp_path / str(kill)
        client, began = begin(out)
        time.sleep(rng.uniform(0, length))
        victim = (workers[0], client, scheduler)[kill % 3]
        processes = session(victim.pid)
        if kill % 6 == 3:  # its nanny starts another
            processes = [
                number for number, line in processes.items() if b"spawn_main" in line
            ]
        elif victim is not workers[0]:
            processes = [victim.pid]
        for number in processes:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        code = client.wait(WAIT_SECONDS)
        # 0 where it was at its end
        assert code in ((0,), (0, -signal.SIGKILL), (0, 1))[kill % 3]
        until(lambda leader=client.pid: not session(leader))
        if victim is scheduler:
            until(lambda: not any(session(worker.pid) for worker in workers))
            scheduler = start_scheduler(file)
        for place, worker in enumerate(workers):
            if worker.poll() is not None:
                until(lambda leader=worker.pid: not session(leader))
                workers[place] = start_worker(file)
        kept = finished(out / "small")
        done = run(config, out, "--cluster", file, "--cluster-wait", WAIT_SECONDS)
        assert done.exit_code == 0, done.output
        assert kept.items() <= records(out / "small").items(), (
            "a finished trial was repeated"
        )
        pd.testing.assert_frame_equal(numbers(out / "small"), whole, check_exact=True)
        kept_in_all += len(kept)
    for process in (*workers, scheduler):
        process.terminate()
        until(lambda leader=process.pid: not session(leader))
    figure(f"{kills} kills of a worker, of the client or of the scheduler of a cluster")
    figure(f"{kept_in_all} finished trials kept")
    figure("0 repeated")
    figure("0 processes of a cluster left")


@pytest.mark.parametrize(
    ("where", "code"),
    [("local:0", 2), ("tls://127.0.0.1:1", 1), ("tcp://127.0.0.1:1", 1)],
)
def test_no_such_cluster(small, tmp_path, where, code):
    refused(["run", small(), "--cluster", where, "--cluster-wait", "0.2"], code=code)


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


def test_a_cluster_that_keeps_jobs_back_is_reported(small, tmp_path, monkeypatch):
    """Whether it has workers or not. With --timing it gets none."""
    monkeypatch.setattr("precbench.runner.cluster._LOOK_SECONDS", 0.01)
    plan, store = make_plan(load_config(small())), Store(tmp_path / "out")
    for workers in ({}, {"there": {"last_seen": 0.0, "metrics": {}}}):
        client = client_that_knows(workers)
        begin = partial(
            *(run_plan, plan, store, to_do(plan, store)),
            elsewhere=Cluster(client, "tcp://here", wait=0.1).run,
        )
        with raises(PrecbenchError, "tcp://here 0.1"):
            list(begin(n_workers=2))
        with raises(InputError, "--timing --cluster --shard"):
            list(begin(n_workers=1))


class Looks:
    """Looks at one worker, a second apart."""

    def __init__(self, **description):
        self.heartbeats = Heartbeats(most_counted=2.0)
        self.worker = {"last_seen": 0.0, "metrics": {}, "nanny": None, **description}

    def until_stuck(self, jobs, *, beats, seconds=1.0, most=100, timeout=20.0):
        """Return how many looks show no stuck worker, and the stuck worker."""
        for look in range(most):
            self.worker["last_seen"] += beats
            stuck = self.heartbeats.look(
                seconds,
                {"there": self.worker},
                {"there": jobs(look)},
                dict.fromkeys(jobs(look), timeout),
                longest_silence=10.0,
            )
            if stuck:
                return look, *stuck
        return most, None


EXECUTES = {"metrics": {"task_counts": {"executing": 1}}}


def test_a_worker_without_heartbeats_is_stuck():
    looks, stuck = Looks().until_stuck(lambda look: ["a"], beats=False)
    assert looks == 11
    assert stuck.address == "there"
    assert stuck.is_silent
    assert not stuck.has_nanny
    _, watched = Looks(nanny="tcp://nanny").until_stuck(lambda look: ["a"], beats=False)
    assert watched.has_nanny


def test_a_worker_with_heartbeats_has_the_timeout_of_each_trial():
    """Counted while the trial executes, not while its rows are sent or while another
    one runs.
    """
    looks, stuck = Looks(**EXECUTES).until_stuck(lambda look: ["a", "b"], beats=True)
    assert 20 < looks < 100
    assert not stuck.is_silent
    # its rows are sent
    _, none = Looks().until_stuck(lambda look: ["a", "b"], beats=True)
    assert none is None
    _, none = Looks(**EXECUTES).until_stuck(
        lambda look: [f"{look // 15}", "last"], beats=True
    )
    assert none is None  # a trial ends each 15 s


def test_a_pause_of_the_client_is_no_silence_of_a_worker():
    looks, _ = Looks().until_stuck(lambda look: ["a"], beats=False, seconds=3600.0)
    assert looks > 2


@pytest.fixture
def forty(small):
    """A plan of forty short trials."""
    config = small(
        solvers="{perceptron-avg: }", protocol="{n_splits: 40}", checkpoints="2"
    )
    return make_plan(load_config(config))


def begun(plan, store, cluster, stop):
    """Run trials; when the first has ended, stop a process.

    Return the statuses of all.
    """
    statuses = []
    for _, status in run_plan(
        plan, store, to_do(plan, store), n_workers=2, elsewhere=cluster.run
    ):
        if not statuses:
            os.kill(stop, signal.SIGSTOP)
        statuses.append(status)
    return statuses


def test_a_worker_that_stops_is_ended_and_without_others_the_run_ends(
    forty, start_worker, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "precbench.runner.cluster.heartbeat_interval", lambda n_workers: 0.2
    )
    store, file = Store(tmp_path / "out"), tmp_path / "scheduler.json"
    scheduler = distributed.LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"scheduler_file": str(file)},
    )
    with scheduler:
        worker = start_worker(file, "--no-nanny")
        with connect(str(file), WAIT_SECONDS) as cluster:
            hasty = replace(cluster, wait=0.5)
            (address,) = cluster.client.nthreads()
            with (
                pytest.warns(UserWarning, match=f"{address} has sent no heartbeat for"),
                raises(PrecbenchError, f"{file} 0.5"),
            ):
                begun(forty, store, hasty, stop=worker.pid)
        n_left = len(to_do(forty, store))
        assert 0 < n_left < 40
        start_worker(file, "--no-nanny")
        with connect(str(file), WAIT_SECONDS) as cluster:
            trials = to_do(forty, store)
            ends = [
                status
                for _, status in run_plan(
                    forty, store, trials, n_workers=2, elsewhere=cluster.run
                )
            ]
    assert ends == ["ok"] * n_left


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
        begun(
            forty,
            Store(tmp_path / "out"),
            replace(cluster, wait=5.0),
            stop=scheduler.pid,
        )
    os.kill(scheduler.pid, signal.SIGSTOP)  # even if it was too slow for the wait above
    monkeypatch.setattr("precbench.runner.cluster._LEAST_ANSWER_SECONDS", 0.5)
    where = ["--cluster", file, "--cluster-wait", "0.5", "--out", tmp_path]
    refused(["run", small(), *where], code=1)


@pytest.fixture
def local_run(tmp_path):
    """Start a run with a worker of its own; return both when two trials have ended."""
    clients = []

    def local_run(config, *options):
        client = subprocess.Popen(
            [
                *PRECBENCH,
                "run",
                config,
                "--cluster",
                "local:1",
                "--out",
                tmp_path,
                *options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        clients.append(client)
        until(lambda: len(list((tmp_path / "small" / "trials").glob("*.json"))) > 1)
        [worker] = [
            pid for pid, line in session(client.pid).items() if b"spawn_main" in line
        ]
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
    _, errors = client.communicate(timeout=WAIT_SECONDS)
    if is_interrupted:
        assert client.returncode == 130
        tells(errors, "stopped kept")
    else:
        assert client.returncode == 0, errors
        tells(errors, "heartbeat trials")
    until(lambda: not session(client.pid))


def compute_without_threads():  # on a worker
    """Search for a pattern, which takes many seconds, in which no other thread runs."""
    re.match("(a+)+$", "a" * 27 + "b")


@pytest.mark.measured
def test_a_nanny_knows_whether_a_silent_worker_computes():
    with connect("local:1", WAIT_SECONDS) as cluster:
        client = cluster.client
        (address,) = client.nthreads()
        worker = client.run(os.getpid)[address]
        assert client.sync(_share_of_core, client, address) < 0.5
        future = client.submit(compute_without_threads)
        until(lambda: client.sync(_share_of_core, client, address) > 0.1)
        os.kill(worker, signal.SIGSTOP)
        assert client.sync(_share_of_core, client, address) < 0.01
        del future


def test_a_trial_that_kills_workers_is_recorded_as_crashed(small, tmp_path):
    """Dask gives it up.

    The others, which may have waited beside it, have their results.
    """
    plan, store = (
        make_plan(load_config(small(protocol="{n_splits: 2}"))),
        Store(tmp_path / "out"),
    )
    trials = to_do(plan, store)
    deadly = list(trials)[1]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        connect("local:1") as cluster,
    ):
        data = served(plan, {1: Deadly()})
        ends = run_plan(data, store, trials, n_workers=2, elsewhere=cluster.run)
        statuses = {job.key: status for job, status in ends}
    assert statuses.pop(deadly) == store.read(deadly).status == "crashed"
    assert "died twice" in store.read(deadly).reason
    assert set(statuses.values()) == {"ok"}
    assert len(statuses) == len(trials) - 1


def test_workers_with_other_versions_or_without_an_answer_are_refused(monkeypatch):
    cluster = Mock(wait=1.0)
    cluster.ask.return_value = {"tcp://there": versions() | {"numpy": "1.0"}}
    with raises(PrecbenchError, "tcp://there numpy 1.0"):
        _refuse_other_versions(cluster)
    cluster.ask.return_value = {"tcp://there": None}
    with raises(PrecbenchError, "tcp://there answered"):
        _refuse_other_versions(cluster)


def test_without_dask_the_error_names_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "precbench.runner.cluster", raising=False)
    refused(["run", small(), "--cluster", "local:1"], "'precbench[cluster]'")

"""Runs on a Dask cluster: the same numbers as on one machine, whatever happens to its processes."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from unittest.mock import Mock

import dask
import pandas as pd
import pytest
from distributed import LocalCluster

from precbench.errors import InputError, PrecbenchError
from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.runner import run_plan, to_do
from precbench.runner.cluster import Cluster, _refuse_other_versions, connect, versions
from precbench.store import Store
from tests.helpers import Deadly, invoke, numbers, records, run, served, session, wait_until
from tests.sentences import names, raises, refused, tells
from tests.test_promises import PRECBENCH, finished

WAIT_SECONDS = 120


@pytest.fixture
def start(tmp_path):
    """Start a command of Dask; all that it started is ended with the test."""
    started = []

    def start(*arguments, **environment):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        started.append(subprocess.Popen(
            [*command, "--dashboard-address", "127.0.0.1:0"], cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stderr=subprocess.DEVNULL, start_new_session=True,
        ))  # fmt: skip
        return started[-1]

    yield start
    for process in started:
        for number in session(process.pid):
            os.kill(number, signal.SIGKILL)
        process.wait()


@pytest.fixture
def start_scheduler(start):
    """Start a scheduler on the loopback address, which writes a file."""

    def start_scheduler(file):
        file.unlink(missing_ok=True)
        process = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
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
    monkeypatch.setattr("precbench.cli.outlook.to_fetch", lambda part: {})  # the stand-in will do
    file = tmp_path / "scheduler.json"
    scheduler = LocalCluster(
        n_workers=0, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address="127.0.0.1:0", scheduler_kwargs={"scheduler_file": str(file)},
    )  # fmt: skip
    start_worker(file, "--no-nanny")
    where = ["--cluster", file, "--smoke", "--solver", "sgd-avg", "--solver", "linear-svm"]
    planned = invoke("run", "letter", *where, "--dry-run", "--out", tmp_path)
    tells(planned.output, "of 1 worker")
    done = run("letter", tmp_path / "cluster", *where)
    assert done.exit_code == 0, done.output
    run("letter", tmp_path / "one", *where[2:])
    one, other = (numbers(tmp_path / name / "letter-smoke") for name in ("one", "cluster"))
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
    """Of a worker, with all its processes or alone, of the client, and of the scheduler."""
    epochs = size(500, 1500)
    config = small(
        solvers=f"{{perceptron-avg: {{epochs: {epochs}}}, sgd-avg: {{epochs: {epochs + 1}}}, "
        "cutting-plane: }",
        protocol="{n_splits: 4}",
    )
    file = tmp_path / "scheduler.json"
    scheduler = start_scheduler(file)
    workers = [start_worker(file), start_worker(file)]

    def begin(out):
        client = subprocess.Popen(
            [*PRECBENCH, "run", config, "--cluster", file, "--out", out], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
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
            processes = [number for number, line in processes.items() if b"spawn_main" in line]
        elif victim is not workers[0]:
            processes = [victim.pid]
        for number in processes:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        code = client.wait(WAIT_SECONDS)
        assert code in ((0,), (0, -signal.SIGKILL), (0, 1))[kill % 3]  # 0 where it was at its end
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
        assert kept.items() <= records(out / "small").items(), "a finished trial was repeated"
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
    ("where", "code"), [("local:0", 2), ("tls://127.0.0.1:1", 1), ("tcp://127.0.0.1:1", 1)]
)
def test_no_such_cluster(small, tmp_path, where, code):
    refused(["run", small(), "--cluster", where, "--cluster-wait", "0.2"], code=code)


def test_a_cluster_that_keeps_jobs_back_is_reported(small, tmp_path, monkeypatch):
    """Whether it has workers or not. With --timing it gets none."""
    monkeypatch.setattr("precbench.runner.cluster._LOOK_SECONDS", 0.01)
    plan, store = make_plan(load_config(small())), Store(tmp_path / "out")
    for workers in ({}, {"there": []}):
        client = Mock(**{"nthreads.return_value": workers, "processing.return_value": workers})
        begin = partial(
            *(run_plan, plan, store, to_do(plan, store)),
            elsewhere=Cluster(client, "tcp://here", wait=0.1).run,
        )
        with raises(PrecbenchError, "tcp://here 0.1"):
            list(begin(n_workers=2))
        with raises(InputError, "--timing --cluster --shard"):
            list(begin(n_workers=1))


def test_a_trial_that_kills_workers_is_recorded_as_crashed(small, tmp_path):
    """Dask gives it up; the others, which may have waited beside it, have their results."""
    plan, store = make_plan(load_config(small(protocol="{n_splits: 2}"))), Store(tmp_path / "out")
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
    assert set(statuses.values()) == {"ok"} and len(statuses) == len(trials) - 1


def test_workers_with_other_versions_are_refused():
    client = Mock(**{"run.return_value": {"tcp://there": versions() | {"numpy": "1.0"}}})
    with raises(PrecbenchError, "tcp://there numpy 1.0"):
        _refuse_other_versions(client)


def test_without_dask_the_error_names_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "precbench.runner.cluster", raising=False)
    refused(["run", small(), "--cluster", "local:1"], "'precbench[cluster]'")

"""Runs on a Dask cluster: the same numbers as on one machine, whatever happens to its processes."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from distributed import KilledWorker, LocalCluster
from distributed.comm import CommClosedError

from precbench.errors import PrecbenchError
from precbench.experiment import load_config
from precbench.runner import remote
from precbench.runner.cluster import Cluster
from precbench.runner.worker import base_record
from precbench.store import Store
from tests.helpers import invoke, numbers, records, run, session
from tests.sentences import done_already, names, raises, refused, tells
from tests.test_promises import PRECBENCH, finished

WAIT_SECONDS = 120


@pytest.fixture
def start(tmp_path):
    """Start a command of Dask; all that it started is ended with the test."""
    started = []

    def start(*arguments, **environment):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        started.append(
            subprocess.Popen(
                [*command, "--dashboard-address", "127.0.0.1:0"],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
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
        process = start(
            *("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
        )
        until(file.exists)
        return process

    return start_scheduler


IDLE = SimpleNamespace(call=lambda *_, **__: True)
"""In place of a process for trials, which takes longer to start than all else."""


@pytest.fixture
def no_trials(monkeypatch):
    """A local cluster on which no trial can run."""
    monkeypatch.setattr(remote, "_process", lambda: IDLE)


@pytest.fixture
def start_worker(start, tmp_path):
    """Start a worker that has no data."""
    nothing = {"PRECBENCH_CACHE": str(tmp_path / "empty"), "PRECBENCH_MIRROR": ""}
    return lambda file: start("worker", "--scheduler-file", file, "--nthreads", 1, **nothing)


def until(condition):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "still waiting"
        time.sleep(0.05)


def test_workers_get_their_data_from_the_client(
    start_worker, tmp_path, isolated, no_page, monkeypatch
):
    monkeypatch.setattr("precbench.cli.outlook.to_fetch", lambda part: {})  # the stand-in will do
    file = tmp_path / "scheduler.json"
    scheduler = LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"scheduler_file": str(file)},
    )
    start_worker(file)
    where = ["--cluster", file, "--smoke", "--solver", "sgd-avg", "--solver", "linear-svm"]
    planned = invoke("run", "letter", *where, "--dry-run", "--out", tmp_path)
    tells(planned.output, "2 worker letter")
    done = run("letter", tmp_path / "cluster", *where)
    assert done.exit_code == 0, done.output
    assert "[2/2, 1 worker]" in done.stderr
    run("letter", tmp_path / "one", *where[2:])
    one, other = (numbers(tmp_path / name / "letter-smoke") for name in ("one", "cluster"))
    assert one.equals(other)
    scheduler.close()
    waiting = ["--cluster-wait", "1", "--force"]
    refused(["run", "letter", *where, *waiting], code=1)


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


@pytest.mark.filterwarnings("ignore:subprocess .* is still running")  # they end by themselves
def test_a_local_cluster_gives_the_numbers_of_this_machine(small, tmp_path, monkeypatch):
    config = small()
    assert run(config, tmp_path / "one").exit_code == 0
    done = run(config, tmp_path / "cluster", "--cluster", "local:2")
    assert done.exit_code == 0, done.output
    names(done.output, "cluster 2 http://127.0.0.1")
    one, other = (numbers(tmp_path / name / "small") for name in ("one", "cluster"))
    assert one.equals(other)
    monkeypatch.setattr(remote, "_process", lambda: IDLE)  # none of them will run
    again = run(config, tmp_path / "cluster", "--cluster", "local:1")
    assert done_already(again.output) == 6


@pytest.mark.parametrize("gone", ["scheduler", "worker"])
def test_what_goes_away_as_a_run_begins_is_named(gone):
    """As where another client shuts the scheduler down, or retires its workers."""
    away = CommClosedError("closed")

    def run(*_, **__):
        if gone == "scheduler":
            raise away
        return {"the worker": away}

    cluster = Cluster.__new__(Cluster)
    cluster._where, cluster._client = "the scheduler", SimpleNamespace(run=run)
    with raises(PrecbenchError):
        cluster._refuse_others()


@pytest.mark.parametrize(
    ("where", "code"), [("local:0", 2), ("tls://127.0.0.1:1", 2), ("tcp://127.0.0.1:1", 1)]
)
def test_no_such_cluster(small, tmp_path, where, code):
    waiting = ["--cluster-wait", "0.2"]
    refused(["run", small(), "--cluster", where, *waiting], code=code)


def test_a_machine_that_goes_away_is_reported(small, tmp_path, no_trials, monkeypatch):
    """With --timing the trials of a split wait for the machine where the others ran."""
    lanes = Cluster._lanes
    monkeypatch.setattr(
        Cluster, "_lanes", lambda *where: [replace(lane, host="there") for lane in lanes(*where)]
    )
    where = ["--cluster", "local:1", "--cluster-wait", "0.1", "--timing"]
    assert (
        "there has had no workers for 0.1 s"
        in invoke(*("run", small(), *where, "--out", tmp_path)).stderr
    )


def test_a_clock_that_is_set_back_ends_the_run(small, tmp_path, no_trials, monkeypatch):
    """Dask would stand still for an hour."""
    send = Cluster._send

    def late(*where):
        monkeypatch.setattr("precbench.runner.cluster._clock", lambda: -time.monotonic())
        return send(*where)

    monkeypatch.setattr(Cluster, "_send", late)
    monkeypatch.setattr("precbench.runner.cluster._LOOK_SECONDS", 0)
    command = ["run", small(), "--cluster", "local:1", "--out", tmp_path]
    refused(command, code=1)


def test_a_trial_killing_two_workers_is_marked_crashed(small, tmp_path, monkeypatch):
    """Dask gives a trial up with its worker, though it may only have waited there."""
    killed = KilledWorker("task", SimpleNamespace(address="there"), 1)
    fate = {
        "once": [EOFError],
        "twice": [EOFError] * 2,
        "waited": [killed],
        "killer": [killed] * 2,
        "large": [MemoryError("out of memory")],
    }
    jobs = []

    def call(function, job, *_, memory=None):
        if function is remote._can_load:
            return True
        jobs.append(job)
        if fate.get(job.trial.label):
            raise fate[job.trial.label].pop()
        sent = Store(tmp_path / job.key)
        sent.write(base_record(job) | {"status": "skipped", "reason": "not run"})
        return (sent.folder / "trials" / f"{job.key}.json").read_bytes(), b"", {"cpu": "a cpu"}

    monkeypatch.setattr(remote, "_process", lambda: SimpleNamespace(call=call))
    labels = [*fate, "other"]
    solvers = {label: f"{{solver: sgd-avg, eta0: {i + 1}}}" for i, label in enumerate(labels)}
    solvers = ", ".join(f"{label}: {solver}" for label, solver in solvers.items())
    config = small(solvers=f"{{{solvers}}}", protocol="{n_splits: 1}")
    done = run(config, tmp_path, "--cluster", "local:2", "--no-plots")
    assert done.exit_code == 1, done.output
    found = {r.label: (r.status, r.reason) for r in Store(tmp_path / "small").records()}
    assert found == {
        "once": ("skipped", "not run"),
        "twice": ("crashed", "the process died twice while working on it"),
        "waited": ("skipped", "not run"),
        "killer": ("crashed", "2 workers died while working on it"),
        "large": ("failed", "out of memory"),
        "other": ("skipped", "not run"),
    }
    assert len(jobs) == 10 and all(job.dataset.X is None for job in jobs)


def test_a_worker_keeps_rows_of_each_type_apart(small):
    worker, dataset = SimpleNamespace(local_directory="here"), SimpleNamespace(sha256="0")
    kept = {
        remote._kept(worker, load_config(small(dtype=dtype)).trials()[0], dataset)
        for dtype in ("float64", "float32")
    }
    assert len(kept) == 2


def test_workers_with_other_versions_are_refused(small, no_trials, monkeypatch):
    versions, calls = remote.versions, []

    def differing():
        calls.append(1)
        return versions() | ({"numpy": "1.0"} if len(calls) > 1 else {})

    monkeypatch.setattr(remote, "versions", differing)
    refused(["run", small(), "--cluster", "local:1"], "numpy 1.0", code=1)


def test_without_dask_the_error_names_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "precbench.runner.cluster", raising=False)
    monkeypatch.delitem(sys.modules, "precbench.runner.remote", raising=False)
    refused(["run", small(), "--cluster", "local:1"], "'precbench[cluster]'")

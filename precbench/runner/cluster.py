"""Jobs on the workers of a Dask cluster; only this process writes their records."""

import asyncio
import logging
import os
import platform
import queue
import signal
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from precbench.core.errors import InputError, MissingPackageError, PrecbenchError
from precbench.core.processes import no_interrupt, safe_path
from precbench.core.source_code import code_of
from precbench.data import Dataset
from precbench.results.machine import environment, package_versions
from precbench.results.store import Store
from precbench.runner.heartbeats import Heartbeats, Stuck
from precbench.runner.worker import Job, outcome

try:
    import dask
    import distributed
    from distributed.scheduler import heartbeat_interval
except ImportError:
    raise MissingPackageError(
        "--cluster needs the package distributed; run pip install 'precbench[cluster]'"
    ) from None


_SENT_AHEAD = 100  # jobs for each worker
_LOOK_SECONDS = 1.0  # between looks at whether the workers are at work
_MOST_COUNTED = 2.0  # seconds that a look counts, see `Heartbeats`
# the least wait for an answer of the scheduler; for a client, what is added to
# --cluster-wait
_LEAST_ANSWER_SECONDS = 5.0
# to wait for a worker that imports precbench, which answers nothing else
_IMPORT_SECONDS = 60.0
_SAMPLE_SECONDS = 2.0  # in which a nanny measures whether its worker computes
_LEAST_SHARE = 0.025  # of a core, which a worker takes that computes
# for a nanny to kill its worker; the scheduler then leaves the worker out
_RESTART_SECONDS = 10.0
_CLOSE_SECONDS = 2.0  # for the end of a connection
# for a result; if the worker has died, Dask runs the job again meanwhile
_FETCH_SECONDS = 60.0
_SETTINGS = {
    # the rows are meant to be sent
    "distributed.admin.large-graph-warning-threshold": "1TB",
    # A local worker starts again after its death, unless the start takes longer than
    # this.
    "distributed.deploy.lost-worker-timeout": "1h",
    # Dask does these 10 to 100 times a second, which takes 5 % of a core.
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}


@dataclass(frozen=True)
class Cluster:
    """A connection to a Dask cluster that runs trials, see `connect`."""

    client: distributed.Client
    where: str  # an address, a file or local:N
    wait: float  # seconds without a worker at work, after which `run` raises an error

    @property
    def n_workers(self) -> int:
        """The present number of workers; each runs one trial at a time."""
        with _errors_of_dask(self.where):
            return len(self.ask(self.client.nthreads))

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, str | None]]:
        """Run jobs on the workers and yield each with its status as it ends.

        The status is None for a job whose workers died. A worker that is stuck is ended
        with a warning, and Dask gives its jobs to others. An error is raised if no
        worker is at work for `wait` seconds: the workers are gone, or Dask keeps the
        jobs back from them.
        """
        if any(job.timing == "sequential" for job in jobs):
            raise InputError(
                "--timing cannot be combined with --cluster, since the workers of a"
                " machine slow each other down; use --shard to time shards, each on a"
                " machine of its own"
            )
        sent: dict[distributed.Future, Job] = {}  # the jobs that have not ended yet
        # tasks that hold rows, by the id of the data set
        rows: dict[int, distributed.Future] = {}
        ended = queue.SimpleQueue[distributed.Future]()  # filled by threads of Dask
        watch = _Watch(self, sent)
        with _errors_of_dask(self.where):
            waiting = iter(jobs)
            most_sent = _SENT_AHEAD * max(1, self.n_workers)
            while True:
                for job in islice(waiting, most_sent - len(sent)):
                    future = self._submit(job, rows)
                    sent[future] = job
                    future.add_done_callback(ended.put)
                if not sent:
                    return
                watch.look_if_due()
                try:
                    future = ended.get(timeout=_LOOK_SECONDS)
                except queue.Empty:  # no job has ended
                    continue
                job = sent.pop(future)
                status = self._write_record(job, future, watch)
                watch.see_work()
                yield job, status

    def _write_record(
        self, job: Job, future: distributed.Future, watch: "_Watch"
    ) -> str | None:
        """Write the record of a job; return its status, None if its workers died."""
        try:
            result = self._fetch(future, watch)
        except (distributed.KilledWorker, TimeoutError):
            # TimeoutError: the result was lost
            return None
        store = Store(job.folder)
        environment_id = store.add_environment(result.machine)
        store.write(result.record | {"environment": environment_id}, result.arrays)
        return str(result.record["status"])

    def _fetch(self, future: distributed.Future, watch: "_Watch") -> "_Result":
        """Return the result of a job; its worker may stop, and is watched meanwhile."""
        client_loop: Any = self.client.loop  # in a thread of the client
        fetching = asyncio.run_coroutine_threadsafe(
            _awaited(future), client_loop.asyncio_loop
        )
        last_moment = time.monotonic() + _FETCH_SECONDS
        try:
            while True:
                watch.see_work()
                try:
                    return fetching.result(_LOOK_SECONDS)
                except TimeoutError:
                    if fetching.done() or time.monotonic() > last_moment:
                        raise
                watch.look_if_due()
        finally:
            fetching.cancel()

    def ask(
        self,
        question: Callable[..., Awaitable[Any]],
        *arguments: Any,
        more_seconds: float = 0.0,
    ) -> Any:
        """Await a question to the scheduler; raise if no answer comes in time."""
        seconds = max(self.wait, _LEAST_ANSWER_SECONDS) + more_seconds
        try:
            return self.client.sync(question, *arguments, callback_timeout=seconds)
        except TimeoutError:
            raise _no_answer(self.where, seconds) from None

    def _submit(
        self, job: Job, rows: dict[int, distributed.Future]
    ) -> distributed.Future:
        """Send a job and return its future; rows are sent once, and added to `rows`."""
        # With `pure=False`, Dask takes no earlier result for that of an equal task.
        dataset_id = id(job.dataset)
        if dataset_id not in rows:
            # sent as the result of a task, so that Dask restores lost rows
            rows[dataset_id] = self.client.submit(
                lambda rows: rows, job.dataset, pure=False
            )
        # `_run` gets a job without rows, and the rows, which Dask puts in place of
        # their future.
        without_rows = replace(job, dataset=cast(Dataset, None))
        return self.client.submit(_run, without_rows, rows[dataset_id], pure=False)


@dataclass
class _Watch:
    """Looks at the workers of a cluster, and ends those that are stuck."""

    cluster: Cluster
    # The jobs that have not ended yet; `Cluster.run` changes them.
    sent: Mapping[distributed.Future, Job]

    def __post_init__(self) -> None:
        start = time.monotonic()
        self._heartbeats = Heartbeats(most_counted=_MOST_COUNTED)
        self._last_look = start
        self._last_work = start

    def see_work(self) -> None:
        """Note that a worker is at work."""
        self._last_work = time.monotonic()

    def look_if_due(self) -> None:
        """Look at the workers; raise if none is at work for the wait of the cluster."""
        now = time.monotonic()
        seconds = now - self._last_look
        if seconds < _LOOK_SECONDS:
            return
        self._last_look = now
        workers, jobs = self.cluster.ask(_workers_and_jobs, self.cluster.client)
        timeouts = {
            str(future.key): job.trial.timeout for future, job in self.sent.items()
        }
        wait = self.cluster.wait
        # Of many workers, each sends a heartbeat less often. Single ones may be late.
        longest_silence = max(wait, 10 * heartbeat_interval(len(workers)))
        seem_stuck = self._heartbeats.look(
            seconds, workers, jobs, timeouts, longest_silence
        )
        stuck = [worker for worker in seem_stuck if not self._is_computing(worker)]
        if stuck:
            self._end(stuck)
        elif any(jobs.values()):
            self.see_work()
        elif time.monotonic() > self._last_work + wait:
            raise PrecbenchError(
                f"no worker of the cluster {self.cluster.where} has been at work for"
                f" {wait:g} s; check the workers and repeat the command: it resumes"
            )

    def _is_computing(self, worker: Stuck) -> bool:
        """Return whether compiled code keeps a silent worker from answering."""
        if not (worker.is_silent and worker.has_nanny):
            return False
        try:
            share = self.cluster.client.sync(
                _share_of_core,
                self.cluster.client,
                worker.address,
                callback_timeout=2 * _SAMPLE_SECONDS,
            )
        except (TimeoutError, OSError):  # the nanny is stopped, too, or gone
            return False
        return share >= _LEAST_SHARE

    def _end(self, stuck: Sequence[Stuck]) -> None:
        """End stuck workers: Dask moves their jobs, and nannies start new workers."""
        for worker in stuck:
            warnings.warn(
                f"the worker {worker.address} {worker.reason}: it is ended, and its"
                " trials are given to other workers",
                stacklevel=2,
            )
        addresses = [worker.address for worker in stuck]
        self.cluster.ask(
            _restart, self.cluster.client, addresses, more_seconds=_RESTART_SECONDS
        )


async def _awaited(future: distributed.Future) -> Any:
    return await future


async def _workers_and_jobs(client: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return descriptions of the workers, and the keys of their jobs, by address."""
    identity = await client.scheduler.identity()
    return identity["workers"], await client.processing()


async def _share_of_core(client: Any, address: str) -> float:
    """Return the share of a core that a worker takes, which its nanny measures."""
    seconds = _SAMPLE_SECONDS  # is sent with the code of `share`

    async def share(dask_worker: Any) -> float:
        # runs in the nanny, which lacks the imports of this module
        import asyncio

        import psutil

        process = psutil.Process(dask_worker.pid)
        start = process.cpu_times()
        await asyncio.sleep(seconds)
        end = process.cpu_times()
        return float(end.user + end.system - start.user - start.system) / seconds

    shares = await client.run(share, workers=[address], nanny=True)
    return float(shares[address])


async def _restart(client: Any, addresses: list[str]) -> None:
    """Let nannies start workers anew; workers without a nanny leave the cluster."""
    await client.scheduler.restart_workers(
        workers=addresses,
        timeout=_RESTART_SECONDS,
        wait_for_workers=False,
        on_error="return",
        stimulus_id=f"precbench-stuck-{time.time()}",
    )


@contextmanager
def connect(where: str, wait: float = 30.0) -> Iterator[Cluster]:
    """Yield a connection to a cluster whose workers have the versions of this process.

    `where` is the address of a scheduler (``tcp://host:8786``, ``tls://…``), its file,
    or ``local:N`` for N processes of this machine, which end with the connection. After
    `wait` seconds without scheduler, or without workers, an error is raised.
    """
    _silence_dask()
    with ExitStack() as opened:
        # also for workers that start later
        opened.enter_context(safe_path())
        opened.enter_context(dask.config.set(_SETTINGS))
        with _errors_of_dask(where):
            client = _client(where, _scheduler(where, opened), wait)
            opened.callback(_close_client, client)
            cluster = Cluster(client, where, wait)
            cluster.ask(_first_worker, client, wait, more_seconds=wait)
            _refuse_other_versions(cluster)
        yield cluster


def _silence_dask() -> None:
    """Let Dask log little of what is raised anyway."""
    for name in logging.root.manager.loggerDict:
        if name.partition(".")[0] in ("distributed", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _scheduler(where: str, opened: ExitStack) -> dict[str, Any]:
    """Return a client's arguments for its scheduler; a local one ends with `opened`."""
    kind, _colon, number = where.partition(":")
    if kind == "local" and number.isdigit() and int(number) > 0:
        this_machine_only = "127.0.0.1:0"
        with no_interrupt():  # Ctrl-C ends no process that starts here
            local = distributed.LocalCluster(
                n_workers=int(number),
                threads_per_worker=1,
                dashboard_address=this_machine_only,
                worker_dashboard_address=this_machine_only,
            )
        opened.callback(_close_local, local)
        return {"address": local}
    if "://" in where:
        return {"address": where}
    if Path(where).is_file():
        return {"scheduler_file": where}
    raise InputError(
        f"--cluster {where} is neither an address nor a file; give the address of a"
        " scheduler (tcp://host:8786), the file of a scheduler, or local:N for N"
        " processes of this machine"
    )


def _client(where: str, scheduler: dict[str, Any], wait: float) -> distributed.Client:
    """Return a client of a scheduler.

    Dask itself waits for ever for a scheduler that takes a connection and then does not
    answer, so that the client is made in a thread, which is abandoned in this case.
    """
    made = Future[distributed.Client]()

    def make() -> None:
        try:
            made.set_result(
                distributed.Client(**scheduler, timeout=wait, set_as_default=False)
            )
        except Exception as error:
            made.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    seconds = wait + _LEAST_ANSWER_SECONDS  # so that Dask's own timeout comes first
    try:
        return made.result(timeout=seconds)
    except TimeoutError:
        if made.done():  # an error of Dask
            raise
        raise _no_answer(where, seconds) from None


def _no_answer(where: str, seconds: float) -> PrecbenchError:
    """Return the error of a scheduler that does not answer."""
    return PrecbenchError(
        f"the scheduler of the cluster {where} has not answered for {seconds:g} s;"
        " check the scheduler and repeat the command: it resumes"
    )


def _close_client(client: distributed.Client) -> None:
    """Close a client, also if its scheduler does not answer."""
    with suppress(Exception):  # the connection is left to the end of this process
        client.close(timeout=_CLOSE_SECONDS)


def _close_local(local: distributed.LocalCluster) -> None:
    """Kill the workers of a local cluster, also stopped ones, and close the cluster.

    Workers hold nothing that is needed: only this process writes records.
    """
    with suppress(Exception):
        local.sync(_kill_workers, local, callback_timeout=_CLOSE_SECONDS)
        local.close(timeout=_CLOSE_SECONDS)


async def _kill_workers(local: distributed.LocalCluster) -> None:
    """Kill the worker processes of a local cluster; nannies are in this process."""
    for nanny in local.workers.values():
        nanny.close_gracefully()  # so that the nanny starts no other worker
        if nanny.pid is not None:
            os.kill(nanny.pid, signal.SIGKILL)


async def _first_worker(client: Any, wait: float) -> None:
    """Wait for a worker."""
    # Dask takes a timeout of 0 to mean that there is none.
    await client.wait_for_workers(1, timeout=wait or _LOOK_SECONDS)


def _refuse_other_versions(cluster: Cluster) -> None:
    """Raise if a worker has other versions than this process, or does not answer."""
    own_versions = versions()
    seconds = max(cluster.wait, _IMPORT_SECONDS)
    answers = cluster.ask(
        _versions_of_workers, cluster.client, seconds, more_seconds=seconds
    )
    for worker, worker_versions in answers.items():
        if worker_versions is None:
            raise PrecbenchError(
                f"the worker {worker} has not answered for {seconds:g} s; end the"
                " worker or start it anew, and repeat the command"
            )
        for name, own in own_versions.items():
            other = worker_versions.get(name)
            if other != own:
                raise PrecbenchError(
                    f"the worker {worker} has {name} {other or '(none)'}, but this"
                    f" machine has {own or '(none)'}; install the same version on all"
                    " machines"
                )


async def _versions_of_workers(
    client: Any, seconds: float
) -> dict[str, dict[str, str | None] | None]:
    """Return the versions of each worker by address, None without an answer in time."""

    async def versions_of(address: str) -> dict[str, str | None] | None:
        answering = client.run(versions, workers=[address])
        try:
            answers = await asyncio.wait_for(answering, seconds)
        except TimeoutError:
            return None
        return cast(dict[str, str | None], answers[address])

    addresses = list(await client.nthreads())
    answers = await asyncio.gather(*map(versions_of, addresses))
    return dict(zip(addresses, answers, strict=True))


@contextmanager
def _errors_of_dask(where: str) -> Iterator[None]:
    """Raise a `PrecbenchError` in place of any error of Dask in the block."""
    try:
        yield
    except PrecbenchError:
        raise
    except Exception as error:
        raise PrecbenchError(
            f"the cluster {where} failed ({type(error).__name__}: {error}); check the "
            "scheduler and the workers, then repeat the command, which resumes"
        ) from error


# --- on a worker ---

_one_at_a_time = threading.Lock()  # clocks and warnings belong to the whole process


def versions() -> dict[str, str | None]:
    """Return the versions that must agree between client and workers, by name."""
    packages = package_versions()
    del packages["matplotlib"]  # draws figures only
    return {
        "Python": platform.python_version(),
        "the source of precbench": code_of("precbench"),
        **packages,
    }


class _Result(NamedTuple):
    """What a worker sends back: record and arrays of a trial, and its machine."""

    record: dict[str, Any]
    arrays: dict[str, NDArray] | None
    machine: dict[str, Any]


def _run(job: Job, dataset: Dataset) -> _Result:
    """Run a trial, one at a time in this process."""
    with _one_at_a_time, threadpool_limits(1):
        record, arrays = outcome(replace(job, dataset=dataset))
        return _Result(record, arrays, environment())

"""Jobs on the workers of a Dask cluster; only this process writes their records."""

import functools
import logging
import platform
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, cast

from threadpoolctl import threadpool_limits

from precbench.data import Dataset
from precbench.errors import InputError, MissingPackageError, PrecbenchError
from precbench.runner.worker import Job, outcome
from precbench.sources import code_of
from precbench.store import Store, environment, package_versions
from precbench.workers import no_interrupt, safe_path

try:
    import dask
    import distributed
except ImportError:
    raise MissingPackageError(
        "a cluster needs the package distributed: pip install 'precbench[cluster]'"
    ) from None


_RESUMES = "what is finished is kept, and the same command resumes from there"
_AHEAD = 100  # jobs sent for each worker
_LOOK_SECONDS = 1.0
_FETCH_SECONDS = 60.0
_LOOPBACK = "127.0.0.1:0"
_SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "1TB",  # the rows are meant to be sent
    # Dask does these 10 to 100 times a second, which takes 5 % of a core.
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}


@dataclass
class _Lane:
    """Jobs for any worker, or for those of one machine."""

    jobs: deque[Job]
    most: int
    host: str | None = None
    n_sent: int = 0
    seen: float = field(default_factory=time.monotonic)


class Cluster:
    """A Dask cluster that runs trials.

    `where` is the address of a scheduler (``tcp://host:8786``, ``tls://…``), its file, or
    ``local:N`` for N processes of this machine. After `wait` seconds without scheduler, or without
    workers, an error is raised.
    """

    def __init__(self, where: str, wait: float = 30.0):
        self._where, self._wait = where, wait
        for name in logging.root.manager.loggerDict:  # it would repeat errors in many lines
            if name.partition(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL)
        with ExitStack() as opened:
            opened.enter_context(safe_path())
            opened.enter_context(dask.config.set(_SETTINGS))
            with self._answering(), no_interrupt():
                options = self._scheduler(opened) | {"timeout": wait, "set_as_default": False}
                self._client = opened.enter_context(distributed.Client(**options))
                self._client.wait_for_workers(1, timeout=wait)
                self._refuse_other_versions()
            self.dashboard: str = self._client.dashboard_link
            self._open = opened.pop_all()

    def _scheduler(self, opened: ExitStack) -> dict[str, Any]:
        kind, _, number = self._where.partition(":")
        if kind == "local" and number.isdigit() and int(number):
            pages = dict.fromkeys(("dashboard_address", "worker_dashboard_address"), _LOOPBACK)
            processes = {"n_workers": int(number), "threads_per_worker": 1}
            cluster = distributed.LocalCluster(**processes, **pages)
            return {"address": opened.enter_context(cluster)}
        if "://" in self._where:
            return {"address": self._where}
        if Path(self._where).is_file():
            return {"scheduler_file": self._where}
        raise InputError(
            f"--cluster {self._where}: expected the address of a scheduler (tcp://host:8786), its "
            "file, or local:N for N processes of this machine"
        )

    def _refuse_other_versions(self) -> None:
        here = versions()
        for worker, there in self._client.run(versions).items():
            for name, version in here.items():
                if there.get(name) != version:
                    raise PrecbenchError(
                        f"{worker} has {name} {there.get(name)}, and here it is {version}: install "
                        "the same on all machines"
                    )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()  # a local cluster ends

    @property
    def n_workers(self) -> int:
        """The present number of workers; each runs one trial at a time."""
        return len(self._hosts())

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, str | None]]:
        """Run jobs on the workers and yield each with its status as it ends.

        Jobs with sequential timing run one at a time on each machine, and all those of a split on
        the same one. The status is None for a job whose workers died.
        """
        ended = queue.SimpleQueue[distributed.Future]()
        running: dict[distributed.Future, tuple[Job, _Lane]] = {}
        rows: dict[int, distributed.Future] = {}
        lanes = self._lanes(jobs)
        try:
            while running or any(lane.jobs for lane in lanes):
                for lane in lanes:
                    while lane.jobs and lane.n_sent < lane.most:
                        job = lane.jobs.popleft()
                        future = self._submit(job, lane.host, rows)
                        running[future] = job, lane
                        lane.n_sent += 1
                        future.add_done_callback(ended.put)
                with suppress(queue.Empty):
                    future = ended.get(timeout=_LOOK_SECONDS)
                    job, lane = running.pop(future)
                    lane.n_sent -= 1
                    yield job, self._status(job, future)
                    continue
                self._look(lanes)
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel(list(running))

    def _hosts(self) -> list[str]:
        with self._answering():
            return [distributed.comm.get_address_host(worker) for worker in self._client.nthreads()]

    def _lanes(self, jobs: Sequence[Job]) -> list[_Lane]:
        if any(job.timing != "sequential" for job in jobs):
            return [_Lane(deque(jobs), _AHEAD * self.n_workers)]
        lanes = [_Lane(deque(), 1, host) for host in sorted(set(self._hosts()))]
        splits: dict[Any, _Lane] = {}
        for job in jobs:
            split = job.dataset.name, job.trial.split.index
            splits.setdefault(split, lanes[len(splits) % len(lanes)]).jobs.append(job)
        return lanes

    def _submit(self, job: Job, host: str | None, rows: dict[int, Any]) -> distributed.Future:
        """Send a job, and its rows if they have not been sent."""
        number = id(job.dataset)
        with self._answering():
            if number not in rows:  # as a task, which Dask repeats where a worker has died
                rows[number] = self._client.submit(lambda rows: rows, job.dataset, pure=False)
            without_rows = replace(job, dataset=cast(Dataset, None))
            return self._client.submit(_run, without_rows, rows[number], workers=host, pure=False)

    def _status(self, job: Job, future: distributed.Future) -> str | None:
        """Write the record of a finished job and return its status."""
        with self._answering():
            try:
                record, arrays, machine = future.result(timeout=_FETCH_SECONDS)
            except (distributed.KilledWorker, TimeoutError):
                return None
        store = Store(job.folder)
        store.write(record | {"environment": store.add_environment(machine)}, arrays)
        return str(record["status"])

    def _look(self, lanes: Sequence[_Lane]) -> None:
        """Raise if the machine of a lane has had no workers for too long."""
        hosts, now = self._hosts(), time.monotonic()
        for lane in lanes:
            if lane.host in hosts or (hosts and lane.host is None) or not lane.n_sent:
                lane.seen = now
            elif now > lane.seen + self._wait:
                where = lane.host or f"the cluster {self._where}"
                raise PrecbenchError(f"{where} has had no workers for {self._wait:g} s: {_RESUMES}")

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Report errors of Dask and of workers in one sentence."""
        try:
            yield
        except PrecbenchError:
            raise
        except Exception as error:
            raise PrecbenchError(
                f"the cluster {self._where} does not answer, or has no workers "
                f"({type(error).__name__}: {error}): {_RESUMES}"
            ) from error


# --- on a worker ---

_one_at_a_time = threading.Lock()  # clocks and warnings belong to the whole process
_machine = functools.cache(environment)


def versions() -> dict[str, str | None]:
    """Return what must agree between client and workers: precbench, its source, and libraries."""
    source = {"Python": platform.python_version(), "the source of precbench": code_of("precbench")}
    return source | {n: v for n, v in package_versions().items() if n != "matplotlib"}


def _run(job: Job, dataset: Dataset) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    with _one_at_a_time, threadpool_limits(1):
        record, arrays = outcome(replace(job, dataset=dataset))
        return record, arrays, _machine()

"""Jobs on the workers of a Dask cluster; only this process writes their records."""

import logging
import platform
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

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
        "--cluster needs the package distributed; run pip install 'precbench[cluster]'"
    ) from None


_SENT_AHEAD = 100  # jobs for each worker
_LOOK_SECONDS = 1.0  # between looks at whether the workers are at work
_FETCH_SECONDS = 60.0  # for a result; if the worker has died, Dask runs the job again meanwhile
_SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "1TB",  # the rows are meant to be sent
    # A local worker starts again after its death, unless the start takes longer than this.
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
            return len(self.client.nthreads())

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, str | None]]:
        """Run jobs on the workers and yield each with its status as it ends.

        The status is None for a job whose workers died. An error is raised if no worker is at work
        for `wait` seconds: the workers are gone, or Dask keeps the jobs back from them.
        """
        if any(job.timing == "sequential" for job in jobs):
            raise InputError(
                "--timing cannot be combined with --cluster, since the workers of a machine slow "
                "each other down; use --shard to time shards, each on a machine of its own"
            )
        sent: dict[distributed.Future, Job] = {}  # the jobs that have not ended yet
        rows: dict[int, distributed.Future] = {}  # tasks that hold rows, by the id of the data set
        ended = queue.SimpleQueue[distributed.Future]()  # filled by threads of Dask
        last_active = time.monotonic()
        with _errors_of_dask(self.where):
            waiting, most_sent = iter(jobs), _SENT_AHEAD * max(1, self.n_workers)
            while True:
                for job in islice(waiting, most_sent - len(sent)):  # as many as may still be sent
                    future = self._submit(job, rows)
                    sent[future] = job
                    future.add_done_callback(ended.put)
                if not sent:
                    return
                try:
                    future = ended.get(timeout=_LOOK_SECONDS)
                except queue.Empty:  # no job has ended
                    if any(self.client.processing().values()):  # the jobs in work, by worker
                        last_active = time.monotonic()
                    elif time.monotonic() > last_active + self.wait:
                        raise PrecbenchError(
                            f"no worker of the cluster {self.where} has been at work for "
                            f"{self.wait:g} s; check the workers and repeat the command: it resumes"
                        ) from None
                else:
                    last_active = time.monotonic()
                    job = sent.pop(future)
                    yield job, _write_record(job, future)

    def _submit(self, job: Job, rows: dict[int, distributed.Future]) -> distributed.Future:
        """Send a job and return its future; rows sent for the first time are added to `rows`."""
        dataset_id = id(job.dataset)
        if dataset_id not in rows:  # sent as the result of a task, so that Dask restores lost rows
            rows[dataset_id] = self.client.submit(lambda rows: rows, job.dataset, pure=False)
        # `_run` gets a job without rows, and the rows, which Dask puts in place of their future.
        without_rows = replace(job, dataset=cast(Dataset, None))
        return self.client.submit(_run, without_rows, rows[dataset_id], pure=False)  # never cached


def _write_record(job: Job, future: distributed.Future) -> str | None:
    """Write the record of a job that has ended; return its status, None if its workers died."""
    try:
        record, arrays, machine = future.result(timeout=_FETCH_SECONDS)
    except (distributed.KilledWorker, TimeoutError):  # TimeoutError: the result was lost
        return None
    store = Store(job.folder)
    store.write(record | {"environment": store.add_environment(machine)}, arrays)
    return str(record["status"])


@contextmanager
def connect(where: str, wait: float = 30.0) -> Iterator[Cluster]:
    """Yield a connection to a cluster; raise if a worker has other versions than this process.

    `where` is the address of a scheduler (``tcp://host:8786``, ``tls://…``), its file, or
    ``local:N`` for N processes of this machine, which end with the connection. After `wait` seconds
    without scheduler, or without workers, an error is raised.
    """
    for name in logging.root.manager.loggerDict:  # Dask would log at length what is raised anyway
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as opened:
        opened.enter_context(safe_path())  # also workers that start later import no local files
        opened.enter_context(dask.config.set(_SETTINGS))
        with _errors_of_dask(where), no_interrupt():  # Ctrl-C ends no process that starts here
            client = distributed.Client(
                **_scheduler(where, opened), timeout=wait, set_as_default=False
            )
            opened.enter_context(client)
            client.wait_for_workers(1, timeout=wait)
            _refuse_other_versions(client)
        yield Cluster(client, where, wait)


def _scheduler(where: str, opened: ExitStack) -> dict[str, Any]:
    """Return the arguments of a client for its scheduler; a local scheduler ends with `opened`."""
    kind, _, number = where.partition(":")
    if kind == "local" and number.isdigit() and int(number):
        # Pages of the dashboards are for this machine only.
        pages = dict.fromkeys(("dashboard_address", "worker_dashboard_address"), "127.0.0.1:0")
        cluster = distributed.LocalCluster(n_workers=int(number), threads_per_worker=1, **pages)
        return {"address": opened.enter_context(cluster)}
    if "://" in where:
        return {"address": where}
    if Path(where).is_file():
        return {"scheduler_file": where}
    raise InputError(
        f"--cluster {where} is neither an address nor a file; give the address of a scheduler "
        "(tcp://host:8786), the file of a scheduler, or local:N for N processes of this machine"
    )


def _refuse_other_versions(client: distributed.Client) -> None:
    """Raise if a worker has other versions than this process."""
    here = versions()
    for worker, there in client.run(versions).items():
        for name, version in here.items():
            if there.get(name) != version:
                raise PrecbenchError(
                    f"the worker {worker} has {name} {there.get(name) or '(none)'}, but this "
                    f"machine has {version or '(none)'}; install the same version on all machines"
                )


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
    return {
        "Python": platform.python_version(),
        "the source of precbench": code_of("precbench"),
    } | {n: v for n, v in package_versions().items() if n != "matplotlib"}  # draws figures only


def _run(job: Job, dataset: Dataset) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Run a trial; return its record, its arrays, and the description of this machine."""
    with _one_at_a_time, threadpool_limits(1):
        record, arrays = outcome(replace(job, dataset=dataset))
        return record, arrays, environment()

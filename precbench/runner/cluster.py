"""Runs jobs on the workers of a Dask cluster; this process alone writes their records."""

import logging
import queue
import signal
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Self

from precbench.data import Dataset
from precbench.errors import InputError, MissingPackageError, PrecbenchError
from precbench.experiment.sections import StreamedFile
from precbench.experiment.trial import Trial
from precbench.runner.worker import Job, base_record
from precbench.store import Store
from precbench.text import duration

try:
    import dask
    import distributed
    from dask.tokenize import normalize_token

    from precbench.runner import remote
except ImportError:
    raise MissingPackageError(
        "a cluster needs the package distributed: pip install 'precbench[cluster]'"
    ) from None

__all__ = ["Cluster"]

_AHEAD = 100  # trials sent for each that runs
_LOOK_SECONDS = 1.0
_LOOPBACK = "127.0.0.1"
_FETCH_SECONDS = 60.0
_THEN = "what is finished is kept, and the same command resumes from there"
_MOST_DEATHS = 2
_WRITERS = 4  # each waits for the network, then for the disk
_SELDOM = {  # what Dask does 10 to 100 times a second, 5 % of a core
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}

normalize_token.register(Job, lambda job: job.key)  # Dask would pickle and hash the whole job


@dataclass
class _Lane:
    """Jobs that any worker runs, or those of one machine, one at a time."""

    jobs: deque[Job]
    host: str | None = None
    n_sent: int = 0


class Cluster:
    """A Dask cluster as the place where trials run.

    Parameters
    ----------
    where : str
        Address of a scheduler (``tcp://host:8786``, ``tls://…``), its file, or ``local:N`` for N
        processes of this machine.
    wait : float, default=30
        Seconds without scheduler, or without workers, after which to give up.

    Raises
    ------
    InputError
        If `where` is none of these.
    PrecbenchError
        If the cluster cannot be reached, has no workers, or has other versions than this process.
    """

    def __init__(self, where: str, wait: float = 30.0):
        self._where, self._wait = where, wait
        self._workers: dict[str, int] = {}
        self._kept: set[tuple[str, str, int | None]] = set()
        self._sending = threading.Lock()
        self._seen: dict[str | None, float] = {}
        self._next_look = 0.0
        self._clock = _clock()
        with ExitStack() as opened:
            options = self._scheduler(opened)
            _silence()
            try:
                with _no_interrupt():
                    client = distributed.Client(set_as_default=False, **options)
                    self._client = opened.enter_context(client)
            except (OSError, ValueError) as error:
                raise PrecbenchError(f"no scheduler answers at {where}: {error}") from error
            self._wake_workers()
            self._refuse_others()
            self._open = opened.pop_all()

    def _scheduler(self, opened: ExitStack) -> dict[str, Any]:
        """Return how to reach the scheduler; start a local one."""
        kind, _, number = self._where.partition(":")
        if kind == "local" and number.isdigit() and int(number):
            with _no_interrupt(), dask.config.set(_SELDOM):
                cluster = distributed.LocalCluster(
                    processes=False,  # each thread keeps a process for its trials
                    n_workers=1,
                    threads_per_worker=int(number),
                    dashboard_address=f"{_LOOPBACK}:0",
                    worker_dashboard_address=f"{_LOOPBACK}:0",
                )
            return {"address": opened.enter_context(cluster)}
        if "://" in self._where:
            self._refuse_without_certificate(self._where)
            return {"address": self._where, "timeout": self._wait}
        if Path(self._where).is_file():
            self._refuse_without_certificate(Path(self._where).read_text(errors="replace"))
            return {"scheduler_file": self._where, "timeout": self._wait}
        raise InputError(
            f"--cluster {self._where}: expected the address of a scheduler (tcp://host:8786), its "
            "file, or local:N for N processes of this machine"
        )

    def _refuse_without_certificate(self, text: str) -> None:
        """Refuse an address, or a file with one, that needs a certificate where there is none."""
        if "tls://" not in text:
            return
        try:
            context = distributed.Security().get_connection_args("client")["ssl_context"]
            reason = "" if context else "it needs a certificate"
        except OSError as error:
            reason = f"no certificate can be read, {error}"
        if reason:
            raise InputError(
                f"--cluster {self._where}: {reason}; name ca-file, cert and key in the settings of "
                "Dask, distributed.comm.tls"
            )

    def _wake_workers(self) -> None:
        """Wait for workers, and have each start the processes of its threads in the meantime."""
        self._look()
        while not self._workers:
            time.sleep(_LOOK_SECONDS)
            self._look()
        with self._answering():
            self._starting = [
                self._client.submit(remote.start, workers=[worker], pure=False)
                for worker, n_threads in self._workers.items()
                for _ in range(n_threads)
            ]

    def _refuse_others(self) -> None:
        """Refuse a cluster with other versions than here."""
        here = remote.versions()
        with self._answering():
            answers = self._client.run(remote.versions, on_error="return")
        for worker, there in answers.items():
            if isinstance(there, OSError):
                raise PrecbenchError(f"{worker} went away as the run began: start it again")
            if isinstance(there, Exception):
                raise PrecbenchError(f"{worker} cannot run precbench ({there}): install it there")
            for name, version in here.items():
                if there.get(name) != version:
                    raise PrecbenchError(
                        f"{worker} has {name} {there.get(name)}, and here it is {version}: install "
                        "the same on all machines"
                    )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; a local one ends."""
        self._open.close()

    @property
    def n_workers(self) -> int:
        """Number of trials that run at a time, as last seen."""
        return sum(self._workers.values())

    @property
    def dashboard(self) -> str:
        """Address of the page on which Dask shows what the workers do, if bokeh is installed."""
        link = dask.config.get("distributed.dashboard.link")
        if self._where.startswith("local:"):
            link = link.replace("{host}", _LOOPBACK)
        with dask.config.set({"distributed.dashboard.link": link}):
            return str(self._client.dashboard_link)

    def dispatch(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, str]]:
        """Run jobs on the workers and yield each with its status as it ends.

        Parameters
        ----------
        jobs : sequence of Job
            Those with sequential timing run one at a time on each machine, and all those of a
            split on the same one.

        Yields
        ------
        job, status : Job, str
            In the order in which they end. A job whose process or worker dies is repeated; what
            kills two processes is recorded as crashed.

        Raises
        ------
        PrecbenchError
            If the scheduler goes away, or all workers stay away.
        """
        with self._answering():
            for job in {(job.dataset.sha256, job.trial.rows): job for job in jobs}.values():
                for worker in self._lacking(job.trial, job.dataset):
                    self._send_data(job.trial, job.dataset, worker)
        lanes = self._lanes(jobs)
        running: dict[distributed.Future, tuple[Job, _Lane]] = {}
        deaths: Counter[str] = Counter()
        ended: queue.SimpleQueue[tuple[distributed.Future, Future[str | None]]]
        ended = queue.SimpleQueue()
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_WRITERS) as writers:
            self._received = Store(folder)

            def write(future: distributed.Future) -> None:
                with suppress(KeyError, RuntimeError):  # after an interruption
                    job, _ = running[future]
                    ended.put((future, writers.submit(self._status, job, future, deaths)))

            try:
                while any(lane.jobs for lane in lanes) or running:
                    for lane in lanes:
                        sent = self._send(lane, deaths)
                        running |= sent
                        for future in sent:
                            future.add_done_callback(write)
                    self._look({lane.host for lane in lanes if lane.jobs or lane.n_sent})
                    with suppress(queue.Empty):
                        future, status = ended.get(timeout=_LOOK_SECONDS)
                        known = status.result()
                        job, lane = running.pop(future)
                        lane.n_sent -= 1
                        if known is None:
                            lane.jobs.appendleft(job)
                        else:
                            yield job, known
            finally:
                # Forgotten first, so that no trial that ends from now on is written.
                waiting = list(running)
                running.clear()
                with suppress(Exception):  # the scheduler may be gone
                    self._client.cancel(waiting)

    def outlook(self, trial: Trial, dataset: Dataset) -> tuple[int, int]:
        """Return how many workers lack the data set of a trial, and the bytes that each needs."""
        with self._answering():
            n_lacking = len(self._lacking(trial, dataset))
        return n_lacking, len(remote.packed(dataset)) if n_lacking else 0

    def _lacking(self, trial: Trial, dataset: Dataset) -> list[str]:
        wanted = remote.hollow(dataset)
        asked = {
            worker: self._client.submit(
                remote.has_data, trial, wanted, workers=[worker], pure=False
            )
            for worker in self._workers
        }
        with suppress(TimeoutError), self._client.as_current():
            distributed.wait(list(asked.values()), timeout=self._wait)
        return [worker for worker, future in asked.items() if future.done() and not future.result()]

    def _send_data(self, trial: Trial, dataset: Dataset, worker: str) -> None:
        if isinstance(trial.dataset, StreamedFile):
            raise InputError(
                f"{trial.dataset.file} is streamed, and {worker} has no such file: put it in the "
                "same place there"
            )
        kept = worker, dataset.sha256, trial.rows
        if kept in self._kept:
            return
        self._kept.add(kept)
        content = remote.packed(dataset)
        self._client.run(remote.keep_data, trial, remote.hollow(dataset), content, workers=[worker])

    def _lanes(self, jobs: Sequence[Job]) -> list[_Lane]:
        if any(job.timing != "sequential" for job in jobs):
            return [_Lane(deque(jobs))]
        lanes = [_Lane(deque(), host) for host in sorted({*map(_host, self._workers)})]
        splits: dict[Any, _Lane] = {}
        for job in jobs:
            split = job.dataset.name, job.trial.split.index
            splits.setdefault(split, lanes[len(splits) % len(lanes)]).jobs.append(job)
        return lanes

    def _send(self, lane: _Lane, deaths: Counter[str]) -> dict[Any, tuple[Job, _Lane]]:
        """Send as many jobs of a lane as the scheduler should know."""
        most = 1 if lane.host else _AHEAD * self.n_workers
        if not lane.jobs or 2 * lane.n_sent > most:  # many at a time cost less
            return {}
        jobs = [lane.jobs.popleft() for _ in range(min(len(lane.jobs), most - lane.n_sent))]
        lane.n_sent += len(jobs)
        with self._answering():
            futures = self._client.map(
                remote.run_remote,
                [replace(job, dataset=remote.hollow(job.dataset)) for job in jobs],
                key=[f"trial-{job.key}-{deaths[job.key]}" for job in jobs],
                workers=lane.host and [lane.host],
            )
        return {future: (job, lane) for future, job in zip(futures, jobs, strict=True)}

    def _status(self, job: Job, future: distributed.Future, deaths: Counter[str]) -> str | None:
        """Write the record of a job that has ended and return its status; None to repeat it."""
        try:
            with self._answering():
                answer = future.result(timeout=_FETCH_SECONDS)
        except distributed.KilledWorker:  # maybe it only waited where another killed workers
            n_deaths = self._n_begun(job)
            deaths[job.key] += 1
            if max(n_deaths, deaths[job.key]) < _MOST_DEATHS:
                return None
            reason = f"{max(n_deaths, _MOST_DEATHS)} workers died while working on it"
            return self._ended(job, "crashed", reason)
        except TimeoutError:  # the worker has died meanwhile
            return None
        if answer.end == "recorded":
            return self._recorded(job, answer)
        if answer.end == "lacks data":
            with self._sending:
                self._send_data(job.trial, job.dataset, answer.worker)
            return None
        if answer.end != "died":
            return self._ended(job, answer.end, answer.reason)
        deaths[job.key] += 1
        if deaths[job.key] < _MOST_DEATHS:
            return None
        return self._ended(job, "crashed", "the process died twice while working on it")

    def _n_begun(self, job: Job) -> int:
        """Return how many workers have begun a job, see `precbench.runner.remote.run_remote`."""
        with self._answering():
            events = self._client.get_events(remote.BEGUN)
        return sum(event == remote.begun(job) for _, event in events)

    def _recorded(self, job: Job, answer: remote.Answer) -> str:
        """Check the record of a worker as any record, and write it."""
        trials = self._received.folder / "trials"
        trials.mkdir(exist_ok=True)
        contents = {".json": answer.record, ".npz": answer.arrays}
        paths = {trials / f"{job.key}{suffix}": content for suffix, content in contents.items()}
        for path, content in paths.items():
            path.write_bytes(content)
        try:
            record, arrays = self._received.read(job.key), self._received.arrays(job.key)
        except InputError as error:
            raise PrecbenchError(
                f"{answer.worker} has other code or packages than this machine "
                f"({error.__cause__ or error}): install the same"
            ) from error
        finally:
            for path in paths:
                path.unlink()
        assert record is not None
        store = Store(job.folder)
        machine = store.add_environment(answer.environment or {})
        known = base_record(job) | {"environment": machine}
        store.write(record.to_dict() | known, arrays)
        return record.status

    def _ended(self, job: Job, status: str, reason: str) -> str:
        """Write the record of a job whose process could not."""
        Store(job.folder).write(base_record(job) | {"status": status, "reason": reason})
        return status

    def _look(self, hosts: Collection[str | None] = (None,)) -> None:
        """Note the workers, now and then, and since when a machine, None for any, has none.

        Raises
        ------
        PrecbenchError
            If the scheduler is gone, there have been no workers for too long, or the clock was set
            back by more than that: Dask sends nothing until it has caught up.
        """
        if time.monotonic() < self._next_look:
            return
        before, self._clock = self._clock, _clock()
        if (seconds := before - self._clock) > self._wait:
            raise PrecbenchError(
                f"the clock of this machine was set back by {duration(seconds)}, and Dask would "
                f"stand still until it has caught up: {_THEN}"
            )
        self._workers = self._asked()
        present = {None, *map(_host, self._workers)} if self._workers else set()
        now = time.monotonic()
        self._next_look = now + _LOOK_SECONDS
        for host in hosts:
            if host in present:
                self._seen[host] = now
            elif now > self._seen.setdefault(host, now) + self._wait:
                raise PrecbenchError(
                    f"{host or f'the cluster {self._where}'} has had no workers for "
                    f"{self._wait:g} s: {_THEN}"
                )

    def _asked(self) -> dict[str, int]:
        """Ask the scheduler for the workers, and how many trials each runs at a time."""
        try:
            with self._answering():
                asked = self._client.scheduler.ncores
                return dict(self._client.sync(asked, workers=None, callback_timeout=self._wait))
        except TimeoutError as error:
            raise self._gone() from error

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Raise an error that the scheduler has gone, or of what a worker could not do."""
        try:
            yield
        except (PrecbenchError, TimeoutError, distributed.KilledWorker):
            raise
        except (distributed.CancelledError, OSError) as error:
            raise self._gone() from error
        except Exception as error:
            raise PrecbenchError(
                f"the cluster {self._where} failed: {type(error).__name__}: {error}"
            ) from error

    def _gone(self) -> PrecbenchError:
        return PrecbenchError(f"the scheduler at {self._where} has gone: {_THEN}")


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back from this thread, and for good from the threads that it starts."""
    resource_tracker.ensure_running()  # which would let it through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _clock() -> float:
    """Return by how much the clock of this machine is ahead of one that cannot be set."""
    return time.time() - time.monotonic()


def _host(worker: str) -> str:
    return str(distributed.comm.get_address_host(worker))


def _silence() -> None:
    """Keep Dask from logging in many lines what an error says in one."""
    for name in logging.root.manager.loggerDict:
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)

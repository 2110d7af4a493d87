"""Jobs on workers; a job that kills its worker is repeated once, alone."""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from precbench.core import processes
from precbench.core.errors import PrecbenchError
from precbench.core.files import writing
from precbench.data import Dataset
from precbench.results.store import Store
from precbench.runner.worker import Job, base_record, run_job

# the `run` of `dispatch`
RunJobs = Callable[[Sequence[Job]], Iterable[tuple[Job, str | None]]]

# bytes of rows that are sent with each job; more are shared by a file
_MOST_SENT = 2**20


def dispatch(jobs: Sequence[Job], run: RunJobs) -> Iterator[tuple[Job, str]]:
    """Run jobs and yield each with its status as it ends.

    `run`, which is `run_here` or `precbench.runner.cluster.Cluster.run`, yields None as
    the status of a job whose worker died. Such a job is repeated alone; if its worker
    dies again, it is recorded as crashed or timed out.
    """
    lost = []  # jobs whose worker died, perhaps because of another job
    for job, status in run(jobs):
        if status is None:
            lost.append(job)
        else:
            yield job, status
    for job in lost:
        start = time.monotonic()
        [(_job, status)] = run([job])  # alone
        if status is None:
            status = _record_death(job, time.monotonic() - start)
        yield job, status


def _record_death(job: Job, seconds: float) -> str:
    """Record a job whose worker died twice, after `seconds`; return its status."""
    if seconds > job.trial.timeout:
        # compiled code has kept the trial's own timer waiting
        status = "timeout"
        reason = f"more than {job.trial.timeout:g} s in compiled code"
    else:
        status = "crashed"
        reason = "the process died twice while working on this trial"
    Store(job.folder).write(base_record(job) | {"status": status, "reason": reason})
    return status


def run_here(jobs: Sequence[Job], n_workers: int) -> Iterator[tuple[Job, str | None]]:
    """Run jobs in local processes; yield each with its status, None if it was lost.

    A single job also runs in a process of its own, so that a crash does not end the
    run.
    """
    waiting = {job.key: job for job in jobs}
    was_lost_at_start = False
    while waiting:  # once, and again with new workers each time that a worker has died
        n_waiting = len(waiting)
        try:
            with _shared_rows(list(waiting.values())) as calls:
                for key, new_status in processes.run(_run, calls, n_workers):
                    yield waiting.pop(key), new_status
        except BrokenProcessPool as error:
            # A worker has died, and Python has ended all workers. The jobs that had
            # begun have ended in this run, or have a mark.
            for job in list(waiting.values()):
                status = _status_in_this_run(job)
                if status or job.mark.exists():
                    job.mark.unlink(missing_ok=True)
                    yield waiting.pop(job.key), status
            is_lost_at_start = len(waiting) == n_waiting  # no job had begun
            if is_lost_at_start and was_lost_at_start:  # the first may be by chance
                raise PrecbenchError(
                    "worker processes die at their start, perhaps for lack of memory;"
                    " use fewer workers (--jobs)"
                ) from error
            was_lost_at_start = is_lost_at_start


def _status_in_this_run(job: Job) -> str | None:
    """Return the status that this run has recorded for a job, None without one."""
    record = Store(job.folder).read(job.key)
    if record is None or record.run != job.run:
        return None
    return record.status


def _run(job: Job) -> tuple[str, str]:
    """Run a job in a worker process; return its key and its status."""
    return job.key, run_job(job)


@contextmanager
def _shared_rows(jobs: Iterable[Job]) -> Iterator[Iterator[tuple[Job]]]:
    """Yield an iterator over the arguments of `_run`, tuples of one job.

    Many rows become a map of a file, which is written once for all jobs on them, and
    removed at the end.
    """
    maps: dict[int, Dataset] = {}  # by the id of the data set
    paths: list[Path] = []

    def arguments() -> Iterator[tuple[Job]]:
        for job in jobs:
            dataset_id = id(job.dataset)
            if dataset_id not in maps and not _needs_no_file(job.dataset.X):
                # Beside the marks, where the next run removes what a killed run left.
                path = job.mark.with_name(f"rows-{secrets.token_hex(8)}")
                paths.append(path)  # before the write, which may fail half-way
                maps[dataset_id] = _mapped(job.dataset, path)
            dataset = maps.get(dataset_id, job.dataset)
            yield (replace(job, dataset=dataset),)

    try:
        yield arguments()
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _needs_no_file(X: Any) -> bool:
    """Return whether rows are few, streamed, or a map of a file already."""
    # The values of a sparse matrix are in its attribute `data`.
    values = getattr(X, "data", X) if sparse.issparse(X) else X
    n_bytes = getattr(values, "nbytes", 0)  # streamed rows have none
    return n_bytes <= _MOST_SENT or _is_mapped(values)


def _is_mapped(values: Any) -> bool:
    """Return whether an array is a memory map, a view of one, or a view of a view."""
    while values is not None:
        if isinstance(values, np.memmap):
            return True
        values = getattr(values, "base", None)  # what a view shows
    return False


def _mapped(dataset: Dataset, path: Path) -> Dataset:
    """Write a data set to a file of this user; return it as a map of the file."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Other users cannot read the file (0o600), nor have put one there before ("x").
        with open(
            path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)
        ) as stream:
            joblib.dump(dataset, stream)
    return joblib.load(path, mmap_mode="r")

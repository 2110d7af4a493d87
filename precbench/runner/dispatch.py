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
        started = time.monotonic()
        [(_, status)] = run([job])  # the job alone
        yield job, status or _record_death(job, time.monotonic() - started)


def _record_death(job: Job, seconds: float) -> str:
    """Record a job whose worker died twice, the last time after `seconds`.

    Return its status.
    """
    # compiled code has kept the trial's own timer waiting
    if seconds > job.trial.timeout:
        status, reason = (
            "timeout",
            f"more than {job.trial.timeout:g} s in compiled code",
        )
    else:
        status, reason = "crashed", "the process died twice while working on this trial"
    Store(job.folder).write(base_record(job) | {"status": status, "reason": reason})
    return status


def run_here(jobs: Sequence[Job], n_workers: int) -> Iterator[tuple[Job, str | None]]:
    """Run jobs in local processes.

    Yield each with its status, None if its worker died.
    """
    # A single job also runs in a process of its own, so that a crash does not end the
    # run.
    waiting = {job.key: job for job in jobs}
    was_lost_at_start = False
    while waiting:  # once, and again with new workers each time that a worker has died
        n_waiting = len(waiting)
        try:
            with _shared_rows(list(waiting.values())) as calls:
                for key, status in processes.run(_run, calls, n_workers):
                    yield waiting.pop(key), status
        except BrokenProcessPool as error:
            # a worker has died, and Python has ended all workers Yield the jobs that
            # had begun: with a record of this run, or with a mark (None).
            for job in list(waiting.values()):
                record = Store(job.folder).read(job.key)
                outcome = (
                    record.status
                    if record is not None and record.run == job.run
                    else None
                )
                if outcome or job.mark.exists():
                    job.mark.unlink(missing_ok=True)
                    yield waiting.pop(job.key), outcome
            is_lost_at_start = len(waiting) == n_waiting  # no job had begun
            if is_lost_at_start and was_lost_at_start:  # a single loss may be by chance
                raise PrecbenchError(
                    "worker processes die at their start, perhaps for lack of memory;"
                    " use fewer workers (--jobs)"
                ) from error
            was_lost_at_start = is_lost_at_start


def _run(job: Job) -> tuple[str, str]:
    # in a worker process; returns the key and the status
    return job.key, run_job(job)


@contextmanager
def _shared_rows(jobs: Iterable[Job]) -> Iterator[Iterator[tuple[Job]]]:
    """Yield an iterator over the arguments of `_run`.

    Files with rows are removed at the end.
    """
    # data sets as maps of files, by the id of the data set
    maps: dict[int, Dataset] = {}
    paths: list[Path] = []

    def arguments() -> Iterator[tuple[Job]]:
        """Yield each job.

        Many rows become a map of a file, written once for all jobs on them.
        """
        for job in jobs:
            dataset_id = id(job.dataset)
            if dataset_id not in maps and not _needs_no_file(job.dataset.X):
                paths.append(job.mark.with_name(f"rows-{secrets.token_hex(8)}"))
                maps[dataset_id] = _mapped(job.dataset, paths[-1])
            # a tuple of one
            yield (replace(job, dataset=maps.get(dataset_id, job.dataset)),)

    try:
        yield arguments()
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _needs_no_file(X: Any) -> bool:
    """Return whether workers get rows without a new file.

    Few, streamed, or a map of a file.
    """
    # of a sparse X, its values
    values = getattr(X, "data", X) if sparse.issparse(X) else X
    if getattr(values, "nbytes", 0) <= _MOST_SENT:  # streamed rows have none
        return True
    # Rows may be a view of a memory map, or a view of a view: `base` is what a view
    # shows.
    while values is not None and not isinstance(values, np.memmap):
        values = getattr(values, "base", None)
    return values is not None


def _mapped(dataset: Dataset, path: Path) -> Dataset:
    """Write a data set to a file of this user.

    Return it with its arrays as maps of the file.
    """
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Other users cannot read the file (0o600), nor have put one there before ("x").
        with open(
            path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)
        ) as stream:
            joblib.dump(dataset, stream)
    return joblib.load(path, mmap_mode="r")

"""Runs jobs in worker processes; a worker that dies loses only the trial that killed it."""

import atexit
import fcntl
import functools
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import joblib

from precbench import processes
from precbench.data import Dataset
from precbench.errors import PrecbenchError
from precbench.runner.worker import Job, base_record, run_job
from precbench.store import Store

_SHARED = Path("/dev/shm")
_MARK = "precbench-{}.lock"
_FOLDER = "precbench-{}-{}"
_LEAST_SHARED = 2**31


def dispatch(jobs: Sequence[Job], n_workers: int) -> Iterator[tuple[Job, str]]:
    """Run jobs in worker processes and yield each with its status as it ends.

    Parameters
    ----------
    jobs : sequence of Job
    n_workers : int
        Number of jobs to run at a time, each with one BLAS thread. A single job also runs in a
        process of its own, so that a crash does not end the run.

    Yields
    ------
    job, status : Job, str
        In the order in which they end. A job whose worker dies is repeated, with no other beside
        it if it had begun; a job that dies again is recorded as crashed or timed out.
    """
    claim_shared_memory()
    waiting = {job.key: job for job in jobs}
    was_lost_at_start = False
    while waiting:
        n_waiting = len(waiting)
        died = []
        with closing(_pool(list(waiting.values()), n_workers)) as pool:
            for key, status in pool:
                ended = status or recorded(waiting[key])
                if ended is not None:
                    yield waiting.pop(key), ended
                elif waiting[key].mark.exists():
                    died.append(key)
        for key in died:
            yield waiting[key], _alone(waiting.pop(key))
        is_lost_at_start = len(waiting) == n_waiting
        if is_lost_at_start and was_lost_at_start:  # once may be by chance
            raise PrecbenchError("worker processes die at their start")
        was_lost_at_start = is_lost_at_start


def _pool(jobs: Sequence[Job], n_workers: int) -> Generator[tuple[str, str | None]]:
    """Yield the keys of jobs as they end, each with its status, None if its process has died.

    None begins after such a death. The rows are in files, of which each process makes memory maps.
    """
    mark = _FOLDER.format(os.getpid(), "")
    with tempfile.TemporaryDirectory(prefix=mark, dir=_shared()) as folder:
        calls = ((job.key, _run, _without_rows(job, folder)) for job in jobs)
        with closing(processes.run(calls, n_workers)) as ended:
            yield from ended


def _shared() -> Path:
    """Return where rows are kept: in memory, as long as there is enough."""
    is_large = _SHARED.is_dir() and shutil.disk_usage(_SHARED).free > _LEAST_SHARED
    return _SHARED if is_large else Path(tempfile.gettempdir())


def _without_rows(job: Job, folder: str) -> tuple[Job, Path]:
    """Return a job without its data set, and the file with that, written unless it is there."""
    path = Path(folder, str(id(job.dataset)))
    if not path.exists():
        joblib.dump(job.dataset, path)
    return replace(job, dataset=cast(Dataset, None)), path


def _run(job: Job, path: Path) -> str:
    return run_job(replace(job, dataset=_loaded(path)))


@functools.lru_cache(maxsize=1)
def _loaded(path: Path) -> Any:
    return joblib.load(path, mmap_mode="r")


def _alone(job: Job) -> str:
    """Run a job that may have killed a worker, with no other beside it."""
    started = time.monotonic()
    [(_, status)] = _pool([job], 1)
    if ended := status or recorded(job):
        return ended
    if time.monotonic() - started > job.trial.timeout:
        status, reason = "timeout", f"more than {job.trial.timeout:g} s in compiled code"
    else:
        status, reason = "crashed", "the process died twice while working on it"
    Store(job.folder).write(base_record(job) | {"status": status, "reason": reason})
    job.mark.unlink(missing_ok=True)
    return status


def recorded(job: Job) -> str | None:
    """Return the status of a job whose worker died after writing the record, else None."""
    record = Store(job.folder).read(job.key)
    return record.status if record is not None and record.run == job.run else None


def claim_shared_memory() -> None:
    """Mark the shared memory of this process as its own, and remove that of killed runs.

    Each run removes its own, unless it is killed.

    Its names contain the id of the process, which alone says little: ids are used again, and
    containers may share the memory. So a file with the id is locked while the process lives.
    """
    folder = _SHARED if _SHARED.is_dir() else Path(tempfile.gettempdir())
    with suppress(OSError):
        _mark(folder)
    for mark in folder.glob(_MARK.format("*")):
        with suppress(OSError, ValueError):
            if _is_left(mark):
                _remove(mark, {folder, Path(tempfile.gettempdir())})


@functools.cache
def _mark(folder: Path) -> None:
    path = folder / _MARK.format(os.getpid())
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)  # never closed
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    atexit.register(path.unlink, missing_ok=True)


def _is_left(mark: Path) -> bool:
    """Return whether the process that made a mark has ended."""
    status = mark.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISREG(status.st_mode):
        return False
    with suppress(ProcessLookupError):
        os.kill(_owner(mark), 0)
        return False
    with mark.open() as stream, suppress(BlockingIOError):
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _owner(mark: Path) -> int:
    return int(mark.stem.rpartition("-")[2])


def _remove(mark: Path, folders: set[Path]) -> None:
    for folder in folders:
        for path in folder.glob(_FOLDER.format(_owner(mark), "*")):
            shutil.rmtree(path)
    mark.unlink()

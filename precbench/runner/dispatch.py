"""Runs jobs in worker processes; a worker that dies loses only the trial that killed it."""

import atexit
import fcntl
import functools
import os
import shutil
import signal
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

from precbench.errors import PrecbenchError
from precbench.interrupts import end_with_parent
from precbench.runner.worker import Job, base_record, run_job
from precbench.store import Store

_SHARED = Path("/dev/shm")
_MARK = "precbench-{}.lock"
_LEFT = ("joblib_memmapping_folder_{}_*", "sem.loky-{}-*")


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
        In the order in which they end. When a worker dies, the jobs that were running are repeated
        one at a time; a job that dies again is recorded as crashed or timed out.
    """
    claim_shared_memory()
    waiting = {job.key: job for job in jobs}
    was_lost_at_start = False
    while waiting:
        n_waiting = len(waiting)
        try:
            for key, status in _pool(list(waiting.values()), n_workers):
                yield waiting.pop(key), status
        except BrokenProcessPool as error:
            for job in list(waiting.values()):
                ended = recorded(job)
                if ended is None and job.mark.exists():
                    ended = _alone(job)
                if ended is not None:
                    yield waiting.pop(job.key), ended
            is_lost_at_start = len(waiting) == n_waiting
            if is_lost_at_start and was_lost_at_start:  # once may be by chance
                raise PrecbenchError(f"worker processes die at their start: {error}") from error
            was_lost_at_start = is_lost_at_start


def _pool(jobs: Sequence[Job], n_workers: int) -> Iterator[tuple[str, str]]:
    # At least two workers, because joblib runs a pool of one in this process; pre_dispatch limits
    # how many jobs run at a time. A worker imports what it needs with its first job, so that one
    # without any costs little.
    with parallel_config(
        backend="loky",
        inner_max_num_threads=1,
        initializer=end_with_parent,
        initargs=(os.getpid(),),
    ):
        pool = Parallel(
            n_jobs=max(2, n_workers),
            pre_dispatch=n_workers,
            batch_size=1,
            return_as="generator_unordered",
        )
        with no_interrupt():
            results = pool(delayed(_run)(job) for job in jobs)
        try:
            for result in results:  # noqa: UP028 (which would close it first)
                yield result
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, on jobs that nobody waits for any more
                results.close()


@contextmanager
def no_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back from this thread, and for good from the processes that it starts."""
    resource_tracker.ensure_running()  # which would let it through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(job: Job) -> tuple[str, str]:
    return job.key, run_job(job)


def _alone(job: Job) -> str:
    """Run a job that may have killed a worker, with no other beside it."""
    started = time.monotonic()
    try:
        [(_, status)] = _pool([job], 1)
        return status
    except BrokenProcessPool:
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

    Joblib removes it, unless a run is killed with all its processes.

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
        for pattern in _LEFT:
            for path in folder.glob(pattern.format(_owner(mark))):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
    mark.unlink()

"""Worker processes of joblib (loky), which start early and are reused.

This imports nothing heavy: workers start while the rest of a command is imported.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

_Result = TypeVar("_Result")

_SAFE_PATH = "PYTHONSAFEPATH"
# Of a worker, which has one thread of BLAS
_ENVIRONMENT = {
    _SAFE_PATH: "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}
_PR_SET_PDEATHSIG = 1  # of Linux: asks for a signal when the parent process dies
_LOOK_SECONDS = 1.0  # between looks at whether all workers live
_END_SECONDS = 5.0  # within which joblib notices that all workers have been killed
_FEEDING_SECONDS = 1  # within which the thread that sends jobs notices it, too
_executor: Any = None  # of the last `begin`; None without workers


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep processes started meanwhile from importing files of the current folder."""
    setting = os.environ.get(_SAFE_PATH, "")  # "" is the same as unset
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ[_SAFE_PATH] = setting


@contextmanager
def no_interrupt() -> Iterator[None]:
    """Block Ctrl-C in this thread, and in threads and processes started meanwhile."""
    from joblib.externals.loky.backend import resource_tracker

    # The tracker of joblib 1.5 unblocks Ctrl-C when it starts, so it starts first.
    with safe_path():
        resource_tracker.ensure_running()
    blocked_signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked_signals)


def begin(n_workers: int, function: str = "builtins:int", *arguments: Any) -> Any:
    """Return joblib's executor of `n_workers` at once: they start, or run already.

    Each worker first calls `function` (``module:name``); the default does nothing.
    """
    global _executor  # for `end`
    from joblib.executor import get_memmapping_executor

    settings = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PRECBENCH_")
    }
    # Running workers are kept only if all of these are what they were.
    surroundings = (os.getpid(), str(Path.cwd()), *sys.path)
    with safe_path(), no_interrupt(), warnings.catch_warnings():
        # joblib warns when it replaces the workers.
        warnings.simplefilter("ignore")
        # Arrays are sent whole, or are memory maps already: with `max_nbytes=None`
        # joblib makes no maps, and needs no folder for them.
        _executor = get_memmapping_executor(
            n_workers,
            initializer=_prepare,
            initargs=surroundings,
            env=_ENVIRONMENT | settings,
            max_nbytes=None,
            temp_folder=os.devnull,
        )
        # The first call starts all workers.
        for _ in range(n_workers):
            _executor.submit(_call, function, *arguments)
    return _executor


def _call(function: str, *arguments: Any) -> None:
    """Call a function by its name, in a worker."""
    resolve_name(function)(*arguments)


def _prepare(parent: int, *_folders: str) -> None:
    """Make this worker end with its parent, and ignore Ctrl-C: the parent handles it.

    The folders only tell joblib which workers may be kept, see `begin`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        import ctypes

        # The kernel kills this process when the parent dies.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before the call above
        os._exit(1)


def _all_live(executor: Any) -> bool:
    """Return whether all workers live, and the thread of joblib that watches them.

    The thread notices a closed pipe, but a child of a dead worker may hold the pipe
    open.
    """
    # The thread removes dead workers meanwhile, so they are copied to a list.
    workers = [*executor._processes.values()]
    # The exit code is None for a worker that lives, 0 after an end as intended.
    if any(worker.exitcode for worker in workers):
        return False
    return executor._executor_manager_thread.is_alive()


def end() -> None:
    """Kill the workers, if any: idle ones would end by themselves after minutes."""
    global _executor
    executor = _executor
    _executor = None
    if executor is None or executor._executor_manager_thread is None:
        return  # no worker has started
    queue = executor._call_queue
    feeding_thread = queue._thread  # sends jobs to the workers
    watching_thread = executor._executor_manager_thread  # watches the workers
    # The feeding thread may be in the middle of a job that nobody reads any more.
    queue.cancel_join_thread()
    for worker in [*executor._processes.values()]:
        if worker.is_alive():
            _kill_with_descendants(worker.pid)
    # The watching thread sees that the workers are dead, and ends. If it were told
    # first (`shutdown`), it would fail with a traceback where a job has not been sent
    # yet.
    watching_thread.join(_END_SECONDS)
    # A thread that is still there hangs, and is not waited for.
    executor.shutdown(wait=not watching_thread.is_alive(), kill_workers=True)
    # Whichever thread drops the queue last removes its semaphores. This leaves it to
    # the feeding thread, and waits for that thread: if the process ended first, the
    # tracker of joblib would warn of a semaphore that it cannot remove.
    del executor, queue
    if feeding_thread is not None:
        feeding_thread.join(_FEEDING_SECONDS)


def _kill_with_descendants(pid: int) -> None:
    """Kill a process and all processes that it has started."""
    import psutil  # here, since only the end needs it

    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        for process in [*parent.children(recursive=True), parent]:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def run(
    function: Callable[..., _Result], calls: Iterable[Sequence[Any]], n_workers: int
) -> Generator[_Result]:
    """Call a function in worker processes; yield the results as the calls end.

    When a worker is free, the next arguments are taken from `calls`; memory maps are
    passed by reference. If a worker dies, `BrokenProcessPool` is raised and all other
    workers are killed.
    """
    executor = begin(n_workers)
    waiting = iter(calls)  # arguments that are not yet sent
    running: set[Future[_Result]] = set()
    try:
        while True:
            n_free = n_workers - len(running)
            for arguments in islice(waiting, n_free):
                running.add(executor.submit(function, *arguments))
            if not running:
                return
            done, running = wait(
                running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED
            )
            for future in done:
                yield future.result()
            if not done and not _all_live(executor):
                raise BrokenProcessPool(
                    "a worker process, or the thread that watches the workers, has"
                    " died; repeat the calls that have yielded no result"
                )
    finally:
        if running:  # after an error, or if the caller stops early
            end()

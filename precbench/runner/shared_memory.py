"""The shared memory of runs: joblib removes it, unless a run is killed with all its processes."""

import atexit
import contextlib
import fcntl
import functools
import os
import shutil
import stat
import tempfile
from pathlib import Path

_SHARED = Path("/dev/shm")
_MARK = "precbench-{}.lock"
_LEFT = ("joblib_memmapping_folder_{}_*", "sem.loky-{}-*")


def claim() -> None:
    """Mark the shared memory of this process as its own, and remove that of killed runs.

    Its names contain the id of the process, which alone says little: ids are used again, and
    containers may share the memory. So a file with the id is locked while the process lives.
    """
    folder = _SHARED if _SHARED.is_dir() else Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        _mark(folder)
    for mark in folder.glob(_MARK.format("*")):
        with contextlib.suppress(OSError, ValueError):
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
    with contextlib.suppress(ProcessLookupError):
        os.kill(_owner(mark), 0)
        return False
    with mark.open() as stream, contextlib.suppress(BlockingIOError):
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

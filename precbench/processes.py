"""Processes that call functions; those of this machine are forked from one that has imported.

Importing numpy, scipy, scikit-learn and pandas takes a second of each process, a fork of one that
has done so milliseconds. That one is begun early, while its parent has other things to do. On
other systems than Linux a fork does not survive what libraries have begun: each process imports.
This imports next to nothing: a process does so before anything else.
"""

import atexit
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from math import inf
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

from precbench.interrupts import end_with_parent

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
_LOOK_SECONDS = 0.1

Call = tuple[Any, Callable[..., Any], Sequence[Any]]

OF_TRIALS = "precbench.runner.preloaded"
"""The module with what processes of trials import."""


class Process:
    """A process that calls one function at a time; it ends with the thread that started it.

    Parameters
    ----------
    imports : str
        Name of a module that it has imported when it calls the first function.
    forked : bool, default=False
        Whether it is forked from the process of `begin`; it ends with the thread that began that.

    Attributes
    ----------
    connection : Connection
        Ready when there is a result, or the process has died.
    """

    def __init__(self, imports: str, *, forked: bool = False):
        self.connection, theirs = Pipe()
        self._popen: subprocess.Popen | None = None
        with theirs:
            if forked and sys.platform == "linux":
                self.pid = _fork(imports, theirs.fileno())
            else:
                self._popen = _popen("_serve", theirs.fileno(), imports)
                self.pid = self._popen.pid
        with suppress(OSError):  # as of one that has died; then no result comes either
            self.connection.send((_settle, (str(Path.cwd()), sys.path, dict(os.environ))))

    def send(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a function called; `receive` returns its result."""
        with suppress(OSError):
            self.connection.send((function, arguments))

    def receive(self, memory: float = inf) -> Any:
        """Wait for a result and return it; an exception of the function is raised.

        Parameters
        ----------
        memory : float, default=inf
            Bytes that the process may take.

        Raises
        ------
        EOFError
            If the process dies.
        MemoryError
            If it takes more bytes; it is ended.
        """
        try:
            while memory < inf and not self.connection.poll(_LOOK_SECONDS):
                if (used := self._memory()) > memory:
                    raise MemoryError(
                        f"out of memory: {used / 2**30:.2g} of {memory / 2**30:.2g} GiB"
                    )
            result = self.connection.recv()
        except (EOFError, OSError, MemoryError) as error:
            self.end()
            if isinstance(error, MemoryError):
                raise
            raise EOFError from error
        if isinstance(result, Exception):
            raise result
        return result

    def call(self, function: Callable[..., Any], *arguments: Any, memory: float = inf) -> Any:
        """Call a function in the process and return its result, see `receive`."""
        self.send(function, *arguments)
        return self.receive(memory)

    def is_alive(self) -> bool:
        """Whether it can be called."""
        return not self.connection.closed and (self._popen is None or self._popen.poll() is None)

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.connection.closed:
            return
        self.connection.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self._popen is not None:
            self._popen.wait()

    def _memory(self) -> int:
        """Return the bytes that belong to the process alone."""
        import psutil

        with suppress(psutil.Error):
            used = psutil.Process(self.pid).memory_info()
            return used.rss - getattr(used, "shared", 0)
        return 0


class _Origin:
    """The process from which others are forked."""

    def __init__(self, imports: str):
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self.owner = os.getpid(), imports
        with theirs:
            self._popen = _popen("_fork_when_asked", theirs.fileno(), imports)

    def prepare(self, module: str) -> None:
        """Have a module imported before the next process is forked; this does not wait."""
        with suppress(OSError):  # as of one that was killed; the next one does without
            self._socket.send(module.encode())

    def fork(self, descriptor: int) -> int:
        """Have a process forked that serves a descriptor, and return its id."""
        socket.send_fds(self._socket, [b"fork"], [descriptor])
        answer = self._socket.recv(8)
        if not answer:
            raise EOFError
        return int.from_bytes(answer)

    def end(self) -> None:
        """End the process, and wait until it has ended."""
        self._socket.close()
        self._popen.kill()
        self._popen.wait()


_origin: _Origin | None = None


def begin(imports: str) -> None:
    """Begin the process from which others are forked, unless it has been; this does not wait.

    Parameters
    ----------
    imports : str
        Name of a module that it imports.
    """
    if sys.platform == "linux":
        _begun(imports)


def _begun(imports: str) -> _Origin:
    global _origin
    if _origin is None or _origin.owner != (os.getpid(), imports):
        _origin = _Origin(imports)
        atexit.register(end)
    return _origin


def prepare(*modules: str) -> None:
    """Have the process of `begin` import more modules, if it has begun; this does not wait."""
    if _origin is not None and has_begun():
        for module in modules:
            _origin.prepare(module)


def has_begun() -> bool:
    """Whether processes can be forked at once."""
    return _origin is not None and _origin.owner[0] == os.getpid()


def run(calls: Iterable[Call], n: int) -> Generator[tuple[Any, Any]]:
    """Call functions in forked processes and yield the results as they come.

    Parameters
    ----------
    calls : iterable of (hashable, callable, sequence)
        A key, a function and its arguments; taken when there is a process for it.
    n : int
        Number of calls at a time.

    Yields
    ------
    key, result
        None in place of the result if the process has died. After that, no other call begins.
    """
    waiting = iter(calls)
    ready: list[Process] = []
    running: dict[Connection, tuple[Process, Any]] = {}
    try:
        while True:
            for key, function, arguments in islice(waiting, n - len(running)):
                try:
                    process = ready.pop() if ready else Process(OF_TRIALS, forked=True)
                except (EOFError, OSError):
                    waiting = iter(())
                    yield key, None
                    break
                process.send(function, *arguments)
                running[process.connection] = process, key
            if not running:
                return
            for connection in wait(list(running)):
                process, key = running.pop(cast(Connection, connection))
                try:
                    result = process.receive()
                except EOFError:
                    waiting = iter(())
                    result = None
                else:
                    ready.append(process)
                yield key, result
    finally:
        for process in (*ready, *(process for process, _ in running.values())):
            process.end()


def end() -> None:
    """End the process from which others are forked; the next one is begun anew."""
    global _origin
    if _origin is not None:
        _origin.end()
        _origin = None


def _fork(imports: str, descriptor: int) -> int:
    try:
        return _begun(imports).fork(descriptor)
    except (EOFError, OSError):  # it has been killed since it was used last
        end()
        return _begun(imports).fork(descriptor)


def _popen(function: str, descriptor: int, imports: str) -> subprocess.Popen:
    program = (  # imports take seconds, in which the parent may die
        f"from {end_with_parent.__module__} import end_with_parent\n"
        f"end_with_parent({os.getpid()})\n"
        f"from {__name__} import {function}\n"
        f"{function}({descriptor}, {imports!r})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)},
        pass_fds=[descriptor],
        process_group=0,  # Ctrl-C is for the parent
    )


# --- in those processes ---


def _settle(folder: str, path: list[str], environment: dict[str, str]) -> None:
    """Take over what may have changed in the parent since the origin began."""
    os.chdir(folder)
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(environment | _ONE_THREAD)


def _serve(descriptor: int, imports: str) -> None:
    """Call what is asked for, until nobody asks any more."""
    __import__(imports)
    with Connection(descriptor) as asked, suppress(EOFError, OSError):
        while True:
            function, arguments = asked.recv()
            try:
                result = function(*arguments)
            except Exception as error:
                result = error
            if function is not _settle:
                asked.send(result)


def _fork_when_asked(descriptor: int, imports: str) -> None:
    """Fork a process for each descriptor that arrives, until nobody asks any more."""
    import gc

    __import__(imports)
    gc.collect()
    gc.freeze()  # so that no process copies it to look at it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    origin = os.getpid()
    with socket.socket(fileno=descriptor) as asked:
        while True:
            message, descriptors, _, _ = socket.recv_fds(asked, 4096, 1)
            if not message:
                return
            if not descriptors:
                __import__(message.decode())
                continue
            pid = os.fork()
            if pid == 0:
                break
            os.close(descriptors[0])
            asked.sendall(pid.to_bytes(8))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent(origin)
    _serve(descriptors[0], imports)

"""What ends a process from outside: Ctrl-C, SIGTERM (it may clean up first) and its parent's end.

This imports next to nothing: a worker does so before anything else.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 130
"""The exit code."""

_PR_SET_PDEATHSIG = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_MOST_SECONDS = 10  # for cleaning up
_SHOW_CURSOR = b"\x1b[?25h"


def leave_at_once() -> None:
    """Let an interrupt end the process from now on, for as long as nothing needs cleaning up."""
    _handle(_leave)


def ignore() -> None:
    """Ignore interrupts from now on: the process is about to end."""
    _handle(signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let an interrupt raise `KeyboardInterrupt`, ignore more, and end after some seconds at most.

    Whatever exception a library makes of it, it leaves as `KeyboardInterrupt`.
    """
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    hook = sys.unraisablehook
    is_interrupted = False

    def interrupt(*_: Any) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        ignore()
        signal.signal(signal.SIGALRM, _leave)
        signal.alarm(_MOST_SECONDS)
        raise KeyboardInterrupt

    def unraisable(lost: Any) -> None:
        if is_interrupted:  # as in a callback of the garbage collector, which nobody can catch
            _leave()
        hook(lost)

    _handle(interrupt)
    sys.unraisablehook = unraisable
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not is_interrupted:
            raise
        exec("")  # else CPython may end by the signal, for any exec that the interrupt went through
        raise KeyboardInterrupt from error
    finally:
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


def end_with_parent(parent: int) -> None:
    """End this process when its parent dies."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before
        os._exit(1)


def _handle(handler: Any) -> None:
    """Set the handler of the signals, except those that a shell has told to ignore (nohup)."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(*_: Any) -> NoReturn:
    os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"precbench: interrupted\n")
    os._exit(INTERRUPTED)

"""The command ``precbench``, and ``python -m precbench``."""

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

# Of libraries that would read an empty variable as a number
_VARIABLES = (
    "LOKY_",
    "JOBLIB_",
    "SKLEARN_",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "NUMEXPR_",
    "PRECBENCH_",
)
_AGAIN_SECONDS = 3  # after which an interrupt is repeated, as code may drop it or hang


def main() -> None:
    """Import and run the command line.

    Exit with 130 if Ctrl-C or SIGTERM interrupts the run.
    """
    # Ctrl-C and SIGTERM raise KeyboardInterrupt, and set an alarm
    _set_handler(_interrupt)
    # the alarm repeats an interrupt without effect
    signal.signal(signal.SIGALRM, _interrupt)
    # repeats a KeyboardInterrupt that Python has dropped
    sys.unraisablehook = _interrupt_again
    _drop_empty_variables()
    # Figures go to files; the backend of a notebook may be missing here, or need a
    # display.
    os.environ["MPLBACKEND"] = "agg"
    # After the handlers are set, because the import takes time
    from precbench.core import processes

    try:
        from precbench.cli import app

        app()
    except KeyboardInterrupt:  # during the imports; `app` handles later interrupts
        print("precbench: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        _set_handler(signal.SIG_IGN)  # no other interrupt while the workers are ended
        signal.alarm(0)  # nor a repeated one, which would end the process by SIGALRM
        processes.end()
        # A KeyboardInterrupt that leaves code run by `exec` makes CPython end by SIGINT
        # in place of exit code 130. Another `exec`, even of nothing, makes CPython
        # forget the interrupt.
        with suppress(MemoryError):  # `exec` raises it if memory is used up
            exec("")


def _drop_empty_variables() -> None:
    """Remove environment variables without a value, as a script leaves them."""
    for name, value in [*os.environ.items()]:
        if not value.strip() and name.startswith(_VARIABLES):
            del os.environ[name]


def _set_handler(handler: Any) -> None:
    """Set the handler of Ctrl-C and SIGTERM.

    A signal that the parent ignores stays ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`.

    Ignore later signals, but raise again where that had no effect.
    """
    _set_handler(signal.SIG_IGN)
    signal.alarm(_AGAIN_SECONDS)  # then SIGALRM calls `_interrupt`
    if _is_importing(frame):
        _exit_at_once()
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported where the signal came."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _exit_at_once() -> None:
    """End the process without an exception.

    Compiled code that packages run when they are imported drops a `KeyboardInterrupt`,
    or raises an error of its own in its place. Results are on disk whole at any time.
    """
    print("precbench: interrupted", file=sys.stderr, flush=True)
    with suppress(Exception):
        from precbench.core import processes

        processes.end()
        # One of the exit functions, joblib's, removes the semaphores of the workers.
        atexit._run_exitfuncs()
    os._exit(130)


def _interrupt_again(lost: Any) -> None:
    """Repeat a `KeyboardInterrupt` that Python dropped, as in garbage collection."""
    if lost.exc_type is KeyboardInterrupt:
        # seconds; then SIGALRM calls `_interrupt`
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()

"""The command ``precbench``, and ``python -m precbench``."""

import signal
import sys
from contextlib import suppress
from typing import Any


def main() -> None:
    """Import and run the command line; exit with 130 if Ctrl-C or SIGTERM interrupts the run."""
    _set_handler(_interrupt)  # Ctrl-C and SIGTERM raise KeyboardInterrupt, and set an alarm
    signal.signal(signal.SIGALRM, _interrupt)  # the alarm interrupts a clean-up that hangs
    sys.unraisablehook = _interrupt_again  # repeats a KeyboardInterrupt that Python has dropped
    from precbench import workers  # after the handlers are set, because the import takes time

    try:
        from precbench.cli import app

        app()
    except KeyboardInterrupt:  # during the imports; `app` handles later interrupts
        print("precbench: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        _set_handler(signal.SIG_IGN)  # no other interrupt while the workers are ended
        workers.end()
        # A KeyboardInterrupt that leaves code run by `exec` makes CPython end by SIGINT in place of
        # exit code 130. Another `exec`, even of nothing, makes CPython forget the interrupt.
        with suppress(MemoryError):  # `exec` raises it if memory is used up
            exec("")


def _set_handler(handler: Any) -> None:
    """Set the handler of Ctrl-C and SIGTERM; a signal that the parent ignores stays ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(*_: Any) -> None:
    """Raise `KeyboardInterrupt`; ignore later signals, but raise again after 10 s of clean-up."""
    _set_handler(signal.SIG_IGN)
    signal.alarm(10)  # seconds; then SIGALRM calls `_interrupt`
    raise KeyboardInterrupt


def _interrupt_again(lost: Any) -> None:
    """Repeat a `KeyboardInterrupt` that Python dropped, for example in garbage collection."""
    if lost.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # seconds; then SIGALRM calls `_interrupt`
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()

"""The command ``precbench``, and ``python -m precbench``."""

import signal
import sys
from contextlib import suppress
from typing import Any

_MOST_SECONDS = 10  # for cleaning up
_SOON = 0.01  # seconds


def main() -> None:
    """Import and run the command line."""
    _handle(_interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _interrupt_again
    from precbench import workers

    try:
        from precbench.cli import app

        app()
    except KeyboardInterrupt:  # while modules were imported
        print("precbench: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        _handle(signal.SIG_IGN)
        workers.end()
        with suppress(MemoryError):  # else CPython ends by SIGINT, not with 130, after an exec
            exec("")


def _handle(handler: Any) -> None:
    """Set the handler of Ctrl-C and SIGTERM, unless the parent process ignores them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(*_: Any) -> None:
    """Raise `KeyboardInterrupt`; clean-up is not interrupted again, unless it hangs."""
    _handle(signal.SIG_IGN)
    signal.alarm(_MOST_SECONDS)
    raise KeyboardInterrupt


def _interrupt_again(lost: Any) -> None:
    """Repeat an interrupt that was lost in a callback, as of garbage collection."""
    if lost.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _SOON)
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()

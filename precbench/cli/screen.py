"""Output of commands: text on standard output, progress on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.segment import Segment

from precbench.core.text import duration, one_line, visible
from precbench.results.records import Record

_UNLIMITED = 100_000  # characters in a line, more than any table has


class Screen(Console):
    """A console that escapes control characters in text, but not those of rich."""

    def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
        for segment in super().render(*args, **kwargs):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=visible(segment.text))


def screen(*, quiet: bool = False, stderr: bool = False, **options: Any) -> Screen:
    """Return a console for an output, which breaks lines on a terminal only."""
    stream = sys.stderr if stderr else sys.stdout
    # `Screen` escapes text itself, and writes past a stream that would also escape
    # rich's colours.
    stream = getattr(stream, "rich_proxied_file", stream)
    console = Screen(file=stream, highlight=False, markup=False, quiet=quiet, **options)
    if not console.is_terminal:
        # In a pipe or a file, no path and no command is broken, whatever COLUMNS says.
        console.soft_wrap = True
        console.width = _UNLIMITED
    elif not console.width:  # COLUMNS is 0
        console.width = 80
    return console


@contextmanager
def progress(
    n_trials: int, *, quiet: bool = False, verbose: bool = False
) -> Iterator[Callable[[str, Record], None]]:
    """Show on standard error how many trials are done, and the remaining time.

    A bar on a terminal; in a pipe a line for each tenth, or each minute. Trials that
    are not ok always have a line; `verbose` prints one for each trial. Yield the
    function to call with the title and the record of each finished trial.
    """
    console = screen(stderr=True)
    has_bar = console.is_terminal and n_trials > 0 and not quiet
    n_done = 0
    n_failed = 0
    started = time.monotonic()
    last_line = started  # when a line was printed last

    def finished(title: str, record: Record) -> None:
        """Advance the bar by a trial; print a line if due."""
        nonlocal n_done, n_failed, last_line
        now = time.monotonic()
        n_done += 1
        n_failed += record.status not in ("ok", "skipped")
        failed = f"{n_failed} failed" if n_failed else ""
        bars.update(task, completed=n_done, description=failed or "all trials")
        is_ok = record.status == "ok"
        outcome = f"{record.seconds or 0:.3g} s" if is_ok else one_line(record.reason)
        line = f"{title}: {record.status}: {outcome}"
        if not has_bar:
            parts = [f"{n_done}/{n_trials}"]
            if failed:
                parts.append(failed)
            seconds_left = (now - started) / n_done * (n_trials - n_done)
            if seconds_left > 1:
                parts.append(f"about {duration(seconds_left)} left")
            line = f"[{', '.join(parts)}] {line}"
        is_due = False
        if not has_bar and not quiet:
            is_new_tenth = 10 * n_done // n_trials > 10 * (n_done - 1) // n_trials
            is_due = is_new_tenth or now > last_line + 60
        if is_due or verbose or not is_ok:
            console.print(line)
            last_line = now

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, disable=not has_bar) as bars:
        task = bars.add_task("all trials", total=n_trials)
        yield finished

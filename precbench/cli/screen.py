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
    # `Screen` escapes text itself, and writes past the stream of `harmless_streams`,
    # which would also escape rich's colours.
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
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, disable=not has_bar) as bars:
        counter = _TrialCounter(
            n_trials, console, bars, has_bar=has_bar, quiet=quiet, verbose=verbose
        )
        yield counter.finished


class _TrialCounter:
    """Counts finished trials, on a bar or in lines."""

    def __init__(
        self,
        n_trials: int,
        console: Console,
        bars: Bars,
        *,
        has_bar: bool,
        quiet: bool,
        verbose: bool,
    ):
        self.n_trials = n_trials
        self.console = console
        self.bars = bars
        self.task = bars.add_task("all trials", total=n_trials)
        self.has_bar = has_bar
        self.quiet = quiet
        self.verbose = verbose
        self.n_done = 0
        self.n_failed = 0
        self.started = time.monotonic()
        self.last_line = self.started  # when a line was printed last

    def finished(self, title: str, record: Record) -> None:
        """Count a trial; advance the bar, and print a line if due."""
        now = time.monotonic()
        self.n_done += 1
        if record.status not in ("ok", "skipped"):
            self.n_failed += 1
        self.bars.update(
            self.task,
            completed=self.n_done,
            description=self._failed() or "all trials",
        )
        if record.status != "ok" or self.verbose or self._is_line_due(now):
            line = _outcome(title, record)
            if not self.has_bar:
                line = f"[{self._pace(now)}] {line}"
            self.console.print(line)
            self.last_line = now

    def _failed(self) -> str:
        return f"{self.n_failed} failed" if self.n_failed else ""

    def _is_line_due(self, now: float) -> bool:
        """Return whether one more tenth of the trials is done, or a minute is over.

        The minute begins at the last line.
        """
        if self.has_bar or self.quiet:
            return False
        tenths = 10 * self.n_done // self.n_trials
        tenths_before = 10 * (self.n_done - 1) // self.n_trials
        return tenths > tenths_before or now > self.last_line + 60

    def _pace(self, now: float) -> str:
        """Return how many trials are done and failed, and the remaining time."""
        parts = [f"{self.n_done}/{self.n_trials}"]
        if self.n_failed:
            parts.append(self._failed())
        seconds_of_trial = (now - self.started) / self.n_done
        seconds_left = seconds_of_trial * (self.n_trials - self.n_done)
        if seconds_left > 1:
            parts.append(f"about {duration(seconds_left)} left")
        return ", ".join(parts)


def _outcome(title: str, record: Record) -> str:
    """Return how a trial ended: its seconds, or the reason why it is not ok."""
    if record.status == "ok":
        outcome = f"{record.seconds or 0:.3g} s"
    else:
        outcome = one_line(record.reason)
    return f"{title}: {record.status}: {outcome}"

"""What a command shows: text on standard output, the progress of a run on standard error."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.segment import Segment

from precbench.text import duration, one_line, visible

if TYPE_CHECKING:
    from precbench.experiment import Trial
    from precbench.runner.worker import Job
    from precbench.store import Record

_MOST_LINES = 200  # roughly, in a pipe; trials that are not ok always have a line


class Screen(Console):
    """A console that escapes control characters in text, but not those that rich adds."""

    def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
        """Render text."""
        for segment in super().render(*args, **kwargs):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def screen(*, quiet: bool = False, stderr: bool = False, **options: Any) -> Screen:
    """Return a console; it breaks lines at the width of a terminal, and none in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    stream = getattr(stream, "rich_proxied_file", stream)
    console = Screen(file=stream, highlight=False, markup=False, quiet=quiet, **options)
    console.soft_wrap = not console.is_terminal
    return console


def _bars(*columns: Any, console: Console, hidden: bool) -> Bars:
    bars = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    note = TextColumn("{task.description}", markup=False)
    return Bars(note, *bars, *columns, console=console, disable=hidden)


@contextmanager
def measuring(n_trials: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Show how many trials are measured: a bar on a terminal, one line in a pipe.

    Yields
    ------
    callable
        Called with the number of trials measured since the last call.
    """
    what = "measuring the stored results"
    is_hidden = console.quiet or not console.is_terminal
    if is_hidden:
        console.print(what)
    with _bars(console=console, hidden=is_hidden) as bars:
        task = bars.add_task(what, total=n_trials)
        yield lambda n_more: bars.advance(task, n_more)


class Progress:
    """Shows on standard error how many trials are done and how long the others will take.

    It has a bar on a terminal, plain lines in a pipe.

    Parameters
    ----------
    trials : mapping of str to Trial
        Those to run, by their keys.
    expected : sequence of float
        Estimated seconds of each.
    quiet : bool, default=False
        Only lines of trials that are not ok.
    verbose : bool, default=False
        A line for each trial.
    """

    def __init__(
        self,
        trials: "Mapping[str, Trial]",
        expected: Sequence[float],
        *,
        quiet: bool = False,
        verbose: bool = False,
    ):
        self._total, self._failed = len(trials), 0
        kinds = ((trial.label, trial.dataset.name) for trial in trials.values())
        self._waiting = dict(zip(trials, zip(kinds, expected, strict=True), strict=True))
        self._known: dict[tuple[str, str], float] = {}
        self._foreseen = self._spent = 0.0
        self._started = time.monotonic()
        self._quiet, self._verbose = quiet, verbose
        self._console = screen(stderr=True)
        self._has_bar = self._console.is_terminal and bool(trials) and not quiet
        note = TextColumn("{task.fields[note]}", markup=False)
        self._bars = _bars(note, console=self._console, hidden=not self._has_bar)
        self._task = self._bars.add_task("all trials", total=self._total, note="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def finished(self, job: "Job", record: "Record") -> None:
        """Count a trial, and print its outcome in a pipe or if it is not ok."""
        from precbench.runner.cost import took

        status = record.status
        kind, expected = self._waiting.pop(job.key)
        self._known[kind] = took(record)
        self._spent += self._known[kind]
        self._foreseen += expected
        n_done = self._total - len(self._waiting)
        self._failed += status not in ("ok", "skipped")
        outcome = f"{record.seconds or 0:.3g} s" if status == "ok" else one_line(record.reason)
        line = f"{job.trial.title}: {status}: {outcome}"
        outlook = self._outlook()
        self._bars.update(self._task, completed=n_done, note=outlook)
        is_told = status != "ok" or self._verbose
        if not self._has_bar:
            is_told = is_told or not (self._quiet or n_done % (1 + self._total // _MOST_LINES))
            line = f"[{', '.join(filter(None, (f'{n_done}/{self._total}', outlook)))}] {line}"
        if is_told:
            self._console.print(line)

    def _outlook(self) -> str:
        """Return how many trials failed, and how long the others take."""
        slower = self._spent / self._foreseen
        work = sum(self._known.get(kind, slower * of) for kind, of in self._waiting.values())
        left = (time.monotonic() - self._started) * work / self._spent  # as many at a time
        parts = [f"{self._failed} failed"] if self._failed else []
        if left > 1:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

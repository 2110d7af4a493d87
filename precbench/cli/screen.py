"""What a command shows: text on standard output, the progress of a run on standard error."""

import math
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.segment import Segment

from precbench.text import duration, one_line, visible

if TYPE_CHECKING:
    from precbench.experiment import Trial
    from precbench.experiment.plan import Plan
    from precbench.runner.worker import Job
    from precbench.store import Record, Store

_SECONDS_PER_VALUE = 2e-9
_SECONDS_PER_ROW = 3e-8
_SECONDS_PER_TRIAL = 0.2  # to begin and to measure it
_ITERATIONS = 100  # of a solver that names no largest number of them and has no limit
_MOST_LINES = 200  # roughly, in a pipe; trials that are not ok always have a line


class Screen(Console):
    """A console without markup, on which control characters of others become visible.

    Parameters
    ----------
    stderr : bool, default=False
    **options
        Of `rich.console.Console`.
    """

    def __init__(self, *, stderr: bool = False, **options: Any):
        stream = sys.stderr if stderr else sys.stdout
        stream = getattr(stream, "rich_proxied_file", stream)
        super().__init__(file=stream, highlight=False, markup=False, **options)

    def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
        """Render text; what rich itself sends to the terminal stays."""
        for segment in super().render(*args, **kwargs):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def say(self, text: str, *, indent: str = "", style: str | None = None) -> None:
        """Print a line, broken at its spaces on a terminal; the indent is of the lines after it."""
        self.print(wrapped(text, self.width, indent) if self.is_terminal else text, style=style)


def screen(quiet: bool = False) -> Screen:
    """Return a console as wide as the terminal; without one, of $COLUMNS or 80 columns."""
    return Screen(quiet=quiet, soft_wrap=True)


@contextmanager
def measuring(n_trials: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Show how many trials are measured: a bar on a terminal, one line in a pipe.

    Yields
    ------
    callable
        Called with the number of trials measured since the last call.
    """
    what = "measuring the stored results"
    if console.quiet or not console.is_terminal:
        console.print(what)
        yield lambda n_more: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(TextColumn(what), *columns, console=console) as bars:
        task = bars.add_task(what, total=n_trials)
        yield lambda n_more: bars.advance(task, n_more)


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Break a text at its spaces; the indent is of all lines but the first."""
    return "\n".join(
        textwrap.wrap(
            text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    )


def expected_seconds(plan: "Plan", store: "Store", trials: "Iterable[Trial]") -> list[float]:
    """Estimate how long each trial takes: as long as those before, or by its size."""
    known: dict[tuple[str, str], list[float]] = {}
    for record in store.records():
        if record.status == "ok":
            known.setdefault((record.label, record.dataset), []).append(took(record))
    return [
        median(known.get((t.label, t.dataset.name)) or [_SECONDS_PER_TRIAL + _by_size(plan, t)])
        for t in trials
    ]


def took(record: "Record") -> float:
    """Return about how long a trial kept a worker."""
    return _SECONDS_PER_TRIAL + (record.seconds or 0.0) + (record.tuning_seconds or 0.0)


def _by_size(plan: "Plan", trial: "Trial") -> float:
    X = plan.datasets[trial.dataset.name].X
    n, d = X.shape
    per_row = getattr(X, "nnz", n * d) / n
    n_candidates = math.prod(map(len, trial.candidates.values()))
    tuned = n_candidates > 1
    fits = 1 + 0.8 * n_candidates * tuned
    if "epochs" in trial.params:  # candidates that share the reading of the rows
        passes = (1 + 0.4 * n_candidates * tuned) * _largest(trial, "epochs")
    elif trial.limit is not None and trial.limit.times_slowest is not None:
        slowest = max(_largest(other, "epochs", 1) for other, _ in plan.trials)
        passes = (1 + tuned) * trial.limit.times_slowest * slowest
    else:
        passes = fits * _largest(trial, "max_iter", _ITERATIONS)
    rows = n * (1 - trial.split.test_size)
    return rows * passes * (per_row * _SECONDS_PER_VALUE + _SECONDS_PER_ROW)


def _largest(trial: "Trial", name: str, default: float | None = None) -> float:
    """Return the value of a parameter; of a tuned one, the largest candidate."""
    return float(max(trial.candidates.get(name, [trial.params.get(name, default)])))


class Progress:
    """Shows how far the trials are and how long the others will take, on standard error.

    It has a bar on a terminal, plain lines in a pipe.

    Parameters
    ----------
    trials : mapping of str to Trial
        Those to run, by their keys.
    expected : sequence of float
        About how many seconds each of them will take.
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
        self._console = Screen(stderr=True)
        self._bars: Bars | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal and self._total and not self._quiet:
            self._bars = Bars(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                console=self._console,
            )
            self._overall = self._bars.add_task("all trials", total=self._total, note="")
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def finished(self, job: "Job", record: "Record") -> None:
        """Count a trial, and print its outcome in a pipe or if it is not ok."""
        status = record.status
        kind, expected = self._waiting.pop(job.key)
        self._known[kind] = took(record)
        self._spent += self._known[kind]
        self._foreseen += expected
        n_done = self._total - len(self._waiting)
        self._failed += status not in ("ok", "skipped")
        name = job.trial.title
        outcome = f"{record.seconds or 0:.3g} s" if status == "ok" else one_line(record.reason)
        is_told = status != "ok" or self._verbose
        if self._bars is not None:
            self._bars.update(self._overall, completed=n_done, note=self._outlook())
            if is_told:
                self._bars.console.print(f"{name}: {status}: {outcome}")
        elif is_told or not (self._quiet or n_done % (1 + self._total // _MOST_LINES)):
            place = ", ".join(filter(None, (f"{n_done}/{self._total}", self._outlook())))
            print(f"[{place}] {name}: {status}: {outcome}", file=sys.stderr, flush=True)

    def _outlook(self) -> str:
        """Return how many trials failed, and how long the others take."""
        slower = self._spent / self._foreseen
        work = sum(self._known.get(kind, slower * of) for kind, of in self._waiting.values())
        left = (time.monotonic() - self._started) * work / self._spent  # as many at a time
        parts = [f"{self._failed} failed"] if self._failed else []
        if left > 1:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

"""``precbench status``."""

import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from precbench.cli.options import Json
from precbench.cli.screen import screen
from precbench.cli.tables import print_table
from precbench.report.table import Cell, Table
from precbench.store import RETRIED, STATUSES, Asked, Store, stores
from precbench.text import duration

_DONE = {*STATUSES} - {*RETRIED}


@dataclass(frozen=True)
class Status:
    """How far an experiment is.

    Attributes
    ----------
    experiment : str
        Name of its folder.
    shards : list of str
        Such as ``3/10``, empty if it was not shared out.
    process : int or None
        The run that is at it.
    asked, done, left : int
        Trials of the last run: all, those that need no more work, and the others.
    outcomes : dict of str to int
        Those with a record, by status.
    running : list of dict
        Trials that workers run: ``trial`` and ``seconds``.
    seconds_left : float or None
        Estimate from the trials that this run has finished; None before the first, and when the
        clock was set back to before the run.
    """

    experiment: str
    shards: list[str]
    process: int | None
    asked: int
    done: int
    left: int
    outcomes: dict[str, int]
    running: list[dict[str, Any]]
    seconds_left: float | None


def show_status(
    results: Annotated[
        Path, typer.Argument(help="Folder of results, or of one experiment.")
    ] = Path("results"),
    as_json: Json = False,
) -> None:
    """Show which trials are done, running, failed or pending, also during a run.

    Counts the trials requested by the last run of each experiment. The remaining time is estimated
    from the trials that this run has finished.

    \b
    Examples:
      precbench status
      precbench status results/letter --json
    """
    found = [_status(store) for store in stores(results)]
    if as_json:
        print(json.dumps([asdict(of) for of in found], indent=1))
        return
    console = screen()
    print_table(_table(results, found), console)
    for of in found:
        if of.process is not None:
            left = "" if of.seconds_left is None else f", about {duration(of.seconds_left)} left"
            console.print(f"{of.experiment} is running (process {of.process}){left}")
        for running in of.running:
            console.print(f"running: {running['trial']}, for {duration(running['seconds'])}")


def _status(store: Store) -> Status:
    asked = store.asked()
    statuses = {
        key: str(record.status) for key in asked.keys if (record := store.read(key)) is not None
    }
    process = store.holder()
    done = sum(status in _DONE for status in statuses.values())
    total = len(asked.keys)
    return Status(
        experiment=store.folder.resolve().name,
        shards=asked.shards,
        process=process,
        asked=total,
        done=done,
        left=total - done,
        outcomes=dict(Counter(statuses.values())),
        running=_running(store) if process is not None else [],
        seconds_left=_seconds_left(store, asked, total - done) if process is not None else None,
    )


def _running(store: Store) -> list[dict[str, Any]]:
    running = []
    for mark in sorted(store.running.glob("[0-9a-f]*")):
        with suppress(OSError):  # it has just ended
            seconds = max(0.0, time.time() - mark.stat().st_mtime)
            running.append({"trial": mark.read_text(), "seconds": seconds})
    return running


def _seconds_left(store: Store, asked: Asked, left: int) -> float | None:
    finished = sum(moment >= asked.started for moment in store.moments(asked.keys))
    elapsed = time.time() - asked.started
    return elapsed / finished * left if finished and elapsed > 0 else None  # else a clock was set


def _table(results: Path, found: list[Status]) -> Table:
    rows = []
    for of in found:
        shard = of.shards[0] if len(of.shards) == 1 else ""
        wrong = {name: n for name, n in of.outcomes.items() if name != "ok"}
        texts = [f"{of.done:,} of {of.asked:,}", f"{of.left:,}" if of.left else ""]
        texts.append(", ".join(f"{n} {name}" for name, n in wrong.items()))
        rows.append([Cell(f"{of.experiment} {shard}".rstrip()), *map(Cell, texts)])
    return Table(str(results), ["experiment", "done", "pending", "not ok"], rows)

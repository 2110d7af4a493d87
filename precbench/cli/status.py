"""``precbench status``."""

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from precbench.cli.screen import screen
from precbench.cli.tables import OnScreen
from precbench.errors import InputError
from precbench.report.tables import Cell, Table
from precbench.store import Store
from precbench.strict_json import Count, Fields, Number, Text, checked, load
from precbench.text import duration

_DONE = ("ok", "skipped", "diverged")


class _Mark(Fields):
    label: Text
    dataset: Text
    split: Count
    rows_seen: Count = 0
    total: Count | None = None
    seconds: Number = 0.0
    tuning: bool = False


class _Asked(Fields):
    """What the last run of an experiment was asked for."""

    keys: list[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]
    started: Number = 0.0


@dataclass(frozen=True)
class Status:
    """How far an experiment is.

    Attributes
    ----------
    experiment : str
        Name of its folder.
    process : int or None
        The run that is at it.
    asked, done, left : int
        Trials of the last run: all, those that need no more work, and the others.
    outcomes : dict of str to int
        Those with a record, by status.
    running : list of dict
        What workers are at: ``trial``, ``share`` of its rows (None if unknown), ``seconds``, and
        whether it is ``tuning``.
    seconds_left : float or None
        Estimate from the trials that this run has finished; None before the first.
    """

    experiment: str
    process: int | None
    asked: int
    done: int
    left: int
    outcomes: dict[str, int]
    running: list[dict[str, Any]]
    seconds_left: float | None


def show_status(results: Path, as_json: bool) -> None:
    """Say what is done, running, failed and left."""
    if not results.is_dir():
        raise InputError(f"there is no folder {results}: name one of results")
    folders = [path.parent for path in sorted(results.glob("*/trials"))]
    folders = [results] if (results / "trials").is_dir() else folders
    if not folders:
        raise InputError(f"{results} holds no results of trials: precbench run CONFIG makes some")
    found = [_status(Store(folder)) for folder in folders]
    if as_json:
        print(json.dumps([asdict(of) for of in found], indent=1))
        return
    console = screen()
    console.print(OnScreen(_table(results, found)))
    for of in found:
        if of.process is not None:
            left = "" if of.seconds_left is None else f", some {duration(of.seconds_left)} left"
            console.say(f"{of.experiment} is running (process {of.process}){left}")
        for running in of.running:
            share = "" if running["share"] is None else f", {running['share']:.0%} of its rows"
            state = "tuning" if running["tuning"] else f"{running['seconds']:.1f} s{share}"
            console.say(f"running: {running['trial']}: {state}")


def _status(store: Store) -> Status:
    asked = _asked(store)
    statuses = {
        key: str(record["status"])
        for key in (asked.keys if asked else store.keys())
        if (record := store.read(key)) is not None
    }
    process = store.holder()
    done = sum(status in _DONE for status in statuses.values())
    total = len(asked.keys) if asked else len(statuses)
    return Status(
        experiment=store.folder.name,
        process=process,
        asked=total,
        done=done,
        left=total - done,
        outcomes=dict(Counter(statuses.values())),
        running=_running(store) if process is not None else [],
        seconds_left=_seconds_left(store, asked, total - done) if process is not None else None,
    )


def _asked(store: Store) -> _Asked | None:
    """Return what the last run was asked for, None if an earlier version ran it."""
    try:
        return checked(load((store.folder / "asked.json").read_bytes()), _Asked)
    except (FileNotFoundError, ValueError):
        return None


def _running(store: Store) -> list[dict[str, Any]]:
    found = []
    for path in sorted(store.running.glob("*.json")):
        try:
            mark = checked(load(path.read_bytes()), _Mark)
        except (OSError, ValueError):  # while it is being written, or has just ended
            continue
        share = min(1.0, mark.rows_seen / mark.total) if mark.total else None
        trial = f"{mark.dataset}/{mark.label}/{mark.split}"
        state = {"share": share, "seconds": mark.seconds, "tuning": mark.tuning}
        found.append({"trial": trial, **state})
    return found


def _seconds_left(store: Store, asked: _Asked | None, left: int) -> float | None:
    if asked is None:
        return None
    finished = sum(moment >= asked.started for moment in store.moments(asked.keys))
    elapsed = time.time() - asked.started
    return elapsed / finished * left if finished else None


def _table(results: Path, found: list[Status]) -> Table:
    rows = []
    for of in found:
        wrong = {name: n for name, n in of.outcomes.items() if name != "ok"}
        texts = [f"{of.done:,} of {of.asked:,}", f"{of.left:,}" if of.left else ""]
        texts.append(", ".join(f"{n} {name}" for name, n in wrong.items()))
        rows.append([Cell(of.experiment), *map(Cell, texts)])
    return Table(str(results), ["experiment", "done", "left", "not ok"], rows)

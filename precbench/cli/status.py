"""``precbench status``."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from precbench.cli.options import RESULTS, Json
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.text import duration
from precbench.report.table import Table, text_table
from precbench.results.folders import find_stores
from precbench.results.records import RETRIED, STATUSES, Request
from precbench.results.store import Store

_DONE = {*STATUSES} - {*RETRIED}  # statuses of trials that a resumed run leaves alone


def show_status(
    results: Annotated[Path, typer.Argument(help=RESULTS)] = Path("results"),
    as_json: Json = False,
) -> None:
    """Show which trials are done, running, failed or pending, also during a run.

    Counts the trials requested by the last run of each experiment. The remaining time
    is estimated from the trials that this run has finished.

    \b
    Examples:
      precbench status
      precbench status results/letter --json
    """
    states = [_status(store) for store in find_stores(results)]
    if as_json:
        print(json.dumps(states, indent=1))
        return
    console = screen()
    print_table(_table(results, states), console)
    for state in states:
        if state["process"] is not None:
            seconds = state["seconds_left"]
            left = "" if seconds is None else f", about {duration(seconds)} left"
            console.print(
                f"{state['experiment']} is running (process {state['process']}){left}"
            )
        for running in state["running"]:
            console.print(
                f"running: {running['trial']}, for {duration(running['seconds'])}"
            )


def _status(store: Store) -> dict[str, Any]:
    """Return the state of an experiment: its trials by outcome, and what runs now.

    ``process`` is the id of the process that runs trials, or None; ``asked``, ``done``
    and ``left`` count the trials of the last run, ``outcomes`` the records by status.
    ``seconds_left`` is estimated from the trials that this run has finished, or None.
    """
    request = store.request()
    outcomes: Counter[str] = Counter()
    for key in request.keys:
        record = store.read(key)
        if record is not None:
            outcomes[str(record.status)] += 1
    n_done = sum(outcomes[status] for status in _DONE)
    n_pending = len(request.keys) - n_done
    running: list[dict[str, Any]] = []
    seconds_left = None
    process = store.running_process()
    if process is not None:
        running = list(_running(store))
        seconds_left = _seconds_left(store, request, n_pending)
    return {
        "experiment": store.folder.resolve().name,
        "shards": request.shards,
        "process": process,
        "asked": len(request.keys),
        "done": n_done,
        "left": n_pending,
        "outcomes": dict(outcomes),
        "running": running,
        "seconds_left": seconds_left,
    }


def _running(store: Store) -> Iterator[dict[str, Any]]:
    """Yield the title and the seconds so far of each trial that runs now."""
    # Each running trial has a file, named by its key, which holds the title.
    for mark in sorted(store.running.glob("[0-9a-f]*")):
        with suppress(OSError):  # the trial has just ended
            seconds = max(0.0, time.time() - mark.stat().st_mtime)
            yield {"trial": mark.read_text("utf-8", "replace"), "seconds": seconds}


def _seconds_left(store: Store, request: Request, n_pending: int) -> float | None:
    """Estimate the seconds of pending trials at the pace so far; None without one."""
    write_times = store.write_times(request.keys)
    n_finished = sum(moment >= request.started for moment in write_times)
    elapsed = time.time() - request.started  # negative if the clock was set back
    if n_finished == 0 or elapsed <= 0:
        return None
    return elapsed / n_finished * n_pending


def _table(results: Path, states: list[dict[str, Any]]) -> Table:
    """Lay out a row for each experiment, which names the shard if one was run."""
    rows = []
    for state in states:
        name = state["experiment"]
        if len(state["shards"]) == 1:
            name = f"{name} {state['shards'][0]}"
        not_ok = [
            f"{n} {status}" for status, n in state["outcomes"].items() if status != "ok"
        ]
        rows.append(
            [
                name,
                f"{state['done']:,} of {state['asked']:,}",
                f"{state['left']:,}" if state["left"] else "",
                ", ".join(not_ok),
            ]
        )
    return text_table(str(results), ["experiment", "done", "pending", "not ok"], rows)

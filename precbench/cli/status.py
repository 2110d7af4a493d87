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
    records = (store.read(key) for key in request.keys)
    outcomes = Counter(str(record.status) for record in records if record is not None)
    process = store.running_process()
    pending = len(request.keys) - sum(
        n for status, n in outcomes.items() if status in _DONE
    )
    return {
        "experiment": store.folder.resolve().name,
        "shards": request.shards,
        "process": process,
        "asked": len(request.keys),
        "done": len(request.keys) - pending,
        "left": pending,
        "outcomes": dict(outcomes),
        "running": [] if process is None else [*_running(store)],
        "seconds_left": (
            None if process is None else _seconds_left(store, request, pending)
        ),
    }


def _running(store: Store) -> Iterator[dict[str, Any]]:
    """Yield the title and the seconds so far of each trial that runs now."""
    # a file per running trial, named by key
    for mark in sorted(store.running.glob("[0-9a-f]*")):
        with suppress(OSError):  # the trial has just ended
            seconds = max(0.0, time.time() - mark.stat().st_mtime)
            yield {"trial": mark.read_text("utf-8", "replace"), "seconds": seconds}


def _seconds_left(store: Store, request: Request, pending: int) -> float | None:
    # The pace of the run so far is assumed for the pending trials; None without a pace.
    n_finished = sum(
        moment >= request.started for moment in store.write_times(request.keys)
    )
    elapsed = time.time() - request.started  # negative if the clock was set back
    return elapsed / n_finished * pending if n_finished and elapsed > 0 else None


def _table(results: Path, states: list[dict[str, Any]]) -> Table:
    """Lay out a row for each experiment.

    If a single shard was run, the row names the shard.
    """
    rows = []
    for state in states:
        failed = [
            f"{n} {status}" for status, n in state["outcomes"].items() if status != "ok"
        ]
        pending = f"{state['left']:,}" if state["left"] else ""
        done = f"{state['done']:,} of {state['asked']:,}"
        # of several, none is named
        shards = state["shards"] if len(state["shards"]) == 1 else []
        rows.append(
            [" ".join([state["experiment"], *shards]), done, pending, ", ".join(failed)]
        )
    return text_table(str(results), ["experiment", "done", "pending", "not ok"], rows)

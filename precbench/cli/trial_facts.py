"""Description of a trial, given by its key or its place in a table."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precbench.cli.options import print_facts
from precbench.core.errors import InputError
from precbench.experiment.trial import algorithm_version
from precbench.report.repeat import machine_facts, repeat_command
from precbench.results.folders import find_result_folders
from precbench.results.read import Run, read_run
from precbench.results.records import Record
from precbench.results.store import Store
from precbench.solvers import SOLVERS

_KEY = re.compile(r"[0-9a-f]{4,64}")
_PLACE = re.compile(r"(?P<dataset>[^/]+)/(?P<label>.+)/(?P<split>\d{1,9})")
_MOST_LISTED = 8


def show_trial(what: str, results: Path, as_json: bool) -> None:
    """Print a trial's record, metrics, machine, and the command to repeat it."""
    store, trial = find_trial(what, results)
    metrics: list[dict[str, Any]] = []
    config = None
    if (store.folder / "results.csv").exists():
        run = read_run(store.folder)
        metrics = _metrics(run, trial)
        config = run.config
    machine = store.machines().get(trial.environment)
    facts = {
        **trial.to_dict(),
        "record": str(store.folder / "trials" / f"{trial.key}.json"),
        "metrics": metrics,
        "machine": machine_facts(machine) if machine else {},
        "changed_versions": _changed(trial),
        "command": _command(store, trial, config),
    }
    print_facts(facts, as_json=as_json)


def find_trial(what: str, results: Path) -> tuple[Store, Record]:
    """Return the store and record that a key or DATASET/SOLVER/SPLIT names."""
    matches = list(_matching(what, results))
    if not matches:
        raise InputError(
            f"{results} holds no trial {what}; give a key (the column key of"
            " results.csv), DATASET/SOLVER/SPLIT, or another folder (--results)"
        )
    if len(matches) > 1:
        listed = [
            f"{store.folder}: {record.key[:12]}"
            for store, record in matches[:_MOST_LISTED]
        ]
        raise InputError(
            f"{len(matches)} trials match {what} ({', '.join(listed)}); give a longer"
            " key, or the folder of one experiment (--results)"
        )
    [match] = matches
    return match


def _matching(what: str, results: Path) -> Iterator[tuple[Store, Record]]:
    """Yield store and record of each trial whose key begins so, or that has the place.

    A place is DATASET/SOLVER/SPLIT.
    """
    for folder in find_result_folders(results, "trials"):
        store = Store(folder)
        if "/" in what:
            records = _records_at(what, store)
        else:
            records = _records_of_key(what, store)
        for record in records:
            yield store, record


def _records_at(place: str, store: Store) -> Iterator[Record]:
    """Yield the records at DATASET/SOLVER/SPLIT; none if `place` is not of this form.

    They are several in a sweep.
    """
    match = _PLACE.fullmatch(place)
    if match is None:
        return
    for record in store.records():
        if (
            record.dataset == match["dataset"]
            and record.label == match["label"]
            and str(record.split) == match["split"]
        ):
            yield record


def _records_of_key(beginning: str, store: Store) -> Iterator[Record]:
    """Yield the records whose key begins so; none if `beginning` is of no key."""
    if not _KEY.fullmatch(beginning):
        return
    all_keys = store.keys()
    for key in all_keys:
        if key.startswith(beginning):
            record = store.read(key)
            if record is not None:  # it may be removed meanwhile
                yield record


def _metrics(run: Run, trial: Record) -> list[dict[str, Any]]:
    """Return the final values of a trial, as in results.csv."""
    rows = run.results
    place = {
        "dataset": trial.dataset,
        "solver": trial.label,
        "split": trial.split,
        "sweep": trial.sweep_point,
    }
    for column, value in place.items():
        rows = rows[rows[column] == value]
    # Results of earlier versions have no keys: such rows are matched by place alone.
    is_trial = rows["key"].isin(["", trial.key])
    finals = rows[is_trial & rows["final"] & rows["value"].notna()]
    columns = ["metric", "part", "value"]
    metrics: list[dict[Any, Any]] = finals[columns].to_dict("records")
    return metrics


def _changed(trial: Record) -> list[str]:
    """Return the parts whose algorithm version has changed since the trial."""
    recorded = trial.description.get("algorithm_version", {})
    if not recorded:
        return []
    if trial.solver not in SOLVERS:  # such as one of a package that is not installed
        return []
    is_tuned = trial.description.get("tuning") is not None
    current = algorithm_version(trial.solver, is_tuned)
    all_parts = recorded | current
    return [part for part in all_parts if recorded.get(part) != current.get(part)]


def _command(store: Store, trial: Record, config: str | None) -> str:
    """Return the command that repeats a trial in its folder.

    Return "" if the trial was started from Python, without a config.
    """
    command = repeat_command(
        trial.experiment,
        trial.label,
        trial.dataset,
        split=trial.split,
        config=config,
        smoke=store.folder.name.endswith("-smoke"),
    )
    if command is None:
        return ""
    return f"{command} --out {shlex.quote(str(store.folder.parent))}"

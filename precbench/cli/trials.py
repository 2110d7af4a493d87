"""Description of a trial, given by its key or its place in a table."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precbench.errors import InputError
from precbench.experiment.trial import algorithm_version
from precbench.report.repeat import repeat_command
from precbench.results import Run, read_run
from precbench.solvers import SOLVERS
from precbench.store import Record, Store, find_result_folders
from precbench.text import one_line

_KEY = re.compile(r"[0-9a-f]{4,64}")
_PLACE = re.compile(r"([^/]+)/(.+)/(\d{1,9})")  # data set, label and split
_MOST_LISTED = 8
_STOPPED = {
    "limit": "training stopped by its limit",
    "tuning limit": "tuning stopped by its limit",
}


def show_trial(what: str, results: Path, as_json: bool) -> None:
    store, trial = find_trial(what, results)
    run = read_run(store.folder) if (store.folder / "results.csv").exists() else None
    metrics = [] if run is None else _metrics(run, trial)
    machine = _machine(store, trial.environment)
    changed = _changed(trial)
    command = _command(store, trial, None if run is None else run.config)
    if as_json:
        more = {"metrics": metrics, "machine": machine, "changed_versions": changed}
        print(json.dumps({**trial.to_dict(), **more, "command": command}, indent=1))
        return
    sweep = f" at {trial.sweep_point}" if trial.sweep_point else ""
    print(one_line(f"{trial.dataset}/{trial.label}/{trial.split}{sweep}: {_outcome(trial)}"))
    state = "the versions are current: the trial is kept"
    if changed:
        state = f"{' and '.join(changed)} has another version now: the trial would run again"
    description = trial.description
    sections = {
        "metrics": ", ".join(f"{m['metric']} {m['value']:.4f}" for m in metrics),
        "data": f"{trial.title or trial.dataset}, "
        f"sha256 {description.get('data_sha256', 'unknown')}",
        "split": _assigned({**description.get("split", {}), "training rows": trial.n_train}),
        "preparation": _assigned(description.get("preprocessing", {})),
        "parameters": _assigned({**description.get("params", {}), "seed": trial.seed}),
        "chosen": _chosen(trial),
        "time": _time(trial),
        "before": f"{trial.before}; it was run again" if trial.before else "",
        "warnings": "; ".join(trial.warnings),
        "machine": _assigned(machine),
        "code": "; ".join(filter(None, [trial.code, state])),
        "record": str(store.folder / "trials" / f"{trial.key}.json"),
        "repeat": command,
    }
    for name, text in sections.items():
        if text:
            print(f"  {name}: {one_line(text)}")


def find_trial(what: str, results: Path) -> tuple[Store, Record]:
    """Return the one record that a key, the start of one, or DATASET/SOLVER/SPLIT names."""
    matches = list(_matching(what, results))
    if not matches:
        raise InputError(
            f"{results} holds no trial {what}: give a key (the column key of results.csv), "
            "DATASET/SOLVER/SPLIT, or another folder (--results)"
        )
    if len(matches) > 1:
        listed = [f"{store.folder}: {record.key[:12]}" for store, record in matches[:_MOST_LISTED]]
        raise InputError(
            f"{len(matches)} trials match {what} ({', '.join(listed)}): give a longer key, or the "
            "folder of one experiment (--results)"
        )
    return matches[0]


def _matching(what: str, results: Path) -> Iterator[tuple[Store, Record]]:
    place = _PLACE.fullmatch(what)
    for store in map(Store, find_result_folders(results, "trials")):
        keys = store.keys()
        if _KEY.fullmatch(what):
            keys = [key for key in keys if key.startswith(what)]
        elif place is None:
            keys = []
        for key in keys:
            record = store.read(key)
            if record is not None and (
                place is None or place.groups() == (record.dataset, record.label, str(record.split))
            ):
                yield store, record


def _metrics(run: Run, trial: Record) -> list[dict[str, Any]]:
    rows = run.results
    place: dict[str, Any] = {"dataset": trial.dataset, "solver": trial.label}
    place |= {"split": trial.split, "sweep": trial.sweep_point}
    for column, value in place.items():
        rows = rows[rows[column] == value]
    rows = rows[rows["final"] & rows["value"].notna() & rows["key"].isin(["", trial.key])]
    records: list[dict[Any, Any]] = rows[["metric", "part", "value"]].to_dict("records")
    return records


def _machine(store: Store, name: str) -> dict[str, Any]:
    if (machine := store.machines().get(name)) is None:
        return {}
    values = machine.model_dump(exclude={"packages", "blas"}) | machine.packages
    return {name: value for name, value in values.items() if value is not None}


def _changed(trial: Record) -> list[str]:
    """Return the parts whose algorithm version has changed since the trial ran."""
    then = trial.description.get("algorithm_version", {})
    if trial.solver not in SOLVERS or not then:
        return []
    now = algorithm_version(trial.solver, trial.description.get("tuning") is not None)
    return [part for part in {**then, **now} if then.get(part) != now.get(part)]


def _command(store: Store, trial: Record, config: str | None) -> str:
    is_smoke = store.folder.name.endswith("-smoke")
    command = repeat_command(
        trial.experiment, trial.label, trial.dataset, config=config, smoke=is_smoke
    )
    if command is None:
        return ""
    return f"{trial.split}".join(command) + f" --out {shlex.quote(str(store.folder.parent))}"


def _outcome(trial: Record) -> str:
    outcome = f"{trial.status}: {trial.reason}" if trial.reason else str(trial.status)
    if trial.stopped:
        outcome += f", {_STOPPED.get(trial.stopped, f'stopped: {trial.stopped}')}"
    return outcome


def _time(trial: Record) -> str:
    if trial.seconds is None:
        return ""
    how = {"sequential": ", alone", "parallel": ", beside other trials"}.get(trial.timing, "")
    tuned = f", {trial.tuning_seconds:.3g} s to choose" if trial.tuning_seconds else ""
    return f"{trial.seconds:.3g} s to train{tuned}{how}"


def _chosen(trial: Record) -> str:
    among = (trial.description.get("tuning") or {}).get("candidates", {})
    return "; ".join(
        f"{name}={value} of {', '.join(map(str, among[name]))}"
        if name in among
        else f"{name}={value}"
        for name, value in trial.chosen.items()
    )


def _assigned(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)

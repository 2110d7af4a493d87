"""The trials behind the cells of the tables, and the machines on which they ran."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from precbench.report.table import Table, text_table
from precbench.report.tables import final_values, three_digits
from precbench.results import Run
from precbench.store import Record, Store

__all__ = ["Trial", "machines", "trials_of"]


@dataclass(frozen=True)
class Trial:
    """A trial, as the page shows it."""

    dataset: str
    solver: str
    split: int
    seed: int
    sweep: str
    place: int  # of its point in the sweep
    status: str
    reason: str
    stopped: str
    timing: str
    machine: str
    chosen: str
    values: tuple[float, ...]  # in the order of the metrics
    seconds: float
    seconds_to_99: float
    key: str
    environment: str

    def number(self, quantity: str) -> float | None:
        """Return a value to six digits, None if there is none."""
        if quantity.startswith("m"):
            value = self.values[int(quantity[1:])]
        else:
            value = getattr(self, quantity, np.nan)
        return float(f"{value:.6g}") if np.isfinite(value) else None

    @property
    def texts(self) -> list[str]:
        """The values as they are shown."""
        return ["–" if np.isnan(value) else f"{value:.6g}" for value in self.values]

    @property
    def time(self) -> str:
        """The seconds to the final weights."""
        return "–" if np.isnan(self.seconds) else three_digits(self.seconds)

    @property
    def outcome(self) -> str:
        """The status, with the reason if it is not ok."""
        if self.status != "ok":
            return f"{self.status}: {self.reason}" if self.reason else self.status
        return f"ok, stopped by a {self.stopped}" if self.stopped else "ok"


_TEXTS = (
    *("dataset", "solver", "sweep", "status", "reason", "stopped"),
    *("timing", "machine", "chosen"),
)


def trials_of(run: Run) -> list[Trial]:
    """Return the trials of a run, in the order of its tables.

    Parameters
    ----------
    run : Run

    Returns
    -------
    list of Trial
        Without the key of a record where it is not known.
    """
    by_key, by_place = _records(run.folder)
    keys = _keys(run)
    places = {sweep: i for i, sweep in enumerate(run.sweep_points)}
    numbers = {
        (sweep, run.metric_at(metric, sweep)): i
        for sweep in places
        for i, metric in enumerate(run.metrics)
    }
    by_trial: dict[tuple[Any, ...], dict[str, Any]] = {}
    finals: list[dict[Any, Any]] = final_values(run.results, run.losses).to_dict("records")
    for row in finals:
        number = numbers.get((row["sweep"], row["metric"]))
        if number is None:
            continue
        at = tuple(row[name] for name in ("dataset", "solver", "sweep", "split", "seed"))
        trial = by_trial.setdefault(at, row | {"values": [np.nan] * len(run.metrics)})
        trial["values"][number] = row["value"]
    trials = []
    for fields in by_trial.values():
        place = (fields["dataset"], fields["solver"], int(fields["split"]), fields["sweep"])
        key = keys.get(place, "") or by_place.get(place, "")
        record = by_key.get(key)
        trials.append(
            Trial(
                **{name: fields[name] for name in _TEXTS},
                split=int(fields["split"]),
                seed=int(fields["seed"]),
                place=places[fields["sweep"]],
                values=tuple(fields["values"]),
                seconds=fields["seconds"],
                seconds_to_99=fields["seconds_to_99"],
                key=key,
                environment=record.environment if record else "",
            )
        )
    order = {solver: i for i, solver in enumerate(run.solvers)}
    trials = [t for t in trials if t.solver in order and t.dataset in run.datasets]
    return sorted(trials, key=lambda t: (order[t.solver], t.place, t.split))


def _keys(run: Run) -> dict[tuple[Any, ...], str]:
    """Return the keys of the records that the results name."""
    rows = run.results.drop_duplicates(["dataset", "solver", "split", "sweep"])
    places = zip(rows["dataset"], rows["solver"], rows["split"], rows["sweep"], strict=True)
    return {
        (dataset, solver, int(split), sweep): key
        for (dataset, solver, split, sweep), key in zip(places, rows["key"], strict=True)
    }


def _records(folder: Path) -> tuple[dict[str, Record], dict[tuple[Any, ...], str]]:
    """Return the records of a folder by key, and the keys by place where only one record has it."""
    by_key: dict[str, Record] = {}
    places: dict[tuple[Any, ...], list[str]] = {}
    for record in Store(folder).records():
        by_key[record.key] = record
        place = (record.dataset, record.label, record.split, record.sweep_point)
        places.setdefault(place, []).append(record.key)
    return by_key, {place: keys[0] for place, keys in places.items() if len(keys) == 1}


def machines(folder: Path, trials: list[Trial]) -> Table:
    """Lay out the machines on which trials ran.

    Parameters
    ----------
    folder : pathlib.Path
    trials : list of Trial

    Returns
    -------
    Table
    """
    known = Store(folder).machines()
    counts = Counter(trial.environment for trial in trials if trial.environment in known)
    rows = []
    for name, n in sorted(counts.items()):
        machine = known[name]
        memory = "" if machine.memory_gib is None else f"{machine.memory_gib:g} GiB"
        cores = "" if machine.cores is None else f"{machine.cores}"
        packages = ", ".join(
            f"{package} {version}" for package, version in machine.packages.items()
        )
        commit = (machine.commit or "")[:12] + (", changed" if machine.dirty else "")
        rows.append(
            [name, str(n), machine.cpu, cores, memory, f"{machine.os}, {machine.machine}",
             ", ".join(filter(None, [machine.python, packages])), commit]
        )  # fmt: skip
    header = ["machine", "trials", "processor", "cores", "memory", "system", "software", "commit"]
    return text_table("Machines", header, rows)

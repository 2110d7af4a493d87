"""The trials behind the cells of tables, and their machines."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precbench.report.table import Table, text_table
from precbench.report.tables import final_values, three_digits
from precbench.results import Run
from precbench.store import Store


class Trial(NamedTuple):
    dataset: str
    solver: str
    split: int
    seed: int
    sweep: str
    status: str
    reason: str
    stopped: str
    chosen: str
    values: dict[str, float]  # by label of the metric
    seconds: float
    key: str
    environment: str

    def text(self, label: str) -> str:
        return "–" if np.isnan(self.values[label]) else f"{self.values[label]:.6g}"

    @property
    def time(self) -> str:
        return "–" if np.isnan(self.seconds) else three_digits(self.seconds)

    @property
    def outcome(self) -> str:
        if self.status != "ok":
            return f"{self.status}: {self.reason}" if self.reason else self.status
        return f"ok, stopped by a {self.stopped}" if self.stopped else "ok"


def trials_of(run: Run) -> list[Trial]:
    environments = {record.key: record.environment for record in Store(run.folder).records()}
    trials: dict[tuple[Any, ...], Trial] = {}
    finals: list[dict[Any, Any]] = final_values(run.results, run.losses).to_dict("records")
    for row in finals:
        at = tuple(row[name] for name in ("dataset", "solver", "sweep", "split", "seed"))
        if at not in trials:
            row |= {"split": int(row["split"]), "seed": int(row["seed"])}
            row |= {"values": defaultdict(lambda: np.nan)}
            row |= {"environment": environments.get(row["key"], "")}
            trials[at] = Trial(**{name: row[name] for name in Trial._fields})
        trials[at].values[row["metric"]] = row["value"]
    points = run.sweep_points
    return sorted(
        trials.values(),
        key=lambda trial: (
            run.datasets.index(trial.dataset),
            run.solvers.index(trial.solver),
            points.index(trial.sweep),
            trial.split,
        ),
    )


def machines(folder: Path, trials: list[Trial]) -> Table:
    known = Store(folder).machines()
    counts = Counter(trial.environment for trial in trials if trial.environment in known)
    rows = []
    for name, n in sorted(counts.items()):
        machine = known[name]
        cores = "" if machine.cores is None else f"{machine.cores}"
        packages = ", ".join(
            f"{package} {version}" for package, version in machine.packages.items()
        )
        commit = (machine.commit or "")[:12] + (", changed" if machine.dirty else "")
        rows.append(
            [
                *(name, str(n), machine.cpu, cores, f"{machine.memory_gib:g} GiB"),
                f"{machine.os}, {machine.machine}",
                ", ".join(filter(None, [machine.python, packages])),
                commit,
            ]
        )
    header = ["machine", "trials", "processor", "cores", "memory", "system", "software", "commit"]
    return text_table("Machines", header, rows)

"""The rare panel: tasks with a natural rare class, or positives thinned at random.

The rules are those of docs/survey-rules.md; results/reference/rare-tasks.csv lists the
tasks, with the share of positives to which a source is thinned.
"""

import itertools
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precbench.core.locations import shipped
from precbench.core.yaml.document import load
from precbench.data import load_dataset
from precbench.survey.ranking import AP, Survey, standings
from precbench.survey.tasks import N_SPLITS, read_task, write_configs

TASKS = shipped("results/reference") / "rare-tasks.csv"
REFERENCE = TASKS.with_name("rare.csv.gz")
FOLDED = TASKS.with_name("rare-folds.csv.gz")
DRAWS = 3  # thinnings of a source, in the place of divisions
# On tasks of at most 40,000 rows the four best rivals of the ensemble choose by five
# folds, as it does.
FOLDS = 5
MOST_ROWS = 40_000
RIVALS = 4


def read_tasks(folds: bool = False) -> list[Any]:
    """Return the tasks, or those with folds, by kind and share of test rows."""
    tasks = pd.read_csv(TASKS, keep_default_na=False)
    if folds:
        tasks = tasks[tasks["rows"] <= MOST_ROWS]
    tasks = tasks.sort_values(["kind", "test_share", "rows"], kind="stable")
    return list(tasks.itertuples())


def whole(task: Any) -> pd.DataFrame:
    """Return all rows of the source of a task, with 1 or 0 in the column ``label``."""
    if task.package:
        return read_task(task)
    dataset = load_dataset(task.source)
    X = dataset.X if isinstance(dataset.X, np.ndarray) else dataset.X.toarray()
    rows = pd.DataFrame(X).rename(columns=lambda j: f"x{j + 1}")
    return rows.assign(label=(dataset.y > 0).astype(int))


def thinned(rows: pd.DataFrame, task: Any, draw: int) -> pd.DataFrame:
    """Keep as many positives as the task has, drawn at random, and all negatives."""
    rng = np.random.default_rng([draw, zlib.crc32(task.source.encode())])
    positives = rng.permutation(np.flatnonzero(rows["label"]))
    return rows.drop(index=rows.index[positives[task.positives :]])


def runs(folds: bool = False) -> list[str]:
    """Return the names of the experiments."""
    groups = dict.fromkeys(_group(task) for task in read_tasks(folds))
    return [f"{_prefix(folds)}-{group}-long" for group in groups]


def _prefix(folds: bool) -> str:
    return "rare-folds" if folds else "rare"


def _group(task: Any) -> str:
    """Return the name of the tasks that share a config, by kind and share of tests."""
    return f"{task.kind}-{100 * task.test_share:.0f}"


def rivals() -> list[str]:
    """Return the contestants of the best mean rank beside the ensemble."""
    ranked = standings(Survey(pd.read_csv(REFERENCE), TASKS).values(AP)).index
    return [name for name in ranked if name != "ensemble"][:RIVALS]


def joined(table: pd.DataFrame) -> pd.DataFrame:
    """Take the thinnings of a source, ``TASK-0`` and on, as splits of one task."""
    thinning = table["task"].str.extract(r"^(?P<task>.*-1in\d+)-(?P<draw>\d)$")
    task = thinning["task"].fillna(table["task"])
    split = thinning["draw"].astype(float).fillna(table["split"]).astype(int)
    return table.assign(task=task, split=split)


def in_bench(survey: Survey) -> list[bool]:
    """Return whether the bench of advice has the source of each task of the panel."""
    names = list(pd.read_csv(TASKS.with_name("advice-tasks.csv"))["task"])
    are_in_bench = []
    for source in survey.tasks["source"]:
        are_in_bench.append(any(name.startswith(source) for name in names))
    return are_in_bench


def write(folder: Path, tasks: Iterable[Any], folds: bool = False) -> list[Path]:
    """Write the files of tasks, one a thinning, and the configs with them as data."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = _changed_by_folds() if folds else {}
    paths: list[Path] = []
    for group, members in itertools.groupby(tasks, _group):
        alike = list(members)
        is_thinned = alike[0].kind == "thinned"
        protocol = {
            "split": "random",
            "test_size": alike[0].test_share,
            "stratified": True,
            "n_splits": 1 if is_thinned else N_SPLITS,
        }
        paths += write_configs(
            folder,
            _write_thinnings(alike, folder) if is_thinned else alike,
            name=f"{_prefix(folds)}-{group}",
            protocol=protocol,
            **changed,
        )
    return paths


def _changed_by_folds() -> dict[str, Any]:
    """Return the keys of a config in which rivals choose by folds."""
    template = load(shipped("configs") / "top" / "survey.yaml").data
    return {
        "tuning": {"by": AP, "draw": template["tuning"]["draw"], "folds": FOLDS},
        "solvers": {name: template["solvers"][name] for name in rivals()},
        "common": {},  # parameters of solvers that are not among the rivals
    }


def _write_thinnings(tasks: Iterable[Any], folder: Path) -> list[Any]:
    """Write the files of the thinnings of tasks, and return them as tasks."""
    thinnings = []
    for task in tasks:
        rows = whole(task)
        for draw in range(DRAWS):
            name = f"{task.task}-{draw}"
            thinned(rows, task, draw).to_csv(folder / f"{name}.csv", index=False)
            thinnings.append(task._replace(task=name, package="thinned"))
    return thinnings

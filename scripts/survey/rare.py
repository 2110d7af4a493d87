"""The tasks of the rare panel.

Natural rare classes, and positives that are thinned at random.

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
REFERENCE, FOLDED = TASKS.with_name("rare.csv.gz"), TASKS.with_name("rare-folds.csv.gz")
DRAWS = 3
"""Thinnings of a source, in the place of divisions."""
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
    return list(
        tasks.sort_values(["kind", "test_share", "rows"], kind="stable").itertuples()
    )


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
    names = dict.fromkeys(map(_group, read_tasks(folds)))
    return [f"{'rare-folds' if folds else 'rare'}-{name}-long" for name in names]


def _group(task: Any) -> str:
    return f"{task.kind}-{100 * task.test_share:.0f}"


def rivals() -> list[str]:
    """Return the contestants of the best mean rank beside the ensemble."""
    ranked = standings(Survey(pd.read_csv(REFERENCE), TASKS).values(AP)).index
    return [name for name in ranked if name != "ensemble"][:RIVALS]


def joined(table: pd.DataFrame) -> pd.DataFrame:
    """Take the thinnings of a source, ``TASK-0`` and on, as splits of one task."""
    parts = table["task"].str.extract(r"^(.*-1in\d+)-(\d)$")
    split = parts[1].astype(float).fillna(table["split"]).astype(int)
    return table.assign(task=parts[0].fillna(table["task"]), split=split)


def in_bench(survey: Survey) -> list[bool]:
    """Whether the bench of advice has the source of each task of the panel."""
    names = tuple(pd.read_csv(TASKS.with_name("advice-tasks.csv"))["task"])
    return [
        any(name.startswith(source) for name in names)
        for source in survey.tasks["source"]
    ]


def write(folder: Path, tasks: Iterable[Any], folds: bool = False) -> list[Path]:
    """Write the files of tasks, one a thinning, and the configs with them as data."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    changed: dict[str, Any] = {}
    if folds:
        template = load(shipped("configs") / "top" / "survey.yaml").data
        changed = {
            "tuning": {"by": AP, "draw": template["tuning"]["draw"], "folds": FOLDS},
            "solvers": {name: template["solvers"][name] for name in rivals()},
            "common": {},  # parameters of solvers that are not among the rivals
        }
    for name, group in itertools.groupby(tasks, _group):
        alike, entries = [*group], []
        kind, share = alike[0].kind, alike[0].test_share
        for task in alike:
            draws = range(DRAWS) if kind == "thinned" else ()
            rows = whole(task) if draws else None
            for draw in draws:
                drawn = f"{task.task}-{draw}"
                thinned(rows, task, draw).to_csv(folder / f"{drawn}.csv", index=False)
                entries.append(task._replace(task=drawn, package="thinned"))
            entries += [] if draws else [task]
        protocol = {"split": "random", "test_size": share, "stratified": True}
        protocol |= {"n_splits": 1 if kind == "thinned" else N_SPLITS}
        name = f"{'rare-folds' if folds else 'rare'}-{name}"
        paths += write_configs(folder, entries, name, protocol=protocol, **changed)
    return paths

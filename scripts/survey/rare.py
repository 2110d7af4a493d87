"""The tasks of the rare panel: natural rare classes, and positives that are thinned at random.

The rules are those of docs/survey-rules.md; results/reference/rare-tasks.csv lists the tasks, with
the share of positives to which a source is thinned.
"""

import itertools
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precbench.data import load_dataset
from precbench.locations import shipped
from precbench.survey.tasks import LONG, read_task, write_configs

TASKS = shipped("results/reference") / "rare-tasks.csv"
DRAWS = 3
"""Thinnings of a source, in the place of divisions."""


def read_tasks() -> list[Any]:
    """Return the tasks of the panel by kind and share of test rows, the smallest first."""
    tasks = pd.read_csv(TASKS, keep_default_na=False)
    return list(tasks.sort_values(["kind", "test_share", "rows"], kind="stable").itertuples())


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


def write(folder: Path, tasks: Iterable[Any]) -> list[Path]:
    """Write the files of tasks, one for each thinning, and the configs that have them as data."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for (kind, share), group in itertools.groupby(tasks, lambda t: (t.kind, t.test_share)):
        entries = []
        for task in group:
            draws = range(DRAWS) if kind == "thinned" else ()
            rows = whole(task) if draws else None
            for draw in draws:
                name = f"{task.task}-{draw}"
                thinned(rows, task, draw).to_csv(folder / f"{name}.csv", index=False)
                entries.append(task._replace(task=name, package="thinned"))
            entries += [] if draws else [task]
        protocol = {"split": "random", "test_size": share, "stratified": True}
        protocol |= {"n_splits": 1 if kind == "thinned" else LONG}
        paths += write_configs(
            folder, entries, f"rare-{kind}-{share:.0%}".rstrip("%"), protocol=protocol
        )
    return paths

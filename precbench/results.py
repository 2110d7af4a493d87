"""Readers of results folders: `read_run` for an experiment, `read_values` for a study.

Tables, figures and verdicts are made from these files alone, without data set, solver or kernel.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from precbench.errors import InputError

__all__ = ["Run", "read_csv", "read_description", "read_run", "read_values"]

_TEXT = (
    *("experiment", "dataset", "title", "solver", "sweep", "part"),
    *("metric", "status", "reason", "stopped", "timing", "run", "chosen"),
)
_NUMBERS = (
    *("split", "seed", "checkpoint", "rows_seen"),
    *("cpu_seconds", "wall_seconds", "tuning_seconds", "value"),
)
_FLAGS = ("stand_in", "final")

_RUN_AGAIN = "run the experiment again to rewrite it; no trial is repeated"


@dataclass(frozen=True)
class Run:
    """The contents of the results folder of an experiment.

    Attributes
    ----------
    folder : pathlib.Path
    results : pandas.DataFrame
        One row per solver, split, checkpoint and metric; empty texts are ``""``.
    name, title : str
    source : str or None
        The figure or table of a paper that it reproduces.
    plots : list of str
    metrics : list of str
        Labels; the first is the main one.
    measures : dict
        For each label in the results the metric's ``name`` and ``parameters``, its notation in
        text (``written``), and whether ``smaller_is_better``.
    solvers : list of str
        Labels, in the order of the tables.
    built_in_solvers : list of str
        Names of all solvers of precbench; the place of a name determines its style in figures.
    datasets : list of str
    sweep : dict or None
        ``name`` of the parameter and its ``values``; ``metrics``, for each value the labels of all
        metrics; ``written``, the notation of each metric for all values together.
    protocol, scaling : str
        Phrases for titles and notes.
    folds : int
        Number of successive splits in one repetition of the protocol.
    data : dict
        For each data set ``rows``, ``features``, ``positives`` and ``stand_in``.
    smoke : bool
    """

    folder: Path
    results: pd.DataFrame
    name: str
    title: str
    source: str | None
    plots: list[str]
    metrics: list[str]
    measures: dict[str, dict[str, Any]]
    solvers: list[str]
    built_in_solvers: list[str]
    datasets: list[str]
    sweep: dict[str, Any] | None
    protocol: str
    scaling: str
    folds: int
    data: dict[str, dict[str, Any]]
    smoke: bool

    @property
    def sweep_points(self) -> list[str]:
        """The column ``sweep`` of the results: ``["k=0.25", ...]``, or ``[""]`` without a sweep."""
        if self.sweep is None:
            return [""]
        return [f"{self.sweep['name']}={value}" for value in self.sweep["values"]]

    def metric_at(self, metric: str, sweep: str) -> str:
        """Return the label of a metric at a point of the sweep, which may set a parameter of it."""
        if self.sweep is None:
            return metric
        return self.sweep["metrics"][self.sweep_points.index(sweep)][self.metrics.index(metric)]

    def metric_name(self, metric: str) -> str:
        """Return the notation of a metric, ``prec@k`` where a sweep sets its ``k``."""
        if self.sweep is None:
            return self.written(metric)
        return self.sweep["written"][self.metrics.index(metric)]

    def written(self, label: str) -> str:
        """Return the notation of the metric with a label, for example ``prec@0.25``."""
        return self.measures[label]["written"]

    @property
    def losses(self) -> set[str]:
        """The labels of the metrics for which smaller is better."""
        return {label for label, of in self.measures.items() if of["smaller_is_better"]}

    def dataset_title(self, dataset: str) -> str:
        """Return the title of a data set, marked if it is a stand-in or of smoke size."""
        titles = self.results.loc[self.results["dataset"] == dataset, "title"]
        title = titles.iloc[0] if len(titles) else dataset
        if self.is_stand_in(dataset) and "stand-in" not in title:
            title += " (stand-in, synthetic)"
        return f"{title}, smoke size" if self.smoke else title

    @property
    def protocol_sentence(self) -> str:
        """The protocol and the scaling, with a capital and a full stop."""
        text = "; ".join(phrase for phrase in (self.protocol, self.scaling) if phrase)
        return f"{text[:1].upper()}{text[1:]}."

    def n_splits(self, dataset: str) -> int:
        """Return the number of splits with trials, whatever their status."""
        return self.results.loc[self.results["dataset"] == dataset, "split"].nunique()

    def is_stand_in(self, dataset: str) -> bool:
        """Return whether any trial used synthetic data in place of a data set."""
        return bool(self.results.loc[self.results["dataset"] == dataset, "stand_in"].any())


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Sweep(_Part):
    name: str
    values: list[int | float | str]
    metrics: list[list[str]]
    written: list[str]


class _Measure(_Part):
    name: str
    parameters: dict[str, Any]
    written: str
    smaller_is_better: bool


class _Sizes(_Part):
    rows: int
    features: int
    positives: int
    stand_in: bool


_PARTS: dict[str, Any] = {
    "sweep": _Sweep | None,
    "measures": dict[str, _Measure],
    "data": dict[str, _Sizes],
}
_About = create_model(  # type: ignore[call-overload]
    "_About",
    __base__=_Part,
    **{field.name: (_PARTS.get(field.name, field.type), ...) for field in fields(Run)[2:]},
)


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Read ``experiment.json`` and ``results.csv``.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``.

    Returns
    -------
    Run

    Raises
    ------
    InputError
        If a file, a key or a column is missing or malformed, or there are no results yet.
    """
    folder = Path(folder)
    about_path = folder / "experiment.json"
    try:
        about = _About.model_validate(_read_json(about_path, list(_About.model_fields)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{about_path}, {place}: {first['msg']}; {_RUN_AGAIN}") from None
    path = folder / "results.csv"
    results = read_csv(path, _TEXT, _NUMBERS, _FLAGS)
    if results.empty:
        raise InputError(f"{path} has no rows: no trial has ended yet")
    run = Run(folder, results, **about.model_dump())
    points = [run.metrics] if run.sweep is None else run.sweep["metrics"]
    unknown = set(run.metrics).union(*points) - set(run.measures)
    if unknown:
        raise InputError(f"{about_path} has no measure {min(unknown)!r}; {_RUN_AGAIN}")
    if {len(point) for point in points} != {len(run.metrics)} or (
        run.sweep is not None
        and (len(points), len(run.metrics)) != (len(run.sweep["values"]), len(run.sweep["written"]))
    ):
        raise InputError(f"{about_path}: metrics and sweep differ in length; {_RUN_AGAIN}")
    return run


def read_values(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], pd.DataFrame]:
    """Read the files of a study: ``illustration.json`` and ``values.csv``.

    Parameters
    ----------
    folder : path-like
        ``results/<name>``.

    Returns
    -------
    about : dict
        From `read_description`.
    values : pandas.DataFrame
        With a column ``value`` of numbers.

    Raises
    ------
    InputError
        If a file is missing or malformed.
    """
    about = read_description(folder)
    values = Path(folder) / "values.csv"
    table = _read_table(values, na_values=[""])
    if "value" not in table or table["value"].dtype.kind not in "fi":
        raise InputError(f"{values} has no column value with numbers; {_RUN_AGAIN}")
    return about, table


def read_description(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the description of a study: ``illustration.json``.

    Parameters
    ----------
    folder : path-like
        ``results/<name>``.

    Returns
    -------
    dict
        ``schema``, ``name``, ``title``, ``source``, ``kind``, ``parameters`` and ``smoke``.

    Raises
    ------
    InputError
        If the file is missing or malformed.
    """
    required = ("schema", "name", "title", "source", "kind", "parameters", "smoke")
    return _read_json(Path(folder) / "illustration.json", required)


def read_csv(
    path: Path, text: tuple[str, ...], numbers: tuple[str, ...], flags: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Read a table whose columns are known: empty texts are ``""``, empty flags False.

    Parameters
    ----------
    path : pathlib.Path
    text, numbers, flags : tuple of str
        The required columns.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    InputError
        If the file or a column is missing, or a number is malformed.
    """
    table = _read_table(path, dtype=str)
    missing = [column for column in (*text, *numbers, *flags) if column not in table]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}; {_RUN_AGAIN}")
    for column in numbers:
        try:
            table[column] = table[column].replace("", "nan").astype(float)
        except ValueError as error:
            raise InputError(f"{path}, column {column}: {error}") from None
    for column in flags:
        table[column] = table[column].str.lower() == "true"
    return table


def _read_json(path: Path, required: Sequence[str]) -> dict[str, Any]:
    """Read an object that has the required keys."""
    try:
        about = json.loads(_existing(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    missing = [key for key in required if not isinstance(about, dict) or key not in about]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}; {_RUN_AGAIN}")
    return about


def _read_table(path: Path, **options: Any) -> pd.DataFrame:
    try:
        return pd.read_csv(_existing(path), keep_default_na=False, **options)
    except ValueError as error:  # of pandas, for an empty or ragged file
        raise InputError(f"{path} is not a table: {error}") from None


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(
            f"there is no file {path}; give a results folder that `precbench run` has written"
        )
    return path

"""Readers of results folders: `read_run` for an experiment, `read_values` for a study.

Tables, figures and verdicts are made from these files alone, without data set, solver or kernel.
"""

import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from precbench.errors import InputError
from precbench.files import refuse_links
from precbench.metrics import METRICS, Metric
from precbench.strict_json import Count, Fields, Number, checked, load

__all__ = ["Run", "plain_strings", "read_csv", "read_description", "read_run", "read_values"]

_TEXT = (
    *("experiment", "dataset", "title", "solver", "sweep", "part"),
    *("metric", "status", "reason", "stopped", "timing", "run", "machine", "chosen", "key"),
)
_NUMBERS = (
    *("split", "seed", "checkpoint", "rows_seen"),
    *("cpu_seconds", "wall_seconds", "tuning_seconds", "value"),
)
_FLAGS = ("stand_in", "final")
_LATER = ("run", "machine", "chosen", "tuning_seconds", "key")
"""Columns that the first versions did not write."""

_RUN_AGAIN = "run the experiment again to rewrite it; no trial is repeated"

_Kind = TypeVar("_Kind", bound=Fields)
_Labels = Annotated[list[str], Field(min_length=1)]
_Positive = Annotated[Count, Field(ge=1)]


plain_strings = pd.option_context("mode.string_storage", "python")
"""For functions that work with small tables, which take a third longer through Arrow."""


class _Measure(Fields):
    name: str
    parameters: dict[str, Any]
    written: str
    smaller_is_better: bool


class _Sweep(Fields):
    name: str
    values: Annotated[list[bool | Count | Number | str], Field(min_length=1)]
    metrics: list[_Labels] = Field(default_factory=list)
    written: list[str] = Field(default_factory=list)


class _Sizes(Fields):
    rows: _Positive
    features: Count
    positives: Count
    stand_in: bool
    training_rows: Count = 0  # of the split that the data set provides
    test_share: Annotated[Number, Field(gt=0, lt=1)] | None = None


class _Experiment(Fields):
    """``experiment.json``; former versions wrote no key that has a default here."""

    name: str
    title: str
    source: str | None
    plots: list[str]
    metrics: _Labels
    measures: dict[str, _Measure] = Field(default_factory=dict)
    solvers: _Labels
    built_in_solvers: list[str] = Field(default_factory=list)
    forms: dict[str, Literal["linear", "random features", "nonlinear", "ensemble"]] = Field(
        default_factory=dict
    )
    grids: dict[str, dict[str, list[bool | Count | Number | str | None]]] = Field(
        default_factory=dict
    )
    datasets: _Labels
    sweep: _Sweep | None
    protocol: str
    scaling: str
    folds: _Positive | None = None
    data: dict[str, _Sizes] = Field(default_factory=dict)
    smoke: bool
    config: str | None = None

    @model_validator(mode="after")
    def _measures_every_label(self) -> Self:
        labels, sweep = [self.metrics], self.sweep
        if sweep is not None and sweep.metrics:
            labels += sweep.metrics
            shape = [len(self.metrics)] * (len(sweep.values) + 1)
            if [*map(len, sweep.metrics), len(sweep.written)] != shape:
                raise ValueError("the metrics of the sweep are not those of its values")
        missing = set(itertools.chain(*labels)) - set(self.measures)
        if missing and self.measures:
            raise ValueError(f"measures lacks {', '.join(sorted(missing))}")
        return self


class _Study(Fields):
    """``illustration.json``."""

    version: Count = Field(alias="schema")
    name: str
    title: str
    source: str | None
    kind: str
    parameters: dict[str, Any]
    smoke: bool


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
    forms : dict
        For each solver "linear", "random features" (linear in them), "nonlinear" or "ensemble" (of
        several kinds); empty if an older precbench has written the folder.
    grids : dict
        For each solver whose parameters are tuned the candidates, by parameter.
    datasets : list of str
    sweep : dict or None
        ``name`` of the parameter and its ``values``; ``metrics``, for each value the labels of all
        metrics; ``written``, the notation of each metric for all values together.
    protocol, scaling : str
        Phrases for titles and notes.
    folds : int
        Number of successive splits in one repetition of the protocol.
    data : dict
        For each data set ``rows``, ``features``, ``positives``, ``stand_in``, ``training_rows``
        and ``test_share``, the fraction of rows in the test set, None where it is not known or the
        same rows are tested in every split.
    smoke : bool
    config : str or None
        The config, as the last run was given it, of a file with an absolute path the name alone;
        "" without one, None in results of former versions.
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
    forms: dict[str, str]
    grids: dict[str, dict[str, list[Any]]]
    datasets: list[str]
    sweep: dict[str, Any] | None
    protocol: str
    scaling: str
    folds: int
    data: dict[str, dict[str, Any]]
    smoke: bool
    config: str | None = None

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
        return {label for label, measure in self.measures.items() if measure["smaller_is_better"]}

    @property
    def test_shares(self) -> dict[str, float]:
        """The fraction of rows in the test set, if known, by data set with overlapping splits."""
        known = {dataset: sizes["test_share"] for dataset, sizes in self.data.items()}
        return {dataset: share for dataset, share in known.items() if share is not None}

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
        If a file, a key or a column is missing or malformed, if there are no results yet, or if
        the two files do not belong together.
    """
    folder = Path(folder)
    description = _completed(_read_json(folder / "experiment.json", _Experiment))
    path = folder / "results.csv"
    results = read_csv(path, _TEXT, _NUMBERS, _FLAGS, _LATER)
    if results.empty:
        raise InputError(f"{path} has no rows: no trial has ended yet")
    split = results["split"]
    is_complete = split.between(0, 2**53) & (split % 1 == 0) & results["seed"].notna()
    if not is_complete.all():
        raise InputError(f"{path}: every row needs a split and a seed; {_RUN_AGAIN}")
    run = Run(folder, results, **description)
    _check_rows(run, path)
    return run


def _check_rows(run: Run, path: Path) -> None:
    """Raise unless the rows are those of the experiment, and have each metric where they have one.

    A run that was interrupted after its config had changed leaves rows of the former config.
    """
    rows = run.results
    tested = rows[rows["part"] == "test"]
    if tested.empty:
        raise InputError(f"{path} has no row of the part test; {_RUN_AGAIN}")
    labels = {point: [run.metric_at(m, point) for m in run.metrics] for point in run.sweep_points}
    known = {(point, label) for point, of_point in labels.items() for label in of_point}
    for dataset, solver, point, label in set(
        rows[["dataset", "solver", "sweep", "metric"]].itertuples(index=False, name=None)
    ):
        if dataset not in run.datasets or solver not in run.solvers or (point, label) not in known:
            named = " ".join(part for part in (dataset, solver, point, label) if part)
            raise InputError(
                f"{path} has rows that {path.with_name('experiment.json')} does not know "
                f"({named}); {_RUN_AGAIN}"
            )
    measured = set(tested[["dataset", "sweep", "metric"]].itertuples(index=False, name=None))
    for dataset, point in {(dataset, point) for dataset, point, _ in measured}:
        lacking = [label for label in labels[point] if (dataset, point, label) not in measured]
        if lacking:
            raise InputError(f"{path} has no row of {lacking[0]} on {dataset}; {_RUN_AGAIN}")


def _completed(about: _Experiment) -> dict[str, Any]:
    """Return all keys; those that former versions did not write follow from the others."""
    metrics, sweep = list(map(_metric, about.metrics)), about.sweep
    points = [] if sweep is None else [{sweep.name: value} for value in sweep.values]
    at_points = [[_replaced(metric, point) for metric in metrics] for point in points]
    completed = about.model_dump()
    if sweep is not None and not sweep.metrics:
        labels = [[metric.label for metric in at_point] for at_point in at_points]
        over_all = [_replaced(metric, {sweep.name: sweep.name}) for metric in metrics]
        written = [_measure(metric)["written"] for metric in over_all]
        completed["sweep"] |= {"metrics": labels, "written": written}
    if not about.measures:
        everywhere = itertools.chain(metrics, *at_points)
        completed["measures"] = {metric.label: _measure(metric) for metric in everywhere}
    if about.folds is None:
        folds = re.search(r"(\d{1,6})-fold", about.protocol)
        completed["folds"] = max(int(folds[1]), 1) if folds else 1
    return completed


def _metric(label: str) -> Metric:
    """Return the metric with a label such as ``precision_at_k(k=0.25)``, its values as text."""
    name, _, rest = label.partition("(")
    pairs = (pair.partition("=") for pair in rest.removesuffix(")").split(", ") if pair)
    return Metric(name, {parameter: value for parameter, _, value in pairs})


def _replaced(metric: Metric, point: dict[str, Any]) -> Metric:
    return metric.replace(**point) if metric.name in METRICS else metric


def _measure(metric: Metric) -> dict[str, Any]:
    known = metric.name in METRICS  # or a package has it that is not installed
    return {
        "name": metric.name,
        "parameters": metric.params,
        "written": metric.written if known else metric.label,
        "smaller_is_better": known and metric.smaller_is_better,
    }


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
    description = read_description(folder)
    values = Path(folder) / "values.csv"
    table = _read_table(values, na_values=[""])
    if "value" not in table or table["value"].dtype.kind not in "fi":
        raise InputError(f"{values} has no column value with numbers; {_RUN_AGAIN}")
    return description, table


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
    description = _read_json(Path(folder) / "illustration.json", _Study)
    return description.model_dump(by_alias=True)


def read_csv(
    path: Path,
    text: tuple[str, ...],
    numbers: tuple[str, ...],
    flags: tuple[str, ...] = (),
    later: tuple[str, ...] = (),
) -> pd.DataFrame:
    """Read a table whose columns are known: empty texts are ``""``, empty flags False.

    Parameters
    ----------
    path : pathlib.Path
    text, numbers, flags : tuple of str
        The columns.
    later : tuple of str
        Those of them that may be missing, and then are empty.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    InputError
        If the file or a column is missing, or a number is malformed.
    """
    known = {*text, *numbers, *flags}
    table = _read_table(path, dtype=str, usecols=lambda column: column in known)
    table = table.assign(**{column: "" for column in later if column not in table})
    missing = [column for column in (*text, *numbers, *flags) if column not in table]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}; {_RUN_AGAIN}")
    for column in numbers:
        try:
            table[column] = table[column].replace("", "nan").astype(float)
        except ValueError as error:
            raise InputError(f"{path}, column {column}: {error}") from None
        if column != "value" and np.isinf(table[column]).any():  # a risk may overflow
            raise InputError(f"{path}, column {column}: a number is not finite; {_RUN_AGAIN}")
    for column in flags:
        table[column] = table[column].str.lower() == "true"
    return table


def _read_json(path: Path, kind: type[_Kind]) -> _Kind:
    refuse_links(path.parent)
    try:
        return checked(load(_existing(path).read_bytes()), kind)
    except ValueError as error:
        raise InputError(f"{path}: {error}; {_RUN_AGAIN}") from None


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

"""Readers of results folders: `read_run` for an experiment, `read_values` for a study.

Tables, figures and verdicts are made from these files alone, without data set, solver or kernel.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field, model_validator

from precbench.errors import InputError
from precbench.strict_json import Count, Fields, Number, checked
from precbench.studies import Result

COLUMNS: dict[str, type] = {
    "experiment": str,
    "dataset": str,
    "title": str,
    "stand_in": bool,
    "solver": str,
    "split": float,
    "seed": float,
    "sweep": str,
    "part": str,
    "checkpoint": float,
    "rows_seen": float,
    "cpu_seconds": float,
    "wall_seconds": float,
    "metric": str,
    "value": float,
    "status": str,
    "reason": str,
    "stopped": str,
    "timing": str,
    "run": str,
    "machine": str,
    "chosen": str,
    "tuning_seconds": float,
    "final": bool,
    "key": str,
}
"""Columns of ``results.csv``, with the type as which they are read."""

_RUN_AGAIN = "run the experiment again to rewrite it; no trial is repeated"

_Labels = Annotated[list[str], Field(min_length=1)]
_Positive = Annotated[Count, Field(ge=1)]


plain_strings = pd.option_context("mode.string_storage", "python")
"""For functions that work with small tables, which take a third longer through Arrow."""


class Measure(Fields):
    """A metric of an experiment."""

    name: str
    parameters: dict[str, Any]
    written: str
    smaller_is_better: bool


class Sweep(Fields):
    """A swept parameter.

    Attributes
    ----------
    name : str
    values : list
    metrics : list of list of str
        For each value the labels of all metrics.
    written : list of str
        The notation of each metric for all values together.
    """

    name: str
    values: Annotated[list[bool | Count | Number | str], Field(min_length=1)]
    metrics: list[_Labels]
    written: list[str]


class Sizes(Fields):
    """Sizes of a data set.

    Attributes
    ----------
    rows, features, positives : int
    stand_in : bool
    training_rows : int
        Of the split that the data set provides, else 0.
    test_share : float or None
        Fraction of rows in the test set; None where the same rows are tested in every split.
    """

    rows: _Positive
    features: Count
    positives: Count
    stand_in: bool
    training_rows: Count
    test_share: Annotated[Number, Field(gt=0, lt=1)] | None


class Run(Fields):
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
    measures : dict of str to Measure
        For each label in the results.
    solvers : list of str
        Labels, in the order of the tables.
    built_in_solvers : list of str
        Names of all solvers of precbench; the place of a name determines its style in figures.
    forms : dict
        For each solver "linear", "random features" (linear in them), "nonlinear" or "ensemble" (of
        several kinds).
    grids : dict
        For each solver whose parameters are tuned the candidates, by parameter.
    datasets : list of str
    sweep : Sweep or None
    protocol, scaling : str
        Phrases for titles and notes.
    folds : int
        Number of successive splits in one repetition of the protocol.
    data : dict of str to Sizes
    smoke : bool
    config : str
        The config, as the last run was given it, of a file with an absolute path the name alone;
        "" without one.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    folder: Path
    results: pd.DataFrame
    name: str
    title: str
    source: str | None
    plots: list[str]
    metrics: _Labels
    measures: dict[str, Measure]
    solvers: _Labels
    built_in_solvers: list[str]
    forms: dict[str, Literal["linear", "random features", "nonlinear", "ensemble"]]
    grids: dict[str, dict[str, list[bool | Count | Number | str | None]]]
    datasets: _Labels
    sweep: Sweep | None
    protocol: str
    scaling: str
    folds: _Positive
    data: dict[str, Sizes]
    smoke: bool
    config: str

    @model_validator(mode="after")
    def _measures_every_label(self) -> Self:
        labels, sweep = {*self.metrics}, self.sweep
        if sweep is not None:
            labels.update(*sweep.metrics)
            shape = [len(self.metrics)] * (len(sweep.values) + 1)
            if [*map(len, sweep.metrics), len(sweep.written)] != shape:
                raise ValueError("the metrics of the sweep are not those of its values")
        if missing := labels - self.measures.keys():
            raise ValueError(f"measures lacks {', '.join(sorted(missing))}")
        return self

    @property
    def sweep_points(self) -> list[str]:
        """The column ``sweep`` of the results: ``["k=0.25", ...]``, or ``[""]`` without a sweep."""
        if self.sweep is None:
            return [""]
        return [f"{self.sweep.name}={value}" for value in self.sweep.values]

    def metric_at(self, metric: str, sweep: str) -> str:
        """Return the label of a metric at a point of the sweep, which may set a parameter of it."""
        if self.sweep is None:
            return metric
        return self.sweep.metrics[self.sweep_points.index(sweep)][self.metrics.index(metric)]

    def metric_name(self, metric: str) -> str:
        """Return the notation of a metric, ``prec@k`` where a sweep sets its ``k``."""
        if self.sweep is None:
            return self.measures[metric].written
        return self.sweep.written[self.metrics.index(metric)]

    @property
    def losses(self) -> set[str]:
        """The labels of the metrics for which smaller is better."""
        return {label for label, measure in self.measures.items() if measure.smaller_is_better}

    @property
    def test_shares(self) -> dict[str, float]:
        """The fraction of rows in the test set, if known, by data set with overlapping splits."""
        return {
            dataset: sizes.test_share
            for dataset, sizes in self.data.items()
            if sizes.test_share is not None
        }

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
    path = folder / "results.csv"
    results = read_csv(path, COLUMNS)
    if results.empty:
        raise InputError(f"{path} has no rows: no trial has ended yet")
    split = results["split"]
    is_complete = split.between(0, 2**53) & (split % 1 == 0) & results["seed"].notna()
    if not is_complete.all():
        raise InputError(f"{path}: every row needs a split and a seed; {_RUN_AGAIN}")
    run = _read_json(folder / "experiment.json", Run, folder=folder, results=results)
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
        if lacking := [at for at in labels[point] if (dataset, point, at) not in measured]:
            raise InputError(f"{path} has no row of {lacking[0]} on {dataset}; {_RUN_AGAIN}")


def read_values(folder: str | os.PathLike[str]) -> Result:
    """Read the files of a study: ``illustration.json`` and ``values.csv``.

    Parameters
    ----------
    folder : path-like
        ``results/<name>``.

    Raises
    ------
    InputError
        If a file is missing or malformed.
    """
    folder = Path(folder)
    path = folder / "values.csv"
    values = _read_table(path, na_values=[""])
    if "value" not in values or values["value"].dtype.kind not in "fi":
        raise InputError(f"{path} has no column value with numbers; {_RUN_AGAIN}")
    return _read_json(folder / "illustration.json", Result, folder=folder, values=values)


def read_csv(path: Path, columns: Mapping[str, type]) -> pd.DataFrame:
    """Read a table whose columns are known: empty texts are ``""``, empty flags False.

    Parameters
    ----------
    path : pathlib.Path
    columns : mapping of str to {str, float, bool}

    Raises
    ------
    InputError
        If the file or a column is missing, or a number is malformed.
    """
    table = _read_table(path, dtype=str, usecols=lambda column: column in columns)
    if missing := [column for column in columns if column not in table]:
        raise InputError(f"{path} has no column {', '.join(missing)}; {_RUN_AGAIN}")
    for column, kind in columns.items():
        if kind is bool:
            table[column] = table[column].str.lower() == "true"
        if kind is not float:
            continue
        try:
            table[column] = table[column].replace("", "nan").astype(float)
        except ValueError as error:
            raise InputError(f"{path}, column {column}: {error}") from None
        if column != "value" and np.isinf(table[column]).any():  # a risk may overflow
            raise InputError(f"{path}, column {column}: a number is not finite; {_RUN_AGAIN}")
    return table


_Kind = TypeVar("_Kind", bound=Fields)


def _read_json(path: Path, kind: type[_Kind], **more: Any) -> _Kind:
    content = _existing(path).read_bytes()
    try:
        described = json.loads(content)
        if not isinstance(described, dict):
            raise ValueError("not an object")
        return checked(described | more, kind)
    except (ValueError, RecursionError) as error:
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

"""Readers of results folders: `read_run` for an experiment, `read_values` for a study.

Tables, figures and verdicts are made from these files alone.
"""

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field, model_validator

from precbench.core.errors import InputError
from precbench.core.strict_json import Count, Fields, Number, checked
from precbench.core.studies import Result

# Columns of ``results.csv``, with the type as which they are read
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
    "converged": str,
    "timing": str,
    "run": str,
    "machine": str,
    "chosen": str,
    "tuning_seconds": float,
    "final": bool,
    "key": str,
}

_ADDED = {"converged"}  # columns that the first files did not have
_RUN_AGAIN = (
    "write the file again with precbench run CONFIG, which keeps finished trials"
)

_Labels = Annotated[list[str], Field(min_length=1)]
_Positive = Annotated[Count, Field(ge=1)]


# A decorator of functions on small tables, which take a third longer with strings in
# Arrow
plain_strings = pd.option_context("mode.string_storage", "python")


class Measure(Fields):
    """A metric with its parameters."""

    name: str
    parameters: dict[str, Any]
    written: str
    smaller_is_better: bool


class Sweep(Fields):
    """The parameter that an experiment varies, and its values."""

    name: str
    values: Annotated[list[bool | Count | Number | str], Field(min_length=1)]
    metrics: list[_Labels]  # for each value, the labels of all metrics
    written: list[str]  # the notation of each metric for all values together


class Sizes(Fields):
    """The sizes of a data set."""

    rows: _Positive
    features: Count
    positives: Count
    stand_in: bool
    training_rows: Count  # of the provided split, else 0
    # Fraction of rows in the test set; None if the same rows are tested in every split.
    test_share: Annotated[Number, Field(gt=0, lt=1)] | None


class Run(Fields):
    """The contents of the results folder of an experiment."""

    model_config = ConfigDict(arbitrary_types_allowed=True)  # of `results`

    folder: Path
    results: pd.DataFrame  # one row per solver, split, checkpoint and metric
    name: str
    title: str
    source: str | None  # the figure or table of a paper that is reproduced
    plots: list[str]
    # solvers that figures always show; not in files of earlier versions
    highlight: list[str] = Field(default_factory=list)
    metrics: _Labels  # the first is the main one
    measures: dict[str, Measure]  # by label in the results
    solvers: _Labels  # in the order of the tables
    built_in_solvers: list[str]  # the place of a name determines its style in figures
    forms: dict[str, Literal["linear", "random features", "nonlinear", "ensemble"]]
    # tuned parameters
    grids: dict[str, dict[str, list[bool | Count | Number | str | None]]]
    datasets: _Labels
    sweep: Sweep | None
    protocol: str  # protocol and scaling are phrases, or ""
    scaling: str
    folds: _Positive  # successive splits in one repetition of the protocol
    data: dict[str, Sizes]
    smoke: bool
    config: str  # as in the last run, without an absolute folder; "" without a config

    @model_validator(mode="after")
    def _check_measures(self) -> Self:
        """Require the measure of each metric, at each point of a sweep."""
        labels = {*self.metrics}
        if self.sweep is not None:
            labels.update(*self.sweep.metrics)
            self._check_sweep(self.sweep)
        missing = labels - self.measures.keys()
        if missing:
            raise ValueError(
                f"the key 'measures' lacks the metric {', '.join(sorted(missing))}"
            )
        return self

    def _check_sweep(self, sweep: Sweep) -> None:
        """Require for each value a list in `metrics`.

        Each list, and `written`, the notations in the config, must have an entry for
        each metric.
        """
        has_list_for_each_value = len(sweep.metrics) == len(sweep.values)
        lengths = {len(names) for names in (*sweep.metrics, sweep.written)}
        if not has_list_for_each_value or lengths != {len(self.metrics)}:
            raise ValueError(
                "sweep: written, and each list in metrics, must name each metric"
            )

    @property
    def sweep_points(self) -> list[str]:
        """The column ``sweep`` of the results: ``["k=0.25", ...]``, or ``[""]``."""
        if self.sweep is None:
            return [""]
        return [f"{self.sweep.name}={value}" for value in self.sweep.values]

    def metric_at(self, metric: str, sweep: str) -> str:
        """Return a metric's label at a point of the sweep, which may set its ``k``."""
        if self.sweep is None:
            return metric
        labels_at_point = self.sweep.metrics[self.sweep_points.index(sweep)]
        return labels_at_point[self.metrics.index(metric)]

    def metric_name(self, metric: str) -> str:
        """Return the notation of a metric, ``prec@k`` where a sweep sets its ``k``."""
        if self.sweep is None:
            return self.measures[metric].written
        return self.sweep.written[self.metrics.index(metric)]

    @property
    def losses(self) -> set[str]:
        """Labels of the metrics that are better when smaller."""
        return {
            label
            for label, measure in self.measures.items()
            if measure.smaller_is_better
        }

    @property
    def test_shares(self) -> dict[str, float]:
        """Fractions of rows in the test set, by data set with overlapping splits."""
        return {
            dataset: sizes.test_share
            for dataset, sizes in self.data.items()
            if sizes.test_share is not None
        }

    def dataset_title(self, dataset: str) -> str:
        """Return the title of a data set, marked as a stand-in or of smoke size."""
        titles = self.results.loc[self.results["dataset"] == dataset, "title"]
        title = titles.iloc[0] if len(titles) else dataset
        if self.is_stand_in(dataset) and "stand-in" not in title:
            title += " (stand-in, synthetic)"
        return f"{title}, smoke size" if self.smoke else title

    @property
    def protocol_sentence(self) -> str:
        """A sentence about protocol and scaling."""
        text = "; ".join(phrase for phrase in (self.protocol, self.scaling) if phrase)
        return f"{text[:1].upper()}{text[1:]}."

    def n_splits(self, dataset: str) -> int:
        return self.results.loc[self.results["dataset"] == dataset, "split"].nunique()

    def is_stand_in(self, dataset: str) -> bool:
        """Return whether a trial used synthetic data in place of a data set."""
        return bool(
            self.results.loc[self.results["dataset"] == dataset, "stand_in"].any()
        )


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Return an experiment's ``experiment.json`` and ``results.csv`` as one object."""
    folder = Path(folder)
    path = folder / "results.csv"
    results = read_csv(path, COLUMNS)
    if results.empty:
        raise InputError(
            f"{path} has no rows: no trial has ended; run the experiment again"
        )
    split = results["split"]  # a float, NaN if missing; exact for integers up to 2**53
    is_valid = split.between(0, 2**53) & (split % 1 == 0) & results["seed"].notna()
    if not is_valid.all():
        first_invalid = is_valid.argmin()  # the first False
        column = "seed" if np.isnan(results["seed"][first_invalid]) else "split"
        raise InputError(
            f"{path}: row {first_invalid + 1} below the header has no whole number as"
            f" {column}; {_RUN_AGAIN}"
        )
    run = _read_json(folder / "experiment.json", Run, folder=folder, results=results)
    _check_rows(run, path)
    return run


def _check_rows(run: Run, path: Path) -> None:
    """Require rows of this experiment only, and test rows of each metric.

    Rows of a former config remain if a run of a new config is interrupted.
    """
    tested = run.results[run.results["part"] == "test"]
    if tested.empty:
        raise InputError(
            f"{path} has no row with 'test' in the column 'part'; {_RUN_AGAIN}"
        )
    labels = {
        point: [run.metric_at(metric, point) for metric in run.metrics]
        for point in run.sweep_points
    }
    _refuse_unknown_rows(run, labels, path)
    # A data set with rows at a point of the sweep must have rows of each metric.
    tested_metrics: dict[tuple[str, str], set[str]] = {}
    columns = ["dataset", "sweep", "metric"]
    for dataset, point, metric in tested[columns].itertuples(index=False, name=None):
        tested_metrics.setdefault((dataset, point), set()).add(metric)
    for (dataset, point), metrics in tested_metrics.items():
        for label in labels[point]:
            if label not in metrics:
                raise InputError(
                    f"{path} has no test row of the metric {label} on {dataset};"
                    f" {_RUN_AGAIN}"
                )


def _refuse_unknown_rows(
    run: Run, labels: Mapping[str, Sequence[str]], path: Path
) -> None:
    """Refuse a row of a combination that the experiment does not have.

    `labels` are those of the metrics at each point of the sweep.
    """
    known = set()
    for dataset, solver in itertools.product(run.datasets, run.solvers):
        for point, metrics in labels.items():
            for metric in metrics:
                known.add((dataset, solver, point, metric))
    columns = ["dataset", "solver", "sweep", "metric"]
    found = set(run.results[columns].itertuples(index=False, name=None))
    unknown = found - known
    if unknown:
        example = zip(columns, min(unknown), strict=True)
        phrase = ", ".join(f"{column} {value}" for column, value in example if value)
        raise InputError(
            f"{path} has a row of {phrase}; {path.with_name('experiment.json')} does"
            " not list this combination; write both files again with precbench run"
            " CONFIG"
        )


def read_values(folder: str | os.PathLike[str]) -> Result:
    """Return a study's ``illustration.json`` and ``values.csv`` as one object."""
    folder = Path(folder)
    path = folder / "values.csv"
    values = _read_table(path, na_values=[""])  # an empty cell is NaN
    if "value" not in values or values["value"].dtype.kind not in "fi":
        raise InputError(
            f"{path}: the column 'value' is missing or holds text; {_RUN_AGAIN}"
        )
    return _read_json(
        folder / "illustration.json", Result, folder=folder, values=values
    )


def read_csv(path: Path, columns: Mapping[str, type]) -> pd.DataFrame:
    """Return columns of a table by their types; an empty cell is "", False or NaN."""
    table = _read_table(path, dtype=str, usecols=lambda column: column in columns)
    for column in _ADDED:  # which files of earlier versions lack
        if column in columns and column not in table:
            table[column] = ""
    missing = [column for column in columns if column not in table]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}; {_RUN_AGAIN}")
    for column, kind in columns.items():
        if kind is bool:
            table[column] = table[column].str.lower() == "true"
        elif kind is float:
            table[column] = _numbers(table[column], path)
    return table


def _numbers(cells: pd.Series, path: Path) -> pd.Series:
    """Return a column of text as numbers, NaN for an empty cell."""
    try:
        numbers = cells.replace("", "nan").astype(float)
    except ValueError as error:
        raise InputError(
            f"{path}, column {cells.name}: {error}; {_RUN_AGAIN}"
        ) from None
    # the value of a risk may overflow
    if cells.name != "value" and np.isinf(numbers).any():
        raise InputError(
            f"{path}, column {cells.name}: a number is not finite; {_RUN_AGAIN}"
        )
    return numbers


_Kind = TypeVar("_Kind", bound=Fields)


def _read_json(path: Path, kind: type[_Kind], **more: Any) -> _Kind:
    """Return a `kind` made of the fields of a JSON file and those in `more`."""
    _require_file(path)
    content = path.read_bytes()
    try:
        fields = json.loads(content)
        if not isinstance(fields, dict):
            raise ValueError("the content is not a JSON object")
        return checked(fields | more, kind)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}; {_RUN_AGAIN}") from None


def _read_table(path: Path, **options: Any) -> pd.DataFrame:
    _require_file(path)
    try:
        # "NA" is text, not a missing value
        return pd.read_csv(path, keep_default_na=False, **options)
    except ValueError as error:  # of pandas, for an empty or ragged file
        raise InputError(f"{path} is not a table: {error}; {_RUN_AGAIN}") from None


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"there is no file {path}; give a results folder that `precbench run` has"
            " written"
        )

"""The measured values that claims are compared with, read from folders of results."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from precbench.core.errors import InputError
from precbench.core.studies import Result
from precbench.results.folders import find_result_folders
from precbench.results.read import Run, read_run, read_values

_CELL = ["dataset", "solver", "metric", "part"]
WALL_SECONDS = "wall_seconds"  # takes the place of a metric in claims about times


class MissingError(Exception):
    """The values for a claim were not measured; the text says why."""


class Outcomes:
    """The measured values of one experiment."""

    def __init__(self, run: Run):
        self.run = run  # its table: a row per trial, checkpoint, metric and part
        # trials that did not fail
        self._ok = run.results[run.results["status"] == "ok"]
        self._final = self._ok[self._ok["final"]]  # the last checkpoint of each trial
        # A cell is the rows of equal data set, solver, metric and part. Only their row
        # numbers are kept, since a frame for each cell would fill the memory.
        self._final_places = self._final.groupby(_CELL, sort=False).indices
        self._stand_ins = {  # data sets of which any trial had synthetic rows
            name for name in run.results["dataset"].unique() if run.is_stand_in(name)
        }

    @cached_property
    def _curve_places(self) -> dict[Any, Any]:
        """The row numbers of all checkpoints, by cell."""
        return self._ok.groupby(_CELL, sort=False).indices

    def _curve(self, *key: str) -> pd.DataFrame:
        """Return all checkpoints of the cell with this key, with split as index."""
        self._cell(*key)  # raises if the cell is missing
        return self._ok.iloc[self._curve_places[key]].set_index("split")

    def values(
        self,
        dataset: str,
        solver: str,
        metric: str,
        part: str = "test",
        checkpoint: int | None = None,
    ) -> pd.Series:
        """Return the metric by repetition, as the mean over its folds.

        A repetition that lacks a fold is left out.
        """
        if checkpoint is None:  # the final weights
            rows = self._cell(dataset, solver, metric, part)
        else:
            rows = self._curve(dataset, solver, metric, part)
            rows = rows[rows["checkpoint"] == checkpoint]
        folds = self.run.folds  # 1 without cross-validation
        # The index is the number of the split; the folds of a repetition are successive
        # splits.
        by_repetition = rows["value"].groupby((rows.index // folds).astype(int))
        has_all_folds = by_repetition.count() == folds
        return by_repetition.mean()[has_all_folds]

    def refuse_different_runs(self, dataset: str, solvers: Sequence[str]) -> None:
        """Raise `MissingError` if times are of different runs or machines."""
        trials = pd.concat([self._trials(dataset, solver) for solver in solvers])
        differences = {"run": "in different runs", "machine": "on different machines"}
        for column, where in differences.items():
            if trials[column].nunique() > 1:
                raise MissingError(
                    f"times of {self.run.name} were measured {where}: run the"
                    " experiment again with --timing --force"
                )

    def curves(
        self, dataset: str, solver: str, metric: str, part: str = "test"
    ) -> Mapping[Any, pd.DataFrame]:
        """Return by split the checkpoints in order, from the first where w is not 0.

        A checkpoint has ``value`` (larger is better) and ``wall_seconds``. At w = 0,
        where the cutting plane stays for its first rows, all scores are tied, and the
        value may be high.
        """
        rows = self._curve(dataset, solver, metric, part).sort_values(
            "checkpoint", kind="stable"
        )
        has_begun = rows["rows_seen"] > 0  # before the first row w is 0
        value_at_zero = (
            rows["value"].mask(has_begun).groupby(level="split").transform("max")
        )
        # w is not stored: w has left 0 once the value differs from the value at 0, and
        # later values count. Without a checkpoint at 0 all count: `value_at_zero` is
        # NaN, unequal to any value.
        has_moved = (rows["value"] != value_at_zero).groupby(level="split").cummax()
        # The end counts as well, if rows were seen.
        rows = rows[has_moved | (rows["final"] & has_begun)]
        sign = -1 if metric in self.run.losses else 1  # a larger value is better
        rows = rows.assign(value=sign * rows["value"])
        by_split = rows[["value", WALL_SECONDS]].groupby(level="split")
        return dict(iter(by_split))

    def times(self, dataset: str, solver: str) -> pd.Series:
        """Return the seconds to the final weights by split; trials ran alone."""
        rows = self._trials(dataset, solver)
        if (rows["timing"] != "sequential").any():
            raise MissingError(
                f"trials of {self.run.name} ran in parallel: rerun with --timing"
            )
        return rows[WALL_SECONDS]

    def final_rows(self, dataset: str, solver: str, metric: str = "") -> pd.DataFrame:
        """Return a row for each trial that has the `metric` (default: the first)."""
        return self._points(dataset, solver, metric or self.run.metrics[0], "test")

    def sweep(
        self,
        dataset: str,
        solver: str,
        metric: str,
        part: str = "test",
        points: Sequence[str] = (),
    ) -> pd.DataFrame:
        """Return the values by split (rows) and point of the sweep (columns).

        Only splits that have all points are returned; by default all points are.
        """
        rows = self._points(dataset, solver, metric, part).reset_index()
        values = rows.pivot(index="split", columns="sweep", values="value")
        missing = sorted(set(points) - set(values.columns))
        if missing:
            raise MissingError(
                f"the results of {self.run.name} lack the points {', '.join(missing)}"
                " of the sweep: run the experiment with these values"
            )
        columns = list(points) or values.columns
        return values[columns].dropna()

    def _trials(self, dataset: str, solver: str) -> pd.DataFrame:
        """Return the final rows, one for each trial."""
        # Any metric and part would do, as the columns of a trial are the same in each.
        return self._cell(dataset, solver, self.run.metrics[0], "test")

    def _cell(self, dataset: str, solver: str, metric: str, part: str) -> pd.DataFrame:
        """Return the final rows of a cell without a sweep, with split as index."""
        rows = self._points(dataset, solver, metric, part)
        if rows.index.has_duplicates:  # several points of the sweep
            raise MissingError(
                f"{metric} of {self.run.name} was measured at several points of the"
                " sweep, but the claim needs one point: give the kind 'variation', or"
                " 'order' with the key 'at'"
            )
        return rows

    def _points(
        self, dataset: str, solver: str, metric: str, part: str
    ) -> pd.DataFrame:
        """Return the final rows of a cell, of all points of a sweep, by split."""
        key = (dataset, solver, metric, part)
        self._refuse_missing(dataset)
        if key not in self._final_places:
            raise MissingError(
                f"the results hold no {metric} of {solver} on {dataset} ({part} set):"
                " run the experiment with this metric and solver, or see in"
                " summary.csv why it failed"
            )
        return self._final.iloc[self._final_places[key]].set_index("split")

    def shape(self, dataset: str) -> Mapping[str, Any]:
        """Return the counts of a data set: rows, features, positives and so on."""
        self._refuse_missing(dataset)
        return self.run.data[dataset].model_dump()

    def _refuse_missing(self, dataset: str) -> None:
        """Raise `MissingError` without results on the real rows of a data set."""
        if dataset not in self.run.data:
            raise MissingError(
                f"the results hold nothing of {dataset}: get its rows, see precbench"
                f" data info {dataset}, and run again"
            )
        # The rows were synthetic in all trials, or in some.
        if self.run.data[dataset].stand_in or dataset in self._stand_ins:
            raise MissingError(
                f"synthetic data stood in for {dataset}: add the real files, see"
                f" precbench data info {dataset}, and run again"
            )


@dataclass
class Evidence:
    """What was measured, by name of the experiment or study."""

    outcomes: dict[str, Outcomes] = field(default_factory=dict)
    values: dict[str, pd.DataFrame] = field(default_factory=dict)  # of studies
    has_results: bool = False  # whether the folders hold results, even of smoke size


def read_evidence(folders: Iterable[str | os.PathLike[str]]) -> Evidence:
    """Read experiments and studies from folders of results, but for smoke sizes."""
    evidence = Evidence()
    folder_of: dict[str, Path] = {}
    for path, measured in _read_results(map(Path, folders)):
        evidence.has_results = True
        if measured.smoke:
            continue
        name = measured.name
        if folder_of.setdefault(name, path) != path:
            raise InputError(
                f"{folder_of[name]} and {path} both hold results of {name}; give only"
                " one folder"
            )
        if isinstance(measured, Run):
            evidence.outcomes[name] = Outcomes(measured)
        else:  # a study
            evidence.values[name] = measured.values
    return evidence


def _read_results(folders: Iterable[Path]) -> Iterator[tuple[Path, Run | Result]]:
    """Yield studies and experiments, each with its folder."""
    for folder in folders:
        for path in find_result_folders(folder, "values.csv"):
            yield path, read_values(path)
        for path in find_result_folders(folder, "results.csv"):
            yield path, read_run(path)

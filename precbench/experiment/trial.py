"""A trial: one solver on one split of one data set."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from math import prod
from typing import Any

from precbench.experiment.sections import (
    Checkpoints,
    Data,
    Dtype,
    FittedOn,
    Fourier,
    Limit,
    NamedData,
    Part,
    Scaling,
    SplitKind,
    is_tuned,
)
from precbench.metrics import METRICS, Metric
from precbench.seeds import generator
from precbench.sources import code_of
from precbench.store import SCHEMA

PREPARATION_VERSION = 1
"""Of all between the rows of a data set and a solver: splits, scaling, random features, seeds."""
TUNING_VERSION = 1
"""Of how candidates are measured and one is chosen."""

NO_NUMBERS = ("advice", "claims", "cli", "merge", "papers", "report", "score", "survey")
"""Parts of the package without which a trial is trained."""

_FOURIER = "fourier."
# The hash of the data stands for these.
_SOURCE = {"file", "labels", "card", "name", "on_missing", "time"}


@dataclass(frozen=True)
class Split:
    """One division of a data set.

    Attributes
    ----------
    kind : {"random", "kfold", "time", "provided", "none"}
    index : int
        For ``kfold`` it counts the folds of all repetitions, for ``time`` the test sets from the
        latest one back.
    seed : int
        The same for all folds of one repetition of a ``kfold``.
    n_splits : int
        Number of folds; used by ``kfold`` only.
    test_size : float
        Fraction of the rows in the test set; used by ``random`` and ``time``.
    train_size : int or None
        Number of training rows, in place of `test_size`.
    stratified : bool
    groups : {"keep", "ignore"}
        Whether rows of one group stay in one part.
    """

    kind: SplitKind
    index: int
    seed: int
    n_splits: int
    test_size: float
    train_size: int | None
    stratified: bool
    groups: str

    @property
    def fold(self) -> int:
        """Index of the test set in its partition; used by ``kfold`` only."""
        return self.index % self.n_splits

    def test_share(self, n_rows: int) -> float | None:
        """Return the fraction of rows in the test set, or None if it is the same in every split."""
        if self.kind == "kfold":
            return 1 / self.n_splits
        if self.kind == "random" and self.train_size is not None:
            return 1 - self.train_size / n_rows
        return self.test_size if self.kind in ("random", "time") else None

    def description(self) -> dict[str, Any]:
        """Return all that determines the split; it does not depend on the number of repetitions."""
        fields: dict[str, Any] = {"kind": self.kind, "groups": self.groups}
        if self.kind in ("random", "kfold"):
            fields |= {"seed": self.seed, "stratified": self.stratified}
        if self.kind == "random" and self.train_size is None:
            fields["test_size"] = self.test_size
        elif self.kind == "random":
            fields["train_size"] = self.train_size
        elif self.kind == "time":
            fields |= {"test_size": self.test_size, "index": self.index}
        elif self.kind == "kfold":
            fields |= {"n_splits": self.n_splits, "index": self.fold}
        return fields


@dataclass(frozen=True)
class Trial:
    """One solver on one split of one data set, with all its settings.

    Attributes
    ----------
    experiment : str
    dataset : NamedData, FileData, StreamedCard or StreamedFile
    scaling : {"none", "standardise", "unit", "unit-norm", "standardise-unit-norm"}
    scaling_fitted_on : {"train", "all"}
    split : Split
    solver : str
        Name in `SOLVERS`.
    label : str
        Name in tables and figures.
    params : dict
        All parameters except ``random_state``; a tuned one is ``{"tune": [candidates]}``.
    sweep : tuple of (str, value), or None
        The swept parameter and its value here.
    metric : Metric
        The metric that tuning optimises.
    validation_size : float
        Fraction of the training rows on which candidates are measured.
    checkpoints : int, "every" or tuple of float
        Number of points of the curve (1 keeps the final weights only), or their places.
    rows : int or None
        Maximum number of rows of the data set.
    seed : int
        Determined by the seed of the protocol, the data set and the split; the same for every
        solver.
    timeout : float
        Seconds after which the trial is aborted.
    limit : Limit or None
        Training time after which the solver is stopped, with its last iterate as the result.
    fourier : Fourier or None
        Random features in place of the scaled ones, drawn for each split.
    parts : tuple of {"test", "training"}
        The parts that it is measured on.
    dtype : {"float64", "float32"}
        Type in which the rows are kept.
    folds : int or None
        Number of folds of the training rows, each of which candidates are measured on in turn.
    tuning_rows : int or None
        At most so many training rows are used to choose among candidates.
    draw : int or None
        Most combinations of `candidates` that are tried.
    """

    experiment: str
    dataset: Data
    scaling: Scaling
    scaling_fitted_on: FittedOn
    split: Split
    solver: str
    label: str
    params: dict[str, Any]
    sweep: tuple[str, Any] | None
    metric: Metric
    validation_size: float
    checkpoints: Checkpoints
    rows: int | None
    seed: int
    timeout: float
    limit: Limit | None
    fourier: Fourier | None = None
    parts: tuple[Part, ...] = ("test",)
    dtype: Dtype = "float64"
    folds: int | None = None
    tuning_rows: int | None = None
    draw: int | None = None

    @property
    def sweep_point(self) -> str:
        """The swept parameter and its value: ``k=0.25``; empty without a sweep."""
        return "" if self.sweep is None else f"{self.sweep[0]}={self.sweep[1]}"

    @property
    def title(self) -> str:
        """Data set, split, label and point of the sweep, for messages."""
        name = f"{self.dataset.name} split {self.split.index} {self.label}"
        return f"{name} {self.sweep_point}".rstrip()

    @property
    def candidates(self) -> dict[str, list[Any]]:
        """The tuned parameters with their candidates; those of the random features come first."""
        features = {} if self.fourier is None else self.fourier.candidates
        mapped = {f"{_FOURIER}{name}": values for name, values in features.items()}
        own = {name: value["tune"] for name, value in self.params.items() if is_tuned(value)}
        return mapped | own

    def combinations(self) -> list[dict[str, Any]]:
        """Return the values of the tuned parameters to try, in the order of their product.

        Where there are more than `draw` they are drawn without replacement, by a seed that follows
        from the names and the lists alone.
        """
        lists = self.candidates
        if not self._draws:
            return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
        names = sorted(lists)
        sizes, order = [len(lists[name]) for name in names], [names.index(name) for name in lists]
        rng = generator("candidates", json.dumps(lists, sort_keys=True))
        drawn: set[tuple[int, ...]] = set()
        while len(drawn) < (self.draw or 0):
            drawn.add(tuple(rng.integers(sizes)[order].tolist()))
        return [
            {name: lists[name][place] for name, place in zip(lists, places, strict=True)}
            for places in sorted(drawn)
        ]

    @property
    def _draws(self) -> bool:
        return self.draw is not None and prod(map(len, self.candidates.values())) > self.draw

    def with_features(self, chosen: Mapping[str, Any]) -> "Trial":
        """Return the trial with the random features of a choice among `candidates`."""
        if self.fourier is None:
            return self
        own = {n.removeprefix(_FOURIER): v for n, v in chosen.items() if n.startswith(_FOURIER)}
        return replace(self, fourier=self.fourier.model_copy(update=own))

    def params_of(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the solver after a choice among `candidates`."""
        own = {name: v for name, v in chosen.items() if not name.startswith(_FOURIER)}
        return {**self.params, **own}

    @property
    def code(self) -> str:
        """A hash of the code that trains it, for its record; not part of its key."""
        from precbench.solvers import SOLVERS

        package = type(SOLVERS[self.solver]()).__module__.partition(".")[0]
        own = code_of("precbench", NO_NUMBERS)
        return own if package == "precbench" else f"{own} {code_of(package)}"

    def description(self, data_sha256: str) -> dict[str, Any]:
        """Return everything that the numbers of the trial depend on, and nothing else.

        Code counts by its versions: a number that moves where no version did fails a test
        (tests/test_versions.py).

        Parameters
        ----------
        data_sha256 : str
            Hash of the data set.

        Returns
        -------
        dict
            Strict JSON; its hash is the key of the trial. ``parts`` are those whose scores are
            stored, for a solver without weights.
        """
        from precbench.solvers import SOLVERS, LinearRanker

        preprocessing: dict[str, Any] = {"scaling": self.scaling, "dtype": self.dtype}
        # The other scalings fit nothing: equal numbers have one key, whatever this setting.
        if self.scaling not in ("none", "unit-norm"):
            preprocessing["fitted_on"] = self.scaling_fitted_on
        if not isinstance(self.dataset, NamedData):
            preprocessing |= self.dataset.model_dump(mode="json", exclude=_SOURCE)
        if self.fourier is not None:
            preprocessing["fourier"] = self.fourier.model_dump(mode="json")
        metric = {**asdict(self.metric), "package": METRICS.package(self.metric.name)}
        tuning: dict[str, Any] = {
            "candidates": self.candidates,
            "metric": metric,
            "folds": self.folds,
            "rows": self.tuning_rows,
            "draw": self.draw if self._draws else None,
        }
        fields = {
            "schema": SCHEMA,
            "dataset": self.dataset.name,
            "data_sha256": data_sha256,
            "rows": self.rows,
            "preprocessing": preprocessing,
            "split": {**self.split.description(), "validation_size": self.validation_size},
            "solver": self.solver,
            "algorithm_version": algorithm_version(self.solver, bool(self.candidates)),
            "params": {name: value for name, value in self.params.items() if not is_tuned(value)},
            "tuning": tuning if self.candidates else None,
            "checkpoints": self.checkpoints,
            "seed": self.seed,
        }
        if not isinstance(SOLVERS[self.solver](), LinearRanker):
            fields["parts"] = list(self.parts)
        return fields


def algorithm_version(solver: str, is_tuned: bool) -> dict[str, int | str]:
    """Return the versions of what the numbers of a trial depend on: solver, preparation, tuning."""
    from precbench.solvers import solver_version

    own = {"solver": solver_version(solver), "preparation": PREPARATION_VERSION}
    return {**own, "tuning": TUNING_VERSION} if is_tuned else own

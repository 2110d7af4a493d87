"""A trial: one solver on one split of one data set."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from math import prod
from typing import Any

from precbench.core.kinds import Dtype, Scaling, SplitKind
from precbench.core.seeds import generator
from precbench.core.source_code import code_of
from precbench.experiment.sections import (
    Checkpoints,
    Data,
    FittedOn,
    Fourier,
    Limit,
    NamedData,
    Part,
    is_tuned,
)
from precbench.ranking.metrics import METRICS, Metric
from precbench.results.records import SCHEMA

# Version of splits, scaling, random features and seeds: all between data set and solver
PREPARATION_VERSION = 1
# Version of how candidates are measured and chosen
TUNING_VERSION = 1

# Parts of the package that the numbers of a trial do not depend on
NO_NUMBERS = (
    "advice",
    "claims",
    "cli",
    "papers",
    "report",
    "results.measure",
    "results.merge",
    "survey",
)

_FOURIER = "fourier."
# Fields of a file or stream that do not count in a key, since the hash of the data does
_SOURCE = {"file", "labels", "card", "name", "on_missing", "time"}


@dataclass(frozen=True)
class Split:
    """A division of the rows into training and test rows."""

    kind: SplitKind
    index: int  # over all repetitions of a ``kfold``; from the latest back for ``time``
    seed: int  # the same for all folds of a repetition
    n_splits: int  # for ``kfold``
    test_size: float  # fraction of the rows, for ``random`` and ``time``
    train_size: int | None  # in rows, in place of `test_size`
    stratified: bool
    groups: str  # "keep" together, or "ignore"

    @property
    def fold(self) -> int:
        """The number of the fold in its repetition."""
        return self.index % self.n_splits

    def test_share(self, n_rows: int) -> float | None:
        """Return the share of test rows, None if the data set determines it."""
        if self.kind == "kfold":
            return 1 / self.n_splits
        if self.kind == "random" and self.train_size is not None:
            return 1 - self.train_size / n_rows
        if self.kind in ("random", "time"):
            return self.test_size
        return None

    def description(self) -> dict[str, Any]:
        """Return what determines the split; the number of repetitions does not."""
        fields: dict[str, Any] = {"kind": self.kind, "groups": self.groups}
        if self.kind in ("random", "kfold"):
            # The seed of a random split follows from its index; the folds of a
            # repetition have the same seed.
            fields |= {"seed": self.seed, "stratified": self.stratified}
        if self.kind == "kfold":
            fields |= {"n_splits": self.n_splits, "index": self.fold}
        if self.kind == "time":
            fields["index"] = self.index
        if self.kind == "random" and self.train_size is not None:
            fields["train_size"] = self.train_size
        elif self.kind in ("random", "time"):
            fields["test_size"] = self.test_size
        return fields


@dataclass(frozen=True)
class Trial:
    """A solver on a split of a data set, with all settings."""

    experiment: str
    dataset: Data
    scaling: Scaling
    scaling_fitted_on: FittedOn
    split: Split
    solver: str  # name in `SOLVERS`
    label: str  # name in tables and figures
    params: dict[str, Any]  # without random_state; if tuned: ``{"tune": [candidates]}``
    sweep: tuple[str, Any] | None  # the swept parameter and its value
    metric: Metric  # which tuning optimises
    validation_size: float  # fraction of the training rows
    checkpoints: Checkpoints
    rows: int | None  # at most so many rows of the data set
    seed: int  # from protocol, data set and split; the same for every solver
    timeout: float  # seconds until the trial is aborted
    limit: Limit | None
    fourier: Fourier | None = None  # random features, drawn for each split
    parts: tuple[Part, ...] = ("test",)  # to measure the trial on
    dtype: Dtype = "float64"
    folds: int | None = None  # of the training rows, to measure candidates on
    tuning_rows: int | None = None  # at most so many training rows for tuning
    draw: int | None = None  # at most so many combinations of `candidates`

    @property
    def sweep_point(self) -> str:
        """The swept parameter and its value: ``k=0.25``; empty without a sweep."""
        if self.sweep is None:
            return ""
        name, value = self.sweep
        return f"{name}={value}"

    @property
    def title(self) -> str:  # for messages
        name = f"{self.dataset.name} split {self.split.index} {self.label}"
        return f"{name} {self.sweep_point}".rstrip()

    @property
    def candidates(self) -> dict[str, list[Any]]:
        """The tuned parameters with their candidates, random features first."""
        candidates: dict[str, list[Any]] = {}
        if self.fourier is not None:
            for name, values in self.fourier.candidates.items():
                candidates[f"{_FOURIER}{name}"] = values
        for name, value in self.params.items():
            if is_tuned(value):
                candidates[name] = value["tune"]
        return candidates

    def combinations(self) -> list[dict[str, Any]]:
        """Return the values of tuned parameters to try, in the order of their product.

        Of more than `draw` combinations, `draw` are drawn, without replacement.
        """
        candidates = self.candidates
        if self.draw is not None and self._leaves_some_out:
            to_try = _draw_places(candidates, self.draw)
        else:
            places_by_parameter = [range(len(v)) for v in candidates.values()]
            to_try = list(product(*places_by_parameter))
        combinations = []
        for places in to_try:  # one in the list of each parameter
            combination = {}
            for name, place in zip(candidates, places, strict=True):
                combination[name] = candidates[name][place]
            combinations.append(combination)
        return combinations

    @property
    def _leaves_some_out(self) -> bool:
        """Whether there are more combinations than `draw`."""
        if self.draw is None:
            return False
        return prod(map(len, self.candidates.values())) > self.draw

    def with_features(self, chosen: Mapping[str, Any]) -> "Trial":
        """Return the trial with its random features set to the chosen candidates."""
        if self.fourier is None:
            return self
        features = {}
        for name, value in chosen.items():
            if name.startswith(_FOURIER):
                features[name.removeprefix(_FOURIER)] = value
        return replace(self, fourier=self.fourier.model_copy(update=features))

    def params_of(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the solver, with the chosen values."""
        params = dict(self.params)
        for name, value in chosen.items():
            if not name.startswith(_FOURIER):
                params[name] = value
        return params

    @property
    def code(self) -> str:
        """A hash of the code that the trial runs, for its record, not for its key."""
        from precbench.solvers import SOLVERS
        from precbench.solvers.own_class import digest_of

        own_hash = code_of("precbench", NO_NUMBERS)
        digest = digest_of(self.solver)
        if digest:  # the solver is a class in a file
            return f"{own_hash} {digest}"
        package = type(SOLVERS[self.solver]()).__module__.partition(".")[0]
        if package == "precbench":
            return own_hash
        return f"{own_hash} {code_of(package)}"  # the solver is of another package

    def description(self, data_sha256: str) -> dict[str, Any]:
        """Return everything that the trial's numbers depend on; its hash is the key.

        Code counts by versions: tests/test_versions.py fails if a number moves without
        a new one.
        """
        from precbench.solvers import SOLVERS, LinearRanker

        has_candidates = bool(self.candidates)
        split = self.split.description() | {"validation_size": self.validation_size}
        params = {
            name: value for name, value in self.params.items() if not is_tuned(value)
        }
        fields = {
            "schema": SCHEMA,
            "dataset": self.dataset.name,
            "data_sha256": data_sha256,
            "rows": self.rows,
            "preprocessing": self._description_of_preprocessing(),
            "split": split,
            "solver": self.solver,
            "algorithm_version": algorithm_version(self.solver, has_candidates),
            "params": params,
            "tuning": self._description_of_tuning() if has_candidates else None,
            "checkpoints": self.checkpoints,
            "seed": self.seed,
        }
        # Without weights, which give scores of any part, only the scores of these parts
        # are stored.
        if not isinstance(SOLVERS[self.solver](), LinearRanker):
            fields["parts"] = list(self.parts)
        return fields

    def _description_of_preprocessing(self) -> dict[str, Any]:
        """Return what determines the rows between the data set and the solver."""
        fields: dict[str, Any] = {"scaling": self.scaling, "dtype": self.dtype}
        # The scalings "none" and "unit-norm" fit nothing.
        if self.scaling not in ("none", "unit-norm"):
            fields["fitted_on"] = self.scaling_fitted_on
        # options that are not in the hash of the data
        if not isinstance(self.dataset, NamedData):
            fields |= self.dataset.model_dump(mode="json", exclude=_SOURCE)
        if self.fourier is not None:
            fields["fourier"] = self.fourier.model_dump(mode="json")
        return fields

    def _description_of_tuning(self) -> dict[str, Any]:
        """Return what determines the choice of tuned parameters."""
        package = METRICS.package(self.metric.name)
        return {
            "candidates": self.candidates,
            "metric": asdict(self.metric) | {"package": package},
            "folds": self.folds,
            "rows": self.tuning_rows,
            "draw": self.draw if self._leaves_some_out else None,
        }


def _draw_places(
    candidates: Mapping[str, Sequence[Any]], n_drawn: int
) -> list[tuple[int, ...]]:
    """Draw combinations, each as a place in the list of each parameter.

    The draw depends on names and lists alone, and so is equal for all data sets and
    splits. A place in each list is drawn in the order of the sorted names, so that the
    order of the config changes nothing.
    """
    names = sorted(candidates)
    sizes = [len(candidates[name]) for name in names]
    rng = generator("candidates", json.dumps(candidates, sort_keys=True))
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < n_drawn:
        places = dict(zip(names, rng.integers(sizes).tolist(), strict=True))
        drawn.add(tuple(places[name] for name in candidates))
    return sorted(drawn)


def algorithm_version(solver: str, with_tuning: bool) -> dict[str, int | str]:
    """Return the versions of the parts of a trial: solver, preparation and tuning."""
    from precbench.solvers import solver_version

    versions: dict[str, int | str] = {
        "solver": solver_version(solver),
        "preparation": PREPARATION_VERSION,
    }
    if with_tuning:
        versions["tuning"] = TUNING_VERSION
    return versions

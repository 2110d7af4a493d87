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
class Split:  # a division of the rows into training and test rows
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
        return self.test_size if self.kind in ("random", "time") else None

    def description(self) -> dict[str, Any]:
        """Return what determines the split; the number of repetitions does not."""
        size = "test_size" if self.train_size is None else "train_size"
        # for "random" and "kfold"
        drawn = {"seed": self.seed, "stratified": self.stratified}
        fields: dict[str, dict[str, Any]] = {
            "random": drawn | {size: getattr(self, size)},  # the seed differs by index
            "kfold": drawn | {"n_splits": self.n_splits, "index": self.fold},
            # 0 is the latest
            "time": {"test_size": self.test_size, "index": self.index},
        }
        return {"kind": self.kind, "groups": self.groups, **fields.get(self.kind, {})}


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
        return "" if self.sweep is None else f"{self.sweep[0]}={self.sweep[1]}"

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
        if self._draws:
            places = self._drawn_places(candidates)
        else:
            places = list(product(*(range(len(v)) for v in candidates.values())))
        combinations = []
        for combination in places:
            chosen = {}
            for (name, values), place in zip(
                candidates.items(), combination, strict=True
            ):
                chosen[name] = values[place]
            combinations.append(chosen)
        return combinations

    def _drawn_places(
        self, candidates: Mapping[str, Sequence[Any]]
    ) -> list[tuple[int, ...]]:
        """Draw combinations, each as a place in the list of each parameter.

        The draw depends on names and lists alone, and so is equal for all data sets and
        splits. A place in each list is drawn in the order of the sorted names, so that
        the order of the config changes nothing.
        """
        names = sorted(candidates)
        sizes = [len(candidates[name]) for name in names]
        config_order = [names.index(name) for name in candidates]
        rng = generator("candidates", json.dumps(candidates, sort_keys=True))
        drawn: set[tuple[int, ...]] = set()
        while len(drawn) < (self.draw or 0):
            drawn.add(tuple(rng.integers(sizes)[config_order].tolist()))
        return sorted(drawn)

    @property
    def _draws(self) -> bool:
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
        # Modules that no number depends on are left out; a solver's other package adds
        # a hash.
        from precbench.solvers import SOLVERS

        package = type(SOLVERS[self.solver]()).__module__.partition(".")[0]
        own = code_of("precbench", NO_NUMBERS)
        return own if package == "precbench" else f"{own} {code_of(package)}"

    def description(self, data_sha256: str) -> dict[str, Any]:
        """Return everything that the trial's numbers depend on; its hash is the key.

        Code counts by versions: tests/test_versions.py fails if a number moves without
        a new one.
        """
        from precbench.solvers import SOLVERS, LinearRanker

        preprocessing: dict[str, Any] = {"scaling": self.scaling, "dtype": self.dtype}
        # The scalings "none" and "unit-norm" fit nothing, so that `fitted_on` does not
        # matter.
        if self.scaling not in ("none", "unit-norm"):
            preprocessing["fitted_on"] = self.scaling_fitted_on
        # options that are not in the hash of the data
        if not isinstance(self.dataset, NamedData):
            preprocessing |= self.dataset.model_dump(mode="json", exclude=_SOURCE)
        if self.fourier is not None:
            preprocessing["fourier"] = self.fourier.model_dump(mode="json")
        tuning: dict[str, Any] = {
            "candidates": self.candidates,
            "metric": {
                **asdict(self.metric),
                "package": METRICS.package(self.metric.name),
            },
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
            "split": {
                **self.split.description(),
                "validation_size": self.validation_size,
            },
            "solver": self.solver,
            "algorithm_version": algorithm_version(self.solver, bool(self.candidates)),
            "params": {
                name: value
                for name, value in self.params.items()
                if not is_tuned(value)
            },
            "tuning": tuning if self.candidates else None,
            "checkpoints": self.checkpoints,
            "seed": self.seed,
        }
        # Without weights, which give scores of any part, only the scores of these parts
        # are stored.
        if not isinstance(SOLVERS[self.solver](), LinearRanker):
            fields["parts"] = list(self.parts)
        return fields


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

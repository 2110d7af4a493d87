"""A trial: one solver on one split of one data set."""

from dataclasses import asdict, dataclass
from typing import Any

from precbench.experiment.sections import (
    Checkpoints,
    Data,
    FittedOn,
    Fourier,
    Limit,
    Metric,
    NamedData,
    Scaling,
    SplitKind,
)
from precbench.experiment.validation import is_tuned
from precbench.store import SCHEMA, key_of

_WHERE_FROM = {"file", "labels", "card", "name", "on_missing"}  # the hash says what was found there


@dataclass(frozen=True)
class Split:
    """One division of a data set.

    Attributes
    ----------
    kind : {"random", "kfold", "provided", "none"}
    index : int
        Which one; for ``kfold`` it counts the folds of all repetitions.
    seed : int
        The same for all folds of one repetition of a ``kfold``.
    n_splits : int
        The number of folds, of use for ``kfold`` only.
    test_size : float
        The share of the rows tested on, of use for ``random`` only.
    train_size : int or None
        Rows to train on, in place of `test_size`.
    stratified : bool
    groups : {"keep", "ignore"}
        Whether rows of one group stay on one side.
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
        """Which part of its partition is tested on; of use for ``kfold`` only."""
        return self.index % self.n_splits

    def description(self) -> dict[str, Any]:
        """Return what makes the split: more repetitions leave the first ones as they were."""
        about: dict[str, Any] = {"kind": self.kind, "groups": self.groups}
        if self.kind in ("random", "kfold"):
            about |= {"seed": self.seed, "stratified": self.stratified}
        if self.kind == "random" and self.train_size is None:
            about["test_size"] = self.test_size
        elif self.kind == "random":
            about["train_size"] = self.train_size
        elif self.kind == "kfold":
            about |= {"n_splits": self.n_splits, "index": self.fold}
        return about


@dataclass(frozen=True)
class Trial:
    """One solver on one split of one data set: all that a worker needs to know.

    Attributes
    ----------
    experiment : str
    dataset : NamedData, FileData, StreamedCard or StreamedFile
    scaling : {"none", "standardise", "unit"}
    scaling_fitted_on : {"train", "all"}
    split : Split
    solver : str
        Name in the registry.
    label : str
        Name in the tables.
    params : dict
        All parameters but ``random_state``; a tuned one is ``{"tune": [candidates]}``.
    sweep : tuple of (str, value), or None
        The swept parameter and its value here.
    metric : Metric
        What tuning maximises.
    validation_size : float
        The share of the training part on which tuning looks.
    checkpoints : int, "every" or tuple of float
        Number of points of the curve (1 keeps the final weights only), or where they lie.
    rows : int or None
        At most this many rows of the data set are used.
    seed : int
        Follows from the protocol's seed, the data set and the split only, so it is the same for
        every solver.
    timeout : float
        Seconds after which the trial is ended.
    limit : Limit or None
        When the solver is stopped, with its last iterate as the result.
    fourier : Fourier or None
        Random features in place of the scaled ones, drawn anew for each split.
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

    @property
    def candidates(self) -> dict[str, list[Any]]:
        """The parameters to tune and their candidates."""
        return {name: value["tune"] for name, value in self.params.items() if is_tuned(value)}

    def description(self, data_sha256: str, solver_version: int | str) -> dict[str, Any]:
        """Return all that the trial's numbers depend on, and nothing else.

        Parameters
        ----------
        data_sha256 : str
            Hash of the data as they are read.
        solver_version : int or str
            Version of the solver's algorithm.

        Returns
        -------
        dict
            Strict JSON.
        """
        preprocessing: dict[str, Any] = {"scaling": self.scaling}
        if self.scaling != "none":
            preprocessing["fitted_on"] = self.scaling_fitted_on
        if not isinstance(self.dataset, NamedData):
            preprocessing |= self.dataset.model_dump(mode="json", exclude=_WHERE_FROM)
        if self.fourier is not None:
            preprocessing["fourier"] = self.fourier.model_dump(mode="json")
        tuning = {
            "candidates": self.candidates,
            "metric": asdict(self.metric),
        }
        return {
            "schema": SCHEMA,
            "dataset": self.dataset.name,
            "data_sha256": data_sha256,
            "rows": self.rows,
            "preprocessing": preprocessing,
            "split": {**self.split.description(), "validation_size": self.validation_size},
            "solver": self.solver,
            "algorithm_version": solver_version,
            "params": {n: v for n, v in self.params.items() if not is_tuned(v)},
            "tuning": tuning if self.candidates else None,
            "checkpoints": self.checkpoints,
            "seed": self.seed,
        }

    def key(self, data_sha256: str, solver_version: int | str) -> str:
        """Return the name of the trial's record."""
        return key_of(self.description(data_sha256, solver_version))

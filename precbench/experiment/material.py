"""The rows that a trial trains and is measured on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.data import Dataset, load_dataset
from precbench.data.own import read_own_file
from precbench.data.preprocess import Scaler
from precbench.data.splits import split_rows, validation_split
from precbench.errors import InputError
from precbench.experiment.sections import FileData, NamedData
from precbench.experiment.trial import Trial


def read_data(
    entry: NamedData | FileData,
    *,
    mirror: str | None = None,
    stand_ins: bool = True,
    rows: int | None = None,
) -> Dataset:
    """Load what an entry of a config names.

    Parameters
    ----------
    entry : NamedData or FileData
    mirror : str, optional
        Folder or address that is asked before the official ones.
    stand_ins : bool, default=True
        False turns ``on_missing: stand-in`` into an error.
    rows : int, optional
        Keep at most so many rows: a random choice, always the same, with the classes in their
        proportions and at least two rows of each.

    Returns
    -------
    Dataset
    """
    if isinstance(entry, FileData):
        options = entry.model_dump(exclude={"file", "name"}, exclude_none=True)
        dataset = replace(read_own_file(entry.file, **options)[0], name=entry.name)
    else:
        on_missing = entry.on_missing if stand_ins else "error"
        dataset = load_dataset(entry.name, mirror=mirror, on_missing=on_missing)
    return dataset if rows is None else _at_most(dataset, rows)


@dataclass(frozen=True, eq=False)
class TrainingPart:
    """The training rows in random order, those of the validation part last.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_train, n_features)
        Scaled.
    y : ndarray of shape (n_train,)
    n_fit : int
        Rows before the validation part.
    """

    X: Any
    y: NDArray[np.float64]
    n_fit: int


def training_part(trial: Trial, dataset: Dataset) -> TrainingPart:
    """Gather and scale the training rows: the one copy that a trial makes of them.

    They come in the same order for every solver, so that comparisons on a split are paired.
    """
    rows, _ = _divided(trial, dataset)
    keep_groups = trial.split.groups == "keep"
    groups = dataset.groups[rows] if dataset.groups is not None and keep_groups else None
    n_fit = len(rows)
    try:
        fit, validation = validation_split(
            dataset.y[rows], trial.validation_size, [trial.seed, "validation"], groups
        )
        rows, n_fit = rows[np.concatenate([fit, validation])], len(fit)
    except InputError:  # too few rows for a validation part
        if trial.candidates:
            raise
    X = dataset.X[rows]
    _scaler(trial, dataset, X).transform_in_place(X)
    return TrainingPart(X, dataset.y[rows], n_fit)


def test_part(trial: Trial, dataset: Dataset) -> tuple[Any, NDArray[np.float64]]:
    """Gather and scale the rows that a trial is measured on; return X and y."""
    training, test = _divided(trial, dataset)
    scaler = _scaler(trial, dataset, lambda: dataset.X[training])
    X = dataset.X[test]
    scaler.transform_in_place(X)
    return X, dataset.y[test]


def _divided(trial: Trial, dataset: Dataset) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    split = trial.split
    divided = split_rows(
        replace(dataset, groups=None) if split.groups == "ignore" else dataset,
        split.kind,
        split.index,
        n_splits=split.n_splits,
        test_size=split.test_size,
        stratified=split.stratified,
        seed=split.seed,
    )
    return divided.train, divided.test


def _scaler(trial: Trial, dataset: Dataset, training: Any | Callable[[], Any]) -> Scaler:
    scaler = Scaler(trial.scaling)
    if trial.scaling == "none":
        return scaler
    if trial.scaling_fitted_on == "all":
        return scaler.fit(dataset.X)
    return scaler.fit(training() if callable(training) else training)


def _at_most(dataset: Dataset, rows: int) -> Dataset:
    if dataset.X.shape[0] <= rows:
        return dataset
    rng = np.random.default_rng(0)
    kept = []
    for label in (-1.0, 1.0):
        members = np.flatnonzero(dataset.y == label)
        share = max(2, round(rows * len(members) / len(dataset.y)))
        kept.append(rng.choice(members, min(share, len(members)), replace=False))
    chosen = np.sort(np.concatenate(kept))
    return replace(
        dataset,
        X=dataset.X[chosen],
        y=dataset.y[chosen],
        groups=None if dataset.groups is None else dataset.groups[chosen],
        n_train=None if dataset.n_train is None else int(np.sum(chosen < dataset.n_train)),
    )

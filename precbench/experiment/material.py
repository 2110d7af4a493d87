"""The rows that a trial trains and is measured on."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
    divided = _divided(trial, dataset)
    X = dataset.X[divided.train]
    _scaler(trial, dataset, X).transform_in_place(X)
    return TrainingPart(X, dataset.y[divided.train], divided.n_fit)


def test_part(trial: Trial, dataset: Dataset) -> tuple[Any, NDArray[np.float64]]:
    """Gather the rows that a trial is measured on, scaled as the training rows are.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_test, n_features)
    y : ndarray of shape (n_test,)
    """
    divided = _divided(trial, dataset)
    X = dataset.X[divided.test]
    if trial.scaling != "none":
        scaler = _scaler(trial, dataset, dataset.X[divided.train])
        scaler.transform_in_place(X)
    return X, dataset.y[divided.test]


class _Divided(NamedTuple):
    train: NDArray[np.intp]  # in random order, those of the validation part last
    n_fit: int
    test: NDArray[np.intp]


def _divided(trial: Trial, dataset: Dataset) -> _Divided:
    rule = trial.split
    if rule.groups == "ignore":
        dataset = replace(dataset, groups=None)
    split = split_rows(
        dataset,
        rule.kind,
        rule.fold if rule.kind == "kfold" else rule.index,
        n_splits=rule.n_splits,
        test_size=rule.test_size,
        train_size=rule.train_size,
        stratified=rule.stratified,
        seed=rule.seed,
    )
    train = split.train
    groups = None if dataset.groups is None else dataset.groups[train]
    try:
        fit, validation = validation_split(
            dataset.y[train], trial.validation_size, [trial.seed, "validation"], groups
        )
    except InputError:  # too few rows for a validation part
        if trial.candidates:
            raise
        return _Divided(train, len(train), split.test)
    return _Divided(train[np.concatenate([fit, validation])], len(fit), split.test)


def _scaler(trial: Trial, dataset: Dataset, X_train: Any) -> Scaler:
    return Scaler(trial.scaling).fit(X_train if trial.scaling_fitted_on == "train" else dataset.X)


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

"""Division of rows into training, validation and test rows.

Rows in memory are divided by `precbench.data.splits`: a part has its exact size, and
may be stratified or keep groups together. A stream may have too many rows for lists of
row numbers: each row draws its part for itself, and the parts have about their sizes.
Hence a data set and the same one streamed (`ijcnn1` and `ijcnn1-streamed`) train and
test on different rows.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.seeds import trial_seed, uniforms
from precbench.data import Dataset, RowStream, StreamedDataset
from precbench.data.row_stream import Keep
from precbench.data.splits import RowSplit, split_rows, validation_split
from precbench.experiment.trial import Split, Trial


def check_division(rule: Split, dataset: Dataset) -> None:
    """Refuse a rule for splits that the data set does not allow."""
    if rule.kind == "provided" and dataset.n_train is None:
        raise InputError(
            f"data set {dataset.name} has no provided split; set protocol.split to"
            " random or kfold"
        )
    if rule.kind == "time" and dataset.time is None:
        raise InputError(
            f"data set {dataset.name} has no times, which protocol.split: time needs;"
            " name the column of times beside the file (time: COLUMN), or set"
            " protocol.split to random"
        )
    must_keep_groups = dataset.groups is not None and rule.groups == "keep"
    if isinstance(dataset, StreamedDataset) and must_keep_groups:
        raise InputError(
            f"data set {dataset.name} has groups, but the rows of a stream are divided"
            " one by one, which separates groups; set protocol.groups to ignore, or"
            " remove stream: true from the data set"
        )


def smallest_part(trial: Trial, dataset: Dataset) -> int:
    """Return about how many rows the smallest part has at least, 1 if unknown.

    Parts are the rows for testing, fitting and validation.
    """
    n_rows = dataset.X.shape[0]
    test_share = trial.split.test_share(n_rows)
    # a time window has no exact share
    if test_share is None or trial.split.kind == "time":
        return 1
    validation_share = trial.validation_size if trial.folds is None else 1 / trial.folds
    smaller_of_test_and_training = min(test_share, 1 - test_share)
    smaller_of_validation_and_fitting = min(validation_share, 1 - validation_share)
    return int(
        smaller_of_test_and_training * smaller_of_validation_and_fitting * n_rows
    )


class PartSize(NamedTuple):
    """The size of a part of the rows."""

    n_pos: int
    n_rows: int


def part_sizes(trial: Trial, dataset: Dataset) -> dict[str, PartSize]:
    """Return the sizes of the parts by name.

    Parts are "training", "test" and, if the trial has candidates, "validation".
    """
    if isinstance(dataset, StreamedDataset):
        streams = divide_stream(trial, dataset)
        parts = {"training": streams.train, "test": streams.test}
        if trial.candidates:
            parts["validation"] = streams.train.part(streams.validation)
        return {
            name: PartSize(part.n_pos, part.shape[0]) for name, part in parts.items()
        }
    division = divide_rows(trial, dataset)
    train = division.split.train
    rows = {"training": train, "test": division.split.test}
    if trial.candidates and trial.folds:
        folds = divide_into_folds(trial, dataset, train)
        smallest_fold = min((fold.validation for fold in folds), key=len)
        rows["validation"] = train[smallest_fold]
    elif trial.candidates:
        rows["validation"] = train[division.n_fit :]
    sizes = {}
    for name, numbers in rows.items():
        n_pos = int(np.count_nonzero(dataset.y[numbers] > 0))
        sizes[name] = PartSize(n_pos, len(numbers))
    return sizes


class RowDivision(NamedTuple):
    """The rows of the parts.

    Training rows for fitting come first, and training rows for validation last, each in
    random order.
    """

    split: RowSplit
    n_fit: int  # number of training rows for fitting


def divide_rows(trial: Trial, dataset: Dataset) -> RowDivision:
    """Divide rows in memory.

    The order of rows is the same for every solver: comparisons on a split are paired.
    """
    rule = trial.split
    if rule.groups == "ignore":
        dataset = replace(dataset, groups=None)
    number = rule.fold if rule.kind == "kfold" else rule.index
    split = split_rows(
        dataset,
        rule.kind,
        number,
        n_splits=rule.n_splits,
        test_size=rule.test_size,
        train_size=rule.train_size,
        stratified=rule.stratified,
        seed=rule.seed,
    )
    train = split.train
    groups = None if dataset.groups is None else dataset.groups[train]
    time = None
    if rule.kind == "time" and dataset.time is not None:
        time = dataset.time[train]
    needs_validation_rows = bool(trial.candidates) and trial.folds is None
    try:
        fit, validation = validation_split(
            dataset.y[train],
            trial.validation_size,
            [trial.seed, "validation"],
            groups=groups,
            time=time,
        )
    except InputError:  # too few validation rows
        if needs_validation_rows:
            raise
        return RowDivision(split, n_fit=len(train))
    in_order = train[np.concatenate([fit, validation])]
    return RowDivision(RowSplit(in_order, split.test), n_fit=len(fit))


class TuningDivision(NamedTuple):
    """Training rows to fit candidates to, and training rows to compare them on.

    Each is a slice or places among the training rows; of a stream, a function that
    picks rows.
    """

    fit: Any
    validation: Any


def divide_into_folds(
    trial: Trial, dataset: Dataset, rows: NDArray[np.intp]
) -> list[TuningDivision]:
    """Return a division of training rows for each fold, which is held out.

    Folds are stratified, and groups stay together. There are at most as many folds as
    the rarer class has rows, or groups.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    assert trial.folds is not None
    y = dataset.y[rows]
    groups = None
    if dataset.groups is not None and trial.split.groups == "keep":
        _names, groups = np.unique(dataset.groups[rows], return_inverse=True)
    units = np.arange(len(rows)) if groups is None else groups  # which stay together
    n_units_with_negatives = len(np.unique(units[y == -1.0]))
    n_units_with_positives = len(np.unique(units[y == 1.0]))
    # with both classes in each fold
    most_folds = min(n_units_with_negatives, n_units_with_positives)
    if most_folds < 2:
        raise InputError(
            f"data set {dataset.name}: the training rows of split {trial.split.index}"
            " cannot be divided into folds with rows of both classes in each; remove"
            " tuning.folds"
        )
    splitter_class = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = splitter_class(
        min(trial.folds, most_folds),
        shuffle=True,
        random_state=trial_seed(trial.seed, "folds"),
    )
    usable = []
    for fit, fold in splitter.split(y, y, groups):
        # Large groups may leave one class in a fold, or in all other rows: the fold is
        # dropped.
        if len(set(y[fit])) == 2 and len(set(y[fold])) == 2:
            usable.append(TuningDivision(fit, fold))
    if not usable:
        raise InputError(
            f"data set {dataset.name}: the groups of split {trial.split.index} leave no"
            " fold of training rows with both classes; remove tuning.folds, or set"
            " protocol.groups to ignore"
        )
    return usable


class StreamDivision(NamedTuple):
    """The parts of a stream, unscaled."""

    train: RowStream
    test: RowStream
    validation: Keep  # tells which training rows are held out


def divide_stream(trial: Trial, dataset: StreamedDataset) -> StreamDivision:
    """Return the parts of a stream, in which a function of row numbers picks rows."""
    rule = trial.split
    rows = dataset.X
    is_validation = keep_share(0.0, trial.validation_size, trial.seed, "validation")
    if rule.kind == "none":  # trained and measured on all rows
        return StreamDivision(rows, rows, is_validation)
    is_test = _test_rows(rule, dataset)
    return StreamDivision(
        rows.part(all_but(is_test)), rows.part(is_test), is_validation
    )


def _test_rows(rule: Split, dataset: StreamedDataset) -> Keep:
    """Return a function that tells which of an array of row numbers are test rows."""
    if rule.kind == "provided":
        n_train = dataset.n_train or 0  # never None here: `check_division` refuses None
        return lambda numbers: numbers >= n_train
    # A row draws a number from [0, 1) by seed and purpose; `keep_share` accepts an
    # interval.
    if rule.kind == "random":
        return keep_share(0.0, rule.test_size, rule.seed, "test")
    # Of a ``kfold``, each fold has its interval of equal length.
    low = rule.fold / rule.n_splits
    high = (rule.fold + 1) / rule.n_splits
    return keep_share(low, high, rule.seed, "test")


def keep_share(low: float, high: float, *key: Hashable) -> Keep:
    """Return a function that accepts rows that draw a number from [low, high)."""
    return partial(in_share, key=key, low=low, high=high)


def all_but(keep: Keep) -> Keep:
    """Return a function that accepts the rows that `keep` does not accept."""
    return lambda rows: ~keep(rows)


def in_share(
    rows: NDArray[np.int64], key: Sequence[Hashable], low: float, high: float
) -> NDArray[np.bool_]:
    """Return whether each row draws a number from [low, high), determined by `key`."""
    drawn = uniforms(rows, *key)
    return (low <= drawn) & (drawn < high)

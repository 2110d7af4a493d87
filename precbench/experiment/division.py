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
from typing import NamedTuple

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
    keeps_groups = dataset.groups is not None and rule.groups == "keep"
    if isinstance(dataset, StreamedDataset) and keeps_groups:
        raise InputError(
            f"data set {dataset.name} has groups, but the rows of a stream are divided"
            " one by one, which separates groups; set protocol.groups to ignore, or"
            " remove stream: true from the data set"
        )


def smallest_part(trial: Trial, dataset: Dataset) -> int:
    """Return about how many rows the smallest part (test, fitting, validation) has.

    1: unknown.
    """
    n_rows = dataset.X.shape[0]
    test_share = trial.split.test_share(n_rows)
    # a time window has no exact share
    if test_share is None or trial.split.kind == "time":
        return 1
    validation_share = trial.validation_size if trial.folds is None else 1 / trial.folds
    # The smaller of test and training share, times the smaller of validation and
    # fitting share
    smaller = min(test_share, 1 - test_share) * min(
        validation_share, 1 - validation_share
    )
    return int(smaller * n_rows)


def part_sizes(trial: Trial, dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Return by part ("training", "test", "validation") the numbers of positives and of rows."""
    # There are validation rows only if the trial has candidates to compare.
    if isinstance(dataset, StreamedDataset):
        streams = divide_stream(trial, dataset)
        parts = {"training": streams.train, "test": streams.test}
        if trial.candidates:
            parts["validation"] = streams.train.part(streams.validation)
        return {name: (part.n_pos, part.shape[0]) for name, part in parts.items()}
    (train, test), n_fit = divide_rows(trial, dataset)
    rows = {"training": train, "test": test}
    if trial.candidates and trial.folds:
        folds = divide_into_folds(trial, dataset, train)
        # the smallest fold
        rows["validation"] = train[min((fold for _, fold in folds), key=len)]
    elif trial.candidates:
        # the training rows after the rows for fitting
        rows["validation"] = train[n_fit:]
    return {
        part: (int(np.count_nonzero(dataset.y[numbers] > 0)), len(numbers))
        for part, numbers in rows.items()
    }


def divide_rows(trial: Trial, dataset: Dataset) -> tuple[RowSplit, int]:
    """Divide rows in memory.

    Return the split, and how many training rows are for fitting.
    """
    # Training rows for fitting come first, and training rows for validation last, each
    # in random order. The order is the same for every solver: comparisons on a split
    # are paired.
    rule = trial.split
    if rule.groups == "ignore":
        dataset = replace(dataset, groups=None)
    train, test = split_rows(
        dataset,
        rule.kind,
        rule.fold if rule.kind == "kfold" else rule.index,  # the number of the split
        n_splits=rule.n_splits,
        test_size=rule.test_size,
        train_size=rule.train_size,
        stratified=rule.stratified,
        seed=rule.seed,
    )
    groups = None if dataset.groups is None else dataset.groups[train]
    time = (
        dataset.time[train]
        if rule.kind == "time" and dataset.time is not None
        else None
    )
    try:
        fit, validation = validation_split(
            dataset.y[train],
            trial.validation_size,
            [trial.seed, "validation"],
            groups,
            time,
        )
    except InputError:
        # too few validation rows, which matters only if there are candidates
        if trial.candidates and trial.folds is None:
            raise
        return RowSplit(train, test), len(train)
    return RowSplit(train[np.concatenate([fit, validation])], test), len(fit)


def divide_into_folds(
    trial: Trial, dataset: Dataset, rows: NDArray[np.intp]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return stratified folds of the training rows `rows`.

    Pairs of arrays of places in `rows`.
    """
    # The first array has the rows to fit, the second the rows of the fold, which are
    # held out. Groups stay together. There are at most as many folds as the rarer class
    # has rows, or groups.
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    assert trial.folds is not None
    y, groups = dataset.y[rows], None  # `y`: -1 or 1
    if dataset.groups is not None and trial.split.groups == "keep":
        _, groups = np.unique(dataset.groups[rows], return_inverse=True)  # ids from 0
    # rows of one id stay together
    ids = np.arange(len(rows)) if groups is None else groups
    # folds with both classes
    most = min(len(np.unique(ids[y == label])) for label in (-1.0, 1.0))
    if most < 2:
        raise InputError(
            f"data set {dataset.name}: the training rows of split {trial.split.index}"
            " cannot be divided into folds with rows of both classes in each; remove"
            " tuning.folds"
        )
    seed = trial_seed(trial.seed, "folds")
    rule = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = rule(min(trial.folds, most), shuffle=True, random_state=seed).split(
        y, y, groups
    )
    # Large groups may leave one class in a fold, or in all other rows: the fold is
    # dropped.
    usable = [
        (fit, fold) for fit, fold in folds if len({*y[fit]}) == len({*y[fold]}) == 2
    ]
    if not usable:
        raise InputError(
            f"data set {dataset.name}: the groups of split {trial.split.index} leave no"
            " fold of training rows with both classes; remove tuning.folds, or set"
            " protocol.groups to ignore"
        )
    return usable


class StreamDivision(NamedTuple):
    """The parts of a stream, unscaled.

    `validation` tells which training rows are held out.
    """

    train: RowStream
    test: RowStream
    validation: Keep


def divide_stream(trial: Trial, dataset: StreamedDataset) -> StreamDivision:
    """Return the parts of a stream.

    Functions of row numbers tell which rows are in which part.
    """
    rule, rows = trial.split, dataset.X
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
    return keep_share(
        rule.fold / rule.n_splits, (rule.fold + 1) / rule.n_splits, rule.seed, "test"
    )


def keep_share(low: float, high: float, *key: Hashable) -> Keep:
    """Return a function that accepts the rows that draw a number from [low, high) by a key."""
    return partial(in_share, key=key, low=low, high=high)


def all_but(keep: Keep) -> Keep:
    # a function that accepts the rows that `keep` does not accept
    return lambda rows: ~keep(rows)


def in_share(
    rows: NDArray[np.int64], key: Sequence[Hashable], low: float, high: float
) -> NDArray[np.bool_]:  # whether each row draws a number from [low, high)
    # a number in [0, 1) for each row, which the key determines
    drawn = uniforms(rows, *key)
    return (low <= drawn) & (drawn < high)

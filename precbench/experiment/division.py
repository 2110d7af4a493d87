"""Division of rows into training, validation and test rows.

Rows in memory are divided by `precbench.data.splits`: a part has its exact size, and may be
stratified or keep groups together. A stream may have too many rows for lists of row numbers: each
row draws its part for itself, and the parts have about their sizes. Hence a data set and the same
one streamed (`ijcnn1` and `ijcnn1-streamed`) train and test on different rows.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.data import Dataset, RowStream, StreamedDataset
from precbench.data.splits import RowSplit, split_rows, validation_split
from precbench.data.stream.row_stream import Keep
from precbench.errors import InputError
from precbench.experiment.trial import Split, Trial
from precbench.seeds import trial_seed, uniforms


def check_division(rule: Split, dataset: Dataset) -> None:
    """Refuse a rule that the data set does not allow."""
    if rule.kind == "provided" and dataset.n_train is None:
        raise InputError(f"{dataset.name} comes without a provided split; use 'random' or 'kfold'")
    if rule.kind == "time" and dataset.time is None:
        raise InputError(
            f"{dataset.name} has no times to split by: name the column of its file (time: COLUMN), "
            "or use 'random'"
        )
    if (
        isinstance(dataset, StreamedDataset)
        and dataset.groups is not None
        and rule.groups == "keep"
    ):
        raise InputError(
            f"{dataset.name} has groups, and the rows of a stream are divided one by one; set "
            "groups: ignore, or do not stream it"
        )


def smallest_part(trial: Trial, dataset: Dataset) -> int:
    """Return the approximate size of the smallest part; 1 if unknown."""
    n_rows = dataset.X.shape[0]
    tested = trial.split.test_share(n_rows)
    if tested is None or trial.split.kind == "time":
        return 1
    validated = trial.validation_size if trial.folds is None else 1 / trial.folds
    return int(min(tested, 1 - tested) * min(validated, 1 - validated) * n_rows)


def part_sizes(trial: Trial, dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Return the numbers of positives and of all rows in "training", "test" and "validation".

    The last only if the trial has candidates.
    """
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
        rows["validation"] = train[min((fold for _, fold in folds), key=len)]
    elif trial.candidates:
        rows["validation"] = train[n_fit:]
    return {
        n: (int(np.count_nonzero(dataset.y[numbers] > 0)), len(numbers))
        for n, numbers in rows.items()
    }


def divide_rows(trial: Trial, dataset: Dataset) -> tuple[RowSplit, int]:
    """Divide rows in memory; return the split, and the number of training rows before validation.

    The training rows are in random order, the validation set last: the same order for every solver,
    so that comparisons on a split are paired. Without anything to tune, too few rows for a
    validation set are no error.
    """
    rule = trial.split
    if rule.groups == "ignore":
        dataset = replace(dataset, groups=None)
    train, test = split_rows(
        dataset,
        rule.kind,
        rule.fold if rule.kind == "kfold" else rule.index,
        n_splits=rule.n_splits,
        test_size=rule.test_size,
        train_size=rule.train_size,
        stratified=rule.stratified,
        seed=rule.seed,
    )
    groups = None if dataset.groups is None else dataset.groups[train]
    time = dataset.time[train] if rule.kind == "time" and dataset.time is not None else None
    try:
        fit, validation = validation_split(
            dataset.y[train], trial.validation_size, [trial.seed, "validation"], groups, time
        )
    except InputError:
        if trial.candidates and trial.folds is None:
            raise
        return RowSplit(train, test), len(train)
    return RowSplit(train[np.concatenate([fit, validation])], test), len(fit)


def divide_into_folds(
    trial: Trial, dataset: Dataset, rows: NDArray[np.intp]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Divide training rows, as places in `rows`, into stratified folds; groups stay together.

    There are at most as many folds as a class has rows, or groups. Each is a pair of the other rows
    and its own.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    assert trial.folds is not None
    y, groups = dataset.y[rows], None
    if dataset.groups is not None and trial.split.groups == "keep":
        groups = np.unique(dataset.groups[rows], return_inverse=True)[1]
    ids = np.arange(len(rows)) if groups is None else groups
    most = min(len(np.unique(ids[y == label])) for label in (-1.0, 1.0))
    if most < 2:
        raise InputError(
            f"{dataset.name}: the training rows of split {trial.split.index} cannot be divided "
            "into folds with rows of both classes in each: leave out tuning.folds"
        )
    seed = trial_seed(trial.seed, "folds")
    rule = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = rule(min(trial.folds, most), shuffle=True, random_state=seed).split(y, y, groups)
    # Large groups may leave a fold, or the others, with one class.
    usable = [(fit, own) for fit, own in folds if len({*y[fit]}) == len({*y[own]}) == 2]
    if not usable:
        raise InputError(
            f"{dataset.name}: the groups of split {trial.split.index} leave no fold of the "
            "training rows with both classes: leave out tuning.folds, or ignore the groups"
        )
    return usable


class StreamDivision(NamedTuple):
    """The parts of a stream, unscaled; `validation` accepts numbers of training rows."""

    train: RowStream
    test: RowStream
    validation: Keep


def divide_stream(trial: Trial, dataset: StreamedDataset) -> StreamDivision:
    rule, rows = trial.split, dataset.X
    validation = share(0.0, trial.validation_size, trial.seed, "validation")
    if rule.kind == "none":
        return StreamDivision(rows, rows, validation)
    is_test = _test_rows(rule, dataset)
    return StreamDivision(rows.part(all_but(is_test)), rows.part(is_test), validation)


def _test_rows(rule: Split, dataset: StreamedDataset) -> Keep:
    """Return a function that maps row numbers to whether they are test rows."""
    if rule.kind == "provided":
        n_train = dataset.n_train or 0  # `check_division` has seen that there is one
        return lambda numbers: numbers >= n_train
    if rule.kind == "random":
        return share(0.0, rule.test_size, rule.seed, "test")
    return share(rule.fold / rule.n_splits, (rule.fold + 1) / rule.n_splits, rule.seed, "test")


def share(low: float, high: float, *key: Hashable) -> Keep:
    """Return a function that accepts the rows that draw a number from [low, high) by a key."""
    return partial(in_share, key=key, low=low, high=high)


def all_but(keep: Keep) -> Keep:
    return lambda rows: ~keep(rows)


def in_share(
    rows: NDArray[np.int64], key: Sequence[Hashable], low: float, high: float
) -> NDArray[np.bool_]:
    drawn = uniforms(rows, *key)
    return (low <= drawn) & (drawn < high)

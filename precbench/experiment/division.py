"""Which rows of a data set train, tune and test.

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
    """Refuse a rule that the data set does not allow.

    Raises
    ------
    InputError
        A provided split or times where there are none; for a stream, groups that are to be kept
        together.
    """
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
    """Return about how many rows the smallest part has; 1 where this is not known beforehand."""
    n_rows = dataset.X.shape[0]
    tested = trial.split.test_share(n_rows)
    if tested is None or trial.split.kind == "time":
        return 1
    validated = trial.validation_size if trial.folds is None else 1 / trial.folds
    return int(min(tested, 1 - tested) * min(validated, 1 - validated) * n_rows)


def part_sizes(trial: Trial, dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Return the numbers of positives and of all rows of each part.

    Returns
    -------
    dict of str to (int, int)
        Parts "training", "test" and, where the trial tunes something, "validation".
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
        rows["validation"] = train[min((held for _, held in folds), key=len)]
    elif trial.candidates:
        rows["validation"] = train[n_fit:]
    return {n: (int(np.count_nonzero(dataset.y[its] > 0)), len(its)) for n, its in rows.items()}


def divide_rows(trial: Trial, dataset: Dataset) -> tuple[RowSplit, int]:
    """Divide rows in memory.

    Returns
    -------
    split : RowSplit
        The training rows in random order, those of the validation set last: the same order for
        every solver, so that comparisons on a split are paired.
    n_fit : int
        Number of training rows before the validation set; all of them where the rows are too few
        for one and the trial has nothing to tune.

    Raises
    ------
    InputError
        If the rows cannot be divided like this.
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
    """Divide the training rows of a trial into folds, stratified, with groups kept together.

    Parameters
    ----------
    trial : Trial
        With `folds`; there are at most as many as a class has rows, or groups.
    dataset : Dataset
    rows : ndarray
        Numbers of the training rows, from `divide_rows`.

    Returns
    -------
    list of (ndarray, ndarray)
        For each fold the places in `rows` of the other training rows, and of its own.

    Raises
    ------
    InputError
        If the rows cannot be divided like this.
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
            f"into folds with rows of both classes in each"
        )
    seed = trial_seed(trial.seed, "folds")
    rule = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = rule(min(trial.folds, most), shuffle=True, random_state=seed).split(y, y, groups)
    both = [(fit, held) for fit, held in folds if all(len(set(y[p])) == 2 for p in (fit, held))]
    if not both:
        raise InputError(
            f"{dataset.name}: the groups of split {trial.split.index} leave no fold of the "
            "training rows with both classes"
        )
    return both


class StreamDivision(NamedTuple):
    """The parts of a stream.

    Attributes
    ----------
    train, test : RowStream
        Unscaled.
    validation : callable
        Maps row numbers to whether these training rows belong to the validation set.
    """

    train: RowStream
    test: RowStream
    validation: Keep


def divide_stream(trial: Trial, dataset: StreamedDataset) -> StreamDivision:
    """Divide a stream: each row draws its part for itself."""
    rule, rows = trial.split, dataset.X
    validation = share(0.0, trial.validation_size, trial.seed, "validation")
    if rule.kind == "none":
        return StreamDivision(rows, rows, validation)
    tested = _tested(rule, dataset)
    return StreamDivision(rows.part(all_but(tested)), rows.part(tested), validation)


def _tested(rule: Split, dataset: StreamedDataset) -> Keep:
    if rule.kind == "provided":
        n_train = dataset.n_train or 0  # `check_division` has seen that there is one
        return lambda numbers: numbers >= n_train
    if rule.kind == "random":
        return share(0.0, rule.test_size, rule.seed, "test")
    return share(rule.fold / rule.n_splits, (rule.fold + 1) / rule.n_splits, rule.seed, "test")


def share(low: float, high: float, *key: Hashable) -> Keep:
    """Return the rule of those rows that draw a number from [low, high)."""
    return partial(in_share, key=key, low=low, high=high)


def all_but(keep: Keep) -> Keep:
    """Return the rule of all other rows."""
    return lambda rows: ~keep(rows)


def in_share(
    rows: NDArray[np.int64], key: Sequence[Hashable], low: float, high: float
) -> NDArray[np.bool_]:
    """Return which rows draw a number in [low, high); each draws one from [0, 1).

    Parameters
    ----------
    rows : ndarray of shape (n,), int64
        Row numbers.
    key : sequence of str and int
        Purpose of the draw, see `precbench.seeds`.
    low, high : float
    """
    drawn = uniforms(rows, *key)
    return (low <= drawn) & (drawn < high)

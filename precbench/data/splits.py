"""Splits into training and test rows.

Random splits are keyed by seed, data set and index (`precbench.core.seeds`), whatever
else is run.
"""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.seeds import generator, legacy_generator
from precbench.core.text import count
from precbench.data.dataset import Dataset

MOST_FOLDS = 20  # a stratified split of groups rounds test_size to i/n, n at most this
_FEW_POSITIVES = 50  # with fewer, a random part might lack positives; a choice

Kind = Literal["random", "kfold", "time", "provided", "none"]


class RowSplit(NamedTuple):
    """The row numbers of both parts.

    Training rows in random order, test rows ascending.
    """

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def split_rows(
    dataset: Dataset,
    kind: Kind,
    index: int,
    *,
    n_splits: int = 5,
    test_size: float = 0.3,
    train_size: int | None = None,
    stratified: bool = False,
    seed: int = 0,
) -> RowSplit:
    """Return one split of a data set; rows of one group stay together.

    ``random``: the test set is a fraction `test_size` of the rows (of the groups),
    another draw for each index; `train_size` sets the number of training rows instead.
    ``kfold``: the test sets of the `n_splits` indices partition the rows. ``time``: the
    test set is the latest fraction `test_size` of the rows; for index 1 the fraction
    before that of index 0, and so on. All earlier rows are used for training, except
    rows of groups in the test set. Rows of equal time stay together, so the size of a
    set may differ slightly. ``provided``: the first ``dataset.n_train`` rows are the
    training set. ``none``: all rows are both training and test rows.
    """
    # The size of the test set: a fraction of the rows, or a number of rows
    size: float | int = test_size
    if train_size is not None:
        size = _test_size_for(train_size, dataset)
    match kind:
        case "random" | "kfold":
            train, test = _draw(dataset, kind, index, n_splits, size, stratified, seed)
        case "time":
            train, test = _split_by_time(dataset, index, size)
        case "provided":
            train, test = _split_as_provided(dataset)
        case "none":
            train = test = np.arange(len(dataset.y))
    remedy = "another test_size or n_splits" if kind == "time" else "a stratified split"
    split_name = f"split {index} of {dataset.name}"
    _require_both_classes(dataset.y[train], f"{split_name}: the training set", remedy)
    _require_both_classes(dataset.y[test], f"{split_name}: the test set", remedy)
    rng = generator(seed, dataset.split_key or dataset.name, index, "order")
    return RowSplit(rng.permutation(train), np.sort(test))


def _require_both_classes(y: NDArray[np.float64], part: str, remedy: str) -> None:
    n_pos = int(np.count_nonzero(y > 0))
    if n_pos in (0, len(y)):
        raise InputError(
            f"{part} has {n_pos} positives in {len(y)} rows, but both classes are"
            f" needed; use {remedy}"
        )


class Rule(NamedTuple):
    """The arguments of `split_rows` that `rule_for_new_lists` chooses."""

    kind: Kind
    test_size: float
    stratified: bool


def rule_for_new_lists(dataset: Dataset, n_splits: int) -> Rule:
    """Return how to divide a list so that intervals over its splits hold for new lists.

    With times: the latest rows, up to half of them. Otherwise 30 % at random,
    stratified only if a part might lack positives: all stratified splits have one
    number of positives, new lists have different numbers, so the intervals would be too
    narrow.
    """
    if dataset.time is not None:
        return Rule("time", test_size=min(0.3, 0.5 / n_splits), stratified=False)
    return Rule("random", test_size=0.3, stratified=dataset.n_pos < _FEW_POSITIVES)


def validation_split(
    y_train: NDArray[np.float64],
    share: float,
    seed_key: Sequence[Hashable],
    groups: NDArray[np.int64] | None = None,
    time: NDArray[np.int64] | NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the rows to fit, and of a `share` to validate, ascending.

    With `time` the latest rows are validated, else the parts are stratified and groups
    stay whole.
    """
    from sklearn.model_selection import StratifiedShuffleSplit

    random_state = legacy_generator(*seed_key)
    try:
        if time is not None:
            fit_rows, validation_rows = _split_at_window(time, share, index=0)
        elif groups is None:
            splitter = StratifiedShuffleSplit(
                1, test_size=share, random_state=random_state
            )
            no_features = np.empty((len(y_train), 0))
            fit_rows, validation_rows = next(splitter.split(no_features, y_train))
        else:
            fit_rows, validation_rows = _random_stratified_groups(
                y_train > 0, groups, share, random_state
            )
    except ValueError as error:
        raise InputError(
            f"{len(y_train)} training rows with {np.count_nonzero(y_train > 0)}"
            f" positives cannot be split with a validation_size of {share:g}: {error};"
            " give another validation_size"
        ) from error
    for rows in (fit_rows, validation_rows):
        if len(set(y_train[rows].tolist())) < 2:
            raise InputError(
                f"{len(y_train)} training rows with {np.count_nonzero(y_train > 0)}"
                f" positives: with a validation_size of {share:g} a part has a single"
                " class; give another validation_size"
            )
    return np.sort(fit_rows), np.sort(validation_rows)


def _test_size_for(train_size: int, dataset: Dataset) -> int:
    """Return the number of test rows that leaves `train_size` rows for training."""
    if dataset.groups is not None:
        raise InputError(
            f"train_size is a number of rows, but groups of {dataset.name} stay whole;"
            " give test_size, or leave out the groups"
        )
    n_rows = len(dataset.y)
    if not 0 < train_size < n_rows:
        raise InputError(
            f"train_size is {train_size:,}, and {dataset.name} has {n_rows:,} rows;"
            f" give 1 to {n_rows - 1:,}, so that rows remain for the test set"
        )
    return n_rows - train_size


def _draw(
    dataset: Dataset,
    kind: Kind,
    index: int,
    n_splits: int,
    test_size: float | int,
    stratified: bool,
    seed: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return training and test rows of a random split, or of fold `index`."""
    n_pos = dataset.n_pos
    n_rows = len(dataset.y)
    if stratified and min(n_pos, n_rows - n_pos) < 2:
        raise InputError(
            f"{dataset.name} has {count(n_pos, 'positive')} in {n_rows:,} rows;"
            " a stratified split needs at least 2 rows of each class; do not stratify,"
            " or add rows"
        )
    split_key = dataset.split_key or dataset.name
    try:
        if kind == "random":  # each split is a draw of its own
            random_state = legacy_generator(seed, split_key, index, "random")
            return _draw_rows(dataset, test_size, stratified, random_state)
        # All folds belong to one partition.
        random_state = legacy_generator(seed, split_key, "kfold")
        return _draw_folds(dataset, index, n_splits, stratified, random_state)
    except ValueError as error:
        option = "test_size" if kind == "random" else "n_splits"
        if dataset.groups is None:
            remedy = f"change {option}, or add rows of each class"
        else:
            remedy = f"change {option}, or the column of groups"
        raise InputError(
            f"{dataset.name}: no {kind} split is possible: {str(error).rstrip('.')};"
            f" {remedy}"
        ) from error


def _draw_rows(
    dataset: Dataset,
    test_size: float | int,
    stratified: bool,
    random_state: np.random.RandomState,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return training rows, and test rows drawn at random."""
    groups = dataset.groups
    if groups is not None and stratified:
        return _random_stratified_groups(dataset.y > 0, groups, test_size, random_state)
    splitters = _splitters(groups is not None, stratified)
    splitter = splitters.shuffle(1, test_size=test_size, random_state=random_state)
    [parts] = _splits_of(splitter, dataset)
    return parts


def _draw_folds(
    dataset: Dataset,
    index: int,
    n_splits: int,
    stratified: bool,
    random_state: np.random.RandomState,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of all folds but one, and those of fold `index`."""
    groups = dataset.groups
    if groups is not None and stratified:
        n_groups = len(np.unique(groups))
        if not 2 <= n_splits <= n_groups:
            raise ValueError(
                f"n_splits is {n_splits}, not 2 to {n_groups} (number of groups)"
            )
        fold = stratified_group_folds(dataset.y > 0, groups, n_splits, random_state)
        return np.flatnonzero(fold != index), np.flatnonzero(fold == index)
    splitters = _splitters(groups is not None, stratified)
    splitter = splitters.folds(n_splits, shuffle=True, random_state=random_state)
    return _splits_of(splitter, dataset)[index]


class _Splitters(NamedTuple):
    """Classes of scikit-learn that divide rows."""

    shuffle: Any
    folds: Any


def _splitters(has_groups: bool, stratified: bool) -> _Splitters:
    """Return the classes that divide whole groups, each class of rows, or any rows."""
    from sklearn import model_selection as ms

    if has_groups:
        return _Splitters(ms.GroupShuffleSplit, ms.GroupKFold)
    if stratified:
        return _Splitters(ms.StratifiedShuffleSplit, ms.StratifiedKFold)
    return _Splitters(ms.ShuffleSplit, ms.KFold)


def _splits_of(splitter: Any, dataset: Dataset) -> list[Any]:
    """Return training and test rows of all splits that a splitter makes."""
    no_features = np.empty((len(dataset.y), 0))
    return list(splitter.split(no_features, dataset.y, dataset.groups))


def _split_as_provided(dataset: Dataset) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first `n_train` rows, and the other rows.

    Refuse groups with rows in both parts.
    """
    assert dataset.n_train is not None
    train, test = np.split(np.arange(len(dataset.y)), [dataset.n_train])
    if dataset.groups is not None:
        in_both = np.intersect1d(dataset.groups[train], dataset.groups[test])
        if len(in_both):
            raise InputError(
                f"the provided split of {dataset.name} has rows of {len(in_both)}"
                " groups in both parts; use a split of kind 'random' or 'kfold'"
            )
    return train, test


def _split_by_time(
    dataset: Dataset, index: int, test_size: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all rows before window `index` of the times (0: the latest), and its rows.

    Earlier rows of groups in the window are left out.
    """
    assert dataset.time is not None
    try:
        train, test = _split_at_window(dataset.time, test_size, index)
    except ValueError as error:
        raise InputError(
            f"split {index} of {dataset.name} by time: {error}; give another test_size"
            " or n_splits"
        ) from error
    if dataset.groups is None:
        return train, test
    is_in_both = np.isin(dataset.groups[train], dataset.groups[test])
    n_in_both = int(np.count_nonzero(is_in_both))
    # Too few would be left to train on; half is a choice.
    if n_in_both > len(train) / 2:
        raise InputError(
            f"split {index} of {dataset.name}: {n_in_both:,} of"
            f" {len(train):,} earlier rows belong to groups in the test set and cannot"
            " be trained on; leave out the groups: a split by time never trains on"
            " later rows anyway"
        )
    return train[~is_in_both], test


def _split_at_window(
    time: NDArray[np.int64] | NDArray[np.float64], share: float, index: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows before and in window `index` (0: the latest).

    Refuse if either is empty.
    """
    order = np.argsort(time, kind="stable")
    sorted_time = time[order]
    # Each window is a fraction of the rows, and begins and ends at the nearest change
    # of time.
    size = max(1, round(share * len(time)))
    planned_stop = len(time) - index * size
    start = _nearest_change(sorted_time, planned_stop - size)
    stop = _nearest_change(sorted_time, planned_stop)
    fault = ""
    if start == 0:
        fault = "no earlier row is left"
    elif start == stop:
        fault = "the window is empty"
    if fault:
        raise ValueError(
            f"{fault}, as a window of {share:g} of the rows begins and ends where the"
            " time changes, and the times have"
            f" {count(len(np.unique(time)), 'different value')}"
        )
    return order[:start], order[start:stop]


def _nearest_change(sorted_time: NDArray, place: int) -> int:
    """Return the place nearest to `place` where the time changes.

    Of two that are as near, the earlier one; the first row and the end count.
    """
    if place <= 0:
        return 0
    if place >= len(sorted_time):
        return place
    # Rows of the time at `place` go from `begin` to `end`.
    time = sorted_time[place]
    begin = int(np.searchsorted(sorted_time, time, side="left"))
    end = int(np.searchsorted(sorted_time, time, side="right"))
    if place - begin <= end - place:
        return begin
    return end


def _random_stratified_groups(
    is_positive: NDArray[np.bool_],
    groups: NDArray[np.int64],
    share: float,
    random_state: np.random.RandomState,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to keep, and those to hold out: whole folds, about a `share`."""
    most_folds = min(MOST_FOLDS, len(np.unique(groups)))
    if most_folds < 2:
        raise ValueError("all rows are of one group, which cannot be split")
    # A share of 3/10 holds out three of ten folds.
    nearest = Fraction(share).limit_denominator(most_folds)
    if nearest == 0:
        nearest = Fraction(1, most_folds)
    n_folds = max(nearest.denominator, 2)
    n_held_out = min(nearest.numerator, n_folds - 1)  # at least one fold is kept
    fold = stratified_group_folds(is_positive, groups, n_folds, random_state)
    is_held_out = fold < n_held_out
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


# --- folds of whole groups ---


def stratified_group_folds(
    is_positive: NDArray[np.bool_],
    groups: NDArray[np.int64],
    n_folds: int,
    random_state: np.random.RandomState,
) -> NDArray[np.intp]:
    """Return the fold of each row, with whole groups and equal shares of both classes.

    Groups with equal numbers of positives and of negatives are assigned together, to
    the folds that hold the least of their classes, large groups first. In n rows there
    are at most about n^(2/3) such kinds of groups. Every group is in every fold with
    the same probability. A fold may be empty if a few groups hold most of the rows.
    """
    _, group_of_row = np.unique(groups, return_inverse=True)
    kinds = _kinds_of_groups(group_of_row, is_positive)
    dealt = _deal_kinds(kinds, n_folds, random_state)
    # Which group of a kind goes to which fold, and the numbers of the folds, are
    # random.
    shuffled = random_state.permutation(len(kinds.of_group))
    by_kind = shuffled[np.argsort(kinds.of_group[shuffled], kind="stable")]
    fold_numbers = np.tile(random_state.permutation(n_folds), len(dealt))
    # The groups of each kind in turn: so many to the first fold, so many to the next.
    fold_of_group = np.empty(len(kinds.of_group), dtype=np.intp)
    fold_of_group[by_kind] = np.repeat(fold_numbers, dealt.ravel())
    return fold_of_group[group_of_row]


class _Kinds(NamedTuple):
    """Kinds of groups: those of one kind have as many positives and as many rows."""

    of_group: NDArray[np.intp]  # the number of the kind of each group
    n_groups: NDArray[np.intp]  # of each kind
    class_sizes: NDArray[np.int64]  # positives and negatives of a group of each kind


def _kinds_of_groups(
    group_of_row: NDArray[np.intp], is_positive: NDArray[np.bool_]
) -> _Kinds:
    """Take groups with as many positives and as many rows together as one kind."""
    size = np.bincount(group_of_row)
    n_pos = np.bincount(group_of_row, weights=is_positive).astype(np.int64)
    # Both numbers of a group in one code
    base = size.max() + 1
    codes, kind_of_group, n_groups_of_kind = np.unique(
        n_pos * base + size, return_inverse=True, return_counts=True
    )
    n_pos_of_kind, size_of_kind = np.divmod(codes, base)
    class_sizes = np.column_stack([n_pos_of_kind, size_of_kind - n_pos_of_kind])
    return _Kinds(
        of_group=kind_of_group, n_groups=n_groups_of_kind, class_sizes=class_sizes
    )


def _deal_kinds(
    kinds: _Kinds, n_folds: int, random_state: np.random.RandomState
) -> NDArray[np.int64]:
    """Return how many groups of each kind (row) go to each fold (column)."""
    # A fold with r_c of the t_c rows of each class c costs the sum of (r_c / t_c)^2. A
    # group with s_c rows adds two sums to that cost, of 2 r_c s_c / t_c^2 and of s_c^2
    # / t_c^2. The second sum is the group's `weight`; the first, divided by twice the
    # weight, is the fold's `load`.
    class_sizes = kinds.class_sizes
    class_totals = class_sizes.T.dot(kinds.n_groups)  # t_c
    scaled_sizes = class_sizes / class_totals**2  # s_c / t_c^2
    weight = (scaled_sizes * class_sizes).sum(axis=1)
    # Kinds of large weight first; within one power of two in random order, to vary the
    # folds.
    _, power_of_two = np.frexp(weight)
    n_kinds = len(class_sizes)
    order = np.lexsort([random_state.permutation(n_kinds), -power_of_two])

    dealt = np.empty((n_kinds, n_folds), dtype=np.int64)
    fold_rows = np.zeros((n_folds, 2), dtype=np.int64)  # of each class, so far
    for i in order:
        load = (fold_rows * scaled_sizes[i]).sum(axis=1) / weight[i]
        dealt[i] = _deal_to_lowest(load, fold_rows.sum(axis=1), kinds.n_groups[i])
        fold_rows += dealt[i][:, None] * class_sizes[i]
    return dealt


def _deal_to_lowest(
    load: NDArray[np.float64], rows: NDArray[np.int64], n_units: int
) -> NDArray[np.int64]:
    """Return how many of `n_units` each fold gets if each goes to the lowest load.

    A unit adds 1 to the load; of equal loads the fold with fewer rows comes first.
    """
    order = np.lexsort([rows, load])
    ascending = load[order]
    # The equal load of the 1, 2, ... lowest folds if all units are shared among these
    # alone; folds whose load is below the level get units.
    levels = (n_units + np.cumsum(ascending)) / np.arange(1, len(load) + 1)
    n_filled = np.count_nonzero(levels > ascending)
    level = levels[n_filled - 1]
    units = np.zeros(len(load), dtype=np.int64)
    units[order[:n_filled]] = np.floor(level - ascending[:n_filled])
    # Rounding down leaves some units over: one each for the lowest folds.
    n_over = n_units - units.sum()
    lowest = np.lexsort([rows, load + units])[:n_over]
    units[lowest] += 1
    return units

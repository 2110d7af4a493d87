"""Folds of whole groups with equal numbers of rows and equal fractions of positives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stratified_group_folds(
    is_positive: NDArray[np.bool_],
    groups: NDArray[np.int64],
    n_folds: int,
    random_state: np.random.RandomState,
) -> NDArray[np.intp]:
    """Assign each row to a fold of whole groups, so that each fold gets its share of both classes.

    Groups with equal numbers of positives and of negatives are assigned together, to the folds that
    hold the least of what they have, large groups first. Of n rows there are about n^(2/3) such
    kinds at most. Every group is in every fold with the same probability. A fold may be empty if a
    few groups hold most of the rows.
    """
    _, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group)
    positives = np.bincount(group, weights=is_positive).astype(np.int64)
    codes, kind, n_groups = np.unique(
        positives * (sizes.max() + 1) + sizes, return_inverse=True, return_counts=True
    )
    n_pos, size = np.divmod(codes, sizes.max() + 1)
    of_class = np.column_stack([n_pos, size - n_pos])
    of_kind = of_class / of_class.T.dot(n_groups) ** 2  # the gradient of a sum of squared shares
    weight = (of_kind * of_class).sum(axis=1)
    # Large before small, by powers of two; at random within, or the folds would always be the same.
    turns = np.lexsort([random_state.permutation(len(codes)), -np.frexp(weight)[1]])

    held = np.zeros((n_folds, 2), dtype=np.int64)
    dealt = np.empty((len(codes), n_folds), dtype=np.int64)
    for turn in turns:
        load = (held * of_kind[turn]).sum(axis=1) / weight[turn]
        dealt[turn] = _level(load, held.sum(axis=1), n_groups[turn])
        held += dealt[turn][:, None] * of_class[turn]

    shuffled = random_state.permutation(len(sizes))
    by_kind = shuffled[np.argsort(kind[shuffled], kind="stable")]
    names = np.tile(random_state.permutation(n_folds), len(codes))
    fold = np.empty(len(sizes), dtype=np.intp)
    fold[by_kind] = np.repeat(names, dealt.ravel())
    return fold[group]


def _level(load: NDArray[np.float64], rows: NDArray[np.int64], n_units: int) -> NDArray[np.int64]:
    """Return how many of `n_units` go to each fold when each unit goes to the lowest load."""
    order = np.lexsort([rows, load])
    ascending = load[order]
    levels = (n_units + np.cumsum(ascending)) / np.arange(1, len(load) + 1)
    below = np.count_nonzero(levels > ascending)
    given = np.zeros(len(load), dtype=np.int64)
    given[order[:below]] = np.floor(levels[below - 1] - ascending[:below])
    given[np.lexsort([rows, load + given])[: n_units - given.sum()]] += 1
    return given

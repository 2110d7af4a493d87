"""Shapley values.

What each column of a row adds to its score, against the training rows.

Unknown columns take the training mean (weights) or both sides of a split, weighted by
their shares of the training rows (trees). The contributions of a row and the base add
up to the row's score.
"""

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.model.shapley_kernel import add_contributions, outline
from precbench.solvers.common.random_features import RandomFeatures
from precbench.solvers.others.members import Member, log_odds
from precbench.solvers.others.trees import Trees

_VALUES_AT_ONCE = 2**21  # numbers in an array: 16 MiB, or 32 MiB if complex
# Error that is accepted of random features, as a share of all weights: cosines of large
# numbers are inaccurate.
_MOST_LOST = 1e-6
# Points of a quadrature. 64 are exact up to degree 127, and beyond it up to rounding.
_MOST_POINTS = 64
# Products at quadrature points in one call of the kernel, which takes about 0.1 s.
_UPDATES_PER_SLICE = 2**24


class Contributions(NamedTuple):
    """What columns add to the scores of rows.

    Attributes
    ----------
    base : float
        The score of a row with no known column.
    values : ndarray of shape (n_rows, n_columns)
    """

    base: float
    values: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        members: Iterable[Member],
        X: NDArray[np.float64],
        mean: NDArray[np.float64],
        column: NDArray[np.int32],
        *,
        is_stacked: bool,
    ) -> Self:
        """Explain the weighted sum of the members' scores.

        `column` numbers each feature's column.

        In a stack, the score of a forest is the log odds of its probability. The log
        odds are divided among the columns in proportion to what they add to the
        probability.
        """
        n_columns = int(column.max()) + 1
        base = 0.0
        values = np.zeros((len(X), n_columns))
        for member in members:
            part = _explain_member(member, X, mean, column, n_columns)
            if is_stacked and member.trees is not None and member.trees.is_forest:
                part = part._as_log_odds()
            base += member.weight * part.base
            values += member.weight * part.values
        return cls(base, values)

    def _as_log_odds(self) -> "Contributions":
        """Return contributions to log odds in place of probabilities (less 1/2).

        Each row is multiplied by its `slope`: the change of the log odds divided by the
        change of the probability p, or its limit 1 / (p (1 - p)) where p hardly
        changes.
        """
        base = log_odds(np.array([self.base]))  # takes a probability less 1/2, too
        change = self.values.sum(axis=1)  # of the probability of each row
        change_of_log_odds = log_odds(self.base + change) - base
        probability = np.clip(self.base + 0.5, 1e-9, 1 - 1e-9)  # keeps the slope finite
        slope = np.full(len(change), 1 / (probability * (1 - probability)))
        is_changed = np.abs(change) > 1e-9
        np.divide(change_of_log_odds, change, out=slope, where=is_changed)
        return Contributions(base.item(), self.values * slope[:, np.newaxis])


def _explain_member(
    member: Member,
    X: NDArray[np.float64],
    mean: NDArray[np.float64],
    column: NDArray[np.int32],
    n_columns: int,
) -> Contributions:
    """Return what columns add to a member's scores, without the member's weight."""
    if member.trees is not None:
        if member.random_features is not None:
            raise InputError(
                "the model cannot be explained: its trees are fitted to random Fourier"
                " features; fit the model without them, or with a linear solver"
            )
        return _explain_trees(member.trees, X, column, n_columns)
    assert member.coef is not None
    if member.random_features is not None:
        return _explain_waves(
            member.random_features, member.coef, X, mean, column, n_columns
        )
    values = _by_column((X - mean) * member.coef, column, n_columns)
    return Contributions(float(member.coef @ mean), values)


def _by_column(
    values: NDArray[np.float64], column: NDArray[np.int32], n_columns: int
) -> NDArray[np.float64]:
    """Return sums over the features of each column.

    A column of categories has several features.
    """
    if n_columns == values.shape[1]:  # each column has one feature
        return values
    sums = np.zeros((len(values), n_columns))
    np.add.at(sums.T, column, values.T)  # changes `sums`, of which sums.T is a view
    return sums


@cache
def _quadrature(n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points in (0, 1) and the weights of Gauss-Legendre quadrature."""
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return (points + 1) / 2, weights / 2


def _explain_trees(
    trees: Trees, X: NDArray[np.float64], column: NDArray[np.int32], n_columns: int
) -> Contributions:
    """Return what columns add to the scores of trees, tree by tree.

    The kernel has the mathematics.
    """
    rows = np.ascontiguousarray(trees.compared(X))
    base = 0.0
    values = np.zeros((len(X), n_columns))
    # Each tree begins at its root, and ends where the next begins, or with the array.
    for first, stop in pairwise([*trees.root, len(trees.feature)]):
        nodes = slice(first, stop)  # of one tree
        base += _add_tree(trees, nodes, rows, column, values)
    n_trees = len(trees.root)
    if trees.is_forest and n_trees:
        # The score of a forest is the mean probability of its trees, less 1/2.
        return Contributions(base / n_trees - 0.5, values / n_trees)
    return Contributions(trees.base + base, values)


class OutlinedTree(NamedTuple):
    """A tree as the kernel takes it, with an entry for each node.

    Attributes
    ----------
    feature : ndarray
        Compared at the node, below 0 at a leaf.
    value : ndarray
        Threshold, or the result of a leaf.
    right : ndarray
        Right child; the left one is the next node.
    share : ndarray
        Share of the training rows of its parent that went to the node.
    column : ndarray
        Column of each feature.
    parent, above, zero, reach : ndarray
        Written by `outline`: the parent; the next node up whose condition is on the
        same column, or the root; the product z of the shares at all such nodes, after
        the condition; the share of all rows that reach the node.
    """

    feature: NDArray[np.int32]
    value: NDArray[np.float64]
    right: NDArray[np.int32]
    share: NDArray[np.float64]
    column: NDArray[np.int32]
    parent: NDArray[np.int32]
    above: NDArray[np.int32]
    zero: NDArray[np.float64]
    reach: NDArray[np.float64]


def _add_tree(
    trees: Trees,
    nodes: slice,
    rows: NDArray,
    column: NDArray[np.int32],
    values: NDArray,
) -> float:
    """Add the columns' contributions in the tree of these nodes to `values`.

    Return the tree's base, its mean over the training rows.
    """
    tree = _tree_to_outline(trees, nodes, column)
    n_above = outline(tree)  # the largest number of columns above one leaf
    if n_above < 0:  # too many splits to count them
        raise InputError(
            "the model cannot be explained: a tree has a leaf below 1,024 splits or"
            " more; fit it with fewer or larger leaves, such as by max_leaf_nodes,"
            " num_leaves or min_samples_leaf"
        )
    is_leaf = tree.feature < 0
    base = float(tree.value[is_leaf] @ tree.reach[is_leaf])
    if n_above == 0:  # a tree of one leaf has only a base
        return base
    # Half as many points as columns are exact, see the kernel.
    quadrature = np.stack(_quadrature(min((n_above + 1) // 2, _MOST_POINTS)))
    n_nodes = len(tree.feature)
    n_points = max(1, _VALUES_AT_ONCE // n_nodes)  # of a block, to save memory
    for first_point in range(0, quadrature.shape[1], n_points):
        t, weights = quadrature[:, first_point : first_point + n_points]
        factors = _factors(t, weights, tree.zero[:, np.newaxis], tree.above)
        # `product` and `state` are scratch space of the kernel.
        product = np.empty((n_nodes, len(t)))
        state = np.empty(n_nodes, dtype=np.int8)
        n_rows = max(1, _UPDATES_PER_SLICE // product.size)  # of a call of the kernel
        for start in range(0, len(rows), n_rows):
            part = slice(start, start + n_rows)
            add_contributions(rows[part], tree, factors, product, state, values[part])
    return base


def _tree_to_outline(
    trees: Trees, nodes: slice, column: NDArray[np.int32]
) -> OutlinedTree:
    """Return the tree of these nodes; the kernel's `outline` writes its last arrays."""
    feature = trees.feature[nodes]
    right = trees.right[nodes] - nodes.start
    cover = trees.cover[nodes].astype(np.float64)  # training rows of each node
    n_nodes = len(feature)
    inner = np.flatnonzero(feature >= 0)
    left = inner + 1
    children = np.stack([left, right[inner]])
    share = np.ones(n_nodes)
    share[children] = cover[children] / cover[children].sum(axis=0)
    return OutlinedTree(
        feature=feature,
        value=trees.value[nodes],
        right=right.astype(np.int32),
        share=share,
        column=column,
        parent=np.empty(n_nodes, dtype=np.int32),
        above=np.empty(n_nodes, dtype=np.int32),
        zero=np.empty(n_nodes),
        reach=np.empty(n_nodes),
    )


def _factors(
    t: NDArray[np.float64],
    weights: NDArray[np.float64],
    zero: NDArray[np.float64],
    above: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the `factors` (n_nodes, 4, n_points) that `add_contributions` takes.

    In the product at a point t each column has the factor t o + (1 - t) z: o is 1 if a
    row passes all conditions on this column down to a node, else 0, and z is `zero`.
    This factor replaces that of the node `above`, the next one up on the same column or
    the root, whose factor is 1: hence quotients. The leaves below were counted there:
    hence differences. The row passed at `above`, as it gets no factor below a failure.
    """
    # The factor t o + (1 - t) z, of rows that pass (o = 1) and of those that fail.
    passing = t + (1 - t) * zero
    failing = (1 - t) * zero
    # (o - z) / factor. If a row fails, it is -z / ((1 - t) z).
    gain_passing = (1 - zero) / passing
    gain_failing = -1 / (1 - t)
    # The first two multiply products, the last two sums over leaves.
    return np.stack(
        [
            passing / passing[above],
            failing / passing[above],
            weights * (gain_passing - gain_passing[above]),
            weights * (gain_failing - gain_passing[above]),
        ],
        axis=1,
    )


def _explain_waves(
    features: RandomFeatures,
    coef: NDArray[np.float64],
    X: NDArray[np.float64],
    mean: NDArray[np.float64],
    column: NDArray[np.int32],
    n_columns: int,
) -> Contributions:
    """Return what columns add to scores by weights of random Fourier features.

    `mean` stands for unknown columns. The score is Re sum_c a_c prod_j exp(i p_cj),
    where random feature c has the amplitude a_c, and column j adds p_cj to its phase.
    With g_cj = exp(i p_cj) - 1 the Shapley value of j is

        Re sum_c a_c g_cj int_0^1 prod over j' != j of (1 + t g_cj') dt.
    """
    # The phase of each random feature if no column is known.
    mean_phase = features.weights @ mean + features.offset
    amplitude = np.sqrt(2 / len(coef)) * coef * np.exp(1j * mean_phase)  # a_c
    # Half as many points as columns are exact. An even number avoids 1/2, where a
    # factor may be 0.
    t, weights = _quadrature(2 * ((n_columns + 3) // 4))
    values = np.empty((len(X), n_columns))
    length = max(1, _VALUES_AT_ONCE // (len(coef) * n_columns))  # rows of a block
    for start in range(0, len(X), length):
        centred = X[start : start + length, np.newaxis] - mean
        # p_cj of each row: the features of a column add up.
        by_feature = (centred * features.weights).reshape(-1, len(mean))
        phase = _by_column(by_feature, column, n_columns).reshape(
            len(centred), len(coef), n_columns
        )
        gain = np.exp(1j * phase) - 1  # g_cj
        integral = np.zeros(gain.shape, dtype=complex)
        for point, weight in zip(t, weights, strict=True):
            factors = 1 + point * gain
            # Over one factor: the product of all others.
            integral += weight * factors.prod(axis=2, keepdims=True) / factors
        # The sum over random features c, by row r and column j.
        values[start : start + length] = np.einsum(
            "c,rcj,rcj->rj", amplitude, gain, integral
        ).real
    base = float(amplitude.real.sum())
    # Contributions add up to the score, up to rounding.
    error = base + values.sum(axis=1) - features.transform(X) @ coef
    if (np.abs(error) > _MOST_LOST * np.abs(amplitude).sum()).any():
        raise InputError(
            "the contributions of columns do not add up to the score: values are too"
            " large for the random features of the model; fit to scaled columns, or"
            " without random features"
        )
    return Contributions(base, values)

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
# error as a share of all weights: cosines of large numbers are inaccurate
_MOST_LOST = 1e-6
# of a quadrature: exact up to degree 127, beyond it except for rounding
_MOST_POINTS = 64
# of products at quadrature points in one kernel call: about 0.1 s
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
        # by row and column
        base, values = 0.0, np.zeros((len(X), int(column.max()) + 1))
        for member in members:
            part = _of_member(member, X, mean, column, values.shape[1])
            if is_stacked and member.trees is not None and member.trees.is_forest:
                part = part._as_log_odds()
            base += member.weight * part.base
            values += member.weight * part.values
        return cls(base, values)

    def _as_log_odds(self) -> "Contributions":
        """Return contributions to log odds in place of probabilities (less 1/2).

        Each row times its `slope`, the change of log odds / the change of probability.
        `divide` fills `slope`.
        """
        total = self.values.sum(axis=1)  # the change of the probability
        base = log_odds(np.array([self.base]))
        probability = np.clip(self.base + 0.5, 1e-9, 1 - 1e-9)  # keeps the slope finite
        # limit for a total of 0
        slope = np.full(len(total), 1 / (probability * (1 - probability)))
        np.divide(
            log_odds(self.base + total) - base, total, slope, where=np.abs(total) > 1e-9
        )
        return Contributions(base.item(), self.values * slope[:, np.newaxis])


def _of_member(
    member: Member,
    X: NDArray[np.float64],
    mean: NDArray[np.float64],
    column: NDArray[np.int32],
    n_columns: int,
) -> Contributions:
    # Return what columns add to a member's scores, without its weight, see
    # `Contributions.of`.
    if member.trees is not None:
        if member.random_features is not None:
            raise InputError(
                "the model cannot be explained: its trees are fitted to random Fourier"
                " features; fit the model without them, or with a linear solver"
            )
        return _of_trees(member.trees, X, column, n_columns)
    assert member.coef is not None
    if member.random_features is not None:
        return _of_waves(
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
    if n_columns == values.shape[1]:  # a feature each
        return values
    summed = np.zeros((len(values), n_columns))
    np.add.at(summed.T, column, values.T)  # fills `summed` through its view
    return summed


@cache
def _quadrature(n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points in (0, 1) and the weights of Gauss-Legendre quadrature."""
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return (points + 1) / 2, weights / 2


def _of_trees(
    trees: Trees, X: NDArray[np.float64], column: NDArray[np.int32], n_columns: int
) -> Contributions:
    """Return what columns add to the scores of trees, tree by tree.

    The kernel has the mathematics.
    """
    rows = np.ascontiguousarray(trees.compared(X))
    base, values = 0.0, np.zeros((len(X), n_columns))
    # the nodes of a tree
    for first, stop in pairwise([*trees.root, len(trees.feature)]):
        # changes `values`
        base += _add_tree(trees, slice(first, stop), rows, column, values)
    if trees.is_forest and len(trees.root):
        # mean - 1/2
        return Contributions(base / len(trees.root) - 0.5, values / len(trees.root))
    return Contributions(trees.base + base, values)


class OutlinedTree(NamedTuple):
    """A tree as the kernel takes it.

    An entry for each node, of `column` for each feature.
    """

    feature: NDArray[np.int32]  # compared at the node, below 0 at a leaf
    value: NDArray[np.float64]  # threshold, or the result of a leaf
    right: NDArray[np.int32]  # right child; the left one is the next node
    # of the training rows of its parent that went to the node
    share: NDArray[np.float64]
    column: NDArray[np.int32]
    # Written by `outline`:
    parent: NDArray[np.int32]
    # the next node up whose condition is on the same column, or the root
    above: NDArray[np.int32]
    # product of the shares at all such nodes: z after the condition
    zero: NDArray[np.float64]
    reach: NDArray[np.float64]  # share of all rows that reach the node


def _add_tree(
    trees: Trees,
    nodes: slice,
    rows: NDArray,
    column: NDArray[np.int32],
    values: NDArray,
) -> float:
    """Add the columns' contributions in the tree of these nodes to `values`.

    Return the tree's base.
    """
    feature, value, n_nodes = (
        trees.feature[nodes],
        trees.value[nodes],
        nodes.stop - nodes.start,
    )
    right, cover = (
        trees.right[nodes] - nodes.start,
        trees.cover[nodes].astype(np.float64),
    )
    inner, share = np.flatnonzero(feature >= 0), np.ones(n_nodes)
    # left and right child of each inner node
    sides = np.stack([inner + 1, right[inner]])
    share[sides] = cover[sides] / cover[sides].sum(axis=0)
    tree = OutlinedTree(
        feature=feature,
        value=value,
        right=right.astype(np.int32),
        share=share,
        column=column,
        parent=np.empty(n_nodes, dtype=np.int32),
        above=np.empty(n_nodes, dtype=np.int32),
        zero=np.empty(n_nodes),
        reach=np.empty(n_nodes),
    )
    most = outline(tree)  # the largest number of columns above one leaf
    if most < 0:
        raise InputError(
            "the model cannot be explained: a tree has a leaf below 1,024 splits or"
            " more; fit it with fewer or larger leaves, such as by max_leaf_nodes,"
            " num_leaves or min_samples_leaf"
        )
    # the mean over the training rows
    base = float(value[feature < 0] @ tree.reach[feature < 0])
    if most == 0:  # a tree of one leaf has only a base
        return base
    # exact: see kernel
    quadrature = np.stack(_quadrature(min((most + 1) // 2, _MOST_POINTS)))
    n_points = max(1, _VALUES_AT_ONCE // n_nodes)
    for q in range(0, quadrature.shape[1], n_points):  # in blocks, to save memory
        t, weights = quadrature[:, q : q + n_points]
        factors = _factors(t, weights, tree.zero[:, np.newaxis], tree.above)
        product, state = np.empty((n_nodes, len(t))), np.empty(n_nodes, dtype=np.int8)
        length = max(1, _UPDATES_PER_SLICE // product.size)  # rows of a kernel call
        for start in range(0, len(rows), length):
            part = slice(start, start + length)
            add_contributions(rows[part], tree, factors, product, state, values[part])
    return base


def _factors(
    t: NDArray[np.float64],
    weights: NDArray[np.float64],
    zero: NDArray[np.float64],
    above: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the `factors` (n_nodes, 4, n_points) that `add_contributions` takes.

    In the product at a point t each column has the factor t o + (1 - t) z: o is 1 if a
    row passes all conditions on this column down to a node, else 0, and z is `zero`.
    This factor replaces that of the node `above`, hence quotients; the leaves below
    were counted there, hence differences.
    """
    known = t + (1 - t) * zero  # the factor for o = 1
    # (o - z) / factor for o = 1; for o = 0 it is -1 / (1 - t)
    gain = (1 - zero) / known
    # multiply the product
    passes, fails = known / known[above], (1 - t) * zero / known[above]
    passed, failed = (
        weights * (gain - gain[above]),
        weights * (-1 / (1 - t) - gain[above]),
    )
    # two of products, two of sums
    return np.stack([passes, fails, passed, failed], axis=1)


def _of_waves(
    features: RandomFeatures,
    coef: NDArray[np.float64],
    X: NDArray[np.float64],
    mean: NDArray[np.float64],
    column: NDArray[np.int32],
    n_columns: int,
) -> Contributions:
    # Return what columns add to scores by weights `coef` of random Fourier features;
    # `mean` stands for unknown columns. The score is Re sum_c a_c prod_j exp(i p_cj),
    # where random feature c has the amplitude a_c, and column j adds p_cj to its phase.
    # With g_cj = exp(i p_cj) - 1 the Shapley value of j is Re sum_c a_c int_0^1 g_cj
    # prod over j' != j of (1 + t g_cj') dt. of each c, if no column is known
    mean_phase = features.weights @ mean + features.offset
    amplitude = np.sqrt(2 / len(coef)) * coef * np.exp(1j * mean_phase)  # a_c
    # Half as many points as columns are exact. An even number avoids 1/2, where a
    # factor may be 0.
    t, weights = _quadrature(2 * ((n_columns + 3) // 4))
    values = np.empty((len(X), n_columns))
    length = max(1, _VALUES_AT_ONCE // (len(coef) * n_columns))  # rows of a block
    for start in range(0, len(X), length):
        centred = X[start : start + length, np.newaxis] - mean
        # what each feature adds
        phases = (centred * features.weights).reshape(-1, len(mean))
        phase = _by_column(phases, column, n_columns).reshape(
            len(centred), len(coef), n_columns
        )
        gain = np.exp(1j * phase) - 1  # g_cj of each row
        # int_0^1 of the product of other factors
        total = np.zeros(gain.shape, dtype=complex)
        for point, weight in zip(t, weights, strict=True):
            factors = 1 + point * gain
            total += weight * factors.prod(axis=2, keepdims=True) / factors
        # By row r, random feature c and column j
        values[start : start + length] = np.einsum(
            "c,rcj,rcj->rj", amplitude, gain, total
        ).real
    base = float(amplitude.real.sum())
    # 0 but for rounding
    error = base + values.sum(axis=1) - features.transform(X) @ coef
    if (np.abs(error) > _MOST_LOST * np.abs(amplitude).sum()).any():
        raise InputError(
            "the contributions of columns do not add up to the score: values are too"
            " large for the random features of the model; fit to scaled columns, or"
            " without random features"
        )
    return Contributions(base, values)

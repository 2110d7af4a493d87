"""The trees of fitted ensembles as plain arrays, with their libraries' scores."""

# A file of another library is trusted by the program that reads it: LightGBM reads
# beyond its arrays, or never ends, where the text of a model has a wrong child or
# feature, and scikit-learn's trees do likewise. Arrays of our own are checked before a
# row is scored.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.solvers.common.rows import as_rows
from precbench.solvers.others.trees_kernel import add_trees

_VISITS_PER_SLICE = 2**18  # of a tree by a row: about 0.1 s
_LARGEST_SINGLE = float(np.finfo(np.float32).max)
AGAIN = "fit and save the model again"
_FINITE_MAX = float(np.finfo(np.float64).max)  # stands for an infinite threshold


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble of decision trees.

    All nodes in one sequence, those of each tree in preorder.
    """

    n_features: int
    feature: NDArray[np.int32]  # compared at an inner node; -1 at a leaf
    # threshold up to which a row goes left; result of a leaf
    value: NDArray[np.float64]
    # right child of an inner node; the left one is the next node
    right: NDArray[np.int32]
    root: NDArray[np.int32]  # the first node of each tree, ascending
    cover: NDArray[np.float32]  # number or weight of the training rows at each node
    base: float = 0.0  # added to the sum of the leaves
    # compares in single precision; the score is the mean less 1/2
    is_forest: bool = False

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return for each row of X the sum of its leaves.

        For a forest the mean less 1/2.
        """
        n_rows, n_trees = X.shape[0], len(self.root)
        scores, scratch = np.full(n_rows, self.base), np.zeros(self.n_features)
        # rows of a slice: about 0.1 s
        length = max(1, _VISITS_PER_SLICE // max(1, n_trees))
        for start in range(0, n_rows, length):
            stop = min(n_rows, start + length)
            rows = as_rows(self.compared(X[start:stop]))
            add_trees(  # adds the values of the leaves to the scores in place
                rows,
                self.feature,
                self.value,
                self.right,
                self.root,
                scratch,
                scores[start:stop],
            )
        return scores / n_trees - 0.5 if self.is_forest and n_trees else scores

    def first(self, n_trees: int) -> Self:
        """Return the ensemble of the first `n_trees` trees."""
        # number of nodes of 0, 1, ... trees
        ends = [*self.root.tolist(), len(self.feature)]
        names = ("feature", "value", "right", "cover")
        parts = {name: getattr(self, name)[: ends[n_trees]] for name in names}
        return replace(self, root=self.root[:n_trees], **parts)

    def compared(self, X: Any) -> Any:
        """Return rows as the nodes compare them.

        In a forest, rounded to single precision.
        """
        return in_single_precision(X).astype(np.float64) if self.is_forest else X

    @classmethod
    def of(cls, trees: Sequence["Tree"], n_features: int, **options: Any) -> Self:
        """Return the ensemble of trees.

        All nodes in one sequence, in which `right` also counts.
        """
        ends = np.cumsum([0, *(len(tree.feature) for tree in trees)])
        if ends[-1] > np.iinfo(np.int32).max:
            raise InputError(
                f"the trees have {ends[-1]:,} nodes, more than 2**31 - 1; fit fewer"
                " trees, or trees of fewer leaves"
            )
        feature, value, right, cover = (  # the fields of a `Tree`, in its order
            np.concatenate([np.empty(0, kind), *(tree[part] for tree in trees)])
            for part, kind in enumerate((np.int32, np.float64, np.int32, np.float32))
        )
        # for each node, the root of its tree
        first = np.repeat(ends[:-1], np.diff(ends))
        right = np.where(feature >= 0, right + first, 0).astype(np.int32)
        return cls(
            n_features,
            feature,
            value,
            right,
            ends[:-1].astype(np.int32),
            cover,
            **options,
        )

    @property
    def described(self) -> dict[str, Any]:  # what a file holds beside the arrays
        return {"base": self.base, "is_forest": self.is_forest}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save."""
        # `splits` has a count for each feature: so a small file cannot claim many
        # features.
        names = ("feature", "value", "right", "root", "cover")
        splits = np.bincount(self.feature[self.feature >= 0], minlength=self.n_features)
        return {
            "splits": splits.astype(np.int32),
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], *, base: float, is_forest: bool
    ) -> Self:
        """Rebuild trees from untrusted arrays, named as by `to_arrays`.

        Raise a TypeError or ValueError if a type or shape is wrong, a value is not
        finite, or a row could leave the arrays or go round in circles: each node but a
        root must be the child of exactly one earlier node of its tree.
        """
        splits, feature, value, right, root, cover = (
            arrays[name]
            for name in ("splits", "feature", "value", "right", "root", "cover")
        )
        n_features, n_nodes = len(splits), len(feature)  # splits: one count by feature
        is_whole = (
            (type(base), type(is_forest)) == (float, bool)
            and np.isfinite(base)
            and all(array.ndim == 1 for array in arrays.values())
            and all(array.dtype == np.int32 for array in (feature, right, root))
            and (value.dtype, cover.dtype) == (np.float64, np.float32)
            and len(value) == len(right) == len(cover) == n_nodes
            and np.isfinite(value).all()
            and ((cover > 0) & (cover < np.inf)).all()
            and ((feature >= -1) & (feature < n_features)).all()
            # The mean of a forest begins with 0, and its leaves are probabilities.
            and not (is_forest and base)
            and not (is_forest and ((value < 0) | (value > 1))[feature < 0].any())
        )
        if not is_whole:
            raise ValueError(f"trees: an array has a bad type, shape or value; {AGAIN}")
        ends = np.append(root, n_nodes)
        if ends[0] != 0 or (np.diff(ends) < 1).any():
            raise ValueError(f"trees: the roots do not ascend from node 0; {AGAIN}")
        # Of each node: the end of its tree, its number, and whether it has children.
        end, node, inner = (
            np.repeat(ends[1:], np.diff(ends)),
            np.arange(n_nodes),
            feature >= 0,
        )
        # to later nodes of its tree
        leads_on = ((right > node + 1) & (right < end))[inner].all()
        # a root also counts once
        children = np.concatenate([node[inner] + 1, right[inner], root])
        if not leads_on or (np.bincount(children, minlength=n_nodes) != 1).any():
            raise ValueError(
                f"trees: a node is not the child of exactly one earlier node; {AGAIN}"
            )
        return cls(n_features, feature, value, right, root, cover, base, is_forest)


class Tree(NamedTuple):
    """One tree, its nodes in preorder; see `Trees`."""

    feature: NDArray[np.int32]
    value: NDArray[np.float64]
    right: NDArray[np.int32]
    cover: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        feature: NDArray[Any],
        value: NDArray[Any],
        left: NDArray[Any],
        right: NDArray[Any],
        cover: NDArray[Any],
    ) -> Self:
        """Return a tree with its nodes put in preorder.

        The first node given is the root.
        """
        order = np.arange(len(feature))  # the nodes in preorder, if they are stored so
        # some left child does not follow its parent
        if (left != order + 1)[feature >= 0].any():
            stack, visited = [0], []
            while stack:
                node = stack.pop()
                visited.append(node)
                if feature[node] >= 0:
                    # The left child is popped first, so that it comes next in preorder.
                    stack += [int(right[node]), int(left[node])]
            order = np.array(visited)
        # place[i]: where node i is in preorder
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
        feature = feature[order].astype(np.int32)
        right = np.where(feature >= 0, place[right[order]], 0).astype(np.int32)
        # A cover of 0, as of libraries that count no training rows, becomes 1.
        cover = np.where(cover > 0, cover, 1)[order].astype(np.float32)
        return cls(feature, value[order].astype(np.float64), right, cover)


def forest_trees(forest: Any, n_features: int) -> Trees:
    """Return the trees of a forest of scikit-learn with two classes."""
    trees = []
    for node in (estimator.tree_ for estimator in forest.estimators_):
        left, is_leaf = node.children_left, node.children_left < 0
        feature = np.where(is_leaf, -1, node.feature)
        # a leaf: P(positive)
        value = np.where(is_leaf, node.value[:, 0, 1], node.threshold)
        # of the training rows that reach each node
        cover = node.weighted_n_node_samples
        trees.append(Tree.of(feature, value, left, node.children_right, cover))
    return Trees.of(trees, n_features, is_forest=True)


def histogram_trees(boosting: Any, n_features: int) -> Trees:
    """Return the trees of a `HistGradientBoostingClassifier`."""
    trees = []
    for [predictor] in boosting._predictors:  # one tree an iteration
        node, is_leaf = predictor.nodes, predictor.nodes["is_leaf"] == 1
        feature = np.where(is_leaf, -1, node["feature_idx"].astype(np.intp))
        value = np.where(
            is_leaf, node["value"], np.minimum(node["num_threshold"], _FINITE_MAX)
        )
        left, right = (node[side].astype(np.intp) for side in ("left", "right"))
        trees.append(Tree.of(feature, value, left, right, node["count"]))
    return Trees.of(trees, n_features, base=boosting._baseline_prediction.item())


def lightgbm_trees(booster: Any, n_features: int) -> Trees:
    """Return the trees of a `Booster` of LightGBM fitted to numbers without gaps."""
    text = booster.model_to_string(num_iteration=booster.current_iteration())
    blocks = text.partition("\nend of trees")[0].split("\nTree=")[1:]  # [0]: header
    return Trees.of([_lightgbm_tree(block) for block in blocks], n_features)


def _lightgbm_tree(block: str) -> Tree:
    # Read a tree from its part of LightGBM's text, in lines such as ``left_child=1 -1
    # -2``. The child -1 - i is leaf i. Leaves have -1, here `absent`, as feature and as
    # children.
    lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)

    def array(name: str, kind: type) -> NDArray[Any]:
        return np.array(lines.get(name, "").split(), dtype=kind)

    feature, leaf = array("split_feature", int), array("leaf_value", float)
    threshold = np.clip(array("threshold", float), -_FINITE_MAX, _FINITE_MAX)
    # inner nodes, then leaves
    absent, value = np.full(len(leaf), -1), np.append(threshold, leaf)
    cover = np.append(array("internal_count", int), array("leaf_count", int))
    children = (array(name, int) for name in ("left_child", "right_child"))
    # Leaf i, named c = -1 - i so that i = ~c, becomes a node after the len(feature)
    # inner ones.
    left, right = (
        np.append(np.where(c < 0, len(feature) + ~c, c), absent) for c in children
    )
    if len(cover) < len(value):  # LightGBM writes no counts for a tree without splits
        cover = np.ones(len(value))
    return Tree.of(np.append(feature, absent), value, left, right, cover)


def in_single_precision(X: Any) -> Any:
    """Return rows as float32; raise an error if a value is too large for float32."""
    values = X if isinstance(X, np.ndarray) else X.data
    largest = max(values.max(initial=0), -values.min(initial=0))
    if largest > _LARGEST_SINGLE:
        raise InputError(
            f"X has values up to {largest:.3g}, which overflow float32, the type in"
            " which these trees compare values; scale the features"
        )
    return X.astype(np.float32, copy=False)

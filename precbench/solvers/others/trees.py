"""The trees of fitted ensembles as plain arrays, with their libraries' scores."""

# A file of another library is trusted by the program that reads it: LightGBM reads
# beyond its arrays, or never ends, where the text of a model has a wrong child or
# feature, and scikit-learn's trees do likewise. Arrays of our own are checked before a
# row is scored.

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.solvers.common.rows import as_rows
from precbench.solvers.others.trees_kernel import add_trees

# Visits of trees by rows in one call of the kernel: about 0.1 s, since Ctrl-C waits for
# the end of a call.
_VISITS_PER_SLICE = 2**18
_LARGEST_SINGLE = float(np.finfo(np.float32).max)
AGAIN = "fit and save the model again"
_FINITE_MAX = float(np.finfo(np.float64).max)  # stands for an infinite threshold


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble of decision trees.

    All nodes stand in one sequence, those of each tree in preorder.
    """

    n_features: int
    feature: NDArray[np.int32]  # compared at an inner node; -1 at a leaf
    # At an inner node the threshold up to which a row goes left; at a leaf the result.
    value: NDArray[np.float64]
    # The right child of an inner node. The left child is the next node.
    right: NDArray[np.int32]
    root: NDArray[np.int32]  # the first node of each tree, ascending
    cover: NDArray[np.float32]  # number or weight of the training rows at each node
    base: float = 0.0  # added to the sum of the leaves
    # A forest compares in single precision, and its score is the mean less 1/2.
    is_forest: bool = False

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return for each row the sum of its leaves, in a forest the mean less 1/2."""
        n_trees = len(self.root)
        scores = np.full(X.shape[0], self.base)
        self._add(X, self.root, scores)
        if self.is_forest and n_trees:
            return scores / n_trees - 0.5
        return scores

    def staged_scores(self, X: Any, step: int) -> Iterator[NDArray[np.float64]]:
        """Yield the scores by the first `step` boosted trees, by twice as many, ….

        The last are those by all trees. The array is the same each time.
        """
        scores = np.full(X.shape[0], self.base)
        for start in range(0, len(self.root), step):
            self._add(X, self.root[start : start + step], scores)
            yield scores

    def _add(
        self, X: Any, roots: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> None:
        """Add the leaves of each row in the trees of these roots to its score."""
        n_rows = X.shape[0]
        scratch = np.zeros(self.n_features)
        n_slice_rows = max(1, _VISITS_PER_SLICE // max(1, len(roots)))
        for start in range(0, n_rows, n_slice_rows):
            stop = min(n_rows, start + n_slice_rows)
            rows = as_rows(self.compared(X[start:stop]))
            add_trees(  # changes the scores in place
                rows,
                self.feature,
                self.value,
                self.right,
                roots,
                scratch,
                scores[start:stop],
            )

    def first(self, n_trees: int) -> Self:
        """Return the ensemble of the first `n_trees` trees."""
        n_nodes = len(self.feature)
        if n_trees < len(self.root):
            n_nodes = int(self.root[n_trees])  # those before the next tree
        return replace(
            self,
            root=self.root[:n_trees],
            feature=self.feature[:n_nodes],
            value=self.value[:n_nodes],
            right=self.right[:n_nodes],
            cover=self.cover[:n_nodes],
        )

    def compared(self, X: Any) -> Any:
        """Return rows as the nodes compare them, in a forest in single precision."""
        return in_single_precision(X).astype(np.float64) if self.is_forest else X

    @classmethod
    def of(cls, trees: Sequence["Tree"], n_features: int, **options: Any) -> Self:
        """Return the ensemble of trees, with all their nodes in one sequence.

        `options` are the fields `base` and `is_forest`.
        """
        lengths = [len(tree.feature) for tree in trees]
        n_nodes = sum(lengths)
        if n_nodes > np.iinfo(np.int32).max:
            raise InputError(
                f"the trees have {n_nodes:,} nodes, more than 2**31 - 1; fit fewer"
                " trees, or trees of fewer leaves"
            )
        roots = np.cumsum([0, *lengths])[:-1]
        # There may be no trees, hence the tree without nodes at the start.
        parts = [NO_NODES, *trees]
        feature = np.concatenate([tree.feature for tree in parts])
        value = np.concatenate([tree.value for tree in parts])
        right = np.concatenate([tree.right for tree in parts])
        cover = np.concatenate([tree.cover for tree in parts])
        # The numbers of right children counted from the root of each tree so far.
        root_of_nodes = np.repeat(roots, lengths)
        right = np.where(feature >= 0, right + root_of_nodes, 0).astype(np.int32)
        return cls(
            n_features,
            feature=feature,
            value=value,
            right=right,
            root=roots.astype(np.int32),
            cover=cover,
            **options,
        )

    @property
    def described(self) -> dict[str, Any]:
        """What a file holds beside the arrays."""
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
        feature = arrays["feature"]
        value = arrays["value"]
        right = arrays["right"]
        root = arrays["root"]
        cover = arrays["cover"]
        n_features = len(arrays["splits"])  # which has a count for each feature
        n_nodes = len(feature)
        _require(type(base) is float and np.isfinite(base), "base is no finite number")
        _require(type(is_forest) is bool, "is_forest is neither true nor false")
        for name, array in arrays.items():
            _require(array.ndim == 1, f"{name} is no vector")
        for name in ("feature", "right", "root"):
            _require(arrays[name].dtype == np.int32, f"{name} is not of int32")
        _require(value.dtype == np.float64, "value is not of float64")
        _require(cover.dtype == np.float32, "cover is not of float32")
        for name in ("value", "right", "cover"):
            is_complete = len(arrays[name]) == n_nodes
            _require(is_complete, f"{name} is not as long as feature")
        _require(np.isfinite(value).all(), "a value is not finite")
        has_covers = ((cover > 0) & (cover < np.inf)).all()
        _require(has_covers, "a cover is not above 0 and finite")
        has_features = ((feature >= -1) & (feature < n_features)).all()
        _require(has_features, "a node compares a feature that does not exist")
        if is_forest:
            # The mean of a forest begins with 0, and its leaves are probabilities.
            _require(base == 0, "base is not 0 in a forest")
            leaf_value = value[feature < 0]
            has_probabilities = ((leaf_value >= 0) & (leaf_value <= 1)).all()
            _require(has_probabilities, "a leaf of a forest is no probability")
        bounds = np.append(root, n_nodes)  # where each tree begins, and the last ends
        lengths = np.diff(bounds)
        roots_ascend = bounds[0] == 0 and (lengths >= 1).all()
        _require(roots_ascend, "the roots do not ascend from node 0")
        inner = np.flatnonzero(feature >= 0)
        left_child = inner + 1
        right_child = right[inner]
        end_of_tree = np.repeat(bounds[1:], lengths)[inner]
        is_later = (right_child > left_child) & (right_child < end_of_tree)
        misplaced = "a node is not the child of exactly one earlier node"
        _require(is_later.all(), misplaced)
        children_and_roots = np.concatenate([left_child, right_child, root])
        n_uses = np.bincount(children_and_roots, minlength=n_nodes)
        _require((n_uses == 1).all(), misplaced)
        return cls(n_features, feature, value, right, root, cover, base, is_forest)


def _require(condition: Any, problem: str) -> None:
    """Raise an error that names the problem of untrusted trees."""
    if not condition:
        raise ValueError(f"trees: {problem}; {AGAIN}")


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
        left_follows = left == order + 1
        if not left_follows[feature >= 0].all():
            stack, visited = [0], []
            while stack:
                node = stack.pop()
                visited.append(node)
                if feature[node] >= 0:
                    # The left child is popped first, so that it comes next in preorder.
                    stack += [int(right[node]), int(left[node])]
            order = np.array(visited)
        place = np.empty(len(order), dtype=np.int32)  # of node i in preorder
        place[order] = np.arange(len(order))
        feature = feature[order].astype(np.int32)
        right = np.where(feature >= 0, place[right[order]], 0).astype(np.int32)
        # A cover of 0, as of libraries that count no training rows, becomes 1.
        cover = np.where(cover > 0, cover, 1)[order].astype(np.float32)
        return cls(feature, value[order].astype(np.float64), right, cover)


NO_NODES = Tree(
    feature=np.empty(0, np.int32),
    value=np.empty(0, np.float64),
    right=np.empty(0, np.int32),
    cover=np.empty(0, np.float32),
)


def forest_trees(forest: Any, n_features: int) -> Trees:
    """Return the trees of a forest of scikit-learn with two classes."""
    trees = []
    for estimator in forest.estimators_:
        nodes = estimator.tree_
        left = nodes.children_left
        is_leaf = left < 0
        feature = np.where(is_leaf, -1, nodes.feature)
        share_of_positives = nodes.value[:, 0, 1]
        value = np.where(is_leaf, share_of_positives, nodes.threshold)
        cover = nodes.weighted_n_node_samples
        trees.append(Tree.of(feature, value, left, nodes.children_right, cover))
    return Trees.of(trees, n_features, is_forest=True)


def histogram_trees(boosting: Any, n_features: int) -> Trees:
    """Return the trees of a `HistGradientBoostingClassifier`."""
    trees = []
    for [predictor] in boosting._predictors:  # one tree an iteration
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"] == 1
        feature = np.where(is_leaf, -1, nodes["feature_idx"].astype(np.intp))
        threshold = np.minimum(nodes["num_threshold"], _FINITE_MAX)
        value = np.where(is_leaf, nodes["value"], threshold)
        left = nodes["left"].astype(np.intp)
        right = nodes["right"].astype(np.intp)
        trees.append(Tree.of(feature, value, left, right, nodes["count"]))
    return Trees.of(trees, n_features, base=boosting._baseline_prediction.item())


def lightgbm_trees(booster: Any, n_features: int) -> Trees:
    """Return the trees of a `Booster` of LightGBM fitted to numbers without gaps."""
    text = booster.model_to_string(num_iteration=booster.current_iteration())
    text_of_trees, _, _rest = text.partition("\nend of trees")
    _header, *blocks = text_of_trees.split("\nTree=")
    return Trees.of([_lightgbm_tree(block) for block in blocks], n_features)


def _lightgbm_tree(block: str) -> Tree:
    """Read a tree from its part of LightGBM's text.

    The part has lines such as ``left_child=1 -1 -2``, where the child -1 - i is leaf i.
    """
    lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)

    def array(name: str, kind: type) -> NDArray[Any]:
        return np.array(lines.get(name, "").split(), dtype=kind)

    feature = array("split_feature", int)
    leaf_value = array("leaf_value", float)
    threshold = np.clip(array("threshold", float), -_FINITE_MAX, _FINITE_MAX)
    absent = np.full(len(leaf_value), -1)  # feature and children of the leaves

    def children(name: str) -> NDArray[Any]:
        """Return children as numbers of nodes: leaves come after the inner nodes."""
        child = array(name, int)
        number_of_leaf = -1 - child
        number = np.where(child < 0, len(feature) + number_of_leaf, child)
        return np.append(number, absent)

    value = np.append(threshold, leaf_value)
    cover = np.append(array("internal_count", int), array("leaf_count", int))
    if len(cover) < len(value):  # LightGBM writes no counts for a tree without splits
        cover = np.ones(len(value))
    return Tree.of(
        np.append(feature, absent),
        value,
        children("left_child"),
        children("right_child"),
        cover,
    )


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

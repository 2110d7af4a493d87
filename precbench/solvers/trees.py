"""The trees of fitted ensembles as plain arrays, which score bitwise as their libraries do."""

# A file of another library is trusted by the program that reads it: LightGBM reads beyond its
# arrays, or never ends, where the text of a model has another child or feature, and scikit-learn's
# trees do where their arrays have. Arrays of our own are checked before a row is scored.

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from precbench.errors import InputError
from precbench.kernels import trees as kernel
from precbench.solvers.rows import as_rows

_VISITS_PER_SLICE = 2**18  # of a tree by a row: about 0.1 s
_LARGEST_SINGLE = float(np.finfo(np.float32).max)
_LARGEST = float(np.finfo(np.float64).max)
_BITS = 32  # of a word
_MOST_CATEGORIES = 2**16
_NO_SPLIT, _NO_CATEGORY = np.empty(0, np.uint8), np.empty(0, np.uint32)


class Split(IntFlag):
    """Where rows go that no number says; as in split.pxd."""

    LEFT = 1
    CATEGORY = 2
    ZERO = 4
    NAN = 8
    WHOLE = 16


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble of decision trees: all nodes in one sequence, those of each tree in preorder."""

    n_features: int
    # Of each node: what is compared at an inner one, -1 at a leaf; the most with which a row goes
    # to the left, the next node, or the result of a leaf; the right child of an inner one.
    feature: NDArray[np.int32]
    value: NDArray[np.float64]
    right: NDArray[np.int32]
    root: NDArray[np.int32]  # the first node of each tree, ascending
    base: float = 0.0  # of the sum of the leaves
    is_forest: bool = False  # compares in single precision; the score is the mean less 1/2
    cover: NDArray[np.float32] | None = None  # number or weight of the training rows at each node
    # A `Split` for each node, of trees that take missing values or categories, else empty. Of a
    # category `value` is a place in `categories`: a number of words that follow, whose bits are the
    # categories that do not go where the unknown ones do.
    split: NDArray[np.uint8] = field(default_factory=_NO_SPLIT.copy)
    categories: NDArray[np.uint32] = field(default_factory=_NO_CATEGORY.copy)

    def scores(self, X: Any) -> NDArray[np.float64]:
        n_rows, n_trees = X.shape[0], len(self.root)
        scores, scratch = np.full(n_rows, self.base), np.zeros(self.n_features)
        length = max(1, _VISITS_PER_SLICE // max(1, n_trees))
        for start in range(0, n_rows, length):
            stop = min(n_rows, start + length)
            rows = as_rows(self.compared(X[start:stop]))
            kernel.add_trees(
                rows, self.feature, self.value, self.right, self.root, self.split,
                self.categories, scratch, scores[start:stop],
            )  # fmt: skip
        return scores / n_trees - 0.5 if self.is_forest and n_trees else scores

    def first(self, n_trees: int) -> Self:
        ends = [*self.root.tolist(), len(self.feature)]
        names = ("feature", "value", "right", "split", *(() if self.cover is None else ("cover",)))
        parts = {name: getattr(self, name)[: ends[n_trees]] for name in names}
        return replace(self, root=self.root[:n_trees], **parts)

    def compared(self, X: Any) -> Any:
        """Return rows with the values that the trees compare, for forests in single precision."""
        return _in_single(X) if self.is_forest else X

    @classmethod
    def of(cls, trees: Sequence["Tree"], n_features: int, **options: Any) -> Self:
        """Put trees into one sequence; the options are `base` and `is_forest`."""
        ends = np.cumsum([0, *(len(tree.feature) for tree in trees)])
        if ends[-1] > np.iinfo(np.int32).max:
            raise InputError(f"the trees have {ends[-1]:,} nodes, and a model at most 2**31 - 1")
        feature, value, right, cover, split, categories = (
            np.concatenate([np.empty(0, kind), *(tree[part] for tree in trees)])
            for part, kind in enumerate(
                (np.int32, np.float64, np.int32, np.float32, np.uint8, np.uint32)
            )
        )
        places = np.cumsum([0, *(len(tree.categories) for tree in trees)])[:-1]
        if len(split):
            is_place = (feature >= 0) & (split & Split.CATEGORY > 0)
            value[is_place] += np.repeat(places, np.diff(ends))[is_place]
        first = np.repeat(ends[:-1], np.diff(ends))
        right = np.where(feature >= 0, right + first, 0).astype(np.int32)
        root = ends[:-1].astype(np.int32)
        arrays: dict[str, Any] = {"cover": cover, "split": split, "categories": categories}
        return cls(n_features, feature, value, right, root, **arrays, **options)

    @property
    def described(self) -> dict[str, Any]:
        return {"base": self.base, "is_forest": self.is_forest}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a saved model must carry.

        Among them is the number of splits of each feature, so that no file is shorter than its
        rows.
        """
        names = ["feature", "value", "right", "root", *(() if self.cover is None else ("cover",))]
        names += ["split", "categories"] if len(self.split) else []
        splits = np.bincount(self.feature[self.feature >= 0], minlength=self.n_features)
        return {"splits": splits.astype(np.int32), **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], *, base: float, is_forest: bool
    ) -> Self:
        """Rebuild trees of an untrusted file, from the arrays of `to_arrays`.

        A TypeError or ValueError is raised if a type or shape is wrong, a value is not finite, or a
        node leads anywhere but to later nodes of its tree that no other leads to, so that a row
        could leave the arrays or go round in circles.
        """
        splits, feature, value, right, root = (
            arrays[name] for name in ("splits", "feature", "value", "right", "root")
        )
        n_features, cover = len(splits), arrays.get("cover")
        split = arrays.get("split", _NO_SPLIT)
        categories = arrays.get("categories", _NO_CATEGORY)
        n_nodes = len(feature)
        is_whole = (
            (type(base), type(is_forest)) == (float, bool)
            and np.isfinite(base)
            and all(array.ndim == 1 for array in arrays.values())
            and all(array.dtype == np.int32 for array in (feature, right, root))
            and value.dtype == np.float64
            and len(value) == len(right) == n_nodes
            and np.isfinite(value).all()
            and ((feature >= -1) & (feature < n_features)).all()
            # The mean of a forest begins with 0, and its leaves are probabilities.
            and not (is_forest and base)
            and not (is_forest and ((value < 0) | (value > 1))[feature < 0].any())
        )
        has_covers = cover is None or (
            cover.dtype == np.float32
            and len(cover) == n_nodes
            and ((cover > 0) & (cover < np.inf)).all()
        )
        has_splits = not len(split) or (
            (split.dtype, categories.dtype) == (np.uint8, np.uint32)
            and len(split) == n_nodes
            and len(categories) < 2**26  # whose bits an int32 counts
            and _are_places(value[(feature >= 0) & (split & Split.CATEGORY > 0)], categories)
        )
        if not (is_whole and has_covers and has_splits):
            raise ValueError("the arrays are not those of trees")
        ends = np.append(root, n_nodes)
        if ends[0] != 0 or (np.diff(ends) < 1).any():
            raise ValueError("the trees overlap, or nodes are of none")
        end, node, inner = np.repeat(ends[1:], np.diff(ends)), np.arange(n_nodes), feature >= 0
        leads_on = ((right > node + 1) & (right < end))[inner].all()
        children = np.concatenate([node[inner] + 1, right[inner], root])
        if not leads_on or (np.bincount(children, minlength=n_nodes) != 1).any():
            raise ValueError("a node does not lead to a later one of its tree, or two lead to one")
        return cls(
            n_features, feature, value, right, root, base, is_forest, cover, split, categories
        )


class Tree(NamedTuple):
    """One tree, its nodes in preorder; see `Trees`."""

    feature: NDArray[np.int32]
    value: NDArray[np.float64]
    right: NDArray[np.int32]
    cover: NDArray[np.float32]
    split: NDArray[np.uint8] = _NO_SPLIT
    categories: NDArray[np.uint32] = _NO_CATEGORY

    @classmethod
    def of(
        cls,
        feature: NDArray[Any],
        value: NDArray[Any],
        left: NDArray[Any],
        right: NDArray[Any],
        cover: NDArray[Any],
        split: NDArray[Any] = _NO_SPLIT,
        categories: Any = (),
    ) -> Self:
        """Put nodes in preorder, of which the first is the root; see `Trees`.

        Of training rows `cover` is 1 where a library has none.
        """
        order = np.arange(len(feature))
        if (left != order + 1)[feature >= 0].any():
            waiting, visited = [0], []
            while waiting:
                node = waiting.pop()
                visited.append(node)
                if feature[node] >= 0:
                    # The left child is popped first, so that it comes next in preorder.
                    waiting += [int(right[node]), int(left[node])]
            order = np.array(visited)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
        feature = feature[order].astype(np.int32)
        right = np.where(feature >= 0, place[right[order]], 0).astype(np.int32)
        cover = np.where(cover > 0, cover, 1)[order].astype(np.float32)
        split = split[order].astype(np.uint8) if len(split) else _NO_SPLIT
        words = np.array(categories, dtype=np.uint32)
        return cls(feature, value[order].astype(np.float64), right, cover, split, words)


def forest_trees(forest: Any, n_features: int) -> Trees:
    trees = []
    for node in (estimator.tree_ for estimator in forest.estimators_):
        left, is_leaf = node.children_left, node.children_left < 0
        feature = np.where(is_leaf, -1, node.feature)
        value = np.where(is_leaf, node.value[:, 0, 1], node.threshold)
        cover = node.weighted_n_node_samples
        trees.append(Tree.of(feature, value, left, node.children_right, cover))
    return Trees.of(trees, n_features, is_forest=True)


def histogram_trees(boosting: Any, n_features: int, *, takes_missing: bool = False) -> Trees:
    """Return the trees of a fitted `HistGradientBoostingClassifier`.

    With `takes_missing` they take missing values, and categories, which are whole numbers.
    """
    trees, place = [], np.arange(n_features)
    categories_of: list[NDArray[np.intp]] = []
    if boosting.is_categorical_ is not None:
        takes_missing, is_category = True, boosting.is_categorical_
        place = np.append(np.flatnonzero(is_category), np.flatnonzero(~is_category))
        categories_of = [
            _whole_numbers(c)
            for c in boosting._preprocessor.named_transformers_["encoder"].categories_
        ]
    for [predictor] in boosting._predictors:
        node, is_leaf = predictor.nodes, predictor.nodes["is_leaf"] == 1
        feature = np.where(is_leaf, -1, place[node["feature_idx"].astype(np.intp)])
        value = np.where(is_leaf, node["value"], np.minimum(node["num_threshold"], _LARGEST))
        left, right = (node[side].astype(np.intp) for side in ("left", "right"))
        split, categories = _NO_SPLIT, list[int]()
        if takes_missing:
            split = Split.NAN | node["missing_go_to_left"]
            for i in np.flatnonzero(~is_leaf & (node["is_categorical"] == 1)):
                own, bits = categories_of[node["feature_idx"][i]], predictor.raw_left_cat_bitsets
                is_left = _bits(bits[node["bitset_idx"][i]])[: len(own)]
                differs = is_left != node["missing_go_to_left"][i]
                value[i], split[i] = len(categories), split[i] | Split.CATEGORY | Split.WHOLE
                categories += _words(own[differs])
        trees.append(Tree.of(feature, value, left, right, node["count"], split, categories))
    return Trees.of(trees, n_features, base=boosting._baseline_prediction.item())


def _whole_numbers(categories: NDArray[Any]) -> NDArray[np.intp]:
    """Return categories as whole numbers, without NaN, which is the last."""
    finite = categories[~np.isnan(categories)]
    if not ((finite >= 0) & (finite < _MOST_CATEGORIES) & (finite == finite.round())).all():
        raise TypeError(f"categories are whole numbers from 0 to {_MOST_CATEGORIES - 1}")
    return finite.astype(np.intp)


def _bits(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return (words[:, np.newaxis] >> np.arange(_BITS, dtype=np.uint32) & 1).ravel() == 1


def _words(members: NDArray[np.intp]) -> list[int]:
    """Return a set of numbers as the number of words that it takes, and these."""
    n_words = int(members.max(initial=-1)) // _BITS + 1
    words = np.zeros(n_words, dtype=np.uint32)
    np.bitwise_or.at(words, members // _BITS, np.uint32(1) << (members % _BITS).astype(np.uint32))
    return [n_words, *words.tolist()]


def lightgbm_trees(booster: Any, n_features: int) -> Trees:
    text = booster.model_to_string(num_iteration=booster.current_iteration())
    blocks = text.partition("\nend of trees")[0].split("\nTree=")[1:]
    takes_missing = re.search(r"^decision_type=.*[^02 \n]", text, re.MULTILINE) is not None
    return Trees.of([_lightgbm_tree(block, takes_missing) for block in blocks], n_features)


def _lightgbm_tree(block: str, takes_missing: bool) -> Tree:
    """Read a tree of a model's text: leaves are -1, -2, ... among the children of inner nodes."""
    lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)

    def array(name: str, kind: type) -> NDArray[Any]:
        return np.array(lines.get(name, "").split(), dtype=kind)

    feature, leaf = array("split_feature", int), array("leaf_value", float)
    threshold = np.clip(array("threshold", float), -_LARGEST, _LARGEST)  # of gaps alone: infinite
    none, value = np.full(len(leaf), -1), np.append(threshold, leaf)
    cover = np.append(array("internal_count", int), array("leaf_count", int))
    children = (array(name, int) for name in ("left_child", "right_child"))
    # Leaf -1 - i is node number i behind the inner nodes; ~c is i.
    left, right = (np.append(np.where(c < 0, len(feature) + ~c, c), none) for c in children)
    if len(cover) < len(value):  # not written of a tree without splits
        cover = np.ones(len(value))
    split, categories = _NO_SPLIT, list[int]()
    if takes_missing:
        kind, ends = array("decision_type", int), array("cat_boundaries", int)
        is_category = kind & 1 > 0  # bit 1: missing values go left; bits 2 and 3: what is missing
        number = (kind >> 1 & 1) | Split.ZERO * (kind >> 2 == 1) | Split.NAN * (kind >> 2 == 2)
        split = np.append(np.where(is_category, Split.CATEGORY, number), none * 0)
        words = [int(word) for word in lines.get("cat_threshold", "").split()]
        for i in np.flatnonzero(is_category):
            members = words[ends[int(value[i])] : ends[int(value[i]) + 1]]
            value[i] = len(categories)
            categories += [len(members), *members]
    return Tree.of(np.append(feature, none), value, left, right, cover, split, categories)


def _are_places(value: NDArray[np.float64], categories: NDArray[np.uint32]) -> bool:
    if not ((value >= 0) & (value < len(categories)) & (value == np.floor(value))).all():
        return False
    place = value.astype(np.intp)
    return bool((place + categories[place].astype(np.intp) < len(categories)).all())


def _in_single(X: Any) -> Any:
    values = X if isinstance(X, np.ndarray) else X.data
    if values.size and max(values.max(), -values.min()) > _LARGEST_SINGLE:
        raise InputError(
            f"X has values beyond {_LARGEST_SINGLE:.3g}, and a forest compares in single "
            "precision; rescale the features"
        )
    return X.astype(np.float32).astype(np.float64)

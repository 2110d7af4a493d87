"""Gradient-boosted trees of LightGBM, an optional package."""

from abc import abstractmethod
from importlib import import_module, metadata
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.class_weight import compute_sample_weight

from precbench.errors import MissingPackageError
from precbench.solvers.base import NonlinearRanker, Trace, top_of_training
from precbench.solvers.parameters import (
    CLASS_WEIGHT,
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Allowed,
    ClassWeight,
    K,
    at_least,
    signed_weights,
)
from precbench.solvers.rows import with_short_indices
from precbench.solvers.trees import Tree, Trees
from precbench.solvers.weights import WeightedRanker
from precbench.topk import TopK

__all__ = ["LambdaRank", "LightGBM", "imported", "random_lists", "version_of"]

_LONGEST_LIST = 10_000  # LightGBM refuses longer ones
_QUIETLY = {"num_threads": 1, "verbosity": -1}


class BoostedTrees(NonlinearRanker):
    """Base of the objectives of LightGBM, which runs in one thread."""

    allowed = Allowed(
        n_estimators=COUNT,
        learning_rate=POSITIVE,
        num_leaves=COUNT,
        min_child_samples=COUNT,
        reg_lambda=NOT_NEGATIVE,
        colsample_bytree=SHARE,
        random_state=["random_state"],
    )

    n_estimators: int
    learning_rate: float
    num_leaves: int
    min_child_samples: int
    reg_lambda: float
    colsample_bytree: float
    random_state: Any

    @property
    def algorithm_version(self) -> str:  # type: ignore[override]
        """Version of LightGBM, or that there is none."""
        return version_of("lightgbm")

    @abstractmethod
    def _objective(self, relevances: NDArray[np.float32], lengths: Any) -> dict[str, Any]:
        """Return the parameters of LightGBM that define the objective."""

    def _all_weights(self, labels: NDArray[np.int8]) -> Any:
        """Return the weights of the rows, None for equal ones."""
        return None

    def _lists(self, n_rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return an order of the rows, and the lengths of the lists to rank, None for no lists."""
        return slice(None), None

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        lightgbm = _lightgbm()
        self.n_iter_ = self.n_rows_seen_ = 0
        self._width = X.shape[1]
        rng = np.random.default_rng(self.random_state)
        params = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            "lambda_l2": self.reg_lambda,
            "feature_fraction": self.colsample_bytree,
            "seed": int(rng.integers(2**31)),
            "deterministic": True,
            "force_row_wise": True,  # else it times both ways and takes the faster
            **_QUIETLY,
        }
        if trace(self):
            return
        order, lengths = self._lists(len(labels), rng)
        rows, relevances = _rows(X)[order], (labels[order] > 0).astype(np.float32)
        params |= self._objective(relevances, lengths)
        data = lightgbm.Dataset(
            rows, relevances, weight=self._all_weights(labels), group=lengths, params=params
        )
        self._booster = lightgbm.Booster(params, data)
        is_done = False
        while not is_done and self.n_iter_ < self.n_estimators:
            is_done = self._booster.update()  # no leaf can be split
            self.n_iter_ = self._booster.current_iteration()
            self.n_rows_seen_ = self.n_iter_ * len(labels)
            is_done |= bool(trace(self))
        self._booster.free_dataset()

    def scores_after(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Score rows by the first trees.

        Parameters
        ----------
        X : ndarray of float64 in C order, or CSR matrix, of shape (n_samples, n_features)
        n_iter : int
            Number of trees; 0 gives scores of 0.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if n_iter == 0:
            return np.zeros(X.shape[0])
        scores = self._booster.predict(_rows(X), raw_score=True, num_iteration=n_iter, **_QUIETLY)
        return np.asarray(scores, dtype=np.float64)

    def to_trees(self) -> Trees:
        """Return the trees as plain arrays, whose scores are bitwise identical.

        Returns
        -------
        Trees
        """
        if not self.n_iter_:
            return Trees.of([], self._width)
        text = self._booster.model_to_string(num_iteration=self.n_iter_)
        blocks = text.partition("\nend of trees")[0].split("\nTree=")[1:]
        return Trees.of([_tree(block) for block in blocks], self._width)


class LightGBM(WeightedRanker, BoostedTrees):
    """Gradient-boosted trees on binned features (LightGBM), with the logistic loss.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.1
    num_leaves : int, default=31
    min_child_samples : int, default=20
    reg_lambda : float, default=0.0
        Weight of the L2 penalty. With few positives among many rows a leaf without a penalty may
        take a step of any length: take 0.1 or more there.
    colsample_bytree : float, default=1.0
        Fraction of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import LightGBM
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = LightGBM(n_estimators=1, num_leaves=3, random_state=0).fit(X, y)
    >>> len(set(ranker.decision_function(X)))  # one for each leaf of the tree
    3
    """

    allowed = Allowed(class_weight=CLASS_WEIGHT)

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        reg_lambda: float = 0.0,
        colsample_bytree: float = 1.0,
        class_weight: ClassWeight = None,
        random_state: Any = None,
    ):
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.colsample_bytree = colsample_bytree
        self.class_weight = class_weight
        self.random_state = random_state

    def _objective(self, relevances: NDArray[np.float32], lengths: Any) -> dict[str, Any]:
        return {"objective": "binary"}

    @property
    def _cuts_at_0(self) -> bool:
        return True

    def _all_weights(self, labels: NDArray[np.int8]) -> Any:
        if self._weights is not None:
            return self._row_weights(labels, self.class_weight)
        return compute_sample_weight(signed_weights(self.class_weight, self.classes_), labels)


class LambdaRank(BoostedTrees):
    """Gradient-boosted trees with the LambdaRank objective (LightGBM), truncated near the top.

    The pairs of rows that it learns from have at least one row in the top k of a list, and
    weigh as much as swapping them changes the discounted cumulative gain. More rows than a list may
    hold are divided at random into lists of equal length. An iteration takes time in proportion to
    k times the length of the lists.

    Parameters
    ----------
    k : float, int or str, default=1.0
        Fraction of the positives in (0, 1], count of rows, or fraction of the rows ("1 %") that is
        the top, at most as many rows as there are positives; of each list its share.
    beyond_k : int, default=0
        Rows by which the top of each list is longer; LightGBM advises a few, such as 3.
    list_length : int, default=10000
        Most rows of a list; LightGBM takes no more than 10,000.
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.1
    num_leaves : int, default=31
    min_child_samples : int, default=20
    reg_lambda : float, default=0.0
        Weight of the L2 penalty.
    colsample_bytree : float, default=1.0
        Fraction of the features that each tree is made of.
    random_state : int or None, default=None

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", Microsoft Research 2010; Ke et
    al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import LambdaRank
    >>> from precbench.metrics import auc, precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = LambdaRank(k=10, n_estimators=20, random_state=0).fit(X, y)
    >>> scores = ranker.decision_function(X)
    >>> precision_at_k(y, scores, k=10), bool(auc(y, scores) < 0.9)  # it learns the top alone
    (1.0, True)
    """

    allowed = Allowed(k=K, beyond_k=at_least(0), list_length=COUNT)

    def __init__(
        self,
        *,
        k: TopK = 1.0,
        beyond_k: int = 0,
        list_length: int = _LONGEST_LIST,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        reg_lambda: float = 0.0,
        colsample_bytree: float = 1.0,
        random_state: Any = None,
    ):
        self.k = k
        self.beyond_k = beyond_k
        self.list_length = list_length
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.colsample_bytree = colsample_bytree
        self.random_state = random_state

    def _lists(self, n_rows: int, rng: np.random.Generator) -> tuple[Any, NDArray[np.intp]]:
        return random_lists(n_rows, min(self.list_length, _LONGEST_LIST), rng)

    def _objective(self, relevances: NDArray[np.float32], lengths: Any) -> dict[str, Any]:
        k = top_of_training(self.k, relevances)
        return {
            "objective": "lambdarank",
            "lambdarank_truncation_level": ceil(k / len(lengths)) + self.beyond_k,
        }


def _tree(block: str) -> Tree:
    """Read a tree of a model's text: leaves are -1, -2, ... among the children of inner nodes."""
    lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)

    def array(name: str, kind: type) -> NDArray[Any]:
        return np.array(lines.get(name, "").split(), dtype=kind)

    if not np.isin(array("decision_type", int), (0, 2)).all():  # numbers, of which none is missing
        raise TypeError("LightGBM has made a tree with decisions that are unknown here")
    feature, leaf = array("split_feature", int), array("leaf_value", float)
    none, value = np.full(len(leaf), -1), np.append(array("threshold", float), leaf)
    cover = np.append(array("internal_count", int), array("leaf_count", int))
    children = (array(name, int) for name in ("left_child", "right_child"))
    # Leaf -1 - i is node number i behind the inner nodes; ~c is i.
    left, right = (np.append(np.where(c < 0, len(feature) + ~c, c), none) for c in children)
    if len(cover) < len(value):  # not written of a tree without splits
        cover = np.ones(len(value))
    return Tree.of(np.append(feature, none), value, left, right, cover)


def _rows(X: Any) -> Any:
    """Return rows as LightGBM takes them, which knows no sparse arrays."""
    X = with_short_indices(X)
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def random_lists(
    n_rows: int, longest: int, rng: np.random.Generator
) -> tuple[Any, NDArray[np.intp]]:
    """Divide rows at random into the fewest lists of equal length that are not too long.

    Returns
    -------
    order : slice or ndarray of shape (n_rows,)
        The rows, list by list.
    lengths : ndarray of shape (n_lists,)
    """
    n_lists = ceil(n_rows / longest)
    lengths = np.diff(np.linspace(0, n_rows, n_lists + 1).astype(int))
    return (slice(None) if n_lists == 1 else rng.permutation(n_rows)), lengths


def version_of(package: str, *other_names: str) -> str:
    """Return the `algorithm_version` of a solver of an optional package, under any of its names."""
    for name in (package, *other_names):
        try:
            return f"1, {package} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return f"1, {package} is not installed"


def imported(package: str, extra: str) -> Any:
    """Return an optional package, or say with which extra it is installed."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"{package} cannot be imported ({error}): install it with "
            f"pip install 'precbench[{extra}]'"
        ) from error


def _lightgbm() -> Any:
    return imported("lightgbm", "trees")

"""Gradient-boosted trees of LightGBM, an optional package: logistic loss, and LambdaRank."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.topk import TopK
from precbench.solvers.common.base import Trace
from precbench.solvers.common.parameters import (
    CLASS_WEIGHT,
    COUNT,
    N_JOBS,
    NOT_NEGATIVE,
    POSITIVE,
    RANDOM_STATE,
    SHARE,
    Allowed,
    ClassWeight,
    K,
    as_generator,
    at_least,
)
from precbench.solvers.common.weights import WeightedRanker
from precbench.solvers.others.lists import LONGEST_LIST, ListRanker
from precbench.solvers.others.trees import Trees, lightgbm_trees
from precbench.solvers.others.wrapper import Library, ScoringClassifier, n_threads


class Task(NamedTuple):
    """What a solver asks of LightGBM."""

    order: Any  # index of the rows
    fields: dict[str, Any]  # arguments of `lightgbm.Dataset`: weights or lists of the rows
    parameters: dict[str, Any]  # of the objective


class BoostedTrees(ScoringClassifier):
    """Base of the objectives of LightGBM."""

    n_estimators: int
    learning_rate: float
    num_leaves: int
    min_child_samples: int
    reg_lambda: float
    colsample_bytree: float
    random_state: Any
    n_jobs: int

    library = Library(("lightgbm",), extra="trees")
    allowed = Allowed(
        n_estimators=COUNT,
        learning_rate=POSITIVE,
        num_leaves=COUNT,
        min_child_samples=COUNT,
        reg_lambda=NOT_NEGATIVE,
        colsample_bytree=SHARE,
        random_state=RANDOM_STATE,
        n_jobs=N_JOBS,
    )
    has_trees = True

    @abstractmethod
    def _task(self, labels: NDArray[np.int8], rng: np.random.Generator) -> Task:
        """Return what to learn from the rows of these labels."""

    def _classifier(self) -> Any:
        return self.library.load("lightgbm")  # whose boosters are made with the rows

    def _settings(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return LightGBM's parameters, but for those of the objective."""
        return {
            "colsample_bytree": self.colsample_bytree,
            "learning_rate": self.learning_rate,
            "min_child_samples": self.min_child_samples,
            "num_leaves": self.num_leaves,
            "reg_lambda": self.reg_lambda,
            "deterministic": True,
            "force_row_wise": True,  # else LightGBM times both ways and takes the faster
            "num_threads": n_threads(self.n_jobs),
            "verbosity": -1,
            "seed": int(rng.integers(2**31)),
        }

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Train a LightGBM booster tree by tree; yield the number of trees so far."""
        lightgbm, X = self._classifier(), self._rows(X)
        rng = as_generator(self.random_state)
        parameters = self._settings(rng)
        yield 0
        task = self._task(labels, rng)
        parameters |= task.parameters
        relevances = (labels[task.order] > 0).astype(np.float32)  # 1 for a positive, else 0
        data = lightgbm.Dataset(X[task.order], relevances, params=parameters, **task.fields)
        self.classifier_ = lightgbm.Booster(parameters, data)
        is_done = False
        try:
            while not is_done and self.n_iter_ < self.n_estimators:  # n_iter_: kept by `_fit`
                is_done = self.classifier_.update()  # adds a tree; True if no leaf can be split
                yield self.classifier_.current_iteration()
        finally:
            self.classifier_.free_dataset()  # else the booster keeps a copy of the rows

    def _read_trees(self) -> Trees:
        return lightgbm_trees(self.classifier_, self._width)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        scores = self.classifier_.predict(
            X, raw_score=True, num_iteration=self.n_iter_, num_threads=1, verbosity=-1
        )
        return np.asarray(scores, dtype=np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
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
        As `l2_regularization` of `HistGradientBoosting`.
    colsample_bytree : float, default=1.0
        Fraction of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None
    n_jobs : int, default=1
        Threads of a fit, -1 for one on each processor.

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

    n_estimators: int = 100
    learning_rate: float = 0.1
    num_leaves: int = 31
    min_child_samples: int = 20
    reg_lambda: float = 0.0
    colsample_bytree: float = 1.0
    class_weight: ClassWeight = None
    random_state: Any = None
    n_jobs: int = 1

    allowed = Allowed(class_weight=CLASS_WEIGHT)

    def _task(self, labels: NDArray[np.int8], rng: np.random.Generator) -> Task:
        weights = self._weights_with_classes(labels)
        return Task(slice(None), {"weight": weights}, {"objective": "binary"})


@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(BoostedTrees, ListRanker):
    """Gradient-boosted trees with the LambdaRank objective (LightGBM), truncated near the top.

    The pairs of rows that are learnt from have at least one row in the top k of a list. A pair
    weighs as much as swapping its rows changes the discounted cumulative gain. More rows than a
    list may hold are divided at random into lists of equal length. Time grows with k times length.

    Parameters
    ----------
    k : float, int or str, default=1.0
        Fraction of the positives in (0, 1], count of rows, or fraction of the rows ("1 %") that is
        the top, at most as many rows as there are positives; each list has its share of k.
    beyond_k : int, default=0
        Rows by which the top of each list is longer; LightGBM advises a few, such as 3.
    list_length : int, default=10000
        Most rows of a list; LightGBM takes no more than 10,000.
    n_estimators, learning_rate, num_leaves, min_child_samples, reg_lambda, colsample_bytree
        As of `LightGBM`.
    random_state : int or None, default=None
    n_jobs : int, default=1
        As of `LightGBM`.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", Microsoft Research 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import LambdaRank
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = LambdaRank(k=10, n_estimators=20, random_state=0).fit(X, y)
    >>> precision_at_k(y, ranker.decision_function(X), k=10)
    1.0
    """

    k: TopK = 1.0
    beyond_k: int = 0
    list_length: int = LONGEST_LIST
    n_estimators: int = 100
    learning_rate: float = 0.1
    num_leaves: int = 31
    min_child_samples: int = 20
    reg_lambda: float = 0.0
    colsample_bytree: float = 1.0
    random_state: Any = None
    n_jobs: int = 1

    allowed = Allowed(k=K, beyond_k=at_least(0), list_length=COUNT)
    ranks_lists = True

    def _task(self, labels: NDArray[np.int8], rng: np.random.Generator) -> Task:
        lists = self._lists(labels, rng, longest=LONGEST_LIST)
        parameters = {"objective": "lambdarank", "lambdarank_truncation_level": lists.n_top}
        return Task(lists.order, {"group": lists.lengths}, parameters)

"""Boosted trees of LightGBM, an optional package: logistic loss, or LambdaRank."""

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
    fields: dict[str, Any]  # weights or lists of the rows, for `lightgbm.Dataset`
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
        num_leaves=at_least(2),
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
            # Without this LightGBM times both ways and takes the faster.
            "force_row_wise": True,
            "num_threads": n_threads(self.n_jobs),
            "verbosity": -1,
            "seed": int(rng.integers(2**31)),
        }

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Train a LightGBM booster tree by tree; yield the number of trees so far."""
        lightgbm = self._classifier()
        X = self._rows(X)
        rng = as_generator(self.random_state)
        parameters = self._settings(rng)
        yield 0
        task = self._task(labels, rng)
        parameters |= task.parameters
        relevances = (labels[task.order] > 0).astype(np.float32)  # 1 or 0
        data = lightgbm.Dataset(
            X[task.order], relevances, params=parameters, **task.fields
        )
        self.classifier_ = lightgbm.Booster(parameters, data)
        no_leaf_splits = False
        try:
            # `_fit` sets `n_iter_` after each tree.
            while not no_leaf_splits and self.n_iter_ < self.n_estimators:
                no_leaf_splits = self.classifier_.update()  # adds a tree
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

    Each tree is fitted to the gradient of the loss ``ln(1 + exp(-y_i f(x_i)))`` at the
    sum f of the trees before; f, the log odds, ranks the rows. A strong and fast method
    for tables whose features are not linear in their effect, dense or sparse. It needs
    the package lightgbm, ``pip install 'precbench[trees]'``.

    Parameters
    ----------
    n_estimators : int, default=100
        Most trees, at least 1.
    learning_rate : float, default=0.1
        Factor, above 0, by which each tree is shrunk.
    num_leaves : int, default=31
        Most leaves of a tree, at least 2.
    min_child_samples : int, default=20
        Least number of rows in a leaf, at least 1.
    reg_lambda : float, default=0.0
        Weight of the L2 penalty on the values of leaves, at least 0. With few positives
        among many rows a leaf without a penalty may take a step of any length: take 0.1
        or more there.
    colsample_bytree : float, default=1.0
        Fraction in (0, 1] of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the loss. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the features of each tree. An int gives the same in each fit, None a new
        one; a RandomState or Generator goes on where it stopped.
    n_jobs : int, default=1
        Number of threads of a fit, at least 1, or -1 for one on each processor.

    Attributes
    ----------
    classifier_ : lightgbm.Booster
        The booster, fitted to relevances of 0 and 1.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Trees so far; at most `n_estimators`, fewer where no leaf can be split.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows for each tree.

    Raises
    ------
    MissingPackageError
        By `fit`, if lightgbm is not installed.

    Notes
    -----
    `fit` takes `sample_weight`, which multiplies the weights of the classes. There is
    no `threshold_`: `predict` cuts at log odds of 0.

    References
    ----------
    Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS
    2017: Algorithm 1.

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
        return Task(
            order=slice(None),
            fields={"weight": weights},
            parameters={"objective": "binary"},
        )


@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(BoostedTrees, ListRanker):
    """Gradient-boosted trees for the top of a list (LightGBM's LambdaRank).

    It learns from the pairs of a positive i and a negative j of which at least one is
    in the top k of a list. The loss ``ln(1 + exp(-(s_i - s_j)))`` of such a pair weighs
    as much as swapping its rows changes the discounted cumulative gain. More rows than
    a list may hold are divided at random into lists of equal length. The time grows
    with k times the length of a list. It needs the package lightgbm,
    ``pip install 'precbench[trees]'``.

    Parameters
    ----------
    k : float, int or str, default=1.0
        Length of the top of all lists together. An int is a number of rows, a float in
        (0, 1] a fraction of the positives, and text such as "1 %" a fraction of the
        rows; fractions are rounded up. So 1 is a single row, and 1.0 as many rows as
        there are positives. Training takes at most as many rows as there are positives,
        and warns if `k` is more. Each list has its share of them, rounded up.
    beyond_k : int, default=0
        Number of rows, at least 0, by which the top of each list is longer; LightGBM
        advises a few, such as 3.
    list_length : int, default=10000
        Most rows of a list, at least 1; LightGBM takes no more than 10,000, and a
        greater value counts as that.
    n_estimators : int, default=100
        Most trees, at least 1.
    learning_rate : float, default=0.1
        Factor, above 0, by which each tree is shrunk.
    num_leaves : int, default=31
        Most leaves of a tree, at least 2.
    min_child_samples : int, default=20
        Least number of rows in a leaf, at least 1.
    reg_lambda : float, default=0.0
        Weight of the L2 penalty on the values of leaves, at least 0. With few positives
        among many rows a leaf without a penalty may take a step of any length: take 0.1
        or more there.
    colsample_bytree : float, default=1.0
        Fraction in (0, 1] of the features that each tree is made of.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the lists and of the features of each tree. An int gives the same in
        each fit, None a new one; a RandomState or Generator goes on where it stopped.
    n_jobs : int, default=1
        Number of threads of a fit, at least 1, or -1 for one on each processor.

    Attributes
    ----------
    classifier_ : lightgbm.Booster
        The booster, fitted to relevances of 0 and 1.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. The first `k`
        training rows score above it, except for ties. Only after a `fit` without a
        trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Trees so far; at most `n_estimators`, fewer where no leaf can be split.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows for each tree.

    Raises
    ------
    MissingPackageError
        By `fit`, if lightgbm is not installed.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", report
    MSR-TR-2010-82, Microsoft Research 2010: sections 4 and 7.

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
        parameters = {
            "objective": "lambdarank",
            "lambdarank_truncation_level": lists.n_top,
        }
        fields = {"group": lists.lengths}
        return Task(order=lists.order, fields=fields, parameters=parameters)

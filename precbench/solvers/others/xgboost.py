"""Gradient-boosted trees of XGBoost, an optional package: logistic loss, or lists."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.topk import TopK
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
    one_of,
)
from precbench.solvers.common.rows import STORED
from precbench.solvers.others.lists import LONGEST_LIST, ListRanker
from precbench.solvers.others.trees import in_single_precision
from precbench.solvers.others.wrapper import Library, n_threads


@dataclass(kw_only=True, eq=False, repr=False)
class XGBoost(ListRanker):
    """Gradient-boosted trees of XGBoost: the logistic loss, or the top of lists.

    With "logistic" each tree is fitted to the loss ``ln(1 + exp(-y_i f(x_i)))`` at the
    sum f of the trees before, and f is the log odds. To rank lists (LambdaMART) all
    training rows are one list, or are divided at random into lists of equal length;
    learnt from are the pairs of a positive and a negative of which one is in the top k
    of a list, weighed by what swapping the two changes of the measure of the list.
    Sparse rows are made dense. It needs the package xgboost,
    ``pip install 'precbench[rivals]'``.

    Parameters
    ----------
    objective : {"logistic", "rank:ndcg", "rank:map"}, default="logistic"
        What is learnt: the logistic loss of rows, or the order of lists, measured by
        the normalised discounted cumulative gain or by the mean average precision.
    k : float, int or str, default=1.0
        Length of the top of all lists together, to rank lists only. An int is a number
        of rows, a float in (0, 1] a fraction of the positives, and text such as "1 %" a
        fraction of the rows; fractions are rounded up. So 1 is a single row, and 1.0 as
        many rows as there are positives. Training takes at most as many rows as there
        are positives, and warns if `k` is more. Each list has its share of them,
        rounded up.
    beyond_k : int, default=3
        Number of rows, at least 0, by which the top of each list is longer; to rank
        lists only.
    list_length : int, default=10000
        Most rows of a list, at least 1; to rank lists only.
    n_estimators : int, default=100
        Number of trees, at least 1.
    learning_rate : float, default=0.3
        Factor, above 0, by which each tree is shrunk.
    max_depth : int, default=6
        Most splits from the root of a tree to a leaf; 0 for no limit.
    max_leaves : int, default=0
        Most leaves of a tree, which then grows where it gains most; 0 for no limit.
    min_child_weight : float, default=1.0
        Least sum of second derivatives in a leaf, at least 0. Lists have small ones:
        with few positives take 0 there.
    reg_lambda : float, default=1.0
        Weight of the L2 penalty on the values of leaves, at least 0.
    colsample_bytree : float, default=1.0
        Fraction in (0, 1] of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the logistic loss. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike. Lists have no weights.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the lists and of the features of each tree. An int gives the same in
        each fit, None a new one; a RandomState or Generator goes on where it stopped.
    n_jobs : int, default=1
        Number of threads of a fit, at least 1, or -1 for one on each processor.

    Attributes
    ----------
    classifier_ : xgboost.Booster
        The booster, fitted to labels of False and True.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. The first `k`
        training rows score above it, except for ties. Only after a `fit` without a
        trace, to rank lists; with "logistic" `predict` cuts at log odds of 0.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        1 after the training, which is one step whatever the number of trees; 0 before.
    n_rows_seen_ : int
        Training rows, counted once: their number after the training, 0 before.

    Raises
    ------
    MissingPackageError
        By `fit`, if xgboost is not installed.

    References
    ----------
    Chen, Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016: the penalised
    loss (2) and the values of leaves (5). Burges, "From RankNet to LambdaRank to
    LambdaMART: an overview", report MSR-TR-2010-82, Microsoft Research 2010, for lists.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import XGBoost
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = XGBoost("rank:map", k=10, n_estimators=20, random_state=0).fit(X, y)
    >>> precision_at_k(y, ranker.decision_function(X), k=10)
    1.0
    """

    objective: str = field(default="logistic", kw_only=False)
    k: TopK = 1.0
    beyond_k: int = 3
    list_length: int = LONGEST_LIST
    n_estimators: int = 100
    learning_rate: float = 0.3
    max_depth: int = 6
    max_leaves: int = 0
    min_child_weight: float = 1.0
    reg_lambda: float = 1.0
    colsample_bytree: float = 1.0
    class_weight: ClassWeight = None
    random_state: Any = None
    n_jobs: int = 1

    allowed = Allowed(
        objective=one_of("logistic", "rank:ndcg", "rank:map"),
        k=K,
        beyond_k=at_least(0),
        list_length=COUNT,
        n_estimators=COUNT,
        learning_rate=POSITIVE,
        max_depth=at_least(0),
        max_leaves=at_least(0),
        min_child_weight=NOT_NEGATIVE,
        reg_lambda=NOT_NEGATIVE,
        colsample_bytree=SHARE,
        class_weight=CLASS_WEIGHT,
        random_state=RANDOM_STATE,
        n_jobs=N_JOBS,
    )
    library = Library(("xgboost", "xgboost-cpu"), extra="rivals")
    dtypes = STORED
    # XGBoost takes what sparse rows do not store for missing, not for 0.
    needs_dense_rows = True

    @property
    def ranks_lists(self) -> bool:
        return self.objective != "logistic"

    def _rows(self, X: Any) -> Any:
        return in_single_precision(super()._rows(X))

    def _classifier(self) -> Any:
        return self.library.load("xgboost")  # whose boosters are made with the rows

    def _settings(self) -> dict[str, Any]:
        """Return XGBoost's parameters, but for those of the objective."""
        return {
            "colsample_bytree": self.colsample_bytree,
            "learning_rate": self.learning_rate,
            "max_depth": self.max_depth,
            "max_leaves": self.max_leaves,
            "min_child_weight": self.min_child_weight,
            "reg_lambda": self.reg_lambda,
            "nthread": n_threads(self.n_jobs),
            "verbosity": 0,
            "random_state": int(as_generator(self.random_state).integers(2**31)),
            "grow_policy": "lossguide" if self.max_leaves else "depthwise",
        }

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        """Train with the logistic loss, or on lists of rows in random order."""
        xgboost = classifier  # the module, see `_classifier`
        parameters = self._settings()
        nthread = parameters["nthread"]
        if self.ranks_lists:
            lists = self._lists(labels, as_generator(self.random_state))
            rows = xgboost.DMatrix(
                X[lists.order],
                labels[lists.order] > 0,
                group=lists.lengths,
                nthread=nthread,
            )
            parameters["objective"] = self.objective
            # Pairs have a row in the first `n_top` of a list.
            parameters["lambdarank_pair_method"] = "topk"
            parameters["lambdarank_num_pair_per_sample"] = lists.n_top
        else:
            weights = self._weights_with_classes(labels)
            rows = xgboost.DMatrix(X, labels > 0, weight=weights, nthread=nthread)
            parameters["objective"] = "binary:logistic"
        return xgboost.train(parameters, rows, self.n_estimators)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        scores = self.classifier_.inplace_predict(X, predict_type="margin")
        return np.asarray(scores, dtype=np.float64)

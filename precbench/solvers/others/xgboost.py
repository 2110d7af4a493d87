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
    """Gradient-boosted trees of XGBoost, with the logistic loss or the lists of LambdaMART.

    To rank lists, all training rows are one list, or are divided at random into equally long lists.
    The pairs that are learnt from have a row in the top k of a list. Sparse rows are made dense.

    Parameters
    ----------
    objective : {"logistic", "rank:ndcg", "rank:map"}, default="logistic"
    k : float, int or str, default=1.0
    beyond_k : int, default=3
    list_length : int, default=10000
        To rank lists: all as of `LambdaRank`.
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.3
    max_depth : int, default=6
        0 for no limit.
    max_leaves : int, default=0
        Most leaves of a tree, which then grows where it gains most; 0 for no limit.
    min_child_weight : float, default=1.0
        Least sum of second derivatives in a leaf; lists have small ones: with few positives take 0.
    reg_lambda : float, default=1.0
        Weight of the L2 penalty.
    colsample_bytree : float, default=1.0
        Fraction of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        For the logistic loss, as of `LogisticRegressionRanker`.
    random_state : int or None, default=None
    n_jobs : int, default=1
        Threads of a fit, -1 for one on each processor.

    References
    ----------
    Chen & Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016.

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
    needs_dense_rows = True  # XGBoost takes what sparse rows do not store as missing, not as 0

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
        """Train XGBoost's booster with the logistic loss, or on lists of rows in random order."""
        xgboost, parameters = classifier, self._settings()
        nthread = parameters["nthread"]
        if self.ranks_lists:
            lists = self._lists(labels, as_generator(self.random_state))
            rows = xgboost.DMatrix(
                X[lists.order], labels[lists.order] > 0, group=lists.lengths, nthread=nthread
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

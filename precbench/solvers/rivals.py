"""Contestants of other houses: XGBoost and CatBoost, a neural network, and a ranking without skill.

XGBoost and CatBoost are optional packages.
"""

import warnings
from math import ceil
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.utils.class_weight import compute_sample_weight

from precbench.errors import InputError
from precbench.solvers.base import top_of_training
from precbench.solvers.classifiers import ScoringClassifier
from precbench.solvers.lightgbm import imported, random_lists, version_of
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
    one_of,
    signed_weights,
)
from precbench.solvers.rows import STORED, as_rows, linear_scores
from precbench.topk import TopK

__all__ = ["MLP", "CatBoost", "NoSkill", "XGBoost"]


class OptionalBoosting(ScoringClassifier):
    """Base of boosting by optional packages, which make float32 of dense rows."""

    needs_dense_rows = True  # XGBoost takes what is not stored in sparse rows as missing, not as 0
    dtypes = STORED

    allowed = Allowed(n_estimators=COUNT, class_weight=CLASS_WEIGHT, random_state=["random_state"])

    n_estimators: int
    class_weight: ClassWeight
    random_state: Any

    def _rows(self, X: Any) -> Any:
        with np.errstate(over="ignore"):
            rows = super()._rows(X).astype(np.float32, copy=False)
        if not np.isfinite(rows).all():
            raise InputError(
                f"X has values up to {np.abs(X).max():.3g}, which overflow the float32 of "
                f"{type(self).__name__}: scale the features"
            )
        return rows

    def _seed(self) -> int:
        return int(np.random.default_rng(self.random_state).integers(2**31))

    def _given_weights(self, labels: NDArray[np.int8]) -> dict[str, Any]:
        chosen = signed_weights(self.class_weight, self.classes_)
        return {"sample_weight": compute_sample_weight(chosen, labels)}


class XGBoost(OptionalBoosting):
    """Gradient-boosted trees of XGBoost, with the logistic loss or the lists of LambdaMART.

    To rank lists, all training rows are one, or are divided at random into lists of equal length.
    The pairs that are learnt from have a row in the top k of a list. Sparse rows are made dense.

    Parameters
    ----------
    objective : {"logistic", "rank:ndcg", "rank:map"}, default="logistic"
    k : float, int or str, default=1.0
        To rank lists: fraction of the positives in (0, 1], count of rows, or fraction of the rows
        ("1 %") that is the top, at most as many rows as there are positives; of each list its
        share.
    beyond_k : int, default=3
        To rank lists: rows by which the top of each list is longer, as XGBoost advises.
    list_length : int, default=10000
        Most rows of a list.
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.3
    max_depth : int, default=6
        0 for no limit.
    max_leaves : int, default=0
        Most leaves of a tree, which then grows where it gains most; 0 for no limit.
    min_child_weight : float, default=1.0
        Least sum of second derivatives in a leaf; those of lists are small: take 0 where positives
        are few.
    reg_lambda : float, default=1.0
        Weight of the L2 penalty.
    colsample_bytree : float, default=1.0
        Fraction of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        For the logistic loss, as of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Chen & Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import XGBoost
    >>> from precbench.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> for objective in ("logistic", "rank:map"):
    ...     ranker = XGBoost(objective, k=10, n_estimators=20, random_state=0).fit(X, y)
    ...     print(precision_at_k(y, ranker.decision_function(X), k=10))
    1.0
    1.0
    """

    allowed = Allowed(
        objective=one_of("logistic", "rank:ndcg", "rank:map"),
        k=K,
        beyond_k=at_least(0),
        list_length=COUNT,
        learning_rate=POSITIVE,
        max_depth=at_least(0),
        max_leaves=at_least(0),
        min_child_weight=NOT_NEGATIVE,
        reg_lambda=NOT_NEGATIVE,
        colsample_bytree=SHARE,
    )

    def __init__(
        self,
        objective: str = "logistic",
        *,
        k: TopK = 1.0,
        beyond_k: int = 3,
        list_length: int = 10_000,
        n_estimators: int = 100,
        learning_rate: float = 0.3,
        max_depth: int = 6,
        max_leaves: int = 0,
        min_child_weight: float = 1.0,
        reg_lambda: float = 1.0,
        colsample_bytree: float = 1.0,
        class_weight: ClassWeight = None,
        random_state: Any = None,
    ):
        self.objective = objective
        self.k = k
        self.beyond_k = beyond_k
        self.list_length = list_length
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.colsample_bytree = colsample_bytree
        self.class_weight = class_weight
        self.random_state = random_state

    @property
    def algorithm_version(self) -> str:  # type: ignore[override]
        """Version of XGBoost, or that there is none."""
        return version_of("xgboost", "xgboost-cpu")

    @property
    def _cuts_at_0(self) -> bool:
        return self.objective == "logistic"

    @property
    def _judged_at(self) -> TopK:
        return 1.0 if self.objective == "logistic" else self.k

    def _classifier(self) -> Any:
        return imported("xgboost", "rivals")

    def _trained(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        params = {
            "objective": "binary:logistic",
            "eta": self.learning_rate,
            "max_depth": self.max_depth,
            "max_leaves": self.max_leaves,
            "grow_policy": "lossguide" if self.max_leaves else "depthwise",
            "min_child_weight": self.min_child_weight,
            "lambda": self.reg_lambda,
            "colsample_bytree": self.colsample_bytree,
            "seed": self._seed(),
            "nthread": 1,
            "verbosity": 0,
        }
        if self.objective == "logistic":
            weights = self._given_weights(labels)["sample_weight"]
            rows = classifier.DMatrix(X, labels > 0, weight=weights, nthread=1)
        else:
            rng = np.random.default_rng(self.random_state)
            order, lengths = random_lists(len(labels), self.list_length, rng)
            rows = classifier.DMatrix(X[order], labels[order] > 0, group=lengths, nthread=1)
            of_each = ceil(top_of_training(self.k, labels) / len(lengths))
            params |= {
                "objective": self.objective,
                "lambdarank_pair_method": "topk",
                "lambdarank_num_pair_per_sample": of_each + self.beyond_k,
            }
        return classifier.train(params, rows, self.n_estimators)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(
            self.classifier_.inplace_predict(X, predict_type="margin"), dtype=np.float64
        )


class CatBoost(OptionalBoosting):
    """Boosted symmetric trees of CatBoost, with the logistic loss. Sparse rows are made dense.

    Parameters
    ----------
    n_estimators : int, default=1000
        Number of trees.
    learning_rate : float or None, default=None
        None for what CatBoost derives from the numbers of rows and trees, or 0.03 where there is an
        `l2_leaf_reg`.
    depth : int, default=6
        Of each tree, at most 16.
    l2_leaf_reg : float or None, default=None
        Weight of the L2 penalty; None for 3.
    class_weight : {"balanced"}, dict or None, default=None
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Prokhorenkova et al., "CatBoost: unbiased boosting with categorical features", NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import CatBoost
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> for depth in (1, 2):  # a symmetric tree divides at one place more, on both sides
    ...     ranker = CatBoost(n_estimators=1, depth=depth, random_state=0).fit(X, y)
    ...     print(len(set(ranker.decision_function(X))))
    2
    3
    """

    allowed = Allowed(
        learning_rate=[None, *POSITIVE], depth=at_least(1), l2_leaf_reg=[None, *NOT_NEGATIVE]
    )

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        learning_rate: float | None = None,
        depth: int = 6,
        l2_leaf_reg: float | None = None,
        class_weight: ClassWeight = None,
        random_state: Any = None,
    ):
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.l2_leaf_reg = l2_leaf_reg
        self.class_weight = class_weight
        self.random_state = random_state

    @property
    def algorithm_version(self) -> str:  # type: ignore[override]
        """Version of CatBoost, or that there is none."""
        return version_of("catboost")

    def _classifier(self) -> Any:
        return imported("catboost", "rivals").CatBoostClassifier(
            iterations=self.n_estimators,
            learning_rate=self.learning_rate,
            depth=self.depth,
            l2_leaf_reg=self.l2_leaf_reg,
            random_seed=self._seed(),
            thread_count=1,
            allow_writing_files=False,
            logging_level="Silent",
        )

    def _trained(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        if not np.ptp(X, axis=0).any():  # which CatBoost refuses
            classifier = DummyClassifier()
        return super()._trained(classifier, X, labels)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        if isinstance(self.classifier_, DummyClassifier):
            return super()._final_scores(X)
        return self.classifier_.predict(X, prediction_type="RawFormulaVal", thread_count=1)


class MLP(ScoringClassifier):
    """A neural network with one hidden layer (scikit-learn, Adam), for scaled features.

    Parameters
    ----------
    hidden_layer_size : int, default=100
        Number of rectified units.
    alpha : float, default=1e-4
        Weight of the L2 penalty.
    learning_rate_init : float, default=0.001
    max_iter : int, default=200
        Most passes; the training ends before where the loss does not get smaller. All training
        rows are used.
    random_state : int or None, default=None

    References
    ----------
    Kingma & Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import MLP
    >>> from precbench.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, which hidden units can rank first
    >>> ranker = MLP(hidden_layer_size=20, learning_rate_init=0.01, random_state=0).fit(X, y)
    >>> precision_at_k(y, ranker.decision_function(X), k=20)
    1.0
    """

    algorithm_version = f"1, scikit-learn {sklearn.__version__}"

    allowed = Allowed(
        hidden_layer_size=COUNT,
        alpha=NOT_NEGATIVE,
        learning_rate_init=POSITIVE,
        max_iter=COUNT,
        random_state=["random_state"],
    )

    def __init__(
        self,
        *,
        hidden_layer_size: int = 100,
        alpha: float = 1e-4,
        learning_rate_init: float = 0.001,
        max_iter: int = 200,
        random_state: Any = None,
    ):
        self.hidden_layer_size = hidden_layer_size
        self.alpha = alpha
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _classifier(self) -> MLPClassifier:
        given = self.get_params(deep=False)
        return MLPClassifier((given.pop("hidden_layer_size"),), **given)

    def _trained(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the passes are a parameter
            return super()._trained(classifier, X, labels)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        (hidden, outer), (shifts, shift) = self.classifier_.coefs_, self.classifier_.intercepts_
        rows, scores = as_rows(X), np.full(X.shape[0], shift)
        for w, constant, weight in zip(np.ascontiguousarray(hidden.T), shifts, outer, strict=True):
            scores += weight * np.maximum(linear_scores(rows, w) + constant, 0)
        return scores


class NoSkill(ScoringClassifier):
    """The same score for all rows (scikit-learn): what any method should exceed.

    Metrics count ties by their expected value: precision is the share of positives, AUC is 1/2.

    Examples
    --------
    >>> from precbench import NoSkill
    >>> from precbench.metrics import precision_at_k
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [1, 0, 0, 0]
    >>> precision_at_k(y, NoSkill().fit(X, y).decision_function(X), k=2)  # the share of positives
    0.25
    """

    algorithm_version = f"1, scikit-learn {sklearn.__version__}"

    def _classifier(self) -> DummyClassifier:
        return DummyClassifier()

"""Classifiers of other libraries whose scores rank the rows: ensembles of trees, or any other."""

import inspect
import sys
from abc import abstractmethod
from functools import cache
from math import ceil
from typing import Any, Final, Literal

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import ThreadpoolController

from precbench.solvers.base import NonlinearRanker, Trace, require_memory
from precbench.solvers.parameters import (
    CLASS_WEIGHT,
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Allowed,
    ClassWeight,
    one_of,
    signed_weights,
)
from precbench.solvers.rows import STORED, with_short_indices
from precbench.solvers.trees import Tree, Trees
from precbench.solvers.weights import WeightedRanker
from precbench.topk import TopK

__all__ = ["ExtraTrees", "HistGradientBoosting", "RandomForest", "ScoringClassifier", "ranker_of"]

UNDERSAMPLED: Final = "undersampled"
_MOST_BINS = 255  # of scikit-learn


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def _one_thread() -> Any:
    """Return a context in which BLAS and OpenMP take one thread."""
    return _thread_pools().limit(limits=1)


class ScoringClassifier(NonlinearRanker):
    """Base of contestants that are scikit-learn-compatible classifiers.

    Rows are ranked by `decision_function` of the classifier, else by its probability of the
    positive class, less 1/2. It runs in one thread. It has no state before the end of its training.

    Attributes
    ----------
    classifier_ : estimator
        Fitted to labels -1 and +1.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from precbench.solvers import ScoringClassifier
    >>> class TwoNeighbours(ScoringClassifier):
    ...     def _classifier(self):
    ...         return KNeighborsClassifier(2)
    >>> ranker = TwoNeighbours().fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    >>> ranker.decision_function([[0.4], [2.5], [4.6]]).tolist()  # shares of positives, less 1/2
    [-0.5, 0.0, 0.5]
    """

    needs_dense_rows = False

    classifier_: Any

    @property
    def _cuts_at_0(self) -> bool:
        return True

    @property
    def _judged_at(self) -> TopK:
        return 1.0  # a k of the classifier would be one of its own, as that of nearest neighbours

    @abstractmethod
    def _classifier(self) -> Any:
        """Return the unfitted classifier."""

    def _given_weights(self, labels: NDArray[np.int8]) -> dict[str, Any]:
        """Return the weights of the rows as an argument for the classifier, if there are any."""
        return {}

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        self.n_iter_ = self.n_rows_seen_ = 0
        self._width = X.shape[1]
        classifier, X = self._classifier(), self._rows(X)
        if trace(self):
            return
        with _one_thread():
            self.classifier_ = self._trained(classifier, X, labels)
        self.n_iter_, self.n_rows_seen_ = 1, X.shape[0]
        trace(self)

    def _trained(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        """Return the classifier, fitted."""
        return classifier.fit(X, labels, **self._given_weights(labels))

    def scores_after(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Score rows after the training, or before it.

        Parameters
        ----------
        X : ndarray of float64 in C order, or CSR matrix, of shape (n_samples, n_features)
        n_iter : int
            0 gives scores of 0.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if n_iter == 0:
            return np.zeros(X.shape[0])
        with _one_thread():
            return self._final_scores(self._rows(X))

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        if hasattr(self.classifier_, "decision_function"):
            return np.asarray(self.classifier_.decision_function(X), dtype=np.float64)
        return np.asarray(self.classifier_.predict_proba(X)[:, 1], dtype=np.float64) - 0.5

    def _rows(self, X: Any) -> Any:
        X = with_short_indices(X)
        if X.dtype not in self.dtypes:
            X = X.astype(self.dtypes[0])
        if not self.needs_dense_rows or not sparse.issparse(X):
            return X
        require_memory(X.shape[0] * X.shape[1], X.shape[1], "the rows as a dense array")
        return X.toarray()


class GrowingEnsemble(ScoringClassifier):
    """Base of ensembles of scikit-learn that can continue with more trees.

    The trace is called where it asks to be, through its ``next_rows``; without, at the end.
    """

    size: str
    """Name of the parameter for the number of trees."""

    algorithm_version = f"1, scikit-learn {sklearn.__version__}"

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        self.n_iter_ = self.n_rows_seen_ = 0
        self._width = X.shape[1]
        X = self._rows(X)
        ensemble = self._classifier().set_params(warm_start=True, **self._suited_to(X))
        n_rows, size = X.shape[0], getattr(self, self.size)
        weights = self._given_weights(labels)
        while not trace(self) and self.n_iter_ < size:
            due = ceil(getattr(trace, "next_rows", sys.maxsize) / n_rows)
            self.n_iter_ = min(size, max(due, self.n_iter_ + 1))
            with _one_thread():
                self._grow(ensemble, X, labels, weights)
            self.classifier_ = ensemble
            self.n_rows_seen_ = self.n_iter_ * n_rows

    def _suited_to(self, X: Any) -> dict[str, Any]:
        """Return parameters of the ensemble that save time with these rows and change no score."""
        return {}

    def _grow(
        self, ensemble: Any, X: Any, labels: NDArray[np.int8], weights: dict[str, Any]
    ) -> None:
        """Continue with trees until there are `n_iter_`."""
        ensemble.set_params(**{self.size: self.n_iter_}).fit(X, labels, **weights)

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
        if n_iter in (0, self.n_iter_):
            return super().scores_after(X, n_iter)
        with _one_thread():
            return self._scores_of_first(self._rows(X), n_iter)

    def to_trees(self) -> Trees:
        """Return the trees as plain arrays, whose scores are bitwise identical.

        Returns
        -------
        Trees
        """
        if not self.n_iter_:
            return Trees.of([], self._width)
        return self._to_trees()

    @abstractmethod
    def _to_trees(self) -> Trees:
        """Return the trees of the fitted ensemble."""

    @abstractmethod
    def _scores_of_first(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Score rows by some of the trees."""


class HistGradientBoosting(WeightedRanker, GrowingEnsemble):
    """Gradient-boosted trees on binned features (scikit-learn), with the logistic loss.

    All training rows are used: there is no early stopping. Sparse rows are made dense.

    Parameters
    ----------
    learning_rate : float, default=0.1
    max_iter : int, default=100
        Number of trees.
    max_leaf_nodes : int, default=31
    min_samples_leaf : int, default=20
    l2_regularization : float, default=0.0
        Weight of the L2 penalty. With few positives among many rows a leaf without a penalty may
        take a step of any length: take 0.1 or more there.
    max_features : float, default=1.0
        Fraction of the features that each split chooses among.
    class_weight : {"balanced"}, dict or None, default=None
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", Ann. Statist. 2001;
    Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import HistGradientBoosting, LogisticRegressionRanker
    >>> from precbench.metrics import auc
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, which no line separates
    >>> trees = HistGradientBoosting(max_iter=20, random_state=0)
    >>> for ranker in (LogisticRegressionRanker(), trees):
    ...     print(round(auc(y, ranker.fit(X, y).decision_function(X)), 2))
    0.5
    1.0
    """

    allowed = Allowed(
        learning_rate=POSITIVE,
        max_iter=COUNT,
        max_leaf_nodes=COUNT,
        min_samples_leaf=COUNT,
        l2_regularization=NOT_NEGATIVE,
        max_features=SHARE,
        class_weight=CLASS_WEIGHT,
        random_state=["random_state"],
    )
    size = "max_iter"
    needs_dense_rows = True

    def __init__(
        self,
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int = 31,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        class_weight: ClassWeight = None,
        random_state: Any = None,
    ):
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.class_weight = class_weight
        self.random_state = random_state

    def _classifier(self) -> HistGradientBoostingClassifier:
        chosen = signed_weights(self.class_weight, self.classes_)
        if self._weights is not None:
            chosen = None  # they hold those of the classes
        elif isinstance(chosen, dict):
            chosen |= {0: chosen[-1]}  # scikit-learn looks them up by 0 and 1
        given = self.get_params(deep=False) | {"class_weight": chosen}
        return HistGradientBoostingClassifier(**given, early_stopping=False)

    def _suited_to(self, X: Any) -> dict[str, Any]:
        n_bins = 2
        for column in X.T:  # one bin for each value; all columns get the bins of the largest
            n_bins = max(n_bins, len(np.unique(column)))
            if n_bins >= _MOST_BINS:
                break
        return {"max_bins": min(n_bins, _MOST_BINS)}

    def _given_weights(self, labels: NDArray[np.int8]) -> dict[str, Any]:
        weights = self._row_weights(labels, self.class_weight)
        return {} if weights is None else {"sample_weight": weights}

    def _scores_of_first(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        stages = self.classifier_.staged_decision_function(X)
        return next(scores for stage, scores in enumerate(stages, start=1) if stage == n_iter)

    def _to_trees(self) -> Trees:
        trees = []
        for [predictor] in self.classifier_._predictors:
            node, is_leaf = predictor.nodes, predictor.nodes["is_leaf"] == 1
            feature = np.where(is_leaf, -1, node["feature_idx"].astype(np.intp))
            value = np.where(is_leaf, node["value"], node["num_threshold"])
            left, right = (node[side].astype(np.intp) for side in ("left", "right"))
            trees.append(Tree.of(feature, value, left, right, node["count"]))
        return Trees.of(trees, self._width, base=self.classifier_._baseline_prediction.item())


class Forest(GrowingEnsemble):
    """Base of the forests of scikit-learn: the mean of the trees' probabilities ranks the rows."""

    dtypes = STORED

    allowed = Allowed(
        n_estimators=COUNT,
        max_features=[*one_of("sqrt"), *SHARE],
        min_samples_leaf=COUNT,
        class_weight=[*CLASS_WEIGHT, *one_of(UNDERSAMPLED)],
        random_state=["random_state"],
    )
    size = "n_estimators"
    kind: type

    def __init__(
        self,
        *,
        n_estimators: int = 300,
        max_features: str | float = "sqrt",
        min_samples_leaf: int = 1,
        class_weight: ClassWeight | Literal["undersampled"] = None,
        random_state: Any = None,
    ):
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.class_weight = class_weight
        self.random_state = random_state

    def _classifier(self) -> Any:
        if self.class_weight == UNDERSAMPLED:
            self._drawing = int(np.random.default_rng(self.random_state).integers(2**31))
            given = self.get_params(deep=False) | {"class_weight": None, "bootstrap": False}
        else:
            chosen = signed_weights(self.class_weight, self.classes_)
            given = self.get_params(deep=False) | {"class_weight": chosen}
        return self.kind(**given)

    def _grow(
        self, ensemble: Any, X: Any, labels: NDArray[np.int8], weights: dict[str, Any]
    ) -> None:
        if self.class_weight != UNDERSAMPLED:
            return super()._grow(ensemble, X, labels, weights)
        classes = [np.flatnonzero(labels == sign) for sign in (-1, 1)]
        size, first = min(map(len, classes)), len(getattr(ensemble, "estimators_", ()))
        for number in range(first, self.n_iter_):
            rng = np.random.default_rng([number, self._drawing])
            drawn = np.concatenate([rng.choice(of_class, size) for of_class in classes])
            times = np.bincount(drawn, minlength=len(labels))  # a row of weight 0 is left out
            ensemble.set_params(n_estimators=number + 1).fit(X, labels, sample_weight=times)
        return None

    def _scores_of_first(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        trees = self.classifier_.estimators_[:n_iter]
        X = X.astype(np.float32)
        return np.mean([tree.predict_proba(X)[:, 1] for tree in trees], axis=0) - 0.5

    def _to_trees(self) -> Trees:
        trees = []
        for node in (estimator.tree_ for estimator in self.classifier_.estimators_):
            left, is_leaf = node.children_left, node.children_left < 0
            feature = np.where(is_leaf, -1, node.feature)
            value = np.where(is_leaf, node.value[:, 0, 1], node.threshold)
            cover = node.weighted_n_node_samples
            trees.append(Tree.of(feature, value, left, node.children_right, cover))
        return Trees.of(trees, self._width, is_forest=True)


class RandomForest(Forest):
    """Random forest (scikit-learn): the mean of the trees' probabilities ranks the rows.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_features : {"sqrt"} or float, default="sqrt"
        Number, or share, of the features that each split chooses among.
    min_samples_leaf : int, default=1
    class_weight : {"balanced", "undersampled"}, dict or None, default=None
        As of `LogisticRegressionRanker`; "undersampled" draws for each tree as many rows of each
        class as the rarer has, with replacement.
    random_state : int or None, default=None

    References
    ----------
    Breiman, "Random forests", Machine Learning 2001; Chen, Liaw & Breiman, "Using random forest to
    learn imbalanced data", report 666, Berkeley 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import RandomForest
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = RandomForest(n_estimators=20, random_state=0).fit(X, y)
    >>> ranker.decision_function([[-2.0], [0.0], [2.0]]).round(2).tolist()  # probabilities less 1/2
    [0.5, -0.5, 0.5]
    """

    kind = RandomForestClassifier


class ExtraTrees(Forest):
    """Extremely randomised trees (scikit-learn): splits at random places, all rows in each tree.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_features : {"sqrt"} or float, default="sqrt"
        Number, or share, of the features that each split chooses among.
    min_samples_leaf : int, default=1
    class_weight : {"balanced", "undersampled"}, dict or None, default=None
        As of `RandomForest`.
    random_state : int or None, default=None

    References
    ----------
    Geurts, Ernst & Wehenkel, "Extremely randomized trees", Machine Learning 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import ExtraTrees
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = ExtraTrees(n_estimators=20, random_state=0).fit(X, y)
    >>> set(ranker.decision_function(X).round(2).tolist()) == {-0.5, 0.5}  # each tree has all rows
    True
    """

    kind = ExtraTreesClassifier


def ranker_of(classifier: type) -> type[ScoringClassifier]:
    """Make a solver of a scikit-learn-compatible classifier.

    Parameters
    ----------
    classifier : type
        Its parameters become those of the solver. The version of its library becomes part of the
        keys of trials.

    Returns
    -------
    type
        A subclass of `ScoringClassifier`.
    """
    init = inspect.signature(classifier.__init__)  # type: ignore[misc]
    _, *parameters = init.parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}
    own = getattr(classifier, "_parameter_constraints", {})
    library = sys.modules[classifier.__module__.partition(".")[0]]

    def set_parameters(self: Any, **params: Any) -> None:
        init.bind(self, **params)  # refuses unknown names
        vars(self).update(defaults | params)

    def make(self: Any) -> Any:
        return classifier(**self.get_params(deep=False))

    set_parameters.__signature__ = init  # type: ignore[attr-defined]
    members = {
        "__init__": set_parameters,
        "__doc__": classifier.__doc__,
        "__module__": classifier.__module__,  # whose code is noted in records
        "_classifier": make,
        "allowed": Allowed({name: own.get(name, "no_validation") for name in defaults}),
        "algorithm_version": f"1, {library.__name__} {getattr(library, '__version__', '')}",
    }
    weighted = (WeightedRanker,) if has_fit_parameter(classifier, "sample_weight") else ()
    return type(classifier.__name__, (*weighted, ScoringClassifier), members)

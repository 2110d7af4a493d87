"""Gradient-boosted trees of scikit-learn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    as_library_state,
)
from precbench.solvers.common.weights import WeightedRanker
from precbench.solvers.others.trees import Trees, histogram_trees
from precbench.solvers.others.wrapper import GrowingEnsemble, n_threads, thread_pools

_FEWEST_BINS, _MOST_BINS = 2, 255  # that scikit-learn allows


@dataclass(kw_only=True, eq=False, repr=False)
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
    n_jobs : int, default=1
        Threads of a fit, -1 for one on each processor.

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", Ann. Statist. 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import HistGradientBoosting
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, which no line separates
    >>> ranker = HistGradientBoosting(max_iter=20, random_state=0).fit(X, y)
    >>> ranker.predict([[-2.0], [0.0], [2.0]]).tolist()
    [True, False, True]
    """

    learning_rate: float = 0.1
    max_iter: int = 100
    max_leaf_nodes: int = 31
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    max_features: float = 1.0
    class_weight: ClassWeight = None
    random_state: Any = None
    n_jobs: int = 1

    allowed = Allowed(
        learning_rate=POSITIVE,
        max_iter=COUNT,
        max_leaf_nodes=COUNT,
        min_samples_leaf=COUNT,
        l2_regularization=NOT_NEGATIVE,
        max_features=SHARE,
        class_weight=CLASS_WEIGHT,
        random_state=RANDOM_STATE,
        n_jobs=N_JOBS,
    )
    size = "max_iter"
    needs_dense_rows = True
    has_trees = True

    def _classifier(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            l2_regularization=self.l2_regularization,
            max_features=self.max_features,
            class_weight=self._class_weight_argument(),
            random_state=as_library_state(self.random_state),
            early_stopping=False,
        )

    def _read_trees(self) -> Trees:
        return histogram_trees(self.classifier_, self._width)

    def _suited_to(self, X: Any) -> dict[str, Any]:
        # Return as `max_bins` how many distinct values a column has at most: more only cost time.
        n_bins = _FEWEST_BINS
        for column in X.T:
            n_bins = max(n_bins, len(np.unique(column)))
            if n_bins >= _MOST_BINS:
                break
        return {"max_bins": min(n_bins, _MOST_BINS)}

    def _grow(self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int) -> None:
        ensemble.set_params(max_iter=n_trees)
        with thread_pools().limit(limits=n_threads(self.n_jobs)):
            ensemble.fit(X, labels, **self._weight_argument(labels))

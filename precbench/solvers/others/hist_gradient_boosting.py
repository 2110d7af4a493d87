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
    at_least,
)
from precbench.solvers.common.weights import WeightedRanker
from precbench.solvers.others.trees import Trees, histogram_trees
from precbench.solvers.others.wrapper import GrowingEnsemble, n_threads, thread_pools

# The numbers of bins that scikit-learn allows.
_FEWEST_BINS = 2
_MOST_BINS = 255


@dataclass(kw_only=True, eq=False, repr=False)
class HistGradientBoosting(WeightedRanker, GrowingEnsemble):
    """Gradient-boosted trees on binned features (scikit-learn), with the logistic loss.

    Each tree is fitted to the gradient of the loss ``ln(1 + exp(-y_i f(x_i)))`` at the
    sum f of the trees before; f, the log odds, ranks the rows. A strong method for
    dense tables whose features are not linear in their effect. All training rows are
    used: there is no early stopping. Sparse rows are made dense.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Factor, above 0, by which each tree is shrunk.
    max_iter : int, default=100
        Number of trees, at least 1.
    max_leaf_nodes : int, default=31
        Most leaves of a tree, at least 2.
    min_samples_leaf : int, default=20
        Least number of rows in a leaf, at least 1.
    l2_regularization : float, default=0.0
        Weight of the L2 penalty on the values of leaves, at least 0. With few positives
        among many rows a leaf without a penalty may take a step of any length: take 0.1
        or more there.
    max_features : float, default=1.0
        Fraction in (0, 1] of the features that each split chooses among.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the loss. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the features of splits, and of the rows that bins are made from on large
        sets. An int gives the same in each fit, None a new one; a RandomState or
        Generator goes on where it stopped.
    n_jobs : int, default=1
        Number of threads of a fit, at least 1, or -1 for one on each processor.

    Attributes
    ----------
    classifier_ : HistGradientBoostingClassifier
        The classifier, fitted to labels -1 and +1.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Trees so far.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows for each tree.

    Notes
    -----
    `fit` takes `sample_weight`, which multiplies the weights of the classes. There is
    no `threshold_`: `predict` cuts at log odds of 0. A feature has at most 255 bins.

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
    Statistics 29, 2001: Algorithm 5, for two classes. Ke et al., "LightGBM: a highly
    efficient gradient boosting decision tree", NIPS 2017: Algorithm 1, for the bins.

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
        max_leaf_nodes=at_least(2),
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
        """Return as `max_bins` how many distinct values a column has at most.

        More bins would only cost time.
        """
        n_bins = _FEWEST_BINS
        for column in X.T:
            n_bins = max(n_bins, len(np.unique(column)))
            if n_bins >= _MOST_BINS:
                break
        return {"max_bins": min(n_bins, _MOST_BINS)}

    def _grow(
        self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int
    ) -> None:
        ensemble.set_params(max_iter=n_trees)
        with thread_pools().limit(limits=n_threads(self.n_jobs)):
            ensemble.fit(X, labels, **self._weight_argument(labels))

"""Forests of scikit-learn: random forests and extremely randomised trees."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from precbench.solvers.common.parameters import (
    CLASS_WEIGHT,
    COUNT,
    N_JOBS,
    RANDOM_STATE,
    SHARE,
    Allowed,
    as_generator,
    as_library_state,
    one_of,
)
from precbench.solvers.common.rows import STORED
from precbench.solvers.others.trees import Trees, forest_trees
from precbench.solvers.others.wrapper import GrowingEnsemble, n_threads, thread_pools

UNDERSAMPLED: Final = "undersampled"


class Forest(GrowingEnsemble):
    """Base of the forests of scikit-learn."""

    n_estimators: int
    max_features: Any
    min_samples_leaf: int
    class_weight: Any
    random_state: Any
    n_jobs: int

    dtypes = STORED
    allowed = Allowed(
        n_estimators=COUNT,
        max_features=[*one_of("sqrt"), *SHARE],
        min_samples_leaf=COUNT,
        class_weight=[*CLASS_WEIGHT, *one_of(UNDERSAMPLED)],
        random_state=RANDOM_STATE,
        n_jobs=N_JOBS,
    )
    size = "n_estimators"
    has_trees = True

    @abstractmethod
    def _class(self) -> Any:
        """Import and return the class of scikit-learn."""

    def _classifier(self) -> Any:
        forest = self._class()(
            n_estimators=self.n_estimators,
            max_features=self.max_features,
            min_samples_leaf=self.min_samples_leaf,
            random_state=as_library_state(self.random_state),
        )
        if self.class_weight != UNDERSAMPLED:
            return forest.set_params(class_weight=self._class_weight_argument())
        # `_grow` draws the rows of each tree, by this seed, in place of a bootstrap.
        self._seed = int(as_generator(self.random_state).integers(2**31))
        return forest.set_params(bootstrap=False)

    def _read_trees(self) -> Trees:
        return forest_trees(self.classifier_, self._width)

    def _grow(
        self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int
    ) -> None:
        # The threads of a forest are those of joblib. A fitted forest has one again:
        # threads would add up the probabilities of its trees in an order by chance.
        with thread_pools().limit(limits=1):
            ensemble.set_params(n_jobs=n_threads(self.n_jobs))
            if self.class_weight == UNDERSAMPLED:
                self._grow_from_equal_classes(ensemble, X, labels, n_trees)
            else:
                ensemble.set_params(n_estimators=n_trees)
                ensemble.fit(X, labels)
            ensemble.set_params(n_jobs=None)

    def _grow_from_equal_classes(
        self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int
    ) -> None:
        """Draw for each tree as many rows of either class as the rarer class has."""
        neg, pos = np.flatnonzero(labels < 0), np.flatnonzero(labels > 0)
        n_rarer = min(len(neg), len(pos))
        n_before = len(getattr(ensemble, "estimators_", ()))
        for tree_number in range(n_before, n_trees):
            rng = np.random.default_rng([tree_number, self._seed])
            drawn = np.concatenate([rng.choice(rows, n_rarer) for rows in (neg, pos)])
            n_draws_of_rows = np.bincount(drawn, minlength=len(labels))
            ensemble.set_params(n_estimators=tree_number + 1)
            ensemble.fit(X, labels, sample_weight=n_draws_of_rows)


@dataclass(kw_only=True, eq=False, repr=False)
class RandomForest(Forest):
    """Random forest (scikit-learn): the mean probability of the trees ranks the rows.

    Each tree is grown on a random sample of the rows, drawn with replacement, and each
    of its splits chooses among random features. The score of a row is the mean over the
    trees of the fraction of positives in its leaf, less 1/2. A robust method without
    much to tune, for dense or sparse rows; with few positives take
    ``class_weight="undersampled"``.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees, at least 1.
    max_features : {"sqrt"} or float, default="sqrt"
        Features that each split chooses among: "sqrt" for the square root of their
        number, a float in (0, 1] for this fraction of them.
    min_samples_leaf : int, default=1
        Least number of rows in a leaf, at least 1.
    class_weight : {"balanced", "undersampled"}, dict or None, default=None
        Weights of the classes. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike. "undersampled" draws for each
        tree as many rows of each class as the rarer class has, with replacement.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the rows of each tree and the features of its splits. An int gives the
        same in each fit, None a new one; a RandomState or Generator goes on where it
        stopped.
    n_jobs : int, default=1
        Number of threads of a fit, at least 1, or -1 for one on each processor; the
        result does not depend on it.

    Attributes
    ----------
    classifier_ : RandomForestClassifier
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
    There is no `threshold_`: `predict` cuts at a probability of 1/2. `fit` takes no
    `sample_weight`.

    References
    ----------
    Breiman, "Random forests", Machine Learning 45, 2001: Definition 1.1. Chen, Liaw,
    Breiman, "Using random forest to learn imbalanced data", report 666, Berkeley 2004,
    for "undersampled".

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import RandomForest
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = RandomForest(n_estimators=20, random_state=0).fit(X, y)
    >>> scores = ranker.decision_function([[-2.0], [0.0], [2.0]])
    >>> scores.round(2).tolist()  # probabilities less 1/2
    [0.5, -0.5, 0.5]
    """

    n_estimators: int = 300
    max_features: str | float = "sqrt"
    min_samples_leaf: int = 1
    class_weight: Any = None
    random_state: Any = None
    n_jobs: int = 1

    def _class(self) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier


@dataclass(kw_only=True, eq=False, repr=False)
class ExtraTrees(Forest):
    """Extremely randomised trees (scikit-learn): splits at random places.

    Each tree is grown on all rows. Each of its splits draws a random place for each of
    some random features, and takes the best of these. The score of a row is the mean
    over the trees of the fraction of positives in its leaf, less 1/2. As a random
    forest a robust method without much to tune, faster to grow, and smoother in its
    scores.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees, at least 1.
    max_features : {"sqrt"} or float, default="sqrt"
        Features that each split chooses among: "sqrt" for the square root of their
        number, a float in (0, 1] for this fraction of them.
    min_samples_leaf : int, default=1
        Least number of rows in a leaf, at least 1.
    class_weight : {"balanced", "undersampled"}, dict or None, default=None
        Weights of the classes. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike. "undersampled" draws for each
        tree as many rows of each class as the rarer class has, with replacement.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the features and places of the splits and, with "undersampled", of the
        rows of each tree. An int gives the same in each fit, None a new one; a
        RandomState or Generator goes on where it stopped.
    n_jobs : int, default=1
        Number of threads of a fit, at least 1, or -1 for one on each processor; the
        result does not depend on it.

    Attributes
    ----------
    classifier_ : ExtraTreesClassifier
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
    There is no `threshold_`: `predict` cuts at a probability of 1/2. `fit` takes no
    `sample_weight`.

    References
    ----------
    Geurts, Ernst, Wehenkel, "Extremely randomized trees", Machine Learning 63, 2006:
    Table 1. Chen, Liaw, Breiman, "Using random forest to learn imbalanced data", report
    666, Berkeley 2004, for "undersampled".

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import ExtraTrees
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = ExtraTrees(n_estimators=20, random_state=0).fit(X, y)
    >>> set(ranker.decision_function(X).round(2).tolist()) == {-0.5, 0.5}
    True
    """

    n_estimators: int = 300
    max_features: str | float = "sqrt"
    min_samples_leaf: int = 1
    class_weight: Any = None
    random_state: Any = None
    n_jobs: int = 1

    def _class(self) -> Any:
        from sklearn.ensemble import ExtraTreesClassifier

        return ExtraTreesClassifier

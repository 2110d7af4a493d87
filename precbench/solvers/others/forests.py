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

    def _grow(self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int) -> None:
        # The threads of a forest are those of joblib. A fitted forest has one again: threads would
        # add up the probabilities of its trees in an order by chance.
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
        """Draw for each new tree as many rows of either class as the rarer class has."""
        row_sets = [np.flatnonzero(labels == sign) for sign in (-1, 1)]  # of each class
        n_rarer = min(map(len, row_sets))
        n_before = len(getattr(ensemble, "estimators_", ()))
        for number in range(n_before, n_trees):  # of the tree, part of the seed
            rng = np.random.default_rng([number, self._seed])
            drawn = np.concatenate([rng.choice(rows, n_rarer) for rows in row_sets])
            counts = np.bincount(drawn, minlength=len(labels))  # how often each row was drawn
            ensemble.set_params(n_estimators=number + 1)
            ensemble.fit(X, labels, sample_weight=counts)


@dataclass(kw_only=True, eq=False, repr=False)
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
    n_jobs : int, default=1
        Threads of a fit, -1 for one on each processor; the result does not depend on them.

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
    """Extremely randomised trees (scikit-learn): splits at random places, all rows in each tree.

    Parameters
    ----------
    n_estimators, max_features, min_samples_leaf, class_weight, random_state, n_jobs
        As of `RandomForest`.

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

    n_estimators: int = 300
    max_features: str | float = "sqrt"
    min_samples_leaf: int = 1
    class_weight: Any = None
    random_state: Any = None
    n_jobs: int = 1

    def _class(self) -> Any:
        from sklearn.ensemble import ExtraTreesClassifier

        return ExtraTreesClassifier

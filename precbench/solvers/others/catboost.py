"""Boosted symmetric trees of CatBoost, an optional package."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier

from precbench.solvers.common.parameters import (
    CLASS_WEIGHT,
    COUNT,
    N_JOBS,
    NOT_NEGATIVE,
    POSITIVE,
    RANDOM_STATE,
    Allowed,
    ClassWeight,
    as_generator,
    integers,
)
from precbench.solvers.common.rows import STORED
from precbench.solvers.others.trees import in_single_precision
from precbench.solvers.others.wrapper import Library, ScoringClassifier, n_threads


@dataclass(kw_only=True, eq=False, repr=False)
class CatBoost(ScoringClassifier):
    """Boosted symmetric trees of CatBoost, with the logistic loss.

    Each tree is fitted to the gradient of the loss ``ln(1 + exp(-y_i f(x_i)))`` at the
    sum f of the trees before; f, the log odds, ranks the rows. In a symmetric tree all
    splits of one depth ask the same question. Sparse rows are made dense. It needs the
    package catboost, ``pip install 'precbench[rivals]'``.

    Parameters
    ----------
    n_estimators : int, default=1000
        Number of trees, at least 1.
    learning_rate : float or None, default=None
        Factor, above 0, by which each tree is shrunk. None for what CatBoost derives
        from the numbers of rows and trees, or for 0.03 if `l2_leaf_reg` is given.
    depth : int, default=6
        Depth of each tree, from 1 to 16.
    l2_leaf_reg : float or None, default=None
        Weight of the L2 penalty on the values of leaves, at least 0; None for 3.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the loss. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows and of the noise by which CatBoost chooses splits.
        An int gives the same in each fit, None a new one; a RandomState or Generator
        goes on where it stopped.
    n_jobs : int, default=1
        Number of threads of a fit, at least 1, or -1 for one on each processor.

    Attributes
    ----------
    classifier_ : CatBoostClassifier
        The classifier, fitted to labels -1 and +1; a DummyClassifier if all training
        rows are equal.
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
        By `fit`, if catboost is not installed.

    Notes
    -----
    There is no `threshold_`: `predict` cuts at log odds of 0.

    References
    ----------
    Prokhorenkova, Gusev, Vorobev, Dorogush, Gulin, "CatBoost: unbiased boosting with
    categorical features", NeurIPS 2018: Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import CatBoost
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> for depth in (1, 2):  # one more question, the same on both sides
    ...     ranker = CatBoost(n_estimators=1, depth=depth, random_state=0).fit(X, y)
    ...     print(len(set(ranker.decision_function(X))))
    2
    3
    """

    n_estimators: int = 1000
    learning_rate: float | None = None
    depth: int = 6
    l2_leaf_reg: float | None = None
    class_weight: ClassWeight = None
    random_state: Any = None
    n_jobs: int = 1

    allowed = Allowed(
        n_estimators=COUNT,
        learning_rate=[None, *POSITIVE],
        depth=integers(1, 16),
        l2_leaf_reg=[None, *NOT_NEGATIVE],
        class_weight=CLASS_WEIGHT,
        random_state=RANDOM_STATE,
        n_jobs=N_JOBS,
    )
    library = Library(("catboost",), extra="rivals")
    dtypes = STORED
    needs_dense_rows = True

    def _rows(self, X: Any) -> Any:
        return in_single_precision(super()._rows(X))

    def _classifier(self) -> Any:
        return self.library.load("catboost").CatBoostClassifier(
            depth=self.depth,
            l2_leaf_reg=self.l2_leaf_reg,
            learning_rate=self.learning_rate,
            n_estimators=self.n_estimators,
            thread_count=n_threads(self.n_jobs),
            allow_writing_files=False,
            logging_level="Silent",
            random_state=int(as_generator(self.random_state).integers(2**31)),
        )

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        if not np.ptp(X, axis=0).any():  # CatBoost refuses rows that are all equal
            classifier = DummyClassifier()
        return classifier.fit(
            X, labels, sample_weight=self._weights_with_classes(labels)
        )

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        rows_were_equal = isinstance(self.classifier_, DummyClassifier)
        if rows_were_equal:
            return super()._final_scores(X)
        return self.classifier_.predict(
            X, prediction_type="RawFormulaVal", thread_count=1
        )

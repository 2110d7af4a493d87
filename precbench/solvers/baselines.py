"""Baselines: scikit-learn's linear classifiers, whose scores rank the rows."""

from abc import abstractmethod
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from precbench.solvers.base import LinearRanker, Trace
from precbench.solvers.parameters import (
    CLASS_WEIGHT,
    COUNT,
    POSITIVE,
    Allowed,
    ClassWeight,
    signed_weights,
)
from precbench.solvers.rows import with_short_indices
from precbench.solvers.weights import WeightedRanker

__all__ = ["LinearSVMRanker", "LogisticRegressionRanker"]


class ClassifierRanker(WeightedRanker, LinearRanker):
    """Base of the baselines: fit a classifier of scikit-learn and keep its weights."""

    allowed = Allowed(C=POSITIVE, class_weight=CLASS_WEIGHT, tol=POSITIVE, max_iter=COUNT)

    algorithm_version = f"1, scikit-learn {sklearn.__version__}"

    C: float
    class_weight: ClassWeight
    tol: float
    max_iter: int

    @abstractmethod
    def _classifier(self) -> Any:
        """Return the unfitted classifier."""

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        X = with_short_indices(X)
        self._start(X.shape[1])
        if trace(self):
            return
        classifier, weights = self._classifier(), self._row_weights(labels, self.class_weight)
        if weights is None:
            fitted = classifier.fit(X, labels)
        else:
            fitted = classifier.set_params(class_weight=None).fit(X, labels, weights)
        self.coef_ = fitted.coef_.ravel()
        self.n_iter_ = int(np.max(fitted.n_iter_))
        self.n_rows_seen_ = self.n_iter_ * X.shape[0]
        trace(self)


class LogisticRegressionRanker(ClassifierRanker):
    """Logistic regression with an L2 penalty (scikit-learn, L-BFGS).

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    class_weight : {"balanced"}, dict or None, default=None
        "balanced" weighs the losses of each class by ``n_samples / (2 * n_class)``, a dict of
        weights by label by these.
    tol : float, default=1e-4
    max_iter : int, default=1000

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from precbench import LogisticRegressionRanker
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> ranker = LogisticRegressionRanker().fit(X, y)
    >>> ranker.coef_.round(2).tolist(), LogisticRegression().fit(X, y).coef_.round(2).tolist()
    ([0.96], [[0.96]])
    >>> ranker.predict(X).tolist()  # as many as there are positives, with no intercept
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        class_weight: ClassWeight = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
    ):
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter

    def _classifier(self) -> LogisticRegression:
        return LogisticRegression(
            C=self.C,
            class_weight=signed_weights(self.class_weight, self.classes_),
            tol=self.tol,
            max_iter=self.max_iter,
        )


class LinearSVMRanker(ClassifierRanker):
    """Linear support vector machine with the squared hinge loss (scikit-learn, LIBLINEAR).

    LIBLINEAR makes a copy of the rows, of 16 bytes a value.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    class_weight : {"balanced"}, dict or None, default=None
        "balanced" weighs the losses of each class by ``n_samples / (2 * n_class)``, a dict of
        weights by label by these.
    tol : float, default=1e-4
    max_iter : int, default=1000
    random_state : int or None, default=None
        Used by the dual solver, that is when there are fewer rows than features.

    Examples
    --------
    >>> from precbench import LinearSVMRanker
    >>> ranker = LinearSVMRanker(C=0.25).fit([[1.0], [-1.0]], [1, 0])
    >>> ranker.coef_.round(3).tolist()  # the minimiser of w**2 / 2 + 2 C (1 - w)**2
    [0.5]
    """

    allowed = Allowed(random_state=["random_state"])

    def __init__(
        self,
        *,
        C: float = 1.0,
        class_weight: ClassWeight = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: Any = None,
    ):
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _classifier(self) -> LinearSVC:
        return LinearSVC(
            C=self.C,
            class_weight=signed_weights(self.class_weight, self.classes_),
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )

"""Linear classifiers of scikit-learn: logistic regression, the linear support vector machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.solvers.common.base import LinearRanker, Trace
from precbench.solvers.common.parameters import (
    CLASS_WEIGHT,
    COUNT,
    POSITIVE,
    RANDOM_STATE,
    Allowed,
    ClassWeight,
    as_library_state,
    real,
)
from precbench.solvers.common.rows import with_short_indices
from precbench.solvers.common.weights import WeightedRanker
from precbench.solvers.others.wrapper import SCIKIT_LEARN, Wrapper

_C = real(1e-30, 1e30, "both")  # liblinear does not end at 1e200


class LinearClassifier(WeightedRanker, Wrapper, LinearRanker):
    """Base of the linear classifiers of scikit-learn.

    Attributes
    ----------
    offset_ : float
        Intercept of the classifier: added to the classifier's scores, not to the solver's.
    """

    library = SCIKIT_LEARN

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        # Yield the iterations so far: 0 before the library's training, all of them after it.
        X, classifier = with_short_indices(X), self._classifier()
        yield 0
        classifier.fit(X, labels, **self._weight_argument(labels))
        self.coef_ = classifier.coef_.ravel()
        self.offset_ = float(np.sum(classifier.intercept_))  # one value, not in the scores
        yield int(np.max(classifier.n_iter_))  # a number, or an array of one


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegressionRanker(LinearClassifier):
    """Logistic regression with an L2 penalty (scikit-learn, L-BFGS).

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    class_weight : {"balanced"}, dict or None, default=None
        "balanced" weighs the losses of each class by ``n_samples / (2 * n_class)``, a dict by its
        weight for the label.
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
    >>> ranker.predict(X).tolist()  # as many positives as in y: there is no intercept
    [0, 0, 1, 1]
    """

    C: float = 1.0
    class_weight: ClassWeight = None
    tol: float = 1e-4
    max_iter: int = 1000

    allowed = Allowed(C=_C, class_weight=CLASS_WEIGHT, tol=POSITIVE, max_iter=COUNT)

    def _classifier(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(
            C=self.C,
            class_weight=self._class_weight_argument(),
            tol=self.tol,
            max_iter=self.max_iter,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVMRanker(LinearClassifier):
    """Linear support vector machine with the squared hinge loss (scikit-learn, LIBLINEAR).

    LIBLINEAR makes a copy of the rows, of 16 bytes a value.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    class_weight, tol, max_iter
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None
        Used by the dual solver, that is when there are fewer rows than features.

    Examples
    --------
    >>> from precbench import LinearSVMRanker
    >>> ranker = LinearSVMRanker(C=0.25).fit([[1.0], [-1.0]], [1, 0])
    >>> ranker.coef_.round(3).tolist()  # the minimiser of w**2 / 2 + 2 C (1 - w)**2
    [0.5]
    """

    C: float = 1.0
    class_weight: ClassWeight = None
    tol: float = 1e-4
    max_iter: int = 1000
    random_state: Any = None

    allowed = Allowed(
        C=_C,
        class_weight=CLASS_WEIGHT,
        tol=POSITIVE,
        max_iter=COUNT,
        random_state=RANDOM_STATE,
    )

    def _classifier(self) -> Any:
        from sklearn.svm import LinearSVC

        weights = self._class_weight_argument()
        return LinearSVC(
            C=self.C,
            class_weight=weights,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=as_library_state(self.random_state),
        )

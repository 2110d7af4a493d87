"""Linear classifiers of scikit-learn: logistic regression, the linear SVM."""

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
        Intercept of the classifier: added to the classifier's scores, not to the
        solver's.
    """

    library = SCIKIT_LEARN

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Yield the iterations so far: 0 before the training, and all after it."""
        classifier = self._classifier()
        X = with_short_indices(X)
        yield 0
        classifier.fit(X, labels, **self._weight_argument(labels))
        self.coef_ = classifier.coef_.ravel()
        # `intercept_` and `n_iter_` are numbers, or arrays of one number.
        self.offset_ = float(np.sum(classifier.intercept_))
        yield int(np.max(classifier.n_iter_))


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegressionRanker(LinearClassifier):
    """Logistic regression with an L2 penalty, by scikit-learn's L-BFGS.

    With labels y_i of -1 and +1, weights of rows v_i and an intercept b, it minimises

        1/2 ||w||^2 + C sum_i v_i ln(1 + exp(-y_i (w' x_i + b))).

    Every row counts alike, not the top of the list alone: the baseline to begin with.
    The scores are log odds, up to `offset_`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, from 1e-30 to 1e30: the inverse strength of the penalty.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the loss. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike.
    tol : float, default=1e-4
        Tolerance of scikit-learn's stopping rule, above 0: the largest entry of the
        gradient.
    max_iter : int, default=1000
        Most iterations, at least 1; if they do not suffice, scikit-learn warns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    offset_ : float
        Intercept of the classifier, which the scores here lack: added to ``w' x`` it
        gives log odds.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, or, with `sample_weight`,
        rows of as much weight, except for ties. Only after a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Iterations of L-BFGS; 0 until it has ended.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each iteration.

    Notes
    -----
    `fit` takes `sample_weight`, which multiplies the weights of the classes.

    References
    ----------
    Cox, "The regression analysis of binary sequences", Journal of the Royal Statistical
    Society B 20, 1958. Liu, Nocedal, "On the limited memory BFGS method for large scale
    optimization", Mathematical Programming 45, 1989.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from precbench import LogisticRegressionRanker
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> ranker = LogisticRegressionRanker().fit(X, y)
    >>> ranker.coef_.round(2).tolist()
    [0.96]
    >>> LogisticRegression().fit(X, y).coef_.round(2).tolist()
    [[0.96]]
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
    """Linear support vector machine with the squared hinge loss, by LIBLINEAR.

    With labels y_i of -1 and +1, weights of rows v_i and an intercept b, scikit-learn's
    LinearSVC minimises

        1/2 (||w||^2 + b^2) + C sum_i v_i max(0, 1 - y_i (w' x_i + b))^2.

    Every row counts alike, not the top of the list alone: a baseline where classes are
    nearly separable and features many.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, from 1e-30 to 1e30: the inverse strength of the penalty.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the loss. "balanced" weighs each row by
        ``n_rows / (2 * rows of its class)``, a dict by the weight of its label, 1 if
        the label is missing; None weighs all rows alike.
    tol : float, default=1e-4
        Tolerance of LIBLINEAR's stopping rule, above 0.
    max_iter : int, default=1000
        Most iterations, at least 1; if they do not suffice, scikit-learn warns.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order in which the dual solver visits rows; it is used where there
        are fewer rows than features. An int gives the same in each fit, None a new one;
        a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    offset_ : float
        Intercept of the classifier, which the scores here lack: added to ``w' x`` it
        gives the decision value of LinearSVC.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, or, with `sample_weight`,
        rows of as much weight, except for ties. Only after a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Iterations of LIBLINEAR; 0 until it has ended.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each iteration.

    Notes
    -----
    `fit` takes `sample_weight`, which multiplies the weights of the classes. LIBLINEAR
    makes a copy of the rows, of 16 bytes a value.

    References
    ----------
    Fan, Chang, Hsieh, Wang, Lin, "LIBLINEAR: a library for large linear
    classification", JMLR 9, 2008: the L2-regularised, L2-loss support vector machine.

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

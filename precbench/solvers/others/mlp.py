"""A neural network of scikit-learn."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from precbench.solvers.common.parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    RANDOM_STATE,
    Allowed,
    as_library_state,
)
from precbench.solvers.common.rows import as_rows, linear_scores
from precbench.solvers.others.wrapper import SCIKIT_LEARN, ScoringClassifier


@dataclass(kw_only=True, eq=False, repr=False)
class MLP(ScoringClassifier):
    """A neural network with one hidden layer (scikit-learn), trained by Adam.

    With H rectified units the score of a row is

        f(x) = b + sum_h v_h max(0, u_h' x + c_h),

    and the training minimises the mean logistic loss of ``f(x_i)`` plus an L2 penalty.
    Use it on scaled features where the classes are not linear in them, and rows are
    many.

    Parameters
    ----------
    hidden_layer_size : int, default=100
        Number H of rectified units, at least 1.
    alpha : float, default=1e-4
        Weight of the L2 penalty, at least 0.
    learning_rate_init : float, default=0.001
        Step size of Adam, above 0.
    max_iter : int, default=200
        Most passes over all training rows, at least 1; the training ends before if the
        loss falls no more.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the first weights and of the order of the rows. An int gives the same in
        each fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    classifier_ : MLPClassifier
        The classifier, fitted to labels -1 and +1.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        1 after the training, which is one step whatever the number of passes; 0 before.
    n_rows_seen_ : int
        Training rows, counted once: their number after the training, 0 before.

    Notes
    -----
    There is no `threshold_`: `predict` cuts at log odds of 0. Passes end at `max_iter`
    without a warning.

    References
    ----------
    Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015: Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import MLP
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, which hidden units can rank first
    >>> ranker = MLP(hidden_layer_size=20, learning_rate_init=0.01, random_state=0)
    >>> precision_at_k(y, ranker.fit(X, y).decision_function(X), k=20)
    1.0
    """

    hidden_layer_size: int = 100
    alpha: float = 1e-4
    learning_rate_init: float = 0.001
    max_iter: int = 200
    random_state: Any = None

    allowed = Allowed(
        hidden_layer_size=COUNT,
        alpha=NOT_NEGATIVE,
        learning_rate_init=POSITIVE,
        max_iter=COUNT,
        random_state=RANDOM_STATE,
    )
    library = SCIKIT_LEARN

    def _classifier(self) -> Any:
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier(
            hidden_layer_sizes=self.hidden_layer_size,
            alpha=self.alpha,
            learning_rate_init=self.learning_rate_init,
            max_iter=self.max_iter,
            random_state=as_library_state(self.random_state),
        )

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        with warnings.catch_warnings():
            # Passes that end at `max_iter` are what this parameter asks for.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return classifier.fit(X, labels)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        """Compute the output of the network before its logistic function.

        `linear_scores` gives equal rows equal scores, bitwise identical on every
        machine.
        """
        # f(x) = b + sum_h v_h max(0, u_h' x + c_h), with a row of `units` for each u_h
        hidden, v = self.classifier_.coefs_
        c, b = self.classifier_.intercepts_
        rows = as_rows(X)
        units = np.ascontiguousarray(hidden.T)
        scores = np.full(X.shape[0], b)
        for u_h, c_h, v_h in zip(units, c, v, strict=True):
            scores += v_h * np.maximum(linear_scores(rows, u_h) + c_h, 0)
        return scores

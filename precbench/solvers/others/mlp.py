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
    """A neural network with one hidden layer (scikit-learn, Adam), for scaled features.

    Parameters
    ----------
    hidden_layer_size : int, default=100
        Number of rectified units.
    alpha : float, default=1e-4
        Weight of the L2 penalty.
    learning_rate_init : float, default=0.001
    max_iter : int, default=200
        Most passes over all training rows; the training ends before if the loss falls no more.
    random_state : int or None, default=None

    References
    ----------
    Kingma & Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import MLP
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, which hidden units can rank first
    >>> ranker = MLP(hidden_layer_size=20, learning_rate_init=0.01, random_state=0).fit(X, y)
    >>> precision_at_k(y, ranker.decision_function(X), k=20)
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
            warnings.simplefilter("ignore", ConvergenceWarning)  # the passes are a parameter
            return classifier.fit(X, labels)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        # Compute the output of the network before its logistic function. `linear_scores` gives
        # equal rows equal scores, bitwise identical on every machine.
        hidden, outer = self.classifier_.coefs_
        hidden_offsets, outer_offset = self.classifier_.intercepts_
        rows = as_rows(X)
        scores = np.full(X.shape[0], outer_offset)
        weights_of_units = np.ascontiguousarray(hidden.T)
        for w, offset, weight in zip(weights_of_units, hidden_offsets, outer, strict=True):
            scores += weight * np.maximum(linear_scores(rows, w) + offset, 0)
        return scores

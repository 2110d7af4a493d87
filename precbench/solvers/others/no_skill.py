"""The same score for all rows."""

from typing import Any

from sklearn.dummy import DummyClassifier

from precbench.solvers.others.wrapper import SCIKIT_LEARN, ScoringClassifier


class NoSkill(ScoringClassifier):
    """The same score for all rows (scikit-learn): what any method should exceed.

    Metrics count ties by their expected value: precision is the share of positives, AUC is 1/2.

    Examples
    --------
    >>> from precbench import NoSkill
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [1, 0, 0, 0]
    >>> precision_at_k(y, NoSkill().fit(X, y).decision_function(X), k=2)  # the share of positives
    0.25
    """

    library = SCIKIT_LEARN

    def _classifier(self) -> Any:
        return DummyClassifier()

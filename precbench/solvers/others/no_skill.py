"""The same score for all rows."""

from typing import Any

from sklearn.dummy import DummyClassifier

from precbench.solvers.others.wrapper import SCIKIT_LEARN, ScoringClassifier


class NoSkill(ScoringClassifier):
    """The same score for all rows: what any method should exceed.

    Metrics count ties by their expected value, so that precision at k is the fraction
    of positives, whatever k, and the AUC is 1/2.

    Attributes
    ----------
    classifier_ : DummyClassifier
        The classifier, fitted to labels -1 and +1.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        1 after a `fit`; 0 if a trace ended it before.
    n_rows_seen_ : int
        Training rows, counted once: their number after the training, 0 before.

    Notes
    -----
    There is no `threshold_`: `predict` marks all rows if more than half of the training
    rows are positive, else none.

    References
    ----------
    Saito, Rehmsmeier, "The precision-recall plot is more informative than the ROC plot
    when evaluating binary classifiers on imbalanced datasets", PLoS ONE 10(3), 2015,
    for the precision and the AUC of a classifier without skill.

    Examples
    --------
    >>> from precbench import NoSkill
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [1, 0, 0, 0]
    >>> precision_at_k(y, NoSkill().fit(X, y).decision_function(X), k=2)
    0.25
    """

    library = SCIKIT_LEARN

    def _classifier(self) -> Any:
        return DummyClassifier()

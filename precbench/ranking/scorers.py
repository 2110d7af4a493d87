"""Scorers, with which scikit-learn's searches and cross-validation measure the top of a list."""

from collections.abc import Callable

from precbench.ranking.metrics import Ties, precision_at_k
from precbench.ranking.topk import TopK, check_k


def precision_at_k_scorer(k: TopK, ties: Ties = "expected") -> Callable[..., float]:
    """Return precision at `k` as a scorer, for the `scoring` of `GridSearchCV` and others.

    An estimator ranks by `decision_function`, else by the probability of the positive class.

    Parameters
    ----------
    k : int, float or str
        As in `precbench.ranking.metrics.precision_at_k`, of the rows that are scored. In a
        cross-validation these are one fold: a fraction of the rows stays comparable with longer
        lists.
    ties : {"expected", "best", "worst"}, default="expected"
        See `precbench.ranking.metrics.precision_at_k`.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from precbench import SGDAtK, precision_at_k_scorer
    >>> search = GridSearchCV(SGDAtK(), {"eta0": [0.01, 0.1]}, scoring=precision_at_k_scorer("1 %"))
    """
    from sklearn.metrics import make_scorer

    responses = ("decision_function", "predict_proba")
    return make_scorer(precision_at_k, response_method=responses, k=check_k(k), ties=ties)

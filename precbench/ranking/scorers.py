"""Scorers, with which scikit-learn's searches measure the top of a list."""

from collections.abc import Callable

from precbench.ranking.metrics import Ties, precision_at_k
from precbench.ranking.topk import TopK, check_k


def precision_at_k_scorer(k: TopK, ties: Ties = "expected") -> Callable[..., float]:
    """Return precision at `k` as a scorer, for the `scoring` of searches.

    `GridSearchCV`, `cross_val_score` and others take it. An estimator ranks by
    `decision_function`, else by the probability of the positive class.

    Parameters
    ----------
    k : float, int or str
        Length of the top of the list of the rows that are scored. An int is a number of
        rows, a float in (0, 1] a fraction of the positives, and text such as "1 %" a
        fraction of the rows; fractions are rounded up. So 1 is a single row, and 1.0 as
        many rows as there are positives. In a cross-validation the rows are those of
        one fold: a fraction of the rows stays comparable with longer lists.
    ties : {"expected", "best", "worst"}, default="expected"
        Which rows with the score at the end of the top count: the mean over their
        orders, positives first, or positives last.

    Returns
    -------
    callable
        With the arguments ``(estimator, X, y)``; it returns a number from 0 to 1.

    Raises
    ------
    InputError
        If `k` has no meaning for any list; by the scorer, if it has none for its rows.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from precbench import SGDAtK, precision_at_k_scorer
    >>> scoring = precision_at_k_scorer("1 %")
    >>> search = GridSearchCV(SGDAtK(), {"eta0": [0.01, 0.1]}, scoring=scoring)
    """
    from sklearn.metrics import make_scorer

    responses = ("decision_function", "predict_proba")
    return make_scorer(
        precision_at_k, response_method=responses, k=check_k(k), ties=ties
    )

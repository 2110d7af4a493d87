"""A stack of methods of different kinds."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from precbench.metrics import average_precision
from precbench.solvers.base import LinearRanker, NonlinearRanker, Ranker, Trace, untraced
from precbench.solvers.classifiers import (
    ExtraTrees,
    HistGradientBoosting,
    LogisticRegressionRanker,
)
from precbench.solvers.members import Member, weighted_scores
from precbench.solvers.minibatch import SGDAtK
from precbench.solvers.parameters import COUNT, Allowed, K, at_least
from precbench.solvers.random_features import RandomFeatures
from precbench.topk import TopK

__all__ = ["Ensemble"]

_ENOUGH = 100  # positives to learn some weights from
_FIRST, _ADDED = 0.5, 20  # of all members, and of those that help


class _Recipe(NamedTuple):
    """A member before it is fitted."""

    name: str
    solver: Ranker
    is_mapped: bool = False  # to random features

    def fit(self, X: Any, labels: NDArray[np.int8]) -> Member:
        fitted: Any = self.solver.fit(X, labels, trace=untraced)
        if isinstance(fitted, LinearRanker):
            return Member(self.name, coef=fitted.coef_)
        return Member(self.name, trees=fitted.to_trees())


@dataclass(kw_only=True, eq=False, repr=False)
class Ensemble(NonlinearRanker):
    """Methods of different kinds, stacked: the weighted sum of their log odds ranks the rows.

    The members are logistic regression with a strong and a weak penalty, logistic regression on
    random Fourier features, SGD@k, large and small boosted trees, and extremely randomised trees.
    Each learns from all folds but one and scores that one. These scores, standardised, are summed:
    a half of each, then twenty times the member that raises the average precision of the sum most.
    Last, all members learn from all rows. Folds are stratified, and as many of them are scored as
    it takes to see 100 positives. With fewer than two rows of a class all members weigh the same.

    Parameters
    ----------
    k : int, float or str, default=0.25
        Of SGD@k, see `precbench.topk.check_k`.
    n_estimators : int, default=100
        Number of trees of each ensemble of trees.
    n_components : int, default=100
        Number of random features.
    folds : int, default=5
    random_state : int or None, default=None

    Attributes
    ----------
    members_ : list of Member
        With their weights. As `n_iter_` they are counted.

    References
    ----------
    Caruana et al., "Ensemble selection from libraries of models", ICML 2004; Wolpert, "Stacked
    generalization", Neural Networks 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import Ensemble
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, where weights of the feature rank nothing
    >>> ranker = Ensemble(n_estimators=10, random_state=0).fit(X, y)
    >>> shares = {member.name: member.share for member in ranker.members_}
    >>> round(sum(shares.values()), 6), max(shares, key=shares.get)
    (1.0, 'logistic-regression, random features')
    """

    k: TopK = 0.25
    n_estimators: int = 100
    n_components: int = 100
    folds: int = 5
    random_state: Any = None

    allowed = Allowed(
        k=K,
        n_estimators=COUNT,
        n_components=COUNT,
        folds=at_least(2),
        random_state=["random_state"],
    )
    algorithm_version = f"1, scikit-learn {sklearn.__version__}"

    def _recipes(self, seed: int) -> Iterator[_Recipe]:
        n_trees: dict[str, Any] = {"n_estimators": self.n_estimators, "random_state": seed}
        boosted: dict[str, Any] = {"max_iter": self.n_estimators, "random_state": seed}
        small: dict[str, Any] = {"max_leaf_nodes": 7, "learning_rate": 0.05, "min_samples_leaf": 5}
        yield _Recipe("logistic-regression, C = 0.01", LogisticRegressionRanker(C=0.01))
        yield _Recipe("logistic-regression, C = 1", LogisticRegressionRanker())
        yield _Recipe("logistic-regression, random features", LogisticRegressionRanker(), True)
        yield _Recipe("sgd-avg", SGDAtK(k=self.k, eta0=1.0, random_state=seed))
        yield _Recipe("hist-gradient-boosting, 31 leaves", HistGradientBoosting(**boosted))
        yield _Recipe(
            "hist-gradient-boosting, 7 leaves",
            HistGradientBoosting(**small, l2_regularization=1.0, **boosted),
        )
        yield _Recipe("extra-trees", ExtraTrees(min_samples_leaf=3, **n_trees))

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        self._start(X.shape[1])
        if trace(self):
            return
        rng = np.random.default_rng(self.random_state)
        seed = int(rng.integers(2**31))
        features = RandomFeatures.fit(X, self.n_components, seed=seed)
        recipes, rows = list(self._recipes(seed)), {False: X, True: features.transform(X)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of a fold; the last fit warns
            weights, shares = self._weights(recipes, rows, labels, seed)
        self.members_: list[Member] = []
        for recipe, weight, share in zip(recipes, weights, shares.tolist(), strict=True):
            if weight > 0:
                member = recipe.fit(rows[recipe.is_mapped], labels)
                mapping = features if recipe.is_mapped else None
                self.members_.append(
                    replace(member, weight=float(weight), share=share, random_features=mapping)
                )
        self.n_iter_ = len(self.members_)
        self.n_rows_seen_ += self.n_iter_ * len(labels)
        trace(self)

    def _weights(
        self, recipes: list[_Recipe], rows: dict[bool, Any], labels: NDArray[np.int8], seed: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Learn the weights and shares of the members from rows that they have not seen."""
        n_folds = min(self.folds, *(int(np.count_nonzero(labels == sign)) for sign in (-1, 1)))
        if n_folds < 2:
            return np.ones(len(recipes)), np.full(len(recipes), 1 / len(recipes))
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        scores, judged, n_pos = [], [], 0
        for fitting, held_out in folds.split(labels, labels):
            parts = (
                recipe.fit(rows[recipe.is_mapped][fitting], labels[fitting]).scores(
                    rows[recipe.is_mapped][held_out]
                )
                for recipe in recipes
            )
            scores.append(np.column_stack([*parts]))
            judged.append(labels[held_out])
            self.n_rows_seen_ += len(recipes) * len(fitting)
            n_pos += int(np.count_nonzero(labels[held_out] > 0))
            if n_pos >= _ENOUGH:
                break
        return _stacked(np.concatenate(scores), np.concatenate(judged))

    def scores_after(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Score rows after the training, or before it.

        Parameters
        ----------
        X : ndarray of float64 in C order, or CSR matrix, of shape (n_samples, n_features)
        n_iter : int
            0 gives scores of 0.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return weighted_scores(self.members_ if n_iter else [], X)

    def to_members(self) -> list[Member]:
        """Return the members as plain arrays, whose weighted scores are bitwise identical.

        Returns
        -------
        list of Member
        """
        return self.members_ if self.n_iter_ else []


def _stacked(
    scores: NDArray[np.float64], labels: NDArray[np.int8]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights of columns of scores that raise the average precision of their sum.

    And those of standardised columns, as shares: a half of each is taken; then, `_ADDED` times, the
    one whose addition gives the best average precision.
    """
    with np.errstate(invalid="ignore"):
        spread = scores.std(axis=0)
    usable = np.isfinite(spread) & (spread > 1e-9 * np.abs(scores).max(axis=0))  # no rounding
    weights = np.zeros(scores.shape[1])
    if not usable.any():  # the same score for all rows, which the first member gives new ones, too
        weights[0] = 1.0
        return weights, weights.copy()
    scores = scores[:, usable] / spread[usable]
    taken, total = np.full(scores.shape[1], _FIRST), _FIRST * scores.sum(axis=1)
    for _ in range(_ADDED):
        reached = [average_precision(labels, total + column) for column in scores.T]
        best = int(np.argmax(reached))
        taken[best] += 1
        total += scores[:, best]
    weights[usable] = taken / spread[usable]
    shares = np.zeros(len(weights))
    shares[usable] = taken / taken.sum()
    return weights, shares

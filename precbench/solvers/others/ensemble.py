"""A stack of methods of different kinds."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from precbench.solvers.common.base import NonlinearRanker, Ranker, Trace, untraced
from precbench.solvers.common.parameters import (
    COUNT,
    N_JOBS,
    RANDOM_STATE,
    Allowed,
    as_generator,
    at_least,
)
from precbench.solvers.others.forests import ExtraTrees
from precbench.solvers.others.hist_gradient_boosting import HistGradientBoosting
from precbench.solvers.others.linear import LogisticRegressionRanker
from precbench.solvers.others.members import Member, weighted_scores
from precbench.solvers.others.wrapper import grow_to

_ENOUGH_SCORED = 200  # positives in the scored folds: further folds change little
_FEW_POSITIVES = 100  # with fewer in all folds the rows may be divided again
_PENALTY = 0.01  # on the squared distance of the weights from equal ones
# Boosting is tried with so many rounds at first, then with twice as many, and so on.
_FIRST_ROUNDS = 50
_MOST_ROUNDS = 400
_STEP = 10  # between two numbers of rounds whose losses are compared
# More rounds are tried if the best is among this share of the rounds, the last ones,
# and if the last doubling lowered the loss by this share of the loss without features.
_LAST_ROUNDS = 0.3
_WORTH_DOUBLING = 0.01


class _Recipe(NamedTuple):
    """How to make a member: its name, and its unfitted solver."""

    name: str
    solver: Ranker


def _fit_member(
    recipe: _Recipe, X: Any, labels: NDArray[np.int8]
) -> tuple[Member, float]:
    """Return a fitted member, and the number to add to its scores for log odds."""
    # A traced fit does without the threshold, which takes scores of all rows.
    fitted: Any = recipe.solver.fit(X, labels, trace=untraced)
    if isinstance(fitted, LogisticRegressionRanker):
        return Member(recipe.name, coef=fitted.coef_), fitted.offset_
    return Member(recipe.name, trees=fitted.to_trees()), 0.0


@dataclass(kw_only=True, eq=False, repr=False)
class Ensemble(NonlinearRanker):
    """Methods of different kinds, stacked: a logistic regression of their log odds.

    The members are logistic regression with a strong and a weak penalty, extremely
    randomised trees, and small and large boosted trees. Each learns from all stratified
    folds but one, which it scores. With the log odds z_im of member m for row i, and
    labels y_i of -1 and +1, the weights a_m >= 0 and an intercept b minimise over all
    scored rows

        mean_i ln(1 + exp(-y_i (sum_m a_m z_im + b))) + 0.01 sum_m (a_m - 1/M)^2

    for M members. Last, the members of a weight above 0 learn from all rows. The score
    of a row is its log odds, ``sum_m a_m z_m + b``. Use it where one method must do
    without a comparison, and time matters less than the ranking.

    Folds are scored until 200 positives are among them. With one row of a class all
    weights are equal.

    Boosted trees have the number of rounds with the least mean logistic loss on the
    scored folds: a multiple of 10, at most 50. If it is above 35, 100 rounds are tried;
    if it is then above 70, 200, and last 400. More are tried only while this lowers the
    loss by at least 1 % of the loss of the share of positives.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees of the extremely randomised trees, at least 1.
    max_iter : int or None, default=None
        Number of trees of each boosted member, at least 1; None to choose it.
    folds : int, default=5
        Number of folds, at least 2; at most as many as there are rows of the rarer
        class.
    divisions : int, default=1
        How often the rows are divided into folds, at least 1: less often once 100
        positives have been scored.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the folds and of the members. An int gives the same in each fit, None a
        new one; a RandomState or Generator goes on where it stopped.
    n_jobs : int, default=1
        Number of threads of the fits of trees, at least 1, or -1 for one on each
        processor.

    Attributes
    ----------
    members_ : list of Member
        The fitted members with their weights, see `precbench.solvers.others.members`.
    intercept_ : float
        The intercept of the log odds: b, plus the weighted intercepts of linear
        members.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Number of members; 0 until the training has ended.
    n_rows_seen_ : int
        Rows that members were fitted to, each counted once in a fit: those of the fits
        for the held-out folds included.

    Notes
    -----
    There is no `threshold_`: `predict` cuts at log odds of 0.

    References
    ----------
    Wolpert, "Stacked generalization", Neural Networks 5, 1992. Breiman, "Stacked
    regressions", Machine Learning 24, 1996, for weights of at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import Ensemble
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, where weights of the feature rank nothing
    >>> ranker = Ensemble(n_estimators=10, random_state=0).fit(X, y)
    >>> max(ranker.members_, key=lambda member: member.weight).name
    'extra-trees'
    """

    n_estimators: int = 100
    max_iter: int | None = None
    folds: int = 5
    divisions: int = 1
    random_state: Any = None
    n_jobs: int = 1

    allowed = Allowed(
        n_estimators=COUNT,
        max_iter=[None, *COUNT],
        folds=at_least(2),
        divisions=COUNT,
        random_state=RANDOM_STATE,
        n_jobs=N_JOBS,
    )
    algorithm_version = f"3, scikit-learn {sklearn.__version__}"

    _cuts_at_0 = True

    def _recipes(self, seed: int) -> Iterator[_Recipe]:
        """Yield the names and unfitted solvers of the members, linear ones first."""
        common: dict[str, Any] = {"random_state": seed, "n_jobs": self.n_jobs}
        yield _Recipe("logistic-regression, C = 0.01", LogisticRegressionRanker(C=0.01))
        yield _Recipe("logistic-regression, C = 1", LogisticRegressionRanker())
        yield _Recipe(
            "extra-trees", ExtraTrees(n_estimators=self.n_estimators, **common)
        )
        # The number that is chosen without `max_iter` takes the place of this one.
        n_rounds = self.max_iter or _FIRST_ROUNDS
        boosted: dict[str, Any] = {"max_iter": n_rounds, **common}
        small = HistGradientBoosting(
            max_leaf_nodes=7, min_samples_leaf=5, l2_regularization=1.0, **boosted
        )
        yield _Recipe("hist-gradient-boosting, 7 leaves", small)
        large = HistGradientBoosting(
            max_leaf_nodes=31, min_samples_leaf=20, l2_regularization=1.0, **boosted
        )
        yield _Recipe("hist-gradient-boosting, 31 leaves", large)

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Weigh the members by held-out folds; fit those of weight > 0 to all rows."""
        self._start(X.shape[1])
        if trace(self):
            return
        seed = int(as_generator(self.random_state).integers(2**31))
        recipes = list(self._recipes(seed))
        with warnings.catch_warnings():
            # The fits to folds need not warn, as those to all rows do so.
            warnings.simplefilter("ignore", ConvergenceWarning)
            weights, self.intercept_ = self._weights(recipes, X, labels, seed)
        self.members_: list[Member] = []
        # If no weight is above 0, one member is kept, of weight 0: all rows then score
        # alike.
        for i in np.flatnonzero(weights > 0).tolist() or [0]:
            member, offset = _fit_member(recipes[i], X, labels)
            weight = float(weights[i])
            self.members_.append(replace(member, weight=weight))
            # The log odds of the member are its scores plus the offset.
            self.intercept_ += weight * offset
        self.n_iter_ = len(self.members_)
        self.n_rows_seen_ += self.n_iter_ * len(labels)  # besides those of the folds
        trace(self)

    def _weights(
        self, recipes: list[_Recipe], X: Any, labels: NDArray[np.int8], seed: int
    ) -> tuple[NDArray[np.float64], float]:
        """Return the weights of the members and the intercept, from held-out scores.

        The solvers of boosted trees are given the number of rounds that is chosen.
        """
        n_pos = int(np.count_nonzero(labels > 0))
        n_folds = min(self.folds, n_pos, len(labels) - n_pos)
        if n_folds < 2:
            # No row of the rarer class can be held out: weigh all members alike.
            return np.full(len(recipes), 1 / len(recipes)), 0.0
        folds = list(_folds(labels, n_folds, self.divisions, seed))
        scores = []
        for recipe in recipes:
            solver: Any = recipe.solver
            is_boosted = isinstance(solver, HistGradientBoosting)
            if is_boosted and self.max_iter is None:
                log_odds = _choose_rounds(solver, X, labels, folds)
            else:
                log_odds = _held_out_log_odds(recipe, X, labels, folds)
            scores.append(log_odds)
        positive = []
        for fold in folds:
            positive.append(labels[fold.held_out] > 0)
            self.n_rows_seen_ += len(recipes) * len(fold.fitting)
        return _stack(np.column_stack(scores), np.concatenate(positive))

    def scores_after(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Return the log odds of rows after the training, and 0 before it.

        Parameters
        ----------
        X : ndarray in C order, or CSR matrix, of shape (n_samples, n_features)
            The rows to score, of float64 or float32.
        n_iter : int
            A value of `n_iter_` at a call of the trace: 0 before the training.

        Returns
        -------
        ndarray of shape (n_samples,)
            Larger is more likely positive.
        """
        if n_iter == 0:
            return np.zeros(X.shape[0])
        return weighted_scores(self.members_, X) + self.intercept_

    def to_members(self) -> list[Member]:
        """Return the members, whose weighted scores lack `intercept_`.

        There are no members before the training has ended.
        """
        return self.members_ if self.n_iter_ else []


class _Fold(NamedTuple):
    """The rows that members learn from, and the others, which they score."""

    fitting: NDArray[np.intp]
    held_out: NDArray[np.intp]


def _folds(
    labels: NDArray[np.int8], n_folds: int, divisions: int, seed: int
) -> Iterator[_Fold]:
    """Yield stratified folds until enough positives were held out.

    A division into folds holds out each positive once. The rows are divided again, at
    most `divisions` times in all, while positives are few.
    """
    n_pos = int(np.count_nonzero(labels > 0))
    n_divisions = min(divisions, ceil(_FEW_POSITIVES / n_pos))
    n_pos_held_out = 0
    for division in range(n_divisions):
        folds = StratifiedKFold(
            n_folds, shuffle=True, random_state=(seed + division) % 2**32
        )
        for fitting, held_out in folds.split(labels, labels):
            yield _Fold(fitting, held_out)
            n_pos_held_out += int(np.count_nonzero(labels[held_out] > 0))
            if n_pos_held_out >= _ENOUGH_SCORED:
                return


def _held_out_log_odds(
    recipe: _Recipe, X: Any, labels: NDArray[np.int8], folds: Sequence[_Fold]
) -> NDArray[np.float64]:
    """Return the log odds of the rows that each fold holds out, fold after fold."""
    log_odds = []
    for fold in folds:
        member, offset = _fit_member(recipe, X[fold.fitting], labels[fold.fitting])
        log_odds.append(member.scores(X[fold.held_out]) + offset)
    return np.concatenate(log_odds)


def _choose_rounds(
    solver: HistGradientBoosting,
    X: Any,
    labels: NDArray[np.int8],
    folds: Sequence[_Fold],
) -> NDArray[np.float64]:
    """Give a solver the number of rounds that is best for the rows held out.

    It has the least logistic loss, in the mean over the folds. Return the log odds
    after so many rounds, as `_held_out_log_odds`.
    """
    share = np.mean(labels > 0)
    loss_without_features = -share * np.log(share) - (1 - share) * np.log(1 - share)
    least_loss = np.inf
    n_rounds = _FIRST_ROUNDS
    boosted = []
    for fold in folds:
        first_rounds: Any = clone(solver).set_params(max_iter=n_rounds)
        boosted.append(
            first_rounds.fit(X[fold.fitting], labels[fold.fitting], trace=untraced)
        )
    while True:
        losses = _losses_by_rounds(boosted, X, labels, folds)
        best = _STEP * (1 + int(np.argmin(losses)))
        is_among_last = best > (1 - _LAST_ROUNDS) * n_rounds
        gain = least_loss - losses.min()
        is_worth_doubling = gain >= _WORTH_DOUBLING * loss_without_features
        if n_rounds >= _MOST_ROUNDS or not (is_among_last and is_worth_doubling):
            break
        least_loss = losses.min()
        n_rounds *= 2
        for fold, fitted in zip(folds, boosted, strict=True):
            grow_to(n_rounds, fitted, X[fold.fitting], labels[fold.fitting])
    solver.set_params(max_iter=best)
    log_odds = []
    for fold, fitted in zip(folds, boosted, strict=True):
        log_odds.append(fitted.to_trees().first(best).scores(X[fold.held_out]))
    return np.concatenate(log_odds)


def _losses_by_rounds(
    boosted: Sequence[HistGradientBoosting],
    X: Any,
    labels: NDArray[np.int8],
    folds: Sequence[_Fold],
) -> NDArray[np.float64]:
    """Return the loss of the rows held out after each `_STEP` rounds.

    It is the mean over the folds of the mean logistic loss of their rows.
    """
    losses = []
    for fold, fitted in zip(folds, boosted, strict=True):
        held_out = labels[fold.held_out]
        losses_of_fold = []
        for log_odds in fitted.to_trees().staged_scores(X[fold.held_out], _STEP):
            losses_of_fold.append(np.logaddexp(0, -held_out * log_odds).mean())
        losses.append(losses_of_fold)
    return np.mean(losses, axis=0)


def _stack(
    scores: NDArray[np.float64], positive: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    """Return weights and intercept of the logistic regression of `positive`.

    The features are the log odds in `scores`, a column for each member. A column with a
    value that is not finite has the weight 0.
    """
    usable = np.isfinite(scores).all(axis=0)
    columns = scores[:, usable]
    n, m = columns.shape
    equal = 1 / max(m, 1)  # towards this weight the penalty draws all weights

    def penalised_loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the logistic loss with its penalty, and the gradient, at w and b."""
        w, b = point[:m], point[m]  # the weights and the intercept
        excess = w - equal  # over equal weights
        log_odds = columns @ w + b
        # With z the log odds, and y of 1 for positives and 0 for negatives,
        #     ln(1 + exp(-z)) for positives, ln(1 + exp(z)) for negatives
        #         = ln(1 + exp(z)) - y z,
        # whose derivative by z is 1 / (1 + exp(-z)) - y.
        loss = np.mean(np.logaddexp(0, log_odds) - positive * log_odds)
        by_log_odds = (expit(log_odds) - positive) / n
        by_w = by_log_odds @ columns + 2 * _PENALTY * excess
        gradient = np.append(by_w, by_log_odds.sum())
        return loss + _PENALTY * (excess @ excess), gradient

    start = np.append(np.full(m, equal), 0.0)
    bounds = [(0, None)] * m + [(None, None)]  # the intercept, at the end, has no bound
    solution = minimize(
        penalised_loss, start, jac=True, method="L-BFGS-B", bounds=bounds
    )
    weights = np.zeros(scores.shape[1])
    weights[usable] = solution.x[:m]
    return weights, float(solution.x[m])

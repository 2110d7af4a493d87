"""The stack, whose weights are the best of their kind, and trees as arrays."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from precbench.model.shapley import Contributions
from precbench.ranking.metrics import auc
from precbench.solvers import SOLVERS, Ensemble
from precbench.solvers.others import ensemble
from precbench.solvers.others.ensemble import _stack
from precbench.solvers.others.members import Member
from precbench.solvers.others.trees import Trees, histogram_trees, lightgbm_trees
from tests.laws import problem

FEW = {"n_estimators": 10, "max_iter": 10, "random_state": 0}


def test_weights_minimise_the_penalised_loss():
    """As a search without gradients finds them."""
    rng = np.random.default_rng(0)
    positive = rng.random(400) < 0.2
    signal = positive[:, np.newaxis] * [1.0, 0.5, 3.0]
    noise = rng.standard_normal((400, 3)) * [1, 1, 5]
    scores = signal + noise - 1
    weights, intercept = _stack(scores, positive)
    assert (weights > 0).all()

    def penalised_loss(weights_and_intercept):
        *weights, intercept = weights_and_intercept
        total = scores @ weights + intercept
        loss = np.logaddexp(0, np.where(positive, -total, total)).mean()
        from_equal_weights = np.array(weights) - 1 / 3
        return loss + 0.01 * from_equal_weights @ from_equal_weights

    exact = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 10_000}
    search = minimize(penalised_loss, np.zeros(4), method="Nelder-Mead", options=exact)
    assert_allclose([*weights, intercept], search.x, atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_member_that_overflows_has_no_weight(value):
    X, labels = problem()
    useful = X[:, 0] + labels
    overflowing = np.full(400, value)
    weights, _intercept = _stack(np.column_stack([overflowing, useful]), labels > 0)
    assert weights[0] == 0
    assert weights[1] > 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_where_all_members_overflow_the_intercept_is_the_share_of_positives(value):
    _X, labels = problem()
    overflowing = np.full((400, 2), value)
    weights, intercept = _stack(overflowing, labels > 0)
    assert_array_equal(weights, [0.0, 0.0])
    assert intercept == pytest.approx(logit((labels > 0).mean()), abs=1e-4)


def test_scores_are_the_weighted_log_odds_of_the_members():
    """Trained again, one by one, by scikit-learn and the registry."""
    X, y = problem(n=600)
    fitted = Ensemble(**FEW).fit(X, y, trace=lambda solver: False)
    seed = int(np.random.default_rng(0).integers(2**31))
    members = {member.name: member for member in fitted.to_members()}
    assert fitted.n_iter_ == len(members)
    assert len(members) >= 3
    assert "extra-trees" in members
    weighted = np.zeros(len(X))
    for name, member in members.items():
        if name.startswith("logistic"):
            C = float(name.rpartition(" ")[2])
            again = LogisticRegression(C=C, max_iter=1000).fit(X, y)
            # Without its intercept, which that of the ensemble holds.
            scores = again.decision_function(X) - again.intercept_[0]
        elif name == "extra-trees":
            again = SOLVERS[name](n_estimators=10, random_state=seed)
            scores = logit(np.clip(again.fit(X, y)._scores(X) + 0.5, 1e-3, 1 - 1e-3))
        else:
            scores = member.scores(X)
        weighted += member.weight * scores
    scores = fitted.decision_function(X)
    assert_allclose(scores, weighted + fitted.intercept_, rtol=1e-9)


def test_the_score_is_a_log_odds_of_one_scale():
    """Probabilities of new rows add up to the training share of positives."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((9000, 4))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_normal(9000) > 2, 1, -1)
    new_rows = X[3000:]
    for n in (600, 3000):
        fitted = Ensemble(**FEW).fit(X[:n], y[:n])
        probabilities = expit(fitted.decision_function(new_rows))
        training_share = (y[:n] > 0).mean()
        assert probabilities.sum() == pytest.approx(training_share * 6000, rel=0.15)


def test_weights_are_learnt_from_rows_that_members_have_not_seen(monkeypatch):
    """Of labels by chance trees know their training rows, and nothing of others."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 40))
    y = np.where(np.arange(300) % 4 == 0, 1, -1)
    calls = []

    def watched_stack(scores, positive):
        calls.append((scores, positive))
        return _stack(scores, positive)

    monkeypatch.setattr(ensemble, "_stack", watched_stack)
    Ensemble(**FEW, divisions=2).fit(X, y)
    [(scores, positive)] = calls
    assert len(scores) == 600  # twice, for there are 75 positives
    trees = SOLVERS["extra-trees"](n_estimators=10, random_state=0).fit(X, y)
    assert auc(y, trees.decision_function(X)) > 0.95
    for scores_of_member in scores.T:
        assert 0.3 < auc(positive, scores_of_member) < 0.7


@pytest.mark.parametrize(("n_pos", "n_scored"), [(1, 0), (2, 6), (60, 10), (700, 2)])
def test_folds_are_no_more_than_it_takes(n_pos, n_scored):
    """Members are fitted to as many of five folds, again and again, as score 100
    positives.
    """
    n = 1500
    X, _y = problem(n=n)
    y = np.where(np.arange(n) < n_pos, 1, -1)
    fitted = Ensemble(**FEW, divisions=3).fit(X, y)
    rows_in_folds = fitted.n_rows_seen_ - fitted.n_iter_ * n
    in_training = 1 - 1 / min(5, n_pos)
    assert rows_in_folds == pytest.approx(n_scored * 5 * n * in_training, rel=0.01)


def rows_with_products(n, noise):
    """Return rows, and labels that depend on products of two features."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 6))
    signal = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]
    return X, np.where(signal + noise * rng.standard_normal(n) > 1.5, 1, -1)


@pytest.mark.parametrize(
    ("noise", "fewest", "most"),
    [
        pytest.param(4.0, 10, 30, id="few, where the labels are noisy"),
        pytest.param(0.5, 40, 390, id="many, where they are not"),
    ],
)
def test_rounds_have_the_least_loss_on_the_rows_held_out(noise, fewest, most):
    """As scikit-learn's own staged scores have it."""
    X, y = rows_with_products(600, noise)
    fitted = Ensemble(n_estimators=5, random_state=0).fit(X, y)
    seed = int(np.random.default_rng(0).integers(2**31))
    losses = []
    for fold in ensemble._folds(y.astype(np.int8), 5, 1, seed):
        classifier = HistGradientBoostingClassifier(
            max_iter=400,
            max_leaf_nodes=7,
            min_samples_leaf=5,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=seed,
        ).fit(X[fold.fitting], y[fold.fitting])
        losses_of_fold = []
        for log_odds in classifier.staged_decision_function(X[fold.held_out]):
            margins = y[fold.held_out] * log_odds
            losses_of_fold.append(np.mean(np.log1p(np.exp(-margins))))
        losses.append(losses_of_fold[9::10])
    best = 10 * (1 + int(np.argmin(np.mean(losses, axis=0))))
    assert fewest <= best <= most
    [n_trees] = [
        len(member.trees.root)
        for member in fitted.members_
        if member.name == "hist-gradient-boosting, 7 leaves"
    ]
    assert n_trees == best


def test_given_rounds_are_those_of_each_boosted_member():
    X, y = rows_with_products(300, noise=0.5)
    fitted = Ensemble(n_estimators=5, max_iter=7, random_state=0).fit(X, y)
    n_trees = {
        member.name: len(member.trees.root)
        for member in fitted.members_
        if member.name.startswith("hist")
    }
    assert n_trees
    assert set(n_trees.values()) == {7}


# --- trees as arrays, against the libraries that have grown them ---


def labelled_rows(n=600, seed=0):
    """Return rows, many of whose values are 0, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[:, 3] = rng.integers(0, 9, n)
    X[rng.random((n, 5)) < 0.1] = 0
    is_hit = X[:, 0] + (X[:, 3] % 2) + rng.standard_normal(n) > 1
    return X, is_hit


class Grown(NamedTuple):
    """Trees as arrays, and the function of the library that has grown them."""

    trees: Trees
    scores_of_library: Callable[[np.ndarray], np.ndarray]


def grow_histogram():
    classifier = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
    fitted = classifier.fit(*labelled_rows())
    return Grown(histogram_trees(fitted, 5), fitted.decision_function)


def lightgbm_booster():
    package = import_module("lightgbm")
    params = {
        "objective": "binary",
        "min_data_in_leaf": 5,
        "verbosity": -1,
        "num_threads": 1,
    }
    return package.train(params, package.Dataset(*labelled_rows()), 10)


def grow_lightgbm():
    fitted = lightgbm_booster()
    return Grown(lightgbm_trees(fitted, 5), partial(fitted.predict, raw_score=True))


LIBRARIES = [
    pytest.param(grow_histogram, id="scikit-learn"),
    pytest.param(grow_lightgbm, id="LightGBM", marks=pytest.mark.extras("lightgbm")),
]


@pytest.mark.parametrize("grow", LIBRARIES)
def test_scores_are_those_of_the_library(grow):
    grown = grow()
    training_rows, _ = labelled_rows()
    new_rows, _ = labelled_rows(300, seed=1)
    for X in (training_rows, new_rows):
        expected = grown.scores_of_library(X)
        assert_array_equal(grown.trees.scores(X), expected)
        assert_array_equal(grown.trees.scores(sparse.csr_matrix(X)), expected)


@pytest.mark.parametrize("grow", LIBRARIES)
def test_the_first_trees_have_scores_of_their_own(grow):
    trees = grow().trees
    X, _ = labelled_rows(300, seed=1)
    first_trees = trees.first(7)
    assert len(first_trees.root) == 7
    assert np.abs(first_trees.scores(X) - trees.scores(X)).max() > 0


@pytest.mark.parametrize("step", [3, 10, 99])
def test_staged_scores_are_those_of_the_first_trees(step):
    trees = grow_histogram().trees
    X, _ = labelled_rows(300, seed=1)
    stages = [scores.copy() for scores in trees.staged_scores(X, step)]
    counts = [*range(step, 10, step), 10]
    assert len(stages) == len(counts)
    for n_trees, scores in zip(counts, stages, strict=True):
        assert_array_equal(scores, trees.first(n_trees).scores(X))


@pytest.mark.parametrize("grow", LIBRARIES)
def test_trees_may_be_rebuilt_from_their_arrays(grow):
    grown = grow()
    X, _ = labelled_rows(300, seed=1)
    rebuilt = Trees.from_arrays(grown.trees.to_arrays(), **grown.trees.described)
    assert_array_equal(rebuilt.scores(X), grown.scores_of_library(X))


@pytest.mark.extras("lightgbm")
def test_contributions_are_those_of_lightgbm():
    booster = lightgbm_booster()
    X, _ = labelled_rows()
    member = Member("", trees=lightgbm_trees(booster, 5))
    column = np.arange(5, dtype=np.int32)
    explained = Contributions.of([member], X, np.zeros(5), column, is_stacked=False)
    *expected_values, expected_base = booster.predict(X, pred_contrib=True).T
    assert_allclose(explained.values.T, expected_values, rtol=0, atol=1e-9)
    assert explained.base == pytest.approx(expected_base[0], abs=1e-9)

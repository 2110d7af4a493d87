"""The stack, whose weights are the best of their kind, and trees as arrays."""

from importlib import import_module
from typing import Any

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

FEW = {"n_estimators": 10, "random_state": 0}


def test_weights_minimise_the_penalised_loss():
    """As a search without gradients finds them."""
    rng = np.random.default_rng(0)
    positive = rng.random(400) < 0.2
    scores = (
        positive[:, None] * [1.0, 0.5, 3.0]
        + rng.standard_normal((400, 3)) * [1, 1, 5]
        - 1
    )
    weights, intercept = _stack(scores, positive)
    assert (weights > 0).all()

    def loss(point):
        total, away = scores @ point[:3] + point[3], point[:3] - 1 / 3
        return (
            np.logaddexp(0, np.where(positive, -total, total)).mean()
            + 0.01 * away @ away
        )

    exact = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 10_000}
    best = minimize(loss, np.zeros(4), method="Nelder-Mead", options=exact).x
    assert_allclose([*weights, intercept], best, atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_member_that_overflows_has_no_weight(value):
    (X, labels), wrong = problem(), np.full(400, value)
    weights, _ = _stack(np.column_stack([wrong, X[:, 0] + labels]), labels > 0)
    assert weights[0] == 0 < weights[1]
    weights, intercept = _stack(np.column_stack([wrong, wrong]), labels > 0)
    assert_array_equal(weights, [0.0, 0.0])
    assert intercept == pytest.approx(logit((labels > 0).mean()), abs=1e-4)


def test_scores_are_the_weighted_log_odds_of_the_members():
    """Trained again, one by one, by scikit-learn and the registry."""
    X, y = problem(n=600)
    fitted = Ensemble(**FEW).fit(X, y, trace=lambda solver: False)
    seed = int(np.random.default_rng(0).integers(2**31))
    members = {member.name: member for member in fitted.to_members()}
    assert fitted.n_iter_ == len(members) >= 3
    expected, constant = np.zeros(len(X)), fitted.intercept_
    for name, member in members.items():
        if name.startswith("logistic"):
            again = LogisticRegression(
                C=float(name.rpartition(" ")[2]), max_iter=1000
            ).fit(X, y)
            scores = again.decision_function(X)
            constant -= member.weight * again.intercept_[0]
        elif name == "extra-trees":
            again = SOLVERS[name](n_estimators=10, random_state=seed)
            scores = logit(np.clip(again.fit(X, y)._scores(X) + 0.5, 1e-3, 1 - 1e-3))
        else:
            scores = member.scores(X)
        expected += member.weight * scores
    assert_allclose(fitted.decision_function(X), expected + constant, rtol=1e-9)
    assert "extra-trees" in members


def test_the_score_is_a_log_odds_of_one_scale():
    """Probabilities of new rows add up to the training share of positives."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((9000, 4))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_normal(9000) > 2, 1, -1)
    new = slice(3000, None)
    for n in (600, 3000):
        total = expit(Ensemble(**FEW).fit(X[:n], y[:n]).decision_function(X[new])).sum()
        assert total == pytest.approx((y[:n] > 0).mean() * 6000, rel=0.15)


def test_weights_are_learnt_from_rows_that_members_have_not_seen(monkeypatch):
    """Of labels by chance trees know their training rows, and nothing of others."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 40)), np.where(np.arange(300) % 4 == 0, 1, -1)
    seen = []
    monkeypatch.setattr(
        ensemble, "_stack", lambda *given: seen.append(given) or _stack(*given)
    )
    Ensemble(**FEW).fit(X, y)
    [(scores, labels)] = seen
    assert len(scores) == 600  # twice, for there are 75 positives
    assert auc(y, SOLVERS["extra-trees"](**FEW).fit(X, y).decision_function(X)) > 0.95
    assert all(0.3 < auc(labels, column) < 0.7 for column in scores.T)


@pytest.mark.parametrize(("n_pos", "n_scored"), [(1, 0), (2, 6), (60, 10), (700, 2)])
def test_folds_are_no_more_than_it_takes(n_pos, n_scored):
    """Members are fitted to as many of five folds, again and again, as score 100
    positives.
    """
    X, _ = problem(n=1500)
    fitted = Ensemble(**FEW).fit(X, np.where(np.arange(1500) < n_pos, 1, -1))
    rows_in_folds = fitted.n_rows_seen_ - fitted.n_iter_ * 1500
    in_training = 1 - 1 / min(5, n_pos)
    assert rows_in_folds == pytest.approx(n_scored * 5 * 1500 * in_training, rel=0.01)


# --- trees as arrays, against the libraries that have grown them ---


def rows(n=600, seed=0):
    """Return rows, many of whose values are 0, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[:, 3] = rng.integers(0, 9, n)
    X[rng.random((n, 5)) < 0.1] = 0
    return X, X[:, 0] + (X[:, 3] % 2) + rng.standard_normal(n) > 1


def histogram() -> tuple[Trees, Any]:
    fitted = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5).fit(
        *rows()
    )
    return histogram_trees(fitted, 5), fitted.decision_function


def booster():
    package = import_module("lightgbm")
    params = {
        "objective": "binary",
        "min_data_in_leaf": 5,
        "verbosity": -1,
        "num_threads": 1,
    }
    return package.train(params, package.Dataset(*rows()), 10)


def lightgbm() -> tuple[Trees, Any]:
    fitted = booster()
    return lightgbm_trees(fitted, 5), lambda X: fitted.predict(X, raw_score=True)


@pytest.mark.parametrize(
    "grow", [histogram, pytest.param(lightgbm, marks=pytest.mark.extras("lightgbm"))]
)
def test_scores_are_those_of_the_library(grow):
    trees, scores = grow()
    for X in (rows()[0], rows(300, seed=1)[0]):
        assert_array_equal(trees.scores(X), scores(X))
        assert_array_equal(trees.scores(sparse.csr_matrix(X)), scores(X))
    part = trees.first(7)
    assert len(part.root) == 7 and np.abs(part.scores(X) - trees.scores(X)).max() > 0
    assert_array_equal(
        Trees.from_arrays(trees.to_arrays(), **trees.described).scores(X), scores(X)
    )


@pytest.mark.extras("lightgbm")
def test_values_are_those_of_lightgbm():
    fitted, X = booster(), rows()[0]
    column, member = (
        np.arange(5, dtype=np.int32),
        Member("", trees=lightgbm_trees(fitted, 5)),
    )
    values = Contributions.of([member], X, np.zeros(5), column, is_stacked=False)
    *expected, base = fitted.predict(X, pred_contrib=True).T
    assert_allclose(values.values.T, expected, rtol=0, atol=1e-9)
    assert values.base == pytest.approx(base[0], abs=1e-9)

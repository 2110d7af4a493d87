"""The stack: its members are those of the registry, and its weights the best of their kind."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logit
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

from precbench.metrics import auc
from precbench.solvers import SOLVERS, Ensemble
from precbench.solvers.ensemble import _stacked
from tests.laws import problem

FEW = {"n_estimators": 20, "n_components": 20, "random_state": 0}


def test_weights_are_those_of_the_greedy_selection():
    """By hand, with the average precision of scikit-learn."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(400) < 0.2, 1, -1)
    scores = labels[:, None] * [1.0, 0.5, 3.0] + rng.standard_normal((400, 3)) * [1, 1, 5]
    standardised = scores / scores.std(axis=0)
    taken = [0.5, 0.5, 0.5]
    for _ in range(20):
        sums = [standardised @ (np.array(taken) + more) for more in np.eye(3)]
        taken[np.argmax([average_precision_score(labels, total) for total in sums])] += 1
    weights, shares = _stacked(scores, labels)
    assert_allclose(weights * scores.std(axis=0), taken)
    assert len(set(taken)) > 1
    assert_allclose(shares, np.array(taken) / sum(taken))
    assert_allclose(_stacked(scores * 7, labels)[0], weights / 7)


@pytest.mark.parametrize("wrong", [np.ones(400), np.full(400, np.nan), np.full(400, np.inf)])
def test_a_member_without_an_order_has_no_weight(wrong):
    X, labels = problem()
    assert _stacked(np.column_stack([wrong, X[:, 0]]), labels)[0][0] == 0
    for found in _stacked(np.column_stack([wrong, wrong]), labels):
        assert_array_equal(found, [1.0, 0.0])


def test_scores_are_the_weighted_log_odds_of_the_members():
    """Trained again, one by one, by the registry."""
    X, y = problem(n=600)
    fitted = Ensemble(**FEW).fit(X, y, trace=lambda solver: False)
    seed = int(np.random.default_rng(0).integers(2**31))
    members = {member.name: member for member in fitted.to_members()}
    assert fitted.n_iter_ == len(members) >= 3
    expected = np.zeros(len(X))
    for name, member in members.items():
        if name.startswith("logistic") and member.random_features is None:
            again = SOLVERS["logistic-regression"](C=float(name.rpartition(" ")[2]))
            scores = again.fit(X, y)._scores(X)
        elif name == "extra-trees":
            again = SOLVERS[name](n_estimators=20, min_samples_leaf=3, random_state=seed)
            scores = logit(np.clip(again.fit(X, y)._scores(X) + 0.5, 1e-3, 1 - 1e-3))
        else:
            scores = member.scores(X)
        expected += member.weight * scores
    assert_allclose(fitted.decision_function(X), expected, rtol=1e-9)
    assert {"extra-trees"} <= set(members)


def test_weights_are_learnt_from_rows_that_members_have_not_seen(monkeypatch):
    """Of labels by chance trees know their training rows, and nothing of others."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 40)), np.where(np.arange(300) % 4 == 0, 1, -1)
    seen = []
    monkeypatch.setattr(
        "precbench.solvers.ensemble._stacked",
        lambda *given: seen.append(given) or _stacked(*given),
    )
    [trees] = [m for m in Ensemble(**FEW).fit(X, y).members_ if m.name == "extra-trees"]
    [(scores, labels)] = seen
    assert len(scores) == 300
    assert auc(y, trees.scores(X)) > 0.95
    assert all(0.3 < auc(labels, column) < 0.7 for column in scores.T)


@pytest.mark.parametrize(("n_pos", "folds"), [(1, 0), (2, 2), (4, 4), (60, 5), (300, 2)])
def test_folds_are_no_more_than_it_takes(monkeypatch, n_pos, folds):
    X, y = problem(n=500)
    y = np.where(np.arange(500) < n_pos, 1, -1)
    seen = []
    monkeypatch.setattr(
        "precbench.solvers.ensemble.StratifiedKFold",
        lambda n, **options: seen.append(n) or StratifiedKFold(n, **options),
    )
    fitted = Ensemble(**FEW).fit(X, y)
    assert seen == ([min(5, n_pos)] if folds else [])
    parts = fitted.n_rows_seen_ - fitted.n_iter_ * 500
    each = 7 * (500 - 500 / min(5, n_pos)) if folds else 0
    assert parts == pytest.approx(folds * each, rel=0.01)

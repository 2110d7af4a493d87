"""FTRL.

Each w against a general solver, penalties by definition, planes, constants, regret.
"""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from precbench.core.errors import InputError
from precbench.solvers import FTRL
from precbench.solvers.ftrl import reference
from tests.sentences import raises, warns

EACH = {
    "prbep": {"objective": "prbep"},
    "prec@k": {"objective": "prec@k", "top": 0.4},
    "prec@k, a count": {"objective": "prec@k", "top": 3},
    "pauc": {"objective": "pauc", "beta": 0.5},
    "pauc, one negative": {"objective": "pauc", "beta": 0.1},
}
each_loss = pytest.mark.parametrize("name", EACH)


def stream(seed, n=7, d=2, share=0.4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(rng.random(n) < share, 1, -1)
    y[rng.permutation(n)[:2]] = [1, -1]
    X[y > 0, 0] += 1
    return X / np.linalg.norm(X, axis=1).max(), y


def n_first(name, y):
    """Return how many rows, or negatives, are at the top of all rows so far."""
    if name == "prbep":
        return np.sum(y > 0)
    if name == "prec@k, a count":
        return min(3, len(y))
    share, n = {
        "prec@k": (0.4, len(y)),
        "pauc": (0.5, np.sum(y < 0)),
        "pauc, one negative": (0.1, np.sum(y < 0)),
    }[name]
    return int(np.ceil(share * n - 1e-9))


def loss(name, X, y, w):
    """Return the loss of these rows by sorting, slowly."""
    return reference.loss(
        X, y, w, pairs=name.startswith("pauc"), n_top=n_first(name, y)
    )


def best(name, X, y, eta, radius):
    """Minimise the regularised loss in the ball by a general solver."""
    pairs, n_top = name.startswith("pauc"), n_first(name, y)
    return reference.leader(X, y, pairs=pairs, n_top=n_top, eta=eta, radius=radius)


def path(solver, X, y):
    """Fit and return w_1, w_2, ..., w_{T+1}."""
    weights = {}
    solver.fit(X, y, trace=lambda s: weights.update({s.n_iter_: s.coef_}))
    return np.array(list(weights.values()))


@pytest.mark.promise("R12")
@each_loss
@pytest.mark.parametrize(
    ("eta", "radius", "seed"),
    [(None, 1.0, 0), (0.3, 0.8, 1), (2.0, 50.0, 2), (0.02, 3.0, 0)],
)
def test_each_w_is_that_of_a_general_solver(name, eta, radius, seed):
    X, y = stream(seed)
    solver = FTRL(**EACH[name], eta=eta, radius=radius, tol=1e-6, shuffle=False)
    weights = path(solver, X, y)
    assert_array_equal(weights[0], 0)
    assert (np.linalg.norm(weights, axis=1) <= radius * (1 + 1e-12)).all()

    def value(w, t):
        return loss(name, X[:t], y[:t], w) + 0.5 * solver.eta_ * w @ w

    for t in range(1, len(y) + 1):
        w = best(name, X[:t], y[:t], solver.eta_, radius)
        assert value(weights[t], t) <= value(w, t) + 1e-9
        assert_allclose(
            weights[t], w, atol=2e-3 * radius if solver.eta_ < 0.1 else 1e-4
        )


@each_loss
@pytest.mark.parametrize("batch_size", [1, 4])
def test_penalties_by_definition(name, batch_size):
    X, y = stream(5, n=30, d=3)
    solver = FTRL(**EACH[name], batch_size=batch_size, shuffle=False)
    weights = path(solver, X, y)
    stops = [*range(batch_size, 30, batch_size), 30]
    assert len(weights) == len(stops) + 1 and solver.n_iter_ == len(stops)
    for t, stop in enumerate(stops):
        before = stop - batch_size if stop < 30 else stops[-2]
        penalty = loss(name, X[:stop], y[:stop], weights[t])
        penalty -= loss(name, X[:before], y[:before], weights[t]) if before else 0
        assert solver.penalties_[t] == pytest.approx(penalty, abs=1e-10)


def test_constants():
    X = 2 * np.eye(6)
    y = [-1, 1, -1, 1, -1, -1]
    assert_array_equal(FTRL(shuffle=False).fit(X, y).lipschitz_, np.full(6, 8.0))
    solver = FTRL("pauc", beta=0.5, shuffle=False, radius=3.0).fit(X, y)
    assert_array_equal(solver.lipschitz_, 4.0 * np.array([0, 1, 1, 1, 2, 2]))
    assert solver.eta_ == pytest.approx(np.sqrt(2 * np.sum(solver.lipschitz_**2)) / 3)
    pairs = FTRL("pauc", beta=0.5, shuffle=False, batch_size=4).fit(X, y)
    assert_array_equal(pairs.lipschitz_, 4.0 * np.array([3, 4]))
    assert FTRL(eta=0.5).fit(X, y).eta_ == 0.5


@each_loss
@pytest.mark.parametrize(("batch_size", "radius"), [(1, 0.3), (9, 5.0)])
def test_regret_stays_below_its_bound(name, batch_size, radius):
    for seed in range(3):
        X, y = stream(seed, n=80, d=3)
        order = np.argsort(y * (-1) ** seed, kind="stable") if seed else np.arange(80)
        solver = FTRL(**EACH[name], batch_size=batch_size, radius=radius, shuffle=False)
        solver.fit(X[order], y[order])
        bound = radius * np.sqrt(2 * np.sum(solver.lipschitz_**2))
        regret = solver.penalties_.sum() - solver.leader(X[order], y[order]).loss
        assert regret <= bound


@each_loss
@pytest.mark.parametrize(("radius", "seed"), [(0.5, 0), (20.0, 1), (20.0, 2)])
def test_the_leader_is_that_of_a_general_solver(name, radius, seed):
    X, y = stream(seed)
    # the bound has an order
    solver = FTRL(**EACH[name], radius=radius, shuffle=False).fit(X, y)
    leader = solver.leader(X, y)
    least = loss(name, X, y, best(name, X, y, 0.0, radius))
    assert loss(name, X, y, leader.w) == pytest.approx(leader.loss, abs=1e-10)
    assert np.linalg.norm(leader.w) <= radius * (1 + 1e-12)
    bound = radius * np.sqrt(2 * np.sum(solver.lipschitz_**2))
    assert leader.gap <= 1e-3 * bound
    assert leader.loss - leader.gap <= least + 1e-7 <= leader.loss + leader.gap + 2e-7


def test_the_order_of_the_rows():
    X, y = stream(6, n=60, d=3)
    stored, shuffled = path(FTRL(shuffle=False), X, y), path(FTRL(random_state=3), X, y)
    assert_array_equal(path(FTRL(shuffle=False), X, y), stored)
    turn = np.random.default_rng(3).permutation(60)
    assert_array_equal(path(FTRL(shuffle=False), X[turn], y[turn]), shuffled)
    assert not np.allclose(shuffled, stored)


def test_average_is_the_mean_of_all_played_weights():
    X, y = stream(6, n=60, d=3)
    mean = FTRL(shuffle=False, average=True).fit(X, y).coef_
    assert_allclose(mean, path(FTRL(shuffle=False), X, y)[:-1].mean(axis=0), atol=1e-14)


def test_trace_stops_within_a_batch():
    X, y = stream(6, n=120, d=10)
    solver = FTRL(shuffle=False, batch_size=60, eta=1.0)
    calls = []
    solver.fit(X, y, trace=lambda s: calls.append((s.n_iter_, s.n_rows_seen_, s.coef_)))
    assert [n for n, *_ in calls[:3]] == [0, 0, 0] and calls[-1][0] == 2
    for before, after in pairwise(calls):
        if before[0] == after[0]:  # nothing is new until the batch is over
            assert before[1] == after[1] and before[2] is after[2]
    whole = solver.penalties_
    called = []
    solver.fit(X, y, trace=lambda s: called.append(s.n_iter_) or called.count(1) == 2)
    assert called[-2:] == [1, 1] and solver.n_iter_ == 1
    assert_array_equal(solver.penalties_, whole[:1])


def test_too_few_evaluations_are_reported():
    X, y = stream(6, n=60, d=3)
    with warns(ConvergenceWarning, "max_iter 2"):
        solver = FTRL("pauc", shuffle=False, max_iter=2, tol=1e-8).fit(X, y)
    assert solver.gap_ > 0
    with warns(ConvergenceWarning):
        leader = solver.set_params(max_iter=1).leader(X, y)
    assert leader.gap > 1e-3 * solver.radius * np.sqrt(2 * np.sum(solver.lipschitz_**2))


@each_loss
@pytest.mark.parametrize("eta", [None, 10.0, 1e-3, 1e-4])
def test_the_certificate(name, eta):
    """A small eta leaves planes that meet in a corner, where the dual has few digits of
    w.
    """
    X, y = stream(7, n=40, d=3)
    exact = FTRL(**EACH[name], shuffle=False, eta=eta, tol=1e-6)
    exact_path = path(exact, X, y)
    assert exact.error_ <= 1e-6
    solver = FTRL(**EACH[name], shuffle=False, eta=eta, tol=1e-2)
    off = np.linalg.norm(path(solver, X, y) - exact_path, axis=1).max()
    assert off - 1e-6 <= solver.error_ <= 1e-2
    assert solver.error_ <= np.sqrt(2 * solver.gap_ / solver.eta_)
    if eta is None:  # more digits than rounding leaves
        with warns(ConvergenceWarning):
            off = np.linalg.norm(
                path(solver.set_params(tol=1e-9), X, y) - exact_path, axis=1
            ).max()
        assert 1e-9 < solver.error_ < 1e-6 and off - 1e-6 <= solver.error_


@pytest.mark.parametrize("objective", ["prbep", "pauc"])
def test_overflowing_products_are_reported(objective):
    X, y = stream(6)
    with warns(ConvergenceWarning):
        traced = FTRL(objective, eta=1e-300).fit(
            X * 1e70, y, trace=lambda solver: False
        )
    assert np.isnan(traced.coef_).all()
    with raises(InputError):
        FTRL(objective).fit(X, y).leader(X * 1e100, y)


@pytest.mark.parametrize("objective", ["prbep", "pauc"])
def test_columns_without_entries_cost_nothing(objective):
    X, y = stream(30)
    wide = sparse.csr_matrix(np.insert(X, [0, 2, 2, X.shape[1]], 0.0, axis=1))
    both = sparse.csr_matrix(X), wide
    narrow, solver = (FTRL(objective, shuffle=False).fit(rows, y) for rows in both)
    assert_array_equal(
        solver.coef_, np.insert(narrow.coef_, [0, 2, 2, X.shape[1]], 0.0)
    )
    assert len(solver.coef_) == X.shape[1] + 4


def test_a_leader_needs_a_fit_and_is_0_of_rows_of_zeros():
    X, y = stream(6)
    for objective in ("prbep", "pauc"):
        with pytest.raises(NotFittedError):
            FTRL(objective).leader(X, y)
        leader = FTRL(objective).fit(X, y).leader(0 * X, y)
        assert_array_equal(leader.w, 0)
        assert leader.gap == 0


@each_loss
@pytest.mark.parametrize("eta", [1e-9, 1e9])
def test_extreme_eta(name, eta):
    """The least eta gives the leader, the largest nearly 0; both are certain."""
    X, y = stream(6, n=60, d=3)
    solver = FTRL(**EACH[name], shuffle=False, eta=eta).fit(X, y)
    assert solver.eta_ == eta and solver.n_iter_ == 60 and solver.error_ <= solver.tol
    if eta > 1:
        assert np.linalg.norm(solver.coef_) < 1e-5
    else:
        assert (
            loss(name, X, y, solver.coef_)
            <= solver.leader(X, y).loss + solver.gap_ + 1e-9
        )

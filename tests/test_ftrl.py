"""FTRL: each w against a general solver, penalties, planes, constants, regret."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from precbench.core.errors import InputError
from precbench.solvers import FTRL
from precbench.solvers.ftrl import reference
from tests.sentences import raises, warns

LOSSES = {
    "prbep": {"objective": "prbep"},
    "prec@k": {"objective": "prec@k", "top": 0.4},
    "prec@k, a count": {"objective": "prec@k", "top": 3},
    "pauc": {"objective": "pauc", "beta": 0.5},
    "pauc, one negative": {"objective": "pauc", "beta": 0.1},
}
each_loss = pytest.mark.parametrize("name", LOSSES)


def stream(seed, n=7, d=2, share=0.4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(rng.random(n) < share, 1, -1)
    y[rng.permutation(n)[:2]] = [1, -1]
    X[y > 0, 0] += 1
    return X / np.linalg.norm(X, axis=1).max(), y


def n_top(name, y):
    """Return how many rows, or negatives, are at the top of all rows so far."""
    if name == "prbep":
        return np.sum(y > 0)
    if name == "prec@k, a count":
        return min(3, len(y))
    if name == "prec@k":
        return ceil_share(0.4, len(y))
    if name == "pauc":
        return ceil_share(0.5, np.sum(y < 0))
    return ceil_share(0.1, np.sum(y < 0))


def ceil_share(share, n):
    return int(np.ceil(share * n - 1e-9))


def slow_loss(name, X, y, w):
    """Return the loss of these rows by sorting."""
    pairs = name.startswith("pauc")
    return reference.loss(X, y, w, pairs=pairs, n_top=n_top(name, y))


def slow_leader(name, X, y, eta, radius):
    """Minimise the regularised loss in the ball by a general solver."""
    pairs = name.startswith("pauc")
    return reference.leader(
        X, y, pairs=pairs, n_top=n_top(name, y), eta=eta, radius=radius
    )


def path(solver, X, y):
    """Fit and return w_1, w_2, ..., w_{T+1}."""
    weights = {}
    solver.fit(X, y, trace=lambda s: weights.update({s.n_iter_: s.coef_}))
    return np.array(list(weights.values()))


def regret_bound(solver):
    return solver.radius * np.sqrt(2 * np.sum(solver.lipschitz_**2))


@pytest.mark.promise("R12")
@each_loss
@pytest.mark.parametrize(
    ("eta", "radius", "seed"),
    [
        pytest.param(None, 1.0, 0, id="the default of eta"),
        pytest.param(0.3, 0.8, 1, id="a small ball"),
        pytest.param(2.0, 50.0, 2, id="a ball that is not reached"),
        pytest.param(0.02, 3.0, 0, id="a weak penalty"),
    ],
)
def test_each_w_is_that_of_a_general_solver(name, eta, radius, seed):
    X, y = stream(seed)
    solver = FTRL(**LOSSES[name], eta=eta, radius=radius, tol=1e-6, shuffle=False)
    weights = path(solver, X, y)
    assert_array_equal(weights[0], 0)
    assert np.linalg.norm(weights, axis=1).max() <= radius * (1 + 1e-12)

    def primal(w, t):
        return slow_loss(name, X[:t], y[:t], w) + 0.5 * solver.eta_ * w @ w

    # A weak penalty leaves w open.
    atol = 2e-3 * radius if solver.eta_ < 0.1 else 1e-4
    for t in range(1, len(y) + 1):
        w = slow_leader(name, X[:t], y[:t], solver.eta_, radius)
        assert primal(weights[t], t) <= primal(w, t) + 1e-9
        assert_allclose(weights[t], w, atol=atol)


@each_loss
@pytest.mark.parametrize("batch_size", [1, 4])
def test_penalties_by_definition(name, batch_size):
    """The penalty of a batch is what it adds to the loss at its w."""
    X, y = stream(5, n=30, d=3)
    solver = FTRL(**LOSSES[name], batch_size=batch_size, shuffle=False)
    weights = path(solver, X, y)
    starts = range(0, 30, batch_size)
    assert len(weights) == len(starts) + 1
    assert solver.n_iter_ == len(starts)
    for t, start in enumerate(starts):
        stop = min(start + batch_size, 30)
        loss_before_batch = 0
        if start > 0:
            loss_before_batch = slow_loss(name, X[:start], y[:start], weights[t])
        penalty = slow_loss(name, X[:stop], y[:stop], weights[t]) - loss_before_batch
        assert solver.penalties_[t] == pytest.approx(penalty, abs=1e-10)


def test_constants():
    X = 2 * np.eye(6)
    y = [-1, 1, -1, 1, -1, -1]
    struct = FTRL(shuffle=False).fit(X, y)
    assert_array_equal(struct.lipschitz_, np.full(6, 8.0))
    pauc = FTRL("pauc", beta=0.5, shuffle=False, radius=3.0).fit(X, y)
    assert_array_equal(pauc.lipschitz_, 4.0 * np.array([0, 1, 1, 1, 2, 2]))
    assert pauc.eta_ == pytest.approx(np.sqrt(2 * np.sum(pauc.lipschitz_**2)) / 3)
    in_batches = FTRL("pauc", beta=0.5, shuffle=False, batch_size=4).fit(X, y)
    assert_array_equal(in_batches.lipschitz_, 4.0 * np.array([3, 4]))


def test_a_given_eta_is_taken():
    X, y = stream(6)
    assert FTRL(eta=0.5).fit(X, y).eta_ == 0.5


def as_they_come(y):
    return np.arange(len(y))


def positives_first(y):
    return np.argsort(-y, kind="stable")


def negatives_first(y):
    return np.argsort(y, kind="stable")


@each_loss
@pytest.mark.parametrize(("batch_size", "radius"), [(1, 0.3), (9, 5.0)])
@pytest.mark.parametrize(
    ("seed", "order"), [(0, as_they_come), (1, positives_first), (2, negatives_first)]
)
def test_regret_stays_below_its_bound(name, batch_size, radius, seed, order):
    X, y = stream(seed, n=80, d=3)
    X, y = X[order(y)], y[order(y)]
    solver = FTRL(**LOSSES[name], batch_size=batch_size, radius=radius, shuffle=False)
    solver.fit(X, y)
    regret = solver.penalties_.sum() - solver.leader(X, y).loss
    assert regret <= regret_bound(solver)


@each_loss
@pytest.mark.parametrize(("radius", "seed"), [(0.5, 0), (20.0, 1), (20.0, 2)])
def test_the_leader_is_that_of_a_general_solver(name, radius, seed):
    X, y = stream(seed)
    # In the stored order, by which the bound of the regret is known.
    solver = FTRL(**LOSSES[name], radius=radius, shuffle=False).fit(X, y)
    leader = solver.leader(X, y)
    least_loss = slow_loss(name, X, y, slow_leader(name, X, y, 0.0, radius))
    assert slow_loss(name, X, y, leader.w) == pytest.approx(leader.loss, abs=1e-10)
    assert np.linalg.norm(leader.w) <= radius * (1 + 1e-12)
    assert leader.gap <= 1e-3 * regret_bound(solver)
    assert leader.loss - leader.gap <= least_loss + 1e-7
    assert least_loss <= leader.loss + leader.gap + 1e-7


def test_the_order_of_the_rows():
    X, y = stream(6, n=60, d=3)
    stored = path(FTRL(shuffle=False), X, y)
    shuffled = path(FTRL(random_state=3), X, y)
    assert_array_equal(path(FTRL(shuffle=False), X, y), stored)
    order = np.random.default_rng(3).permutation(60)
    assert_array_equal(path(FTRL(shuffle=False), X[order], y[order]), shuffled)
    assert not np.allclose(shuffled, stored)


def test_average_is_the_mean_of_all_played_weights():
    X, y = stream(6, n=60, d=3)
    mean = FTRL(shuffle=False, average=True).fit(X, y).coef_
    assert_allclose(mean, path(FTRL(shuffle=False), X, y)[:-1].mean(axis=0), atol=1e-14)


class Call(NamedTuple):
    """What a trace sees."""

    n_iter: int
    n_rows_seen: int
    coef: np.ndarray


def test_a_trace_is_called_within_a_batch_where_nothing_is_new():
    X, y = stream(6, n=120, d=10)
    calls = []

    def note(solver):
        calls.append(Call(solver.n_iter_, solver.n_rows_seen_, solver.coef_))

    FTRL(shuffle=False, batch_size=60, eta=1.0).fit(X, y, trace=note)
    assert [call.n_iter for call in calls[:3]] == [0, 0, 0]
    assert calls[-1].n_iter == 2
    for call, next_call in pairwise(calls):
        if call.n_iter == next_call.n_iter:
            assert call.n_rows_seen == next_call.n_rows_seen
            assert call.coef is next_call.coef


def test_a_trace_ends_a_fit_within_a_batch():
    X, y = stream(6, n=120, d=10)
    solver = FTRL(shuffle=False, batch_size=60, eta=1.0)
    penalties = solver.fit(X, y).penalties_
    iterations = []

    def end_within_the_second_batch(solver):
        iterations.append(solver.n_iter_)
        return iterations.count(1) == 2

    solver.fit(X, y, trace=end_within_the_second_batch)
    assert iterations[-2:] == [1, 1]
    assert solver.n_iter_ == 1
    assert_array_equal(solver.penalties_, penalties[:1])


def test_too_few_evaluations_are_reported():
    X, y = stream(6, n=60, d=3)
    with warns(ConvergenceWarning, "max_iter 2"):
        solver = FTRL("pauc", shuffle=False, max_iter=2, tol=1e-8).fit(X, y)
    assert solver.gap_ > 0
    with warns(ConvergenceWarning):
        leader = solver.set_params(max_iter=1).leader(X, y)
    assert leader.gap > 1e-3 * regret_bound(solver)


def farthest(one_path, other_path):
    """Return the greatest distance between weights of two paths."""
    return np.linalg.norm(one_path - other_path, axis=1).max()


@each_loss
@pytest.mark.parametrize("eta", [None, 10.0, 1e-3, 1e-4])
def test_the_error_bounds_the_distance_from_the_exact_weights(name, eta):
    """Also with a small eta, which leaves planes that meet in a corner.

    There the dual has few digits of w.
    """
    X, y = stream(7, n=40, d=3)
    exact = FTRL(**LOSSES[name], shuffle=False, eta=eta, tol=1e-6)
    exact_path = path(exact, X, y)
    assert exact.error_ <= 1e-6
    solver = FTRL(**LOSSES[name], shuffle=False, eta=eta, tol=1e-2)
    distance = farthest(path(solver, X, y), exact_path)
    assert distance - 1e-6 <= solver.error_ <= 1e-2
    assert solver.error_ <= np.sqrt(2 * solver.gap_ / solver.eta_)


@each_loss
def test_the_error_holds_where_rounding_leaves_no_more_digits(name):
    X, y = stream(7, n=40, d=3)
    exact_path = path(FTRL(**LOSSES[name], shuffle=False, tol=1e-6), X, y)
    solver = FTRL(**LOSSES[name], shuffle=False, tol=1e-9)
    with warns(ConvergenceWarning):
        distance = farthest(path(solver, X, y), exact_path)
    assert 1e-9 < solver.error_ < 1e-6
    assert distance - 1e-6 <= solver.error_


def go_on(solver):
    """Trace a fit, whose weights may then overflow with a warning, and never end it."""
    return False


@pytest.mark.parametrize("objective", ["prbep", "pauc"])
def test_overflowing_products_are_reported(objective):
    X, y = stream(6)
    with warns(ConvergenceWarning):
        solver = FTRL(objective, eta=1e-300).fit(X * 1e70, y, trace=go_on)
    assert np.isnan(solver.coef_).all()


@pytest.mark.parametrize("objective", ["prbep", "pauc"])
def test_a_leader_of_rows_whose_products_overflow_is_refused(objective):
    X, y = stream(6)
    solver = FTRL(objective).fit(X, y)
    with raises(InputError):
        solver.leader(X * 1e100, y)


@pytest.mark.parametrize("objective", ["prbep", "pauc"])
def test_columns_without_entries_cost_nothing(objective):
    X, y = stream(30)
    empty = [0, 2, 2, X.shape[1]]  # places before which an empty column is put
    wide = np.insert(X, empty, 0.0, axis=1)
    narrow_fit = FTRL(objective, shuffle=False).fit(sparse.csr_matrix(X), y)
    wide_fit = FTRL(objective, shuffle=False).fit(sparse.csr_matrix(wide), y)
    assert len(wide_fit.coef_) == X.shape[1] + 4
    assert_array_equal(wide_fit.coef_, np.insert(narrow_fit.coef_, empty, 0.0))


@pytest.mark.parametrize("objective", ["prbep", "pauc"])
def test_a_leader_needs_a_fit(objective):
    with pytest.raises(NotFittedError):
        FTRL(objective).leader(*stream(6))


@pytest.mark.parametrize("objective", ["prbep", "pauc"])
def test_the_leader_of_rows_of_zeros_is_0(objective):
    X, y = stream(6)
    leader = FTRL(objective).fit(X, y).leader(0 * X, y)
    assert_array_equal(leader.w, 0)
    assert leader.gap == 0


def fit_with_certain_weights(name, eta):
    X, y = stream(6, n=60, d=3)
    solver = FTRL(**LOSSES[name], shuffle=False, eta=eta).fit(X, y)
    assert solver.eta_ == eta
    assert solver.n_iter_ == 60
    assert solver.error_ <= solver.tol
    return solver, X, y


@each_loss
def test_a_tiny_eta_gives_the_leader(name):
    solver, X, y = fit_with_certain_weights(name, eta=1e-9)
    loss = slow_loss(name, X, y, solver.coef_)
    assert loss <= solver.leader(X, y).loss + solver.gap_ + 1e-9


@each_loss
def test_a_huge_eta_gives_nearly_0(name):
    solver, _X, _y = fit_with_certain_weights(name, eta=1e9)
    assert np.linalg.norm(solver.coef_) < 1e-5

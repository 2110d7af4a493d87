"""The cutting plane: optima against a general solver, bounds, and the path."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from precbench.solvers import CuttingPlane
from precbench.solvers.cutting_plane.bundle import Bundle, Point
from precbench.solvers.cutting_plane.estimator import TrainingRisk
from precbench.solvers.cutting_plane.reference import lowest_point, one_slack
from precbench.solvers.ftrl.reference import hinge_planes
from tests.laws import problem, weights
from tests.sentences import warns

RISKS = {
    "prec@k": {"objective": "prec@k", "k": 2},
    "prbep": {"objective": "prec@k", "k": 1.0},
    "at_least_k": {"objective": "prec@k", "k": 2, "at_least_k": True},
    "pauc": {"objective": "pauc", "beta": 0.5},
    "auc": {"objective": "auc"},
    "f1": {"objective": "f1"},
}
each_risk = pytest.mark.parametrize("name", RISKS)


def small_problem(seed, n=7, n_pos=3, d=3):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)), np.where(np.arange(n) < n_pos, 1, -1)
    X[:n_pos] += 0.8
    return X, y


def planes(name, X, y):
    """List offset and slope of every plane below the risk, from the definitions."""
    n, n_pos = len(y), np.count_nonzero(y > 0)
    if name in ("pauc", "auc"):
        m = n - n_pos if name == "auc" else -(-(n - n_pos) // 2)
        for violated, slope in hinge_planes(X, y, m):
            yield 100 * violated / (n_pos * m), 100 * slope / (n_pos * m)
        return
    if name in ("at_least_k", "f1"):
        X = np.column_stack((X, np.ones(n)))
    k = n_pos if name == "prbep" else 2
    for labelling in product((False, True), repeat=n):
        ones = np.array(labelling)
        true, false = (ones & (y > 0)).sum(), (ones & (y < 0)).sum()
        if name == "f1":
            loss = 1 - 2 * true / (n_pos + true + false)
        elif true + false == k or (name == "at_least_k" and true + false > k):
            loss = false / (true + false)
        else:
            continue
        yield 100 * loss, 100 / n * (ones.astype(int) - (y > 0)) @ X


@pytest.mark.promise("R12")
@each_risk
@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_a_general_solver(name, seed):
    X, y = small_problem(
        seed, n=6 if name == "auc" else 7, n_pos=2 if "auc" in name else 3
    )
    C = 10.0 ** (seed % 4 - 3)
    offsets, slopes = map(np.array, zip(*planes(name, X, y), strict=True))

    def value(w):
        return 0.5 * w @ w + C * (offsets + slopes @ w).max()

    solver = CuttingPlane(**RISKS[name], C=C, tol=1e-9).fit(X, y)
    assert solver.converged_
    assert solver.primal_ == pytest.approx(value(solver.best_weights_), rel=1e-9)
    optimum = value(lowest_point(offsets, slopes, C=C))
    assert solver.primal_ == pytest.approx(optimum, rel=1e-5)
    slack = 1e-9 * abs(optimum)
    assert (solver.lower_bound_path_ <= optimum + slack).all()
    assert (solver.best_path_ >= solver.lower_bound_ - slack).all()
    assert solver.primal_path_[-1] == pytest.approx(value(weights(solver)), rel=1e-9)


@pytest.mark.parametrize("objective", ["prec@k", "pauc", "auc", "f1"])
def test_the_optimum_is_that_of_the_paper(objective):
    X, y = problem(60, 3)
    risk = TrainingRisk(X, y.astype(np.int8), objective, k=1.0, beta=0.5)

    def at(w):
        point = risk.at(w)
        return point.risk, risk.subgradient(point)

    def value(w):
        return 0.5 * w @ w + 0.1 * at(w)[0]

    solver = CuttingPlane(objective, k=1.0, beta=0.5, C=0.1, tol=1e-6).fit(X, y)
    w = one_slack(at, risk.n_weights, C=0.1, tol=1e-4)
    assert solver.primal_ == pytest.approx(value(w), rel=1e-4)
    assert_allclose(solver.best_weights_, w, atol=0.02)


@each_risk
def test_the_paths(name):
    X, y = problem()
    solver = CuttingPlane(**RISKS[name], C=10.0, tol=1e-6).fit(X, y)
    paths = solver.primal_path_, solver.best_path_, solver.lower_bound_path_
    assert [len(path) for path in paths] == [solver.n_iter_] * 3
    assert (np.diff(solver.best_path_) <= 0).all()
    assert (np.diff(solver.lower_bound_path_[1:]) >= 0).all()
    assert (solver.best_path_ <= solver.primal_path_).all()
    assert solver.best_path_[-1] == solver.primal_
    assert solver.gap_ == solver.primal_ - solver.lower_bound_


def test_an_intercept_where_the_risk_has_one():
    X, y = problem()
    solver = CuttingPlane(objective="f1").fit(X, y)
    assert_allclose(solver.decision_function(X), X @ solver.coef_ + solver.intercept_)
    assert not hasattr(solver.set_params(objective="prec@k").fit(X, y), "intercept_")
    assert hasattr(solver.set_params(at_least_k=True).fit(X, y), "intercept_")


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_the_master_problem_with_planes_that_nearly_repeat(C):
    rng = np.random.default_rng(0)
    bundle = Bundle(C, 10)
    base = rng.standard_normal(10)
    for _ in range(150):
        w, slope = rng.standard_normal(10), base + 1e-4 * rng.standard_normal(10)
        bundle.add(
            Point(w, np.empty(0), float(abs(rng.standard_normal())), np.empty(0)), slope
        )
    calls = 1
    while not bundle.improve(1e-9):
        calls += 1
    assert calls < 200
    w = bundle.weights()
    heights = bundle._offsets[:150] + bundle._slopes[:150] @ w
    assert 0.5 * w @ w + C * heights.max() - bundle.bound() <= 2e-9 * C + 1e-12 * abs(
        w @ w
    )


@pytest.mark.parametrize("at_least_k", [False, True])
def test_the_best_weights_may_be_kept(at_least_k):
    X, y = problem()
    last, best = (
        CuttingPlane(C=10.0, at_least_k=at_least_k, max_iter=4, keep=keep)
        for keep in ("last", "best")
    )
    with warns(ConvergenceWarning, "max_iter 4"):
        last.fit(X, y)
        best.fit(X, y)
    assert not last.converged_
    assert_array_equal(last.best_weights_, best.best_weights_)  # the path is the same
    assert_array_equal(weights(best), best.best_weights_)
    assert last.primal_path_[-1] > 1.01 * best.primal_ == 1.01 * min(best.best_path_)


def test_the_last_iterate_is_near_the_minimiser():
    X, y = problem()
    rough = CuttingPlane(k=1.0, C=0.1, tol=1e-2).fit(X, y)
    fine = CuttingPlane(k=1.0, C=0.1, tol=1e-10).fit(X, y)
    for w in (rough.coef_, rough.best_weights_):
        assert np.linalg.norm(w - fine.best_weights_) <= 1.01 * np.sqrt(2 * rough.gap_)


@pytest.mark.parametrize("objective", ["pauc", "prec@k"])
def test_a_fit_ends_where_the_digits_do_not_suffice(objective):
    X, y = problem(100, 3)
    with warns(ConvergenceWarning):
        solver = CuttingPlane(objective, k=1.0, at_least_k=True).fit(X * 1e60, y)
    assert np.isfinite(solver.coef_).all() and not solver.converged_


@pytest.mark.parametrize("seed", [38, 68, 102, 200])
@pytest.mark.parametrize("objective", ["prec@k", "auc"])
def test_one_feature_is_fitted_to_the_last_digit(seed, objective):
    rng = np.random.default_rng(seed)  # between these iterates a step has the square 0
    n = int(rng.integers(4, 30))
    X, y = rng.standard_normal((n, 1)), np.where(rng.random(n) < 0.4, 1, -1)
    solver = CuttingPlane(
        objective,
        k=[0.25, 0.5, 1.0][seed % 3],
        C=[1.0, 100.0, 0.01][seed % 3],
        max_iter=300,
    )
    assert abs(solver.fit(X, y).gap_) < 0.1


def test_at_least_k_is_bounded_by_the_positives():
    X, y = problem()
    with warns(ConvergenceWarning):
        most = CuttingPlane(k=399, at_least_k=True).fit(X, y)
    assert_array_equal(most.coef_, CuttingPlane(k=1.0, at_least_k=True).fit(X, y).coef_)

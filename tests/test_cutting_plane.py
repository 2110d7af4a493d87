"""The cutting plane: optima against a general solver, bounds, and the path."""

from functools import partial
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
    """Return rows so few that all planes below a risk can be listed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(np.arange(n) < n_pos, 1, -1)
    X[:n_pos] += 0.8
    return X, y


def planes(name, X, y):
    """Yield offset and slope of every plane below the risk, from the definitions."""
    n = len(y)
    n_pos = np.count_nonzero(y > 0)
    if name == "auc":
        yield from planes_of_pairs(X, y, n_top=n - n_pos)
    elif name == "pauc":
        yield from planes_of_pairs(X, y, n_top=-(-(n - n_pos) // 2))  # rounded up
    elif name == "f1":
        yield from planes_of_labellings(with_constant(X), y, loss_of_f1)
    elif name == "at_least_k":
        yield from planes_of_labellings(
            with_constant(X), y, partial(precision, least=2)
        )
    else:
        k = n_pos if name == "prbep" else 2
        loss = partial(precision, least=k, most=k)
        yield from planes_of_labellings(X, y, loss)


def planes_of_pairs(X, y, n_top):
    n_pairs = np.count_nonzero(y > 0) * n_top
    for violated, slope in hinge_planes(X, y, n_top):
        yield 100 * violated / n_pairs, 100 * slope / n_pairs


def planes_of_labellings(X, y, loss):
    """Yield the planes of the labellings that have a loss."""
    n = len(y)
    for labelling in product((False, True), repeat=n):
        ones = np.array(labelling)
        value = loss(ones, y)
        if value is not None:
            yield 100 * value, 100 / n * (ones.astype(int) - (y > 0)) @ X


def loss_of_f1(ones, y):
    hits = (ones & (y > 0)).sum()
    return 1 - 2 * hits / ((y > 0).sum() + ones.sum())


def precision(ones, y, least, most=np.inf):
    """Return the share of negatives among the ones, None for too few or too many."""
    if not least <= ones.sum() <= most:
        return None
    return (ones & (y < 0)).sum() / ones.sum()


def with_constant(X):
    return np.column_stack((X, np.ones(len(X))))


@pytest.mark.promise("R12")
@each_risk
@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_a_general_solver(name, seed):
    # Pairs have many more planes than labellings.
    n = 6 if name == "auc" else 7
    n_pos = 2 if name in ("auc", "pauc") else 3
    X, y = small_problem(seed, n, n_pos)
    C = 10.0 ** (seed % 4 - 3)
    listed = list(planes(name, X, y))
    offsets = np.array([offset for offset, _slope in listed])
    slopes = np.array([slope for _offset, slope in listed])

    def primal(w):
        return 0.5 * w @ w + C * (offsets + slopes @ w).max()

    solver = CuttingPlane(**RISKS[name], C=C, tol=1e-9).fit(X, y)
    assert solver.converged_
    assert solver.primal_ == pytest.approx(primal(solver.best_weights_), rel=1e-9)
    optimum = primal(lowest_point(offsets, slopes, C=C))
    assert solver.primal_ == pytest.approx(optimum, rel=1e-5)
    slack = 1e-9 * abs(optimum)
    assert (solver.lower_bound_path_ <= optimum + slack).all()
    assert (solver.best_path_ >= solver.lower_bound_ - slack).all()
    assert solver.primal_path_[-1] == pytest.approx(primal(weights(solver)), rel=1e-9)


@pytest.mark.parametrize("objective", ["prec@k", "pauc", "auc", "f1"])
def test_the_optimum_is_that_of_the_paper(objective):
    X, y = problem(60, 3)
    risk = TrainingRisk(X, y.astype(np.int8), objective, k=1.0, beta=0.5)

    def value_and_subgradient(w):
        point = risk.at(w)
        return point.risk, risk.subgradient(point)

    solver = CuttingPlane(objective, k=1.0, beta=0.5, C=0.1, tol=1e-6).fit(X, y)
    w = one_slack(value_and_subgradient, risk.n_weights, C=0.1, tol=1e-4)
    assert solver.primal_ == pytest.approx(risk.at(w).primal(C=0.1), rel=1e-4)
    assert_allclose(solver.best_weights_, w, atol=0.02)


@each_risk
def test_the_paths_are_those_of_the_iterations(name):
    X, y = problem()
    solver = CuttingPlane(**RISKS[name], C=10.0, tol=1e-6).fit(X, y)
    for path in (solver.primal_path_, solver.best_path_, solver.lower_bound_path_):
        assert len(path) == solver.n_iter_
    assert (np.diff(solver.best_path_) <= 0).all()
    assert (np.diff(solver.lower_bound_path_[1:]) >= 0).all()
    assert (solver.best_path_ <= solver.primal_path_).all()
    assert solver.best_path_[-1] == solver.primal_
    assert solver.gap_ == solver.primal_ - solver.lower_bound_


def test_an_intercept_where_the_risk_has_one():
    X, y = problem()
    solver = CuttingPlane(objective="f1").fit(X, y)
    assert_allclose(solver.decision_function(X), X @ solver.coef_ + solver.intercept_)
    solver.set_params(objective="prec@k").fit(X, y)
    assert not hasattr(solver, "intercept_")
    solver.set_params(at_least_k=True).fit(X, y)
    assert hasattr(solver, "intercept_")


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_the_master_problem_with_planes_that_nearly_repeat(C):
    rng = np.random.default_rng(0)
    bundle = Bundle(C, n_weights=10)
    common_slope = rng.standard_normal(10)
    for _ in range(150):
        w = rng.standard_normal(10)
        slope = common_slope + 1e-4 * rng.standard_normal(10)
        risk = float(abs(rng.standard_normal()))
        point = Point(w, scores=np.empty(0), risk=risk, subgradient=np.empty(0))
        bundle.add(point, slope)
    n_calls = 1
    while not bundle.improve(1e-9):
        n_calls += 1
    assert n_calls < 200
    w = bundle.weights()
    heights = bundle._offsets[:150] + bundle._slopes[:150] @ w
    gap = 0.5 * w @ w + C * heights.max() - bundle.bound()
    assert gap <= 2e-9 * C + 1e-12 * abs(w @ w)


@pytest.mark.parametrize("at_least_k", [False, True])
def test_the_best_weights_may_be_kept(at_least_k):
    X, y = problem()
    params = {"C": 10.0, "at_least_k": at_least_k, "max_iter": 4}
    with warns(ConvergenceWarning, "max_iter 4"):
        last = CuttingPlane(**params, keep="last").fit(X, y)
        best = CuttingPlane(**params, keep="best").fit(X, y)
    assert not last.converged_
    assert_array_equal(last.best_weights_, best.best_weights_)  # the path is the same
    assert_array_equal(weights(best), best.best_weights_)
    assert best.primal_ == min(best.best_path_)
    assert last.primal_path_[-1] > 1.01 * best.primal_


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
    assert np.isfinite(solver.coef_).all()
    assert not solver.converged_


@pytest.mark.parametrize(
    ("seed", "k", "C"),
    [(38, 1.0, 0.01), (68, 1.0, 0.01), (102, 0.25, 1.0), (200, 1.0, 0.01)],
)
@pytest.mark.parametrize("objective", ["prec@k", "auc"])
def test_one_feature_is_fitted_to_the_last_digit(seed, k, C, objective):
    """Between iterates of these rows a step has the square 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    X = rng.standard_normal((n, 1))
    y = np.where(rng.random(n) < 0.4, 1, -1)
    solver = CuttingPlane(objective, k=k, C=C, max_iter=300).fit(X, y)
    assert abs(solver.gap_) < 0.1


def test_at_least_k_is_bounded_by_the_positives():
    X, y = problem()
    with warns(ConvergenceWarning):
        of_too_many = CuttingPlane(k=399, at_least_k=True).fit(X, y)
    of_all_positives = CuttingPlane(k=1.0, at_least_k=True).fit(X, y)
    assert_array_equal(of_too_many.coef_, of_all_positives.coef_)

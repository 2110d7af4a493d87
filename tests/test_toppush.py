"""TopPush against a general solver, and its projection against the sorted breakpoints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from precbench.kernels.toppush import project
from precbench.solvers import TopPush


def slow_project(point, labels):
    """Search the pieces between the breakpoints, which are the entries themselves."""

    def total(shift):
        return clipped(shift).sum()

    def clipped(shift):
        moved = point - shift
        return np.where(labels > 0, np.maximum(moved, 0), np.minimum(moved, 0))

    breaks = np.sort(point)
    after = np.searchsorted([-total(b) for b in breaks], 0.0)
    if after == 0:
        return clipped(breaks[0])
    if after == len(breaks):
        return clipped(breaks[-1])
    low, high = breaks[after - 1], breaks[after]
    share = total(low) / (total(low) - total(high)) if total(low) > total(high) else 0.0
    return clipped(low + share * (high - low))


@pytest.mark.promise("R14")
@given(
    st.lists(
        st.tuples(st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0]) | st.floats(-9, 9), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_the_projection_is_that_of_the_breakpoints(entries):
    point = np.array([value for value, _ in entries])
    labels = np.where([positive for _, positive in entries], 1, -1).astype(np.int8)
    if abs(labels.sum()) == len(labels):  # a fit has both classes
        labels = np.append(labels, -labels[:1])
        point = np.append(point, 0.5)
    found = np.empty_like(point)
    project(point, labels, found)
    assert (found * labels >= 0).all() and abs(found.sum()) < 1e-12
    assert_allclose(found, slow_project(point, labels), atol=1e-12)


def risk(w, C, X, y):
    short = np.maximum(0, 1 + (X[y < 0] @ w).max() - X[y > 0] @ w)
    return w @ w / 2 + C * np.mean(short**2)


@pytest.mark.promise("R14")
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("apart", [1.0, 4.0])
def test_it_reaches_the_optimum_of_a_general_solver(C, apart):
    rng = np.random.default_rng(int(apart))
    y = np.repeat([1, -1], [8, 16])
    X = rng.standard_normal((24, 3)) + apart * (y > 0)[:, None]

    def constraints(z):  # w, the highest negative, the losses
        w, top, loss = z[:3], z[3], z[4:]
        return np.concatenate([top - X[y < 0] @ w, loss - (1 + top - X[y > 0] @ w), loss])

    best = minimize(
        lambda z: z[:3] @ z[:3] / 2 + C * np.mean(z[4:] ** 2),
        np.concatenate([np.zeros(4), np.ones(8)]),
        constraints={"type": "ineq", "fun": constraints},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    solver = TopPush(C=C, tol=1e-9, max_iter=100_000).fit(X, y)
    assert solver.converged_ and solver.gap_ <= 1e-6
    assert solver.primal_ == pytest.approx(risk(solver.coef_, C, X, y), rel=1e-9)
    assert solver.lower_bound_ <= best.fun * (1 + 1e-6) and solver.primal_ <= best.fun * (1 + 1e-6)
    assert np.linalg.norm(solver.coef_ - best.x[:3]) <= np.sqrt(2 * solver.gap_) + 1e-3


def test_no_weights_beat_0_where_the_mean_of_the_positives_is_among_the_negatives():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 3)), np.repeat([1, -1], [40, 360])
    X[y > 0] += 0.7
    solver = TopPush(C=10.0, tol=1e-6, max_iter=100_000).fit(X, y)
    assert solver.lower_bound_ == pytest.approx(10.0) and solver.primal_ == pytest.approx(10.0)
    assert TopPush(C=10.0).fit(X, y).decision_function(X)[y > 0].mean() > 0


def test_the_bounds_hold_on_the_way():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 5)), np.repeat([1, -1], [60, 240])
    X[y > 0] += 1.5
    best = TopPush(tol=1e-9, max_iter=100_000).fit(X, y).primal_
    seen = []
    TopPush(tol=1e-9).fit(X, y, trace=lambda s: seen.append((s.lower_bound_, s.primal_)))
    low, high = np.array(seen).T
    assert (low <= best + 1e-9).all() and (high >= best - 1e-9).all()
    assert (np.diff(low) >= 0).all() and len(seen) > 20

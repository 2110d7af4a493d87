"""TopPush against a general solver, and its projections against what defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from precbench.errors import InputError
from precbench.kernels.toppush import project, project_capped
from precbench.solvers import TopPush
from tests.sentences import raises

ENTRIES = st.lists(
    st.tuples(st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0]) | st.floats(-9, 9), st.booleans()),
    min_size=1,
    max_size=12,
)


def point_of(entries):
    """Return entries with their labels, of both classes as in a fit."""
    point = np.array([value for value, _ in entries])
    labels = np.where([positive for _, positive in entries], 1, -1).astype(np.int8)
    if abs(labels.sum()) == len(labels):
        labels = np.append(labels, -labels[:1])
        point = np.append(point, 0.5)
    return point, labels


def capped(point, labels, k):
    found = np.empty_like(point)
    falling = np.append(-np.sort(point[labels < 0]), -np.inf)
    project_capped(point, labels, k, falling[k - 1], falling[k], found)
    return found


@pytest.mark.promise("R12")
@given(ENTRIES, st.integers(1, 12))
def test_the_projection_meets_moreaus_conditions(entries, k):
    """Onto the cone that one positive with 1 / k of each of k negatives generate."""
    point, labels = point_of(entries)
    positive = labels > 0
    k = min(k, int(np.sum(~positive)))
    found = capped(point, labels, k)
    assert (found * labels >= 0).all() and abs(found.sum()) < 1e-12
    assert (-found[~positive] <= found[positive].sum() / k + 1e-12).all()
    rest = point - found
    assert rest[positive].max() + np.sort(-rest[~positive])[-k:].mean() < 1e-12
    assert abs(found @ rest) < 1e-11
    if k == 1:
        simple = np.empty_like(point)
        project(point, labels, simple)
        assert_allclose(simple, found, atol=1e-12)


def risk(w, C, k, X, y):
    top = np.sort(X[y < 0] @ w)[-k:].mean()
    return w @ w / 2 + C * np.mean(np.maximum(0, 1 + top - X[y > 0] @ w) ** 2)


@pytest.mark.promise("R12")
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("apart", "k"), [(1.0, 1), (4.0, 1), (1.0, 5), (4.0, 2), (1.0, 16)])
def test_it_reaches_the_optimum_of_a_general_solver(C, apart, k):
    rng = np.random.default_rng(int(apart))
    y = np.repeat([1, -1], [8, 16])
    X = rng.standard_normal((24, 3)) + apart * (y > 0)[:, None]

    def constraints(z):  # w, the k-th highest negative, the losses, what is above it
        w, kth, loss, above = z[:3], z[3], z[4:12], z[12:]
        missing = 1 + kth + above.sum() / k - X[y > 0] @ w
        return np.concatenate([above - (X[y < 0] @ w - kth), loss - missing, loss, above])

    best = minimize(
        lambda z: z[:3] @ z[:3] / 2 + C * np.mean(z[4:12] ** 2),
        np.concatenate([np.zeros(4), np.ones(8), np.zeros(16)]),
        constraints={"type": "ineq", "fun": constraints},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    solver = TopPush(top_negatives=k, C=C, tol=1e-9, max_iter=100_000).fit(X, y)
    assert solver.converged_ and solver.gap_ <= 1e-6
    assert solver.primal_ == pytest.approx(risk(solver.coef_, C, k, X, y), rel=1e-9)
    assert solver.lower_bound_ <= best.fun * (1 + 1e-6) and solver.primal_ <= best.fun * (1 + 1e-6)
    assert np.linalg.norm(solver.coef_ - best.x[:3]) <= np.sqrt(2 * solver.gap_) + 1e-3


def overlapping():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 3)), np.repeat([1, -1], [40, 360])
    X[y > 0] += 0.7
    return X, y


def test_no_weights_beat_0_where_the_mean_of_the_positives_is_among_the_negatives():
    X, y = overlapping()
    solver = TopPush(C=10.0, tol=1e-6, max_iter=100_000).fit(X, y)
    assert solver.lower_bound_ == pytest.approx(10.0) and solver.primal_ == pytest.approx(10.0)
    assert (X @ TopPush(C=10.0).fit(X, y).coef_)[y > 0].mean() > 0
    half = TopPush(top_negatives=0.5, C=10.0).fit(X, y)
    assert half.primal_ < 9 and (X @ half.coef_)[y > 0].mean() > 0


def test_a_share_of_the_negatives_is_a_count_rounded_up():
    X, y = overlapping()
    share, count = (TopPush(top_negatives=k).fit(X, y).coef_ for k in (0.099, 36))
    np.testing.assert_array_equal(share, count)
    with raises(InputError, "top_negatives 361 360"):
        TopPush(top_negatives=361).fit(X, y)


@pytest.mark.parametrize("k", [1, 12])
def test_the_bounds_hold_on_the_way(k):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 5)), np.repeat([1, -1], [60, 240])
    X[y > 0] += 1.5
    best = TopPush(top_negatives=k, tol=1e-9, max_iter=100_000).fit(X, y).primal_
    seen = []
    solver = TopPush(top_negatives=k, tol=1e-9)
    solver.fit(X, y, trace=lambda s: seen.append((s.lower_bound_, s.primal_)))
    low, high = np.array(seen).T
    assert (low <= best + 1e-9).all() and (high >= best - 1e-9).all()
    assert (np.diff(low) >= 0).all() and len(seen) > 20

"""The P-Norm Push and its kin.

Definitions, kernels, solvers and the theorems of rudin2009.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from precbench.core.errors import InputError
from precbench.papers.rudin2009.lists import ir_shares, pnorm_shares
from precbench.ranking.metrics import r_max
from precbench.solvers import IRPush, PNormPush, RankBoost, TopPush
from precbench.solvers.push.estimator import _separating_step
from precbench.solvers.push.reference import ir_push, pnorm_push, pnorm_push_path
from precbench.solvers.push.risks import (
    ExponentialRisk,
    InformationRetrievalRisk,
    Term,
)
from precbench.solvers.toppush import reference as toppush
from precbench.solvers.toppush.kernel import project, project_capped
from tests.sentences import raises, warns

LOSSES = ("exponential", "logistic")
PUSHES = ("top", "bottom", "both")
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_push = pytest.mark.parametrize("push", PUSHES)
each_method = pytest.mark.parametrize("method", ["coordinate", "newton"])


def problem(n=120, d=5, seed=0, noise=0.4):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    noisy = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    return X, np.where(noisy > np.quantile(noisy, 0.6), 1, -1)


def complete(y):
    """Return the relation of every positive above every negative."""
    return sparse.csr_array(((y > 0)[:, None] & (y < 0)).astype(float))


def risk_of(X, y, **params):
    return PNormPush(**params)._risk(X, np.asarray(y, dtype=np.int8))


def differences(function, at, step=1e-6):
    """Return derivatives of a function at a point, by central differences."""
    rows = []
    for shift in step * np.eye(len(at)):
        rows.append((function(at + shift) - function(at - shift)) / (2 * step))
    return np.array(rows)


def test_shares_of_pairs_do_not_overflow():
    y = np.repeat([1, -1], 5)
    scores = np.linspace(-300, 300, 10)
    with np.errstate(all="raise", under="ignore"):
        shares = pnorm_shares(y, scores, 1000)
    assert shares.sum() == pytest.approx(1)
    assert shares[-1, 0] == pytest.approx(shares.max())
    assert ir_shares(y, scores).sum() == pytest.approx(1)


# --- kernels ---


@each_loss
@each_push
@pytest.mark.parametrize(("p", "scale"), [(1, 3), (4, 0.1), (64, 1000), (1000, 3)])
def test_kernels_follow_the_definition_over_all_pairs(loss, push, p, scale):
    X, y = problem()
    w = scale * np.random.default_rng(1).normal(size=5)
    point = risk_of(X, y, p=p, loss=loss, push=push, bottom_weight=0.3).at(w)
    log_risk, by_scores = pnorm_push(
        y, X @ w, p, loss=loss, push=push, bottom_weight=0.3
    )
    assert point.log_risk == pytest.approx(log_risk, rel=1e-12)
    value = log_risk / p
    gradient = X.T @ by_scores / p
    if loss == "logistic":  # from log(R) / p to R^(1/p), by the chain rule
        value = np.exp(value)
        gradient = value * gradient
    assert point.value == pytest.approx(value, rel=1e-10)
    atol = 1e-11 * abs(gradient).max()
    assert_allclose(point.gradient, gradient, rtol=1e-9, atol=atol)


def assert_derivatives(risk, w):
    """Compare gradient and Hessian of a risk with differences of its values."""
    slopes = differences(lambda v: risk.at(v).value, w)
    assert_allclose(risk.at(w).gradient, slopes, rtol=1e-6, atol=1e-8)
    curvatures = differences(lambda v: risk.at(v).gradient, w)
    assert_allclose(risk.hessian(w), curvatures, rtol=1e-6, atol=1e-7)


def thinned(X):
    """Return sparse rows with a tenth of the values."""
    return sparse.csr_matrix(np.where(X < 0.9, 0, X))


each_container = pytest.mark.parametrize("container", [np.asarray, thinned])


@each_loss
@each_push
@each_container
def test_derivatives_of_the_pushes(loss, push, container):
    X, y = problem(60, 4)
    risk = risk_of(container(X), y, p=5.0, loss=loss, push=push, bottom_weight=50.0)
    assert_derivatives(risk, np.random.default_rng(1).normal(size=4))


@each_container
def test_derivatives_of_the_ir_push(container):
    X, y = problem(60, 4)
    risk = InformationRetrievalRisk(container(X), y.astype(np.int8))
    assert_derivatives(risk, np.random.default_rng(1).normal(size=4))


@each_loss
def test_a_kernel_may_stop_between_any_two_rows(monkeypatch, loss):
    X, y = problem(700)
    w = np.random.default_rng(1).normal(size=5)
    column = X[:, 1].copy()
    risk = risk_of(X, y, loss=loss)
    whole = risk.at(w)
    whole_step = risk.step_along(whole, column)
    monkeypatch.setattr("precbench.solvers.push.risks._EVALUATED", 13)
    monkeypatch.setattr("precbench.solvers.common.rows.Rows.per_slice", lambda self: 52)
    risk = risk_of(X, y, loss=loss)
    in_pieces = risk.at(w)
    step = risk.step_along(in_pieces, column)
    assert in_pieces.value == pytest.approx(whole.value, rel=1e-13)
    assert_allclose(in_pieces.gradient, whole.gradient, rtol=1e-11, atol=1e-13)
    assert step == pytest.approx(whole_step, rel=1e-12)


# --- the algorithm of Fig. 2 ---


def unit_interval(X):
    return X


def both_signs(X):
    return np.random.default_rng(2).normal(size=X.shape) + X


def few_values(X):
    return np.where(X > 0.6, np.round(X, 1), 0)


@pytest.mark.parametrize(
    ("p", "values", "container"),
    [
        (1, few_values, sparse.csr_array),
        (4, both_signs, np.asarray),
        (16, unit_interval, np.asarray),
        (64, few_values, sparse.csr_array),
    ],
)
def test_the_algorithm_step_by_step(p, values, container):
    X, y = problem(150, 6)
    X = values(X)
    weights = []
    solver = PNormPush(p, max_iter=40)
    solver.fit(container(X), y, trace=lambda s: weights.append(s.coef_.copy()))
    assert solver.n_iter_ == 40
    assert solver.n_rows_seen_ == 40 * 150
    assert not solver.converged_
    moves = np.diff(weights, axis=0)
    path = pnorm_push_path(X, y, p, 40)
    for move, (j, step) in zip(moves, path, strict=True):
        assert_array_equal(np.flatnonzero(move), [j])
        assert move[j] == pytest.approx(step, rel=1e-9, abs=1e-9)


def test_the_first_of_equal_features_is_chosen():
    X, y = problem(d=2)
    assert_array_equal(PNormPush(max_iter=7).fit(X[:, [0, 0]], y).coef_[1], 0)


def test_a_constant_feature_is_never_used():
    X, y = problem()
    X = np.column_stack([np.full(len(y), 1e9 + 0.1), X])
    solver = PNormPush(max_iter=500).fit(X, y)
    assert solver.coef_[0] == 0
    assert not solver.unbounded_


def test_rankboost_is_the_push_with_p_1():
    X, y = problem()
    assert_array_equal(RankBoost().fit(X, y).coef_, PNormPush(1).fit(X, y).coef_)


# --- the optimum ---


@pytest.mark.promise("R12")
@each_loss
@each_push
@pytest.mark.parametrize("p", [1, 64, 1000])
def test_newton_reaches_the_optimum(loss, push, p):
    X, y = problem(60, 3, noise=1.0)
    params = {"loss": loss, "push": push, "bottom_weight": 0.7}
    solver = PNormPush(p, method="newton", **params).fit(X, y)
    least, w = least_by_bfgs(
        X, lambda scores: pnorm_push(y, scores, p, **params), factor=1 / p
    )
    assert solver.converged_
    assert solver.gradient_norm_ <= 1e-8
    assert solver.log_risk_ / p == pytest.approx(least, abs=1e-9)
    assert_allclose(solver.coef_, w, atol=2e-4 * max(1e-3, abs(w).max()))


@pytest.mark.promise("R12")
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_ir_push_reaches_the_optimum(scale):
    X, y = problem(80, 3, noise=1.0)
    solver = IRPush().fit(scale * X, y)
    least, w = least_by_bfgs(scale * X, lambda scores: ir_push(y, scores), gtol=1e-7)
    assert solver.converged_
    assert solver.gradient_norm_ <= 1e-8
    assert np.exp(solver.log_risk_) == pytest.approx(least, rel=1e-10)
    assert_allclose(solver.coef_, w, rtol=1e-4, atol=1e-6)


def least_by_bfgs(X, risk, factor=1.0, gtol=1e-9):
    """Minimise a factor times a risk that has its gradient in the scores.

    Return the least value and its w.
    """

    def objective(w):
        value, by_scores = risk(X @ w)
        return factor * value, factor * X.T @ by_scores

    start = np.zeros(X.shape[1])
    optimum = minimize(
        objective, start, jac=True, method="BFGS", options={"gtol": gtol}
    )
    return optimum.fun, optimum.x


def test_unreached_tolerance_is_reported():
    X, y = problem()
    with warns(ConvergenceWarning):
        solver = PNormPush(method="newton", max_iter=1).fit(X, y)
    assert not solver.converged_
    assert not solver.unbounded_


# --- no minimiser ---


def rotated(X, rng):
    """Return rows of which no single feature is one of X."""
    rotation, _triangle = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    return X @ rotation


@pytest.mark.parametrize(
    "solver", [PNormPush(), PNormPush(method="newton"), IRPush(), RankBoost()], ids=repr
)
@pytest.mark.parametrize("is_by_one_feature", [True, False])
def test_separable_rows_have_no_minimiser(solver, is_by_one_feature):
    X, y = problem()
    X[:, 2] += 2.0 * (y > 0)
    if not is_by_one_feature:
        X = rotated(X, np.random.default_rng(0))
    with warns(ConvergenceWarning):
        solver.fit(X, y)
    assert solver.unbounded_
    assert not solver.converged_
    assert np.isfinite(solver.coef_).all()
    assert r_max(y, solver.decision_function(X)) == 0


@each_loss
def test_a_separating_feature_gets_a_margin_of_1(loss):
    X, y = problem()
    X[:, 2] = np.where(y > 0, 0.9, 0.4)
    with warns(ConvergenceWarning):
        solver = PNormPush(loss=loss).fit(X, y)
    scores = X @ solver.coef_
    margin = scores[y > 0].min() - scores[y < 0].max()
    assert solver.unbounded_
    assert margin == pytest.approx(1)
    assert solver.n_iter_ < 100


@each_loss
def test_a_feature_of_some_positives_only_is_taken_beside_others(loss):
    """No pair is ranked wrongly by it, and most are ties."""
    X, y = problem()
    X = np.column_stack([X, (y > 0) & (np.arange(len(y)) % 4 == 0)])
    with warns(ConvergenceWarning):
        by_newton = PNormPush(loss=loss, method="newton").fit(X, y)
        by_coordinates = PNormPush(loss=loss, max_iter=60).fit(X, y)
    assert by_newton.unbounded_
    assert by_coordinates.n_iter_ == 60
    assert by_coordinates.coef_[5] > 0
    assert np.count_nonzero(by_coordinates.coef_) > 2


@pytest.mark.parametrize(
    "solver",
    [IRPush(), RankBoost(method="newton"), PNormPush(method="newton")],
    ids=repr,
)
@pytest.mark.parametrize("is_separable", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_whether_a_minimiser_exists_is_what_a_linear_programme_says(
    seed, is_separable, solver
):
    """Some positives and negatives are alike but for one feature.

    So the rows are separable in part only.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (40, 6)).astype(float)
    y = np.repeat([1, -1], 20)
    X[:20, 5] = np.where(rng.random(20) < 0.3, 1.0, 0.0)
    X[20:, 5] = 0.0 if is_separable else X[rng.permutation(20), 5]
    X = rotated(X, rng)
    pairs = (X[y > 0, None] - X[None, y < 0]).reshape(-1, 6)
    # The w in [-1, 1] that ranks no pair wrongly, and the pairs as rightly as possible.
    best = linprog(
        -pairs.sum(axis=0), A_ub=-pairs, b_ub=np.zeros(len(pairs)), bounds=(-1, 1)
    )
    has_no_minimiser = best.fun < -1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert solver.fit(X, y).unbounded_ == has_no_minimiser
        assert solver.fit(sparse.csr_matrix(X), y).unbounded_ == has_no_minimiser


# --- crucial pairs ---


@each_loss
@each_push
@each_method
def test_all_pairs_of_two_classes_are_a_fit(loss, push, method):
    X, y = problem(80)
    solver = PNormPush(
        3, loss=loss, push=push, method=method, bottom_weight=0.3, max_iter=10
    )
    by_labels = solver.fit(X, y).coef_
    for relation in (complete(y), complete(y).toarray(), 5 * complete(y).tocoo()):
        by_pairs = solver.fit_pairs(X, relation).coef_
        assert_allclose(by_pairs, by_labels, atol=1e-9)
    of_sparse_rows = solver.fit_pairs(sparse.csr_array(X), complete(y)).coef_
    assert_allclose(of_sparse_rows, by_labels, atol=1e-9)


@each_loss
@each_push
@each_method
def test_crucial_pairs_follow_the_definition(loss, push, method):
    rng = np.random.default_rng(6)
    X = rng.random((40, 3))
    truth = X @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=40)
    crucial = (truth[:, None] > truth) & (rng.random((40, 40)) < 0.3)
    options = {"loss": loss, "push": push, "bottom_weight": 0.3, "method": method}
    solver = PNormPush(3, **options, max_iter=2000, tol=1e-7).fit_pairs(X, crucial)
    assert solver.converged_

    def log_risk(w):
        z = X @ w - (X @ w)[:, None]
        losses = np.exp(z) if loss == "exponential" else np.log1p(np.exp(z))
        losses = np.where(crucial, losses, 0)
        top = (losses.sum(axis=0) ** 3).sum()
        bottom = (losses.sum(axis=1) ** 3).sum()
        return np.log({"top": top, "bottom": bottom, "both": top + 0.3 * bottom}[push])

    assert solver.log_risk_ == pytest.approx(log_risk(solver.coef_), rel=1e-12)
    assert_allclose(differences(log_risk, solver.coef_), 0, atol=1e-6)


@pytest.mark.parametrize("form", ["csc", "coo"])
def test_pairs_are_not_modified(form):
    """A zero is stored, and places come twice."""
    X, y = problem(30)
    i, k = complete(y).nonzero()
    values = np.append(np.ones(len(i)), [0.0, 1.0])
    places = np.append(i, i[:2]), np.append(k, k[:2])
    relation = sparse.coo_array((values, places), shape=(30, 30)).asformat(form)
    copy = relation.copy()
    RankBoost(max_iter=3).fit_pairs(X, relation)
    assert relation.nnz == copy.nnz
    assert_array_equal(relation.data, copy.data)


@each_method
def test_consistent_pairs_have_no_minimiser(method):
    """The order of the rows is that of a feature, each 30 places before another."""
    X, _y = problem()
    order = np.argsort(X[:, 0])
    upper, lower = order[30:], order[:-30]
    relation = np.zeros((len(X), len(X)))
    relation[upper, lower] = 1
    with warns(ConvergenceWarning):
        solver = RankBoost(method=method).fit_pairs(X, relation)
    assert solver.unbounded_
    scores = solver.decision_function(X)
    assert (scores[upper] > scores[lower]).all()


ANTIDIAGONAL = np.eye(4)[::-1]


@pytest.mark.parametrize(
    ("relation", "places"),
    [
        pytest.param(np.ones((4, 3)), "", id="too few columns"),
        pytest.param(np.ones((5, 5)), "4", id="too many rows"),
        pytest.param(np.zeros((4, 4)), "", id="no pair"),
        pytest.param(-ANTIDIAGONAL, "", id="below 0"),
        pytest.param(np.where(ANTIDIAGONAL, np.nan, 0), "", id="NaN"),
        pytest.param(np.eye(4), "0", id="rows above themselves"),
    ],
)
def test_invalid_pairs_are_reported(relation, places):
    X = np.random.default_rng(0).random((4, 2))
    with raises(InputError, places):
        PNormPush().fit_pairs(X, relation)


# --- large p ---


@each_loss
@each_push
@each_method
@pytest.mark.parametrize("p", [64, 1000])
def test_large_p_does_not_overflow(loss, push, method, p):
    X, y = problem(200)
    X = 50 * X
    max_iter = {"coordinate": 10, "newton": 100}[method]
    solver = PNormPush(p, loss=loss, push=push, method=method, max_iter=max_iter)
    solver.fit(X, y)
    log_risk, _by_scores = pnorm_push(y, X @ solver.coef_, p, loss=loss, push=push)
    assert np.isfinite(log_risk)
    assert solver.log_risk_ == pytest.approx(log_risk, rel=1e-12)
    if method == "newton":
        assert solver.converged_


# --- TopPush against a general solver, its projections against definitions ---


SCORE = st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0]) | st.floats(-9, 9)
ENTRIES = st.lists(st.tuples(SCORE, st.booleans()), min_size=1, max_size=12)


def point_of(entries):
    """Return a point and labels of two classes."""
    point = np.array([value for value, _is_positive in entries])
    positive = np.array([is_positive for _value, is_positive in entries])
    labels = np.where(positive, 1, -1).astype(np.int8)
    if positive.all() or not positive.any():  # add a row of the other class
        labels = np.append(labels, -labels[:1])
        point = np.append(point, 0.5)
    return point, labels


def projected_for_the_highest(point, labels):
    c = np.empty_like(point)
    project(point, labels, c)
    return c


def projected_for_the_k_highest(point, labels, k):
    c = np.empty_like(point)
    descending = np.append(-np.sort(point[labels < 0]), -np.inf)
    project_capped(point, labels, k, descending[k - 1], descending[k], c)
    return c


@pytest.mark.promise("R12")
@given(ENTRIES, st.integers(1, 12))
def test_the_projection_meets_moreaus_conditions(entries, k):
    """Onto the cone that one positive with 1 / k of each of k negatives generate."""
    point, labels = point_of(entries)
    positive = labels > 0
    k = min(k, int(np.sum(~positive)))
    c = projected_for_the_k_highest(point, labels, k)
    # c is in the cone,
    assert (c * labels >= 0).all()
    assert abs(c.sum()) < 1e-12
    assert (-c[~positive] <= c[positive].sum() / k + 1e-12).all()
    # the rest in its polar cone, and the two are at a right angle.
    rest = point - c
    k_highest_of_rest = np.sort(-rest[~positive])[-k:]
    assert rest[positive].max() + k_highest_of_rest.mean() < 1e-12
    assert abs(c @ rest) < 1e-11


@given(ENTRIES)
def test_the_projection_for_the_highest_is_that_for_the_k_highest_with_k_1(entries):
    point, labels = point_of(entries)
    for_the_highest = projected_for_the_highest(point, labels)
    capped = projected_for_the_k_highest(point, labels, k=1)
    assert_allclose(for_the_highest, capped, atol=1e-12)


@given(ENTRIES, st.integers(1, 12))
def test_the_projection_is_that_of_the_reference(entries, k):
    point, labels = point_of(entries)
    n_neg = int(np.sum(labels < 0))
    k = max(1, min(k, n_neg - 1))
    c = projected_for_the_k_highest(point, labels, k)
    expected = toppush.projected(point, labels, k)
    assert_allclose(c, expected, atol=1e-7 * (1 + abs(point).max()))


@pytest.mark.parametrize("k", [1, 4])
def test_toppush_comes_to_the_w_of_the_reference(k):
    X = np.random.default_rng(3).standard_normal((40, 3))
    y = np.repeat([1, -1], [15, 25])
    X[y > 0] += 1.5
    solver = TopPush(top_negatives=k, C=2.0, tol=1e-10, max_iter=100_000).fit(X, y)
    w = toppush.toppush(X, y, C=2.0, n_top=k, n_steps=2000)
    assert solver.primal_ == pytest.approx(toppush.primal(w, X, y, 2.0, k), rel=1e-6)
    assert_allclose(solver.coef_, w, atol=1e-3)


@pytest.mark.promise("R12")
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    ("apart", "k"), [(1.0, 1), (4.0, 1), (1.0, 5), (4.0, 2), (1.0, 16)]
)
def test_toppush_reaches_the_optimum_of_a_general_solver(C, apart, k):
    rng = np.random.default_rng(int(apart))
    y = np.repeat([1, -1], [8, 16])
    X = rng.standard_normal((24, 3)) + apart * (y > 0)[:, None]

    def constraints(z):
        w = z[:3]
        kth = z[3]  # the k-th highest score of a negative
        loss = z[4:12]  # of each positive
        above = z[12:]  # how far each negative is above the k-th highest
        missing = 1 + kth + above.sum() / k - X[y > 0] @ w
        return np.concatenate(
            [above - (X[y < 0] @ w - kth), loss - missing, loss, above]
        )

    best = minimize(
        lambda z: z[:3] @ z[:3] / 2 + C * np.mean(z[4:12] ** 2),
        np.concatenate([np.zeros(4), np.ones(8), np.zeros(16)]),
        constraints={"type": "ineq", "fun": constraints},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    solver = TopPush(top_negatives=k, C=C, tol=1e-9, max_iter=100_000).fit(X, y)
    assert solver.converged_
    assert solver.gap_ <= 1e-6
    primal = toppush.primal(solver.coef_, X, y, C, k)
    assert solver.primal_ == pytest.approx(primal, rel=1e-9)
    least = best.fun * (1 + 1e-6)
    assert solver.lower_bound_ <= least
    assert solver.primal_ <= least
    distance = np.linalg.norm(solver.coef_ - best.x[:3])
    assert distance <= np.sqrt(2 * solver.gap_) + 1e-3


@pytest.fixture
def overlapping():
    """Return 40 positives, whose mean is among the 360 negatives."""
    X = np.random.default_rng(0).standard_normal((400, 3))
    y = np.repeat([1, -1], [40, 360])
    X[y > 0] += 0.7
    return X, y


def test_no_weights_beat_0_where_the_mean_of_the_positives_is_among_the_negatives(
    overlapping,
):
    X, y = overlapping
    solver = TopPush(C=10.0, tol=1e-6, max_iter=100_000).fit(X, y)
    assert solver.lower_bound_ == pytest.approx(10.0)
    assert solver.primal_ == pytest.approx(10.0)


def test_an_iterate_ranks_even_where_no_weights_beat_0(overlapping):
    X, y = overlapping
    iterate = TopPush(C=10.0).fit(X, y)
    assert (X @ iterate.coef_)[y > 0].mean() > 0


def test_weights_beat_0_where_the_positives_are_not_at_the_mean_of_half_the_negatives(
    overlapping,
):
    X, y = overlapping
    solver = TopPush(top_negatives=0.5, C=10.0).fit(X, y)
    assert solver.primal_ < 9
    assert (X @ solver.coef_)[y > 0].mean() > 0


def test_a_share_of_the_negatives_is_a_count_rounded_up(overlapping):
    X, y = overlapping
    by_share = TopPush(top_negatives=0.099).fit(X, y)  # of 360: 35.64
    by_count = TopPush(top_negatives=36).fit(X, y)
    assert_array_equal(by_share.coef_, by_count.coef_)


def test_a_count_of_more_negatives_than_there_are_is_refused(overlapping):
    with raises(InputError, "top_negatives 361 360"):
        TopPush(top_negatives=361).fit(*overlapping)


@pytest.mark.parametrize("k", [1, 12])
def test_the_bounds_hold_on_the_way(k):
    X = np.random.default_rng(1).standard_normal((300, 5))
    y = np.repeat([1, -1], [60, 240])
    X[y > 0] += 1.5
    least = TopPush(top_negatives=k, tol=1e-9, max_iter=100_000).fit(X, y).primal_
    lower_bounds = []
    primals = []

    def note(solver):
        lower_bounds.append(solver.lower_bound_)
        primals.append(solver.primal_)

    TopPush(top_negatives=k, tol=1e-9).fit(X, y, trace=note)
    assert len(primals) > 20
    assert max(lower_bounds) <= least + 1e-9
    assert min(primals) >= least - 1e-9
    assert (np.diff(lower_bounds) >= 0).all()


@pytest.mark.parametrize(
    "margin",
    [
        pytest.param(-2.0, id="ranked wrongly"),
        pytest.param(0.5, id="ranked rightly"),
        pytest.param(3.0, id="right by far, and not moved back"),
    ],
)
def test_a_separating_step_leaves_every_pair_a_margin_of_1(margin):
    X = np.array([[margin, 1.0], [margin, 0.0], [0.0, 0.0], [0.0, -0.5]])
    labels = np.array([1, 1, -1, -1], dtype=np.int8)
    risk = ExponentialRisk(X, labels, 1.0, [Term(1.0, 1.0, 0.0)])
    point = risk.at(np.array([1.0, 0.0]))
    step = _separating_step(risk, point, X[:, 1])
    assert step > 0
    gaps = (X[:2, None] - X[None, 2:]) @ [1.0, step]
    differs = X[:2, None, 1] != X[None, 2:, 1]
    assert gaps[differs].min() >= 1

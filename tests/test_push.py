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
    return sparse.csr_array(((y > 0)[:, None] & (y < 0)).astype(float))


def risk_of(X, y, **params):
    return PNormPush(**params)._risk(X, np.asarray(y, dtype=np.int8))


def differences(function, at, step=1e-6):
    shifts = step * np.eye(len(at))
    return np.array(
        [(function(at + h) - function(at - h)) / (2 * step) for h in shifts]
    )


def test_shares_of_pairs_do_not_overflow():
    y, scores = np.repeat([1, -1], 5), np.linspace(-300, 300, 10)
    with np.errstate(all="raise", under="ignore"):
        shares = pnorm_shares(y, scores, 1000)
    assert shares.sum() == pytest.approx(1) and shares[-1, 0] == pytest.approx(
        shares.max()
    )
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
    gradient = X.T @ by_scores / p
    value = log_risk / p
    if loss == "logistic":
        value, gradient = np.exp(value), np.exp(value) * gradient
    assert point.value == pytest.approx(value, rel=1e-10)
    assert_allclose(
        point.gradient, gradient, rtol=1e-9, atol=1e-11 * abs(gradient).max()
    )


@pytest.mark.parametrize("loss", [*LOSSES, "ir"])
@each_push
@pytest.mark.parametrize("thin", [False, True])
def test_derivatives(loss, push, thin):
    X, y = problem(60, 4)
    rows = sparse.csr_matrix(np.where(X < 0.9, 0, X)) if thin else X
    w = np.random.default_rng(1).normal(size=4)
    if loss == "ir":
        risk = InformationRetrievalRisk(rows, y.astype(np.int8))
    else:
        risk = risk_of(rows, y, p=5.0, loss=loss, push=push, bottom_weight=50.0)
    slopes = differences(lambda v: risk.at(v).value, w)
    assert_allclose(risk.at(w).gradient, slopes, rtol=1e-6, atol=1e-8)
    curvatures = differences(lambda v: risk.at(v).gradient, w)
    assert_allclose(risk.hessian(w), curvatures, rtol=1e-6, atol=1e-7)


def test_a_kernel_may_stop_between_any_two_rows(monkeypatch):
    X, y = problem(700)
    w = np.random.default_rng(1).normal(size=5)
    for params in ({"loss": "exponential"}, {"loss": "logistic"}):
        whole = risk_of(X, y, **params).at(w)
        with monkeypatch.context() as patch:
            patch.setattr("precbench.solvers.push.risks._EVALUATED", 13)
            patch.setattr(
                "precbench.solvers.common.rows.Rows.per_slice", lambda self: 52
            )
            pieces = risk_of(X, y, **params).at(w)
            column = X[:, 1].copy()
            step = risk_of(X, y, **params).step_along(pieces, column)
        assert pieces.value == pytest.approx(whole.value, rel=1e-13)
        assert_allclose(pieces.gradient, whole.gradient, rtol=1e-11, atol=1e-13)
        assert step == pytest.approx(
            risk_of(X, y, **params).step_along(whole, column), rel=1e-12
        )


# --- the algorithm of Fig. 2 ---


@pytest.mark.parametrize(
    ("p", "kind"), [(1, "sparse"), (4, "random"), (16, "unit interval"), (64, "sparse")]
)
def test_the_algorithm_step_by_step(p, kind):
    X, y = problem(150, 6)
    if kind == "random":
        X = np.random.default_rng(2).normal(size=X.shape) + X
    if kind == "sparse":
        X = np.where(X > 0.6, np.round(X, 1), 0)
    visited = []
    rows = sparse.csr_array(X) if kind == "sparse" else X
    solver = PNormPush(p, max_iter=40)
    solver.fit(rows, y, trace=lambda solver: visited.append(solver.coef_.copy()))
    assert (solver.n_iter_, solver.n_rows_seen_, solver.converged_) == (
        40,
        40 * 150,
        False,
    )
    moves = np.diff(visited, axis=0)
    for move, (j, step) in zip(moves, pnorm_push_path(X, y, p, 40), strict=True):
        assert_array_equal(np.flatnonzero(move), [j])
        assert move[j] == pytest.approx(step, rel=1e-9, abs=1e-9)


def test_the_first_of_equal_features_is_chosen():
    X, y = problem(d=2)
    assert_array_equal(PNormPush(max_iter=7).fit(X[:, [0, 0]], y).coef_[1], 0)


def test_a_constant_feature_is_never_used():
    X, y = problem()
    X = np.column_stack([np.full(len(y), 1e9 + 0.1), X])
    solver = PNormPush(max_iter=500).fit(X, y)
    assert solver.coef_[0] == 0 and not solver.unbounded_


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
        X, lambda scores: pnorm_push(y, scores, p, **params), 1 / p
    )
    assert solver.converged_ and solver.gradient_norm_ <= 1e-8
    assert solver.log_risk_ / p == pytest.approx(least, abs=1e-9)
    assert_allclose(solver.coef_, w, atol=2e-4 * max(1e-3, abs(w).max()))


@pytest.mark.promise("R12")
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_ir_push_reaches_the_optimum(scale):
    X, y = problem(80, 3, noise=1.0)
    solver = IRPush().fit(scale * X, y)
    least, w = least_by_bfgs(scale * X, lambda scores: ir_push(y, scores), gtol=1e-7)
    assert solver.converged_ and solver.gradient_norm_ <= 1e-8
    assert np.exp(solver.log_risk_) == pytest.approx(least, rel=1e-10)
    assert_allclose(solver.coef_, w, rtol=1e-4, atol=1e-6)


def least_by_bfgs(X, risk, factor=1.0, gtol=1e-9):
    """Minimise a factor times a risk that has its gradient in the scores."""

    def objective(w):
        value, by_scores = risk(X @ w)
        return factor * value, factor * X.T @ by_scores

    start = np.zeros(X.shape[1])
    found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": gtol})
    return found.fun, found.x


def test_unreached_tolerance_is_reported():
    X, y = problem()
    with warns(ConvergenceWarning):
        solver = PNormPush(method="newton", max_iter=1).fit(X, y)
    assert not solver.converged_ and not solver.unbounded_


# --- no minimiser ---


@pytest.mark.parametrize(
    "solver", [PNormPush(), PNormPush(method="newton"), IRPush(), RankBoost()]
)
@pytest.mark.parametrize("hidden", [False, True])
def test_separable_rows_have_no_minimiser(solver, hidden):
    X, y = problem()
    X[:, 2] += 2.0 * (y > 0)
    if hidden:
        X = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    with warns(ConvergenceWarning):
        solver.fit(X, y)
    assert (
        solver.unbounded_ and not solver.converged_ and np.isfinite(solver.coef_).all()
    )
    assert r_max(y, solver.decision_function(X)) == 0


@each_loss
def test_a_separating_feature_gets_a_margin_of_1(loss):
    X, y = problem()
    X[:, 2] = np.where(y > 0, 0.9, 0.4)
    with warns(ConvergenceWarning):
        solver = PNormPush(loss=loss).fit(X, y)
    scores = X @ solver.coef_
    assert solver.unbounded_ and scores[y > 0].min() - scores[
        y < 0
    ].max() == pytest.approx(1)
    assert solver.n_iter_ < 100


@each_loss
def test_a_feature_of_some_positives_only_is_taken_beside_others(loss):
    """No pair is ranked wrongly by it, and most are ties."""
    X, y = problem()
    X = np.column_stack([X, (y > 0) & (np.arange(len(y)) % 4 == 0)])
    with warns(ConvergenceWarning):
        assert PNormPush(loss=loss, method="newton").fit(X, y).unbounded_
        solver = PNormPush(loss=loss, max_iter=60).fit(X, y)
    assert (
        solver.n_iter_ == 60
        and solver.coef_[5] > 0
        and np.count_nonzero(solver.coef_) > 2
    )


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_whether_a_minimiser_exists_is_what_a_linear_programme_says(seed, separable):
    """Separable in part only.

    Some positives and negatives are alike but for one feature.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (40, 6)).astype(float), np.repeat([1, -1], 20)
    X[:20, 5] = np.where(rng.random(20) < 0.3, 1.0, 0.0)
    X[20:, 5] = 0.0 if separable else X[rng.permutation(20), 5]
    X = X @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    pairs = (X[y > 0, None] - X[None, y < 0]).reshape(-1, 6)
    best = linprog(
        -pairs.sum(axis=0), A_ub=-pairs, b_ub=np.zeros(len(pairs)), bounds=(-1, 1)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for solver in (
            IRPush(),
            RankBoost(method="newton"),
            PNormPush(method="newton"),
        ):
            for rows in (X, sparse.csr_matrix(X)):
                assert solver.fit(rows, y).unbounded_ == (best.fun < -1e-6), solver


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
        assert_allclose(solver.fit_pairs(X, relation).coef_, by_labels, atol=1e-9)
    assert_allclose(
        solver.fit_pairs(sparse.csr_array(X), complete(y)).coef_, by_labels, atol=1e-9
    )


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
        losses = np.where(
            crucial, np.exp(z) if loss == "exponential" else np.log1p(np.exp(z)), 0
        )
        top, bottom = (losses.sum(axis=0) ** 3).sum(), (losses.sum(axis=1) ** 3).sum()
        return np.log({"top": top, "bottom": bottom, "both": top + 0.3 * bottom}[push])

    assert solver.log_risk_ == pytest.approx(log_risk(solver.coef_), rel=1e-12)
    assert_allclose(differences(log_risk, solver.coef_), 0, atol=1e-6)


def test_pairs_are_not_modified():
    X, y = problem(30)
    i, k = complete(y).nonzero()
    # a zero is stored, and places come twice
    values = np.append(np.ones(len(i)), [0.0, 1.0])
    place = np.append(i, i[:2]), np.append(k, k[:2])
    for form in ("csc", "coo"):
        relation = sparse.coo_array((values, place), shape=(30, 30)).asformat(form)
        before = relation.copy()
        RankBoost(max_iter=3).fit_pairs(X, relation)
        assert relation.nnz == before.nnz
        assert_array_equal(relation.data, before.data)


def test_consistent_pairs_have_no_minimiser():
    X, _ = problem()
    order = np.argsort(X[:, 0])
    relation = np.zeros((len(X), len(X)))
    relation[order[30:], order[:-30]] = 1
    for method in ("coordinate", "newton"):
        with warns(ConvergenceWarning):
            solver = RankBoost(method=method).fit_pairs(X, relation)
        assert solver.unbounded_
        scores = solver.decision_function(X)
        assert (scores[order[30:]] > scores[order[:-30]]).all()


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        (np.ones((4, 3)), ""),
        (np.ones((5, 5)), "4"),
        (np.zeros((4, 4)), ""),
        (-np.eye(4)[::-1], ""),
        (np.where(np.eye(4)[::-1], np.nan, 0), ""),
        (np.eye(4), "0"),
    ],
)
def test_invalid_pairs_are_reported(relation, message):
    with raises(InputError, message):
        PNormPush().fit_pairs(np.random.default_rng(0).random((4, 2)), relation)


# --- large p ---


@each_loss
@each_push
@each_method
@pytest.mark.parametrize("p", [64, 1000])
def test_large_p_does_not_overflow(loss, push, method, p):
    X, y = problem(200)
    steps = {"coordinate": 10, "newton": 100}[method]
    solver = PNormPush(p, loss=loss, push=push, method=method, max_iter=steps).fit(
        50 * X, y
    )
    assert solver.converged_ or method == "coordinate"
    log_risk, _ = pnorm_push(y, 50 * X @ solver.coef_, p, loss=loss, push=push)
    assert np.isfinite(log_risk) and solver.log_risk_ == pytest.approx(
        log_risk, rel=1e-12
    )


# --- topPush against a general solver, its projections against definitions ---


SCORE = st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0]) | st.floats(-9, 9)
ENTRIES = st.lists(st.tuples(SCORE, st.booleans()), min_size=1, max_size=12)


def point_of(entries):
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


@given(ENTRIES, st.integers(1, 12))
def test_the_projection_is_that_of_the_reference(entries, k):
    point, labels = point_of(entries)
    n_neg = int(np.sum(labels < 0))
    k = max(1, min(k, n_neg - 1))
    found = capped(point, labels, k)
    assert_allclose(
        toppush.projected(point, labels, k), found, atol=1e-7 * (1 + abs(point).max())
    )


@pytest.mark.parametrize("k", [1, 4])
def test_toppush_comes_to_the_w_of_the_reference(k):
    X, y = (
        np.random.default_rng(3).standard_normal((40, 3)),
        np.repeat([1, -1], [15, 25]),
    )
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
def test_it_reaches_the_optimum_of_a_general_solver(C, apart, k):
    rng = np.random.default_rng(int(apart))
    y = np.repeat([1, -1], [8, 16])
    X = rng.standard_normal((24, 3)) + apart * (y > 0)[:, None]

    def constraints(z):  # w, the k-th highest negative, the losses, what is above it
        w, kth, loss, above = z[:3], z[3], z[4:12], z[12:]
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
    assert solver.converged_ and solver.gap_ <= 1e-6
    assert solver.primal_ == pytest.approx(
        toppush.primal(solver.coef_, X, y, C, k), rel=1e-9
    )
    assert solver.lower_bound_ <= best.fun * (
        1 + 1e-6
    ) and solver.primal_ <= best.fun * (1 + 1e-6)
    assert np.linalg.norm(solver.coef_ - best.x[:3]) <= np.sqrt(2 * solver.gap_) + 1e-3


def overlapping():
    X, y = (
        np.random.default_rng(0).standard_normal((400, 3)),
        np.repeat([1, -1], [40, 360]),
    )
    X[y > 0] += 0.7
    return X, y


def test_no_weights_beat_0_where_the_mean_of_the_positives_is_among_the_negatives():
    X, y = overlapping()
    solver = TopPush(C=10.0, tol=1e-6, max_iter=100_000).fit(X, y)
    assert solver.lower_bound_ == pytest.approx(
        10.0
    ) and solver.primal_ == pytest.approx(10.0)
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
    X, y = (
        np.random.default_rng(1).standard_normal((300, 5)),
        np.repeat([1, -1], [60, 240]),
    )
    X[y > 0] += 1.5
    best = TopPush(top_negatives=k, tol=1e-9, max_iter=100_000).fit(X, y).primal_
    seen = []
    solver = TopPush(top_negatives=k, tol=1e-9)
    solver.fit(X, y, trace=lambda s: seen.append((s.lower_bound_, s.primal_)))
    low, high = np.array(seen).T
    assert (low <= best + 1e-9).all() and (high >= best - 1e-9).all()
    assert (np.diff(low) >= 0).all() and len(seen) > 20


@pytest.mark.parametrize("margin", [-2.0, 0.5, 3.0])
def test_a_separating_step_leaves_every_pair_a_margin_of_1(margin):
    """Whatever margin they have before.

    Pairs that are right by far are not moved back.
    """
    X = np.array([[margin, 1.0], [margin, 0.0], [0.0, 0.0], [0.0, -0.5]])
    labels = np.array([1, 1, -1, -1], dtype=np.int8)
    risk = ExponentialRisk(X, labels, 1.0, [Term(1.0, 1.0, 0.0)])
    point = risk.at(np.array([1.0, 0.0]))
    step = _separating_step(risk, point, X[:, 1])
    assert step > 0
    gaps = (X[:2, None] - X[None, 2:]) @ [1.0, step]
    differs = X[:2, None, 1] != X[None, 2:, 1]
    assert gaps[differs].min() >= 1

"""Solvers that visit rows in an order, against reference.py."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from precbench.core.errors import InputError
from precbench.ranking.losses import AUC, F1, OBJECTIVES, PartialAUC, PrecisionAtK
from precbench.solvers import (
    OAM,
    PGD,
    SPAM,
    AdaOAM,
    OnePMB,
    PerceptronAtK,
    ProjectedSubgradient,
    SGDAtK,
    TwoPMB,
)
from precbench.solvers.common.driver import visiting_order
from precbench.solvers.minibatch import estimator
from precbench.solvers.minibatch import reference as minibatch
from precbench.solvers.online_auc import reference as online_auc
from precbench.solvers.psg import reference as psg
from tests import laws
from tests.laws import problem, weights
from tests.sentences import raises


class Twin(NamedTuple):
    """A solver and the function that follows it.

    Of X, y, an order of rows and the solver.
    """

    solver: Any
    path: Any


def _minibatch(solver, rule):
    def path(X, y, order, solver, **options):
        X = minibatch.with_constant(X, rule)
        return minibatch.path(X, y, order, rule, **solver.get_params() | options)

    return Twin(solver, path)


MINIBATCH = {
    "perceptron-avg": _minibatch(PerceptronAtK("avg"), "perceptron-avg"),
    "perceptron-max": _minibatch(PerceptronAtK("max"), "perceptron-max"),
    "sgd-avg": _minibatch(SGDAtK("avg"), "avg"),
    "sgd-max": _minibatch(SGDAtK("max"), "max"),
    "sgd-ramp": _minibatch(SGDAtK("ramp"), "ramp"),
    "sgd-struct": _minibatch(SGDAtK("struct"), "struct"),
    "1pmb": _minibatch(OnePMB(), "struct"),
    "1pmb-pauc": _minibatch(OnePMB("pauc", beta=0.3), PartialAUC(0.3)),
    "1pmb-auc": _minibatch(OnePMB("auc"), AUC()),
    "1pmb-f1": _minibatch(OnePMB("f1"), F1()),
}
ONLINE_AUC = {
    "oam-sequential": Twin(
        OAM("sequential", C=2**-6, reservoir_size=8), online_auc.oam_path
    ),
    "oam-gradient": Twin(
        OAM("gradient", C=2**-6, reservoir_size=8), online_auc.oam_path
    ),
    "pgd": Twin(PGD(eta0=0.05, power_t=0.6), online_auc.pgd_path),
    "adaoam": Twin(AdaOAM(eta0=0.1, reg=0.01), online_auc.adaoam_path),
    "adaoam-ball": Twin(AdaOAM(eta0=2.0, reg=6.0, delta=0.5), online_auc.adaoam_path),
    "spam": Twin(SPAM(eta0=0.05, reg=0.1), online_auc.spam_path),
    "spam-l1": Twin(SPAM(eta0=0.05, reg=0.1, l1_reg=0.03), online_auc.spam_path),
}
PASSES = MINIBATCH | ONLINE_AUC
each_minibatch = pytest.mark.parametrize("name", MINIBATCH)
each_of_passes = pytest.mark.parametrize("name", PASSES)


def make(name, **params):
    """Return a solver of the table that is soon done, with those of the parameters it
    has.
    """
    return laws.quick(lambda: PASSES[name].solver, **params)


@pytest.mark.promise("R12")
@each_of_passes
@pytest.mark.parametrize(
    ("k", "average", "radius", "container"),
    [
        (0.25, False, None, np.asarray),
        (1.0, True, 0.7, sparse.csr_matrix),
        (1, False, 0.7, np.asarray),
        (3, True, None, sparse.csr_matrix),
        ("9 %", False, 0.7, np.asarray),  # of a full batch 4 rows, of the last 3
    ],
)
def test_partial_fits_follow_the_twin(name, k, average, radius, container):
    n, batch_size = (400, 37) if name in MINIBATCH else (120, 1)
    X, y = problem(n, integers=name in ONLINE_AUC)
    X[1], y[:2] = X[0], [1, -1]  # rows alike of both classes
    solver = make(name, k=k, average=average, radius=radius, batch_size=batch_size)
    order = np.random.default_rng(1).permutation(n)
    path = PASSES[name].path(X, y, order, solver)
    assert np.ptp(path[-50:], axis=0).any()
    for stop in (37, 111, n):
        piece = make(name, **solver.get_params()).partial_fit(
            container(X), y, order=order[:stop]
        )
        seen = path[: -(-stop // batch_size)]
        assert_allclose(
            weights(piece), seen.mean(axis=0) if average else seen[-1], atol=1e-10
        )
        assert (piece.t_, piece.n_rows_seen_) == (len(seen), stop)


@each_of_passes
@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_a_fit_follows_the_twin_through_two_epochs(name, shuffle):
    X, y = problem(100, 5, integers=True)
    solver = make(name, shuffle=shuffle, epochs=2, average=False).fit(X, y)
    rng = np.random.default_rng(solver.random_state)
    order = np.concatenate([visiting_order(100, shuffle, rng) for _ in range(2)])
    known = {"known": np.arange(100)} if name.startswith("spam") else {}
    path = PASSES[name].path(X, y, order, solver, **known)
    assert_allclose(weights(solver), path[-1], atol=1e-10)


@settings(max_examples=80)
@given(st.data())
def test_minibatch_follows_the_twin_through_ties(data):
    """Few small integers.

    Ties everywhere, and scores are exact, so no rounding may decide.

    The avg rules and the objectives weigh rows with fractions: there it holds of one
    batch only.
    """
    name = data.draw(st.sampled_from(sorted(MINIBATCH)))
    n = data.draw(st.integers(2, 90))
    d = data.draw(st.integers(1, 19))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    X = rng.integers(-1, 2, (n, d)).astype(float)
    y = np.where(rng.random(n) < data.draw(st.sampled_from([0.1, 0.5, 0.9])), 1, -1)
    y[:2] = [1, -1]
    k = data.draw(st.sampled_from([0.25, 0.5, 1.0, 1, 2, "9 %", "40 %"]))
    batch_size = data.draw(st.sampled_from([1, 2, 5, 12, 30, 60]))
    order = rng.permutation(n)
    if name.endswith("avg") or name.startswith("1pmb-"):
        order = order[:batch_size]
    assert_equal_after_whole_steps(
        name, X, y, order, k, batch_size, rng.integers(-2, 3, d + 1)
    )


def assert_equal_after_whole_steps(
    name, X, y, order, k, batch_size, start, tolerance=1e-12
):
    """Compare one pass over the order, begun at other weights than 0, with steps of
    length 1.
    """
    start = start[: X.shape[1] + (name == "1pmb-f1")].astype(float)
    solver = make(name, k=k, batch_size=batch_size, average=False)
    path = PASSES[name].path(X, y, order, solver, eta0=None, start=start, radius=None)
    for rows in (X, sparse.csr_matrix(X)):
        solver = make(name, **solver.get_params()).partial_fit(rows, y, order=[])
        solver._step.w[:] = start
        rule = replace(solver._rule(), eta0=None)  # steps of length 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(solver), "_rule", lambda self, rule=rule: rule)
            solver.partial_fit(rows, y, order=order)
        assert_allclose(weights(solver), path[-1], rtol=tolerance, atol=tolerance)


SCORES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "ties": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "clusters": lambda rng, n: rng.integers(0, 2, n) * 1e6 + rng.random(n),
    "heavy tail": (
        lambda rng, n: rng.integers(-99, 100, n) * 8.0 ** rng.integers(0, 12, n)
    ),
    "equal": lambda rng, n: np.zeros(n),
}


@each_minibatch
@pytest.mark.parametrize(
    ("k", "scores"), [*zip([0.1, 0.4, 1.0, 0.4, 0.1], SCORES, strict=True)]
)
def test_minibatch_follows_the_twin_through_large_batches(name, k, scores):
    """Selected from a sample on, sorted by merging; whatever the scores are."""
    rng = np.random.default_rng(0)
    X = np.column_stack([SCORES[scores](rng, 600), rng.standard_normal((600, 2))])
    y = np.where(rng.random(600) < 0.3, 1, -1)
    start = np.array([1.0, 0.0, 0.0, 0.0])
    assert_equal_after_whole_steps(name, X, y, np.arange(600), k, 600, start, 1e-9)


SHARES_OF_PAIRS = {"1pmb-pauc", "1pmb-auc"}  # rounded in another order


@pytest.mark.parametrize("name", sorted(MINIBATCH.keys() - SHARES_OF_PAIRS))
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("k", [0.25, 1.0, 3, "9 %"])
@pytest.mark.parametrize("scores", ["normal", "ties"])
def test_the_kernel_is_the_reference_to_the_last_bit(name, container, k, scores):
    """The student's job.

    Change `perceptron_step` in minibatch/reference.py, and this fails.

    It passes again after the same change of `perceptron_coef` in minibatch/kernel.pyx.
    Each row has a feature of its own, so that no sum is rounded: w shows what the step
    takes from each row.
    """
    n, rng = 300, np.random.default_rng(7)
    X, y = np.eye(n), np.where(rng.random(n) < 0.3, 1, -1)
    start = np.append(SCORES[scores](rng, n), 0.0)[: n + (name == "1pmb-f1")]
    # the intercept sums over rows
    order = rng.permutation(n)[: 50 if name == "1pmb-f1" else n]
    solver = make(name, k=k, batch_size=50, average=False).partial_fit(
        container(X), y, order=[]
    )
    solver._step.w[:] = start
    solver.partial_fit(container(X), y, order=order)
    path = PASSES[name].path(X, y, order, solver, start=start)
    assert_array_equal(solver.coef_, path[-1][:n])


@each_minibatch
def test_minibatch_follows_the_twin_after_a_batch_of_positives_only(name):
    X, y = problem()
    order = np.concatenate([np.flatnonzero(y > 0)[:50], np.flatnonzero(y < 0)[:50]])
    solver = make(name, average=False).partial_fit(X, y, order=order)
    assert_allclose(
        weights(solver), PASSES[name].path(X, y, order, solver)[-1], atol=1e-10
    )
    assert solver.n_empty_batches_ == (2 if name in ("1pmb-pauc", "1pmb-auc") else 1)


@each_of_passes
def test_one_class_so_far_is_remembered(name):
    X, y = problem(100, 5, integers=True)
    order = np.argsort(y, kind="stable")[-50:]  # 30 negatives, then all positives
    X, y = X[order], y[order]
    solver = make(name, average=False, batch_size=30)
    with raises(InputError, "class"):
        clone(solver).partial_fit(X[:30], y[:30])
    solver.partial_fit(X[:30], y[:30], classes=[-1, 1])
    assert not solver.coef_.any()
    solver.partial_fit(X[30:], y[30:])
    assert_allclose(
        weights(solver), PASSES[name].path(X, y, np.arange(50), solver)[-1], atol=1e-10
    )


def test_the_means_of_a_fit_stay_for_partial_fit():
    X, y = problem(300, 5, integers=True)
    solver = make("spam", shuffle=False, epochs=1, average=False).fit(X, y)
    solver.partial_fit(X[:50] + 1, y[:50])
    rows, labels = np.vstack([X, X[:50] + 1]), np.concatenate([y, y[:50]])
    path = online_auc.spam_path(
        rows, labels, np.arange(350), solver, known=np.arange(300)
    )
    assert_allclose(solver.coef_, path[-1], atol=1e-10)


OF_OBJECTIVES = {
    "prec@k": PrecisionAtK(0.25),
    "pauc": PartialAUC(0.3),
    "auc": AUC(),
    "f1": F1(),
}


@pytest.mark.promise("R12")
@pytest.mark.parametrize("objective", OF_OBJECTIVES)
@pytest.mark.parametrize(
    ("batch_size", "epochs", "size", "average"),
    [(40, 3, 30, False), (50, 1, 1, True), (40, 3, 80, False), (400, 2, None, True)],
)
def test_2pmb_follows_its_twin(
    objective, batch_size, epochs, size, average, monkeypatch
):
    """320 negatives.

    Batches of 40 are all full, of 50 the last is short, of 400 the only one.
    """
    X, y = problem()
    common = {"batch_size": batch_size, "reservoir_size": size, "epochs": epochs}
    solver = TwoPMB(
        objective, beta=0.3, average=average, radius=0.7, random_state=5, **common
    )
    solver.fit(X, y)
    order = minibatch.order_of_2pmb(y, **common, rng=np.random.default_rng(5))
    length = min(80, size or batch_size) + min(320, batch_size)
    rule = OF_OBJECTIVES[objective]
    X_twin, options = (
        minibatch.with_constant(X, rule),
        {
            "k": 0.25,
            "eta0": 0.1,
            "radius": 0.7,
        },
    )
    path = minibatch.path(X_twin, y, order, rule, batch_size=length, **options)
    assert_allclose(
        weights(solver), path.mean(axis=0) if average else path[-1], atol=1e-10
    )
    assert (solver.t_, solver.n_rows_seen_) == (len(path), len(order))
    whole = weights(solver)
    monkeypatch.setattr(estimator, "_ORDER_ROWS", 100)  # listed in pieces
    assert_array_equal(weights(solver.fit(X, y)), whole)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("radius", "average"), [(None, False), (0.2, True)])
def test_psg_follows_the_twin_with_all_rows_in_one_batch(objective, radius, average):
    """Its losses are shares.

    Scores are multiplied by k / n with prec@k, by n_pos / n with f1.
    """
    X, y = problem()
    path = psg.path(
        X, y, OF_OBJECTIVES[objective], top=20, eta0=0.5, radius=radius, n_steps=10
    )
    solver = ProjectedSubgradient(
        objective,
        k=0.25,
        beta=0.3,
        eta0=0.5,
        radius=radius,
        average=average,
        max_iter=10,
    ).fit(X, y)
    assert_allclose(
        weights(solver), path.mean(axis=0) if average else path[-1], atol=1e-9
    )
    assert (solver.n_iter_, solver.n_rows_seen_) == (10, 4000)


# --- OAM, PGD, AdaOAM and SPAM: streams, and the batch optimum ---


@pytest.mark.parametrize("name", ONLINE_AUC)
def test_a_stream_is_a_chain_of_partial_fits(name):
    X, y = problem(300)
    solver, chain = make(name, epochs=2), make(name)
    cuts = [slice(*cut) for cut in pairwise([0, 90, 200, 300])]
    pieces = [(X[cut], y[cut].astype(float)) for cut in cuts]
    solver.fit_pieces(
        7, lambda: ((*p, np.arange(len(p[1]), dtype=np.int32)) for p in pieces)
    )
    chain.partial_fit(X, y).partial_fit(X, y)
    assert_array_equal(solver.coef_, chain.coef_)
    assert solver.n_rows_seen_ == 600


def least_squares(X, y, reg=0.0):
    """Minimise the pairwise squared loss of labels: least squares with an intercept."""
    return np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]


def of_pairs(X, y, reg):
    """Minimise the mean of (1 - <w, x - x'>)^2 / 2 and reg / 2 |w|^2."""
    pos, neg = X[y > 0], X[y < 0]
    mu = pos.mean(axis=0) - neg.mean(axis=0)
    second = np.cov(pos.T, bias=True) + np.cov(neg.T, bias=True) + np.outer(mu, mu)
    return np.linalg.solve(second + reg * np.eye(len(mu)), mu)


@pytest.mark.parametrize(
    ("solver", "optimum", "reg"),
    [
        (PGD(eta0=0.1, power_t=0.75), least_squares, 0.0),
        *((AdaOAM(eta0=0.05), of_pairs, reg) for reg in (1e-4, 0.3)),
        *((SPAM(eta0=0.1, average=True), of_pairs, reg) for reg in (1e-4, 0.3)),
    ],
)
def test_it_comes_to_the_optimum(solver, optimum, reg):
    """With correlated features of different scales, and labels with noise."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((2000, 8)) @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    y = np.where(X @ rng.standard_normal(8) + 2 * rng.standard_normal(2000) > 2, 1, -1)
    best, p = optimum(X, y, reg), (y > 0).mean()
    if optimum is of_pairs:
        solver.set_params(
            reg=2 * p * (1 - p) * reg if isinstance(solver, SPAM) else reg
        )
    coef = solver.set_params(epochs=20, random_state=0).fit(X, y).coef_
    assert np.linalg.norm(coef - best) < 0.05 * np.linalg.norm(best)

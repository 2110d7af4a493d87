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

    ``path(X, y, order, solver)`` returns w after each batch of the rows of `order`.
    """

    solver: Any
    path: Any


def _minibatch(solver, rule):
    """Return a mini-batch solver with its reference."""

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
    """Return a solver of the table that is soon done, with some parameters.

    Those that the solver does not have are ignored.
    """
    return laws.quick(lambda: PASSES[name].solver, **params)


def mean_or_last(path, average):
    return path.mean(axis=0) if average else path[-1]


class Setting(NamedTuple):
    """The parameters of a solver, and the form of its rows."""

    k: Any
    average: bool
    radius: float | None
    container: Any


@pytest.mark.promise("R12")
@each_of_passes
@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(
            Setting(k=0.25, average=False, radius=None, container=np.asarray),
            id="a fraction of the positives",
        ),
        pytest.param(
            Setting(k=1.0, average=True, radius=0.7, container=sparse.csr_matrix),
            id="all positives, sparse, mean in a ball",
        ),
        pytest.param(
            Setting(k=1, average=False, radius=0.7, container=np.asarray),
            id="one row, in a ball",
        ),
        pytest.param(
            Setting(k=3, average=True, radius=None, container=sparse.csr_matrix),
            id="three rows, sparse, mean",
        ),
        pytest.param(
            Setting(k="9 %", average=False, radius=0.7, container=np.asarray),
            id="4 rows of a full batch, 3 of the last",
        ),
    ],
)
def test_partial_fits_follow_the_twin(name, setting):
    n, batch_size = (400, 37) if name in MINIBATCH else (120, 1)
    X, y = problem(n, integers=name in ONLINE_AUC)
    X[1] = X[0]  # rows alike of both classes
    y[:2] = [1, -1]
    solver = make(
        name,
        k=setting.k,
        average=setting.average,
        radius=setting.radius,
        batch_size=batch_size,
    )
    order = np.random.default_rng(1).permutation(n)
    path = PASSES[name].path(X, y, order, solver)
    assert np.ptp(path[-50:], axis=0).any()
    for n_rows in (37, 111, n):
        n_batches = -(-n_rows // batch_size)  # rounded up
        expected = mean_or_last(path[:n_batches], setting.average)
        piece = make(name, **solver.get_params())
        piece.partial_fit(setting.container(X), y, order=order[:n_rows])
        assert_allclose(weights(piece), expected, atol=1e-10)
        assert piece.t_ == n_batches
        assert piece.n_rows_seen_ == n_rows


@each_of_passes
@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_a_fit_follows_the_twin_through_two_epochs(name, shuffle):
    X, y = problem(100, 5, integers=True)
    solver = make(name, shuffle=shuffle, epochs=2, average=False).fit(X, y)
    rng = np.random.default_rng(solver.random_state)
    epochs = [visiting_order(100, shuffle, rng), visiting_order(100, shuffle, rng)]
    # SPAM knows the means of all rows from the start.
    options = {"known": np.arange(100)} if name.startswith("spam") else {}
    path = PASSES[name].path(X, y, np.concatenate(epochs), solver, **options)
    assert_allclose(weights(solver), path[-1], atol=1e-10)


@settings(max_examples=80)
@given(st.data())
def test_minibatch_follows_the_twin_through_ties(data):
    """With features of -1, 0 and 1 there are ties everywhere.

    Scores are exact, so that no rounding may decide. The avg rules and the objectives
    weigh rows with fractions: there it holds of one batch only.
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
    w = rng.integers(-2, 3, n_weights(name, d)).astype(float)
    solver = make(name, k=k, batch_size=batch_size, average=False)
    assert_equal_after_whole_steps(name, solver, X, y, order, w)


def n_weights(name, n_features):
    """Return the length of w, which ends with an intercept for F1."""
    return n_features + (name == "1pmb-f1")


def begun_at(w, solver, X, y):
    """Return the solver, which has seen no row, with other weights than 0."""
    solver.partial_fit(X, y, order=[])
    solver._step.w[:] = w
    return solver


def assert_equal_after_whole_steps(name, solver, X, y, order, w, tolerance=1e-12):
    """Compare one pass over the order, begun at w, with steps of length 1."""
    path = PASSES[name].path(X, y, order, solver, eta0=None, start=w, radius=None)
    for rows in (X, sparse.csr_matrix(X)):
        solver = begun_at(w, make(name, **solver.get_params()), rows, y)
        rule_of_whole_steps = replace(solver._rule(), eta0=None)
        solver._rule = lambda rule=rule_of_whole_steps: rule
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
    ("k", "scores"),
    [
        (0.1, "normal"),
        (0.4, "ties"),
        (1.0, "clusters"),
        (0.4, "heavy tail"),
        (0.1, "equal"),
    ],
)
def test_minibatch_follows_the_twin_through_large_batches(name, k, scores):
    """Selected from a sample on, sorted by merging; whatever the scores are."""
    rng = np.random.default_rng(0)
    X = np.column_stack([SCORES[scores](rng, 600), rng.standard_normal((600, 2))])
    y = np.where(rng.random(600) < 0.3, 1, -1)
    w = np.array([1.0, 0.0, 0.0, 0.0])[: n_weights(name, 3)]
    solver = make(name, k=k, batch_size=600, average=False)
    assert_equal_after_whole_steps(
        name, solver, X, y, np.arange(600), w, tolerance=1e-9
    )


SHARES_OF_PAIRS = {"1pmb-pauc", "1pmb-auc"}  # rounded in another order


@pytest.mark.parametrize("name", sorted(MINIBATCH.keys() - SHARES_OF_PAIRS))
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("k", [0.25, 1.0, 3, "9 %"])
@pytest.mark.parametrize("scores", ["normal", "ties"])
def test_the_kernel_is_the_reference_to_the_last_bit(name, container, k, scores):
    """The student's job.

    Change `perceptron_step` in minibatch/reference.py, and this fails. It passes again
    after the same change of `perceptron_coef` in minibatch/kernel.pyx.

    Each row has a feature of its own, so that no sum is rounded: w shows what the step
    takes from each row.
    """
    n = 300
    rng = np.random.default_rng(7)
    X = container(np.eye(n))
    y = np.where(rng.random(n) < 0.3, 1, -1)
    w = np.append(SCORES[scores](rng, n), 0.0)[: n_weights(name, n)]
    order = rng.permutation(n)
    if name == "1pmb-f1":  # one batch, as the intercept sums over rows
        order = order[:50]
    solver = begun_at(w, make(name, k=k, batch_size=50, average=False), X, y)
    solver.partial_fit(X, y, order=order)
    path = PASSES[name].path(np.eye(n), y, order, solver, start=w)
    assert_array_equal(solver.coef_, path[-1][:n])


@each_minibatch
def test_minibatch_follows_the_twin_after_a_batch_of_positives_only(name):
    X, y = problem()
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    order = np.concatenate([pos[:50], neg[:50]])
    solver = make(name, average=False).partial_fit(X, y, order=order)
    path = PASSES[name].path(X, y, order, solver)
    assert_allclose(weights(solver), path[-1], atol=1e-10)
    # A batch without positives is empty for all, one without negatives for pairs.
    n_empty = 2 if name in ("1pmb-pauc", "1pmb-auc") else 1
    assert solver.n_empty_batches_ == n_empty


def negatives_then_positives():
    """Return 30 negatives, then 20 positives."""
    X, y = problem(100, 5, integers=True)
    order = np.argsort(y, kind="stable")[-50:]
    return X[order], y[order]


@each_of_passes
def test_one_class_so_far_is_remembered(name):
    X, y = negatives_then_positives()
    solver = make(name, average=False, batch_size=30)
    solver.partial_fit(X[:30], y[:30], classes=[-1, 1])
    assert not solver.coef_.any()
    solver.partial_fit(X[30:], y[30:])
    path = PASSES[name].path(X, y, np.arange(50), solver)
    assert_allclose(weights(solver), path[-1], atol=1e-10)


@each_of_passes
def test_a_first_piece_of_one_class_is_refused_without_the_classes(name):
    X, y = negatives_then_positives()
    with raises(InputError, "class"):
        make(name).partial_fit(X[:30], y[:30])


def test_the_means_of_a_fit_stay_for_partial_fit():
    X, y = problem(300, 5, integers=True)
    later_X, later_y = X[:50] + 1, y[:50]
    solver = make("spam", shuffle=False, epochs=1, average=False).fit(X, y)
    solver.partial_fit(later_X, later_y)
    all_X = np.vstack([X, later_X])
    all_y = np.concatenate([y, later_y])
    path = online_auc.spam_path(
        all_X, all_y, np.arange(350), solver, known=np.arange(300)
    )
    assert_allclose(solver.coef_, path[-1], atol=1e-10)


LOSSES = {
    "prec@k": PrecisionAtK(0.25),
    "pauc": PartialAUC(0.3),
    "auc": AUC(),
    "f1": F1(),
}


class Buffered(NamedTuple):
    """Parameters of 2PMB, for 320 negatives and 80 positives."""

    batch_size: int
    reservoir_size: int | None
    epochs: int
    average: bool


each_buffered = pytest.mark.parametrize(
    "buffered",
    [
        pytest.param(
            Buffered(batch_size=40, reservoir_size=30, epochs=3, average=False),
            id="full batches",
        ),
        pytest.param(
            Buffered(batch_size=50, reservoir_size=1, epochs=1, average=True),
            id="one positive, the last batch is short",
        ),
        pytest.param(
            Buffered(batch_size=40, reservoir_size=80, epochs=3, average=False),
            id="all positives",
        ),
        pytest.param(
            Buffered(batch_size=400, reservoir_size=None, epochs=2, average=True),
            id="one batch of all rows",
        ),
    ],
)


def two_pmb(objective, buffered):
    return TwoPMB(objective, beta=0.3, radius=0.7, random_state=5, **buffered._asdict())


@pytest.mark.promise("R12")
@pytest.mark.parametrize("objective", LOSSES)
@each_buffered
def test_2pmb_follows_its_twin(objective, buffered):
    X, y = problem()
    solver = two_pmb(objective, buffered).fit(X, y)
    order = minibatch.order_of_2pmb(
        y,
        batch_size=buffered.batch_size,
        reservoir_size=buffered.reservoir_size,
        epochs=buffered.epochs,
        rng=np.random.default_rng(5),
    )
    n_buffer = min(80, buffered.reservoir_size or buffered.batch_size)
    loss = LOSSES[objective]
    path = minibatch.path(
        minibatch.with_constant(X, loss),
        y,
        order,
        loss,
        batch_size=n_buffer + min(320, buffered.batch_size),
        k=0.25,
        eta0=0.1,
        radius=0.7,
    )
    expected = mean_or_last(path, buffered.average)
    assert_allclose(weights(solver), expected, atol=1e-10)
    assert solver.t_ == len(path)
    assert solver.n_rows_seen_ == len(order)


@pytest.mark.parametrize("objective", LOSSES)
@each_buffered
def test_2pmb_may_list_its_batches_in_pieces(objective, buffered, monkeypatch):
    X, y = problem()
    whole = weights(two_pmb(objective, buffered).fit(X, y))
    monkeypatch.setattr(estimator, "_ORDER_ROWS", 100)
    in_pieces = weights(two_pmb(objective, buffered).fit(X, y))
    assert_array_equal(in_pieces, whole)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("radius", "average"), [(None, False), (0.2, True)])
def test_psg_follows_the_twin_with_all_rows_in_one_batch(objective, radius, average):
    X, y = problem()
    path = psg.path(
        X, y, LOSSES[objective], top=20, eta0=0.5, radius=radius, n_steps=10
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
    assert_allclose(weights(solver), mean_or_last(path, average), atol=1e-9)
    assert solver.n_iter_ == 10
    assert solver.n_rows_seen_ == 4000


# --- OAM, PGD, AdaOAM and SPAM: streams, and the batch optimum ---


@pytest.mark.parametrize("name", ONLINE_AUC)
def test_a_stream_is_a_chain_of_partial_fits(name):
    X, y = problem(300)

    def pieces():
        for start, stop in pairwise([0, 90, 200, 300]):
            order = np.arange(stop - start, dtype=np.int32)
            yield X[start:stop], y[start:stop].astype(float), order

    stream = make(name, epochs=2).fit_pieces(7, pieces)
    chain = make(name).partial_fit(X, y).partial_fit(X, y)
    assert_array_equal(stream.coef_, chain.coef_)
    assert stream.n_rows_seen_ == 600


def least_squares(X, y):
    """Minimise the pairwise squared loss of labels: least squares with an intercept."""
    w, *_rest = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)
    return w


def least_of_pairs(X, y, reg):
    """Minimise the mean of (1 - <w, x - x'>)^2 / 2 and reg / 2 |w|^2."""
    pos, neg = X[y > 0], X[y < 0]
    mu = pos.mean(axis=0) - neg.mean(axis=0)
    second = np.cov(pos.T, bias=True) + np.cov(neg.T, bias=True) + np.outer(mu, mu)
    return np.linalg.solve(second + reg * np.eye(len(mu)), mu)


def correlated_rows():
    """Return features that are correlated, of different scales, and noisy labels."""
    rng = np.random.default_rng(4)
    independent = rng.standard_normal((2000, 8))
    X = independent @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    noisy = X @ rng.standard_normal(8) + 2 * rng.standard_normal(2000)
    return X, np.where(noisy > 2, 1, -1)


def assert_comes_to(solver, X, y, optimum):
    w = solver.set_params(epochs=20, random_state=0).fit(X, y).coef_
    assert np.linalg.norm(w - optimum) < 0.05 * np.linalg.norm(optimum)


def test_pgd_comes_to_the_least_squares():
    X, y = correlated_rows()
    assert_comes_to(PGD(eta0=0.1, power_t=0.75), X, y, least_squares(X, y))


@pytest.mark.parametrize("reg", [1e-4, 0.3])
def test_adaoam_comes_to_the_optimum(reg):
    X, y = correlated_rows()
    assert_comes_to(AdaOAM(eta0=0.05, reg=reg), X, y, least_of_pairs(X, y, reg))


@pytest.mark.parametrize("reg", [1e-4, 0.3])
def test_spam_comes_to_the_optimum(reg):
    """The steps of SPAM are those of 2 p (1 - p) times the loss."""
    X, y = correlated_rows()
    p = (y > 0).mean()
    solver = SPAM(eta0=0.1, average=True, reg=2 * p * (1 - p) * reg)
    assert_comes_to(solver, X, y, least_of_pairs(X, y, reg))

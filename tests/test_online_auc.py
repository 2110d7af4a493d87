"""OAM, PGD, AdaOAM and SPAM: against readable twins, closed forms and the batch optimum."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import brentq, minimize
from sklearn.base import clone

from precbench.errors import InputError
from precbench.solvers import OAM, PGD, SPAM, AdaOAM
from precbench.solvers.passes import visiting_order
from tests.sentences import raises

pytestmark = pytest.mark.usefixtures("in_this_process")

SOLVERS = {
    "oam-sequential": OAM("sequential", C=2**-6, reservoir_size=8),
    "oam-gradient": OAM("gradient", C=2**-6, reservoir_size=8),
    "pgd": PGD(eta0=0.05, power_t=0.6),
    "adaoam": AdaOAM(eta0=0.1, reg=0.01),
    "adaoam-ball": AdaOAM(eta0=2.0, reg=6.0, delta=0.5),
    "spam": SPAM(eta0=0.05, reg=0.1),
    "spam-l1": SPAM(eta0=0.05, reg=0.1, l1_reg=0.03),
}
each_solver = pytest.mark.parametrize("name", SOLVERS)


def problem(n=300, d=5, share=0.3, seed=0):
    """Rows of small integers, the second of them equal to the first."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(float)
    X[1] = X[0]
    noisy = X @ rng.standard_normal(d) + rng.standard_normal(n)
    y = np.full(n, -1)
    y[np.argsort(-noisy)[: int(share * n)]] = 1
    return X, y


def make(name, **params):
    return clone(SOLVERS[name]).set_params(random_state=3, **params)


# --- twins: loops over all earlier rows, or over the reservoirs ----------------------------------


def oam_twin(X, y, order, solver):
    """Zhao et al. 2011, Algorithms 1 to 4; places in the reservoirs from one draw a row."""
    rng = np.random.default_rng(solver.random_state).spawn(1)[0]
    w, path = np.zeros(X.shape[1]), []
    kept, seen = {1: [], -1: []}, {1: 0, -1: 0}
    size = solver.reservoir_size
    for x, label in zip(X[order], y[order], strict=True):
        penalty = solver.C * max(1, seen[-label] / size)
        differences = [label * (x - other) for other in kept[-label]]
        if solver.update == "sequential":
            for z in differences:
                loss = max(0.0, 1 - w @ z)
                if z.any():  # of a row like itself nothing can be learnt
                    w = w + min(penalty / 2, loss / (z @ z)) * z
        else:
            violating = [z for z in differences if w @ z <= 1]
            w = w + penalty / 2 * np.sum([*violating, np.zeros_like(w)], axis=0)
        seen[label] += 1
        place = rng.integers(0, np.array([seen[label]]))[0]
        if len(kept[label]) < size:
            kept[label].append(x)
        elif place < size:
            kept[label][place] = x
        path.append(w)
    return np.array(path)


def pgd_twin(X, y, order, solver):
    """Boissier et al. 2016: the mean over all earlier rows, pair by pair."""
    w, path = np.zeros(X.shape[1]), []
    for t, i in enumerate(order, start=1):
        gradient = np.zeros_like(w)
        for j in order[: t - 1]:
            z = X[i] - X[j]
            gradient += (w @ z - (y[i] - y[j])) * z / (t - 1)
        w = w - solver.eta0 / t**solver.power_t * gradient
        path.append(w)
    return np.array(path)


def projected(u, h, radius):
    """The point of the ball that is nearest to u in the norm with the weights h."""
    if np.linalg.norm(u) <= radius:
        return u

    def excess(nu):
        return np.linalg.norm(h * u / (h + nu)) - radius

    top = 1.0
    while excess(top) > 0:
        top *= 2
    return h * u / (h + brentq(excess, 0, top, xtol=1e-300, rtol=4 * np.finfo(float).eps))


def adaoam_twin(X, y, order, solver):
    """Ding et al. 2015, Algorithm 1, the gradient pair by pair."""
    w, squares, path = np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for t, i in enumerate(order):
        others = [j for j in order[:t] if y[j] != y[i]]
        if others:
            gradient = solver.reg * w
            for j in others:
                z = y[i] * (X[i] - X[j])
                gradient = gradient - (1 - w @ z) * z / len(others)
            squares += gradient**2
            h = solver.delta + np.sqrt(squares)
            w = projected(w - solver.eta0 * gradient / h, h, 1 / np.sqrt(solver.reg))
        path.append(w)
    return np.array(path)


def spam_twin(X, y, order, solver, known=None):
    """Natole et al. 2018, Algorithm 1, with a, b and alpha; known: the rows of the first pass."""
    w, path = np.zeros(X.shape[1]), []
    for t, i in enumerate(order, start=1):
        rows = order[:t] if known is None else known
        pos, neg = X[rows][y[rows] > 0], X[rows][y[rows] < 0]
        if len(pos) and len(neg):
            p = len(pos) / len(rows)
            a, b = w @ pos.mean(axis=0), w @ neg.mean(axis=0)
            alpha = b - a
            x, score = X[i], w @ X[i]
            if y[i] > 0:
                gradient = 2 * (1 - p) * ((score - a) - (1 + alpha)) * x
            else:
                gradient = 2 * p * ((score - b) + (1 + alpha)) * x
            eta = solver.eta0 / np.sqrt(t)
            u = w - eta * gradient
            u = np.sign(u) * np.maximum(0, np.abs(u) - eta * solver.l1_reg)
            w = u / (1 + eta * solver.reg)
        path.append(w)
    return np.array(path)


TWINS = {OAM: oam_twin, PGD: pgd_twin, AdaOAM: adaoam_twin, SPAM: spam_twin}


@pytest.mark.promise("R12")
@each_solver
@pytest.mark.parametrize(("average", "container"), [(False, np.asarray), (True, sparse.csr_matrix)])
def test_twin_follows_the_kernel(name, average, container):
    X, y = problem(n=120)
    order = np.random.default_rng(1).permutation(len(y))
    solver = make(name, average=average)
    path = TWINS[type(solver)](X, y, order, solver)
    assert np.ptp(path[-50:], axis=0).max() > 1e-3
    for stop in (1, 40, 120):
        piece = clone(solver).partial_fit(container(X), y, order=order[:stop])
        seen = path[:stop]
        assert_allclose(piece.coef_, seen.mean(axis=0) if average else seen[-1], atol=1e-10)
        assert piece.t_ == piece.n_rows_seen_ == stop


@each_solver
@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_twin_follows_two_epochs_of_fit(name, shuffle):
    X, y = problem(n=100)
    solver = make(name, shuffle=shuffle, epochs=2).fit(X, y)
    rng = np.random.default_rng(3)
    order = np.concatenate([visiting_order(100, shuffle, rng) for _ in range(2)])
    known = {"known": np.arange(100)} if name.startswith("spam") else {}
    path = TWINS[type(solver)](X, y, order, solver, **known)
    assert_allclose(solver.coef_, path[-1], atol=1e-10)


# --- laws ----------------------------------------------------------------------------------------


@each_solver
def test_a_stream_is_a_chain_of_partial_fits(name):
    X, y = problem()
    solver, chain = make(name, epochs=2), make(name)
    cuts = [slice(*cut) for cut in pairwise([0, 90, 200, 300])]
    pieces = [(X[cut], y[cut].astype(float)) for cut in cuts]
    solver.fit_pieces(5, lambda: ((*p, np.arange(len(p[1]), dtype=np.int32)) for p in pieces))
    chain.partial_fit(X, y).partial_fit(X, y)
    assert_array_equal(solver.coef_, chain.coef_)
    assert solver.n_rows_seen_ == 600


@each_solver
def test_one_class_so_far_is_remembered_and_changes_nothing(name):
    X, y = problem(n=100)
    with raises(InputError, "class"):
        make(name).partial_fit(X[y < 0], y[y < 0])
    solver = make(name).partial_fit(X[y < 0], y[y < 0], classes=[-1, 1])
    assert_array_equal(solver.coef_, np.zeros(5))
    solver.partial_fit(X[y > 0], y[y > 0])
    order = np.concatenate([np.flatnonzero(y < 0), np.flatnonzero(y > 0)])
    path = TWINS[type(solver)](X, y, order, solver)
    assert_allclose(solver.coef_, path[-1], atol=1e-10)
    assert solver.coef_.any()


# --- OAM -----------------------------------------------------------------------------------------


def test_every_set_of_rows_is_in_a_reservoir_equally_often():
    solver = OAM(reservoir_size=3)
    solver.random_state = np.random.default_rng(0)
    solver._reset(1)
    counts = Counter()
    for _ in range(6_000):
        reservoir = [-1, -1, -1]
        for row, place in enumerate(solver._places(np.ones(6, dtype=bool))):
            if place < 3:
                reservoir[place] = row
        counts[tuple(sorted(reservoir))] += 1
    assert set(counts) == set(combinations(range(6), 3))
    assert max(abs(count - 300) for count in counts.values()) < 5 * np.sqrt(300)


# --- what is minimised ---------------------------------------------------------------------------


def test_the_means_of_fit_stay_for_partial_fit():
    X, y = problem()
    solver = make("spam", shuffle=False).fit(X, y)
    solver.partial_fit(X[:50] + 1, y[:50])
    rows, labels = np.vstack([X, X[:50] + 1]), np.concatenate([y, y[:50]])
    path = spam_twin(rows, labels, np.arange(350), solver, known=np.arange(300))
    assert_allclose(solver.coef_, path[-1], atol=1e-10)


def noisy(n, d=8, seed=4):
    """Correlated features of different scales, and labels with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    y = np.where(X @ rng.standard_normal(d) + 2 * rng.standard_normal(n) > 2, 1, -1)
    return X, y


def test_pgd_comes_to_least_squares():
    """The pairwise squared loss is least squares with an intercept."""
    X, y = noisy(2000)
    centred = X - X.mean(axis=0)
    optimum = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    coef = PGD(eta0=0.1, power_t=0.75, epochs=20, random_state=0).fit(X, y).coef_
    assert np.linalg.norm(coef - optimum) < 0.05 * np.linalg.norm(optimum)


def pairwise_optimum(X, y, reg):
    """Minimise the mean of (1 - <w, x - x'>)^2 / 2 over the pairs, and reg / 2 |w|^2."""
    pos, neg = X[y > 0], X[y < 0]
    mu = pos.mean(axis=0) - neg.mean(axis=0)
    second = np.cov(pos.T, bias=True) + np.cov(neg.T, bias=True) + np.outer(mu, mu)

    def value(w):
        return w @ second @ w / 2 - mu @ w + reg / 2 * w @ w, second @ w - mu + reg * w

    return minimize(value, np.zeros(len(mu)), jac=True, tol=1e-12).x


@pytest.mark.parametrize("reg", [1e-4, 0.3])
def test_adaoam_and_spam_come_to_the_optimum_of_the_pairs(reg):
    X, y = noisy(2000)
    optimum = pairwise_optimum(X, y, reg)
    p = (y > 0).mean()
    ada = AdaOAM(eta0=0.05, reg=reg, epochs=20, random_state=0).fit(X, y)
    spam = SPAM(eta0=0.1, reg=2 * p * (1 - p) * reg, epochs=20, average=True, random_state=0)
    for solver in (ada, spam.fit(X, y)):
        assert np.linalg.norm(solver.coef_ - optimum) < 0.05 * np.linalg.norm(optimum)

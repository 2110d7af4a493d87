"""BBR and LCBR: moments, pairs, and the minimiser over a ball."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from precbench.core.errors import InputError
from precbench.solvers import BBR, LCBR
from precbench.solvers.bbr import estimator as bbr_module
from precbench.solvers.bbr.ball import minimise_over_ball
from precbench.solvers.bbr.reference import minimiser, pair_moments
from tests.sentences import raises


def problem(n=60, d=5, share=0.3, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    y[:2] = [1, -1]
    X = (
        rng.standard_normal((n, d)) * np.geomspace(0.1, 10, d)
        + 0.3 * (y > 0)[:, None]
        + offset
    )
    return X, y


def found_moments(monkeypatch, solver, X, y):
    """Return what a solver minimises."""
    found, minimise = [], type(solver)._minimise

    def note(self, moments):
        found.append((moments.mean, moments.second))
        minimise(self, moments)

    with monkeypatch.context() as patched:
        patched.setattr(type(solver), "_minimise", note)
        solver.fit(X, y)
    return found[0]


def assert_same_moments(found, expected, tolerance=1e-12):
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=0, atol=tolerance * np.abs(other).max())


CONTAINERS = {"dense": np.asarray, "csr": sparse.csr_array}
each_container = pytest.mark.parametrize(
    "container", CONTAINERS.values(), ids=CONTAINERS
)


# --- moments and pairs ---


@pytest.mark.promise("R12")
@each_container
@pytest.mark.parametrize("accumulate", ["moments", "pairs"])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (9, 4), (60, 5), (40, 19)])
def test_both_ways_follow_algorithm_1(monkeypatch, container, accumulate, n, d):
    X, y = problem(n, d)
    X *= np.random.default_rng(1).random((n, d)) < 0.4  # some rows are empty
    found = found_moments(monkeypatch, BBR(accumulate=accumulate), container(X), y)
    assert_same_moments(found, pair_moments(X, y))


def with_a_constant():
    X, y = problem(2000, 6, 0.5)
    X[:, 0] = np.where(y > 0, 0.1, 0.0)
    return X, y


def far_from_0():
    """Features that are 1e6 standard deviations from 0."""
    X, y = problem(400, 5)
    return X + 2.0**20, y


def sorted_with_a_heavy_tail():
    """The origin is then the worst mean that a block can have."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.standard_cauchy((3000, 1)), axis=0)[::-1] + 1e6 * np.ones((1, 3))
    return X, np.where(rng.random(3000) < 0.02, 1, -1)


@pytest.mark.parametrize("block_rows", [None, 300, 30])
@pytest.mark.parametrize(
    ("rows", "container"),
    [
        (with_a_constant, np.asarray),
        (with_a_constant, sparse.csr_array),
        (far_from_0, np.asarray),  # CSR rows are summed from 0
        (sorted_with_a_heavy_tail, np.asarray),
    ],
)
def test_long_sums_keep_their_digits(monkeypatch, container, block_rows, rows):
    """Up to a million pairs, and blocks of both classes, full and not."""
    X, y = rows()
    by_pairs = found_moments(monkeypatch, BBR(accumulate="pairs"), X, y)
    if block_rows:
        monkeypatch.setattr(bbr_module, "_BLOCK_ROWS", block_rows)
        monkeypatch.setattr(bbr_module, "_SLICE_PRODUCTS", 5000)
    assert_same_moments(found_moments(monkeypatch, BBR(), container(X), y), by_pairs)


@pytest.mark.parametrize(
    ("n", "constant"), [(300, 0.1), (3000, 2000.1), (30_000, 1e5 / 3)]
)
def test_a_constant_column_of_csr_rows_is_flat(n, constant):
    """What rounding leaves of it is neither refused nor divided by."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 4))
    y = np.where(X @ [1.0, 2.0, 0.0, -1.0] + rng.standard_normal(n) > 1, 1, -1)
    X = np.column_stack([X, np.full(n, constant)])
    for radius in (None, 0.1, 1e3):
        w = BBR(radius).fit(sparse.csr_array(X), y).coef_
        expected = BBR(radius).fit(X[:, :4], y).coef_
        assert_allclose(w, [*expected, 0], rtol=0, atol=1e-8 * np.abs(expected).max())


def test_more_features_than_rows():
    """All pairs fit exactly: the shortest w with w'(x_i - x_j) = 1."""
    X, y = problem(12, 30)
    w = BBR().fit(X, y).coef_
    pos, neg = X[y > 0], X[y < 0]
    differences = (pos[:, None] - neg[None]).reshape(-1, 30)
    assert_allclose(differences @ w, 1, atol=1e-8)
    assert_allclose(
        w, np.linalg.pinv(differences).sum(axis=1), atol=1e-8 * np.abs(w).max()
    )


@pytest.mark.parametrize("radius", [None, 0.3, 3e-3])
def test_the_weights_are_those_of_the_definition(radius):
    X, y = problem(60, 5)
    w = minimiser(*pair_moments(X, y), radius)
    assert_allclose(BBR(radius).fit(X, y).coef_, w, rtol=0, atol=1e-9 * np.abs(w).max())


# --- pieces ---


@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.parametrize(
    ("form", "then"),
    [("dense", "dense"), ("csr", "csr"), ("dense", "csr"), ("csr", "dense")],
)
def test_partial_fits_equal_one_fit(form, then, offset):
    X, y = problem(200, 6, offset=offset)
    order = np.argsort(y, kind="stable")  # at first of one class only
    X, y = X[order], y[order]
    whole, pieces = BBR(0.3).fit(X, y), BBR(0.3)
    for start, stop in ((0, 7), (7, 8), (8, 190), (190, 200)):
        container = CONTAINERS[form if start < 8 else then]
        pieces.partial_fit(container(X[start:stop]), y[start:stop], classes=[-1, 1])
        assert pieces.coef_.any() == (stop > 8)
    assert_allclose(pieces.coef_, whole.coef_, rtol=1e-9)
    assert (pieces.n_rows_seen_, pieces.n_iter_) == (200, 4)
    assert_allclose(whole.partial_fit(X, y).coef_, pieces.coef_, rtol=1e-9)


def test_loop_over_pairs_has_no_partial_fit():
    X, y = problem()
    solver = BBR(accumulate="pairs").fit(X, y)
    assert not hasattr(solver, "partial_fit")
    with pytest.raises(AttributeError) as refused:
        solver.partial_fit(X, y)
    assert 'partial_fit needs accumulate="moments"' in str(refused.value.__cause__)
    with raises(InputError, "sums fit"):
        solver.set_params(accumulate="moments").partial_fit(X, y)


def test_stopped_partial_fit_changes_nothing(monkeypatch):
    monkeypatch.setattr(bbr_module, "_BLOCK_ROWS", 10)
    X, y = problem()
    solver = BBR().partial_fit(X[:30], y[:30])
    before = solver.coef_
    solver.partial_fit(X[30:] + 5, y[30:], trace=lambda _: True)
    assert_array_equal(solver.coef_, before)
    assert (solver.n_rows_seen_, solver.n_iter_) == (30, 1)
    assert_allclose(
        solver.partial_fit(X[30:], y[30:]).coef_, BBR().fit(X, y).coef_, rtol=1e-10
    )


# --- trace ---


@each_container
@pytest.mark.parametrize(
    "solver", [BBR(), BBR(accumulate="pairs"), LCBR(500, random_state=0)]
)
def test_a_trace_is_called_between_slices_and_ends_them(monkeypatch, container, solver):
    monkeypatch.setattr(bbr_module, "_BLOCK_ROWS", 10)
    monkeypatch.setattr(bbr_module, "_SLICE_PRODUCTS", 300)
    X, y = problem()
    calls = []
    solver.fit(
        container(X), y, trace=lambda s: calls.append((s.n_rows_seen_, s.coef_.any()))
    )
    rows, has_w = zip(*calls, strict=True)
    assert len(rows) > 3 and list(rows) == sorted(set(rows))
    assert list(has_w) == [False] * (len(rows) - 1) + [True]
    whole = solver.coef_
    solver.fit(container(X), y, trace=lambda s: s.n_rows_seen_ > 0)
    assert 0 < solver.n_rows_seen_ < rows[-1]
    if isinstance(solver, LCBR):
        fewer = LCBR(solver.n_rows_seen_, random_state=0).fit(container(X), y)
        assert_allclose(solver.coef_, fewer.coef_, rtol=1e-9)
    else:
        assert not solver.coef_.any()
    assert_allclose(solver.fit(container(X), y).coef_, whole, rtol=1e-10)


def test_a_trace_is_called_after_a_bounded_number_of_products():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2500, 1000)), np.where(np.arange(2500) % 2, 1, -1)
    calls = []

    def note(solver):
        calls.append(solver.n_rows_seen_)
        return solver.n_rows_seen_ > 1500

    BBR().fit(X, y, trace=note)
    assert max(np.diff(calls)) * 1000**2 <= 2 * 2**29


# --- LCBR ---


@each_container
@pytest.mark.parametrize(("n_pairs", "slice_pairs"), [(1, 2**13), (7, 3), (500, 3)])
def test_twin_follows_algorithm_2(monkeypatch, container, n_pairs, slice_pairs):
    monkeypatch.setattr(bbr_module, "_SLICE_PAIRS", slice_pairs)
    X, y = problem(40, 9)
    n_neg = int((y < 0).sum())
    numbers = np.random.default_rng(3).integers((40 - n_neg) * n_neg, size=n_pairs)
    solver = LCBR(n_pairs, radius=0.2, random_state=3)
    found = found_moments(monkeypatch, solver, container(X), y)
    mean, second = pair_moments(
        X, y, [divmod(number, n_neg) for number in numbers.tolist()]
    )
    assert_same_moments(found, (mean, second))
    assert_allclose(solver.coef_, minimise_over_ball(second, mean, 0.2), atol=1e-9)
    assert (solver.n_rows_seen_, solver.n_iter_) == (n_pairs, 1)


def test_pairs_are_drawn_uniformly():
    rng = np.random.default_rng(0)
    X, y = np.eye(5), np.array([1, 1, -1, -1, -1])
    solver = LCBR(60_000, random_state=rng)
    with pytest.MonkeyPatch.context() as patched:
        _, second = found_moments(patched, solver, X, y)
    counts = -second[:2, 2:] * 60_000
    assert_allclose(counts.sum(), 60_000)
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000)


# --- the minimiser over a ball ---


def assert_optimal(second, mean, radius, w):
    """Check the conditions of Karush, Kuhn and Tucker, which suffice in a convex
    problem.
    """
    residual = mean - second @ w
    scale = max(
        np.linalg.norm(mean), np.linalg.norm(second, 2) * np.linalg.norm(w), 1e-300
    )
    multiplier = 0.0
    if radius is not None:
        assert np.linalg.norm(w) <= radius * (1 + 1e-12)
        if np.linalg.norm(w) >= radius * (1 - 1e-12):
            multiplier = max(0.0, float(residual @ w) / float(w @ w))
    assert np.linalg.norm(residual - multiplier * w) <= 1e-9 * scale


@pytest.mark.promise("R12")
@settings(max_examples=100)
@given(st.data())
def test_conditions_of_optimality(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.integers(1, 12))
    rank = data.draw(st.integers(0, n))
    spread = data.draw(st.sampled_from([0, 2, 6]))
    axes = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.zeros(n)
    values[:rank] = 10.0 ** rng.uniform(-spread, 0, rank)
    second = (axes * values) @ axes.T * 10.0 ** data.draw(st.integers(-8, 8))
    second = (second + second.T) / 2
    in_range = data.draw(st.booleans())
    mean = second @ rng.standard_normal(n) if in_range else rng.standard_normal(n)
    mean *= 10.0 ** data.draw(st.integers(-8, 8))
    radius = data.draw(st.sampled_from([None, 1e-6, 0.1, 1.0, 1e5]))
    if radius is None and not in_range and rank < n:
        with raises(InputError):
            minimise_over_ball(second, mean)
    else:
        assert_optimal(second, mean, radius, minimise_over_ball(second, mean, radius))


def test_degenerate_cases():
    flat, mean = np.zeros((3, 3)), np.array([3.0, 0.0, 4.0])
    assert_allclose(minimise_over_ball(flat, mean, 2.0), [1.2, 0, 1.6], rtol=1e-15)
    assert_array_equal(minimise_over_ball(flat, np.zeros(3), 2.0), np.zeros(3))
    assert_array_equal(minimise_over_ball(flat, np.zeros(3)), np.zeros(3))
    assert_array_equal(minimise_over_ball(flat, mean, mean_in_range=True), np.zeros(3))
    assert_array_equal(minimise_over_ball(np.eye(3), np.zeros(3), 1.0), np.zeros(3))
    for radius in (5.0, 1e3, 1e120, 1e308):  # on the sphere, and within it
        assert_allclose(minimise_over_ball(np.eye(3), mean, radius), mean, rtol=1e-15)
    second = np.diag([0.0, 1.0, 2.0])
    # The mean lies in the range: of many minimisers the shortest, inside the ball or on
    # it.
    assert_allclose(minimise_over_ball(second, [0, 1, 2]), [0, 1, 1], atol=1e-15)
    assert_allclose(minimise_over_ball(second, [0, 1, 2], 5.0), [0, 1, 1], atol=1e-15)
    w = minimise_over_ball(second, [0, 1, 2], 1.0)
    assert w[0] == 0
    assert_optimal(second, np.array([0, 1, 2]), 1.0, w)
    # It does not, by little or by much: the rest of the radius goes where second is
    # flat.
    for part in (1e-6, 1e-3, 1.0, 1e3):
        mean = np.array([part, 1, 2])
        w = minimise_over_ball(second, mean, 5.0)
        assert np.linalg.norm(w) == pytest.approx(5.0, rel=1e-12)
        assert_optimal(second, mean, 5.0, w)


# --- bad input ---


@pytest.mark.parametrize(
    ("share", "n_pairs"), [(0.07, 7), (0.071, 8), (2.2, 220), (1e-9, 1)]
)
def test_a_share_of_the_rows_is_rounded_up_but_for_noise(share, n_pairs):
    """0.07 * 100 and 2.2 * 100 are a little more than 7 and 220."""
    X, y = problem(100)
    assert LCBR(share, random_state=0).fit(X, y).n_rows_seen_ == n_pairs


def test_a_piece_after_a_refused_fit_is_refused():
    X, y = problem(d=3)
    solver = BBR().fit(X, y)
    wide = sparse.csr_array(([1.0, 2.0], ([0, 1], [3, 999_999])), shape=(2, 1_000_000))
    for learn, says in ((solver.fit, ""), (solver.partial_fit, "3")):
        with raises(InputError, says):
            learn(wide, [1, -1])

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
    scales = np.geomspace(0.1, 10, d)
    X = rng.standard_normal((n, d)) * scales + 0.3 * (y > 0)[:, None] + offset
    return X, y


def noting_moments(solver):
    """Return the solver, and a list to which a fit adds the moments it minimises."""
    minimised = []
    minimise = solver._minimise

    def note_and_minimise(moments):
        minimised.append(moments)
        minimise(moments)

    solver._minimise = note_and_minimise
    return solver, minimised


def moments_of_fit(solver, X, y):
    """Fit a solver, and return the moments it minimises."""
    solver, minimised = noting_moments(solver)
    solver.fit(X, y)
    return minimised[0]


def assert_same_moments(moments, mean, second, tolerance=1e-12):
    mean_tol = tolerance * np.abs(mean).max()
    second_tol = tolerance * np.abs(second).max()
    assert_allclose(moments.mean, mean, rtol=0, atol=mean_tol)
    assert_allclose(moments.second, second, rtol=0, atol=second_tol)


CONTAINERS = {"dense": np.asarray, "csr": sparse.csr_array}
each_container = pytest.mark.parametrize(
    "container", CONTAINERS.values(), ids=CONTAINERS
)


# --- moments and pairs ---


@pytest.mark.promise("R12")
@each_container
@pytest.mark.parametrize("accumulate", ["moments", "pairs"])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (9, 4), (60, 5), (40, 19)])
def test_both_ways_follow_algorithm_1(container, accumulate, n, d):
    X, y = problem(n, d)
    X *= np.random.default_rng(1).random((n, d)) < 0.4  # some rows are empty
    moments = moments_of_fit(BBR(accumulate=accumulate), container(X), y)
    assert_same_moments(moments, *pair_moments(X, y))


def constant_by_class():
    """A feature that is constant in each class."""
    X, y = problem(2000, 6, share=0.5)
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
        pytest.param(constant_by_class, np.asarray, id="constant by class"),
        pytest.param(constant_by_class, sparse.csr_array, id="constant by class, csr"),
        # not as CSR, whose rows are summed from 0
        pytest.param(far_from_0, np.asarray, id="far from 0"),
        pytest.param(sorted_with_a_heavy_tail, np.asarray, id="sorted, heavy tail"),
    ],
)
def test_long_sums_keep_their_digits(monkeypatch, container, block_rows, rows):
    """Up to a million pairs, and blocks of both classes, full and not."""
    X, y = rows()
    by_pairs = moments_of_fit(BBR(accumulate="pairs"), X, y)
    if block_rows:
        monkeypatch.setattr(bbr_module, "_BLOCK_ROWS", block_rows)
        monkeypatch.setattr(bbr_module, "_SLICE_PRODUCTS", 5000)
    by_classes = moments_of_fit(BBR(), container(X), y)
    assert_same_moments(by_classes, by_pairs.mean, by_pairs.second)


@pytest.mark.parametrize("radius", [None, 0.1, 1e3])
@pytest.mark.parametrize(
    ("n", "constant"), [(300, 0.1), (3000, 2000.1), (30_000, 1e5 / 3)]
)
def test_a_constant_column_of_csr_rows_is_flat(n, constant, radius):
    """What rounding leaves of it is neither refused nor divided by."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 4))
    y = np.where(X @ [1.0, 2.0, 0.0, -1.0] + rng.standard_normal(n) > 1, 1, -1)
    with_constant = np.column_stack([X, np.full(n, constant)])
    w = BBR(radius).fit(sparse.csr_array(with_constant), y).coef_
    expected = BBR(radius).fit(X, y).coef_
    assert_allclose(w, [*expected, 0], rtol=0, atol=1e-8 * np.abs(expected).max())


def test_with_more_features_than_rows_the_shortest_exact_w_is_taken():
    """All pairs fit exactly: w'(x_i - x_j) = 1."""
    X, y = problem(12, 30)
    w = BBR().fit(X, y).coef_
    pos, neg = X[y > 0], X[y < 0]
    differences = (pos[:, None] - neg[None]).reshape(-1, 30)
    shortest = np.linalg.pinv(differences).sum(axis=1)
    assert_allclose(differences @ w, 1, atol=1e-8)
    assert_allclose(w, shortest, atol=1e-8 * np.abs(w).max())


@pytest.mark.parametrize("radius", [None, 0.3, 3e-3])
def test_the_weights_are_those_of_the_definition(radius):
    X, y = problem(60, 5)
    w = minimiser(*pair_moments(X, y), radius)
    assert_allclose(BBR(radius).fit(X, y).coef_, w, rtol=0, atol=1e-9 * np.abs(w).max())


# --- pieces ---


@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.parametrize("first", CONTAINERS)
@pytest.mark.parametrize("later", CONTAINERS)
def test_partial_fits_equal_one_fit(first, later, offset):
    """The first pieces have rows of one class only, and may be of another form."""
    X, y = problem(200, 6, offset=offset)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    pieces = BBR(0.3)
    for start, stop in ((0, 7), (7, 8)):
        rows = CONTAINERS[first](X[start:stop])
        pieces.partial_fit(rows, y[start:stop], classes=[-1, 1])
        assert not pieces.coef_.any()
    for start, stop in ((8, 190), (190, 200)):
        rows = CONTAINERS[later](X[start:stop])
        pieces.partial_fit(rows, y[start:stop], classes=[-1, 1])
        assert pieces.coef_.any()
    whole = BBR(0.3).fit(X, y)
    assert_allclose(pieces.coef_, whole.coef_, rtol=1e-9)
    assert pieces.n_rows_seen_ == 200
    assert pieces.n_iter_ == 4


@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_a_partial_fit_to_the_same_rows_again_changes_nothing(offset):
    X, y = problem(200, 6, offset=offset)
    solver = BBR(0.3).fit(X, y)
    w = solver.coef_
    assert_allclose(solver.partial_fit(X, y).coef_, w, rtol=1e-9)


def test_loop_over_pairs_has_no_partial_fit():
    X, y = problem()
    solver = BBR(accumulate="pairs").fit(X, y)
    assert not hasattr(solver, "partial_fit")
    with pytest.raises(AttributeError) as refused:
        solver.partial_fit(X, y)
    assert 'partial_fit needs accumulate="moments"' in str(refused.value.__cause__)


def test_a_partial_fit_cannot_continue_a_loop_over_pairs():
    X, y = problem()
    solver = BBR(accumulate="pairs").fit(X, y)
    with raises(InputError, "sums fit"):
        solver.set_params(accumulate="moments").partial_fit(X, y)


def test_stopped_partial_fit_changes_nothing(monkeypatch):
    monkeypatch.setattr(bbr_module, "_BLOCK_ROWS", 10)
    X, y = problem()
    solver = BBR().partial_fit(X[:30], y[:30])
    w_of_first_piece = solver.coef_
    solver.partial_fit(X[30:] + 5, y[30:], trace=lambda _: True)
    assert_array_equal(solver.coef_, w_of_first_piece)
    assert solver.n_rows_seen_ == 30
    assert solver.n_iter_ == 1
    solver.partial_fit(X[30:], y[30:])
    assert_allclose(solver.coef_, BBR().fit(X, y).coef_, rtol=1e-10)


# --- trace ---


@pytest.fixture
def short_slices(monkeypatch):
    """Let fits call their traces often."""
    monkeypatch.setattr(bbr_module, "_BLOCK_ROWS", 10)
    monkeypatch.setattr(bbr_module, "_SLICE_PRODUCTS", 300)


each_solver = pytest.mark.parametrize(
    "solver", [BBR(), BBR(accumulate="pairs"), LCBR(500, random_state=0)], ids=repr
)


@each_container
@each_solver
@pytest.mark.usefixtures("short_slices")
def test_a_trace_is_called_between_slices(container, solver):
    """The weights are 0 until the last call."""
    X, y = problem()
    rows_seen = []
    has_weights = []

    def note(solver):
        rows_seen.append(solver.n_rows_seen_)
        has_weights.append(solver.coef_.any())

    solver.fit(container(X), y, trace=note)
    assert len(rows_seen) > 3
    assert rows_seen == sorted(set(rows_seen))
    assert not any(has_weights[:-1])
    assert has_weights[-1]


@each_container
@each_solver
@pytest.mark.usefixtures("short_slices")
def test_a_trace_ends_a_fit_between_slices(container, solver):
    X, y = problem()
    whole = solver.fit(container(X), y).coef_
    n_rows_of_fit = solver.n_rows_seen_
    solver.fit(container(X), y, trace=lambda solver: solver.n_rows_seen_ > 0)
    assert 0 < solver.n_rows_seen_ < n_rows_of_fit
    if isinstance(solver, LCBR):  # keeps what it has learnt
        fewer = LCBR(solver.n_rows_seen_, random_state=0).fit(container(X), y)
        assert_allclose(solver.coef_, fewer.coef_, rtol=1e-9)
    else:
        assert not solver.coef_.any()
    assert_allclose(solver.fit(container(X), y).coef_, whole, rtol=1e-10)


def test_a_trace_is_called_after_a_bounded_number_of_products():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2500, 1000))
    y = np.where(np.arange(2500) % 2, 1, -1)
    rows_seen = []

    def note(solver):
        rows_seen.append(solver.n_rows_seen_)
        return solver.n_rows_seen_ > 1500

    BBR().fit(X, y, trace=note)
    assert max(np.diff(rows_seen)) * 1000**2 <= 2 * 2**29


# --- LCBR ---


@each_container
@pytest.mark.parametrize(("n_pairs", "slice_pairs"), [(1, 2**13), (7, 3), (500, 3)])
def test_twin_follows_algorithm_2(monkeypatch, container, n_pairs, slice_pairs):
    monkeypatch.setattr(bbr_module, "_SLICE_PAIRS", slice_pairs)
    X, y = problem(40, 9)
    n_neg = int((y < 0).sum())
    n_pos = 40 - n_neg
    numbers = np.random.default_rng(3).integers(n_pos * n_neg, size=n_pairs)
    pairs = [divmod(number, n_neg) for number in numbers.tolist()]
    mean, second = pair_moments(X, y, pairs)
    solver, minimised = noting_moments(LCBR(n_pairs, radius=0.2, random_state=3))
    solver.fit(container(X), y)
    assert_same_moments(minimised[0], mean, second)
    assert_allclose(solver.coef_, minimise_over_ball(second, mean, 0.2), atol=1e-9)
    assert solver.n_rows_seen_ == n_pairs
    assert solver.n_iter_ == 1


def test_pairs_are_drawn_uniformly():
    """Each row has a feature of its own, so that the moments count the pairs."""
    solver = LCBR(60_000, random_state=np.random.default_rng(0))
    y = np.array([1, 1, -1, -1, -1])
    moments = moments_of_fit(solver, np.eye(5), y)
    counts = -moments.second[:2, 2:] * 60_000
    assert_allclose(counts.sum(), 60_000)
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000)


# --- the minimiser over a ball ---


def assert_optimal(second, mean, radius, w):
    """Check the conditions of Karush, Kuhn and Tucker, which suffice in a convex
    problem.
    """
    residual = mean - second @ w
    length = np.linalg.norm(w)
    scale = max(np.linalg.norm(mean), np.linalg.norm(second, 2) * length, 1e-300)
    multiplier = 0.0
    if radius is not None:
        assert length <= radius * (1 + 1e-12)
        if length >= radius * (1 - 1e-12):
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
    axes, _triangle = np.linalg.qr(rng.standard_normal((n, n)))
    curvatures = np.zeros(n)
    curvatures[:rank] = 10.0 ** rng.uniform(-spread, 0, rank)
    second = (axes * curvatures) @ axes.T * 10.0 ** data.draw(st.integers(-8, 8))
    second = (second + second.T) / 2
    in_range = data.draw(st.booleans())
    mean = second @ rng.standard_normal(n) if in_range else rng.standard_normal(n)
    mean *= 10.0 ** data.draw(st.integers(-8, 8))
    radius = data.draw(st.sampled_from([None, 1e-6, 0.1, 1.0, 1e5]))
    has_no_minimiser = radius is None and not in_range and rank < n
    if has_no_minimiser:
        with raises(InputError):
            minimise_over_ball(second, mean)
    else:
        assert_optimal(second, mean, radius, minimise_over_ball(second, mean, radius))


FLAT = np.zeros((3, 3))
ROUND = np.eye(3)
FLAT_IN_PART = np.diag([0.0, 1.0, 2.0])
MEAN = np.array([3.0, 0.0, 4.0])


def test_a_linear_function_is_least_on_the_sphere():
    assert_allclose(minimise_over_ball(FLAT, MEAN, 2.0), [1.2, 0, 1.6], rtol=1e-15)


@pytest.mark.parametrize(
    ("second", "mean", "radius"),
    [
        pytest.param(FLAT, np.zeros(3), 2.0, id="flat, in a ball"),
        pytest.param(FLAT, np.zeros(3), None, id="flat"),
        pytest.param(ROUND, np.zeros(3), 1.0, id="round, in a ball"),
    ],
)
def test_a_function_without_a_mean_is_least_at_0(second, mean, radius):
    assert_array_equal(minimise_over_ball(second, mean, radius), np.zeros(3))


def test_a_mean_that_counts_as_in_range_is_left_out_where_the_function_is_flat():
    w = minimise_over_ball(FLAT, MEAN, mean_in_range=True)
    assert_array_equal(w, np.zeros(3))


@pytest.mark.parametrize(
    "radius",
    [
        pytest.param(5.0, id="on the sphere"),
        pytest.param(1e3, id="within"),
        pytest.param(1e120, id="whose square is infinite"),
        pytest.param(1e308, id="nearly infinite"),
    ],
)
def test_a_round_function_is_least_at_its_mean(radius):
    assert_allclose(minimise_over_ball(ROUND, MEAN, radius), MEAN, rtol=1e-15)


@pytest.mark.parametrize("radius", [None, 5.0])
def test_of_many_minimisers_the_shortest_is_taken(radius):
    w = minimise_over_ball(FLAT_IN_PART, [0, 1, 2], radius)
    assert_allclose(w, [0, 1, 1], atol=1e-15)


def test_of_many_minimisers_on_the_sphere_the_shortest_is_taken():
    mean = np.array([0, 1, 2])
    w = minimise_over_ball(FLAT_IN_PART, mean, 1.0)
    assert w[0] == 0
    assert_optimal(FLAT_IN_PART, mean, 1.0, w)


@pytest.mark.parametrize("part", [1e-6, 1e-3, 1.0, 1e3])
def test_the_rest_of_the_radius_goes_where_the_function_is_flat(part):
    """The mean has a part out of range, by little or by much."""
    mean = np.array([part, 1, 2])
    w = minimise_over_ball(FLAT_IN_PART, mean, 5.0)
    assert np.linalg.norm(w) == pytest.approx(5.0, rel=1e-12)
    assert_optimal(FLAT_IN_PART, mean, 5.0, w)


# --- bad input ---


@pytest.mark.parametrize(
    ("share", "n_pairs"),
    [
        pytest.param(0.07, 7, id="a little more than 7"),
        pytest.param(0.071, 8, id="7.1"),
        pytest.param(2.2, 220, id="a little more than 220"),
        pytest.param(1e-9, 1, id="nearly none"),
    ],
)
def test_a_share_of_the_rows_is_rounded_up_but_for_noise(share, n_pairs):
    X, y = problem(100)
    assert LCBR(share, random_state=0).fit(X, y).n_rows_seen_ == n_pairs


def test_a_piece_after_a_refused_fit_is_refused():
    X, y = problem(d=3)
    solver = BBR().fit(X, y)
    wide = sparse.csr_array(([1.0, 2.0], ([0, 1], [3, 999_999])), shape=(2, 1_000_000))
    with raises(InputError):
        solver.fit(wide, [1, -1])
    with raises(InputError, "3"):  # the features of the earlier fit
        solver.partial_fit(wide, [1, -1])

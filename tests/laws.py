"""What every solver must fulfil, as functions of its factory.

``make(**params)`` returns an unfitted solver that is soon done; parameters that it does
not have are ignored (see `quick`). ``test_laws.py`` runs each law over every member of
the registries.
"""

import warnings
from itertools import pairwise

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from precbench.core.errors import InputError
from precbench.ranking.metrics import precision_at_k
from precbench.solvers import LinearRanker
from precbench.solvers.common.driver import Fit, fit_pieces_together, fit_together
from tests.sentences import raises

QUICK = {"epochs": 3, "batch_size": 50, "random_state": 0, "max_iter": 200}
FEW_TREES = {"max_iter": 10, "n_estimators": 5, "n_components": 10, "folds": 2}


def problem(n=400, d=7, share=0.2, seed=0, integers=False):
    """Return rows, and labels -1 and 1 that follow a noisy linear score."""
    rng = np.random.default_rng(seed)
    if integers:
        X = rng.integers(-3, 4, (n, d)).astype(float)
    else:
        X = rng.standard_normal((n, d))
    noisy = X @ rng.standard_normal(d) + rng.standard_normal(n)
    y = np.full(n, -1)
    y[np.argsort(-noisy)[: int(share * n)]] = 1
    return X, y


def quick(factory, **params):
    """Return a solver that is soon done, with only those parameters that it has."""
    solver = clone(factory())
    known = solver.get_params()
    few = {} if isinstance(solver, LinearRanker) else FEW_TREES
    wanted = QUICK | few | params
    return solver.set_params(
        **{name: value for name, value in wanted.items() if name in known}
    )


def is_linear(factory):
    return isinstance(factory(), LinearRanker)


def weights(solver):
    """Return w with the intercept, if any, as its last entry.

    Without w, scores of other rows.
    """
    if not isinstance(solver, LinearRanker):
        X, _ = problem(seed=1)
        return solver.scores_after(X, solver.n_iter_)
    return np.append(solver.coef_, getattr(solver, "intercept_", []))


def dense_equals_sparse(make):
    """To the last digits where rows are visited in an order, else to the tolerance."""
    X, y = problem(integers=True)
    with_long_indices = sparse.csr_matrix(X)
    with_long_indices.indices = with_long_indices.indices.astype(np.int64)
    with_long_indices.indptr = with_long_indices.indptr.astype(np.int64)
    halves = in_halves(X)
    atol = 1e-10 if "epochs" in make().get_params() else 1e-6
    solver = make().fit(X, y)
    for rows in (
        sparse.csr_matrix(X),
        sparse.csr_array(X),
        sparse.coo_matrix(X),
        halves,
        sparse.csc_array(X),
        with_long_indices,
        X.astype(np.float32),
    ):
        assert_allclose(weights(make().fit(rows, y)), weights(solver), atol=atol)
    scores = solver.decision_function(X)
    assert_allclose(solver.decision_function(halves), scores, atol=1e-10)


def in_halves(X):
    """Return a sparse matrix with two entries at each place, whose sum counts."""
    halves = sparse.csr_matrix(np.hstack([X, X]) / 2)
    columns = halves.indices % X.shape[1]
    twice = sparse.csr_matrix((halves.data, columns, halves.indptr), shape=X.shape)
    assert twice.nnz == 2 * np.count_nonzero(X)
    return twice


def trace_changes_nothing(make):
    X, y = problem()

    class Trace:
        next_rows = 1
        calls = 0

        def __call__(self, solver):
            assert np.isfinite(weights(solver)).all()
            self.calls += 1
            self.next_rows = solver.n_rows_seen_ + 20

    trace = Trace()
    traced = make().fit(X, y, trace=trace)
    assert_array_equal(weights(traced), weights(make().fit(X, y)))
    assert trace.calls >= 2
    ended = make().fit(X, y, trace=lambda solver: True)
    assert ended.n_rows_seen_ == 0
    assert not weights(ended).any()


def read_only_inputs_stay_unchanged(make):
    X, y = problem()
    original = X.copy()
    X.flags.writeable = False
    y.flags.writeable = False
    make().fit(X, y)
    assert_array_equal(X, original)
    S = sparse.csr_matrix(X)
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    make().fit(S, y)
    assert_array_equal(S.toarray(), original)


def permuted_features_permute_the_weights(make):
    X, y = problem(integers=True)
    order = np.random.default_rng(2).permutation(X.shape[1])
    permuted = make().fit(X[:, order], y)
    assert_allclose(permuted.coef_, make().fit(X, y).coef_[order], atol=1e-5)


def separable_rows_are_ranked_without_mistake(make):
    """The struct surrogate need not separate for k < n_pos (kar2015, 3.1)."""
    X, y = separable_problem()
    params = make().get_params()
    has_struct = (
        params.get("surrogate") == "struct" or params.get("objective") == "prec@k"
    )
    ks = [1.0] if has_struct and "k" in params else [0.25, 1.0]
    strong = {"epochs": 60, "batch_size": 500, "n_estimators": 100, "max_iter": 200}
    if "objective" in params:
        strong |= {"C": 1e4, "max_iter": 2000}
    solver = None
    for k in ks:
        if solver is None or "k" in params:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "the risk has no minimiser")
                solver = make(k=k, **strong).fit(X, y)
        assert precision_at_k(y, solver.decision_function(X), k) == 1.0


def separable_problem():
    X = np.random.default_rng(0).standard_normal((500, 5))
    margin = X @ np.array([1.0, -2.0, 0.5, 0.0, 1.0])
    is_clear = abs(margin) > 0.5
    return X[is_clear], np.where(margin[is_clear] > 0, 1, -1)


def of_a_k_beyond_the_positives_all_of_them_are_taken(make):
    """With one warning, where k concerns the objective at all."""
    params = make().get_params()
    if "k" not in params:
        return
    k_concerns = params.get("objective", "prec@k") in ("prec@k", "rank:ndcg")
    X, y = problem()

    def fitted(k):
        """Return the weights, and the number of warnings about k."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            w = weights(make(k=k).fit(X, y))
        message = "exceeds the number of positives, 80"
        about_k = [warning for warning in caught if message in str(warning.message)]
        for warning in about_k:
            assert warning.category is ConvergenceWarning
            assert warning.filename == __file__
        return w, len(about_k)

    all_of_them, n_warnings = fitted(80)
    assert n_warnings == 0
    for k in (81, 5000, "100 %"):
        w, n_warnings = fitted(k)
        assert_array_equal(w, all_of_them)
        assert n_warnings == (1 if k_concerns else 0)
    for k in (1, "1 %"):
        _, n_warnings = fitted(k)
        assert n_warnings == 0


def rows_of_zeros_give_equal_scores(make):
    """Weights of zero, where there are weights."""
    X, y = problem()
    solver = make().fit(np.zeros_like(X), y)
    assert np.ptp(solver.decision_function(X)) == 0
    assert not np.any(getattr(solver, "coef_", 0))
    X[::2] = 0
    assert np.isfinite(weights(make().fit(sparse.csr_matrix(X), y))).all()


def a_refused_fit_leaves_no_weights_for_its_rows(make):
    """The width of the rows is then the new one and that of the weights the old one."""
    X, y = problem()
    solver = make().fit(X[:, :3], y)
    of_three_features = getattr(solver, "coef_", None)
    with raises(InputError, "class"):
        solver.fit(X, np.ones(400))
    assert getattr(solver, "coef_", None) is of_three_features
    for rows in (X, sparse.csr_matrix(X)):
        with raises(InputError, "7 3"):
            solver.decision_function(rows)


def a_sparse_matrix_of_no_valid_form_is_refused(make):
    X, y = problem()
    for column in (7, -1, 2**33):
        malformed = with_column(X, column)
        with raises(ValueError):
            make().fit(malformed, y)
    solver = make().fit(X, y)
    for malformed in malformed_matrices(X):
        with raises(InputError):
            make().fit(malformed, y)
        with raises(InputError):
            solver.decision_function(malformed)


def with_parts(X, form, **parts):
    """Return a sparse matrix of a form, some of whose arrays are replaced."""
    S = sparse.csr_array(X).asformat(form)
    for part, value in parts.items():
        setattr(S, part, value)
    return S


def with_column(X, column):
    """Return a sparse matrix with an entry in a column that it does not have."""
    indices = sparse.csr_array(X).indices.astype(np.int64)
    indices[5] = column
    return with_parts(X, "csr", indices=indices)


def malformed_matrices(X):
    n = len(X)
    pointers = sparse.csr_array(X).indptr
    falling = pointers.copy()
    falling[200] = 10**9
    yield with_parts(X, "csr", indptr=falling)
    ending_at_0 = falling.copy()
    ending_at_0[n] = 0
    yield with_parts(
        X,
        "csr",
        indptr=ending_at_0,
        data=np.zeros(0),
        indices=np.zeros(0, dtype=np.int32),
    )
    yield with_parts(X, "csr", indptr=pointers[:-1])
    yield with_parts(X, "csr", indices=np.zeros(5, dtype=np.int32))
    yield with_parts(X, "csc", indices=np.full(X.size, n, dtype=np.int32))
    rows = np.full(X.size, n)
    columns = np.zeros(X.size, dtype=np.int64)
    yield with_parts(X, "coo", coords=(rows, columns))


def no_last_bit_decides_on_a_training_row(make):
    """`predict` gives the same alone, in any order and form, and in other digits."""
    X, y = problem(integers=True)  # with tied rows
    solver = make().fit(X, y)
    marked = solver.predict(X)
    order = np.random.default_rng(3).permutation(len(X))
    assert_array_equal(solver.predict(X[order]), marked[order])
    alone = [solver.predict(row[None])[0] for row in X[:40]]
    assert_array_equal(alone, marked[:40])
    assert_array_equal(solver.predict(sparse.csr_matrix(X)), marked)
    for factor in (1 - 1e-12, 1 + 1e-12):
        assert_array_equal(solver.predict(X * factor), marked)
    other_digits = 1 + 1e-12 * np.random.default_rng(4).uniform(-1, 1, X.shape)
    assert_array_equal(solver.predict(X * other_digits), marked)


def an_overflow_is_reported(make):
    """Where no square overflows, weights are finite, or the fit is refused."""
    X, y = problem()
    with raises(InputError, "200"):
        make().fit(X * 1e200, y)
    for scale in (1e75, 1e18, 1e-310):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            traced = make().fit(X * scale, y, trace=lambda solver: False)
            try:
                fitted = make().fit(X * scale, y)
            except InputError as error:
                assert "overflow" in str(error)
                assert traced.overflowed
            else:
                assert np.isfinite(weights(fitted)).all()
                assert not traced.overflowed


def float32_gives_the_bits_of_its_values_as_float64(make):
    X, y = problem(d=15)
    for rows in (
        X.astype(np.float32),
        sparse.csr_matrix(np.where(X > 0, X, 0), dtype=np.float32),
    ):
        solver = make()
        trained_on = fit_and_return_rows(solver, rows, y)
        is_taken_as_it_is = np.shares_memory(values_of(trained_on), values_of(rows))
        assert is_taken_as_it_is == (np.float32 in solver.dtypes)
        rows_64 = rows.astype(np.float64)
        solver_64 = make().fit(rows_64, y)
        scores = solver.decision_function(rows)
        assert_array_equal(scores, solver_64.decision_function(rows_64))
        assert_array_equal(scores, solver.decision_function(rows_64))
        if isinstance(solver, LinearRanker):
            assert_array_equal(weights(solver), weights(solver_64))


def fit_and_return_rows(solver, rows, y):
    """Fit a solver, and return the rows as its own `_fit` takes them."""
    fit = solver._fit
    seen = []

    def seeing_fit(X, *arguments):
        seen.append(X)
        fit(X, *arguments)

    solver._fit = seeing_fit
    solver.fit(rows, y)
    del solver._fit
    return seen[0]


def values_of(rows):
    return rows.data if sparse.issparse(rows) else rows


LINEAR_LAWS = [permuted_features_permute_the_weights]

SOLVER_LAWS = [
    dense_equals_sparse,
    trace_changes_nothing,
    read_only_inputs_stay_unchanged,
    separable_rows_are_ranked_without_mistake,
    of_a_k_beyond_the_positives_all_of_them_are_taken,
    rows_of_zeros_give_equal_scores,
    a_refused_fit_leaves_no_weights_for_its_rows,
    a_sparse_matrix_of_no_valid_form_is_refused,
    no_last_bit_decides_on_a_training_row,
    an_overflow_is_reported,
    float32_gives_the_bits_of_its_values_as_float64,
]


# --- solvers with partial_fit ---


def in_pieces(make, X, y, cuts):
    solver = make()
    for start, stop in pairwise(cuts):
        solver.partial_fit(X[start:stop], y[start:stop], classes=[-1, 1])
    return solver


def pieces_equal_the_whole(make):
    """In whole batches, to the last bit; sums over all rows, to the last digits."""
    X, y = problem()
    whole = make().partial_fit(X, y)
    params = make().get_params()
    any_lengths = [*range(30), *range(30, 100, 7), 250, 400]
    all_cuts = [any_lengths]
    if "batch_size" in params:
        all_cuts = [range(0, 401, 50), range(0, 401, 100)]
    rtol = 0 if "epochs" in params else 1e-9
    for cuts in all_cuts:
        pieces = in_pieces(make, X, y, cuts)
        assert_allclose(weights(pieces), weights(whole), rtol=rtol, atol=0)
        assert pieces.n_rows_seen_ == whole.n_rows_seen_
        if "epochs" in params:
            assert pieces.t_ == whole.t_


def an_unshuffled_fit_is_a_chain_of_partial_fits(make):
    if "epochs" not in make().get_params():
        return
    X, y = problem()
    chain = make()
    for _ in range(3):
        chain.partial_fit(X, y)
    assert_array_equal(weights(make(shuffle=False, epochs=3).fit(X, y)), weights(chain))


def the_first_call_decides_about_averaging(make):
    if "average" not in make().get_params():
        return
    X, y = problem()
    for first in (False, True):
        changed = make(average=first).partial_fit(X, y)
        changed.set_params(average=not first).partial_fit(X, y)
        chain = make(average=first).partial_fit(X, y).partial_fit(X, y)
        assert_array_equal(weights(changed), weights(chain))


def later_pieces_have_the_announced_labels(make):
    X, y = problem()
    with raises(InputError, "-1 1"):
        make().partial_fit(X, y).partial_fit(X, np.where(y > 0, 2, -1))


INCREMENTAL_LAWS = [
    pieces_equal_the_whole,
    an_unshuffled_fit_is_a_chain_of_partial_fits,
    the_first_call_decides_about_averaging,
    later_pieces_have_the_announced_labels,
]


# --- solvers that go through rows in passes ---


class Path:
    """A trace that keeps what it sees every 100 rows; it may end the fit."""

    def __init__(self, most_rows=np.inf):
        self.next_rows = 1
        self.most_rows = most_rows
        self.seen = []

    def __call__(self, solver):
        state = (
            solver.n_iter_,
            solver.n_rows_seen_,
            *weights(solver),
            getattr(solver, "n_empty_batches_", 0),
        )
        self.seen.append(state)
        self.next_rows = solver.n_rows_seen_ + 100
        return solver.n_rows_seen_ >= self.most_rows


def _fit(make, change):
    return Fit(make(**change), Path(change.get("most_rows", np.inf)))


CHANGES = [
    {},
    {"eta0": 7.0, "C": 0.1, "k": 1, "beta": 0.3, "average": False, "keep": "last"},
    {"eta0": 1e150, "C": 1e150, "epochs": 2},  # scores overflow
    {"radius": 0.5, "k": "9 %", "epochs": 1, "keep": "best"},
    {"eta0": 0.01, "reg": 0.1, "most_rows": 150},
]


def _fit_alone_and_together(make, changes, fit_alone, fit_all):
    """Fit equal solvers both ways, and compare what their traces saw, bit for bit."""
    alone = [_fit(make, change) for change in changes]
    together = [_fit(make, change) for change in changes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for solver, trace in alone:
            fit_alone(solver, trace)
        fit_all(together)
    for one, other in zip(alone, together, strict=True):
        bits = np.array(one.trace.seen).tobytes()
        assert np.array(other.trace.seen).tobytes() == bits
        assert one.solver.n_iter_ == other.solver.n_iter_


def several_learn_together_as_each_alone(make):
    """Whatever becomes of the others."""
    X, y = problem()
    y[100:150] = -1
    scaled = X * np.where(np.arange(len(y)) < 200, 1.0, 1e70)[:, None]
    for rows in (
        X,
        X.astype(np.float32),
        sparse.csr_matrix(np.where(X > 0, X, 0.0)),
        scaled,
    ):
        _fit_alone_and_together(
            make,
            CHANGES,
            lambda solver, trace, rows=rows: solver.fit(rows, y, trace=trace),
            lambda fits, rows=rows: fit_together(fits, rows, y),
        )


def several_learn_together_from_pieces(make):
    X, y = problem()
    order = np.arange(200, dtype=np.int32)
    pieces = [(X[:200], y[:200], order), (X[200:], y[200:], order)]
    _fit_alone_and_together(
        make,
        [change for change in CHANGES if change.get("keep") != "best"],
        lambda solver, trace: solver.fit_pieces(7, lambda: pieces, trace),
        lambda fits: fit_pieces_together(fits, 7, lambda: pieces),
    )

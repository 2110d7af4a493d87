"""The mini-batch methods, and what all solvers share: memory, orders, sums of rows.

Their twins: test_twins.py; laws: test_laws.py.
"""

import itertools
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

from precbench.core.errors import InputError
from precbench.model.model import Model, _can_be_kept
from precbench.ranking.metrics import f1, f1_max, precision_at_k
from precbench.runner.recorder import Recorder
from precbench.solvers import (
    BBR,
    LCBR,
    OAM,
    PGD,
    SOLVERS,
    AdaOAM,
    IRPush,
    OnePMB,
    PNormPush,
    TwoPMB,
)
from precbench.solvers.common import base
from precbench.solvers.common.base import memory_limit, untraced
from precbench.solvers.common.driver import Fit, fit_together, visiting_order
from precbench.solvers.common.rows import as_rows, linear_scores, weighted_sum
from precbench.solvers.minibatch.estimator import reservoir_sample
from precbench.solvers.minibatch.kernel import MOST_CANDIDATES
from tests.laws import problem, weights
from tests.sentences import raises
from tests.test_twins import MINIBATCH, make


class Candidate(NamedTuple):
    """A solver of the table of twins, and its parameters."""

    name: str
    params: dict[str, Any]

    def solver(self):
        return make(self.name, **self.params)


MORE_THAN_AT_ONCE = [
    Candidate("sgd-avg", {"eta0": eta0})
    for eta0 in np.geomspace(1e-3, 1e3, 2 * MOST_CANDIDATES + 1)
]
EACH_RULE = [
    Candidate(name, {"batch_size": 200, "k": 0.7, "epochs": 1, "random_state": 0})
    for name in MINIBATCH
    if name != "1pmb-f1"  # whose w is longer
]


@pytest.mark.parametrize(
    "candidates",
    [
        pytest.param(MORE_THAN_AT_ONCE, id="more than at once"),
        pytest.param(EACH_RULE, id="each rule"),
    ],
)
def test_candidates_learn_together_as_each_alone(candidates):
    X, y = problem(2000)
    together = [candidate.solver() for candidate in candidates]
    fit_together([Fit(solver, untraced) for solver in together], X, y)
    for candidate, solver in zip(candidates, together, strict=True):
        alone = candidate.solver().fit(X, y)
        assert_array_equal(solver.coef_, alone.coef_)


# --- memory ---


def two_rows(n_features):
    """Return a positive and a negative with an entry each, the last in its last column.

    A matrix of so many columns is small only if it stays sparse.
    """
    columns = [3, n_features - 1]
    return sparse.csr_array(([1.0, 2.0], ([0, 1], columns)), shape=(2, n_features))


@pytest.mark.promise("R4")
@pytest.mark.parametrize(
    ("solver", "needed"),
    [
        (BBR(), "67,056.2"),
        (LCBR(), "67,055.2"),
        (PGD(), "7,450.6"),
        (AdaOAM(), "14,901.2"),
        (OAM(reservoir_size=100_000), "1,490.1"),
        (IRPush(), "67,055.2"),
        (PNormPush(method="newton"), "67,055.2"),
    ],
    ids=repr,
)
def test_too_many_features_are_reported_with_both_sizes(solver, needed):
    X = two_rows(1_000_000)
    with raises(InputError, f"1,000,000 {needed}"):
        solver.fit(X, [1, -1])
    if hasattr(solver, "partial_fit"):
        with raises(InputError, f"1,000,000 {needed}"):
            clone(solver).partial_fit(X, [1, -1])


@pytest.mark.promise("R4")
@pytest.mark.parametrize("name", SOLVERS)
def test_one_wrong_index_does_not_fill_the_memory(monkeypatch, name):
    monkeypatch.setattr(base, "memory_limit", lambda: 2**33)
    X = two_rows(2**31 - 1)
    solver = SOLVERS[name]()
    places = "2,147,483,647 8.0"
    with raises(InputError, places):
        solver.fit(X, [1, -1])
    if _can_be_kept(solver):
        with raises(InputError, places):
            Model.fit(X, [1, -1], name, scaling="unit")
    if hasattr(solver, "fit_pieces"):
        with raises(InputError, places):
            solver.fit_pieces(2**31 - 1, list)


@pytest.mark.promise("R4")
def test_the_limit_of_the_container_counts(tmp_path):
    container_limit = tmp_path / "memory.max"
    container_limit.write_text("1048576\n")
    assert memory_limit(container_limit) == 2**20


@pytest.mark.promise("R4")
@pytest.mark.parametrize("text", ["max\n", f"{2**62}\n"])
def test_a_container_without_a_limit_of_its_own_does_not_count(tmp_path, text):
    container_limit = tmp_path / "memory.max"
    container_limit.write_text(text)
    without_a_container = memory_limit(tmp_path / "no such file")
    assert memory_limit(container_limit) == without_a_container


@pytest.mark.promise("R4")
def test_the_limit_of_the_process_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(base.resource, "getrlimit", lambda _: (2**22, -1))
    assert memory_limit(tmp_path / "no such file") == 2**22


# --- mini-batch methods ---


@pytest.mark.parametrize(
    ("order", "places"),
    [
        pytest.param([0.5, 1.0], "order", id="fractions"),
        pytest.param([True, False], "order", id="a mask"),
        pytest.param([[0, 1]], "order", id="a table"),
        pytest.param([0, 400], "0 399", id="a row that is not there"),
    ],
)
def test_an_invalid_order_is_refused(order, places):
    X, y = problem()
    with raises(InputError, places):
        make("sgd-avg").partial_fit(X, y, order=order)


def assert_same_weights(one, other):
    X, y = problem()
    one.set_params(random_state=0).fit(X, y)
    other.set_params(random_state=0).fit(X, y)
    assert_array_equal(weights(one), weights(other))


def test_a_batch_has_at_most_all_rows():
    assert_same_weights(
        make("sgd-avg", batch_size=400), make("sgd-avg", batch_size=10**9)
    )


def test_a_buffer_has_at_most_all_positives_and_a_batch_all_negatives():
    assert_same_weights(
        TwoPMB("pauc", batch_size=320, reservoir_size=80),
        TwoPMB("pauc", batch_size=10**9),
    )


def test_a_count_k_is_cut_to_the_positives_of_the_buffer():
    assert_same_weights(
        TwoPMB(k=60, reservoir_size=20), TwoPMB(k=1.0, reservoir_size=20)
    )


@pytest.mark.parametrize("solver", [OnePMB, TwoPMB])
@pytest.mark.parametrize("objective", ["pauc", "auc", "f1"])
def test_k_concerns_precision_only(solver, objective):
    assert_same_weights(
        solver(objective, k=1, epochs=1), solver(objective, k="50 %", epochs=1)
    )


WITH_KEEP = ("perceptron-avg", "perceptron-max", "sgd-avg", "sgd-max")


@pytest.mark.parametrize("name", WITH_KEEP)
def test_keep_goes_before_average(name):
    last = make(name, average=False)
    assert_same_weights(last, make(name, average=True, keep="last"))
    mean = make(name, average=True)
    assert_same_weights(mean, make(name, average=False, keep="mean"))


@pytest.mark.parametrize("shuffle", [False, True, "rows", "blocks"])
@pytest.mark.parametrize("n", [1, 33, 1000])
def test_every_epoch_visits_every_row_once(shuffle, n):
    order = visiting_order(n, shuffle, np.random.default_rng(0))
    assert order.dtype == np.int32
    assert_array_equal(np.sort(order), np.arange(n))
    if shuffle is False:
        assert_array_equal(order, np.arange(n))


def weights_after_epochs(solver, X, y):
    """Fit, and return the model after each epoch."""
    models = []

    def note(solver):
        if solver.n_rows_seen_ and solver.n_rows_seen_ % len(y) == 0:
            models.append(solver.coef_)

    solver.fit(X, y, trace=note)
    return models


@pytest.mark.parametrize("name", WITH_KEEP)
def test_the_best_of_all_epochs_is_kept(name):
    X, y = problem(2000)
    options = {"epochs": 12, "random_state": 3}
    last = weights_after_epochs(make(name, keep="last", **options), X, y)
    best = weights_after_epochs(make(name, keep="best", **options), X, y)
    precisions = [precision_at_k(y, X @ w, k=0.25) for w in last]
    assert len(precisions) == 12
    assert len(set(precisions)) > 1
    expected = []
    for n_epochs in range(1, 13):
        so_far = precisions[:n_epochs]
        latest_best = max(range(n_epochs), key=lambda i: (so_far[i], i))
        expected.append(last[latest_best])
    assert_array_equal(best, expected)


@pytest.mark.parametrize("name", WITH_KEEP)
def test_a_trace_sees_the_best_of_the_epochs_so_far(name):
    X, y = problem(2000)
    models = []
    solver = make(name, keep="best", epochs=12, random_state=3)
    solver.fit(X, y, trace=lambda s: models.append(s.coef_) if s.t_ else None)
    assert len(models) == 12
    assert_array_equal(solver.coef_, models[-1])


def test_the_best_of_a_fit_that_is_stopped():
    X, y = problem()
    solver = make("perceptron-avg", keep="best")
    solver.fit(X, y, trace=Recorder(1, most_rows=100))
    assert 99 < solver.n_rows_seen_ < 400
    assert solver.coef_.any()


@pytest.mark.parametrize("method", ["partial_fit", "fit_pieces"])
def test_2pmb_and_the_best_need_all_rows(method):
    assert all(hasattr(twin.solver, method) for twin in MINIBATCH.values())
    assert not hasattr(TwoPMB(), method)
    assert not hasattr(make("perceptron-avg", keep="best"), method)


# --- objectives ---


@pytest.mark.parametrize("solver", [OnePMB, TwoPMB])
def test_an_unknown_objective_is_refused(solver):
    with raises(ValueError, "'objective'"):
        solver("f2").fit(*problem())


@pytest.mark.parametrize(
    ("first", "later"),
    [
        pytest.param("f1", "auc", id="goes"),
        pytest.param("prec@k", "f1", id="comes"),
    ],
)
def test_an_intercept_cannot_come_or_go_between_pieces(first, later):
    X, y = problem()
    solver = OnePMB(first).partial_fit(X, y).set_params(objective=later)
    with raises(InputError, "objective"):
        solver.partial_fit(X, y)
    assert solver.fit(X, y).coef_.shape == (7,)


def test_f1_is_sought_at_threshold_0():
    X, y = problem()
    solver = OnePMB("f1", batch_size=50, eta0=1.0, random_state=0).fit(X, y)
    scores = solver.decision_function(X)
    assert f1(y, scores) > f1_max(y, scores) - 0.03


# --- 2PMB ---


@pytest.mark.parametrize(("n", "size"), [(5, 8), (5, 5), (1, 1), (0, 3)])
def test_a_reservoir_that_holds_the_stream_keeps_all_of_it(n, size):
    sample = reservoir_sample(n, size, np.random.default_rng(0))
    assert_array_equal(sample, np.arange(n))


def reservoir_of_oam(n, size, rng):
    """Return the rows that end in a reservoir whose places OAM draws row by row."""
    step = OAM(reservoir_size=size, random_state=rng)._new_step(n_features=1)
    places = step.draw_places(np.ones(n, dtype=bool))
    reservoir = {place: row for row, place in enumerate(places)}
    return np.sort([reservoir[place] for place in range(size)])


@pytest.mark.parametrize("sample", [reservoir_sample, reservoir_of_oam])
def test_a_reservoir_keeps_every_set_equally_often(sample):
    rng = np.random.default_rng(0)
    counts = Counter(tuple(sample(6, 3, rng).tolist()) for _ in range(6_000))
    assert set(counts) == set(itertools.combinations(range(6), 3))
    assert max(abs(count - 300) for count in counts.values()) < 5 * np.sqrt(300)


# --- sums of rows ---


each_form = pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])


@each_form
@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_scores_need_one_weight_per_feature(form, shape):
    with raises(InputError, "3"):
        linear_scores(as_rows(form(np.eye(3))), np.ones(shape))


@each_form
@pytest.mark.parametrize(("n_weights", "n_features"), [(3, 2), (4, 3)])
def test_sums_of_rows_refuse_what_the_kernel_would_write_beyond(
    form, n_weights, n_features
):
    with raises(InputError, f"{n_weights} {n_features} 3"):
        weighted_sum(as_rows(form(np.eye(3))), np.ones(n_weights), n_features)


def test_rows_without_features_have_score_0():
    scores = linear_scores(as_rows(np.empty((5, 0))), np.empty(0))
    assert_array_equal(scores, np.zeros(5))


def sparse_rows(stored):
    """Return rows of which some are empty, one is long, and the last is not.

    The columns are neither sorted nor all different, and often the first.
    """
    rng = np.random.default_rng(0)
    short = rng.integers(0, 9, 90)
    longer = rng.integers(0, 40, 90)
    lengths = rng.permutation(np.concatenate([short, longer, [0, 400, 3, 0, 5]]))
    starts = np.append(0, np.cumsum(lengths))  # int64, as the columns
    columns = rng.integers(0, 70_000, starts[-1])
    columns[1::97] = 0
    values = rng.random(len(columns), np.float32).astype(stored)
    return sparse.csr_matrix((values, columns, starts), shape=(len(lengths), 70_000))


each_stored = pytest.mark.parametrize("stored", [np.float64, np.float32])


@each_stored
def test_a_sparse_row_has_the_same_score_beside_any_others(stored):
    """Whatever the scores of the others, some of which are infinite."""
    X = sparse_rows(stored)
    w = np.random.default_rng(1).standard_normal(70_000)
    w[0] = np.inf
    together = linear_scores(as_rows(X), w)
    alone = [linear_scores(as_rows(row), w)[0] for row in X]
    assert np.isinf(together).any()
    assert together.tobytes() == np.array(alone).tobytes()


@each_stored
def test_sparse_rows_are_summed_one_after_the_other(stored):
    X = sparse_rows(stored)
    coefs = np.random.default_rng(1).standard_normal(X.shape[0])
    expected = np.zeros(70_000)
    coefs_of_entries = np.repeat(coefs, np.diff(X.indptr))
    np.add.at(expected, X.indices, coefs_of_entries * X.data.astype(np.float64))
    assert weighted_sum(as_rows(X), coefs, 70_000).tobytes() == expected.tobytes()

"""The mini-batch methods and what all solvers share below them.

Memory, orders, sums of rows.

Their twins: test_twins.py; laws: test_laws.py.
"""

import itertools
from collections import Counter

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
from precbench.solvers.common.base import memory_limit
from precbench.solvers.common.driver import Fit, fit_together, visiting_order
from precbench.solvers.common.rows import as_rows, linear_scores, weighted_sum
from precbench.solvers.minibatch.estimator import reservoir_sample
from precbench.solvers.minibatch.kernel import MOST_CANDIDATES
from tests.laws import problem, weights
from tests.sentences import raises
from tests.test_twins import MINIBATCH, make

SHARED = {"batch_size": 200, "k": 0.7, "epochs": 1, "random_state": 0}
MORE_THAN_AT_ONCE = np.geomspace(1e-3, 1e3, 2 * MOST_CANDIDATES + 1)


@pytest.mark.parametrize(
    "candidates",
    [
        [("sgd-avg", {"eta0": eta0}) for eta0 in MORE_THAN_AT_ONCE],
        # f1 has another width
        [(name, SHARED) for name in MINIBATCH if name != "1pmb-f1"],
    ],
    ids=["many", "rules"],
)
def test_candidates_learn_together_as_each_alone(candidates):
    X, y = problem(2000)
    together = [
        Fit(make(name, **params), lambda solver: False) for name, params in candidates
    ]
    fit_together(together, X, y)
    for (solver, _), (name, params) in zip(together, candidates, strict=True):
        assert_array_equal(solver.coef_, make(name, **params).fit(X, y).coef_)


# --- memory ---


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
)
def test_too_many_features_are_reported_with_both_sizes(solver, needed):
    X = sparse.csr_array(([1.0, 2.0], ([0, 1], [3, 999_999])), shape=(2, 1_000_000))
    with raises(InputError, f"1,000,000 {needed}"):
        solver.fit(X, [1, -1])
    if hasattr(solver, "partial_fit"):
        with raises(InputError, f"1,000,000 {needed}"):
            clone(solver).partial_fit(X, [1, -1])


@pytest.mark.promise("R4")
@pytest.mark.parametrize("name", SOLVERS)
def test_one_wrong_index_does_not_fill_the_memory(monkeypatch, name):
    monkeypatch.setattr(base, "memory_limit", lambda: 2**33)
    X = sparse.csr_array(([1.0, 2.0], ([0, 1], [0, 2**31 - 2])), shape=(2, 2**31 - 1))
    solver, places = SOLVERS[name](), "2,147,483,647 8.0"
    with raises(InputError, places):
        solver.fit(X, [1, -1])
    if _can_be_kept(solver):
        with raises(InputError, places):
            Model.fit(X, [1, -1], name, scaling="unit")
    if hasattr(solver, "fit_pieces"):
        with raises(InputError, places):
            solver.fit_pieces(2**31 - 1, list)


@pytest.mark.promise("R4")
def test_the_limits_of_the_process_and_of_the_container_count(monkeypatch, tmp_path):
    granted = tmp_path / "memory.max"
    monkeypatch.setattr(base, "_CONTAINER_LIMIT", granted)
    whole = memory_limit()
    for text, limit in (("max\n", whole), ("1048576\n", 2**20), (f"{2**62}\n", whole)):
        granted.write_text(text)
        assert memory_limit() == limit
    monkeypatch.setattr(base.resource, "getrlimit", lambda _: (2**22, -1))
    assert memory_limit() == 2**22


# --- mini-batch methods ---


@pytest.mark.parametrize(
    ("order", "what"),
    [
        ([0.5, 1.0], "order"),
        ([True, False], "order"),
        ([[0, 1]], "order"),
        ([0, 400], "0 399"),
    ],
)
def test_an_invalid_order_is_refused(order, what):
    X, y = problem()
    with raises(InputError, what):
        make("sgd-avg").partial_fit(X, y, order=order)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # A batch longer than the data, and buffers that hold all of it.
        (make("sgd-avg", batch_size=400), make("sgd-avg", batch_size=10**9)),
        (
            TwoPMB("pauc", batch_size=320, reservoir_size=80),
            TwoPMB("pauc", batch_size=10**9),
        ),
        # A count k is cut to the positives of the buffer, and concerns precision only.
        (TwoPMB(k=60, reservoir_size=20), TwoPMB(k=1.0, reservoir_size=20)),
        *(
            (solver(objective, k=1, epochs=1), solver(objective, k="50 %", epochs=1))
            for solver in (OnePMB, TwoPMB)
            for objective in ("pauc", "auc", "f1")
        ),
        # What is kept goes before the average.
        *(
            (make(name, average=not mean), make(name, average=mean, keep=keep))
            for name in ("perceptron-avg", "perceptron-max", "sgd-avg", "sgd-max")
            for mean, keep in ((True, "last"), (False, "mean"))
        ),
    ],
)
def test_parameters_that_come_to_the_same(one, other):
    X, y = problem()
    of_one, of_other = (
        solver.set_params(random_state=0).fit(X, y) for solver in (one, other)
    )
    assert_array_equal(weights(of_one), weights(of_other))


@pytest.mark.parametrize("shuffle", [False, True, "rows", "blocks"])
@pytest.mark.parametrize("n", [1, 33, 1000])
def test_every_epoch_visits_every_row_once(shuffle, n):
    order = visiting_order(n, shuffle, np.random.default_rng(0))
    assert order.dtype == np.int32
    assert_array_equal(np.sort(order), np.arange(n))
    if shuffle is False:
        assert_array_equal(order, np.arange(n))


@pytest.mark.parametrize(
    "name", ["perceptron-avg", "perceptron-max", "sgd-avg", "sgd-max"]
)
def test_the_best_of_all_epochs_is_kept(name):
    X, y = problem(2000)
    options = {"epochs": 12, "random_state": 3}
    ends, offered = [], []
    make(name, keep="last", **options).fit(
        X,
        y,
        trace=lambda s: ends.append(s.coef_) if s.n_rows_seen_ % len(y) == 0 else None,
    )
    best = make(name, keep="best", **options)
    best.fit(X, y, trace=lambda s: offered.append(s.coef_) if s.n_rows_seen_ else None)
    values = [precision_at_k(y, X @ w, k=0.25) for w in ends[1:]]
    assert len(values) == 12 and len(set(values)) > 1
    # of equal ones the latest
    chosen = [n - np.argmax(values[:n][::-1]) for n in range(1, 13)]
    assert_array_equal(best.coef_, ends[chosen[-1]])
    assert_array_equal(offered, [ends[n] for n in chosen])


def test_the_best_of_a_fit_that_is_stopped():
    X, y = problem()
    solver = make("perceptron-avg", keep="best").fit(
        X, y, trace=Recorder(1, most_rows=100)
    )
    assert 99 < solver.n_rows_seen_ < 400 and solver.coef_.any()


@pytest.mark.parametrize("method", ["partial_fit", "fit_pieces"])
def test_2pmb_and_the_best_need_all_rows(method):
    assert all(hasattr(solver, method) for solver, _ in MINIBATCH.values())
    assert not hasattr(TwoPMB(), method)
    assert not hasattr(make("perceptron-avg", keep="best"), method)


# --- objectives ---


@pytest.mark.parametrize("solver", [OnePMB, TwoPMB])
def test_an_unknown_objective_is_refused(solver):
    with raises(ValueError, "'objective'"):
        solver("f2").fit(*problem())


@pytest.mark.parametrize("objectives", [("f1", "auc"), ("prec@k", "f1")])
def test_an_intercept_cannot_come_or_go_between_pieces(objectives):
    X, y = problem()
    before, after = objectives
    solver = OnePMB(before).partial_fit(X, y).set_params(objective=after)
    with raises(InputError, "objective"):
        solver.partial_fit(X, y)
    assert solver.fit(X, y).coef_.shape == (7,)


def test_f1_is_sought_at_threshold_0():
    X, y = problem()
    scores = (
        OnePMB("f1", batch_size=50, eta0=1.0, random_state=0)
        .fit(X, y)
        .decision_function(X)
    )
    assert f1(y, scores) > f1_max(y, scores) - 0.03


# --- 2PMB ---


@pytest.mark.parametrize(("n", "size"), [(5, 8), (5, 5), (1, 1), (0, 3)])
def test_a_reservoir_that_holds_the_stream_keeps_all_of_it(n, size):
    assert_array_equal(
        reservoir_sample(n, size, np.random.default_rng(0)), np.arange(n)
    )


def of_oam(n, size, rng):
    """Return the rows that end in a reservoir whose places OAM draws row by row."""
    step = OAM(reservoir_size=size, random_state=rng)._new_step(n_features=1)
    places = step.draw_places(np.ones(n, dtype=bool))
    reservoir = {place: row for row, place in enumerate(places)}
    return np.sort([reservoir[place] for place in range(size)])


@pytest.mark.parametrize("sample", [reservoir_sample, of_oam])
def test_a_reservoir_keeps_every_set_equally_often(sample):
    rng = np.random.default_rng(0)
    counts = Counter(tuple(sample(6, 3, rng).tolist()) for _ in range(6_000))
    assert set(counts) == set(itertools.combinations(range(6), 3))
    assert max(abs(count - 300) for count in counts.values()) < 5 * np.sqrt(300)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_scores_need_one_weight_per_feature(form, shape):
    with raises(InputError, "3"):
        linear_scores(as_rows(form(np.eye(3))), np.ones(shape))


@pytest.mark.parametrize(("n_weights", "n_features"), [(3, 2), (4, 3)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_sums_of_rows_refuse_what_the_kernel_would_write_beyond(
    form, n_weights, n_features
):
    with raises(InputError, f"{n_weights} {n_features} 3"):
        weighted_sum(as_rows(form(np.eye(3))), np.ones(n_weights), n_features)


def test_rows_without_features_have_score_0():
    assert_array_equal(
        linear_scores(as_rows(np.empty((5, 0))), np.empty(0)), np.zeros(5)
    )


@pytest.mark.parametrize("stored", [np.float64, np.float32])
def test_a_sparse_row_has_the_same_score_beside_any_others(stored):
    """Also an empty row, a long one, the last; whatever the weights of the others."""
    rng = np.random.default_rng(0)
    lengths = np.concatenate(
        [rng.integers(0, 9, 90), rng.integers(0, 40, 90), [0, 400, 3, 0, 5]]
    )
    starts = np.append(0, np.cumsum(rng.permutation(lengths)))  # int64, as the columns
    columns = rng.integers(0, 70_000, starts[-1])  # neither sorted nor all different
    columns[1::97] = 0
    values = rng.random(len(columns), np.float32).astype(stored)
    X = sparse.csr_matrix((values, columns, starts), shape=(len(lengths), 70_000))
    w = rng.standard_normal(70_000)
    w[0] = np.inf
    rows = as_rows(X)
    together = linear_scores(rows, w)
    alone = [linear_scores(as_rows(row), w)[0] for row in X]
    assert together.tobytes() == np.array(alone).tobytes()
    w[0] = 0
    together[np.isinf(together)] = 0
    summed = np.zeros(70_000)
    coefs = np.repeat(together, np.diff(X.indptr))
    # one after the other
    np.add.at(summed, X.indices, coefs * X.data.astype(np.float64))
    assert weighted_sum(rows, together, 70_000).tobytes() == summed.tobytes()

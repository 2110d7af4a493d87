"""The mini-batch methods against their twins; too little memory. Laws: test_laws.py."""

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from precbench.errors import InputError
from precbench.kernels.minibatch import MOST_CANDIDATES
from precbench.losses import AUC, F1, OBJECTIVES, PartialAUC, PrecisionAtK
from precbench.metrics import f1, f1_max, precision_at_k
from precbench.model.model import Model, _can_be_kept
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
    PerceptronAtK,
    PNormPush,
    SGDAtK,
    TwoPMB,
    base,
)
from precbench.solvers import minibatch as minibatch_module
from precbench.solvers.base import memory_limit
from precbench.solvers.minibatch import Rule, reservoir_sample
from precbench.solvers.passes import Fit, fit_together, visiting_order
from precbench.solvers.rows import as_rows, linear_scores, weighted_sum
from tests import laws
from tests.laws import problem, weights
from tests.sentences import raises
from tests.twins import minibatch_path

MINIBATCH = {
    "perceptron-avg": (PerceptronAtK("avg"), "perceptron-avg"),
    "perceptron-max": (PerceptronAtK("max"), "perceptron-max"),
    "sgd-avg": (SGDAtK("avg"), "avg"),
    "sgd-max": (SGDAtK("max"), "max"),
    "sgd-ramp": (SGDAtK("ramp"), "ramp"),
    "sgd-struct": (SGDAtK("struct"), "struct"),
    "1pmb": (OnePMB(), "struct"),
    "1pmb-pauc": (OnePMB("pauc", beta=0.3), PartialAUC(0.3)),
    "1pmb-auc": (OnePMB("auc"), AUC()),
    "1pmb-f1": (OnePMB("f1"), F1()),
}
each_minibatch = pytest.mark.parametrize("name", MINIBATCH)


def quick(name, **params):
    return laws.quick(lambda: MINIBATCH[name][0], **params)


# --- kernel and twin ---------------------------------------------------------------------------


@pytest.mark.promise("R12")
@each_minibatch
@pytest.mark.parametrize(
    ("k", "average", "radius"),
    [
        (0.25, False, None),
        (1.0, True, 0.7),
        (1, False, 0.7),
        (3, True, None),
        ("9 %", False, 0.7),  # of a full batch 4 rows, of the last 3
    ],
)
def test_twin_follows_the_kernel(name, k, average, radius):
    X, y = problem()
    solver = quick(name, k=k, average=average, radius=radius, batch_size=37)
    params = solver.get_params()
    order = np.random.default_rng(1).permutation(len(y))
    path, mistakes = minibatch_path(
        X, y, order, MINIBATCH[name][1], k, 37, params.get("eta0"), params.get("radius")
    )
    for stop in (37, 5 * 37, len(y)):
        piece = clone(solver).partial_fit(X, y, order=order[:stop])
        seen = path[: -(-stop // 37)]
        assert_allclose(weights(piece), seen.mean(axis=0) if average else seen[-1], atol=1e-10)
        assert piece.t_ == len(seen)
    if name.startswith("perceptron"):
        assert piece.n_mistakes_ == mistakes


@settings(max_examples=80)
@given(st.data())
def test_twin_follows_the_kernel_through_ties(data):
    """Few small integers: ties everywhere, and scores are exact, so no rounding may decide.

    The avg rules and the objectives weigh rows with fractions: there it holds of one batch only.
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
    rule = MINIBATCH[name][1]
    if name.endswith("avg") or name.startswith("1pmb-"):
        order = order[:batch_size]
    start = rng.integers(-2, 3, d + (name == "1pmb-f1")).astype(float)
    path, _ = minibatch_path(X, y, order, rule, k, batch_size, start=start)
    for rows in (X, sparse.csr_matrix(X)):
        solver = quick(name, k=k, batch_size=batch_size, average=False)
        solver.partial_fit(rows, y, order=[])
        solver._w[:] = start
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Rule, "step_lengths", lambda self, t, n: np.ones(n))
            solver.partial_fit(rows, y, order=order)
        assert_allclose(weights(solver), path[-1], atol=1e-12)


SCORES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "ties": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "clusters": lambda rng, n: rng.integers(0, 2, n) * 1e6 + rng.random(n),
    "heavy tail": lambda rng, n: rng.integers(-99, 100, n) * 8.0 ** rng.integers(0, 12, n),
    "equal": lambda rng, n: np.zeros(n),
}


@each_minibatch
@pytest.mark.parametrize(("k", "scores"), [*zip([0.1, 0.4, 1.0, 0.4, 0.1], SCORES, strict=True)])
def test_twin_follows_the_kernel_through_large_batches(name, k, scores, monkeypatch):
    """Selected from a sample on, sorted by merging; whatever the scores are."""
    rng = np.random.default_rng(0)
    X = np.column_stack([SCORES[scores](rng, 600), rng.standard_normal((600, 2))])
    y = np.where(rng.random(600) < 0.3, 1, -1)
    start = np.array([1.0, 0.0, 0.0, 0.0][: 3 + (name == "1pmb-f1")])
    path, _ = minibatch_path(X, y, np.arange(600), MINIBATCH[name][1], k, 600, start=start)
    monkeypatch.setattr(Rule, "step_lengths", lambda self, t, n: np.ones(n))
    solver = quick(name, k=k, batch_size=600, average=False).partial_fit(X, y, order=[])
    solver._w[:] = start
    assert_allclose(weights(solver.partial_fit(X, y))[1:], path[-1][1:], rtol=1e-10, atol=1e-9)


@each_minibatch
def test_a_batch_of_positives_only(name):
    X, y = problem()
    order = np.concatenate([np.flatnonzero(y > 0)[:50], np.flatnonzero(y < 0)[:50]])
    solver = quick(name, average=False).partial_fit(X, y, order=order)
    eta0 = solver.get_params().get("eta0")
    path, _ = minibatch_path(X, y, order, MINIBATCH[name][1], 0.25, 50, eta0)
    assert_allclose(weights(solver), path[-1], atol=1e-10)
    assert solver.n_empty_batches_ == (2 if name in ("1pmb-pauc", "1pmb-auc") else 1)


def test_more_candidates_than_the_kernel_takes_at_once():
    X, y = problem()
    steps = np.geomspace(1e-3, 1e3, 2 * MOST_CANDIDATES + 1)
    together = [Fit(quick("sgd-avg", eta0=eta0), lambda solver: False) for eta0 in steps]
    fit_together(together, X, y)
    for (solver, _), eta0 in zip(together, steps, strict=True):
        assert_array_equal(solver.coef_, quick("sgd-avg", eta0=eta0).fit(X, y).coef_)


def test_candidates_of_different_rules_do_not_change_the_shared_batch():
    X, y = problem(2000)
    options = {"batch_size": 200, "k": 0.7, "epochs": 1, "random_state": 0}
    names = [name for name in MINIBATCH if name != "1pmb-f1"]
    together = [Fit(quick(name, **options), lambda solver: False) for name in names]
    fit_together(together, X, y)
    for (solver, _), name in zip(together, names, strict=True):
        assert_array_equal(solver.coef_, quick(name, **options).fit(X, y).coef_)


# --- memory ------------------------------------------------------------------------------------


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
def test_the_limit_of_the_process_counts():
    program = (
        "import resource; from precbench.solvers.base import memory_limit; "
        "_, hard = resource.getrlimit(resource.RLIMIT_AS); "
        "resource.setrlimit(resource.RLIMIT_AS, (2**32, hard)); print(memory_limit())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this system sets no limit of addresses")
    assert int(done.stdout) <= 2**32


@pytest.mark.promise("R4")
def test_the_limit_of_the_container_counts(monkeypatch, tmp_path):
    granted = tmp_path / "memory.max"
    monkeypatch.setattr(base, "_CONTAINER_LIMIT", granted)
    whole = memory_limit()
    for text, limit in (("max\n", whole), ("1048576\n", 2**20), (f"{2**62}\n", whole)):
        granted.write_text(text)
        assert memory_limit() == limit


# --- mini-batch methods ------------------------------------------------------------------------


@each_minibatch
def test_a_batch_without_positives_is_counted_and_changes_nothing(name):
    X, y = problem()
    solver = quick(name, average=False).partial_fit(X, y)
    before = weights(solver)
    negatives = X[y < 0][:100]
    solver.partial_fit(negatives, np.full(100, -1))
    assert solver.n_empty_batches_ == 2
    assert_array_equal(weights(solver), before)


@pytest.mark.parametrize(
    ("order", "what"),
    [([0.5, 1.0], "order"), ([True, False], "order"), ([[0, 1]], "order"), ([0, 400], "0 399")],
)
def test_an_invalid_order_is_refused(order, what):
    X, y = problem()
    with raises(InputError, what):
        quick("sgd-avg").partial_fit(X, y, order=order)


def test_a_batch_longer_than_the_data_costs_no_more():
    X, y = problem()
    one = quick("sgd-avg", batch_size=400).fit(X, y)
    assert_array_equal(quick("sgd-avg", batch_size=10**9).fit(X, y).coef_, one.coef_)


@pytest.mark.parametrize("shuffle", [False, True, "rows", "blocks"])
@pytest.mark.parametrize("n", [1, 33, 1000])
def test_every_epoch_visits_every_row_once(shuffle, n):
    order = visiting_order(n, shuffle, np.random.default_rng(0))
    assert order.dtype == np.int32
    assert_array_equal(np.sort(order), np.arange(n))
    if shuffle is False:
        assert_array_equal(order, np.arange(n))


@pytest.mark.parametrize("name", ["perceptron-avg", "perceptron-max", "sgd-avg", "sgd-max"])
def test_what_is_kept(name):
    X, y = problem(2000)
    options = {"epochs": 12, "random_state": 3}
    last, mean = (quick(name, average=means, **options).fit(X, y) for means in (False, True))
    assert_array_equal(
        quick(name, average=True, keep="last", **options).fit(X, y).coef_, last.coef_
    )
    assert_array_equal(
        quick(name, average=False, keep="mean", **options).fit(X, y).coef_, mean.coef_
    )

    ends, offered = [], []
    quick(name, keep="last", **options).fit(
        X, y, trace=lambda s: ends.append(s.coef_) if s.n_rows_seen_ % len(y) == 0 else None
    )
    best = quick(name, keep="best", **options)
    best.fit(X, y, trace=lambda s: offered.append(s.coef_) if s.n_rows_seen_ else None)
    values = [precision_at_k(y, X @ w, k=0.25) for w in ends[1:]]
    assert len(values) == 12 and len(set(values)) > 1
    chosen = [n - np.argmax(values[:n][::-1]) for n in range(1, 13)]  # of equal ones the latest
    assert_array_equal(best.coef_, ends[chosen[-1]])
    assert_array_equal(offered, [ends[n] for n in chosen])


def test_the_best_needs_all_rows():
    assert not hasattr(quick("perceptron-avg", keep="best"), "partial_fit")
    X, y = problem()
    stop = Recorder(1, most_rows=100)
    stopped = quick("perceptron-avg", keep="best").fit(X, y, trace=stop)
    assert 99 < stopped.n_rows_seen_ < 400 and stopped.coef_.any()


@pytest.mark.parametrize("method", ["partial_fit", "fit_pieces"])
def test_2pmb_alone_needs_all_rows(method):
    assert all(hasattr(solver, method) for solver, _ in MINIBATCH.values())
    assert not hasattr(TwoPMB(), method)


# --- objectives --------------------------------------------------------------------------------


each_pmb = pytest.mark.parametrize("cls", [OnePMB, TwoPMB])


@each_pmb
def test_every_objective_has_a_rule(cls):
    X, y = problem()
    for objective, about in OBJECTIVES.items():
        solver = cls(objective, epochs=1).fit(X, y)
        assert hasattr(solver, "intercept_") == about.has_threshold
    with raises(ValueError, "'objective'"):
        cls("f2").fit(X, y)


@each_pmb
def test_k_concerns_precision_only(cls):
    X, y = problem()
    for objective in ("pauc", "auc", "f1"):
        one, other = (cls(objective, k=k, epochs=1, random_state=0) for k in (1, "50 %"))
        assert_array_equal(one.fit(X, y).coef_, other.fit(X, y).coef_)


@each_pmb
def test_the_intercept_is_the_weight_of_a_constant_feature(cls):
    X, y = problem()
    solver = cls("f1", random_state=0, radius=0.2).fit(X, y)
    assert solver.coef_.shape == (7,)
    scores = solver.decision_function(X)
    assert_allclose(scores, X @ solver.coef_ + solver.intercept_, atol=1e-12)
    assert_array_equal(solver.predict(X), np.where(scores > 0, 1, -1))
    last = clone(solver).set_params(average=False).fit(X, y)
    assert np.linalg.norm(weights(last)) <= 0.2 * (1 + 1e-12)
    assert not hasattr(solver.set_params(objective="auc").fit(X, y), "intercept_")


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
    scores = OnePMB("f1", batch_size=50, eta0=1.0, random_state=0).fit(X, y).decision_function(X)
    assert f1(y, scores) > f1_max(y, scores) - 0.03


# --- 2PMB --------------------------------------------------------------------------------------

TWO_PMB = {"prec@k": PrecisionAtK(0.25), "pauc": PartialAUC(0.3), "auc": AUC(), "f1": F1()}


@pytest.mark.promise("R12")
@pytest.mark.parametrize("objective", TWO_PMB)
@pytest.mark.parametrize(
    ("batch_size", "epochs", "size", "average"),
    [(40, 3, 30, False), (50, 1, 1, True), (40, 3, 80, False), (400, 2, None, True)],
)
def test_twin_follows_2pmb(objective, batch_size, epochs, size, average):
    """320 negatives: batches of 40 are all full, of 50 the last is short, of 400 the only one."""
    X, y = problem()
    common = {"batch_size": batch_size, "reservoir_size": size, "epochs": epochs}
    solver = TwoPMB(objective, beta=0.3, average=average, radius=0.7, random_state=5, **common)
    solver.fit(X, y)
    rng = np.random.default_rng(5)
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    kept = pos[reservoir_sample(80, size or batch_size, rng)]
    order = []
    for _ in range(epochs):
        streamed = neg[visiting_order(320, True, rng)]
        for start in range(0, 320, batch_size):
            order += [*kept, *streamed[start : start + batch_size]]
    length = len(kept) + min(320, batch_size)
    path, _ = minibatch_path(X, y, order, TWO_PMB[objective], 0.25, length, 0.1, 0.7)
    assert_allclose(weights(solver), path.mean(axis=0) if average else path[-1], atol=1e-10)
    assert solver.n_rows_seen_ == len(order)
    assert solver.t_ == len(path)


@pytest.mark.parametrize("objective", TWO_PMB)
def test_2pmb_lists_its_batches_in_pieces(objective, monkeypatch):
    X, y = problem()
    solver = TwoPMB(objective, batch_size=20, epochs=2, random_state=0)
    whole = weights(solver.fit(X, y))
    monkeypatch.setattr(minibatch_module, "_ORDER_ROWS", 100)
    assert_array_equal(weights(solver.fit(X, y)), whole)


def test_buffers_longer_than_the_data_hold_all_of_it():
    X, y = problem()
    one = TwoPMB("pauc", batch_size=320, reservoir_size=80, random_state=0).fit(X, y)
    other = TwoPMB("pauc", batch_size=10**9, random_state=0).fit(X, y)
    assert_array_equal(one.coef_, other.coef_)


def test_a_count_k_is_cut_to_the_positives_of_the_buffer():
    X, y = problem()
    common = {"reservoir_size": 20, "random_state": 0}
    one, other = (TwoPMB(k=k, **common).fit(X, y) for k in (60, 1.0))
    assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize(("n", "size"), [(5, 8), (5, 5), (1, 1), (0, 3)])
def test_a_reservoir_that_holds_the_stream_keeps_all_of_it(n, size):
    assert_array_equal(reservoir_sample(n, size, np.random.default_rng(0)), np.arange(n))


def test_a_reservoir_keeps_every_set_equally_often():
    rng = np.random.default_rng(0)
    counts = Counter(tuple(reservoir_sample(6, 3, rng).tolist()) for _ in range(20_000))
    assert set(counts) == set(itertools.combinations(range(6), 3))
    assert max(abs(count - 1000) for count in counts.values()) < 5 * np.sqrt(1000)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_scores_need_one_weight_per_feature(form, shape):
    with raises(InputError, "3"):
        linear_scores(as_rows(form(np.eye(3))), np.ones(shape))


@pytest.mark.parametrize(("n_weights", "n_features"), [(3, 2), (4, 3)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_sums_of_rows_refuse_what_the_kernel_would_write_beyond(form, n_weights, n_features):
    with raises(InputError, f"{n_weights} {n_features} 3"):
        weighted_sum(as_rows(form(np.eye(3))), np.ones(n_weights), n_features)


def test_rows_without_features_have_score_0():
    assert_array_equal(linear_scores(as_rows(np.empty((5, 0))), np.empty(0)), np.zeros(5))


@pytest.mark.parametrize("stored", [np.float64, np.float32])
def test_a_sparse_row_has_the_same_score_beside_any_others(stored):
    """Also an empty row, a long one, the last; whatever the weights of the others."""
    rng = np.random.default_rng(0)
    lengths = np.concatenate([rng.integers(0, 9, 90), rng.integers(0, 40, 90), [0, 400, 3, 0, 5]])
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
    summed = np.zeros(70_000)
    for coef, row in zip(together, X, strict=True):
        if np.isfinite(coef):
            for j, value in zip(row.indices, row.data.astype(np.float64), strict=True):
                summed[j] += coef * value
    together[np.isinf(together)] = 0
    assert weighted_sum(rows, together, 70_000).tobytes() == summed.tobytes()

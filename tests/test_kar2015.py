"""What the paper proves or shows, on the runs of its configs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from precbench.claims import Evidence, load_claims, make_ledger
from precbench.data import load_dataset
from precbench.experiment import load_config
from precbench.papers.kar2015 import bounds as kar2015
from precbench.papers.kar2015 import laws as kar2015_laws
from precbench.papers.kar2015.minima import is_least_at_zero
from precbench.ranking.losses import SURROGATES, margins
from precbench.ranking.topk import resolve_k
from precbench.solvers import CuttingPlane, PerceptronAtK
from precbench.solvers.cutting_plane.estimator import TrainingRisk
from tests.helpers import run, smoke_table

pytestmark = pytest.mark.usefixtures("in_this_process")


def test_appendix_a_the_struct_surrogate_prefers_the_wrong_sign(tmp_path):
    assert run("kar2015/counterexample", tmp_path).exit_code == 0
    table = pd.read_csv(tmp_path / "kar2015-counterexample" / "results.csv")
    final = table[table["final"]].set_index("solver")["value"]
    assert final.to_dict() == {
        "1pmb": 0.0,
        "sgd-struct": 0.0,
        "cutting-plane": 0.0,
        "sgd-avg": 1.0,
        "perceptron-avg": 1.0,
    }


@pytest.fixture(scope="module")
def theorems():
    return smoke_table("kar2015/bounds")


def quantities(table, theorem):
    """Lay out the quantities of a theorem beside each other."""
    rows = table[table["theorem"] == theorem].dropna(subset="batch_size")
    keys = [c for c in rows if c not in ("theorem", "quantity", "value")]
    return rows.pivot(index=keys, columns="quantity", values="value").reset_index()


def test_mistakes_are_bounded(theorems):
    for theorem in ("Theorem 7", "Corollary 8", "Theorem 9", "Corollary 10"):
        found = quantities(theorems, theorem)
        assert set(found["dataset"]) >= {"margin"} and (found["measured"] > 0).all()
        assert (found["measured"] <= found["bound"]).all()
        assert (found["bound"] < found["trivial"])[found["dataset"] == "margin"].all()


@pytest.mark.parametrize(
    ("variant", "theorem", "corollary", "margin"),
    [
        pytest.param("avg", "Theorem 7", "Corollary 8", "average", id="perceptron-avg"),
        pytest.param("max", "Theorem 9", "Corollary 10", "strong", id="perceptron-max"),
    ],
)
def test_bounds_of_mistakes_are_the_printed_ones(
    theorems, variant, theorem, corollary, margin
):
    """(||w|| R sqrt(4 k) + sqrt(sum L_t(w)))^2, least over multiples of w*.

    4 k R^2 / gamma^2.
    """
    kappa, size = 0.25, 200
    stream = kar2015._stream(
        kar2015._Population(load_dataset("margin"), kappa), size, 0, 1
    )
    optimum = load_dataset("margin").optimum
    starts = range(0, len(stream.y), size)
    batches = [(stream.X[i : i + size], stream.y[i : i + size]) for i in starts]
    batches = [(X, y) for X, y in batches if (y > 0).any()]
    k = max(int(np.ceil(kappa * (y > 0).sum())) for _X, y in batches)
    R = max(np.sqrt((row**2).sum()) for row in stream.X)
    surrogate = replace(SURROGATES[variant], k=kappa)
    # of w, from 0.1 to 1,000
    norms = [10 ** (-1 + 4 * step / 40) for step in range(41)]
    bounds = []
    for norm in norms:
        losses = [
            surrogate.evaluate(norm * (X @ optimum), y > 0)[0] for X, y in batches
        ]
        bounds.append((norm * R * (4 * k) ** 0.5 + sum(losses) ** 0.5) ** 2)
    gamma = min(getattr(margins(X @ optimum, y, kappa), margin) for X, y in batches)
    found = quantities(theorems, theorem).set_index(["dataset", "batch_size", "split"])
    assert found["bound"]["margin", size, 0] == pytest.approx(min(bounds))
    found = quantities(theorems, corollary).set_index(
        ["dataset", "batch_size", "split"]
    )
    assert found["bound"]["margin", size, 0] == pytest.approx(4 * k * R**2 / gamma**2)


def test_open_constants_are_the_smallest_that_suffice(theorems):
    for theorem in ("Theorem 13", "Theorem 15"):
        found = quantities(theorems, theorem)
        bounds = found["explicit part"] + found["constant"] * found["rate"]
        assert (found["measured"] <= bounds + 1e-12).all() and (
            found["constant"] >= 0
        ).all()
        needed = found["constant"] > 0
        assert found["measured"][needed].to_numpy() == pytest.approx(
            bounds[needed].to_numpy()
        )


def noisy_stream():
    return kar2015._stream(
        kar2015._Population(load_dataset("margin-noisy"), 0.25), 200, 0, 1
    )


def test_mistakes_are_those_of_the_solver(theorems):
    """Along the first split, in batches that partial_fit takes one by one."""
    stream = noisy_stream()
    assert len(stream.y) == 14_000 and stream.n_batches == len(stream.batches) == 70
    assert stream.uniform_rate == pytest.approx(np.sqrt(np.log(70 / 0.05) / 200))
    solver = PerceptronAtK("max", k=0.25, batch_size=200, shuffle=False)
    for X, y, k in stream.batches:
        n_pos = int(np.sum(y > 0))
        assert k == (resolve_k(0.25, n_pos) if n_pos else 0)
        solver.partial_fit(X, y, classes=[-1, 1])
    found = quantities(theorems, "Theorem 9").set_index(["dataset", "batch_size"])
    assert found["measured"]["margin-noisy", 200] == solver.n_mistakes_ > 0


def test_steps_of_the_proofs(theorems):
    """Each batch with mistakes lengthens w by as much at most, and turns it towards the
    optimum.
    """
    ratio = quantities(theorems, "Lemma 18")["measured"]
    assert ((ratio > 0) & (ratio <= 1)).all()
    for variant in (kar2015._AVG, kar2015._MAX):
        assert (quantities(theorems, variant.lemma)["measured"] <= 1e-9).all()
        stream = noisy_stream()
        solver = PerceptronAtK(variant.surrogate, k=0.25, batch_size=200, epochs=1)
        weights, mistakes = kar2015._path(stream, solver)
        _, (*_, found) = kar2015._steps(
            stream, np.array(weights), 2 * mistakes, variant
        )
        assert found["measured"] > 0  # twice the mistakes are too many


def test_the_top_of_a_sample_is_that_of_the_population():
    rng = np.random.default_rng(0)
    data = replace(load_dataset("margin-noisy"), X=rng.standard_normal((30, 20)))
    data = replace(data, y=np.sign(data.X @ data.optimum + rng.standard_normal(30)))
    found = kar2015._top_averages(data, 0.3, 11, 40, np.random.default_rng(1))
    best = sorted(range(30), key=lambda i: -(data.X @ data.optimum)[i])
    drawn = np.random.default_rng(1).integers(30, size=(40, 11))
    tops = [
        [data.y[best[place]] < 0 for place in sorted(places)[:4]] for places in drawn
    ]
    deviations = np.abs(
        np.mean(tops, axis=1) - np.mean([data.y[i] < 0 for i in best[:9]])
    )
    assert found["measured"] == pytest.approx(np.quantile(deviations, 0.95))
    assert found["bound"] == pytest.approx(4 * np.sqrt(np.log(40) / 3.3))


def test_deviation_falls_with_the_sample(theorems):
    found = quantities(theorems, "Theorem 12")
    for _, of in found[found["dataset"] == "margin-noisy"].groupby("measure"):
        first, *_, last = of.sort_values("batch_size")["measured"]
        assert last < 0.5 * first
    assert found["constant"].to_numpy() == pytest.approx(
        found["measured"] / found["rate"]
    )


def test_laws_hold_and_their_controls_do_not():
    table = smoke_table("kar2015/laws")
    largest = table.groupby(["place", "law", "quantity"])["value"].max().unstack()
    assert len(largest) == 16 and (largest["excess"] <= 1e-12).all()
    assert (largest["control"] > 0.05).all() and (largest["vectors"] > 0).all()


@pytest.mark.parametrize(
    ("name", "shift"), [("ramp", -0.01), ("avg", -0.01), ("max", -0.01), ("ramp", 0.01)]
)
def test_a_wrong_surrogate_is_refuted(name, shift, monkeypatch):
    """Too low, it is no upper bound, too high, it does not vanish under its margin."""

    class Wrong(type(SURROGATES[name])):
        def evaluate(self, scores, positive):
            value, gradient = super().evaluate(scores, positive)
            return value + shift, gradient

    monkeypatch.setitem(kar2015_laws.SURROGATES, name, Wrong())
    rows = kar2015_laws.precision_laws(
        vectors=12, starts=1, steps=1, most_rows=8, seed=0
    )
    claims = [c for c in load_claims() if c.config == "kar2015/laws"]
    ledger = make_ledger(claims, Evidence(values={"kar2015-laws": rows}))
    assert sum(row.verdict == "not reproduced" for row in ledger) >= 2, ledger


def test_appendix_a_is_that_of_the_surrogate():
    """At n times the scores and k = 1 the printed scaling is that of (3)."""
    X, y = kar2015_laws._POINTS, kar2015_laws._LABELS
    for w in (-7.0, -1.0, 0.5, 2.0, 4.0):
        assert kar2015_laws._struct(w) == pytest.approx(
            SURROGATES["struct"].value(w / 6 * X, y, 1)
        )
    table = load_config("kar2015/appendix-a").compute().set_index("quantity")["value"]
    assert table["root"] == pytest.approx(-6) and table["case (i)"] == pytest.approx(3)


@pytest.mark.parametrize("surrogate", ["avg", "max"])
@pytest.mark.parametrize("k", [1, 0.5, 1.0])
@pytest.mark.parametrize("first", [1, 1000])
def test_where_zero_is_a_minimiser(surrogate, k, first):
    """A convex function on the plane, along every direction; both answers occur.

    They do not depend on the number of negatives that the linear programme begins with.
    """
    of, answers = SURROGATES[surrogate], set()
    angles = np.linspace(0, 2 * np.pi, 91)
    directions = 1e-6 * np.stack([np.cos(angles), np.sin(angles)])
    y = np.arange(24) < 6
    for seed in range(0, 12, 2):
        X = np.random.default_rng(seed).standard_normal((24, 2)) + np.outer(
            y, [seed / 4, 0]
        )
        count = resolve_k(k, 6)
        lower = of.value(np.zeros(24), y, count) - 1e-8
        expected = all(
            of.value(scores, y, count) >= lower for scores in (X @ directions).T
        )
        rows = sparse.csr_matrix(X) if seed % 4 else X
        is_least = is_least_at_zero(rows, y, k, surrogate, n_first=first, n_more=first)
        assert is_least == expected, seed
        answers.add(expected)
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("struct", {"k": 2}),
        ("struct, at least k", {"k": 2, "at_least_k": True}),
        ("struct, at least k", {"k": 1.0, "at_least_k": True}),
        ("struct, at least k", {"objective": "f1"}),
        ("pauc", {"objective": "pauc", "beta": 0.3}),
    ],
)
def test_where_the_cutting_plane_has_its_minimum(problem, options):
    """For every C, k and shift the linear programme and the solver agree."""
    answers = set()
    y = np.where(np.arange(24) < 6, 1, -1)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((24, 2)) + np.outer(y, [seed / 8, 0]) + seed % 3
        k = options.get("beta", options.get("k", 1))
        expected = is_least_at_zero(X, y > 0, k, problem)
        for C in (1e-2, 1e2):
            solver = CuttingPlane(C=C, tol=1e-9, **options).fit(X, y)
            of = {"k": solver.k, "beta": solver.beta, "at_least": solver.at_least_k}
            risk = TrainingRisk(X, y, solver.objective, **of)
            at_zero = C * risk.at(np.zeros(solver.best_weights_.size)).risk
            assert (solver.primal_ >= at_zero * (1 - 1e-7)) == expected, (seed, C)
        answers.add(expected)
    assert answers == {True, False}


def test_what_the_cutting_plane_finds():
    """The path ends at the last iterate, whose measure is that of the whole fit."""
    table = smoke_table("kar2015/optima")
    is_fit, keys = table["iteration"].isna(), ["dataset", "problem", "C"]
    fits = table[is_fit].pivot(index=keys, columns="quantity", values="value")
    assert (fits["bound"] <= fits["minimum"]).all() and (fits["minimum"] <= 1).all()
    converged = fits["converged"] == 1
    assert (fits["bound"] >= 0.999 * fits["minimum"] - 1e-12)[converged].all()
    path = table[~is_fit].pivot(index="iteration", columns="quantity", values="value")
    first = fits.loc["counterexample", "prec@0.25", 1.0]
    assert len(path) == first["iterations"] and path["value"].iloc[0] == 1
    ends = [first["measure of w = 0"], first["measure of the last w"]]
    assert path["measure"].iloc[[0, -1]].tolist() == ends
    assert path["best"].iloc[-1] == first["minimum"] <= path["value"].min() + 1e-12


def test_the_surrogates_at_the_learnt_weights():
    table = smoke_table("kar2015/minima")
    assert set(table["surrogate"]) == {
        "avg",
        "max",
        "struct",
        "struct, at least k",
        "pauc",
    }
    least = table[table["quantity"] == "w = 0 is a minimiser"]
    assert set(least["value"]) <= {0.0, 1.0}
    learnt = table[table["quantity"] == "relative to w = 0"]
    bounded = learnt.merge(least, on=["dataset", "rows", "surrogate"])
    assert (bounded.query("value_y == 1")["value_x"] >= 1 - 1e-9).all()
    assert (bounded.query("value_y == 0")["value_x"] < 1).all()

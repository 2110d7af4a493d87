"""What the paper proves or shows, on the runs of its configs."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from precbench.data import load_dataset
from precbench.losses import SURROGATES, margins
from precbench.metrics import precision_at_k
from precbench.solvers import CuttingPlane, OnePMB, SGDAtK
from tests.helpers import run


def test_appendix_a_the_struct_surrogate_prefers_the_wrong_sign(isolated, tmp_path):
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


def test_appendix_a_on_the_ball(isolated):
    data = load_dataset("counterexample")
    X, y = data.X, data.y
    for w in (0.5, 1.5, 3.0):
        assert SURROGATES["struct"].value(X @ [-w], y, 1) == pytest.approx(1 - w)
        assert SURROGATES["struct"].value(X @ [w], y, 1) == pytest.approx(max(1 + w, 3 * w))
    params = {"k": 1, "batch_size": 6, "shuffle": False, "epochs": 200, "radius": 2.0}
    for solver in (OnePMB(average=False, **params), SGDAtK("struct", average=False, **params)):
        assert solver.fit(X, y).coef_ == pytest.approx([-2.0])
    better = SGDAtK("avg", **params).fit(X, y)
    assert better.coef_[0] > 0 and precision_at_k(y, better.decision_function(X), 1) == 1.0


def test_the_theorems_hold(isolated, tmp_path):
    assert run("kar2015/bounds", tmp_path, "--smoke", "--jobs", "2").exit_code == 0
    table = pd.read_csv(tmp_path / "kar2015-bounds-smoke" / "bounds.csv")
    kinds = {"Theorem 7", "Theorem 9", "Corollary 8", "Corollary 10"}
    explicit = table[table["theorem"].isin(kinds)]
    assert set(explicit["theorem"]) == kinds
    assert explicit["holds"].astype(bool).all()
    assert (explicit["measured"] <= explicit["bound"]).all() and (explicit["measured"] > 0).any()
    says_something = explicit["bound"] < explicit["possible"]
    assert says_something[explicit["dataset"] == "margin"].all()
    others = table[~table["theorem"].isin(kinds)]
    assert set(others["theorem"]) == {"Theorem 12", "Theorem 13", "Theorem 15"}
    assert others["constant"].notna().all()
    assert (tmp_path / "kar2015-bounds-smoke" / "bounds.md").read_text().count("| Theorem 7 |") == 4


def test_theorem_12_the_deviation_falls_with_the_batch(isolated, tmp_path):
    from precbench.papers.kar2015 import _uniform_convergence

    data = load_dataset("margin-noisy")
    rows = pd.DataFrame(_uniform_convergence(data, 0.25, [100, 1600]))
    for _, of in rows.groupby("quantity"):
        small, large = of.sort_values("batch_size")["measured"]
        assert large < 0.5 * small


def test_the_known_margin_is_there(isolated):
    data = load_dataset("margin")
    found = margins(data.X @ data.optimum, data.y, 0.25)
    assert found.strong == pytest.approx(0.5, abs=1e-9)
    assert found.weak >= found.average >= found.strong
    assert np.linalg.norm(data.X, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize("k", [0.25, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_cutting_plane_reaches_the_minimum(k, seed):
    """Against a general minimiser, and its bound against many points."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 3)), np.where(np.arange(30) < 8, 1, -1)
    X[:8] += 0.7
    C, count = 0.5, {0.25: 2, 1.0: 8}[k]

    def primal(w):
        risk = SURROGATES["struct"].value(X @ w * (count / 30), y, count) * 100 / count
        return 0.5 * w @ w + C * risk

    solver = CuttingPlane(k=k, C=C, tol=1e-7).fit(X, y)
    assert solver.converged_
    starts = [solver.coef_, *rng.standard_normal((5, 3))]
    found = min(minimize(primal, w, method="Nelder-Mead", tol=1e-10).fun for w in starts)
    assert solver.primal_ == pytest.approx(found, rel=1e-5)
    assert solver.lower_bound_ <= found + 1e-9
    assert solver.gap_ == pytest.approx(solver.primal_ - solver.lower_bound_, abs=1e-6)
    for w in rng.standard_normal((200, 3)) * 3:
        assert solver.lower_bound_ <= primal(w) + 1e-9

"""The intercept of the objective f1 on its way from the solver to scores and to a saved model."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from precbench.data.preprocess import Scaler
from precbench.errors import InputError
from precbench.model.model import Model
from precbench.runner.recorder import Recorder
from precbench.solvers import OnePMB
from precbench.store import Store
from tests.helpers import succeed
from tests.sentences import raises

pytestmark = pytest.mark.usefixtures("in_this_process")


def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    return X, np.where(X[:, 0] - X[:, 1] + rng.standard_normal(600) > 1.5, 1, -1)


def test_every_checkpoint_has_one():
    X, y = problem()
    recorder, solver = Recorder(50), OnePMB("f1", batch_size=50, epochs=3)
    arrays = recorder.finish(solver.fit(X, y, trace=recorder))
    assert arrays["intercept"].shape == arrays["rows_seen"].shape
    assert arrays["intercept"][0] == 0
    assert arrays["intercept"][-1] == solver.intercept_ != 0
    recorder = Recorder(50)
    assert "intercept" not in recorder.finish(solver.set_params(objective="auc").fit(X, y))


def test_metrics_of_a_run_see_it(small, tmp_path):
    config = small(
        solvers="{f1: {solver: 1pmb, objective: f1, epochs: 3}, 1pmb: }", common="{batch_size: 50}",
        metrics="[f1, auc]", protocol="{n_splits: 1}",
    )  # fmt: skip
    succeed("run", config, "--out", tmp_path / "out")
    folder = tmp_path / "out" / "small"
    table = pd.read_csv(folder / "results.csv").query("final and part == 'test'")
    values = table.set_index(["solver", "metric"])["value"]
    assert values["f1", "f1"] > 0.6 > values["1pmb", "f1"]
    store = Store(folder)
    keys = [path.stem for path in (folder / "trials").glob("*.json")]
    assert sorted("intercept" in store.arrays(key) for key in keys) == [False, True]


def test_a_model_keeps_it(tmp_path):
    X, y = problem()
    model = Model.fit(X, y, "1pmb", scaling="standardise", objective="f1", random_state=0)
    assert model.intercept != 0
    scores = model.decision_function(X)
    scaled = Scaler("standardise").fit(X).transform_in_place(X.copy())
    solver = OnePMB("f1", random_state=0).fit(scaled, y)
    np.testing.assert_allclose(scores, solver.decision_function(scaled), atol=1e-12)
    model.save(tmp_path / "model.npz")
    loaded = Model.load(tmp_path / "model.npz")
    assert loaded.intercept == model.intercept
    np.testing.assert_array_equal(loaded.decision_function(X), scores)
    dataclasses.replace(model, intercept=np.nan).save(tmp_path / "model.npz")
    with raises(InputError, "model.npz"):
        Model.load(tmp_path / "model.npz")

"""A saved model in scikit-learn's tools: displays, importances, pipelines."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.calibration import CalibrationDisplay
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import (
    PrecisionRecallDisplay,
    RocCurveDisplay,
    average_precision_score,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import precbench
from precbench import Model
from tests.sentences import raises


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 600
    rows = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "noise": rng.normal(size=n).round(2),
            "plan": rng.choice(["basic", "full"], n),
        }
    )
    inclination = rows["age"] / 10 + 2 * (rows["plan"] == "full")
    return rows.assign(left=inclination + rng.logistic(size=n) > 8)


@pytest.fixture(scope="module")
def model(table, tmp_path_factory):
    fitted = precbench.fit(table, label="left", k=40, n_splits=2, categorical="one-hot")
    path = tmp_path_factory.mktemp("model") / "m.npz"
    fitted.save(path)
    return Model.load(path)


def test_it_is_a_fitted_classifier(model):
    assert is_classifier(model)
    check_is_fitted(model)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "noise", "plan"]


def test_a_model_of_arrays_has_no_names():
    model = Model.fit(np.eye(4), [1, -1, 1, -1])
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({False: False, True: True}, id="truth values"),
        pytest.param({False: 0, True: 1}, id="0 and 1"),
        pytest.param({False: -1, True: 1}, id="-1 and 1"),
    ],
)
def test_displays_show_its_scores(model, table, labels):
    y = table["left"].map(labels).to_numpy()
    display = PrecisionRecallDisplay.from_estimator(
        model, table, y, response_method="decision_function"
    )
    expected = average_precision_score(table["left"], model.decision_function(table))
    assert display.average_precision == pytest.approx(expected)
    assert RocCurveDisplay.from_estimator(model, table, y).roc_auc > 0.5


def test_calibration_is_displayed(model, table):
    display = CalibrationDisplay.from_estimator(model, table, table["left"])
    assert np.array_equal(display.y_prob, model.predict_proba(table)[:, 1])


def test_columns_that_do_not_matter_have_no_importance(model, table):
    columns = table[["age", "noise", "plan"]]
    importance = permutation_importance(model, columns, table["left"], random_state=0)
    by_column = dict(zip(columns, importance.importances_mean, strict=True))
    assert by_column["age"] > by_column["noise"]


def test_the_score_is_precision_at_the_k_of_the_model(model, table):
    places = precbench.score(model, table, top=40).ranking["row"] - 1
    precision = table["left"].iloc[places].mean()
    assert model.score(table, table["left"]) == pytest.approx(precision)


def test_the_end_of_a_pipeline_may_be_a_model(model, table):
    pipeline = Pipeline([("rows", "passthrough"), ("model", FrozenEstimator(model))])
    probabilities = pipeline.fit(table, table["left"]).predict_proba(table)
    assert np.array_equal(probabilities, model.predict_proba(table))


def test_rows_are_predicted_where_a_hit_is_more_likely_than_not(model, table):
    chance_of_hit = model.predict_proba(table)[:, 1]
    assert np.array_equal(model.predict(table), chance_of_hit > 0.5)


def test_a_model_that_is_not_calibrated_predicts_nothing():
    model = Model.fit(np.eye(4), [1, -1, 1, -1])
    with raises(ValueError, "probabilities"):
        model.predict(np.eye(4))

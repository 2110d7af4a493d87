"""`precbench.fit` of X and y is that of the labelled table of the same rows."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import precbench
from precbench.core.errors import InputError

FEW = {"k": 20, "n_splits": 2}
FEATURES = ["age", "paid", "visits"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    n_rows = 400
    rows = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n_rows).astype(float),
            "paid": rng.normal(size=n_rows).round(2),
            "visits": rng.poisson(2, n_rows).astype(float),
            "plan": rng.choice(["basic", "full"], n_rows),
            "shop": rng.integers(0, 40, n_rows),
            "day": rng.integers(0, 1000, n_rows),
            "worth": rng.integers(1, 9, n_rows).astype(float),
        }
    )
    inclination = rows["age"] / 10 + rows["paid"] + rng.logistic(size=n_rows)
    return rows.assign(left=np.where(inclination > 7, "yes", "no"))


def quality(model):
    """Return what a model states of its quality, without the names of columns."""
    about = json.loads(json.dumps(model.about))
    named = ("label", "positive", "weight", "importance", "recipe")
    stated = {name: about[name] for name in about if name not in named}
    if stated["length"]["profit"] is not None:
        stated["length"]["profit"].pop("column")
    return stated


def assert_equal_models(model, expected, X):
    scores = model.decision_function(X)
    assert np.array_equal(scores, expected.decision_function(X))
    assert np.array_equal(model.probabilities(scores), expected.probabilities(scores))
    assert quality(model) == quality(expected)


@pytest.mark.parametrize("solver", ["sgd-avg", "hist-gradient-boosting"])
def test_a_frame_and_labels_are_the_labelled_table(table, solver):
    X = table[[*FEATURES, "plan"]]
    options = {"solver": solver, "positive": "yes", "categorical": "one-hot", **FEW}
    of_table = precbench.fit(X.assign(left=table["left"]), label="left", **options)
    model = precbench.fit(X, table["left"], **options)
    assert_equal_models(model, of_table, X)
    assert model.encoding == of_table.encoding
    assert model.profile == of_table.profile
    assert model.about["importance"] == of_table.about["importance"]


@pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["array", "sparse"])
def test_a_matrix_and_labels_are_the_labelled_table(table, form):
    X = table[FEATURES]
    of_table = precbench.fit(
        X.assign(left=table["left"]),
        label="left",
        positive="yes",
        solver="sgd-avg",
        scaling="unit-norm",
        **FEW,
    )
    model = precbench.fit(
        form(X.to_numpy()),
        table["left"] == "yes",
        solver="sgd-avg",
        scaling="unit-norm",
        **FEW,
    )
    assert_equal_models(model, of_table, X.to_numpy())


def test_the_default_of_sparse_rows_is_that_of_a_sparse_file(table):
    model = precbench.fit(csr_matrix(table[FEATURES]), table["left"] == "yes", **FEW)
    assert model.solver == "sgd-avg"
    assert model.scaler.kind == "none"


@pytest.mark.parametrize("roles", [{"groups": "shop"}, {"time": "day"}], ids=str)
def test_groups_and_times_may_be_arrays(table, roles):
    [(role, column)] = roles.items()
    columns = [*FEATURES, "left", column]
    of_table = precbench.fit(
        table[columns], label="left", positive="yes", **roles, **FEW
    )
    arrays = {role: table[column].to_numpy()}
    model = precbench.fit(
        table[FEATURES], table["left"], positive="yes", **arrays, **FEW
    )
    assert_equal_models(model, of_table, table[FEATURES])


def test_weights_and_gains_may_be_arrays(table):
    options = {"solver": "logistic-regression", "positive": "yes", "cost": 2.0, **FEW}
    of_table = precbench.fit(
        table[[*FEATURES, "left", "worth"]],
        label="left",
        weight="worth",
        gain="worth",
        **options,
    )
    worth = table["worth"].to_numpy()
    model = precbench.fit(
        table[FEATURES], table["left"], weight=worth, gain=worth, **options
    )
    assert_equal_models(model, of_table, table[FEATURES])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "left"}, "label is for a labelled table; leave out label, or y"),
        ({"drop": ["age"]}, "drop is for a labelled table"),
        ({"weight": "worth"}, "weight must be one value per row, found .worth."),
        ({"weight": -np.ones(400)}, "weight of row 1 is -1.0"),
        ({"groups": np.ones(3)}, "groups"),
    ],
    ids=lambda value: str(next(iter(value))) if isinstance(value, dict) else "",
)
def test_options_that_do_not_fit_bare_rows_are_refused(table, options, message):
    with pytest.raises(InputError, match=message):
        precbench.fit(table[FEATURES], table["left"], positive="yes", **options)


def test_arrays_that_do_not_fit_a_table_are_refused(table):
    with pytest.raises(InputError, match="groups of a labelled table is the name"):
        precbench.fit(
            table, label="left", positive="yes", groups=table["shop"].to_numpy()
        )

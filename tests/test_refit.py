"""`precbench refit`: the recipe of a model on new rows, and what has changed."""

import json

import numpy as np
import pandas as pd
import pytest

import precbench
from precbench.core.errors import InputError
from precbench.model.model import Model
from tests.helpers import invoke, succeed

READING = "--label left --positive yes --id customer --categorical one-hot"
FEW = {"k": 20, "n_splits": 2}


def customers(n_rows, seed, plans=("basic", "full")):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "customer": [f"{seed}-{i:05}" for i in range(n_rows)],
            "age": rng.integers(20, 70, n_rows).astype(float),
            "paid": rng.normal(size=n_rows).round(2),
            "plan": rng.choice([*plans], n_rows),
            "shop": rng.integers(0, 40, n_rows),
        }
    )
    inclination = table["age"] / 10 + table["paid"] + rng.logistic(size=n_rows)
    return table.assign(left=np.where(inclination > 7.5, "yes", "no"))


OPTIONS = {
    "label": "left",
    "positive": "yes",
    "id": ["customer"],
    "drop": ["shop"],
    "categorical": "one-hot",
}


def assert_same_fit(model, expected, rows):
    """Check that two models score and state the same, the day aside."""
    scores = model.decision_function(rows)
    assert np.array_equal(scores, expected.decision_function(rows))
    about = json.loads(json.dumps(model.about))
    assert about == json.loads(json.dumps(expected.about))


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "sgd-avg", "params": {"epochs": 3}},
        {"solver": "sgd-avg", "fourier": 20, "random_state": 3},
        {"solver": "hist-gradient-boosting", "params": {"max_iter": 20}},
        {"solver": "logistic-regression", "scaling": "unit", "weight": "shop"},
        {"gain": "shop", "cost": 0.5, "list_rows": 900},
        {"groups": "shop", "drop": ()},
        {"k": [20, "5 %"], "time": "shop", "drop": ()},
        {"solver": "ensemble", "params": {"n_estimators": 5, "max_iter": 5}},
    ],
    ids=lambda options: ",".join(options),
)
def test_a_refit_is_the_fit_of_the_new_rows(options, tmp_path):
    options = {**OPTIONS, **FEW, **options}
    before, new = customers(400, 0), customers(500, 1)
    model = precbench.fit(before, **options)
    model.save(tmp_path / "old.npz")
    result = precbench.refit(tmp_path / "old.npz", new)
    assert_same_fit(result.model, precbench.fit(new, **options), new)
    assert (result.rows_before, result.rows) == (400, 500)


def test_a_refit_to_the_same_rows_changes_nothing():
    rows = customers(400, 0)
    model = precbench.fit(rows, **OPTIONS, **FEW)
    result = precbench.refit(model, rows)
    assert_same_fit(result.model, model, rows)
    assert result.on_both == result.k == 20
    assert not result.gained
    assert not result.lost
    assert not result.new_categories
    assert "the columns and their categories are the same" in result.sentences()


def test_what_has_changed_is_said():
    model = precbench.fit(customers(400, 0), **OPTIONS, **FEW)
    new = customers(500, 1, plans=["basic", "full", "gold"])
    result = precbench.refit(model, new.assign(visits=new["paid"].round()))
    assert result.gained == ["visits"]
    assert result.new_categories == {"plan": ["gold"]}
    assert 0 < result.on_both <= 20
    assert "new columns: visits" in repr(result)


def test_a_model_without_its_columns_cannot_rank_the_new_rows():
    model = precbench.fit(customers(400, 0), **OPTIONS, **FEW)
    result = precbench.refit(model, customers(500, 1).drop(columns=["paid", "shop"]))
    assert result.lost == ["paid"]
    assert result.on_both is None
    assert "the old model cannot rank the new rows: " in repr(result)
    assert "paid" in result.reason


def test_the_recommended_method_of_a_comparison_is_refitted():
    few = {"solvers": ["logistic-regression", "sgd-avg"], "n_splits": 2, "n_jobs": 1}
    rows = customers(400, 0)
    model = precbench.compare(rows, k=20, **OPTIONS, **few).fit()
    result = precbench.refit(model, rows)
    assert result.model.solver == model.solver
    assert np.array_equal(
        result.model.decision_function(rows), model.decision_function(rows)
    )


def test_arrays_are_refitted_to_arrays():
    rows, new = customers(400, 0), customers(500, 1)
    features = ["age", "paid"]
    model = precbench.fit(
        rows[features].to_numpy(), rows["left"] == "yes", groups=rows["shop"], **FEW
    )
    X, y = new[features].to_numpy(), new["left"] == "yes"
    with pytest.raises(InputError, match="does not state groups"):
        precbench.refit(model, X, y)
    result = precbench.refit(model, X, y, groups=new["shop"])
    assert_same_fit(result.model, precbench.fit(X, y, groups=new["shop"], **FEW), X)
    assert result.on_both is not None


def forget_recipe(model):
    """Return a model as it was before models stated their recipes."""
    about = {name: model.about[name] for name in model.about if name != "recipe"}
    return Model(**{**vars(model), "about": about})


def test_a_model_without_a_recipe_says_which_option_is_missing():
    rows, new = customers(400, 0), customers(500, 1)
    rows.loc[:20, "paid"] = np.nan
    options = {**OPTIONS, "missing": "median", "groups": "shop", "drop": (), **FEW}
    old = forget_recipe(precbench.fit(rows, **options))
    with pytest.raises(InputError, match="does not state missing, groups"):
        precbench.refit(old, new)
    again = {"missing": "median", "groups": "shop"}
    with pytest.raises(InputError, match="left out; name customer in drop or id"):
        precbench.refit(old, new, **again)
    result = precbench.refit(old, new, id=["customer"], **again)
    expected = precbench.fit(new, **options)
    assert np.array_equal(
        result.model.decision_function(new), expected.decision_function(new)
    )


@pytest.mark.parametrize("option", ["weight", "groups", "time"])
def test_an_array_beside_a_labelled_table_is_refused(option):
    old = forget_recipe(precbench.fit(customers(400, 0), **OPTIONS, **FEW))
    new = customers(500, 1)
    reading = {"missing": "median", "id": ["customer", "shop"]}
    with pytest.raises(InputError, match=option):
        precbench.refit(old, new, **reading | {option: np.ones(500)})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    customers(400, 0).to_csv("old.csv", index=False)
    customers(500, 1).to_csv("new.csv", index=False)
    options = f"{READING} --drop shop --k 20 --splits 2 --solver sgd-avg"
    succeed("fit", "old.csv", *options.split(), "--save", "top.npz")
    return tmp_path


def test_the_command_saves_the_model_and_says_what_changed(here):
    result = succeed("refit", "top.npz", "new.csv", "--save", "next.npz")
    assert "rows: 400 before, 500 now" in result.stdout
    assert "sgd-avg, fitted to all rows: next.npz" in result.stdout
    expected = precbench.refit("top.npz", "new.csv")
    saved = Model.load("next.npz")
    assert np.array_equal(saved.coef, expected.model.coef)
    again = succeed("refit", "next.npz", "new.csv", "--save", "next.npz", "--json")
    facts = json.loads(again.stdout)
    assert facts["model"] == "next.npz"
    assert facts["before"]["precision_at_k"] == facts["now"]["precision_at_k"]
    assert facts["on_both"] == facts["k"] == 20


def test_the_command_that_would_work_is_shown(here):
    new = pd.read_csv("new.csv")
    new.loc[3, "age"] = np.nan
    new.to_csv("gaps.csv", index=False)
    result = invoke("refit", "top.npz", "gaps.csv", "--save", "next.npz")
    assert result.exit_code == 2
    assert "precbench refit top.npz gaps.csv --missing median --save next.npz" in (
        result.output
    )
    succeed("refit", "top.npz", "gaps.csv", "--missing", "median", "--save", "next.npz")


def test_the_command_writes_over_no_file_of_rows(here):
    result = invoke("refit", "top.npz", "new.csv", "--save", "new.csv")
    assert result.exit_code == 2
    assert "new.csv is the file of the rows" in result.output

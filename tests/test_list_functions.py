"""`precbench.score`, `evaluate` and `profile`.

What their commands print, for files and frames.
"""

import json
from collections import Counter
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import precbench
from precbench.core.errors import InputError
from tests.helpers import invoke, succeed

LABEL = {"label": "left", "positive": "yes"}
READING = "--label left --positive yes --id customer --categorical one-hot"


def customers(n_rows, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "customer": [f"{seed}-{i:05}" for i in range(n_rows)],
            "age": rng.integers(20, 70, n_rows),
            "paid": rng.normal(size=n_rows).round(2),
            "plan": rng.choice(["basic", "full"], n_rows),
        }
    )
    inclination = table["age"] / 10 + table["paid"] + rng.logistic(size=n_rows)
    return table.assign(left=np.where(inclination > 7.5, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file of new rows and the models of a command."""
    path = tmp_path_factory.mktemp("lists")
    customers(600, 0).to_csv(path / "old.csv", index=False)
    customers(400, 1).to_csv(path / "new.csv", index=False)
    options = f"{READING} --k 30 --splits 2"
    fit = ["fit", path / "old.csv", *options.split()]
    succeed(*fit, "--save", path / "trees.npz")
    succeed(*fit, "--solver", "sgd-avg", "--save", path / "linear.npz")
    return path


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def printed(*command):
    """Return what a command prints as values of JSON."""
    return json.loads(succeed(*command, "--json").stdout)


def test_score_returns_what_the_command_prints(here):
    precbench.score("linear.npz", "new.csv", top=20, id="customer").write("last.csv")
    listed = precbench.score(
        "trees.npz",
        "new.csv",
        top=20,
        id="customer",
        keep=["plan"],
        probability=True,
        drift=True,
        last="last.csv",
        explain=2,
    )
    command = (
        "score trees.npz new.csv --top 20 --id customer --keep plan --probability"
        " --explain 2 --last last.csv --drift drift.json"
    )
    assert listed.to_dict() == printed(*command.split())
    result = invoke(*command.split())
    assert listed.rows.to_csv(index=False) == result.stdout
    assert "\n".join(listed.sentences()) in result.stderr
    assert listed.drift == json.loads((here / "drift.json").read_text())
    assert listed.last.before == 20
    assert listed.last.listed == 20
    assert not listed.has_drifted


def test_score_of_a_frame_is_that_of_the_file(here):
    model = precbench.Model.load("trees.npz")
    options = {
        "top": 15,
        "id": "customer",
        "keep": ["all"],
        "explain": 2,
        "probability": True,
    }
    of_file = precbench.score(model, "new.csv", **options)
    of_frame = precbench.score(model, pd.read_csv("new.csv"), **options)
    pd.testing.assert_frame_equal(of_frame.rows, of_file.rows)
    assert of_frame.to_dict() == of_file.to_dict()


def test_the_earlier_list_may_be_a_frame(here):
    earlier = precbench.score("linear.npz", "new.csv", top=20, id="customer")
    later = precbench.score(
        "trees.npz", "new.csv", top=30, id="customer", last=earlier.rows
    )
    earlier_customers = set(earlier.rows["customer"])
    later_customers = set(later.rows["customer"])
    n_on_both = len(earlier_customers & later_customers)
    n_on_either = len(earlier_customers | later_customers)
    assert later.last.listed == 30
    assert later.last.before == 20
    assert later.last.again == n_on_both
    assert later.last.jaccard == n_on_both / n_on_either


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"explain": 2}, "top", id="reasons without a top"),
        pytest.param({"keep": ["pln"]}, "plan", id="unknown column"),
        pytest.param(
            {"id": "kunde"}, "columns to list: no column 'kunde'", id="unknown id"
        ),
        pytest.param({"top": 0}, "top", id="empty list"),
        pytest.param(
            {"last": "trees.npz"}, "trees.npz", id="earlier list of another format"
        ),
    ],
)
def test_score_refuses(here, options, message):
    with pytest.raises(InputError, match=message):
        precbench.score("trees.npz", "new.csv", **options)


def test_a_model_of_arrays_scores_no_table(here):
    model = precbench.Model.fit(np.eye(4), [1, -1, 1, -1])
    with pytest.raises(InputError, match=r"Model\.rank"):
        precbench.score(model, "new.csv")


def test_a_model_of_numbered_features_scores_no_frame(here):
    X = np.random.default_rng(0).normal(size=(200, 3))
    np.savez("rows.npz", X=X, y=(X[:, 0] > 1).astype(int))
    model = precbench.fit("rows.npz", k=10, n_splits=1)
    with pytest.raises(InputError, match="named columns"):
        precbench.score(model, pd.DataFrame(X, columns=["a", "b", "c"]))


@pytest.mark.parametrize("k", [None, 25, 0.5, "10 %"])
def test_evaluate_returns_what_the_command_prints(here, k):
    evaluated = precbench.evaluate("trees.npz", "new.csv", k=k, against="linear.npz")
    command = ["evaluate", "trees.npz", "new.csv", "--against", "linear.npz"]
    if k is not None:
        command += ["--k", str(k)]
    assert evaluated.to_dict() == printed(*command)
    assert succeed(*command).stdout == f"{evaluated}\n"


def test_evaluate_of_a_frame_is_that_of_the_file(here):
    of_file = precbench.evaluate("trees.npz", "new.csv", k=25)
    of_frame = precbench.evaluate(
        precbench.Model.load("trees.npz"), pd.read_csv("new.csv"), k=25
    )
    assert of_frame.to_dict() == of_file.to_dict()


def test_evaluate_counts_hits_by_hand(here):
    new = pd.read_csv("new.csv")
    listed = precbench.score("trees.npz", new, top=25).rows
    is_hit = (new["left"] == "yes").to_numpy()
    hits = is_hit[listed["row"] - 1].sum()
    evaluated = precbench.evaluate("trees.npz", new, k=25)
    assert evaluated.n_tied or evaluated.hits == hits


def test_profile_returns_what_the_command_prints(here):
    options = {"k": [30, "1 %"], "id": ["customer"], "categorical": "one-hot"}
    described = precbench.profile("old.csv", **LABEL, **options)
    command = f"profile old.csv {READING} --k 30"
    assert described.to_dict() == printed(*command.split(), "--k", "1 %")
    assert "compare would train" in described.outlook


def test_profile_of_a_frame_is_that_of_the_file(here):
    options = {**LABEL, "id": ["customer"], "categorical": "one-hot"}
    of_file = precbench.profile("old.csv", **options)
    of_frame = precbench.profile(pd.read_csv("old.csv"), **options)
    assert of_frame.to_dict() == of_file.to_dict()


def test_profile_names_why_a_table_is_refused(here):
    described = precbench.profile("old.csv", **LABEL, categorical="one-hot")
    assert "customer" in str(described.refusal)
    assert described.outlook is None


def test_new_rows_may_be_in_another_encoding(here, tmp_path):
    rows = customers(400, 1).assign(name="Zoë")
    rows.to_csv(tmp_path / "new.csv", index=False, encoding="cp1252")
    file = tmp_path / "new.csv"
    listed = precbench.score("trees.npz", file, top=5, keep=["name"], encoding="cp1252")
    assert set(listed.rows["name"]) == {"Zoë"}
    assert printed("score", "trees.npz", file, "--top", "5", "--encoding", "cp1252")
    evaluated = precbench.evaluate("trees.npz", file, encoding="cp1252")
    assert evaluated.to_dict() == printed(
        "evaluate", "trees.npz", file, "--encoding", "cp1252"
    )


FEW = {"solvers": ["logistic-regression", "sgd-avg"], "n_splits": 2, "n_jobs": 1}


def test_compare_of_a_labelled_table_is_that_of_the_command(here, tmp_path):
    options = {**LABEL, "k": 30, "id": ["customer"], "categorical": "one-hot"}
    of_file = precbench.compare("old.csv", **options, **FEW)
    of_frame = precbench.compare(pd.read_csv("old.csv"), **options, **FEW)
    command = (
        f"compare old.csv {READING} --k 30"
        " --solver logistic-regression --solver sgd-avg --splits 2"
    )
    saved_to = tmp_path / "m.npz"
    of_command = printed(*command.split(), "--out", tmp_path, "--save", saved_to)
    assert of_file.to_dict()["length"] == of_command["length"]
    assert of_frame.to_dict()["length"] == of_command["length"]
    pd.testing.assert_frame_equal(
        of_frame.table.drop(columns="seconds"), of_file.table.drop(columns="seconds")
    )
    model = of_file.fit()
    saved = precbench.Model.load(saved_to)
    assert np.array_equal(model.coef, saved.coef)
    assert model.about["label"] == "left"
    assert model.about["positive"] == ["yes"]
    hits_of_model = precbench.evaluate(model, "new.csv").to_dict()
    hits_of_saved = precbench.evaluate(saved, "new.csv").to_dict()
    assert hits_of_model == hits_of_saved


def test_compare_of_a_table_counts_what_hits_gain(here):
    table = pd.read_csv("old.csv").assign(worth=lambda rows: rows["age"] * 2)
    options = {"k": 30, "categorical": "one-hot", "cost": 1.5, **FEW}
    by_column = precbench.compare(
        table, **LABEL, drop=["customer", "worth"], gain="worth", **options
    )
    by_arrays = precbench.compare(
        table[["age", "paid", "plan"]],
        table["left"],
        positive="yes",
        gain=table["worth"].to_numpy(),
        **options,
    )
    profit = by_column.length.profit
    expected = by_arrays.length.profit
    assert profit.column == "worth"
    assert profit.model_copy(update={"column": expected.column}) == expected


def test_a_label_beside_y_is_refused(here):
    table = pd.read_csv("old.csv")
    with pytest.raises(InputError, match="label"):
        precbench.compare(
            table[["age"]], table["left"], label="left", positive="yes", k=30
        )


def test_compare_reads_the_run_once(here, monkeypatch):
    """Four trials on two splits, which are divided as seldom as it takes."""
    n_calls = Counter()

    def count_calls(path):
        module, name = path.rsplit(".", 1)
        function = getattr(import_module(module), name)

        def call(*arguments, **options):
            n_calls[name] += 1
            return function(*arguments, **options)

        monkeypatch.setattr(path, call)

    count_calls("precbench.advice.comparison.read_run")
    count_calls("precbench.advice.contest.divide_rows")
    count_calls("precbench.experiment.samples.divide_rows")
    precbench.compare(
        "old.csv",
        **LABEL,
        k=30,
        id=["customer"],
        categorical="one-hot",
        effort="quick",
        **FEW,
    )
    to_check = 1
    to_measure = 2  # once for each split
    to_forecast = 2
    assert n_calls["read_run"] == 1
    assert n_calls["divide_rows"] == to_check + to_measure + to_forecast

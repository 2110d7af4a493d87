"""What a saved model says of itself."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import yaml

from precbench import Model
from precbench.npz import pack, unpack
from precbench.solvers import SGDAtK
from tests.helpers import invoke, run, succeed
from tests.sentences import refused, tells

pytestmark = pytest.mark.usefixtures("in_this_process")

TREES = ("--solver", "hist-gradient-boosting", "--param", "max_iter=3")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A file of customers."""
    path = tmp_path_factory.mktemp("show") / "rows.csv"
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((200, 2)).round(2), columns=["a", "b"])
    table["city"] = rng.choice(["Rome", "Oslo"], 200)
    table["y"] = (2 * table["a"] - table["b"] > 1.5).astype(int)
    table.loc[3, "a"] = np.nan
    table.to_csv(path, index=False)
    return path


def fitted(rows, *options):
    path = rows.parent / "m.npz"
    reading = ("--label", "y", "--categorical", "one-hot", "--missing", "mean", "--k", "10")
    result = succeed("fit", rows, *reading, "--save", path, *options)
    return path, result.stdout


def shown(*arguments):
    said = succeed("show", *arguments).stdout
    assert max(map(len, said.splitlines()[1:]), default=0) <= 100
    return said


@pytest.mark.parametrize(("options", "kind", "most"), [
    (("--solver", "sgd-avg"), "sgd-avg, weights of 5 features",
     r"most weight: a [\d.]+, b -[\d.]+, "),
    (TREES, "hist-gradient-boosting, 3 trees with [0-9]+ nodes on 5 features", "most splits: a "),
    (("--fourier", "7"), "sgd-avg, weights of 7 random Fourier features of 5 features", None),
])  # fmt: skip
def test_a_model_says_what_it_is(rows, options, kind, most):
    path, said = fitted(rows, *options, "--splits", "2")
    text = " ".join(shown(path).split())
    assert re.match(f"{path}: {kind} fitted: on 2", text)
    assert re.search(r"to 200 rows, \d+ positive", text)
    quality = " ".join(said.partition("Hits by length")[0].splitlines()[1:])
    assert f"quality: {quality} parameters: " in text and "2 splits" in quality
    assert "columns: a: number; missing values as " in text
    assert "city: one of Oslo, Rome" in text
    assert re.search(most, text) if most else "most " not in text
    about = json.loads(shown(path, "--json"))
    assert about["quality"]["splits"] == 2
    assert (about["rows"], about["n_features"]) == (200, 5)
    assert [column["name"] for column in about["columns"]] == ["a", "b", "city"]


def test_a_model_from_python(tmp_path):
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 3 == 0
    model = Model.fit(X, y)
    model.save(tmp_path / "m.npz")
    text = shown(tmp_path / "m.npz")
    assert "to 60 rows, 20 positive" in text and "columns: unnamed, of arrays" in text
    assert "quality" not in text


def test_what_is_no_model(rows, tmp_path):
    refused(["show", "none.npz"], "none.npz")
    refused(["show", rows], str(rows))
    path, _ = fitted(rows)
    arrays = unpack(path, kinds="fiU")
    described = json.loads(str(arrays["description"]))
    described["about"]["auc"] = "high"
    (tmp_path / "m.npz").write_bytes(
        pack(arrays | {"description": np.array(json.dumps(described))})
    )
    refused(["show", tmp_path / "m.npz"], "auc")


# --- trials ---


def shown_trial(what, results):
    return succeed("show", what, "--results", results).stdout


def test_a_trial_is_found_by_its_key_and_by_its_place(finished):
    results = finished / "small"
    rows = pd.read_csv(results / "results.csv").query(
        "solver == 'sgd-avg' and split == 1 and final and metric == 'auc'"
    )
    key, value = rows["key"].item(), rows["value"].item()
    said = shown_trial("mine/sgd-avg/1", results)
    assert said == shown_trial(key, results) == shown_trial(key[:10], finished)
    about = json.loads(succeed("show", key, "--results", results, "--json").stdout)
    filled = {name: fact for name, fact in about.items() if fact not in (None, "", [], {})}
    assert yaml.safe_load(said) == filled
    assert (about["key"], about["status"], about["changed_versions"]) == (key, "ok", [])
    assert about["chosen"].keys() == {"eta0"} and about["record"].endswith(f"{key}.json")
    repeated = "precbench run small.yaml --solver sgd-avg --dataset mine --splits 1 --force --out "
    assert about["command"].startswith(repeated)
    assert {m["metric"]: m["value"] for m in about["metrics"]}["auc"] == pytest.approx(value)


def test_a_trial_is_repeated_with_the_config_as_it_was_given(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of mine").mkdir()
    config = small(
        solvers="{perceptron-avg: }",
        protocol="{n_splits: 1}",
        datasets="[{file: ../mine.csv, label: label}]",
    ).rename("of mine/first.yaml")
    results = tmp_path / "results" / "small"
    for given, named in (
        ("of mine/first.yaml", "'of mine/first.yaml'"),
        (config.absolute(), "first.yaml"),  # no folder of the user
    ):
        assert run(given, "results", "--force").exit_code == 0
        said = shown_trial("mine/perceptron-avg/0", results)
        tells(said, f"{named} --solver")
        assert invoke("merge", "results", "--out", "all", "--config", given).exit_code == 0
        about = json.loads((tmp_path / "all" / "small" / "experiment.json").read_text())
        assert about["config"] == named.strip("'")
    about = json.loads((results / "experiment.json").read_text())
    (results / "experiment.json").write_text(json.dumps(about | {"config": ""}))
    assert "command:" not in shown_trial("mine/perceptron-avg/0", results)


def test_a_trial_of_another_version_says_that_it_would_run_again(finished, monkeypatch):
    monkeypatch.setattr(SGDAtK, "algorithm_version", 99)
    assert "changed_versions:\n- solver\n" in shown_trial("mine/sgd-avg/0", finished)


@pytest.mark.parametrize(("what", "folder"), [
    ("mine/sgd-avg/7", "small"), ("nonsense", "small"), ("mine/sgd-avg/0", "nowhere"),
    ("no.npz", "small"),
])  # fmt: skip
def test_what_is_no_trial_is_refused(what, folder, finished):
    refused(["show", what, "--results", finished / folder], what if folder == "small" else folder)


def test_several_trials_are_listed(finished):
    (finished / "other").symlink_to(finished / "small")
    refused(["show", "mine/sgd-avg/0", "--results", finished], "2 mine/sgd-avg/0")

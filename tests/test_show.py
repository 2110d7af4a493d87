"""What a saved model says of itself."""

import json
import re
import shutil

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
    result = succeed("show", *arguments)
    assert max(map(len, result.stdout.splitlines()[1:]), default=0) <= 100
    return result.stdout


@pytest.mark.parametrize(
    ("options", "kind", "most"),
    [
        (
            ("--solver", "sgd-avg"),
            "sgd-avg, weights of 5 features",
            r"most weight: a [\d.]+, b -[\d.]+, ",
        ),
        (
            TREES,
            "hist-gradient-boosting, 3 trees with [0-9]+ nodes on 5 features",
            "most splits: a ",
        ),
        (("--fourier", "7"), "sgd-avg, weights of 7 random Fourier features of 5 features", None),
    ],
)
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
    assert about["quality"]["boosted_trees" if not options else "splits"]
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


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    return tmp_path_factory.mktemp("once")


@pytest.fixture
def results(small, tmp_path, once):
    """The results of a small experiment, which runs once."""
    config = small(solvers="{sgd-avg: {eta0: {tune: [0.1, 1.0]}}, perceptron-avg: }")
    if not (once / "small").exists():
        assert run(config, once).exit_code == 0
    return shutil.copytree(once / "small", tmp_path / "small")


def test_a_trial_is_found_by_its_key_and_by_its_place(results):
    rows = pd.read_csv(results / "results.csv").query(
        "solver == 'sgd-avg' and split == 1 and final"
    )
    [key] = set(rows["key"])
    said = shown_trial("mine/sgd-avg/1", results)
    assert said == shown_trial(key, results) == shown_trial(key[:10], results.parent)
    value = rows.query("metric == 'auc'")["value"].item()
    about = json.loads(invoke("show", key, "--results", results, "--json").stdout)
    filled = {name: fact for name, fact in about.items() if fact not in (None, "", [], {})}
    assert yaml.safe_load(said) == filled
    assert (about["key"], about["status"], about["changed_versions"]) == (key, "ok", [])
    assert about["chosen"].keys() == {"eta0"} and about["record"].endswith(f"{key}.json")
    repeated = "precbench run small.yaml --solver sgd-avg --dataset mine --splits 1 --force --out "
    assert about["command"].startswith(repeated)
    assert {m["metric"]: m["value"] for m in about["metrics"]}["auc"] == pytest.approx(value)


def shown_trial(what, results):
    result = succeed("show", what, "--results", results)
    return result.stdout


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


def test_a_trial_of_another_version_says_that_it_would_run_again(results, monkeypatch):
    monkeypatch.setattr(SGDAtK, "algorithm_version", 99)
    said = shown_trial("mine/sgd-avg/0", results)
    assert "changed_versions:\n- solver\n" in said


@pytest.mark.parametrize(
    ("what", "folder", "says"),
    [
        ("mine/sgd-avg/7", "small", "mine/sgd-avg/7"),
        ("nonsense", "small", "nonsense"),
        ("mine/sgd-avg/0", "nowhere", "nowhere"),
        ("no.npz", "small", "no.npz"),
    ],
)
def test_what_is_no_trial_is_refused(what, folder, says, results):
    refused(["show", what, "--results", results.parent / folder], says)


def test_several_trials_are_listed(results, tmp_path):
    (tmp_path / "other").symlink_to(results)
    refused(["show", "mine/sgd-avg/0", "--results", tmp_path], "2 mine/sgd-avg/0")

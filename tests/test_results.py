"""Folders of results and saved models: shards, merge, diff, status, show."""

import json
import os
import random
import re
import shutil
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from precbench import Model
from precbench.core.errors import InputError
from precbench.core.npz import pack, unpack
from precbench.experiment.plan import Plan
from precbench.experiment.shard import Shard
from precbench.ranking.statistics import resampled_test
from precbench.results.store import Store, key_of
from precbench.solvers import SGDAtK
from tests.helpers import invoke, numbers, records, run, shipped_config, succeed
from tests.sentences import done_already, raises, refused, tells

pytestmark = pytest.mark.usefixtures("in_this_process")

SOLVERS = "{sgd-avg: , perceptron-avg: }"


def merge(*arguments, code=0):
    result = invoke("merge", *arguments, "--no-plots")
    assert result.exit_code == code, result.output
    return result.stdout


def plan_of(name):
    """Return a plan whose keys are hashes of the places of the trials, without any
    data.
    """
    experiment = shipped_config(name)
    trials = [(trial, key_of({"title": trial.title})) for trial in experiment.trials()]
    return Plan(experiment, {}, tuple(trials))


# --- shares ---


@pytest.mark.parametrize(
    "name",
    ["w8a", "kar2015/section-6", "kar2015/fig3-kappa", "rudin2009/table-5-housing"],
)
def test_shares_are_even_and_do_not_depend_on_the_order(name):
    plan = plan_of(name)
    wanted = {key for _, key in plan.trials}
    mixed = random.Random(0).sample(plan.trials, len(plan.trials))
    group = {key: (trial.dataset.name, trial.split.index) for trial, key in plan.trials}
    largest = max(Counter(group.values()).values())
    for of in (3, 10):
        for by_split, most in ((False, 1), (True, largest)):
            shards = [Shard(number, of) for number in range(1, of + 1)]
            shares = [shard.keys(plan, wanted, by_split=by_split) for shard in shards]
            assert sorted(key for share in shares for key in share) == sorted(wanted)
            sizes = [len(share) for share in shares]
            assert max(sizes) - min(sizes) <= most
            shuffled = Plan(plan.experiment, {}, tuple(mixed))
            assert shares[1] == shards[1].keys(shuffled, wanted, by_split=by_split)
            if by_split:
                places = [{group[key] for key in share} for share in shares]
                assert sum(map(len, places)) == len(set(group.values()))


def test_shares_of_each_solver_are_even():
    plan = plan_of("letter")
    share = Shard(1, 5).keys(plan, {key for _, key in plan.trials})
    labels = [trial.label for trial, key in plan.trials if key in share]
    assert sorted(labels) == sorted(plan.experiment.solvers)  # one of its five splits


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "3", "-1/3", "1/3/2", "a/b", "1/0", "１/２"]
)
def test_what_is_no_shard_is_refused(text, tmp_path):
    assert Shard.parse("3/10").folder(tmp_path) == tmp_path / "shards" / "03-of-10"
    with raises(InputError, "shard"):
        Shard.parse(text)


# --- run, status, merge ---


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def shards(small, made, tmp_path):
    """Two shards of an experiment of 2 solvers and 3 splits, in ``all``."""
    config = small(solvers=SOLVERS, protocol="{n_splits: 3}")
    for number in (1, 2) if not any(made.iterdir()) else ():
        succeed("run", config, "--out", made, "--shard", f"{number}/2")
    shutil.copytree(made, tmp_path / "all")
    return sorted((tmp_path / "all" / "shards").iterdir())


def test_merged_shards_are_the_run_in_one_piece(small, shards, tmp_path):
    config, results = tmp_path / "small.yaml", tmp_path / "all"
    assert run(config, tmp_path / "one", "--jobs", "2", "--no-plots").exit_code == 0
    assert not list(shards[0].glob("small/*.csv"))  # tables are made once
    said = invoke("status", results).stdout
    tells(said, "small 1/2 3")
    tells(said, "small 2/2 3")
    assert done_already(run(config, results, "--shard", "2/2", "--dry-run").output) == 3
    [about] = json.loads(merge(shards[1], "--out", tmp_path / "r", "--json"))
    assert "1/2" in about["missing_shards"]
    tells(merge(shards[0], "--out", tmp_path / "r", "--config", config), "small 3 6")
    merge(*shards, "--out", results, "--config", config)
    for folder in (results, tmp_path / "r"):
        assert numbers(tmp_path / "one" / "small").equals(numbers(folder / "small"))
    before = records(results / "small")
    # that at other times
    for sources in ([*shards, tmp_path / "r"], [tmp_path / "one"]):
        [about] = json.loads(merge(*sources, "--out", results, "--json"))
        assert about["taken"] == 0
        assert records(results / "small") == before
    tells(invoke("status", results / "small").stdout, "small 6")
    assert done_already(run(config, results, "--no-plots").output) == 6


def test_what_is_still_to_run_is_reported(shards, tmp_path):
    key, *_ = Store(shards[0] / "small").keys()
    (shards[0] / "small" / "trials" / f"{key}.json").unlink()
    [about] = json.loads(merge(*shards, "--out", tmp_path / "r", "--json"))
    assert about["taken"] == 5
    assert about["left"] == 1
    assert about["missing_shards"] == []
    tells(merge(shards[0], "--out", tmp_path / "r"), "small 1")


def test_a_share_may_be_empty(shards, tmp_path):
    assert run(tmp_path / "small.yaml", tmp_path, "--shard", "7/9").exit_code == 0
    tells(merge(tmp_path / "shards" / "7-of-9", "--out", tmp_path / "r"), "small 0 1/9")


def changed_copy(folder, tmp_path, **changes):
    """Return a copy of a folder with another first record, and its key."""
    other = tmp_path / "other"
    shutil.copytree(folder / "small", other / "small")
    store = Store(other / "small")
    key, *_ = store.keys()
    arrays = store.arrays(key)
    coef = arrays["coef"] + changes.pop("move", 0.0)
    [machine] = store.machines().values()
    elsewhere = store.add_environment({**machine.model_dump(), "cpu": "Another"})
    record = {**store.read(key).to_dict(), "environment": elsewhere, **changes}
    store.write(record, {**arrays, "coef": coef} if record["status"] == "ok" else None)
    return other, key


def test_a_conflict_is_reported_and_nothing_is_written(shards, tmp_path):
    first, out = shards[0], tmp_path / "r"
    other, key = changed_copy(first, tmp_path, move=1e-9)
    refused(
        ["merge", first, other, "--out", out],
        f"{key[:12]} {first} {other} Another",
        code=1,
    )
    assert not Store(out / "small").keys()
    merge(first, "--out", out)
    kept = Store(out / "small").arrays(key)["coef"]
    refused(["merge", other, "--out", out], code=1)
    refused(["merge", other, "--out", out, "--keep", first])
    merge(other, first, "--out", out, "--keep", out)
    assert (Store(out / "small").arrays(key)["coef"] == kept).all()
    merge(other, "--out", out, "--keep", other)
    assert (Store(out / "small").arrays(key)["coef"] == kept + 1e-9).all()
    machine = Store(out / "small").read(key).environment
    assert Store(out / "small").machines()[machine].cpu == "Another"


@pytest.mark.parametrize("status", ["failed", "skipped", "timeout"])
def test_a_result_replaces_what_failed_elsewhere(shards, tmp_path, status):
    other, key = changed_copy(shards[0], tmp_path, status=status, reason="no")
    for n, steps in enumerate(
        ([(shards[0], other)], [(other, shards[0])], [(other,), shards[:1]])
    ):
        for folders in steps:
            merge(*folders, "--out", tmp_path / f"r{n}")
        assert Store(tmp_path / f"r{n}" / "small").read(key).status == "ok"


@pytest.mark.promise("R14")
@pytest.mark.parametrize("what", ["json", "key", "npz"])
def test_untrusted_records_are_checked_before_anything_is_written(
    shards, tmp_path, what
):
    store = Store(shards[1] / "small")
    key, other, *_ = store.keys()
    path = store.folder / "trials" / f"{key}.json"
    if what == "key":
        path.write_text(
            path.read_text().replace(f'"key": "{key}"', f'"key": "{other}"')
        )
    else:
        os.truncate(path.with_suffix(f".{what}"), 20)
    refused(["merge", *shards, "--out", tmp_path / "r"], "is damaged")
    assert not Store(tmp_path / "r" / "small").keys()


def test_what_cannot_be_merged_is_refused(shards, tmp_path):
    refused(["merge", tmp_path / "no", "--out", tmp_path], str(tmp_path / "no"))
    refused(["merge", shards[0] / "small" / "trials", "--out", tmp_path])
    refused(["merge", *shards, "--out", tmp_path, "--keep", tmp_path / "c"], "--keep")
    refused(["run", "kar2015/minima", "--shard", "1/2"], "--shard")


# --- what is done, running and left; two folders of results, cell by cell ---


@pytest.fixture
def other(finished):
    return Path(shutil.copytree(finished, finished.parent / "b"))


def edited(folder, change):
    path = folder / "small" / "results.csv"
    change(pd.read_csv(path, converters={"value": float})).to_csv(path, index=False)


def diff(*arguments, code=0):
    result = invoke("diff", *arguments)
    assert result.exit_code == code, result.output
    return result.stdout


# --- diff ---


def test_equal_results_are_the_same(finished, other):
    assert diff(finished, other).startswith("small: 8 numbers are the same in both")
    assert json.loads(diff(finished / "small", other / "small", "--json"))["same"]


def test_a_changed_number_is_found_with_its_paired_interval(finished, other):
    before = pd.read_csv(finished / "small" / "results.csv")
    cell = (
        (before["metric"] == "auc") & (before["solver"] == "sgd-avg") & before["final"]
    )

    def change(table):
        table.loc[cell & (table["split"] == 1), "value"] -= 0.25
        return table

    edited(other, change)
    [of] = json.loads(diff(finished, other, "--json", code=1))["experiments"]
    assert of["equal"] == 7
    assert of["differing"] == 1
    first = before.loc[cell, "value"].to_numpy()
    test = resampled_test(first - [0, 0.25], first, 0.3)
    [found] = of["cells"]
    assert found["solver"] == "sgd-avg"
    assert found["metric"] == "auc"
    assert found["differing"] == 1
    assert found["difference"] == pytest.approx(-0.125)
    assert (found["low"], found["high"]) == pytest.approx((test.low, test.high))
    tells(diff(finished, other, code=1), "small 7 1")


def test_numbers_within_the_tolerance_are_equal(finished, other):
    edited(other, lambda table: table.assign(value=table["value"] * (1 + 1e-6)))
    for options, differing in (
        ([], 8),
        (["--tolerance", "5e-7"], 8),
        (["--tolerance", "2e-6"], 0),
    ):
        found = diff(finished, other, "--json", *options, code=min(differing, 1))
        assert json.loads(found)["experiments"][0]["differing"] == differing


def test_what_only_one_folder_has_is_counted(finished, other):
    edited(other, lambda table: table[table["solver"] == "sgd-avg"])
    (other / "small").rename(other / "small2")
    shutil.copytree(finished / "small", other / "small")
    tells(diff(finished / "small", other / "small2", code=1), "small 4 first")
    tells(diff(finished, other, code=1), "small2")


def test_folders_that_cannot_be_compared_are_refused(finished, tmp_path):
    for folders, places in (
        ((finished, tmp_path), f"{finished} {tmp_path}"),
        ((finished, "a"), "a"),
        (("a", finished), "a"),
        (("a", "b"), "a"),
    ):
        refused(["diff", *folders], places)


# --- status ---


def status(folder):
    return json.loads(succeed("status", folder, "--json").stdout)[0]


def test_a_finished_run_has_nothing_left(finished):
    found = status(finished)
    assert found["asked"] == 4
    assert found["done"] == 4
    assert found["left"] == 0
    assert found["outcomes"] == {"ok": 4}
    assert found["process"] is None
    tells(invoke("status", finished).stdout, "small 4")
    (finished / "small" / "asked.json").unlink()  # without it all records count
    assert status(finished)["asked"] == 4


def test_a_run_at_work_says_how_far_it_is(finished):
    store = Store(finished / "small")
    first, second, *_ = store.keys()
    (store.folder / "trials" / f"{first}.json").unlink()
    store.write({**store.read(second).to_dict(), "status": "failed", "reason": "no"})
    with store.lock():
        store.running.mkdir(exist_ok=True)
        mark = store.running / first
        mark.write_text("mine split 1 sgd-avg")
        os.utime(mark, (time.time() - 200, time.time() - 200))
        found = status(finished / "small")
        said = invoke("status", finished).stdout
    assert found["done"] == 2
    assert found["left"] == 2
    assert found["outcomes"]["failed"] == 1
    [running] = found["running"]
    assert running["trial"] == "mine split 1 sgd-avg"
    assert 200 <= running["seconds"] < 300
    assert found["seconds_left"] > 0
    assert found["process"] > 0
    for text in (
        "2 of 4",
        "1 failed",
        "running (process",
        " left",
        "mine split 1 sgd-avg, for 3 min",
    ):
        assert text in said


def test_status_of_nothing_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "no"):
        refused(["status", folder], str(folder))


# --- what a saved model says of itself ---


TREES = ("--solver", "hist-gradient-boosting", "--param", "max_iter=3")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
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
    reading = (
        "--label",
        "y",
        "--categorical",
        "one-hot",
        "--missing",
        "mean",
        "--k",
        "10",
    )
    return path, succeed("fit", rows, *reading, "--save", path, *options).stdout


def shown(*arguments):
    said = succeed("show", *arguments).stdout
    folded = [line for line in said.splitlines() if line.startswith("  ")]
    assert max(map(len, folded), default=0) <= 100
    return said


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
        (
            ("--fourier", "7"),
            "sgd-avg, weights of 7 random Fourier features of 5 features",
            None,
        ),
    ],
)
def test_a_model_says_what_it_is(rows, options, kind, most):
    path, said = fitted(rows, *options, "--splits", "2")
    text = " ".join(shown(path).split())
    assert re.match(f"{path}: {kind} fitted: on 2", text)
    assert re.search(r"to 200 rows, \d+ positive", text)
    quality = " ".join(said.partition("Hits by length")[0].splitlines()[1:])
    assert f"quality: {quality} parameters: " in text
    assert "2 splits" in quality
    assert "columns: a: number; missing values as " in text
    assert "city: one of Oslo, Rome" in text
    assert re.search(most, text) if most else "most " not in text
    about = json.loads(shown(path, "--json"))
    assert about["quality"]["splits"] == 2
    assert about["rows"] == 200
    assert about["n_features"] == 5
    assert [column["name"] for column in about["columns"]] == ["a", "b", "city"]


def test_a_model_from_python(tmp_path):
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 3 == 0
    Model.fit(X, y).save(tmp_path / "m.npz")
    text = shown(tmp_path / "m.npz")
    assert "to 60 rows, 20 positive" in text
    assert "columns: unnamed, of arrays" in text
    assert "quality" not in text


def test_what_is_no_model(rows, tmp_path):
    refused(["show", "none.npz"], "none.npz")
    refused(["show", rows], str(rows))
    path, _ = fitted(rows)
    arrays = unpack(path, kinds="fiU")
    described = json.loads(str(arrays["description"]))
    described["about"]["auc"] = "high"
    arrays |= {"description": np.array(json.dumps(described))}
    (tmp_path / "m.npz").write_bytes(pack(arrays))
    refused(["show", tmp_path / "m.npz"], "auc")


# --- trials ---


def shown_trial(what, results):
    return succeed("show", what, "--results", results).stdout


def test_a_trial_is_found_by_its_key_and_by_its_place(finished):
    results = finished / "small"
    rows = pd.read_csv(results / "results.csv")
    rows = rows.query(
        "solver == 'sgd-avg' and split == 1 and final and metric == 'auc'"
    )
    key, value = rows["key"].item(), rows["value"].item()
    said = shown_trial("mine/sgd-avg/1", results)
    assert said == shown_trial(key, results) == shown_trial(key[:10], finished)
    about = json.loads(succeed("show", key, "--results", results, "--json").stdout)
    filled = {
        name: fact for name, fact in about.items() if fact not in (None, "", [], {})
    }
    assert yaml.safe_load(said) == filled
    assert about["key"] == key
    assert about["status"] == "ok"
    assert about["changed_versions"] == []
    assert about["chosen"].keys() == {"eta0"}
    assert about["record"].endswith(f"{key}.json")
    repeated = (
        "precbench run small.yaml --solver sgd-avg --dataset mine --splits 1 --force"
        " --out "
    )
    assert about["command"].startswith(repeated)
    assert {m["metric"]: m["value"] for m in about["metrics"]}["auc"] == pytest.approx(
        value
    )


def test_a_trial_is_repeated_with_the_config_as_it_was_given(small, work_folder):
    (work_folder / "of mine").mkdir()
    config = small(
        solvers="{perceptron-avg: }",
        protocol="{n_splits: 1}",
        datasets="[{file: ../mine.csv, label: label}]",
    ).rename("of mine/first.yaml")
    results = work_folder / "results" / "small"
    for given, named in (
        ("of mine/first.yaml", "'of mine/first.yaml'"),
        (config.absolute(), "first.yaml"),  # no folder of the user
    ):
        assert run(given, "results", "--force").exit_code == 0
        tells(shown_trial("mine/perceptron-avg/0", results), f"{named} --solver")
        assert (
            invoke("merge", "results", "--out", "all", "--config", given).exit_code == 0
        )
        about = json.loads(
            (work_folder / "all" / "small" / "experiment.json").read_text()
        )
        assert about["config"] == named.strip("'")
    about = json.loads((results / "experiment.json").read_text())
    (results / "experiment.json").write_text(json.dumps(about | {"config": ""}))
    assert "command:" not in shown_trial("mine/perceptron-avg/0", results)


def test_a_trial_of_another_version_says_that_it_would_run_again(finished, monkeypatch):
    monkeypatch.setattr(SGDAtK, "algorithm_version", 99)
    assert "changed_versions:\n- solver\n" in shown_trial("mine/sgd-avg/0", finished)


@pytest.mark.parametrize(
    ("what", "folder"),
    [
        ("mine/sgd-avg/7", "small"),
        ("nonsense", "small"),
        ("mine/sgd-avg/0", "nowhere"),
        ("no.npz", "small"),
    ],
)
def test_what_is_no_trial_is_refused(what, folder, finished):
    refused(
        ["show", what, "--results", finished / folder],
        what if folder == "small" else folder,
    )


def test_several_trials_are_listed(finished):
    (finished / "other").symlink_to(finished / "small")
    refused(["show", "mine/sgd-avg/0", "--results", finished], "2 mine/sgd-avg/0")

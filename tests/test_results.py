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


def merge_summary(*arguments):
    """Merge into one folder of an experiment, and return the summary."""
    [summary] = json.loads(merge(*arguments, "--json"))
    return summary


def plan_of(name):
    """Return a plan without data, whose keys are hashes of the trials' titles."""
    experiment = shipped_config(name)
    trials = [(trial, key_of({"title": trial.title})) for trial in experiment.trials()]
    return Plan(experiment, {}, tuple(trials))


# --- shares ---


@pytest.mark.parametrize(
    "name",
    ["w8a", "kar2015/section-6", "kar2015/fig3-kappa", "rudin2009/table-5-housing"],
)
@pytest.mark.parametrize("n_shards", [3, 10])
@pytest.mark.parametrize("by_split", [False, True], ids=["by trial", "by split"])
def test_shares_are_even_and_do_not_depend_on_the_order(name, n_shards, by_split):
    plan = plan_of(name)
    keys = {key for _trial, key in plan.trials}
    split_of = {
        key: (trial.dataset.name, trial.split.index) for trial, key in plan.trials
    }
    sizes_of_splits = Counter(split_of.values())
    shards = [Shard(number, n_shards) for number in range(1, n_shards + 1)]
    shares = [shard.keys(plan, keys, by_split=by_split) for shard in shards]

    assert sorted(key for share in shares for key in share) == sorted(keys)
    sizes = [len(share) for share in shares]
    most_apart = max(sizes_of_splits.values()) if by_split else 1
    assert max(sizes) - min(sizes) <= most_apart
    if by_split:
        n_splits = [len({split_of[key] for key in share}) for share in shares]
        assert sum(n_splits) == len(sizes_of_splits)  # no split is in two shares

    mixed = random.Random(0).sample(plan.trials, len(plan.trials))
    mixed_plan = Plan(plan.experiment, {}, tuple(mixed))
    assert shards[1].keys(mixed_plan, keys, by_split=by_split) == shares[1]


def test_shares_of_each_solver_are_even():
    plan = plan_of("letter")
    share = Shard(1, 5).keys(plan, {key for _, key in plan.trials})
    labels = [trial.label for trial, key in plan.trials if key in share]
    assert sorted(labels) == sorted(plan.experiment.solvers)  # one of its five splits


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "3", "-1/3", "1/3/2", "a/b", "1/0", "１/２"]
)
def test_what_is_no_shard_is_refused(text):
    with raises(InputError, "shard"):
        Shard.parse(text)


def test_the_folder_of_a_shard_has_its_number_and_the_number_of_all(tmp_path):
    assert Shard.parse("3/10").folder(tmp_path) == tmp_path / "shards" / "03-of-10"


# --- run, status, merge ---


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def shards(small, made, tmp_path):
    """Two shards of an experiment of 2 solvers and 3 splits, in ``all``."""
    config = small(solvers=SOLVERS, protocol="{n_splits: 3}")
    if not any(made.iterdir()):  # by an earlier test
        for number in (1, 2):
            succeed("run", config, "--out", made, "--shard", f"{number}/2")
    shutil.copytree(made, tmp_path / "all")
    return sorted((tmp_path / "all" / "shards").iterdir())


def test_each_shard_is_a_run_without_tables(shards, tmp_path):
    config = tmp_path / "small.yaml"
    results = tmp_path / "all"
    assert not list(shards[0].glob("small/*.csv"))
    status = invoke("status", results).stdout
    tells(status, "small 1/2 3")
    tells(status, "small 2/2 3")
    second = run(config, results, "--shard", "2/2", "--dry-run")
    assert done_already(second.output) == 3


def test_merged_shards_are_the_run_in_one_piece(shards, tmp_path):
    config = tmp_path / "small.yaml"
    results = tmp_path / "all"
    one_by_one = tmp_path / "r"
    one_piece = tmp_path / "one"
    assert run(config, one_piece, "--jobs", "2", "--no-plots").exit_code == 0

    summary = merge_summary(shards[1], "--out", one_by_one)
    assert "1/2" in summary["missing_shards"]
    tells(merge(shards[0], "--out", one_by_one, "--config", config), "small 3 6")
    merge(*shards, "--out", results, "--config", config)
    for folder in (results, one_by_one):
        assert numbers(folder / "small").equals(numbers(one_piece / "small"))

    # The same records, also with other times, are not taken again.
    merged_records = records(results / "small")
    for sources in ([*shards, one_by_one], [one_piece]):
        assert merge_summary(*sources, "--out", results)["taken"] == 0
        assert records(results / "small") == merged_records
    tells(invoke("status", results / "small").stdout, "small 6")
    assert done_already(run(config, results, "--no-plots").output) == 6


def test_what_is_still_to_run_is_reported(shards, tmp_path):
    key, *_others = Store(shards[0] / "small").keys()
    (shards[0] / "small" / "trials" / f"{key}.json").unlink()
    summary = merge_summary(*shards, "--out", tmp_path / "r")
    assert summary["taken"] == 5
    assert summary["left"] == 1
    assert summary["missing_shards"] == []
    tells(merge(shards[0], "--out", tmp_path / "r"), "small 1")


def test_a_share_may_be_empty(shards, tmp_path):
    assert run(tmp_path / "small.yaml", tmp_path, "--shard", "7/9").exit_code == 0
    tells(merge(tmp_path / "shards" / "7-of-9", "--out", tmp_path / "r"), "small 0 1/9")


def changed_copy(folder, tmp_path, *, move=0.0, status="ok", reason=""):
    """Return a copy of a folder, and the key of a record that is another one there."""
    other = tmp_path / "other"
    shutil.copytree(folder / "small", other / "small")
    store = Store(other / "small")
    key, *_others = store.keys()
    [machine] = store.machines().values()
    elsewhere = store.add_environment({**machine.model_dump(), "cpu": "Another"})
    record = {
        **store.read(key).to_dict(),
        "environment": elsewhere,
        "status": status,
        "reason": reason,
    }
    if status == "ok":
        arrays = store.arrays(key)
        store.write(record, {**arrays, "coef": arrays["coef"] + move})
    else:
        store.write(record)
    return other, key


def coef_of(folder, key):
    return Store(folder / "small").arrays(key)["coef"]


def test_a_conflict_is_reported_and_nothing_is_written(shards, tmp_path):
    first = shards[0]
    out = tmp_path / "r"
    other, key = changed_copy(first, tmp_path, move=1e-9)
    refused(
        ["merge", first, other, "--out", out],
        f"{key[:12]} {first} {other} Another",
        code=1,
    )
    assert not Store(out / "small").keys()


def test_of_a_conflict_the_record_of_the_folder_to_keep_is_taken(shards, tmp_path):
    first = shards[0]
    out = tmp_path / "r"
    other, key = changed_copy(first, tmp_path, move=1e-9)
    merge(first, "--out", out)
    first_coef = coef_of(out, key)
    refused(["merge", other, "--out", out], code=1)
    refused(["merge", other, "--out", out, "--keep", first])

    merge(other, first, "--out", out, "--keep", out)
    assert (coef_of(out, key) == first_coef).all()

    merge(other, "--out", out, "--keep", other)
    assert (coef_of(out, key) == first_coef + 1e-9).all()
    store = Store(out / "small")
    machine = store.machines()[store.read(key).environment]
    assert machine.cpu == "Another"


@pytest.mark.parametrize("status", ["failed", "skipped", "timeout"])
@pytest.mark.parametrize("order", ["result first", "result last", "one by one"])
def test_a_result_replaces_what_failed_elsewhere(shards, tmp_path, status, order):
    result = shards[0]
    failure, key = changed_copy(result, tmp_path, status=status, reason="no")
    merges = {
        "result first": [[result, failure]],
        "result last": [[failure, result]],
        "one by one": [[failure], [result]],
    }
    for folders in merges[order]:
        merge(*folders, "--out", tmp_path / "r")
    assert Store(tmp_path / "r" / "small").read(key).status == "ok"


@pytest.mark.promise("R14")
@pytest.mark.parametrize("damage", ["short json", "short npz", "another key"])
def test_untrusted_records_are_checked_before_anything_is_written(
    shards, tmp_path, damage
):
    store = Store(shards[1] / "small")
    key, other_key, *_others = store.keys()
    path = store.folder / "trials" / f"{key}.json"
    if damage == "short json":
        os.truncate(path, 20)
    elif damage == "short npz":
        os.truncate(path.with_suffix(".npz"), 20)
    else:
        text = path.read_text()
        path.write_text(text.replace(f'"key": "{key}"', f'"key": "{other_key}"'))
    refused(["merge", *shards, "--out", tmp_path / "r"], "is damaged")
    assert not Store(tmp_path / "r" / "small").keys()


def test_what_cannot_be_merged_is_refused(shards, tmp_path):
    refused(["merge", tmp_path / "no", "--out", tmp_path], str(tmp_path / "no"))
    refused(["merge", shards[0] / "small" / "trials", "--out", tmp_path])
    refused(["merge", *shards, "--out", tmp_path, "--keep", tmp_path / "c"], "--keep")
    refused(["run", "kar2015/minima", "--shard", "1/2"], "--shard")


# --- diff: two folders of results, cell by cell ---


@pytest.fixture
def other(finished):
    return Path(shutil.copytree(finished, finished.parent / "b"))


def edit_results(folder, change):
    path = folder / "small" / "results.csv"
    table = pd.read_csv(path, converters={"value": float})
    change(table).to_csv(path, index=False)


def diff(*arguments, code=0):
    result = invoke("diff", *arguments)
    assert result.exit_code == code, result.output
    return result.stdout


def test_equal_results_are_the_same(finished, other):
    assert diff(finished, other).startswith("small: 8 numbers are the same in both")
    assert json.loads(diff(finished / "small", other / "small", "--json"))["same"]


def test_a_changed_number_is_found_with_its_paired_interval(finished, other):
    results = pd.read_csv(finished / "small" / "results.csv")
    is_auc = results["metric"] == "auc"
    is_sgd = results["solver"] == "sgd-avg"
    is_in_cell = is_auc & is_sgd & results["final"]

    def change(table):
        table.loc[is_in_cell & (table["split"] == 1), "value"] -= 0.25
        return table

    edit_results(other, change)
    [compared] = json.loads(diff(finished, other, "--json", code=1))["experiments"]
    assert compared["equal"] == 7
    assert compared["differing"] == 1
    [cell] = compared["cells"]
    assert cell["solver"] == "sgd-avg"
    assert cell["metric"] == "auc"
    assert cell["differing"] == 1
    assert cell["difference"] == pytest.approx(-0.125)
    values = results.loc[is_in_cell, "value"].to_numpy()
    test = resampled_test(values - [0, 0.25], values, 0.3)
    assert cell["low"] == pytest.approx(test.low)
    assert cell["high"] == pytest.approx(test.high)
    tells(diff(finished, other, code=1), "small 7 1")


@pytest.mark.parametrize(
    ("options", "n_differing", "code"),
    [
        pytest.param([], 8, 1, id="no tolerance"),
        pytest.param(["--tolerance", "5e-7"], 8, 1, id="half of the difference"),
        pytest.param(["--tolerance", "2e-6"], 0, 0, id="twice the difference"),
    ],
)
def test_numbers_within_the_tolerance_are_equal(
    finished, other, options, n_differing, code
):
    edit_results(other, lambda table: table.assign(value=table["value"] * (1 + 1e-6)))
    printed = diff(finished, other, "--json", *options, code=code)
    [compared] = json.loads(printed)["experiments"]
    assert compared["differing"] == n_differing


def test_what_only_one_folder_has_is_counted(finished, other):
    edit_results(other, lambda table: table[table["solver"] == "sgd-avg"])
    (other / "small").rename(other / "small2")
    shutil.copytree(finished / "small", other / "small")
    tells(diff(finished / "small", other / "small2", code=1), "small 4 first")
    tells(diff(finished, other, code=1), "small2")


def test_folders_that_cannot_be_compared_are_refused(finished, tmp_path):
    refused(["diff", finished, tmp_path], f"{finished} {tmp_path}")
    refused(["diff", finished, "a"], "a")
    refused(["diff", "a", finished], "a")
    refused(["diff", "a", "b"], "a")


# --- status: what is done, running and left ---


def status_of(folder):
    [status] = json.loads(succeed("status", folder, "--json").stdout)
    return status


def test_a_finished_run_has_nothing_left(finished):
    status = status_of(finished)
    assert status["asked"] == 4
    assert status["done"] == 4
    assert status["left"] == 0
    assert status["outcomes"] == {"ok": 4}
    assert status["process"] is None
    tells(invoke("status", finished).stdout, "small 4")


def test_without_a_note_of_what_was_asked_all_records_count(finished):
    (finished / "small" / "asked.json").unlink()
    assert status_of(finished)["asked"] == 4


@pytest.fixture
def at_work(finished):
    """A folder with a failed trial and one that has run for 200 s; two have results."""
    store = Store(finished / "small")
    first, second, *_others = store.keys()
    (store.folder / "trials" / f"{first}.json").unlink()
    store.write({**store.read(second).to_dict(), "status": "failed", "reason": "no"})
    with store.lock():
        store.running.mkdir(exist_ok=True)
        mark = store.running / first
        mark.write_text("mine split 1 sgd-avg")
        start = time.time() - 200
        os.utime(mark, (start, start))
        yield store.folder


def test_a_run_at_work_says_how_far_it_is(at_work):
    status = status_of(at_work)
    assert status["done"] == 2
    assert status["left"] == 2
    assert status["outcomes"]["failed"] == 1
    assert status["seconds_left"] > 0
    assert status["process"] > 0
    [running] = status["running"]
    assert running["trial"] == "mine split 1 sgd-avg"
    assert 200 <= running["seconds"] < 300


def test_a_run_at_work_says_how_far_it_is_in_words(at_work):
    printed = invoke("status", at_work.parent).stdout
    assert "2 of 4" in printed
    assert "1 failed" in printed
    assert "running (process" in printed
    assert " left" in printed
    assert "mine split 1 sgd-avg, for 3 min" in printed


def test_status_of_nothing_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "no"):
        refused(["status", folder], str(folder))


# --- what a saved model says of itself ---


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


READING = ["--label", "y", "--categorical", "one-hot", "--missing", "mean"]


def fit(rows, *options):
    """Fit a model to rows; return its path and what is printed."""
    path = rows.parent / "m.npz"
    done = succeed("fit", rows, *READING, "--k", "10", "--save", path, *options)
    return path, done.stdout


def shown(*arguments):
    """Return what ``precbench show`` prints, in lines that are folded."""
    printed = succeed("show", *arguments).stdout
    folded = [line for line in printed.splitlines() if line.startswith("  ")]
    assert max(map(len, folded), default=0) <= 100
    return printed


@pytest.mark.parametrize(
    ("options", "kind", "largest"),
    [
        pytest.param(
            ["--solver", "sgd-avg"],
            "sgd-avg, weights of 5 features",
            r"most weight: a [\d.]+, b -[\d.]+, ",
            id="weights",
        ),
        pytest.param(
            ["--solver", "hist-gradient-boosting", "--param", "max_iter=3"],
            "hist-gradient-boosting, 3 trees with [0-9]+ nodes on 5 features",
            "most splits: a ",
            id="trees",
        ),
        pytest.param(
            ["--fourier", "7"],
            "sgd-avg, weights of 7 random Fourier features of 5 features",
            None,
            id="random features",
        ),
    ],
)
def test_a_model_says_what_it_is(rows, options, kind, largest):
    path, printed_by_fit = fit(rows, *options, "--splits", "2")
    text = " ".join(shown(path).split())
    assert re.match(f"{path}: {kind} fitted: on 2", text)
    assert re.search(r"to 200 rows, \d+ positive", text)
    assert "columns: a: number; missing values as " in text
    assert "city: one of Oslo, Rome" in text
    if largest is None:
        assert "most " not in text
    else:
        assert re.search(largest, text)

    quality_lines = printed_by_fit.partition("Hits by length")[0].splitlines()[1:]
    quality = " ".join(quality_lines)
    assert "2 splits" in quality
    assert f"quality: {quality} parameters: " in text

    description = json.loads(shown(path, "--json"))
    assert description["quality"]["splits"] == 2
    assert description["rows"] == 200
    assert description["n_features"] == 5
    assert [column["name"] for column in description["columns"]] == ["a", "b", "city"]


def test_a_model_from_python(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = np.arange(60) % 3 == 0
    Model.fit(X, y).save(tmp_path / "m.npz")
    text = shown(tmp_path / "m.npz")
    assert "to 60 rows, 20 positive" in text
    assert "columns: unnamed, of arrays" in text
    assert "quality" not in text


def test_what_is_no_model(rows):
    refused(["show", "none.npz"], "none.npz")
    refused(["show", rows], str(rows))


def test_a_model_with_a_wrong_description(rows, tmp_path):
    path, _printed = fit(rows)
    arrays = unpack(path, kinds="fiU")
    description = json.loads(str(arrays["description"]))
    description["about"]["auc"] = "high"
    arrays["description"] = np.array(json.dumps(description))
    (tmp_path / "m.npz").write_bytes(pack(arrays))
    refused(["show", tmp_path / "m.npz"], "auc")


# --- trials ---


def shown_trial(place_or_key, results):
    return succeed("show", place_or_key, "--results", results).stdout


@pytest.fixture
def final_auc(finished):
    """The row of ``results.csv`` of the trial mine/sgd-avg/1."""
    rows = pd.read_csv(finished / "small" / "results.csv")
    [row] = rows.query(
        "solver == 'sgd-avg' and split == 1 and final and metric == 'auc'"
    ).itertuples()
    return row


def test_a_trial_is_found_by_its_key_and_by_its_place(finished, final_auc):
    results = finished / "small"
    key = final_auc.key
    by_place = shown_trial("mine/sgd-avg/1", results)
    assert shown_trial(key, results) == by_place
    assert shown_trial(key[:10], finished) == by_place


def test_a_trial_is_shown_with_all_that_is_known(finished, final_auc):
    results = finished / "small"
    key = final_auc.key
    shown_in_json = succeed("show", key, "--results", results, "--json").stdout
    trial = json.loads(shown_in_json)
    assert trial["key"] == key
    assert trial["status"] == "ok"
    assert trial["changed_versions"] == []
    assert trial["chosen"].keys() == {"eta0"}
    assert trial["record"].endswith(f"{key}.json")
    assert trial["command"].startswith(
        "precbench run small.yaml --solver sgd-avg --dataset mine --splits 1 --force"
        " --out "
    )
    values = {metric["metric"]: metric["value"] for metric in trial["metrics"]}
    assert values["auc"] == pytest.approx(final_auc.value)

    empty = (None, "", [], {})
    filled = {name: value for name, value in trial.items() if value not in empty}
    assert yaml.safe_load(shown_trial(key, results)) == filled


@pytest.fixture
def config_in_a_folder(small, work_folder):
    """A config of one trial in the folder "of mine"."""
    (work_folder / "of mine").mkdir()
    config = small(
        solvers="{perceptron-avg: }",
        protocol="{n_splits: 1}",
        datasets="[{file: ../mine.csv, label: label}]",
    )
    return config.rename("of mine/first.yaml").absolute()


def assert_repeated_with(config, config_in_command, folder):
    """Run and merge a config; see how it is named in the command for a trial."""
    assert run(config, "results", "--force").exit_code == 0
    printed = shown_trial("mine/perceptron-avg/0", folder / "results" / "small")
    tells(printed, f"{config_in_command} --solver")
    succeed("merge", "results", "--out", "all", "--config", config)
    merged = json.loads((folder / "all" / "small" / "experiment.json").read_text())
    assert merged["config"] == config_in_command.strip("'")


def test_a_trial_is_repeated_with_the_config_as_it_was_given_last(
    config_in_a_folder, work_folder
):
    relative = config_in_a_folder.relative_to(work_folder)
    assert_repeated_with(relative, "'of mine/first.yaml'", work_folder)
    # of an absolute path, the folder of the user is left out
    assert_repeated_with(config_in_a_folder, "first.yaml", work_folder)


def test_a_trial_of_an_unknown_config_has_no_command(finished):
    path = finished / "small" / "experiment.json"
    experiment = json.loads(path.read_text())
    path.write_text(json.dumps(experiment | {"config": ""}))
    printed = shown_trial("mine/perceptron-avg/0", finished / "small")
    assert "command:" not in printed


def test_a_trial_of_another_version_says_that_it_would_run_again(finished, monkeypatch):
    monkeypatch.setattr(SGDAtK, "algorithm_version", 99)
    assert "changed_versions:\n- solver\n" in shown_trial("mine/sgd-avg/0", finished)


@pytest.mark.parametrize("place", ["mine/sgd-avg/7", "nonsense", "no.npz"])
def test_what_is_no_trial_is_refused(place, finished):
    refused(["show", place, "--results", finished / "small"], place)


def test_a_trial_of_no_folder_is_refused(finished):
    refused(["show", "mine/sgd-avg/0", "--results", finished / "nowhere"], "nowhere")


def test_several_trials_are_listed(finished):
    (finished / "other").symlink_to(finished / "small")
    refused(["show", "mine/sgd-avg/0", "--results", finished], "2 mine/sgd-avg/0")

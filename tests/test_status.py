"""What is done, running and left; two folders of results, cell by cell."""

import json
import os
import shutil
import time

import pandas as pd
import pytest

from precbench.statistics import resampled_test
from precbench.store import Store
from tests.helpers import invoke, succeed
from tests.sentences import refused, tells

pytestmark = pytest.mark.usefixtures("in_this_process")

SOLVERS = "{sgd-avg: , perceptron-avg: }"


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    return tmp_path_factory.mktemp("once") / "a"


@pytest.fixture
def results(small, tmp_path, once):
    """A folder of results with one experiment of 2 solvers and 2 splits, which runs once."""
    config = small(solvers=SOLVERS)
    if not once.exists():
        succeed("run", config, "--out", once)
    return shutil.copytree(once, tmp_path / "a")


def copied(results):
    return shutil.copytree(results, results.parent / "b")


def edited(folder, change):
    path = folder / "small" / "results.csv"
    table = pd.read_csv(path, converters={"value": float})
    change(table).to_csv(path, index=False)


def diff(*arguments, code=0):
    result = invoke("diff", *arguments)
    assert result.exit_code == code, result.output
    return result.stdout


# --- diff ---


def test_equal_results_are_the_same(results):
    other = copied(results)
    said = diff(results, other)
    assert said.startswith("small: 8 numbers are the same in both")
    assert json.loads(diff(results / "small", other / "small", "--json"))["same"]


def test_a_changed_number_is_found_with_its_paired_interval(results):
    other = copied(results)
    before = pd.read_csv(results / "small" / "results.csv")
    cell = (before["metric"] == "auc") & (before["solver"] == "sgd-avg") & before["final"]

    def change(table):
        table.loc[cell & (table["split"] == 1), "value"] -= 0.25
        return table

    edited(other, change)
    [of] = json.loads(diff(results, other, "--json", code=1))["experiments"]
    assert (of["equal"], of["differing"]) == (7, 1)
    first = before.loc[cell, "value"].to_numpy()
    test = resampled_test(first - [0, 0.25], first, 0.3)
    [found] = of["cells"]
    assert (found["solver"], found["metric"], found["differing"]) == ("sgd-avg", "auc", 1)
    assert found["difference"] == pytest.approx(-0.125)
    assert (found["low"], found["high"]) == pytest.approx((test.low, test.high))
    tells(diff(results, other, code=1), "small 7 1")


def test_numbers_within_the_tolerance_are_equal(results):
    other = copied(results)
    edited(other, lambda table: table.assign(value=table["value"] * (1 + 1e-6)))
    for options, differing in (([], 8), (["--tolerance", "5e-7"], 8), (["--tolerance", "2e-6"], 0)):
        found = diff(results, other, "--json", *options, code=min(differing, 1))
        assert json.loads(found)["experiments"][0]["differing"] == differing


def test_what_only_one_folder_has_is_counted(results):
    other = copied(results)
    edited(other, lambda table: table[table["solver"] == "sgd-avg"])
    (other / "small").rename(other / "small2")
    shutil.copytree(results / "small", other / "small")
    tells(diff(results / "small", other / "small2", code=1), "small 4 first")
    tells(diff(results, other, code=1), "small2")


def test_folders_without_a_common_experiment_are_refused(results, tmp_path):
    refused(["diff", results, tmp_path], f"{results} {tmp_path}")


def test_a_folder_that_is_not_there_is_named(results, tmp_path):
    refused(["diff", results, "a"])
    refused(["diff", "a", results])
    refused(["diff", "a", "b"])


# --- status ---


def status(results):
    result = succeed("status", results, "--json")
    return json.loads(result.stdout)[0]


def test_a_finished_run_has_nothing_left(results):
    found = status(results)
    assert (found["asked"], found["done"], found["left"]) == (4, 4, 0)
    assert found["outcomes"] == {"ok": 4} and found["process"] is None
    tells(invoke("status", results).stdout, "small 4")


def test_a_run_at_work_says_how_far_it_is(results):
    store = Store(results / "small")
    first, second, *_ = store.keys()
    (store.folder / "trials" / f"{first}.json").unlink()
    record = store.read(second)
    store.write({**record.to_dict(), "status": "failed", "reason": "no"})
    with store.lock():
        store.running.mkdir(exist_ok=True)
        mark = store.running / first
        mark.write_text("mine split 1 sgd-avg")
        os.utime(mark, (time.time() - 200, time.time() - 200))
        found = status(results / "small")
        said = invoke("status", results).stdout
    assert (found["done"], found["left"], found["outcomes"]["failed"]) == (2, 2, 1)
    [running] = found["running"]
    assert running["trial"] == "mine split 1 sgd-avg" and 200 <= running["seconds"] < 300
    assert found["seconds_left"] > 0 and found["process"] > 0
    for text in (
        "2 of 4",
        "1 failed",
        "running (process",
        " left",
        "mine split 1 sgd-avg, for 3 min",
    ):
        assert text in said


def test_without_the_note_of_a_run_all_records_count(results):
    (results / "small" / "asked.json").unlink()
    assert status(results)["asked"] == 4


def test_status_of_nothing_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "no"):
        refused(["status", folder], str(folder))

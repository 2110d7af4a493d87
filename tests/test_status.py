"""What is done, running and left; two folders of results, cell by cell."""

import json
import os
import shutil
import time
from pathlib import Path

import pandas as pd
import pytest

from precbench.statistics import resampled_test
from precbench.store import Store
from tests.helpers import invoke, succeed
from tests.sentences import refused, tells

pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture
def other(finished):
    """Another copy of the results."""
    return Path(shutil.copytree(finished, finished.parent / "b"))


def edited(folder, change):
    path = folder / "small" / "results.csv"
    table = pd.read_csv(path, converters={"value": float})
    change(table).to_csv(path, index=False)


def diff(*arguments, code=0):
    result = invoke("diff", *arguments)
    assert result.exit_code == code, result.output
    return result.stdout


# --- diff ---


def test_equal_results_are_the_same(finished, other):
    said = diff(finished, other)
    assert said.startswith("small: 8 numbers are the same in both")
    assert json.loads(diff(finished / "small", other / "small", "--json"))["same"]


def test_a_changed_number_is_found_with_its_paired_interval(finished, other):
    before = pd.read_csv(finished / "small" / "results.csv")
    cell = (before["metric"] == "auc") & (before["solver"] == "sgd-avg") & before["final"]

    def change(table):
        table.loc[cell & (table["split"] == 1), "value"] -= 0.25
        return table

    edited(other, change)
    [of] = json.loads(diff(finished, other, "--json", code=1))["experiments"]
    assert (of["equal"], of["differing"]) == (7, 1)
    first = before.loc[cell, "value"].to_numpy()
    test = resampled_test(first - [0, 0.25], first, 0.3)
    [found] = of["cells"]
    assert (found["solver"], found["metric"], found["differing"]) == ("sgd-avg", "auc", 1)
    assert found["difference"] == pytest.approx(-0.125)
    assert (found["low"], found["high"]) == pytest.approx((test.low, test.high))
    tells(diff(finished, other, code=1), "small 7 1")


def test_numbers_within_the_tolerance_are_equal(finished, other):
    edited(other, lambda table: table.assign(value=table["value"] * (1 + 1e-6)))
    for options, differing in (([], 8), (["--tolerance", "5e-7"], 8), (["--tolerance", "2e-6"], 0)):
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
        ((finished, tmp_path), f"{finished} {tmp_path}"), ((finished, "a"), "a"),
        (("a", finished), "a"), (("a", "b"), "a"),
    ):  # fmt: skip
        refused(["diff", *folders], places)


# --- status ---


def status(folder):
    return json.loads(succeed("status", folder, "--json").stdout)[0]


def test_a_finished_run_has_nothing_left(finished):
    found = status(finished)
    assert (found["asked"], found["done"], found["left"]) == (4, 4, 0)
    assert found["outcomes"] == {"ok": 4} and found["process"] is None
    tells(invoke("status", finished).stdout, "small 4")
    (finished / "small" / "asked.json").unlink()  # without it all records count
    assert status(finished)["asked"] == 4


def test_a_run_at_work_says_how_far_it_is(finished):
    store = Store(finished / "small")
    first, second, *_ = store.keys()
    (store.folder / "trials" / f"{first}.json").unlink()
    record = store.read(second)
    store.write({**record.to_dict(), "status": "failed", "reason": "no"})
    with store.lock():
        store.running.mkdir(exist_ok=True)
        mark = store.running / first
        mark.write_text("mine split 1 sgd-avg")
        os.utime(mark, (time.time() - 200, time.time() - 200))
        found = status(finished / "small")
        said = invoke("status", finished).stdout
    assert (found["done"], found["left"], found["outcomes"]["failed"]) == (2, 2, 1)
    [running] = found["running"]
    assert running["trial"] == "mine split 1 sgd-avg" and 200 <= running["seconds"] < 300
    assert found["seconds_left"] > 0 and found["process"] > 0
    for text in (
        "2 of 4", "1 failed", "running (process", " left", "mine split 1 sgd-avg, for 3 min",
    ):  # fmt: skip
        assert text in said


def test_status_of_nothing_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "no"):
        refused(["status", folder], str(folder))

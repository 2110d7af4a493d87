"""`precbench.run`: from a config to its results, from Python as from the shell."""

import os
import signal
import subprocess
import sys
import time

import joblib
import pandas as pd
import pytest
import yaml

import precbench
from precbench.core.errors import InputError
from precbench.experiment import load_config
from precbench.results.read import read_run
from precbench.runner.options import Options
from precbench.runner.session import Observer, run_config
from tests.helpers import session, succeed, wait_until
from tests.sentences import raises

SHORT = {"solvers": "{sgd-avg: , perceptron-avg: }", "protocol": "{n_splits: 2}"}


@pytest.fixture
def config(small):
    return small(**SHORT)


def rows_without_times(results):
    timed = ["cpu_seconds", "wall_seconds", "tuning_seconds", "run"]
    return results.frame.drop(columns=timed)


@pytest.mark.parametrize("form", ["path", "text", "content", "experiment"])
def test_a_config_has_four_forms(config, tmp_path, form, monkeypatch):
    # where a content without a file looks for its data
    monkeypatch.chdir(config.parent)
    forms = {
        "path": config,
        "text": str(config),
        "content": yaml.safe_load(config.read_text()),
        "experiment": load_config(config),
    }
    results = precbench.run(forms[form], out=tmp_path / "python")
    succeed("run", config, "--out", tmp_path / "shell")
    shell = read_run(tmp_path / "shell" / "small").results
    assert results.name == "small"
    assert results.trials == 4
    assert results.trained == 4
    assert results.not_ok == {}
    assert results.folder == tmp_path / "python" / "small"
    assert sorted(results.frame["key"]) == sorted(shell["key"])
    assert sorted(results.frame["value"]) == sorted(shell["value"])


def test_a_shipped_config_is_run_by_its_name(tmp_path):
    results = precbench.run("kar2015/counterexample", smoke=True, out=tmp_path)
    assert results.folder == tmp_path / "kar2015-counterexample-smoke"
    assert [path.suffix for path in results.figures] == [".png"]
    assert results.report is not None
    assert results.check().empty


def test_a_study_has_values(tmp_path):
    results = precbench.run("rudin2009/fig-3", smoke=True, out=tmp_path)
    assert results.trials == 0
    assert len(results.frame) > 0
    assert results.summary.equals(results.frame)


def test_an_experiment_has_a_summary(tmp_path):
    results = precbench.run("gultekin/fourier", smoke=True, out=tmp_path)
    assert results.trials == 4
    assert len(results.frame) > 0
    assert len(results.summary) > 0


def test_a_run_resumes(config, tmp_path):
    first = precbench.run(config, splits=[0], out=tmp_path)
    assert first.trials == 2
    assert first.trained == 2
    second = precbench.run(config, out=tmp_path)
    assert second.trials == 4
    assert second.trained == 2
    third = precbench.run(config, out=tmp_path, jobs=2)
    assert third.trials == 4
    assert third.trained == 0
    pd.testing.assert_frame_equal(rows_without_times(second), rows_without_times(third))


def test_parts_are_selected(config, tmp_path):
    results = precbench.run(config, solvers=["sgd-avg"], splits=[1], out=tmp_path)
    assert set(results.frame["solver"]) == {"sgd-avg"}
    assert set(results.frame["split"]) == {1}


def test_a_run_without_the_split_that_a_figure_shows(small, tmp_path):
    config = small(**SHORT, plots="[roc-counts]")
    results = precbench.run(config, splits=[1], out=tmp_path)
    assert results.not_ok == {}
    assert results.report is not None
    assert results.figures == []


def test_what_results_show(config, tmp_path):
    results = precbench.run(config, out=tmp_path)
    folder = str(results.folder)
    assert repr(results) == f"Results('small', 4 trials, folder={folder!r})"
    html = results._repr_html_()
    assert "perceptron-avg" in html
    assert "<table" in html
    assert results.report == tmp_path / "small" / "report.html"


def test_the_summary_has_the_means_of_the_final_values(config, tmp_path):
    results = precbench.run(config, out=tmp_path)
    final = results.frame[results.frame["final"]]
    means = final.groupby(["metric", "solver"])["value"].mean()
    summary = results.summary.set_index(["metric", "solver"])
    assert summary["mean"].to_dict() == pytest.approx(means.to_dict())


@pytest.mark.parametrize(
    ("option", "value", "places"),
    [
        pytest.param("jobs", 0, "jobs 1 0", id="no job at a time"),
        pytest.param("jobs", True, "jobs True", id="a truth value of jobs"),
        pytest.param(
            "solvers", "sgd-avg", "solvers list ['sgd-avg']", id="text for a list"
        ),
        pytest.param("solvers", ["sgd"], "'sgd' sgd-avg", id="an unknown solver"),
        pytest.param("datasets", ["nothing"], "'nothing'", id="an unknown data set"),
        pytest.param("splits", [7], "7 0", id="an unknown split"),
    ],
)
def test_what_is_refused(config, tmp_path, option, value, places):
    with raises(InputError, places):
        precbench.run(config, out=tmp_path / "out", **{option: value})
    assert not (tmp_path / "out").exists()


CONTENT = {
    "name": "x",
    "title": "X",
    "datasets": ["letter"],
    "metrics": ["auc"],
    "solvers": {"sgd-avg": {}},
}


def test_a_mistake_in_a_content_is_named():
    with raises(InputError, "the config solvers.sgd-agv 'sgd-agv' 'sgd-avg'"):
        precbench.run(CONTENT | {"solvers": {"sgd-agv": {}}})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_of_a_content_must_be_finite(number):
    fourier = {"n_components": 9, "gamma": number}
    solvers = {"sgd-avg": {"fourier": fourier}}
    with raises(InputError, f"the config checkpoints[1] {number} finite"):
        precbench.run(CONTENT | {"checkpoints": [0.5, number]})
    with raises(InputError, f"the config solvers.sgd-avg.fourier.gamma {number}"):
        precbench.run(CONTENT | {"solvers": solvers})


class EventLog(Observer):
    """Notes the events of a session."""

    def __init__(self):
        self.lines = []

    def on_plan(self, work):
        self.lines.append(f"{len(work.keys)} planned")

    def on_trials(self, work, trials):
        self.lines.append(f"{len(trials)} to run")


def test_an_observer_gets_the_events_in_order(config, tmp_path):
    log = EventLog()
    run_config(load_config(config), Options(out=tmp_path), observer=log)
    assert log.lines == ["4 planned", "4 to run"]


def test_a_run_inside_a_worker_of_joblib(config, tmp_path):
    calls = [
        joblib.delayed(precbench.run)(config, out=tmp_path / str(i)) for i in range(2)
    ]
    results = joblib.Parallel(n_jobs=2)(calls)
    first, second = (rows_without_times(each) for each in results)
    pd.testing.assert_frame_equal(first, second)


INTERRUPTED = """
import sys, precbench
try:
    precbench.run(sys.argv[1], jobs=2, out=sys.argv[2])
except KeyboardInterrupt:
    print("interrupted", flush=True)
input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_an_interrupt_of_a_notebook_leaves_no_process(small, tmp_path):
    long = small(solvers="{sgd-avg: {epochs: 1000000}}", protocol="{n_splits: 4}")
    cell = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, long, tmp_path / "out"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: [*tmp_path.glob("out/*/running/*")], seconds=120)
    os.kill(cell.pid, signal.SIGINT)
    assert cell.stdout.readline() == "interrupted\n"
    time.sleep(0.5)
    commands = session(cell.pid).values()
    assert not [command for command in commands if b"popen_loky" in command]
    cell.communicate("\n", timeout=30)


@pytest.mark.extras("distributed")
def test_a_run_on_a_cluster_has_the_same_numbers(config, tmp_path):
    here = precbench.run(config, out=tmp_path / "here")
    there = precbench.run(config, out=tmp_path / "there", cluster="local:1")
    columns = ["solver", "split", "checkpoint", "metric", "value"]
    assert here.frame[columns].equals(there.frame[columns])


def test_results_of_an_earlier_version_are_read(config, tmp_path):
    """The first files did not say whether a solver has converged."""
    folder = precbench.run(config, out=tmp_path).folder
    table = pd.read_csv(folder / "results.csv", dtype=str, keep_default_na=False)
    table.drop(columns="converged").to_csv(folder / "results.csv", index=False)
    assert read_run(folder).results["converged"].eq("").all()
    succeed("report", folder)


def test_a_missing_table_is_no_damaged_table(tmp_path):
    with pytest.raises(InputError, match=r"^there is no file .*results\.csv; give"):
        read_run(tmp_path)

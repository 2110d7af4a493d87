"""Runs from config to figure: resumed, interrupted, killed, failing, in parallel."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from precbench.cli.runs import RunOptions
from precbench.cli.status import _DONE
from precbench.core import processes
from precbench.core.errors import PrecbenchError
from precbench.data import Dataset
from precbench.experiment import Experiment, load_config
from precbench.experiment.plan import make_plan
from precbench.experiment.samples import InMemory, Rows
from precbench.results import measure
from precbench.results.measure import _sizes
from precbench.results.read import read_run
from precbench.results.records import RETRIED, STATUSES
from precbench.results.store import Store
from precbench.runner import _most_passes, run_plan, to_do, worker
from precbench.runner.cost import expected_seconds
from precbench.runner.recorder import Recorder
from precbench.runner.worker import Job, run_job, warm_up
from precbench.solvers import SGDAtK
from precbench.solvers.common.driver import PassMixin
from tests.helpers import (
    Deadly,
    numbers,
    printed_numbers,
    records,
    run,
    run_in_this_process,
    served,
    session,
    shipped_config,
    shipped_configs,
    succeed,
    wait_until,
)
from tests.sentences import done_already, raises, refused, tells


@pytest.mark.promise("R24")
def test_a_run_writes_tables_figures_and_records_without_private_data(
    small, tmp_path, figure
):
    config = small(
        plots="[accuracy-time, precision-k]", metrics="[precision_at_k, auc]"
    )
    result = succeed("run", config, "--out", tmp_path / "out", "--json", "--verbose")
    folder = tmp_path / "out" / "small"
    assert len(records(folder)) == 6
    assert result.stderr.count(": ok: ") == 6
    assert read_run(folder).test_shares == {"mine": 0.3}
    check_final_values(folder, summary=json.loads(result.stdout)[0])
    check_records(Store(folder))
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).parts[0] for path in files}
    tables = {"summary.csv", "summary.md", "summary.tex"}
    assert {*tables, "trials", "environments"} <= names
    assert {".png", ".pdf"} <= {path.suffix for path in files}
    figure(f"{len(files)} files of a run searched")
    for path in files:
        check_for_private_data(path, tmp_path)


def check_final_values(folder, summary):
    """Expect final values in results.csv, which the summary and a figure show."""
    table = pd.read_csv(folder / "results.csv")
    times = table.query("cpu_seconds > 0")
    # Both clocks have one unit.
    assert 0.5 < (times["wall_seconds"] / times["cpu_seconds"]).median() < 20
    finals = table[table["final"]]
    assert len(finals) == 2 * 3 * 2  # splits, solvers, metrics
    assert (finals[finals["metric"] == "auc"]["value"] > 0.7).all()
    printed_means = {
        (row["solver"], row["metric"]): row["mean"] for row in summary["values"]
    }
    means = finals.groupby(["solver", "metric"])["value"].mean()
    assert printed_means == pytest.approx(means.to_dict())
    curves = pd.read_csv(folder / "figures" / "precision-k-mine.csv")
    drawn = curves[curves["share"] == 0.5].set_index("solver")["median"]
    precisions = finals[finals["metric"] == "precision_at_k(k=0.5)"]
    medians = precisions.groupby("solver")["value"].median()
    pd.testing.assert_series_equal(drawn.sort_index(), medians, check_names=False)


def check_records(store):
    """Expect complete records, and no mark of a running trial."""
    assert not list(store.running.glob("*"))
    for record in store.records():
        arrays = store.arrays(record.key)
        assert arrays["coef"].shape == (len(arrays["rows_seen"]), 4)
        assert (np.diff(arrays["rows_seen"]) > 0).all()
        assert (np.diff(arrays["wall_seconds"]) >= 0).all()
        assert record.environment
        assert record.description["data_sha256"]
        if record.label == "sgd-avg":
            assert record.chosen["eta0"] in (0.1, 1.0)


def check_for_private_data(path, folder):
    """Expect neither the machine's name in a file, nor where the run took place."""
    content = path.read_bytes().decode("latin-1")
    assert str(Path.home()) not in content, path
    assert str(folder) not in content, path
    # In other files the name may stand by chance.
    if path.suffix in {".json", ".csv", ".md", ".tex"}:
        host = re.escape(os.uname().nodename)
        assert not re.search(rf"\b{host}\b", content), path


@pytest.mark.promise("R1")
def test_finished_trials_are_not_repeated(small, in_this_process, tmp_path):
    out = tmp_path / "out"
    folder = out / "small"
    assert run(small(plots="[roc]"), out, "--no-plots").exit_code == 0
    first_records = records(folder)
    assert (folder / "summary.md").exists()
    assert not (folder / "figures").exists()
    with_figures = run(small(plots="[roc]"), out)
    assert done_already(with_figures.output) == 6
    assert records(folder) == first_records
    assert "figures/roc-mine.png" in with_figures.output
    tells(with_figures.output, str(folder / "report.html"))
    changed = small(
        solvers="{perceptron-avg: {epochs: 4}, cutting-plane: }", title="Another title"
    )
    assert done_already(run(changed, out).output) == 2
    all_records = records(folder)
    assert first_records.items() <= all_records.items()
    assert len(all_records) == 8


def test_two_labels_of_equal_trials_are_refused(small, tmp_path):
    both = small(
        solvers=(
            "{a: {solver: sgd-avg, limit: {times_slowest: 1}}, b: {solver: sgd-avg}}"
        )
    )
    refused(["run", both, "--out", tmp_path / "out"], "'a' 'b'")


@pytest.mark.promise("R7", "R20")
def test_results_do_not_depend_on_workers_or_on_the_other_trials(small, tmp_path):
    assert run(small(), tmp_path / "alone").exit_code == 0
    two_jobs = ("--jobs", "2")
    beside = tmp_path / "beside"
    assert run(small(), beside, *two_jobs, "--solver", "sgd-avg").exit_code == 0
    assert run(small(), beside, *two_jobs).exit_code == 0
    pd.testing.assert_frame_equal(
        numbers(tmp_path / "alone" / "small"),
        numbers(beside / "small"),
        check_exact=True,
    )
    timing_alone = pd.read_csv(tmp_path / "alone" / "small" / "results.csv")["timing"]
    assert set(timing_alone) == {"sequential"}
    timing_beside = pd.read_csv(beside / "small" / "results.csv")["timing"]
    assert set(timing_beside) == {"parallel"}


class TimedRun:
    """A run whose trials were timed alone, two methods on two splits."""

    def __init__(self, config, out):
        self.config = config
        self.out = out
        self.store = Store(out / "small")
        assert run(config, out, "--timing").exit_code == 0
        self.records = sorted(
            self.store.records(), key=lambda record: (record.split, record.label)
        )

    def change(self, record, **changes):
        values = {**record.to_dict(), **changes}
        self.store.write(values, self.store.arrays(record.key))

    def add_machine(self):
        """Return the name of another machine."""
        [machine] = self.store.machines().values()
        return self.store.add_environment({**machine.model_dump(), "cpu": "Another"})

    def repeat(self, *options):
        """Run again, and return how many trials are kept."""
        return done_already(run(self.config, self.out, "--no-plots", *options).output)

    def summary(self):
        return (self.out / "small" / "summary.md").read_text()


@pytest.fixture
def timed_run(small, in_this_process, tmp_path):
    return TimedRun(small(solvers="{perceptron-avg: , sgd-avg: }"), tmp_path / "out")


@pytest.mark.promise("R20")
def test_times_of_two_machines_on_one_split_are_not_compared(timed_run):
    timed_run.change(timed_run.records[0], environment=timed_run.add_machine())
    assert timed_run.repeat() == 4
    assert "Timed on different machines, so not comparable: " in timed_run.summary()
    table = pd.read_csv(timed_run.out / "small" / "results.csv")
    assert table.groupby("split")["machine"].nunique().tolist() == [2, 1]


@pytest.mark.promise("R20")
def test_times_of_one_machine_for_each_split_are_marked(timed_run):
    machine = timed_run.add_machine()
    for record in timed_run.records[:2]:  # the first split
        timed_run.change(record, environment=machine)
    assert timed_run.repeat() == 4
    assert "each split on one: " in timed_run.summary()


@pytest.mark.promise("R20")
def test_timing_repeats_trials_that_ran_in_parallel(timed_run):
    timed_run.change(timed_run.records[-1], timing="parallel")
    assert timed_run.repeat("--timing") == 3


@pytest.mark.promise("R19")
def test_failed_and_late_trials_do_not_affect_others(small, in_this_process, tmp_path):
    solvers = {
        "perceptron-avg": "",
        "sgd-avg": "{eta0: {tune: [1.0e+308, 1.7e+308]}}",
        "late": "{solver: sgd-avg, epochs: 100000000}",
    }
    text = ", ".join(f"{label}: {entry}" for label, entry in solvers.items())
    config = small(solvers=f"{{{text}}}", timeout="1.0")
    out = tmp_path / "out"
    result = run(config, out, "--seeds", "0", "--quiet")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 2
    tells(result.stderr, "sgd-avg failed diverged")
    tells(result.stderr, "late timeout")
    table = pd.read_csv(out / "small" / "results.csv")
    statuses = {solver: {*rows["status"]} for solver, rows in table.groupby("solver")}
    assert statuses == {
        "perceptron-avg": {"ok"},
        "sgd-avg": {"failed"},
        "late": {"timeout"},
    }
    assert "diverged" in (out / "small" / "summary.md").read_text()
    selected = run(config, out, "--seeds", "0", "--solver", "perceptron-avg")
    assert selected.exit_code == 0, "the exit code concerns the selected trials"


def test_every_kind_of_k_reaches_the_tables(small, in_this_process, tmp_path):
    config = small(
        common='{k: "1 %", epochs: 3, batch_size: 50}',
        solvers=(
            '{perceptron-avg: , sgd-avg: {k: {tune: ["5 %", 1.0]}}, cutting-plane: {k:'
            " 300}}"
        ),
        metrics="[precision_at_k, {recall_at_k: {k: 180}}, {lift_at_k: {k: 0.5}}]",
    )
    assert run(config, tmp_path / "out").exit_code == 0
    folder = tmp_path / "out" / "small"
    finals = pd.read_csv(folder / "results.csv").query("final")
    values = finals.set_index("metric")["value"]
    assert (values["recall_at_k(k=180)"] == 1).all()
    hits = 2 * values["precision_at_k(k=1 %)"]  # 1 % of 180 rows are 2
    assert hits.isin([0, 1, 2]).all()
    assert "prec@1 % | recall@180 | lift@0.5" in (folder / "summary.md").read_text()
    warnings = {record.label: record.warnings for record in Store(folder).records()}
    assert not warnings["perceptron-avg"]
    tells(warnings["cutting-plane"][0], "k 300")


def test_a_swept_share_of_the_rows_reaches_the_figures(
    small, in_this_process, tmp_path
):
    swept = small(
        metrics="[{precision_at_k: {k: 0.5}}]", sweep='{k: ["1 %", "20 %"]}', plots=""
    )
    assert run(swept, tmp_path / "out").exit_code == 0
    figures = tmp_path / "out" / "small" / "figures"
    assert (figures / "accuracy-time-mine-k-1-percent.csv").exists()
    numbers_of_sweep = pd.read_csv(figures / "accuracy-sweep-mine.csv")
    assert set(numbers_of_sweep["k"]) == {"1 %", "20 %"}


def test_a_limit_stops_a_solver_at_its_last_iterate(small, in_this_process, tmp_path):
    """Another limit repeats the trials that it stopped."""

    def n_done_already(times_slowest):
        limit = f"{{times_slowest: {times_slowest}}}"
        psg = f"{{max_iter: 100000000, limit: {limit}}}"
        config = small(solvers=f"{{perceptron-avg: , psg: {psg}}}")
        result = run(config, tmp_path / "out", "--seeds", "0")
        assert result.exit_code == 0
        return done_already(result.output)

    assert n_done_already(times_slowest=4) == 0
    assert n_done_already(times_slowest=4) == 2
    assert n_done_already(times_slowest=8) == 1
    table = pd.read_csv(tmp_path / "out" / "small" / "results.csv")
    rows = table[table["solver"] == "psg"]
    assert set(rows["status"]) == {"ok"}
    assert set(rows["stopped"]) == {"limit"}
    n_epochs, n_train = 3, 420  # of perceptron-avg
    assert rows["rows_seen"].max() == 8 * n_epochs * n_train


def test_a_limit_counts_the_most_epochs_that_tuning_may_choose(small):
    config = small(
        common="{k: 0.5}",
        solvers=(
            "{sgd-avg: {epochs: {tune: [2, 5]}},"
            " cutting-plane: {limit: {times_slowest: 8}}}"
        ),
    )
    plan = make_plan(load_config(config))
    row_cost = 4
    passes = {_most_passes(plan, trial) for trial, _key in plan.trials if trial.limit}
    assert passes == {8 * 5 / row_cost}


def test_every_batch_or_iteration_is_a_checkpoint(small, in_this_process, tmp_path):
    config = small(
        common="{k: 0.5, epochs: 2, batch_size: 16}",
        solvers="{sgd-avg: , cutting-plane: {limit: {times_slowest: 8}}}",
        checkpoints="every",
        plots="[accuracy-rows]",
    )
    assert run(config, tmp_path / "out", "--seeds", "0").exit_code == 0
    folder = tmp_path / "out" / "small"
    n_train = 420
    table = pd.read_csv(folder / "results.csv")
    auc = table[table["metric"] == "auc"].set_index("solver")
    batch_ends = [*range(16, n_train, 16), n_train]
    second_epoch = [n_train + end for end in batch_ends]
    sgd_rows = auc.loc["sgd-avg", "rows_seen"].tolist()
    assert sgd_rows == [0, *batch_ends, *second_epoch]
    # 8 times 2 epochs are 16 passes; an iteration counts as 4.
    cutting_plane_rows = auc.loc["cutting-plane", "rows_seen"].tolist()
    assert cutting_plane_rows == [n_train * i for i in range(5)]
    assert set(auc.loc["cutting-plane", "stopped"]) == {"limit"}
    precisions = table.query("rows_seen > 0 and metric != 'auc'")["value"]
    drawn = pd.read_csv(folder / "figures" / "accuracy-rows-mine.csv")["value"]
    assert drawn.tolist() == precisions.tolist()


def test_a_trial_stopped_by_a_limit_of_unknown_size_runs_again(
    small, in_this_process, tmp_path
):
    config = small(
        common="{k: 0.5, epochs: 2, batch_size: 16}",
        solvers="{sgd-avg: , cutting-plane: {limit: {times_slowest: 8}}}",
    )
    assert run(config, tmp_path / "out", "--seeds", "0").exit_code == 0
    plan = make_plan(load_config(config))
    store = Store(tmp_path / "out" / "small")
    assert len(to_do(plan, store)) == 2  # of the other split
    [record] = (record for record in store.records() if record.stopped)
    store.write(record.to_dict() | {"limit_passes": None}, store.arrays(record.key))
    assert len(to_do(plan, store)) == 3


def test_checkpoints_at_shares_are_rounded_up(small, in_this_process, tmp_path):
    """0.55 * 420 is a little more than 231."""
    config = small(solvers="{pgd: {epochs: 2}}", common="", checkpoints="[0.55, 1.5]")
    assert run(config, tmp_path / "out", "--seeds", "0").exit_code == 0
    table = pd.read_csv(tmp_path / "out" / "small" / "results.csv")
    assert sorted(set(table["rows_seen"])) == [0, 231, 630, 840]


def test_a_partial_run_keeps_the_other_datasets_in_the_tables(
    small, in_this_process, tmp_path
):
    one = "{file: mine.csv, label: label, name: one}"
    two = "{file: mine.csv, label: label, name: two}"
    config = small(datasets=f"[{one}, {two}]", solvers="{perceptron-avg: }")
    folder = tmp_path / "out" / "small"

    def sorted_numbers():
        order = ["dataset", "split", "metric", "checkpoint"]
        return numbers(folder).sort_values(order, ignore_index=True)

    assert run(config, tmp_path / "out").exit_code == 0
    of_whole_run = sorted_numbers()
    assert run(config, tmp_path / "out", "--dataset", "two", "--force").exit_code == 0
    pd.testing.assert_frame_equal(sorted_numbers(), of_whole_run)
    assert set(read_run(folder).data) == {"one", "two"}


def test_tuning_by_folds_takes_the_best_mean(small, in_this_process, tmp_path):
    grid = [1e-5, 1e-3, 0.1, 10.0]
    config = small(
        solvers=f"{{logistic-regression: {{C: {{tune: {grid}}}}}}}",
        common="",
        tuning="{by: average_precision, folds: 3}",
        protocol="{n_splits: 6}",
    )
    assert run(config, tmp_path / "out", "--no-plots").exit_code == 0
    records = Store(tmp_path / "out" / "small").records()
    chosen = {record.split: record.chosen["C"] for record in records}
    plan = make_plan(load_config(config))
    for trial, _key in plan.trials:
        rows = Rows(trial, plan.datasets["mine"])
        means = [
            cross_val_score(
                LogisticRegression(C=C, max_iter=1000),
                rows.training.X,
                rows.training.y,
                cv=rows.divisions,
                scoring="average_precision",
            ).mean()
            for C in grid
        ]
        assert chosen[trial.split.index] == grid[int(np.argmax(means))]
    assert len(set(chosen.values())) > 1


def test_a_limit_may_leave_tuning_out(small, in_this_process, tmp_path):
    """Then trials whose tuning it stopped before run again."""

    def stopped_by(*, limits_tuning, max_iter):
        limit = f"{{times_slowest: 2, tuning: {limits_tuning}}}"
        psg = f"{{max_iter: {max_iter}, eta0: {{tune: [0.1, 0.3]}}, limit: {limit}}}"
        config = small(solvers=f"{{perceptron-avg: , psg: {psg}}}")
        assert run(config, tmp_path / "out", "--seeds", "0").exit_code == 0
        results = tmp_path / "out" / "small" / "results.csv"
        table = pd.read_csv(results, keep_default_na=False)
        return set(table[table["solver"] == "psg"]["stopped"])

    # Two candidates share 6 passes.
    assert stopped_by(limits_tuning="true", max_iter=5) == {"tuning limit"}
    assert stopped_by(limits_tuning="false", max_iter=5) == {""}
    assert stopped_by(limits_tuning="false", max_iter=20) == {"limit"}


class Tuning(NamedTuple):
    option: str  # of the config
    n_fits: int  # for each candidate
    training_share: float  # of the training rows in a fit of a candidate


@pytest.mark.parametrize(
    "tuning",
    [
        pytest.param(Tuning("", n_fits=1, training_share=0.8), id="validation set"),
        pytest.param(
            Tuning("{folds: 4}", n_fits=4, training_share=0.75), id="four folds"
        ),
    ],
)
def test_all_candidates_together_have_the_limit_of_one_training(
    small, tmp_path, monkeypatch, tuning
):
    limits = []  # in rows, of each fit of a candidate

    class LimitNoted(worker.Recorder):
        def __init__(self, first_rows, **options):
            # The trace of a candidate records no checkpoint.
            if first_rows is None:
                limits.append(options["most_rows"])
            super().__init__(first_rows, **options)

    monkeypatch.setattr(worker, "Recorder", LimitNoted)
    solvers = "{sgd-avg: {eta0: {tune: [0.1, 0.3, 1.0]}}}"
    plan = make_plan(load_config(small(solvers=solvers, tuning=tuning.option)))
    trial, key = plan.trials[0]
    dataset = plan.datasets["mine"]
    folder = str(Store(tmp_path / "small").folder)
    most_passes = 6.0
    job = Job(trial, key, folder, dataset, most_passes, "parallel", "e", "r")
    assert run_job(job) == "ok"
    n_train = Rows(trial, dataset).training.n_rows
    assert len(limits) == 3 * tuning.n_fits
    n_rows = most_passes * tuning.training_share * n_train
    assert sum(limits) == pytest.approx(n_rows, rel=0.01)


def test_a_limit_of_rows_is_reached():
    limit = Recorder(None, most_rows=50)
    assert not limit(SimpleNamespace(n_rows_seen_=49))
    assert limit(SimpleNamespace(n_rows_seen_=50))
    assert limit.stopped


def test_tuning_minimises_a_loss(small, in_this_process, tmp_path):
    """Which is lower of short weights in a good direction than of none."""
    solvers = "{logistic-regression: {C: {tune: [1.0e-9, 1.0e-4]}}}"
    config = small(solvers=solvers, common="", metrics="[{pnorm_risk: {p: 1}}]")
    assert run(config, tmp_path / "out").exit_code == 0
    for record in Store(tmp_path / "out" / "small").records():
        assert record.tuning_seconds > 0
        assert record.chosen == {"C": 1e-4}


@pytest.mark.promise("R3")
def test_workers_lost_at_their_start_are_replaced(small, tmp_path, monkeypatch):
    lose_workers(monkeypatch, n_times=1)
    plan = make_plan(load_config(small()))
    store = Store(tmp_path / "out")
    ends = run_plan(plan, store, to_do(plan, store), n_workers=2)
    assert [status for _job, status in ends] == ["ok"] * 6


@pytest.mark.promise("R3")
def test_workers_lost_at_their_start_twice_are_reported(small, tmp_path, monkeypatch):
    lose_workers(monkeypatch, n_times=2)
    plan = make_plan(load_config(small()))
    store = Store(tmp_path / "out")
    ends = run_plan(plan, store, to_do(plan, store), n_workers=2)
    with raises(PrecbenchError):
        list(ends)


def lose_workers(monkeypatch, n_times):
    run_in_workers = processes.run
    calls = itertools.count()

    def losing(*arguments):
        if next(calls) < n_times:
            raise BrokenProcessPool
        return run_in_workers(*arguments)

    monkeypatch.setattr(processes, "run", losing)


class Hungry(Deadly):
    """Stands for a data set.

    A worker that looks at it wants more memory than there is.
    """

    @property
    def X(self):  # noqa: N802 (as in a data set)
        return np.empty(2**50) if self.is_elsewhere else None

    y = n_pos = X


@pytest.mark.promise("R3", "R4")
def test_a_dead_worker_costs_one_trial_and_so_does_want_of_memory(small, tmp_path):
    plan = make_plan(load_config(small()))
    store = Store(tmp_path / "out")
    trials = to_do(plan, store)
    keys = list(trials)
    hungry = keys[2]
    deadly = keys[4]
    with_stand_ins = served(plan, {2: Hungry(), 4: Deadly()})
    ends = run_plan(with_stand_ins, store, trials, n_workers=2)
    statuses = {job.key: status for job, status in ends}
    assert statuses == dict.fromkeys(keys, "ok") | {
        hungry: "failed",
        deadly: "crashed",
    }
    assert store.read(hungry).status == "failed"
    assert "out of memory" in store.read(hungry).reason
    assert store.read(deadly).status == "crashed"
    assert "died" in store.read(deadly).reason
    assert set(to_do(plan, store)) == {hungry, deadly}


def with_endless_solver(small, limit=""):
    """Return a config whose third solver ends only at a limit."""
    endless = f"{{solver: psg, max_iter: 100000000{limit}}}"
    return small(solvers=f"{{perceptron-avg: , sgd-avg: , endless: {endless}}}")


def finite_numbers(folder):
    """Return results without those of the endless solver, which stops anywhere."""
    return numbers(folder).query("solver != 'endless'").reset_index(drop=True)


@pytest.mark.promise("R1", "R2", "R5", "R19")
def test_an_interrupted_run_can_be_resumed(small, tmp_path, monkeypatch, size):
    """Trials that had ended, before or in this run, keep their results, and are not
    repeated.

    A second run of the folder is refused meanwhile. Kills are tried by the tests of
    promises.
    """
    limit = ", limit: {times_slowest: 4}"
    out = tmp_path / "out"
    folder = out / "small"
    with monkeypatch.context() as patch:
        run_in_this_process(patch)
        undisturbed = tmp_path / "undisturbed"
        assert run(with_endless_solver(small, limit), undisturbed).exit_code == 0
        first_split = ("--splits", "0")
        assert run(with_endless_solver(small, limit), out, *first_split).exit_code == 0
    records_before = records(folder)
    [endless] = (
        record for record in Store(folder).records() if record.label == "endless"
    )

    config = with_endless_solver(small)
    process = start_run(config, out, "--force")
    wait_until((folder / "running" / endless.key).exists)
    assert len(session(process.pid)) > 1
    refused(["run", config, "--out", out], f"process {process.pid}")

    os.killpg(process.pid, signal.SIGINT)
    time.sleep(size(0.02, 0.1))
    process.send_signal(signal.SIGTERM)  # does not disturb it
    _output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "kept" in errors
    assert "Traceback" not in errors
    assert not shared_memory_of(process.pid)
    wait_until(lambda: not session(process.pid))

    records_after = records(folder)
    changed = records_after.items() - records_before.items()
    assert len(changed) == 2
    assert records_after.keys() == records_before.keys()
    assert {record.status for record in Store(folder).records()} == {"ok"}

    run_in_this_process(monkeypatch)
    assert run(with_endless_solver(small, limit), out).exit_code == 0
    records_of_whole = records(folder)
    assert records_after.items() <= records_of_whole.items()
    assert len(records_of_whole) == 6
    pd.testing.assert_frame_equal(
        finite_numbers(folder), finite_numbers(undisturbed / "small"), check_exact=True
    )


def start_run(config, out, *options):
    """Start a run in a session of its own."""
    command = [sys.executable, "-m", "precbench", "run", config, "--out", out, *options]
    return subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.promise("R5")
def test_a_run_whose_folder_is_moved_stops(small, tmp_path):
    """Its workers make another one in its place."""
    config = small(
        solvers="{psg: {max_iter: 500}}", common="", protocol="{n_splits: 6}"
    )
    out = tmp_path / "out"
    folder = out / "small"

    def move():
        wait_until(lambda: list((folder / "trials").glob("*.json")))
        folder.rename(out / "moved")

    mover = threading.Thread(target=move)
    mover.start()
    result = run(config, out)
    mover.join()
    assert result.exit_code == 1
    assert not isinstance(result.exception, Exception)
    tells(result.stderr.splitlines()[-1], str(folder))
    assert not (folder / "results.csv").exists()
    assert not (out / "moved" / "results.csv").exists()


def test_plot_and_report_of_a_run_that_has_not_ended_say_so(finished):
    folder = finished / "small"
    (folder / "results.csv").unlink()
    refused(["plot", folder], f"{folder} precbench status")
    refused(["report", finished], f"{finished} precbench status")


def shared_memory_of(process):
    return list(Path("/dev/shm").glob(f"*[-_]{process}[-_]*"))


def test_rerun_repeats_only_the_trials_that_ended_so(small, in_this_process, tmp_path):
    out = tmp_path / "out"
    solvers = "{sgd-avg: , perceptron-avg: }"
    slow = small(solvers=solvers, timeout="0.000001")
    assert run(slow, out, "--splits", "0", "--solver", "sgd-avg").exit_code == 1
    config = small(solvers=solvers)
    tells(run(config, out, "--rerun", "crashed").stdout, "4 0")
    assert run(config, out, "--rerun", "failed").exit_code == 0
    [record] = Store(out / "small").records()
    assert record.status == "ok"
    tells(succeed("show", record.key, "--results", out).stdout, "1e-06")


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        pytest.param(
            ["run", "letter", "--rerun", "fail"], "'fail' 'failed'", id="misspelt"
        ),
        pytest.param(
            ["run", "letter", "--rerun", "failed", "--force"],
            "--rerun --force",
            id="with --force",
        ),
        pytest.param(
            ["run", "gultekin/bound", "--rerun", "failed"],
            "--rerun --shard",
            id="of a study",
        ),
    ],
)
def test_a_rerun_that_means_nothing_is_refused(arguments, places, work_folder):
    refused(arguments, places)


def test_patterns_choose_solvers_and_data_sets(small, tmp_path):
    def planned_trials(*options):
        """Return the titles of the trials, such as "mine split 0 sgd-avg"."""
        plan = run(small(), tmp_path / "out", "--dry-run", *options).stdout
        return re.findall(r"mine split .*", plan)

    assert len(planned_trials("--solver", "*-avg", "--dataset", "mi*")) == 4
    first_split = ("--splits", "0")
    trials = planned_trials("--solver", "*-avg", "--skip", "sgd-*", *first_split)
    assert trials == ["mine split 0 perceptron-avg"]
    assert not (tmp_path / "out").exists()


def test_dry_run_fetches_nothing(cache, tmp_path):
    out = tmp_path / "out"
    plan = succeed("run", "letter", "--out", out, "--dry-run", "--splits", "0-1").stdout
    tells(plan, "fetch letter")
    tells(plan, "28")
    assert not list(cache.rglob("*.data"))
    assert not out.exists()


@pytest.mark.parametrize("status", sorted({*STATUSES} - {"ok"}))
def test_every_status_but_ok_can_be_run_again(status):
    assert status in RunOptions(rerun=[status]).rerun_statuses


def test_failed_stands_for_all_statuses_that_a_resumed_run_retries():
    assert RunOptions(rerun=["failed"]).rerun_statuses == {*RETRIED}
    assert {*STATUSES} - _DONE == {*RETRIED}


def test_dry_run_judges_by_the_trials_before(small, in_this_process, tmp_path):
    def expected_seconds_of_all():
        plan = run(small(), tmp_path, "--dry-run", "--json", "--force").stdout
        [summary] = json.loads(plan)
        return summary["expected_seconds"]

    assert expected_seconds_of_all() < 100  # by the size of the data
    assert run(small(), tmp_path).exit_code == 0
    store = Store(tmp_path / "small")
    for record in [*store.records()]:
        slow = record.to_dict() | {"seconds": 100.0, "tuning_seconds": 0.0}
        store.write(slow, store.arrays(record.key))
    assert 600 < expected_seconds_of_all() < 606


def test_many_tiny_trials_are_expected_to_take_as_long_as_a_few_of_them_took(
    small, tmp_path
):
    """Within a factor of five, as this machine may be fast, slow or busy."""
    config = small(solvers="{perceptron-avg: {epochs: 1}}", protocol="{n_splits: 1000}")
    plan = make_plan(load_config(config))
    store = Store(tmp_path / "out")
    trials = to_do(plan, store)
    expected = sum(expected_seconds(plan, store, trials.values())) / len(trials)
    few_trials = dict(itertools.islice(trials.items(), 10))
    warm_up("perceptron-avg")
    seconds = []

    def run_one_by_one(jobs):
        for job in jobs:
            start = time.process_time()
            status = run_job(job)
            seconds.append(time.process_time() - start)
            yield job, status

    for _job, status in run_plan(plan, store, few_trials, elsewhere=run_one_by_one):
        assert status == "ok"
    assert median(seconds) / 5 < expected < 5 * median(seconds)


@pytest.mark.promise("R19")
@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["run", "leter"], "letter"),
        (["run", "letter", "--jobs", "0"], "--jobs"),
        (["reproduce", "letter", "--jobs", "0"], "--jobs"),
        (["run", "letter", "--solver", "sdg-avg"], "sgd-avg"),
        (["run", "letter", "--dataset", "leter"], "letter"),
        (["run", "letter", "--splits", "a-b"], "--splits"),
        (["run", "letter", "--skip", "*"], "letter --skip"),
        (["run", "letter", "--skip", "sgd-agv"], "'sgd-avg'"),
        (["run", "letter", "--solver", "sdg-*"], "letter 'sdg-*'"),
        (["run", "kar2015/laws", "--skip", "sgd-*"], "--solver --skip --dataset"),
        (["run", "letter", "--seeds", "7"], "7"),
        (["plot", "nowhere"], "nowhere"),
        (["list", "solver"], "solvers"),
        (["data", "info", "leter"], "letter"),
        (["score", "nowhere.npz", "rows.csv"], "nowhere.npz"),
        (["reproduce", "leter"], "'letter'"),
        (["reproduce", "german-numer"], "german-numer"),
        (["reproduce", "rudin2009/derivative"], "rudin2009/derivative"),
        (["data", "verify", "leter"], "leter"),
        (["doctor", "letter"], "letter"),
        (["schema", "confg"], "confg"),
    ],
)
def test_invalid_arguments_are_reported(
    arguments, places, in_this_process, work_folder
):
    refused(arguments, places)


def test_missing_data_are_left_out(small, in_this_process, tmp_path):
    config = small(
        datasets="[{file: mine.csv, label: label}, {name: kdd08, on_missing: skip}]"
    )
    command = ["run", config, "--out", tmp_path / "out"]
    tells(succeed(*command).output, "kdd08 FILES")
    [summary] = json.loads(succeed(*command, "--json").stdout)
    assert summary["absent"] == ["kdd08"]
    assert summary["trials"] == 6
    assert summary["cached"] == 6
    refused([*command, "--no-stand-in"], "kdd08", code=3)
    refused([*command, "--dataset", "kdd08"], "kdd08 FILES", code=3)


def test_results_have_the_number_of_rows_of_a_provided_training_part():
    X = np.eye(3)
    y = np.array([-1.0, 1.0, 1.0])
    divided = Dataset("toy", "Toy", X, y, "0", n_train=2)
    assert _sizes(divided)["training_rows"] == 2
    undivided = replace(divided, n_train=None)
    assert _sizes(undivided)["training_rows"] == 0


@pytest.mark.parametrize(
    ("protocol", "share"),
    [
        ("{n_splits: 2}", 0.3),
        ("{n_splits: 2, test_size: 0.4}", 0.4),
        ("{n_splits: 2, train_size: 450}", 0.25),
        ("{split: kfold, n_splits: 3, repetitions: 2}", 1 / 3),
        ("{split: none}", None),
    ],
)
def test_a_split_has_a_share_of_test_rows(protocol, share, small):
    first_trial = load_config(small(protocol=protocol)).trials()[0]
    assert first_trial.split.test_share(600) == pytest.approx(share)


def test_a_stand_in_is_marked_everywhere(in_this_process, tmp_path, monkeypatch):
    result = succeed("run", "kdd08", "--smoke", "--solver", "sgd-*", "--out", tmp_path)
    assert "SYNTHETIC" in result.output
    folder = tmp_path / "kdd08-smoke"
    table = pd.read_csv(folder / "results.csv")
    assert table["stand_in"].all()
    assert table["title"].str.contains("stand-in").all()
    precisions = table.query("metric == 'precision_at_k(k=0.25)' and final")["value"]
    # Of the rare positives enough are left at smoke size.
    assert precisions.gt(0).sum() > len(precisions) / 2
    assert "stand-in" in (folder / "summary.md").read_text()
    assert all(record.stand_in for record in Store(folder).records())


def choices(names):
    """Return the solvers, plots, metrics, splits and parts of configs."""
    all_choices = set()
    for config in map(shipped_config, names):
        all_choices.update(entry.solver for entry in config.solvers.values())
        all_choices.update(config.plots)
        all_choices.update(metric.name for metric in config.metrics)
        all_choices.add(config.protocol.split)
        all_choices.update(config.sweep or ())
        all_choices.update(config.parts)
    return all_choices


FEW = [  # which have all choices of the others
    "top/survey",
    "regression/push",
    "all-solvers",
    "compare",
    "kar2014/fig3-buffer",
    "adult",
    "rudin2009/table-3-magic",
    "gultekin/fig2",
    "kar2014/reservoir",
    "kar2014/zigzag",
    "kar2015/counterexample",
    "kar2015/fig3-kappa",
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "top/survey", marks=pytest.mark.extras("lightgbm", "xgboost", "catboost")
        ),
        *FEW[1:],
    ],
)
def test_every_experiment_runs_at_smoke_size(name, in_this_process, tmp_path):
    succeed("run", name, "--out", tmp_path, "--smoke")
    [folder] = tmp_path.iterdir()
    has_figures = any(folder.glob("figures/*.png"))
    assert has_figures == bool(shipped_config(name).plots)
    table = pd.read_csv(folder / "results.csv")
    assert set(table["status"]) == {"ok"}
    assert table["value"].notna().all()


def test_few_experiments_have_all_choices():
    assert choices(shipped_configs(Experiment)) == choices(FEW)


def test_the_other_experiments_have_a_plan(tmp_path):
    for name in {*shipped_configs(Experiment)} - {*FEW}:
        planned = succeed(
            "run", name, "--out", tmp_path, "--smoke", "--dry-run", "--json"
        )
        assert json.loads(planned.stdout)[0]["trials"] > 0, name


@pytest.mark.promise("R20")
def test_the_clock_stops_during_the_trace(monkeypatch):
    quick = seconds_of_a_trace(monkeypatch, seconds_of_a_note=0)
    slow = seconds_of_a_trace(monkeypatch, seconds_of_a_note=1000)
    assert slow == quick
    assert np.diff(quick["wall_seconds"]).min() > 0
    assert np.diff(quick["cpu_seconds"]).min() > 0


def seconds_of_a_trace(monkeypatch, seconds_of_a_note):
    """Return the times of checkpoints by clock, where each note takes a while.

    The clock goes on by a second whenever it is looked at.
    """
    looks = itertools.count()
    clock = SimpleNamespace(perf_counter=looks.__next__, process_time=looks.__next__)
    monkeypatch.setattr("precbench.runner.recorder.time", clock)

    class Slow(Recorder):
        def _note(self, solver):
            for _ in range(seconds_of_a_note):
                next(looks)
            super()._note(solver)

    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    y = np.where(rng.random(500) < 0.3, 1, -1)
    recorder = Slow(first_rows=50, factor=1.0001)
    solver = SGDAtK(batch_size=50, epochs=2, shuffle=False).fit(X, y, trace=recorder)
    arrays = recorder.finish(solver)
    return {name: arrays[name].tolist() for name in ("wall_seconds", "cpu_seconds")}


def test_candidates_learn_together_what_they_would_learn_alone(
    small, tmp_path, monkeypatch
):
    """Those of the same order and features."""
    config = small(
        protocol="{n_splits: 1}",
        solvers=(
            "{sgd-avg: {fourier: {n_components: {tune: [5, 9]}},"
            " batch_size: {tune: [20, 50]}, eta0: {tune: [0.01, 1.0, 100.0]}}}"
        ),
    )
    plan = make_plan(load_config(config))
    [(trial, key)] = plan.trials
    group_sizes = []
    train = InMemory.train

    def train_and_count(rows, solvers, traces):
        if len(solvers) > 1:
            group_sizes.append(len(solvers))
        train(rows, solvers, traces)

    monkeypatch.setattr(InMemory, "train", train_and_count)

    def chosen_and_learnt(folder):
        store = Store(folder)
        data = plan.datasets["mine"]
        place = str(store.folder)
        job = Job(trial, key, place, data, np.inf, "sequential", "none", "none")
        assert run_job(job) == "ok"
        return store.read(key).chosen, store.arrays(key)["coef"].tobytes()

    together = chosen_and_learnt(tmp_path / "together")
    assert group_sizes == [3, 3, 3, 3]
    monkeypatch.setattr(PassMixin, "visits", None)  # so that each is trained alone
    alone = chosen_and_learnt(tmp_path / "alone")
    assert group_sizes == [3, 3, 3, 3]
    assert together == alone


class MeasuredRun:
    """A finished run, which tells whether a repetition measures its records again."""

    def __init__(self, config, out, monkeypatch):
        self.config = config
        self.out = out
        self.folder = out / "small"
        self.n_measured = 0
        assert run(config, out).exit_code == 0
        by_rows = measure._by_rows

        def counted(*arguments):
            self.n_measured += 1
            return by_rows(*arguments)

        monkeypatch.setattr(measure, "_by_rows", counted)

    def measures_again(self):
        self.n_measured = 0
        assert run(self.config, self.out).exit_code == 0
        return self.n_measured > 0


TWO_SOLVERS = "{perceptron-avg: , sgd-avg: }"


@pytest.fixture
def measured_run(small, in_this_process, tmp_path, monkeypatch):
    config = small(solvers=TWO_SOLVERS)
    return MeasuredRun(config, tmp_path / "out", monkeypatch)


def test_stored_values_are_shown_again(measured_run):
    results = measured_run.folder / "results.csv"
    content = results.read_bytes()
    time.sleep(0.02)  # a file system may count in ticks
    results.write_bytes(content)
    assert not measured_run.measures_again()


def test_changed_records_are_measured_again(measured_run):
    results = measured_run.folder / "results.csv"
    content = results.read_bytes()
    os.utime(next((measured_run.folder / "trials").glob("*.npz")))
    assert measured_run.measures_again()
    assert results.read_bytes() == content


def test_other_metrics_are_measured(measured_run, small):
    small(solvers=TWO_SOLVERS, metrics="[auc]")
    assert measured_run.measures_again()


def test_records_are_measured_again_by_other_code(measured_run, monkeypatch):
    monkeypatch.setattr(measure, "code_of", lambda *_: "other code")
    assert measured_run.measures_again()


# --- A trial copies the training rows once and nothing else of their size ---


PROGRAM = """
import os
import sys
from math import inf
import numpy as np
from precbench.data import Dataset
from precbench.experiment import load_config
from precbench.runner.worker import Job, run_job, warm_up
from precbench.results.store import Store

config, folder, npy = sys.argv[1:]
for trial in load_config(config).trials():
    warm_up(trial.solver)  # libraries are imported before the memory is measured
X = np.load(npy, mmap_mode="r")
y = np.where(np.arange(len(X)) % 10, -1.0, 1.0)
data = Dataset("mine", "mine", np.asarray(X), y, "0" * 64)
for i, trial in enumerate(load_config(config).trials()):
    if os.fork():  # each trial has a process of its own, whose peak begins anew
        assert os.wait()[1] == 0
        continue
    key = f"{i:064}"
    job = Job(trial, key, folder, data, inf, "sequential", "none", "none")
    before = begin()
    assert run_job(job) == "ok", Store(folder).read(key).reason
    print((peak() - before) * 1024 / X.nbytes)
    sys.exit()
"""


@pytest.mark.promise("R4")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux only")
def test_peak_memory_of_a_trial(small, tmp_path):
    """All rows mapped (1.0) and the training set (0.7), within 2.5 of the matrix."""
    rows = tmp_path / "X.npy"
    np.save(rows, np.random.default_rng(0).standard_normal((100_000, 60)))  # 48 MB
    config = small(
        solvers=(
            "{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}}, "
            "cutting-plane: {max_iter: 5}, logistic-regression: {max_iter: 5}, "
            "linear-svm: {max_iter: 5}}"
        ),
        common="{k: 0.25, epochs: 2, shuffle: blocks}",
        protocol="{n_splits: 1}",
        scaling="standardise",
    )
    *peaks, linear_svm = printed_numbers(PROGRAM, config, tmp_path / "out", rows)
    assert len(peaks) == 4
    assert max(peaks) <= 2.5
    # LIBLINEAR copies the training set, 16 bytes for each value and two more for each
    # row.
    assert linear_svm - max(peaks) <= 1.1 * 0.7 * 2 * 62 / 60

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
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace

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
def test_a_run_writes_tables_and_figures(small, tmp_path, figure):
    """And complete records, without private data."""
    config = small(
        plots="[accuracy-time, precision-k]", metrics="[precision_at_k, auc]"
    )
    done = succeed("run", config, "--out", tmp_path / "out", "--json", "--verbose")
    folder = tmp_path / "out" / "small"
    assert read_run(folder).test_shares == {"mine": 0.3}
    table = pd.read_csv(folder / "results.csv")
    times = table.query("cpu_seconds > 0")
    # of one unit
    assert 0.5 < (times["wall_seconds"] / times["cpu_seconds"]).median() < 20
    final = table[table["final"]]
    assert (
        len(final) == 2 * 3 * 2
        and (final[final["metric"] == "auc"]["value"] > 0.7).all()
    )
    [summary] = json.loads(done.stdout)
    means = {(of["solver"], of["metric"]): of["mean"] for of in summary["values"]}
    assert means == pytest.approx(
        final.groupby(["solver", "metric"])["value"].mean().to_dict()
    )
    assert done.stderr.count(": ok: ") == len(records(folder)) == 6
    drawn = pd.read_csv(folder / "figures" / "precision-k-mine.csv").set_index("solver")
    measured = final[final["metric"] == "precision_at_k(k=0.5)"].groupby("solver")[
        "value"
    ]
    at_k = drawn.loc[drawn["share"] == 0.5, "median"]
    pd.testing.assert_series_equal(
        at_k.sort_index(), measured.median(), check_names=False
    )
    store = Store(folder)
    for record in store.records():
        arrays = store.arrays(record.key)
        assert arrays["coef"].shape == (len(arrays["rows_seen"]), 4)
        assert (np.diff(arrays["rows_seen"]) > 0).all()
        assert (np.diff(arrays["wall_seconds"]) >= 0).all()
        assert record.environment and record.description["data_sha256"]
        assert record.label != "sgd-avg" or record.chosen["eta0"] in (0.1, 1.0)
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = {path.relative_to(folder).parts[0] for path in files}
    assert {
        "summary.csv",
        "summary.md",
        "summary.tex",
        "trials",
        "environments",
    } <= found
    assert {".png", ".pdf"} <= {path.suffix for path in files} and not list(
        store.running.glob("*")
    )
    figure(f"{len(files)} files of a run searched")
    for path in files:
        content = path.read_bytes().decode("latin-1")
        # elsewhere it occurs by chance
        if path.suffix in {".json", ".csv", ".md", ".tex"}:
            assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b", content), (
                path
            )
        assert str(Path.home()) not in content and str(tmp_path) not in content, path


@pytest.mark.promise("R1")
def test_finished_trials_are_not_repeated(small, in_this_process, tmp_path):
    out, folder = tmp_path / "out", tmp_path / "out" / "small"
    assert run(small(plots="[roc]"), out, "--no-plots").exit_code == 0
    before = records(folder)
    assert (folder / "summary.md").exists() and not (folder / "figures").exists()
    both = small(
        solvers=(
            "{a: {solver: sgd-avg, limit: {times_slowest: 1}}, b: {solver: sgd-avg}}"
        )
    )
    refused(["run", both, "--out", out], "'a' 'b'")
    result = run(small(plots="[roc]"), out)
    assert done_already(result.output) == 6 and records(folder) == before
    assert "figures/roc-mine.png" in result.output
    tells(result.output, str(folder / "report.html"))
    changed = small(
        solvers="{perceptron-avg: {epochs: 4}, cutting-plane: }", title="Another title"
    )
    assert done_already(run(changed, out).output) == 2
    after = records(folder)
    assert before.items() <= after.items() and len(after) == 8


@pytest.mark.promise("R7", "R20")
def test_results_do_not_depend_on_workers_or_on_the_other_trials(small, tmp_path):
    assert run(small(), tmp_path / "one").exit_code == 0
    for options in (["--solver", "sgd-avg"], []):
        assert run(small(), tmp_path / "two", "--jobs", "2", *options).exit_code == 0
    one, two = (tmp_path / name / "small" for name in ("one", "two"))
    pd.testing.assert_frame_equal(numbers(one), numbers(two), check_exact=True)
    assert set(pd.read_csv(one / "results.csv")["timing"]) == {"sequential"}
    assert set(pd.read_csv(two / "results.csv")["timing"]) == {"parallel"}


@pytest.mark.promise("R20")
def test_timing_repeats_parallel_trials_and_marks_times_of_several_machines(
    small, in_this_process, tmp_path
):
    config, out = small(solvers="{perceptron-avg: , sgd-avg: }"), tmp_path / "out"
    run(config, out, "--timing")
    store = Store(out / "small")
    [here] = store.machines().values()
    elsewhere = store.add_environment({**here.model_dump(), "cpu": "Another"})
    first, *others = sorted(
        store.records(), key=lambda record: (record.split, record.label)
    )

    def change(record, **changes):
        store.write({**record.to_dict(), **changes}, store.arrays(record.key))

    change(first, environment=elsewhere)
    assert done_already(run(config, out, "--no-plots").output) == 4
    table = pd.read_csv(out / "small" / "results.csv")
    assert table.groupby("split")["machine"].nunique().tolist() == [2, 1]
    page = out / "small" / "summary.md"
    assert "Timed on different machines, so not comparable: " in page.read_text()
    change(others[0], environment=elsewhere)  # the whole split
    change(others[-1], timing="parallel")
    assert done_already(run(config, out, "--timing", "--no-plots").output) == 3
    assert "each split on one: " in page.read_text()


@pytest.mark.promise("R19")
def test_failed_and_late_trials_do_not_affect_others(small, in_this_process, tmp_path):
    solvers = {
        "perceptron-avg": "",
        "sgd-avg": "{eta0: {tune: [1.0e+308, 1.7e+308]}}",
        "late": "{solver: sgd-avg, epochs: 100000000}",
    }
    text = ", ".join(f"{label}: {entry}" for label, entry in solvers.items())
    config, out = small(solvers=f"{{{text}}}", timeout="1.0"), tmp_path / "out"
    said = run(config, out, "--seeds", "0", "--quiet")
    assert said.exit_code == 1 and said.stdout == "" and said.stderr.count("\n") == 2
    tells(said.stderr, "sgd-avg failed diverged")
    tells(said.stderr, "late timeout")
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


def test_every_kind_of_k_reaches_tables_and_figures(small, in_this_process, tmp_path):
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
    final = (
        pd.read_csv(folder / "results.csv").query("final").set_index("metric")["value"]
    )
    assert (final["recall_at_k(k=180)"] == 1).all()
    assert (final["precision_at_k(k=1 %)"] * 2).isin([0, 1, 2]).all()  # of 180 rows two
    assert "prec@1 % | recall@180 | lift@0.5" in (folder / "summary.md").read_text()
    told = {record.label: record.warnings for record in Store(folder).records()}
    assert not told["perceptron-avg"]
    tells(told["cutting-plane"][0], "k 300")
    swept = small(
        metrics="[{precision_at_k: {k: 0.5}}]", sweep='{k: ["1 %", "20 %"]}', plots=""
    )
    assert run(swept, tmp_path / "out").exit_code == 0
    assert (folder / "figures" / "accuracy-time-mine-k-1-percent.csv").exists()
    assert set(pd.read_csv(folder / "figures/accuracy-sweep-mine.csv")["k"]) == {
        "1 %",
        "20 %",
    }


def test_a_limit_stops_a_solver_at_its_last_iterate(small, in_this_process, tmp_path):
    """Another limit repeats the trials that it stopped."""
    for times, done in ((4, 0), (4, 2), (8, 1)):
        limited = f"{{max_iter: 100000000, limit: {{times_slowest: {times}}}}}"
        config = small(solvers=f"{{perceptron-avg: , psg: {limited}}}")
        result = run(config, tmp_path / "out", "--seeds", "0")
        assert result.exit_code == 0 and done_already(result.output) == done
    table = pd.read_csv(tmp_path / "out" / "small" / "results.csv").query(
        "solver == 'psg'"
    )
    assert set(table["status"]) == {"ok"} and set(table["stopped"]) == {"limit"}
    assert table["rows_seen"].max() == 8 * 3 * 420  # 8 times 3 epochs


def test_a_limit_counts_the_most_epochs_that_tuning_may_choose(small):
    plan = make_plan(
        load_config(
            small(
                common="{k: 0.5}",
                solvers="{sgd-avg: {epochs: {tune: [2, 5]}}, "
                "cutting-plane: {limit: {times_slowest: 8}}}",
            )
        )
    )
    row_cost = 4
    passes = {_most_passes(plan, trial) for trial, _ in plan.trials if trial.limit}
    assert passes == {8 * 5 / row_cost}


def test_every_batch_or_iteration_is_a_checkpoint(small, in_this_process, tmp_path):
    config = small(
        common="{k: 0.5, epochs: 2, batch_size: 16}",
        solvers="{sgd-avg: , cutting-plane: {limit: {times_slowest: 8}}}",
        checkpoints="every",
        plots="[accuracy-rows]",
    )
    assert run(config, tmp_path / "out", "--seeds", "0").exit_code == 0
    folder, n_train = tmp_path / "out" / "small", 420
    table = (
        pd.read_csv(folder / "results.csv").query("metric == 'auc'").set_index("solver")
    )
    ends = [*range(16, n_train, 16), n_train]
    seen = [0, *ends, *(n_train + end for end in ends)]
    assert table.loc["sgd-avg", "rows_seen"].tolist() == seen
    stopped = table.loc["cutting-plane"]
    # each counts as 4 passes
    assert stopped["rows_seen"].tolist() == list(n_train * np.arange(5))
    assert set(stopped["stopped"]) == {"limit"}
    drawn = pd.read_csv(folder / "figures" / "accuracy-rows-mine.csv")
    values = pd.read_csv(folder / "results.csv").query(
        "rows_seen > 0 and metric != 'auc'"
    )["value"]
    assert drawn["value"].tolist() == values.tolist()
    plan, store = make_plan(load_config(config)), Store(folder)
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
    named = "{{file: mine.csv, label: label, name: {}}}".format
    config = small(
        datasets=f"[{named('one')}, {named('two')}]", solvers="{perceptron-avg: }"
    )
    folder, order = (
        tmp_path / "out" / "small",
        [
            "dataset",
            "split",
            "metric",
            "checkpoint",
        ],
    )
    assert run(config, tmp_path / "out").exit_code == 0
    whole = numbers(folder).sort_values(order, ignore_index=True)
    assert run(config, tmp_path / "out", "--dataset", "two", "--force").exit_code == 0
    pd.testing.assert_frame_equal(
        numbers(folder).sort_values(order, ignore_index=True), whole
    )
    assert set(read_run(folder).data) == {"one", "two"}


def test_tuning_by_folds_takes_the_best_mean(small, in_this_process, tmp_path):
    grid = [1e-5, 1e-3, 0.1, 10.0]
    options = {
        "solvers": f"{{logistic-regression: {{C: {{tune: {grid}}}}}}}",
        "common": "",
        "tuning": "{by: average_precision, folds: 3}",
        "protocol": "{n_splits: 6}",
    }
    config = small(**options)
    assert run(config, tmp_path / "out", "--no-plots").exit_code == 0
    chosen = {
        r.split: r.chosen["C"] for r in Store(tmp_path / "out" / "small").records()
    }
    plan = make_plan(load_config(config))
    for trial, _ in plan.trials:
        rows = Rows(trial, plan.datasets["mine"])
        X, y = rows.training.X, rows.training.y
        given = {"cv": rows.divisions, "scoring": "average_precision"}
        solvers = (LogisticRegression(C=C, max_iter=1000) for C in grid)
        means = [cross_val_score(solver, X, y, **given).mean() for solver in solvers]
        assert chosen[trial.split.index] == grid[int(np.argmax(means))]
    assert len(set(chosen.values())) > 1


def test_a_limit_may_leave_tuning_out(small, in_this_process, tmp_path):
    """Then trials whose tuning it stopped before run again."""
    grid = "{tune: [0.1, 0.3]}"
    for tuning, steps, stopped in (
        ("true", 5, "tuning limit"),  # two candidates share 6 passes
        ("false", 5, ""),
        ("false", 20, "limit"),
    ):
        limit = f"limit: {{times_slowest: 2, tuning: {tuning}}}"
        psg = f"{{max_iter: {steps}, eta0: {grid}, {limit}}}"
        config = small(solvers=f"{{perceptron-avg: , psg: {psg}}}")
        assert run(config, tmp_path / "out", "--seeds", "0").exit_code == 0
        table = pd.read_csv(
            tmp_path / "out" / "small" / "results.csv", keep_default_na=False
        )
        assert set(table.query("solver == 'psg'")["stopped"]) == {stopped}


@pytest.mark.parametrize("folds", [None, 4])
def test_all_candidates_together_have_the_limit_of_one_training(
    small, tmp_path, monkeypatch, folds
):
    given = []

    class Noted(worker.Recorder):
        def __init__(self, first_rows, **options):
            # the trace of a candidate, which records no checkpoint
            if first_rows is None:
                given.append(options["most_rows"])
            super().__init__(first_rows, **options)

    monkeypatch.setattr(worker, "Recorder", Noted)
    grid = "{tune: [0.1, 0.3, 1.0]}"
    plan = make_plan(
        load_config(
            small(
                solvers=f"{{sgd-avg: {{eta0: {grid}}}}}",
                tuning=f"{{folds: {folds}}}" if folds else "",
            )
        )
    )
    trial, key = plan.trials[0]
    dataset = plan.datasets["mine"]
    place = str(Store(tmp_path / "small").folder)
    assert run_job(Job(trial, key, place, dataset, 6.0, "parallel", "e", "r")) == "ok"
    n_fits, rows = 3 * (folds or 1), Rows(trial, dataset).training.n_rows
    share = 1 - 1 / folds if folds else 0.8
    assert len(given) == n_fits
    assert sum(given) == pytest.approx(6 * share * rows, rel=0.01)


def test_a_limit_of_rows_is_reached():
    limit, solver = Recorder(None, most_rows=50), SimpleNamespace(n_rows_seen_=49)
    assert not limit(solver)
    solver.n_rows_seen_ = 50
    assert limit(solver) and limit.stopped


def test_tuning_minimises_a_loss(small, in_this_process, tmp_path):
    """Which is lower of short weights in a good direction than of none."""
    solvers = "{logistic-regression: {C: {tune: [1.0e-9, 1.0e-4]}}}"
    config = small(solvers=solvers, common="", metrics="[{pnorm_risk: {p: 1}}]")
    assert run(config, tmp_path / "out").exit_code == 0
    records = Store(tmp_path / "out" / "small").records()
    assert all(r.tuning_seconds > 0 and r.chosen == {"C": 1e-4} for r in records)


@pytest.mark.promise("R3")
@pytest.mark.parametrize("n_losses", [1, 2])
def test_workers_lost_at_their_start_are_replaced_once(
    small, tmp_path, monkeypatch, n_losses
):
    plan, store = make_plan(load_config(small())), Store(tmp_path / "out")
    losses = iter([BrokenProcessPool] * n_losses)
    run = processes.run

    def losing(*arguments):
        for loss in losses:
            raise loss
        return run(*arguments)

    monkeypatch.setattr(processes, "run", losing)
    ends = run_plan(plan, store, to_do(plan, store), n_workers=2)
    with raises(PrecbenchError) if n_losses > 1 else nullcontext():
        assert [status for _, status in ends] == ["ok"] * 6


class Hungry(Deadly):
    """Stands for a data set.

    A worker that looks at it wants more memory than there is.
    """

    @property
    def X(self):  # noqa: N802 (as in a data set)
        return np.empty(2**50) if self.is_elsewhere else None

    y = X


@pytest.mark.promise("R3", "R4")
def test_a_dead_worker_costs_one_trial_and_so_does_want_of_memory(small, tmp_path):
    plan = make_plan(load_config(small()))
    store = Store(tmp_path / "out")
    todo = to_do(plan, store)
    stand_ins = {2: Hungry(), 4: Deadly()}
    hungry, deadly = (list(todo)[n] for n in stand_ins)

    ends = run_plan(served(plan, stand_ins), store, todo, n_workers=2)
    statuses = {job.key: status for job, status in ends}
    assert len(statuses) == 6
    for key, status, reason in (
        (hungry, "failed", "out of memory"),
        (deadly, "crashed", "died"),
    ):
        assert statuses.pop(key) == store.read(key).status == status
        assert reason in store.read(key).reason
    assert set(statuses.values()) == {"ok"} and set(to_do(plan, store)) == {
        hungry,
        deadly,
    }


def label(path):
    return json.loads(path.read_text())["label"]


@pytest.mark.promise("R1", "R2", "R5", "R19")
def test_an_interrupted_run_can_be_resumed(small, tmp_path, monkeypatch, size):
    """Trials that had ended, before or in this run, keep their results, and are not
    repeated.

    A second run of the folder is refused meanwhile. Kills are tried by the tests of
    promises.
    """

    def config(limit=""):
        endless = f"endless: {{solver: psg, max_iter: 100000000{limit}}}"
        return small(solvers=f"{{perceptron-avg: , sgd-avg: , {endless}}}")

    limit, out, folder = (
        ", limit: {times_slowest: 4}",
        tmp_path / "out",
        tmp_path / "out" / "small",
    )
    with monkeypatch.context() as patch:
        run_in_this_process(patch)
        assert run(config(limit), tmp_path / "undisturbed").exit_code == 0
        assert run(config(limit), out, "--splits", "0").exit_code == 0
    before = records(folder)
    [running] = (
        folder / "running" / path.stem for path in before if label(path) == "endless"
    )
    command = [
        sys.executable,
        "-m",
        "precbench",
        "run",
        config(),
        "--out",
        out,
        "--force",
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_until(running.exists)
    assert len(session(process.pid)) > 1
    refused(["run", config(), "--out", out], f"process {process.pid}")
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(size(0.02, 0.1))
    process.send_signal(signal.SIGTERM)  # does not disturb it
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "kept" in errors
    assert "Traceback" not in errors and not shared_memory_of(process.pid)
    wait_until(lambda: not session(process.pid))
    kept = records(folder)
    assert len(kept.items() - before.items()) == 2 and kept.keys() == before.keys()
    assert {record.status for record in Store(folder).records()} == {"ok"}
    run_in_this_process(monkeypatch)
    assert run(config(limit), out).exit_code == 0
    assert kept.items() <= records(folder).items() and len(records(folder)) == 6
    found, undisturbed = (
        numbers(of).query("solver != 'endless'").reset_index(drop=True)
        for of in (folder, tmp_path / "undisturbed" / "small")
    )
    pd.testing.assert_frame_equal(found, undisturbed, check_exact=True)


@pytest.mark.promise("R5")
def test_a_run_whose_folder_is_moved_stops(small, tmp_path):
    """Its workers make another one in its place."""
    config = small(
        solvers="{psg: {max_iter: 500}}", common="", protocol="{n_splits: 6}"
    )
    out, folder = tmp_path / "out", tmp_path / "out" / "small"

    def move():
        wait_until(lambda: list((folder / "trials").glob("*.json")))
        folder.rename(out / "moved")

    mover = threading.Thread(target=move)
    mover.start()
    result = run(config, out)
    mover.join()
    assert result.exit_code == 1 and not isinstance(result.exception, Exception)
    tells(result.stderr.splitlines()[-1], str(folder))
    assert (
        not (folder / "results.csv").exists()
        and not (out / "moved" / "results.csv").exists()
    )


def test_plot_of_a_run_that_has_not_ended_says_so(finished):
    (finished / "small" / "results.csv").unlink()
    for command, folder in (("plot", finished / "small"), ("report", finished)):
        refused([command, folder], f"{folder} precbench status")


def shared_memory_of(process):
    return list(Path("/dev/shm").glob(f"*[-_]{process}[-_]*"))


def test_rerun_repeats_only_the_trials_that_ended_so(small, in_this_process, tmp_path):
    solvers, out = {"solvers": "{sgd-avg: , perceptron-avg: }"}, tmp_path / "out"
    slow = small(**solvers, timeout="0.000001")
    assert run(slow, out, "--splits", "0", "--solver", "sgd-avg").exit_code == 1
    config = small(**solvers)
    tells(run(config, out, "--rerun", "crashed").stdout, "4 0")
    assert run(config, out, "--rerun", "failed").exit_code == 0
    [record] = Store(out / "small").records()
    assert record.status == "ok"
    tells(succeed("show", record.key, "--results", out).stdout, "1e-06")
    refused(["run", config, "--rerun", "fail"], "'fail' 'failed'")
    refused(["run", config, "--rerun", "failed", "--force"], "--rerun --force")
    refused(["run", "gultekin/bound", "--rerun", "failed"], "--rerun --shard")


def test_patterns_choose_solvers_and_data_sets(small, tmp_path):
    def asked(*options):
        return run(small(), tmp_path / "out", "--dry-run", *options).stdout

    assert asked("--solver", "*-avg", "--dataset", "mi*").count("mine split ") == 4
    chosen = asked("--solver", "*-avg", "--skip", "sgd-*", "--splits", "0")
    assert (
        chosen.count("mine split ") == 1 and "mine split 0 perceptron-avg\n" in chosen
    )
    assert not (tmp_path / "out").exists()


def test_dry_run_fetches_nothing(cache, tmp_path):
    told = succeed(
        "run", "letter", "--out", tmp_path / "out", "--dry-run", "--splits", "0-1"
    )
    tells(told.stdout, "fetch letter")
    tells(told.stdout, "28")
    assert not list(cache.rglob("*.data")) and not (tmp_path / "out").exists()


def test_every_status_but_ok_can_be_run_again():
    for status in {*STATUSES} - {"ok"}:
        assert status in RunOptions(rerun=[status]).rerun_statuses
    assert (
        RunOptions(rerun=["failed"]).rerun_statuses == {*RETRIED} == {*STATUSES} - _DONE
    )


def test_dry_run_judges_by_the_trials_before(small, in_this_process, tmp_path):
    def expected():
        planned = run(small(), tmp_path, "--dry-run", "--json", "--force").stdout
        return json.loads(planned)[0]["expected_seconds"]

    by_size = expected()
    assert run(small(), tmp_path).exit_code == 0
    store = Store(tmp_path / "small")
    for record in [*store.records()]:
        slow = record.to_dict() | {"seconds": 100.0, "tuning_seconds": 0.0}
        store.write(slow, store.arrays(record.key))
    assert by_size < 100 and 600 < expected() < 606


def test_many_tiny_trials_are_expected_to_take_as_long_as_a_few_of_them_took(
    small, tmp_path
):
    """Within a factor of five, as this machine may be fast, slow or busy."""
    config = small(solvers="{perceptron-avg: {epochs: 1}}", protocol="{n_splits: 1000}")
    plan, store = make_plan(load_config(config)), Store(tmp_path / "out")
    trials = to_do(plan, store)
    expected = sum(expected_seconds(plan, store, trials.values())) / len(trials)
    few = dict(itertools.islice(trials.items(), 10))
    warm_up("perceptron-avg")
    taken = []

    def run_one_by_one(jobs):
        for job in jobs:
            start = time.process_time()
            status = run_job(job)
            taken.append(time.process_time() - start)
            yield job, status

    for _, status in run_plan(plan, store, few, elsewhere=run_one_by_one):
        assert status == "ok"
    assert median(taken) / 5 < expected < 5 * median(taken)


@pytest.mark.promise("R19")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
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
    arguments, complaint, in_this_process, work_folder
):
    refused(arguments, complaint)


def test_missing_data_are_left_out(small, in_this_process, tmp_path):
    both = small(
        datasets="[{file: mine.csv, label: label}, {name: kdd08, on_missing: skip}]"
    )
    tells(succeed("run", both, "--out", tmp_path / "out").output, "kdd08 FILES")
    [summary] = json.loads(run(both, tmp_path / "out", "--json").stdout)
    assert (
        summary["absent"] == ["kdd08"] and summary["cached"] == summary["trials"] == 6
    )
    refused(["run", both, "--out", tmp_path / "out", "--no-stand-in"], "kdd08", code=3)
    refused(
        ["run", both, "--out", tmp_path / "out", "--dataset", "kdd08"],
        "kdd08 FILES",
        code=3,
    )


def test_results_tell_the_rows_of_a_provided_training_part():
    X, y = np.eye(3), np.array([-1.0, 1.0, 1.0])
    given = Dataset("toy", "Toy", X, y, "0", n_train=2)
    assert _sizes(given)["training_rows"] == 2
    assert _sizes(replace(given, n_train=None))["training_rows"] == 0


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
def test_results_tell_how_much_the_splits_overlap(protocol, share, small):
    [trial, *_] = load_config(small(protocol=protocol)).trials()
    assert trial.split.test_share(600) == pytest.approx(share)


def test_a_stand_in_is_marked_everywhere(in_this_process, tmp_path, monkeypatch):
    result = succeed("run", "kdd08", "--smoke", "--solver", "sgd-*", "--out", tmp_path)
    assert "SYNTHETIC" in result.output
    folder = tmp_path / "kdd08-smoke"
    table = pd.read_csv(folder / "results.csv")
    assert table["stand_in"].all() and table["title"].str.contains("stand-in").all()
    found = table.query("metric == 'precision_at_k(k=0.25)' and final")["value"]
    assert found.gt(0).sum() > len(found) / 2  # of rare positives enough are kept
    assert "stand-in" in (folder / "summary.md").read_text()
    assert all(record.stand_in for record in Store(folder).records())


def choices(names):
    """Return the solvers, plots, metrics, splits and parts of configs."""
    held = set()
    for config in map(shipped_config, names):
        held |= {entry.solver for entry in config.solvers.values()} | {*config.plots}
        held |= {metric.name for metric in config.metrics}
        held |= {config.protocol.split, *(config.sweep or ()), *config.parts}
    return held


FEW = [  # which hold all choices of the others
    *(
        "top/survey",
        "regression/push",
        "all-solvers",
        "compare",
        "kar2014/fig3-buffer",
        "adult",
    ),
    *(
        "rudin2009/table-3-magic",
        "gultekin/fig2",
        "kar2014/reservoir",
        "kar2014/zigzag",
    ),
    *("kar2015/counterexample", "kar2015/fig3-kappa"),
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
    assert bool(list(folder.glob("figures/*.png"))) == bool(shipped_config(name).plots)
    table = pd.read_csv(folder / "results.csv")
    assert set(table["status"]) == {"ok"} and table["value"].notna().all()


def test_the_other_experiments_have_a_plan(tmp_path):
    every = shipped_configs(Experiment)
    assert choices(every) == choices(FEW)
    for name in {*every} - {*FEW}:
        planned = succeed(
            "run", name, "--out", tmp_path, "--smoke", "--dry-run", "--json"
        )
        assert json.loads(planned.stdout)[0]["trials"] > 0, name


@pytest.mark.promise("R20")
def test_the_clock_stops_during_the_trace(monkeypatch):
    """On a clock that goes on by a second whenever it is looked at."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 3)), np.where(rng.random(500) < 0.3, 1, -1)
    found = []
    for seconds_of_a_note in (0, 1000):
        looks = itertools.count()
        now = SimpleNamespace(perf_counter=looks.__next__, process_time=looks.__next__)
        monkeypatch.setattr("precbench.runner.recorder.time", now)

        class Slow(Recorder):
            def _note(self, solver, looks=looks, seconds=seconds_of_a_note):
                for _ in range(seconds):
                    next(looks)
                super()._note(solver)

        slow = Slow(first_rows=50, factor=1.0001)
        solver = SGDAtK(batch_size=50, epochs=2, shuffle=False).fit(X, y, trace=slow)
        arrays = slow.finish(solver)
        found.append(
            [arrays[clock].tolist() for clock in ("wall_seconds", "cpu_seconds")]
        )
    assert found[0] == found[1] and all(
        np.diff(seconds).min() > 0 for seconds in found[0]
    )


def test_candidates_learn_together(small, tmp_path, monkeypatch):
    """Those of the same order and features.

    What is chosen and learnt is what it would be alone.
    """
    plan = make_plan(
        load_config(
            small(
                protocol="{n_splits: 1}",
                solvers="{sgd-avg: {fourier: {n_components: {tune: [5, 9]}}, "
                "batch_size: {tune: [20, 50]}, eta0: {tune: [0.01, 1.0, 100.0]}}}",
            )
        )
    )
    [(trial, key)] = plan.trials
    train, found = InMemory.train, []

    def counted(rows, solvers, traces):
        found.extend([len(solvers)] if len(solvers) > 1 else [])
        train(rows, solvers, traces)

    monkeypatch.setattr(InMemory, "train", counted)
    for place in ("together", "alone"):
        store = Store(tmp_path / place)
        data = plan.datasets["mine"]
        job = Job(
            trial, key, str(store.folder), data, np.inf, "sequential", "none", "none"
        )
        assert run_job(job) == "ok"
        found.append((store.read(key).chosen, store.arrays(key)["coef"].tobytes()))
        monkeypatch.setattr(PassMixin, "visits", None)
    *groups, together, alone = found
    assert groups == [3, 3, 3, 3] and together == alone


def test_only_what_has_changed_is_measured_again(
    small, in_this_process, tmp_path, monkeypatch
):
    """The records, the metrics or the code that measures.

    Another run shows the stored values.
    """
    config, out = small(solvers="{perceptron-avg: , sgd-avg: }"), tmp_path / "out"
    assert run(config, out).exit_code == 0
    folder, counted, by_rows = out / "small", [], measure._by_rows
    monkeypatch.setattr(
        measure, "_by_rows", lambda *args: counted.append(1) or by_rows(*args)
    )

    def measures():
        counted.clear()
        assert run(config, out).exit_code == 0
        return bool(counted)

    results = (folder / "results.csv").read_bytes()
    time.sleep(0.02)  # a file system may count in ticks
    (folder / "results.csv").write_bytes(results)
    assert not measures()
    os.utime(next((folder / "trials").glob("*.npz")))
    assert measures() and (folder / "results.csv").read_bytes() == results
    small(solvers="{perceptron-avg: , sgd-avg: }", metrics="[auc]")
    assert measures()
    monkeypatch.setattr(measure, "code_of", lambda *_: "other code")
    assert measures()


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
    assert len(peaks) == 4 and max(peaks) <= 2.5
    # LIBLINEAR copies the training set, 16 bytes for each value and two more for each
    # row.
    assert linear_svm - max(peaks) <= 1.1 * 0.7 * 2 * 62 / 60

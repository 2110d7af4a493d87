"""Tables and figures: numbers checked by hand, files by their bytes."""

import contextlib
import io
import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.errors import InputError
from precbench.experiment import Experiment
from precbench.ranking.metrics import Metric
from precbench.ranking.statistics import resampled_interval, resampled_test
from precbench.report import sheet
from precbench.report.curves import (
    precision_against_k,
    roc,
    value_against_sweep,
    value_against_time,
)
from precbench.report.figures import write_figures
from precbench.report.folder import PAGE, write_report
from precbench.report.sheet import save_figure
from precbench.report.style import MOST_CURVES, solver_styles
from precbench.report.summary_tables import (
    _mean,
    make_tables,
    notes,
    three_digits,
    write_tables,
)
from precbench.report.table import Cell, text_table
from precbench.results.read import read_run
from precbench.results.summary import summarise
from precbench.solvers import SOLVERS
from tests.helpers import misplaced, shipped_config, shipped_configs
from tests.sentences import raises


def measures(*metrics):
    return {
        metric.label: {
            "name": metric.name,
            "parameters": metric.params,
            "written": metric.written,
            "smaller_is_better": metric.smaller_is_better,
        }
        for metric in metrics
    }


PREC_AT = {k: Metric("precision_at_k", {"k": k}) for k in (0.05, 0.25, 1.0)}
PREC = PREC_AT[0.25].label
LABELS = ["sgd-avg", "cutting-plane", "mine_v2", "linear-svm"]
ABOUT = {
    "name": "small",
    "title": "A small experiment",
    "source": "kar2015 Fig. 2",
    "plots": ["accuracy-time", "roc"],
    "metrics": [PREC, "auc"],
    "measures": measures(PREC_AT[0.25], Metric("auc", {})),
    "solvers": LABELS,
    "built_in_solvers": ["sgd-avg", "1pmb", "cutting-plane", "linear-svm"],
    "datasets": ["letter", "ppi"],
    "sweep": None,
    "protocol": "70/30 random split, 3 splits, not stratified",
    "scaling": "standardised on the training set",
    "folds": 1,
    "data": {},
    "forms": {},
    "grids": {},
    "smoke": False,
    "config": "",
}
SUFFIXES = ("csv", "pdf", "png", "svg")
SIZES = {
    "rows": 100,
    "features": 2,
    "positives": 50,
    "stand_in": False,
    "training_rows": 0,
    "test_share": 0.3,
}
TITLES = {"letter": "Letter", "ppi": "PPI (stand-in, synthetic)"}


def trial(dataset, solver, split, times=(), values=(), metric=PREC, sweep="", **other):
    """Return the rows of a trial; without times, of one that has no result."""
    common = {
        "experiment": "small",
        "dataset": dataset,
        "title": TITLES[dataset],
        "stand_in": dataset == "ppi",
        "solver": solver,
        "split": split,
        "seed": 1000 + split,
        "sweep": sweep,
        "part": "test",
        "metric": metric,
        "status": "ok",
        "reason": "",
        "chosen": "",
        "tuning_seconds": 0.0,
        "stopped": "",
        "converged": "",
        "timing": "sequential",
        "run": "1a",
        "machine": "",
        "key": "",
        **other,
    }
    if len(times) == 0:
        return [common]
    return [
        {
            **common,
            "checkpoint": i,
            "rows_seen": 100 * i,
            "cpu_seconds": time,
            "wall_seconds": time,
            "value": value,
            "final": i == len(times) - 1,
        }
        for i, (time, value) in enumerate(zip(times, values, strict=True))
    ]


def small_results():
    """Return results on two data sets, three splits and two metrics.

    sgd-avg is quick; cutting-plane is slow, and a limit stops it; mine_v2 runs beside
    other trials on ppi; linear-svm has a result on the first split only.
    """
    rows = []
    for dataset, metric in itertools.product(TITLES, (PREC, "auc")):
        for split, best_precision in enumerate((0.5, 0.6, 0.7)):
            place = {"dataset": dataset, "split": split, "metric": metric}
            shift = 0.25 if metric == "auc" else 0.0
            best = best_precision
            curve = np.array([0.1, best - 0.1, best, best - 0.001]) + shift
            rows += trial(
                **place,
                solver="sgd-avg",
                times=(0, 0.1, 0.2 + split / 10, 1),
                values=curve,
            )
            rows += trial(
                **place,
                solver="cutting-plane",
                times=(0, 1, 20, 50 + split),
                values=curve - 0.05,
                stopped="limit",
            )
            rows += trial(
                **place,
                solver="mine_v2",
                times=(0, 2.0),
                values=(0.0, best + shift),
                timing="parallel" if dataset == "ppi" else "sequential",
            )
            if split == 0:
                rows += trial(
                    **place, solver="linear-svm", times=(0, 4), values=(0.1, 0.9)
                )
            else:
                rows += trial(
                    **place,
                    solver="linear-svm",
                    status="timeout",
                    reason="longer\nthan 600 s",
                )
    return pd.DataFrame(rows)


def sweep_results():
    """Return results at three points of a sweep; mine_v2 crashes at the last one."""
    rows = []
    for k, split, (i, solver) in itertools.product(
        PREC_AT, range(3), enumerate(LABELS[:3])
    ):
        place = {
            "dataset": "letter",
            "solver": solver,
            "split": split,
            "sweep": f"k={k}",
            "metric": PREC_AT[k].label,
        }
        if solver == "mine_v2" and k == 1.0:
            rows += trial(**place, status="crashed", reason="out of memory")
        else:
            final = 0.9 - 0.4 * k - 0.05 * i + 0.01 * split
            rows += trial(**place, times=(0, 1), values=(0.1, final))
    return pd.DataFrame(rows)


def small_roc():
    fpr = np.r_[0, np.geomspace(1e-4, 1, 40)]
    return pd.concat(
        pd.DataFrame(
            {
                "dataset": dataset,
                "title": TITLES[dataset],
                "solver": solver,
                "split": split,
                "sweep": "",
                "fpr": fpr,
                "tpr": fpr ** (0.2 + 0.1 * i + 0.02 * split),
            }
        )
        for dataset in TITLES
        for i, solver in enumerate(LABELS[:3])
        for split in range(3)
    )


def write(folder, results, experiment=ABOUT, roc_vertices=None):
    folder.mkdir(parents=True)
    results.to_csv(folder / "results.csv", index=False)
    (folder / "experiment.json").write_text(json.dumps(experiment))
    if roc_vertices is not None:
        roc_vertices.to_csv(folder / "roc.csv", index=False)
    return folder


def write_experiment(folder, results, **changes):
    (folder / "experiment.json").write_text(json.dumps(ABOUT | changes))
    results.to_csv(folder / "results.csv", index=False)


def on_letter_alone(folder, plot):
    """Drop the other data sets and figures: a figure takes a second."""
    results = small_results().query("dataset == 'letter'")
    write_experiment(folder, results, datasets=["letter"], plots=[plot])


@pytest.fixture
def small(tmp_path):
    return write(tmp_path / "small", small_results(), roc_vertices=small_roc())


@pytest.fixture
def swept(tmp_path):
    experiment = ABOUT | {
        "metrics": [PREC],
        "measures": measures(*PREC_AT.values()),
        "solvers": LABELS[:3],
        "datasets": ["letter"],
        "plots": ["accuracy-time", "accuracy-sweep"],
        "sweep": {
            "name": "k",
            "values": list(PREC_AT),
            "metrics": [[metric.label] for metric in PREC_AT.values()],
            "written": ["prec@k"],
        },
        "smoke": True,
    }
    return write(tmp_path / "swept", sweep_results(), experiment)


def figures_of(folder):
    run = read_run(folder)
    return write_figures(run, summarise(run.results, run.losses))


def tables_of(folder):
    run = read_run(folder)
    return make_tables(run, summarise(run.results, run.losses, run.test_shares))


def files_of_tables(folder):
    run = read_run(folder)
    summary = summarise(run.results, run.losses, run.test_shares)
    return write_tables(run, summary, make_tables(run, summary))


def summary_of(folder, **place):
    """Return the row of the summary at a place, such as of a solver and a metric."""
    summary = summarise(read_run(folder).results)
    for column, value in place.items():
        summary = summary[summary[column] == value]
    [row] = summary.to_dict("records")
    return row


def test_summary_by_hand(small):
    row = summary_of(small, dataset="letter", metric=PREC, solver="sgd-avg")
    finals = [0.499, 0.599, 0.699]
    assert row["mean"] == pytest.approx(0.599)
    assert row["std"] == pytest.approx(0.1)
    assert row["std"] == pytest.approx(np.std(finals, ddof=1))
    assert row["q25"] == pytest.approx(0.549)
    assert row["median"] == pytest.approx(0.599)
    assert row["q75"] == pytest.approx(0.649)
    assert row["seconds"] == 1
    # 0.2, 0.3, 0.4: the third checkpoints
    assert row["seconds_to_99"] == pytest.approx(0.3)
    assert row["relative_time"] == 1
    assert row["trials"] == 3
    assert row["n"] == 3
    assert row["failed"] == 0
    assert row["stopped"] == 0
    assert row["outcomes"] == "3 ok"


def test_summary_of_failed_trials(small):
    row = summary_of(small, dataset="letter", metric="auc", solver="linear-svm")
    assert row["outcomes"] == "1 ok, 2 timeout: longer than 600 s"
    assert row["n"] == 1
    assert row["failed"] == 2
    assert row["mean"] == 0.9
    assert row["seconds"] == 4
    assert np.isnan(row["std"])


def test_summary_of_stopped_trials(small):
    row = summary_of(small, dataset="letter", metric="auc", solver="cutting-plane")
    assert row["stopped"] == 3
    assert row["n"] == 3
    assert row["seconds"] == 51
    assert row["relative_time"] == 51


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param({"sgd-avg": 0.0, "cutting-plane": 3.0}, id="one of two"),
        pytest.param({"sgd-avg": 0.0, "cutting-plane": 0.0}, id="both"),
        pytest.param(
            {"sgd-avg": 0.0, "cutting-plane": 0.0, "linear-svm": 5.0}, id="two of three"
        ),
        pytest.param({"sgd-avg": 1e-300, "cutting-plane": 1.0}, id="hardly any"),
        pytest.param({"sgd-avg": 5e-324, "cutting-plane": 3600.0}, id="the least"),
    ],
)
@pytest.mark.parametrize("timing", ["sequential", "parallel"])
def test_a_method_may_take_no_time(tmp_path, seconds, timing):
    """As where no feature varies; the other data set has its tables, too."""
    rows = small_results().query("dataset == 'letter'").to_dict("records")
    for (solver, time), split, metric in itertools.product(
        seconds.items(), range(3), (PREC, "auc")
    ):
        rows += trial("ppi", solver, split, (time,), (0.5,), metric, timing=timing)
    write(tmp_path / "instant", pd.DataFrame(rows))
    run = read_run(tmp_path / "instant")
    summary = summarise(run.results)
    times = summary.loc[summary["dataset"] == "ppi", "relative_time"]
    assert len(times) == 2 * len(seconds)
    assert not np.isinf(times).any()
    if min(seconds.values()) == 0:
        assert times.isna().all()
    titles = " ".join(table.title for table in make_tables(run, summary))
    for title in TITLES.values():
        assert title in titles


@pytest.mark.promise("R20")
def test_parallel_times_are_not_compared_with_sequential_ones(small):
    row = summary_of(small, dataset="ppi", metric=PREC, solver="mine_v2")
    assert row["timing"] == "parallel"
    assert row["seconds"] == 2
    assert np.isnan(row["relative_time"])
    all_parallel = read_run(small).results.assign(timing="parallel")
    assert summarise(all_parallel)["relative_time"].notna().all()


def summary_of_machines(machines):
    """Summarise trials of two splits; `machines` has one for each split, by solver."""
    rows = []
    for solver, names in machines.items():
        for split, machine in enumerate(names):
            times = (0, 2 + split)
            rows += trial("letter", solver, split, times, (0, 1), machine=machine)
    return summarise(pd.DataFrame(rows))


@pytest.mark.promise("R20")
def test_times_of_one_machine_are_compared_without_a_note():
    summary = summary_of_machines(
        {"x": ["2 cores", "2 cores"], "y": ["2 cores", "2 cores"]}
    )
    assert (summary["machines"] == "2 cores").all()
    assert notes(summary) == []


@pytest.mark.promise("R20")
def test_times_of_a_machine_for_each_split_are_compared_and_reported():
    summary = summary_of_machines(
        {"x": ["2 cores", "3 cores"], "y": ["2 cores", "3 cores"]}
    )
    assert summary["relative_time"].notna().all()
    assert notes(summary) == [
        "Timed on different machines, each split on one: 2 cores; 3 cores."
    ]
    assert notes(summary, times=False) == []


@pytest.mark.promise("R20")
def test_times_of_a_machine_for_each_method_are_not_compared():
    summary = summary_of_machines(
        {"x": ["x cores", "x cores"], "y": ["y cores", "y cores"]}
    )
    assert summary["relative_time"].isna().all()
    assert notes(summary) == [
        "Timed on different machines, so not comparable: x cores; y cores."
    ]


def test_time_to_99_percent_of_a_loss_uses_its_minimum():
    rows = trial(
        "letter", "x", 0, (0, 1, 2, 3), (9, 2.01, 2.0, 5), metric="pnorm_risk(p=4)"
    )
    [row] = summarise(pd.DataFrame(rows), {"pnorm_risk(p=4)"}).to_dict("records")
    assert row["seconds_to_99"] == 1


def test_time_to_99_percent_of_a_gain_uses_its_maximum():
    rows = trial("letter", "x", 0, (0, 1, 2), (0.1, 0.5 * 0.989, 0.5), metric="auc")
    [row] = summarise(pd.DataFrame(rows)).to_dict("records")
    assert row["seconds_to_99"] == 2


CHOSEN = {  # on three splits
    "sgd-avg": ["eta0=100", "eta0=100", "eta0=1"],
    "mine_v2": ["eta0=1e-09 C=10", "eta0=100 C=10", "eta0=1e-09 C=10"],
    "linear-svm": ["eta0=1", "eta0=100", "eta0=1e-09"],
}
ETA0 = [100.0, 1.0, 1e-9]


@pytest.mark.parametrize(
    ("grids", "edge_notes"),
    [
        pytest.param(
            {
                "sgd-avg": {"eta0": ETA0},
                "mine_v2": {"eta0": ETA0, "C": [1, 10], "on": [None, True, 1]},
                "linear-svm": {"eta0": ETA0},
            },
            [
                "At the edge of the grid, beyond which the best may lie: sgd-avg"
                " (eta0=100 in 2 of 3); mine_v2 (eta0=1e-09 in 2 of 3)."
            ],
            id="grids",
        ),
        pytest.param({}, [], id="no grids"),
    ],
)
def test_the_edge_of_a_grid_is_reported(tmp_path, grids, edge_notes):
    rows = []
    for solver, split, metric in itertools.product(CHOSEN, range(3), (PREC, "auc")):
        chosen = CHOSEN[solver][split]
        rows += trial(
            "letter", solver, split, (0, 1), (0, 0.5), metric=metric, chosen=chosen
        )
    experiment = ABOUT | {
        "solvers": list(CHOSEN),
        "grids": grids,
        "datasets": ["letter"],
    }
    [table] = tables_of(write(tmp_path / "tuned", pd.DataFrame(rows), experiment))
    assert [note for note in table.notes if "edge" in note] == edge_notes


def test_a_failed_metric_leaves_the_other_metrics():
    rows = trial("letter", "x", 0, (0, 1), (0.1, 0.5), metric="auc")
    rows += trial("letter", "x", 0, status="failed", reason="not measured: k > n+")
    results = pd.DataFrame(rows).fillna({"final": False}).astype({"final": bool})
    summary = summarise(results)
    assert summary.set_index("metric")["n"].to_dict() == {"auc": 1, PREC: 0}
    assert notes(summary) == ["Without a result: x (1 failed: not measured: k > n+)."]


def test_table_of_a_dataset(small):
    letter, _ppi = tables_of(small)
    assert letter.header == [
        "solver",
        "prec@0.25",
        "AUC",
        "time to final (s)",
        "relative time",
        "time to 99 % (s)",
    ]
    texts = [[cell.text for cell in row] for row in letter.rows]
    assert texts == [
        ["sgd-avg", "0.5990 ± 0.1000", "0.8490 ± 0.1000", "1.00", "1.00", "0.300"],
        [
            "cutting-plane ‡",
            "0.5490 ± 0.1000",
            "0.7990 ± 0.1000",
            "51.0",
            "51.0",
            "20.0",
        ],
        ["mine_v2", "0.6000 ± 0.1000", "0.8500 ± 0.1000", "2.00", "2.00", "2.00"],
        ["linear-svm", "0.9000 (1 of 3)", "0.9000 (1 of 3)", "4.00", "4.00", "4.00"],
    ]
    bold = [[cell.text for cell in row if cell.bold] for row in letter.rows]
    # Not linear-svm, whose means leave out two splits.
    assert bold == [[], [], ["0.6000 ± 0.1000", "0.8500 ± 0.1000"], []]
    assert letter.warning == ""
    assert letter.notes[:2] == [
        (
            "70/30 random split, 3 splits, not stratified; standardised on the training"
            " set."
        ),
        "Mean ± standard deviation over 3 splits, best mean in bold.",
    ]
    assert letter.notes[-2:] == [
        (
            "‡ Training or tuning stopped by a limit; the last iterate counts:"
            " cutting-plane (3 of 3)."
        ),
        "Without a result: linear-svm (1 ok, 2 timeout: longer than 600 s).",
    ]


def test_table_of_a_stand_in_that_was_timed_beside_other_trials(small):
    _letter, ppi = tables_of(small)
    assert ppi.warning
    times = dict(zip(ppi.header, ppi.rows[2], strict=True))
    assert times["solver"].text == "mine_v2"
    assert times["time to final (s)"].text == "2.00 †"
    assert times["relative time"].text == "–"
    assert ppi.notes[-1].startswith("† Timed beside other trials")


BEST_VALUES = np.array([0.5, 0.6, 0.7, 0.8, 0.9])  # of five splits
# How much less than the best a method has on each split: nothing; a little on average
# (the p value is large); always; little, but not on the first split; p = 0.045; p =
# 0.054.
LESS = {
    "sgd-avg": [0.0, 0.0, 0.0, 0.0, 0.0],
    "mine_v2": [0.03, -0.02, 0.04, -0.01, 0.01],
    "cutting-plane": [0.03, 0.02, 0.04, 0.03, 0.03],
    "linear-svm": 0.01 * BEST_VALUES,
    "psg": [0.03, 0.01, 0.04, 0.02, 0.03],
    "oam": [0.04, 0.01, 0.04, 0.02, 0.03],
}
RISK = Metric("pnorm_risk", {"p": 4})


def write_five_splits(folder, test_share):
    """Write results by a precision and a risk, of which less is better."""
    rows = []
    for solver, less_by_split in LESS.items():
        for split, (best, less) in enumerate(
            zip(BEST_VALUES, less_by_split, strict=True)
        ):
            if solver == "linear-svm" and split == 0:
                continue
            rows += trial("letter", solver, split, (0, 1), (0, best - less))
            rows += trial("letter", solver, split, (0, 1), (9, less), RISK.label)
    experiment = ABOUT | {
        "metrics": [PREC, RISK.label],
        "measures": measures(PREC_AT[0.25], RISK),
        "solvers": list(LESS),
        "datasets": ["letter"],
        "data": {"letter": SIZES | {"test_share": test_share}},
    }
    return write(folder, pd.DataFrame(rows), experiment)


def test_methods_not_significantly_different_from_the_best_are_marked(tmp_path):
    folder = write_five_splits(tmp_path / "five", test_share=0.3)
    [table] = tables_of(folder)
    for column in (1, 2):
        cells = {row[0].text: row[column] for row in table.rows}
        bold = [solver for solver, cell in cells.items() if cell.bold]
        assert bold == ["sgd-avg"]
        marked = {solver for solver, cell in cells.items() if "≈" in cell.text}
        assert marked == {"mine_v2", "oam"}
    [note] = [note for note in table.notes if "≈" in note]
    assert note.startswith(
        "≈: not significantly different from the best (paired t test at 5 %,"
    )
    files_of_tables(folder)
    assert "$\\approx$" in (folder / "summary.tex").read_text()


def test_the_summary_has_the_tests_and_the_intervals(tmp_path):
    files_of_tables(write_five_splits(tmp_path / "five", test_share=0.3))
    summary = pd.read_csv(
        tmp_path / "five" / "summary.csv", index_col=["metric", "solver"]
    )
    p_best = summary["p_best"][PREC]
    test = resampled_test(LESS["mine_v2"], LESS["sgd-avg"], 0.3)
    assert p_best["mine_v2"] == pytest.approx(test.p)
    assert np.isnan(p_best["sgd-avg"])
    assert np.isnan(p_best["linear-svm"])
    row = summary.loc[PREC, "sgd-avg"]
    mean, low, high = resampled_interval(BEST_VALUES, 0.3)
    assert row["mean"] == pytest.approx(mean)
    assert row["low"] == pytest.approx(low)
    assert row["high"] == pytest.approx(high)


def test_methods_are_not_compared_where_the_same_rows_are_tested_each_time(tmp_path):
    [table] = tables_of(write_five_splits(tmp_path / "same", test_share=None))
    assert "≈" not in str(table)


def test_tables_of_a_sweep(swept):
    letter, seconds = tables_of(swept)
    assert letter.title == "Letter, smoke size: prec@k"
    assert letter.header == ["solver", "k=0.05", "k=0.25", "k=1.0"]
    assert [cell.text for cell in letter.rows[0]] == [
        "sgd-avg",
        "0.8900 ± 0.0100",
        "0.8100 ± 0.0100",
        "0.5100 ± 0.0100",
    ]
    assert [cell.bold for cell in letter.rows[0]] == [False, True, True, True]
    assert letter.rows[2][3].text == "crashed"
    assert letter.notes[-1] == (
        "Without a result: mine_v2 at k=1.0 (3 crashed: out of memory)."
    )
    assert seconds.title == "Letter, smoke size: time to final (s)"
    mine_v2 = seconds.rows[2]
    assert mine_v2[1:] == [Cell("1.00"), Cell("1.00"), Cell("–")]


def test_written_tables(small):
    paths = files_of_tables(small)
    assert [path.name for path in paths] == ["summary.csv", "summary.md", "summary.tex"]
    summary = pd.read_csv(small / "summary.csv")
    assert len(summary) == 2 * 2 * 4  # data sets, metrics, solvers
    columns = {"experiment", "dataset", "sweep", "solver", "mean", "outcomes"}
    assert columns <= set(summary)
    markdown = (small / "summary.md").read_text()
    latex = (small / "summary.tex").read_text()
    [warning] = re.findall(r"\*\*synthetic.*\*\*", markdown)
    assert warning.endswith("precbench data info ppi says how to get the real files**")
    assert "| mine\\_v2 | **0.6000 ± 0.1000** |" in markdown
    assert "mine\\_v2 & \\textbf{0.6000 $\\pm$ 0.1000} &" in latex
    assert latex.count("\\toprule") == 2
    assert latex.isascii()


@pytest.mark.promise("R13")
def test_special_characters_are_escaped(tmp_path):
    odd = "a|b & $x$ [red]<i>"
    results = small_results().query("solver == 'mine_v2'").assign(solver=odd)
    experiment = ABOUT | {"solvers": [odd, "never run"]}
    folder = write(tmp_path / "odd", results, experiment, small_roc())
    _csv, markdown, latex = files_of_tables(folder)
    assert r"| a\|b \& \$x\$ \[red\]\<i\> |" in markdown.read_text()
    assert r"a|b \& \$x\$ [red]$<$i$>$ &" in latex.read_text()
    assert "| never run | – | – | – | – | – |" in markdown.read_text()
    assert len(figures_of(folder)) == 8  # no ROC for these solvers
    assert "\na|b & $x$ [red]<i> " in on_screen(tables_of(folder)[0], 80)


def on_screen(table, width, **options):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        print_table(table, screen(width=width, **options))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 200])
def test_a_table_fits_the_screen_and_no_word_is_split(small, width):
    header = ["id", "printed", "ours, of all", "because"]
    sentence = "the paper does not say which rows were drawn, and they decide"
    claims = text_table(
        "Claims", header, [["paper/place/what-is-claimed", "0.5", "1", sentence]]
    )
    for table in (*tables_of(small), claims):
        printed = on_screen(table, width, force_terminal=True, color_system=None)
        assert max(map(len, printed.splitlines())) <= width
        cells = [cell.text for row in table.rows for cell in row]
        texts = [table.title, *table.header[1:], *cells, *table.notes]
        assert words_of(" ".join(texts)) <= words_of(printed)


def words_of(text):
    return {*re.sub("[:;]", " ", text).split()}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00012345, "0.000123"),
        (0.1, "0.100"),
        (1.234, "1.23"),
        (99.96, "100"),
        (1234.5, "1230"),
        (123456, "123000"),
    ],
)
def test_three_digits(value, text):
    assert three_digits(value) == text


def test_curves_are_step_functions_that_start_once_all_have_a_value():
    trials = pd.DataFrame(
        {
            "split": [0, 0, 0, 1, 1],
            "wall_seconds": [0, 1, 4, 2, 3],
            "value": [0.0, 0.2, 0.6, 0.4, 0.8],
        }
    )
    curve = value_against_time(trials)
    assert curve["seconds"].tolist() == [2, 3, 4]
    # (.2 .4) (.2 .8) (.6 .8)
    np.testing.assert_allclose(curve["median"], [0.3, 0.5, 0.7])
    np.testing.assert_allclose(curve["q25"], [0.25, 0.35, 0.65])
    assert curve["n_splits"].tolist() == [2, 2, 2]
    assert curve["reached"].tolist() == [2, 2, 1]


def test_a_curve_that_has_not_begun_has_no_rows():
    at_start = pd.DataFrame({"split": [0], "wall_seconds": [0], "value": [0.0]})
    assert value_against_time(at_start).empty


def test_roc_takes_the_upper_end_of_a_step():
    vertices = pd.DataFrame(
        {"split": 0, "fpr": [0, 0, 0.1, 0.1, 1], "tpr": [0, 0.5, 0.5, 0.8, 1.0]}
    )
    curve = roc(vertices, np.array([0, 0.05, 0.1, 0.55, 1]))
    np.testing.assert_allclose(curve["median"], [0.5, 0.5, 0.8, 0.9, 1])


def test_precision_against_k_reads_the_next_k():
    """Of 4 positives in the first split, of 5 in the other, k = 0.3 takes 2 rows."""
    curves = pd.DataFrame(
        {
            "split": [0, 0, 0, 1, 1, 1],
            "k": [1, 2, 8, 1, 2, 5],
            "share": [0.25, 0.5, 2, 0.2, 0.4, 1],
            "precision": [1, 0.5, 0.4, 0, 0.3, 0.2],
        }
    )
    curve = precision_against_k(curves, "share", 0.3)
    assert curve["share"].tolist() == [0.25, 0.3, 0.4, 0.5, 1]
    np.testing.assert_allclose(curve["median"], [0.65, 0.4, 0.4, 0.35, 0.3])
    assert precision_against_k(curves[:0], "k").empty


@pytest.mark.filterwarnings("error")
def test_value_against_sweep():
    """Also of values that have overflowed, without a warning."""
    finals = pd.DataFrame(
        {
            "k": [1, 1, 2, 2, 3, 3, 3],
            "value": [0.1, 0.3, 0.5, np.nan, 0.1, np.inf, np.inf],
        }
    )
    points = value_against_sweep(finals, "k")
    assert points["k"].tolist() == [1, 2, 3]
    assert points["n_splits"].tolist() == [2, 1, 3]
    np.testing.assert_allclose(points["median"][:2], [0.2, 0.5])


def labels_of_drawn_experiments():
    configs = map(shipped_config, shipped_configs(Experiment))
    return {config.name: list(config.solvers) for config in configs if config.plots}


ODD_LABELS = ["spam, large", "linear-svm", "mine", "psg", "sgd-avg", "sgd-avg, mean w"]
LABELS_OF = {"the registry": SOLVERS.built_in, "odd labels": ODD_LABELS}
LABELS_OF |= labels_of_drawn_experiments()


@pytest.mark.parametrize("labels", LABELS_OF.values(), ids=LABELS_OF)
def test_no_two_solvers_have_one_colour(labels):
    styles = solver_styles(labels, SOLVERS.built_in)
    colours = {style.color for style in styles.values()}
    assert len(colours) == len(labels)


@pytest.mark.parametrize("labels", LABELS_OF.values(), ids=LABELS_OF)
def test_the_style_of_a_built_in_solver_is_its_own_everywhere(labels):
    built_in_styles = solver_styles(SOLVERS.built_in, SOLVERS.built_in)
    styles = solver_styles(labels, SOLVERS.built_in)
    for label in labels:
        if label in built_in_styles:
            assert styles[label] == built_in_styles[label]
        else:
            assert styles[label] not in built_in_styles.values()


def test_figures_and_their_numbers(small):
    names = [path.name for path in figures_of(small)]
    assert names == [
        f"{kind}-{dataset}.{suffix}"
        for kind in ABOUT["plots"]
        for dataset in TITLES
        for suffix in SUFFIXES
    ]
    numbers = pd.read_csv(small / "figures" / "accuracy-time-letter.csv")
    assert numbers["solver"].unique().tolist() == LABELS
    assert "stand_in" not in numbers
    sgd = numbers[numbers["solver"] == "sgd-avg"]
    np.testing.assert_allclose(sgd["seconds"], [0.1, 0.2, 0.3, 0.4, 1])
    np.testing.assert_allclose(sgd["median"], [0.5, 0.5, 0.6, 0.6, 0.599])
    numbers_of_stand_in = pd.read_csv(small / "figures" / "accuracy-time-ppi.csv")
    assert numbers_of_stand_in["stand_in"].all()


def test_a_figure_of_times(small, laid_out):
    """On CPU seconds unless all trials ran alone; its CSV is what is drawn."""
    results = small_results()
    results = results.assign(cpu_seconds=2 * results["wall_seconds"])
    write_experiment(small, results, plots=["accuracy-time"])
    figures_of(small)
    exact = {"seconds": float}
    alone = pd.read_csv(small / "figures/accuracy-time-letter.csv", converters=exact)
    beside = pd.read_csv(small / "figures/accuracy-time-ppi.csv", converters=exact)
    assert alone["seconds"].tolist() == (beside["seconds"] / 2).tolist()
    axes_alone = laid_out["accuracy-time-letter"].subfigs[1].axes[0]
    assert "wall seconds of trials that ran alone" in axes_alone.get_xlabel()
    axes_beside = laid_out["accuracy-time-ppi"].subfigs[1].axes[0]
    assert "CPU seconds" in axes_beside.get_xlabel()
    styles = solver_styles(LABELS, ABOUT["built_in_solvers"])
    for solver, rows in alone.groupby("solver"):
        points_in_file = {*zip(rows["seconds"], rows["median"], strict=True)}
        assert points_in_file <= points_of_colour(axes_alone, styles[solver].color)
    cutting_plane = alone[alone["solver"] == "cutting-plane"]
    assert cutting_plane["reached"].tolist()[-3:] == [3, 2, 1]


def points_of_colour(axes, colour):
    lines = [line for line in axes.lines if line.get_color() == colour]
    return {tuple(point) for line in lines for point in line.get_xydata()}


FORTY = [f"perceptron-avg, {i} random features" for i in range(40)]


def write_forty_solvers(folder, plots):
    """Write results in which the last solvers are the best, under long titles."""
    rows = []
    for i, solver in enumerate(FORTY):
        values = (0.1, 0.3 + i / 100, 0.5 + i / 100)
        rows += trial("letter", solver, 0, (0, 1 + i, 50), values)
    experiment = ABOUT | {
        "title": "A title of many words, " * 8,
        "protocol": "as its protocol, " * 20,
        "solvers": FORTY,
        "datasets": ["letter"],
        "data": {"letter": SIZES},
        "metrics": [PREC],
        "plots": plots,
        "smoke": True,
    }
    write(folder, pd.DataFrame(rows), experiment)
    x = np.tile([0.01, 0.1, 0.5, 1], len(FORTY))
    curves = pd.DataFrame({"solver": np.repeat(FORTY, 4)}).assign(
        dataset="letter", title="Letter", split=0, sweep="", part="test"
    )
    roc_curves = curves.assign(fpr=x, tpr=x**0.5)
    roc_curves.to_csv(folder / "roc.csv")
    counts = curves.assign(false_positives=75 * x, true_positives=15 * x**0.5)
    both_parts = pd.concat([counts, counts.assign(part="training")])
    both_parts.to_csv(folder / "roc-counts.csv")
    precisions = curves.assign(k=15 * x, share=x, precision=1 - x / 2)
    precisions.to_csv(folder / "precision-k.csv")


def test_figures_of_many_curves_keep_their_texts(tmp_path, laid_out):
    """No names of curves overlap, and nothing leaves the page."""
    kinds = ["accuracy-time", "accuracy-share", "precision-k", "roc", "roc-counts"]
    write_forty_solvers(tmp_path / "many", kinds)
    figures_of(tmp_path / "many")
    assert len(laid_out) == len(kinds)
    for name, figure in laid_out.items():
        assert misplaced(figure) == [], name


def test_a_highlighted_solver_is_drawn_among_the_best_thick_and_bold(
    tmp_path, laid_out
):
    folder = tmp_path / "many"
    write_forty_solvers(folder, ["accuracy-time"])
    about = json.loads((folder / "experiment.json").read_text())
    worst = FORTY[0]
    (folder / "experiment.json").write_text(json.dumps({**about, "highlight": [worst]}))
    figures_of(folder)
    figure = laid_out["accuracy-time-letter"]
    names = [text for text in figure.findobj(Text) if text.get_gid() == "name"]
    assert {text.get_text() for text in names} == {worst, *FORTY[33:]}
    bold = [text.get_text() for text in names if text.get_fontweight() == "bold"]
    assert bold == [worst]
    lines = figure.subfigs[1].axes[0].lines
    curves = [line for line in lines if line.get_drawstyle() == "steps-post"]
    widths = sorted(line.get_linewidth() for line in curves)
    assert widths == [1.5] * (MOST_CURVES - 1) + [3.0]
    [caption] = [
        text.get_text() for text in figure.findobj(Text) if "best of" in text.get_text()
    ]
    assert f"and {worst}." in " ".join(caption.split())


def test_of_forty_solvers_the_eight_best_are_drawn_and_named(tmp_path, laid_out):
    write_forty_solvers(tmp_path / "many", ["accuracy-time"])
    figures_of(tmp_path / "many")
    figure = laid_out["accuracy-time-letter"]
    lines = figure.subfigs[1].axes[0].lines
    curves = [line for line in lines if line.get_drawstyle() == "steps-post"]
    assert len(curves) == MOST_CURVES
    assert len({line.get_color() for line in curves}) == MOST_CURVES
    texts = figure.findobj(Text)
    names = [text.get_text() for text in texts if text.get_gid() == "name"]
    assert sorted(names) == FORTY[32:]
    assert any("smoke size" in text.get_text() for text in texts)


def test_figures_without_results_are_removed(small):
    write_experiment(small, small_results(), plots=["accuracy-time"])
    figures = figures_of(small)
    of_letter, of_ppi = figures[:4], figures[4:]
    results = small_results().query("dataset == 'letter' or status != 'ok'")
    write_experiment(small, results, plots=["accuracy-time"])
    assert figures_of(small) == of_letter
    assert all(path.exists() for path in of_letter)
    assert len(of_ppi) == 4
    assert not any(path.exists() for path in of_ppi)


@pytest.fixture
def draws(small, monkeypatch):
    """Return a function that writes the report and counts the figures that it draws."""
    on_letter_alone(small, "accuracy-time")
    drawings = []
    save = sheet.save_figure

    def counted(*arguments):
        drawings.append(arguments)
        save(*arguments)

    monkeypatch.setattr(sheet, "save_figure", counted)

    def write_and_count(figures="changed"):
        drawings.clear()
        report = write_report(small, figures)
        suffixes = () if figures == "none" else SUFFIXES
        names = [f"accuracy-time-letter.{suffix}" for suffix in suffixes]
        assert [path.name for path in report.files[3:]] == names
        assert (report.page is None) == (figures == "none")
        return len(drawings)

    return write_and_count


def test_figures_are_drawn_once_unless_all_or_none_are_asked_for(draws):
    assert draws("none") == 0
    assert draws() == 1
    assert draws() == 0
    assert draws("all") == 1


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("experiment.json", "A small", "Another"), ("results.csv", "0.6", "0.61")],
)
def test_figures_are_drawn_again_if_the_results_have_changed(
    small, draws, name, old, new
):
    assert draws() == 1
    path = small / name
    path.write_text(path.read_text().replace(old, new, 1))
    assert draws() == 1


def test_figures_are_drawn_again_if_a_file_of_theirs_is_missing(small, draws):
    assert draws() == 1
    (small / "figures" / "accuracy-time-letter.png").unlink()
    assert draws() == 1


def test_figures_are_kept_if_a_file_changes_that_they_do_not_show(small, draws):
    assert draws() == 1
    (small / "asked.json").write_text("{}")
    assert draws() == 0


def test_results_without_any_finished_trial(small):
    results = small_results()
    write_experiment(small, results[results["status"] != "ok"])
    (small / "roc.csv").write_text("dataset,title,solver,split,sweep,fpr,tpr\n")
    assert figures_of(small) == []
    table = tables_of(small)[0]
    linear_svm = [cell.text for cell in table.rows[3]]
    assert linear_svm == ["linear-svm", "timeout", "timeout", "–", "–", "–"]


def test_results_without_any_trial_are_refused(small):
    write_experiment(small, small_results()[:0])
    with raises(InputError, "results.csv"):
        files_of_tables(small)


WRITE = """
import sys
from precbench.report.folder import write_report
write_report(sys.argv[1])
ours = [m for m in sys.modules if m.startswith("precbench.")]
print(*sorted(m for m in ours if "report" not in m))
"""


@pytest.mark.promise("R23")
def test_same_results_give_the_same_bytes(small, tmp_path, monkeypatch, drawn):
    """Whatever the process, the time and the user's own matplotlib settings."""
    on_letter_alone(small, "roc")
    files = [*write_report(small).files, small / PAGE]
    contents = {path: path.read_bytes() for path in files}
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\nfont.size: 20\n")
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    write_in_a_process(small)
    assert {path: path.read_bytes() for path in files} == contents


def write_in_a_process(folder):
    """Write a report, and return the modules of precbench that were imported."""
    command = [sys.executable, "-c", WRITE, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_a_report_imports_neither_solvers_nor_commands(small):
    on_letter_alone(small, "roc")
    rooms = {module.split(".")[1] for module in write_in_a_process(small)}
    assert "results" in rooms
    not_needed = {"advice", "cli", "data", "experiment", "runner", "score", "solvers"}
    assert rooms.isdisjoint(not_needed)


def test_a_pdf_holds_its_fonts(small, drawn):
    """As journals ask for."""
    on_letter_alone(small, "roc")
    write_report(small)
    assert b"/FontFile2" in (small / "figures" / "roc-letter.pdf").read_bytes()


def test_the_last_bits_of_a_layout_are_not_drawn(tmp_path, monkeypatch, drawn):
    """Equal layouts differ by them.

    Where variables lie in memory decides what is added first.
    """
    lay_out = ConstrainedLayoutEngine.execute

    def lay_out_otherwise(engine, figure):
        lay_out(engine, figure)
        for axes in figure.axes:
            axes.set_position(Bbox(axes.get_position().get_points() * (1 + 2**-51)))

    def draw():
        figure = Figure(layout="constrained")
        top, _bottom = figure.subfigures(2, 1)
        for axes in top.subplots(1, 2):
            axes.plot([0, 3], [1, 7])
        return figure

    def drawing():
        paths = [tmp_path / "a.svg", tmp_path / "a.pdf"]
        save_figure(draw, *paths)
        return [path.read_bytes() for path in paths]

    as_laid_out = drawing()
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lay_out_otherwise)
    assert drawing() == as_laid_out


@pytest.mark.parametrize("name", ["roc.csv", "experiment.json"])
def test_a_missing_file_is_reported(small, name):
    (small / name).unlink()
    with raises(InputError, name):
        figures_of(small)


@pytest.mark.parametrize(
    ("name", "content", "places"),
    [
        pytest.param("results.csv", "", "results.csv", id="no results"),
        pytest.param(
            "experiment.json", "{}", "experiment.json name title", id="no fields"
        ),
        pytest.param("experiment.json", "{", "experiment.json", id="half a file"),
    ],
)
def test_a_malformed_file_is_reported(small, name, content, places):
    (small / name).write_text(content)
    with raises(InputError, places):
        figures_of(small)


def test_a_missing_column_is_reported(small):
    path = small / "results.csv"
    path.write_text(path.read_text().replace("wall_seconds", "seconds", 1))
    with raises(InputError, "results.csv wall_seconds"):
        figures_of(small)


def test_a_cell_shows_the_mean_and_not_the_median():
    row = {"n": 3, "trials": 3, "mean": 0.5, "median": 0.9, "std": 0.1, "stopped": 0}
    assert _mean(pd.Series(row)) == "0.5000 ± 0.1000"

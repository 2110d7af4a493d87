"""Tables and figures.

Numbers checked by hand on a small results folder, files by their bytes.
"""

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
from precbench.report.table import text_table
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
KINDS = ("csv", "pdf", "png", "svg")
SIZES = {"rows": 100, "features": 2, "positives": 50, "stand_in": False}
SIZES |= {"training_rows": 0, "test_share": 0.3}
TITLES = {"letter": "Letter", "ppi": "PPI (stand-in, synthetic)"}


def trial(dataset, solver, split, times=(), values=(), metric=PREC, sweep="", **other):
    """Return the rows of a trial; without times, of one that has no result."""
    about = {
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
    rows = [
        {
            **about,
            "checkpoint": i,
            "rows_seen": 100 * i,
            "cpu_seconds": time,
            "wall_seconds": time,
            "value": value,
            "final": i == len(times) - 1,
        }
        for i, (time, value) in enumerate(zip(times, values, strict=True))
    ]
    return rows or [about]


def small_results():
    rows = []
    bests = enumerate((0.5, 0.6, 0.7))
    for dataset, metric, (split, best) in itertools.product(
        TITLES, (PREC, "auc"), bests
    ):
        shift = 0.25 * (metric == "auc")
        curve = np.array([0.1, best - 0.1, best, best - 0.001]) + shift
        of = {"dataset": dataset, "split": split, "metric": metric}
        quick = {"times": (0, 0.1, 0.2 + split / 10, 1), "values": curve}
        slow = {"times": np.array([0, 1, 20, 50 + split]), "values": curve - 0.05}
        late = {"status": "timeout", "reason": "longer\nthan 600 s"}
        once = {"times": (0, 4), "values": (0.1, 0.9)}
        short = {"times": (0, 2.0), "values": (0.0, best + shift)}
        timing = "parallel" if dataset == "ppi" else "sequential"
        rows += trial(**of, **quick, solver="sgd-avg")
        rows += trial(**of, **slow, solver="cutting-plane", stopped="limit")
        rows += trial(**of, **short, solver="mine_v2", timing=timing)
        rows += trial(**of, **(late if split else once), solver="linear-svm")
    return pd.DataFrame(rows)


def sweep_results():
    rows = []
    for k, split, (i, solver) in itertools.product(
        PREC_AT, range(3), enumerate(LABELS[:3])
    ):
        of = {
            "solver": solver,
            "split": split,
            "sweep": f"k={k}",
            "metric": PREC_AT[k].label,
        }
        values = {
            "times": (0, 1),
            "values": (0.1, 0.9 - 0.4 * k - 0.05 * i + 0.01 * split),
        }
        crashed = {"status": "crashed", "reason": "out of memory"}
        rows += trial(
            "letter", **of, **(crashed if (solver, k) == ("mine_v2", 1.0) else values)
        )
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


def write(folder, results, about=ABOUT, roc_vertices=None):
    folder.mkdir(parents=True)
    results.to_csv(folder / "results.csv", index=False)
    (folder / "experiment.json").write_text(json.dumps(about))
    if roc_vertices is not None:
        roc_vertices.to_csv(folder / "roc.csv", index=False)
    return folder


def write_about(folder, results, **changes):
    (folder / "experiment.json").write_text(json.dumps(ABOUT | changes))
    results.to_csv(folder / "results.csv", index=False)


def on_letter_alone(folder, plot):
    """Drop the other data sets and figures: a figure takes a second."""
    results = small_results().query("dataset == 'letter'")
    write_about(folder, results, datasets=["letter"], plots=[plot])


@pytest.fixture
def small(tmp_path):
    return write(tmp_path / "small", small_results(), roc_vertices=small_roc())


@pytest.fixture
def swept(tmp_path):
    about = ABOUT | {
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
    return write(tmp_path / "swept", sweep_results(), about)


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


def summary_of(folder, **key):
    summary = summarise(read_run(folder).results)
    for column, value in key.items():
        summary = summary[summary[column] == value]
    [(_, row)] = summary.iterrows()
    return row


def test_summary_by_hand(small):
    row = summary_of(small, dataset="letter", metric=PREC, solver="sgd-avg")
    finals = [0.499, 0.599, 0.699]
    assert row["mean"] == pytest.approx(0.599)
    assert row["std"] == pytest.approx(np.std(finals, ddof=1)) == pytest.approx(0.1)
    assert (row["q25"], row["median"], row["q75"]) == pytest.approx(
        (0.549, 0.599, 0.649)
    )
    assert row["seconds"] == 1
    # 0.2, 0.3, 0.4: the third checkpoints
    assert row["seconds_to_99"] == pytest.approx(0.3)
    assert row["relative_time"] == 1
    assert (row["trials"], row["n"], row["failed"], row["stopped"]) == (3, 3, 0, 0)
    assert row["outcomes"] == "3 ok"


def test_summary_of_failed_and_stopped_trials(small):
    row = summary_of(small, dataset="letter", metric="auc", solver="linear-svm")
    assert row["outcomes"] == "1 ok, 2 timeout: longer than 600 s"
    assert (row["n"], row["failed"], row["mean"], row["seconds"]) == (1, 2, 0.9, 4)
    assert np.isnan(row["std"])
    row = summary_of(small, dataset="letter", metric="auc", solver="cutting-plane")
    assert (row["stopped"], row["n"], row["seconds"], row["relative_time"]) == (
        3,
        3,
        51,
        51,
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "seconds",
    [
        {"sgd-avg": 0.0, "cutting-plane": 3.0},
        {"sgd-avg": 0.0, "cutting-plane": 0.0},
        {"sgd-avg": 0.0, "cutting-plane": 0.0, "linear-svm": 5.0},
        {"sgd-avg": 1e-300, "cutting-plane": 1.0},
        {"sgd-avg": 5e-324, "cutting-plane": 3600.0},
    ],
)
@pytest.mark.parametrize("timing", ["sequential", "parallel"])
def test_a_method_may_take_no_time(tmp_path, seconds, timing):
    """As where no feature varies; the other data set has its tables, too."""
    rows = small_results()
    rows = rows[rows["dataset"] == "letter"].to_dict("records")
    for (solver, time), split, metric in itertools.product(
        seconds.items(), range(3), (PREC, "auc")
    ):
        rows += trial("ppi", solver, split, (time,), (0.5,), metric, timing=timing)
    write(tmp_path / "instant", pd.DataFrame(rows))
    run = read_run(tmp_path / "instant")
    summary = summarise(run.results)
    times = summary.loc[summary["dataset"] == "ppi", "relative_time"]
    assert len(times) == 2 * len(seconds) and not np.isinf(times).any()
    if min(seconds.values()) == 0:
        assert times.isna().all()
    tables = make_tables(run, summary)
    assert {
        title for table in tables for title in TITLES.values() if title in table.title
    } == {*TITLES.values()}


@pytest.mark.promise("R20")
def test_parallel_times_are_not_compared_with_sequential_ones(small):
    row = summary_of(small, dataset="ppi", metric=PREC, solver="mine_v2")
    assert (row["timing"], row["seconds"]) == ("parallel", 2) and np.isnan(
        row["relative_time"]
    )
    results = read_run(small).results.assign(timing="parallel")
    assert summarise(results)["relative_time"].notna().all()


@pytest.mark.promise("R20")
def test_times_of_several_machines_are_reported_and_compared_within_a_split_only():
    def summary(machine):
        rows = [
            row
            for solver in ("x", "y")
            for i in range(2)
            for row in trial(
                "letter", solver, i, (0, 2 + i), (0, 1), machine=machine(solver, i)
            )
        ]
        return summarise(pd.DataFrame(rows))

    one = summary(lambda *_: "2 cores")
    assert (one["machines"] == "2 cores").all() and not notes(one)
    by_split = summary(lambda _, i: f"{i + 2} cores")
    assert by_split["relative_time"].notna().all()
    told = "Timed on different machines, each split on one: 2 cores; 3 cores."
    assert notes(by_split) == [told] and not notes(by_split, times=False)
    by_solver = summary(lambda solver, _: f"{solver} cores")
    assert by_solver["relative_time"].isna().all()
    told = "Timed on different machines, so not comparable: x cores; y cores."
    assert notes(by_solver) == [told]


def test_time_to_99_percent_of_a_loss_uses_its_minimum():
    rows = trial(
        "letter", "x", 0, (0, 1, 2, 3), (9, 2.01, 2.0, 5), metric="pnorm_risk(p=4)"
    )
    [(_, row)] = summarise(pd.DataFrame(rows), {"pnorm_risk(p=4)"}).iterrows()
    assert row["seconds_to_99"] == 1
    rows = trial("letter", "x", 0, (0, 1, 2), (0.1, 0.5 * 0.989, 0.5), metric="auc")
    [(_, row)] = summarise(pd.DataFrame(rows)).iterrows()
    assert row["seconds_to_99"] == 2


def test_the_edge_of_a_grid_is_reported(tmp_path):
    chosen = {
        "sgd-avg": ["eta0=100", "eta0=100", "eta0=1"],
        "mine_v2": ["eta0=1e-09 C=10", "eta0=100 C=10", "eta0=1e-09 C=10"],
        "linear-svm": ["eta0=1", "eta0=100", "eta0=1e-09"],
    }
    rows = []
    for solver, split, metric in itertools.product(chosen, range(3), (PREC, "auc")):
        of = {"times": (0, 1), "values": (0, 0.5), "chosen": chosen[solver][split]}
        rows += trial("letter", solver, split, **of, metric=metric)
    grid = {"eta0": [100.0, 1.0, 1e-9]}
    grids = dict.fromkeys(chosen, grid) | {
        "mine_v2": grid | {"C": [1, 10], "on": [None, True, 1]}
    }
    told = [
        "At the edge of the grid, beyond which the best may lie: sgd-avg (eta0=100 in 2"
        " of 3); mine_v2 (eta0=1e-09 in 2 of 3)."
    ]
    for name, of, wanted in (("a", grids, told), ("b", {}, [])):
        about = ABOUT | {"solvers": list(chosen), "grids": of, "datasets": ["letter"]}
        [table] = tables_of(write(tmp_path / name, pd.DataFrame(rows), about))
        assert [note for note in table.notes if "edge" in note] == wanted


def test_a_failed_metric_leaves_the_other_metrics():
    rows = trial("letter", "x", 0, (0, 1), (0.1, 0.5), metric="auc")
    rows += trial("letter", "x", 0, status="failed", reason="not measured: k > n+")
    summary = summarise(
        pd.DataFrame(rows).fillna({"final": False}).astype({"final": bool})
    )
    assert summary.set_index("metric")["n"].to_dict() == {"auc": 1, PREC: 0}
    assert notes(summary) == ["Without a result: x (1 failed: not measured: k > n+)."]


def test_table_of_a_dataset(small):
    letter, ppi = tables_of(small)
    assert letter.header[:3] == ["solver", "prec@0.25", "AUC"]
    assert letter.header[3:] == [
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
    bold = [
        (i, j)
        for i, row in enumerate(letter.rows)
        for j, cell in enumerate(row)
        if cell.bold
    ]
    assert bold == [(2, 1), (2, 2)]  # not the one whose mean leaves out two splits
    assert ppi.warning and not letter.warning and ppi.rows[2][3].text == "2.00 †"
    assert ppi.rows[2][4].text == "–"
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
    assert ppi.notes[-1].startswith("† Timed beside other trials")


def test_methods_not_significantly_different_from_the_best_are_marked(tmp_path):
    """Five splits: a little worse on average, always worse; fewer splits.

    P = 0.045 and 0.054.
    """
    best = np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    below = {"sgd-avg": 0 * best, "mine_v2": [0.03, -0.02, 0.04, -0.01, 0.01]}
    below |= {
        "cutting-plane": [0.03, 0.02, 0.04, 0.03, 0.03],
        "linear-svm": 0.01 * best,
    }
    below |= {
        "psg": [0.03, 0.01, 0.04, 0.02, 0.03],
        "oam": [0.04, 0.01, 0.04, 0.02, 0.03],
    }
    rows = []
    for (solver, less), (split, value) in itertools.product(
        below.items(), enumerate(best)
    ):
        if solver != "linear-svm" or split:
            rows += trial("letter", solver, split, (0, 1), (0, value - less[split]))
            rows += trial(
                "letter", solver, split, (0, 1), (9, less[split]), "pnorm_risk(p=4)"
            )
    risk = Metric("pnorm_risk", {"p": 4})
    about = ABOUT | {
        "metrics": [PREC, risk.label],
        "measures": measures(PREC_AT[0.25], risk),
    }
    about |= {"solvers": list(below)}
    about |= {"datasets": ["letter"], "data": {"letter": SIZES}}
    folder = write(tmp_path / "five", pd.DataFrame(rows), about)
    [table] = tables_of(folder)
    for column in (1, 2):
        cells = {row[0].text: row[column] for row in table.rows}
        assert [solver for solver, cell in cells.items() if cell.bold] == ["sgd-avg"]
        assert {solver for solver, cell in cells.items() if "≈" in cell.text} == {
            "mine_v2",
            "oam",
        }
    [note] = [note for note in table.notes if "≈" in note]
    assert note.startswith(
        "≈: not significantly different from the best (paired t test at 5 %,"
    )
    summary = pd.read_csv(files_of_tables(folder)[0], index_col=["metric", "solver"])
    p = summary["p_best"][PREC]
    differences = [0.03, -0.02, 0.04, -0.01, 0.01]
    assert p["mine_v2"] == pytest.approx(resampled_test(differences, [0] * 5, 0.3).p)
    assert np.isnan(p["sgd-avg"]) and np.isnan(p["linear-svm"])
    row = summary.loc[PREC, "sgd-avg"]
    assert tuple(row[["mean", "low", "high"]]) == pytest.approx(
        resampled_interval(best, 0.3)
    )
    assert "$\\approx$" in (folder / "summary.tex").read_text()
    # the same rows are tested each time
    about["data"]["letter"] = SIZES | {"test_share": None}
    [table] = tables_of(write(tmp_path / "same", pd.DataFrame(rows), about))
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
    assert (
        letter.notes[-1]
        == "Without a result: mine_v2 at k=1.0 (3 crashed: out of memory)."
    )
    assert seconds.title == "Letter, smoke size: time to final (s)"
    assert seconds.rows[2][1:] == [*seconds.rows[0][1:3], type(seconds.rows[0][0])("–")]


def test_written_tables(small):
    paths = files_of_tables(small)
    assert [path.name for path in paths] == ["summary.csv", "summary.md", "summary.tex"]
    summary = pd.read_csv(paths[0])
    assert len(summary) == 2 * 2 * 4
    assert {"experiment", "dataset", "sweep", "solver", "mean", "outcomes"} <= set(
        summary
    )
    markdown, latex = (path.read_text() for path in paths[1:])
    [warning] = re.findall(r"\*\*synthetic.*\*\*", markdown)
    assert warning.endswith("precbench data info ppi says how to get the real files**")
    assert "| mine\\_v2 | **0.6000 ± 0.1000** |" in markdown
    assert "mine\\_v2 & \\textbf{0.6000 $\\pm$ 0.1000} &" in latex
    assert latex.count("\\toprule") == 2 and latex.isascii()


@pytest.mark.promise("R13")
def test_special_characters_are_escaped(tmp_path):
    about = ABOUT | {"solvers": ["a|b & $x$ [red]<i>", "never run"]}
    results = small_results().replace({"mine_v2": about["solvers"][0]})
    results = results[results["solver"].isin(about["solvers"])]
    folder = write(tmp_path / "odd", results, about, small_roc())
    _, markdown, latex = files_of_tables(folder)
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
        shown = on_screen(table, width, force_terminal=True, color_system=None)
        assert max(map(len, shown.splitlines())) <= width
        texts = [
            table.title,
            *table.header[1:],
            *(cell.text for row in table.rows for cell in row),
        ]
        said, asked = (
            re.sub("[:;]", " ", text) for text in (shown, " ".join(texts + table.notes))
        )
        assert {*asked.split()} <= {*said.split()}


def test_three_digits():
    values = (0, 0.00012345, 0.1, 1.234, 99.96, 1234.5, 123456)
    texts = ["0", "0.000123", "0.100", "1.23", "100", "1230", "123000"]
    assert [three_digits(value) for value in values] == texts


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
    assert set(curve["n_splits"]) == {2} and curve["reached"].tolist() == [2, 2, 1]
    assert value_against_time(trials[:1]).empty


def test_roc_takes_the_upper_end_of_a_step():
    vertices = pd.DataFrame(
        {"split": 0, "fpr": [0, 0, 0.1, 0.1, 1], "tpr": [0, 0.5, 0.5, 0.8, 1.0]}
    )
    curve = roc(vertices, np.array([0, 0.05, 0.1, 0.55, 1]))
    np.testing.assert_allclose(curve["median"], [0.5, 0.5, 0.8, 0.9, 1])


def test_precision_against_k_reads_the_next_k():
    """The first split has 4 positives, of which k = 0.3 takes 2 rows.

    The other has 5.
    """
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
    values = [0.1, 0.3, 0.5, np.nan, 0.1, np.inf, np.inf]
    points = value_against_sweep(
        pd.DataFrame({"k": [1, 1, 2, 2, 3, 3, 3], "value": values}), "k"
    )
    assert points["k"].tolist() == [1, 2, 3] and points["n_splits"].tolist() == [
        2,
        1,
        3,
    ]
    np.testing.assert_allclose(points["median"][:2], [0.2, 0.5])


def test_no_two_solvers_have_one_colour():
    """Neither in the registry nor in an experiment that is drawn.

    A built-in one has one style.
    """
    built_in = SOLVERS.built_in
    own = solver_styles(built_in, built_in)
    drawn = [
        config
        for config in map(shipped_config, shipped_configs(Experiment))
        if config.plots
    ]
    odd = ["spam, large", "linear-svm", "mine", "psg", "sgd-avg", "sgd-avg, mean w"]
    for labels in (built_in, odd, *(list(config.solvers) for config in drawn)):
        styles = solver_styles(labels, built_in)
        assert len({style.color for style in styles.values()}) == len(labels)
        for label in labels:
            same = [name for name, style in own.items() if style == styles[label]]
            assert same == ([label] if label in own else [])


def test_figures_and_their_numbers(small):
    names = [path.name for path in figures_of(small)]
    parts = itertools.product(ABOUT["plots"], TITLES, KINDS)
    assert names == [f"{kind}-{dataset}.{suffix}" for kind, dataset, suffix in parts]
    drawn = pd.read_csv(small / "figures" / "accuracy-time-letter.csv")
    assert drawn["solver"].unique().tolist() == LABELS
    sgd = drawn[drawn["solver"] == "sgd-avg"]
    np.testing.assert_allclose(sgd["seconds"], [0.1, 0.2, 0.3, 0.4, 1])
    np.testing.assert_allclose(sgd["median"], [0.5, 0.5, 0.6, 0.6, 0.599])
    of_stand_in = pd.read_csv(small / "figures" / "accuracy-time-ppi.csv")
    assert of_stand_in["stand_in"].all() and "stand_in" not in drawn


def test_a_figure_of_times(small, laid_out):
    """On CPU seconds unless all trials ran alone; its CSV is what is drawn."""
    results = small_results().assign(
        cpu_seconds=lambda table: 2 * table["wall_seconds"]
    )
    write_about(small, results, plots=["accuracy-time"])
    figures_of(small)
    alone, beside = (
        pd.read_csv(
            small / f"figures/accuracy-time-{name}.csv", converters={"seconds": float}
        )
        for name in TITLES
    )
    assert alone["seconds"].tolist() == (beside["seconds"] / 2).tolist()
    axes = laid_out["accuracy-time-letter"].subfigs[1].axes[0]
    assert "wall seconds of trials that ran alone" in axes.get_xlabel()
    assert (
        "CPU seconds" in laid_out["accuracy-time-ppi"].subfigs[1].axes[0].get_xlabel()
    )
    styles = solver_styles(LABELS, ABOUT["built_in_solvers"])
    for solver, rows in alone.groupby("solver"):
        lines = [
            line for line in axes.lines if line.get_color() == styles[solver].color
        ]
        drawn = {(*point,) for line in lines for point in line.get_xydata()}
        assert {*zip(rows["seconds"], rows["median"], strict=True)} <= drawn
    assert alone[alone["solver"] == "cutting-plane"]["reached"].tolist()[-3:] == [
        3,
        2,
        1,
    ]


def test_figures_of_many_curves_keep_their_texts(tmp_path, laid_out):
    """Of forty solvers eight are drawn and named.

    No names overlap, and nothing leaves the page.
    """
    labels = [f"perceptron-avg, {i} random features" for i in range(40)]
    kinds = ["accuracy-time", "accuracy-share", "precision-k", "roc", "roc-counts"]
    about = ABOUT | {
        "solvers": labels,
        "datasets": ["letter"],
        "smoke": True,
        "plots": kinds,
    }
    about |= {"metrics": [PREC], "data": {"letter": SIZES}}
    about |= {
        "title": "A title of many words, " * 8,
        "protocol": "as its protocol, " * 20,
    }
    rows = []
    for i, solver in enumerate(labels):
        rows += trial(
            "letter", solver, 0, (0, 1 + i, 50), (0.1, 0.3 + i / 100, 0.5 + i / 100)
        )
    folder = write(tmp_path / "many", pd.DataFrame(rows), about)
    about_curves = {
        "dataset": "letter",
        "title": "Letter",
        "split": 0,
        "sweep": "",
        "part": "test",
    }
    x = np.tile([0.01, 0.1, 0.5, 1], len(labels))
    curves = pd.DataFrame({"solver": np.repeat(labels, 4)}).assign(**about_curves)
    curves.assign(fpr=x, tpr=x**0.5).to_csv(folder / "roc.csv")
    counts = curves.assign(false_positives=75 * x, true_positives=15 * x**0.5)
    pd.concat([counts, counts.assign(part="training")]).to_csv(
        folder / "roc-counts.csv"
    )
    curves.assign(k=15 * x, share=x, precision=1 - x / 2).to_csv(
        folder / "precision-k.csv"
    )
    figures_of(folder)
    assert len(laid_out) == len(kinds) and not any(map(misplaced, laid_out.values()))
    figure = laid_out["accuracy-time-letter"]
    lines = figure.subfigs[1].axes[0].lines
    colours = [
        line.get_color() for line in lines if line.get_drawstyle() == "steps-post"
    ]
    assert len(colours) == len(set(colours)) == MOST_CURVES
    texts = [(text.get_gid(), text.get_text()) for text in figure.findobj(Text)]
    assert sorted(text for kind, text in texts if kind == "name") == labels[32:]
    assert any("smoke size" in text for _, text in texts)


def test_figures_without_results_are_removed(small):
    write_about(small, small_results(), plots=["accuracy-time"])
    before = figures_of(small)
    results = small_results().query("dataset == 'letter' or status != 'ok'")
    write_about(small, results, plots=["accuracy-time"])
    assert figures_of(small) == before[:4]
    assert [path.exists() for path in before] == [True] * 4 + [False] * 4


def test_figures_are_drawn_again_only_if_the_results_have_changed(small, monkeypatch):
    drawn = []
    save = sheet.save_figure
    monkeypatch.setattr(
        sheet, "save_figure", lambda *args: drawn.append(args) or save(*args)
    )

    def draws(figures="changed"):
        drawn.clear()
        report = write_report(small, figures)
        suffixes = () if figures == "none" else KINDS
        names = [f"accuracy-time-letter.{suffix}" for suffix in suffixes]
        assert [path.name for path in report.files[3:]] == names
        assert (report.page is None) == (figures == "none")
        return len(drawn)

    on_letter_alone(small, "accuracy-time")
    assert [draws("none"), draws(), draws(), draws("all")] == [0, 1, 0, 1]
    for name, old, new in (
        ("experiment.json", "A small", "Another"),
        ("results.csv", "0.6", "0.61"),
    ):
        path = small / name
        path.write_text(path.read_text().replace(old, new, 1))
        assert draws() == 1
    (small / "figures" / "accuracy-time-letter.png").unlink()
    assert draws() == 1
    (small / "asked.json").write_text("{}")  # what no figure shows
    assert draws() == 0


def test_results_without_any_finished_trial(small):
    results = small_results()
    write_about(small, results[results["status"] != "ok"])
    (small / "roc.csv").write_text("dataset,title,solver,split,sweep,fpr,tpr\n")
    assert figures_of(small) == []
    table = tables_of(small)[0]
    assert [cell.text for cell in table.rows[3]] == [
        "linear-svm",
        *["timeout"] * 2,
        *"–––",
    ]
    write_about(small, results[:0])
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
    once = {path: path.read_bytes() for path in files}
    # as journals ask for
    assert b"/FontFile2" in once[small / "figures" / "roc-letter.pdf"]
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\nfont.size: 20\n")
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    command = [sys.executable, "-c", WRITE, str(small)]
    imported = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()
    assert {path: path.read_bytes() for path in once} == once
    rooms = {module.split(".")[1] for module in imported}
    assert "results" in rooms
    assert not rooms & {
        "advice",
        "cli",
        "data",
        "experiment",
        "runner",
        "score",
        "solvers",
    }


def test_the_last_bits_of_a_layout_are_not_drawn(tmp_path, monkeypatch, drawn):
    """Equal layouts differ by them.

    Where variables lie in memory decides what is added first.
    """
    lay_out = ConstrainedLayoutEngine.execute

    def bent(engine, figure):
        lay_out(engine, figure)
        for axes in figure.axes:
            axes.set_position(Bbox(axes.get_position().get_points() * (1 + 2**-51)))

    def draw():
        figure = Figure(layout="constrained")
        top, _ = figure.subfigures(2, 1)
        for axes in top.subplots(1, 2):
            axes.plot([0, 3], [1, 7])
        return figure

    contents = []
    for engine in (lay_out, bent):
        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", engine)
        paths = [tmp_path / "a.svg", tmp_path / "a.pdf"]
        save_figure(draw, *paths)
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_missing_and_malformed_input_is_reported(small):
    results = small_results().to_csv(index=False)
    for name, content, places in (
        ("roc.csv", None, "roc.csv"),
        (
            "results.csv",
            results.replace("wall_seconds", "seconds", 1),
            "results.csv wall_seconds",
        ),
        ("results.csv", "", "results.csv"),
        ("experiment.json", "{}", "experiment.json name title"),
        ("experiment.json", "{", "experiment.json"),
        ("experiment.json", None, "experiment.json"),
    ):
        path = small / name
        before = path.read_text()
        path.unlink()
        if content is not None:
            path.write_text(content)
        with raises(InputError, places):
            figures_of(small)
        path.write_text(before)


def test_a_cell_shows_the_mean_and_not_the_median():
    row = {"n": 3, "trials": 3, "mean": 0.5, "median": 0.9, "std": 0.1, "stopped": 0}
    assert _mean(pd.Series(row)) == "0.5000 ± 0.1000"

"""The command line end to end: files in, ranked rows out, every error one line."""

import io
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from scipy.stats import binomtest
from typer.testing import CliRunner

import precbench
from precbench.advice.quality import RECOMMENDED
from precbench.cli import app
from precbench.cli.own import OwnRows
from precbench.core.errors import InputError
from precbench.core.locations import shipped
from precbench.data.splits import split_rows
from precbench.experiment import load_config
from precbench.experiment.samples import read_data
from precbench.model.model import Model
from precbench.ranking.statistics import share_interval
from precbench.solvers import SOLVERS
from precbench.survey.ranking import AP, TREES, compared, in_words, standings
from precbench.tables.own_file import read_own_file
from scripts.survey import page
from tests.helpers import invoke, succeed
from tests.sentences import names, raises, refused, tells, unreadable


def commands_of(group, *path):
    """Return the commands of a group and of the groups in it, by what one types."""
    commands = {}
    for name in group.commands:
        _name, command, _rest = group.resolve_command(typer.Context(group), [name])
        if hasattr(command, "commands"):
            commands |= commands_of(command, *path, name)
        else:
            commands[" ".join([*path, name])] = command
    return commands


COMMANDS = commands_of(typer.main.get_command(app))
TABLE = {
    "label": "churned",
    "positive": "yes",
    "drop": "id",
    "groups": "patient",
    "categorical": "one-hot",
    "missing": "median",
}
TABLE_OPTIONS = {**TABLE, "solver": "sgd-avg"}


def as_options(options):
    return [part for name, value in options.items() for part in (f"--{name}", value)]


@pytest.fixture(scope="module")
def table():
    """Customers: numbers, text, gaps, groups, and names that look like numbers."""
    rng = np.random.default_rng(0)
    n = 300
    X = rng.standard_normal((n, 3)).round(3)
    churned = X @ [1, -1, 0.5] + rng.standard_normal(n) > 1
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["city"] = rng.choice(["Rome", "Oslo", "Bern"], n)
    table = table.mask(rng.random(table.shape) < 0.05)
    table["patient"] = [f"p{i // 3}" for i in range(n)]
    table["churned"] = np.where(churned, "yes", "no")
    table.insert(0, "id", [f"{i:05d}" for i in range(n)])
    return table


@pytest.fixture
def files(table, work_folder, in_this_process):
    """A folder to work in, with the customers as ``mine.csv``."""
    table.to_csv("mine.csv", index=False)
    return work_folder


def fit_table(path="mine.csv", **changes):
    options = as_options({**TABLE_OPTIONS, "splits": "1", **changes})
    return invoke("fit", path, *options, "--save", "top.npz", "--json")


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda path: path, id="file"),
        pytest.param(pd.read_csv, id="frame"),
    ],
)
def test_fit_in_python_is_the_command(files, table, read):
    table = table.assign(b=table["b"].abs().fillna(1), c=table["c"].abs().fillna(1))
    table.to_csv("mine.csv", index=False)
    common = TABLE | {"solver": "logistic-regression", "weight": "b"}
    options = common | {
        "k": "20",
        "cost": "0.5",
        "gain-column": "c",
        "list-rows": "1000",
        "param": "C=0.5",
        "seed": "3",
        "splits": "2",
        "save": "a.npz",
    }
    printed = succeed("fit", "mine.csv", *as_options(options), "--json").stdout
    arguments = common | {
        "k": 20,
        "cost": 0.5,
        "gain": "c",
        "list_rows": 1000,
        "params": {"C": 0.5},
        "random_state": 3,
        "n_splits": 2,
        "drop": ["id"],
    }
    model = precbench.fit(read("mine.csv"), **arguments)
    np.testing.assert_array_equal(model.coef, Model.load("a.npz").coef)
    facts = without_date(json.loads(json.dumps(model.about)))
    facts_of_command = without_date(json.loads(printed))
    assert facts.items() <= facts_of_command.items()


def without_date(facts):
    return {name: value for name, value in facts.items() if name != "fitted"}


def test_fit_in_python_refuses_a_list_of_rows():
    with raises(InputError, "list path frame"):
        precbench.fit([[1.0]], label="y")


def test_fit_in_python_refuses_a_seed_among_the_parameters(files):
    arguments = TABLE_OPTIONS | {"drop": ["id"], "params": {"random_state": 3}}
    with raises(InputError, "random_state argument"):
        precbench.fit("mine.csv", **arguments)


@pytest.mark.promise("R6")
@pytest.mark.parametrize("name", ["mine.csv", "./mine.csv", "link.csv"])
def test_fit_never_saves_over_its_rows(files, name):
    (files / "link.csv").symlink_to("mine.csv")
    content = (files / "mine.csv").read_bytes()
    refused(["fit", "mine.csv", *as_options(TABLE_OPTIONS), "--save", name])
    assert (files / "mine.csv").read_bytes() == content


def ranked(*arguments):
    result = succeed("score", "top.npz", *arguments)
    return pd.read_csv(
        io.StringIO(result.stdout), dtype={"id": str}, keep_default_na=False
    )


# --- help ---


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_option_with_examples_that_the_command_takes(
    name, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    command = COMMANDS[name]
    assert all(parameter.help for parameter in command.params)
    text = succeed(*name.split(), "--help").output
    assert max(map(len, text.splitlines())) <= 80
    examples = examples_of(command)
    assert any(example.startswith(name) for example in examples)
    for example in examples:
        line, _redirection, _file = example.partition(" > ")
        words = shlex.split(line)
        n_words = 2 if " ".join(words[:2]) in COMMANDS else 1
        command_of_example = COMMANDS[" ".join(words[:n_words])]
        command_of_example.make_context(name, words[n_words:]).close()


def examples_of(command):
    """Return the lines of the examples in the help of a command."""
    help_text = command.help.replace("\\\n", " ")
    _description, _heading, examples = help_text.partition("Example")
    return re.findall(r"^ +precbench (.+)$", examples, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_json_if_asked_to(name):
    """But for those that print nothing else."""
    options = [
        option for parameter in COMMANDS[name].params for option in parameter.opts
    ]
    assert ("--json" in options) == (name not in {"schema", "example"})


# --- fit and score ---


def features_by_hand(table, known):
    """Return the features, with the gaps filled in from the rows that are known.

    Beside each column stands where its gaps were.
    """
    features = []
    for name, values in table.drop(columns=["id", "patient", "churned"]).items():
        if name == "city":
            most_frequent = values.iloc[known].mode()[0]
            city = values.fillna(most_frequent)
            features += [city == known_city for known_city in ("Bern", "Oslo", "Rome")]
        else:
            features.append(values.fillna(values.iloc[known].median()))
        features.append(values.isna())
    return np.column_stack(features).astype(float)


def precision_by_hand(labels, scores):
    n_top = int(np.ceil(0.5 * sum(labels > 0)))
    top = np.argsort(-scores, kind="stable")[:n_top]
    return np.mean(labels[top] > 0)


def auc_by_hand(labels, scores):
    differences = scores[labels > 0][:, None] - scores[labels < 0]
    return np.mean(differences > 0) + np.mean(differences == 0) / 2


def test_metrics_are_right(files, table):
    """Computed again without the model, the scaling and the metrics of the package."""
    summary = json.loads(fit_table(k="0.5", splits="3").stdout)
    dataset, _groups = read_own_file("mine.csv", **{**TABLE, "drop": ["id"]})
    assert np.array_equal(features_by_hand(table, np.arange(300)), dataset.X)
    y = np.where(table["churned"] == "yes", 1, -1)
    measured = []
    for index in range(3):
        split = split_rows(dataset, "random", index, n_splits=3, seed=0)
        patients = table["patient"]
        assert set(patients[split.train]).isdisjoint(patients[split.test])
        X = features_by_hand(table, split.train)
        mean = X[split.train].mean(axis=0)
        std = X[split.train].std(axis=0)
        solver = SOLVERS["sgd-avg"](k=0.5, random_state=0)
        coef = solver.fit((X[split.train] - mean) / std, y[split.train]).coef_
        labels = y[split.test]
        scores = (X[split.test] - mean) / std @ coef
        measured.append(
            {
                "rows": len(labels),
                "positives": sum(labels > 0),
                "precision_at_k": precision_by_hand(labels, scores),
                "auc": auc_by_hand(labels, scores),
            }
        )
    of_splits = pd.DataFrame(measured)
    assert summary["rows"] == 300
    assert summary["positives"] == sum(y > 0)
    assert summary["splits"] == 3
    assert summary["held_out_rows"] == round(of_splits["rows"].mean())
    assert 80 <= of_splits["rows"].min() <= 100
    assert summary["held_out_positives"] == round(of_splits["positives"].mean())
    by_chance = np.mean(of_splits["positives"] / of_splits["rows"])
    assert summary["by_chance"] == pytest.approx(by_chance)
    share = of_splits["rows"].sum() / 900
    for metric in ("precision_at_k", "auc"):
        mean, low, high = share_interval(of_splits[metric], share)
        assert summary[metric] == pytest.approx(mean)
        assert summary[f"{metric}_interval"] == pytest.approx([low, high])


def test_the_docs_recommend_the_best_trees_without_an_extra():
    """Those that need one are not significantly better."""
    survey = page.committed()
    values = survey.values(AP, page.sound(survey, AP))
    best = min(survey.solvers_of(TREES), key=standings(values)["rank"].get)
    if best != RECOMMENDED:
        assert in_words(compared(values, best, RECOMMENDED)) != "ahead"


@pytest.mark.parametrize(
    ("arguments", "solver"),
    [
        pytest.param(["mine.csv", *as_options(TABLE)], RECOMMENDED, id="a table"),
        pytest.param(
            ["mine.csv", *as_options(TABLE), "--fourier", "8"],
            "sgd-avg",
            id="random features",
        ),
        pytest.param(["mine.svm"], "sgd-avg", id="sparse rows"),
    ],
)
def test_without_a_solver_what_the_docs_recommend_is_fitted(files, arguments, solver):
    (files / "mine.svm").write_text("1 1:1\n0 900:2\n" * 30)
    options = ["--splits", "1", "--save", "top.npz", "--json"]
    summary = json.loads(succeed("fit", *arguments, *options).stdout)
    assert summary["solver"] == solver


def test_one_split_has_the_interval_of_its_list(files):
    summary = json.loads(fit_table().stdout)
    assert summary["auc_interval"] is None
    n_top = math.ceil(summary["held_out_positives"] / 4)
    n_hits = round(summary["precision_at_k"] * n_top)
    low, high = binomtest(n_hits, n_top).proportion_ci(method="exact")
    assert summary["precision_at_k_interval"] == pytest.approx([low, high])


FIT_WEIGHTED = [
    "fit",
    "mine.csv",
    *as_options({**TABLE_OPTIONS, "solver": "logistic-regression", "splits": "1"}),
    "--save",
    "top.npz",
    "--json",
]


def test_a_weight_stands_for_that_many_rows(files, table):
    """Each row that is measured counts as one."""
    weights = np.arange(300) % 3
    table.assign(w=weights).to_csv("mine.csv", index=False)
    summary = json.loads(succeed(*FIT_WEIGHTED, "--weight", "w").stdout)
    assert summary["rows"] == 300
    assert summary["features"] == 10
    assert summary["weight"] == "w"
    assert "weighted by w" in " ".join(succeed("show", "top.npz").stdout.split())
    dataset, _groups = read_own_file("mine.csv", **{**TABLE, "drop": ["id"]})
    X = dataset.X[:, :-1]  # without the weights
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    solver = SOLVERS["logistic-regression"]()
    solver.fit(scaled.repeat(weights, axis=0), dataset.y.repeat(weights))
    np.testing.assert_allclose(Model.load("top.npz").coef, solver.coef_, atol=1e-3)


@pytest.mark.parametrize("weight", ["-1", "x"])
def test_a_weight_that_is_no_number_of_rows_is_refused(files, table, weight):
    table.assign(w=[1, 2, weight, *[1] * 297]).to_csv("mine.csv", index=False)
    refused([*FIT_WEIGHTED, "--weight", "w"], f"'w' 3 {weight}")


def test_a_missing_column_of_weights_is_refused(files):
    refused([*FIT_WEIGHTED, "--weight", "v"], "'v'")


def test_splits_without_a_positive_are_left_out(files):
    """Of rows in the order of time, whose positives have come late."""
    day = np.arange(200)
    is_late_positive = (day > 150) & (day % 20 == 3)
    is_positive = is_late_positive | (day == 7)
    table = pd.DataFrame({"x": day % 7, "day": day, "y": is_positive.astype(int)})
    table.to_csv("late.csv", index=False)
    options = ["--label", "y", "--time", "day", "--k", "2", "--save", "top.npz"]
    result = succeed("fit", "late.csv", *options, "--json")
    tells(result.stderr, "warning 2 of 5")
    summary = json.loads(result.stdout)
    assert summary["split"] == "time"
    assert summary["splits"] == 2
    assert summary["held_out_rows"] == 20
    tells(invoke("show", "top.npz").stdout, "periods 2 20")


def test_a_count_may_exceed_the_positives(files, table):
    """It is the rows that one can look at.

    Training warns once, for the fit to all rows.
    """
    n_pos = int(sum(table["churned"] == "yes"))
    assert fit_table(k=str(n_pos)).stderr == ""
    result = fit_table(k=str(n_pos + 1))
    [warning] = result.stderr.splitlines()
    names(warning, f"k {n_pos + 1} {n_pos}")
    summary = json.loads(result.stdout)
    held_out_k = np.ceil(summary["k"] * summary["held_out_rows"] / len(table))
    best_precision = min(1, summary["held_out_positives"] / held_out_k)
    assert 0 < summary["precision_at_k"] <= best_precision
    assert len(ranked("mine.csv", "--top", "1")) == 1


def test_a_share_of_the_positives(files):
    summary = json.loads(fit_table(k="1.0").stdout)
    assert isinstance(summary["k"], float)


def test_a_share_of_the_rows(files):
    summary = json.loads(fit_table(k="10%").stdout)
    hits = summary["precision_at_k"] * np.ceil(0.1 * summary["held_out_rows"])
    assert summary["k"] == "10%"
    assert hits == pytest.approx(round(hits))


def test_parameter_values(files):
    options = TABLE_OPTIONS | {"splits": "1", "save": "top.npz"}
    command = ["fit", "mine.csv", *as_options(options)]
    command += ["--param", "eta0=1e-2"]
    command += ["--param", "epochs=3"]
    command += ["--param", "shuffle=blocks"]
    command += ["--param", "average=false"]
    command += ["--param", "radius=none"]
    succeed(*command)
    params = Model.load("top.npz").params
    assert params["eta0"] == 0.01
    assert params["epochs"] == 3
    assert params["shuffle"] == "blocks"
    assert params["average"] is False
    assert params["radius"] is None
    refused([*command, "--param", "eta0=2"], "eta0 twice")


@pytest.mark.extras("pyarrow")
@pytest.mark.parametrize("n_rows", [150, 8])
@pytest.mark.parametrize("source", ["new.csv", "new.parquet"])
def test_blocks_of_a_table_rank_as_the_whole(files, table, monkeypatch, source, n_rows):
    """In full or the top; ties at block borders included."""
    fit_table()
    new = pd.concat([table.drop(columns="churned")[:50]] * 3)
    new.to_csv("new.csv", index=False)
    new.to_parquet("new.parquet", row_group_size=40)
    whole = ranked("new.csv", "--id", "id")
    monkeypatch.setattr("precbench.tables.own_file._FEWEST_ROWS", 1)
    monkeypatch.setattr("precbench.tables.own_file._MOST_ROWS", 7)
    in_blocks = ranked(source, "--id", "id", "--top", n_rows)
    pd.testing.assert_frame_equal(in_blocks, whole[:n_rows])


@pytest.mark.extras("pyarrow")
def test_a_copy_in_any_format_is_split_alike(files, table):
    table.to_parquet("copy.parquet")
    table.to_csv("copy.data", index=False)
    summary = json.loads(fit_table("mine.csv").stdout)
    assert json.loads(fit_table("copy.data", format="csv").stdout) == summary
    assert json.loads(fit_table("copy.parquet").stdout) == summary
    assert json.loads(fit_table("mine.csv", seed="1").stdout) != summary
    assert len(ranked("copy.data", "--format", "csv", "--id", "id")) == 300


def test_a_file_of_an_unknown_format_is_refused(files):
    (files / "mine.csv").rename("mine.data")
    refused(["fit", "mine.data", "--save", "top.npz"], "'.data'")


def test_a_missing_file_is_refused(files):
    refused(["fit", "none.csv", "--save", "top.npz"], "none.csv")


FIT_REFUSED = [
    pytest.param({"solver": "sgd"}, "'sgd'", id="misspelt solver"),
    pytest.param(
        {"categorical": "onehot"}, "categorical 'onehot'", id="misspelt categorical"
    ),
    pytest.param({"missing": "avg"}, "missing 'avg'", id="misspelt missing"),
    pytest.param({"missing": "error"}, "'a'", id="gaps"),
    pytest.param({"categorical": "error"}, "'city' 1", id="text"),
    pytest.param({"format": "xls"}, "'xls'", id="unknown format"),
    pytest.param({"positive": "maybe"}, "'maybe'", id="no such positive"),
    pytest.param(
        {"groups": "churned", "drop": "patient", "id": "id"},
        "classes",
        id="rows of one group have two labels",
    ),
    pytest.param({"k": "many"}, "k 'many'", id="k in words"),
    pytest.param({"k": "[1"}, "k '[1'", id="k in brackets"),
    pytest.param({"k": "1 percent"}, "k '1 percent' '1 %'", id="k in words of percent"),
    pytest.param({"k": "5000"}, "k 5000 300", id="k above the rows"),
    pytest.param({"param": "epochs"}, "5", id="parameter without a value"),
    pytest.param({"param": "ephocs=3"}, "'ephocs' 'epochs'", id="misspelt parameter"),
    pytest.param({"param": "epochs=2.5"}, "'epochs'", id="a fraction of an epoch"),
    pytest.param({"param": "epochs=[1"}, "'epochs'", id="a parameter in brackets"),
    pytest.param({"param": "batch_size=true"}, "batch_size", id="truth for a count"),
    pytest.param({"param": "k=3"}, "--k", id="k as a parameter"),
    pytest.param({"param": "random_state=3"}, "--seed", id="the seed as a parameter"),
    pytest.param({"seed": "-1"}, "--seed", id="negative seed"),
    pytest.param(
        {"save": "none/top.npz"}, "--save none/top.npz", id="a model in no folder"
    ),
    pytest.param({"save": "."}, "--save .", id="a folder for the model"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("changes", "places"), FIT_REFUSED)
def test_invalid_options_of_fit(files, changes, places):
    options = {"save": "top.npz"} | TABLE_OPTIONS | changes
    refused(["fit", "mine.csv", *as_options(options)], places)
    assert [path.name for path in files.iterdir()] == ["mine.csv"]


@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_name_in_a_workbook_may_be_a_number(work_folder, monkeypatch):
    pd.DataFrame({2024: range(60), "y": [0, 1] * 30}).to_excel(
        "years.xlsx", index=False
    )
    assert read_own_file("years.xlsx", label="y")[0].feature_names == ("2024",)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    unreadable("years.xlsx", "years.xlsx precbench[excel]", label="y")


@pytest.mark.extras("openpyxl")
@pytest.mark.parametrize("ids", ["id,note", "id, note"])
def test_ids_that_no_workbook_holds_are_refused_before_training(work_folder, ids):
    Path("rows.csv").write_text("id,note,x,y\n1,a,1,0\n2,b,2,1\n3,c\x01,3,\n")
    options = OwnRows(
        file=Path("rows.csv"), label="y", id=[ids], open_list=Path("list.xlsx")
    )
    with raises(InputError, "list.xlsx 'note'"):
        options.tables()


@pytest.mark.parametrize(
    ("columns", "others"),
    [
        pytest.param("customer", "", id="alone"),
        pytest.param("city,customer", " --categorical city", id="last"),
        pytest.param("customer, city", " --categorical city", id="first"),
        pytest.param("zip,city", " --categorical zip,city", id="not among them"),
    ],
)
def test_a_proposed_command_names_no_column_that_it_leaves_out(columns, others):
    options = OwnRows(file=Path("rows.csv"), label="y", categorical=[columns])
    command = options.line("fit", [("id", "customer")])
    assert command == f"precbench fit rows.csv --label y --id customer{others}"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("fit PATH --save top.npz", id="rows"),
        pytest.param("fit mine.csv --label churned --save PATH", id="model"),
        pytest.param("plot PATH", id="results"),
        pytest.param("run own.yaml --out PATH", id="folder of a run"),
        pytest.param("run own.yaml --dry-run", id="data set of a config"),
    ],
)
def test_a_path_may_be_too_long(own, files, cache, arguments):
    path = "x" * 256
    own(f"file: {path}, name: long" if "dry" in arguments else "file: arrays.npz")
    result = invoke(*arguments.replace("PATH", path).split())
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert path in result.stderr.splitlines()[-1]


SCORE_REFUSED = [
    pytest.param("none.npz mine.csv", "none.npz --save", id="no model"),
    pytest.param("mine.csv mine.csv", "mine.csv", id="a table for the model"),
    pytest.param("top.npz none.csv", "none.csv", id="no rows"),
    pytest.param("top.npz less.csv", "less.csv 'b'", id="a column is missing"),
    pytest.param("top.npz text.csv", "text.csv 'a' 1 'x'", id="text for numbers"),
    pytest.param("top.npz mine.csv --id name", "'name'", id="no such id"),
    pytest.param("top.npz mine.csv --top 0", "--top", id="no top"),
    pytest.param(
        "top.npz mine.csv --out out.ods", ".csv .xlsx .parquet", id="unknown format"
    ),
    pytest.param("top.npz mine.csv --out none/out.csv", "--out none", id="no folder"),
    pytest.param("top.npz mine.csv --out mine.csv", "--out mine.csv", id="the rows"),
    pytest.param(
        "top.npz mine.csv --out out.csv --json", "--json --out", id="two outputs"
    ),
    pytest.param("top.npz mine.csv --out pipe.csv", "pipe.csv", id="a pipe"),
    pytest.param(
        "top.npz text.csv --out out.csv", "'x'", id="text for numbers, to a file"
    ),
]


@pytest.mark.parametrize(("arguments", "places"), SCORE_REFUSED)
def test_invalid_options_of_score(files, table, arguments, places):
    fit_table()
    table.drop(columns="b").to_csv("less.csv", index=False)
    table.assign(a="x").to_csv("text.csv", index=False)
    os.mkfifo("pipe.csv")
    refused(["score", *arguments.split()], places)
    assert not list(files.glob("*out.csv*"))


def interrupt(preparation, *options):
    """Fit as a user does, after `preparation`, and expect the end of an interrupt."""
    Path("fitted.py").write_text(f"""
import contextlib, os, signal, sys, threading
{preparation}
sys.argv = ["precbench", "fit", "mine.csv", *{options!r}]
from precbench.__main__ import main
main()
""")
    files_before = {path.name for path in Path().iterdir()}
    command = [sys.executable, "-m", "fitted"]  # CPython ends other than as a script
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.returncode == 130
    assert process.stderr == "precbench: interrupted\n"
    files_after = {path.name for path in Path().iterdir()}
    assert files_after - {"__pycache__"} == files_before


@pytest.mark.promise("R2")
def test_an_interrupted_fit(files):
    """By SIGTERM; solvers and runs are interrupted by Ctrl-C elsewhere."""
    options = as_options(
        TABLE_OPTIONS | {"param": "epochs=100000000", "save": "top.npz"}
    )
    interrupt(
        """
from precbench.solvers.common.driver import PassMixin

fit = PassMixin._fit

def interrupted(*arguments):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
    fit(*arguments)

PassMixin._fit = interrupted
""",
        *options,
    )


@pytest.mark.promise("R2")
@pytest.mark.parametrize(
    ("module", "statement"),
    [
        pytest.param(
            "typer", 'exec("signal.raise_signal(signal.SIGINT)")', id="raised in typer"
        ),
        pytest.param(
            "numpy.random",
            "Lost(); __import__('time').sleep(1)",
            id="raised where Python ignores it",
        ),
        pytest.param("numpy.random", "drop()", id="dropped by a package"),
        pytest.param(
            "numpy.random", "replace()", id="replaced by an error of a package"
        ),
    ],
)
def test_an_interrupt_while_modules_are_imported(module, statement, work_folder):
    """Also one that Python ignores, or that a package drops or replaces by an error of
    its own.
    """
    interrupt(
        f"""
class Lost:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def drop():
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGINT)

def replace():
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        raise ValueError("of a package") from None

class Finder:
    def find_spec(name, *_):
        if name == {module!r}:
            {statement}

sys.meta_path.insert(0, Finder)
""",
        "--label",
        "y",
        "--save",
        "top.npz",
    )


# --- lists ---


@pytest.mark.parametrize("kind", ["solvers", "datasets", "metrics", "configs"])
def test_a_list_has_a_line_for_each_member(kind):
    members = json.loads(succeed("list", kind, "--json").stdout)
    lines = succeed("list", kind).stdout.splitlines()
    for member, line in zip(members, lines, strict=True):
        assert line.split()[0] == member["name"]
        assert member["about"] in line
    assert len({member["about"] for member in members}) == len(members)


def test_the_list_of_solvers_has_their_parameters():
    members = json.loads(succeed("list", "solvers", "--json").stdout)
    parameters = {member["name"]: member["parameters"] for member in members}
    assert list(parameters) == list(SOLVERS)
    assert parameters["sgd-avg"]["batch_size"] == 500


# --- data sets ---


@pytest.fixture
def cache(files, cache):
    """The files in an empty cache."""
    return cache / "files"


def test_study_takes_its_data_from_a_mirror(cache, mirror, tmp_path):
    text = (shipped("configs") / "kar2014" / "uniform-convergence.yaml").read_text()
    config = tmp_path / "c.yaml"
    config.write_text(text.replace("[margin-noisy]", "[letter]"))  # at smoke size
    arguments = ["run", config, "--smoke", "--out", tmp_path / "out"]
    refused(arguments, code=3)
    assert invoke(*arguments, "--mirror", mirror).exit_code == 0


def test_data_from_a_mirror(cache, mirror):
    arguments = ["data", "fetch", "letter", "--mirror", mirror]
    tells(succeed(*arguments).stdout, "letter 20,000 16 783")
    counts = {"name": "letter", "rows": 20000, "features": 16, "positives": 783}
    assert json.loads(succeed(*arguments, "--json").stdout) == [counts]
    tells(
        succeed("data", "verify", "letter").stdout,
        "letter-recognition.data verified 712,565",
    )
    (cache / "letter" / "letter-recognition.data").write_bytes(b"x")
    result = invoke("data", "verify", "letter", "--json")
    assert result.exit_code == 2
    [file] = json.loads(result.stdout)["letter"]
    assert file["status"] == "damaged"
    assert file["expected"] != file["sha256"]


def test_missing_data_are_reported(cache):
    assert invoke("data", "verify", "adult").exit_code == 3
    assert invoke("data", "verify").exit_code == 0
    refused(
        ["data", "fetch", "adult", "--mirror", "nowhere"],
        "nowhere/adult/a9a a9a.t",
        code=3,
    )


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        pytest.param("fetch letter leter", "'leter' 'letter'", id="misspelt name"),
        pytest.param("info x", "'x'", id="unknown name"),
        pytest.param("fetch letter --mirror ftp://x", "'ftp://x'", id="mirror by FTP"),
        pytest.param(
            "add letter mine.csv", "letter-recognition.data", id="another file"
        ),
        pytest.param("add letter none", "none", id="no file"),
        pytest.param("add margin mine.csv", "margin", id="a file of generated data"),
    ],
)
def test_invalid_arguments_of_data(cache, arguments, places):
    refused(["data", *arguments.split()], places)


def test_data_info(cache):
    assert "- paper: kar2015" in succeed("data", "info", "letter").stdout
    card = json.loads(invoke("data", "info", "letter", "--json").stdout)
    assert card["positives"] == 783
    assert card["cached"][0]["status"] == "missing"


# --- runs on files of one's own ---


@pytest.fixture
def own(files):
    """A config that names files."""
    np.savez("arrays.npz", X=np.eye(8), y=np.arange(8) % 2)
    (files / "lines.svm").write_text("1 1:1\n0 2:1\n" * 9)

    def write(entry, metrics="[auc]", protocol="{}"):
        (files / "own.yaml").write_text(f"""name: own
title: Files of one's own
datasets: [{{{entry}}}]
solvers: {{sgd-avg: }}
metrics: {metrics}
protocol: {protocol}
""")
        return "own.yaml"

    return write


def test_splits_of_a_config_do_not_depend_on_the_rows(own):
    """But on the name: results would move."""
    assert read_data(load_config(own("file: arrays.npz")).datasets[0]).split_key is None


@pytest.mark.parametrize(
    ("entry", "others", "places"),
    [
        pytest.param(
            "file: none.csv, label: y", {}, "own.yaml:3 datasets[0].file", id="no file"
        ),
        pytest.param(
            "file: mine.csv, label: id, positive: x", {}, "'x'", id="no such positive"
        ),
        pytest.param(
            "file: mine.csv, label: churned, positive: 'yes'", {}, "'city' 1", id="text"
        ),
        pytest.param(
            "file: mine.csv, labl: churned",
            {},
            "own.yaml:3 'label'",
            id="misspelt field",
        ),
        pytest.param(
            "file: lines.svm, label: y",
            {},
            "lines.svm label",
            id="svmlight has no label column",
        ),
        pytest.param(
            "file: arrays.npz, groups: patient", {}, "'patient'", id="unknown groups"
        ),
        pytest.param(
            "file: arrays.npz",
            {"protocol": "{split: provided}"},
            "provided random",
            id="a provided split",
        ),
        pytest.param(
            "file: arrays.npz",
            {"protocol": "{split: time}"},
            "time random",
            id="no column of times",
        ),
        pytest.param(
            "file: lines.svm, stream: true",
            {"metrics": "[{precision_at_k: {k: 15}}]"},
            "k 15",
            id="k of a stream",
        ),
    ],
)
def test_files_that_a_config_cannot_use(own, entry, others, places):
    refused(["run", own(entry, **others), "--out", "out"], places)


# --- reproduce ---


def test_reproduce_runs_what_decides_and_prints_the_verdicts(
    in_this_process, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ("reproduce", "kar2015/counterexample", "--out", tmp_path)
    planned = invoke(*arguments, "--dry-run")
    assert planned.exit_code == 0
    assert not list(tmp_path.iterdir())
    tells(planned.output, "counterexample claims 4")
    outcome = json.loads(succeed(*arguments, "--json").stdout)
    assert [run["cached"] for run in outcome["runs"]] == [0]
    assert [row["verdict"] for row in outcome["ledger"]] == ["reproduced"] * 4
    again = succeed("reproduce", "counterexample", "--out", tmp_path)
    tells(again.output, "claims 4 0")
    assert again.output.count("  reproduced  ") == 4
    assert "suboptimal" in again.output


def test_reproduce_says_how_to_bring_what_is_missing(cache, tmp_path):
    refused(
        ("reproduce", "kdd08", "--out", tmp_path), "kdd08 Features.txt Info.txt", code=3
    )
    paper = succeed("reproduce", "kar2015", "--dry-run", "--out", tmp_path)
    for name in ("kdd08", "ppi", "covtype", "letter"):
        tells(paper.output, f"{name} FILES")
    tells(paper.output, "kar2015/bounds study 13")
    assert "kar2015/section-6" not in paper.output


def test_reproduce_takes_the_part_that_has_claims(real_data, tmp_path):
    dry_run = ("--dry-run", "--jobs", "2", "--out", tmp_path)
    lines = succeed("reproduce", "letter", *dry_run).output.splitlines()
    sentences = dict(line.split(": ", 1) for line in lines if "claim" in line)
    # six solvers, 20 splits
    assert "120 trials" in sentences["kar2015/section-6, letter"]
    assert "one at a time" in sentences["kar2015/section-6, letter"]
    assert "one at a time" not in sentences["kar2015/kappa-extension, letter"]
    # its claims are counts of the data
    assert "1 trial to run" in sentences["letter, letter"]


# --- validate, doctor, data clean ---


def test_validate_reports_all_mistakes_of_all_configs(small, tmp_path):
    other = shutil.copy(small(), tmp_path / "other.yaml")
    result = invoke(
        "validate", small(metrics="[aucc]", protocol="{n_split: 2}"), other, "letter"
    )
    assert result.exit_code == 2
    tells(result.stderr, "protocol.n_split 'n_splits'")
    tells(result.stderr, "metrics[0].aucc 'aucc' 'auc'")
    assert result.stdout.splitlines() == [
        f"{other}: 6 trials (3 solvers, 2 splits)",
        "letter: 70 trials (14 solvers, 5 splits)",
    ]


def test_validate_reads_files_of_claims(tmp_path):
    claims = shipped("configs") / "kar2015" / "counterexample.published.yaml"
    assert re.search(r": \d\d? claims$", succeed("validate", claims).stdout.strip())
    wrong = tmp_path / "wrong.published.yaml"
    wrong.write_text(claims.read_text().replace("printed:", "prnted:", 1))
    refused(["validate", wrong], "'printed'")


def test_validate_describes_a_study():
    [report] = json.loads(succeed("validate", "kar2015/laws", "--json").stdout)
    assert report == {
        "config": "kar2015/laws",
        "says": "a study, precision-laws",
        "mistakes": [],
    }


def test_doctor_says_that_everything_works_and_names_no_folder(cache, tmp_path):
    output = succeed("doctor").stdout
    assert output.endswith("everything works\n")
    assert str(tmp_path) not in output
    assert str(Path.home()) not in output


def test_doctor_names_what_does_not_work(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PRECBENCH_MIRROR", str(tmp_path / "no"))
    monkeypatch.setitem(sys.modules, "precbench.solvers.push.kernel", None)
    result = invoke("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["wrong"] == ["kernels", "mirror"]


@pytest.mark.extras("openpyxl", "python_calamine")
def test_doctor_finds_the_packages_of_workbooks():
    state = json.loads(succeed("doctor", "--json").stdout)
    assert state["extras"]["excel"] == "installed"


def test_clean_keeps_what_cannot_be_made_again(cache):
    prepared = cache.parent / "prepared" / "toy-0" / "X.npy"
    added = cache / "kdd08" / "Info.txt"
    for path in (prepared, cache / "kdd08" / ".a.1.tmp", added):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("12345")

    def files_in_cache():
        return {path for path in cache.parent.rglob("*") if path.is_file()}

    plan = json.loads(succeed("data", "clean", "--dry-run", "--json").stdout)
    assert plan["bytes"] == 10
    assert len(files_in_cache()) == 3
    result = succeed("data", "clean")
    assert result.stdout.endswith("2 removed, 10 bytes\n")
    assert files_in_cache() == {added}
    succeed("data", "clean", "kdd08")
    assert not files_in_cache()
    refused(["data", "clean", "leter"], "'letter'")


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        pytest.param("run lett", {"letter"}, id="config"),
        pytest.param("run kar2015/se", {"kar2015/section-6"}, id="config of a paper"),
        pytest.param("run letter --skip sgd-m", {"sgd-max"}, id="solver left out"),
        pytest.param(
            "fit rows.csv --solver hist", {"hist-gradient-boosting"}, id="solver of fit"
        ),
        pytest.param("data info cod", {"cod-rna", "cod-rna-2"}, id="data set"),
    ],
)
def test_a_shell_completes_names(words, completions):
    shell = {
        "_PRECBENCH_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": f"precbench {words}",
    }
    result = CliRunner().invoke(app, [], prog_name="precbench", env=shell)
    quoted = re.findall(r'"([^"]+)"', result.output)
    assert {text.replace("\\", "") for text in quoted} == completions


def test_a_user_without_a_home_has_a_cache_here(work_folder, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    for name in ("HOME", "XDG_CACHE_HOME", "PRECBENCH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    warning = succeed("data", "info", "letter").stderr
    tells(warning, f"warning {work_folder / 'precbench-cache'} PRECBENCH_CACHE")


def test_an_example_is_written_once(work_folder):
    """A real list in two parts, and no file is replaced."""
    printed = succeed("example", "d.csv").stdout
    rows = pd.concat([pd.read_csv("d.csv"), pd.read_csv("d-new.csv")])
    assert rows.shape == (1797, 65)
    assert rows["eight"].sum() == 174
    assert "Next: precbench compare d.csv --label eight" in printed
    Path("d.csv").unlink()
    refused(["example", "d.csv"], "d-new.csv")
    assert not Path("d.csv").exists()


def two_rows_often(header, negative, positive):
    return f"{header}\n" + f"{negative}\n{positive}\n" * 40


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param(two_rows_often("a,b,y", "1,2,0", "1,2,1"), [], id="numbers"),
        pytest.param(
            two_rows_often("a,b,y", "1,red,0", "1,red,1"),
            ["--categorical", "one-hot"],
            id="text",
        ),
        pytest.param(
            two_rows_often("a,y", "2024-05-31,0", "2024-05-31,1"), [], id="dates"
        ),
        pytest.param(two_rows_often("a,y", "7,0", "7,1"), [], id="one column"),
        pytest.param(two_rows_often("a,b,y", "0,0,0", "0,0,1"), [], id="zeros"),
    ],
)
def test_a_table_in_which_no_column_varies_is_refused(work_folder, text, options):
    Path("rows.csv").write_text(text)
    arguments = ["rows.csv", "--label", "y", *options]
    refused(["fit", *arguments, "--save", "m.npz"], "rows.csv no column varies")
    refused(["compare", *arguments], "rows.csv no column varies")
    assert not Path("m.npz").exists()
    assert not Path("results").exists()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0 1:2 2:5\n1 1:2 2:5\n" * 40, id="dense"),
        pytest.param("0 9:2\n1 9:2\n" * 40, id="sparse"),
    ],
)
def test_svmlight_in_which_no_column_varies_is_refused(work_folder, text):
    Path("rows.svm").write_text(text)
    refused(["fit", "rows.svm", "--save", "m.npz"], "rows.svm no column varies")
    refused(["compare", "rows.svm"], "rows.svm no column varies")
    assert not Path("m.npz").exists()
    assert not Path("results").exists()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "a,b,y\n" + "1,2,0\n1,2,1\n" * 40 + "1,3,0\n", id="another number"
        ),
        pytest.param("a,y\n" + "1,0\n1,1\n" * 40 + ",0\n", id="a gap"),
    ],
)
def test_a_list_in_which_one_value_differs_is_accepted(work_folder, text):
    Path("rows.csv").write_text(text)
    succeed("fit", "rows.csv", *QUICK, "--missing", "median", "--save", "m.npz")


ROWS = "a,b,y\n" + "".join(
    f"{i * 7 % 11},{i * 5 % 13},{i % 3 // 2}\n" for i in range(90)
)
QUICK = ["--label", "y", "--splits", "1", "--solver", "logistic-regression"]
QUICK_CONFIG = """\
name: e
title: E
datasets: [{file: rows.csv, label: y}]
scaling: standardise
solvers: {logistic-regression: }
protocol: {n_splits: 1}
metrics: [auc]
"""


@pytest.fixture
def home(work_folder, monkeypatch):
    """A home folder with rows and a config; the work folder is another one."""
    home = work_folder / "home"
    home.mkdir()
    (home / "rows.csv").write_text(ROWS)
    (home / "e.yaml").write_text(QUICK_CONFIG)
    monkeypatch.setenv("HOME", str(home))
    here = work_folder / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return home


def test_a_tilde_is_the_home_folder_in_every_path(home):
    """Also behind "=", where a shell keeps it."""
    rows = "~/rows.csv"
    succeed("fit", rows, *QUICK, "--save=~/m.npz")
    succeed("score", "~/m.npz", rows, "--top", "3", "--out=~/list.csv")
    succeed("evaluate", "~/m.npz", rows, "--against=~/m.npz")
    succeed("show", "~/m.npz")
    succeed(
        "compare", rows, *QUICK, "--out=~/compared", "--save=~/c.npz", "--jobs", "1"
    )
    succeed(
        "compare", rows, *QUICK, "--out=~/compared", "--config=~/c.yaml", "--jobs", "1"
    )
    succeed("validate", "~/e.yaml")
    succeed("run", "~/e.yaml", "--no-plots", "--out=~/res", "--jobs", "1")
    for command in ("status", "report", "plot"):
        succeed(command, "~/res")
    succeed("merge", "~/res", "--out=~/merged", "--no-plots")
    succeed("diff", "~/res", "~/res")
    succeed("example", "~/digits.csv")
    assert {path.name for path in home.iterdir()} >= {
        "m.npz",
        "list.csv",
        "compared",
        "c.npz",
        "c.yaml",
        "res",
        "merged",
        "digits.csv",
    }
    assert not [*Path().iterdir()]


def test_a_tilde_within_a_name_is_a_letter(home, monkeypatch):
    monkeypatch.chdir(home)
    succeed("fit", "rows.csv", *QUICK, "--save=./~m.npz")
    assert Path("~m.npz").is_file()


def test_the_home_folder_of_nobody_is_refused(home, monkeypatch):
    monkeypatch.chdir(home)
    refused(["fit", "rows.csv", *QUICK, "--save=~nobody-here/m.npz"], "~nobody-here")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            ["fit", "ROWS", *QUICK, "--format", "csv", "--save", "m.npz"], id="fit"
        ),
        pytest.param(["compare", "ROWS", *QUICK, "--format", "csv"], id="compare"),
        pytest.param(["profile", "ROWS", "--label", "y"], id="profile"),
        pytest.param(["score", "m.npz", "ROWS", "--format", "csv"], id="score"),
        pytest.param(["evaluate", "m.npz", "ROWS", "--format", "csv"], id="evaluate"),
    ],
)
@pytest.mark.parametrize(("path", "kind"), [("pipe", "pipe"), ("/dev/null", "device")])
def test_rows_that_are_no_file_are_refused(work_folder, command, path, kind):
    Path("rows.csv").write_text(ROWS)
    succeed("fit", "rows.csv", *QUICK, "--save", "m.npz")
    os.mkfifo("pipe")
    arguments = [path if argument == "ROWS" else argument for argument in command]
    refused(arguments, f"{path} {kind} save")


LISTING = """
import sys
from precbench.__main__ import main
sys.argv = ["precbench", "list", "metrics"]
try:
    main()
except SystemExit as end:
    assert not end.code
import joblib, sklearn, precbench.core.locations, precbench.core.processes
assert joblib.cpu_count() >= 1 and precbench.core.locations.cache_folder().name
"""


@pytest.mark.parametrize(
    "name",
    [
        "LOKY_MAX_CPU_COUNT",
        "JOBLIB_MULTIPROCESSING",
        "OMP_NUM_THREADS",
        "PRECBENCH_CACHE",
        "PRECBENCH_MIRROR",
        "SKLEARN_WORKING_MEMORY",
    ],
)
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_environment_variable_is_none(work_folder, name, value):
    process = run_program(LISTING, {name: value})
    assert "auc" in process.stdout


def run_program(program, environment):
    """Run a program with these variables of the environment, and see it end well."""
    process = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return process


@pytest.mark.parametrize(
    "backend", ["module://matplotlib_inline.backend", "tkagg", "none", ""]
)
def test_figures_need_no_backend_of_a_notebook_or_a_screen(work_folder, backend):
    draw = "from matplotlib import pyplot\npyplot.figure().savefig('figure.png')\n"
    run_program(LISTING + draw, {"MPLBACKEND": backend})
    assert Path("figure.png").stat().st_size > 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            ROWS.replace(",", "  ").replace("10  ", "10 "), id="two between all values"
        ),
        pytest.param(
            ROWS.replace(",", " ").replace("7 ", "7   "), id="more between some"
        ),
        pytest.param(
            " " + ROWS.replace(",", " ").replace("\n", "\n   "),
            id="at the start of a line",
        ),
        pytest.param(
            re.sub(
                "(.+),(.+),(.+)",
                lambda row: f"{row[1]:>6} {row[2]:>6} {row[3]:>3}",
                ROWS.rstrip(),
            ),
            id="aligned to the right",
        ),
    ],
)
def test_several_blanks_between_values_are_named(work_folder, text):
    Path("rows.txt").write_text(text)
    options = ["rows.txt", "--format", "csv", "--separator", " ", *QUICK]
    refused(["fit", *options, "--save", "m.npz"], "rows.txt blanks separator")


def test_two_blanks_may_hold_no_value(work_folder):
    rows = ROWS.replace(",", " ").replace("7 5 ", "7  ")
    Path("rows.txt").write_text(rows)
    layout = ["--format", "csv", "--separator", " ", "--missing", "median"]
    succeed("fit", "rows.txt", *layout, *QUICK, "--save", "m.npz")

"""The command line end to end: files in, ranked rows out, every error one line."""

import bz2
import errno
import gzip
import io
import json
import lzma
import math
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from scipy.sparse import csr_matrix
from scipy.stats import binomtest
from typer.testing import CliRunner

from precbench.advice.model import Model
from precbench.cli import app
from precbench.data.own.read import read_own_file
from precbench.data.splits import split_rows
from precbench.experiment import load_config
from precbench.experiment.samples import read_data
from precbench.locations import shipped
from precbench.solvers import SOLVERS
from precbench.solvers.passes import PassRanker
from precbench.statistics import resampled_interval, resampled_test
from tests.helpers import invoke, refused, run


def registered(group, *path):
    """Return all commands of a group and of the groups in it, by what one types."""
    found = {}
    for name in group.commands:
        _, command, _ = group.resolve_command(typer.Context(group), [name])
        found |= {" ".join([*path, name]): command}
        found |= registered(command, *path, name) if hasattr(command, "commands") else {}
    return found


REGISTERED = registered(typer.main.get_command(app))
COMMANDS = {name: of for name, of in REGISTERED.items() if not hasattr(of, "commands")}
HEAVY = {"numpy", "pandas", "scipy", "sklearn", "matplotlib", "pydantic", "yaml", "requests"}
PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
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
    """Customers: numbers, text, missing values, groups, names that look like numbers."""
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
def files(table, tmp_path, monkeypatch):
    """A folder to work in, with the customers as ``mine.csv``; no trees beside other solvers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("precbench.advice.quality._MOST_VALUES", 0)
    table.to_csv("mine.csv", index=False)
    return tmp_path


def fit_table(path="mine.csv", **changes):
    options = as_options({**TABLE_OPTIONS, "splits": "1", **changes})
    return invoke("fit", path, *options, "--save", "top.npz", "--json")


@pytest.mark.parametrize("name", ["mine.csv", "./mine.csv", "link.csv"])
def test_fit_never_saves_over_its_rows(files, name):
    (files / "link.csv").symlink_to("mine.csv")
    before = (files / "mine.csv").read_bytes()
    options = as_options(TABLE_OPTIONS)
    assert "another name" in refused(["fit", "mine.csv", *options, "--save", name])
    assert (files / "mine.csv").read_bytes() == before


def ranked(*arguments):
    result = invoke("score", "top.npz", *arguments)
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout), dtype={"id": str}, keep_default_na=False)


# --- help ---


def test_options_of_run_are_shown_in_groups():
    groups = re.findall(
        r"^(\w[\w ]*):\n((?:  .*\n)+)", invoke("run", "--help").stdout, re.MULTILINE
    )
    titles = ["Arguments", "What to run", "How to run", "Data and results", "What to show"]
    assert [title for title, _ in groups] == [*titles, "Options"]
    assert re.findall(r"--[\w-]+", dict(groups)["Options"]) == ["--help"]


@pytest.mark.promise("R30")
def test_help_imports_nothing_heavy():
    code = (
        "import sys; from typer.testing import CliRunner; from precbench.cli import app; "
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0; "
        f"print(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.promise("R30")
@pytest.mark.alone
def test_help_is_fast(figure):
    """Little longer than the library of the command line itself takes to be imported."""

    def seconds(*arguments):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=-3)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    contestants = (("-m", "precbench", "--help"), ("-c", "import typer"))
    rounds = [[seconds(*contestant) for contestant in contestants] for _ in range(5)]
    ours, library = map(min, zip(*rounds, strict=True))
    figure(f"help in {ours:.2f} s, {ours / library:.1f} times the import of its library")
    assert ours < 2 * library


@pytest.mark.parametrize("command", ["", *REGISTERED])
def test_help_explains_every_option(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = invoke(*command.split(), "--help")
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    options = re.findall(r"^  (?:-\w, )?--[\w-]+.*(?:\n {8,}.*)*", result.output, re.MULTILINE)
    assert options
    for option in options:
        assert re.search(r"(  |\n)\s*[\w']+,? \w+", option), f"{option} is not explained"
    if command == "data":
        assert "..." not in result.output.replace("[ARGS]...", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_it_takes(name):
    text = COMMANDS[name].help.replace("\\\n", " ")
    examples = re.findall(r"^ +precbench (.+)$", text.partition("Example")[2], re.MULTILINE)
    assert any(example.startswith(name) for example in examples)
    for example in examples:
        arguments = shlex.split(example.partition(" > ")[0])
        path = next(of for of in (2, 1) if " ".join(arguments[:of]) in COMMANDS)
        command = COMMANDS[" ".join(arguments[:path])]
        command.make_context(name, arguments[path:]).close()


def test_every_command_can_print_json():
    can = {name for name, of in COMMANDS.items() if any("--json" in p.opts for p in of.params)}
    assert {*COMMANDS} - can == {"schema"}  # which prints nothing else


@pytest.mark.promise("R28")
def test_help_lists_the_exit_codes():
    output = " ".join(invoke("--help").output.split())
    for code in ("0 done", "1 a trial failed", "2 wrong usage", "3 data not", "130 interrupted"):
        assert code in output


# --- fit and score ---


def write(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")


@pytest.mark.parametrize("suffix", ["tsv", "parquet", "csv.gz", "csv.bz2", "csv.xz", "tsv.gz"])
def test_all_table_formats_give_the_same_ranking(files, table, suffix):
    assert fit_table().exit_code == 0
    expected = ranked("mine.csv", "--id", "id")
    path = files / f"mine.{suffix}"
    write(table, path)
    about = json.loads(fit_table(path).stdout)
    assert about["rows"] == 300 and about["features"] == 6
    pd.testing.assert_frame_equal(ranked(path, "--id", "id"), expected)


@pytest.mark.parametrize("packed", ["", "gz", "bz2", "xz"])
def test_svmlight(files, packed):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, (90, 6)) * (rng.random((90, 6)) < 0.3)
    y = (X[:, 0] + rng.random(90) > 2).astype(int)
    y[:4] = 1
    lines = [
        " ".join([str(label), *(f"{j + 1}:{x[j]}" for j in np.flatnonzero(x))])
        for x, label in zip(X, y, strict=True)
    ]
    path = files / f"mine.svm{packed and '.'}{packed}"
    text = "\n".join(lines).encode()
    path.write_bytes(PACKERS[packed](text) if packed else text)
    assert invoke("fit", path, "--save", "top.npz").exit_code == 0
    (files / "new.svm").write_text("".join(f"0 {line.partition(' ')[2]}\n" for line in lines))
    top = ranked("new.svm", "--top", "7")
    assert list(top) == ["rank", "row", "score"] and len(top) == 7
    pd.testing.assert_frame_equal(top, ranked(path)[:7])
    np.savez("mine.npz", X=X, y=y)
    assert "fitted to svmlight rows, found npz" in refused(["score", "top.npz", "mine.npz"])
    assert "no named columns" in refused(["score", "top.npz", "new.svm", "--id", "name"])
    (files / "new.svm").write_text("0 7:1\n")
    assert "new.svm:1:3: the feature index must be at most 6" in refused(
        ["score", "top.npz", "new.svm"]
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_npz(files, sparse):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 6)) * (rng.random((90, 6)) < 0.3)
    parts = {"X": X}
    if sparse:
        S = csr_matrix(X)
        parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    np.savez("mine.npz", **parts, y=np.arange(90) % 3 == 0, patient=np.arange(90) // 2)
    result = invoke("fit", "mine.npz", "--groups", "patient", "--save", "top.npz")
    assert result.exit_code == 0, result.output
    np.savez("new.npz", **parts)
    pd.testing.assert_frame_equal(ranked("new.npz"), ranked("mine.npz"))


@pytest.fixture
def beside_trees(files, monkeypatch):
    """Boosted trees are measured, too."""
    monkeypatch.setattr("precbench.advice.quality._MOST_VALUES", 10**6)


def test_metrics_are_right(files, table, beside_trees):
    """Computed again without the model, the scaling and the metrics of the package."""
    about = json.loads(fit_table(k="0.5", splits="3").stdout)
    dataset, _ = read_own_file("mine.csv", **{**TABLE, "drop": ["id"]})
    plain = table.drop(columns=["id", "patient", "churned"])
    numbers = plain[["a", "b", "c"]].fillna(plain[["a", "b", "c"]].median())
    city = plain["city"].fillna(plain["city"].mode()[0])
    X = np.column_stack([numbers, *(city == name for name in ("Bern", "Oslo", "Rome"))])
    assert np.array_equal(X, dataset.X)
    y = np.where(table["churned"] == "yes", 1, -1)
    found = []
    for index in range(3):
        split = split_rows(dataset, "random", index, n_splits=3, seed=0)
        assert not set(table["patient"][split.train]) & set(table["patient"][split.test])
        mean, std = X[split.train].mean(axis=0), X[split.train].std(axis=0)
        solver = SOLVERS["sgd-avg"](k=0.5, random_state=0)
        coef = solver.fit((X[split.train] - mean) / std, y[split.train]).coef_
        trees = SOLVERS["hist-gradient-boosting"]().fit(X[split.train], y[split.train])
        labels, values = y[split.test], [len(split.test), sum(y[split.test] > 0)]
        for scores in (
            (X[split.test] - mean) / std @ coef,
            trees.decision_function(X[split.test]),
        ):
            best = np.argsort(-scores, kind="stable")[: int(np.ceil(0.5 * sum(labels > 0)))]
            pairs = scores[labels > 0][:, None] - scores[labels < 0]
            values += [np.mean(labels[best] > 0), np.mean(pairs > 0) + np.mean(pairs == 0) / 2]
        found.append(values)
    n_rows, n_pos, precision, auc, of_trees, _ = (
        np.array(column) for column in zip(*found, strict=True)
    )
    assert about["rows"] == 300 and about["positives"] == sum(y > 0)
    assert about["splits"] == 3
    assert about["held_out_rows"] == round(n_rows.mean()) and 80 <= min(n_rows) <= 100
    assert about["held_out_positives"] == round(n_pos.mean())
    assert about["by_chance"] == pytest.approx(np.mean(n_pos / n_rows))
    share = sum(n_rows) / 900
    for metric, values in (("precision_at_k", precision), ("auc", auc)):
        mean, low, high = resampled_interval(values, share)
        assert about[metric] == pytest.approx(mean)
        assert about[f"{metric}_interval"] == pytest.approx([low, high])
    beside = about["boosted_trees"]
    assert beside["precision_at_k"] == pytest.approx(of_trees.mean(), abs=0.02)  # of ties
    assert beside["p"] == pytest.approx(resampled_test(precision, of_trees, share).p, abs=0.1)


def test_fit_prints_rows_metrics_and_the_model(files, beside_trees):
    options = as_options(TABLE_OPTIONS | {"splits": "5"})
    result = invoke("fit", "mine.csv", *options, "--save", "top.npz")
    first, second, third, fourth = result.stdout.splitlines()
    assert re.fullmatch(r"300 rows, 6 features, \d+ positive", first)
    number = r"[01]\.\d{3} ± 0\.\d{3}"
    assert re.fullmatch(
        rf"5 splits, about \d+ held-out rows each, \d+ positive: prec@0.25 {number} "
        rf"\(by chance 0\.\d{{3}}\), AUC {number}",
        second,
    )
    assert re.fullmatch(
        rf"hist-gradient-boosting on the same rows: prec@0.25 {number}, "
        rf"(no significant difference|significantly (better|worse)); AUC {number}",
        third,
    )
    assert fourth == "sgd-avg, fitted to all rows: top.npz"


def test_without_a_solver_what_the_docs_recommend_is_fitted(files):
    page = Path(__file__).parent.parent / "docs/which-method.md"
    recommended = re.search(r"\*\*.*use `(.*)`\.\*\*", page.read_text())[1]
    (files / "mine.svm").write_text("1 1:1\n0 900:2\n" * 30)
    table = ["mine.csv", *as_options({**TABLE, "splits": "1"})]
    for rows, solver in (
        (table, recommended),
        ([*table, "--fourier", "8"], "sgd-avg"),
        (["mine.svm"], "sgd-avg"),
    ):
        about = json.loads(invoke("fit", *rows, "--save", "top.npz", "--json").stdout)
        assert about["solver"] == solver


def test_one_split_has_the_interval_of_its_list_and_trees_are_not_compared_with_themselves(
    beside_trees,
):
    options = as_options(TABLE_OPTIONS | {"solver": "hist-gradient-boosting", "splits": "1"})
    result = invoke("fit", "mine.csv", *options, "--param", "max_iter=5", "--save", "top.npz")
    assert result.exit_code == 0, result.output
    _, second, third = result.stdout.splitlines()
    assert second.startswith("1 split, ") and second.count("±") == 1  # of prec@k
    assert third == "hist-gradient-boosting, fitted to all rows: top.npz"
    about = json.loads(fit_table().stdout)
    assert about["auc_interval"] is about["boosted_trees"]["p"] is None
    top = math.ceil(about["held_out_positives"] / 4)
    exact = binomtest(round(about["precision_at_k"] * top), top).proportion_ci(method="exact")
    assert about["precision_at_k_interval"] == pytest.approx(list(exact))


def test_trees_that_refuse_the_rows_are_left_out(files, table):
    """They are not scaled, as the rows of the model are."""
    table.assign(huge=[1e100, *[0.0] * 299]).to_csv("mine.csv", index=False)
    result = invoke("fit", "mine.csv", *as_options(TABLE_OPTIONS), "--save", "top.npz")
    assert result.exit_code == 0, result.output
    assert "boosting" not in result.output and Path("top.npz").exists()


def test_splits_of_one_class_are_left_out_with_a_warning(files, table):
    few = table.assign(churned=np.where(table["patient"].isin(table["patient"][:1]), "yes", "no"))
    few.loc[few["patient"] == few["patient"].iloc[-1], "churned"] = "yes"
    few.to_csv("mine.csv", index=False)
    options = as_options(TABLE_OPTIONS | {"splits": "8"})
    result = invoke("fit", "mine.csv", *options, "--save", "top.npz")
    assert result.exit_code == 0, result.output
    n = int(re.search(r"warning: (\d) of 8 splits are left out: split ", result.stderr)[1])
    assert f"{8 - n} split{'s' * (n < 7)}, " in result.stdout


def test_a_weight_stands_for_that_many_rows(files, table, beside_trees):
    """And those of trees beside it; each row that is measured counts as one."""
    table.assign(w=np.arange(300) % 3).to_csv("mine.csv", index=False)
    options = as_options({**TABLE_OPTIONS, "solver": "logistic-regression", "splits": "1"})
    weighted = [*options, "--weight", "w", "--save", "top.npz", "--json"]
    about = json.loads(invoke("fit", "mine.csv", *weighted).stdout)
    assert (about["rows"], about["features"], about["weight"]) == (300, 6, "w")
    assert "weighted by w" in " ".join(invoke("show", "top.npz").stdout.split())
    dataset, _ = read_own_file("mine.csv", **{**TABLE, "drop": ["id"]})
    X, y, weights = dataset.X[:, :-1], dataset.y, np.arange(300) % 3
    one = Model.load("top.npz")
    assert one.n_features == 6
    mean, std = X.mean(axis=0), X.std(axis=0)
    solver = SOLVERS["logistic-regression"]().fit(
        ((X - mean) / std).repeat(weights, axis=0), y.repeat(weights)
    )
    np.testing.assert_allclose(one.coef, solver.coef_, atol=1e-3)

    for bad, what in (("-1", "a weight is at least 0, found -1"), ("x", "'x' is not a number")):
        table.assign(w=[1, 2, bad, *[1] * 297]).to_csv("mine.csv", index=False)
        assert f"column 'w', row 3: {what}" in refused(["fit", "mine.csv", *weighted])
    assert "no column 'v'" in refused(["fit", "mine.csv", *options, "--weight", "v", "--save", "t"])
    table.assign(w=1).to_csv("mine.csv", index=False)
    (files / "mine.svm").write_text("1 1:1\n0 1:2\n")
    message = refused(["fit", "mine.svm", "--weight", "w", "--save", "t"])
    assert "mine.svm: --weight names a column of a table" in message
    assert "SGDAtK does not support sample_weight" in refused(
        ["fit", "mine.csv", *as_options(TABLE_OPTIONS), "--weight", "w", "--save", "t"]
    )


def test_splits_without_a_positive_are_left_out(files):
    """Of rows in the order of time, whose positives have come late."""
    n = 200
    table = pd.DataFrame({"x": np.arange(n) % 7, "day": np.arange(n)})
    table["y"] = (np.arange(n) % 20 == 3) & (np.arange(n) > 150) | (np.arange(n) == 7)
    table.astype(int).to_csv("late.csv", index=False)
    options = ["--label", "y", "--time", "day", "--k", "2", "--save", "top.npz"]
    about = json.loads(invoke("fit", "late.csv", *options, "--json").stdout)
    assert (about["split"], about["splits"], about["held_out_rows"]) == ("time", 2, 20)
    assert "quality: 2 periods of about 20 rows, " in invoke("show", "top.npz").stdout


def test_a_count_may_exceed_the_positives(files, table):
    """It is the rows that one can look at; training warns once, for the fit to all rows."""
    n_pos = int(sum(table["churned"] == "yes"))
    result = fit_table(k=str(n_pos + 1))
    about, [warning] = json.loads(result.stdout), result.stderr.splitlines()
    assert about["k"] == n_pos + 1 > about["held_out_positives"]
    assert 0 < about["precision_at_k"] <= about["held_out_positives"] / about["k"]
    assert f"warning: k = {n_pos + 1} exceeds the number of positives, {n_pos}" in warning
    assert invoke("score", "top.npz", "mine.csv", "--top", "1").exit_code == 0
    assert fit_table(k=str(n_pos)).stderr == ""


def test_a_share_of_the_rows(files):
    about = json.loads(fit_table(k="10%").stdout)
    n_top = int(np.ceil(0.1 * about["held_out_rows"]))
    assert about["k"] == "10%"
    assert about["precision_at_k"] * n_top == pytest.approx(round(about["precision_at_k"] * n_top))
    assert "prec@10% " in invoke("fit", "mine.csv", *as_options(TABLE_OPTIONS | {"k": "10%"}),
                                 "--save", "top.npz").stdout  # fmt: skip


def test_a_share_of_one_and_a_count_of_one_differ(files):
    assert json.loads(fit_table(k="1").stdout)["k"] == 1
    one = json.loads(fit_table(k="1.0").stdout)
    assert isinstance(one["k"], float)
    assert one["precision_at_k"] < 1


def test_ids_and_row_numbers(files, table):
    fit_table()
    new = table.drop(columns="churned").sample(frac=1, random_state=0).reset_index(drop=True)
    new.loc[:3, "id"] = ["NA", "007", "9007199254740993", "é,\"'"]
    new.to_csv("new.csv", index=False)
    new.to_parquet("new.parquet")
    ranking = ranked("new.csv", "--id", "id")
    assert list(ranking) == ["rank", "row", "id", "score"]
    assert ranking["rank"].tolist() == list(range(1, 301))
    assert ranking["id"].tolist() == [new["id"][row - 1] for row in ranking["row"]]
    assert ranking["score"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(ranked("new.parquet", "--id", "id"), ranking)
    result = invoke("score", "top.npz", "new.csv", "--id", "id", "--top", "5", "--json")
    assert json.loads(result.stdout) == ranking[:5].to_dict("records")


def test_ids_are_never_formulas(files, table):
    fit_table()
    unchanged = ["-5", "+1e-3", "x=1", "1-2", "a;-5", "O'Hara, x"]
    shown = {name: name for name in unchanged} | {
        "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
        "@x": "'@x",
        "-x": "'-x",
        "+1+2": "'+1+2",
        "\uff1d1+1": "'\uff1d1+1",
        "\t=x": "\t'=x",
        "x;=cmd|' /C calc'!A0": "x;'=cmd|' /C calc'!A0",
        'x\t"@A1"': 'x\t"\'@A1"',
        "x| =1+1": "x| '=1+1",
    }
    ids = list(shown)
    table[: len(ids)].assign(id=ids).to_csv("new.csv", index=False)
    ranking = ranked("new.csv", "--id", "id")
    assert ranking["id"].tolist() == [shown[ids[row - 1]] for row in ranking["row"]]
    found = json.loads(invoke("score", "top.npz", "new.csv", "--id", "id", "--json").stdout)
    assert {row["id"] for row in found} == set(ids)


def test_ties_keep_the_order_of_rows(files, table):
    fit_table()
    pd.concat([table.drop(columns="churned")[:40]] * 3).to_csv("new.csv", index=False)
    ranking = ranked("new.csv")
    for score, rows in ranking.groupby("score")["row"]:
        assert len(rows) % 3 == 0, f"equal rows do not have the equal score {score}"
        assert rows.tolist() == sorted(rows)


def test_score_names_columns_without_information(files, table):
    fit_table()
    table.assign(a=np.nan, city="Paris").to_csv("new.csv", index=False)
    result = invoke("score", "top.npz", "new.csv", "--top", "1")
    assert result.exit_code == 0
    assert result.stdout.startswith("rank,row,score\n1,")
    filled, unknown, some, summary = result.stderr.splitlines()
    assert filled.startswith("precbench: warning: new.csv: no row has a value in a:")
    assert unknown.endswith("none of the values in city: all are treated as unknown")
    n_missing = table[["b", "c"]].isna().sum()
    assert some.endswith(": {b} values filled in b, {c} values filled in c".format(**n_missing))
    assert summary == "300 rows ranked, 1 listed"


def read_rows(path):
    return pd.read_parquet(path).to_dict("records")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_blocks_of_a_table_rank_as_the_whole(files, table, monkeypatch, suffix):
    """Written to a file, CSV or Parquet, in full or the top; ties at block borders included."""
    fit_table()
    new = pd.concat([table.drop(columns="churned")[:50]] * 3)
    new.to_csv("new.csv", index=False)
    new.to_parquet("new.parquet", row_group_size=40)
    read = {"csv": lambda name: (files / name).read_text().splitlines(), "parquet": read_rows}
    invoke("score", "top.npz", "new.csv", "--id", "id", "--out", f"whole.{suffix}")
    whole = read[suffix](f"whole.{suffix}")
    monkeypatch.setattr("precbench.data.own.read._FEWEST_ROWS", 1)
    monkeypatch.setattr("precbench.data.own.read._MOST_ROWS", 7)
    for n_rows in (150, 8):
        options = ["--id", "id", "--out", f"out.{suffix}", "--top", n_rows]
        result = invoke("score", "top.npz", f"new.{suffix}", *options)
        assert result.stdout == ""
        assert result.stderr.endswith(f"150 rows ranked, {n_rows} listed: out.{suffix}\n")
        assert read[suffix](f"out.{suffix}") == whole[: n_rows + (suffix == "csv")]
    assert sorted(path.name for path in files.glob("*out*")) == [f"out.{suffix}"]


def test_numeric_strings_stay_strings(files):
    (files / "codes.csv").write_text("code,y\n" + "A1,1\nB2,0\nC3,0\n007,1\n7,0\n" * 20)
    options = {"label": "y", "categorical": "one-hot", "save": "top.npz"}
    assert invoke("fit", "codes.csv", *as_options(options)).exit_code == 0
    (files / "new.csv").write_text("code\n7\n007\n7\n")
    alone = ranked("new.csv").set_index("row")["score"]
    (files / "new.csv").write_text("code\n7\n007\n7\nA1\n")
    beside = ranked("new.csv").set_index("row")["score"]
    assert alone.to_dict() == beside.drop(4).to_dict()
    assert alone[2] > alone[1] == alone[3]


def test_format_option(files):
    (files / "mine.csv").rename("mine.data")
    assert "unknown format '.data'" in refused(["fit", "mine.data", "--save", "top.npz"])
    assert fit_table("mine.data", format="csv").exit_code == 0
    assert len(ranked("mine.data", "--format", "csv", "--id", "id")) == 300


def test_same_seed_gives_the_same_model(files):
    models = []
    for seed in ("3", "3", "4"):
        fit_table(seed=seed, solver="perceptron-avg", param="epochs=2")
        models.append((files / "top.npz").read_bytes())
    assert models[0] == models[1] != models[2]


def test_a_copy_is_split_alike(files, table):
    (files / "other.csv").write_bytes((files / "mine.csv").read_bytes())
    table.to_parquet("another.parquet")
    one = json.loads(fit_table().stdout)
    assert one == json.loads(fit_table("other.csv").stdout)
    assert one == json.loads(fit_table("another.parquet").stdout)
    assert one != json.loads(fit_table(seed="1").stdout)


def test_parameter_values(files):
    for param in ("eta0=1e-2", "epochs=3", "shuffle=false", "radius=none", "shuffle=blocks"):
        result = fit_table(param=param)
        assert result.exit_code == 0, result.output


def test_a_warning_is_one_line(files):
    result = fit_table(solver="linear-svm", param="max_iter=1")
    assert result.exit_code == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("precbench: warning: Liblinear failed to converge")


FIT_REFUSED = [
    ({"solver": "sgd"}, "unknown solver 'sgd'.*; choose from perceptron-avg, .*linear-svm"),
    ({"scaling": "standardize"}, "'standardise', .* or 'none', found 'standardize'"),
    ({"categorical": "onehot"}, "categorical must be one of error, one-hot, found 'onehot'"),
    ({"missing": "avg"}, "missing must be one of error, mean, median, most-frequent, found 'avg'"),
    ({"missing": "error"}, r"column 'a', row \d+: the value is missing; .*median"),
    ({"categorical": "error"}, "column 'city', row 1: .* is not a number; .*one-hot"),
    ({"format": "xls"}, "unknown format 'xls'; name one of svmlight, csv"),
    ({"label": "churnd"}, r"no column 'churnd' \(did you mean 'churned'"),
    ({"positive": "maybe"}, "no row has the positive label 'maybe'; found no, yes"),
    ({"drop": "name"}, "no column 'name'; it has id, a, b"),
    ({"groups": "churned", "drop": "patient"}, "both classes are needed"),
    ({"k": "many"}, "k = 'many' is neither a fraction"),
    ({"k": "[1"}, r"k = '\[1' is neither a fraction"),
    ({"k": "1 percent"}, r"k = '1 percent' is neither a fraction .*\(did you mean '1 %'\?\)"),
    ({"k": "150"}, r"--k 150 exceeds the \d+ held-out rows .*: --k \"50 %\""),
    ({"k": "0"}, "k = 0 is neither a fraction"),
    ({"k": "1.5"}, "k = 1.5 is neither a fraction"),
    ({"k": "nan"}, "k = nan is neither a fraction"),
    ({"k": "5000"}, "k = 5000 exceeds the number of rows, 300"),
    ({"param": "epochs"}, "expected NAME=VALUE, for example epochs=5"),
    ({"param": "ephocs=3"}, r"no parameter 'ephocs' \(did you mean 'epochs'\?\): it has average"),
    ({"param": "epochs=2.5"}, "'epochs' parameter .* must be an int"),
    ({"param": "epochs=[1"}, "'epochs' parameter .* must be an int"),
    ({"param": "eta0=-1"}, "'eta0' parameter .* must be a float in the range"),
    ({"param": "batch_size=true"}, "batch_size is not true or false"),
    ({"param": "eta0=1e308"}, "overflowed"),
    ({"param": "k=3"}, "give --k instead"),
    ({"param": "random_state=3"}, "give --seed instead"),
    ({"seed": "-1"}, "--seed"),
    ({"save": "none/top.npz"}, "--save none/top.npz: there is no folder none"),
    ({"save": "."}, "it is a folder; choose another place"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("changes", "what"), FIT_REFUSED)
def test_invalid_options_of_fit(files, changes, what):
    options = {"save": "top.npz"} | TABLE_OPTIONS | changes
    assert re.search(what, refused(["fit", "mine.csv", *as_options(options)]))
    assert [path.name for path in files.iterdir()] == ["mine.csv"]


BAD_FILES = [
    ("none.csv", None, "none.csv: no such file"),
    ("bad.xlsx", b"x", "unknown format '.xlsx'"),
    ("bad", b"x", "unknown format ''"),
    ("bad.svm", b"1 1:1\n0 1:1 2:x\n", r"bad.svm:2:9: the value of a feature .* found 'x'"),
    ("bad.svm", b"1 1:1\n1:1\n", "bad.svm:2:1: a line must begin with its label"),
    ("bad.svm", b"1 1:nan\n0 1:1\n", "bad.svm:1:5: .* finite number, found 'nan'"),
    ("bad.svm", b"1 1:1\n1 1:2\n", "one class only, every label is 1$"),
    ("bad.svm", b"2 1:1\n3 1:2\n", r"name the positive label \(positive\), one of 2, 3$"),
    ("bad.svm", b"1\n0\n", "no row has a feature"),
    ("bad.svm", b"1 1:1\n0 1:1\n", "1 positives in 2 rows; .* at least 2 rows of each class"),
    ("bad.svm", b"", "bad.svm: the file is empty"),
    ("bad.svm.gz", gzip.compress(b"1 1:1\n" * 999, mtime=0)[:20], "cannot be read"),
    ("bad.csv", b"", "bad.csv: the file is empty"),
    ("bad.csv", b"a,y\n", "the file has no rows"),
    ("bad.csv", b"a,y\n1,1\ninf,0\n", "column 'a', row 2: 'inf' is not a finite number"),
    ("bad.csv", b"a,y\n1,1\nnan,0\n", "column 'a', row 2: the value is missing"),
    ("bad.csv", b"a,y\n1,1\n2,1\n", "one class only, every label is 1"),
    ("bad.csv", b"a;y\n1;1\n2;0\n", "separated by semicolons; save it with"),
    ("bad.csv", b"a,y\n1,1\n2,0,5\n", "Expected 2 fields in line 3, saw 3"),
    ("bad.csv", b"a,y\n\xff\xfe,1\n2,0\n", "bad.csv:2: not UTF-8 text; save the table as UTF-8"),
    ("bad.csv.xz", lzma.compress(b"a,y\n1,1\n" * 99)[:-20], "cannot be read"),
    ("bad.csv.gz", b"", "bad.csv.gz: the file is empty"),
    ("bad.parquet", b"PAR1", "cannot be read"),
    ("bad.npz", b"", "not an npz file"),
    ("bad.npz", b"PK\x03\x04", "not an npz file"),
]


@pytest.mark.parametrize(("name", "content", "what"), BAD_FILES)
def test_invalid_files(files, name, content, what):
    if content is not None:
        (files / name).write_bytes(content)
    label = ["--label", "y"] if name.split(".")[1:2] in (["csv"], ["parquet"]) else []
    assert re.search(what, refused(["fit", name, *label, "--save", "top.npz"]).strip())
    assert not (files / "top.npz").exists()


@pytest.mark.parametrize(
    "arguments",
    ["fit PATH --save top.npz", "fit mine.csv --label churned --save PATH", "score PATH mine.csv",
     "score mine.npz PATH", "run PATH", "run own.yaml --out PATH", "plot PATH", "check PATH",
     "data add letter PATH", "run own.yaml --dry-run"],
)  # fmt: skip
def test_a_path_may_be_too_long(own, files, cache, arguments):
    np.savez("mine.npz", X=np.eye(2), y=[0, 1])
    assert invoke("fit", "arrays.npz", "--save", "mine.npz").exit_code == 0
    path = "x" * 256
    own(f"[{{file: {path}, name: long}}]" if "dry" in arguments else "[{file: arrays.npz}]")
    result = invoke(*arguments.replace("PATH", path).split())
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit), result.output
    assert path in result.stderr.splitlines()[-1]


def test_groups_few_and_too_few(files):
    for n_groups in (1, 2, 5):
        table = pd.DataFrame({"x": range(60), "g": [i % n_groups for i in range(60)]})
        table.assign(y=table["x"] // 5 % 2).to_csv("few.csv", index=False)
        arguments = ["fit", "few.csv", "--label", "y", "--groups", "g", "--save", "top.npz"]
        if n_groups == 1:
            assert "few cannot be split like this: all rows are of one group" in refused(arguments)
        else:
            assert invoke(*arguments).exit_code == 0


def test_invalid_options_of_score(files, table):
    fit_table()
    table.drop(columns="b").to_csv("less.csv", index=False)
    table.assign(a="x").to_csv("text.csv", index=False)
    pd.DataFrame({"a": [np.inf], "b": 1, "c": 1, "city": "Rome"}).to_csv("inf.csv", index=False)
    table.assign(a=pd.Timestamp("2024-01-01")).to_parquet("date.parquet")
    np.savez("data.npz", X=np.ones((2, 2)))
    os.mkfifo("pipe.csv")
    for arguments, what in [
        (["none.npz", "mine.csv"], "no model none.npz: precbench fit FILE --save none.npz"),
        (["mine.csv", "mine.csv"], "mine.csv is not a model"),
        (["data.npz", "mine.csv"], "data.npz is not a model"),
        (["top.npz", "none.csv"], "none.csv: no such file"),
        (["top.npz", "data.npz"], "the model was fitted to csv rows, found npz"),
        (["top.npz", "less.csv"], "less.csv: no column 'b'"),
        (["top.npz", "text.csv"], "text.csv: column 'a', row 1: 'x' is not a number"),
        (["top.npz", "date.parquet"], "column 'a', row 1: '2024-01-01 00:00:00' is not a number"),
        (["top.npz", "inf.csv"], "inf.csv: column 'a', row 1: 'inf' is not a finite number"),
        (["top.npz", "mine.csv", "--id", "name"], "no column 'name'; it has id, a, b"),
        (["top.npz", "mine.csv", "--top", "0"], "--top"),
        (["top.npz", "mine.csv", "--out", "out.xlsx"], "should end with .csv or .parquet"),
        (["top.npz", "mine.csv", "--out", "none/out.csv"], "there is no folder none"),
        (["top.npz", "mine.csv", "--out", "mine.csv"], "is the file of the rows: give the ranking"),
        (["top.npz", "mine.csv", "--out", "out.csv", "--json"], "give one of the two"),
        (["top.npz", "mine.csv", "--out", "pipe.csv"], "pipe.csv is not a regular file"),
        (["top.npz", "text.csv", "--out", "out.csv"], "'x' is not a number"),
    ]:
        assert what in refused(["score", *arguments])
    assert not list(files.glob("*out.csv*"))


@pytest.mark.promise("R7")
def test_a_full_disk_while_saving(files, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    arguments = ["fit", "mine.csv", *as_options(TABLE_OPTIONS), "--save", "top.npz"]
    assert "disk full while writing to top.npz" in refused(arguments, code=1)
    assert [path.name for path in files.iterdir()] == ["mine.csv"]


@pytest.mark.promise("R3")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_fit(files, end, monkeypatch):
    options = as_options(TABLE_OPTIONS | {"param": "epochs=100000000", "save": "top.npz"})
    before, fit = signal.getsignal(end), PassRanker._fit

    def interrupted(*arguments):
        threading.Timer(0.05, os.kill, (os.getpid(), end)).start()
        fit(*arguments)

    monkeypatch.setattr(PassRanker, "_fit", interrupted)
    assert refused(["fit", "mine.csv", *options], code=130) == "precbench: interrupted\n"
    assert signal.getsignal(end) is before
    assert [path.name for path in files.iterdir()] == ["mine.csv"]


@pytest.mark.promise("R3")
@pytest.mark.parametrize("module", ["typer", "precbench.cli.fit", "numpy.random"])
def test_an_interrupt_while_modules_are_imported(module):
    program = f"""
import signal, sys

class Finder:
    def find_spec(name, *_):
        if name == {module!r}:
            exec("signal.raise_signal(signal.SIGINT)")

sys.meta_path.insert(0, Finder)
sys.argv = ["precbench", "fit", "none.csv", "--label", "y", "--save", "top.npz"]
from precbench.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "precbench: interrupted\n")


# --- lists ---


@pytest.mark.parametrize("what", ["solvers", "datasets", "metrics", "configs"])
def test_list(what):
    members = json.loads(invoke("list", what, "--json").stdout)
    lines = invoke("list", what).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [member["name"] for member in members]
    assert all(member["about"] in line for member, line in zip(members, lines, strict=True))
    assert len({member["about"] for member in members}) == len(members)
    if what == "solvers":
        assert [member["name"] for member in members] == list(SOLVERS)
        assert members[0]["parameters"]["batch_size"] == 500


# --- data sets ---


@pytest.fixture
def cache(files, cache):
    """The files in an empty cache."""
    return cache / "files"


LETTER_SHA256 = "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"


def test_study_takes_its_data_from_a_mirror(cache, mirror, tmp_path):
    text = (shipped("configs") / "kar2014" / "uniform-convergence.yaml").read_text()
    config = tmp_path / "c.yaml"
    config.write_text(text.replace("[margin-noisy]", "[letter]"))  # at smoke size
    arguments = ["run", config, "--smoke", "--out", tmp_path / "out"]
    refused(arguments, code=3)
    assert invoke(*arguments, "--mirror", mirror).exit_code == 0


def test_data_from_a_mirror(cache, mirror):
    arguments = ["data", "fetch", "letter", "--mirror", mirror]
    assert invoke(*arguments).stdout == (
        "letter: 20,000 rows, 16 features, 783 positives, as the card says\n"
    )
    result = invoke(*arguments, "--json")
    assert json.loads(result.stdout) == [
        {"name": "letter", "rows": 20000, "features": 16, "positives": 783}
    ]
    assert invoke("data", "verify", "letter").stdout == (
        "letter/letter-recognition.data: verified, 712,565 bytes\n"
    )
    path = cache / "letter" / "letter-recognition.data"
    good = path.read_bytes()
    path.write_bytes(good + b"x")
    result = invoke("data", "verify", "letter")
    assert result.exit_code == 2
    assert f"damaged, 712,566 bytes\n  expected {LETTER_SHA256}, found sha256" in result.stdout
    [file] = json.loads(invoke("data", "verify", "letter", "--json").stdout)["letter"]
    assert file["status"] == "damaged" and file["expected"] == LETTER_SHA256 != file["sha256"]
    assert invoke(*arguments).exit_code == 0
    assert path.read_bytes() == good
    assert path.with_name(f"{path.name}.rejected").read_bytes() == good + b"x"


def test_missing_data_are_reported(cache):
    assert invoke("data", "verify", "adult").exit_code == 3
    assert invoke("data", "verify").exit_code == 0
    sentence = refused(["data", "fetch", "adult", "--mirror", "nowhere"], code=3)
    assert "Adult: a9a cannot be obtained; tried nowhere/adult/a9a: no such file" in sentence
    assert "precbench data add adult FILES, with a9a and a9a.t" in sentence
    for arguments, what in [
        (["fetch", "letter", "leter"], "unknown data set 'leter' (did you mean 'letter'?)"),
        (["info", "x"], "unknown data set 'x'; choose from a9a"),
        (["fetch", "letter", "--mirror", "ftp://x"], "the mirror 'ftp://x' must be a folder"),
        (["add", "letter", "mine.csv"], "no file of that name; it takes letter-recognition.data"),
        (["add", "letter", "none"], "none: no such file"),
        (["add", "margin", "mine.csv"], "margin is generated: it takes no files"),
    ]:
        assert what in refused(["data", *arguments])


def test_files_with_a_wrong_checksum(cache, files):
    for text in ("one", "two", "one"):
        (files / "letter-recognition.data").write_text(text)
        sentence = refused(["data", "add", "letter", "letter-recognition.data"])
        assert f"expected {LETTER_SHA256}" in sentence
        assert re.search("wrong checksum, found sha256 [0-9a-f]{64}", sentence)
    assert (files / "letter-recognition.data").read_text() == "one"
    kept = {path.name: path.read_text() for path in (cache / "letter").iterdir()}
    assert kept == {
        "letter-recognition.data.rejected": "one",
        "letter-recognition.data.rejected-2": "two",
    }


def test_files_that_the_card_does_not_describe(cache, files):
    (files / "Features.txt").write_text("1 2\n3 4\n")
    (files / "Info.txt").write_text("0 1 1 1 7\n1 1 1 1 7\n")
    result = invoke("data", "add", "kdd08", "Features.txt", "--json")
    assert result.exit_code == 0
    statuses = {f["name"]: f["status"] for f in json.loads(result.stdout)["kdd08"]}
    assert statuses == {"Features.txt": "as added", "Info.txt": "missing"}
    (files / "Features.txt").write_text("1 2\n3 5\n")
    sentence = refused(["data", "add", "kdd08", "Features.txt"])
    assert len(set(re.findall("[0-9a-f]{64}", sentence))) == 2
    assert (cache / "kdd08" / "Features.txt").read_text() == "1 2\n3 4\n"
    sentence = refused(["data", "add", "kdd08", "Info.txt"])
    assert "hold 2 rows, 2 features and 1 positives" in sentence
    assert "the card says 102,294 rows, 117 features and 623 positives" in sentence
    assert {p.name for p in (cache / "kdd08").glob("[A-Z]*")} == {
        "Features.txt.rejected",
        "Info.txt.rejected",
    }


def test_data_info(cache):
    for name in ("letter", "kdd08", "margin"):
        result = invoke("data", "info", name)
        assert result.exit_code == 0
        lines = result.stdout.splitlines()
        assert max(map(len, lines)) <= 80
        assert "='" not in result.stdout
        assert any(line.startswith("  used by: kar2015 ") for line in lines)
    card = json.loads(invoke("data", "info", "letter", "--json").stdout)
    assert card["positives"] == 783 and card["cached"][0]["status"] == "missing"


# --- runs on files of one's own ---


@pytest.fixture
def own(files, isolated, table):
    """A config that names a file of every kind."""
    table.to_parquet("mine.parquet")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] + rng.standard_normal(200) > 0.7).astype(int)
    np.savez("arrays.npz", X=X, y=y)
    (files / "lines.svm").write_text(
        "".join(f"{label} 1:{a} 4:{b}\n" for label, (a, _, _, b) in zip(y, X, strict=True))
    )
    options = ", ".join(f"{k}: {v}" for k, v in (TABLE | {"drop": "[id]"}).items())

    def write(datasets=None):
        datasets = datasets or (
            f"[{{file: mine.csv, {options}}}, "
            f"{{file: mine.parquet, name: parquet, {options}}}, "
            "{file: arrays.npz}, {file: lines.svm}]"
        )
        (files / "own.yaml").write_text(
            f"""name: own
title: Files of one's own
datasets: {datasets}
protocol: {{n_splits: 1, stratified: true}}
common: {{k: 0.5, epochs: 2}}
solvers: {{sgd-avg: }}
metrics: [{{precision_at_k: {{k: 0.5}}}}]
checkpoints: 2
"""
        )
        return "own.yaml"

    return write


def test_run_with_own_files(own, files):
    result = run(own(), files / "out")
    assert result.exit_code == 0, result.output
    results = pd.read_csv("out/own/results.csv")
    assert set(results["status"]) == {"ok"}
    final = results[results["final"]].set_index("dataset")["value"]
    assert set(final.index) == {"mine", "parquet", "arrays", "lines"}
    assert (final > 0.4).all(), final
    data = read_data(load_config("own.yaml").datasets[0])
    assert data.split_key is None, "the splits of experiments hang on the name: results would move"


@pytest.mark.parametrize(
    ("datasets", "what"),
    [
        ("[{file: none.csv, label: y}]", r"own\.yaml:3:\d+: datasets\[0\]\.file: no such file"),
        ("[{file: mine.csv, label: id, positive: x}]", "no row has the positive label 'x'"),
        ("[{file: mine.csv, label: churned, positive: 'yes'}]", "column 'city', row 1: .* one-hot"),
        ("[{file: mine.csv, labl: churned}]", r"own\.yaml:3:\d+: .*did you mean 'label'"),
        ("[{file: lines.svm, label: y}]", "label has no meaning for svmlight"),
        ("[{file: arrays.npz, groups: patient}]", "no array 'patient'; the file holds X, y"),
    ],
)
def test_invalid_file_entries(own, datasets, what):
    assert re.search(what, refused(["run", own(datasets), "--out", "out"]))


def test_results_of_a_newer_version_are_rejected(own, files):
    config = own("[{file: arrays.npz}]")
    out = files / "out"
    assert run(config, out).exit_code == 0
    [record] = (out / "own" / "trials").glob("*.json")
    record.write_text(record.read_text().replace('"schema": 1', '"schema": 2'))
    for arguments in (["run", config, "--out", out], ["plot", out / "own"], ["plot", out]):
        sentence = refused(arguments)
        assert "newer precbench (schema 2, this one knows 1): update precbench" in sentence


# --- reproduce ---


def test_reproduce_runs_what_decides_and_prints_the_verdicts(isolated, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ("reproduce", "kar2015/counterexample", "--out", tmp_path)
    planned = invoke(*arguments, "--dry-run")
    assert planned.exit_code == 0 and not list(tmp_path.iterdir())
    assert "counterexample: 4 claims; 4 trials to run, about 1 s" in planned.output
    found = json.loads(invoke(*arguments, "--json").stdout)
    assert [run["cached"] for run in found["runs"]] == [0]
    assert [row["verdict"] for row in found["ledger"]] == ["reproduced"] * 4
    done = invoke("reproduce", "counterexample", "--out", tmp_path)  # by the data set
    assert done.exit_code == 0 and "4 claims; 0 trials to run" in done.output
    assert done.output.count("  reproduced  ") == 4 and "suboptimal" in done.output


def test_reproduce_says_how_to_bring_what_is_missing(cache, tmp_path):
    reason = refused(("reproduce", "kdd08", "--out", tmp_path), code=3)
    assert "precbench data add kdd08 FILES, with Features.txt and Info.txt" in reason
    paper = invoke("reproduce", "kar2015", "--dry-run", "--out", tmp_path)
    assert paper.exit_code == 0
    for name in ("kdd08", "ppi", "covtype", "letter"):
        assert f"left out: {name}. " in paper.output
    assert "kar2015/bounds: 5 claims; a study" in paper.output
    assert "kar2015/section-6" not in paper.output


def test_reproduce_takes_the_part_that_has_claims(isolated, mirror, tmp_path):
    planned = invoke("reproduce", "letter", "--dry-run", "--jobs", "2", "--out", tmp_path).output
    sentences = dict(line.split(": ", 1) for line in planned.splitlines() if "claim" in line)
    assert "120 trials" in sentences["kar2015/section-6, letter"]  # six solvers, 20 splits
    assert "one at a time" in sentences["kar2015/section-6, letter"]
    assert "one at a time" not in sentences["kar2015/kappa-extension, letter"]
    assert "1 trial to run" in sentences["letter, letter"]  # its claims are counts of the data


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("leter", "neither a data set nor a paper nor a config.*did you mean 'letter'"),
        ("german-numer", "neither a data set"),
        ("magic-x", "neither"),
        ("rudin2009/derivative", "no claim is about rudin2009/derivative"),
    ],
)
def test_invalid_targets_of_reproduce(target, what):
    assert re.search(what, refused(("reproduce", target)))


# --- validate, doctor, data clean ---


def test_validate_tells_all_mistakes_of_all_configs(small, tmp_path):
    small()
    shutil.copy(tmp_path / "small.yaml", tmp_path / "other.yaml")
    small(metrics="[aucc]", protocol="{n_split: 2}")
    result = invoke("validate", tmp_path / "small.yaml", tmp_path / "other.yaml", "letter")
    assert result.exit_code == 2
    assert "protocol.n_split: unknown key (did you mean 'n_splits'?)" in result.stderr
    assert "metrics[0].aucc: unknown metric 'aucc' (did you mean 'auc'?)" in result.stderr
    assert result.stdout.splitlines() == [
        f"{tmp_path / 'other.yaml'}: 6 trials (3 solvers, 2 splits)",
        "letter: 70 trials (14 solvers, 5 splits)",
    ]
    claims = Path("configs/kar2015/counterexample.published.yaml").resolve()
    assert re.search(r": \d\d? claims$", invoke("validate", claims).stdout.strip())
    wrong = tmp_path / "wrong.published.yaml"
    wrong.write_text(claims.read_text().replace("printed:", "prnted:", 1))
    assert "prnted: appendix-a/rows: unknown key" in refused(["validate", wrong])
    [about] = json.loads(invoke("validate", "kar2015/laws", "--json").stdout)
    assert about == {"config": "kar2015/laws", "says": "a study, precision-laws", "mistakes": []}


def test_doctor_tells_what_works_and_what_does_not(cache, tmp_path, monkeypatch):
    sound = invoke("doctor")
    assert sound.exit_code == 0 and sound.stdout.endswith("everything works\n")
    assert str(tmp_path) not in sound.stdout and str(Path.home()) not in sound.stdout
    monkeypatch.setenv("PRECBENCH_MIRROR", str(tmp_path / "no"))
    monkeypatch.setitem(sys.modules, "precbench.kernels.push", None)
    broken = invoke("doctor", "--json")
    assert broken.exit_code == 1
    assert json.loads(broken.stdout)["wrong"] == ["kernels", "mirror"]


def test_clean_keeps_what_cannot_be_made_again(cache):
    cache, files = cache.parent, cache / "kdd08"
    prepared = cache / "prepared" / "toy-0"
    for folder in (prepared, files):
        folder.mkdir(parents=True)
    made = [prepared / "X.npy", files / "Info.txt.rejected", files / ".a.1.tmp"]
    added = [files / "Info.txt", files / ".Info.txt.json"]
    for path in (*made, *added):
        path.write_text("12345")
    kept = {path for path in cache.rglob("*") if path.is_file()}
    told = json.loads(invoke("data", "clean", "--dry-run", "--json").stdout)
    assert told["bytes"] == 15 and kept == {path for path in cache.rglob("*") if path.is_file()}
    assert invoke("data", "clean").stdout.endswith("3 removed, 15 bytes\n")
    assert {path for path in cache.rglob("*") if path.is_file()} == set(added)
    invoke("data", "clean", "kdd08")
    assert not [path for path in cache.rglob("*") if path.is_file()]
    assert "did you mean 'letter'" in refused(["data", "clean", "leter"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("run lett", {"letter"}),
        ("run kar2015/se", {"kar2015/section-6"}),
        (
            "run top/adult letter --skip sgd-avg,",
            {"sgd-avg, k = n_pos", "sgd-avg, random features"},
        ),
        ("fit rows.csv --solver hist", {"hist-gradient-boosting"}),
        ("data info cov", {"covtype"}),
    ],
)
def test_a_shell_completes_names(words, found):
    line = f"precbench {words}"
    shell = {"_PRECBENCH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    result = CliRunner().invoke(app, [], prog_name="precbench", env=shell)
    said = re.findall(r'"([^"]+)"', result.output)
    assert {text.replace("\\", "") for text in said} == found

"""Drift.

Whether new rows still look like the training rows, and which are listed again.
"""

import json
from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import precbench
from precbench.model.drift import Drift, Profile, _Bins, describe_drift, psi
from precbench.model.model import Model
from precbench.ranking.topk import HeldOut
from precbench.tables.encoding import Column, Encoding
from precbench.tables.own_file import read_own_file
from precbench.tables.own_table import table_of
from tests.helpers import invoke, succeed
from tests.sentences import names, refused, tells

FIT = ["--label", "y", "--id", "id", "--categorical", "one-hot", "--missing", "median"]
FIT += ["--splits", "2"]
READING = {"label": "y", "id": ["id"], "categorical": "one-hot", "missing": "median"}


def drawn(n, seed):
    """Numbers with and without ties, dates, common and rare categories, gaps."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"id": np.arange(n), "amount": rng.lognormal(3, 1, n).round(2)}
    )
    table["visits"] = rng.poisson(1, n)
    table["refund"] = -np.where(rng.random(n) < 0.9, 0, rng.exponential(1, n))
    days = pd.to_timedelta(rng.integers(0, 2000, n), unit="D")
    table["since"] = (pd.Timestamp("2019-01-01") + days).astype(str)
    chances = 1 / np.arange(1, 91)
    table["city"] = [f"city {i}" for i in rng.choice(90, n, p=chances / chances.sum())]
    table["rare"] = rng.choice(["a", "b", "c"], n, p=[0.95, 0.0495, 0.0005])
    table["gappy"] = np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n))
    chance = np.log(table["amount"]) - 3 + table["visits"] + rng.logistic(0, 1, n)
    table["y"] = (chance > 2.5).astype(int)
    return table


def changed(table):
    """One column in other units, one ten years on, a new category, more gaps."""
    dates = pd.to_datetime(table["since"]) + pd.DateOffset(years=10)
    return table.assign(
        amount=table["amount"] * 100,
        since=dates.dt.date.astype(str),
        city=table["city"].where(table.index % 4 > 0, "elsewhere"),
        gappy=table["gappy"].where(table.index % 2 > 0),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with training rows, new ones, and a model of trees."""
    place = tmp_path_factory.mktemp("drift")
    drawn(3000, 0).to_csv(place / "old.csv", index=False)
    new = drawn(1000, 1).drop(columns="y")
    new.to_csv(place / "new.csv", index=False)
    changed(new).to_csv(place / "other.csv", index=False)
    trees = ["--solver", "extra-trees", "--param", "n_estimators=30"]
    succeed("fit", place / "old.csv", *FIT, *trees, "--save", place / "trees.npz")
    return place


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def learnt(folder):
    dataset, encoding = read_own_file(folder / "old.csv", **READING)
    lists = [np.random.default_rng(0).standard_normal(900)]
    return Profile.learn(dataset.X, encoding, dataset.imputed, lists), encoding


def found_in(table, learnt, rows_at_once=None):
    """Compare a table block by block; its scores are normal."""
    profile, encoding = learnt
    drift = Drift(profile, encoding)
    scores = np.random.default_rng(int(table["amount"].sum())).standard_normal(
        len(table)
    )
    length = rows_at_once or len(table)
    for start in range(0, len(table), length):
        block = table[start : start + length]
        drift.add(
            encoding.encode(block, gaps=drift.gaps), scores[start : start + length]
        )
    return drift.summary()


def drifted(summary):
    return {
        column["name"]
        for column in [*summary["columns"], summary["scores"]]
        if column["drift"]
    }


# --- the index ---


def test_psi_by_hand():
    """0.5 and 0.5 of 10 rows, 0.9 and 0.1 of 20; half a row of each is 0.075."""
    expected = 0.4 * log(0.975 / 0.575) - 0.4 * log(0.175 / 0.575)
    assert psi([5, 5], [18, 2]) == pytest.approx(expected)
    assert psi([3, 1], [300, 100]) == 0
    assert psi([1e9, 1e9], [1.8e9, 2e8]) == pytest.approx(0.4 * log(0.9 / 0.1))


# --- bins ---


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        pytest.param(
            np.arange(1, 101),
            [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
            id="1 to 100",
        ),
        pytest.param([0] * 95 + [1] * 5, [0, 0, 1], id="zeros and ones"),
        pytest.param([-1] * 5 + [0] * 95, [-1, -1, 0], id="minus ones and zeros"),
        pytest.param([7.5] * 9, [7.5, 7.5], id="one value"),
        pytest.param([0.0, 0.5], [0, 0, 0.5], id="two values"),
    ],
)
def test_bins_by_hand(values, edges):
    values = np.array(values, dtype=float)
    bins = _Bins.learn(values[:, None], Column("x"))
    assert bins.edges == edges
    borders = pairwise(edges)
    inner = [
        np.count_nonzero((values > a if i else values >= a) & (values <= b))
        for i, (a, b) in enumerate(borders)
    ]
    assert bins.counts == [0, *inner, 0]
    new = np.array([[edges[0] - 1e-9], [edges[0]], [edges[-1]], [edges[-1] + 1e-9]])
    counts = bins.counted(new)
    assert counts[0] == 1
    assert counts[-1] == 1
    assert counts.sum() == 4


def test_the_profile_counts_what_the_table_holds(folder, learnt):
    table, (profile, encoding) = pd.read_csv(folder / "old.csv"), learnt
    columns = dict(
        zip([c.name for c in encoding.columns], profile.columns, strict=True)
    )
    assert profile.rows == 3000
    assert columns["city"].counts == table["city"].value_counts().sort_index().tolist()
    gaps = int(table["gappy"].isna().sum())
    assert columns["gappy"].gaps == gaps > 200
    assert sum(columns["gappy"].counts) == 3000 - gaps
    amounts = columns["amount"]
    assert (amounts.edges[0], amounts.edges[-1]) == (
        table["amount"].min(),
        table["amount"].max(),
    )
    assert max(amounts.counts) < 320


def test_filled_values_are_in_no_bin():
    table = pd.DataFrame({"x": [1.0, 2, 2, 3, None], "c": ["a", "b", "b", None, "a"]})
    encoding = Encoding.learn(table_of(table), ["x", "c"], "one-hot", "most-frequent")
    imputed = encoding.imputed(table, "most-frequent")
    profile = Profile.learn(encoding.encode(table), encoding, imputed, [np.arange(5.0)])
    x, c = profile.columns
    assert x.edges == [1, 1, 2, 3]
    assert x.counts == [0, 1, 2, 1, 0]
    assert x.gaps == 1
    assert (c.counts, c.gaps) == ([2, 2], 1)
    drift = Drift(profile, encoding)
    drift.add(encoding.encode(table, gaps=drift.gaps), np.arange(5.0))
    assert [column["psi"] for column in drift.summary()["columns"]] == pytest.approx(
        [0, 0]
    )
    lists = [np.arange(5.0), np.arange(5.0) ** 2]
    two = Profile.learn(encoding.encode(table), encoding, imputed, lists)
    counts = [two.scores.counted(column[:, np.newaxis]) for column in lists]
    assert two.between == pytest.approx(psi(*counts))
    assert two.between > 0


# --- what is found ---


@pytest.mark.parametrize(("n", "times"), [(50, 40), (1000, 10), (20_000, 1)])
def test_rows_of_the_same_kind_are_hardly_ever_drifted(learnt, n, times):
    """A list in 500 by the limits; more than that in `times` lists is no chance."""
    sentences = [
        describe_drift(found_in(drawn(n, 1000 + i), learnt)) for i in range(times)
    ]
    n_false = sum(
        sentence != "no drift in 7 columns and the scores" for sentence in sentences
    )
    assert n_false <= binom.ppf(0.999, times, 1 / 500)


def test_new_categories_are_expected_where_many_are_rare():
    """Each second row has one of 400 categories, of which 200 rows cannot show most."""

    def cities(n, seed):
        rng = np.random.default_rng(seed)
        rare = [f"city {i}" for i in rng.integers(400, size=n)]
        return pd.DataFrame({"city": np.where(rng.random(n) < 0.5, "home", rare)})

    encoding = Encoding.learn(table_of(cities(200, 0)), ["city"], "one-hot")
    scores = np.arange(1000.0)
    profile = Profile.learn(encoding.encode(cities(200, 0)), encoding, None, [scores])
    for n, seed in ((50, 1), (1000, 2)):
        drift = Drift(profile, encoding)
        drift.add(
            encoding.encode(cities(n, seed), gaps=drift.gaps), scores[:: 1000 // n]
        )
        summary = drift.summary()
        assert summary["columns"][0]["bins"][-2]["new"] > 0.3
        assert not summary["drift"]


@pytest.mark.parametrize("n", [100, 10_000])
def test_what_was_changed_is_found(learnt, n):
    summary = found_in(changed(drawn(n, 1)), learnt)
    assert summary["drift"]
    assert drifted(summary) == {"amount", "since", "city", "gappy"}
    columns = {column["name"]: column for column in summary["columns"]}
    assert columns["since"]["outside"] > 0.99
    assert columns["city"]["new_categories"] == ["elsewhere"]
    new = columns["city"]["bins"][-2]
    assert (new["values"], new["new"]) == ("new categories", 0.25)
    assert new["training"] < 0.01


def test_a_range_that_is_left_by_few_is_found(learnt):
    """Where the shares hardly change.

    2 % of the rows have ten times the highest amount.
    """
    table = drawn(1000, 1)
    table.loc[:19, "amount"] = 10 * learnt[0].columns[0].edges[-1]
    summary = found_in(table, learnt)
    assert drifted(summary) == {"amount"}
    assert summary["columns"][0]["psi"] < 0.1
    assert summary["columns"][0]["outside"] == pytest.approx(0.02, abs=2e-3)
    table.loc[:19, "amount"] = table["amount"].median()
    table.loc[:4, "amount"] = 10 * learnt[0].columns[0].edges[-1]
    assert not found_in(table, learnt)["drift"]


def test_blocks_are_compared_as_the_whole(learnt):
    table = changed(drawn(401, 1))
    assert found_in(table, learnt, 40) == found_in(table, learnt)


# --- models ---


def noise(n, seed, d=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 2 * rng.standard_normal(n) > 1, 1.0, -1.0)


@pytest.mark.parametrize("solver", ["extra-trees", "perceptron-avg"])
def test_new_scores_are_no_drift(solver):
    """Neither of trees, which know their training rows, nor of weights that grow with
    the rows.
    """
    (X, y), (new, _) = noise(1500, 0), noise(2000, 1)
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=y)
    few = {"n_estimators": 30} if solver == "extra-trees" else {}
    model = precbench.fit(table, label="y", k=50, solver=solver, params=few, n_splits=2)
    drift = model.drift()
    drift.add(new, model.decision_function(new))
    summary = drift.summary()
    assert summary["scores"]["psi"] < 0.1
    assert len(summary["columns"]) == 5
    assert describe_drift(summary) == "no drift in 5 columns and the scores"
    if solver == "extra-trees":
        drift = model.profiled(X, [HeldOut(y, model.decision_function(X))]).drift()
        drift.add(X, model.decision_function(new))
        assert drift.summary()["scores"]["psi"] > 0.25


def test_sparse_rows_have_their_scores_compared(tmp_path):
    X, y = noise(300, 0)
    lines = [
        f"{label:g} 1:{row[0]} 9000:{row[1]}\n" for label, row in zip(y, X, strict=True)
    ]
    (tmp_path / "rows.svm").write_text("".join(lines))
    precbench.fit(tmp_path / "rows.svm").save(tmp_path / "m.npz")
    score = ["score", tmp_path / "m.npz", tmp_path / "rows.svm", "--top", "9"]
    assert (
        "no drift in the scores"
        in succeed(*score, "--drift", tmp_path / "drift.json").stderr
    )


def test_a_model_without_a_profile_scores_without_drift(here, tmp_path):
    model = Model.load("trees.npz")
    assert model.profile.rows == 3000
    assert sum(model.profile.scores.counts) == pytest.approx(900)
    replace(model, profile=None).save(tmp_path / "plain.npz")
    succeed("score", tmp_path / "plain.npz", "new.csv", "--top", "1")
    options = ["--drift", tmp_path / "drift.json"]
    refused(["score", tmp_path / "plain.npz", "new.csv", *options], "precbench fit")
    assert not (tmp_path / "drift.json").exists()


# --- the command ---


def test_drift_is_written_and_told(here, tmp_path):
    options = ["--drift", tmp_path / "drift.json", "--top", "2"]
    result = succeed("score", "trees.npz", "other.csv", *options)
    names(
        result.stderr,
        "drift: amount PSI outside since 2019-01-01 city categories gappy gaps",
    )
    summary = json.loads((tmp_path / "drift.json").read_text())
    assert (summary["rows"], summary["training_rows"], summary["drift"]) == (
        1000,
        3000,
        True,
    )
    assert {"amount", "since", "city", "gappy"} <= drifted(summary)
    printed = json.loads(
        invoke("score", "trees.npz", "other.csv", *options, "--json").stdout
    )
    assert printed["drift"] == summary
    assert printed["last"] is None
    assert printed["hits"].keys() == {"mean", "low", "high"}
    plain = json.loads(
        invoke("score", "trees.npz", "other.csv", "--top", "2", "--json").stdout
    )
    assert plain == printed["list"]


def test_strict_ends_with_5_and_writes_the_list(here, tmp_path):
    options = ["--top", "3", "--drift", tmp_path / "drift.json", "--strict"]
    plain = invoke("score", "trees.npz", "other.csv", "--top", "3").stdout
    for name, code in (("new.csv", 0), ("other.csv", 5)):
        result = invoke(
            "score", "trees.npz", name, *options, "--out", tmp_path / "list.csv"
        )
        assert result.exit_code == code
    assert (tmp_path / "list.csv").read_text() == plain
    assert invoke("score", "trees.npz", "other.csv", *options).stdout == plain
    assert invoke("score", "trees.npz", "other.csv", *options[:-1]).exit_code == 0


@pytest.mark.parametrize(
    "suffix", ["csv", pytest.param("parquet", marks=pytest.mark.extras("pyarrow"))]
)
def test_the_last_list_by_hand(here, tmp_path, suffix):
    """Four of the last six are among the five: 4 of 7."""
    new = pd.read_csv("new.csv").head(40).astype({"id": str})
    # zeros, and what looks like a formula
    new["id"] = [f"=0{i:02d}" for i in range(40)]
    new.to_csv(tmp_path / "new.csv", index=False)
    score = ["score", "trees.npz", tmp_path / "new.csv", "--id", "id"]
    whole = pd.DataFrame(json.loads(invoke(*score, "--json").stdout))
    last = whole.iloc[[0, 1, 3, 4, 20, 30]]
    if suffix == "parquet":
        last.to_parquet(tmp_path / "last.parquet")
    else:
        last.to_csv(tmp_path / f"last.{suffix}", index=False)
    options = ["--last", tmp_path / f"last.{suffix}", "--top", "5"]
    result = succeed(*score, *options)
    tells(result.stderr, "4 of 5 6 0.57")
    printed = json.loads(invoke(*score, *options, "--json").stdout)
    assert printed["last"] == {"listed": 5, "before": 6, "again": 4, "jaccard": 4 / 7}
    assert (
        json.loads(invoke(*score[:3], *options, "--json").stdout)["last"]
        == printed["last"]
    )
    succeed(*score, *options, "--out", tmp_path / f"last.{suffix}")  # in its place
    result = succeed(*score, *options)
    tells(result.stderr, "5 of 5 1.00")


def test_invalid_options(here):
    (here / "none").mkdir(exist_ok=True)
    (here / "empty.csv").write_text("rank,row,score\n")
    for options, places in [
        (["--strict"], "--strict --drift"),
        (["--drift", "drift.txt"], "--drift .json"),
        (["--drift", "nowhere/drift.json"], "--drift nowhere"),
        (["--last", "nowhere.csv"], "nowhere.csv"),
        (["--last", "none"], "none"),
        (["--last", "trees.npz"], "trees.npz CSV"),
        (["--last", "old.csv"], "old.csv 'row'"),
        (["--last", "empty.csv"], "empty.csv"),
        (["--last", "list.xlsx"], "list.xlsx"),
    ]:
        refused(["score", "trees.npz", "new.csv", "--top", "3", *options], places)

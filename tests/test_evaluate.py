"""A saved model on new labelled rows: its hits, what it promised, and another model."""

import json
import re
from math import comb

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from precbench.model.model import Model
from precbench.model.training_rows import TrainingRows
from precbench.ranking.metrics import auc
from precbench.tables.own_file import read_own_file
from tests.helpers import invoke, succeed
from tests.sentences import names, refused

LABELS = ["--label", "y", "--positive", "yes"]
FIT = [*LABELS, "--splits", "3", "--k", "40"]


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((n, 3)).round(3), columns=["a", "b", "c"])
    chance = 2 * table["a"] + table["b"] + rng.logistic(0, 1, n)
    return table.assign(y=np.where(chance > 3, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with new rows, a good model, and another that lacks the best column."""
    place = tmp_path_factory.mktemp("evaluate")
    drawn(1000, 0).to_csv(place / "old.csv", index=False)
    drawn(1000, 1).to_csv(place / "new.csv", index=False)
    fit = ["fit", place / "old.csv", *FIT, "--solver", "logistic-regression"]
    succeed(*fit, "--save", place / "good.npz")
    succeed(*fit, "--drop", "a", "--save", place / "poor.npz")
    return place


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def evaluated(*options, file="new.csv"):
    return json.loads(
        succeed("evaluate", "good.npz", file, *LABELS, *options, "--json").stdout
    )


def listed(model, n, file="new.csv"):
    """Return the rows of a list, from 0."""
    rows = json.loads(succeed("score", model, file, "--top", n, "--json").stdout)
    return {row["row"] - 1 for row in rows}


def test_hits_are_those_of_the_list(here):
    table = pd.read_csv("new.csv")
    evaluation = evaluated("--k", "60")
    is_hit = table["y"] == "yes"
    hits = sum(is_hit[row] for row in listed("good.npz", 60))
    assert (evaluation["rows"], evaluation["positives"]) == (1000, is_hit.sum())
    assert evaluation["k"] == 60
    assert evaluation["hits"] == hits
    assert evaluation["precision"] == hits / 60
    scores = Model.load("good.npz").decision_function(table)
    assert evaluation["auc"] == auc(np.where(is_hit, 1, -1), scores)
    assert evaluated()["k"] == 40
    assert evaluated("--k", "2 %")["k"] == 20
    assert evaluated("--k", "0.5")["k"] == np.ceil(is_hit.sum() / 2)


def test_what_was_promised_is_what_score_expects(here):
    evaluation = evaluated()
    expected = succeed("score", "good.npz", "new.csv", "--top", "40").stderr
    text = (
        "expect about {mean:,.1f} hits among the listed rows ({low:,.0f} to"
        " {high:,.0f} in"
    )
    assert text.format(**evaluation["promised"]) in expected
    assert evaluation["verdict"] == "kept"
    length = Model.load("good.npz").about["length"]["curve"]
    at = length["length"].index(40)
    assert evaluation["precision_when_fitted"] == pytest.approx(length["precision"][at])


def test_broken_promises(here, tmp_path):
    """Of rows whose labels do not follow the scores, and of many more hits."""
    table = drawn(1000, 2)
    for is_hit, verdict in ((table.index % 9 == 0, "fewer"), (table["a"] > -1, "more")):
        table.assign(y=np.where(is_hit, "yes", "no")).to_csv(
            tmp_path / "rows.csv", index=False
        )
        assert evaluated("--k", "100", file=tmp_path / "rows.csv")["verdict"] == verdict


def test_half_of_a_list_is_promised_half_of_the_hits(here, tmp_path):
    """The same share of the rows had this precision."""
    drawn(500, 1).to_csv(tmp_path / "half.csv", index=False)
    half = evaluated("--k", "20", file=tmp_path / "half.csv")
    assert half["precision_when_fitted"] == evaluated()["precision_when_fitted"]


def fisher(own, others, n):
    """Return the share of divisions of the hits that are no more probable than this
    one.
    """
    both = own + others
    ways = [comb(n, i) * comb(n, both - i) for i in range(both + 1)]
    return sum(way for way in ways if way <= ways[own] * (1 + 1e-7)) / sum(ways)


def test_another_model_by_hand(here):
    is_hit = pd.read_csv("new.csv")["y"] == "yes"
    good, poor = listed("good.npz", 40), listed("poor.npz", 40)
    own, others = (
        sum(is_hit[row] for row in rows) for rows in (good - poor, poor - good)
    )
    against = evaluated("--against", "poor.npz")["against"]
    assert against["hits"] == sum(is_hit[row] for row in poor)
    assert against["rows"] == len(good - poor)
    assert against["own"] == own
    assert against["others"] == others
    assert against["p"] == pytest.approx(fisher(own, others, len(good - poor)))
    assert against["p"] < 0.05
    assert own > others
    for model, other, words in (
        ("good.npz", "poor.npz", "significantly more"),
        ("poor.npz", "good.npz", "significantly fewer"),
        ("good.npz", "good.npz", "no significant difference (p = 1)"),
    ):
        assert (
            words
            in succeed("evaluate", model, "new.csv", *LABELS, "--against", other).stdout
        )


def test_files_without_names(here, tmp_path):
    table, path = drawn(600, 3), tmp_path / "rows.svm"
    X, is_hit = table[["a", "b", "c"]].to_numpy(), table["y"] == "yes"
    dump_svmlight_file(X, np.where(is_hit, 1, -1), str(path), zero_based=False)
    succeed(
        "fit", path, "--solver", "logistic-regression", "--save", tmp_path / "m.npz"
    )
    evaluation = json.loads(
        succeed("evaluate", tmp_path / "m.npz", path, "--k", "30", "--json").stdout
    )
    assert evaluation["hits"] == sum(
        is_hit[row] for row in listed(tmp_path / "m.npz", 30, path)
    )
    assert evaluation["positives"] == is_hit.sum()


def test_labels_are_those_of_fit(here, monkeypatch):
    """Also where they are read in pieces."""
    from precbench.tables import own_file

    monkeypatch.setattr(own_file, "_MOST_ROWS", 7)
    expected = read_own_file("new.csv", label="y", positive="yes")[0].y
    assert np.array_equal(own_file.read_labels("new.csv", "y", "yes"), expected)


@pytest.mark.usefixtures("in_this_process")
def test_label_and_positive_labels_are_by_default_those_of_the_model(here, tmp_path):
    file, model, n_pos = (
        tmp_path / "s.csv",
        tmp_path / "m.npz",
        drawn(600, 3)["y"].value_counts(),
    )
    turned = drawn(600, 3).assign(y=lambda rows: np.where(rows["y"] == "yes", 0, 1))
    turned.to_csv(file, index=False)
    for command in (
        ["fit"],
        ["compare", "--solver", "logistic-regression", "--out", tmp_path],
    ):
        succeed(
            *command,
            file,
            *FIT[:2],
            "--positive",
            "0",
            "--splits",
            "2",
            "--save",
            model,
        )
        names(succeed("show", model).stdout, "label: y positive: 0")
        for options, name in ([], "yes"), (["--label", "y", "--positive", "1"], "no"):
            names(
                succeed("evaluate", model, file, *options).stdout,
                f"rows {n_pos[name]} positive",
            )


def test_the_decimal_mark_is_that_of_the_model(here, tmp_path):
    (file := tmp_path / "s.csv").write_text(
        "x;y\n" + "2.278;0\n2.278;1\n1.760;0\n" * 20
    )
    succeed(
        "fit",
        file,
        *FIT[:2],
        "--decimal",
        ",",
        "--splits",
        "1",
        "--save",
        tmp_path / "m.npz",
    )
    names(succeed("evaluate", tmp_path / "m.npz", file).stdout, "60 rows")


def test_invalid_options(here):
    Model.fit(np.eye(4), [1, -1, 1, -1]).save("arrays.npz")
    for arguments, places in [
        (["none.npz", "new.csv", *LABELS], "none.npz"),
        (["arrays.npz", "new.csv", *LABELS], "arrays.npz"),
        (["good.npz", "new.csv", "--label", "y", "--positive", "oui"], "new.csv 'oui'"),
        (["good.npz", "new.csv", "--label", "z"], "new.csv 'z'"),
        (["good.npz", "new.csv", "--label", "y", "--positive", "ja"], "new.csv 'ja'"),
        (["good.npz", "new.csv", *LABELS, "--k", "1001"], "1001"),
        (["good.npz", "new.csv", *LABELS, "--against", "new.csv"], "new.csv"),
    ]:
        refused(["evaluate", *arguments], places)


def test_the_order_of_tied_rows_does_not_count(here, tmp_path):
    """Neither in hits nor against another model; what is tied is said."""
    table, file = drawn(600, 3).round({"a": 0, "b": 0, "c": 0}), tmp_path / "tied.csv"
    evaluations = []
    for rows in (
        table.sort_values("y"),
        table.sort_values("y", ascending=False),
        table,
    ):
        rows.to_csv(file, index=False)
        evaluations.append(evaluated("--k", "30", "--against", "poor.npz", file=file))
    assert evaluations[0] == evaluations[1] == evaluations[2]
    text = succeed("evaluate", "good.npz", file, *LABELS, "--k", "30").stdout
    scores = Model.load("good.npz").decision_function(table)
    shuffled = [np.random.default_rng(i).permutation(600) for i in range(4000)]
    is_hit = (table["y"] == "yes").to_numpy()
    means = [
        is_hit[r[np.argsort(-scores[r], kind="stable")[:30]]].sum() for r in shuffled
    ]
    assert evaluations[0]["hits"] == pytest.approx(np.mean(means), abs=0.05)
    assert not evaluations[0]["hits"].is_integer()
    assert "tied at the end" in text


@pytest.mark.parametrize(
    ("label", "verdict", "hits"),
    [
        pytest.param("no", "fewer", 0, id="no positive"),
        pytest.param("Yes", "fewer", 0, id="the positive in another case"),
        pytest.param("yes", "more", 40, id="positives alone"),
    ],
)
def test_a_month_without_hits_has_a_verdict(here, tmp_path, label, verdict, hits):
    """And one of hits only.

    The AUC alone is not defined. A job notices by the exit code.
    """
    drawn(200, 4).assign(y=label).to_csv(tmp_path / "june.csv", index=False)
    evaluation = evaluated("--k", "40", file=tmp_path / "june.csv")
    assert (evaluation["hits"], evaluation["verdict"], evaluation["auc"]) == (
        hits,
        verdict,
        None,
    )
    command = ["evaluate", "good.npz", tmp_path / "june.csv", *LABELS]
    done = invoke(*command, "--k", "40", "--fail-below", "5")
    assert done.exit_code == (5 if hits == 0 else 0)
    assert verdict in done.stdout
    assert ("letter case" in done.stderr) == (label == "Yes")
    # the name of the positive one may be wrong
    assert f"every label is {label}" in done.stderr
    # as the model has it
    assert invoke(*command[:-2], "--k", "40").stdout == done.stdout
    drawn(200, 4).assign(y="No").to_csv(tmp_path / "june.csv", index=False)
    none = invoke(*command, "--k", "0.5")
    assert none.exit_code == 2
    names(none.stderr.splitlines()[-1], "june.csv 0.5 --k")


def test_training_rows_are_named(here, tmp_path):
    """By score and evaluate, in any order and however many.

    Other rows that are equal are none.
    """
    old, new = pd.read_csv("old.csv"), pd.read_csv("new.csv")
    for n in (1, 250):
        file = tmp_path / "some.csv"
        pd.concat([old.tail(n), new.head(1000 - n)]).sample(frac=1).to_csv(
            file, index=False
        )
        sentence = f"{n} training row{'s' * (n > 1)} of this model among 1,000 rows"
        assert sentence in succeed("score", "good.npz", file, "--top", "5").stderr
        assert sentence in succeed("evaluate", "good.npz", file, *LABELS).stdout
    assert "training row" not in succeed("score", "good.npz", "new.csv").stderr
    few = {
        name: np.arange(1000) // step % 2
        for name, step in (("a", 1), ("b", 2), ("c", 4))
    }
    pd.DataFrame(few).assign(y=old["y"]).to_csv(tmp_path / "few.csv", index=False)
    succeed("fit", tmp_path / "few.csv", *FIT, "--save", tmp_path / "few.npz")
    assert (
        "training row"
        not in succeed("score", tmp_path / "few.npz", tmp_path / "few.csv").stderr
    )
    bare = tmp_path / "bare.npz"
    succeed(
        "fit", "old.csv", *FIT, "--solver", "sgd-avg", "--no-row-hashes", "--save", bare
    )
    assert "training row" not in succeed("score", bare, "old.csv").stderr
    assert not any(name.startswith("rows_") for name in np.load(bare))


def test_of_many_training_rows_a_sample_is_known(monkeypatch):
    """The share of a list that was trained on is right within its error."""
    monkeypatch.setattr("precbench.model.training_rows._MOST", 500)
    X = np.random.default_rng(0).standard_normal((20_000, 3))
    known = TrainingRows.learn(X)
    assert len(known.hashes) == 500
    assert known.sentence(known.count(X + 1), len(X)) is None
    sentence = known.sentence(known.count(X[:8000]), 16_000)
    count = re.match(r"about ([\d,]+) training rows", sentence)[1]
    assert abs(int(count.replace(",", "")) - 8000) < 1000

"""Why a row has its score, and which columns matter."""

import json
import shutil
from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from precbench import SOLVERS, Model
from precbench.advice.importance import Shuffling
from precbench.core.errors import InputError
from precbench.model.model import _can_be_kept
from precbench.model.reasons import reasons
from precbench.model.shapley import Contributions
from precbench.solvers.common.random_features import RandomFeatures
from precbench.solvers.others.members import Member
from precbench.solvers.others.trees import Tree, Trees
from precbench.tables.encoding import Column
from tests import laws
from tests.helpers import reloaded, succeed
from tests.sentences import raises, refused, tells
from tests.test_model import few

KEPT = sorted(name for name in SOLVERS.built_in if _can_be_kept(SOLVERS[name]()))
SCALINGS = ["standardise", "unit", "unit-norm", "standardise-unit-norm", "none"]


def brute_force(worth, n_columns):
    """Return the Shapley values of a game by its definition."""
    values = np.zeros(n_columns)
    for j in range(n_columns):
        others = [i for i in range(n_columns) if i != j]
        for size in range(n_columns):
            weight = (
                factorial(size) * factorial(n_columns - size - 1) / factorial(n_columns)
            )
            for known in combinations(others, size):
                values[j] += weight * (worth({*known, j}) - worth({*known}))
    return values


def random_tree(rng, n_features, depth):
    """Return a tree whose splits may repeat a feature on a path."""
    feature, value, right, cover = [], [], [], []

    def grow(depth, n_rows):
        node = len(feature)
        is_leaf = depth == 0 or n_rows < 2 or rng.random() < 0.15
        feature.append(-1 if is_leaf else int(rng.integers(n_features)))
        value.append(rng.standard_normal())
        right.append(0)
        cover.append(n_rows)
        if not is_leaf:
            n_left = int(rng.integers(1, n_rows))
            grow(depth - 1, n_left)
            right[node] = len(feature)
            grow(depth - 1, n_rows - n_left)

    grow(depth, 1000)
    kinds = (np.int32, np.float64, np.int32, np.float32)
    parts = zip((feature, value, right, cover), kinds, strict=True)
    return Tree(*(np.array(part, dtype=kind) for part, kind in parts))


def worth_of_tree(tree, x, column):
    """Return the game of a tree.

    An unknown column takes both sides, by their shares.
    """

    def worth(known, node=0):
        j = tree.feature[node]
        if j < 0:
            return tree.value[node]
        sides = [node + 1, tree.right[node]]
        if column[j] in known:
            return worth(known, sides[int(x[j] > tree.value[node])])
        shares = tree.cover[sides].astype(float)
        return shares @ [worth(known, side) for side in sides] / shares.sum()

    return worth


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("column", [[0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 2, 2], [0] * 6])
def test_shapley_values_of_trees_by_their_definition(seed, column, monkeypatch):
    if seed % 2:
        # point by point
        monkeypatch.setattr("precbench.model.shapley._VALUES_AT_ONCE", 1)
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 6, depth) for depth in (0, 2, 7)]
    X, column = rng.standard_normal((4, 6)), np.array(column, dtype=np.int32)
    n_columns = column.max() + 1
    member = Member("", trees=Trees.of(trees, 6, base=0.5), weight=2.0)
    contributions = Contributions.of([member], X, np.zeros(6), column, is_stacked=False)
    for x, values in zip(X, contributions.values, strict=True):
        games = [worth_of_tree(tree, x, column) for tree in trees]
        expected = sum(brute_force(game, n_columns) for game in games)
        np.testing.assert_allclose(values, 2 * expected, atol=1e-12)
        assert contributions.base == pytest.approx(
            2 * (0.5 + sum(game(set()) for game in games))
        )


@pytest.mark.parametrize("column", [[0, 1, 2, 3, 4], [0, 0, 1, 1, 2]])
def test_shapley_values_of_random_features_by_their_definition(column):
    rng = np.random.default_rng(0)
    features = RandomFeatures(rng.standard_normal((7, 5)) * 3, rng.random(7) * 6)
    coef, mean, X = (
        rng.standard_normal(7),
        rng.standard_normal(5),
        rng.standard_normal((3, 5)),
    )
    member = Member("", coef=coef, random_features=features)
    column = np.array(column, dtype=np.int32)
    contributions = Contributions.of([member], X, mean, column, is_stacked=False)

    def game(x):
        def worth(known):
            return member.scores(
                np.where(np.isin(column, [*known]), x, mean)[np.newaxis]
            )[0]

        return worth

    for x, values in zip(X, contributions.values, strict=True):
        np.testing.assert_allclose(
            values, brute_force(game(x), column.max() + 1), atol=1e-12
        )
        assert contributions.base == pytest.approx(game(x)(set()))
    with raises(InputError, "add up"):  # of the cosine of 1e15 hardly a digit is right
        Contributions.of([member], X * 1e15, mean, column, is_stacked=False)


def test_many_columns_of_random_features_add_up():
    rng = np.random.default_rng(0)
    features = RandomFeatures(rng.standard_normal((20, 300)), rng.random(20) * 6)
    member = Member("", coef=rng.standard_normal(20), random_features=features)
    X, column = rng.standard_normal((3, 300)), np.arange(300, dtype=np.int32)
    contributions = Contributions.of(
        [member], X, np.zeros(300), column, is_stacked=False
    )
    scores = contributions.values.sum(axis=1) + contributions.base
    np.testing.assert_allclose(scores, member.scores(X), rtol=0, atol=1e-9)


def rows(seed=0, n=120, d=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (1 + np.arange(d)) + 3
    y = np.where(X[:, 0] + 0.3 * X[:, 1] + rng.standard_normal(n) > 5, 1, -1)
    y[:2] = [1, -1]
    return X, y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("solver", "scaling"),
    [(name, SCALINGS[place % len(SCALINGS)]) for place, name in enumerate(KEPT)]
    + [(name, scaling) for name in ("sgd-avg", "extra-trees") for scaling in SCALINGS],
)
def test_contributions_add_up_to_the_score(solver, scaling, tmp_path):
    (X, y), new = rows(), rows(1)[0][:20]
    for fourier in [None, 8] if laws.is_linear(SOLVERS[solver]) else [None]:
        model = Model.fit(X, y, solver, scaling=scaling, fourier=fourier, **few(solver))
        explained = reloaded(model, tmp_path / "m.npz").explain(new)
        total = explained.sum(axis=1) + explained.attrs["base"]
        np.testing.assert_allclose(
            total, model.decision_function(new), rtol=1e-9, atol=1e-9
        )
        pd.testing.assert_frame_equal(
            explained, model.explain(new, n_jobs=3), check_exact=True
        )


@pytest.mark.parametrize(
    ("scaling", "layout"),
    [
        ("standardise", np.asarray),
        ("unit", np.asarray),
        ("none", np.asarray),
        ("none", csr_matrix),
    ],
)
def test_weights_have_a_closed_form(scaling, layout):
    """The change of the score by the change of the value from its mean, in units of the
    file.
    """
    X, y = rows()
    X *= np.abs(X) > 3
    model = Model.fit(layout(X), y, "logistic-regression", scaling=scaling)
    unit = np.eye(5)
    slopes = model.decision_function(layout(unit)) - model.decision_function(
        layout(0 * unit)
    )
    expected = (X - X.mean(axis=0)) * slopes
    np.testing.assert_allclose(model.explain(layout(X)).to_numpy(), expected, atol=1e-9)


def test_rows_divided_by_their_norms_are_compared_as_they_are_scored():
    X, y = rows()
    model = Model.fit(X, y, "logistic-regression", scaling="unit-norm")
    scaled = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = (scaled - scaled.mean(axis=0)) * model.coef
    np.testing.assert_allclose(model.explain(X).to_numpy(), expected, atol=1e-12)


def stump(feature, low, high, threshold=0.0):
    """Return a tree with one split, and as many training rows on either side."""
    parts = ([feature, -1, -1], [threshold, low, high], [2, 0, 0], [4, 2, 2])
    kinds = ("i4", "f8", "i4", "f4")
    return Tree(
        *(np.array(part, dtype=kind) for part, kind in zip(parts, kinds, strict=True))
    )


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        # the log odds of 3/4 by two equal columns
        pytest.param(
            [1.0, 1.0],
            [np.log(3) / 2, np.log(3) / 2],
            id="the log odds of 3/4 by two equal columns",
        ),
        # no change in all: by the slope of the log odds at 1/2, 4
        pytest.param(
            [1.0, -1.0],
            [0.5, -0.5],
            id="no change in all: by the slope of the log odds at 1/2, 4",
        ),
        pytest.param(
            [-1.0, -1.0],
            [-np.log(3) / 2, -np.log(3) / 2],
            id="the log odds of 1/4 by two equal columns",
        ),
    ],
)
def test_the_log_odds_of_a_forest_are_divided_like_its_probability(x, expected):
    trees = Trees.of([stump(j, 0.25, 0.75) for j in (0, 1)], 2, is_forest=True)
    column = np.arange(2, dtype=np.int32)
    member, X = Member("", trees=trees), np.array([x])
    contributions = Contributions.of([member], X, np.zeros(2), column, is_stacked=True)
    np.testing.assert_allclose(contributions.values, [expected], atol=1e-12)
    assert contributions.base == 0


def test_forests_compare_in_single_precision():
    trees = Trees.of([stump(0, 0.0, 1.0, threshold=0.1)], 1, is_forest=True)
    X = np.array([[0.1], [0.0999]])
    contributions = Contributions.of(
        [Member("", trees=trees)],
        X,
        np.zeros(1),
        np.zeros(1, dtype=np.int32),
        is_stacked=False,
    )
    assert (
        contributions.base + contributions.values.sum(axis=1)
    ).tolist() == trees.scores(X).tolist()
    assert contributions.values[0] > contributions.values[1]


@pytest.mark.parametrize(
    "solver",
    ["hist-gradient-boosting", "lightgbm", "extra-trees", "logistic-regression"],
)
def test_the_base_is_the_mean_score_of_the_training_rows(solver):
    """Of all trees that are grown on all rows."""
    X, y = rows(n=300)
    model = Model.fit(X, y, solver)
    base = model.explain(X).attrs["base"]
    assert base == pytest.approx(model.decision_function(X).mean(), abs=1e-6)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), "D")
    frame = pd.DataFrame(
        {
            "amount": rng.exponential(100, n).round(2),
            "city": rng.choice(["Oslo", "Rome", "Bern"], n),
            "since": days.strftime("%Y-%m-%d"),
            "noise": rng.standard_normal(n),
        }
    )
    score = (
        frame["amount"] / 100 + 2 * (frame["city"] == "Rome") + (days > "2022-01-01")
    )
    return frame, np.where(score + 0.3 * rng.standard_normal(n) > 3, 1, -1)


@pytest.mark.parametrize("solver", ["logistic-regression", "hist-gradient-boosting"])
def test_reasons_are_in_the_words_of_the_columns(solver):
    X, y = table()
    scaling = "standardise" if solver == "logistic-regression" else "none"
    model = Model.fit(X, y, solver, categorical="one-hot", scaling=scaling)
    explained = model.explain(X)
    assert list(explained) == ["amount", "city", "since", "noise"]
    encoded = model.encoding.encode(X)
    reasons_of_rows = list(reasons(model, list(encoded), 2))
    for i in (0, 7, int(np.argmax(model.decision_function(X)))):
        order = explained.iloc[i].sort_values(ascending=False, kind="stable")
        raising = order[order > 0][:2]
        lowering = order[order < 0].index[-1:]
        raises, lowers = reasons_of_rows[i]["raises"], reasons_of_rows[i]["lowers"]
        assert [reason["column"] for reason in raises] == list(raising.index)
        assert [reason["contribution"] for reason in raises] == list(raising)
        assert [reason["column"] for reason in lowers] == list(lowering)
        for reason in raises + lowers:
            value = X[reason["column"]][i]
            expected = value if isinstance(value, str) else f"{value:.4g}"
            assert reason["value"] == expected
    if solver == "logistic-regression":  # of all features of the column
        z = model.scaler.transform_in_place(encoded.copy())
        np.testing.assert_allclose(
            explained["city"], z[:, 1:4] @ model.coef[1:4], atol=1e-9
        )


@pytest.mark.parametrize(
    ("column", "features", "words"),
    [
        pytest.param(Column("a"), [1234567.8], "1234568", id="seven digits"),
        pytest.param(Column("a"), [-0.0123456], "-0.01235", id="four digits"),
        pytest.param(Column("a"), [9.99999], "10", id="rounded up"),
        pytest.param(Column("a"), [0.0], "0", id="zero"),
        pytest.param(Column("a"), [3e20], "3e+20", id="large"),
        pytest.param(Column("a", ("x", "y")), [0, 1], "y", id="a category"),
        pytest.param(
            Column("a", ("x", "y")), [0, 0], "(unknown)", id="an unknown category"
        ),
        pytest.param(
            Column("a", origin="2020-02-28"), [2.0], "2020-03-01", id="a date"
        ),
        pytest.param(
            Column("a", origin="2020-02-28"),
            [-1.25],
            "2020-02-26T18:00",
            id="a date before the origin, with a time",
        ),
    ],
)
def test_values_in_words(column, features, words):
    assert column.value_of(np.array(features, dtype=float)) == words


def test_sparse_rows_have_numbered_features():
    X, y = rows()
    [reasons_of_row] = reasons(
        Model.fit(csr_matrix(X), y, "logistic-regression"), [csr_matrix(X)[3]], 1
    )
    [same] = reasons(Model.fit(X, y, "logistic-regression"), [X[3]], 1)
    name = reasons_of_row["raises"][0]["column"]
    assert name == same["raises"][0]["column"]
    assert name.startswith("feature ")


def test_columns_without_effect_are_no_reasons():
    X = np.column_stack([rows()[0], np.full(120, 3.0)])
    model = Model.fit(X, rows()[1], "logistic-regression", scaling="standardise")
    [reasons_of_row] = reasons(model, [X[0]], 9)
    assert "feature 6" not in {
        each["column"] for each in reasons_of_row["raises"] + reasons_of_row["lowers"]
    }
    rounded = replace(model, coef=np.array([1, 1e-17, -1e-17, 0, 0, 0]))
    [reasons_of_row] = reasons(rounded, [X[np.argmax(X[:, 0])]], 9)
    assert [
        each["column"] for each in reasons_of_row["raises"] + reasons_of_row["lowers"]
    ] == ["feature 1"]


def test_what_cannot_be_explained(tmp_path):
    X, y = rows()
    mapped = Model.fit(
        X, y, "extra-trees", fourier=4, random_state=0, **few("extra-trees")
    )
    with raises(InputError):
        mapped.explain(X)
    with raises(InputError):
        Model.fit(X, y).explain(X[:, :2])
    with raises(InputError):
        replace(Model.fit(X, y), coef=np.full(5, 1e10)).explain(np.full_like(X, 1e308))


# --- score ---


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table and a model, to be copied."""
    folder = tmp_path_factory.mktemp("fitted")
    X, y = table()
    X.rename(columns={"amount": "=amount"}).assign(hit=y).to_csv(
        folder / "mine.csv", index=False
    )
    options = [
        "--label",
        "hit",
        "--categorical",
        "one-hot",
        "--save",
        folder / "top.npz",
    ]
    succeed("fit", folder / "mine.csv", *options, "--splits", 3)
    return folder


@pytest.fixture
def files(fitted, work_folder):
    return shutil.copytree(fitted, work_folder, dirs_exist_ok=True)


def test_score_gives_reasons(files):
    score = ["score", "top.npz", "mine.csv", "--top", 30, "--explain", 3]
    (files / "top.csv").write_text(succeed(*score).stdout)
    top = pd.read_csv("top.csv", keep_default_na=False)
    assert list(top)[3:] == ["raises_1", "raises_2", "raises_3", "lowers_1"]
    assert top["raises_1"][0].startswith("=amount = ")
    rows_of = json.loads(succeed(*score, "--json").stdout)
    for row, shown in zip(rows_of, top.to_dict("records"), strict=True):
        words = ["{column} = {value}".format(**reason) for reason in row["raises"]]
        assert [shown[f"raises_{i}"] for i in (1, 2, 3)] == [*words, "", "", ""][:3]


def test_missing_and_unknown_values_are_named(work_folder, monkeypatch):
    """And not what they were filled in with, in whatever block they come."""
    X, y = table()
    X.assign(hit=y, amount=X["amount"].mask(X.index % 9 == 0)).to_csv(
        "mine.csv", index=False
    )
    options = ["--label", "hit", "--categorical", "one-hot", "--missing", "median"]
    succeed(
        "fit",
        "mine.csv",
        *options,
        "--param",
        "max_iter=10",
        "--splits",
        2,
        "--save",
        "top.npz",
    )
    X.loc[::7, "amount"], X.loc[::5, "city"], X.loc[::3, "city"] = np.nan, None, "Paris"
    X.to_csv("new.csv", index=False)
    arguments = ["score", "top.npz", "new.csv", "--top", 100, "--explain", 4, "--json"]
    whole, seen = succeed(*arguments).stdout, set()
    words = (
        X[["amount", "city"]]
        .astype(object)
        .fillna("(missing)")
        .replace("Paris", "(unknown)")
    )
    for row in json.loads(whole):
        for reason in row["raises"] + row["lowers"]:
            if reason["column"] in words:
                expected = words[reason["column"]][row["row"] - 1]
                if isinstance(expected, float):
                    assert float(reason["value"]) == pytest.approx(expected, rel=1e-3)
                else:
                    assert reason["value"] == expected
                    seen.add((reason["column"], expected))
    assert seen >= {
        ("amount", "(missing)"),
        ("city", "(missing)"),
        ("city", "(unknown)"),
    }
    monkeypatch.setattr("precbench.tables.own_file._FEWEST_ROWS", 1)
    monkeypatch.setattr("precbench.tables.own_file._MOST_ROWS", 7)
    monkeypatch.setattr("precbench.model.reasons._VALUES_AT_ONCE", 1)
    assert succeed(*arguments).stdout == whole


def test_invalid_options_of_explain(files):
    refused(
        ["score", "top.npz", "mine.csv", "--top", "3", "--explain", "0"], "--explain"
    )
    refused(["score", "top.npz", "mine.csv", "--explain", "3"], "--explain")
    (files / "empty.csv").write_text("x\n")
    refused(["score", "top.npz", "empty.csv", "--top", "3", "--explain", "3"])


# --- importance ---


def test_importance_finds_the_columns_that_matter(files):
    shown = json.loads(succeed("show", "top.npz", "--json").stdout)["quality"][
        "importance"
    ]
    assert shown["splits"] == 3
    assert shown["rows"] == 120
    losses = {column["column"]: column for column in shown["columns"]}
    assert list(losses)[:2] in (["=amount", "city"], ["city", "=amount"])
    low_of_amount = losses["=amount"]["interval"][0]
    assert low_of_amount > 0
    low, high = losses["noise"]["interval"]
    assert low < 0 < high or abs(losses["noise"]["loss"]) < 0.05
    text = succeed("show", "top.npz").stdout.partition("Importance of the columns")[2]
    tells(text, f"=amount {losses['=amount']['loss']:.3f} {low_of_amount:.3f} to")


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
def test_importance_by_hand(layout):
    """The loss where the values of a column are those of other rows, by another way to
    them.
    """
    from sklearn.metrics import average_precision_score

    X, y = rows(n=400)
    X *= np.abs(X) > 2
    model = Model.fit(layout(X[:200]), y[:200], "logistic-regression")
    shuffling = Shuffling()
    shuffling.measure(model, layout(X[200:]), y[200:])
    importance = shuffling.importance(0.5)
    rng = np.random.default_rng(0)
    for sign in (1, -1):
        rng.permutation(np.flatnonzero(sign * y[200:] > 0))
    scores = X[200:] @ model.coef
    whole = average_precision_score(y[200:], scores)
    assert importance.average_precision == pytest.approx(whole)
    losses = {column.column: column.loss for column in importance.columns}
    for j in range(5):
        order = rng.permutation(200)
        if layout is csr_matrix:  # the value of a row goes to order[row]
            order = np.argsort(order)
        changed = scores + (X[200:][order, j] - X[200:, j]) * model.coef[j]
        loss = whole - average_precision_score(y[200:], changed)
        assert losses[f"feature {j + 1}"] == pytest.approx(loss, abs=1e-9)
    assert all(column.interval is None for column in importance.columns)
    assert list(losses.values()) == sorted(losses.values(), reverse=True)


def test_importance_measures_no_more_than_it_says(monkeypatch):
    """And nothing where there are more columns than it measures, and no explanation."""
    monkeypatch.setattr("precbench.advice.importance._MOST_ROWS", 60)
    monkeypatch.setattr("precbench.advice.importance._MOST_COLUMNS", 2)
    X, y = rows(n=400)
    model = Model.fit(X, y, "hist-gradient-boosting", max_iter=5)
    shuffling = Shuffling()
    for _ in range(2):
        shuffling.measure(model, X, y)
    importance = shuffling.importance(0.3)
    assert importance.rows == 60
    assert importance.positives == min(30, np.count_nonzero(y > 0))
    assert {column.column for column in importance.columns} == {
        "feature 1",
        "feature 2",
    }
    model = Model.fit(
        X, y, "extra-trees", fourier=4, random_state=0, **few("extra-trees")
    )
    shuffling = Shuffling()
    shuffling.measure(model, X, y)
    assert shuffling.importance(0.3) is None


def test_features_of_a_column_are_shuffled_together(monkeypatch):
    X, y = table()
    model = Model.fit(
        X, y, "logistic-regression", categorical="one-hot", scaling="standardise"
    )
    seen = []
    monkeypatch.setattr(
        Model, "decision_function", lambda self, rows: seen.append(rows) or rows[:, 0]
    )
    Shuffling(model.encoding).measure(model, model.encoding.encode(X), y)
    assert len(seen) == 1 + 4
    for rows_of in seen:
        assert (rows_of[:, 1:4].sum(axis=1) == 1).all()


@pytest.mark.parametrize("n", [1000, 1100])
def test_a_chain_of_splits_is_explained_up_to_a_depth(n, monkeypatch):
    """On as many columns: with fewer points than the polynomial has degrees."""
    # a few points at once
    monkeypatch.setattr("precbench.model.shapley._VALUES_AT_ONCE", 2**14)
    feature = np.full(2 * n + 1, -1, dtype=np.int32)
    feature[: 2 * n : 2] = np.arange(n)
    right = np.zeros(2 * n + 1, dtype=np.int32)
    right[: 2 * n : 2] = np.arange(2, 2 * n + 2, 2)
    value = np.where(feature < 0, np.arange(2.0 * n + 1), 0.0)
    cover = np.array([[n + 1 - i, 1] for i in range(n)], dtype=np.float32).ravel()
    tree = Tree(feature, value, right, np.append(cover, 1).astype(np.float32))
    trees = Trees.of([tree], n, base=0.0)
    X = np.random.default_rng(0).standard_normal((3, n))
    member = Member("", trees=trees)
    columns = np.arange(n, dtype=np.int32)
    if n > 1024:
        with raises(InputError, "1,024"):
            Contributions.of([member], X, np.zeros(n), columns, is_stacked=False)
        return
    contributions = Contributions.of(
        [member], X, np.zeros(n), columns, is_stacked=False
    )
    np.testing.assert_allclose(
        contributions.base + contributions.values.sum(axis=1),
        trees.scores(X),
        rtol=1e-9,
    )

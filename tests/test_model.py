"""A saved model ranks like the fitted one, ties keep the order of rows, bad files are
rejected.
"""

import copy
import dataclasses
import errno
import json
import os
import warnings
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.kernel_approximation import RBFSampler
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from precbench import SOLVERS, Model
from precbench.core.errors import InputError
from precbench.data.preprocess import Scaler
from precbench.model.model import _can_be_kept, make_solver
from precbench.ranking.topk import HeldOut
from precbench.results.store import Store
from precbench.runner.recorder import Recorder
from precbench.solvers import OnePMB
from precbench.solvers.others.wrapper import ranker_of
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import read_new_blocks, read_own_file
from tests import laws
from tests.helpers import reloaded, succeed
from tests.sentences import raises, warns

SCALINGS = ["standardise", "unit", "standardise-unit-norm", "none"]
LINEAR = sorted(name for name in SOLVERS if laws.is_linear(SOLVERS[name]))
TREES = sorted(
    name for name in SOLVERS.built_in if hasattr(SOLVERS[name](), "to_trees")
)
NONLINEAR = sorted(
    name
    for name in SOLVERS.built_in
    if name not in LINEAR and _can_be_kept(SOLVERS[name]())
)
LAYOUTS = {"dense": np.asarray, "csr": csr_matrix}


def labelled_rows(seed=0, n=80, d=5, density=0.6):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < density) * 1.0
    y = np.where(X[:, 0] + rng.standard_normal(n) > 1, 1, -1)
    y[:2] = [1, -1]
    return X, y


def new_rows():
    X, _y = labelled_rows(seed=1)
    return X


def few(solver):
    """Return parameters by which a solver has few trees, features or passes."""
    known = SOLVERS[solver]().get_params()
    sizes = {
        "n_estimators",
        "n_components",
        "max_iter",
        "min_samples_leaf",
        "min_child_samples",
    }
    if "C" in known:
        sizes.remove("max_iter")
    return dict.fromkeys(sorted(sizes & known.keys()), 5)


@dataclass
class Contents:
    """What the file of a model holds: arrays, and values of JSON beside them."""

    arrays: dict[str, np.ndarray]
    description: dict[str, Any]

    @classmethod
    def read(cls, path):
        with np.load(path) as file:
            arrays = dict(file)
        description = json.loads(str(arrays.pop("description")))
        return cls(arrays, description)

    def write(self, path):
        description = np.array(json.dumps(self.description))
        np.savez(path, **self.arrays, description=description)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The path of a saved model of weights."""
    path = tmp_path_factory.mktemp("model") / "m.npz"
    X, y = labelled_rows()
    Model.fit(X, y, scaling="standardise", epochs=2).save(path)
    return path


@pytest.fixture(scope="module")
def saved_trees(tmp_path_factory):
    """The path of a saved model of trees on random features."""
    path = tmp_path_factory.mktemp("trees") / "m.npz"
    X, y = labelled_rows()
    options = {"max_iter": 3, "fourier": 3, "random_state": 0, "scaling": "standardise"}
    Model.fit(X, y, "hist-gradient-boosting", min_samples_leaf=5, **options).save(path)
    return path


@pytest.mark.parametrize(
    ("layout", "scaling"),
    [
        *(("dense", scaling) for scaling in SCALINGS),
        ("csr", "unit"),  # no sparse rows are standardised
        ("csr", "none"),
    ],
)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), solver=st.sampled_from(LINEAR), k=st.floats(0.1, 1))
def test_a_saved_model_gives_the_same_ranking(
    tmp_path_factory, layout, scaling, seed, solver, k
):
    to_layout = LAYOUTS[layout]
    X, y = labelled_rows(seed)
    params = {"k": k} if "k" in SOLVERS[solver]().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Model.fit(to_layout(X), y, solver, scaling=scaling, **params)
    loaded = reloaded(model, tmp_path_factory.mktemp("saved") / "m.npz")
    assert loaded.solver == model.solver
    assert loaded.params == json.loads(json.dumps(model.params))
    other_rows, _labels = labelled_rows(seed + 1)
    for rows in (to_layout(X), to_layout(other_rows)):
        pd.testing.assert_frame_equal(
            loaded.rank(rows), model.rank(rows), check_exact=True
        )
        expected = model.decision_function(rows)
        assert loaded.decision_function(rows).tobytes() == expected.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", NONLINEAR)
def test_trees_give_the_scores_of_their_library(solver, layout, tmp_path):
    """To the bit, from a file that names no class: neither library is asked."""
    X, y = labelled_rows()
    X[:, -1] += np.random.default_rng(0).standard_normal(len(X))
    X = LAYOUTS[layout](X)
    model = Model.fit(X, y, solver, random_state=0, **few(solver))
    fitted = make_solver(solver, {"random_state": 0, **few(solver)}).fit(X, y)
    loaded = reloaded(model, tmp_path / "m.npz")
    assert len(np.unique(loaded.decision_function(X))) > 5
    for to_layout in LAYOUTS.values():
        rows = to_layout(new_rows())
        scores = fitted._scores(rows).tobytes()
        assert loaded.decision_function(rows).tobytes() == scores
        assert model.decision_function(rows).tobytes() == scores


@pytest.mark.parametrize("solver", TREES)
@pytest.mark.parametrize(
    ("factor", "trace"),
    [
        pytest.param(0.0, None, id="trees without a split"),
        pytest.param(1.0, lambda solver: True, id="no trees"),
    ],
)
def test_scores_of_trees_without_a_split_and_of_no_trees(solver, factor, trace):
    X, y = labelled_rows()
    fitted = make_solver(solver, few(solver)).fit(factor * X, y, trace=trace)
    expected = fitted.scores_after(X, fitted.n_iter_)
    assert fitted.to_trees().scores(X).tobytes() == expected.tobytes()


# --- random features ---

FOURIER = {"n_components": 7, "bandwidth": 2.0, "gamma": 0.3, "random_state": 3}
WITH_RANDOM_FEATURES = pytest.mark.parametrize(
    "solver", ["sgd-avg", "logistic-regression", "hist-gradient-boosting"]
)


def fitted_with_random_features(solver, layout):
    X, y = labelled_rows()
    scaling = "standardise" if layout == "dense" else "unit"
    return Model.fit(LAYOUTS[layout](X), y, solver, scaling=scaling, fourier=FOURIER)


@pytest.mark.parametrize("layout", LAYOUTS)
@WITH_RANDOM_FEATURES
def test_random_features_are_saved(solver, layout, tmp_path):
    model = fitted_with_random_features(solver, layout)
    loaded = reloaded(model, tmp_path / "m.npz")
    scores = loaded.decision_function(new_rows())
    assert scores.tobytes() == model.decision_function(new_rows()).tobytes()
    of_sparse_rows = loaded.decision_function(csr_matrix(new_rows()))
    np.testing.assert_allclose(of_sparse_rows, scores, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@WITH_RANDOM_FEATURES
def test_a_row_has_one_score_of_random_features_beside_whatever_others(
    solver, layout, tmp_path
):
    loaded = reloaded(fitted_with_random_features(solver, layout), tmp_path / "m.npz")
    rows = new_rows()
    scores = loaded.decision_function(rows)
    one_by_one = []
    for row in rows:
        one_by_one += loaded.decision_function(row[np.newaxis]).tolist()
    assert scores.tobytes() == np.array(one_by_one).tobytes()


@pytest.mark.parametrize(
    ("layout", "scaler"), [("dense", StandardScaler()), ("csr", MaxAbsScaler())]
)
@WITH_RANDOM_FEATURES
def test_random_features_are_those_of_scikit_learn(solver, layout, scaler, tmp_path):
    loaded = reloaded(fitted_with_random_features(solver, layout), tmp_path / "m.npz")
    X, _y = labelled_rows()
    sampler = RBFSampler(gamma=0.3, n_components=7, random_state=3).fit(X)
    sampler.random_weights_ /= 2.0  # the bandwidth
    scaled = scaler.fit(X).transform(new_rows())
    np.testing.assert_allclose(
        loaded.random_features.transform(scaled), sampler.transform(scaled), atol=1e-12
    )


# --- models of frames ---


class OfFrame(NamedTuple):
    """A table as a frame and as a file, and the models of both."""

    frame: pd.DataFrame
    y: np.ndarray
    model: Model
    path: Path
    X: np.ndarray  # as the file is encoded
    encoding: Encoding
    model_of_file: Model


READING = {"categorical": "one-hot", "missing": "median"}


@pytest.fixture(scope="module")
def of_frame(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.standard_normal(40), "city": rng.choice(["Oslo", "Rome"], 40)}
    )
    days = pd.to_timedelta(rng.integers(0, 99, 40), "D")
    frame["seen"] = pd.Timestamp("2024-01-01") + days
    frame["seen"] = frame["seen"].mask(frame["x"] > 1)
    y = np.arange(40) % 2
    path = tmp_path_factory.mktemp("own") / "own.csv"
    frame.assign(y=y).to_csv(path, index=False)
    dataset, encoding = read_own_file(path, label="y", **READING)
    return OfFrame(
        frame=frame,
        y=y,
        model=Model.fit(frame, y, random_state=0, **READING),
        path=path,
        X=dataset.X,
        encoding=encoding,
        model_of_file=Model.fit(
            dataset.X, dataset.y, random_state=0, encoding=encoding
        ),
    )


def test_a_model_of_a_frame_is_that_of_its_file(of_frame, tmp_path):
    assert np.array_equal(of_frame.model.coef, of_frame.model_of_file.coef)
    loaded = reloaded(of_frame.model, tmp_path / "m.npz")
    assert loaded.encoding.columns == of_frame.encoding.columns


def test_a_frame_is_scored_by_the_names_of_its_columns(of_frame, tmp_path):
    loaded = reloaded(of_frame.model, tmp_path / "m.npz")
    in_other_order = of_frame.frame.assign(more="?")[["more", "seen", "x", "city"]]
    with warns(UserWarning):
        scores = loaded.decision_function(in_other_order)
    expected = of_frame.model_of_file.decision_function(of_frame.X)
    assert np.array_equal(scores, expected)


def test_a_model_of_a_frame_ranks_the_blocks_of_a_file(of_frame, tmp_path):
    loaded = reloaded(of_frame.model, tmp_path / "m.npz")
    with warns(UserWarning):
        blocks = read_new_blocks(of_frame.path, loaded.encoding)
        ranking, n_rows = loaded.rank_blocks(blocks, 5)
    scores = of_frame.model_of_file.decision_function(of_frame.X)
    assert n_rows == 40
    assert np.array_equal(ranking["score"], scores[ranking["row"] - 1])


def test_a_frame_without_a_column_of_the_model_is_refused(of_frame):
    with raises(InputError, "'city'"):
        of_frame.model.decision_function(of_frame.frame[["x", "seen"]])


def test_a_frame_with_two_columns_of_one_name_is_refused(of_frame):
    ambiguous = of_frame.frame.set_axis(["x", "x", "seen"], axis=1)
    with raises(InputError, "'x' rename"):
        of_frame.model.decision_function(ambiguous)


def test_columns_of_a_frame_may_have_names_of_two_levels(of_frame):
    names = pd.MultiIndex.from_product([["a"], of_frame.frame.columns])
    frame = of_frame.frame.set_axis(names, axis=1)
    model = Model.fit(frame, of_frame.y, random_state=0, **READING)
    assert np.array_equal(model.coef, of_frame.model.coef)


# --- scaling, ties, layouts and threads ---


@pytest.mark.parametrize(
    ("scaling", "scaler"),
    [
        ("standardise", StandardScaler()),
        ("unit", MinMaxScaler()),
        ("unit-norm", Normalizer()),
        ("standardise-unit-norm", make_pipeline(StandardScaler(), Normalizer())),
    ],
)
def test_new_rows_are_scaled_like_training_rows(scaling, scaler):
    X, y = labelled_rows(density=1)
    model = Model.fit(X, y, "cutting-plane", scaling=scaling, k=0.5)
    scaled = scaler.fit_transform(X)
    by_hand = scaled @ SOLVERS["cutting-plane"](k=0.5).fit(scaled, y).coef_
    for rows in (X, csr_matrix(X)):
        np.testing.assert_allclose(
            model.decision_function(rows), by_hand, rtol=1e-9, atol=1e-9
        )


@settings(max_examples=20)
@given(seed=st.integers(0, 2**20), n=st.integers(2, 40), d=st.integers(1, 20))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ties_keep_the_order_of_rows(layout, seed, n, d):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n)  # rows of a kind are equal
    X = rng.standard_normal((3, d))[kinds]
    model = Model.fit(
        rng.standard_normal((9, d)), [0, 1, 1] * 3, "perceptron-avg", epochs=3
    )
    ranking = model.rank(LAYOUTS[layout](X))
    assert ranking["rank"].tolist() == list(range(1, n + 1))
    assert sorted(ranking["row"]) == list(range(1, n + 1))
    assert ranking["score"].is_monotonic_decreasing
    for kind in range(3):
        equal_rows = [row for row in ranking["row"] if kinds[row - 1] == kind]
        assert equal_rows == sorted(equal_rows)
    assert model.rank(X, top=1)["row"].tolist() == ranking["row"][:1].tolist()


def require_one_model(X, y, same_rows, scaling):
    """Require that a fit to the same rows in another layout gives the same ranking."""
    options = {"scaling": scaling, "epochs": 2, "random_state": 0}
    model = Model.fit(X, y, **options)
    same_model = Model.fit(same_rows, y, **options)
    assert np.array_equal(same_model.coef, model.coef)
    assert np.array_equal(same_model.rank(same_rows), model.rank(X))


@pytest.mark.promise("R9")
@pytest.mark.parametrize(
    "to_layout",
    [
        pytest.param(np.ndarray.tolist, id="lists"),
        pytest.param(pd.DataFrame, id="frame"),
        pytest.param(np.int16, id="int16"),
        pytest.param(np.float32, id="float32"),
        pytest.param(np.asfortranarray, id="columns in order"),
    ],
)
@pytest.mark.parametrize("scaling", SCALINGS)
def test_any_layout_of_dense_rows_is_accepted(to_layout, scaling):
    X, y = labelled_rows()
    require_one_model(X, y, to_layout(X), scaling)


@pytest.mark.promise("R9")
def test_sparse_rows_may_be_stored_by_columns():
    X, y = labelled_rows()
    require_one_model(csr_matrix(X), y, csc_matrix(X), "unit")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("solver", "fourier"),
    [
        pytest.param("random-forest", None, id="trees"),
        pytest.param("sgd-avg", 3, id="weights of random features"),
        pytest.param("sgd-avg", None, id="weights"),
    ],
)
def test_threads_change_no_score(solver, fourier, layout, monkeypatch):
    X, y = labelled_rows()
    rows = LAYOUTS[layout](new_rows())
    options = {"fourier": fourier, "scaling": "unit-norm", "random_state": 0}
    model = Model.fit(X, y, solver, **options, **few(solver))
    expected = model.decision_function(rows).tobytes()
    monkeypatch.setattr("precbench.model.model.ROWS_AT_ONCE", 16)
    for n_jobs in (None, 1, 2, 3, -1):
        assert model.decision_function(rows, n_jobs=n_jobs).tobytes() == expected


def test_an_overflow_in_a_thread_is_an_input_error(saved_trees):
    model = replace(Model.load(saved_trees), coef=np.ones(3), trees=None)
    with raises(InputError, "scores"):
        model.decision_function(np.full((2, 5), 1e308), n_jobs=2)


# --- invalid arguments ---

X, Y = labelled_rows()


@pytest.mark.promise("R11")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("changes", "places"),
    [
        pytest.param({"solver": "sgd"}, "'sgd'", id="unknown solver"),
        pytest.param({"eta": 1.0}, "'eta' 'eta0'", id="unknown parameter"),
        pytest.param({"eta0": -1.0}, "'eta0'", id="negative step size"),
        pytest.param({"batch_size": True}, "batch_size", id="truth value as a number"),
        pytest.param({"k": "1 percent"}, "'k' '1 %' '1 percent'", id="k in words"),
        pytest.param(
            {"scaling": "standardize"},
            "standardise none 'standardize'",
            id="unknown scaling",
        ),
        pytest.param({"eta0": 1e308}, "weights", id="weights overflow"),
        pytest.param({"X": np.where(X == 4, np.nan, X)}, "X NaN", id="gaps"),
        pytest.param({"y": np.ones(len(Y))}, "class", id="a single class"),
        pytest.param(
            {"X": csr_matrix(X), "scaling": "standardise"},
            "sparse",
            id="sparse rows are not standardised",
        ),
        pytest.param(
            {"fourier": 0}, "n_components 1,000,000 0", id="no random features"
        ),
        pytest.param({"fourier": True}, "True", id="truth value as random features"),
        pytest.param(
            {"fourier": {"n": 3}}, "'n' n_components", id="unknown option of fourier"
        ),
        pytest.param(
            {"fourier": {"gamma": 3.0}},
            "n_components",
            id="no number of random features",
        ),
        pytest.param(
            {"fourier": {"n_components": 3, "bandwidth": 0}},
            "bandwidth 0",
            id="bandwidth 0",
        ),
        pytest.param(
            {"fourier": {"n_components": 3, "gamma": "1"}},
            "gamma 0 '1'",
            id="gamma as text",
        ),
    ],
)
def test_invalid_arguments_are_rejected(changes, places):
    arguments = {"X": X, "y": Y, **changes}
    with raises(InputError, places):
        Model.fit(**arguments)


def fit_to_other_index(model):
    """Fit to labels whose index is not that of the rows."""
    Model.fit(pd.DataFrame(X), pd.Series(Y)[::-1])


def rank_beyond_float32(model):
    forest = Model.fit(X, Y, "random-forest", n_estimators=2)
    forest.rank(X * 1e39)


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("call", "places"),
    [
        pytest.param(lambda model: model.rank(X[:, :3]), "3 5", id="too few features"),
        pytest.param(
            lambda model: model.rank(np.full((2, 5), np.nan)), "NaN", id="gaps"
        ),
        pytest.param(lambda model: model.rank(X[:0]), "0", id="no rows"),
        pytest.param(lambda model: model.rank(np.array([["a"] * 5])), "", id="text"),
        pytest.param(lambda model: model.rank(X, top=0), "top 1 0", id="empty top"),
        pytest.param(
            lambda model: replace(model, coef=np.full(5, 1e308)).rank(1000 * X),
            "scores",
            id="scores overflow",
        ),
        pytest.param(rank_beyond_float32, "float32", id="values beyond float32"),
        pytest.param(fit_to_other_index, "y y.loc[X.index]", id="labels of other rows"),
    ],
)
def test_invalid_rows_are_rejected(saved, call, places):
    model = Model.load(saved)
    with raises(InputError, places):
        call(model)


def test_a_classifier_without_weights_or_trees_is_refused(monkeypatch):
    monkeypatch.setattr(
        "precbench.model.model.SOLVERS", {**SOLVERS, "bayes": ranker_of(GaussianNB)}
    )
    with raises(InputError, "bayes"):
        Model.fit(X, Y, "bayes")


# --- damaged files: each damage changes the contents of the file of a model ---


def unloadable(path, places):
    """Expect that an archive is refused in a line that names places."""
    with raises(InputError, places):
        Model.load(path)


def array(name, values):
    """Put an array in place of another, or beside the others."""

    def damage(contents):
        contents.arrays[name] = np.array(values)

    return damage


def without(*names):
    """Leave arrays out."""

    def damage(contents):
        for name in names:
            del contents.arrays[name]

    return damage


def change_of(name, change):
    """Replace an array by what `change` makes of it."""

    def damage(contents):
        contents.arrays[name] = change(contents.arrays[name])

    return damage


def element(name, place, value):
    """Change one element of an array."""

    def damage(contents):
        contents.arrays[name] = contents.arrays[name].copy()
        contents.arrays[name][place] = value

    return damage


def described(**changes):
    """Change what the description says."""

    def damage(contents):
        contents.description |= changes

    return damage


def part(name, change):
    """Change a part of the description in place."""

    def damage(contents):
        change(contents.description[name])

    return damage


def member(**changes):
    """Change the first member of a stack."""
    return part("members", lambda members: members[0].update(changes))


def lead_leaves_to_the_second_tree(contents):
    is_inner = contents.arrays["tree_feature"] >= 0
    second_tree = contents.arrays["tree_root"][1]
    contents.arrays["tree_right"] = np.where(is_inner, second_tree, 0).astype("i4")


def give_a_node_two_parents(contents):
    first, second = np.flatnonzero(contents.arrays["tree_feature"] >= 0)[:2]
    right = contents.arrays["tree_right"].copy()
    right[first] = right[second]
    contents.arrays["tree_right"] = right


def give_a_forest_a_base(contents):
    """Only the scores would use it."""
    contents.description["trees"] = {"base": 1.0, "is_forest": True}
    leaves = np.abs(contents.arrays["tree_value"]).clip(0, 1)
    contents.arrays["tree_value"] = leaves


def exchange_weights_and_trees(members):
    for described_member in members:
        has_trees = described_member["trees"] is not None
        trees = None if has_trees else {"base": 0.0, "is_forest": False}
        described_member["trees"] = trees


DAMAGED_WEIGHTS = {
    "text": array("coef", ["a"] * 5),
    "complex numbers": array("coef", np.ones(5, dtype=complex)),
    "a scale of 0": array("scaler_scale", np.zeros(5)),
    "standardised by nothing": without("scaler_shift", "scaler_scale"),
    "a scale without a scaling": described(scaling="none"),
    "an unknown scaling": described(scaling="foo"),
    "a schema in words": described(schema="x"),
    "an encoding without columns": described(encoding={"format": "csv"}),
    "an encoding of fewer features": described(
        encoding={"format": "npz", "n_features": 4, "dense": True, "columns": []}
    ),
}
DAMAGED_TREES = {
    "the root as child": element("tree_right", 0, 0),
    "the left child as right one": element("tree_right", 0, 1),
    "a child before the tree": element("tree_right", 0, -1),
    "a child far before the tree": element("tree_right", 0, -(2**31)),
    "a child far beyond the tree": element("tree_right", 0, 2**31 - 1),
    "children in another tree": lead_leaves_to_the_second_tree,
    "a node with two parents": give_a_node_two_parents,
    "a feature below that of leaves": element("tree_feature", 0, -2),
    "a feature more than there are": element("tree_feature", 0, 3),
    "a feature of a large number": element("tree_feature", 0, 2**31 - 1),
    "a last node that is no leaf": element("tree_feature", -1, 0),
    "two trees with one root": element("tree_root", 1, 0),
    "a root far beyond the nodes": element("tree_root", 1, 2**31 - 1),
    "a root before the nodes": element("tree_root", 1, -1),
    "a node of no tree": element("tree_root", 0, 1),
    "a node without rows": element("tree_cover", 0, 0.0),
    "a node of fewer than no rows": element("tree_cover", 0, -1.0),
    "a node of infinitely many rows": element("tree_cover", 0, np.inf),
    "weights beside trees": array("coef", np.zeros(3)),
    "an unknown array of trees": array("tree_new", np.zeros(3)),
    "an unknown array of random features": array("random_other", np.zeros(3)),
    "an unknown array of the scaler": array("scaler_new", np.zeros(3)),
    "an unknown array of the mean": array("mean_new", np.zeros(3)),
    "an unknown array of the calibration": array("calibration_new", np.zeros(3)),
    "trees that are not described": described(trees=None),
    "a forest by the number 1": described(trees={"base": 0.0, "is_forest": 1}),
    "a forest with leaves below 0": described(trees={"base": 0.0, "is_forest": True}),
    "a forest with a base": give_a_forest_a_base,
    "a base that is an integer": described(trees={"base": 1, "is_forest": False}),
    "a base that is NaN": described(trees={"base": float("nan"), "is_forest": False}),
    "trees of many features": described(
        trees={"base": 0.0, "is_forest": False, "n_features": 10**9}
    ),
    "an intercept, which only the reasons would use": described(intercept=1.0),
    "an infinite offset of random features": element("random_offset", 0, np.inf),
    "parameters in a list": described(params=[]),
    "a number as solver": described(solver=3),
    "no facts": described(about=None),
}
DAMAGED_MEMBERS = {
    "fewer members than arrays": part("members", lambda members: members.pop()),
    "more members than arrays": part(
        "members", lambda members: members.append(members[0])
    ),
    "no members": described(members=[]),
    "a weight that is an integer": member(weight=1),
    "an infinite weight": member(weight=float("inf")),
    "a member without a name": member(name=None),
    "an unknown key of a member": member(other=1.0),
    "weights described as trees": part("members", exchange_weights_and_trees),
}


def profile(change):
    """Change the profile of the training rows in place."""
    return part("profile", change)


def profiled_column(number, **changes):
    return profile(lambda profile: profile["columns"][number].update(changes))


def counts_of_no_row(profile):
    column = profile["columns"][0]
    column["counts"] = [0.0] * len(column["counts"])


DAMAGED_TABLE = {
    "a column without bins": profile(lambda profile: profile["columns"].pop(0)),
    "bins of other columns": profile(lambda profile: profile["columns"].reverse()),
    "no bins of scores": profile(lambda profile: profile.pop("scores")),
    "bins of scores without edges": profile(
        lambda profile: profile["scores"].update(edges=None)
    ),
    "bins of numbers without edges": profiled_column(0, edges=None),
    "edges that descend": profile(
        lambda profile: profile["columns"][0]["edges"].reverse()
    ),
    "a single edge": profiled_column(0, edges=[1.0], counts=[1.0, 79.0]),
    "fewer counts than bins": profile(
        lambda profile: profile["columns"][0]["counts"].pop()
    ),
    "a negative count": profile(
        lambda profile: profile["columns"][0]["counts"].__setitem__(1, -1.0)
    ),
    "no row is counted": profile(counts_of_no_row),
    "a day that no calendar has": profile(
        lambda profile: profile["columns"][2]["edges"].__setitem__(-1, 1e300)
    ),
    "fewer counts than categories": profile(
        lambda profile: profile["columns"][3]["counts"].pop()
    ),
    "rows in words": profile(lambda profile: profile.update(rows="many")),
    "scores of curves that descend": change_of(
        "calibration_scores", lambda scores: -1 - scores
    ),
    "probabilities below 0": change_of(
        "calibration_shares", lambda shares: -1 - shares
    ),
    "held-out lists of a negative size": change_of(
        "calibration_size", lambda sizes: -1 - sizes
    ),
    "no hashes": change_of("rows_hashes", lambda hashes: hashes[:0]),
    "hashes as floats": change_of("rows_hashes", lambda hashes: hashes.astype(float)),
    "twice as many hashes as rows": array("rows_numbers", [2.0, 0]),
    "a negative share of repeats": array("rows_numbers", [1.0, -1]),
    "no share of repeats": array("rows_numbers", []),
}
DAMAGED = {
    "weights": DAMAGED_WEIGHTS,
    "trees": DAMAGED_TREES,
    "members": DAMAGED_MEMBERS,
    "table": DAMAGED_TABLE,
}
DAMAGED_ARRAY = {
    "cut off": lambda array: array[..., :-1],
    "of another shape": lambda array: array[..., np.newaxis],
    "of another type": lambda array: array.astype(
        "f4" if array.dtype == np.float64 else "f8"
    ),
    "empty": lambda array: array[:0],
    "no number": lambda array: array * np.nan,
}


def model_of_table():
    """Return a model that knows its training rows, of numbers, dates and text."""
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    days = pd.to_timedelta(np.arange(len(Y)), "D")
    table["seen"] = pd.Timestamp("2024-01-01") + days
    table["city"] = np.resize(["Oslo", "Rome"], len(Y))
    model = Model.fit(table, Y, "logistic-regression", categorical="one-hot")
    lists = []
    for seed in range(2):
        noise = np.random.default_rng(seed).random(len(Y))
        lists.append(HeldOut(Y, X[:, 0] + noise))
    return model.calibrated(lists, 0.3).profiled(model.encoding.encode(table), lists)


@pytest.fixture(scope="module")
def contents_by_kind(saved, saved_trees, tmp_path_factory):
    """What the files of models hold: of weights, of trees, of a stack, of a table."""
    folder = tmp_path_factory.mktemp("archives")
    stack = Model.fit(X, Y, "ensemble", random_state=0, **few("ensemble"))
    stack.save(folder / "members.npz")
    model_of_table().save(folder / "table.npz")
    return {
        "weights": Contents.read(saved),
        "trees": Contents.read(saved_trees),
        "members": Contents.read(folder / "members.npz"),
        "table": Contents.read(folder / "table.npz"),
    }


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        pytest.param(kind, damage, id=f"{kind}: {name}")
        for kind, damages in DAMAGED.items()
        for name, damage in damages.items()
    ],
)
def test_damaged_parts_are_refused(contents_by_kind, tmp_path, kind, damage):
    """No traversal of trees leaves them, or does not end."""
    contents = copy.deepcopy(contents_by_kind[kind])
    damage(contents)
    contents.write(tmp_path / "m.npz")
    unloadable(tmp_path / "m.npz", "m.npz")


def is_harmless(name, damage):
    """Return whether a damaged array is as good as the whole one."""
    if name.endswith("splits"):  # only their number is read
        return damage in ("of another type", "no number")
    if name.startswith("rows_"):
        # Fewer hashes are hashes, and two numbers of another type numbers.
        return damage in ("of another type", "cut off")
    return False


@pytest.mark.parametrize("damage", DAMAGED_ARRAY)
@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_arrays_are_refused(contents_by_kind, tmp_path, kind, damage):
    whole = contents_by_kind[kind]
    for name in whole.arrays:
        if is_harmless(name, damage):
            continue
        damaged = DAMAGED_ARRAY[damage](whole.arrays[name])
        contents = replace(whole, arrays={**whole.arrays, name: damaged})
        contents.write(tmp_path / "m.npz")
        unloadable(tmp_path / "m.npz", "m.npz")


@pytest.mark.parametrize("kind", DAMAGED)
def test_missing_arrays_are_refused(contents_by_kind, tmp_path, kind):
    whole = contents_by_kind[kind]
    for name in whole.arrays:
        others = {other: whole.arrays[other] for other in whole.arrays if other != name}
        replace(whole, arrays=others).write(tmp_path / "m.npz")
        unloadable(tmp_path / "m.npz", "m.npz")


@pytest.mark.parametrize("kind", DAMAGED)
def test_an_unchanged_archive_loads(contents_by_kind, tmp_path, kind):
    contents_by_kind[kind].write(tmp_path / "m.npz")
    assert Model.load(tmp_path / "m.npz").n_features == 5


@pytest.mark.promise("R14")
def test_a_newer_schema_is_rejected(saved, tmp_path):
    contents = Contents.read(saved)
    contents.description |= {"schema": 5, "scaling": "new"}
    contents.write(tmp_path / "m.npz")
    unloadable(tmp_path / "m.npz", "5 1")


def test_a_model_that_may_not_be_read_says_so(saved, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", refuse)  # root may read every file
    unloadable(saved, str(saved))


def test_a_file_that_is_cut_off_is_refused(saved, tmp_path):
    whole = saved.read_bytes()
    path = tmp_path / "m.npz"
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        unloadable(path, str(path))


def test_a_file_of_text_a_folder_and_no_file_are_no_models(tmp_path):
    path = tmp_path / "m.npz"
    path.write_bytes(b"x")
    unloadable(path, str(path))
    unloadable(tmp_path, str(tmp_path))
    unloadable(tmp_path / "none.npz", "--save")


@pytest.mark.promise("R14")
@settings(max_examples=150)
@given(place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
def test_a_damaged_byte_is_reported_or_harmless(saved, tmp_path_factory, place, bits):
    content = bytearray(saved.read_bytes())
    content[int(place * len(content))] ^= bits
    path = tmp_path_factory.mktemp("damaged") / "m.npz"
    path.write_bytes(content)
    try:
        model = Model.load(path)
    except InputError:
        return
    assert np.array_equal(model.coef, Model.load(saved).coef)


def test_invalid_paths(saved, tmp_path):
    model = Model.load(saved)
    for path in (tmp_path, tmp_path / "none" / "m.npz", ""):
        with raises(InputError, str(path)):
            model.save(path)


def test_a_model_is_saved_through_a_link(saved, tmp_path):
    model = Model.load(saved)
    target = tmp_path / "target.npz"
    link = tmp_path / "link.npz"
    link.symlink_to(target)
    model.save(link)
    assert link.is_symlink()
    assert np.array_equal(Model.load(target).coef, model.coef)


def test_a_model_is_never_saved_over_a_pipe(saved, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with raises(InputError, "pipe"):
        Model.load(saved).save(pipe)
    assert pipe.is_fifo()


def test_a_model_keeps_its_provenance(tmp_path):
    model = Model.fit(X, Y, k=np.float64(0.5), epochs=np.int64(2), radius=1)
    loaded = reloaded(model, tmp_path / "m.npz")
    assert loaded.params == {**model.params, "k": 0.5, "epochs": 2, "radius": 1}
    assert "random_state" not in loaded.params
    assert loaded.about == model.about
    assert loaded.about["rows"] == 80
    assert loaded.about["positives"] == sum(Y > 0)
    date.fromisoformat(loaded.about["fitted"])


def test_a_model_of_a_library_keeps_its_version():
    trees = Model.fit(X, Y, "random-forest", n_estimators=1)
    versions = {"precbench", "Python", "numpy", "scikit-learn"}
    assert set(trees.about["versions"]) == versions


# --- the intercept of the objective f1, from the solver to scores and a saved model ---


def noisy_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(600) > 1.5, 1, -1)
    return X, y


def test_every_checkpoint_has_an_intercept():
    X, y = noisy_rows()
    recorder = Recorder(50)
    solver = OnePMB("f1", batch_size=50, epochs=3)
    arrays = recorder.finish(solver.fit(X, y, trace=recorder))
    assert arrays["intercept"].shape == arrays["rows_seen"].shape
    assert arrays["intercept"][0] == 0
    assert arrays["intercept"][-1] == solver.intercept_
    assert solver.intercept_ != 0


def test_checkpoints_of_another_objective_have_no_intercept():
    X, y = noisy_rows()
    solver = OnePMB("f1", batch_size=50, epochs=3).fit(X, y)
    solver.set_params(objective="auc").fit(X, y)
    assert "intercept" not in Recorder(50).finish(solver)


def test_metrics_of_a_run_see_the_intercept(small, in_this_process, tmp_path):
    config = small(
        solvers="{f1: {solver: 1pmb, objective: f1, epochs: 3}, 1pmb: }",
        common="{batch_size: 50}",
        metrics="[f1, auc]",
        protocol="{n_splits: 1}",
    )
    succeed("run", config, "--out", tmp_path / "out")
    folder = tmp_path / "out" / "small"
    table = pd.read_csv(folder / "results.csv").query("final and part == 'test'")
    values = table.set_index(["solver", "metric"])["value"]
    assert values["f1", "f1"] > 0.6 > values["1pmb", "f1"]
    store = Store(folder)
    keys = [path.stem for path in (folder / "trials").glob("*.json")]
    assert len(keys) == 2
    assert sum("intercept" in store.arrays(key) for key in keys) == 1


def test_a_model_keeps_its_intercept(tmp_path):
    X, y = noisy_rows()
    model = Model.fit(
        X, y, "1pmb", scaling="standardise", objective="f1", random_state=0
    )
    assert model.intercept != 0
    scores = model.decision_function(X)
    scaled = Scaler("standardise").fit(X).transform_in_place(X.copy())
    solver = OnePMB("f1", random_state=0).fit(scaled, y)
    np.testing.assert_allclose(scores, solver.decision_function(scaled), atol=1e-12)
    loaded = reloaded(model, tmp_path / "model.npz")
    assert loaded.intercept == model.intercept
    np.testing.assert_array_equal(loaded.decision_function(X), scores)


def test_an_intercept_that_is_no_number_is_refused(saved, tmp_path):
    dataclasses.replace(Model.load(saved), intercept=np.nan).save(tmp_path / "m.npz")
    unloadable(tmp_path / "m.npz", "m.npz")

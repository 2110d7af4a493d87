"""A saved model ranks like the fitted one, ties keep the order of rows, bad files are
rejected.
"""

import dataclasses
import errno
import itertools
import json
import os
import warnings
from dataclasses import replace
from datetime import date
from pathlib import Path

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
from precbench.tables.own_file import read_new_blocks, read_own_file
from tests import laws
from tests.helpers import reloaded, succeed
from tests.sentences import raises, warns

SCALINGS = ["standardise", "unit", "standardise-unit-norm", "none"]
LINEAR = sorted(name for name in SOLVERS if laws.is_linear(SOLVERS[name]))
TREES = sorted(
    name for name in SOLVERS.built_in if hasattr(SOLVERS[name](), "to_trees")
)
_OTHERS = set(SOLVERS.built_in) - set(LINEAR)
NONLINEAR = sorted(name for name in _OTHERS if _can_be_kept(SOLVERS[name]()))
LAYOUTS = {"dense": np.asarray, "csr": csr_matrix}


def rows(seed=0, n=80, d=5, density=0.6):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < density) * 1.0
    y = np.where(X[:, 0] + rng.standard_normal(n) > 1, 1, -1)
    y[:2] = [1, -1]
    return X, y


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.npz"
    X, y = rows()
    Model.fit(X, y, scaling="standardise", epochs=2).save(path)
    with np.load(path) as arrays:
        return path, dict(arrays)


def few(solver):
    known = SOLVERS[solver]().get_params()
    sizes = (
        "n_estimators",
        "n_components",
        "max_iter",
        "min_samples_leaf",
        "min_child_samples",
    )
    return {
        n: 5 for n in sizes if n in known and not (n == "max_iter" and "C" in known)
    }


@pytest.fixture(scope="module")
def saved_trees(tmp_path_factory):
    """A saved model of trees on random features, and what it holds."""
    path = tmp_path_factory.mktemp("trees") / "m.npz"
    X, y = rows()
    options = {"max_iter": 3, "fourier": 3, "random_state": 0, "scaling": "standardise"}
    Model.fit(X, y, "hist-gradient-boosting", min_samples_leaf=5, **options).save(path)
    with np.load(path) as arrays:
        return path, dict(arrays)


@pytest.mark.parametrize(
    ("layout", "scaling"),
    [
        (lay, s)
        for lay in LAYOUTS
        for s in SCALINGS
        if lay != "csr" or "standardise" not in s
    ],
)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), solver=st.sampled_from(LINEAR), k=st.floats(0.1, 1))
def test_a_saved_model_gives_the_same_ranking(
    tmp_path_factory, layout, scaling, seed, solver, k
):
    X, y = rows(seed)
    params = {"k": k} if "k" in SOLVERS[solver]().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Model.fit(LAYOUTS[layout](X), y, solver, scaling=scaling, **params)
    loaded = reloaded(model, tmp_path_factory.mktemp("saved") / "m.npz")
    assert (loaded.solver, loaded.params) == (
        model.solver,
        json.loads(json.dumps(model.params)),
    )
    for new in (X, rows(seed + 1)[0]):
        new = LAYOUTS[layout](new)
        pd.testing.assert_frame_equal(
            loaded.rank(new), model.rank(new), check_exact=True
        )
        assert (
            loaded.decision_function(new).tobytes()
            == model.decision_function(new).tobytes()
        )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", NONLINEAR)
def test_trees_give_the_scores_of_their_library(solver, layout, tmp_path):
    """To the bit, from a file that names no class: neither library is asked."""
    (X, y), new = rows(), rows(1)[0]
    X[:, -1] += np.random.default_rng(0).standard_normal(len(X))
    X = LAYOUTS[layout](X)
    model = Model.fit(X, y, solver, random_state=0, **few(solver))
    fitted = make_solver(solver, {"random_state": 0, **few(solver)}).fit(X, y)
    loaded = reloaded(model, tmp_path / "m.npz")
    assert len(np.unique(loaded.decision_function(X))) > 5
    for rows_of in (np.asarray, csr_matrix):
        scores = fitted._scores(rows_of(new)).tobytes()
        assert loaded.decision_function(rows_of(new)).tobytes() == scores
        assert model.decision_function(rows_of(new)).tobytes() == scores


@pytest.mark.parametrize("solver", TREES)
def test_trees_without_a_split_and_no_trees(solver):
    X, y = rows()
    for X_train, trace in ((X * 0, None), (X, lambda solver: True)):
        fitted = make_solver(solver, few(solver)).fit(X_train, y, trace=trace)
        expected = fitted.scores_after(X, fitted.n_iter_)
        assert fitted.to_trees().scores(X).tobytes() == expected.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "solver", ["sgd-avg", "logistic-regression", "hist-gradient-boosting"]
)
def test_random_features_are_saved(solver, layout, tmp_path):
    """A row has one score, beside whatever others.

    Training takes those of the experiment.
    """
    (X, y), new = rows(), rows(1)[0]
    fourier = {"n_components": 7, "bandwidth": 2.0, "gamma": 0.3, "random_state": 3}
    scaling = "standardise" if layout == "dense" else "unit"
    model = Model.fit(LAYOUTS[layout](X), y, solver, scaling=scaling, fourier=fourier)
    loaded = reloaded(model, tmp_path / "m.npz")
    scores = loaded.decision_function(new)
    assert scores.tobytes() == model.decision_function(new).tobytes()
    one_by_one = [loaded.decision_function(new[i : i + 1])[0] for i in range(len(new))]
    assert scores.tobytes() == np.array(one_by_one).tobytes()
    np.testing.assert_allclose(
        loaded.decision_function(csr_matrix(new)), scores, atol=1e-12
    )

    sampler = RBFSampler(gamma=0.3, n_components=7, random_state=3).fit(X)
    sampler.random_weights_ /= 2.0
    scaler = {"standardise": StandardScaler(), "unit": MaxAbsScaler()}[scaling]
    scaled = scaler.fit(X).transform(new)
    features = sampler.transform(scaled)
    np.testing.assert_allclose(
        loaded.random_features.transform(scaled), features, atol=1e-12
    )


def test_a_frame_is_a_table(tmp_path):
    """A model of a frame is that of its file, and scores frames and files by their
    columns.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.standard_normal(40), "city": rng.choice(["Oslo", "Rome"], 40)}
    )
    frame["seen"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        rng.integers(0, 99, 40), "D"
    )
    frame["seen"] = frame["seen"].mask(frame["x"] > 1)
    y = np.arange(40) % 2
    options = {"categorical": "one-hot", "missing": "median"}
    model = Model.fit(frame, y, random_state=0, **options)
    frame.assign(y=y).to_csv(tmp_path / "own.csv", index=False)
    dataset, encoding = read_own_file(tmp_path / "own.csv", label="y", **options)
    of_file = Model.fit(dataset.X, dataset.y, random_state=0, encoding=encoding)
    assert np.array_equal(model.coef, of_file.coef)
    loaded = reloaded(model, tmp_path / "m.npz")
    assert loaded.encoding.columns == encoding.columns
    expected = of_file.decision_function(dataset.X)
    with warns(UserWarning):
        found = loaded.decision_function(
            frame.assign(more="?")[["more", "seen", "x", "city"]]
        )
    assert np.array_equal(found, expected)
    with warns(UserWarning):
        blocks = read_new_blocks(tmp_path / "own.csv", loaded.encoding)
        ranking, n_rows = loaded.rank_blocks(blocks, 5)
    assert n_rows == 40 and np.array_equal(
        ranking["score"], expected[ranking["row"] - 1]
    )
    with raises(InputError, "'city'"):
        model.decision_function(frame[["x", "seen"]])
    with raises(InputError, "'x' rename"):
        model.decision_function(frame.set_axis(["x", "x", "seen"], axis=1))
    levels = frame.set_axis(pd.MultiIndex.from_product([["a"], frame.columns]), axis=1)
    assert np.array_equal(
        Model.fit(levels, y, random_state=0, **options).coef, model.coef
    )


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
    X, y = rows(density=1)
    model = Model.fit(X, y, "cutting-plane", scaling=scaling, k=0.5)
    scaled = scaler.fit_transform(X)
    by_hand = scaled @ SOLVERS["cutting-plane"](k=0.5).fit(scaled, y).coef_
    for new in (X, csr_matrix(X)):
        np.testing.assert_allclose(
            model.decision_function(new), by_hand, rtol=1e-9, atol=1e-9
        )


@settings(max_examples=20)
@given(seed=st.integers(0, 2**20), n=st.integers(2, 40), d=st.integers(1, 20))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ties_keep_the_order_of_rows(layout, seed, n, d):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n)
    X = rng.standard_normal((3, d))[kinds]
    model = Model.fit(
        rng.standard_normal((9, d)), [0, 1, 1] * 3, "perceptron-avg", epochs=3
    )
    ranking = model.rank(LAYOUTS[layout](X))
    assert ranking["rank"].tolist() == list(range(1, n + 1))
    assert sorted(ranking["row"]) == list(range(1, n + 1))
    assert ranking["score"].is_monotonic_decreasing
    for kind in range(3):
        of_kind = [row for row in ranking["row"] if kinds[row - 1] == kind]
        assert of_kind == sorted(of_kind)
    assert model.rank(X, top=1)["row"].tolist() == ranking["row"][:1].tolist()


@pytest.mark.promise("R9")
@pytest.mark.parametrize(
    ("turned", "plain", "scaling"),
    [
        *itertools.product(
            (np.ndarray.tolist, pd.DataFrame, np.int16, np.float32, np.asfortranarray),
            (np.asarray,),
            SCALINGS,
        ),
        (csc_matrix, csr_matrix, "unit"),
    ],
)
def test_any_layout_is_accepted(turned, plain, scaling):
    X, y = rows()
    options = {"scaling": scaling, "epochs": 2, "random_state": 0}
    expected, model = (
        Model.fit(plain(X), y, **options),
        Model.fit(turned(X), y, **options),
    )
    assert np.array_equal(model.coef, expected.coef)
    assert np.array_equal(model.rank(turned(X)), expected.rank(plain(X)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("solver", "fourier"), [("random-forest", None), ("sgd-avg", 3), ("sgd-avg", None)]
)
def test_threads_change_no_score(solver, fourier, layout, monkeypatch):
    (X, y), new = rows(), LAYOUTS[layout](rows(1)[0])
    options = {"fourier": fourier, "scaling": "unit-norm", "random_state": 0}
    model = Model.fit(X, y, solver, **options, **few(solver))
    expected = model.decision_function(new)
    monkeypatch.setattr("precbench.model.model.ROWS_AT_ONCE", 16)
    for n_jobs in (None, 1, 2, 3, -1):
        assert (
            model.decision_function(new, n_jobs=n_jobs).tobytes() == expected.tobytes()
        )


def test_an_overflow_in_a_thread_is_an_input_error(saved_trees):
    model = replace(Model.load(saved_trees[0]), coef=np.ones(3), trees=None)
    with raises(InputError, "scores"):
        model.decision_function(np.full((2, 5), 1e308), n_jobs=2)


X, Y = rows()
REFUSED = [
    ({"solver": "sgd"}, "'sgd'"),
    ({"eta": 1.0}, "'eta' 'eta0'"),
    ({"eta0": -1.0}, "'eta0'"),
    ({"batch_size": True}, "batch_size"),
    ({"k": "1 percent"}, "'k' '1 %' '1 percent'"),
    ({"scaling": "standardize"}, "standardise none 'standardize'"),
    ({"eta0": 1e308}, "weights"),
    ({"X": np.where(X == 4, np.nan, X)}, "X NaN"),
    ({"y": np.ones(len(Y))}, "class"),
    ({"X": csr_matrix(X), "scaling": "standardise"}, "sparse"),
    ({"fourier": 0}, "n_components 1,000,000 0"),
    ({"fourier": True}, "True"),
    ({"fourier": {"n": 3}}, "'n' n_components"),
    ({"fourier": {"gamma": 3.0}}, "n_components"),
    ({"fourier": {"n_components": 3, "bandwidth": 0}}, "bandwidth 0"),
    ({"fourier": {"n_components": 3, "gamma": "1"}}, "gamma 0 '1'"),
]


@pytest.mark.promise("R11")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("changes", "what"), REFUSED)
def test_invalid_arguments_are_rejected(changes, what):
    arguments = {"X": X, "y": Y, **changes}
    with raises(InputError, what) as caught:
        Model.fit(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda model: model.rank(X[:, :3]), "3 5"),
        (lambda model: model.rank(np.full((2, 5), np.nan)), "NaN"),
        (lambda model: model.rank(X[:0]), "0"),
        (lambda model: model.rank(np.array([["a"] * 5])), ""),
        (lambda model: model.rank(X, top=0), "top 1 0"),
        (lambda model: replace(model, coef=np.full(5, 1e308)).rank(1000 * X), "scores"),
        (
            lambda _: Model.fit(X, Y, "random-forest", n_estimators=2).rank(X * 1e39),
            "float32",
        ),
        (lambda _: Model.fit(pd.DataFrame(X), pd.Series(Y)[::-1]), "y y.loc[X.index]"),
    ],
)
def test_invalid_rows_are_rejected(saved, call, what):
    model = Model.load(saved[0])
    with raises(InputError, what):
        call(model)


def test_a_classifier_without_weights_or_trees_is_refused(monkeypatch):
    monkeypatch.setattr(
        "precbench.model.model.SOLVERS", {**SOLVERS, "bayes": ranker_of(GaussianNB)}
    )
    with raises(InputError, "bayes"):
        Model.fit(X, Y, "bayes")


def changed(arrays, **parts):
    description = json.loads(str(arrays["description"]))
    arrays = {n: a for n, a in arrays.items() if parts.get(n, a) is not None}
    for name, value in parts.items():
        if name in arrays:
            arrays[name] = value
        elif name in description:
            description[name] = value
    return arrays | {"description": np.array(json.dumps(description))}


def tree_part(name, place, value):
    def change(arrays):
        array = arrays[name].copy()
        array[place] = value
        return {name: array}

    return change


def with_two_parents(feature, right):
    first, second = np.flatnonzero(feature >= 0)[:2]
    right[first] = right[second]
    return right


def unloadable(path, places):
    """Expect that an archive is refused in a line that names places."""
    with raises(InputError, places):
        Model.load(path)


WHATEVER = {  # changes of any array
    "cut off": lambda a: a[..., :-1],
    "of another shape": lambda a: a[..., None],
    "of another type": lambda a: a.astype("f4" if a.dtype == np.float64 else "f8"),
    "empty": lambda a: a[:0],
    "no number": lambda a: a * np.nan,
    "missing": lambda a: None,
}
WEIGHTS = [
    {"coef": np.array(["a"] * 5)},
    {"coef": np.ones(5, dtype=complex)},
    {"scaler_scale": np.zeros(5)},
    {"scaler_shift": None, "scaler_scale": None},
    {"scaling": "none"},
    {"scaling": "foo"},
    {"schema": "x"},
    {"encoding": {"format": "csv"}},
    {"encoding": {"format": "npz", "n_features": 4, "dense": True, "columns": []}},
]
TREES_ON_FEATURES = [
    *(tree_part("tree_right", 0, node) for node in (0, 1, -1, -(2**31), 2**31 - 1)),
    lambda a: {
        "tree_right": np.where(a["tree_feature"] >= 0, a["tree_root"][1], 0).astype(
            "i4"
        )
    },
    *(tree_part("tree_feature", 0, feature) for feature in (-2, 3, 2**31 - 1)),
    tree_part("tree_feature", -1, 0),
    *(tree_part("tree_root", 1, node) for node in (0, 2**31 - 1, -1)),
    tree_part("tree_root", 0, 1),
    lambda a: {
        "tree_right": with_two_parents(a["tree_feature"], a["tree_right"].copy())
    },
    *(tree_part("tree_cover", 0, rows) for rows in (0.0, -1.0, np.inf)),
    *(
        lambda a, n=n: {n: np.zeros(3)}
        for n in ("coef", "tree_new", "random_other", "scaler_new")
    ),
    *(lambda a, n=n: {n: np.zeros(3)} for n in ("mean_new", "calibration_new")),
    *(
        lambda a, trees=trees: {"trees": trees}
        for trees in (
            None,
            {"base": 0.0, "is_forest": 1},
            {"base": 0.0, "is_forest": True},  # leaves below 0
            {"base": 1, "is_forest": False},
            {"base": float("nan"), "is_forest": False},
            {"base": 0.0, "is_forest": False, "n_features": 10**9},
        )
    ),
    lambda a: {
        "trees": {"base": 1.0, "is_forest": True},  # which only the scores would use
        "tree_value": np.abs(a["tree_value"]).clip(0, 1),
    },
    lambda a: {"intercept": 1.0},  # which only the reasons would use
    tree_part("random_offset", 0, np.inf),
    *(
        lambda a, part=part: part
        for part in ({"params": []}, {"solver": 3}, {"about": None})
    ),
]
MEMBERS = [
    lambda members: members[:-1],
    lambda members: [*members, members[0]],
    lambda members: [],
    *(
        lambda members, change=change: [members[0] | change, *members[1:]]
        for change in (
            {"weight": 1},
            {"weight": float("inf")},
            {"name": None},
            {"other": 1.0},
        )
    ),
    lambda members: [
        {**m, "trees": None if m["trees"] else {"base": 0.0, "is_forest": False}}
        for m in members
    ],
]
PROFILES = [
    lambda of: of.update(columns=of["columns"][1:]),
    lambda of: of.update(columns=of["columns"][::-1]),
    lambda of: of.pop("scores"),
    lambda of: of["scores"].update(edges=None),
    lambda of: of["columns"][0].update(edges=None),
    lambda of: of["columns"][0]["edges"].reverse(),
    lambda of: of["columns"][0].update(edges=[1.0], counts=[1.0, 79.0]),
    lambda of: of["columns"][0]["counts"].pop(),
    lambda of: of["columns"][0]["counts"].__setitem__(1, -1.0),
    lambda of: of["columns"][0].update(counts=[0.0] * len(of["columns"][0]["counts"])),
    lambda of: of["columns"][2]["edges"].__setitem__(-1, 1e300),
    lambda of: of["columns"][3]["counts"].pop(),
    lambda of: of.update(rows="many"),
]


def of_profile(change):
    """Return a change of the profile of a model."""

    def edited(arrays):
        profile = json.loads(str(arrays["description"]))["profile"]
        change(profile)
        return {"profile": profile}

    return edited


DAMAGED = {
    "weights": [lambda _, parts=parts: parts for parts in WEIGHTS],
    "what it learnt of the rows": [
        *map(of_profile, PROFILES),
        *(
            lambda arrays, name=f"calibration_{place}": {name: -1 - arrays[name]}
            for place in ("scores", "shares", "size")
        ),
        *(
            lambda arrays, change=change: {"rows_hashes": change(arrays["rows_hashes"])}
            for change in (
                lambda hashes: hashes[:0],
                lambda hashes: hashes.astype(float),
            )
        ),
        *(
            lambda _, n=n: {"rows_numbers": np.array(n)}
            for n in ([2.0, 0], [1.0, -1], [])
        ),
    ],
    "trees": TREES_ON_FEATURES,
    "members": [
        lambda arrays, change=change: {
            "members": change(json.loads(str(arrays["description"]))["members"])
        }
        for change in MEMBERS
    ],
}


@pytest.fixture(scope="module")
def archives(saved, saved_trees, tmp_path_factory):
    """What the archives of models hold.

    Of weights, of trees, of a stack, and of a table.
    """
    folder = tmp_path_factory.mktemp("archives")
    Model.fit(X, Y, "ensemble", random_state=0, **few("ensemble")).save(
        folder / "members.npz"
    )
    table = pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "seen": pd.Timestamp("2024-01-01")}
    )
    table["seen"] += pd.to_timedelta(np.arange(len(Y)), "D")
    table["city"] = np.resize(["Oslo", "Rome"], len(Y))
    model = Model.fit(table, Y, "logistic-regression", categorical="one-hot")
    lists = [
        HeldOut(Y, X[:, 0] + np.random.default_rng(i).random(len(Y))) for i in range(2)
    ]
    model = model.calibrated(lists, 0.3).profiled(model.encoding.encode(table), lists)
    model.save(folder / "what it learnt of the rows.npz")
    found = {"weights": saved[1], "trees": saved_trees[1]}
    for path in folder.iterdir():
        with np.load(path) as arrays:
            found[path.stem] = dict(arrays)
    return found


@pytest.mark.parametrize(
    ("kind", "change"), [(kind, change) for kind in DAMAGED for change in DAMAGED[kind]]
)
def test_damaged_parts_are_refused(archives, tmp_path, kind, change):
    """No traversal of trees leaves them, or does not end."""
    arrays, parts = archives[kind], change(archives[kind])
    added = {
        name: array for name, array in parts.items() if isinstance(array, np.ndarray)
    }
    np.savez(tmp_path / "m.npz", **(added | changed(arrays, **parts)))
    unloadable(tmp_path / "m.npz", "m.npz")


@pytest.mark.parametrize("damage", WHATEVER)
@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_arrays_are_refused(archives, tmp_path, kind, damage):
    for name in archives[kind].keys() - {"description"}:
        if name.endswith("splits") and damage in ("of another type", "no number"):
            continue  # only their number is read
        if name.startswith("rows_") and damage in ("of another type", "cut off"):
            continue  # fewer hashes are hashes, and two numbers of another type numbers
        parts = {name: WHATEVER[damage](archives[kind][name])}
        np.savez(tmp_path / "m.npz", **changed(archives[kind], **parts))
        unloadable(tmp_path / "m.npz", "m.npz")


@pytest.mark.parametrize("kind", DAMAGED)
def test_an_unchanged_archive_loads(archives, tmp_path, kind):
    np.savez(tmp_path / "m.npz", **changed(archives[kind]))
    assert Model.load(tmp_path / "m.npz").n_features == 5


@pytest.mark.promise("R14")
def test_a_newer_schema_is_rejected(saved, tmp_path):
    np.savez(tmp_path / "m.npz", **changed(saved[1], schema=5, scaling="new"))
    unloadable(tmp_path / "m.npz", "5 1")


def test_a_model_that_may_not_be_read_says_so(saved, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", refuse)  # root may read every file
    unloadable(saved[0], str(saved[0]))


def test_damaged_files(saved, tmp_path):
    whole = saved[0].read_bytes()
    path = tmp_path / "m.npz"
    for content in [b"x", *(whole[:n] for n in range(0, len(whole), 37))]:
        path.write_bytes(content)
        unloadable(path, str(path))
    unloadable(tmp_path, str(tmp_path))
    unloadable(tmp_path / "none.npz", "--save")


@pytest.mark.promise("R14")
@settings(max_examples=150)
@given(place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
def test_a_damaged_byte_is_reported_or_harmless(saved, tmp_path_factory, place, bits):
    content = bytearray(saved[0].read_bytes())
    content[int(place * len(content))] ^= bits
    path = tmp_path_factory.mktemp("damaged") / "m.npz"
    path.write_bytes(content)
    try:
        model = Model.load(path)
    except InputError:
        return
    assert np.array_equal(model.coef, saved[1]["coef"])


def test_invalid_paths(saved, tmp_path):
    model = Model.load(saved[0])
    for place in (tmp_path, tmp_path / "none" / "m.npz", ""):
        with raises(InputError, str(place)):
            model.save(place)


def test_a_model_is_saved_through_a_link_but_never_over_a_pipe(saved, tmp_path):
    model, target = Model.load(saved[0]), tmp_path / "target.npz"
    (tmp_path / "link.npz").symlink_to(target)
    model.save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert np.array_equal(Model.load(target).coef, model.coef)
    os.mkfifo(tmp_path / "pipe")
    with raises(InputError, "pipe"):
        model.save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_model_keeps_its_provenance(tmp_path):
    model = Model.fit(X, Y, k=np.float64(0.5), epochs=np.int64(2), radius=1)
    loaded = reloaded(model, tmp_path / "m.npz")
    assert loaded.params == {**model.params, "k": 0.5, "epochs": 2, "radius": 1}
    assert loaded.about == model.about
    assert (loaded.about["rows"], loaded.about["positives"]) == (80, sum(Y > 0))
    date.fromisoformat(loaded.about["fitted"])
    trees = Model.fit(X, Y, "random-forest", n_estimators=1)
    assert set(trees.about["versions"]) == {
        "precbench",
        "Python",
        "numpy",
        "scikit-learn",
    }
    assert "random_state" not in loaded.params


# --- the intercept of the objective f1, from the solver to scores and a saved model ---


def noisy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    return X, np.where(X[:, 0] - X[:, 1] + rng.standard_normal(600) > 1.5, 1, -1)


def test_every_checkpoint_has_an_intercept():
    X, y = noisy()
    recorder, solver = Recorder(50), OnePMB("f1", batch_size=50, epochs=3)
    arrays = recorder.finish(solver.fit(X, y, trace=recorder))
    assert (
        arrays["intercept"].shape == arrays["rows_seen"].shape
        and arrays["intercept"][0] == 0
    )
    assert arrays["intercept"][-1] == solver.intercept_ != 0
    recorder = Recorder(50)
    assert "intercept" not in recorder.finish(
        solver.set_params(objective="auc").fit(X, y)
    )


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
    keys = [path.stem for path in (folder / "trials").glob("*.json")]
    assert sorted("intercept" in Store(folder).arrays(key) for key in keys) == [
        False,
        True,
    ]


def test_a_model_keeps_its_intercept(tmp_path):
    X, y = noisy()
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
    dataclasses.replace(model, intercept=np.nan).save(tmp_path / "model.npz")
    unloadable(tmp_path / "model.npz", "model.npz")

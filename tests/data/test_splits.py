"""Splits: reproducible, disjoint, stratified on request, and groups never split."""

import re
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.model_selection import StratifiedGroupKFold, TimeSeriesSplit
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler, normalize

from precbench.core.errors import InputError
from precbench.core.kinds import Scaling
from precbench.data import Dataset
from precbench.data.preprocess import Scaler
from precbench.data.splits import split_rows, stratified_group_folds, validation_split
from tests.sentences import raises

N = 200


def make(n_pos=40, groups=None, n_train=None, name="toy", time=None):
    y = np.full(N, -1.0)
    y[np.random.default_rng(0).permutation(N)[:n_pos]] = 1.0
    optional = {"groups": groups, "n_train": n_train, "time": time}
    return Dataset(name, name, np.zeros((N, 1)), y, "0" * 64, **optional)


GROUPS = np.random.default_rng(1).integers(0, 60, N)


@pytest.mark.parametrize("kind", ["random", "kfold"])
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_laws(kind, stratified, groups):
    dataset = make(groups=groups)
    tests = []
    for index in range(5):
        split = split_rows(
            dataset, kind, index, n_splits=5, stratified=stratified, seed=3
        )
        again = split_rows(
            dataset, kind, index, n_splits=5, stratified=stratified, seed=3
        )
        assert all(map(np.array_equal, split, again))
        assert np.array_equal(
            np.sort(np.concatenate([split.train, split.test])), np.arange(N)
        )
        assert np.array_equal(split.test, np.sort(split.test))
        assert not np.array_equal(split.train, np.sort(split.train))
        expected = 0.3 if kind == "random" else 0.2
        assert len(split.test) / N == pytest.approx(
            expected, abs=0.001 if groups is None else 0.1
        )
        if stratified:
            share = np.mean(dataset.y[split.test] > 0)
            assert share == pytest.approx(0.2, abs=0.01 if groups is None else 0.15)
        if groups is not None:
            assert not set(groups[split.train]) & set(groups[split.test])
        tests.append(split.test)
    if kind == "kfold":
        assert np.array_equal(np.sort(np.concatenate(tests)), np.arange(N))
    else:
        assert not np.array_equal(tests[0], tests[1])


def imbalance(fold, y, n_folds):
    """Return by how much the shares of either class in the folds differ from equal
    ones.
    """
    shares = [
        np.bincount(fold[y == c], minlength=n_folds) / np.sum(y == c) for c in (0, 1)
    ]
    return np.sqrt(np.mean((np.array(shares) - 1 / n_folds) ** 2)) * n_folds


@pytest.mark.parametrize("sizes", ["equal", "geometric", "lognormal", "zipf"])
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_groups_are_balanced_as_those_of_scikit_learn(sizes):
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for seed, n_folds in enumerate([2, 5, 10] * 3):
        size = {
            "equal": np.full(40, 5),
            "geometric": rng.geometric(0.3, 40),
            "lognormal": np.ceil(rng.lognormal(1, 1.5, 40)).astype(int),
            "zipf": np.minimum(rng.zipf(1.7, 40), 500),
        }[sizes]
        groups = np.repeat(rng.permutation(40), size)
        y = (rng.random(len(groups)) < rng.gamma(0.5, 0.4, 40)[groups]).astype(int)
        fold = stratified_group_folds(
            y == 1, groups, n_folds, np.random.RandomState(seed)
        )
        assert all(len(set(fold[groups == group])) == 1 for group in range(40))
        ours.append(imbalance(fold, y, n_folds))
        folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        for name, (_, rows) in enumerate(folds.split(groups, y, groups)):
            fold[rows] = name
        theirs.append(imbalance(fold, y, n_folds))
    assert np.mean(ours) <= 1.01 * np.mean(theirs)


def test_groups_alone_in_their_rows_are_rows():
    y = np.arange(1000) % 40 == 0
    fold = stratified_group_folds(y, np.arange(1000), 7, np.random.RandomState(0))
    for label in (False, True):
        assert np.ptp(np.bincount(fold[y == label])) <= 1


def test_any_group_tests_with_the_same_probability():
    groups = np.repeat(np.arange(8), [100, 60, 24, 23, 22, 21, 5, 5])
    y = np.arange(len(groups)) % 3 == 0
    first = np.unique(groups, return_index=True)[1]
    folds = []
    for seed in range(300):
        random_state = np.random.RandomState(seed)
        folds.append(stratified_group_folds(y, groups, 3, random_state)[first])
    assert np.mean(np.array(folds) == 0, axis=0) == pytest.approx(1 / 3, abs=0.09)
    # not only other names
    assert len({(fold[:, None] == fold).tobytes() for fold in folds}) > 1


def test_splits_are_keyed_by_identity():
    def train(**changes):
        options = {"name": "toy", "kind": "random", "index": 0, "seed": 0} | changes
        dataset = make(name=options.pop("name"))
        return split_rows(
            dataset, options.pop("kind"), options.pop("index"), **options
        ).train

    base = train()
    assert np.array_equal(base, train(seed=np.int64(0)))
    # more splits move none of the first
    assert np.array_equal(base, train(n_splits=17))
    for changes in ({"seed": 1}, {"name": "other"}, {"index": 1}):
        assert not np.array_equal(base, train(**changes))


def test_by_time_is_a_time_series_split_from_the_latest_part_back():
    time = np.random.default_rng(2).permutation(N) * 0.5 - 7
    order = np.argsort(time)
    theirs = list(TimeSeriesSplit(4, test_size=30).split(order))[::-1]
    for index, (train, test) in enumerate(theirs):
        split = split_rows(make(time=time), "time", index, n_splits=4, test_size=0.15)
        assert np.array_equal(np.sort(split.train), np.sort(order[train]))
        assert np.array_equal(split.test, np.sort(order[test]))
        assert not np.array_equal(split.train, np.sort(split.train))
        fewer = split_rows(
            make(time=time), "time", index, n_splits=index + 1, test_size=0.15
        )
        assert np.array_equal(fewer.train, split.train)


@given(
    seed=st.integers(0, 2**20), n_times=st.integers(1, 40), share=st.floats(0.05, 0.25)
)
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_no_row_is_tested_with_knowledge_of_its_own_time(groups, seed, n_times, share):
    rng = np.random.default_rng(seed)
    time = rng.choice(rng.standard_normal(n_times), N)
    last = np.inf
    for index in range(3):
        try:
            train, test = split_rows(
                make(100, groups=groups, time=time),
                "time",
                index,
                n_splits=3,
                test_size=share,
            )
        except InputError as error:
            largest = np.unique(time, return_counts=True)[1].max()
            cause = re.search("both classes|groups in the test set", str(error))
            assert cause or largest >= round(share * N)
            break
        assert time[train].max() < time[test].min()
        assert time[test].max() < last
        earlier = np.flatnonzero(time < time[test].min())
        if groups is not None:
            earlier = earlier[~np.isin(groups[earlier], groups[test])]
        assert np.array_equal(np.sort(train), earlier)
        last = time[test].min()


def test_the_latest_training_rows_validate():
    y, time = make().y, np.random.default_rng(3).integers(0, 40, N)
    fit, rows = validation_split(y, 0.2, ("toy", 0), groups=GROUPS, time=time)
    assert np.array_equal(np.sort(np.concatenate([fit, rows])), np.arange(N))
    assert time[fit].max() < time[rows].min()
    assert len(rows) == pytest.approx(40, abs=5)
    with raises(InputError, "1"):
        validation_split(y, 0.2, ("toy", 0), time=np.zeros(N))


def test_a_number_of_training_rows():
    for stratified in (False, True):
        split = split_rows(make(), "random", 2, train_size=37, stratified=stratified)
        assert len(split.train) == 37
        assert len(split.test) == N - 37
        assert np.array_equal(
            np.sort(np.concatenate([split.train, split.test])), np.arange(N)
        )


def test_provided_and_none():
    split = split_rows(make(n_train=150), "provided", 0)
    assert np.array_equal(np.sort(split.train), np.arange(150))
    assert np.array_equal(split.test, np.arange(150, N))
    split = split_rows(make(), "none", 0)
    assert np.array_equal(np.sort(split.train), np.arange(N))
    assert np.array_equal(split.test, np.arange(N))


@pytest.mark.parametrize(
    ("dataset", "arguments", "places"),
    [
        pytest.param(
            make(groups=GROUPS, n_train=150),
            {"kind": "provided"},
            "",
            id="groups in both provided parts",
        ),
        pytest.param(
            make(time=np.arange(N) // 150),
            {"kind": "time", "test_size": 0.1},
            "0 2 0.1",
            id="two times for a tenth of them",
        ),
        pytest.param(
            make(time=np.arange(N), groups=np.arange(N) % 60),
            {"kind": "time", "n_splits": 1},
            "0 140",
            id="groups in the order of time",
        ),
        pytest.param(make(n_pos=1), {}, "0", id="one positive"),
        pytest.param(
            make(n_pos=1),
            {"stratified": True},
            "toy 1 positive 200 2",
            id="one positive, stratified",
        ),
        pytest.param(
            make(n_pos=3), {"kind": "kfold"}, "0 40", id="fewer positives than folds"
        ),
        pytest.param(make(groups=np.zeros(N, int)), {}, "", id="one group"),
        pytest.param(
            make(groups=np.zeros(N, int)),
            {"stratified": True},
            "",
            id="one group, stratified",
        ),
        pytest.param(
            make(groups=GROUPS % 3),
            {"kind": "kfold", "stratified": True},
            "5 3",
            id="fewer groups than folds, stratified",
        ),
        pytest.param(
            make(),
            {"train_size": N},
            f"train_size toy {N}",
            id="as many training rows as rows",
        ),
        pytest.param(
            make(groups=GROUPS),
            {"train_size": 10},
            "",
            id="a count of training rows in groups",
        ),
    ],
)
def test_invalid_arguments(dataset, arguments, places):
    arguments = {"kind": "random", "index": 0} | arguments
    with raises(InputError, places):
        split_rows(dataset, arguments.pop("kind"), arguments.pop("index"), **arguments)


@settings(max_examples=50)
@given(st.integers(2, 50), st.integers(2, 50), st.floats(0.01, 0.99))
def test_validation_split(n_pos, n_neg, share):
    y = np.array([1.0] * n_pos + [-1.0] * n_neg)
    try:
        fit_rows, rows = validation_split(y, share, ("toy", 0))
    except InputError as error:
        assert f"{n_pos} positives" in str(error)
        return
    assert np.array_equal(np.sort(np.concatenate([fit_rows, rows])), np.arange(len(y)))
    assert set(y[fit_rows]) == set(y[rows]) == {-1.0, 1.0}
    assert np.array_equal(fit_rows, validation_split(y, share, ("toy", 0))[0])


@pytest.mark.parametrize(("n_groups", "slack"), [(None, 0), (300, 2)])
def test_validation_split_is_stratified(n_groups, slack):
    y = np.where(np.arange(1000) % 10 == 0, 1.0, -1.0)
    groups = n_groups and np.random.default_rng(0).integers(0, n_groups, 1000)
    fit_rows, rows = validation_split(y, 0.2, ("toy", 0), groups)
    assert np.array_equal(np.sort(np.concatenate([fit_rows, rows])), np.arange(1000))
    assert n_groups is None or not set(groups[fit_rows]) & set(groups[rows])
    assert abs(len(rows) - 200) <= slack
    assert abs(np.count_nonzero(y[rows] > 0) - 20) <= slack / 2


# --- scaling: scikit-learn's numbers, in place, without a second copy of the matrix ---


RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((9000, 7)) * 10.0 ** np.arange(-3, 4) + 5
DENSE[:, 2] = 4.25
SPARSE = csr_matrix(
    np.where(RNG.random((9000, 11)) < 0.2, RNG.standard_normal((9000, 11)), 0.0)
)


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


@pytest.mark.parametrize(
    ("kind", "whole", "twin"),
    [
        pytest.param(
            "standardise", DENSE, StandardScaler().fit_transform, id="standardise"
        ),
        pytest.param("unit", DENSE, MinMaxScaler().fit_transform, id="unit"),
        pytest.param("unit", SPARSE, MaxAbsScaler().fit_transform, id="unit, sparse"),
        pytest.param("unit-norm", DENSE, normalize, id="unit-norm"),
        pytest.param("unit-norm", SPARSE, normalize, id="unit-norm, sparse"),
        pytest.param(
            "standardise-unit-norm",
            DENSE,
            lambda X: normalize(StandardScaler().fit_transform(X)),
            id="standardise-unit-norm",
        ),
        pytest.param("none", DENSE, np.array, id="none"),
        pytest.param("none", SPARSE, csr_matrix, id="none, sparse"),
    ],
)
def test_rows_are_scaled_in_place_as_by_scikit_learn(kind, whole, twin):
    rows = whole.copy()
    rows[17] *= 0
    X = rows.copy()
    assert Scaler(kind).fit(rows).transform_in_place(X) is X
    np.testing.assert_allclose(dense(X), dense(twin(rows)), atol=1e-9)
    assert whole is DENSE or X.nnz == rows.nnz


def test_a_constant_column_becomes_0():
    for kind in ("standardise", "unit"):
        assert not Scaler(kind).fit(DENSE).transform_in_place(DENSE.copy())[:, 2].any()


@pytest.mark.parametrize("kind", get_args(Scaling))
def test_a_saved_scaler_gives_the_same_rows(kind):
    scaler = Scaler(kind).fit(DENSE)
    loaded = Scaler.from_arrays(kind, scaler.to_arrays())
    one, other = (s.transform_in_place(DENSE.copy()) for s in (scaler, loaded))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("kind", get_args(Scaling))
@pytest.mark.parametrize("whole", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_float32_rows_become_the_nearest_of_those_scaled_in_float64(whole, kind):
    if "standardise" in kind and whole is SPARSE:
        return
    single = whole.astype(np.float32)
    double = single.astype(np.float64)
    scaled = Scaler(kind).fit(single).transform_in_place(single.copy())
    expected = Scaler(kind).fit(double).transform_in_place(double.copy())
    assert scaled.dtype == np.float32
    twice_rounded = kind == "standardise-unit-norm"
    assert abs(scaled - expected.astype(np.float32)).max() <= 1e-7 * twice_rounded


LARGE = np.insert(
    DENSE[:, 1:], 6, np.where(np.arange(len(DENSE)) % 2, 1e308, -1e308), axis=1
)


@pytest.mark.parametrize(
    ("call", "places"),
    [
        pytest.param(
            lambda: Scaler("standardise").fit(SPARSE),
            "'unit' 'unit-norm' 'none'",
            id="standardise, sparse",
        ),
        pytest.param(
            lambda: Scaler("standardise").fit(LARGE), "7", id="too large to standardise"
        ),
        pytest.param(lambda: Scaler("unit").fit(LARGE), "7", id="too large for a unit"),
        pytest.param(lambda: Scaler("log"), "'log'", id="unknown kind"),
        pytest.param(
            lambda: Scaler("unit").fit(DENSE).transform_in_place(DENSE[:, :6].copy()),
            "7 6",
            id="other features",
        ),
        pytest.param(
            lambda: Scaler("unit").fit(DENSE).transform_in_place(SPARSE[:, :7].copy()),
            "",
            id="sparse rows after dense ones",
        ),
    ],
)
def test_invalid_scalings(call, places):
    with raises(InputError, places):
        call()

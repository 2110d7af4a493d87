"""Splits: reproducible, disjoint, stratified on request, and groups never split."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

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


def toy(n_pos=40, groups=None, n_train=None, name="toy", time=None):
    """Return a data set of N rows."""
    y = np.full(N, -1.0)
    y[np.random.default_rng(0).permutation(N)[:n_pos]] = 1.0
    return Dataset(
        name=name,
        title=name,
        X=np.zeros((N, 1)),
        y=y,
        sha256="0" * 64,
        groups=groups,
        n_train=n_train,
        time=time,
    )


GROUPS = np.random.default_rng(1).integers(0, 60, N)


def require_partition(parts, n_rows):
    """See that each row is in one of the parts."""
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n_rows))


def is_ascending(rows):
    return np.array_equal(rows, np.sort(rows))


@pytest.mark.parametrize("kind", ["random", "kfold"])
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_laws(kind, stratified, groups):
    dataset = toy(groups=groups)
    test_share = 0.3 if kind == "random" else 0.2
    test_share_slack = 0.001 if groups is None else 0.1
    positives_slack = 0.01 if groups is None else 0.15
    test_sets = []
    for index in range(5):
        options = {"n_splits": 5, "stratified": stratified, "seed": 3}
        split = split_rows(dataset, kind, index, **options)
        again = split_rows(dataset, kind, index, **options)
        assert np.array_equal(again.train, split.train)
        assert np.array_equal(again.test, split.test)
        require_partition([split.train, split.test], N)
        assert is_ascending(split.test)
        assert not is_ascending(split.train)
        assert len(split.test) / N == pytest.approx(test_share, abs=test_share_slack)
        if stratified:
            positives_share = np.mean(dataset.y[split.test] > 0)
            assert positives_share == pytest.approx(0.2, abs=positives_slack)
        if groups is not None:
            assert not set(groups[split.train]) & set(groups[split.test])
        test_sets.append(split.test)
    if kind == "kfold":
        require_partition(test_sets, N)
    else:
        assert not np.array_equal(test_sets[0], test_sets[1])


def imbalance(fold, y, n_folds):
    """Return by how much the shares of either class in the folds differ from equal
    ones.
    """
    shares = [
        np.bincount(fold[y == label], minlength=n_folds) / np.sum(y == label)
        for label in (0, 1)
    ]
    differences = np.array(shares) - 1 / n_folds
    return np.sqrt(np.mean(differences**2)) * n_folds


def folds_of_scikit_learn(y, groups, n_folds, seed):
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    fold = np.empty(len(y), dtype=int)
    for number, (_, rows) in enumerate(splitter.split(groups, y, groups)):
        fold[rows] = number
    return fold


# Functions that draw the sizes of 40 groups
GROUP_SIZES = {
    "equal": lambda rng: np.full(40, 5),
    "geometric": lambda rng: rng.geometric(0.3, 40),
    "lognormal": lambda rng: np.ceil(rng.lognormal(1, 1.5, 40)).astype(int),
    "zipf": lambda rng: np.minimum(rng.zipf(1.7, 40), 500),
}


@pytest.mark.parametrize("draw_sizes", GROUP_SIZES.values(), ids=GROUP_SIZES)
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_groups_are_balanced_as_those_of_scikit_learn(draw_sizes):
    rng = np.random.default_rng(0)
    ours = []
    theirs = []
    for seed, n_folds in enumerate([2, 5, 10] * 3):
        size = draw_sizes(rng)
        groups = np.repeat(rng.permutation(40), size)
        probability = rng.gamma(0.5, 0.4, 40)[groups]
        y = (rng.random(len(groups)) < probability).astype(int)
        random_state = np.random.RandomState(seed)
        fold = stratified_group_folds(y == 1, groups, n_folds, random_state)
        for group in range(40):
            assert len(set(fold[groups == group])) == 1
        ours.append(imbalance(fold, y, n_folds))
        fold_of_theirs = folds_of_scikit_learn(y, groups, n_folds, seed)
        theirs.append(imbalance(fold_of_theirs, y, n_folds))
    assert np.mean(ours) <= 1.01 * np.mean(theirs)


@pytest.mark.parametrize("label", [False, True])
def test_groups_alone_in_their_rows_are_dealt_as_rows(label):
    y = np.arange(1000) % 40 == 0
    fold = stratified_group_folds(y, np.arange(1000), 7, np.random.RandomState(0))
    rows_per_fold = np.bincount(fold[y == label])
    assert np.ptp(rows_per_fold) <= 1


def folds_of_eight_groups():
    """Return the folds of the groups, three in all, for each of 300 seeds."""
    groups = np.repeat(np.arange(8), [100, 60, 24, 23, 22, 21, 5, 5])
    y = np.arange(len(groups)) % 3 == 0
    first_rows = np.unique(groups, return_index=True)[1]
    folds = []
    for seed in range(300):
        random_state = np.random.RandomState(seed)
        fold_of_row = stratified_group_folds(y, groups, 3, random_state)
        folds.append(fold_of_row[first_rows])
    return np.array(folds)


def test_any_group_tests_with_the_same_probability():
    shares_in_first_fold = np.mean(folds_of_eight_groups() == 0, axis=0)
    assert shares_in_first_fold == pytest.approx(1 / 3, abs=0.09)


def test_seeds_part_groups_differently_and_not_by_other_names_of_folds_only():
    partitions = {(fold[:, None] == fold).tobytes() for fold in folds_of_eight_groups()}
    assert len(partitions) > 1


def training_rows(name="toy", index=0, **options):
    return split_rows(toy(name=name), "random", index, **options).train


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"seed": np.int64(0)}, id="seed of NumPy"),
        pytest.param({"n_splits": 17}, id="more splits"),
    ],
)
def test_a_split_stays(options):
    assert np.array_equal(training_rows(**options), training_rows())


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"seed": 1}, id="seed"),
        pytest.param({"name": "other"}, id="data set"),
        pytest.param({"index": 1}, id="index"),
    ],
)
def test_a_split_follows_from_seed_data_set_and_index(options):
    assert not np.array_equal(training_rows(**options), training_rows())


def test_by_time_is_a_time_series_split_from_the_latest_part_back():
    time = np.random.default_rng(2).permutation(N) * 0.5 - 7
    dataset = toy(time=time)
    order = np.argsort(time)
    from_the_latest = [*TimeSeriesSplit(4, test_size=30).split(order)][::-1]
    for index, (train, test) in enumerate(from_the_latest):
        split = split_rows(dataset, "time", index, n_splits=4, test_size=0.15)
        assert np.array_equal(np.sort(split.train), np.sort(order[train]))
        assert np.array_equal(split.test, np.sort(order[test]))
        assert not is_ascending(split.train)
        of_fewer = split_rows(
            dataset, "time", index, n_splits=index + 1, test_size=0.15
        )
        assert np.array_equal(of_fewer.train, split.train)


@given(
    seed=st.integers(0, 2**20), n_times=st.integers(1, 40), share=st.floats(0.05, 0.25)
)
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_no_row_is_tested_with_knowledge_of_its_own_time(groups, seed, n_times, share):
    rng = np.random.default_rng(seed)
    time = rng.choice(rng.standard_normal(n_times), N)
    dataset = toy(100, groups=groups, time=time)
    end = np.inf  # the time at which the window must be over
    for index in range(3):
        try:
            split = split_rows(dataset, "time", index, n_splits=3, test_size=share)
        except InputError as error:
            n_rows_of_a_time = np.unique(time, return_counts=True)[1]
            has_large_time = n_rows_of_a_time.max() >= round(share * N)
            cause = re.search("both classes|groups in the test set", str(error))
            assert cause or has_large_time
            break
        begin = time[split.test].min()
        assert time[split.train].max() < begin
        assert time[split.test].max() < end
        earlier = np.flatnonzero(time < begin)
        if groups is not None:
            earlier = earlier[~np.isin(groups[earlier], groups[split.test])]
        assert np.array_equal(np.sort(split.train), earlier)
        end = begin


def test_the_latest_training_rows_validate():
    time = np.random.default_rng(3).integers(0, 40, N)
    fit_rows, validation_rows = validation_split(
        toy().y, 0.2, ("toy", 0), groups=GROUPS, time=time
    )
    require_partition([fit_rows, validation_rows], N)
    assert time[fit_rows].max() < time[validation_rows].min()
    assert len(validation_rows) == pytest.approx(40, abs=5)


def test_rows_of_one_time_cannot_be_divided_by_time():
    with raises(InputError, "1"):
        validation_split(toy().y, 0.2, ("toy", 0), time=np.zeros(N))


@pytest.mark.parametrize("stratified", [False, True])
def test_a_number_of_training_rows(stratified):
    split = split_rows(toy(), "random", 2, train_size=37, stratified=stratified)
    assert len(split.train) == 37
    assert len(split.test) == N - 37
    require_partition([split.train, split.test], N)


def test_the_provided_split_trains_on_the_first_rows():
    split = split_rows(toy(n_train=150), "provided", 0)
    assert np.array_equal(np.sort(split.train), np.arange(150))
    assert np.array_equal(split.test, np.arange(150, N))


def test_without_a_split_all_rows_train_and_test():
    split = split_rows(toy(), "none", 0)
    assert np.array_equal(np.sort(split.train), np.arange(N))
    assert np.array_equal(split.test, np.arange(N))


@dataclass(frozen=True)
class Impossible:
    """A split that cannot be made, and the words of the refusal."""

    dataset: Dataset
    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    words: str = ""


ONE_GROUP = np.zeros(N, int)
IMPOSSIBLE_SPLITS = {
    "groups in both provided parts": Impossible(
        toy(groups=GROUPS, n_train=150), "provided"
    ),
    "two times for a tenth of them": Impossible(
        toy(time=np.arange(N) // 150), "time", {"test_size": 0.1}, words="0 2 0.1"
    ),
    "groups in the order of time": Impossible(
        toy(time=np.arange(N), groups=np.arange(N) % 60),
        "time",
        {"n_splits": 1},
        words="0 140",
    ),
    "one positive": Impossible(toy(n_pos=1), "random", words="0"),
    "one positive, stratified": Impossible(
        toy(n_pos=1), "random", {"stratified": True}, words="toy 1 positive 200 2"
    ),
    "fewer positives than folds": Impossible(toy(n_pos=3), "kfold", words="0 40"),
    "one group": Impossible(toy(groups=ONE_GROUP), "random"),
    "one group, stratified": Impossible(
        toy(groups=ONE_GROUP), "random", {"stratified": True}
    ),
    "fewer groups than folds, stratified": Impossible(
        toy(groups=GROUPS % 3), "kfold", {"stratified": True}, words="5 3"
    ),
    "as many training rows as rows": Impossible(
        toy(), "random", {"train_size": N}, words=f"train_size toy {N}"
    ),
    "a count of training rows in groups": Impossible(
        toy(groups=GROUPS), "random", {"train_size": 10}
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE_SPLITS.values(), ids=IMPOSSIBLE_SPLITS)
def test_invalid_arguments(case):
    with raises(InputError, case.words):
        split_rows(case.dataset, case.kind, 0, **case.options)


@settings(max_examples=50)
@given(st.integers(2, 50), st.integers(2, 50), st.floats(0.01, 0.99))
def test_both_parts_of_a_validation_split_have_both_classes(n_pos, n_neg, share):
    y = np.array([1.0] * n_pos + [-1.0] * n_neg)
    try:
        fit_rows, validation_rows = validation_split(y, share, ("toy", 0))
    except InputError as error:
        assert f"{n_pos} positives" in str(error)
        return
    require_partition([fit_rows, validation_rows], len(y))
    assert set(y[fit_rows]) == {-1.0, 1.0}
    assert set(y[validation_rows]) == {-1.0, 1.0}
    fit_rows_again, _ = validation_split(y, share, ("toy", 0))
    assert np.array_equal(fit_rows_again, fit_rows)


Y_OF_1000 = np.where(np.arange(1000) % 10 == 0, 1.0, -1.0)


def test_a_validation_split_is_stratified():
    fit_rows, validation_rows = validation_split(Y_OF_1000, 0.2, ("toy", 0))
    require_partition([fit_rows, validation_rows], 1000)
    assert len(validation_rows) == 200
    assert np.count_nonzero(Y_OF_1000[validation_rows] > 0) == 20


def test_a_validation_split_of_groups_is_nearly_stratified():
    groups = np.random.default_rng(0).integers(0, 300, 1000)
    fit_rows, validation_rows = validation_split(Y_OF_1000, 0.2, ("toy", 0), groups)
    require_partition([fit_rows, validation_rows], 1000)
    assert not set(groups[fit_rows]) & set(groups[validation_rows])
    assert abs(len(validation_rows) - 200) <= 2
    assert abs(np.count_nonzero(Y_OF_1000[validation_rows] > 0) - 20) <= 1


# --- scaling: scikit-learn's numbers, in place, without a second copy of the matrix ---


RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((9000, 7)) * 10.0 ** np.arange(-3, 4) + 5
CONSTANT_COLUMN = 2
DENSE[:, CONSTANT_COLUMN] = 4.25
IS_STORED = RNG.random((9000, 11)) < 0.2
SPARSE = csr_matrix(np.where(IS_STORED, RNG.standard_normal((9000, 11)), 0.0))


def standardised_then_normed(X):
    return normalize(StandardScaler().fit_transform(X))


@dataclass(frozen=True)
class Twin:
    """A kind of scaling, and the function of scikit-learn that gives the same rows."""

    kind: str
    scale: Callable[[Any], Any]


DENSE_TWINS = {
    "standardise": Twin("standardise", StandardScaler().fit_transform),
    "unit": Twin("unit", MinMaxScaler().fit_transform),
    "unit-norm": Twin("unit-norm", normalize),
    "standardise-unit-norm": Twin("standardise-unit-norm", standardised_then_normed),
    "none": Twin("none", np.array),
}
SPARSE_TWINS = {
    "unit": Twin("unit", MaxAbsScaler().fit_transform),
    "unit-norm": Twin("unit-norm", normalize),
    "none": Twin("none", csr_matrix),
}


def with_a_row_of_zeros(X):
    rows = X.copy()
    rows[17] *= 0
    return rows


@pytest.mark.parametrize("twin", DENSE_TWINS.values(), ids=DENSE_TWINS)
def test_dense_rows_are_scaled_in_place_as_by_scikit_learn(twin):
    rows = with_a_row_of_zeros(DENSE)
    X = rows.copy()
    assert Scaler(twin.kind).fit(rows).transform_in_place(X) is X
    np.testing.assert_allclose(X, twin.scale(rows), atol=1e-9)


@pytest.mark.parametrize("twin", SPARSE_TWINS.values(), ids=SPARSE_TWINS)
def test_sparse_rows_are_scaled_in_place_as_by_scikit_learn(twin):
    rows = with_a_row_of_zeros(SPARSE)
    X = rows.copy()
    assert Scaler(twin.kind).fit(rows).transform_in_place(X) is X
    expected = twin.scale(rows)
    np.testing.assert_allclose(X.toarray(), expected.toarray(), atol=1e-9)
    assert X.nnz == rows.nnz


@pytest.mark.parametrize("kind", ["standardise", "unit"])
def test_a_constant_column_becomes_0(kind):
    X = Scaler(kind).fit(DENSE).transform_in_place(DENSE.copy())
    assert not X[:, CONSTANT_COLUMN].any()


@pytest.mark.parametrize("kind", get_args(Scaling))
def test_a_saved_scaler_gives_the_same_rows(kind):
    scaler = Scaler(kind).fit(DENSE)
    loaded = Scaler.from_arrays(kind, scaler.to_arrays())
    X = scaler.transform_in_place(DENSE.copy())
    X_of_loaded = loaded.transform_in_place(DENSE.copy())
    assert np.array_equal(X_of_loaded, X)


@pytest.mark.parametrize(
    ("whole", "kind"),
    [
        *[pytest.param(DENSE, kind, id=f"dense-{kind}") for kind in get_args(Scaling)],
        *[pytest.param(SPARSE, kind, id=f"sparse-{kind}") for kind in SPARSE_TWINS],
    ],
)
def test_float32_rows_become_the_nearest_of_those_scaled_in_float64(whole, kind):
    single = whole.astype(np.float32)
    double = single.astype(np.float64)
    scaled = Scaler(kind).fit(single).transform_in_place(single.copy())
    expected = Scaler(kind).fit(double).transform_in_place(double.copy())
    is_rounded_twice = kind == "standardise-unit-norm"
    tolerance = 1e-7 if is_rounded_twice else 0
    assert scaled.dtype == np.float32
    assert abs(scaled - expected.astype(np.float32)).max() <= tolerance


HUGE_VALUES = np.where(np.arange(len(DENSE)) % 2, 1e308, -1e308)
LARGE = np.insert(DENSE[:, 1:], 6, HUGE_VALUES, axis=1)


@pytest.mark.parametrize(
    ("kind", "X", "words"),
    [
        pytest.param(
            "standardise", SPARSE, "'unit' 'unit-norm' 'none'", id="standardise, sparse"
        ),
        pytest.param("standardise", LARGE, "7", id="too large to standardise"),
        pytest.param("unit", LARGE, "7", id="too large for a unit"),
    ],
)
def test_a_scaling_that_cannot_be_learnt(kind, X, words):
    scaler = Scaler(kind)
    with raises(InputError, words):
        scaler.fit(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        pytest.param(DENSE[:, :6], "7 6", id="other features"),
        pytest.param(SPARSE[:, :7], "", id="sparse rows after dense ones"),
    ],
)
def test_rows_that_do_not_fit_the_scaler(X, words):
    scaler = Scaler("unit").fit(DENSE)
    with raises(InputError, words):
        scaler.transform_in_place(X.copy())


def test_an_unknown_kind_of_scaling():
    with raises(InputError, "'log'"):
        Scaler("log")

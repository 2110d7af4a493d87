"""Splits: reproducible, disjoint, stratified on request, and groups never split."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precbench.data import Dataset
from precbench.data.splits import split_rows, validation_split
from precbench.errors import InputError

N = 200


def make(n_pos=40, groups=None, n_train=None, name="toy"):
    y = np.full(N, -1.0)
    y[np.random.default_rng(0).permutation(N)[:n_pos]] = 1.0
    return Dataset(name, name, np.zeros((N, 1)), y, "0" * 64, groups=groups, n_train=n_train)


GROUPS = np.random.default_rng(1).integers(0, 60, N)


@pytest.mark.parametrize("kind", ["random", "kfold"])
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_laws(kind, stratified, groups):
    dataset = make(groups=groups)
    tests = []
    for index in range(5):
        split = split_rows(dataset, kind, index, n_splits=5, stratified=stratified, seed=3)
        again = split_rows(dataset, kind, index, n_splits=5, stratified=stratified, seed=3)
        assert np.array_equal(split.train, again.train)
        assert np.array_equal(split.test, again.test)
        assert np.array_equal(np.sort(np.concatenate([split.train, split.test])), np.arange(N))
        assert np.array_equal(split.test, np.sort(split.test))
        assert not np.array_equal(split.train, np.sort(split.train))
        expected = 0.3 if kind == "random" else 0.2
        assert len(split.test) / N == pytest.approx(expected, abs=0.001 if groups is None else 0.1)
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


def test_splits_are_keyed_by_identity():
    def train(**changes):
        options = {"name": "toy", "kind": "random", "index": 0, "seed": 0} | changes
        dataset = make(name=options.pop("name"))
        return split_rows(dataset, options.pop("kind"), options.pop("index"), **options).train

    base = train()
    assert np.array_equal(base, train(seed=np.int64(0)))
    assert np.array_equal(base, train(n_splits=17))  # more splits move none of the first
    for changes in ({"seed": 1}, {"name": "other"}, {"index": 1}):
        assert not np.array_equal(base, train(**changes))


def test_a_number_of_training_rows():
    for stratified in (False, True):
        split = split_rows(make(), "random", 2, train_size=37, stratified=stratified)
        assert len(split.train) == 37 and len(split.test) == N - 37
        assert np.array_equal(np.sort(np.concatenate([split.train, split.test])), np.arange(N))


def test_provided_and_none():
    split = split_rows(make(n_train=150), "provided", 0)
    assert np.array_equal(np.sort(split.train), np.arange(150))
    assert np.array_equal(split.test, np.arange(150, N))
    split = split_rows(make(), "none", 0)
    assert np.array_equal(np.sort(split.train), np.arange(N))
    assert np.array_equal(split.test, np.arange(N))


@pytest.mark.parametrize(
    ("dataset", "arguments", "what"),
    [
        (make(), {"index": 5}, r"must lie in 0\.\.4, found 5"),
        (make(), {"index": -1}, "found -1"),
        (make(), {"test_size": 1.0}, "test_size must lie between 0 and 1"),
        (make(), {"kind": "bootstrap"}, "'none', found 'bootstrap'"),
        (make(), {"kind": "provided"}, "without a provided split"),
        (make(groups=GROUPS, n_train=150), {"kind": "provided"}, "parts [0-9]+ groups"),
        (make(n_pos=1), {}, "the (training|test) part has 0 positives"),
        (make(n_pos=1), {"stratified": True}, "needs at least 2 rows of each class"),
        (make(n_pos=3), {"kind": "kfold"}, "the test part has 0 positives in 40 rows"),
        (make(groups=np.zeros(N, int)), {}, "cannot be split like this"),
        (make(), {"train_size": N}, f"train_size is {N} and toy has {N} rows"),
        (make(groups=GROUPS), {"train_size": 10}, "rows of toy come in groups"),
    ],
)
def test_invalid_arguments(dataset, arguments, what):
    arguments = {"kind": "random", "index": 0} | arguments
    with pytest.raises(InputError, match=what):
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
    again = validation_split(y, share, ("toy", 0))
    assert np.array_equal(fit_rows, again[0])


def test_validation_split_is_stratified():
    y = np.where(np.arange(1000) % 10 == 0, 1.0, -1.0)
    fit_rows, rows = validation_split(y, 0.2, ("toy", 0))
    assert np.count_nonzero(y[rows] > 0) == 20
    assert np.array_equal(fit_rows, np.sort(fit_rows))
    with pytest.raises(InputError, match="between 0 and 1"):
        validation_split(y, 0, ("toy", 0))

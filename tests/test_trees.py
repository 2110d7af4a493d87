"""Trees that take missing values and categories, against the libraries that have grown them."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier

from precbench.model.shapley import Contributions
from precbench.solvers.members import Member
from precbench.solvers.trees import Split, Trees, histogram_trees, lightgbm_trees

CATEGORIES = [1, 3]  # columns


def rows(n=600, seed=0):
    """Return rows with gaps in four of five columns, of which two have categories, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[:, 1], X[:, 3] = rng.choice([0, 2, 3, 40, 41, 70, 100], n), rng.integers(0, 9, n)
    X[rng.random((n, 5)) < 0.1] = 0
    y = X[:, 0] + np.isin(X[:, 1], [2, 41, 100]) + (X[:, 3] % 2) + rng.standard_normal(n) > 1
    X[rng.random((n, 5)) < 0.2 * np.array([1, 1, 0, 1, 1])] = np.nan
    return X, y


def new_rows():
    """Return others, with unknown categories, and a gap where none was in training."""
    X, _ = rows(300, seed=1)
    X[:40, 1], X[40:80, 3], X[80:90, 2] = 7, 3000, np.nan
    X[90:100, 1], X[100:110, 3] = -5, 1e12
    return X


def histogram(*, categories: bool) -> tuple[Trees, Any]:
    X, y = rows()
    fitted = HistGradientBoostingClassifier(
        max_iter=10, min_samples_leaf=5, categorical_features=CATEGORIES if categories else None
    ).fit(X, y)
    return histogram_trees(fitted, 5, takes_missing=True), fitted.decision_function


def lightgbm(*, categories: bool, **params: Any) -> tuple[Trees, Any]:
    package = pytest.importorskip("lightgbm")
    X, y = rows()
    params = {"objective": "binary", "min_data_in_leaf": 5, "verbosity": -1, **params}
    params |= {"min_data_per_group": 5, "cat_smooth": 1, "num_threads": 1}
    data = package.Dataset(X, y, categorical_feature=CATEGORIES if categories else [])
    booster = package.train(params, data, 10)
    return lightgbm_trees(booster, 5), lambda X: booster.predict(X, raw_score=True)


GROWN = {
    "histogram": (histogram, {"categories": False}),
    "histogram, categories": (histogram, {"categories": True}),
    "lightgbm": (lightgbm, {"categories": False}),
    "lightgbm, categories": (lightgbm, {"categories": True}),
    "lightgbm, one category against the rest": (
        lightgbm,
        {"categories": True, "max_cat_to_onehot": 100},
    ),
    "lightgbm, zeros are missing": (lightgbm, {"categories": False, "zero_as_missing": True}),
}


@cache
def grown(name):
    make, options = GROWN[name]
    return make(**options)


@pytest.mark.parametrize("name", GROWN)
def test_scores_are_those_of_the_library(name):
    trees, scores = grown(name)
    for X in (rows()[0], new_rows()):
        assert_array_equal(trees.scores(X), scores(X))
        assert_array_equal(trees.scores(sparse.csr_matrix(X)), scores(X))
    flags = trees.split[trees.feature >= 0]
    assert (flags & Split.LEFT).any() and not (flags & Split.LEFT).all()
    assert (flags & Split.CATEGORY).any() == ("categor" in name) == (len(trees.categories) > 0)
    part = trees.first(7)
    assert len(part.root) == 7 and np.abs(part.scores(X) - trees.scores(X)).max() > 0


@pytest.mark.parametrize("name", GROWN)
def test_a_file_holds_what_is_missing(name):
    trees, _ = grown(name)
    again = Trees.from_arrays(trees.to_arrays(), **trees.described)
    assert_array_equal(again.scores(new_rows()), trees.scores(new_rows()))


def test_trees_without_gaps_have_no_further_arrays():
    X, y = rows()
    X = np.nan_to_num(X)
    trees = histogram_trees(HistGradientBoostingClassifier(max_iter=3).fit(X, y), 5)
    assert trees.to_arrays().keys() == {"splits", "feature", "value", "right", "root", "cover"}


def damaged(trees):
    arrays = trees.to_arrays()
    place = int(np.flatnonzero((trees.split & Split.CATEGORY > 0) & (trees.feature >= 0))[0])
    for at in (-1.0, 0.5, float(len(trees.categories))):
        value = arrays["value"].copy()
        value[place] = at
        yield arrays | {"value": value}
    categories = arrays["categories"].copy()
    categories[int(arrays["value"][place])] = len(categories)
    yield arrays | {"categories": categories}
    yield arrays | {"categories": arrays["categories"].astype(np.int64)}
    yield arrays | {"split": arrays["split"][1:]}
    yield arrays | {"split": arrays["split"].astype(np.int8)}
    yield {name: array for name, array in arrays.items() if name != "categories"}


def test_damaged_splits_are_refused():
    trees, _ = grown("histogram, categories")
    for arrays in damaged(trees):
        with pytest.raises(ValueError, match=r"the splits are not|the arrays are not"):
            Trees.from_arrays(arrays, **trees.described)


@pytest.mark.parametrize("name", GROWN)
def test_values_of_rows_with_gaps_add_up(name):
    trees, _ = grown(name)
    X, column = new_rows()[:30], np.arange(5, dtype=np.int32)
    told = Contributions.of([Member("", trees=trees)], X, np.zeros(5), column, is_stacked=False)
    assert_allclose(told.base + told.values.sum(axis=1), trees.scores(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("categories", [False, True])
def test_values_are_those_of_lightgbm(categories):
    package = pytest.importorskip("lightgbm")
    X, y = rows()
    data = package.Dataset(X, y, categorical_feature=CATEGORIES if categories else [])
    params = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_per_group": 5}
    booster = package.train(params, data, 10)
    column, member = np.arange(5, dtype=np.int32), Member("", trees=lightgbm_trees(booster, 5))
    told = Contributions.of([member], X, np.zeros(5), column, is_stacked=False)
    *expected, base = booster.predict(X, pred_contrib=True).T
    assert_allclose(told.values.T, expected, rtol=0, atol=1e-9)
    assert told.base == pytest.approx(base[0], abs=1e-9)


def test_other_categories_are_refused():
    X, y = rows()
    X[:, 3] += 0.5
    fitted = HistGradientBoostingClassifier(max_iter=2, categorical_features=[3]).fit(X, y)
    with pytest.raises(TypeError, match="whole numbers"):
        histogram_trees(fitted, 5)

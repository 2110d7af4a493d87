"""Trees as arrays, against the libraries that have grown them."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier

from precbench.model.shapley import Contributions
from precbench.solvers.members import Member
from precbench.solvers.trees import Trees, histogram_trees, lightgbm_trees


def rows(n=600, seed=0):
    """Return rows, many of whose values are 0, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[:, 3] = rng.integers(0, 9, n)
    X[rng.random((n, 5)) < 0.1] = 0
    return X, X[:, 0] + (X[:, 3] % 2) + rng.standard_normal(n) > 1


def histogram() -> tuple[Trees, Any]:
    fitted = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5).fit(*rows())
    return histogram_trees(fitted, 5), fitted.decision_function


def booster():
    package = pytest.importorskip("lightgbm")
    params = {"objective": "binary", "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1}
    return package.train(params, package.Dataset(*rows()), 10)


def lightgbm() -> tuple[Trees, Any]:
    fitted = booster()
    return lightgbm_trees(fitted, 5), lambda X: fitted.predict(X, raw_score=True)


@pytest.mark.parametrize("grow", [histogram, lightgbm])
def test_scores_are_those_of_the_library(grow):
    trees, scores = grow()
    for X in (rows()[0], rows(300, seed=1)[0]):
        assert_array_equal(trees.scores(X), scores(X))
        assert_array_equal(trees.scores(sparse.csr_matrix(X)), scores(X))
    part = trees.first(7)
    assert len(part.root) == 7 and np.abs(part.scores(X) - trees.scores(X)).max() > 0
    again = Trees.from_arrays(trees.to_arrays(), **trees.described)
    assert_array_equal(again.scores(X), scores(X))


def test_values_are_those_of_lightgbm():
    fitted, X = booster(), rows()[0]
    column, member = np.arange(5, dtype=np.int32), Member("", trees=lightgbm_trees(fitted, 5))
    values = Contributions.of([member], X, np.zeros(5), column, is_stacked=False)
    *expected, base = fitted.predict(X, pred_contrib=True).T
    assert_allclose(values.values.T, expected, rtol=0, atol=1e-9)
    assert values.base == pytest.approx(base[0], abs=1e-9)

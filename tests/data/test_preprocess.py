"""Scaling: scikit-learn's numbers, in place, without a second copy of the matrix."""

from typing import get_args

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler, normalize

from precbench.data.preprocess import Scaler, Scaling
from precbench.errors import InputError
from tests.sentences import raises

RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((9000, 7)) * 10.0 ** np.arange(-3, 4) + 5
DENSE[:, 2] = 4.25
SPARSE = csr_matrix(np.where(RNG.random((9000, 11)) < 0.2, RNG.standard_normal((9000, 11)), 0.0))


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


@pytest.mark.parametrize(("kind", "whole", "twin"), [
    ("standardise", DENSE, StandardScaler().fit_transform),
    ("unit", DENSE, MinMaxScaler().fit_transform), ("unit", SPARSE, MaxAbsScaler().fit_transform),
    ("unit-norm", DENSE, normalize), ("unit-norm", SPARSE, normalize),
    ("standardise-unit-norm", DENSE, lambda X: normalize(StandardScaler().fit_transform(X))),
    ("none", DENSE, np.array), ("none", SPARSE, csr_matrix),
])  # fmt: skip
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
    found = Scaler(kind).fit(single).transform_in_place(single.copy())
    expected = Scaler(kind).fit(double).transform_in_place(double.copy())
    assert found.dtype == np.float32
    twice_rounded = kind == "standardise-unit-norm"
    assert abs(found - expected.astype(np.float32)).max() <= 1e-7 * twice_rounded


LARGE = np.insert(DENSE[:, 1:], 6, np.where(np.arange(len(DENSE)) % 2, 1e308, -1e308), axis=1)


@pytest.mark.parametrize(("call", "places"), [
    (lambda: Scaler("standardise").fit(SPARSE), "'unit' 'unit-norm' 'none'"),
    (lambda: Scaler("standardise").fit(LARGE), "7"), (lambda: Scaler("unit").fit(LARGE), "7"),
    (lambda: Scaler("log"), "'log'"),
    (lambda: Scaler("unit").fit(DENSE).transform_in_place(DENSE[:, :6].copy()), "7 6"),
    (lambda: Scaler("unit").fit(DENSE).transform_in_place(SPARSE[:, :7].copy()), ""),
])  # fmt: skip
def test_invalid_arguments(call, places):
    with raises(InputError, places):
        call()

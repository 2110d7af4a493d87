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


def test_standardise():
    X = DENSE.copy()
    assert Scaler("standardise").fit(DENSE).transform_in_place(X) is X
    np.testing.assert_allclose(X, StandardScaler().fit_transform(DENSE), atol=1e-9)
    assert np.all(X[:, 2] == 0)


def test_unit():
    X = Scaler("unit").fit(DENSE).transform_in_place(DENSE.copy())
    np.testing.assert_allclose(X, MinMaxScaler().fit_transform(DENSE), atol=1e-12)
    varying = np.delete(X, 2, axis=1)
    assert np.all(varying.min(axis=0) == 0)
    assert np.all(varying.max(axis=0) == 1)
    assert np.all(X[:, 2] == 0)


def test_unit_of_sparse_rows_keeps_the_zeros():
    X = SPARSE.copy()
    assert Scaler("unit").fit(SPARSE).transform_in_place(X) is X
    assert X.nnz == SPARSE.nnz
    np.testing.assert_allclose(X.toarray(), MaxAbsScaler().fit_transform(SPARSE).toarray())


@pytest.mark.parametrize("whole", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_rows_of_unit_norm(whole):
    rows = whole.copy()
    rows[17] *= 0
    X = rows.copy()
    assert Scaler("unit-norm").fit(rows).transform_in_place(X) is X
    assert abs(X - normalize(rows)).max() == 0
    assert abs(X[17]).max() == 0


def test_rows_of_unit_norm_after_standardising():
    X = Scaler("standardise-unit-norm").fit(DENSE).transform_in_place(DENSE.copy())
    np.testing.assert_allclose(X, normalize(StandardScaler().fit_transform(DENSE)), atol=1e-12)


def test_none_changes_nothing():
    X = DENSE.copy()
    assert np.array_equal(Scaler("none").fit(DENSE).transform_in_place(X), DENSE)
    assert Scaler("none").to_arrays() == {}


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


def test_invalid_arguments():
    with raises(InputError, "'unit' 'unit-norm' 'none'"):
        Scaler("standardise").fit(SPARSE)
    large = np.where(np.arange(len(DENSE)) % 2, 1e308, -1e308)
    for kind in ("standardise", "unit"):
        with raises(InputError, "7"):
            Scaler(kind).fit(np.insert(DENSE[:, 1:], 6, large, axis=1))
    with raises(InputError, "'log'"):
        Scaler("log")
    with raises(InputError, "7 6"):
        Scaler("unit").fit(DENSE).transform_in_place(DENSE[:, :6].copy())
    with raises(InputError):
        Scaler("unit").fit(DENSE).transform_in_place(SPARSE[:, :7].copy())

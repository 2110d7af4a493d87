"""Rows of a matrix as the kernels take them, and products with a vector."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from precbench.core.errors import InputError
from precbench.core.kernels.linear import add_rows, dot
from precbench.core.kernels.linear import linear_scores as fill_scores

VALUES_PER_SLICE = 2**24  # that a kernel reads in a small fraction of 0.1 s
# The types of rows that kernels read. Their sums are of float64.
STORED = (np.float64, np.float32)

_NO_INDEX = np.empty(0, dtype=np.int32)


class Rows(NamedTuple):
    """A matrix as the kernels take it: `indices` and `indptr` are empty if dense."""

    data: NDArray[np.floating]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    n_rows: int
    n_features: int

    def per_slice(self) -> int:
        """Return the number of rows that hold about `VALUES_PER_SLICE` values."""
        return max(1, VALUES_PER_SLICE * self.n_rows // max(1, self.data.size))


def as_rows(X: Any) -> Rows:
    """Wrap a matrix, C-contiguous or CSR, without copying its values.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from precbench.solvers import as_rows
    >>> rows = as_rows(csr_matrix([[0.0, 7.0], [8.0, 9.0]]))
    >>> rows.data.tolist(), rows.indices.tolist(), rows.indptr.tolist()
    ([7.0, 8.0, 9.0], [1, 0, 1], [0, 1, 3])
    """
    if not sparse.issparse(X):
        return Rows(X.ravel(), _NO_INDEX, _NO_INDEX, *X.shape)
    X = with_short_indices(X)
    return Rows(X.data, X.indices, X.indptr, *X.shape)


def check_form(X: Any) -> None:
    """Raise an error if the arrays of a sparse matrix contradict each other.

    Kernels trust every index.
    """
    form = X.format if sparse.issparse(X) else "dense"
    try:
        if form in ("csr", "csc", "bsr"):
            # A matrix of its own around the same arrays: SciPy's check would replace
            # the caller's arrays by shorter ones, or by arrays of another type.
            matrix = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            matrix.check_format(full_check=True)
            # SciPy does not check this in a matrix without entries.
            if (np.diff(X.indptr) < 0).any():
                raise ValueError(
                    "indptr, where each row or column begins, must not decrease"
                )
        elif form == "coo":
            # A new matrix raises an error if an index is outside its shape.
            type(X)((X.data, (X.row, X.col)), shape=X.shape)
    except ValueError as error:
        raise InputError(
            f"the {form} matrix is malformed: {error}; build the matrix again from its"
            " entries"
        ) from error


def canonical(X: Any) -> Any:
    """Return a CSR matrix with sorted columns and no duplicates; a dense one as it is.

    Duplicates are summed, since solvers square and bin single values.
    """
    if not sparse.issparse(X):
        return X
    # A new matrix looks itself whether it is canonical: the flag of X may be outdated.
    matrix = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def with_short_indices(X: Any) -> Any:
    """Return a CSR matrix with int32 indices within its shape; a dense one as it is."""
    if not sparse.issparse(X):
        return X
    largest_index = np.iinfo(np.int32).max
    if X.nnz > largest_index:
        raise InputError(
            f"the sparse matrix has {X.nnz:,} entries, more than 2**31 - 1; train on"
            " fewer rows, or in pieces with partial_fit"
        )
    if X.shape[1] > largest_index:
        raise InputError(
            f"the sparse matrix has {X.shape[1]:,} columns, more than 2**31 - 1; drop"
            " columns"
        )
    check_form(X)
    has_short_indices = X.indices.dtype == X.indptr.dtype == np.int32
    has_spare_room = len(X.data) > X.nnz  # behind the last entry
    if has_short_indices and not has_spare_room:
        return X
    short = sparse.csr_matrix(X.shape)  # empty at first
    short.data = X.data[: X.nnz]  # not copied
    short.indices = X.indices[: X.nnz].astype(np.int32, copy=False)
    short.indptr = X.indptr.astype(np.int32, copy=False)
    return short


def linear_scores(rows: Rows, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``X @ w``, with the same bits on every machine.

    Equal rows have equal scores.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.solvers import as_rows, linear_scores
    >>> rows = as_rows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> linear_scores(rows, np.array([10.0, 1.0])).tolist()
    [12.0, 34.0]
    """
    if w.shape != (rows.n_features,):  # the kernel trusts the shape
        raise InputError(
            f"weights of shape {w.shape} cannot score rows of {rows.n_features:,}"
            " features; give one weight for each feature"
        )
    scores = np.empty(rows.n_rows)
    fill_scores(rows, w, scores)
    return scores


def weighted_sum(
    rows: Rows, coef: NDArray[np.float64], n_features: int
) -> NDArray[np.float64]:
    """Return ``X.T @ coef``, bitwise identical on every machine.

    The sum is 0 for the features, up to `n_features`, that X lacks. Rows beyond the end
    of `coef` have the weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.solvers import as_rows, weighted_sum
    >>> rows = as_rows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> weighted_sum(rows, np.array([10.0, 1.0]), 2).tolist()
    [13.0, 24.0]
    """
    if len(coef) > rows.n_rows:  # the kernel trusts both lengths
        raise InputError(
            f"coef of length {len(coef):,} exceeds {rows.n_rows:,} rows; shorten coef"
        )
    if n_features < rows.n_features:
        raise InputError(
            f"n_features is {n_features:,} for rows of {rows.n_features:,} features;"
            " give no fewer"
        )
    out = np.zeros(n_features)
    add_rows(rows, coef, out)  # to `out`
    return out


def norm(w: NDArray[np.float64]) -> float:
    """Return ``||w||``, bitwise identical on every machine."""
    return math.sqrt(dot(w, w))

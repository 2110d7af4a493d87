"""Products of a matrix with a vector, in a fixed order of summation: the same bits everywhere."""

include "source.pxi"

from precbench.core.kernels.rows cimport (
    AHEAD,
    Rows,
    precbench_ask,
    precbench_dot,
    row_axpy,
    rows_of,
    score_rows,
)

cdef enum:
    AT_ONCE = 256  # rows that are listed before they are scored or added


def dot(const double[::1] a, const double[::1] b):
    """Return ``a' b`` for vectors of equal length."""
    cdef Py_ssize_t n = a.shape[0]
    cdef double total = 0
    if n:
        with nogil:
            total = precbench_dot(&a[0], &b[0], n)
    return total


def linear_scores(rows, const double[::1] w, double[::1] scores):
    """Write ``<row i, w>`` to each ``scores[i]``."""
    cdef Rows X = rows_of(rows)
    cdef Py_ssize_t start = 0, n, j
    cdef int[AT_ONCE] listed
    cdef const double* weights = &w[0] if w.shape[0] else NULL
    cdef double* out
    with nogil:
        while start < scores.shape[0]:
            n = min(AT_ONCE, scores.shape[0] - start)
            for j in range(n):
                listed[j] = <int>(start + j)
            out = &scores[start]
            score_rows(&X, listed, n, n, &weights, 1, &out)
            start += n


def add_rows(rows, const double[::1] coef, double[::1] out):
    """Add ``sum_i coef[i] * row i`` to ``out``; rows of coefficient 0 are not read."""
    cdef Rows X = rows_of(rows)
    cdef Py_ssize_t i = 0, j, m
    cdef Py_ssize_t[AT_ONCE] listed
    cdef bint scattered
    with nogil:
        while i < coef.shape[0]:
            m = 0
            while i < coef.shape[0] and m < AT_ONCE:
                listed[m] = i  # the next i overwrites a row of coefficient 0
                m += coef[i] != 0
                i += 1
            # On average more than 2 rows apart: closer ones the processor itself prefetches.
            scattered = X.indptr == NULL and m > 0 and listed[m - 1] - listed[0] > 2 * m
            for j in range(m):
                if scattered and j + AHEAD < m:
                    precbench_ask(X.data, listed[j + AHEAD], X.n_cols, X.kind, False)
                row_axpy(&X, listed[j], coef[listed[j]], &out[0])

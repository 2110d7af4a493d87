"""Products of a matrix with a vector: ``X w`` and ``X' c``.

One thread and a fixed order of summation: the same bits on every machine.
"""

include "source.pxi"

from precbench.kernels.rows cimport (
    AHEAD,
    Rows,
    precbench_ask_for,
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


def linear_scores(
    data,
    const int[::1] indices,
    const int[::1] indptr,
    const double[::1] w,
    Py_ssize_t start,
    Py_ssize_t stop,
    double[::1] scores,
):
    """Write ``scores[i] = <row i, w>`` for start <= i < stop."""
    cdef Rows X = rows_of(data, indices, indptr, w.shape[0])
    cdef Py_ssize_t j, n
    cdef int[AT_ONCE] listed
    cdef const double* weights = &w[0] if w.shape[0] else NULL
    cdef double* out
    with nogil:
        while start < stop:
            n = min(AT_ONCE, stop - start)
            for j in range(n):
                listed[j] = <int>(start + j)
            out = &scores[start]
            score_rows(&X, listed, n, n, &weights, 1, &out)
            start += n


def add_rows(
    data,
    const int[::1] indices,
    const int[::1] indptr,
    const double[::1] coef,
    Py_ssize_t start,
    Py_ssize_t stop,
    double[::1] out,
):
    """Add ``sum_i coef[i] * row i`` over start <= i < stop to ``out``; zeros cost nothing."""
    cdef Rows X = rows_of(data, indices, indptr, out.shape[0])
    cdef Py_ssize_t i, j, m
    cdef Py_ssize_t[AT_ONCE] listed
    cdef bint scattered
    with nogil:
        i = start
        while i < stop:
            m = 0
            while i < stop and m < AT_ONCE:
                listed[m] = i
                m += coef[i] != 0
                i += 1
            # Rows that lie close together are read ahead by the processor itself.
            scattered = X.indptr == NULL and m > 0 and listed[m - 1] - listed[0] > 2 * m
            for j in range(m):
                if scattered and j + AHEAD < m:
                    precbench_ask_for(X.data, listed[j + AHEAD], X.n_cols, X.kind)
                row_axpy(&X, listed[j], coef[listed[j]], &out[0])

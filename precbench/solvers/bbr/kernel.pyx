"""Sums of rows, or of differences of two rows, and of their outer products (BBR and LCBR).

    sums += z,   products += z z',   z = x_i  or  x_i - x_j.

Each product of two entries of z is written once: of a dense z into the upper triangle, of a sparse
z at (a, b) or at (b, a), whichever column comes first in z. Either way the sum of all z z' is
U + U' - diag(U), where U is what was written. For whole dense rows `fill_blocks` prepares BLAS.
"""

include "source.pxi"

from precbench.core.kernels.rows cimport (
    Rows, precbench_axpy, precbench_from, precbench_value, rows_of,
)


cdef inline Py_ssize_t gather(
    const Rows* X,
    Py_ssize_t i,
    double sign,
    Py_ssize_t m,
    double* z,
    int* columns,
    int* places,
) noexcept nogil:
    """Add ``sign`` times sparse row i to the m entries of z; return the new number of entries.

    Update ``columns``, that of each entry of z, and ``places``, the entry of each column, or -1.
    """
    cdef Py_ssize_t entry
    cdef int column
    for entry in range(X.indptr[i], X.indptr[i + 1]):
        column = X.indices[entry]
        if places[column] < 0:
            places[column] = <int>m
            columns[m] = column
            z[m] = 0
            m += 1
        z[places[column]] += sign * precbench_value(X.data, entry, X.kind)
    return m


cdef inline void add_sparse(
    const double* z,
    const int* columns,
    int* places,
    Py_ssize_t m,
    Py_ssize_t n_cols,
    double* sums,
    double* products,
) noexcept nogil:
    """Add a sparse z to ``sums`` and z z' to ``products``, and reset ``places`` to -1."""
    cdef Py_ssize_t a, b
    cdef double* row
    for a in range(m):
        sums[columns[a]] += z[a]
        row = products + columns[a] * n_cols
        for b in range(a, m):
            row[columns[b]] += z[a] * z[b]
        places[columns[a]] = -1


cdef inline void add_dense(
    const double* z, Py_ssize_t n, double* sums, double* products
) noexcept nogil:
    """Add a dense z to ``sums``, and z z' to the upper triangle of ``products``."""
    cdef Py_ssize_t a
    for a in range(n):
        sums[a] += z[a]
        # From the diagonal, at a * (n + 1), on: only the upper triangle is written.
        precbench_axpy(z[a], z + a, products + a * (n + 1), n - a)


def add_pairs(
    rows,
    const int[::1] pos,
    const int[::1] neg,
    const long long[::1] numbers,
    double[::1] z,
    int[::1] columns,
    int[::1] places,
    double[::1] sums,
    double[:, ::1] products,
):
    """Add the pairs of some numbers t: row ``pos[t // len(neg)]`` minus row ``neg[t % len(neg)]``.

    Updates ``sums`` (n,), ``products`` (n, n). Scratch (n,): ``z``, ``columns``, ``places`` (-1).
    """
    cdef Rows X = rows_of(rows)
    cdef Py_ssize_t n = sums.shape[0], n_neg = neg.shape[0], s, j, m
    cdef long long p, q
    cdef const void* x
    cdef const void* x_neg
    with nogil:
        for s in range(numbers.shape[0]):
            p = numbers[s] // n_neg
            q = numbers[s] - p * n_neg
            if X.indptr == NULL:
                x = precbench_from(X.data, pos[p] * n, X.kind)
                x_neg = precbench_from(X.data, neg[q] * n, X.kind)
                for j in range(n):
                    z[j] = precbench_value(x, j, X.kind) - precbench_value(x_neg, j, X.kind)
                add_dense(&z[0], n, &sums[0], &products[0, 0])
            else:
                m = gather(&X, pos[p], 1, 0, &z[0], &columns[0], &places[0])
                m = gather(&X, neg[q], -1, m, &z[0], &columns[0], &places[0])
                add_sparse(&z[0], &columns[0], &places[0], m, n, &sums[0], &products[0, 0])


def add_sparse_rows(
    rows,
    const signed char[::1] labels,
    Py_ssize_t start,
    Py_ssize_t stop,
    double[::1] z,
    int[::1] columns,
    int[::1] places,
    double[:, ::1] sums,
    double[:, :, ::1] products,
):
    """Add the rows start <= i < stop of a CSR matrix to the sums and products of their class.

    Updates ``sums`` (2, n) and ``products`` (2, n, n), the positives first. Scratch as `add_pairs`.
    """
    cdef Py_ssize_t n = sums.shape[1], i, m
    cdef Rows X = rows_of(rows)
    cdef int c
    with nogil:
        for i in range(start, stop):
            c = labels[i] < 0
            m = gather(&X, i, 1, 0, &z[0], &columns[0], &places[0])
            add_sparse(&z[0], &columns[0], &places[0], m, n, &sums[c, 0], &products[c, 0, 0])


def fill_blocks(
    rows,
    const signed char[::1] labels,
    Py_ssize_t start,
    const double[::1] shift,
    double[:, :, ::1] blocks,
    Py_ssize_t[::1] filled,
    double[:, ::1] sums,
):
    """Copy dense rows, less ``shift``, to the block of their class until a block is full.

    Return the next row. From row ``start`` on each row is copied to ``blocks`` (2, m, n), behind
    the ``filled`` (2,) rows, and added to ``sums`` (2, n); the positives are class 0.
    """
    cdef Py_ssize_t n = sums.shape[1], i = start, j
    cdef Rows X = rows_of(rows)
    cdef int c
    cdef const void* x
    cdef double* z
    cdef double* total
    with nogil:
        while i < labels.shape[0] and max(filled[0], filled[1]) < blocks.shape[1]:
            c = labels[i] < 0
            x = precbench_from(X.data, i * n, X.kind)
            z = &blocks[c, filled[c], 0]
            total = &sums[c, 0]
            for j in range(n):
                z[j] = precbench_value(x, j, X.kind) - shift[j]
                total[j] += z[j]
            filled[c] += 1
            i += 1
    return i

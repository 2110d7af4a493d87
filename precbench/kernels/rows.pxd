# Rows of a dense (C order) or CSR matrix behind one plain struct.
#
# A sum over a dense row runs over eight accumulators in a fixed order, so that its last bit does
# not depend on the machine; a CSR row, usually short, takes four.

cdef enum:
    SIDE_BY_SIDE = 6  # weight vectors of which the sums of a sparse row stay in registers


cdef struct Rows:
    const double* data  # NULL, beside an indptr: all values are 1
    const int* indices
    const int* indptr  # NULL: dense
    Py_ssize_t n_cols


cdef extern from "dense.h":
    enum:
        AHEAD "PRECBENCH_AHEAD"  # rows between a request and its use
    double precbench_dot(const double* x, const double* w, Py_ssize_t n) noexcept nogil
    void precbench_dot_two(
        const double* x, const double* z, const double* w, Py_ssize_t n, double* out
    ) noexcept nogil
    void precbench_score_two_by_two(
        const double* x,
        const int* rows,
        Py_ssize_t n,
        Py_ssize_t n_known,
        Py_ssize_t d,
        const double** weights,
        Py_ssize_t n_candidates,
        double** scores,
    ) noexcept nogil
    void precbench_sparse_dots(
        const double* x,
        const int* columns,
        Py_ssize_t n,
        const double* w,
        Py_ssize_t stride,
        int pairs,
        double* out,
    ) noexcept nogil
    void precbench_axpy(double a, const double* x, double* w, Py_ssize_t n) noexcept nogil
    bint precbench_all_finite(const double* x, Py_ssize_t n) noexcept nogil
    void precbench_prefetch(const void* address) noexcept nogil


cdef inline Rows rows_of(
    const double[::1] data, const int[::1] indices, const int[::1] indptr, Py_ssize_t n_cols
) noexcept nogil:
    """Wrap the arrays of a matrix; empty ``indptr`` means dense."""
    cdef Rows X
    X.data = &data[0] if data.shape[0] else NULL
    X.indices = &indices[0] if indices.shape[0] else NULL
    X.indptr = &indptr[0] if indptr.shape[0] else NULL
    X.n_cols = n_cols
    return X


cdef inline double row_dot(const Rows* X, Py_ssize_t i, const double* w) noexcept nogil:
    cdef const double* x
    cdef const int* columns
    cdef Py_ssize_t j, n, m
    cdef double a0 = 0, a1 = 0, a2 = 0, a3 = 0
    if X.indptr == NULL:
        return precbench_dot(X.data + i * X.n_cols, w, X.n_cols)
    columns = X.indices + X.indptr[i]
    n = X.indptr[i + 1] - X.indptr[i]
    m = n & ~<Py_ssize_t>3
    if X.data == NULL:
        for j in range(0, m, 4):
            a0 += w[columns[j]]
            a1 += w[columns[j + 1]]
            a2 += w[columns[j + 2]]
            a3 += w[columns[j + 3]]
        for j in range(m, n):
            a0 += w[columns[j]]
        return (a0 + a2) + (a1 + a3)
    x = X.data + X.indptr[i]
    for j in range(0, m, 4):
        a0 += x[j] * w[columns[j]]
        a1 += x[j + 1] * w[columns[j + 1]]
        a2 += x[j + 2] * w[columns[j + 2]]
        a3 += x[j + 3] * w[columns[j + 3]]
    for j in range(m, n):
        a0 += x[j] * w[columns[j]]
    return (a0 + a2) + (a1 + a3)


cdef inline void score_rows(
    const Rows* X,
    const int* rows,
    Py_ssize_t n,
    Py_ssize_t n_known,
    const double** weights,
    Py_ssize_t n_candidates,
    double** scores,
) noexcept nogil:
    """Score the n first of n_known rows by each candidate; dense ones are asked for ahead.

    Two rows at a time go through all candidates, for which they are read once.
    """
    cdef Py_ssize_t j = 0, m
    if X.indptr == NULL:
        precbench_score_two_by_two(
            X.data, rows, n, n_known, X.n_cols, weights, n_candidates, scores
        )
        j = n - n % 2
    while j < n:
        for m in range(n_candidates):
            scores[m][j] = row_dot(X, rows[j], weights[m])
        j += 1


cdef inline void score_sparse_rows(
    const Rows* X,
    const int* rows,
    Py_ssize_t n,
    const double** weights,
    Py_ssize_t n_candidates,
    double* mixed,
    double** scores,
) noexcept nogil:
    """Score sparse rows by each candidate as `score_rows` does, with the same bits.

    The weights are first laid side by side in ``mixed``, so that a column is found once for all;
    of an odd number there is a column of zeros beside the last.
    """
    cdef Py_ssize_t first = 0, j, m, stride = n_candidates + n_candidates % 2, start, n_stored
    cdef int beside, pairs
    cdef double out[SIDE_BY_SIDE]
    cdef const double* x = NULL
    for m in range(n_candidates):
        for j in range(X.n_cols):
            mixed[j * stride + m] = weights[m][j]
    while first < n_candidates:
        beside = <int>min(SIDE_BY_SIDE, n_candidates - first)
        pairs = (beside + 1) // 2
        for j in range(n):
            start = X.indptr[rows[j]]
            n_stored = X.indptr[rows[j] + 1] - start
            if X.data != NULL:
                x = X.data + start
            if pairs == 3:
                precbench_sparse_dots(x, X.indices + start, n_stored, mixed + first, stride, 3, out)
            elif pairs == 2:
                precbench_sparse_dots(x, X.indices + start, n_stored, mixed + first, stride, 2, out)
            else:
                precbench_sparse_dots(x, X.indices + start, n_stored, mixed + first, stride, 1, out)
            for m in range(beside):
                scores[first + m][j] = out[m]
        first += beside


cdef inline void row_axpy(const Rows* X, Py_ssize_t i, double a, double* w) noexcept nogil:
    """Add ``a`` times row ``i`` to ``w``."""
    cdef const double* x
    cdef const int* columns
    cdef Py_ssize_t j
    if X.indptr == NULL:
        precbench_axpy(a, X.data + i * X.n_cols, w, X.n_cols)
    elif X.data == NULL:
        columns = X.indices + X.indptr[i]
        for j in range(X.indptr[i + 1] - X.indptr[i]):
            w[columns[j]] += a
    else:
        x = X.data + X.indptr[i]
        columns = X.indices + X.indptr[i]
        for j in range(X.indptr[i + 1] - X.indptr[i]):
            w[columns[j]] += a * x[j]

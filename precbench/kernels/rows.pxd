# Rows of a dense (C order) or CSR matrix behind one plain struct.
#
# A sum over a dense row runs over eight accumulators in a fixed order, so that its last bit does
# not depend on the machine; a CSR row, usually short, takes four.

cdef struct Rows:
    const double* data
    const int* indices
    const int* indptr  # NULL: dense
    Py_ssize_t n_cols


cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define precbench_prefetch(address) __builtin_prefetch((address), 0, 3)
    #else
    #define precbench_prefetch(address) ((void)0)
    #endif
    """
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
    cdef double a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0
    if X.indptr == NULL:
        n = X.n_cols
        x = X.data + i * n
        m = n & ~<Py_ssize_t>7
        for j in range(0, m, 8):
            a0 += x[j] * w[j]
            a1 += x[j + 1] * w[j + 1]
            a2 += x[j + 2] * w[j + 2]
            a3 += x[j + 3] * w[j + 3]
            a4 += x[j + 4] * w[j + 4]
            a5 += x[j + 5] * w[j + 5]
            a6 += x[j + 6] * w[j + 6]
            a7 += x[j + 7] * w[j + 7]
        j = m
        if j + 4 <= n:
            a0 += x[j] * w[j]
            a1 += x[j + 1] * w[j + 1]
            a2 += x[j + 2] * w[j + 2]
            a3 += x[j + 3] * w[j + 3]
            j += 4
        if j + 2 <= n:
            a4 += x[j] * w[j]
            a5 += x[j + 1] * w[j + 1]
            j += 2
        if j < n:
            a6 += x[j] * w[j]
        return ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))
    x = X.data + X.indptr[i]
    columns = X.indices + X.indptr[i]
    n = X.indptr[i + 1] - X.indptr[i]
    m = n & ~<Py_ssize_t>3
    for j in range(0, m, 4):
        a0 += x[j] * w[columns[j]]
        a1 += x[j + 1] * w[columns[j + 1]]
        a2 += x[j + 2] * w[columns[j + 2]]
        a3 += x[j + 3] * w[columns[j + 3]]
    for j in range(m, n):
        a0 += x[j] * w[columns[j]]
    return (a0 + a2) + (a1 + a3)


cdef inline void row_axpy(const Rows* X, Py_ssize_t i, double a, double* w) noexcept nogil:
    """Add ``a`` times row ``i`` to ``w``."""
    cdef const double* x
    cdef const int* columns
    cdef Py_ssize_t j
    if X.indptr == NULL:
        x = X.data + i * X.n_cols
        for j in range(X.n_cols):
            w[j] += a * x[j]
    else:
        x = X.data + X.indptr[i]
        columns = X.indices + X.indptr[i]
        for j in range(X.indptr[i + 1] - X.indptr[i]):
            w[columns[j]] += a * x[j]


cdef inline void row_prefetch(const Rows* X, Py_ssize_t i) noexcept nogil:
    """Ask for a dense row ahead of its use: a random visiting order defeats the hardware."""
    cdef const double* x
    cdef Py_ssize_t j
    if X.indptr == NULL:
        x = X.data + i * X.n_cols
        for j in range(0, X.n_cols, 8):
            precbench_prefetch(x + j)

# Rows of a dense (C order) or CSR matrix, of float64 or float32, behind one plain struct.

cdef extern from "dense.h":
    enum:
        AHEAD "PRECBENCH_AHEAD"  # rows between a request and its use
        DOUBLES "PRECBENCH_DOUBLES"
        FLOATS "PRECBENCH_FLOATS"
        ONES "PRECBENCH_ONES"
    double precbench_dot(const double* x, const double* w, Py_ssize_t n) noexcept nogil
    double precbench_row_dot(
        const void* x, int kind, const double* w, Py_ssize_t n
    ) noexcept nogil
    double precbench_sparse_dot(
        const void* x, int kind, const int* columns, Py_ssize_t n, const double* w
    ) noexcept nogil
    void precbench_dot_two(
        const void* x, const void* z, int kind, const double* w, Py_ssize_t n, double* out
    ) noexcept nogil
    void precbench_score_dense(
        const void* x,
        int kind,
        const int* rows,
        Py_ssize_t n,
        Py_ssize_t n_known,
        Py_ssize_t d,
        const double** weights,
        Py_ssize_t n_candidates,
        double** scores,
    ) noexcept nogil
    void precbench_score_sparse(
        const void* x,
        int kind,
        const int* columns,
        const int* starts,
        Py_ssize_t n_stored,
        const int* rows,
        Py_ssize_t n,
        const double* w,
        double* scores,
    ) noexcept nogil
    void precbench_axpy(double a, const double* x, double* w, Py_ssize_t n) noexcept nogil
    void precbench_row_axpy(
        double a, const void* x, int kind, double* w, Py_ssize_t n
    ) noexcept nogil
    void precbench_add_four(
        const double* a, const void** rows, int kind, double* w, Py_ssize_t n
    ) noexcept nogil
    void precbench_sparse_axpy(
        double a, const void* x, int kind, const int* columns, double* w, Py_ssize_t n
    ) noexcept nogil
    double precbench_value "PRECBENCH_VALUE"(const void* x, Py_ssize_t j, int kind) noexcept nogil
    const void* precbench_from(const void* x, Py_ssize_t j, int kind) noexcept nogil
    bint precbench_all_finite(const double* x, Py_ssize_t n) noexcept nogil
    void precbench_prefetch(const void* address) noexcept nogil
    void precbench_ask_for(
        const void* x, Py_ssize_t n_rows, Py_ssize_t d, int kind
    ) noexcept nogil


cdef struct Rows:
    const void* data
    int kind  # of the values: DOUBLES, FLOATS, or for sparse rows ONES, which are not stored
    const int* indices
    const int* indptr  # NULL: dense
    Py_ssize_t n_stored  # entries of sparse rows
    Py_ssize_t n_cols


cdef inline Rows dense_rows_of(data, Py_ssize_t n_cols) except *:
    """Wrap the values of a dense matrix, of float64 or float32, which outlives the rows."""
    cdef Rows X
    cdef const double[::1] doubles
    cdef const float[::1] floats
    X.data = X.indices = X.indptr = NULL
    X.kind = DOUBLES
    X.n_cols = n_cols
    X.n_stored = 0
    if data.itemsize == sizeof(float):
        floats = data
        X.kind = FLOATS
        if floats.shape[0]:
            X.data = &floats[0]
    else:
        doubles = data
        if doubles.shape[0]:
            X.data = &doubles[0]
    return X


cdef inline Rows rows_of(
    data, const int[::1] indices, const int[::1] indptr, Py_ssize_t n_cols
) except *:
    """Wrap the arrays of a matrix; empty ``indptr`` means dense, else empty ``data`` all ones."""
    cdef Rows X = dense_rows_of(data, n_cols)
    X.n_stored = indices.shape[0]
    if X.n_stored:
        X.indices = &indices[0]
    if indptr.shape[0]:
        X.indptr = &indptr[0]
        if X.data == NULL:
            X.kind = ONES
    return X


cdef inline double row_dot(const Rows* X, Py_ssize_t i, const double* w) noexcept nogil:
    cdef Py_ssize_t start, n
    cdef const void* x
    cdef const int* columns
    if X.indptr == NULL:
        x = precbench_from(X.data, i * X.n_cols, X.kind)
        # The kind is written out, so that each call is inlined for one type of values.
        if X.kind == FLOATS:
            return precbench_row_dot(x, FLOATS, w, X.n_cols)
        return precbench_row_dot(x, DOUBLES, w, X.n_cols)
    start = X.indptr[i]
    n = X.indptr[i + 1] - start
    columns = X.indices + start
    x = precbench_from(X.data, start, X.kind)
    if X.kind == DOUBLES:
        return precbench_sparse_dot(x, DOUBLES, columns, n, w)
    if X.kind == FLOATS:
        return precbench_sparse_dot(x, FLOATS, columns, n, w)
    return precbench_sparse_dot(x, ONES, columns, n, w)


cdef inline void score_rows(
    const Rows* X,
    const int* rows,
    Py_ssize_t n,
    Py_ssize_t n_known,
    const double** weights,
    Py_ssize_t n_candidates,
    double** scores,
) noexcept nogil:
    """Score the n first of n_known rows by each candidate; dense ones are asked for ahead."""
    cdef Py_ssize_t m
    if X.indptr == NULL:
        precbench_score_dense(
            X.data, X.kind, rows, n, n_known, X.n_cols, weights, n_candidates, scores
        )
        return
    for m in range(n_candidates):
        precbench_score_sparse(
            X.data, X.kind, X.indices, X.indptr, X.n_stored, rows, n, weights[m], scores[m]
        )


cdef inline void row_axpy(const Rows* X, Py_ssize_t i, double a, double* w) noexcept nogil:
    """Add ``a`` times row ``i`` to ``w``."""
    cdef Py_ssize_t start, n
    cdef const void* x
    cdef const int* columns
    if X.indptr == NULL:
        x = precbench_from(X.data, i * X.n_cols, X.kind)
        if X.kind == FLOATS:
            precbench_row_axpy(a, x, FLOATS, w, X.n_cols)
        else:
            precbench_row_axpy(a, x, DOUBLES, w, X.n_cols)
        return
    start = X.indptr[i]
    n = X.indptr[i + 1] - start
    columns = X.indices + start
    x = precbench_from(X.data, start, X.kind)
    if X.kind == DOUBLES:
        precbench_sparse_axpy(a, x, DOUBLES, columns, w, n)
    elif X.kind == FLOATS:
        precbench_sparse_axpy(a, x, FLOATS, columns, w, n)
    else:
        precbench_sparse_axpy(a, x, ONES, columns, w, n)

# Rows of a dense (C order) or CSR matrix, of float64 or float32, behind one plain struct.

cdef extern from "dense.h":
    enum:
        AHEAD "PRECBENCH_AHEAD"  # rows between a request and its use
        DOUBLES "PRECBENCH_DOUBLES"
        FLOATS "PRECBENCH_FLOATS"
    ctypedef struct Rows "precbench_rows":
        const void* data
        int kind  # of the values: DOUBLES or FLOATS
        const int* indices
        const int* indptr  # NULL: dense
        Py_ssize_t n_stored
        Py_ssize_t n_cols
    double row_dot "precbench_row_dot"(const Rows* X, Py_ssize_t i, const double* w) noexcept nogil
    void row_axpy "precbench_row_axpy"(
        const Rows* X, Py_ssize_t i, double a, double* w
    ) noexcept nogil
    void score_rows "precbench_score_rows"(
        const Rows* X,
        const int* rows,
        Py_ssize_t n,
        Py_ssize_t n_known,
        const double** weights,
        Py_ssize_t n_candidates,
        double** scores,
    ) noexcept nogil
    double precbench_dot(const double* x, const double* w, Py_ssize_t n) noexcept nogil
    void precbench_axpy(double a, const double* x, double* w, Py_ssize_t n) noexcept nogil
    void precbench_add_four(
        const double* a, const void** rows, int kind, double* w, Py_ssize_t n
    ) noexcept nogil
    double precbench_value "PRECBENCH_VALUE"(const void* x, Py_ssize_t j, int kind) noexcept nogil
    const void* precbench_from(const void* x, Py_ssize_t j, int kind) noexcept nogil
    void precbench_ask(
        const void* x, Py_ssize_t n_rows, Py_ssize_t d, int kind, bint far
    ) noexcept nogil


cdef inline Rows rows_of(rows) except *:
    """Wrap a `Rows` of solvers/common/rows.py, which must outlive it: nothing is copied."""
    cdef Rows X
    cdef const double[::1] doubles
    cdef const float[::1] floats
    cdef const int[::1] indices = rows.indices, indptr = rows.indptr
    X.data = X.indices = X.indptr = NULL
    X.kind = DOUBLES
    X.n_cols, X.n_stored = rows.n_features, indices.shape[0]
    if rows.data.itemsize == sizeof(float):
        floats = rows.data
        X.kind = FLOATS
        X.data = &floats[0] if floats.shape[0] else NULL
    else:
        doubles = rows.data
        X.data = &doubles[0] if doubles.shape[0] else NULL
    if indptr.shape[0]:
        X.indices, X.indptr = &indices[0] if X.n_stored else NULL, &indptr[0]
    return X

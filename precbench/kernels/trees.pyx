"""Scores of ensembles of decision trees, as `precbench.solvers.trees.Trees` describes them."""

include "source.pxi"

from precbench.kernels.rows cimport DOUBLES, Rows, precbench_from, precbench_value, rows_of
from precbench.kernels.split cimport goes_left


cdef inline double leaf(
    const void* x,
    int kind,
    const int[::1] feature,
    const double[::1] value,
    const int[::1] right,
    const unsigned char[::1] split,
    const unsigned int[::1] categories,
    int node,
) noexcept nogil:
    cdef double compared
    cdef bint is_plain = split.shape[0] == 0
    while feature[node] >= 0:
        compared = precbench_value(x, feature[node], kind)
        if is_plain and compared <= value[node] or not is_plain and goes_left(
            compared, value[node], split[node], categories
        ):
            node += 1
        else:
            node = right[node]
    return value[node]


def add_trees(
    rows,
    const int[::1] feature,
    const double[::1] value,
    const int[::1] right,
    const int[::1] root,
    const unsigned char[::1] split,
    const unsigned int[::1] categories,
    double[::1] row,
    double[::1] scores,
):
    """Add the leaf of each tree, in their order, that row i reaches to ``scores[i]``.

    Unless ``split`` is empty, it and ``categories`` say where a row goes, see split.pxd. ``row`` is
    scratch for one row of a CSR matrix, filled with zeros.
    """
    cdef Rows X = rows_of(rows)
    cdef Py_ssize_t i, j, tree
    cdef const void* x
    with nogil:
        if X.indptr == NULL:
            for tree in range(root.shape[0]):  # tree by tree, which keeps its nodes in the cache
                for i in range(scores.shape[0]):
                    x = precbench_from(X.data, i * X.n_cols, X.kind)
                    scores[i] += leaf(
                        x, X.kind, feature, value, right, split, categories, root[tree]
                    )
        else:
            for i in range(scores.shape[0]):
                for j in range(X.indptr[i], X.indptr[i + 1]):
                    row[X.indices[j]] += precbench_value(X.data, j, X.kind)
                for tree in range(root.shape[0]):
                    scores[i] += leaf(
                        &row[0], DOUBLES, feature, value, right, split, categories, root[tree]
                    )
                for j in range(X.indptr[i], X.indptr[i + 1]):
                    row[X.indices[j]] = 0

"""Scores of ensembles of decision trees.

The nodes of all trees stand in one sequence, those of a tree in preorder: the left child of an
inner node is the next one. One thread, and the trees are added in their order.
"""

include "source.pxi"

from precbench.kernels.rows cimport DOUBLES, Rows, precbench_from, precbench_value, rows_of


cdef inline double leaf(
    const void* x,
    int kind,
    const int[::1] feature,
    const double[::1] value,
    const int[::1] right,
    int node,
) noexcept nogil:
    while feature[node] >= 0:
        if precbench_value(x, feature[node], kind) <= value[node]:
            node += 1
        else:
            node = right[node]
    return value[node]


def add_trees(
    data,
    const int[::1] indices,
    const int[::1] indptr,
    const int[::1] feature,
    const double[::1] value,
    const int[::1] right,
    const int[::1] root,
    Py_ssize_t start,
    Py_ssize_t stop,
    double[::1] row,
    double[::1] scores,
):
    """Add the leaf of each tree that row i reaches to ``scores[i]``, for start <= i < stop.

    At inner node j a row goes on to the next node if its ``feature[j]`` is at most ``value[j]``,
    else to ``right[j]``. At a leaf ``feature[j]`` is -1 and ``value[j]`` is added. ``row`` is
    scratch space for one row, filled with zeros, for rows of a CSR matrix.
    """
    cdef Rows X = rows_of(data, indices, indptr, row.shape[0])
    cdef Py_ssize_t i, j, tree
    cdef const void* x
    with nogil:
        if X.indptr == NULL:
            for tree in range(root.shape[0]):  # tree by tree, which keeps its nodes in the cache
                for i in range(start, stop):
                    x = precbench_from(X.data, i * X.n_cols, X.kind)
                    scores[i] += leaf(x, X.kind, feature, value, right, root[tree])
        else:
            for i in range(start, stop):
                for j in range(X.indptr[i], X.indptr[i + 1]):
                    row[X.indices[j]] += precbench_value(X.data, j, X.kind)
                for tree in range(root.shape[0]):
                    scores[i] += leaf(&row[0], DOUBLES, feature, value, right, root[tree])
                for j in range(X.indptr[i], X.indptr[i + 1]):
                    row[X.indices[j]] = 0

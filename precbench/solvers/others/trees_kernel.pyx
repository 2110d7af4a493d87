"""Scores of ensembles of decision trees, which `Trees` of trees.py describes."""

include "source.pxi"

from precbench.core.kernels.rows cimport DOUBLES, Rows, precbench_from, precbench_value, rows_of


cdef inline double leaf(
    const void* x,
    int kind,
    const int[::1] feature,
    const double[::1] value,
    const int[::1] right,
    int node,
) noexcept nogil:
    """Return the value of the leaf (feature < 0) that row x reaches from a node.

    The left child of a node is the next node.
    """
    while feature[node] >= 0:
        if precbench_value(x, feature[node], kind) <= value[node]:
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
    double[::1] row,
    double[::1] scores,
):
    """Add to ``scores[i]`` the values of the leaves that row i reaches, tree by tree.

    ``value`` has the threshold of an inner node, or the result of a leaf; ``right`` the right
    child. ``row`` is scratch for one row of a CSR matrix, all 0 before and after.
    """
    cdef Rows X = rows_of(rows)
    cdef Py_ssize_t i, j, tree
    cdef const void* x
    with nogil:
        if X.indptr == NULL:
            for tree in range(root.shape[0]):  # tree by tree, which keeps its nodes in the cache
                for i in range(scores.shape[0]):
                    x = precbench_from(X.data, i * X.n_cols, X.kind)
                    scores[i] += leaf(x, X.kind, feature, value, right, root[tree])
        else:
            for i in range(scores.shape[0]):
                for j in range(X.indptr[i], X.indptr[i + 1]):
                    row[X.indices[j]] += precbench_value(X.data, j, X.kind)
                for tree in range(root.shape[0]):
                    scores[i] += leaf(&row[0], DOUBLES, feature, value, right, root[tree])
                for j in range(X.indptr[i], X.indptr[i + 1]):
                    row[X.indices[j]] = 0

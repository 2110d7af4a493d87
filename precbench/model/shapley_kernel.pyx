"""Shapley values of a decision tree.

If only the columns in S of a row are known, the tree takes at a split on another column the mean
of both sides, weighted by their shares z of the training rows:

    v(S) = sum over leaves l of value_l  prod over columns c above l of (o_lc if c in S else z_lc),

where o_lc is 1 if the row passes all conditions on c above l, else 0, and z_lc the product of the
shares at them. The Shapley value of c, the mean of v(S + c) - v(S) over all orders of columns, is

    phi_c = sum_l value_l  int_0^1 (o_lc - z_lc) prod over c' != c of (t o_lc' + (1 - t) z_lc') dt,

and Gauss-Legendre quadrature with half as many points as there are columns above l, rounded up, is
exact. A product goes down the tree; on the way back the sums over the leaves below a node are added
to the column of the split above it. (Lundberg, Erion and Lee 2018, path-dependent; Owen 1972.)
"""

include "source.pxi"

cdef enum:
    MOST_SPLITS = 1024  # conditions above a node


def outline(tree):
    """Write the structure of a tree; return the largest number of columns above one leaf."""
    # ``tree`` is an `OutlinedTree` of shapley.py, of which ``parent``, ``above``, ``zero`` and
    # ``reach`` are written. Returns -1 if a node is more than MOST_SPLITS below the root: the loops
    # go up from each node.
    cdef const int[::1] feature = tree.feature
    cdef const int[::1] right = tree.right
    cdef const double[::1] share = tree.share
    cdef const int[::1] column = tree.column
    cdef int[::1] parent = tree.parent
    cdef int[::1] above = tree.above
    cdef double[::1] zero = tree.zero
    cdef double[::1] reach = tree.reach
    cdef int n = feature.shape[0], v, u, c, most = 0
    with nogil:
        parent[0] = above[0] = 0
        zero[0] = reach[0] = 1
        for v in range(n):
            if feature[v] >= 0:
                parent[v + 1] = parent[right[v]] = v
                above[v + 1] = above[right[v]] = above[v] + 1  # so far the depth
                if above[v] >= MOST_SPLITS:
                    most = -1
                    break
        if most < 0:
            n = 0  # skips the loops below
        above[0] = 0
        for v in range(1, n):
            u = parent[v]
            c = column[feature[u]]
            reach[v] = reach[u] * share[v]
            while u > 0 and column[feature[parent[u]]] != c:
                u = parent[u]
            above[v] = u
            zero[v] = zero[u] * share[v]
        for v in range(n):
            if feature[v] < 0:
                c = 0  # here the number of columns above leaf v
                u = v
                while u > 0:
                    c += above[u] == 0  # the first condition on its column
                    u = parent[u]
                most = max(most, c)
    return most


def add_contributions(
    const double[:, ::1] X,
    tree,
    const double[:, :, ::1] factors,
    double[:, ::1] product,
    signed char[::1] state,
    double[:, ::1] phi,
):
    """Add the Shapley value of column c for row i to ``phi[i, c]``."""
    # State of node v: 2 if the row passes its condition, 1 if that is the first of its column to
    # fail, 0 after an earlier failure, where phi gains nothing. ``factors[v]`` has four rows of
    # quadrature points: what multiplies the product in states 2 and 1, the weights of the sums
    # below v in states 2 and 1. ``product`` (nodes x points) and ``state`` are scratch; ``tree`` is
    # an `OutlinedTree` of shapley.py.
    cdef const int[::1] feature = tree.feature
    cdef const double[::1] value = tree.value
    cdef const double[::1] share = tree.share
    cdef const int[::1] column = tree.column
    cdef const int[::1] parent = tree.parent
    cdef const int[::1] above = tree.above
    cdef int n = feature.shape[0], n_points = product.shape[1], v, p, q
    cdef Py_ssize_t i
    cdef bint is_left
    cdef double total
    with nogil:
        for i in range(X.shape[0]):
            state[0] = 2
            for q in range(n_points):
                product[0, q] = 1
            for v in range(1, n):
                p = parent[v]
                is_left = v == p + 1
                if state[above[v]] < 2:
                    state[v] = 0
                    for q in range(n_points):
                        product[v, q] = product[p, q] * share[v]
                elif is_left == (X[i, feature[p]] <= value[p]):
                    state[v] = 2
                    for q in range(n_points):
                        product[v, q] = product[p, q] * factors[v, 0, q]
                else:
                    state[v] = 1
                    for q in range(n_points):
                        product[v, q] = product[p, q] * factors[v, 1, q]
            for v in range(n - 1, 0, -1):
                p = parent[v]
                if feature[v] < 0:
                    for q in range(n_points):
                        product[v, q] *= value[v]
                if state[v] > 0:
                    total = 0
                    for q in range(n_points):
                        total += product[v, q] * factors[v, 4 - state[v], q]
                    phi[i, column[feature[p]]] += total
                if v == p + 1:  # left child, visited after the right one, whose sum is there
                    for q in range(n_points):
                        product[p, q] += product[v, q]
                else:
                    for q in range(n_points):
                        product[p, q] = product[v, q]

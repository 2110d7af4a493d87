"""The compiled parts of a cutting-plane iteration: the most violated table, the master problem."""

include "source.pxi"

from libc.math cimport INFINITY, sqrt

from precbench.core.kernels.rows cimport precbench_axpy, precbench_dot


def worst_table(const double[::1] pos, const double[::1] neg, Py_ssize_t k):
    """Return the numbers (a, b), a + b >= k, of the largest ``b / (a + b)`` plus sum of scores.

    The sum is over the first a of ``pos`` and the first b of ``neg``, both in descending order.
    """
    # For each m = a + b the best a is found: a positive in place of a negative lowers b / m by
    # 1 / m, which pays up to some a, and this a never falls as m grows. Ties go to the least m.
    cdef Py_ssize_t n_pos = pos.shape[0], n_neg = neg.shape[0]
    cdef Py_ssize_t a = max(0, k - n_neg), m, i, best_a, best_m
    cdef double total = 0, best = -INFINITY
    with nogil:
        for i in range(a):
            total += pos[i]
        for i in range(k - a):
            total += neg[i]
        best_a = a
        best_m = k
        for m in range(k, n_pos + n_neg + 1):
            while a < min(n_pos, m) and pos[a] - neg[m - a - 1] > 1.0 / m:
                total += pos[a] - neg[m - a - 1]
                a += 1
            if <double>(m - a) / m + total > best:
                best = <double>(m - a) / m + total
                best_a = a
                best_m = m
            if m - a < n_neg:  # start of m + 1: one more negative, else one more positive
                total += neg[m - a]
            elif a < n_pos:
                total += pos[a]
                a += 1
    return best_a, best_m - best_a


def solve_master(
    const double[:, ::1] K,
    const double[::1] b,
    double[::1] alpha,
    double[::1] gradient,
    double tol,
    Py_ssize_t max_steps,
):
    """Minimise 1/2 alpha' K alpha - b' alpha over ``alpha`` >= 0, whose sum stays, in place.

    Return the number of steps, and write ``gradient``, K alpha - b; of ``K`` the leading m x m
    block counts.
    """
    # A step moves weight to ``up``, of the least gradient, from ``down``, of most
    # gain by second order (Fan, Chen and Lin 2005). At the end no weight is ``tol`` above ``up``.
    cdef Py_ssize_t m = b.shape[0], i, j, up, down, n_steps = 0
    cdef double best, gain, gap, worst, curvature, step
    with nogil:
        # In full at each call, so that rounding errors of the updates below do not pile up.
        for i in range(m):
            gradient[i] = -b[i]
            for j in range(m):
                gradient[i] += K[i, j] * alpha[j]
        while n_steps < max_steps:
            up = 0
            for i in range(1, m):
                if gradient[i] < gradient[up]:
                    up = i
            down = -1
            best = -INFINITY
            worst = 0
            for j in range(m):
                gap = gradient[j] - gradient[up]
                if alpha[j] > 0 and gap > 0:
                    worst = max(worst, gap)
                    # Parallel planes have no curvature: the step is huge, all of alpha[j] moves.
                    curvature = max(K[up, up] + K[j, j] - 2 * K[up, j], 1e-300)
                    gain = gap * gap / curvature  # twice what the best step gains
                    if gain > best:
                        best = gain
                        down = j
            if down < 0 or worst <= tol:  # no weight to move, or too little gain by unit
                break
            curvature = max(K[up, up] + K[down, down] - 2 * K[up, down], 1e-300)
            step = (gradient[down] - gradient[up]) / curvature
            if step >= alpha[down]:
                step = alpha[down]
                # Exactly 0: the bundle counts planes without weight, and drops them.
                alpha[down] = 0
            else:
                alpha[down] -= step
            alpha[up] += step
            for i in range(m):
                gradient[i] += step * (K[i, up] - K[i, down])
            n_steps += 1
    return n_steps


def dual(const double[:, ::1] K, const double[::1] b, const double[::1] alpha):
    """Return ``b' alpha - 1/2 alpha' K alpha``, K being the leading block as in `solve_master`."""
    cdef Py_ssize_t m = b.shape[0], i
    cdef double total = 0
    with nogil:
        for i in range(m):
            if alpha[i] != 0:
                total += alpha[i] * (b[i] - 0.5 * precbench_dot(&K[i, 0], &alpha[0], m))
    return total


def solve_positive(double[:, ::1] A, double[:, ::1] B):
    """Replace each row b of B by the x of ``A x = b``. The lower half of A becomes L, A = L L'.

    Return whether A is positive definite, up to rounding; if not, B is unchanged, but A is not.
    """
    cdef Py_ssize_t m = A.shape[0], i, j, r
    cdef double rest
    cdef bint is_positive = True
    with nogil:
        for i in range(m):
            for j in range(i):  # row i of L (Cholesky), up to its diagonal
                A[i, j] = (A[i, j] - precbench_dot(&A[i, 0], &A[j, 0], j)) / A[j, j]
            rest = A[i, i] - precbench_dot(&A[i, 0], &A[i, 0], i)
            if not rest > 0:  # also if NaN
                is_positive = False
                break
            A[i, i] = sqrt(rest)
        if is_positive:
            for r in range(B.shape[0]):
                for i in range(m):  # y of L y = b, from the first entry on
                    B[r, i] = (B[r, i] - precbench_dot(&A[i, 0], &B[r, 0], i)) / A[i, i]
                for i in range(m - 1, -1, -1):  # x of L' x = y, from the last entry on
                    B[r, i] /= A[i, i]
                    precbench_axpy(-B[r, i], &A[i, 0], &B[r, 0], i)
    return is_positive

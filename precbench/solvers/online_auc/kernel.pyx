"""One pass of the online methods for AUC that learn from each row against the earlier ones.

The steps are those of the classes in estimator.py. With the mean m and the second moment M / n of
the earlier rows, a = <w, x_t> and b = <w, m>,

    mean_j <w, x_t - x_j> (x_t - x_j) = (a - b) x_t - a m + M w / n,

so that a row costs O(D^2) and not O(t D). When scores overflow, w becomes NaN and stays NaN.

All passes update ``w``, and after each row add w to ``w_sum`` unless ``w_sum`` is empty. They also
update ``counts`` (2,), ``sums`` (2, n_features) and ``moments``: the number n_c, the sum s_c and
M_c = sum x x^T of the rows of class c so far; the negatives are class 0.
"""

include "source.pxi"

from libc.math cimport NAN, fabs, isfinite, sqrt
from libc.string cimport memset

from precbench.core.kernels.rows cimport (
    Rows,
    precbench_axpy,
    precbench_dot,
    precbench_value,
    row_axpy,
    row_dot,
    rows_of,
)

cdef enum:
    MOST_NEWTON_STEPS = 50

cdef extern from "online_auc.h":
    void precbench_multiply(
        const double* M, Py_ssize_t n, const double* w, Py_ssize_t d, double* out
    ) noexcept nogil
    void precbench_compare(
        const double* x,
        const double* z,
        double sign,
        const double* w,
        Py_ssize_t n,
        double* difference,
        double* sums,
    ) noexcept nogil


cdef inline void poison(double* w, Py_ssize_t d) noexcept nogil:
    """Set w to NaN: scores have overflowed."""
    cdef Py_ssize_t j
    for j in range(d):
        w[j] = NAN


cdef inline void add_to(double[::1] w_sum, const double* w) noexcept nogil:
    """Add w to ``w_sum``, unless ``w_sum`` is empty."""
    if w_sum.shape[0]:
        precbench_axpy(1, w, &w_sum[0], w_sum.shape[0])


cdef inline void unpack(const Rows* X, Py_ssize_t i, double* x) noexcept nogil:
    """Write row i as a dense one to x."""
    memset(x, 0, X.n_cols * sizeof(double))
    row_axpy(X, i, 1, x)


cdef void add_outer(const Rows* X, Py_ssize_t i, double* M) noexcept nogil:
    """Add ``x_i x_i^T`` to ``M``, row by row of M; x_i is row i."""
    cdef Py_ssize_t j, d = X.n_cols
    if X.indptr == NULL:
        for j in range(d):
            row_axpy(X, i, precbench_value(X.data, i * d + j, X.kind), M + j * d)
    else:
        for j in range(X.indptr[i], X.indptr[i + 1]):
            row_axpy(X, i, precbench_value(X.data, j, X.kind), M + X.indices[j] * d)


cdef void project(double* u, const double* h, Py_ssize_t d, double radius) noexcept nogil:
    """Move u to the w with ``|w| <= radius`` that minimises ``sum h_j (w_j - u_j)^2``."""
    # On the sphere ``w_j = h_j u_j / (h_j + nu)`` with nu > 0. As ``1 / |w|`` is concave in nu,
    # Newton's method for ``1 / |w| = 1 / radius`` needs no bracket from nu = 0 on.
    cdef Py_ssize_t j, _step
    cdef double nu = 0, norm, slope, w
    for _step in range(MOST_NEWTON_STEPS):
        norm = slope = 0
        for j in range(d):
            w = h[j] * u[j] / (h[j] + nu)
            norm += w * w
            slope += w * w / (h[j] + nu)
        norm = sqrt(norm)
        # 1e-14: the last digits of the norm are rounding.
        if not norm > radius * (1 + 1e-14):
            break
        nu += norm * norm / slope * (norm - radius) / radius
    if nu > 0:
        for j in range(d):
            u[j] *= h[j] / (h[j] + nu)


cdef void shrink(double* w, Py_ssize_t d, double threshold, double factor) noexcept nogil:
    """Soft-threshold each w_j, then multiply it by ``factor``: the elastic-net proximal step."""
    cdef Py_ssize_t j
    if threshold > 0:
        for j in range(d):
            if fabs(w[j]) <= threshold:
                w[j] = 0
            else:
                w[j] -= threshold if w[j] > 0 else -threshold
    for j in range(d):
        w[j] *= factor


cdef void compare_in_turn(
    const double* x,
    double sign,
    const double* stored,
    Py_ssize_t n_stored,
    double most,
    double* w,
    Py_ssize_t d,
    double* difference,
) noexcept nogil:
    """Step along ``sign (x - z)`` for one stored row z after the other, as far as its loss asks."""
    # The step is min(most, loss / |x - z|^2), with loss = max(0, 1 - margin).
    cdef Py_ssize_t j
    cdef double margin, square
    cdef double[4] products
    for j in range(n_stored):
        precbench_compare(x, stored + j * d, sign, w, d, difference, products)
        margin = products[0]  # sign <w, x - z>
        square = products[1]  # |x - z|^2
        if not isfinite(margin):
            poison(w, d)
        elif margin < 1:
            if not isfinite(square):
                poison(w, d)
            elif most * square <= 1 - margin:
                precbench_axpy(most, difference, w, d)
            else:
                precbench_axpy((1 - margin) / square, difference, w, d)


cdef void compare_at_once(
    const double* x,
    double score,
    double sign,
    const double* stored,
    Py_ssize_t n_stored,
    double most,
    double* w,
    Py_ssize_t d,
    double* margins,
) noexcept nogil:
    """Add ``most sign (x - z)`` to w for each stored row z with a margin <= 1 under the old w."""
    cdef Py_ssize_t j
    cdef double n_violating = 0
    precbench_multiply(stored, n_stored, w, d, margins)
    for j in range(n_stored):
        margins[j] = sign * (score - margins[j])
        n_violating += margins[j] <= 1
    for j in range(n_stored):
        if margins[j] <= 1:
            precbench_axpy(-sign * most, stored + j * d, w, d)
        elif not isfinite(margins[j]):
            poison(w, d)
    precbench_axpy(sign * most * n_violating, x, w, d)


def oam_pass(
    rows,
    const signed char[::1] y,
    const int[::1] order,
    const long long[::1] places,
    bint sequential,
    double C,
    double[::1] w,
    double[::1] w_sum,
    double[:, :, ::1] reservoirs,
    long long[::1] counts,
    double[::1] scratch,
):
    """Visit the rows of ``order`` with OAM, and keep some of them in ``reservoirs``.

    Row t is written to place ``places[t]`` of the reservoir of its class, and to none if there is
    no such place. ``reservoirs`` (2, size, n_features); ``scratch`` (2 * n_features + size,).
    """
    cdef Py_ssize_t d = w.shape[0], size = reservoirs.shape[1]
    cdef Py_ssize_t position, label, other, n_stored
    cdef double sign, most, score
    cdef Rows X = rows_of(rows)
    cdef double* weights = &w[0]
    cdef double* x = &scratch[0]
    cdef double* difference = &scratch[d]
    cdef double* margins = &scratch[2 * d]
    cdef const double* stored  # rows of the other class
    with nogil:
        for position in range(order.shape[0]):
            label = y[order[position]] > 0
            other = 1 - label
            sign = 1 if label else -1
            unpack(&X, order[position], x)
            stored = &reservoirs[other, 0, 0]
            n_stored = min(size, counts[other])
            # C_t / 2: a stored row stands for count / size rows of its class.
            most = C / 2 * max(1.0, <double>counts[other] / size)
            score = precbench_dot(x, weights, d)
            if not isfinite(score):
                poison(weights, d)
            elif sequential:
                compare_in_turn(x, sign, stored, n_stored, most, weights, d, difference)
            else:
                compare_at_once(x, score, sign, stored, n_stored, most, weights, d, margins)
            counts[label] += 1
            if places[position] < size:
                unpack(&X, order[position], &reservoirs[label, places[position], 0])
            add_to(w_sum, weights)


def pgd_pass(
    rows,
    const signed char[::1] y,
    const int[::1] order,
    const double[::1] eta,
    double[::1] w,
    double[::1] w_sum,
    double[::1] counts,
    double[:, ::1] sums,
    double[:, ::1] moments,
    double[::1] scratch,
):
    """Visit the rows of ``order`` with PGD and step lengths ``eta``; ``moments`` is M_0 + M_1.

    ``scratch`` (n_features,) is for g, the gradient without its multiple of x_t.
    """
    cdef Py_ssize_t d = w.shape[0], position, i, j, label
    cdef double n, score, error, mean_score
    cdef Rows X = rows_of(rows)
    cdef double* weights = &w[0]
    cdef double* g = &scratch[0]
    cdef const double* s0 = &sums[0, 0]
    cdef const double* s1 = &sums[1, 0]
    with nogil:
        for position in range(order.shape[0]):
            i = order[position]
            label = y[i] > 0
            n = counts[0] + counts[1]
            score = row_dot(&X, i, weights)
            if not isfinite(score):
                poison(weights, d)
            elif n > 0:
                precbench_multiply(&moments[0, 0], d, weights, d, g)
                error = score - (1 if label else -1)
                for j in range(d):
                    # The label y_j is -1 in s0 and +1 in s1.
                    g[j] = g[j] * (1 / n) - ((error - 1) * s0[j] + (error + 1) * s1[j]) / n
                mean_score = (precbench_dot(s0, weights, d) + precbench_dot(s1, weights, d)) / n
                precbench_axpy(-eta[position], g, weights, d)
                error -= mean_score - (counts[1] - counts[0]) / n
                row_axpy(&X, i, -eta[position] * error, weights)
            counts[label] += 1
            row_axpy(&X, i, 1, &sums[label, 0])
            add_outer(&X, i, &moments[0, 0])
            add_to(w_sum, weights)


def adaoam_pass(
    rows,
    const signed char[::1] y,
    const int[::1] order,
    double eta,
    double reg,
    double delta,
    double[::1] w,
    double[::1] w_sum,
    double[::1] counts,
    double[:, ::1] sums,
    double[:, :, ::1] moments,
    double[::1] squares,
    double[::1] scratch,
):
    """Visit the rows of ``order`` with AdaOAM; ``squares`` sums the squared gradients.

    ``scratch`` (2 * n_features,) is for the gradient g, and the divisor of each coordinate's step.
    """
    cdef Py_ssize_t d = w.shape[0], position, i, j, label, other
    cdef double n, sign, score, mean_score, norm
    # At w = 0 the objective is 1/2, which reg/2 |w|^2 exceeds outside of this ball.
    cdef double radius = 1 / sqrt(reg)
    cdef Rows X = rows_of(rows)
    cdef double* weights = &w[0]
    cdef double* g = &scratch[0]
    cdef double* scaling = &scratch[d]
    cdef const double* s
    with nogil:
        for position in range(order.shape[0]):
            i = order[position]
            label = y[i] > 0
            other = 1 - label
            sign = 1 if label else -1
            n = counts[other]
            s = &sums[other, 0]
            score = row_dot(&X, i, weights)
            if not isfinite(score):
                poison(weights, d)
            elif n > 0:
                precbench_multiply(&moments[other, 0, 0], d, weights, d, g)
                for j in range(d):
                    g[j] *= 1 / n
                mean_score = precbench_dot(s, weights, d) / n
                precbench_axpy((sign - score) / n, s, g, d)
                precbench_axpy(reg, weights, g, d)
                row_axpy(&X, i, score - mean_score - sign, g)
                for j in range(d):
                    squares[j] += g[j] * g[j]
                    scaling[j] = delta + sqrt(squares[j])
                    weights[j] -= eta * g[j] / scaling[j]
                norm = 0
                for j in range(d):
                    norm += weights[j] * weights[j]
                if norm > radius * radius:
                    project(weights, scaling, d, radius)
            counts[label] += 1
            row_axpy(&X, i, 1, &sums[label, 0])
            add_outer(&X, i, &moments[label, 0, 0])
            add_to(w_sum, weights)


def spam_pass(
    rows,
    const signed char[::1] y,
    const int[::1] order,
    const double[::1] eta,
    double reg,
    double l1_reg,
    bint running,
    double[::1] w,
    double[::1] w_sum,
    double[::1] counts,
    double[:, ::1] sums,
):
    """Visit the rows of ``order`` with SPAM and step lengths ``eta``.

    If ``running``, each row enters n_c and s_c before its step; else n_c and s_c are constant.
    """
    cdef Py_ssize_t d = w.shape[0], position, i, label, other
    cdef double share_of_other, mean_score_of_other, residual, step
    cdef Rows X = rows_of(rows)
    cdef double* weights = &w[0]
    with nogil:
        for position in range(order.shape[0]):
            i = order[position]
            label = y[i] > 0
            other = 1 - label
            if running:
                counts[label] += 1
                row_axpy(&X, i, 1, &sums[label, 0])
            if counts[0] > 0 and counts[1] > 0:
                step = eta[position]
                share_of_other = counts[other] / (counts[0] + counts[1])
                mean_score_of_other = precbench_dot(&sums[other, 0], weights, d) / counts[other]
                residual = row_dot(&X, i, weights) - mean_score_of_other - (1 if label else -1)
                row_axpy(&X, i, -2 * step * share_of_other * residual, weights)
                if not isfinite(residual):
                    poison(weights, d)
                shrink(weights, d, step * l1_reg, 1 / (1 + step * reg))
            add_to(w_sum, weights)

"""The P-Norm Push: weighted class means, derivatives along a line, and pairs.

With scores s = X w, positives i and negatives k, a term with rates (a, b) is

    G(w) = 1/a log sum_i exp(-a s_i)  +  1/b log sum_k exp(b s_k),
    gradient  m_v - m_u,   u_i ~ exp(-a s_i),  v_k ~ exp(b s_k),   m_u = sum_i u_i x_i;

Rates (1, p) give log R / p of the push at the top, (p, 1) of the push at the bottom. So value and
gradient take one pass over the rows. A risk that does not factorise (the logistic loss, relations
other than "every positive above every negative") takes pairs: z = s_k - s_i, h_k = sum_i loss(-z),

    log R = log sum_k h_k^p,   loss(-z) = e^z  or  ln(1 + e^z),

where i runs over the rows that should rank above k. All sums are in the log domain. (rudin2009,
sections 2, 5 with equation (1), 7.)
"""

include "source.pxi"

from libc.math cimport INFINITY, exp, fabs, log, log1p

from precbench.core.kernels.rows cimport Rows, row_axpy, row_dot, rows_of

cdef enum:
    BLOCK = 128  # rows that stay in the cache between their score and their weight

cdef double SMALL = -36  # for z below SMALL, ln(1 + e^z) is e^z in double precision


def class_sums(
    rows,
    const signed char[::1] labels,
    const double[::1] w,
    double rate_pos,
    double rate_neg,
    Py_ssize_t start,
    Py_ssize_t stop,
    double[::1] scores,
    double[::1] peaks,
    double[::1] totals,
    double[:, ::1] sums,
):
    """Score the rows start <= i < stop, and continue the sums by class of e_i and of e_i * row i.

    A running log-sum-exp that writes ``scores``, ``peaks``, ``totals`` (of e_i) and ``sums``, with
    ``e_i = exp(t_i - peak)``, ``t_i = -rate_pos * s_i`` for positives (class 0), ``rate_neg * s_i``
    for negatives (class 1). ``peaks``, the largest t of each class so far, are -inf at first.
    """
    cdef Rows X = rows_of(rows)
    cdef Py_ssize_t i, j, first, last, n = w.shape[0]
    cdef int c
    cdef double scale, e
    cdef double[2] rates
    cdef double[2] new_peaks
    rates[0] = -rate_pos
    rates[1] = rate_neg
    with nogil:
        first = start
        while first < stop:
            last = min(first + BLOCK, stop)
            new_peaks[0] = peaks[0]
            new_peaks[1] = peaks[1]
            for i in range(first, last):
                scores[i] = row_dot(&X, i, &w[0])
                c = labels[i] < 0
                new_peaks[c] = max(new_peaks[c], rates[c] * scores[i])
            for c in range(2):
                if new_peaks[c] > peaks[c]:
                    # For the first rows of a class exp(-inf) = 0, times sums that are 0.
                    scale = exp(peaks[c] - new_peaks[c])
                    peaks[c] = new_peaks[c]
                    totals[c] *= scale
                    for j in range(n):
                        sums[c, j] *= scale
            for i in range(first, last):
                c = labels[i] < 0
                e = exp(rates[c] * scores[i] - peaks[c])
                # Far from the peak e underflows to 0, and the row need not be read a second time.
                if e > 0:
                    totals[c] += e
                    row_axpy(&X, i, e, &sums[c, 0])
            first = last


cdef struct Term:
    double value  # of G
    double slope  # first derivative of G along the direction
    double curvature  # second derivative of G


cdef Term term_along(
    const double* scores,
    const signed char* labels,
    const double* direction,
    Py_ssize_t n,
    double step,
    double rate_pos,
    double rate_neg,
) noexcept nogil:
    """Return G and its derivatives along ``direction`` at ``scores + step * direction``."""
    cdef Term term
    cdef Py_ssize_t i
    cdef int c
    cdef double e
    cdef double[2] rates
    cdef double[2] peaks
    cdef double[2] totals
    cdef double[2] means
    cdef double[2] squares
    rates[0] = -rate_pos
    rates[1] = rate_neg
    for c in range(2):
        peaks[c] = -INFINITY
        totals[c] = means[c] = squares[c] = 0
    for i in range(n):
        c = labels[i] < 0
        peaks[c] = max(peaks[c], rates[c] * (scores[i] + step * direction[i]))
    for i in range(n):
        c = labels[i] < 0
        e = exp(rates[c] * (scores[i] + step * direction[i]) - peaks[c])
        totals[c] += e
        e *= direction[i]
        means[c] += e
        squares[c] += e * direction[i]
    term.value = term.curvature = 0
    for c in range(2):
        means[c] /= totals[c]
        term.value += (peaks[c] + log(totals[c])) / fabs(rates[c])
        term.curvature += fabs(rates[c]) * (squares[c] / totals[c] - means[c] * means[c])
    term.slope = means[1] - means[0]
    return term


def derivatives_along(
    const double[::1] scores,
    const signed char[::1] labels,
    const double[::1] direction,
    const double[:, ::1] terms,
    double power,
    double step,
):
    """Return two derivatives by the step of ``1/power log sum_m exp(power (G_m + c_m))``.

    They are the first and the second one at ``scores + step * direction``. ``terms`` has one row
    or two, (a, b, c): the rates and the constant of a term.
    """
    cdef Py_ssize_t n = scores.shape[0], m
    cdef double slope, curvature, share
    cdef Term[2] at_step
    with nogil:
        for m in range(terms.shape[0]):
            at_step[m] = term_along(
                &scores[0], &labels[0], &direction[0], n, step, terms[m, 0], terms[m, 1]
            )
            at_step[m].value += terms[m, 2]
        slope = at_step[0].slope
        curvature = at_step[0].curvature
        if terms.shape[0] == 2:
            share = 1 / (1 + exp(power * (at_step[1].value - at_step[0].value)))  # of term 0
            curvature = share * curvature + (1 - share) * at_step[1].curvature
            curvature += power * share * (1 - share) * (slope - at_step[1].slope) ** 2
            slope = share * slope + (1 - share) * at_step[1].slope
    return slope, curvature


def pair_heights(
    const double[::1] scores,
    const int[::1] upper,
    const int[::1] lower,
    const int[::1] starts,
    const int[::1] stops,
    bint logistic,
    Py_ssize_t first,
    Py_ssize_t last,
    double[::1] log_heights,
):
    """Write log h_m to ``log_heights[m]`` for first <= m < last; h_m is the h_k of k = lower[m].

    The rows ``upper[starts[m]:stops[m]]``, at least one, should rank above the row ``lower[m]``.
    """
    cdef Py_ssize_t m, j
    cdef double score, peak, total, z
    with nogil:
        for m in range(first, last):
            score = scores[lower[m]]
            peak = -INFINITY
            for j in range(starts[m], stops[m]):
                peak = max(peak, score - scores[upper[j]])
            total = 0
            if logistic and peak > SMALL:  # else all losses are e^z
                for j in range(starts[m], stops[m]):
                    z = score - scores[upper[j]]
                    # ln(1 + e^z), without overflow for large z.
                    total += max(z, 0.0) + log1p(exp(-fabs(z)))
                log_heights[m] = log(total)
            else:
                for j in range(starts[m], stops[m]):
                    total += exp(score - scores[upper[j]] - peak)
                log_heights[m] = peak + log(total)


def pair_gradient(
    const double[::1] scores,
    const int[::1] upper,
    const int[::1] lower,
    const int[::1] starts,
    const int[::1] stops,
    bint logistic,
    Py_ssize_t first,
    Py_ssize_t last,
    const double[::1] log_heights,
    const double[::1] weights,
    double[::1] gradient,
):
    """Add ``sum_m weights[m] * d log h_m / d s`` over first <= m < last to ``gradient``."""
    cdef Py_ssize_t m, j
    cdef double score, weight, total, z
    with nogil:
        for m in range(first, last):
            if weights[m] == 0:
                continue
            score = scores[lower[m]]
            total = 0
            for j in range(starts[m], stops[m]):
                z = score - scores[upper[j]]
                if logistic and log_heights[m] > SMALL:  # else h_m is a sum of e^z
                    weight = weights[m] * exp(-log_heights[m]) / (1 + exp(-z))
                else:
                    weight = weights[m] * exp(z - log_heights[m])
                gradient[upper[j]] -= weight
                total += weight
            gradient[lower[m]] += total

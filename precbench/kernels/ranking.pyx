"""The top of a list of scores, and the number of pairs that each of its rows forms."""

include "source.pxi"

from libc.math cimport INFINITY, sqrt

from precbench.kernels.select cimport count_below, kth_largest

cdef enum:
    SAMPLE_SIZE = 1024  # scores from which the place of the cut is estimated


cdef double bar_of_sample(
    const double* s,
    const Py_ssize_t* rows,
    const unsigned char* member,
    Py_ssize_t n,
    double share,
    double* sample,
) noexcept nogil:
    """Return a score that most likely a share of the rows and few others reach, -inf for few rows.
    """
    cdef Py_ssize_t i, j, m = 0
    cdef double rank
    if n < 4 * SAMPLE_SIZE:
        return -INFINITY
    for j in range(SAMPLE_SIZE):
        # Evenly spaced: a kernel draws no random numbers.
        i = j * (n // SAMPLE_SIZE)
        if rows != NULL:
            i = rows[i]
        sample[m] = s[i]
        m += 1 if member == NULL else member[i]
    # Three standard deviations beyond the expected rank: the bar is seldom too high.
    rank = m * share + 3 * sqrt(m * share * (1 - share)) + 1
    return kth_largest(sample, m, <Py_ssize_t>rank) if rank < m else -INFINITY


cdef Py_ssize_t reaching(
    double bar,
    const double* s,
    const Py_ssize_t* rows,
    const unsigned char* member,
    Py_ssize_t n,
    Py_ssize_t* candidates,
    double* values,
) noexcept nogil:
    """Write the rows whose scores reach a bar, and the scores; return how many these are."""
    cdef Py_ssize_t i, j, m = 0
    if rows != NULL:
        for j in range(n):
            values[m] = s[rows[j]]
            candidates[m] = rows[j]
            m += s[rows[j]] >= bar
    elif member != NULL:
        for i in range(n):
            values[m] = s[i]
            candidates[m] = i
            m += (s[i] >= bar) & member[i]
    else:
        for i in range(n):
            values[m] = s[i]
            candidates[m] = i
            m += s[i] >= bar
    return m


def top_rows(
    const double[::1] scores,
    const Py_ssize_t[::1] rows,
    const unsigned char[::1] member,
    Py_ssize_t[::1] candidates,
    double[::1] values,
    Py_ssize_t[::1] first,
):
    """Write the first rows by score; of equal scores the earlier one is first.

    Those above the last of their scores come before those equal to it.

    Parameters
    ----------
    scores : (n_samples,)
        Finite.
    rows : (n,) or None
        The rows to choose from, ascending.
    member : (n_samples,) or None
        Or 1 for these rows; by default all.
    candidates, values : (n + 1,) each
        Scratch for the n rows that are looked at; a small part at its front is used.
    first : (count,)
        At least one row, at most as many as there are to choose from.
    """
    cdef Py_ssize_t n = scores.shape[0] if rows is None else rows.shape[0]
    cdef Py_ssize_t count = first.shape[0], j, m, above = 0, tied = 0
    cdef const double* s = &scores[0]
    cdef const Py_ssize_t* listed = NULL if rows is None else &rows[0]
    cdef const unsigned char* marks = NULL if member is None else &member[0]
    cdef Py_ssize_t n_listed = n if marks == NULL else 0
    cdef double bar
    with nogil:
        if marks != NULL:
            for j in range(n):
                n_listed += marks[j]
        bar = bar_of_sample(s, listed, marks, n, <double>count / n_listed, &values[0])
        m = reaching(bar, s, listed, marks, n, &candidates[0], &values[0])
        if m < count:
            # The bar was too high after all.
            m = reaching(-INFINITY, s, listed, marks, n, &candidates[0], &values[0])
        bar = kth_largest(&values[0], m, count)
        # The tied rows are written behind those above, whose number is known first.
        for j in range(m):
            tied += values[j] > bar
        for j in range(m):
            if s[candidates[j]] > bar:
                first[above] = candidates[j]
                above += 1
            elif s[candidates[j]] == bar and tied < count:
                first[tied] = candidates[j]
                tied += 1


cdef struct Steps:
    const double* values  # ascending
    const int* starts  # of those in each of the equal steps from the lowest value to the highest
    Py_ssize_t n
    double low
    double high
    double per_unit


cdef inline Py_ssize_t step_of(const Steps* steps, double value) noexcept nogil:
    return <Py_ssize_t>((value - steps.low) * steps.per_unit)


cdef inline Py_ssize_t n_below(const Steps* steps, double bar) noexcept nogil:
    cdef Py_ssize_t step
    cdef int start
    if bar <= steps.low:
        return 0
    if bar > steps.high:
        return steps.n
    step = step_of(steps, bar)
    start = steps.starts[step]
    return start + count_below(steps.values + start, steps.starts[step + 1] - start, bar)


def count_pairs(
    const double[::1] few,
    const double[::1] ascending,
    const double[::1] many,
    int[::1] starts,
    double[::1] of_few,
    double[::1] of_many,
    double[::1] heads,
):
    """Count the pairs with ``few[i] < many[j]`` of each i and of each j.

    Equal steps divide the range of the few, so that a search is one within a step.

    Parameters
    ----------
    few, many : (m,), (n,)
        Finite, m at least 1.
    ascending : (m,)
        The few, sorted.
    starts, heads : (m + 1,) each
        Scratch.
    of_few, of_many : (m,), (n,)
        Written.
    """
    cdef Py_ssize_t m = few.shape[0], i, j, step = 0, below
    cdef Steps steps
    steps.values, steps.starts, steps.n = &ascending[0], &starts[0], m
    steps.low, steps.high, steps.per_unit = ascending[0], ascending[m - 1], 0
    with nogil:
        if 0 < steps.high - steps.low < INFINITY:
            steps.per_unit = (m - 1) / (steps.high - steps.low)
        if steps.per_unit == INFINITY:
            # The range is subnormal: one step holds all.
            steps.per_unit = 0
        for i in range(m):
            heads[i] = 0
            while step <= step_of(&steps, ascending[i]):
                starts[step] = <int>i
                step += 1
        while step <= m:
            starts[step] = <int>m
            step += 1
        for j in range(many.shape[0]):
            below = n_below(&steps, many[j])
            of_many[j] = below
            if below > 0:
                heads[below - 1] += 1  # and the whole head before it
        for i in range(m - 1, 0, -1):
            heads[i - 1] += heads[i]
        for i in range(m):
            of_few[i] = heads[n_below(&steps, few[i])]

"""The number of pairs that each row of two lists forms with rows of the other list."""

include "source.pxi"

from libc.math cimport INFINITY

from precbench.core.kernels.select cimport count_below


cdef struct Steps:
    const double* values  # ascending
    const int* starts  # place of the first value of each of the equal steps from low to high
    Py_ssize_t n  # of the values
    double low  # the lowest value
    double high
    double per_unit  # steps by unit of the values; 0: one step for all


cdef inline Py_ssize_t step_of(const Steps* steps, double value) noexcept nogil:
    """Return the step that a value from low to high lies in; a higher value has no lower step."""
    return <Py_ssize_t>((value - steps.low) * steps.per_unit)


cdef inline Py_ssize_t n_below(const Steps* steps, double bar) noexcept nogil:
    """Return the number of values < bar, by bisection within one step."""
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
    double[::1] few_counts,
    double[::1] many_counts,
    double[::1] heads,
):
    """Count the pairs ``few[i] < many[j]`` of each i and of each j.

    The results go to ``few_counts`` and ``many_counts``. All values are finite. ``ascending`` has
    the m >= 1 values of ``few`` in order. Scratch (m + 1,): ``starts`` of `Steps`, and ``heads``,
    the pairs of ascending[i].
    """
    # Equal steps divide the range of the values, so that a search goes through one step only.
    cdef Py_ssize_t m = few.shape[0], i, j, step = 0, below, place
    cdef Steps steps
    steps.values = &ascending[0]
    steps.starts = &starts[0]
    steps.n = m
    steps.low = ascending[0]
    steps.high = ascending[m - 1]
    steps.per_unit = 0
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
            many_counts[j] = below
            if below > 0:
                heads[below - 1] += 1  # marks the last of ascending[:below], all in pairs
        for i in range(m - 1, 0, -1):
            heads[i - 1] += heads[i]
        for i in range(m):
            place = n_below(&steps, few[i])  # of few[i] in ``ascending``, the first of equals
            few_counts[i] = heads[place]

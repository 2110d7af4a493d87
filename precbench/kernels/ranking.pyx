"""The top of a list of scores, and the number of pairs that each of its rows forms."""

include "source.pxi"

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from precbench.kernels.select cimport count_below, kth_largest

cdef extern from "top.h" nogil:
    Py_ssize_t precbench_reaching(
        const double* s,
        Py_ssize_t n,
        double lowest,
        const unsigned char* member,
        Py_ssize_t* rows,
        double* values,
    )

cdef enum:
    SAMPLE_SIZE = 4096  # scores, at most, from which the place of the cut is estimated
    SAMPLED = 16  # or one of so many


cdef double bar_of_sample(
    const double* s,
    const Py_ssize_t* rows,
    const unsigned char* member,
    Py_ssize_t n,
    double share,
    double deviations,
    double* sample,
) noexcept nogil:
    """Return a score that likely a share of the rows and few others reach, -inf for few rows."""
    cdef Py_ssize_t i, j, m = 0, size = min(SAMPLE_SIZE, n // SAMPLED)
    cdef double rank
    if n < SAMPLE_SIZE:
        return -INFINITY
    for j in range(size):
        # Evenly spaced: a kernel draws no random numbers.
        i = j * (n // size)
        if rows != NULL:
            i = rows[i]
        sample[m] = s[i]
        # NaN is in no order.
        m += (s[i] >= -INFINITY) & (1 if member == NULL else member[i])
    rank = m * share + deviations * sqrt(m * share * (1 - share)) + 1
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
    cdef Py_ssize_t j, m = 0
    if rows == NULL:
        return precbench_reaching(s, n, bar, member, candidates, values)
    for j in range(n):
        values[m] = s[rows[j]]
        candidates[m] = rows[j]
        m += s[rows[j]] >= bar
    return m


cdef Py_ssize_t shortlist(
    const double* s,
    const Py_ssize_t* rows,
    const unsigned char* member,
    Py_ssize_t n,
    Py_ssize_t n_listed,
    Py_ssize_t count,
    Py_ssize_t* candidates,
    double* values,
    double* last,
) noexcept nogil:
    """Write few rows among which the first are, and their scores; return how many.

    ``last`` becomes the last score of the first rows, -inf if too few rows have a number.
    """
    cdef Py_ssize_t m
    cdef double bar, deviations = 2
    while True:
        bar = bar_of_sample(s, rows, member, n, <double>count / n_listed, deviations, values)
        m = reaching(bar, s, rows, member, n, candidates, values)
        if m >= count or bar == -INFINITY:
            break
        # The bar was too high after all.
        deviations *= 4
    memcpy(values + m, values, m * sizeof(double))
    last[0] = kth_largest(values + m, m, count) if m >= count else -INFINITY
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
    candidates, values : (n + 1,), (2 n,)
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
    cdef double last
    with nogil:
        if marks != NULL:
            for j in range(n):
                n_listed += marks[j]
        m = shortlist(s, listed, marks, n, n_listed, count, &candidates[0], &values[0], &last)
        # The tied rows are written behind those above, whose number is known first.
        for j in range(m):
            tied += values[j] > last
        for j in range(m):
            if values[j] > last:
                first[above] = candidates[j]
                above += 1
            elif values[j] == last and tied < count:
                first[tied] = candidates[j]
                tied += 1


def rows_down_to(
    const double[::1] scores,
    Py_ssize_t count,
    bint with_ties,
    Py_ssize_t[::1] rows,
    double[::1] values,
):
    """Write the first rows by score in the order of the list, and return how many these are.

    Parameters
    ----------
    scores : (n,)
        Finite.
    count : int
        At least 1, at most n.
    with_ties : bool
        Whether all rows with the last score are first, or the earliest of them, `count` in all.
    rows : (n + 1,)
        Written at its front.
    values : (2 n,)
        Scratch, of which a small part at its front is used.

    Returns
    -------
    int
    """
    cdef Py_ssize_t j, m, found = 0, n = scores.shape[0], free = count
    cdef double last
    with nogil:
        m = shortlist(&scores[0], NULL, NULL, n, n, count, &rows[0], &values[0], &last)
        for j in range(m):
            rows[found] = rows[j]
            values[found] = values[j]
            found += values[j] >= last
        if found > count and not with_ties:
            m = found
            for j in range(m):
                free -= values[j] > last
            found = 0
            for j in range(m):
                rows[found] = rows[j]
                found += values[j] > last or free > 0
                free -= values[j] == last
    return found


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


def sort_bits(uint64_t[::1] bits, uint64_t[::1] spare):
    """Sort float64 numbers, ascending, by their bits: eight passes over digits of eight.

    Parameters
    ----------
    bits : (n,)
        Those of numbers other than NaN; -0.0 comes before 0.0.
    spare : (n,)
        Scratch.
    """
    cdef Py_ssize_t n = bits.shape[0], j, place, size
    cdef Py_ssize_t[8][256] places
    cdef int digit, value
    cdef uint64_t sign = <uint64_t>1 << 63, key
    cdef uint64_t* here = NULL if n == 0 else &bits[0]
    cdef uint64_t* there = NULL if n == 0 else &spare[0]
    with nogil:
        memset(places, 0, sizeof(places))
        for j in range(n):
            # Of negative numbers, the greater bits are those of the smaller.
            key = here[j] ^ (sign | (0 - (here[j] >> 63)))
            here[j] = key
            for digit in range(8):
                places[digit][key >> (8 * digit) & 255] += 1
        for digit in range(8):
            if n == 0 or places[digit][here[0] >> (8 * digit) & 255] == n:
                continue
            place = 0
            for value in range(256):
                size = places[digit][value]
                places[digit][value] = place
                place += size
            for j in range(n):
                value = here[j] >> (8 * digit) & 255
                there[places[digit][value]] = here[j]
                places[digit][value] += 1
            here, there = there, here
        for j in range(n):
            bits[j] = here[j] ^ (sign | ((here[j] >> 63) - 1))


def count_down(
    const double[::1] pos,
    const double[::1] neg,
    Py_ssize_t[::1] true_pos,
    Py_ssize_t[::1] false_pos,
    double[::1] thresholds,
):
    """Count the positives and the negatives at or above each distinct score, from the highest on.

    Parameters
    ----------
    pos, neg : (n_pos,), (n_neg,)
        Scores, ascending.
    true_pos, false_pos, thresholds : (n_pos + n_neg,) each
        The counts and the scores are written to their fronts.

    Returns
    -------
    int
        Number of distinct scores.
    """
    cdef Py_ssize_t i = pos.shape[0], j = neg.shape[0], found = 0
    cdef double threshold
    with nogil:
        while i > 0 or j > 0:
            threshold = pos[i - 1] if j == 0 or (i > 0 and pos[i - 1] > neg[j - 1]) else neg[j - 1]
            while i > 0 and pos[i - 1] == threshold:
                i -= 1
            while j > 0 and neg[j - 1] == threshold:
                j -= 1
            true_pos[found] = pos.shape[0] - i
            false_pos[found] = neg.shape[0] - j
            thresholds[found] = threshold
            found += 1
    return found

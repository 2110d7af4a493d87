# The k first of a list of candidates by score, in linear time.
#
# "First" means: higher score; of equal scores the lower index. With ``from_top`` false the same
# order is read from its end: lower score; of equal scores the higher index. Scores are finite.

from libc.math cimport sqrt
from libc.string cimport memcpy

cdef enum:
    FEW = 8  # a heap selects up to FEW, the k-th score selects more; insertion sorts runs of FEW
    SAMPLE = 32  # scores from which the place of the cut is estimated


cdef inline bint precedes(const double* s, int a, int b, bint from_top) noexcept nogil:
    return (s[a] > s[b] or (s[a] == s[b] and a < b)) == from_top


cdef inline void sift_down(
    const double* s, int* heap, Py_ssize_t n, Py_ssize_t root, bint from_top
) noexcept nogil:
    """Let the entry at ``root`` sink until no child comes after its parent in the order."""
    cdef Py_ssize_t child
    cdef int moving = heap[root]
    while True:
        child = 2 * root + 1
        if child >= n:
            break
        if child + 1 < n and precedes(s, heap[child], heap[child + 1], from_top):
            child += 1
        if not precedes(s, moving, heap[child], from_top):
            break
        heap[root] = heap[child]
        root = child
    heap[root] = moving


cdef inline void make_heap(
    const double* s, int* heap, Py_ssize_t n, bint from_top
) noexcept nogil:  # in place; the root becomes the last of the rows in the order
    cdef Py_ssize_t root
    for root in range(n // 2 - 1, -1, -1):
        sift_down(s, heap, n, root, from_top)


cdef inline double kth_largest(double* values, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Return the k-th largest of n values, which are reordered (quickselect without branches)."""
    cdef Py_ssize_t low = 0, high = n, j, above, equal
    cdef double a, b, c, pivot, moving
    while True:
        a = values[low]
        b = values[(low + high) // 2]
        c = values[high - 1]
        # The median of three, with which a sorted list is cut in half.
        pivot = max(min(a, b), min(max(a, b), c))
        above = low
        for j in range(low, high):
            moving = values[j]
            values[j] = values[above]
            values[above] = moving
            above += moving > pivot  # else the next swap takes this place
        if k <= above:  # values[low:above] > pivot
            high = above
            continue
        equal = above
        for j in range(above, high):
            moving = values[j]
            values[j] = values[equal]
            values[equal] = moving
            equal += moving >= pivot
        if k <= equal:  # values[above:equal] == pivot
            return pivot
        low = equal


cdef inline Py_ssize_t count_below(
    const double* ascending, Py_ssize_t n, double bar
) noexcept nogil:
    """Return how many of n ascending values lie below a bar, without a branch on them."""
    cdef const double* base = ascending
    cdef Py_ssize_t half
    if n == 0:
        return 0
    while n > 1:
        half = n // 2
        base += half if base[half - 1] < bar else 0
        n -= half
    return (base - ascending) + (base[0] < bar)


cdef inline Py_ssize_t shortlist(
    const double* s,
    const int* candidates,
    Py_ssize_t n,
    Py_ssize_t k,
    double sign,
    int* chosen,
    double* values,
) noexcept nogil:
    """Choose the k largest of n scores, and as few others as a sample allows; return how many."""
    # Writes the choice to ``chosen``, and the scores times ``sign`` to ``values``; both hold n.
    cdef Py_ssize_t j, m = 0
    cdef double share = <double>k / n, value, bar
    # Two standard deviations beyond the expected rank, so that the bar is seldom too high.
    cdef Py_ssize_t rank = <Py_ssize_t>(SAMPLE * share + 2 * sqrt(SAMPLE * share * (1 - share))) + 1
    if n >= 4 * SAMPLE and rank <= SAMPLE * 3 // 4:  # else a sample costs more than it saves
        for j in range(SAMPLE):
            values[j] = sign * s[candidates[j * n // SAMPLE]]
        bar = kth_largest(values, SAMPLE, rank)
        for j in range(n):
            value = sign * s[candidates[j]]
            chosen[m] = candidates[j]  # the next candidate overwrites one below the bar
            values[m] = value
            m += value >= bar
        # With m < k the bar was too high, and all are taken.
        if m >= k:
            return m
    for j in range(n):
        chosen[j] = candidates[j]
        values[j] = sign * s[candidates[j]]
    return n


cdef inline void select_first(
    const double* s,
    const int* candidates,
    Py_ssize_t n,
    Py_ssize_t k,
    bint from_top,
    int* first,
    double* scratch,
) noexcept nogil:
    """Write the first k <= n candidates to ``first`` (n,), in any order; ``candidates`` ascends."""
    # ``scratch`` holds n. A later candidate that ties with the root of the heap, the last of the
    # chosen, never enters from the top and always from the bottom: one comparison settles most.
    cdef Py_ssize_t j, m, inside = 0, n_equal = 0, skipped
    cdef double bar, value, sign = 1.0 if from_top else -1.0
    if k <= 0:
        return
    if k <= FEW:
        for j in range(k):
            first[j] = candidates[j]
        make_heap(s, first, k, from_top)
        bar = s[first[0]]
        for j in range(k, n):
            if (s[candidates[j]] > bar) if from_top else (s[candidates[j]] <= bar):
                first[0] = candidates[j]
                sift_down(s, first, k, 0, from_top)
                bar = s[first[0]]
        return
    if k == n:
        memcpy(first, candidates, n * sizeof(int))
        return
    m = shortlist(s, candidates, n, k, sign, first, scratch)
    bar = kth_largest(scratch, m, k)
    for j in range(m):
        inside += scratch[j] > bar
        n_equal += scratch[j] == bar
    # Of rows equal to the bar the earliest enter from the top, the latest from the bottom.
    skipped = 0 if from_top else n_equal - (k - inside)
    n_equal = k - inside  # from here on: how many such rows are still to enter
    inside = 0  # from here on: how many rows have entered
    for j in range(m):  # in place: inside <= j, and the next row overwrites one that stays out
        value = sign * s[first[j]]
        first[inside] = first[j]
        if value == bar:
            if skipped > 0:
                skipped -= 1
            elif n_equal > 0:
                n_equal -= 1
                inside += 1
        else:
            inside += value > bar
        if inside == k:
            return


cdef inline void sort_selection(
    const double* s, int* first, Py_ssize_t k, bint from_top, double* scratch
) noexcept nogil:
    """Sort k rows into the order, in place, by merging runs; ``scratch`` holds k."""
    cdef Py_ssize_t j, place, start, i, middle, stop, run = FEW
    cdef int moving
    cdef int* spare = <int*>scratch
    for place in range(1, k):  # runs of FEW are sorted by insertion
        moving = first[place]
        j = place
        while j % FEW > 0 and precedes(s, moving, first[j - 1], from_top):
            first[j] = first[j - 1]
            j -= 1
        first[j] = moving
    while run < k:
        memcpy(spare, first, k * sizeof(int))
        start = 0
        while start < k:
            i = start
            j = middle = min(start + run, k)
            stop = min(middle + run, k)
            for place in range(start, stop):
                if j == stop or (i < middle and precedes(s, spare[i], spare[j], from_top)):
                    first[place] = spare[i]
                    i += 1
                else:
                    first[place] = spare[j]
                    j += 1
            start = stop
        run *= 2

# The k first of a list of candidates by score, in linear time.
#
# "First" means: higher score; of equal scores the lower index. With ``from_top`` false the same
# order is read from its end: lower score; of equal scores the higher index. Scores are finite.

from libc.math cimport INFINITY, sqrt
from libc.string cimport memcpy, memset

cdef enum:
    FEW = 8  # up to this many are selected in a heap, more by the last score
    CROWDED = 16  # mean square of the number in a bucket above which buckets do not help
    BUCKETS = 2  # for each score that is sorted
    SAMPLE = 32  # scores from which the place of the cut is estimated


cdef inline bint precedes(const double* s, int a, int b, bint from_top) noexcept nogil:
    return (s[a] > s[b] or (s[a] == s[b] and a < b)) == from_top


cdef inline void sift_down(
    const double* s, int* heap, Py_ssize_t n, Py_ssize_t root, bint from_top
) noexcept nogil:
    """Restore the heap whose root is the last of its n entries in the order."""
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
) noexcept nogil:
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
            above += moving > pivot
        if k <= above:
            high = above
            continue
        equal = above
        for j in range(above, high):
            moving = values[j]
            values[j] = values[equal]
            values[equal] = moving
            equal += moving >= pivot
        if k <= equal:
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
    """Choose the k largest of n signed scores, and as few others as a sample allows."""
    cdef Py_ssize_t j, m = 0
    cdef double share = <double>k / n, value, bar
    # Two standard deviations beyond the expected rank, so that the bar is seldom too high.
    cdef Py_ssize_t rank = <Py_ssize_t>(SAMPLE * share + 2 * sqrt(SAMPLE * share * (1 - share))) + 1
    if n >= 4 * SAMPLE and rank <= SAMPLE * 3 // 4:
        for j in range(SAMPLE):
            values[j] = sign * s[candidates[j * n // SAMPLE]]
        bar = kth_largest(values, SAMPLE, rank)
        for j in range(n):
            value = sign * s[candidates[j]]
            chosen[m] = candidates[j]
            values[m] = value
            m += value >= bar
        # Otherwise the bar was too high, and all are taken.
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
    # ``scratch`` holds n. Of equal scores the later candidate never enters from the top and always
    # enters from the bottom, so one comparison settles almost every candidate.
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
    if inside + n_equal == k:
        inside = 0
        for j in range(m):
            value = sign * s[first[j]]
            first[inside] = first[j]
            inside += value >= bar
            if inside == k:
                return
    # of the equal ones the earliest enter from the top, the latest from the bottom
    skipped = 0 if from_top else n_equal - (k - inside)
    n_equal = k - inside
    inside = 0
    for j in range(m):
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


cdef inline int bucket_of(
    double score, double low, double high, double scale, bint from_top
) noexcept nogil:
    return <int>(((high - score) if from_top else (score - low)) * scale)


cdef inline bint spread_out(
    const double* s, int* first, Py_ssize_t k, bint from_top, int* spare
) noexcept nogil:
    """Put a selection into buckets of equal width in the order; false where many share one."""
    cdef Py_ssize_t j, squares = 0
    cdef int start = 0, size
    cdef double low = s[first[0]], high = low, width, scale = 0
    cdef int* starts = spare + k
    for j in range(k):
        low = min(low, s[first[j]])
        high = max(high, s[first[j]])
    width = high - low
    if width > 0:
        # Less 1, so that the far end falls into the last bucket and not behind it.
        scale = (BUCKETS * k - 1) / width
    # The width of huge scores overflows, the scale of subnormal ones.
    if not (width < INFINITY and scale < INFINITY):
        return False
    memset(starts, 0, BUCKETS * k * sizeof(int))
    for j in range(k):
        starts[bucket_of(s[first[j]], low, high, scale, from_top)] += 1
    for j in range(BUCKETS * k):
        size = starts[j]
        starts[j] = start
        start += size
        squares += <Py_ssize_t>size * size
    if squares > CROWDED * k:
        return False
    for j in range(k):
        size = bucket_of(s[first[j]], low, high, scale, from_top)
        spare[starts[size]] = first[j]
        starts[size] += 1
    memcpy(first, spare, k * sizeof(int))
    return True


cdef inline void sort_selection(
    const double* s, int* first, Py_ssize_t k, bint from_top, double* scratch
) noexcept nogil:
    """Sort a selection in the order, in linear time unless scores cluster; scratch holds 2 k."""
    cdef Py_ssize_t n, j
    cdef int moving
    if k <= FEW or spread_out(s, first, k, from_top, <int*>scratch):
        # Insertion: the rows are few, or move within buckets that are in order.
        for n in range(1, k):
            moving = first[n]
            j = n
            while j > 0 and precedes(s, moving, first[j - 1], from_top):
                first[j] = first[j - 1]
                j -= 1
            first[j] = moving
        return
    make_heap(s, first, k, from_top)
    for n in range(k - 1, 0, -1):
        moving = first[0]
        first[0] = first[n]
        first[n] = moving
        sift_down(s, first, n, 0, from_top)

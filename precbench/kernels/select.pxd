# The k first of a list of candidates by score, in linear time.
#
# "First" means: higher score; of equal scores the lower index. With ``from_top`` false the same
# order is read from its end: lower score; of equal scores the higher index. Scores are finite.

cdef enum:
    FEW = 8  # up to so many are kept in a heap, more are cut off at their last score


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
            equal += moving == pivot
        if k <= equal:
            return pivot
        low = equal


cdef inline void select_first(
    const double* s,
    const int* candidates,
    Py_ssize_t n,
    Py_ssize_t k,
    bint from_top,
    int* first,
    double* scratch,
) noexcept nogil:
    """Write the first k <= n candidates, in any order; ``candidates`` ascends, scratch holds n.

    ``first`` may be ``candidates``. Of equal scores the later candidate never enters from the top
    and always enters from the bottom, so one comparison settles almost every candidate.
    """
    cdef Py_ssize_t j, inside = 0, n_equal = 0, skipped
    cdef double bar, sign = 1.0 if from_top else -1.0
    cdef int candidate
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
    for j in range(n):
        scratch[j] = sign * s[candidates[j]]
    bar = sign * kth_largest(scratch, n, k)
    for j in range(n):
        inside += (sign * s[candidates[j]]) > sign * bar
        n_equal += s[candidates[j]] == bar
    # of the equal ones the earliest enter from the top, the latest from the bottom
    skipped = 0 if from_top else n_equal - (k - inside)
    n_equal = k - inside
    inside = 0
    for j in range(n):
        candidate = candidates[j]
        first[inside] = candidate
        if s[candidate] == bar:
            if skipped > 0:
                skipped -= 1
            elif n_equal > 0:
                n_equal -= 1
                inside += 1
        else:
            inside += (sign * s[candidate]) > sign * bar
        if inside == k:
            return


cdef inline void sort_selection(
    const double* s, int* first, Py_ssize_t k, bint from_top
) noexcept nogil:
    """Sort a selection in the order."""
    cdef Py_ssize_t n
    cdef int last
    make_heap(s, first, k, from_top)
    for n in range(k - 1, 0, -1):
        last = first[0]
        first[0] = first[n]
        first[n] = last
        sift_down(s, first, n, 0, from_top)

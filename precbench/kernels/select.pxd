# The k first of a list of candidates by score, in linear time for small k (a heap of k entries).
#
# "First" means: higher score; of equal scores the lower index. With ``from_top`` false the same
# order is read from its end: lower score; of equal scores the higher index.


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


cdef inline void select_first(
    const double* s, const int* candidates, Py_ssize_t n, Py_ssize_t k, bint from_top, int* heap
) noexcept nogil:
    """Write the first k <= n candidates into heap, the last of them at heap[0].

    ``candidates`` ascends, so of equal scores the later one never enters from the top and always
    enters from the bottom: one comparison settles almost every candidate.
    """
    cdef Py_ssize_t j
    cdef double bar
    if k <= 0:
        return
    for j in range(k):
        heap[j] = candidates[j]
    for j in range(k // 2 - 1, -1, -1):
        sift_down(s, heap, k, j, from_top)
    bar = s[heap[0]]
    for j in range(k, n):
        if (s[candidates[j]] > bar) if from_top else (s[candidates[j]] <= bar):
            heap[0] = candidates[j]
            sift_down(s, heap, k, 0, from_top)
            bar = s[heap[0]]


cdef inline void sort_selection(
    const double* s, int* heap, Py_ssize_t k, bint from_top
) noexcept nogil:
    """Turn the heap into a list in the order."""
    cdef Py_ssize_t n
    cdef int last
    for n in range(k - 1, 0, -1):
        last = heap[0]
        heap[0] = heap[n]
        heap[n] = last
        sift_down(s, heap, n, 0, from_top)

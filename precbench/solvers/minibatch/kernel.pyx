"""One pass of a mini-batch method (kar2015, Algorithms 1-4; kar2014, Algorithms 1 and 2).

Batch t of rows x_i takes the step w_t = P_W[w_{t-1} - eta_t * sum_i c_i x_i], W being a ball, with
c computed from the scores s_i = <w_{t-1}, x_i>:

  PERCEPTRON_AVG  c = 1 on false positives, -D on false negatives, D = #FP / #FN   (Algorithm 1)
  PERCEPTRON_MAX  c = 1 on false positives, -1 on the #FP first false negatives    (Algorithm 2)
  AVG, MAX, RAMP, STRUCT   c = a subgradient of that surrogate in the scores       (Algorithm 4,
                           equations (7), (6), (4), (3))
  PAUC, F1        c = the subgradient of that objective   (kar2014, appendix H; Joachims 2005)

False positives are the negatives among the k first of the batch, false negatives the positives
after the k first. Of rows with equal scores the one visited earlier is first. A batch without
positives, or for PAUC without negatives, leaves w as it is. When scores overflow, w becomes NaN and
stays NaN. For F1 a constant feature 1 is appended to every row, and the weight of 1 to w.
"""

include "source.pxi"

from libc.math cimport INFINITY, NAN, isfinite, sqrt
from libc.string cimport memset

from precbench.core.kernels.rows cimport (
    Rows,
    precbench_add_four,
    precbench_from,
    row_axpy,
    rows_of,
    score_rows,
)
from precbench.core.kernels.select cimport (
    count_below,
    make_heap,
    select_first,
    sift_down,
    sort_selection,
)

cpdef enum:
    PERCEPTRON_AVG
    PERCEPTRON_MAX
    AVG
    MAX
    RAMP
    STRUCT
    PAUC
    F1
    MOST_CANDIDATES = 16


cdef struct Batch:
    Py_ssize_t n       # rows
    Py_ssize_t n_pos
    Py_ssize_t k       # not used for F1
    double* scores     # of one candidate
    double* coef       # c, all 0 before a function below sets it
    int* pos           # positions of the positives in the batch, ascending
    int* neg           # positions of the negatives
    int* all           # 0, 1, ..., batch_size - 1
    int* first         # positions that include every negative with c > 0
    Py_ssize_t n_first  # number of entries of ``first``
    int* second        # scratch for other positions
    double* scratch    # of at least n


cdef struct Candidate:
    int rule
    const int* k_of    # k by the number of positives of a batch, for PAUC of negatives
    const double* eta  # step length of each batch
    double radius      # of the ball W
    double* w
    double* w_sum      # NULL: not wanted
    long long* counts  # of batches that can change nothing, of false positives of the perceptrons
    double* scores     # of the rows of a batch


cdef Py_ssize_t perceptron_coef(Batch* batch, bint only_first) noexcept nogil:
    """Set c by Algorithm 1, or 2 with ``only_first``; return the number of false positives."""
    cdef Py_ssize_t j, n_missed = 0, n_false
    cdef double share
    cdef int* missed = batch.second
    select_first(batch.scores, batch.all, batch.n, batch.k, True, batch.first, batch.scratch)
    batch.n_first = batch.k
    for j in range(batch.k):
        batch.coef[batch.first[j]] = 1
    for j in range(batch.n_pos):
        missed[n_missed] = batch.pos[j]  # the next positive overwrites one among the k first
        n_missed += batch.coef[batch.pos[j]] == 0
        batch.coef[batch.pos[j]] = 0  # true positives keep this c
    n_false = batch.k - (batch.n_pos - n_missed)
    if n_false == 0:
        return 0
    # n_missed > 0: k is at most n_pos, so each false positive displaces a positive.
    share = <double>n_false / n_missed
    if only_first:
        share = 1
        missed = batch.first + batch.k  # behind the k first: room for all other rows
        select_first(
            batch.scores, batch.second, n_missed, n_false, True, missed, batch.scratch
        )
        n_missed = n_false
    for j in range(n_missed):
        batch.coef[missed[j]] = -share
    return n_false


cdef void avg_coef(Batch* batch) noexcept nogil:
    """Set c by Algorithm 4, for the number of true positives among the k first that gives (7)."""
    # Running sums of scores: ``rest`` of the positives after the n_true first, ``pushed`` of the
    # k - n_true first negatives.
    cdef Py_ssize_t n_neg = batch.n - batch.n_pos, k = batch.k, j, n_true
    # With fewer than k negatives, at least k - n_neg of the k first are positives.
    cdef Py_ssize_t fewest = k - n_neg if k > n_neg else 0, best = fewest
    cdef double rest = 0, pushed = 0, value, best_value = -INFINITY, share
    cdef const double* s = batch.scores
    select_first(s, batch.neg, n_neg, k - fewest, True, batch.first, batch.scratch)
    sort_selection(s, batch.first, k - fewest, True, batch.scratch)
    select_first(s, batch.pos, batch.n_pos, k, True, batch.second, batch.scratch)
    sort_selection(s, batch.second, k, True, batch.scratch)
    for j in range(batch.n_pos):
        rest += s[batch.pos[j]]
    for j in range(fewest):
        rest -= s[batch.second[j]]
    for j in range(k - fewest):
        pushed += s[batch.first[j]]
    for n_true in range(fewest, k + 1):
        value = (k - n_true) + pushed
        if n_true < k:
            value -= <double>(k - n_true) / (batch.n_pos - n_true) * rest
        if value > best_value:
            best_value = value
            best = n_true
        if n_true < k:
            rest -= s[batch.second[n_true]]
            pushed -= s[batch.first[k - n_true - 1]]
    batch.n_first = k - best
    if best == k:  # no false positive: c stays 0
        return
    share = <double>(k - best) / (batch.n_pos - best)
    for j in range(batch.n_pos):
        batch.coef[batch.pos[j]] = -share
    for j in range(best):
        batch.coef[batch.second[j]] = 0
    for j in range(k - best):
        batch.coef[batch.first[j]] = 1


cdef void max_coef(Batch* batch) noexcept nogil:
    """Set c by (6): +1 and -1 on pairs of highest negative and lowest positive with a hinge > 0."""
    cdef Py_ssize_t n_neg = batch.n - batch.n_pos, j
    cdef Py_ssize_t m = batch.k if batch.k < n_neg else n_neg
    cdef const double* s = batch.scores
    select_first(s, batch.neg, n_neg, m, True, batch.first, batch.scratch)
    sort_selection(s, batch.first, m, True, batch.scratch)
    select_first(s, batch.pos, batch.n_pos, m, False, batch.second, batch.scratch)
    sort_selection(s, batch.second, m, False, batch.scratch)
    batch.n_first = m
    for j in range(m):
        if not 1 + s[batch.first[j]] - s[batch.second[j]] > 0:
            # Later pairs have lower negatives and higher positives.
            break
        batch.coef[batch.first[j]] = 1
        batch.coef[batch.second[j]] = -1


cdef void shifted_coef(Batch* batch, bint against_all) noexcept nogil:
    """Set c by (3) if ``against_all``, else by (4); add 1 to the scores of the negatives."""
    # +1 on the k first by s_i + 1[negative]; -1 on all positives, or on the k first positives.
    cdef Py_ssize_t j
    if against_all:
        for j in range(batch.n_pos):
            batch.coef[batch.pos[j]] = -1
    else:
        select_first(
            batch.scores, batch.pos, batch.n_pos, batch.k, True, batch.second, batch.scratch
        )
        for j in range(batch.k):
            batch.coef[batch.second[j]] = -1
    # In place: after this function the candidate's scores of the batch are not read.
    for j in range(batch.n - batch.n_pos):
        batch.scores[batch.neg[j]] += 1
    select_first(batch.scores, batch.all, batch.n, batch.k, True, batch.first, batch.scratch)
    batch.n_first = batch.k
    for j in range(batch.k):
        batch.coef[batch.first[j]] += 1


cdef void count_pairs(
    Batch* batch, int* few, Py_ssize_t n_few, const int* many, Py_ssize_t n_many, bint few_are_pos
) noexcept nogil:
    """Set c of each row to its number of pairs with 1 + s_neg > s_pos, over that of all pairs."""
    # The share is negated for positives. Of the positives and negatives to pair, ``few`` is the
    # shorter list, sorted in place; each row of ``many`` forms pairs with the first of ``few``.
    cdef Py_ssize_t j, n_below, total = 0
    cdef double share = (1.0 if few_are_pos else -1.0) / (<double>batch.n_pos * batch.k)
    cdef const double* s = batch.scores
    sort_selection(s, few, n_few, not few_are_pos, batch.scratch)
    # The highest negatives are negated, which is exact, so that either list ascends.
    for j in range(n_few):
        batch.scratch[j] = s[few[j]] if few_are_pos else -(1 + s[few[j]])
    for j in range(n_many):
        n_below = count_below(
            batch.scratch, n_few, 1 + s[many[j]] if few_are_pos else -s[many[j]]
        )
        if n_below > 0:
            batch.coef[many[j]] = n_below * share
            batch.coef[few[n_below - 1]] += 1  # marks the last of few[:n_below], all in pairs
    for j in range(n_few - 1, -1, -1):  # total: the pairs of few[j], marked there or later
        total += <Py_ssize_t>batch.coef[few[j]]
        batch.coef[few[j]] = -total * share


cdef void pauc_coef(Batch* batch) noexcept nogil:
    """Set c by the pairs of the k first negatives with the positives below ``bar``."""
    cdef Py_ssize_t k = batch.k, j, n_active = 0
    cdef double bar = -INFINITY  # becomes 1 + the highest score of a negative
    cdef const double* s = batch.scores
    select_first(s, batch.neg, batch.n - batch.n_pos, k, True, batch.first, batch.scratch)
    batch.n_first = k
    for j in range(k):
        bar = max(bar, 1 + s[batch.first[j]])
    for j in range(batch.n_pos):
        batch.second[n_active] = batch.pos[j]  # the next positive overwrites one not below the bar
        n_active += s[batch.pos[j]] < bar
    if n_active <= k:  # the shorter list goes first, see ``count_pairs``
        count_pairs(batch, batch.second, n_active, batch.first, k, True)
    else:
        count_pairs(batch, batch.first, k, batch.second, n_active, False)


cdef void f1_coef(Batch* batch) noexcept nogil:
    """Set c by the numbers of true and false positives, a and b, of the largest value."""
    # The value is n_pos (1 - F1) + ``pushed`` - ``rest``, the sums of scores of the b highest
    # negatives and of the positives after the a highest. The best b never falls as a grows, so
    # negatives leave the heap from the highest down, to the places behind the heap.
    cdef Py_ssize_t n_pos = batch.n_pos, j, a, b = 0, best_a = 0, best_b = 0, m = 0
    cdef double size, value, best_value = -INFINITY, rest = 0, pushed = 0
    cdef const double* s = batch.scores
    cdef int* heap = batch.first
    cdef int top
    for j in range(batch.n - n_pos):
        heap[m] = batch.neg[j]
        # A lower negative never pays: n (1 - F1) gains 2 a n / (size (size + 1)) < 1/2.
        m += s[batch.neg[j]] > -0.5
    make_heap(s, heap, m, False)  # False: the highest at the root
    for j in range(n_pos):
        batch.second[j] = batch.pos[j]
        rest += s[batch.pos[j]]
    sort_selection(s, batch.second, n_pos, True, batch.scratch)
    for a in range(n_pos + 1):
        while b < m:
            size = n_pos + a + b
            if not <double>(2 * a * n_pos) / (size * (size + 1)) + s[heap[0]] > 0:  # no gain
                break
            top = heap[0]
            heap[0] = heap[m - 1 - b]
            heap[m - 1 - b] = top
            pushed += s[top]
            b += 1
            sift_down(s, heap, m - b, 0, False)
        value = <double>(n_pos * (n_pos - a + b)) / (n_pos + a + b) + (pushed - rest)
        if value > best_value:
            best_value = value
            best_a = a
            best_b = b
        if a < n_pos:
            rest -= s[batch.second[a]]
    for j in range(best_a, n_pos):
        batch.coef[batch.second[j]] = -1.0 / n_pos
    for j in range(best_b):
        batch.coef[heap[m - 1 - j]] = 1.0 / n_pos
    batch.n_first = m


cdef double add_active(
    const Batch* batch,
    const Rows* X,
    const int* rows,
    double step,
    const int* positions,
    Py_ssize_t n,
    double sign,
    double total,
    double* w,
) noexcept nogil:
    """Subtract step * sum_i c_i x_i from w, for c of this sign; return total + sum of these c."""
    cdef Py_ssize_t j, r, n_active = 0, n_by_four
    cdef double c
    cdef double shares[4]
    cdef const void* four[4]
    cdef int* active = batch.second  # listed first, since branches on c = 0 are unpredictable
    for j in range(n):
        active[n_active] = positions[j]  # the next position overwrites one without such a c
        n_active += sign * batch.coef[positions[j]] > 0
    n_by_four = n_active - n_active % 4 if X.indptr == NULL else 0
    for j in range(0, n_by_four, 4):
        for r in range(4):
            c = batch.coef[active[j + r]]
            shares[r] = -step * c
            four[r] = precbench_from(X.data, rows[active[j + r]] * X.n_cols, X.kind)
            total += c
        precbench_add_four(shares, four, X.kind, w, X.n_cols)
    for j in range(n_by_four, n_active):
        c = batch.coef[active[j]]
        row_axpy(X, rows[active[j]], -step * c, w)
        total += c
    return total


cdef double descend(
    const Batch* batch, const Rows* X, const int* rows, double step, double* w
) noexcept nogil:
    """Subtract step * sum_i c_i x_i from w; return the sum of c."""
    cdef double total = add_active(batch, X, rows, step, batch.pos, batch.n_pos, -1, 0, w)
    return add_active(batch, X, rows, step, batch.first, batch.n_first, 1, total, w)


cdef void project(double* w, Py_ssize_t n, double radius) noexcept nogil:
    """Move w to the nearest point of the ball."""
    cdef Py_ssize_t j
    cdef double norm = 0
    for j in range(n):
        norm += w[j] * w[j]
    norm = sqrt(norm)
    if norm == INFINITY:
        # Scaling by radius / inf would silently give w = 0.
        w[0] = NAN
    elif norm > radius:
        for j in range(n):
            w[j] *= radius / norm


cdef void split_labels(Batch* batch, const signed char* y, const int* rows) noexcept nogil:
    """Fill ``pos``, ``neg``, ``n_pos`` without a branch: the next row overwrites a wrong entry."""
    cdef Py_ssize_t j, n_pos = 0
    for j in range(batch.n):
        batch.pos[n_pos] = <int>j
        batch.neg[j - n_pos] = <int>j
        n_pos += y[rows[j]] > 0
    batch.n_pos = n_pos


cdef bint all_finite(const double* x, Py_ssize_t n) noexcept nogil:
    """Return whether no value is infinite or NaN."""
    cdef Py_ssize_t j
    for j in range(n):
        if not isfinite(x[j]):
            return False
    return True


cdef void learn(
    Candidate* candidate, Batch* batch, const Rows* X, const int* rows, double step
) noexcept nogil:
    """Update w, w_sum and counts of a candidate by a batch; ``candidate.scores`` are filled."""
    cdef int rule = candidate.rule
    cdef bint has_intercept = rule == F1
    cdef Py_ssize_t n_features = X.n_cols, n_weights = n_features + has_intercept, j
    cdef double* w = candidate.w
    cdef double total
    batch.scores = candidate.scores
    if has_intercept:
        for j in range(batch.n):
            batch.scores[j] += w[n_features]
    if not all_finite(batch.scores, batch.n):
        for j in range(n_weights):
            w[j] = NAN
    elif batch.n_pos == 0 or (rule == PAUC and batch.n_pos == batch.n):
        candidate.counts[0] += 1  # nothing to learn
    else:
        if rule == PAUC:
            batch.k = candidate.k_of[batch.n - batch.n_pos]  # by negatives
        elif rule != F1:
            batch.k = candidate.k_of[batch.n_pos]  # by positives
        memset(batch.coef, 0, batch.n * sizeof(double))
        if rule == PERCEPTRON_AVG or rule == PERCEPTRON_MAX:
            candidate.counts[1] += perceptron_coef(batch, rule == PERCEPTRON_MAX)
        elif rule == AVG:
            avg_coef(batch)
        elif rule == MAX:
            max_coef(batch)
        elif rule == PAUC:
            pauc_coef(batch)
        elif rule == F1:
            f1_coef(batch)
        else:  # RAMP, STRUCT
            shifted_coef(batch, rule == STRUCT)
        total = descend(batch, X, rows, step, w)
        if has_intercept:
            w[n_features] -= step * total
        if candidate.radius < INFINITY:
            project(w, n_weights, candidate.radius)
    if candidate.w_sum != NULL:
        for j in range(n_weights):
            candidate.w_sum[j] += w[j]


def minibatch_pass(
    rows,
    const signed char[::1] y,
    const int[::1] order,
    Py_ssize_t batch_size,
    list candidates,
    double[::1] real_scratch,
    int[::1] int_scratch,
):
    """Visit the rows of ``order`` in batches; each candidate learns as if it were alone.

    ``candidates`` has a `Candidate` of estimator.py for each solver. The pass updates their w,
    counts (2,) and, unless it is empty, w_sum, to which each w_t is added. The scratch arrays are
    ``real_scratch`` ((len(candidates) + 3) * batch_size,), ``int_scratch`` (5 * batch_size,).
    """
    cdef Py_ssize_t n_candidates = len(candidates), j, m, n_batches = 0, n_left = order.shape[0]
    cdef Rows X = rows_of(rows)
    cdef const int* visited = &order[0]
    cdef Candidate learners[MOST_CANDIDATES]
    cdef const double* weights[MOST_CANDIDATES]
    cdef double* scores[MOST_CANDIDATES]
    cdef const double[::1] eta
    cdef const int[::1] k_of
    cdef double[::1] w, w_sum
    cdef long long[::1] counts
    cdef Batch batch
    assert n_candidates <= MOST_CANDIDATES
    for m in range(n_candidates):
        candidate = candidates[m]
        k_of = candidate.k_of
        eta = candidate.eta
        w = candidate.w
        w_sum = candidate.w_sum
        counts = candidate.counts
        learners[m].rule = candidate.rule
        learners[m].radius = candidate.radius
        learners[m].k_of = &k_of[0]
        learners[m].eta = &eta[0]
        learners[m].counts = &counts[0]
        learners[m].w = &w[0]
        learners[m].w_sum = &w_sum[0] if w_sum.shape[0] else NULL
        learners[m].scores = &real_scratch[(3 + m) * batch_size]
        weights[m] = learners[m].w
        scores[m] = learners[m].scores
    batch.coef = &real_scratch[0]
    batch.scratch = &real_scratch[batch_size]
    batch.pos = &int_scratch[0]
    batch.neg = &int_scratch[batch_size]
    batch.all = &int_scratch[2 * batch_size]
    batch.first = &int_scratch[3 * batch_size]
    batch.second = &int_scratch[4 * batch_size]
    with nogil:
        for j in range(batch_size):
            batch.all[j] = <int>j
        while n_left > 0:
            batch.n = min(batch_size, n_left)
            score_rows(&X, visited, batch.n, n_left, weights, n_candidates, scores)
            split_labels(&batch, &y[0], visited)
            for m in range(n_candidates):
                learn(&learners[m], &batch, &X, visited, learners[m].eta[n_batches])
            n_batches += 1
            n_left -= batch.n
            visited += batch.n

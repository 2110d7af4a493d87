"""The projections of TopPush's dual variables: for the highest negative, and for the K highest."""

include "source.pxi"

from libc.math cimport INFINITY


def project(const double[::1] point, const signed char[::1] labels, double[::1] out):
    """Write the c nearest to ``point`` with sum 0, >= 0 on positives and <= 0 on negatives."""
    # c is ``point - shift``, with 0 in place of wrong signs, for the shift at which the sum is 0:
    # the root of a falling, piecewise linear function, by Newton's method in a bracket.
    cdef Py_ssize_t n = point.shape[0], i, n_pos, n_neg, n_pos_before = -1, n_neg_before = -1
    cdef double too_low = INFINITY, too_high = -INFINITY, shift, value, total
    with nogil:
        for i in range(n):
            if labels[i] > 0:
                too_high = max(too_high, point[i])
            else:
                too_low = min(too_low, point[i])
        # If no positive is above a negative, c = 0. Halved one by one, as the sum may overflow.
        shift = too_high if too_high <= too_low else too_low / 2 + too_high / 2
        while too_low < too_high:
            total = 0
            n_pos = 0
            n_neg = 0
            for i in range(n):
                value = point[i] - shift
                if labels[i] > 0 and value > 0:
                    total += value
                    n_pos += 1
                elif labels[i] < 0 and value < 0:
                    total += value
                    n_neg += 1
            # With as many entries as before, the last step has solved the linear piece exactly.
            if total == 0 or (n_pos == n_pos_before and n_neg == n_neg_before):
                break
            if total > 0:
                too_low = shift
            else:
                too_high = shift
            n_pos_before = n_pos
            n_neg_before = n_neg
            shift += total / (n_pos + n_neg)
            if not too_low < shift < too_high:
                shift = too_low / 2 + too_high / 2
                n_pos_before = -1  # bisected: the root may lie elsewhere on the same piece
                if not too_low < shift < too_high:
                    break
        for i in range(n):
            value = point[i] - shift
            out[i] = value if (value > 0) == (labels[i] > 0) else 0


def project_capped(
    const double[::1] point,
    const signed char[::1] labels,
    Py_ssize_t k,
    double kth,
    double after,
    double[::1] out,
):
    """Write what `project` does, with no negative's |c| above 1/k of the sum over the positives."""
    # p is ``point`` on the positives, and r is -``point`` on the negatives; of r the k-th largest
    # entry is ``kth``, the next ``after`` (or -inf). c = max(0, p - shift) on the positives and
    # -c = min(max(0, r - low), high - low) on the negatives, where
    #
    #     sum max(0, p - shift) - k shift = level
    #     sum max(0, r - low) + k low     = level
    #     sum max(0, r - high) + k high   = level,  high - low = shift + level / k.
    #
    # As functions of the level, high, -low and -shift rise and are concave, so that Newton's method
    # takes the level up and never beyond the solution. The least level has low and high between the
    # k-th entry and the next; if the solution is there, the shift alone rises. Low, high and -shift
    # are relative to the k-th entry, so that no large equal parts are summed. The loop fixes which
    # entries are summed: shift = per_pos (s_pos - level), high = per_high (level - s_high) and
    # low = (s_low - level) / slope, put into the last equation times slope, give the level.
    cdef Py_ssize_t n = point.shape[0], i, n_pos, n_low, n_high
    cdef double lowest = after - kth, low = lowest, high = 0, shift = -INFINITY
    cdef double level = -INFINITY, least = 0, next_level, next_shift, value, cap
    cdef double s_pos, s_low, s_high, per_pos, per_high, slope
    with nogil:
        while True:
            s_pos = s_low = s_high = 0
            n_pos = n_low = n_high = 0
            for i in range(n):
                if labels[i] > 0:
                    value = point[i] + kth
                    if value > shift:
                        s_pos += value
                        n_pos += 1
                else:
                    value = -point[i] - kth
                    if value >= low:
                        s_low += value
                        n_low += 1
                    if value > high:
                        s_high += value
                        n_high += 1
            if level == -INFINITY:  # in the first round
                least = s_high
            per_pos = 1.0 / (n_pos + k)
            per_high = 1.0 / (k - n_high)
            slope = n_low - k  # 0 only if k is the number of negatives
            next_level = (slope * (per_pos * s_pos + per_high * s_high) + s_low) / (
                slope * (per_pos + per_high - 1.0 / k) + 1
            )
            next_level = max(next_level, least)
            next_shift = per_pos * (s_pos - next_level)
            if not (next_level > level or (next_level == level and next_shift > shift)):
                break
            level = next_level
            shift = next_shift
            low = min(lowest, (s_low - level) / max(slope, 1))
            high = max(0, per_high * (level - s_high))
        cap = max(0, shift + level / k)
        for i in range(n):
            if labels[i] > 0:
                out[i] = max(0, point[i] + kth - shift)
            else:
                out[i] = -min(max(0, -point[i] - kth - low), cap)

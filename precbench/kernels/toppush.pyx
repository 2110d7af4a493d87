"""The projection of TopPush's dual variables."""

include "source.pxi"


def project(const double[::1] point, const signed char[::1] labels, double[::1] out):
    """Write the nearest c with ``sum(c) = 0``, c >= 0 on positives and c <= 0 on negatives.

    It is ``point - shift``, with 0 in place of wrong signs, for the shift at which the sum is 0.
    The sum never rises with the shift, and is linear while the same entries count: Newton's
    method, kept between the shifts known to be too low and too high, ends on the piece with the
    root.
    """
    cdef Py_ssize_t n = point.shape[0], i, n_pos, n_neg, n_pos_before = -1, n_neg_before = -1
    cdef double too_low = 0, too_high = 0, shift, value, total
    cdef bint first_pos = True, first_neg = True
    with nogil:
        for i in range(n):
            if labels[i] > 0 and (first_pos or point[i] > too_high):
                too_high = point[i]
                first_pos = False
            elif labels[i] < 0 and (first_neg or point[i] < too_low):
                too_low = point[i]
                first_neg = False
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

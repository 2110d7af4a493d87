# Where a row goes at a split of a tree that takes missing values or categories.

cdef enum:
    LEFT = 1  # missing values and unknown categories go to the left
    CATEGORY = 2  # the value is a place in the list of categories
    ZERO = 4  # 0 is a missing value
    NAN = 8  # NaN is a missing value, else it is 0
    WHOLE = 16  # a number between two categories is an unknown one, else it is rounded to 0


cdef inline bint goes_left(
    double x, double value, int split, const unsigned int[::1] categories
) noexcept nogil:
    """Return whether a row goes to the left.

    The set at place j has ``categories[j]`` words of 32 bits behind it: the categories that do not
    go where the unknown ones do.
    """
    cdef bint is_left = split & LEFT
    cdef int place
    cdef unsigned int c
    if split & CATEGORY:
        place = <int> value
        if not (x > -1 and x < 32.0 * categories[place]):  # NaN, too
            return is_left
        c = <unsigned int> <int> x
        if split & WHOLE and c != x:
            return is_left
        return is_left != <bint> ((categories[place + 1 + c // 32] >> (c % 32)) & 1)
    if x != x:
        if split & NAN:
            return is_left
        x = 0
    if split & ZERO and -(<float> 1e-35) <= x <= <float> 1e-35:  # as LightGBM says
        return is_left
    return x <= value

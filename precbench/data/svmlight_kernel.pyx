"""Read a block of svmlight lines.

Grammar of a line: ``label (index:value)*``, separated by blanks or tabs, a comment after ``#``,
``\\r\\n`` or ``\\n`` at the end; empty lines and lines with only a comment are skipped. Indices are
integers from 1 to 2**31 - 1, strictly ascending within a line. A number is
``[+-] digits [. digits] [(e|E) [+-] digits]`` with at least one digit before the exponent.

A number m * 10**e with an integer m <= 2**53 and ``|e| <= 22`` is one correctly rounded product
or quotient of two exact doubles (Clinger, How to read floating point numbers accurately, 1990).
Longer fractions, as ``repr`` prints them, are quotients of integers, rounded once (quotient.h). Any
other number is left to the caller: its bytes and its slot are noted.
"""

include "source.pxi"

from libc.stdint cimport int32_t, uint64_t

cdef extern from "quotient.h" nogil:
    int PRECBENCH_MOST_FIVES
    double precbench_quotient(uint64_t m, int e)

# How a block ends; the sentences for the user stand in precbench/data/svmlight.py.
cpdef enum Status:
    OK
    BAD_LABEL
    BAD_INDEX
    ZERO_INDEX
    LARGE_INDEX
    UNSORTED_INDEX
    NO_COLON
    BAD_VALUE

cdef double[23] POWERS = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
]
cdef uint64_t LARGEST_EXACT = 9007199254740992ULL  # 2**53
cdef int MANY_DIGITS = 19  # a uint64 holds any integer of 19 digits
cdef long long LARGEST_WRITTEN = 1000000000000000  # far beyond the length of any block

cdef enum Number:
    INVALID
    EXACT
    INEXACT


cdef inline bint is_digit(unsigned char c) noexcept nogil:
    return <unsigned char> (c - c'0') < 10


cdef inline bint ends_token(unsigned char c) noexcept nogil:
    return c == c' ' or c == c'\n' or c == c'\t' or c == c'\r' or c == c'#'


cdef inline Number read_number(
    const unsigned char* text, Py_ssize_t* position, double* value
) noexcept nogil:
    """Read the number at ``position`` and, unless INVALID, move behind it; set value if EXACT."""
    cdef Py_ssize_t at = position[0], start, first_digit, n_digits, exponent = 0
    cdef uint64_t mantissa = 0
    cdef long long written = 0  # the exponent behind e
    cdef bint negative = text[at] == c'-', negative_exponent
    if is_digit(text[at]) and ends_token(text[at + 1]):  # as in 7:1, the shortest
        value[0] = text[at] - c'0'
        position[0] = at + 1
        return EXACT
    if negative or text[at] == c'+':
        at += 1
    start = at
    while is_digit(text[at]):
        mantissa = 10 * mantissa + (text[at] - c'0')
        at += 1
    n_digits = at - start
    if text[at] == c'.':
        at += 1
        first_digit = at
        while is_digit(text[at]):
            mantissa = 10 * mantissa + (text[at] - c'0')
            at += 1
        n_digits += at - first_digit
        exponent = first_digit - at
    if n_digits == 0:
        return INVALID
    # Leading zeros take no room in the mantissa, so they are not counted as digits.
    while n_digits > MANY_DIGITS and (text[start] == c'0' or text[start] == c'.'):
        n_digits -= text[start] == c'0'
        start += 1
    if text[at] == c'e' or text[at] == c'E':
        at += 1
        negative_exponent = text[at] == c'-'
        if negative_exponent or text[at] == c'+':
            at += 1
        if not is_digit(text[at]):
            return INVALID
        while is_digit(text[at]):
            # More could overflow, and as large an exponent is inexact whatever the fraction.
            if written < LARGEST_WRITTEN:
                written = 10 * written + (text[at] - c'0')
            at += 1
        exponent += -written if negative_exponent else written
    if not ends_token(text[at]):
        return INVALID
    position[0] = at
    if n_digits > MANY_DIGITS:
        return INEXACT
    if mantissa <= LARGEST_EXACT and -22 <= exponent <= 22:
        value[0] = <double> mantissa
        if exponent < 0:
            value[0] /= POWERS[-exponent]
        else:
            value[0] *= POWERS[exponent]
    elif mantissa > 0 and -PRECBENCH_MOST_FIVES <= exponent <= 0:
        value[0] = precbench_quotient(mantissa, <int> -exponent)
    else:
        return INEXACT
    if negative:
        value[0] = -value[0]
    return EXACT


cdef inline Py_ssize_t to_next_token(const unsigned char* text, Py_ssize_t at) noexcept nogil:
    """Return the place behind blanks, or at the end of a line the place of its newline."""
    while text[at] == c' ' or text[at] == c'\t':
        at += 1
    # A text ends with a newline, so that a byte follows the \r.
    if text[at] == c'\r' and text[at + 1] == c'\n':
        at += 1
    if text[at] == c'#':
        while text[at] != c'\n':
            at += 1
    return at


def parse_block(
    const unsigned char[::1] text,
    Py_ssize_t stop,
    int32_t limit,
    double[::1] data,
    int32_t[::1] indices,
    Py_ssize_t[::1] row_ends,
    double[::1] labels,
    Py_ssize_t[:, ::1] inexact,
):
    """Read the whole lines ``text[:stop]``, the last byte a newline, with indices to ``limit``."""
    # There is room for all that the text can hold: ``stop // 4 + 1`` entries in ``data``,
    # ``indices`` (from 0) and ``inexact``, ``stop // 2 + 1`` rows in ``row_ends`` (entries up to
    # the end of each) and ``labels``. For each number that must be read exactly elsewhere
    # ``inexact[i]`` is (first byte, byte behind the number, slot), the slot of the entry, or ``-1 -
    # row`` for a label.
    #
    # Returns the numbers of rows, lines, entries and inexact numbers, the largest index, the status
    # and the byte where a line went wrong or, if the status is ``OK``, the text ends.
    cdef const unsigned char* p = &text[0]
    cdef Py_ssize_t at = 0, start, n_rows = 0, n_lines = 0, n_entries = 0, n_inexact = 0
    cdef int32_t largest = 0, previous
    cdef long long index
    cdef Status status = OK
    cdef double value = 0.0
    cdef Number kind
    with nogil:
        while at < stop:
            at = to_next_token(p, at)
            if p[at] == c'\n':
                at += 1
                n_lines += 1
                continue

            start = at
            kind = read_number(p, &at, &value)
            if kind == INVALID:
                status = BAD_LABEL
                break
            if kind == INEXACT:
                inexact[n_inexact, 0] = start
                inexact[n_inexact, 1] = at
                inexact[n_inexact, 2] = -1 - n_rows
                n_inexact += 1
            labels[n_rows] = value

            previous = 0
            while True:
                at = to_next_token(p, at)
                if p[at] == c'\n':
                    break
                start = at
                index = 0
                # The digits end before the index can overflow.
                while is_digit(p[at]) and index <= limit:
                    index = 10 * index + (p[at] - c'0')
                    at += 1
                if at == start:
                    status = BAD_INDEX
                    break
                if index > limit:
                    status = LARGE_INDEX
                    at = start
                    break
                if p[at] != c':':
                    status = NO_COLON
                    at = start
                    break
                if index <= previous:
                    status = ZERO_INDEX if index == 0 else UNSORTED_INDEX
                    at = start
                    break
                previous = <int32_t> index
                at += 1
                start = at
                kind = read_number(p, &at, &value)
                if kind == INVALID:
                    status = BAD_VALUE
                    break
                if kind == INEXACT:
                    inexact[n_inexact, 0] = start
                    inexact[n_inexact, 1] = at
                    inexact[n_inexact, 2] = n_entries
                    n_inexact += 1
                data[n_entries] = value
                indices[n_entries] = previous - 1
                n_entries += 1
            if status != OK:
                break
            if previous > largest:
                largest = previous
            row_ends[n_rows] = n_entries
            n_rows += 1
            at += 1
            n_lines += 1
    return n_rows, n_lines, n_entries, n_inexact, largest, status, at

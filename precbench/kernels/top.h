/* The rows whose scores reach a bar.
 *
 * A branch for each score would be foreseen for most, and cost most where it is not: at each row that
 * is found. So eight scores at a time are compared without a branch, and those blocks in which one
 * reaches the bar are noted; a stretch of the list later, still in the first cache, the rows are taken
 * from the noted blocks.
 */
#ifndef PRECBENCH_TOP_H
#define PRECBENCH_TOP_H

#include "dense.h"

#define PRECBENCH_STRETCH 2048 /* scores */
#define PRECBENCH_NEXT 256     /* scores of the next stretch that are asked for beforehand */

#if defined(__x86_64__)
#define PRECBENCH_BITS(mask) __builtin_ia32_movmskpd((precbench_pair)(mask))
#else
#define PRECBENCH_BITS(mask) (int)(((mask)[0] & 1) | ((mask)[1] & 2))
#endif
#define PRECBENCH_REACHED(s, j, bar) (PRECBENCH_AT(s, j) >= (bar))

PRECBENCH_ROW ptrdiff_t precbench_reaching_by(const double *s, ptrdiff_t n, double lowest,
                                              const unsigned char *member, ptrdiff_t *rows,
                                              double *values)
{
    const precbench_pair bar = {lowest, lowest};
    ptrdiff_t noted[PRECBENCH_STRETCH / 8], m = 0, j = 0;
    while (n - j >= 8) {
        const ptrdiff_t left = (n - j) & ~(ptrdiff_t)7;
        const ptrdiff_t stop = j + (left < PRECBENCH_STRETCH ? left : PRECBENCH_STRETCH);
        ptrdiff_t n_noted = 0;
        for (; j < stop; j += 8) {
            noted[n_noted] = j;
            n_noted += PRECBENCH_BITS(PRECBENCH_REACHED(s, j, bar) | PRECBENCH_REACHED(s, j + 2, bar) |
                                      PRECBENCH_REACHED(s, j + 4, bar) |
                                      PRECBENCH_REACHED(s, j + 6, bar)) != 0;
        }
        for (ptrdiff_t next = stop; next < stop + PRECBENCH_NEXT && next < n; next += 8)
            precbench_prefetch(s + next);
        for (ptrdiff_t b = 0; b < n_noted; b++) {
            const double *block = s + noted[b];
            unsigned bits = PRECBENCH_BITS(PRECBENCH_REACHED(block, 0, bar)) |
                            PRECBENCH_BITS(PRECBENCH_REACHED(block, 2, bar)) << 2 |
                            PRECBENCH_BITS(PRECBENCH_REACHED(block, 4, bar)) << 4 |
                            PRECBENCH_BITS(PRECBENCH_REACHED(block, 6, bar)) << 6;
            for (; bits; bits &= bits - 1) {
                const ptrdiff_t row = noted[b] + __builtin_ctz(bits);
                rows[m] = row;
                values[m] = s[row];
                m += member == NULL || member[row];
            }
        }
    }
    for (; j < n; j++) {
        rows[m] = j;
        values[m] = s[j];
        m += s[j] >= lowest && (member == NULL || member[j]);
    }
    return m;
}

#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
__attribute__((target("avx"))) static ptrdiff_t
precbench_reaching_avx(const double *s, ptrdiff_t n, double lowest, const unsigned char *member,
                       ptrdiff_t *rows, double *values)
{
    return precbench_reaching_by(s, n, lowest, member, rows, values);
}
#endif

/* Write the rows whose scores are at least the lowest asked for, ascending, and these scores; return
 * how many there are. ``member`` marks the rows to choose from, if not all; one place more than the
 * number of rows found is written. */
static inline ptrdiff_t precbench_reaching(const double *s, ptrdiff_t n, double lowest,
                                           const unsigned char *member, ptrdiff_t *rows,
                                           double *values)
{
#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
    if (__builtin_cpu_supports("avx"))
        return precbench_reaching_avx(s, n, lowest, member, rows, values);
#endif
    return precbench_reaching_by(s, n, lowest, member, rows, values);
}

#endif

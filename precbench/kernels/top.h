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

/* One bit for each of two scores. */
#if defined(__x86_64__)
#define PRECBENCH_BITS(mask) __builtin_ia32_movmskpd((precbench_pair)(mask))
#else
#define PRECBENCH_BITS(mask) (int)(((mask)[0] & 1) | ((mask)[1] & 2))
#endif

/* A bit for each of eight scores that reaches a bar or, in place of these, whether one does. */
static inline int precbench_reach(const double *s, double bar, const int each)
{
    const precbench_pair bars = {bar, bar};
    const precbench_mask a = (precbench_mask)(PRECBENCH_AT(s, 0) >= bars),
                         b = (precbench_mask)(PRECBENCH_AT(s, 2) >= bars),
                         c = (precbench_mask)(PRECBENCH_AT(s, 4) >= bars),
                         d = (precbench_mask)(PRECBENCH_AT(s, 6) >= bars);
    if (each)
        return PRECBENCH_BITS(a) | PRECBENCH_BITS(b) << 2 | PRECBENCH_BITS(c) << 4 |
               PRECBENCH_BITS(d) << 6;
    return PRECBENCH_BITS((a | b) | (c | d)) != 0;
}

PRECBENCH_ROW ptrdiff_t precbench_reaching_by(int (*const reach)(const double *, double, const int),
                                              const double *s, ptrdiff_t n, double bar,
                                              const unsigned char *member, ptrdiff_t *rows,
                                              double *values)
{
    ptrdiff_t noted[PRECBENCH_STRETCH / 8], m = 0, j = 0;
    const ptrdiff_t first = (-(ptrdiff_t)s & (PRECBENCH_LINE - 1)) / (ptrdiff_t)sizeof(double);
    while (j < n) {
        /* Blocks begin where lines of the cache do. */
        if (j < first || n - j < 8) {
            rows[m] = j;
            values[m] = s[j];
            m += s[j] >= bar && (member == NULL || member[j]);
            j++;
            continue;
        }
        const ptrdiff_t left = (n - j) & ~(ptrdiff_t)7;
        const ptrdiff_t stop = j + (left < PRECBENCH_STRETCH ? left : PRECBENCH_STRETCH);
        ptrdiff_t n_noted = 0;
        for (; j < stop; j += 8) {
            noted[n_noted] = j;
            n_noted += reach(s + j, bar, 0);
        }
        for (ptrdiff_t b = 0; b < n_noted; b++)
            for (unsigned bits = reach(s + noted[b], bar, 1); bits; bits &= bits - 1) {
                const ptrdiff_t row = noted[b] + __builtin_ctz(bits);
                rows[m] = row;
                values[m] = s[row];
                m += member == NULL || member[row];
            }
    }
    return m;
}

#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
__attribute__((target("avx"))) static inline int precbench_reach_avx(const double *s, double bar,
                                                                     const int each)
{
    const precbench_four bars = {bar, bar, bar, bar};
    const precbench_places a = (precbench_places)(PRECBENCH_FOUR(s, 0) >= bars),
                           b = (precbench_places)(PRECBENCH_FOUR(s, 4) >= bars);
    if (each)
        return __builtin_ia32_movmskpd256((precbench_four)a) |
               __builtin_ia32_movmskpd256((precbench_four)b) << 4;
    return __builtin_ia32_movmskpd256((precbench_four)(a | b)) != 0;
}

__attribute__((target("avx"))) static ptrdiff_t
precbench_reaching_avx(const double *s, ptrdiff_t n, double bar, const unsigned char *member,
                       ptrdiff_t *rows, double *values)
{
    return precbench_reaching_by(precbench_reach_avx, s, n, bar, member, rows, values);
}
#endif

/* Write the rows whose scores reach a bar, ascending, and these scores; return how many there are.
 * ``member`` marks the rows to choose from, if not all. One place beyond the last is written, too. */
static inline ptrdiff_t precbench_reaching(const double *s, ptrdiff_t n, double bar,
                                           const unsigned char *member, ptrdiff_t *rows,
                                           double *values)
{
#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
    if (__builtin_cpu_supports("avx"))
        return precbench_reaching_avx(s, n, bar, member, rows, values);
#endif
    return precbench_reaching_by(precbench_reach, s, n, bar, member, rows, values);
}

#endif

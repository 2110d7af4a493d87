/* The arithmetic of the online methods for AUC: the sums of dense.h, in wide vectors where the
 * processor has such. */
#ifndef PRECBENCH_ONLINE_AUC_H
#define PRECBENCH_ONLINE_AUC_H

#include "dense.h"

PRECBENCH_ROW void precbench_multiply_with(const double *M, ptrdiff_t n, const double *w,
                                           ptrdiff_t d, double *out, const int wide)
{
    ptrdiff_t j = 0;
    for (; wide && j + 4 <= n; j += 4) {
        const void *rows[4] = {M + j * d, M + (j + 1) * d, M + (j + 2) * d, M + (j + 3) * d};
        precbench_dots_wide(rows, PRECBENCH_DOUBLES, 4, w, PRECBENCH_DOUBLES, d, out + j);
    }
    for (; !wide && j + 2 <= n; j += 2)
        precbench_dot_two(M + j * d, M + (j + 1) * d, PRECBENCH_DOUBLES, w, d, out + j);
    for (; j < n; j++)
        out[j] = precbench_dot(M + j * d, w, d);
}

PRECBENCH_ROW void precbench_compare_with(const double *x, const double *z, double sign,
                                          const double *w, ptrdiff_t n,
                                          double *restrict difference, double *sums,
                                          const int wide)
{
    for (ptrdiff_t j = 0; j < n; j++)
        difference[j] = sign * (x[j] - z[j]);
    if (wide) { /* two of the four rows stay 0 */
        const void *rows[2] = {w, difference};
        precbench_dots_wide(rows, PRECBENCH_DOUBLES, 2, difference, PRECBENCH_DOUBLES, n, sums);
    } else
        precbench_dot_two(w, difference, PRECBENCH_DOUBLES, difference, n, sums);
}

PRECBENCH_ROW void precbench_add_with(double a, const double *restrict x, double *restrict w,
                                      ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        w[j] += a * x[j];
}

#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
#define PRECBENCH_AVX __attribute__((target("avx"))) static void

PRECBENCH_AVX precbench_multiply_avx(const double *M, ptrdiff_t n, const double *w, ptrdiff_t d,
                                     double *out)
{
    precbench_multiply_with(M, n, w, d, out, 1);
}

PRECBENCH_AVX precbench_compare_avx(const double *x, const double *z, double sign, const double *w,
                                    ptrdiff_t n, double *difference, double *sums)
{
    precbench_compare_with(x, z, sign, w, n, difference, sums, 1);
}

PRECBENCH_AVX precbench_add_avx(double a, const double *x, double *w, ptrdiff_t n)
{
    precbench_add_with(a, x, w, n);
}
#define PRECBENCH_WIDE(call)                                                                       \
    if (__builtin_cpu_supports("avx")) {                                                           \
        call;                                                                                      \
        return;                                                                                    \
    }
#else
#define PRECBENCH_WIDE(call)
#endif

/* out = M w, of n rows. */
static inline void precbench_multiply(const double *M, ptrdiff_t n, const double *w, ptrdiff_t d,
                                      double *out)
{
    PRECBENCH_WIDE(precbench_multiply_avx(M, n, w, d, out))
    precbench_multiply_with(M, n, w, d, out, 0);
}

/* Write sign (x - z), and its products with w and with itself, the first two of four sums. */
static inline void precbench_compare(const double *x, const double *z, double sign, const double *w,
                                     ptrdiff_t n, double *difference, double *sums)
{
    PRECBENCH_WIDE(precbench_compare_avx(x, z, sign, w, n, difference, sums))
    precbench_compare_with(x, z, sign, w, n, difference, sums, 0);
}

/* w += a x. */
static inline void precbench_add(double a, const double *x, double *w, ptrdiff_t n)
{
    PRECBENCH_WIDE(precbench_add_avx(a, x, w, n))
    precbench_add_with(a, x, w, n);
}

#endif

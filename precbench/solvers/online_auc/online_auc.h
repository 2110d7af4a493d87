/* The arithmetic of the online methods for AUC: the sums of dense.h, in wide vectors where the
 * processor has such. */
#ifndef PRECBENCH_ONLINE_AUC_H
#define PRECBENCH_ONLINE_AUC_H

#include "dense.h"

/* out = M w, of n rows. */
PRECBENCH_ROW void precbench_multiply_by(const double *M, ptrdiff_t n, const double *w, ptrdiff_t d,
                                         double *out, const int wide)
{
    ptrdiff_t j = 0;
    for (; wide && j + 4 <= n; j += 4) {
        const void *rows[4] = {M + j * d, M + (j + 1) * d, M + (j + 2) * d, M + (j + 3) * d};
        precbench_dots_wide(rows, PRECBENCH_DOUBLES, 4, w, PRECBENCH_DOUBLES, d, out + j);
    }
    for (; !wide && j + 2 <= n; j += 2) {
        const void *rows[2] = {M + j * d, M + (j + 1) * d};
        precbench_dots(rows, PRECBENCH_DOUBLES, 2, w, d, out + j);
    }
    for (; j < n; j++)
        out[j] = precbench_dot(M + j * d, w, d);
}

PRECBENCH_DISPATCH(precbench_multiply,
                   (const double *M, ptrdiff_t n, const double *w, ptrdiff_t d, double *out),
                   M, n, w, d, out)

/* Write sign (x - z), and its products with w and with itself, the first two of four sums. */
PRECBENCH_ROW void precbench_compare_by(const double *x, const double *z, double sign,
                                        const double *w, ptrdiff_t n, double *restrict difference,
                                        double *sums, const int wide)
{
    for (ptrdiff_t j = 0; j < n; j++)
        difference[j] = sign * (x[j] - z[j]);
    const void *rows[2] = {w, difference};
    if (wide) /* two of the four rows stay 0 */
        precbench_dots_wide(rows, PRECBENCH_DOUBLES, 2, difference, PRECBENCH_DOUBLES, n, sums);
    else
        precbench_dots(rows, PRECBENCH_DOUBLES, 2, difference, n, sums);
}

PRECBENCH_DISPATCH(precbench_compare,
                   (const double *x, const double *z, double sign, const double *w, ptrdiff_t n,
                    double *difference, double *sums),
                   x, z, sign, w, n, difference, sums)

#endif

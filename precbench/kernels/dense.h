/* The arithmetic of dense rows, and of sparse ones under several weight vectors.
 *
 * A sum runs over eight accumulators (four vectors of two doubles) in a fixed order, so its bits
 * do not depend on the machine. Two rows at a time share the loads of w; each sum is the same as
 * alone. Vector types rather than plain loops, because the compiler vectorises the former always
 * and the latter only when it sees fit.
 */
#ifndef PRECBENCH_DENSE_H
#define PRECBENCH_DENSE_H

#include <stddef.h>

#define precbench_prefetch(address) __builtin_prefetch((address), 0, 3)

typedef double precbench_pair __attribute__((vector_size(16), aligned(8), may_alias));

#define PRECBENCH_AT(array, j) (*(const precbench_pair *)((array) + (j)))

static inline double precbench_fold(precbench_pair a0, precbench_pair a1, precbench_pair a2,
                                    precbench_pair a3, double last)
{
    precbench_pair sum = (a0 + a2) + (a1 + a3);
    return sum[0] + sum[1] + last;
}

static inline double precbench_dot(const double *x, const double *w, ptrdiff_t n)
{
    precbench_pair a0 = {0, 0}, a1 = {0, 0}, a2 = {0, 0}, a3 = {0, 0};
    double last = 0;
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8) {
        a0 += PRECBENCH_AT(x, j) * PRECBENCH_AT(w, j);
        a1 += PRECBENCH_AT(x, j + 2) * PRECBENCH_AT(w, j + 2);
        a2 += PRECBENCH_AT(x, j + 4) * PRECBENCH_AT(w, j + 4);
        a3 += PRECBENCH_AT(x, j + 6) * PRECBENCH_AT(w, j + 6);
    }
    if (j + 4 <= n) {
        a0 += PRECBENCH_AT(x, j) * PRECBENCH_AT(w, j);
        a1 += PRECBENCH_AT(x, j + 2) * PRECBENCH_AT(w, j + 2);
        j += 4;
    }
    if (j + 2 <= n) {
        a2 += PRECBENCH_AT(x, j) * PRECBENCH_AT(w, j);
        j += 2;
    }
    if (j < n)
        last = x[j] * w[j];
    return precbench_fold(a0, a1, a2, a3, last);
}

static inline void precbench_dot_two(const double *x, const double *z, const double *w,
                                     ptrdiff_t n, double *out)
{
    precbench_pair a0 = {0, 0}, a1 = {0, 0}, a2 = {0, 0}, a3 = {0, 0};
    precbench_pair b0 = {0, 0}, b1 = {0, 0}, b2 = {0, 0}, b3 = {0, 0}, v;
    double last_x = 0, last_z = 0;
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8) {
        v = PRECBENCH_AT(w, j);
        a0 += PRECBENCH_AT(x, j) * v;
        b0 += PRECBENCH_AT(z, j) * v;
        v = PRECBENCH_AT(w, j + 2);
        a1 += PRECBENCH_AT(x, j + 2) * v;
        b1 += PRECBENCH_AT(z, j + 2) * v;
        v = PRECBENCH_AT(w, j + 4);
        a2 += PRECBENCH_AT(x, j + 4) * v;
        b2 += PRECBENCH_AT(z, j + 4) * v;
        v = PRECBENCH_AT(w, j + 6);
        a3 += PRECBENCH_AT(x, j + 6) * v;
        b3 += PRECBENCH_AT(z, j + 6) * v;
    }
    if (j + 4 <= n) {
        v = PRECBENCH_AT(w, j);
        a0 += PRECBENCH_AT(x, j) * v;
        b0 += PRECBENCH_AT(z, j) * v;
        v = PRECBENCH_AT(w, j + 2);
        a1 += PRECBENCH_AT(x, j + 2) * v;
        b1 += PRECBENCH_AT(z, j + 2) * v;
        j += 4;
    }
    if (j + 2 <= n) {
        v = PRECBENCH_AT(w, j);
        a2 += PRECBENCH_AT(x, j) * v;
        b2 += PRECBENCH_AT(z, j) * v;
        j += 2;
    }
    if (j < n) {
        last_x = x[j] * w[j];
        last_z = z[j] * w[j];
    }
    out[0] = precbench_fold(a0, a1, a2, a3, last_x);
    out[1] = precbench_fold(b0, b1, b2, b3, last_z);
}

/* The sums of a sparse row under 2 * pairs weight vectors, which lie side by side by column; four
 * accumulators each, as for one. Inlined with a constant number of pairs, they stay in registers. */
static inline __attribute__((always_inline)) void
precbench_sparse_dots(const double *x, const int *columns, ptrdiff_t n, const double *w,
                      ptrdiff_t stride, const int pairs, double *out)
{
    precbench_pair a[4][3] = {{{0, 0}}};
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4)
        for (int lane = 0; lane < 4; lane++) {
            const double *of_column = w + columns[j + lane] * stride;
            for (int p = 0; p < pairs; p++)
                a[lane][p] += x[j + lane] * PRECBENCH_AT(of_column, 2 * p);
        }
    for (; j < n; j++)
        for (int p = 0; p < pairs; p++)
            a[0][p] += x[j] * PRECBENCH_AT(w + columns[j] * stride, 2 * p);
    for (int p = 0; p < pairs; p++)
        *(precbench_pair *)(out + 2 * p) = (a[0][p] + a[2][p]) + (a[1][p] + a[3][p]);
}

/* w += a * x. */
static inline void precbench_axpy(double a, const double *x, double *w, ptrdiff_t n)
{
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) {
        precbench_pair u = *(precbench_pair *)(w + j) + a * PRECBENCH_AT(x, j);
        precbench_pair v = *(precbench_pair *)(w + j + 2) + a * PRECBENCH_AT(x, j + 2);
        *(precbench_pair *)(w + j) = u;
        *(precbench_pair *)(w + j + 2) = v;
    }
    for (; j < n; j++)
        w[j] += a * x[j];
}

/* Whether all values are numbers: 0 times anything else is none. */
static inline int precbench_all_finite(const double *x, ptrdiff_t n)
{
    precbench_pair a0 = {0, 0}, a1 = {0, 0};
    double last = 0;
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) {
        a0 += 0 * PRECBENCH_AT(x, j);
        a1 += 0 * PRECBENCH_AT(x, j + 2);
    }
    for (; j < n; j++)
        last += 0 * x[j];
    return a0[0] + a0[1] + a1[0] + a1[1] + last == 0;
}

#endif

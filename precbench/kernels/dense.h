/* The arithmetic of dense rows, and of sparse ones under several weight vectors.
 *
 * A sum runs over eight accumulators (vectors of two or four doubles) in a fixed order, so its bits
 * do not depend on the machine. Two rows at a time share the loads of w; each sum is the same as
 * alone. Vector types rather than plain loops, because the compiler vectorises the former always
 * and the latter only when it sees fit.
 */
#ifndef PRECBENCH_DENSE_H
#define PRECBENCH_DENSE_H

#include <stddef.h>

#define precbench_prefetch(address) __builtin_prefetch((address), 0, 3)

typedef double precbench_pair __attribute__((vector_size(16), aligned(8), may_alias));

typedef double precbench_four __attribute__((vector_size(32), aligned(8), may_alias));

#define PRECBENCH_AHEAD 8 /* rows between a request and its use */
#define PRECBENCH_FOUR(array, j) (*(const precbench_four *)((array) + (j)))
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

/* The same, the eight sums of a row in two vectors of four: for processors that have such. */
static inline __attribute__((always_inline)) void
precbench_dot_two_wide(const double *x, const double *z, const double *w, ptrdiff_t n, double *out)
{
    precbench_four x_low = {0, 0, 0, 0}, x_high = x_low, z_low = x_low, z_high = x_low, v;
    double last_x = 0, last_z = 0;
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8) {
        v = PRECBENCH_FOUR(w, j);
        x_low += PRECBENCH_FOUR(x, j) * v;
        z_low += PRECBENCH_FOUR(z, j) * v;
        v = PRECBENCH_FOUR(w, j + 4);
        x_high += PRECBENCH_FOUR(x, j + 4) * v;
        z_high += PRECBENCH_FOUR(z, j + 4) * v;
    }
    if (j + 4 <= n) {
        v = PRECBENCH_FOUR(w, j);
        x_low += PRECBENCH_FOUR(x, j) * v;
        z_low += PRECBENCH_FOUR(z, j) * v;
        j += 4;
    }
    if (j + 2 <= n) {
        v = (precbench_four){w[j], w[j + 1], 0, 0};
        x_high += (precbench_four){x[j], x[j + 1], 0, 0} * v;
        z_high += (precbench_four){z[j], z[j + 1], 0, 0} * v;
        j += 2;
    }
    if (j < n) {
        last_x = x[j] * w[j];
        last_z = z[j] * w[j];
    }
    x_low += x_high;
    z_low += z_high;
    out[0] = ((x_low[0] + x_low[2]) + (x_low[1] + x_low[3])) + last_x;
    out[1] = ((z_low[0] + z_low[2]) + (z_low[1] + z_low[3])) + last_z;
}

/* Two rows at a time go through all weight vectors, for which they are read once. */
static inline __attribute__((always_inline)) void
precbench_score_pairs(const double *x, const int *rows, ptrdiff_t n, ptrdiff_t n_known, ptrdiff_t d,
                      const double **weights, ptrdiff_t n_candidates, double **scores,
                      const int wide)
{
    for (ptrdiff_t j = 0; j + 1 < n; j += 2) {
        if (j + 1 + PRECBENCH_AHEAD < n_known)
            for (ptrdiff_t ahead = j + PRECBENCH_AHEAD; ahead < j + PRECBENCH_AHEAD + 2; ahead++)
                for (ptrdiff_t column = 0; column < d; column += 8)
                    precbench_prefetch(x + rows[ahead] * d + column);
        for (ptrdiff_t m = 0; m < n_candidates; m++) {
            const double *first = x + rows[j] * d, *second = x + rows[j + 1] * d;
            if (wide)
                precbench_dot_two_wide(first, second, weights[m], d, scores[m] + j);
            else
                precbench_dot_two(first, second, weights[m], d, scores[m] + j);
        }
    }
}

#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
__attribute__((target("avx"))) static void
precbench_score_pairs_avx(const double *x, const int *rows, ptrdiff_t n, ptrdiff_t n_known,
                          ptrdiff_t d, const double **weights, ptrdiff_t n_candidates,
                          double **scores)
{
    precbench_score_pairs(x, rows, n, n_known, d, weights, n_candidates, scores, 1);
}
#endif

/* Score the rows but an odd last one under each weight vector. */
static inline void
precbench_score_two_by_two(const double *x, const int *rows, ptrdiff_t n, ptrdiff_t n_known,
                           ptrdiff_t d, const double **weights, ptrdiff_t n_candidates,
                           double **scores)
{
#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
    if (__builtin_cpu_supports("avx")) {
        precbench_score_pairs_avx(x, rows, n, n_known, d, weights, n_candidates, scores);
        return;
    }
#endif
    precbench_score_pairs(x, rows, n, n_known, d, weights, n_candidates, scores, 0);
}

/* The sums of a sparse row under 2 * pairs weight vectors, which lie side by side by column; four
 * accumulators each, as for one. Inlined with a constant number of pairs, they stay in registers.
 * Without x all values are 1. */
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
                a[lane][p] += (x ? x[j + lane] : 1) * PRECBENCH_AT(of_column, 2 * p);
        }
    for (; j < n; j++)
        for (int p = 0; p < pairs; p++)
            a[0][p] += (x ? x[j] : 1) * PRECBENCH_AT(w + columns[j] * stride, 2 * p);
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

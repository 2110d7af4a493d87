/* The arithmetic of dense rows, and of sparse ones.
 *
 * A sum over a dense row runs over eight accumulators (vectors of two or four doubles) in a fixed
 * order, so its bits do not depend on the machine; one over a sparse row, usually short, over four.
 * Short rows share the loads of w; each sum is the same as alone. Vector types rather than plain
 * loops, because the compiler vectorises the former always and the latter only when it sees fit.
 *
 * Values of rows are stored as doubles or as floats, which become doubles when they are read: the
 * sums have the bits of those over the same values stored as doubles. Functions of rows are inlined
 * with a constant kind of values.
 */
#ifndef PRECBENCH_DENSE_H
#define PRECBENCH_DENSE_H

#include <stddef.h>

typedef double precbench_pair __attribute__((vector_size(16), aligned(8), may_alias));

typedef double precbench_four __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long precbench_places __attribute__((vector_size(32)));
typedef long long precbench_mask __attribute__((vector_size(16), aligned(8)));
typedef int precbench_counts __attribute__((vector_size(16)));
typedef float precbench_two_floats __attribute__((vector_size(8), aligned(4), may_alias));
typedef float precbench_four_floats __attribute__((vector_size(16), aligned(4), may_alias));

#define PRECBENCH_ROW static inline __attribute__((always_inline))
#define PRECBENCH_AHEAD 8 /* rows between a request and its use */
#define PRECBENCH_FAR_AHEAD(d) (16 + 256 / ((d) + 1)) /* rows of d values, into the second cache */
#define PRECBENCH_LINE 64 /* bytes of a line of the cache */
#define PRECBENCH_UNROLLED 64 /* columns, up to which the loop over a row is unrolled */
#define PRECBENCH_SHORT 32 /* entries of a sparse row that is scored with three others */

#define precbench_prefetch(address) __builtin_prefetch((address), 0, 3)
/* Into the second cache: the first has few lines in flight, and waits when all are. */
#define precbench_prefetch_far(address) __builtin_prefetch((address), 0, 1)

enum precbench_kind { PRECBENCH_DOUBLES, PRECBENCH_FLOATS };

/* A matrix in C order, or sparse where there is an indptr. */
typedef struct {
    const void *data;
    int kind; /* of the values */
    const int *indices;
    const int *indptr;
    ptrdiff_t n_stored; /* entries of sparse rows */
    ptrdiff_t n_cols;
} precbench_rows;

/* One, two or four values from number j on: of weights, and of a row. */
#define PRECBENCH_AT(array, j) (*(const precbench_pair *)((array) + (j)))
#define PRECBENCH_FOUR(array, j) (*(const precbench_four *)((array) + (j)))
#define PRECBENCH_VALUE(x, j, kind)                                                                \
    ((kind) == PRECBENCH_FLOATS ? (double)((const float *)(x))[j] : ((const double *)(x))[j])
#define PRECBENCH_TWO_VALUES(x, j, kind)                                                           \
    ((kind) == PRECBENCH_FLOATS                                                                    \
         ? __builtin_convertvector(*(const precbench_two_floats *)((const float *)(x) + (j)),      \
                                   precbench_pair)                                                 \
         : PRECBENCH_AT((const double *)(x), j))
#define PRECBENCH_FOUR_VALUES(x, j, kind)                                                          \
    ((kind) == PRECBENCH_FLOATS                                                                    \
         ? PRECBENCH_WIDENED(*(const precbench_four_floats *)((const float *)(x) + (j)))           \
         : PRECBENCH_FOUR((const double *)(x), j))
#if defined(__x86_64__) && !defined(__clang__) /* one instruction, where gcc makes four */
#define PRECBENCH_WIDENED(four_floats)                                                             \
    ({                                                                                             \
        precbench_four widened;                                                                    \
        __asm__("vcvtps2pd %1, %0" : "=x"(widened) : "m"(four_floats));                            \
        widened;                                                                                   \
    })
#else
#define PRECBENCH_WIDENED(four_floats) __builtin_convertvector(four_floats, precbench_four)
#endif
#if defined(__clang__)
#define PRECBENCH_FOUR_OF(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else /* gcc has __builtin_shufflevector only from version 12 on */
#define PRECBENCH_FOUR_OF(a, b, i, j, k, l) __builtin_shuffle(a, b, (precbench_places){i, j, k, l})
#endif
#define PRECBENCH_TWO_OF_FOUR(x, j, kind)                                                          \
    ((precbench_four){PRECBENCH_VALUE(x, j, kind), PRECBENCH_VALUE(x, (j) + 1, kind), 0, 0})

/* Do `call` with the kind of values as a constant. */
#define PRECBENCH_OF_KIND(kind_of_values, call)                                                    \
    do                                                                                             \
        if ((kind_of_values) == PRECBENCH_FLOATS) {                                                \
            enum { kind = PRECBENCH_FLOATS };                                                      \
            call;                                                                                  \
        } else {                                                                                   \
            enum { kind = PRECBENCH_DOUBLES };                                                     \
            call;                                                                                  \
        }                                                                                          \
    while (0)

/* Define `name`, which calls `name_by` with wide = 1 where the processor has vectors of four. */
#if defined(__x86_64__) && !defined(PRECBENCH_PLAIN)
#define PRECBENCH_DISPATCH(name, parameters, ...)                                                  \
    __attribute__((target("avx"))) static void name##_avx parameters { name##_by(__VA_ARGS__, 1); } \
    static inline void name parameters                                                             \
    {                                                                                              \
        if (__builtin_cpu_supports("avx"))                                                         \
            name##_avx(__VA_ARGS__);                                                               \
        else                                                                                       \
            name##_by(__VA_ARGS__, 0);                                                             \
    }
#else
#define PRECBENCH_DISPATCH(name, parameters, ...)                                                  \
    static inline void name parameters { name##_by(__VA_ARGS__, 0); }
#endif

/* Where value number j is. */
PRECBENCH_ROW const void *precbench_from(const void *x, ptrdiff_t j, const int kind)
{
    return kind == PRECBENCH_FLOATS ? (const void *)((const float *)x + j) : (const double *)x + j;
}

/* Ask for the row n_rows after x; far means into the second cache. */
PRECBENCH_ROW void precbench_ask(const void *x, ptrdiff_t n_rows, ptrdiff_t d, const int kind,
                                 const int far)
{
    const ptrdiff_t n_bytes = d * (kind == PRECBENCH_FLOATS ? sizeof(float) : sizeof(double));
    const char *row = (const char *)x + n_rows * n_bytes;
    const char *last = row + n_bytes - 1;
    for (; row < last + PRECBENCH_LINE; row += PRECBENCH_LINE) {
        const char *place = row < last ? row : last;
        if (far)
            precbench_prefetch_far(place);
        else
            precbench_prefetch(place);
    }
}

/* One row or two, the eight sums of each in four pairs. */
PRECBENCH_ROW void precbench_dots(const void *const *rows, const int kind, const int n_rows,
                                  const double *w, ptrdiff_t n, double *out)
{
    precbench_pair sums[2][4] = {{{0, 0}}};
    double last[2] = {0};
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int p = 0; p < 4; p++)
            for (int r = 0; r < n_rows; r++)
                sums[r][p] += PRECBENCH_TWO_VALUES(rows[r], j + 2 * p, kind) * PRECBENCH_AT(w, j + 2 * p);
    if (j + 4 <= n) {
        for (int p = 0; p < 2; p++)
            for (int r = 0; r < n_rows; r++)
                sums[r][p] += PRECBENCH_TWO_VALUES(rows[r], j + 2 * p, kind) * PRECBENCH_AT(w, j + 2 * p);
        j += 4;
    }
    if (j + 2 <= n) {
        for (int r = 0; r < n_rows; r++)
            sums[r][2] += PRECBENCH_TWO_VALUES(rows[r], j, kind) * PRECBENCH_AT(w, j);
        j += 2;
    }
    if (j < n)
        for (int r = 0; r < n_rows; r++)
            last[r] = PRECBENCH_VALUE(rows[r], j, kind) * w[j];
    for (int r = 0; r < n_rows; r++) {
        const precbench_pair sum = (sums[r][0] + sums[r][2]) + (sums[r][1] + sums[r][3]);
        out[r] = sum[0] + sum[1] + last[r];
    }
}

PRECBENCH_ROW double precbench_dense_dot(const void *x, const int kind, const double *w,
                                         ptrdiff_t n)
{
    double sum;
    precbench_dots(&x, kind, 1, w, n, &sum);
    return sum;
}

static inline double precbench_dot(const double *x, const double *w, ptrdiff_t n)
{
    return precbench_dense_dot(x, PRECBENCH_DOUBLES, w, n);
}

/* Eight columns from number j on. */
PRECBENCH_ROW void precbench_add_eight(const void *const *rows, const int kind, const int n_rows,
                                       const void *w, const int kind_of_w, ptrdiff_t j,
                                       precbench_four *low, precbench_four *high)
{
    const precbench_four v = PRECBENCH_FOUR_VALUES(w, j, kind_of_w);
    const precbench_four u = PRECBENCH_FOUR_VALUES(w, j + 4, kind_of_w);
    for (int r = 0; r < n_rows; r++) {
        low[r] += PRECBENCH_FOUR_VALUES(rows[r], j, kind) * v;
        high[r] += PRECBENCH_FOUR_VALUES(rows[r], j + 4, kind) * u;
    }
}

/* One row or four, the eight sums of each in two vectors of four, where there are such. Scattered
 * rows of few columns arrive in about three quarters of the time if the loop over a row is unrolled
 * to its end; those of more do not. */
PRECBENCH_ROW void precbench_dots_wide(const void *const *rows, const int kind, const int n_rows,
                                       const void *w, const int kind_of_w, ptrdiff_t n, double *out)
{
    precbench_four low[4] = {{0}}, high[4] = {{0}}, last = {0}, v, u;
    ptrdiff_t j = 0;
    if (n_rows == 1 && n <= PRECBENCH_UNROLLED)
#pragma GCC unroll 8
        for (; j + 8 <= n; j += 8)
            precbench_add_eight(rows, kind, 1, w, kind_of_w, j, low, high);
    else
        for (; j + 8 <= n; j += 8)
            precbench_add_eight(rows, kind, n_rows, w, kind_of_w, j, low, high);
    if (j + 4 <= n) {
        v = PRECBENCH_FOUR_VALUES(w, j, kind_of_w);
        for (int r = 0; r < n_rows; r++)
            low[r] += PRECBENCH_FOUR_VALUES(rows[r], j, kind) * v;
        j += 4;
    }
    if (j + 2 <= n) {
        v = PRECBENCH_TWO_OF_FOUR(w, j, kind_of_w);
        for (int r = 0; r < n_rows; r++)
            high[r] += PRECBENCH_TWO_OF_FOUR(rows[r], j, kind) * v;
        j += 2;
    }
    if (j < n)
        for (int r = 0; r < n_rows; r++)
            last[r] = PRECBENCH_VALUE(rows[r], j, kind) * PRECBENCH_VALUE(w, j, kind_of_w);
    for (int r = 0; r < n_rows; r++)
        low[r] += high[r];
    if (n_rows == 1) {
        out[0] = ((low[0][0] + low[0][2]) + (low[0][1] + low[0][3])) + last[0];
        return;
    }
    /* the same sums of four rows at once: the halves of 0 and 2 and of 1 and 3, then the pairs */
    v = PRECBENCH_FOUR_OF(low[0], low[2], 0, 1, 4, 5) + PRECBENCH_FOUR_OF(low[0], low[2], 2, 3, 6, 7);
    u = PRECBENCH_FOUR_OF(low[1], low[3], 0, 1, 4, 5) + PRECBENCH_FOUR_OF(low[1], low[3], 2, 3, 6, 7);
    v = PRECBENCH_FOUR_OF(v, u, 0, 4, 2, 6) + PRECBENCH_FOUR_OF(v, u, 1, 5, 3, 7);
    *(precbench_four *)out = v + last;
}

/* Rows, `at_once` at a time, go through all weight vectors and are read once for these; a single row
 * goes through four vectors at once, which take the places of the rows. */
PRECBENCH_ROW void precbench_score_some(const int at_once, const precbench_rows *X, const int kind,
                                        const int *rows, ptrdiff_t n, ptrdiff_t n_known,
                                        const double **weights, ptrdiff_t n_candidates,
                                        double **scores)
{
    const void *x = X->data;
    const ptrdiff_t d = X->n_cols;
    const ptrdiff_t ahead = PRECBENCH_FAR_AHEAD(d);
    ptrdiff_t j = 0;
    for (; j + at_once <= n; j += at_once) {
        const void *row[4];
        for (int r = 0; r < at_once; r++) {
            const int *later = rows + j + r + ahead;
            row[r] = precbench_from(x, rows[j + r] * d, kind);
            /* where rows follow each other, the processor reads ahead by itself */
            if (j + r + ahead < n_known && *later - rows[j + r] != ahead)
                precbench_ask(x, *later, d, kind, 1);
        }
        ptrdiff_t m = 0;
        for (; at_once == 1 && m + 4 <= n_candidates; m += 4) {
            double of_four[4];
            precbench_dots_wide((const void *const *)(weights + m), PRECBENCH_DOUBLES, 4, row[0],
                                kind, d, of_four);
            for (int r = 0; r < 4; r++)
                scores[m + r][j] = of_four[r];
        }
        for (; m < n_candidates; m++)
            if (at_once == 2)
                precbench_dots(row, kind, 2, weights[m], d, scores[m] + j);
            else
                precbench_dots_wide(row, kind, at_once, weights[m], PRECBENCH_DOUBLES, d,
                                    scores[m] + j);
    }
    for (; j < n; j++)
        for (ptrdiff_t m = 0; m < n_candidates; m++)
            scores[m][j] =
                precbench_dense_dot(precbench_from(x, rows[j] * d, kind), kind, weights[m], d);
}

/* A long row is one stream, which the processor reads ahead better than four at once. */
PRECBENCH_ROW void precbench_score_dense_by(const precbench_rows *X, const int *rows, ptrdiff_t n,
                                            ptrdiff_t n_known, const double **weights,
                                            ptrdiff_t n_candidates, double **scores, const int wide)
{
    if (!wide)
        PRECBENCH_OF_KIND(X->kind, precbench_score_some(2, X, kind, rows, n, n_known, weights,
                                                        n_candidates, scores));
    else if (X->n_cols <= 16)
        PRECBENCH_OF_KIND(X->kind, precbench_score_some(4, X, kind, rows, n, n_known, weights,
                                                        n_candidates, scores));
    else
        PRECBENCH_OF_KIND(X->kind, precbench_score_some(1, X, kind, rows, n, n_known, weights,
                                                        n_candidates, scores));
}

PRECBENCH_DISPATCH(precbench_score_dense,
                   (const precbench_rows *X, const int *rows, ptrdiff_t n, ptrdiff_t n_known,
                    const double **weights, ptrdiff_t n_candidates, double **scores),
                   X, rows, n, n_known, weights, n_candidates, scores)

PRECBENCH_ROW double precbench_sparse_dot(const void *x, const int kind, const int *columns,
                                          ptrdiff_t n, const double *w)
{
    double a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) {
        a0 += PRECBENCH_VALUE(x, j, kind) * w[columns[j]];
        a1 += PRECBENCH_VALUE(x, j + 1, kind) * w[columns[j + 1]];
        a2 += PRECBENCH_VALUE(x, j + 2, kind) * w[columns[j + 2]];
        a3 += PRECBENCH_VALUE(x, j + 3, kind) * w[columns[j + 3]];
    }
    for (; j < n; j++)
        a0 += PRECBENCH_VALUE(x, j, kind) * w[columns[j]];
    return (a0 + a2) + (a1 + a3);
}

/* Entries j and j + 1 of a sparse row times their weights, 0 where they are not inside. */
PRECBENCH_ROW precbench_pair precbench_two_products(const void *x, const int kind,
                                                    const int *columns, ptrdiff_t j,
                                                    const double *w, precbench_mask inside)
{
    precbench_pair products = {w[columns[j]], w[columns[j + 1]]};
    products *= PRECBENCH_TWO_VALUES(x, j, kind);
    return (precbench_pair)((precbench_mask)products & inside);
}

/* The same sums of four short rows in lockstep: of four ends that no processor can foresee, that of
 * the longest remains. Entries after the end of a row are those of later rows, and count as 0;
 * where there might be none, or a row is long, nothing is done. Return whether it was done. */
PRECBENCH_ROW int precbench_sparse_dot_four(const precbench_rows *X, const int kind,
                                            const int *rows, const double *w, double *out)
{
    static const long long tails[4][4] = {{0}, {-1}, {-1, -1}, {-1, -1, -1}};
    precbench_pair a[4] = {{0, 0}}, b[4] = {{0, 0}};
    precbench_counts sizes[4], last_of_four = {3, 3, 3, 3};
    const void *row[4];
    const int *of_row[4];
    ptrdiff_t most = 0, last = 0, n[4];
    for (int r = 0; r < 4; r++) {
        const ptrdiff_t start = X->indptr[rows[r]];
        row[r] = precbench_from(X->data, start, kind);
        of_row[r] = X->indices + start;
        n[r] = X->indptr[rows[r] + 1] - start;
        sizes[r] = (precbench_counts){} + (int)n[r];
        most = n[r] > most ? n[r] : most;
        last = start > last ? start : last;
    }
    if (most > PRECBENCH_SHORT || last + most + 4 > X->n_stored)
        return 0;
    for (ptrdiff_t j = 0; j + 4 <= most; j += 4, last_of_four += 4)
        for (int r = 0; r < 4; r++) {
            const precbench_mask inside = (precbench_mask)(sizes[r] > last_of_four);
            a[r] += precbench_two_products(row[r], kind, of_row[r], j, w, inside);
            b[r] += precbench_two_products(row[r], kind, of_row[r], j + 2, w, inside);
        }
    for (int r = 0; r < 4; r++) {
        const ptrdiff_t j = n[r] & ~(ptrdiff_t)3;
        const precbench_mask *inside = (const precbench_mask *)tails[n[r] & 3];
        const precbench_pair u = precbench_two_products(row[r], kind, of_row[r], j, w, inside[0]);
        precbench_pair v = {PRECBENCH_VALUE(row[r], j + 2, kind) * w[of_row[r][j + 2]]};
        v = (precbench_pair)((precbench_mask)v & inside[1]);
        out[r] = ((((a[r][0] + u[0]) + u[1]) + v[0]) + b[r][0]) + (a[r][1] + b[r][1]);
    }
    return 1;
}

static inline double precbench_row_dot(const precbench_rows *X, ptrdiff_t i, const double *w)
{
    const ptrdiff_t d = X->n_cols, start = X->indptr ? X->indptr[i] : i * d;
    if (!X->indptr)
        PRECBENCH_OF_KIND(X->kind, return precbench_dense_dot(precbench_from(X->data, start, kind),
                                                              kind, w, d));
    PRECBENCH_OF_KIND(X->kind, return precbench_sparse_dot(
                                       precbench_from(X->data, start, kind), kind,
                                       X->indices + start, X->indptr[i + 1] - start, w));
}

PRECBENCH_ROW void precbench_score_sparse(const precbench_rows *X, const int kind, const int *rows,
                                          ptrdiff_t n, const double *w, double *scores)
{
    ptrdiff_t j = 0;
    while (j < n)
        if (j + 4 <= n && precbench_sparse_dot_four(X, kind, rows + j, w, scores + j))
            j += 4;
        else {
            const ptrdiff_t start = X->indptr[rows[j]], stop = X->indptr[rows[j] + 1];
            scores[j] = precbench_sparse_dot(precbench_from(X->data, start, kind), kind,
                                             X->indices + start, stop - start, w);
            j++;
        }
}

/* Score the n first of n_known rows under each weight vector; dense ones are asked for ahead. */
static inline void precbench_score_rows(const precbench_rows *X, const int *rows, ptrdiff_t n,
                                        ptrdiff_t n_known, const double **weights,
                                        ptrdiff_t n_candidates, double **scores)
{
    if (!X->indptr)
        precbench_score_dense(X, rows, n, n_known, weights, n_candidates, scores);
    else
        for (ptrdiff_t m = 0; m < n_candidates; m++)
            PRECBENCH_OF_KIND(
                X->kind, precbench_score_sparse(X, kind, rows, n, weights[m], scores[m]));
}

/* w += a * x. */
PRECBENCH_ROW void precbench_dense_axpy(double a, const void *x, const int kind, double *w,
                                        ptrdiff_t n)
{
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) {
        precbench_pair u = *(precbench_pair *)(w + j) + a * PRECBENCH_TWO_VALUES(x, j, kind);
        precbench_pair v =
            *(precbench_pair *)(w + j + 2) + a * PRECBENCH_TWO_VALUES(x, j + 2, kind);
        *(precbench_pair *)(w + j) = u;
        *(precbench_pair *)(w + j + 2) = v;
    }
    for (; j < n; j++)
        w[j] += a * PRECBENCH_VALUE(x, j, kind);
}

/* The same of four rows, one after the other in each column. */
PRECBENCH_ROW void precbench_add_some(const double *a, const void **rows, const int kind,
                                      double *restrict w, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        w[j] = (((w[j] + a[0] * PRECBENCH_VALUE(rows[0], j, kind)) +
                 a[1] * PRECBENCH_VALUE(rows[1], j, kind)) +
                a[2] * PRECBENCH_VALUE(rows[2], j, kind)) +
               a[3] * PRECBENCH_VALUE(rows[3], j, kind);
}

PRECBENCH_ROW void precbench_add_four_by(const double *a, const void **rows, int kind_of_rows,
                                         double *w, ptrdiff_t n, const int wide)
{
    PRECBENCH_OF_KIND(kind_of_rows, precbench_add_some(a, rows, kind, w, n));
}

PRECBENCH_DISPATCH(precbench_add_four,
                   (const double *a, const void **rows, int kind, double *w, ptrdiff_t n),
                   a, rows, kind, w, n)

static inline void precbench_axpy(double a, const double *x, double *w, ptrdiff_t n)
{
    precbench_dense_axpy(a, x, PRECBENCH_DOUBLES, w, n);
}

PRECBENCH_ROW void precbench_sparse_axpy(double a, const void *x, const int kind,
                                         const int *columns, double *w, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        w[columns[j]] += a * PRECBENCH_VALUE(x, j, kind);
}

/* Add a times row i to w. */
static inline void precbench_row_axpy(const precbench_rows *X, ptrdiff_t i, double a, double *w)
{
    const ptrdiff_t d = X->n_cols, start = X->indptr ? X->indptr[i] : i * d;
    if (!X->indptr)
        PRECBENCH_OF_KIND(X->kind, precbench_dense_axpy(a, precbench_from(X->data, start, kind),
                                                        kind, w, d));
    else
        PRECBENCH_OF_KIND(X->kind, precbench_sparse_axpy(
                                           a, precbench_from(X->data, start, kind), kind,
                                           X->indices + start, w, X->indptr[i + 1] - start));
}

#endif

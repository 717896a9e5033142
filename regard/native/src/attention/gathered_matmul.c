/* Each query's own rows of a table, read where they lie.
 *
 *     products   to[t][j]         = x[t] . rows[places[t][j]]
 *     sums       to[t]            = sum over j of w[t][j] rows[places[t][j]]
 *     spread     to[places[t][j]] += w[t][j] x[t]
 *
 * Shapes, row-major: x (count, size), w and places (count, width), rows (any, size). In a spread
 * several queries add to one row: threads share its columns, not the queries, so that each number
 * is one thread's and the order of its sum does not depend on how many there are.
 */


#include "common.h"
#include "simd.h"

enum { WIDE = 4 };

typedef struct {
    const float *left, *right; /* x or w; rows, or what is spread */
    const long *places;
    float *to;
    long from, until, count, width, size;
} Job;

/* R of a query's products at once. */
INLINE void some_products(const Job *job, const float *x, long j, const int R) {
    const float *row[4];
    Side sum[4] = {0};
    for (int r = 0; r < R; r++) row[r] = job->right + job->places[j + r] * job->size;
    long n = 0;
    for (; n + SIDE <= job->size; n += SIDE)
        for (int r = 0; r < R; r++)
            sum[r] += *(const Loose *)(x + n) * *(const Loose *)(row[r] + n);
    for (int r = 0; r < R; r++) {
        float rest = 0.0f;
        for (long m = n; m < job->size; m++) rest += x[m] * row[r][m];
        job->to[j + r] = total(sum[r]) + rest;
    }
}

INLINE void products(const Job *job) {
    for (long t = job->from; t < job->until; t++) {
        const float *x = job->left + t * job->size;
        long j = t * job->width, end = j + job->width;
        for (; j + 4 <= end; j += 4) some_products(job, x, j, 4);
        for (; j < end; j++) some_products(job, x, j, 1);
    }
}

/* S sides of a query's sum, which stay in registers. */
INLINE void some_sums(const Job *job, long t, long n, const int S) {
    Side sum[WIDE] = {0};
    for (long j = t * job->width; j < (t + 1) * job->width; j++) {
        const Loose *row = (const Loose *)(job->right + job->places[j] * job->size + n);
        for (int s = 0; s < S; s++) sum[s] += job->left[j] * row[s];
    }
    for (int s = 0; s < S; s++) *(Loose *)(job->to + t * job->size + n + s * SIDE) = sum[s];
}

INLINE void sums(const Job *job) {
    for (long t = job->from; t < job->until; t++) {
        long n = 0;
        for (; n + WIDE * SIDE <= job->size; n += WIDE * SIDE) some_sums(job, t, n, WIDE);
        for (; n + SIDE <= job->size; n += SIDE) some_sums(job, t, n, 1);
        for (; n < job->size; n++) {
            float sum = 0.0f;
            for (long j = t * job->width; j < (t + 1) * job->width; j++)
                sum += job->left[j] * job->right[job->places[j] * job->size + n];
            job->to[t * job->size + n] = sum;
        }
    }
}

INLINE void spread(const Job *job) {
    for (long t = 0; t < job->count; t++) {
        const float *x = job->right + t * job->size;
        for (long j = t * job->width; j < (t + 1) * job->width; j++) {
            float *row = job->to + job->places[j] * job->size;
            long n = job->from;
            for (; n + SIDE <= job->until; n += SIDE)
                *(Loose *)(row + n) += job->left[j] * *(const Loose *)(x + n);
            for (; n < job->until; n++) row[n] += job->left[j] * x[n];
        }
    }
}

enum { PRODUCTS, SUMS, SPREAD };

typedef struct {
    int what;
    Job job;
} Given;

static void work(void *given) {
    const Given *one = given;
    if (one->what == PRODUCTS) products(&one->job);
    if (one->what == SUMS) sums(&one->job);
    if (one->what == SPREAD) spread(&one->job);
}

/* A spread adds to what is there; the others set it. */
void regard_gathered_matmul(int what, const float *left, const float *right, const long *places, float *to,
                long count, long width, long size, int threads) {
    Given all[MOST_THREADS];
    /* Of columns a thread has whole sides, so that no two write to the same line of a cache. */
    const long unit = what == SPREAD ? SIDE : 1;
    const long end = what == SPREAD ? size : count, units = (end + unit - 1) / unit;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > units) threads = units > 0 ? (int)units : 1;
    for (int t = 0; t < threads; t++) {
        const long from = units * t / threads * unit, until = units * (t + 1) / threads * unit;
        Job job = {left, right, places, to, from, until < end ? until : end, count, width, size};
        all[t] = (Given){what, job};
    }
    regard_parallel(work, all, sizeof(Given), threads);
}

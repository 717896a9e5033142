/* Squared distances of all pairs, by subtraction: exact where a query and a key are close, where
 * the three terms of |q|^2 + |k|^2 - 2 q.k would cancel.
 *
 * Shapes, row-major: q (items, rows, size), k (memories, keys, size), to (items, rows, keys); item n
 * is compared with memory which[n]. A side of keys is taken at a time, turned so that they lie side
 * by side, dimension by dimension: each has a lane of its own, and nothing is summed across.
 */

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "simd.h"

enum { ROWS = 4 };

typedef struct {
    const float *q, *k;
    const long *which;
    float *to;
    long from, until, rows, keys, size; /* from and until count rows over all items */
    int failed;
} Job;

static void turn(const float *k, long keys, long size, Side *to) {
    for (long j = 0; j < keys; j++)
        for (long d = 0; d < size; d++) ((float *)&to[j / SIDE * size + d])[j % SIDE] = k[j * size + d];
}

/* R rows against all keys. Two sums a row: one alone would lose twice the digits. */
INLINE void rows_of(const Job *job, const float *q, const Side *turned, float *to, const int R) {
    for (long j = 0; j < job->keys; j += SIDE, turned += job->size) {
        Side even[ROWS] = {0}, odd[ROWS] = {0};
        long d = 0;
        for (; d + 2 <= job->size; d += 2)
            for (int r = 0; r < R; r++) {
                Side a = q[r * job->size + d] - turned[d];
                Side b = q[r * job->size + d + 1] - turned[d + 1];
                even[r] += a * a, odd[r] += b * b;
            }
        for (; d < job->size; d++)
            for (int r = 0; r < R; r++) {
                Side a = q[r * job->size + d] - turned[d];
                even[r] += a * a;
            }
        const long left = job->keys - j;
        for (int r = 0; r < R; r++) {
            Side sum = even[r] + odd[r];
            memcpy(to + r * job->keys + j, &sum, (left < SIDE ? left : SIDE) * sizeof(float));
        }
    }
}

INLINE void all_rows(const Job *job, Side *turned) {
    long known = -1;
    for (long at = job->from, some; at < job->until; at += some) {
        const long item = at / job->rows, end = (item + 1) * job->rows;
        const long left = (end < job->until ? end : job->until) - at;
        if (job->which[item] != known) {
            known = job->which[item];
            turn(job->k + known * job->keys * job->size, job->keys, job->size, turned);
        }
        some = left >= ROWS ? ROWS : 1;
        if (some == ROWS)
            rows_of(job, job->q + at * job->size, turned, job->to + at * job->keys, ROWS);
        else
            rows_of(job, job->q + at * job->size, turned, job->to + at * job->keys, 1);
    }
}

static void work(void *given) {
    Job *job = given;
    const long blocks = (job->keys + SIDE - 1) / SIDE;
    Side *turned = regard_alloc(sizeof(Side), blocks * job->size * sizeof(Side));
    job->failed = !turned;
    if (!turned) return;
    memset(turned, 0, blocks * job->size * sizeof(Side));
    all_rows(job, turned);
    free(turned);
}

/* Returns 1 if there was no memory. */
int regard_squared_distances(const float *q, const float *k, const long *which, float *to, long items,
                     long rows, long keys, long size, int threads) {
    Job jobs[MOST_THREADS];
    const long total = items * rows;
    int failed = 0;
    if (total == 0 || keys == 0) return 0;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > total) threads = (int)total;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){q, k, which, to, total * t / threads, total * (t + 1) / threads, rows, keys,
                        size, 0};
    regard_parallel(work, jobs, sizeof(Job), threads);
    for (int t = 0; t < threads; t++) failed |= jobs[t].failed;
    return failed;
}

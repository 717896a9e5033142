/* Products with rows that each query picks from a table, read in place instead of gathered.
 *
 *     DOT            to[t][j]        = x[t] . table[index[t][j]]
 *     WEIGHTED_SUM   to[t]           = sum over j of w[t][j] table[index[t][j]]
 *     SCATTER_ADD    to[index[t][j]] += w[t][j] x[t]
 *
 * Shapes, row-major: x (count, size), w and index (count, width), table (any, size). In SCATTER_ADD
 * several queries add to one row: threads divide its columns, not the queries, so that each element
 * belongs to one thread and the order of its sum does not depend on how many there are.
 */

#include "simd.h"

enum { DOT, WEIGHTED_SUM, SCATTER_ADD };
enum { MAX_VECS = 4 };

typedef struct {
    int operation;
    const float *left, *right; /* x or w; table, or x in SCATTER_ADD */
    const long *index;
    float *to;
    long count, width, size;
    long from, until; /* rows, or vectors of columns in SCATTER_ADD */
    int status;
} Job;

/* R of a query's products at once. */
INLINE void dot_rows(const Job *job, const float *x, long j, const int R) {
    const float *row[4];
    Vec sum[4] = {0};
    for (int r = 0; r < R; r++) row[r] = job->right + job->index[j + r] * job->size;
    long n = 0;
    for (; n + LANES <= job->size; n += LANES)
        for (int r = 0; r < R; r++)
            sum[r] += *(const VecUnaligned *)(x + n) * *(const VecUnaligned *)(row[r] + n);
    for (int r = 0; r < R; r++) {
        float rest = 0.0f;
        for (long m = n; m < job->size; m++) rest += x[m] * row[r][m];
        job->to[j + r] = horizontal_sum(sum[r]) + rest;
    }
}

INLINE void dot(const Job *job) {
    for (long t = job->from; t < job->until; t++) {
        const float *x = job->left + t * job->size;
        long j = t * job->width, end = j + job->width;
        for (; j + 4 <= end; j += 4) dot_rows(job, x, j, 4);
        for (; j < end; j++) dot_rows(job, x, j, 1);
    }
}

/* S vectors of a query's sum, which stay in registers. */
INLINE void sum_columns(const Job *job, long t, long n, const int S) {
    Vec sum[MAX_VECS] = {0};
    for (long j = t * job->width; j < (t + 1) * job->width; j++) {
        const VecUnaligned *row =
            (const VecUnaligned *)(job->right + job->index[j] * job->size + n);
        for (int s = 0; s < S; s++) sum[s] += job->left[j] * row[s];
    }
    for (int s = 0; s < S; s++) *(VecUnaligned *)(job->to + t * job->size + n + s * LANES) = sum[s];
}

INLINE void weighted_sum(const Job *job) {
    for (long t = job->from; t < job->until; t++) {
        long n = 0;
        for (; n + MAX_VECS * LANES <= job->size; n += MAX_VECS * LANES)
            sum_columns(job, t, n, MAX_VECS);
        for (; n + LANES <= job->size; n += LANES) sum_columns(job, t, n, 1);
        for (; n < job->size; n++) {
            float sum = 0.0f;
            for (long j = t * job->width; j < (t + 1) * job->width; j++)
                sum += job->left[j] * job->right[job->index[j] * job->size + n];
            job->to[t * job->size + n] = sum;
        }
    }
}

INLINE void scatter_add(const Job *job) {
    const long first = job->from * LANES, end = min_long(job->until * LANES, job->size);
    for (long t = 0; t < job->count; t++) {
        const float *x = job->right + t * job->size;
        for (long j = t * job->width; j < (t + 1) * job->width; j++) {
            float *row = job->to + job->index[j] * job->size;
            long n = first;
            for (; n + LANES <= end; n += LANES)
                *(VecUnaligned *)(row + n) += job->left[j] * *(const VecUnaligned *)(x + n);
            for (; n < end; n++) row[n] += job->left[j] * x[n];
        }
    }
}

INLINE void run(const Job *job) {
    if (job->operation == DOT) dot(job);
    if (job->operation == WEIGHTED_SUM) weighted_sum(job);
    if (job->operation == SCATTER_ADD) scatter_add(job);
}

#include "parallel_rows.h"

/* SCATTER_ADD adds to `to`; the others write it. A thread has whole vectors of columns, so that no two
 * write to the same cache line. */
void regard_gathered_matmul(int operation, const float *left, const float *right, const long *index,
                            float *to, long count, long width, long size, int threads) {
    const Job job = {.operation = operation, .left = left, .right = right, .index = index, .to = to,
                     .count = count, .width = width, .size = size};
    parallel_rows(job, operation == SCATTER_ADD ? round_up(size, LANES) / LANES : count, threads);
}

/* Several heads of one query an item, as in a Transformer's step: scaled dot products, softmax and the
 * sum of the values, in one call for all heads.
 *
 * Queries, keys and values come as a linear layer leaves them, heads side by side, keys before
 * values. Shapes, row-major: q (items, q_stride), whose first heads * head_size columns count; context
 * (items, heads * head_size); weights (items, heads, count), or NULL if they are not needed.
 *
 * Pairs are stored in one of two ways. In memories: pairs (memories, count, 2 * heads * head_size),
 * with lengths (memories), how many of them each shows, or NULL for all; items_per_memory items in a
 * row share a memory. Or where each step wrote them: past has a pointer for each step, to rows that
 * are past_stride apart, and rows (items, count) has the row of each step that is the item's.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simd.h"

/* signatures.py has the same fields in the same order. */
typedef struct {
    const float *q, *pairs;
    const long *lengths;
    const float *const *past;
    const long *rows;
    float *context, *weights;
    long items, items_per_memory, heads, head_size, count, q_stride, past_stride;
    float scale;
} Args;

/* The address of each of an item's pairs. */
typedef const float *const *Pairs;

/* ---- the loops ----------------------------------------------------------------------------- */

enum { MAX_VECS = 64 / LANES }; /* a head of up to so many vectors stays in registers */

/* A head's products with R keys at once. */
INLINE void dot_keys(const Vec *q, Pairs pairs, long first, const int R, float *to, const long vecs) {
    Vec sum[4];
    for (int r = 0; r < R; r++) {
        const VecUnaligned *key = (const VecUnaligned *)(pairs[r] + first);
        sum[r] = q[0] * key[0];
        for (long s = 1; s < vecs; s++) sum[r] += q[s] * key[s];
    }
    for (int r = 0; r < R; r++) to[r] = horizontal_sum(sum[r]);
}

/* Scores of all heads. */
INLINE void head_scores(const Args *a, const float *q, Pairs pairs, long count, float *to,
                        const long size) {
    const long stride = pad_to_16(a->count), vecs = size / LANES;
    for (long n = 0; n < a->heads; n++, to += stride) {
        const float *head_q = q + n * size;
        long j = 0;
        if (size % LANES || vecs > MAX_VECS || !vecs) {
            for (; j < count; j++) {
                float sum = 0;
#pragma omp simd reduction(+ : sum)
                for (long i = 0; i < size; i++) sum += head_q[i] * pairs[j][n * size + i];
                to[j] = sum;
            }
            continue;
        }
        Vec q_vecs[MAX_VECS];
        for (long s = 0; s < vecs; s++) q_vecs[s] = ((const VecUnaligned *)head_q)[s];
        for (; j + 4 <= count; j += 4) dot_keys(q_vecs, pairs + j, n * size, 4, to + j, vecs);
        for (; j < count; j++) dot_keys(q_vecs, pairs + j, n * size, 1, to + j, vecs);
    }
}

INLINE void head_sums(const Args *a, Pairs pairs, long count, const float *w, float *restrict to,
                      const long size) {
    const long keys_size = a->heads * size, stride = pad_to_16(a->count), vecs = size / LANES;
    for (long n = 0; n < a->heads; n++, w += stride) {
        float *restrict head_to = to + n * size;
        if (size % LANES || vecs > MAX_VECS) {
            for (long i = 0; i < size; i++) head_to[i] = 0;
            for (long j = 0; j < count; j++)
#pragma omp simd
                for (long i = 0; i < size; i++) head_to[i] += w[j] * pairs[j][keys_size + n * size + i];
            continue;
        }
        Vec sum[MAX_VECS] = {0};
        for (long j = 0; j < count; j++)
            for (long s = 0; s < vecs; s++)
                sum[s] += w[j] * ((const VecUnaligned *)(pairs[j] + keys_size + n * size))[s];
        for (long s = 0; s < vecs; s++) ((VecUnaligned *)head_to)[s] = sum[s];
    }
}

/* Scores of all heads to weights, in place. A float is enough for the sum of up to 1024 of them. */
INLINE void head_softmax(const Args *a, long count, float *scores) {
    for (long n = 0; n < a->heads; n++, scores += pad_to_16(a->count)) {
        float top = -INFINITY;
        double total = 0;
#pragma omp simd reduction(max : top)
        for (long j = 0; j < count; j++) {
            scores[j] *= a->scale;
            top = scores[j] > top ? scores[j] : top;
        }
        for (long first = 0; first < count; first += 1024) {
            const long last = first + 1024 < count ? first + 1024 : count;
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long j = first; j < last; j++) {
                scores[j] = exp_clamped(scores[j] - top);
                sum += scores[j];
            }
            total += sum;
        }
        const float reciprocal = (float)(1 / total);
#pragma omp simd
        for (long j = 0; j < count; j++) scores[j] *= reciprocal;
    }
}

/* Heads mostly have these sizes; as constants, their loops have no remainders. */
#define WITH_CONSTANT_SIZE(CALL, ...)                                                              \
    switch (a->head_size) {                                                                        \
        case 16: CALL(a, __VA_ARGS__, 16); break;                                                  \
        case 32: CALL(a, __VA_ARGS__, 32); break;                                                  \
        case 64: CALL(a, __VA_ARGS__, 64); break;                                                  \
        default: CALL(a, __VA_ARGS__, a->head_size);                                               \
    }

/* ---- one item, and threads ----------------------------------------------------------------- */

static void locate_pairs(const Args *a, long item, long count, const float **pairs) {
    const long size = 2 * a->heads * a->head_size, stride = size ? a->past_stride : 0;
    if (a->past)
        for (long j = 0; j < count; j++)
            pairs[j] = a->past[j] + a->rows[item * a->count + j] * stride;
    else
        for (long j = 0; j < count; j++)
            pairs[j] = a->pairs + (item / a->items_per_memory * a->count + j) * size;
}

static void read_item(const Args *a, long item, float *scores, const float **pairs) {
    const long size = a->heads * a->head_size, stride = pad_to_16(a->count);
    const long length = a->lengths ? a->lengths[item / a->items_per_memory] : a->count;
    const long count = length < 0 ? 0 : min_long(length, a->count);
    locate_pairs(a, item, count, pairs);
    WITH_CONSTANT_SIZE(head_scores, a->q + (size ? item * a->q_stride : 0), pairs, count, scores)
    head_softmax(a, count, scores);
    for (long n = 0; a->weights && n < a->heads; n++) {
        float *to = a->weights + (item * a->heads + n) * a->count;
        if (count > 0) memcpy(to, scores + n * stride, count * sizeof(float));
        fill_zero(to + count, a->count - count);
    }
    WITH_CONSTANT_SIZE(head_sums, pairs, count, scores, a->context + item * size)
}

typedef struct {
    const Args *args;
    long from, until;
    int status;
} Job;

static void run(Job *job) {
    const long count = job->args->count;
    float *scores = malloc((job->args->heads * pad_to_16(count) + 1) * sizeof(float));
    const float **pairs = malloc((count + 1) * sizeof(float *));
    job->status = scores && pairs ? DONE : NO_MEMORY;
    for (long item = job->from; job->status == DONE && item < job->until; item++)
        read_item(job->args, item, scores, pairs);
    free(scores);
    free(pairs);
}

#include "parallel_rows.h"

int regard_multihead_step(const Args *args, int threads) {
    return args->items > 0 ? parallel_rows((Job){.args = args}, args->items, threads) : DONE;
}

/* One query an item with several heads, as a Transformer asks at each step: scaled dot products,
 * softmax and the sum of the values, in one call for all heads.
 *
 * Queries, keys and values come as a linear layer leaves them, heads side by side, keys before
 * values. Shapes, row-major: q (items, stride), of which the first heads * size numbers count;
 * context (items, heads * size); weights (items, heads, count), or NULL if nobody asks for them.
 *
 * Pairs lie in one of two ways. In memories: pairs (memories, count, 2 * heads * size), with
 * lengths (memories), how many of them each shows, or NULL for all; so many items in a row share a
 * memory. Or where they were made: past has a pointer for each step, to rows that are `apart`, and
 * rows (items, count) says which of a step's rows is an item's own.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "simd.h"

/* native.py has the same fields in the same order. */
typedef struct {
    const float *q, *pairs;
    const long *lengths;
    const float *const *past;
    const long *rows;
    float *context, *weights;
    long items, share, heads, size, count, stride, apart;
    float scale;
} Heads;

/* Where each of an item's pairs lies. */
typedef const float *const *Pairs;

/* ---- the loops ----------------------------------------------------------------------------- */

enum { SIDES = 64 / SIDE }; /* of which a head may have so many */

/* A head's products with R keys at once; its query stays in registers. */
INLINE void products(const Side *q, Pairs at, long first, const int R, float *to, const long sides) {
    Side sum[4];
    for (int r = 0; r < R; r++) {
        const Loose *key = (const Loose *)(at[r] + first);
        sum[r] = q[0] * key[0];
        for (long s = 1; s < sides; s++) sum[r] += q[s] * key[s];
    }
    for (int r = 0; r < R; r++) to[r] = total(sum[r]);
}

/* Scores of all heads; `size` is that of a head, known beforehand where there are whole sides. */
INLINE void compared(const Heads *h, const float *q, Pairs at, long count, float *to,
                     const long size) {
    const long apart = regard_padded(h->count), sides = size / SIDE;
    for (long n = 0; n < h->heads; n++, to += apart) {
        const float *own = q + n * size;
        long j = 0;
        if (size % SIDE || sides > SIDES || !sides) {
            for (; j < count; j++) {
                float sum = 0;
#pragma omp simd reduction(+ : sum)
                for (long i = 0; i < size; i++) sum += own[i] * at[j][n * size + i];
                to[j] = sum;
            }
            continue;
        }
        Side held[SIDES];
        for (long s = 0; s < sides; s++) held[s] = ((const Loose *)own)[s];
        for (; j + 4 <= count; j += 4) products(held, at + j, n * size, 4, to + j, sides);
        for (; j < count; j++) products(held, at + j, n * size, 1, to + j, sides);
    }
}

INLINE void summed(const Heads *h, Pairs at, long count, const float *w, float *restrict to,
                   const long size) {
    const long wide = h->heads * size, apart = regard_padded(h->count), sides = size / SIDE;
    for (long n = 0; n < h->heads; n++, w += apart) {
        float *restrict own = to + n * size;
        if (size % SIDE || sides > SIDES) {
            for (long i = 0; i < size; i++) own[i] = 0;
            for (long j = 0; j < count; j++)
#pragma omp simd
                for (long i = 0; i < size; i++) own[i] += w[j] * at[j][wide + n * size + i];
            continue;
        }
        Side sum[SIDES] = {0};
        for (long j = 0; j < count; j++)
            for (long s = 0; s < sides; s++)
                sum[s] += w[j] * ((const Loose *)(at[j] + wide + n * size))[s];
        for (long s = 0; s < sides; s++) ((Loose *)own)[s] = sum[s];
    }
}

/* Scores of all heads to weights. Keys are few: a float is enough for the sum of some of them. */
INLINE void softmaxes(const Heads *h, long count, float *scores) {
    for (long n = 0; n < h->heads; n++, scores += regard_padded(h->count)) {
        float most = -INFINITY;
        double all = 0;
#pragma omp simd reduction(max : most)
        for (long j = 0; j < count; j++) {
            scores[j] *= h->scale;
            most = scores[j] > most ? scores[j] : most;
        }
        for (long first = 0; first < count; first += 1024) {
            const long last = first + 1024 < count ? first + 1024 : count;
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long j = first; j < last; j++) {
                scores[j] = regard_exponential(scores[j] - most);
                sum += scores[j];
            }
            all += sum;
        }
        const float share = (float)(1 / all);
#pragma omp simd
        for (long j = 0; j < count; j++) scores[j] *= share;
    }
}

/* Heads are mostly of these sizes; known beforehand, their loops have no ends to look after. */
#define SIZED(CALL, ...)                                                                           \
    switch (h->size) {                                                                             \
        case 16: CALL(h, __VA_ARGS__, 16); break;                                                  \
        case 32: CALL(h, __VA_ARGS__, 32); break;                                                  \
        case 64: CALL(h, __VA_ARGS__, 64); break;                                                  \
        default: CALL(h, __VA_ARGS__, h->size);                                                    \
    }

/* ---- one item, and threads ----------------------------------------------------------------- */

static void found(const Heads *h, long item, long count, const float **at) {
    const long wide = 2 * h->heads * h->size, apart = wide ? h->apart : 0;
    if (h->past)
        for (long j = 0; j < count; j++)
            at[j] = h->past[j] + h->rows[item * h->count + j] * apart;
    else
        for (long j = 0; j < count; j++) at[j] = h->pairs + (item / h->share * h->count + j) * wide;
}

static void one(const Heads *h, long item, float *scores, const float **at) {
    const long wide = h->heads * h->size, apart = regard_padded(h->count);
    const long length = h->lengths ? h->lengths[item / h->share] : h->count;
    const long count = length < 0 ? 0 : least(length, h->count);
    found(h, item, count, at);
    SIZED(compared, h->q + (wide ? item * h->stride : 0), at, count, scores)
    softmaxes(h, count, scores);
    for (long n = 0; h->weights && n < h->heads; n++) {
        float *to = h->weights + (item * h->heads + n) * h->count;
        if (count > 0) memcpy(to, scores + n * apart, count * sizeof(float));
        regard_fill_zero(to + count, h->count - count);
    }
    SIZED(summed, at, count, scores, h->context + item * wide)
}

typedef struct {
    const Heads *heads;
    long from, to;
    int failed;
} Job;

static void work(void *given) {
    Job *job = given;
    const long count = job->heads->count;
    float *scores = malloc((job->heads->heads * regard_padded(count) + 1) * sizeof(float));
    const float **at = malloc((count + 1) * sizeof(float *));
    job->failed = !scores || !at;
    for (long item = job->from; !job->failed && item < job->to; item++)
        one(job->heads, item, scores, at);
    free(scores);
    free(at);
}

/* Returns 1 if there was no memory. */
int regard_multihead_step(const Heads *heads, int threads) {
    Job jobs[MOST_THREADS];
    int failed = 0;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > heads->items) threads = (int)heads->items;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){heads, heads->items * t / threads, heads->items * (t + 1) / threads, 0};
    regard_parallel(work, jobs, sizeof(Job), threads);
    for (int t = 0; t < threads; t++) failed |= jobs[t].failed;
    return failed;
}

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

#include <stdlib.h>
#include <string.h>

#include "additive.h"

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

/* ---- the loops, for each level of processor ------------------------------------------------ */

/* Scores of all heads, key by key: a key's heads lie side by side. */
INLINE void compared(const Heads *h, const float *q, Pairs at, long count, float *to,
                     const long size) {
    const long apart = regard_padded(h->count);
    for (long j = 0; j < count; j++)
        for (long n = 0; n < h->heads; n++) {
            const float *a = q + n * size, *b = at[j] + n * size;
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long i = 0; i < size; i++) sum += a[i] * b[i];
            to[n * apart + j] = sum;
        }
}

INLINE void summed(const Heads *h, Pairs at, long count, const float *w, float *restrict to,
                   const long size) {
    const long wide = h->heads * size, apart = regard_padded(h->count);
    for (long n = 0; n < h->heads; n++) {
        float *restrict own = to + n * size;
        for (long i = 0; i < size; i++) own[i] = 0;
        for (long j = 0; j < count; j++) {
            const float share = w[n * apart + j], *a = at[j] + wide + n * size;
#pragma omp simd
            for (long i = 0; i < size; i++) own[i] += share * a[i];
        }
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

typedef void (*Compare)(const Heads *, const float *, Pairs, long, float *);
typedef void (*Sum)(const Heads *, Pairs, long, const float *, float *);

#define LOOPS(KIND, NAME)                                                                          \
    KIND void compared_##NAME(const Heads *h, const float *q, Pairs at, long n, float *to) {       \
        SIZED(compared, q, at, n, to)                                                              \
    }                                                                                              \
    KIND void summed_##NAME(const Heads *h, Pairs at, long n, const float *w, float *to) {         \
        SIZED(summed, at, n, w, to)                                                                \
    }

LOOPS(static, any)
#ifdef X86
LOOPS(AVX2, avx2)
LOOPS(AVX512, avx512)
static const Compare all_compare[] = {compared_any, compared_avx2, compared_avx512};
static const Sum all_sum[] = {summed_any, summed_avx2, summed_avx512};
#else
static const Compare all_compare[] = {compared_any, compared_any, compared_any};
static const Sum all_sum[] = {summed_any, summed_any, summed_any};
#endif

/* ---- one item, and threads ----------------------------------------------------------------- */

static void found(const Heads *h, long item, long count, const float **at) {
    const long wide = 2 * h->heads * h->size;
    if (h->past)
        for (long j = 0; j < count; j++)
            at[j] = h->past[j] + h->rows[item * h->count + j] * h->apart;
    else
        for (long j = 0; j < count; j++) at[j] = h->pairs + (item / h->share * h->count + j) * wide;
}

static void one(const Heads *h, long item, float *scores, const float **at, int level) {
    const long wide = h->heads * h->size, apart = regard_padded(h->count);
    const long count = h->lengths ? h->lengths[item / h->share] : h->count;
    found(h, item, count, at);
    all_compare[level](h, h->q + item * h->stride, at, count, scores);
    for (long n = 0; n < h->heads; n++) {
        regard_softmax(scores + n * apart, count, h->scale, level);
        if (!h->weights) continue;
        float *to = h->weights + (item * h->heads + n) * h->count;
        memcpy(to, scores + n * apart, count * sizeof(float));
        memset(to + count, 0, (h->count - count) * sizeof(float));
    }
    all_sum[level](h, at, count, scores, h->context + item * wide);
}

typedef struct {
    const Heads *heads;
    long from, to;
    int level, failed;
} Job;

static void work(void *given) {
    Job *job = given;
    const long count = job->heads->count;
    float *scores = malloc(job->heads->heads * regard_padded(count) * sizeof(float));
    const float **at = malloc(count * sizeof(float *));
    job->failed = !scores || !at;
    for (long item = job->from; !job->failed && item < job->to; item++)
        one(job->heads, item, scores, at, job->level);
    free(scores);
    free(at);
}

/* Returns 1 if there was no memory. */
int regard_heads(const Heads *heads, int threads, int level) {
    Job jobs[MOST_THREADS];
    int failed = 0;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > heads->items) threads = (int)heads->items;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){heads, heads->items * t / threads, heads->items * (t + 1) / threads, level,
                        0};
    regard_share(work, jobs, sizeof(Job), threads);
    for (int t = 0; t < threads; t++) failed |= jobs[t].failed;
    return failed;
}

/* One query an item, as in a decoder's step: scores, softmax over the keys it may read, and the sum of
 * their values, in one call.
 *
 * Shapes, row-major: q (items, size), keys (items, count, width), values (items, count, value_size),
 * allowed (items, count) of 0 and 1 or NULL, weights (items, count), context (items, value_size).
 * Where items share theirs, as beams do, item n has the keys n / items_per_keys, and so on. A masked
 * key is never read.
 *
 * Dot products take keys as they are, with width = size. Additive scores take e^2k, its width a
 * multiple of 32, and the max |k| of each key; they return OUT_OF_RANGE if a query and its keys leave
 * the range of additive.c.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/additive.h"

/* What stays the same from step to step; signatures.py has the same fields in the same order. */
typedef struct {
    const float *keys, *values, *max_abs; /* max_abs: of additive scores, else NULL */
    const unsigned char *allowed;
    long items, count, size, width, value_size;
    long items_per_keys, items_per_values, items_per_v;
    int reversed; /* did the last step go from the last item to the first? */
} Memory;

/* One step: its inputs and outputs. */
typedef struct {
    const Memory *memory;
    const float *q, *v;
    const float *saved_weights; /* in backward, else NULL */
    float scale, *weights, *context;
    int reversed;          /* go from the last item to the first */
    int additive_backward; /* backward of additive scores: grad_context is given */
    const float *grad_context;
    float *grad_q, *grad_k, *grad_v;
} Step;

/* ---- the loops ----------------------------------------------------------------------------- */

/* Rows are read once and in order, so they can be prefetched: a row or two ahead, farther than the
 * hardware does by itself. Prefetching beyond the end does no harm. */
enum { SUMS = 32, AHEAD = 1024 };

/* q . k for the allowed keys; a single sum would wait for itself. */
INLINE void dot_scores(const Memory *m, const float *q, const float *keys, const long *index,
                       long count, float *to) {
    for (long j = 0; j < count; j++) {
        const float *a = keys + index[j] * m->width;
        float sum[SUMS] = {0}, total = 0;
        long n = 0;
        for (; n + SUMS <= m->size; n += SUMS) {
            __builtin_prefetch(a + n + AHEAD), __builtin_prefetch(a + n + AHEAD + 16);
#pragma omp simd
            for (int i = 0; i < SUMS; i++) sum[i] += q[n + i] * a[n + i];
        }
        for (; n < m->size; n++) total += q[n] * a[n];
#pragma omp simd reduction(+ : total)
        for (int i = 0; i < SUMS; i++) total += sum[i];
        to[j] = total;
    }
}

/* The weighted sum of the allowed values, four at a time: loading and storing a sum costs as much as
 * adding to it. */
INLINE void weighted_sum(const Memory *m, const float *values, const long *index, long count,
                         const float *w, float *restrict to) {
    long j = 0, size = m->value_size, ahead = 4 * size;
    fill_zero(to, size);
    for (; j + 4 <= count; j += 4) {
        const float *a = values + index[j] * size, *b = values + index[j + 1] * size;
        const float *c = values + index[j + 2] * size, *d = values + index[j + 3] * size;
        long n = 0;
        for (; n + 16 <= size; n += 16) {
            __builtin_prefetch(a + ahead + n), __builtin_prefetch(b + ahead + n);
            __builtin_prefetch(c + ahead + n), __builtin_prefetch(d + ahead + n);
#pragma omp simd
            for (long i = n; i < n + 16; i++)
                to[i] += w[j] * a[i] + w[j + 1] * b[i] + (w[j + 2] * c[i] + w[j + 3] * d[i]);
        }
        for (; n < size; n++)
            to[n] += w[j] * a[n] + w[j + 1] * b[n] + (w[j + 2] * c[n] + w[j + 3] * d[n]);
    }
    for (; j < count; j++) {
        const float *a = values + index[j] * size;
#pragma omp simd
        for (long n = 0; n < size; n++) to[n] += w[j] * a[n];
    }
}

/* ---- one item ------------------------------------------------------------------------------ */

#define HALF_EXP_MIN -52.0f /* e^(2 HALF_EXP_MIN) is 0 as a float */

/* In place, with room for pad_to_16(count). The sum is a double: a float would lose digits over many
 * keys. */
static void softmax(float *scores, long count, float scale) {
    float top = -INFINITY;
    double total = 0.0;
    for (long j = 0; j < count; j++) {
        scores[j] *= scale;
        if (scores[j] > top) top = scores[j];
    }
    for (long j = 0; j < count; j++) { /* halved, because e^2x follows; NaN stays NaN */
        float half = 0.5f * (scores[j] - top);
        scores[j] = half < HALF_EXP_MIN ? HALF_EXP_MIN : half;
    }
    regard_exponentials(scores, scores, 1, count, pad_to_16(count), 1);
    for (long j = 0; j < count; j++) total += scores[j];
    float reciprocal = (float)(1.0 / total);
    for (long j = 0; j < count; j++) scores[j] *= reciprocal;
}

/* A query and v against the keys up to `until`; no keys if they are out of range. scratch holds both
 * and the query's gradient. */
static AdditiveRows additive_rows(const Step *s, long item, float *scratch, long until) {
    const Memory *m = s->memory;
    const float *q = s->q + item * m->size;
    long memory = item / m->items_per_keys;
    float max_abs_q = regard_exponentials(q, scratch, 1, m->size, m->width, 1), max_abs_k = 0.0f;
    for (long j = 0; j < until; j++)
        max_abs_k = fmaxf(max_abs_k, m->max_abs[memory * m->count + j]);
    if (m->size)
        memcpy(scratch + m->width, s->v + item / m->items_per_v * m->size, m->size * sizeof(float));
    const int group = regard_reciprocal_group(max_abs_q + max_abs_k);
    if (!group) return (AdditiveRows){.keys = 0};
    return (AdditiveRows){.exp_q = scratch, .exp_k = m->keys + memory * m->count * m->width,
                          .v = scratch + m->width, .rows = 1, .keys = until, .width = m->width,
                          .group = group};
}

/* The gradient of the weights becomes that of the scores, in place. */
static void softmax_backward(const float *weights, const long *index, float *grad, long count,
                             float scale) {
    double mean = 0;
    for (long j = 0; j < count; j++) mean += weights[index[j]] * grad[j];
    for (long j = 0; j < count; j++)
        grad[j] = scale * weights[index[j]] * (grad[j] - (float)mean);
}

/* The indices of the keys that an item may read, and how many there are. */
static long allowed_keys(const Memory *m, long item, long *index) {
    const unsigned char *allowed = m->allowed ? m->allowed + item * m->count : NULL;
    long count = 0;
    for (long j = 0; j < m->count; j++)
        if (!allowed || allowed[j]) index[count++] = j;
    return count;
}

/* Forward; and, with keys and values exchanged, backward of dot products. */
static int read_item(const Step *s, long item, long *index, float *scores, float *scratch) {
    const Memory *m = s->memory;
    const long count = allowed_keys(m, item, index);
    if (s->v && count) {
        AdditiveRows rows = additive_rows(s, item, scratch, index[count - 1] + 1);
        if (!rows.keys) return OUT_OF_RANGE;
        rows.scores = scores;
        regard_additive_rows_forward(&rows);
        for (long j = 0; j < count; j++) scores[j] = scores[index[j]];
    } else {
        const float *keys = m->keys + item / m->items_per_keys * m->count * m->width;
        dot_scores(m, s->q + item * m->size, keys, index, count, scores);
    }
    if (s->saved_weights)
        softmax_backward(s->saved_weights + item * m->count, index, scores, count, s->scale);
    else
        softmax(scores, count, s->scale);
    float *weights = s->weights + item * m->count;
    if (count < m->count) memset(weights, 0, m->count * sizeof(float));
    for (long j = 0; j < count; j++) weights[index[j]] = scores[j];
    const float *values = m->values + item / m->items_per_values * m->count * m->value_size;
    weighted_sum(m, values, index, count, scores, s->context + item * m->value_size);
    return DONE;
}

/* Backward of additive scores: a weight's gradient is grad_context . value, as with dot products. */
static int additive_item_backward(const Step *s, long item, long *index, float *scores,
                                  float *scratch) {
    const Memory *m = s->memory;
    const long count = allowed_keys(m, item, index), until = count ? index[count - 1] + 1 : 0;
    float *grad_q = s->grad_q + item * m->size, *grad_v = s->grad_v + item * m->width;
    const float *values = m->values + item / m->items_per_values * m->count * m->value_size;
    const Memory as_keys = {.size = m->value_size, .width = m->value_size};
    fill_zero(grad_q, m->size);
    fill_zero(grad_v, m->width);
    if (!count || !m->width) return DONE;
    dot_scores(&as_keys, s->grad_context + item * m->value_size, values, index, count, scores);
    softmax_backward(s->saved_weights + item * m->count, index, scores, count, s->scale);
    for (long j = until, n = count; j-- > 0;) /* from the end, where none is overwritten */
        scores[j] = n && index[n - 1] == j ? scores[--n] : 0.0f;
    AdditiveRows rows = additive_rows(s, item, scratch, until);
    if (!rows.keys) return OUT_OF_RANGE;
    rows.grad_scores = scores, rows.grad_q = scratch + 2 * m->width, rows.grad_v = grad_v;
    rows.grad_k = s->grad_k + item * m->count * m->width;
    regard_additive_rows_backward(&rows);
    memcpy(grad_q, rows.grad_q, m->size * sizeof(float));
    return DONE;
}

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct {
    const Step *step;
    long from, until;
    int status;
} Job;

static void run(Job *job) {
    const Step *s = job->step;
    const Memory *m = s->memory;
    long *index = malloc((pad_to_16(m->count) + 1) * (sizeof(long) + sizeof(float)));
    float *scores = (float *)(index + pad_to_16(m->count)), *scratch = NULL;
    if (s->v) scratch = calloc(3 * m->width + 1, sizeof(float));
    job->status = index && (scratch || !s->v) ? DONE : NO_MEMORY;
    int (*one)(const Step *, long, long *, float *, float *) =
        s->additive_backward ? additive_item_backward : read_item;
    for (long n = 0; n < job->until - job->from && job->status == DONE; n++) {
        const long item = s->reversed ? job->until - 1 - n : job->from + n;
        job->status = one(s, item, index, scores, scratch);
    }
    free(index), free(scratch);
}

#include "parallel_rows.h"

static int run_items(const Step *step, int threads) {
    const long items = step->memory->items;
    return items > 0 ? parallel_rows((Job){.step = step}, items, threads) : DONE;
}

/* ---- what Python calls --------------------------------------------------------------------- */

/* v is NULL for dot products. Every other step goes through the items backwards: what the last one
 * ended with is in the cache, where the next one begins. */
int regard_single_query(Memory *memory, const float *q, const float *v, float scale, float *weights,
                        float *context, int threads) {
    memory->reversed = !memory->reversed;
    Step step = {.memory = memory, .q = q, .v = v, .scale = scale, .weights = weights,
                 .context = context, .reversed = memory->reversed};
    return run_items(&step, threads);
}

/* Backward of dot products, by the gradient of the context (items, value_size). It is a read of the
 * same memory with keys and values exchanged: the gradient of a weight is grad_context . value, and
 * that of the query is the sum of the keys, by the gradients of their scores. */
int regard_single_query_backward(const Memory *memory, const float *grad_context,
                                 const float *weights, float scale, float *grad_scores,
                                 float *grad_q, int threads) {
    Memory exchanged = *memory;
    exchanged.keys = memory->values, exchanged.values = memory->keys;
    exchanged.size = exchanged.width = memory->value_size, exchanged.value_size = memory->width;
    exchanged.items_per_keys = memory->items_per_values;
    exchanged.items_per_values = memory->items_per_keys;
    Step step = {.memory = &exchanged, .q = grad_context, .saved_weights = weights, .scale = scale,
                 .weights = grad_scores, .context = grad_q};
    return run_items(&step, threads);
}

/* Backward of additive scores, of items that each have their own keys: their gradient is added to
 * grad_k (items, count, width), that of v is written for each item. */
int regard_additive_single_query_backward(const Memory *memory, const float *q, const float *v,
                                          const float *grad_context, const float *weights,
                                          float scale, float *grad_q, float *grad_k, float *grad_v,
                                          int threads) {
    Step step = {.memory = memory, .q = q, .v = v, .saved_weights = weights, .scale = scale,
                 .grad_context = grad_context, .additive_backward = 1,
                 .grad_q = grad_q, .grad_k = grad_k, .grad_v = grad_v};
    return run_items(&step, threads);
}

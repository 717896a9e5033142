/* One query an item, as a decoder asks at each step: scores, softmax over the keys it may read,
 * and the sum of their values, in one call.
 *
 * Shapes, row-major: q (items, size), keys (items, count, width), values (items, count, wide),
 * allowed (items, count) of 0 and 1 or NULL, weights (items, count), context (items, wide). Where
 * items share theirs, as beams do, item n has the keys n / keys_share, and so on. A hidden key is
 * not looked at.
 *
 * Dot products take keys as they are, with width = size. Additive scores take e^2k, its width a
 * multiple of 32, and how far each key reaches; they return 1, with nothing done, if a query and
 * its keys leave the range of additive.c.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

/* What stays the same from step to step; native.py has the same fields in the same order. */
typedef struct {
    const float *keys, *values, *reach; /* reach: of additive scores, else NULL */
    const unsigned char *allowed;
    long items, count, size, width, wide;
    long keys_share, values_share, v_share;
    int back; /* did the last step go from the last item to the first? */
} Memory;

/* What one step asks, and where its answer goes. */
typedef struct {
    const Memory *memory;
    const float *q, *v;
    const float *read; /* on the way back: the weights that were found, else NULL */
    float scale, *weights, *context;
    int back; /* go from the last item to the first */
    int additive_back; /* the way back of additive scores: sent is the context's gradient */
    const float *sent;
    float *to_q, *to_keys, *to_v;
} Step;

/* ---- the loops ----------------------------------------------------------------------------- */

/* Rows are read once and in order, so what comes next can be asked for early: a row or two ahead,
 * which is beyond what the processor sees by itself. To ask beyond the end does no harm. */
enum { LANES = 32, AHEAD = 1024 };

/* q . k for the keys that are seen; one sum alone would wait for itself. */
INLINE void dots(const Memory *m, const float *q, const float *keys, const long *seen, long count,
                 float *to) {
    for (long j = 0; j < count; j++) {
        const float *a = keys + seen[j] * m->width;
        float sum[LANES] = {0}, total = 0;
        long n = 0;
        for (; n + LANES <= m->size; n += LANES) {
            __builtin_prefetch(a + n + AHEAD), __builtin_prefetch(a + n + AHEAD + 16);
#pragma omp simd
            for (int i = 0; i < LANES; i++) sum[i] += q[n + i] * a[n + i];
        }
        for (; n < m->size; n++) total += q[n] * a[n];
#pragma omp simd reduction(+ : total)
        for (int i = 0; i < LANES; i++) total += sum[i];
        to[j] = total;
    }
}

/* The weighted sum of the values that are seen, four at a time: to load and store a sum costs as
 * much as to add to it. */
INLINE void sums(const Memory *m, const float *values, const long *seen, long count, const float *w,
                 float *restrict to) {
    long j = 0, wide = m->wide, ahead = 4 * wide;
    regard_fill_zero(to, wide);
    for (; j + 4 <= count; j += 4) {
        const float *a = values + seen[j] * wide, *b = values + seen[j + 1] * wide;
        const float *c = values + seen[j + 2] * wide, *d = values + seen[j + 3] * wide;
        long n = 0;
        for (; n + 16 <= wide; n += 16) {
            __builtin_prefetch(a + ahead + n), __builtin_prefetch(b + ahead + n);
            __builtin_prefetch(c + ahead + n), __builtin_prefetch(d + ahead + n);
#pragma omp simd
            for (long i = n; i < n + 16; i++)
                to[i] += w[j] * a[i] + w[j + 1] * b[i] + (w[j + 2] * c[i] + w[j + 3] * d[i]);
        }
        for (; n < wide; n++)
            to[n] += w[j] * a[n] + w[j + 1] * b[n] + (w[j + 2] * c[n] + w[j + 3] * d[n]);
    }
    for (; j < count; j++) {
        const float *a = values + seen[j] * wide;
#pragma omp simd
        for (long n = 0; n < wide; n++) to[n] += w[j] * a[n];
    }
}

/* ---- one item ------------------------------------------------------------------------------ */

/* Of which e^2x is 0 as a float. */
#define FAINT -52.0f

/* The sum is a double: a float would lose digits over many keys. */
void regard_softmax(float *scores, long count, float scale) {
    float most = -INFINITY;
    double total = 0.0;
    for (long j = 0; j < count; j++) {
        scores[j] *= scale;
        if (scores[j] > most) most = scores[j];
    }
    for (long j = 0; j < count; j++) { /* half of it, for e^2x; below FAINT it is 0, or NaN */
        float half = 0.5f * (scores[j] - most);
        scores[j] = half < FAINT ? FAINT : half;
    }
    regard_exponentials(scores, scores, 1, count, regard_padded(count), 1);
    for (long j = 0; j < count; j++) total += scores[j];
    float share = (float)(1.0 / total);
    for (long j = 0; j < count; j++) scores[j] *= share;
}

/* A query and v against the keys up to `until`; none if they are out of range. e has room for both
 * and for what is sent to the query. */
static Part compared(const Step *s, long item, float *e, long until) {
    const Memory *m = s->memory;
    const float *q = s->q + item * m->size;
    long own = item / m->keys_share;
    float farthest = regard_exponentials(q, e, 1, m->size, m->width, 1), longest = 0.0f;
    for (long j = 0; j < until; j++)
        longest = fmaxf(longest, m->reach[own * m->count + j]);
    if (m->size) memcpy(e + m->width, s->v + item / m->v_share * m->size, m->size * sizeof(float));
    const int together = regard_reciprocal_group(farthest + longest);
    if (!together) return (Part){.keys = 0};
    return (Part){.e = e, .f = m->keys + own * m->count * m->width, .v = e + m->width, .rows = 1,
                  .keys = until, .width = m->width, .together = together};
}

/* What reaches the scores, of what reaches the weights that softmax made of them; in place. */
static void slopes(const float *weights, const long *seen, float *sent, long count, float scale) {
    double mean = 0;
    for (long j = 0; j < count; j++) mean += weights[seen[j]] * sent[j];
    for (long j = 0; j < count; j++)
        sent[j] = scale * weights[seen[j]] * (sent[j] - (float)mean);
}

/* Which keys an item may read, and how many. */
static long in_sight(const Memory *m, long item, long *seen) {
    const unsigned char *allowed = m->allowed ? m->allowed + item * m->count : NULL;
    long count = 0;
    for (long j = 0; j < m->count; j++)
        if (!allowed || allowed[j]) seen[count++] = j;
    return count;
}

static int one(const Step *s, long item, long *seen, float *scores, float *e) {
    const Memory *m = s->memory;
    const long count = in_sight(m, item, seen);
    if (s->v && count) {
        Part part = compared(s, item, e, seen[count - 1] + 1);
        if (!part.keys) return 0;
        part.scores = scores;
        regard_additive_item_forward(&part);
        for (long j = 0; j < count; j++) scores[j] = scores[seen[j]];
    } else {
        const float *keys = m->keys + item / m->keys_share * m->count * m->width;
        dots(m, s->q + item * m->size, keys, seen, count, scores);
    }
    if (s->read)
        slopes(s->read + item * m->count, seen, scores, count, s->scale);
    else
        regard_softmax(scores, count, s->scale);
    float *weights = s->weights + item * m->count;
    if (count < m->count) memset(weights, 0, m->count * sizeof(float));
    for (long j = 0; j < count; j++) weights[seen[j]] = scores[j];
    const float *values = m->values + item / m->values_share * m->count * m->wide;
    sums(m, values, seen, count, scores, s->context + item * m->wide);
    return 1;
}

/* The way back of additive scores: what reaches a weight is sent . value, as with dot products. */
static int one_back(const Step *s, long item, long *seen, float *scores, float *e) {
    const Memory *m = s->memory;
    const long count = in_sight(m, item, seen), until = count ? seen[count - 1] + 1 : 0;
    float *to_q = s->to_q + item * m->size, *to_v = s->to_v + item * m->width;
    const float *values = m->values + item / m->values_share * m->count * m->wide;
    const Memory turned = {.size = m->wide, .width = m->wide};
    regard_fill_zero(to_q, m->size);
    regard_fill_zero(to_v, m->width);
    if (!count || !m->width) return 1;
    dots(&turned, s->sent + item * m->wide, values, seen, count, scores);
    slopes(s->read + item * m->count, seen, scores, count, s->scale);
    for (long j = until, n = count; j-- > 0;) /* from the end, where none is overwritten */
        scores[j] = n && seen[n - 1] == j ? scores[--n] : 0.0f;
    Part part = compared(s, item, e, until);
    if (!part.keys) return 0;
    part.g = scores, part.de = e + 2 * m->width, part.dv = to_v;
    part.df = s->to_keys + item * m->count * m->width;
    regard_additive_item_backward(&part);
    memcpy(to_q, part.de, m->size * sizeof(float));
    return 1;
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { DONE, OUT_OF_RANGE, NO_MEMORY };

typedef struct {
    const Step *step;
    long from, to;
    int result;
} Job;

static void work(void *given) {
    Job *job = given;
    const Memory *m = job->step->memory;
    long *seen = malloc((regard_padded(m->count) + 1) * (sizeof(long) + sizeof(float)));
    float *scores = (float *)(seen + regard_padded(m->count)), *e = NULL;
    if (job->step->v) e = calloc(3 * m->width + 1, sizeof(float));
    job->result = seen && (e || !job->step->v) ? DONE : NO_MEMORY;
    int (*each)(const Step *, long, long *, float *, float *) =
        job->step->additive_back ? one_back : one;
    for (long n = 0; n < job->to - job->from && job->result == DONE; n++) {
        const long item = job->step->back ? job->to - 1 - n : job->from + n;
        job->result = each(job->step, item, seen, scores, e) ? DONE : OUT_OF_RANGE;
    }
    free(seen), free(e);
}

/* ---- what Python calls --------------------------------------------------------------------- */

static int answered(const Step *step, int threads) {
    const long items = step->memory->items;
    Job jobs[MOST_THREADS];
    int result = DONE;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > items) threads = (int)items;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){step, items * t / threads, items * (t + 1) / threads, 0};
    regard_parallel(work, jobs, sizeof(Job), threads);
    for (int t = 0; t < threads; t++) result = jobs[t].result > result ? jobs[t].result : result;
    return result;
}

/* v is NULL for dot products. Steps go to and fro over the items: what the last one ended with is
 * in the cache, where the next one begins. */
int regard_single_query(Memory *memory, const float *q, const float *v, float scale, float *weights,
                float *context, int threads) {
    memory->back = !memory->back;
    Step step = {.memory = memory, .q = q, .v = v, .scale = scale, .weights = weights,
                 .context = context, .back = memory->back};
    return answered(&step, threads);
}

/* The way back of dot products: sent (items, wide) is the gradient of the context. It is a read of
 * the same memory with keys and values exchanged: what reaches a weight is sent . value, and what
 * reaches the query is the sum of the keys, each as often as something reached its score. */
int regard_single_query_backward(const Memory *memory, const float *sent, const float *weights, float scale,
                     float *to_scores, float *to_q, int threads) {
    Memory turned = *memory;
    turned.keys = memory->values, turned.values = memory->keys;
    turned.size = turned.width = memory->wide, turned.wide = memory->width;
    turned.keys_share = memory->values_share, turned.values_share = memory->keys_share;
    Step step = {.memory = &turned, .q = sent, .read = weights, .scale = scale,
                 .weights = to_scores, .context = to_q};
    return answered(&step, threads);
}

/* The way back of additive scores, of items that each have their own keys: what is sent to them is
 * added to to_keys (items, count, width), what is sent to v is set for each item. */
int regard_additive_single_query_backward(const Memory *memory, const float *q, const float *v, const float *sent,
                              const float *weights, float scale, float *to_q, float *to_keys,
                              float *to_v, int threads) {
    Step step = {.memory = memory, .q = q, .v = v, .read = weights, .scale = scale, .sent = sent,
                 .additive_back = 1,
                 .to_q = to_q, .to_keys = to_keys, .to_v = to_v};
    return answered(&step, threads);
}

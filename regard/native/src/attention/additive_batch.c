/* Additive scores of many items, and their backward, on several threads: the loops of additive.h do
 * one item at a time.
 *
 * Shapes, row-major: exp_q (items, rows, width), exp_k (memories, keys, width), v (items, width),
 * scores and grad_scores (items, rows, keys). Item n reads the keys key_index[n], so that beams share
 * theirs; consecutive items of exp_q are q_stride apart, so that exp_q may be a block of rows.
 *
 * exp_q and exp_k are exponentials, with their max_abs; or, if max_abs is below 0, the vectors
 * themselves. Then each thread computes the exponentials of one item's keys and of a run of its rows,
 * which stay in its cache; nothing of their size is allocated.
 */

#include <stdlib.h>
#include <string.h>

#include "attention/additive.h"

enum { RUN = 64, CACHED_FLOATS = 1 << 16 }; /* rows at a time; floats of keys that fit the cache */

/* A run of rows, counted over all items. An item's gradients of keys and of v belong to the thread
 * that has its first row; one that begins inside an item has its own, which are added at the end. */
typedef struct {
    void (*kernel)(const AdditiveRows *);
    AdditiveRows whole;
    long from, until;
    float max_abs; /* max |q| + max |k|; below 0 if vectors are given */
    int status;
    float *grad_k, *grad_v; /* of an item that another thread begins, or NULL */
} Job;

/* Exponentials of one item at a time. */
typedef struct {
    float *q, *k, max_abs_k;
    long keys_of; /* which memory k is of */
} Exponentials;

static int compute_exponentials(const Job *job, Exponentials *exps, AdditiveRows *part, long memory) {
    const long width = part->width, most = min_long(job->whole.rows, RUN);
    if (!exps->q) {
        exps->q = malloc((most + part->keys) * width * sizeof(float));
        if (!exps->q) return NO_MEMORY;
        exps->k = exps->q + most * width;
    }
    if (exps->keys_of != memory) {
        exps->max_abs_k = regard_exponentials(part->exp_k, exps->k, part->keys, width, width, 1);
        exps->keys_of = memory;
    }
    const float max_abs_q = regard_exponentials(part->exp_q, exps->q, part->rows, width, width, 1);
    part->group = regard_reciprocal_group(max_abs_q + exps->max_abs_k);
    part->exp_q = exps->q, part->exp_k = exps->k;
    return part->group ? DONE : OUT_OF_RANGE;
}

/* Where a run of rows ends: with its item, and after RUN rows if exponentials are computed. */
static long end_of_run(const Job *job, long at) {
    const long item_end = (at / job->whole.rows + 1) * job->whole.rows;
    const long end = min_long(item_end, job->until);
    return job->max_abs < 0.0f && end > at + RUN ? at + RUN : end;
}

/* While a run of rows is computed, prefetch the next one, and its keys if they are others. */
static void plan_prefetch(const Job *job, long at, long item_before, Prefetch *prefetch) {
    const AdditiveRows *w = &job->whole;
    const long item = at / w->rows, row = at % w->rows, rows = end_of_run(job, at) - at;
    const long width = w->width, first = item * w->q_stride + row * width;
    const long backward_tiles = (rows + 7) / 8 * (width / 16);
    const long forward_tiles = (rows + 1) / 2 * ((w->keys + 3) / 4);
    if (w->keys * width > CACHED_FLOATS || rows <= 0) return;
    prefetch_rows(prefetch, w->exp_q + first, width, rows, width);
    if (w->grad_scores) prefetch_rows(prefetch, w->grad_q + first, width, rows, width);
    if (w->key_index[item] != w->key_index[item_before])
        prefetch_rows(prefetch, w->exp_k + w->key_index[item] * w->keys * width, width, w->keys, width);
    if (w->grad_scores && item != item_before)
        prefetch_rows(prefetch, w->grad_k + item * w->keys * width, width, w->keys, width);
    prefetch_over(prefetch, w->grad_scores ? backward_tiles : forward_tiles);
}

static void run(void *given) {
    Job *job = given;
    const AdditiveRows *w = &job->whole;
    Exponentials exps = {.keys_of = -1};
    for (long at = job->from, end; at < job->until && job->status == DONE; at = end) {
        const long item = at / w->rows, row = at % w->rows, first = item * w->rows;
        Prefetch prefetch = {.count = 0};
        AdditiveRows part = *w;
        end = end_of_run(job, at);
        part.prefetch = &prefetch;
        if (end < job->until) plan_prefetch(job, end, item, &prefetch);
        part.rows = end - at;
        part.exp_q = w->exp_q + item * w->q_stride + row * w->width;
        part.exp_k = w->exp_k + w->key_index[item] * w->keys * w->width;
        part.v = w->v + item * w->width;
        part.group = regard_reciprocal_group(job->max_abs);
        if (w->grad_scores) {
            const int is_partial = first < job->from && job->grad_k;
            part.grad_scores = w->grad_scores + (item * w->rows + row) * w->keys;
            part.grad_q = w->grad_q + item * w->q_stride + row * w->width;
            part.grad_k = is_partial ? job->grad_k : w->grad_k + item * w->keys * w->width;
            part.grad_v = is_partial ? job->grad_v : w->grad_v + item * w->width;
            part.overwrite = (is_partial || w->overwrite) && (at == first || at == job->from);
        } else {
            part.scores = w->scores + (item * w->rows + row) * w->keys;
        }
        if (job->max_abs < 0.0f)
            job->status = compute_exponentials(job, &exps, &part, w->key_index[item]);
        if (job->status == DONE) job->kernel(&part);
    }
    free(exps.q);
}

static int divide(Job *jobs, Job whole, long rows, int threads) {
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads > rows) threads = (int)rows;
    if (threads < 1) threads = 1;
    for (int t = 0; t < threads; t++) {
        jobs[t] = whole;
        jobs[t].from = rows * t / threads;
        jobs[t].until = rows * (t + 1) / threads;
    }
    return threads;
}

static int run_all(Job *jobs, int count) {
    int status = DONE;
    regard_parallel(run, jobs, sizeof(Job), count);
    for (int t = 0; t < count; t++) status = jobs[t].status > status ? jobs[t].status : status;
    return status;
}

/* ---- what Python calls --------------------------------------------------------------------- */

int regard_additive_scores(const float *exp_q, const float *exp_k, const float *v,
                           const long *key_index, float *scores, long items, long rows, long keys,
                           long width, long q_stride, float max_abs, int threads) {
    Job jobs[MAX_THREADS];
    AdditiveRows whole = {.exp_q = exp_q, .exp_k = exp_k, .v = v, .key_index = key_index,
                          .scores = scores, .rows = rows, .keys = keys, .width = width,
                          .q_stride = q_stride};
    Job job = {regard_additive_rows_forward, whole, .max_abs = max_abs};
    if (items * rows == 0 || keys == 0) return DONE;
    if (width == 0) fill_zero(scores, items * rows * keys);
    if (width == 0) return DONE;
    return run_all(jobs, divide(jobs, job, items * rows, threads));
}

/* Without a single pair, all gradients are zero. */
static int zero_gradients(const AdditiveRows *w, long items) {
    for (long n = 0; w->rows * w->width > 0 && n < items; n++)
        fill_zero(w->grad_q + n * w->q_stride, w->rows * w->width);
    if (w->overwrite) fill_zero(w->grad_k, items * w->keys * w->width);
    if (w->overwrite) fill_zero(w->grad_v, items * w->width);
    return DONE;
}

/* Writes grad_q, and writes ("overwrite") or adds to grad_k (items, keys, width) and grad_v (items,
 * width), the gradients by grad_scores. */
int regard_additive_backward(const float *exp_q, const float *exp_k, const float *v,
                             const long *key_index, const float *grad_scores, float *grad_q,
                             float *grad_k, float *grad_v, long items, long rows, long keys,
                             long width, long q_stride, float max_abs, int separate_adds,
                             int overwrite, int threads) {
    Job jobs[MAX_THREADS];
    AdditiveRows whole = {.exp_q = exp_q, .exp_k = exp_k, .v = v, .key_index = key_index,
                          .grad_scores = grad_scores, .grad_q = grad_q, .grad_k = grad_k,
                          .grad_v = grad_v, .rows = rows, .keys = keys, .width = width,
                          .q_stride = q_stride, .overwrite = overwrite,
                          .separate_adds = separate_adds};
    Job job = {regard_additive_rows_backward, whole, .max_abs = max_abs};
    if (items * rows * keys * width == 0) return zero_gradients(&whole, items);
    int count = divide(jobs, job, items * rows, threads), status = DONE;
    for (int t = 1; t < count; t++)
        if (jobs[t].from % rows) {
            jobs[t].grad_k = malloc(keys * width * sizeof(float));
            jobs[t].grad_v = malloc(width * sizeof(float));
            if (!jobs[t].grad_k || !jobs[t].grad_v) status = NO_MEMORY;
        }
    if (status == DONE) status = run_all(jobs, count);
    for (int t = 1; t < count; t++) {
        float *to_k = grad_k + jobs[t].from / rows * keys * width;
        float *to_v = grad_v + jobs[t].from / rows * width;
        if (status == DONE && jobs[t].grad_k) {
            for (long n = 0; n < keys * width; n++) to_k[n] += jobs[t].grad_k[n];
            for (long n = 0; n < width; n++) to_v[n] += jobs[t].grad_v[n];
        }
        free(jobs[t].grad_k);
        free(jobs[t].grad_v);
    }
    return status;
}

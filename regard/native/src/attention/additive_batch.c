/* Additive scores of many items, and their way back, shared by threads: the kernels of additive.c
 * do one item at a time.
 *
 * Shapes, row-major: e (items, rows, width), f (some, keys, width), v (items, width), scores and g
 * (items, rows, keys). Item n reads the keys f[which[n]], so that beams share theirs; from one item
 * of e to the next are `stride` numbers, so that a block of rows can be asked for.
 *
 * e and f are exponentials, of vectors that reach so far, or, if `reach` is below 0, what these are
 * to be made of. Then each thread makes those of one item and a run of its rows, which stay in its
 * cache; nothing of their size is held.
 */

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "prefetch.h"

enum { DONE, OUT_OF_RANGE, NO_MEMORY };
enum { RUN = 64, NEAR = 1 << 16 }; /* rows at a time; numbers of keys that the cache has room for */

/* A run of rows, counted over all items. An item's sums of keys and of v belong to the thread that
 * has its first row; one that begins inside an item has sums of its own for it, added at the end. */
typedef struct {
    Kernel kernel;
    Part whole;
    long from, to;
    float reach; /* max |a| + max |b|; below 0 if e and f are a and b */
    int result;
    float *df, *dv; /* its own, or NULL */
} Job;

/* Exponentials of one item at a time. */
typedef struct {
    float *e, *f, reach;
    long of; /* whose keys f is of */
} Made;

static int make(const Job *job, Made *made, Part *part, long memory) {
    const long width = part->width, most = job->whole.rows < RUN ? job->whole.rows : RUN;
    if (!made->e) {
        made->e = malloc((most + part->keys) * width * sizeof(float));
        if (!made->e) return NO_MEMORY;
        made->f = made->e + most * width;
    }
    if (made->of != memory) {
        made->reach = regard_exponentials(part->f, made->f, part->keys, width, width, 1);
        made->of = memory;
    }
    const float far = regard_exponentials(part->e, made->e, part->rows, width, width, 1);
    part->together = regard_reciprocal_group(far + made->reach);
    part->e = made->e, part->f = made->f;
    return part->together ? DONE : OUT_OF_RANGE;
}

/* Where a run of rows that begins so ends: with its item, and soon if exponentials are made of it. */
static long end_of(const Job *job, long at) {
    const long item = (at / job->whole.rows + 1) * job->whole.rows;
    const long end = item < job->to ? item : job->to;
    return job->reach < 0.0f && end > at + RUN ? at + RUN : end;
}

/* While a run of rows is worked on, have the next one brought near, with keys that are not there. */
static void aim(const Job *job, long at, long before, Ahead *ahead) {
    const Part *w = &job->whole;
    const long item = at / w->rows, row = at % w->rows, rows = end_of(job, at) - at, width = w->width;
    const long turns = w->g ? (rows + 7) / 8 * (width / 16) : (rows + 1) / 2 * ((w->keys + 3) / 4);
    if (w->keys * width > NEAR || rows <= 0) return;
    ahead_of(ahead, w->e + item * w->stride + row * width, width, rows, width);
    if (w->g) ahead_of(ahead, w->de + item * w->stride + row * width, width, rows, width);
    if (w->which[item] != w->which[before])
        ahead_of(ahead, w->f + w->which[item] * w->keys * width, width, w->keys, width);
    if (w->g && item != before) ahead_of(ahead, w->df + item * w->keys * width, width, w->keys, width);
    ahead_within(ahead, turns);
}

static void work(void *given) {
    Job *job = given;
    const Part *w = &job->whole;
    Made made = {.of = -1};
    for (long at = job->from, end; at < job->to && job->result == DONE; at = end) {
        const long item = at / w->rows, row = at % w->rows, first = item * w->rows;
        Ahead ahead = {.count = 0};
        Part part = *w;
        end = end_of(job, at);
        part.ahead = &ahead;
        if (end < job->to) aim(job, end, item, &ahead);
        part.rows = end - at;
        part.e = w->e + item * w->stride + row * w->width;
        part.f = w->f + w->which[item] * w->keys * w->width;
        part.v = w->v + item * w->width;
        part.together = regard_reciprocal_group(job->reach);
        if (w->g) {
            const int own = first < job->from && job->df;
            part.g = w->g + (item * w->rows + row) * w->keys;
            part.de = w->de + item * w->stride + row * w->width;
            part.df = own ? job->df : w->df + item * w->keys * w->width;
            part.dv = own ? job->dv : w->dv + item * w->width;
            part.fresh = (own || w->fresh) && (at == first || at == job->from);
        } else {
            part.scores = w->scores + (item * w->rows + row) * w->keys;
        }
        if (job->reach < 0.0f) job->result = make(job, &made, &part, w->which[item]);
        if (job->result == DONE) job->kernel(&part);
    }
    free(made.e);
}

static int divide(Job *jobs, Job like, long total, int threads) {
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > total) threads = (int)total;
    if (threads < 1) threads = 1;
    for (int t = 0; t < threads; t++) {
        jobs[t] = like;
        jobs[t].from = total * t / threads;
        jobs[t].to = total * (t + 1) / threads;
    }
    return threads;
}

static int share(Job *jobs, int count) {
    int result = DONE;
    regard_parallel(work, jobs, sizeof(Job), count);
    for (int t = 0; t < count; t++) result = jobs[t].result > result ? jobs[t].result : result;
    return result;
}

/* ---- what Python calls --------------------------------------------------------------------- */

int regard_additive_scores(const float *e, const float *f, const float *v, const long *which,
                           float *scores, long items, long rows, long keys, long width,
                           long stride, float reach, int threads) {
    Job jobs[MOST_THREADS];
    Part whole = {.e = e, .f = f, .v = v, .which = which, .scores = scores, .rows = rows,
                  .keys = keys, .width = width, .stride = stride};
    Job like = {regard_additive_item_forward, whole, .reach = reach};
    if (items * rows == 0 || keys == 0) return DONE;
    if (width == 0) regard_fill_zero(scores, items * rows * keys);
    if (width == 0) return DONE;
    return share(jobs, divide(jobs, like, items * rows, threads));
}

/* Where there is not one pair, nothing is sent. */
static int send_nothing(const Part *w, long items) {
    for (long n = 0; w->rows * w->width > 0 && n < items; n++)
        regard_fill_zero(w->de + n * w->stride, w->rows * w->width);
    if (w->fresh) regard_fill_zero(w->df, items * w->keys * w->width);
    if (w->fresh) regard_fill_zero(w->dv, items * w->width);
    return DONE;
}

/* Sets de, and sets ("fresh") or adds to df (items, keys, width) and dv (items, width), what the
 * gradient g of the scores sends back. */
int regard_additive_backward(const float *e, const float *f, const float *v, const long *which,
                             const float *g, float *de, float *df, float *dv, long items,
                             long rows, long keys, long width, long stride, float reach,
                             int apart, int fresh, int threads) {
    Job jobs[MOST_THREADS];
    Part whole = {.e = e, .f = f, .v = v, .which = which, .g = g, .de = de, .df = df, .dv = dv,
                  .rows = rows, .keys = keys, .width = width, .stride = stride, .fresh = fresh,
                  .apart = apart};
    Job like = {regard_additive_item_backward, whole, .reach = reach};
    if (items * rows * keys * width == 0) return send_nothing(&whole, items);
    int count = divide(jobs, like, items * rows, threads), result = DONE;
    for (int t = 1; t < count; t++)
        if (jobs[t].from % rows) {
            jobs[t].df = malloc(keys * width * sizeof(float));
            jobs[t].dv = malloc(width * sizeof(float));
            if (!jobs[t].df || !jobs[t].dv) result = NO_MEMORY;
        }
    if (result == DONE) result = share(jobs, count);
    for (int t = 1; t < count; t++) {
        float *to = df + jobs[t].from / rows * keys * width;
        float *to_v = dv + jobs[t].from / rows * width;
        if (result == DONE && jobs[t].df) {
            for (long n = 0; n < keys * width; n++) to[n] += jobs[t].df[n];
            for (long n = 0; n < width; n++) to_v[n] += jobs[t].dv[n];
        }
        free(jobs[t].df);
        free(jobs[t].dv);
    }
    return result;
}

/* Softmax reads of dot products, and their backward: scores and weights of a block of rows stay in the
 * cache, and all weights are stored only if they are saved for backward.
 *
 *     forward     p = softmax(factor q k'),  context = p v
 *     backward    g = factor p (grad_context v' - sum_j p grad_context v'),
 *                 grad_v = p' grad_context,  grad_q = g k,  grad_k = g' q
 *
 * Backward is given the weights, or computes them again from the same scores and from each row's
 * maximum and scale: no digit is lost to how large they are.
 *
 * Each item has rows of queries, and keys and values of its own or shared with others: all is found
 * by strides, and sharing is a stride of 0. A row reads a span of the keys.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/row_block.h"

enum { PREFETCHED_KEYS = 512 };

/* From an item to the next, along both batch axes, and from a row to the next, in floats. */
typedef struct {
    long outer, inner, row;
} Strides;

/* DOT_SOFTMAX in signatures.py has the same fields in the same order. */
typedef struct {
    const float *q, *k, *v, *grad_context; /* grad_context: in backward */
    const long *first, *end;               /* of each row's span; NULL if all read all */
    float *context;
    float *row_max, *row_scale; /* if STATISTICS are saved: of each row, and 1 / its sum */
    float *weights;             /* if WEIGHTS are: all, in rows padded to a multiple of 16 */
    float *grad_q, *grad_k, *grad_v; /* NULL if not needed */
    Strides of_q, of_k, of_v, of_grad_context, of_span, of_context, of_grad_q, of_grad_k, of_grad_v;
    long slab_k, slab_v; /* where items share, each thread has its own gradients, so far apart; else 0 */
    long outer, inner, rows, keys, size, value_size;
    float factor;
    int is_backward, saved; /* said by flags: a pointer to no elements may be NULL */
} Args;

enum { NOTHING, STATISTICS, WEIGHTS };

/* One item, and some of its rows. */
typedef struct {
    long outer, inner, from, count;
    ConstRows q, k, v, grad_context;
    Rows grad_k, grad_v; /* in backward: the result itself, or a workspace */
} Item;

/* What one thread works in. */
typedef struct {
    RowBlock block;
    Vec *k, *v;              /* transposed: (keys / LANES, size), (keys / LANES, value_size) */
    float *weights, *grad;   /* (BLOCK_ROWS, stride): scores, then weights; their gradients */
    float *grad_k, *grad_v;  /* (keys, size), (keys, value_size) */
    float *padded[3];        /* q, grad_context, and keys or values, if their last vector is partial */
} Workspace;

INLINE long offset(const Strides *strides, const Item *item, long row) {
    return item->outer * strides->outer + item->inner * strides->inner + row * strides->row;
}

INLINE ConstRows rows_of(const float *start, const Strides *strides, const Item *item, long row) {
    return (ConstRows){start + offset(strides, item, row), strides->row};
}

/* ---- products ------------------------------------------------------------------------------ */

INLINE void dot_scores(const RowBlock *block, ConstRows rows, long count, const Vec *keys, long size,
                       Span span, float *to) {
    const long stride = block->weights_stride;
    const float *each[BLOCK_ROWS]; /* surplus rows of the last tile repeat the last one */
    for (long i = 0; i < round_up(count, TILE_ROWS); i++)
        each[i] = rows.at + min_long(i, count - 1) * rows.stride;
    for (long j = span.first, vecs; j < span.end; j += vecs * LANES) {
        const Vec *tile_keys = keys + j / LANES * size;
        vecs = next_vecs(span.end - j);
        for (long i = 0; i < count; i += TILE_ROWS) {
            block->tiles->dot[vecs - 1](each + i, tile_keys, size, to + i * stride + j, stride);
            prefetch_some(block->prefetch);
        }
    }
}

/* Each key's sum of the rows' vectors by their weights. */
INLINE void sums_of_keys(const RowBlock *block, const float *weights, long count, ConstRows x,
                         Span span, long columns, Rows to, int overwrite) {
    for (long j = span.first; j < span.end; j += TILE_ROWS) {
        const TileTerms terms = {weights + j, x.at, 1, block->weights_stride, x.stride, 0, count, NULL};
        add_product(block, terms, columns, (Rows){to.at + j * to.stride, to.stride}, overwrite);
    }
}

/* ---- spans --------------------------------------------------------------------------------- */

INLINE Span span_of(const Args *a, const Item *item, long row) {
    if (!a->first) return (Span){0, a->keys};
    const long at = offset(&a->of_span, item, item->from + row);
    return (Span){a->first[at] < 0 ? 0 : a->first[at], min_long(a->end[at], a->keys)};
}

/* The union of the spans of a block's rows, in whole vectors. */
INLINE Span span_of_block(const Args *a, const Item *item) {
    Span all = {a->keys, 0};
    for (long i = 0; i < (a->first ? item->count : 1); i++) {
        const Span span = span_of(a, item, i);
        if (span.first >= span.end) continue;
        all.first = min_long(all.first, span.first);
        all.end = span.end > all.end ? span.end : all.end;
    }
    return (Span){all.first / LANES * LANES, round_up(all.end, LANES)};
}

/* ---- a block of rows ----------------------------------------------------------------------- */

INLINE void forward(const Args *a, const Item *item, const Workspace *w) {
    const Span all = span_of_block(a, item);
    const long at = (item->outer * a->inner + item->inner) * a->rows + item->from;
    float scales[BLOCK_ROWS], row_max;
    dot_scores(&w->block, item->q, item->count, w->k, a->size, all, w->weights);
    for (long i = 0; i < item->count; i++) {
        float *scores = w->weights + i * w->block.weights_stride;
        const Span span = span_of(a, item, i);
        scales[i] = a->factor == 1.0f ? exp_row(scores, span, 1.0f, &row_max)
                                      : exp_row(scores, span, a->factor, &row_max);
        if (a->first) zero_outside(scores, span, all);
        if (a->saved == STATISTICS) a->row_max[at + i] = row_max, a->row_scale[at + i] = scales[i];
        if (a->saved == WEIGHTS)
            scale_row(scores, scales[i], all, a->weights + (at + i) * pad_to_16(a->keys));
    }
    weighted_sums(&w->block, w->weights, item->count, item->v,
                  (Span){all.first, min_long(all.end, a->keys)}, a->value_size, scales,
                  (Rows){a->context + offset(&a->of_context, item, item->from), a->of_context.row});
}

INLINE void backward(const Args *a, const Item *item, const Workspace *w) {
    const Span all = span_of_block(a, item);
    const long size = round_up(a->size, LANES), value_size = round_up(a->value_size, LANES);
    const long stride = w->block.weights_stride;
    const long at = (item->outer * a->inner + item->inner) * a->rows + item->from;
    const int overwrite = !item->from && !a->first;
    if (a->saved == STATISTICS)
        dot_scores(&w->block, item->q, item->count, w->k, a->size, all, w->weights);
    dot_scores(&w->block, item->grad_context, item->count, w->v, a->value_size, all, w->grad);
    for (long i = 0; i < item->count; i++) {
        float *weights = w->weights + i * stride, *grad = w->grad + i * stride;
        const Span span = span_of(a, item, i);
        if (a->saved == WEIGHTS)
            scale_row(a->weights + (at + i) * pad_to_16(a->keys), 1.0f, all, weights);
        else
            recompute_weights(weights, span, a->factor, a->row_max[at + i], a->row_scale[at + i]);
        softmax_backward(weights, grad, span, a->factor);
        if (a->first) zero_outside(weights, span, all), zero_outside(grad, span, all);
    }
    if (a->grad_v)
        sums_of_keys(&w->block, w->weights, item->count, item->grad_context, all, value_size,
                     item->grad_v, overwrite);
    if (a->grad_k)
        sums_of_keys(&w->block, w->grad, item->count, item->q, all, size, item->grad_k, overwrite);
    if (a->grad_q)
        weighted_sums(&w->block, w->grad, item->count, item->k,
                      (Span){all.first, min_long(all.end, a->keys)}, a->size, NULL,
                      (Rows){a->grad_q + offset(&a->of_grad_q, item, item->from), a->of_grad_q.row});
}

/* ---- items --------------------------------------------------------------------------------- */

/* While this item is computed, prefetch the next one, unless it is too long to stay in the cache. */
INLINE void plan_prefetch(const Args *a, const Item *next, Prefetch *prefetch) {
    prefetch->count = prefetch->current = 0;
    if (a->keys > PREFETCHED_KEYS) return;
#define PLAN(name, rows, size) \
    if (a->name)               \
    prefetch_rows(prefetch, a->name + offset(&a->of_##name, next, 0), a->of_##name.row, rows, size)
    PLAN(k, a->keys, a->size);
    PLAN(v, a->keys, a->value_size);
    PLAN(q, a->rows, a->size);
    PLAN(grad_context, a->rows, a->value_size);
    PLAN(context, a->rows, a->value_size);
    PLAN(grad_q, a->rows, a->size);
    PLAN(grad_k, a->keys, a->size);
    PLAN(grad_v, a->keys, a->value_size);
    const long columns = round_up(a->keys, TILE_COLUMNS) + round_up(a->size, TILE_COLUMNS);
    const long tiles = round_up(a->rows, TILE_ROWS) / TILE_ROWS * columns / TILE_COLUMNS;
    prefetch_over(prefetch, a->is_backward ? tiles * 5 / 2 : tiles);
}

INLINE Item item_at(const Args *a, long number) {
    return (Item){.outer = number / a->inner, .inner = number % a->inner};
}

/* Transpose and pad keys and values, unless they are those of the item before. */
INLINE Item prepare_item(const Args *a, const Workspace *w, long number, const float *before[2]) {
    Item item = item_at(a, number);
    item.k = rows_of(a->k, &a->of_k, &item, 0), item.v = rows_of(a->v, &a->of_v, &item, 0);
    if (item.k.at != before[0] && !(a->is_backward && a->saved == WEIGHTS))
        transpose_keys(&w->block, item.k, a->keys, a->size, w->k);
    if (item.v.at != before[1] && a->is_backward)
        transpose_keys(&w->block, item.v, a->keys, a->value_size, w->v);
    before[0] = item.k.at, before[1] = item.v.at;
    if (a->is_backward)
        item.k = pad_rows(item.k, a->keys, a->size, w->padded[2]);
    else
        item.v = pad_rows(item.v, a->keys, a->value_size, w->padded[2]);
    return item;
}

typedef struct {
    const Args *args;
    long from, until; /* rows, counted over all items; in backward items */
    int number, status;
} Job;

INLINE void forward_items(const Job *job, const Workspace *w) {
    const Args *a = job->args;
    const float *before[2] = {NULL, NULL};
    Item item = {0};
    for (long at = job->from, last = -1; at < job->until; at += item.count) {
        const long number = at / a->rows, end = min_long((number + 1) * a->rows, job->until);
        if (number != last) {
            const Item next = item_at(a, number + 1);
            item = prepare_item(a, w, number, before), last = number;
            if (end < job->until) plan_prefetch(a, &next, w->block.prefetch);
        }
        item.from = at % a->rows, item.count = min_long(end - at, BLOCK_ROWS);
        item.q = rows_of(a->q, &a->of_q, &item, item.from);
        forward(a, &item, w);
    }
}

/* The gradient of an item's keys or values: written, or added to this thread's own sum. */
INLINE void store_gradient(Rows from, long count, long size, Rows to, int shared) {
    if (!shared) copy_scaled(from, count, size, NULL, to);
    for (long j = 0; shared && j < count; j++)
#pragma omp simd
        for (long n = 0; n < size; n++) to.at[j * to.stride + n] += from.at[j * from.stride + n];
}

/* Can an item's gradients be summed in place? One block of rows computes all of them then. */
INLINE int in_place(const Args *a, long size, long slab) {
    return !slab && !a->first && a->rows > 0 && a->rows <= BLOCK_ROWS && size % LANES == 0 &&
           a->keys % LANES == 0;
}

/* Where this thread's gradients of an item belong; NULL if they are not needed. */
INLINE Rows gradient_of(float *start, const Strides *strides, const Item *item, long slab) {
    return (Rows){start ? start + offset(strides, item, 0) + slab : NULL, strides->row};
}

INLINE void backward_items(const Job *job, const Workspace *w) {
    const Args *a = job->args;
    const long keys = round_up(a->keys, LANES);
    const long size = round_up(a->size, LANES), value_size = round_up(a->value_size, LANES);
    const float *before[2] = {NULL, NULL};
    for (long number = job->from; number < job->until; number++) {
        Item item = prepare_item(a, w, number, before);
        const Item next = item_at(a, number + 1);
        if (number + 1 < job->until) plan_prefetch(a, &next, w->block.prefetch);
        if (a->first || !a->rows) { /* some keys may be read by no row */
            memset(w->grad_k, 0, keys * size * sizeof(float));
            memset(w->grad_v, 0, keys * value_size * sizeof(float));
        }
        const Rows grad_k = gradient_of(a->grad_k, &a->of_grad_k, &item, job->number * a->slab_k);
        const Rows grad_v = gradient_of(a->grad_v, &a->of_grad_v, &item, job->number * a->slab_v);
        const int k_in_place = in_place(a, a->size, a->slab_k);
        const int v_in_place = in_place(a, a->value_size, a->slab_v);
        item.grad_k = k_in_place ? grad_k : (Rows){w->grad_k, size};
        item.grad_v = v_in_place ? grad_v : (Rows){w->grad_v, value_size};
        for (item.from = 0; item.from < a->rows; item.from += BLOCK_ROWS) {
            item.count = min_long(a->rows - item.from, BLOCK_ROWS);
            item.q = rows_of(a->q, &a->of_q, &item, item.from);
            item.q = pad_rows(item.q, item.count, a->size, w->padded[0]);
            item.grad_context = rows_of(a->grad_context, &a->of_grad_context, &item, item.from);
            item.grad_context =
                pad_rows(item.grad_context, item.count, a->value_size, w->padded[1]);
            backward(a, &item, w);
        }
        if (a->grad_k && !k_in_place)
            store_gradient(item.grad_k, a->keys, a->size, grad_k, a->slab_k > 0);
        if (a->grad_v && !v_in_place)
            store_gradient(item.grad_v, a->keys, a->value_size, grad_v, a->slab_v > 0);
    }
}

/* ---- threads ------------------------------------------------------------------------------- */

static void run(Job *job) {
    const Args *a = job->args;
    const long keys = round_up(a->keys, LANES), stride = keys + LANES, back = a->is_backward;
    const long size = round_up(a->size, LANES), value_size = round_up(a->value_size, LANES);
    const long widest = size > value_size ? size : value_size;
    Prefetch prefetch = {0};
    Workspace w = {.block = {regard_gemm_tiles(), &prefetch, .weights_stride = stride}};
    const struct {
        float **part;
        long floats;
    } parts[] = {
        {(float **)&w.k, keys * a->size},
        {(float **)&w.v, back * keys * a->value_size},
        {&w.weights, BLOCK_ROWS * stride},
        {&w.grad, back * BLOCK_ROWS * stride},
        {&w.block.sums, BLOCK_ROWS * widest},
        {&w.grad_k, back * keys * size},
        {&w.grad_v, back * keys * value_size},
        {&w.padded[0], back * BLOCK_ROWS * size},
        {&w.padded[1], back * BLOCK_ROWS * value_size},
        {&w.padded[2], keys * widest},
    };
    long all = 0;
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) all += round_up(parts[n].floats, LANES);
    float *start = alloc_aligned(sizeof(Vec), all * sizeof(float)), *at = start;
    job->status = start ? DONE : NO_MEMORY;
    if (!start) return;
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++)
        *parts[n].part = at, at += round_up(parts[n].floats, LANES);
    if (a->is_backward)
        backward_items(job, &w);
    else
        forward_items(job, &w);
    free(start);
}

#define JOB_HAS_NUMBER
#include "parallel_rows.h"

/* A NULL pointer must not be moved along. */
INLINE Strides strides_from(const void *start, Strides strides) {
    return start ? strides : (Strides){0};
}

int regard_dot_softmax(const Args *given, int threads) {
    Args a = *given;
    const long items = a.outer * a.inner;
    a.of_q = strides_from(a.q, a.of_q), a.of_k = strides_from(a.k, a.of_k);
    a.of_v = strides_from(a.v, a.of_v), a.of_context = strides_from(a.context, a.of_context);
    a.of_grad_context = strides_from(a.grad_context, a.of_grad_context);
    return parallel_rows((Job){.args = &a}, a.is_backward ? items : items * a.rows, threads);
}

/* Squared distances of all pairs, and softmax reads by distance.
 *
 *     GAUSSIAN   e = factor |q - k|^2
 *     INVERSE    e = factor / max(|q - k|, floor)
 *
 * Distances are computed by subtraction: exact where a query and a key are close, where the three
 * terms of |q|^2 + |k|^2 - 2 q.k would cancel.
 *
 * Shapes, row-major: q (items, rows, size), k (memories, keys, size), v (memories, keys, value_size),
 * to (items, rows, keys) for distances, (items, rows, value_size) for reads; item n has the keys
 * key_index[n] and the values value_index[n].
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/row_block.h"

enum { GAUSSIAN, INVERSE, DISTANCES_ONLY };
enum { MAX_ROWS = 6, MAX_VECS = LANES == 16 ? 2 : 1 }; /* of a tile: its sums fill the registers */
enum { ROWS = 48 };                                    /* of a block: whole tiles */

/* DistanceArguments in signatures.py has the same fields in the same order. */
typedef struct {
    const float *q, *k, *v;
    const long *key_index, *value_index;
    float *to;
    long items, rows, keys, size, value_size;
    float factor, floor;
    int kind;
} Args;

/* What one thread works in. */
typedef struct {
    RowBlock block;
    Vec *k;         /* transposed: (keys / LANES, size) */
    float *weights; /* (ROWS, stride): distances, then weights */
    float *v;       /* padded copy, if the last vector is partial */
} Workspace;

/* ---- distances ----------------------------------------------------------------------------- */

/* R rows against V vectors of keys. Two sums a pair: one alone would lose twice the digits. */
INLINE void distance_tile(const float *q, const Vec *k, long size, Rows to, long columns, const int R,
                          const int V) {
    Vec even[MAX_ROWS][MAX_VECS] = {0}, odd[MAX_ROWS][MAX_VECS] = {0};
    long d = 0;
    for (; d + 2 <= size; d += 2)
        for (int c = 0; c < V; c++)
            for (int r = 0; r < R; r++) {
                const Vec a = q[r * size + d] - k[c * size + d];
                const Vec b = q[r * size + d + 1] - k[c * size + d + 1];
                even[r][c] += a * a, odd[r][c] += b * b;
            }
    for (; d < size; d++)
        for (int c = 0; c < V; c++)
            for (int r = 0; r < R; r++) {
                const Vec a = q[r * size + d] - k[c * size + d];
                even[r][c] += a * a;
            }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < V; c++) {
            const Vec sum = even[r][c] + odd[r][c];
            float *at = to.at + r * to.stride + c * LANES;
            const long left = columns - c * LANES;
            if (left >= LANES)
                *(VecUnaligned *)at = sum;
            else
                memcpy(at, &sum, left * sizeof(float));
        }
}

/* All rows against V vectors of keys, which stay in the cache. */
INLINE void distance_columns(const float *q, long rows, const Vec *k, long size, Rows to, long columns,
                             const int V) {
    long i = 0;
#define TILES(R)              \
    for (; i + R <= rows; i += R) \
        distance_tile(q + i * size, k, size, (Rows){to.at + i * to.stride, to.stride}, columns, R, V);
    TILES(MAX_ROWS)
    TILES(3)
    TILES(1)
}

INLINE void distances(const float *q, long rows, const Vec *k, long size, Rows to, long columns) {
    long j = 0;
    for (; j + (MAX_VECS - 1) * LANES < columns; j += MAX_VECS * LANES)
        distance_columns(q, rows, k + j / LANES * size, size, (Rows){to.at + j, to.stride},
                         columns - j, MAX_VECS);
    if (j < columns)
        distance_columns(q, rows, k + j / LANES * size, size, (Rows){to.at + j, to.stride},
                         columns - j, 1);
}

/* ---- a block of rows ----------------------------------------------------------------------- */

INLINE void scores_of(const Args *a, float *distances) {
    const float factor = a->factor, least = a->floor * a->floor;
    if (a->kind == INVERSE)
#pragma omp simd
        for (long j = 0; j < a->keys; j++)
            distances[j] = factor / sqrtf(distances[j] < least ? least : distances[j]);
    else
#pragma omp simd
        for (long j = 0; j < a->keys; j++) distances[j] *= factor;
}

INLINE void read_block(const Args *a, const Workspace *w, const float *q, long rows, ConstRows values,
                       float *context) {
    const long stride = w->block.weights_stride;
    const Span all = {0, a->keys};
    float scales[ROWS], row_max;
    distances(q, rows, w->k, a->size, (Rows){w->weights, stride}, round_up(a->keys, LANES));
    for (long i = 0; i < rows; i++) {
        float *scores = w->weights + i * stride;
        scores_of(a, scores);
        scales[i] = exp_row(scores, all, 1.0f, &row_max);
    }
    for (long i = rows; i < round_up(rows, TILE_ROWS); i++) /* tiles read whole rows of them */
        fill_zero(w->weights + i * stride, a->keys);
    weighted_sums(&w->block, w->weights, rows, values, all, a->value_size, scales,
                  (Rows){context, a->value_size});
}

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct {
    const Args *args;
    long from, until; /* rows, counted over all items */
    int status;
} Job;

INLINE void run_blocks(const Job *job, const Workspace *w) {
    const Args *a = job->args;
    const long value_floats = a->keys * a->value_size;
    long keys_of = -1, values_of = -1;
    ConstRows values = {NULL, 0};
    for (long at = job->from, rows; at < job->until; at += rows) {
        const long item = at / a->rows;
        const float *q = a->q + at * a->size;
        rows = min_long(min_long((item + 1) * a->rows, job->until) - at, ROWS);
        if (a->key_index[item] != keys_of) {
            keys_of = a->key_index[item];
            const ConstRows keys = {a->k + keys_of * a->keys * a->size, a->size};
            transpose_keys(&w->block, keys, a->keys, a->size, w->k);
        }
        if (a->kind == DISTANCES_ONLY) {
            distances(q, rows, w->k, a->size, (Rows){a->to + at * a->keys, a->keys}, a->keys);
            continue;
        }
        if (a->value_index[item] != values_of) {
            values_of = a->value_index[item];
            values = (ConstRows){a->v + (value_floats ? values_of * value_floats : 0), a->value_size};
            values = pad_rows(values, a->keys, a->value_size, w->v);
        }
        read_block(a, w, q, rows, values, a->to + at * a->value_size);
    }
}

static void run(Job *job) {
    const Args *a = job->args;
    const long keys = round_up(a->keys, LANES), stride = keys + LANES;
    const long value_size = round_up(a->value_size, LANES), reads = a->kind != DISTANCES_ONLY;
    const long k = keys * a->size, weights = reads * ROWS * stride, sums = reads * ROWS * value_size;
    const long v = reads && a->value_size != value_size ? a->keys * value_size : 0;
    float *start = alloc_aligned(sizeof(Vec), (k + weights + sums + v) * sizeof(float));
    job->status = start ? DONE : NO_MEMORY;
    if (!start) return;
    const Workspace w = {.k = (Vec *)start, .weights = start + k, .v = start + k + weights + sums,
                         .block = {.tiles = regard_gemm_tiles(), .sums = start + k + weights,
                                   .weights_stride = stride}};
    run_blocks(job, &w);
    free(start);
}

#include "parallel_rows.h"

int regard_distance_softmax(const Args *args, int threads) {
    return parallel_rows((Job){.args = args}, args->items * args->rows, threads);
}

int regard_squared_distances(const float *q, const float *k, const long *key_index, float *to,
                             long items, long rows, long keys, long size, int threads) {
    const Args args = {.q = q, .k = k, .key_index = key_index, .to = to, .items = items, .rows = rows,
                       .keys = keys, .size = size, .kind = DISTANCES_ONLY};
    if (items * rows == 0 || keys == 0) return DONE;
    return parallel_rows((Job){.args = &args}, items * rows, threads);
}

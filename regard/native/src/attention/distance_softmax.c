/* A softmax read of all pairs in one go, a block of rows at a time: scores, weights and what they
 * read stay in the cache.
 *
 *     DOT        e = factor q.k
 *     GAUSS      e = factor |q - k|^2
 *     INVERSE    e = factor / max(|q - k|, floor)
 *
 * Distances are taken by subtraction: exact where a query and a key are close, where the three
 * terms of |q|^2 + |k|^2 - 2 q.k would cancel.
 *
 * Shapes, row-major: q (items, rows, size), k (.., keys, size), v (.., keys, wide), to (items, rows,
 * wide); item n reads keys of_keys[n] and values of_values[n]. Keys are turned once, so that a side
 * of them lies together, dimension by dimension: each has a lane of its own, and nothing is
 * summed across. Everything is padded to whole tiles, so that there are no odd ends.
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "softmax.h"

enum { ROWS = 6, SIDES = SIDE == 16 ? 4 : 2, HALF = SIDES / 2, TILE = SIDE * SIDES, TALL = 48, LONG = 128 };
enum { DOT, GAUSS, INVERSE };

/* native.py has the same fields in the same order. */
typedef struct {
    const float *q, *k, *v;
    const long *of_keys, *of_values;
    float *to;
    long items, rows, keys, size, wide;
    float factor, floor;
    int kind;
} Whole;

/* What one thread works in. */
typedef struct {
    float *q;      /* (TALL / ROWS, size, ROWS): a tile of rows, dimension by dimension */
    float *shares; /* (TALL): what each row's weights are to be multiplied by */
    Side *k;       /* (keys / SIDE, size) */
    Side *v;       /* (keys, wide / SIDE) */
    Side *scores;  /* (TALL, keys / SIDE), then weights */
    Side *sums;    /* (TALL, wide / SIDE) */
} Room;

/* ---- scores -------------------------------------------------------------------------------- */

INLINE void dots(const float *q, const Side *k, long size, Side *to, long sides) {
    Side sum[ROWS][SIDES] = {0};
    for (long d = 0; d < size; d++)
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < SIDES; c++) sum[r][c] += q[d * ROWS + r] * k[c * size + d];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < SIDES; c++) to[r * sides + c] = sum[r][c];
}

/* Two sums a pair: one alone would lose twice the digits. */
INLINE void distances(const float *q, const Side *k, long size, Side *to, long sides) {
    Side even[ROWS][HALF] = {0}, odd[ROWS][HALF] = {0};
    long d = 0;
    for (; d + 2 <= size; d += 2)
        for (int c = 0; c < HALF; c++)
            for (int r = 0; r < ROWS; r++) {
                Side a = q[d * ROWS + r] - k[c * size + d];
                Side b = q[(d + 1) * ROWS + r] - k[c * size + d + 1];
                even[r][c] += a * a, odd[r][c] += b * b;
            }
    for (; d < size; d++)
        for (int c = 0; c < HALF; c++)
            for (int r = 0; r < ROWS; r++) {
                Side a = q[d * ROWS + r] - k[c * size + d];
                even[r][c] += a * a;
            }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < HALF; c++) to[r * sides + c] = even[r][c] + odd[r][c];
}

INLINE void score(const Whole *w, const Room *room, long tiles) {
    const long sides = up(w->keys, TILE) / SIDE;
    for (long s = 0; s < sides; s += SIDES)
        for (long t = 0; t < tiles; t++) {
            const float *q = room->q + t * w->size * ROWS;
            const Side *k = room->k + s * w->size;
            Side *to = room->scores + t * ROWS * sides + s;
            if (w->kind == DOT) {
                dots(q, k, w->size, to, sides);
            } else {
                distances(q, k, w->size, to, sides);
                distances(q, k + HALF * w->size, w->size, to + HALF, sides);
            }
        }
}

/* ---- weights ------------------------------------------------------------------------------- */

INLINE void finish(const Whole *w, float *scores) {
    const float factor = w->factor, least = w->floor * w->floor;
    if (w->kind == INVERSE)
#pragma omp simd
        for (long j = 0; j < w->keys; j++)
            scores[j] = factor / sqrtf(scores[j] < least ? least : scores[j]);
    else if (w->kind == GAUSS) /* of dot products the queries have it */
#pragma omp simd
        for (long j = 0; j < w->keys; j++) scores[j] *= factor;
}

/* ---- what is read -------------------------------------------------------------------------- */

/* ROWS rows of SIDES sides, over the keys from one to another. */
INLINE void add(const float *weights, long stride, const Side *v, long across, long from, long until,
                Side *to) {
    Side sum[ROWS][SIDES] = {0};
    for (long j = from; j < until; j++)
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < SIDES; c++)
                sum[r][c] += weights[r * stride + j] * v[j * across + c];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < SIDES; c++) to[r * across + c] += sum[r][c];
}

/* Not all keys at once: some values are read for all rows before they leave the cache, and a sum of
 * few is more exact. */
INLINE void read_values(const Whole *w, const Room *room, long tiles) {
    const long padded = up(w->keys, TILE), across = up(w->wide, TILE) / SIDE;
    memset(room->sums, 0, tiles * ROWS * across * sizeof(Side));
    for (long from = 0; from < w->keys; from += LONG) {
        const long until = from + LONG < w->keys ? from + LONG : w->keys;
        for (long c = 0; c < across; c += SIDES)
            for (long t = 0; t < tiles; t++) {
                const float *weights = (const float *)room->scores + t * ROWS * padded;
                add(weights, padded, room->v + c, across, from, until,
                    room->sums + t * ROWS * across + c);
            }
    }
}

/* ---- a block of rows ----------------------------------------------------------------------- */

INLINE void turn(const Whole *w, const float *k, Side *to) {
    float *lanes = (float *)to;
    for (long j = 0; j < w->keys; j += SIDE) {
        const long some = w->keys - j < SIDE ? w->keys - j : SIDE;
        for (long d = 0; d < w->size; d++)
            for (long i = 0; i < some; i++)
                lanes[(j * w->size) + d * SIDE + i] = k[(j + i) * w->size + d];
    }
}

INLINE void widen(const Whole *w, const float *v, Side *to) {
    const long across = up(w->wide, TILE);
    for (long j = 0; w->wide && j < w->keys; j++)
        memcpy((float *)to + j * across, v + j * w->wide, w->wide * sizeof(float));
}

INLINE void block(const Whole *w, const Room *room, const float *q, float *to, long rows) {
    const long tiles = (rows + ROWS - 1) / ROWS, padded = up(w->keys, TILE);
    const long across = up(w->wide, TILE);
    const float factor = w->kind == DOT ? w->factor : 1.0f;
    for (long i = 0; i < tiles * ROWS; i++) { /* a row too many is the last one again */
        const float *from = q + (i < rows ? i : rows - 1) * w->size;
        float *tile = room->q + i / ROWS * w->size * ROWS + i % ROWS;
        for (long d = 0; d < w->size; d++) tile[d * ROWS] = factor * from[d];
    }
    score(w, room, tiles);
    for (long i = 0; i < tiles * ROWS; i++) {
        float *scores = (float *)room->scores + i * padded, most;
        finish(w, scores);
        room->shares[i] = weigh(scores, (Span){0, w->keys}, 1.0f, &most);
    }
    read_values(w, room, tiles);
    for (long i = 0; i < rows; i++)
        for (long n = 0; n < w->wide; n++)
            to[i * w->wide + n] = room->shares[i] * ((float *)room->sums)[i * across + n];
}

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct {
    const Whole *whole;
    long from, until; /* rows, counted over all items */
    int failed;
} Job;

INLINE void all_blocks(const Job *job, const Room *room) {
    const Whole *w = job->whole;
    long keys = -1, values = -1;
    for (long at = job->from, rows; at < job->until; at += rows) {
        const long item = at / w->rows, end = (item + 1) * w->rows;
        rows = (end < job->until ? end : job->until) - at;
        rows = rows < TALL ? rows : TALL;
        if (w->of_keys[item] != keys) {
            keys = w->of_keys[item];
            turn(w, w->k + keys * w->keys * w->size, room->k);
        }
        if (w->of_values[item] != values) {
            values = w->of_values[item];
            widen(w, w->v + values * w->keys * w->wide, room->v);
        }
        block(w, room, w->q + at * w->size, w->to + at * w->wide, rows);
    }
}

static void work(void *given) {
    Job *job = given;
    const Whole *w = job->whole;
    const long keys = up(w->keys, TILE), across = up(w->wide, TILE) / SIDE;
    const long sizes[] = {keys / SIDE * w->size, keys * across, TALL * keys / SIDE, TALL * across,
                          up(TALL * w->size, SIDE) / SIDE, up(TALL, SIDE) / SIDE};
    long all = 0;
    for (int n = 0; n < 6; n++) all += sizes[n];
    Side *start = regard_alloc(sizeof(Side), all * sizeof(Side)), *at = start;
    job->failed = !start;
    if (!start) return;
    Room room = {.k = at, .v = at += sizes[0], .scores = at += sizes[1], .sums = at += sizes[2]};
    room.q = (float *)(at += sizes[3]), room.shares = (float *)(at += sizes[4]);
    memset(start, 0, (sizes[0] + sizes[1]) * sizeof(Side));
    all_blocks(job, &room);
    free(start);
}

/* Returns 1 if there was no memory. */
int regard_distance_softmax(const Whole *whole, int threads) {
    Job jobs[MOST_THREADS];
    const long total = whole->items * whole->rows;
    int failed = 0;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > total) threads = total > 0 ? (int)total : 1;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){whole, total * t / threads, total * (t + 1) / threads, 0};
    regard_parallel(work, jobs, sizeof(Job), threads);
    for (int t = 0; t < threads; t++) failed |= jobs[t].failed;
    return failed;
}

/* A block of rows against an item's keys and values, in tiles: what softmax reads of all pairs share.
 *
 * Keys are transposed once an item, to (keys / LANES, size, LANES): each key has a lane of its own, and
 * nothing is summed across lanes. Whatever a tile touches is padded to whole vectors and tiles.
 */

#ifndef REGARD_ROW_BLOCK_H
#define REGARD_ROW_BLOCK_H

#include "gemm_tile.h"
#include "prefetch.h"
#include "softmax.h"

enum { BLOCK_ROWS = 64, SUMMED_KEYS = 128 };

typedef struct {
    const float *at;
    long stride;
} ConstRows;

typedef struct {
    float *at;
    long stride;
} Rows;

/* What a thread computes blocks with. */
typedef struct {
    const GemmTiles *tiles;
    Prefetch *prefetch;  /* or NULL */
    float *sums;         /* (BLOCK_ROWS, the longest vector, padded) */
    long weights_stride; /* of the block's weights, (BLOCK_ROWS, keys, padded) */
} RowBlock;

/* Rows whose last vector is whole: they themselves, or a padded copy. */
INLINE ConstRows pad_rows(ConstRows rows, long count, long size, float *copy) {
    const long padded = round_up(size, LANES);
    if (size == padded) return rows;
    for (long i = 0; i < count; i++)
        memcpy(copy + i * padded, rows.at + i * rows.stride, size * sizeof(float));
    return (ConstRows){copy, padded};
}

INLINE void transpose_keys(const RowBlock *block, ConstRows keys, long count, long size, Vec *to) {
    for (long j = 0; j < count; j += LANES, to += size) {
        const float *from = keys.at + j * keys.stride;
        const long some = min_long(count - j, LANES);
        long d = 0;
        for (; some == LANES && d + LANES <= size; d += LANES)
            block->tiles->transpose(from + d, keys.stride, to + d);
        for (; d < size; d++)
            for (long i = 0; i < LANES; i++)
                ((float *)(to + d))[i] = i < some ? from[i * keys.stride + d] : 0.0f;
    }
}

/* A tile of rows of w x, over all columns of x. */
INLINE void add_product(const RowBlock *block, TileTerms terms, long columns, Rows to, int overwrite) {
    for (long n = 0, vecs; n < columns; n += vecs * LANES) {
        vecs = next_vecs(columns - n);
        block->tiles->add[vecs - 1](&terms, n, to.at + n, to.stride, overwrite);
        prefetch_some(block->prefetch);
    }
}

INLINE void copy_scaled(Rows from, long count, long size, const float *scales, Rows to) {
    for (long i = 0; i < count; i++) {
        const float scale = scales ? scales[i] : 1.0f;
#pragma omp simd
        for (long n = 0; n < size; n++) to.at[i * to.stride + n] = scale * from.at[i * from.stride + n];
    }
}

/* Each row's sum of vectors by its weights, times its scale. Not over all keys at once: some vectors
 * are read for all rows before they leave the cache, and a sum of few is more exact. If these fill
 * whole tiles they are summed in place. */
INLINE void weighted_sums(const RowBlock *block, const float *weights, long count, ConstRows x,
                          Span span, long size, const float *scales, Rows to) {
    const long padded = round_up(size, LANES), keys = span.end - span.first, stride = block->weights_stride;
    const int in_place = size == padded && count % TILE_ROWS == 0 && keys > 0 && keys <= SUMMED_KEYS;
    const Rows sums = in_place ? to : (Rows){block->sums, padded};
    if (keys <= 0) memset(block->sums, 0, count * padded * sizeof(float));
    for (long from = span.first; from < span.end; from += SUMMED_KEYS)
        for (long i = 0; i < count; i += TILE_ROWS) {
            const TileTerms terms = {weights + i * stride, x.at, stride, 1, x.stride,
                                     from, min_long(from + SUMMED_KEYS, span.end),
                                     in_place && scales ? scales + i : NULL};
            const Rows tile = {sums.at + i * sums.stride, sums.stride};
            add_product(block, terms, padded, tile, from == span.first);
        }
    if (!in_place) copy_scaled(sums, count, size, scales, to);
}

#endif

/* Matrix products, a tile at a time: as many sums as there are registers. */

#ifndef REGARD_GEMM_TILE_H
#define REGARD_GEMM_TILE_H

#include "simd.h"

#if LANES == 16
enum { TILE_ROWS = 8, TILE_VECS = 2 };
#else
enum { TILE_ROWS = 4, TILE_VECS = 3 };
#endif
enum { TILE_COLUMNS = LANES * TILE_VECS };

/* A tile of the product w x: over t, TILE_ROWS weights w[i, t] times a vector x[t]. */
typedef struct {
    const float *w, *x;
    long w_row, w_column, x_stride, from, until;
    const float *scales; /* of the rows, applied at the end, or NULL */
} TileTerms;

/* Each comes for one vector of columns, two, and so on. */
typedef struct {
    /* to[i] = rows[i] . k for TILE_ROWS rows; the keys are transposed: (keys / LANES, size, LANES) */
    void (*dot[TILE_VECS])(const float *const *rows, const Vec *keys, long size, float *to, long stride);

    /* to[i] (+)= sum_t w[i, t] x[t], from the given column of x on */
    void (*add[TILE_VECS])(const TileTerms *terms, long column, float *to, long stride, int overwrite);

    void (*transpose)(const float *from, long stride, Vec *to);
} GemmTiles;

const GemmTiles *regard_gemm_tiles(void);

/* How many vectors to take next of so many columns: tiles of about equal width. */
INLINE long next_vecs(long columns_left) {
    const long vecs = round_up(columns_left, LANES) / LANES, tiles = round_up(vecs, TILE_VECS) / TILE_VECS;
    return (vecs + tiles - 1) / tiles;
}

#endif

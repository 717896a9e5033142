/* Products of matrices, a tile at a time: so many sums as there are registers for. */

#ifndef REGARD_TILES_H
#define REGARD_TILES_H

#include "simd.h"

#if SIDE == 16
enum { ROWS = 8, SIDES = 2 };
#else
enum { ROWS = 4, SIDES = 3 };
#endif
enum { TILE = SIDE * SIDES };

/* What a tile is summed from: of each t a vector x, by weights of ROWS i. */
typedef struct {
    const float *w, *x;
    long w_i, w_t, row, from, until;
    const float *shares; /* what the sums are multiplied by at last, or NULL */
} Terms;

/* Each comes for one side, two, and so on. */
typedef struct {
    /* to[i] = rows[i] . k for ROWS rows, and keys that lie side by side, dimension by dimension */
    void (*compare[SIDES])(const float *const *rows, const Side *turned, long size, float *to, long row);

    /* to[i] (+)= sum_t w[i, t] x[t] for ROWS i, from the at-th number of the vectors on */
    void (*add[SIDES])(const Terms *terms, long at, float *to, long row, int fresh);

    /* a square of as many rows as a side has numbers to columns */
    void (*turn)(const float *from, long row, Side *to);
} Tiles;

const Tiles *regard_gemm_tiles(void);

/* How many sides to take next of so many numbers: not one, if that was all that is left at the end. */
INLINE long next_sides(long left) {
    const long sides = up(left, SIDE) / SIDE, tiles = up(sides, SIDES) / SIDES;
    return (sides + tiles - 1) / tiles;
}

#endif

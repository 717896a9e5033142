/* Products of matrices, a tile at a time: so many sums as there are registers for. */

#ifndef REGARD_TILES_H
#define REGARD_TILES_H

#include "sides.h"

enum { ROWS = 8, SIDES = 2, TILE = SIDE * SIDES };

/* What a tile is summed from: of each t a vector x, by weights of ROWS i. */
typedef struct {
    const float *w, *x;
    long w_i, w_t, row, from, until;
    const float *shares; /* what the sums are multiplied by at last, or NULL */
} Terms;

/* Each comes for one side, and for two. */
typedef struct {
    /* to[i] = rows[i] . k for ROWS rows, and keys that lie side by side, dimension by dimension */
    void (*compare[SIDES])(const float *const *rows, const Side *turned, long size, float *to, long row);

    /* to[i] (+)= sum_t w[i, t] x[t] for ROWS i, from the at-th number of the vectors on */
    void (*add[SIDES])(const Terms *terms, long at, float *to, long row, int fresh);

    /* sixteen rows of sixteen numbers to columns */
    void (*turn)(const float *from, long row, Side *to);
} Tiles;

const Tiles *regard_tiles(int level);

#endif

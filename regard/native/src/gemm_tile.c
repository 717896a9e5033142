/* The tiles of gemm_tile.h. Each is a function of its own: inlined into larger loops it would lack
 * registers for its pointers.
 */

#include "gemm_tile.h"

INLINE void dot_tile(const float *const *rows, const Vec *keys, long size, int vecs, float *to,
                     long stride) {
    Vec sum[TILE_ROWS][TILE_VECS] = {0};
    for (long d = 0; d < size; d++)
        for (int i = 0; i < TILE_ROWS; i++)
            for (int c = 0; c < vecs; c++) sum[i][c] += rows[i][d] * keys[c * size + d];
    for (int i = 0; i < TILE_ROWS; i++)
        for (int c = 0; c < vecs; c++) *(Vec *)(to + i * stride + c * LANES) = sum[i][c];
}

INLINE void add_tile(const TileTerms *terms, long column, int vecs, float *to, long stride,
                     int overwrite) {
    const float *w = terms->w, *x = terms->x + column;
    const long w_row = terms->w_row, w_column = terms->w_column, x_stride = terms->x_stride;
    Vec sum[TILE_ROWS][TILE_VECS] = {0}; /* of these terms alone: a sum of few is more exact */
    for (long t = terms->from; t < terms->until; t++)
        for (int i = 0; i < TILE_ROWS; i++)
            for (int c = 0; c < vecs; c++)
                sum[i][c] += w[i * w_row + t * w_column] *
                             *(const VecUnaligned *)(x + t * x_stride + c * LANES);
    for (int i = 0; i < TILE_ROWS; i++) {
        const float scale = terms->scales ? terms->scales[i] : 1.0f;
        for (int c = 0; c < vecs; c++) {
            VecUnaligned *at = (VecUnaligned *)(to + i * stride + c * LANES);
            *at = scale * (overwrite ? sum[i][c] : (Vec)*at + sum[i][c]);
        }
    }
}

#define FOR_VECS(n)                                                                                \
    static void dot_##n(const float *const *rows, const Vec *keys, long size, float *to,           \
                        long stride) {                                                             \
        dot_tile(rows, keys, size, n, to, stride);                                                 \
    }                                                                                              \
    static void add_##n(const TileTerms *terms, long column, float *to, long stride,               \
                        int overwrite) {                                                           \
        add_tile(terms, column, n, to, stride, overwrite);                                         \
    }

FOR_VECS(1)
FOR_VECS(2)
#if LANES == 16
#define EACH(what) {what##_1, what##_2}
#else
FOR_VECS(3)
#define EACH(what) {what##_1, what##_2, what##_3}
#endif

static void transpose(const float *from, long stride, Vec *to) { transpose_square(from, stride, to); }

static const GemmTiles tiles = {EACH(dot), EACH(add), transpose};

const GemmTiles *regard_gemm_tiles(void) { return &tiles; }

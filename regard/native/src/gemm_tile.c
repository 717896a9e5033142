/* The tiles of tiles.h. Each is a function of its own: within larger loops there are too few
 * registers for its pointers.
 */

#include "gemm_tile.h"

INLINE void compare(const float *const *rows, const Side *turned, long size, int sides, float *to,
                    long row) {
    Side sum[ROWS][SIDES] = {0};
    for (long d = 0; d < size; d++)
        for (int i = 0; i < ROWS; i++)
            for (int c = 0; c < sides; c++) sum[i][c] += rows[i][d] * turned[c * size + d];
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < sides; c++) *(Side *)(to + i * row + c * SIDE) = sum[i][c];
}

INLINE void add(const Terms *terms, long at, int sides, float *to, long row, int fresh) {
    const float *w = terms->w, *x = terms->x + at;
    const long w_i = terms->w_i, w_t = terms->w_t, x_t = terms->row;
    Side sum[ROWS][SIDES] = {0}; /* of these terms alone: a sum of few is more exact */
    for (long t = terms->from; t < terms->until; t++)
        for (int i = 0; i < ROWS; i++)
            for (int c = 0; c < sides; c++)
                sum[i][c] += w[i * w_i + t * w_t] * *(const Loose *)(x + t * x_t + c * SIDE);
    for (int i = 0; i < ROWS; i++) {
        const float share = terms->shares ? terms->shares[i] : 1.0f;
        for (int c = 0; c < sides; c++) {
            Loose *at = (Loose *)(to + i * row + c * SIDE);
            *at = share * (fresh ? sum[i][c] : (Side)*at + sum[i][c]);
        }
    }
}

#define FOR_SIDES(n)                                                                               \
    static void compare_##n(const float *const *rows, const Side *turned, long size, float *to,    \
                            long row) {                                                            \
        compare(rows, turned, size, n, to, row);                                                   \
    }                                                                                              \
    static void add_##n(const Terms *terms, long at, float *to, long row, int fresh) {             \
        add(terms, at, n, to, row, fresh);                                                         \
    }

FOR_SIDES(1)
FOR_SIDES(2)
#if SIDE == 16
#define EACH(what) {what##_1, what##_2}
#else
FOR_SIDES(3)
#define EACH(what) {what##_1, what##_2, what##_3}
#endif

static void turn(const float *from, long row, Side *to) { turn_square(from, row, to); }

static const Tiles tiles = {EACH(compare), EACH(add), turn};

const Tiles *regard_gemm_tiles(void) { return &tiles; }

/* The tiles of tiles.h. Each is a function of its own: within larger loops there are too few
 * registers for its pointers.
 */

#include "tiles.h"

INLINE void compare(const float *const *rows, const Side *turned, long size, int sides, float *to,
                    long row) {
    Side sum[ROWS][SIDES] = {0};
    for (long d = 0; d < size; d++)
        for (int c = 0; c < sides; c++)
            for (int i = 0; i < ROWS; i++) sum[i][c] += rows[i][d] * turned[c * size + d];
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < sides; c++) *(Side *)(to + i * row + c * SIDE) = sum[i][c];
}

INLINE void add(const Terms *terms, long at, int sides, float *to, long row, int fresh) {
    const float *w = terms->w, *x = terms->x + at;
    const long w_i = terms->w_i, w_t = terms->w_t, x_t = terms->row;
    Side sum[ROWS][SIDES];
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < sides; c++)
            sum[i][c] = fresh ? (Side){0} : (Side)*(Loose *)(to + i * row + c * SIDE);
    for (long t = terms->from; t < terms->until; t++)
        for (int c = 0; c < sides; c++) {
            const Side own = *(const Loose *)(x + t * x_t + c * SIDE);
            for (int i = 0; i < ROWS; i++) sum[i][c] += w[i * w_i + t * w_t] * own;
        }
    for (int i = 0; i < ROWS; i++) {
        const float share = terms->shares ? terms->shares[i] : 1.0f;
        for (int c = 0; c < sides; c++) *(Loose *)(to + i * row + c * SIDE) = share * sum[i][c];
    }
}

#define FOR_SIDES(KIND, level, n)                                                              \
    KIND void compare_##n##level(const float *const *rows, const Side *turned, long size,      \
                                 float *to, long row) {                                        \
        compare(rows, turned, size, n, to, row);                                               \
    }                                                                                          \
    KIND void add_##n##level(const Terms *terms, long at, float *to, long row, int fresh) {    \
        add(terms, at, n, to, row, fresh);                                                     \
    }

#define FOR_LEVEL(KIND, level)                                                                 \
    FOR_SIDES(KIND, level, 1)                                                                  \
    FOR_SIDES(KIND, level, 2)                                                                  \
    KIND void turn##level(const float *from, long row, Side *to) { turn_square(from, row, to); }

#define OF_LEVEL(level) \
    {{compare_1##level, compare_2##level}, {add_1##level, add_2##level}, turn##level}

FOR_LEVEL(static, _any)
#ifdef X86
FOR_LEVEL(AVX2, _avx2)
FOR_LEVEL(AVX512, _avx512)
static const Tiles tiles[] = {OF_LEVEL(_any), OF_LEVEL(_avx2), OF_LEVEL(_avx512)};
#else
static const Tiles tiles[] = {OF_LEVEL(_any)};
#endif

const Tiles *regard_tiles(int level) { return tiles + level; }

/* Vectors as wide as a register, by the compiler's vector extensions.
 *
 * Wider ones than the processor has would live in memory.
 */

#ifndef REGARD_SIMD_H
#define REGARD_SIMD_H

#include <math.h>

#include "common.h"

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wpsabi" /* all that returns a Vec is inlined */
#endif

#define EXP_MIN -87.0f /* e^EXP_MIN is about the smallest normal float */

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef float VecUnaligned __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int VecInt __attribute__((vector_size(4 * LANES)));

/* Lanes of two vectors by index; those of b come after those of a. */
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (VecInt){__VA_ARGS__})
#endif

INLINE Vec select(VecInt mask, Vec yes, Vec no) {
    return (Vec)((mask & (VecInt)yes) | (~mask & (VecInt)no));
}

/* a > b ? a : b, which is b where one of them is NaN; compilers need three instructions for that. */
INLINE Vec vec_max(Vec a, Vec b) {
#if LANES == 16
    return _mm512_max_ps(a, b);
#elif LANES == 8
    return _mm256_max_ps(a, b);
#else
    return select(a > b, a, b);
#endif
}

/* ---- reductions ---------------------------------------------------------------------------- */

/* Each run of 16, 8, 4 or 2 lanes with its halves swapped. */
#if LANES == 16
#define LANE_INDEX 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define FROM_8 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7
#define FROM_4 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11
#define FROM_2 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13
#define FROM_1 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#elif LANES == 8
#define LANE_INDEX 0, 1, 2, 3, 4, 5, 6, 7
#define FROM_4 4, 5, 6, 7, 0, 1, 2, 3
#define FROM_2 2, 3, 0, 1, 6, 7, 4, 5
#define FROM_1 1, 0, 3, 2, 5, 4, 7, 6
#else
#define LANE_INDEX 0, 1, 2, 3
#define FROM_2 2, 3, 0, 1
#define FROM_1 1, 0, 3, 2
#endif

INLINE float horizontal_sum(Vec x) {
#if LANES > 8
    x += SHUFFLE(x, x, FROM_8);
#endif
#if LANES > 4
    x += SHUFFLE(x, x, FROM_4);
#endif
    x += SHUFFLE(x, x, FROM_2);
    x += SHUFFLE(x, x, FROM_1);
    return x[0];
}

INLINE float horizontal_max(Vec x) {
#if LANES > 8
    x = vec_max(SHUFFLE(x, x, FROM_8), x);
#endif
#if LANES > 4
    x = vec_max(SHUFFLE(x, x, FROM_4), x);
#endif
    x = vec_max(SHUFFLE(x, x, FROM_2), x);
    x = vec_max(SHUFFLE(x, x, FROM_1), x);
    return x[0];
}

/* ---- exponentials -------------------------------------------------------------------------- */

/* e^r for |r| <= ln 2 / 2, by a polynomial that is exact to the last bit but one. */
INLINE Vec exp_polynomial(Vec r) {
    Vec s = r * 1.9790244e-4f + 1.3944759e-3f;
    s = s * r + 8.3334977e-3f;
    s = s * r + 4.1666295e-2f;
    s = s * r + 1.6666666e-1f;
    s = s * r + 0.5f;
    return (r * r) * s + r + 1.0f;
}

/* e^x for x <= 0: x = n ln 2 + r. Below EXP_MIN it is 0; NaN stays NaN. */
INLINE Vec exp_nonpositive(Vec x) {
    const float shift = 12582912.0f; /* adding and subtracting it rounds to an integer */
    const VecInt below = x < EXP_MIN;
    const Vec clamped = vec_max((Vec){0} + EXP_MIN, x);
    const Vec z = clamped * 1.44269504f + shift, n = z - shift;
    const Vec r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
    const Vec s = exp_polynomial(r);
    return select(below, (Vec){0}, (Vec)((VecInt)s + ((VecInt)z << 23)));
}

/* ---- transpose of LANES x LANES elements ---------------------------------------------------- */

#if LANES == 16
#define LOW_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LOW_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#elif LANES == 8
#define LOW_4 0, 1, 2, 3, 8, 9, 10, 11
#define HIGH_4 4, 5, 6, 7, 12, 13, 14, 15
#define LOW_2 0, 1, 8, 9, 4, 5, 12, 13
#define HIGH_2 2, 3, 10, 11, 6, 7, 14, 15
#define LOW_1 0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_1 1, 9, 3, 11, 5, 13, 7, 15
#else
#define LOW_2 0, 1, 4, 5
#define HIGH_2 2, 3, 6, 7
#define LOW_1 0, 4, 2, 6
#define HIGH_1 1, 5, 3, 7
#endif

/* Of each square of 2 * step rows, swap the upper right quarter with the lower left one. */
#define SWAP_QUARTERS(rows, step, LOW, HIGH)                                    \
    for (int i = 0; i < LANES; i++)                                             \
        if (!(i & step)) {                                                      \
            const Vec a = rows[i], b = rows[i + step];                          \
            rows[i] = SHUFFLE(a, b, LOW), rows[i + step] = SHUFFLE(a, b, HIGH); \
        }

INLINE void transpose_square(const float *from, long stride, Vec *to) {
    Vec rows[LANES];
    for (int i = 0; i < LANES; i++) rows[i] = *(const VecUnaligned *)(from + i * stride);
#if LANES > 8
    SWAP_QUARTERS(rows, 8, LOW_8, HIGH_8)
#endif
#if LANES > 4
    SWAP_QUARTERS(rows, 4, LOW_4, HIGH_4)
#endif
    SWAP_QUARTERS(rows, 2, LOW_2, HIGH_2)
    SWAP_QUARTERS(rows, 1, LOW_1, HIGH_1)
    for (int i = 0; i < LANES; i++) to[i] = rows[i];
}

#endif

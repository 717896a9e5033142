/* Numbers side by side, as many as a register has, and what is done with them as one.
 *
 * In vectors of the compiler's own. Wider ones than the processor has would be kept in memory.
 */

#ifndef REGARD_SIDES_H
#define REGARD_SIDES_H

#include <math.h>

#include "common.h"

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wpsabi" /* all that returns a side is inlined */
#endif

#define FAINT -87.0f /* of which e^x is the smallest float with all its digits, nearly */

#if defined(__AVX512F__)
#define SIDE 16
#elif defined(__AVX2__)
#define SIDE 8
#else
#define SIDE 4
#endif

typedef float Side __attribute__((vector_size(4 * SIDE)));
typedef float Loose __attribute__((vector_size(4 * SIDE), aligned(4), may_alias)); /* anywhere */
typedef int Order __attribute__((vector_size(4 * SIDE)));

INLINE long up(long count, long unit) { return (count + unit - 1) / unit * unit; }
INLINE long least(long a, long b) { return a < b ? a : b; }

/* Numbers of two sides by their places: those of b come after those of a. */
#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (Order){__VA_ARGS__})
#endif

INLINE Side pick(Order which, Side yes, Side no) {
    return (Side)((which & (Order)yes) | (~which & (Order)no));
}

/* a > b ? a : b, so that b stands where one of them is NaN; said so, compilers take three steps. */
INLINE Side higher(Side a, Side b) {
#if SIDE == 16
    return _mm512_max_ps(a, b);
#elif SIDE == 8
    return _mm256_max_ps(a, b);
#else
    return pick(a > b, a, b);
#endif
}

/* ---- across a side ------------------------------------------------------------------------- */

/* With the other half of each run of 16, 8, 4 or 2. */
#if SIDE == 16
#define COUNTED 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define FROM_8 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7
#define FROM_4 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11
#define FROM_2 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13
#define FROM_1 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#elif SIDE == 8
#define COUNTED 0, 1, 2, 3, 4, 5, 6, 7
#define FROM_4 4, 5, 6, 7, 0, 1, 2, 3
#define FROM_2 2, 3, 0, 1, 6, 7, 4, 5
#define FROM_1 1, 0, 3, 2, 5, 4, 7, 6
#else
#define COUNTED 0, 1, 2, 3
#define FROM_2 2, 3, 0, 1
#define FROM_1 1, 0, 3, 2
#endif

INLINE float total(Side x) {
#if SIDE > 8
    x += MIX(x, x, FROM_8);
#endif
#if SIDE > 4
    x += MIX(x, x, FROM_4);
#endif
    x += MIX(x, x, FROM_2);
    x += MIX(x, x, FROM_1);
    return x[0];
}

INLINE float highest(Side x) {
#if SIDE > 8
    x = higher(MIX(x, x, FROM_8), x);
#endif
#if SIDE > 4
    x = higher(MIX(x, x, FROM_4), x);
#endif
    x = higher(MIX(x, x, FROM_2), x);
    x = higher(MIX(x, x, FROM_1), x);
    return x[0];
}

/* ---- exponentials -------------------------------------------------------------------------- */

/* e^r for |r| <= ln 2 / 2, by a polynomial that is exact to the last bit but one. */
INLINE Side about_one(Side r) {
    Side s = r * 1.9790244e-4f + 1.3944759e-3f;
    s = s * r + 8.3334977e-3f;
    s = s * r + 4.1666295e-2f;
    s = s * r + 1.6666666e-1f;
    s = s * r + 0.5f;
    return (r * r) * s + r + 1.0f;
}

/* e^x for x <= 0: x = n ln 2 + r. Below FAINT it is 0; NaN stays NaN. */
INLINE Side falling(Side x) {
    const float shift = 12582912.0f; /* what is added to it is rounded to a whole number */
    const Order faint = x < FAINT;
    const Side near = higher((Side){0} + FAINT, x);
    const Side z = near * 1.44269504f + shift, n = z - shift;
    const Side r = near - n * 0.693359375f + n * 2.12194440e-4f;
    const Side s = about_one(r);
    return pick(faint, (Side){0}, (Side)((Order)s + ((Order)z << 23)));
}

/* ---- a square of as many sides as one has numbers -------------------------------------------- */

#if SIDE == 16
#define LOW_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LOW_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#elif SIDE == 8
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
#define SWAP(rows, step, LOW, HIGH)                                     \
    for (int i = 0; i < SIDE; i++)                                      \
        if (!(i & step)) {                                              \
            const Side a = rows[i], b = rows[i + step];                 \
            rows[i] = MIX(a, b, LOW), rows[i + step] = MIX(a, b, HIGH); \
        }

/* Rows to columns. */
INLINE void turn_square(const float *from, long row, Side *to) {
    Side rows[SIDE];
    for (int i = 0; i < SIDE; i++) rows[i] = *(const Loose *)(from + i * row);
#if SIDE > 8
    SWAP(rows, 8, LOW_8, HIGH_8)
#endif
#if SIDE > 4
    SWAP(rows, 4, LOW_4, HIGH_4)
#endif
    SWAP(rows, 2, LOW_2, HIGH_2)
    SWAP(rows, 1, LOW_1, HIGH_1)
    for (int i = 0; i < SIDE; i++) to[i] = rows[i];
}

#endif

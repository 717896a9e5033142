/* Sixteen numbers side by side, and what is done with them as one.
 *
 * In vectors of the compiler's own, so that each kind of processor gets the best it has.
 */

#ifndef REGARD_SIDES_H
#define REGARD_SIDES_H

#include <math.h>

#include "additive.h"

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wpsabi" /* all that returns a side is inlined */
#endif

#define FAINT -87.0f /* of which e^x is the smallest float with all its digits, nearly */

enum { SIDE = 16 };

typedef float Side __attribute__((vector_size(64)));
typedef float Loose __attribute__((vector_size(64), aligned(4), may_alias)); /* begins anywhere */
typedef int Order __attribute__((vector_size(64)));

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

INLINE Side higher(Side a, Side b) { return pick(a > b, a, b); }

/* ---- across a side ------------------------------------------------------------------------- */

#define FROM_8 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7
#define FROM_4 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11
#define FROM_2 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13
#define FROM_1 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14

INLINE float total(Side x) {
    x += MIX(x, x, FROM_8);
    x += MIX(x, x, FROM_4);
    x += MIX(x, x, FROM_2);
    x += MIX(x, x, FROM_1);
    return x[0];
}

INLINE float highest(Side x) {
    x = higher(MIX(x, x, FROM_8), x);
    x = higher(MIX(x, x, FROM_4), x);
    x = higher(MIX(x, x, FROM_2), x);
    x = higher(MIX(x, x, FROM_1), x);
    return x[0];
}

/* ---- exponentials -------------------------------------------------------------------------- */

/* e^x for x <= 0: x = n ln 2 + r, and e^r by a polynomial. Below FAINT it is 0; NaN stays NaN. */
INLINE Side falling(Side x) {
    const float shift = 12582912.0f; /* what is added to it is rounded to a whole number */
    const Order faint = x < FAINT;
    const Side near = pick(faint, (Side){0} + FAINT, x);
    const Side z = near * 1.44269504f + shift, n = z - shift;
    const Side r = near - n * 0.693359375f + n * 2.12194440e-4f;
    Side s = r * 1.9790244e-4f + 1.3944759e-3f;
    s = s * r + 8.3334977e-3f;
    s = s * r + 4.1666295e-2f;
    s = s * r + 1.6666666e-1f;
    s = s * r + 0.5f;
    s = (r * r) * s + r + 1.0f;
    return pick(faint, (Side){0}, (Side)((Order)s + ((Order)z << 23)));
}

/* ---- a square of sixteen sides ------------------------------------------------------------- */

#define LOW_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LOW_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31

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
    SWAP(rows, 8, LOW_8, HIGH_8)
    SWAP(rows, 4, LOW_4, HIGH_4)
    SWAP(rows, 2, LOW_2, HIGH_2)
    SWAP(rows, 1, LOW_1, HIGH_1)
    for (int i = 0; i < SIDE; i++) to[i] = rows[i];
}

#endif

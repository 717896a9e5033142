/* Additive scores, e = v . tanh(a + b), for every query a and key b of one item.
 *
 * tanh(a + b) = 1 - 2 r,  r = 1 / (1 + E F),  E = exp(2a),  F = exp(2b).
 *
 * E and F are computed once for each query and each key, so a pair costs one fma, one reciprocal
 * and one fma. We sum v (1/2 - r) and not v r: for small a + b the latter would cancel.
 *
 * Shapes, row-major: E (rows, width), F (keys, width), v (width), scores (rows, keys). width is a
 * multiple of 32; what is padded has v = 0. additive_items.c has many items.
 *
 * The caller sees to the range: one reciprocal serves four elements, two or one, as far as the product
 * of so many (1 + E F) is a float. It depends on how far a and b reach: max |a| + max |b|.
 *
 * The loops themselves are in additive_avx512.c and additive_lanes.c. Plain C, no torch: one source,
 * compiled for each kind of processor.
 */

#include "common.h"

/* 0: any processor, 1: AVX2, 2: AVX-512. */
int regard_level(void) {
#ifdef X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

/* How many elements may share a reciprocal; 0 if none may, or the reach is NaN. */
int regard_reciprocal_group(float reach) {
    const float most = 43.0f; /* (1 + e^2most) is a float, with some room */
    return 4.0f * reach < most ? 4 : 2.0f * reach < most ? 2 : reach < most;
}

/* Is the processor one of AMD's? They have units that add beside those that multiply, for all vectors. */
int regard_is_amd(void) {
#ifdef X86
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
#else
    return 0;
#endif
}

/* How many rows to take next, of `most` at once: two by two, and no few left over at the end. */
long regard_next_rows(long left, long most) {
    if (left >= 3 * most) return most;
    long tiles = (left + most - 1) / most, each = (left + tiles - 1) / tiles;
    each += each % 2;
    return each < left ? each : left;
}

/* ---- exponentials -------------------------------------------------------------------------- */

typedef struct {
    const float *x;
    float *to, largest;
    long rows, size, width;
} Rows;

static void exponentiate(void *given) {
    Rows *r = given;
    r->largest = regard_row_exponentials(r->x, r->to, r->rows, r->size, r->width);
}

/* e^2x of rows, padded with zeros to width. Returns max |x|, or NaN if there is one. */
float regard_exponentials(const float *x, float *to, long rows, long size, long width, int threads) {
    Rows parts[MOST_THREADS];
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > rows) threads = (int)rows;
    float largest = 0.0f;
    for (int t = 0; t < threads; t++) {
        long from = rows * t / threads, until = rows * (t + 1) / threads;
        parts[t] = (Rows){.x = x + from * size, .to = to + from * width, .rows = until - from,
                          .size = size, .width = width};
    }
    regard_parallel(exponentiate, parts, sizeof(Rows), threads);
    for (int t = 0; t < threads; t++)
        if (!(parts[t].largest <= largest)) largest = parts[t].largest;
    return largest;
}

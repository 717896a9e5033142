/* Additive scores, e = v . tanh(q + k), for every query and key of one item.
 *
 * tanh(q + k) = 1 - 2 r,  r = 1 / (1 + Q K),  Q = exp(2q),  K = exp(2k).
 *
 * Q and K are computed once for each query and each key, so a pair costs one fma, one reciprocal and
 * one fma. We sum v (1/2 - r) and not v r: for small q + k the latter would cancel.
 *
 * Shapes, row-major: Q (rows, width), K (keys, width), v (width), scores (rows, keys). width is a
 * multiple of 32; the padding has v = 0. additive_batch.c has many items.
 *
 * One reciprocal serves four elements, two or one, as long as the product of so many (1 + Q K) is a
 * float. The caller sees to that by max |q| + max |k|.
 *
 * The loops themselves are in additive_avx512.c and additive_generic.c. Plain C, no torch: one source,
 * compiled for each instruction set.
 */

#include "attention/additive.h"

/* How many elements may share a reciprocal; 0 if none may, or max_abs is NaN. */
int regard_reciprocal_group(float max_abs) {
    const float most = 43.0f; /* 1 + e^(2 most) is a float, with some margin */
    return 4.0f * max_abs < most ? 4 : 2.0f * max_abs < most ? 2 : max_abs < most;
}

/* How many rows to take next, of `most` at once: an even number, and tiles of about equal height. */
long regard_next_rows(long left, long most) {
    if (left >= 3 * most) return most;
    long tiles = (left + most - 1) / most, each = (left + tiles - 1) / tiles;
    each += each % 2;
    return each < left ? each : left;
}

/* ---- exponentials -------------------------------------------------------------------------- */

typedef struct {
    const float *x;
    float *to, max_abs;
    long rows, size, width;
} ExpJob;

static void run_exponentials(void *given) {
    ExpJob *job = given;
    job->max_abs = regard_row_exponentials(job->x, job->to, job->rows, job->size, job->width);
}

/* e^2x of rows, zero-padded to width. Returns max |x|, or NaN if there is one. */
float regard_exponentials(const float *x, float *to, long rows, long size, long width, int threads) {
    ExpJob jobs[MAX_THREADS];
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads > rows) threads = (int)rows;
    float max_abs = 0.0f;
    for (int t = 0; t < threads; t++) {
        long from = rows * t / threads, until = rows * (t + 1) / threads;
        jobs[t] = (ExpJob){.x = x + from * size, .to = to + from * width, .rows = until - from,
                           .size = size, .width = width};
    }
    regard_parallel(run_exponentials, jobs, sizeof(ExpJob), threads);
    for (int t = 0; t < threads; t++)
        if (!(jobs[t].max_abs <= max_abs)) max_abs = jobs[t].max_abs;
    return max_abs;
}

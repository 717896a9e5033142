/* A step of a GRU, and the way back, each in one walk: r = s(x_r + g_r), z = s(x_z + g_z),
 * n = tanh(x_n + r g_n), h' = n + z (h - n), where x is the inputs' part of the gates and g the
 * state's.
 *
 * Shapes, row-major: inputs, gates and what is sent to them (rows, 3 * size), in the order r, z, n;
 * both (rows, 2 * size), r and z; all else (rows, size).
 */

#include <math.h>

#include "common.h"

/* native.py has the same fields in the same order. */
typedef struct {
    const float *inputs, *gates, *hidden;
    float *both, *fresh, *after;
    const float *sent; /* on the way back, else NULL */
    float *to_inputs, *to_gates, *to_hidden;
    long rows, size;
} Gru;

INLINE float sigmoid(float x) { return 1.0f / (1.0f + regard_exponential(-x)); }

/* By a polynomial where 1 - 2 / (1 + e^2x) would cancel. */
INLINE float hyperbolic(float x) {
    const float z = x * x;
    float near = -5.59102e-3f;
    near = near * z + 2.053882e-2f;
    near = near * z + -5.370966e-2f;
    near = near * z + 1.3331092e-1f;
    near = near * z + -3.333327e-1f;
    near = near * z * x + x;
    const float far = 1.0f - 2.0f / (1.0f + regard_exponential(2.0f * x));
    return z < 0.36f ? near : far;
}

INLINE void forth(const Gru *g, long row) {
    const long size = g->size;
    const float *restrict x = g->inputs + row * 3 * size, *restrict s = g->gates + row * 3 * size;
    const float *restrict h = g->hidden + row * size;
    float *restrict both = g->both + row * 2 * size, *restrict fresh = g->fresh + row * size;
    float *restrict after = g->after + row * size;
#pragma omp simd
    for (long i = 0; i < 2 * size; i++) both[i] = sigmoid(x[i] + s[i]);
#pragma omp simd
    for (long i = 0; i < size; i++) {
        fresh[i] = hyperbolic(x[2 * size + i] + both[i] * s[2 * size + i]);
        after[i] = fresh[i] + both[size + i] * (h[i] - fresh[i]);
    }
}

INLINE void back(const Gru *g, long row) {
    const long size = g->size;
    const float *restrict inner = g->gates + (row * 3 + 2) * size;
    const float *restrict h = g->hidden + row * size, *restrict sent = g->sent + row * size;
    const float *restrict both = g->both + row * 2 * size, *restrict fresh = g->fresh + row * size;
    float *restrict to_x = g->to_inputs + row * 3 * size, *restrict to_h = g->to_hidden + row * size;
    float *restrict to_s = g->to_gates + row * 3 * size;
#pragma omp simd
    for (long i = 0; i < size; i++) {
        const float r = both[i], z = both[size + i], n = fresh[i];
        const float to_n = sent[i] * (1.0f - z) * (1.0f - n * n);
        const float to_r = to_n * inner[i] * r * (1.0f - r);
        const float to_z = sent[i] * (h[i] - n) * z * (1.0f - z);
        to_h[i] = sent[i] * z;
        to_x[i] = to_s[i] = to_r;
        to_x[size + i] = to_s[size + i] = to_z;
        to_x[2 * size + i] = to_n;
        to_s[2 * size + i] = to_n * r;
    }
}

typedef struct {
    const Gru *gru;
    long from, to;
} Job;

INLINE void rows(const Job *job) {
    for (long row = job->from; row < job->to; row++)
        if (job->gru->sent)
            back(job->gru, row);
        else
            forth(job->gru, row);
}

#include "parallel_rows.h"

void regard_gru(const Gru *gru, int threads) {
    by_rows((Job){.gru = gru}, gru->rows, threads);
}

/* A step of a GRU, and its backward, each in one pass: r = s(x_r + h_r), z = s(x_z + h_z),
 * n = tanh(x_n + r h_n), h' = n + z (h - n), where x is the input's part of the gates and h_r, h_z,
 * h_n are the state's.
 *
 * Shapes, row-major: inputs, gates and their gradients (rows, 3 * size), in the order r, z, n;
 * reset_update (rows, 2 * size), r and z; all else (rows, size).
 */

#include <math.h>

#include "common.h"

/* signatures.py has the same fields in the same order. */
typedef struct {
    const float *inputs, *gates, *hidden;
    float *reset_update, *candidate, *next_hidden;
    const float *grad_next; /* in backward, else NULL */
    float *grad_inputs, *grad_gates, *grad_hidden;
    long rows, size;
} Args;

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp_clamped(-x)); }

/* tanh, by a polynomial where 1 - 2 / (1 + e^2x) would cancel. */
INLINE float tanh_exact(float x) {
    const float z = x * x;
    float near = -5.59102e-3f;
    near = near * z + 2.053882e-2f;
    near = near * z + -5.370966e-2f;
    near = near * z + 1.3331092e-1f;
    near = near * z + -3.333327e-1f;
    near = near * z * x + x;
    const float far = 1.0f - 2.0f / (1.0f + exp_clamped(2.0f * x));
    return z < 0.36f ? near : far;
}

INLINE void forward(const Args *a, long row) {
    const long size = a->size;
    const float *restrict x = a->inputs + row * 3 * size, *restrict s = a->gates + row * 3 * size;
    const float *restrict h = a->hidden + row * size;
    float *restrict gates = a->reset_update + row * 2 * size;
    float *restrict candidate = a->candidate + row * size;
    float *restrict next = a->next_hidden + row * size;
#pragma omp simd
    for (long i = 0; i < 2 * size; i++) gates[i] = sigmoid(x[i] + s[i]);
#pragma omp simd
    for (long i = 0; i < size; i++) {
        candidate[i] = tanh_exact(x[2 * size + i] + gates[i] * s[2 * size + i]);
        next[i] = candidate[i] + gates[size + i] * (h[i] - candidate[i]);
    }
}

INLINE void backward(const Args *a, long row) {
    const long size = a->size;
    const float *restrict inner = a->gates + (row * 3 + 2) * size;
    const float *restrict h = a->hidden + row * size, *restrict grad = a->grad_next + row * size;
    const float *restrict gates = a->reset_update + row * 2 * size;
    const float *restrict candidate = a->candidate + row * size;
    float *restrict grad_x = a->grad_inputs + row * 3 * size;
    float *restrict grad_s = a->grad_gates + row * 3 * size;
    float *restrict grad_h = a->grad_hidden + row * size;
#pragma omp simd
    for (long i = 0; i < size; i++) {
        const float r = gates[i], z = gates[size + i], n = candidate[i];
        const float grad_n = grad[i] * (1.0f - z) * (1.0f - n * n);
        const float grad_r = grad_n * inner[i] * r * (1.0f - r);
        const float grad_z = grad[i] * (h[i] - n) * z * (1.0f - z);
        grad_h[i] = grad[i] * z;
        grad_x[i] = grad_s[i] = grad_r;
        grad_x[size + i] = grad_s[size + i] = grad_z;
        grad_x[2 * size + i] = grad_n;
        grad_s[2 * size + i] = grad_n * r;
    }
}

typedef struct {
    const Args *args;
    long from, until;
    int status;
} Job;

INLINE void run(const Job *job) {
    for (long row = job->from; row < job->until; row++)
        if (job->args->grad_next)
            backward(job->args, row);
        else
            forward(job->args, row);
}

#include "parallel_rows.h"

void regard_gru(const Args *args, int threads) {
    parallel_rows((Job){.args = args}, args->rows, threads);
}

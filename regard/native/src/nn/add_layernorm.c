/* A residual connection and the layer norm after it, in one pass over each row.
 *
 * Shapes, row-major: inputs, update and normalized (rows, size); bias, weight and shift (size).
 */

#include <math.h>

#include "common.h"

typedef struct {
    float *inputs;
    const float *update, *bias, *weight, *shift;
    float *normalized, eps;
    long size, from, until;
    int status;
} Job;

INLINE void add(const Job *job, float *restrict inputs, const float *restrict update) {
    const float *restrict bias = job->bias;
    if (bias)
#pragma omp simd
        for (long i = 0; i < job->size; i++) inputs[i] += update[i] + bias[i];
    else
#pragma omp simd
        for (long i = 0; i < job->size; i++) inputs[i] += update[i];
}

INLINE void normalize(const Job *job, const float *restrict x, float *restrict to) {
    const float *restrict weight = job->weight, *restrict shift = job->shift;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < job->size; i++) sum += x[i];
    const float mean = sum / job->size;
#pragma omp simd reduction(+ : squares)
    for (long i = 0; i < job->size; i++) squares += (x[i] - mean) * (x[i] - mean);
    const float scale = 1 / sqrtf(squares / job->size + job->eps);
#pragma omp simd
    for (long i = 0; i < job->size; i++) to[i] = (x[i] - mean) * scale * weight[i] + shift[i];
}

INLINE void run(const Job *job) {
    for (long row = job->from; row < job->until; row++) {
        const long first = row * job->size;
        if (job->update) add(job, job->inputs + first, job->update + first);
        if (job->normalized) normalize(job, job->inputs + first, job->normalized + first);
    }
}

#include "parallel_rows.h"

/* inputs += update + bias, where they are given; then normalized = layer norm of inputs. */
void regard_add_layernorm(float *inputs, const float *update, const float *bias, const float *weight,
                          const float *shift, float eps, float *normalized, long rows, long size,
                          int threads) {
    parallel_rows((Job){inputs, update, bias, weight, shift, normalized, eps, .size = size}, rows,
                  threads);
}

/* What a part of a Transformer's layer found, added to what it was given, and normalised for the
 * next part: one walk over rows that are too few to be worth four.
 *
 * Shapes, row-major: seen, found and normal (rows, size); bias, weight and shift (size).
 */

#include <math.h>

#include "common.h"

typedef struct {
    float *seen;
    const float *found, *bias, *weight, *shift;
    float *normal, least;
    long from, to, size;
} Job;

INLINE void added(const Job *job, float *restrict seen, const float *restrict found) {
    const float *restrict bias = job->bias;
    if (bias)
#pragma omp simd
        for (long i = 0; i < job->size; i++) seen[i] += found[i] + bias[i];
    else
#pragma omp simd
        for (long i = 0; i < job->size; i++) seen[i] += found[i];
}

INLINE void normalised(const Job *job, const float *restrict seen, float *restrict normal) {
    const float *restrict weight = job->weight, *restrict shift = job->shift;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < job->size; i++) sum += seen[i];
    const float mean = sum / job->size;
#pragma omp simd reduction(+ : squares)
    for (long i = 0; i < job->size; i++) squares += (seen[i] - mean) * (seen[i] - mean);
    const float unit = 1 / sqrtf(squares / job->size + job->least);
#pragma omp simd
    for (long i = 0; i < job->size; i++) normal[i] = (seen[i] - mean) * unit * weight[i] + shift[i];
}

INLINE void rows(const Job *job) {
    for (long row = job->from; row < job->to; row++) {
        const long first = row * job->size;
        if (job->found) added(job, job->seen + first, job->found + first);
        if (job->normal) normalised(job, job->seen + first, job->normal + first);
    }
}

#include "parallel_rows.h"

/* seen += found + bias, where there are any; then its norm, if somebody asks for it. */
void regard_add_layernorm(float *seen, const float *found, const float *bias, const float *weight,
                     const float *shift, float least, float *normal, long total, long size,
                     int threads) {
    by_rows((Job){seen, found, bias, weight, shift, normal, least, .size = size},
            total, threads);
}

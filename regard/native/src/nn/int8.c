/* Linear layers in int8: rows of floats to whole numbers, and the products of these to floats.
 *
 * Shapes, row-major: x and levels (rows, size), scales (rows); products (rows, count), of whole
 * numbers that become floats in place, each (count), bias (count) or NULL.
 */

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "common.h"

enum { LEVELS = 127 };

typedef struct {
    const float *x, *each, *bias;
    int8_t *levels;
    float *scales;
    int32_t *products;
    long from, to, size;
    int back; /* from whole numbers to floats? Of no products the pointer does not say */
} Job;

/* The greatest becomes LEVELS. What is not finite makes the scale NaN, and so all that comes of
 * it; its levels are never looked at. */
INLINE void rounded(const float *restrict x, int8_t *restrict levels, float *scale, long size) {
    const float whole = 12582912.0f; /* to add it and take it off is to round */
    float most = 0, none = 0;
#pragma omp simd reduction(max : most) reduction(+ : none)
    for (long i = 0; i < size; i++) {
        const float a = fabsf(x[i]);
        most = a > most ? a : most;
        none += x[i] * 0.0f;
    }
    float unit = most / LEVELS;
    unit = unit < FLT_MIN ? FLT_MIN : unit;
    *scale = unit + none;
#pragma omp simd
    for (long i = 0; i < size; i++) {
        float v = (x[i] / unit + whole) - whole;
        v = v < LEVELS ? v : LEVELS;
        v = v > -LEVELS ? v : -LEVELS;
        levels[i] = (int8_t)(int32_t)v;
    }
}

INLINE void unrounded(const Job *job, int32_t *products, float scale) {
    const float *restrict each = job->each, *restrict bias = job->bias;
    union Number {
        int32_t whole;
        float real;
    } *restrict to = (union Number *)products;
    if (bias)
#pragma omp simd
        for (long j = 0; j < job->size; j++)
            to[j].real = (float)to[j].whole * each[j] * scale + bias[j];
    else
#pragma omp simd
        for (long j = 0; j < job->size; j++) to[j].real = (float)to[j].whole * each[j] * scale;
}

INLINE void rows(const Job *job) {
    for (long row = job->from; row < job->to; row++) {
        const long first = row * job->size;
        if (job->back)
            unrounded(job, job->products + first, job->scales[row]);
        else
            rounded(job->x + first, job->levels + first, job->scales + row, job->size);
    }
}

#include "parallel_rows.h"

void regard_quantize_int8(const float *x, int8_t *levels, float *scales, long total, long size,
                    int threads) {
    by_rows((Job){.x = x, .levels = levels, .scales = scales, .size = size}, total,
           threads);
}

/* products * each * scales + bias. */
void regard_dequantize(int32_t *products, float *scales, const float *each, const float *bias,
                      long total, long count, int threads) {
    by_rows((Job){.products = products, .scales = scales, .each = each, .bias = bias, .size = count,
                  .back = 1},
            total, threads);
}

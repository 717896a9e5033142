/* Around an int8 matrix product: rows of floats to int8, and the int32 products to floats.
 *
 * Shapes, row-major: x and levels (rows, size), row_scales (rows); products (rows, size), which become
 * floats in place, column_scales (size), bias (size) or NULL.
 */

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "common.h"

enum { MAX_LEVEL = 127 };

typedef struct {
    const float *x, *column_scales, *bias;
    int8_t *levels;
    float *row_scales;
    int32_t *products;
    int is_dequantize; /* said by a flag: a pointer to no products may be NULL */
    long size, from, until;
    int status;
} Job;

/* The largest |x| becomes MAX_LEVEL. A non-finite element makes the scale NaN, and so everything that
 * is computed from the row; its levels do not matter then. */
INLINE void quantize(const float *restrict x, int8_t *restrict levels, float *scale, long size) {
    const float shift = 12582912.0f; /* adding and subtracting it rounds to an integer */
    float max_abs = 0, nan_if_nonfinite = 0;
#pragma omp simd reduction(max : max_abs) reduction(+ : nan_if_nonfinite)
    for (long i = 0; i < size; i++) {
        const float a = fabsf(x[i]);
        max_abs = a > max_abs ? a : max_abs;
        nan_if_nonfinite += x[i] * 0.0f;
    }
    float unit = max_abs / MAX_LEVEL;
    unit = unit < FLT_MIN ? FLT_MIN : unit;
    *scale = unit + nan_if_nonfinite;
#pragma omp simd
    for (long i = 0; i < size; i++) {
        float v = (x[i] / unit + shift) - shift;
        v = v < MAX_LEVEL ? v : MAX_LEVEL;
        v = v > -MAX_LEVEL ? v : -MAX_LEVEL;
        levels[i] = (int8_t)(int32_t)v;
    }
}

INLINE void dequantize(const Job *job, int32_t *products, float row_scale) {
    const float *restrict scales = job->column_scales, *restrict bias = job->bias;
    union Element {
        int32_t product;
        float value;
    } *restrict to = (union Element *)products;
    if (bias)
#pragma omp simd
        for (long j = 0; j < job->size; j++)
            to[j].value = (float)to[j].product * scales[j] * row_scale + bias[j];
    else
#pragma omp simd
        for (long j = 0; j < job->size; j++)
            to[j].value = (float)to[j].product * scales[j] * row_scale;
}

INLINE void run(const Job *job) {
    for (long row = job->from; row < job->until; row++) {
        const long first = row * job->size;
        if (job->is_dequantize)
            dequantize(job, job->products + first, job->row_scales[row]);
        else
            quantize(job->x + first, job->levels + first, job->row_scales + row, job->size);
    }
}

#include "parallel_rows.h"

void regard_quantize_int8(const float *x, int8_t *levels, float *row_scales, long rows, long size,
                          int threads) {
    parallel_rows((Job){.x = x, .levels = levels, .row_scales = row_scales, .size = size}, rows,
                  threads);
}

/* products * column_scales * row_scales + bias. */
void regard_dequantize(int32_t *products, float *row_scales, const float *column_scales,
                       const float *bias, long rows, long size, int threads) {
    parallel_rows((Job){.products = products, .row_scales = row_scales,
                        .column_scales = column_scales, .bias = bias, .size = size,
                        .is_dequantize = 1},
                  rows, threads);
}

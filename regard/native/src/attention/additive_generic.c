/* The loops of additive.c without AVX-512, by division: it serves two elements at once, and is as fast
 * there as an approximation and a Newton step.
 */

#include <string.h>

#include "attention/additive.h"
#include "simd.h"

#ifndef __AVX512F__

INLINE Vec load(const float *x) { return *(const VecUnaligned *)x; }

/* A row against C keys at once. Elements go in pairs: the sums of C keys, the row, v and intermediate
 * values fill sixteen registers. */
INLINE void forward_tile(const AdditiveRows *a, long i, long j, const int C) {
    const float *exp_q = a->exp_q + i * a->width, *exp_k = a->exp_k + j * a->width, *v = a->v;
    Vec sum[4] = {0};
    for (long h = 0; h < a->width; h += 2 * LANES) {
        const Vec v0 = load(v + h), v1 = load(v + h + LANES);
        const Vec q0 = load(exp_q + h), q1 = load(exp_q + h + LANES);
        const Vec middle = 0.5f * (v0 + v1);
        for (int c = 0; c < C; c++) {
            const float *key = exp_k + c * a->width + h;
            const Vec d0 = q0 * load(key) + 1.0f;
            const Vec d1 = q1 * load(key + LANES) + 1.0f;
            if (a->group > 1) /* v0/d0 + v1/d1 = (v0 d1 + v1 d0) / (d0 d1) */
                sum[c] += middle - (v0 * d1 + v1 * d0) / (d0 * d1);
            else
                sum[c] += v0 * (0.5f - 1.0f / d0) + v1 * (0.5f - 1.0f / d1);
        }
    }
    for (int c = 0; c < C; c++) {
        float total = 0.0f;
        for (int n = 0; n < LANES; n++) total += sum[c][n];
        a->scores[i * a->keys + j + c] = 2.0f * total;
    }
    prefetch_some(a->prefetch);
}

void regard_additive_rows_forward(const AdditiveRows *a) {
    for (long i = 0; i < a->rows; i++) {
        long j = 0;
        for (; j + 4 <= a->keys; j += 4) forward_tile(a, i, j, 4);
        if (j + 2 <= a->keys) forward_tile(a, i, j, 2), j += 2;
        if (j < a->keys) forward_tile(a, i, j, 1);
    }
}

/* A vector of hidden units of R rows against all keys: the rows' sums stay in registers, and a key's
 * sum is loaded and stored once for R pairs. */
INLINE void backward_tile(const AdditiveRows *a, long i, long h, const int R, const int paired) {
    const int overwrite = a->overwrite && i == 0;
    const long w = a->width, keys = a->keys;
    const float *exp_q = a->exp_q + i * w + h, *exp_k = a->exp_k + h;
    const float *grad_scores = a->grad_scores + i * keys;
    const Vec zero = {0}, v = load(a->v + h);
    Vec half_q[4], grad_q[4] = {zero, zero, zero, zero};
    Vec grad_v[2] = {zero, zero}; /* of every other row: one sum alone would wait for itself */
    for (int r = 0; r < R; r++) half_q[r] = 0.5f * load(exp_q + r * w);
    for (long j = 0; j < keys; j++) {
        const Vec key = load(exp_k + j * w);
        Vec grad_k = zero;
        for (int r = 0; r < R; r += 2) {
            const int pair = r + 1 < R; /* an odd last row is paired with itself, without gradient */
            const Vec d[2] = {half_q[r] * key + 0.5f, half_q[pair ? r + 1 : r] * key + 0.5f};
            const Vec x = 1.0f / (d[0] * d[1]); /* used if paired */
            for (int n = 0; n < 1 + pair; n++) {
                const float g = grad_scores[(r + n) * keys + j];
                const Vec t = 1.0f - (paired ? x * d[1 - n] : 1.0f / d[n]);
                /* g (1 - t^2) by way of g t: then all sums are additions, which most processors
                 * have units for beside those that multiply. */
                const Vec scaled = g * t, slope = g - scaled * t;
                grad_q[r + n] += slope, grad_k += slope, grad_v[n] += scaled;
            }
        }
        VecUnaligned *to = (VecUnaligned *)(a->grad_k + h + j * w);
        *to = overwrite ? v * grad_k : v * grad_k + *to;
    }
    for (int r = 0; r < R; r++) *(VecUnaligned *)(a->grad_q + (i + r) * w + h) = v * grad_q[r];
    VecUnaligned *to = (VecUnaligned *)(a->grad_v + h);
    *to = grad_v[0] + grad_v[1] + (overwrite ? zero : (Vec)*to);
    prefetch_some(a->prefetch);
}

INLINE void backward_rows(const AdditiveRows *a, long i, const int R) {
    for (long h = 0; h < a->width; h += LANES)
        if (a->group > 1)
            backward_tile(a, i, h, R, 1);
        else
            backward_tile(a, i, h, R, 0);
}

void regard_additive_rows_backward(const AdditiveRows *a) {
    for (long i = 0, rows; i < a->rows; i += rows) {
        rows = regard_next_rows(a->rows - i, 4);
        switch (rows) {
            case 4: backward_rows(a, i, 4); break;
            case 3: backward_rows(a, i, 3); break;
            case 2: backward_rows(a, i, 2); break;
            default: backward_rows(a, i, 1);
        }
    }
}

/* e^2x: 2x = n ln 2 + r; 2^n in two factors, for denormal results. No more than e^88; NaN stays NaN. */
INLINE Vec exp_of_double(Vec x) {
    const float shift = 12582912.0f; /* adding and subtracting it rounds to an integer */
    const Vec zero = {0};
    x = select(x < -60.0f, zero - 60.0f, select(x > 44.0f, zero + 44.0f, x));
    const Vec z = x * 2.88539008f + shift, n = z - shift;
    const Vec r = 2.0f * x - n * 0.693359375f + n * 2.12194440e-4f;
    const Vec s = exp_polynomial(r);
    const VecInt exponent = (VecInt)z - (VecInt)(zero + shift), half = exponent >> 1;
    return s * (Vec)((half + 127) << 23) * (Vec)((exponent - half + 127) << 23);
}

/* Rows of x to padded rows of e^2x; returns max |x|, NaN if there is one. */
float regard_row_exponentials(const float *x, float *to, long rows, long size, long width) {
    VecInt max_abs = {0}; /* as integers, positive floats have the same order */
    for (long i = 0; i < rows; i++)
        for (long h = 0; h < width; h += LANES) {
            const long left = size - h < 0 ? 0 : size - h;
            Vec part = {0};
            if (left >= LANES)
                part = load(x + i * size + h);
            else if (left > 0)
                memcpy(&part, x + i * size + h, left * sizeof(float));
            *(VecUnaligned *)(to + i * width + h) = exp_of_double(part);
            if (left < LANES) memset(to + i * width + h + left, 0, (LANES - left) * sizeof(float));
            const VecInt magnitude = (VecInt)part & 0x7fffffff, more = magnitude > max_abs;
            max_abs = (more & magnitude) | (~more & max_abs);
        }
    int32_t bits = 0;
    for (int n = 0; n < LANES; n++) bits = max_abs[n] > bits ? max_abs[n] : bits;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

#endif

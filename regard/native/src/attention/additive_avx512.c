/* The loops of additive.c with AVX-512: an approximate reciprocal and a Newton step are faster than
 * division there, and there are registers for two rows and four keys.
 */

#include <math.h>

#include "attention/additive.h"

#ifdef __AVX512F__

enum { CACHED_FLOATS = 1 << 15 }; /* so many floats of keys stay in the cache while rows pass by */

/* 1 / d: 14 bits by table, the rest by one Newton step. */
INLINE __m512 reciprocal(__m512 d) {
    __m512 r = _mm512_rcp14_ps(d);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(d, r, _mm512_set1_ps(2.0f)));
}

/* A sum of v / d, d = 1 + Q K, as one fraction. */
typedef struct {
    __m512 top, bottom;
} Fraction;

INLINE __m512 one_plus_product(const float *exp_q, const float *exp_k) {
    return _mm512_fmadd_ps(_mm512_loadu_ps(exp_q), _mm512_loadu_ps(exp_k), _mm512_set1_ps(1.0f));
}

/* v0/d0 + v1/d1 = (v0 d1 + v1 d0) / (d0 d1) */
INLINE Fraction sum_of_two(const float *v, const float *exp_q, const float *exp_k) {
    const __m512 d0 = one_plus_product(exp_q, exp_k);
    const __m512 d1 = one_plus_product(exp_q + 16, exp_k + 16);
    const __m512 rest = _mm512_mul_ps(_mm512_loadu_ps(v + 16), d0);
    return (Fraction){_mm512_fmadd_ps(_mm512_loadu_ps(v), d1, rest), _mm512_mul_ps(d0, d1)};
}

INLINE Fraction sum_of_four(const float *v, const float *exp_q, const float *exp_k) {
    const Fraction a = sum_of_two(v, exp_q, exp_k), b = sum_of_two(v + 32, exp_q + 32, exp_k + 32);
    const __m512 rest = _mm512_mul_ps(b.top, a.bottom);
    return (Fraction){_mm512_fmadd_ps(a.top, b.bottom, rest), _mm512_mul_ps(a.bottom, b.bottom)};
}

/* Half of the sum of v, minus the fraction. */
INLINE __m512 half_minus(const float *v, int count, Fraction fraction) {
    __m512 sum = _mm512_loadu_ps(v);
    for (int n = 1; n < count; n++) sum = _mm512_add_ps(sum, _mm512_loadu_ps(v + 16 * n));
    const __m512 middle = _mm512_mul_ps(_mm512_set1_ps(0.5f), sum);
    return _mm512_fnmadd_ps(fraction.top, reciprocal(fraction.bottom), middle);
}

/* What `count` vectors of hidden units add to a score, halved. */
INLINE __m512 half_score(const float *v, const float *exp_q, const float *exp_k, const int count) {
    if (count == 4) return half_minus(v, 4, sum_of_four(v, exp_q, exp_k));
    if (count == 2) return half_minus(v, 2, sum_of_two(v, exp_q, exp_k));
    const __m512 r = reciprocal(one_plus_product(exp_q, exp_k));
    return _mm512_mul_ps(_mm512_loadu_ps(v), _mm512_sub_ps(_mm512_set1_ps(0.5f), r));
}

INLINE void add_scores(__m512 sum[2][4], const float *v, const float *exp_q, const float *exp_k,
                       long width, const int R, const int C, const int count) {
    for (int c = 0; c < C; c++)
        for (int r = 0; r < R; r++) {
            const __m512 part = half_score(v, exp_q + r * width, exp_k + c * width, count);
            sum[r][c] = _mm512_add_ps(sum[r][c], part);
        }
}

/* R rows against C keys at once, so that each load serves several pairs. */
INLINE void forward_tile(const AdditiveRows *a, long i, long j, const int R, const int C) {
    const float *exp_q = a->exp_q + i * a->width, *exp_k = a->exp_k + j * a->width, *v = a->v;
    const long w = a->width;
    __m512 sum[2][4];
    long h = 0;
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) sum[r][c] = _mm512_setzero_ps();
    for (; a->group == 4 && h + 64 <= w; h += 64)
        add_scores(sum, v + h, exp_q + h, exp_k + h, w, R, C, 4);
    for (; a->group > 1 && h < w; h += 32) add_scores(sum, v + h, exp_q + h, exp_k + h, w, R, C, 2);
    for (; h < w; h += 16) add_scores(sum, v + h, exp_q + h, exp_k + h, w, R, C, 1);
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            a->scores[(i + r) * a->keys + j + c] = 2.0f * _mm512_reduce_add_ps(sum[r][c]);
    prefetch_some(a->prefetch);
}

/* Some keys for R rows. */
INLINE void forward_keys(const AdditiveRows *a, long i, long from, long until, const int R) {
    long j = from;
    for (; j + 4 <= until; j += 4) forward_tile(a, i, j, R, 4);
    if (j + 2 <= until) forward_tile(a, i, j, R, 2), j += 2;
    if (j < until) forward_tile(a, i, j, R, 1);
}

/* As many keys as stay in the cache for all rows, then the next. */
void regard_additive_rows_forward(const AdditiveRows *a) {
    const long some = CACHED_FLOATS / a->width < 4 ? 4 : CACHED_FLOATS / a->width / 4 * 4;
    for (long from = 0, until; from < a->keys; from = until) {
        long i = 0;
        until = from + some < a->keys ? from + some : a->keys;
        for (; i + 2 <= a->rows; i += 2) forward_keys(a, i, from, until, 2);
        if (i < a->rows) forward_keys(a, i, from, until, 1);
    }
}

/* tanh = 1 - 1 / d, d = (1 + Q K) / 2, of two rows: one reciprocal serves both, where their product
 * is a float. */
INLINE void tanh_of_two(const __m512 d[2], __m512 t[2], const int paired) {
    const __m512 one = _mm512_set1_ps(1.0f);
    if (paired) {
        const __m512 x = reciprocal(_mm512_mul_ps(d[0], d[1]));
        t[0] = _mm512_fnmadd_ps(x, d[1], one), t[1] = _mm512_fnmadd_ps(x, d[0], one);
    } else {
        t[0] = _mm512_sub_ps(one, reciprocal(d[0])), t[1] = _mm512_sub_ps(one, reciprocal(d[1]));
    }
}

/* Add a pair's gradients: g (1 - t^2) to its row and its key, g t to v. In four operations that
 * multiply; or, with separate adds, in two that multiply and three that add. */
INLINE void add_gradients(__m512 g, __m512 t, __m512 *row, __m512 *key, __m512 *v,
                          const int separate_adds) {
    if (separate_adds) {
        const __m512 scaled = _mm512_mul_ps(g, t), slope = _mm512_fnmadd_ps(scaled, t, g);
        *row = _mm512_add_ps(*row, slope);
        *key = _mm512_add_ps(*key, slope);
        *v = _mm512_add_ps(*v, scaled);
    } else {
        const __m512 slope = _mm512_fnmadd_ps(t, t, _mm512_set1_ps(1.0f));
        *row = _mm512_fmadd_ps(g, slope, *row);
        *key = _mm512_fmadd_ps(g, slope, *key);
        *v = _mm512_fmadd_ps(g, t, *v);
    }
}

/* Sixteen hidden units of R rows against all keys: the rows' sums stay in registers, and a key's
 * sum is loaded and stored once for R pairs. */
INLINE void backward_tile(const AdditiveRows *a, long i, long h, const int R, const int paired,
                          const int separate_adds) {
    const __m512 half = _mm512_set1_ps(0.5f), zero = _mm512_setzero_ps();
    const __m512 v = _mm512_loadu_ps(a->v + h);
    const int overwrite = a->overwrite && i == 0;
    const long w = a->width;
    __m512 half_q[8], grad_q[8], grad_v = zero;
    for (int r = 0; r < R; r++) {
        half_q[r] = _mm512_mul_ps(half, _mm512_loadu_ps(a->exp_q + (i + r) * w + h));
        grad_q[r] = zero;
    }
    for (long j = 0; j < a->keys; j++) {
        __m512 key = _mm512_loadu_ps(a->exp_k + j * w + h), grad_k = zero;
        for (int r = 0; r < R; r += 2) {
            const int pair = r + 1 < R; /* an odd last row is paired with itself, without gradient */
            const __m512 d0 = _mm512_fmadd_ps(half_q[r], key, half);
            __m512 d[2] = {d0, pair ? _mm512_fmadd_ps(half_q[r + 1], key, half) : d0}, t[2];
            tanh_of_two(d, t, paired);
            for (int n = 0; n < 1 + pair; n++) {
                const __m512 g = _mm512_set1_ps(a->grad_scores[(i + r + n) * a->keys + j]);
                add_gradients(g, t[n], &grad_q[r + n], &grad_k, &grad_v, separate_adds);
            }
        }
        float *to = a->grad_k + j * w + h;
        _mm512_storeu_ps(to, _mm512_fmadd_ps(v, grad_k, overwrite ? zero : _mm512_loadu_ps(to)));
    }
    for (int r = 0; r < R; r++)
        _mm512_storeu_ps(a->grad_q + (i + r) * w + h, _mm512_mul_ps(v, grad_q[r]));
    __m512 before = overwrite ? zero : _mm512_loadu_ps(a->grad_v + h);
    _mm512_storeu_ps(a->grad_v + h, _mm512_add_ps(grad_v, before));
    prefetch_some(a->prefetch);
}

INLINE void backward_rows(const AdditiveRows *a, long i, const int R) {
    for (long h = 0; h < a->width; h += 16) {
        if (a->group > 1 && a->separate_adds)
            backward_tile(a, i, h, R, 1, 1);
        else if (a->group > 1)
            backward_tile(a, i, h, R, 1, 0);
        else
            backward_tile(a, i, h, R, 0, 0);
    }
}

void regard_additive_rows_backward(const AdditiveRows *a) {
    for (long i = 0, rows; i < a->rows; i += rows) {
        rows = regard_next_rows(a->rows - i, 8);
        switch (rows) {
            case 8: backward_rows(a, i, 8); break;
            case 7: backward_rows(a, i, 7); break;
            case 6: backward_rows(a, i, 6); break;
            case 5: backward_rows(a, i, 5); break;
            case 4: backward_rows(a, i, 4); break;
            case 3: backward_rows(a, i, 3); break;
            case 2: backward_rows(a, i, 2); break;
            default: backward_rows(a, i, 1);
        }
    }
}

/* e^2x: 2x = n ln 2 + r, and e^r by a polynomial that is exact to the last bit but one. */
INLINE __m512 exp_of_double(__m512 x) {
    x = _mm512_add_ps(x, x);
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 s = _mm512_set1_ps(1.9790244e-4f);
    s = _mm512_fmadd_ps(s, r, _mm512_set1_ps(1.3944759e-3f));
    s = _mm512_fmadd_ps(s, r, _mm512_set1_ps(8.3334977e-3f));
    s = _mm512_fmadd_ps(s, r, _mm512_set1_ps(4.1666295e-2f));
    s = _mm512_fmadd_ps(s, r, _mm512_set1_ps(1.6666666e-1f));
    s = _mm512_fmadd_ps(s, r, _mm512_set1_ps(0.5f));
    s = _mm512_fmadd_ps(_mm512_mul_ps(r, r), s, r);
    return _mm512_scalef_ps(_mm512_add_ps(s, _mm512_set1_ps(1.0f)), n);
}

/* Rows of x to padded rows of e^2x; returns max |x|, NaN if there is one. */
float regard_row_exponentials(const float *x, float *to, long rows, long size, long width) {
    __m512 max_abs = _mm512_setzero_ps();
    __mmask16 nans = 0;
    for (long i = 0; i < rows; i++)
        for (long h = 0; h < width; h += 16) {
            long left = size - h;
            __mmask16 mask = left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
            __m512 part = _mm512_maskz_loadu_ps(mask, x + i * size + h);
            _mm512_storeu_ps(to + i * width + h, _mm512_maskz_mov_ps(mask, exp_of_double(part)));
            nans |= _mm512_cmp_ps_mask(part, part, _CMP_UNORD_Q);
            max_abs = _mm512_max_ps(max_abs, _mm512_abs_ps(part));
        }
    return nans ? NAN : _mm512_reduce_max_ps(max_abs);
}

#endif

/* The loops of additive.c for processors with AVX-512: an approximate reciprocal and a step of Newton's
 * are quicker than division there, and there are registers for two rows and four keys.
 */

#include <math.h>

#include "common.h"
#include "prefetch.h"

#ifdef __AVX512F__

enum { CLOSE = 1 << 15 }; /* so many numbers of keys stay in the cache while rows pass by */

/* 1 / d: 14 bits by table, the rest by one Newton step. */
INLINE __m512 reciprocal(__m512 d) {
    __m512 r = _mm512_rcp14_ps(d);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(d, r, _mm512_set1_ps(2.0f)));
}

/* A sum of v / d, d = 1 + e f, as one quotient. */
typedef struct {
    __m512 top, bottom;
} Quotient;

INLINE __m512 one_more(const float *e, const float *f) {
    return _mm512_fmadd_ps(_mm512_loadu_ps(e), _mm512_loadu_ps(f), _mm512_set1_ps(1.0f));
}

/* v0/d0 + v1/d1 = (v0 d1 + v1 d0) / (d0 d1) */
INLINE Quotient of_two(const float *v, const float *e, const float *f) {
    const __m512 d0 = one_more(e, f), d1 = one_more(e + 16, f + 16);
    const __m512 rest = _mm512_mul_ps(_mm512_loadu_ps(v + 16), d0);
    return (Quotient){_mm512_fmadd_ps(_mm512_loadu_ps(v), d1, rest), _mm512_mul_ps(d0, d1)};
}

INLINE Quotient of_four(const float *v, const float *e, const float *f) {
    const Quotient a = of_two(v, e, f), b = of_two(v + 32, e + 32, f + 32);
    const __m512 rest = _mm512_mul_ps(b.top, a.bottom);
    return (Quotient){_mm512_fmadd_ps(a.top, b.bottom, rest), _mm512_mul_ps(a.bottom, b.bottom)};
}

/* Half of the v, less the quotient. */
INLINE __m512 less(const float *v, int count, Quotient q) {
    __m512 sum = _mm512_loadu_ps(v);
    for (int n = 1; n < count; n++) sum = _mm512_add_ps(sum, _mm512_loadu_ps(v + 16 * n));
    const __m512 middle = _mm512_mul_ps(_mm512_set1_ps(0.5f), sum);
    return _mm512_fnmadd_ps(q.top, reciprocal(q.bottom), middle);
}

/* What `count` sides of hidden units add to a score, halved. */
INLINE __m512 part_of(const float *v, const float *e, const float *f, const int count) {
    if (count == 4) return less(v, 4, of_four(v, e, f));
    if (count == 2) return less(v, 2, of_two(v, e, f));
    const __m512 z = _mm512_sub_ps(_mm512_set1_ps(0.5f), reciprocal(one_more(e, f)));
    return _mm512_mul_ps(_mm512_loadu_ps(v), z);
}

INLINE void add_parts(__m512 sum[2][4], const float *v, const float *e, const float *f, long width,
                      const int R, const int C, const int count) {
    for (int c = 0; c < C; c++)
        for (int r = 0; r < R; r++) {
            const __m512 part = part_of(v, e + r * width, f + c * width, count);
            sum[r][c] = _mm512_add_ps(sum[r][c], part);
        }
}

/* R rows against C keys at once, so that each load serves several pairs. */
INLINE void forward_tile(const Part *p, long i, long j, const int R, const int C) {
    const float *e = p->e + i * p->width, *f = p->f + j * p->width, *v = p->v;
    const long w = p->width;
    __m512 sum[2][4];
    long h = 0;
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) sum[r][c] = _mm512_setzero_ps();
    for (; p->together == 4 && h + 64 <= w; h += 64) add_parts(sum, v + h, e + h, f + h, w, R, C, 4);
    for (; p->together > 1 && h < w; h += 32) add_parts(sum, v + h, e + h, f + h, w, R, C, 2);
    for (; h < w; h += 16) add_parts(sum, v + h, e + h, f + h, w, R, C, 1);
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            p->scores[(i + r) * p->keys + j + c] = 2.0f * _mm512_reduce_add_ps(sum[r][c]);
    ask_ahead(p->ahead);
}

/* Some keys for R rows. */
INLINE void forward_rows(const Part *p, long i, long from, long until, const int R) {
    long j = from;
    for (; j + 4 <= until; j += 4) forward_tile(p, i, j, R, 4);
    if (j + 2 <= until) forward_tile(p, i, j, R, 2), j += 2;
    if (j < until) forward_tile(p, i, j, R, 1);
}

/* As many keys as stay in the cache for all rows, then the next. */
void regard_additive_item_forward(const Part *p) {
    const long some = CLOSE / p->width < 4 ? 4 : CLOSE / p->width / 4 * 4;
    for (long from = 0, until; from < p->keys; from = until) {
        long i = 0;
        until = from + some < p->keys ? from + some : p->keys;
        for (; i + 2 <= p->rows; i += 2) forward_rows(p, i, from, until, 2);
        if (i < p->rows) forward_rows(p, i, from, until, 1);
    }
}

/* tanh = 1 - 1 / d, d = (1 + u) / 2, of two rows: one reciprocal serves both, where their product
 * is a float. */
INLINE void both_tanhs(const __m512 d[2], __m512 t[2], const int paired) {
    const __m512 one = _mm512_set1_ps(1.0f);
    if (paired) {
        const __m512 x = reciprocal(_mm512_mul_ps(d[0], d[1]));
        t[0] = _mm512_fnmadd_ps(x, d[1], one), t[1] = _mm512_fnmadd_ps(x, d[0], one);
    } else {
        t[0] = _mm512_sub_ps(one, reciprocal(d[0])), t[1] = _mm512_sub_ps(one, reciprocal(d[1]));
    }
}

/* What a pair's gradient sends: g (1 - t^2) to its row and its key, g t to v. In four operations that
 * multiply, or, apart, in two, and three that add. */
INLINE void send(__m512 g, __m512 t, __m512 *row, __m512 *key, __m512 *v, const int apart) {
    if (apart) {
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
INLINE void backward_tile(const Part *p, long i, long h, const int R, const int paired,
                          const int apart) {
    const __m512 half = _mm512_set1_ps(0.5f), none = _mm512_setzero_ps();
    const __m512 v = _mm512_loadu_ps(p->v + h);
    const int fresh = p->fresh && i == 0;
    const long w = p->width;
    __m512 e[8], de[8], dv = none;
    for (int r = 0; r < R; r++) {
        e[r] = _mm512_mul_ps(half, _mm512_loadu_ps(p->e + (i + r) * w + h));
        de[r] = none;
    }
    for (long j = 0; j < p->keys; j++) {
        __m512 f = _mm512_loadu_ps(p->f + j * w + h), df = none;
        for (int r = 0; r < R; r += 2) {
            const int pair = r + 1 < R; /* an odd row out stands beside itself, with no gradient */
            const __m512 d0 = _mm512_fmadd_ps(e[r], f, half);
            __m512 d[2] = {d0, pair ? _mm512_fmadd_ps(e[r + 1], f, half) : d0}, t[2];
            both_tanhs(d, t, paired);
            for (int n = 0; n < 1 + pair; n++) {
                const __m512 g = _mm512_set1_ps(p->g[(i + r + n) * p->keys + j]);
                send(g, t[n], &de[r + n], &df, &dv, apart);
            }
        }
        float *to = p->df + j * w + h;
        _mm512_storeu_ps(to, _mm512_fmadd_ps(v, df, fresh ? none : _mm512_loadu_ps(to)));
    }
    for (int r = 0; r < R; r++)
        _mm512_storeu_ps(p->de + (i + r) * w + h, _mm512_mul_ps(v, de[r]));
    __m512 before = fresh ? none : _mm512_loadu_ps(p->dv + h);
    _mm512_storeu_ps(p->dv + h, _mm512_add_ps(dv, before));
    ask_ahead(p->ahead);
}

INLINE void backward_rows(const Part *p, long i, const int R) {
    for (long h = 0; h < p->width; h += 16) {
        if (p->together > 1 && p->apart)
            backward_tile(p, i, h, R, 1, 1);
        else if (p->together > 1)
            backward_tile(p, i, h, R, 1, 0);
        else
            backward_tile(p, i, h, R, 0, 0);
    }
}

void regard_additive_item_backward(const Part *p) {
    for (long i = 0, rows; i < p->rows; i += rows) {
        rows = regard_next_rows(p->rows - i, 8);
        switch (rows) {
            case 8: backward_rows(p, i, 8); break;
            case 7: backward_rows(p, i, 7); break;
            case 6: backward_rows(p, i, 6); break;
            case 5: backward_rows(p, i, 5); break;
            case 4: backward_rows(p, i, 4); break;
            case 3: backward_rows(p, i, 3); break;
            case 2: backward_rows(p, i, 2); break;
            default: backward_rows(p, i, 1);
        }
    }
}

/* e^2x: 2x = n ln 2 + r, and e^r by a polynomial that is exact to the last bit but one. */
INLINE __m512 exponential(__m512 x) {
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

/* Rows of x to padded rows of e^2x; the return is max |x|, NaN if there is one. */
float regard_row_exponentials(const float *x, float *to, long rows, long size, long width) {
    __m512 largest = _mm512_setzero_ps();
    __mmask16 nans = 0;
    for (long i = 0; i < rows; i++)
        for (long h = 0; h < width; h += 16) {
            long left = size - h;
            __mmask16 there = left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
            __m512 part = _mm512_maskz_loadu_ps(there, x + i * size + h);
            __m512 e = _mm512_maskz_mov_ps(there, exponential(part));
            _mm512_storeu_ps(to + i * width + h, e);
            nans |= _mm512_cmp_ps_mask(part, part, _CMP_UNORD_Q);
            largest = _mm512_max_ps(largest, _mm512_abs_ps(part));
        }
    return nans ? NAN : _mm512_reduce_max_ps(largest);
}

#endif

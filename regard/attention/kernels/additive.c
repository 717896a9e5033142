/* Additive scores, e = v . tanh(a + b), for every query a and key b of one item.
 *
 * tanh(a + b) = 1 - 2 r,  r = 1 / (1 + E F),  E = exp(2a),  F = exp(2b).
 *
 * E and F are computed once for each query and each key, so a pair costs one fma, one reciprocal
 * and one fma. We sum v (1/2 - r) and not v r: for small a + b the latter would cancel.
 *
 * Shapes, row-major: E (rows, width), F (keys, width), v (width), scores (rows, keys). width is a
 * multiple of 32; what is padded has v = 0. additive_items.c has many items.
 *
 * The caller sees to the range: "paired" takes one reciprocal for two elements, which needs
 * |a| + |b| < 21; alone they need |a| + |b| < 43. Beyond, E F leaves float.
 *
 * Plain C, no torch: one source, which picks at run time what the processor has.
 */

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "additive.h"
#include "ahead.h"

/* How many rows to take next, of `most` at once: two by two, and no few left over at the end. */
static long next_rows(long left, long most) {
    if (left >= 3 * most) return most;
    long tiles = (left + most - 1) / most, each = (left + tiles - 1) / tiles;
    each += each % 2;
    return each < left ? each : left;
}

/* ---- any processor, and AVX2 ---------------------------------------------------------------- */

#define NAMED(x) x##_any
#define TARGET
#define LANES 4
#include "additive_lanes.h"

#ifdef X86

#define NAMED(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#include "additive_lanes.h"

/* ---- AVX-512 ------------------------------------------------------------------------------- */

#define IN512 __attribute__((target("avx512f,fma"), always_inline)) static inline

/* 1 / d: 14 bits by table, the rest by one Newton step. */
IN512 __m512 reciprocal(__m512 d) {
    __m512 r = _mm512_rcp14_ps(d);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(d, r, _mm512_set1_ps(2.0f)));
}

/* R rows against C keys at once, so that each load serves several pairs. */
IN512 void forward_tile(const Part *p, long i, long j, const int R, const int C) {
    const __m512 one = _mm512_set1_ps(1.0f), half = _mm512_set1_ps(0.5f);
    const float *e = p->e + i * p->width, *f = p->f + j * p->width;
    const long w = p->width;
    __m512 sum[2][4];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) sum[r][c] = _mm512_setzero_ps();
    for (long h = 0; h < w; h += 32) {
        __m512 v0 = _mm512_loadu_ps(p->v + h), v1 = _mm512_loadu_ps(p->v + h + 16);
        __m512 middle = _mm512_mul_ps(half, _mm512_add_ps(v0, v1));
        __m512 e0[2], e1[2];
        for (int r = 0; r < R; r++) {
            e0[r] = _mm512_loadu_ps(e + r * w + h);
            e1[r] = _mm512_loadu_ps(e + r * w + h + 16);
        }
        for (int c = 0; c < C; c++) {
            __m512 f0 = _mm512_loadu_ps(f + c * w + h), f1 = _mm512_loadu_ps(f + c * w + h + 16);
            for (int r = 0; r < R; r++) {
                __m512 d0 = _mm512_fmadd_ps(e0[r], f0, one), d1 = _mm512_fmadd_ps(e1[r], f1, one);
                __m512 part;
                if (p->paired) { /* v0/d0 + v1/d1 = (v0 d1 + v1 d0) / (d0 d1) */
                    __m512 top = _mm512_fmadd_ps(v0, d1, _mm512_mul_ps(v1, d0));
                    part = _mm512_fnmadd_ps(top, reciprocal(_mm512_mul_ps(d0, d1)), middle);
                } else {
                    __m512 top = _mm512_mul_ps(v0, _mm512_sub_ps(half, reciprocal(d0)));
                    part = _mm512_fmadd_ps(v1, _mm512_sub_ps(half, reciprocal(d1)), top);
                }
                sum[r][c] = _mm512_add_ps(sum[r][c], part);
            }
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            p->scores[(i + r) * p->keys + j + c] = 2.0f * _mm512_reduce_add_ps(sum[r][c]);
    ask_ahead(p->ahead);
}

/* All keys for R rows. */
IN512 void forward_rows(const Part *p, long i, const int R) {
    long j = 0;
    for (; j + 4 <= p->keys; j += 4) forward_tile(p, i, j, R, 4);
    if (j + 2 <= p->keys) forward_tile(p, i, j, R, 2), j += 2;
    if (j < p->keys) forward_tile(p, i, j, R, 1);
}

AVX512 void forward_avx512(const Part *p) {
    long i = 0;
    for (; i + 2 <= p->rows; i += 2) forward_rows(p, i, 2);
    if (i < p->rows) forward_rows(p, i, 1);
}

/* r = 1 / (1 + u) of two rows: one reciprocal serves both, where their product is a float. */
IN512 void both_reciprocals(const __m512 u[2], __m512 r[2], const int paired) {
    const __m512 one = _mm512_set1_ps(1.0f);
    __m512 d0 = _mm512_add_ps(u[0], one), d1 = _mm512_add_ps(u[1], one);
    if (paired) {
        __m512 x = reciprocal(_mm512_mul_ps(d0, d1));
        r[0] = _mm512_mul_ps(x, d1), r[1] = _mm512_mul_ps(x, d0);
    } else {
        r[0] = reciprocal(d0), r[1] = reciprocal(d1);
    }
}

/* Sixteen hidden units of R rows against all keys: the rows' sums stay in registers, and a key's
 * sum is loaded and stored once for R pairs. */
IN512 void backward_tile(const Part *p, long i, long h, const int R, const int paired) {
    const __m512 half = _mm512_set1_ps(0.5f), quarter = _mm512_set1_ps(0.25f);
    const __m512 none = _mm512_setzero_ps();
    const __m512 v = _mm512_mul_ps(_mm512_set1_ps(4.0f), _mm512_loadu_ps(p->v + h));
    const int fresh = p->fresh && i == 0;
    const long w = p->width;
    __m512 e[8], de[8], dv = none;
    for (int r = 0; r < R; r++) {
        e[r] = _mm512_loadu_ps(p->e + (i + r) * w + h);
        de[r] = none;
    }
    for (long j = 0; j < p->keys; j++) {
        __m512 f = _mm512_loadu_ps(p->f + j * w + h), df = none;
        for (int r = 0; r < R; r += 2) {
            const int pair = r + 1 < R; /* an odd row out stands beside itself, with no gradient */
            __m512 u[2] = {_mm512_mul_ps(e[r], f), _mm512_mul_ps(e[pair ? r + 1 : r], f)}, x[2];
            both_reciprocals(u, x, paired);
            for (int n = 0; n < 1 + pair; n++) {
                __m512 g = _mm512_set1_ps(p->g[(i + r + n) * p->keys + j]);
                /* r - r^2 = 1/4 - (1/2 - r)^2: as exact as plain code's 1 - tanh^2. */
                __m512 z = _mm512_sub_ps(half, x[n]), t = _mm512_fnmadd_ps(z, z, quarter);
                de[r + n] = _mm512_fmadd_ps(g, t, de[r + n]);
                df = _mm512_fmadd_ps(g, t, df);
                dv = _mm512_fmadd_ps(g, z, dv);
            }
        }
        float *to = p->df + j * w + h;
        _mm512_storeu_ps(to, _mm512_fmadd_ps(v, df, fresh ? none : _mm512_loadu_ps(to)));
    }
    for (int r = 0; r < R; r++)
        _mm512_storeu_ps(p->de + (i + r) * w + h, _mm512_mul_ps(v, de[r]));
    __m512 before = fresh ? none : _mm512_loadu_ps(p->dv + h);
    _mm512_storeu_ps(p->dv + h, _mm512_fmadd_ps(_mm512_set1_ps(2.0f), dv, before));
    ask_ahead(p->ahead);
}

IN512 void backward_rows(const Part *p, long i, const int R) {
    for (long h = 0; h < p->width; h += 16)
        if (p->paired)
            backward_tile(p, i, h, R, 1);
        else
            backward_tile(p, i, h, R, 0);
}

AVX512 void backward_avx512(const Part *p) {
    for (long i = 0, rows; i < p->rows; i += rows) {
        rows = next_rows(p->rows - i, 8);
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
IN512 __m512 exponential(__m512 x) {
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
AVX512 float exponentials_avx512(
    const float *x, float *to, long rows, long size, long width) {
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

/* ---- which of them ------------------------------------------------------------------------- */

/* 0: any processor, 1: AVX2, 2: AVX-512. */
int regard_level(void) {
#ifdef X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

typedef float (*Exponentials)(const float *, float *, long, long, long);

#ifdef X86
static const Kernel all_forward[] = {forward_any, forward_avx2, forward_avx512};
static const Kernel all_backward[] = {backward_any, backward_avx2, backward_avx512};
static const Exponentials all_exponentials[] = {exponentials_any, exponentials_avx2,
                                                exponentials_avx512};
#else
static const Kernel all_forward[] = {forward_any}, all_backward[] = {backward_any};
static const Exponentials all_exponentials[] = {exponentials_any};
#endif

Kernel regard_forward_kernel(int level) { return all_forward[level]; }
Kernel regard_backward_kernel(int level) { return all_backward[level]; }

/* ---- exponentials -------------------------------------------------------------------------- */

typedef struct {
    const float *x;
    float *to, largest;
    long rows, size, width;
    int level;
} Rows;

static void exponentiate(void *given) {
    Rows *r = given;
    r->largest = all_exponentials[r->level](r->x, r->to, r->rows, r->size, r->width);
}

/* e^2x of rows, padded with zeros to width. Returns max |x|, or NaN if there is one. */
float regard_exponentials(const float *x, float *to, long rows, long size, long width, int threads,
                          int level) {
    Rows parts[MOST_THREADS];
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > rows) threads = (int)rows;
    float largest = 0.0f;
    for (int t = 0; t < threads; t++) {
        long from = rows * t / threads, until = rows * (t + 1) / threads;
        parts[t] = (Rows){.x = x + from * size, .to = to + from * width, .rows = until - from,
                          .size = size, .width = width, .level = level};
    }
    regard_share(exponentiate, parts, sizeof(Rows), threads);
    for (int t = 0; t < threads; t++)
        if (!(parts[t].largest <= largest)) largest = parts[t].largest;
    return largest;
}

/* The loops of additive.c for processors without AVX-512, with division: it serves two elements at once,
 * and is as quick there as an approximation and a step of Newton's.
 */

#include <string.h>

#include "prefetch.h"
#include "simd.h"

#ifndef __AVX512F__

/* A row against C keys at once. Elements go two by two: the sums of C keys, the row, v and what is
 * between fill sixteen registers. */
INLINE void forward_tile(const Part *p, long i, long j, const int C) {
    const float *e = p->e + i * p->width, *f = p->f + j * p->width, *v = p->v;
    Side sum[4] = {0};
    for (long h = 0; h < p->width; h += 2 * SIDE) {
        const Side v0 = *(const Loose *)(v + h), v1 = *(const Loose *)(v + h + SIDE);
        const Side e0 = *(const Loose *)(e + h), e1 = *(const Loose *)(e + h + SIDE);
        const Side middle = 0.5f * (v0 + v1);
        for (int c = 0; c < C; c++) {
            const float *key = f + c * p->width + h;
            const Side d0 = e0 * *(const Loose *)key + 1.0f;
            const Side d1 = e1 * *(const Loose *)(key + SIDE) + 1.0f;
            if (p->together > 1) /* v0/d0 + v1/d1 = (v0 d1 + v1 d0) / (d0 d1) */
                sum[c] += middle - (v0 * d1 + v1 * d0) / (d0 * d1);
            else
                sum[c] += v0 * (0.5f - 1.0f / d0) + v1 * (0.5f - 1.0f / d1);
        }
    }
    for (int c = 0; c < C; c++) {
        float whole = 0.0f;
        for (int n = 0; n < SIDE; n++) whole += sum[c][n];
        p->scores[i * p->keys + j + c] = 2.0f * whole;
    }
    ask_ahead(p->ahead);
}

void regard_additive_item_forward(const Part *p) {
    for (long i = 0; i < p->rows; i++) {
        long j = 0;
        for (; j + 4 <= p->keys; j += 4) forward_tile(p, i, j, 4);
        if (j + 2 <= p->keys) forward_tile(p, i, j, 2), j += 2;
        if (j < p->keys) forward_tile(p, i, j, 1);
    }
}

/* A vector of hidden units of R rows against all keys: the rows' sums stay in registers, and a key's
 * sum is loaded and stored once for R pairs. */
INLINE void backward_tile(const Part *p, long i, long h, const int R,
                                        const int paired) {
    const int fresh = p->fresh && i == 0;
    const long w = p->width, keys = p->keys;
    const float *rows = p->e + i * w + h, *f = p->f + h, *g = p->g + i * keys;
    float *df = p->df + h;
    const Side none = {0}, v = *(const Loose *)(p->v + h);
    Side e[4], de[4] = {none, none, none, none};
    Side dv[2] = {none, none}; /* of every other row: one alone would wait for itself */
    for (int r = 0; r < R; r++) e[r] = 0.5f * *(const Loose *)(rows + r * w);
    for (long j = 0; j < keys; j++) {
        const Side key = *(const Loose *)(f + j * w);
        Side sent = none;
        for (int r = 0; r < R; r += 2) {
            const int pair = r + 1 < R; /* an odd row out stands beside itself, with no gradient */
            const Side d[2] = {e[r] * key + 0.5f, e[pair ? r + 1 : r] * key + 0.5f};
            const Side x = 1.0f / (d[0] * d[1]); /* looked at if paired */
            for (int n = 0; n < 1 + pair; n++) {
                const float slope = g[(r + n) * keys + j];
                const Side t = 1.0f - (paired ? x * d[1 - n] : 1.0f / d[n]);
                /* g (1 - t^2) by way of g t: then all sums are additions, which most processors
                 * have units for beside those that multiply. */
                const Side scaled = slope * t, own = slope - scaled * t;
                de[r + n] += own, sent += own, dv[n] += scaled;
            }
        }
        Loose *to = (Loose *)(df + j * w);
        *to = fresh ? v * sent : v * sent + *to;
    }
    for (int r = 0; r < R; r++) *(Loose *)(p->de + (i + r) * w + h) = v * de[r];
    Loose *to = (Loose *)(p->dv + h);
    *to = dv[0] + dv[1] + (fresh ? none : (Side)*to);
    ask_ahead(p->ahead);
}

INLINE void backward_rows(const Part *p, long i, const int R) {
    for (long h = 0; h < p->width; h += SIDE)
        if (p->together > 1)
            backward_tile(p, i, h, R, 1);
        else
            backward_tile(p, i, h, R, 0);
}

void regard_additive_item_backward(const Part *p) {
    for (long i = 0, rows; i < p->rows; i += rows) {
        rows = regard_next_rows(p->rows - i, 4);
        switch (rows) {
            case 4: backward_rows(p, i, 4); break;
            case 3: backward_rows(p, i, 3); break;
            case 2: backward_rows(p, i, 2); break;
            default: backward_rows(p, i, 1);
        }
    }
}

/* e^2x: 2x = n ln 2 + r; 2^n in two factors, for numbers too small for all their digits. No more than e^88; NaN stays NaN. */
INLINE Side exponential(Side x) {
    const float whole = 12582912.0f; /* what is added to it is rounded to a whole number */
    const Side none = {0};
    x = pick(x < -60.0f, none - 60.0f, pick(x > 44.0f, none + 44.0f, x));
    const Side z = x * 2.88539008f + whole, n = z - whole;
    const Side r = 2.0f * x - n * 0.693359375f + n * 2.12194440e-4f;
    const Side s = about_one(r);
    const Order all = (Order)z - (Order)(none + whole), half = all >> 1;
    return s * (Side)((half + 127) << 23) * (Side)((all - half + 127) << 23);
}

/* Rows of x to padded rows of e^2x; the return is max |x|, NaN if there is one. */
float regard_row_exponentials(const float *x, float *to, long rows, long size, long width) {
    Order largest = {0}; /* as whole numbers, those of floats above 0 are in the same order */
    for (long i = 0; i < rows; i++)
        for (long h = 0; h < width; h += SIDE) {
            const long left = size - h < 0 ? 0 : size - h;
            Side part = {0};
            if (left >= SIDE)
                part = *(const Loose *)(x + i * size + h);
            else if (left > 0)
                memcpy(&part, x + i * size + h, left * sizeof(float));
            *(Loose *)(to + i * width + h) = exponential(part);
            if (left < SIDE) memset(to + i * width + h + left, 0, (SIDE - left) * sizeof(float));
            const Order far = (Order)part & 0x7fffffff, more = far > largest;
            largest = (more & far) | (~more & largest);
        }
    int32_t most = 0;
    for (int n = 0; n < SIDE; n++) most = largest[n] > most ? largest[n] : most;
    float found;
    memcpy(&found, &most, sizeof found);
    return found;
}

#endif

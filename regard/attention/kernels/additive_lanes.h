/* The loops of additive.c for vectors of one width, with division: LANES numbers in a vector, TARGET
 * what the compiler may make of them, NAMED(x) what x is called at this width.
 *
 * In vectors of the compiler's own; a * b + c is one fma where the processor has it. Division serves
 * two elements at once and is as quick there as an approximation and a step of Newton's.
 */

#define Lanes NAMED(Lanes)
#define Loose NAMED(Loose)
#define Bits NAMED(Bits)

typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef float Loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias)); /* anywhere */
typedef int32_t Bits __attribute__((vector_size(4 * LANES)));

/* A row against C keys at once. Elements go two by two: the sums of C keys, the row, v and what is
 * between fill sixteen registers. */
INLINE TARGET void NAMED(forward_tile)(const Part *p, long i, long j, const int C) {
    const float *e = p->e + i * p->width, *f = p->f + j * p->width, *v = p->v;
    Lanes sum[4] = {0};
    for (long h = 0; h < p->width; h += 2 * LANES) {
        const Lanes v0 = *(const Loose *)(v + h), v1 = *(const Loose *)(v + h + LANES);
        const Lanes e0 = *(const Loose *)(e + h), e1 = *(const Loose *)(e + h + LANES);
        const Lanes middle = 0.5f * (v0 + v1);
        for (int c = 0; c < C; c++) {
            const float *key = f + c * p->width + h;
            const Lanes d0 = e0 * *(const Loose *)key + 1.0f;
            const Lanes d1 = e1 * *(const Loose *)(key + LANES) + 1.0f;
            if (p->paired) /* v0/d0 + v1/d1 = (v0 d1 + v1 d0) / (d0 d1) */
                sum[c] += middle - (v0 * d1 + v1 * d0) / (d0 * d1);
            else
                sum[c] += v0 * (0.5f - 1.0f / d0) + v1 * (0.5f - 1.0f / d1);
        }
    }
    for (int c = 0; c < C; c++) {
        float whole = 0.0f;
        for (int n = 0; n < LANES; n++) whole += sum[c][n];
        p->scores[i * p->keys + j + c] = 2.0f * whole;
    }
    ask_ahead(p->ahead);
}

TARGET static void NAMED(forward)(const Part *p) {
    for (long i = 0; i < p->rows; i++) {
        long j = 0;
        for (; j + 4 <= p->keys; j += 4) NAMED(forward_tile)(p, i, j, 4);
        if (j + 2 <= p->keys) NAMED(forward_tile)(p, i, j, 2), j += 2;
        if (j < p->keys) NAMED(forward_tile)(p, i, j, 1);
    }
}

/* A vector of hidden units of R rows against all keys: the rows' sums stay in registers, and a key's
 * sum is loaded and stored once for R pairs. */
INLINE TARGET void NAMED(backward_tile)(const Part *p, long i, long h, const int R,
                                        const int paired) {
    const int fresh = p->fresh && i == 0;
    const long w = p->width, keys = p->keys;
    const float *rows = p->e + i * w + h, *f = p->f + h, *g = p->g + i * keys;
    float *df = p->df + h;
    const Lanes none = {0}, v = 4.0f * *(const Loose *)(p->v + h);
    Lanes e[4], de[4] = {none, none, none, none};
    Lanes dv[2] = {none, none}; /* of every other row: one alone would wait for itself */
    for (int r = 0; r < R; r++) e[r] = *(const Loose *)(rows + r * w);
    for (long j = 0; j < keys; j++) {
        const Lanes key = *(const Loose *)(f + j * w);
        Lanes sent = none;
        for (int r = 0; r < R; r += 2) {
            const int pair = r + 1 < R; /* an odd row out stands beside itself, with no gradient */
            const Lanes d[2] = {e[r] * key + 1.0f, e[pair ? r + 1 : r] * key + 1.0f};
            const Lanes x = 1.0f / (d[0] * d[1]); /* looked at if paired */
            for (int n = 0; n < 1 + pair; n++) {
                const float slope = g[(r + n) * keys + j];
                /* r - r^2 = 1/4 - (1/2 - r)^2: as exact as plain code's 1 - tanh^2. */
                const Lanes z = 0.5f - (paired ? x * d[1 - n] : 1.0f / d[n]), t = 0.25f - z * z;
                de[r + n] += slope * t;
                sent += slope * t;
                dv[n] += slope * z;
            }
        }
        Loose *to = (Loose *)(df + j * w);
        *to = fresh ? v * sent : v * sent + *to;
    }
    for (int r = 0; r < R; r++) *(Loose *)(p->de + (i + r) * w + h) = v * de[r];
    Loose *to = (Loose *)(p->dv + h);
    *to = 2.0f * (dv[0] + dv[1]) + (fresh ? none : (Lanes)*to);
    ask_ahead(p->ahead);
}

INLINE TARGET void NAMED(backward_rows)(const Part *p, long i, const int R) {
    for (long h = 0; h < p->width; h += LANES)
        if (p->paired)
            NAMED(backward_tile)(p, i, h, R, 1);
        else
            NAMED(backward_tile)(p, i, h, R, 0);
}

TARGET static void NAMED(backward)(const Part *p) {
    for (long i = 0, rows; i < p->rows; i += rows) {
        rows = next_rows(p->rows - i, 4);
        switch (rows) {
            case 4: NAMED(backward_rows)(p, i, 4); break;
            case 3: NAMED(backward_rows)(p, i, 3); break;
            case 2: NAMED(backward_rows)(p, i, 2); break;
            default: NAMED(backward_rows)(p, i, 1);
        }
    }
}

INLINE TARGET Lanes NAMED(pick)(Bits which, Lanes yes, Lanes no) {
    return (Lanes)((which & (Bits)yes) | (~which & (Bits)no));
}

/* e^2x: 2x = n ln 2 + r, and e^r by a polynomial that is exact to the last bit but one; 2^n in two
 * factors, for numbers too small for all their digits. No more than e^88; NaN stays NaN. */
INLINE TARGET Lanes NAMED(exponential)(Lanes x) {
    const float whole = 12582912.0f; /* what is added to it is rounded to a whole number */
    const Lanes none = {0};
    x = NAMED(pick)(x < -60.0f, none - 60.0f, NAMED(pick)(x > 44.0f, none + 44.0f, x));
    const Lanes z = x * 2.88539008f + whole, n = z - whole;
    const Lanes r = 2.0f * x - n * 0.693359375f + n * 2.12194440e-4f;
    Lanes s = r * 1.9790244e-4f + 1.3944759e-3f;
    s = s * r + 8.3334977e-3f;
    s = s * r + 4.1666295e-2f;
    s = s * r + 1.6666666e-1f;
    s = s * r + 0.5f;
    s = (r * r) * s + r + 1.0f;
    const Bits all = (Bits)z - (Bits)(none + whole), half = all >> 1;
    return s * (Lanes)((half + 127) << 23) * (Lanes)((all - half + 127) << 23);
}

/* Rows of x to padded rows of e^2x; the return is max |x|, NaN if there is one. */
TARGET static float NAMED(exponentials)(const float *x, float *to, long rows, long size,
                                        long width) {
    Bits largest = {0}; /* as whole numbers, those of floats above 0 are in the same order */
    for (long i = 0; i < rows; i++)
        for (long h = 0; h < width; h += LANES) {
            const long left = size - h < 0 ? 0 : size - h;
            Lanes part = {0};
            if (left >= LANES)
                part = *(const Loose *)(x + i * size + h);
            else
                memcpy(&part, x + i * size + h, left * sizeof(float));
            *(Loose *)(to + i * width + h) = NAMED(exponential)(part);
            if (left < LANES) memset(to + i * width + h + left, 0, (LANES - left) * sizeof(float));
            const Bits far = (Bits)part & 0x7fffffff, more = far > largest;
            largest = (more & far) | (~more & largest);
        }
    int32_t most = 0;
    for (int n = 0; n < LANES; n++) most = largest[n] > most ? largest[n] : most;
    float found;
    memcpy(&found, &most, sizeof found);
    return found;
}

#undef Lanes
#undef Loose
#undef Bits
#undef LANES
#undef TARGET
#undef NAMED

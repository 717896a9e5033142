/* What the C kernels share. */

#ifndef REGARD_ADDITIVE_H
#define REGARD_ADDITIVE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sizes, and what index tensors hold, are of 64 bits in Python: elsewhere this is not to be built. */
_Static_assert(sizeof(long) == 8 && sizeof(void *) == 8, "the kernels are for 64-bit longs");

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#endif

/* Vectors of half the width, where there are wide ones. */
#ifdef __AVX512F__
#define NARROW __attribute__((target("no-avx512f")))
#else
#define NARROW
#endif

#define INLINE __attribute__((always_inline)) static inline
#define MOST_THREADS 64

/* One item's rows: what a thread works on. */
typedef struct {
    const float *e, *f, *v, *g; /* g: the gradient of the scores, for the way back */
    float *scores, *de, *df, *dv;
    const long *which;
    long rows, keys, width, stride;
    int together; /* how many elements share a reciprocal: see regard_reciprocal_group */
    int fresh; /* on the way back: df and dv hold nothing yet */
    int apart; /* and units that add stand beside those that multiply, as in AMD's processors */
    struct Ahead *ahead; /* what to ask memory for after each tile, or NULL: see ahead.h */
} Part;

typedef void (*Kernel)(const Part *);

/* Do all jobs, each of so many bytes, on as many threads: see threads.c. */
typedef void (*Work)(void *);
void regard_parallel(Work work, void *jobs, size_t size, int count);

/* The additive scores of one item, the way back, and e^2x of rows: see additive.c. */
void regard_additive_item_forward(const Part *part);
void regard_additive_item_backward(const Part *part);
int regard_reciprocal_group(float reach);
int regard_is_amd(void);
long regard_next_rows(long left, long most);
float regard_row_exponentials(const float *x, float *to, long rows, long size, long width);
float regard_exponentials(const float *x, float *to, long rows, long size, long width, int threads);

/* Zeros. To no numbers there may be no pointer, and memset must not be given NULL. */
INLINE void regard_fill_zero(float *to, long count) {
    if (count > 0) memset(to, 0, count * sizeof(float));
}

/* Room for so many bytes, a multiple of the alignment. For none, too: NULL means that there is none. */
INLINE void *regard_alloc(size_t alignment, size_t bytes) {
    return aligned_alloc(alignment, bytes ? bytes : alignment);
}

/* Exponentials are written in runs of sixteen. */
INLINE long regard_padded(long count) { return (count + 15) / 16 * 16; }

/* e^x: x = n ln 2 + r, and e^r by a polynomial that is exact to the last bit but one. Below the least
 * normal number it is 0 for all that anyone adds it to; above the greatest it stays there. */
INLINE float regard_exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float whole = 12582912.0f; /* to add it and take it off is to round */
    union {
        float value;
        uint32_t bits;
    } shifted = {x * 1.44269504f + whole}, power;
    float n = shifted.value - whole;
    float r = x - n * 0.693359375f - n * -2.12194440e-4f;
    float s = 1.9790244e-4f;
    s = s * r + 1.3944759e-3f;
    s = s * r + 8.3334977e-3f;
    s = s * r + 4.1666295e-2f;
    s = s * r + 1.6666666e-1f;
    s = s * r + 0.5f;
    s = r * r * s + r + 1.0f;
    power.bits = (shifted.bits + 127) << 23; /* n in its last bits; of NaN, anything */
    return s * power.value;
}

/* Scores to weights, in place, with room for regard_padded(count): see step.c. */
void regard_softmax(float *scores, long count, float scale);

#endif

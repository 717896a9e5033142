/* What the C kernels share. */

#ifndef REGARD_ADDITIVE_H
#define REGARD_ADDITIVE_H

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,fma"))) static
#define AVX512 __attribute__((target("avx512f,fma"))) static
#endif

#define INLINE __attribute__((always_inline)) static inline
#define MOST_THREADS 64

/* One item's rows: what a thread works on. */
typedef struct {
    const float *e, *f, *v, *g; /* g: the gradient of the scores, for the way back */
    float *scores, *de, *df, *dv;
    const long *which;
    long rows, keys, width, stride;
    int paired;
    int fresh; /* on the way back: df and dv hold nothing yet */
} Part;

typedef void (*Kernel)(const Part *);

/* Do all jobs, each of so many bytes, on as many threads: see threads.c. */
typedef void (*Work)(void *);
void regard_share(Work work, void *jobs, size_t size, int count);

/* The additive scores of one item, and e^2x of rows: see additive.c. */
Kernel regard_forward_kernel(int level);
float regard_exponentials(const float *x, float *to, long rows, long size, long width, int threads,
                          int level);

/* Exponentials are written in runs of sixteen. */
INLINE long regard_padded(long count) { return (count + 15) / 16 * 16; }

/* Scores to weights, in place, with room for regard_padded(count): see step.c. */
void regard_softmax(float *scores, long count, float scale, int level);

#endif

/* What all C files share: threads, allocation, e^x. */

#ifndef REGARD_COMMON_H
#define REGARD_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sizes and index tensors are 64-bit in Python, so this must not be built where long is shorter. */
_Static_assert(sizeof(long) == 8 && sizeof(void *) == 8, "the kernels need 64-bit longs");

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#endif

/* For functions that are no faster with 512-bit vectors. */
#ifdef __AVX512F__
#define NO_AVX512 __attribute__((target("no-avx512f")))
#else
#define NO_AVX512
#endif

#define INLINE __attribute__((always_inline)) static inline
#define MAX_THREADS 64

/* What functions return that may fail; signatures.py has the same. */
enum { DONE, OUT_OF_RANGE, NO_MEMORY };

/* Run all jobs, each of so many bytes, on as many threads: see threads.c. */
typedef void (*JobFunction)(void *);
void regard_parallel(JobFunction run, void *jobs, size_t size, int count);

INLINE long min_long(long a, long b) { return a < b ? a : b; }
INLINE long round_up(long count, long unit) { return (count + unit - 1) / unit * unit; }
INLINE long pad_to_16(long count) { return round_up(count, 16); }

/* A pointer to no elements may be NULL, which memset must not be given. */
INLINE void fill_zero(float *to, long count) {
    if (count > 0) memset(to, 0, count * sizeof(float));
}

/* So many bytes, a multiple of the alignment. Never NULL for 0 bytes: NULL means out of memory. */
INLINE void *alloc_aligned(size_t alignment, size_t bytes) {
    return aligned_alloc(alignment, bytes ? bytes : alignment);
}

/* e^x: x = n ln 2 + r, and e^r by a polynomial that is exact to the last bit but one. x is clamped to
 * [-87, 88]: e^-87 is about the smallest normal float, negligible in any sum. */
INLINE float exp_clamped(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float shift = 12582912.0f; /* adding and subtracting it rounds to an integer */
    union {
        float value;
        uint32_t bits;
    } shifted = {x * 1.44269504f + shift}, power;
    float n = shifted.value - shift;
    float r = x - n * 0.693359375f - n * -2.12194440e-4f;
    float s = 1.9790244e-4f;
    s = s * r + 1.3944759e-3f;
    s = s * r + 8.3334977e-3f;
    s = s * r + 4.1666295e-2f;
    s = s * r + 1.6666666e-1f;
    s = s * r + 0.5f;
    s = r * r * s + r + 1.0f;
    power.bits = (shifted.bits + 127) << 23; /* n is in the low bits; for NaN, anything */
    return s * power.value;
}

#endif

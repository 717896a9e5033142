/* What this machine can do at most: loops that live in registers, and a walk through memory.

   Each loop exists for AVX-512, AVX2 and any machine, chosen when it is called. Rates come out as
   elements per second: the caller knows how many elements an iteration has, and holds the clock. */

#include <math.h>
#include <stddef.h>

#define CHAINS 12 /* independent sums: enough to hide latency, few enough for 16 registers */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAMED(loop) JOIN(loop, LEVEL)

#if defined(__x86_64__)
#include <immintrin.h>

#define LEVEL avx512
#define TARGET __attribute__((target("avx512f,fma")))
#define WIDTH 16
typedef __m512 vector_avx512;
#define VECTOR vector_avx512
#define SAME(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define DIVIDE(a, b) _mm512_div_ps(a, b)
#define ABOUT_ONE_OVER(a) _mm512_rcp14_ps(a)
#define PLUS_QUOTIENT(sum, a, b) FMA(a, NAMED(one_over)(b), sum)
#define CLAMP(x, low, high) _mm512_min_ps(_mm512_max_ps(x, low), high)
#define ROUND(x) _mm512_roundscale_ps(x, 8)
#define TIMES_POWER_OF_2(x, n) _mm512_scalef_ps(x, n)
#define UNKNOWN(x) __asm__ volatile("" : "+v"(x)) /* the compiler may not know what is in it */
#include "limits_loops.h"

#define LEVEL avx2
#define TARGET __attribute__((target("avx2,fma")))
#define WIDTH 8
typedef __m256 vector_avx2;
#define VECTOR vector_avx2
#define SAME(x) _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define DIVIDE(a, b) _mm256_div_ps(a, b)
#define ABOUT_ONE_OVER(a) _mm256_rcp_ps(a)
#define PLUS_QUOTIENT(sum, a, b) _mm256_add_ps(sum, DIVIDE(a, b)) /* quicker in this width */
#define CLAMP(x, low, high) _mm256_min_ps(_mm256_max_ps(x, low), high)
#define ROUND(x) _mm256_round_ps(x, 8)
#define TIMES_POWER_OF_2(x, n)                                                                     \
    _mm256_castsi256_ps(                                                                           \
        _mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)))
#define UNKNOWN(x) __asm__ volatile("" : "+x"(x))
#include "limits_loops.h"
#endif

#define LEVEL portable
#define TARGET
#define WIDTH 1
typedef float vector_portable;
#define VECTOR vector_portable
#define SAME(x) (x)
#define FMA(a, b, c) ((a) * (b) + (c))
#define MUL(a, b) ((a) * (b))
#define DIVIDE(a, b) ((a) / (b))
#define ABOUT_ONE_OVER(a) (1.0f / (a))
#define PLUS_QUOTIENT(sum, a, b) ((sum) + (a) / (b))
#define CLAMP(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define ROUND(x) rintf(x)
#define TIMES_POWER_OF_2(x, n) ldexpf(x, (int)(n))
#define UNKNOWN(x) __asm__ volatile("" : "+m"(x))
#include "limits_loops.h"

/* 2, 1 or 0: AVX-512, AVX2 or neither. */
int limits_level(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

#if defined(__x86_64__)
#define AT_BEST(loop)                                                                              \
    float limits_##loop(long iterations) {                                                         \
        int level = limits_level();                                                                \
        if (level == 2) return loop##_avx512(iterations);                                          \
        return level == 1 ? loop##_avx2(iterations) : loop##_portable(iterations);                 \
    }
#else
#define AT_BEST(loop)                                                                              \
    float limits_##loop(long iterations) { return loop##_portable(iterations); }
#endif

AT_BEST(fma)
AT_BEST(divide)
AT_BEST(reciprocal)
AT_BEST(additive_one)
AT_BEST(additive_two)
AT_BEST(additive_four)
AT_BEST(additive_tanh)
AT_BEST(exponential)

/* Elements that one iteration of any of these loops has: the loops of pairs and of fours count all of them. */
long limits_elements(void) {
    int level = limits_level();
    return CHAINS * (level == 2 ? 16 : level == 1 ? 8 : 1);
}

/* a = b + s·c: three floats moved for each element. */
float limits_triad(float *a, const float *b, const float *c, long size) {
    for (long i = 0; i < size; i++) a[i] = b[i] + 0.5f * c[i];
    return a[size / 2];
}

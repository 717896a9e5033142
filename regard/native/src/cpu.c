/* What this processor is. */

#include "common.h"

/* 0: any processor, 1: AVX2, 2: AVX-512. */
int regard_level(void) {
#ifdef X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

/* AMD's processors have adders beside their multipliers, for vectors of any width. */
int regard_is_amd(void) {
#ifdef X86
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
#else
    return 0;
#endif
}

/* Dropout: y = x * scale where the element is kept, else 0.
 *
 * Whether it is kept is a hash of its index and of a seed, so the mask needs no memory, no order and
 * no state, is the same on any number of threads, and is found again in backward. The hash is
 * MurmurHash3's finaliser (Appleby 2011), in which every bit depends on every other.
 */

#include <stdint.h>

#include "common.h"

typedef struct {
    const float *x;
    float *y, scale;
    uint32_t seed, keep_below; /* kept if the hash is below */
    long first;                /* the index of x[0] in the whole tensor */
    long from, until;          /* elements of x */
    int status;
} Job;

enum { RUN = 1 << 30 }; /* the indices of a run have the same upper half */

NO_AVX512 static inline uint32_t mix(uint32_t h) {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

/* The 32-bit hash is of the lower half of an index; the upper half, mixed, changes the seed. Wider
 * vectors multiply integers no faster. */
NO_AVX512 static void drop(const Job *job, long from, uint32_t count) {
    const float *restrict x = job->x + from;
    float *restrict y = job->y + from;
    const uint64_t index = (uint64_t)(job->first + from);
    const uint32_t seed = job->seed + mix((uint32_t)(index >> 32)), keep_below = job->keep_below;
    const uint32_t start = (uint32_t)index * 0x9e3779b9u + seed;
    const float scale = job->scale;
#pragma omp simd
    for (uint32_t i = 0; i < count; i++)
        y[i] = x[i] * (mix(i * 0x9e3779b9u + start) < keep_below ? scale : 0.0f);
}

static void run(const Job *job) {
    for (long at = job->from, end; at < job->until; at = end) {
        end = min_long(at + RUN - (job->first + at) % RUN, job->until);
        drop(job, at, (uint32_t)(end - at));
    }
}

#include "parallel_rows.h"

void regard_dropout(const float *x, float *y, long first, long count, uint32_t seed,
                    uint32_t keep_below, float scale, int threads) {
    parallel_rows((Job){x, y, scale, seed, keep_below, first}, count, threads);
}

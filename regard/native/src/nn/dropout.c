/* Dropout: y = x * scale where a draw says so, else 0.
 *
 * The draw of an element is a hash of its place and of a seed, so it needs no memory, no order and
 * no state, comes out the same on any number of threads, and is found again on the way back. The
 * hash is MurmurHash3's finaliser (Appleby 2011), of which every bit depends on every other.
 */

#include <stdint.h>

#include "common.h"

typedef struct {
    const float *x;
    float *y, scale;
    long first, from, to; /* the place of x[0] in all that is drawn for; elements of x */
    uint32_t seed, keep;  /* kept if the hash is below */
} Job;

enum { RUN = 1 << 30 }; /* the places of a run have their upper half in common */

NARROW static inline uint32_t mixed(uint32_t h) {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

/* A hash of 32 bits is of the lower half of a place; the upper half, mixed, changes the seed. */
NARROW static void drop(const Job *job, long from, uint32_t count) {
    const float *restrict x = job->x + from; /* wider vectors multiply whole numbers no faster */
    float *restrict y = job->y + from;
    const uint64_t place = (uint64_t)(job->first + from);
    const uint32_t seed = job->seed + mixed((uint32_t)(place >> 32)), keep = job->keep;
    const uint32_t start = (uint32_t)place * 0x9e3779b9u + seed;
    const float scale = job->scale;
#pragma omp simd
    for (uint32_t i = 0; i < count; i++)
        y[i] = x[i] * (mixed(i * 0x9e3779b9u + start) < keep ? scale : 0.0f);
}

static void work(void *given) {
    const Job *job = given;
    for (long at = job->from, end; at < job->to; at = end) {
        end = at + RUN - (job->first + at) % RUN;
        end = end < job->to ? end : job->to;
        drop(job, at, (uint32_t)(end - at));
    }
}

void regard_dropout(const float *x, float *y, long first, long count, uint32_t seed, uint32_t keep,
                    float scale, int threads) {
    Job jobs[MOST_THREADS];
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){x, y, scale, first, count * t / threads, count * (t + 1) / threads, seed, keep};
    regard_parallel(work, jobs, sizeof(Job), threads);
}

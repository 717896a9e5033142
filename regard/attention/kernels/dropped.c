/* Dropout: y = x * scale where a draw says so, else 0.
 *
 * The draw of an element is a hash of its place and of a seed, so it needs no memory, no order and
 * no state, comes out the same on any number of threads, and is found again on the way back. The
 * hash is MurmurHash3's finaliser (Appleby 2011), of which every bit depends on every other.
 */

#include <stdint.h>

#include "additive.h"

typedef struct {
    const float *x;
    float *y, scale;
    long from, to;
    uint32_t seed, keep; /* kept if the hash is below */
} Job;

NARROW static void drop(const Job *job) { /* wider vectors multiply whole numbers no faster */
    const float *restrict x = job->x + job->from;
    float *restrict y = job->y + job->from;
    const uint32_t count = (uint32_t)(job->to - job->from), keep = job->keep;
    const uint32_t first = (uint32_t)job->from * 0x9e3779b9u + job->seed;
    const float scale = job->scale;
#pragma omp simd
    for (uint32_t i = 0; i < count; i++) {
        uint32_t h = i * 0x9e3779b9u + first;
        h ^= h >> 16;
        h *= 0x85ebca6bu;
        h ^= h >> 13;
        h *= 0xc2b2ae35u;
        h ^= h >> 16;
        y[i] = x[i] * (h < keep ? scale : 0.0f);
    }
}

static void work(void *given) { drop(given); }

void regard_dropped(const float *x, float *y, long count, uint32_t seed, uint32_t keep, float scale,
                    int threads) {
    Job jobs[MOST_THREADS];
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){x, y, scale, count * t / threads, count * (t + 1) / threads, seed, keep};
    regard_share(work, jobs, sizeof(Job), threads);
}

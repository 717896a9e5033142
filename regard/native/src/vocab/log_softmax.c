/* How likely each token of a vocabulary is, row by row and in place: a row stays near while it is
 * gone over, where an operation at a time would walk through all rows again and again.
 *
 * Shapes, row-major: x (rows, count), bias (count) or NULL.
 */

#include <math.h>

#include "common.h"

typedef struct {
    float *x;
    const float *bias;
    const long *targets; /* of regard_told, else NULL */
    float smoothing, factor, *chosen, *losses;
    float *sums; /* (threads, count), to be added to: each thread's sum of its rows' gradients */
    long *best;  /* of regard_argmax, else NULL */
    long from, to, count;
    int number;
} Job;

enum { SOME = 1024 }; /* of which a sum is taken as a float; sums of these are doubles */

/* The bias added, where there is one, and the greatest found, past NaN. */
INLINE float greatest(float *restrict x, const float *restrict bias, long count) {
    float most = -INFINITY;
    if (bias)
#pragma omp simd reduction(max : most)
        for (long j = 0; j < count; j++) {
            x[j] += bias[j];
            most = x[j] > most ? x[j] : most;
        }
    else
#pragma omp simd reduction(max : most)
        for (long j = 0; j < count; j++) most = x[j] > most ? x[j] : most;
    return most;
}

INLINE void log_softmax(const Job *job, float *restrict x) {
    const float most = greatest(x, job->bias, job->count);
    double total = 0;
    for (long first = 0; first < job->count; first += SOME) {
        const long last = first + SOME < job->count ? first + SOME : job->count;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (long j = first; j < last; j++) sum += regard_exponential(x[j] - most);
        total += sum;
    }
    const float log_total = (float)log(total);
#pragma omp simd
    for (long j = 0; j < job->count; j++) x[j] = x[j] - most - log_total;
}

/* The loss of a row with a smoothed target; the row becomes the gradient of its scores, times the
 * factor. */
INLINE void told(const Job *job, float *restrict x, long row) {
    const long count = job->count, target = job->targets[row];
    const float most = greatest(x, job->bias, count), own = x[target] - most;
    double total = 0, all = 0;
    for (long first = 0; first < count; first += SOME) {
        const long last = first + SOME < count ? first + SOME : count;
        float sum = 0, plain = 0;
#pragma omp simd reduction(+ : sum, plain)
        for (long j = first; j < last; j++) {
            const float below = x[j] - most;
            plain += below;
            x[j] = regard_exponential(below);
            sum += x[j];
        }
        total += sum, all += plain;
    }
    const float share = (float)(job->factor / total);
    const float spread = job->factor * job->smoothing / count;
    const float due = job->factor * (1 - job->smoothing);
    float *restrict sums = job->sums + job->number * count;
#pragma omp simd
    for (long j = 0; j < count; j++) {
        x[j] = x[j] * share - spread;
        sums[j] += x[j];
    }
    x[target] -= due, sums[target] -= due;
    const double log_total = log(total), mean = job->smoothing ? all / count - log_total : 0;
    job->chosen[row] = (float)(own - log_total);
    job->losses[row] =
        (float)-((1 - job->smoothing) * (own - log_total) + job->smoothing * mean);
}

/* Where the greatest is, the first of equals; what is no number is greater than all. */
INLINE long best(const float *restrict x, long count) {
    float most = -INFINITY;
    long block = 0;
    for (long first = 0; first < count; first += SOME) {
        const long last = first + SOME < count ? first + SOME : count;
        float own = -INFINITY;
        int nans = 0;
#pragma omp simd reduction(max : own) reduction(| : nans)
        for (long j = first; j < last; j++) {
            own = x[j] > own ? x[j] : own;
            nans |= x[j] != x[j];
        }
        if (nans)
            for (long j = first; j < last; j++)
                if (x[j] != x[j]) return j;
        if (own > most) most = own, block = first;
    }
    for (long j = block; j < count; j++)
        if (x[j] == most) return j;
    return 0;
}

INLINE void rows(const Job *job) {
    for (long row = job->from; row < job->to; row++) {
        float *x = job->x + row * job->count;
        if (job->best)
            job->best[row] = best(x, job->count);
        else if (job->targets)
            told(job, x, row);
        else
            log_softmax(job, x);
    }
}

#define NUMBERED
#include "parallel_rows.h"

void regard_log_softmax(float *x, const float *bias, long count, long total, int threads) {
    by_rows((Job){.x = x, .bias = bias, .count = count}, total, threads);
}

/* The loss and each target's log-probability; scores become gradients of the loss times the factor,
 * and each thread adds those of its rows to its own sums. */
void regard_cross_entropy(float *x, const float *bias, const long *targets, float smoothing,
                          float factor, float *chosen, float *losses, float *sums, long count,
                          long total, int threads) {
    by_rows((Job){x, bias, targets, smoothing, factor, chosen, losses, sums, .count = count},
            total, threads);
}

/* The place of the greatest in each row. */
void regard_argmax(float *x, long *best, long count, long total, int threads) {
    by_rows((Job){.x = x, .best = best, .count = count}, total, threads);
}

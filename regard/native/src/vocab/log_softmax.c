/* Log-softmax, cross-entropy with its gradient, and argmax over a vocabulary, row by row and in place:
 * a row stays in the cache during all passes over it.
 *
 * Shapes, row-major: x (rows, count), bias (count) or NULL.
 */

#include <math.h>

#include "common.h"

typedef struct {
    float *x;
    const float *bias;
    const long *targets; /* for the cross-entropy, else NULL */
    float smoothing, factor, *chosen, *losses;
    float *grad_bias; /* (threads, count), added to: each thread's sum of its rows' gradients */
    long *argmax;     /* for the argmax, else NULL */
    long count, from, until;
    int number, status;
} Job;

enum { BLOCK = 1024 }; /* sums of so many are floats; sums of these are doubles */

/* Adds the bias, if there is one; returns the maximum, ignoring NaN. */
INLINE float add_bias(float *restrict x, const float *restrict bias, long count) {
    float top = -INFINITY;
    if (bias)
#pragma omp simd reduction(max : top)
        for (long j = 0; j < count; j++) {
            x[j] += bias[j];
            top = x[j] > top ? x[j] : top;
        }
    else
#pragma omp simd reduction(max : top)
        for (long j = 0; j < count; j++) top = x[j] > top ? x[j] : top;
    return top;
}

INLINE void log_softmax(const Job *job, float *restrict x) {
    const float top = add_bias(x, job->bias, job->count);
    double total = 0;
    for (long first = 0; first < job->count; first += BLOCK) {
        const long last = first + BLOCK < job->count ? first + BLOCK : job->count;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (long j = first; j < last; j++) sum += exp_clamped(x[j] - top);
        total += sum;
    }
    const float log_total = (float)log(total);
#pragma omp simd
    for (long j = 0; j < job->count; j++) x[j] = x[j] - top - log_total;
}

/* The loss of a row with a smoothed target; the row becomes the gradient of its scores, times the
 * factor. */
INLINE void cross_entropy(const Job *job, float *restrict x, long row) {
    const long count = job->count, target = job->targets[row];
    const float top = add_bias(x, job->bias, count), target_score = x[target] - top;
    double total = 0, all_scores = 0;
    for (long first = 0; first < count; first += BLOCK) {
        const long last = first + BLOCK < count ? first + BLOCK : count;
        float sum = 0, scores = 0;
#pragma omp simd reduction(+ : sum, scores)
        for (long j = first; j < last; j++) {
            const float score = x[j] - top;
            scores += score;
            x[j] = exp_clamped(score);
            sum += x[j];
        }
        total += sum, all_scores += scores;
    }
    const float scale = (float)(job->factor / total);
    const float uniform = job->factor * job->smoothing / count;
    const float peak = job->factor * (1 - job->smoothing);
    float *restrict grad_bias = job->grad_bias + job->number * count;
#pragma omp simd
    for (long j = 0; j < count; j++) {
        x[j] = x[j] * scale - uniform;
        grad_bias[j] += x[j];
    }
    x[target] -= peak, grad_bias[target] -= peak;
    const double log_total = log(total);
    const double mean = job->smoothing ? all_scores / count - log_total : 0;
    job->chosen[row] = (float)(target_score - log_total);
    job->losses[row] =
        (float)-((1 - job->smoothing) * (target_score - log_total) + job->smoothing * mean);
}

/* The index of the maximum, the first of equals; NaN counts as greater than all. */
INLINE long argmax(const float *restrict x, long count) {
    float top = -INFINITY;
    long block = 0;
    for (long first = 0; first < count; first += BLOCK) {
        const long last = first + BLOCK < count ? first + BLOCK : count;
        float block_top = -INFINITY;
        int nans = 0;
#pragma omp simd reduction(max : block_top) reduction(| : nans)
        for (long j = first; j < last; j++) {
            block_top = x[j] > block_top ? x[j] : block_top;
            nans |= x[j] != x[j];
        }
        if (nans)
            for (long j = first; j < last; j++)
                if (x[j] != x[j]) return j;
        if (block_top > top) top = block_top, block = first;
    }
    for (long j = block; j < count; j++)
        if (x[j] == top) return j;
    return 0;
}

INLINE void run(const Job *job) {
    for (long row = job->from; row < job->until; row++) {
        float *x = job->x + row * job->count;
        if (job->argmax)
            job->argmax[row] = argmax(x, job->count);
        else if (job->targets)
            cross_entropy(job, x, row);
        else
            log_softmax(job, x);
    }
}

#define JOB_HAS_NUMBER
#include "parallel_rows.h"

void regard_log_softmax(float *x, const float *bias, long count, long rows, int threads) {
    parallel_rows((Job){.x = x, .bias = bias, .count = count}, rows, threads);
}

/* The loss of each row and its target's log-probability; scores become gradients of the loss, times
 * the factor, and their sums are added to grad_bias. */
void regard_cross_entropy(float *x, const float *bias, const long *targets, float smoothing,
                          float factor, float *chosen, float *losses, float *grad_bias, long count,
                          long rows, int threads) {
    parallel_rows((Job){x, bias, targets, smoothing, factor, chosen, losses, grad_bias,
                        .count = count},
                  rows, threads);
}

/* The index of the maximum of each row. */
void regard_argmax(float *x, long *indices, long count, long rows, int threads) {
    parallel_rows((Job){.x = x, .argmax = indices, .count = count}, rows, threads);
}

/* How likely each token of a vocabulary is, row by row and in place: a row stays near while it is
 * gone over, where an operation at a time would walk through all rows again and again.
 *
 * Shapes, row-major: x (rows, count), bias (count) or NULL.
 */

#include <math.h>

#include "additive.h"

typedef struct {
    float *x;
    const float *bias;
    const long *targets; /* of regard_told, else NULL */
    float smoothing, *chosen, *losses;
    long from, to, count;
    int level;
} Job;

/* The bias added and the greatest taken off, NaN kept. */
INLINE void shift(float *restrict x, const float *restrict bias, long count) {
    float most = -INFINITY;
    if (bias)
#pragma omp simd
        for (long j = 0; j < count; j++) x[j] += bias[j];
#pragma omp simd reduction(max : most)
    for (long j = 0; j < count; j++) most = x[j] > most ? x[j] : most;
#pragma omp simd
    for (long j = 0; j < count; j++) x[j] -= most;
}

INLINE void log_softmax(const Job *job, float *restrict x) {
    double total = 0;
    shift(x, job->bias, job->count);
    for (long first = 0; first < job->count; first += 1024) { /* floats for a while, then a double */
        const long last = first + 1024 < job->count ? first + 1024 : job->count;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (long j = first; j < last; j++) sum += regard_exponential(x[j]);
        total += sum;
    }
    const float log_total = (float)log(total);
#pragma omp simd
    for (long j = 0; j < job->count; j++) x[j] -= log_total;
}

/* The loss of a row with a smoothed target; the row becomes the gradient of its scores. */
INLINE void told(const Job *job, float *restrict x, long row) {
    const long count = job->count, target = job->targets[row];
    double total = 0, all = 0;
    shift(x, job->bias, count);
    const float own = x[target];
    for (long first = 0; first < count; first += 1024) {
        const long last = first + 1024 < count ? first + 1024 : count;
        float sum = 0, plain = 0;
#pragma omp simd reduction(+ : sum, plain)
        for (long j = first; j < last; j++) {
            plain += x[j];
            x[j] = regard_exponential(x[j]);
            sum += x[j];
        }
        total += sum, all += plain;
    }
    const float share = (float)(1 / total), spread = job->smoothing / count;
#pragma omp simd
    for (long j = 0; j < count; j++) x[j] = x[j] * share - spread;
    x[target] -= 1 - job->smoothing;
    const double log_total = log(total), mean = job->smoothing ? all / count - log_total : 0;
    job->chosen[row] = (float)(own - log_total);
    job->losses[row] =
        (float)-((1 - job->smoothing) * (own - log_total) + job->smoothing * mean);
}

INLINE void rows(const Job *job) {
    for (long row = job->from; row < job->to; row++) {
        float *x = job->x + row * job->count;
        if (job->targets)
            told(job, x, row);
        else
            log_softmax(job, x);
    }
}

#include "by_rows.h"

/* With targets, the loss and each target's log-probability; without, the log-probabilities. */
void regard_tokens(float *x, const float *bias, const long *targets, float smoothing, float *chosen,
                   float *losses, long count, long total, int threads, int level) {
    by_rows((Job){x, bias, targets, smoothing, chosen, losses, .count = count, .level = level}, total,
            threads);
}

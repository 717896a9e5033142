/* Rows divided by their L2 norm, or by the least norm if theirs is smaller: one pass, where a norm and
 * a quotient are two.
 *
 * Shapes, row-major: x and y (rows, size).
 */

#include <math.h>

#include "common.h"

typedef struct {
    const float *x;
    float *y, min_norm;
    long size, from, until;
    int status;
} Job;

INLINE void run(const Job *job) {
    for (long row = job->from; row < job->until; row++) {
        const float *restrict x = job->x + row * job->size;
        float *restrict y = job->y + row * job->size;
        double squares = 0; /* a float would overflow with large elements */
#pragma omp simd reduction(+ : squares)
        for (long i = 0; i < job->size; i++) squares += (double)x[i] * x[i];
        const float norm = (float)sqrt(squares), divisor = norm < job->min_norm ? job->min_norm : norm;
#pragma omp simd
        for (long i = 0; i < job->size; i++) y[i] = x[i] / divisor;
    }
}

#include "parallel_rows.h"

/* A NaN makes its whole row NaN. */
void regard_l2_normalize(const float *x, float *y, float min_norm, long rows, long size, int threads) {
    parallel_rows((Job){x, y, min_norm, size}, rows, threads);
}

/* Rows stretched to length 1, or divided by the least length if they are shorter: one walk over
 * them, where a norm and a quotient are two.
 *
 * Shapes, row-major: x and found (rows, size).
 */

#include <math.h>

#include "common.h"

typedef struct {
    const float *x;
    float *found, least;
    long from, to, size;
} Job;

INLINE void rows(const Job *job) {
    for (long row = job->from; row < job->to; row++) {
        const float *restrict x = job->x + row * job->size;
        float *restrict found = job->found + row * job->size;
        double squares = 0; /* a float would not hold those of large numbers */
#pragma omp simd reduction(+ : squares)
        for (long i = 0; i < job->size; i++) squares += (double)x[i] * x[i];
        const float whole = (float)sqrt(squares), length = whole < job->least ? job->least : whole;
#pragma omp simd
        for (long i = 0; i < job->size; i++) found[i] = x[i] / length;
    }
}

#include "parallel_rows.h"

/* What is NaN makes its whole row so. */
void regard_l2_normalize(const float *x, float *found, float least, long total, long size, int threads) {
    by_rows((Job){x, found, least, .size = size}, total, threads);
}

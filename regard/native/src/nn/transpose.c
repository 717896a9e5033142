/* A matrix with rows for columns, in squares that stay in registers. */

#include "simd.h"

typedef struct {
    const float *matrix; /* (total, columns) */
    float *turned;       /* (columns, total) */
    long from, to, total, columns;
} Job;

/* So many rows of the result are written side by side as a line of memory has numbers. */
INLINE void rows(const Job *job) {
    const long total = job->total, columns = job->columns;
    for (long i = job->from * SIDE; i < least(job->to * SIDE, total); i += SIDE)
        for (long j = 0; j < columns; j += SIDE) {
            const float *from = job->matrix + i * columns + j;
            float *to = job->turned + j * total + i;
            if (i + SIDE <= total && j + SIDE <= columns) {
                Side square[SIDE];
                turn_square(from, columns, square);
                for (int n = 0; n < SIDE; n++) *(Loose *)(to + n * total) = square[n];
                continue;
            }
            for (long n = 0; n < least(columns - j, SIDE); n++)
                for (long m = 0; m < least(total - i, SIDE); m++)
                    to[n * total + m] = from[m * columns + n];
        }
}

#include "parallel_rows.h"

void regard_transpose(const float *matrix, float *turned, long rows, long columns, int threads) {
    by_rows((Job){.matrix = matrix, .turned = turned, .total = rows, .columns = columns},
            up(rows, SIDE) / SIDE, threads);
}

/* A matrix transpose, in squares that stay in registers. */

#include "simd.h"

typedef struct {
    const float *matrix; /* (rows, columns) */
    float *transposed;   /* (columns, rows) */
    long rows, columns;
    long from, until; /* squares along the rows */
    int status;
} Job;

/* LANES rows at a time, so that whole cache lines of the result are written. */
INLINE void run(const Job *job) {
    const long rows = job->rows, columns = job->columns;
    for (long i = job->from * LANES; i < min_long(job->until * LANES, rows); i += LANES)
        for (long j = 0; j < columns; j += LANES) {
            const float *from = job->matrix + i * columns + j;
            float *to = job->transposed + j * rows + i;
            if (i + LANES <= rows && j + LANES <= columns) {
                Vec square[LANES];
                transpose_square(from, columns, square);
                for (int n = 0; n < LANES; n++) *(VecUnaligned *)(to + n * rows) = square[n];
                continue;
            }
            for (long n = 0; n < min_long(columns - j, LANES); n++)
                for (long m = 0; m < min_long(rows - i, LANES); m++)
                    to[n * rows + m] = from[m * columns + n];
        }
}

#include "parallel_rows.h"

void regard_transpose(const float *matrix, float *transposed, long rows, long columns, int threads) {
    parallel_rows((Job){matrix, transposed, rows, columns}, round_up(rows, LANES) / LANES, threads);
}

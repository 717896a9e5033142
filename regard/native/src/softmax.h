/* Softmax of a row of scores, and its backward. Rows are aligned and padded to whole vectors. */

#ifndef REGARD_SOFTMAX_H
#define REGARD_SOFTMAX_H

#include "simd.h"

/* The keys that a row may read; none if first >= end. */
typedef struct {
    long first, end;
} Span;

/* Zero the weights of whole vectors outside this row's span, within the span of all rows. */
INLINE void zero_outside(float *weights, Span span, Span all) {
    const long first = span.first < span.end ? span.first / LANES * LANES : all.end;
    const long end = span.first < span.end ? round_up(span.end, LANES) : all.end;
    for (long j = all.first; j < first; j++) weights[j] = 0.0f;
    for (long j = end; j < all.end; j++) weights[j] = 0.0f;
}

/* A vector of scores times the factor, minus infinity outside the span. */
INLINE Vec masked_scores(const float *scores, long j, Span span, float factor) {
    const Vec scaled = factor * *(const Vec *)(scores + j);
    if (j >= span.first && j + LANES <= span.end) return scaled;
    const VecInt lane = {LANE_INDEX}; /* relative to j: a key's index may exceed an int */
    const int first = (int)min_long(span.first - j, LANES), end = (int)min_long(span.end - j, LANES);
    return select((lane >= first) & (lane < end), scaled, (Vec){0} - INFINITY);
}

/* Scores to exponentials, in place, less the row's maximum. Times the result they are the weights. */
INLINE float exp_row(float *scores, Span span, float factor, float *row_max) {
    const long start = span.first / LANES * LANES;
    Vec top = (Vec){0} - INFINITY, sum = {0};
    for (long j = start; j < span.end; j += LANES)
        top = vec_max(masked_scores(scores, j, span, factor), top);
    *row_max = horizontal_max(top);
    for (long j = start; j < span.end; j += LANES)
        sum += *(Vec *)(scores + j) = exp_nonpositive(masked_scores(scores, j, span, factor) - *row_max);
    return span.first < span.end ? 1.0f / horizontal_sum(sum) : 0.0f;
}

/* Scores to weights, in place, by the maximum and the scale that exp_row has found. */
INLINE void recompute_weights(float *scores, Span span, float factor, float row_max, float scale) {
    for (long j = span.first / LANES * LANES; j < span.end; j += LANES)
        *(Vec *)(scores + j) = scale * exp_nonpositive(masked_scores(scores, j, span, factor) - row_max);
}

/* The gradient of a row's weights becomes that of its scores, in place. */
INLINE void softmax_backward(const float *weights, float *grad, Span span, float factor) {
    const long start = span.first / LANES * LANES;
    Vec sum = {0};
    for (long j = start; j < span.end; j += LANES)
        sum += *(const Vec *)(weights + j) * *(Vec *)(grad + j);
    const float mean = horizontal_sum(sum);
    for (long j = start; j < span.end; j += LANES) {
        Vec *to = (Vec *)(grad + j);
        *to = factor * (*(const Vec *)(weights + j) * (*to - mean));
    }
}

INLINE void scale_row(const float *weights, float scale, Span all, float *to) {
    for (long j = all.first; j < all.end; j += LANES)
        *(VecUnaligned *)(to + j) = scale * *(const VecUnaligned *)(weights + j);
}

#endif

/* A row of scores to weights, and the way back. Rows begin on a side and are padded to whole ones. */

#ifndef REGARD_SOFTMAX_H
#define REGARD_SOFTMAX_H

#include "simd.h"

/* What a row sees of its keys; nothing if the first is not before the end. */
typedef struct {
    long first, end;
} Span;

/* No weight for whole sides that this row does not see. */
INLINE void hide(float *weights, Span own, Span all) {
    const long first = own.first < own.end ? own.first / SIDE * SIDE : all.end;
    const long end = own.first < own.end ? up(own.end, SIDE) : all.end;
    for (long j = all.first; j < first; j++) weights[j] = 0.0f;
    for (long j = end; j < all.end; j++) weights[j] = 0.0f;
}

/* A side of scores, minus infinity where they are not seen. */
INLINE Side scored(const float *scores, long j, Span own, float factor) {
    const Side found = factor * *(const Side *)(scores + j);
    if (j >= own.first && j + SIDE <= own.end) return found;
    const Order at = {COUNTED}; /* within the side: places among all keys may not be ints */
    const int first = (int)least(own.first - j, SIDE), end = (int)least(own.end - j, SIDE);
    return pick((at >= first) & (at < end), found, (Side){0} - INFINITY);
}

/* A row's scores to weights that are still to be multiplied by what is returned. */
INLINE float weigh(float *scores, Span own, float factor, float *most) {
    const long start = own.first / SIDE * SIDE;
    Side top = (Side){0} - INFINITY, sum = {0};
    for (long j = start; j < own.end; j += SIDE) top = higher(scored(scores, j, own, factor), top);
    *most = highest(top);
    for (long j = start; j < own.end; j += SIDE)
        sum += *(Side *)(scores + j) = falling(scored(scores, j, own, factor) - *most);
    return own.first < own.end ? 1.0f / total(sum) : 0.0f;
}

/* Scores to weights, once more. */
INLINE void weigh_again(float *scores, Span own, float factor, float most, float share) {
    for (long j = own.first / SIDE * SIDE; j < own.end; j += SIDE)
        *(Side *)(scores + j) = share * falling(scored(scores, j, own, factor) - most);
}

/* What is sent to a row's weights becomes what is sent to its scores. */
INLINE void to_scores(const float *weights, float *sent, Span own, float factor) {
    const long start = own.first / SIDE * SIDE;
    Side sum = {0};
    for (long j = start; j < own.end; j += SIDE)
        sum += *(const Side *)(weights + j) * *(Side *)(sent + j);
    const float mean = total(sum);
    for (long j = start; j < own.end; j += SIDE) {
        Side *to = (Side *)(sent + j);
        *to = factor * (*(const Side *)(weights + j) * (*to - mean));
    }
}

INLINE void keep(const float *weights, float share, Span all, float *to) {
    for (long j = all.first; j < all.end; j += SIDE)
        *(Loose *)(to + j) = share * *(const Loose *)(weights + j);
}

#endif

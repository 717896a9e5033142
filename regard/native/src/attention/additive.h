/* Additive scores of one item, and their backward: see additive.c. */

#ifndef REGARD_ADDITIVE_H
#define REGARD_ADDITIVE_H

#include "common.h"
#include "prefetch.h"

/* Some rows of one item: what a tile function works on. */
typedef struct {
    const float *exp_q, *exp_k, *v, *grad_scores; /* grad_scores: in backward */
    float *scores, *grad_q, *grad_k, *grad_v;
    const long *key_index;
    long rows, keys, width, q_stride;
    int group;         /* how many elements share a reciprocal: see regard_reciprocal_group */
    int overwrite;     /* in backward: write grad_k and grad_v instead of adding to them */
    int separate_adds; /* in backward: add beside multiplying, as AMD's processors can */
    Prefetch *prefetch; /* what to prefetch after each tile, or NULL */
} AdditiveRows;

/* The loops, in additive_avx512.c or additive_generic.c. */
void regard_additive_rows_forward(const AdditiveRows *rows);
void regard_additive_rows_backward(const AdditiveRows *rows);
float regard_row_exponentials(const float *x, float *to, long rows, long size, long width);

int regard_reciprocal_group(float max_abs);
long regard_next_rows(long left, long most);
float regard_exponentials(const float *x, float *to, long rows, long size, long width, int threads);

#endif

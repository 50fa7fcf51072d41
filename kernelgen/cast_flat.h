/*
 * The cast's passes over tensors that stay in their own layout.
 *
 *     flat (no dbias): a work-group takes chunk elements;
 *         its work-items take vectors i, i + lws, ... of them
 *     planes (dbias, NCHW): a unit is a plane [p][q] of one image and channel,
 *         or a part of chunk elements of one; a work-group takes a unit, or
 *         as many small ones as a chunk holds
 *     pixels (dbias, NHWC): a work-group takes rows [k] of consecutive
 *         pixels; a work-item takes vectors i, i + lws, ... of every row
 *         (both: where W is only counted, more work-groups do it, each a chunk)
 *     bias: one work-item a channel sums the partial sums of planes or pixels
 *
 * Partial sums of dbias (scratch, fp32): planes[unit], pixels[group][k].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CAST_FLAT_H
#define CLCONV_CAST_FLAT_H

#include "kernel.h"

/* The rows of the cast's params. */
enum {
    CLCONV_CAST_VEC,
    CLCONV_CAST_LWS,
    CLCONV_CAST_CHUNK,
    CLCONV_CAST_SHAPE,
    CLCONV_CAST_PARAMS
};

/* What is done to one tensor. */
typedef struct clconv_cast_part {
    clconv_tensor tensor;
    bool copies, bias;
} clconv_cast_part;

clconv_cast_part clconv_cast_part_of(const clconv_task *t, clconv_tensor tensor);

/* What a copy of the tensor, and dbias, are good for: clconv_op. */
unsigned clconv_cast_serves(clconv_cast_part a);

/* The tensors (bits) that these passes read: what is not packed. */
unsigned clconv_cast_flat_reads(const clconv_task *t);

/* Does W go through the entry point of X? */
bool clconv_cast_is_like_x(const clconv_task *t, clconv_cast_part w);

/* Is W, which is only counted, counted by work-groups of that part's pass? */
bool clconv_cast_counts_w_beside(const clconv_task *t, clconv_cast_part a);

/* Partial sums of dbias, and work-groups that make them. */
int64_t clconv_cast_flat_sums(const clconv_task *t, int64_t batch,
                              int64_t *groups);

/* The pass of a tensor; the last sum of dbias. */
clconv_pass clconv_cast_flat_pass(const clconv_task *t, clconv_cast_part a,
                                  int64_t batch);
clconv_pass clconv_cast_flat_bias_pass(const clconv_task *t);

/* The types that elements are counted in, once and first; a tensor's functions
 * and its entry point; the entry point of the last sum. */
void clconv_cast_flat_emit_seen(clconv_emit *e, const clconv_task *t);
void clconv_cast_flat_emit(clconv_emit *e, const clconv_task *t,
                           clconv_cast_part a);
void clconv_cast_flat_emit_bias(clconv_emit *e, const clconv_task *t);

#endif

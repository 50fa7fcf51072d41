/*
 * The sizes of a problem as one kernel argument, for kernels that are right
 * for every shape. The list below is the struct's one place: C and OpenCL C
 * are both made from it, 64-bit members first so that no compiler pads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SIZES_H
#define CLCONV_SIZES_H

#include "emit.h"
#include "problem.h"

/* clang-format off */

/* Element strides of dY (image, k, p, q), of X and dX (image, c, h, w) and
 * of W and dW (k, c within the group, r, s). */
#define CLCONV_SIZES_LONG(X)                                                   \
    X(dy_image) X(dy_channel) X(dy_row) X(dy_column)                           \
    X(x_image) X(x_channel) X(x_row) X(x_column)                               \
    X(w_image) X(w_channel) X(w_row) X(w_column)

/* n is the batch of the call. */
#define CLCONV_SIZES_INT(X)                                                    \
    X(n) X(c) X(h) X(w) X(k) X(r) X(s) X(p) X(q)                               \
    X(stride_h) X(stride_w) X(pad_top) X(pad_left)                             \
    X(dilation_h) X(dilation_w) X(groups) X(group_c) X(group_k)

/* clang-format on */

typedef struct clconv_sizes {
#define MEMBER(name) int64_t name;
    CLCONV_SIZES_LONG(MEMBER)
#undef MEMBER
#define MEMBER(name) int32_t name;
    CLCONV_SIZES_INT(MEMBER)
#undef MEMBER
} clconv_sizes;

void clconv_sizes_fill(const clconv_problem *p, int64_t batch,
                       clconv_sizes *out);

/* typedef struct { long dy_image; ... int group_k; } sizes_t; */
void clconv_sizes_emit(clconv_emit *e);

/* const sizes_t sizes = { .dy_image = 4096, ... .n = batch, ... }; */
void clconv_sizes_emit_baked(clconv_emit *e, const clconv_problem *p);

#endif

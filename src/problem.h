/*
 * The problem: a validated description with everything that follows from its
 * numbers alone. Start with clconv_problem_init(); the rest asks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PROBLEM_H
#define CLCONV_PROBLEM_H

#include <stdbool.h>

#include "bits.h"
#include "clconv/clconv.h"
#include "text.h"

/* The tensors, in the order of clconv_report. */
typedef enum clconv_tensor {
    CLCONV_DY,
    CLCONV_X,
    CLCONV_W,
    CLCONV_DW,
    CLCONV_DB,
    CLCONV_DX,
    CLCONV_Y,
    CLCONV_B, /* the bias of a forward convolution: it is not counted */
    CLCONV_TENSORS
} clconv_tensor;

/* Element strides of a tensor over its four roles. For dY and Y: image, channel
 * k, row p, column q; for X and dX: image, channel c, row h, column w; for W and
 * dW: output channel k, channel within the group, row r, column s. */
typedef struct clconv_strides {
    int64_t image, channel, row, column;
} clconv_strides;

/* All sizes fit in 31 bits; their products may not. */
typedef struct clconv_problem {
    int64_t n, c, h, w;
    int64_t k, r, s;
    int64_t p, q; /* output height and width */
    int64_t stride_h, stride_w;
    int64_t pad_top, pad_bottom, pad_left, pad_right;
    int64_t dilation_h, dilation_w;
    int64_t groups;
    int64_t group_c, group_k; /* channels of one group */
    clconv_layout layout;
    clconv_math math;
    clconv_type type[CLCONV_TENSORS];
    int scale_log2, dy_log2, dx_log2;
    clconv_overflow overflow;
    clconv_activation activation; /* of Y */
    size_t alignment;
} clconv_problem;

/* A copy of the caller's description in this version's struct: fields that
 * an older, smaller one lacks have their defaults. INVALID_ARGUMENT if desc is
 * NULL or clconv_desc_init() has not seen it; the values are not checked. */
clconv_status clconv_problem_read_desc(const clconv_desc *desc,
                                       clconv_desc *out);

/* INVALID_ARGUMENT for what clconv_desc_validate() refuses, UNSUPPORTED for
 * what this version lacks. */
clconv_status clconv_problem_init(const clconv_desc *desc, clconv_problem *out);

/* INVALID_ARGUMENT if Y or its bias is fp32 and need not be aligned to 4. */
clconv_status clconv_problem_check_forward(const clconv_problem *p);

/* The problem string, see clconv_desc_format(). */
void clconv_problem_format(const clconv_problem *p, clconv_text *out);

/* May kernels only read it? */
bool clconv_tensor_is_input(clconv_tensor tensor);

/* "dy", "x", ... as the report and the problem string spell them. */
const char *clconv_tensor_name(clconv_tensor tensor);

int64_t clconv_problem_elements(const clconv_problem *p, clconv_tensor tensor);

/* The problem whose groups are so many of p's, which divide them: tensors other
 * than W and dW are the same. */
clconv_problem clconv_problem_merge_groups(const clconv_problem *p,
                                           int64_t merge);
size_t clconv_problem_bytes(const clconv_problem *p, clconv_tensor tensor);
clconv_strides clconv_problem_strides(const clconv_problem *p,
                                      clconv_tensor tensor);

/* Is this operand rounded to fp16 before it is multiplied? */
bool clconv_problem_casts(const clconv_problem *p, clconv_tensor tensor);

/* The power of two that this operand's cast multiplies in: scale_log2 for a
 * dY that is cast, else 0. */
int clconv_problem_cast_log2(const clconv_problem *p, clconv_tensor tensor);

/* The power of two that the epilogue of dW, db or dX multiplies in, in fp32,
 * so that the output is in the units that the description promises. */
int clconv_problem_epilogue_log2(const clconv_problem *p, clconv_tensor tensor);

/* Multiply-adds of one gradient (dW or dX) or of Y, times two. */
double clconv_problem_flops(const clconv_problem *p);

#endif

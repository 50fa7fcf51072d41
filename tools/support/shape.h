/*
 * The sizes of one convolution as plain numbers, worked out here and not by
 * the library, so that programs which check the library have their own
 * arithmetic:
 *
 *     shape z;
 *     if (!shape_from_desc(&desc, &z)) ...  // no output element, or too big
 *     x has shape_x_count(&z) elements, [n][c][h][w]
 *
 * Layout is no part of it: arrays that go with a shape are float or double
 * and lie as x [n][c][h][w], w [k][cg][r][s], dy [n][k][p][q].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_SHAPE_H
#define CLCONV_TOOLS_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clconv/clconv.h"

typedef struct shape {
    int64_t n, c, h, w;
    int64_t k, r, s;
    int64_t stride_h, stride_w;
    int64_t pad_top, pad_bottom, pad_left, pad_right;
    int64_t dilation_h, dilation_w;
    int64_t groups;
    int64_t p, q;   /* output height and width */
    int64_t cg, kg; /* channels and filters of one group */
} shape;

/* False if a size is out of the header's range, if there is no output
 * element, or if a tensor has more than SHAPE_MAX_ELEMENTS elements. */
#define SHAPE_MAX_ELEMENTS ((int64_t)1 << 40)
bool shape_from_desc(const clconv_desc *desc, shape *out);

/* Elements of a tensor; dw has those of w, dx those of x. */
size_t shape_x_count(const shape *z);
size_t shape_w_count(const shape *z);
size_t shape_dy_count(const shape *z);

/* Products that one element of dw, or of dx, sums at most. */
double shape_dw_depth(const shape *z);
double shape_dx_depth(const shape *z);

/* Operations of one gradient, dw or dx, in 1e9: 2 for each product. */
double shape_gflop(const shape *z);

/* Where tap r of output row p reads the input, and tap s of column q; outside
 * [0, h) and [0, w) it reads padding. */
int64_t shape_input_row(const shape *z, int64_t p, int64_t r);
int64_t shape_input_column(const shape *z, int64_t q, int64_t s);

/* The output row that reads input row h through tap r, and the column for w
 * and s, not yet checked against p and q; false if the stride skips it. */
bool shape_output_row(const shape *z, int64_t h, int64_t r, int64_t *p);
bool shape_output_column(const shape *z, int64_t w, int64_t s, int64_t *q);

#endif

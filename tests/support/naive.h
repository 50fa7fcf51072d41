/*
 * The gradients of a convolution as the definition in clconv.h reads, in
 * double, by six plain loops: what device tests compare against.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NAIVE_H
#define NAIVE_H

#include "clconv/clconv.h"

/* Tensors in the description's layout, in true units: no exponent of the
 * description is applied. */
typedef struct naive_data {
    const float *x, *w, *dy;
} naive_data;

/* dw, db, dx are the gradients; the others are sums of the squares of the
 * products, whose roots say how large a rounding error may be. Any pointer
 * may be NULL: not wanted. */
typedef struct naive_result {
    double *dw, *db, *dx;
    double *dw_squares, *dx_squares;
} naive_result;

/* Elements of a tensor for batch images. */
int64_t naive_x_elements(const clconv_desc *d, int64_t batch);
int64_t naive_w_elements(const clconv_desc *d);
int64_t naive_dy_elements(const clconv_desc *d, int64_t batch);

/* Writes every element of what is wanted. The description must be valid. */
void naive_backward(const clconv_desc *d, int64_t batch, const naive_data *data,
                    const naive_result *out);

#endif

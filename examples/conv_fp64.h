/*
 * The gradients of a 3 x 3 convolution (stride 1, padding 1) in double, image
 * by image on one thread of the host: what the library's results are compared
 * with. Independent of the library and of OpenCL.
 *
 *     conv_fp64 truth;
 *     if (conv_fp64_open(shape, w, &truth)) {
 *         for (size_t n = 0; n < shape.n; ++n)
 *             conv_fp64_add_image(&truth, x_of(n), dy_of(n));
 *         ... truth.dw ...
 *         conv_fp64_close(&truth);
 *     }
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_CONV_FP64_H
#define CLCONV_EXAMPLES_CONV_FP64_H

#include <stdbool.h>

#include "conv.h"

typedef struct conv_fp64 {
    conv_shape shape;
    const float *w; /* borrowed, [k][c][3][3] */

    /* Sums over the images added so far. */
    double *dw;     /* [k][c][3][3] */
    double *db;     /* [k] */
    double *db_abs; /* [k], the sum of |dy|: what db's rounding grows with */

    double *dx; /* [c][size][size], of the last image */

    /* Planes of the last image with a border of zeros, see conv_fp64.c. */
    size_t row, length, stride;
    double *x_planes, *dy_planes;
} conv_fp64;

/* false: out of memory; out is then untouched. */
bool conv_fp64_open(conv_shape shape, const float *w, conv_fp64 *out);
void conv_fp64_close(conv_fp64 *truth);

/* x [c][size][size], dy [k][size][size] */
void conv_fp64_add_image(conv_fp64 *truth, const float *x, const float *dy);

#endif

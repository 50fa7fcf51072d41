/*
 * The OpenCL C of the fp64 reference, and the sizes that its kernels take.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_REFERENCE_KERNELS_H
#define CLCONV_TOOLS_REFERENCE_KERNELS_H

#include "clconv/clconv.h"

/* The program, one string a kernel; for clCreateProgramWithSource(). */
#define REFERENCE_SOURCE_COUNT 3
extern const char *const reference_source[REFERENCE_SOURCE_COUNT];

/* What one work-item computes: reference_dw does 4 filters x 4 channels of
 * one tap, reference_dx does 8 channels x 16 columns. */
enum {
    REFERENCE_DW_FILTERS = 4,
    REFERENCE_DW_CHANNELS = 4,
    REFERENCE_DX_CHANNELS = 8,
    REFERENCE_DX_COLUMNS = 16,
    REFERENCE_LANES = 8
};

/*
 * The one struct of sizes, host and device alike: 32-bit integers only, so
 * both compilers lay it out the same.
 *
 * Column j of the padded input lies at [j % stride_w][j / stride_w] of its
 * row ("phase" and place), so that neighbours in q are neighbours in memory
 * at any stride:
 *   x   [n][c][h_padded][stride_w][x_width]   padding and slack are 0
 *   dy  [n][k][p][dy_width], element q at dy_left + q, the rest 0
 *   w   [group][block of 8 channels][kg][r][s][8], doubles, slack is 0
 *   dw  [k][cg][r][s], dx [n][c][h][w], doubles
 */
typedef struct reference_sizes {
    cl_int n, c, h, w, k, r, s;
    cl_int stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    cl_int groups, cg, kg, p, q;
    cl_int h_padded, x_width, dy_width, dy_left;
} reference_sizes;

#endif

/*
 * The routines of CLBlast that a convolution's gradients are made of, for fp32
 * and for fp16 tensors alike. Matrices are in row-major order.
 *
 * Each is enqueued on the in-order queue. False: said on stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONTENDER_CLBLAST_BLAS_H
#define CONTENDER_CLBLAST_BLAS_H

#include <clblast_c.h>

#include "host.h"
#include "shape.h"

typedef struct clblast_matrix {
    cl_mem mem;
    size_t offset, columns; /* in elements; columns as they are stored */
    size_t stride;          /* from one of a batch to the next */
    bool transposed;
} clblast_matrix;

typedef struct clblast_gemm {
    bool half;
    size_t m, n, k, batch;
    clblast_matrix a, b, c;
    bool accumulate; /* c += a * b, else c = a * b */
} clblast_gemm;

bool clblast_multiply(cl_command_queue queue, const clblast_gemm *g);

/* y (+)= the matrix [rows][columns] times ones, or its transpose. */
typedef struct clblast_sum {
    bool half;
    size_t rows, columns;
    cl_mem matrix, ones, y;
    bool transposed;
    bool accumulate;
} clblast_sum;

bool clblast_add_up(cl_command_queue queue, const clblast_sum *s);

/* col [images][c*r*s][p*q] from images of x, from the offset on, and back:
 * col2im adds to im. */
typedef struct clblast_columns {
    bool half;
    const shape *shape;
    size_t images;
    cl_mem im, col;
    size_t im_offset;
} clblast_columns;

bool clblast_im2col(cl_command_queue queue, const clblast_columns *c);
bool clblast_col2im(cl_command_queue queue, const clblast_columns *c);

#endif

/*
 * The gradients of one convolution by CLBlast's routines: which launches, on
 * which buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONTENDER_CLBLAST_BACKWARD_H
#define CONTENDER_CLBLAST_BACKWARD_H

#include "contender_buffers.h"
#include "contender_clblast_blas.h"
#include "contender_clblast_cast.h"

typedef struct clblast_backward {
    host *host;
    contender_buffers buffers; /* fp32, a tensor each for every set */
    shape z;
    bool half;
    bool pointwise;    /* x is its own col */
    size_t crs, pq;    /* c*r*s, p*q */
    size_t chunk;      /* images that one GEMM takes */
    size_t max_chunk;  /* images that col and partial hold */
    cl_mem col;        /* [max_chunk][crs][pq] */
    cl_mem partial;    /* [max_chunk][k][crs]; NULL: max_chunk is 1 */
    cl_mem image_sums; /* [n][k] */
    cl_mem ones, half_ones;
    clblast_cast cast;
    cl_mem halves[CONTENDER_TENSORS]; /* fp16, for all sets */
} clblast_backward;

/* Fills with zeros. CLBlast's GEMV multiplies what y holds by a beta of 0, so
 * a NaN there would stay: outputs and sums are cleared once, after opening.
 * False: said on stderr. */
bool clblast_clear(const clblast_backward *b, cl_mem mem);
bool clblast_clear_outputs(const clblast_backward *b,
                           const cl_mem mem[CONTENDER_TENSORS]);

/* Enqueues the gradients of one set. False: said on stderr. */
bool clblast_backward_enqueue(clblast_backward *b, int set);

#endif

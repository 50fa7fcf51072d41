/*
 * Inputs and results of one problem on the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_DATA_H
#define CLCONV_BENCH_DATA_H

#include "contender.h"
#include "shape.h"

/* Random normal values, those of dy times 1e-3, about what a network has. */
#define DATA_DY_SIZE 1e-3F

typedef struct bench_data {
    shape z;
    clconv_layout layout;
    float *x, *w, *dy; /* in that layout */
} bench_data;

/* False if there is no memory, said on stderr. The shape must fit. */
bool data_new(const clconv_desc *desc, bench_data *out);
void data_free(bench_data *data);

/* Those of ops (a clconv_op mask), filled with NaN. */
bool data_results_new(const shape *z, unsigned ops, contender_results *out);
void data_results_free(contender_results *results);

/* A copy of outer x channels x pixels values, from a layout to NCHW. NULL if
 * there is no memory, said on stderr. */
float *data_as_nchw(const float *values, clconv_layout layout, size_t outer,
                    size_t channels, size_t pixels);

/* Bytes of the tensors that a call with these ops reads and writes, each
 * once; with X, W, dY and dX in fp16 if they are halves. */
double data_bytes(const shape *z, unsigned ops, bool halves);

#endif

/*
 * The example's convolutions, all 3 x 3 with stride 1 and padding 1, by
 * libclconv: from arrays on the host to arrays on the host.
 *
 *     conv_engine engine;
 *     conv_engine_open(&h, &engine);
 *     clconv_desc desc = conv_backward_desc(shape, CLCONV_MIXED, 10);
 *     conv_call call;
 *     conv_call_open(&engine, &desc, CLCONV_OP_BACKWARD, &call);
 *     conv_run(&call, (conv_inputs){ x, w, dy }, (conv_gradients){ dw, db, dx });
 *     conv_call_close(&call);
 *     conv_engine_close(&engine);
 *
 * What returns bool has said on stderr why it is false.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_CONV_H
#define CLCONV_EXAMPLES_CONV_H

#include <stdbool.h>
#include <stddef.h>

#include "clconv/clconv.h"
#include "host.h"

#define CONV_TAPS 9 /* 3 x 3 */

/* x [n][c][size][size], w [k][c][3][3], dy and y [n][k][size][size] */
typedef struct conv_shape {
    size_t n, c, k, size;
} conv_shape;

size_t conv_x_count(conv_shape shape);
size_t conv_w_count(conv_shape shape);
size_t conv_y_count(conv_shape shape);

typedef struct conv_inputs {
    const float *x, *w, *dy; /* x is read for dw, w for dx */
} conv_inputs;

/* dw as w, db [k], dx as x; NULL: not wanted. */
typedef struct conv_gradients {
    float *dw, *db, *dx;
} conv_gradients;

typedef struct conv_engine {
    const host *host; /* borrowed */
    clconv_context *context;
} conv_engine;

bool conv_engine_open(const host *h, conv_engine *out);
void conv_engine_close(conv_engine *engine);

/* The gradients of a convolution, dY multiplied by 2^scale_log2 where it is
 * rounded to fp16. */
clconv_desc conv_backward_desc(conv_shape shape, clconv_math math,
                               int scale_log2);

/* One description, planned once and then run with any data. */
typedef struct conv_call {
    const conv_engine *engine;
    clconv_desc desc;
    unsigned ops;
    clconv_plan *plan;
} conv_call;

bool conv_call_open(const conv_engine *engine, const clconv_desc *desc,
                    unsigned ops, conv_call *out);
void conv_call_close(conv_call *call); /* twice is no harm */

bool conv_run(const conv_call *call, conv_inputs in, conv_gradients out);

/* y = x * w, the forward pass, with a call that conv_forward_open() made. */
bool conv_forward_open(const conv_engine *engine, conv_shape shape,
                       clconv_math math, conv_call *out);
bool conv_forward(const conv_call *call, const float *x, const float *w,
                  float *y);

/* What conv_measure() found besides the gradients. */
typedef struct conv_measurement {
    double microseconds;  /* median of one whole call: launches, dw, db, dx */
    clconv_report report; /* of one call */
} conv_measurement;

/* Runs once, which also completes compilation, and reads gradients and
 * report; then takes the time of up to calls calls, fewer if they are slow
 * but at least one. */
bool conv_measure(const conv_call *call, conv_inputs in, size_t calls,
                  conv_gradients out, conv_measurement *measurement);

#endif

/*
 * One call of the library on arrays of the host: buffers, guards around the
 * outputs, poison in them, and the results back as plain arrays.
 *
 *     runner r;
 *     if (!runner_open(&h, emulate_unit, plan_text, &r)) ...
 *     clconv_plan *plan;
 *     switch (runner_plan(&r, &setup, &plan)) ...
 *     outputs out;
 *     if (runner_call(&r, plan, &setup, &in, &out)) ...
 *     outputs_free(&out);
 *
 * What goes wrong is a sentence in r.error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_RUN_H
#define CLCONV_CHECK_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "clconv/clconv.h"
#include "host.h"
#include "shape.h"

typedef struct runner {
    const host *h;
    cl_command_queue unordered; /* an out-of-order queue; NULL: none here */
    clconv_context *context;
    const char *plan_text; /* of every plan; NULL: the library's choice */
    char error[1024];
} runner;

/* Keeps h and plan_text. False with a line on stderr. */
bool runner_open(const host *h, const char *emulate_unit, const char *plan_text,
                 runner *out);
void runner_close(runner *r);

/* How to call. z is the problem of the arrays; desc describes it, though its
 * n may be more than z.n. */
typedef struct run_setup {
    shape z;
    clconv_desc desc;
    unsigned plan_ops; /* what the plan can do */
    unsigned wanted;   /* what this call asks for */
    float beta_w, beta_b, beta_x, beta_y;
    size_t offset; /* of every tensor, on top of the guard */
    bool out_of_order;
} run_setup;

/* Arrays of setup.z: what the library is given. */
typedef struct run_inputs {
    const float *x, *w, *dy;
    const float *b; /* the bias of a forward convolution; NULL: none */
    /* What outputs hold before; NULL: bytes 0xFF, which are NaN. */
    const float *old_dw, *old_db, *old_dx, *old_y;
} run_inputs;

/* NULL where not wanted. */
typedef struct outputs {
    float *dw, *db, *dx, *y;
    clconv_report report;
} outputs;

typedef enum run_result {
    RUN_OK,
    RUN_UNSUPPORTED, /* CLCONV_UNSUPPORTED */
    RUN_FAILED
} run_result;

run_result runner_plan(runner *r, const run_setup *setup, clconv_plan **out);

/* RUN_FAILED also if a byte outside an output was written. */
run_result runner_call(runner *r, clconv_plan *plan, const run_setup *setup,
                       const run_inputs *in, outputs *out);
void outputs_free(outputs *out);

#endif

/*
 * One call of the library as device tests want it: a problem string, arrays
 * of float in, arrays of float out. Tensors that the description keeps in
 * fp16 are converted on the way.
 *
 *     backward_case c = {.problem = "n2c3h5w5k4r3s3p1", .x = x, .w = w,
 *                        .dy = dy};
 *     backward_result r;
 *     cr_assert(backward_run(&c, &r), "%s", backward_error());
 *     ... r.dw, r.db, r.dx, r.report ...
 *     backward_free(&r);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BACKWARD_H
#define BACKWARD_H

#include <stdbool.h>

#include "clconv/clconv.h"

typedef struct backward_case {
    const char *problem;
    const char *plan;    /* NULL: the library's choice */
    const char *emulate; /* a unit's name, or NULL */
    unsigned ops;        /* 0: all three */
    int64_t batch;       /* 0: desc.n; for none, batch_none */
    bool batch_none;     /* a call with batch 0 */
    const float *x, *w, *dy;
    const float *dw, *db, *dx; /* what the outputs hold before; NULL: NaN */
    float beta_w, beta_b, beta_x;
    bool no_report;
} backward_case;

/* Outputs are those of ops, the others NULL; dx has batch images. */
typedef struct backward_result {
    clconv_desc desc;
    float *dw, *db, *dx;
    clconv_report report;
} backward_result;

/* Runs it on the device that host_open(NULL) picks. False: see
 * backward_error(), and out is untouched. */
bool backward_run(const backward_case *c, backward_result *out);
void backward_free(backward_result *r);

/* What failed last, with the problem string. */
const char *backward_error(void);

#endif

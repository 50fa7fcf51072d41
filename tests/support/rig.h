/*
 * A device with a plan and all its tensors, for tests of the runtime: fp32
 * tensors of small integers, so that every plan must give exactly the
 * gradients that naive.h computes.
 *
 *     rig r;
 *     rig_open(&r, HOST_IN_ORDER, "n2c3h6w5k4r3s2p1", NULL);
 *     rig_run(&r);
 *     rig_expect(&r, CLCONV_OP_BACKWARD, 1);
 *     rig_close(&r);
 *
 * Whatever fails, fails the test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RIG_H
#define RIG_H

#include "host.h"

/* The tensors, in the order of clconv_report. */
enum { RIG_DY, RIG_X, RIG_W, RIG_DW, RIG_DB, RIG_DX, RIG_TENSORS };

typedef struct rig {
    host host;
    clconv_context *context;
    clconv_plan *plan;
    clconv_desc desc;
    clconv_backward_args args; /* all tensors, no workspace, no report */
    cl_mem mem[RIG_TENSORS];
    size_t elements[RIG_TENSORS]; /* for desc.n images */
    float *input[RIG_DW];         /* dy, x, w */
} rig;

/* options may be NULL. Outputs hold NaN. */
void rig_open(rig *r, host_order order, const char *problem,
              const clconv_context_options *options);
void rig_close(rig *r);

/* Enqueues r->args, and waits. */
void rig_run(rig *r);

/* Fills the outputs with one value; NaN: poison. */
void rig_fill_outputs(rig *r, float value);

/*
 * The outputs in ops (a clconv_op mask) must be times * gradient of
 * args.batch images, the others NaN. dX of images past the batch must be NaN.
 */
void rig_expect(const rig *r, unsigned ops, double times);

/* All outputs must be NaN still. */
void rig_expect_untouched(const rig *r);

/* A line of clconv_plan_explain() that begins like this; "" if none does.
 * Valid until the next call. */
const char *rig_explain(const clconv_plan *plan, const char *begin);

/* Programs that a plan of the problem takes from the options' cache directory;
 * -1: others had to be built. */
int rig_count_stored(const char *problem, const clconv_context_options *options);

#endif

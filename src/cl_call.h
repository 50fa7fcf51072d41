/*
 * The arguments of one call, checked: what clconv_call_read() accepts can be
 * launched. Every failure is INVALID_ARGUMENT and names the argument.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_CALL_H
#define CLCONV_CL_CALL_H

#include "plan.h"

typedef struct clconv_call {
    int64_t batch;
    unsigned wanted; /* clconv_op mask: outputs to write */
    clconv_buffer tensor[CLCONV_TENSORS];
    float beta[CLCONV_TENSORS]; /* of outputs */
    clconv_buffer workspace, report;
} clconv_call;

/* args has this version's struct: defaults are filled in. */
clconv_status clconv_call_read(cl_context context, const clconv_steps *steps,
                               const clconv_backward_args *args,
                               clconv_call *out);

/* The same for a forward convolution; args.y must be given. */
clconv_status clconv_call_read_forward(cl_context context,
                                       const clconv_steps *steps,
                                       const clconv_forward_args *args,
                                       clconv_call *out);

clconv_status clconv_call_check_queue(cl_context context, cl_device_id device,
                                      cl_command_queue queue);

clconv_status clconv_call_check_wait_list(cl_context context, cl_uint count,
                                          const cl_event *list);

/* The problem of this call: its n is the batch. */
clconv_problem clconv_call_problem(const clconv_steps *steps, int64_t batch);

#endif

/*
 * The kernels of a plan, ready to be enqueued. Shared between threads once
 * every step has been added.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CL_LAUNCH_H
#define CLCONV_CL_LAUNCH_H

#include "cl_cache.h"
#include "cl_call.h"

typedef struct clconv_launch clconv_launch;

/* Borrows steps and facts, which must outlive it. BUILD_FAILED if the driver
 * gives no tensor map for a pass. */
clconv_status clconv_launch_new(cl_context context, cl_device_id device,
                                const clconv_steps *steps,
                                const clconv_device *facts, clconv_launch **out);
void clconv_launch_free(clconv_launch *l); /* NULL: no-op */

/* Makes the kernels of a step; takes the program, also on failure. The
 * device may refuse the work-group: BUILD_FAILED. */
clconv_status clconv_launch_add(clconv_launch *l, int step, cl_program program);

/* Enqueues the call. After a failure outputs are undefined, as the sentence
 * says. *event (may be NULL) covers every output. */
clconv_status clconv_launch_run(clconv_launch *l, cl_command_queue queue,
                                const clconv_call *call, cl_uint wait_count,
                                const cl_event *wait_list, cl_event *event);

/* Keeps what a driver compiled at the first launch, if there was one. */
void clconv_launch_refresh(clconv_launch *l, clconv_cache *cache);

#endif

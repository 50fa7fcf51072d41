/*
 * Chooses the kernels for a problem on a device. Pure: no OpenCL call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PLANNER_H
#define CLCONV_PLANNER_H

#include "plan.h"

/*
 * ops: clconv_op mask of DW, DB, DX, not empty. text: a plan string, whole or
 * in part, or NULL. Errors: INVALID_ARGUMENT (plan string), UNSUPPORTED (no
 * kernel covers the problem within max_workspace bytes, or the one asked for
 * does not; the sentence says which).
 */
clconv_status clconv_planner_choose(const clconv_problem *problem,
                                    const clconv_device *device, unsigned ops,
                                    size_t max_workspace, const char *text,
                                    clconv_steps *out);

#endif

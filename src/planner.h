/*
 * Chooses the kernels for a problem on a device. Pure: no OpenCL call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PLANNER_H
#define CLCONV_PLANNER_H

#include "plan.h"

/* What a plan shall be made for. */
typedef struct clconv_request {
    unsigned ops;         /* clconv_op mask of DW, DB, DX, or FORWARD alone */
    size_t max_workspace; /* bytes */
    const char *plan;     /* a plan string, whole or in part; NULL: open */
    /* Another one, of a tuned record, for the roles that plan leaves open, and
     * why its kernels are there (a static string). NULL: none. */
    const char *suggestion;
    const char *suggestion_why;
    /* It was made for another problem: its kernels take their sizes as
     * arguments, so that no new program is compiled for this one. */
    bool suggestion_unbaked;
} clconv_request;

/*
 * Errors: INVALID_ARGUMENT (a plan string), UNSUPPORTED (no kernel covers the
 * problem within max_workspace, or the one asked for or suggested does not;
 * the sentence says which).
 */
clconv_status clconv_planner_choose(const clconv_problem *problem,
                                    const clconv_device *device,
                                    const clconv_request *request,
                                    clconv_steps *out);

/*
 * A kernel with these values as the step that does its role, for bwd_data and
 * bwd_weight with the copies and counts that it is granted, and its cost(). False
 * if it does not cover the problem or the values are not legal: *out and *cost
 * stay.
 */
bool clconv_planner_step(const clconv_problem *problem,
                         const clconv_device *device,
                         const clconv_kernel *kernel, const int *values,
                         clconv_step *out, double *cost);

#endif

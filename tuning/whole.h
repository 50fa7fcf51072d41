/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WHOLE_H
#define CLCONV_WHOLE_H

#include "planner.h"

/* The whole plan string of request, yours to free(). The planner alone fills
 * what is open, without a look at records. Errors: clconv_planner_choose()'s. */
clconv_status clconv_whole_plan(const clconv_problem *problem,
                                const clconv_device *device,
                                const clconv_request *request, char **out);

#endif

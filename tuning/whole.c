/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "whole.h"

clconv_status clconv_whole_plan(const clconv_problem *problem,
                                const clconv_device *device,
                                const clconv_request *request, char **out)
{
    clconv_steps steps;
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_status status =
        clconv_planner_choose(problem, device, request, &steps);
    if (status != CLCONV_OK)
        return status;
    clconv_steps_format(&steps, &text);
    char *whole = clconv_text_take(&text);
    if (!whole)
        return clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for a plan string");
    *out = whole;
    return CLCONV_OK;
}

/*
 * Which plan a problem gets, as its options' mode says: that of a tuned
 * record, the planner's own, or the generic kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHOOSE_H
#define CLCONV_CHOOSE_H

#include "objects.h"

/*
 * device: the context's, perhaps without matrix units. Roles that
 * options->plan names are as it says, whatever a record has. *match is the
 * record that the others were taken from, its record NULL if there is none.
 * *skip: so many of the best records are left out; afterwards so many that
 * *match is one of them. Start with 0.
 *
 * Errors: those of clconv_planner_choose(); UNSUPPORTED for CLCONV_PLAN_TUNED
 * if there is no record of this very problem on this device and driver.
 */
clconv_status clconv_choose_steps(clconv_context *context,
                                  const clconv_device *device,
                                  const clconv_problem *problem, unsigned ops,
                                  const clconv_plan_options *options, int *skip,
                                  clconv_steps *out, clconv_match *match);

#endif

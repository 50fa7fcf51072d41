/*
 * The device's part of clconv-run: one context, one plan, one call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RUN_COMPUTE_H
#define CLCONV_RUN_COMPUTE_H

#include "host.h"
#include "tensors.h"

typedef struct run_facts {
    char problem[256];
    char platform[256];
    char device[256];
    char plan[2048]; /* the plan string, as --plan takes it */
    double milliseconds;
    clconv_report report;
} run_facts;

/*
 * Fills the arrays of outputs, which have the shapes of desc, and facts. The
 * call runs twice: the first is the warm-up that may still compile, the
 * second is counted and timed, from enqueue to the end of the queue.
 * On failure a line stands on stderr.
 */
host_result compute_gradients(const run_options *options,
                              const clconv_desc *desc, const run_inputs *inputs,
                              run_outputs *outputs, run_facts *facts);

#endif

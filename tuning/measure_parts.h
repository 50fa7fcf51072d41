/*
 * What a clconv_measure is made of, for its own files and for tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_MEASURE_PARTS_H
#define CLCONV_MEASURE_PARTS_H

#include "expect.h"
#include "objects.h"
#include "prepared.h"

struct clconv_measure {
    clconv_context *context; /* retained */
    clconv_context *apart;   /* of the reference alone */
    clconv_desc desc;
    clconv_problem problem;
    unsigned ops;
    size_t max_workspace;
    cl_command_queue queue;
    clconv_tensors tensors;
    /* That the next timed call takes, whatever its plan: if each plan went
     * through the sets by itself, it would find in caches what the one before
     * it in the turns has just left there, and the first would not. */
    int next_set;
    cl_mem workspace; /* of all plans; grows; NULL: none yet */
    size_t workspace_size;
    clconv_reference reference;
    /* Computed when first asked for. */
    clconv_expected expected[CLCONV_SAMPLES];
    bool has_expected[CLCONV_SAMPLES];
    clconv_prepared_list plans;
};

/* The outcome and its reason, on one line. */
void clconv_measure_end_trial(clconv_trial *out, clconv_outcome outcome,
                              const char *why);

/* NULL: it is not prepared. */
clconv_prepared *clconv_measure_find(clconv_measure *m, unsigned ops,
                                     const char *plan);

/* One call with that set of tensors. */
clconv_status clconv_measure_enqueue(const clconv_measure *m, clconv_plan *plan,
                                     unsigned ops, int set);

#endif

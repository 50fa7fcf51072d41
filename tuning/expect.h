/*
 * What plans of a problem should compute, after plans in fp32.
 *
 *     clconv_reference r;
 *     status = clconv_reference_new(context, queue, desc, ops, 1e9, &r);
 *     clconv_expected e = {0};
 *     status = clconv_reference_expect(&r, CLCONV_SAMPLE_RANDOM, &e);
 *     ... e.value[CLCONV_DW], e.spread[CLCONV_DW] ...
 *     clconv_expected_free(&e);
 *     clconv_reference_free(&r);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXPECT_H
#define CLCONV_EXPECT_H

#include "sample.h"
#include "tensors.h"

typedef struct clconv_reference {
    clconv_problem problem;
    unsigned ops;
    /* Images that differ. The generic kernels are slow: they compute these, and
     * what n images give follows. */
    int64_t period;
    clconv_plan *generic;
    /* The planner's choice, for all but INTEGERS, which find every wrong index;
     * NULL: the generic kernels are fast enough. */
    clconv_plan *fast;
    clconv_tensors tensors; /* of period images, fp32 throughout */
} clconv_reference;

/* flops: what a run of the generic kernels may take for one gradient; so many
 * images differ, but two at least, for which a faster plan may be needed. */
clconv_status clconv_reference_new(clconv_context *context,
                                   cl_command_queue queue,
                                   const clconv_desc *desc, unsigned ops,
                                   double flops, clconv_reference *out);
void clconv_reference_free(clconv_reference *r);

/* Writes the sample's operands to the first set of t, whose problem is the
 * reference's but for types and scales. */
clconv_status clconv_reference_load(const clconv_reference *r,
                                    clconv_sample sample,
                                    const clconv_tensors *t);

/* Outputs, of the problem as described; of dX only the images that differ. */
typedef struct clconv_expected {
    clconv_sample sample;
    int64_t images;               /* that differ: the reference's period */
    float *value[CLCONV_TENSORS]; /* NULL: not computed */
    /* The Frobenius norm of sqrt(sum of a^2 b^2), where an element of the
     * output is sum of a b: the size of an error that is in proportion to the
     * terms, also where these cancel. */
    double spread[CLCONV_TENSORS];
} clconv_expected;

clconv_status clconv_reference_expect(const clconv_reference *r,
                                      clconv_sample sample,
                                      clconv_expected *out);
void clconv_expected_free(clconv_expected *e);

#endif

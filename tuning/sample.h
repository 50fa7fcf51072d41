/*
 * Inputs to time and judge plans with: made from a counter, the same on every
 * machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SAMPLE_H
#define CLCONV_SAMPLE_H

#include "problem.h"

/*
 * X(name, word). dY is scaled so that RANDOM's is near 1 after the cast, about
 * 1e-3 at the default scale, and TINY's near 1e-8 before it. In CANCELLING
 * neighbours in pixel and channel of dY differ in sign, and X and W vary little
 * around 1: each sum is far smaller than its terms. INTEGERS are so small that
 * every product and sum is exact.
 */
#define CLCONV_SAMPLE_LIST(X)                                                  \
    X(CLCONV_SAMPLE_RANDOM, "random")                                          \
    X(CLCONV_SAMPLE_TINY, "tiny")                                              \
    X(CLCONV_SAMPLE_CANCELLING, "cancelling")                                  \
    X(CLCONV_SAMPLE_INTEGERS, "integers")

#define CLCONV_SAMPLE_ENUM(name, word) name,
typedef enum clconv_sample {
    CLCONV_SAMPLE_LIST(CLCONV_SAMPLE_ENUM) CLCONV_SAMPLES
} clconv_sample;
#undef CLCONV_SAMPLE_ENUM

const char *clconv_sample_word(clconv_sample sample);

/* An operand (DY, X, W) of p.n images in p's layout, with values that its type
 * holds exactly. Yours to free(); NULL: no memory. */
float *clconv_sample_new(const clconv_problem *p, clconv_sample sample,
                         clconv_tensor tensor);

/* The root of the mean square of dY, as it is given, in units of what the cast
 * makes 1: 2^-17 for TINY. An fp16 dY is not cast, and its TINY is RANDOM. */
double clconv_sample_dy_size(const clconv_problem *p, clconv_sample sample);

#endif

/*
 * The counts that the library must report, worked out on the host from the
 * description in the public header; and what its cast does to one value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_COUNTS_H
#define CLCONV_CHECK_COUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "clconv/clconv.h"

/* value as fp16 sees it: saturated, times 2^scale_log2, rounded to fp16, and
 * divided by 2^scale_log2 again. NaN and Inf stay what they are. */
float counts_cast(float value, int scale_log2);

/* What casting values to fp16, times 2^scale_log2, does. No value may lie
 * between 65504 and 65520 (times 2^-scale_log2). */
clconv_counts counts_of_cast(const float *values, size_t count, int scale_log2);

/* The same for an output's values before rounding. */
clconv_counts counts_of_output(const double *values, size_t count);

/* Of values that stay fp32: zeroed, subnormal and saturated are 0. */
clconv_counts counts_of_fp32(const float *values, size_t count);

/* The name of a field that differs, or NULL; with its two numbers. */
const char *counts_difference(const clconv_counts *got,
                              const clconv_counts *expected, double *got_count,
                              double *expected_count);

#endif

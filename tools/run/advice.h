/*
 * What a user should know about values that did not fit float16, and the
 * option that helps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RUN_ADVICE_H
#define CLCONV_RUN_ADVICE_H

#include "clconv/clconv.h"

/* Lines: elements saturated and elements lost, of six tensors. */
#define ADVICE_MAX 12

typedef struct advice {
    size_t count;
    char lines[ADVICE_MAX][320];
} advice;

/* dy_max_abs: the largest finite |dY|. No line for losses of at most 1 % of
 * the elements that are not zero. */
void advice_collect(const clconv_desc *desc, const clconv_report *report,
                    double dy_max_abs, advice *out);

/* The largest scale_log2 that keeps max_abs within float16, in the range of
 * scale_log2; CLCONV_LOG2_MAX for 0. */
int advice_largest_scale(double max_abs);

#endif

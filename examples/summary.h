/*
 * What the table shows, in three sentences made from its numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_EXAMPLES_SUMMARY_H
#define CLCONV_EXAMPLES_SUMMARY_H

#include <stdio.h>

#include "experiment.h"

/* count >= 1 */
void summary_print(FILE *to, const size_result *sizes, size_t count);

#endif

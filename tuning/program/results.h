/*
 * Records as a table for people.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_RESULTS_H
#define CLCONV_TUNE_RESULTS_H

#include <stdio.h>

#include "record.h"

void results_print_head(FILE *to);

/* Problem, times of the default and the tuned plan, their ratio, kernels. */
void results_print(FILE *to, const clconv_record *r);

/* A row for a problem that has no record, and why. */
void results_print_missing(FILE *to, const char *problem, const char *why);

#endif

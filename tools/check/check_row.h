/*
 * Checks one row of a list of cases by every judgement that was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_CHECK_ROW_H
#define CLCONV_CHECK_CHECK_ROW_H

#include "cases.h"
#include "options.h"
#include "reference.h"
#include "run.h"

/* Checks: one problem in one layout and one kind of arithmetic each. */
typedef struct tally {
    size_t passed, failed, skipped;
} tally;

/* Adds to *sum. Failures go to stdout as they are found. False if the row
 * could not be judged (no memory, the reference failed), with a line on
 * stderr. */
bool check_row(const check_options *options, runner *library, reference *ref,
               const case_row *from, tally *sum);

#endif

/*
 * Candidates that failed, for the list at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_FAILURES_H
#define CLCONV_TUNE_FAILURES_H

#include <stdio.h>

#include "record.h"
#include "trial.h"

/* Of each outcome so many are listed, the others counted. */
#define FAILURES_LISTED 8

typedef struct failure {
    char problem[256];
    char plan[CLCONV_RECORD_PLAN];
    char why[256];
} failure;

typedef struct failures {
    int counts[CLCONV_OUTCOMES];
    failure *listed[CLCONV_OUTCOMES]; /* FAILURES_LISTED each; NULL: none yet */
} failures;

/* Counts a trial that is not OK. Without memory it is counted, not listed. */
void failures_add(failures *f, const char *problem, const char *plan,
                  const clconv_trial *trial);

/* Nothing if there were none. */
void failures_print(FILE *to, const failures *f);

void failures_free(failures *f);

#endif

/*
 * Judges a plan by clconv-check: every judgement, against fp64, in a process
 * of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_CHECK_H
#define CLCONV_TUNE_CHECK_H

#include <stdbool.h>

#include "problem.h"
#include "trial.h"

typedef struct check_rules {
    const char *program;         /* clconv-check */
    const char *device;          /* for --device */
    const char *log;             /* a file that its stderr replaces */
    const char *const *settings; /* of its environment; ends with NULL */
    double limit;                /* seconds */
} check_rules;

/* fp64 takes its time, and so do numbers that the host makes and compares: a
 * judgement has that many images of the problem's at most that one gradient
 * costs so many operations, and X and dY have so many elements each. */
#define CHECK_MAX_FLOPS 10e9
#define CHECK_MAX_ELEMENTS 2e6

/* The images that are judged, 1 to p->n. */
long check_batch(const clconv_problem *p);

/* Changes the outcome of *trial to WRONG, CRASHED or HUNG if that is so. False:
 * clconv-check gave no judgement, and the trial's why says why. */
bool check_run(const check_rules *rules, const clconv_problem *p,
               const char *plan, clconv_trial *trial);

#endif

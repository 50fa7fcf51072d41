/*
 * One row of a list of cases while it is being checked: its checks (a layout
 * and a kind of arithmetic each), their plans, and what became of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_ROW_H
#define CLCONV_CHECK_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "dataset.h"
#include "judge.h"
#include "options.h"
#include "reference.h"
#include "run.h"

typedef enum outcome {
    OUTCOME_OPEN,   /* nothing was compared yet */
    OUTCOME_PASSED, /* so far */
    OUTCOME_FAILED,
    OUTCOME_SKIPPED
} outcome;

typedef struct check {
    run_setup setup; /* as the description has it: no variant */
    clconv_plan *plan;
    outcome outcome;
} check;

#define MAX_CHECKS 4

typedef struct row {
    const check_options *options;
    runner *runner;
    reference *ref;
    const char *name;
    shape z;
    unsigned layouts, maths; /* bits 1 << clconv_layout, 1 << clconv_math */
    int scale_log2;
    uint64_t seed; /* of this row's data: from its name and --seed */
    check checks[MAX_CHECKS];
    int check_count;
} row;

/* What is being done: named in every failure. */
typedef struct occasion {
    row *row;
    check *check;
    const run_setup *setup;  /* the check's, or a variant of it */
    const clconv_plan *plan; /* NULL: there is none yet */
    const char *judgement;   /* "edges: saturation" */
} occasion;

/* Prints the problem, the plan and the sentence; the check has failed. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void row_fail(const occasion *o, const char *format, ...);

/* The same for a verdict about an output, "dw", "db", "dx" or "y". */
void row_fail_verdict(const occasion *o, const char *output, const verdict *v);

/* Calls the library; false if the check has failed. */
bool row_call(const occasion *o, clconv_plan *plan, const run_inputs *in,
              outputs *out);

/* Calls the library for every check that has a plan and whose arithmetic is
 * in maths (a mask of 1 << clconv_math), lets judge look at what came out,
 * and compares the counts of the inputs. */
#define ROW_ALL_MATHS 3U
typedef void row_judge_fn(const occasion *o, const outputs *got,
                          const void *user);
void row_each_check(row *r, unsigned maths, const char *judgement,
                    const run_inputs *in, row_judge_fn *judge, const void *user);

/* A check that has compared something and not failed. */
void row_passed(check *c);

/* Compares every output that there is with what data expects. */
typedef struct tolerances {
    tolerance dw, db, dx;
} tolerances;

typedef struct marks {
    uint8_t *dw, *db, *dx; /* flags of judge.h; NULL: none */
} marks;

void row_judge(const occasion *o, const outputs *got, const dataset *data,
               const tolerances *t, const marks *m);
void row_judge_norms(const occasion *o, const outputs *got, const dataset *data,
                     const tolerances *t);
void row_judge_exact(const occasion *o, const outputs *got, const dataset *data);

/* Compares the report's counts of the inputs that the call read. */
void row_judge_inputs(const occasion *o, const clconv_report *report,
                      const run_inputs *in);

/* The bounds for a check; scale_log2 is that of the cast of dy. */
tolerances row_tolerances(const check *c, int scale_log2);

#endif

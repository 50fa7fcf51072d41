/*
 * The problems of a run, from the command line, named sets and files, as a
 * case_list whose rows have fp32 tensors and the default exponents: the
 * arithmetic is the contender's.
 *
 * False means that one line went to stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PROBLEMS_H
#define CLCONV_BENCH_PROBLEMS_H

#include "cases.h"

/* A problem string: sizes, and nhwc. */
bool problems_add_text(const char *text, case_list *list);

bool problems_add_set(const char *name, case_list *list);

/* As problem_list.h reads them. */
bool problems_add_file(const char *path, case_list *list);

/* What is changed in every problem. */
typedef struct problem_changes {
    int64_t batch; /* 0: as it is */
    bool has_layout;
    clconv_layout layout;
    double max_gflop; /* of a gradient; larger problems are left out */
} problem_changes;

/* Every row must then be a valid convolution. *left_out gets the number of
 * problems that were too large; none left is an error. */
bool problems_change(case_list *list, const problem_changes *changes,
                     size_t *left_out);

#endif

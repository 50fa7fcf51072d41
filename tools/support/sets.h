/*
 * Named lists of problems for --set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_SETS_H
#define CLCONV_TOOLS_SETS_H

#include <stddef.h>

typedef struct set_row {
    const char *name;
    const char *problem; /* a problem string of clconv.h */
} set_row;

typedef struct problem_set {
    const char *name;
    const char *summary;
    const set_row *rows;
    size_t count;
} problem_set;

extern const problem_set problem_sets[];
extern const size_t problem_set_count;

#endif

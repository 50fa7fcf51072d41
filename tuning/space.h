/*
 * All that a search may choose from: every kernel of a role that covers the
 * problem, with every combination of its values that the planner takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_SPACE_H
#define CLCONV_SPACE_H

#include <stdint.h>

#include "planner.h"

/* What is searched. */
typedef struct clconv_scope {
    const clconv_problem *problem;
    const clconv_device *device;
    clconv_role role;
    /* A plan string: only its kernel of the role, with the values that it names.
     * A role that it leaves open, and NULL: all. */
    const char *within;
    uint64_t seed; /* of the sample of a space that is too large */
} clconv_scope;

typedef struct clconv_candidate {
    const clconv_kernel *kernel;
    int values[CLCONV_MAX_PARAMS];
    double cost; /* as the kernel's cost() has it */
} clconv_candidate;

typedef struct clconv_space_item {
    clconv_candidate candidate;
    int row;         /* of kernel_table.c */
    uint64_t place;  /* among all combinations of its kernel's values */
    unsigned copies; /* operands that it reads as fp16 copies: bits */
    bool baked;      /* a program for this problem alone */
} clconv_space_item;

/* Sorted by row, then place. */
typedef struct clconv_space {
    clconv_space_item *items;
    int count;
} clconv_space;

/* A kernel with more combinations than this is sampled, by the seed. */
#define CLCONV_SPACE_MOST 200000

/* False: no memory, or within is no plan string; *out is then empty. */
bool clconv_space_fill(const clconv_scope *scope, clconv_space *out);
void clconv_space_free(clconv_space *s);

/* The index of a kernel with these values; -1: not in the space. */
int clconv_space_find(const clconv_space *s, const clconv_kernel *kernel,
                      const int *values);

/* The index of the same with its sizes in the program; -1: there is none. */
int clconv_space_baked_twin(const clconv_space *s, int index);

#endif

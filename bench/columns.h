/*
 * Which contenders a run compares. The others are held against the base.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_COLUMNS_H
#define CLCONV_BENCH_COLUMNS_H

#include "contender.h"

#define COLUMNS_MAX 8

typedef struct columns {
    const contender *items[COLUMNS_MAX];
    int count; /* >= 1 */
    int base;  /* "mixed", else the first */
} columns;

/* Every contender that this program was built with, but for those by
 * request. */
columns columns_default(void);

/* Those of a list between commas, in the table's order. False: one line on
 * stderr names those there are. */
bool columns_named(const char *list, columns *out);

/* "mixed" and "report". */
columns columns_of_report(void);

/* NULL if this program was built without it. */
const contender *columns_find(const char *name);

#endif

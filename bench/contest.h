/*
 * All contenders on one problem: opened, held against each other, timed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_CONTEST_H
#define CLCONV_BENCH_CONTEST_H

#include "cases.h"
#include "measure.h"
#include "result.h"

typedef struct contest_rules {
    host *host;
    size_t cache_bytes; /* the device's */
    const char *plan;   /* NULL: the library's choice */
    unsigned ops;       /* clconv_op mask */
    measure_rules measure;
} contest_rules;

/* Fills a row with one entry a column. False if the problem cannot be judged
 * at all, said on stderr. */
bool contest_run(const contest_rules *rules, const columns *list,
                 const case_row *problem, row *out);

/* As many sets of tensors as exceed twice the cache, but no more than a device
 * with memory bytes holds for so many open contenders; at least 2. */
int contest_sets(double set_bytes, double cache, double memory, int states);

#endif

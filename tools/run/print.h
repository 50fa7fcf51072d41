/*
 * What clconv-run says on stdout, as a table for people or as one JSON object
 * for programs: the same facts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RUN_PRINT_H
#define CLCONV_RUN_PRINT_H

#include "advice.h"
#include "compute.h"

typedef struct run_summary {
    const run_options *options;
    const run_facts *facts;
    const run_inputs *inputs;
    const run_outputs *outputs;
    const advice *warnings;
} run_summary;

/* A tensor, its file, and its counts, which are NULL where the library does
 * not count (a float32 output). */
typedef struct print_row {
    const char *name;
    char path[4096];
    const npy_array *array;
    const clconv_counts *counts;
} print_row;

#define PRINT_ROWS 6 /* dy, x, w, dw, db, dx */

void print_collect_rows(const run_summary *summary, print_row rows[PRINT_ROWS]);

void print_table(const run_summary *summary);
void print_json(const run_summary *summary);

#endif

/*
 * What a run found out, and what printers derive from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_RESULT_H
#define CLCONV_BENCH_RESULT_H

#include "columns.h"
#include "roofline.h"
#include "statistics.h"

/* Where and when. */
typedef struct run_facts {
    char platform[256], device[256], driver[128];
    char date[32]; /* ISO 8601, UTC */
    cl_uint compute_units;
    const char *pocl_affinity; /* the variable's value; NULL: not set */
    bool is_cpu;
    size_t cache_bytes;
    probe_result peaks;
} run_facts;

typedef enum entry_status {
    ENTRY_TIMED,
    ENTRY_UNSUPPORTED,
    ENTRY_FAILED,
    ENTRY_WRONG
} entry_status;

/* One contender on one problem. */
typedef struct entry {
    entry_status status;
    char why[256];      /* unless timed */
    char variant[1024]; /* or plan; "": has none */
    double bytes;       /* of the tensors that a call moves, each once */
    double error;       /* relative; NaN: not known */
    spread seconds;     /* of one call, if timed */
    size_t samples;
    int burst; /* calls a sample */
} entry;

typedef struct row {
    const char *name; /* the case's */
    char problem[128];
    double flop;
    int sets;
    entry entries[COLUMNS_MAX]; /* one a column */
} row;

typedef struct bench_result {
    run_facts facts;
    columns columns;
    unsigned ops;
    const char *plan; /* NULL: the library's choice */
    row *rows;
    size_t count;
    int name_width;  /* of the longest name, as printed */
    size_t left_out; /* problems, by --max-gflop */
} bench_result;

const char *result_status_name(entry_status status);

/* NaN where there is no time. */
double result_gflops(const row *r, int column); /* 1e9 operations a second */
double result_roofline(const bench_result *b, const row *r, int column);
double result_ratio(const bench_result *b, const row *r, int column);

/* A column's ratios: its time / the base's. */
typedef struct ratio_summary {
    size_t count; /* 0: the rest means nothing */
    double mean;  /* geometric */
    double least, largest;
    const row *least_row, *largest_row;
} ratio_summary;

ratio_summary result_summarize(const bench_result *b, int column);

/* Whether nothing failed and nothing was wrong. */
bool result_is_good(const bench_result *b);

#endif

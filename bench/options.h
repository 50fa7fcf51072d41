/*
 * The command line of clconv-bench.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_OPTIONS_H
#define CLCONV_BENCH_OPTIONS_H

#include "columns.h"
#include "problems.h"

typedef enum bench_mode {
    MODE_COMPARE,
    MODE_LIST,         /* the problems, as a file that --file reads */
    MODE_REPORT_COST,  /* "mixed" with and without the report buffer */
    MODE_STARTUP,      /* how long a first result takes */
    MODE_STARTUP_CHILD /* one process of MODE_STARTUP */
} bench_mode;

typedef struct bench_options {
    bench_mode mode;
    case_list problems; /* one in the modes of starting up */
    size_t left_out;    /* problems that --max-gflop kept out */
    columns columns;
    unsigned ops;       /* clconv_op mask */
    double seconds;     /* of each contender and problem */
    int64_t repeats;    /* calls at least; processes of MODE_STARTUP */
    const char *device; /* NULL: choose */
    const char *plan;   /* NULL: the library's choice */
    bool no_peaks;      /* the device's peaks stay unknown */
    const char *csv, *json, *plot; /* paths; NULL: none */
    const char *startup_kind;      /* what MODE_STARTUP_CHILD starts */
} bench_options;

typedef enum options_result {
    OPTIONS_RUN,
    OPTIONS_DONE, /* help, version or sets were printed */
    OPTIONS_WRONG /* said on stderr */
} options_result;

/* The caller frees out->problems, also where the result is not OPTIONS_RUN. */
options_result options_read(int argc, char **argv, bench_options *out);

#endif

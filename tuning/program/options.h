/*
 * The command line of clconv-tune.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_OPTIONS_H
#define CLCONV_TUNE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cases.h"
#include "inject.h"

typedef enum tune_command {
    TUNE_PROBLEMS, /* no word: tunes */
    TUNE_VERIFY,
    TUNE_LIST,
    TUNE_MERGE,
    TUNE_EXPORT,
    TUNE_IMPORT,
    TUNE_CLEAN,
    TUNE_WORKER /* for clconv-tune itself */
} tune_command;

typedef struct tune_options {
    tune_command command;
    case_list problems; /* TUNE_PROBLEMS */
    char **files;       /* of MERGE, EXPORT and IMPORT, borrowed from argv */
    int file_count;
    const char *device, *cache_dir; /* NULL: not given */
    double budget; /* seconds, of the whole run; 0: a minute a problem */
    double limit;  /* seconds for a plan to be prepared */
    int trials;    /* of each search at most; 0: as many as fit */
    bool resume;
    uint64_t seed;
    const char *plan;        /* candidates have its kernels and values */
    const char *exhaustive;  /* a CSV file; NULL: no */
    int jobs;                /* 0: as many as there are cores */
    const char *inject_text; /* as it was given; NULL: not */
    inject inject;
} tune_options;

typedef enum options_result {
    OPTIONS_RUN,
    OPTIONS_DONE, /* help or version was printed */
    OPTIONS_WRONG /* said on stderr */
} options_result;

/* The caller frees out->problems, also where the result is not OPTIONS_RUN. */
options_result options_read(int argc, char **argv, tune_options *out);

/* "90", "90s", "5m", "2h" or "1d" as seconds; false with a line on stderr. */
bool options_duration(const char *option, const char *text, double *out);

#endif

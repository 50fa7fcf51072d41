/*
 * The command line of clconv-check.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CHECK_OPTIONS_H
#define CLCONV_CHECK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cases.h"

/* What is asked of each row, a mask. */
enum {
    JUDGEMENT_INTEGERS = 1,
    JUDGEMENT_RANDOM = 2,
    JUDGEMENT_TINY = 4,
    JUDGEMENT_EDGES = 8,
    JUDGEMENT_ALL = 15
};

typedef struct check_options {
    case_list cases;  /* of all files and problems */
    int64_t batch;    /* 0: as the case says */
    double max_gflop; /* of one gradient */
    unsigned layouts; /* bit 1 << clconv_layout; 0: not given */
    unsigned maths;   /* bit 1 << clconv_math; 0: not given */
    unsigned judgements;
    int scale_log2; /* if it was given; else as the case says */
    bool scale_given;
    uint64_t seed;
    const char *device, *filter, *plan, *emulate; /* NULL: not given */
    bool forward;                                 /* not the gradients, but y */
    bool verbose;
    bool watch_stdin;
} check_options;

typedef enum options_result {
    OPTIONS_RUN,
    OPTIONS_DONE, /* help or version was printed */
    OPTIONS_WRONG /* said on stderr */
} options_result;

/* The caller frees out->cases, also where the result is not OPTIONS_RUN. */
options_result options_read(int argc, char **argv, check_options *out);

#endif

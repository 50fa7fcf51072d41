/*
 * The command line of clconv-run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RUN_OPTIONS_H
#define CLCONV_RUN_OPTIONS_H

#include <stdbool.h>

#include "clconv/clconv.h"

typedef struct run_options {
    const char *dy_path, *x_path, *w_path; /* inputs, never NULL */
    const char *out_dir;                   /* "." if not given */
    const char *device;                    /* NULL: choose */
    const char *plan;                      /* NULL: choose */
    bool json;
    clconv_desc desc; /* all but sizes and input types, which files tell */
} run_options;

typedef enum options_result {
    OPTIONS_RUN,  /* go on */
    OPTIONS_DONE, /* help or version stands on stdout */
    OPTIONS_WRONG /* the reason stands on stderr */
} options_result;

/* out points into argv, and is written for OPTIONS_RUN only. */
options_result options_parse(int argc, char **argv, run_options *out);

#endif

/*
 * How far the run is: on a terminal one line that is written over and over,
 * elsewhere a line for each stage. On stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_PROGRESS_H
#define CLCONV_TUNE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "tuner.h"

typedef struct progress {
    bool is_terminal;
    size_t index, count; /* of problems, the first is 1 */
    const char *problem;
    double end;             /* of the whole budget, on child_clock() */
    int stage;              /* that was shown last; -1: none */
    double default_seconds; /* of the default plan's whole call; 0: unknown */
} progress;

void progress_begin(progress *p, size_t index, const char *problem);
void progress_show(progress *p, const clconv_tuner_progress *now);

/* Clears the line, so that others can be written. */
void progress_clear(const progress *p);

#endif

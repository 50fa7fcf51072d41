/*
 * What clconv_tuner_run() asks for, done by workers, with a journal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_BACKEND_H
#define CLCONV_TUNE_BACKEND_H

#include "exhaustive.h"
#include "failures.h"
#include "progress.h"
#include "station.h"

typedef struct backend {
    station *station;
    const clconv_problem *problem;
    const char *name; /* the problem's string */
    failures *failures;
    progress *progress;
    exhaustive *exhaustive; /* NULL: a search */
} backend;

/* Borrows b. */
clconv_tuner_backend backend_of(backend *b);

#endif

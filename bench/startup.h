/*
 * How long a new process takes to its first result, with empty caches of
 * compiled programs and with those that processes before it filled: an empty
 * OpenCL program, and the library with generic kernels and with its default
 * plan, under both policies of its cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_STARTUP_H
#define CLCONV_BENCH_STARTUP_H

#include "options.h"

/* Seconds of one process, from after clCreateContext() on. */
typedef struct startup_times {
    double context; /* clconv_context_create() */
    double plan;    /* clconv_plan_create(), or building the empty program */
    double call;    /* the first launch, finished */
} startup_times;

/* What is started, by the name that a child is given. */
typedef struct startup_kind {
    const char *name;  /* "empty", "generic", "default" ... */
    const char *title; /* for the table */
    const char *plan;  /* NULL: --plan, or the library's choice */
    clconv_cache_policy cache_policy;
} startup_kind;

#define STARTUP_KINDS 5
extern const startup_kind startup_kinds[STARTUP_KINDS];

/* Starts the processes; self is this program's argv[0]. Returns the exit
 * status. */
int startup_run(const bench_options *options, const char *self);

/* One such process: a line of the three times and the device on stdout. */
int startup_child(const bench_options *options);

#endif

/*
 * The process that compiles, runs and times plans: clconv-tune --worker. A
 * driver that crashes or hangs takes this one along and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_WORKER_H
#define CLCONV_TUNE_WORKER_H

#include "inject.h"

typedef struct worker_options {
    const char *device;    /* see host_open() */
    const char *cache_dir; /* of compiled programs; "": memory */
    inject inject;
} worker_options;

/* Reads commands from stdin and answers to stdout (protocol.h) until stdin
 * ends; returns the exit status. */
int worker_main(const worker_options *o);

#endif

/*
 * Workers (worker.h): several that compile at once, and one of them that times
 * while the others stand still. One that crashes, hangs or answers nonsense is
 * replaced, and the plan it was at is told apart from the others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_POOL_H
#define CLCONV_TUNE_POOL_H

#include <stdbool.h>

#include "trial.h"

typedef struct pool_rules {
    const char *program;         /* this one's file */
    const char *device;          /* for --device */
    const char *run_dir;         /* of logs, ... */
    const char *name;            /* ... which are NAME-0.log and so on */
    const char *cache_dir;       /* of workers; "": memory */
    const char *const *settings; /* of workers' environment; ends with NULL */
    const char *inject;          /* for --inject; NULL: none */
    int jobs;                    /* workers, 1 to POOL_MAX_JOBS */
    double limit;                /* seconds to prepare a plan */
} pool_rules;

#define POOL_MAX_JOBS 64

typedef struct pool pool;

/* Keeps rules' strings. NULL with a line on stderr. Starts no worker yet. */
pool *pool_new(const pool_rules *rules);
void pool_free(pool *p); /* ends the workers; NULL: no-op */

/* As clconv_tuner_backend's: every trial is filled. */
void pool_prepare(pool *p, const char *problem, unsigned ops,
                  const char *const *plans, int count, clconv_trial *out);
void pool_time(pool *p, const char *problem, unsigned ops,
               const char *const *plans, int count, double seconds,
               clconv_trial *out);
void pool_judge(pool *p, const char *problem, unsigned ops, const char *plan,
                clconv_trial *out);

typedef struct pool_task {
    const char *problem;
    unsigned ops;
    const char *plan;
} pool_task;

/* Prepares each plan so that its programs are in the caches afterwards. */
void pool_keep(pool *p, const pool_task *tasks, int count, clconv_trial *out);

/* Workers that had to be replaced so far. */
int pool_replaced(const pool *p);

#endif

/*
 * Tunes one problem: searches bwd_data and bwd_weight each by itself, then the
 * best few of both together with the values of the cast, times the finalists
 * again in turns with the default plan, judges the winner, and says what it is.
 * Pure: how plans are compiled, timed and judged is the backend's affair, in
 * this process (find.c) or in a worker's (clconv-tune).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNER_H
#define CLCONV_TUNER_H

#include "record.h"
#include "search.h"
#include "trial.h"

typedef enum clconv_stage {
    CLCONV_STAGE_BWD_DATA,
    CLCONV_STAGE_BWD_WEIGHT,
    CLCONV_STAGE_TOGETHER,
    CLCONV_STAGE_FINAL,
    CLCONV_STAGE_JUDGE,
    CLCONV_STAGES
} clconv_stage;

const char *clconv_stage_name(clconv_stage stage);

/* After each trial. */
typedef struct clconv_tuner_progress {
    clconv_stage stage;
    int trials;          /* so far, of the whole problem */
    double spent;        /* seconds, of rules.seconds */
    double best_seconds; /* the whole call's, or the stage's; INFINITY: none yet */
    const char *plan;    /* that was tried ... */
    const clconv_trial *trial; /* ... and what became of it */
} clconv_tuner_progress;

/*
 * What a backend does. Plan strings are whole, and each stands once in a list.
 * ops: what is computed and timed.
 */
typedef struct clconv_tuner_backend {
    void *user;
    double (*clock)(void *user); /* seconds, never goes back */

    /* Compiles these plans, several at a time if it can, runs each once and
     * looks at its results. out[i].outcome OK: it may be timed. */
    void (*prepare)(void *user, unsigned ops, const char *const *plans,
                    int count, clconv_trial *out);

    /* Times prepared plans in turns, about seconds each; fills those that are
     * OK in out. */
    void (*time)(void *user, unsigned ops, const char *const *plans, int count,
                 double seconds, clconv_trial *out);

    /* Every judgement on a plan: integers, random, tiny, cancelling. */
    void (*judge)(void *user, unsigned ops, const char *plan, clconv_trial *out);

    /* Outcome of an earlier run (a journal); false: none. NULL: there are
     * none. A plan that crashed or hung then is not tried again. */
    bool (*recall)(void *user, unsigned ops, const char *plan,
                   clconv_trial *out);

    /* False: stop with the best so far. What is tried already is still told, and
     * the judgement. */
    bool (*progress)(void *user, const clconv_tuner_progress *p);
} clconv_tuner_backend;

typedef struct clconv_tuner_rules {
    double seconds;       /* budget for this problem */
    double trial_seconds; /* timing of a trial; 0: a good value */
    int batch;            /* plans prepared at a time; 0: 8 */
    int jobs;             /* of these, side by side; 0: one */
    int trials;           /* of each search at most; 0: as many as fit */
    uint64_t seed;
    /* A plan string: candidates have its kernels and the values that it names.
     * NULL: all. The default plan takes part in any case. */
    const char *within;
    const char *known; /* a plan string that takes part as well; NULL: none */
    bool exhaustive;   /* every candidate of both roles, whatever it takes */
} clconv_tuner_rules;

typedef struct clconv_tuner_result {
    char plan[CLCONV_RECORD_PLAN]; /* whole */
    clconv_trial trial;     /* of the winner in the final turns, judged */
    double default_seconds; /* of the default plan in the same turns */
    int trials;
    int outcomes[CLCONV_OUTCOMES]; /* of the trials */
} clconv_tuner_result;

/*
 * INVALID_ARGUMENT: rules.within. UNSUPPORTED: no plan covers the problem, or
 * none passed (the sentence names the last reason). Interrupted or out of budget it answers with the best so
 * far, at least the default plan, judged.
 */
clconv_status clconv_tuner_run(const clconv_problem *problem,
                               const clconv_device *device, unsigned ops,
                               size_t max_workspace,
                               const clconv_tuner_rules *rules,
                               const clconv_tuner_backend *backend,
                               clconv_tuner_result *out);

#endif

/*
 * What the stages of a tuner's run share: the budget, the plans that were tried
 * and how they compare. For tuner.c and its stages alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_COURSE_H
#define CLCONV_COURSE_H

#include "tuner.h"

/* A plan, and what became of it. */
typedef struct clconv_attempt {
    char plan[CLCONV_RECORD_PLAN]; /* whole */
    clconv_trial trial;
    double seconds;  /* to compare within a contest; INFINITY: it has none */
    bool remembered; /* not prepared now: known from before */
} clconv_attempt;

/* Plans for the same ops that are compared with each other. A device's clock
 * drifts, so all are timed in turns with the fastest so far, the anchor, and
 * what counts is the ratio to it. */
typedef struct clconv_contest {
    clconv_stage stage;
    unsigned ops;
    clconv_attempt anchor; /* its plan "": none yet */
    double best_seconds;   /* INFINITY: none yet */
} clconv_contest;

/* The fastest plans for all ops that are wanted, of several kernels. */
#define CLCONV_LEADERS 12

typedef struct clconv_course {
    const clconv_problem *problem;
    const clconv_device *device;
    unsigned ops;
    size_t max_workspace;
    clconv_tuner_rules rules; /* none 0 */
    const clconv_tuner_backend *backend;
    double start;
    double setup; /* seconds that the first plan took, and all it needs */
    bool stopped; /* by progress() */
    int trials;
    int outcomes[CLCONV_OUTCOMES];
    char why[sizeof((clconv_trial *)0)->why]; /* the last failure */
    clconv_contest whole;                     /* of all ops */
    clconv_attempt default_plan;
    clconv_attempt leaders[CLCONV_LEADERS + 1]; /* fastest first, maybe the
                                                   default; the last is room */
    int leader_count;
} clconv_course;

/* Most plans of a batch, whatever the rules say. */
#define CLCONV_BATCH_MOST 32

clconv_contest clconv_contest_make(clconv_stage stage, unsigned ops);

/* What a role may be searched in. */
clconv_scope clconv_course_scope(const clconv_course *c, clconv_role role);

/* Seconds since the run began. */
double clconv_course_spent(const clconv_course *c);

/* How many plans may be tried at once so that the run is likely to be at most
 * so many seconds old afterwards; 0: it is, or was stopped. */
int clconv_course_batch(const clconv_course *c, double until);

/* An attempt of a plan string, maybe partial. One that the planner refuses is
 * so in its trial. */
void clconv_attempt_make(const clconv_course *c, unsigned ops, const char *plan,
                         clconv_attempt *out);

/* Prepares and times these, at most CLCONV_BATCH_MOST, but for refused and
 * remembered ones, and reports. */
void clconv_contest_try(clconv_course *c, clconv_contest *contest,
                        clconv_attempt *attempts, int count);

/* Prepares these, but for refused ones and those remembered to be bad. */
void clconv_course_prepare(clconv_course *c, clconv_attempt *attempts,
                           int count);

/* Times prepared ones in turns with the anchor, if there is one; an anchor that
 * fails is one no more. */
void clconv_contest_time(clconv_course *c, clconv_contest *contest,
                         clconv_attempt **list, int count, double seconds);

/* Counts a trial and tells progress(). */
void clconv_course_report(clconv_course *c, const clconv_contest *contest,
                          const clconv_attempt *a);

/* ---- Stages ------------------------------------------------------------ */

/* Tries what the search asks for, each with the parts that are in rest, until
 * the run is so old. */
void clconv_stage_search(clconv_course *c, clconv_contest *contest,
                         clconv_search *search, const char *rest, double until);

/* The best few of both searches, of which each may be NULL, then the values of
 * the cast. */
void clconv_stage_together(clconv_course *c, const clconv_search *data,
                           const clconv_search *weight, double until);

/* Leaders and default plan in turns, then judged. UNSUPPORTED: none passed. */
clconv_status clconv_stage_final(clconv_course *c, clconv_tuner_result *out);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "backend.h"

#include <math.h>

#include "child.h"
#include "interrupt.h"

static double tell_time(void *user)
{
    (void)user;
    return child_clock();
}

/* ---- Trials ------------------------------------------------------------ */

static void note_failure(backend *b, unsigned ops, const char *plan,
                         const clconv_trial *trial)
{
    if (!interrupt_seen()) /* a worker may have been stopped with us */
        journal_add(b->station->journal, b->name, ops, plan, trial);
    failures_add(b->failures, b->name, plan, trial);
}

static void prepare(void *user, unsigned ops, const char *const *plans,
                    int count, clconv_trial *out)
{
    backend *b = user;
    pool_prepare(b->station->workers, b->name, ops, plans, count, out);
    for (int i = 0; i < count; ++i)
        if (out[i].outcome != CLCONV_TRIAL_OK)
            note_failure(b, ops, plans[i], &out[i]);
}

static void time_plans(void *user, unsigned ops, const char *const *plans,
                       int count, double seconds, clconv_trial *out)
{
    backend *b = user;
    pool_time(b->station->workers, b->name, ops, plans, count, seconds, out);
    for (int i = 0; i < count; ++i)
        if (out[i].outcome != CLCONV_TRIAL_OK)
            note_failure(b, ops, plans[i], &out[i]);
        else
            journal_add(b->station->journal, b->name, ops, plans[i], &out[i]);
}

/* clconv-check tells no error; the worker that ran the plan did. */
static double known_error(const backend *b, unsigned ops, const char *plan)
{
    const clconv_trial *found =
        journal_find(b->station->journal, b->name, ops, plan);
    return found ? found->error : (double)NAN;
}

static void judge(void *user, unsigned ops, const char *plan, clconv_trial *out)
{
    backend *b = user;
    progress_clear(b->progress);
    station_judge(b->station, b->problem, ops, plan, out);
    out->error = known_error(b, ops, plan);
    if (out->outcome != CLCONV_TRIAL_OK)
        note_failure(b, ops, plan, out);
}

/* ---- The journal ------------------------------------------------------- */

/* A driver that a plan hangs is not to be hung again, resumed or not. */
static bool is_dangerous(clconv_outcome o)
{
    return o == CLCONV_TRIAL_CRASHED || o == CLCONV_TRIAL_HUNG;
}

/* The tuner reports what it tries, not what it is reminded of. */
static void note_recalled(backend *b, unsigned ops, const char *plan,
                          const clconv_trial *trial)
{
    clconv_stage stage = ops == CLCONV_OP_DX  ? CLCONV_STAGE_BWD_DATA
                         : ops & CLCONV_OP_DX ? CLCONV_STAGE_TOGETHER
                                              : CLCONV_STAGE_BWD_WEIGHT;
    if (trial->outcome != CLCONV_TRIAL_OK)
        failures_add(b->failures, b->name, plan, trial);
    if (b->exhaustive)
        exhaustive_add(b->exhaustive, stage, plan, trial);
}

static bool recall(void *user, unsigned ops, const char *plan, clconv_trial *out)
{
    backend *b = user;
    const clconv_trial *found =
        journal_find(b->station->journal, b->name, ops, plan);
    if (!found ||
        (!b->station->options->resume && !is_dangerous(found->outcome)))
        return false;
    *out = *found;
    note_recalled(b, ops, plan, out);
    return true;
}

/* ---- Progress ---------------------------------------------------------- */

static bool show(void *user, const clconv_tuner_progress *p)
{
    backend *b = user;
    progress_show(b->progress, p);
    if (b->exhaustive)
        exhaustive_add(b->exhaustive, p->stage, p->plan, p->trial);
    return !interrupt_seen();
}

clconv_tuner_backend backend_of(backend *b)
{
    return (clconv_tuner_backend){
        .user = b,
        .clock = tell_time,
        .prepare = prepare,
        .time = time_plans,
        .judge = judge,
        .recall = recall,
        .progress = show,
    };
}

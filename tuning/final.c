/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A finalist is timed for so many times as long as a trial, if time is left. */
#define LONGER 10

/* Who is by at most this part slower than the fastest may be the fastest in
 * another run: the first in a stable order is taken, so that both choose the
 * same. */
#define TIE 0.02

typedef struct finalists {
    clconv_attempt list[CLCONV_LEADERS + 1]; /* the default plan is the first */
    int count;
} finalists;

/* ---- Who is in --------------------------------------------------------- */

static int by_plan(const void *a, const void *b)
{
    const clconv_attempt *x = a, *y = b;
    return strcmp(x->plan, y->plan);
}

static void collect(const clconv_course *c, finalists *out)
{
    out->count = 0;
    out->list[out->count++] = c->default_plan;
    for (int i = 0; i < c->leader_count; ++i)
        if (strcmp(c->leaders[i].plan, c->default_plan.plan) != 0)
            out->list[out->count++] = c->leaders[i];
    qsort(&out->list[1], (size_t)out->count - 1, sizeof out->list[1], by_plan);
}

/* ---- The final turns --------------------------------------------------- */

static double turn_seconds(const clconv_course *c, int count)
{
    double least = c->rules.trial_seconds, most = LONGER * least;
    double left = c->rules.seconds - clconv_course_spent(c);
    if (c->rules.exhaustive)
        return most;
    return fmin(fmax(left / count, least), most);
}

static void time_finalists(clconv_course *c, finalists *f)
{
    clconv_contest turns = clconv_contest_make(CLCONV_STAGE_FINAL, c->ops);
    clconv_attempt *live[CLCONV_LEADERS + 1];
    int count = 0;
    clconv_course_prepare(c, f->list, f->count);
    for (int i = 0; i < f->count; ++i)
        if (f->list[i].trial.outcome == CLCONV_TRIAL_OK)
            live[count++] = &f->list[i];
    clconv_contest_time(c, &turns, live, count, turn_seconds(c, count));
}

static void run_turns(clconv_course *c, finalists *f)
{
    time_finalists(c, f);
    c->whole.stage = CLCONV_STAGE_FINAL;
    for (int i = 0; i < f->count; ++i)
        clconv_course_report(c, &c->whole, &f->list[i]);
}

/* ---- The choice -------------------------------------------------------- */

static bool may_win(const clconv_attempt *a)
{
    return a->trial.outcome == CLCONV_TRIAL_OK && a->seconds < INFINITY;
}

/* NULL: none is left. */
static clconv_attempt *choose(finalists *f)
{
    clconv_attempt *fastest = NULL;
    for (int i = 0; i < f->count; ++i)
        if (may_win(&f->list[i]) &&
            (!fastest || f->list[i].seconds < fastest->seconds))
            fastest = &f->list[i];
    for (int i = 0; i < f->count; ++i)
        if (may_win(&f->list[i]) &&
            f->list[i].seconds <= (1 + TIE) * fastest->seconds)
            return &f->list[i];
    return fastest;
}

/* ---- The judgement ----------------------------------------------------- */

/* What timing found stays, but for what the judge knows better. */
static bool judge(clconv_course *c, clconv_attempt *a)
{
    clconv_trial timed = a->trial;
    if (a->remembered)
        clconv_course_prepare(c, a, 1);
    if (a->trial.outcome == CLCONV_TRIAL_OK)
        a->trial = timed;
    clconv_trial judged = {.error = NAN};
    if (a->trial.outcome == CLCONV_TRIAL_OK) {
        c->backend->judge(c->backend->user, c->ops, a->plan, &judged);
        a->trial.outcome = judged.outcome;
        a->trial.error = judged.error;
        memcpy(a->trial.why, judged.why, sizeof judged.why);
    }
    clconv_course_report(c, &c->whole, a);
    return a->trial.outcome == CLCONV_TRIAL_OK;
}

static void fill_result(const clconv_course *c, const clconv_attempt *winner,
                        double default_seconds, clconv_tuner_result *out)
{
    *out = (clconv_tuner_result){
        .trial = winner->trial,
        .default_seconds = default_seconds,
        .trials = c->trials,
    };
    memcpy(out->plan, winner->plan, sizeof out->plan);
    memcpy(out->outcomes, c->outcomes, sizeof out->outcomes);
}

clconv_status clconv_stage_final(clconv_course *c, clconv_tuner_result *out)
{
    finalists f;
    collect(c, &f);
    if (!c->stopped)
        run_turns(c, &f);
    double default_seconds = may_win(&f.list[0]) ? f.list[0].seconds : 0;
    c->whole.stage = CLCONV_STAGE_JUDGE;
    for (clconv_attempt *a; (a = choose(&f));)
        if (judge(c, a)) {
            fill_result(c, a, default_seconds, out);
            return CLCONV_OK;
        }
    return clconv_fail(CLCONV_UNSUPPORTED,
                       "no plan for this problem passed; the last: %s",
                       c->why[0] ? c->why : "not tried");
}

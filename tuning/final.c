/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* First all take turns of a trial each. Who is by more than this part slower
 * than the fastest is out of the second turns, in which each is timed for so
 * many times as long as a trial, as the time that is left allows. */
#define OUT_OF_REACH 0.1
#define SECOND_LEAST 3
#define SECOND_MOST 10

/* Who is by at most this part slower than the fastest may be the fastest in
 * another run: the first in a stable order is taken, so that both choose the
 * same. */
#define TIE 0.02

typedef struct finalists {
    clconv_attempt list[CLCONV_LEADERS + 1]; /* the default plan is the first */
    int count;
    int contenders; /* these, of the list's front, had second turns */
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
    out->contenders = out->count;
}

static bool may_win(const clconv_attempt *a)
{
    return a->trial.outcome == CLCONV_TRIAL_OK && a->seconds < INFINITY;
}

static const clconv_attempt *fastest_of(const clconv_attempt *list, int count)
{
    const clconv_attempt *fastest = NULL;
    for (int i = 0; i < count; ++i)
        if (may_win(&list[i]) && (!fastest || list[i].seconds < fastest->seconds))
            fastest = &list[i];
    return fastest;
}

/* ---- The final turns --------------------------------------------------- */

static double second_turns_seconds(const clconv_course *c, int count)
{
    double trial = c->rules.trial_seconds;
    double left = c->rules.seconds - clconv_course_spent(c);
    if (c->rules.exhaustive)
        return SECOND_MOST * trial;
    return fmin(fmax(left / count, SECOND_LEAST * trial), SECOND_MOST * trial);
}

static void time_front(clconv_course *c, finalists *f, int count, double seconds)
{
    clconv_contest turns = clconv_contest_make(CLCONV_STAGE_FINAL, c->ops);
    clconv_attempt *live[CLCONV_LEADERS + 1];
    int live_count = 0;
    for (int i = 0; i < count; ++i)
        if (f->list[i].trial.outcome == CLCONV_TRIAL_OK)
            live[live_count++] = &f->list[i];
    clconv_contest_time(c, &turns, live, live_count, seconds);
}

/* Moves whoever may still win to the front, in the same order. The default
 * plan, to which the winner is compared, stays. */
static void drop_slow(finalists *f)
{
    const clconv_attempt *fastest = fastest_of(f->list, f->count);
    if (!fastest)
        return;
    double slowest = (1 + OUT_OF_REACH) * fastest->seconds;
    f->contenders = 1;
    for (int i = 1; i < f->count; ++i) {
        if (!may_win(&f->list[i]) || f->list[i].seconds > slowest)
            continue;
        clconv_attempt moved = f->list[i];
        memmove(&f->list[f->contenders + 1], &f->list[f->contenders],
                (size_t)(i - f->contenders) * sizeof moved);
        f->list[f->contenders++] = moved;
    }
}

static void run_turns(clconv_course *c, finalists *f)
{
    clconv_course_prepare(c, f->list, f->count);
    time_front(c, f, f->count, c->rules.trial_seconds);
    drop_slow(f);
    if (f->contenders > 1)
        time_front(c, f, f->contenders, second_turns_seconds(c, f->contenders));
    c->whole.stage = CLCONV_STAGE_FINAL;
    for (int i = 0; i < f->count; ++i)
        clconv_course_report(c, &c->whole, &f->list[i]);
}

/* ---- The choice -------------------------------------------------------- */

static clconv_attempt *choose_of(clconv_attempt *list, int count)
{
    const clconv_attempt *fastest = fastest_of(list, count);
    for (int i = 0; i < count; ++i)
        if (may_win(&list[i]) && list[i].seconds <= (1 + TIE) * fastest->seconds)
            return &list[i];
    return NULL;
}

/* NULL: none is left. */
static clconv_attempt *choose(finalists *f)
{
    clconv_attempt *of_contenders = choose_of(f->list, f->contenders);
    return of_contenders ? of_contenders : choose_of(f->list, f->count);
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

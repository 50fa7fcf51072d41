/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds of turns: each plan is timed for at most so many times as long as a
 * trial, and who is then by more than a part slower than the fastest is out. */
static const struct {
    double trials, out_of_reach;
} rounds[] = {{1, 0.12}, {3, 0.05}, {30, 0}};

#define ROUNDS ((int)(sizeof rounds / sizeof *rounds))

/* Who is by at most this part slower than the fastest may be the fastest in
 * another run: the first in a stable order is taken, so that both choose the
 * same. */
#define TIE 0.015

typedef struct finalists {
    clconv_attempt list[CLCONV_LEADERS + 1]; /* the default plan is the first */
    int count;
    int contenders; /* these, of the list's front, had all rounds */
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

static double round_seconds(const clconv_course *c, int round, int count)
{
    double trial = c->rules.trial_seconds;
    double left = c->rules.seconds - clconv_course_spent(c);
    if (c->rules.exhaustive)
        return rounds[round].trials * trial;
    return fmin(fmax(left / count, trial), rounds[round].trials * trial);
}

static void time_contenders(clconv_course *c, finalists *f, double seconds)
{
    clconv_contest turns = clconv_contest_make(CLCONV_STAGE_FINAL, c->ops);
    clconv_attempt *live[CLCONV_LEADERS + 1];
    int count = 0;
    for (int i = 0; i < f->contenders; ++i)
        if (f->list[i].trial.outcome == CLCONV_TRIAL_OK)
            live[count++] = &f->list[i];
    clconv_contest_time(c, &turns, live, count, seconds);
}

/* Moves those to the front that are as fast, in the same order. The default
 * plan, to which the winner is compared, stays. */
static void drop_slower(finalists *f, double slowest)
{
    int kept = 1;
    for (int i = 1; i < f->contenders; ++i) {
        if (!may_win(&f->list[i]) || f->list[i].seconds > slowest)
            continue;
        clconv_attempt moved = f->list[i];
        memmove(&f->list[kept + 1], &f->list[kept],
                (size_t)(i - kept) * sizeof moved);
        f->list[kept++] = moved;
    }
    f->contenders = kept;
}

static void run_turns(clconv_course *c, finalists *f)
{
    clconv_course_prepare(c, f->list, f->count);
    for (int i = 0; i < ROUNDS && (i == 0 || f->contenders > 1); ++i) {
        time_contenders(c, f, round_seconds(c, i, f->contenders));
        const clconv_attempt *fastest = fastest_of(f->list, f->contenders);
        if (fastest && i < ROUNDS - 1)
            drop_slower(f, (1 + rounds[i].out_of_reach) * fastest->seconds);
    }
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

/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "course.h"

#include <math.h>
#include <string.h>

/* A first timing takes this part of a whole one; whoever is by this factor
 * behind the fastest has no second. */
#define FIRST_PART 0.25
#define FAR_BEHIND 1.3

/* Who is by less than this factor behind the fastest may be as fast, for noise. */
#define NEAR 1.15

/* ---- Budget ------------------------------------------------------------ */

double clconv_course_spent(const clconv_course *c)
{
    return c->backend->clock(c->backend->user) - c->start;
}

/* What a plan takes as one of many, by those since the first. */
static double seconds_each(const clconv_course *c, double spent)
{
    if (c->trials > 1)
        return (spent - c->setup) / (c->trials - 1);
    return c->setup / (c->rules.jobs < c->rules.batch ? c->rules.jobs
                                                      : c->rules.batch);
}

int clconv_course_batch(const clconv_course *c, double until)
{
    double spent = clconv_course_spent(c);
    if (c->stopped || spent >= until)
        return 0;
    double fit = (until - spent) / seconds_each(c, spent);
    return (int)fmin(fmax(fit, 1), c->rules.batch);
}

/* ---- Attempts ---------------------------------------------------------- */

static void refuse(clconv_attempt *a, const char *why)
{
    a->trial.outcome = CLCONV_TRIAL_REFUSED;
    strncpy(a->trial.why, why, sizeof a->trial.why - 1);
}

void clconv_attempt_make(const clconv_course *c, unsigned ops, const char *plan,
                         clconv_attempt *out)
{
    clconv_request request = {
        .ops = ops, .max_workspace = c->max_workspace, .plan = plan};
    clconv_steps steps;
    clconv_text whole = CLCONV_TEXT_EMPTY;
    *out = (clconv_attempt){.trial.error = NAN, .seconds = INFINITY};
    strncpy(out->plan, plan, sizeof out->plan - 1);
    if (clconv_planner_choose(c->problem, c->device, &request, &steps) !=
        CLCONV_OK) {
        refuse(out, clconv_last_error());
        return;
    }
    clconv_steps_format(&steps, &whole);
    if (whole.failed || whole.length >= sizeof out->plan)
        refuse(out, "the plan string is too long");
    else
        memcpy(out->plan, whole.data, whole.length + 1);
    clconv_text_free(&whole);
}

static bool is_ok(const clconv_attempt *a)
{
    return a->trial.outcome == CLCONV_TRIAL_OK;
}

static bool recall(const clconv_course *c, unsigned ops, const char *plan,
                   clconv_trial *out)
{
    const clconv_tuner_backend *b = c->backend;
    return b->recall && b->recall(b->user, ops, plan, out);
}

static const clconv_attempt *find_leader(const clconv_course *c,
                                         const char *plan)
{
    for (int i = 0; i < c->leader_count; ++i)
        if (strcmp(c->leaders[i].plan, plan) == 0)
            return &c->leaders[i];
    return NULL;
}

/* One of the same plan that this run has tried, of those that are likely to
 * come again. NULL: none. */
static const clconv_attempt *find_earlier(const clconv_course *c,
                                          const clconv_contest *contest,
                                          const clconv_attempt *a)
{
    if (strcmp(contest->anchor.plan, a->plan) == 0)
        return &contest->anchor;
    if (contest != &c->whole || a == &c->default_plan)
        return NULL;
    if (strcmp(c->default_plan.plan, a->plan) == 0)
        return &c->default_plan;
    return find_leader(c, a->plan);
}

/* What is known of it without trying. */
static void remember(const clconv_course *c, const clconv_contest *contest,
                     clconv_attempt *a)
{
    if (!is_ok(a))
        return;
    const clconv_attempt *earlier = find_earlier(c, contest, a);
    if (earlier) {
        *a = *earlier;
        a->remembered = true;
    } else if (recall(c, contest->ops, a->plan, &a->trial)) {
        a->remembered = true;
        a->seconds = is_ok(a) ? a->trial.seconds : INFINITY;
    }
}

/* ---- Preparing --------------------------------------------------------- */

/* What a backend is handed; there is room for an anchor. */
typedef struct lineup {
    const char *plans[CLCONV_BATCH_MOST + 1];
    clconv_trial trials[CLCONV_BATCH_MOST + 1];
    int count;
} lineup;

static void line_up(lineup *l, const clconv_attempt *a)
{
    l->plans[l->count] = a->plan;
    l->trials[l->count] = a->trial;
    ++l->count;
}

static void prepare(clconv_course *c, unsigned ops, clconv_attempt **list,
                    int count)
{
    lineup l = {.count = 0};
    for (int i = 0; i < count; ++i)
        line_up(&l, list[i]);
    if (count > 0)
        c->backend->prepare(c->backend->user, ops, l.plans, count, l.trials);
    for (int i = 0; i < count; ++i) {
        list[i]->trial = l.trials[i];
        list[i]->remembered = false;
    }
}

void clconv_course_prepare(clconv_course *c, clconv_attempt *attempts, int count)
{
    clconv_attempt *list[CLCONV_BATCH_MOST];
    int live = 0;
    for (int i = 0; i < count; ++i)
        if (is_ok(&attempts[i]))
            list[live++] = &attempts[i];
    prepare(c, c->ops, list, live);
}

/* ---- Timing ------------------------------------------------------------ */

/* How much faster the device was when the contest began. */
static double drift(const clconv_contest *contest, const clconv_trial *anchor)
{
    if (anchor->outcome != CLCONV_TRIAL_OK || !(anchor->seconds > 0))
        return 1;
    return contest->anchor.seconds / anchor->seconds;
}

/* It has been timed before, and yet it fails. */
static void drop_anchor(clconv_course *c, clconv_contest *contest,
                        const clconv_trial *trial)
{
    const char *plan = contest->anchor.plan;
    int kept = 0;
    for (int i = 0; i < c->leader_count; ++i)
        if (contest != &c->whole || strcmp(c->leaders[i].plan, plan) != 0)
            c->leaders[kept++] = c->leaders[i];
    c->leader_count = kept;
    if (contest == &c->whole && strcmp(c->default_plan.plan, plan) == 0)
        c->default_plan.trial = *trial;
    contest->anchor = (clconv_attempt){.seconds = INFINITY};
}

void clconv_contest_time(clconv_course *c, clconv_contest *contest,
                         clconv_attempt **list, int count, double seconds)
{
    lineup l = {.count = 0};
    for (int i = 0; i < count; ++i)
        line_up(&l, list[i]);
    bool anchored = contest->anchor.plan[0] != '\0';
    if (anchored)
        line_up(&l, &contest->anchor);
    if (count > 0)
        c->backend->time(c->backend->user, contest->ops, l.plans, l.count,
                         seconds, l.trials);
    double scale = anchored ? drift(contest, &l.trials[count]) : 1;
    for (int i = 0; i < count; ++i) {
        list[i]->trial = l.trials[i];
        list[i]->seconds = is_ok(list[i]) && l.trials[i].seconds > 0
                               ? l.trials[i].seconds * scale
                               : INFINITY;
    }
    if (anchored && l.trials[count].outcome != CLCONV_TRIAL_OK)
        drop_anchor(c, contest, &l.trials[count]);
}

/* Moves those at most so slow to the front; returns how many. */
static int keep(clconv_attempt **list, int count, double slowest)
{
    int kept = 0;
    for (int i = 0; i < count; ++i)
        if (is_ok(list[i]) && list[i]->seconds <= slowest)
            list[kept++] = list[i];
    return kept;
}

static void time_all(clconv_course *c, clconv_contest *contest,
                     clconv_attempt **list, int count)
{
    double seconds = c->rules.trial_seconds;
    clconv_contest_time(c, contest, list, count, FIRST_PART * seconds);
    double best = contest->best_seconds;
    for (int i = 0; i < count; ++i)
        best = fmin(best, list[i]->seconds);
    count = keep(list, count, FAR_BEHIND * best);
    clconv_contest_time(c, contest, list, count, seconds);
}

/* ---- Results ----------------------------------------------------------- */

static bool same_kernels(const clconv_attempt *a, const clconv_attempt *b)
{
    clconv_choice of_a[CLCONV_ROLES], of_b[CLCONV_ROLES];
    if (clconv_choices_parse(a->plan, of_a) != CLCONV_OK ||
        clconv_choices_parse(b->plan, of_b) != CLCONV_OK)
        return false;
    for (int role = 0; role < CLCONV_ROLES; ++role)
        if (of_a[role].kernel != of_b[role].kernel)
            return false;
    return true;
}

static bool has_faster_sibling(const clconv_course *c, int leader)
{
    for (int i = 0; i < leader; ++i)
        if (same_kernels(&c->leaders[i], &c->leaders[leader]))
            return true;
    return false;
}

/* The slowest, but for one that is near the fastest and of other kernels. */
static int least_missed(const clconv_course *c)
{
    double near = NEAR * c->leaders[0].seconds;
    for (int i = c->leader_count - 1; i > 0; --i)
        if (c->leaders[i].seconds > near || has_faster_sibling(c, i))
            return i;
    return c->leader_count - 1;
}

static void remove_leader(clconv_course *c, int at)
{
    --c->leader_count;
    for (int i = at; i < c->leader_count; ++i)
        c->leaders[i] = c->leaders[i + 1];
}

/* The fastest few, each once, and not only of the same kernels: what lies
 * between their values is often less than a trial's noise. */
static void lead(clconv_course *c, const clconv_attempt *a)
{
    if (find_leader(c, a->plan))
        return;
    int at = c->leader_count++;
    for (; at > 0 && c->leaders[at - 1].seconds > a->seconds; --at)
        c->leaders[at] = c->leaders[at - 1];
    c->leaders[at] = *a;
    if (c->leader_count > CLCONV_LEADERS)
        remove_leader(c, least_missed(c));
}

static void score(clconv_course *c, clconv_contest *contest,
                  const clconv_attempt *a)
{
    if (!(a->seconds < INFINITY))
        return;
    contest->best_seconds = fmin(contest->best_seconds, a->seconds);
    bool faster =
        contest->anchor.plan[0] == '\0' || a->seconds < contest->anchor.seconds;
    if (faster && !a->remembered)
        contest->anchor = *a;
    if (contest == &c->whole)
        lead(c, a);
}

void clconv_course_report(clconv_course *c, const clconv_contest *contest,
                          const clconv_attempt *a)
{
    ++c->trials;
    ++c->outcomes[a->trial.outcome];
    if (!is_ok(a))
        memcpy(c->why, a->trial.why, sizeof c->why);
    clconv_tuner_progress progress = {
        .stage = contest->stage,
        .trials = c->trials,
        .spent = clconv_course_spent(c),
        .best_seconds = contest->best_seconds,
        .plan = a->plan,
        .trial = &a->trial,
    };
    if (!c->backend->progress(c->backend->user, &progress))
        c->stopped = true;
}

clconv_contest clconv_contest_make(clconv_stage stage, unsigned ops)
{
    return (clconv_contest){.stage = stage, .ops = ops, .best_seconds = INFINITY};
}

/* Counts what is known, and lists the others. */
static int recall_all(clconv_course *c, clconv_contest *contest,
                      clconv_attempt *attempts, int count, clconv_attempt **list)
{
    int unknown = 0;
    for (int i = 0; i < count; ++i) {
        remember(c, contest, &attempts[i]);
        if (attempts[i].remembered)
            score(c, contest, &attempts[i]);
        else
            list[unknown++] = &attempts[i];
    }
    return unknown;
}

void clconv_contest_try(clconv_course *c, clconv_contest *contest,
                        clconv_attempt *attempts, int count)
{
    clconv_attempt *unknown[CLCONV_BATCH_MOST], *list[CLCONV_BATCH_MOST];
    int tried = recall_all(c, contest, attempts, count, unknown);
    for (int i = 0; i < tried; ++i)
        list[i] = unknown[i];
    int live = keep(list, tried, INFINITY);
    prepare(c, contest->ops, list, live);
    live = keep(list, live, INFINITY);
    time_all(c, contest, list, live);
    for (int i = 0; i < tried; ++i) {
        score(c, contest, unknown[i]);
        clconv_course_report(c, contest, unknown[i]);
    }
}

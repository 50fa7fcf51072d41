/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_backend.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "splitmix.h"

/* ---- Times ------------------------------------------------------------- */

/* A copy of a tensor costs a tenth of the fastest kernel, once for all steps. */
#define COPY_PART 0.1
/* What the values of the cast do to it. */
static const landscape cast_landscape = {"cast", .kernel = 0, .value = 0.2,
                                         .pair = 0.05};

static clconv_steps steps_of(const fake *f, unsigned ops, const char *plan)
{
    clconv_request request = {
        .ops = ops, .max_workspace = SIZE_MAX, .plan = plan};
    clconv_steps steps;
    cr_assert_eq(clconv_planner_choose(&f->problem, &f->device, &request, &steps),
                 CLCONV_OK, "%s: %s: %s", f->text, plan, clconv_last_error());
    return steps;
}

static double step_seconds(const fake *f, const clconv_step *step)
{
    clconv_candidate c = {.kernel = step->kernel};
    clconv_step whole;
    memcpy(c.values, step->values, sizeof c.values);
    if (step->kernel->role == CLCONV_ROLE_CAST) {
        double copies = (step->copies & 1) + (step->copies >> 1 & 1);
        return 1e-3 * COPY_PART * (1 + copies) *
               landscape_seconds(&cast_landscape, f->seed, &c);
    }
    clconv_planner_step(&f->problem, &f->device, c.kernel, c.values, &whole,
                        &c.cost);
    return landscape_seconds(&f->landscape, f->seed, &c);
}

double fake_seconds(const fake *f, unsigned ops, const char *plan)
{
    clconv_steps steps = steps_of(f, ops, plan);
    double sum = 0;
    for (int i = 0; i < steps.count; ++i)
        sum += step_seconds(f, &steps.step[i]);
    return sum;
}

/* ---- Fates ------------------------------------------------------------- */

static double chance(const fake *f, unsigned ops, const char *plan)
{
    uint64_t state = clconv_hash_bytes(plan, strlen(plan)).low ^ f->seed ^ ops;
    return (double)(clconv_random(&state) >> 11) * 0x1p-53;
}

static clconv_outcome fate_of(const fake *f, unsigned ops, const char *plan,
                              bool judged)
{
    clconv_outcome fate =
        f->fate ? f->fate(f, ops, plan, judged) : CLCONV_TRIAL_OK;
    if (fate != CLCONV_TRIAL_OK)
        return fate;
    if (!(fake_seconds(f, ops, plan) < INFINITY))
        return CLCONV_TRIAL_BUILD_FAILED;
    double dice = chance(f, ops, plan);
    if (dice < f->crashing)
        return CLCONV_TRIAL_CRASHED;
    if (dice < f->crashing + f->hanging)
        return CLCONV_TRIAL_HUNG;
    if (dice < f->crashing + f->hanging + f->wrong)
        return CLCONV_TRIAL_WRONG;
    return CLCONV_TRIAL_OK;
}

static fake_plan *find(const fake *f, unsigned ops, const char *plan)
{
    for (int i = 0; i < f->count; ++i)
        if (f->plans[i].ops == ops && strcmp(f->plans[i].text, plan) == 0)
            return &f->plans[i];
    return NULL;
}

static void set_trial(clconv_trial *trial, clconv_outcome outcome)
{
    *trial = (clconv_trial){.outcome = outcome, .error = 1e-4};
    if (outcome != CLCONV_TRIAL_OK)
        strcpy(trial->why, "made up");
}

/* ---- The backend ------------------------------------------------------- */

static double clock_of(void *user)
{
    return ((fake *)user)->now;
}

static bool is_whole(const fake *f, unsigned ops, const char *plan)
{
    clconv_steps steps = steps_of(f, ops, plan);
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_steps_format(&steps, &text);
    bool whole = strcmp(text.data, plan) == 0;
    clconv_text_free(&text);
    return whole;
}

static void expect_distinct(const char *const *plans, int count)
{
    for (int i = 0; i < count; ++i)
        for (int j = 0; j < i; ++j)
            cr_assert_str_neq(plans[i], plans[j]);
}

static void prepare_one(fake *f, unsigned ops, const char *plan,
                        clconv_trial *out)
{
    cr_assert(is_whole(f, ops, plan), "%s", plan);
    fake_plan *known = find(f, ops, plan);
    if (!known) {
        cr_assert_lt(f->count, FAKE_MOST);
        known = &f->plans[f->count++];
        strcpy(known->text, plan);
        known->ops = ops;
    } else {
        cr_assert_neq(known->outcome, CLCONV_TRIAL_CRASHED, "%s", plan);
        cr_assert_neq(known->outcome, CLCONV_TRIAL_HUNG, "%s", plan);
    }
    known->outcome = fate_of(f, ops, plan, false);
    set_trial(out, known->outcome);
}

static void prepare(void *user, unsigned ops, const char *const *plans,
                    int count, clconv_trial *out)
{
    fake *f = user;
    cr_assert_not(f->stopped);
    cr_assert_gt(count, 0);
    expect_distinct(plans, count);
    for (int i = 0; i < count; ++i)
        prepare_one(f, ops, plans[i], &out[i]);
    f->now += f->prepare_seconds * ceil((double)count / f->jobs);
}

static fake_plan *expect_prepared(const fake *f, unsigned ops, const char *plan)
{
    fake_plan *known = find(f, ops, plan);
    cr_assert_not_null(known, "not prepared: %s", plan);
    cr_assert_eq(known->outcome, CLCONV_TRIAL_OK, "%s", plan);
    return known;
}

static void time_one(fake *f, unsigned ops, const char *plan, double seconds,
                     clconv_trial *out)
{
    double noise = f->noise * sqrt(0.1 / seconds);
    fake_plan *known = expect_prepared(f, ops, plan);
    if (++f->timed == f->crash_at) {
        known->outcome = CLCONV_TRIAL_CRASHED;
        set_trial(out, known->outcome);
        return;
    }
    out->seconds = pow(f->drift, f->now / 100) * fake_seconds(f, ops, plan) *
                   exp(noise * landscape_normal(&f->random));
    out->lower = out->seconds * exp(-noise);
    out->upper = out->seconds * exp(noise);
}

static void time_plans(void *user, unsigned ops, const char *const *plans,
                       int count, double seconds, clconv_trial *out)
{
    fake *f = user;
    cr_assert_not(f->stopped);
    cr_assert_gt(count, 0);
    expect_distinct(plans, count);
    for (int i = 0; i < count; ++i)
        time_one(f, ops, plans[i], seconds, &out[i]);
    f->now += seconds * count;
}

static void judge(void *user, unsigned ops, const char *plan, clconv_trial *out)
{
    fake *f = user;
    expect_prepared(f, ops, plan);
    ++f->judged;
    set_trial(out, fate_of(f, ops, plan, true));
    out->error = 2e-4;
}

/* A journal: of the past and, if a timing crashes, of that. */
static bool recall(void *user, unsigned ops, const char *plan, clconv_trial *out)
{
    const fake *f = user;
    const fake_plan *known = f->past ? find(f->past, ops, plan) : NULL;
    const fake_plan *here = f->crash_at ? find(f, ops, plan) : NULL;
    if (here && here->outcome == CLCONV_TRIAL_CRASHED)
        known = here;
    if (!known)
        return false;
    set_trial(out, known->outcome);
    out->seconds = fake_seconds(f, ops, plan);
    return true;
}

static bool progress(void *user, const clconv_tuner_progress *p)
{
    fake *f = user;
    ++f->progressed;
    ++f->outcomes[p->trial->outcome];
    cr_assert_eq(p->trials, f->progressed);
    f->stopped |= f->progressed == f->stop_after;
    return !f->stopped;
}

/* ---- Making ------------------------------------------------------------ */

void fake_init(fake *f, const char *text, const char *preset)
{
    clconv_desc d;
    *f = (fake){
        .text = text, .seed = 1, .drift = 1, .prepare_seconds = 0.5, .jobs = 1};
    cr_assert_eq(clconv_desc_parse(text, &d), CLCONV_OK, "%s", text);
    cr_assert_eq(clconv_problem_init(&d, &f->problem), CLCONV_OK, "%s", text);
    cr_assert(clconv_device_preset(preset, &f->device), "%s", preset);
    f->landscape = (landscape){"half right", .cost = 0.5,  .kernel = 0.3,
                               .value = 0.2, .pair = 0.05, .rough = 0.02};
    f->plans = calloc(FAKE_MOST, sizeof *f->plans);
    cr_assert_not_null(f->plans);
}

void fake_free(fake *f)
{
    free(f->plans);
}

clconv_tuner_backend fake_backend(fake *f)
{
    return (clconv_tuner_backend){
        .user = f,
        .clock = clock_of,
        .prepare = prepare,
        .time = time_plans,
        .judge = judge,
        .recall = f->past || f->crash_at ? recall : NULL,
        .progress = progress,
    };
}

clconv_status fake_tune(fake *f, unsigned ops, double seconds,
                        clconv_tuner_result *out)
{
    clconv_tuner_backend backend = fake_backend(f);
    clconv_tuner_rules rules = {
        .seconds = seconds, .known = f->known, .jobs = f->jobs};
    return clconv_tuner_run(&f->problem, &f->device, ops, SIZE_MAX, &rules,
                            &backend, out);
}

/*
 * The tuner's course on a made-up device (support/fake_backend.h), which itself
 * asserts what a tuner owes to its backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "fake_backend.h"
#include "status.h"

#define DENSE "n4c32h28w28k64r3s3p1"
#define SMALL "n4c64h8w8k64r3s3p1_fp32"

static clconv_tuner_result tuned(fake *f, unsigned ops, double seconds)
{
    clconv_tuner_result result;
    cr_assert_eq(fake_tune(f, ops, seconds, &result), CLCONV_OK, "%s: %s",
                 f->text, clconv_last_error());
    cr_assert_eq(result.trial.outcome, CLCONV_TRIAL_OK);
    cr_assert_gt(f->judged, 0);
    cr_assert_eq(result.trials, f->progressed);
    for (int i = 0; i < CLCONV_OUTCOMES; ++i)
        cr_assert_eq(result.outcomes[i], f->outcomes[i], "%s",
                     clconv_outcome_word((clconv_outcome)i));
    return result;
}

static clconv_steps steps_of(const fake *f, unsigned ops, const char *plan)
{
    clconv_request request = {
        .ops = ops, .max_workspace = SIZE_MAX, .plan = plan};
    clconv_steps steps;
    cr_assert_eq(clconv_planner_choose(&f->problem, &f->device, &request, &steps),
                 CLCONV_OK, "%s: %s", plan, clconv_last_error());
    return steps;
}

/* The plan string of the planner's choice. */
static void default_plan(const fake *f, unsigned ops, char *out)
{
    clconv_steps steps = steps_of(f, ops, "");
    clconv_text text = CLCONV_TEXT_EMPTY;
    clconv_steps_format(&steps, &text);
    strcpy(out, text.data);
    clconv_text_free(&text);
}

static clconv_search *search_of(const fake *f, clconv_role role)
{
    const clconv_scope scope = {
        .problem = &f->problem, .device = &f->device, .role = role, .seed = 1};
    return clconv_search_new(&scope);
}

/* What the fastest kernel of a role takes by itself. */
static double least_of(const fake *f, clconv_role role)
{
    clconv_search *s = search_of(f, role);
    double least = INFINITY;
    for (int i = 0; i < clconv_search_size(s); ++i) {
        clconv_candidate c;
        clconv_search_item(s, i, &c);
        least = fmin(least, landscape_seconds(&f->landscape, f->seed, &c));
    }
    clconv_search_free(s);
    return least;
}

/* ---- What it finds ----------------------------------------------------- */

/* The bound leaves the cast out. */
Test(tuner, finds_a_plan_close_to_the_fastest_kernels)
{
    static const char *const presets[] = {"cpu", "gpu"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; ++i) {
        fake f;
        fake_init(&f, DENSE, presets[i]);
        f.noise = 0.02;
        clconv_tuner_result result = tuned(&f, CLCONV_OP_BACKWARD, 400);
        double bound = least_of(&f, CLCONV_ROLE_BWD_DATA) +
                       least_of(&f, CLCONV_ROLE_BWD_WEIGHT);
        double found = fake_seconds(&f, CLCONV_OP_BACKWARD, result.plan);
        cr_assert_lt(found, 1.1 * bound, "%s: %g, %g", presets[i], found, bound);
        cr_assert_lt(result.trial.seconds, result.default_seconds);
        fake_free(&f);
    }
}

/* What the fastest of the whole plans takes that were tried. */
static double least_tried(const fake *f)
{
    double least = INFINITY;
    for (int i = 0; i < f->count; ++i)
        if (f->plans[i].ops == CLCONV_OP_BACKWARD)
            least = fmin(least,
                         fake_seconds(f, CLCONV_OP_BACKWARD, f->plans[i].text));
    return least;
}

/* A trial's noise is more than what lies between the best, and that of the
 * anchors adds up: the final turns decide. */
Test(tuner, noise_does_not_hide_the_fastest_that_was_tried)
{
    for (int run = 0; run < 48; ++run) {
        fake f;
        fake_init(&f, DENSE, "cpu");
        f.noise = 0.05;
        f.random += (uint64_t)run;
        clconv_tuner_result result = tuned(&f, CLCONV_OP_BACKWARD, 100);
        double found = fake_seconds(&f, CLCONV_OP_BACKWARD, result.plan);
        cr_assert_leq(found, 1.05 * least_tried(&f), "run %d", run);
        fake_free(&f);
    }
}

/* Each of its values once, whole plans with no cast or other kernel. */
Test(tuner, tries_the_kernel_for_both_gradients)
{
    static const char name[] = "bwd_fused:";
    fake f;
    fake_init(&f, "n64c32h16w16k32r3s3p1", "sm_90");
    tuned(&f, CLCONV_OP_BACKWARD, 1000);
    clconv_search *all = search_of(&f, CLCONV_ROLE_BACKWARD);
    int tried = 0;
    for (int i = 0; i < f.count; ++i) {
        if (!strstr(f.plans[i].text, name))
            continue;
        ++tried;
        cr_assert_eq(strncmp(f.plans[i].text, name, strlen(name)), 0);
        cr_assert_null(strchr(f.plans[i].text, ';'));
        cr_assert_eq(f.plans[i].ops, CLCONV_OP_BACKWARD);
    }
    cr_assert_geq(tried, clconv_search_size(all));
    clconv_search_free(all);
    fake_free(&f);
}

Test(tuner, answers_with_a_whole_plan_for_any_outputs)
{
    static const unsigned ops[] = {CLCONV_OP_DX,
                                   CLCONV_OP_DW,
                                   CLCONV_OP_DB,
                                   CLCONV_OP_DW | CLCONV_OP_DB,
                                   CLCONV_OP_DX | CLCONV_OP_DB,
                                   CLCONV_OP_BACKWARD};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
        fake f;
        fake_init(&f, DENSE, "cpu");
        clconv_tuner_result result = tuned(&f, ops[i], 60);
        clconv_steps steps = steps_of(&f, ops[i], result.plan);
        clconv_text text = CLCONV_TEXT_EMPTY;
        clconv_steps_format(&steps, &text);
        cr_assert_str_eq(text.data, result.plan);
        clconv_text_free(&text);
        fake_free(&f);
    }
}

/* What the fastest cast takes, which sums db. */
static double least_cast(const fake *f)
{
    clconv_search *s = search_of(f, CLCONV_ROLE_CAST);
    double least = INFINITY;
    for (int i = 0; i < clconv_search_size(s); ++i) {
        clconv_candidate c;
        clconv_text plan = CLCONV_TEXT_EMPTY;
        clconv_search_item(s, i, &c);
        clconv_candidate_format(&c, &plan);
        least = fmin(least, fake_seconds(f, CLCONV_OP_DB, plan.data));
        clconv_text_free(&plan);
    }
    clconv_search_free(s);
    return least;
}

/* By a third from one batch to the next: all that is tried later looks slower
 * than it is. */
Test(tuner, finds_the_fastest_cast_on_a_device_that_slows_down)
{
    for (uint64_t seed = 1; seed <= 8; ++seed) {
        fake f;
        fake_init(&f, DENSE, "gpu");
        f.seed = seed;
        f.drift = 1e3;
        clconv_tuner_result result = tuned(&f, CLCONV_OP_DB, 60);
        double found = fake_seconds(&f, CLCONV_OP_DB, result.plan);
        cr_assert_leq(found, 1.03 * least_cast(&f), "seed %d", (int)seed);
        fake_free(&f);
    }
}

Test(tuner, noisy_runs_choose_within_3_percent)
{
    double least = INFINITY, most = 0;
    for (uint64_t run = 0; run < 20; ++run) {
        fake f;
        fake_init(&f, SMALL, "gpu");
        f.noise = 0.01;
        f.random = run;
        clconv_tuner_result result = tuned(&f, CLCONV_OP_DX, 400);
        double found = fake_seconds(&f, CLCONV_OP_DX, result.plan);
        least = fmin(least, found);
        most = fmax(most, found);
        fake_free(&f);
    }
    cr_assert_leq(most, 1.03 * least, "%g to %g", least, most);
}

/* Plans for all outputs in which dY is copied for a kernel, or is not. */
static int pairs_that_copy(const fake *f, bool copy)
{
    int count = 0;
    for (int i = 0; i < f->count; ++i) {
        if (f->plans[i].ops != CLCONV_OP_BACKWARD)
            continue;
        clconv_steps steps = steps_of(f, f->plans[i].ops, f->plans[i].text);
        count += ((steps.step[0].copies & CLCONV_BIT(CLCONV_DY)) != 0) == copy;
    }
    return count;
}

/* One copy serves both kernels, and neither knows of the other. */
Test(tuner, pairs_kernels_that_share_a_copy)
{
    for (uint64_t seed = 1; seed <= 6; ++seed) {
        fake f;
        fake_init(&f, DENSE, "cpu");
        f.seed = seed;
        tuned(&f, CLCONV_OP_BACKWARD, 200);
        cr_assert_gt(pairs_that_copy(&f, true), 0, "seed %d", (int)seed);
        cr_assert_gt(pairs_that_copy(&f, false), 0, "seed %d", (int)seed);
        fake_free(&f);
    }
}

Test(tuner, takes_the_default_plan_if_all_are_as_fast)
{
    for (uint64_t run = 0; run < 5; ++run) {
        fake f;
        char plan[CLCONV_RECORD_PLAN];
        fake_init(&f, SMALL, "gpu");
        f.landscape = (landscape){"flat", .cost = 0};
        f.noise = 0.004;
        f.random = run;
        clconv_tuner_result result = tuned(&f, CLCONV_OP_DX, 60);
        default_plan(&f, CLCONV_OP_DX, plan);
        cr_assert_str_eq(result.plan, plan);
        fake_free(&f);
    }
}

/* Without time for a search the result is an earlier run's. */
Test(tuner, a_known_plan_takes_part)
{
    fake f;
    fake_init(&f, DENSE, "cpu");
    clconv_tuner_result long_run = tuned(&f, CLCONV_OP_BACKWARD, 200);
    fake_free(&f);
    fake_init(&f, DENSE, "cpu");
    f.known = long_run.plan;
    clconv_tuner_result short_run = tuned(&f, CLCONV_OP_BACKWARD, 0.01);
    cr_assert_str_eq(short_run.plan, long_run.plan);
    fake_free(&f);
}

static int prepared_of(const fake *f, unsigned ops)
{
    int count = 0;
    for (int i = 0; i < f->count; ++i)
        count += f->plans[i].ops == ops;
    return count;
}

Test(tuner, exhaustive_tries_every_candidate)
{
    fake f;
    fake_init(&f, SMALL, "gpu");
    clconv_tuner_backend backend = fake_backend(&f);
    clconv_tuner_rules rules = {.seconds = 1, .exhaustive = true, .batch = 32};
    clconv_tuner_result result;
    cr_assert_eq(clconv_tuner_run(&f.problem, &f.device,
                                  CLCONV_OP_DX | CLCONV_OP_DB, SIZE_MAX, &rules,
                                  &backend, &result),
                 CLCONV_OK);
    clconv_search *s = search_of(&f, CLCONV_ROLE_BWD_DATA);
    cr_assert_eq(prepared_of(&f, CLCONV_OP_DX), clconv_search_size(s));
    clconv_search_free(s);
    fake_free(&f);
}

static void assert_baked_after(const fake *f, unsigned ops, int count)
{
    for (int i = 0, seen = 0; i < f->count; ++i) {
        if (f->plans[i].ops != ops)
            continue;
        bool is_baked = strstr(f->plans[i].text, "shape=baked") != NULL;
        cr_assert_eq(is_baked, seen++ >= count, "%d: %s", i, f->plans[i].text);
    }
}

Test(tuner, a_search_keeps_to_its_trials_and_bakes_in_the_second_half)
{
    fake f;
    fake_init(&f, SMALL, "gpu");
    clconv_tuner_backend backend = fake_backend(&f);
    clconv_tuner_rules rules = {.seconds = 1e6, .trials = 36};
    clconv_tuner_result result;
    cr_assert_eq(clconv_tuner_run(&f.problem, &f.device,
                                  CLCONV_OP_DX | CLCONV_OP_DB, SIZE_MAX, &rules,
                                  &backend, &result),
                 CLCONV_OK);
    cr_assert_eq(prepared_of(&f, CLCONV_OP_DX), rules.trials);
    assert_baked_after(&f, CLCONV_OP_DX, 24);
    fake_free(&f);
}

/* ---- What fails -------------------------------------------------------- */

static clconv_outcome only_default_is_right(const fake *f, unsigned ops,
                                            const char *plan, bool judged)
{
    char right[CLCONV_RECORD_PLAN];
    default_plan(f, ops, right);
    return judged && strcmp(plan, right) != 0 ? CLCONV_TRIAL_WRONG
                                              : CLCONV_TRIAL_OK;
}

Test(tuner, what_the_judge_finds_wrong_does_not_win)
{
    fake f;
    char plan[CLCONV_RECORD_PLAN];
    fake_init(&f, DENSE, "cpu");
    f.fate = only_default_is_right;
    clconv_tuner_result result = tuned(&f, CLCONV_OP_BACKWARD, 60);
    default_plan(&f, CLCONV_OP_BACKWARD, plan);
    cr_assert_str_eq(result.plan, plan);
    cr_assert_gt(result.outcomes[CLCONV_TRIAL_WRONG], 3);
    cr_assert_float_eq(result.trial.error, 2e-4, 1e-12);
    fake_free(&f);
}

static double seconds_of_default(const fake *f, unsigned ops)
{
    char plan[CLCONV_RECORD_PLAN];
    default_plan(f, ops, plan);
    return fake_seconds(f, ops, plan);
}

static clconv_outcome fast_is_wrong(const fake *f, unsigned ops,
                                    const char *plan, bool judged)
{
    (void)judged;
    bool fast = fake_seconds(f, ops, plan) < 0.7 * seconds_of_default(f, ops);
    return fast ? CLCONV_TRIAL_WRONG : CLCONV_TRIAL_OK;
}

Test(tuner, the_fastest_does_not_win_if_it_is_wrong)
{
    fake f;
    fake_init(&f, DENSE, "cpu");
    f.fate = fast_is_wrong;
    clconv_tuner_result result = tuned(&f, CLCONV_OP_DX, 120);
    cr_assert_gt(result.outcomes[CLCONV_TRIAL_WRONG], 0);
    cr_assert_geq(fake_seconds(&f, CLCONV_OP_DX, result.plan),
                  0.7 * seconds_of_default(&f, CLCONV_OP_DX));
    fake_free(&f);
}

Test(tuner, lives_with_crashes_hangs_and_failed_builds)
{
    fake f;
    fake_init(&f, DENSE, "cpu");
    f.crashing = f.hanging = f.wrong = 0.1;
    f.landscape.failing = 0.1;
    f.noise = 0.02;
    clconv_tuner_result result = tuned(&f, CLCONV_OP_BACKWARD, 400);
    double bound = least_of(&f, CLCONV_ROLE_BWD_DATA) +
                   least_of(&f, CLCONV_ROLE_BWD_WEIGHT);
    cr_assert_lt(fake_seconds(&f, CLCONV_OP_BACKWARD, result.plan), 1.2 * bound);
    cr_assert_gt(result.outcomes[CLCONV_TRIAL_CRASHED], 0);
    cr_assert_gt(result.outcomes[CLCONV_TRIAL_HUNG], 0);
    cr_assert_gt(result.outcomes[CLCONV_TRIAL_BUILD_FAILED], 0);
    fake_free(&f);
}

/* The anchor's, too: it was timed well before. */
Test(tuner, lives_with_a_crash_in_any_timing)
{
    for (int at = 1; at <= 60; ++at) {
        fake f;
        fake_init(&f, SMALL, "gpu");
        f.crash_at = at;
        tuned(&f, CLCONV_OP_DX, 40);
        cr_assert_geq(f.timed, at);
        fake_free(&f);
    }
}

static clconv_outcome default_crashes(const fake *f, unsigned ops,
                                      const char *plan, bool judged)
{
    return only_default_is_right(f, ops, plan, true) == CLCONV_TRIAL_OK && !judged
               ? CLCONV_TRIAL_CRASHED
               : CLCONV_TRIAL_OK;
}

Test(tuner, goes_on_without_the_default_plan)
{
    static const unsigned ops[] = {CLCONV_OP_BACKWARD, CLCONV_OP_DX};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
        fake f;
        fake_init(&f, DENSE, "cpu");
        f.fate = default_crashes;
        clconv_tuner_result result = tuned(&f, ops[i], 60);
        cr_assert_eq(result.default_seconds, 0);
        fake_free(&f);
    }
}

static clconv_outcome all_hang(const fake *f, unsigned ops, const char *plan,
                               bool judged)
{
    (void)f, (void)ops, (void)plan, (void)judged;
    return CLCONV_TRIAL_HUNG;
}

Test(tuner, says_why_no_plan_passed)
{
    fake f;
    clconv_tuner_result result;
    fake_init(&f, DENSE, "cpu");
    f.fate = all_hang;
    cr_assert_eq(fake_tune(&f, CLCONV_OP_BACKWARD, 20, &result),
                 CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "made up"), "%s",
                       clconv_last_error());
    fake_free(&f);
}

/* ---- The workspace ----------------------------------------------------- */

Test(tuner, keeps_to_the_workspace)
{
    fake f;
    fake_init(&f, DENSE, "cpu");
    size_t usual = steps_of(&f, CLCONV_OP_BACKWARD, "").workspace;
    clconv_tuner_backend backend = fake_backend(&f);
    clconv_tuner_rules rules = {.seconds = 60};
    clconv_tuner_result result;
    cr_assert_eq(clconv_tuner_run(&f.problem, &f.device, CLCONV_OP_BACKWARD,
                                  usual - 1, &rules, &backend, &result),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_lt(steps_of(&f, CLCONV_OP_BACKWARD, result.plan).workspace, usual);
    fake_free(&f);
    fake_init(&f, DENSE, "cpu");
    cr_assert_eq(clconv_tuner_run(&f.problem, &f.device, CLCONV_OP_BACKWARD, 1,
                                  &rules, &backend, &result),
                 CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "max_workspace"), "%s",
                       clconv_last_error());
    fake_free(&f);
}

/* ---- Time and interrupts ----------------------------------------------- */

Test(tuner, a_tiny_budget_is_enough_for_an_answer)
{
    static const double budgets[] = {0, 1e-9, 0.6, 2, 5};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; ++i) {
        fake f;
        fake_init(&f, DENSE, "cpu");
        clconv_tuner_result result = tuned(&f, CLCONV_OP_BACKWARD, budgets[i]);
        cr_assert_gt(result.default_seconds, 0);
        cr_assert_leq(result.trial.seconds, result.default_seconds);
        cr_assert_lt(f.now, budgets[i] + 10, "%g", f.now);
        fake_free(&f);
    }
}

Test(tuner, keeps_to_its_budget)
{
    fake f;
    fake_init(&f, DENSE, "cpu");
    tuned(&f, CLCONV_OP_BACKWARD, 100);
    cr_assert(f.now > 85 && f.now < 110, "%g", f.now);
    fake_free(&f);
}

/* Eight side by side take as long as the default plan did: whole batches. */
Test(tuner, fills_a_short_budget_with_what_is_prepared_side_by_side)
{
    fake f;
    fake_init(&f, DENSE, "cpu");
    f.prepare_seconds = 3;
    f.jobs = 8;
    tuned(&f, CLCONV_OP_BACKWARD, 30);
    cr_assert_geq(f.count, 33);
    cr_assert_lt(f.now, 40, "%g", f.now);
    fake_free(&f);
}

Test(tuner, can_be_stopped_anywhere)
{
    for (int stop = 1;; ++stop) {
        fake f;
        fake_init(&f, SMALL, "gpu");
        f.stop_after = stop;
        clconv_tuner_result result = tuned(&f, CLCONV_OP_BACKWARD, 40);
        bool stopped = f.stopped;
        cr_assert_gt(result.default_seconds, 0);
        cr_assert_leq(result.trial.seconds, result.default_seconds);
        fake_free(&f);
        if (!stopped)
            break;
    }
}

/* ---- Memory ------------------------------------------------------------ */

/* Another run of the same course asks of what is new alone. */
Test(tuner, does_not_try_again_what_it_remembers)
{
    fake past, now;
    fake_init(&past, SMALL, "gpu");
    past.crashing = past.wrong = 0.15;
    tuned(&past, CLCONV_OP_DX, 100);
    fake_init(&now, SMALL, "gpu");
    now.crashing = now.wrong = 0.15;
    now.past = &past;
    tuned(&now, CLCONV_OP_DX, 100);
    int again = 0;
    for (int i = 0; i < now.count; ++i)
        for (int j = 0; j < past.count; ++j) {
            if (strcmp(now.plans[i].text, past.plans[j].text) != 0)
                continue;
            ++again;
            cr_assert_eq(past.plans[j].outcome, CLCONV_TRIAL_OK);
        }
    cr_assert_leq(again, 13, "more than the finalists: %d", again);
    cr_assert_gt(now.count, 20, "%d", now.count);
    fake_free(&now);
    fake_free(&past);
}

/* ---- Words ------------------------------------------------------------- */

Test(tuner, stages_and_outcomes_have_names)
{
    for (int i = 0; i < CLCONV_STAGES; ++i)
        for (int j = 0; j < i; ++j)
            cr_assert_str_neq(clconv_stage_name((clconv_stage)i),
                              clconv_stage_name((clconv_stage)j));
    cr_assert_str_eq(clconv_stage_name(CLCONV_STAGES), "unknown");
    for (int i = 0; i < CLCONV_OUTCOMES; ++i)
        for (int j = 0; j < i; ++j)
            cr_assert_str_neq(clconv_outcome_word((clconv_outcome)i),
                              clconv_outcome_word((clconv_outcome)j));
    cr_assert_str_eq(clconv_outcome_word(CLCONV_OUTCOMES), "unknown");
}

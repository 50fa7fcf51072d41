/*
 * Timing and judging of plans in process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_dir.h"
#include "host.h"
#include "measure_parts.h"
#include "rig.h"
#include "verdict.h"

typedef struct bench {
    host host;
    clconv_context *context;
    clconv_measure *measure;
} bench;

static void open_as(bench *b, const char *problem,
                    const clconv_context_options *options)
{
    clconv_desc desc;
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &b->host),
                 HOST_OK);
    cr_assert_eq(clconv_context_create(b->host.context, b->host.device, options,
                                       &b->context),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s", problem);
    cr_assert_eq(
        clconv_measure_new(b->context, &desc, CLCONV_OP_BACKWARD, &b->measure),
        CLCONV_OK, "%s: %s", problem, clconv_last_error());
}

static void open_with(bench *b, const char *problem, const char *emulate)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = "";
    options.emulate_unit = emulate;
    open_as(b, problem, &options);
}

static void open_bench(bench *b, const char *problem)
{
    open_with(b, problem, NULL);
}

static void close_bench(bench *b)
{
    clconv_measure_free(b->measure);
    clconv_context_release(b->context);
    host_close(&b->host);
}

static clconv_trial prepare(const bench *b, unsigned ops, const char *plan)
{
    clconv_trial trial;
    memset(&trial, 0xFF, sizeof trial);
    clconv_measure_prepare(b->measure, ops, plan, &trial);
    return trial;
}

static clconv_trial judge(const bench *b, unsigned ops, const char *plan)
{
    clconv_trial trial;
    memset(&trial, 0xFF, sizeof trial);
    clconv_measure_judge(b->measure, ops, plan, &trial);
    return trial;
}

#define EXPECT_OUTCOME(trial, expected, problem)                               \
    cr_assert_eq((trial).outcome, expected, "%s: %s: %s", problem,             \
                 clconv_outcome_word((trial).outcome), (trial).why)

static const char problem[] = "n3c4h7w6k6r3s3u2x1p1x0g2";

/* ---- Right plans ------------------------------------------------------- */

Test(measure, right_plans_pass_every_judgement)
{
    static const struct {
        const char *problem, *emulate;
    } cases[] = {
        {problem, NULL},
        {"n2c5h9w8k7r3s2p1d2x1_nhwc", NULL},
        {"n5c8h12w12k8r3s3p1g8", NULL},
        {"n2c3h8w8k4r3s3p1_fp32", NULL},
        {"n2c3h8w8k4r3s3p1_nhwc_fp32_x16_dw16_dx16_dxlog4", NULL},
        {"n2c8h8w8k8r3s3p1_x16_w16_dy16_dylog8_dw16_db16_dx16_dxlog8", NULL},
        {"n2c4h8w8k6r3s3p1_scale0_dx16_inf", NULL},
        {"n2c16h8w8k16r3s3p1_scale20_dylog-3", "mma_m16n8k16"},
        {"n1c1h1w1k1r1s1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        bench b;
        open_with(&b, cases[i].problem, cases[i].emulate);
        clconv_trial trial = prepare(&b, CLCONV_OP_BACKWARD, "");
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, cases[i].problem);
        cr_assert_lt(trial.error, 5e-3, "%s", cases[i].problem);
        clconv_trial judged = judge(&b, CLCONV_OP_BACKWARD, "");
        EXPECT_OUTCOME(judged, CLCONV_TRIAL_OK, cases[i].problem);
        cr_assert_eq(judged.error, trial.error, "%s", cases[i].problem);
        /* The random operands are back: a first-time plan is right on them. */
        trial = prepare(&b, CLCONV_OP_DW | CLCONV_OP_DB, "");
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, cases[i].problem);
        close_bench(&b);
    }
}

/* What judges it, in fp32, leaves none. */
Test(measure, the_callers_cache_gets_the_programs_of_the_plan_alone)
{
    bench b;
    cache_dir dir;
    clconv_context_options options;
    clconv_context_options_init(&options);
    cache_dir_make(&dir);
    options.cache_dir = dir.path;
    options.cache_policy = CLCONV_CACHE_ALL;
    options.emulate_unit = "none"; /* no programs but plans' */
    open_as(&b, problem, &options);
    clconv_trial trial = prepare(&b, CLCONV_OP_BACKWARD, "");
    EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, problem);
    trial = judge(&b, CLCONV_OP_BACKWARD, "");
    EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, problem);
    close_bench(&b);
    int kept = cache_dir_count(&dir);
    cr_assert_gt(kept, 0);
    cr_assert_eq(rig_count_stored(problem, &options), kept);
    cache_dir_remove(&dir);
}

Test(measure, images_that_repeat_give_what_the_reference_says)
{
    static const char *const problems[] = {"n5c4h6w6k4r3s3p1",
                                           "n5c4h6w6k4r3s3p1_nhwc_fp32"};
    for (int i = 0; i < 2; ++i) {
        bench b;
        open_bench(&b, problems[i]);
        clconv_measure *m = b.measure;
        clconv_trial trial = prepare(&b, CLCONV_OP_BACKWARD, "");
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, problems[i]);
        cr_assert_eq(m->reference.period, 5);
        /* From here on as if a second image took too long. */
        clconv_reference_free(&m->reference);
        cr_assert_eq(clconv_reference_new(m->context, m->queue, &m->desc,
                                          m->ops, 1, &m->reference),
                     CLCONV_OK);
        cr_assert_eq(m->reference.period, 2);
        for (int s = 0; s < CLCONV_SAMPLES; ++s) {
            clconv_expected_free(&m->expected[s]);
            m->has_expected[s] = false;
        }
        trial = judge(&b, CLCONV_OP_BACKWARD, "");
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, problems[i]);
        close_bench(&b);
    }
}

Test(measure, timing_gives_a_median_between_its_quartiles)
{
    bench b;
    open_bench(&b, problem);
    const char *const plans[] = {"bwd_data_generic;bwd_weight_generic", "",
                                 "no_such_kernel"};
    clconv_trial trials[3];
    memset(trials, 0x55, sizeof trials);
    clconv_trial untouched = trials[2];
    for (int i = 0; i < 2; ++i) {
        trials[i] = prepare(&b, CLCONV_OP_BACKWARD, plans[i]);
        EXPECT_OUTCOME(trials[i], CLCONV_TRIAL_OK, problem);
    }
    clconv_measure_time(b.measure, CLCONV_OP_BACKWARD, plans, 3, 0.02, trials);
    for (int i = 0; i < 2; ++i) {
        cr_assert_gt(trials[i].lower, 0);
        cr_assert_leq(trials[i].lower, trials[i].seconds);
        cr_assert_leq(trials[i].seconds, trials[i].upper);
        cr_assert_lt(trials[i].upper, 1);
    }
    cr_assert_eq(memcmp(&trials[2], &untouched, sizeof untouched), 0);
    close_bench(&b);
}

Test(measure, sets_are_more_than_a_cache_holds)
{
    bench b;
    open_bench(&b, problem);
    const clconv_tensors *t = &b.measure->tensors;
    size_t bytes = 0;
    for (int i = 0; i < CLCONV_TENSORS; ++i)
        bytes += (size_t)t->sets * t->stride[i];
    cr_assert_geq(t->sets, 2);
    if (b.host.is_cpu)
        cr_assert_geq(bytes, (size_t)64 << 20);
    close_bench(&b);
}

/* Sets whose dW was written since all its bytes were 0xFF. */
static int count_written(const bench *b)
{
    const clconv_tensors *t = &b->measure->tensors;
    int written = 0;
    for (int i = 0; i < t->sets; ++i) {
        cl_uint bits;
        cr_assert(host_read(&b->host, t->mem[CLCONV_DW],
                            (size_t)i * t->stride[CLCONV_DW], sizeof bits,
                            &bits));
        written += bits != UINT32_MAX;
    }
    return written;
}

/* Three calls and one to warm up each. */
Test(measure, plans_that_take_turns_do_not_share_sets)
{
    enum { CALLS = 4 };
    bench b;
    open_bench(&b, problem);
    const char *const plans[] = {"bwd_data_generic;bwd_weight_generic", ""};
    const clconv_tensors *t = &b.measure->tensors;
    const cl_uint ones = UINT32_MAX;
    clconv_trial trials[2];
    for (int i = 0; i < 2; ++i)
        trials[i] = prepare(&b, CLCONV_OP_BACKWARD, plans[i]);
    cr_assert_eq(clEnqueueFillBuffer(
                     b.host.queue, t->mem[CLCONV_DW], &ones, sizeof ones, 0,
                     (size_t)t->sets * t->stride[CLCONV_DW], 0, NULL, NULL),
                 CL_SUCCESS);
    cr_assert_eq(clFinish(b.host.queue), CL_SUCCESS);
    clconv_measure_time(b.measure, CLCONV_OP_BACKWARD, plans, 2, 0, trials);
    cr_assert_geq(t->sets, 2 * CALLS);
    cr_assert_geq(count_written(&b), 2 * CALLS);
    close_bench(&b);
}

/* ---- Wrong plans ------------------------------------------------------- */

/* Changes one element of an operand of the first set, behind the back of what
 * computed the expectation: the plan's result is then another one. */
static void spoil(const bench *b, clconv_tensor tensor, float value)
{
    cr_assert(host_write(&b->host, b->measure->tensors.mem[tensor], 0,
                         sizeof value, &value));
}

Test(measure, a_wrong_result_is_seen)
{
    static const struct {
        clconv_tensor operand;
        unsigned ops;
        clconv_outcome outcome;
        const char *said;
    } cases[] = {
        {CLCONV_X, CLCONV_OP_DW, CLCONV_TRIAL_WRONG, "dw of random data"},
        {CLCONV_X, CLCONV_OP_DX, CLCONV_TRIAL_OK, ""},
        {CLCONV_W, CLCONV_OP_DX, CLCONV_TRIAL_WRONG, "dx of random data"},
        {CLCONV_W, CLCONV_OP_DW | CLCONV_OP_DB, CLCONV_TRIAL_OK, ""},
        {CLCONV_DY, CLCONV_OP_DB, CLCONV_TRIAL_WRONG, "db of random data"},
    };
    static const float values[] = {-1000, NAN};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int j = 0; j < 2; ++j) {
            bench b;
            open_bench(&b, problem);
            spoil(&b, cases[i].operand, values[j]);
            clconv_trial trial = prepare(&b, cases[i].ops, "");
            EXPECT_OUTCOME(trial, cases[i].outcome, problem);
            cr_assert_not_null(strstr(trial.why, cases[i].said), "%s",
                               trial.why);
            close_bench(&b);
        }
}

Test(measure, an_output_that_is_not_written_is_wrong)
{
    bench b;
    open_bench(&b, problem);
    clconv_measure *m = b.measure;
    clconv_trial trial = prepare(&b, CLCONV_OP_BACKWARD, "");
    EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, problem);
    cr_assert_eq(clconv_tensors_poison(&m->tensors), CLCONV_OK);
    for (clconv_tensor t = CLCONV_DW; t <= CLCONV_DX; ++t) {
        float *got;
        cr_assert_eq(clconv_tensors_read(&m->tensors, t, &got), CLCONV_OK);
        trial = (clconv_trial){.outcome = CLCONV_TRIAL_OK};
        cr_assert_not(clconv_verdict_holds(&m->expected[CLCONV_SAMPLE_RANDOM],
                                           &m->problem, t, got, &trial));
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_WRONG, problem);
        free(got);
    }
    close_bench(&b);
}

Test(measure, one_wrong_integer_fails_the_judgement)
{
    for (clconv_tensor t = CLCONV_DW; t <= CLCONV_DX; ++t) {
        bench b;
        open_bench(&b, problem);
        clconv_measure *m = b.measure;
        clconv_trial trial = judge(&b, CLCONV_OP_BACKWARD, "");
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_OK, problem);
        size_t last = (size_t)clconv_problem_elements(&m->problem, t) - 1;
        float *value = &m->expected[CLCONV_SAMPLE_INTEGERS].value[t][last];
        *value = nextafterf(*value, INFINITY);
        trial = judge(&b, CLCONV_OP_BACKWARD, "");
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_WRONG, problem);
        cr_assert_not_null(strstr(trial.why, "of integers data"), "%s",
                           trial.why);
        close_bench(&b);
    }
}

/* ---- Plans that do not come to run ------------------------------------- */

Test(measure, what_the_planner_refuses_is_refused)
{
    bench b;
    open_bench(&b, problem);
    static const char *const plans[] = {"no_such_kernel",
                                        "bwd_data_generic:no_such_value=1",
                                        "bwd_data_depthwise"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; ++i) {
        clconv_trial trial = prepare(&b, CLCONV_OP_BACKWARD, plans[i]);
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_REFUSED, plans[i]);
        cr_assert_neq(trial.why[0], '\0');
        trial = judge(&b, CLCONV_OP_BACKWARD, plans[i]);
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_REFUSED, plans[i]);
    }
    clconv_measure_limit_workspace(b.measure, 1);
    clconv_trial trial = prepare(&b, CLCONV_OP_BACKWARD, "");
    EXPECT_OUTCOME(trial, CLCONV_TRIAL_REFUSED, problem);
    cr_assert_not_null(strstr(trial.why, "max_workspace"), "%s", trial.why);
    close_bench(&b);
}

Test(measure, what_the_compiler_refuses_has_failed_to_build)
{
    bench b;
    open_bench(&b, "n2c16h8w8k16r3s3p1");
    if (b.context->device.nv_sm == 0) {
        /* NVIDIA's assembly, which no other compiler takes. */
        b.context->device.nv_sm = 80;
        b.context->device.units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16);
        clconv_trial trial = prepare(&b, CLCONV_OP_DX, "bwd_data_mma");
        EXPECT_OUTCOME(trial, CLCONV_TRIAL_BUILD_FAILED, "mma");
        cr_assert_null(strchr(trial.why, '\n'), "%s", trial.why);
    }
    close_bench(&b);
}

Test(measure, a_problem_of_no_images_cannot_be_measured)
{
    bench b;
    open_bench(&b, problem);
    clconv_desc desc = b.measure->desc;
    clconv_measure *none = NULL;
    desc.n = 0;
    cr_assert_eq(clconv_measure_new(b.context, &desc, CLCONV_OP_DW, &none),
                 CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "desc.n is 0"));
    cr_assert_null(none);
    close_bench(&b);
}

/* ---- Which plans are kept ---------------------------------------------- */

Test(measure, the_least_recently_used_plan_makes_room)
{
    bench b;
    open_bench(&b, problem);
    clconv_prepared_list *list = &b.measure->plans;
    clconv_plan *plan;
    char text[16];
    cr_assert_eq(clconv_plan_create(b.context, &b.measure->desc, CLCONV_OP_DB,
                                    NULL, &plan),
                 CLCONV_OK);
    for (int i = 0; i < CLCONV_MEASURE_PLANS + 2; ++i) {
        snprintf(text, sizeof text, "%d", i);
        clconv_plan_retain(plan);
        cr_assert_not_null(clconv_prepared_add(list, 1, text, plan));
        cr_assert_not_null(clconv_prepared_find(list, 1, "0"));
    }
    cr_assert_null(clconv_prepared_find(list, 1, "1"));
    cr_assert_null(clconv_prepared_find(list, 1, "2"));
    cr_assert_not_null(clconv_prepared_find(list, 1, "3"));
    cr_assert_null(clconv_prepared_find(list, 2, "3"));
    clconv_measure_forget(b.measure);
    cr_assert_null(clconv_prepared_find(list, 1, "0"));
    clconv_plan_release(plan);
    close_bench(&b);
}

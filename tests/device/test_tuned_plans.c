/*
 * What a tuned record does to the plans of a context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_dir.h"
#include "objects.h"
#include "records.h"
#include "rig.h"

static const char problem[] = "n2c6h6w5k4r3s3p1";
static const char alike[] = "n3c6h6w7k8r3s3p1";

static const char tuned_plan[] =
    "cast;bwd_data_generic:cast=separate;bwd_weight_generic:cast=separate";

static cache_dir dir;
static cache_log warnings;

static clconv_context_options options_for(const char *path)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = path;
    options.log = cache_log_write;
    options.log_user = &warnings;
    return options;
}

/* A device and a context with the directory, without a plan. */
static void open_context(rig *r, const clconv_context_options *options)
{
    *r = (rig){.plan = NULL};
    cr_assert_eq(host_open(getenv("CLCONV_DEVICE"), HOST_IN_ORDER, &r->host),
                 HOST_OK);
    cr_assert_eq(clconv_context_create(r->host.context, r->host.device, options,
                                       &r->context),
                 CLCONV_OK, "%s", clconv_last_error());
}

static void close_context(rig *r)
{
    clconv_context_release(r->context);
    host_close(&r->host);
}

/* What a tuner would leave in the directory for this device; driver NULL: its
 * own. */
static void leave_record(const char *of, const char *plan, const char *driver)
{
    rig r;
    clconv_context_options options = options_for(dir.path);
    open_context(&r, &options);
    clconv_record record = record_of(of, &r.context->device);
    strcpy(record.plan, plan);
    if (driver)
        strcpy(record.device.driver, driver);
    cr_assert(clconv_tunedb_save(r.context->tunedb, &record), "%s",
              warnings.last);
    close_context(&r);
}

static clconv_status create(const rig *r, const char *text,
                            const clconv_plan_options *options,
                            clconv_plan **out)
{
    clconv_desc desc;
    cr_assert_eq(clconv_desc_parse(text, &desc), CLCONV_OK, "%s", text);
    return clconv_plan_create(r->context, &desc, CLCONV_OP_BACKWARD, options,
                              out);
}

static void set_up(void)
{
    cache_dir_make(&dir);
}

static void tear_down(void)
{
    cache_dir_remove(&dir);
}

TestSuite(tuned_plans, .init = set_up, .fini = tear_down);

static void expect_line(const clconv_plan *plan, const char *begin,
                        const char *part)
{
    const char *line = rig_explain(plan, begin);
    cr_assert_not_null(strstr(line, part), "\"%s\" in \"%s\"", part, line);
}

/* ---- By default -------------------------------------------------------- */

/* A fresh context's plan for a problem is right, and its kernels are there for
 * that reason: "default", or that of a record. */
static void expect_why(const char *text, const char *why)
{
    rig r;
    bool tuned = strcmp(why, "default") != 0;
    clconv_context_options options = options_for(dir.path);
    rig_open(&r, HOST_IN_ORDER, text, &options);
    char step[128], record[128];
    snprintf(step, sizeof step, "(%s;", why);
    snprintf(record, sizeof record, "record: %s: ", why);
    expect_line(r.plan, "step 2", step);
    if (tuned) {
        expect_line(r.plan, "record: ", record);
        expect_line(r.plan, "plan: ", "cast=separate;bwd_weight_generic");
    } else {
        cr_assert_str_eq(rig_explain(r.plan, "record: "), "");
    }
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

Test(tuned_plans, a_record_changes_the_plan_of_a_fresh_context)
{
    expect_why(problem, "default");
    leave_record(problem, tuned_plan, NULL);
    expect_why(problem, "tuned");
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
}

Test(tuned_plans, explain_shows_the_record)
{
    leave_record(problem, tuned_plan, NULL);
    rig r;
    clconv_plan *plan;
    clconv_context_options options = options_for(dir.path);
    open_context(&r, &options);
    cr_assert_eq(create(&r, alike, NULL, &plan), CLCONV_OK, "%s",
                 clconv_last_error());
    expect_line(plan, "record: ", "tuned for a problem like this");
    expect_line(plan, "record: ", problem);
    expect_line(plan, "record: ", "812.4 us (default plan 1043.0 us)");
    expect_line(plan, "record: ", "2026-11-30");
    expect_line(plan, "record: ", r.context->device.name);
    clconv_plan_release(plan);
    close_context(&r);
}

Test(tuned_plans, a_problem_like_it_takes_the_record_too)
{
    leave_record(problem, tuned_plan, NULL);
    expect_why(alike, "tuned for a problem like this");
    expect_why("n2c6h6w5k4r3s3u2p1", "default");
}

Test(tuned_plans, another_driver_s_record_says_so)
{
    leave_record(problem, tuned_plan, "another driver");
    expect_why(problem, "tuned under another driver");
}

Test(tuned_plans, a_record_that_is_not_legal_here_is_passed_over)
{
    leave_record(problem, "cast;bwd_data_depthwise;bwd_weight_depthwise", NULL);
    expect_why(problem, "default");
    leave_record(alike, tuned_plan, NULL);
    expect_why("n2c7h6w5k4r3s3p1", "tuned for a problem like this");
}

Test(tuned_plans, what_the_caller_names_wins)
{
    leave_record(problem, tuned_plan, NULL);
    rig r;
    clconv_plan *plan;
    clconv_context_options options = options_for(dir.path);
    open_context(&r, &options);
    clconv_plan_options plan_options;
    clconv_plan_options_init(&plan_options);
    plan_options.plan = "bwd_data_generic:cast=fused";
    cr_assert_eq(create(&r, problem, &plan_options, &plan), CLCONV_OK, "%s",
                 clconv_last_error());
    expect_line(plan, "step 2", "(asked for;");
    expect_line(plan, "plan: ", "cast=fused;bwd_weight_generic");
    expect_line(plan, "step 3", "(tuned;");
    clconv_plan_release(plan);
    plan_options.plan = tuned_plan;
    cr_assert_eq(create(&r, problem, &plan_options, &plan), CLCONV_OK, "%s",
                 clconv_last_error());
    cr_assert_str_eq(rig_explain(plan, "record: "), "");
    clconv_plan_release(plan);
    close_context(&r);
}

Test(tuned_plans, a_record_that_needs_more_workspace_is_passed_over)
{
    leave_record(problem, tuned_plan, NULL);
    rig r;
    clconv_plan *plan;
    size_t bytes;
    clconv_context_options options = options_for(dir.path);
    open_context(&r, &options);
    cr_assert_eq(create(&r, problem, NULL, &plan), CLCONV_OK);
    cr_assert_eq(clconv_plan_workspace_size(plan, &bytes), CLCONV_OK);
    cr_assert_gt(bytes, 0);
    clconv_plan_release(plan);
    clconv_plan_options plan_options;
    clconv_plan_options_init(&plan_options);
    plan_options.max_workspace = bytes - 1;
    cr_assert_eq(create(&r, problem, &plan_options, &plan), CLCONV_OK, "%s",
                 clconv_last_error());
    cr_assert_str_eq(rig_explain(plan, "record: "), "");
    clconv_plan_release(plan);
    close_context(&r);
}

/* A CPU that claims NVIDIA's unit: nothing for the unit builds. */
Test(tuned_plans, a_record_that_does_not_build_is_passed_over)
{
    rig r;
    clconv_context_options options = options_for(dir.path);
    open_context(&r, &options);
    clconv_device *device = &r.context->device;
    if (device->nv_sm > 0)
        cr_skip_test("the device may have the unit");
    device->nv_sm = 80;
    device->is_cpu = false;
    device->units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16);
    clconv_record record = record_of("n2c32h6w8k32r3s3p1", device);
    strcpy(record.plan, "cast;bwd_data_mma;bwd_weight_mma");
    cr_assert(clconv_tunedb_save(r.context->tunedb, &record));
    clconv_plan *plan;
    cr_assert_eq(create(&r, "n2c32h6w8k32r3s3p1", NULL, &plan), CLCONV_OK, "%s",
                 clconv_last_error());
    cr_assert_geq(warnings.warnings, 1);
    cr_assert_str_eq(rig_explain(plan, "record: "), "");
    clconv_plan_release(plan);
    close_context(&r);
}

/* ---- Tuned plans only -------------------------------------------------- */

static void expect_untuned(const rig *r, const char *part)
{
    clconv_plan *plan = NULL;
    clconv_plan_options options;
    clconv_plan_options_init(&options);
    options.mode = CLCONV_PLAN_TUNED;
    cr_assert_eq(create(r, problem, &options, &plan), CLCONV_UNSUPPORTED);
    cr_assert_null(plan);
    cr_assert_not_null(strstr(clconv_last_error(), part), "\"%s\" in \"%s\"",
                       part, clconv_last_error());
}

Test(tuned_plans, asked_for_a_tuned_plan_only_this_very_problem_will_do)
{
    rig r;
    clconv_context_options options = options_for(dir.path);
    open_context(&r, &options);
    expect_untuned(&r, "n2c6h6w5k4r3s3p1 has no tuned record");
    leave_record(alike, tuned_plan, NULL);
    expect_untuned(&r, "run clconv-tune \"n2c6h6w5k4r3s3p1\"");
    leave_record(problem, tuned_plan, "another driver");
    expect_untuned(&r, r.context->device.driver);
    close_context(&r);
    open_context(&r, &options); /* others' records are read once */
    expect_untuned(&r, "(there is one of driver another driver)");
    leave_record(problem, tuned_plan, NULL);
    clconv_plan *plan;
    clconv_plan_options plan_options;
    clconv_plan_options_init(&plan_options);
    plan_options.mode = CLCONV_PLAN_TUNED;
    cr_assert_eq(create(&r, problem, &plan_options, &plan), CLCONV_OK, "%s",
                 clconv_last_error());
    expect_line(plan, "step 2", "(tuned;");
    clconv_plan_release(plan);
    close_context(&r);
}

Test(tuned_plans, without_a_directory_there_are_the_shipped_records)
{
    leave_record(problem, tuned_plan, NULL);
    rig r;
    clconv_context_options options = options_for("");
    open_context(&r, &options);
    expect_untuned(&r, "has no tuned record");
    close_context(&r);
}

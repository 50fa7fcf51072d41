/*
 * Matrix units: emulated where a test asks for that, and done without where
 * the driver cannot build a kernel for the one that it claims.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cache_dir.h"
#include "objects.h"
#include "rig.h"

static const char problem[] = "n2c32h6w8k32r3s3p1";

/* Whose dW goes to the matrix unit of a device that has one. */
static const char unit_problem[] = "n2c32h14w14k64r3s3p1_nhwc";

static cache_log warnings;

/* Part of the names of kernels whose source is not one; NULL: none. */
static const char *broken;

char *__real_clconv_kernel_source(const clconv_kernel *k, const clconv_task *t,
                                  clconv_text *why);
char *__wrap_clconv_kernel_source(const clconv_kernel *k, const clconv_task *t,
                                  clconv_text *why);

char *__wrap_clconv_kernel_source(const clconv_kernel *k, const clconv_task *t,
                                  clconv_text *why)
{
    char *source = __real_clconv_kernel_source(k, t, why);
    if (source && broken && strstr(k->name, broken))
        strcpy(source, "no source");
    return source;
}

static clconv_context_options memory_only(void)
{
    clconv_context_options options;
    clconv_context_options_init(&options);
    options.cache_dir = "";
    options.log = cache_log_write;
    options.log_user = &warnings;
    return options;
}

Test(runtime_unit, an_emulated_unit_is_used_and_right)
{
    rig r;
    clconv_context_options options = memory_only();
    options.emulate_unit = "mma_m16n8k16";
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    cr_assert_not_null(
        strstr(rig_explain(r.plan, "device: "), "mma_m16n8k16 emulated"));
    const char *plan = rig_explain(r.plan, "plan: ");
    cr_assert_not_null(strstr(plan, "bwd_data_mma"), "%s", plan);
    cr_assert_not_null(strstr(plan, "bwd_weight_mma"), "%s", plan);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

/* Or what tests the emulation would pass by other kernels. */
Test(runtime_unit, an_emulated_unit_is_not_done_without)
{
    rig r;
    clconv_context_options options = memory_only();
    options.emulate_unit = "mma_m16n8k16";
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    clconv_plan *plan = NULL;
    broken = "bwd_data_mma";
    clconv_desc other;
    cr_assert_eq(clconv_desc_parse(unit_problem, &other), CLCONV_OK);
    cr_assert_eq(
        clconv_plan_create(r.context, &other, CLCONV_OP_BACKWARD, NULL, &plan),
        CLCONV_BUILD_FAILED);
    cr_assert_null(plan);
    cr_assert_not_null(
        strstr(clconv_last_error(), "kernel bwd_data_mma did not build"), "%s",
        clconv_last_error());
    rig_close(&r);
}

Test(runtime_unit, no_unit_can_be_asked_for)
{
    rig r;
    clconv_context_options options = memory_only();
    options.emulate_unit = "none";
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    const char *plan = rig_explain(r.plan, "plan: ");
    cr_assert_null(strstr(plan, "mma"), "%s", plan);
    rig_close(&r);
}

#define MMA CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16)
#define WGMMA CLCONV_BIT(CLCONV_UNIT_WGMMA)

/* Makes the next plans believe that the device is a GPU with these units.
 * False if it may well be. */
static bool claim_units(clconv_context *context, int nv_sm, unsigned units)
{
    if (context->device.nv_sm > 0)
        return false;
    context->device.nv_sm = nv_sm;
    context->device.is_cpu = false;
    context->device.compute_units = 108;
    context->device.units = units;
    context->device.unit_emulated = false;
    context->device.wgmma_memory = CLCONV_WGMMA_MEMORY;
    context->device.tensor_maps = (units & WGMMA) != 0;
    return true;
}

Test(runtime_unit, where_the_unit_does_not_build_the_plan_does_without)
{
    rig r;
    clconv_context_options options = memory_only();
    rig_open(&r, HOST_IN_ORDER, unit_problem, &options);
    if (!claim_units(r.context, 80, MMA))
        cr_skip_test("the device may have this unit");
    clconv_plan_release(r.plan);
    cr_assert_eq(clconv_plan_create(r.context, &r.desc, CLCONV_OP_BACKWARD,
                                    NULL, &r.plan),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_not_null(strstr(warnings.last, "without the matrix unit"), "%s",
                       warnings.last);
    const char *plan = rig_explain(r.plan, "plan: ");
    cr_assert_null(strstr(plan, "mma"), "%s", plan);
    rig_run(&r);
    rig_expect(&r, CLCONV_OP_BACKWARD, 1);
    rig_close(&r);
}

/* Which units a plan does without, if nothing for any unit builds on a device
 * that claims both. */
static void expect_dropped(int nv_sm, const char *wanted, unsigned ops,
                           const char *dropped, const char *kept)
{
    rig r;
    clconv_desc desc;
    clconv_context_options options = memory_only();
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    if (!claim_units(r.context, nv_sm, MMA | WGMMA))
        cr_skip_test("the device may have these units");
    clconv_plan *plan = NULL;
    cr_assert_eq(clconv_desc_parse(wanted, &desc), CLCONV_OK);
    cr_assert_eq(clconv_plan_create(r.context, &desc, ops, NULL, &plan),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_not_null(strstr(warnings.last, dropped), "%s: \"%s\"", wanted,
                       warnings.last);
    const char *device = rig_explain(plan, "device: ");
    cr_assert_not_null(strstr(device, kept), "%s", device);
    clconv_plan_release(plan);
    rig_close(&r);
}

/* The first would be for wgmma, then for no unit, as sm_70 has no kernel for mma;
 * the second for wgmma, then for mma; the third for mma. */
Test(runtime_unit, wgmma_goes_first_then_all_units)
{
    static const char large[] = "n64c256h28w28k256r3s3p1_nhwc";
    expect_dropped(70, large, CLCONV_OP_DX,
                   "without the matrix unit wgmma:", ", unit mma_m16n8k16)");
    expect_dropped(
        90, large, CLCONV_OP_DX,
        "without the matrix unit mma_m16n8k16+wgmma:", "compute units)");
    expect_dropped(
        90, unit_problem, CLCONV_OP_DW,
        "without the matrix unit mma_m16n8k16+wgmma:", "compute units)");
}

Test(runtime_unit, a_kernel_that_was_asked_for_must_build)
{
    rig r;
    clconv_context_options options = memory_only();
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    if (!claim_units(r.context, 80, MMA))
        cr_skip_test("the device may have this unit");
    clconv_plan_options plan_options;
    clconv_plan_options_init(&plan_options);
    plan_options.plan = "bwd_data_mma";
    clconv_plan *plan = NULL;
    cr_assert_eq(clconv_plan_create(r.context, &r.desc, CLCONV_OP_BACKWARD,
                                    &plan_options, &plan),
                 CLCONV_BUILD_FAILED);
    cr_assert_null(plan);
    cr_assert_not_null(
        strstr(clconv_last_error(), "kernel bwd_data_mma did not build"), "%s",
        clconv_last_error());
    rig_close(&r);
}

Test(runtime_unit, a_failed_build_shows_what_the_compiler_said)
{
    rig r;
    clconv_context_options options = memory_only();
    rig_open(&r, HOST_IN_ORDER, problem, &options);
    clconv_origin origin;
    cl_program program = NULL;
    int builds = clconv_cache_builds(r.context->cache);
    const clconv_source source = {
        "broken", problem, "__kernel void broken() { no_such_name = 1; }"};
    cr_assert_eq(
        clconv_cache_program(r.context->cache, &source, &origin, &program),
        CLCONV_BUILD_FAILED);
    cr_assert_null(program);
    cr_assert_not_null(strstr(clconv_last_error(), "kernel broken"), "%s",
                       clconv_last_error());
    cr_assert_not_null(strstr(clconv_last_error(), "no_such_name"), "%s",
                       clconv_last_error());
    cr_assert_not_null(strstr(warnings.last, "no_such_name"), "%s",
                       warnings.last);
    cr_assert_eq(clconv_cache_builds(r.context->cache), builds);
    rig_close(&r);
}

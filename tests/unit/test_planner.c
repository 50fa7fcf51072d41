/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner.h"

static clconv_problem problem(const char *text)
{
    clconv_desc d;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse(text, &d), CLCONV_OK, "%s: %s", text,
                 clconv_last_error());
    cr_assert_eq(clconv_problem_init(&d, &p), CLCONV_OK, "%s", text);
    return p;
}

static clconv_device device(const char *preset)
{
    clconv_device d;
    cr_assert(clconv_device_preset(preset, &d), "%s", preset);
    return d;
}

static clconv_status choose(const char *text, const char *preset, unsigned ops,
                            size_t max_workspace, const char *plan,
                            clconv_steps *out)
{
    clconv_problem p = problem(text);
    clconv_device d = device(preset);
    clconv_request request = {
        .ops = ops, .max_workspace = max_workspace, .plan = plan};
    return clconv_planner_choose(&p, &d, &request, out);
}

static clconv_steps chosen(const char *text, const char *preset,
                           const char *plan)
{
    clconv_steps steps;
    cr_assert_eq(choose(text, preset, CLCONV_OP_BACKWARD, SIZE_MAX, plan, &steps),
                 CLCONV_OK, "%s on %s: %s", text, preset, clconv_last_error());
    return steps;
}

static const clconv_step *step_of(const clconv_steps *steps, clconv_role role)
{
    for (int i = 0; i < steps->count; ++i)
        if (steps->step[i].kernel->role == role)
            return &steps->step[i];
    cr_assert_fail("no step of role %d", (int)role);
    return NULL;
}

static const char *kernel_of(const clconv_steps *steps, clconv_role role)
{
    return step_of(steps, role)->kernel->name;
}

#define DENSE "n4c32h28w28k64r3s3p1"
#define LARGE "n256c64h32w32k64r3s3p1"
#define WIDE "n64c256h14w14k256r3s3p1"
#define STEM "n64c3h224w224k64r7s7u2p3"
#define DEPTHWISE "n4c128h56w56k128r3s3p1g128"
#define MULTIPLIER "n4c128h56w56k256r3s3p1g128"
#define GROUPED "n64c256h28w28k256r3s3p1g32"
#define STRIDED "n64c96h112w112k96r3s3u2p1g96"
#define HALVES "_x16_w16_dy16_dx16"

Test(planner, forward_is_a_cast_and_a_kernel_for_y)
{
    static const char *const presets[] = {"cpu", "gpu", "sm_90"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; ++i) {
        clconv_steps steps;
        cr_assert_eq(choose(DENSE, presets[i], CLCONV_OP_FORWARD, SIZE_MAX,
                            "forward_generic:cast=separate", &steps),
                     CLCONV_OK, "%s: %s", presets[i], clconv_last_error());
        const clconv_step *cast = step_of(&steps, CLCONV_ROLE_CAST);
        const clconv_step *forward = step_of(&steps, CLCONV_ROLE_FORWARD);
        cr_assert_eq(steps.count, 2, "%s", presets[i]);
        cr_assert_eq(cast->reads,
                     (unsigned)(CLCONV_BIT(CLCONV_X) | CLCONV_BIT(CLCONV_W)),
                     "%s", presets[i]);
        cr_assert_eq(cast->copies, forward->copies, "%s", presets[i]);
        cr_assert(forward->copies & CLCONV_BIT(CLCONV_X), "%s", presets[i]);
        cr_assert_not(cast->bias, "%s", presets[i]);
    }
}

Test(planner, forward_on_a_gpu_needs_no_workspace)
{
    clconv_steps steps;
    cr_assert_eq(choose(DENSE, "gpu", CLCONV_OP_FORWARD, 0, NULL, &steps),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(steps.workspace, 0);
    cr_assert_eq(choose(DENSE, "cpu", CLCONV_OP_FORWARD, 0, NULL, &steps),
                 CLCONV_UNSUPPORTED);
}

Test(planner, takes_the_cheapest_family_of_each_kind_of_device)
{
    static const struct {
        const char *problem, *preset, *data, *weight;
    } cases[] = {
        {DENSE, "cpu", "bwd_data_tile", "bwd_weight_panel"},
        {DENSE "_fp32", "cpu", "bwd_data_tile", "bwd_weight_panel"},
        {DENSE "_nhwc", "cpu", "bwd_data_panel", "bwd_weight_panel"},
        {LARGE, "gpu", "bwd_data_local", "bwd_weight_local"},
        {LARGE, "sm_75", "bwd_data_mma", "bwd_weight_mma"},
        {LARGE, "sm_80", "bwd_data_mma", "bwd_weight_mma"},
        {LARGE "_nhwc", "sm_80", "bwd_data_mma", "bwd_weight_mma"},
        {LARGE, "sm_86", "bwd_data_mma", "bwd_weight_mma"},
        {LARGE "_nhwc" HALVES, "sm_89", "bwd_data_mma", "bwd_weight_mma"},
        {LARGE "_fp32", "sm_75", "bwd_data_local", "bwd_weight_local"},
        {WIDE, "sm_90", "bwd_data_wgmma", "bwd_weight_wgmma"},
        {STEM, "sm_90", "bwd_data_stem", "bwd_weight_stem"},
        {STEM "_nhwc", "sm_90", "bwd_data_stem", "bwd_weight_stem"},
        {LARGE "_fp32", "sm_90", "bwd_data_local", "bwd_weight_local"},
        {LARGE "_fp32", "sm_80", "bwd_data_local", "bwd_weight_local"},
        {DEPTHWISE, "cpu", "bwd_data_depthwise", "bwd_weight_depthwise"},
        {DEPTHWISE "_nhwc", "cpu", "bwd_data_depthwise", "bwd_weight_depthwise"},
        {DEPTHWISE, "gpu", "bwd_data_strip", "bwd_weight_strip"},
        {DEPTHWISE, "sm_90", "bwd_data_strip", "bwd_weight_strip"},
        {DEPTHWISE "_nhwc", "sm_90", "bwd_data_strip", "bwd_weight_strip"},
        {DEPTHWISE "_nhwc" HALVES, "sm_90", "bwd_data_strip", "bwd_weight_strip"},
        {STRIDED, "sm_90", "bwd_data_strip", "bwd_weight_strip"},
        {STRIDED "_nhwc" HALVES, "sm_90", "bwd_data_strip", "bwd_weight_strip"},
        {MULTIPLIER, "sm_90", "bwd_data_depthwise_gpu",
         "bwd_weight_depthwise_gpu"},
        {GROUPED, "gpu", "bwd_data_grouped", "bwd_weight_grouped"},
        {GROUPED "_nhwc" HALVES, "gpu", "bwd_data_grouped", "bwd_weight_grouped"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_steps steps = chosen(cases[i].problem, cases[i].preset, NULL);
        cr_assert_str_eq(kernel_of(&steps, CLCONV_ROLE_BWD_DATA), cases[i].data,
                         "%s on %s", cases[i].problem, cases[i].preset);
        cr_assert_str_eq(kernel_of(&steps, CLCONV_ROLE_BWD_WEIGHT),
                         cases[i].weight, "%s on %s", cases[i].problem,
                         cases[i].preset);
    }
}

/* fp32 goes to local memory by asynchronous copies where the device has them. */
Test(planner, copies_fp32_asynchronously_from_sm_80_on)
{
    static const struct {
        const char *problem, *preset, *values;
    } cases[] = {
        {LARGE "_fp32", "sm_90", "copy=async"},
        {LARGE "_fp32", "sm_80", "copy=async"},
        {LARGE "_fp32", "gpu", "copy=registers"},
        {LARGE "_fp32", "sm_75", "copy=registers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_steps steps = chosen(cases[i].problem, cases[i].preset, NULL);
        clconv_text out = CLCONV_TEXT_EMPTY;
        clconv_steps_format(&steps, &out);
        cr_assert(strstr(out.data, cases[i].values), "%s on %s: %s",
                  cases[i].problem, cases[i].preset, out.data);
        clconv_text_free(&out);
    }
}

/* ---- One kernel for both gradients -------------------------------------- */

Test(planner, takes_one_kernel_for_all_where_it_costs_less)
{
    static const char *const problems[] = {
        LARGE "_nhwc", "n256c32h32w32k32r3s3p1", "n256c3h32w32k32r3s3p1"};
    for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) {
        clconv_steps steps = chosen(problems[i], "sm_90", NULL);
        cr_assert_eq(steps.count, 1, "%s", problems[i]);
        cr_assert_str_eq(steps.step[0].kernel->name, "bwd_fused");
        cr_assert(steps.step[0].bias);
        cr_assert_eq(steps.step[0].counts, CLCONV_BIT(CLCONV_DY) |
                                               CLCONV_BIT(CLCONV_X) |
                                               CLCONV_BIT(CLCONV_W));
    }
    /* 64 channels of planes are packed faster than that. */
    clconv_steps apart = chosen("n64c64h56w56k64r3s3p1", "sm_90", NULL);
    cr_assert_eq(apart.count, 3);
}

Test(planner, has_tiles_brought_ahead_where_registers_are_few)
{
    static const struct {
        const char *problem, *reads;
    } cases[] = {
        {"n256c64h32w32k64r3s3p1", "at_once=1,reads=ahead"},
        {"n64c64h56w56k64r3s3p1_nhwc", "at_once=1,reads=ahead"},
        /* Rows of planes that are no whole pieces. */
        {"n256c64h31w31k64r3s3p1", "reads=after"},
        {"n256c32h32w32k32r3s3p1", "reads=between"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_steps steps = chosen(cases[i].problem, "sm_90", "bwd_fused");
        clconv_text out = CLCONV_TEXT_EMPTY;
        clconv_steps_format(&steps, &out);
        cr_assert(strstr(out.data, cases[i].reads), "%s: %s", cases[i].problem,
                  out.data);
        clconv_text_free(&out);
    }
}

Test(planner, brings_no_tile_ahead_that_is_no_whole_pieces)
{
    clconv_steps steps;
    const char *ahead = "bwd_fused:at_once=1,reads=ahead";
    cr_assert_eq(choose("n256c64h31w31k64r3s3p1", "sm_90", CLCONV_OP_BACKWARD,
                        SIZE_MAX, ahead, &steps),
                 CLCONV_UNSUPPORTED);
    cr_assert_eq(choose("n256c64h31w31k64r3s3p1_nhwc", "sm_90",
                        CLCONV_OP_BACKWARD, SIZE_MAX, ahead, &steps),
                 CLCONV_OK);
    cr_assert_eq(choose("n256c64h32w32k64r3s3p1g2_nhwc", "sm_90",
                        CLCONV_OP_BACKWARD, SIZE_MAX, ahead, &steps),
                 CLCONV_UNSUPPORTED);
}

Test(planner, takes_a_kernel_a_gradient_where_one_is_named_or_left_out)
{
    clconv_steps steps = chosen(LARGE, "sm_90", "bwd_weight_wgmma");
    cr_assert_str_eq(kernel_of(&steps, CLCONV_ROLE_BWD_DATA), "bwd_data_halo");
    steps = chosen(LARGE, "sm_90", "cast");
    cr_assert_str_eq(kernel_of(&steps, CLCONV_ROLE_BWD_WEIGHT),
                     "bwd_weight_wgmma");
    cr_assert_eq(choose(LARGE, "sm_90", CLCONV_OP_DX, SIZE_MAX, NULL, &steps),
                 CLCONV_OK);
    cr_assert_str_eq(kernel_of(&steps, CLCONV_ROLE_BWD_DATA), "bwd_data_halo");
}

Test(planner, a_kernel_for_all_stands_alone)
{
    clconv_steps steps;
    cr_assert_eq(choose(LARGE, "sm_90", CLCONV_OP_BACKWARD, SIZE_MAX,
                        "bwd_fused;bwd_data_halo", &steps),
                 CLCONV_INVALID_ARGUMENT);
    cr_assert_str_eq(clconv_last_error(), "plan: bwd_fused does all by itself; "
                                          "name no other kernel");
    cr_assert_eq(choose(LARGE, "sm_90", CLCONV_OP_DW | CLCONV_OP_DB, SIZE_MAX,
                        "bwd_fused", &steps),
                 CLCONV_UNSUPPORTED);
    cr_assert_str_eq(clconv_last_error(),
                     "plan: bwd_fused is for dX and dW together; this plan has "
                     "not both");
    cr_assert_eq(choose(WIDE, "sm_90", CLCONV_OP_BACKWARD, SIZE_MAX,
                        "bwd_fused", &steps),
                 CLCONV_UNSUPPORTED);
    cr_assert_eq(
        choose(LARGE, "sm_90", CLCONV_OP_BACKWARD, 1000, "bwd_fused", &steps),
        CLCONV_UNSUPPORTED);
    cr_assert(strstr(clconv_last_error(), "max_workspace"));
}

Test(planner, plans_only_what_is_asked_for)
{
    clconv_steps steps;
    cr_assert_eq(choose(DENSE, "gpu", CLCONV_OP_DB, SIZE_MAX, NULL, &steps),
                 CLCONV_OK);
    cr_assert_eq(steps.count, 1);
    cr_assert(steps.step[0].bias);
    cr_assert_eq(steps.step[0].reads, CLCONV_BIT(CLCONV_DY));
    cr_assert_eq(choose(DENSE, "gpu", CLCONV_OP_DW, SIZE_MAX, NULL, &steps),
                 CLCONV_OK);
    for (int i = 0; i < steps.count; ++i) {
        cr_assert_neq(steps.step[i].kernel->role, CLCONV_ROLE_BWD_DATA);
        cr_assert_not(steps.step[i].bias);
        cr_assert_not(steps.step[i].reads & CLCONV_BIT(CLCONV_W));
    }
}

/* The copies that any step reads. */
static unsigned copies_of(const clconv_steps *steps)
{
    unsigned copies = 0;
    for (int i = 0; i < steps->count; ++i)
        if (steps->step[i].kernel->role != CLCONV_ROLE_CAST)
            copies |= steps->step[i].copies;
    return copies;
}

Test(planner, copies_an_operand_only_if_it_is_cast_and_wanted)
{
    const char *separate =
        "bwd_data_generic:cast=separate;bwd_weight_generic:cast=separate";
    const char *fused =
        "bwd_data_generic:cast=fused;bwd_weight_generic:cast=fused";
    unsigned all =
        CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X) | CLCONV_BIT(CLCONV_W);
    clconv_steps steps = chosen(DENSE, "gpu", separate);
    cr_assert_eq(copies_of(&steps), all);
    steps = chosen(DENSE "_x16_dy16", "gpu", separate);
    cr_assert_eq(copies_of(&steps), CLCONV_BIT(CLCONV_W));
    steps = chosen(DENSE "_fp32", "gpu", separate);
    cr_assert_eq(copies_of(&steps), 0);
    steps = chosen(DENSE, "gpu", fused);
    cr_assert_eq(copies_of(&steps), 0);
}

/* The kernel that packs X counts it, unless the cast reads it for a copy. */
Test(planner, counts_an_operand_in_one_place)
{
    clconv_steps steps = chosen(DENSE, "cpu", "bwd_weight_panel:cast=fused");
    const clconv_step *weight = step_of(&steps, CLCONV_ROLE_BWD_WEIGHT);
    const clconv_step *cast = step_of(&steps, CLCONV_ROLE_CAST);
    cr_assert_eq(weight->counts, CLCONV_BIT(CLCONV_X));
    cr_assert(cast->counts & CLCONV_BIT(CLCONV_X));

    steps = chosen(DENSE, "cpu", "bwd_weight_panel:cast=separate");
    weight = step_of(&steps, CLCONV_ROLE_BWD_WEIGHT);
    cast = step_of(&steps, CLCONV_ROLE_CAST);
    cr_assert_eq(weight->counts, 0);
    cr_assert_not(cast->counts & CLCONV_BIT(CLCONV_X));
}

/* Of the largest array of local memory that the plan's texts declare. */
static long largest_tiles(const clconv_steps *steps, const clconv_device *d)
{
    static const char declared[] = "__local uchar tiles[";
    long largest = 0;
    for (int i = 0; i < steps->count; ++i) {
        clconv_task task = clconv_step_task(steps, i, d);
        clconv_text why = CLCONV_TEXT_EMPTY;
        char *text = clconv_kernel_source(steps->step[i].kernel, &task, &why);
        cr_assert_not_null(text);
        for (const char *s = text; (s = strstr(s, declared)) != NULL; ++s) {
            long bytes = strtol(s + strlen(declared), NULL, 10);
            largest = bytes > largest ? bytes : largest;
        }
        free(text);
    }
    return largest;
}

Test(planner, keeps_to_the_local_memory_that_the_matrix_unit_may_have)
{
    static const char *const problems[] = {LARGE, WIDE, WIDE "_nhwc",
                                           "n64c3h224w224k64r7s7u2p3"};
    static const size_t sizes[] = {CLCONV_WGMMA_LEAST_MEMORY,
                                   CLCONV_WGMMA_MEMORY};
    for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i)
        for (int j = 0; j < 2; ++j) {
            clconv_problem p = problem(problems[i]);
            clconv_device d = device("sm_90");
            clconv_request request = {.ops = CLCONV_OP_BACKWARD,
                                      .max_workspace = SIZE_MAX};
            clconv_steps steps;
            d.wgmma_memory = sizes[j];
            cr_assert_eq(clconv_planner_choose(&p, &d, &request, &steps),
                         CLCONV_OK, "%s", problems[i]);
            long bytes = largest_tiles(&steps, &d);
            cr_assert_leq(bytes, (long)sizes[j], "%s: %ld", problems[i], bytes);
            cr_assert_gt(bytes, j ? (long)sizes[0] : 0, "%s: %ld", problems[i],
                         bytes);
        }
}

/* ---- dbias --------------------------------------------------------------- */

static int launches_for(const clconv_steps *steps, const char *preset,
                        unsigned op)
{
    int launches = 0;
    clconv_device d = device(preset);
    for (int i = 0; i < steps->count; ++i) {
        clconv_task task = clconv_step_task(steps, i, &d);
        clconv_pass pass[CLCONV_MAX_PASSES];
        int count = steps->step[i].kernel->passes(&task, steps->problem.n, pass);
        for (int j = 0; j < count; ++j)
            launches += (pass[j].serves & op) != 0;
    }
    return launches;
}

/* dY's pass of the cast, and a last sum: of bwd_weight if it has one. */
static void expect_last_sum(const char *problem, const char *preset,
                            const char *plan, bool by_weight)
{
    clconv_steps steps = chosen(problem, preset, plan);
    const clconv_step *cast = step_of(&steps, CLCONV_ROLE_CAST);
    const clconv_step *weight = step_of(&steps, CLCONV_ROLE_BWD_WEIGHT);
    clconv_device d = device(preset);
    clconv_task task = clconv_step_task(&steps, 0, &d);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count = cast->kernel->passes(&task, steps.problem.n, pass);
    cr_assert_eq(weight->finishes_bias, by_weight, "%s", plan);
    cr_assert_eq(cast->finishes_bias, by_weight, "%s", plan);
    cr_assert_eq(launches_for(&steps, preset, CLCONV_OP_DB), 2, "%s", plan);
    cr_assert_eq(pass[count - 1].serves == CLCONV_OP_DB &&
                     strstr(pass[count - 1].entry, "_bias") != NULL,
                 !by_weight, "%s", plan);
}

Test(planner, the_sum_of_dw_takes_that_of_dbias_along)
{
    expect_last_sum(WIDE, "sm_90", "bwd_weight_wgmma:split=fill", true);
    expect_last_sum(WIDE "_nhwc", "sm_90", "bwd_weight_wgmma:split=fill", true);
    expect_last_sum("n64c3h224w224k64r7s7u2p3", "sm_90", "bwd_weight_stem",
                    true);
    expect_last_sum(WIDE "_fp32", "gpu", "bwd_weight_local:fill=12", true);
    expect_last_sum(WIDE, "sm_80", "bwd_weight_mma:split=4", true);
    expect_last_sum(WIDE, "sm_80", "bwd_weight_mma:split=1", true);
    expect_last_sum(WIDE, "sm_90", "bwd_weight_wgmma:split=none", true);

    expect_last_sum(WIDE "_nhwc", "sm_90", "bwd_weight_wgmma:split=none", false);
    expect_last_sum(WIDE "_fp32", "gpu", "bwd_weight_local:fill=0", false);
    expect_last_sum(WIDE "_nhwc", "sm_80", "bwd_weight_mma:split=1", false);
    expect_last_sum(DENSE, "cpu", "bwd_weight_panel", false);
}

Test(planner, no_dbias_is_taken_along_that_is_not_wanted)
{
    clconv_steps steps;
    cr_assert_eq(choose(WIDE, "sm_90", CLCONV_OP_DW | CLCONV_OP_DX, SIZE_MAX,
                        "bwd_weight_wgmma:split=fill", &steps),
                 CLCONV_OK);
    for (int i = 0; i < steps.count; ++i)
        cr_assert_not(steps.step[i].finishes_bias);
}

/* dW's and dX's scratch must not lie over the cast's partial sums. */
Test(planner, what_a_cast_leaves_for_another_step_is_kept)
{
    clconv_steps steps = chosen(WIDE, "sm_90", "bwd_weight_wgmma:split=fill");
    clconv_device d = device("sm_90");
    clconv_task task = clconv_step_task(&steps, 0, &d);
    size_t offset, end = steps.step[0].scratch_offset +
                         steps.step[0].kernel->scratch(&task);
    cr_assert_gt(steps.step[0].kernel->scratch(&task), 0);
    for (int i = 1; i < steps.count; ++i)
        cr_assert_geq(steps.step[i].scratch_offset, end, "step %d", i);
    clconv_bias_sums sums =
        clconv_steps_bias_sums(&steps, &d, steps.problem.n, &offset);
    cr_assert_eq(offset, steps.step[0].scratch_offset);
    cr_assert_leq(offset + (size_t)(sums.count * steps.problem.k) * 4, end);
    cr_assert_eq(clconv_steps_bias_sums(&steps, &d, 0, &offset).count, 0);
}

/* ---- Copies and workspace ----------------------------------------------- */

/* Every copy that is read is written by a cast of that tensor before. */
Test(planner, each_copy_is_written_before_it_is_read)
{
    clconv_steps steps =
        chosen(DENSE, "gpu",
               "bwd_data_generic:cast=separate;bwd_weight_generic:"
               "cast=fused");
    unsigned written = 0;
    for (int i = 0; i < steps.count; ++i) {
        const clconv_step *step = &steps.step[i];
        if (step->kernel->role == CLCONV_ROLE_CAST)
            written |= step->copies;
        else
            cr_assert_eq(step->copies & ~written, 0, "step %d", i);
    }
    cr_assert_eq(written, CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W));
}

Test(planner, workspace_pieces_are_aligned_and_apart)
{
    clconv_steps steps = chosen("n3c5h7w7k3r3s3p1", "gpu", NULL);
    size_t copies_end = 0;
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t) {
        if (!(copies_of(&steps) & CLCONV_BIT(t)))
            continue;
        cr_assert_eq(steps.copy_offset[t] % CLCONV_WORKSPACE_ALIGN, 0);
        cr_assert_geq(steps.copy_offset[t], copies_end);
        copies_end = steps.copy_offset[t] +
                     2 * (size_t)clconv_problem_elements(&steps.problem, t);
    }
    clconv_device d = device("gpu");
    for (int i = 0; i < steps.count; ++i) {
        clconv_task task = clconv_step_task(&steps, i, &d);
        size_t scratch = steps.step[i].kernel->scratch(&task);
        cr_assert_eq(steps.step[i].scratch_offset % CLCONV_WORKSPACE_ALIGN, 0);
        cr_assert_geq(steps.step[i].scratch_offset, copies_end);
        cr_assert_leq(steps.step[i].scratch_offset + scratch, steps.workspace);
    }
}

Test(planner, a_workspace_limit_chooses_a_leaner_plan_or_says_what_it_takes)
{
    clconv_steps usual = chosen(DENSE, "cpu", NULL), lean;
    cr_assert_eq(choose(DENSE, "cpu", CLCONV_OP_BACKWARD, usual.workspace - 1,
                        NULL, &lean),
                 CLCONV_OK);
    cr_assert_lt(lean.workspace, usual.workspace);
    cr_assert_eq(choose(DENSE, "cpu", CLCONV_OP_BACKWARD, 16, NULL, &lean),
                 CLCONV_UNSUPPORTED);
    cr_assert_not_null(strstr(clconv_last_error(), "max_workspace is 16"), "%s",
                       clconv_last_error());
    const char *needs = strstr(clconv_last_error(), "needs ");
    cr_assert_not_null(needs, "%s", clconv_last_error());
    size_t least = (size_t)strtoull(needs + 6, NULL, 10);
    cr_assert_eq(choose(DENSE, "cpu", CLCONV_OP_BACKWARD, least - 1, NULL, &lean),
                 CLCONV_UNSUPPORTED);
    cr_assert_eq(choose(DENSE, "cpu", CLCONV_OP_BACKWARD, least, NULL, &lean),
                 CLCONV_OK);
    cr_assert_eq(lean.workspace, least);
}

/* The leanest plan of this device takes no workspace but dbias's partial sums. */
Test(planner, what_is_prepared_in_the_workspace_can_be_left_out)
{
    clconv_steps usual = chosen(DENSE "_fp32", "gpu", NULL), lean;
    cr_assert_eq(step_of(&usual, CLCONV_ROLE_BWD_DATA)->kernel,
                 clconv_kernel_find("bwd_data_local", 14));
    cr_assert_eq(
        choose(DENSE "_fp32", "gpu", CLCONV_OP_DX, SIZE_MAX, NULL, &usual),
        CLCONV_OK);
    cr_assert_gt(usual.workspace, 0);
    cr_assert_eq(choose(DENSE "_fp32", "gpu", CLCONV_OP_DX, 0, NULL, &lean),
                 CLCONV_OK, "%s", clconv_last_error());
    cr_assert_eq(lean.workspace, 0);
}

Test(planner, its_plan_string_chooses_the_same_plan)
{
    static const char *const presets[] = {"cpu", "gpu", "sm_80"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; ++i) {
        clconv_steps first = chosen(DENSE, presets[i], NULL);
        clconv_text out = CLCONV_TEXT_EMPTY, again = CLCONV_TEXT_EMPTY;
        clconv_steps_format(&first, &out);
        clconv_steps second = chosen(DENSE, presets[i], out.data);
        clconv_steps_format(&second, &again);
        cr_assert_str_eq(out.data, again.data);
        cr_assert_eq(first.workspace, second.workspace);
        cr_assert_str_eq(second.step[0].why, "asked for");
        clconv_text_free(&out);
        clconv_text_free(&again);
    }
}

Test(planner, faults_of_a_plan_string_are_named)
{
    static const struct {
        const char *plan, *message;
        clconv_status status;
    } cases[] = {
        {"bwd_date_generic", "no kernel \"bwd_date_generic\"; there is cast",
         CLCONV_INVALID_ARGUMENT},
        {"cast;;", "no kernel \"\"", CLCONV_INVALID_ARGUMENT},
        {"bwd_data_generic;bwd_data_tile", "do the same",
         CLCONV_INVALID_ARGUMENT},
        {"bwd_data_generic:tiel=1", "bwd_data_generic: no parameter \"tiel\"",
         CLCONV_INVALID_ARGUMENT},
        {"bwd_data_generic:cast=none", "it is one of", CLCONV_INVALID_ARGUMENT},
        {"bwd_data_mma", "bwd_data_mma does not cover", CLCONV_UNSUPPORTED},
        {"bwd_data_tile:tile_c=14,tile_w=6",
         "these values of bwd_data_tile do not fit", CLCONV_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        clconv_steps steps;
        cr_assert_eq(choose(DENSE, "cpu", CLCONV_OP_BACKWARD, SIZE_MAX,
                            cases[i].plan, &steps),
                     cases[i].status, "%s", cases[i].plan);
        cr_assert_not_null(strstr(clconv_last_error(), cases[i].message),
                           "%s: %s", cases[i].plan, clconv_last_error());
    }
}

Test(planner, a_suggestion_fills_the_roles_that_are_left_open)
{
    clconv_problem p = problem(DENSE);
    clconv_device d = device("cpu");
    clconv_request request = {
        .ops = CLCONV_OP_BACKWARD,
        .max_workspace = SIZE_MAX,
        .plan = "bwd_data_tile",
        .suggestion = "bwd_data_generic;bwd_weight_generic",
        .suggestion_why = "tuned",
    };
    clconv_steps steps;
    cr_assert_eq(clconv_planner_choose(&p, &d, &request, &steps), CLCONV_OK);
    const clconv_step *data = step_of(&steps, CLCONV_ROLE_BWD_DATA);
    const clconv_step *weight = step_of(&steps, CLCONV_ROLE_BWD_WEIGHT);
    cr_assert_str_eq(data->kernel->name, "bwd_data_tile");
    cr_assert_str_eq(data->why, "asked for");
    cr_assert_str_eq(weight->kernel->name, "bwd_weight_generic");
    cr_assert_str_eq(weight->why, "tuned");
    cr_assert_str_eq(step_of(&steps, CLCONV_ROLE_CAST)->why, "default");
    request.suggestion = "bwd_weight_depthwise";
    cr_assert_eq(clconv_planner_choose(&p, &d, &request, &steps),
                 CLCONV_UNSUPPORTED);
}

Test(planner, a_step_is_what_a_plan_would_have)
{
    clconv_problem p = problem(DENSE);
    clconv_device d = device("cpu");
    clconv_steps steps = chosen(DENSE, "cpu", NULL);
    for (int i = 0; i < steps.count; ++i) {
        const clconv_step *expected = &steps.step[i];
        clconv_step got;
        double cost = -1;
        if (expected->kernel->role == CLCONV_ROLE_CAST)
            continue;
        cr_assert(clconv_planner_step(&p, &d, expected->kernel,
                                      expected->values, &got, &cost));
        cr_assert_eq(got.copies, expected->copies);
        cr_assert_eq(got.counts, expected->counts);
        cr_assert_gt(cost, 0);
    }
    const clconv_kernel *depthwise =
        clconv_kernel_find("bwd_data_depthwise", strlen("bwd_data_depthwise"));
    int values[CLCONV_MAX_PARAMS] = {0};
    clconv_step got;
    double cost = -1;
    cr_assert_not(clconv_planner_step(&p, &d, depthwise, values, &got, &cost));
    cr_assert_eq(cost, -1);
}

/* sums that leave the registers cost twice the time. */
Test(planner, tiles_fit_the_registers_of_the_device)
{
    static const char *const problems[] = {
        "n4c3h32w32k32r3s3p1", DENSE,
        DENSE "_nhwc",         "n4c256h14w14k64r1s1",
        DENSE "_fp32",         "n4c64h7w7k512r3s3p1_nhwc",
        "n4c8h30w30k16r5s5u2", DENSE "_x16_w16",
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) {
        clconv_device d = device("cpu_avx2");
        clconv_steps steps = chosen(problems[i], "cpu_avx2", NULL);
        for (int j = 1; j < steps.count; ++j) {
            clconv_task few = clconv_step_task(&steps, j, &d);
            double cost = steps.step[j].kernel->cost(&few);
            clconv_device wide = device("cpu");
            clconv_task many = clconv_step_task(&steps, j, &wide);
            cr_assert_eq(cost, steps.step[j].kernel->cost(&many), "%s: %s",
                         problems[i], steps.step[j].kernel->name);
        }
    }
}

Test(planner, a_suggestion_for_another_problem_is_not_baked)
{
    clconv_problem p = problem(DENSE);
    clconv_device d = device("cpu");
    clconv_request request = {
        .ops = CLCONV_OP_BACKWARD,
        .max_workspace = SIZE_MAX,
        .suggestion = "bwd_data_tile:shape=baked;bwd_weight_panel:shape=baked",
        .suggestion_why = "tuned",
    };
    for (int unbaked = 0; unbaked < 2; ++unbaked) {
        clconv_steps steps;
        request.suggestion_unbaked = unbaked;
        cr_assert_eq(clconv_planner_choose(&p, &d, &request, &steps), CLCONV_OK);
        for (int i = 1; i < steps.count; ++i)
            cr_assert_eq(
                clconv_kernel_bakes(steps.step[i].kernel, steps.step[i].values),
                !unbaked, "%s", steps.step[i].kernel->name);
    }
}

/* ---- Depthwise and groups: the sizes that were fastest on an H200 -------- */

/* Of the plans with a kernel a gradient: "cast" leaves out those with one for
 * both. */
static void expect_plan(const char *text, const char *request, const char *data,
                        const char *weight)
{
    clconv_steps steps = chosen(text, "sm_90", request);
    clconv_text plan = CLCONV_TEXT_EMPTY;
    clconv_steps_format(&steps, &plan);
    char *got = clconv_text_take(&plan);
    cr_assert_not_null(got);
    cr_assert(strstr(got, data), "%s: %s", text, got);
    cr_assert(strstr(got, weight), "%s: %s", text, got);
    free(got);
}

static void expect_values(const char *text, const char *data, const char *weight)
{
    expect_plan(text, "cast", data, weight);
}

Test(planner, strips_have_the_sizes_that_were_measured)
{
    expect_values(DEPTHWISE "_nhwc" HALVES,
                  "bwd_data_strip:vec=2,columns=4,rows=16,lws=128,cast=fused,"
                  "shape=baked",
                  "bwd_weight_strip:vec=2,columns=4,fill=2,lws=256,cast=fused,"
                  "shape=baked");
    expect_values(STRIDED "_nhwc" HALVES,
                  "bwd_data_strip:vec=4,columns=2,rows=16,lws=128,cast=fused,"
                  "shape=baked",
                  "bwd_weight_strip:vec=2,columns=2,fill=2,lws=256,cast=fused,"
                  "shape=arguments");
    expect_values(DEPTHWISE HALVES, "bwd_data_strip:vec=1,columns=4,",
                  "bwd_weight_strip:vec=1,columns=4,");
    expect_values(STRIDED HALVES, "bwd_data_strip:vec=1,columns=4,",
                  "bwd_weight_strip:vec=1,columns=4,");
}

Test(planner, grouped_kernels_have_the_sizes_that_were_measured)
{
    const char *plan = "bwd_data_grouped;bwd_weight_grouped";
    expect_plan(GROUPED "_nhwc", plan, "bwd_data_grouped:columns=4,",
                "bwd_weight_grouped:planes=4,columns=4,");
    expect_plan(GROUPED "_nhwc" HALVES, plan,
                "bwd_data_grouped:columns=4,turns=4,lws=128,shape=baked",
                "bwd_weight_grouped:planes=4,columns=4,fill=4,lws=128,"
                "shape=baked");
    expect_plan(GROUPED HALVES, plan, "bwd_data_grouped:columns=8,",
                "bwd_weight_grouped:planes=8,columns=4,");
}

/* As many groups as a line of 64 channels holds. */
Test(planner, small_groups_are_multiplied_together)
{
    expect_values(GROUPED, "shape=baked,merge=8", "shape=baked,split=");
    expect_plan("n8c256h14w14k256r3s3p1g4", "bwd_data_wgmma;bwd_weight_wgmma",
                "bwd_data_wgmma:", "merge=1");
    expect_plan("n8c64h14w14k128r3s3p1g8", "bwd_data_wgmma;bwd_weight_wgmma",
                "merge=4", "merge=4");
    clconv_steps steps;
    cr_assert_eq(choose("n8c128h14w14k128r3s3p1g8", "sm_90", CLCONV_OP_BACKWARD,
                        SIZE_MAX, "bwd_weight_wgmma:merge=8", &steps),
                 CLCONV_UNSUPPORTED);
}

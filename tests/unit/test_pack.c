/*
 * Packed copies: their layout, who is granted them, and where they lie.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "operand.h"
#include "pack.h"
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

/* ---- Layout ------------------------------------------------------------ */

static void expect_strides(const char *text, clconv_tensor tensor,
                           clconv_pack_strides want, int64_t elements)
{
    clconv_problem p = problem(text);
    clconv_pack_strides got = clconv_pack_get_strides(&p, tensor);
    const char *name = clconv_tensor_name(tensor);
    cr_assert_eq(got.image, want.image, "%s, %s", text, name);
    cr_assert_eq(got.row, want.row, "%s, %s", text, name);
    cr_assert_eq(got.column, want.column, "%s, %s", text, name);
    cr_assert_eq(got.group, want.group, "%s, %s", text, name);
    cr_assert_eq(clconv_pack_elements(&p, tensor), elements, "%s, %s", text,
                 name);
}

/* Two groups of 5 channels in and 9 out. */
Test(pack, pads_the_channels_of_each_group)
{
    const char *text = "n3c10h6w7k18r2s3g2";
    expect_strides(text, CLCONV_DY,
                   (clconv_pack_strides){
                       .image = 800, .row = 160, .column = 32, .group = 16},
                   2400);
    expect_strides(text, CLCONV_X,
                   (clconv_pack_strides){
                       .image = 672, .row = 112, .column = 16, .group = 8},
                   2016);
    expect_strides(
        text, CLCONV_W,
        (clconv_pack_strides){.image = 48, .row = 24, .column = 8, .group = 432},
        864);
}

static void expect_plain(const char *text, bool dy, bool x, bool w)
{
    clconv_problem p = problem(text);
    cr_assert_eq(clconv_pack_is_plain(&p, CLCONV_DY), dy, "%s: dy", text);
    cr_assert_eq(clconv_pack_is_plain(&p, CLCONV_X), x, "%s: x", text);
    cr_assert_eq(clconv_pack_is_plain(&p, CLCONV_W), w, "%s: w", text);
}

Test(pack, is_plain_where_channels_are_last_and_whole_eights)
{
    expect_plain("n2c16h5w5k24r3s3_nhwc", true, true, true);
    expect_plain("n2c16h5w5k12r3s3_nhwc", false, true, true);
    expect_plain("n2c16h5w5k24r3s3g4_nhwc", false, false, false);
    expect_plain("n2c32h5w5k24r3s3g2_nhwc", false, true, true);
    expect_plain("n2c16h5w5k24r3s3", false, false, false);
}

Test(pack, is_plain_where_an_image_is_one_pixel)
{
    expect_plain("n2c16h5w5k24r1s1", false, false, true);
    expect_plain("n2c16h5w5k24r5s5", true, false, false);
    expect_plain("n2c16h1w1k20r1s1", false, true, true);
}

/* A plain layout has the same strides as the packed one. */
Test(pack, plain_and_packed_agree_where_is_plain_says_so)
{
    clconv_problem p = problem("n2c32h6w5k48r3s2g2_nhwc");
    for (clconv_tensor t = CLCONV_DY; t <= CLCONV_W; ++t) {
        clconv_strides plain = clconv_problem_strides(&p, t);
        clconv_pack_strides packed = clconv_pack_get_strides(&p, t);
        cr_assert(clconv_pack_is_plain(&p, t));
        cr_assert_eq(plain.image, packed.image);
        cr_assert_eq(plain.row, packed.row);
        cr_assert_eq(plain.column, packed.column);
        cr_assert_eq(clconv_pack_elements(&p, t),
                     clconv_problem_elements(&p, t));
    }
}

/* ---- Who is granted one ------------------------------------------------ */

/* A bwd_weight that wants a packed dY and a plain X, and counts both. */
static bool yes(const clconv_problem *p, const clconv_device *d)
{
    (void)p;
    (void)d;
    return true;
}

static bool legal(const clconv_task *t)
{
    (void)t;
    return true;
}

static unsigned wanted(const clconv_task *t)
{
    (void)t;
    return CLCONV_PACKED(CLCONV_DY) | CLCONV_BIT(CLCONV_X);
}

static unsigned counted(const clconv_task *t)
{
    (void)t;
    return CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X);
}

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 1000;
}

static const clconv_kernel fake = {
    .name = "fake",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .covers = yes,
    .legal = legal,
    .wants_copies = wanted,
    .counts = counted,
    .scratch = scratch,
};

static clconv_step step_for(const char *text)
{
    clconv_problem p = problem(text);
    clconv_device d;
    clconv_step step;
    double cost;
    const int values[1] = {0};
    cr_assert(clconv_device_preset("sm_90", &d));
    cr_assert(clconv_planner_step(&p, &d, &fake, values, &step, &cost), "%s",
              text);
    return step;
}

Test(pack, is_granted_under_mixed_math_for_tensors_of_either_type)
{
    unsigned packed = CLCONV_PACKED(CLCONV_DY), x = CLCONV_BIT(CLCONV_X);
    cr_assert_eq(step_for("n2c16h5w5k24r3s3").copies, packed | x);
    cr_assert_eq(step_for("n2c16h5w5k24r3s3_dy16").copies, packed | x);
    cr_assert_eq(step_for("n2c16h5w5k24r3s3_x16_dy16").copies, packed);
    cr_assert_eq(step_for("n2c16h5w5k24r3s3_fp32").copies, 0);
}

Test(pack, is_counted_by_the_cast)
{
    cr_assert_eq(step_for("n2c16h5w5k24r3s3").counts, 0);
    cr_assert_eq(step_for("n2c16h5w5k24r3s3_x16").counts, CLCONV_BIT(CLCONV_X));
}

Test(pack, is_read_as_half_and_not_fused)
{
    const char *text = "n2c16h5w5k24r3s3";
    clconv_problem p = problem(text);
    clconv_task t = {.problem = &p, .copies = step_for(text).copies};
    cr_assert(clconv_operand_is_half(&t, CLCONV_DY));
    cr_assert_not(clconv_operand_is_fused(&t, CLCONV_DY));
    cr_assert_not(clconv_operand_is_half(&t, CLCONV_W));
    cr_assert(clconv_operand_is_fused(&t, CLCONV_W));
}

/* ---- Where it lies ----------------------------------------------------- */

/* One step wants dY plain, another packed: each has its region. */
Test(pack, both_forms_have_regions_of_their_own)
{
    clconv_device d;
    cr_assert(clconv_device_preset("sm_90", &d));
    clconv_steps steps = {.problem = problem("n2c16h5w5k5r3s3"), .count = 2};
    steps.step[0] =
        (clconv_step){.kernel = &fake, .copies = CLCONV_BIT(CLCONV_DY)};
    steps.step[1] = (clconv_step){.kernel = &fake,
                                  .copies = CLCONV_PACKED(CLCONV_DY) |
                                            CLCONV_PACKED(CLCONV_X)};
    clconv_steps_lay_out(&steps, &d);
    cr_assert_eq(steps.copy_offset[CLCONV_DY], 0);     /* 2*5*3*3*2 bytes */
    cr_assert_eq(steps.packed_offset[CLCONV_DY], 256); /* 2*3*3*8*2 */
    cr_assert_eq(steps.packed_offset[CLCONV_X], 768);  /* 2*5*5*16*2 */
    cr_assert_eq(steps.step[1].scratch_offset, 768 + 1792);
    cr_assert_eq(steps.workspace, 768 + 1792 + 1024);
}

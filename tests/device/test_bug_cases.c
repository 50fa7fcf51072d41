/*
 * Small inputs that broke other convolution libraries, each with neighbours:
 * the default plan and the generic one, in both layouts, on small integers.
 *
 * A case has a number, l01 to l36, here and in test_bug_cases_values.c,
 * _calls.c and _large.c. These stand elsewhere:
 *
 *  16 an unwanted output       runtime: each_set_of_outputs_is_right_...
 *  17 no images                runtime: a_batch_of_0_..., a_problem_of_0_...
 *  19 workspace over the       runtime: a_plan_keeps_within_the_largest_...
 *     largest allocation, cap  planner: a_workspace_limit_chooses_a_leaner_...
 *  20 beta 0 does not read     runtime: beta_scales_what_was_there_and_...
 *  22 dY of about 1e-8         tiny: all; family_tiny() of every kernel
 *  23 overflow, NaN, infinity  cast: a_separate_cast_..., counts_are_exact
 *  24 one NaN                  family_nan() of every kernel
 *  26 ties                     cast: a_fused_cast_rounds_to_nearest_even_...
 *  28 ten runs                 runtime: the_same_call_gives_the_same_bits
 *                              generic: ten_runs_give_the_same_bits
 *  30 what a device refuses    launch: a_work_group_that_the_device_refuses_...
 *  32 one cache directory      runtime_cache: processes_that_start_cold_...,
 *                              a_damaged_entry_..., a_directory_that_cannot_...
 *                              cache: every_flipped_bit_..., every_truncation_,
 *                              a_directory_of_another_user_is_not_used
 *  33 drivers, collisions      runtime_cache: a_key_holds_all_..., a_binary_...
 *                              cache: an_entry_of_another_key_...
 *  34 contexts that go, fork,  runtime: a_context_can_come_and_go_many_times,
 *     threads that compile     a_forked_child_is_told_to_make_its_own_context
 *                              runtime_cache: threads_that_want_one_program_...
 *  36 devices that lack things runtime_unit: where_the_unit_does_not_build_...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "backward.h"
#include "family.h"
#include "naive.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const plans[] = {NULL,
                                    "bwd_data_generic;bwd_weight_generic"};
static const char *const layouts[] = {"", "_nhwc"};

static void exact(const char *sizes)
{
    char problem[96];
    for (size_t i = 0; i < COUNT(plans); ++i)
        for (size_t j = 0; j < COUNT(layouts); ++j) {
            snprintf(problem, sizeof problem, "%s%s", sizes, layouts[j]);
            family_exact(&(family){.plan = plans[i]}, problem);
        }
}

static void all_exact(const char *const *sizes, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        exact(sizes[i]);
}

#define ALL_EXACT(...)                                                         \
    do {                                                                       \
        static const char *const sizes[] = {__VA_ARGS__};                      \
        all_exact(sizes, COUNT(sizes));                                        \
    } while (0)

/* ---- All ones: dW counts the taps in bounds ----------------------------- */

enum { MOST_ONES = 4096 };

/* Each filter of one channel must be filter[], rows of it one after another. */
static void expect_ones(const char *sizes, const float *filter, int64_t count)
{
    static float ones[MOST_ONES];
    for (int i = 0; i < MOST_ONES; ++i)
        ones[i] = 1;
    for (size_t i = 0; i < COUNT(plans); ++i) {
        backward_case c = {.problem = sizes,
                           .plan = plans[i],
                           .ops = CLCONV_OP_DW,
                           .x = ones,
                           .dy = ones};
        backward_result r;
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        cr_assert_leq(naive_x_elements(&r.desc, r.desc.n), MOST_ONES);
        for (int64_t j = 0; j < naive_w_elements(&r.desc); ++j)
            cr_assert_eq(r.dw[j], filter[j % count],
                         "%s, plan %zu: dw[%lld] is %g, not %g", sizes, i,
                         (long long)j, (double)r.dw[j],
                         (double)filter[j % count]);
        backward_free(&r);
    }
}

/* C around a tile of 16, of 8 and of 32. */
Test(bug_cases, l01_depthwise_all_ones)
{
    static const float taps[9] = {4, 6, 6, 6, 9, 9, 6, 9, 9};
    static const int channels[] = {24, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33};
    for (size_t i = 0; i < COUNT(channels); ++i)
        for (size_t j = 0; j < COUNT(layouts); ++j) {
            char problem[96];
            int c = channels[i];
            snprintf(problem, sizeof problem, "n1c%dh6w6k%dr3s3u2p1g%d%s", c, c,
                     c, layouts[j]);
            expect_ones(problem, taps, 9);
        }
}

/* x counts from 0 through all channels, each dY is 1, 2, 3, 4:
 * dW[r][s] = sum over p, q of dY[p][q] * x[2p + r - 1][2q + s - 1]. */
Test(bug_cases, l02_depthwise_counting_data)
{
    static const char problem[] = "n1c4h4w4k4r3s3u2p1g4";
    static const float first[9] = {20, 36, 43, 38, 68, 78, 62, 108, 118};
    static const float next[9] = {64, 112, 112, 96, 160, 160, 96, 160, 160};
    float x[64], dy[16];
    for (int i = 0; i < 64; ++i)
        x[i] = (float)i;
    for (int i = 0; i < 16; ++i)
        dy[i] = (float)(i % 4 + 1);
    for (size_t i = 0; i < COUNT(plans); ++i) {
        backward_case c = {.problem = problem,
                           .plan = plans[i],
                           .ops = CLCONV_OP_DW,
                           .x = x,
                           .dy = dy};
        backward_result r;
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        for (int j = 0; j < 36; ++j)
            cr_assert_eq(r.dw[j], first[j % 9] + (float)(j / 9) * next[j % 9],
                         "%s, plan %zu: dw[%d] is %g", problem, i, j,
                         (double)r.dw[j]);
        backward_free(&r);
    }
    ALL_EXACT("n1c4h4w4k4r3s3u2p1g4", "n1c4h5w5k4r3s3u2p1g4",
              "n3c4h4w4k8r3s3u2p1g4", "n1c4h4w4k4r3s3u2p0g4",
              "n1c4h4w4k4r3s3u2p1x0x1x0g4");
}

/* ---- Groups, strides, dilation ------------------------------------------ */

Test(bug_cases, l03_groups_and_strides_together)
{
    ALL_EXACT("n2c6h7w7k6r3s3u2g6", "n2c6h7w7k6r3s3u2p1g6",
              "n2c6h7w7k12r3s3u2p1g6", "n2c8h7w7k8r1s1u2g2",
              "n2c8h8w8k12r1s1u2g4", "n1c6h9w8k6r3s3u3x2p1g3",
              "n1c32h7w7k32r1s1u2g2");
}

Test(bug_cases, l04_dx_of_strides_larger_than_the_dilation)
{
    ALL_EXACT("n1c3h9w9k4r3s3u2p1", "n1c3h10w11k4r3s3u3p1",
              "n1c3h13w13k4r3s3u3p2d2", "n1c3h13w13k4r3s3u4p2d2",
              "n1c3h13w13k4r3s3u2p3d3", "n1c3h12w14k4r4s2u4x3p1d3x2",
              "n1c3h17w19k4r3s3u6x4p2d4x2");
}

Test(bug_cases, l05_filters_smaller_than_the_stride)
{
    ALL_EXACT("n1c256h4w4k16r1s1u2", "n1c256h5w5k16r1s1u2",
              "n16c64h2w2k32r1s1u2", "n2c5h7w7k6r2s2u3", "n2c5h9w9k6r1s1u5p1",
              "n2c5h7w8k6r1s2u2x3");
}

Test(bug_cases, l06_strides_of_3_and_5_with_long_filters)
{
    ALL_EXACT("n1c3h14w14k4r7s1u3", "n1c3h14w14k4r4s1u3", "n1c3h14w14k4r1s7u3",
              "n1c3h14w14k4r7s7u3", "n1c3h14w14k4r7s7u3p3",
              "n1c3h32w32k2r7s1u5", "n1c3h32w32k2r8s1u5", "n1c3h32w32k2r1s8u5");
}

Test(bug_cases, l07_trailing_rows_without_a_contribution)
{
    ALL_EXACT("n1c9h32w32k3r5s5u3p1", "n1c4h16w16k3r7s7u3p2",
              "n1c64h51w51k4r3s3u2", "n1c64h51w51k4r3s3u2p1",
              "n1c9h33w32k3r5s5u3p1", "n1c9h32w34k3r5s5u3p1",
              "n2c4h50w52k3r3s3u2");
}

/* ---- Padding ------------------------------------------------------------ */

Test(bug_cases, l08_a_tap_wholly_in_padding)
{
    static const float last[4] = {0, 0, 0, 1};
    expect_ones("n1c1h2w2k1r2s2u2p1d2", last, 4);
    expect_ones("n1c1h2w2k1r2s2u2p1d2_nhwc", last, 4);
    expect_ones("n1c3h2w2k2r2s2u2p1d2", last, 4);
    ALL_EXACT("n1c1h2w2k1r2s2u2p1d2", "n1c3h3w2k2r2s2u2p1d2",
              "n2c3h3w3k2r3s3p3d3", "n1c2h1w1k2r3s3p1", "n1c2h1w3k2r5s5p2");
}

Test(bug_cases, l09_a_filter_larger_than_the_input)
{
    static const float taps[25] = {1, 2, 2, 2, 1, 2, 4, 4, 4, 2, 2, 4, 4,
                                   4, 2, 2, 4, 4, 4, 2, 1, 2, 2, 2, 1};
    expect_ones("n1c1h4w4k1r5s5p1", taps, 25);
    expect_ones("n1c1h4w4k1r5s5p1_nhwc", taps, 25);
    ALL_EXACT("n1c1h4w4k1r5s5p1", "n2c3h4w5k4r5s6p1", "n2c3h3w3k4r5s5p1",
              "n2c3h4w4k4r6s6p1x2x2x1", "n2c3h2w2k4r3s3p1u2");
}

/* ---- Shapes ------------------------------------------------------------- */

Test(bug_cases, l10_odd_shapes_with_strides)
{
    ALL_EXACT("n64c3h32w32k8r1s1u2", "n1c32h83w11k32r5s1u3x1p2x0",
              "n1c64h3w8k17r1s3u2p0x1", "n1c64h8w8k17r3s3u2p1",
              "n2c8h9w9k8r3s3u2p1x0x0x0g8", "n2c8h9w9k8r3s3u2p0x1x0x0g8",
              "n2c8h9w9k8r3s3u2p0x0x1x0g8", "n2c8h10w9k8r3s3u2p2x0x1x0g8");
}

Test(bug_cases, l11_pointwise_channels_off_the_tile)
{
    ALL_EXACT("n1c104h7w7k40r1s1", "n1c440h7w7k24r1s1", "n1c208h7w7k40r1s1",
              "n1c90h7w7k45r1s1", "n1c45h7w7k90r1s1", "n2c40h5w6k104r1s1",
              "n1c2h7w7k2r1s1", "n1c14h8w8k18r1s1", "n1c17h8w8k15r1s1");
}

Test(bug_cases, l12_a_long_reduction)
{
    ALL_EXACT("n1c2h512w512k2r5s5p2", "n1c1h700w701k1r5s5");
}

Test(bug_cases, l13_an_image_wider_than_copy_engines)
{
    ALL_EXACT("n1c3h360w640k3r3s3", "n1c3h2w641k3r1s3", "n1c1h641w3k2r3s3");
}

Test(bug_cases, l14_sizes_of_one)
{
    ALL_EXACT("n1c1h2w2k1r1s1", "n1c1h4w4k1r3s3", "n8c16h1w1k16r3s3p1",
              "n8c16h1w1k8r1s1", "n1c1h1w1k1r1s1", "n1c1h1w16k1r1s3p0x1",
              "n16c1h1w1k16r1s1", "n1c16h16w1k16r3s1p1x0", "n1c16h3w3k16r3s3");
}

/* ---- Memory ------------------------------------------------------------- */

/* Offsets are odd multiples of what the problem says. */
Test(bug_cases, l15_any_alignment)
{
    ALL_EXACT("n2c16h8w16k16r3s3p1_align4", "n3c5h7w9k6r3s3u2p1_align4",
              "n2c16h8w16k16r3s3p1_x16_w16_dy16_dw16_db16_dx16_align2",
              "n2c16h8w16k16r3s3p1_x16_w16_dy16_dw16_db16_dx16_align4",
              "n3c5h7w9k6r3s3p1_x16_dx16_align4", "n2c16h8w16k16r3s3p1_align8",
              "n2c16h8w16k16r3s3p1_align64", "n2c16h8w16k16r3s3p1_align4096");
}

Test(bug_cases, l16_any_outputs)
{
    for (unsigned ops = 1; ops < 8; ++ops)
        for (size_t i = 0; i < COUNT(plans); ++i) {
            const family f = {.plan = ops == CLCONV_OP_DB ? NULL : plans[i],
                              .ops = ops};
            family_exact(&f, "n2c6h7w9k5r3s3p1");
            family_exact(&f, "n2c6h7w9k9r3s3u2p1g3_nhwc");
        }
}

/* 2^24 of them, and offsets beyond 2^31: in test_bug_cases_large.c. */
Test(bug_cases, l18_a_reduction_over_many_images)
{
    ALL_EXACT("n64c1h64w64k1r1s1", "n300c2h8w8k3r3s3p1");
}

/* ---- NaN ---------------------------------------------------------------- */

Test(bug_cases, l24_one_nan)
{
    static const char *const shapes[] = {"n2c3h6w18k4r3s3p1x0x2x2",
                                         "n2c4h7w7k4r3s3u2p1g4",
                                         "n1c3h7w8k4r3s3u2x3p2d2x1",
                                         "n1c4h5w5k3r1s1u2",
                                         "n2c3h4w5k4r1s1",
                                         "n1c2h3w3k3r5s5p2",
                                         "n2c8h5w6k8r3s3p1_x16_dy16",
                                         "n1c4h6w7k4r3s3p1g2_fp32"};
    for (size_t i = 0; i < COUNT(shapes); ++i)
        for (size_t j = 0; j < COUNT(layouts); ++j) {
            char problem[96];
            snprintf(problem, sizeof problem, "%s%s", shapes[i], layouts[j]);
            family_nan(&(family){0}, problem);
        }
}

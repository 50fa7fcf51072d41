/*
 * The depthwise kernels, those that hold rows in private memory (CPUs), those
 * that follow strips down the rows and those of an element a work-item (any
 * device): exact on small integers at the edges of vectors, tiles, rows and
 * blocks, whatever their values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "amount.h"
#include "expect_counts.h"
#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char rows[] = "bwd_data_depthwise;bwd_weight_depthwise";
static const char baked_rows[] =
    "bwd_data_depthwise:shape=baked;bwd_weight_depthwise:shape=baked";
static const char elements[] =
    "bwd_data_depthwise_gpu;bwd_weight_depthwise_gpu";
static const char strips[] =
    "bwd_data_strip:shape=arguments;bwd_weight_strip:shape=arguments";
/* Four channels of a work-item: NHWC alone. */
static const char fours[] = "bwd_data_strip:vec=4,columns=2,shape=arguments;"
                            "bwd_weight_strip:vec=4,columns=2,shape=arguments";
/* For filters that fill more registers. */
static const char long_reach[] =
    "bwd_data_strip:vec=4,columns=1,shape=arguments;"
    "bwd_weight_strip:vec=2,columns=2,shape=arguments";
static const char baked_strips[] =
    "bwd_data_strip:shape=baked;bwd_weight_strip:shape=baked";

typedef void check(const family *f, const char *problem);

enum { NCHW, NHWC, LAYOUTS };

static void pass_in(int layout, check *passes, const char *plan,
                    const char *problem)
{
    const family f = {.plan = plan, .ops = CLCONV_OP_DW | CLCONV_OP_DX};
    char text[128];
    snprintf(text, sizeof text, "%s%s", problem, layout == NHWC ? "_nhwc" : "");
    passes(&f, text);
}

static void pass(check *passes, const char *plan, const char *problem)
{
    for (int layout = 0; layout < LAYOUTS; ++layout)
        pass_in(layout, passes, plan, problem);
}

/* Every step-th of them, in the layouts by turns, in both in the slow set: each
 * kind of filter and layout is a program of its own. */
static void pass_some(check *passes, const char *plan,
                      const char *const *problems, size_t count, size_t step)
{
    int layouts = amount(1, LAYOUTS);
    for (size_t i = 0; i * step < count; ++i)
        for (int j = 0; j < layouts; ++j)
            pass_in(((int)i + j) % LAYOUTS, passes, plan, problems[i * step]);
}

static void pass_all(check *passes, const char *plan,
                     const char *const *problems, size_t count)
{
    pass_some(passes, plan, problems, count, 1);
}

/* All in the slow set. */
static void pass_half(check *passes, const char *plan,
                      const char *const *problems, size_t count)
{
    pass_some(passes, plan, problems, count, (size_t)amount(2, 1));
}

/* ---- Exact -------------------------------------------------------------- */

static const char *const shapes[] = {
    "n2c16h8w16k16r3s3p1g16",             /* whole vectors */
    "n1c2h1w1k2r1s1g2",                   /* one of everything, twice */
    "n3c17h7w7k17r3s3p1g17",              /* rows shorter than a vector */
    "n2c5h6w67k5r3s3p1g5_fp32",           /* tiles, vectors, and the rest */
    "n1c40h5w9k40r3s3p1g40",              /* a pixel and a half */
    "n2c3h9w15k3r5s5p2g3",                /* 25 taps */
    "n1c3h12w12k3r7s7p3g3",               /* 49 taps */
    "n1c6h10w9k6r11s11p5g6",              /* 121, and beyond the input */
    "n2c4h6w18k4r1s1p1g4",                /* padding that no tap needs */
    "n2c4h10w20k4r3s2p2x3x0x1g4",         /* four paddings */
    "n2c4h12w13k4r3s3p0g4_fp32",          /* none */
    "n2c3h5w21k3r3s3p3x5d3x5g3",          /* dilation */
    "n2c3h3w2k3r2s3p4x0x17x9d1x9g3",      /* dilation beyond the row */
    "n2c2h2w17k2r3s1p5x0g2",              /* more padding than rows */
    "n2c18h9w33k18r3s3u2p1g18",           /* stride 2 */
    "n2c5h11w14k5r4s2u1x2p1x0g5",         /* along w */
    "n2c5h11w14k5r3s3u2x1p1x0x1x2g5",     /* along h */
    "n1c4h14w51k4r3s3u3p2g4",             /* 3 */
    "n1c3h32w32k3r7s1u5p1x0g3",           /* wider than the filter */
    "n1c3h9w40k3r1s1u2g3",                /* pixels that no tap meets */
    "n2c4h13w14k4r3s3u2p2d2g4",           /* stride and dilation: factor 2 */
    "n1c4h13w53k4r3s5u4x6p2x4x1x3d2x9g4", /* 2 and 3 */
    "n1c2h2w2k2r2s2u2p1d2g2",             /* a tap wholly in padding */
    "n1c3h20w40k3r2s2u16g3",              /* the widest stride */
};

/* Several channels of dY a group. */
static const char *const planes[] = {
    "n2c5h6w19k10r3s3p1g5",
    "n1c18h5w7k54r3s3u2p1g18",
    "n2c3h4w5k21r2s3p1g3_fp32",
};

/* Rows that private memory does not hold as a whole. */
static const char *const wide[] = {
    "n1c2h3w1100k32r3s3p1g2_fp32",
    "n1c2h3w5000k2r3s3u3p1g2",
    "n1c20h4w140k20r3s3p1g20",
    "n1c20h4w290k20r3s2u2p1x0g20_fp32",
};

/* Those of the above whose filters and strides strips hold, and their edges. */
static const char *const narrow[] = {
    "n2c16h8w16k16r3s3p1g16",         /* whole vectors and strips */
    "n1c2h1w1k2r1s1g2",               /* one of everything, twice */
    "n3c17h7w7k17r3s3p1g17",          /* strips beyond a row */
    "n2c6h35w9k6r3s3p1g6_fp32",       /* bands of rows, pairs of channels */
    "n1c40h5w9k40r3s3p1g40",          /* lanes without channels */
    "n2c3h9w15k3r5s5p2g3",            /* 25 taps */
    "n1c4h12w12k4r7s7p3g4",           /* 49 taps */
    "n2c4h6w18k4r1s1p1g4",            /* padding that no tap needs */
    "n2c4h10w20k4r3s2p2x3x0x1g4",     /* four paddings */
    "n2c4h12w13k4r3s3p0g4_fp32",      /* none */
    "n2c3h5w21k3r3s3p3x5d3x5g3",      /* dilation */
    "n2c2h2w17k2r3s1p5x0g2",          /* more padding than rows */
    "n2c20h9w33k20r3s3u2p1g20",       /* stride 2 */
    "n2c8h10w12k8r3s3u2p2x1x2x1g8",   /* from a whole stride of padding */
    "n2c5h11w14k5r4s2u1x2p1x0g5",     /* along w */
    "n2c5h11w14k5r3s3u2x1p1x0x1x2g5", /* along h */
    "n1c4h14w51k4r3s3u3p2g4",         /* 3 */
    "n1c3h32w32k3r7s1u5p1x0g3",       /* wider than the filter */
    "n1c3h9w40k3r1s1u2g3",            /* pixels that no tap meets */
    "n2c4h13w14k4r3s3u2p2d2g4",       /* stride and dilation: factor 2 */
    "n1c2h2w2k2r2s2u2p1d2g2",         /* a tap wholly in padding */
};

Test(depthwise, strips_are_exact_for_shapes_at_the_edges)
{
    pass_half(family_exact, strips, narrow, COUNT(narrow));
}

Test(depthwise, rows_are_exact_for_shapes_at_the_edges)
{
    family_skip_unless_cpu();
    pass_all(family_exact, rows, shapes, COUNT(shapes));
}

Test(depthwise, elements_are_exact_for_shapes_at_the_edges)
{
    pass_half(family_exact, elements, shapes, COUNT(shapes));
}

Test(depthwise, several_channels_of_dy_a_group_are_exact)
{
    pass_all(family_exact, elements, planes, COUNT(planes));
    family_skip_unless_cpu();
    pass_all(family_exact, rows, planes, COUNT(planes));
}

Test(depthwise, rows_in_blocks_of_columns_are_exact)
{
    family_skip_unless_cpu();
    pass_all(family_exact, rows, wide, COUNT(wide));
}

Test(depthwise, a_stride_beyond_the_image_does_not_overflow)
{
    pass(family_exact, elements, "n1c4h5w6k4r2s2u2147483647g4");
}

static const char *const halves[] = {
    "n2c5h7w19k5r3s3p1g5_x16_w16_dy16_dw16_dx16",
    "n2c21h7w9k21r3s3u2p1g21_fp32_x16_dx16",
    "n2c5h7w9k10r3s3p1g5_dy16",
    "n2c5h7w9k5r3s3p1g5_fp32_w16_dy16_dw16",
};

Test(depthwise, fp16_tensors_are_exact)
{
    pass_all(family_exact, elements, halves, COUNT(halves));
    family_skip_unless_cpu();
    pass_all(family_exact, rows, halves, COUNT(halves));
}

/* By vectors of each width, whatever the type; align2 and align4 forbid them. */
static const char *const words[] = {
    "n2c8h7w12k8r3s3p1g8_x16_w16_dy16_dw16_dx16",
    "n2c6h7w12k6r3s3p1g6_x16_w16_dy16_dw16_dx16",
    "n2c8h7w12k8r3s3p1g8_x16_w16_dy16_dw16_db16_dx16_align2",
    "n2c8h7w12k8r3s3u2p1g8_fp32_x16_dx16_align4",
    "n2c8h7w12k8r3s3p1g8_dy16_dx16_inf",
};

Test(depthwise, strips_of_fp16_tensors_are_exact)
{
    for (size_t i = 0; i < COUNT(words); ++i)
        pass(family_exact, strips, words[i]);
    pass_in(NHWC, family_exact, fours, words[0]);
    pass_in(NHWC, family_exact, fours, words[4]);
}

/* Each is a program of its own: a few of all the above. */
static const char *const baked[] = {
    "n3c17h7w7k17r3s3p1g17",      "n2c5h6w67k10r3s3p1g5_fp32_x16",
    "n2c5h11w14k5r4s2u1x2p1x0g5", "n1c4h13w53k4r3s5u4x6p2x4x1x3d2x9g4",
    "n1c2h3w5000k2r3s3u3p1g2",
};

static const char *const baked_narrow[] = {
    "n3c17h7w7k17r3s3p1g17",
    "n2c20h9w33k20r3s3u2p1g20_fp32_x16",
    "n2c5h11w14k5r4s2u1x2p1x0g5",
    "n2c4h13w14k4r3s3u2p2d2g4",
};

Test(depthwise, rows_of_baked_sizes_are_exact)
{
    family_skip_unless_cpu();
    pass_all(family_exact, baked_rows, baked, COUNT(baked));
}

Test(depthwise, strips_of_baked_sizes_are_exact)
{
    pass_all(family_exact, baked_strips, baked_narrow, COUNT(baked_narrow));
}

Test(depthwise, rows_of_baked_sizes_count_what_they_read)
{
    family_skip_unless_cpu();
    pass_all(expect_counts, baked_rows, baked, 2);
}

/* ---- Values ------------------------------------------------------------- */

Test(depthwise, values_of_rows_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_data_depthwise:tile=1,split=16,cast=separate;"
        "bwd_weight_depthwise:tile=1,split=64,cast=separate",
        "bwd_data_depthwise:tile=2,split=2;bwd_weight_depthwise:tile=2,split=4",
        "bwd_data_depthwise:tile=8,split=4;bwd_weight_depthwise:tile=8,split=2",
        "bwd_data_depthwise:tile=1,split=16,shape=baked;"
        "bwd_weight_depthwise:tile=2,split=8,shape=baked",
        "bwd_data_depthwise:split=1;bwd_weight_depthwise:split=1",
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(plans); ++i)
        pass(family_exact, plans[i], "n3c37h13w31k37r3s3u1x2p1g37");
}

Test(depthwise, vectors_of_a_pixel_do_not_change_what_is_computed)
{
    static const int vectors[] = {1, 2, 4, 16};
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(vectors); ++i) {
        char plan[128];
        snprintf(plan, sizeof plan,
                 "bwd_data_depthwise:vectors=%d;"
                 "bwd_weight_depthwise:vectors=%d",
                 vectors[i], vectors[i]);
        const family f = {.plan = plan, .ops = CLCONV_OP_DW | CLCONV_OP_DX};
        family_exact(&f, "n2c75h5w9k75r3s3p1g75_nhwc");
        family_exact(&f, "n2c37h5w9k74r3s3u2p1g37_nhwc_fp32");
    }
}

Test(depthwise, values_of_elements_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_data_depthwise_gpu:vec=1,lws=64,cast=fused;"
        "bwd_weight_depthwise_gpu:taps=3,split=8,lws=64,cast=fused",
        "bwd_data_depthwise_gpu:vec=1,lws=256,cast=separate;"
        "bwd_weight_depthwise_gpu:taps=25,split=64,lws=256,cast=separate",
        "bwd_data_depthwise_gpu;bwd_weight_depthwise_gpu:split=1",
        "bwd_data_depthwise_gpu;bwd_weight_depthwise_gpu:split=256,lws=256",
    };
    for (size_t i = 0; i < COUNT(plans); ++i)
        pass(family_exact, plans[i], "n3c36h13w31k36r3s4u1x2p1g36");
}

Test(depthwise, values_of_strips_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_data_strip:vec=1,columns=8,rows=8,lws=64;"
        "bwd_weight_strip:vec=1,columns=8,fill=1,lws=64",
        "bwd_data_strip:vec=1,columns=1,rows=64,lws=256,cast=separate;"
        "bwd_weight_strip:vec=1,columns=1,fill=8,lws=128,cast=separate",
    };
    static const char *const wide_plans[] = {
        "bwd_data_strip:vec=4,columns=2,rows=8;"
        "bwd_weight_strip:vec=4,columns=2",
        "bwd_data_strip:vec=2,columns=4,rows=32;"
        "bwd_weight_strip:vec=2,columns=4,fill=4",
    };
    for (size_t i = 0; i < COUNT(plans); ++i)
        pass(family_exact, plans[i], "n3c36h13w31k36r3s3u1x2p1g36");
    for (size_t i = 0; i < COUNT(wide_plans); ++i)
        pass_in(NHWC, family_exact, wide_plans[i],
                "n3c36h13w31k36r3s3u1x2p1g36");
}

/* ---- Counts ------------------------------------------------------------- */

/* Strips of which a share is counted, whatever taps reach. */
static const char *const counted[] = {
    "n2c18h9w16k18r3s3p1g18",
    "n2c3h7w7k3r3s3p1g3_fp32",
    "n3c17h5w17k34r3s3u2p1g17_x16",
    "n2c5h6w33k5r3s3p1g5_fp32_x16",
    "n1c3h13w40k3r1s1u3g3",          /* rows and columns that no tap reaches */
    "n2c4h10w20k4r3s2p2x3x0x1g4",    /* rows at the end that none reaches */
    "n2c3h3w2k3r2s3p4x0x17x9d1x9g3", /* only padding in some rows of dY */
    "n1c2h2w17k2r2s3u5x4p5x1x0x2d1x3g2",
};

Test(depthwise, rows_count_what_they_read)
{
    static const char *const plans[] = {
        rows,
        "bwd_data_depthwise;bwd_weight_depthwise:split=8,cast=separate",
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(plans); ++i)
        pass_all(expect_counts, plans[i], counted, COUNT(counted));
}

Test(depthwise, blocks_of_columns_count_what_they_read)
{
    family_skip_unless_cpu();
    pass_all(expect_counts, rows, wide, COUNT(wide));
}

/* ---- The rest of the contract ------------------------------------------- */

static void expect_contract(const char *plan)
{
    static const char problem[] = "n4c20h6w21k20r3s3u2x1p1g20";
    pass(family_batches, plan, problem);
    pass(family_beta, plan, problem);
    pass(family_workspace, plan, problem);
    pass(family_tiny, plan, problem);
}

Test(depthwise, rows_keep_the_contract_of_a_call)
{
    family_skip_unless_cpu();
    expect_contract(rows);
    expect_contract(baked_rows);
}

Test(depthwise, strips_keep_the_contract_of_a_call)
{
    expect_contract(strips);
}

Test(depthwise, elements_keep_the_contract_of_a_call)
{
    expect_contract(elements);
}

static const char *const nan_problems[] = {
    "n2c18h6w18k18r3s3p1x0x2x2g18",
    "n2c3h7w18k3r3s3u2p1g3",
    "n2c3h5w6k6r2s3u1x3p1g3_fp32",
    "n2c4h9w8k4r3s3u2p2d2g4",
};

Test(depthwise, a_nan_reaches_what_its_taps_reach_by_rows)
{
    family_skip_unless_cpu();
    pass_all(family_nan, rows, nan_problems, COUNT(nan_problems));
}

/* A factor beyond the edge of dY may not meet the NaN: strips and bands that
 * end with it, and that do not. */
static const char *const nan_at_edges[] = {
    "n2c18h6w18k18r3s3p1x0x2x2g18",    "n2c4h7w8k4r3s3p1g4",
    "n2c3h7w18k3r3s3u2p1g3",           "n2c8h5w6k8r2s3u1x3p1g8_fp32",
    "n2c4h9w8k4r3s3u2p2d2g4_dy16_x16",
};

Test(depthwise, a_nan_reaches_what_its_taps_reach_by_strips)
{
    for (size_t i = 0; i < COUNT(nan_at_edges); ++i)
        pass(family_nan, strips, nan_at_edges[i]);
    pass_in(NHWC, family_nan, fours, nan_at_edges[1]);
    pass_in(NHWC, family_nan, long_reach, nan_at_edges[4]);
}

Test(depthwise, a_nan_reaches_what_its_taps_reach_by_elements)
{
    pass_all(family_nan, elements, nan_problems, COUNT(nan_problems));
}

/*
 * The kernels for groups of a few channels, on any device: exact on small
 * integers at the edges of quads, lanes, strips and runs, whatever their values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char grouped[] =
    "bwd_data_grouped:shape=arguments;bwd_weight_grouped:shape=arguments";
static const char baked[] =
    "bwd_data_grouped:shape=baked;bwd_weight_grouped:shape=baked";

typedef void check(const family *f, const char *problem);

static void pass_in(const char *layout, check *passes, const char *plan,
                    const char *problem)
{
    const family f = {.plan = plan, .ops = CLCONV_OP_DW | CLCONV_OP_DX};
    char text[128];
    snprintf(text, sizeof text, "%s%s", problem, layout);
    passes(&f, text);
}

static void pass(check *passes, const char *plan, const char *problem)
{
    pass_in("", passes, plan, problem);
    pass_in("_nhwc", passes, plan, problem);
}

static const char *const shapes[] = {
    "n2c16h8w16k16r3s3p1g2",          /* groups of eight */
    "n1c8h1w1k8r1s1g2",               /* a pixel */
    "n3c12h7w7k24r3s3p1g3",           /* groups of four and eight */
    "n2c24h5w9k24r3s3p1g2_fp32",      /* of twelve: quads that lanes cut */
    "n1c64h6w10k8r3s3p1g2",           /* of 32 and of four */
    "n2c16h9w15k16r5s5p2g2",          /* 25 taps */
    "n2c8h10w20k8r3s2p2x3x0x1g2",     /* four paddings */
    "n2c8h5w21k16r3s3p3x5d3x5g2",     /* dilation */
    "n2c16h9w33k16r3s3u2p1g2",        /* stride 2 */
    "n2c16h10w12k16r3s3u2p2x1x2x1g2", /* a whole stride of padding */
    "n1c8h14w31k8r3s3u3p2g2",         /* 3 */
    "n1c8h9w20k8r3s1u2g2",            /* pixels that no tap meets */
    "n2c8h13w14k8r3s3u2p2d2g2",       /* stride and dilation: factor 2 */
    "n2c8h7w9k8r3s3p1g2_x16_w16_dy16_dw16_dx16",
};

Test(grouped, shapes_at_the_edges_are_exact)
{
    for (size_t i = 0; i < COUNT(shapes); ++i)
        pass(family_exact, grouped, shapes[i]);
}

Test(grouped, values_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_data_grouped:columns=8,turns=1,lws=64;"
        "bwd_weight_grouped:planes=4,columns=8,lws=64",
        "bwd_data_grouped:columns=1,turns=8,lws=256;"
        "bwd_weight_grouped:planes=8,columns=1,fill=16,lws=256",
        "bwd_data_grouped:shape=baked;bwd_weight_grouped:shape=baked,columns=2",
    };
    for (size_t i = 0; i < COUNT(plans); ++i)
        pass(family_exact, plans[i], "n3c32h13w21k16r3s3u1x2p1g2");
}

static void expect_contract(const char *plan, const char *problem)
{
    pass(family_batches, plan, problem);
    pass(family_beta, plan, problem);
    pass(family_workspace, plan, problem);
    pass(family_tiny, plan, problem);
}

Test(grouped, the_contract_of_a_call_is_kept)
{
    static const char problem[] = "n4c16h6w11k16r3s3u2x1p1g2";
    expect_contract(grouped, problem);
    expect_contract(baked, problem);
}

/* A factor beyond the edge of dY may not meet the NaN, nor another group. */
static const char *const nan_problems[] = {
    "n2c16h6w9k16r3s3p1x0x2x2g2",
    "n2c8h7w8k8r3s3u2p1g2",
    "n2c8h5w6k16r2s3u1x3p1g2_fp32",
    "n2c8h9w8k8r3s3u2p2d2g2_dy16_x16",
};

Test(grouped, a_nan_reaches_what_its_taps_reach)
{
    for (size_t i = 0; i < COUNT(nan_problems); ++i)
        pass(family_nan, grouped, nan_problems[i]);
}

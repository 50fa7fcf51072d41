/*
 * The kernels on local memory for GPUs without a matrix unit. They run on any
 * device whose work-groups take 64 work-items. Loop nest, staging, cast, what
 * local memory holds and how it is filled are independent choices: every
 * combination must be exact on small integers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Plans that leave only the shape open, so that few programs are built. */
#define PLAN(values, fill)                                                     \
    "bwd_data_local:" values ";bwd_weight_local:" values ",fill=" fill

#define SMALL "tile_m=64,tile_n=16,reg_m=4,reg_n=4,tile_k=8,"

static const char *const plans[] = {
    PLAN(SMALL "staging=vector,stage=float,cast=separate", "0"),
    PLAN(SMALL "staging=vector,stage=half,cast=fused", "64"),
    PLAN(SMALL "staging=scalar,stage=half,cast=separate", "64"),
    PLAN(SMALL "staging=scalar,stage=float,cast=fused", "0"),
};

static family local_family(const char *plan)
{
    return (family){.plan = plan, .ops = CLCONV_OP_DW | CLCONV_OP_DX};
}

typedef void check(const family *f, const char *problem);

static void pass(check *passes, const char *plan, const char *problem,
                 const char *tail)
{
    const family f = local_family(plan);
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", problem, tail);
    passes(&f, whole);
}

/* ---- Exact -------------------------------------------------------------- */

static const char *const problems[] = {
    "n2c16h8w16k32r3s3p1",              /* whole tiles and vectors */
    "n1c1h1w1k1r1s1",                   /* one of everything */
    "n3c17h5w9k19r3s3p1",               /* nothing is whole */
    "n1c80h6w14k72r1s1",                /* one tap: W is contiguous too */
    "n2c5h16w18k72r3s3p1",              /* sums of several chains */
    "n6c1h3w1k1r3s1p1x0",               /* a pixel's neighbour: next image */
    "n2c9h8w8k10r3s3u2p1x0x1x0",        /* stride, asymmetric */
    "n1c8h14w14k16r1s1u14",             /* pixels that no tap meets */
    "n1c5h13w12k7r5s4u3x2p2x4x1x3d2x3", /* all of it */
    "n1c8h6w7k8r2s2u4p3",               /* a stride wider than the filter */
    "n2c8h9w10k24r3s3u2p2d2",           /* stride and dilation share a factor */
    "n2c24h7w9k20r3s3p1g4",             /* groups */
    "n2c17h8w9k17r3s3u1x2p1g17",        /* depthwise */
    "n1c3h3w40k3r1s7u1x5p0x3d1x2",
    "n1c4h5w6k3r2s2u2147483647", /* no second output, no overflow */
};

static void expect_all_exact(const char *plan, const char *tail)
{
    for (size_t i = 0; i < COUNT(problems); ++i)
        pass(family_exact, plan, problems[i], tail);
}

Test(local, floats_fetched_as_vectors_are_exact)
{
    expect_all_exact(plans[0], "");
    expect_all_exact(plans[0], "_nhwc");
}

Test(local, halves_of_a_fused_cast_are_exact)
{
    expect_all_exact(plans[1], "");
    expect_all_exact(plans[1], "_nhwc");
}

Test(local, halves_fetched_one_by_one_are_exact)
{
    expect_all_exact(plans[2], "");
    expect_all_exact(plans[2], "_nhwc");
}

Test(local, floats_of_a_fused_cast_fetched_one_by_one_are_exact)
{
    expect_all_exact(plans[3], "");
    expect_all_exact(plans[3], "_nhwc");
}

Test(local, fp32_is_exact)
{
    expect_all_exact(plans[0], "_fp32");
    expect_all_exact(plans[3], "_nhwc_fp32");
}

/* By default a pass turns W of NCHW, if it has several taps, channels last. */
Test(local, weights_as_they_are_are_exact)
{
    expect_all_exact("bwd_data_local:" SMALL
                     "weights=plain;bwd_weight_local:" SMALL "fill=0",
                     "");
}

static const char *const async_plans[] = {
    PLAN(SMALL "copy=async,tiles=2", "0"),
    PLAN(SMALL "copy=async,tiles=3", "64"),
};

Test(local, asynchronous_copies_are_exact)
{
    expect_all_exact(async_plans[0], "_fp32");
    expect_all_exact(async_plans[1], "_nhwc_fp32");
    for (size_t i = 0; i < COUNT(async_plans); ++i) {
        pass(family_nan, async_plans[i], "n2c6h7w9k4r3s3p1x0x2x2g2", "_fp32");
        pass(family_batches, async_plans[i], "n4c8h5w9k12r3s3p1", "_fp32");
    }
}

Test(local, tiles_do_not_change_what_is_computed)
{
    static const char *const tiles[] = {
        PLAN("tile_m=128,tile_n=64,reg_m=8,reg_n=8,tile_k=16", "12"),
        PLAN("tile_m=128,tile_n=128,reg_m=8,reg_n=8,tile_k=8,cast=fused", "4"),
        PLAN("tile_m=32,tile_n=64,reg_m=4,reg_n=8,tile_k=16", "64"),
        PLAN("tile_m=64,tile_n=32,reg_m=8,reg_n=4,tile_k=8,stage=half", "64"),
        PLAN("tile_m=128,tile_n=8,reg_m=4,reg_n=4,tile_k=8", "0"),
    };
    static const char async[] = PLAN("tile_m=128,tile_n=128,reg_m=8,reg_n=8,"
                                     "tile_k=16,copy=async",
                                     "2");
    for (size_t i = 0; i < COUNT(tiles); ++i)
        pass(family_exact, tiles[i], "n2c40h9w21k136r3s3p1",
             i % 2 ? "_nhwc" : "");
    pass(family_exact, async, "n2c40h9w21k136r3s3p1", "_fp32");
    pass(family_exact, async, "n2c40h9w21k136r3s3p1", "_nhwc_fp32");
}

Test(local, fp16_tensors_are_exact)
{
    static const char *const types[] = {
        "_x16_w16_dy16_dw16_dx16",
        "_nhwc_x16_w16_dy16_dw16_dx16",
        "_nhwc_x16_dw16",
        "_w16_dx16",
    };
    for (size_t i = 0; i < COUNT(types); ++i)
        pass(family_exact, plans[3], "n2c24h7w9k20r3s3p1", types[i]);
}

/* ---- The rest of the contract ------------------------------------------- */

#define SEVERAL "n4c17h5w9k19r3s3p1"
#define STRIDED "n2c17h6w9k19r3s3u2p1"

Test(local, smaller_batches_are_exact_and_leave_the_rest)
{
    for (size_t i = 0; i < 2; ++i) {
        pass(family_batches, plans[i], SEVERAL, "");
        pass(family_batches, plans[i], SEVERAL, "_nhwc");
    }
}

Test(local, beta_adds_to_what_was_there)
{
    for (size_t i = 0; i < 2; ++i) {
        pass(family_beta, plans[i], SEVERAL, "");
        pass(family_beta, plans[i], STRIDED, "_nhwc");
    }
}

/* Both have one: fp16 copies, or parts of the sum. */
Test(local, a_poisoned_workspace_does_not_show)
{
    for (size_t i = 0; i < 2; ++i) {
        pass(family_workspace, plans[i], SEVERAL, "");
        pass(family_workspace, plans[i], SEVERAL, "_nhwc");
    }
}

Test(local, tiny_gradients_survive_by_the_scale_alone)
{
    for (size_t i = 0; i < COUNT(plans); ++i) {
        pass(family_tiny, plans[i], SEVERAL, "");
        pass(family_tiny, plans[i], SEVERAL, "_nhwc");
    }
}

Test(local, nan_and_infinity_reach_what_their_taps_hit)
{
    static const char *const padded[] = {"n2c5h11w10k20r3s3u2x3p1d1x2",
                                         "n2c6h7w9k4r3s3p1x0x2x2g2"};
    for (size_t i = 0; i < COUNT(plans); ++i) {
        pass(family_nan, plans[i], padded[i % 2], "");
        pass(family_nan, plans[i], padded[(i + 1) % 2], "_nhwc");
    }
    pass(family_nan, plans[0], padded[1], "_fp32");
}

/* Specialised plans: all sizes but the batch stand in the text. */
Test(local, baked_sizes_are_exact)
{
    static const char *const baked[] = {
        "n3c9h7w8k5r3s2u2p1_fp32",
        "n2c6h9w9k6r3s3u2p1x0x2x1d1x2g2_nhwc",
    };
    const family f = local_family(PLAN(SMALL "staging=scalar,shape=baked", "4"));
    for (size_t i = 0; i < COUNT(baked); ++i) {
        family_exact(&f, baked[i]);
        family_batches(&f, baked[i]);
    }
}

/*
 * The kernels on matrix units. Loop nest, stages, the way of copies and unit
 * are independent choices: every combination must be exact on small integers.
 * The unit is emulated, which any device can; where the device has the unit,
 * the same cases run on it too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "backward.h"
#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Plans that leave only the shape open, so that few programs are built. */
#define PLAN(tile, split)                                                      \
    "bwd_data_mma:" tile ";bwd_weight_mma:" tile ",split=" split

typedef struct way {
    const char *unit, *plan;
} way;

/* m16n8k16 is fed by asynchronous copies, m16n8k8 by registers. */
#define K16 "mma_m16n8k16"
#define K8 "mma_m16n8k8"

static const way ways[] = {
    {K16, PLAN("tile_m=64,tile_n=16,tile_k=16,stages=3", "4")},
    {K16, PLAN("tile_m=64,tile_n=32,tile_k=32,stages=2", "1")},
    {K8, PLAN("tile_m=64,tile_n=16,tile_k=16,stages=2", "1")},
    {K8, PLAN("tile_m=64,tile_n=32,tile_k=32,stages=2", "4")},
};

static family emulated(const char *unit, const char *plan)
{
    return (family){
        .plan = plan, .emulate = unit, .ops = CLCONV_OP_DW | CLCONV_OP_DX};
}

typedef void check(const family *f, const char *problem);

/* In both layouts. */
static void each(check *passes, const family *f, const char *const *problems,
                 size_t count)
{
    char nhwc[96];
    for (size_t i = 0; i < count; ++i) {
        passes(f, problems[i]);
        snprintf(nhwc, sizeof nhwc, "%s_nhwc", problems[i]);
        passes(f, nhwc);
    }
}

static void each_way(check *passes, const char *const *problems, size_t count)
{
    for (size_t i = 0; i < COUNT(ways); ++i) {
        const family f = emulated(ways[i].unit, ways[i].plan);
        each(passes, &f, problems, count);
    }
}

/* ---- Exact -------------------------------------------------------------- */

static const char *const problems[] = {
    "n2c16h8w16k32r3s3p1",              /* whole fragments and vectors */
    "n1c1h1w1k1r1s1",                   /* one of everything */
    "n3c17h5w9k19r3s3p1",               /* nothing is whole */
    "n1c80h6w14k72r1s1",                /* one tap: W is contiguous too */
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

static void expect_all_exact(const char *plan, const char *emulate)
{
    const family f = emulated(emulate, plan);
    each(family_exact, &f, problems, COUNT(problems));
}

Test(mma, asynchronous_copies_three_stages_deep_are_exact)
{
    expect_all_exact(ways[0].plan, ways[0].unit);
}

Test(mma, asynchronous_copies_two_stages_deep_are_exact)
{
    expect_all_exact(ways[1].plan, ways[1].unit);
}

Test(mma, copies_by_registers_of_short_lines_are_exact)
{
    expect_all_exact(ways[2].plan, ways[2].unit);
}

Test(mma, copies_by_registers_of_longer_lines_are_exact)
{
    expect_all_exact(ways[3].plan, ways[3].unit);
}

/* Does this device have the unit itself? */
static bool has_unit(const char *plan)
{
    static const float one = 1;
    const backward_case c = {.problem = "n1c1h1w1k1r1s1",
                             .plan = plan,
                             .ops = CLCONV_OP_DW | CLCONV_OP_DX,
                             .x = &one,
                             .w = &one,
                             .dy = &one};
    backward_result r;
    bool has = backward_run(&c, &r);
    if (has)
        backward_free(&r);
    return has;
}

Test(mma, the_unit_itself_is_exact)
{
    int had = 0;
    for (size_t i = 0; i < COUNT(ways); ++i) {
        if (!has_unit(ways[i].plan))
            continue;
        expect_all_exact(ways[i].plan, NULL);
        ++had;
    }
    if (!had)
        cr_skip_test("this device has no unit of mma.sync");
}

/* Tiles of one warpgroup and of several that share out rows or columns, lines
 * of each length, parts of the sum, baked sizes. */
Test(mma, tiles_do_not_change_what_is_computed)
{
    static const struct {
        const char *problem, *unit, *data, *weight;
    } tiles[] = {
        {"n2c40h9w21k136r3s3p1", K16,
         "tile_m=128,tile_n=16,tile_k=64,stages=4,warpgroups=2",
         "tile_m=128,tile_n=16,tile_k=16,warpgroups=2,split=128"},
        {"n2c40h9w21k136r3s3p1_nhwc", K16,
         "tile_m=128,tile_n=128,tile_k=32,warpgroups=2",
         "tile_m=128,tile_n=128,tile_k=64,warpgroups=2,split=2"},
        {"n2c136h9w21k40r3s3p1", K16,
         "tile_m=64,tile_n=128,tile_k=32,warpgroups=4,shape=baked",
         "tile_m=64,tile_n=256,tile_k=32,warpgroups=4,shape=baked,split=16"},
        {"n2c40h9w21k136r3s3p1_nhwc", K16,
         "tile_m=256,tile_n=64,tile_k=16,warpgroups=2,stages=2",
         "tile_m=256,tile_n=32,tile_k=32,warpgroups=4,stages=2,split=1"},
        {"n2c40h9w21k136r3s3p1", K8,
         "tile_m=128,tile_n=128,tile_k=32,warpgroups=2,stages=2",
         "tile_m=128,tile_n=64,tile_k=64,warpgroups=1,stages=2,split=2"},
        {"n2c40h9w21k136r3s3p1_nhwc", K8,
         "tile_m=64,tile_n=64,tile_k=64,warpgroups=4,stages=2,shape=baked",
         "tile_m=64,tile_n=128,tile_k=16,warpgroups=2,stages=2,shape=baked"},
    };
    for (size_t i = 0; i < COUNT(tiles); ++i) {
        char plan[256];
        snprintf(plan, sizeof plan, "bwd_data_mma:%s;bwd_weight_mma:%s",
                 tiles[i].data, tiles[i].weight);
        const family f = emulated(tiles[i].unit, plan);
        family_exact(&f, tiles[i].problem);
    }
}

Test(mma, fp16_tensors_are_exact)
{
    static const char *const typed[] = {
        "n2c24h7w9k20r3s3p1_x16_w16_dy16_dw16_dx16",
        "n2c24h7w9k20r3s3p1_nhwc_x16_w16_dy16_dw16_dx16",
        "n2c24h7w9k20r3s3p1_nhwc_x16_dw16",
        "n2c24h7w9k20r3s3p1_w16_dx16",
        "n2c24h7w9k16r3s3u2p1g2_nhwc_x16_w16_dy16_dx16", /* read in place */
    };
    for (size_t i = 0; i < 2 * COUNT(typed); ++i) {
        const way *w = &ways[2 * (i % 2)];
        const family f = emulated(w->unit, w->plan);
        family_exact(&f, typed[i / 2]);
    }
}

/* Planned by the library: see test_unit.c for what it plans. */
Test(mma, the_default_plan_is_exact)
{
    static const char *const units[] = {K16, K8};
    for (size_t i = 0; i < COUNT(units); ++i) {
        const family f = emulated(units[i], NULL);
        family_exact(&f, "n2c20h9w10k24r3s3p1");
    }
}

/* ---- The rest of the contract ------------------------------------------- */

static const char *const several_images[] = {"n4c17h5w9k19r3s3p1",
                                             "n2c17h6w9k19r3s3u2p1"};

Test(mma, smaller_batches_are_exact_and_leave_the_rest)
{
    each_way(family_batches, several_images, 1);
}

Test(mma, beta_adds_to_what_was_there)
{
    each_way(family_beta, several_images, COUNT(several_images));
}

/* All have one: packed copies, and parts of the sum. */
Test(mma, a_poisoned_workspace_does_not_show)
{
    each_way(family_workspace, several_images, 1);
}

Test(mma, tiny_gradients_survive_by_the_scale_alone)
{
    each_way(family_tiny, several_images, 1);
}

Test(mma, nan_and_infinity_reach_what_their_taps_hit)
{
    static const char *const padded[] = {"n2c5h11w10k20r3s3u2x3p1d1x2",
                                         "n2c6h7w9k4r3s3p1x0x2x2g2"};
    each_way(family_nan, padded, COUNT(padded));
}

/*
 * The kernels on warpgroup products: descriptors, swizzle, fragments, stages
 * and the way of tiles through a work-group, all in emulation, which any device
 * can; where the device has the unit, the same cases run on it too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "backward.h"
#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char unit_name[] = "wgmma";

/* Every way to share out a tile: rows, columns, one warpgroup; several blocks
 * of rows; chunks that are not full; each number of stages; both loads. */
static const char *const plans[] = {
    "bwd_data_wgmma:tile_m=128,tile_n=32,warpgroups=2,stages=3;"
    "bwd_weight_wgmma:tile_m=64,tile_n=128,warpgroups=2,split=none",
    "bwd_data_wgmma:tile_m=64,tile_n=64,warpgroups=1,stages=4,load=copies;"
    "bwd_weight_wgmma:tile_m=128,tile_n=32,warpgroups=2,stages=3,split=twice",
    "bwd_data_wgmma:tile_m=256,tile_n=64,warpgroups=2,stages=3,shape=baked;"
    "bwd_weight_wgmma:tile_m=64,tile_n=192,warpgroups=3,stages=6,shape=baked,"
    "load=copies",
    "bwd_data_halo:tile_w=16,tile_h=8;"
    "bwd_weight_wgmma:tile_m=64,tile_n=64,warpgroups=1",
    "bwd_data_stem;bwd_weight_stem",
    "bwd_data_stem:tile_h=8,warpgroups=1,shape=baked;"
    "bwd_weight_stem:tile_w=8,warpgroups=2,shape=baked",
};

static family emulated(const char *plan)
{
    return (family){
        .plan = plan, .emulate = unit_name, .ops = CLCONV_OP_DW | CLCONV_OP_DX};
}

/* ---- Exact -------------------------------------------------------------- */

/* What copies take: channels last, in whole vectors. */
static const char *const problems[] = {
    "n2c16h8w8k32r3s3p1_nhwc",                /* two taps share a step */
    "n1c8h1w1k8r1s1_nhwc",                    /* one vector of everything */
    "n3c72h5w9k136r3s3p1_nhwc",               /* no tile is full */
    "n1c48h5w6k8r3s3p1_nhwc",                 /* a line wider than a tile */
    "n2c8h9w8k16r3s3u2p1x0x1x0_nhwc",         /* stride, asymmetric padding */
    "n1c24h13w12k8r5s4u3x2p2x4x1x3d2x3_nhwc", /* all of it */
    "n2c32h7w9k64r3s3p1g2_nhwc",              /* groups */
};

/* Groups that are multiplied together: eight, some of them, of other sizes for X
 * and dY, by stride and dilation. */
static const char *const merged[] = {
    "n2c64h7w6k64r3s3p1g8_nhwc",
    "n1c128h5w6k64r1s2g8",
    "n2c32h9w8k64r3s3u2p1d2g4",
};

/* Tiles that leave a part of the work-groups over, which share out their ends:
 * nine tiles and five; fewer steps than work-groups; one step; groups. */
static const char *const shared[] = {
    "n3c64h9w9k64r3s3p1", "n6c32h9w8k64r3s3p1_nhwc", "n2c64h4w4k64r3s3p1_nhwc",
    "n1c16h3w3k16r1s1",   "n5c64h7w6k64r3s3p1g2",
};

/* Rows whose neighbours a stride parts: of an even and an odd number of pixels,
 * three phases, fewer pixels than phases. */
static const char *const parted[] = {
    "n2c16h8w10k24r3s3u2p1",
    "n2c24h7w9k16r3s3u2p1",
    "n1c16h5w11k8r2s5u1x3p1x1x2x2",
    "n3c8h4w2k16r1s1u3",
};

/* What else tensor maps take. */
static const char *const any_layout[] = {
    "n3c17h5w9k19r3s3p1",
    "n2c3h9w8k10r3s3u2p1_nhwc",
    "n1c80h6w14k72r1s1",
};

/* What a halo is for: no stride, few channels of dY. */
static const char *const haloed[] = {
    "n2c16h8w8k32r3s3p1_nhwc",
    "n2c40h19w21k48r3s3p1",
    "n1c32h9w17k64r3s3p2x0x1x1d2x1g2_nhwc",
    "n1c70h8w8k9r1s1",
    "n2c3h6w9k20r5s2p0x4x1x0_nhwc",
};

/* What folding is for: few channels, any stride; rows and columns before the
 * filter, pixels that no window is full of, windows that overlap. */
static const char *const folded[] = {
    "n2c3h20w22k8r7s7u2p3_nhwc",    "n1c3h19w35k64r7s7u2p3",
    "n3c3h17w12k20r3s3p1",          "n2c16h9w10k33r3s3p1_nhwc",
    "n1c2h13w30k9r5s4u3x2p2x4x1x3", "n1c1h12w12k8r8s8u4p0x1x2x3_nhwc",
};

static void expect_exact(const char *plan, const char *emulate,
                         const char *const *of, size_t count)
{
    family f = emulated(plan);
    f.emulate = emulate;
    for (size_t i = 0; i < count; ++i)
        family_exact(&f, of[i]);
}

Test(wgmma, rows_shared_out_are_exact)
{
    expect_exact(plans[0], unit_name, problems, COUNT(problems));
    expect_exact(plans[0], unit_name, any_layout, COUNT(any_layout));
}

Test(wgmma, one_warpgroup_and_split_sums_are_exact)
{
    expect_exact(plans[1], unit_name, problems, COUNT(problems));
}

Test(wgmma, blocks_of_rows_and_columns_shared_out_are_exact)
{
    expect_exact(plans[2], unit_name, problems, COUNT(problems));
}

Test(wgmma, merged_groups_are_exact)
{
    static const char *const merging[] = {
        "bwd_data_wgmma:tile_m=64,tile_n=64,warpgroups=1,stages=3,shape=baked;"
        "bwd_weight_wgmma:tile_m=64,tile_n=64,warpgroups=1,shape=baked",
        "bwd_data_wgmma:tile_m=128,tile_n=32,warpgroups=2,stages=3,merge=2;"
        "bwd_weight_wgmma:tile_m=64,tile_n=128,warpgroups=2,merge=2",
    };
    for (size_t i = 0; i < COUNT(merging); ++i)
        expect_exact(merging[i], unit_name, merged, COUNT(merged));
    const family copies = emulated(
        "bwd_data_wgmma:tile_m=64,tile_n=32,warpgroups=1,load=copies,merge=4;"
        "bwd_weight_wgmma:tile_m=64,tile_n=32,warpgroups=1,load=copies,merge="
        "4");
    family_exact(&copies, merged[0]);
}

Test(wgmma, sums_that_work_groups_share_are_exact)
{
    static const char *const sharing[] = {
        "bwd_weight_wgmma:tile_m=64,tile_n=64,warpgroups=1,split=shared,merge="
        "1",
        "bwd_weight_wgmma:tile_m=64,tile_n=192,warpgroups=3,split=shared,merge="
        "1,"
        "shape=baked",
    };
    for (size_t i = 0; i < COUNT(sharing); ++i)
        expect_exact(sharing[i], unit_name, shared, COUNT(shared));
    const family copies = emulated("bwd_weight_wgmma:tile_m=64,tile_n=64,"
                                   "warpgroups=1,load=copies,split=shared");
    family_exact(&copies, shared[1]);
    const family f = emulated(sharing[0]);
    family_batches(&f, shared[0]);
    family_beta(&f, shared[1]);
}

/* Of a sum with a zero for each channel of another group. */
Test(wgmma, nan_and_infinity_stay_in_their_groups)
{
    const family f = emulated(
        "bwd_data_wgmma:tile_m=64,tile_n=64,warpgroups=1,stages=3,merge=4;"
        "bwd_weight_wgmma:tile_m=64,tile_n=64,warpgroups=1,merge=4");
    family_nan(&f, "n2c32h5w6k32r3s3p1g4");
    family_nan(&f, "n2c32h5w6k64r3s3u2p1g4_nhwc");
}

Test(wgmma, phases_that_are_stored_at_once_are_exact)
{
    const family f =
        emulated("bwd_data_wgmma:tile_m=64,tile_n=32,warpgroups=1,stages=3,"
                 "phases=together;bwd_weight_wgmma");
    for (size_t i = 0; i < COUNT(parted); ++i)
        family_exact(&f, parted[i]);
    family_exact(&f, "n2c16h8w10k24r3s3u2p1_dx16");
    family_beta(&f, "n4c16h5w6k24r3s3u2p1");
    family_batches(&f, "n4c16h5w6k24r3s3u2p1");
}

Test(wgmma, a_halo_is_exact)
{
    expect_exact(plans[3], unit_name, haloed, COUNT(haloed));
}

Test(wgmma, folded_tensors_are_exact)
{
    expect_exact(plans[4], unit_name, folded, COUNT(folded));
}

Test(wgmma, folded_tensors_are_exact_however_shared_out)
{
    expect_exact(plans[5], unit_name, folded, 2);
}

/* Does this device have the unit itself? */
static bool has_unit(void)
{
    static const float ones[8 * 8] = {1};
    const backward_case c = {.problem = "n1c8h1w1k8r1s1_nhwc",
                             .plan = plans[0],
                             .ops = CLCONV_OP_DW | CLCONV_OP_DX,
                             .x = ones,
                             .w = ones,
                             .dy = ones};
    backward_result r;
    bool has = backward_run(&c, &r);
    if (has)
        backward_free(&r);
    return has;
}

Test(wgmma, the_unit_itself_is_exact)
{
    if (!has_unit())
        cr_skip_test("this device has no wgmma");
    for (size_t i = 0; i < 3; ++i)
        expect_exact(plans[i], NULL, problems, COUNT(problems));
    expect_exact(plans[0], NULL, any_layout, COUNT(any_layout));
    expect_exact(plans[3], NULL, haloed, COUNT(haloed));
    expect_exact(plans[4], NULL, folded, COUNT(folded));
    expect_exact(plans[5], NULL, folded, 2);
}

Test(wgmma, fp16_tensors_are_exact)
{
    const family f = emulated(plans[0]);
    family_exact(&f, "n2c24h7w9k16r3s3p1_nhwc_x16_w16_dy16_dw16_dx16");
    family_exact(&f, "n2c24h7w9k16r3s3p1_nhwc_w16_dx16");
    const family stem = emulated(plans[4]);
    family_exact(&stem, "n2c3h20w22k8r7s7u2p3_nhwc_x16_w16_dy16_dw16_dx16");
    family_exact(&stem, "n2c3h9w11k9r3s3u2p1_x16_w16_dx16");
}

/* ---- The rest of the contract ------------------------------------------- */

/* By all plans. */
static const char several_images[] = "n4c16h5w6k24r3s3p1_nhwc";

static void each_plan(void (*passes)(const family *, const char *))
{
    for (size_t i = 0; i < COUNT(plans); ++i) {
        const family f = emulated(plans[i]);
        passes(&f, several_images);
    }
}

Test(wgmma, smaller_batches_are_exact_and_leave_the_rest)
{
    each_plan(family_batches);
}

Test(wgmma, beta_adds_to_what_was_there)
{
    each_plan(family_beta);
}

Test(wgmma, a_poisoned_workspace_does_not_show)
{
    each_plan(family_workspace);
}

Test(wgmma, tiny_gradients_survive_by_the_scale_alone)
{
    each_plan(family_tiny);
}

Test(wgmma, nan_and_infinity_reach_what_their_taps_hit)
{
    const family f = emulated(plans[0]);
    family_nan(&f, "n2c8h5w8k16r3s3u2x1p1d1x2_nhwc");
}

/* A folded filter is larger than the filter. */
Test(wgmma, nan_and_infinity_reach_nothing_else_when_folded)
{
    const family f = emulated(plans[4]);
    family_nan(&f, "n2c3h9w8k8r5s5u2p2_nhwc");
    family_nan(&f, "n2c2h8w9k9r3s3u2p1");
}

/*
 * dW with vectors of output channels: shapes at the edges of vectors, tiles,
 * segments and pieces of the packs, whatever the values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "expect_counts.h"
#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The sizes as arguments, and in the text. */
enum { ARGUMENTS, BAKED };

static const family kinds[] = {
    [ARGUMENTS] = {.plan = "bwd_weight_panel:shape=arguments",
                   .ops = CLCONV_OP_DW},
    [BAKED] = {.plan = "bwd_weight_panel:shape=baked", .ops = CLCONV_OP_DW},
};

/* Baked, each problem is a program of its own and compiles for seconds: the
 * first of a list stand for the others. */
#define BAKED_PROBLEMS 2

static void each(void (*check)(const family *f, const char *problem),
                 const char *const *problems, size_t count)
{
    family_skip_unless_cpu();
    for (size_t i = 0; i < count; ++i) {
        check(&kinds[ARGUMENTS], problems[i]);
        if (i < BAKED_PROBLEMS)
            check(&kinds[BAKED], problems[i]);
    }
}

Test(bwd_weight_panel, edges_of_vectors_and_tiles_are_exact)
{
    static const char *const problems[] = {
        "n2c16h8w16k64r3s3p1",         /* whole vectors, whole tiles */
        "n2c3h9w20k16r3s3p1",          /* one vector of channels */
        "n2c5h9w20k33r3s3p1",          /* one more than two */
        "n3c17h7w7k81r3s3p1_nhwc",     /* rows shorter than a vector */
        "n2c33h9w17k70r1s1_nhwc_fp32", /* a tile and six channels */
        "n1c1h1w1k1r1s1",              /* one of everything */
        "n1c1h1w1k1r1s1_nhwc",
        "n2c7h3w5k5r3s3p1", /* 15 positions an image */
        "n5c3h2w2k20r1s1",  /* four, next to other channels */
        "n5c20h2w2k20r1s1_nhwc_fp32",
        "n2c40h5w6k19r3s3p1", /* units of several work-items */
        "n2c40h5w6k19r3s3p1_nhwc",
        "n2c3h30w30k8r7s7p3_fp32", /* 49 taps */
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_weight_panel, strides_dilations_and_paddings_are_exact)
{
    static const char *const problems[] = {
        "n2c5h17w19k18r3s3u2p1",
        "n2c5h17w19k18r3s3u2p1_nhwc",
        "n2c6h13w14k17r1s1u3x2", /* rows that no tap reaches */
        "n2c6h13w14k17r1s1u3x2_nhwc_fp32",
        "n2c6h14w11k17r1s3u3x1p2", /* and with zeros between */
        "n2c6h14w11k17r1s3u4x1p5x0_nhwc",
        "n2c5h9w11k17r3s3_fp32", /* X read as it is */
        "n2c5h9w11k17r3s3u2_nhwc_fp32",
        "n2c5h9w12k17r1s1u2_fp32",
        "n2c5h9w12k17r2s1p0x1x0x0_fp32_nhwc",
        "n2c4h12w21k5r3s2u2x3p2x3x0x1", /* four paddings */
        "n2c3h9w21k4r3s3p3x5d3x5_fp32", /* dilation */
        "n2c3h9w21k4r3s3p3x5d3x5_nhwc",
        "n1c3h4w4k2r5s5p1",            /* a filter beyond the input */
        "n2c3h3w2k4r2s3p4x0x17x9d1x9", /* borders wider than rows */
        "n2c2h2w17k2r3s1p5x0",         /* more padding than rows */
        "n2c2h4w5k3r1s1u9p7",          /* outputs in the padding alone */
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_weight_panel, groups_are_exact)
{
    static const char *const problems[] = {
        "n2c6h7w9k8r3s3p1g2",
        "n2c6h7w9k8r3s3p1g2_nhwc",
        "n2c40h6w5k136r3s3u2p1g2_nhwc_fp32",
        "n2c36h6w5k51r1s1g3",
        "n2c9h7w7k9r3s3p1g9",
        "n2c9h7w7k18r3s3p1g9_nhwc",
    };
    each(family_exact, problems, COUNT(problems));
}

/* More positions than a segment has: of a row, of an image, of two images. */
Test(bwd_weight_panel, edges_of_segments_are_exact)
{
    static const char *const problems[] = {
        "n1c2h2w1100k3r1s1",   "n1c2h2w1101k3r3s3u1x2p1_nhwc",
        "n2c2h47w23k3r3s3p1",  "n7c2h13w14k3r3s3p1_nhwc",
        "n9c3h13w13k17r3s3p1",
    };
    each(family_exact, problems, COUNT(problems));
}

/* Many work-items for an image or a channel of one. */
Test(bwd_weight_panel, parts_of_the_packs_are_exact)
{
    static const char *const problems[] = {
        "n2c2h131w130k3r1s1",
        "n1c2h260w150k18r3s3u3p1_fp32",
        "n1c30h41w40k70r1s1_nhwc",
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_weight_panel, fp16_tensors_are_exact)
{
    static const char *const problems[] = {
        "n2c5h7w9k18r3s3p1_x16_w16_dy16_dw16_dx16",
        "n2c19h7w9k18r3s3p1_nhwc_x16_w16_dy16_dw16_dx16",
        "n2c5h7w19k6r3s3p1_fp32_x16",
        "n2c5h7w19k6r3s3p1_nhwc_fp32_dy16_dw16",
        "n3c5h2w2k6r1s1_dy16_x16",
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_weight_panel, values_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_weight_panel:tile_c=3,tile_v=1,segment=128,split_k=2",
        "bwd_weight_panel:tile_c=3,tile_v=4,segment=128,split_k=64,shape=baked",
        "bwd_weight_panel:tile_c=4,tile_v=3,split_k=4,panel=float",
        "bwd_weight_panel:tile_c=6,tile_v=4,split_k=1,cast=separate,"
        "shape=baked",
        "bwd_weight_panel:tile_c=7,tile_v=4,split_k=8",
        "bwd_weight_panel:tile_c=8,tile_v=3,split_k=16,cast=separate",
        "bwd_weight_panel:tile_c=12,tile_v=2,split_k=32,panel=float,shape="
        "baked",
        "bwd_weight_panel:tile_c=14,tile_v=2,segment=128,split_k=128",
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(plans); ++i) {
        family f = {.plan = plans[i], .ops = CLCONV_OP_DW};
        family_exact(&f, i % 2 ? "n5c11h30w31k75r3s3p1"
                               : "n5c11h14w15k75r3s3u2p1_nhwc_dw16");
    }
}

Test(bwd_weight_panel, smaller_batches_are_exact)
{
    static const char *const problems[] = {
        "n4c5h6w9k6r3s3p1",       "n4c20h6w9k20r3s3u2p1_nhwc",
        "n3c18h5w18k6r3s3u2p1g3", "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4_nhwc",
        "n9c3h13w13k17r3s3p1", /* fewer segments, too */
    };
    each(family_batches, problems, COUNT(problems));
}

Test(bwd_weight_panel, beta_adds_to_the_old_contents)
{
    static const char *const problems[] = {"n2c5h6w21k18r3s3p1"};
    static const family shares = {
        .plan = "bwd_weight_panel:split_k=4,shape=baked", .ops = CLCONV_OP_DW};
    each(family_beta, problems, COUNT(problems));
    family_beta(&shares, "n2c5h6w21k18r3s3p1_nhwc_dw16");
}

Test(bwd_weight_panel, a_poisoned_workspace_does_not_show)
{
    static const char *const problems[] = {
        "n3c11h9w13k7r3s3p1",
        "n3c5h6w6k35r3s3u2p1_nhwc_fp32",
    };
    each(family_workspace, problems, COUNT(problems));
}

Test(bwd_weight_panel, a_nan_goes_where_its_taps_go)
{
    static const char *const problems[] = {
        "n3c7h6w18k6r3s3p1x0x2x2",
        "n2c18h6w7k19r3s3u2p1_nhwc",
        "n2c4h5w6k4r3s3p1g2",
    };
    each(family_nan, problems, COUNT(problems));
}

Test(bwd_weight_panel, tiny_gradients_are_not_lost)
{
    static const char *const problems[] = {
        "n2c5h9w11k18r3s3p1",
        "n2c20h9w11k6r3s3p1_nhwc",
    };
    each(family_tiny, problems, COUNT(problems));
}

Test(bwd_weight_panel, a_report_counts_each_element_of_x_once)
{
    static const char *const problems[] = {
        "n3c5h7w7k6r3s3p1",       /* rows shorter than a vector */
        "n2c20h9w7k6r3s3p1_nhwc", /* longer ones, and a rest */
        "n2c3h6w16k4r3s3p1",      /* a whole vector, one more, ... */
        "n2c3h6w17k4r3s3p1_fp32",
        "n2c3h7w33k4r3s2u2p1", /* two and one, in strides */
        "n2c2h5w70k4r1s1",     /* vectors that end with the row */
        "n2c2h5w5k4r1s1",      /* short rows as one ... */
        "n2c3h9w9k4r1s3p0x0x1x1",
        "n2c2h2w2k3r1s1",    /* ... that ends the tensor */
        "n2c5h9w12k7r1s1u2", /* every other row in no tap's reach */
        "n2c5h9w12k7r1s1u2_nhwc",
        "n2c3h14w11k7r1s3u4x1p5x0", /* and rows before the first */
        "n2c3h9w11k7r1s1u9x1p7x0",  /* all of them */
        "n2c3h12w20k4r3s3u5x2",     /* rows after the last */
        "n2c3h6w7k4r2s1p0x1x0x0u4x1",
        "n2c8h7w9k8r3s3p1g2_nhwc",
        "n1c2h131w130k3r1s1u3x1", /* several work-items a plane */
        "n2c5h7w19k6r3s3p1_x16",
        "n2c5h7w19k6r3s3p1_nhwc_fp32_x16",
        "n2c5h9w11k7r3s3_fp32", /* read as it is */
    };
    static const family separate = {.plan = "bwd_weight_panel:cast=separate",
                                    .ops = CLCONV_OP_DW};
    each(expect_counts, problems, COUNT(problems));
    expect_counts(&separate, "n2c5h7w7k6r3s3p1");
}

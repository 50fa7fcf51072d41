/*
 * dX with vectors of input channels: shapes at the edges of vectors, tiles,
 * phases and pieces of the packs, whatever the values.
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
    [ARGUMENTS] = {.plan = "bwd_data_panel:shape=arguments", .ops = CLCONV_OP_DX},
    [BAKED] = {.plan = "bwd_data_panel:shape=baked", .ops = CLCONV_OP_DX},
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

Test(bwd_data_panel, edges_of_vectors_and_tiles_are_exact)
{
    static const char *const problems[] = {
        "n2c16h7w14k16r3s3p1", /* whole vectors, whole tiles */
        "n2c32h7w14k16r3s3p1_nhwc_fp32",
        "n3c17h7w7k9r3s3p1", /* one channel more, a last pixel alone */
        "n3c17h7w7k9r3s3p1_nhwc",
        "n1c1h1w1k1r1s1", /* one of everything */
        "n1c1h1w1k1r1s1_nhwc",
        "n2c15h5w33k7r3s3p1", /* one channel less, tiles within a row */
        "n2c15h5w33k7r3s3p1_nhwc_fp32",
        "n5c40h2w3k20r1s1", /* tiles across images */
        "n5c40h2w3k20r1s1_nhwc",
        "n1c31h4w4k8r1s1_nhwc", /* fewer pixels than a tile */
        "n1c31h4w4k8r1s1_fp32",
    };
    each(family_exact, problems, COUNT(problems));
}

/* 16 taps are packed at once, and channels one by one where the next 16
 * elements end the tensor or the group. */
Test(bwd_data_panel, filters_of_all_sizes_are_exact)
{
    static const char *const problems[] = {
        "n2c20h5w6k9r4s4p2", "n1c16h6w7k5r4s4p1_fp32", "n1c33h9w9k3r1s17p0x8",
        "n2c2h9w9k3r7s7p3",  "n2c18h7w9k5r5s5p2",      "n1c18h9w9k3r7s7p3_nhwc",
        "n2c16h3w4k1r2s1",
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_data_panel, strides_dilations_and_paddings_are_exact)
{
    static const char *const problems[] = {
        "n2c5h17w19k18r3s3u2p1",
        "n2c18h17w19k5r3s3u2p1_nhwc",
        "n2c18h13w14k6r1s1u3x2", /* pixels that no tap hits */
        "n2c18h13w14k6r1s1u3x2_nhwc_fp32",
        "n2c6h14w11k9r1s3u3x1p2",
        "n2c6h14w11k9r1s3u4x1p5x0_nhwc",
        "n1c3h5w4k2r3s3u7x9p2", /* a stride beyond the image */
        "n2c4h12w13k5r3s3",
        "n2c4h12w13k5r3s3_nhwc_fp32",
        "n2c4h12w21k5r3s2u2x3p2x3x0x1", /* four paddings */
        "n2c3h15w21k4r3s3u2x4p3x5d3x2", /* stride and dilation */
        "n2c3h15w21k4r3s4u4x6p3x5d2x4_nhwc",
        "n2c3h15w21k4r3s3u2p3d4_fp32", /* phases without taps */
        "n1c3h4w4k2r5s5p1",            /* a filter beyond the input */
        "n2c3h3w2k4r2s3p4x0x17x9d1x9", /* borders wider than rows */
        "n2c3h3w2k4r2s3p4x0x17x9d1x9_nhwc",
        "n2c2h2w17k2r3s1p5x0", /* more padding than rows */
        "n2c2h4w5k3r1s1u9p7",  /* dY of the padding alone */
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_data_panel, groups_are_exact)
{
    static const char *const problems[] = {
        "n2c6h7w9k8r3s3p1g2",       "n2c6h7w9k8r3s3p1g2_nhwc",
        "n2c40h6w5k34r3s3u2p1g2",   "n2c40h6w5k34r3s3u2p1g2_nhwc_fp32",
        "n2c36h6w5k51r1s1g3",       "n2c9h7w7k9r3s3p1g9",
        "n2c9h7w7k18r3s3p1g9_nhwc",
    };
    each(family_exact, problems, COUNT(problems));
}

/* Many times one chain of sums, and no multiple of it; channels of dY whose
 * pixels are a power of two apart. */
Test(bwd_data_panel, deep_sums_are_exact)
{
    static const char *const problems[] = {
        "n1c9h5w6k131r3s3p1",        "n1c9h5w6k131r3s3p1_nhwc",
        "n1c9h5w6k61r5s5p2_fp32",    "n1c9h5w6k301r1s1_fp32",
        "n1c2h16w16k3r12s12p6_fp32", "n1c5h4w5k256r2s2_nhwc",
        "n1c5h4w5k512r1s1_nhwc",
    };
    each(family_exact, problems, COUNT(problems));
}

/* Several work-items for a block of channels, and for the blocks of W. */
Test(bwd_data_panel, parts_of_the_work_are_exact)
{
    static const char *const problems[] = {
        "n1c3h65w20k10r3s3p1",
        "n1c3h33w17k17r1s1_nhwc",
        "n1c600h3w3k500r3s3p1",
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_data_panel, fp16_tensors_are_exact)
{
    static const char *const problems[] = {
        "n2c21h7w9k6r3s3p1_x16_w16_dy16_dw16_dx16",
        "n2c21h7w9k6r3s3p1_nhwc_x16_w16_dy16_dw16_dx16",
        "n2c33h7w19k6r3s3p1_fp32_x16_dx16",
        "n2c33h7w19k6r3s3p1_nhwc_fp32_dx16",
        "n2c18h7w19k6r3s3p1_fp32_w16_dy16",
        "n2c18h7w9k6r1s1u2_dy16",
    };
    each(family_exact, problems, COUNT(problems));
}

Test(bwd_data_panel, values_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_data_panel:tile_p=8,span=2,panel=half",
        "bwd_data_panel:tile_p=12,span=8",
        "bwd_data_panel:tile_p=14,cast=separate,shape=baked",
        "bwd_data_panel:tile_p=16,panel=half,cast=separate",
        "bwd_data_panel:tile_p=6",
        "bwd_data_panel:tile_p=24,span=2,panel=half,shape=baked",
        "bwd_data_panel:tile_p=28,span=2",
        "bwd_data_panel:tile_p=4,cast=separate",
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(plans); ++i) {
        const family f = {.plan = plans[i], .ops = CLCONV_OP_DX};
        family_exact(&f, "n3c21h11w13k19r3s3u1x2p1");
        family_exact(&f, "n3c21h11w13k19r3s3u1x2p1_nhwc");
    }
}

Test(bwd_data_panel, smaller_batches_are_exact_and_leave_the_rest)
{
    static const char *const problems[] = {
        "n4c18h5w6k6r3s3p1",      "n4c18h5w7k6r3s3u2p1_nhwc",
        "n3c18h5w18k6r3s3u2p1g3", "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4_nhwc",
        "n4c3h33w34k3r1s1", /* fewer tiles a work-item, too */
    };
    each(family_batches, problems, COUNT(problems));
}

Test(bwd_data_panel, beta_adds_to_the_old_contents)
{
    static const char *const problems[] = {
        "n2c18h6w21k6r3s3p1",
        "n2c18h6w21k6r1s1u2_nhwc",
    };
    each(family_beta, problems, COUNT(problems));
}

Test(bwd_data_panel, a_poisoned_workspace_does_not_show)
{
    static const char *const problems[] = {
        "n3c21h9w13k7r3s3p1",
        "n3c21h9w18k11r3s3u2p1",
        "n3c21h9w13k7r3s3p1_nhwc",
        "n2c5h4w5k256r2s2p1_nhwc",
    };
    each(family_workspace, problems, COUNT(problems));
}

Test(bwd_data_panel, a_nan_reaches_its_taps_alone)
{
    static const char *const problems[] = {
        "n3c7h6w18k6r3s3p1x0x2x2",
        "n2c18h7w9k6r3s3u2p1_nhwc",
        "n2c18h7w9k9r2s3u3x2p1d2x1",
    };
    each(family_nan, problems, COUNT(problems));
}

Test(bwd_data_panel, gradients_of_1e_8_survive)
{
    static const char *const problems[] = {
        "n2c18h9w17k5r3s3p1",
        "n2c18h9w17k5r3s3p1_nhwc",
    };
    each(family_tiny, problems, COUNT(problems));
}

Test(bwd_data_panel, a_report_counts_each_element_of_w_once)
{
    static const char *const problems[] = {
        "n2c5h5w6k9r3s3p1", /* fewer channels than a vector */
        "n2c5h5w6k9r3s3p1_nhwc",
        "n2c33h5w6k17r3s3p1", /* vectors, and one by one */
        "n2c33h5w6k17r3s3p1_nhwc_fp32",
        "n2c16h5w6k8r4s4p2",         /* 16 taps */
        "n2c17h5w6k8r1s17p0x8_fp32", /* one more */
        "n2c20h9w9k3r7s7p3_dx16",
        "n2c18h5w7k5r1s1", /* one tap */
        "n2c18h5w7k5r1s1u2_nhwc",
        "n2c16h3w4k1r2s1",
        "n2c40h6w5k34r3s3u2p1g2",
        "n2c40h6w5k34r3s3u2p1g2_nhwc",
        "n2c3h5w6k4r3s3u5p2", /* taps that meet padding alone */
        "n2c18h7w9k6r3s3p1_w16",
        "n2c18h7w9k6r3s3p1_nhwc_fp32_w16",
    };
    static const family half = {
        .plan = "bwd_data_panel:tile_p=8,panel=half,cast=separate,shape=baked",
        .ops = CLCONV_OP_DX};
    each(expect_counts, problems, COUNT(problems));
    expect_counts(&half, "n2c18h7w9k17r3s3p1");
}

/*
 * bwd_data_tile, the register-tiled dX for CPUs: exact on small integers at
 * the edges of tiles, vectors, paddings, phases of a stride and groups,
 * whatever its values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "expect_counts.h"
#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const family tile = {.plan = "bwd_data_tile", .ops = CLCONV_OP_DX};

static void expect_exact(const char *const *problems, size_t count)
{
    family_skip_unless_cpu();
    for (size_t i = 0; i < count; ++i)
        family_exact(&tile, problems[i]);
}

Test(bwd_data_tile, shapes_at_the_edges_are_exact)
{
    static const char *const problems[] = {
        "n2c16h8w16k16r3s3p1",          /* whole vectors */
        "n3c17h7w7k5r3s3p1",            /* rows shorter than a vector */
        "n1c1h1w1k1r1s1",               /* one of everything */
        "n2c3h5w33k7r3s3p1_fp32",       /* a column beyond two vectors */
        "n2c5h9w15k9r5s5p2_fp32",       /* 25 taps */
        "n2c2h9w9k3r7s7p3",             /* 49 taps */
        "n2c4h6w18k6r1s1p1",            /* padding that no tap needs */
        "n1c3h4w4k2r5s5p1",             /* a filter beyond the input */
        "n2c4h10w20k5r3s2p2x3x0x1",     /* four paddings */
        "n2c4h12w13k5r3s3p0",           /* none */
        "n2c3h9w21k4r3s3p3x5d3x5_fp32", /* dilation */
        "n2c3h3w2k4r2s3p4x0x17x9d1x9",  /* gaps wider than rows */
        "n2c2h2w17k2r3s1p5x0",          /* more padding than rows */
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_data_tile, strides_are_exact)
{
    static const char *const problems[] = {
        "n2c9h8w34k5r3s3u2p1",             /* rows and columns in pairs */
        "n2c9h9w35k5r3s3u2p1_fp32",        /* odd sizes */
        "n2c5h7w40k3r1s1u2",               /* phases without taps */
        "n2c5h7w11k3r2s2u2",               /* one tap each */
        "n1c3h23w37k4r7s7u2p3",            /* as many as 16 taps each */
        "n2c4h10w70k3r3s5u3x4p1x0x2x3",    /* more than two columns */
        "n2c4h9w20k3r3s3u1x2p1",           /* columns alone */
        "n2c4h9w20k3r3s3u2x1p1",           /* rows alone */
        "n2c3h13w19k3r3s3u2p2d2",          /* all taps in one phase */
        "n2c3h17w22k3r3s3u4x6p3d2x3_fp32", /* some phases, some taps */
        "n1c3h40w40k2r2s2u15x16",          /* taps a few, phases many */
        "n2c3h8w21k3r3s3u2p0",             /* rows that no tap reaches */
        "n1c2h1w1k2r3s3u2p1",              /* most phases have no pixel */
        "n2c2h5w3k2r1s2u3p0x0x17x2",       /* paddings beyond a tap's reach */
    };
    expect_exact(problems, COUNT(problems));
}

/* Small images share tiles: full blocks of them and a last one that is not. */
Test(bwd_data_tile, joined_images_are_exact)
{
    static const char *const problems[] = {
        "n11c9h5w5k6r3s3p1",        "n9c9h7w7k6r1s1", /* an image is one row */
        "n13c5h6w5k7r3s3u2p1", /* each phase of rows has its own gaps */
        "n7c5h4w9k7r2s4p0x3x5x0g1", "n5c6h3w2k4r2s2u3x4p1g2_fp32",
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_data_tile, groups_are_exact)
{
    static const char *const problems[] = {
        "n2c24h7w18k24r3s3p1g3",     /* whole tiles of channels */
        "n2c15h7w18k9r3s3p1g3_fp32", /* parts of tiles */
        "n2c6h7w18k12r3s3u2p1g6",    /* depthwise, two for each */
        "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4",
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_data_tile, fp16_tensors_are_exact)
{
    static const char *const problems[] = {
        "n2c5h7w9k6r3s3p1_x16_w16_dy16_dw16_dx16",
        "n2c5h7w19k6r3s3p1_fp32_x16_dx16",
        "n2c5h7w19k6r3s3p1_fp32_w16_dy16_dw16",
        "n2c6h7w41k6r3s3u2p1g2_dy16_dx16",
        "n2c6h7w41k6r3s3u3p1g2_w16_dx16",
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_data_tile, values_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_data_tile:tile_c=14,tile_w=2,unroll=none,span=4",
        "bwd_data_tile:tile_c=4,tile_w=6,unroll=none,shape=baked",
        "bwd_data_tile:tile_c=3,tile_w=1,unroll=none,span=64,cast=separate",
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(plans); ++i) {
        const family f = {.plan = plans[i], .ops = CLCONV_OP_DX};
        family_exact(&f, "n5c11h30w31k13r3s3p1");
        family_exact(&f, "n2c10h30w31k14r3s3u2p1g2");
    }
    const family written_out = {
        .plan = "bwd_data_tile:tile_c=5,tile_w=1,unroll=filter,shape=baked",
        .ops = CLCONV_OP_DX};
    family_exact(&written_out, "n2c10h30w31k14r3s3p1x2x0x1d2g2");
}

/* The depth is many times that of one chain of sums, and no multiple of it. */
Test(bwd_data_tile, a_deep_sum_in_blocks_is_exact)
{
    static const char *const problems[] = {
        "n1c9h5w6k131r3s3p1",        "n1c9h9w6k131r3s3u2p1",
        "n1c9h5w6k61r5s5p2_fp32",    "n1c9h5w6k301r1s1_fp32",
        "n1c2h16w16k3r12s12p6_fp32",
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_data_tile, smaller_batches_are_exact_and_leave_the_rest)
{
    family_skip_unless_cpu();
    family_batches(&tile, "n3c5h6w9k6r3s3p1");
    family_batches(&tile, "n3c6h6w19k6r3s3u2p1g2");
    family_batches(&tile, "n9c5h5w5k6r3s3p1");
    family_batches(&tile, "n6c5h5w3k6r1s1");
}

Test(bwd_data_tile, beta_adds_to_the_old_contents)
{
    family_skip_unless_cpu();
    family_beta(&tile, "n2c5h6w21k6r3s3p1");
    family_beta(&tile, "n2c6h6w41k6r1s1u2g2");
}

Test(bwd_data_tile, a_poisoned_workspace_does_not_show)
{
    family_skip_unless_cpu();
    family_workspace(&tile, "n3c11h9w13k7r3s3p1");
    family_workspace(&tile, "n3c12h9w13k9r3s3u2x3p1g3");
    family_workspace(&tile, "n9c9h5w5k6r3s3p1");
}

Test(bwd_data_tile, nan_goes_where_it_belongs)
{
    family_skip_unless_cpu();
    family_nan(&tile, "n3c7h6w18k6r3s3p1x0x2x2");
    family_nan(&tile, "n2c4h7w19k6r3s3u2p1g2");
    family_nan(&tile, "n2c3h9w20k4r3s2u3x4p1d2");
    family_nan(&tile, "n7c5h5w4k6r3s3p1");
}

/* W's runs end in the middle of vectors, at W's end, in later blocks. */
Test(bwd_data_tile, weights_are_counted_once)
{
    static const char *const problems[] = {
        "n2c1h3w4k1r1s1",              /* one weight */
        "n2c5h3w4k3r1s1",              /* fewer than a vector */
        "n2c16h3w4k35r1s1",            /* more k than one work-item takes */
        "n2c33h3w4k3r1s1_w16",         /* a last block of one channel */
        "n2c300h2w3k2r1s1_fp32",       /* many blocks a run */
        "n2c17h5w6k34r3s3u2p1g1",      /* some blocks a run */
        "n2c36h5w6k8r3s3p1g2_w16",     /* groups */
        "n3c6h5w6k12r3s3p1g6_fp32_w16" /* depthwise */
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(problems); ++i)
        expect_counts(&tile, problems[i]);
    const family separate = {
        .plan = "bwd_data_tile:tile_c=3,tile_w=1,unroll=none,cast=separate,"
                "shape=baked",
        .ops = CLCONV_OP_DX};
    expect_counts(&separate, "n2c17h5w6k34r3s3p1");
}

Test(bwd_data_tile, gradients_of_1e_8_survive)
{
    family_skip_unless_cpu();
    family_tiny(&tile, "n2c6h9w17k5r3s3p1");
    family_tiny(&tile, "n2c6h9w17k6r3s3u2p1g2");
}

/*
 * bwd_weight_tile, the register-tiled dW for CPUs: exact on small integers at
 * the edges of tiles, vectors, segments, paddings, phases of a stride and
 * groups, whatever its values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "expect_counts.h"
#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const family tile = {.plan = "bwd_weight_tile", .ops = CLCONV_OP_DW};

static void expect_exact(const char *const *problems, size_t count)
{
    family_skip_unless_cpu();
    for (size_t i = 0; i < count; ++i)
        family_exact(&tile, problems[i]);
}

Test(bwd_weight_tile, shapes_at_the_edges_are_exact)
{
    static const char *const problems[] = {
        "n2c16h8w16k16r3s3p1",          /* whole vectors */
        "n3c17h7w7k5r3s3p1",            /* rows shorter than a vector */
        "n1c1h1w1k1r1s1",               /* one of everything */
        "n2c3h5w33k7r3s3p1_fp32",       /* a column beyond two vectors */
        "n2c5h9w15k9r5s5p2_fp32",       /* 25 taps */
        "n2c2h9w9k3r7s7p3",             /* 49 taps, one block */
        "n2c2h12w14k3r9s11p4x5",        /* 99 taps, three blocks */
        "n2c4h6w18k6r1s1p1",            /* padding that no tap needs */
        "n1c3h4w4k2r5s5p1",             /* a filter beyond the input */
        "n2c4h10w20k5r3s2p2x3x0x1",     /* four paddings */
        "n2c4h12w13k5r3s3p0",           /* none */
        "n2c3h9w21k4r3s3p3x5d3x5_fp32", /* dilation */
        "n2c3h3w2k4r2s3p4x0x17x9d1x9",  /* gaps wider than rows */
        "n2c2h2w17k2r3s1p5x0",          /* more padding than rows */
        "n5c7h6w5k9r1s1",               /* an image is one row */
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_weight_tile, strides_are_exact)
{
    static const char *const problems[] = {
        "n2c9h8w34k5r3s3u2p1",             /* rows shorter than 16 in phases */
        "n2c9h9w75k5r3s3u2p1_fp32",        /* longer */
        "n2c5h7w40k3r1s1u2",               /* phases that no tap reads */
        "n2c5h7w11k3r2s2u2",               /* one tap each */
        "n1c3h23w37k4r7s7u2p3",            /* as many as 16 taps each */
        "n2c4h10w70k3r3s5u3x4p1x0x2x3",    /* more than two columns */
        "n2c4h9w20k3r3s3u1x2p1",           /* columns alone */
        "n2c4h9w20k3r3s3u2x1p1",           /* rows alone */
        "n2c3h13w19k3r3s3u2p2d2",          /* all taps in one phase */
        "n2c3h17w22k3r3s3u4x6p3d2x3_fp32", /* some phases, some taps */
        "n1c3h40w40k2r2s2u17x19",          /* taps a few, phases many */
        "n2c3h8w22k3r3s3u2p0",             /* rows that no tap reads */
        "n1c2h1w1k2r3s3u2p1",              /* most phases have no pixel */
        "n2c2h5w3k2r1s2u3p0x0x17x2",       /* paddings beyond a tap's reach */
        "n1c3h32w32k2r16s16u16",           /* patches */
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_weight_tile, groups_are_exact)
{
    static const char *const problems[] = {
        "n2c24h7w18k24r3s3p1g3",     /* whole tiles of channels */
        "n2c15h7w18k9r3s3p1g3_fp32", /* parts of tiles */
        "n2c6h7w18k12r3s3u2p1g6",    /* depthwise, two for each */
        "n3c12h9w10k8r3s5u2x3p1x0x2x1d2x1g4",
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_weight_tile, fp16_tensors_are_exact)
{
    static const char *const problems[] = {
        "n2c5h7w9k6r3s3p1_x16_w16_dy16_dw16_dx16",
        "n2c5h7w19k6r3s3p1_fp32_x16_dx16",
        "n2c5h7w19k6r3s3p1_fp32_w16_dy16_dw16",
        "n2c6h7w41k6r3s3u2p1g2_x16_dy16",
        "n2c6h7w41k6r3s3u3p1g2_x16_dw16",
    };
    expect_exact(problems, COUNT(problems));
}

Test(bwd_weight_tile, values_do_not_change_what_is_computed)
{
    static const char *const plans[] = {
        "bwd_weight_tile:tile_k=1,tile_c=8,segment=24,split_k=2",
        "bwd_weight_tile:tile_k=8,tile_c=3,split_k=64",
        "bwd_weight_tile:tile_k=6,tile_c=4,split_k=4,cast=separate,shape=baked",
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(plans); ++i) {
        const family f = {.plan = plans[i], .ops = CLCONV_OP_DW};
        family_exact(&f, "n5c11h30w31k13r3s3p1");
        family_exact(&f, "n3c10h30w51k14r3s3u2p1g2");
    }
}

Test(bwd_weight_tile, smaller_batches_are_exact)
{
    family_skip_unless_cpu();
    family_batches(&tile, "n3c5h6w9k6r3s3p1");
    family_batches(&tile, "n3c6h6w39k6r3s3u2p1g2");
}

Test(bwd_weight_tile, beta_adds_to_the_old_contents)
{
    family_skip_unless_cpu();
    family_beta(&tile, "n2c5h6w21k6r3s3p1");
    family_beta(&tile, "n2c6h6w41k6r1s1u2g2");
}

Test(bwd_weight_tile, a_poisoned_workspace_does_not_show)
{
    family_skip_unless_cpu();
    family_workspace(&tile, "n3c11h9w13k7r3s3p1");
    family_workspace(&tile, "n3c12h9w13k9r3s3u2x3p1g3");
}

Test(bwd_weight_tile, nan_goes_where_it_belongs)
{
    family_skip_unless_cpu();
    family_nan(&tile, "n3c7h6w18k6r3s3p1x0x2x2");
    family_nan(&tile, "n2c4h7w19k6r3s3u2p1g2");
    family_nan(&tile, "n2c4h8w22k6r3s3u2g2"); /* a row, a column too many */
    family_nan(&tile, "n2c3h9w20k4r3s2u3x4p1d2");
}

/* X's runs are of one plane and of many, and end in the middle of vectors;
 * each element is counted, be it read for several taps or for none. */
Test(bwd_weight_tile, x_is_counted_once)
{
    static const char *const problems[] = {
        "n3c5h1w1k2r1s1",               /* fewer elements than a vector */
        "n2c5h3w5k2r3s3p1",             /* planes shorter than a vector */
        "n2c7h4w16k2r3s3p1_fp32",       /* whole vectors */
        "n3c6h5w17k4r3s3p1g2_x16",      /* groups */
        "n2c3h5w33k2r5s3p2",            /* many rows a plane */
        "n2c3h9w33k2r3s3u2p1",          /* phases */
        "n2c3h8w22k2r3s3u2_x16",        /* rows that no tap reads */
        "n2c3h8w33k2r1s1u2x3_fp32_x16", /* pixels that no tap reads */
        "n2c3h9w20k4r3s2u3x4p1d2",      /* dilated */
        "n2c130h9w8k2r1s1",             /* a second run of planes */
        "n2c2h70w130k2r3s3p1",          /* planes longer than a run */
    };
    family_skip_unless_cpu();
    for (size_t i = 0; i < COUNT(problems); ++i)
        expect_counts(&tile, problems[i]);
    const family separate = {
        .plan = "bwd_weight_tile:tile_k=6,tile_c=4,cast=separate,shape=baked",
        .ops = CLCONV_OP_DW};
    expect_counts(&separate, "n3c6h5w17k4r3s3p1g2");
    expect_counts(&separate, "n3c6h5w17k4r3s3p1g2_x16");
}

Test(bwd_weight_tile, gradients_of_1e_8_survive)
{
    family_skip_unless_cpu();
    family_tiny(&tile, "n2c6h9w17k5r3s3p1");
    family_tiny(&tile, "n2c6h9w17k6r3s3u2p1g2");
}

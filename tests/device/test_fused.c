/*
 * The kernel for both gradients at once: positions on a line, the ring of dY
 * with its mirror, shares of taps and of positions, loads in both layouts and
 * types, what a work-group counts and sums of its own; in emulation, which any
 * device can, and on the unit where the device has it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "backward.h"
#include "expect_counts.h"
#include "family.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char unit_name[] = "wgmma";

static const char *const plans[] = {
    "bwd_fused",
    "bwd_fused:rows=384,at_once=1,reads=between,shape=baked",
    "bwd_fused:at_once=4,reads=after,shape=arguments",
};

static family emulated(const char *plan)
{
    return (family){
        .plan = plan, .emulate = unit_name, .ops = CLCONV_OP_BACKWARD};
}

/* ---- Exact -------------------------------------------------------------- */

static const char *const problems[] = {
    "n2c16h8w8k32r3s3p1_nhwc",            /* vectors */
    "n3c13h9w7k21r3s3p1",                 /* channels that fill no vector */
    "n3c3h9w7k20r3s3p1_nhwc",             /* the same, neighbours */
    "n1c64h17w15k64r3s3p1",               /* every register; several tiles */
    "n2c64h9w9k64r1s1_nhwc",              /* no halo */
    "n1c16h12w12k16r5s5p2",               /* more taps than warpgroups share */
    "n2c8h10w11k24r3s2p2x0x1x1d2x1_nhwc", /* dilation, asymmetric padding */
    "n2c9h8w10k8r4s3p0x3x2x0",            /* all padding on one side */
    "n2c24h8w8k32r3s3p1g2_nhwc",          /* groups */
    "n20c8h3w3k8r3s3p1",                  /* many images in a tile */
};

static void expect_exact(const char *plan, const char *emulate,
                         const char *const *of, size_t count)
{
    family f = emulated(plan);
    f.emulate = emulate;
    for (size_t i = 0; i < count; ++i)
        family_exact(&f, of[i]);
}

Test(fused, all_gradients_are_exact)
{
    expect_exact(plans[0], unit_name, problems, COUNT(problems));
}

Test(fused, longer_tiles_read_between_products_are_exact)
{
    expect_exact(plans[1], unit_name, problems, 2);
}

Test(fused, tiles_read_after_products_are_exact)
{
    expect_exact(plans[2], unit_name, problems, 2);
}

static const char *const halves[] = {
    "n2c24h7w9k16r3s3p1_nhwc_x16_w16_dy16_dw16_dx16",
    "n2c11h7w9k13r3s3p1_x16_w16_dy16_dx16",
    "n2c24h7w9k16r3s3p1_nhwc_w16_dx16",
};

Test(fused, fp16_tensors_are_exact)
{
    expect_exact(plans[0], unit_name, halves, COUNT(halves));
}

/* ---- By the copy unit --------------------------------------------------- */

static const char *const ahead[] = {
    "bwd_fused:rows=192,at_once=1,reads=ahead,shape=baked",
    "bwd_fused:rows=384,at_once=2,reads=ahead,shape=arguments",
};

/* Whose images, or planes of them, start and end at multiples of 16 bytes. */
static const char *const pieces[] = {
    "n2c16h8w8k32r3s3p1_nhwc",            /* vectors */
    "n3c13h9w8k21r3s3p1",                 /* channels that fill no vector */
    "n3c3h8w7k20r3s3p1_nhwc",             /* pixels that fill no piece */
    "n1c64h16w17k64r3s3p1",               /* rows that do not; several tiles */
    "n2c64h19w18k64r3s3p1_nhwc",          /* slots are used again */
    "n2c64h9w9k64r1s1_nhwc",              /* no halo */
    "n1c16h12w12k16r5s5p2",               /* a halo of several turns */
    "n2c8h10w11k24r3s2p2x0x1x1d2x1_nhwc", /* dilation, asymmetric padding */
    "n2c9h8w10k8r4s3p0x3x2x0",            /* all padding on one side */
    "n2c24h8w8k32r3s3p1g2",               /* groups */
    "n20c8h4w3k8r3s3p1",                  /* many images in a tile */
    "n2c24h7w9k16r3s3p1_nhwc_x16_w16_dy16_dw16_dx16",
    "n2c11h8w9k13r3s3p1_x16_w16_dy16_dx16",
    "n3c3h8w6k24r3s3p1_nhwc_x16_dy16",
};

Test(fused, tiles_brought_ahead_are_exact)
{
    expect_exact(ahead[0], unit_name, pieces, COUNT(pieces));
}

Test(fused, longer_tiles_brought_ahead_are_exact)
{
    expect_exact(ahead[1], unit_name, pieces, 2);
}

Test(fused, tiles_brought_ahead_keep_the_contract)
{
    const family f = emulated(ahead[0]);
    family_batches(&f, "n5c8h5w4k8r3s3p1");
    family_batches(&f, "n4c3h4w6k5r3s3p1_nhwc");
    family_workspace(&f, "n4c8h5w6k8r3s3p1_nhwc");
    family_nan(&f, "n2c5h6w8k7r3s3p1d1x2");
}

Test(fused, what_is_brought_ahead_is_counted_once)
{
    const family f = emulated(ahead[0]);
    expect_counts(&f, "n3c5h6w8k7r3s3p1");
    expect_counts(&f, "n3c8h6w8k16r3s3p1_nhwc_x16_dy16");
}

/* ---- The unit ----------------------------------------------------------- */

/* Does this device have the unit itself? */
static bool has_unit(void)
{
    static const float ones[8 * 8] = {1};
    const backward_case c = {.problem = "n1c8h1w1k8r1s1_nhwc",
                             .plan = plans[0],
                             .ops = CLCONV_OP_BACKWARD,
                             .x = ones,
                             .w = ones,
                             .dy = ones};
    backward_result r;
    bool has = backward_run(&c, &r);
    if (has)
        backward_free(&r);
    return has;
}

Test(fused, the_unit_itself_is_exact)
{
    if (!has_unit())
        cr_skip_test("this device has no wgmma");
    for (size_t i = 0; i < COUNT(plans); ++i)
        expect_exact(plans[i], NULL, problems, COUNT(problems));
    expect_exact(plans[0], NULL, halves, COUNT(halves));
    for (size_t i = 0; i < COUNT(ahead); ++i)
        expect_exact(ahead[i], NULL, pieces, COUNT(pieces));
}

/* ---- The rest of the contract ------------------------------------------- */

static const char several_images[] = "n4c8h5w6k8r3s3p1_nhwc";

Test(fused, smaller_batches_are_exact_and_leave_the_rest)
{
    const family f = emulated(plans[0]);
    family_batches(&f, several_images);
}

Test(fused, beta_adds_to_what_was_there)
{
    const family f = emulated(plans[0]);
    family_beta(&f, several_images);
    family_beta(&f, "n2c5h4w5k7r3s3p1_x16_w16_dy16_dw16_dx16");
}

Test(fused, a_poisoned_workspace_does_not_show)
{
    const family f = emulated(plans[0]);
    family_workspace(&f, several_images);
}

Test(fused, tiny_gradients_survive_by_the_scale_alone)
{
    const family f = emulated(plans[0]);
    family_tiny(&f, several_images);
}

Test(fused, nan_and_infinity_reach_what_their_taps_hit)
{
    const family f = emulated(plans[0]);
    family_nan(&f, "n2c5h6w7k7r3s3p1d1x2");
}

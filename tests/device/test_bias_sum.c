/*
 * dbias whose partial sums a cast leaves and whose last sum is taken along by
 * the pass that adds the parts of dW: each kernel that has one, by each of the
 * ways that partial sums lie. Matrix units are emulated, which any device can.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <string.h>

#include "family.h"
#include "family_run.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A plan that splits dW's sum, on a problem that is large enough for it. */
typedef struct combination {
    const char *plan, *emulate, *problem;
} combination;

#define LOCAL                                                                  \
    "bwd_weight_local:tile_m=64,tile_n=16,reg_m=4,reg_n=4,tile_k=8,fill=64"

static const combination combinations[] = {
    /* planes: one to an image and channel; two parts of each; rows of pixels */
    {LOCAL, NULL, "n3c3h17w19k18r3s3p1_fp32"},
    {"cast:chunk=1024;" LOCAL, NULL, "n2c3h40w33k7r3s3p1_db16"},
    {"cast:vec=4,lws=64,chunk=1024;" LOCAL, NULL,
     "n3c5h19w21k20r3s3p1_nhwc_dw16_db16"},
    {"bwd_weight_mma:split=4", "mma_m16n8k16", "n3c16h17w19k24r3s3p1_nhwc"},
    /* tiles that pack */
    {"bwd_weight_wgmma:tile_m=64,tile_n=64,warpgroups=1,split=twice", "wgmma",
     "n4c8h21w20k19r1s1"},
    {"bwd_weight_wgmma:tile_m=64,tile_n=64,warpgroups=1,split=twice", "wgmma",
     "n4c8h21w20k24r1s1_nhwc_db16"},
    {"bwd_weight_stem", "wgmma", "n2c3h20w22k8r7s7u2p3_dw16"},
};

static family family_of(const combination *c)
{
    return (family){.plan = c->plan,
                    .emulate = c->emulate,
                    .ops = CLCONV_OP_DW | CLCONV_OP_DB};
}

static void each(void (*passes)(const family *, const char *))
{
    for (size_t i = 0; i < COUNT(combinations); ++i) {
        const family f = family_of(&combinations[i]);
        passes(&f, combinations[i].problem);
    }
}

/* The plan has no pass for the last sum alone. */
static void expect_taken_along(const family *f, const char *problem)
{
    static char text[8192];
    clconv_desc desc;
    family_run run;
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s", problem);
    family_run_open(f, &desc, &run);
    cr_assert_eq(clconv_plan_explain(run.plan, text, sizeof text, NULL),
                 CLCONV_OK);
    cr_assert_not_null(strstr(text, "for dw, db"), "%s", text);
    cr_assert_null(strstr(text, "_bias:"), "%s", text);
    family_run_close(&run);
}

Test(bias_sum, takes_no_launch_of_its_own)
{
    each(expect_taken_along);
}

Test(bias_sum, is_exact_for_each_batch)
{
    each(family_batches);
}

Test(bias_sum, comes_with_dw_or_without)
{
    each(family_outputs);
}

Test(bias_sum, adds_to_what_was_there)
{
    each(family_beta);
}

Test(bias_sum, of_tiny_gradients_survives)
{
    const family f = family_of(&combinations[1]);
    family_tiny(&f, "n2c3h40w33k7r3s3p1");
}

/*
 * The generic kernels against the definition, over shapes that have broken
 * convolution libraries: exact on small integers, close on others, and the
 * same bits each time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backward.h"
#include "family.h"
#include "naive.h"
#include "random.h"

static const char plan_default[] = "bwd_data_generic;bwd_weight_generic";

static const char *const shapes[] = {
    /* groups and strides together */
    "n1c24h6w6k24r3s3u2p1g24",
    "n2c6h7w7k6r3s3u2p1g6",
    "n2c6h7w7k9r1s1u2g3",
    "n3c18h5w33k34r3s3p1g2",
    "n1c6h4w3k4r3s3u7x9p3x4g2",
    /* strides that leave inputs untouched, filters smaller than strides */
    "n1c5h9w23k7r3s3u3p1d2",
    "n4c3h32w32k5r1s1u2",
    "n1c3h14w14k4r7s1u3p3x0",
    "n1c3h14w14k4r1s7u3p0x3",
    "n1c3h32w32k2r8s1u5",
    "n1c9h32w32k3r5s5u3p1",
    "n1c2h16w16k3r7s7u3p2",
    "n1c4h51w51k4r3s3u2",
    "n1c8h83w11k9r5s1u3x1p2x0",
    "n2c5h20w64k4r3s5u2x3p1x2d1x2",
    "n1c2h5w20k3r1s1u2147483647x1",
    "n1c2h3w20k3r1s1u1x2147483647",
    /* padding: asymmetric, larger than the filter, taps in padding only */
    "n1c1h2w2k1r2s2u2p1d2",
    "n1c1h4w4k1r5s5p1",
    "n1c8h40w35k6r3s3p1x0x2x3",
    "n2c10h6w40k5r3s3p0x2x5x0",
    "n2c4h5w5k3r3s3p4x4x5x6",
    /* sizes of one, channels off every vector */
    "n8c16h1w1k8r3s3p1",
    "n1c1h1w2k2r1s1",
    "n2c33h6w6k20r1s1",
    "n2c6h9w8k17r3s3u2p1",
};

/* Those with most to go wrong, for the variants. */
static const char *const hard_shapes[] = {
    "n1c24h6w6k24r3s3u2p1g24",  "n3c18h5w33k34r3s3p1g2",
    "n1c6h4w3k4r3s3u7x9p3x4g2", "n1c5h9w23k7r3s3u3p1d2",
    "n1c1h2w2k1r2s2u2p1d2",     "n2c10h6w40k5r3s3p0x2x5x0",
    "n2c33h6w6k20r1s1",         "n2c5h20w64k4r3s5u2x3p1x2d1x2",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef void check(const family *f, const char *problem);

/* tail: what follows the sizes. */
static void each(check *passes, const char *plan, const char *const *list,
                 size_t count, const char *tail)
{
    const family generic = {.plan = plan};
    for (size_t i = 0; i < count; ++i) {
        char problem[128];
        snprintf(problem, sizeof problem, "%s%s", list[i], tail);
        passes(&generic, problem);
    }
}

static void exact_for_all(const char *tail)
{
    each(family_exact, plan_default, shapes, COUNT(shapes), tail);
}

static void each_hard(check *passes, const char *plan, const char *tail)
{
    each(passes, plan, hard_shapes, COUNT(hard_shapes), tail);
}

/* ---- Exact ------------------------------------------------------------ */

Test(generic, mixed_nchw_is_exact_on_small_integers)
{
    exact_for_all("");
}

Test(generic, mixed_nhwc_is_exact_on_small_integers)
{
    exact_for_all("_nhwc");
}

Test(generic, fp32_is_exact_on_small_integers)
{
    exact_for_all("_fp32");
    exact_for_all("_nhwc_fp32");
}

static const char fused[] = "bwd_data_generic:cast=fused,tile=4;"
                            "bwd_weight_generic:cast=fused,split=8";

Test(generic, a_fused_cast_and_a_split_reduction_are_exact)
{
    each_hard(family_exact, fused, "");
    each_hard(family_exact, fused, "_nhwc");
}

static const char scalars[] = "bwd_data_generic:vec=1,lws=64,tile=4;"
                              "bwd_weight_generic:vec=1,lws=64,tile=2,split=64";

Test(generic, scalars_in_work_groups_are_exact)
{
    each_hard(family_exact, scalars, "");
    each_hard(family_exact, scalars, "_nhwc");
}

Test(generic, the_smallest_tiles_are_exact)
{
    each_hard(family_exact, "bwd_data_generic:tile=1;bwd_weight_generic:tile=1",
              "");
}

Test(generic, fp16_tensors_and_exponents_are_exact)
{
    each_hard(family_exact, plan_default, "_x16_dw16_db16_dx16");
    each_hard(family_exact, plan_default,
              "_nhwc_w16_dy16_dw16_db16_dx16_dylog2_dxlog1");
}

/* ---- The rest of the contract ------------------------------------------- */

Test(generic, beta_adds_to_the_old_contents)
{
    each_hard(family_beta, plan_default, "_x16_dw16_db16_dx16");
    each_hard(family_beta, plan_default,
              "_nhwc_w16_dy16_dw16_db16_dx16_dylog2_dxlog1");
    each_hard(family_beta, fused, "_nhwc");
    each_hard(family_beta, scalars, "");
}

static const char *const several_images[] = {"n4c5h6w9k6r3s3p1",
                                             "n3c6h9w8k9r3s3u2p1x0x2x1g3"};

Test(generic, smaller_batches_are_exact_and_leave_the_rest)
{
    static const char *const plans[] = {plan_default, fused, scalars};
    for (size_t i = 0; i < COUNT(plans); ++i) {
        each(family_batches, plans[i], several_images, 2, "");
        each(family_batches, plans[i], several_images, 2, "_nhwc");
    }
}

Test(generic, a_poisoned_workspace_does_not_show)
{
    static const char *const plans[] = {plan_default, fused, scalars};
    for (size_t i = 0; i < COUNT(plans); ++i) {
        each(family_workspace, plans[i], several_images, 2, "");
        each(family_workspace, plans[i], several_images, 2, "_nhwc");
    }
}

static const char *const nan_shapes[] = {
    "n2c3h5w21k5r3s3p1", "n2c4h9w8k4r3s3u2p1x0x2x1d2g2", "n1c3h7w7k5r1s1u2"};

Test(generic, nan_goes_where_taps_take_it)
{
    each(family_nan, plan_default, nan_shapes, COUNT(nan_shapes), "");
    each(family_nan, plan_default, nan_shapes, COUNT(nan_shapes), "_nhwc");
    each(family_nan, plan_default, nan_shapes, COUNT(nan_shapes), "_fp32");
}

Test(generic, nan_goes_where_taps_take_it_in_every_variant)
{
    each(family_nan, fused, nan_shapes, COUNT(nan_shapes), "");
    each(family_nan, fused, nan_shapes, COUNT(nan_shapes), "_nhwc");
    each(family_nan, scalars, nan_shapes, COUNT(nan_shapes), "");
    each(family_nan, scalars, nan_shapes, COUNT(nan_shapes), "_nhwc");
}

Test(generic, tiny_gradients_survive_by_the_scale_alone)
{
    static const char *const plans[] = {plan_default, fused, scalars};
    for (size_t i = 0; i < COUNT(plans); ++i) {
        each(family_tiny, plans[i], several_images, 2, "");
        each(family_tiny, plans[i], several_images, 2, "_nhwc");
    }
}

/* ---- Rounding --------------------------------------------------------- */

/* A problem with normal data, its gradients, and roots of the sums of the
 * squared products. */
typedef struct trial {
    const char *problem;
    clconv_desc desc;
    float *x, *w, *dy;
    naive_result want;
} trial;

static void *new_array(int64_t count, size_t size)
{
    void *array = calloc((size_t)count + 1, size);
    cr_assert_not_null(array);
    return array;
}

static float *new_normal(random_source *random, int64_t count)
{
    float *data = new_array(count, sizeof *data);
    random_fill_normal(random, (size_t)count, data);
    return data;
}

static void make_trial(const char *problem, trial *t)
{
    random_source random = random_seeded(7);
    *t = (trial){.problem = problem};
    cr_assert_eq(clconv_desc_parse(problem, &t->desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    const clconv_desc *d = &t->desc;
    t->x = new_normal(&random, naive_x_elements(d, d->n));
    t->w = new_normal(&random, naive_w_elements(d));
    t->dy = new_normal(&random, naive_dy_elements(d, d->n));
    t->want.dw = new_array(naive_w_elements(d), sizeof(double));
    t->want.dw_squares = new_array(naive_w_elements(d), sizeof(double));
    t->want.dx = new_array(naive_x_elements(d, d->n), sizeof(double));
    t->want.dx_squares = new_array(naive_x_elements(d, d->n), sizeof(double));
    t->want.db = new_array(d->k, sizeof(double));
}

static void run(const trial *t, const char *plan, backward_result *out)
{
    const backward_case c = {
        .problem = t->problem, .plan = plan, .x = t->x, .w = t->w, .dy = t->dy};
    cr_assert(backward_run(&c, out), "%s", backward_error());
}

static void free_trial(trial *t)
{
    free(t->x);
    free(t->w);
    free(t->dy);
    free(t->want.dw);
    free(t->want.dx);
    free(t->want.db);
    free(t->want.dw_squares);
    free(t->want.dx_squares);
}

/* bound: of the error over the root of the sum of squared products, and over
 * the norm of the output. */
static void expect_close(const trial *t, const char *output, const float *got,
                         const double *want, const double *squares,
                         int64_t count, double each_bound, double norm_bound)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < count; ++i) {
        double off = fabs((double)got[i] - want[i]);
        cr_assert_leq(off, each_bound * sqrt(squares[i]),
                      "%s: %s[%lld] is %g, not %g", t->problem, output,
                      (long long)i, (double)got[i], want[i]);
        error += off * off;
        size += want[i] * want[i];
    }
    cr_assert_leq(sqrt(error / size), norm_bound, "%s: %s: %g", t->problem,
                  output, sqrt(error / size));
}

static void check_close(const char *problem, double each_bound,
                        double norm_bound)
{
    trial t;
    backward_result r;
    make_trial(problem, &t);
    naive_backward(&t.desc, t.desc.n, &(naive_data){t.x, t.w, t.dy}, &t.want);
    run(&t, plan_default, &r);
    expect_close(&t, "dw", r.dw, t.want.dw, t.want.dw_squares,
                 naive_w_elements(&t.desc), each_bound, norm_bound);
    expect_close(&t, "dx", r.dx, t.want.dx, t.want.dx_squares,
                 naive_x_elements(&t.desc, t.desc.n), each_bound, norm_bound);
    backward_free(&r);
    free_trial(&t);
}

Test(generic, mixed_is_within_the_rounding_of_its_operands)
{
    check_close("n3c18h9w33k34r3s3p1g2", 0x1p-8, 5e-4);
    check_close("n3c18h9w33k34r3s3p1g2_nhwc", 0x1p-8, 5e-4);
}

Test(generic, a_dw_over_a_million_products_is_as_good_as_fp32)
{
    check_close("n1c2h1024w1024k2r3s3p1_fp32", 3e-6, 1e-6);
    check_close("n1c2h1024w1024k2r3s3p1_nhwc_fp32", 3e-6, 1e-6);
}

static void expect_same_bits(const float *a, const float *b, int64_t count)
{
    cr_assert_eq(memcmp(a, b, (size_t)count * sizeof *a), 0);
}

Test(generic, ten_runs_give_the_same_bits)
{
    static const char plan[] = "bwd_data_generic;bwd_weight_generic:split=8";
    trial t;
    backward_result first, again;
    make_trial("n3c18h9w33k34r3s3p1g2", &t);
    run(&t, plan, &first);
    for (int i = 0; i < 9; ++i) {
        run(&t, plan, &again);
        expect_same_bits(first.dw, again.dw, naive_w_elements(&t.desc));
        expect_same_bits(first.dx, again.dx,
                         naive_x_elements(&t.desc, t.desc.n));
        expect_same_bits(first.db, again.db, t.desc.k);
        backward_free(&again);
    }
    backward_free(&first);
    free_trial(&t);
}

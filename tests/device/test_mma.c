/*
 * The kernels on matrix units. Loop nest, staging, cast and unit are
 * independent choices: every combination must be exact on small integers. The
 * unit is emulated, which any device can; where the device has the unit, the
 * same cases run on it too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backward.h"
#include "naive.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char unit_name[] = "mma_m16n8k16";

typedef struct inputs {
    clconv_desc desc;
    float *x, *w, *dy;
    double *dw, *dx; /* of x, w and dy as they are */
} inputs;

/* -4 to 3, times scale. */
static float *small_integers(int64_t count, unsigned seed, float scale)
{
    float *values = malloc((size_t)count * sizeof *values);
    cr_assert_not_null(values);
    for (int64_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ((float)(seed >> 24 & 7) - 4.0f) * scale;
    }
    return values;
}

static inputs make_inputs(const char *problem, float dy_scale)
{
    inputs in;
    cr_assert_eq(clconv_desc_parse(problem, &in.desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    const clconv_desc *d = &in.desc;
    int64_t x = naive_x_elements(d, d->n), w = naive_w_elements(d);
    in.x = small_integers(x, 1, 1);
    in.w = small_integers(w, 2, 1);
    in.dy = small_integers(naive_dy_elements(d, d->n), 3, dy_scale);
    in.dw = malloc((size_t)w * sizeof *in.dw);
    in.dx = malloc((size_t)x * sizeof *in.dx);
    cr_assert(in.dw && in.dx);
    return in;
}

static void compute(inputs *in, int64_t batch)
{
    naive_data data = {.x = in->x, .w = in->w, .dy = in->dy};
    naive_result out = {.dw = in->dw, .dx = in->dx};
    naive_backward(&in->desc, batch, &data, &out);
}

static void free_inputs(inputs *in)
{
    free(in->x);
    free(in->w);
    free(in->dy);
    free(in->dw);
    free(in->dx);
}

static backward_case case_of(const inputs *in, const char *problem,
                             const char *plan)
{
    return (backward_case){.problem = problem,
                           .plan = plan,
                           .emulate = unit_name,
                           .ops = CLCONV_OP_DW | CLCONV_OP_DX,
                           .x = in->x,
                           .w = in->w,
                           .dy = in->dy};
}

/* The index of the first element that differs, or -1. */
static int64_t first_wrong(const float *got, const double *want, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        if ((double)got[i] != want[i])
            return i;
    return -1;
}

static void expect_exact(const backward_case *c, const char *output,
                         const float *got, const double *want, int64_t count)
{
    int64_t i = first_wrong(got, want, count);
    cr_assert(i < 0, "%s, plan %s: %s[%lld] is %g, not %g", c->problem, c->plan,
              output, (long long)i, (double)got[i < 0 ? 0 : i],
              want[i < 0 ? 0 : i]);
}

static void run_exact(const inputs *in, const backward_case *c)
{
    backward_result r;
    int64_t batch = c->batch ? c->batch : in->desc.n;
    cr_assert(backward_run(c, &r), "%s", backward_error());
    expect_exact(c, "dw", r.dw, in->dw, naive_w_elements(&in->desc));
    expect_exact(c, "dx", r.dx, in->dx, naive_x_elements(&in->desc, batch));
    backward_free(&r);
}

static void expect_case_exact(const char *problem, const char *plan,
                              const char *emulate)
{
    inputs in = make_inputs(problem, 1);
    backward_case c = case_of(&in, problem, plan);
    c.emulate = emulate;
    compute(&in, in.desc.n);
    run_exact(&in, &c);
    free_inputs(&in);
}

/* ---- Exact -------------------------------------------------------------- */

/* Plans that leave only the shape open, so that few programs are built. */
static const char *const plans[] = {
    "bwd_data_mma:tile_n=16,staging=scalar,cast=separate;"
    "bwd_weight_mma:tile_n=16,staging=scalar,cast=separate,split=1",
    "bwd_data_mma:tile_n=16,staging=scalar,cast=fused;"
    "bwd_weight_mma:tile_n=16,staging=scalar,cast=fused,split=4",
    "bwd_data_mma:tile_n=16,staging=vector,cast=separate;"
    "bwd_weight_mma:tile_n=16,staging=vector,cast=separate,split=4",
    "bwd_data_mma:tile_n=16,staging=vector,cast=fused;"
    "bwd_weight_mma:tile_n=16,staging=vector,cast=fused,split=1",
};

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
    char nhwc[96];
    for (size_t i = 0; i < COUNT(problems); ++i) {
        expect_case_exact(problems[i], plan, emulate);
        snprintf(nhwc, sizeof nhwc, "%s_nhwc", problems[i]);
        expect_case_exact(nhwc, plan, emulate);
    }
}

Test(mma, scalar_staging_of_separate_casts_is_exact)
{
    expect_all_exact(plans[0], unit_name);
}

Test(mma, scalar_staging_of_fused_casts_is_exact)
{
    expect_all_exact(plans[1], unit_name);
}

Test(mma, vector_staging_of_separate_casts_is_exact)
{
    expect_all_exact(plans[2], unit_name);
}

Test(mma, vector_staging_of_fused_casts_is_exact)
{
    expect_all_exact(plans[3], unit_name);
}

/* Does this device have the unit itself? */
static bool has_unit(void)
{
    inputs in = make_inputs("n1c1h1w1k1r1s1", 1);
    backward_case c = case_of(&in, "n1c1h1w1k1r1s1", plans[0]);
    backward_result r;
    c.emulate = NULL;
    bool has = backward_run(&c, &r);
    if (has)
        backward_free(&r);
    free_inputs(&in);
    return has;
}

Test(mma, the_unit_itself_is_exact)
{
    if (!has_unit())
        cr_skip_test("this device has no mma_m16n8k16");
    for (size_t i = 0; i < COUNT(plans); ++i)
        expect_all_exact(plans[i], NULL);
}

Test(mma, tiles_do_not_change_what_is_computed)
{
    static const struct {
        const char *problem, *plan;
    } tiles[] = {
        {"n2c40h9w21k136r3s3p1",
         "bwd_data_mma:tile_m=128,tile_n=8,tile_k=16;"
         "bwd_weight_mma:tile_m=128,tile_n=8,tile_k=16,split=128"},
        {"n2c40h9w21k136r3s3p1_nhwc",
         "bwd_data_mma:tile_n=64,tile_k=32,cast=fused;"
         "bwd_weight_mma:tile_n=64,tile_k=32,cast=fused,split=2"},
        {"n2c40h9w21k136r3s3p1",
         "bwd_data_mma:tile_n=32,tile_k=64,staging=scalar;"
         "bwd_weight_mma:tile_n=32,tile_k=64,staging=scalar,split=16"},
    };
    for (size_t i = 0; i < COUNT(tiles); ++i)
        expect_case_exact(tiles[i].problem, tiles[i].plan, unit_name);
}

Test(mma, fp16_tensors_are_exact)
{
    static const char *const typed[] = {
        "n2c24h7w9k20r3s3p1_x16_w16_dy16_dw16_dx16",
        "n2c24h7w9k20r3s3p1_nhwc_x16_w16_dy16_dw16_dx16",
        "n2c24h7w9k20r3s3p1_nhwc_x16_dw16",
        "n2c24h7w9k20r3s3p1_w16_dx16",
    };
    for (size_t i = 0; i < COUNT(typed); ++i)
        expect_case_exact(typed[i], plans[3], unit_name);
}

/* Planned by the library: see test_unit.c for what it plans. */
Test(mma, the_default_plan_is_exact)
{
    expect_case_exact("n2c20h9w10k24r3s3p1", NULL, unit_name);
}

Test(mma, a_smaller_batch_is_exact)
{
    static const char problem[] = "n4c17h5w9k19r3s3p1";
    inputs in = make_inputs(problem, 1);
    for (size_t i = 0; i < COUNT(plans); i += 2) {
        backward_case c = case_of(&in, problem, plans[i]);
        c.batch = 3;
        compute(&in, 3);
        run_exact(&in, &c);
    }
    free_inputs(&in);
}

/* want = beta * old + want, old being small integers too. */
static float *add_old(double *want, int64_t count, double beta)
{
    float *old = small_integers(count, 4, 1);
    for (int64_t i = 0; i < count; ++i)
        want[i] += beta * (double)old[i];
    return old;
}

Test(mma, beta_adds_to_what_was_there)
{
    static const char problem[] = "n2c17h6w9k19r3s3u2p1";
    for (size_t i = 0; i < 2; ++i) {
        inputs in = make_inputs(problem, 1);
        backward_case c = case_of(&in, problem, plans[i]);
        compute(&in, in.desc.n);
        float *dw = add_old(in.dw, naive_w_elements(&in.desc), 2);
        float *dx = add_old(in.dx, naive_x_elements(&in.desc, 2), -1);
        c.dw = dw, c.beta_w = 2;
        c.dx = dx, c.beta_x = -1;
        run_exact(&in, &c);
        free(dw);
        free(dx);
        free_inputs(&in);
    }
}

/* Without images dW is beta times what was there. */
Test(mma, an_empty_batch_leaves_beta_times_dw)
{
    static const char problem[] = "n2c17h6w9k19r3s3u2p1";
    for (size_t i = 0; i < 2; ++i) {
        inputs in = make_inputs(problem, 1);
        backward_case c = case_of(&in, problem, plans[i]);
        backward_result r;
        int64_t count = naive_w_elements(&in.desc);
        memset(in.dw, 0, (size_t)count * sizeof *in.dw);
        float *old = add_old(in.dw, count, 3);
        c.dw = old, c.beta_w = 3, c.batch_none = true;
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        expect_exact(&c, "dw", r.dw, in.dw, count);
        backward_free(&r);
        free(old);
        free_inputs(&in);
    }
}

/* ---- Tiny gradients ------------------------------------------------------ */

/* dY of a few 2^-30, about 1e-9: times 2^10 they are exact in fp16, without
 * it they are less than half of its smallest number, 2^-24. */
#define TINY 0x1p-30f

static void run_tiny(const char *problem, const char *plan, bool survives)
{
    inputs in = make_inputs(problem, TINY);
    backward_case c = case_of(&in, problem, plan);
    backward_result r;
    compute(&in, in.desc.n);
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    int64_t w = naive_w_elements(&in.desc);
    int64_t x = naive_x_elements(&in.desc, in.desc.n);
    if (survives) {
        expect_exact(&c, "dw", r.dw, in.dw, w);
        expect_exact(&c, "dx", r.dx, in.dx, x);
    } else {
        for (int64_t i = 0; i < w; ++i)
            cr_assert(r.dw[i] == 0.0f, "%s, plan %s: dw survives", problem,
                      plan);
        for (int64_t i = 0; i < x; ++i)
            cr_assert(r.dx[i] == 0.0f, "%s, plan %s: dx survives", problem,
                      plan);
        cr_assert(first_wrong(r.dw, in.dw, w) >= 0);
        cr_assert(first_wrong(r.dx, in.dx, x) >= 0);
    }
    backward_free(&r);
    free_inputs(&in);
}

Test(mma, tiny_gradients_survive_by_the_scale_alone)
{
    for (size_t i = 0; i < COUNT(plans); ++i) {
        run_tiny("n2c17h6w9k19r3s3p1_scale10", plans[i], true);
        run_tiny("n2c17h6w9k19r3s3p1_scale0", plans[i], false);
        run_tiny("n2c17h6w9k19r3s3p1_nhwc_scale10", plans[i], true);
    }
}

/* ---- NaN ----------------------------------------------------------------- */

/* Is position a tap of the input position i: in bounds, or in padding? */
static bool meets(int64_t i, int64_t padding, int64_t tap, int64_t dilation,
                  int64_t stride)
{
    return (i + padding - tap * dilation) % stride == 0;
}

/* A NaN at W[k][c][r][s] must reach dX of that channel where an in-bounds tap
 * does (there the definition gives NaN), may where only padding does, and
 * nothing else. */
static void check_nan_in_w(const inputs *in, const backward_case *c,
                           const float *dx, int64_t channel, int64_t r,
                           int64_t s)
{
    const clconv_desc *d = &in->desc;
    int64_t count = naive_x_elements(d, d->n);
    for (int64_t i = 0; i < count; ++i) {
        int64_t w = i % d->w, h = i / d->w % d->h;
        int64_t in_channel = i / (d->w * d->h) % d->c;
        bool may = in_channel == channel &&
                   meets(h, d->pad_top, r, d->dilation_h, d->stride_h) &&
                   meets(w, d->pad_left, s, d->dilation_w, d->stride_w);
        bool right = (double)dx[i] == in->dx[i] ||
                     (isnan(dx[i]) && (isnan(in->dx[i]) || may));
        cr_assert(right, "%s, plan %s: dx[%lld] is %g, not %g", c->problem,
                  c->plan, (long long)i, (double)dx[i], in->dx[i]);
    }
}

Test(mma, nan_in_w_reaches_what_its_tap_hits)
{
    static const char problem[] = "n2c5h11w10k20r3s3u2x3p1d1x2";
    const int64_t k = 18, channel = 3, r = 1, s = 2;
    for (size_t i = 0; i < COUNT(plans); ++i) {
        inputs in = make_inputs(problem, 1);
        backward_case c = case_of(&in, problem, plans[i]);
        backward_result result;
        in.w[((k * 5 + channel) * 3 + r) * 3 + s] = NAN;
        compute(&in, in.desc.n);
        cr_assert(backward_run(&c, &result), "%s", backward_error());
        check_nan_in_w(&in, &c, result.dx, channel, r, s);
        backward_free(&result);
        free_inputs(&in);
    }
}

/* Exactly where an in-bounds tap is: padding's X is a zero of the kernel's
 * own, and dY of an element outside is none. */
static void expect_same_nans(const backward_case *c, const char *output,
                             const float *got, const double *want, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        cr_assert((double)got[i] == want[i] || (isnan(got[i]) && isnan(want[i])),
                  "%s, plan %s: %s[%lld] is %g, not %g", c->problem, c->plan,
                  output, (long long)i, (double)got[i], want[i]);
}

/* No padding, so that every tap of every output is in bounds. */
Test(mma, nan_and_infinity_of_x_and_dy_reach_what_they_are_multiplied_into)
{
    static const char problem[] = "n2c5h11w10k20r3s3u2x3";
    const float values[] = {NAN, INFINITY};
    for (size_t i = 0; i < 2 * COUNT(plans); ++i) {
        inputs in = make_inputs(problem, 1);
        backward_case c = case_of(&in, problem, plans[i / 2]);
        backward_result r;
        in.x[317] = values[i % 2];
        in.dy[97] = values[i % 2];
        compute(&in, in.desc.n);
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        expect_same_nans(&c, "dw", r.dw, in.dw, naive_w_elements(&in.desc));
        expect_same_nans(&c, "dx", r.dx, in.dx,
                         naive_x_elements(&in.desc, in.desc.n));
        backward_free(&r);
        free_inputs(&in);
    }
}

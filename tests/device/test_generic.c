/*
 * The generic kernels against the definition, over shapes that have broken
 * convolution libraries: exact on small integers, and NaN exactly where a tap
 * takes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backward.h"
#include "host.h"
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

/* ---- A problem with data and its exact gradients ----------------------- */

enum { SMALL_INTEGERS, NORMAL };

typedef struct trial {
    char problem[128];
    clconv_desc desc;
    int64_t x_count, w_count, dy_count;
    float *x, *w, *dy;
    float *old_dw, *old_db, *old_dx;
    naive_result want;
} trial;

static void *new_array(int64_t count, size_t size)
{
    void *array = calloc((size_t)count + 1, size);
    cr_assert_not_null(array);
    return array;
}

static float *new_data(random_source *random, int64_t count, int kind)
{
    float *data = new_array(count, sizeof *data);
    if (kind == NORMAL)
        random_fill_normal(random, (size_t)count, data);
    else
        random_fill_integers(random, 3, (size_t)count, data);
    return data;
}

static void compute(trial *t)
{
    naive_data in = {t->x, t->w, t->dy};
    naive_backward(&t->desc, t->desc.n, &in, &t->want);
}

static void make_trial(const char *shape, const char *tail, int kind, trial *t)
{
    random_source random = random_seeded(7);
    *t = (trial){0};
    snprintf(t->problem, sizeof t->problem, "%s%s", shape, tail);
    cr_assert_eq(clconv_desc_parse(t->problem, &t->desc), CLCONV_OK, "%s: %s",
                 t->problem, clconv_last_error());
    t->x_count = naive_x_elements(&t->desc, t->desc.n);
    t->w_count = naive_w_elements(&t->desc);
    t->dy_count = naive_dy_elements(&t->desc, t->desc.n);
    t->x = new_data(&random, t->x_count, kind);
    t->w = new_data(&random, t->w_count, kind);
    t->dy = new_data(&random, t->dy_count, kind);
    t->old_dw = new_data(&random, t->w_count, SMALL_INTEGERS);
    t->old_db = new_data(&random, t->desc.k, SMALL_INTEGERS);
    t->old_dx = new_data(&random, t->x_count, SMALL_INTEGERS);
    t->want.dw = new_array(t->w_count, sizeof(double));
    t->want.dx = new_array(t->x_count, sizeof(double));
    t->want.db = new_array(t->desc.k, sizeof(double));
    t->want.dw_squares = new_array(t->w_count, sizeof(double));
    t->want.dx_squares = new_array(t->x_count, sizeof(double));
    compute(t);
}

static void free_trial(trial *t)
{
    free(t->x);
    free(t->w);
    free(t->dy);
    free(t->old_dw);
    free(t->old_db);
    free(t->old_dx);
    free(t->want.dw);
    free(t->want.dx);
    free(t->want.db);
    free(t->want.dw_squares);
    free(t->want.dx_squares);
}

static void run(const trial *t, const char *plan, float beta,
                backward_result *out)
{
    backward_case c = {.problem = t->problem,
                       .plan = plan,
                       .x = t->x,
                       .w = t->w,
                       .dy = t->dy,
                       .beta_w = beta,
                       .beta_b = beta,
                       .beta_x = beta};
    if (beta != 0.0f) {
        c.dw = t->old_dw;
        c.db = t->old_db;
        c.dx = t->old_dx;
    }
    cr_assert(backward_run(&c, out), "%s", backward_error());
}

/* ---- Exact ------------------------------------------------------------ */

/* One output of a trial. */
typedef struct output {
    const char *name;
    const float *got, *old;
    const double *want, *squares;
    int64_t count;
    clconv_type type;
    int log2; /* of what the output is multiplied by */
} output;

static void list_outputs(const trial *t, const backward_result *r, output out[3])
{
    const clconv_desc *d = &t->desc;
    out[0] = (output){
        "dw",       r->dw,      t->old_dw,  t->want.dw, t->want.dw_squares,
        t->w_count, d->dw_type, -d->dy_log2};
    out[1] = (output){"db", r->db, t->old_db,  t->want.db,
                      NULL, d->k,  d->db_type, -d->dy_log2};
    out[2] = (output){"dx",
                      r->dx,
                      t->old_dx,
                      t->want.dx,
                      t->want.dx_squares,
                      t->x_count,
                      d->dx_type,
                      d->dx_log2 - d->dy_log2};
}

static void expect_equal(const trial *t, const char *plan, const output *o,
                         float beta)
{
    for (int64_t i = 0; i < o->count; ++i) {
        float want = (float)ldexp(o->want[i], o->log2);
        if (beta != 0.0f)
            want += beta * o->old[i];
        if (o->type == CLCONV_F16)
            want = host_float_from_half(host_half_from_float(want));
        cr_assert_eq(o->got[i], want, "%s, plan %s: %s[%lld] is %g, not %g",
                     t->problem, plan, o->name, (long long)i, (double)o->got[i],
                     (double)want);
    }
}

static void check_exact(const char *shape, const char *tail, const char *plan,
                        float beta)
{
    trial t;
    backward_result r;
    output out[3];
    make_trial(shape, tail, SMALL_INTEGERS, &t);
    run(&t, plan, beta, &r);
    list_outputs(&t, &r, out);
    for (int i = 0; i < 3; ++i)
        expect_equal(&t, plan, &out[i], beta);
    backward_free(&r);
    free_trial(&t);
}

static void check_all(const char *tail, const char *plan)
{
    for (size_t i = 0; i < COUNT(shapes); ++i)
        check_exact(shapes[i], tail, plan, 0);
}

static void check_hard(const char *tail, const char *plan, float beta)
{
    for (size_t i = 0; i < COUNT(hard_shapes); ++i)
        check_exact(hard_shapes[i], tail, plan, beta);
}

Test(generic, mixed_nchw_is_exact_on_small_integers)
{
    check_all("", plan_default);
}

Test(generic, mixed_nhwc_is_exact_on_small_integers)
{
    check_all("_nhwc", plan_default);
}

Test(generic, fp32_is_exact_on_small_integers)
{
    check_all("_fp32", plan_default);
    check_all("_nhwc_fp32", plan_default);
}

Test(generic, a_fused_cast_and_a_split_reduction_are_exact)
{
    static const char plan[] = "bwd_data_generic:cast=fused,tile=4;"
                               "bwd_weight_generic:cast=fused,split=8";
    check_hard("", plan, 0);
    check_hard("_nhwc", plan, 0);
}

Test(generic, scalars_in_work_groups_are_exact)
{
    static const char plan[] =
        "bwd_data_generic:vec=1,lws=64,tile=4;"
        "bwd_weight_generic:vec=1,lws=64,tile=2,split=64";
    check_hard("", plan, 0);
    check_hard("_nhwc", plan, 0);
}

Test(generic, the_smallest_tiles_are_exact)
{
    static const char plan[] = "bwd_data_generic:tile=1;"
                               "bwd_weight_generic:tile=1";
    check_hard("", plan, 0);
}

Test(generic, fp16_tensors_exponents_and_beta_are_exact)
{
    check_hard("_x16_dw16_db16_dx16", plan_default, -2);
    check_hard("_nhwc_w16_dy16_dw16_db16_dx16_dylog2_dxlog1", plan_default,
               0.5f);
}

/* ---- Cases with a known answer ----------------------------------------- */

static void check_ones(const char *problem, const float *want, int64_t count)
{
    clconv_desc d;
    cr_assert_eq(clconv_desc_parse(problem, &d), CLCONV_OK, "%s", problem);
    float ones[1024];
    for (int i = 0; i < 1024; ++i)
        ones[i] = 1.0f;
    backward_case c = {.problem = problem,
                       .plan = plan_default,
                       .ops = CLCONV_OP_DW,
                       .x = ones,
                       .dy = ones};
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    for (int64_t i = 0; i < naive_w_elements(&d); ++i)
        cr_assert_eq(r.dw[i], want[i % count], "%s: dw[%lld] is %g", problem,
                     (long long)i, (double)r.dw[i]);
    backward_free(&r);
}

Test(generic, all_ones_give_the_number_of_taps)
{
    static const float depthwise[9] = {4, 6, 6, 6, 9, 9, 6, 9, 9};
    static const float in_padding[4] = {0, 0, 0, 1};
    check_ones("n1c24h6w6k24r3s3u2p1g24", depthwise, 9);
    check_ones("n1c24h6w6k24r3s3u2p1g24_nhwc", depthwise, 9);
    check_ones("n1c1h2w2k1r2s2u2p1d2", in_padding, 4);
}

Test(generic, batch_none_leaves_beta_times_the_old)
{
    float data[64] = {1, 2, 3}, old[8] = {1, -2, 3, -4, 5, -6, 7, -8};
    static const char *const plans[] = {
        "bwd_data_generic;bwd_weight_generic:split=1",
        "bwd_data_generic;bwd_weight_generic:split=8"};
    for (int i = 0; i < 2; ++i) {
        backward_case c = {.problem = "n2c4h2w2k2r1s1",
                           .plan = plans[i],
                           .batch_none = true,
                           .x = data,
                           .w = data,
                           .dy = data,
                           .dw = old,
                           .beta_w = -0.5f};
        backward_result r;
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        for (int j = 0; j < 8; ++j)
            cr_assert_eq(r.dw[j], -0.5f * old[j], "%s: %g", plans[i],
                         (double)r.dw[j]);
        backward_free(&r);
        c.dw = NULL;
        c.beta_w = 0;
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        for (int j = 0; j < 8; ++j)
            cr_assert_eq(r.dw[j], 0.0f, "%s: %g", plans[i], (double)r.dw[j]);
        backward_free(&r);
    }
}

/* ---- NaN -------------------------------------------------------------- */

static void expect_nan_where(const trial *t, const char *plan, const output *o)
{
    for (int64_t i = 0; i < o->count; ++i)
        cr_assert_eq(isnan(o->got[i]) != 0, isnan(o->want[i]) != 0,
                     "%s, plan %s: %s[%lld] is %g, by the taps %g", t->problem,
                     plan, o->name, (long long)i, (double)o->got[i], o->want[i]);
}

/* One NaN at a time, at the first, the last and a middle element. */
static void check_nan(const char *shape, const char *tail, const char *plan)
{
    trial t;
    make_trial(shape, tail, SMALL_INTEGERS, &t);
    float *tensors[3] = {t.x, t.w, t.dy};
    int64_t counts[3] = {t.x_count, t.w_count, t.dy_count};
    for (int i = 0; i < 9; ++i) {
        int64_t place = (counts[i / 3] - 1) * (i % 3) / 2;
        float before = tensors[i / 3][place];
        backward_result r;
        output out[3];
        tensors[i / 3][place] = (float)NAN;
        compute(&t);
        run(&t, plan, 0, &r);
        list_outputs(&t, &r, out);
        for (int j = 0; j < 3; ++j)
            expect_nan_where(&t, plan, &out[j]);
        backward_free(&r);
        tensors[i / 3][place] = before;
    }
    free_trial(&t);
}

Test(generic, nan_goes_exactly_where_taps_take_it)
{
    static const char *const tails[] = {"", "_nhwc"};
    for (int i = 0; i < 2; ++i) {
        check_nan("n2c3h5w21k5r3s3p1", tails[i], plan_default);
        check_nan("n2c4h9w8k4r3s3u2p1x0x2x1d2g2", tails[i], plan_default);
        check_nan("n1c3h7w7k5r1s1u2", tails[i], plan_default);
    }
}

/* ---- Rounding --------------------------------------------------------- */

/* bound: of the error over the root of the sum of squared products, and over
 * the norm of the output. */
static void check_close(const char *shape, const char *tail, const char *plan,
                        double each_bound, double norm_bound)
{
    trial t;
    backward_result r;
    output out[3];
    make_trial(shape, tail, NORMAL, &t);
    run(&t, plan, 0, &r);
    list_outputs(&t, &r, out);
    for (int i = 0; i < 3; i += 2) {
        double error = 0, size = 0;
        for (int64_t j = 0; j < out[i].count; ++j) {
            double off = fabs((double)out[i].got[j] - out[i].want[j]);
            cr_assert_leq(off, each_bound * sqrt(out[i].squares[j]),
                          "%s, plan %s: %s[%lld] is %g, not %g", t.problem,
                          plan, out[i].name, (long long)j,
                          (double)out[i].got[j], out[i].want[j]);
            error += off * off;
            size += out[i].want[j] * out[i].want[j];
        }
        cr_assert_leq(sqrt(error / size), norm_bound, "%s, plan %s: %s: %g",
                      t.problem, plan, out[i].name, sqrt(error / size));
    }
    backward_free(&r);
    free_trial(&t);
}

Test(generic, mixed_is_within_the_rounding_of_its_operands)
{
    check_close("n3c18h9w33k34r3s3p1g2", "", plan_default, 0x1p-8, 5e-4);
    check_close("n3c18h9w33k34r3s3p1g2", "_nhwc", plan_default, 0x1p-8, 5e-4);
}

Test(generic, a_dw_over_a_million_products_is_as_good_as_fp32)
{
    check_close("n1c2h1024w1024k2r3s3p1", "_fp32", plan_default, 3e-6, 1e-6);
    check_close("n1c2h1024w1024k2r3s3p1", "_nhwc_fp32", plan_default, 3e-6,
                1e-6);
}

Test(generic, ten_runs_give_the_same_bits)
{
    static const char plan[] = "bwd_data_generic;bwd_weight_generic:split=8";
    trial t;
    backward_result first, again;
    make_trial("n3c18h9w33k34r3s3p1g2", "", NORMAL, &t);
    run(&t, plan, 0, &first);
    for (int i = 0; i < 9; ++i) {
        run(&t, plan, 0, &again);
        cr_assert_eq(
            memcmp(first.dw, again.dw, (size_t)t.w_count * sizeof(float)), 0);
        cr_assert_eq(
            memcmp(first.dx, again.dx, (size_t)t.x_count * sizeof(float)), 0);
        cr_assert_eq(
            memcmp(first.db, again.db, (size_t)t.desc.k * sizeof(float)), 0);
        backward_free(&again);
    }
    backward_free(&first);
    free_trial(&t);
}

/*
 * Values that broke other convolution libraries: what fp16 makes of them. The
 * default plan and the generic one; the known list is in test_bug_cases.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "backward.h"
#include "counts.h"
#include "naive.h"
#include "random.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A problem with its data and the gradients of the definition. */
typedef struct trial {
    const char *problem, *plan, *emulate;
    clconv_desc desc;
    float *x, *w, *dy;
    double *dw, *db, *dx;
    backward_result got;
} trial;

static void *new_array(int64_t count, size_t size)
{
    void *array = calloc((size_t)count + 1, size);
    cr_assert_not_null(array);
    return array;
}

/* Normal data, dY times a factor. */
static trial new_trial(const char *problem, const char *plan, double dy_factor)
{
    random_source random = random_seeded(11);
    trial t = {.problem = problem, .plan = plan};
    cr_assert_eq(clconv_desc_parse(problem, &t.desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    int64_t x = naive_x_elements(&t.desc, t.desc.n);
    int64_t w = naive_w_elements(&t.desc);
    int64_t dy = naive_dy_elements(&t.desc, t.desc.n);
    t.x = new_array(x, sizeof *t.x);
    t.w = new_array(w, sizeof *t.w);
    t.dy = new_array(dy, sizeof *t.dy);
    random_fill_normal(&random, (size_t)x, t.x);
    random_fill_normal(&random, (size_t)w, t.w);
    random_fill_normal(&random, (size_t)dy, t.dy);
    for (int64_t i = 0; i < dy; ++i)
        t.dy[i] = (float)((double)t.dy[i] * dy_factor);
    t.dw = new_array(w, sizeof *t.dw);
    t.db = new_array(t.desc.k, sizeof *t.db);
    t.dx = new_array(x, sizeof *t.dx);
    return t;
}

static void free_trial(trial *t)
{
    free(t->x);
    free(t->w);
    free(t->dy);
    free(t->dw);
    free(t->db);
    free(t->dx);
    backward_free(&t->got);
}

/* The library's gradients, and the definition's. */
static void compute(trial *t)
{
    const backward_case c = {.problem = t->problem,
                             .plan = t->plan,
                             .emulate = t->emulate,
                             .x = t->x,
                             .w = t->w,
                             .dy = t->dy};
    cr_assert(backward_run(&c, &t->got), "%s", backward_error());
    naive_backward(&t->desc, t->desc.n, &(naive_data){t->x, t->w, t->dy},
                   &(naive_result){.dw = t->dw, .db = t->db, .dx = t->dx});
}

/* ---- Small dY ----------------------------------------------------------- */

/* The Frobenius norm of the error over that of what is right. */
static double relative_error(const float *got, const double *want, int64_t count)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < count; ++i) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(error / norm);
}

typedef struct errors {
    double dw, db, dx;
} errors;

static errors errors_of(const char *problem, const char *plan, double dy_factor)
{
    trial t = new_trial(problem, plan, dy_factor);
    compute(&t);
    const errors e = {
        relative_error(t.got.dw, t.dw, naive_w_elements(&t.desc)),
        relative_error(t.got.db, t.db, t.desc.k),
        relative_error(t.got.dx, t.dx, naive_x_elements(&t.desc, t.desc.n))};
    free_trial(&t);
    return e;
}

static const char *const plans[] = {NULL,
                                    "bwd_data_generic;bwd_weight_generic"};

#define SIZES "n2c6h12w17k5r3s3p1"
#define GROUPED "n2c6h12w17k8r3s3u2p1g2_nhwc"

/* Normal with a deviation of 4.7e-5: four in five below fp16's normal 6.1e-5,
 * the largest about 2e-4. Unscaled, subnormals are not flushed either. */
Test(bug_cases, l21_mostly_subnormal)
{
    static const struct {
        const char *problem;
        double bound;
    } cases[] = {{SIZES, 5e-4},
                 {GROUPED, 5e-4},
                 {SIZES "_scale0", 1e-3},
                 {GROUPED "_scale0", 1e-3}};
    for (size_t i = 0; i < COUNT(cases); ++i)
        for (size_t j = 0; j < COUNT(plans); ++j) {
            errors e = errors_of(cases[i].problem, plans[j], 4.7e-5);
            cr_assert(e.dw < cases[i].bound && e.dx < cases[i].bound,
                      "%s, plan %zu: dw %g, dx %g", cases[i].problem, j, e.dw,
                      e.dx);
        }
}

/* A step of 2^-34 is 0.17 % of 1e-8 after rounding; db is not rounded. */
Test(bug_cases, l22_dy_of_about_1e_8)
{
    static const char *const kept[] = {SIZES, GROUPED};
    static const char *const lost[] = {SIZES "_scale0", GROUPED "_scale0"};
    for (size_t i = 0; i < COUNT(kept); ++i)
        for (size_t j = 0; j < COUNT(plans); ++j) {
            errors e = errors_of(kept[i], plans[j], 1e-8);
            cr_assert(e.dw < 3e-3 && e.dx < 3e-3 && e.db < 1e-5,
                      "%s, plan %zu: dw %g, db %g, dx %g", kept[i], j, e.dw,
                      e.db, e.dx);
            e = errors_of(lost[i], plans[j], 1e-8);
            cr_assert(e.dw > 0.9 && e.dx > 0.9 && e.db < 1e-5,
                      "%s, plan %zu: dw %g, db %g, dx %g", lost[i], j, e.dw,
                      e.db, e.dx);
        }
}

/* ---- Large dY ----------------------------------------------------------- */

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* dW[k] is the cast of dY[k], dX that of the only dY there is for it. */
static void expect_casts(const char *weights, const char *data,
                         const float *values, int64_t count)
{
    const float one = 1;
    clconv_counts want = counts_of_cast(values, (size_t)count, 10);
    for (size_t i = 0; i < COUNT(plans); ++i) {
        backward_case c = {.problem = weights,
                           .plan = plans[i],
                           .ops = CLCONV_OP_DW,
                           .x = &one,
                           .dy = values};
        backward_result dw, dx;
        cr_assert(backward_run(&c, &dw), "%s", backward_error());
        c.problem = data, c.ops = CLCONV_OP_DX, c.w = &one;
        cr_assert(backward_run(&c, &dx), "%s", backward_error());
        for (int64_t j = 0; j < count; ++j) {
            float cast = counts_cast(values[j], 10);
            cr_assert(same(dw.dw[j], cast), "%s, plan %zu: %g became %g",
                      weights, i, (double)values[j], (double)dw.dw[j]);
            cr_assert(same(dx.dx[j], cast), "%s, plan %zu: %g became %g", data,
                      i, (double)values[j], (double)dx.dx[j]);
        }
        cr_assert_eq(dw.report.dy.saturated, want.saturated);
        cr_assert_eq(dx.report.dy.saturated, want.saturated);
        cr_assert_eq(dx.report.dy.nan, 1);
        cr_assert_eq(dx.report.dy.inf, 2);
        backward_free(&dw);
        backward_free(&dx);
    }
}

/* 65504 / 1024 is 63.96875. */
Test(bug_cases, l23_saturation_nan_and_infinity)
{
    static const float values[16] = {
        63.96875f, -63.96875f, 64,       -64,       100, -1e4f, 4e35f, -4e35f,
        3.4e38f,   NAN,        INFINITY, -INFINITY, 0,   1,     63,    1e-8f};
    expect_casts("n1c1h1w1k16r1s1", "n1c1h1w16k1r1s1", values, 16);
    expect_casts("n1c1h1w1k16r1s1_nhwc", "n1c1h4w4k1r1s1_nhwc", values, 16);
}

/* True if there is a 0 among them. */
static bool expect_exact(const trial *t, const char *output, const float *got,
                         const double *want, int64_t count)
{
    bool zero = false;
    for (int64_t i = 0; i < count; ++i) {
        zero |= want[i] == 0;
        cr_assert_eq((double)got[i], want[i], "%s, plan %s: %s[%lld] is %g",
                     t->problem, t->plan, output, (long long)i, (double)got[i]);
    }
    return zero;
}

/* Each product is 60000 * 60 * 2^10 and sums of them are exact; a partial sum
 * in fp16 would be infinite, and the difference of two of those NaN. */
static void expect_cancellation(const char *problem, const char *plan,
                                const char *emulate)
{
    trial t = new_trial(problem, plan, 1);
    t.emulate = emulate;
    for (int64_t i = 0; i < naive_x_elements(&t.desc, t.desc.n); ++i)
        t.x[i] = 60000;
    for (int64_t i = 0; i < naive_w_elements(&t.desc); ++i)
        t.w[i] = 60000;
    for (int64_t i = 0; i < naive_dy_elements(&t.desc, t.desc.n); ++i)
        t.dy[i] = i * 8 / naive_dy_elements(&t.desc, t.desc.n) % 2 ? 60 : -60;
    compute(&t);
    bool zero =
        expect_exact(&t, "dw", t.got.dw, t.dw, naive_w_elements(&t.desc));
    zero |= expect_exact(&t, "dx", t.got.dx, t.dx,
                         naive_x_elements(&t.desc, t.desc.n));
    cr_assert(zero, "%s: nothing cancels", problem);
    free_trial(&t);
}

Test(bug_cases, l25_large_terms_that_cancel)
{
    static const char *const problems[] = {
        "n8c6h4w8k1r1s1",        "n4c5h8w8k1r1s1", "n8c3h5w6k1r3s3p1",
        "n8c3h5w6k1r3s3p1_nhwc", "n1c5h6w7k8r1s1", "n1c4h6w7k8r3s3p1"};
    for (size_t i = 0; i < COUNT(problems); ++i) {
        expect_cancellation(problems[i], NULL, NULL);
        expect_cancellation(
            problems[i], "bwd_data_generic;bwd_weight_generic:split=8", NULL);
        expect_cancellation(problems[i], "bwd_data_mma;bwd_weight_mma",
                            "mma_m16n8k16");
    }
}

/* ---- Ties --------------------------------------------------------------- */

Test(bug_cases, l26_ties_round_to_even)
{
    static const float values[] = {1 + 0x1p-11f,     1 + 0x3p-11f, 1 + 0x5p-11f,
                                   -1 - 0x1p-11f,    2049,         2051,
                                   0x1p-25f,         0x3p-25f,     0x5p-25f,
                                   1 + 0x1.002p-11f, 0x1.0p-14f};
    static const float even[] = {1,        1 + 0x1p-9f,  1 + 0x1p-9f, -1,
                                 2048,     2052,         0,           0x1p-23f,
                                 0x1p-23f, 1 + 0x1p-10f, 0x1p-14f};
    static const char *const problems[] = {"n1c11h1w1k1r1s1",
                                           "n1c11h1w1k1r1s1_nhwc"};
    const float one = 1;
    for (size_t i = 0; i < 2 * COUNT(plans); ++i) {
        const backward_case c = {.problem = problems[i % 2],
                                 .plan = plans[i / 2],
                                 .ops = CLCONV_OP_DW | CLCONV_OP_DX,
                                 .x = values,
                                 .w = values,
                                 .dy = &one};
        backward_result r;
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        for (size_t j = 0; j < COUNT(values); ++j)
            cr_assert(r.dw[j] == even[j] && r.dx[j] == even[j],
                      "%s, plan %zu: %a became %a and %a", c.problem, i / 2,
                      (double)values[j], (double)r.dw[j], (double)r.dx[j]);
        backward_free(&r);
    }
}

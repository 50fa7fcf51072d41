/*
 * Gradients of 1e-8 through every way that dY can take: kernel, scalar or
 * vector staging, cast fused or separate. The expected numbers are written
 * out, 2^10 in them, so that no code is shared with what is tested.
 *
 * 1e-8 * 2^10 is 171.8 of fp16's smallest steps of 2^-24, so it rounds to
 * 172 * 2^-24, and each dY counts as 172 * 2^-34. Without the scale 1e-8 is
 * 0.17 of a step: 0. x is 1 and w is 0.5; all sums are exact in fp32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "backward.h"

enum { N = 2, C = 16, H = 8, W = 8, K = 16 };

#define SIZES "n2c16h8w8k16r3s3p1"
#define DY 1e-8f
#define KEPT (172 * 0x1p-34)

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct road {
    const char *plan, *emulate;
} road;

#define GENERIC(vec, cast)                                                     \
    {                                                                          \
        "bwd_data_generic:vec=" vec ",cast=" cast                              \
        ";bwd_weight_generic:vec=" vec ",cast=" cast,                          \
            NULL                                                               \
    }
#define MMA(unit)                                                              \
    {                                                                          \
        "bwd_data_mma;bwd_weight_mma", unit                                    \
    }

static const road roads[] = {
    GENERIC("1", "fused"),     GENERIC("1", "separate"), GENERIC("16", "fused"),
    GENERIC("16", "separate"), MMA("mma_m16n8k16"),      MMA("mma_m16n8k8"),
    {"cast:vec=1", NULL},      {"cast:vec=4", NULL},
};

static float *filled(size_t count, float value)
{
    float *data = malloc(count * sizeof *data);
    cr_assert_not_null(data);
    for (size_t i = 0; i < count; ++i)
        data[i] = value;
    return data;
}

static backward_result run(const road *way, const char *problem)
{
    float *x = filled(N * C * H * W, 1.0f), *w = filled(K * C * 9, 0.5f);
    float *dy = filled(N * K * H * W, DY);
    backward_case c = {.problem = problem,
                       .plan = way->plan,
                       .emulate = way->emulate,
                       .x = x,
                       .w = w,
                       .dy = dy};
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    free(x);
    free(w);
    free(dy);
    return r;
}

/* Positions of an axis of 8 that a tap of 3 with padding 1 pairs. */
static int pairs(int tap)
{
    return tap == 1 ? 8 : 7;
}

/* Taps of 3 that reach a position of an axis of 8. */
static int taps(int position)
{
    return position == 0 || position == 7 ? 2 : 3;
}

static void expect_weights(const backward_result *r, const road *way, double dy)
{
    for (int i = 0; i < K * C * 9; ++i) {
        double expected = N * pairs(i % 9 / 3) * pairs(i % 3) * dy;
        cr_assert_eq((double)r->dw[i], expected,
                     SIZES ", plan %s: dw[%d] is %g, not %g", way->plan, i,
                     (double)r->dw[i], expected);
    }
}

static void expect_data(const backward_result *r, const road *way, double dy)
{
    for (int i = 0; i < N * C * H * W; ++i) {
        double expected = K * 0.5 * taps(i / W % H) * taps(i % W) * dy;
        cr_assert_eq((double)r->dx[i], expected,
                     SIZES ", plan %s: dx[%d] is %g, not %g", way->plan, i,
                     (double)r->dx[i], expected);
    }
}

/* Summed from dY before rounding: 128 * 1e-8 at every scale. */
static void expect_bias(const backward_result *r, const road *way)
{
    for (int k = 0; k < K; ++k)
        cr_assert_lt(fabs((double)r->db[k] - 1.28e-6), 1.28e-6 * 1e-5,
                     SIZES ", plan %s: db[%d] is %g", way->plan, k,
                     (double)r->db[k]);
}

Test(tiny, survives_on_every_road_with_2_to_the_10)
{
    for (size_t i = 0; i < COUNT(roads); ++i) {
        backward_result r = run(&roads[i], SIZES);
        expect_weights(&r, &roads[i], KEPT);
        expect_data(&r, &roads[i], KEPT);
        expect_bias(&r, &roads[i]);
        cr_assert_eq(r.report.dy.zeroed, 0, "plan %s", roads[i].plan);
        cr_assert_eq(r.report.dy.subnormal, N * K * H * W, "plan %s",
                     roads[i].plan);
        backward_free(&r);
    }
}

/* The same roads at exponent 0 lose all of dW and dX, and say so; db holds. */
Test(tiny, is_lost_on_every_road_without_a_scale)
{
    for (size_t i = 0; i < COUNT(roads); ++i) {
        backward_result r = run(&roads[i], SIZES "_scale0");
        expect_weights(&r, &roads[i], 0);
        expect_data(&r, &roads[i], 0);
        expect_bias(&r, &roads[i]);
        cr_assert_eq(r.report.dy.zeroed, N * K * H * W, "plan %s",
                     roads[i].plan);
        backward_free(&r);
    }
}

/* fp32 arithmetic rounds nothing to fp16. */
Test(tiny, survives_in_fp32)
{
    const road roads_fp32[] = {GENERIC("1", "separate"),
                               GENERIC("16", "separate"),
                               {"cast:vec=16", NULL}};
    for (size_t i = 0; i < COUNT(roads_fp32); ++i) {
        backward_result r = run(&roads_fp32[i], SIZES "_fp32_scale0");
        double centre = (double)r.dw[4] / 1.28e-6;
        cr_assert_lt(fabs(centre - 1), 1e-6, "plan %s: %.9g of it",
                     roads_fp32[i].plan, centre);
        cr_assert_eq(r.report.dy.zeroed, 0, "plan %s", roads_fp32[i].plan);
        backward_free(&r);
    }
}

/*
 * Each judge accepts a right result and refuses one that is a little wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "counts.h"
#include "judge.h"
#include "random.h"
#include "taps.h"

/* ---- Exact -------------------------------------------------------------- */

Test(judge, exact_takes_equal_numbers)
{
    const float got[] = {1, -0.0F, 16777215};
    const double values[] = {1, 0, 16777215};
    verdict v;

    cr_assert(judge_exact(got, values, 3, &v));
}

Test(judge, exact_names_the_worst_element)
{
    const float got[] = {1, 3, 5, 6};
    const double values[] = {1, 2, 3, 6};
    verdict v;

    cr_assert_not(judge_exact(got, values, 4, &v));
    cr_assert(v.has_element);
    cr_assert_eq(v.index, 2);
    cr_assert_eq(v.got, 5.0);
    cr_assert_eq(v.expected, 3.0);
}

Test(judge, exact_refuses_one_step_and_nan)
{
    const float step[] = {nextafterf(1, 2)}, poison[] = {NAN};
    const double values[] = {1};
    verdict v;

    cr_assert_not(judge_exact(step, values, 1, &v));
    cr_assert_not(judge_exact(poison, values, 1, &v));
}

/* ---- Sums of products, as a kernel makes them --------------------------- */

enum { OUTPUTS = 256 };

/* OUTPUTS sums of depth products; what is expected, and what fp32 gives. */
typedef struct sums {
    size_t depth;
    float *a, *b; /* [OUTPUTS][depth] */
    expected e;
    float got[OUTPUTS];
} sums;

static sums sums_new(size_t depth)
{
    sums s = {.depth = depth};
    random_source random = random_seeded(11);

    s.a = calloc(OUTPUTS * depth, sizeof(float));
    s.b = calloc(OUTPUTS * depth, sizeof(float));
    s.e = (expected){.count = OUTPUTS, .flush_span = 1, .flush_block = 1};
    s.e.value = calloc(OUTPUTS, sizeof(double));
    s.e.spread = calloc(OUTPUTS, sizeof(double));
    s.e.flush = calloc(OUTPUTS, sizeof(double));
    random_fill_normal(&random, OUTPUTS * depth, s.a);
    random_fill_normal(&random, OUTPUTS * depth, s.b);
    for (size_t i = 0; i < OUTPUTS * depth; ++i) {
        double a = (double)s.a[i], b = (double)s.b[i];

        s.e.value[i / depth] += a * b;
        s.e.spread[i / depth] += a * a * b * b;
        s.e.flush[i / depth] += b * b;
    }
    for (size_t i = 0; i < OUTPUTS; ++i) {
        s.e.spread[i] = sqrt(s.e.spread[i]);
        s.e.flush[i] = sqrt(s.e.flush[i]);
    }
    return s;
}

static void sums_free(sums *s)
{
    free(s->a);
    free(s->b);
    free(s->e.value);
    free(s->e.spread);
    free(s->e.flush);
}

typedef enum rounding { NONE, A, BOTH } rounding;

/* One chain of fp32 additions; a is scaled by 2^scale_log2 for its cast, and
 * by small before that, which is what the expectation's scale is. */
static void sum_up(sums *s, rounding what, int scale_log2, float small)
{
    for (size_t i = 0; i < OUTPUTS; ++i) {
        float total = 0;

        for (size_t j = 0; j < s->depth; ++j) {
            float a = s->a[i * s->depth + j] * small;
            float b = s->b[i * s->depth + j];

            if (what != NONE)
                a = counts_cast(a, scale_log2);
            if (what == BOTH)
                b = counts_cast(b, 0);
            total += a * b;
        }
        s->got[i] = total;
    }
}

static bool is_right(const sums *s, const tolerance *t)
{
    verdict v;
    bool bound = judge_bound(s->got, &s->e, t, NULL, &v);
    bool norm = judge_norm(s->got, &s->e, t, &v);

    return bound && norm;
}

static const size_t depths[] = {1, 9, 576, 20000};

enum { DEPTH_COUNT = sizeof(depths) / sizeof(depths[0]) };

Test(judge, bounds_take_what_fp32_and_mixed_arithmetic_give)
{
    for (int i = 0; i < DEPTH_COUNT; ++i) {
        sums s = sums_new(depths[i]);
        tolerance fp32 = tolerance_fp32((double)depths[i], OUTPUTS);
        tolerance mixed = tolerance_mixed((double)depths[i], OUTPUTS, 10);

        sum_up(&s, NONE, 0, 1);
        cr_assert(is_right(&s, &fp32), "fp32, depth %zu", depths[i]);
        sum_up(&s, BOTH, 10, 1);
        cr_assert(is_right(&s, &mixed), "mixed, depth %zu", depths[i]);
        sums_free(&s);
    }
}

Test(judge, fp32_bound_refuses_one_factor_rounded_to_fp16)
{
    for (int i = 0; i < DEPTH_COUNT; ++i) {
        sums s = sums_new(depths[i]);
        tolerance t = tolerance_fp32((double)depths[i], OUTPUTS);
        verdict v;

        sum_up(&s, A, 0, 1);
        cr_assert_not(judge_bound(s.got, &s.e, &t, NULL, &v), "depth %zu",
                      depths[i]);
        cr_assert_not(judge_norm(s.got, &s.e, &t, &v), "depth %zu", depths[i]);
        sums_free(&s);
    }
}

/* The last product of one element is left out, or that of every element. */
Test(judge, bounds_refuse_a_missing_tap)
{
    for (int i = 0; i < DEPTH_COUNT; ++i) {
        sums s = sums_new(depths[i]);
        tolerance fp32 = tolerance_fp32((double)depths[i], OUTPUTS);
        tolerance mixed = tolerance_mixed((double)depths[i], OUTPUTS, 10);
        verdict v;

        sum_up(&s, NONE, 0, 1);
        s.got[7] -= s.a[8 * s.depth - 1] * s.b[8 * s.depth - 1];
        cr_assert_not(judge_bound(s.got, &s.e, &fp32, NULL, &v));
        cr_assert_eq(v.index, 7);
        sum_up(&s, BOTH, 10, 1);
        for (size_t k = 0; k < OUTPUTS; ++k)
            s.got[k] -= s.a[(k + 1) * s.depth - 1] * s.b[(k + 1) * s.depth - 1];
        cr_assert_not(judge_bound(s.got, &s.e, &mixed, NULL, &v));
        cr_assert_not(judge_norm(s.got, &s.e, &mixed, &v));
        sums_free(&s);
    }
}

Test(judge, tiny_data_pass_with_2_to_the_10_and_fail_unscaled)
{
    for (int i = 0; i < DEPTH_COUNT; ++i) {
        sums s = sums_new(depths[i]);
        tolerance t = tolerance_mixed((double)depths[i], OUTPUTS, 10);
        verdict v;

        t.scale = 0x1p-27;
        sum_up(&s, BOTH, 10, 0x1p-27F);
        cr_assert(is_right(&s, &t), "depth %zu", depths[i]);
        sum_up(&s, BOTH, 0, 0x1p-27F);
        cr_assert_not(judge_bound(s.got, &s.e, &t, NULL, &v));
        cr_assert_not(judge_norm(s.got, &s.e, &t, &v));
        sum_up(&s, BOTH, 6, 0x1p-27F);
        cr_assert_not(judge_norm(s.got, &s.e, &t, &v));
        sums_free(&s);
    }
}

Test(judge, flush_terms_are_shared_as_the_spans_say)
{
    double value[8] = {0}, spread[8] = {0};
    double flush[4] = {1, 2, 10, 20};
    /* Two groups of two filters with two taps each. */
    const expected e = {.count = 8,
                        .value = value,
                        .spread = spread,
                        .flush = flush,
                        .flush_block = 2,
                        .flush_span = 4};
    const tolerance t = {.scale = 1, .per_flush = 1};
    float right[8] = {1, 2, 1, 2, 10, 20, 10, 20};
    verdict v;

    cr_assert(judge_bound(right, &e, &t, NULL, &v));
    right[2] = 1.5F;
    cr_assert_not(judge_bound(right, &e, &t, NULL, &v));
    cr_assert_eq(v.index, 2);
}

/* ---- Marks -------------------------------------------------------------- */

static bool one_element(float got, uint8_t mark, verdict *v)
{
    double value = 1, spread = 1;
    const expected e = {.count = 1, .value = &value, .spread = &spread};
    const tolerance t = tolerance_fp32(1, 1);

    return judge_bound(&got, &e, &t, &mark, v);
}

Test(judge, nan_and_inf_must_arrive_and_stay_away)
{
    verdict v;

    cr_assert(one_element(NAN, JUDGE_NAN, &v));
    cr_assert_not(one_element(1, JUDGE_NAN, &v));
    cr_assert_not(one_element(INFINITY, JUDGE_NAN, &v));
    cr_assert(one_element(INFINITY, JUDGE_INF, &v));
    cr_assert(one_element(NAN, JUDGE_INF, &v));
    cr_assert_not(one_element(1, JUDGE_INF, &v));
    cr_assert_not(one_element(63.97F, JUDGE_INF | JUDGE_ALLOWED, &v));
    cr_assert(one_element(NAN, JUDGE_ALLOWED, &v));
    cr_assert(one_element(1, JUDGE_ALLOWED, &v));
    cr_assert_not(one_element(1.001F, JUDGE_ALLOWED, &v));
    cr_assert(one_element(1, 0, &v));
    cr_assert_not(one_element(NAN, 0, &v));
    cr_assert_not(one_element(INFINITY, 0, &v));
}

Test(judge, norm_refuses_nan)
{
    double value = 1, spread = 1;
    const expected e = {.count = 1, .value = &value, .spread = &spread};
    const tolerance t = tolerance_fp32(1, 1);
    const float got = NAN;
    verdict v;

    cr_assert_not(judge_norm(&got, &e, &t, &v));
}

/* ---- Counts ------------------------------------------------------------- */

Test(judge, cast_clips_scales_rounds_to_even_and_keeps_nan)
{
    cr_assert_eq(counts_cast(4e35F, 10), 65504 * 0x1p-10F);
    cr_assert_eq(counts_cast(-100, 10), -65504 * 0x1p-10F);
    cr_assert_eq(counts_cast(0x1.002p0F, 10), 1.0F);
    cr_assert_eq(counts_cast(0x1.006p0F, 10), 0x1.008p0F);
    cr_assert_eq(counts_cast(1e-13F, 10), 0.0F);
    cr_assert_eq(counts_cast(0x1p-34F, 10), 0x1p-34F);
    cr_assert(isnan(counts_cast(NAN, 10)));
    cr_assert_eq(counts_cast(-INFINITY, 10), -INFINITY);
}

Test(judge, counts_follow_the_header)
{
    /* At 2^10: 0; lost; lost at a tie; subnormal; normal at a tie; normal;
     * saturated twice; NaN; Inf twice. */
    const float values[] = {
        0,      1e-13F, 0x1p-35F, 0x1.8p-35F, 0x1p-24F - 0x1p-35F, 1, 100,
        -4e35F, NAN,    INFINITY, -INFINITY};
    clconv_counts c = counts_of_cast(values, 11, 10);

    cr_assert_eq(c.nonzero, 9);
    cr_assert_eq(c.zeroed, 2);
    cr_assert_eq(c.subnormal, 1);
    cr_assert_eq(c.saturated, 2);
    cr_assert_eq(c.nan, 1);
    cr_assert_eq(c.inf, 2);
}

/* ---- Taps --------------------------------------------------------------- */

typedef struct visits {
    int inside[64], padding[64];
} visits;

static void visit_count(void *user, size_t output, size_t other)
{
    visits *seen = user;

    if (other == TAPS_PADDING)
        ++seen->padding[output];
    else
        ++seen->inside[output];
}

/* 2x2 input, 2x2 filter, padding 1, stride 2, dilation 2: y is 1x1, and of
 * its taps only (1, 1) meets x, at (1, 1). */
Test(judge, taps_tell_padding_from_what_is_inside)
{
    clconv_desc d = {.n = 1,
                     .c = 1,
                     .h = 2,
                     .w = 2,
                     .k = 1,
                     .r = 2,
                     .s = 2,
                     .stride_h = 2,
                     .stride_w = 2,
                     .pad_top = 1,
                     .pad_bottom = 1,
                     .pad_left = 1,
                     .pad_right = 1,
                     .dilation_h = 2,
                     .dilation_w = 2,
                     .groups = 1};
    visits dw = {{0}, {0}}, dx = {{0}, {0}};
    shape z;

    cr_assert(shape_from_desc(&d, &z));
    cr_assert_eq(z.p, 1);
    taps_dy_to_dw(&z, 0, visit_count, &dw);
    taps_dy_to_dx(&z, 0, visit_count, &dx);
    for (int i = 0; i < 4; ++i) {
        cr_assert_eq(dw.inside[i], i == 3, "dw %d", i);
        cr_assert_eq(dw.padding[i], i != 3, "dw %d", i);
        cr_assert_eq(dx.inside[i], i == 3, "dx %d", i);
    }
}

/* One row of 5, filter of 3, stride 2, padding 1: y has 3 columns. */
Test(judge, taps_leave_out_what_a_stride_skips)
{
    clconv_desc d = {.n = 1,
                     .c = 1,
                     .h = 1,
                     .w = 5,
                     .k = 2,
                     .r = 1,
                     .s = 3,
                     .stride_h = 1,
                     .stride_w = 2,
                     .pad_left = 1,
                     .pad_right = 1,
                     .dilation_h = 1,
                     .dilation_w = 1,
                     .groups = 1};
    visits even = {{0}, {0}}, last = {{0}, {0}};
    shape z;

    cr_assert(shape_from_desc(&d, &z));
    taps_x_to_dw(&z, 2, visit_count, &even);
    taps_x_to_dw(&z, 3, visit_count, &last);
    /* x[2] meets tap 1 alone; x[3] taps 0 and 2; both filters. */
    for (int k = 0; k < 2; ++k) {
        cr_assert_eq(even.inside[3 * k + 1], 1);
        cr_assert_eq(even.inside[3 * k] + even.inside[3 * k + 2], 0);
        cr_assert_eq(last.inside[3 * k] + last.inside[3 * k + 2], 2);
        cr_assert_eq(last.inside[3 * k + 1], 0);
    }
}

/*
 * The cast: what it rounds to, what it counts, and dbias.
 *
 * Rounded values are seen through a gradient that copies them: with one
 * pixel, one image and a dY (or X) of 1, dW is the other operand.
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

static const char separate[] = "bwd_data_generic:cast=separate;"
                               "bwd_weight_generic:cast=separate";
static const char fused[] = "bwd_data_generic:cast=fused;"
                            "bwd_weight_generic:cast=fused";

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float *new_floats(int64_t count)
{
    float *values = calloc((size_t)count + 1, sizeof *values);
    cr_assert_not_null(values);
    return values;
}

/* ---- What a cast must do, element by element -------------------------- */

#define HALF_MAX 65504.0f

static float scaled(float value, int log2)
{
    return (float)ldexp((double)value, log2);
}

/* The fp16 value, as a float, in the units that are stored. */
static float rounded(const clconv_desc *d, float value, int log2)
{
    float limit = scaled(HALF_MAX, -log2);
    if (d->overflow == CLCONV_SATURATE && isfinite(value) && fabsf(value) > limit)
        value = copysignf(limit, value);
    return host_float_from_half(host_half_from_float(scaled(value, log2)));
}

static void count_element(const clconv_desc *d, float value, int log2,
                          bool rounds, clconv_counts *out)
{
    float after = fabsf(rounds ? rounded(d, value, log2) : value);
    bool nonzero = value != 0.0f && !isnan(value);
    out->nonzero += nonzero;
    out->nan += isnan(value) != 0;
    out->inf += isinf(value) != 0;
    if (!rounds)
        return;
    out->zeroed += nonzero && after == 0.0f;
    out->subnormal += after > 0.0f && after < 0x1p-14f;
    out->saturated += isfinite(value) && fabsf(value) > scaled(HALF_MAX, -log2);
}

/* ---- Rounding --------------------------------------------------------- */

#define PER_HALF 6
#define RANDOM_PATTERNS 65536
#define PATTERNS (65536 * PER_HALF + RANDOM_PATTERNS)

/* The fp16 value after this one; beyond the largest, what would be next if
 * the exponents went on: from the midpoint to that on, numbers overflow. */
static double next_half(uint32_t h)
{
    if ((h & 0x7fff) == 0x7bff)
        return h & 0x8000 ? -65536.0 : 65536.0;
    return (double)host_float_from_half((uint16_t)(h + 1));
}

/* Each fp16 value over 2^log2, the floats beside it, and the same around the
 * midpoint to the next; then floats of random bits. */
static float *make_patterns(int log2)
{
    float *out = new_floats(PATTERNS);
    random_source random = random_seeded(1);
    for (uint32_t h = 0; h < 65536; ++h) {
        float value = host_float_from_half((uint16_t)h);
        uint32_t at = bits_of(scaled(value, -log2));
        uint32_t middle =
            bits_of(scaled((float)(((double)value + next_half(h)) / 2), -log2));
        for (uint32_t i = 0; i < 3; ++i) {
            out[h * PER_HALF + i] = float_from_bits(at + i - 1);
            out[h * PER_HALF + 3 + i] = float_from_bits(middle + i - 1);
        }
    }
    for (int i = 0; i < RANDOM_PATTERNS; ++i)
        out[65536 * PER_HALF + i] =
            float_from_bits((uint32_t)random_bits(&random));
    return out;
}

static void expect_patterns(const backward_case *c, const clconv_desc *d,
                            const float *in, const float *got, int log2)
{
    for (int i = 0; i < PATTERNS; ++i) {
        float want = scaled(rounded(d, in[i], log2), -log2);
        bool same = isnan(want) ? isnan(got[i]) : got[i] == want;
        cr_assert(same, "%s, plan %s: %a (bits %08x) became %a, not %a",
                  c->problem, c->plan, (double)in[i], bits_of(in[i]),
                  (double)got[i], (double)want);
    }
}

/* tail: what follows the sizes in the problem string. */
static void check_rounding(const char *tail, const char *plan, int log2)
{
    char many_k[96], many_c[96];
    float one = 1.0f;
    snprintf(many_k, sizeof many_k, "n1c1h1w1k%dr1s1_nhwc%s", PATTERNS, tail);
    snprintf(many_c, sizeof many_c, "n1c%dh1w1k1r1s1_nhwc%s", PATTERNS, tail);

    float *patterns = make_patterns(log2);
    backward_case c = {.problem = many_k,
                       .plan = plan,
                       .ops = CLCONV_OP_DW,
                       .x = &one,
                       .dy = patterns};
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    expect_patterns(&c, &r.desc, patterns, r.dw, log2);
    backward_free(&r);
    free(patterns);

    patterns = make_patterns(0);
    c = (backward_case){.problem = many_c,
                        .plan = plan,
                        .ops = CLCONV_OP_DW | CLCONV_OP_DX,
                        .x = patterns,
                        .w = patterns,
                        .dy = &one};
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    expect_patterns(&c, &r.desc, patterns, r.dw, 0);
    expect_patterns(&c, &r.desc, patterns, r.dx, 0);
    backward_free(&r);
    free(patterns);
}

Test(cast, a_separate_cast_rounds_to_nearest_even_and_saturates)
{
    check_rounding("", separate, 10);
}

Test(cast, a_fused_cast_rounds_to_nearest_even_and_saturates)
{
    check_rounding("", fused, 10);
}

Test(cast, a_separate_cast_overflows_to_infinity_where_asked)
{
    check_rounding("_inf", separate, 10);
}

/* Here no store to fp16 makes an infinity of 65536. */
Test(cast, a_fused_cast_overflows_to_infinity_where_asked)
{
    check_rounding("_inf", fused, 10);
}

Test(cast, other_scales_round_as_well)
{
    check_rounding("_scale-3", fused, -3);
}

/* ---- Counts ----------------------------------------------------------- */

/* Random bits, some of them made 0 and some of moderate size, so that every
 * class occurs. */
static float *make_mixture(int64_t count, uint64_t seed)
{
    float *out = new_floats(count);
    random_source random = random_seeded(seed);
    for (int64_t i = 0; i < count; ++i) {
        uint32_t bits = (uint32_t)random_bits(&random);
        if (bits % 7 == 0)
            bits &= 0x80000000u;
        else if (bits % 7 < 4) /* exponents from 2^-47 to 2^16 */
            bits = (bits & 0x807fffffu) | (80u + bits % 64u) << 23;
        out[i] = float_from_bits(bits);
    }
    return out;
}

static void expect_counts(const backward_case *c, const char *tensor,
                          const clconv_counts *got, const clconv_counts *want)
{
    const uint64_t *a = &got->nonzero, *b = &want->nonzero;
    static const char *const names[] = {"nonzero",   "zeroed", "subnormal",
                                        "saturated", "nan",    "inf"};
    for (int i = 0; i < 6; ++i)
        cr_assert_eq(a[i], b[i], "%s, plan %s: %s.%s is %llu, not %llu",
                     c->problem, c->plan, tensor, names[i],
                     (unsigned long long)a[i], (unsigned long long)b[i]);
}

/* What the library counts of an input. */
static clconv_counts count_input(const clconv_desc *d, clconv_type type,
                                 const float *values, int64_t count, int log2)
{
    clconv_counts counts = {0};
    bool is_half = type == CLCONV_F16;
    for (int64_t i = 0; i < count; ++i) {
        float value = values[i];
        if (is_half)
            value = host_float_from_half(host_half_from_float(value));
        count_element(d, value, is_half ? 0 : log2,
                      is_half || d->math == CLCONV_MIXED, &counts);
    }
    return counts;
}

static void check_counts(const char *problem, const char *plan, unsigned ops)
{
    clconv_desc d;
    cr_assert_eq(clconv_desc_parse(problem, &d), CLCONV_OK, "%s", problem);
    int64_t dy_count = naive_dy_elements(&d, d.n);
    int64_t x_count = naive_x_elements(&d, d.n);
    float *dy = make_mixture(dy_count, 2);
    float *x = make_mixture(x_count, 3);
    float *w = make_mixture(naive_w_elements(&d), 4);
    backward_case c = {
        .problem = problem, .plan = plan, .ops = ops, .x = x, .w = w, .dy = dy};
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    int log2 = d.math == CLCONV_MIXED ? d.scale_log2 : 0;
    clconv_counts want = count_input(&d, d.dy_type, dy, dy_count, log2);
    expect_counts(&c, "dy", &r.report.dy, &want);
    want = count_input(&d, d.x_type, x, x_count, 0);
    if (ops & CLCONV_OP_DW)
        expect_counts(&c, "x", &r.report.x, &want);
    want = count_input(&d, d.w_type, w, naive_w_elements(&d), 0);
    if (ops & CLCONV_OP_DX)
        expect_counts(&c, "w", &r.report.w, &want);
    backward_free(&r);
    free(dy);
    free(x);
    free(w);
}

static const char work_groups[] =
    "cast:vec=4,lws=64,chunk=4096;bwd_data_generic;bwd_weight_generic";
static const char scalars[] =
    "cast:vec=1,lws=256,chunk=4096;bwd_data_generic;bwd_weight_generic";

Test(cast, counts_are_exact)
{
    const char *problems[] = {"n3c5h23w19k7r3s3p1", "n3c5h23w19k7r3s3p1_nhwc",
                              "n2c3h5w7k21r1s1", "n2c3h5w7k21r1s1_nhwc"};
    for (int i = 0; i < 4; ++i)
        check_counts(problems[i], separate, CLCONV_OP_BACKWARD);
    check_counts(problems[0], fused, CLCONV_OP_BACKWARD);
}

Test(cast, counts_are_exact_without_dbias_and_for_every_variant)
{
    const char *problems[] = {"n3c5h91w47k7r1s1", "n3c5h91w47k7r1s1_nhwc"};
    for (int i = 0; i < 2; ++i) {
        check_counts(problems[i], separate, CLCONV_OP_DW | CLCONV_OP_DX);
        check_counts(problems[i], work_groups, CLCONV_OP_DW | CLCONV_OP_DB);
        check_counts(problems[i], scalars, CLCONV_OP_DB);
    }
}

Test(cast, counts_of_what_is_not_cast)
{
    check_counts("n3c5h23w19k7r3s3p1_fp32", separate, CLCONV_OP_BACKWARD);
    check_counts("n3c5h23w19k7r3s3p1_nhwc_x16_w16_dy16_inf", separate,
                 CLCONV_OP_BACKWARD);
}

/* ---- dbias ------------------------------------------------------------ */

static void check_bias(const char *problem, const char *plan, float beta)
{
    clconv_desc d;
    cr_assert_eq(clconv_desc_parse(problem, &d), CLCONV_OK, "%s", problem);
    int64_t count = naive_dy_elements(&d, d.n);
    float *dy = new_floats(count), *old = new_floats(d.k);
    double *want = calloc((size_t)d.k, sizeof *want);
    random_source random = random_seeded(5);
    random_fill_normal(&random, (size_t)count, dy);
    for (int64_t i = 0; i < count; ++i)
        dy[i] = 1e-8f * (0.5f + dy[i]);
    random_fill_normal(&random, (size_t)d.k, old);
    naive_data in = {.dy = dy};
    naive_result sums = {.db = want};
    naive_backward(&d, d.n, &in, &sums);

    backward_case c = {.problem = problem,
                       .plan = plan,
                       .ops = CLCONV_OP_DB,
                       .dy = dy,
                       .db = old,
                       .beta_b = beta};
    backward_result out;
    cr_assert(backward_run(&c, &out), "%s", backward_error());
    double error = 0, size = 0;
    for (int64_t k = 0; k < d.k; ++k) {
        double exact = ldexp(want[k], -d.dy_log2) + (double)(beta * old[k]);
        error += pow((double)out.db[k] - exact, 2);
        size += exact * exact;
    }
    cr_assert_leq(sqrt(error / size), 1e-6, "%s, plan %s: relative error %g",
                  problem, plan, sqrt(error / size));
    backward_free(&out);
    free(dy);
    free(old);
    free(want);
}

Test(cast, dbias_of_a_million_small_elements_is_as_good_as_fp32)
{
    check_bias("n1c1h1024w1024k2r1s1", separate, 0);
    check_bias("n1c1h1024w1024k2r1s1_nhwc", separate, 0);
    check_bias("n1000c1h7w9k17r1s1", separate, 0);
    check_bias("n1000c1h7w9k17r1s1_nhwc", separate, 0);
    check_bias("n2c1h3w5k20011r1s1", separate, 0);
    check_bias("n2c1h3w5k20011r1s1_nhwc", separate, 0);
    check_bias("n40c1h50w50k20r1s1_fp32_dylog5", separate, 0.5f);
}

/* Of equal elements additions err to the same side, by up to 2^-24 of the sum
 * so far: 1024 of them by 2^-15 of the whole, while one chain over the 16384
 * pixels of a work-group, or over 15000 images, is 1.5e-4 off. */
static void check_equal_bias(const char *problem)
{
    clconv_desc d;
    cr_assert_eq(clconv_desc_parse(problem, &d), CLCONV_OK, "%s", problem);
    int64_t count = naive_dy_elements(&d, d.n);
    float *dy = new_floats(count);
    for (int64_t i = 0; i < count; ++i)
        dy[i] = 0.7f;
    backward_case c = {
        .problem = problem, .plan = separate, .ops = CLCONV_OP_DB, .dy = dy};
    backward_result out;
    cr_assert(backward_run(&c, &out), "%s", backward_error());
    double exact = (double)0.7f * (double)(count / d.k);
    for (int64_t k = 0; k < d.k; ++k)
        cr_assert_leq(fabs((double)out.db[k] / exact - 1), 0x1p-15,
                      "%s: db[%d] is %.9g, not %.9g", problem, (int)k,
                      (double)out.db[k], exact);
    backward_free(&out);
    free(dy);
}

Test(cast, dbias_has_no_long_chain_of_additions)
{
    check_equal_bias("n1c1h1024w1024k1r1s1");
    check_equal_bias("n1c1h1024w1024k1r1s1_nhwc");
    check_equal_bias("n15000c1h1w1k2r1s1");
    check_equal_bias("n15000c1h1w1k2r1s1_nhwc");
}

Test(cast, dbias_by_every_variant)
{
    const char *plans[] = {work_groups, scalars};
    for (int i = 0; i < 2; ++i) {
        check_bias("n3c1h91w47k19r1s1", plans[i], -2);
        check_bias("n3c1h91w47k19r1s1_nhwc", plans[i], -2);
    }
}

Test(cast, dbias_keeps_nan_and_infinity_apart)
{
    const char *problems[] = {"n2c1h9w9k3r1s1", "n2c1h9w9k3r1s1_nhwc"};
    for (int i = 0; i < 2; ++i) {
        float *dy = new_floats(2 * 81 * 3);
        for (int j = 0; j < 2 * 81 * 3; ++j)
            dy[j] = 1.0f;
        bool nchw = i == 0;
        dy[nchw ? 5 : 5 * 3] = (float)NAN;
        dy[nchw ? 81 + 80 : 80 * 3 + 1] = (float)-INFINITY;
        backward_case c = {.problem = problems[i], .ops = CLCONV_OP_DB, .dy = dy};
        backward_result r;
        cr_assert(backward_run(&c, &r), "%s", backward_error());
        cr_assert(isnan(r.db[0]), "%s: %g", problems[i], (double)r.db[0]);
        cr_assert(isinf(r.db[1]) && r.db[1] < 0, "%s: %g", problems[i],
                  (double)r.db[1]);
        cr_assert_eq(r.db[2], 162.0f, "%s: %g", problems[i], (double)r.db[2]);
        backward_free(&r);
        free(dy);
    }
}

Test(cast, dbias_of_no_image_is_beta_times_the_old)
{
    float dy[4] = {1, 2, 3, 4}, old[2] = {3, -5};
    backward_case c = {.problem = "n2c1h1w1k2r1s1",
                       .ops = CLCONV_OP_DB,
                       .batch_none = true,
                       .dy = dy,
                       .db = old,
                       .beta_b = 2};
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    cr_assert(r.db[0] == 6.0f && r.db[1] == -10.0f, "%g %g", (double)r.db[0],
              (double)r.db[1]);
    backward_free(&r);
    c.beta_b = 0;
    c.db = NULL;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    cr_assert(r.db[0] == 0.0f && r.db[1] == 0.0f, "%g %g", (double)r.db[0],
              (double)r.db[1]);
    backward_free(&r);
}

Test(cast, an_fp16_dbias_is_rounded_and_counted)
{
    /* Sums 0, 2^-15, 2^-30, 70000, Inf, NaN. */
    float dy[6] = {0, 0x1p-15f, 0x1p-30f, 70000, (float)INFINITY, (float)NAN};
    backward_case c = {
        .problem = "n1c1h1w1k6r1s1_db16", .ops = CLCONV_OP_DB, .dy = dy};
    clconv_counts want = {.nonzero = 4,
                          .zeroed = 1,
                          .subnormal = 1,
                          .saturated = 1,
                          .nan = 1,
                          .inf = 1};
    backward_result r;
    cr_assert(backward_run(&c, &r), "%s", backward_error());
    cr_assert(r.db[0] == 0 && r.db[1] == 0x1p-15f && r.db[2] == 0 &&
              r.db[3] == HALF_MAX && isinf(r.db[4]) && isnan(r.db[5]));
    expect_counts(&c, "db", &r.report.db, &want);
    backward_free(&r);
}

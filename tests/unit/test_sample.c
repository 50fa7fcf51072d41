/*
 * The data that plans are timed and judged with.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "elements.h"
#include "host.h"
#include "sample.h"

static clconv_problem parse(const char *text)
{
    clconv_desc desc;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse(text, &desc), CLCONV_OK, "%s", text);
    cr_assert_eq(clconv_problem_init(&desc, &p), CLCONV_OK, "%s", text);
    return p;
}

static float *make(const clconv_problem *p, clconv_sample sample,
                   clconv_tensor tensor)
{
    float *values = clconv_sample_new(p, sample, tensor);
    cr_assert_not_null(values);
    return values;
}

/* ---- Elements ---------------------------------------------------------- */

Test(sample, every_fp16_number_is_read)
{
    for (unsigned i = 0; i < 0x10000; ++i) {
        uint16_t bits = (uint16_t)i;
        float got, want = host_float_from_half(bits);
        clconv_elements_unpack(CLCONV_F16, &bits, 1, &got);
        cr_assert(got == want || (isnan(got) && isnan(want)),
                  "0x%04x is %g, not %g", i, (double)got, (double)want);
        cr_assert_eq(!signbit(got), !signbit(want), "0x%04x", i);
    }
}

Test(sample, what_is_made_for_fp16_is_exact_there)
{
    clconv_problem p = parse("n2c3h5w7k4r3s3_x16_w16_dy16");
    for (int s = 0; s < CLCONV_SAMPLES; ++s)
        for (int t = CLCONV_DY; t <= CLCONV_W; ++t) {
            size_t count = (size_t)clconv_problem_elements(&p, (clconv_tensor)t);
            float *values = make(&p, (clconv_sample)s, (clconv_tensor)t);
            for (size_t i = 0; i < count; ++i) {
                uint16_t bits;
                clconv_elements_pack(CLCONV_F16, &values[i], 1, &bits);
                cr_assert_eq(host_float_from_half(bits), values[i], "%g",
                             (double)values[i]);
            }
            free(values);
        }
}

/* ---- Samples ----------------------------------------------------------- */

static double size_of(const float *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum / (double)count);
}

Test(sample, random_data_is_as_large_as_it_says)
{
    clconv_problem p = parse("n4c8h20w20k8r3s3");
    size_t count = (size_t)clconv_problem_elements(&p, CLCONV_DY);
    float *dy = make(&p, CLCONV_SAMPLE_RANDOM, CLCONV_DY);
    float *tiny = make(&p, CLCONV_SAMPLE_TINY, CLCONV_DY);
    float *x = make(&p, CLCONV_SAMPLE_RANDOM, CLCONV_X);
    cr_assert_float_eq(size_of(dy, count) * 0x1p10, 1, 0.05);
    cr_assert_float_eq(size_of(x, count), 1, 0.05);
    cr_assert_lt(size_of(tiny, count), 1.1e-8);
    for (size_t i = 0; i < count; ++i)
        cr_assert_eq(tiny[i], dy[i] * 0x1p-17F);
    free(x);
    free(tiny);
    free(dy);
}

/* |sum over pixels| of each channel and |sum over channels| of each pixel, in
 * units of what random signs would leave. */
static double left_over(const clconv_problem *p, const float *dy, bool channels)
{
    size_t k = (size_t)p->k, pixels = (size_t)(p->p * p->q);
    size_t outer = channels ? k : pixels, inner = channels ? pixels : k;
    double squares = 0, all = 0;
    for (size_t i = 0; i < outer; ++i) {
        double sum = 0;
        for (size_t j = 0; j < inner; ++j) {
            size_t channel = channels ? i : j, pixel = channels ? j : i;
            size_t at = p->layout == CLCONV_NCHW ? channel * pixels + pixel
                                                 : pixel * k + channel;
            sum += (double)dy[at];
            all += (double)dy[at] * (double)dy[at];
        }
        squares += sum * sum;
    }
    return sqrt(squares / all);
}

Test(sample, cancelling_data_cancels_over_pixels_and_channels)
{
    static const char *const problems[] = {"n1c8h12w12k16r1s1",
                                           "n1c8h12w12k16r1s1_nhwc"};
    for (int i = 0; i < 2; ++i) {
        clconv_problem p = parse(problems[i]);
        float *dy = make(&p, CLCONV_SAMPLE_CANCELLING, CLCONV_DY);
        float *noise = make(&p, CLCONV_SAMPLE_RANDOM, CLCONV_DY);
        for (int channels = 0; channels < 2; ++channels) {
            cr_assert_lt(left_over(&p, dy, channels), 0.1, "%s", problems[i]);
            cr_assert_gt(left_over(&p, noise, channels), 0.5, "%s", problems[i]);
        }
        free(noise);
        free(dy);
    }
}

Test(sample, integers_are_small_and_of_all_kinds)
{
    clconv_problem p = parse("n2c3h9w9k4r3s3_dy16");
    float *dy = make(&p, CLCONV_SAMPLE_INTEGERS, CLCONV_DY);
    int seen[7] = {0};
    for (int64_t i = 0; i < clconv_problem_elements(&p, CLCONV_DY); ++i) {
        cr_assert_eq(dy[i], rintf(dy[i]));
        cr_assert_leq(fabsf(dy[i]), 3);
        seen[(int)dy[i] + 3]++;
    }
    for (int i = 0; i < 7; ++i)
        cr_assert_gt(seen[i], 0, "%d", i - 3);
    free(dy);
}

/*
 * Every product of the definition is one element of a phase, shifted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "tile_phase.h"

static clconv_problem parse(const char *text)
{
    clconv_desc d;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse(text, &d), CLCONV_OK, "%s: %s", text,
                 clconv_last_error());
    cr_assert_eq(clconv_problem_init(&d, &p), CLCONV_OK, "%s", text);
    return p;
}

/* Input in + pad is element (in + pad) / stride of the phase of tap, which
 * meets output out at the tap's shift. */
static void expect_pair(const char *text, const clconv_tile_axis *a,
                        int64_t out, int64_t tap)
{
    int64_t padded = out * a->stride + tap * a->dilation;
    int64_t in = padded - a->pad, element = padded / a->stride;
    int64_t shift = tap * a->dilation / a->stride;
    if (in < 0 || in >= a->in)
        return;
    clconv_tile_span s = clconv_tile_phase_span(a, tap % a->step);
    cr_assert(tap % a->step < a->phases, "%s: tap %d", text, (int)tap);
    cr_assert(s.first <= element && element < s.end,
              "%s: tap %d, output %d: element %d is not in %d .. %d", text,
              (int)tap, (int)out, (int)element, (int)s.first, (int)s.end - 1);
    cr_assert_eq(element - shift, out, "%s: tap %d, output %d", text, (int)tap,
                 (int)out);
    cr_assert_leq(shift, a->reach, "%s: tap %d", text, (int)tap);
}

/* What a phase holds besides must be inputs too: packing reads them. */
static void expect_inputs(const char *text, const clconv_tile_axis *a,
                          int64_t phase)
{
    clconv_tile_span s = clconv_tile_phase_span(a, phase);
    int64_t rest = phase * a->dilation % a->stride;
    if (s.end <= s.first)
        return;
    cr_assert_geq(s.first * a->stride + rest, a->pad, "%s: phase %d", text,
                  (int)phase);
    cr_assert_lt((s.end - 1) * a->stride + rest - a->pad, a->in, "%s: phase %d",
                 text, (int)phase);
}

static void expect_axis(const char *text, clconv_tile_axis a)
{
    int64_t most = 0;
    for (int64_t tap = 0; tap < a.taps; ++tap)
        for (int64_t out = 0; out < a.out; ++out)
            expect_pair(text, &a, out, tap);
    for (int64_t phase = 0; phase < a.phases; ++phase) {
        int64_t taps = (a.taps - 1 - phase) / a.step + 1;
        expect_inputs(text, &a, phase);
        most = taps > most ? taps : most;
    }
    cr_assert_eq(clconv_tile_most_taps(&a), most, "%s", text);
}

Test(tile_phase, every_product_is_in_the_phase_of_its_tap)
{
    static const char *const problems[] = {
        "n1c1h9w10k1r3s3p1",
        "n1c1h9w10k1r3s3u2p1",
        "n1c1h8w9k1r3s3u2",
        "n1c1h23w37k1r7s5u2x3p3x2",
        "n1c1h17w22k1r3s3u4x6p3d2x3",
        "n1c1h13w19k1r3s3u2p2d2",
        "n1c1h40w41k1r2s2u15x16",
        "n1c1h2w1k1r3s3u2p1",
        "n1c1h5w3k1r1s2u3p0x0x17x2",
        "n1c1h12w12k1r3s3p3x5d3x5",
        "n1c1h6w7k1r1s1",
        "n1c1h6w7k1r1s1u2d2147418112",
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) {
        clconv_problem p = parse(problems[i]);
        expect_axis(problems[i], clconv_tile_rows(&p));
        expect_axis(problems[i], clconv_tile_columns(&p));
    }
}

Test(tile_phase, without_stride_and_padding_one_tap_makes_one_long_row)
{
    clconv_problem flat = parse("n1c1h6w7k1r1s1"),
                   other = parse("n1c1h6w7k1r1s1p0x0x0x1");
    cr_assert_eq(clconv_tile_rows(&flat).in, 1);
    cr_assert_eq(clconv_tile_columns(&flat).in, 42);
    cr_assert_eq(clconv_tile_columns(&flat).out, 42);
    cr_assert_eq(clconv_tile_rows(&other).in, 6);
    cr_assert_eq(clconv_tile_columns(&other).out, 8);
}

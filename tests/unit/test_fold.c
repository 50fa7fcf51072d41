/*
 * Every product of the definition is one of the folded convolution.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>

#include "wgmma/fold.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static clconv_problem parse(const char *text)
{
    clconv_desc d;
    clconv_problem p;
    cr_assert_eq(clconv_desc_parse(text, &d), CLCONV_OK, "%s: %s", text,
                 clconv_last_error());
    cr_assert_eq(clconv_problem_init(&d, &p), CLCONV_OK, "%s", text);
    return p;
}

static const char *const problems[] = {
    "n1c3h20w22k8r7s7u2p3",       "n1c3h17w12k8r3s3p1",
    "n1c16h9w10k8r3s3p1",         "n1c2h13w30k8r5s4u3x2p2x4x1x3",
    "n1c1h12w12k8r8s8u4p0x1x2x3", "n1c1h20w20k8r1s1u4",
    "n1c4h40w41k8r4s4u2p1x0x1x0", "n1c1h28w28k8r5s5p2",
};

/* ---- Which ------------------------------------------------------------- */

static void expect_covered(bool want, const char *text)
{
    clconv_problem p = parse(text);
    cr_assert_eq(clconv_fold_covers(&p), want, "%s", text);
}

Test(fold, a_window_of_the_strides_fits_a_line)
{
    for (size_t i = 0; i < COUNT(problems); ++i)
        expect_covered(true, problems[i]);
    expect_covered(true, "n1c4h20w20k8r5s5u2p2");
    expect_covered(false, "n1c5h20w20k8r5s5u2p2");
    expect_covered(false, "n1c17h20w20k8r3s3p1");
    expect_covered(false, "n1c1h40w40k8r17s1u17x1");
}

Test(fold, filters_have_no_holes_and_no_groups)
{
    expect_covered(false, "n1c3h20w20k8r3s3d2x1p1");
    expect_covered(false, "n1c3h20w20k8r3s3d1x2p1");
    expect_covered(false, "n1c4h20w20k8r3s3p1g2");
}

/* ---- One axis ----------------------------------------------------------- */

typedef struct axis {
    int64_t size, out, stride, pad; /* of filter and dY; of the convolution */
    int window, taps, step, shift;
} axis;

/* Element r of the filter at output at. */
static void expect_product(const char *text, const axis *a, int64_t at,
                           int64_t r)
{
    int64_t tap = (r + a->shift) / a->window, i = (r + a->shift) % a->window;
    int64_t position = at + tap * a->step;
    cr_assert_lt(tap, a->taps, "%s: element %d", text, (int)r);
    cr_assert_eq(position * a->stride + i - a->shift - a->pad,
                 at * a->stride + r - a->pad, "%s: output %d, element %d", text,
                 (int)at, (int)r);
}

static void expect_axis(const char *text, const axis *a)
{
    for (int64_t at = 0; at < a->out; ++at)
        for (int64_t r = 0; r < a->size; ++r)
            expect_product(text, a, at, r);
}

static void expect_fold(const char *text, const clconv_problem *p,
                        const clconv_fold *f)
{
    const axis down = {p->r,    p->p,      p->stride_h, p->pad_top,
                       f->high, f->taps_h, f->step_h,   f->shift_h};
    const axis across = {p->s,    p->q,      p->stride_w, p->pad_left,
                         f->wide, f->taps_w, f->step_w,   f->shift_w};
    expect_axis(text, &down);
    expect_axis(text, &across);
    cr_assert_leq(p->c * f->high * f->wide, CLCONV_FOLD_LINE, "%s", text);
    cr_assert_eq(clconv_fold_pads(p, f),
                 f->high * f->taps_h > p->r || f->wide * f->taps_w > p->s, "%s",
                 text);
}

Test(fold, every_product_is_one_of_the_folded_tensors)
{
    for (size_t i = 0; i < COUNT(problems); ++i) {
        clconv_problem p = parse(problems[i]);
        clconv_fold dx = clconv_fold_of_dx(&p), dw = clconv_fold_of_dw(&p);
        expect_fold(problems[i], &p, &dx);
        expect_fold(problems[i], &p, &dw);
    }
}

/* ---- The choice --------------------------------------------------------- */

Test(fold, windows_of_dx_do_not_overlap)
{
    for (size_t i = 0; i < COUNT(problems); ++i) {
        clconv_problem p = parse(problems[i]);
        clconv_fold f = clconv_fold_of_dx(&p);
        cr_assert_eq(f.high, p.stride_h, "%s", problems[i]);
        cr_assert_eq(f.wide, p.stride_w, "%s", problems[i]);
    }
}

Test(fold, windows_begin_where_the_image_does_if_no_tap_is_added)
{
    clconv_problem free = parse("n1c3h20w22k8r7s7u2p3");
    clconv_fold f = clconv_fold_of_dx(&free);
    cr_assert_eq(f.shift_h, 1);
    cr_assert_eq(f.taps_h, 4);
    clconv_problem full = parse("n1c3h20w22k8r8s8u2p3");
    f = clconv_fold_of_dx(&full);
    cr_assert_eq(f.shift_h, 0);
    cr_assert_eq(f.taps_h, 4);
}

Test(fold, windows_of_dw_leave_the_least_cycles)
{
    clconv_problem p = parse("n1c3h17w12k8r3s3p1");
    clconv_fold f = clconv_fold_of_dw(&p);
    cr_assert_eq(f.taps_h, 1); /* a row of three taps, 9 channels each */
    cr_assert_eq(f.taps_w, 3);
    for (size_t i = 0; i < COUNT(problems); ++i) {
        p = parse(problems[i]);
        clconv_fold dx = clconv_fold_of_dx(&p);
        f = clconv_fold_of_dw(&p);
        cr_assert_leq(clconv_fold_dw_cycles(&f), clconv_fold_dw_cycles(&dx),
                      "%s", problems[i]);
    }
}

/*
 * Advice on values that did not fit float16: when it is given, and that the
 * scale it names is the largest that saturates nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "advice.h"

static clconv_desc desc;
static clconv_report report;
static advice lines;

static void start(void)
{
    clconv_desc_init(&desc);
    memset(&report, 0, sizeof(report));
    report.dy.nonzero = 1000;
}

TestSuite(advice, .init = start);

static void assert_lines(double max_abs, size_t count, const char *part)
{
    advice_collect(&desc, &report, max_abs, &lines);
    cr_assert_eq(lines.count, count, "%zu lines", lines.count);
    if (count > 0)
        cr_assert(strstr(lines.lines[count - 1], part), "%s",
                  lines.lines[count - 1]);
}

Test(advice, the_largest_scale_just_fits)
{
    cr_assert_eq(advice_largest_scale(65504.0), 0);
    cr_assert_eq(advice_largest_scale(65504.1), -1);
    cr_assert_eq(advice_largest_scale(1.0), 15);
    cr_assert_eq(advice_largest_scale(0.9), 16);
    cr_assert_eq(advice_largest_scale(0x1p-20), 35);
    cr_assert_eq(advice_largest_scale(0.0), CLCONV_LOG2_MAX);
    cr_assert_eq(advice_largest_scale(1e300), -CLCONV_LOG2_MAX);
}

Test(advice, one_percent_is_no_reason_to_speak)
{
    report.dy.zeroed = 10;
    assert_lines(1e-6, 0, "");
    report.dy.zeroed = 11;
    assert_lines(1e-6, 1,
                 "1.1 % of the nonzero elements of dy became 0; "
                 "--scale-log2 35");
}

/* Fewer bits are worth a word if most elements have them and a scale helps. */
Test(advice, many_subnormal_elements_name_the_scale_that_keeps_more)
{
    report.dy.subnormal = 100;
    assert_lines(1e-6, 0, "");
    report.dy.subnormal = 101;
    assert_lines(1e-6, 1,
                 "10.1 % of the nonzero elements of dy keep fewer than 11 "
                 "bits; --scale-log2 35 keeps more");
    assert_lines(63.0, 0, "");
    desc.dy_type = CLCONV_F16;
    assert_lines(1e-6, 0, "");
}

Test(advice, a_loss_that_no_scale_avoids_needs_fp32)
{
    report.dy.zeroed = 500;
    assert_lines(60.0, 1, "--math fp32 keeps both");
}

Test(advice, saturation_names_the_scale_that_fits)
{
    report.dy.saturated = 1;
    assert_lines(100.0, 1, "65504 * 2^-10; --scale-log2 9 or --math fp32");
    assert_lines(4e35, 1, "65504 * 2^-10; --math fp32 keeps");
}

Test(advice, operands_are_spoken_of_where_they_are_cast)
{
    report.x.saturated = 3;
    assert_lines(1.0, 1, "3 elements of x are beyond float16's range");
    report.w.nonzero = 100;
    report.w.zeroed = 50;
    assert_lines(1.0, 2,
                 "50.0 % of the nonzero elements of w became 0; --math fp32");
    desc.math = CLCONV_FP32;
    report.dy.saturated = report.dy.zeroed = 1000;
    assert_lines(1e6, 0, "");
}

Test(advice, every_tensor_has_room_for_its_lines)
{
    clconv_counts *const all[] = {&report.dy, &report.x,  &report.w,
                                  &report.dw, &report.db, &report.dx};

    for (size_t i = 0; i < 6; ++i) {
        all[i]->nonzero = UINT64_MAX;
        all[i]->zeroed = UINT64_MAX;
        all[i]->saturated = UINT64_MAX;
    }
    assert_lines(100.0, ADVICE_MAX, "--dx-type f32");
    for (size_t i = 0; i < lines.count; ++i)
        cr_assert_lt(strlen(lines.lines[i]), sizeof(lines.lines[i]) - 1);
}

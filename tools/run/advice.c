/*
 * A scale that is too small loses small elements, one that is too large
 * saturates large ones. The best is the largest that saturates nothing; if it
 * is in use already and elements are still lost, the values span more than
 * float16 does and only fp32 keeps them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define HALF_MAX 65504.0

static void add_line(advice *a, const char *format, ...)
{
    va_list values;

    if (a->count == ADVICE_MAX)
        return;
    va_start(values, format);
    vsnprintf(a->lines[a->count++], sizeof(a->lines[0]), format, values);
    va_end(values);
}

int advice_largest_scale(double max_abs)
{
    int scale = CLCONV_LOG2_MAX;

    while (scale > -CLCONV_LOG2_MAX && ldexp(max_abs, scale) > HALF_MAX)
        --scale;
    return scale;
}

static bool loses_many(const clconv_counts *counts)
{
    return (double)counts->zeroed > 0.01 * (double)counts->nonzero;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void advise_dy(const clconv_desc *desc, const clconv_counts *dy,
                      double max_abs, advice *out)
{
    int best = advice_largest_scale(max_abs);

    if (dy->saturated && ldexp(max_abs, best) <= HALF_MAX)
        add_line(out,
                 "%" PRIu64 " elements of dy are beyond 65504 * 2^%d; "
                 "--scale-log2 %d or --math fp32 keeps them",
                 dy->saturated, -desc->scale_log2, best);
    else if (dy->saturated)
        add_line(out,
                 "%" PRIu64 " elements of dy are beyond 65504 * 2^%d; "
                 "--math fp32 keeps them",
                 dy->saturated, -desc->scale_log2);
    if (!loses_many(dy))
        return;
    if (best > desc->scale_log2)
        add_line(out,
                 "%.1f %% of the nonzero elements of dy became 0; "
                 "--scale-log2 %d keeps more of them",
                 percent(dy->zeroed, dy->nonzero), best);
    else
        add_line(out,
                 "%.1f %% of the nonzero elements of dy became 0, and a "
                 "larger --scale-log2 would saturate others; "
                 "--math fp32 keeps both",
                 percent(dy->zeroed, dy->nonzero));
}

/* Subnormal elements survive with fewer bits: worth a word if they are many
 * and a larger scale would help. */
static void advise_bits(const clconv_desc *desc, const clconv_counts *dy,
                        double max_abs, advice *out)
{
    int best = advice_largest_scale(max_abs);

    if (percent(dy->subnormal, dy->nonzero) <= 10 || dy->saturated ||
        loses_many(dy) || desc->dy_type == CLCONV_F16 ||
        best <= desc->scale_log2)
        return;
    add_line(out,
             "%.1f %% of the nonzero elements of dy keep fewer than 11 bits; "
             "--scale-log2 %d keeps more",
             percent(dy->subnormal, dy->nonzero), best);
}

/* option: what keeps the elements of any tensor but dy, and its value. */
static void advise_tensor(const char *name, const clconv_counts *counts,
                          const char *option, advice *out)
{
    if (counts->saturated)
        add_line(out,
                 "%" PRIu64 " elements of %s are beyond float16's range; "
                 "%s keeps them",
                 counts->saturated, name, option);
    if (loses_many(counts))
        add_line(out,
                 "%.1f %% of the nonzero elements of %s became 0; "
                 "%s keeps them",
                 percent(counts->zeroed, counts->nonzero), name, option);
}

void advice_collect(const clconv_desc *desc, const clconv_report *report,
                    double dy_max_abs, advice *out)
{
    out->count = 0;
    if (desc->math == CLCONV_MIXED) {
        advise_dy(desc, &report->dy, dy_max_abs, out);
        advise_bits(desc, &report->dy, dy_max_abs, out);
        advise_tensor("x", &report->x, "--math fp32", out);
        advise_tensor("w", &report->w, "--math fp32", out);
    }
    advise_tensor("dw", &report->dw, "--dw-type f32", out);
    advise_tensor("db", &report->db, "--db-type f32", out);
    advise_tensor("dx", &report->dx, "--dx-type f32", out);
}

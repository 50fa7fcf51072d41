/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "counts.h"

#include "operand.h"

void clconv_counts_emit_classes(clconv_emit *e, const clconv_problem *p,
                                clconv_tensor tensor)
{
    clconv_operand_set_limit(e, clconv_problem_cast_log2(p, tensor));
    clconv_emit_line(e, "$int b = as_$int(before) & 0x7fffffff;");
    clconv_emit_line(e, "$int a = as_$int(after) & 0x7fffffff;");
    clconv_emit_line(e, "$int is_nan = b > 0x7f800000;");
    clconv_emit_line(e, "$int is_inf = b == 0x7f800000;");
    clconv_emit_line(e, "$int nonzero = (b > 0) & (b <= 0x7f800000);");
    clconv_emit_line(e, "$int zeroed = nonzero & (a == 0);");
    clconv_emit_line(e, "$int subnormal = (a > 0) & (a < 0x38800000);");
    clconv_emit_line(e, "$int saturated = (b > $limit) & (b < 0x7f800000);");
}

/* Sums the packed classes of a vector into one int. */
static void emit_sum(clconv_emit *e, int width)
{
    static const char *const halves[] = {
        "int8 eight = all.lo + all.hi;",
        "int4 four = eight.lo + eight.hi;",
        "int2 two = four.lo + four.hi;",
        "int one = two.lo + two.hi;",
    };
    static const char *const whole[] = {
        "int16 all = packed;", "int8 eight = packed;", "int4 four = packed;",
        "int2 two = packed;",  "int one = packed;",
    };
    int step = 0;
    for (int w = width; w < 16; w *= 2)
        ++step;
    clconv_emit_line(e, whole[step]);
    for (; step < 4; ++step)
        clconv_emit_line(e, halves[step]);
}

void clconv_counts_emit(clconv_emit *e, const clconv_problem *p,
                        clconv_tensor tensor, int width)
{
    clconv_emit_part(e, "counts");
    clconv_operand_set_width(e, width);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_open(e, "static void count_$tensor$vn(counts_t *tally, "
                        "$float before, $float after)");
    clconv_counts_emit_classes(e, p, tensor);
    clconv_emit_line(e, "$int packed = (nonzero & 1) | (zeroed & 1) << 5 |");
    clconv_emit_line(e, "    (subnormal & 1) << 10 | (saturated & 1) << 15 |");
    clconv_emit_line(e, "    (is_nan & 1) << 20 | (is_inf & 1) << 25;");
    emit_sum(e, width);
    clconv_emit_line(e, "counts_take(tally, one);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "counts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "operand.h"

/* Declares the six classes as $int values, each 1 (width 1) or -1 (wider) where
 * it holds, from variables before and after. */
static void emit_classes(clconv_emit *e, const clconv_problem *p,
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
    emit_classes(e, p, tensor);
    clconv_emit_line(e, "$int packed = (nonzero & 1) | (zeroed & 1) << 5 |");
    clconv_emit_line(e, "    (subnormal & 1) << 10 | (saturated & 1) << 15 |");
    clconv_emit_line(e, "    (is_nan & 1) << 20 | (is_inf & 1) << 25;");
    emit_sum(e, width);
    clconv_emit_line(e, "counts_take(tally, one);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- As it is read ---------------------------------------------------- */

/* The counts of the elements that each lane of a vector has seen. */
static void emit_seen_type(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    $int nonzero, zeroed, subnormal, saturated, nan, "
                        "inf;");
    clconv_emit_line(e, "} seen${vn}_t;");
    clconv_emit_blank(e);
}

void clconv_counts_emit_seen(clconv_emit *e, int width)
{
    clconv_emit_part(e, "counts");
    clconv_emit_part(e, "lanes");
    clconv_operand_set_width(e, width);
    emit_seen_type(e);
    clconv_emit_open(
        e, "static void fold$vn(counts_t *tally, const seen${vn}_t *seen)");
    clconv_emit_line(e, "tally->nonzero += (uint)isum$vn(seen->nonzero);");
    clconv_emit_line(e, "tally->zeroed += (uint)isum$vn(seen->zeroed);");
    clconv_emit_line(e, "tally->subnormal += (uint)isum$vn(seen->subnormal);");
    clconv_emit_line(e, "tally->saturated += (uint)isum$vn(seen->saturated);");
    clconv_emit_line(e, "tally->nan += (uint)isum$vn(seen->nan);");
    clconv_emit_line(e, "tally->inf += (uint)isum$vn(seen->inf);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A hole with the bits of a float. */
static void set_bits(clconv_emit *e, const char *hole, double value)
{
    float number = (float)value;
    unsigned bits;
    char text[16];
    memcpy(&bits, &number, sizeof bits);
    snprintf(text, sizeof text, "0x%08x", bits);
    clconv_emit_set_text(e, hole, text);
}

/*
 * Which class an element is in follows from its bits before rounding: $zero,
 * the largest that becomes 0 (a tie, to even); $normal, the smallest that
 * becomes a normal fp16 number (a tie again); $limit.
 */
static void set_bounds(clconv_emit *e, const clconv_problem *p,
                       clconv_tensor tensor)
{
    int cast_log2 = clconv_problem_cast_log2(p, tensor);
    set_bits(e, "zero", ldexp(1, -25 - cast_log2));
    set_bits(e, "normal", ldexp(1 - ldexp(1, -11), -14 - cast_log2));
    clconv_operand_set_limit(e, cast_log2);
}

/* Is no lane of other set? PoCL makes 45 instructions of any(int16), and three
 * of this. */
static void emit_if_ordinary(clconv_emit *e, int width)
{
    if (width == 16) {
        clconv_emit_line(e, "const long2 marks = "
                            "as_long2(convert_char16(other));");
        clconv_emit_line(e, "if (!(marks.x | marks.y))");
    } else {
        clconv_emit_line(e, width > 1 ? "if (!any(other))" : "if (!other)");
    }
}

/* Most vectors hold ordinary numbers and zeros alone, all others take the
 * second half. Vectors compare to -1 where true, scalars to 1. */
void clconv_counts_emit_see(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor, int width)
{
    bool rounds =
        clconv_problem_casts(p, tensor) || p->type[tensor] == CLCONV_F16;
    clconv_operand_set_width(e, width);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "add", width > 1 ? "-=" : "+=");
    set_bounds(e, p, tensor);
    clconv_emit_open(e, "static void see_$tensor$vn(seen${vn}_t *seen, "
                        "$float before)");
    clconv_emit_line(e, "const $int b = as_$int(before) & 0x7fffffff;");
    clconv_emit_line(e, "seen->nonzero $add b != 0;");
    clconv_emit_line(e, rounds ? "const $int other = (b != 0) & ((b < $normal) "
                                 "| (b > $limit));"
                               : "const $int other = b > 0x7f7fffff;");
    emit_if_ordinary(e, width);
    clconv_emit_line(e, "    return;");
    if (rounds) {
        clconv_emit_line(e, "seen->zeroed $add (b != 0) & (b <= $zero);");
        clconv_emit_line(e, "seen->subnormal $add (b > $zero) & (b < "
                            "$normal);");
        clconv_emit_line(e, "seen->saturated $add (b > $limit) & (b < "
                            "0x7f800000);");
    }
    clconv_emit_line(e, "const $int is_nan = b > 0x7f800000;");
    clconv_emit_line(e, "seen->nan $add is_nan;");
    clconv_emit_line(e, width > 1 ? "seen->nonzero += is_nan;"
                                  : "seen->nonzero -= is_nan;");
    clconv_emit_line(e, "seen->inf $add b == 0x7f800000;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

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

static void emit_share(clconv_emit *e)
{
    static const char *const classes[CLCONV_COUNTS_CLASSES] = {
        "nonzero", "zeroed", "subnormal", "saturated", "nan", "inf"};
    clconv_emit_open(e, "static void counts_share(const counts_t *tally, "
                        "volatile __local uint *sums)");
    for (int i = 0; i < CLCONV_COUNTS_CLASSES; ++i) {
        clconv_emit_set(e, "index", i);
        clconv_emit_set_text(e, "class", classes[i]);
        clconv_emit_line(e, "if (tally->$class > 0)");
        clconv_emit_line(e, "    atomic_add(sums + $index, tally->$class);");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_counts_emit_flush_group(clconv_emit *e)
{
    clconv_emit_part(e, "counts");
    clconv_emit_set(e, "classes", CLCONV_COUNTS_CLASSES);
    emit_share(e);
    clconv_emit_line(e,
                     "static void counts_flush_shared(volatile __global uint "
                     "*counts,");
    clconv_emit_open(e, "    volatile __local uint *sums)");
    clconv_emit_line(e, "const uint id = get_local_id(0);");
    clconv_emit_line(e, "if (counts && id < $classes)");
    clconv_emit_line(e, "    counts_add(counts + 2 * id, sums[id]);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_line(e, "static void counts_flush_group(volatile __global uint "
                        "*counts,");
    clconv_emit_open(e, "    const counts_t *tally, volatile __local uint "
                        "*sums)");
    clconv_emit_line(e, "counts_share(tally, sums);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "counts_flush_shared(counts, sums);");
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

/* PoCL makes 45 instructions of any(int16), and three of this. */
void clconv_counts_set_ordinary(clconv_emit *e, int width)
{
    if (width == 16)
        clconv_emit_line(e, "const long2 marks = "
                            "as_long2(convert_char16(other));");
    clconv_emit_set_text(e, "ordinary",
                         width == 16  ? "!(marks.x | marks.y)"
                         : width == 1 ? "!other"
                                      : "!any(other)");
}

/* Does the tensor become fp16? Else only NaN and infinities are special. */
static bool rounds(const clconv_problem *p, clconv_tensor tensor)
{
    return clconv_problem_casts(p, tensor) || p->type[tensor] == CLCONV_F16;
}

/* Most vectors hold ordinary numbers and zeros alone, all others take the
 * second half. Vectors compare to -1 where true, scalars to 1. */
void clconv_counts_emit_see(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "add", width > 1 ? "-=" : "+=");
    set_bounds(e, p, tensor);
    clconv_emit_open(e, "static void see_$tensor$vn(seen${vn}_t *seen, "
                        "$float before)");
    clconv_emit_line(e, "const $int b = as_$int(before) & 0x7fffffff;");
    clconv_emit_line(e, "seen->nonzero $add b != 0;");
    clconv_emit_line(e, rounds(p, tensor)
                            ? "const $int other = (b != 0) & ((b < $normal) "
                              "| (b > $limit));"
                            : "const $int other = b > 0x7f7fffff;");
    clconv_counts_set_ordinary(e, width);
    clconv_emit_line(e, "if ($ordinary)");
    clconv_emit_line(e, "    return;");
    if (rounds(p, tensor)) {
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

/* ---- Runs ------------------------------------------------------------- */

#define LANES CLCONV_COUNTS_RUN

void clconv_counts_set_ordinary_bounds(clconv_emit *e, const clconv_problem *p,
                                       clconv_tensor tensor)
{
    set_bounds(e, p, tensor);
    if (rounds(p, tensor))
        return;
    clconv_emit_set_text(e, "normal", "0x00000001");
    clconv_emit_set_text(e, "limit", "0x7f7fffff");
}

/* Elements that are looked at together: so few that numbers which are special
 * once in ten thousand seldom make one be read again. */
#define BLOCK 256

/* Is no lane beyond? above: the largest distances from $normal up; those of
 * smaller magnitudes wrap around, so that one comparison tells for all. */
static void emit_is_ordinary(clconv_emit *e)
{
    clconv_emit_open(e, "static bool is_ordinary_$tensor(uint16 above)");
    clconv_emit_line(e, "const int16 other = above > (uint16)($limit - "
                        "$normal);");
    clconv_counts_set_ordinary(e, LANES);
    clconv_emit_line(e, "return $ordinary;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The test of a run without zeros: half the operations of emit_look(). */
static void emit_beyond(clconv_emit *e)
{
    clconv_emit_open(e, "static uint16 beyond_$tensor(uint16 above, float16 "
                        "before)");
    clconv_emit_line(e, "const int16 b = as_int16(before) & 0x7fffffff;");
    clconv_emit_line(e, "return max(above, as_uint16(b - $normal));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Are all ordinary, and none 0? */
static void emit_is_dense(clconv_emit *e)
{
    clconv_emit_open(e, "static bool is_dense_$tensor(__global const $given "
                        "*p, int count)");
    clconv_emit_line(e, "uint16 above = 0;");
    clconv_emit_line(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "    above = beyond_$tensor(above, "
                        "read_${tensor}16(p, i));");
    clconv_emit_line(e, "return is_ordinary_$tensor(above);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Counts nothing and returns false if one is neither 0 nor ordinary. */
static void emit_look(clconv_emit *e)
{
    clconv_emit_open(e, "static bool look_$tensor(seen16_t *seen, __global "
                        "const $given *p, int count)");
    clconv_emit_line(e, "int16 nonzero = 0;");
    clconv_emit_line(e, "uint16 above = 0;");
    clconv_emit_open(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "const int16 b = as_int16(read_${tensor}16(p, i)) & "
                        "0x7fffffff;");
    clconv_emit_line(e, "nonzero -= b != 0;");
    clconv_emit_line(e, "above = max(above, as_uint16(b != 0 ? b - $normal : "
                        "0));");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (!is_ordinary_$tensor(above))");
    clconv_emit_line(e, "    return false;");
    clconv_emit_line(e, "seen->nonzero += nonzero;");
    clconv_emit_line(e, "return true;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Whole vectors. A tensor with zeros tends to have them everywhere: the first
 * vector tells. */
static void emit_block(clconv_emit *e)
{
    clconv_emit_open(e, "static void see_${tensor}_block(seen16_t *seen, "
                        "__global const $given *p, int count)");
    clconv_emit_open(e, "if (is_dense_$tensor(p, 16) && "
                        "is_dense_$tensor(p, count))");
    clconv_emit_line(e, "seen->nonzero += count / 16;");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (look_$tensor(seen, p, count))");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "    see_${tensor}16(seen, read_${tensor}16(p, i));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_run(clconv_emit *e)
{
    clconv_emit_set(e, "block", BLOCK);
    clconv_emit_open(e, "static void see_${tensor}_run(seen16_t *seen, "
                        "__global const $given *p, long i, long end, long "
                        "total)");
    clconv_emit_line(e, "const long whole = i + ((end - i) & ~15L);");
    clconv_emit_line(e, "for (; i < whole; i += $block)");
    clconv_emit_line(e, "    see_${tensor}_block(seen, p + i, min($block, "
                        "(int)(whole - i)));");
    clconv_emit_line(e, "if (whole < end)");
    clconv_emit_line(e, "    see_${tensor}16(seen, rest_of_$tensor(p, whole, "
                        "end - whole, total));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_counts_emit_run(clconv_emit *e, const clconv_task *t,
                            clconv_tensor tensor)
{
    bool half_type = t->problem->type[tensor] == CLCONV_F16;
    clconv_counts_emit_see(e, t->problem, tensor, LANES);
    clconv_operand_emit_rest(e, t, tensor);
    clconv_emit_set_text(e, "given", half_type ? "half" : "float");
    clconv_counts_set_ordinary_bounds(e, t->problem, tensor);
    emit_is_ordinary(e);
    emit_beyond(e);
    emit_is_dense(e);
    emit_look(e);
    emit_block(e);
    emit_run(e);
}

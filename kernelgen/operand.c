/*
 * Rounding to fp16 without half arithmetic, which some devices lack and
 * others emulate: adding and subtracting 2^(e+13), where 2^e is the largest
 * power of two in |v|, lets the fp32 adder round to the 2^(e-10) that is one
 * fp16 unit there, ties to even. Below 2^-14 fp16 is subnormal and its unit
 * stays 2^-24, hence the lower limit on e; the upper one keeps infinities and
 * NaN as they are: Inf + 2^28 - 2^28 is Inf. All of it is on bits and whole
 * vectors, so a CPU's compiler keeps it in its widest registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "operand.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HALF_MAX 65504.0

bool clconv_operand_is_half(const clconv_task *t, clconv_tensor tensor)
{
    return t->problem->type[tensor] == CLCONV_F16 ||
           (clconv_operand_copied_bits(t->copies) & CLCONV_BIT(tensor));
}

bool clconv_operand_fits_half(const clconv_problem *p, clconv_tensor tensor)
{
    return p->math == CLCONV_MIXED || p->type[tensor] == CLCONV_F16;
}

bool clconv_operand_is_fused(const clconv_task *t, clconv_tensor tensor)
{
    return clconv_problem_casts(t->problem, tensor) &&
           !(clconv_operand_copied_bits(t->copies) & CLCONV_BIT(tensor));
}

unsigned clconv_operand_cast_bits(const clconv_problem *p, unsigned mask)
{
    unsigned bits = 0;
    for (int tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor)
        if (clconv_problem_casts(p, (clconv_tensor)tensor))
            bits |= CLCONV_BIT(tensor);
    return bits & mask;
}

unsigned clconv_operand_copied_bits(unsigned copies)
{
    unsigned bits = 0;
    for (int tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor)
        if (copies & (CLCONV_BIT(tensor) | CLCONV_PACKED(tensor)))
            bits |= CLCONV_BIT(tensor);
    return bits;
}

void clconv_operand_set_width(clconv_emit *e, int width)
{
    char suffix[12] = "", type[20];
    if (width > 1)
        snprintf(suffix, sizeof suffix, "%d", width);
    clconv_emit_set_text(e, "vn", suffix);
    snprintf(type, sizeof type, "float%s", suffix);
    clconv_emit_set_text(e, "float", type);
    snprintf(type, sizeof type, "int%s", suffix);
    clconv_emit_set_text(e, "int", type);
}

void clconv_operand_set_limit(clconv_emit *e, int cast_log2)
{
    float limit = (float)ldexp(HALF_MAX, -cast_log2);
    unsigned bits;
    char text[64];
    memcpy(&bits, &limit, sizeof bits);
    snprintf(text, sizeof text, "0x%08x", bits);
    clconv_emit_set_text(e, "limit", text);
    snprintf(text, sizeof text, "%.9g", (double)limit);
    clconv_emit_set_text(e, "limit_value", text);
}

/* Clip finite values only; on bits, for fmin and clamp lose NaN. */
static void emit_clip(clconv_emit *e, int cast_log2)
{
    clconv_operand_set_limit(e, cast_log2);
    clconv_emit_line(e, "/* Finite values are clipped at $limit_value. */");
    clconv_emit_line(e, "bits = select(min(bits, ($int)($limit)), bits, "
                        "bits >= 0x7f800000);");
}

/* The head of a function of v, and a: its magnitude, clipped and scaled. */
static void open_cast(clconv_emit *e, const char *head, const clconv_problem *p,
                      clconv_tensor tensor, int width)
{
    int cast_log2 = clconv_problem_cast_log2(p, tensor);
    clconv_operand_set_width(e, width);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_exp2(e, "cast_scale", cast_log2);
    clconv_emit_open(e, head);
    clconv_emit_line(e, "$int bits = as_$int(v) & 0x7fffffff;");
    if (p->overflow != CLCONV_TO_INF)
        emit_clip(e, cast_log2);
    clconv_emit_line(e, cast_log2 ? "$float a = as_$float(bits) * $cast_scale;"
                                  : "$float a = as_$float(bits);");
}

/* Returns a with the sign of v. */
static void close_cast(clconv_emit *e)
{
    clconv_emit_line(e, "return as_$float(as_$int(a) | "
                        "(as_$int(v) & (int)0x80000000));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_operand_emit_clip(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor, int width)
{
    open_cast(e, "static $float clip_$tensor$vn($float v)", p, tensor, width);
    close_cast(e);
}

void clconv_operand_emit_round(clconv_emit *e, const clconv_problem *p,
                               clconv_tensor tensor, int width)
{
    open_cast(e, "static $float round_$tensor$vn($float v)", p, tensor, width);
    clconv_emit_line(e, "/* m: 2^13 times the power of two in a, so that a "
                        "sum has fp16's unit. */");
    /* Vector limits: oclgrind 21.10 gets min(int16, int) wrong. */
    clconv_emit_line(e, "$int power = clamp(as_$int(a) & 0x7f800000, "
                        "($int)(0x38800000), ($int)(0x47000000));");
    clconv_emit_line(e, "$float m = as_$float(power + 0x06800000);");
    clconv_emit_line(e, "a = (a + m) - m;");
    if (p->overflow == CLCONV_TO_INF)
        clconv_emit_line(e, "a = select(a, ($float)(INFINITY), "
                            "a > 65504.0f);");
    close_cast(e);
}

void clconv_operand_emit_halve(clconv_emit *e, const clconv_problem *p,
                               clconv_tensor tensor, int width)
{
    int cast_log2 = clconv_problem_cast_log2(p, tensor);
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_exp2(e, "cast_scale", cast_log2);
    clconv_emit_open(e, "static $float halve_$tensor$vn($float v)");
    clconv_emit_line(e, "ushort halves[$width];");
    clconv_emit_line(e, cast_log2 ? "vstore_half${vn}_rte(v * $cast_scale, 0, "
                                    "(half *)halves);"
                                  : "vstore_half${vn}_rte(v, 0, (half "
                                    "*)halves);");
    clconv_emit_line(e, "return vload_half$vn(0, (const half *)halves);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_operand_set_raw(clconv_emit *e, const clconv_device *d,
                            bool half_type, int width)
{
    char text[48];
    if (width == 1 && !half_type)
        snprintf(text, sizeof text, "p[i]");
    else if (width == 1)
        snprintf(text, sizeof text,
                 d->has_fp16 ? "convert_float(p[i])" : "vload_half(i, p)");
    else if (!half_type)
        snprintf(text, sizeof text, "vload%d(0, p + i)", width);
    else if (d->has_fp16)
        snprintf(text, sizeof text, "convert_float%d(vload%d(0, p + i))", width,
                 width);
    else
        snprintf(text, sizeof text, "vload_half%d(0, p + i)", width);
    clconv_emit_set_text(e, "raw", text);
}

/* The head of read_ or load_ and the holes of its body. */
static void open_access(clconv_emit *e, const char *head, const clconv_device *d,
                        bool half_type, clconv_tensor tensor, int width)
{
    clconv_operand_set_width(e, width);
    clconv_operand_set_raw(e, d, half_type, width);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "stored", half_type ? "half" : "float");
    clconv_emit_open(e, head);
}

void clconv_operand_emit_read(clconv_emit *e, const clconv_task *t,
                              clconv_tensor tensor, int width)
{
    open_access(
        e, "static $float read_$tensor$vn(__global const $stored *p, long i)",
        t->device, t->problem->type[tensor] == CLCONV_F16, tensor, width);
    clconv_emit_line(e, "return $raw;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A vector that is not whole is read past its end, but not past the tensor's. */
void clconv_operand_emit_rest(clconv_emit *e, const clconv_task *t,
                              clconv_tensor tensor)
{
    clconv_operand_emit_read(e, t, tensor, 16);
    clconv_operand_emit_read(e, t, tensor, 1);
    clconv_emit_open(e, "static float16 rest_of_$tensor(__global const $stored "
                        "*p, long i, int count, long total)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,");
    clconv_emit_line(e, "                           8, 9, 10, 11, 12, 13, 14, "
                        "15);");
    clconv_emit_line(e, "float rest[16] = {0.0f};");
    clconv_emit_line(e, "if (i + 16 <= total)");
    clconv_emit_line(e,
                     "    return select((float16)(0.0f), read_${tensor}16(p, "
                     "i), lane < count);");
    clconv_emit_line(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, "    rest[j] = read_$tensor(p, i + j);");
    clconv_emit_line(e, "return vload16(0, rest);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_operand_emit_load(clconv_emit *e, const clconv_task *t,
                              clconv_tensor tensor, int width)
{
    bool fused = clconv_operand_is_fused(t, tensor);
    if (fused)
        clconv_operand_emit_round(e, t->problem, tensor, width);
    open_access(
        e, "static $float load_$tensor$vn(__global const $stored *p, long i)",
        t->device, clconv_operand_is_half(t, tensor), tensor, width);
    clconv_emit_line(e,
                     fused ? "return round_$tensor$vn($raw);" : "return $raw;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

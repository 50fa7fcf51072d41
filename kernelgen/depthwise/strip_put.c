/*
 * The way for old values and counts turns the values instead of unrolling,
 * which keeps its text short.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "strip_put.h"

#include "integers.h"
#include "operand.h"
#include "output.h"
#include "strip.h"

#define MOST_WIDTH 4

int clconv_strip_row_width(const clconv_problem *p, int64_t columns)
{
    int64_t size = p->type[CLCONV_DX] == CLCONV_F16 ? 2 : 4;
    int64_t most = clconv_min((int64_t)p->alignment / size, MOST_WIDTH);
    return (int)clconv_strip_power_of_2(clconv_gcd(p->w, columns), most);
}

/* void keep(dx, i, values, count, step): without old values and counts. */
static void emit_keep(clconv_emit *e, const clconv_problem *p, int64_t count,
                      int width)
{
    static const char *const halves[] = {"ushort", "uint", "uint2"};
    bool half_type = p->type[CLCONV_DX] == CLCONV_F16;
    int log2 = clconv_problem_epilogue_log2(p, CLCONV_DX);
    if (half_type)
        clconv_strip_emit_tame(e, p, CLCONV_DX, width, count);
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "count", count);
    clconv_emit_set_text(e, "dx_type", half_type ? "half" : "float");
    clconv_emit_set_text(e, "dx_words", halves[width / 2]);
    clconv_emit_set_exp2(e, "epilogue", log2);
    clconv_emit_line(e, "static void keep(__global $dx_type *dx, long i, "
                        "$float *values, int count,");
    clconv_emit_open(e, "    int step)");
    if (log2) {
        clconv_emit_line(e, "#pragma unroll");
        clconv_emit_line(e, "for (int j = 0; j < $count; ++j)");
        clconv_emit_line(e, "    values[j] *= $epilogue;");
    }
    if (half_type)
        clconv_emit_line(e, "tame_dx(values);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < $count; ++j)");
    clconv_emit_line(e, "    if (j < count)");
    clconv_emit_line(e, half_type
                            ? "        *(__global $dx_words *)(dx + i + j "
                              "* step) = to_words$vn(values[j]);"
                            : "        *(__global $float *)(dx + i + j "
                              "* step) = values[j];");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_strip_emit_put(clconv_emit *e, const clconv_problem *p,
                           int64_t count, int width)
{
    clconv_output_emit_store(e, p, CLCONV_DX, width);
    emit_keep(e, p, count, width);
    clconv_emit_line(e, "static void put_row(__global $dx_type *dx, long i, "
                        "$float *values, int count,");
    clconv_emit_open(e, "    int step, float beta, int plain$tally_parameter)");
    clconv_emit_open(e, "if (plain)");
    clconv_emit_line(e, "keep(dx, i, values, count, step);");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int j = 0; j < min(count, $count); ++j)");
    clconv_emit_line(e, "store_dx$vn(dx, i + j * step, values[0], "
                        "beta$tally_pass);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int k = 1; k < $count; ++k)");
    clconv_emit_line(e, "    values[k - 1] = values[k];");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_strip_emit_values(clconv_emit *e, const char *lane, int64_t place,
                              int64_t columns, int vec, int width)
{
    static const char *const holes[] = {"a", "b", "c", "d"};
    static const char *const lines[] = {
        "values[$i] = sums[$a]$lane;",
        "values[$i] = (float2)(sums[$a]$lane, sums[$b]$lane);",
        "values[$i] = (float4)(sums[$a]$lane, sums[$b]$lane, sums[$c]$lane, "
        "sums[$d]$lane);"};
    int joined = width / vec;
    int64_t count = columns / joined;
    clconv_operand_set_width(e, width);
    clconv_emit_set_text(e, "lane", lane);
    clconv_emit_set(e, "count", count);
    clconv_emit_line(e, "$float values[$count];");
    for (int64_t i = 0; i < count; ++i) {
        clconv_emit_set(e, "i", i);
        for (int k = 0; k < joined; ++k)
            clconv_emit_set(e, holes[k], place + i * joined + k);
        clconv_emit_line(e, lines[joined / 2]);
    }
    clconv_operand_set_width(e, vec);
}

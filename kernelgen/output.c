/*
 * An fp16 output goes through round_<output> (operand.h) and is then stored
 * exactly, so that policy and counts see the same rounding as the operands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "output.h"

#include <stdio.h>

#include "counts.h"
#include "operand.h"

bool clconv_output_is_counted(const clconv_problem *p, clconv_tensor tensor)
{
    return p->type[tensor] == CLCONV_F16;
}

/* $old: the old contents as float; $store: the store of value. */
static void set_access(clconv_emit *e, bool half_type, int width)
{
    char old[40] = "p[i]", store[48] = "p[i] = value";
    if (half_type && width == 1) {
        snprintf(old, sizeof old, "vload_half(i, p)");
        snprintf(store, sizeof store, "vstore_half(value, i, p)");
    } else if (width > 1) {
        const char *part = half_type ? "_half" : "";
        snprintf(old, sizeof old, "vload%s%d(0, p + i)", part, width);
        snprintf(store, sizeof store, "vstore%s%d(value, 0, p + i)", part,
                 width);
    }
    clconv_emit_set_text(e, "old", old);
    clconv_emit_set_text(e, "store", store);
}

/* The functions that store_<output> calls if the output is fp16. */
static void emit_rounding(clconv_emit *e, const clconv_problem *p,
                          clconv_tensor tensor, int width)
{
    clconv_operand_emit_round(e, p, tensor, width);
    clconv_counts_emit(e, p, tensor, width);
}

static void set_tally(clconv_emit *e, bool counted)
{
    clconv_emit_set_text(e, "tally", counted ? ", &tally" : "");
    clconv_emit_set_text(e, "tally_pass", counted ? ", tally" : "");
    clconv_emit_set_text(e, "tally_parameter",
                         counted ? ", counts_t *tally" : "");
}

void clconv_output_emit_store(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor, int width)
{
    bool counted = clconv_output_is_counted(p, tensor);
    if (counted)
        emit_rounding(e, p, tensor, width);
    int epilogue_log2 = clconv_problem_epilogue_log2(p, tensor);
    clconv_operand_set_width(e, width);
    set_access(e, counted, width);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "stored", counted ? "half" : "float");
    clconv_emit_set_exp2(e, "epilogue", epilogue_log2);
    set_tally(e, counted);
    clconv_emit_line(
        e, "static void store_$tensor$vn(__global $stored *p, long i,");
    clconv_emit_open(e, "    $float value, float beta$tally_parameter)");
    if (epilogue_log2)
        clconv_emit_line(e, "value *= $epilogue;");
    clconv_emit_open(e, "if (beta != 0.0f)");
    clconv_emit_line(e, "value += beta * $old;");
    clconv_emit_close(e);
    if (tensor == CLCONV_Y && p->activation == CLCONV_RELU)
        clconv_emit_line(e, "value = select(value, ($float)0.0f, "
                            "value < 0.0f);");
    if (counted) {
        clconv_emit_line(e, "$float before = value;");
        clconv_emit_line(e, "value = round_$tensor$vn(value);");
        clconv_emit_line(e, "count_$tensor$vn(tally, before, value);");
    }
    clconv_emit_line(e, "$store;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Element by element. Not inlined: it is rare, and called for each vector of a
 * tile. */
static void emit_scatter(clconv_emit *e)
{
    clconv_emit_line(e, "__attribute__((noinline))");
    clconv_emit_line(e, "static void scatter_$tensor$vn(__global $stored *p, "
                        "long i, long step,");
    clconv_emit_open(e, "    int count, $float value, float "
                        "beta$tally_parameter)");
    clconv_emit_line(e, "float v[$width];");
    clconv_emit_line(e, "vstore$vn(value, 0, v);");
    clconv_emit_line(e, "for (int lane = 0; lane < count; ++lane)");
    clconv_emit_line(e, "    store_$tensor(p, i + lane * step, v[lane], "
                        "beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_put_vector(clconv_emit *e)
{
    clconv_emit_line(e, "if (step == 1 && count >= $width)");
    clconv_emit_line(e, "    store_$tensor$vn(p, i, value, beta$tally_pass);");
    clconv_emit_line(e, "else");
    clconv_emit_line(e, "    scatter_$tensor$vn(p, i, step, min(count, "
                        "$width), value, beta$tally_pass);");
}

static void emit_put_scalar(clconv_emit *e)
{
    clconv_emit_line(e, "if (count > 0)");
    clconv_emit_line(e, "    store_$tensor(p, i, value, beta$tally_pass);");
}

void clconv_output_emit_put(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor, int width)
{
    clconv_output_emit_store(e, p, tensor, 1);
    if (width > 1)
        clconv_output_emit_store(e, p, tensor, width);
    clconv_emit_set(e, "width", width);
    if (width > 1)
        emit_scatter(e);
    clconv_emit_line(e,
                     "static void put_$tensor$vn(__global $stored *p, long i, "
                     "long step, int count,");
    clconv_emit_open(e, "    $float value, float beta$tally_parameter)");
    if (width > 1)
        emit_put_vector(e);
    else
        emit_put_scalar(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

#define RUN_WIDTH 16

/* The next width values, if count has that bit. */
static void emit_run_rest(clconv_emit *e, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_open(e, "if (count & $width)");
    clconv_emit_line(e, width > 1 ? "store_$tensor$vn(p, i, vload$vn(0, "
                                    "values), beta$tally_pass);"
                                  : "store_$tensor(p, i, *values, "
                                    "beta$tally_pass);");
    clconv_emit_line(e, "i += $width;");
    clconv_emit_line(e, "values += $width;");
    clconv_emit_close(e);
}

void clconv_output_emit_run(clconv_emit *e, const clconv_problem *p,
                            clconv_tensor tensor)
{
    for (int width = RUN_WIDTH; width > 0; width /= 2)
        clconv_output_emit_store(e, p, tensor, width);
    clconv_emit_line(e, "static void store_${tensor}_run(__global $stored *p, "
                        "long i,");
    clconv_emit_open(e, "    const float *values, int count, float "
                        "beta$tally_parameter)");
    clconv_emit_open(e, "for (; count >= 16; count -= 16)");
    clconv_emit_line(e, "store_${tensor}16(p, i, vload16(0, values), "
                        "beta$tally_pass);");
    clconv_emit_line(e, "i += 16;");
    clconv_emit_line(e, "values += 16;");
    clconv_emit_close(e);
    for (int width = RUN_WIDTH / 2; width > 0; width /= 2)
        emit_run_rest(e, width);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_output_emit_tally(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor)
{
    set_tally(e, clconv_output_is_counted(p, tensor));
    if (clconv_output_is_counted(p, tensor))
        clconv_emit_line(e, "counts_t tally = { 0, 0, 0, 0, 0, 0 };");
}

void clconv_output_emit_flush(clconv_emit *e, const clconv_problem *p,
                              clconv_tensor tensor)
{
    if (!clconv_output_is_counted(p, tensor))
        return;
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_line(e, "counts_flush(${tensor}_counts, &tally);");
}

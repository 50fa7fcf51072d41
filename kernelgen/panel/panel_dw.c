/*
 * A square is 16 weights of 16 output channels: 16 vectors of channels, after
 * the transposition 16 runs of weights. At the edges fewer weights or channels
 * are dW's; the others repeat the last and are dropped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_dw.h"

#include "entry.h"
#include "integers.h"
#include "output.h"
#include "panel_pack.h"

#define LANES CLCONV_PANEL_LANES

/* Weights of 16 output channels that a work-item of the last pass sums. */
#define SUM_WEIGHTS 512

int64_t clconv_panel_dw_floats(const clconv_panel_dw *dw,
                               const clconv_problem *p)
{
    if (dw->split_k == 1)
        return 0;
    return dw->split_k * p->groups * dw->k_blocks * dw->weights * dw->tile_v *
           LANES;
}

void clconv_panel_dw_shape(const clconv_panel_dw *dw, clconv_shape *s)
{
    clconv_shape_add(s, "weights", dw->weights);
    clconv_shape_add(s, "split_k", dw->split_k);
    clconv_shape_add(s, "partials", dw->offset);
}

void clconv_panel_dw_args(const clconv_problem *p, clconv_pass *pass)
{
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DW);
    if (clconv_output_is_counted(p, CLCONV_DW))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DW);
}

void clconv_panel_dw_pass(const clconv_panel_dw *dw, const clconv_problem *p,
                          const char *entry, const clconv_shape *s,
                          clconv_pass *pass)
{
    int64_t vectors = p->groups * dw->k_blocks * dw->tile_v;
    int64_t parts = clconv_divide_up(dw->weights, SUM_WEIGHTS);
    *pass = (clconv_pass){
        .entry = entry,
        .groups = (size_t)(dw->split_k > 1 ? vectors * parts : 0),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_panel_dw_args(p, pass);
    clconv_shape_arg(s, pass);
}

/* ---- Text ------------------------------------------------------------- */

static void emit_store_square(clconv_emit *e)
{
    clconv_emit_open(e, "static void store_square(float16 *square, int "
                        "weights, int channels, __global $dw_type *dw, long "
                        "at, long step, float beta$tally_parameter)");
    clconv_emit_line(e, "transpose16(square);");
    clconv_emit_line(e, "float rows[256];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < 16; ++i)");
    clconv_emit_line(e, "    vstore16(square[i], i, rows);");
    clconv_emit_line(e, "for (int i = 0; i < channels; ++i)");
    clconv_emit_line(e, "    put_dw16(dw, at + i * step, 1, weights, "
                        "vload16(i, rows), beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The sums of count weights; at is the first weight of the first channel. */
static void emit_store_sums(clconv_emit *e)
{
    clconv_emit_open(e, "static void store_sums(const float16 *sums, int "
                        "count, int channels, __global $dw_type *dw, long at, "
                        "long step, float beta$tally_parameter)");
    clconv_emit_open(e, "for (int v = 0; v < $tile_v; ++v)");
    clconv_emit_open(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "float16 square[16];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 16; ++j)");
    clconv_emit_line(e, "    square[j] = sums[min(i + j, count - 1) * $tile_v "
                        "+ v];");
    clconv_emit_line(e, "store_square(square, min(16, count - i), min(16, "
                        "channels - v * 16), dw, at + v * 16 * step + i, step, "
                        "beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* partial is the first share of the first weight. */
static void emit_sum_square(clconv_emit *e)
{
    clconv_emit_open(
        e, "static void sum_square(__global const float *partial, shape_t "
           "shape, int weights, int channels, __global $dw_type *dw, long at, "
           "float beta$tally_parameter)");
    clconv_emit_line(e, "const long share_stride = shape.groups * "
                        "shape.k_blocks * shape.weights * $tile_k;");
    clconv_emit_line(e, "float16 square[16];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < 16; ++i)");
    clconv_emit_line(e, "    square[i] = vload16(0, partial + min(i, weights - "
                        "1) * $tile_k);");
    clconv_emit_open(e, "for (int share = 1; share < shape.split_k; ++share)");
    clconv_emit_line(e, "partial += share_stride;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < 16; ++i)");
    clconv_emit_line(e, "    square[i] += vload16(0, partial + min(i, weights "
                        "- 1) * $tile_k);");
    clconv_emit_close(e);
    clconv_emit_line(e, "store_square(square, weights, channels, dw, at, "
                        "shape.weights, beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_panel_dw_emit_functions(clconv_emit *e, const clconv_problem *p,
                                    const clconv_panel_dw *dw)
{
    bool half_type = p->type[CLCONV_DW] == CLCONV_F16;
    clconv_emit_set(e, "tile_k", dw->tile_v * LANES);
    clconv_emit_set(e, "sum_weights", SUM_WEIGHTS);
    clconv_emit_part(e, "transpose16");
    clconv_output_emit_put(e, p, CLCONV_DW, LANES);
    clconv_emit_set_text(e, "dw_type", half_type ? "half" : "float");
    emit_store_square(e);
    emit_store_sums(e);
    emit_sum_square(e);
}

void clconv_panel_dw_emit_store(clconv_emit *e, const clconv_problem *p)
{
    clconv_emit_open(e, "if (shape.split_k == 1)");
    clconv_emit_line(e, "const long k = block % shape.k_blocks * $tile_k;");
    clconv_emit_line(e, "const long row = block / shape.k_blocks * shape.k + "
                        "k;");
    clconv_emit_line(e, "store_sums(sums, count, min(${tile_k}L, shape.k - "
                        "k), dw, row * shape.weights + weight, shape.weights, "
                        "beta$tally);");
    clconv_output_emit_flush(e, p, CLCONV_DW);
    clconv_emit_else(e);
    clconv_emit_line(e, "__global float *partial = scratch + shape.partials + "
                        "((share * shape.groups * shape.k_blocks + block) * "
                        "shape.weights + weight) * $tile_k;");
    clconv_emit_line(e, "for (int i = 0; i < count * $tile_v; ++i)");
    clconv_emit_line(e, "    vstore16(sums[i], i, partial);");
    clconv_emit_close(e);
}

/* A work-item: one vector of a k_block, some weights. */
void clconv_panel_dw_emit_pass(clconv_emit *e, const clconv_task *t,
                               const clconv_shape *s, const clconv_pass *pass)
{
    clconv_shape_open(e, t, pass, s);
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_line(e, "const long parts = (shape.weights + $sum_weights - 1) "
                        "/ $sum_weights;");
    clconv_emit_line(e, "const long first = get_group_id(0) % parts * "
                        "$sum_weights;");
    clconv_emit_line(e, "const long end = min(first + $sum_weights, "
                        "shape.weights);");
    clconv_emit_line(e, "const long v = get_group_id(0) / parts % $tile_v;");
    clconv_emit_line(e, "const long block = get_group_id(0) / parts / "
                        "$tile_v;");
    clconv_emit_line(e, "const long k = block % shape.k_blocks * $tile_k + v * "
                        "16;");
    clconv_emit_line(e, "const int channels = min(16L, shape.k - k);");
    clconv_emit_line(e, "const long row = block / shape.k_blocks * shape.k + "
                        "k;");
    clconv_emit_line(e, "__global const float *partial = scratch + "
                        "shape.partials + block * shape.weights * $tile_k + v "
                        "* 16;");
    clconv_emit_line(e, "for (long i = first; i < end; i += 16)");
    clconv_emit_line(e, "    sum_square(partial + i * $tile_k, shape, "
                        "min(16L, end - i), channels, dw, row * shape.weights "
                        "+ i, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

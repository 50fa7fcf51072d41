/*
 * dW on a matrix unit, as the implicit matrix product of weight_nest.h.
 *
 *     for each part of the pixels, group, block of k, block of columns:
 *     a work-group
 *         for each tile_k pixels of the part
 *             stage A and B in local memory, as fp16
 *             acc += A * B on the unit
 *         store acc: in dW, or if split > 1 as a partial sum in scratch
 *     split > 1: bwd_weight_mma_sum adds the parts, always in the same order
 *
 * Sizes are arguments unless shape=baked; split is a constant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"
#include "gemm.h"
#include "output.h"
#include "weight_nest.h"

enum { SPLIT = CLCONV_GEMM_PARAMS, PARAMS };

static const clconv_param params[] = {
    CLCONV_GEMM_PARAM_ROWS,
    [SPLIT] = {"split", CLCONV_VALUES(1, 2, 4, 8, 16, 32, 64, 128),
               "parts of the sum over pixels"},
};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X))

/* Channels, so that NHWC's vectors of X are whole. */

static clconv_weight_tile tile_of(const int *values)
{
    return (clconv_weight_tile){
        .m = values[CLCONV_GEMM_TILE_M],
        .n = values[CLCONV_GEMM_TILE_N],
        .k = values[CLCONV_GEMM_TILE_K],
        .split = values[SPLIT],
        .items = CLCONV_GEMM_ITEMS,
        .sum_items = CLCONV_GEMM_ITEMS,
    };
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return clconv_gemm_covers(p, d) &&
           clconv_weight_nest_covers(p, CLCONV_GEMM_LEAST_M,
                                     CLCONV_GEMM_LEAST_N);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_gemm_defaults(clconv_weight_nest_columns(p), values);
    values[SPLIT] = 1;
    clconv_weight_tile tile = tile_of(values);
    values[SPLIT] = clconv_weight_nest_split(p, d, &tile, 64);
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_gemm_wants_copies(t, OPERANDS);
}

static bool finishes_bias(const clconv_task *t)
{
    clconv_weight_tile tile = tile_of(t->values);
    return clconv_weight_nest_has_sum(&tile);
}

static size_t scratch(const clconv_task *t)
{
    clconv_weight_tile tile = tile_of(t->values);
    return clconv_weight_nest_scratch(t->problem, &tile);
}

static double cost(const clconv_task *t)
{
    clconv_weight_tile tile = tile_of(t->values);
    double waste = clconv_weight_nest_waste(t->problem, tile.m, tile.n);
    return clconv_gemm_cost(t, waste, 2 * (double)scratch(t));
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    (void)batch;
    clconv_weight_tile tile = tile_of(t->values);
    return clconv_weight_nest_passes(t, "bwd_weight_mma", "bwd_weight_mma_sum",
                                     &tile, out);
}

/* Neighbours in memory are pixels of a row (NCHW) or channels (NHWC). */
static void emit_runs(clconv_emit *e, bool nhwc)
{
    clconv_emit_open(e, "int dy_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, nhwc ? "return b->k0 + row + 8 <= s->group_k;"
                             : "return k % s->q + 8 <= s->q;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int x_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, nhwc ? "return (b->column0 + row) % s->group_c + 8 "
                               "<= s->group_c;"
                             : "return k % s->q + 8 <= s->q;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_nest *nest)
{
    clconv_weight_nest_emit(e);
    emit_runs(e, t->problem->layout == CLCONV_NHWC);
    clconv_gemm_emit_functions(e, t, nest);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
}

/* The sum at row m, column n of the tile: into dW, or beside the other parts
 * of the same element. */
static void emit_store(clconv_emit *e, const clconv_task *t,
                       const clconv_nest *nest)
{
    bool direct = t->values[SPLIT] == 1;
    if (direct)
        clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_gemm_open_walk(e, t, nest);
    clconv_emit_line(e, direct ? "store_dw(dw, i, value, beta$tally);"
                               : "scratch[block.part * (sizes.k * "
                                 "sizes.w_image) + i] = value;");
    clconv_gemm_close_walk(e);
    if (direct)
        clconv_output_emit_flush(e, t->problem, CLCONV_DW);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_nest nest = clconv_weight_nest(t->problem);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count = passes(t, 1, pass);
    emit_functions(e, t, &nest);
    clconv_entry_open(e, t, &pass[0], CLCONV_GEMM_ATTRIBUTE);
    clconv_weight_nest_emit_place(e);
    clconv_gemm_emit_product(e, t, &nest);
    emit_store(e, t, &nest);
    clconv_emit_close(e);
    if (count > 1)
        clconv_weight_nest_emit_sum(e, t, &pass[1], CLCONV_GEMM_ATTRIBUTE);
}

const clconv_kernel clconv_bwd_weight_mma = {
    .name = "bwd_weight_mma",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 2,
    .summary = "dW on a matrix unit, any shape",
    .params = params,
    .param_count = PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = clconv_gemm_legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .finishes_bias = finishes_bias,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

/*
 * dW on a matrix unit, as the implicit matrix product of weight_nest.h; the way
 * of its stages is told in gemm.h.
 *
 *     for each part of the pixels, group, block of k, block of columns: a
 *     work-group
 *         for each tile_k pixels of the part
 *             copy A and B (a pixel a line), acc += A * B
 *         store acc: in dW, or as a partial sum in scratch, channels last
 *     split > 1, or a dW whose channels are not neighbours: bwd_weight_mma_sum
 *         adds the parts, always in the same order
 *
 * Sizes are arguments unless shape=baked; split is a constant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gemm.h"
#include "output.h"
#include "pack.h"
#include "weight_nest.h"
#include "wgmma/store.h"

enum { SPLIT = CLCONV_GEMM_PARAMS, PARAMS };

static const clconv_param params[] = {
    CLCONV_GEMM_PARAM_ROWS,
    [SPLIT] = {"split", CLCONV_VALUES(1, 2, 4, 8, 16, 32, 64, 128),
               "parts of the sum over pixels"},
};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X))

#define ENTRY "bwd_weight_mma"
#define ENTRY_SUM "bwd_weight_mma_sum"

/* Work-items of the pass that adds the parts. */
#define SUM_ITEMS 256
#define SUM_ATTRIBUTE "__attribute__((reqd_work_group_size(256, 1, 1)))"

static clconv_nest nest_of(const clconv_problem *p)
{
    return clconv_nest_packed(clconv_weight_nest(p), false);
}

/* With whole pieces of channels, as columns go. */
static clconv_problem padded(const clconv_problem *p)
{
    clconv_problem whole = *p;
    whole.group_c = clconv_pack_channels(p, CLCONV_X);
    return whole;
}

static clconv_weight_tile weight_tile(const clconv_task *t)
{
    return (clconv_weight_tile){
        .m = t->values[CLCONV_GEMM_TILE_M],
        .n = t->values[CLCONV_GEMM_TILE_N],
        .k = t->values[CLCONV_GEMM_TILE_K],
        .split = t->values[SPLIT],
        .items = clconv_gemm_items(t),
        .sum_items = SUM_ITEMS,
        .apart = clconv_weight_nest_taps_fastest(t->problem),
    };
}

/* Tiles of one part. */
static int64_t blocks(const clconv_task *t)
{
    clconv_problem whole = padded(t->problem);
    return clconv_weight_nest_blocks(&whole, t->values[CLCONV_GEMM_TILE_M],
                                     t->values[CLCONV_GEMM_TILE_N]);
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    clconv_problem whole = padded(p);
    return clconv_gemm_covers(p, d) &&
           clconv_weight_nest_covers(&whole, CLCONV_GEMM_LEAST_M,
                                     CLCONV_GEMM_LEAST_N);
}

static bool legal(const clconv_task *t)
{
    clconv_nest nest = nest_of(t->problem);
    clconv_wgmma_tile c = clconv_gemm_tile_of(t, &nest);
    return clconv_gemm_legal(t, &c);
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_wgmma_wants_copies(t, OPERANDS);
}

static bool finishes_bias(const clconv_task *t)
{
    clconv_weight_tile tile = weight_tile(t);
    return clconv_weight_nest_has_sum(&tile);
}

static size_t scratch(const clconv_task *t)
{
    clconv_weight_tile tile = weight_tile(t);
    return clconv_weight_nest_scratch(t->problem, &tile);
}

static double cost(const clconv_task *t)
{
    clconv_weight_tile tile = weight_tile(t);
    double elements = (double)clconv_problem_elements(t->problem, CLCONV_DW);
    double waste = (double)blocks(t) * tile.m * tile.n / elements;
    return clconv_gemm_cost(t, waste, tile.split * blocks(t),
                            2 * (double)scratch(t));
}

static void set_split(const clconv_task *t, int *values)
{
    values[SPLIT] = 1;
    clconv_weight_tile tile = weight_tile(t);
    values[SPLIT] = clconv_weight_nest_split(t->problem, t->device, &tile, 64);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    const clconv_task task = {.problem = p, .device = d, .values = values};
    clconv_param_first(params, PARAMS, values);
    clconv_gemm_choose(&task, 32, set_split, legal, cost, values);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    (void)batch;
    clconv_weight_tile tile = weight_tile(t);
    int count = clconv_weight_nest_passes(t, ENTRY, ENTRY_SUM, &tile, out);
    out[0].groups = (size_t)(tile.split * blocks(t));
    return count;
}

static void emit_product(clconv_emit *e, const clconv_task *t,
                         const clconv_nest *nest, const clconv_wgmma_tile *c,
                         const clconv_wgmma_target *to)
{
    clconv_weight_nest_emit_place(e);
    clconv_gemm_emit_product(e, t, c, NULL);
    if (!to->partial)
        clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_wgmma_store_emit(e, t, c, nest, to);
    if (!to->partial)
        clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_nest nest = nest_of(t->problem);
    clconv_wgmma_tile c = clconv_gemm_tile_of(t, &nest);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count = passes(t, t->problem->n, pass);
    const clconv_wgmma_target to = {
        .partial = count > 1 ? "__global float *partial = scratch + block.part "
                               "* (sizes.k * sizes.w_image);"
                             : NULL};
    clconv_weight_nest_emit_packed(e);
    if (count > 1)
        clconv_weight_nest_emit_parts(e, true, 1);
    clconv_gemm_emit_functions(e, t, &c);
    clconv_wgmma_store_emit_functions(e, t, &c, &nest, &to);
    if (count > 1)
        clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    clconv_gemm_open_entry(e, t, &pass[0]);
    emit_product(e, t, &nest, &c, &to);
    if (count > 1)
        clconv_weight_nest_emit_parts_sum(e, t, &pass[1], SUM_ATTRIBUTE, 1,
                                          NULL);
}

const clconv_kernel clconv_bwd_weight_mma = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 3,
    .summary = "dW on a matrix unit, any shape",
    .params = params,
    .param_count = PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .finishes_bias = finishes_bias,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

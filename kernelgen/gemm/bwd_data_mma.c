/*
 * dX on a matrix unit, as the implicit matrix product of data_nest.h; the way of
 * its stages is told in gemm.h.
 *
 *     for each phase, group, block of pixels, block of channels: a work-group
 *         for each tile_k channels, each tap that the phase meets
 *             copy A (a pixel a line) and B (a term a line), acc += A * B
 *         store acc
 *
 * Sizes are arguments unless shape=baked: a new image size need not cost a
 * compilation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "data_nest.h"
#include "gemm.h"
#include "output.h"
#include "wgmma/store.h"

static const clconv_param params[] = {CLCONV_GEMM_PARAM_ROWS};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))

#define ENTRY "bwd_data_mma"

static clconv_nest nest_of(const clconv_problem *p)
{
    return clconv_nest_packed(clconv_data_nest(p), true);
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return clconv_gemm_covers(p, d) &&
           clconv_data_nest_covers(p, CLCONV_GEMM_LEAST_M, CLCONV_GEMM_LEAST_N);
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

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 0;
}

static int64_t tiles(const clconv_task *t, int64_t batch)
{
    return clconv_data_nest_blocks(t->problem, batch,
                                   t->values[CLCONV_GEMM_TILE_M],
                                   t->values[CLCONV_GEMM_TILE_N]);
}

/* A step's channels of dY are filled up with zeros. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double waste = clconv_data_nest_waste(p, t->values[CLCONV_GEMM_TILE_M],
                                          t->values[CLCONV_GEMM_TILE_N]) *
                   clconv_cost_waste(p->group_k, t->values[CLCONV_GEMM_TILE_K]);
    return clconv_gemm_cost(t, waste, tiles(t, p->n), 0);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    const clconv_task task = {.problem = p, .device = d, .values = values};
    clconv_param_first(params, CLCONV_GEMM_PARAMS, values);
    clconv_gemm_choose(&task, p->group_k <= 16 ? 16 : 32, NULL, legal, cost,
                       values);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    clconv_data_nest_pass(t, ENTRY, tiles(t, batch), clconv_gemm_items(t), out);
    return 1;
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_nest *nest, const clconv_wgmma_tile *c,
                           const clconv_wgmma_target *to)
{
    clconv_data_nest_emit_packed(e);
    clconv_gemm_emit_functions(e, t, c);
    clconv_wgmma_store_emit_functions(e, t, c, nest, to);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    const clconv_wgmma_target to = {NULL};
    clconv_nest nest = nest_of(t->problem);
    clconv_wgmma_tile c = clconv_gemm_tile_of(t, &nest);
    clconv_pass pass;
    passes(t, t->problem->n, &pass);
    emit_functions(e, t, &nest, &c, &to);
    clconv_gemm_open_entry(e, t, &pass);
    clconv_data_nest_emit_place(e);
    clconv_gemm_emit_product(e, t, &c, "block_next(&block, &sizes);");
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_wgmma_store_emit(e, t, &c, &nest, &to);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_mma = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 3,
    .summary = "dX on a matrix unit, any shape",
    .params = params,
    .param_count = CLCONV_GEMM_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

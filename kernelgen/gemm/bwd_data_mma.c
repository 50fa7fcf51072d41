/*
 * dX on a matrix unit, as the implicit matrix product of data_nest.h.
 *
 *     for each phase, group, block of pixels, block of channels: a work-group
 *         for each tile_k terms
 *             stage A and B in local memory, as fp16
 *             acc += A * B on the unit
 *         store acc
 *
 * Sizes are arguments unless shape=baked: a new image size need not cost a
 * compilation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "data_nest.h"
#include "entry.h"
#include "gemm.h"
#include "output.h"

static const clconv_param params[] = {CLCONV_GEMM_PARAM_ROWS};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))

/* Channels, so that NHWC's vectors of dY are whole. */
#define ORDER CLCONV_DATA_CHANNELS_FASTEST

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return clconv_gemm_covers(p, d) &&
           clconv_data_nest_covers(p, CLCONV_GEMM_LEAST_M, CLCONV_GEMM_LEAST_N);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    (void)d;
    clconv_gemm_defaults(p->group_c, values);
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_gemm_wants_copies(t, OPERANDS);
}

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 0;
}

/* A short sum is filled up to whole tiles. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double waste = clconv_data_nest_waste(p, t->values[CLCONV_GEMM_TILE_M],
                                          t->values[CLCONV_GEMM_TILE_N]) *
                   clconv_cost_waste(p->r * p->s * p->group_k,
                                     t->values[CLCONV_GEMM_TILE_K]);
    return clconv_gemm_cost(t, waste, 0);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    int64_t blocks = clconv_data_nest_blocks(t->problem, batch,
                                             t->values[CLCONV_GEMM_TILE_M],
                                             t->values[CLCONV_GEMM_TILE_N]);
    clconv_data_nest_pass(t, "bwd_data_mma", blocks, CLCONV_GEMM_ITEMS, out);
    return 1;
}

/* dY's neighbours in memory are pixels of a row (NCHW) or channels (NHWC); W's
 * are channels c in NHWC, and in NCHW where the filter is one tap. */
static void emit_runs(clconv_emit *e, bool nhwc)
{
    clconv_emit_open(e, "int dy_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, nhwc ? "return k % s->group_k + 8 <= s->group_k;"
                             : "return (b->pixel0 + row) % b->columns + 8 <= "
                               "b->columns;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int w_run(const block_t *b, const sizes_t *s, "
                        "int row, int k)");
    clconv_emit_line(e, "return b->c0 + row + 8 <= s->group_c;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_nest *nest)
{
    clconv_data_nest_emit(e, ORDER);
    emit_runs(e, t->problem->layout == CLCONV_NHWC);
    clconv_gemm_emit_functions(e, t, nest);
    clconv_output_emit_store(e, t->problem, CLCONV_DX, 1);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_nest nest = clconv_data_nest(t->problem);
    clconv_pass pass;
    passes(t, 1, &pass);
    emit_functions(e, t, &nest);
    clconv_entry_open(e, t, &pass, CLCONV_GEMM_ATTRIBUTE);
    clconv_data_nest_emit_place(e);
    clconv_gemm_emit_product(e, t, &nest);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_gemm_open_walk(e, t, &nest);
    clconv_emit_line(e, "store_dx(dx, i, value, beta$tally);");
    clconv_gemm_close_walk(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_mma = {
    .name = "bwd_data_mma",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 2,
    .summary = "dX on a matrix unit, any shape",
    .params = params,
    .param_count = CLCONV_GEMM_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = clconv_gemm_legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

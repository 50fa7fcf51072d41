/*
 * dX on a GPU's plain arithmetic, as the implicit matrix product of
 * data_nest.h.
 *
 *     for each phase, group, block of pixels, block of channels: a work-group
 *         for each tile_k terms
 *             stage A and B in local memory
 *             each work-item: sum += A * B, reg_m x reg_n of it
 *         store the sums
 *
 * Sizes are arguments unless shape=baked: one program serves all shapes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "data_nest.h"
#include "entry.h"
#include "local.h"
#include "output.h"

static const clconv_param params[] = {CLCONV_LOCAL_PARAM_ROWS};

#define ENTRY "bwd_data_local"
#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))

static clconv_data_order order_of(const clconv_problem *p)
{
    return p->layout == CLCONV_NHWC ? CLCONV_DATA_CHANNELS_FASTEST
                                    : CLCONV_DATA_TAPS_FASTEST;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return clconv_local_covers(d) &&
           clconv_data_nest_covers(p, CLCONV_LOCAL_LEAST_M,
                                   CLCONV_LOCAL_LEAST_N);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    int64_t pixels = p->n * clconv_data_nest_pixels(p);
    clconv_local_defaults(d, pixels > 0 ? pixels : 1, p->group_c,
                          p->groups * clconv_data_nest_phases(p), false, values);
}

static double cost(const clconv_task *t)
{
    double waste =
        clconv_data_nest_waste(t->problem, t->values[CLCONV_LOCAL_TILE_M],
                               t->values[CLCONV_LOCAL_TILE_N]);
    return clconv_local_cost(t, waste, 0);
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_local_wants_copies(t, OPERANDS);
}

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 0;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    int64_t blocks = clconv_data_nest_blocks(t->problem, batch,
                                             t->values[CLCONV_LOCAL_TILE_M],
                                             t->values[CLCONV_LOCAL_TILE_N]);
    clconv_data_nest_pass(t, ENTRY, blocks, clconv_local_items(t->values), out);
    return 1;
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_data_order order = order_of(t->problem);
    clconv_nest nest = clconv_data_nest(t->problem, order);
    clconv_pass pass;
    passes(t, 1, &pass);
    clconv_data_nest_emit(e, order);
    clconv_local_emit_functions(e, t, &nest);
    clconv_output_emit_store(e, t->problem, CLCONV_DX, 1);
    clconv_output_emit_store(e, t->problem, CLCONV_DX, CLCONV_LOCAL_VECTOR);
    clconv_entry_open(e, t, &pass, CLCONV_LOCAL_ATTRIBUTE);
    clconv_data_nest_emit_place(e);
    clconv_local_emit_product(e, t, &nest);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_local_emit_walk(e, t, &nest, "store_dx4(dx, i, value, beta$tally);",
                           "store_dx(dx, i, value, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_local = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "dX in register tiles from local memory, any shape",
    .params = params,
    .param_count = CLCONV_LOCAL_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = clconv_local_legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

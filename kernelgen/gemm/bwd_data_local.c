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
 * weights=prepared: before that, W is written to scratch with channels last.
 *
 * Sizes are arguments unless shape=baked: one program serves all shapes whose
 * channels come in fours, and one all others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "data_nest.h"
#include "entry.h"
#include "integers.h"
#include "local.h"
#include "output.h"

enum { WEIGHTS = CLCONV_LOCAL_PARAMS, PARAMS };
enum { WEIGHTS_PLAIN, WEIGHTS_PREPARED };

static const clconv_param params[] = {
    CLCONV_LOCAL_PARAM_ROWS,
    [WEIGHTS] = {"weights", CLCONV_NAMES("plain", "prepared"),
                 "how W is read: as it is, or with channels last"},
};

#define ENTRY "bwd_data_local"
#define ENTRY_WEIGHTS "bwd_data_local_weights"
#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))

/* Terms, channels in whole blocks, are counted in ints on the device. */
static bool covers(const clconv_problem *p, const clconv_device *d)
{
    double channels = (double)clconv_round_up(p->group_k, CLCONV_LOCAL_MOST_K);
    double terms = (double)p->r * (double)p->s * channels;
    return clconv_local_covers(d) && terms < CLCONV_NEST_LIMIT &&
           clconv_data_nest_covers(p, CLCONV_LOCAL_LEAST_M,
                                   CLCONV_LOCAL_LEAST_N);
}

/* Of W in fp32. */
static size_t weights_bytes(const clconv_problem *p)
{
    return (size_t)clconv_problem_elements(p, CLCONV_W) * sizeof(float);
}

/* Are channels, which are rows of the tile, no neighbours, and is there room to
 * make them so? */
static bool wants_preparing(const clconv_problem *p, const clconv_device *d)
{
    return p->layout == CLCONV_NCHW && p->r * p->s > 1 &&
           weights_bytes(p) <= d->max_allocation;
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    int64_t pixels = p->n * clconv_data_nest_pixels(p);
    clconv_local_defaults(p, d, pixels > 0 ? pixels : 1, p->group_c,
                          p->groups * clconv_data_nest_phases(p), values);
    values[WEIGHTS] = wants_preparing(p, d) ? WEIGHTS_PREPARED : WEIGHTS_PLAIN;
}

static bool prepares(const clconv_task *t)
{
    return t->values[WEIGHTS] == WEIGHTS_PREPARED;
}

static clconv_nest nest_of(const clconv_task *t)
{
    return prepares(t) ? clconv_data_nest_prepared(t->problem)
                       : clconv_data_nest(t->problem);
}

static bool legal(const clconv_task *t)
{
    clconv_nest nest = nest_of(t);
    return clconv_local_legal(t, &nest) &&
           (!prepares(t) || wants_preparing(t->problem, t->device));
}

static size_t scratch(const clconv_task *t)
{
    return prepares(t) ? weights_bytes(t->problem) : 0;
}

/* Terms are blocks of tile_k channels, the last padded. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double waste = clconv_data_nest_waste(p, t->values[CLCONV_LOCAL_TILE_M],
                                          t->values[CLCONV_LOCAL_TILE_N]) *
                   clconv_cost_waste(p->group_k, t->values[CLCONV_LOCAL_TILE_K]);
    return clconv_local_cost(t, waste, 2 * (double)scratch(t));
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_local_wants_copies(t, OPERANDS);
}

static clconv_pass weights_pass(const clconv_task *t)
{
    int64_t elements = clconv_problem_elements(t->problem, CLCONV_W);
    int items = clconv_local_items(t->values);
    clconv_pass pass = {.entry = ENTRY_WEIGHTS, .serves = CLCONV_OP_DX};
    pass.local = (size_t)items;
    pass.groups = (size_t)clconv_divide_up(elements, items);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_W);
    return pass;
}

static clconv_pass product_pass(const clconv_task *t, int64_t batch)
{
    int64_t blocks = clconv_data_nest_blocks(t->problem, batch,
                                             t->values[CLCONV_LOCAL_TILE_M],
                                             t->values[CLCONV_LOCAL_TILE_N]);
    clconv_pass pass;
    clconv_data_nest_pass(t, ENTRY, blocks, clconv_local_items(t->values),
                          &pass);
    if (prepares(t))
        pass.args[1].kind = CLCONV_ARG_SCRATCH; /* w */
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    int count = 0;
    if (prepares(t))
        out[count++] = weights_pass(t);
    out[count++] = product_pass(t, batch);
    return count;
}

/* One element a work-item, in the order of the scratch. */
static void emit_weights(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = weights_pass(t);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    clconv_entry_open(e, t, &pass, CLCONV_LOCAL_ATTRIBUTE);
    clconv_emit_line(e, "long i = get_group_id(0) * $items + get_local_id(0);");
    clconv_emit_line(e, "if (i >= sizes.k * sizes.w_image)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "int k = (int)(i / sizes.w_image);");
    clconv_emit_line(e, "long within = i % sizes.w_image;");
    clconv_emit_line(e, "int c = (int)(within % sizes.group_c);");
    clconv_emit_line(e, "int tap = (int)(within / sizes.group_c);");
    clconv_emit_line(e, "long from = k * sizes.w_image + c * sizes.w_channel + "
                        "tap / sizes.s * sizes.w_row + tap % sizes.s * "
                        "sizes.w_column;");
    clconv_emit_line(e, "scratch[i] = load_w(w, from);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_nest(clconv_emit *e, const clconv_task *t)
{
    if (prepares(t))
        clconv_data_nest_emit_prepared(e, CLCONV_DATA_CHANNEL_BLOCKS);
    else
        clconv_data_nest_emit(e, CLCONV_DATA_CHANNEL_BLOCKS);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_nest nest = nest_of(t);
    clconv_pass pass = product_pass(t, 1);
    emit_nest(e, t);
    clconv_local_emit_functions(e, t, &nest);
    clconv_output_emit_store(e, t->problem, CLCONV_DX, 1);
    clconv_output_emit_store(e, t->problem, CLCONV_DX, CLCONV_LOCAL_VECTOR);
    if (prepares(t))
        emit_weights(e, t);
    clconv_entry_open(e, t, &pass, CLCONV_LOCAL_ATTRIBUTE);
    if (prepares(t))
        clconv_emit_line(e, "__global const float *w = scratch;");
    clconv_data_nest_emit_place(e);
    clconv_local_emit_product(e, t, &nest);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_local_emit_walk(e, t, &nest, "dx",
                           "store_dx4(dx, i, value, beta$tally);",
                           "store_dx(dx, i, value, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_local = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 2,
    .summary = "dX in register tiles from local memory, any shape",
    .params = params,
    .param_count = PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .promising = clconv_local_promising,
    .cost = cost,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

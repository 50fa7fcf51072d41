/*
 * dW on a GPU's plain arithmetic, as the implicit matrix product of
 * weight_nest.h.
 *
 *     for each part of the pixels, group, block of k, block of columns:
 *     a work-group
 *         for each tile_k pixels of the part
 *             stage A and B in local memory
 *             each work-item: sum += A * B, reg_m x reg_n of it
 *         store the sums: in dW, or if split > 1 as partial sums in scratch
 *     split > 1: bwd_weight_local_sum adds the parts, always in the same order
 *
 * Sizes are arguments unless shape=baked, the number of parts always: one
 * program serves all shapes, and one those without a split, each another where
 * channels do not come in fours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"
#include "integers.h"
#include "kernel_shape.h"
#include "local.h"
#include "output.h"
#include "weight_nest.h"

enum { FILL = CLCONV_LOCAL_PARAMS, PARAMS };

static const clconv_param params[] = {
    CLCONV_LOCAL_PARAM_ROWS,
    [FILL] = {"fill", CLCONV_VALUES(12, 2, 0, 4, 64),
              "work-groups a compute unit that the sum over pixels is split "
              "into; 0: not split"},
};

#define ENTRY "bwd_weight_local"
#define ENTRY_SUM "bwd_weight_local_sum"
#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X))

/* Parts of the sum: whole waves of work-groups, if 3 or 4 or 6 of them fit a
 * unit at once. */
static int split_of(const clconv_problem *p, const clconv_device *d,
                    const int *values)
{
    int64_t blocks = clconv_weight_nest_blocks(p, values[CLCONV_LOCAL_TILE_M],
                                               values[CLCONV_LOCAL_TILE_N]);
    int64_t parts = (int64_t)values[FILL] * d->compute_units / blocks;
    int64_t most =
        clconv_weight_nest_most_parts(p, d, values[CLCONV_LOCAL_TILE_K]);
    return (int)clconv_max(1, clconv_min(parts, most));
}

static clconv_weight_tile tile_of(const clconv_task *t)
{
    return (clconv_weight_tile){
        .m = t->values[CLCONV_LOCAL_TILE_M],
        .n = t->values[CLCONV_LOCAL_TILE_N],
        .k = t->values[CLCONV_LOCAL_TILE_K],
        .split = split_of(t->problem, t->device, t->values),
        .items = clconv_local_items(t->values),
        .sum_items = clconv_local_items(t->values),
    };
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return clconv_local_covers(d) &&
           clconv_weight_nest_covers(p, CLCONV_LOCAL_LEAST_M,
                                     CLCONV_LOCAL_LEAST_N);
}

/* There are as many products as it takes: see split_of(). Large register tiles
 * with asynchronous copies were measured with two work-groups a unit. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    int64_t parts = clconv_weight_nest_most_parts(p, d, 16);
    clconv_local_defaults(p, d, p->group_k, clconv_weight_nest_columns(p),
                          parts * p->groups, values);
    bool wide = clconv_local_is_async(values) && clconv_local_sums(values) >= 64;
    values[FILL] = wide ? 2 : params[FILL].values[0];
}

static size_t scratch(const clconv_task *t)
{
    clconv_weight_tile tile = tile_of(t);
    return clconv_weight_nest_scratch(t->problem, &tile);
}

static bool legal(const clconv_task *t)
{
    clconv_nest nest = clconv_weight_nest(t->problem);
    return clconv_local_legal(t, &nest);
}

/* Parts are written and read again. */
static double cost(const clconv_task *t)
{
    clconv_weight_tile tile = tile_of(t);
    double waste = clconv_weight_nest_waste(t->problem, tile.m, tile.n);
    return clconv_local_cost(t, waste, 2 * (double)scratch(t));
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_local_wants_copies(t, OPERANDS);
}

static bool finishes_bias(const clconv_task *t)
{
    clconv_weight_tile tile = tile_of(t);
    return clconv_weight_nest_has_sum(&tile);
}

static clconv_shape shape_of(const clconv_weight_tile *tile)
{
    clconv_shape shape = {.baked = false};
    clconv_shape_add(&shape, "split", tile->split);
    return shape;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    (void)batch;
    clconv_weight_tile tile = tile_of(t);
    clconv_shape shape = shape_of(&tile);
    int count = clconv_weight_nest_passes(t, ENTRY, ENTRY_SUM, &tile, out);
    for (int i = 0; i < count; ++i)
        clconv_shape_arg(&shape, &out[i]);
    return count;
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_nest *nest, bool direct)
{
    clconv_weight_tile tile = tile_of(t);
    clconv_shape shape = shape_of(&tile);
    clconv_shape_emit(e, &shape);
    clconv_weight_nest_emit(e);
    if (!direct)
        clconv_weight_nest_emit_parts(e, false, 1);
    clconv_local_emit_functions(e, t, nest);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    if (direct)
        clconv_output_emit_store(e, t->problem, CLCONV_DW, CLCONV_LOCAL_VECTOR);
}

static void emit_store(clconv_emit *e, const clconv_task *t,
                       const clconv_nest *nest, bool direct)
{
    if (!direct) {
        clconv_emit_line(e, "scratch += block.part * (sizes.k * "
                            "sizes.w_image);");
        clconv_local_emit_walk(e, t, nest, "part",
                               "vstore4(value, 0, scratch + i);",
                               "scratch[i] = value;");
        return;
    }
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_local_emit_walk(e, t, nest, "dw",
                           "store_dw4(dw, i, value, beta$tally);",
                           "store_dw(dw, i, value, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_nest nest = clconv_weight_nest(t->problem);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count = passes(t, 1, pass);
    bool direct = count == 1;
    clconv_emit_set_text(e, "split", "(int)shape.split");
    emit_functions(e, t, &nest, direct);
    clconv_entry_open(e, t, &pass[0], CLCONV_LOCAL_ATTRIBUTE);
    clconv_weight_nest_emit_place(e);
    clconv_local_emit_product(e, t, &nest);
    emit_store(e, t, &nest, direct);
    clconv_emit_close(e);
    if (!direct)
        clconv_weight_nest_emit_parts_sum(e, t, &pass[1],
                                          CLCONV_LOCAL_ATTRIBUTE, 1, NULL);
}

const clconv_kernel clconv_bwd_weight_local = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 2,
    .summary = "dW in register tiles from local memory, any shape",
    .params = params,
    .param_count = PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .promising = clconv_local_promising,
    .cost = cost,
    .wants_copies = wants_copies,
    .finishes_bias = finishes_bias,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

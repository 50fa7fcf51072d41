/*
 * dW by Hopper's warpgroup products, as the implicit matrix product of
 * weight_nest.h; the way of a tile is told in wgmma.h.
 *
 *     for each part of the pixels, group, block of k, block of columns, dealt
 *     out to as many work-groups as there are compute units
 *         for each 64 pixels
 *             copy A and B (a pixel a line), acc += A * B
 *         store acc: in dW, or as a partial sum in scratch, channels last
 *     more than one part, or a dW whose channels are not neighbours:
 *         bwd_weight_wgmma_sum adds them, in order
 *
 * Groups of few channels: several are multiplied as one (merge), and of the
 * products of different groups, which fill the unit and are no part of dW, the
 * sum takes none.
 *
 * The number of parts follows from the device: one tile a compute unit, or
 * fewer where partial sums would cost more bytes than idle units cost time. What
 * does not fill the last compute units is shared out among them (shares.h) with
 * split=shared.
 * Sizes are arguments unless shape=baked; the number of parts is a constant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "cost.h"
#include "integers.h"
#include "merge.h"
#include "output.h"
#include "shares.h"
#include "store.h"
#include "weight_nest.h"

enum { SPLIT = CLCONV_WGMMA_PARAMS, MERGE, PARAMS };

enum { FILL, HALF, QUARTER, TWICE, NONE, SHARED };

static const clconv_param params[] = {
    CLCONV_WGMMA_PARAM_ROWS,
    [SPLIT] = {"split",
               CLCONV_NAMES("fill", "half", "quarter", "twice", "none", "shared"),
               "parts of the sum over pixels, so that tiles fill the device"},
    [MERGE] = CLCONV_MERGE_PARAM,
};

/* Pixels of a stage. */
#define TERMS 64

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X))

/* What clconv_weight_nest_covers() allows. */
#define MOST_PARTS 256

/* Work-items of the pass that adds the parts. */
#define SUM_ITEMS 256
#define SUM_ATTRIBUTE "__attribute__((reqd_work_group_size(256, 1, 1)))"

static clconv_task merged_task(const clconv_task *t, clconv_problem *merged)
{
    return clconv_merge_task(t, t->values[MERGE], merged);
}

static clconv_nest nest_of(const clconv_problem *p)
{
    return clconv_nest_packed(clconv_weight_nest(p), false);
}

/* Tiles of one part. Maps load whole lines of a tap's channels. */
static int64_t blocks_of(const clconv_problem *p, const int *values)
{
    clconv_problem lined = *p;
    if (values[CLCONV_WGMMA_LOAD] == CLCONV_WGMMA_MAPS)
        lined.group_c =
            clconv_round_up(p->group_c, clconv_wgmma_line(p->group_c));
    return clconv_weight_nest_blocks(&lined, values[CLCONV_WGMMA_TILE_M],
                                     values[CLCONV_WGMMA_TILE_N]);
}

static bool shares(const int *values)
{
    return values[SPLIT] == SHARED;
}

static clconv_shares shares_of(const clconv_problem *p, const clconv_device *d,
                               const int *values)
{
    return clconv_shares_of(d, blocks_of(p, values),
                            clconv_divide_up(p->n * p->p * p->q, TERMS));
}

/* Of a tile, at most. */
static int parts(const clconv_problem *p, const clconv_device *d,
                 const int *values)
{
    if (shares(values))
        return shares_of(p, d, values).parts;
    static const double share[] = {
        [FILL] = 1, [HALF] = 0.5, [QUARTER] = 0.25, [TWICE] = 2, [NONE] = 0};
    int64_t blocks = blocks_of(p, values);
    double wanted = share[values[SPLIT]] * d->compute_units / (double)blocks;
    int64_t most =
        clconv_min(MOST_PARTS, clconv_weight_nest_most_parts(p, d, TERMS));
    return (int)clconv_max(1, clconv_min((int64_t)wanted, most));
}

static clconv_weight_tile weight_tile(const clconv_task *t)
{
    return (clconv_weight_tile){
        .m = t->values[CLCONV_WGMMA_TILE_M],
        .n = t->values[CLCONV_WGMMA_TILE_N],
        .k = TERMS,
        .split = parts(t->problem, t->device, t->values),
        .items = clconv_wgmma_items(t),
        .sum_items = SUM_ITEMS,
        .apart =
            clconv_weight_nest_taps_fastest(t->problem) || t->values[MERGE] > 1,
    };
}

/* ---- Tensor maps ------------------------------------------------------ */

static clconv_tensor_map dy_map(const clconv_problem *p,
                                const clconv_wgmma_tile *c, int64_t batch)
{
    clconv_tensor_map m = clconv_wgmma_map(p, CLCONV_DY, batch, c->a.line);
    m.im2col = true;
    m.box[1] = c->terms;
    return m;
}

/* The upper corner of a window of count pixels. */
static int upper(int lower, int64_t count, int64_t step, int64_t size)
{
    return (int)(lower + (count - 1) * step - (size - 1));
}

/* The pixels of X that the first tap meets. */
static clconv_tensor_map x_map(const clconv_problem *p,
                               const clconv_wgmma_tile *c, int64_t batch)
{
    clconv_tensor_map m = clconv_wgmma_map(p, CLCONV_X, batch, c->b.line);
    m.im2col = true;
    m.box[1] = c->terms;
    m.lower[0] = (int)-p->pad_left;
    m.lower[1] = (int)-p->pad_top;
    m.step[0] = (int)p->stride_w;
    m.step[1] = (int)p->stride_h;
    m.upper[0] = upper(m.lower[0], p->q, p->stride_w, p->w);
    m.upper[1] = upper(m.lower[1], p->p, p->stride_h, p->h);
    return m;
}

static bool maps_fit(const clconv_problem *p, const clconv_wgmma_tile *c)
{
    clconv_tensor_map dy = dy_map(p, c, p->n), x = x_map(p, c, p->n);
    return clconv_tensor_map_legal(&dy) && clconv_tensor_map_legal(&x) &&
           (p->s - 1) * p->dilation_w <= CLCONV_TENSOR_MAP_MOST_TAP &&
           (p->r - 1) * p->dilation_h <= CLCONV_TENSOR_MAP_MOST_TAP;
}

/* ---- The contract ----------------------------------------------------- */

static clconv_wgmma_tile tile_of(const clconv_task *t, const clconv_nest *nest)
{
    return clconv_wgmma_tile_of(t, nest, TERMS);
}

/* Who shares has fewer tiles than work-groups, and a second pass. */
static bool shares_legal(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    return t->values[MERGE] == 1 &&
           blocks_of(p, t->values) < clconv_shares_groups(t->device) &&
           parts(p, t->device, t->values) <=
               clconv_weight_nest_most_room(p, t->device);
}

static bool legal(const clconv_task *t)
{
    if (!clconv_merge_legal(t->problem, t->values[MERGE]) ||
        (shares(t->values) && !shares_legal(t)))
        return false;
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    clconv_nest nest = nest_of(&merged);
    clconv_wgmma_tile c = tile_of(&products, &nest);
    return clconv_wgmma_legal(&products, &c) &&
           (!c.maps || maps_fit(&merged, &c));
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

static size_t partial_bytes(const clconv_task *t)
{
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    clconv_weight_tile tile = weight_tile(&products);
    return (size_t)clconv_round_up(
        (int64_t)clconv_weight_nest_scratch(&merged, &tile), 128);
}

/* Partial sums, then maps. */
static size_t scratch(const clconv_task *t)
{
    return partial_bytes(t) + clconv_wgmma_scratch(t);
}

/* A piece of a tile costs about what a launch does: no products are made while
 * its sums leave. */
static double shares_cost(const clconv_task *t, double waste)
{
    clconv_shares s = shares_of(t->problem, t->device, t->values);
    return clconv_wgmma_cost(t, waste, s.groups, 2 * (double)scratch(t)) +
           clconv_cost_launch(t->device, s.pieces);
}

static double cost(const clconv_task *t)
{
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    clconv_weight_tile tile = weight_tile(&products);
    int64_t blocks = blocks_of(&merged, t->values);
    double elements = (double)merged.k * (double)(merged.r * merged.s) *
                      (double)merged.group_c;
    double waste = (double)blocks * tile.m * tile.n / elements;
    if (shares(t->values))
        return shares_cost(&products, waste);
    return clconv_wgmma_cost(&products, waste, tile.split * blocks,
                             2 * (double)scratch(t));
}

static bool pays_to_share(const clconv_problem *p, const clconv_device *d,
                          const int *values)
{
    int sharing[PARAMS];
    memcpy(sharing, values, sizeof sharing);
    sharing[SPLIT] = SHARED;
    const clconv_task t = {.problem = p, .device = d, .values = values};
    const clconv_task shared = {.problem = p, .device = d, .values = sharing};
    return legal(&shared) && cost(&shared) < cost(&t);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    static const clconv_wgmma_choice tiles[] = {
        {128, 192, 2}, {128, 128, 2}, {128, 64, 2}, {128, 32, 2},
        {64, 192, 3},  {64, 128, 2},  {64, 64, 1},  {64, 32, 1},
    };
    const clconv_task task = {.problem = p, .device = d, .values = values};
    clconv_param_first(params, PARAMS, values);
    values[MERGE] = clconv_merge_choose(p);
    values[CLCONV_WGMMA_SHAPE] = clconv_wgmma_shape(d);
    clconv_wgmma_choose(&task, tiles, (int)(sizeof tiles / sizeof *tiles),
                        legal, cost, values);
    if (pays_to_share(p, d, values))
        values[SPLIT] = SHARED;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    const clconv_task task = {.problem = p, .device = d, .values = values};
    if (!clconv_wgmma_covers(p, d) ||
        !clconv_weight_nest_covers(p, CLCONV_WGMMA_LEAST_M, CLCONV_WGMMA_LEAST_N))
        return false;
    defaults(p, d, values);
    return legal(&task);
}

static int64_t work_groups(const clconv_task *t, const clconv_weight_tile *tile)
{
    return shares(t->values)
               ? clconv_shares_groups(t->device)
               : clconv_wgmma_work_groups(
                     t, tile->split * blocks_of(t->problem, t->values));
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    clconv_nest nest = nest_of(&merged);
    clconv_wgmma_tile c = tile_of(&products, &nest);
    clconv_weight_tile tile = weight_tile(&products);
    int count = clconv_weight_nest_passes(t, "bwd_weight_wgmma",
                                          "bwd_weight_wgmma_sum", &tile, out);
    clconv_tensor_map dy = dy_map(&merged, &c, batch);
    clconv_tensor_map x = x_map(&merged, &c, batch);
    clconv_wgmma_add_maps(&out[0], &c, &dy, &x);
    out[0].groups = (size_t)work_groups(&products, &tile);
    out[0].merge = t->values[MERGE];
    return count;
}

/* ---- Text ------------------------------------------------------------- */

/* The place of a chunk of B does not move; pixels move on by TERMS at a time,
 * which is as many images, rows and columns each time, with carries. */
static void emit_cursor(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int image, row, column; /* of dY */");
    clconv_emit_line(e, "    int images, rows, columns; /* of a step */");
    clconv_emit_line(
        e, "    int4 tap[$b_chunks]; /* of B: channel, column, row */");
    clconv_emit_line(e, "} cursor_t;");
    clconv_emit_blank(e);
    clconv_emit_open(e, "void cursor_begin(cursor_t *c, const block_t *b, "
                        "const sizes_t *s)");
    clconv_emit_line(e, "int3 pixel = pixel_at(s, b->begin);");
    clconv_emit_line(e, "int3 step = pixel_at(s, $terms);");
    clconv_emit_line(e, "c->image = pixel.x;");
    clconv_emit_line(e, "c->row = pixel.y;");
    clconv_emit_line(e, "c->column = pixel.z;");
    clconv_emit_line(e, "c->images = step.x;");
    clconv_emit_line(e, "c->rows = step.y;");
    clconv_emit_line(e, "c->columns = step.z;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $b_chunks; ++i)");
    clconv_emit_line(e, "int3 column = column_at(s, min(b->column0 + $b_line * "
                        "i, b->columns - $b_least));");
    clconv_emit_line(e, "c->tap[i] = (int4)(b->group * ((s->group_c + 7) / 8 * "
                        "8) + column.x, column.z * s->dilation_w, column.y * "
                        "s->dilation_h, 0);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_next_pixel(clconv_emit *e)
{
    clconv_emit_line(e, "cursor->column += cursor->columns;");
    clconv_emit_line(e, "cursor->row += cursor->rows;");
    clconv_emit_line(e, "cursor->image += cursor->images;");
    clconv_emit_open(e, "if (cursor->column >= sizes->q)");
    clconv_emit_line(e, "cursor->column -= sizes->q;");
    clconv_emit_line(e, "++cursor->row;");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (cursor->row >= sizes->p)");
    clconv_emit_line(e, "cursor->row -= sizes->p;");
    clconv_emit_line(e, "++cursor->image;");
    clconv_emit_close(e);
}

/* A: pixels of dY; B: the same of X, moved by the tap of each chunk. Chunks
 * past the last column load it again. */
static void emit_load_step(clconv_emit *e, const clconv_wgmma_tile *c)
{
    clconv_emit_set(e, "b_least", clconv_min(c->b.line, c->n));
    emit_cursor(e);
    clconv_wgmma_open_load(e, c);
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $a_chunks; ++i)");
    clconv_emit_line(e, "    load_im2col(tiles, at + $a_chunk_bytes * i, "
                        "a_source, full,");
    clconv_emit_line(e, "        (int4)(block->group * ((sizes->group_k + 7) / "
                        "8 * 8) + block->k0 + $a_line * i, cursor->column, "
                        "cursor->row, cursor->image), (int2)(0), lane);");
    clconv_emit_line(e, "const int4 pixel = (int4)(0, cursor->column * "
                        "sizes->stride_w - sizes->pad_left, cursor->row * "
                        "sizes->stride_h - sizes->pad_top, cursor->image);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $b_chunks; ++i)");
    clconv_emit_line(e, "    load_im2col(tiles, at + $a_bytes + $b_chunk_bytes "
                        "* i, b_source, full,");
    clconv_emit_line(e, "        pixel + (int4)(cursor->tap[i].x, 0, 0, 0), "
                        "cursor->tap[i].yz, lane);");
    emit_next_pixel(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_wgmma_tile *c)
{
    char columns[64];
    snprintf(columns, sizeof columns, "((s->group_c + %d) / %d * %d)",
             c->b.line - 1, c->b.line, c->b.line);
    if (c->maps)
        clconv_weight_nest_emit_blocks(e, columns);
    else
        clconv_weight_nest_emit(e);
    clconv_weight_nest_emit_parts(e, c->maps, t->values[MERGE]);
    if (shares(t->values)) {
        clconv_shares s = shares_of(t->problem, t->device, t->values);
        clconv_shares_emit(e, &s);
    } else {
        clconv_weight_nest_emit_count(e);
    }
    clconv_wgmma_emit_functions(e, t, c);
    if (c->maps) {
        emit_load_step(e, c);
    }
}

static void emit_product(clconv_emit *e, const clconv_task *t,
                         const clconv_nest *nest, const clconv_wgmma_tile *c,
                         const clconv_wgmma_target *to)
{
    bool direct = !to->partial;
    const clconv_wgmma_deal deal = {.place = shares(t->values)
                                                 ? CLCONV_SHARES_PLACE
                                                 : CLCONV_WEIGHT_NEST_PLACE,
                                    .run = "1",
                                    .together = 1,
                                    .maps_at = partial_bytes(t)};
    if (direct)
        clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_wgmma_open_tiles(e, t, c, &deal);
    clconv_wgmma_store_emit(e, t, c, nest, to);
    clconv_wgmma_close_tiles(e);
    if (direct)
        clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    clconv_nest nest = nest_of(&merged);
    clconv_wgmma_tile c = tile_of(&products, &nest);
    clconv_pass pass[CLCONV_MAX_PASSES];
    int count = passes(t, t->problem->n, pass);
    clconv_wgmma_target to = {
        .partial = count > 1 ? "__global float *partial = scratch + block.part "
                               "* (sizes.k * sizes.w_image);"
                             : NULL};
    clconv_emit_set(e, "tile_k", TERMS);
    clconv_emit_set(e, "split", weight_tile(&products).split);
    emit_functions(e, &products, &c);
    clconv_wgmma_store_emit_functions(e, &products, &c, &nest, &to);
    if (count > 1)
        clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    clconv_wgmma_open_entry(e, &products, &pass[0]);
    emit_product(e, t, &nest, &c, &to);
    const clconv_weight_parts parts = clconv_shares_parts();
    if (count > 1)
        clconv_weight_nest_emit_parts_sum(e, t, &pass[1], SUM_ATTRIBUTE,
                                          t->values[MERGE],
                                          shares(t->values) ? &parts : NULL);
}

const clconv_kernel clconv_bwd_weight_wgmma = {
    .name = "bwd_weight_wgmma",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 1,
    .summary = "dW by Hopper's warpgroup products",
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

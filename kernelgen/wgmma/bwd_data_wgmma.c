/*
 * dX by Hopper's warpgroup products, as the implicit matrix product of
 * data_nest.h; the way of a tile is told in wgmma.h.
 *
 *     for each phase's rows, group, block of pixels, block of channels and phase's
 *     columns, dealt out to as many work-groups as there are compute units
 *         for each 64 terms
 *             copy A (a pixel a line) and B (a term a line), acc += A * B
 *         store acc
 *
 * Sizes are arguments unless shape=baked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "cost.h"
#include "data_nest.h"
#include "entry.h"
#include "output.h"
#include "store.h"

static const clconv_param params[] = {CLCONV_WGMMA_PARAM_ROWS};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))
#define ORDER CLCONV_DATA_CHANNELS_FASTEST

static clconv_nest nest_of(const clconv_problem *p)
{
    return clconv_nest_packed(clconv_data_nest(p), true);
}

/* A stage is a line of channels of one tap. */
static clconv_wgmma_tile tile_of(const clconv_task *t, const clconv_nest *nest)
{
    return clconv_wgmma_tile_of(t, nest, clconv_wgmma_line(t->problem->group_k));
}

/* ---- Tensor maps ------------------------------------------------------ */

/* The first row (or column) of dY that a pixel of the first one meets, rounded
 * down; also in emit_lower(). */
static int lower(int64_t pad, int64_t taps, int64_t dilation, int64_t stride)
{
    int64_t reach = pad - (taps - 1) * dilation;
    return (int)(reach >= 0 ? reach / stride : -((stride - 1 - reach) / stride));
}

/* Pixels of a phase, each moved by lower: as many as the phase has. */
static clconv_tensor_map dy_map(const clconv_problem *p,
                                const clconv_wgmma_tile *c, int64_t batch)
{
    clconv_tensor_map m = clconv_wgmma_map(p, CLCONV_DY, batch, c->a.line);
    int64_t columns = (p->w - 1) / p->stride_w + 1;
    int64_t lines = (p->h - 1) / p->stride_h + 1;
    m.im2col = true;
    m.box[1] = c->m;
    m.lower[0] = lower(p->pad_left, p->s, p->dilation_w, p->stride_w);
    m.lower[1] = lower(p->pad_top, p->r, p->dilation_h, p->stride_h);
    m.upper[0] = (int)(columns - p->q) + m.lower[0];
    m.upper[1] = (int)(lines - p->p) + m.lower[1];
    return m;
}

static clconv_tensor_map w_map(const clconv_problem *p,
                               const clconv_wgmma_tile *c)
{
    clconv_tensor_map m = clconv_wgmma_map(p, CLCONV_W, p->n, c->b.line);
    m.box[3] = c->terms;
    return m;
}

static bool maps_fit(const clconv_problem *p, const clconv_wgmma_tile *c)
{
    clconv_tensor_map dy = dy_map(p, c, p->n), w = w_map(p, c);
    int64_t reach_w = (p->stride_w - 1 + p->pad_left) / p->stride_w;
    int64_t reach_h = (p->stride_h - 1 + p->pad_top) / p->stride_h;
    return clconv_tensor_map_legal(&dy) && clconv_tensor_map_legal(&w) &&
           reach_w - dy.lower[0] <= CLCONV_TENSOR_MAP_MOST_TAP &&
           reach_h - dy.lower[1] <= CLCONV_TENSOR_MAP_MOST_TAP &&
           (p->groups == 1 || p->group_k % c->a.line == 0);
}

/* ---- The contract ----------------------------------------------------- */

static bool legal(const clconv_task *t)
{
    clconv_nest nest = nest_of(t->problem);
    clconv_wgmma_tile c = tile_of(t, &nest);
    return clconv_wgmma_legal(t, &c) && (!c.maps || maps_fit(t->problem, &c));
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_wgmma_wants_copies(t, OPERANDS);
}

static size_t scratch(const clconv_task *t)
{
    return clconv_wgmma_scratch(t);
}

static int64_t tiles(const clconv_task *t, int64_t batch)
{
    return clconv_data_nest_blocks(t->problem, batch,
                                   t->values[CLCONV_WGMMA_TILE_M],
                                   t->values[CLCONV_WGMMA_TILE_N]);
}

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double waste = clconv_data_nest_waste(p, t->values[CLCONV_WGMMA_TILE_M],
                                          t->values[CLCONV_WGMMA_TILE_N]) *
                   clconv_cost_waste(p->group_k, clconv_wgmma_line(p->group_k));
    return clconv_wgmma_cost(t, waste, tiles(t, p->n), 0);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    static const clconv_wgmma_choice tiles[] = {
        {128, 128, 2}, {192, 128, 3}, {256, 128, 2}, {128, 64, 2},
        {192, 64, 3},  {256, 64, 2},  {128, 32, 2},  {192, 32, 3},
        {256, 32, 2},  {64, 128, 1},  {64, 64, 1},   {64, 32, 1},
    };
    const clconv_task task = {.problem = p, .device = d, .values = values};
    clconv_param_first(params, CLCONV_WGMMA_PARAMS, values);
    clconv_wgmma_choose(&task, tiles, (int)(sizeof tiles / sizeof *tiles),
                        legal, cost, values);
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[CLCONV_WGMMA_PARAMS];
    const clconv_task task = {.problem = p, .device = d, .values = values};
    if (!clconv_wgmma_covers(p, d) ||
        !clconv_data_nest_covers(p, CLCONV_WGMMA_LEAST_M, CLCONV_WGMMA_LEAST_N))
        return false;
    defaults(p, d, values);
    return legal(&task);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    const clconv_problem *p = t->problem;
    clconv_nest nest = nest_of(p);
    clconv_wgmma_tile c = tile_of(t, &nest);
    int64_t runs = tiles(t, batch) / clconv_data_nest_run(p);
    int64_t groups = clconv_wgmma_work_groups(t, runs);
    clconv_data_nest_pass(t, "bwd_data_wgmma", groups, clconv_wgmma_items(t),
                          out);
    clconv_tensor_map dy = dy_map(p, &c, batch), w = w_map(p, &c);
    clconv_wgmma_add_maps(out, &c, &dy, &w);
    return 1;
}

/* ---- Text ------------------------------------------------------------- */

static void emit_lower(clconv_emit *e)
{
    clconv_emit_open(e, "int lower(int pad, int taps, int dilation, "
                        "int stride)");
    clconv_emit_line(e, "int reach = pad - (taps - 1) * dilation;");
    clconv_emit_line(e, "return reach >= 0 ? reach / stride : "
                        "-((stride - 1 - reach) / stride);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Of the first tap: it moves on by whole rows and columns of dY. */
static void emit_cursor(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e,
                     "    int4 pixel; /* of A: channel of the group, column, "
                     "row, image */");
    clconv_emit_line(e, "    int k, r, s; /* of B */");
    clconv_emit_line(e, "    int2 tap, step, first; /* column, row: now, from "
                        "tap to tap, at first */");
    clconv_emit_line(e, "} cursor_t;");
    clconv_emit_blank(e);
    clconv_emit_open(e, "void cursor_begin(cursor_t *c, const block_t *b, "
                        "const sizes_t *s)");
    clconv_emit_line(e, "int row = b->pixel0 / b->columns;");
    clconv_emit_line(e, "int2 corner = (int2)(");
    clconv_emit_line(e, "    lower(s->pad_left, s->s, s->dilation_w, "
                        "s->stride_w),");
    clconv_emit_line(e, "    lower(s->pad_top, s->r, s->dilation_h, "
                        "s->stride_h));");
    clconv_emit_line(e, "c->pixel = (int4)(b->group * ((s->group_k + 7) / 8 * "
                        "8), b->pixel0 % b->columns + corner.x,");
    clconv_emit_line(e, "    row % b->lines + corner.y, row / b->lines);");
    clconv_emit_line(e, "c->k = 0;");
    clconv_emit_line(e, "c->r = b->r0;");
    clconv_emit_line(e, "c->s = b->s0;");
    clconv_emit_line(e, "c->first = (int2)(");
    clconv_emit_line(e, "    (b->w0 + s->pad_left - b->s0 * s->dilation_w) / "
                        "s->stride_w,");
    clconv_emit_line(e, "    (b->h0 + s->pad_top - b->r0 * s->dilation_h) / "
                        "s->stride_h) - corner;");
    clconv_emit_line(e,
                     "c->step = (int2)(b->s_step * s->dilation_w / "
                     "s->stride_w, b->r_step * s->dilation_h / s->stride_h);");
    clconv_emit_line(e, "c->tap = c->first;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_next_term(clconv_emit *e)
{
    clconv_emit_line(e, "cursor->k += $a_line;");
    clconv_emit_open(e, "if (cursor->k >= sizes->group_k)");
    clconv_emit_line(e, "cursor->k = 0;");
    clconv_emit_line(e, "cursor->s += block->s_step;");
    clconv_emit_line(e, "cursor->tap.x -= cursor->step.x;");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (cursor->s >= sizes->s)");
    clconv_emit_line(e, "cursor->s = block->s0;");
    clconv_emit_line(e, "cursor->tap.x = cursor->first.x;");
    clconv_emit_line(e, "cursor->r += block->r_step;");
    clconv_emit_line(e, "cursor->tap.y -= cursor->step.y;");
    clconv_emit_close(e);
}

/* A: tile_m pixels, moved by the tap; B: a line of k at that tap. */
static void emit_load_step(clconv_emit *e, const clconv_wgmma_tile *c)
{
    emit_cursor(e);
    clconv_wgmma_open_load(e, c);
    clconv_emit_line(e,
                     "load_im2col(tiles, at, a_source, full, cursor->pixel + "
                     "(int4)(cursor->k, 0, 0, 0), cursor->tap, lane);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $b_chunks; ++i)");
    clconv_emit_line(e, "    load_tiled(tiles, at + $a_bytes + $b_chunk_bytes "
                        "* i, b_source, full,");
    clconv_emit_line(e,
                     "        (int4)(block->c0 + $b_line * i, cursor->s, "
                     "cursor->r, block->group * sizes->group_k + cursor->k), "
                     "lane);");
    emit_next_term(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_wgmma_tile *c)
{
    char terms[64];
    snprintf(terms, sizeof terms, "((s->group_k + %d) / %d * %d)",
             c->a.line - 1, c->a.line, c->a.line);
    if (c->maps)
        clconv_data_nest_emit_blocks(e, ORDER, terms);
    else
        clconv_data_nest_emit(e, ORDER);
    clconv_data_nest_emit_count(e);
    clconv_wgmma_emit_functions(e, t, c);
    if (c->maps) {
        emit_lower(e);
        emit_load_step(e, c);
    }
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_nest nest = nest_of(t->problem);
    clconv_wgmma_tile c = tile_of(t, &nest);
    clconv_wgmma_target to = {NULL};
    const clconv_wgmma_deal deal = {.place = CLCONV_DATA_NEST_PLACE,
                                    .run = CLCONV_DATA_NEST_RUN};
    clconv_pass pass;
    passes(t, t->problem->n, &pass);
    emit_functions(e, t, &c);
    clconv_wgmma_store_emit_functions(e, t, &c, &nest, &to);
    clconv_wgmma_open_entry(e, t, &pass);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_wgmma_open_tiles(e, t, &c, &deal);
    clconv_wgmma_store_emit(e, t, &c, &nest, &to);
    clconv_wgmma_close_tiles(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_wgmma = {
    .name = "bwd_data_wgmma",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "dX by Hopper's warpgroup products",
    .params = params,
    .param_count = CLCONV_WGMMA_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

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
 * With a stride along columns, neighbours of a row of dX are in different phases:
 * where these are neighbours in memory, a work-group computes such tiles after one
 * another and stores them at once (phases=together).
 *
 * Groups of few channels: several are multiplied as one (merge), by weights that
 * bwd_data_wgmma_weights spreads out, with zeros between different groups. Sums
 * that are no numbers may come of these, and are worked out again.
 *
 * Sizes are arguments unless shape=baked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "cost.h"
#include "data_nest.h"
#include "entry.h"
#include "integers.h"
#include "merge.h"
#include "output.h"
#include "store.h"

enum { MERGE = CLCONV_WGMMA_PARAMS, PHASES, PARAMS };

enum { APART, TOGETHER };

static const clconv_param params[] = {
    CLCONV_WGMMA_PARAM_ROWS,
    [MERGE] = CLCONV_MERGE_PARAM,
    [PHASES] =
        {"phases", CLCONV_NAMES("apart", "together"),
         "whether pixels of a row that a stride parts are stored at once"},
};

#define ENTRY "bwd_data_wgmma"
#define ENTRY_WEIGHTS ENTRY "_weights"
#define WEIGHTS_ITEMS 256

/* Of a work-item, of two warpgroups, in all tiles that are stored at once. */
#define MOST_SUMS 128

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))
#define ORDER CLCONV_DATA_CHANNELS_FASTEST

static bool merges(const clconv_task *t)
{
    return t->values[MERGE] > 1;
}

static clconv_task merged_task(const clconv_task *t, clconv_problem *merged)
{
    return clconv_merge_task(t, t->values[MERGE], merged);
}

/* Tiles that are stored at once. */
static int together(const clconv_task *t)
{
    return t->values[PHASES] == TOGETHER ? (int)clconv_data_nest_run(t->problem)
                                         : 1;
}

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

static int sums_of(const clconv_wgmma_tile *c)
{
    return c->group_m / CLCONV_WGMMA_M * clconv_products_registers(&c->products);
}

/* Halves of W as merged groups have it. */
static int64_t merged_weights(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    return p->k * p->r * p->s * p->group_c * t->values[MERGE];
}

/* What merging asks: weights are counted in ints. */
static bool can_merge(const clconv_task *t, const clconv_wgmma_tile *c)
{
    return c->along_m && sums_of(c) <= CLCONV_WGMMA_MOST_MENDED &&
           merged_weights(t) < CLCONV_NEST_LIMIT;
}

/* Worth it where stores of single phases fill no sectors of memory. */
static bool can_store_together(const clconv_task *t, const clconv_wgmma_tile *c)
{
    return t->problem->layout == CLCONV_NCHW &&
           clconv_data_nest_run(t->problem) > 1 && !merges(t) &&
           c->groups <= 2 && together(t) * sums_of(c) <= MOST_SUMS;
}

static bool legal(const clconv_task *t)
{
    if (!clconv_merge_legal(t->problem, t->values[MERGE]))
        return false;
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    clconv_nest nest = nest_of(&merged);
    clconv_wgmma_tile c = tile_of(&products, &nest);
    return clconv_wgmma_legal(&products, &c) &&
           (!c.maps || maps_fit(&merged, &c)) &&
           (!merges(t) || can_merge(t, &c)) &&
           (t->values[PHASES] == APART || can_store_together(t, &c));
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_wgmma_wants_copies(t, OPERANDS);
}

/* Maps come first. */
static size_t weights_at(const clconv_task *t)
{
    return (size_t)clconv_round_up((int64_t)clconv_wgmma_scratch(t), 128);
}

static size_t scratch(const clconv_task *t)
{
    if (!merges(t))
        return clconv_wgmma_scratch(t);
    return weights_at(t) + 2 * (size_t)merged_weights(t);
}

/* Of the task of the products. */
static int64_t tiles(const clconv_task *t, int64_t batch)
{
    return clconv_data_nest_blocks(t->problem, batch,
                                   t->values[CLCONV_WGMMA_TILE_M],
                                   t->values[CLCONV_WGMMA_TILE_N]);
}

static double cost(const clconv_task *t)
{
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    double waste =
        clconv_data_nest_waste(&merged, t->values[CLCONV_WGMMA_TILE_M],
                               t->values[CLCONV_WGMMA_TILE_N]) *
        clconv_cost_waste(merged.group_k, clconv_wgmma_line(merged.group_k));
    double bytes = merges(t) ? 4 * (double)merged_weights(t) : 0;
    return clconv_wgmma_cost(&products, waste, tiles(&products, merged.n),
                             bytes);
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
    clconv_param_first(params, PARAMS, values);
    values[MERGE] = clconv_merge_choose(p);
    values[CLCONV_WGMMA_SHAPE] = clconv_wgmma_shape(d);
    values[PHASES] = TOGETHER;
    clconv_wgmma_choose(&task, tiles, (int)(sizeof tiles / sizeof *tiles),
                        legal, cost, values);
    if (legal(&task))
        return;
    values[PHASES] = APART;
    clconv_wgmma_choose(&task, tiles, (int)(sizeof tiles / sizeof *tiles),
                        legal, cost, values);
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    const clconv_task task = {.problem = p, .device = d, .values = values};
    if (!clconv_wgmma_covers(p, d) ||
        !clconv_data_nest_covers(p, CLCONV_WGMMA_LEAST_M, CLCONV_WGMMA_LEAST_N))
        return false;
    defaults(p, d, values);
    return legal(&task);
}

static clconv_pass weights_pass(const clconv_task *t)
{
    clconv_pass pass = {
        .entry = ENTRY_WEIGHTS,
        .local = WEIGHTS_ITEMS,
        .serves = CLCONV_OP_DX,
    };
    pass.groups =
        (size_t)clconv_divide_up(merged_weights(t), (int64_t)WEIGHTS_ITEMS);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    return pass;
}

/* t: the task of the products. */
static clconv_pass product_pass(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    clconv_nest nest = nest_of(p);
    clconv_wgmma_tile c = tile_of(t, &nest);
    int64_t runs = tiles(t, batch) / clconv_data_nest_run(p);
    int64_t groups = clconv_wgmma_work_groups(t, runs);
    clconv_pass pass;
    clconv_data_nest_pass(t, ENTRY, groups, clconv_wgmma_items(t), &pass);
    clconv_tensor_map dy = dy_map(p, &c, batch), w = w_map(p, &c);
    clconv_wgmma_add_maps(&pass, &c, &dy, &w);
    if (merges(t) && !c.maps)
        clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    pass.merge = t->values[MERGE];
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    int count = 0;
    if (merges(t))
        out[count++] = weights_pass(t);
    out[count++] = product_pass(&products, batch);
    return count;
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

/* ---- Text: merged groups ---------------------------------------------- */

/* A half a work-item. */
static void emit_weights(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = weights_pass(t);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_emit_line(e, "const int i = (int)get_global_id(0);");
    clconv_emit_line(e, "if (i >= $merged_weights)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "const int row = i / ($merge * $own_c);");
    clconv_emit_line(e, "const int own = row / $taps / $own_k % $merge;");
    clconv_emit_line(e, "const int c = i % ($merge * $own_c) - own * $own_c;");
    clconv_emit_line(e, "((__global ushort *)(scratch + $weights_at))[i] =");
    clconv_emit_line(e, "    c >= 0 && c < $own_c ? ((__global const ushort *)"
                        "w)[row * $own_c + c] : 0;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* One element, by the channels of its own group: see store.h. */
static void emit_dx_sum(clconv_emit *e)
{
    clconv_nest_open_function(
        e,
        "float dx_sum(__global const half *dy, __global const half *w, const "
        "block_t *b, const sizes_t *s, int m, int n)");
    clconv_emit_line(e, "const int3 pixel = pixel_at(b, s, m);");
    clconv_emit_line(e, "const int c = b->c0 + n, own = c / $own_c * $own_k;");
    clconv_emit_line(e, "float sum = 0.0f;");
    clconv_emit_line(e, "if (pixel.x < 0 || c >= s->group_c)");
    clconv_emit_line(e, "    return sum;");
    clconv_emit_line(e, "for (int r = b->r0; r < s->r; r += b->r_step)");
    clconv_emit_open(e, "for (int t = b->s0; t < s->s; t += b->s_step)");
    clconv_emit_line(e, "const int y = pixel.y + (b->h0 + s->pad_top - r * "
                        "s->dilation_h) / s->stride_h;");
    clconv_emit_line(e, "const int x = pixel.z + (b->w0 + s->pad_left - t * "
                        "s->dilation_w) / s->stride_w;");
    clconv_emit_line(e, "if (y < 0 || y >= s->p || x < 0 || x >= s->q)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "const long at = ((long)pixel.x * s->p + y) * s->q + "
                        "x;");
    clconv_emit_open(e, "for (int i = own; i < own + $own_k; ++i)");
    clconv_emit_line(e, "const int k = b->group * s->group_k + i;");
    clconv_emit_line(e, "sum += vload_half(at * s->k + k, dy) * vload_half(((k "
                        "* s->r + r) * s->s + t) * s->group_c + c, w);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "return sum;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void set_merge_holes(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    clconv_emit_set(e, "merge", t->values[MERGE]);
    clconv_emit_set(e, "own_c", p->group_c);
    clconv_emit_set(e, "own_k", p->group_k);
    clconv_emit_set(e, "taps", p->r * p->s);
    clconv_emit_set(e, "merged_weights", merged_weights(t));
    clconv_emit_set(e, "weights_at", (int64_t)(weights_at(t) / sizeof(float)));
}

/* ---- Text: phases ---------------------------------------------------- */

/* The pixel of the part-th phase right of the first one's, at block; -1: not in
 * dX. */
static void emit_part_row(clconv_emit *e)
{
    clconv_nest_open_function(e, "long dx_part_row(const block_t *b, const "
                                 "sizes_t *s, int m, int part)");
    clconv_emit_line(e, "const int w = pixel_at(b, s, m).z * s->stride_w + "
                        "part;");
    clconv_emit_line(e, "const long row = dx_row(b, s, m);");
    clconv_emit_line(e,
                     "return row >= 0 && w < s->w ? row + part * s->x_column "
                     ": -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The whole -------------------------------------------------------- */

/* t: the task of the products. */
static void emit_products(clconv_emit *e, const clconv_task *t)
{
    clconv_nest nest = nest_of(t->problem);
    clconv_wgmma_tile c = tile_of(t, &nest);
    const clconv_wgmma_target to = {.together = together(t)};
    const clconv_wgmma_deal deal = {.place = CLCONV_DATA_NEST_PLACE,
                                    .run = CLCONV_DATA_NEST_RUN,
                                    .together = together(t)};
    clconv_pass pass = product_pass(t, t->problem->n);
    emit_functions(e, t, &c);
    if (merges(t))
        emit_dx_sum(e);
    if (together(t) > 1)
        emit_part_row(e);
    clconv_wgmma_store_emit_functions(e, t, &c, &nest, &to);
    clconv_wgmma_open_entry(e, t, &pass);
    if (merges(t))
        clconv_emit_line(e, "w = (__global const half *)(scratch + "
                            "$weights_at);");
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_wgmma_open_tiles(e, t, &c, &deal);
    if (merges(t))
        clconv_wgmma_mend_emit(e);
    clconv_wgmma_store_emit(e, t, &c, &nest, &to);
    clconv_wgmma_close_tiles(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_problem merged;
    const clconv_task products = merged_task(t, &merged);
    set_merge_holes(e, t);
    if (merges(t))
        emit_weights(e, t);
    emit_products(e, &products);
}

const clconv_kernel clconv_bwd_data_wgmma = {
    .name = "bwd_data_wgmma",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "dX by Hopper's warpgroup products",
    .params = params,
    .param_count = PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

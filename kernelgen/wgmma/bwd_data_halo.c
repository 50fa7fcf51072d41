/*
 * dX by Hopper's warpgroup products for few channels: a tile of dY with its
 * halo is loaded once for all taps, and all weights of a block of channels stay
 * in local memory. For strides of 1.
 *
 *     each work-group, for its group and block of channels
 *         load W: a matrix [k][c] a tap
 *         for each tile of tile_w x tile_h pixels, in turns
 *             copier: load dY's pixels that any tap of the tile meets
 *             others: for each tap: acc += dY moved by the tap * W of the tap
 *                     store acc
 *
 * A product's 64 rows are 8 x 8 pixels: 8 neighbours in a line of the image,
 * and 8 lines, a line of the halo's apart. A tap moves the matrix by whole
 * pixels, which a descriptor can.
 *
 * Sizes are arguments unless shape=baked; the filter's are constants.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "cost.h"
#include "entry.h"
#include "integers.h"
#include "output.h"
#include "ring.h"
#include "sizes.h"
#include "store.h"

enum { TILE_W, TILE_H, TILE_N, STAGES, SHAPE, PARAMS };

static const clconv_param params[PARAMS] = {
    [TILE_W] = {"tile_w", CLCONV_VALUES(16, 32, 8),
                "columns of dX that a work-group takes at a time"},
    [TILE_H] = {"tile_h", CLCONV_VALUES(16, 8), "rows of dX"},
    [TILE_N] = {"tile_n", CLCONV_VALUES(64, 32), "channels of dX"},
    [STAGES] = {"stages", CLCONV_VALUES(3, 2, 4), "tiles in local memory"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define OPERANDS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W))

#define GROUPS 2 /* warpgroups that multiply */
#define WORKERS (GROUPS * CLCONV_WARPGROUP)
#define ITEMS (WORKERS + 32)
#define ATTRIBUTE "__attribute__((reqd_work_group_size(288, 1, 1)))"

#define MOST_SUMS 128
#define MOST_TAPS 25

/* ---- The tile --------------------------------------------------------- */

typedef struct tile {
    int w, h, n, stages;
    int halo_w, halo_h;  /* pixels of dY */
    int blocks;          /* of 64 pixels, a warpgroup's */
    int line;            /* of A: all channels of a group of dY */
    clconv_wgmma_side b; /* of one tap */
    int64_t stage_bytes, weight_bytes;
    clconv_nest nest;
    clconv_products products;
} tile;

static void tile_of(const clconv_task *t, tile *c)
{
    const clconv_problem *p = t->problem;
    const int *v = t->values;
    *c = (tile){.w = v[TILE_W], .h = v[TILE_H], .n = v[TILE_N]};
    c->stages = v[STAGES];
    c->halo_w = c->w + (int)((p->s - 1) * p->dilation_w);
    c->halo_h = c->h + (int)((p->r - 1) * p->dilation_h);
    c->blocks = c->w * c->h / CLCONV_WGMMA_M / GROUPS;
    c->line = clconv_wgmma_line(p->group_k);
    c->nest.b = (clconv_nest_operand){.tensor = CLCONV_W};
    c->nest.c = CLCONV_DX;
    c->b = (clconv_wgmma_side){&c->nest.b, "b", c->n, c->line,
                               clconv_wgmma_line(p->group_c)};
    c->stage_bytes = clconv_round_up(
        (int64_t)c->halo_w * c->halo_h * c->line * 2, CLCONV_RING_ALIGNMENT);
    c->weight_bytes = clconv_round_up(
        p->r * p->s * clconv_wgmma_side_bytes(&c->b), CLCONV_RING_ALIGNMENT);
    c->products = (clconv_products){
        .n = c->n, .a_along_k = true, .emulated = t->device->unit_emulated};
}

static int64_t local_bytes(const tile *c)
{
    return c->stages * c->stage_bytes + c->weight_bytes + CLCONV_RING_ALIGNMENT;
}

/* Groups and blocks of channels: each work-group has one. */
static int64_t sets_of(const clconv_problem *p, int tile_n)
{
    return p->groups * clconv_divide_up(p->group_c, tile_n);
}

static int64_t tiles_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    return sets_of(p, t->values[TILE_N]) * batch *
           clconv_divide_up(p->w, t->values[TILE_W]) *
           clconv_divide_up(p->h, t->values[TILE_H]);
}

/* ---- May it? ---------------------------------------------------------- */

static clconv_tensor_map dy_map(const clconv_problem *p, const tile *c,
                                int64_t batch)
{
    clconv_tensor_map m = clconv_wgmma_map(p, CLCONV_DY, batch, c->line);
    m.box[1] = c->halo_w;
    m.box[2] = c->halo_h;
    return m;
}

static clconv_tensor_map w_map(const clconv_problem *p, const tile *c)
{
    clconv_tensor_map m = clconv_wgmma_map(p, CLCONV_W, p->n, c->b.line);
    m.box[3] = c->line;
    return m;
}

/* Tiles of all images, and pixels, are counted in ints. */
static bool counts_fit(const clconv_problem *p)
{
    double tiles = (double)p->n * (double)clconv_divide_up(p->h, 8) *
                   (double)clconv_divide_up(p->w, 8) *
                   (double)sets_of(p, CLCONV_WGMMA_LEAST_N);
    return clconv_nest_covers(p) && tiles < CLCONV_NEST_LIMIT;
}

static bool suits(const clconv_problem *p, const clconv_device *d)
{
    return clconv_wgmma_covers(p, d) && d->tensor_maps && p->stride_h == 1 &&
           p->stride_w == 1 && p->group_k <= 64 && p->r * p->s <= MOST_TAPS &&
           p->r <= MOST_TAPS && p->dilation_h <= 64 && p->dilation_w <= 64 &&
           counts_fit(p);
}

static bool legal(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    const clconv_device *d = t->device;
    if (!suits(p, d))
        return false;
    tile c;
    tile_of(t, &c);
    clconv_tensor_map dy = dy_map(p, &c, p->n), w = w_map(p, &c);
    return clconv_tensor_map_legal(&dy) && clconv_tensor_map_legal(&w) &&
           (p->groups == 1 || p->group_k % c.line == 0) &&
           c.w * c.h % (CLCONV_WGMMA_M * GROUPS) == 0 &&
           c.blocks * clconv_products_registers(&c.products) <= MOST_SUMS &&
           local_bytes(&c) + CLCONV_RING_BARRIERS <=
               (int64_t)clconv_ring_local_memory(d) &&
           sets_of(p, c.n) <= d->compute_units && d->max_work_group >= ITEMS;
}

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_wgmma_wants_copies(t, OPERANDS);
}

static size_t scratch(const clconv_task *t)
{
    return clconv_ring_map_bytes(t->device);
}

/* Multiply-adds, as a share of the peak outside the unit, see wgmma.c: bytes to
 * local memory do not count here, products of few columns do. */
#define SHARE 16.0
#define NARROW 32.0

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    tile c;
    if (t->device->unit_emulated)
        return 0; /* it was asked for */
    tile_of(t, &c);
    double tiles = (double)clconv_max(1, tiles_of(t, p->n));
    double done = tiles * c.w * c.h * c.n * (double)(c.line * p->r * p->s);
    double turns = clconv_cost_waste((int64_t)tiles, t->device->compute_units);
    return done * turns * (1 + NARROW / c.n) / SHARE +
           clconv_cost_launch(t->device, 1);
}

/* The cheapest that is legal. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    static const int sizes[][3] = {{16, 16, 3}, {32, 8, 3},  {16, 8, 4},
                                   {8, 16, 4},  {16, 16, 2}, {16, 8, 2}};
    const clconv_task task = {.problem = p, .device = d, .values = values};
    int best[PARAMS];
    double least = -1;
    clconv_param_first(params, PARAMS, values);
    values[TILE_N] = p->group_c <= 32 ? 32 : 64;
    values[SHAPE] = clconv_wgmma_shape(d);
    memcpy(best, values, sizeof best);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        values[TILE_W] = sizes[i][0];
        values[TILE_H] = sizes[i][1];
        values[STAGES] = sizes[i][2];
        double is = legal(&task) ? cost(&task) : -1;
        if (is < 0 || (least >= 0 && is >= least))
            continue;
        least = is;
        memcpy(best, values, sizeof best);
    }
    memcpy(values, best, sizeof best);
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    const clconv_task task = {.problem = p, .device = d, .values = values};
    if (!suits(p, d))
        return false;
    defaults(p, d, values);
    return legal(&task);
}

/* As many work-groups as compute units, but of each set as many as of others. */
static int64_t work_groups(const clconv_task *t, int64_t batch)
{
    int64_t sets = sets_of(t->problem, t->values[TILE_N]);
    int64_t most = clconv_max(1, t->device->compute_units / sets) * sets;
    return clconv_min(tiles_of(t, batch), most);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    const clconv_problem *p = t->problem;
    tile c;
    tile_of(t, &c);
    *out = (clconv_pass){
        .entry = "bwd_data_halo",
        .groups = (size_t)work_groups(t, batch),
        .local = ITEMS,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_SIZES, CLCONV_DX);
    if (clconv_output_is_counted(p, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_SCRATCH, CLCONV_DX);
    out->map[CLCONV_DY] = dy_map(p, &c, batch);
    out->map[CLCONV_W] = w_map(p, &c);
    clconv_entry_arg(out, CLCONV_ARG_MAP, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_MAP, CLCONV_W);
    return 1;
}

/* ---- Text: places ----------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_problem *p, const tile *c)
{
    clconv_emit_set(e, "r", p->r);
    clconv_emit_set(e, "s", p->s);
    clconv_emit_set(e, "dilation_h", p->dilation_h);
    clconv_emit_set(e, "dilation_w", p->dilation_w);
    clconv_emit_set(e, "halo_w", c->halo_w);
    clconv_emit_set(e, "line", 2 * c->line);
    clconv_emit_set(e, "steps", c->line / CLCONV_WGMMA_K);
    clconv_emit_set(e, "eight", (int64_t)c->halo_w * c->line * 2);
    clconv_emit_set(e, "across", c->w / 8);
    clconv_emit_set(e, "blocks_m", c->blocks);
    clconv_emit_set(e, "group_m", c->blocks * CLCONV_WGMMA_M);
    clconv_emit_set(e, "group_n", 0);
    clconv_emit_set(e, "sums", clconv_products_registers(&c->products));
    clconv_emit_set(e, "b_line", c->b.line);
    clconv_emit_set(e, "b_chunks", clconv_wgmma_chunks(&c->b));
    clconv_emit_set(e, "b_chunk_bytes", clconv_wgmma_chunk_bytes(&c->b));
    clconv_emit_set(e, "b_step", clconv_wgmma_step_bytes(&c->b) / 16);
    clconv_emit_set(e, "tap_bytes", clconv_wgmma_side_bytes(&c->b));
    clconv_emit_set(e, "weights_loaded",
                    p->r * p->s * clconv_wgmma_side_bytes(&c->b));
    clconv_emit_set(e, "weight_bytes", c->weight_bytes);
    clconv_emit_set(e, "stage_bytes", c->stage_bytes);
    clconv_emit_set(e, "stage_loaded",
                    (int64_t)c->halo_w * c->halo_h * c->line * 2);
    clconv_emit_set(e, "tile_bytes", local_bytes(c));
    clconv_emit_set(e, "copiers", 1);
    clconv_emit_set(e, "workers", WORKERS);
    clconv_emit_set(e, "worker_warps", WORKERS / 32);
}

static void emit_block(clconv_emit *e)
{
    clconv_emit_line(e, "/* One work-group's tile of dX. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int group, c0, image, h0, w0;");
    clconv_emit_line(e, "} block_t;");
    clconv_emit_blank(e);
    clconv_emit_open(e, "int block_sets(const sizes_t *s)");
    clconv_emit_line(e, "return s->groups * ((s->group_c + $tile_n - 1) / "
                        "$tile_n);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int block_count(const sizes_t *s)");
    clconv_emit_line(e, "return block_sets(s) * s->n * ((s->h + $tile_h - 1) / "
                        "$tile_h) * ((s->w + $tile_w - 1) / $tile_w);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "void block_place(block_t *b, const sizes_t "
                                 "*s, int number)");
    clconv_emit_line(e, "int sets = block_sets(s);");
    clconv_emit_line(e, "int set = number % sets;");
    clconv_emit_line(e, "int across = (s->w + $tile_w - 1) / $tile_w;");
    clconv_emit_line(e, "int down = (s->h + $tile_h - 1) / $tile_h;");
    clconv_emit_line(e, "number /= sets;");
    clconv_emit_line(e, "b->c0 = set / s->groups * $tile_n;");
    clconv_emit_line(e, "b->group = set % s->groups;");
    clconv_emit_line(e, "b->w0 = number % across * $tile_w;");
    clconv_emit_line(e, "number /= across;");
    clconv_emit_line(e, "b->h0 = number % down * $tile_h;");
    clconv_emit_line(e, "b->image = number / down;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Row m of the tile is pixel m % 64 of its m / 64-th block. */
static void emit_dx(clconv_emit *e)
{
    clconv_nest_open_function(e, "long dx_row(const block_t *b, const sizes_t "
                                 "*s, int m)");
    clconv_emit_line(e, "int h = b->h0 + m / 64 / $across * 8 + m % 64 / 8;");
    clconv_emit_line(e, "int w = b->w0 + m / 64 % $across * 8 + m % 8;");
    clconv_emit_line(e, "long at = b->image * s->x_image + h * s->x_row + "
                        "w * s->x_column;");
    clconv_emit_line(e, "return h < s->h && w < s->w ? at : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "long dx_column(const block_t *b, const "
                                 "sizes_t *s, int n)");
    clconv_emit_line(e, "long at = (b->group * s->group_c + b->c0 + n) * "
                        "s->x_channel;");
    clconv_emit_line(e, "return b->c0 + n < s->group_c ? at : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: loads and products ----------------------------------------- */

static void emit_loads(clconv_emit *e, const tile *c)
{
    clconv_emit_set_text(e, "source",
                         c->products.emulated ? "const source_t *"
                                              : "__global const ulong *");
    clconv_nest_open_function(
        e, "void load_tile(__local uchar *tiles, uint at, uint full, "
           "${source}source, const block_t *b, const sizes_t *s, int lane)");
    clconv_emit_line(e, "load_tiled(tiles, at, source, full, (int4)(");
    clconv_emit_line(e, "    b->group * ((s->group_k + 7) / 8 * 8),");
    clconv_emit_line(e, "    b->w0 + s->pad_left - ($s - 1) * $dilation_w,");
    clconv_emit_line(e, "    b->h0 + s->pad_top - ($r - 1) * $dilation_h,");
    clconv_emit_line(e, "    b->image), lane);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(
        e, "void load_weights(__local uchar *tiles, uint at, uint ready, "
           "${source}source, const block_t *b, const sizes_t *s, int lane)");
    clconv_emit_line(e, "for (int tap = 0; tap < $r * $s; ++tap)");
    clconv_emit_line(e, "    for (int i = 0; i < $b_chunks; ++i)");
    clconv_emit_line(e, "        load_tiled(tiles, at + $tap_bytes * tap + "
                        "$b_chunk_bytes * i, source, ready,");
    clconv_emit_line(e, "            (int4)(b->c0 + $b_line * i, tap % $s, "
                        "tap / $s, b->group * s->group_k), lane);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_unroll(clconv_emit *e, const tile *c)
{
    if (!c->products.emulated)
        clconv_emit_line(e, "#pragma unroll");
}

/* The tap r, s of a pixel is dilation * (R - 1 - r) rows down in the halo. */
static void emit_multiply(clconv_emit *e, const tile *c)
{
    clconv_nest_open_function(
        e, "void multiply(__local const uchar *tiles, uint at, uint weights, "
           "float sum[$blocks_m][$sums], int warpgroup, int lane)");
    clconv_emit_line(e, "const ulong w = matrix_at(weights, 2 * $b_line, "
                        "$b_chunk_bytes);");
    clconv_emit_line(e, "ulong dy[$blocks_m];");
    emit_unroll(e, c);
    clconv_emit_open(e, "for (int i = 0; i < $blocks_m; ++i)");
    clconv_emit_line(e, "const int block = $blocks_m * warpgroup + i;");
    clconv_emit_line(e, "const int pixel = block / $across * 8 * $halo_w + "
                        "block % $across * 8;");
    clconv_emit_line(e, "dy[i] = matrix_of(at + pixel * $line, $line, 16, "
                        "$eight);");
    clconv_emit_close(e);
    emit_unroll(e, c);
    clconv_emit_open(e, "for (int tap = 0; tap < $r * $s; ++tap)");
    clconv_emit_line(e, "const int pixel = ($r - 1 - tap / $s) * $dilation_h * "
                        "$halo_w + ($s - 1 - tap % $s) * $dilation_w;");
    emit_unroll(e, c);
    clconv_emit_line(e, "for (int k = 0; k < $steps; ++k)");
    emit_unroll(e, c);
    clconv_emit_line(e, "    for (int i = 0; i < $blocks_m; ++i)");
    clconv_emit_line(e, "        product(tiles, sum[i], dy[i] + pixel * "
                        "($line / 16) + 2 * k,");
    clconv_emit_line(e, "                w + tap * ($tap_bytes / 16) + "
                        "$b_step * k, lane);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: the way of a tile ------------------------------------------ */

static void open_numbers(clconv_emit *e)
{
    clconv_emit_open(e, "for (int number = (int)get_group_id(0); number < "
                        "blocks; number += (int)get_num_groups(0))");
    clconv_emit_line(e, "block_t block;");
    clconv_emit_line(e, "block_place(&block, &sizes, number);");
}

static void emit_first(clconv_emit *e)
{
    clconv_emit_line(e, "block_t first;");
    clconv_emit_line(e, "block_place(&first, &sizes, (int)get_group_id(0));");
}

static void emit_copier(clconv_emit *e)
{
    clconv_emit_open(e, "if (item >= $workers)");
    clconv_emit_line(e, "if (item > $workers)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "__global ulong *maps = (__global ulong *)scratch + "
                        "32 * get_group_id(0);");
    clconv_emit_line(e, "__global const ulong *dy_source = map_source(maps, "
                        "&dy_map, dy);");
    clconv_emit_line(e,
                     "__global const ulong *w_source = map_source(maps + 16, "
                     "&w_map, w);");
    emit_first(e);
    clconv_emit_line(e, "barrier_expect(ready, $weights_loaded);");
    clconv_emit_line(e, "load_weights(tiles, base, ready, w_source, &first, "
                        "&sizes, 0);");
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_line(e, "uint phase = 1;");
    open_numbers(e);
    clconv_emit_line(e, "barrier_wait(empty + 8 * stage, phase);");
    clconv_emit_line(e, "barrier_expect(full + 8 * stage, $stage_loaded);");
    clconv_emit_line(e, "load_tile(tiles, base + $weight_bytes + stage * "
                        "$stage_bytes, full + 8 * stage, dy_source, &block, "
                        "&sizes, 0);");
    clconv_ring_emit_next(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
}

static void open_workers(clconv_emit *e)
{
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_line(e, "uint phase = 0;");
    clconv_emit_line(e, "barrier_wait(ready, 0);");
    open_numbers(e);
    clconv_ring_emit_sums(e);
    clconv_emit_line(e, "barrier_wait(full + 8 * stage, phase);");
    clconv_ring_emit_hold(e);
    clconv_emit_line(e, "products_begin();");
    clconv_emit_line(e, "multiply(tiles, base + $weight_bytes + stage * "
                        "$stage_bytes, base, sum, warpgroup, lane);");
    clconv_emit_line(e, "products_end();");
    clconv_ring_emit_hold(e);
    clconv_emit_line(e, "if (lane % 32 == 0)");
    clconv_emit_line(e, "    barrier_arrive(empty + 8 * stage);");
    clconv_ring_emit_next(e);
}

/* One step after the other. */
static void open_emulation(clconv_emit *e)
{
    clconv_emit_line(e, "const int copier = item - $workers;");
    clconv_emit_line(e, "const source_t dy_source[1] = {{ dy_map, dy }};");
    clconv_emit_line(e, "const source_t w_source[1] = {{ w_map, w }};");
    emit_first(e);
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_line(e, "if (copier >= 0)");
    clconv_emit_line(e,
                     "    load_weights(tiles, 0, 0, w_source, &first, &sizes, "
                     "copier);");
    open_numbers(e);
    clconv_ring_emit_sums(e);
    clconv_emit_line(e,
                     "const uint at = $weight_bytes + stage * $stage_bytes;");
    clconv_emit_line(e, "if (copier >= 0)");
    clconv_emit_line(e,
                     "    load_tile(tiles, at, 0, dy_source, &block, &sizes, "
                     "copier);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "if (copier < 0)");
    clconv_emit_line(e, "    multiply(tiles, at, 0, sum, warpgroup, lane);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "stage = (stage + 1) % $stages;");
    clconv_emit_line(e, "if (copier >= 0)");
    clconv_emit_line(e, "    continue;");
}

/* ---- The whole -------------------------------------------------------- */

static void emit_functions(clconv_emit *e, const clconv_task *t, const tile *c,
                           const clconv_wgmma_tile *store)
{
    const clconv_wgmma_target to = {NULL};
    set_holes(e, t->problem, c);
    clconv_sizes_emit(e);
    emit_block(e);
    emit_dx(e);
    clconv_products_emit_parts(e, &c->products);
    clconv_products_emit_functions(e, &c->products);
    emit_loads(e, c);
    emit_multiply(e, c);
    clconv_wgmma_store_emit_functions(e, t, store, &c->nest, &to);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    const clconv_wgmma_target to = {NULL};
    clconv_pass pass;
    tile c;
    tile_of(t, &c);
    const clconv_wgmma_tile store = {.products = c.products};
    passes(t, t->problem->n, &pass);
    emit_functions(e, t, &c, &store);
    clconv_entry_open(e, t, &pass, ATTRIBUTE);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_line(e, "__local uchar tiles[$tile_bytes] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    clconv_emit_line(e, "const int warpgroup = item / 128;");
    clconv_emit_line(e, "const int lane = item % 128;");
    clconv_emit_line(e, "const int blocks = block_count(&sizes);");
    if (c.products.emulated) {
        open_emulation(e);
    } else {
        clconv_ring_emit_barriers(e, true);
        emit_copier(e);
        open_workers(e);
    }
    clconv_wgmma_store_emit(e, t, &store, &c.nest, &to);
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_halo = {
    .name = "bwd_data_halo",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "dX by Hopper's warpgroup products, up to 64 channels of dY",
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

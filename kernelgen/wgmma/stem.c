/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "stem.h"

#include <stdio.h>
#include <string.h>

#include "entry.h"
#include "integers.h"
#include "nest.h"
#include "ring.h"
#include "side.h"
#include "wgmma.h"

/* Work-items of the copier. */
#define UNIT_ITEMS 32

/* Sums of a work-item, in groups of up to three and of four warpgroups that
 * multiply. */
#define MOST_SUMS 128
#define MOST_SUMS_4 64

/* ---- The tile --------------------------------------------------------- */

clconv_stem clconv_stem_of(const clconv_task *t, const clconv_fold *fold)
{
    const int *v = t->values;
    return (clconv_stem){
        .fold = *fold,
        .w = v[CLCONV_STEM_TILE_W],
        .h = v[CLCONV_STEM_TILE_H],
        .groups = v[CLCONV_STEM_GROUPS],
        .stages = v[CLCONV_STEM_STAGES],
        .k_line = clconv_wgmma_line(t->problem->k),
        .products = {.emulated = t->device->unit_emulated},
    };
}

static int workers(const clconv_stem *s)
{
    return CLCONV_WARPGROUP * s->groups;
}

int clconv_stem_items(const clconv_stem *s)
{
    return workers(s) + UNIT_ITEMS;
}

/* Bytes of a stage as they are loaded, and of dY's part up to X's. */
static int64_t dy_loaded(const clconv_stem *s)
{
    return (int64_t)s->dy_w * s->dy_h * s->k_line * 2;
}

static int64_t x_loaded(const clconv_stem *s)
{
    return (int64_t)s->x_w * s->x_h * CLCONV_FOLD_LINE * 2;
}

static int64_t dy_bytes(const clconv_stem *s)
{
    return clconv_round_up(dy_loaded(s), CLCONV_RING_ALIGNMENT);
}

static int64_t stage_bytes(const clconv_stem *s)
{
    return dy_bytes(s) + clconv_round_up(x_loaded(s), CLCONV_RING_ALIGNMENT);
}

static int64_t local_bytes(const clconv_stem *s)
{
    return s->stages * stage_bytes(s) + s->fixed_bytes + CLCONV_RING_ALIGNMENT;
}

int64_t clconv_stem_tiles(const clconv_stem *s, int64_t across, int64_t down,
                          int64_t images)
{
    return images * clconv_divide_up(across, s->w) *
           clconv_divide_up(down, s->h);
}

/* ---- May it? ---------------------------------------------------------- */

bool clconv_stem_suits(const clconv_problem *p, const clconv_device *d)
{
    return clconv_wgmma_covers(p, d) && d->tensor_maps &&
           clconv_fold_covers(p) && p->k <= CLCONV_STEM_MOST_K &&
           clconv_nest_covers(p) &&
           (double)p->n * (double)(p->h + p->r) * (double)(p->w + p->s) <
               CLCONV_NEST_LIMIT;
}

bool clconv_stem_legal(const clconv_task *t, const clconv_stem *s, int sums)
{
    const clconv_device *d = t->device;
    clconv_tensor_map dy = clconv_stem_dy_map(t->problem, s, t->problem->n);
    return clconv_tensor_map_legal(&dy) &&
           sums <= (s->groups > 3 ? MOST_SUMS_4 : MOST_SUMS) &&
           local_bytes(s) + CLCONV_RING_BARRIERS <=
               (int64_t)clconv_ring_local_memory(d) &&
           d->max_work_group >= (size_t)clconv_stem_items(s);
}

void clconv_stem_choose(const clconv_task *t, bool (*legal)(const clconv_task *),
                        double (*cost)(const clconv_task *), int *values)
{
    /* tile_w, tile_h, stages; then smaller ones for smaller images. */
    static const int sizes[][3] = {{16, 16, 3}, {16, 16, 2}, {16, 8, 4},
                                   {16, 8, 2},  {8, 16, 4},  {8, 16, 2}};
    int best[CLCONV_MAX_PARAMS];
    size_t bytes = CLCONV_STEM_PARAMS * sizeof *values;
    double least = -1;
    memcpy(best, values, bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        values[CLCONV_STEM_TILE_W] = sizes[i][0];
        values[CLCONV_STEM_TILE_H] = sizes[i][1];
        values[CLCONV_STEM_STAGES] = sizes[i][2];
        double is = legal(t) ? cost(t) : -1;
        if (is < 0 || (least >= 0 && is >= least))
            continue;
        least = is;
        memcpy(best, values, bytes);
    }
    memcpy(values, best, bytes);
}

clconv_tensor_map clconv_stem_dy_map(const clconv_problem *p,
                                     const clconv_stem *s, int64_t batch)
{
    clconv_tensor_map m = clconv_wgmma_map(p, CLCONV_DY, batch, s->k_line);
    m.box[1] = s->dy_w;
    m.box[2] = s->dy_h;
    return m;
}

/* ---- Text: places ----------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_stem *s)
{
    clconv_emit_set(e, "stages", s->stages);
    clconv_emit_set(e, "copiers", 1);
    clconv_emit_set(e, "workers", workers(s));
    clconv_emit_set(e, "worker_warps", workers(s) / 32);
    clconv_emit_set(e, "items", clconv_stem_items(s));
    clconv_emit_set(e, "tile_w", s->w);
    clconv_emit_set(e, "tile_h", s->h);
    clconv_emit_set(e, "dy_w", s->dy_w);
    clconv_emit_set(e, "dy_line", 2 * s->k_line);
    clconv_emit_set(e, "dy_bytes", dy_bytes(s));
    clconv_emit_set(e, "x_w", s->x_w);
    clconv_emit_set(e, "fixed_bytes", s->fixed_bytes);
    clconv_emit_set(e, "stage_bytes", stage_bytes(s));
    clconv_emit_set(e, "stage_loaded", dy_loaded(s) + x_loaded(s));
    clconv_emit_set(e, "tile_bytes", local_bytes(s));
    clconv_emit_set_text(e, "source",
                         s->products.emulated ? "const source_t *"
                                              : "__global const ulong *");
}

void clconv_stem_emit_parts(clconv_emit *e, const clconv_stem *s)
{
    set_holes(e, s);
    clconv_products_emit_parts(e, &s->products);
    clconv_products_emit_functions(e, &s->products);
}

void clconv_stem_emit_blocks(clconv_emit *e, const char *down,
                             const char *across)
{
    clconv_emit_set_text(e, "down", down);
    clconv_emit_set_text(e, "across", across);
    clconv_emit_line(e, "/* One work-group's tile. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int image, y0, x0;");
    clconv_emit_line(e, "} block_t;");
    clconv_emit_blank(e);
    clconv_emit_open(e, "int block_count(const sizes_t *s)");
    clconv_emit_line(e, "return s->n * (($down + $tile_h - 1) / $tile_h) * "
                        "(($across + $tile_w - 1) / $tile_w);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "void block_place(block_t *b, const sizes_t "
                                 "*s, int number)");
    clconv_emit_line(e, "int across = ($across + $tile_w - 1) / $tile_w;");
    clconv_emit_line(e, "int down = ($down + $tile_h - 1) / $tile_h;");
    clconv_emit_line(e, "b->x0 = number % across * $tile_w;");
    clconv_emit_line(e, "number /= across;");
    clconv_emit_line(e, "b->y0 = number % down * $tile_h;");
    clconv_emit_line(e, "b->image = number / down;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: loads and products ----------------------------------------- */

static bool loads_x(const clconv_stem *s)
{
    return s->x_w > 0;
}

void clconv_stem_open_load(clconv_emit *e, const clconv_stem *s)
{
    clconv_nest_open_function(
        e, loads_x(s)
               ? "void load_tile(__local uchar *tiles, uint at, uint full, "
                 "${source}dy_source, ${source}x_source, const block_t *b, "
                 "const sizes_t *s, int lane)"
               : "void load_tile(__local uchar *tiles, uint at, uint full, "
                 "${source}dy_source, const block_t *b, const sizes_t *s, int "
                 "lane)");
}

void clconv_stem_open_multiply(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "void multiply(__local const uchar *tiles, uint at, uint base, "
           "float sum[$blocks_m][$sums], int warpgroup, int lane)");
}

/* ---- Text: the way of a tile ------------------------------------------ */

static void open_numbers(clconv_emit *e)
{
    clconv_emit_open(e, "for (int number = (int)get_group_id(0); number < "
                        "blocks; number += (int)get_num_groups(0))");
    clconv_emit_line(e, "block_t block;");
    clconv_emit_line(e, "block_place(&block, &sizes, number);");
    clconv_emit_line(e, "const uint at = base + $fixed_bytes + stage * "
                        "$stage_bytes;");
}

/* full, lane: what is passed for them. */
static void emit_load(clconv_emit *e, const clconv_stem *s, const char *full,
                      const char *lane)
{
    clconv_emit_set_text(e, "full", full);
    clconv_emit_set_text(e, "lane", lane);
    clconv_emit_line(e, loads_x(s) ? "load_tile(tiles, at, $full, dy_source, "
                                     "x_source, &block, &sizes, $lane);"
                                   : "load_tile(tiles, at, $full, dy_source, "
                                     "&block, &sizes, $lane);");
}

static void emit_multiply(clconv_emit *e)
{
    clconv_emit_line(e, "multiply(tiles, at, base, sum, warpgroup, lane);");
}

static void emit_copier(clconv_emit *e, const clconv_stem *s)
{
    clconv_emit_open(e, "if (item >= $workers)");
    clconv_emit_line(e, "if (item > $workers)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "__global ulong *maps = (__global ulong *)scratch + "
                        "32 * get_group_id(0);");
    clconv_emit_line(e, "__global const ulong *dy_source = map_source(maps, "
                        "&dy_map, dy);");
    if (loads_x(s))
        clconv_emit_line(e, "__global const ulong *x_source = map_source(maps "
                            "+ 16, &x_map, folded);");
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_line(e, "uint phase = 1;");
    open_numbers(e);
    clconv_emit_line(e, "barrier_wait(empty + 8 * stage, phase);");
    clconv_emit_line(e, "barrier_expect(full + 8 * stage, $stage_loaded);");
    emit_load(e, s, "full + 8 * stage", "0");
    clconv_ring_emit_next(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
}

static void open_workers(clconv_emit *e, bool each)
{
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_line(e, "uint phase = 0;");
    if (!each)
        clconv_ring_emit_sums(e);
    open_numbers(e);
    if (each)
        clconv_ring_emit_sums(e);
    clconv_emit_line(e, "barrier_wait(full + 8 * stage, phase);");
    clconv_ring_emit_hold(e);
    clconv_emit_line(e, "products_begin();");
    emit_multiply(e);
    clconv_emit_line(e, "products_end();");
    clconv_ring_emit_hold(e);
    clconv_emit_line(e, "if (lane % 32 == 0)");
    clconv_emit_line(e, "    barrier_arrive(empty + 8 * stage);");
    clconv_ring_emit_next(e);
}

/* One step after the other. */
static void open_emulation(clconv_emit *e, const clconv_stem *s, bool each)
{
    clconv_emit_line(e, "const int copier = item - $workers;");
    clconv_emit_line(e, "const source_t dy_source[1] = {{ dy_map, dy }};");
    if (loads_x(s))
        clconv_emit_line(e,
                         "const source_t x_source[1] = {{ x_map, folded }};");
    clconv_emit_line(e, "int stage = 0;");
    if (!each)
        clconv_ring_emit_sums(e);
    open_numbers(e);
    if (each)
        clconv_ring_emit_sums(e);
    clconv_emit_open(e, "if (copier >= 0)");
    emit_load(e, s, "0", "copier");
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "if (copier < 0)");
    emit_multiply(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "stage = (stage + 1) % $stages;");
    clconv_emit_line(e, "if (copier >= 0)");
    clconv_emit_line(e, "    continue;");
}

/* ---- The whole -------------------------------------------------------- */

void clconv_stem_open_entry(clconv_emit *e, const clconv_task *t,
                            const clconv_stem *s, const clconv_pass *pass)
{
    char attribute[64];
    snprintf(attribute, sizeof attribute,
             "__attribute__((reqd_work_group_size(%d, 1, 1)))",
             clconv_stem_items(s));
    clconv_entry_open(e, t, pass, attribute);
}

void clconv_stem_emit_begin(clconv_emit *e, const clconv_stem *s)
{
    clconv_emit_line(e, "__local uchar tiles[$tile_bytes] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    clconv_emit_line(e, "const int warpgroup = item / 128;");
    clconv_emit_line(e, "const int lane = item % 128;");
    clconv_emit_line(e, "const int blocks = block_count(&sizes);");
    if (s->products.emulated)
        clconv_emit_line(e, "const uint base = 0;");
    else
        clconv_ring_emit_barriers(e, false);
}

void clconv_stem_open_tiles(clconv_emit *e, const clconv_stem *s, bool each)
{
    if (s->products.emulated) {
        open_emulation(e, s, each);
    } else {
        emit_copier(e, s);
        open_workers(e, each);
    }
}

/*
 * The copies of a stage run stages - 1 steps ahead of its products. One barrier
 * a step is enough: it shows what all have copied, and behind it the stage that
 * was multiplied last is free.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gemm.h"

#include <math.h>
#include <stdio.h>

#include "copies.h"
#include "cost.h"
#include "entry.h"
#include "fragments.h"
#include "integers.h"
#include "ring.h"

/* Sums of a work-item. */
#define MOST_SUMS 128

/* Halves of a line, at most. */
#define MOST_LINE 64

/* What the smallest default needs, in emulation; more is checked a plan. */
#define LEAST_LOCAL_MEMORY ((size_t)32 * 1024)

/* ---- The unit --------------------------------------------------------- */

/* NULL: there is none. */
static const clconv_unit *unit_of(const clconv_device *d)
{
    if (clconv_device_has_unit(d, CLCONV_UNIT_MMA_M16N8K16))
        return clconv_unit_get(CLCONV_UNIT_MMA_M16N8K16);
    if (clconv_device_has_unit(d, CLCONV_UNIT_MMA_M16N8K8))
        return clconv_unit_get(CLCONV_UNIT_MMA_M16N8K8);
    return NULL;
}

/* Do devices with this unit copy to local memory by themselves? */
static bool copies_alone(const clconv_device *d)
{
    return unit_of(d)->id == CLCONV_UNIT_MMA_M16N8K16;
}

bool clconv_gemm_covers(const clconv_problem *p, const clconv_device *d)
{
    const clconv_unit *unit = unit_of(d);
    if (p->math != CLCONV_MIXED || !unit)
        return false;
    int least = unit->id == CLCONV_UNIT_MMA_M16N8K16 ? 80 : 75;
    return (d->unit_emulated || d->nv_sm >= least) &&
           d->max_work_group >= CLCONV_WARPGROUP &&
           d->local_memory >= LEAST_LOCAL_MEMORY;
}

/* ---- The tile --------------------------------------------------------- */

static clconv_wgmma_side side_of(const char *name, const clconv_nest_operand *o,
                                 int rows, int terms)
{
    int line = o->along_k ? terms : (int)clconv_min(rows, MOST_LINE);
    return (clconv_wgmma_side){o, name, rows, terms, line};
}

/* Fragments that a warp loads for 16 terms of rows x columns of a warpgroup. */
static int loads(int rows, int columns)
{
    return rows / CLCONV_WGMMA_M + columns / CLCONV_FRAGMENT;
}

/* Warpgroups share out rows if they can and load less that way, else columns. */
static bool shares_rows(int m, int n, int groups)
{
    if (m % (CLCONV_WGMMA_M * groups))
        return false;
    return n % (CLCONV_FRAGMENT * groups) ||
           loads(m / groups, n) <= loads(m, n / groups);
}

clconv_wgmma_tile clconv_gemm_tile_of(const clconv_task *t,
                                      const clconv_nest *nest)
{
    const int *v = t->values;
    clconv_wgmma_tile c = {
        .m = v[CLCONV_GEMM_TILE_M],
        .n = v[CLCONV_GEMM_TILE_N],
        .terms = v[CLCONV_GEMM_TILE_K],
        .groups = v[CLCONV_GEMM_GROUPS],
        .stages = v[CLCONV_GEMM_STAGES],
    };
    c.along_m = shares_rows(c.m, c.n, c.groups);
    c.group_m = c.along_m ? c.m / c.groups : c.m;
    c.group_n = c.along_m ? c.n : c.n / c.groups;
    c.a = side_of("a", &nest->a, c.m, c.terms);
    c.b = side_of("b", &nest->b, c.n, c.terms);
    c.products = (clconv_products){
        .n = c.group_n,
        .a_along_k = nest->a.along_k,
        .b_along_k = nest->b.along_k,
        .emulated = t->device->unit_emulated,
    };
    return c;
}

static int blocks_m(const clconv_wgmma_tile *c)
{
    return c->group_m / CLCONV_WGMMA_M;
}

static clconv_unit_block unit_block_of(const clconv_task *t,
                                       const clconv_wgmma_tile *c)
{
    return (clconv_unit_block){
        .unit = unit_of(t->device),
        .emulated = t->device->unit_emulated,
        .warps = CLCONV_WARPGROUP / 32 * c->groups,
        .rows = blocks_m(c) * CLCONV_FRAGMENT,
        .columns = c->group_n,
        .terms = c->terms,
    };
}

static int stage_bytes(const clconv_wgmma_tile *c)
{
    return clconv_wgmma_side_bytes(&c->a) + clconv_wgmma_side_bytes(&c->b);
}

int clconv_gemm_items(const clconv_task *t)
{
    return CLCONV_WARPGROUP * t->values[CLCONV_GEMM_GROUPS];
}

/* ---- May it? ---------------------------------------------------------- */

/* Local memory of a work-group in KiB, by the CUDA programming guide: OpenCL
 * names 48, but static arrays may have it all, less what the driver keeps. */
static size_t local_memory(const clconv_device *d)
{
    if (d->unit_emulated || d->nv_sm < 80)
        return d->local_memory;
    if (d->nv_sm == 90)
        return clconv_ring_local_memory(d);
    return (size_t)(d->nv_sm == 80 ? 160 : 96) * 1024;
}

bool clconv_gemm_legal(const clconv_task *t, const clconv_wgmma_tile *c)
{
    const clconv_device *d = t->device;
    clconv_unit_block b = unit_block_of(t, c);
    int sums = blocks_m(c) * clconv_products_registers(&c->products);
    size_t bytes = (size_t)(c->stages * stage_bytes(c));
    return clconv_unit_fits(&b) && c->group_m % CLCONV_WGMMA_M == 0 &&
           sums > 0 && sums <= MOST_SUMS &&
           (copies_alone(d) || c->stages == 2) &&
           bytes + clconv_unit_local_bytes(&b) <= local_memory(d) &&
           (size_t)clconv_gemm_items(t) <= d->max_work_group;
}

/* Multiply-adds, as a share of the peak outside the unit, with every compute
 * unit at work and a large tile: a guess, half of what the unit can do. A small
 * tile moves more bytes to local memory for each. */
#define SHARE_K16 6.0
#define SHARE_K8 3.0
#define MOVE 64.0

static double share_of(const clconv_task *t)
{
    double m = t->values[CLCONV_GEMM_TILE_M];
    double n = t->values[CLCONV_GEMM_TILE_N];
    double share = unit_of(t->device)->k == 16 ? SHARE_K16 : SHARE_K8;
    return share / (1 + MOVE / m + MOVE / n);
}

double clconv_gemm_cost(const clconv_task *t, double waste, int64_t tiles,
                        double bytes)
{
    if (t->device->unit_emulated)
        return 0; /* it was asked for */
    double turns =
        clconv_cost_waste(clconv_max(1, tiles), t->device->compute_units);
    return clconv_cost_multiply(t->problem) * waste * turns / share_of(t) +
           clconv_cost_move(t->device, bytes) +
           clconv_cost_launch(t->device, bytes > 0 ? 2 : 1);
}

/* ---- Defaults --------------------------------------------------------- */

typedef struct choice {
    int m, n, groups;
} choice;

/* Three stages of the largest take 48 KiB. Emulations, which cost nothing, take
 * the first. */
static const choice choices[] = {
    {64, 64, 1},  {128, 128, 2}, {128, 64, 1}, {64, 128, 1},
    {128, 32, 1}, {64, 32, 1},   {128, 16, 1}, {64, 16, 1},
};

#define CHOICES (int)(sizeof choices / sizeof *choices)

static void set_tile(const clconv_task *t, const choice *c,
                     void (*split)(const clconv_task *t, int *values),
                     int *values)
{
    values[CLCONV_GEMM_TILE_M] = c->m;
    values[CLCONV_GEMM_TILE_N] = c->n;
    values[CLCONV_GEMM_GROUPS] = c->groups;
    if (split)
        split(t, values);
}

/* Does it fit the local memory that the device names? */
static bool is_safe(const clconv_task *t)
{
    const int *v = t->values;
    int terms = v[CLCONV_GEMM_TILE_K] * v[CLCONV_GEMM_STAGES];
    int bytes = 2 * (v[CLCONV_GEMM_TILE_M] + v[CLCONV_GEMM_TILE_N]) * terms;
    return (size_t)bytes <= t->device->local_memory;
}

void clconv_gemm_choose(const clconv_task *t, int tile_k,
                        void (*split)(const clconv_task *t, int *values),
                        bool (*legal)(const clconv_task *),
                        double (*cost)(const clconv_task *), int *values)
{
    double least = INFINITY;
    int best = 0;
    values[CLCONV_GEMM_TILE_K] = tile_k;
    values[CLCONV_GEMM_STAGES] = copies_alone(t->device) ? 3 : 2;
    values[CLCONV_GEMM_SHAPE] = clconv_wgmma_shape(t->device);
    for (int i = 0; i < CHOICES; ++i) {
        set_tile(t, &choices[i], split, values);
        if (!legal(t) || !is_safe(t) || cost(t) >= least)
            continue;
        least = cost(t);
        best = i;
    }
    set_tile(t, &choices[best], split, values);
}

/* ---- Text ------------------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_task *t,
                      const clconv_wgmma_tile *c)
{
    int items = clconv_gemm_items(t);
    clconv_emit_set(e, "stages", c->stages);
    clconv_emit_set(e, "lag", c->stages - 1);
    clconv_emit_set(e, "pending", c->stages - 2);
    clconv_emit_set(e, "stage_bytes", stage_bytes(c));
    clconv_emit_set(e, "tile_bytes", c->stages * stage_bytes(c));
    clconv_emit_set(e, "a_bytes", clconv_wgmma_side_bytes(&c->a));
    clconv_emit_set(e, "a_spots", clconv_wgmma_copies_spots(&c->a, items));
    clconv_emit_set(e, "b_spots", clconv_wgmma_copies_spots(&c->b, items));
    clconv_emit_set(e, "a_pieces", clconv_wgmma_copies_pieces(&c->a, items));
    clconv_emit_set(e, "b_pieces", clconv_wgmma_copies_pieces(&c->b, items));
    clconv_emit_set(e, "blocks_m", blocks_m(c));
    clconv_emit_set(e, "sums", clconv_products_registers(&c->products));
    clconv_emit_set(e, "group_m", c->along_m ? c->group_m : 0);
    clconv_emit_set(e, "group_n", c->along_m ? 0 : c->group_n);
    clconv_emit_set_text(e, "a", clconv_tensor_name(c->a.operand->tensor));
    clconv_emit_set_text(e, "b", clconv_tensor_name(c->b.operand->tensor));
}

static void emit_copies(clconv_emit *e, const clconv_task *t,
                        const clconv_wgmma_side *s)
{
    if (copies_alone(t->device))
        clconv_wgmma_copies_emit(e, s, clconv_gemm_items(t));
    else
        clconv_wgmma_copies_emit_held(e, s, clconv_gemm_items(t));
}

void clconv_gemm_emit_functions(clconv_emit *e, const clconv_task *t,
                                const clconv_wgmma_tile *c)
{
    clconv_unit_block block = unit_block_of(t, c);
    clconv_copies_emit_parts(e, block.emulated, copies_alone(t->device));
    clconv_fragments_emit_parts(e, block.emulated);
    clconv_unit_emit_functions(e, &block);
    emit_copies(e, t, &c->a);
    emit_copies(e, t, &c->b);
    clconv_fragments_emit(e, &c->a, &c->b, block.emulated);
}

void clconv_gemm_open_entry(clconv_emit *e, const clconv_task *t,
                            const clconv_pass *pass)
{
    char attribute[64];
    snprintf(attribute, sizeof attribute,
             "__attribute__((reqd_work_group_size(%d, 1, 1)))",
             clconv_gemm_items(t));
    clconv_entry_open(e, t, pass, attribute);
}

static void emit_start(clconv_emit *e, const clconv_unit_block *block)
{
    clconv_emit_line(e, "__local uchar tiles[$tile_bytes] "
                        "__attribute__((aligned(128)));");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    clconv_emit_line(e, "const int warpgroup = item / 128;");
    clconv_emit_line(e, "const int lane = item % 128;");
    clconv_emit_line(e, "const int a_row0 = $group_m * warpgroup + lane / 32 * "
                        "16;");
    clconv_emit_line(e, "const int b_column0 = $group_n * warpgroup;");
    clconv_emit_line(e, block->emulated
                            ? "const uint base = 0;"
                            : "const uint base = shared_address(tiles);");
    clconv_unit_emit_start(e, block);
    clconv_ring_emit_sums(e);
    clconv_emit_line(e, "spot_t a_rows[$a_spots], b_rows[$b_spots];");
    clconv_emit_line(e, "a_begin(&block, &sizes, item, a_rows);");
    clconv_emit_line(e, "b_begin(&block, &sizes, item, b_rows);");
}

/* On to the terms that are copied next. */
static void emit_advance(clconv_emit *e, const char *advance)
{
    clconv_emit_line(e, "ahead += $terms;");
    if (advance)
        clconv_emit_line(e, advance);
}

/* ---- Copies that go on by themselves ---------------------------------- */

/* to: the stage. A group of copies a step, perhaps of none, so that they can
 * be counted. */
static void emit_copy(clconv_emit *e, const char *to, bool emulated,
                      const char *advance)
{
    clconv_emit_set_text(e, "stage_to", to);
    clconv_emit_open(e, "if (ahead < block.end)");
    clconv_emit_line(e, "const uint to = base + $stage_to * $stage_bytes;");
    clconv_emit_line(e, "a_stage(tiles, to, $a, &block, &sizes, a_rows, ahead, "
                        "item);");
    clconv_emit_line(e, "b_stage(tiles, to + $a_bytes, $b, &block, &sizes, "
                        "b_rows, ahead, item);");
    emit_advance(e, advance);
    clconv_emit_close(e);
    if (!emulated)
        clconv_emit_line(e, "copies_commit();");
}

static void emit_wait(clconv_emit *e, bool emulated)
{
    if (!emulated)
        clconv_emit_line(e, "asm volatile(\"cp.async.wait_group $pending;\" "
                            "::: \"memory\");");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

static void emit_async(clconv_emit *e, const clconv_unit_block *block, int lag,
                       const char *advance)
{
    char before[48];
    snprintf(before, sizeof before, "(stage == 0 ? %d : stage - 1)", lag);
    clconv_emit_line(e, "int ahead = block.begin;");
    clconv_emit_open(e, "for (int i = 0; i < $lag; ++i)");
    emit_copy(e, "i", block->emulated, advance);
    clconv_emit_close(e);
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_open(e, "for (int k0 = block.begin; k0 < block.end; "
                        "k0 += $terms)");
    emit_wait(e, block->emulated);
    emit_copy(e, before, block->emulated, advance);
    clconv_emit_line(e, "const uint at = base + stage * $stage_bytes;");
    clconv_unit_emit_multiply(e, block);
    clconv_emit_line(e, "stage = stage == $lag ? 0 : stage + 1;");
    clconv_emit_close(e);
}

/* ---- Copies by registers ---------------------------------------------- */

static void emit_fetch(clconv_emit *e, const char *advance)
{
    clconv_emit_line(e, "a_fetch(a_held, $a, &block, &sizes, a_rows, ahead, "
                        "item);");
    clconv_emit_line(e, "b_fetch(b_held, $b, &block, &sizes, b_rows, ahead, "
                        "item);");
    emit_advance(e, advance);
}

static void emit_put(clconv_emit *e)
{
    clconv_emit_line(e, "a_put(tiles, base + stage * $stage_bytes, a_held, "
                        "item);");
    clconv_emit_line(e, "b_put(tiles, base + stage * $stage_bytes + $a_bytes, "
                        "b_held, item);");
}

static void emit_held(clconv_emit *e, const clconv_unit_block *block,
                      const char *advance)
{
    clconv_emit_line(e, "uint4 a_held[$a_pieces], b_held[$b_pieces];");
    clconv_emit_line(e, "int ahead = block.begin, stage = 0;");
    clconv_emit_open(e, "if (ahead < block.end)");
    emit_fetch(e, advance);
    emit_put(e);
    clconv_emit_close(e);
    clconv_emit_open(e, "for (int k0 = block.begin; k0 < block.end; "
                        "k0 += $terms)");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "const bool more = ahead < block.end;");
    clconv_emit_open(e, "if (more)");
    emit_fetch(e, advance);
    clconv_emit_close(e);
    clconv_emit_line(e, "const uint at = base + stage * $stage_bytes;");
    clconv_unit_emit_multiply(e, block);
    clconv_emit_line(e, "stage ^= 1;");
    clconv_emit_open(e, "if (more)");
    emit_put(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

void clconv_gemm_emit_product(clconv_emit *e, const clconv_task *t,
                              const clconv_wgmma_tile *c, const char *advance)
{
    clconv_unit_block block = unit_block_of(t, c);
    set_holes(e, t, c);
    clconv_emit_set(e, "terms", c->terms);
    emit_start(e, &block);
    if (copies_alone(t->device))
        emit_async(e, &block, c->stages - 1, advance);
    else
        emit_held(e, &block, advance);
}

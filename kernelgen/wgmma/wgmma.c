/*
 * A full barrier counts the work-items that copy, an empty one the warps that
 * multiply. A warpgroup that copies runs two stages behind what it has begun
 * when it declares one full, so that copies stay in flight; the copy unit
 * declares them by itself. The emulation has the same stages, but fills and
 * empties one at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wgmma.h"

#include <stdio.h>

#include "copies.h"
#include "cost.h"
#include "entry.h"
#include "integers.h"
#include "pack.h"
#include "ring.h"

/* Accumulators of a work-item, in groups of up to 384 work-items and of 512:
 * 65536 registers are dealt out in portions that ptxas rounds up to 128. */
#define MOST_SUMS_384 128
#define MOST_SUMS_512 96

/* Work-items of a copier. */
#define UNIT_ITEMS 32

/* ---- The tile --------------------------------------------------------- */

static bool loads_by_maps(const clconv_task *t)
{
    return t->values[CLCONV_WGMMA_LOAD] == CLCONV_WGMMA_MAPS;
}

static int64_t channels_of(const clconv_problem *p, clconv_tensor tensor)
{
    return tensor == CLCONV_DY ? p->group_k : p->group_c;
}

static clconv_wgmma_side side_of(const clconv_task *t, const char *name,
                                 const clconv_nest_operand *o, int rows,
                                 int terms)
{
    int line = CLCONV_WGMMA_COPIES_LINE;
    if (loads_by_maps(t))
        line = clconv_wgmma_line(channels_of(t->problem, o->tensor));
    return (clconv_wgmma_side){o, name, rows, terms, line};
}

clconv_wgmma_tile clconv_wgmma_tile_of(const clconv_task *t,
                                       const clconv_nest *nest, int terms)
{
    const int *v = t->values;
    clconv_wgmma_tile c = {
        .m = v[CLCONV_WGMMA_TILE_M],
        .n = v[CLCONV_WGMMA_TILE_N],
        .terms = loads_by_maps(t) ? terms : CLCONV_WGMMA_COPIES_LINE,
        .groups = v[CLCONV_WGMMA_GROUPS],
        .stages = v[CLCONV_WGMMA_STAGES],
        .maps = loads_by_maps(t),
    };
    c.along_m = c.m % (CLCONV_WGMMA_M * c.groups) == 0;
    c.group_m = c.along_m ? c.m / c.groups : c.m;
    c.group_n = c.along_m ? c.n : c.n / c.groups;
    c.a = side_of(t, "a", &nest->a, c.m, c.terms);
    c.b = side_of(t, "b", &nest->b, c.n, c.terms);
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

static int stage_bytes(const clconv_wgmma_tile *c)
{
    return clconv_wgmma_side_bytes(&c->a) + clconv_wgmma_side_bytes(&c->b);
}

static size_t local_bytes(const clconv_wgmma_tile *c)
{
    return (size_t)(c->stages * stage_bytes(c) + CLCONV_RING_ALIGNMENT);
}

static int workers(const clconv_task *t)
{
    return CLCONV_WARPGROUP * t->values[CLCONV_WGMMA_GROUPS];
}

int clconv_wgmma_items(const clconv_task *t)
{
    return workers(t) + (loads_by_maps(t) ? UNIT_ITEMS : CLCONV_WARPGROUP);
}

int64_t clconv_wgmma_work_groups(const clconv_task *t, int64_t tiles)
{
    return clconv_min(tiles, t->device->compute_units);
}

size_t clconv_wgmma_scratch(const clconv_task *t)
{
    if (!loads_by_maps(t))
        return 0;
    return clconv_ring_map_bytes(t->device);
}

/* ---- May it? ---------------------------------------------------------- */

bool clconv_wgmma_covers(const clconv_problem *p, const clconv_device *d)
{
    return p->math == CLCONV_MIXED &&
           clconv_device_has_unit(d, CLCONV_UNIT_WGMMA);
}

/* A warpgroup's part of B starts at a chunk. */
static bool divides(const clconv_wgmma_tile *c)
{
    if (c->along_m)
        return true;
    return c->m == CLCONV_WGMMA_M && c->n % (64 * c->groups) == 0;
}

/* Copies move 8 neighbours, and take strides for those of the tensors. */
static bool copies_fit(const clconv_problem *p)
{
    return clconv_pack_is_plain(p, CLCONV_DY) &&
           clconv_pack_is_plain(p, CLCONV_X) &&
           clconv_pack_is_plain(p, CLCONV_W);
}

bool clconv_wgmma_legal(const clconv_task *t, const clconv_wgmma_tile *c)
{
    const clconv_device *d = t->device;
    int sums = blocks_m(c) * clconv_products_registers(&c->products);
    bool fits = c->maps ? d->tensor_maps : copies_fit(t->problem);
    return fits && divides(c) &&
           sums <= (c->groups > 2 ? MOST_SUMS_512 : MOST_SUMS_384) &&
           local_bytes(c) + CLCONV_RING_BARRIERS <= clconv_ring_local_memory(d) &&
           (size_t)clconv_wgmma_items(t) <= d->max_work_group;
}

/* Is the caller's tensor as a packed copy would be? */
static bool reads_as_is(const clconv_problem *p, clconv_tensor tensor)
{
    return !clconv_problem_casts(p, tensor) && p->alignment % 16 == 0 &&
           clconv_pack_is_plain(p, tensor);
}

unsigned clconv_wgmma_wants_copies(const clconv_task *t, unsigned operands)
{
    unsigned wanted = 0;
    for (clconv_tensor i = CLCONV_DY; i <= CLCONV_W; ++i)
        if ((operands & CLCONV_BIT(i)) && !reads_as_is(t->problem, i))
            wanted |= CLCONV_PACKED(i);
    return wanted;
}

/* Multiply-adds, as a share of the peak outside the unit, that an H200 reaches
 * with every compute unit at work and a large tile; a small one moves more
 * bytes to local memory for each. */
#define SHARE_MAPS 16.0
#define SHARE_COPIES 8.0
#define MOVE 48.0

static double share_of(const clconv_task *t)
{
    double m = t->values[CLCONV_WGMMA_TILE_M];
    double n = t->values[CLCONV_WGMMA_TILE_N];
    double share = loads_by_maps(t) ? SHARE_MAPS : SHARE_COPIES;
    return share / (1 + MOVE / m + MOVE / n);
}

double clconv_wgmma_cost(const clconv_task *t, double waste, int64_t tiles,
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

static void set_tile(const clconv_wgmma_choice *tile, int *values)
{
    values[CLCONV_WGMMA_TILE_M] = tile->m;
    values[CLCONV_WGMMA_TILE_N] = tile->n;
    values[CLCONV_WGMMA_GROUPS] = tile->groups;
}

void clconv_wgmma_choose(const clconv_task *t, const clconv_wgmma_choice *from,
                         int count, bool (*legal)(const clconv_task *),
                         double (*cost)(const clconv_task *), int *values)
{
    double least = 0;
    bool found = false;
    int best = 0, load = CLCONV_WGMMA_MAPS;
    for (int i = 0; i < 2 * count; ++i) {
        values[CLCONV_WGMMA_LOAD] =
            i < count ? CLCONV_WGMMA_MAPS : CLCONV_WGMMA_COPIES;
        set_tile(&from[i % count], values);
        if (!legal(t))
            continue;
        double is = cost(t);
        if (found && is >= least)
            continue;
        found = true;
        least = is;
        best = i % count;
        load = values[CLCONV_WGMMA_LOAD];
    }
    values[CLCONV_WGMMA_LOAD] = load;
    set_tile(&from[best], values);
}

int clconv_wgmma_shape(const clconv_device *d)
{
    return d->unit_emulated ? CLCONV_SHAPE_ARGUMENTS : CLCONV_SHAPE_BAKED;
}

/* ---- Maps ------------------------------------------------------------- */

clconv_tensor_map clconv_wgmma_map(const clconv_problem *p,
                                   clconv_tensor tensor, int64_t batch, int line)
{
    clconv_pack_strides s = clconv_pack_get_strides(p, tensor);
    clconv_tensor_map m = {
        .stride = {s.column, s.row, s.image},
        .box = {line, 1, 1, 1},
        .step = {1, 1},
        .swizzle = 2 * line,
    };
    const int64_t dy[] = {p->groups * s.group, p->q, p->p, batch};
    const int64_t x[] = {p->groups * s.group, p->w, p->h, batch};
    const int64_t w[] = {clconv_pack_channels(p, tensor), p->s, p->r, p->k};
    const int64_t *size = tensor == CLCONV_DY ? dy : tensor == CLCONV_X ? x : w;
    for (int i = 0; i < 4; ++i)
        m.size[i] = size[i];
    return m;
}

void clconv_wgmma_add_maps(clconv_pass *pass, const clconv_wgmma_tile *c,
                           const clconv_tensor_map *a,
                           const clconv_tensor_map *b)
{
    if (!c->maps)
        return;
    bool scratch = false;
    for (int i = 0; i < pass->arg_count; ++i)
        scratch = scratch || pass->args[i].kind == CLCONV_ARG_SCRATCH;
    if (!scratch)
        clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DY);
    pass->map[c->a.operand->tensor] = *a;
    pass->map[c->b.operand->tensor] = *b;
    clconv_entry_arg(pass, CLCONV_ARG_MAP, c->a.operand->tensor);
    clconv_entry_arg(pass, CLCONV_ARG_MAP, c->b.operand->tensor);
}

/* ---- Functions -------------------------------------------------------- */

static void set_side(clconv_emit *e, const clconv_wgmma_side *s, int rows,
                     const char *const hole[6])
{
    clconv_emit_set(e, hole[0], s->line);
    clconv_emit_set(e, hole[1], clconv_wgmma_chunks(s));
    clconv_emit_set(e, hole[2], clconv_wgmma_chunk_bytes(s));
    clconv_emit_set(e, hole[3], clconv_wgmma_step_bytes(s) / 16);
    clconv_emit_set(e, hole[4], clconv_wgmma_rows_bytes(s, rows));
    clconv_emit_set(e, hole[5], 2 * s->line);
}

static void set_holes(clconv_emit *e, const clconv_task *t,
                      const clconv_wgmma_tile *c)
{
    static const char *const a[] = {"a_line", "a_chunks", "a_chunk_bytes",
                                    "a_step", "a_group",  "a_line_bytes"};
    static const char *const b[] = {"b_line", "b_chunks", "b_chunk_bytes",
                                    "b_step", "b_group",  "b_line_bytes"};
    set_side(e, &c->a, c->along_m ? c->group_m : 0, a);
    set_side(e, &c->b, c->along_m ? 0 : c->group_n, b);
    clconv_emit_set(e, "workers", workers(t));
    clconv_emit_set(e, "worker_warps", workers(t) / 32);
    clconv_emit_set(e, "copiers", c->maps ? 1 : CLCONV_WARPGROUP);
    clconv_emit_set(e, "lag", c->stages - 2);
    clconv_emit_set(e, "terms", c->terms);
    clconv_emit_set(e, "steps", c->terms / CLCONV_WGMMA_K);
    clconv_emit_set(e, "stage_bytes", stage_bytes(c));
    clconv_emit_set(e, "a_bytes", clconv_wgmma_side_bytes(&c->a));
    clconv_emit_set(e, "a_block",
                    clconv_wgmma_rows_bytes(&c->a, CLCONV_WGMMA_M) / 16);
    clconv_emit_set(e, "tile_bytes", (int64_t)local_bytes(c));
    clconv_emit_set(e, "a_spots",
                    clconv_wgmma_copies_spots(&c->a, CLCONV_WARPGROUP));
    clconv_emit_set(e, "b_spots",
                    clconv_wgmma_copies_spots(&c->b, CLCONV_WARPGROUP));
    clconv_emit_set(e, "blocks_m", blocks_m(c));
    clconv_emit_set(e, "sums", clconv_products_registers(&c->products));
    clconv_emit_set(e, "group_m", c->along_m ? c->group_m : 0);
    clconv_emit_set(e, "group_n", c->along_m ? 0 : c->group_n);
    clconv_emit_set_text(e, "a", clconv_tensor_name(c->a.operand->tensor));
    clconv_emit_set_text(e, "b", clconv_tensor_name(c->b.operand->tensor));
}

/* The products of one stage. */
static void emit_multiply(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "void multiply(__local const uchar *tiles, uint at_a, uint at_b, "
           "float sum[$blocks_m][$sums], int lane)");
    clconv_emit_line(e, "const ulong a = matrix_at(at_a, $a_line_bytes, "
                        "$a_chunk_bytes);");
    clconv_emit_line(e, "const ulong b = matrix_at(at_b, $b_line_bytes, "
                        "$b_chunk_bytes);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int k = 0; k < $steps; ++k)");
    clconv_emit_line(e, "    #pragma unroll");
    clconv_emit_line(e, "    for (int i = 0; i < $blocks_m; ++i)");
    clconv_emit_line(e, "        product(tiles, sum[i], a + $a_block * i + "
                        "$a_step * k, b + $b_step * k, lane);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* After a tile of its run, a work-group's next. */
static void emit_number_after(clconv_emit *e)
{
    clconv_emit_open(e, "int number_after(int number, int run)");
    clconv_emit_line(e, "const int others = run * ((int)get_num_groups(0) - "
                        "1);");
    clconv_emit_line(e, "return number + 1 + (number % run == run - 1 ? others "
                        ": 0);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_wgmma_emit_functions(clconv_emit *e, const clconv_task *t,
                                 const clconv_wgmma_tile *c)
{
    clconv_products_emit_parts(e, &c->products);
    clconv_products_emit_functions(e, &c->products);
    if (!c->maps) {
        clconv_wgmma_copies_emit(e, &c->a, CLCONV_WARPGROUP);
        clconv_wgmma_copies_emit(e, &c->b, CLCONV_WARPGROUP);
    }
    set_holes(e, t, c);
    emit_multiply(e);
    emit_number_after(e);
}

void clconv_wgmma_open_load(clconv_emit *e, const clconv_wgmma_tile *c)
{
    clconv_emit_set_text(e, "source",
                         c->products.emulated ? "const source_t *"
                                              : "__global const ulong *");
    clconv_nest_open_function(
        e, "void load_step(__local uchar *tiles, uint at, uint full, "
           "${source}a_source, ${source}b_source, const block_t *block, "
           "const sizes_t *sizes, cursor_t *cursor, int lane)");
}

/* ---- Loops ------------------------------------------------------------ */

void clconv_wgmma_open_entry(clconv_emit *e, const clconv_task *t,
                             const clconv_pass *pass)
{
    char attribute[64];
    snprintf(attribute, sizeof attribute,
             "__attribute__((reqd_work_group_size(%d, 1, 1)))",
             clconv_wgmma_items(t));
    clconv_entry_open(e, t, pass, attribute);
}

/* The work-group's tiles, in runs; so many at a time. */
static void open_numbers(clconv_emit *e, const clconv_wgmma_deal *deal,
                         int at_a_time)
{
    clconv_emit_set_text(e, "run", deal->run);
    clconv_emit_set(e, "last", at_a_time - 1);
    clconv_emit_open(e, at_a_time == 1
                            ? "for (int number = (int)get_group_id(0) * $run; "
                              "number < blocks; number = number_after(number, "
                              "$run))"
                            : "for (int number = (int)get_group_id(0) * $run; "
                              "number < blocks; number = number_after(number + "
                              "$last, $run))");
}

/* The block of the tile that is so many past number. */
static void emit_place(clconv_emit *e, const clconv_wgmma_deal *deal, int past)
{
    char number[24] = "number";
    if (past)
        snprintf(number, sizeof number, "number + %d", past);
    clconv_emit_set_text(e, "number", number);
    clconv_emit_line(e, "block_t block;");
    clconv_emit_line(e, deal->place);
}

/* The sums of that tile; with a scope of its own, if others come. */
static void open_part(clconv_emit *e, const clconv_wgmma_tile *c,
                      const clconv_wgmma_deal *deal, int past)
{
    char sum[24] = "sum";
    if (past)
        snprintf(sum, sizeof sum, "sum + %d", past * blocks_m(c));
    clconv_emit_set_text(e, "sum", sum);
    if (deal->together > 1)
        clconv_emit_open(e, NULL);
    emit_place(e, deal, past);
}

static void close_part(clconv_emit *e, const clconv_wgmma_deal *deal)
{
    if (deal->together > 1)
        clconv_emit_close(e);
}

static void emit_sums(clconv_emit *e, const clconv_wgmma_tile *c,
                      const clconv_wgmma_deal *deal)
{
    clconv_emit_set(e, "blocks_m", deal->together * blocks_m(c));
    clconv_ring_emit_sums(e);
}

/* What a store finds: the first tile's block, and the rows of one. */
static void emit_first_place(clconv_emit *e, const clconv_wgmma_tile *c,
                             const clconv_wgmma_deal *deal)
{
    clconv_emit_set(e, "blocks_m", blocks_m(c));
    if (deal->together > 1)
        emit_place(e, deal, 0);
}

static void emit_spots(clconv_emit *e)
{
    clconv_emit_line(e, "spot_t a_rows[$a_spots], b_rows[$b_spots];");
    clconv_emit_line(e, "a_begin(&block, &sizes, copier, a_rows);");
    clconv_emit_line(e, "b_begin(&block, &sizes, copier, b_rows);");
}

static void open_steps(clconv_emit *e)
{
    clconv_emit_open(e, "for (int k0 = block.begin; k0 < block.end; "
                        "k0 += $terms)");
}

static void emit_copies(clconv_emit *e)
{
    clconv_emit_line(e, "a_stage(tiles, at, $a, &block, &sizes, a_rows, k0, "
                        "copier);");
    clconv_emit_line(e, "b_stage(tiles, at + $a_bytes, $b, &block, &sizes, "
                        "b_rows, k0, copier);");
}

static void emit_cursor(clconv_emit *e)
{
    clconv_emit_line(e, "cursor_t cursor;");
    clconv_emit_line(e, "cursor_begin(&cursor, &block, &sizes);");
}

static void emit_load(clconv_emit *e)
{
    clconv_emit_line(e, "load_step(tiles, at, $full, a_source, b_source, "
                        "&block, &sizes, &cursor, copier);");
}

static void emit_product(clconv_emit *e)
{
    clconv_emit_line(e, "multiply(tiles, at + $a_group * warpgroup, at + "
                        "$a_bytes + $b_group * warpgroup, $sum, lane);");
}

/* ---- On the device ---------------------------------------------------- */

/* Declares full what is left when all has been copied. */
static void emit_copier_end(clconv_emit *e)
{
    clconv_emit_line(e, "asm volatile(\"cp.async.wait_group 0;\" ::: "
                        "\"memory\");");
    clconv_emit_line(e, "publish();");
    clconv_emit_line(e, "for (int i = min(steps, $lag); i > 0; --i)");
    clconv_emit_line(e, "    barrier_arrive(full + 8 * ((stage + $stages - i) %"
                        " $stages));");
    clconv_emit_line(e, "return;");
}

static void emit_warpgroup_copier(clconv_emit *e, const clconv_wgmma_deal *deal)
{
    clconv_emit_open(e, "if (item >= $workers)");
    clconv_emit_line(e, "const int copier = item - $workers;");
    clconv_emit_line(e, "int stage = 0, steps = 0;");
    clconv_emit_line(e, "uint phase = 1;");
    open_numbers(e, deal, 1);
    emit_place(e, deal, 0);
    emit_spots(e);
    open_steps(e);
    clconv_emit_line(e, "const uint at = base + stage * $stage_bytes;");
    clconv_emit_line(e, "barrier_wait(empty + 8 * stage, phase);");
    emit_copies(e);
    clconv_emit_line(e, "copies_commit();");
    clconv_emit_open(e, "if (++steps > $lag)");
    clconv_emit_line(e, "asm volatile(\"cp.async.wait_group $lag;\" ::: "
                        "\"memory\");");
    clconv_emit_line(e, "publish();");
    clconv_emit_line(e, "barrier_arrive(full + 8 * ((stage + 2) % $stages));");
    clconv_emit_close(e);
    clconv_ring_emit_next(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    emit_copier_end(e);
    clconv_emit_close(e);
}

static void emit_unit_copier(clconv_emit *e, const clconv_wgmma_deal *deal)
{
    clconv_emit_open(e, "if (item >= $workers)");
    clconv_emit_line(e, "const int copier = item - $workers;");
    clconv_emit_line(e, "if (copier > 0)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "__global ulong *maps = (__global ulong *)(scratch + "
                        "$maps_at) + 32 * get_group_id(0);");
    clconv_emit_line(e, "__global const ulong *a_source = map_source(maps, "
                        "&${a}_map, $a);");
    clconv_emit_line(e,
                     "__global const ulong *b_source = map_source(maps + 16, "
                     "&${b}_map, $b);");
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_line(e, "uint phase = 1;");
    open_numbers(e, deal, 1);
    emit_place(e, deal, 0);
    emit_cursor(e);
    open_steps(e);
    clconv_emit_line(e, "const uint at = base + stage * $stage_bytes;");
    clconv_emit_line(e, "barrier_wait(empty + 8 * stage, phase);");
    clconv_emit_line(e, "barrier_expect(full + 8 * stage, $stage_bytes);");
    clconv_emit_set_text(e, "full", "full + 8 * stage");
    emit_load(e);
    clconv_ring_emit_next(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
}

static void emit_worker_steps(clconv_emit *e)
{
    open_steps(e);
    clconv_emit_line(e, "const uint at = base + stage * $stage_bytes;");
    clconv_emit_line(e, "barrier_wait(full + 8 * stage, phase);");
    clconv_ring_emit_hold(e);
    clconv_emit_line(e, "products_begin();");
    emit_product(e);
    clconv_emit_line(e, "products_end();");
    clconv_ring_emit_hold(e);
    clconv_emit_line(e, "if (lane % 32 == 0)");
    clconv_emit_line(e, "    barrier_arrive(empty + 8 * stage);");
    clconv_ring_emit_next(e);
    clconv_emit_close(e);
}

static void open_workers(clconv_emit *e, const clconv_wgmma_tile *c,
                         const clconv_wgmma_deal *deal)
{
    clconv_emit_line(e, "int stage = 0;");
    clconv_emit_line(e, "uint phase = 0;");
    open_numbers(e, deal, deal->together);
    emit_sums(e, c, deal);
    for (int past = 0; past < deal->together; ++past) {
        open_part(e, c, deal, past);
        emit_worker_steps(e);
        close_part(e, deal);
    }
    emit_first_place(e, c, deal);
}

/* ---- In emulation ----------------------------------------------------- */

static void emit_sources(clconv_emit *e)
{
    clconv_emit_line(e, "const source_t a_source[1] = {{ ${a}_map, $a }};");
    clconv_emit_line(e, "const source_t b_source[1] = {{ ${b}_map, $b }};");
}

static void emit_emulated_steps(clconv_emit *e, const clconv_wgmma_tile *c)
{
    if (c->maps)
        emit_cursor(e);
    else
        emit_spots(e);
    open_steps(e);
    clconv_emit_line(e, "const uint at = stage * $stage_bytes;");
    clconv_emit_open(e, "if (copier >= 0)");
    clconv_emit_set_text(e, "full", "0");
    if (c->maps)
        emit_load(e);
    else
        emit_copies(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "if (copier < 0)");
    emit_product(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "stage = (stage + 1) % $stages;");
    clconv_emit_close(e);
}

static void open_emulation(clconv_emit *e, const clconv_wgmma_tile *c,
                           const clconv_wgmma_deal *deal)
{
    clconv_emit_line(e, "const int copier = item - $workers;");
    clconv_emit_line(e, "int stage = 0;");
    if (c->maps)
        emit_sources(e);
    open_numbers(e, deal, deal->together);
    emit_sums(e, c, deal);
    for (int past = 0; past < deal->together; ++past) {
        open_part(e, c, deal, past);
        emit_emulated_steps(e, c);
        close_part(e, deal);
    }
    emit_first_place(e, c, deal);
    clconv_emit_line(e, "if (copier >= 0)");
    clconv_emit_line(e, "    continue;");
}

/* ---- The whole -------------------------------------------------------- */

void clconv_wgmma_open_tiles(clconv_emit *e, const clconv_task *t,
                             const clconv_wgmma_tile *c,
                             const clconv_wgmma_deal *deal)
{
    set_holes(e, t, c);
    clconv_emit_set(e, "maps_at", (int64_t)(deal->maps_at / sizeof(float)));
    clconv_emit_line(e, "__local uchar tiles[$tile_bytes] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    clconv_emit_line(e, "const int warpgroup = item / 128;");
    clconv_emit_line(e, "const int lane = item % 128;");
    clconv_emit_line(e, "const int blocks = block_count(&sizes);");
    if (c->products.emulated) {
        open_emulation(e, c, deal);
    } else {
        clconv_ring_emit_barriers(e, false);
        if (c->maps)
            emit_unit_copier(e, deal);
        else
            emit_warpgroup_copier(e, deal);
        open_workers(e, c, deal);
    }
}

void clconv_wgmma_close_tiles(clconv_emit *e)
{
    clconv_emit_close(e);
}

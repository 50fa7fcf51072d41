/*
 * dX on a CPU: tile_p pixels by 16 channels stay in registers while all k and
 * taps run past them; a pixel's dY is one number for all lanes.
 *
 *     pack_dy   dY -> with zeros all around, see panel_pack.h
 *     pack_w    W  -> panels [group][c_block][r][s][k][16]
 *     main      a work-item: one phase, some c_blocks, span tiles of pixels
 *         for each tile of tile_p pixels, each c_block (NCHW: the reverse)
 *             for each block of k, each chain of taps
 *                 for tap, k
 *                     block_sums[pixel][c] += dy[pixel's place + shift(tap)][k]
 *                             * panel[tap][k][c]
 *                 sums += block_sums
 *             sums -> dX; NCHW: by way of rows of one channel
 *
 * A phase is the pixels of dX whose row has the same remainder by stride_h
 * and whose column has the same by stride_w. They all meet the same taps, and
 * from pixel to pixel dY moves on by one row or column. The pixels of a phase
 * are numbered across rows and images, so that a tile is full whatever the
 * size of an image: where each lies is looked up once a tile. A tap that
 * leaves dY meets zeros only.
 *
 * A chain is so short that none of its sums has more than about CHAIN terms:
 * rounding errors grow with the length of a chain of additions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "entry.h"
#include "integers.h"
#include "kernel.h"
#include "kernel_shape.h"
#include "operand.h"
#include "output.h"
#include "panel_pack.h"
#include "panel_store.h"
#include "panel_sums.h"

#define LANES CLCONV_PANEL_LANES

enum { TILE_P, PANEL, SPAN, CAST, SHAPE };
enum { PANEL_FLOAT, PANEL_HALF };
enum { CAST_FUSED, CAST_SEPARATE };

/* With the shape as arguments, one program serves all problems of the same
 * layout, types and exponents. */
static const clconv_param params[] = {
    [TILE_P] = {"tile_p", CLCONV_VALUES(28, 4, 6, 8, 12, 14, 16, 24),
                "pixels of dX a tile"},
    [PANEL] = {"panel", CLCONV_NAMES("float", "half"),
               "how the copy of W is stored"},
    [SPAN] = {"span", CLCONV_VALUES(32, 8, 2),
              "tiles a work-item computes, one after another"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY is rounded to fp16"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define PARAM_COUNT (int)(sizeof params / sizeof *params)

/* What follows from the problem and the values. */
typedef struct layout {
    clconv_panel_dy dy;
    clconv_panel_weights w;
    int64_t blocks;         /* of channels, of all groups */
    int64_t block_span;     /* blocks of a group that a work-item computes */
    int64_t block_chunks;   /* work-items for the blocks of a group */
    int64_t step_h, step_w; /* from tap to tap of a phase */
    int64_t phases;
    int64_t pixels;         /* of the largest phase of an image */
    int64_t k_block, chain; /* k and taps in one chain of sums */
    int64_t weights;        /* where they lie in the scratch, in floats */
} layout;

/* Zeros around dY: the first tap of the last pixel and the last tap of the
 * first one reach farthest. */
static void set_dy(const clconv_problem *p, clconv_panel_dy *dy)
{
    int64_t above = (p->r - 1) * p->dilation_h - p->pad_top;
    int64_t before = (p->s - 1) * p->dilation_w - p->pad_left;
    int64_t last_row = (p->h - 1 + p->pad_top) / p->stride_h;
    int64_t last_column = (p->w - 1 + p->pad_left) / p->stride_w;
    dy->top = clconv_max(0, above) / p->stride_h;
    dy->left = clconv_max(0, before) / p->stride_w;
    dy->rows = dy->top + clconv_max(p->p, last_row + 1);
    dy->columns = dy->left + clconv_max(p->q, last_column + 1);
    clconv_panel_set_strides(p, dy);
}

#define CHAIN CLCONV_PANEL_CHAIN

/* Blocks of about the same size, whole blocks of dY, so many that none is too
 * long. */
static void set_chain(const clconv_problem *p, layout *l)
{
    int64_t even =
        clconv_divide_up(p->group_k, clconv_divide_up(p->group_k, CHAIN));
    l->k_block = clconv_divide_up(even, CLCONV_PANEL_BLOCK) * CLCONV_PANEL_BLOCK;
    l->chain = clconv_max(1, CHAIN / clconv_min(l->k_block, p->group_k));
}

/* Panels that a work-item passes again and again stay in a second cache. */
#define PANEL_BYTES (512 << 10)

static void set_blocks(const clconv_problem *p, layout *l)
{
    double size = l->w.half_type ? 2 : 4;
    double panel = (double)(p->r * p->s * p->group_k * LANES) * size;
    l->w.c_blocks = clconv_divide_up(p->group_c, LANES);
    l->blocks = p->groups * l->w.c_blocks;
    l->block_span = clconv_max(1, (int64_t)(PANEL_BYTES / panel));
    l->block_span = clconv_min(l->block_span, l->w.c_blocks);
}

static int64_t tiles_of(const clconv_task *t, const layout *l, int64_t batch)
{
    return clconv_divide_up(batch * l->pixels, t->values[TILE_P]);
}

/* Work-items that each unit should have, so that all end at about the same
 * time. */
#define ITEMS_A_UNIT 8

/* Fewer blocks a work-item where there are not enough of these otherwise. */
static void limit_blocks(const clconv_task *t, layout *l)
{
    int64_t units = clconv_max(1, t->device->compute_units) * ITEMS_A_UNIT;
    int64_t all = tiles_of(t, l, t->problem->n) * l->phases * l->blocks;
    l->block_span = clconv_max(1, clconv_min(l->block_span, all / units));
    l->block_chunks = clconv_divide_up(l->w.c_blocks, l->block_span);
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    layout l = {.w = {.half_type = t->values[PANEL] == PANEL_HALF}};
    set_dy(p, &l.dy);
    set_chain(p, &l);
    set_blocks(p, &l);
    l.step_h = p->stride_h / clconv_gcd(p->stride_h, p->dilation_h);
    l.step_w = p->stride_w / clconv_gcd(p->stride_w, p->dilation_w);
    l.phases = clconv_min(p->stride_h, p->h) * clconv_min(p->stride_w, p->w);
    l.pixels = clconv_divide_up(p->h, p->stride_h) *
               clconv_divide_up(p->w, p->stride_w);
    limit_blocks(t, &l);
    /* A multiple of 256 bytes. */
    l.weights = clconv_divide_up(p->n * l.dy.image_stride, 64) * 64;
    return l;
}

/* Tiles a work-item: as many as the value says where there is enough to do. */
static int64_t span_of(const clconv_task *t, const layout *l, int64_t tiles)
{
    int64_t units = clconv_max(1, t->device->compute_units) * ITEMS_A_UNIT;
    int64_t items = l->phases * t->problem->groups * l->block_chunks;
    int64_t share = clconv_divide_up(tiles * items, units);
    return clconv_max(1, clconv_min(t->values[SPAN], share));
}

/* Strides of dX in elements, and its sizes. */
static void add_dx(const clconv_problem *p, clconv_shape *s)
{
    clconv_strides dx = clconv_problem_strides(p, CLCONV_DX);
    clconv_shape_add(s, "h", p->h);
    clconv_shape_add(s, "w", p->w);
    clconv_shape_add(s, "dx_image", dx.image);
    clconv_shape_add(s, "dx_row", dx.row);
    clconv_shape_add(s, "dx_column", dx.column);
    clconv_shape_add(s, "dx_channel", dx.channel);
}

static void add_filter(const clconv_problem *p, clconv_shape *s)
{
    clconv_shape_add(s, "r", p->r);
    clconv_shape_add(s, "s", p->s);
    clconv_shape_add(s, "stride_h", p->stride_h);
    clconv_shape_add(s, "stride_w", p->stride_w);
    clconv_shape_add(s, "pad_top", p->pad_top);
    clconv_shape_add(s, "pad_left", p->pad_left);
    clconv_shape_add(s, "dilation_h", p->dilation_h);
    clconv_shape_add(s, "dilation_w", p->dilation_w);
}

/* What the entry points are told of it. */
static clconv_shape shape_of(const clconv_task *t, const layout *l,
                             int64_t batch)
{
    const clconv_problem *p = t->problem;
    clconv_shape s = {.baked = t->baked};
    clconv_shape_add_varying(&s, "batch", batch);
    clconv_shape_add(&s, "p", p->p);
    clconv_shape_add(&s, "q", p->q);
    clconv_panel_shape_dy(&l->dy, &s);
    add_dx(p, &s);
    add_filter(p, &s);
    clconv_shape_add(&s, "step_h", l->step_h);
    clconv_shape_add(&s, "step_w", l->step_w);
    clconv_shape_add(&s, "group_c", p->group_c);
    clconv_shape_add(&s, "group_k", p->group_k);
    clconv_shape_add(&s, "c_blocks", l->w.c_blocks);
    clconv_shape_add(&s, "groups", p->groups);
    clconv_shape_add(&s, "block_span", l->block_span);
    clconv_shape_add(&s, "block_chunks", l->block_chunks);
    clconv_shape_add(&s, "phases", l->phases);
    clconv_shape_add(&s, "weights", l->weights);
    clconv_shape_add(&s, "k_block", l->k_block);
    clconv_shape_add(&s, "chain", l->chain);
    clconv_shape_add_varying(&s, "span", span_of(t, l, tiles_of(t, l, batch)));
    return s;
}

/* ---- What it can do --------------------------------------------------- */

/* Floats of the packed tensors and items of a launch: far from the end of an
 * int64_t, and more than a device has. */
#define MOST 0x1p56

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    if (!d->is_cpu)
        return false;
    int64_t top = clconv_max(0, (p->r - 1) * p->dilation_h - p->pad_top);
    int64_t left = clconv_max(0, (p->s - 1) * p->dilation_w - p->pad_left);
    double rows = (double)(top + p->h + p->pad_top + p->p);
    double columns = (double)(left + p->w + p->pad_left + p->q);
    double channels = 2.0 * (double)p->k + LANES;
    double filter = (double)p->r * (double)p->s;
    double weights = filter * (double)p->k * ((double)p->group_c + LANES);
    return filter < 0x1p30 && weights < MOST &&
           (double)p->n * rows * columns * channels < MOST;
}

static bool legal(const clconv_task *t)
{
    return t->values[PANEL] == PANEL_FLOAT ||
           clconv_operand_fits_half(t->problem, CLCONV_W);
}

/* ---- What it takes ---------------------------------------------------- */

/* Measured, in cycles of a core: a call of multiply() beside its
 * multiply-adds, a pixel's look-up, an element packed or stored. */
#define CALL_CYCLES 60
#define PIXEL_CYCLES 8
#define PACK_CYCLES 1.5
#define TURN_CYCLES 2.5
#define STORE_PIXELS_CYCLES 1.3
#define STORE_ROWS_CYCLES 3
#define STORE_STEPS_CYCLES 5
/* What a core does in a cycle at its peak, and the share of it reached. */
#define CYCLE (double)LANES
#define REACHED 0.92

static double store_cycles(const clconv_problem *p)
{
    if (p->layout == CLCONV_NHWC)
        return STORE_PIXELS_CYCLES;
    return p->stride_w == 1 ? STORE_ROWS_CYCLES : STORE_STEPS_CYCLES;
}

/* A tap is in one phase; each phase counts as many tiles as the largest. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    double taps = (double)p->r * (double)p->s;
    double tiles = (double)tiles_of(t, &l, p->n) * (double)l.blocks;
    double sums = (double)t->values[TILE_P];
    double calls = (double)clconv_divide_up(p->group_k, l.k_block) *
                   ((double)l.phases + taps / (double)l.chain);
    double panels = (double)(l.blocks * LANES * p->group_k) * taps;
    double cycles =
        tiles * taps * (double)p->group_k * sums / REACHED *
            clconv_cost_spill(t->device, t->values[TILE_P] + 2) +
        tiles * calls * (2 * sums + CALL_CYCLES) +
        tiles * (double)l.phases * sums * PIXEL_CYCLES +
        (double)(p->n * l.dy.image_stride) * PACK_CYCLES +
        panels * (p->layout == CLCONV_NHWC ? PACK_CYCLES : TURN_CYCLES) +
        (double)clconv_problem_elements(p, CLCONV_DX) * store_cycles(p);
    return cycles * CYCLE + clconv_cost_launch(t->device, 3);
}

static double panel_numbers(const clconv_problem *p)
{
    double channels = (double)(clconv_divide_up(p->group_c, LANES) * LANES);
    return (double)(p->r * p->s * p->k) * channels;
}

/* fp16 costs two instructions more a vector, and pays where the panels come
 * from beyond a second cache. */
#define MANY_NUMBERS (512 << 10)

/* Few, since each is another program: for each kind of CPU one, and one for
 * few pixels. */
static const struct {
    int registers, tile_p;
} default_tiles[] = {
    {CLCONV_MANY_REGISTERS, 28},
    {CLCONV_MANY_REGISTERS, 16},
    {CLCONV_FEW_REGISTERS, 6},
    {CLCONV_FEW_REGISTERS, 4},
};

#define DEFAULT_TILES (int)(sizeof default_tiles / sizeof *default_tiles)

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    double best = 0;
    int choice = 0;
    clconv_param_first(params, PARAM_COUNT, values);
    clconv_task t = {.problem = p, .device = d, .values = values};
    for (int i = 0; i < DEFAULT_TILES; ++i) {
        if (default_tiles[i].registers != d->vector_registers)
            continue;
        values[TILE_P] = default_tiles[i].tile_p;
        double now = cost(&t);
        if (choice == 0 || now < best) {
            best = now;
            choice = values[TILE_P];
        }
    }
    values[TILE_P] = choice;
    if (clconv_operand_fits_half(p, CLCONV_W) && panel_numbers(p) > MANY_NUMBERS)
        values[PANEL] = PANEL_HALF;
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE ? CLCONV_BIT(CLCONV_DY) : 0;
}

static unsigned counts(const clconv_task *t)
{
    (void)t;
    return CLCONV_BIT(CLCONV_W);
}

/* ---- Passes and scratch ----------------------------------------------- */

static size_t scratch(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    int64_t panels = l.blocks * LANES * p->group_k * p->r * p->s;
    size_t size = l.w.half_type ? sizeof(short) : sizeof(float);
    return (size_t)l.weights * sizeof(float) + (size_t)panels * size;
}

static void main_pass(const clconv_task *t, size_t groups,
                      const clconv_shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = "bwd_data_panel",
        .groups = groups,
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DX);
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_shape_arg(s, pass);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l, batch);
    int64_t tiles = tiles_of(t, &l, batch);
    int64_t chunks = clconv_divide_up(tiles, span_of(t, &l, tiles));
    clconv_panel_pass_dy(t->problem, &l.dy, batch, &s, &out[0]);
    clconv_panel_pass_weights(t, &l.w, &s, &out[1]);
    int64_t items = chunks * l.phases * t->problem->groups * l.block_chunks;
    main_pass(t, (size_t)items, &s, &out[2]);
    return 3;
}

/* ---- Text ------------------------------------------------------------- */

/* The first of the period taps that differ which hits dY from this row or
 * column of dX; period: none does. */
static void emit_first_tap(clconv_emit *e)
{
    clconv_emit_open(e, "static long first_tap(long place, long stride, "
                        "long dilation, long period)");
    clconv_emit_line(e, "long tap = 0;");
    clconv_emit_line(e, "while (tap < period && (place - tap * dilation) % "
                        "stride != 0)");
    clconv_emit_line(e, "    ++tap;");
    clconv_emit_line(e, "return tap;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The work-item's group, first tile, and phase: its pixels in dX. */
static void emit_item(clconv_emit *e)
{
    clconv_emit_line(e, "long item = get_group_id(0);");
    clconv_emit_line(e, "const long first_block = item % shape.block_chunks * "
                        "shape.block_span;");
    clconv_emit_line(e, "item /= shape.block_chunks;");
    clconv_emit_line(e, "const long group = item % shape.groups;");
    clconv_emit_line(e, "item /= shape.groups;");
    clconv_emit_line(e, "const long phase = item % shape.phases;");
    clconv_emit_line(e, "const long start = item / shape.phases * shape.span * "
                        "$tile_p;");
    clconv_emit_line(e, "const long phases_w = min(shape.stride_w, shape.w);");
    clconv_emit_line(e, "const long h = phase / phases_w;");
    clconv_emit_line(e, "const long w = phase % phases_w;");
    clconv_emit_line(e, "const long rows = (shape.h - h + shape.stride_h - 1) "
                        "/ shape.stride_h;");
    clconv_emit_line(e, "const long columns = (shape.w - w + shape.stride_w - "
                        "1) / shape.stride_w;");
    clconv_emit_line(e, "const long positions = shape.batch * rows * columns;");
    clconv_emit_line(e, "const long end = min(start + shape.span * $tile_p, "
                        "positions);");
    clconv_emit_line(e, "const long end_block = min(first_block + "
                        "shape.block_span, shape.c_blocks);");
    clconv_emit_line(e, "dx += group * shape.group_c * shape.dx_channel + h * "
                        "shape.dx_row + w * shape.dx_column;");
}

/* taps, and dy and panels at the first of them. */
static void emit_taps(clconv_emit *e)
{
    clconv_emit_line(e, "const long period_h = min(shape.step_h, shape.r);");
    clconv_emit_line(e, "const long period_w = min(shape.step_w, shape.s);");
    clconv_emit_line(e, "const long r = first_tap(h + shape.pad_top, "
                        "shape.stride_h, shape.dilation_h, period_h);");
    clconv_emit_line(e, "const long s = first_tap(w + shape.pad_left, "
                        "shape.stride_w, shape.dilation_w, period_w);");
    clconv_emit_line(e, "const long tap = shape.group_k * 16;");
    clconv_emit_line(e, "taps_t taps;");
    clconv_emit_line(e, "taps.rows = r < period_h ? (shape.r - r + "
                        "shape.step_h - 1) / shape.step_h : 0;");
    clconv_emit_line(e, "taps.columns = s < period_w ? (shape.s - s + "
                        "shape.step_w - 1) / shape.step_w : 0;");
    clconv_emit_line(e, "taps.dy_row = shape.step_h * shape.dilation_h / "
                        "shape.stride_h * shape.dy_row;");
    clconv_emit_line(e, "taps.dy_column = shape.step_w * shape.dilation_w / "
                        "shape.stride_w * shape.dy_column;");
    clconv_emit_line(e, "taps.panel_row = shape.step_h * shape.s * tap;");
    clconv_emit_line(e, "taps.panel_column = shape.step_w * tap;");
    clconv_emit_line(e, "const long p = (h + shape.pad_top - r * "
                        "shape.dilation_h) / shape.stride_h + shape.top;");
    clconv_emit_line(e, "const long q = (w + shape.pad_left - s * "
                        "shape.dilation_w) / shape.stride_w + shape.left;");
    clconv_emit_line(e, "__global const float *dy = scratch + p * shape.dy_row "
                        "+ q * shape.dy_column + group * shape.dy_group;");
    clconv_emit_line(e, "const long block = shape.r * shape.s * tap;");
    clconv_emit_line(e, "__global const $panel *panels = (__global const "
                        "$panel *)(scratch + shape.weights) + group * "
                        "shape.c_blocks * block + (r * shape.s + s) * tap;");
}

static void emit_place_call(clconv_emit *e)
{
    clconv_emit_line(e, "const int count = place(i, positions, rows, columns, "
                        "shape, in_dy, in_dx);");
}

static void emit_block(clconv_emit *e)
{
    clconv_emit_line(e, "const long c = j * 16;");
    clconv_emit_line(e, "sum_tile(dy, in_dy, steps, panels + j * block, shape, "
                        "taps, sums);");
    clconv_emit_line(e, "store_tile(dx + c * shape.dx_channel, in_dx, count, "
                        "min(16L, shape.group_c - c), shape, sums, "
                        "beta$tally);");
}

/* Tiles and blocks, those in the inner loop that are neighbours in dX: the
 * lines of a cache are written whole. */
static void emit_loops(clconv_emit *e, bool nhwc)
{
    static const char tiles[] = "for (long i = start; i < end; i += $tile_p)";
    static const char blocks[] = "for (long j = first_block; j < end_block; "
                                 "++j)";
    clconv_emit_open(e, nhwc ? tiles : blocks);
    if (nhwc)
        emit_place_call(e);
    clconv_emit_open(e, nhwc ? blocks : tiles);
    if (!nhwc)
        emit_place_call(e);
    emit_block(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_shape *s, const clconv_pass *pass)
{
    clconv_shape_open(e, t, pass, s);
    emit_item(e);
    emit_taps(e);
    clconv_emit_line(e, "long in_dy[$tile_p];");
    clconv_emit_line(e, "long in_dx[$tile_p];");
    clconv_emit_line(e, "float16 sums[$places];");
    clconv_emit_line(e, "long steps[$chain];");
    clconv_emit_line(e, "set_steps(shape, steps);");
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    emit_loops(e, t->problem->layout == CLCONV_NHWC);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l, t->problem->n);
    clconv_pass pass[CLCONV_MAX_PASSES];
    passes(t, t->problem->n, pass);
    clconv_shape_emit(e, &s);
    clconv_panel_emit_dy(e, t, &s, &pass[0]);
    clconv_panel_emit_weights(e, t, &l.w, &s, &pass[1]);
    clconv_panel_emit_place(e, t->values[TILE_P]);
    clconv_panel_emit_store(e, t->problem, t->values[TILE_P]);
    clconv_panel_emit_sums(e, t->values[TILE_P], l.w.half_type);
    emit_first_tap(e);
    emit_main(e, t, &s, &pass[2]);
}

const clconv_kernel clconv_bwd_data_panel = {
    .name = "bwd_data_panel",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "register tiles for CPUs, vectors along channels",
    .params = params,
    .param_count = PARAM_COUNT,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .counts = counts,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

/*
 * dW on a CPU: for tile_c weights of each of tile_v * 16 output channels,
 * tile_v vectors of sums each stay in registers while positions run past them.
 *
 *     pack_dy, pack_x   dY and X -> panels, see panel_dy.h and panel_x.h
 *     main   a work-item: one k_block of a group, some of its units, one of
 *            split_k shares of the segments
 *         for each segment of the share
 *             for each unit: tile_c weights of an output channel
 *                 for each image, row and column of the segment
 *                     sums[i][v] += x[position + offset[i]] * dy[position][v]
 *         sums -> dW, transposed; of several shares, -> partials
 *     sum    partials of all shares, in order, transposed -> dW
 *
 * The weights of an output channel are a tile's rows in the order in which dW
 * stores them: the place of a weight's channel and tap in X is one offset, and
 * so any tile_c neighbours make a tile, whatever channels and taps they belong
 * to. A stride is the step from position to position in X.
 *
 * A segment is at most so many positions that a chain of additions stays
 * short; their dY stays in a cache while all units pass over it, and the
 * sums of units wait in private memory.
 *
 * A NaN in X is multiplied for the taps that meet it and no others. One in dY
 * is multiplied by X's zero border too, where only padding connects it.
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
#include "panel_dw.h"
#include "panel_dy.h"
#include "panel_pack.h"
#include "panel_segment.h"
#include "panel_x.h"

#define LANES CLCONV_PANEL_LANES

enum { TILE_C, TILE_V, SEGMENT, SPLIT_K, PANEL, CAST, SHAPE };
enum { PANEL_HALF, PANEL_FLOAT };
enum { CAST_FUSED, CAST_SEPARATE };

/* With the shape as arguments, one program serves all problems of the same
 * types, exponents, layout and tile. */
static const clconv_param params[] = {
    [TILE_C] = {"tile_c", CLCONV_VALUES(6, 14, 3, 4, 7, 8, 12), "weights a tile"},
    [TILE_V] = {"tile_v", CLCONV_VALUES(4, 2, 1, 3),
                "vectors of 16 output channels a tile"},
    [SEGMENT] = {"segment", CLCONV_VALUES(512, 128),
                 "positions that all units pass over"},
    [SPLIT_K] = {"split_k", CLCONV_VALUES(1, 2, 4, 8, 16, 32, 64, 128),
                 "shares of the reduction"},
    [PANEL] = {"panel", CLCONV_NAMES("half", "float"), "type of dY's panels"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY and X are rounded to fp16"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define PARAM_COUNT (int)(sizeof params / sizeof *params)

/* The sums of so many units lie in private memory, 64 bytes each: 42 KiB for
 * a tile of 28. */
#define UNITS 24

/* What follows from the problem and the values. */
typedef struct layout {
    clconv_panel_dy_blocks dy;
    clconv_panel_x x;
    clconv_panel_segment segment;
    clconv_panel_dw dw;
    int64_t unit_parts;
} layout;

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile = t->values[TILE_V] * LANES;
    layout l;
    clconv_panel_dy_set(p, tile, t->values[PANEL] == PANEL_HALF, &l.dy);
    clconv_panel_x_set(p, &l.x);
    clconv_panel_segment_set(p, t->values[SEGMENT], &l.segment);
    l.x.offset = l.dy.floats;
    l.dw = (clconv_panel_dw){
        .tile_v = t->values[TILE_V],
        .split_k = t->values[SPLIT_K],
        .k_blocks = l.dy.k_blocks,
        .weights = p->group_c * p->r * p->s,
        .offset = l.x.offset + clconv_round_up(l.x.elements, 64),
    };
    int64_t units = clconv_divide_up(l.dw.weights, t->values[TILE_C]);
    l.unit_parts = clconv_divide_up(units, UNITS);
    return l;
}

/* What the entry points are told of it. */
static clconv_shape shape_of(const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    const clconv_panel_x *x = &l->x;
    clconv_shape s = {.baked = t->baked};
    clconv_panel_dy_shape(&l->dy, p, &s);
    clconv_panel_x_shape(x, p, &s);
    clconv_panel_dw_shape(&l->dw, &s);
    clconv_panel_segment_shape(&l->segment, p, &s);
    clconv_shape_add(&s, "c", p->group_c);
    clconv_shape_add(&s, "filter", p->r * p->s);
    clconv_shape_add(&s, "s", p->s);
    clconv_shape_add(&s, "tap_row", p->dilation_h * x->row_stride);
    clconv_shape_add(&s, "tap_column", p->dilation_w * x->column_stride);
    clconv_shape_add(&s, "row_step", p->stride_h / x->skip * x->row_stride);
    clconv_shape_add(&s, "column_step", p->stride_w * x->column_stride);
    clconv_shape_add(&s, "unit_parts", l->unit_parts);
    return s;
}

/* ---- What it can do --------------------------------------------------- */

#define MAX_TILE_V 4

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return d->is_cpu && clconv_panel_x_fits(p) &&
           clconv_panel_dy_fits(p, MAX_TILE_V * LANES);
}

/* Registers: the sums and a vector of dY for each column of the tile; X is an
 * operand in memory. */
static bool fits(int tile_c, int tile_v)
{
    return tile_c * tile_v + tile_v <= 32;
}

static bool legal(const clconv_task *t)
{
    const int *values = t->values;
    return fits(values[TILE_C], values[TILE_V]) &&
           (values[PANEL] == PANEL_FLOAT ||
            clconv_operand_fits_half(t->problem, CLCONV_DY));
}

static size_t scratch(const clconv_task *t)
{
    layout l = layout_of(t);
    int64_t floats = l.dw.offset + clconv_panel_dw_floats(&l.dw, t->problem);
    return (size_t)floats * sizeof(float);
}

static unsigned wants_copies(const clconv_task *t)
{
    if (t->values[CAST] == CAST_FUSED)
        return 0;
    return CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X);
}

static unsigned counts(const clconv_task *t)
{
    clconv_panel_x x;
    clconv_panel_x_set(t->problem, &x);
    return x.direct ? 0 : CLCONV_BIT(CLCONV_X);
}

/* Calls of multiply() for each segment. */
static double calls_of(const clconv_problem *p, int tile_c, int tile_v)
{
    int64_t weights = p->group_c * p->r * p->s;
    return (double)p->groups * (double)clconv_divide_up(weights, tile_c) *
           (double)clconv_divide_up(p->group_k, tile_v * LANES);
}

/* For a position, in vector multiply-adds' worth: loads hide nearly; lines of
 * X that hold little of the tile do not. */
static double step_cost(const clconv_problem *p, int tile_c, int tile_v)
{
    double far = p->layout == CLCONV_NHWC && p->c > LANES ? 2 : 0;
    return tile_c * tile_v + 0.05 * (tile_c + tile_v) + far;
}

/* An element of X takes a register where it is not broadcast by what
 * multiplies. */
static double spill_of(const clconv_task *t)
{
    int tile_c = t->values[TILE_C], tile_v = t->values[TILE_V];
    int broadcast = t->device->vector_registers < CLCONV_MANY_REGISTERS;
    return clconv_cost_spill(t->device, tile_c * tile_v + tile_v + broadcast);
}

/* A call, a row of a segment, setting and adding a sum. */
#define PER_CALL 60
#define PER_ROW 5
#define PER_SUM 3

/* Multiply-adds' worth of transposing an element of dY or dW. */
#define PER_TRANSPOSED 13

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    const clconv_device *d = t->device;
    layout l = layout_of(t);
    int tile_c = t->values[TILE_C], tile_v = t->values[TILE_V];
    double rows = (double)p->n * (double)p->p * (double)l.segment.column_parts;
    double positions = (double)p->n * (double)l.dy.positions;
    double segments = (double)clconv_panel_segment_count(&l.segment, p->n);
    double work =
        calls_of(p, tile_c, tile_v) *
        (positions * step_cost(p, tile_c, tile_v) * spill_of(t) +
         rows * PER_ROW + segments * (PER_CALL + PER_SUM * tile_c * tile_v));
    double transposed = (double)clconv_problem_elements(p, CLCONV_DW);
    if (p->layout == CLCONV_NCHW)
        transposed += (double)clconv_problem_elements(p, CLCONV_DY);
    double floats =
        (double)l.dw.offset + 2 * (double)clconv_panel_dw_floats(&l.dw, p);
    double moved = (double)clconv_problem_bytes(p, CLCONV_DY) +
                   (double)clconv_problem_bytes(p, CLCONV_DW) +
                   floats * sizeof(float);
    if (!l.x.direct)
        moved += (double)clconv_problem_bytes(p, CLCONV_X);
    return LANES * work + PER_TRANSPOSED * transposed +
           clconv_cost_move(d, moved) + clconv_cost_launch(d, 4);
}

/* Few, since each is another program. */
static const struct {
    int registers, tile_c, tile_v;
} default_tiles[] = {
    {CLCONV_MANY_REGISTERS, 6, 4},
    {CLCONV_MANY_REGISTERS, 14, 2},
    {CLCONV_MANY_REGISTERS, 14, 1},
    {CLCONV_FEW_REGISTERS, 6, 1},
};

#define DEFAULT_TILES (int)(sizeof default_tiles / sizeof *default_tiles)

static void choose_tile(const clconv_problem *p, const clconv_device *d,
                        int *values)
{
    double best = 0;
    for (int i = 0; i < DEFAULT_TILES; ++i) {
        if (default_tiles[i].registers != d->vector_registers)
            continue;
        int tile_c = default_tiles[i].tile_c;
        int tile_v = default_tiles[i].tile_v;
        double now = calls_of(p, tile_c, tile_v) * step_cost(p, tile_c, tile_v);
        if (best > 0 && now >= best)
            continue;
        best = now;
        values[TILE_C] = tile_c;
        values[TILE_V] = tile_v;
    }
}

/* Work-items for each compute unit, so that none waits long for the last. */
#define ITEMS_PER_UNIT 8

static void choose_split(const clconv_problem *p, const clconv_device *d,
                         int *values)
{
    clconv_task t = {.problem = p, .device = d, .values = values};
    layout l = layout_of(&t);
    int64_t segments = clconv_panel_segment_count(&l.segment, p->n);
    int64_t items = p->groups * l.dy.k_blocks * l.unit_parts;
    int64_t wanted = (int64_t)ITEMS_PER_UNIT * d->compute_units;
    for (int i = 0; i < params[SPLIT_K].count; ++i) {
        int64_t split = params[SPLIT_K].values[i];
        if (split > clconv_max(1, segments))
            return;
        values[SPLIT_K] = (int)split;
        if (split * items >= wanted)
            return;
    }
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAM_COUNT, values);
    if (!clconv_operand_fits_half(p, CLCONV_DY))
        values[PANEL] = PANEL_FLOAT;
    if (p->math == CLCONV_FP32)
        values[SEGMENT] = 128; /* rounding of sums is all the error there is */
    choose_tile(p, d, values);
    choose_split(p, d, values);
}

/* ---- Passes and scratch ----------------------------------------------- */

/* Runs for an empty batch too: its sums are zeros then. */
static void main_pass(const clconv_task *t, const layout *l,
                      const clconv_shape *s, clconv_pass *pass)
{
    int64_t blocks = t->problem->groups * l->dy.k_blocks;
    *pass = (clconv_pass){
        .entry = "bwd_weight_panel",
        .groups = (size_t)(t->values[SPLIT_K] * blocks * l->unit_parts),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    if (clconv_panel_x_may_be_direct(t->problem))
        clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_X);
    clconv_panel_dw_args(t->problem, pass);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, CLCONV_DW);
    clconv_shape_arg(s, pass);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l);
    clconv_panel_dy_pass(&l.dy, p, "bwd_weight_panel_pack_dy", batch, &s,
                         &out[0]);
    clconv_panel_x_pass(&l.x, t, "bwd_weight_panel_pack_x", batch, &s, &out[1]);
    main_pass(t, &l, &s, &out[2]);
    clconv_panel_dw_pass(&l.dw, p, "bwd_weight_panel_sum", &s, &out[3]);
    return 4;
}

/* ---- Text ------------------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_task *t)
{
    int64_t tile = t->values[TILE_C] * t->values[TILE_V];
    clconv_emit_set(e, "tile", tile);
    clconv_emit_set(e, "most_sums", UNITS * tile);
    clconv_emit_set(e, "most_offsets", UNITS * t->values[TILE_C]);
}

/* Emits line for each sum of the tile, with its holes $i, $v and $n. */
static void emit_tile(clconv_emit *e, const clconv_task *t, const char *line)
{
    int tile_v = t->values[TILE_V];
    for (int i = 0; i < t->values[TILE_C]; ++i)
        for (int v = 0; v < tile_v; ++v) {
            clconv_emit_set(e, "i", i);
            clconv_emit_set(e, "v", v);
            clconv_emit_set(e, "n", i * tile_v + v);
            clconv_emit_line(e, line);
        }
}

/* One position. */
static void emit_multiply_step(clconv_emit *e, const clconv_task *t)
{
    bool half_type = t->values[PANEL] == PANEL_HALF;
    for (int v = 0; v < t->values[TILE_V]; ++v) {
        clconv_emit_set(e, "v", v);
        clconv_emit_line(e, half_type
                                ? "const float16 dy$v = vload_half16($v, dy);"
                                : "const float16 dy$v = vload16($v, dy);");
    }
    emit_tile(e, t, "sum${i}_$v = x$i[at] * dy$v + sum${i}_$v;");
    clconv_emit_line(e, "dy += $dy_tile;");
}

/* A unit over a segment, where dy and x begin. Each segment is summed by itself and then
 * added, which keeps the error of a long reduction low. */
static void emit_multiply(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e, "static void multiply(__global const $dy_stored *dy, "
                        "__global const float *x, const long *offset, shape_t "
                        "shape, segment_t s, float16 *sums)");
    emit_tile(e, t, "float16 sum${i}_$v = 0.0f;");
    for (int i = 0; i < t->values[TILE_C]; ++i) {
        clconv_emit_set(e, "i", i);
        clconv_emit_line(e, "__global const float *x$i = x + offset[$i];");
    }
    clconv_emit_open(e, "for (int image = 0; image < s.images; ++image)");
    clconv_emit_open(e, "for (int row = 0; row < s.rows; ++row)");
    clconv_emit_line(e, "long at = image * shape.x_image_stride + row * "
                        "shape.row_step;");
    clconv_emit_line(e, "const long end = at + s.columns * shape.column_step;");
    clconv_emit_open(e, "for (; at < end; at += shape.column_step)");
    emit_multiply_step(e, t);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    emit_tile(e, t, "sums[$n] += sum${i}_$v;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Where X lies for weight i of a channel of the group whose first channel of
 * X is given, against position 0. */
static void emit_offset(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e, "static long weight_offset(shape_t shape, long "
                        "channel, long i)");
    if (t->problem->layout == CLCONV_NHWC) {
        clconv_emit_line(e, "const long tap = i / shape.c;");
        clconv_emit_line(e, "channel += i % shape.c;");
    } else {
        clconv_emit_line(e, "const long tap = i % shape.filter;");
        clconv_emit_line(e, "channel += i / shape.filter;");
    }
    clconv_emit_line(e, "return channel * shape.x_channel_stride + tap / "
                        "shape.s * shape.tap_row + tap % shape.s * "
                        "shape.tap_column;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All units of the work-item over one segment; dy and x begin at image 0. */
static void emit_add_segment(clconv_emit *e)
{
    clconv_emit_open(e, "static void add_segment(__global const $dy_stored "
                        "*dy, __global const float *x, const long *offset, "
                        "shape_t shape, segment_t s, int units, float16 "
                        "*sums)");
    clconv_emit_line(e, "dy += ((s.image * shape.p + s.row) * shape.q + "
                        "s.column) * $dy_tile;");
    clconv_emit_line(e, "x += s.image * shape.x_image_stride + s.row * "
                        "shape.row_step + s.column * shape.column_step;");
    clconv_emit_line(e, "for (int i = 0; i < units; ++i)");
    clconv_emit_line(e, "    multiply(dy, x, offset + i * $tile_c, shape, s, "
                        "sums + i * $tile);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A work-item's k_block, share and units. */
static void emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "const long part = get_group_id(0) % "
                        "shape.unit_parts;");
    clconv_emit_line(e, "const long rest = get_group_id(0) / "
                        "shape.unit_parts;");
    clconv_emit_line(e, "const long blocks = shape.groups * shape.k_blocks;");
    clconv_emit_line(e, "const long block = rest % blocks;");
    clconv_emit_line(e, "const long share = rest / blocks;");
    clconv_emit_line(e, "const long all_units = (shape.weights + $tile_c - 1) "
                        "/ $tile_c;");
    clconv_emit_line(e, "const long unit = all_units * part / "
                        "shape.unit_parts;");
    clconv_emit_line(e, "const int units = all_units * (part + 1) / "
                        "shape.unit_parts - unit;");
    clconv_emit_line(e, "const long weight = unit * $tile_c;");
}

/* The places and the sums of its weights. Weights past the last are the last
 * again, and dropped in the end. */
static void emit_start(clconv_emit *e)
{
    clconv_emit_line(e, "const long channel = block / shape.k_blocks * "
                        "shape.c;");
    clconv_emit_line(e, "long offset[$most_offsets];");
    clconv_emit_line(e, "for (int i = 0; i < units * $tile_c; ++i)");
    clconv_emit_line(e, "    offset[i] = weight_offset(shape, channel, "
                        "min(weight + i, shape.weights - 1));");
    clconv_emit_line(e, "float16 sums[$most_sums];");
    clconv_emit_line(e, "for (int i = 0; i < units * $tile; ++i)");
    clconv_emit_line(e, "    sums[i] = 0.0f;");
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_shape *s, const clconv_pass *pass)
{
    clconv_shape_open(e, t, pass, s);
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    emit_place(e);
    emit_start(e);
    clconv_emit_line(e, "__global const $dy_stored *dy = (__global const "
                        "$dy_stored *)scratch + block * "
                        "shape.dy_block_stride;");
    clconv_emit_line(e, "__global const float *panels = scratch + "
                        "shape.x_offset;");
    if (clconv_panel_x_may_be_direct(t->problem))
        clconv_emit_line(e, "panels = shape.x_direct ? x : panels;");
    clconv_emit_line(e, "const long segments = segment_count(shape, batch);");
    clconv_emit_line(e, "const long first = segments * share / "
                        "shape.split_k;");
    clconv_emit_line(e, "const long end = segments * (share + 1) / "
                        "shape.split_k;");
    clconv_emit_line(e, "for (long i = first; i < end; ++i)");
    clconv_emit_line(e, "    add_segment(dy, panels, offset, shape, "
                        "segment_at(shape, i, batch), units, sums);");
    clconv_emit_line(e, "const int count = min((long)units * $tile_c, "
                        "shape.weights - weight);");
    clconv_panel_dw_emit_store(e, t->problem);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l);
    clconv_pass pass[CLCONV_MAX_PASSES];
    passes(t, t->problem->n, pass);
    clconv_shape_emit(e, &s);
    clconv_panel_dy_emit(e, t, &l.dy, &s, &pass[0]);
    clconv_panel_x_emit(e, &l.x, t, &s, &pass[1]);
    set_holes(e, t);
    clconv_panel_segment_emit(e);
    emit_multiply(e, t);
    emit_offset(e, t);
    emit_add_segment(e);
    clconv_panel_dw_emit_functions(e, t->problem, &l.dw);
    emit_main(e, t, &s, &pass[2]);
    clconv_panel_dw_emit_pass(e, t, &s, &pass[3]);
}

const clconv_kernel clconv_bwd_weight_panel = {
    .name = "bwd_weight_panel",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 1,
    .summary = "register tiles with vectors of output channels, for CPUs",
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

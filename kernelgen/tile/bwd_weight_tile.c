/*
 * dW on a CPU: for one tap, tile_k by tile_c sums of 16 lanes stay in
 * registers while positions run past them.
 *
 *     pack_dy, pack_x   dY and X -> planes [k][n] and [phase][c][n], see
 *            tile_pack.h
 *     main   a work-item: one group, one k_block, one c_block, one block of
 *            taps, one of split_k shares of the segments
 *         for each segment of the share
 *             for r, s
 *                 for each vector of 16 positions in the segment
 *                     sums[k][c] += dy[k][position]
 *                             * x[phase(r, s)][c][position + shift(r, s)]
 *         the 16 lanes of each sum -> partial[share][k][c][r][s]
 *     sum    partials of all shares, in order -> dW
 *
 * A segment is so many positions that those of tile_k + tile_c channels stay
 * in a cache while all taps pass over them; the sums of the taps wait in
 * private memory.
 *
 * Positions run over rows of dY, as wide as the planes' pitch, and over the
 * images of a channel, joined end to end: a segment may begin anywhere. dY is
 * zero in the gap after each row and each image. The gaps are so wide that
 * for each tap an element of X meets its own partner in dY or, if the tap
 * moves it off dY's edge, a zero: a NaN reaches no sum that it does not meet
 * in the padded convolution. A stride's phases are planes of their own, since
 * an element of X has no partner for the taps of another phase.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "entry.h"
#include "integers.h"
#include "kernel.h"
#include "kernel_shape.h"
#include "operand.h"
#include "tile_count.h"
#include "tile_pack.h"
#include "tile_partials.h"
#include "tile_phase.h"

#define LANES CLCONV_TILE_LANES

enum { TILE_K, TILE_C, SEGMENT, SPLIT_K, CAST, SHAPE };
enum { CAST_FUSED, CAST_SEPARATE };

/* With the shape as arguments, one program serves all problems of the same
 * types and exponents; segment and split_k are arguments too. */
static const clconv_param params[] = {
    [TILE_K] = {"tile_k", CLCONV_VALUES(5, 1, 2, 3, 4, 6, 8),
                "channels of dY a tile"},
    [TILE_C] = {"tile_c", CLCONV_VALUES(5, 1, 2, 3, 4, 6, 8),
                "channels of X a tile"},
    [SEGMENT] = {"segment", CLCONV_VALUES(96, 24, 48, 192),
                 "KiB of planes that all taps pass over"},
    [SPLIT_K] = {"split_k", CLCONV_VALUES(1, 2, 4, 8, 16, 32, 64, 128),
                 "shares of the reduction"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY and X are rounded to fp16"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define PARAM_COUNT (int)(sizeof params / sizeof *params)

/* What follows from the problem and the values. */
typedef struct layout {
    clconv_tile_axis rows, columns;
    clconv_tile_planes dy, x;
    int64_t segment;            /* vectors of 16 positions */
    int64_t k_blocks, c_blocks; /* of a group */
    int64_t tap_blocks, taps;   /* in each of them, at most */
    int64_t weights;            /* elements of dW */
    int64_t partials;           /* where they lie in the scratch, in floats */
} layout;

/* Elements from channel to channel: at least this many, and no multiple of
 * large powers of two, with which all channels of a tile would fall on the
 * same lines of a cache. */
static int64_t channel_stride(int64_t elements)
{
    return clconv_round_up(elements, 256) + 5 * LANES;
}

/* How far apart rows (or images) stand: room for those of dY and of each
 * phase of X, and so much more that the phase's last tap moves an element of
 * X off dY's beginning to the zeros before it, after the previous row's end. */
static int64_t distance(const clconv_tile_axis *a)
{
    int64_t most = a->out;
    for (int64_t phase = 0; phase < a->phases; ++phase) {
        clconv_tile_span s = clconv_tile_phase_span(a, phase);
        if (s.end <= s.first)
            continue;
        most = clconv_max(most, s.end);
        most = clconv_max(most, a->out + a->reach - s.first);
    }
    return most;
}

/* Everything but the stride from channel to channel. */
static void set_planes(const clconv_problem *p, layout *s)
{
    s->rows = clconv_tile_rows(p);
    s->columns = clconv_tile_columns(p);
    int64_t pitch = distance(&s->columns);
    int64_t length = distance(&s->rows) * pitch;
    int64_t tail = LANES + s->rows.reach * pitch + s->columns.reach;
    clconv_tile_planes common = {
        .grid = {.pitch = pitch,
                 .image_stride = length,
                 .tail = tail,
                 .images = clconv_max(1, p->n)},
        .serves = CLCONV_OP_DW,
    };
    s->dy = s->x = common;
    s->dy.tensor = CLCONV_DY;
    s->dy.channels = p->k;
    s->dy.rows = s->rows.out;
    s->dy.columns = s->columns.out;
    s->dy.entry = "bwd_weight_tile_pack_dy";
    s->x.tensor = CLCONV_X;
    s->x.channels = p->c;
    s->x.rows = s->rows.in;
    s->x.columns = s->columns.in;
    s->x.in_phases = true;
    s->x.entry = "bwd_weight_tile_pack_x";
}

/* Bytes of a vector of each plane that a tile reads. */
static int64_t vector_bytes(const clconv_task *t)
{
    int64_t dy = clconv_operand_fits_half(t->problem, CLCONV_DY) ? 2 : 4;
    int64_t x = clconv_operand_fits_half(t->problem, CLCONV_X) ? 2 : 4;
    return LANES * (t->values[TILE_K] * dy + t->values[TILE_C] * x);
}

/* The sums of so many taps lie in private memory, 64 bytes each: 75 KiB for a
 * tile of 24. */
#define MAX_TAPS 49

/* Elements of whole blocks of channels, though nothing writes those that are
 * not there. */
static int64_t padded_elements(int64_t groups, int64_t channels, int64_t tile,
                               int64_t stride)
{
    int64_t last = clconv_round_up(channels, tile);
    return ((groups - 1) * channels + last) * stride;
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile_k = t->values[TILE_K], tile_c = t->values[TILE_C];
    layout s = {.weights = clconv_problem_elements(p, CLCONV_DW)};
    set_planes(p, &s);
    const clconv_tile_grid *grid = &s.x.grid;
    int64_t stride = channel_stride(p->n * grid->image_stride + grid->tail);
    s.dy.grid.channel_stride = s.x.grid.channel_stride = stride;
    s.segment = clconv_max(1, t->values[SEGMENT] * 1024 / vector_bytes(t));
    s.k_blocks = clconv_divide_up(p->group_k, tile_k);
    s.c_blocks = clconv_divide_up(p->group_c, tile_c);
    s.tap_blocks = clconv_divide_up(p->r * p->s, MAX_TAPS);
    s.taps = clconv_divide_up(p->r * p->s, s.tap_blocks);
    s.dy.elements = padded_elements(p->groups, p->group_k, tile_k, stride);
    s.x.phase_stride = padded_elements(p->groups, p->group_c, tile_c, stride);
    s.x.elements = s.rows.phases * s.columns.phases * s.x.phase_stride;
    s.x.offset = clconv_tile_planes_floats(p, &s.dy);
    if (clconv_tile_is_counted(t, CLCONV_X))
        s.x.counted = clconv_max(1, CLCONV_TILE_RUN / (p->h * p->w));
    s.partials = s.x.offset + clconv_tile_planes_floats(p, &s.x);
    return s;
}

/* What the entry points are told of it. */
static clconv_shape shape_of(const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    clconv_shape s = {.baked = t->baked};
    clconv_tile_grid_shape(&l->dy.grid, &s);
    clconv_tile_pack_shape(&l->dy, &s);
    clconv_tile_pack_shape(&l->x, &s);
    clconv_tile_axis_shape(&l->rows, "h", &s);
    clconv_tile_axis_shape(&l->columns, "w", &s);
    clconv_shape_add(&s, "groups", p->groups);
    clconv_shape_add(&s, "group_c", p->group_c);
    clconv_shape_add(&s, "group_k", p->group_k);
    clconv_shape_add(&s, "filter", p->r * p->s);
    clconv_shape_add(&s, "segment", l->segment);
    clconv_shape_add(&s, "split_k", t->values[SPLIT_K]);
    clconv_shape_add(&s, "k_blocks", l->k_blocks);
    clconv_shape_add(&s, "c_blocks", l->c_blocks);
    clconv_shape_add(&s, "tap_blocks", l->tap_blocks);
    clconv_shape_add(&s, "taps", l->taps);
    clconv_shape_add(&s, "weights", l->weights);
    clconv_shape_add(&s, "partials", l->partials);
    return s;
}

/* ---- What it can do --------------------------------------------------- */

/* Their phases are gone through one by one. */
#define MAX_FILTER 16

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    if (!d->is_cpu || p->layout != CLCONV_NCHW)
        return false;
    if (p->r > MAX_FILTER || p->s > MAX_FILTER || !clconv_tile_is_small(p))
        return false;
    layout s = {0};
    set_planes(p, &s);
    return clconv_tile_is_addressable(p, &s.dy) &&
           clconv_tile_is_addressable(p, &s.x);
}

/* Registers: the sums, a vector of X for each c, one of dY. */
static int live_of(int tile_k, int tile_c)
{
    return tile_k * tile_c + tile_c + 1;
}

/* Tiles of sums for a tap. */
static double tiles_of(const clconv_problem *p, int tile_k, int tile_c)
{
    return (double)clconv_divide_up(p->group_k, tile_k) *
           (double)clconv_divide_up(p->group_c, tile_c) * (double)p->groups;
}

/* For a vector of positions and a tap, in vector multiply-adds' worth: some of
 * the loads do not hide. */
static double step_cost(int tile_k, int tile_c)
{
    return 0.9 * (tile_k * tile_c + 0.5 * (tile_k + tile_c));
}

/* What multiplies may come from memory: with few registers one of the vectors
 * does. */
static double spill_of(const clconv_task *t)
{
    return clconv_cost_spill(t->device,
                             live_of(t->values[TILE_K], t->values[TILE_C]) - 1);
}

/* Setting and adding a sum once a segment, and its 16 lanes once a share. */
#define PER_SEGMENT 3
#define PER_SHARE 10

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    const clconv_device *d = t->device;
    layout l = layout_of(t);
    int tile_k = t->values[TILE_K], tile_c = t->values[TILE_C];
    double vectors = (double)p->n * (double)l.x.grid.image_stride / LANES;
    double segments = vectors / (double)l.segment + 1;
    double shares = t->values[SPLIT_K];
    double tile = tile_k * tile_c;
    double taps = tiles_of(p, tile_k, tile_c) * (double)(p->r * p->s);
    double step = step_cost(tile_k, tile_c) * spill_of(t);
    double work = taps * (vectors * step +
                          tile * (PER_SEGMENT * segments + PER_SHARE * shares));
    double planes = (double)l.partials * sizeof(float);
    double partials = 2 * shares * (double)l.weights * sizeof(float);
    double moved = (double)clconv_problem_bytes(p, CLCONV_DY) +
                   (double)clconv_problem_bytes(p, CLCONV_X) + planes + partials;
    return LANES * work + clconv_cost_move(d, moved) + clconv_cost_launch(d, 4);
}

/* Few, since each is another program: for each kind of CPU the fastest, and
 * one for few channels of X. */
static const struct {
    int registers, tile_k, tile_c;
} default_tiles[] = {
    {CLCONV_MANY_REGISTERS, 5, 5},
    {CLCONV_MANY_REGISTERS, 8, 3},
    {CLCONV_FEW_REGISTERS, 3, 2},
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
        int tile_k = default_tiles[i].tile_k;
        int tile_c = default_tiles[i].tile_c;
        double now = tiles_of(p, tile_k, tile_c) * step_cost(tile_k, tile_c);
        if (best > 0 && now >= best)
            continue;
        best = now;
        values[TILE_K] = tile_k;
        values[TILE_C] = tile_c;
    }
}

/* Work-items for each compute unit, so that none waits long for the last. */
#define ITEMS_PER_UNIT 8

static void choose_split(const clconv_problem *p, const clconv_device *d,
                         int *values)
{
    clconv_task t = {.problem = p, .device = d, .values = values};
    layout s = layout_of(&t);
    int64_t positions = p->n * s.x.grid.image_stride;
    int64_t segments = clconv_divide_up(positions, s.segment * LANES);
    int64_t items = s.k_blocks * s.c_blocks * s.tap_blocks * p->groups;
    int64_t wanted = (int64_t)ITEMS_PER_UNIT * d->compute_units;
    for (int i = 0; i < params[SPLIT_K].count; ++i) {
        int64_t split = params[SPLIT_K].values[i];
        if (split > segments)
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
    choose_tile(p, d, values);
    choose_split(p, d, values);
}

static bool legal(const clconv_task *t)
{
    return live_of(t->values[TILE_K], t->values[TILE_C]) <=
           CLCONV_MANY_REGISTERS;
}

static unsigned wants_copies(const clconv_task *t)
{
    if (t->values[CAST] == CAST_FUSED)
        return 0;
    return CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X);
}

/* Elements of an image's channel that a work-item of pack_x can count. */
#define MAX_COUNTED ((int64_t)1 << 28)

static unsigned counts(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    return p->h * p->w < MAX_COUNTED ? CLCONV_BIT(CLCONV_X) : 0;
}

/* ---- Passes and scratch ----------------------------------------------- */

static size_t scratch(const clconv_task *t)
{
    layout s = layout_of(t);
    int64_t floats = s.partials + t->values[SPLIT_K] * s.weights;
    return (size_t)floats * sizeof(float);
}

/* Runs for an empty batch too: its partials are zeros then. */
static void main_pass(const clconv_task *t, const layout *l,
                      const clconv_shape *s, clconv_pass *pass)
{
    int64_t tiles = l->k_blocks * l->c_blocks * t->problem->groups;
    *pass = (clconv_pass){
        .entry = "bwd_weight_tile",
        .groups = (size_t)(t->values[SPLIT_K] * tiles * l->tap_blocks),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, CLCONV_DW);
    clconv_shape_arg(s, pass);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l);
    clconv_tile_pack_pass(t, &l.dy, batch, &s, &out[0]);
    clconv_tile_pack_pass(t, &l.x, batch, &s, &out[1]);
    main_pass(t, &l, &s, &out[2]);
    clconv_tile_partials_pass(t, &s, &out[3]);
    return 4;
}

/* ---- Text ------------------------------------------------------------- */

/* $most_sums: those that a block of taps can have. */
static void set_holes(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    bool dy_half = clconv_operand_fits_half(p, CLCONV_DY);
    bool x_half = clconv_operand_fits_half(p, CLCONV_X);
    int64_t tile = t->values[TILE_K] * t->values[TILE_C];
    clconv_emit_set(e, "tile", tile);
    clconv_emit_set(e, "most_taps", MAX_TAPS);
    clconv_emit_set(e, "most_sums", MAX_TAPS * tile);
    clconv_emit_set_text(e, "dy_type", dy_half ? "half" : "float");
    clconv_emit_set_text(e, "x_type", x_half ? "half" : "float");
}

/* Calls line for each sum of the tile, with its holes $i, $j and $n. */
static void emit_tile(clconv_emit *e, const clconv_task *t, const char *line)
{
    int tile_c = t->values[TILE_C];
    for (int i = 0; i < t->values[TILE_K]; ++i)
        for (int j = 0; j < tile_c; ++j) {
            clconv_emit_set(e, "i", i);
            clconv_emit_set(e, "j", j);
            clconv_emit_set(e, "n", i * tile_c + j);
            clconv_emit_line(e, line);
        }
}

/* Channel i of dY with all of X. */
static void emit_multiply_row(clconv_emit *e, const clconv_task *t, int i)
{
    clconv_emit_set(e, "i", i);
    clconv_emit_line(e, "const float16 a$i = load_dy_plane(dy, $i * "
                        "channel_stride);");
    for (int j = 0; j < t->values[TILE_C]; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, "sum${i}_$j = a$i * b$j + sum${i}_$j;");
    }
}

/* dy and x begin at the segment, and x is shifted by the tap. Each segment is
 * summed by itself and then added, which keeps the error of a long reduction
 * low. A tile that reaches past the last channel reads what was never
 * written; its sums are dropped. */
static void emit_multiply(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(
        e, "static void multiply(__global const $dy_type *dy, __global "
           "const $x_type *x, long channel_stride, int vectors, float16 "
           "*sums)");
    emit_tile(e, t, "float16 sum${i}_$j = 0.0f;");
    clconv_emit_open(e, "for (int i = 0; i < vectors; ++i)");
    for (int j = 0; j < t->values[TILE_C]; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, "const float16 b$j = load_x_plane(x, $j * "
                            "channel_stride);");
    }
    for (int i = 0; i < t->values[TILE_K]; ++i)
        emit_multiply_row(e, t, i);
    clconv_emit_line(e, "dy += 16;");
    clconv_emit_line(e, "x += 16;");
    clconv_emit_close(e);
    emit_tile(e, t, "sums[$n] += sum${i}_$j;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Where tap's partner of position 0 lies in the planes of a channel of X. */
static void emit_shift_of(clconv_emit *e)
{
    clconv_emit_open(e, "static long shift_of(shape_t shape, int tap)");
    clconv_emit_line(e, "const axis_t h = axis_rows(shape);");
    clconv_emit_line(e, "const axis_t w = axis_columns(shape);");
    clconv_emit_line(e, "const int r = tap / w.taps;");
    clconv_emit_line(e, "const int s = tap % w.taps;");
    clconv_emit_line(e, "const int phase = r % h.step * min(w.taps, w.step) + "
                        "s % w.step;");
    clconv_emit_line(e, "return phase * shape.phase_stride + r * h.dilation / "
                        "h.stride * shape.pitch + s * w.dilation / w.stride;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All taps of the block over a segment. */
static void emit_segment(clconv_emit *e)
{
    clconv_emit_line(e, "const long from = segment * shape.segment;");
    clconv_emit_line(e, "const int count = min(shape.segment, vectors - "
                        "from);");
    clconv_emit_open(e, "for (int tap = 0; tap < taps; ++tap)");
    clconv_emit_line(e, "multiply(dy + from * 16, x + from * 16 + shift[tap], "
                        "shape.channel_stride, count, sums + tap * $tile);");
    clconv_emit_close(e);
}

/* A work-item's share, group, taps, k and c (within the group), and where its
 * planes begin. */
static void emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "long item = get_group_id(0);");
    clconv_emit_line(e, "const int c = item % shape.c_blocks * $tile_c;");
    clconv_emit_line(e, "item /= shape.c_blocks;");
    clconv_emit_line(e, "const int k = item % shape.k_blocks * $tile_k;");
    clconv_emit_line(e, "item /= shape.k_blocks;");
    clconv_emit_line(e, "const int first_tap = item % shape.tap_blocks * "
                        "shape.taps;");
    clconv_emit_line(e, "const int taps = min(shape.taps, shape.filter - "
                        "first_tap);");
    clconv_emit_line(e, "item /= shape.tap_blocks;");
    clconv_emit_line(e, "const long group = item % shape.groups;");
    clconv_emit_line(e, "const long share = item / shape.groups;");
    clconv_emit_line(e, "__global const $dy_type *dy = $dy_planes + (group * "
                        "shape.group_k + k) * shape.channel_stride;");
    clconv_emit_line(e, "__global const $x_type *x = $x_planes + (group * "
                        "shape.group_c + c) * shape.channel_stride;");
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_shape *s, const clconv_pass *pass)
{
    clconv_shape_open(e, t, pass, s);
    emit_place(e);
    clconv_emit_line(e, "const long vectors = (batch * shape.image_stride + "
                        "15) / 16;");
    clconv_emit_line(e, "const long segments = (vectors + shape.segment - 1) / "
                        "shape.segment;");
    clconv_emit_line(e, "const long first = segments * share / "
                        "shape.split_k;");
    clconv_emit_line(e, "const long end = segments * (share + 1) / "
                        "shape.split_k;");
    clconv_emit_line(e, "long shift[$most_taps];");
    clconv_emit_open(e, "for (int i = 0; i < taps; ++i)");
    clconv_emit_line(e, "shift[i] = shift_of(shape, first_tap + i);");
    clconv_emit_close(e);
    clconv_emit_line(e, "float16 sums[$most_sums];");
    clconv_emit_open(e, "for (int i = 0; i < taps * $tile; ++i)");
    clconv_emit_line(e, "sums[i] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (long segment = first; segment < end; "
                        "++segment)");
    emit_segment(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "store_partials(scratch + shape.partials + share * "
                        "shape.weights + group * shape.group_k * "
                        "shape.group_c * shape.filter + first_tap, shape, k, "
                        "c, taps, sums);");
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
    clconv_tile_axis_emit(e);
    clconv_tile_pack_emit(e, t, &l.dy, &s, &pass[0]);
    clconv_tile_pack_emit(e, t, &l.x, &s, &pass[1]);
    set_holes(e, t);
    emit_multiply(e, t);
    clconv_tile_partials_emit_store(e);
    emit_shift_of(e);
    emit_main(e, t, &s, &pass[2]);
    clconv_tile_partials_emit(e, t, &s, &pass[3]);
}

const clconv_kernel clconv_bwd_weight_tile = {
    .name = "bwd_weight_tile",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 3,
    .summary = "register tiles for CPUs: NCHW",
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

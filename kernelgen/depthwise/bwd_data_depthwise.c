/*
 * dX of depthwise problems on a CPU: each row of dY is read and rounded once,
 * each row of dX written once, all else stays in private memory.
 *
 *     a work-item: an image, a channel (NHWC: vectors of 16), a band of rows
 *                  h, a block of columns w
 *         W of the channels -> weights
 *         for each row h
 *             rows p of dY that h meets, unless the ring has them -> ring
 *             for each phase of w, for tiles of its columns
 *                 for those r and s that meet h and the phase, for the planes
 *                     sums += weights[r][s] * ring[p][q..]
 *             sums -> dX
 *
 * Columns w = phase, phase + stride_w, ... meet consecutive columns of dY for
 * the same s, so a phase is a convolution of stride 1. A row of the ring has
 * zeros to both sides, so that a tap that leaves dY meets zeros only; one that
 * the stride does not hit is not computed.
 *
 * NCHW: the phases of a row are put side by side in line and joined. NHWC: a
 * pixel is some vectors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "depthwise.h"
#include "depthwise_dx.h"
#include "entry.h"
#include "generic.h"
#include "integers.h"
#include "kernel.h"
#include "output.h"

#define ENTRY "bwd_data_depthwise"
#define LANES CLCONV_DEPTHWISE_LANES

enum { VECTORS, TILE, SPLIT, CAST, SHAPE, PARAMS };

static const clconv_param params[PARAMS] = {
    [VECTORS] = {"vectors", CLCONV_VALUES(8, 1, 2, 4, 16),
                 "NHWC: of a pixel that a work-item computes"},
    [TILE] = {"tile", CLCONV_VALUES(4, 1, 2, 8), "vectors of sums at once"},
    [SPLIT] = {"split", CLCONV_VALUES(1, 2, 4, 8, 16), "bands of rows"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY is rounded to fp16"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

enum { CAST_FUSED, CAST_SEPARATE };

/* NHWC: columns of a phase that are summed before they go out, if the line has
 * room. */
#define CHUNK 4

/* ---- Geometry --------------------------------------------------------- */

typedef struct layout {
    int64_t ring;   /* rows of dY held: those that a row of dX may meet */
    int64_t base;   /* q of the first column of a row held, first block */
    int64_t block;  /* columns of a phase that a work-item computes */
    int64_t room;   /* columns of dY that meet them */
    int64_t pitch;  /* floats from row to row of the ring */
    int64_t blocks; /* of columns */
    int64_t band;   /* rows of dX that a work-item computes */
    int64_t bands;
    int64_t chunk; /* columns of a phase that go out at once, NHWC */
} layout;

/* Columns of dY beside those of a phase: the taps reach so far. */
static int64_t halo_of(const clconv_problem *p, int64_t base)
{
    return (p->stride_w - 1 + p->pad_left) / p->stride_w - base;
}

/* Columns of a phase whose rows fit the ring, below 1: none. */
static int64_t most_columns(const clconv_problem *p, int vectors, int64_t ring,
                            int64_t halo)
{
    int64_t row = CLCONV_DEPTHWISE_RING / (ring * p->group_k);
    int64_t column = clconv_depthwise_channels(p, vectors);
    if (p->layout == CLCONV_NHWC)
        return row / column - halo;
    int64_t columns =
        clconv_min(row - clconv_depthwise_align(halo, LANES) - LANES,
                   CLCONV_DEPTHWISE_LINE / p->stride_w);
    return clconv_depthwise_floor(columns, LANES) * LANES;
}

/* False if a row does not fit. */
static bool set_columns(const clconv_problem *p, int vectors, layout *l)
{
    int64_t reach_w = (p->s - 1) * p->dilation_w;
    l->ring = (p->r - 1) * p->dilation_h / p->stride_h + 1;
    l->base = clconv_depthwise_floor(p->pad_left - reach_w, p->stride_w);
    if (p->layout == CLCONV_NCHW) /* column 0 begins a vector of a row */
        l->base = clconv_depthwise_floor(l->base, LANES) * LANES;
    if (!clconv_depthwise_is_small(p, vectors) ||
        l->ring >= CLCONV_DEPTHWISE_RING)
        return false;
    int64_t halo = halo_of(p, l->base);
    int64_t most = most_columns(p, vectors, l->ring, halo);
    int64_t columns = clconv_divide_up(p->w, p->stride_w);
    if (most < 1)
        return false;
    l->block = clconv_divide_up(columns, clconv_divide_up(columns, most));
    l->blocks = clconv_divide_up(columns, l->block);
    l->room = halo + l->block;
    l->pitch = p->layout == CLCONV_NHWC
                   ? l->room * clconv_depthwise_channels(p, vectors)
                   : clconv_depthwise_align(halo, LANES) +
                         clconv_depthwise_align(l->block, LANES) + LANES;
    return true;
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    layout l = {0};
    set_columns(p, t->values[VECTORS], &l);
    l.band = clconv_divide_up(p->h, clconv_min(t->values[SPLIT], p->h));
    l.bands = clconv_divide_up(p->h, l.band);
    l.chunk = clconv_min(CHUNK, CLCONV_DEPTHWISE_LINE /
                                    (p->stride_w * clconv_depthwise_channels(
                                                       p, t->values[VECTORS])));
    return l;
}

static int64_t channel_blocks(const clconv_task *t)
{
    return clconv_depthwise_channel_blocks(t->problem, t->values[VECTORS]);
}

/* From a tap that meets a row or column of dX to the next one that does. */
static int64_t tap_step(int64_t stride, int64_t dilation)
{
    int64_t a = stride, b = dilation;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return stride / a;
}

static clconv_shape shape_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    clconv_shape s = {.baked = t->baked};
    clconv_depthwise_add_sizes(&s, p, batch);
    clconv_shape_add(&s, "c_blocks", channel_blocks(t));
    clconv_shape_add(&s, "ring", l.ring);
    clconv_shape_add(&s, "base", l.base);
    clconv_shape_add(&s, "block", l.block);
    clconv_shape_add(&s, "room", l.room);
    clconv_shape_add(&s, "blocks", l.blocks);
    clconv_shape_add(&s, "pitch", l.pitch);
    clconv_shape_add(&s, "band", l.band);
    clconv_shape_add(&s, "bands", l.bands);
    clconv_shape_add(&s, "line", clconv_depthwise_align(l.block, LANES));
    clconv_shape_add(&s, "chunk", l.chunk);
    clconv_shape_add(&s, "tap_step_h", tap_step(p->stride_h, p->dilation_h));
    clconv_shape_add(&s, "tap_step_w", tap_step(p->stride_w, p->dilation_w));
    return s;
}

/* ---- What it can do --------------------------------------------------- */

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    layout l;
    return d->is_cpu && clconv_depthwise_is(p) && set_columns(p, 1, &l);
}

/* NCHW has nothing to choose there. */
static bool fits(const clconv_problem *p, int vectors)
{
    layout l;
    if (p->layout == CLCONV_NCHW)
        return vectors == params[VECTORS].values[0];
    return set_columns(p, vectors, &l);
}

static bool legal(const clconv_task *t)
{
    return fits(t->problem, t->values[VECTORS]);
}

/* Work-items a core. */
#define ITEMS 4

static double items_of(const clconv_problem *p, int vectors)
{
    layout l = {0};
    set_columns(p, vectors, &l);
    return (double)p->n * (double)l.blocks *
           (double)clconv_depthwise_channel_blocks(p, vectors);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    while (!fits(p, values[VECTORS]))
        values[VECTORS] /= 2;
    values[SPLIT] =
        clconv_depthwise_split(&params[SPLIT], items_of(p, values[VECTORS]),
                               ITEMS * d->compute_units, p->h);
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE ? CLCONV_BIT(CLCONV_DY) : 0;
}

/* Vectors of dX, whole ones at the ends of rows and pixels. */
static double vectors_of(const clconv_problem *p)
{
    double rows = (double)p->n * (double)p->h;
    if (p->layout == CLCONV_NHWC)
        return rows * (double)p->w * (double)clconv_divide_up(p->groups, LANES);
    int64_t columns = clconv_divide_up(p->w, p->stride_w);
    return rows * (double)(p->groups * p->stride_w) *
           (double)clconv_divide_up(columns, LANES);
}

/* Of a vector, in vector operations: two a tap, ten to write it. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double taps = (double)(p->group_k * p->r * p->s) /
                  (double)(p->stride_h * p->stride_w);
    return vectors_of(p) * (2 * taps + 10) * LANES +
           clconv_depthwise_read_cost(t, CLCONV_DY) +
           clconv_cost_move(t->device,
                            (double)clconv_problem_bytes(p, CLCONV_DX)) +
           clconv_cost_launch(t->device, 1);
}

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 0;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, batch);
    *out = (clconv_pass){.entry = ENTRY, .serves = CLCONV_OP_DX, .local = 1};
    out->groups = (size_t)(batch * channel_blocks(t) * l.bands * l.blocks);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(p, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_shape_arg(&s, out);
    return 1;
}

/* ---- Text: the entry point -------------------------------------------- */

static void emit_row_nchw(clconv_emit *e)
{
    clconv_emit_line(e, "const int columns = (at.columns - 1) / stride + 1;");
    clconv_emit_line(e, "const float *sums = line;");
    clconv_emit_line(e, "for (int f = 0; f < stride; ++f)");
    clconv_emit_line(e, "    sum_phase(ring, weights, row_at, tap_at, lines, "
                        "phases[f], (columns + 15) / 16, 16,");
    clconv_emit_line(e, "        line + f * shape.line);");
    clconv_emit_open(e, "if (stride > 1)");
    clconv_emit_line(e, "join(line, joined, columns, stride, shape.line);");
    clconv_emit_line(e, "sums = joined;");
    clconv_emit_close(e);
    clconv_emit_line(e, "put(dx, to + h * shape.x_row, sums, at.columns, "
                        "beta$tally);");
}

/* Some columns of all phases, which are pixels side by side. */
static void emit_chunk(clconv_emit *e)
{
    clconv_emit_open(e, "for (int f = 0; f < stride; ++f)");
    clconv_emit_line(e, "const int count = min(columns, "
                        "(at.columns - 1 - f) / stride + 1 - w);");
    clconv_emit_line(e, "for (int c = 0; c < at.channels; c += 16)");
    clconv_emit_line(e, "    sum_phase(ring + w * $column + c, weights + c, "
                        "row_at, tap_at, lines, phases[f], count,");
    clconv_emit_line(e, "        stride * $column, line + f * $column + c);");
    clconv_emit_close(e);
    clconv_emit_line(e, "const int pixels = min(columns * stride, "
                        "at.columns - w * stride);");
    clconv_emit_open(e, "for (int j = 0; j < pixels; ++j)");
    clconv_emit_line(e, "put(dx, i, line + j * $column, at.channels, "
                        "beta$tally);");
    clconv_emit_line(e, "i += shape.x_column;");
    clconv_emit_close(e);
}

/* Some columns at a time, so that their sums are still near when they go. */
static void emit_row_nhwc(clconv_emit *e)
{
    clconv_emit_line(e, "const int columns = shape.chunk;");
    clconv_emit_line(e, "const int all = (at.columns - 1) / stride + 1;");
    clconv_emit_line(e, "long i = to + h * shape.x_row;");
    clconv_emit_open(e, "for (int w = 0; w < all; w += columns)");
    emit_chunk(e);
    clconv_emit_close(e);
}

static void emit_arrays(clconv_emit *e, bool nchw)
{
    clconv_depthwise_emit_array(e, "ring", "ring");
    clconv_depthwise_emit_array(e, "line", "line");
    clconv_depthwise_emit_array(e, "weights", "tap");
    if (nchw)
        clconv_depthwise_emit_array(e, "joined", "line");
    clconv_emit_line(e, "int row_at[$max_lines], tap_at[$max_lines];");
    clconv_emit_line(e,
                     "phase_t phases[$max_stride], row_phases[$max_stride];");
}

static void emit_entry(clconv_emit *e, const clconv_task *t,
                       const clconv_shape *s)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_pass pass;
    passes(t, t->problem->n, &pass);
    clconv_shape_open(e, t, &pass, s);
    clconv_emit_line(e, "const place_t at = find_place(get_group_id(0), "
                        "shape);");
    emit_arrays(e, nchw);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_line(e, nchw ? "read_weights(weights, w, shape, at);"
                             : "read_weights(weights, w, shape, at, line);");
    clconv_emit_line(e, "for (int f = 0; f < (int)shape.stride_w; ++f)");
    clconv_emit_line(e, "    phases[f] = find_phase(f + shape.pad_left, "
                        "shape.stride_w, shape.dilation_w, shape.s,");
    clconv_emit_line(e, "        shape.tap_step_w, shape.base);");
    clconv_emit_line(e, "for (int f = 0; f < (int)shape.stride_h; ++f)");
    clconv_emit_line(e, "    row_phases[f] = find_phase(f, shape.stride_h, "
                        "shape.dilation_h, shape.r, shape.tap_step_h, 0);");
    clconv_emit_line(e, "clear(ring, shape.planes * shape.ring * "
                        "shape.pitch);");
    clconv_emit_line(e, "const int stride = shape.stride_w;");
    clconv_emit_line(e, "const long to = at.n * shape.x_image + "
                        "at.c * shape.x_channel + at.w * shape.x_column;");
    clconv_emit_line(e, "const int up = at.h + shape.pad_top;");
    clconv_emit_line(e, "meet_t meet = { up / shape.stride_h, 0, "
                        "up % shape.stride_h };");
    clconv_emit_line(e, "int row = max(0L, meet.p - shape.ring + 1);");
    clconv_emit_open(e, "for (int h = at.h; h < at.end_h; ++h)");
    clconv_emit_line(e, "row = hold_rows(ring, dy, shape, at, meet, row);");
    clconv_emit_line(e, "const int lines = find_lines(row_at, tap_at, shape, "
                        "meet, row_phases[meet.phase]);");
    if (nchw)
        emit_row_nchw(e);
    else
        emit_row_nhwc(e);
    clconv_emit_line(e, "meet = next_row(meet, shape);");
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_shape s = shape_of(t, t->problem->n);
    clconv_shape_emit(e, &s);
    clconv_depthwise_set_holes(e, t, t->values[VECTORS]);
    clconv_depthwise_emit_dx(e, t, t->values[TILE]);
    emit_entry(e, t, &s);
}

const clconv_kernel clconv_bwd_data_depthwise = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "depthwise on CPUs: each row read once, sums in registers",
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

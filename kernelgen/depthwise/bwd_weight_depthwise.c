/*
 * dW of depthwise problems on a CPU: each row of dY and X is read and rounded
 * once, the sums stay in private memory.
 *
 *     a work-item: a channel (NHWC: vectors of 16), a part of the strips; a
 *                  strip is a band of rows p of an image, and a block of
 *                  their columns q
 *         for each strip, for each of its rows p
 *             rows h of X that p meets, unless the ring has them -> ring
 *             the row of dY -> d
 *             for tiles of q, for those r whose row is in X, for s
 *                 sums[r][s] += dY[p][q] * ring[h][w]
 *             now and then: totals += sums, sums = 0
 *             for a report, now and then: the rows of X that were held since
 *             are counted: all at once if no element of them was unusual
 *         totals -> scratch[part]
 *     sum: dW = the parts, added in order
 *
 * A row of the ring has zeros where X has no column, and a vector of dY where
 * dY has none, so that what is no tap adds a zero. NCHW: the columns of a row
 * are split into stride_w phases, so that neighbours in dY meet neighbours in
 * the ring, and the lanes of a vector are added up at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "counts.h"
#include "depthwise.h"
#include "depthwise_dw.h"
#include "entry.h"
#include "generic.h"
#include "integers.h"
#include "kernel.h"

#define ENTRY "bwd_weight_depthwise"
#define ENTRY_SUM "bwd_weight_depthwise_sum"
#define LANES CLCONV_DEPTHWISE_LANES

enum { VECTORS, TILE, SPLIT, CAST, SHAPE, PARAMS };

static const clconv_param params[PARAMS] = {
    [VECTORS] = {"vectors", CLCONV_VALUES(8, 1, 2, 4, 16),
                 "NHWC: of a pixel that a work-item computes"},
    [TILE] = {"tile", CLCONV_VALUES(4, 1, 2, 8), "vectors of dY at once"},
    [SPLIT] = {"split", CLCONV_VALUES(1, 2, 4, 8, 16, 32, 64),
               "parts of the sum"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY and X are rounded to fp16"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

enum { CAST_FUSED, CAST_SEPARATE };

/* Floats of a row of dY, NHWC. */
#define D_FLOATS 16384

/* Additions, one after the other, that make a sum, if rows are not longer. */
#define CHAIN 256

/* Floats of X that are counted at once, while a CPU's nearest cache has them. */
#define COUNTED_FLOATS 2048

static bool is_nchw(const clconv_problem *p)
{
    return p->layout == CLCONV_NCHW;
}

/* ---- Geometry --------------------------------------------------------- */

typedef struct layout {
    int64_t ring;   /* rows of X held, a power of two */
    int64_t block;  /* columns of dY in a strip */
    int64_t room;   /* columns of X that meet them */
    int64_t lead;   /* and those before them */
    int64_t phase;  /* floats from phase to phase of a row held */
    int64_t pitch;  /* from row to row of the ring */
    int64_t row;    /* from row to row of d */
    int64_t blocks; /* of columns */
    int64_t band;   /* rows of dY in a strip */
    int64_t bands;
    int64_t fold;    /* rows until sums are added to totals */
    int64_t counted; /* rows whose rows of X are counted at once */
} layout;

static int64_t reach_w(const clconv_problem *p)
{
    return (p->s - 1) * p->dilation_w;
}

/* Columns of dY for which all fits, below 1: none. */
static int64_t most_columns(const clconv_problem *p, int vectors, int64_t ring)
{
    int64_t column = clconv_depthwise_channels(p, vectors);
    int64_t row = CLCONV_DEPTHWISE_RING / ring;
    if (is_nchw(p)) {
        int64_t phase = clconv_min(row, CLCONV_DEPTHWISE_LINE) / p->stride_w;
        int64_t spare = phase - 2 * LANES - (reach_w(p) + LANES) / p->stride_w;
        return clconv_depthwise_floor(spare, LANES) * LANES;
    }
    int64_t spare = row / column - reach_w(p) - 1;
    int64_t d = D_FLOATS / (column * p->group_k);
    return spare < 0 ? 0 : clconv_min(spare / p->stride_w + 1, d);
}

/* Sizes of rows in private memory. */
static void set_rows(const clconv_problem *p, int64_t column, layout *l)
{
    /* Column 0 of X begins a vector of a row, NCHW. */
    l->lead = is_nchw(p)
                  ? clconv_depthwise_align(p->pad_left, LANES) - p->pad_left
                  : 0;
    l->room = (l->block - 1) * p->stride_w + reach_w(p) + 1 + l->lead;
    l->pitch = l->room * column;
    l->row = l->block * column;
    if (!is_nchw(p))
        return;
    l->row = clconv_depthwise_align(l->block, LANES);
    /* A row that is read ends with a whole vector. */
    l->phase = clconv_depthwise_align(l->row + reach_w(p) / p->stride_w + LANES,
                                      LANES);
    l->pitch = l->phase * p->stride_w;
}

/* False if a row does not fit. */
static bool set_columns(const clconv_problem *p, int vectors, layout *l)
{
    int64_t reach = (p->r - 1) * p->dilation_h;
    if (!clconv_depthwise_is_small(p, vectors) || reach >= CLCONV_DEPTHWISE_RING)
        return false;
    for (l->ring = 1; l->ring <= reach;)
        l->ring *= 2;
    int64_t most = most_columns(p, vectors, l->ring);
    if (most < 1)
        return false;
    l->block = clconv_divide_up(p->q, clconv_divide_up(p->q, most));
    l->blocks = clconv_divide_up(p->q, l->block);
    set_rows(p, clconv_depthwise_channels(p, vectors), l);
    return true;
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    layout l = {0};
    set_columns(p, t->values[VECTORS], &l);
    int64_t strips = clconv_max(p->n, 1) * l.blocks;
    int64_t bands = clconv_divide_up(t->values[SPLIT], strips);
    l.band = clconv_divide_up(p->p, clconv_min(bands, p->p));
    l.bands = clconv_divide_up(p->p, l.band);
    l.fold =
        clconv_max(1, CHAIN / clconv_divide_up(l.block, is_nchw(p) ? LANES : 1));
    l.counted = clconv_max(1, COUNTED_FLOATS / (p->stride_h * l.pitch));
    return l;
}

static int64_t channel_blocks(const clconv_task *t)
{
    return clconv_depthwise_channel_blocks(t->problem, t->values[VECTORS]);
}

static clconv_shape shape_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    clconv_shape s = {.baked = t->baked};
    clconv_depthwise_add_sizes(&s, p, batch);
    clconv_shape_add(&s, "c_blocks", channel_blocks(t));
    clconv_shape_add(&s, "elements", clconv_problem_elements(p, CLCONV_DW));
    clconv_shape_add(&s, "parts", t->values[SPLIT]);
    clconv_shape_add(&s, "ring", l.ring);
    clconv_shape_add(&s, "reach", (p->r - 1) * p->dilation_h);
    clconv_shape_add(&s, "block", l.block);
    clconv_shape_add(&s, "room", l.room);
    clconv_shape_add(&s, "lead", l.lead);
    clconv_shape_add(&s, "phase", l.phase);
    clconv_shape_add(&s, "pitch", l.pitch);
    clconv_shape_add(&s, "row", l.row);
    clconv_shape_add(&s, "blocks", l.blocks);
    clconv_shape_add(&s, "band", l.band);
    clconv_shape_add(&s, "bands", l.bands);
    clconv_shape_add(&s, "fold", l.fold);
    clconv_shape_add(&s, "counted", l.counted);
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
    if (is_nchw(p))
        return vectors == params[VECTORS].values[0];
    return set_columns(p, vectors, &l);
}

static size_t scratch(const clconv_task *t)
{
    return (size_t)clconv_problem_elements(t->problem, CLCONV_DW) *
           (size_t)t->values[SPLIT] * sizeof(float);
}

static bool legal(const clconv_task *t)
{
    return fits(t->problem, t->values[VECTORS]) &&
           scratch(t) <= t->device->max_allocation;
}

/* Work-items a core. */
#define ITEMS 4

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    while (!fits(p, values[VECTORS]))
        values[VECTORS] /= 2;
    values[SPLIT] = clconv_depthwise_split(
        &params[SPLIT],
        (double)clconv_depthwise_channel_blocks(p, values[VECTORS]),
        ITEMS * d->compute_units, p->n * p->p);
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE
               ? CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X)
               : 0;
}

/* A work-item's counts have 32 bits. */
static unsigned counts(const clconv_task *t)
{
    return clconv_problem_elements(t->problem, CLCONV_X) <= INT32_MAX
               ? CLCONV_BIT(CLCONV_X)
               : 0;
}

static bool counts_x(const clconv_task *t)
{
    return t->counts & CLCONV_BIT(CLCONV_X);
}

/* Vectors of dY, whole ones at the ends of rows and pixels. */
static double vectors_of(const clconv_problem *p)
{
    double rows = (double)p->n * (double)p->p * (double)p->group_k;
    if (!is_nchw(p))
        return rows * (double)p->q * (double)clconv_divide_up(p->groups, LANES);
    return rows * (double)p->groups * (double)clconv_divide_up(p->q, LANES);
}

/* Of a vector, in vector operations: two a tap, ten to read it. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    return vectors_of(p) * (2 * (double)(p->r * p->s) + 10) * LANES +
           clconv_depthwise_read_cost(t, CLCONV_DY) +
           clconv_depthwise_read_cost(t, CLCONV_X) +
           clconv_cost_move(t->device, 2 * (double)scratch(t)) +
           clconv_cost_launch(t->device, 2);
}

/* ---- Passes ----------------------------------------------------------- */

static clconv_pass main_pass(const clconv_task *t, const clconv_shape *s)
{
    clconv_pass pass = {.entry = ENTRY, .serves = CLCONV_OP_DW, .local = 1};
    pass.groups = (size_t)(channel_blocks(t) * t->values[SPLIT]);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_X);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    if (counts_x(t))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_X);
    clconv_shape_arg(s, &pass);
    return pass;
}

/* Without images the sums are 0, and beta remains. */
static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    clconv_shape s = shape_of(t, batch);
    out[0] = main_pass(t, &s);
    out[1] = clconv_depthwise_sum_pass(t, &s, ENTRY_SUM, LANES, 1);
    return 2;
}

/* ---- Text: the entry points ------------------------------------------- */

/* The totals of a part: NCHW, a vector's lanes are columns, else channels. */
static void emit_write(clconv_emit *e, bool nchw)
{
    clconv_emit_line(e, "scratch += part * shape.elements + "
                        "c_block * $column * taps;");
    if (nchw) {
        clconv_emit_line(e, "for (int i = 0; i < taps; ++i)");
        clconv_emit_line(e, "    scratch[i] = fsum16(vload16(i, totals));");
        return;
    }
    clconv_emit_line(e, "const int channels = min((long)$column, "
                        "shape.c - c_block * $column);");
    clconv_emit_line(e, "for (int c = 0; c < channels; ++c)");
    clconv_emit_line(e, "    for (int i = 0; i < taps; ++i)");
    clconv_emit_line(e, "        scratch[c * taps + i] = "
                        "totals[i * $column + c];");
}

/* The row of dY of plane k, into the sums. */
static void emit_plane(clconv_emit *e, bool nchw)
{
    if (nchw) {
        clconv_emit_line(e, "row_dy(d, dy, from + k * shape.dy_channel, "
                            "at.columns, 1, 1, dy_end, 0);");
        clconv_emit_line(e, "sum_row(d, ring, row_at, sum_at, lines, tap_at, "
                            "shape.s, 16, (at.columns + 15) / 16,");
        clconv_emit_line(e, "    sums + k * filter * 16);");
        return;
    }
    clconv_emit_open(e, "for (int c = 0; c < at.channels; c += 16)");
    clconv_emit_line(e, "sum_row(d + k * shape.row + c, ring + c, row_at, "
                        "sum_at, lines, tap_at, shape.s, step, at.columns,");
    clconv_emit_line(e, "    sums + k * filter * $column + c);");
    clconv_emit_close(e);
}

/* Row p of a strip; from: its first element in dY. */
static void emit_row(clconv_emit *e, const clconv_task *t)
{
    bool nchw = is_nchw(t->problem);
    clconv_emit_line(e, "row = hold_rows(ring, line, x, shape, at, row, p, "
                        "least, &near);");
    clconv_emit_line(e, "const int lines = find_lines(row_at, sum_at, shape, "
                        "p);");
    if (!nchw)
        clconv_emit_line(e, "planes_dy(d, shape.row, dy, from, at.columns, "
                            "at.channels, shape);");
    clconv_emit_open(e, "for (int k = 0; k < (int)shape.planes; ++k)");
    emit_plane(e, nchw);
    clconv_emit_close(e);
    clconv_emit_line(e, "from += shape.dy_row;");
    clconv_emit_open(e, "if (++pending == shape.fold)");
    clconv_emit_line(e, "fold(sums, totals, taps * $next);");
    clconv_emit_line(e, "pending = 0;");
    clconv_emit_close(e);
}

/* With a report, so many rows that the cache still has their rows of X. */
static void emit_counted_rows(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "int p = at.p;");
    clconv_emit_open(e, "while (p < at.last_p)");
    clconv_emit_line(e, "const int first_p = p;");
    clconv_emit_line(e, "const int end_p = min(first_p + step_p, at.last_p);");
    clconv_emit_open(e, "for (; p < end_p; ++p)");
    emit_row(e, t);
    clconv_emit_close(e);
    clconv_emit_line(e, "if (x_counts)");
    clconv_emit_line(e, "    see_rows(&seen, &tally, x, shape, at, first_p, p, "
                        "row, near);");
    clconv_emit_line(e, "near = true;");
    clconv_emit_close(e);
}

static void emit_rows(clconv_emit *e, const clconv_task *t)
{
    if (counts_x(t)) {
        emit_counted_rows(e, t);
        return;
    }
    clconv_emit_open(e, "for (int p = at.p; p < at.last_p; ++p)");
    emit_row(e, t);
    clconv_emit_close(e);
}

static void emit_strips(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "const long strips = shape.n * shape.bands * "
                        "shape.blocks;");
    clconv_emit_line(e, "const long last = strips * (part + 1) / "
                        "shape.parts;");
    clconv_emit_line(e, "int pending = 0;");
    clconv_emit_open(e, "for (long strip = strips * part / shape.parts; "
                        "strip < last; ++strip)");
    clconv_emit_line(e, "const place_t at = find_place(c_block, strip, "
                        "shape);");
    clconv_emit_line(e, "long from = at.n * shape.dy_image + "
                        "at.c * shape.planes * shape.dy_channel +");
    clconv_emit_line(e, "    at.p * shape.dy_row + at.q * shape.dy_column;");
    clconv_emit_line(e, "clear(ring, shape.ring * shape.pitch);");
    if (is_nchw(t->problem))
        clconv_emit_line(e, "clear(line, shape.pitch);");
    clconv_emit_line(e, "int row = 0;");
    clconv_emit_line(e, "bool near = true;");
    emit_rows(e, t);
    clconv_emit_close(e);
    clconv_emit_line(e, "fold(sums, totals, taps * $next);");
}

static void emit_counters(clconv_emit *e, const clconv_task *t)
{
    clconv_counts_set_ordinary_bounds(e, t->problem, CLCONV_X);
    clconv_emit_line(e, "const int least = x_counts ? $normal : 0;");
    clconv_emit_line(e, "const int step_p = x_counts ? shape.counted : "
                        "shape.p;");
    clconv_emit_line(e, "seen16_t seen = { 0 };");
    clconv_emit_line(e, "counts_t tally = { 0 };");
}

static void emit_entry(clconv_emit *e, const clconv_task *t,
                       const clconv_pass *pass, const clconv_shape *s)
{
    bool nchw = is_nchw(t->problem);
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "const long c_block = get_group_id(0) % "
                        "shape.c_blocks;");
    clconv_emit_line(e, "const long part = get_group_id(0) / "
                        "shape.c_blocks;");
    clconv_emit_line(e, "const int filter = shape.r * shape.s;");
    clconv_emit_line(e, "const int taps = shape.planes * filter;");
    if (!nchw)
        clconv_emit_line(e, "const int step = shape.stride_w * $column;");
    clconv_depthwise_emit_array(e, "ring", "ring");
    clconv_depthwise_emit_array(e, "line", "line");
    clconv_depthwise_emit_array(e, "sums", "tap");
    clconv_depthwise_emit_array(e, "totals", "tap");
    clconv_emit_line(e, "int tap_at[$max_taps], row_at[$max_lines], "
                        "sum_at[$max_lines];");
    clconv_emit_set(e, "d_floats", D_FLOATS);
    clconv_depthwise_emit_array(e, "d", nchw ? "line" : "d");
    if (nchw)
        clconv_emit_line(e, "const long dy_end = shape.n * shape.dy_image;");
    clconv_emit_line(e, "find_taps(tap_at, shape);");
    clconv_emit_line(e, "clear(sums, taps * $next);");
    clconv_emit_line(e, "clear(totals, taps * $next);");
    if (counts_x(t))
        emit_counters(e, t);
    else
        clconv_emit_line(e, "const int least = 0;");
    emit_strips(e, t);
    emit_write(e, nchw);
    if (counts_x(t)) {
        clconv_emit_line(e, "fold16(&tally, &seen);");
        clconv_emit_line(e, "counts_flush(x_counts, &tally);");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass[CLCONV_MAX_PASSES];
    clconv_shape s = shape_of(t, t->problem->n);
    passes(t, t->problem->n, pass);
    clconv_shape_emit(e, &s);
    clconv_depthwise_set_holes(e, t, t->values[VECTORS]);
    clconv_emit_part(e, "lanes");
    clconv_depthwise_emit_dw(e, t, t->values[TILE]);
    emit_entry(e, t, &pass[0], &s);
    clconv_depthwise_emit_sum(e, t, &pass[1], &s, LANES);
}

const clconv_kernel clconv_bwd_weight_depthwise = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 3,
    .summary = "depthwise on CPUs: each row read once, two-stage sums",
    .params = params,
    .param_count = PARAMS,
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

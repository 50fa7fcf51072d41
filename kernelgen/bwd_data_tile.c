/*
 * dX on a CPU: tile_c channels by tile_w vectors of 16 positions stay in
 * registers while all k and taps run past them.
 *
 *     pack_dy   dY -> planes [n][k], see tile_pack.h
 *     pack_w    W  -> weights [c_block][k][tile_c][r][s] in fp32, rounded as
 *               W is multiplied
 *     main      a work-item: one image, one c_block, span position tiles
 *         for each tile of tile_w * 16 positions
 *             for k, r, s
 *                 sums[c][position] += weights[k][c][r][s]
 *                         * plane[k][position + shift(r, s)]
 *             the positions that are pixels -> dX
 *
 * Positions run over rows of dX joined end to end, as wide as the planes'
 * pitch: H * pitch in all. Those in the gap between rows are computed and
 * dropped. The pitch leaves so many zeros between rows of dY that a tap which
 * leaves a row meets zeros only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"
#include "kernel.h"
#include "operand.h"
#include "output.h"
#include "tile_pack.h"

#define LANES CLCONV_TILE_LANES

enum { TILE_C, TILE_W, UNROLL, SPAN, CAST };
enum { UNROLL_NONE, UNROLL_ROW, UNROLL_FILTER };
enum { CAST_FUSED, CAST_SEPARATE };

static const clconv_param params[] = {
    [TILE_C] = {"tile_c", CLCONV_VALUES(8, 4, 5, 6, 7, 9, 12, 14),
                "channels of dX a tile"},
    [TILE_W] = {"tile_w", CLCONV_VALUES(3, 1, 2, 4, 5, 6),
                "vectors of 16 positions a tile"},
    [UNROLL] = {"unroll", CLCONV_NAMES("none", "row", "filter"),
                "taps written out"},
    [SPAN] = {"span", CLCONV_VALUES(16, 4, 64),
              "position tiles a work-item computes, one after another"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY is rounded to fp16"},
};

#define PARAM_COUNT (int)(sizeof params / sizeof *params)

/* What follows from the problem and the values. */
typedef struct shape {
    clconv_tile_planes dy;
    int64_t origin;    /* of tap (0, 0) for position 0, in a plane */
    int64_t positions; /* H * pitch */
    int64_t tiles, chunks, c_blocks;
    int64_t run;     /* weights of a c_block for one k */
    int64_t weights; /* where they lie in the scratch, in floats */
} shape;

static int64_t max2(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Zeros around dY: a tap reaches (r - 1) * dilation - pad beyond an edge. */
static void set_planes(const clconv_problem *p, shape *s)
{
    int64_t reach_h = (p->r - 1) * p->dilation_h;
    int64_t reach_w = (p->s - 1) * p->dilation_w;
    int64_t left = max2(0, reach_w - p->pad_left);
    int64_t right = max2(0, reach_w - p->pad_right);
    int64_t top = max2(0, reach_h - p->pad_top);
    int64_t bottom = max2(0, reach_h - p->pad_bottom);
    clconv_tile_planes *dy = &s->dy;
    *dy = (clconv_tile_planes){
        .tensor = CLCONV_DY,
        .channels = p->k,
        .rows = p->p,
        .columns = p->q,
        .pitch = p->q + max2(left, right),
        .entry = "bwd_data_tile_pack_dy",
        .serves = CLCONV_OP_DX,
    };
    dy->start = top * dy->pitch + left;
    dy->length =
        clconv_tile_align(dy->start + (p->p + bottom) * dy->pitch, LANES);
    dy->channel_stride = dy->length;
    dy->image_stride = p->k * dy->length;
    s->origin = dy->start + p->pad_top * dy->pitch + p->pad_left;
    s->positions = p->h * dy->pitch;
}

static shape shape_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile_c = t->values[TILE_C];
    int64_t tile = t->values[TILE_W] * LANES;
    shape s = {.run = tile_c * p->r * p->s};
    set_planes(p, &s);
    s.tiles = clconv_tile_ceil(s.positions, tile);
    s.chunks = clconv_tile_ceil(s.tiles, t->values[SPAN]);
    s.c_blocks = clconv_tile_ceil(p->c, tile_c);
    /* The last tile may run past the last plane; those sums are dropped. */
    s.dy.elements = p->n * s.dy.image_stride + s.origin + tile;
    s.weights = clconv_tile_planes_floats(p, &s.dy);
    return s;
}

/* ---- What it can do --------------------------------------------------- */

/* The text grows with the filter. */
#define MAX_FILTER 16

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    if (!d->is_cpu || p->layout != CLCONV_NCHW || p->groups != 1)
        return false;
    if (p->stride_h != 1 || p->stride_w != 1)
        return false;
    if (p->r > MAX_FILTER || p->s > MAX_FILTER || !clconv_tile_is_small(p))
        return false;
    shape s = {0};
    set_planes(p, &s);
    return clconv_tile_is_addressable(p, &s.dy);
}

/* Registers: the sums, a vector of dY for each column, one weight. */
static bool fits(int tile_c, int tile_w)
{
    return tile_c * tile_w + tile_w + 1 <= 32;
}

/* Vector operations for an image, what the last tiles waste included. A
 * multiply-add is half a cycle; a load of dY about one, a weight half. */
static double cost(const clconv_problem *p, int64_t positions, int tile_c,
                   int tile_w)
{
    double tiles = (double)clconv_tile_ceil(positions, tile_w * LANES) *
                   (double)clconv_tile_ceil(p->c, tile_c);
    return tiles * (tile_c * tile_w + tile_w + 0.5 * tile_c);
}

static void choose_tile(const clconv_problem *p, int *values)
{
    shape s = {0};
    set_planes(p, &s);
    double best = 0;
    for (int i = 0; i < params[TILE_C].count; ++i)
        for (int j = 0; j < params[TILE_W].count; ++j) {
            int tile_c = params[TILE_C].values[i];
            int tile_w = params[TILE_W].values[j];
            double now = cost(p, s.positions, tile_c, tile_w);
            if (!fits(tile_c, tile_w) || (best > 0 && now >= best))
                continue;
            best = now;
            values[TILE_C] = tile_c;
            values[TILE_W] = tile_w;
        }
}

/* Compilers take seconds for more multiply-adds in one function. */
#define MAX_TEXT 300

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    (void)d;
    clconv_param_first(params, PARAM_COUNT, values);
    choose_tile(p, values);
    int64_t tile = values[TILE_C] * values[TILE_W];
    if (tile * p->r * p->s <= MAX_TEXT)
        values[UNROLL] = UNROLL_FILTER;
}

static bool legal(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile = t->values[TILE_C] * t->values[TILE_W];
    if (!fits(t->values[TILE_C], t->values[TILE_W]))
        return false;
    if (t->values[UNROLL] == UNROLL_ROW)
        return tile * p->s <= MAX_TEXT;
    if (t->values[UNROLL] == UNROLL_FILTER)
        return tile * p->r * p->s <= MAX_TEXT;
    return true;
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE ? CLCONV_BIT(CLCONV_DY) : 0;
}

/* ---- Passes and scratch ----------------------------------------------- */

static size_t scratch(const clconv_task *t)
{
    shape s = shape_of(t);
    int64_t weights = s.c_blocks * t->problem->k * s.run;
    return (size_t)(s.weights + weights) * sizeof(float);
}

static void weights_pass(const clconv_task *t, const shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = "bwd_data_tile_pack_w",
        .groups = (size_t)(s->c_blocks * t->problem->k),
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_W);
}

static void main_pass(const clconv_task *t, const shape *s, int64_t batch,
                      clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = "bwd_data_tile",
        .groups = (size_t)(batch * s->chunks * s->c_blocks),
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DX);
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DX);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    shape s = shape_of(t);
    clconv_tile_pack_pass(&s.dy, batch, &out[0]);
    weights_pass(t, &s, &out[1]);
    if (batch == 0)
        out[1].groups = 0;
    main_pass(t, &s, batch, &out[2]);
    return 3;
}

/* ---- Text ------------------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_task *t, const shape *s)
{
    const clconv_problem *p = t->problem;
    int64_t tile_w = t->values[TILE_W];
    clconv_emit_set(e, "c", p->c);
    clconv_emit_set(e, "h", p->h);
    clconv_emit_set(e, "w", p->w);
    clconv_emit_set(e, "k", p->k);
    clconv_emit_set(e, "r", p->r);
    clconv_emit_set(e, "s", p->s);
    clconv_emit_set(e, "filter", p->r * p->s);
    clconv_emit_set(e, "run", s->run);
    clconv_emit_set(e, "pitch", s->dy.pitch);
    clconv_emit_set(e, "length", s->dy.length);
    clconv_emit_set(e, "origin", s->origin);
    clconv_emit_set(e, "row_step", p->dilation_h * s->dy.pitch);
    clconv_emit_set(e, "column_step", p->dilation_w);
    clconv_emit_set(e, "weights", s->weights);
    clconv_emit_set(e, "tile", tile_w * LANES);
    clconv_emit_set(e, "tiles", s->tiles);
    clconv_emit_set(e, "chunks", s->chunks);
    clconv_emit_set(e, "c_blocks", s->c_blocks);
    clconv_emit_set_text(e, "plane_type",
                         clconv_tile_is_half(p, CLCONV_DY) ? "half" : "float");
}

/* One work-item copies the run of one k: tile_c * R * S weights that lie one
 * behind the other in W too, in vectors of which the last ends with the run;
 * zeros for channels that are not there. */
static void emit_pack_weights(clconv_emit *e, const clconv_task *t,
                              const clconv_pass *pass)
{
    clconv_operand_emit_load(e, t, CLCONV_W, LANES);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    clconv_entry_open(e, t, pass, NULL);
    clconv_emit_line(e, "const int k = get_group_id(0) % $k;");
    clconv_emit_line(e, "const int c = get_group_id(0) / $k * $tile_c;");
    clconv_emit_line(e, "const int count = min($tile_c, $c - c) * $filter;");
    clconv_emit_line(e, "const long from = ((long)k * $c + c) * $filter;");
    clconv_emit_line(e, "__global float *to = scratch + $weights + "
                        "(long)get_group_id(0) * $run;");
    clconv_emit_line(e, "const int last = count - 16;");
    clconv_emit_open(e, "for (int i = 0; i < last; i += 16)");
    clconv_emit_line(e, "vstore16(load_w16(w, from + i), 0, to + i);");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (last >= 0)");
    clconv_emit_line(e, "vstore16(load_w16(w, from + last), 0, to + last);");
    clconv_emit_else(e);
    clconv_emit_open(e, "for (int i = 0; i < count; ++i)");
    clconv_emit_line(e, "to[i] = load_w(w, from + i);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_open(e, "for (int i = count; i < $run; ++i)");
    clconv_emit_line(e, "to[i] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Calls line for each sum of the tile, with its holes $i and $j. */
static void emit_tile(clconv_emit *e, const clconv_task *t, const char *line)
{
    for (int i = 0; i < t->values[TILE_C]; ++i)
        for (int j = 0; j < t->values[TILE_W]; ++j) {
            clconv_emit_set(e, "i", i);
            clconv_emit_set(e, "j", j);
            clconv_emit_line(e, line);
        }
}

/* The tap of the holes $tap_r and $tap_s: tile_w loads, tile_c weights. */
static void emit_tap(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "const int shift = -($tap_r * $row_step + $tap_s * "
                        "$column_step);");
    clconv_emit_line(e, "__global const float *a = weights + $tap_r * $s + "
                        "$tap_s;");
    for (int j = 0; j < t->values[TILE_W]; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, "const float16 b$j = load_dy_plane(plane, shift + "
                            "$j * 16);");
    }
    emit_tile(e, t, "sum${i}_$j = a[$i * $filter] * b$j + sum${i}_$j;");
}

/* The taps of row $tap_r. */
static void emit_tap_row(clconv_emit *e, const clconv_task *t)
{
    if (t->values[UNROLL] == UNROLL_NONE) {
        clconv_emit_set_text(e, "tap_s", "s");
        clconv_emit_open(e, "for (int s = 0; s < $s; ++s)");
        emit_tap(e, t);
        clconv_emit_close(e);
        return;
    }
    for (int s = 0; s < t->problem->s; ++s) {
        clconv_emit_set(e, "tap_s", s);
        clconv_emit_open(e, NULL);
        emit_tap(e, t);
        clconv_emit_close(e);
    }
}

static void emit_taps(clconv_emit *e, const clconv_task *t)
{
    if (t->values[UNROLL] != UNROLL_FILTER) {
        clconv_emit_set_text(e, "tap_r", "r");
        clconv_emit_open(e, "for (int r = 0; r < $r; ++r)");
        emit_tap_row(e, t);
        clconv_emit_close(e);
        return;
    }
    for (int r = 0; r < t->problem->r; ++r) {
        clconv_emit_set(e, "tap_r", r);
        emit_tap_row(e, t);
    }
}

/* plane: k = 0 at the tile's first position for tap (0, 0). */
static void emit_multiply(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e,
                     "static void multiply(__global const $plane_type *plane, "
                     "__global const float *weights, float *sums)");
    emit_tile(e, t, "float16 sum${i}_$j = 0.0f;");
    clconv_emit_open(e, "for (int k = 0; k < $k; ++k)");
    emit_taps(e, t);
    clconv_emit_line(e, "plane += $length;");
    clconv_emit_line(e, "weights += $run;");
    clconv_emit_close(e);
    emit_tile(e, t, "vstore16(sum${i}_$j, 0, sums + $i * $tile + $j * 16);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The next width sums, if count has that bit. */
static void emit_store_narrow(clconv_emit *e, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_open(e, "if (count & $width)");
    clconv_emit_line(e, width > 1 ? "store_dx$vn(dx, i, vload$vn(0, sums), "
                                    "beta$tally);"
                                  : "store_dx(dx, i, *sums, beta$tally);");
    clconv_emit_line(e, "i += $width;");
    clconv_emit_line(e, "sums += $width;");
    clconv_emit_close(e);
}

/* count sums, neighbours in a row of dX, in as few stores as there can be. */
static void emit_store_run(clconv_emit *e)
{
    clconv_emit_open(e, "static void store_run(__global $dx_type *dx, long i, "
                        "const float *sums, int count, float beta$counts)");
    clconv_emit_open(e, "for (; count >= 16; count -= 16)");
    clconv_emit_line(e, "store_dx16(dx, i, vload16(0, sums), beta$tally);");
    clconv_emit_line(e, "i += 16;");
    clconv_emit_line(e, "sums += 16;");
    clconv_emit_close(e);
    for (int width = LANES / 2; width > 0; width /= 2)
        emit_store_narrow(e, width);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A channel of a tile: its positions from position on, row by row. */
static void emit_store_positions(clconv_emit *e)
{
    clconv_emit_open(e,
                     "static void store_positions(__global $dx_type *dx, int "
                     "position, const float *sums, float beta$counts)");
    clconv_emit_line(e, "int h = position / $pitch;");
    clconv_emit_line(e, "int w = position % $pitch;");
    clconv_emit_open(e, "for (int i = 0; i < $tile && h < $h; ++h)");
    clconv_emit_line(e, "const int count = min($w - w, $tile - i);");
    clconv_emit_open(e, "if (count > 0)");
    clconv_emit_line(e, "store_run(dx, h * $w + w, sums + i, count, "
                        "beta$tally);");
    clconv_emit_close(e);
    clconv_emit_line(e, "i += $pitch - w;");
    clconv_emit_line(e, "w = 0;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_stores(clconv_emit *e, const clconv_problem *p)
{
    bool counted = clconv_output_is_counted(p, CLCONV_DX);
    for (int width = LANES; width > 0; width /= 2)
        clconv_output_emit_store(e, p, CLCONV_DX, width);
    clconv_emit_set_text(e, "dx_type",
                         p->type[CLCONV_DX] == CLCONV_F16 ? "half" : "float");
    clconv_emit_set_text(e, "counts", counted ? ", counts_t *tally" : "");
    clconv_emit_set_text(e, "tally", counted ? ", tally" : "");
    emit_store_run(e);
    emit_store_positions(e);
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_pass *pass)
{
    bool counted = clconv_output_is_counted(t->problem, CLCONV_DX);
    clconv_entry_open(e, t, pass, NULL);
    clconv_emit_line(e, "const int c_block = get_group_id(0) % $c_blocks;");
    clconv_emit_line(e, "const int chunk = get_group_id(0) / $c_blocks % "
                        "$chunks;");
    clconv_emit_line(e, "const long image = get_group_id(0) / $c_blocks / "
                        "$chunks;");
    clconv_emit_line(e, "const int c = c_block * $tile_c;");
    clconv_emit_line(e, "const int channels = min($tile_c, $c - c);");
    clconv_emit_line(e, "__global const $plane_type *plane = $dy_planes + "
                        "image * $k * $length + $origin;");
    clconv_emit_line(e, "__global const float *weights = scratch + $weights + "
                        "(long)c_block * $k * $run;");
    clconv_emit_line(e, "dx += (image * $c + c) * $h * $w;");
    clconv_emit_line(e, "float sums[$tile_c * $tile];");
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_set_text(e, "tally", counted ? ", &tally" : "");
    clconv_emit_line(e, "const int end = min((chunk + 1) * $span, $tiles);");
    clconv_emit_open(e, "for (int i = chunk * $span; i < end; ++i)");
    clconv_emit_line(e, "const int position = i * $tile;");
    clconv_emit_line(e, "multiply(plane + position, weights, sums);");
    clconv_emit_open(e, "for (int j = 0; j < channels; ++j)");
    clconv_emit_line(e, "store_positions(dx + (long)j * $h * $w, position, "
                        "sums + j * $tile, beta$tally);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    shape s = shape_of(t);
    clconv_pass pass[CLCONV_MAX_PASSES];
    passes(t, t->problem->n, pass);
    clconv_tile_pack_emit(e, t, &s.dy, &pass[0]);
    set_holes(e, t, &s);
    emit_pack_weights(e, t, &pass[1]);
    emit_multiply(e, t);
    emit_stores(e, t->problem);
    emit_main(e, t, &pass[2]);
}

const clconv_kernel clconv_bwd_data_tile = {
    .name = "bwd_data_tile",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "register tiles for CPUs: NCHW, stride 1, one group",
    .params = params,
    .param_count = PARAM_COUNT,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

/*
 * dX on a CPU: tile_c channels by tile_w vectors of 16 positions stay in
 * registers while all k and taps run past them.
 *
 *     pack_dy   dY -> planes [n][k], see tile_pack.h
 *     pack_w    W  -> weights [c_block][k][tile_c][r][s] in fp32, rounded as
 *               W is multiplied
 *     main      a work-item: one image, one c_block, span position tiles
 *         for each tile of tile_w * 16 positions
 *             for each block of k
 *                 for k, r, s
 *                     block_sums[c][position] += weights[k][c][r][s]
 *                             * plane[k][position + shift(r, s)]
 *                 sums += block_sums
 *             the positions that are pixels -> dX
 *
 * Positions run over rows of dX joined end to end, as wide as the planes'
 * pitch: H * pitch in all. Those in the gap between rows are computed and
 * dropped. The pitch leaves so many zeros between rows of dY that a tap which
 * leaves a row meets zeros only.
 *
 * A block of k is so small that none of its sums has more than CHAIN terms:
 * rounding errors grow with the length of a chain of additions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"
#include "kernel.h"
#include "kernel_shape.h"
#include "operand.h"
#include "output.h"
#include "tile_pack.h"

#define LANES CLCONV_TILE_LANES

enum { TILE_C, TILE_W, UNROLL, SPAN, CAST, SHAPE };
enum { UNROLL_NONE, UNROLL_FILTER };
enum { CAST_FUSED, CAST_SEPARATE };
enum { SHAPE_ARGUMENTS, SHAPE_BAKED };

/* With the shape as arguments, one program serves all problems of the same
 * types and exponents and, unroll=filter, of the same R and S. */
static const clconv_param params[] = {
    [TILE_C] = {"tile_c", CLCONV_VALUES(8, 4, 5, 6, 7, 9, 12, 14),
                "channels of dX a tile"},
    [TILE_W] = {"tile_w", CLCONV_VALUES(3, 1, 2, 4, 5, 6),
                "vectors of 16 positions a tile"},
    [UNROLL] = {"unroll", CLCONV_NAMES("none", "filter"), "taps written out"},
    [SPAN] = {"span", CLCONV_VALUES(16, 4, 64),
              "position tiles a work-item computes, one after another"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where dY is rounded to fp16"},
    [SHAPE] = {"shape", CLCONV_NAMES("arguments", "baked"),
               "where the sizes of the problem stand"},
};

#define PARAM_COUNT (int)(sizeof params / sizeof *params)

/* What follows from the problem and the values. */
typedef struct layout {
    clconv_tile_planes dy;
    int64_t origin;    /* of tap (0, 0) for position 0, in a plane */
    int64_t positions; /* H * pitch */
    int64_t tiles, chunks, c_blocks;
    int64_t k_block; /* channels of dY in one chain of sums */
    int64_t run;     /* weights of a c_block for one k */
    int64_t weights; /* where they lie in the scratch, in floats */
} layout;

static int64_t max2(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Zeros around dY: a tap reaches (r - 1) * dilation - pad beyond an edge. */
static void set_planes(const clconv_problem *p, layout *s)
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

/* Additions, one after the other, that make a sum. */
#define CHAIN 128

/* Blocks of about the same size, so many that none is too long. */
static int64_t k_block_of(const clconv_problem *p)
{
    int64_t most = max2(1, CHAIN / (p->r * p->s));
    return clconv_tile_ceil(p->k, clconv_tile_ceil(p->k, most));
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile_c = t->values[TILE_C];
    int64_t tile = t->values[TILE_W] * LANES;
    layout s = {.run = tile_c * p->r * p->s, .k_block = k_block_of(p)};
    set_planes(p, &s);
    s.tiles = clconv_tile_ceil(s.positions, tile);
    s.chunks = clconv_tile_ceil(s.tiles, t->values[SPAN]);
    s.c_blocks = clconv_tile_ceil(p->c, tile_c);
    /* The last tile may run past the last plane; those sums are dropped. */
    s.dy.elements = p->n * s.dy.image_stride + s.origin + tile;
    s.weights = clconv_tile_planes_floats(p, &s.dy);
    return s;
}

/* What the entry points are told of it. */
static clconv_shape shape_of(const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    clconv_shape s = {.baked = t->values[SHAPE] == SHAPE_BAKED};
    clconv_tile_pack_shape(&l->dy, &s);
    clconv_shape_add(&s, "c", p->c);
    clconv_shape_add(&s, "h", p->h);
    clconv_shape_add(&s, "w", p->w);
    clconv_shape_add(&s, "k", p->k);
    clconv_shape_add(&s, "r", p->r);
    clconv_shape_add(&s, "s", p->s);
    clconv_shape_add(&s, "filter", p->r * p->s);
    clconv_shape_add(&s, "origin", l->origin);
    clconv_shape_add(&s, "row_step", p->dilation_h * l->dy.pitch);
    clconv_shape_add(&s, "column_step", p->dilation_w);
    clconv_shape_add(&s, "weights", l->weights);
    clconv_shape_add(&s, "run", l->run);
    clconv_shape_add(&s, "k_block", l->k_block);
    clconv_shape_add(&s, "c_blocks", l->c_blocks);
    clconv_shape_add(&s, "tiles", l->tiles);
    clconv_shape_add(&s, "chunks", l->chunks);
    clconv_shape_add(&s, "span", t->values[SPAN]);
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
    layout s = {0};
    set_planes(p, &s);
    return clconv_tile_is_addressable(p, &s.dy);
}

/* Registers: the sums, a vector of dY for each column, one weight. */
static bool fits(int tile_c, int tile_w)
{
    return tile_c * tile_w + tile_w + 1 <= 32;
}

/* Vector operations for an image, what the last tiles waste included. A
 * multiply-add is half a cycle; a load of dY about one, a weight half, a tap's
 * addresses one. */
static double cost(const clconv_problem *p, int64_t positions, int tile_c,
                   int tile_w)
{
    double tiles = (double)clconv_tile_ceil(positions, tile_w * LANES) *
                   (double)clconv_tile_ceil(p->c, tile_c);
    return tiles * (tile_c * tile_w + tile_w + 0.5 * tile_c + 2);
}

/* Few, since each is another program: the fastest, one for planes and one for
 * images with few positions or channels. */
static const struct {
    int tile_c, tile_w;
} default_tiles[] = {{8, 3}, {8, 2}, {4, 5}};

#define DEFAULT_TILES (int)(sizeof default_tiles / sizeof *default_tiles)

static void choose_tile(const clconv_problem *p, int *values)
{
    layout s = {0};
    set_planes(p, &s);
    double best = 0;
    for (int i = 0; i < DEFAULT_TILES; ++i) {
        int tile_c = default_tiles[i].tile_c;
        int tile_w = default_tiles[i].tile_w;
        double now = cost(p, s.positions, tile_c, tile_w);
        if (best > 0 && now >= best)
            continue;
        best = now;
        values[TILE_C] = tile_c;
        values[TILE_W] = tile_w;
    }
}

/* Compilers take seconds for more multiply-adds in one function. */
#define MAX_TEXT 300

/* 3 x 3 has programs of its own, all other filters share. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    (void)d;
    clconv_param_first(params, PARAM_COUNT, values);
    choose_tile(p, values);
    if (p->r == 3 && p->s == 3)
        values[UNROLL] = UNROLL_FILTER;
}

static bool legal(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile = t->values[TILE_C] * t->values[TILE_W];
    int64_t text = t->values[UNROLL] == UNROLL_FILTER ? tile * p->r * p->s : 0;
    return fits(t->values[TILE_C], t->values[TILE_W]) && text <= MAX_TEXT;
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE ? CLCONV_BIT(CLCONV_DY) : 0;
}

/* ---- Passes and scratch ----------------------------------------------- */

static size_t scratch(const clconv_task *t)
{
    layout s = layout_of(t);
    int64_t weights = s.c_blocks * t->problem->k * s.run;
    return (size_t)(s.weights + weights) * sizeof(float);
}

static void weights_pass(const clconv_task *t, const layout *l,
                         const clconv_shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = "bwd_data_tile_pack_w",
        .groups = (size_t)(l->c_blocks * t->problem->k),
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    clconv_shape_arg(s, pass);
}

static void main_pass(const clconv_task *t, size_t groups,
                      const clconv_shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = "bwd_data_tile",
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
    clconv_shape s = shape_of(t, &l);
    clconv_tile_pack_pass(&l.dy, batch, &s, &out[0]);
    weights_pass(t, &l, &s, &out[1]);
    if (batch == 0)
        out[1].groups = 0;
    main_pass(t, (size_t)(batch * l.chunks * l.c_blocks), &s, &out[2]);
    return 3;
}

/* ---- Text ------------------------------------------------------------- */

/* $filter and $run are numbers where the taps are written out. */
static void set_holes(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t filter = p->r * p->s;
    clconv_emit_set(e, "tile", t->values[TILE_W] * LANES);
    clconv_emit_set_text(e, "filter", "shape.filter");
    clconv_emit_set_text(e, "row", "shape.s");
    clconv_emit_set_text(e, "run", "shape.run");
    if (t->values[UNROLL] == UNROLL_FILTER) {
        clconv_emit_set(e, "filter", filter);
        clconv_emit_set(e, "row", p->s);
        clconv_emit_set(e, "run", t->values[TILE_C] * filter);
    }
    clconv_emit_set_text(e, "plane_type",
                         clconv_tile_is_half(p, CLCONV_DY) ? "half" : "float");
}

/* One work-item copies the run of one k: tile_c * R * S weights that lie one
 * behind the other in W too, in vectors of which the last ends with the run;
 * zeros for channels that are not there. */
static void emit_pack_weights(clconv_emit *e, const clconv_task *t,
                              const clconv_shape *s, const clconv_pass *pass)
{
    clconv_operand_emit_load(e, t, CLCONV_W, LANES);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "const long item = get_group_id(0);");
    clconv_emit_line(e, "const long k = item % shape.k;");
    clconv_emit_line(e, "const long c = item / shape.k * $tile_c;");
    clconv_emit_line(e, "const int count = min($tile_c, (int)(shape.c - c)) * "
                        "shape.filter;");
    clconv_emit_line(e, "const long from = (k * shape.c + c) * shape.filter;");
    clconv_emit_line(e, "__global float *to = scratch + shape.weights + "
                        "item * shape.run;");
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
    clconv_emit_open(e, "for (int i = count; i < shape.run; ++i)");
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
    clconv_emit_line(e, "const long shift = -($tap_r * shape.row_step + $tap_s "
                        "* shape.column_step);");
    clconv_emit_line(e, "__global const float *a = weights + $tap_r * $row + "
                        "$tap_s;");
    for (int j = 0; j < t->values[TILE_W]; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, "const float16 b$j = load_dy_plane(plane, shift + "
                            "$j * 16);");
    }
    emit_tile(e, t, "sum${i}_$j = a[$i * $filter] * b$j + sum${i}_$j;");
}

static void emit_taps_loop(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_set_text(e, "tap_r", "r");
    clconv_emit_set_text(e, "tap_s", "s");
    clconv_emit_open(e, "for (int r = 0; r < shape.r; ++r)");
    clconv_emit_open(e, "for (int s = 0; s < shape.s; ++s)");
    emit_tap(e, t);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_taps_written_out(clconv_emit *e, const clconv_task *t)
{
    for (int r = 0; r < t->problem->r; ++r)
        for (int s = 0; s < t->problem->s; ++s) {
            clconv_emit_set(e, "tap_r", r);
            clconv_emit_set(e, "tap_s", s);
            clconv_emit_open(e, NULL);
            emit_tap(e, t);
            clconv_emit_close(e);
        }
}

/* Adds a block of channels of dY to sums. plane: the first of them at the
 * tile's first position for tap (0, 0). */
static void emit_multiply(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(
        e, "static void multiply(__global const $plane_type *plane, __global "
           "const float *weights, shape_t shape, int channels, float *sums)");
    emit_tile(e, t, "float16 sum${i}_$j = 0.0f;");
    clconv_emit_open(e, "for (int k = 0; k < channels; ++k)");
    if (t->values[UNROLL] == UNROLL_FILTER)
        emit_taps_written_out(e, t);
    else
        emit_taps_loop(e, t);
    clconv_emit_line(e, "plane += shape.dy_length;");
    clconv_emit_line(e, "weights += $run;");
    clconv_emit_close(e);
    emit_tile(e, t,
              "vstore16(vload16(0, sums + $i * $tile + $j * 16) + "
              "sum${i}_$j, 0, sums + $i * $tile + $j * 16);");
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
                                    "beta$tally_pass);"
                                  : "store_dx(dx, i, *sums, beta$tally_pass);");
    clconv_emit_line(e, "i += $width;");
    clconv_emit_line(e, "sums += $width;");
    clconv_emit_close(e);
}

/* count sums, neighbours in a row of dX, in as few stores as there can be. */
static void emit_store_run(clconv_emit *e)
{
    clconv_emit_open(e, "static void store_run(__global $dx_type *dx, long i, "
                        "const float *sums, int count, float "
                        "beta$tally_parameter)");
    clconv_emit_open(e, "for (; count >= 16; count -= 16)");
    clconv_emit_line(e,
                     "store_dx16(dx, i, vload16(0, sums), beta$tally_pass);");
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
                     "position, shape_t shape, const float *sums, float "
                     "beta$tally_parameter)");
    clconv_emit_line(e, "const int pitch = shape.dy_pitch;");
    clconv_emit_line(e, "const int width = shape.w;");
    clconv_emit_line(e, "int h = position / pitch;");
    clconv_emit_line(e, "int w = position % pitch;");
    clconv_emit_open(e, "for (int i = 0; i < $tile && h < shape.h; ++h)");
    clconv_emit_line(e, "const int count = min(width - w, $tile - i);");
    clconv_emit_open(e, "if (count > 0)");
    clconv_emit_line(e, "store_run(dx, h * width + w, sums + i, count, "
                        "beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_line(e, "i += pitch - w;");
    clconv_emit_line(e, "w = 0;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_stores(clconv_emit *e, const clconv_problem *p)
{
    for (int width = LANES; width > 0; width /= 2)
        clconv_output_emit_store(e, p, CLCONV_DX, width);
    clconv_emit_set_text(e, "dx_type",
                         p->type[CLCONV_DX] == CLCONV_F16 ? "half" : "float");
    emit_store_run(e);
    emit_store_positions(e);
}

/* All of K for the tile at position, block by block -> sums. */
static void emit_blocks(clconv_emit *e)
{
    clconv_emit_open(e, "for (int j = 0; j < $tile_c * $tile; ++j)");
    clconv_emit_line(e, "sums[j] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (long k = 0; k < shape.k; k += shape.k_block)");
    clconv_emit_line(e, "multiply(plane + position + k * shape.dy_length, "
                        "weights + k * $run, shape, min(shape.k_block, shape.k "
                        "- k), sums);");
    clconv_emit_close(e);
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_shape *s, const clconv_pass *pass)
{
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "const long item = get_group_id(0);");
    clconv_emit_line(e, "const long c_block = item % shape.c_blocks;");
    clconv_emit_line(e, "const int chunk = item / shape.c_blocks % "
                        "shape.chunks;");
    clconv_emit_line(e, "const long image = item / shape.c_blocks / "
                        "shape.chunks;");
    clconv_emit_line(e, "const long c = c_block * $tile_c;");
    clconv_emit_line(e, "const long pixels = shape.h * shape.w;");
    clconv_emit_line(e, "const int channels = min($tile_c, (int)(shape.c - "
                        "c));");
    clconv_emit_line(e, "__global const $plane_type *plane = $dy_planes + "
                        "image * shape.dy_image_stride + shape.origin;");
    clconv_emit_line(e, "__global const float *weights = scratch + "
                        "shape.weights + c_block * shape.k * $run;");
    clconv_emit_line(e, "dx += (image * shape.c + c) * pixels;");
    clconv_emit_line(e, "float sums[$tile_c * $tile];");
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_line(e, "const int end = min((chunk + 1) * shape.span, "
                        "shape.tiles);");
    clconv_emit_open(e, "for (int i = chunk * shape.span; i < end; ++i)");
    clconv_emit_line(e, "const int position = i * $tile;");
    emit_blocks(e);
    clconv_emit_open(e, "for (int j = 0; j < channels; ++j)");
    clconv_emit_line(e, "store_positions(dx + j * pixels, position, shape, "
                        "sums + j * $tile, beta$tally);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l);
    clconv_pass pass[CLCONV_MAX_PASSES];
    passes(t, t->problem->n, pass);
    clconv_shape_emit(e, &s);
    clconv_tile_pack_emit(e, t, &l.dy, &s, &pass[0]);
    set_holes(e, t);
    emit_pack_weights(e, t, &s, &pass[1]);
    emit_multiply(e, t);
    emit_stores(e, t->problem);
    emit_main(e, t, &s, &pass[2]);
}

const clconv_kernel clconv_bwd_data_tile = {
    .name = "bwd_data_tile",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 2,
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

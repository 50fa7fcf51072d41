/*
 * dW on a CPU: for one tap, tile_k by tile_c sums of 16 lanes stay in
 * registers while positions run past them.
 *
 *     pack_dy, pack_x   dY and X -> planes [k][n] and [c][n], see tile_pack.h
 *     main   a work-item: one k_block, one c_block, one of split_k shares of
 *            the segments
 *         for each segment of the share
 *             for r, s
 *                 for each vector of 16 positions in the segment
 *                     sums[k][c] += dy[k][position]
 *                                   * x[c][position + shift(r, s)]
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
 * in the padded convolution.
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

enum { TILE_K, TILE_C, SEGMENT, SPLIT_K, CAST, SHAPE };
enum { CAST_FUSED, CAST_SEPARATE };
enum { SHAPE_ARGUMENTS, SHAPE_BAKED };

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
    [SHAPE] = {"shape", CLCONV_NAMES("arguments", "baked"),
               "where the sizes of the problem stand"},
};

#define PARAM_COUNT (int)(sizeof params / sizeof *params)

/* What follows from the problem and the values. */
typedef struct layout {
    clconv_tile_planes dy, x;
    int64_t segment; /* vectors of 16 positions */
    int64_t k_blocks, c_blocks;
    int64_t weights;  /* K * C * R * S */
    int64_t partials; /* where they lie in the scratch, in floats */
} layout;

static int64_t max2(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Elements from channel to channel: at least this many, and no multiple of
 * large powers of two, with which all channels of a tile would fall on the
 * same lines of a cache. */
static int64_t channel_stride(int64_t elements)
{
    return clconv_tile_align(elements, 256) + 5 * LANES;
}

/* Rows and images stand so far apart that X's padding fits between them, the
 * end's and the next one's beginning in the same place. */
static void set_planes(const clconv_problem *p, layout *s)
{
    int64_t pitch = max2(p->w + max2(p->pad_left, p->pad_right), p->q);
    int64_t rows = max2(p->h + max2(p->pad_top, p->pad_bottom), p->p);
    int64_t reach =
        (p->r - 1) * p->dilation_h * pitch + (p->s - 1) * p->dilation_w;
    clconv_tile_planes common = {
        .pitch = pitch,
        .length = rows * pitch,
        .tail = LANES + reach,
        .image_stride = rows * pitch,
        .channel_stride = channel_stride(p->n * rows * pitch + LANES + reach),
        .serves = CLCONV_OP_DW,
    };
    s->dy = s->x = common;
    s->dy.tensor = CLCONV_DY;
    s->dy.channels = p->k;
    s->dy.rows = p->p;
    s->dy.columns = p->q;
    s->dy.entry = "bwd_weight_tile_pack_dy";
    s->x.tensor = CLCONV_X;
    s->x.channels = p->c;
    s->x.rows = p->h;
    s->x.columns = p->w;
    s->x.start = p->pad_top * pitch + p->pad_left;
    s->x.entry = "bwd_weight_tile_pack_x";
}

/* Bytes of a vector of each plane that a tile reads. */
static int64_t vector_bytes(const clconv_task *t)
{
    int64_t dy = clconv_tile_is_half(t->problem, CLCONV_DY) ? 2 : 4;
    int64_t x = clconv_tile_is_half(t->problem, CLCONV_X) ? 2 : 4;
    return LANES * (t->values[TILE_K] * dy + t->values[TILE_C] * x);
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t tile_k = t->values[TILE_K], tile_c = t->values[TILE_C];
    layout s = {.weights = clconv_problem_elements(p, CLCONV_DW)};
    set_planes(p, &s);
    s.segment = max2(1, t->values[SEGMENT] * 1024 / vector_bytes(t));
    s.k_blocks = clconv_tile_ceil(p->k, tile_k);
    s.c_blocks = clconv_tile_ceil(p->c, tile_c);
    /* Whole blocks, though nothing writes channels that are not there. */
    s.dy.elements = s.k_blocks * tile_k * s.dy.channel_stride;
    s.x.elements = s.c_blocks * tile_c * s.x.channel_stride;
    s.x.offset = clconv_tile_planes_floats(p, &s.dy);
    s.partials = s.x.offset + clconv_tile_planes_floats(p, &s.x);
    return s;
}

/* What the entry points are told of it. */
static clconv_shape shape_of(const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    clconv_shape s = {.baked = t->values[SHAPE] == SHAPE_BAKED};
    clconv_tile_pack_shape(&l->dy, &s);
    clconv_tile_pack_shape(&l->x, &s);
    clconv_shape_add(&s, "c", p->c);
    clconv_shape_add(&s, "k", p->k);
    clconv_shape_add(&s, "s", p->s);
    clconv_shape_add(&s, "filter", p->r * p->s);
    clconv_shape_add(&s, "row_step", p->dilation_h * l->x.pitch);
    clconv_shape_add(&s, "column_step", p->dilation_w);
    clconv_shape_add(&s, "segment", l->segment);
    clconv_shape_add(&s, "split_k", t->values[SPLIT_K]);
    clconv_shape_add(&s, "k_blocks", l->k_blocks);
    clconv_shape_add(&s, "c_blocks", l->c_blocks);
    clconv_shape_add(&s, "weights", l->weights);
    clconv_shape_add(&s, "partials", l->partials);
    return s;
}

/* ---- What it can do --------------------------------------------------- */

/* The sums of all taps lie in private memory, 64 bytes each: 75 KiB for a
 * tile of 24 and 7 x 7 taps. */
#define MAX_FILTER 7

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
    return clconv_tile_is_addressable(p, &s.dy) &&
           clconv_tile_is_addressable(p, &s.x);
}

/* Registers: the sums, a vector of X for each c, one of dY. */
static bool fits(int tile_k, int tile_c)
{
    return tile_k * tile_c + tile_c + 1 <= 32;
}

static double cost(const clconv_problem *p, int tile_k, int tile_c)
{
    double tiles = (double)clconv_tile_ceil(p->k, tile_k) *
                   (double)clconv_tile_ceil(p->c, tile_c);
    return tiles * (tile_k * tile_c + tile_k + tile_c);
}

/* Few, since each is another program: the fastest, and one for few channels
 * of X. */
static const struct {
    int tile_k, tile_c;
} default_tiles[] = {{5, 5}, {8, 3}};

#define DEFAULT_TILES (int)(sizeof default_tiles / sizeof *default_tiles)

static void choose_tile(const clconv_problem *p, int *values)
{
    double best = 0;
    for (int i = 0; i < DEFAULT_TILES; ++i) {
        int tile_k = default_tiles[i].tile_k;
        int tile_c = default_tiles[i].tile_c;
        double now = cost(p, tile_k, tile_c);
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
    int64_t segments = clconv_tile_ceil(p->n * s.x.length, s.segment * LANES);
    int64_t wanted = (int64_t)ITEMS_PER_UNIT * d->compute_units;
    for (int i = 0; i < params[SPLIT_K].count; ++i) {
        int64_t split = params[SPLIT_K].values[i];
        if (split > segments)
            return;
        values[SPLIT_K] = (int)split;
        if (split * s.k_blocks * s.c_blocks >= wanted)
            return;
    }
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAM_COUNT, values);
    choose_tile(p, values);
    choose_split(p, d, values);
}

static bool legal(const clconv_task *t)
{
    return fits(t->values[TILE_K], t->values[TILE_C]);
}

static unsigned wants_copies(const clconv_task *t)
{
    if (t->values[CAST] == CAST_FUSED)
        return 0;
    return CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X);
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
    *pass = (clconv_pass){
        .entry = "bwd_weight_tile",
        .groups = (size_t)(t->values[SPLIT_K] * l->k_blocks * l->c_blocks),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, CLCONV_DW);
    clconv_shape_arg(s, pass);
}

/* Vectors of dW that a work-item of the last pass sums. */
#define SUM_VECTORS 32

static void sum_pass(const clconv_task *t, const layout *l,
                     const clconv_shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = "bwd_weight_tile_sum",
        .groups = (size_t)clconv_tile_ceil(l->weights, SUM_VECTORS * LANES),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DW);
    if (clconv_output_is_counted(t->problem, CLCONV_DW))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DW);
    clconv_shape_arg(s, pass);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, &l);
    clconv_tile_pack_pass(&l.dy, batch, &s, &out[0]);
    clconv_tile_pack_pass(&l.x, batch, &s, &out[1]);
    main_pass(t, &l, &s, &out[2]);
    sum_pass(t, &l, &s, &out[3]);
    return 4;
}

/* ---- Text ------------------------------------------------------------- */

/* $most_sums: those that all taps of a tile can have. */
static void set_holes(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    bool dy_half = clconv_tile_is_half(p, CLCONV_DY);
    bool x_half = clconv_tile_is_half(p, CLCONV_X);
    int64_t tile = t->values[TILE_K] * t->values[TILE_C];
    clconv_emit_set(e, "tile", tile);
    clconv_emit_set(e, "most_sums", MAX_FILTER * MAX_FILTER * tile);
    clconv_emit_set(e, "sum_vectors", SUM_VECTORS);
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

static void emit_lane_sum(clconv_emit *e)
{
    clconv_emit_open(e, "static float lane_sum(float16 v)");
    clconv_emit_line(e, "const float8 a = v.lo + v.hi;");
    clconv_emit_line(e, "const float4 b = a.lo + a.hi;");
    clconv_emit_line(e, "const float2 c = b.lo + b.hi;");
    clconv_emit_line(e, "return c.x + c.y;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The sums of the tile's channels that there are -> partial. */
static void emit_store_partials(clconv_emit *e)
{
    clconv_emit_open(
        e, "static void store_partials(__global float *partial, shape_t "
           "shape, int k, int c, const float16 *sums)");
    clconv_emit_line(e, "const int k_count = min($tile_k, (int)shape.k - k);");
    clconv_emit_line(e, "const int c_count = min($tile_c, (int)shape.c - c);");
    clconv_emit_open(e, "for (int i = 0; i < k_count; ++i)");
    clconv_emit_open(e, "for (int j = 0; j < c_count; ++j)");
    clconv_emit_line(e, "__global float *to = partial + ((k + i) * shape.c + "
                        "c + j) * shape.filter;");
    clconv_emit_open(e, "for (int tap = 0; tap < shape.filter; ++tap)");
    clconv_emit_line(e, "to[tap] = lane_sum(sums[tap * $tile + i * $tile_c + "
                        "j]);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All taps over a segment. */
static void emit_segment(clconv_emit *e)
{
    clconv_emit_line(e, "const long from = segment * shape.segment;");
    clconv_emit_line(e, "const int count = min(shape.segment, vectors - "
                        "from);");
    clconv_emit_open(e, "for (int tap = 0; tap < shape.filter; ++tap)");
    clconv_emit_line(e, "const int r = tap / (int)shape.s;");
    clconv_emit_line(e, "const int s = tap % (int)shape.s;");
    clconv_emit_line(e, "const long shift = r * shape.row_step + s * "
                        "shape.column_step;");
    clconv_emit_line(e, "multiply(dy + from * 16, x + from * 16 + shift, "
                        "shape.dy_channel_stride, count, sums + tap * "
                        "$tile);");
    clconv_emit_close(e);
}

/* A work-item's share, k and c, and where its planes begin. */
static void emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "const long item = get_group_id(0);");
    clconv_emit_line(e, "const int c = item % shape.c_blocks * $tile_c;");
    clconv_emit_line(e, "const int k = item / shape.c_blocks % shape.k_blocks "
                        "* $tile_k;");
    clconv_emit_line(e, "const long share = item / shape.c_blocks / "
                        "shape.k_blocks;");
    clconv_emit_line(e, "__global const $dy_type *dy = $dy_planes + k * "
                        "shape.dy_channel_stride;");
    clconv_emit_line(e, "__global const $x_type *x = $x_planes + c * "
                        "shape.x_channel_stride;");
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_shape *s, const clconv_pass *pass)
{
    clconv_shape_open(e, t, pass, s);
    emit_place(e);
    clconv_emit_line(e, "const long vectors = (batch * shape.dy_image_stride + "
                        "15) / 16;");
    clconv_emit_line(e, "const long segments = (vectors + shape.segment - 1) / "
                        "shape.segment;");
    clconv_emit_line(e, "const long first = segments * share / "
                        "shape.split_k;");
    clconv_emit_line(e, "const long end = segments * (share + 1) / "
                        "shape.split_k;");
    clconv_emit_line(e, "float16 sums[$most_sums];");
    clconv_emit_open(e, "for (int i = 0; i < shape.filter * $tile; ++i)");
    clconv_emit_line(e, "sums[i] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (long segment = first; segment < end; "
                        "++segment)");
    emit_segment(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "store_partials(scratch + shape.partials + share * "
                        "shape.weights, shape, k, c, sums);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The other shares in order; load adds a vector or an element of one. */
static void emit_add_shares(clconv_emit *e, const char *load)
{
    clconv_emit_open(e, "for (int share = 1; share < shape.split_k; ++share)");
    clconv_emit_line(e, load);
    clconv_emit_close(e);
}

/* The last pass: one vector or element of dW at a time. */
static void emit_sum(clconv_emit *e, const clconv_task *t,
                     const clconv_shape *s, const clconv_pass *pass)
{
    clconv_output_emit_store(e, t->problem, CLCONV_DW, LANES);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    clconv_shape_open(e, t, pass, s);
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_line(e, "const long weights = shape.weights;");
    clconv_emit_line(e, "__global const float *partial = scratch + "
                        "shape.partials;");
    clconv_emit_line(e, "long i = get_group_id(0) * $sum_vectors * 16L;");
    clconv_emit_line(e, "const long end = min(i + $sum_vectors * 16L, "
                        "weights);");
    clconv_emit_open(e, "for (; i + 16 <= end; i += 16)");
    clconv_emit_line(e, "float16 sum = vload16(0, partial + i);");
    emit_add_shares(e, "sum += vload16(0, partial + share * weights + i);");
    clconv_emit_line(e, "store_dw16(dw, i, sum, beta$tally);");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (; i < end; ++i)");
    clconv_emit_line(e, "float sum = partial[i];");
    emit_add_shares(e, "sum += partial[share * weights + i];");
    clconv_emit_line(e, "store_dw(dw, i, sum, beta$tally);");
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
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
    clconv_tile_pack_emit(e, t, &l.x, &s, &pass[1]);
    set_holes(e, t);
    emit_multiply(e, t);
    emit_lane_sum(e);
    emit_store_partials(e);
    emit_main(e, t, &s, &pass[2]);
    emit_sum(e, t, &s, &pass[3]);
}

const clconv_kernel clconv_bwd_weight_tile = {
    .name = "bwd_weight_tile",
    .role = CLCONV_ROLE_BWD_WEIGHT,
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

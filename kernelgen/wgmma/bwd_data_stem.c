/*
 * dX of a first layer by Hopper's warpgroup products: few channels of X, any
 * stride, as a convolution of stride 1 on folded tensors (fold.h).
 *
 *     each work-group
 *         all: put W, folded, into local memory: a matrix [k][n] a tap
 *         for each tile of tile_w x tile_h positions, in turns
 *             copier: load dY's pixels that any tap of the tile meets
 *             others: for each tap: acc += dY moved by the tap * W of the tap
 *                     store acc at the pixels of each position
 *
 * A product's 64 rows are 8 x 8 positions, as in bwd_data_halo.c.
 *
 * Where the folded filter has more elements than the filter, zeros stand in
 * their place, and a dY that is no number would reach pixels that it must not:
 * a sum that is no number is worked out again, without them.
 *
 * Sizes are arguments unless shape=baked; channels of X, filter and stride are
 * constants.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "entry.h"
#include "integers.h"
#include "nest.h"
#include "operand.h"
#include "output.h"
#include "ring.h"
#include "sizes.h"
#include "stem.h"
#include "store.h"

static const clconv_param params[] = {CLCONV_STEM_PARAM_ROWS};

/* ---- The tile --------------------------------------------------------- */

/* Blocks of rows of a tile, and of a warpgroup. */
static int blocks_of_tile(const clconv_stem *s)
{
    return s->w * s->h / CLCONV_WGMMA_M;
}

static int blocks_of(const clconv_stem *s)
{
    return blocks_of_tile(s) / s->groups;
}

static clconv_stem stem_of(const clconv_task *t)
{
    clconv_fold fold = clconv_fold_of_dx(t->problem);
    clconv_stem s = clconv_stem_of(t, &fold);
    s.dy_w = s.w + fold.taps_w - 1;
    s.dy_h = s.h + fold.taps_h - 1;
    s.fixed_bytes = clconv_round_up((int64_t)fold.taps_h * fold.taps_w *
                                        s.k_line * CLCONV_FOLD_LINE * 2,
                                    CLCONV_RING_ALIGNMENT);
    s.products.n = CLCONV_FOLD_LINE;
    s.products.a_along_k = true;
    return s;
}

/* Positions that hold pixels of so many in a row. */
static int64_t positions(int64_t begin, int64_t size, int window)
{
    return (begin + size - 1) / window - begin / window + 1;
}

static int64_t tiles_of(const clconv_task *t, const clconv_stem *s,
                        int64_t batch)
{
    const clconv_problem *p = t->problem;
    const clconv_fold *f = &s->fold;
    return clconv_stem_tiles(
        s, positions(p->pad_left + f->shift_w, p->w, f->wide),
        positions(p->pad_top + f->shift_h, p->h, f->high), batch);
}

/* ---- May it? ---------------------------------------------------------- */

static bool legal(const clconv_task *t)
{
    if (!clconv_stem_suits(t->problem, t->device))
        return false;
    clconv_stem s = stem_of(t);
    int sums = blocks_of(&s) * clconv_products_registers(&s.products);
    return blocks_of_tile(&s) % s.groups == 0 && clconv_stem_legal(t, &s, sums);
}

/* A product of 16 columns takes as long as its 2 KiB of dY take to be read, 16
 * cycles: so many multiply-adds for each of its 64 x 16 numbers. */
#define PER_NUMBER 2.0

static double cost(const clconv_task *t)
{
    if (t->device->unit_emulated)
        return 0; /* it was asked for */
    clconv_stem s = stem_of(t);
    double tiles = (double)clconv_max(1, tiles_of(t, &s, t->problem->n));
    double turns = clconv_cost_waste((int64_t)tiles, t->device->compute_units);
    double read = tiles * s.w * s.h * s.k_line * s.fold.taps_h * s.fold.taps_w;
    return read * turns * PER_NUMBER + clconv_cost_launch(t->device, 1);
}

/* A warpgroup for each block of the tile. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    const clconv_task task = {.problem = p, .device = d, .values = values};
    clconv_param_first(params, CLCONV_STEM_PARAMS, values);
    clconv_stem_choose(&task, legal, cost, values);
    clconv_stem s = stem_of(&task);
    values[CLCONV_STEM_GROUPS] = blocks_of_tile(&s);
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[CLCONV_STEM_PARAMS];
    const clconv_task task = {.problem = p, .device = d, .values = values};
    if (!clconv_stem_suits(p, d))
        return false;
    defaults(p, d, values);
    return legal(&task);
}

/* ---- The contract ----------------------------------------------------- */

static unsigned wants_copies(const clconv_task *t)
{
    return clconv_wgmma_wants_copies(t, CLCONV_BIT(CLCONV_DY));
}

static size_t scratch(const clconv_task *t)
{
    return clconv_ring_map_bytes(t->device);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    clconv_stem s = stem_of(t);
    *out = (clconv_pass){
        .entry = "bwd_data_stem",
        .groups = (size_t)clconv_min(tiles_of(t, &s, batch),
                                     t->device->compute_units),
        .local = (size_t)clconv_stem_items(&s),
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_SIZES, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_SCRATCH, CLCONV_DX);
    out->map[CLCONV_DY] = clconv_stem_dy_map(t->problem, &s, batch);
    clconv_entry_arg(out, CLCONV_ARG_MAP, CLCONV_DY);
    return 1;
}

/* ---- Text: places ----------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_stem *s)
{
    clconv_emit_set(e, "fold_channels", (int64_t)s->fold.high * s->fold.wide);
    clconv_emit_set(e, "blocks_m", blocks_of(s));
    clconv_emit_set(e, "sums", clconv_products_registers(&s->products));
    clconv_emit_set(e, "blocks_across", s->w / 8);
    clconv_emit_set(e, "steps", s->k_line / CLCONV_WGMMA_K);
    clconv_emit_set(e, "tap_bytes", (int64_t)s->k_line * CLCONV_FOLD_LINE * 2);
}

/* The first row and column of positions that hold pixels, and how many. */
static void emit_positions(clconv_emit *e)
{
    clconv_emit_open(e, "int2 first_position(const sizes_t *s)");
    clconv_emit_line(e, "return (int2)((s->pad_left + $shift_w) / $wide, "
                        "(s->pad_top + $shift_h) / $high);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int2 positions(const sizes_t *s)");
    clconv_emit_line(e, "return (int2)((s->pad_left + $shift_w + s->w - 1) / "
                        "$wide, (s->pad_top + $shift_h + s->h - 1) / $high) - "
                        "first_position(s) + 1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Row m of the tile is position m % 64 of its m / 64-th block. */
static void emit_dx(clconv_emit *e)
{
    clconv_nest_open_function(e,
                              "int2 position(const block_t *b, const sizes_t "
                              "*s, int m)");
    clconv_emit_line(e,
                     "int y = b->y0 + m / 64 / $blocks_across * 8 + m % 64 / "
                     "8;");
    clconv_emit_line(e, "int x = b->x0 + m / 64 % $blocks_across * 8 + m % 8;");
    clconv_emit_line(e, "return first_position(s) + (int2)(x, y);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "long dx_at(const block_t *b, const sizes_t "
                                 "*s, int m, int n)");
    clconv_emit_line(e, "int2 at = position(b, s, m);");
    clconv_emit_line(e, "int3 place = fold_place(n);");
    clconv_emit_line(e, "int h = at.y * $high + place.y - $shift_h - "
                        "s->pad_top;");
    clconv_emit_line(e, "int w = at.x * $wide + place.z - $shift_w - "
                        "s->pad_left;");
    clconv_emit_line(e, "int exists = n < $channels * $fold_channels && h >= 0 "
                        "&& h < s->h && w >= 0 && w < s->w;");
    clconv_emit_line(e, "return exists ? b->image * s->x_image + place.x * "
                        "s->x_channel + h * s->x_row + w * s->x_column : -1;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: weights ---------------------------------------------------- */

/* Element i of W to its tap, term and channel. */
static void emit_put_weight(clconv_emit *e, const clconv_task *t)
{
    clconv_nest_open_function(
        e, t->problem->layout == CLCONV_NHWC
               ? "int4 weight_place(int i)"
               : "int4 weight_place(int i) /* k, c, r, s */");
    clconv_emit_line(e, t->problem->layout == CLCONV_NHWC
                            ? "return (int4)(i / ($r * $s * $channels), i % "
                              "$channels, i / ($s * $channels) % $r, i / "
                              "$channels % $s);"
                            : "return (int4)(i / ($r * $s * $channels), i / "
                              "($r * $s) % $channels, i / $s % $r, i % $s);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_set_text(
        e, "w_type", clconv_operand_is_half(t, CLCONV_W) ? "half" : "float");
    clconv_nest_open_function(e, "void put_weight(__local uchar *weights, "
                                 "__global const $w_type *w, int i)");
    clconv_emit_line(e, "const int4 at = weight_place(i);");
    clconv_emit_line(e, "const int y = at.z + $shift_h, x = at.w + $shift_w;");
    clconv_emit_line(e, "const int tap = y / $high * $taps_w + x / $wide;");
    clconv_emit_line(e, "const uint to = $tap_bytes * tap + 2 * ($fold_line * "
                        "at.x + fold_channel(at.y, y % $high, x % $wide));");
    clconv_emit_line(e, "vstore_half(load_w(w, i), 0, (__local half *)(weights "
                        "+ swizzled(to, 2 * $fold_line)));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_weights(clconv_emit *e, const clconv_stem *s)
{
    clconv_emit_line(e, s->products.emulated
                            ? "__local uchar *weights = tiles;"
                            : "__local uchar *weights = tiles + (base - "
                              "shared_address(tiles));");
    clconv_emit_line(e,
                     "for (int i = item; i < $fixed_bytes / 16; i += $items)");
    clconv_emit_line(e, "    *(__local uint4 *)(weights + 16 * i) = "
                        "(uint4)(0);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    if (!s->products.emulated)
        clconv_emit_line(e, "#pragma unroll 4");
    clconv_emit_line(e, "for (int i = item; i < sizes.k * $channels * $r * $s; "
                        "i += $items)");
    clconv_emit_line(e, "    put_weight(weights, w, i);");
    if (!s->products.emulated)
        clconv_emit_line(e, "publish();");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

/* ---- Text: loads and products ----------------------------------------- */

static void emit_load(clconv_emit *e, const clconv_stem *s)
{
    clconv_stem_open_load(e, s);
    clconv_emit_line(e, "int2 first = first_position(s);");
    clconv_emit_line(e, "load_tiled(tiles, at, dy_source, full, (int4)(0, "
                        "first.x + b->x0 - ($taps_w - 1), first.y + b->y0 - "
                        "($taps_h - 1), b->image), lane);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_unroll(clconv_emit *e, const clconv_stem *s)
{
    if (!s->products.emulated)
        clconv_emit_line(e, "#pragma unroll");
}

/* Tap (a, b) of a position is taps_h - 1 - a rows down in the halo. */
static void emit_multiply(clconv_emit *e, const clconv_stem *s)
{
    clconv_stem_open_multiply(e);
    clconv_emit_line(e, "const ulong w = matrix_at(base, 2 * $fold_line, 16);");
    clconv_emit_line(e, "ulong dy[$blocks_m];");
    emit_unroll(e, s);
    clconv_emit_open(e, "for (int i = 0; i < $blocks_m; ++i)");
    clconv_emit_line(e, "const int block = $blocks_m * warpgroup + i;");
    clconv_emit_line(e,
                     "const int pixel = block / $blocks_across * 8 * $dy_w + "
                     "block % $blocks_across * 8;");
    clconv_emit_line(e,
                     "dy[i] = matrix_of(at + pixel * $dy_line, $dy_line, 16, "
                     "$dy_w * $dy_line);");
    clconv_emit_close(e);
    emit_unroll(e, s);
    clconv_emit_open(e, "for (int tap = 0; tap < $taps; ++tap)");
    clconv_emit_line(e,
                     "const int pixel = ($taps_h - 1 - tap / $taps_w) * $dy_w "
                     "+ $taps_w - 1 - tap % $taps_w;");
    emit_unroll(e, s);
    clconv_emit_line(e, "for (int k = 0; k < $steps; ++k)");
    emit_unroll(e, s);
    clconv_emit_line(e, "    for (int i = 0; i < $blocks_m; ++i)");
    clconv_emit_line(e, "        product(tiles, sum[i], dy[i] + pixel * "
                        "($dy_line / 16) + 2 * k,");
    clconv_emit_line(e, "                w + tap * ($tap_bytes / 16) + "
                        "2 * $fold_line * k, lane);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: sums that are no numbers ----------------------------------- */

/* One element, by what its taps hit alone: see store.h. dY has channels last, in
 * eights. */
static void emit_dx_sum(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "float dx_sum(__global const half *dy, __global const $w_type *w, "
           "const block_t *b, const sizes_t *s, int m, int n)");
    clconv_emit_line(e, "int2 at = position(b, s, m);");
    clconv_emit_line(e, "int3 place = fold_place(n);");
    clconv_emit_line(e, "float sum = 0.0f;");
    clconv_emit_open(e, "for (int tap = 0; tap < $taps; ++tap)");
    clconv_emit_line(e, "int a = tap / $taps_w, b_w = tap % $taps_w;");
    clconv_emit_line(e, "int p = at.y - a, q = at.x - b_w;");
    clconv_emit_line(e, "int r = a * $high + place.y - $shift_h;");
    clconv_emit_line(e, "int column = b_w * $wide + place.z - $shift_w;");
    clconv_emit_line(e, "if (p < 0 || p >= s->p || q < 0 || q >= s->q || r < 0 "
                        "|| r >= $r || column < 0 || column >= $s)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "long pixel = ((long)b->image * s->p + p) * s->q + q;");
    clconv_emit_line(e, "long tap_at = place.x * s->w_channel + r * s->w_row + "
                        "column * s->w_column;");
    clconv_emit_line(e, "for (int k = 0; k < s->k; ++k)");
    clconv_emit_line(e, "    sum += load_dy(dy, pixel * ((s->k + 7) / 8 * 8) + "
                        "k) * load_w(w, k * s->w_image + tap_at);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return sum;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: stores ----------------------------------------------------- */

/* Are two neighbouring channels of a position, the first an even one, two
 * neighbours in memory, aligned together, and both in dX or neither? */
static bool stores_pairs(const clconv_problem *p, const clconv_fold *f)
{
    int64_t run = p->layout == CLCONV_NHWC ? f->wide * p->c : f->wide;
    return run % 2 == 0 && p->w % f->wide == 0 &&
           (p->pad_left + f->shift_w) % f->wide == 0 && p->alignment % 8 == 0;
}

/* Each pair of a work-item's sums: left, right, where they go. */
static void open_pairs(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $blocks_m * $sums; i += 2)");
    clconv_emit_line(e, "const int reg = i % $sums;");
    clconv_emit_line(e,
                     "const int m = 64 * ($blocks_m * warpgroup + i / $sums) "
                     "+ d_row(lane, reg, 0);");
    clconv_emit_line(e, "const int n = d_column(lane, reg, 0);");
    clconv_emit_line(e, "const float *s = sum[i / $sums] + reg;");
    clconv_emit_line(e, "const long left = dx_at(&block, &sizes, m, n);");
}

static void emit_right(clconv_emit *e)
{
    clconv_emit_line(e, "const long right = dx_at(&block, &sizes, m, n + 1);");
}

static void emit_slow(clconv_emit *e)
{
    open_pairs(e);
    emit_right(e);
    clconv_emit_line(e, "store_pair(dx, 0, left, right, (float2)(s[0], s[1]), "
                        "beta$tally);");
    clconv_emit_close(e);
}

static void emit_fast_pair(clconv_emit *e, bool half_type)
{
    clconv_emit_line(e, "if (left >= 0)");
    clconv_emit_line(e, half_type
                            ? "    *(__global uint *)(dx + left) = half_pair("
                              "s[0] * $epilogue, s[1] * $epilogue);"
                            : "    *(__global float2 *)(dx + left) = (float2)("
                              "s[0] * $epilogue, s[1] * $epilogue);");
}

static void emit_fast_each(clconv_emit *e, bool half_type)
{
    emit_right(e);
    if (half_type)
        clconv_emit_line(e, "const uint halves = half_pair(s[0] * $epilogue, "
                            "s[1] * $epilogue);");
    clconv_emit_line(e, "if (left >= 0)");
    clconv_emit_line(e, half_type ? "    ((__global ushort *)dx)[left] = "
                                    "(ushort)halves;"
                                  : "    dx[left] = s[0] * $epilogue;");
    clconv_emit_line(e, "if (right >= 0)");
    clconv_emit_line(e, half_type ? "    ((__global ushort *)dx)[right] = "
                                    "(ushort)(halves >> 16);"
                                  : "    dx[right] = s[1] * $epilogue;");
}

static void emit_fast(clconv_emit *e, const clconv_problem *p,
                      const clconv_fold *f)
{
    bool half_type = p->type[CLCONV_DX] == CLCONV_F16;
    open_pairs(e);
    if (stores_pairs(p, f))
        emit_fast_pair(e, half_type);
    else
        emit_fast_each(e, half_type);
    clconv_emit_close(e);
}

static void emit_store(clconv_emit *e, const clconv_problem *p,
                       const clconv_stem *s)
{
    if (clconv_fold_pads(p, &s->fold))
        clconv_wgmma_mend_emit(e);
    if (s->products.emulated) {
        emit_slow(e);
        return;
    }
    clconv_emit_set_exp2(e, "epilogue",
                         clconv_problem_epilogue_log2(p, CLCONV_DX));
    clconv_emit_open(e, clconv_output_is_counted(p, CLCONV_DX)
                            ? "if (beta == 0.0f && !dx_counts)"
                            : "if (beta == 0.0f)");
    emit_fast(e, p, &s->fold);
    clconv_emit_else(e);
    emit_slow(e);
    clconv_emit_close(e);
}

/* ---- The whole -------------------------------------------------------- */

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_stem *s)
{
    const clconv_nest nest = {.c = CLCONV_DX};
    const clconv_wgmma_tile store = {.products = s->products};
    const clconv_wgmma_target to = {NULL};
    set_holes(e, s);
    clconv_sizes_emit(e);
    clconv_fold_emit(e, t->problem, &s->fold);
    clconv_stem_emit_parts(e, s);
    emit_positions(e);
    clconv_stem_emit_blocks(e, "positions(s).y", "positions(s).x");
    emit_dx(e);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    emit_put_weight(e, t);
    emit_load(e, s);
    emit_multiply(e, s);
    if (clconv_fold_pads(t->problem, &s->fold)) {
        clconv_operand_emit_load(e, t, CLCONV_DY, 1);
        emit_dx_sum(e);
    }
    clconv_wgmma_store_emit_functions(e, t, &store, &nest, &to);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_stem s = stem_of(t);
    clconv_pass pass;
    passes(t, t->problem->n, &pass);
    emit_functions(e, t, &s);
    clconv_stem_open_entry(e, t, &s, &pass);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_stem_emit_begin(e, &s);
    emit_weights(e, &s);
    clconv_stem_open_tiles(e, &s, true);
    emit_store(e, t->problem, &s);
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_stem = {
    .name = "bwd_data_stem",
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "dX of first layers by Hopper's warpgroup products: up to 16 "
               "channels of X times stride, 64 of dY",
    .params = params,
    .param_count = CLCONV_STEM_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

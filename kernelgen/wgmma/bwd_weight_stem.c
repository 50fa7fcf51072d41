/*
 * dW of a first layer by Hopper's warpgroup products: few channels of X, any
 * stride, as that of a convolution of stride 1 on folded tensors (fold.h).
 *
 *     bwd_weight_stem_fold: X folded, fp16, in scratch
 *     bwd_weight_stem: each work-group
 *         for each tile of tile_w x tile_h pixels of dY, in turns
 *             copier: load dY's pixels, and the positions of X they meet
 *             others: for each 16 pixels, for each row of taps:
 *                         acc[row] += dY transposed * X moved by the taps
 *         store acc in scratch
 *     bwd_weight_stem_sum: adds what work-groups left, in order; dW from the
 *         columns of the folded filter; and the last sum of dbias (bias_sum.h)
 *
 * A product has k as its rows, and as its columns the channels of the positions
 * that a row of taps leads to: chunks of a matrix that lie step_w positions
 * apart, one over the other. Its 16 terms are 8 x 2 pixels.
 *
 * Sizes are arguments unless shape=baked; channels of X, filter, stride and the
 * number of work-groups are constants.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bias_sum.h"
#include "cost.h"
#include "entry.h"
#include "integers.h"
#include "nest.h"
#include "operand.h"
#include "output.h"
#include "ring.h"
#include "sizes.h"
#include "stem.h"
#include "wgmma.h"

static const clconv_param params[] = {CLCONV_STEM_PARAM_ROWS};

/* Rows of a product, whatever k is. */
#define MOST_K CLCONV_WGMMA_M

#define FOLD_ITEMS 256
#define FOLD_ATTRIBUTE "__attribute__((reqd_work_group_size(256, 1, 1)))"

/* The sum's work-groups: elements of dW, and work-items that share the parts
 * of each. */
#define SUM_ELEMENTS 32
#define SUM_SLICES 8
#define SUM_ITEMS (SUM_ELEMENTS * SUM_SLICES)
#define SUM_ATTRIBUTE "__attribute__((reqd_work_group_size(256, 1, 1)))"

/* ---- The tile --------------------------------------------------------- */

/* Rows of taps of a warpgroup, a product each. */
static int rows_of(const clconv_stem *s)
{
    return (int)clconv_divide_up(s->fold.taps_h, s->groups);
}

static clconv_stem stem_of(const clconv_task *t)
{
    clconv_fold fold = clconv_fold_of_dw(t->problem);
    clconv_stem s = clconv_stem_of(t, &fold);
    s.dy_w = s.w;
    s.dy_h = s.h;
    s.x_w = s.w + (fold.taps_w - 1) * fold.step_w;
    s.x_h = s.h + (fold.taps_h - 1) * fold.step_h;
    s.products.n = fold.taps_w * CLCONV_FOLD_LINE;
    return s;
}

static int64_t tiles_of(const clconv_task *t, const clconv_stem *s,
                        int64_t batch)
{
    return clconv_stem_tiles(s, t->problem->q, t->problem->p, batch);
}

/* Work-groups, whatever the batch: each leaves a part of the sums. */
static int parts_of(const clconv_task *t, const clconv_stem *s)
{
    int64_t tiles = clconv_max(1, tiles_of(t, s, t->problem->n));
    return (int)clconv_min(tiles, t->device->compute_units);
}

/* ---- Scratch: maps, parts, X ------------------------------------------ */

static int64_t columns_of(const clconv_fold *f)
{
    return (int64_t)f->taps_h * f->taps_w * CLCONV_FOLD_LINE;
}

static int64_t parts_at(const clconv_task *t)
{
    return clconv_round_up((int64_t)clconv_ring_map_bytes(t->device), 256);
}

static int64_t parts_bytes(const clconv_task *t, const clconv_stem *s)
{
    return parts_of(t, s) * MOST_K * columns_of(&s->fold) *
           (int64_t)sizeof(float);
}

static int64_t folded_at(const clconv_task *t, const clconv_stem *s)
{
    return clconv_round_up(parts_at(t) + parts_bytes(t, s), 256);
}

/* Columns and rows of positions. */
static int64_t folded_w(const clconv_problem *p, const clconv_fold *f)
{
    return p->q + (f->taps_w - 1) * f->step_w;
}

static int64_t folded_h(const clconv_problem *p, const clconv_fold *f)
{
    return p->p + (f->taps_h - 1) * f->step_h;
}

static int64_t folded_positions(const clconv_problem *p, const clconv_fold *f,
                                int64_t images)
{
    return images * folded_h(p, f) * folded_w(p, f);
}

static int64_t folded_bytes(const clconv_problem *p, const clconv_fold *f)
{
    return folded_positions(p, f, p->n) * CLCONV_FOLD_LINE * 2;
}

static size_t scratch(const clconv_task *t)
{
    clconv_stem s = stem_of(t);
    return (size_t)(folded_at(t, &s) + folded_bytes(t->problem, &s.fold));
}

static clconv_tensor_map x_map(const clconv_problem *p, const clconv_stem *s,
                               int64_t batch)
{
    const int64_t w = folded_w(p, &s->fold), h = folded_h(p, &s->fold);
    return (clconv_tensor_map){
        .size = {CLCONV_FOLD_LINE, w, h, batch},
        .stride = {CLCONV_FOLD_LINE, w * CLCONV_FOLD_LINE,
                   w * h * CLCONV_FOLD_LINE},
        .box = {CLCONV_FOLD_LINE, s->x_w, s->x_h, 1},
        .step = {1, 1},
        .swizzle = 2 * CLCONV_FOLD_LINE,
    };
}

/* ---- May it? ---------------------------------------------------------- */

static bool legal(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    if (!clconv_stem_suits(p, t->device))
        return false;
    clconv_stem s = stem_of(t);
    clconv_tensor_map x = x_map(p, &s, p->n);
    return s.products.n <= 256 && s.groups <= s.fold.taps_h &&
           clconv_tensor_map_legal(&x) &&
           (double)folded_positions(p, &s.fold, p->n) < CLCONV_NEST_LIMIT &&
           clconv_stem_legal(
               t, &s, rows_of(&s) * clconv_products_registers(&s.products));
}

/* Multiply-adds outside the unit in the time of a cycle. */
#define PER_CYCLE 128.0

static double cost(const clconv_task *t)
{
    if (t->device->unit_emulated)
        return 0; /* it was asked for */
    const clconv_problem *p = t->problem;
    clconv_stem s = stem_of(t);
    double tiles = (double)clconv_max(1, tiles_of(t, &s, p->n));
    double turns = clconv_cost_waste((int64_t)tiles, t->device->compute_units);
    double cycles = tiles * s.w * s.h / CLCONV_WGMMA_K *
                    (double)clconv_fold_dw_cycles(&s.fold);
    double moved = 2 * (double)(folded_bytes(p, &s.fold) + parts_bytes(t, &s)) +
                   (double)clconv_problem_bytes(p, CLCONV_X);
    return cycles * turns * PER_CYCLE + clconv_cost_move(t->device, moved) +
           clconv_cost_launch(t->device, 3);
}

/* The fewest warpgroups whose registers hold the sums. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    const clconv_task task = {.problem = p, .device = d, .values = values};
    clconv_param_first(params, CLCONV_STEM_PARAMS, values);
    for (int groups = 1; groups <= 4; ++groups) {
        values[CLCONV_STEM_GROUPS] = groups;
        clconv_stem_choose(&task, legal, cost, values);
        if (legal(&task))
            return;
    }
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

static bool finishes_bias(const clconv_task *t)
{
    (void)t;
    return true;
}

static clconv_pass fold_pass(const clconv_task *t, const clconv_stem *s,
                             int64_t batch)
{
    int64_t positions = folded_positions(t->problem, &s->fold, batch);
    clconv_pass pass = {
        .entry = "bwd_weight_stem_fold",
        .groups = (size_t)clconv_divide_up(positions, FOLD_ITEMS),
        .local = FOLD_ITEMS,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_X);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DW);
    return pass;
}

/* Also for an empty batch, like the next: dW is then beta times its old value. */
static clconv_pass product_pass(const clconv_task *t, const clconv_stem *s,
                                int64_t batch)
{
    clconv_pass pass = {
        .entry = "bwd_weight_stem",
        .groups = (size_t)parts_of(t, s),
        .local = (size_t)clconv_stem_items(s),
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DW);
    pass.map[CLCONV_DY] = clconv_stem_dy_map(t->problem, s, batch);
    pass.map[CLCONV_X] = x_map(t->problem, s, batch);
    clconv_entry_arg(&pass, CLCONV_ARG_MAP, CLCONV_DY);
    clconv_entry_arg(&pass, CLCONV_ARG_MAP, CLCONV_X);
    return pass;
}

static clconv_pass sum_pass(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t elements = clconv_problem_elements(p, CLCONV_DW);
    clconv_pass pass = {
        .entry = "bwd_weight_stem_sum",
        .groups = (size_t)clconv_divide_up(elements, SUM_ELEMENTS),
        .local = SUM_ITEMS,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DW);
    if (clconv_output_is_counted(p, CLCONV_DW))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DW);
    clconv_bias_sum_add(t, &pass);
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    clconv_stem s = stem_of(t);
    out[0] = fold_pass(t, &s, batch);
    out[1] = product_pass(t, &s, batch);
    out[2] = sum_pass(t);
    return 3;
}

/* ---- Text: folding X -------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_task *t, const clconv_stem *s)
{
    clconv_emit_set(e, "fold_channels",
                    t->problem->c * s->fold.high * s->fold.wide);
    clconv_emit_set(e, "parts", parts_of(t, s));
    clconv_emit_set(e, "parts_at", parts_at(t) / (int64_t)sizeof(float));
    clconv_emit_set(e, "folded_at", folded_at(t, s) / (int64_t)sizeof(float));
    clconv_emit_set(e, "part_floats", MOST_K * columns_of(&s->fold));
    clconv_emit_set(e, "columns", columns_of(&s->fold));
    clconv_emit_set(e, "blocks_m", rows_of(s));
    clconv_emit_set(e, "sums", clconv_products_registers(&s->products));
    clconv_emit_set(e, "fold_items", FOLD_ITEMS);
    clconv_emit_set(e, "sum_elements", SUM_ELEMENTS);
    clconv_emit_set(e, "slices", SUM_SLICES);
}

/* A work-item folds a position. */
static void emit_fold(clconv_emit *e, const clconv_task *t,
                      const clconv_pass *pass)
{
    clconv_operand_emit_load(e, t, CLCONV_X, 1);
    clconv_entry_open(e, t, pass, FOLD_ATTRIBUTE);
    clconv_emit_line(e,
                     "const int across = sizes.q + ($taps_w - 1) * $step_w;");
    clconv_emit_line(e, "const int down = sizes.p + ($taps_h - 1) * $step_h;");
    clconv_emit_line(e,
                     "const int number = (int)(get_group_id(0) * $fold_items "
                     "+ get_local_id(0));");
    clconv_emit_line(e, "if (number >= sizes.n * down * across)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "const int image = number / across / down;");
    clconv_emit_line(e, "const int h0 = number / across % down * $stride_h - "
                        "sizes.pad_top;");
    clconv_emit_line(e, "const int w0 = number % across * $stride_w - "
                        "sizes.pad_left;");
    clconv_emit_line(e, "ushort line[$fold_line] = { 0 };");
    if (!t->device->is_cpu)
        clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int n = 0; n < $fold_channels; ++n)");
    clconv_emit_line(e, "const int3 place = fold_place(n);");
    clconv_emit_line(e, "const int h = h0 + place.y, w = w0 + place.z;");
    clconv_emit_line(e, "if (h >= 0 && h < sizes.h && w >= 0 && w < sizes.w)");
    clconv_emit_line(e, "    vstore_half(load_x(x, image * sizes.x_image + "
                        "place.x * sizes.x_channel + h * sizes.x_row + w * "
                        "sizes.x_column), n, (half *)line);");
    clconv_emit_close(e);
    clconv_emit_line(e, "__global ushort *to = (__global ushort *)(scratch + "
                        "$folded_at) + (long)number * $fold_line;");
    clconv_emit_line(e, "for (int i = 0; i < $fold_line; i += 8)");
    clconv_emit_line(e, "    *(__global uint4 *)(to + i) = "
                        "as_uint4(vload8(0, line + i));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: products --------------------------------------------------- */

static void emit_load(clconv_emit *e, const clconv_stem *s)
{
    clconv_stem_open_load(e, s);
    clconv_emit_line(e, "const int4 from = (int4)(0, b->x0, b->y0, b->image);");
    clconv_emit_line(e, "load_tiled(tiles, at, dy_source, full, from, lane);");
    clconv_emit_line(e, "load_tiled(tiles, at + $dy_bytes, x_source, full, "
                        "from, lane);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_unroll(clconv_emit *e, const clconv_stem *s)
{
    if (!s->products.emulated)
        clconv_emit_line(e, "#pragma unroll");
}

/* A warpgroup's rows of taps past the last are the last again. */
static void emit_multiply(clconv_emit *e, const clconv_stem *s)
{
    clconv_stem_open_multiply(e);
    clconv_emit_line(e, "const ulong dy = matrix_of(at, $dy_line, 0, $tile_w * "
                        "$dy_line);");
    clconv_emit_line(e,
                     "const ulong x = matrix_of(at + $dy_bytes, 2 * "
                     "$fold_line, 2 * $fold_line * $step_w, 2 * $fold_line * "
                     "$x_w);");
    emit_unroll(e, s);
    clconv_emit_open(e,
                     "for (int i = 0; i < $tile_w / 8 * ($tile_h / 2); ++i)");
    clconv_emit_line(e, "const int row = i / ($tile_w / 8) * 2, column = i % "
                        "($tile_w / 8) * 8;");
    emit_unroll(e, s);
    clconv_emit_open(e, "for (int j = 0; j < $blocks_m; ++j)");
    clconv_emit_line(e, "const int a = min($blocks_m * warpgroup + j, $taps_h "
                        "- 1);");
    clconv_emit_line(e, "const int position = (row + a * $step_h) * $x_w + "
                        "column;");
    clconv_emit_line(e,
                     "product(tiles, sum[j], dy + (row * $tile_w + column) * "
                     "($dy_line / 16), x + position * (2 * $fold_line / 16), "
                     "lane);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* [k][tap][channel of a position] */
static void emit_store(clconv_emit *e)
{
    clconv_emit_open(e, "if (item < $workers)");
    clconv_emit_line(e, "__global float *part = scratch + $parts_at + "
                        "get_group_id(0) * $part_floats;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $blocks_m; ++j)");
    clconv_emit_line(e, "const int row = $blocks_m * warpgroup + j;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int reg = 0; reg < $sums; reg += 2)");
    clconv_emit_line(e, "const int k = d_row(lane, reg, 0);");
    clconv_emit_line(e, "const int column = $fold_line * $taps_w * row + "
                        "d_column(lane, reg, 0);");
    clconv_emit_line(e, "if (row < $taps_h && k < sizes.k)");
    clconv_emit_line(e,
                     "    *(__global float2 *)(part + k * $columns + column) "
                     "= (float2)(sum[j][reg], sum[j][reg + 1]);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_products(clconv_emit *e, const clconv_task *t,
                          const clconv_stem *s, const clconv_pass *pass)
{
    clconv_stem_open_entry(e, t, s, pass);
    clconv_emit_line(e, "__global const half *folded = (__global const half *)("
                        "scratch + $folded_at);");
    clconv_stem_emit_begin(e, s);
    clconv_stem_open_tiles(e, s, false);
    clconv_emit_close(e);
    emit_store(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Text: the sum ---------------------------------------------------- */

/* Where in a part element i of dW is. */
static void emit_part_index(clconv_emit *e, const clconv_problem *p)
{
    clconv_emit_open(e, "int part_index(int i)");
    clconv_emit_line(e, "int k = i / ($channels * $r * $s);");
    if (p->layout == CLCONV_NHWC) {
        clconv_emit_line(e, "int c = i % $channels;");
        clconv_emit_line(e, "int r = i / ($s * $channels) % $r;");
        clconv_emit_line(e, "int s = i / $channels % $s;");
    } else {
        clconv_emit_line(e, "int c = i / ($r * $s) % $channels;");
        clconv_emit_line(e, "int r = i / $s % $r;");
        clconv_emit_line(e, "int s = i % $s;");
    }
    clconv_emit_line(e, "int tap = r / $high * $taps_w + s / $wide;");
    clconv_emit_line(e, "return k * $columns + tap * $fold_line + "
                        "fold_channel(c, r % $high, s % $wide);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_sum(clconv_emit *e, const clconv_task *t,
                     const clconv_pass *pass)
{
    emit_part_index(e, t->problem);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    clconv_bias_sum_emit_functions(e, t, SUM_ITEMS);
    clconv_entry_open(e, t, pass, SUM_ATTRIBUTE);
    clconv_bias_sum_emit_groups(e, t);
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_line(e, "__local float sums[$slices][$sum_elements];");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    clconv_emit_line(e, "const int slice = item / $sum_elements;");
    clconv_emit_line(e, "const int i = (int)$group * $sum_elements + "
                        "item % $sum_elements;");
    clconv_emit_line(e, "const int count = sizes.k * $channels * $r * $s;");
    clconv_emit_line(e, "__global const float *part = scratch + $parts_at + "
                        "part_index(clamp(i, 0, count - 1));");
    clconv_emit_line(e, "float sum = 0.0f;");
    if (!t->device->is_cpu)
        clconv_emit_line(e, "#pragma unroll 8");
    clconv_emit_line(e,
                     "for (int j = $inside ? slice : $parts; j < $parts; j += "
                     "$slices)");
    clconv_emit_line(e, "    sum += part[j * $part_floats];");
    clconv_emit_line(e, "sums[slice][item % $sum_elements] = sum;");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "if (slice == 0 && $inside)");
    clconv_emit_line(e, "for (int j = 1; j < $slices; ++j)");
    clconv_emit_line(e, "    sum += sums[j][item];");
    clconv_emit_line(e, "store_dw(dw, i, sum, $beta_dw$tally);");
    clconv_emit_close(e);
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

/* ---- The whole -------------------------------------------------------- */

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_stem s = stem_of(t);
    clconv_pass pass[CLCONV_MAX_PASSES];
    passes(t, t->problem->n, pass);
    clconv_sizes_emit(e);
    clconv_fold_emit(e, t->problem, &s.fold);
    clconv_stem_emit_parts(e, &s);
    set_holes(e, t, &s);
    clconv_stem_emit_blocks(e, "s->p", "s->q");
    emit_fold(e, t, &pass[0]);
    emit_load(e, &s);
    emit_multiply(e, &s);
    emit_products(e, t, &s, &pass[1]);
    emit_sum(e, t, &pass[2]);
}

const clconv_kernel clconv_bwd_weight_stem = {
    .name = "bwd_weight_stem",
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 1,
    .summary = "dW of first layers by Hopper's warpgroup products: up to 16 "
               "channels of X times stride, 64 of dY",
    .params = params,
    .param_count = CLCONV_STEM_PARAMS,
    .covers = covers,
    .defaults = defaults,
    .legal = legal,
    .cost = cost,
    .wants_copies = wants_copies,
    .finishes_bias = finishes_bias,
    .scratch = scratch,
    .passes = passes,
    .emit = emit,
};

/*
 * dW for every problem, all sizes as arguments, no local memory; quick to
 * compile rather than fast.
 *
 *     a work-item: a part of the rows (n, p), a group, a tile of its k, a
 *                  tile of its c, a filter tap r, s
 *         for the rows of the part whose h = p*stride_h + r*... is in X
 *             for tiles of q (NCHW) or each q (NHWC)
 *                 sum[k][c] += dY[n][k][p][q] * X[n][c][h][w]
 *             now and then: total += sum, sum = 0
 *
 * NCHW: vectors run along q, the tile is tile x tile channels, and the
 * elements of the vectors are added up at the end. NHWC: vectors run along c,
 * the tile is two times tile channels k.
 *
 * With split > 1 the rows are dealt out to split parts, whose totals go to
 * scratch[part][element of dW] and are added in that order by a second pass.
 *
 * A product that is no tap (q beyond dY's columns, w outside X) has both its
 * factors replaced by 0 through select, so a NaN goes only where a tap takes
 * it. sum is emptied after some rows, so that no chain of additions is longer
 * than a thousand or so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "entry.h"
#include "generic.h"
#include "integers.h"
#include "kernel.h"
#include "operand.h"
#include "output.h"
#include "sizes.h"

enum { VEC, TILE, SPLIT, LWS, CAST, PARAMS };

static const clconv_param params[PARAMS] = {
    [VEC] = {"vec", CLCONV_VALUES(16, 1), "elements of a vector"},
    [TILE] = {"tile", CLCONV_VALUES(1, 2, 4), "channels of a work-item"},
    [SPLIT] = {"split", CLCONV_VALUES(1, 8, 64), "parts of the reduction"},
    [LWS] = {"lws", CLCONV_VALUES(1, 64, 256), "work-items of a group"},
    [CAST] = {"cast", CLCONV_CAST_NAMES, "where fp32 operands are rounded"},
};

#define ENTRY "bwd_weight_generic"
#define ENTRY_SUM "bwd_weight_generic_sum"

/* Rows that NCHW vectors are summed over before they join the total. */
#define FOLD_ROWS 8

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    (void)p;
    (void)d;
    return true;
}

static unsigned wants_copies(const clconv_task *t)
{
    if (t->values[CAST] == CLCONV_CAST_FUSED)
        return 0;
    return clconv_operand_cast_bits(t->problem, CLCONV_BIT(CLCONV_DY) |
                                                    CLCONV_BIT(CLCONV_X));
}

/* ---- Geometry; the emitted text repeats this arithmetic --------------- */

/* The tile: channels k times vectors or channels c. */
typedef struct tile {
    int k, c;
} tile;

static tile tile_of(const clconv_task *t)
{
    int size = t->values[TILE];
    if (t->problem->layout == CLCONV_NHWC)
        return (tile){2 * size, 1};
    return (tile){size, size};
}

/* Work-items of one part. */
static int64_t part_items(const clconv_problem *p, const int *values)
{
    clconv_task t = {.problem = p, .values = values};
    tile shape = tile_of(&t);
    bool nchw = p->layout == CLCONV_NCHW;
    return p->groups * clconv_divide_up(p->group_k, shape.k) *
           clconv_divide_up(p->group_c, nchw ? shape.c : values[VEC]) * p->r *
           p->s;
}

static size_t scratch(const clconv_task *t)
{
    if (t->values[SPLIT] == 1)
        return 0;
    return (size_t)clconv_problem_elements(t->problem, CLCONV_DW) *
           (size_t)t->values[SPLIT] * sizeof(float);
}

static bool legal(const clconv_task *t)
{
    return (size_t)t->values[LWS] <= t->device->max_work_group &&
           scratch(t) <= t->device->max_allocation;
}

/* Enough parts to occupy the device, if the rows allow it. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    values[CAST] = CLCONV_CAST_FUSED;
    if (!d->is_cpu) {
        values[VEC] = 1;
        values[LWS] = d->max_work_group >= 64 ? 64 : 1;
    }
    int64_t wanted = (int64_t)d->compute_units * (d->is_cpu ? 8 : 1024);
    clconv_task t = {.problem = p, .device = d, .values = values};
    for (int i = 0; i < params[SPLIT].count; ++i) {
        int before = values[SPLIT];
        values[SPLIT] = params[SPLIT].values[i];
        if (!legal(&t) || values[SPLIT] > p->n * p->p) {
            values[SPLIT] = before;
            return;
        }
        if (part_items(p, values) * values[SPLIT] >= wanted)
            return;
    }
}

/* Of its arithmetic, the share of the peak that was measured at best. NCHW
 * columns of X that a stride spreads are gathered one by one. */
#define CPU_SHARE 0.1
#define CPU_SHARE_SPREAD 0.02
#define GPU_SHARE 0.03

/* Items that a tile or a vector computes for nothing count like others. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    bool nchw = p->layout == CLCONV_NCHW;
    int64_t vec = t->values[VEC];
    tile shape = tile_of(t);
    double waste = nchw ? clconv_cost_waste(p->q, vec) : 1;
    waste *= clconv_cost_waste(p->group_k, shape.k) *
             clconv_cost_waste(p->group_c, nchw ? shape.c : vec);
    double share = GPU_SHARE;
    if (vec > 1)
        share = nchw && p->stride_w > 1 ? CPU_SHARE_SPREAD : CPU_SHARE;
    return clconv_cost_multiply(p) * waste / share +
           clconv_cost_launch(t->device, t->values[SPLIT] > 1 ? 2 : 1);
}

static clconv_pass main_pass(const clconv_task *t)
{
    clconv_pass pass = {.entry = ENTRY, .serves = CLCONV_OP_DW};
    int64_t items = part_items(t->problem, t->values) * t->values[SPLIT];
    pass.local = (size_t)t->values[LWS];
    pass.groups = (size_t)clconv_divide_up(items, t->values[LWS]);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_X);
    if (t->values[SPLIT] > 1) {
        clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    } else {
        clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DW);
        clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DW);
        if (clconv_output_is_counted(t->problem, CLCONV_DW))
            clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DW);
    }
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DW);
    return pass;
}

static clconv_pass sum_pass(const clconv_task *t)
{
    clconv_pass pass = {.entry = ENTRY_SUM, .serves = CLCONV_OP_DW};
    int64_t items = clconv_divide_up(
        clconv_problem_elements(t->problem, CLCONV_DW), t->values[VEC]);
    pass.local = (size_t)t->values[LWS];
    pass.groups = (size_t)clconv_divide_up(items, t->values[LWS]);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DW);
    if (clconv_output_is_counted(t->problem, CLCONV_DW))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_ELEMENTS, CLCONV_DW);
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    (void)batch; /* without images the sums are 0 and beta remains */
    out[0] = main_pass(t);
    if (t->values[SPLIT] == 1)
        return 1;
    out[1] = sum_pass(t);
    return 2;
}

/* ---- A row ------------------------------------------------------------ */

/* k, c: the first channels within the group; part: of the rows. */
static void emit_place_type(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int part, group, k, c, r, s;");
    clconv_emit_line(e, "} place_t;");
    clconv_emit_blank(e);
}

static void emit_each_k(clconv_emit *e, const char *statement)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int k = 0; k < $tile_k; ++k)");
    clconv_emit_line(e, statement);
}

static void emit_each_c(clconv_emit *e, const char *statement)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int c = 0; c < $tile_c; ++c)");
    clconv_emit_line(e, statement);
}

/* For all of sum[] and total[]. */
static void emit_each_sum(clconv_emit *e, const char *statement)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int t = 0; t < $sums; ++t)");
    clconv_emit_line(e, statement);
}

/* float16 spread_x(p, i, step, hit): elements i, i + step, ... where hit. */
static void emit_spread(clconv_emit *e, const clconv_task *t)
{
    bool fused = clconv_operand_is_fused(t, CLCONV_X);
    clconv_operand_set_raw(e, t->device, clconv_operand_is_half(t, CLCONV_X), 1);
    clconv_emit_line(
        e, "static float16 spread_x(__global const $x_type *p, long i, "
           "long step, int16 hit,");
    clconv_emit_open(e, "    long end)");
    clconv_emit_open(e, "if (step <= 2)");
    clconv_emit_line(e, "float16 a = window_x16(p, i, end);");
    clconv_emit_line(e, "if (step == 1)");
    clconv_emit_line(e, "    return a;");
    clconv_emit_line(e, "float16 b = window_x16(p, i + 16, end);");
    clconv_emit_line(e, "return (float16)(a.even, b.even);");
    clconv_emit_close(e);
    clconv_emit_line(e, "float v[16];");
    clconv_emit_line(e, "int in[16];");
    clconv_emit_line(e, "vstore16(hit, 0, in);");
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_line(e, "for (int lane = 0; lane < 16; ++lane, i += step)");
    clconv_emit_line(e, "    v[lane] = in[lane] ? $raw : 0.0f;");
    clconv_emit_line(e, fused ? "return round_x16(vload16(0, v));"
                              : "return vload16(0, v);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The vectors d[k], v[c] of one step of columns q. */
static void emit_read_nchw(clconv_emit *e, int vec)
{
    emit_each_k(e, "    d[k] = select(($float)0.0f, window_dy$vn(dy, "
                   "i[k] + q, dy_end), hit);");
    if (vec > 1)
        emit_each_c(e, "    v[c] = select(($float)0.0f, spread_x(x, "
                       "j[c] + first_w, step, hit, x_end), hit);");
    else
        emit_each_c(e, "    v[c] = select(0.0f, window_x(x, "
                       "j[c] + first_w, x_end), hit);");
}

static void emit_columns_nchw(clconv_emit *e, int vec)
{
    clconv_emit_open(e, "for (int q = 0; q < sizes.q; q += $vec)");
    clconv_emit_line(e, "int first_w = left + q * step;");
    clconv_emit_line(e, "$int w = first_w + lanes * step;");
    clconv_emit_line(e, "$int hit = (q + lanes < sizes.q) & (w >= 0) & "
                        "(w < sizes.w);");
    clconv_emit_line(e, "$float d[$tile_k], v[$tile_c];");
    emit_read_nchw(e, vec);
    emit_each_sum(e, "    sum[t] += d[t / $tile_c] * v[t % $tile_c];");
    clconv_emit_close(e);
}

/* One row: i[k], j[c] are where its channels start in dY and X. */
static void emit_row_nchw(clconv_emit *e, int vec)
{
    clconv_emit_line(e, "int step = sizes.stride_w;");
    clconv_emit_line(e, "int left = at.s * sizes.dilation_w - "
                        "sizes.pad_left;");
    clconv_emit_line(e, "long dy_row = n * sizes.dy_image + "
                        "p * sizes.dy_row;");
    clconv_emit_line(e, "long x_row = n * sizes.x_image + h * sizes.x_row;");
    clconv_emit_line(e, "long i[$tile_k], j[$tile_c];");
    emit_each_k(e, "    i[k] = dy_row + sizes.dy_channel * "
                   "(first_k + min(at.k + k, sizes.group_k - 1));");
    emit_each_c(e, "    j[c] = x_row + sizes.x_channel * "
                   "(first_c + min(at.c + c, sizes.group_c - 1));");
    emit_columns_nchw(e, vec);
}

/* d[k] of one pixel: the channels lie side by side. What lies beyond the
 * group's is read with them and not used. */
static void emit_pixel_dy(clconv_emit *e, int vec)
{
    if (vec == 1) {
        clconv_emit_line(e, "float d[$tile_k];");
        emit_each_k(e, "    d[k] = window_dy(dy, i + k, dy_end);");
    } else {
        clconv_emit_line(e, "float d[16];");
        clconv_emit_line(e, "vstore16(window_dy16(dy, i, dy_end), 0, d);");
    }
}

static void emit_columns_nhwc(clconv_emit *e, int vec)
{
    clconv_emit_open(e, "for (int q = 0; q < sizes.q; ++q)");
    clconv_emit_open(e, "if (w >= 0 && w < sizes.w)");
    emit_pixel_dy(e, vec);
    clconv_emit_line(e, "$float v = window_x$vn(x, "
                        "j + w * sizes.x_column, x_end);");
    emit_each_sum(e, "    sum[t] += d[t] * v;");
    clconv_emit_close(e);
    clconv_emit_line(e, "i += sizes.dy_column;");
    clconv_emit_line(e, "w += sizes.stride_w;");
    clconv_emit_close(e);
}

static void emit_row_nhwc(clconv_emit *e, int vec)
{
    clconv_emit_line(e, "long i = n * sizes.dy_image + p * sizes.dy_row + "
                        "first_k + at.k;");
    clconv_emit_line(e, "long j = n * sizes.x_image + h * sizes.x_row + "
                        "first_c + at.c;");
    clconv_emit_line(e, "int w = at.s * sizes.dilation_w - sizes.pad_left;");
    emit_columns_nhwc(e, vec);
}

/* ---- The tile --------------------------------------------------------- */

static void emit_fold(clconv_emit *e)
{
    clconv_emit_open(e, "if (++pending == $fold_rows)");
    clconv_emit_line(e, "pending = 0;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int t = 0; t < $sums; ++t)");
    clconv_emit_line(e, "total[t] += sum[t];");
    clconv_emit_line(e, "sum[t] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* The rows of the part, dealt out as evenly as they go. */
static void emit_rows(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "long rows = (long)sizes.n * sizes.p;");
    clconv_emit_line(e, "long row = rows / $split * at.part + "
                        "min((long)at.part, rows % $split);");
    clconv_emit_line(e, "long last = row + rows / $split + "
                        "(at.part < rows % $split);");
    clconv_emit_line(e, "int pending = 0;");
    clconv_emit_open(e, "for (; row < last; ++row)");
    clconv_emit_line(e, "int n = (int)(row / sizes.p);");
    clconv_emit_line(e, "int p = (int)(row % sizes.p);");
    clconv_emit_line(e, "int h = p * sizes.stride_h + "
                        "at.r * sizes.dilation_h - sizes.pad_top;");
    clconv_emit_line(e, "if (h < 0 || h >= sizes.h)");
    clconv_emit_line(e, "    continue;");
    if (t->problem->layout == CLCONV_NCHW)
        emit_row_nchw(e, t->values[VEC]);
    else
        emit_row_nhwc(e, t->values[VEC]);
    emit_fold(e);
    clconv_emit_close(e);
    emit_each_sum(e, "    total[t] += sum[t];");
}

/* How total[t] goes to element f. */
static const char *put_text(const clconv_task *t)
{
    bool split = t->values[SPLIT] > 1;
    if (t->problem->layout == CLCONV_NCHW)
        return split ? "scratch[f] = fsum$vn(total[t]);"
                     : "store_dw(dw, f, fsum$vn(total[t]), "
                       "beta$tally_pass);";
    return split ? "put_part$vn(scratch, f, 1, sizes.group_c - c, total[t]);"
                 : "put_dw$vn(dw, f, 1, sizes.group_c - c, total[t], "
                   "beta$tally_pass);";
}

static void emit_put(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int t = 0; t < $sums; ++t)");
    clconv_emit_line(e, "int k = at.k + t / $tile_c;");
    clconv_emit_line(e, "int c = at.c + t % $tile_c;");
    clconv_emit_line(e, "long f = (first_k + k) * sizes.w_image + "
                        "c * sizes.w_channel +");
    clconv_emit_line(e, "    at.r * sizes.w_row + at.s * sizes.w_column;");
    if (t->values[SPLIT] > 1)
        clconv_emit_line(e, "f += at.part * (sizes.k * sizes.w_image);");
    clconv_emit_open(e, "if (k < sizes.group_k && c < sizes.group_c)");
    clconv_emit_line(e, put_text(t));
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_find_place(clconv_emit *e, const clconv_task *t)
{
    tile shape = tile_of(t);
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_emit_set(e, "block_k", shape.k);
    clconv_emit_set(e, "block_c", nchw ? shape.c : t->values[VEC]);
    clconv_emit_line(e, "int blocks_k = (sizes.group_k - 1) / $block_k + 1;");
    clconv_emit_line(e, "int blocks_c = (sizes.group_c - 1) / $block_c + 1;");
    clconv_generic_emit_place(e, "s", "sizes.s");
    clconv_generic_emit_place(e, "r", "sizes.r");
    clconv_generic_emit_place(e, "c", "blocks_c");
    clconv_generic_emit_place(e, "k", "blocks_k");
    clconv_generic_emit_place(e, "group", "sizes.groups");
    clconv_emit_line(e, "if (item >= $split)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "place_t at = { (int)item, group, k * $block_k, "
                        "c * $block_c, r, s };");
}

static void emit_tile(clconv_emit *e, const clconv_task *t)
{
    int vec = t->values[VEC];
    tile shape = tile_of(t);
    clconv_operand_set_width(e, vec);
    clconv_generic_set_lanes(e, vec);
    clconv_emit_set(e, "tile_k", shape.k);
    clconv_emit_set(e, "tile_c", shape.c);
    clconv_emit_set(e, "sums", shape.k * shape.c);
    clconv_entry_emit_apart(e, t, t->values[LWS]);
    clconv_emit_line(e, "static void tile(__global const $dy_type *dy, "
                        "__global const $x_type *x,");
    clconv_emit_open(e, t->values[SPLIT] > 1
                            ? "    __global float *scratch, sizes_t sizes, "
                              "long item)"
                            : "    __global $stored *dw, float beta"
                              "$tally_parameter, sizes_t sizes, long item)");
    emit_find_place(e, t);
    clconv_emit_line(e, "long first_k = at.group * sizes.group_k;");
    clconv_emit_line(e, "long first_c = at.group * sizes.group_c;");
    clconv_emit_line(e, "long dy_end = sizes.n * sizes.dy_image;");
    clconv_emit_line(e, "long x_end = sizes.n * sizes.x_image;");
    if (t->problem->layout == CLCONV_NCHW)
        clconv_emit_line(e, "$int lanes = $lanes;");
    clconv_emit_line(e, "$float sum[$sums], total[$sums];");
    emit_each_sum(e, "    sum[t] = total[t] = 0.0f;");
    emit_rows(e, t);
    emit_put(e, t);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The entry points ------------------------------------------------- */

static void emit_entry(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = main_pass(t);
    bool split = t->values[SPLIT] > 1;
    clconv_entry_open(e, t, &pass, NULL);
    if (!split)
        clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_set_text(e, "id", "(long)get_global_id(0)");
    clconv_emit_line(e, split ? "tile(dy, x, scratch, sizes, $id);"
                              : "tile(dy, x, dw, beta$tally, sizes, $id);");
    if (!split)
        clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

/* The second pass: element i of dW is the sum of its parts. */
static void emit_sum_entry(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = sum_pass(t);
    int vec = t->values[VEC];
    clconv_operand_set_width(e, vec);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_line(e, "long i = (long)get_global_id(0) * $vec;");
    clconv_emit_line(e, "if (i >= elements)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "int count = (int)min((long)$vec, elements - i);");
    clconv_emit_line(e, "$float total = 0.0f;");
    clconv_emit_line(e, "for (int part = 0; part < $split; ++part)");
    clconv_emit_line(e,
                     "    total += get_part$vn(scratch, part * elements + i, "
                     "count);");
    clconv_emit_line(e, "put_dw$vn(dw, i, 1, count, total, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

static void set_types(clconv_emit *e, const clconv_task *t)
{
    static const char *const types[] = {"float", "half"};
    clconv_emit_set_text(e, "dy_type",
                         types[clconv_operand_is_half(t, CLCONV_DY)]);
    clconv_emit_set_text(e, "x_type",
                         types[clconv_operand_is_half(t, CLCONV_X)]);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    int vec = t->values[VEC];
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_emit_set(e, "fold_rows", nchw && vec > 1 ? FOLD_ROWS : 1);
    set_types(e, t);
    clconv_emit_part(e, "lanes");
    clconv_sizes_emit(e);
    clconv_generic_emit_window(e, t, CLCONV_DY, vec);
    clconv_generic_emit_window(e, t, CLCONV_X, vec);
    if (nchw && vec > 1)
        emit_spread(e, t);
    if (nchw && t->values[SPLIT] == 1)
        clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    else
        clconv_output_emit_put(e, t->problem, CLCONV_DW, vec);
    if (t->values[SPLIT] > 1)
        clconv_emit_part(e, "partial");
    emit_place_type(e);
    emit_tile(e, t);
    emit_entry(e, t);
    if (t->values[SPLIT] == 1)
        return;
    clconv_emit_blank(e);
    emit_sum_entry(e, t);
}

const clconv_kernel clconv_bwd_weight_generic = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 2,
    .summary = "dW of any problem, all sizes as arguments",
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

/*
 * dX for every problem, all sizes as arguments, no local memory; quick to
 * compile rather than fast.
 *
 *     a work-item: an image n, a group, a tile of its channels c, a row h, a
 *                  phase of its columns w, a tile of those columns
 *         for r, s that the strides allow     row p, first column q of dY
 *             for k of the group
 *                 sum[tile] += dY[n][k][p][q..] * W[k][c..][r][s]
 *             total[tile] += sum[tile] where q is a column of dY
 *
 * Columns w = phase, phase + stride_w, ... meet consecutive columns q of dY
 * for the same filter columns s, so that a phase is a convolution of stride
 * 1; with stride 1 there is one phase. NCHW: vectors run along w, a tile is
 * some channels. NHWC: vectors run along c, a tile is some columns.
 *
 * NCHW vectors are multiplied by single weights, which a first pass rounds,
 * widens and puts side by side: scratch[group][r][s][k][c] in fp32.
 *
 * Columns that dY does not have are computed from whatever lies there and
 * left out of the total by select, never multiplied by zero: a NaN goes only
 * where a tap takes it. sum is a partial sum over k, so that no chain of
 * additions is longer than the channels of a group.
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

enum { VEC, TILE, LWS, CAST, PARAMS };

static const clconv_param params[PARAMS] = {
    [VEC] = {"vec", CLCONV_VALUES(16, 1), "elements of a vector"},
    [TILE] = {"tile", CLCONV_VALUES(2, 4, 1, 8), "vectors of a work-item"},
    [LWS] = {"lws", CLCONV_VALUES(1, 64, 256), "work-items of a group"},
    [CAST] = {"cast", CLCONV_CAST_NAMES, "where fp32 operands are rounded"},
};

#define ENTRY "bwd_data_generic"
#define ENTRY_WEIGHTS "bwd_data_generic_weights"

/* Does the first pass prepare the weights? */
static bool prepares(const clconv_task *t)
{
    return t->problem->layout == CLCONV_NCHW && t->values[VEC] > 1;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    (void)p;
    (void)d;
    return true;
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    (void)p;
    clconv_param_first(params, PARAMS, values);
    values[CAST] = CLCONV_CAST_FUSED;
    if (d->is_cpu)
        return;
    values[VEC] = 1;
    values[TILE] = 4;
    values[LWS] = d->max_work_group >= 64 ? 64 : 1;
}

static bool legal(const clconv_task *t)
{
    return (size_t)t->values[LWS] <= t->device->max_work_group;
}

static unsigned wants_copies(const clconv_task *t)
{
    if (t->values[CAST] == CLCONV_CAST_FUSED)
        return 0;
    unsigned w = prepares(t) ? 0 : CLCONV_BIT(CLCONV_W);
    return clconv_operand_cast_bits(t->problem, CLCONV_BIT(CLCONV_DY) | w);
}

/* ---- Geometry; the emitted text repeats this arithmetic --------------- */

/* The last tile of channels reads up to a tile beyond the end. */
static size_t scratch(const clconv_task *t)
{
    if (!prepares(t))
        return 0;
    return (size_t)(clconv_problem_elements(t->problem, CLCONV_W) +
                    t->values[TILE]) *
           sizeof(float);
}

static int64_t work_items(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    int64_t vec = t->values[VEC], tile = t->values[TILE];
    bool nchw = p->layout == CLCONV_NCHW;
    int64_t phases = p->stride_w < p->w ? p->stride_w : p->w;
    int64_t columns = clconv_divide_up(p->w, p->stride_w);
    int64_t blocks = clconv_divide_up(p->group_c, nchw ? tile : vec);
    int64_t tiles = clconv_divide_up(columns, nchw ? vec : tile);
    return batch * p->groups * blocks * p->h * phases * tiles;
}

/* Of its arithmetic, the share of the peak that was measured at best. */
#define CPU_SHARE 0.1
#define GPU_SHARE 0.03

/* Items that a tile or a vector computes for nothing count like others. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    bool nchw = p->layout == CLCONV_NCHW;
    int64_t vec = t->values[VEC], tile = t->values[TILE];
    int64_t columns = clconv_divide_up(p->w, p->stride_w);
    double waste = clconv_cost_waste(columns, nchw ? vec : tile);
    waste *= clconv_cost_waste(p->group_c, nchw ? tile : vec);
    double share = t->values[VEC] > 1 ? CPU_SHARE : GPU_SHARE;
    return clconv_cost_multiply(p) * waste / share +
           clconv_cost_launch(t->device, prepares(t) ? 2 : 1);
}

static clconv_pass main_pass(const clconv_task *t, int64_t batch)
{
    clconv_pass pass = {.entry = ENTRY, .serves = CLCONV_OP_DX};
    pass.local = (size_t)t->values[LWS];
    pass.groups = (size_t)clconv_divide_up(work_items(t, batch), t->values[LWS]);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(
        &pass, prepares(t) ? CLCONV_ARG_SCRATCH : CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(t->problem, CLCONV_DX))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DX);
    return pass;
}

/* A work-item for each output channel and filter tap. */
static clconv_pass weights_pass(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    clconv_pass pass = {.entry = ENTRY_WEIGHTS, .serves = CLCONV_OP_DX};
    pass.local = (size_t)t->values[LWS];
    pass.groups = (size_t)clconv_divide_up(p->k * p->r * p->s, t->values[LWS]);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_W);
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    if (!prepares(t)) {
        out[0] = main_pass(t, batch);
        return 1;
    }
    out[0] = weights_pass(t);
    out[1] = main_pass(t, batch);
    return 2;
}

/* ---- The weights ------------------------------------------------------ */

/* Those of one tap and output channel, item. */
static void emit_prepare(clconv_emit *e, const clconv_task *t)
{
    clconv_entry_emit_apart(e, t, t->values[LWS]);
    clconv_emit_line(e, "static void prepare(__global const $stored *w, "
                        "__global float *scratch,");
    clconv_emit_open(e, "    sizes_t sizes, long item)");
    clconv_emit_line(e, "scratch += item * sizes.group_c;");
    clconv_generic_emit_place(e, "k", "sizes.group_k");
    clconv_generic_emit_place(e, "s", "sizes.s");
    clconv_generic_emit_place(e, "r", "sizes.r");
    clconv_emit_line(e, "if (item >= sizes.groups)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "long f = (item * sizes.group_k + k) * "
                        "sizes.w_image +");
    clconv_emit_line(e, "    r * sizes.w_row + s * sizes.w_column;");
    clconv_emit_line(e, "for (int c = 0; c < sizes.group_c; ++c)");
    clconv_emit_line(e, "    scratch[c] = load_w(w, f + "
                        "c * sizes.w_channel);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_weights(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = weights_pass(t);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    emit_prepare(e, t);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_emit_line(e, "prepare(w, scratch, sizes, "
                        "(long)get_global_id(0));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The tile --------------------------------------------------------- */

/* c: the first channel within the group; column: the first of the phase. */
static void emit_place_type(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int n, group, c, h, phase, column;");
    clconv_emit_line(e, "} place_t;");
    clconv_emit_blank(e);
}

/* NCHW: sum[t] = sum over k of dY[n][k][p][q..] * W[k][c + t][r][s]. */
static void emit_products_nchw(clconv_emit *e, bool prepared)
{
    clconv_emit_open(e, "for (int k = 0; k < sizes.group_k; ++k)");
    clconv_emit_line(e, "$float v = window_dy$vn(dy, i, dy_end);");
    clconv_generic_emit_each_tile(e, prepared
                                         ? "    sum[t] += v * w[f + t];"
                                         : "    sum[t] += v * load_w(w, f + "
                                           "min(t, past) * sizes.w_channel);");
    clconv_emit_line(e, "i += sizes.dy_channel;");
    clconv_emit_line(e,
                     prepared ? "f += sizes.group_c;" : "f += sizes.w_image;");
    clconv_emit_close(e);
}

static void emit_sum_nchw(clconv_emit *e, bool prepared)
{
    clconv_emit_line(e, "long i = at.n * sizes.dy_image + "
                        "first_k * sizes.dy_channel +");
    clconv_emit_line(e, "    p * sizes.dy_row + q;");
    if (!prepared) {
        clconv_emit_line(e, "int past = sizes.group_c - 1 - at.c;");
        clconv_emit_line(e, "long f = first_k * sizes.w_image + "
                            "at.c * sizes.w_channel +");
        clconv_emit_line(e, "    r * sizes.w_row + s * sizes.w_column;");
        emit_products_nchw(e, prepared);
        return;
    }
    clconv_emit_line(e, "long tap = ((long)at.group * sizes.r + r) * "
                        "sizes.s + s;");
    clconv_emit_line(e, "long f = tap * sizes.group_k * sizes.group_c + "
                        "at.c;");
    emit_products_nchw(e, prepared);
}

/* NHWC: the products of $vec channels k, d[t][j] being dY[p][q + t][k + j]. */
static void emit_products_nhwc(clconv_emit *e, int vec)
{
    clconv_emit_open(e, "for (int k = 0; k < sizes.group_k; k += $vec)");
    clconv_emit_line(e, "float d[$tile * $vec];");
    if (vec == 1)
        clconv_generic_emit_each_tile(e, "    d[t] = load_dy(dy, i[t] + k);");
    else
        clconv_generic_emit_each_tile(
            e, "    vstore$vn(window_dy$vn(dy, i[t] + k, dy_end), "
               "0, d + t * $vec);");
    clconv_emit_line(e, "int count = min($vec, sizes.group_k - k);");
    clconv_emit_open(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, vec == 1 ? "float v = load_w(w, f);"
                                 : "$float v = window_w$vn(w, f, w_end);");
    clconv_generic_emit_each_tile(e, "    sum[t] += d[t * $vec + j] * v;");
    clconv_emit_line(e, "f += sizes.w_image;");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* Columns that dY does not have are read from its nearest. */
static void emit_sum_nhwc(clconv_emit *e, int vec)
{
    clconv_emit_line(e, "long row = at.n * sizes.dy_image + "
                        "p * sizes.dy_row + first_k;");
    clconv_emit_line(e, "long i[$tile];");
    clconv_generic_emit_each_tile(
        e, "    i[t] = row + clamp(q + t, 0, sizes.q - 1) * "
           "sizes.dy_column;");
    clconv_emit_line(e, "long f = first_k * sizes.w_image + "
                        "r * sizes.w_row +");
    clconv_emit_line(e, "    s * sizes.w_column + at.c;");
    emit_products_nhwc(e, vec);
}

/* Adds the sums to the totals where dY has the column. */
static void emit_add(clconv_emit *e, bool nchw)
{
    if (nchw) {
        clconv_emit_line(e, "$int hit = (q + lanes >= 0) & "
                            "(q + lanes < sizes.q);");
        clconv_generic_emit_each_tile(
            e, "    total[t] = select(total[t], total[t] + sum[t], "
               "hit);");
    } else {
        clconv_emit_line(e, "#pragma unroll");
        clconv_emit_line(e, "for (int t = 0; t < $tile; ++t)");
        clconv_emit_line(e, "    if (q + t >= 0 && q + t < sizes.q)");
        clconv_emit_line(e, "        total[t] += sum[t];");
    }
}

/* The taps of one filter row r, which meets row p of dY. */
static void emit_row(clconv_emit *e, const clconv_task *t)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_emit_open(e, "for (int s = 0; s < sizes.s; ++s)");
    clconv_emit_line(e, "int left = at.phase + sizes.pad_left - "
                        "s * sizes.dilation_w;");
    clconv_emit_line(e, "int q = left / sizes.stride_w + at.column;");
    clconv_emit_line(e, "if (left % sizes.stride_w != 0 || q <= -$reach || "
                        "q >= sizes.q)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "$float sum[$tile];");
    clconv_generic_emit_each_tile(e, "    sum[t] = 0.0f;");
    if (nchw)
        emit_sum_nchw(e, prepares(t));
    else
        emit_sum_nhwc(e, t->values[VEC]);
    emit_add(e, nchw);
    clconv_emit_close(e);
}

static void emit_taps(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e, "for (int r = 0; r < sizes.r; ++r)");
    clconv_emit_line(e, "int up = at.h + sizes.pad_top - "
                        "r * sizes.dilation_h;");
    clconv_emit_line(e, "int p = up / sizes.stride_h;");
    clconv_emit_line(e, "if (up < 0 || up % sizes.stride_h != 0 || "
                        "p >= sizes.p)");
    clconv_emit_line(e, "    continue;");
    emit_row(e, t);
    clconv_emit_close(e);
}

/* columns: those of the phase from the tile's first on. */
static void emit_put(clconv_emit *e, bool nchw)
{
    clconv_emit_line(e, "int columns = (sizes.w - 1 - at.phase) / "
                        "sizes.stride_w + 1 - at.column;");
    clconv_emit_line(e, "long step = sizes.stride_w * sizes.x_column;");
    clconv_emit_line(e, "long i = at.n * sizes.x_image + "
                        "(at.group * sizes.group_c + at.c) * sizes.x_channel "
                        "+");
    clconv_emit_line(e, "    at.h * sizes.x_row + at.phase * sizes.x_column + "
                        "at.column * step;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int t = 0; t < $tile; ++t)");
    if (nchw) {
        clconv_emit_line(e, "    if (at.c + t < sizes.group_c)");
        clconv_emit_line(e, "        put_dx$vn(dx, i + t * sizes.x_channel, "
                            "step, columns, total[t], beta$tally_pass);");
    } else {
        clconv_emit_line(e, "    if (t < columns)");
        clconv_emit_line(e, "        put_dx$vn(dx, i + t * step, 1, "
                            "sizes.group_c - at.c, total[t], "
                            "beta$tally_pass);");
    }
}

/* Tiles of a phase's columns vary fastest, so that neighbours read and write
 * neighbours. */
static void emit_find_place(clconv_emit *e, const clconv_task *t)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_emit_set(e, "step_w", t->values[nchw ? VEC : TILE]);
    clconv_emit_set(e, "step_c", t->values[nchw ? TILE : VEC]);
    clconv_emit_line(e, "int phases = min(sizes.stride_w, sizes.w);");
    clconv_emit_line(e, "int tiles = (sizes.w - 1) / sizes.stride_w / $step_w "
                        "+ 1;");
    clconv_emit_line(e, "int blocks = (sizes.group_c - 1) / $step_c + 1;");
    clconv_generic_emit_place(e, "column", "tiles");
    clconv_generic_emit_place(e, "phase", "phases");
    clconv_generic_emit_place(e, "h", "sizes.h");
    clconv_generic_emit_place(e, "block", "blocks");
    clconv_generic_emit_place(e, "group", "sizes.groups");
    clconv_emit_line(e, "if (item >= sizes.n)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "place_t at = { (int)item, group, block * $step_c, "
                        "h, phase, column * $step_w };");
}

static void set_types(clconv_emit *e, const clconv_task *t)
{
    bool half_w = clconv_operand_is_half(t, CLCONV_W) && !prepares(t);
    bool half_dy = clconv_operand_is_half(t, CLCONV_DY);
    clconv_emit_set_text(e, "dy_type", half_dy ? "half" : "float");
    clconv_emit_set_text(e, "w_type", half_w ? "half" : "float");
}

/* The work-item's tile of dX, $tile vectors. */
static void emit_tile(clconv_emit *e, const clconv_task *t)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    int vec = t->values[VEC];
    clconv_operand_set_width(e, vec);
    clconv_generic_set_lanes(e, vec);
    clconv_emit_set(e, "reach", nchw ? vec : t->values[TILE]);
    set_types(e, t);
    clconv_entry_emit_apart(e, t, t->values[LWS]);
    clconv_emit_line(e, "static void tile(__global const $dy_type *dy, "
                        "__global const $w_type *w,");
    clconv_emit_line(e, "    __global $stored *dx, float beta"
                        "$tally_parameter, sizes_t sizes,");
    clconv_emit_open(e, "    long item)");
    emit_find_place(e, t);
    clconv_emit_line(e, "long first_k = at.group * sizes.group_k;");
    clconv_emit_line(e, "long dy_end = sizes.n * sizes.dy_image;");
    if (!nchw && vec > 1)
        clconv_emit_line(e, "long w_end = sizes.k * sizes.w_image;");
    if (nchw)
        clconv_emit_line(e, "$int lanes = $lanes;");
    clconv_emit_line(e, "$float total[$tile];");
    clconv_generic_emit_each_tile(e, "    total[t] = 0.0f;");
    emit_taps(e, t);
    emit_put(e, nchw);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The entry point -------------------------------------------------- */

static void emit_entry(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = main_pass(t, t->problem->n);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_set_text(e, "weights", prepares(t) ? "scratch" : "w");
    clconv_emit_line(e, "tile(dy, $weights, dx, beta$tally, sizes, "
                        "(long)get_global_id(0));");
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    int vec = t->values[VEC];
    clconv_sizes_emit(e);
    if (prepares(t))
        emit_weights(e, t);
    clconv_generic_emit_window(e, t, CLCONV_DY, vec);
    if (!nchw && vec > 1)
        clconv_generic_emit_window(e, t, CLCONV_W, vec);
    else if (!prepares(t))
        clconv_operand_emit_load(e, t, CLCONV_W, 1);
    clconv_output_emit_put(e, t->problem, CLCONV_DX, vec);
    emit_place_type(e);
    emit_tile(e, t);
    emit_entry(e, t);
}

const clconv_kernel clconv_bwd_data_generic = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 2,
    .summary = "dX of any problem, all sizes as arguments",
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

/*
 * Y for every problem, all sizes as arguments, no local memory; quick to
 * compile rather than fast.
 *
 *     a work-item: an image n, a group, a tile of its channels k, a row p, a
 *                  tile of its columns q
 *         for r, s                            row and first column of X
 *             for c of the group
 *                 sum[tile] += X[n][c][row][column..] * W[k..][c][r][s]
 *             total[tile] += sum[tile] where column is one of X
 *         Y[tile] = activation(beta * Y[tile] + total[tile] + b[k..])
 *
 * NCHW: vectors run along q, a tile is some channels. NHWC: vectors run along
 * k, a tile is some columns.
 *
 * With vectors, a first pass rounds and widens the weights and puts those of
 * neighbouring k side by side: scratch[group][r][s][c][k] in fp32.
 *
 * Columns that X does not have are computed from whatever lies there and left
 * out of the total by select, never multiplied by zero: a NaN goes only where a
 * tap takes it. sum is a partial sum over c, so that no chain of additions is
 * longer than the channels of a group.
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
    [TILE] = {"tile", CLCONV_VALUES(4, 2, 1, 8), "vectors of a work-item"},
    [LWS] = {"lws", CLCONV_VALUES(1, 64, 256), "work-items of a group"},
    [CAST] = {"cast", CLCONV_CAST_NAMES, "where fp32 operands are rounded"},
};

#define ENTRY "forward_generic"
#define ENTRY_WEIGHTS "forward_generic_weights"

/* Does the first pass prepare the weights? */
static bool prepares(const clconv_task *t)
{
    return t->values[VEC] > 1;
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
    return clconv_operand_cast_bits(t->problem, CLCONV_BIT(CLCONV_X) | w);
}

/* ---- Geometry; the emitted text repeats this arithmetic --------------- */

/* The last tile of channels reads up to a tile or a vector beyond the end. */
static size_t scratch(const clconv_task *t)
{
    if (!prepares(t))
        return 0;
    int64_t beyond = clconv_max(t->values[TILE], t->values[VEC]);
    return (size_t)(clconv_problem_elements(t->problem, CLCONV_W) + beyond) *
           sizeof(float);
}

static int64_t work_items(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    int64_t vec = t->values[VEC], tile = t->values[TILE];
    bool nchw = p->layout == CLCONV_NCHW;
    int64_t blocks = clconv_divide_up(p->group_k, nchw ? tile : vec);
    int64_t tiles = clconv_divide_up(p->q, nchw ? vec : tile);
    return batch * p->groups * blocks * p->p * tiles;
}

/* Of its arithmetic, the share of the peak that bwd_data_generic, which has the
 * same loops, was measured at. */
#define CPU_SHARE 0.1
#define GPU_SHARE 0.03

/* Items that a tile or a vector computes for nothing count like others. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    bool nchw = p->layout == CLCONV_NCHW;
    int64_t vec = t->values[VEC], tile = t->values[TILE];
    double waste = clconv_cost_waste(p->q, nchw ? vec : tile);
    waste *= clconv_cost_waste(p->group_k, nchw ? tile : vec);
    double share = vec > 1 ? CPU_SHARE : GPU_SHARE;
    return clconv_cost_multiply(p) * waste / share +
           clconv_cost_launch(t->device, prepares(t) ? 2 : 1);
}

static clconv_pass main_pass(const clconv_task *t, int64_t batch)
{
    clconv_pass pass = {.entry = ENTRY, .serves = CLCONV_OP_FORWARD};
    pass.local = (size_t)t->values[LWS];
    pass.groups = (size_t)clconv_divide_up(work_items(t, batch), t->values[LWS]);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_X);
    clconv_entry_arg(
        &pass, prepares(t) ? CLCONV_ARG_SCRATCH : CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_B);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_Y);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_Y);
    if (clconv_output_is_counted(t->problem, CLCONV_Y))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_Y);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_Y);
    return pass;
}

/* A work-item for each channel within a group and filter tap of a group. */
static clconv_pass weights_pass(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    clconv_pass pass = {.entry = ENTRY_WEIGHTS, .serves = CLCONV_OP_FORWARD};
    pass.local = (size_t)t->values[LWS];
    if (batch > 0)
        pass.groups =
            (size_t)clconv_divide_up(p->c * p->r * p->s, t->values[LWS]);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_W);
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    int count = 0;
    if (prepares(t))
        out[count++] = weights_pass(t, batch);
    out[count++] = main_pass(t, batch);
    return count;
}

/* ---- The weights ------------------------------------------------------ */

/* Those of one tap and channel c, item. */
static void emit_prepare(clconv_emit *e, const clconv_task *t)
{
    clconv_entry_emit_apart(e, t, t->values[LWS]);
    clconv_emit_line(e, "static void prepare(__global const $stored *w, "
                        "__global float *scratch,");
    clconv_emit_open(e, "    sizes_t sizes, long item)");
    clconv_emit_line(e, "scratch += item * sizes.group_k;");
    clconv_generic_emit_place(e, "c", "sizes.group_c");
    clconv_generic_emit_place(e, "s", "sizes.s");
    clconv_generic_emit_place(e, "r", "sizes.r");
    clconv_emit_line(e, "if (item >= sizes.groups)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "long f = item * sizes.group_k * sizes.w_image + "
                        "c * sizes.w_channel +");
    clconv_emit_line(e, "    r * sizes.w_row + s * sizes.w_column;");
    clconv_emit_line(e, "for (int k = 0; k < sizes.group_k; ++k)");
    clconv_emit_line(e, "    scratch[k] = load_w(w, f + k * sizes.w_image);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_weights(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = weights_pass(t, t->problem->n);
    emit_prepare(e, t);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_emit_line(e, "prepare(w, scratch, sizes, "
                        "(long)get_global_id(0));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Reading ---------------------------------------------------------- */

/* Elements first .. last-1 of a vector, stride apart. Not inlined, as it is
 * large. */
static void emit_gather(clconv_emit *e)
{
    clconv_emit_line(e, "__attribute__((noinline))");
    clconv_emit_line(e, "static float16 gather_x16(__global const $x_type *x, "
                        "long i, int stride,");
    clconv_emit_open(e, "    int first, int last)");
    clconv_emit_line(e, "float v[16] = { 0.0f };");
    clconv_emit_line(e, "for (int lane = first; lane < last; ++lane)");
    clconv_emit_line(e, "    v[lane] = load_x(x, i + (long)lane * stride);");
    clconv_emit_line(e, "return vload16(0, v);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Loads of X, single ones and NCHW's vectors; of single weights; of the bias. */
static void emit_loads(clconv_emit *e, const clconv_task *t)
{
    bool vectors = t->values[VEC] > 1;
    clconv_operand_emit_load(e, t, CLCONV_X, 1);
    if (vectors && t->problem->layout == CLCONV_NCHW) {
        clconv_generic_emit_window(e, t, CLCONV_X, 16);
        emit_gather(e);
    }
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    if (vectors && t->problem->layout == CLCONV_NHWC)
        clconv_generic_emit_window(e, t, CLCONV_B, 16);
    else
        clconv_operand_emit_load(e, t, CLCONV_B, 1);
}

/* ---- The tile --------------------------------------------------------- */

/* k: the first channel within the group; q: the first column. */
static void emit_place_type(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int n, group, k, p, q;");
    clconv_emit_line(e, "} place_t;");
    clconv_emit_blank(e);
}

static void emit_vector(clconv_emit *e, int vec)
{
    if (vec == 1) {
        clconv_emit_line(e, "float v = load_x(x, i);");
        return;
    }
    clconv_emit_line(e, "float16 v = sizes.stride_w == 1");
    clconv_emit_line(e, "    ? window_x16(x, i, x_end)");
    clconv_emit_line(e, "    : gather_x16(x, i, sizes.stride_w, first, "
                        "min(last, 16));");
}

/* NCHW: sum[t] = sum over c of X[n][c][row][column..] * W[k + t][c][r][s]. */
static void emit_products_nchw(clconv_emit *e, int vec)
{
    bool prepared = vec > 1;
    if (!prepared)
        clconv_emit_line(e, "int past = sizes.group_k - 1 - at.k;");
    clconv_emit_line(e, "long i = line + column;");
    clconv_emit_open(e, "for (int c = 0; c < sizes.group_c; ++c)");
    emit_vector(e, vec);
    clconv_generic_emit_each_tile(e, prepared
                                         ? "    sum[t] += v * w[f + t];"
                                         : "    sum[t] += v * load_w(w, f + "
                                           "min(t, past) * sizes.w_image);");
    clconv_emit_line(e, "i += sizes.x_channel;");
    clconv_emit_line(e, prepared ? "f += sizes.group_k;"
                                 : "f += sizes.w_channel;");
    clconv_emit_close(e);
}

/* NHWC: the same for columns column + t * stride_w; those that X does not have
 * are read from its nearest. */
static void emit_products_nhwc(clconv_emit *e, int vec)
{
    bool prepared = vec > 1;
    clconv_emit_line(e, "long i[$tile];");
    clconv_generic_emit_each_tile(
        e, "    i[t] = line + (column + (long)clamp(t, first, last - 1) * "
           "sizes.stride_w) * sizes.x_column;");
    clconv_emit_open(e, "for (int c = 0; c < sizes.group_c; ++c)");
    clconv_emit_line(e, prepared ? "$float v = vload$vn(0, w + f);"
                                 : "float v = load_w(w, f);");
    clconv_generic_emit_each_tile(e, "    sum[t] += load_x(x, i[t] + c) * v;");
    clconv_emit_line(e, prepared ? "f += sizes.group_k;"
                                 : "f += sizes.w_channel;");
    clconv_emit_close(e);
}

/* f: the first weight; line: channel first_c, column 0 of X's row. */
static void emit_starts(clconv_emit *e, bool prepared)
{
    if (prepared) {
        clconv_emit_line(e, "long tap = ((long)at.group * sizes.r + r) * "
                            "sizes.s + s;");
        clconv_emit_line(e, "long f = tap * sizes.group_c * sizes.group_k + "
                            "at.k;");
    } else {
        clconv_emit_line(e, "long f = ((long)at.group * sizes.group_k + at.k) "
                            "* sizes.w_image +");
        clconv_emit_line(e, "    r * sizes.w_row + s * sizes.w_column;");
    }
    clconv_emit_line(e, "long line = at.n * sizes.x_image + "
                        "row * sizes.x_row +");
    clconv_emit_line(e, "    (long)at.group * sizes.group_c * "
                        "sizes.x_channel;");
}

/* Adds the sums to the totals where X has the column. */
static void emit_add(clconv_emit *e, bool nchw)
{
    if (nchw) {
        clconv_emit_line(e, "$int hit = (lanes >= first) & (lanes < last);");
        clconv_generic_emit_each_tile(e, "    total[t] = select(total[t], "
                                         "total[t] + sum[t], hit);");
    } else {
        clconv_emit_line(e, "#pragma unroll");
        clconv_emit_line(e, "for (int t = 0; t < $tile; ++t)");
        clconv_emit_line(e, "    if (t >= first && t < last)");
        clconv_emit_line(e, "        total[t] += sum[t];");
    }
}

/* The taps of one filter row r, which meets a row of X. Columns first to
 * last - 1 of the tile are X's: so reckoned, no product leaves an int. */
static void emit_row(clconv_emit *e, const clconv_task *t)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_emit_open(e, "for (int s = 0; s < sizes.s; ++s)");
    clconv_emit_line(e, "int column = at.q * sizes.stride_w + "
                        "s * sizes.dilation_w - sizes.pad_left;");
    clconv_emit_line(e, "int first = column < 0 ? (-1 - column) / "
                        "sizes.stride_w + 1 : 0;");
    clconv_emit_line(e, "int last = column < sizes.w");
    clconv_emit_line(e, "    ? (sizes.w - 1 - column) / sizes.stride_w + 1 "
                        ": 0;");
    clconv_emit_line(e, "if (first >= min(last, $reach))");
    clconv_emit_line(e, "    continue;");
    emit_starts(e, prepares(t));
    clconv_emit_line(e, "$float sum[$tile];");
    clconv_generic_emit_each_tile(e, "    sum[t] = 0.0f;");
    if (nchw)
        emit_products_nchw(e, t->values[VEC]);
    else
        emit_products_nhwc(e, t->values[VEC]);
    emit_add(e, nchw);
    clconv_emit_close(e);
}

static void emit_taps(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e, "for (int r = 0; r < sizes.r; ++r)");
    clconv_emit_line(e, "int row = at.p * sizes.stride_h + "
                        "r * sizes.dilation_h - sizes.pad_top;");
    clconv_emit_line(e, "if (row < 0 || row >= sizes.h)");
    clconv_emit_line(e, "    continue;");
    emit_row(e, t);
    clconv_emit_close(e);
}

/* first_k: the tile's first channel of all. */
static void emit_bias(clconv_emit *e, bool nchw, int vec)
{
    clconv_emit_open(e, "if (b)");
    if (nchw) {
        clconv_generic_emit_each_tile(e, "    total[t] += load_b(b, first_k + "
                                         "min(t, sizes.group_k - 1 - at.k));");
    } else {
        clconv_emit_line(e, vec > 1 ? "float16 bias = window_b16(b, first_k, "
                                      "sizes.k);"
                                    : "float bias = load_b(b, first_k);");
        clconv_generic_emit_each_tile(e, "    total[t] += bias;");
    }
    clconv_emit_close(e);
}

/* Y lies as dY does. */
static void emit_put(clconv_emit *e, bool nchw)
{
    clconv_emit_line(e, "long i = at.n * sizes.dy_image + "
                        "first_k * sizes.dy_channel +");
    clconv_emit_line(e, "    at.p * sizes.dy_row + at.q * sizes.dy_column;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int t = 0; t < $tile; ++t)");
    if (nchw) {
        clconv_emit_line(e, "    if (at.k + t < sizes.group_k)");
        clconv_emit_line(e, "        put_y$vn(y, i + t * sizes.dy_channel, 1, "
                            "sizes.q - at.q, total[t], beta$tally_pass);");
    } else {
        clconv_emit_line(e, "    if (at.q + t < sizes.q)");
        clconv_emit_line(e, "        put_y$vn(y, i + t * sizes.dy_column, 1, "
                            "sizes.group_k - at.k, total[t], "
                            "beta$tally_pass);");
    }
}

/* Tiles of columns vary fastest, so that neighbours read and write
 * neighbours. */
static void emit_find_place(clconv_emit *e, const clconv_task *t)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_emit_set(e, "step_q", t->values[nchw ? VEC : TILE]);
    clconv_emit_set(e, "step_k", t->values[nchw ? TILE : VEC]);
    clconv_emit_line(e, "int tiles = (sizes.q - 1) / $step_q + 1;");
    clconv_emit_line(e, "int blocks = (sizes.group_k - 1) / $step_k + 1;");
    clconv_generic_emit_place(e, "column", "tiles");
    clconv_generic_emit_place(e, "p", "sizes.p");
    clconv_generic_emit_place(e, "block", "blocks");
    clconv_generic_emit_place(e, "group", "sizes.groups");
    clconv_emit_line(e, "if (item >= sizes.n)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "place_t at = { (int)item, group, block * $step_k, p, "
                        "column * $step_q };");
}

static const char *type_name(bool half_type)
{
    return half_type ? "half" : "float";
}

static void set_types(clconv_emit *e, const clconv_task *t)
{
    bool half_w = clconv_operand_is_half(t, CLCONV_W) && !prepares(t);
    clconv_emit_set_text(e, "x_type",
                         type_name(clconv_operand_is_half(t, CLCONV_X)));
    clconv_emit_set_text(e, "w_type", type_name(half_w));
    clconv_emit_set_text(e, "b_type",
                         type_name(t->problem->type[CLCONV_B] == CLCONV_F16));
}

/* The work-item's tile of Y, $tile vectors. */
static void emit_tile(clconv_emit *e, const clconv_task *t)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    int vec = t->values[VEC];
    clconv_operand_set_width(e, vec);
    clconv_generic_set_lanes(e, vec);
    clconv_emit_set(e, "reach", nchw ? vec : t->values[TILE]);
    clconv_entry_emit_apart(e, t, t->values[LWS]);
    clconv_emit_line(e, "static void tile(__global const $x_type *x, "
                        "__global const $w_type *w,");
    clconv_emit_line(e, "    __global const $b_type *b, __global $stored *y, "
                        "float beta$tally_parameter,");
    clconv_emit_open(e, "    sizes_t sizes, long item)");
    emit_find_place(e, t);
    clconv_emit_line(e, "long first_k = (long)at.group * sizes.group_k + "
                        "at.k;");
    if (nchw && vec > 1)
        clconv_emit_line(e, "long x_end = sizes.n * sizes.x_image;");
    if (nchw)
        clconv_emit_line(e, "$int lanes = $lanes;");
    clconv_emit_line(e, "$float total[$tile];");
    clconv_generic_emit_each_tile(e, "    total[t] = 0.0f;");
    emit_taps(e, t);
    emit_bias(e, nchw, vec);
    emit_put(e, nchw);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The entry point -------------------------------------------------- */

static void emit_entry(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass = main_pass(t, t->problem->n);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_output_emit_tally(e, t->problem, CLCONV_Y);
    clconv_emit_set_text(e, "weights", prepares(t) ? "scratch" : "w");
    clconv_emit_line(e, "tile(x, $weights, b, y, beta$tally, sizes, "
                        "(long)get_global_id(0));");
    clconv_output_emit_flush(e, t->problem, CLCONV_Y);
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_sizes_emit(e);
    set_types(e, t);
    emit_loads(e, t);
    if (prepares(t)) {
        clconv_emit_set_text(e, "stored",
                             type_name(clconv_operand_is_half(t, CLCONV_W)));
        emit_weights(e, t);
    }
    clconv_output_emit_put(e, t->problem, CLCONV_Y, t->values[VEC]);
    emit_place_type(e);
    emit_tile(e, t);
    emit_entry(e, t);
}

const clconv_kernel clconv_forward_generic = {
    .name = ENTRY,
    .role = CLCONV_ROLE_FORWARD,
    .revision = 1,
    .summary = "Y of any problem, all sizes as arguments",
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

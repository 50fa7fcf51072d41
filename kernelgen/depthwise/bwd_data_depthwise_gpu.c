/*
 * dX of depthwise problems on a GPU: a work-item an element, or four: channels
 * of a pixel (NHWC), rows of a column (NCHW, not strided).
 *
 *     a work-item: an image, a channel, h, w of dX; neighbours along the
 *                  fastest dimension of dX
 *         for those r and s that the strides allow, for the planes
 *             sum += dY[p][q] * W[r][s]
 *
 * Four rows rather than columns: work-items side by side read and write
 * neighbours, and what belongs to a column is worked out once.
 *
 * Rows of dY are read R * S times, but from memory once: neighbours share
 * them in the caches. A tap that leaves dY is left out
 * or, where one of the four rows meets it, adds a zero.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "depthwise.h"
#include "entry.h"
#include "generic.h"
#include "integers.h"
#include "kernel.h"
#include "operand.h"
#include "output.h"
#include "sizes.h"

#define ENTRY "bwd_data_depthwise_gpu"

enum { VEC, LWS, CAST, PARAMS };

static const clconv_param params[PARAMS] = {
    [VEC] = {"vec", CLCONV_VALUES(4, 1),
             "NHWC: channels, NCHW: rows of a work-item"},
    [LWS] = {"lws", CLCONV_VALUES(128, 64, 256), "work-items of a group"},
    [CAST] = {"cast", CLCONV_CAST_NAMES, "where fp32 operands are rounded"},
};

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return clconv_depthwise_is(p) &&
           (size_t)params[LWS].values[1] <= d->max_work_group;
}

/* Do vectors hold channels that lie side by side in every tensor, or rows
 * that meet rows side by side? */
static bool can_vector(const clconv_problem *p, int vec)
{
    if (p->layout == CLCONV_NCHW)
        return vec == 1 ||
               (p->stride_h == 1 && p->h + p->pad_top <= INT32_MAX - vec);
    return vec == 1 || (p->group_k == 1 && p->groups % vec == 0);
}

/* Does a work-item compute several rows? */
static bool takes_rows(const clconv_task *t)
{
    return t->problem->layout == CLCONV_NCHW && t->values[VEC] > 1;
}

static int64_t items_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    if (takes_rows(t))
        return batch * p->c * p->w * clconv_divide_up(p->h, t->values[VEC]);
    return batch * p->c * p->h * p->w / t->values[VEC];
}

static bool legal(const clconv_task *t)
{
    return (size_t)t->values[LWS] <= t->device->max_work_group &&
           can_vector(t->problem, t->values[VEC]);
}

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    if (!can_vector(p, values[VEC]))
        values[VEC] = 1;
    if ((size_t)values[LWS] > d->max_work_group)
        values[LWS] = params[LWS].values[1];
}

static unsigned wants_copies(const clconv_task *t)
{
    if (t->values[CAST] == CLCONV_CAST_FUSED)
        return 0;
    return clconv_operand_cast_bits(t->problem, CLCONV_BIT(CLCONV_DY) |
                                                    CLCONV_BIT(CLCONV_W));
}

/* Of a tap: addresses and conditions beside the multiply-add. */
#define GPU_TAP 12
/* As work-items of one, on a CPU. */
#define CPU_TAP 400

/* A GPU computes while it waits for memory. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double taps = clconv_cost_multiply(p) / t->values[VEC] *
                  (t->device->is_cpu ? CPU_TAP : GPU_TAP);
    double moved = clconv_cost_move(
        t->device, (double)(clconv_problem_bytes(p, CLCONV_DY) +
                            clconv_problem_bytes(p, CLCONV_DX)));
    return (taps > moved ? taps : moved) + clconv_cost_launch(t->device, 1);
}

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 0;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    const clconv_problem *p = t->problem;
    *out = (clconv_pass){.entry = ENTRY, .serves = CLCONV_OP_DX};
    out->local = (size_t)t->values[LWS];
    out->groups = (size_t)clconv_divide_up(items_of(t, batch), t->values[LWS]);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(p, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_SIZES, CLCONV_DX);
    return 1;
}

/* ---- Text ------------------------------------------------------------- */

/* The weights of one tap: those of four filters lie a filter apart. */
static void emit_weight(clconv_emit *e, bool channels)
{
    clconv_emit_line(e, "static $float weight_of(__global const $w_type *w, "
                        "long f, long filter)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, channels
                            ? "return (float4)(load_w(w, f), load_w(w, f + "
                              "filter), load_w(w, f + 2 * filter), "
                              "load_w(w, f + 3 * filter));"
                            : "return load_w(w, f);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Element i of row p of dY and those below it, step apart. */
static void emit_rows(clconv_emit *e, int rows)
{
    clconv_emit_line(e, "static $float rows_of(__global const $dy_type *dy, "
                        "long i, long step, int p, int end)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "$float v = 0.0f;");
    for (int row = 0; row < rows; ++row) {
        clconv_emit_set(e, "row", row);
        clconv_emit_line(e, "if (p + $row >= 0 && p + $row < end)");
        clconv_emit_line(e, "    v.s$row = load_dy(dy, i + $row * step);");
    }
    clconv_emit_line(e, "return v;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_store_rows(clconv_emit *e, int rows)
{
    clconv_emit_line(e, "const long to = item * sizes.x_image + "
                        "c * sizes.x_channel + h * sizes.x_row +");
    clconv_emit_line(e, "    w_column * sizes.x_column;");
    for (int row = 0; row < rows; ++row) {
        clconv_emit_set(e, "row", row);
        if (row > 0)
            clconv_emit_line(e, "if (h + $row < sizes.h)");
        clconv_emit_line(e, row > 0 ? "    store_dx(dx, to + $row * "
                                      "sizes.x_row, sum.s$row, beta$tally);"
                                    : "store_dx(dx, to, sum.s0, beta$tally);");
    }
}

/* Strides are mostly 1, and divisions long. */
static void emit_divide(clconv_emit *e)
{
    clconv_emit_open(e, "static int divide(int a, int stride)");
    clconv_emit_line(e, "return stride == 1 ? a : a / stride;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Divisions of 32 bits are several times as fast as those of 64. */
static const char *item_type(const clconv_task *t)
{
    int64_t launched = items_of(t, t->problem->n) + t->values[LWS];
    return launched <= UINT32_MAX ? "uint" : "long";
}

static void emit_find_place(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    clconv_emit_set_text(e, "item", item_type(t));
    clconv_emit_line(e, "$item item = ($item)get_global_id(0);");
    if (p->layout == CLCONV_NHWC) {
        clconv_emit_line(e, "const int blocks = sizes.c / $vec;");
        clconv_generic_emit_place(e, "block", "blocks");
    }
    clconv_generic_emit_place(e, "w_column", "sizes.w");
    if (takes_rows(t)) {
        clconv_emit_line(e,
                         "const int h_blocks = (sizes.h + $vec - 1) / $vec;");
        clconv_generic_emit_place(e, "h_block", "h_blocks");
        clconv_emit_line(e, "const int h = h_block * $vec;");
    } else {
        clconv_generic_emit_place(e, "h", "sizes.h");
    }
    if (p->layout == CLCONV_NCHW)
        clconv_generic_emit_place(e, "c", "sizes.c");
    else
        clconv_emit_line(e, "const int c = block * $vec;");
    clconv_emit_line(e, "if (item >= sizes.n)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "const int k = c * sizes.group_k;");
}

/* What the row of dY and of filters adds. */
static void emit_columns(clconv_emit *e, bool rows)
{
    clconv_emit_open(e, "for (int s = 0; s < sizes.s; ++s)");
    clconv_emit_line(e, "const int left = w_column + sizes.pad_left - "
                        "s * sizes.dilation_w;");
    clconv_emit_line(e, "const int q = divide(left, sizes.stride_w);");
    clconv_emit_line(e, "if (left < 0 || q >= sizes.q || "
                        "q * sizes.stride_w != left)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "long i = row + q * sizes.dy_column;");
    clconv_emit_line(e, "long f = filter + s * sizes.w_column;");
    clconv_emit_open(e, "for (int plane = 0; plane < sizes.group_k; ++plane)");
    clconv_emit_line(e, rows ? "sum += rows_of(dy, i, sizes.dy_row, p, sizes.p)"
                               " * weight_of(w, f, sizes.w_image);"
                             : "sum += load_dy$vn(dy, i) * weight_of(w, f, "
                               "sizes.w_image);");
    clconv_emit_line(e, "i += sizes.dy_channel;");
    clconv_emit_line(e, "f += sizes.w_image;");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_sum(clconv_emit *e, bool rows)
{
    clconv_emit_line(e, "const long image = item * sizes.dy_image + "
                        "k * sizes.dy_channel;");
    clconv_emit_line(e, "$float sum = 0.0f;");
    clconv_emit_open(e, "for (int r = 0; r < sizes.r; ++r)");
    if (rows) {
        clconv_emit_line(e, "const int p = h + sizes.pad_top - "
                            "r * sizes.dilation_h;");
        clconv_emit_line(e, "if (p <= -$vec || p >= sizes.p)");
    } else {
        clconv_emit_line(e, "const int up = h + sizes.pad_top - "
                            "r * sizes.dilation_h;");
        clconv_emit_line(e, "const int p = divide(up, sizes.stride_h);");
        clconv_emit_line(e, "if (up < 0 || p >= sizes.p || "
                            "p * sizes.stride_h != up)");
    }
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "const long row = image + p * sizes.dy_row;");
    clconv_emit_line(e, "const long filter = k * sizes.w_image + "
                        "r * sizes.w_row;");
    emit_columns(e, rows);
    clconv_emit_close(e);
}

static void emit_helpers(clconv_emit *e, const clconv_task *t)
{
    int vec = t->values[VEC];
    int side_by_side = takes_rows(t) ? 1 : vec;
    clconv_operand_emit_load(e, t, CLCONV_DY, side_by_side);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    clconv_output_emit_store(e, t->problem, CLCONV_DX, side_by_side);
    clconv_depthwise_set_types(e, t);
    clconv_operand_set_width(e, vec);
    if (takes_rows(t))
        emit_rows(e, vec);
    emit_weight(e, side_by_side > 1);
    emit_divide(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass;
    passes(t, t->problem->n, &pass);
    clconv_sizes_emit(e);
    emit_helpers(e, t);
    clconv_entry_open(e, t, &pass, NULL);
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    emit_find_place(e, t);
    emit_sum(e, takes_rows(t));
    if (takes_rows(t)) {
        emit_store_rows(e, t->values[VEC]);
    } else {
        clconv_emit_line(e, "store_dx$vn(dx, item * sizes.x_image + "
                            "c * sizes.x_channel + h * sizes.x_row +");
        clconv_emit_line(e, "    w_column * sizes.x_column, sum, beta$tally);");
    }
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_depthwise_gpu = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 2,
    .summary = "depthwise on GPUs: a work-item an element, or four",
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

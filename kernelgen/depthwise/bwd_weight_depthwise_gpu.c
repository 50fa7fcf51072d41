/*
 * dW of depthwise problems on a GPU, summed in two stages.
 *
 *     a work-group: channels k that lie side by side (one if NCHW), a block of
 *                   filter taps, a part of the strips; a strip is a band of
 *                   rows p of an image
 *         for each strip; a work-item: every so many pixels p, q of a channel
 *             for the taps whose x is in X
 *                 sums[tap] += dY[p][q] * X[h][w]
 *             now and then: totals += sums, sums = 0
 *         the totals of a channel, pairwise, in local memory -> scratch[part]
 *     sum: dW = the parts, added in order
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

#define ENTRY "bwd_weight_depthwise_gpu"
#define ENTRY_SUM "bwd_weight_depthwise_gpu_sum"

enum { TAPS, SPLIT, LWS, CAST, PARAMS };

static const clconv_param params[PARAMS] = {
    [TAPS] = {"taps", CLCONV_VALUES(9, 25, 3), "of a work-item"},
    [SPLIT] = {"split", CLCONV_VALUES(1, 8, 64, 256), "parts of the sum"},
    [LWS] = {"lws", CLCONV_VALUES(128, 64, 256), "work-items of a group"},
    [CAST] = {"cast", CLCONV_CAST_NAMES, "where fp32 operands are rounded"},
};

/* Pixels whose products are summed before they join the total. */
#define CHAIN 256

/* Channels of a work-group, so many that their reads fill cache lines. */
#define NHWC_CHANNELS 32

static int64_t channels_of(const clconv_problem *p)
{
    return p->layout == CLCONV_NHWC ? NHWC_CHANNELS : 1;
}

/* ---- Geometry --------------------------------------------------------- */

/* Work-groups of a part. */
static int64_t part_groups(const clconv_problem *p, const int *values)
{
    return clconv_divide_up(p->k, channels_of(p)) *
           clconv_divide_up(p->r * p->s, values[TAPS]);
}

static clconv_shape shape_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    int64_t images = p->n > 0 ? p->n : 1;
    int64_t wanted = clconv_divide_up(t->values[SPLIT], images);
    int64_t band = clconv_divide_up(p->p, wanted < p->p ? wanted : p->p);
    clconv_shape s = {.baked = false};
    clconv_depthwise_add_sizes(&s, p, batch);
    clconv_shape_add(&s, "k", p->k);
    clconv_shape_add(&s, "k_blocks", clconv_divide_up(p->k, channels_of(p)));
    clconv_shape_add(&s, "tap_blocks",
                     clconv_divide_up(p->r * p->s, t->values[TAPS]));
    clconv_shape_add(&s, "elements", clconv_problem_elements(p, CLCONV_DW));
    clconv_shape_add(&s, "parts", t->values[SPLIT]);
    clconv_shape_add(&s, "band", band);
    clconv_shape_add(&s, "bands", clconv_divide_up(p->p, band));
    return s;
}

/* ---- What it can do --------------------------------------------------- */

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    return clconv_depthwise_is(p) && p->p <= INT32_MAX / p->q &&
           (size_t)params[LWS].values[1] <= d->max_work_group;
}

static size_t scratch(const clconv_task *t)
{
    return (size_t)clconv_problem_elements(t->problem, CLCONV_DW) *
           (size_t)t->values[SPLIT] * sizeof(float);
}

static bool legal(const clconv_task *t)
{
    return (size_t)t->values[LWS] <= t->device->max_work_group &&
           (size_t)t->values[LWS] * sizeof(float) <= t->device->local_memory &&
           scratch(t) <= t->device->max_allocation;
}

/* Work-groups that keep a unit busy. */
#define GROUPS 8

static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    if (p->r * p->s > values[TAPS])
        values[TAPS] = params[TAPS].values[1];
    if ((size_t)values[LWS] > d->max_work_group)
        values[LWS] = params[LWS].values[1];
    values[SPLIT] =
        clconv_depthwise_split(&params[SPLIT], (double)part_groups(p, values),
                               GROUPS * d->compute_units, p->n * p->p);
    clconv_task t = {.problem = p, .device = d, .values = values};
    if (!legal(&t))
        values[SPLIT] = 1;
}

static unsigned wants_copies(const clconv_task *t)
{
    if (t->values[CAST] == CLCONV_CAST_FUSED)
        return 0;
    return clconv_operand_cast_bits(t->problem, CLCONV_BIT(CLCONV_DY) |
                                                    CLCONV_BIT(CLCONV_X));
}

/* Of a tap: addresses and conditions beside the multiply-add. */
#define GPU_TAP 10
/* As work-items of one, on a CPU. */
#define CPU_TAP 400

/* A GPU computes while it waits for memory. */
static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double taps =
        clconv_cost_multiply(p) * (t->device->is_cpu ? CPU_TAP : GPU_TAP);
    double moved = clconv_cost_move(
        t->device, (double)(clconv_problem_bytes(p, CLCONV_DY) +
                            clconv_problem_bytes(p, CLCONV_X) + 2 * scratch(t)));
    return (taps > moved ? taps : moved) + clconv_cost_launch(t->device, 2);
}

static clconv_pass main_pass(const clconv_task *t, const clconv_shape *s)
{
    clconv_pass pass = {.entry = ENTRY, .serves = CLCONV_OP_DW};
    pass.local = (size_t)t->values[LWS];
    pass.groups =
        (size_t)(part_groups(t->problem, t->values) * t->values[SPLIT]);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(&pass, CLCONV_ARG_OPERAND, CLCONV_X);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_shape_arg(s, &pass);
    return pass;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    clconv_shape s = shape_of(t, batch);
    out[0] = main_pass(t, &s);
    out[1] = clconv_depthwise_sum_pass(t, &s, ENTRY_SUM, 1, t->values[LWS]);
    return 2;
}

/* ---- Text ------------------------------------------------------------- */

/* channel: of the work-group's; k may be beyond the last, for every work-item
 * takes part in the sum. */
static void emit_find_place(clconv_emit *e)
{
    clconv_emit_line(e, "const int id = get_local_id(0);");
    clconv_emit_line(e, "long group = get_group_id(0);");
    clconv_emit_line(e, "const long k = group % shape.k_blocks * $channels + "
                        "id % $channels;");
    clconv_emit_line(e, "group /= shape.k_blocks;");
    clconv_emit_line(e, "const int first_tap = group % shape.tap_blocks * "
                        "$taps;");
    clconv_emit_line(e, "const long part = group / shape.tap_blocks;");
    clconv_emit_line(e, "const int h_end = shape.h, w_end = shape.w;");
    clconv_emit_line(e, "const int filter = shape.r * shape.s;");
    clconv_emit_line(e, "float sums[$taps], totals[$taps];");
    clconv_emit_line(e, "int up[$taps], left[$taps];");
}

/* Where tap t stands to row and column 0 of dY; one beyond the filter meets
 * no row. */
static void emit_find_taps(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int t = 0; t < $taps; ++t)");
    clconv_emit_line(e, "const int tap = first_tap + t;");
    clconv_emit_line(e, "sums[t] = totals[t] = 0.0f;");
    clconv_emit_line(e, "left[t] = tap % shape.s * shape.dilation_w - "
                        "shape.pad_left;");
    clconv_emit_line(e, "up[t] = tap < filter ? tap / shape.s * "
                        "shape.dilation_h - shape.pad_top : (int)0x80000000;");
    clconv_emit_close(e);
}

static void emit_fold(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int t = 0; t < $taps; ++t)");
    clconv_emit_line(e, "totals[t] += sums[t];");
    clconv_emit_line(e, "sums[t] = 0.0f;");
    clconv_emit_close(e);
}

/* Pixel p, q of dY against the taps. */
static void emit_pixel(clconv_emit *e)
{
    clconv_emit_line(e, "const int p = first_p + pixel / columns;");
    clconv_emit_line(e, "const int q = pixel % columns;");
    clconv_emit_line(e, "const float d = load_dy(dy, from + p * shape.dy_row + "
                        "q * shape.dy_column);");
    clconv_emit_line(e, "const int first_h = p * shape.stride_h;");
    clconv_emit_line(e, "const int first_w = q * shape.stride_w;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int t = 0; t < $taps; ++t)");
    clconv_emit_line(e, "const int h = first_h + up[t];");
    clconv_emit_line(e, "const int w = first_w + left[t];");
    clconv_emit_line(e, "if (h >= 0 && h < h_end && w >= 0 && w < w_end)");
    clconv_emit_line(e, "    sums[t] += d * load_x(x, x_from + h * shape.x_row "
                        "+ w * shape.x_column);");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (++pending == $chain)");
    clconv_emit_line(e, "pending = 0;");
    emit_fold(e);
    clconv_emit_close(e);
}

static void emit_strips(clconv_emit *e)
{
    clconv_emit_line(e, "const long strips = k < shape.k ? shape.n * "
                        "shape.bands : 0;");
    clconv_emit_line(e, "const long last = strips * (part + 1) / "
                        "shape.parts;");
    clconv_emit_line(e, "const int columns = shape.q;");
    clconv_emit_line(e, "int pending = 0;");
    clconv_emit_open(e, "for (long strip = strips * part / shape.parts; "
                        "strip < last; ++strip)");
    clconv_emit_line(e, "const int first_p = strip % shape.bands * "
                        "shape.band;");
    clconv_emit_line(e, "const int pixels = (min(first_p + shape.band, "
                        "shape.p) - first_p) * columns;");
    clconv_emit_line(e, "const long n = strip / shape.bands;");
    clconv_emit_line(e, "const long from = n * shape.dy_image + "
                        "k * shape.dy_channel;");
    clconv_emit_line(e, "const long x_from = n * shape.x_image + "
                        "k / shape.planes * shape.x_channel;");
    clconv_emit_open(e, "for (int pixel = id / $channels; pixel < pixels; "
                        "pixel += $lws / $channels)");
    emit_pixel(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    emit_fold(e);
}

/* Work-items of the same channel are $channels apart. */
static void emit_reduce(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int t = 0; t < $taps; ++t)");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "shared[id] = totals[t];");
    clconv_emit_open(e, "for (int half_size = $lws / 2; half_size >= "
                        "$channels; half_size /= 2)");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "if (id < half_size)");
    clconv_emit_line(e, "    shared[id] += shared[id + half_size];");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (id < $channels && k < shape.k && first_tap + t < "
                        "filter)");
    clconv_emit_line(e, "    scratch[part * shape.elements + k * filter + "
                        "first_tap + t] = shared[id];");
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass[CLCONV_MAX_PASSES];
    clconv_shape s = shape_of(t, t->problem->n);
    passes(t, t->problem->n, pass);
    clconv_emit_set(e, "channels", channels_of(t->problem));
    clconv_emit_set(e, "chain", CHAIN);
    clconv_shape_emit(e, &s);
    clconv_operand_emit_load(e, t, CLCONV_DY, 1);
    clconv_operand_emit_load(e, t, CLCONV_X, 1);
    clconv_shape_open(e, t, &pass[0], &s);
    clconv_emit_line(e, "__local float shared[$lws];");
    emit_find_place(e);
    emit_find_taps(e);
    emit_strips(e);
    emit_reduce(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_depthwise_emit_sum(e, t, &pass[1], &s, 1);
}

const clconv_kernel clconv_bwd_weight_depthwise_gpu = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 1,
    .summary = "depthwise on GPUs: a work-group a channel, two-stage sums",
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

/*
 * dX of grouped problems on a GPU.
 *
 *     a work-group: lanes quads of channels side by side, some strips of rows h
 *         the weights of these channels -> local memory, [k][r][s][quad]
 *         a work-item: a quad; for each of some strips
 *             for each row p that h meets by some r; four channels k at a time
 *                 the strip of dY -> registers
 *                 for the four k, for all s, for the columns w
 *                     sums[w] += dY[k][p][q] * W[k][r][s]
 *             sums -> dX
 *
 * Where dY ends, zeros are multiplied.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "entry.h"
#include "grouped.h"
#include "integers.h"
#include "kernel.h"
#include "operand.h"
#include "output.h"
#include "strip.h"
#include "strip_put.h"

#define ENTRY "bwd_data_grouped"
#define QUAD CLCONV_QUAD

enum { COLUMNS, TURNS, LWS, SHAPE, PARAMS };

static const clconv_param params[PARAMS] = {
    [COLUMNS] = {"columns", CLCONV_VALUES(4, 8, 2, 1),
                 "of dY, stride_w times that of dX"},
    [TURNS] = {"turns", CLCONV_VALUES(4, 1, 2, 8), "strips of a work-item"},
    [LWS] = {"lws", CLCONV_VALUES(128, 256, 64), "work-items of a group"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define TENSORS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_DX))

/* ---- Geometry --------------------------------------------------------- */

static int64_t strips_of(const clconv_problem *p, const int *values)
{
    return clconv_divide_up(p->w, values[COLUMNS] * p->stride_w);
}

/* Strips of a work-group, all turns. */
static int64_t group_strips(const clconv_problem *p, const int *values)
{
    return values[LWS] / clconv_grouped_lanes(p) * values[TURNS];
}

static clconv_shape shape_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    clconv_strip_span n = clconv_strip_span_of(p, t->values[COLUMNS]);
    clconv_shape s = {.baked = t->baked};
    clconv_grouped_add_sizes(&s, p, batch);
    clconv_shape_add(&s, "strips", strips_of(p, t->values));
    clconv_shape_add(&s, "first_q", p->pad_left / p->stride_w + n.first_q);
    return s;
}

/* ---- What it can do --------------------------------------------------- */

static int64_t weights_of(const clconv_problem *p)
{
    return p->group_k * p->r * p->s * clconv_grouped_lanes(p);
}

/* Registers of a work-item that hold data; more would spill. */
static int64_t live(const clconv_problem *p, const int *values)
{
    clconv_strip_span n = clconv_strip_span_of(p, values[COLUMNS]);
    return (n.columns + 2 * n.reads) * QUAD;
}

#define MAX_LIVE 160

static bool fits(const clconv_problem *p, const clconv_device *d,
                 const int *values)
{
    return live(p, values) <= MAX_LIVE &&
           (size_t)values[LWS] <= d->max_work_group &&
           (size_t)weights_of(p) * QUAD * sizeof(float) <= d->local_memory;
}

static bool legal(const clconv_task *t)
{
    return fits(t->problem, t->device, t->values);
}

/* A GPU's compiler makes faster code of sizes that it knows. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    if (!d->is_cpu)
        values[SHAPE] = CLCONV_SHAPE_BAKED;
    if (p->layout == CLCONV_NCHW && p->stride_w == 1)
        values[COLUMNS] = params[COLUMNS].values[1];
    while (values[COLUMNS] > 1 && live(p, values) > MAX_LIVE)
        values[COLUMNS] /= 2;
    while (values[LWS] > 64 && (size_t)values[LWS] > d->max_work_group)
        values[LWS] /= 2;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    if (!clconv_grouped_covers(p, TENSORS))
        return false;
    defaults(p, d, values);
    return fits(p, d, values);
}

static unsigned wants_copies(const clconv_task *t)
{
    (void)t;
    return 0;
}

/* Of a multiply-add at the peak. */
#define GPU_MULTIPLY 2.3
/* As work-items of one, on a CPU. */
#define CPU_MULTIPLY 400

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double work = clconv_cost_multiply(p) *
                  (t->device->is_cpu ? CPU_MULTIPLY : GPU_MULTIPLY);
    double moved = clconv_cost_move(
        t->device, (double)(clconv_problem_bytes(p, CLCONV_DY) +
                            clconv_problem_bytes(p, CLCONV_DX)));
    return (work > moved ? work : moved) + clconv_cost_launch(t->device, 1);
}

static size_t scratch(const clconv_task *t)
{
    (void)t;
    return 0;
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    const clconv_problem *p = t->problem;
    int64_t strips = batch * p->h * strips_of(p, t->values);
    clconv_shape s = shape_of(t, batch);
    *out = (clconv_pass){.entry = ENTRY, .serves = CLCONV_OP_DX};
    out->local = (size_t)t->values[LWS];
    out->groups = (size_t)(clconv_divide_up(strips, group_strips(p, t->values)) *
                           clconv_grouped_blocks(p));
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(p, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_shape_arg(&s, out);
    return 1;
}

/* ---- Text ------------------------------------------------------------- */

/* The weights of lanes quads from channel first_c on. */
static void emit_stage(clconv_emit *e)
{
    clconv_emit_line(e, "static void stage_weights(__local float4 *weights, "
                        "__global const $w_type *w,");
    clconv_emit_open(e, "    int first_c, int id, shape_t shape)");
    clconv_emit_open(e, "for (int i = id; i < $weights; i += $lws)");
    clconv_emit_line(e, "const int c = first_c + i % $lanes * 4;");
    clconv_emit_line(e, "const int tap = i / $lanes % $taps;");
    clconv_emit_line(e, "const long k = c / $group_c * $group_k + i / ($lanes "
                        "* $taps);");
    clconv_emit_line(e, "const long at = k * shape.w_image + c % $group_c * "
                        "shape.w_channel + tap * shape.w_tap;");
    clconv_emit_line(e, "weights[i] = (float4)(load_w(w, at), load_w(w, at + "
                        "shape.w_channel),");
    clconv_emit_line(e, "    load_w(w, at + 2 * shape.w_channel), load_w(w, "
                        "at + 3 * shape.w_channel));");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Four channels of a strip of dY against a row of their filters. */
static void emit_multiply(clconv_emit *e, const clconv_problem *p,
                          const clconv_strip_span *n)
{
    for (int k = 0; k < QUAD; ++k)
        for (int64_t s = 0; s < p->s; ++s) {
            clconv_emit_set(e, "k", k);
            clconv_emit_set(e, "at",
                            (k * p->r * p->s + s) * clconv_grouped_lanes(p));
            clconv_emit_line(e, "weight = row[$at];");
            for (int64_t j = 0; j < n->reads; ++j) {
                int64_t w = clconv_strip_meet(p, n, j, s);
                clconv_emit_set(e, "j", j);
                clconv_emit_set(e, "sum", w);
                if (w >= 0)
                    clconv_emit_line(e, "sums[$sum] = d[$j].s$k * weight + "
                                        "sums[$sum];");
            }
        }
}

static void emit_rows(clconv_emit *e, const clconv_problem *p,
                      const clconv_strip_span *n)
{
    clconv_emit_open(e, "for (int r = 0; r < (int)shape.r; ++r)");
    clconv_emit_line(e, "const int up = h + (int)shape.pad_top - r * "
                        "(int)shape.dilation_h;");
    clconv_emit_line(e, "const int p = up / (int)shape.stride_h;");
    clconv_emit_line(e, "if (up < 0 || p >= (int)shape.p || p * "
                        "(int)shape.stride_h != up)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_open(e, "for (int k = 0; k < $group_k; k += 4)");
    clconv_emit_line(e, "__local const float4 *row = weights + (k * $taps + r "
                        "* (int)shape.s) * $lanes + lane;");
    clconv_emit_line(e, "strip_dy(d, dy, n * shape.dy_image + (first_k + k) * "
                        "shape.dy_channel + p * shape.dy_row,");
    clconv_emit_line(e, "    shape.dy_channel, $dy_column, first_q, "
                        "(int)shape.q);");
    emit_multiply(e, p, n);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_put(clconv_emit *e, const clconv_problem *p,
                     const clconv_strip_span *n, int width)
{
    static const char *const lanes[QUAD] = {".s0", ".s1", ".s2", ".s3"};
    bool nhwc = p->layout == CLCONV_NHWC;
    clconv_emit_set(e, "width", width);
    clconv_emit_line(e, "const long to = n * shape.x_image + c * "
                        "shape.x_channel + h * shape.x_row + left * $column;");
    for (int lane = 0; lane < (nhwc ? 1 : QUAD); ++lane) {
        clconv_emit_open(e, NULL);
        clconv_strip_emit_values(e, nhwc ? "" : lanes[lane], 0, n->columns,
                                 nhwc ? QUAD : 1, width);
        clconv_emit_set(e, "channel", lane);
        clconv_emit_line(e, "put_row(dx, to + $channel * shape.x_channel, "
                            "values,");
        clconv_emit_line(e, nhwc ? "    (int)shape.w - left, $column, beta, "
                                   "plain$tally);"
                                 : "    ((int)shape.w - left) / $width, "
                                   "$width, beta, plain$tally);");
        clconv_emit_close(e);
    }
}

/* Divisions of 32 bits are several times as fast as those of 64. */
static const char *strip_type(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t most =
        p->n * p->h * strips_of(p, t->values) + group_strips(p, t->values);
    return most <= UINT32_MAX ? "uint" : "long";
}

static void emit_strips(clconv_emit *e, const clconv_task *t, int width)
{
    const clconv_problem *p = t->problem;
    clconv_strip_span n = clconv_strip_span_of(p, t->values[COLUMNS]);
    clconv_emit_set_text(e, "strip", strip_type(t));
    clconv_emit_set(e, "strip_columns", n.columns);
    clconv_emit_set(e, "reads", n.reads);
    clconv_emit_line(e, "const $strip strips = shape.strips, rows = shape.h;");
    clconv_emit_line(e, "$strip strip = group / shape.blocks * ($slots * "
                        "$turns) + slot;");
    clconv_emit_line(e, "float4 d[$reads], sums[$strip_columns], weight;");
    clconv_emit_open(e, "for (int turn = 0; turn < $turns; ++turn, strip += "
                        "$slots)");
    clconv_emit_line(e, "const int across = strip % strips;");
    clconv_emit_line(e, "const int left = across * $strip_columns;");
    clconv_emit_line(e, "const int first_q = shape.first_q + across * "
                        "$columns;");
    clconv_emit_line(e, "const int h = strip / strips % rows;");
    clconv_emit_line(e, "const long n = strip / strips / rows;");
    clconv_emit_line(e, "if (n >= shape.n)");
    clconv_emit_line(e, "    break;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $strip_columns; ++i)");
    clconv_emit_line(e, "    sums[i] = 0.0f;");
    emit_rows(e, p, &n);
    emit_put(e, p, &n, width);
    clconv_emit_close(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t, int width)
{
    const clconv_problem *p = t->problem;
    clconv_strip_span n = clconv_strip_span_of(p, t->values[COLUMNS]);
    bool nhwc = p->layout == CLCONV_NHWC;
    clconv_grouped_set_holes(e, t, t->values[LWS]);
    clconv_emit_set(e, "weights", weights_of(p));
    if (width != QUAD)
        clconv_strip_emit_words(e, width);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    clconv_grouped_emit_strip(e, t, CLCONV_DY, n.reads);
    emit_stage(e);
    clconv_strip_emit_put(e, p, n.columns * (nhwc ? QUAD : 1) / width, width);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    clconv_pass pass;
    clconv_shape s = shape_of(t, p->n);
    clconv_strip_span n = clconv_strip_span_of(p, t->values[COLUMNS]);
    int width =
        p->layout == CLCONV_NHWC ? QUAD : clconv_strip_row_width(p, n.columns);
    passes(t, p->n, &pass);
    clconv_shape_emit(e, &s);
    emit_functions(e, t, width);
    clconv_shape_open(e, t, &pass, &s);
    clconv_emit_line(e, "__local float4 weights[$weights];");
    clconv_output_emit_tally(e, p, CLCONV_DX);
    clconv_grouped_emit_ids(e, p);
    clconv_emit_line(e, "const int first_c = group % shape.blocks * ($lanes * "
                        "4);");
    clconv_emit_line(e, "const int c = first_c + lane * 4;");
    clconv_emit_line(e, "const int first_k = c / $group_c * $group_k;");
    clconv_emit_line(e, clconv_output_is_counted(p, CLCONV_DX)
                            ? "const int plain = beta == 0.0f && !dx_counts;"
                            : "const int plain = beta == 0.0f;");
    clconv_emit_line(e, "stage_weights(weights, w, first_c, id, shape);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    emit_strips(e, t, width);
    clconv_output_emit_flush(e, p, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_grouped = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "groups of a few channels on GPUs: weights in local memory",
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

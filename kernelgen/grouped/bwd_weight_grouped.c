/*
 * dW of grouped problems on a GPU, summed in two stages.
 *
 *     a work-group: lanes quads of channels c side by side, for each planes
 *                   channels k of its group; a row r of the filter; a part of
 *                   the sum
 *         a work-item: a quad, a strip of columns q, a run of rows n, p
 *             for each row p that meets a row of X by r
 *                 the strips of dY and X -> registers
 *                 for the channels k, for all s, for the columns q
 *                     sums[k][s] += dY[k][p][q] * X[h][w]
 *         the sums of a quad, pairwise, in local memory -> scratch[part]
 *     sum: dW = the parts, in order within each of some rows of work-items,
 *          then pairwise
 *
 * Beyond the edges of X zeros are multiplied; what is beyond dY is left out,
 * for X may hold a NaN there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "entry.h"
#include "grouped.h"
#include "integers.h"
#include "kernel.h"
#include "operand.h"
#include "strip.h"
#include "strip_sum.h"

#define ENTRY "bwd_weight_grouped"
#define ENTRY_SUM "bwd_weight_grouped_sum"
#define QUAD CLCONV_QUAD

enum { PLANES, COLUMNS, FILL, LWS, SHAPE, PARAMS };

static const clconv_param params[PARAMS] = {
    [PLANES] = {"planes", CLCONV_VALUES(8, 4), "channels of dY at once"},
    [COLUMNS] = {"columns", CLCONV_VALUES(4, 2, 8, 1), "of dY"},
    [FILL] = {"fill", CLCONV_VALUES(4, 2, 8, 16), "work-groups a compute unit"},
    [LWS] = {"lws", CLCONV_VALUES(128, 256, 64), "work-items of a group"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

#define TENSORS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X))

/* The longest chain of additions, in pixels, that parts are made for. */
#define CHAIN 512

/* ---- Geometry --------------------------------------------------------- */

typedef struct layout {
    int64_t plane_blocks; /* of the channels of dY of a group */
    int64_t strips;       /* of a row of dY */
    int64_t reads;        /* columns of X that a strip meets */
    int64_t parts;
    int64_t runs; /* that the rows of all images are split into */
} layout;

/* Work-items of a quad in a work-group. */
static int64_t slots_of(const clconv_problem *p, const int *values)
{
    return values[LWS] / clconv_grouped_lanes(p);
}

/* So many that the device is busy, each strip of a row is taken, and no chain
 * is too long. */
static int64_t parts_of(const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    int64_t slots = slots_of(p, t->values);
    int64_t wanted = (int64_t)t->device->compute_units * t->values[FILL] /
                     (clconv_grouped_blocks(p) * l->plane_blocks * p->r);
    int64_t rows = clconv_max(p->n, 1) * p->p;
    int64_t runs = clconv_divide_up(rows * t->values[COLUMNS], CHAIN);
    int64_t least = clconv_divide_up(l->strips * runs, slots);
    int64_t most = clconv_divide_up(l->strips * rows, slots);
    return clconv_max(clconv_min(clconv_max(wanted, least), most), 1);
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    int64_t columns = t->values[COLUMNS];
    layout l = {.plane_blocks = p->group_k / t->values[PLANES],
                .strips = clconv_divide_up(p->q, columns),
                .reads = (columns - 1) * p->stride_w + clconv_strip_reach_w(p)};
    l.parts = parts_of(t, &l);
    l.runs = l.parts * slots_of(p, t->values) / l.strips;
    return l;
}

static clconv_shape shape_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    clconv_shape s = {.baked = t->baked};
    clconv_grouped_add_sizes(&s, p, batch);
    clconv_shape_add(&s, "plane_blocks", l.plane_blocks);
    clconv_shape_add(&s, "strips", l.strips);
    clconv_shape_add(&s, "parts", l.parts);
    clconv_shape_add(&s, "runs", l.runs);
    clconv_shape_add(&s, "pad_left", p->pad_left);
    clconv_shape_add(&s, "elements", clconv_problem_elements(p, CLCONV_DW));
    return s;
}

/* ---- What it can do --------------------------------------------------- */

/* Registers of a work-item that hold data. */
static int64_t live(const clconv_problem *p, const int *values)
{
    int64_t reads =
        (values[COLUMNS] - 1) * p->stride_w + clconv_strip_reach_w(p);
    return (values[PLANES] * p->s + reads) * QUAD +
           values[COLUMNS] * values[PLANES];
}

/* More would spill, or leave too few work-items to hide latencies. */
#define MAX_LIVE 190
#define GOOD_LIVE 160

static size_t shared_bytes(const clconv_problem *p, const int *values)
{
    return (size_t)(p->s * QUAD * values[LWS]) * sizeof(float);
}

static size_t scratch(const clconv_task *t)
{
    return (size_t)clconv_problem_elements(t->problem, CLCONV_DW) *
           (size_t)layout_of(t).parts * sizeof(float);
}

static bool legal(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    const clconv_device *d = t->device;
    return p->group_k % t->values[PLANES] == 0 &&
           live(p, t->values) <= MAX_LIVE &&
           (size_t)t->values[LWS] <= d->max_work_group &&
           shared_bytes(p, t->values) <= d->local_memory &&
           scratch(t) <= d->max_allocation;
}

/* A GPU's compiler makes faster code of sizes that it knows; with a stride it
 * did not. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    if (!d->is_cpu && p->stride_h == 1 && p->stride_w == 1)
        values[SHAPE] = CLCONV_SHAPE_BAKED;
    if (p->layout == CLCONV_NHWC || p->group_k % values[PLANES] != 0 || p->s > 3)
        values[PLANES] = QUAD;
    while (values[COLUMNS] > 1 && live(p, values) > GOOD_LIVE)
        values[COLUMNS] /= 2;
    while (values[LWS] > 64 && ((size_t)values[LWS] > d->max_work_group ||
                                shared_bytes(p, values) > d->local_memory))
        values[LWS] /= 2;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    clconv_task t = {.problem = p, .device = d, .values = values};
    if (!clconv_grouped_covers(p, TENSORS))
        return false;
    defaults(p, d, values);
    return legal(&t);
}

static unsigned wants_copies(const clconv_task *t)
{
    (void)t;
    return 0;
}

/* Of a multiply-add at the peak, NHWC. NCHW takes twice as long, but matrix
 * products of so few channels also take longer than their cost says. */
#define GPU_MULTIPLY 2.6
/* As work-items of one, on a CPU. */
#define CPU_MULTIPLY 400

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double work = clconv_cost_multiply(p) *
                  (t->device->is_cpu ? CPU_MULTIPLY : GPU_MULTIPLY);
    double moved = clconv_cost_move(
        t->device, (double)(clconv_problem_bytes(p, CLCONV_DY) +
                            clconv_problem_bytes(p, CLCONV_X) + 2 * scratch(t)));
    return (work > moved ? work : moved) + clconv_cost_launch(t->device, 2);
}

static int passes(const clconv_task *t, int64_t batch, clconv_pass *out)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    clconv_shape s = shape_of(t, batch);
    out[0] = (clconv_pass){.entry = ENTRY, .serves = CLCONV_OP_DW};
    out[0].local = (size_t)t->values[LWS];
    out[0].groups =
        (size_t)(clconv_grouped_blocks(p) * l.plane_blocks * p->r * l.parts);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_X);
    clconv_entry_arg(out, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_shape_arg(&s, out);
    out[1] = clconv_strip_sum_pass(t, &s, ENTRY_SUM, t->values[LWS]);
    return 2;
}

/* ---- Text: rows ------------------------------------------------------- */

/* Column j of the strip of dY against a row of the filters. */
static void emit_column(clconv_emit *e, const clconv_task *t, int64_t j)
{
    const clconv_problem *p = t->problem;
    for (int k = 0; k < t->values[PLANES]; ++k)
        for (int64_t s = 0; s < p->s; ++s) {
            clconv_emit_set(e, "sum", k * p->s + s);
            clconv_emit_set(e, "d_at", k / QUAD * t->values[COLUMNS] + j);
            clconv_emit_set(e, "k", k % QUAD);
            clconv_emit_set(e, "x_at", j * p->stride_w + s * p->dilation_w);
            clconv_emit_line(e, "sums[$sum] = d[$d_at].s$k * xs[$x_at] + "
                                "sums[$sum];");
        }
}

static void emit_columns(clconv_emit *e, const clconv_task *t)
{
    int64_t columns = t->values[COLUMNS];
    bool whole = t->problem->q % columns == 0;
    for (int64_t j = 0; j < columns; ++j) {
        clconv_emit_set(e, "j", j);
        if (!whole)
            clconv_emit_open(e, "if (first_q + $j < (int)shape.q)");
        emit_column(e, t, j);
        if (!whole)
            clconv_emit_close(e);
    }
}

static void emit_row(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "strip_x(xs, x, n * shape.x_image + c * "
                        "shape.x_channel + h * shape.x_row, shape.x_channel,");
    clconv_emit_line(e, "    $column, first_w, (int)shape.w);");
    for (int k = 0; k < t->values[PLANES]; k += QUAD) {
        clconv_emit_set(e, "k", k);
        clconv_emit_set(e, "d_at", k / QUAD * t->values[COLUMNS]);
        clconv_emit_line(e, "strip_dy(d + $d_at, dy, n * shape.dy_image + "
                            "(first_k + $k) * shape.dy_channel + p * "
                            "shape.dy_row,");
        clconv_emit_line(e, "    shape.dy_channel, $dy_column, first_q, "
                            "(int)shape.q);");
    }
    emit_columns(e, t);
}

/* Rows are counted through all images. */
static void emit_run(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "const long rows = run < shape.runs ? shape.n * "
                        "shape.p : 0;");
    clconv_emit_line(e, "long left = rows * (run + 1) / shape.runs;");
    clconv_emit_line(e, "const long first = rows * run / shape.runs;");
    clconv_emit_line(e, "long n = first / shape.p;");
    clconv_emit_line(e, "int p = first - n * shape.p;");
    clconv_emit_open(e, "for (left -= first; left > 0; --left)");
    clconv_emit_line(e, "const int h = p * (int)shape.stride_h + r * "
                        "(int)shape.dilation_h - (int)shape.pad_top;");
    clconv_emit_open(e, "if (h >= 0 && h < (int)shape.h)");
    emit_row(e, t);
    clconv_emit_close(e);
    clconv_emit_open(e, "if (++p == (int)shape.p)");
    clconv_emit_line(e, "p = 0;");
    clconv_emit_line(e, "++n;");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* ---- Text: the sum over a work-group ---------------------------------- */

/* Adds, for each of the numbers that lie $lws apart, those of a quad. */
static void emit_reduce(clconv_emit *e, const clconv_problem *p)
{
    bool nhwc = p->layout == CLCONV_NHWC;
    clconv_emit_set(e, "numbers", QUAD * p->s);
    clconv_emit_open(e, "static void reduce(__local float *shared, int id)");
    clconv_emit_open(e, "for (int active = $slots / 2; active > 0; active /= "
                        "2)");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "for (int i = id; i < active * $lanes * $numbers; i += "
                        "$lws)");
    clconv_emit_line(e, "const int pair = i % (active * $lanes);");
    clconv_emit_line(e, nhwc ? "const int from = pair, to = active * $lanes;"
                             : "const int from = pair / active * $slots + pair "
                               "% active, to = active;");
    clconv_emit_line(e, "const int at = i / (active * $lanes) * $lws + from;");
    clconv_emit_line(e, "shared[at] += shared[at + to];");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* void put_part(to, shared, first_c, k, r, id, shape): channel k of the
 * quads' groups -> their places in dW. */
static void emit_put_part(clconv_emit *e, const clconv_problem *p)
{
    bool nhwc = p->layout == CLCONV_NHWC;
    clconv_emit_line(e, "static void put_part(__global float *to, __local "
                        "const float *shared, int first_c,");
    clconv_emit_open(e, "    int k, int r, int id, shape_t shape)");
    clconv_emit_open(e, "for (int i = id; i < $lanes * $numbers; i += $lws)");
    clconv_emit_line(e, "const int c = first_c + i % ($lanes * 4);");
    clconv_emit_line(e, "const int s = i / ($lanes * 4);");
    clconv_emit_line(e, "const long filter = c / $group_c * $group_k + k;");
    clconv_emit_line(e, nhwc ? "const int lane = i % ($lanes * 4) / 4;"
                             : "const int lane = i % ($lanes * 4) / 4 * "
                               "$slots;");
    clconv_emit_line(e, "to[filter * shape.w_image + c % $group_c * "
                        "shape.w_channel + (r * shape.s + s) * shape.w_tap] =");
    clconv_emit_line(e, "    shared[(s * 4 + i % 4) * $lws + lane];");
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* One channel of dY after the other, for local memory is small. */
static void emit_put(clconv_emit *e, const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    clconv_emit_line(e, "scratch += part * shape.elements;");
    for (int k = 0; k < t->values[PLANES]; ++k) {
        for (int64_t i = 0; i < p->s * QUAD; ++i) {
            clconv_emit_set(e, "i", i);
            clconv_emit_set(e, "sum", k * p->s + i / QUAD);
            clconv_emit_set(e, "lane", i % QUAD);
            clconv_emit_line(e, "shared[$i * $lws + id] = sums[$sum].s$lane;");
        }
        clconv_emit_set(e, "k", k);
        clconv_emit_line(e, "reduce(shared, id);");
        clconv_emit_line(e, "put_part(scratch, shared, first_c, plane + $k, r, "
                            "id, shape);");
    }
}

/* ---- Text: the entry point -------------------------------------------- */

static void emit_find_place(clconv_emit *e)
{
    clconv_emit_line(e, "const int first_c = group % shape.blocks * ($lanes * "
                        "4);");
    clconv_emit_line(e, "group /= shape.blocks;");
    clconv_emit_line(e, "const int plane = group % shape.plane_blocks * "
                        "$planes;");
    clconv_emit_line(e, "group /= shape.plane_blocks;");
    clconv_emit_line(e, "const int r = group % shape.r;");
    clconv_emit_line(e, "const long part = group / shape.r;");
    clconv_emit_line(e, "const int c = first_c + lane * 4;");
    clconv_emit_line(e, "const int first_k = c / $group_c * $group_k + plane;");
    clconv_emit_line(e, "const long at = part * $slots + slot;");
    clconv_emit_line(e, "const long run = at / shape.strips;");
    clconv_emit_line(e, "const int first_q = at % shape.strips * $columns;");
    clconv_emit_line(e, "const int first_w = first_q * $stride_w - "
                        "(int)shape.pad_left;");
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_pass *pass, const clconv_shape *s)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    int64_t columns = t->values[COLUMNS];
    clconv_grouped_set_holes(e, t, t->values[LWS]);
    clconv_emit_set(e, "reads", l.reads);
    clconv_emit_set(e, "sums", t->values[PLANES] * p->s);
    clconv_emit_set(e, "ds", t->values[PLANES] / QUAD * columns);
    clconv_grouped_emit_strip(e, t, CLCONV_DY, columns);
    clconv_grouped_emit_strip(e, t, CLCONV_X, l.reads);
    emit_reduce(e, p);
    emit_put_part(e, p);
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "__local float shared[$numbers * $lws];");
    clconv_grouped_emit_ids(e, p);
    emit_find_place(e);
    clconv_emit_line(e, "float4 d[$ds], xs[$reads], sums[$sums];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $sums; ++i)");
    clconv_emit_line(e, "    sums[i] = 0.0f;");
    emit_run(e, t);
    emit_put(e, t);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass[CLCONV_MAX_PASSES];
    clconv_shape s = shape_of(t, t->problem->n);
    passes(t, t->problem->n, pass);
    clconv_shape_emit(e, &s);
    emit_main(e, t, &pass[0], &s);
    clconv_strip_emit_sum(e, t, &pass[1], &s);
}

const clconv_kernel clconv_bwd_weight_grouped = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 1,
    .summary = "groups of a few channels on GPUs: two-stage sums",
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

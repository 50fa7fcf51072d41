/*
 * dW of depthwise problems on a GPU: each row of X is read once by a strip of
 * dY, and stays in registers for as long as rows of dY meet it.
 *
 *     a work-group: channels (NHWC: lanes times vec side by side), a part of
 *                   the sum
 *         a work-item: a strip of columns q, a run of rows n, p
 *             for each row p
 *                 the rows of X that it is the first to meet -> registers
 *                 ask for those of row p + 1, and for that row of dY
 *                 for each column q, for all r and s
 *                     sums[r][s] += dY[p][q] * X[h][w]
 *         the sums of a channel, pairwise, in local memory -> scratch[part]
 *     sum: dW = the parts, in order within each of some rows of work-items,
 *          then pairwise
 *
 * Beyond the edges of X zeros are multiplied; what is beyond dY is left out,
 * for X may hold a NaN there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cost.h"
#include "depthwise.h"
#include "entry.h"
#include "integers.h"
#include "kernel.h"
#include "operand.h"
#include "strip.h"
#include "strip_sum.h"

#define ENTRY "bwd_weight_strip"
#define ENTRY_SUM "bwd_weight_strip_sum"

enum { VEC, COLUMNS, FILL, LWS, CAST, SHAPE, PARAMS };

static const clconv_param params[PARAMS] = {
    [VEC] = {"vec", CLCONV_VALUES(4, 2, 1), "NHWC: channels of a work-item"},
    [COLUMNS] = {"columns", CLCONV_VALUES(4, 2, 8, 1), "of dY"},
    [FILL] = {"fill", CLCONV_VALUES(2, 1, 4, 8), "work-groups a compute unit"},
    [LWS] = {"lws", CLCONV_VALUES(256, 128, 64), "work-items of a group"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where an fp32 dY is rounded"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

enum { CAST_FUSED, CAST_SEPARATE };

#define TENSORS (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_X))

/* The longest chain of additions, in pixels, that parts are made for. */
#define CHAIN 512

/* ---- Geometry --------------------------------------------------------- */

typedef struct layout {
    int64_t lanes;  /* work-items side by side along the channels */
    int64_t blocks; /* work-groups along the channels */
    int64_t strips; /* of a row of dY */
    int64_t reach;  /* rows of X that a row of dY meets, */
    int64_t fresh;  /* those that the row before did not meet, */
    int64_t reads;  /* and their columns */
    int64_t turns;  /* of the loop over p in its text */
    int64_t parts;
    int64_t runs; /* that the rows of all images are split into */
} layout;

/* As many that few are idle, and that their reads fill sectors of memory. */
static int64_t lanes_of(const clconv_problem *p, int vec)
{
    int64_t best = 4, vectors = p->c / vec;
    if (p->layout == CLCONV_NCHW)
        return 1;
    for (int64_t lanes = 8; lanes <= 32; lanes *= 2)
        if (clconv_round_up(vectors, lanes) <= clconv_round_up(vectors, best))
            best = lanes;
    return best;
}

/* Strips and runs that the work-groups of a part take at once. */
static int64_t slots_of(const layout *l, const int *values)
{
    return values[LWS] / l->lanes;
}

/* So many that the device is busy, each strip of a row is taken, and no chain
 * is too long. */
static int64_t parts_of(const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    int64_t slots = slots_of(l, t->values);
    int64_t wanted = (int64_t)t->device->compute_units * t->values[FILL];
    int64_t rows = clconv_max(p->n, 1) * p->p;
    int64_t runs = clconv_divide_up(rows * t->values[COLUMNS], CHAIN);
    int64_t least = clconv_divide_up(l->strips * runs, slots);
    int64_t most = clconv_divide_up(l->strips * rows, slots);
    int64_t parts = clconv_max(wanted / l->blocks, least);
    return clconv_max(clconv_min(parts, most), 1);
}

static layout layout_of(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    layout l = {.lanes = lanes_of(p, t->values[VEC])};
    l.blocks = clconv_divide_up(p->c, l.lanes * t->values[VEC]);
    l.strips = clconv_divide_up(p->q, t->values[COLUMNS]);
    l.reach = clconv_strip_reach_h(p);
    l.fresh = clconv_min(l.reach, p->stride_h);
    l.reads = (t->values[COLUMNS] - 1) * p->stride_w + clconv_strip_reach_w(p);
    l.turns = clconv_strip_turns(l.reach, l.fresh);
    l.parts = parts_of(t, &l);
    l.runs = l.parts * slots_of(&l, t->values) / l.strips;
    return l;
}

static clconv_shape shape_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    clconv_shape s = {.baked = t->baked};
    clconv_strip_add_sizes(&s, p, batch);
    clconv_shape_add(&s, "blocks", l.blocks);
    clconv_shape_add(&s, "strips", l.strips);
    clconv_shape_add(&s, "parts", l.parts);
    clconv_shape_add(&s, "runs", l.runs);
    clconv_shape_add(&s, "pad_top", p->pad_top);
    clconv_shape_add(&s, "pad_left", p->pad_left);
    clconv_shape_add(&s, "elements", clconv_problem_elements(p, CLCONV_DW));
    return s;
}

/* ---- What it can do --------------------------------------------------- */

/* Registers of a work-item that hold data. */
static int64_t live(const clconv_problem *p, const int *values)
{
    int64_t reach = clconv_strip_reach_h(p);
    int64_t reads =
        (values[COLUMNS] - 1) * p->stride_w + clconv_strip_reach_w(p);
    int64_t rows = reach + clconv_min(reach, p->stride_h);
    return (p->r * p->s + rows * reads + 2 * values[COLUMNS]) * values[VEC];
}

/* More would spill, or leave too few work-items to hide latencies. */
#define MAX_LIVE 180
#define GOOD_LIVE 120

/* Multiply-adds in the text. */
#define MAX_TEXT 1024

static bool fits(const clconv_problem *p, const int *values, int64_t most)
{
    int64_t reach = clconv_strip_reach_h(p);
    int64_t turns = clconv_strip_turns(reach, clconv_min(reach, p->stride_h));
    return clconv_strip_can_vector(p, TENSORS, values[VEC]) &&
           p->r * p->s * values[COLUMNS] * turns <= MAX_TEXT &&
           live(p, values) <= most;
}

static size_t shared_bytes(const clconv_problem *p, const int *values)
{
    return (size_t)(p->r * p->s) * (size_t)values[VEC] * (size_t)values[LWS] *
           sizeof(float);
}

static size_t scratch(const clconv_task *t)
{
    return (size_t)clconv_problem_elements(t->problem, CLCONV_DW) *
           (size_t)layout_of(t).parts * sizeof(float);
}

static bool legal(const clconv_task *t)
{
    const clconv_device *d = t->device;
    return fits(t->problem, t->values, MAX_LIVE) &&
           (size_t)t->values[LWS] <= d->max_work_group &&
           shared_bytes(t->problem, t->values) <= d->local_memory &&
           scratch(t) <= d->max_allocation;
}

/* The first size that fits; false if none does. */
static bool choose(const clconv_problem *p, int64_t most, int *values)
{
    for (int i = 0; i < CLCONV_STRIP_SIZES; ++i) {
        values[VEC] = clconv_strip_sizes[i].vec;
        values[COLUMNS] = clconv_strip_sizes[i].columns;
        if (fits(p, values, most))
            return true;
    }
    return false;
}

/* A GPU's compiler makes faster code of sizes that it knows; with a stride it
 * did not. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    if (!d->is_cpu && p->stride_h == 1 && p->stride_w == 1)
        values[SHAPE] = CLCONV_SHAPE_BAKED;
    if (!choose(p, GOOD_LIVE, values))
        choose(p, MAX_LIVE, values);
    while (values[LWS] > params[LWS].values[2] &&
           ((size_t)values[LWS] > d->max_work_group ||
            shared_bytes(p, values) > d->local_memory))
        values[LWS] /= 2;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    clconv_task t = {.problem = p, .device = d, .values = values};
    if (!clconv_strip_covers(p))
        return false;
    defaults(p, d, values);
    return legal(&t);
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE ? CLCONV_BIT(CLCONV_DY) : 0;
}

/* Of an element of dY, beside its taps. */
#define GPU_ELEMENT 10
/* As work-items of one, on a CPU. */
#define CPU_TAP 400

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double multiply = clconv_cost_multiply(p);
    double elements = (double)clconv_problem_elements(p, CLCONV_DY);
    double work = t->device->is_cpu ? CPU_TAP * multiply
                                    : multiply + GPU_ELEMENT * elements;
    double moved =
        clconv_depthwise_read_cost(t, CLCONV_DY) +
        clconv_cost_move(t->device, (double)(clconv_problem_bytes(p, CLCONV_X) +
                                             2 * scratch(t)));
    return (work > moved ? work : moved) + clconv_cost_launch(t->device, 2);
}

static clconv_pass main_pass(const clconv_task *t, const clconv_shape *s)
{
    layout l = layout_of(t);
    clconv_pass pass = {.entry = ENTRY, .serves = CLCONV_OP_DW};
    pass.local = (size_t)t->values[LWS];
    pass.groups = (size_t)(l.blocks * l.parts);
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
    out[1] = clconv_strip_sum_pass(t, &s, ENTRY_SUM, t->values[LWS]);
    return 2;
}

/* ---- Text: the rows of an image --------------------------------------- */

/* Row h of X -> next_x from place on, zeros if there is none or row p + ahead
 * is not of the run. */
static void emit_row_of_x(clconv_emit *e, int64_t place)
{
    clconv_emit_set(e, "place", place);
    clconv_emit_line(e, "row_x(next_x + $place, x, x_from + h * shape.x_row, "
                        "$column, first_w,");
    clconv_emit_line(e, "    p + $ahead < stop && h >= 0 && h < (int)shape.h ? "
                        "(int)shape.w : 0);");
}

/* Where the turn has a row's first element; row 0 is the first that row p
 * meets. */
static int64_t place_of(const layout *l, int64_t row, int64_t turn)
{
    return (row + turn * l->fresh) % l->reach * l->reads;
}

/* The rows of X that row p is not the first to meet -> window. */
static void emit_begin(clconv_emit *e, const layout *l)
{
    clconv_emit_set(e, "ahead", 0);
    clconv_emit_line(e, "h = p * $stride_h - (int)shape.pad_top;");
    for (int64_t row = 0; row < l->reach - l->fresh; ++row) {
        emit_row_of_x(e, 0);
        clconv_emit_set(e, "place", place_of(l, row, 0));
        clconv_emit_line(e, "floats_x(window + $place, next_x);");
        clconv_emit_line(e, "++h;");
    }
}

/* What row p + ahead is the first to meet -> next_x, next_dy. */
static void emit_ask(clconv_emit *e, const layout *l, int ahead)
{
    clconv_emit_set(e, "ahead", ahead);
    clconv_emit_line(e, "row_dy(next_dy, dy, from + (p + $ahead) * "
                        "shape.dy_row, $column, first_q,");
    clconv_emit_line(e, "    p + $ahead < stop ? columns : 0);");
    clconv_emit_line(e, "h = (p + $ahead) * $stride_h - (int)shape.pad_top + "
                        "$old_rows;");
    for (int64_t i = 0; i < l->fresh; ++i) {
        emit_row_of_x(e, i * l->reads);
        clconv_emit_line(e, "++h;");
    }
}

/* next_x -> the places of rows that no row of dY meets any more; next_dy. */
static void emit_take(clconv_emit *e, const layout *l, int64_t turn)
{
    for (int64_t i = 0; i < l->fresh; ++i) {
        clconv_emit_set(e, "place", place_of(l, l->reach - l->fresh + i, turn));
        clconv_emit_set(e, "i", i * l->reads);
        clconv_emit_line(e, "floats_x(window + $place, next_x + $i);");
    }
    clconv_emit_line(e, "floats_dy(d, next_dy);");
}

/* Column j of the strip of dY against all taps. */
static void emit_column(clconv_emit *e, const clconv_problem *p,
                        const layout *l, int64_t j, int64_t turn)
{
    clconv_emit_set(e, "j", j);
    for (int64_t r = 0; r < p->r; ++r)
        for (int64_t s = 0; s < p->s; ++s) {
            clconv_emit_set(e, "tap", r * p->s + s);
            clconv_emit_set(e, "x_at",
                            place_of(l, r * p->dilation_h, turn) +
                                j * p->stride_w + s * p->dilation_w);
            clconv_emit_line(e, "sums[$tap] = d[$j] * window[$x_at] + "
                                "sums[$tap];");
        }
}

static void emit_columns(clconv_emit *e, const clconv_task *t, const layout *l,
                         int64_t turn)
{
    const clconv_problem *p = t->problem;
    int64_t columns = t->values[COLUMNS];
    bool whole = p->q % columns == 0;
    for (int64_t j = 0; j < columns; ++j) {
        clconv_emit_set(e, "j", j);
        if (!whole)
            clconv_emit_open(e, "if (first_q + $j < columns)");
        emit_column(e, p, l, j, turn);
        if (!whole)
            clconv_emit_close(e);
    }
}

static void emit_rows(clconv_emit *e, const clconv_task *t, const layout *l)
{
    emit_begin(e, l);
    emit_ask(e, l, 0);
    clconv_emit_open(e, "while (p < stop)");
    for (int64_t turn = 0; turn < l->turns; ++turn) {
        if (turn > 0) {
            clconv_emit_line(e, "if (p == stop)");
            clconv_emit_line(e, "    break;");
        }
        emit_take(e, l, turn);
        emit_ask(e, l, 1);
        emit_columns(e, t, l, turn);
        clconv_emit_line(e, "++p;");
    }
    clconv_emit_close(e);
}

/* ---- Text: the entry point -------------------------------------------- */

static void emit_find_place(clconv_emit *e)
{
    clconv_emit_line(e, "const int id = get_local_id(0);");
    clconv_emit_line(e, "const long group = get_group_id(0);");
    clconv_emit_line(e, "const int first_c = group % shape.blocks * ($lanes * "
                        "$vec);");
    clconv_emit_line(e, "const int c = first_c + id % $lanes * $vec;");
    clconv_emit_line(e, "const long part = group / shape.blocks;");
    clconv_emit_line(e, "const long slot = part * $slots + id / $lanes;");
    clconv_emit_line(e, "const long run = slot / shape.strips;");
    clconv_emit_line(e, "const int first_q = slot % shape.strips * $columns;");
    clconv_emit_line(e, "const int first_w = first_q * $stride_w - "
                        "(int)shape.pad_left;");
    clconv_emit_line(e, "const int columns = shape.q;");
}

/* Rows are counted through all images. */
static void emit_run(clconv_emit *e, const clconv_task *t, const layout *l)
{
    clconv_emit_line(e, "const long rows = c < (int)shape.c && run < "
                        "shape.runs ? shape.n * shape.p : 0;");
    clconv_emit_line(e, "const long end = rows * (run + 1) / shape.runs;");
    clconv_emit_line(e, "long row = rows * run / shape.runs;");
    clconv_emit_open(e, "while (row < end)");
    clconv_emit_line(e, "const long n = row / shape.p;");
    clconv_emit_line(e, "int h, p = row - n * shape.p;");
    clconv_emit_line(e, "const int stop = min(shape.p, p + end - row);");
    clconv_emit_line(e, "const long from = n * shape.dy_image + "
                        "c * shape.dy_channel;");
    clconv_emit_line(e, "const long x_from = n * shape.x_image + "
                        "c * shape.x_channel;");
    clconv_emit_line(e, "row += stop - p;");
    emit_rows(e, t, l);
    clconv_emit_close(e);
}

/* A store for each number of a work-item's sums. */
static void emit_share(clconv_emit *e, int64_t taps, int vec)
{
    for (int64_t tap = 0; tap < taps; ++tap)
        for (int v = 0; v < vec; ++v) {
            clconv_emit_set(e, "tap", tap);
            clconv_emit_set(e, "place", tap * vec + v);
            clconv_emit_set(e, "v", v);
            clconv_emit_line(e, vec > 1 ? "shared[$place * $lws + id] = "
                                          "sums[$tap].s$v;"
                                        : "shared[$place * $lws + id] = "
                                          "sums[$tap];");
        }
}

/* Work-items of the same channels are $lanes apart. */
static void emit_reduce(clconv_emit *e)
{
    clconv_emit_open(e, "for (int active = $lws / 2; active >= $lanes; active "
                        "/= 2)");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "for (int i = id; i < active * ($taps * $vec); i += "
                        "$lws)");
    clconv_emit_line(e, "const int at = i / active * $lws + i % active;");
    clconv_emit_line(e, "shared[at] += shared[at + active];");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

/* The filters of the work-group's channels, one behind the other. */
static void emit_put_part(clconv_emit *e)
{
    clconv_emit_line(e, "const int filters = min($lanes * $vec, (int)shape.c - "
                        "first_c);");
    clconv_emit_line(e, "scratch += part * shape.elements + (long)first_c * "
                        "$taps;");
    clconv_emit_open(e, "for (int i = id; i < filters * $taps; i += $lws)");
    clconv_emit_line(e, "const int filter = i / $taps;");
    clconv_emit_line(e, "scratch[i] = shared[(i % $taps * $vec + filter % "
                        "$vec) * $lws + filter / $vec];");
    clconv_emit_close(e);
}

static void set_holes(clconv_emit *e, const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    clconv_emit_set(e, "taps", p->r * p->s);
    clconv_emit_set(e, "stride_h", p->stride_h);
    clconv_emit_set(e, "stride_w", p->stride_w);
    clconv_emit_set(e, "lanes", l->lanes);
    clconv_emit_set(e, "slots", slots_of(l, t->values));
    clconv_emit_set(e, "reads", l->reads);
    clconv_emit_set(e, "old_rows", l->reach - l->fresh);
    clconv_emit_set(e, "held", l->reach * l->reads);
    clconv_emit_set(e, "asked", l->fresh * l->reads);
    clconv_emit_set(e, "shared", p->r * p->s * t->values[VEC] * t->values[LWS]);
}

static void emit_main(clconv_emit *e, const clconv_task *t,
                      const clconv_pass *pass, const clconv_shape *s)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(t);
    int vec = t->values[VEC];
    set_holes(e, t, &l);
    clconv_strip_set_holes(e, t, vec);
    clconv_strip_emit_words(e, vec);
    clconv_strip_emit_fetch(e, t, CLCONV_DY, vec, t->values[COLUMNS]);
    clconv_strip_emit_fetch(e, t, CLCONV_X, vec, l.reads);
    clconv_strip_emit_row(e, t, CLCONV_DY, vec, t->values[COLUMNS]);
    clconv_strip_emit_row(e, t, CLCONV_X, vec, l.reads);
    clconv_operand_set_width(e, vec);
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "__local float shared[$shared];");
    emit_find_place(e);
    clconv_emit_line(e, "$raw_x next_x[$asked];");
    clconv_emit_line(e, "$raw_dy next_dy[$columns];");
    clconv_emit_line(e, "$float window[$held], d[$columns], sums[$taps];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $taps; ++i)");
    clconv_emit_line(e, "    sums[i] = 0.0f;");
    emit_run(e, t, &l);
    emit_share(e, p->r * p->s, vec);
    emit_reduce(e);
    emit_put_part(e);
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

const clconv_kernel clconv_bwd_weight_strip = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_WEIGHT,
    .revision = 1,
    .summary = "depthwise on GPUs: strips of X followed down the rows",
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

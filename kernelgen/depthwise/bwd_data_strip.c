/*
 * dX of depthwise problems on a GPU: each row of dY is read once by a band of
 * rows of dX, which waits for it in registers.
 *
 *     a work-item: an image, a channel (NHWC: vec side by side), a band of rows
 *                  p, a strip of columns w
 *         W of the channels -> registers
 *         for each row p whose taps reach the band
 *             the strip of dY that was asked for -> registers
 *             ask for that of row p + 1
 *             for each column q, for all r and s that stay in the strip
 *                 sums[r][w] += dY[p][q] * W[r][s]
 *             the first stride_h rows of sums are whole -> dX, the others move
 *
 * Rows and columns are counted from the padding's edge, so that row p meets
 * p * stride_h + r * dilation_h for all r. Where dY ends, zeros are multiplied.
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
#include "strip.h"
#include "strip_put.h"

#define ENTRY "bwd_data_strip"

enum { VEC, COLUMNS, ROWS, LWS, CAST, SHAPE, PARAMS };

static const clconv_param params[PARAMS] = {
    [VEC] = {"vec", CLCONV_VALUES(4, 2, 1), "NHWC: channels of a work-item"},
    [COLUMNS] = {"columns", CLCONV_VALUES(4, 2, 8, 1),
                 "of dY, stride_w times that of dX"},
    [ROWS] = {"rows", CLCONV_VALUES(16, 8, 32, 64), "of dY, at most"},
    [LWS] = {"lws", CLCONV_VALUES(128, 64, 256), "work-items of a group"},
    [CAST] = {"cast", CLCONV_NAMES("fused", "separate"),
              "where an fp32 dY is rounded"},
    [SHAPE] = CLCONV_SHAPE_PARAM,
};

enum { CAST_FUSED, CAST_SEPARATE };

#define TENSORS                                                                \
    (CLCONV_BIT(CLCONV_DY) | CLCONV_BIT(CLCONV_W) | CLCONV_BIT(CLCONV_DX))

/* ---- Geometry --------------------------------------------------------- */

typedef struct layout {
    clconv_strip_span span;
    int64_t rows;    /* of dX that a row of dY meets or completes */
    int64_t turns;   /* of the loop over p in its text */
    int64_t before;  /* rows of dY above p that the first of them meets */
    int64_t first_p; /* that dX meets, or would if there were that row */
    int64_t end_p;
    int64_t band; /* rows p of a work-item */
    int64_t bands;
    int64_t strips; /* of a row */
    int width;      /* neighbours of dX that are stored at once */
} layout;

static layout layout_of(const clconv_problem *p, const int *values)
{
    layout l = {.span = clconv_strip_span_of(p, values[COLUMNS])};
    l.rows = clconv_max(clconv_strip_reach_h(p), p->stride_h);
    l.turns = clconv_strip_turns(l.rows, p->stride_h);
    l.before = (clconv_strip_reach_h(p) - 1) / p->stride_h;
    l.first_p = p->pad_top / p->stride_h;
    l.end_p = (p->h - 1 + p->pad_top) / p->stride_h + 1;
    int64_t rows = l.end_p - l.first_p;
    l.band = clconv_divide_up(rows, clconv_divide_up(rows, values[ROWS]));
    l.bands = clconv_divide_up(rows, l.band);
    l.strips = clconv_divide_up(p->w, l.span.columns);
    l.width = p->layout == CLCONV_NHWC
                  ? values[VEC]
                  : clconv_strip_row_width(p, l.span.columns);
    return l;
}

static clconv_shape shape_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(p, t->values);
    clconv_shape s = {.baked = t->baked};
    clconv_strip_add_sizes(&s, p, batch);
    clconv_shape_add(&s, "blocks", p->c / t->values[VEC]);
    clconv_shape_add(&s, "strips", l.strips);
    clconv_shape_add(&s, "bands", l.bands);
    clconv_shape_add(&s, "band", l.band);
    clconv_shape_add(&s, "first_p", l.first_p);
    clconv_shape_add(&s, "end_p", l.end_p);
    clconv_shape_add(&s, "first_q", p->pad_left / p->stride_w + l.span.first_q);
    clconv_shape_add(&s, "pad_top", p->pad_top);
    return s;
}

static int64_t items_of(const clconv_task *t, int64_t batch)
{
    const clconv_problem *p = t->problem;
    layout l = layout_of(p, t->values);
    return batch * (p->c / t->values[VEC]) * l.strips * l.bands;
}

/* ---- What it can do --------------------------------------------------- */

/* Registers of a work-item that hold data. */
static int64_t live(const clconv_problem *p, const int *values)
{
    layout l = layout_of(p, values);
    return (p->r * p->s + l.rows * l.span.columns + 2 * l.span.reads) *
           values[VEC];
}

/* More would spill, or leave too few work-items to hide latencies. */
#define MAX_LIVE 160
#define GOOD_LIVE 110

/* Multiply-adds in the text. */
#define MAX_TEXT 1024

static bool fits(const clconv_problem *p, const int *values, int64_t most)
{
    layout l = layout_of(p, values);
    return clconv_strip_can_vector(p, TENSORS, values[VEC]) &&
           p->r * p->s * values[COLUMNS] * l.turns <= MAX_TEXT &&
           live(p, values) <= most;
}

/* Of NHWC, more than four columns of dX were slower than wider vectors. */
static bool is_short(const clconv_problem *p, int columns)
{
    return p->layout == CLCONV_NCHW || columns == 1 ||
           columns * p->stride_w <= 4;
}

/* The first size that fits; false if none does. */
static bool choose(const clconv_problem *p, int64_t most, int *values)
{
    for (int i = 0; i < CLCONV_STRIP_SIZES; ++i) {
        values[VEC] = clconv_strip_sizes[i].vec;
        values[COLUMNS] = clconv_strip_sizes[i].columns;
        if (is_short(p, values[COLUMNS]) && fits(p, values, most))
            return true;
    }
    return false;
}

static bool covers(const clconv_problem *p, const clconv_device *d)
{
    int values[PARAMS];
    clconv_param_first(params, PARAMS, values);
    return clconv_strip_covers(p) && choose(p, MAX_LIVE, values) &&
           (size_t)params[LWS].values[1] <= d->max_work_group;
}

static bool legal(const clconv_task *t)
{
    return fits(t->problem, t->values, MAX_LIVE) &&
           (size_t)t->values[LWS] <= t->device->max_work_group;
}

/* A GPU's compiler makes faster code of sizes that it knows. */
static void defaults(const clconv_problem *p, const clconv_device *d,
                     int *values)
{
    clconv_param_first(params, PARAMS, values);
    if (!d->is_cpu)
        values[SHAPE] = CLCONV_SHAPE_BAKED;
    if (!choose(p, GOOD_LIVE, values))
        choose(p, MAX_LIVE, values);
    if ((size_t)values[LWS] > d->max_work_group)
        values[LWS] = params[LWS].values[1];
}

static unsigned wants_copies(const clconv_task *t)
{
    return t->values[CAST] == CAST_SEPARATE ? CLCONV_BIT(CLCONV_DY) : 0;
}

/* Of an element of dX, beside its taps. */
#define GPU_ELEMENT 10
/* As work-items of one, on a CPU. */
#define CPU_TAP 400

static double cost(const clconv_task *t)
{
    const clconv_problem *p = t->problem;
    double multiply = clconv_cost_multiply(p);
    double elements = (double)clconv_problem_elements(p, CLCONV_DX);
    double work = t->device->is_cpu ? CPU_TAP * multiply
                                    : multiply + GPU_ELEMENT * elements;
    double moved =
        clconv_depthwise_read_cost(t, CLCONV_DY) +
        clconv_cost_move(t->device, (double)clconv_problem_bytes(p, CLCONV_DX));
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
    clconv_shape s = shape_of(t, batch);
    *out = (clconv_pass){.entry = ENTRY, .serves = CLCONV_OP_DX};
    out->local = (size_t)t->values[LWS];
    out->groups = (size_t)clconv_divide_up(items_of(t, batch), t->values[LWS]);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(out, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_entry_arg(out, CLCONV_ARG_TENSOR, CLCONV_DX);
    clconv_entry_arg(out, CLCONV_ARG_BETA, CLCONV_DX);
    if (clconv_output_is_counted(p, CLCONV_DX))
        clconv_entry_arg(out, CLCONV_ARG_COUNTS, CLCONV_DX);
    clconv_shape_arg(&s, out);
    return 1;
}

/* ---- Text: functions -------------------------------------------------- */

/* Weights of vec channels, one filter behind the other, tap by tap. */
static const char *taps_of(int vec)
{
    return vec == 2 ? "    weights[j] = (float2)(rows[j], rows[$taps + j]);"
                    : "    weights[j] = (float4)(rows[j], rows[$taps + j], "
                      "rows[2 * $taps + j], rows[3 * $taps + j]);";
}

static void emit_read_weights(clconv_emit *e, int vec)
{
    clconv_emit_open(e, "static void read_weights($float *weights, __global "
                        "const $w_type *w, long i)");
    clconv_emit_line(e, "$raw_w raw[$taps];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < $taps; ++j)");
    clconv_emit_line(e, "    raw[j] = fetch_w(w, i + j * $vec);");
    clconv_emit_line(e, "floats_w(weights, raw);");
    if (vec > 1) {
        clconv_emit_line(e, "float rows[$taps * $vec];");
        clconv_emit_line(e, "#pragma unroll");
        clconv_emit_line(e, "for (int j = 0; j < $taps; ++j)");
        clconv_emit_line(e, "    vstore$vn(weights[j], j, rows);");
        clconv_emit_line(e, "#pragma unroll");
        clconv_emit_line(e, "for (int j = 0; j < $taps; ++j)");
        clconv_emit_line(e, taps_of(vec));
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t, const layout *l)
{
    const clconv_problem *p = t->problem;
    int vec = t->values[VEC];
    clconv_strip_set_holes(e, t, vec);
    clconv_emit_set(e, "taps", p->r * p->s);
    clconv_strip_emit_words(e, vec);
    if (l->width != vec)
        clconv_strip_emit_words(e, l->width);
    clconv_strip_emit_fetch(e, t, CLCONV_DY, vec, l->span.reads);
    clconv_strip_emit_fetch(e, t, CLCONV_W, vec, p->r * p->s);
    clconv_strip_emit_row(e, t, CLCONV_DY, vec, l->span.reads);
    emit_read_weights(e, vec);
    clconv_strip_emit_put(e, p, l->span.columns * vec / l->width, l->width);
    clconv_operand_set_width(e, vec);
}

/* ---- Text: the entry point -------------------------------------------- */

/* Divisions of 32 bits are several times as fast as those of 64. */
static const char *item_type(const clconv_task *t)
{
    int64_t launched = items_of(t, t->problem->n) + t->values[LWS];
    return launched <= UINT32_MAX ? "uint" : "long";
}

static void emit_find_place(clconv_emit *e, const clconv_task *t)
{
    bool nhwc = t->problem->layout == CLCONV_NHWC;
    clconv_emit_set_text(e, "item", item_type(t));
    clconv_emit_line(e, "$item item = ($item)get_global_id(0);");
    if (nhwc)
        clconv_generic_emit_place(e, "block", "(int)shape.blocks");
    clconv_generic_emit_place(e, "strip", "(int)shape.strips");
    clconv_generic_emit_place(e, "band", "(int)shape.bands");
    if (!nhwc)
        clconv_generic_emit_place(e, "block", "(int)shape.blocks");
    clconv_emit_line(e, "if (item >= shape.n)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "const int c = block * $vec;");
}

static void emit_declare(clconv_emit *e, const clconv_task *t, const layout *l)
{
    bool counted = clconv_output_is_counted(t->problem, CLCONV_DX);
    clconv_emit_set(e, "sums", l->rows * l->span.columns);
    clconv_emit_set(e, "strip_columns", l->span.columns);
    clconv_emit_line(e, "const int left = strip * $strip_columns;");
    clconv_emit_line(e, "const int first_q = shape.first_q + strip * "
                        "$columns;");
    clconv_emit_line(e, "const int first_p = shape.first_p + band * "
                        "shape.band;");
    clconv_emit_line(e, "const int end_p = min(first_p + (int)shape.band, "
                        "(int)shape.end_p);");
    clconv_emit_line(e, "const int stop = min(end_p, (int)shape.p);");
    clconv_emit_line(e, "const int columns = shape.q;");
    clconv_emit_line(e, "const long from = item * shape.dy_image + "
                        "c * shape.dy_channel;");
    clconv_emit_line(e, "const long to = item * shape.x_image + "
                        "c * shape.x_channel + (long)left * $column;");
    clconv_emit_line(e, counted ? "const int plain = beta == 0.0f && "
                                  "!dx_counts;"
                                : "const int plain = beta == 0.0f;");
    clconv_output_emit_tally(e, t->problem, CLCONV_DX);
    clconv_emit_line(e, "$float weights[$taps], sums[$sums];");
    clconv_emit_line(e, "$raw_dy next[$reads];");
    clconv_emit_line(e, "read_weights(weights, w, (long)c * $taps);");
}

/* A row of dY, zeros if there is none or none that the band meets. */
static void emit_ask(clconv_emit *e, const char *row)
{
    clconv_emit_set_text(e, "row", row);
    clconv_emit_line(e, "row_dy(next, dy, from + ($row) * shape.dy_row, "
                        "$column, first_q, $row >= 0 && $row < stop ? columns "
                        ": 0);");
}

/* Where the turn finds a row's first sum; row 0 is the first that row p meets. */
static int64_t place_of(const clconv_problem *p, const layout *l, int64_t row,
                        int64_t turn)
{
    return (row + turn * p->stride_h) % l->rows * l->span.columns;
}

/* Column j of the strip of dY against the taps that stay in the strip. */
static void emit_column(clconv_emit *e, const clconv_problem *p,
                        const layout *l, int64_t j, int64_t turn)
{
    clconv_emit_set(e, "j", j);
    for (int64_t r = 0; r < p->r; ++r)
        for (int64_t s = 0; s < p->s; ++s) {
            int64_t w = clconv_strip_meet(p, &l->span, j, s);
            if (w < 0)
                continue;
            clconv_emit_set(e, "sum",
                            place_of(p, l, r * p->dilation_h, turn) + w);
            clconv_emit_set(e, "tap", r * p->s + s);
            clconv_emit_line(e, "sums[$sum] = d[$j] * weights[$tap] + "
                                "sums[$sum];");
        }
}

/* A row of sums, which are whole -> dX, if it is one of the band's. */
static void emit_put(clconv_emit *e, const clconv_task *t, const layout *l,
                     int64_t row, int64_t turn)
{
    bool nhwc = t->problem->layout == CLCONV_NHWC;
    clconv_emit_set(e, "row", row);
    clconv_emit_set(e, "width", l->width);
    clconv_emit_line(e, "h = p * $stride_h + $row - (int)shape.pad_top;");
    clconv_emit_open(e, "if (p >= first_p && h >= 0 && h < (int)shape.h)");
    clconv_strip_emit_values(e, "", place_of(t->problem, l, row, turn),
                             l->span.columns, t->values[VEC], l->width);
    clconv_emit_line(e, "put_row(dx, to + h * shape.x_row, values,");
    clconv_emit_line(e, nhwc ? "    (int)shape.w - left, $column, beta, "
                               "plain$tally);"
                             : "    ((int)shape.w - left) / $width, $width, "
                               "beta, plain$tally);");
    clconv_emit_close(e);
}

static void emit_clear(clconv_emit *e, int64_t place, int64_t count)
{
    clconv_emit_set(e, "place", place);
    clconv_emit_set(e, "count", count);
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $count; ++i)");
    clconv_emit_line(e, "    sums[$place + i] = 0.0f;");
}

/* Row p; the rows of sums that it completes are those that enter next. */
static void emit_turn(clconv_emit *e, const clconv_task *t, const layout *l,
                      int64_t turn)
{
    const clconv_problem *p = t->problem;
    clconv_emit_line(e, "floats_dy(d, next);");
    emit_ask(e, "p + 1");
    for (int64_t j = 0; j < l->span.reads; ++j)
        emit_column(e, p, l, j, turn);
    for (int64_t row = 0; row < p->stride_h; ++row) {
        emit_put(e, t, l, row, turn);
        emit_clear(e, place_of(p, l, row, turn), l->span.columns);
    }
    clconv_emit_line(e, "++p;");
}

static void emit_rows(clconv_emit *e, const clconv_task *t, const layout *l)
{
    clconv_emit_set(e, "before", l->before);
    clconv_emit_set(e, "stride_h", t->problem->stride_h);
    clconv_emit_line(e, "int h, p = first_p - $before;");
    clconv_emit_line(e, "$float d[$reads];");
    emit_clear(e, 0, l->rows * l->span.columns);
    emit_ask(e, "p");
    clconv_emit_open(e, "while (p < end_p)");
    for (int64_t turn = 0; turn < l->turns; ++turn) {
        if (turn > 0) {
            clconv_emit_line(e, "if (p == end_p)");
            clconv_emit_line(e, "    break;");
        }
        emit_turn(e, t, l, turn);
    }
    clconv_emit_close(e);
}

static void emit(clconv_emit *e, const clconv_task *t)
{
    clconv_pass pass;
    clconv_shape s = shape_of(t, t->problem->n);
    layout l = layout_of(t->problem, t->values);
    passes(t, t->problem->n, &pass);
    clconv_shape_emit(e, &s);
    clconv_emit_set(e, "reads", l.span.reads);
    emit_functions(e, t, &l);
    clconv_shape_open(e, t, &pass, &s);
    emit_find_place(e, t);
    emit_declare(e, t, &l);
    emit_rows(e, t, &l);
    clconv_output_emit_flush(e, t->problem, CLCONV_DX);
    clconv_emit_close(e);
}

const clconv_kernel clconv_bwd_data_strip = {
    .name = ENTRY,
    .role = CLCONV_ROLE_BWD_DATA,
    .revision = 1,
    .summary = "depthwise on GPUs: strips of dY followed down the rows",
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

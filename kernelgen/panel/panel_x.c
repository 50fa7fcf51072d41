/*
 * A plane is what lies in one piece both in the tensor and in the panels: a
 * channel of an image (NCHW), or an image (NHWC), whose "columns" are then
 * elements, channels side by side. A work-item writes some rows of a plane,
 * each followed by the zeros up to the next one.
 *
 * The last vector of a row has zeros in the lanes past the row. They run over
 * the gap and perhaps into the next row, which is written later. Where they
 * would run out of the work-item's rows, or the vector would read past the
 * tensor, it starts inside the row instead, and a row that is too short for
 * that goes element by element.
 *
 * For the report a work-item counts the rows that it writes, and those that
 * follow each in the tensor but are not in the panels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_x.h"

#include "counts.h"
#include "entry.h"
#include "integers.h"
#include "operand.h"
#include "panel_pack.h"
#include "tile_pack.h"

#define LANES CLCONV_PANEL_LANES

/* Elements that are worth a work-item. */
#define PART_ELEMENTS 8192

/* Rows shorter than this are copied as one if nothing is between them. */
#define SHORT_ROW 64

/* Rows or columns that the taps of all outputs span. */
static int64_t span(int64_t outputs, int64_t stride, int64_t taps,
                    int64_t dilation)
{
    return (outputs - 1) * stride + (taps - 1) * dilation + 1;
}

static void set_borders(const clconv_problem *p, clconv_panel_x *x)
{
    x->skip = p->r == 1 ? p->stride_h : 1;
    x->panel_rows = span(p->p, p->stride_h / x->skip, p->r, p->dilation_h);
    x->top = p->pad_top;
    x->left = p->pad_left;
    x->pitch = clconv_max(span(p->q, p->stride_w, p->s, p->dilation_w),
                          p->pad_left + p->w);
}

bool clconv_panel_x_may_be_direct(const clconv_problem *p)
{
    return p->type[CLCONV_X] == CLCONV_F32 && !clconv_problem_casts(p, CLCONV_X);
}

static bool is_direct(const clconv_problem *p, const clconv_panel_x *x)
{
    return clconv_panel_x_may_be_direct(p) && x->top == 0 && x->left == 0 &&
           x->pitch == p->w &&
           span(p->p, p->stride_h, p->r, p->dilation_h) <= p->h;
}

static void set_tensor_strides(const clconv_problem *p, clconv_panel_x *x)
{
    clconv_strides s = clconv_problem_strides(p, CLCONV_X);
    x->image_stride = s.image;
    x->channel_stride = s.channel;
    x->row_stride = s.row * x->skip;
    x->column_stride = s.column;
    x->elements = 0;
}

bool clconv_panel_x_fits(const clconv_problem *p)
{
    if (!clconv_tile_is_small(p))
        return false;
    clconv_panel_x x;
    set_borders(p, &x);
    double image = (double)x.panel_rows * (double)x.pitch;
    return image < 0x1p28 && image * (double)p->c * (double)p->n < 0x1p56;
}

void clconv_panel_x_set(const clconv_problem *p, clconv_panel_x *x)
{
    bool nhwc = p->layout == CLCONV_NHWC;
    *x = (clconv_panel_x){.channel_stride = 1};
    set_borders(p, x);
    x->direct = is_direct(p, x);
    if (x->direct) {
        set_tensor_strides(p, x);
        return;
    }
    x->column_stride = nhwc ? p->c : 1;
    x->row_stride = x->pitch * x->column_stride;
    x->image_stride = x->panel_rows * x->row_stride;
    x->elements = p->n * x->image_stride;
    if (nhwc)
        return;
    /* Not a multiple of large powers of two, with which all rows of a tile
     * would fall on the same lines of a cache. */
    x->channel_stride = clconv_round_up(x->elements, 256) + 5 * LANES;
    x->elements = p->c * x->channel_stride;
}

/* The rows of a plane as the pass copies them, in elements. */
typedef struct run {
    int64_t planes; /* of an image */
    int64_t skip, top, rows, panel_rows;
    int64_t left, columns, pitch;
    int64_t parts; /* work-items a plane */
} run;

static run run_of(const clconv_problem *p, const clconv_panel_x *x)
{
    run r = {
        .planes = p->layout == CLCONV_NHWC ? 1 : p->c,
        .skip = x->skip,
        .top = x->top,
        .rows = p->h,
        .panel_rows = x->panel_rows,
        .left = x->left * x->column_stride,
        .columns = p->w * x->column_stride,
        .pitch = x->row_stride,
    };
    if (r.pitch == r.columns && r.columns < SHORT_ROW && r.skip == 1) {
        int64_t zeros = clconv_min(r.top, r.panel_rows);
        r.left = zeros * r.columns;
        r.pitch *= r.panel_rows;
        r.columns *= clconv_min(p->h, r.panel_rows - zeros);
        r.top = 0;
        r.rows = r.panel_rows = 1;
    }
    r.parts = r.panel_rows * r.pitch / PART_ELEMENTS;
    r.parts = clconv_max(1, clconv_min(r.parts, r.panel_rows));
    return r;
}

void clconv_panel_x_shape(const clconv_panel_x *x, const clconv_problem *p,
                          clconv_shape *s)
{
    run r = run_of(p, x);
    clconv_shape_add(s, "x_planes", r.planes);
    clconv_shape_add(s, "x_plane",
                     clconv_problem_elements(p, CLCONV_X) /
                         clconv_max(1, p->n * r.planes));
    clconv_shape_add(s, "x_direct", x->direct);
    clconv_shape_add(s, "x_skip", r.skip);
    clconv_shape_add(s, "x_top", r.top);
    clconv_shape_add(s, "x_rows", r.rows);
    clconv_shape_add(s, "x_panel_rows", r.panel_rows);
    clconv_shape_add(s, "x_left", r.left);
    clconv_shape_add(s, "x_columns", r.columns);
    clconv_shape_add(s, "x_pitch", r.pitch);
    clconv_shape_add(s, "x_parts", r.parts);
    clconv_shape_add(s, "x_image_stride", x->image_stride);
    clconv_shape_add(s, "x_channel_stride", x->channel_stride);
    clconv_shape_add(s, "x_offset", x->offset);
}

/* Read directly, nothing is counted here; the text stays that of others. */
static bool is_counted(const clconv_panel_x *x, const clconv_task *t)
{
    return x->direct || (t->counts & CLCONV_BIT(CLCONV_X));
}

void clconv_panel_x_pass(const clconv_panel_x *x, const clconv_task *t,
                         const char *entry, int64_t batch,
                         const clconv_shape *s, clconv_pass *pass)
{
    run r = run_of(t->problem, x);
    *pass = (clconv_pass){
        .entry = entry,
        .groups = (size_t)(x->direct ? 0 : batch * r.planes * r.parts),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, CLCONV_X);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_X);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, CLCONV_X);
    if (is_counted(x, t))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_X);
    clconv_shape_arg(s, pass);
}

/* ---- Text ------------------------------------------------------------- */

static void emit_zero(clconv_emit *e)
{
    clconv_emit_open(e, "static void zero_x(__global float *to, long count)");
    clconv_emit_line(e, "long i = 0;");
    clconv_emit_line(e, "for (; i + 16 <= count; i += 16)");
    clconv_emit_line(e, "    vstore16((float16)(0.0f), 0, to + i);");
    clconv_emit_line(e, "for (; i < count; ++i)");
    clconv_emit_line(e, "    to[i] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The first count of 16 elements from i on, then zeros. */
static void emit_read_part(clconv_emit *e)
{
    clconv_emit_open(e, "static float16 read_x_part(__global const $given *x, "
                        "long i, int count)");
    clconv_emit_line(e, "float part[16] = {0.0f};");
    clconv_emit_line(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, "    part[j] = $read(x, i + j);");
    clconv_emit_line(e, "return vload16(0, part);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The elements of x from i to end, which are not in the panels. */
static void emit_count(clconv_emit *e)
{
    clconv_emit_open(e, "static void count_x(__global const $given *x, long i, "
                        "long end, seen16_t *seen)");
    clconv_emit_line(e, "for (; i + 16 <= end; i += 16)");
    clconv_emit_line(e, "    see_x16(seen, ${read}16(x, i));");
    clconv_emit_line(e, "if (i < end)");
    clconv_emit_line(e, "    see_x16(seen, read_x_part(x, i, end - i));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* What is written of a vector that was read. */
static void emit_take(clconv_emit *e, bool counted, bool rounds)
{
    clconv_emit_open(e, "static float16 take_x16(float16 v$see_parameters)");
    if (counted) {
        clconv_emit_line(e, "if (counting)");
        clconv_emit_line(e, "    see_x16(seen, v);");
    }
    clconv_emit_line(e, rounds ? "return round_x16(v);" : "return v;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The last 16 columns, of which the last count have not been counted. */
static void emit_copy_last(clconv_emit *e, bool counted, bool rounds)
{
    clconv_emit_line(e, "const float16 v = ${read}16(x, i + columns - 16);");
    if (counted) {
        clconv_emit_line(e, "if (counting)");
        clconv_emit_line(e, "    see_x16(seen, select((float16)(0.0f), v, lane "
                            ">= 16 - count));");
    }
    clconv_emit_line(e, rounds ? "vstore16(round_x16(v), 0, to + columns - 16);"
                               : "vstore16(v, 0, to + columns - 16);");
}

/* The columns from j on, fewer than 16, of the row of x that begins at i;
 * returns how many elements of to are written then. */
static void emit_copy_tail(clconv_emit *e, bool counted, bool rounds)
{
    clconv_emit_open(e, "static long copy_x_tail(__global const $given *x, "
                        "long i, long total, __global float *to, long columns, "
                        "long j, long room$see_parameters)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, "
                        "9, 10, 11, 12, 13, 14, 15);");
    clconv_emit_line(e, "const int count = columns - j;");
    clconv_emit_open(e, "if (room - j >= 16 && i + j + 16 <= total)");
    clconv_emit_line(e, "const float16 v = select((float16)(0.0f), "
                        "${read}16(x, i + j), lane < count);");
    clconv_emit_line(e, "vstore16(take_x16(v$see), 0, to + j);");
    clconv_emit_line(e, "return j + 16;");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (columns >= 16)");
    emit_copy_last(e, counted, rounds);
    clconv_emit_line(e, "return columns;");
    clconv_emit_close(e);
    clconv_emit_line(e, "float part[16];");
    clconv_emit_line(e, "vstore16(take_x16(read_x_part(x, i + j, count)$see), "
                        "0, part);");
    clconv_emit_line(e, "for (int k = 0; k < count; ++k)");
    clconv_emit_line(e, "    to[j + k] = part[k];");
    clconv_emit_line(e, "return columns;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The row of x that begins at element i, and the zeros after it: length
 * elements, room to the end of all rows. */
static void emit_pack_row(clconv_emit *e)
{
    clconv_emit_open(e, "static void pack_x_row(__global const $given *x, "
                        "long i, long total, __global float *to, long columns, "
                        "long length, long room$see_parameters)");
    clconv_emit_line(e, "long done = 0;");
    clconv_emit_line(e, "for (; done + 16 <= columns; done += 16)");
    clconv_emit_line(e, "    vstore16(take_x16(${read}16(x, i + done)$see), 0, "
                        "to + done);");
    clconv_emit_line(e, "if (done < columns)");
    clconv_emit_line(e,
                     "    done = copy_x_tail(x, i, total, to, columns, done, "
                     "room$see);");
    clconv_emit_line(e, "zero_x(to + done, length - done);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void set_holes(clconv_emit *e, const clconv_task *t, bool counted)
{
    clconv_emit_set_text(
        e, "given", clconv_operand_is_half(t, CLCONV_X) ? "half" : "float");
    clconv_emit_set_text(
        e, "read", t->copies & CLCONV_BIT(CLCONV_X) ? "load_x" : "read_x");
    clconv_emit_set_text(e, "see_parameters",
                         counted ? ", int counting, seen16_t *seen" : "");
    clconv_emit_set_text(e, "see", counted ? ", counting, seen" : "");
    clconv_emit_set_text(e, "see_item", counted ? ", counting, &seen" : "");
}

static void emit_functions(clconv_emit *e, const clconv_task *t, bool counted)
{
    bool copy = t->copies & CLCONV_BIT(CLCONV_X);
    bool rounds = clconv_operand_is_fused(t, CLCONV_X);
    for (int width = 1; width <= LANES; width += LANES - 1)
        if (copy)
            clconv_operand_emit_load(e, t, CLCONV_X, width);
        else
            clconv_operand_emit_read(e, t, CLCONV_X, width);
    if (rounds)
        clconv_operand_emit_round(e, t->problem, CLCONV_X, LANES);
    if (counted) {
        clconv_counts_emit_seen(e, LANES);
        clconv_counts_emit_see(e, t->problem, CLCONV_X, LANES);
    }
    set_holes(e, t, counted);
    emit_zero(e);
    emit_read_part(e);
    if (counted)
        emit_count(e);
    emit_take(e, counted, rounds);
    emit_copy_tail(e, counted, rounds);
    emit_pack_row(e);
}

/* A work-item's plane and rows of the panels; to: where it writes. */
static void emit_item(clconv_emit *e)
{
    clconv_emit_line(e, "const long part = get_group_id(0) % shape.x_parts;");
    clconv_emit_line(e, "const long plane = get_group_id(0) / shape.x_parts;");
    clconv_emit_line(e, "const long first = shape.x_panel_rows * part / "
                        "shape.x_parts;");
    clconv_emit_line(e, "const long end = shape.x_panel_rows * (part + 1) / "
                        "shape.x_parts;");
    clconv_emit_line(e, "const long start = plane * shape.x_plane;");
    clconv_emit_line(e, "const long total = batch * shape.x_planes * "
                        "shape.x_plane;");
    clconv_emit_line(e, "__global float *to = scratch + shape.x_offset + plane "
                        "/ shape.x_planes * shape.x_image_stride + plane % "
                        "shape.x_planes * shape.x_channel_stride + first * "
                        "shape.x_pitch;");
}

/* Rows of X between this row of the panels and the next, or after the last. */
static void emit_count_skipped(clconv_emit *e)
{
    clconv_emit_open(e, "if (counting)");
    clconv_emit_line(e, "const long skipped = max(row + 1, 0L) * "
                        "shape.x_columns;");
    clconv_emit_line(e, "const long next = i + 1 < shape.x_panel_rows ? "
                        "min(row + shape.x_skip, shape.x_rows) * "
                        "shape.x_columns : shape.x_plane;");
    clconv_emit_line(e, "count_x(x, start + skipped, start + next, &seen);");
    clconv_emit_close(e);
}

static void emit_rows(clconv_emit *e, bool counted)
{
    clconv_emit_line(e, "zero_x(to, shape.x_left);");
    clconv_emit_line(e, "to += shape.x_left;");
    clconv_emit_line(e, "long room = (end - first) * shape.x_pitch - "
                        "shape.x_left;");
    clconv_emit_open(e, "for (long i = first; i < end; ++i)");
    clconv_emit_line(e, "const long row = i * shape.x_skip - shape.x_top;");
    clconv_emit_line(e, "const long length = min(shape.x_pitch, room);");
    clconv_emit_line(e, "if (row < 0 || row >= shape.x_rows)");
    clconv_emit_line(e, "    zero_x(to, length);");
    clconv_emit_line(e, "else");
    clconv_emit_line(e, "    pack_x_row(x, start + row * shape.x_columns, "
                        "total, to, shape.x_columns, length, room$see_item);");
    if (counted)
        emit_count_skipped(e);
    clconv_emit_line(e, "to += shape.x_pitch;");
    clconv_emit_line(e, "room -= shape.x_pitch;");
    clconv_emit_close(e);
}

void clconv_panel_x_emit(clconv_emit *e, const clconv_panel_x *x,
                         const clconv_task *t, const clconv_shape *s,
                         const clconv_pass *pass)
{
    bool counted = is_counted(x, t);
    emit_functions(e, t, counted);
    clconv_shape_open(e, t, pass, s);
    if (counted) {
        clconv_emit_line(e, "const int counting = x_counts != 0;");
        clconv_emit_line(e, "seen16_t seen = { 0 };");
    }
    emit_item(e);
    emit_rows(e, counted);
    if (counted) {
        clconv_emit_open(e, "if (counting)");
        clconv_emit_line(e, "counts_t tally = { 0 };");
        clconv_emit_line(e, "fold16(&tally, &seen);");
        clconv_emit_line(e, "counts_flush(x_counts, &tally);");
        clconv_emit_close(e);
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

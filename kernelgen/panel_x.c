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
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_x.h"

#include "entry.h"
#include "operand.h"
#include "tile_pack.h"

#define LANES CLCONV_TILE_LANES

/* Elements that are worth a work-item. */
#define PART_ELEMENTS 8192

/* Rows shorter than this are copied as one if nothing is between them. */
#define SHORT_ROW 64

static int64_t min2(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max2(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

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
    x->pitch =
        max2(span(p->q, p->stride_w, p->s, p->dilation_w), p->pad_left + p->w);
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
    x->channel_stride = clconv_tile_align(x->elements, 256) + 5 * LANES;
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
        int64_t zeros = min2(r.top, r.panel_rows);
        r.left = zeros * r.columns;
        r.pitch *= r.panel_rows;
        r.columns *= min2(p->h, r.panel_rows - zeros);
        r.top = 0;
        r.rows = r.panel_rows = 1;
    }
    r.parts = r.panel_rows * r.pitch / PART_ELEMENTS;
    r.parts = max2(1, min2(r.parts, r.panel_rows));
    return r;
}

void clconv_panel_x_shape(const clconv_panel_x *x, const clconv_problem *p,
                          clconv_shape *s)
{
    run r = run_of(p, x);
    clconv_shape_add(s, "x_planes", r.planes);
    clconv_shape_add(s, "x_plane",
                     clconv_problem_elements(p, CLCONV_X) /
                         max2(1, p->n * r.planes));
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

void clconv_panel_x_pass(const clconv_panel_x *x, const clconv_problem *p,
                         const char *entry, int64_t batch,
                         const clconv_shape *s, clconv_pass *pass)
{
    run r = run_of(p, x);
    *pass = (clconv_pass){
        .entry = entry,
        .groups = (size_t)(x->direct ? 0 : batch * r.planes * r.parts),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, CLCONV_X);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_X);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, CLCONV_X);
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

/* The columns from j on, fewer than 16, of the row of x that begins at i;
 * returns how many elements of to are written then. */
static void emit_copy_tail(clconv_emit *e)
{
    clconv_emit_open(e, "static long copy_x_tail(__global const $given *x, "
                        "long i, long total, __global float *to, long columns, "
                        "long j, long room)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, "
                        "9, 10, 11, 12, 13, 14, 15);");
    clconv_emit_line(e, "const int count = columns - j;");
    clconv_emit_open(e, "if (room - j >= 16 && i + j + 16 <= total)");
    clconv_emit_line(e, "vstore16(select((float16)(0.0f), load_x16(x, i + j), "
                        "lane < count), 0, to + j);");
    clconv_emit_line(e, "return j + 16;");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (columns >= 16)");
    clconv_emit_line(e, "vstore16(load_x16(x, i + columns - 16), 0, to + "
                        "columns - 16);");
    clconv_emit_line(e, "return columns;");
    clconv_emit_close(e);
    clconv_emit_line(e, "for (; j < columns; ++j)");
    clconv_emit_line(e, "    to[j] = load_x(x, i + j);");
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
                        "long length, long room)");
    clconv_emit_line(e, "long done = 0;");
    clconv_emit_line(e, "for (; done + 16 <= columns; done += 16)");
    clconv_emit_line(e, "    vstore16(load_x16(x, i + done), 0, to + done);");
    clconv_emit_line(e, "if (done < columns)");
    clconv_emit_line(e,
                     "    done = copy_x_tail(x, i, total, to, columns, done, "
                     "room);");
    clconv_emit_line(e, "zero_x(to + done, length - done);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_panel_x_emit(clconv_emit *e, const clconv_task *t,
                         const clconv_shape *s, const clconv_pass *pass)
{
    clconv_operand_emit_load(e, t, CLCONV_X, LANES);
    clconv_operand_emit_load(e, t, CLCONV_X, 1);
    clconv_emit_set_text(
        e, "given", clconv_operand_is_half(t, CLCONV_X) ? "half" : "float");
    emit_zero(e);
    emit_copy_tail(e);
    emit_pack_row(e);
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "const long part = get_group_id(0) % shape.x_parts;");
    clconv_emit_line(e, "const long plane = get_group_id(0) / shape.x_parts;");
    clconv_emit_line(e, "const long first = shape.x_panel_rows * part / "
                        "shape.x_parts;");
    clconv_emit_line(e, "const long end = shape.x_panel_rows * (part + 1) / "
                        "shape.x_parts;");
    clconv_emit_line(e, "const long total = batch * shape.x_planes * "
                        "shape.x_plane;");
    clconv_emit_line(e, "__global float *to = scratch + shape.x_offset + plane "
                        "/ shape.x_planes * shape.x_image_stride + plane % "
                        "shape.x_planes * shape.x_channel_stride + first * "
                        "shape.x_pitch;");
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
    clconv_emit_line(e, "    pack_x_row(x, plane * shape.x_plane + row * "
                        "shape.x_columns, total, to, shape.x_columns, length, "
                        "room);");
    clconv_emit_line(e, "to += shape.x_pitch;");
    clconv_emit_line(e, "room -= shape.x_pitch;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

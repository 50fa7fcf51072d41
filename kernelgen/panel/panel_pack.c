/*
 * A work-item writes one row of one image, in NCHW ROWS rows of a block of
 * channels, the zeros of the borders too. A run of 16 elements or more ends with a
 * vector that begins inside the run and writes some elements twice, the same
 * values. A shorter row of NCHW is one vector with zeros in its last lanes;
 * these run over the right border and perhaps into the next channel's row,
 * which is written later. Where they would run into another work-item's, the
 * row is written element by element.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_pack.h"

#include "entry.h"
#include "integers.h"
#include "operand.h"

#define LANES CLCONV_PANEL_LANES

/* Rows of a block of channels of dY that a work-item packs: many, to read and
 * write one place after the other, but enough work-items for large images. */
#define ROWS 32

/* ---- Sizes ------------------------------------------------------------ */

/* The distance between pixels, in elements, that puts them into all sets of
 * a cache: neighbours of a power of two of bytes share few. */
static int64_t pixel_pitch(int64_t channels)
{
    const int64_t many = 256; /* floats: 4 sets of a cache with 4 KiB a way */
    return channels % many ? channels : channels + LANES;
}

/* Channels of a block, one row behind the other: of a group with fewer, all. */
static int64_t block_of(const clconv_problem *p)
{
    return p->group_k < CLCONV_PANEL_BLOCK ? p->group_k : CLCONV_PANEL_BLOCK;
}

static int64_t blocks_of(const clconv_problem *p)
{
    return clconv_divide_up(p->group_k, block_of(p));
}

void clconv_panel_set_strides(const clconv_problem *p, clconv_panel_dy *dy)
{
    if (p->layout == CLCONV_NHWC) {
        dy->channel_stride = 1;
        dy->block_stride = CLCONV_PANEL_BLOCK;
        dy->group_stride = p->group_k;
        dy->column_stride = pixel_pitch(p->k);
        dy->row_stride = dy->columns * dy->column_stride;
        dy->image_stride = dy->rows * dy->row_stride;
        return;
    }
    dy->column_stride = 1;
    dy->channel_stride = dy->columns;
    dy->row_stride = block_of(p) * dy->columns;
    dy->block_stride = dy->rows * dy->row_stride;
    dy->group_stride = blocks_of(p) * dy->block_stride;
    dy->image_stride = p->groups * dy->group_stride;
}

void clconv_panel_shape_dy(const clconv_panel_dy *dy, clconv_shape *s)
{
    clconv_shape_add(s, "top", dy->top);
    clconv_shape_add(s, "left", dy->left);
    clconv_shape_add(s, "dy_rows", dy->rows);
    clconv_shape_add(s, "dy_image", dy->image_stride);
    clconv_shape_add(s, "dy_group", dy->group_stride);
    clconv_shape_add(s, "dy_block", dy->block_stride);
    clconv_shape_add(s, "dy_row", dy->row_stride);
    clconv_shape_add(s, "dy_column", dy->column_stride);
    clconv_shape_add(s, "dy_channel", dy->channel_stride);
}

/* ---- Pass ------------------------------------------------------------- */

void clconv_panel_pass_dy(const clconv_problem *p, const clconv_panel_dy *dy,
                          int64_t batch, const clconv_shape *s,
                          clconv_pass *pass)
{
    int64_t items = batch * dy->rows;
    if (p->layout == CLCONV_NCHW)
        items =
            batch * clconv_divide_up(dy->rows, ROWS) * p->groups * blocks_of(p);
    *pass = (clconv_pass){
        .entry = "bwd_data_panel_pack_dy",
        .groups = (size_t)items,
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DY);
    clconv_shape_arg(s, pass);
}

/* ---- Text --------------------------------------------------------- */

static void emit_zero(clconv_emit *e)
{
    clconv_emit_open(e, "static void zero(__global float *p, long from, "
                        "long to)");
    clconv_emit_open(e, "for (; from + 16 <= to; from += 16)");
    clconv_emit_line(e, "vstore16((float16)(0.0f), 0, p + from);");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (; from < to; ++from)");
    clconv_emit_line(e, "p[from] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* count elements from element i on. */
static void emit_copy(clconv_emit *e)
{
    clconv_emit_open(e, "static void copy_dy(__global const $given *dy, "
                        "long i, __global float *to, long count)");
    clconv_emit_line(e, "const long last = count - 16;");
    clconv_emit_open(e, "if (last < 0)");
    clconv_emit_open(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, "to[j] = load_dy(dy, i + j);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (long j = 0; j < last; j += 16)");
    clconv_emit_line(e, "vstore16(load_dy16(dy, i + j), 0, to + j);");
    clconv_emit_close(e);
    clconv_emit_line(e, "vstore16(load_dy16(dy, i + last), 0, to + last);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* One row of all channels; the zeros between a pixel's last channel and the
 * next pixel are never read. */
static void emit_pixels(clconv_emit *e)
{
    clconv_emit_line(e, "const long item = get_group_id(0);");
    clconv_emit_line(e, "const long row = item % shape.dy_rows - shape.top;");
    clconv_emit_line(e, "const long image = item / shape.dy_rows;");
    clconv_emit_line(e, "const long k = shape.groups * shape.group_k;");
    clconv_emit_line(e, "const bool joined = shape.dy_column == k;");
    clconv_emit_line(e, "const long runs = joined ? 1 : shape.q;");
    clconv_emit_line(e, "const long run = joined ? shape.q * k : k;");
    clconv_emit_line(e, "const long start = shape.left * shape.dy_column;");
    clconv_emit_line(e, "const long end = start + shape.q * shape.dy_column;");
    clconv_emit_line(e, "const long from = (image * shape.p + row) * shape.q * "
                        "k;");
    clconv_emit_line(e, "__global float *to = scratch + item * shape.dy_row;");
    clconv_emit_open(e, "if (row < 0 || row >= shape.p)");
    clconv_emit_line(e, "zero(to, 0, shape.dy_row);");
    clconv_emit_else(e);
    clconv_emit_line(e, "zero(to, 0, start);");
    clconv_emit_open(e, "for (long i = 0; i < runs; ++i)");
    clconv_emit_line(e, "copy_dy(dy, from + i * run, to + start + i * "
                        "shape.dy_column, run);");
    clconv_emit_close(e);
    clconv_emit_line(e, "zero(to, end, shape.dy_row);");
    clconv_emit_close(e);
}

/* The columns < 16 of a row from element i on; total: the tensor's. */
static void emit_load_short(clconv_emit *e)
{
    clconv_emit_open(e, "static float16 load_dy_short(__global const $given "
                        "*dy, long i, long total, int columns)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,");
    clconv_emit_line(e, "                           8, 9, 10, 11, 12, 13, 14, "
                        "15);");
    clconv_emit_open(e, "if (i + 16 <= total)");
    clconv_emit_line(e, "return select((float16)(0.0f), load_dy16(dy, i), "
                        "lane < columns);");
    clconv_emit_close(e);
    clconv_emit_line(e, "float row[16] = {0.0f};");
    clconv_emit_open(e, "for (int j = 0; j < columns; ++j)");
    clconv_emit_line(e, "row[j] = load_dy(dy, i + j);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return vload16(0, row);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A row of fewer than 16 columns; room: elements up to another work-item's.
 * What follows within it is zeros or written later. */
static void emit_store_short(clconv_emit *e)
{
    clconv_emit_open(e, "static void store_dy_short(__global float *to, "
                        "float16 v, int columns, long room)");
    clconv_emit_open(e, "if (room >= 16)");
    clconv_emit_line(e, "vstore16(v, 0, to);");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "float row[16];");
    clconv_emit_line(e, "vstore16(v, 0, row);");
    clconv_emit_open(e, "for (int j = 0; j < columns; ++j)");
    clconv_emit_line(e, "to[j] = row[j];");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A row of a block's channels: from element from of the first of them to the
 * place of its first column. */
static void emit_pack_row(clconv_emit *e)
{
    clconv_emit_line(e, "static void pack_row(__global const $given *dy, long "
                        "from, __global float *to,");
    clconv_emit_open(e, "    int channels, shape_t shape)");
    clconv_emit_line(e, "const int columns = shape.q;");
    clconv_emit_line(e, "const long plane = shape.p * columns;");
    clconv_emit_line(e, "const long total = shape.batch * shape.groups * "
                        "shape.group_k * plane;");
    clconv_emit_line(e, "const long width = shape.dy_channel;");
    clconv_emit_line(e, "const long room = shape.dy_row - shape.left;");
    clconv_emit_open(e, "for (int k = 0; k < channels; ++k)");
    clconv_emit_open(e, "if (columns < 16)");
    clconv_emit_line(e, "store_dy_short(to + k * width, load_dy_short(dy, from "
                        "+ k * plane, total, columns), columns, room - k * "
                        "width);");
    clconv_emit_else(e);
    clconv_emit_line(e, "copy_dy(dy, from + k * plane, to + k * width, "
                        "columns);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Some rows of a block of channels. */
static void emit_planes(clconv_emit *e)
{
    clconv_emit_set(e, "rows", ROWS);
    clconv_emit_line(e, "const long block = shape.dy_row / shape.dy_channel;");
    clconv_emit_line(e, "const long blocks = shape.dy_group / shape.dy_block;");
    clconv_emit_line(e, "const long chunks = (shape.dy_rows + $rows - 1) / "
                        "$rows;");
    clconv_emit_line(e, "const long start = get_group_id(0) % chunks * $rows;");
    clconv_emit_line(e, "const long end = min(start + $rows, shape.dy_rows);");
    clconv_emit_line(e, "const long item = get_group_id(0) / chunks;");
    clconv_emit_line(e, "const long first = item % blocks * block;");
    clconv_emit_line(e, "const int channels = min(block, shape.group_k - "
                        "first);");
    clconv_emit_line(e, "const long from = (item / blocks * shape.group_k + "
                        "first) * shape.p;");
    clconv_emit_line(e, "__global float *to = scratch + item * "
                        "shape.dy_block;");
    clconv_emit_open(e, "for (long i = start; i < end; ++i)");
    clconv_emit_line(e, "const long row = i - shape.top;");
    clconv_emit_line(e, "__global float *at = to + i * shape.dy_row;");
    clconv_emit_line(e, "zero(at, 0, shape.dy_row);");
    clconv_emit_line(e, "if (row >= 0 && row < shape.p)");
    clconv_emit_line(e, "    pack_row(dy, (from + row) * shape.q, at + "
                        "shape.left, channels, shape);");
    clconv_emit_close(e);
}

void clconv_panel_emit_dy(clconv_emit *e, const clconv_task *t,
                          const clconv_shape *s, const clconv_pass *pass)
{
    bool pixels = t->problem->layout == CLCONV_NHWC;
    clconv_operand_emit_load(e, t, CLCONV_DY, LANES);
    clconv_operand_emit_load(e, t, CLCONV_DY, 1);
    clconv_emit_set_text(
        e, "given", clconv_operand_is_half(t, CLCONV_DY) ? "half" : "float");
    emit_zero(e);
    emit_copy(e);
    if (!pixels) {
        emit_load_short(e);
        emit_store_short(e);
        emit_pack_row(e);
    }
    clconv_shape_open(e, t, pass, s);
    if (pixels)
        emit_pixels(e);
    else
        emit_planes(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

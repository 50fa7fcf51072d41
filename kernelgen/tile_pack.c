/*
 * A work-item writes one plane from front to back:
 *
 *     zeros before the first row
 *     each row: the gap of zeros after it, whole vectors, then a vector that
 *               ends with the row
 *     zeros after the last row; behind the last image the tail
 *
 * The vector that ends a row of 16 columns or more starts inside the row and
 * writes some elements twice, the same values; the zeros of the gap likewise
 * are a vector that ends with the gap. A shorter row is one vector with zeros
 * in its last lanes; these run over the gap and perhaps into the next row,
 * which is written later. Where they would run out of the plane, into another
 * work-item's, the row is stored in narrower pieces. Such a vector also reads
 * past its row, and is read element by element where that would be past the
 * tensor.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_pack.h"

#include <stdio.h>

#include "entry.h"
#include "operand.h"

#define LANES CLCONV_TILE_LANES

int64_t clconv_tile_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

int64_t clconv_tile_align(int64_t a, int64_t b)
{
    return clconv_tile_ceil(a, b) * b;
}

bool clconv_tile_is_small(const clconv_problem *p)
{
    const int64_t side = (int64_t)1 << 24, weights = (int64_t)1 << 48;
    return p->h + p->pad_top + p->pad_bottom < side &&
           p->w + p->pad_left + p->pad_right < side &&
           clconv_problem_elements(p, CLCONV_W) < weights;
}

bool clconv_tile_is_addressable(const clconv_problem *p,
                                const clconv_tile_planes *planes)
{
    int64_t length = planes->length + planes->tail;
    double all = (double)p->n * (double)planes->channels * (double)length;
    return length < (int64_t)1 << 28 && all < 0x1p56;
}

bool clconv_tile_is_half(const clconv_problem *p, clconv_tensor tensor)
{
    return p->math == CLCONV_MIXED || p->type[tensor] == CLCONV_F16;
}

int64_t clconv_tile_planes_floats(const clconv_problem *p,
                                  const clconv_tile_planes *planes)
{
    int64_t per_float = clconv_tile_is_half(p, planes->tensor) ? 2 : 1;
    return clconv_tile_align(clconv_tile_ceil(planes->elements, per_float), 64);
}

static void add(clconv_shape *s, const clconv_tile_planes *planes,
                const char *what, int64_t value)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%s", clconv_tensor_name(planes->tensor),
             what);
    clconv_shape_add(s, name, value);
}

void clconv_tile_pack_shape(const clconv_tile_planes *planes, clconv_shape *s)
{
    add(s, planes, "channels", planes->channels);
    add(s, planes, "rows", planes->rows);
    add(s, planes, "columns", planes->columns);
    add(s, planes, "pitch", planes->pitch);
    add(s, planes, "start", planes->start);
    add(s, planes, "length", planes->length);
    add(s, planes, "tail", planes->tail);
    add(s, planes, "image_stride", planes->image_stride);
    add(s, planes, "channel_stride", planes->channel_stride);
    add(s, planes, "offset", planes->offset);
}

void clconv_tile_pack_pass(const clconv_tile_planes *planes, int64_t batch,
                           const clconv_shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = planes->entry,
        .groups = (size_t)(batch * planes->channels),
        .local = 1,
        .serves = planes->serves,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, planes->tensor);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, planes->tensor);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, planes->tensor);
    clconv_shape_arg(s, pass);
}

/* ---- Text ------------------------------------------------------------- */

/* $tensor, $given (type of the operand), $stored (type in planes), $planes. */
static void set_types(clconv_emit *e, const clconv_task *t,
                      const clconv_tile_planes *planes)
{
    bool half_type = clconv_tile_is_half(t->problem, planes->tensor);
    bool half_given = clconv_operand_is_half(t, planes->tensor);
    const char *name = clconv_tensor_name(planes->tensor);
    char hole[32], address[80];
    clconv_emit_set_text(e, "tensor", name);
    clconv_emit_set_text(e, "given", half_given ? "half" : "float");
    clconv_emit_set_text(e, "stored", half_type ? "half" : "float");
    snprintf(hole, sizeof hole, "%s_planes", name);
    snprintf(address, sizeof address,
             "((__global %s *)(scratch + shape.%s_offset))",
             half_type ? "half" : "float", name);
    clconv_emit_set_text(e, hole, address);
    clconv_emit_set_text(e, "planes", address);
}

static void emit_access(clconv_emit *e, bool half_type)
{
    clconv_emit_open(e, "static float16 load_${tensor}_plane("
                        "__global const $stored *p, long i)");
    clconv_emit_line(e, half_type ? "return vload_half16(0, p + i);"
                                  : "return vload16(0, p + i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "static void store_${tensor}_plane("
                        "__global $stored *p, int i, float16 v)");
    clconv_emit_line(e, half_type ? "vstore_half16(v, 0, p + i);"
                                  : "vstore16(v, 0, p + i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/*
 * void zeros_<tensor>(p, i): 16 zeros; zero_<tensor>_plane(p, from, to): zeros
 * in elements from .. to-1. Not by vstore_half: given a constant, PoCL 3.1
 * makes an aligned store of it.
 */
static void emit_zero(clconv_emit *e, bool half_type)
{
    clconv_emit_set_text(e, "zero_type", half_type ? "ushort" : "float");
    clconv_emit_open(e,
                     "static void zeros_$tensor(__global $stored *p, int i)");
    clconv_emit_line(e, "vstore16((${zero_type}16)(0), 0, "
                        "(__global $zero_type *)p + i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "static void zero_${tensor}_plane("
                        "__global $stored *p, int from, int to)");
    clconv_emit_open(e, "for (; from + 16 <= to; from += 16)");
    clconv_emit_line(e, "zeros_$tensor(p, from);");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (; from < to; ++from)");
    clconv_emit_line(e, "((__global $zero_type *)p)[from] = 0;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The columns < 16 of a row from element i on; total: the tensor's. */
static void emit_load_short(clconv_emit *e)
{
    clconv_emit_open(e, "static float16 load_${tensor}_short("
                        "__global const $given *p, long i, long total, "
                        "int columns)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,");
    clconv_emit_line(e, "                           8, 9, 10, 11, 12, 13, 14, "
                        "15);");
    clconv_emit_open(e, "if (i + 16 <= total)");
    clconv_emit_line(e, "return select((float16)(0.0f), load_${tensor}16(p, "
                        "i), lane < columns);");
    clconv_emit_close(e);
    clconv_emit_line(e, "float row[16] = {0.0f};");
    clconv_emit_open(e, "for (int j = 0; j < columns; ++j)");
    clconv_emit_line(e, "row[j] = load_$tensor(p, i + j);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return vload16(0, row);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The next width columns of the row, if columns has that bit. */
static void emit_store_piece(clconv_emit *e, int width, bool half_type)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_open(e, "if (columns & $width)");
    if (half_type)
        clconv_emit_line(e, "vstore_half$vn(vload$vn(0, row + done), 0, p + at "
                            "+ done);");
    else
        clconv_emit_line(e, "vstore$vn(vload$vn(0, row + done), 0, p + at + "
                            "done);");
    clconv_emit_line(e, "done += $width;");
    clconv_emit_close(e);
}

/* The last column of an odd number of them. */
static void emit_store_last(clconv_emit *e, bool half_type)
{
    clconv_emit_open(e, "if (columns & 1)");
    clconv_emit_line(e, half_type ? "vstore_half(row[done], 0, p + at + done);"
                                  : "p[at + done] = row[done];");
    clconv_emit_close(e);
}

/* A short row at element at of the plane, and the gap after it. */
static void emit_store_short(clconv_emit *e, bool half_type)
{
    clconv_emit_open(e, "static void store_${tensor}_short(__global $stored "
                        "*p, int at, float16 v, int columns, int pitch, int "
                        "length)");
    clconv_emit_open(e, "if (at + 16 <= length)");
    clconv_emit_line(e, "store_${tensor}_plane(p, at, v);");
    clconv_emit_line(e, "zero_${tensor}_plane(p, at + 16, at + pitch);");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "float row[16];");
    clconv_emit_line(e, "int done = 0;");
    clconv_emit_line(e, "vstore16(v, 0, row);");
    for (int width = LANES / 2; width > 1; width /= 2)
        emit_store_piece(e, width, half_type);
    emit_store_last(e, half_type);
    clconv_emit_line(e, "zero_${tensor}_plane(p, at + columns, at + pitch);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A row of 16 columns or more from element i on, to element at. */
static void emit_long_row(clconv_emit *e)
{
    clconv_emit_open(e, "static void pack_${tensor}_long("
                        "__global const $given *p, long i, "
                        "__global $stored *plane, int at, int columns, int "
                        "gap)");
    clconv_emit_line(e, "if (gap > 16)");
    clconv_emit_line(e, "    zero_${tensor}_plane(plane, at + columns, at + "
                        "columns + gap);");
    clconv_emit_line(e, "else if (gap > 0)");
    clconv_emit_line(e, "    zeros_$tensor(plane, at + columns + gap - 16);");
    clconv_emit_open(e, "for (int j = 0; j < columns; j += 16)");
    clconv_emit_line(e, "const int from = min(j, columns - 16);");
    clconv_emit_line(e, "store_${tensor}_plane(plane, at + from, "
                        "load_${tensor}16(p, i + from));");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_tile_planes *planes)
{
    bool half_type = clconv_tile_is_half(t->problem, planes->tensor);
    clconv_operand_emit_load(e, t, planes->tensor, LANES);
    clconv_operand_emit_load(e, t, planes->tensor, 1);
    set_types(e, t, planes);
    emit_access(e, half_type);
    emit_zero(e, half_type);
    emit_load_short(e);
    emit_store_short(e, half_type);
    emit_long_row(e);
}

static void emit_rows(clconv_emit *e)
{
    clconv_emit_open(e, "for (int row = 0; row < rows; ++row)");
    clconv_emit_open(e, "if (columns < 16)");
    clconv_emit_line(e, "store_${tensor}_short(plane, at, load_${tensor}_short("
                        "$tensor, i, total, columns), columns, pitch, "
                        "length);");
    clconv_emit_else(e);
    clconv_emit_line(e, "pack_${tensor}_long($tensor, i, plane, at, columns, "
                        "pitch - columns);");
    clconv_emit_close(e);
    clconv_emit_line(e, "i += columns;");
    clconv_emit_line(e, "at += pitch;");
    clconv_emit_close(e);
}

void clconv_tile_pack_emit(clconv_emit *e, const clconv_task *t,
                           const clconv_tile_planes *planes,
                           const clconv_shape *s, const clconv_pass *pass)
{
    emit_functions(e, t, planes);
    clconv_shape_open(e, t, pass, s);
    set_types(e, t, planes);
    clconv_emit_line(e, "const int rows = shape.${tensor}_rows;");
    clconv_emit_line(e, "const int columns = shape.${tensor}_columns;");
    clconv_emit_line(e, "const int pitch = shape.${tensor}_pitch;");
    clconv_emit_line(e, "const int length = shape.${tensor}_length;");
    clconv_emit_line(e, "const long channels = shape.${tensor}_channels;");
    clconv_emit_line(e,
                     "const long total = batch * channels * rows * columns;");
    clconv_emit_line(e, "const long index = get_group_id(0);");
    clconv_emit_line(e, "const long image = index / channels;");
    clconv_emit_line(e, "__global $stored *plane = $planes + image * "
                        "shape.${tensor}_image_stride + index % channels * "
                        "shape.${tensor}_channel_stride;");
    clconv_emit_line(e, "long i = index * rows * columns;");
    clconv_emit_line(e, "int at = shape.${tensor}_start;");
    clconv_emit_line(e, "zero_${tensor}_plane(plane, 0, at);");
    emit_rows(e);
    clconv_emit_line(e, "const int tail = image + 1 == batch ? "
                        "shape.${tensor}_tail : 0;");
    clconv_emit_line(e, "zero_${tensor}_plane(plane, at - pitch + columns, "
                        "length + tail);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

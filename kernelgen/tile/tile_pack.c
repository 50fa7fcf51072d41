/*
 * A work-item writes one plane from front to back, in phases one after
 * another:
 *
 *     zeros before the first row
 *     each row: the gap of zeros after it, whole vectors, then a vector that
 *               ends with the row
 *     zeros after the last row; behind the last of joined images the tail
 *
 * The vector that ends a row of 16 columns or more starts inside the row and
 * writes some elements twice, the same values; the zeros of the gap likewise
 * are a vector that ends with the gap. A shorter row is one vector with zeros
 * in its last lanes; these run over the gap and perhaps into the next row,
 * which is written later. Where they would run out of the plane, into another
 * work-item's, the row is stored in narrower pieces. Such a vector also reads
 * past its row, and is read element by element where that would be past the
 * tensor; so is a row of which a stride takes every third element or fewer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_pack.h"

#include <stdio.h>

#include "entry.h"
#include "integers.h"
#include "operand.h"
#include "tile_count.h"
#include "tile_phase.h"

#define LANES CLCONV_TILE_LANES

bool clconv_tile_is_small(const clconv_problem *p)
{
    const int64_t side = (int64_t)1 << 24, weights = (int64_t)1 << 48;
    return p->h + p->pad_top + p->pad_bottom < side &&
           p->w + p->pad_left + p->pad_right < side && p->stride_h < side &&
           p->stride_w < side && clconv_problem_elements(p, CLCONV_W) < weights;
}

bool clconv_tile_is_addressable(const clconv_problem *p,
                                const clconv_tile_planes *planes)
{
    int64_t length = planes->grid.image_stride + planes->grid.tail;
    double all = (double)p->n * (double)planes->channels * (double)length;
    return length < (int64_t)1 << 28 && all < 0x1p48;
}

int64_t clconv_tile_planes_floats(const clconv_problem *p,
                                  const clconv_tile_planes *planes)
{
    int64_t per_float = clconv_operand_fits_half(p, planes->tensor) ? 2 : 1;
    return clconv_round_up(clconv_divide_up(planes->elements, per_float), 64);
}

static void add(clconv_shape *s, const clconv_tile_planes *planes,
                const char *what, int64_t value)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%s", clconv_tensor_name(planes->tensor),
             what);
    clconv_shape_add(s, name, value);
}

void clconv_tile_grid_shape(const clconv_tile_grid *grid, clconv_shape *s)
{
    clconv_shape_add(s, "pitch", grid->pitch);
    clconv_shape_add(s, "image_stride", grid->image_stride);
    clconv_shape_add(s, "channel_stride", grid->channel_stride);
    clconv_shape_add(s, "tail", grid->tail);
    clconv_shape_add(s, "images", grid->images);
    clconv_shape_add(s, "block_stride", grid->block_stride);
}

void clconv_tile_pack_shape(const clconv_tile_planes *planes, clconv_shape *s)
{
    add(s, planes, "channels", planes->channels);
    add(s, planes, "rows", planes->rows);
    add(s, planes, "columns", planes->columns);
    add(s, planes, "start", planes->start);
    add(s, planes, "offset", planes->offset);
    if (planes->in_phases)
        clconv_shape_add(s, "phase_stride", planes->phase_stride);
    if (planes->counted > 0)
        add(s, planes, "counted", planes->counted);
}

void clconv_tile_pack_pass(const clconv_task *t,
                           const clconv_tile_planes *planes, int64_t batch,
                           const clconv_shape *s, clconv_pass *pass)
{
    *pass = (clconv_pass){
        .entry = planes->entry,
        .groups = (size_t)(batch * planes->channels),
        .local = 1,
        .serves = planes->serves,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, planes->tensor);
    clconv_tile_count_arg(t, planes->tensor, pass);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, planes->tensor);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, planes->tensor);
    clconv_shape_arg(s, pass);
}

/* ---- Text ------------------------------------------------------------- */

/* $tensor, $given (type of the operand), $stored (type in planes), $scaled
 * (what a fused cast calls) and $planes. */
static void set_types(clconv_emit *e, const clconv_task *t,
                      const clconv_tile_planes *planes)
{
    bool half_type = clconv_operand_fits_half(t->problem, planes->tensor);
    bool half_given = clconv_operand_is_half(t, planes->tensor);
    const char *name = clconv_tensor_name(planes->tensor);
    char hole[32], address[80];
    clconv_emit_set_text(e, "tensor", name);
    clconv_emit_set_text(e, "given", half_given ? "half" : "float");
    clconv_emit_set_text(e, "stored", half_type ? "half" : "float");
    snprintf(hole, sizeof hole, "scaled_%s", name);
    clconv_emit_set_text(
        e, "scaled", clconv_operand_is_fused(t, planes->tensor) ? hole : "");
    snprintf(hole, sizeof hole, "%s_planes", name);
    snprintf(address, sizeof address,
             "((__global %s *)(scratch + shape.%s_offset))",
             half_type ? "half" : "float", name);
    clconv_emit_set_text(e, hole, address);
    clconv_emit_set_text(e, "planes", address);
}

/*
 * What a fused cast multiplies in, and its clip of finite values, on bits:
 * clamp loses NaN. The stores round; not the functions of operand.h, which
 * round by additions in fp32.
 */
static void emit_scaled(clconv_emit *e, const clconv_task *t,
                        clconv_tensor tensor)
{
    int cast_log2 = clconv_problem_cast_log2(t->problem, tensor);
    clconv_operand_set_limit(e, cast_log2);
    clconv_emit_set_exp2(e, "cast_scale", cast_log2);
    clconv_emit_open(e, "static float16 scaled_$tensor(float16 v)");
    if (t->problem->overflow != CLCONV_TO_INF) {
        clconv_emit_line(e, "/* Finite values are clipped at $limit_value. */");
        clconv_emit_line(e, "const int16 bits = as_int16(v) & 0x7fffffff;");
        clconv_emit_line(e, "const int16 sign = as_int16(v) ^ bits;");
        clconv_emit_line(e, "v = as_float16(sign | select(min(bits, "
                            "(int16)($limit)), bits, bits >= 0x7f800000));");
    }
    clconv_emit_line(e, cast_log2 ? "return v * $cast_scale;" : "return v;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* float16 load_<tensor>16(p, i): 16 elements of the operand. */
static void emit_load(clconv_emit *e, const clconv_task *t, clconv_tensor tensor)
{
    if (clconv_operand_is_fused(t, tensor))
        emit_scaled(e, t, tensor);
    clconv_operand_set_raw(e, t->device, clconv_operand_is_half(t, tensor),
                           LANES);
    clconv_emit_open(e, "static float16 load_${tensor}16("
                        "__global const $given *p, long i)");
    clconv_emit_line(e, "return $scaled($raw);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
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
    clconv_emit_line(e, half_type ? "vstore_half16_rte(v, 0, p + i);"
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

/* 16 elements of every second, the first at i; 32 are read. */
static void emit_load_even(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor)
{
    clconv_operand_set_raw(e, t->device, clconv_operand_is_half(t, tensor),
                           LANES);
    clconv_emit_open(e, "static float16 load_${tensor}_even("
                        "__global const $given *p, long i)");
    clconv_emit_line(e, "const float16 a = $raw;");
    clconv_emit_line(e, "i += 16;");
    clconv_emit_line(e, "const float16 b = $raw;");
    clconv_emit_line(e, "return $scaled((float16)(a.even, b.even));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_gather(clconv_emit *e, const clconv_task *t,
                        clconv_tensor tensor)
{
    clconv_operand_set_raw(e, t->device, clconv_operand_is_half(t, tensor), 1);
    clconv_emit_line(e, "float row[16] = {0.0f};");
    clconv_emit_open(e, "for (int j = 0; j < columns; ++j)");
    clconv_emit_line(e, "row[j] = $raw;");
    clconv_emit_line(e, "i += step;");
    clconv_emit_close(e);
    clconv_emit_line(e, "return $scaled(vload16(0, row));");
}

/* The columns <= 16 of a row from element i on, every step-th, zeros in the
 * other lanes; total: the tensor's elements. */
static void emit_load_columns(clconv_emit *e, const clconv_task *t,
                              const clconv_tile_planes *planes)
{
    clconv_emit_open(e, "static float16 load_${tensor}_columns("
                        "__global const $given *p, long i, long total, "
                        "int step, int columns)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,");
    clconv_emit_line(e, "                           8, 9, 10, 11, 12, 13, 14, "
                        "15);");
    clconv_emit_open(e, "if (step == 1 && i + 16 <= total)");
    clconv_emit_line(e, "return select((float16)(0.0f), load_${tensor}16(p, "
                        "i), lane < columns);");
    clconv_emit_close(e);
    if (planes->in_phases) {
        clconv_emit_open(e, "if (step == 2 && i + 32 <= total)");
        clconv_emit_line(e, "return select((float16)(0.0f), "
                            "load_${tensor}_even(p, i), lane < columns);");
        clconv_emit_close(e);
    }
    emit_gather(e, t, planes->tensor);
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
        clconv_emit_line(
            e, "vstore_half${vn}_rte(vload$vn(0, row + done), 0, p + at "
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
    clconv_emit_line(e, half_type
                            ? "vstore_half_rte(row[done], 0, p + at + done);"
                            : "p[at + done] = row[done];");
    clconv_emit_close(e);
}

/* A short row at element at of the plane, and zeros up to element to. */
static void emit_store_short(clconv_emit *e, bool half_type)
{
    clconv_emit_open(e, "static void store_${tensor}_short(__global $stored "
                        "*p, int at, float16 v, int columns, int to, int "
                        "end)");
    clconv_emit_open(e, "if (at + 16 <= end)");
    clconv_emit_line(e, "store_${tensor}_plane(p, at, v);");
    clconv_emit_line(e, "zero_${tensor}_plane(p, at + 16, to);");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "float row[16];");
    clconv_emit_line(e, "int done = 0;");
    clconv_emit_line(e, "vstore16(v, 0, row);");
    for (int width = LANES / 2; width > 1; width /= 2)
        emit_store_piece(e, width, half_type);
    emit_store_last(e, half_type);
    clconv_emit_line(e, "zero_${tensor}_plane(p, at + columns, to);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The vectors of a long row; load: of the vector at column from. */
static void emit_store_vectors(clconv_emit *e, const char *load)
{
    clconv_emit_set_text(e, "load", load);
    clconv_emit_open(e, "for (int j = 0; j < columns; j += 16)");
    clconv_emit_line(e, "const int from = min(j, columns - 16);");
    clconv_emit_line(e, "store_${tensor}_plane(plane, at + from, "
                        "load_${tensor}$load);");
    clconv_emit_close(e);
}

/* A row of 16 columns or more from element i on, to element at of the plane,
 * and zeros up to element to. */
static void emit_store_long(clconv_emit *e, bool in_phases)
{
    clconv_emit_open(e, "static void store_${tensor}_long("
                        "__global const $given *p, long i, long total, "
                        "int step, __global $stored *plane, int at, int "
                        "columns, int to)");
    clconv_emit_line(e, "const int gap = to - at - columns;");
    clconv_emit_line(e, "if (gap > 16)");
    clconv_emit_line(e, "    zero_${tensor}_plane(plane, at + columns, to);");
    clconv_emit_line(e, "else if (gap > 0)");
    clconv_emit_line(e, "    zeros_$tensor(plane, to - 16);");
    if (in_phases) {
        clconv_emit_open(e, "if (step > 1)");
        emit_store_vectors(e, "_columns(p, i + from * step, total, step, 16)");
        clconv_emit_line(e, "return;");
        clconv_emit_close(e);
    }
    emit_store_vectors(e, "16(p, i + from)");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A plane of end elements: rows of columns, the first at element at, zeros
 * elsewhere. They begin row_step apart in the tensor, the first at i. */
static void emit_pack_plane(clconv_emit *e)
{
    clconv_emit_open(e,
                     "static void pack_${tensor}_plane(__global const $given "
                     "*p, long i, long total, long row_step, int step, "
                     "__global $stored *plane, int at, int rows, int "
                     "columns, int pitch, int end)");
    clconv_emit_line(e, "rows = columns > 0 ? rows : 0;");
    clconv_emit_line(e, "zero_${tensor}_plane(plane, 0, rows > 0 ? at : end);");
    clconv_emit_open(e, "for (int row = 0; row < rows; ++row)");
    clconv_emit_line(e, "const int to = row + 1 < rows ? at + pitch : end;");
    clconv_emit_open(e, "if (columns < 16)");
    clconv_emit_line(e, "store_${tensor}_short(plane, at, "
                        "load_${tensor}_columns(p, i, total, step, columns), "
                        "columns, to, end);");
    clconv_emit_else(e);
    clconv_emit_line(e, "store_${tensor}_long(p, i, total, step, plane, at, "
                        "columns, to);");
    clconv_emit_close(e);
    clconv_emit_line(e, "i += row_step;");
    clconv_emit_line(e, "at += pitch;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_tile_planes *planes)
{
    bool half_type = clconv_operand_fits_half(t->problem, planes->tensor);
    if (planes->in_phases)
        clconv_tile_span_emit(e);
    set_types(e, t, planes);
    emit_load(e, t, planes->tensor);
    emit_access(e, half_type);
    emit_zero(e, half_type);
    if (planes->in_phases)
        emit_load_even(e, t, planes->tensor);
    emit_load_columns(e, t, planes);
    emit_store_short(e, half_type);
    emit_store_long(e, planes->in_phases);
    emit_pack_plane(e);
}

static void emit_one_plane(clconv_emit *e)
{
    clconv_emit_line(e, "pack_${tensor}_plane($tensor, index * rows * columns, "
                        "total, columns, 1, plane, shape.${tensor}_start, "
                        "rows, columns, pitch, end);");
}

/* A plane for each pair of phases. */
static void emit_all_phases(clconv_emit *e)
{
    clconv_emit_line(e, "const axis_t h = axis_rows(shape);");
    clconv_emit_line(e, "const axis_t w = axis_columns(shape);");
    clconv_emit_open(e, "for (int i = 0; i < min(h.taps, h.step); ++i)");
    clconv_emit_line(e, "const span_t row = span_of(h, i);");
    clconv_emit_open(e, "for (int j = 0; j < min(w.taps, w.step); ++j)");
    clconv_emit_line(e, "const span_t column = span_of(w, j);");
    clconv_emit_line(e, "pack_${tensor}_plane($tensor, (index * rows + "
                        "row.from) * columns + column.from, total, h.stride * "
                        "columns, w.stride, plane, row.first * pitch + "
                        "column.first, row.count, column.count, pitch, end);");
    clconv_emit_line(e, "plane += shape.phase_stride;");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* The planes of so many work-items lie one behind the other in the tensor. */
static void emit_count(clconv_emit *e, const clconv_tile_planes *planes)
{
    clconv_emit_line(e, "const bool begins_run = index % "
                        "shape.${tensor}_counted == 0;");
    clconv_tile_count_open(e, planes->tensor);
    clconv_emit_line(e, "const long from = index * rows * columns;");
    clconv_emit_line(e, "const long end = from + shape.${tensor}_counted * "
                        "rows * columns;");
    clconv_emit_line(e, "see_${tensor}_run(&seen, $tensor, from, min(end, "
                        "total), total);");
    clconv_tile_count_close(e, planes->tensor);
}

void clconv_tile_pack_emit(clconv_emit *e, const clconv_task *t,
                           const clconv_tile_planes *planes,
                           const clconv_shape *s, const clconv_pass *pass)
{
    bool counted = clconv_tile_is_counted(t, planes->tensor);
    if (counted)
        clconv_tile_count_emit(e, t, planes->tensor);
    emit_functions(e, t, planes);
    clconv_shape_open(e, t, pass, s);
    set_types(e, t, planes);
    clconv_emit_line(e, "const long rows = shape.${tensor}_rows;");
    clconv_emit_line(e, "const long columns = shape.${tensor}_columns;");
    clconv_emit_line(e, "const long channels = shape.${tensor}_channels;");
    clconv_emit_line(e,
                     "const long total = batch * channels * rows * columns;");
    clconv_emit_line(e, "const int pitch = shape.pitch;");
    clconv_emit_line(e, "const long index = get_group_id(0);");
    if (counted)
        emit_count(e, planes);
    clconv_emit_line(e, "const long image = index / channels;");
    clconv_emit_line(e, "const bool is_last = image + 1 == batch || image % "
                        "shape.images == shape.images - 1;");
    clconv_emit_line(e, "const int end = shape.image_stride + (is_last ? "
                        "shape.tail : 0);");
    clconv_emit_line(e, "__global $stored *plane = $planes + image / "
                        "shape.images * shape.block_stride + image % "
                        "shape.images * shape.image_stride + index % channels "
                        "* shape.channel_stride;");
    if (planes->in_phases)
        emit_all_phases(e);
    else
        emit_one_plane(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

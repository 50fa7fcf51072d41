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

void clconv_tile_pack_pass(const clconv_tile_planes *planes, int64_t batch,
                           clconv_pass *pass)
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
}

/* ---- Text ------------------------------------------------------------- */

/* $tensor, $stored (type in planes), $planes. */
static void set_types(clconv_emit *e, const clconv_problem *p,
                      const clconv_tile_planes *planes)
{
    bool half_type = clconv_tile_is_half(p, planes->tensor);
    const char *name = clconv_tensor_name(planes->tensor);
    char hole[32], address[80];
    clconv_emit_set_text(e, "tensor", name);
    clconv_emit_set_text(e, "stored", half_type ? "half" : "float");
    snprintf(hole, sizeof hole, "%s_planes", name);
    snprintf(address, sizeof address, "((__global %s *)(scratch + %lldL))",
             half_type ? "half" : "float", (long long)planes->offset);
    clconv_emit_set_text(e, hole, address);
    clconv_emit_set_text(e, "planes", address);
}

static void set_sizes(clconv_emit *e, const clconv_tile_planes *planes)
{
    int64_t whole = planes->columns / LANES * LANES;
    int64_t last = planes->start + (planes->rows - 1) * planes->pitch;
    clconv_emit_set(e, "rows", planes->rows);
    clconv_emit_set(e, "columns", planes->columns);
    clconv_emit_set(e, "channels", planes->channels);
    clconv_emit_set(e, "pitch", planes->pitch);
    clconv_emit_set(e, "start", planes->start);
    clconv_emit_set(e, "length", planes->length);
    clconv_emit_set(e, "tail_end", planes->length + planes->tail);
    clconv_emit_set(e, "image_stride", planes->image_stride);
    clconv_emit_set(e, "channel_stride", planes->channel_stride);
    clconv_emit_set(e, "whole", whole);
    clconv_emit_set(e, "last_vector", planes->columns - LANES);
    clconv_emit_set(e, "last_zeros", planes->pitch - LANES);
    clconv_emit_set(e, "end", last + planes->columns);
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

/* A row of fewer than 16 columns from element i on; total: the tensor's. */
static void emit_load_short(clconv_emit *e, const clconv_task *t,
                            clconv_tensor tensor)
{
    bool half_type = clconv_operand_is_half(t, tensor);
    clconv_emit_set_text(e, "given", half_type ? "half" : "float");
    clconv_emit_open(e, "static float16 load_${tensor}_short("
                        "__global const $given *p, long i, long total)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,");
    clconv_emit_line(e, "                           8, 9, 10, 11, 12, 13, 14, "
                        "15);");
    clconv_emit_open(e, "if (i + 16 <= total)");
    clconv_emit_line(e, "return select((float16)(0.0f), load_${tensor}16(p, "
                        "i), lane < $columns);");
    clconv_emit_close(e);
    clconv_emit_line(e, "float row[16] = {0.0f};");
    clconv_emit_open(e, "for (int j = 0; j < $columns; ++j)");
    clconv_emit_line(e, "row[j] = load_$tensor(p, i + j);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return vload16(0, row);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* $lanes: the names of count lanes of v from the first one on. */
static void set_lanes(clconv_emit *e, int first, int count)
{
    static const char digits[] = "0123456789abcdef";
    char lanes[LANES + 2] = "s";
    for (int i = 0; i < count; ++i)
        lanes[1 + i] = digits[first + i];
    clconv_emit_set_text(e, "lanes", lanes);
}

/* The first columns lanes of v, in pieces of 8, 4, 2 and 1. */
static void emit_store_pieces(clconv_emit *e, int columns, bool half_type)
{
    int first = 0;
    for (int width = LANES / 2; width > 0; width /= 2) {
        if (!(columns & width))
            continue;
        set_lanes(e, first, width);
        clconv_emit_set(e, "first", first);
        clconv_operand_set_width(e, width);
        if (half_type)
            clconv_emit_line(e, "vstore_half$vn(v.$lanes, 0, p + at + "
                                "$first);");
        else if (width > 1)
            clconv_emit_line(e, "vstore$vn(v.$lanes, 0, p + at + $first);");
        else
            clconv_emit_line(e, "p[at + $first] = v.$lanes;");
        first += width;
    }
}

/* A short row at element at of the plane. */
static void emit_store_short(clconv_emit *e, const clconv_tile_planes *planes,
                             bool half_type)
{
    clconv_emit_open(e, "static void store_${tensor}_short("
                        "__global $stored *p, int at, float16 v)");
    clconv_emit_open(e, "if (at + 16 <= $length)");
    clconv_emit_line(e, "store_${tensor}_plane(p, at, v);");
    clconv_emit_else(e);
    emit_store_pieces(e, (int)planes->columns, half_type);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_tile_planes *planes)
{
    bool half_type = clconv_tile_is_half(t->problem, planes->tensor);
    clconv_operand_emit_load(e, t, planes->tensor, LANES);
    if (planes->columns < LANES)
        clconv_operand_emit_load(e, t, planes->tensor, 1);
    set_types(e, t->problem, planes);
    set_sizes(e, planes);
    emit_access(e, half_type);
    emit_zero(e, half_type);
    if (planes->columns < LANES) {
        emit_load_short(e, t, planes->tensor);
        emit_store_short(e, planes, half_type);
    }
}

static void emit_short_row(clconv_emit *e, const clconv_tile_planes *planes)
{
    clconv_emit_line(e, "store_${tensor}_short(plane, at, "
                        "load_${tensor}_short($tensor, i, total));");
    if (planes->pitch > planes->columns)
        clconv_emit_line(e, "zero_${tensor}_plane(plane, at + $columns, at + "
                            "$pitch);");
}

static void emit_long_row(clconv_emit *e, const clconv_tile_planes *planes)
{
    int64_t gap = planes->pitch - planes->columns;
    if (gap > LANES)
        clconv_emit_line(e, "zero_${tensor}_plane(plane, at + $columns, at + "
                            "$pitch);");
    else if (gap > 0)
        clconv_emit_line(e, "zeros_$tensor(plane, at + $last_zeros);");
    clconv_emit_open(e, "for (int j = 0; j < $whole; j += 16)");
    clconv_emit_line(e, "store_${tensor}_plane(plane, at + j, "
                        "load_${tensor}16($tensor, i + j));");
    clconv_emit_close(e);
    if (planes->columns % LANES)
        clconv_emit_line(e, "store_${tensor}_plane(plane, at + $last_vector, "
                            "load_${tensor}16($tensor, i + $last_vector));");
}

void clconv_tile_pack_emit(clconv_emit *e, const clconv_task *t,
                           const clconv_tile_planes *planes,
                           const clconv_pass *pass)
{
    emit_functions(e, t, planes);
    clconv_entry_open(e, t, pass, NULL);
    set_types(e, t->problem, planes);
    clconv_emit_line(e, "const long index = get_group_id(0);");
    clconv_emit_line(e, "const long image = index / $channels;");
    clconv_emit_line(e, "__global $stored *plane = $planes + image * "
                        "$image_stride + index % $channels * "
                        "$channel_stride;");
    if (planes->columns < LANES)
        clconv_emit_line(e, "const long total = (long)batch * $channels * "
                            "$rows * $columns;");
    clconv_emit_line(e, "long i = index * $rows * $columns;");
    clconv_emit_line(e, "int at = $start;");
    clconv_emit_line(e, "zero_${tensor}_plane(plane, 0, at);");
    clconv_emit_open(e, "for (int row = 0; row < $rows; ++row)");
    if (planes->columns < LANES)
        emit_short_row(e, planes);
    else
        emit_long_row(e, planes);
    clconv_emit_line(e, "i += $columns;");
    clconv_emit_line(e, "at += $pitch;");
    clconv_emit_close(e);
    clconv_emit_line(e, planes->tail
                            ? "zero_${tensor}_plane(plane, $end, image + 1 == "
                              "batch ? $tail_end : $length);"
                            : "zero_${tensor}_plane(plane, $end, $length);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/*
 * Indices are dear: a division by a size that is an argument takes as long as
 * twenty multiply-adds. So the spots of the tile's rows are worked out once a
 * work-group, those of many terms at a time, both into local memory, and an
 * element costs an addition and four comparisons.
 *
 * Work-items take elements, or vectors, in the order that they have in
 * memory. A work-item meets the same rows at every step where neighbours
 * follow the rows (kept in registers: $kept of them), or the same terms where
 * they follow k. A vector is fetched whole if its first and last spot join
 * (same row of the tensor, side by side) and both ends are inside; at borders
 * its elements are picked one by one.
 *
 * Elements wait in registers as they are stored, and are widened or rounded
 * on the way to the tile: whatever is done to them waits for them to arrive.
 *
 * The tile's pitch is a vector more than its rows, so that a column, written
 * where neighbours follow k, is spread over the banks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "local_stage.h"

#include <stdio.h>

#include "integers.h"
#include "operand.h"

#define SPOT_BYTES 16

int clconv_local_stage_pitch(const clconv_local_stage *s)
{
    return s->rows + CLCONV_LOCAL_VECTOR;
}

size_t clconv_local_stage_bytes(const clconv_local_stage *s)
{
    size_t element = s->half_tile ? 2 : 4;
    size_t tile = (size_t)(s->tile_k * clconv_local_stage_pitch(s)) * element;
    return tile + (size_t)(s->rows + CLCONV_LOCAL_TERMS) * SPOT_BYTES;
}

/* Vectors of the tile, and of them a work-item's. */
static int vectors(const clconv_local_stage *s)
{
    return s->rows * s->tile_k / s->width;
}

static int own_vectors(const clconv_local_stage *s)
{
    return (int)clconv_divide_up(vectors(s), s->items);
}

/* Different rows, or first rows of vectors, that a work-item meets where
 * neighbours follow the rows. */
static int kept_rows(const clconv_local_stage *s)
{
    int across = s->rows / s->width;
    return across > s->items ? across / s->items : 1;
}

/* $raw, $rawn: an element and a vector as they wait in registers. */
static void set_types(clconv_emit *e, const clconv_task *t,
                      const clconv_local_stage *s)
{
    bool half_type = clconv_operand_is_half(t, s->operand->tensor);
    const char *raw = half_type ? "ushort" : "float";
    char vector[20];
    clconv_operand_set_width(e, s->width);
    snprintf(vector, sizeof vector, s->width > 1 ? "%s%d" : "%s", raw, s->width);
    clconv_emit_set_text(e, "raw", raw);
    clconv_emit_set_text(e, "rawn", vector);
}

static void set_holes(clconv_emit *e, const clconv_task *t,
                      const clconv_local_stage *s)
{
    const clconv_nest_operand *o = s->operand;
    set_types(e, t, s);
    clconv_emit_set_text(e, "tile", s->name);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(o->tensor));
    clconv_emit_set_text(e, "limit_y", o->limit_y);
    clconv_emit_set_text(e, "limit_x", o->limit_x);
    clconv_emit_set_text(e, "element", s->half_tile ? "ushort" : "float");
    clconv_emit_set(e, "pitch", clconv_local_stage_pitch(s));
    clconv_emit_set(e, "rows", s->rows);
    clconv_emit_set(e, "items", s->items);
    clconv_emit_set(e, "width", s->width);
    clconv_emit_set(e, "terms", CLCONV_LOCAL_TERMS);
    clconv_emit_set(e, "vectors", vectors(s));
    clconv_emit_set(e, "own", own_vectors(s));
    clconv_emit_set(e, "kept", kept_rows(s));
    clconv_emit_set(e, "reach", o->x_step * (s->width - 1));
    clconv_emit_set(e, "across", (o->along_k ? s->tile_k : s->rows) / s->width);
}

void clconv_local_open_fixed(clconv_emit *e, const clconv_device *d,
                             const char *head)
{
    if (!d->is_cpu)
        clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, head);
}

/* ---- Functions -------------------------------------------------------- */

static void emit_pick(clconv_emit *e)
{
    clconv_nest_open_function(e, "static $raw pick_$tile(__global const $raw "
                                 "*p, spot_t r, spot_t t, const sizes_t "
                                 "*sizes)");
    clconv_emit_line(e, "return spot_inside(r, t, $limit_y, $limit_x) ? "
                        "p[spot_index(r, t)] : ($raw)0;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Is a vector that starts at r + t whole? Its ends being joined already. */
static void emit_whole(clconv_emit *e, const clconv_local_stage *s)
{
    clconv_nest_open_function(e, "static int whole_$tile(spot_t r, spot_t t, "
                                 "const sizes_t *sizes)");
    clconv_emit_line(e, s->operand->x_step
                            ? "return spot_inside(r, t, $limit_y, "
                              "$limit_x - $reach);"
                            : "return spot_inside(r, t, $limit_y, $limit_x);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* For each of a work-item's vectors; index is its number in the tile. */
static void open_vectors(clconv_emit *e, const clconv_task *t,
                         const clconv_local_stage *s)
{
    clconv_local_open_fixed(e, t->device, "for (int i = 0; i < $own; ++i)");
    clconv_emit_line(e, "int index = item + i * $items;");
    if (vectors(s) % s->items)
        clconv_emit_open(e, "if (index < $vectors)");
}

static void close_vectors(clconv_emit *e, const clconv_local_stage *s)
{
    if (vectors(s) % s->items)
        clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_pick_each(clconv_emit *e, const clconv_local_stage *s)
{
    for (int j = 0; j < s->width; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, s->operand->along_k
                                ? "next[i].s$j = pick_$tile(p, r, term[k + "
                                  "$j], sizes);"
                                : "next[i].s$j = pick_$tile(p, row[first + "
                                  "$j], t, sizes);");
    }
}

static void emit_fetch_vector(clconv_emit *e, const clconv_local_stage *s)
{
    clconv_emit_open(e, s->operand->along_k
                            ? "if (joined && whole_$tile(r, t, sizes))"
                            : "if (joined[i % $kept] && whole_$tile(r, t, "
                              "sizes))");
    clconv_emit_line(e, "next[i] = vload$width(0, p + spot_index(r, t));");
    clconv_emit_else(e);
    emit_pick_each(e, s);
    clconv_emit_close(e);
}

static void emit_fetch_body(clconv_emit *e, const clconv_task *t,
                            const clconv_local_stage *s)
{
    bool vector = s->width > 1;
    if (s->operand->along_k) {
        clconv_emit_line(e, "int k = item % $across * $width;");
        clconv_emit_line(e, "spot_t t = term[k];");
        if (vector)
            clconv_emit_line(e, "int joined = spots_join(t, term[k + $width - "
                                "1], $width, $reach);");
    }
    open_vectors(e, t, s);
    if (s->operand->along_k) {
        clconv_emit_line(e, "spot_t r = row[index / $across];");
    } else {
        if (vector)
            clconv_emit_line(e, "int first = index % $across * $width;");
        clconv_emit_line(e, "spot_t r = own[i % $kept];");
        clconv_emit_line(e, "spot_t t = term[index / $across];");
    }
    if (vector)
        emit_fetch_vector(e, s);
    else
        clconv_emit_line(e, "next[i] = pick_$tile(p, r, t, sizes);");
    close_vectors(e, s);
}

static void emit_fetch(clconv_emit *e, const clconv_task *t,
                       const clconv_local_stage *s)
{
    bool along_k = s->operand->along_k, vector = s->width > 1;
    clconv_emit_line(e, "__attribute__((always_inline))");
    clconv_emit_line(e, "static void fetch_$tile($rawn *next, "
                        "__global const $raw *p,");
    if (along_k || vector)
        clconv_emit_line(e, "    __local const spot_t *row,");
    if (!along_k)
        clconv_emit_line(e, vector ? "    const spot_t *own, const int "
                                     "*joined,"
                                   : "    const spot_t *own,");
    clconv_emit_open(e, "    __local const spot_t *term, const sizes_t *sizes, "
                        "int item)");
    emit_fetch_body(e, t, s);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* What the bits of halves are worth. */
static void emit_widen(clconv_emit *e, const clconv_device *d)
{
    clconv_emit_open(e, "static $float widen_$tile($rawn bits)");
    if (d->has_fp16)
        clconv_emit_line(e, "return convert_$float(as_half$vn(bits));");
    else
        clconv_emit_line(e, "return vload_half$vn(0, (const half *)&bits);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The statements that put value to row, k: as it is, or as half. */
static void emit_put_value(clconv_emit *e, const clconv_local_stage *s,
                           bool to_half)
{
    if (s->width == 1) {
        clconv_emit_line(e, to_half ? "vstore_half(value, k * $pitch + row, "
                                      "(__local half *)tile);"
                                    : "tile[k * $pitch + row] = value;");
    } else if (!s->operand->along_k) {
        clconv_emit_line(e, to_half
                                ? "vstore_half$width(value, 0, (__local half "
                                  "*)tile + k * $pitch + row);"
                                : "*(__local $element$width *)(tile + k * "
                                  "$pitch + row) = value;");
    } else {
        for (int j = 0; j < s->width; ++j) {
            clconv_emit_set(e, "j", j);
            clconv_emit_line(e, to_half ? "vstore_half(value.s$j, (k + $j) * "
                                          "$pitch + row, (__local half *)tile);"
                                        : "tile[(k + $j) * $pitch + row] = "
                                          "value.s$j;");
        }
    }
}

static void emit_put(clconv_emit *e, const clconv_task *t,
                     const clconv_local_stage *s)
{
    clconv_tensor tensor = s->operand->tensor;
    bool half_type = clconv_operand_is_half(t, tensor);
    bool bits = half_type && s->half_tile;
    clconv_nest_open_function(e, "static void put_$tile(__local $element "
                                 "*tile, const $rawn *next, int item)");
    open_vectors(e, t, s);
    clconv_emit_line(e, s->operand->along_k
                            ? "int row = index / $across;"
                            : "int row = index % $across * $width;");
    clconv_emit_line(e, s->operand->along_k
                            ? "int k = index % $across * $width;"
                            : "int k = index / $across;");
    if (bits)
        clconv_emit_line(e, "$rawn value = next[i];");
    else if (half_type)
        clconv_emit_line(e, "$float value = widen_$tile(next[i]);");
    else if (clconv_operand_is_fused(t, tensor))
        clconv_emit_line(e, "$float value = round_$operand$vn(next[i]);");
    else
        clconv_emit_line(e, "$float value = next[i];");
    emit_put_value(e, s, s->half_tile && !half_type);
    close_vectors(e, s);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_local_stage_emit(clconv_emit *e, const clconv_task *t,
                             const clconv_local_stage *s)
{
    clconv_tensor tensor = s->operand->tensor;
    if (clconv_operand_is_fused(t, tensor))
        clconv_operand_emit_round(e, t->problem, tensor, s->width);
    set_holes(e, t, s);
    emit_pick(e);
    if (s->width > 1)
        emit_whole(e, s);
    emit_fetch(e, t, s);
    if (clconv_operand_is_half(t, tensor) && !s->half_tile)
        emit_widen(e, t->device);
    emit_put(e, t, s);
}

/* ---- In the entry point ----------------------------------------------- */

void clconv_local_stage_emit_start(clconv_emit *e, const clconv_task *t,
                                   const clconv_local_stage *s)
{
    set_holes(e, t, s);
    clconv_emit_line(e, "__local $element tile_$tile[$tile_k * $pitch] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "__local spot_t row_$tile[$rows], term_$tile[$terms];");
    clconv_emit_line(e, "$rawn next_$tile[$own];");
    clconv_emit_line(e, "for (int i = item; i < $rows; i += $items)");
    clconv_emit_line(e, "    row_$tile[i] = ${operand}_row(&block, &sizes, "
                        "i);");
}

void clconv_local_stage_emit_rows(clconv_emit *e, const clconv_task *t,
                                  const clconv_local_stage *s)
{
    if (s->operand->along_k)
        return;
    set_holes(e, t, s);
    clconv_emit_line(e, "spot_t own_$tile[$kept];");
    if (s->width > 1)
        clconv_emit_line(e, "int joined_$tile[$kept];");
    clconv_local_open_fixed(e, t->device, "for (int i = 0; i < $kept; ++i)");
    clconv_emit_line(e, "int first = (item + i * $items) % $across * $width;");
    clconv_emit_line(e, "own_$tile[i] = row_$tile[first];");
    if (s->width > 1)
        clconv_emit_line(e, "joined_$tile[i] = spots_join(own_$tile[i], "
                            "row_$tile[first + $width - 1], $width, $reach);");
    clconv_emit_close(e);
}

void clconv_local_stage_emit_find(clconv_emit *e, const clconv_local_stage *s)
{
    clconv_emit_set_text(e, "tile", s->name);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(s->operand->tensor));
    clconv_emit_line(e, "term_$tile[place] = ${operand}_term(&block, &sizes, "
                        "k);");
}

void clconv_local_stage_emit_fetch(clconv_emit *e, const clconv_task *t,
                                   const clconv_local_stage *s)
{
    bool along_k = s->operand->along_k, vector = s->width > 1;
    set_holes(e, t, s);
    clconv_emit_line(e, "fetch_$tile(next_$tile, (__global const $raw "
                        "*)$operand,");
    if (along_k)
        clconv_emit_line(e, "    row_$tile, term_$tile + step, &sizes, item);");
    else if (vector)
        clconv_emit_line(e, "    row_$tile, own_$tile, joined_$tile, "
                            "term_$tile + step, &sizes, item);");
    else
        clconv_emit_line(e, "    own_$tile, term_$tile + step, &sizes, item);");
}

void clconv_local_stage_emit_put(clconv_emit *e, const clconv_task *t,
                                 const clconv_local_stage *s)
{
    set_holes(e, t, s);
    clconv_emit_line(e, "put_$tile(tile_$tile, next_$tile, item);");
}

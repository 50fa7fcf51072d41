/*
 * Indices are dear: a division by a size that is an argument takes as long as
 * twenty multiply-adds. So the spots of the tile's rows are worked out once a
 * work-group, those of many terms at a time, both into local memory, and an
 * element costs an addition and two comparisons.
 *
 * Where channels come in fours, they are fetched as quads (nest.h): one spot
 * of a row, one of a term, and one check serve four elements.
 *
 * Work-items take elements, or quads, in the order that they have in memory. A
 * work-item meets the same rows at every step where neighbours follow the rows
 * (kept in registers: $kept of them), or the same term where they follow k.
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
    return (size_t)s->tiles * tile +
           (size_t)(s->rows + CLCONV_LOCAL_TERMS) * SPOT_BYTES;
}

static bool is_half(const clconv_task *t, const clconv_nest_operand *o)
{
    return !o->prepared && clconv_operand_is_half(t, o->tensor);
}

static bool is_fused(const clconv_task *t, const clconv_nest_operand *o)
{
    return !o->prepared && clconv_operand_is_fused(t, o->tensor);
}

/* Rows and terms of what is fetched at once. */
static int width_rows(const clconv_local_stage *s)
{
    return s->operand->quad.along_k ? 1 : s->width;
}

static int width_k(const clconv_local_stage *s)
{
    return s->operand->quad.along_k ? s->width : 1;
}

/* Quads of the tile, and of them a work-item's; or elements. */
static int quads(const clconv_local_stage *s)
{
    return s->rows * s->tile_k / s->width;
}

static int own_quads(const clconv_local_stage *s)
{
    return (int)clconv_divide_up(quads(s), s->items);
}

/* Different rows, or first rows of quads, that a work-item meets where
 * neighbours follow the rows. */
static int kept_rows(const clconv_local_stage *s)
{
    int across = s->rows / width_rows(s);
    return across > s->items ? across / s->items : 1;
}

/* $raw, $rawn: an element and a quad as they wait in registers. */
static void set_types(clconv_emit *e, const clconv_task *t,
                      const clconv_local_stage *s)
{
    bool half_type = is_half(t, s->operand);
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
    int along_k = s->tile_k / width_k(s), along_rows = s->rows / width_rows(s);
    set_types(e, t, s);
    clconv_emit_set_text(e, "tile", s->name);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(o->tensor));
    clconv_emit_set_text(e, "limit_y", o->limit_y);
    clconv_emit_set_text(e, "limit_x", o->limit_x);
    clconv_emit_set_text(e, "step", o->quad.step ? o->quad.step : "1");
    clconv_emit_set_text(e, "element", s->half_tile ? "ushort" : "float");
    clconv_emit_set(e, "pitch", clconv_local_stage_pitch(s));
    clconv_emit_set(e, "tile_size", s->tile_k * clconv_local_stage_pitch(s));
    clconv_emit_set(e, "rows", s->rows);
    clconv_emit_set(e, "items", s->items);
    clconv_emit_set(e, "width", s->width);
    clconv_emit_set(e, "width_rows", width_rows(s));
    clconv_emit_set(e, "width_k", width_k(s));
    clconv_emit_set(e, "terms", CLCONV_LOCAL_TERMS);
    clconv_emit_set(e, "tiles", s->tiles);
    clconv_emit_set(e, "quads", quads(s));
    clconv_emit_set(e, "own", own_quads(s));
    clconv_emit_set(e, "kept", kept_rows(s));
    clconv_emit_set(e, "across", o->along_k ? along_k : along_rows);
}

void clconv_local_open_fixed(clconv_emit *e, const clconv_device *d,
                             const char *head)
{
    if (!d->is_cpu)
        clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, head);
}

/* ---- Functions -------------------------------------------------------- */

/* inside_<tile>: does the element exist? from_<tile>: where it is. */
static void emit_places(clconv_emit *e, const clconv_local_stage *s)
{
    clconv_nest_open_function(e, "static int inside_$tile(spot_t r, spot_t t, "
                                 "const sizes_t *sizes)");
    clconv_emit_line(e, s->operand->bordered
                            ? "return spot_inside(r, t, $limit_y, $limit_x);"
                            : "return r.z + t.z >= 0;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "static __global const $raw *from_$tile("
                                 "__global const $raw *p, spot_t r, spot_t t)");
    clconv_emit_line(e,
                     "return (__global const $raw *)((__global const char *)p "
                     "+ spot_index(r, t));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* What p points to as $rawn. */
static const char *value_at_p(const clconv_local_stage *s)
{
    if (s->width == 1)
        return "*p";
    return s->aligned ? "*(__global const $rawn *)p" : "vload$width(0, p)";
}

static void emit_pick(clconv_emit *e, const clconv_local_stage *s)
{
    char line[96];
    clconv_nest_open_function(e, "static $rawn pick_$tile(__global const $raw "
                                 "*p, spot_t r, spot_t t, const sizes_t "
                                 "*sizes)");
    clconv_emit_line(e, "if (!inside_$tile(r, t, sizes))");
    clconv_emit_line(e, "    return ($rawn)0;");
    clconv_emit_line(e, "p = from_$tile(p, r, t);");
    if (s->width > 1 && s->operand->quad.step) {
        clconv_emit_line(e, "$rawn value;");
        for (int j = 0; j < s->width; ++j) {
            clconv_emit_set(e, "j", j);
            clconv_emit_line(e, "value.s$j = *p;");
            if (j + 1 < s->width)
                clconv_emit_line(e, "p += $step;");
        }
        clconv_emit_line(e, "return value;");
    } else {
        snprintf(line, sizeof line, "return %s;", value_at_p(s));
        clconv_emit_line(e, line);
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* For each of a work-item's quads; index is its number in the tile. */
static void open_quads(clconv_emit *e, const clconv_task *t,
                       const clconv_local_stage *s)
{
    clconv_local_open_fixed(e, t->device, "for (int i = 0; i < $own; ++i)");
    clconv_emit_line(e, "int index = item + i * $items;");
    if (quads(s) % s->items)
        clconv_emit_open(e, "if (index < $quads)");
}

static void close_quads(clconv_emit *e, const clconv_local_stage *s)
{
    if (quads(s) % s->items)
        clconv_emit_close(e);
    clconv_emit_close(e);
}

/* The same, with the quad's spots r and t. */
static void open_spots(clconv_emit *e, const clconv_task *t,
                       const clconv_local_stage *s)
{
    if (s->operand->along_k)
        clconv_emit_line(e, "spot_t t = term[item % $across * $width_k];");
    open_quads(e, t, s);
    if (s->operand->along_k) {
        clconv_emit_line(e, "spot_t r = row[index / $across * $width_rows];");
    } else {
        clconv_emit_line(e, "spot_t r = own[i % $kept];");
        clconv_emit_line(e, "spot_t t = term[index / $across * $width_k];");
    }
}

/* row and k: its place in the tile. */
static void emit_place(clconv_emit *e, const clconv_local_stage *s)
{
    clconv_emit_line(e, s->operand->along_k
                            ? "int row = index / $across * $width_rows;"
                            : "int row = index % $across * $width_rows;");
    clconv_emit_line(e, s->operand->along_k
                            ? "int k = index % $across * $width_k;"
                            : "int k = index / $across * $width_k;");
}

/* first: the line with the function's name and what it writes to. */
static void open_spot_function(clconv_emit *e, const clconv_local_stage *s,
                               const char *first)
{
    clconv_emit_line(e, "__attribute__((always_inline))");
    clconv_emit_line(e, first);
    clconv_emit_line(e, s->operand->along_k ? "    __local const spot_t *row,"
                                            : "    const spot_t *own,");
    clconv_emit_open(e, "    __local const spot_t *term, const sizes_t *sizes, "
                        "int item)");
}

static void emit_fetch(clconv_emit *e, const clconv_task *t,
                       const clconv_local_stage *s)
{
    open_spot_function(e, s,
                       "static void fetch_$tile($rawn *next, "
                       "__global const $raw *p,");
    open_spots(e, t, s);
    clconv_emit_line(e, "next[i] = pick_$tile(p, r, t, sizes);");
    close_quads(e, s);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The statements that copy a quad, or an element. */
static void emit_copy_quad(clconv_emit *e, const clconv_local_stage *s)
{
    const clconv_nest_quad *quad = &s->operand->quad;
    if (s->width > 1 && !quad->step && !quad->along_k && s->aligned) {
        clconv_emit_line(e, "copy4(tiles, to, from, exists);");
        return;
    }
    clconv_emit_set(e, "to_next",
                    4 * (quad->along_k ? clconv_local_stage_pitch(s) : 1));
    for (int j = 0; j < s->width; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, "copy1(tiles, to + $j * $to_next, from, exists);");
        if (j + 1 < s->width)
            clconv_emit_line(e, "from += $step;");
    }
}

static void emit_copy(clconv_emit *e, const clconv_task *t,
                      const clconv_local_stage *s)
{
    open_spot_function(e, s,
                       "static void copy_$tile(__local float *tiles, uint "
                       "tile, __global const $raw *p,");
    open_spots(e, t, s);
    emit_place(e, s);
    clconv_emit_line(e, "int exists = inside_$tile(r, t, sizes);");
    clconv_emit_line(e, "__global const $raw *from = from_$tile(p, r, t);");
    clconv_emit_line(e, "uint to = tile + 4 * (k * $pitch + row);");
    emit_copy_quad(e, s);
    close_quads(e, s);
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
    } else if (!s->operand->quad.along_k) {
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
    bool half_type = is_half(t, s->operand);
    bool bits = half_type && s->half_tile;
    clconv_nest_open_function(e, "static void put_$tile(__local $element "
                                 "*tile, const $rawn *next, int item)");
    open_quads(e, t, s);
    emit_place(e, s);
    if (bits)
        clconv_emit_line(e, "$rawn value = next[i];");
    else if (half_type)
        clconv_emit_line(e, "$float value = widen_$tile(next[i]);");
    else if (is_fused(t, s->operand))
        clconv_emit_line(e, "$float value = round_$operand$vn(next[i]);");
    else
        clconv_emit_line(e, "$float value = next[i];");
    emit_put_value(e, s, s->half_tile && !half_type);
    close_quads(e, s);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_local_stage_emit(clconv_emit *e, const clconv_task *t,
                             const clconv_local_stage *s)
{
    if (is_fused(t, s->operand))
        clconv_operand_emit_round(e, t->problem, s->operand->tensor, s->width);
    set_holes(e, t, s);
    emit_places(e, s);
    if (s->async) {
        emit_copy(e, t, s);
        return;
    }
    emit_pick(e, s);
    emit_fetch(e, t, s);
    if (is_half(t, s->operand) && !s->half_tile)
        emit_widen(e, t->device);
    emit_put(e, t, s);
}

/* ---- In the entry point ----------------------------------------------- */

void clconv_local_stage_emit_start(clconv_emit *e, const clconv_task *t,
                                   const clconv_local_stage *s)
{
    set_holes(e, t, s);
    clconv_emit_line(e, "__local $element tile_$tile[$tiles * $tile_size] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "__local spot_t row_$tile[$rows], term_$tile[$terms];");
    clconv_emit_line(e, s->async
                            ? "uint base_$tile = shared_address(tile_$tile);"
                            : "$rawn next_$tile[$own];");
    clconv_emit_line(e, "for (int i = item; i < $rows; i += $items)");
    clconv_emit_line(e, "    row_$tile[i] = spot_scaled(${operand}_row(&block, "
                        "&sizes, i), sizeof($raw));");
}

void clconv_local_stage_emit_rows(clconv_emit *e, const clconv_task *t,
                                  const clconv_local_stage *s)
{
    if (s->operand->along_k)
        return;
    set_holes(e, t, s);
    clconv_emit_line(e, "spot_t own_$tile[$kept];");
    clconv_local_open_fixed(e, t->device, "for (int i = 0; i < $kept; ++i)");
    clconv_emit_line(e,
                     "own_$tile[i] = row_$tile[(item + i * $items) % $across "
                     "* $width_rows];");
    clconv_emit_close(e);
}

void clconv_local_stage_emit_find(clconv_emit *e, const clconv_local_stage *s)
{
    clconv_emit_set_text(e, "tile", s->name);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(s->operand->tensor));
    clconv_emit_line(e, "term_$tile[at] = spot_scaled(${operand}_term(&block, "
                        "&sizes, k), sizeof(*$operand));");
}

void clconv_local_stage_emit_fetch(clconv_emit *e, const clconv_task *t,
                                   const clconv_local_stage *s)
{
    set_holes(e, t, s);
    clconv_emit_line(e, "fetch_$tile(next_$tile, (__global const $raw "
                        "*)$operand,");
    clconv_emit_line(e,
                     s->operand->along_k
                         ? "    row_$tile, term_$tile + place, &sizes, item);"
                         : "    own_$tile, term_$tile + place, &sizes, "
                           "item);");
}

void clconv_local_stage_emit_put(clconv_emit *e, const clconv_task *t,
                                 const clconv_local_stage *s)
{
    set_holes(e, t, s);
    clconv_emit_line(
        e, "put_$tile(tile_$tile + turn * $tile_size, next_$tile, item);");
}

void clconv_local_stage_emit_copy(clconv_emit *e, const clconv_task *t,
                                  const clconv_local_stage *s)
{
    set_holes(e, t, s);
    clconv_emit_line(e, "copy_$tile(tile_$tile, base_$tile + 4 * $tile_size * "
                        "turn, $operand,");
    clconv_emit_line(e,
                     s->operand->along_k
                         ? "    row_$tile, term_$tile + place, &sizes, item);"
                         : "    own_$tile, term_$tile + place, &sizes, "
                           "item);");
}

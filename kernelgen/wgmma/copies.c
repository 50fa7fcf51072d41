/*
 * A work-item has its place in a line, piece, and copies every so many lines,
 * so that what depends on its rows of the nest is worked out once a tile, and
 * what depends on its terms once a piece (along k) or line. Lines that the
 * work-items copy together are a multiple of 1024 bytes, in which no swizzle
 * differs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "copies.h"

#include "integers.h"

/* Halves of a piece. */
#define PIECE 8

/* How a piece goes: by itself, to a register, or from there. */
typedef enum way { COPY, FETCH, PUT } way;

/* Lines that so many work-items copy together. */
static int lines(const clconv_wgmma_side *s, int items)
{
    return items * PIECE / s->line;
}

/* Lines of a chunk: rows, or terms. */
static int chunk_lines(const clconv_wgmma_side *s)
{
    return s->operand->along_k ? s->rows : s->terms;
}

/* How often they do for a chunk: a last time for some of them. */
static int turns(const clconv_wgmma_side *s, int items)
{
    return (int)clconv_divide_up(chunk_lines(s), lines(s, items));
}

int clconv_wgmma_copies_spots(const clconv_wgmma_side *s, int items)
{
    return s->operand->along_k ? turns(s, items) : clconv_wgmma_chunks(s);
}

int clconv_wgmma_copies_pieces(const clconv_wgmma_side *s, int items)
{
    return turns(s, items) * clconv_wgmma_chunks(s);
}

void clconv_copies_emit_parts(clconv_emit *e, bool emulated, bool asynchronous)
{
    clconv_emit_part(e, "swizzle");
    if (emulated) {
        clconv_emit_part(e, "pieces");
        return;
    }
    clconv_emit_part(e, "copy_group");
    clconv_emit_part(e, "pieces_nv");
    if (asynchronous)
        clconv_emit_part(e, "copy16");
}

static void set_holes(clconv_emit *e, const clconv_wgmma_side *s, int items)
{
    const clconv_nest_operand *o = s->operand;
    clconv_emit_set_text(e, "stage", s->name);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(o->tensor));
    clconv_emit_set_text(e, "limit_y", o->limit_y);
    clconv_emit_set_text(e, "limit_x", o->limit_x);
    clconv_emit_set(e, "turns", turns(s, items));
    clconv_emit_set(e, "chunks", clconv_wgmma_chunks(s));
    clconv_emit_set(e, "chunk_bytes", clconv_wgmma_chunk_bytes(s));
    clconv_emit_set(e, "chunk_lines", chunk_lines(s));
    clconv_emit_set(e, "lines", lines(s, items));
    clconv_emit_set(e, "turn_bytes", items * PIECE * 2);
    clconv_emit_set(e, "line", s->line);
    clconv_emit_set(e, "line_bytes", 2 * s->line);
    clconv_emit_set(e, "line_pieces", s->line / PIECE);
}

static void emit_begin(clconv_emit *e, const clconv_wgmma_side *s)
{
    clconv_nest_open_function(e,
                              "void ${stage}_begin(const block_t *block, "
                              "const sizes_t *sizes, int item, spot_t *rows)");
    clconv_emit_line(e, "#pragma unroll");
    if (s->operand->along_k) {
        clconv_emit_line(e, "for (int i = 0; i < $turns; ++i)");
        clconv_emit_line(e, "    rows[i] = ${operand}_row(block, sizes, "
                            "item / $line_pieces + $lines * i);");
    } else {
        clconv_emit_line(e, "for (int i = 0; i < $chunks; ++i)");
        clconv_emit_line(e, "    rows[i] = ${operand}_row(block, sizes, "
                            "$line * i + 8 * (item % $line_pieces));");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* One piece, of the row rows[i]: its address is to, its register held[piece]. */
static void emit_piece(clconv_emit *e, way w)
{
    if (w == PUT) {
        clconv_emit_line(e, "put16(tiles, to, held[piece]);");
        return;
    }
    clconv_emit_line(e,
                     "const int exists = spot_inside(rows[i], term, $limit_y,"
                     " $limit_x);");
    if (w == COPY)
        clconv_emit_line(e, "copy16(tiles, to, $operand + (exists ? "
                            "spot_index(rows[i], term) : 0), exists);");
    else
        clconv_emit_line(e, "held[piece] = exists ? *(__global const uint4 *)"
                            "($operand + spot_index(rows[i], term)) : "
                            "(uint4)(0);");
}

/* Leaves the loop over turns, $turn, where no line is left. */
static void emit_last_turn(clconv_emit *e, const clconv_wgmma_side *s, int items)
{
    if (chunk_lines(s) % lines(s, items) == 0)
        return;
    clconv_emit_line(e, "if (item / $line_pieces + $lines * $turn >= "
                        "$chunk_lines)");
    clconv_emit_line(e, "    break;");
}

static void emit_along_k(clconv_emit *e, const clconv_wgmma_side *s, int items,
                         way w)
{
    clconv_emit_set_text(e, "turn", "i");
    if (w != PUT)
        clconv_emit_line(e, "const spot_t term = ${operand}_term(block, sizes, "
                            "k0 + 8 * (item % $line_pieces));");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $turns; ++i)");
    emit_last_turn(e, s, items);
    if (w != COPY)
        clconv_emit_line(e, "const int piece = i;");
    if (w != FETCH)
        clconv_emit_line(e, "const uint to = at + $turn_bytes * i;");
    emit_piece(e, w);
    clconv_emit_close(e);
}

static void emit_along_rows(clconv_emit *e, const clconv_wgmma_side *s,
                            int items, way w)
{
    clconv_emit_set_text(e, "turn", "j");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $turns; ++j)");
    emit_last_turn(e, s, items);
    if (w != PUT)
        clconv_emit_line(e, "const spot_t term = ${operand}_term(block, sizes, "
                            "k0 + item / $line_pieces + $lines * j);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $chunks; ++i)");
    if (s->rows % s->line) {
        clconv_emit_set(e, "rows", s->rows);
        clconv_emit_line(e, "if ($line * i + 8 * (item % $line_pieces) >= "
                            "$rows)");
        clconv_emit_line(e, "    break;");
    }
    if (w != COPY)
        clconv_emit_line(e, "const int piece = $chunks * j + i;");
    if (w != FETCH)
        clconv_emit_line(e, "const uint to = at + $turn_bytes * j + "
                            "$chunk_bytes * i;");
    emit_piece(e, w);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_way(clconv_emit *e, const clconv_wgmma_side *s, int items,
                     way w)
{
    static const char *const heads[] = {
        [COPY] = "void ${stage}_stage(__local uchar *tiles, uint at, __global "
                 "const half *$operand, const block_t *block, const sizes_t "
                 "*sizes, const spot_t *rows, int k0, int item)",
        [FETCH] = "void ${stage}_fetch(uint4 *held, __global const half "
                  "*$operand, const block_t *block, const sizes_t *sizes, "
                  "const spot_t *rows, int k0, int item)",
        [PUT] = "void ${stage}_put(__local uchar *tiles, uint at, const uint4 "
                "*held, int item)",
    };
    clconv_nest_open_function(e, heads[w]);
    if (w != FETCH)
        clconv_emit_line(e, "at += swizzled(16 * item, $line_bytes);");
    if (s->operand->along_k)
        emit_along_k(e, s, items, w);
    else
        emit_along_rows(e, s, items, w);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_wgmma_copies_emit(clconv_emit *e, const clconv_wgmma_side *s,
                              int items)
{
    set_holes(e, s, items);
    emit_begin(e, s);
    emit_way(e, s, items, COPY);
}

void clconv_wgmma_copies_emit_held(clconv_emit *e, const clconv_wgmma_side *s,
                                   int items)
{
    set_holes(e, s, items);
    emit_begin(e, s);
    emit_way(e, s, items, FETCH);
    emit_way(e, s, items, PUT);
}

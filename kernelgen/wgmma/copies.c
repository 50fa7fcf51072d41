/*
 * A work-item has its place in a line, piece, and copies every 16th line, so
 * that what depends on its rows of the nest is worked out once a tile, and what
 * depends on its terms once a piece (along k) or line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "copies.h"

#include "integers.h"

/* Lines that 128 work-items copy together. */
#define LINES 16

/* How often 16 lines are copied: a last time for some of the work-items. */
static int turns(const clconv_wgmma_side *s)
{
    return (int)clconv_divide_up(s->rows, LINES);
}

int clconv_wgmma_copies_spots(const clconv_wgmma_side *s)
{
    return s->operand->along_k ? turns(s) : clconv_wgmma_chunks(s);
}

static void set_holes(clconv_emit *e, const clconv_wgmma_side *s)
{
    const clconv_nest_operand *o = s->operand;
    clconv_emit_set_text(e, "stage", s->name);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(o->tensor));
    clconv_emit_set_text(e, "limit_y", o->limit_y);
    clconv_emit_set_text(e, "limit_x", o->limit_x);
    clconv_emit_set(e, "rows", s->rows);
    clconv_emit_set(e, "turns", turns(s));
    clconv_emit_set(e, "chunks", clconv_wgmma_chunks(s));
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
                            "item / 8 + 16 * i);");
    } else {
        clconv_emit_line(e, "for (int i = 0; i < $chunks; ++i)");
        clconv_emit_line(e, "    rows[i] = ${operand}_row(block, sizes, "
                            "64 * i + 8 * (item % 8));");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* One piece, of the row rows[i]; $to: its address. */
static void emit_copy(clconv_emit *e)
{
    clconv_emit_line(e,
                     "const int exists = spot_inside(rows[i], term, $limit_y,"
                     " $limit_x);");
    clconv_emit_line(e, "copy16(tiles, $to, $operand + (exists ? "
                        "spot_index(rows[i], term) : 0), exists);");
}

static void emit_along_k(clconv_emit *e, const clconv_wgmma_side *s)
{
    clconv_emit_set_text(e, "to", "at + 2048 * i");
    clconv_emit_line(e, "const spot_t term = ${operand}_term(block, sizes, "
                        "k0 + 8 * (item % 8));");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $turns; ++i)");
    if (s->rows % LINES) {
        clconv_emit_line(e, "if (item / 8 + 16 * i >= $rows)");
        clconv_emit_line(e, "    break;");
    }
    emit_copy(e);
    clconv_emit_close(e);
}

static void emit_along_rows(clconv_emit *e, const clconv_wgmma_side *s)
{
    clconv_emit_set_text(e, "to", "at + 2048 * j + 8192 * i");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < 4; ++j)");
    clconv_emit_line(e, "const spot_t term = ${operand}_term(block, sizes, "
                        "k0 + item / 8 + 16 * j);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $chunks; ++i)");
    if (s->rows % s->line) {
        clconv_emit_line(e, "if (64 * i + 8 * (item % 8) >= $rows)");
        clconv_emit_line(e, "    break;");
    }
    emit_copy(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

void clconv_wgmma_copies_emit(clconv_emit *e, const clconv_wgmma_side *s)
{
    set_holes(e, s);
    emit_begin(e, s);
    clconv_nest_open_function(
        e, "void ${stage}_stage(__local uchar *tiles, uint at, __global const "
           "half *$operand, const block_t *block, const sizes_t *sizes, const "
           "spot_t *rows, int k0, int item)");
    clconv_emit_line(e, "at = swizzled(at + 16 * item, 128);");
    if (s->operand->along_k)
        emit_along_k(e, s);
    else
        emit_along_rows(e, s);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

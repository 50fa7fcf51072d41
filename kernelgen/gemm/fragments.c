/*
 * A lane gives the place of a line of one of the four matrices; where
 * neighbours are rows, the unit of the device that loads them transposes. Lines
 * of a matrix are 8 neighbouring lines of the side, at one piece: the swizzle
 * puts them into different banks, all 128 bytes wide.
 *
 * The emulation asks for the places of the lanes whose lines it needs, and so
 * reads what the device would.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fragments.h"

void clconv_fragments_emit_parts(clconv_emit *e, bool emulated)
{
    if (!emulated)
        clconv_emit_part(e, "load_matrices_nv");
}

static void set_holes(clconv_emit *e, const clconv_wgmma_side *s)
{
    clconv_emit_set_text(e, "side", s->name);
    clconv_emit_set(e, "line", s->line);
    clconv_emit_set(e, "line_bytes", 2 * s->line);
    clconv_emit_set(e, "chunk_bytes", clconv_wgmma_chunk_bytes(s));
}

/* uint place_<side>(row, k, lane): of the line that the lane gives. row_step
 * and k_step: what the lane adds. */
static void emit_place(clconv_emit *e, const clconv_wgmma_side *s,
                       const char *row_step, const char *k_step)
{
    clconv_emit_set_text(e, "row_step", row_step);
    clconv_emit_set_text(e, "k_step", k_step);
    clconv_nest_open_function(e, "uint place_$side(int row, int k, int lane)");
    clconv_emit_line(e, "row += $row_step;");
    clconv_emit_line(e, "k += $k_step;");
    clconv_emit_line(e, s->operand->along_k
                            ? "return swizzled($line_bytes * row + 2 * k, "
                              "$line_bytes);"
                            : "return row / $line * $chunk_bytes + "
                              "swizzled($line_bytes * k + 2 * (row % $line), "
                              "$line_bytes);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_native(clconv_emit *e, bool transposed)
{
    clconv_emit_line(e, transposed
                            ? "load_transposed(m, at + place_$side(row, k, "
                              "lane));"
                            : "load_matrices(m, at + place_$side(row, k, "
                              "lane));");
}

static void emit_emulated(clconv_emit *e, bool transposed)
{
    clconv_emit_line(e, "const int g = lane % 32 / 4, t = lane % 4;");
    clconv_emit_line(e, "tiles += at;");
    clconv_emit_open(e, "for (int i = 0; i < 4; ++i)");
    if (transposed) {
        clconv_emit_line(e, "uint low = *(__local const ushort *)(tiles + "
                            "place_$side(row, k, 8 * i + 2 * t) + 2 * g);");
        clconv_emit_line(e, "uint high = *(__local const ushort *)(tiles + "
                            "place_$side(row, k, 8 * i + 2 * t + 1) + 2 * g);");
        clconv_emit_line(e, "m[i] = low | high << 16;");
    } else {
        clconv_emit_line(e, "m[i] = *(__local const uint *)(tiles + "
                            "place_$side(row, k, 8 * i + g) + 4 * t);");
    }
    clconv_emit_close(e);
}

static void emit_load(clconv_emit *e, const clconv_wgmma_side *s, bool emulated)
{
    bool transposed = !s->operand->along_k;
    clconv_emit_set_text(e, "side", s->name);
    clconv_nest_open_function(
        e, "void load_$side(uint *m, __local const uchar *tiles, uint at, int "
           "row, int k, int lane)");
    if (emulated)
        emit_emulated(e, transposed);
    else
        emit_native(e, transposed);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_fragments_emit(clconv_emit *e, const clconv_wgmma_side *a,
                           const clconv_wgmma_side *b, bool emulated)
{
    bool along_k = a->operand->along_k;
    set_holes(e, a);
    emit_place(e, a, along_k ? "lane % 16" : "lane / 8 % 2 * 8",
               along_k ? "lane / 16 % 2 * 8" : "lane % 8 + lane / 16 % 2 * 8");
    set_holes(e, b);
    emit_place(e, b, "lane / 16 % 2 * 8", "lane % 16");
    emit_load(e, a, emulated);
    emit_load(e, b, emulated);
}

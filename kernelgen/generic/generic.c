/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "generic.h"

#include "operand.h"

void clconv_generic_set_lanes(clconv_emit *e, int width)
{
    clconv_emit_set_text(e, "lanes",
                         width > 1 ? "(int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "
                                     "10, 11, 12, 13, 14, 15)"
                                   : "0");
}

/* The vector at an end of the tensor, element by element, rounded as a whole.
 * Not inlined: it is rare, and called from many places. */
static void emit_edge(clconv_emit *e, const clconv_task *t, clconv_tensor tensor)
{
    bool fused = clconv_operand_is_fused(t, tensor);
    clconv_operand_set_raw(e, t->device, clconv_operand_is_half(t, tensor), 1);
    clconv_emit_line(e, "__attribute__((noinline))");
    clconv_emit_line(e, "static float16 edge_${tensor}16("
                        "__global const $stored *p, long i,");
    clconv_emit_open(e, "    long end)");
    clconv_emit_line(e, "float v[16];");
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_line(e, "for (int lane = 0; lane < 16; ++lane, ++i)");
    clconv_emit_line(e, "    v[lane] = i >= 0 && i < end ? $raw : 0.0f;");
    clconv_emit_line(e, fused ? "return round_${tensor}16(vload16(0, v));"
                              : "return vload16(0, v);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_window16(clconv_emit *e)
{
    clconv_emit_line(e, "static float16 window_${tensor}16("
                        "__global const $stored *p, long i,");
    clconv_emit_open(e, "    long end)");
    clconv_emit_line(e, "if (i >= 0 && i + 16 <= end)");
    clconv_emit_line(e, "    return load_${tensor}16(p, i);");
    clconv_emit_line(e, "return edge_${tensor}16(p, i, end);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_window1(clconv_emit *e)
{
    clconv_emit_line(e, "static float window_$tensor("
                        "__global const $stored *p, long i,");
    clconv_emit_open(e, "    long end)");
    clconv_emit_line(e, "return i >= 0 && i < end ? load_$tensor(p, i) "
                        ": 0.0f;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_generic_emit_window(clconv_emit *e, const clconv_task *t,
                                clconv_tensor tensor, int width)
{
    clconv_operand_emit_load(e, t, tensor, width);
    if (width == 1) {
        emit_window1(e);
        return;
    }
    emit_edge(e, t, tensor);
    emit_window16(e);
}

void clconv_generic_emit_each_tile(clconv_emit *e, const char *statement)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int t = 0; t < $tile; ++t)");
    clconv_emit_line(e, statement);
}

void clconv_generic_emit_place(clconv_emit *e, const char *name,
                               const char *count)
{
    clconv_emit_set_text(e, "place", name);
    clconv_emit_set_text(e, "count", count);
    clconv_emit_line(e, "int $place = (int)(item % $count);");
    clconv_emit_line(e, "item /= $count;");
}

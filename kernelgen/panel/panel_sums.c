/*
 * A pixel's number of dY is read by the instruction that multiplies it, since
 * one vector of weights needs it alone: a tile of two vectors would need it
 * twice, and compilers then read the numbers of all pixels first, into more
 * registers than there are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_sums.h"

#include "panel_pack.h"

static void emit_taps_type(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int rows, columns;");
    clconv_emit_line(e, "    long dy_row, dy_column;");
    clconv_emit_line(e, "    long panel_row, panel_column;");
    clconv_emit_line(e, "} taps_t;");
    clconv_emit_blank(e);
}

static void emit_steps(clconv_emit *e)
{
    clconv_emit_open(e, "static void set_steps(shape_t shape, long *steps)");
    clconv_emit_line(e, "for (int i = 0; i < $chain; ++i)");
    clconv_emit_line(e, "    steps[i] = i / $block * shape.dy_block + i % "
                        "$block * shape.dy_channel;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Calls line for each pixel of the tile, the hole $i. */
static void emit_tile(clconv_emit *e, int pixels, const char *line)
{
    for (int i = 0; i < pixels; ++i) {
        clconv_emit_set(e, "i", i);
        clconv_emit_line(e, line);
    }
}

/* Adds taps first .. last-1 of a block of k to sums; fresh: there are none
 * yet. offset: of the block's first k in dY; panel: the same of the phase's
 * first tap. */
static void emit_multiply(clconv_emit *e, int pixels)
{
    clconv_emit_line(e, "static void multiply(__global const float *dy, const "
                        "long *places, const long *steps,");
    clconv_emit_line(e, "    long offset, __global const $panel *panel, taps_t "
                        "taps, int first, int last,");
    clconv_emit_open(e, "    int channels, bool fresh, float16 *sums)");
    emit_tile(e, pixels, "__global const float *a$i = dy + places[$i];");
    emit_tile(e, pixels, "float16 sum$i = 0.0f;");
    clconv_emit_open(e, "for (int tap = first; tap < last; ++tap)");
    clconv_emit_line(e, "const int r = tap / taps.columns;");
    clconv_emit_line(e, "const int s = tap % taps.columns;");
    clconv_emit_line(e, "const long start = offset - (r * taps.dy_row + s * "
                        "taps.dy_column);");
    clconv_emit_line(
        e, "__global const $panel *panel_tap = panel + r * taps.panel_row "
           "+ s * taps.panel_column;");
    clconv_emit_open(e, "for (int k = 0; k < channels; ++k)");
    clconv_emit_line(e, "const long at = start + steps[k];");
    clconv_emit_line(e, "const float16 w = $load(k, panel_tap);");
    emit_tile(e, pixels, "sum$i = a$i[at] * w + sum$i;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_open(e, "if (fresh)");
    emit_tile(e, pixels, "sums[$i] = sum$i;");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    emit_tile(e, pixels, "sums[$i] += sum$i;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All taps and k of the tile's pixels -> sums. */
static void emit_chains(clconv_emit *e)
{
    clconv_emit_line(e, "static void sum_tile(__global const float *dy, const "
                        "long *places, const long *steps,");
    clconv_emit_line(e, "    __global const $panel *panel, shape_t shape, "
                        "taps_t taps,");
    clconv_emit_open(e, "    float16 *sums)");
    clconv_emit_line(e, "const int count = taps.rows * taps.columns;");
    clconv_emit_open(e, "for (int j = 0; count == 0 && j < $pixels; "
                        "++j)");
    clconv_emit_line(e, "sums[j] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (long k = 0; k < shape.group_k; k += "
                        "shape.k_block)");
    clconv_emit_line(e, "const int channels = min(shape.k_block, shape.group_k "
                        "- k);");
    clconv_emit_open(e, "for (int tap = 0; tap < count; tap += shape.chain)");
    clconv_emit_line(e, "multiply(dy, places, steps, k / $block * "
                        "shape.dy_block, panel + k * 16, taps, tap, min(tap + "
                        "(int)shape.chain, count), channels, k + tap == 0, "
                        "sums);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_panel_emit_sums(clconv_emit *e, int pixels, bool half_type)
{
    clconv_emit_set(e, "pixels", pixels);
    clconv_emit_set(e, "chain", CLCONV_PANEL_CHAIN);
    clconv_emit_set(e, "block", CLCONV_PANEL_BLOCK);
    clconv_emit_set_text(e, "panel", half_type ? "half" : "float");
    clconv_emit_set_text(e, "load", half_type ? "vload_half16" : "vload16");
    emit_taps_type(e);
    emit_steps(e);
    emit_multiply(e, pixels);
    emit_chains(e);
}

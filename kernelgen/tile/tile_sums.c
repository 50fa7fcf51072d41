/*
 * All taps pass over a k before the next one: its plane and its weights stay
 * in the first cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_sums.h"

#include <stdio.h>

/* Calls line for each sum of the tile, with its holes $i and $j. */
static void emit_tile(clconv_emit *e, const clconv_tile_sums *t,
                      const char *line)
{
    for (int i = 0; i < t->tile_c; ++i)
        for (int j = 0; j < t->tile_w; ++j) {
            clconv_emit_set(e, "i", i);
            clconv_emit_set(e, "j", j);
            clconv_emit_line(e, line);
        }
}

/* The taps of a phase: how many, the first one's place in the weights and its
 * shift in a plane, and the steps from one to the next. */
static void emit_taps_of(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int count;");
    clconv_emit_line(e, "    long weight, shift, weight_step, shift_step;");
    clconv_emit_line(e, "} taps_t;");
    clconv_emit_blank(e);
    clconv_emit_line(e, "/* unit: from row to row of a plane, or 1; weights: "
                        "of the filter likewise. */");
    clconv_emit_open(e, "static taps_t taps_of(axis_t a, int phase, long unit, "
                        "long weights)");
    clconv_emit_line(e, "const int most = min(a.taps, a.step);");
    clconv_emit_line(e, "int tap = 0;");
    clconv_emit_line(e, "while (tap < most && tap * a.dilation % a.stride != "
                        "phase)");
    clconv_emit_line(e, "    ++tap;");
    clconv_emit_line(e, "taps_t t;");
    clconv_emit_line(e, "t.count = tap < most ? (a.taps - 1 - tap) / a.step + "
                        "1 : 0;");
    clconv_emit_line(e, "t.weight = tap * weights;");
    clconv_emit_line(e, "t.shift = tap * a.dilation / a.stride * unit;");
    clconv_emit_line(e, "t.weight_step = a.step * weights;");
    clconv_emit_line(e, "t.shift_step = a.step * a.dilation / a.stride * "
                        "unit;");
    clconv_emit_line(e, "return t;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The tap at $weight of weights and $shift of plane: tile_w loads, tile_c
 * weights. */
static void emit_tap(clconv_emit *e, const clconv_tile_sums *t)
{
    clconv_emit_line(e, "const long shift = -($shift);");
    clconv_emit_line(e, "__global const float *a = weights + $weight;");
    for (int j = 0; j < t->tile_w; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, "const float16 b$j = load_dy_plane(plane, shift + "
                            "$j * 16);");
    }
    emit_tile(e, t, "sum${i}_$j = a[$i * $filter] * b$j + sum${i}_$j;");
}

static void emit_taps_loop(clconv_emit *e, const clconv_tile_sums *t)
{
    clconv_emit_set_text(e, "shift",
                         "r * rows.shift_step + s * columns.shift_step");
    clconv_emit_set_text(e, "weight",
                         "r * rows.weight_step + s * columns.weight_step");
    clconv_emit_open(e, "for (int r = 0; r < rows.count; ++r)");
    clconv_emit_open(e, "for (int s = 0; s < columns.count; ++s)");
    emit_tap(e, t);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_taps_written_out(clconv_emit *e, const clconv_tile_sums *t)
{
    for (int tap = 0; tap < t->r * t->s; ++tap) {
        char shift[64];
        snprintf(shift, sizeof shift,
                 "%d * rows.shift_step + %d * columns.shift_step", tap / t->s,
                 tap % t->s);
        clconv_emit_set_text(e, "shift", shift);
        clconv_emit_set(e, "weight", tap);
        clconv_emit_open(e, NULL);
        emit_tap(e, t);
        clconv_emit_close(e);
    }
}

/* Adds a block of channels of dY to sums. plane: the first of them at the
 * tile's first position for the phases' first taps, whose weights begin at
 * weights. A function of its own for the device too: compiled as part of its
 * callers' loops, nine taps take a second more. */
static void emit_multiply(clconv_emit *e, const clconv_tile_sums *t)
{
    clconv_emit_line(e, "__attribute__((noinline))");
    clconv_emit_open(
        e, "static void multiply(__global const $plane_type *plane, __global "
           "const float *weights, taps_t rows, taps_t columns, shape_t shape, "
           "int channels, float *sums)");
    emit_tile(e, t, "float16 sum${i}_$j = 0.0f;");
    clconv_emit_open(e, "for (int k = 0; k < channels; ++k)");
    if (t->written_out)
        emit_taps_written_out(e, t);
    else
        emit_taps_loop(e, t);
    clconv_emit_line(e, "plane += shape.channel_stride;");
    clconv_emit_line(e, "weights += $run;");
    clconv_emit_close(e);
    emit_tile(e, t,
              "vstore16(vload16(0, sums + $i * $tile + $j * 16) + "
              "sum${i}_$j, 0, sums + $i * $tile + $j * 16);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All of K for a tile and a phase of columns, block by block -> sums. */
static void emit_sum_phase(clconv_emit *e)
{
    clconv_emit_open(
        e, "static void sum_phase(__global const $plane_type *plane, __global "
           "const float *weights, taps_t rows, taps_t columns, shape_t shape, "
           "float *sums)");
    clconv_emit_open(e, "for (int j = 0; j < $tile_sums; ++j)");
    clconv_emit_line(e, "sums[j] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (rows.count * columns.count == 0)");
    clconv_emit_line(e, "    return;");
    clconv_emit_open(e, "for (long k = 0; k < shape.group_k; k += "
                        "shape.k_block)");
    clconv_emit_line(e, "multiply(plane - columns.shift + k * "
                        "shape.channel_stride, weights + columns.weight + k * "
                        "$run, rows, columns, shape, min(shape.k_block, "
                        "shape.group_k - k), sums);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_tile_sums_emit(clconv_emit *e, const clconv_tile_sums *t)
{
    emit_taps_of(e);
    emit_multiply(e, t);
    emit_sum_phase(e);
}

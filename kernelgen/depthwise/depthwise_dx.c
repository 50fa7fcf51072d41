/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "depthwise_dx.h"

#include "depthwise.h"
#include "depthwise_row.h"
#include "operand.h"
#include "output.h"

#define LANES CLCONV_DEPTHWISE_LANES

/* ---- What a work-item needs ------------------------------------------- */

/* columns: of dX from w on; q: of the first column of a row held; end_p: the
 * row of dY behind the last that the band meets. */
static void emit_place_type(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    long n, c;");
    clconv_emit_line(e, "    int channels, h, end_h, end_p, w, columns, q;");
    clconv_emit_line(e, "} place_t;");
    clconv_emit_blank(e);
}

static void emit_find_place(clconv_emit *e)
{
    clconv_emit_open(e, "static place_t find_place(long item, shape_t shape)");
    clconv_emit_line(e, "place_t at;");
    clconv_emit_line(e, "const int block = item % shape.blocks;");
    clconv_emit_line(e, "item /= shape.blocks;");
    clconv_emit_line(e, "const int band = item % shape.bands;");
    clconv_emit_line(e, "item /= shape.bands;");
    clconv_emit_line(e, "at.c = item % shape.c_blocks * $column;");
    clconv_emit_line(e, "at.n = item / shape.c_blocks;");
    clconv_emit_line(e, "at.channels = min((long)$column, "
                        "shape.c - at.c);");
    clconv_emit_line(e, "at.h = band * shape.band;");
    clconv_emit_line(e, "at.end_h = min(at.h + shape.band, shape.h);");
    clconv_emit_line(e, "at.end_p = min(shape.p, (at.end_h - 1 + "
                        "shape.pad_top) / shape.stride_h + 1);");
    clconv_emit_line(e, "at.w = block * shape.block * shape.stride_w;");
    clconv_emit_line(e, "at.columns = min(shape.block * shape.stride_w, "
                        "shape.w - at.w);");
    clconv_emit_line(e, "at.q = shape.base + block * shape.block;");
    clconv_emit_line(e, "return at;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* NHWC: the filters of the channels lie one behind the other in W, and are
 * wanted tap by tap. */
static void emit_read_weights(clconv_emit *e, bool nchw)
{
    clconv_emit_set_text(e, "filters", nchw ? "weights" : "line");
    clconv_emit_line(e, "static void read_weights(float *weights, "
                        "__global const $w_type *w, shape_t shape,");
    clconv_emit_open(e,
                     nchw ? "    place_t at)" : "    place_t at, float *line)");
    clconv_emit_line(e, "const int taps = shape.planes * shape.r * shape.s;");
    clconv_emit_line(e, "const int count = at.channels * taps;");
    clconv_emit_line(e, "for (int i = 0; i < $column * taps; i += 16)");
    clconv_emit_line(e, "    keep16(fetch_w(w, at.c * taps + i, count - i, "
                        "shape.c * taps), $filters + i);");
    if (!nchw)
        clconv_emit_line(e, "split(line, weights, $column, taps, $column);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Row p of dY, the columns of it that the ring has room for. */
static void emit_hold_row(clconv_emit *e)
{
    clconv_emit_line(e, "static void hold_row(float *to, "
                        "__global const $dy_type *dy, shape_t shape,");
    clconv_emit_open(e, "    place_t at, int p)");
    clconv_emit_line(e, "const int first = max(at.q, 0);");
    clconv_emit_line(e, "const int last = min(at.q + shape.room, shape.q);");
    clconv_emit_line(e, "const long i = at.n * shape.dy_image + "
                        "at.c * shape.planes * shape.dy_channel +");
    clconv_emit_line(e, "    p * shape.dy_row + first * shape.dy_column;");
    clconv_emit_line(e, "planes_dy(to + (first - at.q) * $column, "
                        "shape.ring * shape.pitch, dy, i, last - first,");
    clconv_emit_line(e, "    at.channels, shape);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Where row h of dX stands among those of dY: p is the last row that it
 * meets (there may be none), slot that row's in the ring, phase the rest of h
 * by the stride. Kept from row to row, for divisions are slow. */
static void emit_meet(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int p, slot, phase;");
    clconv_emit_line(e, "} meet_t;");
    clconv_emit_blank(e);
    clconv_emit_open(e, "static int wrap(int slot, int ring)");
    clconv_emit_line(e, "return slot < 0 ? slot + ring : slot >= ring ? "
                        "slot - ring : slot;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "static meet_t next_row(meet_t meet, shape_t shape)");
    clconv_emit_open(e, "if (++meet.phase == shape.stride_h)");
    clconv_emit_line(e, "meet.phase = 0;");
    clconv_emit_line(e, "meet.slot = wrap(meet.slot + 1, shape.ring);");
    clconv_emit_line(e, "++meet.p;");
    clconv_emit_close(e);
    clconv_emit_line(e, "return meet;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Rows of dY from row on, up to the last that is met -> ring.
 * Returns the first that is not there yet. */
static void emit_hold_rows(clconv_emit *e)
{
    clconv_emit_line(e, "static int hold_rows(float *ring, __global const "
                        "$dy_type *dy, shape_t shape,");
    clconv_emit_open(e, "    place_t at, meet_t meet, int row)");
    clconv_emit_line(e, "const int end = min(at.end_p, meet.p + 1);");
    clconv_emit_open(e, "for (; row < end; ++row)");
    clconv_emit_line(e, "const int slot = wrap(meet.slot + row - meet.p, "
                        "shape.ring);");
    clconv_emit_line(e, "hold_row(ring + slot * shape.pitch, dy, shape, at, "
                        "row);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return row;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The rows of dY that are met, with their filter rows: row_at[] in the ring,
 * tap_at[] in the weights; returns how many. */
static void emit_find_lines(clconv_emit *e)
{
    clconv_emit_line(e, "static int find_lines(int *row_at, int *tap_at, "
                        "shape_t shape, meet_t meet, phase_t phase)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "int lines = 0;");
    clconv_emit_line(e, "int r = phase.first;");
    clconv_emit_line(e, "int p = meet.p + phase.column;");
    clconv_emit_open(e, "for (int tap = 0; tap < phase.taps; ++tap)");
    clconv_emit_line(e, "const int slot = wrap(meet.slot + p - meet.p, "
                        "shape.ring);");
    clconv_emit_line(e, "const int planes = p >= 0 && p < (int)shape.p ? "
                        "shape.planes : 0;");
    clconv_emit_open(e, "for (int k = 0; k < planes; ++k)");
    clconv_emit_line(e, "row_at[lines] = (k * shape.ring + slot) * "
                        "shape.pitch;");
    clconv_emit_line(e, "tap_at[lines++] = (k * shape.r + r) * shape.s * "
                        "$column;");
    clconv_emit_close(e);
    clconv_emit_line(e, "r += phase.step;");
    clconv_emit_line(e, "p -= phase.back;");
    clconv_emit_close(e);
    clconv_emit_line(e, "return lines;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The sums --------------------------------------------------------- */

/* The taps that meet rows or columns left, left + stride, ...: first, first +
 * step, ..., and what they meet in dY: column, counted from base, column -
 * back, ... */
static void emit_phases(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int first, taps, step, column, back;");
    clconv_emit_line(e, "} phase_t;");
    clconv_emit_blank(e);
    clconv_emit_line(e, "static phase_t find_phase(int left, int stride, int "
                        "dilation, int taps, int step, int base)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "phase_t phase;");
    clconv_emit_line(e, "phase.first = tap_from(0, left, dilation, stride, "
                        "taps);");
    clconv_emit_line(e, "phase.taps = (taps - phase.first + step - 1) / "
                        "step;");
    clconv_emit_line(e, "phase.step = step;");
    clconv_emit_line(e, "phase.column = (left - phase.first * dilation) / "
                        "stride - base;");
    clconv_emit_line(e, "phase.back = step * dilation / stride;");
    clconv_emit_line(e, "return phase;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_each_sum(clconv_emit *e, int tile, const char *line)
{
    for (int i = 0; i < tile; ++i) {
        clconv_emit_set(e, "i", i);
        clconv_emit_line(e, line);
    }
}

/* void tile<tile>(...): tile vectors of a phase, a row and a filter row for
 * each line. */
static void emit_tile(clconv_emit *e, bool nchw, int tile)
{
    clconv_emit_set(e, "tile", tile);
    clconv_emit_line(e, "static void tile$tile(const float *ring, "
                        "const float *weights, const int *row_at,");
    clconv_emit_line(e, "    const int *tap_at, int lines, phase_t phase, "
                        "int next, float *to)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "const int back = phase.back * $column;");
    clconv_emit_line(e, "const int step = phase.step * $column;");
    emit_each_sum(e, tile, "float16 sum$i = 0.0f;");
    clconv_emit_open(e, "for (int line = 0; line < lines; ++line)");
    clconv_emit_line(e, "const float *a = ring + row_at[line];");
    clconv_emit_line(e, "const float *b = weights + tap_at[line];");
    clconv_emit_open(e, "for (int tap = 0; tap < phase.taps; ++tap)");
    clconv_emit_line(e, nchw ? "const float weight = *b;"
                             : "const float16 weight = vload16(0, b);");
    emit_each_sum(e, tile,
                  "sum$i = vload16(0, a + $i * $next) * weight + sum$i;");
    clconv_emit_line(e, "a -= back;");
    clconv_emit_line(e, "b += step;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    emit_each_sum(e, tile, "keep16(sum$i, to + $i * next);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All vectors of a phase -> to, next floats apart. */
static void emit_sum_phase(clconv_emit *e, int tile)
{
    clconv_emit_set(e, "tile", tile);
    clconv_emit_line(e, "static void sum_phase(const float *ring, const float "
                        "*weights, const int *row_at,");
    clconv_emit_line(e, "    const int *tap_at, int lines, phase_t phase, int "
                        "vectors, int next, float *to)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "int i = 0;");
    clconv_emit_line(e, "ring += phase.column * $column;");
    clconv_emit_line(e, "weights += phase.first * $column;");
    if (tile > 1) {
        clconv_emit_line(e, "for (; i <= vectors - $tile; i += $tile)");
        clconv_emit_line(e, "    tile$tile(ring + i * $next, weights, row_at, "
                            "tap_at, lines, phase, next, to + i * next);");
    }
    clconv_emit_line(e, "for (; i < vectors; ++i)");
    clconv_emit_line(e, "    tile1(ring + i * $next, weights, row_at, tap_at, "
                        "lines, phase, next, to + i * next);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Out -------------------------------------------------------------- */

static void emit_store_narrow(clconv_emit *e, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_open(e, "if (count & $width)");
    clconv_emit_line(e, width > 1 ? "store_dx$vn(dx, i, vload$vn(0, v), "
                                    "beta$tally_pass);"
                                  : "store_dx(dx, i, *v, beta$tally_pass);");
    clconv_emit_line(e, "i += $width;");
    clconv_emit_line(e, "v += $width;");
    clconv_emit_close(e);
}

/* void put(dx, i, v, count, ...): neighbours. */
static void emit_put(clconv_emit *e, const clconv_task *t)
{
    for (int width = LANES; width > 0; width /= 2)
        clconv_output_emit_store(e, t->problem, CLCONV_DX, width);
    clconv_emit_line(e, "static void put(__global $stored *dx, long i, const "
                        "float *v, int count,");
    clconv_emit_open(e, "    float beta$tally_parameter)");
    clconv_emit_open(e, "for (; count >= 16; count -= 16)");
    clconv_emit_line(e, "store_dx16(dx, i, vload16(0, v), beta$tally_pass);");
    clconv_emit_line(e, "i += 16;");
    clconv_emit_line(e, "v += 16;");
    clconv_emit_close(e);
    for (int width = LANES / 2; width > 0; width /= 2)
        emit_store_narrow(e, width);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* void join(from, to, count, step, pitch): the inverse of split. */
static void emit_join(clconv_emit *e)
{
    clconv_emit_line(e, "static void join(const float *from, float *to, int "
                        "count, int step, long pitch)");
    clconv_emit_open(e, NULL);
    clconv_emit_open(e, "if (step == 2)");
    clconv_emit_open(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "const float16 a = vload16(0, from + i);");
    clconv_emit_line(e, "const float16 b = vload16(0, from + pitch + i);");
    clconv_emit_line(e, "float16 low, high;");
    clconv_emit_line(e, "low.even = a.lo;");
    clconv_emit_line(e, "low.odd = b.lo;");
    clconv_emit_line(e, "high.even = a.hi;");
    clconv_emit_line(e, "high.odd = b.hi;");
    clconv_emit_line(e, "keep16(low, to + 2 * i);");
    clconv_emit_line(e, "keep16(high, to + 2 * i + 16);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "for (int f = 0; f < step; ++f)");
    clconv_emit_line(e, "    for (int i = 0; i < count; ++i)");
    clconv_emit_line(e, "        to[i * step + f] = from[f * pitch + i];");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_depthwise_emit_dx(clconv_emit *e, const clconv_task *t, int tile)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    clconv_emit_part(e, "taps");
    clconv_depthwise_emit_keep(e);
    if (!nchw)
        clconv_depthwise_emit_split(e);
    clconv_depthwise_emit_planes(e, t);
    clconv_depthwise_emit_fetch(e, t, CLCONV_W);
    emit_place_type(e);
    emit_find_place(e);
    emit_read_weights(e, nchw);
    emit_hold_row(e);
    emit_meet(e);
    emit_hold_rows(e);
    emit_phases(e);
    emit_find_lines(e);
    if (tile > 1)
        emit_tile(e, nchw, tile);
    emit_tile(e, nchw, 1);
    emit_sum_phase(e, tile);
    emit_put(e, t);
    if (nchw)
        emit_join(e);
}

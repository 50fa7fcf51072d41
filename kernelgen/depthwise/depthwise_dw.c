/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "depthwise_dw.h"

#include "counts.h"
#include "depthwise.h"
#include "depthwise_row.h"

/* ---- A strip ---------------------------------------------------------- */

/* columns: of dY from q on; w: of the first column of a row held. */
static void emit_place_type(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    long n, c;");
    clconv_emit_line(e, "    int channels, p, last_p, q, columns, w;");
    clconv_emit_line(e, "} place_t;");
    clconv_emit_blank(e);
}

/* Strip number strip of a block of channels. */
static void emit_find_place(clconv_emit *e)
{
    clconv_emit_open(e, "static place_t find_place(long c_block, long strip, "
                        "shape_t shape)");
    clconv_emit_line(e, "place_t at;");
    clconv_emit_line(e, "const int block = strip % shape.blocks;");
    clconv_emit_line(e, "strip /= shape.blocks;");
    clconv_emit_line(e, "const int band = strip % shape.bands;");
    clconv_emit_line(e, "at.n = strip / shape.bands;");
    clconv_emit_line(e, "at.c = c_block * $column;");
    clconv_emit_line(e, "at.channels = min((long)$column, "
                        "shape.c - at.c);");
    clconv_emit_line(e, "at.p = band * shape.band;");
    clconv_emit_line(e, "at.last_p = min(at.p + shape.band, shape.p);");
    clconv_emit_line(e, "at.q = block * shape.block;");
    clconv_emit_line(e, "at.columns = min(shape.block, shape.q - at.q);");
    clconv_emit_line(e, "at.w = at.q * shape.stride_w - shape.pad_left - "
                        "shape.lead;");
    clconv_emit_line(e, "return at;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Row h of X, the columns of it that the ring has room for. */
static void emit_hold_row(clconv_emit *e, bool nchw)
{
    clconv_emit_line(e, "static bool hold_row(float *to, float *line, "
                        "__global const $x_type *x, shape_t shape,");
    clconv_emit_open(e, "    place_t at, int h, int least)");
    clconv_emit_line(e, "const int first = max(at.w, 0);");
    clconv_emit_line(e, "const int last = min(at.w + shape.room, shape.w);");
    clconv_emit_line(e, "const long i = at.n * shape.x_image + "
                        "at.c * shape.x_channel + h * shape.x_row +");
    clconv_emit_line(e, "    first * shape.x_column;");
    clconv_emit_line(e, nchw ? "float *row = shape.stride_w == 1 ? to : line;"
                             : "float *row = to;");
    clconv_emit_line(e, "const bool near = row_x(row + (first - at.w) * "
                        "$column, x, i, last - first, at.channels,");
    clconv_emit_line(e, "    shape.x_column, shape.n * shape.x_image, "
                        "least);");
    if (nchw) {
        clconv_emit_line(e, "if (shape.stride_w > 1)");
        clconv_emit_line(e, "    split(line, to, shape.phase, shape.stride_w, "
                            "shape.phase);");
    }
    clconv_emit_line(e, "return near;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Rows of X from row on, up to the last that row p of dY meets -> ring; near
 * becomes false if row_x() says so of one. Returns the first that is not there
 * yet. */
static void emit_hold_rows(clconv_emit *e)
{
    clconv_emit_line(e, "static int hold_rows(float *ring, float *line, "
                        "__global const $x_type *x, shape_t shape,");
    clconv_emit_open(e, "    place_t at, int row, int p, int least, bool "
                        "*near)");
    clconv_emit_line(e, "const int first = p * shape.stride_h - "
                        "shape.pad_top;");
    clconv_emit_line(e, "const int end = min(first + shape.reach + 1, "
                        "shape.h);");
    clconv_emit_line(e, "row = max(row, first);");
    clconv_emit_line(e, "for (; row < end; ++row)");
    clconv_emit_line(e, "    *near &= hold_row(ring + (row & (shape.ring - "
                        "1)) * shape.pitch, line, x, shape, at, row,");
    clconv_emit_line(e, "        least);");
    clconv_emit_line(e, "return row;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The rows of X that meet row p of dY, with their filter rows: row_at[] in
 * the ring, sum_at[] in the sums; returns how many. */
static void emit_find_lines(clconv_emit *e)
{
    clconv_emit_line(e, "static int find_lines(int *row_at, int *sum_at, "
                        "shape_t shape, int p)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "const int mask = shape.ring - 1;");
    clconv_emit_line(e, "int lines = 0;");
    clconv_emit_open(e, "for (int r = 0; r < (int)shape.r; ++r)");
    clconv_emit_line(e, "const int h = p * shape.stride_h + "
                        "r * shape.dilation_h - shape.pad_top;");
    clconv_emit_line(e, "if (h < 0 || h >= (int)shape.h)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "row_at[lines] = (h & mask) * shape.pitch;");
    clconv_emit_line(e, "sum_at[lines++] = r * shape.s * $next;");
    clconv_emit_close(e);
    clconv_emit_line(e, "return lines;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Counts ----------------------------------------------------------- */

/* Each row and column of X belongs to one of dY, whose strip counts it,
 * whether or not a tap reaches it. */
static void emit_share(clconv_emit *e)
{
    clconv_emit_line(e, "/* Where the share of row or column i of dY's count "
                        "begins among size of X. */");
    clconv_emit_line(e, "static int share_of(int i, long count, long stride, "
                        "long ahead, long size)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "const long at = clamp(i * stride + ahead, 0L, size);");
    clconv_emit_line(e, "return i == 0 ? 0 : i == count ? size : at;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Neighbouring rows are one run if a strip has all of X's columns, pixels if
 * it has all channels. */
static void emit_see_each(clconv_emit *e, bool nchw)
{
    clconv_emit_open(e, nchw ? "if (columns == shape.w)"
                             : "if (at.channels == shape.c)");
    clconv_emit_line(e, nchw ? "columns *= rows;" : "channels *= columns;");
    clconv_emit_line(e, nchw ? "rows = 1;" : "columns = 1;");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (int row = 0; row < rows; ++row)");
    if (nchw) {
        clconv_emit_line(e, "const long from = i + row * shape.x_row;");
        clconv_emit_line(e, "see_x_run(seen, x, from, from + columns, end);");
    } else {
        clconv_emit_open(e, "for (int w = 0; w < columns; ++w)");
        clconv_emit_line(e, "const long from = i + row * shape.x_row + "
                            "w * shape.x_column;");
        clconv_emit_line(e, "see_x_run(seen, x, from, from + channels, end);");
        clconv_emit_close(e);
    }
    clconv_emit_close(e);
}

/* What belongs to rows first_p to last_p - 1 of dY, in the strip's columns. If
 * it is among the rows held since, all of which are ordinary, its number is all
 * there is to know; rows held end with row end_h - 1. Not inlined: the sums
 * need the registers. */
static void emit_see_rows(clconv_emit *e, bool nchw)
{
    clconv_emit_line(e, "__attribute__((noinline))");
    clconv_emit_line(e, "static void see_rows(seen16_t *seen, counts_t "
                        "*tally, __global const $x_type *x,");
    clconv_emit_open(e, "    shape_t shape, place_t at, int first_p, int "
                        "last_p, int end_h, bool ordinary)");
    clconv_emit_line(e, "const long below = shape.reach + 1 - shape.stride_h - "
                        "shape.pad_top;");
    clconv_emit_line(e, "const int h = share_of(first_p, shape.p, "
                        "shape.stride_h, below, shape.h);");
    clconv_emit_line(e, "const int w = share_of(at.q, shape.q, "
                        "shape.stride_w, -shape.pad_left, shape.w);");
    clconv_emit_line(e, "int rows = share_of(last_p, shape.p, "
                        "shape.stride_h, below, shape.h) - h;");
    clconv_emit_line(e, "int columns = share_of(at.q + at.columns, shape.q, "
                        "shape.stride_w, -shape.pad_left, shape.w) - w;");
    clconv_emit_line(e, "int channels = at.channels;");
    clconv_emit_line(e, "ordinary &= h + rows <= end_h && w + columns <= at.w "
                        "+ shape.room;");
    clconv_emit_open(e, "if (ordinary && shape.stride_h <= shape.reach + 1)");
    clconv_emit_line(e, "tally->nonzero += rows * columns * channels;");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "const long i = at.n * shape.x_image + "
                        "at.c * shape.x_channel + h * shape.x_row +");
    clconv_emit_line(e, "    w * shape.x_column;");
    clconv_emit_line(e, "const long end = shape.n * shape.x_image;");
    emit_see_each(e, nchw);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The sums --------------------------------------------------------- */

static void emit_each(clconv_emit *e, int tile, const char *line)
{
    for (int i = 0; i < tile; ++i) {
        clconv_emit_set(e, "i", i);
        clconv_emit_line(e, line);
    }
}

/* void tile<tile>(...): tile vectors of dY, from d on, against all lines and
 * taps. Their first column is that of ring; vectors of the ring are step
 * floats apart. */
static void emit_tile(clconv_emit *e, int tile)
{
    clconv_emit_set(e, "tile", tile);
    clconv_emit_line(e,
                     "static void tile$tile(const float *d, const float *ring, "
                     "const int *row_at,");
    clconv_emit_line(e, "    const int *sum_at, int lines, const int *tap_at, "
                        "int taps, int step, float *sums)");
    clconv_emit_open(e, NULL);
    emit_each(e, tile, "const float16 d$i = vload16(0, d + $i * $next);");
    clconv_emit_open(e, "for (int line = 0; line < lines; ++line)");
    clconv_emit_line(e, "const float *from = ring + row_at[line];");
    clconv_emit_line(e, "float *to = sums + sum_at[line];");
    clconv_emit_open(e, "for (int s = 0; s < taps; ++s)");
    clconv_emit_line(e, "const float *x = from + tap_at[s];");
    clconv_emit_line(e, "float16 sum = vload16(0, to);");
    emit_each(e, tile, "sum = d$i * vload16(0, x + $i * step) + sum;");
    clconv_emit_line(e, "keep16(sum, to);");
    clconv_emit_line(e, "to += $next;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A row of one plane; vectors: columns of them (NHWC) or of 16 (NCHW). */
static void emit_sum_row(clconv_emit *e, int tile)
{
    clconv_emit_set(e, "tile", tile);
    clconv_emit_line(e,
                     "static void sum_row(const float *d, const float *ring, "
                     "const int *row_at, const int *sum_at,");
    clconv_emit_line(e, "    int lines, const int *tap_at, int taps, int step, "
                        "int vectors, float *sums)");
    clconv_emit_open(e, NULL);
    clconv_emit_line(e, "int j = 0;");
    if (tile > 1) {
        clconv_emit_line(e, "for (; j <= vectors - $tile; j += $tile)");
        clconv_emit_line(e, "    tile$tile(d + j * $next, ring + j * step, "
                            "row_at, sum_at, lines, tap_at, taps, step, "
                            "sums);");
    }
    clconv_emit_line(e, "for (; j < vectors; ++j)");
    clconv_emit_line(e, "    tile1(d + j * $next, ring + j * step, row_at, "
                        "sum_at, lines, tap_at, taps, step, sums);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_fold(clconv_emit *e)
{
    clconv_emit_line(e, "static void fold(float *sums, float *totals, "
                        "int count)");
    clconv_emit_open(e, NULL);
    clconv_emit_open(e, "for (int i = 0; i < count; i += 16)");
    clconv_emit_line(e, "keep16(vload16(0, totals + i) + "
                        "vload16(0, sums + i), totals + i);");
    clconv_emit_line(e, "keep16((float16)(0.0f), sums + i);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Where tap s lies in a row held, from the column of s = 0. */
static void emit_find_taps(clconv_emit *e, bool nchw)
{
    clconv_emit_open(e, "static void find_taps(int *tap_at, shape_t shape)");
    clconv_emit_open(e, "for (int s = 0; s < (int)shape.s; ++s)");
    clconv_emit_line(e, "const int w = shape.lead + s * shape.dilation_w;");
    clconv_emit_line(e, nchw ? "tap_at[s] = w % shape.stride_w * shape.phase + "
                               "w / shape.stride_w;"
                             : "tap_at[s] = w * $column;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_depthwise_emit_dw(clconv_emit *e, const clconv_task *t, int tile)
{
    bool nchw = t->problem->layout == CLCONV_NCHW;
    bool counts_x = t->counts & CLCONV_BIT(CLCONV_X);
    clconv_depthwise_emit_keep(e);
    clconv_depthwise_emit_split(e);
    if (counts_x) {
        clconv_counts_emit_seen(e, CLCONV_COUNTS_RUN);
        clconv_counts_emit_run(e, t, CLCONV_X);
    }
    if (nchw)
        clconv_depthwise_emit_row(e, t, CLCONV_DY);
    else
        clconv_depthwise_emit_planes(e, t);
    clconv_depthwise_emit_row(e, t, CLCONV_X);
    emit_place_type(e);
    emit_find_place(e);
    emit_hold_row(e, nchw);
    emit_hold_rows(e);
    emit_find_lines(e);
    if (counts_x) {
        emit_share(e);
        emit_see_rows(e, nchw);
    }
    if (tile > 1)
        emit_tile(e, tile);
    emit_tile(e, 1);
    emit_sum_row(e, tile);
    emit_fold(e);
    emit_find_taps(e, nchw);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_store.h"

#include "output.h"
#include "tile_pack.h"

/* Sums of two phases: vectors a and b become a0 b0 a1 b1 ... */
static void emit_interleave_two(clconv_emit *e)
{
    clconv_emit_open(e, "for (int i = 0; i < $tile; i += 16)");
    clconv_emit_line(e, "const float16 a = vload16(0, sums + i);");
    clconv_emit_line(e, "const float16 b = vload16(0, sums + $tile_sums + i);");
    clconv_emit_line(e, "vstore16((float16)(a.s0, b.s0, a.s1, b.s1, a.s2, "
                        "b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, "
                        "a.s7, b.s7), 0, strip + 2 * i);");
    clconv_emit_line(e, "vstore16((float16)(a.s8, b.s8, a.s9, b.s9, a.sa, "
                        "b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, "
                        "a.sf, b.sf), 0, strip + 2 * i + 16);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return strip;");
}

/* The sums of a channel, those of all phases of columns, in the order of dX:
 * in strip, or where they are if there is one phase. */
static void emit_interleave(clconv_emit *e)
{
    clconv_emit_open(e, "static const float *interleave(const float *sums, int "
                        "phases, float *strip)");
    clconv_emit_line(e, "if (phases == 1)");
    clconv_emit_line(e, "    return sums;");
    clconv_emit_open(e, "if (phases == 2)");
    emit_interleave_two(e);
    clconv_emit_close(e);
    clconv_emit_open(e, "for (int phase = 0; phase < phases; ++phase)");
    clconv_emit_open(e, "for (int i = 0; i < $tile; ++i)");
    clconv_emit_line(e, "strip[i * phases + phase] = sums[phase * $tile_sums + "
                        "i];");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "return strip;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A place among positions, and rows and images that there are: of a phase, of
 * a block. */
static void emit_place_of(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int image, row, column, rows, images;");
    clconv_emit_line(e, "} place_t;");
    clconv_emit_blank(e);
    clconv_emit_open(e, "static place_t place_of(int position, int rows, int "
                        "images, shape_t shape)");
    clconv_emit_line(e,
                     "const int image = position / (int)shape.image_stride;");
    clconv_emit_line(e, "const int rest = position - image * "
                        "(int)shape.image_stride;");
    clconv_emit_line(e, "const int row = rest / (int)shape.pitch;");
    clconv_emit_line(e, "const place_t p = {image, row, rest - row * "
                        "(int)shape.pitch, rows, images};");
    clconv_emit_line(e, "return p;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A row of a tile, count positions from column on; dx: the row. */
static void emit_store_row(clconv_emit *e)
{
    clconv_emit_open(e,
                     "static void store_row(__global $dx_type *dx, int "
                     "column, int count, axis_t w, const float *strip, float "
                     "beta$tally_parameter)");
    clconv_emit_line(e, "const int at = column * w.stride - w.pad % w.stride;");
    clconv_emit_line(e, "const int from = max(at, 0);");
    clconv_emit_line(e, "const int to = min(at + count * w.stride, w.in);");
    clconv_emit_line(e, "if (from < to)");
    clconv_emit_line(e,
                     "    store_dx_run(dx, from, strip + from - at, to - from, "
                     "beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A channel of a tile from place p on, row by row; dx: the channel's first
 * row of the phase in the first image. p is copied: Mesa 22.3 changes the
 * caller's struct when a function changes its own. */
static void emit_store_positions(clconv_emit *e)
{
    clconv_emit_open(e, "static void store_positions(__global $dx_type *dx, "
                        "place_t p, axis_t w, shape_t shape, const float "
                        "*strip, float beta$tally_parameter)");
    clconv_emit_line(e, "const int pitch = shape.pitch;");
    clconv_emit_line(e, "int image = p.image;");
    clconv_emit_line(e, "int row = p.row;");
    clconv_emit_line(e, "int column = p.column;");
    clconv_emit_open(e, "for (int i = 0; i < $tile && image < p.images;)");
    clconv_emit_open(e, "if (row >= p.rows)");
    clconv_emit_line(e, "i += (int)shape.image_stride - row * pitch - column;");
    clconv_emit_line(e, "row = 0;");
    clconv_emit_line(e, "++image;");
    clconv_emit_else(e);
    clconv_emit_line(e, "const int count = min(pitch - column, $tile - i);");
    clconv_emit_line(e, "store_row(dx + image * shape.dx_image + row * "
                        "shape.dx_row, column, count, w, strip + i * w.stride, "
                        "beta$tally_pass);");
    clconv_emit_line(e, "i += count;");
    clconv_emit_line(e, "++row;");
    clconv_emit_close(e);
    clconv_emit_line(e, "column = 0;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_tile_store_emit(clconv_emit *e, const clconv_problem *p)
{
    emit_interleave(e);
    clconv_output_emit_run(e, p, CLCONV_DX);
    clconv_emit_set_text(e, "dx_type",
                         p->type[CLCONV_DX] == CLCONV_F16 ? "half" : "float");
    emit_place_of(e);
    emit_store_row(e);
    emit_store_positions(e);
}

/*
 * A row of dX, or the piece of it that a tile holds, is stored in whole
 * vectors and then in narrower ones: no element may be stored twice, since
 * beta would be added twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_store.h"

#include "operand.h"
#include "output.h"
#include "tile_pack.h"

#define LANES CLCONV_TILE_LANES

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

/* The next width sums, if count has that bit. */
static void emit_store_narrow(clconv_emit *e, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_open(e, "if (count & $width)");
    clconv_emit_line(e, width > 1 ? "store_dx$vn(dx, i, vload$vn(0, sums), "
                                    "beta$tally_pass);"
                                  : "store_dx(dx, i, *sums, beta$tally_pass);");
    clconv_emit_line(e, "i += $width;");
    clconv_emit_line(e, "sums += $width;");
    clconv_emit_close(e);
}

/* count sums, neighbours in a row of dX, in as few stores as there can be. */
static void emit_store_run(clconv_emit *e)
{
    clconv_emit_open(e, "static void store_run(__global $dx_type *dx, long i, "
                        "const float *sums, int count, float "
                        "beta$tally_parameter)");
    clconv_emit_open(e, "for (; count >= 16; count -= 16)");
    clconv_emit_line(e,
                     "store_dx16(dx, i, vload16(0, sums), beta$tally_pass);");
    clconv_emit_line(e, "i += 16;");
    clconv_emit_line(e, "sums += 16;");
    clconv_emit_close(e);
    for (int width = LANES / 2; width > 0; width /= 2)
        emit_store_narrow(e, width);
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
    clconv_emit_line(e, "    store_run(dx, from, strip + from - at, to - from, "
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
    for (int width = LANES; width > 0; width /= 2)
        clconv_output_emit_store(e, p, CLCONV_DX, width);
    clconv_emit_set_text(e, "dx_type",
                         p->type[CLCONV_DX] == CLCONV_F16 ? "half" : "float");
    emit_store_run(e);
    emit_place_of(e);
    emit_store_row(e);
    emit_store_positions(e);
}

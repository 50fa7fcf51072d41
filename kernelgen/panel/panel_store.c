/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_store.h"

#include "integers.h"
#include "output.h"
#include "panel_transpose.h"

#define LANES 16

void clconv_panel_emit_place(clconv_emit *e, int pixels)
{
    clconv_emit_set(e, "pixels", pixels);
    clconv_emit_line(e, "static int place(long position, long positions, "
                        "long rows, long columns,");
    clconv_emit_open(e, "    shape_t shape, long *in_dy, long *in_dx)");
    clconv_emit_line(e, "const int count = min((long)$pixels, positions - "
                        "position);");
    clconv_emit_line(e, "long column = position % columns;");
    clconv_emit_line(e, "long row = position / columns % rows;");
    clconv_emit_line(e, "const long image = position / columns / rows;");
    clconv_emit_line(e, "const long dx_row = shape.stride_h * shape.dx_row;");
    clconv_emit_line(e, "const long dx_column = shape.stride_w * "
                        "shape.dx_column;");
    clconv_emit_line(e, "long dy = image * shape.dy_image + row * shape.dy_row "
                        "+ column * shape.dy_column;");
    clconv_emit_line(e, "long dx = image * shape.dx_image + row * dx_row + "
                        "column * dx_column;");
    clconv_emit_open(e, "for (int i = 0; i < $pixels; ++i)");
    clconv_emit_line(e, "in_dy[i] = dy;");
    clconv_emit_line(e, "in_dx[i] = dx;");
    clconv_emit_line(e, "if (i + 1 >= count)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "dy += shape.dy_column;");
    clconv_emit_line(e, "dx += dx_column;");
    clconv_emit_line(e, "if (++column < columns)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "column = 0;");
    clconv_emit_line(e, "dy += shape.dy_row - columns * shape.dy_column;");
    clconv_emit_line(e, "dx += dx_row - columns * dx_column;");
    clconv_emit_line(e, "if (++row < rows)");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "row = 0;");
    clconv_emit_line(e, "dy += shape.dy_image - rows * shape.dy_row;");
    clconv_emit_line(e, "dx += shape.dx_image - rows * dx_row;");
    clconv_emit_close(e);
    clconv_emit_line(e, "return count;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* NHWC: the channels of a pixel are neighbours. */
static void emit_store_pixels(clconv_emit *e)
{
    clconv_emit_line(e, "static void store_tile(__global $dx_type *dx, const "
                        "long *in_dx, int count,");
    clconv_emit_line(e,
                     "    int channels, shape_t shape, const float16 *sums,");
    clconv_emit_open(e, "    float beta$tally_parameter)");
    clconv_emit_open(e, "if (channels == 16)");
    clconv_emit_line(e, "for (int i = 0; i < count; ++i)");
    clconv_emit_line(e, "    store_dx16(dx, in_dx[i], sums[i], "
                        "beta$tally_pass);");
    clconv_emit_else(e);
    clconv_emit_line(e, "for (int i = 0; i < count; ++i)");
    clconv_emit_line(e, "    store_dx_run(dx, in_dx[i], (const float *)(sums + "
                        "i), channels, beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* A run of one channel's pixels, step apart in dX. */
static void emit_store_steps(clconv_emit *e)
{
    clconv_emit_line(e, "static void store_steps(__global $dx_type *dx, long "
                        "i, long step,");
    clconv_emit_open(e, "    const float *sums, int count, float "
                        "beta$tally_parameter)");
    clconv_emit_open(e, "if (step == 1)");
    clconv_emit_line(e, "store_dx_run(dx, i, sums, count, beta$tally_pass);");
    clconv_emit_else(e);
    clconv_emit_open(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, "store_dx(dx, i + j * step, sums[j], "
                        "beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* NCHW: from rows of a pixel to rows of a channel, then run by run. */
static void emit_store_rows(clconv_emit *e)
{
    clconv_emit_line(e, "static void store_tile(__global $dx_type *dx, const "
                        "long *in_dx, int count,");
    clconv_emit_line(e,
                     "    int channels, shape_t shape, const float16 *sums,");
    clconv_emit_open(e, "    float beta$tally_parameter)");
    clconv_emit_line(e, "float rows[$places * 16];");
    clconv_emit_line(e, "for (int i = 0; i < $places / 16; ++i)");
    clconv_emit_line(e, "    transpose16(sums + i * 16, 1, rows + i * 16, "
                        "$places);");
    clconv_emit_line(e, "const long step = shape.stride_w;");
    clconv_emit_open(e, "for (int first = 0, last; first < count; first = "
                        "last)");
    clconv_emit_line(e, "for (last = first + 1; last < count; ++last)");
    clconv_emit_line(e, "    if (in_dx[last] - in_dx[last - 1] != step)");
    clconv_emit_line(e, "        break;");
    clconv_emit_open(e, "for (int j = 0; j < channels; ++j)");
    clconv_emit_line(e, "store_steps(dx, in_dx[first] + j * shape.dx_channel, "
                        "step, rows + j * $places + first, last "
                        "- first, beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_panel_emit_store(clconv_emit *e, const clconv_problem *p, int pixels)
{
    clconv_emit_set(e, "places", clconv_round_up(pixels, LANES));
    clconv_output_emit_run(e, p, CLCONV_DX);
    clconv_emit_set_text(e, "dx_type",
                         p->type[CLCONV_DX] == CLCONV_F16 ? "half" : "float");
    if (p->layout == CLCONV_NHWC) {
        emit_store_pixels(e);
        return;
    }
    clconv_panel_emit_transpose(e, "transpose16", "const float16", "*(");
    emit_store_steps(e);
    emit_store_rows(e);
}

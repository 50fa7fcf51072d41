/*
 * An fp32 row that is multiplied as fp16 goes by way of half, which is right
 * but for numbers that saturate, NaN and infinities. One comparison tells
 * whether a row has any; if so, the vectors that have them are rounded again,
 * by the long way. A report asks the same comparison for small numbers as well,
 * so that most rows are counted by what rounds them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "depthwise_row.h"

#include "counts.h"
#include "depthwise.h"
#include "operand.h"

#define LANES CLCONV_DEPTHWISE_LANES

static bool is_nchw(const clconv_task *t)
{
    return t->problem->layout == CLCONV_NCHW;
}

/* ---- A vector --------------------------------------------------------- */

/* At the end of the tensor, element by element; rare. */
static void emit_edge(clconv_emit *e)
{
    clconv_emit_line(e, "__attribute__((noinline))");
    clconv_emit_open(e, "static float16 edge_$tensor("
                        "__global const $stored *p, long i, int count)");
    clconv_emit_line(e, "float v[16];");
    clconv_emit_line(e, "for (int lane = 0; lane < 16; ++lane)");
    clconv_emit_line(e, "    v[lane] = lane < count ? load_$tensor(p, "
                        "i + lane) : 0.0f;");
    clconv_emit_line(e, "return vload16(0, v);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_depthwise_emit_fetch(clconv_emit *e, const clconv_task *t,
                                 clconv_tensor tensor)
{
    clconv_operand_emit_load(e, t, tensor, 1);
    clconv_operand_emit_load(e, t, tensor, LANES);
    emit_edge(e);
    clconv_emit_line(e, "static float16 fetch_$tensor("
                        "__global const $stored *p, long i, int count,");
    clconv_emit_open(e, "    long end)");
    clconv_emit_line(e, "if (i + 16 > end)");
    clconv_emit_line(e, "    return edge_$tensor(p, i, count);");
    clconv_emit_line(e, "return select((float16)(0.0f), "
                        "load_${tensor}16(p, i), $lanes < count);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- A row as it is stored -------------------------------------------- */

/* Whole vectors, and the rest of count elements from i on. */
static void emit_plain_run(clconv_emit *e)
{
    clconv_emit_line(e, "static void run_$tensor(float *to, "
                        "__global const $stored *p, long i, int count,");
    clconv_emit_open(e, "    long end)");
    clconv_emit_line(e, "int j = 0;");
    clconv_emit_line(e, "for (; j <= count - 16; j += 16)");
    clconv_emit_line(e, "    keep16(load_${tensor}16(p, i + j), to + j);");
    clconv_emit_line(e, "if (j < count)");
    clconv_emit_line(e, "    keep16(fetch_$tensor(p, i + j, count - j, end), "
                        "to + j);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void open_row(clconv_emit *e)
{
    clconv_emit_line(e, "static bool row_$tensor(float *to, "
                        "__global const $stored *p, long i, int columns,");
    clconv_emit_open(e, "    int channels, long step, long end, int least)");
}

/* A call for the row's run, or for that of each column. */
static void emit_runs(clconv_emit *e, bool nchw, const char *row,
                      const char *column)
{
    if (!nchw)
        clconv_emit_line(e, "for (int w = 0; w < columns; ++w)");
    clconv_emit_line(e, nchw ? row : column);
}

static void emit_plain_row(clconv_emit *e, bool nchw)
{
    emit_plain_run(e);
    open_row(e);
    emit_runs(e, nchw, "run_$tensor(to, p, i, columns, end);",
              "    run_$tensor(to + w * $column, p, i + w * step, channels, "
              "end);");
    clconv_emit_line(e, "return false;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- A row that is rounded -------------------------------------------- */

/* beyond: distances from least up, at their largest; what is less wraps around,
 * and so one comparison tells both. */
static void emit_test(clconv_emit *e)
{
    clconv_emit_open(e, "static uint16 farther_$tensor(uint16 beyond, float16 "
                        "v, int least)");
    clconv_emit_line(e, "const int16 b = as_int16(v) & 0x7fffffff;");
    clconv_emit_line(e, "return max(beyond, as_uint16(b - least));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "static bool is_near_$tensor(uint16 beyond, int "
                        "least)");
    clconv_emit_line(e, "const int16 other = beyond > (uint16)($limit - "
                        "least);");
    clconv_counts_set_ordinary(e, LANES);
    clconv_emit_line(e, "return $ordinary;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Lanes past the last element are least, and stored as zeros. */
static void emit_halved_run(clconv_emit *e)
{
    clconv_emit_line(e, "static uint16 run_$tensor(float *to, "
                        "__global const $stored *p, long i, int count,");
    clconv_emit_open(e, "    long end, int least, uint16 beyond)");
    clconv_emit_line(e, "int j = 0;");
    clconv_emit_open(e, "for (; j <= count - 16; j += 16)");
    clconv_emit_line(e, "const float16 v = read_${tensor}16(p, i + j);");
    clconv_emit_line(e, "beyond = farther_$tensor(beyond, v, least);");
    clconv_emit_line(e, "keep16(halve_${tensor}16(v), to + j);");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (j >= count)");
    clconv_emit_line(e, "    return beyond;");
    clconv_emit_line(e, "const float16 v = rest_of_$tensor(p, i + j, count - "
                        "j, end);");
    clconv_emit_line(e, "keep16(halve_${tensor}16(v), to + j);");
    clconv_emit_line(e, "return farther_$tensor(beyond, "
                        "select((float16)(as_float(least)), v, $lanes < count "
                        "- j), least);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Rounds the vectors again that have what conversion gets wrong. */
static void emit_clip_run(clconv_emit *e)
{
    clconv_emit_line(e, "__attribute__((noinline))");
    clconv_emit_line(e, "static void clip_run_$tensor(float *to, "
                        "__global const $stored *p, long i, int count,");
    clconv_emit_open(e, "    long end)");
    clconv_emit_open(e, "for (int j = 0; j < count; j += 16)");
    clconv_emit_line(e, "const float16 v = rest_of_$tensor(p, i + j, "
                        "min(count - j, 16), end);");
    clconv_emit_line(e, "if (!is_near_$tensor(farther_$tensor(0, v, 0), 0))");
    clconv_emit_line(e, "    keep16(round_${tensor}16(v), to + j);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_rounded_row(clconv_emit *e, bool nchw, bool clips)
{
    open_row(e);
    clconv_emit_line(e, "uint16 beyond = 0;");
    emit_runs(e, nchw,
              "beyond = run_$tensor(to, p, i, columns, end, least, beyond);",
              "    beyond = run_$tensor(to + w * $column, p, i + w * step, "
              "channels, end, least, beyond);");
    clconv_emit_line(e, "if (is_near_$tensor(beyond, least))");
    clconv_emit_line(e, "    return true;");
    if (clips)
        emit_runs(e, nchw, "clip_run_$tensor(to, p, i, columns, end);",
                  "    clip_run_$tensor(to + w * $column, p, i + w * step, "
                  "channels, end);");
    clconv_emit_line(e, "return false;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_rounded(clconv_emit *e, const clconv_task *t,
                         clconv_tensor tensor)
{
    const clconv_problem *p = t->problem;
    bool clips = p->overflow != CLCONV_TO_INF;
    if (!(t->counts & CLCONV_BIT(tensor)))
        clconv_operand_emit_rest(e, t, tensor);
    clconv_operand_emit_halve(e, p, tensor, LANES);
    if (clips)
        clconv_operand_emit_round(e, p, tensor, LANES);
    clconv_emit_set_text(e, "stored", "float");
    clconv_counts_set_ordinary_bounds(e, p, tensor);
    emit_test(e);
    emit_halved_run(e);
    if (clips)
        emit_clip_run(e);
    emit_rounded_row(e, is_nchw(t), clips);
}

void clconv_depthwise_emit_row(clconv_emit *e, const clconv_task *t,
                               clconv_tensor tensor)
{
    if (clconv_operand_is_fused(t, tensor)) {
        emit_rounded(e, t, tensor);
        return;
    }
    clconv_depthwise_emit_fetch(e, t, tensor);
    emit_plain_row(e, is_nchw(t));
}

/* ---- Planes ----------------------------------------------------------- */

/* A pixel has the planes of one channel side by side, channel by channel. */
static void emit_pixel_planes(clconv_emit *e)
{
    clconv_emit_line(e, "float pixel[$pixel_floats];");
    clconv_emit_line(e, "clear(pixel, $column * planes);");
    clconv_emit_open(e, "for (int w = 0; w < columns; ++w)");
    clconv_emit_line(e, "row_dy(pixel, dy, i, 1, channels * planes, 0, end, "
                        "0);");
    clconv_emit_line(e, "split(pixel, to + w * $column, $column, planes, "
                        "pitch);");
    clconv_emit_line(e, "i += shape.dy_column;");
    clconv_emit_close(e);
}

void clconv_depthwise_emit_planes(clconv_emit *e, const clconv_task *t)
{
    clconv_depthwise_emit_row(e, t, CLCONV_DY);
    clconv_emit_line(e, "static void planes_dy(float *to, long pitch, "
                        "__global const $stored *dy, long i,");
    clconv_emit_open(e, "    int columns, int channels, shape_t shape)");
    clconv_emit_line(e, "const int planes = shape.planes;");
    clconv_emit_line(e, "const long end = shape.n * shape.dy_image;");
    if (is_nchw(t)) {
        clconv_emit_line(e, "for (int k = 0; k < planes; ++k)");
        clconv_emit_line(e, "    row_dy(to + k * pitch, dy, "
                            "i + k * shape.dy_channel, columns, channels, 1, "
                            "end, 0);");
    } else if (t->problem->group_k == 1) {
        clconv_emit_line(e, "row_dy(to, dy, i, columns, channels, "
                            "shape.dy_column, end, 0);");
    } else {
        emit_pixel_planes(e);
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

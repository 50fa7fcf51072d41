/*
 * NCHW: a work-item's lane takes vectors of pixels, its row pairs of channels;
 * NHWC: its lane takes vectors of channels, its row pixels. Each vector is
 * rounded and goes to tile[pixel][channel].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cast_read.h"

#include "counts.h"
#include "operand.h"

/* ---- The element ------------------------------------------------------- */

/* $copy_parameter and $copy: the plain copy, if one is written, in a function's
 * parameters and in a call's arguments. */
static void set_parameters(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor)
{
    bool is_half = t->problem->type[tensor] == CLCONV_F16;
    bool writes = clconv_cast_pack_copies(t, tensor);
    clconv_emit_set_text(e, "type", is_half ? "half" : "float");
    clconv_emit_set_text(e, "copy_parameter",
                         writes ? "__global half *copy, " : "");
    clconv_emit_set_text(e, "copy", writes ? "copy, " : "");
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
}

/* A vector as it is stored, read at once if its address is a multiple of its
 * size. */
static void emit_get(clconv_emit *e, const clconv_task *t, clconv_tensor tensor,
                     int width)
{
    bool is_half = t->problem->type[tensor] == CLCONV_F16;
    clconv_operand_emit_read(e, t, tensor, width);
    clconv_operand_set_width(e, width);
    clconv_emit_open(e, "static $float get_$tensor$vn(__global const $type "
                        "*in, long i, int aligned)");
    if (width > 1) {
        clconv_emit_line(e, "if (aligned)");
        clconv_emit_line(e, is_half
                                ? "    return vloada_half$vn(0, in + i);"
                                : "    return *(__global const $float *)(in + "
                                  "i);");
    }
    clconv_emit_line(e, "return read_$tensor$vn(in, i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Counts a vector, writes the plain copy if there is one, and returns what a
 * store rounds to fp16. */
static void emit_cast(clconv_emit *e, const clconv_task *t,
                      clconv_tensor tensor, int width)
{
    bool casts = clconv_problem_casts(t->problem, tensor);
    clconv_counts_emit_see(e, t->problem, tensor, width);
    if (casts)
        clconv_operand_emit_clip(e, t->problem, tensor, width);
    clconv_operand_set_width(e, width);
    clconv_emit_line(e, "static $float cast_$tensor$vn($float before, "
                        "${copy_parameter}long i,");
    clconv_emit_open(e, "    int counting, seen${vn}_t *seen)");
    clconv_emit_line(e, casts ? "const $float after = clip_$tensor$vn(before);"
                              : "const $float after = before;");
    clconv_emit_line(e, "if (counting)");
    clconv_emit_line(e, "    see_$tensor$vn(seen, before);");
    if (clconv_cast_pack_copies(t, tensor))
        clconv_emit_line(e, "vstore_half$vn(after, 0, copy + i);");
    clconv_emit_line(e, "return after;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_element(clconv_emit *e, const clconv_task *t,
                         clconv_tensor tensor, int width)
{
    emit_get(e, t, tensor, width);
    emit_cast(e, t, tensor, width);
}

/* ---- Read: NCHW -------------------------------------------------------- */

/* Vectors of two channels go to pixels of the tile, pitch halves apart. */
static void emit_put(clconv_emit *e, int width)
{
    clconv_operand_set_width(e, width);
    clconv_emit_open(e, "static void put$vn(__local half *to, int pitch, "
                        "$float a, $float b)");
    for (int i = 0; i < width; ++i) {
        const char lane[] = {'.', 's', "0123456789abcdef"[i], '\0'};
        clconv_emit_set_text(e, "lane", width > 1 ? lane : "");
        clconv_emit_set(e, "pixel", i);
        clconv_emit_line(e, "vstorea_half2((float2)(a$lane, b$lane), 0, to + "
                            "$pixel * pitch);");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The pixels of channels c and c + 1, in vectors of width, from x on. Both are
 * read before either is used, to have two reads under way. */
static void emit_pixels(clconv_emit *e, int width, bool sums)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_set(e, "past", width - 1);
    clconv_emit_open(e, "for (; x + $past < tile->pixels; x += lanes * "
                        "$width)");
    clconv_emit_line(e, "const $float a = get_$tensor$vn(in, i + x, aligned);");
    clconv_emit_line(e, "const $float b = get_$tensor$vn(in, j + x, aligned);");
    if (sums) {
        clconv_emit_line(e, "sum_a$vn += a;");
        clconv_emit_line(e, "sum_b$vn += b;");
    }
    clconv_emit_line(e, "const $float first =");
    clconv_emit_line(e, "    cast_$tensor$vn(a, ${copy}i + x, counting, "
                        "&seen$vn);");
    clconv_emit_line(e, "const $float second =");
    clconv_emit_line(e, "    cast_$tensor$vn(b, ${copy}j + x, counting && two, "
                        "&seen$vn);");
    clconv_emit_line(e, "put$vn(to + x * pitch, pitch, first, "
                        "two ? second : ($float)(0.0f));");
    clconv_emit_close(e);
}

static void emit_channel_sums(clconv_emit *e, int vec)
{
    clconv_emit_line(e, "__local float *at = sums + lane * tile->width + c;");
    clconv_emit_line(e, vec > 1 ? "at[0] = fsum$vec(sum_a$vec) + sum_a;"
                                : "at[0] = sum_a;");
    clconv_emit_line(e, vec > 1 ? "at[1] = fsum$vec(sum_b$vec) + sum_b;"
                                : "at[1] = sum_b;");
}

/* Two channels at a time; where there is but one left, it stands for both, and
 * the second becomes 0, as do all channels of the padding. */
static void emit_channels(clconv_emit *e, const clconv_cast_pack *a, bool sums)
{
    clconv_emit_open(e, "for (int c = 2 * row; c < tile->channels; c += 2 * "
                        "rows)");
    clconv_emit_line(e, "const int two = c + 1 < tile->channels;");
    clconv_emit_line(e, "const long i = tile->source + c * tiles->pixels;");
    clconv_emit_line(e, "const long j = two ? i + tiles->pixels : i;");
    clconv_emit_line(e, "__local half *to = out + c;");
    if (sums && a->vec > 1)
        clconv_emit_line(e, "float$vec sum_a$vec = 0.0f, sum_b$vec = 0.0f;");
    if (sums)
        clconv_emit_line(e, "float sum_a = 0.0f, sum_b = 0.0f;");
    clconv_emit_line(e, "int x = lane * $vec;");
    emit_pixels(e, a->vec, sums);
    if (a->vec > 1) {
        clconv_emit_line(e, "x = tile->pixels / $vec * $vec + lane;");
        emit_pixels(e, 1, sums);
    }
    if (sums)
        emit_channel_sums(e, a->vec);
    clconv_emit_close(e);
}

/* ---- Read: NHWC -------------------------------------------------------- */

/* The columns of width channels from c on. */
static void emit_columns(clconv_emit *e, int width, bool sums)
{
    clconv_operand_set_width(e, width);
    clconv_emit_set(e, "width", width);
    clconv_emit_set(e, "past", width - 1);
    clconv_emit_open(e, "for (; c + $past < tile->channels; c += lanes * "
                        "$width)");
    if (sums)
        clconv_emit_line(e, "$float sum = 0.0f;");
    clconv_emit_open(e, "for (int x = row; x < tile->pixels; x += rows)");
    clconv_emit_line(e, "const long i = tile->source + x * line + c;");
    clconv_emit_line(e, "const $float before = get_$tensor$vn(in, i, "
                        "aligned);");
    if (sums)
        clconv_emit_line(e, "sum += before;");
    clconv_emit_line(e, "vstore_half$vn(cast_$tensor$vn(before, ${copy}i, "
                        "counting, &seen$vn),");
    clconv_emit_line(e, "    0, out + x * pitch + c);");
    clconv_emit_close(e);
    if (sums)
        clconv_emit_line(e, width > 1
                                ? "vstore$vn(sum, 0, sums + row * tile->width "
                                  "+ c);"
                                : "sums[row * tile->width + c] = sum;");
    clconv_emit_close(e);
}

static void emit_pixel_rows(clconv_emit *e, const clconv_cast_pack *a, bool sums)
{
    clconv_emit_line(e, "const long line = tiles->groups * tiles->channels;");
    clconv_emit_line(e, "int c = lane * $vec;");
    emit_columns(e, a->vec, sums);
    if (a->vec == 1)
        return;
    clconv_emit_line(e, "c = tile->channels / $vec * $vec + lane;");
    emit_columns(e, 1, sums);
}

/* ---- Read: both -------------------------------------------------------- */

/* Reads a tile of the tensor; of dY, if dbias is wanted, also sums it. Each
 * tensor has functions of its own: PoCL 3.1 loses what a function that is called
 * twice writes to local memory. */
static void emit_read(clconv_emit *e, const clconv_task *t,
                      const clconv_cast_pack *a, clconv_tensor tensor)
{
    bool sums = tensor == CLCONV_DY && clconv_cast_pack_sums(t);
    clconv_emit_line(
        e, "static void read_${tensor}_tile(__global const $type *in,");
    clconv_emit_line(e, "    ${copy_parameter}__local half *out, const tiles_t "
                        "*tiles,");
    clconv_emit_line(e, "    const tile_t *tile,");
    if (sums)
        clconv_emit_line(e, "    __local float *sums,");
    clconv_emit_open(e, "    int item, int counting, counts_t *tally)");
    clconv_emit_line(e, "const int lanes = (int)tiles->lanes;");
    clconv_emit_line(e, "const int lane = item % lanes;");
    clconv_emit_line(e, "const int row = item / lanes;");
    clconv_emit_line(e, "const int rows = $items / lanes;");
    clconv_emit_line(e, "const int pitch = tile->width + $past_channels;");
    clconv_emit_line(e, "const int aligned = (int)tiles->aligned;");
    if (a->vec > 1)
        clconv_emit_line(e, "seen${vec}_t seen$vec = { 0 };");
    clconv_emit_line(e, "seen_t seen = { 0 };");
    if (t->problem->layout == CLCONV_NHWC)
        emit_pixel_rows(e, a, sums);
    else
        emit_channels(e, a, sums);
    clconv_emit_open(e, "if (counting)");
    if (a->vec > 1)
        clconv_emit_line(e, "fold$vec(tally, &seen$vec);");
    clconv_emit_line(e, "fold(tally, &seen);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_cast_read_emit_shared(clconv_emit *e, const clconv_task *t,
                                  const clconv_cast_pack *a)
{
    if (t->problem->layout == CLCONV_NHWC)
        return;
    emit_put(e, 1);
    if (a->vec > 1)
        emit_put(e, a->vec);
}

void clconv_cast_read_emit(clconv_emit *e, const clconv_task *t,
                           const clconv_cast_pack *a, clconv_tensor tensor)
{
    set_parameters(e, t, tensor);
    emit_element(e, t, tensor, 1);
    if (a->vec > 1)
        emit_element(e, t, tensor, a->vec);
    emit_read(e, t, a, tensor);
}

/*
 * NCHW: a work-item's lane is a vector of pixels, its row pairs of channels;
 * NHWC: its lane is a vector of channels, its row pixels. It reads a few vectors
 * before it uses the first, so that enough bytes are under way.
 *
 * What lies past the last channel or pixel is read as 0: the padding of the
 * packed copy, and what no count sees.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cast_read.h"

#include "cast_tiles.h"
#include "counts.h"
#include "operand.h"

#define VEC CLCONV_TILES_VEC

static bool writes_copy(const clconv_task *t, clconv_tensor tensor)
{
    return clconv_cast_pack_copies(t, tensor);
}

/* $copy_parameter and $copy: the plain copy, if one is written, in a function's
 * parameters and in a call's arguments. */
static void set_parameters(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor)
{
    bool is_half = t->problem->type[tensor] == CLCONV_F16;
    bool writes = writes_copy(t, tensor);
    clconv_emit_set_text(e, "type", is_half ? "half" : "float");
    clconv_emit_set_text(e, "copy_parameter",
                         writes ? "__global half *copy, " : "");
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set(e, "at_once", CLCONV_TILES_AT_ONCE);
    clconv_emit_set(e, "pack_vec", VEC);
}

/* ---- A vector ---------------------------------------------------------- */

/* The first count elements of a vector as it is stored, then zeros: of four, or
 * none, if all vectors are aligned. */
static void emit_get(clconv_emit *e, const clconv_task *t, clconv_tensor tensor)
{
    bool is_half = t->problem->type[tensor] == CLCONV_F16;
    clconv_operand_emit_read(e, t, tensor, 1);
    clconv_emit_open(e, "static float4 get_$tensor(__global const $type *in, "
                        "long i, int count)");
    clconv_emit_line(e, "if (count <= 0)");
    clconv_emit_line(e, "    return (float4)(0.0f);");
    if (clconv_tiles_are_aligned(t->problem, tensor)) {
        clconv_emit_line(e, is_half
                                ? "return vloada_half4(0, in + i);"
                                : "return *(__global const float4 *)(in + i);");
    } else {
        clconv_emit_line(e, "return (float4)(read_$tensor(in, i),");
        clconv_emit_line(e, "    count > 1 ? read_$tensor(in, i + 1) : 0.0f,");
        clconv_emit_line(e, "    count > 2 ? read_$tensor(in, i + 2) : 0.0f,");
        clconv_emit_line(e, "    count > 3 ? read_$tensor(in, i + 3) : 0.0f);");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The plain copy of the first count elements. */
static void emit_keep(clconv_emit *e)
{
    clconv_emit_open(e, "static void keep_$tensor(__global half *copy, long i, "
                        "int count, float4 v)");
    clconv_emit_line(e, "const float each[4] = {v.x, v.y, v.z, v.w};");
    clconv_emit_line(e, "for (int j = 0; j < min(count, 4); ++j)");
    clconv_emit_line(e, "    vstore_half(each[j], i + j, copy);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* What a store rounds to fp16. */
static void emit_cast(clconv_emit *e, const clconv_task *t, clconv_tensor tensor)
{
    bool casts = clconv_problem_casts(t->problem, tensor);
    if (casts)
        clconv_operand_emit_clip(e, t->problem, tensor, VEC);
    clconv_emit_open(e, "static float4 cast_$tensor(float4 v)");
    clconv_emit_line(e, casts ? "return clip_${tensor}4(v);" : "return v;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_vector(clconv_emit *e, const clconv_task *t,
                        clconv_tensor tensor)
{
    emit_get(e, t, tensor);
    emit_cast(e, t, tensor);
    if (writes_copy(t, tensor))
        emit_keep(e);
    clconv_counts_emit_see(e, t->problem, tensor, VEC);
}

/* Two halves, to be stored at once: of vstore_half2() some drivers make two
 * stores. */
static void emit_pair(clconv_emit *e)
{
    clconv_emit_open(e, "static ushort2 half_pair(float a, float b)");
    clconv_emit_line(e, "ushort2 pair;");
    clconv_emit_line(e, "vstore_half2((float2)(a, b), 0, (half *)&pair);");
    clconv_emit_line(e, "return pair;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- NCHW -------------------------------------------------------------- */

/* Channel j of those that a work-item reads at once, from c on: of each row a
 * pair. */
static void emit_channel(clconv_emit *e)
{
    clconv_emit_line(e, "const int channel = c + j / 2 * 2 * rows + j % 2;");
}

/* Four pixels of two channels go to the tile, pitch halves apart. */
static void emit_put(clconv_emit *e)
{
    static const char lanes[] = "xyzw";
    clconv_emit_open(e,
                     "static void put_pair(__local ushort *to, int pitch, int "
                     "count, float4 a, float4 b)");
    for (int i = 0; i < VEC; ++i) {
        const char lane[] = {lanes[i], '\0'};
        clconv_emit_set_text(e, "lane", lane);
        clconv_emit_set(e, "pixel", i);
        clconv_emit_line(e, "if (count > $pixel)");
        clconv_emit_line(e, "    *(__local ushort2 *)(to + $pixel * pitch) = "
                            "half_pair(a.$lane, b.$lane);");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_read_channels(clconv_emit *e)
{
    clconv_emit_line(e, "const int count = tile->pixels - x;");
    clconv_emit_line(e, "float4 raw[$at_once];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $at_once; ++j)");
    emit_channel(e);
    clconv_emit_line(e, "raw[j] = get_$tensor(in, tile->source + channel * "
                        "tiles->pixels + x,");
    clconv_emit_line(e, "    channel < tile->channels ? count : 0);");
    clconv_emit_close(e);
}

static void emit_sum_channels(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < $at_once; ++j)");
    clconv_emit_line(e, "    sum[j] += fsum4(raw[j]);");
}

static void emit_put_channels(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $at_once; j += 2)");
    emit_channel(e);
    clconv_emit_line(e, "if (channel < tile->width)");
    clconv_emit_line(
        e, "    put_pair(out + x * tile->pitch + channel, tile->pitch, "
           "count, cast_$tensor(raw[j]), cast_$tensor(raw[j + "
           "1]));");
    clconv_emit_close(e);
}

static void emit_keep_channels(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $at_once; ++j)");
    emit_channel(e);
    clconv_emit_line(e, "keep_$tensor(copy, tile->source + channel * "
                        "tiles->pixels + x,");
    clconv_emit_line(e, "    channel < tile->channels ? count : 0, "
                        "cast_$tensor(raw[j]));");
    clconv_emit_close(e);
}

static void emit_leave_channel_sums(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $at_once; ++j)");
    emit_channel(e);
    clconv_emit_line(e, "if (channel < tile->width)");
    clconv_emit_line(e, "    sums[channel * (lanes + 1) + lane] = sum[j];");
    clconv_emit_close(e);
}

static void emit_channels(clconv_emit *e, const clconv_task *t,
                          clconv_tensor tensor, bool sums)
{
    clconv_emit_open(e, "for (int c = 2 * row; c < tile->width; c += $at_once "
                        "* rows)");
    if (sums)
        clconv_emit_line(e, "float sum[$at_once] = {0.0f};");
    clconv_emit_open(
        e, "for (int x = $pack_vec * lane; x < tile->pixels; x += $pack_vec "
           "* lanes)");
    emit_read_channels(e);
    if (sums)
        emit_sum_channels(e);
    if (writes_copy(t, tensor))
        emit_keep_channels(e);
    emit_put_channels(e);
    clconv_emit_close(e);
    if (sums)
        emit_leave_channel_sums(e);
    clconv_emit_close(e);
}

static void emit_count_channels(clconv_emit *e)
{
    clconv_emit_open(e, "for (int c = row; c < tile->channels; c += rows)");
    clconv_emit_line(
        e, "for (int x = $pack_vec * lane; x < tile->pixels; x += $pack_vec "
           "* lanes)");
    clconv_emit_line(e,
                     "    see_${tensor}4(&seen, get_$tensor(in, tile->source "
                     "+ c * tiles->pixels + x, tile->pixels - x));");
    clconv_emit_close(e);
}

/* ---- NHWC -------------------------------------------------------------- */

static void emit_read_pixels(clconv_emit *e)
{
    clconv_emit_line(e, "float4 raw[$at_once];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $at_once; ++j)");
    clconv_emit_line(e, "const int pixel = x + j * rows;");
    clconv_emit_line(e, "raw[j] = get_$tensor(in, tile->source + pixel * line "
                        "+ c, pixel < tile->pixels ? count : 0);");
    clconv_emit_close(e);
}

static void emit_put_pixels(clconv_emit *e, bool copies, bool sums)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int j = 0; j < $at_once; ++j)");
    clconv_emit_line(e, "const int pixel = x + j * rows;");
    if (sums)
        clconv_emit_line(e, "sum += raw[j];");
    clconv_emit_line(e, "if (pixel >= tile->pixels)");
    clconv_emit_line(e, "    continue;");
    if (copies)
        clconv_emit_line(e, "keep_$tensor(copy, tile->source + pixel * line + "
                            "c, count, cast_$tensor(raw[j]));");
    clconv_emit_line(e, "const float4 v = cast_$tensor(raw[j]);");
    clconv_emit_line(e, "*(__global ushort4 *)(out + tile->target + pixel * "
                        "tile->line + c) =");
    clconv_emit_line(e, "    (ushort4)(half_pair(v.x, v.y), half_pair(v.z, "
                        "v.w));");
    clconv_emit_close(e);
}

static void emit_pixels(clconv_emit *e, const clconv_task *t,
                        clconv_tensor tensor, bool sums)
{
    clconv_emit_line(e, "const long line = tiles->groups * tiles->channels;");
    clconv_emit_open(
        e, "for (int c = $pack_vec * lane; c < tile->width; c += $pack_vec "
           "* lanes)");
    clconv_emit_line(e, "const int count = tile->channels - c;");
    if (sums)
        clconv_emit_line(e, "float4 sum = 0.0f;");
    clconv_emit_open(e, "for (int x = row; x < tile->pixels; x += $at_once * "
                        "rows)");
    emit_read_pixels(e);
    emit_put_pixels(e, writes_copy(t, tensor), sums);
    clconv_emit_close(e);
    if (sums)
        clconv_emit_line(e, "vstore4(sum, 0, sums + row * tile->width + c);");
    clconv_emit_close(e);
}

static void emit_count_pixels(clconv_emit *e)
{
    clconv_emit_line(e, "const long line = tiles->groups * tiles->channels;");
    clconv_emit_open(
        e, "for (int c = $pack_vec * lane; c < tile->width; c += $pack_vec "
           "* lanes)");
    clconv_emit_line(e, "for (int x = row; x < tile->pixels; x += rows)");
    clconv_emit_line(e,
                     "    see_${tensor}4(&seen, get_$tensor(in, tile->source "
                     "+ x * line + c, tile->channels - c));");
    clconv_emit_close(e);
}

/* ---- Both -------------------------------------------------------------- */

static void emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "const int lanes = 1 << (int)tiles->lane_bits;");
    clconv_emit_line(e, "const int lane = item & (lanes - 1);");
    clconv_emit_line(e, "const int row = item >> (int)tiles->lane_bits;");
    clconv_emit_line(e, "const int rows = $items >> (int)tiles->lane_bits;");
}

static bool is_nchw(const clconv_task *t)
{
    return t->problem->layout == CLCONV_NCHW;
}

/* Each tensor has functions of its own: PoCL 3.1 loses what a function that is
 * called twice writes to local memory. */
static void emit_read(clconv_emit *e, const clconv_task *t, clconv_tensor tensor)
{
    bool sums = tensor == CLCONV_DY && clconv_cast_pack_sums(t);
    clconv_emit_line(
        e, "static void read_${tensor}_tile(__global const $type *in,");
    clconv_emit_line(e, is_nchw(t)
                            ? "    ${copy_parameter}__local ushort *out,"
                            : "    ${copy_parameter}__global half *out,");
    clconv_emit_line(e, sums ? "    const tiles_t *tiles, const tile_t *tile, "
                               "__local float *sums,"
                             : "    const tiles_t *tiles, const tile_t *tile,");
    clconv_emit_open(e, "    int item)");
    emit_place(e);
    if (is_nchw(t))
        emit_channels(e, t, tensor, sums);
    else
        emit_pixels(e, t, tensor, sums);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The tile is read again: seldom is a report wanted, and what counts takes
 * registers. */
static void emit_count(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(
        e, "static void count_${tensor}_tile(__global const $type *in,");
    clconv_emit_open(e, "    const tiles_t *tiles, const tile_t *tile, int "
                        "item, counts_t *tally)");
    emit_place(e);
    clconv_emit_line(e, "seen4_t seen = { 0 };");
    if (is_nchw(t))
        emit_count_channels(e);
    else
        emit_count_pixels(e);
    clconv_emit_line(e, "fold4(tally, &seen);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_cast_read_emit_shared(clconv_emit *e, const clconv_task *t)
{
    emit_pair(e);
    if (is_nchw(t))
        emit_put(e);
}

void clconv_cast_read_emit(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor)
{
    set_parameters(e, t, tensor);
    emit_vector(e, t, tensor);
    emit_read(e, t, tensor);
    emit_count(e, t);
}

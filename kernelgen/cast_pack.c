/*
 * A work-group takes a tile (cast_tiles.h) of one of the tensors: dY's tiles
 * come first, then those of X, then those of W.
 *
 *     NHWC: read, round and write it (cast_read.c)
 *     NCHW: read and round it into local memory (cast_read.c)
 *           write: a work-item takes 8 channels of a pixel: 16 bytes
 *
 * Neighbouring work-items read neighbours and write neighbours. Pixels of the
 * tile are an odd number of 4-byte words apart, so that a channel of it lies
 * in different banks. Barriers stand outside of what depends on the tensor.
 *
 * Partial sums of dbias (scratch, fp32): [tile][k].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cast_pack.h"

#include <stdio.h>

#include "bias_sum.h"
#include "cast_read.h"
#include "cast_tiles.h"
#include "counts.h"
#include "entry.h"
#include "integers.h"
#include "output.h"

/* ---- The task ---------------------------------------------------------- */

bool clconv_cast_packs(const clconv_task *t, clconv_tensor tensor)
{
    return (t->copies & CLCONV_PACKED(tensor)) != 0;
}

bool clconv_cast_packs_any(const clconv_task *t)
{
    return clconv_cast_packs(t, CLCONV_DY) || clconv_cast_packs(t, CLCONV_X) ||
           clconv_cast_packs(t, CLCONV_W);
}

bool clconv_cast_pack_copies(const clconv_task *t, clconv_tensor tensor)
{
    return (t->copies & CLCONV_BIT(tensor)) != 0;
}

bool clconv_cast_pack_sums(const clconv_task *t)
{
    return t->bias && clconv_cast_packs(t, CLCONV_DY);
}

static clconv_tiles tiles_of(const clconv_task *t, int lws,
                             clconv_tensor tensor, int64_t batch)
{
    return clconv_tiles_of(t->problem, tensor, batch, lws);
}

/* The tiles of all tensors. */
static clconv_shape shape_of(const clconv_task *t, int lws, int64_t batch)
{
    clconv_shape shape = {.baked = t->baked};
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        clconv_tiles tiles = tiles_of(t, lws, tensor, batch);
        if (clconv_cast_packs(t, tensor))
            clconv_tiles_add(&tiles, t->problem->layout,
                             clconv_tensor_name(tensor), &shape);
    }
    return shape;
}

/* ---- Memory ------------------------------------------------------------ */

/* Halves of a pixel of the tile past its channels: see above. */
#define PITCH_PAST_CHANNELS 2

/* Are channels turned to be neighbours in local memory? */
static bool through_tile(const clconv_task *t)
{
    return t->problem->layout == CLCONV_NCHW;
}

static int tile_halves(void)
{
    return CLCONV_TILES_ELEMENTS + CLCONV_TILES_PIXELS * PITCH_PAST_CHANNELS;
}

/* Sums of a channel: NHWC, one a row of work-items; NCHW, one a lane, and room
 * for one more, so that channels lie in different banks. */
static int sum_count(const clconv_task *t, int lws)
{
    clconv_tiles s = tiles_of(t, lws, CLCONV_DY, t->problem->n);
    bool rows = t->problem->layout == CLCONV_NHWC;
    int64_t each = rows ? lws / s.lanes : s.lanes + 1;
    return (int)(each * s.tile_channels);
}

size_t clconv_cast_pack_local(const clconv_task *t, int lws)
{
    int words = (through_tile(t) ? tile_halves() / 2 : 0) +
                (clconv_cast_pack_sums(t) ? sum_count(t, lws) : 0);
    return (size_t)(words + CLCONV_COUNTS_CLASSES) * sizeof(float);
}

size_t clconv_cast_pack_scratch(const clconv_task *t, int lws)
{
    if (!clconv_cast_pack_sums(t))
        return 0;
    clconv_bias_sums sums = clconv_cast_pack_bias_sums(t, lws, t->problem->n);
    return (size_t)(sums.count * t->problem->k) * sizeof(float);
}

/* ---- Passes ------------------------------------------------------------ */

clconv_pass clconv_cast_pack_pass(const clconv_task *t, int lws, int64_t batch)
{
    clconv_shape shape = shape_of(t, lws, batch);
    clconv_pass pass = {
        .entry = "cast_pack",
        .counts = true,
        .local = (size_t)lws,
    };
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        if (!clconv_cast_packs(t, tensor))
            continue;
        pass.groups += (size_t)tiles_of(t, lws, tensor, batch).count;
        clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, tensor);
        if (clconv_cast_pack_copies(t, tensor))
            clconv_entry_arg(&pass, CLCONV_ARG_COPY, tensor);
        clconv_entry_arg(&pass, CLCONV_ARG_PACKED, tensor);
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, tensor);
    }
    if (clconv_cast_pack_sums(t))
        clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DY);
    clconv_shape_arg(&shape, &pass);
    return pass;
}

/* [tile][k] */
clconv_bias_sums clconv_cast_pack_bias_sums(const clconv_task *t, int lws,
                                            int64_t batch)
{
    clconv_tiles s = tiles_of(t, lws, CLCONV_DY, batch);
    int64_t count = s.images * s.pixel_parts;
    return (clconv_bias_sums){.count = count, .run = 1};
}

clconv_pass clconv_cast_pack_bias_pass(const clconv_task *t, int lws,
                                       int64_t batch)
{
    clconv_shape shape = shape_of(t, lws, batch);
    clconv_pass pass = {
        .entry = "cast_pack_bias",
        .serves = CLCONV_OP_DB,
        .local = (size_t)lws,
        .groups = (size_t)t->problem->k,
    };
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DB);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DB);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DB);
    if (clconv_output_is_counted(t->problem, CLCONV_DB))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DB);
    clconv_shape_arg(&shape, &pass);
    return pass;
}

/* ---- Write ------------------------------------------------------------- */

/* Eight halves of the tile, by vectors: what wrote them were no ushorts. */
static void emit_block(clconv_emit *e)
{
    clconv_emit_open(e, "static uint4 block_at(__local const ushort *p)");
    clconv_emit_line(e, "return (uint4)(as_uint(*(__local const ushort2 *)p),");
    for (int i = 2; i < 8; i += 2) {
        clconv_emit_set(e, "at", i);
        clconv_emit_set_text(e, "tail", i < 6 ? "," : ");");
        clconv_emit_line(e, "               as_uint(*(__local const ushort2 "
                            "*)(p + $at))$tail");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Work-items take blocks of eight channels in turns. */
static void emit_write(clconv_emit *e)
{
    clconv_emit_line(e, "static void write_tile(__local const ushort *in, "
                        "__global half *out,");
    clconv_emit_open(e, "    const tile_t *tile, int item)");
    clconv_emit_line(e, "const int end = tile->pixels << tile->block_bits;");
    clconv_emit_open(e, "for (int i = item; i < end; i += $items)");
    clconv_emit_line(e, "const int x = i >> tile->block_bits;");
    clconv_emit_line(e, "const int c = 8 * (i - (x << tile->block_bits));");
    clconv_emit_line(e, "if (c < tile->width)");
    clconv_emit_line(e, "    *(__global uint4 *)(out + tile->target + x * "
                        "tile->line + c) =");
    clconv_emit_line(e, "        block_at(in + x * tile->pitch + c);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The entry point --------------------------------------------------- */

static void emit_variables(clconv_emit *e, const clconv_task *t, int lws)
{
    clconv_emit_set(e, "tile_halves", tile_halves());
    clconv_emit_set(e, "sum_count", sum_count(t, lws));
    clconv_emit_set(e, "classes", CLCONV_COUNTS_CLASSES);
    if (through_tile(t)) {
        clconv_emit_line(e, "__local ushort packed[$tile_halves]");
        clconv_emit_line(e, "    __attribute__((aligned(16)));");
    }
    if (clconv_cast_pack_sums(t)) {
        clconv_emit_line(e, "__local float sums[$sum_count];");
        clconv_emit_line(e, "int sum_parts = 0;");
    }
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    if (lws > 1) {
        clconv_emit_line(e, "__local uint group_tally[$classes];");
        clconv_emit_line(e, "if (item < $classes)");
        clconv_emit_line(e, "    group_tally[item] = 0;");
    }
    clconv_emit_line(e, "counts_t tally = { 0 };");
    clconv_emit_line(e, "tile_t tile = { 0 };");
    clconv_emit_line(e, "__global half *out = 0;");
    clconv_emit_line(e, "__global uint *counts = 0;");
}

/* $sum_parts: sums of each channel that a tile's reading leaves. */
static void emit_tile_sums(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e, "if (sum_parts > 0)");
    clconv_emit_open(e, "for (int c = item; c < tile.channels; c += $items)");
    clconv_emit_line(e, "float sum = 0.0f;");
    clconv_emit_line(e, "#pragma unroll 8");
    clconv_emit_line(e, "for (int i = 0; i < sum_parts; ++i)");
    clconv_emit_line(e, through_tile(t)
                            ? "    sum += sums[c * (sum_parts + 1) + i];"
                            : "    sum += sums[i * tile.width + c];");
    clconv_emit_line(e, "scratch[tile.part * shape.dy_groups * "
                        "shape.dy_channels + tile.channel + c] = sum;");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* read_<tensor>_tile(...), see cast_read.h. */
static void emit_read_call(clconv_emit *e, const clconv_task *t,
                           clconv_tensor tensor, bool sums)
{
    char copy[16] = "";
    if (clconv_cast_pack_copies(t, tensor))
        snprintf(copy, sizeof copy, "%s_copy, ", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "copy", copy);
    clconv_emit_set_text(e, "to", through_tile(t) ? "packed" : "out");
    clconv_emit_set_text(e, "sums", sums ? "sums, " : "");
    clconv_emit_line(e, "read_${tensor}_tile($tensor, ${copy}$to, "
                        "&tiles, &tile, ${sums}item);");
    clconv_emit_line(e, "if (counts)");
    clconv_emit_line(e,
                     "    count_${tensor}_tile($tensor, &tiles, &tile, item, "
                     "&tally);");
}

/* Reads the tile if it is one of this tensor: id counts from its first. A
 * tensor that the call has no use for is NULL. */
static void emit_branch(clconv_emit *e, const clconv_task *t,
                        clconv_tensor tensor)
{
    bool sums = tensor == CLCONV_DY && clconv_cast_pack_sums(t);
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_open(e,
                     "if ($tensor && id >= 0 && id < shape.${tensor}_count)");
    clconv_emit_line(e, "const tiles_t tiles = get_${tensor}_tiles(&shape);");
    clconv_emit_line(e, "tile = tile_of(&tiles, (uint)id);");
    clconv_emit_line(e, "out = ${tensor}_packed;");
    clconv_emit_line(e, "counts = ${tensor}_counts;");
    if (sums)
        clconv_emit_line(
            e, through_tile(t) ? "sum_parts = 1 << (int)tiles.lane_bits;"
                               : "sum_parts = $items >> (int)tiles.lane_bits;");
    emit_read_call(e, t, tensor, sums);
    clconv_emit_close(e);
}

static void emit_branches(clconv_emit *e, const clconv_task *t)
{
    const char *before = NULL;
    clconv_emit_line(e, "long id = get_group_id(0);");
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        if (!clconv_cast_packs(t, tensor))
            continue;
        if (before) {
            clconv_emit_set_text(e, "before", before);
            clconv_emit_line(e, "id -= shape.${before}_count;");
        }
        emit_branch(e, t, tensor);
        before = clconv_tensor_name(tensor);
    }
}

static void emit_entry(clconv_emit *e, const clconv_task *t, int lws)
{
    clconv_pass pass = clconv_cast_pack_pass(t, lws, t->problem->n);
    clconv_shape shape = shape_of(t, lws, t->problem->n);
    clconv_shape_open(e, t, &pass, &shape);
    emit_variables(e, t, lws);
    emit_branches(e, t);
    if (through_tile(t) || clconv_cast_pack_sums(t) || lws > 1)
        clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    if (through_tile(t))
        clconv_emit_line(e, "write_tile(packed, out, &tile, item);");
    if (clconv_cast_pack_sums(t))
        emit_tile_sums(e, t);
    clconv_emit_line(e, lws > 1
                            ? "counts_flush_group(counts, &tally, group_tally);"
                            : "counts_flush(counts, &tally);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- dbias: the last sum ----------------------------------------------- */

static void emit_bias(clconv_emit *e, const clconv_task *t, int lws)
{
    clconv_pass pass = clconv_cast_pack_bias_pass(t, lws, t->problem->n);
    clconv_shape shape = shape_of(t, lws, t->problem->n);
    clconv_bias_sum_emit(e, lws);
    clconv_output_emit_store(e, t->problem, CLCONV_DB, 1);
    clconv_shape_open(e, t, &pass, &shape);
    clconv_emit_line(e, "const int k = (int)get_group_id(0);");
    clconv_emit_line(e, "const int count = (int)(shape.dy_images * "
                        "shape.dy_pixel_parts);");
    clconv_emit_line(e, "const int channels = (int)get_num_groups(0);");
    clconv_emit_line(e, "float total = bias_share(scratch, count, 1, "
                        "channels, k);");
    if (lws > 1) {
        clconv_emit_line(e, "__local float4 shares[$items / 4];");
        clconv_emit_line(e,
                         "((__local float *)shares)[get_local_id(0)] = total;");
        clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
        clconv_emit_line(e, "if (get_local_id(0) != 0)");
        clconv_emit_line(e, "    return;");
        clconv_emit_line(e, "total = bias_total(shares);");
    }
    clconv_output_emit_tally(e, t->problem, CLCONV_DB);
    clconv_emit_line(e, "store_db(db, k, total, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DB);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- The whole --------------------------------------------------------- */

static void emit_shared(clconv_emit *e, const clconv_task *t, int lws)
{
    clconv_shape shape = shape_of(t, lws, t->problem->n);
    clconv_emit_set(e, "past_channels", PITCH_PAST_CHANNELS);
    clconv_emit_set(e, "items", lws);
    clconv_shape_emit(e, &shape);
    clconv_tiles_emit(e, t->problem->layout);
    clconv_cast_read_emit_shared(e, t);
    if (through_tile(t)) {
        emit_block(e);
        emit_write(e);
    }
    if (lws > 1)
        clconv_counts_emit_flush_group(e);
}

void clconv_cast_pack_emit(clconv_emit *e, const clconv_task *t, int lws)
{
    emit_shared(e, t, lws);
    for (clconv_tensor tensor = CLCONV_DY; tensor <= CLCONV_W; ++tensor) {
        if (!clconv_cast_packs(t, tensor))
            continue;
        clconv_tiles_emit_get(e, clconv_tensor_name(tensor));
        clconv_cast_read_emit(e, t, tensor);
    }
    emit_entry(e, t, lws);
    if (clconv_cast_pack_sums(t) && !t->finishes_bias)
        emit_bias(e, t, lws);
}

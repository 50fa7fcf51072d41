/*
 * NHWC: a work-item copies some positions of an image, all blocks, 16
 * channels at a time. NCHW: some positions of one block of an image, 16
 * channels by 16 positions at a time, transposed in registers; the last of
 * these squares starts inside the one before it. Where a square or a vector
 * would read past the tensor, elements are read one by one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "panel_dy.h"

#include "entry.h"
#include "integers.h"
#include "operand.h"
#include "panel_pack.h"

#define LANES CLCONV_PANEL_LANES

/* Elements of a work-item: in NCHW so many that its 16 streams of positions
 * are long enough for a CPU to see them coming. */
#define NHWC_PART 8192
#define NCHW_PART 65536

/* Positions whose channels are read before those of the next ones, so that
 * the tensor is read from front to back. */
#define STRIP 8

void clconv_panel_dy_set(const clconv_problem *p, int64_t tile, bool half_type,
                         clconv_panel_dy_blocks *dy)
{
    *dy = (clconv_panel_dy_blocks){
        .tile = tile,
        .half_type = half_type,
        .k_blocks = clconv_divide_up(p->group_k, tile),
        .positions = p->p * p->q,
    };
    dy->block_stride =
        clconv_round_up(p->n * dy->positions * tile, 256) + 5 * LANES;
    int64_t parts = p->layout == CLCONV_NHWC ? dy->positions * p->k / NHWC_PART
                                             : dy->positions * tile / NCHW_PART;
    dy->parts = clconv_max(1, clconv_min(parts, dy->positions / LANES));
    int64_t elements = p->groups * dy->k_blocks * dy->block_stride;
    dy->floats = clconv_round_up(half_type ? elements / 2 : elements, 64);
}

bool clconv_panel_dy_fits(const clconv_problem *p, int64_t tile)
{
    double channels = (double)p->groups *
                      (double)clconv_divide_up(p->group_k, tile) * (double)tile;
    double image = (double)p->p * (double)p->q;
    return image < 0x1p28 && image * (double)p->n * channels < 0x1p56;
}

void clconv_panel_dy_shape(const clconv_panel_dy_blocks *dy,
                           const clconv_problem *p, clconv_shape *s)
{
    clconv_shape_add(s, "groups", p->groups);
    clconv_shape_add(s, "k", p->group_k);
    clconv_shape_add(s, "k_blocks", dy->k_blocks);
    clconv_shape_add(s, "positions", dy->positions);
    clconv_shape_add(s, "dy_block_stride", dy->block_stride);
    clconv_shape_add(s, "dy_parts", dy->parts);
}

void clconv_panel_dy_pass(const clconv_panel_dy_blocks *dy,
                          const clconv_problem *p, const char *entry,
                          int64_t batch, const clconv_shape *s,
                          clconv_pass *pass)
{
    int64_t pieces = p->layout == CLCONV_NHWC ? 1 : p->groups * dy->k_blocks;
    *pass = (clconv_pass){
        .entry = entry,
        .groups = (size_t)(batch * pieces * dy->parts),
        .local = 1,
        .serves = CLCONV_OP_DW,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, CLCONV_DY);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_DY);
    clconv_entry_arg(pass, CLCONV_ARG_BATCH, CLCONV_DY);
    clconv_shape_arg(s, pass);
}

/* ---- Text ------------------------------------------------------------- */

/* The store to fp16 rounds, in a CPU by one instruction: before it a fused
 * cast need only clip, finite values alone (see operand.c), and scale. */
static void emit_scale(clconv_emit *e, const clconv_problem *p)
{
    int cast_log2 = clconv_problem_cast_log2(p, CLCONV_DY);
    clconv_operand_set_limit(e, cast_log2);
    clconv_emit_set_exp2(e, "cast_scale", cast_log2);
    clconv_emit_open(e, "static float16 load_dy16(__global const float *p, "
                        "long i)");
    clconv_emit_line(e, "const float16 v = vload16(0, p + i);");
    clconv_emit_line(e, "int16 bits = as_int16(v) & 0x7fffffff;");
    if (p->overflow != CLCONV_TO_INF)
        clconv_emit_line(e, "bits = select(min(bits, (int16)($limit)), bits, "
                            "bits >= 0x7f800000);");
    clconv_emit_line(e, "bits |= as_int16(v) & (int)0x80000000;");
    clconv_emit_line(e, "return as_float16(bits) * $cast_scale;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_store(clconv_emit *e, bool half_type)
{
    clconv_emit_open(e, "static void store_dy_panel(__global $dy_stored *p, "
                        "long i, float16 v)");
    clconv_emit_line(e, half_type ? "vstore_half16_rte(v, 0, p + i);"
                                  : "vstore16(v, 0, p + i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Up to 16 elements of dy, step apart, which are not past the tensor. */
static void emit_load_few(clconv_emit *e)
{
    clconv_emit_open(e, "static float16 load_dy_few(__global const $dy_given "
                        "*dy, long i, long step, long total)");
    clconv_emit_line(e, "float v[16] = {0.0f};");
    clconv_emit_line(e, "for (int j = 0; j < 16 && i + j * step < total; ++j)");
    clconv_emit_line(e, "    v[j] = load_dy(dy, i + j * step);");
    clconv_emit_line(e, "return vload16(0, v);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- NHWC */

/* 16 channels from i on of count positions. */
static void emit_copy_positions(clconv_emit *e)
{
    clconv_emit_open(e, "static void copy_dy(__global const $dy_given *dy, "
                        "long i, long channels, long total, "
                        "__global $dy_stored *to, long count)");
    clconv_emit_open(e, "for (long j = 0; j < count; ++j)");
    clconv_emit_line(e, "const float16 v = i + 16 <= total ? load_dy16(dy, i) "
                        ": load_dy_few(dy, i, 1, total);");
    clconv_emit_line(e, "store_dy_panel(to, j * $dy_tile, v);");
    clconv_emit_line(e, "i += channels;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All channels of count positions from element i on. */
static void emit_pack_strip(clconv_emit *e)
{
    clconv_emit_open(e, "static void pack_dy_strip(__global const $dy_given "
                        "*dy, long i, long total, __global $dy_stored *panel, "
                        "shape_t shape, long count)");
    clconv_emit_line(e, "const long channels = shape.groups * shape.k;");
    clconv_emit_open(e, "for (long b = 0; b < shape.groups * shape.k_blocks; "
                        "++b)");
    clconv_emit_line(e, "const long k = b % shape.k_blocks * $dy_tile;");
    clconv_emit_line(e, "const long from = i + b / shape.k_blocks * shape.k + "
                        "k;");
    clconv_emit_line(e, "__global $dy_stored *to = panel + b * "
                        "shape.dy_block_stride;");
    clconv_emit_line(e, "for (int v = 0; v < $dy_tile && k + v < shape.k; v += "
                        "16)");
    clconv_emit_line(e, "    copy_dy(dy, from + v, channels, total, to + v, "
                        "count);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_nhwc_body(clconv_emit *e)
{
    clconv_emit_line(e, "const long channels = shape.groups * shape.k;");
    clconv_emit_open(e, "for (long j = first; j < end; j += $strip)");
    clconv_emit_line(e, "pack_dy_strip(dy, (piece * shape.positions + j) * "
                        "channels, total, panels + (piece * shape.positions + "
                        "j) * $dy_tile, shape, min(${strip}L, end - j));");
    clconv_emit_close(e);
}

/* ---- NCHW */

/* Positions i .. i+15 of count channels, step apart; lanes past the last
 * channel repeat it. */
static void emit_pack_square(clconv_emit *e)
{
    clconv_emit_open(e, "static void pack_dy_square(__global const $dy_given "
                        "*dy, long i, long step, int count, "
                        "__global $dy_stored *to)");
    clconv_emit_line(e, "float16 square[16];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 16; ++j)");
    clconv_emit_line(e, "    square[j] = load_dy16(dy, i + min(j, count - 1) * "
                        "step);");
    clconv_emit_line(e, "transpose16(square);");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 16; ++j)");
    clconv_emit_line(e, "    store_dy_panel(to, j * $dy_tile, square[j]);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* count channels, positions of each step apart: fewer than 16 positions, of
 * an image that is so small. */
static void emit_pack_few(clconv_emit *e)
{
    clconv_emit_open(e, "static void pack_dy_few(__global const $dy_given "
                        "*dy, long i, long step, long total, "
                        "__global $dy_stored *to, int positions)");
    clconv_emit_line(e, "for (int j = 0; j < positions; ++j)");
    clconv_emit_line(e, "    store_dy_panel(to, j * $dy_tile, load_dy_few(dy, "
                        "i + j, step, total));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_nchw_body(clconv_emit *e)
{
    clconv_emit_line(e, "const long blocks = shape.groups * shape.k_blocks;");
    clconv_emit_line(e, "const long image = piece / blocks;");
    clconv_emit_line(e, "const long b = piece % blocks;");
    clconv_emit_line(e, "const long k = b % shape.k_blocks * $dy_tile;");
    clconv_emit_line(e, "const long channel = (image * shape.groups + b / "
                        "shape.k_blocks) * shape.k + k;");
    clconv_emit_line(e, "__global $dy_stored *to = panels + b * "
                        "shape.dy_block_stride + image * shape.positions * "
                        "$dy_tile;");
    clconv_emit_open(e, "for (int v = 0; v < $dy_tile && k + v < shape.k; v += "
                        "16)");
    clconv_emit_line(e, "const long from = (channel + v) * shape.positions;");
    clconv_emit_line(e, "const int count = min(16L, shape.k - k - v);");
    clconv_emit_open(e, "if (end - first < 16)");
    clconv_emit_line(e, "pack_dy_few(dy, from, shape.positions, total, to + v, "
                        "end);");
    clconv_emit_line(e, "continue;");
    clconv_emit_close(e);
    clconv_emit_open(e, "for (long j = first; j < end; j += 16)");
    clconv_emit_line(e, "const long at = min(j, end - 16);");
    clconv_emit_line(e, "pack_dy_square(dy, from + at, shape.positions, count, "
                        "to + at * $dy_tile + v);");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_functions(clconv_emit *e, const clconv_task *t,
                           const clconv_panel_dy_blocks *dy)
{
    if (dy->half_type && clconv_operand_is_fused(t, CLCONV_DY))
        emit_scale(e, t->problem);
    else
        clconv_operand_emit_load(e, t, CLCONV_DY, LANES);
    clconv_operand_emit_load(e, t, CLCONV_DY, 1);
    clconv_emit_set(e, "dy_tile", dy->tile);
    clconv_emit_set(e, "strip", STRIP);
    clconv_emit_set_text(e, "dy_stored", dy->half_type ? "half" : "float");
    clconv_emit_set_text(
        e, "dy_given", clconv_operand_is_half(t, CLCONV_DY) ? "half" : "float");
    emit_store(e, dy->half_type);
    emit_load_few(e);
    if (t->problem->layout == CLCONV_NHWC) {
        emit_copy_positions(e);
        emit_pack_strip(e);
        return;
    }
    clconv_emit_part(e, "transpose16");
    emit_pack_square(e);
    emit_pack_few(e);
}

void clconv_panel_dy_emit(clconv_emit *e, const clconv_task *t,
                          const clconv_panel_dy_blocks *dy,
                          const clconv_shape *s, const clconv_pass *pass)
{
    emit_functions(e, t, dy);
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "const long part = get_group_id(0) % shape.dy_parts;");
    clconv_emit_line(e, "const long piece = get_group_id(0) / shape.dy_parts;");
    clconv_emit_line(e, "const long first = shape.positions * part / "
                        "shape.dy_parts;");
    clconv_emit_line(e, "const long end = shape.positions * (part + 1) / "
                        "shape.dy_parts;");
    clconv_emit_line(e, "const long total = batch * shape.groups * shape.k * "
                        "shape.positions;");
    clconv_emit_line(e, "__global $dy_stored *panels = (__global $dy_stored "
                        "*)scratch;");
    if (t->problem->layout == CLCONV_NHWC)
        emit_nhwc_body(e);
    else
        emit_nchw_body(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/*
 * A work-item holds two neighbouring columns of a row. As fp32 they fill
 * sectors of memory together with its neighbours'. As fp16 the four work-items
 * that share a row exchange what they hold of four times 8 columns, so that
 * each stores 16 bytes.
 *
 * The way for all else goes through registers by turning them: one pair of
 * columns at a time, which keeps its text short.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store.h"

#include <stdio.h>

#include "operand.h"
#include "output.h"

/* ---- Which ------------------------------------------------------------ */

typedef enum width {
    EACH,  /* element by element */
    PAIRS, /* fp32: 8 bytes */
    QUADS  /* fp16: 16 bytes */
} width;

/* Are columns neighbours in memory, 8 of them aligned alike? */
static width width_of(const clconv_problem *p, clconv_tensor tensor)
{
    bool whole = p->layout == CLCONV_NHWC && p->group_c % 8 == 0 &&
                 p->alignment % 16 == 0;
    if (!whole)
        return EACH;
    return p->type[tensor] == CLCONV_F16 ? QUADS : PAIRS;
}

static bool is_half(const clconv_problem *p, clconv_tensor tensor)
{
    return p->type[tensor] == CLCONV_F16;
}

/* ---- Functions -------------------------------------------------------- */

/* Two halves in a word, rounded as round_<tensor> does. */
static void emit_half_pair(clconv_emit *e, const clconv_problem *p, int sm)
{
    clconv_emit_part(e, sm >= 80 ? "halves2" : "halves2_sm_75");
    clconv_emit_open(e, "static uint half_pair(float x, float y)");
    if (p->overflow != CLCONV_TO_INF) {
        clconv_emit_line(e, "x = isfinite(x) ? clamp(x, -65504.0f, 65504.0f) : "
                            "x;");
        clconv_emit_line(e, "y = isfinite(y) ? clamp(y, -65504.0f, 65504.0f) : "
                            "y;");
    }
    clconv_emit_line(e, "return halves2(x, y);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* void store_pair(p, row, first, second, pair, beta[, tally]) */
static void emit_store_pair(clconv_emit *e, const clconv_task *t,
                            clconv_tensor tensor)
{
    clconv_output_emit_store(e, t->problem, tensor, 1);
    clconv_emit_line(e,
                     "static void store_pair(__global $stored *p, long row,");
    clconv_emit_line(e, "    long first, long second, float2 pair,");
    clconv_emit_open(e, "    float beta$tally_parameter)");
    clconv_emit_line(e, "if (first >= 0)");
    clconv_emit_line(e, "    store_$tensor(p, row + first, pair.x, "
                        "beta$tally_pass);");
    clconv_emit_line(e, "if (second >= 0)");
    clconv_emit_line(e, "    store_$tensor(p, row + second, pair.y, "
                        "beta$tally_pass);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_wgmma_store_emit_functions(clconv_emit *e, const clconv_task *t,
                                       const clconv_wgmma_tile *c,
                                       const clconv_nest *nest,
                                       const clconv_wgmma_target *to)
{
    const clconv_problem *p = t->problem;
    if (to->partial)
        return;
    emit_store_pair(e, t, nest->c);
    if (is_half(p, nest->c) && !c->products.emulated)
        emit_half_pair(e, p, t->device->nv_sm);
    if (width_of(p, nest->c) == QUADS && !c->products.emulated)
        clconv_emit_part(e, "quad_transpose");
}

/* ---- Rows ------------------------------------------------------------- */

/* Rows of the warpgroup that this work-item has sums of, two a block: long
 * row, -1 if it is not in C; its sums are $sums_of[reg + first]. */
static void open_rows(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < 2 * $blocks_m; ++i)");
    clconv_emit_line(e, "const int first = 2 * (i % 2);");
    clconv_emit_line(e, "const long row = $row_of(&block, &sizes, $group_m * "
                        "warpgroup + 64 * (i / 2) + d_row(lane, first, 0)"
                        "$row_more);");
}

/* The rows and sums of the part-th of the tiles that are stored together; of one
 * alone, as the nest has them. */
static void set_part(clconv_emit *e, const char *output,
                     const clconv_wgmma_tile *c, const clconv_wgmma_target *to,
                     int part)
{
    bool alone = to->together <= 1;
    char sums[32] = "sum[i / 2]", row[32], more[16] = "";
    if (part)
        snprintf(sums, sizeof sums, "sum[i / 2 + %d]",
                 part * (c->group_m / CLCONV_WGMMA_M));
    snprintf(row, sizeof row, alone ? "%s_row" : "%s_part_row", output);
    if (!alone)
        snprintf(more, sizeof more, ", %d", part);
    clconv_emit_set_text(e, "c", output);
    clconv_emit_set_text(e, "sums_of", sums);
    clconv_emit_set_text(e, "row_of", row);
    clconv_emit_set_text(e, "row_more", more);
}

static void emit_column(clconv_emit *e, const char *name, const char *n)
{
    clconv_emit_set_text(e, "column", name);
    clconv_emit_set_text(e, "n", n);
    clconv_emit_line(e, "const long $column = ${c}_column(&block, &sizes, "
                        "$group_n * warpgroup + $n);");
}

/* ---- The fast way ----------------------------------------------------- */

static void emit_quads(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int reg = first; reg < $sums; reg += 16)");
    clconv_emit_line(e, "const float *s = $sums_of + reg;");
    clconv_emit_line(e, "const uint4 words = quad_transpose((uint4)(");
    clconv_emit_line(e, "    half_pair(s[0] * $epilogue, s[1] * $epilogue),");
    clconv_emit_line(e, "    half_pair(s[4] * $epilogue, s[5] * $epilogue),");
    clconv_emit_line(e, "    half_pair(s[8] * $epilogue, s[9] * $epilogue),");
    clconv_emit_line(e, "    half_pair(s[12] * $epilogue, s[13] * $epilogue)), "
                        "lane % 4);");
    emit_column(e, "column", "2 * (reg - first) + 8 * (lane % 4)");
    clconv_emit_line(e, "if (row >= 0 && column >= 0)");
    clconv_emit_line(e, "    *(__global uint4 *)($c + row + column) = words;");
    clconv_emit_close(e);
}

static void open_registers(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int reg = first; reg < $sums; reg += 4)");
    clconv_emit_line(e, "const float *s = $sums_of + reg;");
}

static void emit_pairs(clconv_emit *e)
{
    open_registers(e);
    emit_column(e, "column", "d_column(lane, reg, 0)");
    clconv_emit_line(e, "if (row >= 0 && column >= 0)");
    clconv_emit_line(e, "    *(__global float2 *)($to + row + column) = "
                        "(float2)(s[0] * $epilogue, s[1] * $epilogue);");
    clconv_emit_close(e);
}

static void emit_each(clconv_emit *e, bool half_type)
{
    open_registers(e);
    emit_column(e, "left", "d_column(lane, reg, 0)");
    emit_column(e, "right", "d_column(lane, reg, 0) + 1");
    if (half_type)
        clconv_emit_line(e, "const uint halves = half_pair(s[0] * $epilogue, "
                            "s[1] * $epilogue);");
    clconv_emit_line(e, "if (row >= 0 && left >= 0)");
    clconv_emit_line(e, half_type
                            ? "    ((__global ushort *)$to)[row + left] = "
                              "(ushort)halves;"
                            : "    $to[row + left] = s[0] * $epilogue;");
    clconv_emit_line(e, "if (row >= 0 && right >= 0)");
    clconv_emit_line(e, half_type ? "    ((__global ushort *)$to)[row + right] "
                                    "= (ushort)(halves >> 16);"
                                  : "    $to[row + right] = s[1] * $epilogue;");
    clconv_emit_close(e);
}

static void emit_fast(clconv_emit *e, width w, bool half_type)
{
    open_rows(e);
    if (w == QUADS)
        emit_quads(e);
    else if (w == PAIRS)
        emit_pairs(e);
    else
        emit_each(e, half_type);
    clconv_emit_close(e);
}

/* ---- The other way ---------------------------------------------------- */

/* Registers 4 to the last move to 0, 0 to 3 to the end. */
static void emit_turn(clconv_emit *e)
{
    clconv_emit_line(e, "float kept[4];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 4; ++j)");
    clconv_emit_line(e, "    kept[j] = $sums_of[j];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < $sums - 4; ++j)");
    clconv_emit_line(e, "    $sums_of[j] = $sums_of[j + 4];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 4; ++j)");
    clconv_emit_line(e, "    $sums_of[$sums - 4 + j] = kept[j];");
}

static void emit_slow(clconv_emit *e)
{
    open_rows(e);
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int reg = 0; reg < $sums; reg += 4)");
    emit_column(e, "left", "d_column(lane, reg, 0)");
    emit_column(e, "right", "d_column(lane, reg, 0) + 1");
    clconv_emit_line(e, "const float2 pair = (float2)($sums_of[first], "
                        "$sums_of[first + 1]);");
    clconv_emit_line(e, "if (row >= 0)");
    clconv_emit_line(e, "    store_pair($c, row, left, right, pair, "
                        "beta$tally);");
    emit_turn(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* ---- Sums that are no numbers ----------------------------------------- */

/* By one piece of text for all sums: registers have constant indices. odd has
 * a bit for each. */
void clconv_wgmma_mend_emit(clconv_emit *e)
{
    clconv_emit_line(e, "ulong odd = 0;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $blocks_m * $sums; ++i)");
    clconv_emit_line(e,
                     "    odd |= isfinite(sum[i / $sums][i % $sums]) ? 0ul : "
                     "1ul << i;");
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int j = 0; odd && j < $blocks_m * $sums; ++j)");
    clconv_emit_line(e, "if (!(odd >> j & 1))");
    clconv_emit_line(e, "    continue;");
    clconv_emit_line(e, "const int reg = j % $sums;");
    clconv_emit_line(e,
                     "const float value = dx_sum(dy, w, &block, &sizes, 64 * "
                     "($blocks_m * warpgroup + j / $sums) + d_row(lane, reg, "
                     "0), d_column(lane, reg, 0));");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int i = 0; i < $blocks_m * $sums; ++i)");
    clconv_emit_line(e, "    sum[i / $sums][i % $sums] = i == j ? value : "
                        "sum[i / $sums][i % $sums];");
    clconv_emit_close(e);
}

/* ---- Neighbours of two tiles ------------------------------------------ */

/* Are elements of the same row and column of two tiles neighbours in memory, and
 * aligned together? Then both or none are in dX. */
static bool stores_neighbours(const clconv_problem *p, clconv_tensor tensor,
                              const clconv_wgmma_target *to)
{
    size_t size = is_half(p, tensor) ? 2 : 4;
    return to->together == 2 && p->w % 2 == 0 && p->alignment % (2 * size) == 0;
}

/* $column of the first tile and of the second, blocks of rows further on. */
static void emit_neighbours_at(clconv_emit *e, const char *column, int sum,
                               bool half_type)
{
    clconv_emit_set_text(e, "column", column);
    clconv_emit_set(e, "sum_at", sum);
    clconv_emit_line(e, "if (row >= 0 && $column >= 0)");
    clconv_emit_line(
        e, half_type ? "    *(__global uint *)($to + row + $column) = "
                       "half_pair(s[$sum_at] * $epilogue, next[$sum_at] "
                       "* $epilogue);"
                     : "    *(__global float2 *)($to + row + $column) = "
                       "(float2)(s[$sum_at] * $epilogue, next[$sum_at] * "
                       "$epilogue);");
}

static void emit_neighbours(clconv_emit *e, const clconv_wgmma_tile *c,
                            bool half_type)
{
    clconv_emit_set(e, "next_blocks", c->group_m / CLCONV_WGMMA_M);
    open_rows(e);
    open_registers(e);
    clconv_emit_line(e, "const float *next = sum[i / 2 + $next_blocks] + reg;");
    emit_column(e, "left", "d_column(lane, reg, 0)");
    emit_column(e, "right", "d_column(lane, reg, 0) + 1");
    emit_neighbours_at(e, "left", 0, half_type);
    emit_neighbours_at(e, "right", 1, half_type);
    clconv_emit_close(e);
    clconv_emit_close(e);
}

/* ---- Both ------------------------------------------------------------- */

/* Channels are last: two columns are neighbours if they are of one tap. */
static void emit_partial(clconv_emit *e, const clconv_problem *p,
                         const clconv_wgmma_tile *c,
                         const clconv_wgmma_target *to)
{
    clconv_emit_set_exp2(e, "epilogue", 0);
    clconv_emit_line(e, to->partial);
    set_part(e, "part", c, to, 0);
    clconv_emit_set_text(e, "to", "partial");
    emit_fast(e, p->group_c % 2 ? EACH : PAIRS, false);
}

static void emit_all_slow(clconv_emit *e, const char *output,
                          const clconv_wgmma_tile *c,
                          const clconv_wgmma_target *to)
{
    for (int part = 0; part == 0 || part < to->together; ++part) {
        set_part(e, output, c, to, part);
        emit_slow(e);
    }
}

static void emit_all_fast(clconv_emit *e, const clconv_problem *p,
                          const clconv_nest *nest, const clconv_wgmma_tile *c,
                          const clconv_wgmma_target *to)
{
    bool half_type = is_half(p, nest->c);
    if (stores_neighbours(p, nest->c, to)) {
        set_part(e, clconv_tensor_name(nest->c), c, to, 0);
        emit_neighbours(e, c, half_type);
        return;
    }
    for (int part = 0; part == 0 || part < to->together; ++part) {
        set_part(e, clconv_tensor_name(nest->c), c, to, part);
        emit_fast(e, width_of(p, nest->c), half_type);
    }
}

void clconv_wgmma_store_emit(clconv_emit *e, const clconv_task *t,
                             const clconv_wgmma_tile *c, const clconv_nest *nest,
                             const clconv_wgmma_target *to)
{
    const clconv_problem *p = t->problem;
    const char *output = clconv_tensor_name(nest->c);
    if (to->partial) {
        emit_partial(e, p, c, to);
        return;
    }
    clconv_emit_set_text(e, "c", output);
    if (c->products.emulated) {
        emit_all_slow(e, output, c, to);
        return;
    }
    clconv_emit_set_text(e, "to", output);
    clconv_emit_set_exp2(e, "epilogue",
                         clconv_problem_epilogue_log2(p, nest->c));
    clconv_emit_open(e, is_half(p, nest->c)
                            ? "if (beta == 0.0f && !${c}_counts)"
                            : "if (beta == 0.0f)");
    emit_all_fast(e, p, nest, c, to);
    clconv_emit_else(e);
    emit_all_slow(e, output, c, to);
    clconv_emit_close(e);
}

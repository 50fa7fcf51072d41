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
 * row, -1 if it is not in C; its sums are sum[i / 2][reg + first]. */
static void open_rows(clconv_emit *e)
{
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < 2 * $blocks_m; ++i)");
    clconv_emit_line(e, "const int first = 2 * (i % 2);");
    clconv_emit_line(e, "const long row = ${c}_row(&block, &sizes, $group_m * "
                        "warpgroup + 64 * (i / 2) + d_row(lane, first, 0));");
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
    clconv_emit_line(e, "const float *s = sum[i / 2] + reg;");
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
    clconv_emit_line(e, "const float *s = sum[i / 2] + reg;");
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
    clconv_emit_line(e, "    kept[j] = sum[i / 2][j];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < $sums - 4; ++j)");
    clconv_emit_line(e, "    sum[i / 2][j] = sum[i / 2][j + 4];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 4; ++j)");
    clconv_emit_line(e, "    sum[i / 2][$sums - 4 + j] = kept[j];");
}

static void emit_slow(clconv_emit *e)
{
    open_rows(e);
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int reg = 0; reg < $sums; reg += 4)");
    emit_column(e, "left", "d_column(lane, reg, 0)");
    emit_column(e, "right", "d_column(lane, reg, 0) + 1");
    clconv_emit_line(e, "const float2 pair = (float2)(sum[i / 2][first], "
                        "sum[i / 2][first + 1]);");
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

/* ---- Both ------------------------------------------------------------- */

/* Channels are last: two columns are neighbours if they are of one tap. */
static void emit_partial(clconv_emit *e, const clconv_problem *p, const char *to)
{
    clconv_emit_set_exp2(e, "epilogue", 0);
    clconv_emit_line(e, to);
    clconv_emit_set_text(e, "c", "part");
    clconv_emit_set_text(e, "to", "partial");
    emit_fast(e, p->group_c % 2 ? EACH : PAIRS, false);
}

void clconv_wgmma_store_emit(clconv_emit *e, const clconv_task *t,
                             const clconv_wgmma_tile *c, const clconv_nest *nest,
                             const clconv_wgmma_target *to)
{
    const clconv_problem *p = t->problem;
    if (to->partial) {
        emit_partial(e, p, to->partial);
        return;
    }
    clconv_emit_set_text(e, "c", clconv_tensor_name(nest->c));
    if (c->products.emulated) {
        emit_slow(e);
        return;
    }
    bool half_type = is_half(p, nest->c);
    clconv_emit_set_text(e, "to", clconv_tensor_name(nest->c));
    clconv_emit_set_exp2(e, "epilogue",
                         clconv_problem_epilogue_log2(p, nest->c));
    clconv_emit_open(e, half_type ? "if (beta == 0.0f && !${c}_counts)"
                                  : "if (beta == 0.0f)");
    emit_fast(e, width_of(p, nest->c), half_type);
    clconv_emit_else(e);
    emit_slow(e);
    clconv_emit_close(e);
}

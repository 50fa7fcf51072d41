/*
 * A work-item writes CHANNELS k of a group: in KRSC for one tap and all blocks
 * of channels, which is a copy of whole vectors; in KCRS for one block and all
 * taps, of which 16 at a time are transposed. Elements are counted and rounded
 * where they are stored: each comes there once, beside zeros.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "counts.h"
#include "entry.h"
#include "integers.h"
#include "operand.h"
#include "panel_pack.h"
#include "panel_transpose.h"

#define LANES CLCONV_PANEL_LANES

/* So many streams of reads, and so many vectors one behind the other that are
 * written. 16 take half as long again. */
#define CHANNELS 8

static bool is_counted(const clconv_task *t)
{
    return t->counts & CLCONV_BIT(CLCONV_W);
}

void clconv_panel_pass_weights(const clconv_task *t,
                               const clconv_panel_weights *w,
                               const clconv_shape *s, clconv_pass *pass)
{
    const clconv_problem *p = t->problem;
    int64_t items = p->groups * clconv_divide_up(p->group_k, CHANNELS);
    items *= p->layout == CLCONV_NHWC ? p->r * p->s : w->c_blocks;
    *pass = (clconv_pass){
        .entry = "bwd_data_panel_pack_w",
        .groups = (size_t)items,
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_W);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    if (is_counted(t))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_W);
    clconv_shape_arg(s, pass);
}

/* ---- Text ------------------------------------------------------------- */

/* v as it was read. */
static void emit_store_panel(clconv_emit *e, const clconv_task *t,
                             bool half_type)
{
    clconv_emit_set_text(
        e, "value", clconv_operand_is_fused(t, CLCONV_W) ? "round_w16(v)" : "v");
    clconv_emit_open(e, "static void store_panel(__global $panel *p, long i, "
                        "float16 v$see_parameters)");
    if (is_counted(t)) {
        clconv_emit_line(e, "if (counting)");
        clconv_emit_line(e, "    see_w16(seen, v);");
    }
    clconv_emit_line(e, half_type ? "vstore_half16($value, 0, p + i);"
                                  : "vstore16($value, 0, p + i);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The first count of 16 elements from i on, then zeros. */
static void emit_read_part(clconv_emit *e)
{
    clconv_emit_open(e, "static float16 read_w_part(__global const $given *w, "
                        "long i, long count)");
    clconv_emit_open(e, "if (count >= 16)");
    clconv_emit_line(e, "return read_w16(w, i);");
    clconv_emit_close(e);
    clconv_emit_line(e, "float part[16] = {0.0f};");
    clconv_emit_open(e, "for (int j = 0; j < (int)count; ++j)");
    clconv_emit_line(e, "part[j] = read_w(w, i + j);");
    clconv_emit_close(e);
    clconv_emit_line(e, "return vload16(0, part);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* For k = first .. end-1 the channels of c_block, which lie one behind the
 * other in W: from is the index of channel 0 of k = 0, step leads to the next
 * k. */
static void emit_copy_block(clconv_emit *e)
{
    clconv_emit_open(
        e, "static void copy_block(__global const $given *w, "
           "long from, long step, long channels, "
           "__global $panel *panel, long first, long end$see_parameters)");
    clconv_emit_open(e, "for (long k = first; k < end; ++k)");
    clconv_emit_line(e, "store_panel(panel, k * 16, read_w_part(w, from + k * "
                        "step, channels)$see);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Item -> group, first and end of its k, and $rest, whatever else it counts;
 * the group's panels. */
static void emit_weights_item(clconv_emit *e, const char *rest)
{
    clconv_emit_set_text(e, "rest", rest);
    clconv_emit_line(e, "const long item = get_group_id(0) / $rest;");
    clconv_emit_line(e, "const long rest = get_group_id(0) % $rest;");
    clconv_emit_line(e, "const long k_blocks = (shape.group_k + $channels - 1) "
                        "/ $channels;");
    clconv_emit_line(e, "const long group = item / k_blocks;");
    clconv_emit_line(e, "const long first = item % k_blocks * $channels;");
    clconv_emit_line(e, "const long end = min(first + $channels, "
                        "shape.group_k);");
    clconv_emit_line(e, "const long taps = shape.r * shape.s;");
    clconv_emit_line(e, "const long block = taps * shape.group_k * 16;");
    clconv_emit_line(e, "const long start = group * shape.group_k;");
    clconv_emit_line(e, "__global $panel *panels = (__global $panel *)(scratch "
                        "+ shape.weights) + group * shape.c_blocks * block;");
}

/* KRSC: the tap rest, all channel blocks. */
static void emit_weights_krsc(clconv_emit *e)
{
    emit_weights_item(e, "(shape.r * shape.s)");
    clconv_emit_line(e, "const long step = taps * shape.group_c;");
    clconv_emit_line(e, "const long from = start * step + rest * "
                        "shape.group_c;");
    clconv_emit_line(e, "panels += rest * shape.group_k * 16;");
    clconv_emit_open(e, "for (long i = 0; i < shape.c_blocks; ++i)");
    clconv_emit_line(e, "const long c = i * 16;");
    clconv_emit_line(e, "copy_block(w, from + c, step, shape.group_c - c, "
                        "panels + i * block, first, end$see_item);");
    clconv_emit_close(e);
}

/* The 16 channels or fewer of count taps of a few k, one by one; from: of the
 * first of each, k_step between k. */
static void emit_pick_taps(clconv_emit *e)
{
    clconv_emit_line(e, "static void pick_taps(__global const $given *w, long "
                        "from, long k_step, int k_count,");
    clconv_emit_line(e, "    long taps, int count, long channels, __global "
                        "$panel *panel,");
    clconv_emit_open(e, "    long step$see_parameters)");
    clconv_emit_open(e, "for (int i = 0; i < count * k_count; ++i)");
    clconv_emit_line(e, "const int t = i / k_count;");
    clconv_emit_line(e, "const int k = i % k_count;");
    clconv_emit_line(e, "float part[16] = {0.0f};");
    clconv_emit_open(e, "for (int c = 0; c < 16 && c < (int)channels; ++c)");
    clconv_emit_line(e, "part[c] = read_w(w, from + k * k_step + c * taps + "
                        "t);");
    clconv_emit_close(e);
    clconv_emit_line(e, "store_panel(panel, t * step + k * 16, vload16(0, "
                        "part)$see);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* The same of 16 channels, where 16 elements can be read from the first tap
 * of each. All are transposed before a panel is written: its vectors for
 * neighbouring k lie one behind the other, those of taps far apart. */
static void emit_turn_taps(clconv_emit *e, const clconv_task *t)
{
    bool half_type = clconv_operand_is_half(t, CLCONV_W);
    clconv_panel_emit_transpose(e, "transpose_w",
                                half_type ? "__global const half"
                                          : "__global const float",
                                half_type ? "vload_half16(0, " : "vload16(0, ");
    clconv_emit_line(e, "static void turn_taps(__global const $given *w, long "
                        "from, long k_step, int k_count,");
    clconv_emit_line(e, "    long taps, int count, __global $panel *panel,");
    clconv_emit_open(e, "    long step$see_parameters)");
    clconv_emit_line(e, "float turned[$channels * 256];");
    clconv_emit_line(e, "for (int k = 0; k < k_count; ++k)");
    clconv_emit_line(e, "    transpose_w(w + from + k * k_step, taps, turned + "
                        "k * 256, 16);");
    clconv_emit_open(e, "for (int t = 0; t < count; ++t)");
    clconv_emit_open(e, "for (int k = 0; k < k_count; ++k)");
    clconv_emit_line(e, "store_panel(panel, t * step + k * 16, vload16(k * 16 "
                        "+ t, turned)$see);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* All taps, 16 at a time; total: elements of W. */
static void emit_copy_taps(clconv_emit *e)
{
    clconv_emit_line(e, "static void copy_taps(__global const $given *w, long "
                        "from, long k_step, int k_count,");
    clconv_emit_line(e, "    long taps, long channels, long total, __global "
                        "$panel *panel,");
    clconv_emit_open(e, "    long step$see_parameters)");
    clconv_emit_open(e, "for (long t = 0; t < taps; t += 16)");
    clconv_emit_line(e, "const int count = min(taps - t, 16L);");
    clconv_emit_line(e, "const long last = from + (k_count - 1) * k_step + 15 "
                        "* taps + t;");
    clconv_emit_line(e, "if (channels >= 16 && last + 16 <= total)");
    clconv_emit_line(e, "    turn_taps(w, from + t, k_step, k_count, taps, "
                        "count, panel + t * step, step$see);");
    clconv_emit_line(e, "else");
    clconv_emit_line(e, "    pick_taps(w, from + t, k_step, k_count, taps, "
                        "count, channels, panel + t * step, step$see);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* KCRS: the channel block rest, all taps. With one tap W is KRSC too. */
static void emit_weights_kcrs(clconv_emit *e)
{
    emit_weights_item(e, "shape.c_blocks");
    clconv_emit_line(e, "const long c = rest * 16;");
    clconv_emit_line(e, "const long channels = shape.group_c - c;");
    clconv_emit_line(e, "const long total = shape.groups * shape.group_k * "
                        "shape.group_c * taps;");
    clconv_emit_line(e, "panels += rest * block;");
    clconv_emit_open(e, "if (taps == 1)");
    clconv_emit_line(e, "copy_block(w, start * shape.group_c + c, "
                        "shape.group_c, channels, panels, first, "
                        "end$see_item);");
    clconv_emit_else(e);
    clconv_emit_line(e, "const long k_step = shape.group_c * taps;");
    clconv_emit_line(e, "const long from = (start + first) * k_step + c * "
                        "taps;");
    clconv_emit_line(e, "copy_taps(w, from, k_step, end - first, taps, "
                        "channels, total, panels + first * 16, shape.group_k * "
                        "16$see_item);");
    clconv_emit_close(e);
}

static void set_holes(clconv_emit *e, const clconv_task *t, bool half_type)
{
    bool counted = is_counted(t);
    clconv_emit_set_text(
        e, "given", clconv_operand_is_half(t, CLCONV_W) ? "half" : "float");
    clconv_emit_set_text(e, "panel", half_type ? "half" : "float");
    clconv_emit_set(e, "channels", CHANNELS);
    clconv_emit_set_text(e, "see_parameters",
                         counted ? ", int counting, seen16_t *seen" : "");
    clconv_emit_set_text(e, "see", counted ? ", counting, seen" : "");
    clconv_emit_set_text(e, "see_item", counted ? ", counting, &seen" : "");
}

static void emit_functions(clconv_emit *e, const clconv_task *t, bool half_type)
{
    clconv_operand_emit_read(e, t, CLCONV_W, LANES);
    clconv_operand_emit_read(e, t, CLCONV_W, 1);
    if (clconv_operand_is_fused(t, CLCONV_W))
        clconv_operand_emit_round(e, t->problem, CLCONV_W, LANES);
    if (is_counted(t)) {
        clconv_counts_emit_seen(e, LANES);
        clconv_counts_emit_see(e, t->problem, CLCONV_W, LANES);
    }
    set_holes(e, t, half_type);
    emit_store_panel(e, t, half_type);
    emit_read_part(e);
    emit_copy_block(e);
    if (t->problem->layout == CLCONV_NHWC)
        return;
    emit_pick_taps(e);
    emit_turn_taps(e, t);
    emit_copy_taps(e);
}

void clconv_panel_emit_weights(clconv_emit *e, const clconv_task *t,
                               const clconv_panel_weights *w,
                               const clconv_shape *s, const clconv_pass *pass)
{
    emit_functions(e, t, w->half_type);
    clconv_shape_open(e, t, pass, s);
    if (is_counted(t)) {
        clconv_emit_line(e, "const int counting = w_counts != 0;");
        clconv_emit_line(e, "seen16_t seen = { 0 };");
    }
    if (t->problem->layout == CLCONV_NHWC)
        emit_weights_krsc(e);
    else
        emit_weights_kcrs(e);
    if (is_counted(t)) {
        clconv_emit_open(e, "if (counting)");
        clconv_emit_line(e, "counts_t tally = { 0 };");
        clconv_emit_line(e, "fold16(&tally, &seen);");
        clconv_emit_line(e, "counts_flush(w_counts, &tally);");
        clconv_emit_close(e);
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

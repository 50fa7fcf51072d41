/*
 * The second pass of bwd_fused: a work-group adds a few sums of dW or dbias over
 * all work-groups of a group of channels, a share of them each work-item.
 * Sums of dW lie as registers had them: [product][register][work-item]. A
 * product's columns are k of its last tap, then of the one before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "entry.h"
#include "fused.h"
#include "integers.h"
#include "nest.h"
#include "output.h"

#define SUMS 32 /* of a work-group */
#define SHARES 8
#define ATTRIBUTE "__attribute__((reqd_work_group_size(256, 1, 1)))"

static void add_output(const clconv_task *t, clconv_pass *pass,
                       clconv_tensor tensor)
{
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, tensor);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, tensor);
    if (clconv_output_is_counted(t->problem, tensor))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, tensor);
}

clconv_pass clconv_fused_sum_pass(const clconv_task *t, const clconv_fused *f)
{
    clconv_pass pass = {
        .entry = "bwd_fused_sum",
        .local = SHARES * SUMS,
        .serves = CLCONV_OP_DW,
    };
    pass.groups = (size_t)clconv_divide_up(
        t->problem->groups * clconv_fused_sums(f), SUMS);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    add_output(t, &pass, CLCONV_DW);
    if (t->bias) {
        pass.serves |= CLCONV_OP_DB;
        add_output(t, &pass, CLCONV_DB);
    }
    clconv_entry_arg(&pass, CLCONV_ARG_SIZES, CLCONV_DW);
    return pass;
}

/* ---- Text ------------------------------------------------------------- */

/* Whose element the at-th sum is: the index, -1 if of none. */
static void emit_places(clconv_emit *e)
{
    clconv_nest_open_function(e, "long dw_place(const sizes_t *s, int group, "
                                 "int at)");
    clconv_emit_line(e, "const int lane = at % 128;");
    clconv_emit_line(e, "const int reg = at / 128 % $dw_registers;");
    clconv_emit_line(e, "const int product = at / (128 * $dw_registers);");
    clconv_emit_line(e, "const int column = d_column(lane, reg, 0);");
    clconv_emit_line(e, "const int c = d_row(lane, reg, 0);");
    clconv_emit_line(e, "const int k = column % $k_line;");
    clconv_emit_line(e,
                     "const int tap = product * $wide + $wide - 1 - column / "
                     "$k_line;");
    clconv_emit_line(e,
                     "if (product * $wide >= $taps || c >= s->group_c || k >= "
                     "s->group_k)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "return (group * s->group_k + k) * s->w_image + c * "
                        "s->w_channel + tap / $s * s->w_row + tap % $s * "
                        "s->w_column;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_total(clconv_emit *e)
{
    clconv_emit_line(e, "__local float shares[256];");
    clconv_emit_line(e, "const int item = (int)get_local_id(0);");
    clconv_emit_line(
        e, "const long number = get_group_id(0) * (long)$group_sums + "
           "item % $group_sums;");
    clconv_emit_line(e, "const int group = (int)(number / $part_sums);");
    clconv_emit_line(e, "const int at = (int)(number % $part_sums);");
    clconv_emit_line(e, "float total = 0.0f;");
    clconv_emit_line(e, "const int inside = group < sizes.groups;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $parts; i += $shares)");
    clconv_emit_line(e, "const int part = i + item / $group_sums;");
    clconv_emit_line(e,
                     "const long from = ((long)part * sizes.groups + group) * "
                     "$part_sums + at;");
    clconv_emit_line(e, "total += inside && part < $parts ? scratch[from] : "
                        "0.0f;");
    clconv_emit_close(e);
    clconv_emit_line(e, "shares[item] = total;");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "if (item >= $group_sums || !inside)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "for (int i = 1; i < $shares; ++i)");
    clconv_emit_line(e, "    total += shares[i * $group_sums + item];");
}

static void emit_dw(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e, "if (at < $dw_sums)");
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    clconv_emit_line(e, "const long to = dw_place(&sizes, group, at);");
    clconv_emit_line(e, "if (dw && to >= 0)");
    clconv_emit_line(e, t->bias ? "    store_dw(dw, to, total, beta_dw$tally);"
                                : "    store_dw(dw, to, total, beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

static void emit_db(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_open(e, "if (db && at >= $dw_sums && at - $dw_sums < "
                        "sizes.group_k)");
    clconv_output_emit_tally(e, t->problem, CLCONV_DB);
    clconv_emit_line(e, "store_db(db, group * sizes.group_k + at - $dw_sums, "
                        "total, beta_db$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DB);
    clconv_emit_close(e);
}

void clconv_fused_emit_sum(clconv_emit *e, const clconv_task *t,
                           const clconv_fused *f)
{
    clconv_pass pass = clconv_fused_sum_pass(t, f);
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    if (t->bias)
        clconv_output_emit_store(e, t->problem, CLCONV_DB, 1);
    clconv_emit_set(e, "group_sums", SUMS);
    clconv_emit_set(e, "shares", SHARES);
    emit_places(e);
    clconv_entry_open(e, t, &pass, ATTRIBUTE);
    emit_total(e);
    emit_dw(e, t);
    if (t->bias)
        emit_db(e, t);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

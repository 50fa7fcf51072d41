/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bias_sum.h"

#include "entry.h"
#include "output.h"

void clconv_bias_sum_add(const clconv_task *t, clconv_pass *pass)
{
    if (!t->finishes_bias)
        return;
    pass->serves |= CLCONV_OP_DB;
    pass->groups += (size_t)t->problem->k;
    clconv_entry_arg(pass, CLCONV_ARG_BIAS_SUMS, CLCONV_DB);
    clconv_entry_arg(pass, CLCONV_ARG_TENSOR, CLCONV_DB);
    clconv_entry_arg(pass, CLCONV_ARG_BETA, CLCONV_DB);
    if (clconv_output_is_counted(t->problem, CLCONV_DB))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, CLCONV_DB);
}

/* Sums of 64 partial sums are added to the work-item's total. */
static void emit_share(clconv_emit *e, int items)
{
    clconv_emit_set(e, "bias_items", items);
    clconv_emit_set(e, "bias_block", (int64_t)64 * items);
    clconv_emit_line(e, "static float bias_share(__global const float *sums, "
                        "int count, int run,");
    clconv_emit_open(e, "    int channels, int k)");
    clconv_emit_line(e, "float total = 0.0f;");
    clconv_emit_open(e, "for (int i = (int)get_local_id(0); i < count;)");
    clconv_emit_line(e, "float sum = 0.0f;");
    clconv_emit_line(e, "const int end = min(count, i + $bias_block);");
    clconv_emit_line(e, "for (; i < end; i += $bias_items)");
    clconv_emit_line(e, "    sum += sums[((long)(i / run) * channels + k) * "
                        "run + i % run];");
    clconv_emit_line(e, "total += sum;");
    clconv_emit_close(e);
    clconv_emit_line(e, "return total;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* One work-item does it all: a tree would take a barrier a level, of every
 * work-group that there is. */
static void emit_total(clconv_emit *e)
{
    clconv_emit_open(e,
                     "static float bias_total(__local const float4 *shares)");
    clconv_emit_line(e, "float4 sum = 0.0f;");
    clconv_emit_line(e, "for (int i = 0; i < $bias_items / 4; ++i)");
    clconv_emit_line(e, "    sum += shares[i];");
    clconv_emit_line(e, "return (sum.x + sum.y) + (sum.z + sum.w);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_bias_sum_emit(clconv_emit *e, int items)
{
    emit_share(e, items);
    if (items > 1)
        emit_total(e);
}

void clconv_bias_sum_emit_functions(clconv_emit *e, const clconv_task *t,
                                    int items)
{
    if (!t->finishes_bias)
        return;
    clconv_bias_sum_emit(e, items);
    clconv_output_emit_store(e, t->problem, CLCONV_DB, 1);
}

/* The barrier is for all work-groups: PoCL 3.1 miscompiles that of some. */
static void emit_channel(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "__local float4 bias_shares[$bias_items / 4];");
    clconv_emit_line(e, "const int k = (int)get_group_id(0);");
    clconv_emit_line(e, "const int bias_wanted = db && k < sizes.k;");
    clconv_emit_line(e, "((__local float *)bias_shares)[get_local_id(0)] = "
                        "bias_share(bias_sums, bias_wanted ? bias_count : 0, "
                        "bias_run, sizes.k, k);");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "if (bias_wanted && get_local_id(0) == 0)");
    clconv_output_emit_tally(e, t->problem, CLCONV_DB);
    clconv_emit_line(e, "store_db(db, k, bias_total(bias_shares), "
                        "beta_db$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DB);
    clconv_emit_close(e);
}

void clconv_bias_sum_emit_groups(clconv_emit *e, const clconv_task *t)
{
    bool along = t->finishes_bias;
    if (along)
        emit_channel(e, t);
    clconv_emit_set_text(e, "group",
                         along ? "((long)k - sizes.k)" : "get_group_id(0)");
    clconv_emit_set_text(
        e, "inside", along ? "dw && k >= sizes.k && i < count" : "i < count");
    clconv_emit_set_text(e, "beta_dw", along ? "beta_dw" : "beta");
}

/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "strip_sum.h"

#include "entry.h"
#include "integers.h"
#include "output.h"

/* Elements of dW side by side. */
#define WIDTH 16

clconv_pass clconv_strip_sum_pass(const clconv_task *t, const clconv_shape *s,
                                  const char *entry, int local)
{
    int64_t elements = clconv_problem_elements(t->problem, CLCONV_DW);
    clconv_pass pass = {.entry = entry, .serves = CLCONV_OP_DW};
    pass.local = (size_t)local;
    pass.groups = (size_t)clconv_divide_up(elements, WIDTH);
    clconv_entry_arg(&pass, CLCONV_ARG_SCRATCH, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_TENSOR, CLCONV_DW);
    clconv_entry_arg(&pass, CLCONV_ARG_BETA, CLCONV_DW);
    if (clconv_output_is_counted(t->problem, CLCONV_DW))
        clconv_entry_arg(&pass, CLCONV_ARG_COUNTS, CLCONV_DW);
    clconv_shape_arg(s, &pass);
    return pass;
}

/* The parts of element i that the work-item's row adds -> total. */
static void emit_total(clconv_emit *e)
{
    clconv_emit_line(e, "const int id = get_local_id(0);");
    clconv_emit_line(e, "const long i = get_group_id(0) * (long)$sum_width + "
                        "id % $sum_width;");
    clconv_emit_line(e, "const int parts = i < shape.elements ? shape.parts : "
                        "0;");
    clconv_emit_line(e, "float total = 0.0f;");
    clconv_emit_line(e, "#pragma unroll 4");
    clconv_emit_line(e, "for (int part = id / $sum_width; part < parts; part "
                        "+= $sum_local / $sum_width)");
    clconv_emit_line(e, "    total += scratch[part * shape.elements + i];");
}

void clconv_strip_emit_sum(clconv_emit *e, const clconv_task *t,
                           const clconv_pass *pass, const clconv_shape *s)
{
    clconv_output_emit_store(e, t->problem, CLCONV_DW, 1);
    clconv_emit_set(e, "sum_width", WIDTH);
    clconv_emit_set(e, "sum_local", (int64_t)pass->local);
    clconv_shape_open(e, t, pass, s);
    clconv_emit_line(e, "__local float shared[$sum_local];");
    clconv_output_emit_tally(e, t->problem, CLCONV_DW);
    emit_total(e);
    clconv_emit_line(e, "shared[id] = total;");
    clconv_emit_open(e, "for (int active = $sum_local / 2; active >= "
                        "$sum_width; active /= 2)");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_line(e, "if (id < active)");
    clconv_emit_line(e, "    shared[id] += shared[id + active];");
    clconv_emit_close(e);
    clconv_emit_line(e, "if (id < $sum_width && i < shape.elements)");
    clconv_emit_line(e, "    store_dw(dw, i, shared[id], beta$tally);");
    clconv_output_emit_flush(e, t->problem, CLCONV_DW);
    clconv_emit_close(e);
}

/*
 * For one k, a c_block's run of tile_c * R * S weights lies one behind the
 * other in W too: packing is a copy, in vectors of which the last ends with
 * the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_weights.h"

#include "entry.h"
#include "integers.h"
#include "operand.h"
#include "tile_count.h"
#include "tile_pack.h"

#define LANES CLCONV_TILE_LANES

/* Runs that a work-item copies; weights that it counts, of as many k. */
#define RUNS 32
#define COUNTED 256

/* Blocks whose weights one work-item counts. */
static int64_t blocks_counted(int64_t run)
{
    int64_t blocks = COUNTED / run;
    return blocks > 1 ? blocks : 1;
}

void clconv_tile_weights_shape(const clconv_task *t, int64_t run,
                               clconv_shape *s)
{
    if (clconv_tile_is_counted(t, CLCONV_W))
        clconv_shape_add(s, "w_counted", blocks_counted(run));
}

void clconv_tile_weights_pass(const clconv_task *t, int64_t c_blocks,
                              const clconv_shape *s, clconv_pass *pass)
{
    const clconv_problem *p = t->problem;
    int64_t items = clconv_divide_up(p->group_k, RUNS);
    *pass = (clconv_pass){
        .entry = "bwd_data_tile_pack_w",
        .groups = (size_t)(p->groups * c_blocks * items),
        .local = 1,
        .serves = CLCONV_OP_DX,
    };
    clconv_entry_arg(pass, CLCONV_ARG_OPERAND, CLCONV_W);
    clconv_tile_count_arg(t, CLCONV_W, pass);
    clconv_entry_arg(pass, CLCONV_ARG_SCRATCH, CLCONV_W);
    clconv_shape_arg(s, pass);
}

/* count weights from element i on; a vector may read past them, but not past
 * total, the end of W. */
static void emit_copy_run(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_set_text(
        e, "given", clconv_operand_is_half(t, CLCONV_W) ? "half" : "float");
    clconv_emit_open(e,
                     "static void copy_run(__global const $given *w, long i, "
                     "long total, __global float *to, int count)");
    clconv_emit_line(e, "const int last = count - 16;");
    clconv_emit_open(e, "for (int j = 0; j < last; j += 16)");
    clconv_emit_line(e, "vstore16(load_w16(w, i + j), 0, to + j);");
    clconv_emit_close(e);
    clconv_emit_open(e, "if (last >= 0)");
    clconv_emit_line(e, "vstore16(load_w16(w, i + last), 0, to + last);");
    clconv_emit_line(e, "return;");
    clconv_emit_close(e);
    clconv_emit_line(e, "float run[16];");
    clconv_emit_open(e, "if (i + 16 <= total)");
    clconv_emit_line(e, "vstore16(load_w16(w, i), 0, run);");
    clconv_emit_else(e);
    clconv_emit_open(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, "run[j] = load_w(w, i + j);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_open(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, "to[j] = run[j];");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* $runs values of k of a block. */
static void emit_place(clconv_emit *e)
{
    clconv_emit_line(e, "const long items = (shape.group_k + $runs - 1) / "
                        "$runs;");
    clconv_emit_line(e, "const long block = get_group_id(0) / items;");
    clconv_emit_line(e, "const long first = get_group_id(0) % items * $runs;");
    clconv_emit_line(e, "const long end = min(first + $runs, shape.group_k);");
    clconv_emit_line(e, "const long group = block / shape.c_blocks;");
    clconv_emit_line(e, "const long c = block % shape.c_blocks * $tile_c;");
    clconv_emit_line(e, "const int count = min($tile_c, (int)(shape.group_c - "
                        "c)) * shape.filter;");
}

/* Of so many blocks, the weights of one k lie one behind the other. */
static void emit_count(clconv_emit *e)
{
    clconv_emit_line(e, "const bool begins_run = block % shape.c_blocks % "
                        "shape.w_counted == 0;");
    clconv_tile_count_open(e, CLCONV_W);
    clconv_emit_line(e, "const long columns = min(shape.w_counted * $tile_c, "
                        "shape.group_c - c) * shape.filter;");
    clconv_emit_open(e, "for (long k = first; k < end; ++k)");
    clconv_emit_line(e, "const long from = ((group * shape.group_k + k) * "
                        "shape.group_c + c) * shape.filter;");
    clconv_emit_line(e, "see_w_run(&seen, w, from, from + columns, total);");
    clconv_emit_close(e);
    clconv_tile_count_close(e, CLCONV_W);
}

void clconv_tile_weights_emit(clconv_emit *e, const clconv_task *t,
                              const clconv_shape *s, const clconv_pass *pass)
{
    clconv_emit_set(e, "runs", RUNS);
    clconv_operand_emit_load(e, t, CLCONV_W, LANES);
    clconv_operand_emit_load(e, t, CLCONV_W, 1);
    emit_copy_run(e, t);
    if (clconv_tile_is_counted(t, CLCONV_W))
        clconv_tile_count_emit(e, t, CLCONV_W);
    clconv_shape_open(e, t, pass, s);
    emit_place(e);
    clconv_emit_line(e, "const long total = shape.groups * shape.group_k * "
                        "shape.group_c * shape.filter;");
    if (clconv_tile_is_counted(t, CLCONV_W))
        emit_count(e);
    clconv_emit_open(e, "for (long k = first; k < end; ++k)");
    clconv_emit_line(e, "const long from = ((group * shape.group_k + k) * "
                        "shape.group_c + c) * shape.filter;");
    clconv_emit_line(e, "__global float *to = scratch + shape.weights + (block "
                        "* shape.group_k + k) * shape.run;");
    clconv_emit_line(e, "copy_run(w, from, total, to, count);");
    clconv_emit_open(e, "for (int i = count; i < shape.run; ++i)");
    clconv_emit_line(e, "to[i] = 0.0f;");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

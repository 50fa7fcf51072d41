/*
 * Work-items take elements, or vectors of eight, in the order that they have
 * in memory. A vector is moved whole where its first and last element exist
 * and are seven apart within one row; at borders, across rows, and where
 * filter or stride spread neighbours out, the same text takes its elements
 * one by one. vload8 asks only for the element's alignment, so padding may
 * shift rows freely.
 *
 * An fp16 operand moves as bits; an fp32 one is rounded on the way, after
 * which its store as half is exact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gemm_stage.h"

#include "operand.h"

static void set_holes(clconv_emit *e, const clconv_task *t,
                      const clconv_stage *s)
{
    bool half_type = clconv_operand_is_half(t, s->tensor);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(s->tensor));
    clconv_emit_set_text(e, "stored", half_type ? "half" : "float");
    clconv_emit_set_text(e, "tile", s->name);
    clconv_emit_set(e, "rows", s->rows);
    clconv_emit_set(e, "row_vectors", s->rows / CLCONV_STAGE_VECTOR);
    clconv_emit_set_text(e, "row_step", s->along_k ? "" : " + j");
    clconv_emit_set_text(e, "k_step", s->along_k ? " + j" : "");
    clconv_emit_set_text(e, "row_last", s->along_k ? "" : " + 7");
    clconv_emit_set_text(e, "k_last", s->along_k ? " + 7" : "");
}

/* Inlined, so that a compiler need not put the sizes, which are passed by
 * pointer, in memory. */
static void open_function(clconv_emit *e, const char *head, const char *tail)
{
    clconv_emit_line(e, "__attribute__((always_inline))");
    clconv_emit_line(e, head);
    clconv_emit_line(e, "             const block_t *block, "
                        "const sizes_t *sizes,");
    clconv_emit_open(e, tail);
}

static void emit_one(clconv_emit *e, bool half_type)
{
    open_function(e,
                  "void stage_${tile}_one(__local ushort *tile, "
                  "__global const $stored *$operand,",
                  "             int k0, int row, int k)");
    clconv_emit_line(e, "long at = ${operand}_at(block, sizes, row, k0 + k);");
    if (half_type) {
        clconv_emit_line(e, "__global const ushort *bits = "
                            "(__global const ushort *)$operand;");
        clconv_emit_line(e, "tile[row * $pitch + k] = "
                            "at < 0 ? (ushort)0 : bits[at];");
    } else {
        clconv_emit_line(e, "float value = at < 0 ? 0.0f : "
                            "load_$operand($operand, at);");
        clconv_emit_line(e, "vstore_half(value, row * $pitch + k, "
                            "(__local half *)tile);");
    }
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Along k the eight lie side by side in the tile as well; pitch and k keep
 * them on 16 bytes. */
static void emit_vector_along_k(clconv_emit *e, bool half_type)
{
    if (half_type)
        clconv_emit_line(e, "*(__local ushort8 *)(tile + row * $pitch + k) = "
                            "vload8(0, (__global const ushort *)$operand + "
                            "first);");
    else
        clconv_emit_line(e, "vstore_half8(load_${operand}8($operand, first), "
                            "0, (__local half *)tile + row * $pitch + k);");
}

/* Along the rows they go to eight rows of the tile. */
static void emit_vector_along_rows(clconv_emit *e, bool half_type)
{
    clconv_emit_line(e, half_type
                            ? "ushort8 values = vload8(0, (__global const "
                              "ushort *)$operand + first);"
                            : "float8 values = load_${operand}8($operand, "
                              "first);");
    for (int j = 0; j < CLCONV_STAGE_VECTOR; ++j) {
        clconv_emit_set(e, "j", j);
        clconv_emit_line(e, half_type ? "tile[(row + $j) * $pitch + k] = "
                                        "values.s$j;"
                                      : "vstore_half(values.s$j, (row + $j) * "
                                        "$pitch + k, (__local half *)tile);");
    }
}

static void emit_vectors(clconv_emit *e, const clconv_stage *s, bool half_type)
{
    clconv_emit_open(e, "for (int i = item; i < $rows * $tile_k / 8; "
                        "i += $work_items)");
    clconv_emit_line(e, s->along_k ? "int row = i / ($tile_k / 8), "
                                     "k = i % ($tile_k / 8) * 8;"
                                   : "int row = i % $row_vectors * 8, "
                                     "k = i / $row_vectors;");
    clconv_emit_line(e, "long first = ${operand}_at(block, sizes, row, "
                        "k0 + k);");
    clconv_emit_line(e, "long last = ${operand}_at(block, sizes, "
                        "row$row_last, k0 + k$k_last);");
    clconv_emit_open(e, "if (first >= 0 && last == first + 7 && "
                        "${operand}_run(block, sizes, row, k0 + k))");
    if (s->along_k)
        emit_vector_along_k(e, half_type);
    else
        emit_vector_along_rows(e, half_type);
    clconv_emit_else(e);
    clconv_emit_line(e, "for (int j = 0; j < 8; ++j)");
    clconv_emit_line(e, "    stage_${tile}_one(tile, $operand, block, sizes, "
                        "k0, row$row_step, k$k_step);");
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_scalars(clconv_emit *e, const clconv_stage *s)
{
    clconv_emit_line(e, "for (int i = item; i < $rows * $tile_k; "
                        "i += $work_items)");
    clconv_emit_line(e, "    stage_${tile}_one(tile, $operand, block, sizes, "
                        "k0,");
    clconv_emit_line(e, s->along_k ? "        i / $tile_k, i % $tile_k);"
                                   : "        i % $rows, i / $rows);");
}

void clconv_stage_emit(clconv_emit *e, const clconv_task *t,
                       const clconv_stage *s, bool vector)
{
    bool half_type = clconv_operand_is_half(t, s->tensor);
    if (!half_type)
        clconv_operand_emit_load(e, t, s->tensor, 1);
    if (!half_type && vector)
        clconv_operand_emit_load(e, t, s->tensor, CLCONV_STAGE_VECTOR);
    set_holes(e, t, s);
    emit_one(e, half_type);
    open_function(e,
                  "void stage_$tile(__local ushort *tile, "
                  "__global const $stored *$operand,",
                  "             int k0, int item)");
    if (vector)
        emit_vectors(e, s, half_type);
    else
        emit_scalars(e, s);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

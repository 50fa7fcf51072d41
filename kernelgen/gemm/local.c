/*
 * One step of a work-group, tile_k terms, by way of registers (copy=registers):
 *
 *     fetch the next step's elements into registers
 *     sum += tile_a * tile_b
 *     put: registers -> the other two tiles in local memory
 *     barrier
 *
 * so that global memory answers while the work-group multiplies. With
 * copy=async nothing waits in registers; of each operand there are as many
 * tiles as wanted, used in turn:
 *
 *     wait for the step's tiles, barrier
 *     start copying the tiles of the step that is tiles - 1 ahead
 *     sum += tile_a * tile_b
 *
 * Local memory holds the spots of CLCONV_LOCAL_TERMS terms, a ring: when one
 * half has been used, the items replace it by the terms after the other half,
 * all at once, for a few work-items with long divisions would keep the others
 * waiting.
 *
 * A work-item's rows and columns come in groups of four, which are read from
 * the tiles as one vector; the groups of neighbouring work-items lie side by
 * side, those of 32 work-items in a block of 4 x 8. The sums are vectors along
 * the direction in which C is dense.
 *
 * No chain of additions is longer than CHAIN terms: then sum joins out, an
 * array, and starts again from zero. The array is in memory, not registers,
 * since the loop that stores it indexes it, so totals cost no registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "local.h"

#define VEC CLCONV_LOCAL_VECTOR

/* Terms summed on their own, a multiple of every tile_k. */
#define CHAIN (CLCONV_LOCAL_TERMS / 2)

static clconv_local_stage stage_of(const clconv_task *t,
                                   const clconv_nest_operand *o,
                                   const char *name, int rows)
{
    const int *values = t->values;
    bool quads = values[CLCONV_LOCAL_STAGING] == CLCONV_LOCAL_STAGING_VECTOR &&
                 o->quad.whole;
    bool half_type = !o->prepared && clconv_operand_is_half(t, o->tensor);
    return (clconv_local_stage){
        .operand = o,
        .name = name,
        .rows = rows,
        .tile_k = values[CLCONV_LOCAL_TILE_K],
        .items = clconv_local_items(values),
        .width = quads ? VEC : 1,
        .aligned = o->prepared ||
                   t->problem->alignment % (half_type ? 2 * VEC : 4 * VEC) == 0,
        .half_tile = clconv_local_is_half(values),
        .tiles = values[CLCONV_LOCAL_TILES],
        .async = clconv_local_is_async(values),
    };
}

static clconv_local_stage stage_a(const clconv_task *t, const clconv_nest *nest)
{
    return stage_of(t, &nest->a, "a", t->values[CLCONV_LOCAL_TILE_M]);
}

static clconv_local_stage stage_b(const clconv_task *t, const clconv_nest *nest)
{
    return stage_of(t, &nest->b, "b", t->values[CLCONV_LOCAL_TILE_N]);
}

/* The sums of a work-item: lines of vectors. */
static void set_holes(clconv_emit *e, const clconv_task *t,
                      const clconv_nest *nest)
{
    const int *values = t->values;
    int reg_m = values[CLCONV_LOCAL_REG_M], reg_n = values[CLCONV_LOCAL_REG_N];
    int items_n = values[CLCONV_LOCAL_TILE_N] / reg_n;
    bool half_tile = clconv_local_is_half(values);
    clconv_emit_set(e, "items", clconv_local_items(values));
    clconv_emit_set(e, "lanes_n", items_n < 8 ? items_n : 8);
    clconv_emit_set(e, "pairs", values[CLCONV_LOCAL_TILE_M] / reg_m / 2);
    clconv_emit_set(e, "lines", nest->c_along_m ? reg_n : reg_m);
    clconv_emit_set(e, "line_vectors", (nest->c_along_m ? reg_m : reg_n) / VEC);
    clconv_emit_set_text(e, "element", half_tile ? "ushort" : "float");
    clconv_emit_set(e, "chain", CHAIN);
}

/* Four elements of a tile. */
static void emit_read(clconv_emit *e, const clconv_task *t)
{
    const char *read = "*(__local const float4 *)p";
    if (clconv_local_is_half(t->values))
        read = t->device->has_fp16 ? "convert_float4(*(__local const half4 *)p)"
                                   : "vload_half4(0, (__local const half *)p)";
    clconv_emit_set_text(e, "read", read);
    clconv_emit_open(e, "static float4 read_tile(__local const $element *p)");
    clconv_emit_line(e, "return $read;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* What copies elements to local memory. */
static void emit_copies(clconv_emit *e, const clconv_device *d)
{
    bool async = clconv_local_has_async(d);
    if (async)
        clconv_emit_part(e, "copy_group");
    clconv_emit_part(e, async ? "async_copy" : "plain_copy");
}

void clconv_local_emit_functions(clconv_emit *e, const clconv_task *t,
                                 const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t, nest);
    clconv_local_stage b = stage_b(t, nest);
    if (a.async)
        emit_copies(e, t->device);
    clconv_local_stage_emit(e, t, &a);
    clconv_local_stage_emit(e, t, &b);
    set_holes(e, t, nest);
    emit_read(e, t);
}

static void open_sums(clconv_emit *e, const clconv_task *t)
{
    clconv_local_open_fixed(e, t->device, "for (int i = 0; i < $lines; ++i)");
    clconv_local_open_fixed(e, t->device,
                            "for (int v = 0; v < $line_vectors; ++v)");
}

static void close_two(clconv_emit *e)
{
    clconv_emit_close(e);
    clconv_emit_close(e);
}

static void emit_start(clconv_emit *e, const clconv_task *t)
{
    clconv_emit_line(e, "int pair = item / (2 * $lanes_n);");
    clconv_emit_line(e, "int first_m = (pair % $pairs * 2 + item % 2) * 4;");
    clconv_emit_line(e, "int first_n = (pair / $pairs * $lanes_n + item / 2 % "
                        "$lanes_n) * 4;");
    clconv_emit_line(e, "float4 sum[$lines][$line_vectors];");
    clconv_emit_line(e, "float4 out[$lines * $line_vectors];");
    open_sums(e, t);
    clconv_emit_line(e, "sum[i][v] = 0.0f;");
    clconv_emit_line(e, "out[i * $line_vectors + v] = 0.0f;");
    close_two(e);
}

/* Of rows or columns those that a work-item has come in vectors, so many
 * elements apart. */
static int apart(const clconv_task *t, bool m)
{
    int tile = t->values[m ? CLCONV_LOCAL_TILE_M : CLCONV_LOCAL_TILE_N];
    int reg = t->values[m ? CLCONV_LOCAL_REG_M : CLCONV_LOCAL_REG_N];
    return VEC * (tile / reg);
}

/* a0, a1 or b0, b1: what the work-item's rows or columns have at k. */
static void emit_operand(clconv_emit *e, const clconv_task *t,
                         const clconv_local_stage *s, bool m)
{
    int reg = t->values[m ? CLCONV_LOCAL_REG_M : CLCONV_LOCAL_REG_N];
    clconv_emit_set_text(e, "tile", s->name);
    clconv_emit_set_text(e, "direction", m ? "m" : "n");
    clconv_emit_set(e, "pitch", clconv_local_stage_pitch(s));
    for (int i = 0; i < reg / VEC; ++i) {
        clconv_emit_set(e, "i", i);
        clconv_emit_set(e, "offset", i * apart(t, m));
        clconv_emit_line(e, "float4 $tile$i = read_tile(at_$tile + k * "
                            "$pitch + $offset);");
    }
}

/* at_a or at_b: the work-item's first row or column of the tile in turn. */
static void emit_at(clconv_emit *e, const clconv_local_stage *s,
                    const char *direction)
{
    clconv_emit_set_text(e, "tile", s->name);
    clconv_emit_set_text(e, "direction", direction);
    clconv_emit_set(e, "size", s->tile_k * clconv_local_stage_pitch(s));
    clconv_emit_line(e, "__local const $element *at_$tile = tile_$tile + turn "
                        "* $size + first_$direction;");
}

static void emit_multiply(clconv_emit *e, const clconv_task *t,
                          const clconv_nest *nest)
{
    int reg_m = t->values[CLCONV_LOCAL_REG_M];
    int reg_n = t->values[CLCONV_LOCAL_REG_N];
    int lines = nest->c_along_m ? reg_n : reg_m;
    int vectors = (nest->c_along_m ? reg_m : reg_n) / VEC;
    clconv_local_stage a = stage_a(t, nest);
    clconv_local_stage b = stage_b(t, nest);
    emit_at(e, &a, "m");
    emit_at(e, &b, "n");
    if (!t->device->is_cpu)
        clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int k = 0; k < $tile_k; ++k)");
    emit_operand(e, t, &a, true);
    emit_operand(e, t, &b, false);
    clconv_emit_set_text(e, "line", nest->c_along_m ? "b" : "a");
    clconv_emit_set_text(e, "vector", nest->c_along_m ? "a" : "b");
    for (int i = 0; i < lines; ++i)
        for (int v = 0; v < vectors; ++v) {
            clconv_emit_set(e, "i", i);
            clconv_emit_set(e, "four", i / VEC);
            clconv_emit_set(e, "of_four", i % VEC);
            clconv_emit_set(e, "v", v);
            clconv_emit_line(e, "sum[$i][$v] += $line$four.s$of_four * "
                                "$vector$v;");
        }
    clconv_emit_close(e);
}

/* sum joins out. */
static void emit_fold(clconv_emit *e, const clconv_task *t)
{
    open_sums(e, t);
    clconv_emit_line(e, "out[i * $line_vectors + v] += sum[i][v];");
    clconv_emit_line(e, "sum[i][v] = 0.0f;");
    close_two(e);
}

/* Both operands' spots of the term k. */
static void emit_find(clconv_emit *e, const clconv_task *t,
                      const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t, nest);
    clconv_local_stage b = stage_b(t, nest);
    clconv_local_stage_emit_find(e, &a);
    clconv_local_stage_emit_find(e, &b);
}

/* Terms of the chain after k0's, where those of the chain before it were. */
static void emit_find_ahead(clconv_emit *e, const clconv_task *t,
                            const clconv_nest *nest)
{
    clconv_emit_set(e, "terms", CLCONV_LOCAL_TERMS);
    clconv_emit_open(e, "for (int i = item; i < $chain; i += $items)");
    clconv_emit_line(e, "int k = k0 + $chain + i;");
    clconv_emit_line(e, "int at = (k - block.begin) % $terms;");
    emit_find(e, t, nest);
    clconv_emit_close(e);
}

static void emit_fetch(clconv_emit *e, const clconv_task *t,
                       const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t, nest);
    clconv_local_stage b = stage_b(t, nest);
    clconv_local_stage_emit_fetch(e, t, &a);
    clconv_local_stage_emit_fetch(e, t, &b);
}

static void emit_put(clconv_emit *e, const clconv_task *t,
                     const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t, nest), b = stage_b(t, nest);
    clconv_local_stage_emit_put(e, t, &a);
    clconv_local_stage_emit_put(e, t, &b);
}

static void emit_copy(clconv_emit *e, const clconv_task *t,
                      const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t, nest), b = stage_b(t, nest);
    clconv_local_stage_emit_copy(e, t, &a);
    clconv_local_stage_emit_copy(e, t, &b);
}

/* Waits for the step's tiles, and has those copied that are tiles - 1 steps
 * ahead, to the place of the step before; the next in turn is the step's. */
static void emit_async_step(clconv_emit *e, const clconv_task *t,
                            const clconv_nest *nest)
{
    int ahead = t->values[CLCONV_LOCAL_TILES] - 1;
    clconv_emit_set(e, "but", ahead - 1);
    clconv_emit_line(e, "copies_wait$but();");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_set(e, "ahead", ahead * t->values[CLCONV_LOCAL_TILE_K]);
    clconv_emit_open(e, "if (k + $ahead < block.end)");
    emit_copy(e, t, nest);
    clconv_emit_close(e);
    clconv_emit_line(e, "copies_commit();");
    clconv_emit_line(e, "place = (place + $tile_k) & ($terms - 1);");
    clconv_emit_line(e, "turn = turn + 1 == $tiles ? 0 : turn + 1;");
    set_holes(e, t, nest);
    emit_multiply(e, t, nest);
}

static void emit_async_prologue(clconv_emit *e, const clconv_task *t,
                                const clconv_nest *nest)
{
    clconv_emit_set(e, "ahead", t->values[CLCONV_LOCAL_TILES] - 1);
    clconv_emit_open(e, "for (; turn < $ahead; ++turn)");
    clconv_emit_open(e, "if (block.begin + place < block.end)");
    emit_copy(e, t, nest);
    clconv_emit_close(e);
    clconv_emit_line(e, "copies_commit();");
    clconv_emit_line(e, "place += $tile_k;");
    clconv_emit_close(e);
}

static void emit_step(clconv_emit *e, const clconv_task *t,
                      const clconv_nest *nest)
{
    clconv_emit_line(e, "int more = k + $tile_k < block.end;");
    clconv_emit_line(e, "place = (place + $tile_k) & ($terms - 1);");
    clconv_emit_open(e, "if (more)");
    emit_fetch(e, t, nest);
    clconv_emit_close(e);
    set_holes(e, t, nest);
    emit_multiply(e, t, nest);
    clconv_emit_line(e, "turn ^= 1;");
    clconv_emit_open(e, "if (more)");
    emit_put(e, t, nest);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

/* Rows, the first terms and the elements of the first step. */
static void emit_prologue(clconv_emit *e, const clconv_task *t,
                          const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t, nest);
    clconv_local_stage b = stage_b(t, nest);
    clconv_emit_line(e, "int item = (int)get_local_id(0);");
    clconv_local_stage_emit_start(e, t, &a);
    clconv_local_stage_emit_start(e, t, &b);
    clconv_emit_open(e, "for (int at = item; at < $chain; at += $items)");
    clconv_emit_line(e, "int k = block.begin + at;");
    emit_find(e, t, nest);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_local_stage_emit_rows(e, t, &a);
    clconv_local_stage_emit_rows(e, t, &b);
    clconv_emit_line(e, "int place = 0; /* of the step's terms */");
    clconv_emit_line(e, "int turn = 0; /* of the tiles */");
    if (clconv_local_is_async(t->values)) {
        emit_async_prologue(e, t, nest);
        return;
    }
    emit_fetch(e, t, nest);
    emit_put(e, t, nest);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
}

void clconv_local_emit_product(clconv_emit *e, const clconv_task *t,
                               const clconv_nest *nest)
{
    set_holes(e, t, nest);
    emit_prologue(e, t, nest);
    emit_start(e, t);
    clconv_emit_open(e, "for (int k0 = block.begin; k0 < block.end; "
                        "k0 += $chain)");
    emit_find_ahead(e, t, nest);
    clconv_emit_line(e, "int last = min(k0 + $chain, block.end);");
    clconv_emit_open(e, "for (int k = k0; k < last; k += $tile_k)");
    if (clconv_local_is_async(t->values))
        emit_async_step(e, t, nest);
    else
        emit_step(e, t, nest);
    clconv_emit_close(e);
    emit_fold(e, t);
    clconv_emit_close(e);
}

/* ---- Stores ----------------------------------------------------------- */

/* at_m and at_n: where the work-item's rows and columns are in C. */
static void emit_places(clconv_emit *e, const clconv_task *t, bool m)
{
    clconv_emit_set_text(e, "direction", m ? "m" : "n");
    clconv_emit_set(e, "reg",
                    t->values[m ? CLCONV_LOCAL_REG_M : CLCONV_LOCAL_REG_N]);
    clconv_emit_set(e, "apart", apart(t, m));
    clconv_emit_set_text(e, "function", m ? "row" : "column");
    clconv_emit_line(e, "long at_$direction[$reg];");
    clconv_emit_line(e, "for (int i = 0; i < $reg; ++i)");
    clconv_emit_line(e, "    at_$direction[i] = ${output}_$function(&block, "
                        "&sizes, first_$direction + i / 4 * $apart + i % 4);");
}

void clconv_local_emit_walk(clconv_emit *e, const clconv_task *t,
                            const clconv_nest *nest, const char *output,
                            const char *store4, const char *store)
{
    set_holes(e, t, nest);
    clconv_emit_set_text(e, "output", output);
    emit_places(e, t, true);
    emit_places(e, t, false);
    clconv_emit_set_text(e, "line_at", nest->c_along_m ? "at_n" : "at_m");
    clconv_emit_set_text(e, "vector_at", nest->c_along_m ? "at_m" : "at_n");
    clconv_emit_line(e, "#pragma unroll 1");
    clconv_emit_open(e, "for (int sums = 0; sums < $lines * $line_vectors; "
                        "++sums)");
    clconv_emit_line(e, "long line = $line_at[sums / $line_vectors];");
    clconv_emit_line(e, "const long *place = $vector_at + sums % "
                        "$line_vectors * 4;");
    clconv_emit_open(e, "if (line >= 0 && place[0] >= 0 && place[3] == "
                        "place[0] + 3)");
    clconv_emit_line(e, "float4 value = out[sums];");
    clconv_emit_line(e, "long i = line + place[0];");
    clconv_emit_line(e, store4);
    clconv_emit_else(e);
    clconv_emit_open(e, "for (int j = 0; j < 4; ++j)");
    clconv_emit_open(e, "if (line >= 0 && place[j] >= 0)");
    clconv_emit_line(e, "float value = ((const float *)out)[4 * sums + j];");
    clconv_emit_line(e, "long i = line + place[j];");
    clconv_emit_line(e, store);
    close_two(e);
    close_two(e);
}

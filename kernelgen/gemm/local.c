/*
 * One step of a work-group, tile_k terms:
 *
 *     put: registers -> tiles in local memory
 *     barrier
 *     fetch the next step's elements into registers
 *     sum += tile_a * tile_b
 *     barrier
 *
 * so that global memory answers while the work-group multiplies. Local memory
 * holds the spots of CLCONV_LOCAL_TERMS terms, a ring: when one half has been
 * used, the items replace it by the terms after the other half, all at once,
 * for a few work-items with long divisions would keep the others waiting.
 *
 * A work-item's rows and columns come in groups of four, which are read from
 * the tiles as one vector; the groups of neighbouring work-items lie side by
 * side. The sums are vectors along the direction in which C is dense.
 *
 * No chain of additions is longer than CHAIN terms: then sum joins out, an
 * array, and starts again from zero. The array is in memory, not registers,
 * since the loop that stores it indexes it, so totals cost no registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "local.h"

#include "cost.h"
#include "integers.h"
#include "local_stage.h"
#include "operand.h"

#define VEC CLCONV_LOCAL_VECTOR

#define LEAST_ITEMS 64
#define MOST_ITEMS 256
#define MOST_LOCAL (32 * 1024)

/* Of a compute unit, so that it is busy. */
#define GROUPS_WANTED 2.0

/* Terms summed on their own, a multiple of every tile_k. */
#define CHAIN 128

enum { STAGING_VECTOR, STAGING_SCALAR };
enum { STAGE_FLOAT, STAGE_HALF };

int clconv_local_items(const int *values)
{
    return values[CLCONV_LOCAL_TILE_M] / values[CLCONV_LOCAL_REG_M] *
           (values[CLCONV_LOCAL_TILE_N] / values[CLCONV_LOCAL_REG_N]);
}

static clconv_local_stage stage_of(const int *values,
                                   const clconv_nest_operand *o,
                                   const char *name, int rows)
{
    bool vector = values[CLCONV_LOCAL_STAGING] == STAGING_VECTOR;
    return (clconv_local_stage){
        .operand = o,
        .name = name,
        .rows = rows,
        .tile_k = values[CLCONV_LOCAL_TILE_K],
        .items = clconv_local_items(values),
        .width = vector ? VEC : 1,
        .half_tile = values[CLCONV_LOCAL_STAGE] == STAGE_HALF,
    };
}

static clconv_local_stage stage_a(const int *values,
                                  const clconv_nest_operand *o)
{
    return stage_of(values, o, "a", values[CLCONV_LOCAL_TILE_M]);
}

static clconv_local_stage stage_b(const int *values,
                                  const clconv_nest_operand *o)
{
    return stage_of(values, o, "b", values[CLCONV_LOCAL_TILE_N]);
}

/* ---- What it takes ---------------------------------------------------- */

/* Work-group and local memory. */
static bool fits(const int *values, const clconv_device *d)
{
    size_t items = (size_t)clconv_local_items(values);
    clconv_local_stage a = stage_a(values, NULL), b = stage_b(values, NULL);
    size_t bytes = clconv_local_stage_bytes(&a) + clconv_local_stage_bytes(&b);
    return items >= LEAST_ITEMS && items <= MOST_ITEMS &&
           items <= d->max_work_group && bytes <= MOST_LOCAL &&
           bytes <= d->local_memory;
}

bool clconv_local_legal(const clconv_task *t)
{
    const int *values = t->values;
    bool half_tile = values[CLCONV_LOCAL_STAGE] == STAGE_HALF;
    return fits(values, t->device) &&
           (!half_tile || t->problem->math == CLCONV_MIXED);
}

/* Of the peak: what a register tile reaches by the loads that it saves, and
 * what fetching an element costs, in multiply-adds, as an H200 had it. A CPU
 * has no use for local memory: 3 to 8 % measured, counted as less, since it is
 * long to compile. */
static double share(const int *values, const clconv_device *d)
{
    const double per_element = 10;
    int sums = values[CLCONV_LOCAL_REG_M] * values[CLCONV_LOCAL_REG_N];
    double reached = sums >= 64 ? 0.48 : sums >= 32 ? 0.47 : 0.37;
    if (d->is_cpu)
        return 0.015;
    return 1 / (1 / reached + per_element / values[CLCONV_LOCAL_TILE_M] +
                per_element / values[CLCONV_LOCAL_TILE_N]);
}

double clconv_local_cost(const clconv_task *t, double waste, double bytes)
{
    return clconv_cost_multiply(t->problem) * waste /
               share(t->values, t->device) +
           clconv_cost_move(t->device, bytes) +
           clconv_cost_launch(t->device, bytes > 0 ? 2 : 1);
}

/* What defaults choose from: the last fits wherever one fits. A register tile
 * of 64 sums, beside what is fetched ahead, is for NVIDIA's 255 registers; other
 * GPUs have half of that or less. */
static const struct {
    int tile_m, tile_n, reg_m, reg_n;
    bool many_registers;
} shapes[] = {
    {128, 64, 8, 8, true}, {64, 64, 8, 4, false}, {64, 32, 4, 4, false},
    {32, 64, 4, 4, false}, {128, 8, 4, 4, false}, {64, 16, 4, 4, false},
};

#define SHAPES ((int)(sizeof shapes / sizeof *shapes))

static void set_shape(int i, int *values)
{
    values[CLCONV_LOCAL_TILE_M] = shapes[i].tile_m;
    values[CLCONV_LOCAL_TILE_N] = shapes[i].tile_n;
    values[CLCONV_LOCAL_REG_M] = shapes[i].reg_m;
    values[CLCONV_LOCAL_REG_N] = shapes[i].reg_n;
}

/* The defaults, but for the shape. */
static void set_rest(bool vector, int *values)
{
    values[CLCONV_LOCAL_TILE_K] = 16;
    values[CLCONV_LOCAL_STAGING] = vector ? STAGING_VECTOR : STAGING_SCALAR;
    values[CLCONV_LOCAL_STAGE] = STAGE_FLOAT;
    values[CLCONV_LOCAL_CAST] = CLCONV_CAST_SEPARATE;
    values[CLCONV_LOCAL_SHAPE] = 0;
}

bool clconv_local_covers(const clconv_device *d)
{
    int values[CLCONV_LOCAL_PARAMS];
    set_rest(true, values);
    set_shape(SHAPES - 1, values);
    return fits(values, d);
}

/* Of so many results of rows x columns: what is computed for nothing, what a
 * register tile reaches, and units left without work. */
static double time_of(const int *values, const clconv_device *d, int64_t rows,
                      int64_t columns, int64_t results)
{
    int tile_m = values[CLCONV_LOCAL_TILE_M];
    int tile_n = values[CLCONV_LOCAL_TILE_N];
    double groups = (double)results * (double)clconv_divide_up(rows, tile_m) *
                    (double)clconv_divide_up(columns, tile_n);
    double idle = GROUPS_WANTED * d->compute_units / groups;
    return clconv_cost_waste(rows, tile_m) * clconv_cost_waste(columns, tile_n) /
           share(values, d) * (idle > 1 ? idle : 1);
}

static int best_shape(const clconv_device *d, int64_t rows, int64_t columns,
                      int64_t results, int *values)
{
    double least = 0;
    int best = SHAPES - 1;
    for (int i = 0; i < SHAPES; ++i) {
        set_shape(i, values);
        if (!fits(values, d) || (shapes[i].many_registers && d->nv_sm == 0))
            continue;
        double time = time_of(values, d, rows, columns, results);
        if (least == 0 || time < least) {
            least = time;
            best = i;
        }
    }
    return best;
}

void clconv_local_defaults(const clconv_device *d, int64_t rows, int64_t columns,
                           int64_t results, bool vector, int *values)
{
    set_rest(vector, values);
    set_shape(best_shape(d, rows, columns, results, values), values);
}

unsigned clconv_local_wants_copies(const clconv_task *t, unsigned operands)
{
    bool separate = t->values[CLCONV_LOCAL_CAST] == CLCONV_CAST_SEPARATE;
    return separate ? clconv_operand_cast_bits(t->problem, operands) : 0;
}

/* ---- Text ------------------------------------------------------------- */

/* The sums of a work-item: lines of vectors. */
static void set_holes(clconv_emit *e, const clconv_task *t,
                      const clconv_nest *nest)
{
    const int *values = t->values;
    int reg_m = values[CLCONV_LOCAL_REG_M], reg_n = values[CLCONV_LOCAL_REG_N];
    int items_n = values[CLCONV_LOCAL_TILE_N] / reg_n;
    bool half_tile = values[CLCONV_LOCAL_STAGE] == STAGE_HALF;
    clconv_emit_set(e, "items", clconv_local_items(values));
    clconv_emit_set(e, "items_n", items_n);
    clconv_emit_set(e, "lines", nest->c_along_m ? reg_n : reg_m);
    clconv_emit_set(e, "line_vectors", (nest->c_along_m ? reg_m : reg_n) / VEC);
    clconv_emit_set_text(e, "element", half_tile ? "ushort" : "float");
    clconv_emit_set(e, "chain", CHAIN);
}

/* Four elements of a tile. */
static void emit_read(clconv_emit *e, const clconv_task *t)
{
    const char *read = "*(__local const float4 *)p";
    if (t->values[CLCONV_LOCAL_STAGE] == STAGE_HALF)
        read = t->device->has_fp16 ? "convert_float4(*(__local const half4 *)p)"
                                   : "vload_half4(0, (__local const half *)p)";
    clconv_emit_set_text(e, "read", read);
    clconv_emit_open(e, "static float4 read_tile(__local const $element *p)");
    clconv_emit_line(e, "return $read;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_local_emit_functions(clconv_emit *e, const clconv_task *t,
                                 const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t->values, &nest->a);
    clconv_local_stage b = stage_b(t->values, &nest->b);
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
    clconv_emit_line(e, "int first_m = item / $items_n * 4;");
    clconv_emit_line(e, "int first_n = item % $items_n * 4;");
    clconv_emit_line(e, "float4 sum[$lines][$line_vectors];");
    clconv_emit_line(e, "float out[$lines * $line_vectors * 4];");
    open_sums(e, t);
    clconv_emit_line(e, "sum[i][v] = 0.0f;");
    clconv_emit_line(e, "vstore4(sum[i][v], i * $line_vectors + v, out);");
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
        clconv_emit_line(e, "float4 $tile$i = read_tile(tile_$tile + k * "
                            "$pitch + first_$direction + $offset);");
    }
}

static void emit_multiply(clconv_emit *e, const clconv_task *t,
                          const clconv_nest *nest)
{
    int reg_m = t->values[CLCONV_LOCAL_REG_M];
    int reg_n = t->values[CLCONV_LOCAL_REG_N];
    int lines = nest->c_along_m ? reg_n : reg_m;
    int vectors = (nest->c_along_m ? reg_m : reg_n) / VEC;
    clconv_local_stage a = stage_a(t->values, &nest->a);
    clconv_local_stage b = stage_b(t->values, &nest->b);
    if (!t->device->is_cpu)
        clconv_emit_line(e, "#pragma unroll 8");
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

/* sum joins out; once more after the last step. */
static void emit_fold(clconv_emit *e, const clconv_task *t, bool again)
{
    open_sums(e, t);
    clconv_emit_line(e, "float4 total = vload4(i * $line_vectors + v, out) + "
                        "sum[i][v];");
    clconv_emit_line(e, "vstore4(total, i * $line_vectors + v, out);");
    if (again)
        clconv_emit_line(e, "sum[i][v] = 0.0f;");
    close_two(e);
}

/* Both operands' spots of the term k. */
static void emit_find(clconv_emit *e, const clconv_task *t,
                      const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t->values, &nest->a);
    clconv_local_stage b = stage_b(t->values, &nest->b);
    clconv_local_stage_emit_find(e, &a);
    clconv_local_stage_emit_find(e, &b);
}

/* The half of the ring before step. Nobody reads it: the last fetch, before a
 * barrier, was of step's half already. */
static void emit_find_ahead(clconv_emit *e, const clconv_task *t,
                            const clconv_nest *nest)
{
    clconv_emit_set(e, "terms", CLCONV_LOCAL_TERMS);
    clconv_emit_set(e, "half_terms", CLCONV_LOCAL_TERMS / 2);
    clconv_emit_open(e, "if (k0 > block.begin && step % $half_terms == 0 && "
                        "item < $half_terms)");
    clconv_emit_line(e, "int place = (step + $half_terms) % $terms + item;");
    clconv_emit_line(e, "int k = k0 + $half_terms + item;");
    emit_find(e, t, nest);
    clconv_emit_close(e);
}

static void emit_fetch(clconv_emit *e, const clconv_task *t,
                       const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t->values, &nest->a);
    clconv_local_stage b = stage_b(t->values, &nest->b);
    clconv_local_stage_emit_fetch(e, t, &a);
    clconv_local_stage_emit_fetch(e, t, &b);
}

static void emit_step(clconv_emit *e, const clconv_task *t,
                      const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t->values, &nest->a);
    clconv_local_stage b = stage_b(t->values, &nest->b);
    clconv_local_stage_emit_put(e, t, &a);
    clconv_local_stage_emit_put(e, t, &b);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    emit_find_ahead(e, t, nest);
    clconv_emit_line(e, "step = (step + $tile_k) % $terms;");
    clconv_emit_open(e, "if (k0 + $tile_k < block.end)");
    emit_fetch(e, t, nest);
    clconv_emit_close(e);
    set_holes(e, t, nest);
    emit_multiply(e, t, nest);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_open(e, "if ((chained += $tile_k) == $chain)");
    clconv_emit_line(e, "chained = 0;");
    emit_fold(e, t, true);
    clconv_emit_close(e);
}

/* Rows, the first terms and the elements of the first step. */
static void emit_prologue(clconv_emit *e, const clconv_task *t,
                          const clconv_nest *nest)
{
    clconv_local_stage a = stage_a(t->values, &nest->a);
    clconv_local_stage b = stage_b(t->values, &nest->b);
    clconv_emit_line(e, "int item = (int)get_local_id(0);");
    clconv_local_stage_emit_start(e, t, &a);
    clconv_local_stage_emit_start(e, t, &b);
    clconv_emit_open(e, "for (int place = item; place < $terms; "
                        "place += $items)");
    clconv_emit_line(e, "int k = block.begin + place;");
    emit_find(e, t, nest);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_local_stage_emit_rows(e, t, &a);
    clconv_local_stage_emit_rows(e, t, &b);
    clconv_emit_line(e, "int step = 0; /* the place of its terms */");
    emit_fetch(e, t, nest);
    clconv_emit_line(e, "int chained = 0;");
}

void clconv_local_emit_product(clconv_emit *e, const clconv_task *t,
                               const clconv_nest *nest)
{
    emit_prologue(e, t, nest);
    set_holes(e, t, nest);
    emit_start(e, t);
    clconv_emit_open(e, "for (int k0 = block.begin; k0 < block.end; "
                        "k0 += $tile_k)");
    emit_step(e, t, nest);
    clconv_emit_close(e);
    emit_fold(e, t, false);
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
                            const clconv_nest *nest, const char *store4,
                            const char *store)
{
    set_holes(e, t, nest);
    clconv_emit_set_text(e, "output", clconv_tensor_name(nest->c));
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
    clconv_emit_line(e, "float4 value = vload4(sums, out);");
    clconv_emit_line(e, "long i = line + place[0];");
    clconv_emit_line(e, store4);
    clconv_emit_else(e);
    clconv_emit_open(e, "for (int j = 0; j < 4; ++j)");
    clconv_emit_open(e, "if (line >= 0 && place[j] >= 0)");
    clconv_emit_line(e, "float value = out[4 * sums + j];");
    clconv_emit_line(e, "long i = line + place[j];");
    clconv_emit_line(e, store);
    close_two(e);
    close_two(e);
}

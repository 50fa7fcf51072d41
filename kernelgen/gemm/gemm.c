/*
 * A row of a tile in local memory is tile_k + 8 halves: 16 bytes more, so
 * that rows start in different banks and stay aligned for vectors of eight.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gemm.h"

#include "cost.h"

#define PITCH_EXTRA 8

/* What the smallest legal plan may need; more is checked a plan. */
#define MIN_LOCAL_MEMORY (32 * 1024)

static bool has_unit(const clconv_device *d)
{
    return clconv_device_has_unit(d, CLCONV_UNIT_MMA_M16N8K16) &&
           (d->unit_emulated || d->nv_sm >= 80) &&
           d->max_work_group >= CLCONV_GEMM_ITEMS &&
           d->local_memory >= MIN_LOCAL_MEMORY;
}

bool clconv_gemm_covers(const clconv_problem *p, const clconv_device *d)
{
    return p->math == CLCONV_MIXED && has_unit(d);
}

void clconv_gemm_defaults(int64_t columns, int *values)
{
    values[CLCONV_GEMM_TILE_M] = 64;
    values[CLCONV_GEMM_TILE_N] = 8;
    while (values[CLCONV_GEMM_TILE_N] < columns &&
           values[CLCONV_GEMM_TILE_N] < 64)
        values[CLCONV_GEMM_TILE_N] *= 2;
    values[CLCONV_GEMM_TILE_K] = 32;
    values[CLCONV_GEMM_STAGING] = CLCONV_STAGING_VECTOR;
    values[CLCONV_GEMM_CAST] = CLCONV_CAST_SEPARATE;
    values[CLCONV_GEMM_SHAPE] = 0;
}

static clconv_unit_block unit_block_of(const clconv_task *t)
{
    const clconv_unit *unit = clconv_unit_get(CLCONV_UNIT_MMA_M16N8K16);
    return (clconv_unit_block){
        .unit = unit,
        .emulated = t->device->unit_emulated,
        .warps = CLCONV_GEMM_ITEMS / unit->lanes,
        .tile_m = t->values[CLCONV_GEMM_TILE_M],
        .tile_n = t->values[CLCONV_GEMM_TILE_N],
        .tile_k = t->values[CLCONV_GEMM_TILE_K],
        .pitch = t->values[CLCONV_GEMM_TILE_K] + PITCH_EXTRA,
    };
}

bool clconv_gemm_legal(const clconv_task *t)
{
    clconv_unit_block b = unit_block_of(t);
    size_t tiles = (size_t)((b.tile_m + b.tile_n) * b.pitch) * 2;
    return clconv_unit_fits(&b) &&
           tiles + clconv_unit_local_bytes(&b) <= t->device->local_memory;
}

unsigned clconv_gemm_wants_copies(const clconv_task *t, unsigned operands)
{
    bool separate = t->values[CLCONV_GEMM_CAST] == CLCONV_CAST_SEPARATE;
    return separate ? clconv_operand_cast_bits(t->problem, operands) : 0;
}

/* Multiply-adds, as a share of the peak outside the unit, that an H200 reached;
 * NCHW pixels are staged one by one. */
#define SHARE_NHWC 0.22
#define SHARE_NCHW 0.1

double clconv_gemm_cost(const clconv_task *t, double waste, double bytes)
{
    bool nhwc = t->problem->layout == CLCONV_NHWC;
    if (t->device->unit_emulated)
        return 0; /* it was asked for */
    return clconv_cost_multiply(t->problem) * waste /
               (nhwc ? SHARE_NHWC : SHARE_NCHW) +
           clconv_cost_move(t->device, bytes) +
           clconv_cost_launch(t->device, bytes > 0 ? 2 : 1);
}

static clconv_stage stage_of(const clconv_nest_operand *o, const char *name,
                             int rows)
{
    return (clconv_stage){o->tensor, name, rows, o->along_k};
}

void clconv_gemm_emit_functions(clconv_emit *e, const clconv_task *t,
                                const clconv_nest *nest)
{
    clconv_unit_block block = unit_block_of(t);
    bool vector = t->values[CLCONV_GEMM_STAGING] == CLCONV_STAGING_VECTOR;
    clconv_stage a = stage_of(&nest->a, "a", block.tile_m);
    clconv_stage b = stage_of(&nest->b, "b", block.tile_n);
    clconv_nest_emit_at(e, &nest->a);
    clconv_nest_emit_at(e, &nest->b);
    clconv_unit_emit_functions(e, &block);
    clconv_emit_set(e, "work_items", CLCONV_GEMM_ITEMS);
    clconv_stage_emit(e, t, &a, vector);
    clconv_stage_emit(e, t, &b, vector);
}

static void emit_stage(clconv_emit *e, const clconv_nest_operand *o,
                       const char *name)
{
    clconv_emit_set_text(e, "tile", name);
    clconv_emit_set_text(e, "operand", clconv_tensor_name(o->tensor));
    clconv_emit_line(e, "stage_$tile(tile_$tile, $operand, &block, &sizes, "
                        "k0, item);");
}

void clconv_gemm_emit_product(clconv_emit *e, const clconv_task *t,
                              const clconv_nest *nest)
{
    clconv_unit_block block = unit_block_of(t);
    clconv_emit_line(e, "int item = (int)get_local_id(0);");
    clconv_emit_line(e, "__local ushort tile_a[$tile_m * $pitch] "
                        "__attribute__((aligned(16)));");
    clconv_emit_line(e, "__local ushort tile_b[$tile_n * $pitch] "
                        "__attribute__((aligned(16)));");
    clconv_unit_emit_start(e, &block);
    clconv_emit_open(e, "for (int k0 = block.begin; k0 < block.end; "
                        "k0 += $tile_k)");
    emit_stage(e, &nest->a, "a");
    emit_stage(e, &nest->b, "b");
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_unit_emit_multiply(e, &block);
    clconv_emit_line(e, "barrier(CLK_LOCAL_MEM_FENCE);");
    clconv_emit_close(e);
}

void clconv_gemm_open_walk(clconv_emit *e, const clconv_task *t,
                           const clconv_nest *nest)
{
    clconv_unit_block block = unit_block_of(t);
    clconv_emit_set_text(e, "output", clconv_tensor_name(nest->c));
    clconv_unit_open_walk(e, &block);
    clconv_emit_line(e, "long row = ${output}_row(&block, &sizes, m);");
    clconv_emit_line(e, "long column = ${output}_column(&block, &sizes, n);");
    clconv_emit_line(e, "long i = row + column;");
    clconv_emit_open(e, "if (row >= 0 && column >= 0)");
}

void clconv_gemm_close_walk(clconv_emit *e)
{
    clconv_emit_close(e);
    clconv_unit_close_walk(e);
}

/*
 * What the kernels for GPUs without a known matrix unit share: a work-group
 * multiplies two tiles in local memory, of which each work-item holds reg_m x
 * reg_n sums in registers. Where elements come from and go is the nest's
 * (nest.h):
 *
 *     clconv_local_emit_functions(e, t, &nest);
 *     clconv_entry_open(e, t, &pass, CLCONV_LOCAL_ATTRIBUTE);
 *     clconv_data_nest_emit_place(e);
 *     clconv_local_emit_product(e, t, &nest);  // block.begin to block.end
 *     clconv_local_emit_walk(e, t, &nest, "dx", "store_dx4(...);",
 *                            "store_dx(...);");
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_LOCAL_H
#define CLCONV_LOCAL_H

#include "local_stage.h"
#include "nest.h"
#include "operand.h"

/* The first rows of params of each such kernel. */
enum {
    CLCONV_LOCAL_TILE_M,
    CLCONV_LOCAL_TILE_N,
    CLCONV_LOCAL_TILE_K,
    CLCONV_LOCAL_REG_M,
    CLCONV_LOCAL_REG_N,
    CLCONV_LOCAL_STAGING,
    CLCONV_LOCAL_STAGE,
    CLCONV_LOCAL_CAST,
    CLCONV_LOCAL_COPY,
    CLCONV_LOCAL_TILES,
    CLCONV_LOCAL_SHAPE,
    CLCONV_LOCAL_PARAMS
};

/* Their values, of those that are names. */
enum { CLCONV_LOCAL_STAGING_VECTOR, CLCONV_LOCAL_STAGING_SCALAR };
enum { CLCONV_LOCAL_STAGE_FLOAT, CLCONV_LOCAL_STAGE_HALF };
enum { CLCONV_LOCAL_COPY_REGISTERS, CLCONV_LOCAL_COPY_ASYNC };

#define CLCONV_LOCAL_PARAM_ROWS                                                \
    [CLCONV_LOCAL_TILE_M] = {"tile_m", CLCONV_VALUES(64, 128, 32),             \
                             "rows of the result a work-group"},               \
    [CLCONV_LOCAL_TILE_N] = {"tile_n", CLCONV_VALUES(64, 128, 32, 16, 8),      \
                             "columns of the result a work-group"},            \
    [CLCONV_LOCAL_TILE_K] = {"tile_k", CLCONV_VALUES(16, 8),                   \
                             "terms of the sum staged at a time"},             \
    [CLCONV_LOCAL_REG_M] = {"reg_m", CLCONV_VALUES(8, 4),                      \
                            "rows of the result a work-item"},                 \
    [CLCONV_LOCAL_REG_N] = {"reg_n", CLCONV_VALUES(4, 8),                      \
                            "columns of the result a work-item"},              \
    [CLCONV_LOCAL_STAGING] = {"staging", CLCONV_NAMES("vector", "scalar"),     \
                              "how elements are fetched"},                     \
    [CLCONV_LOCAL_STAGE] = {"stage", CLCONV_NAMES("float", "half"),            \
                            "what local memory holds"},                        \
    [CLCONV_LOCAL_CAST] = {"cast", CLCONV_CAST_NAMES,                          \
                           "where fp32 operands are rounded"},                 \
    [CLCONV_LOCAL_COPY] = {"copy", CLCONV_NAMES("registers", "async"),         \
                           "how elements reach local memory"},                 \
    [CLCONV_LOCAL_TILES] = {"tiles", CLCONV_VALUES(2, 3),                      \
                            "of each operand in local memory"},                \
    [CLCONV_LOCAL_SHAPE] = CLCONV_SHAPE_PARAM

/* The smallest tile, and the most terms staged at a time. */
#define CLCONV_LOCAL_LEAST_M 32
#define CLCONV_LOCAL_LEAST_N 8
#define CLCONV_LOCAL_MOST_K 16

/* ---- Values: local_plan.c ----------------------------------------------- */

bool clconv_local_covers(const clconv_device *d);

/* Values for so many results of rows x columns. */
void clconv_local_defaults(const clconv_problem *p, const clconv_device *d,
                           int64_t rows, int64_t columns, int64_t results,
                           int *values);

bool clconv_local_legal(const clconv_task *t, const clconv_nest *nest);

/* Values that only stand in for what the device does not have are not. */
bool clconv_local_promising(const clconv_task *t);

/* clconv_kernel.cost of a kernel that computes waste times what a perfect one
 * would, and moves so many bytes besides its tensors, in a pass of their own. */
double clconv_local_cost(const clconv_task *t, double waste, double bytes);

/* Those of operands that a separate cast writes. */
unsigned clconv_local_wants_copies(const clconv_task *t, unsigned operands);

/* Work-items of a group, and the sums of each. */
int clconv_local_items(const int *values);
int clconv_local_sums(const int *values);

bool clconv_local_is_half(const int *values);  /* stage=half */
bool clconv_local_is_async(const int *values); /* copy=async */

/* Does the device copy to local memory while work-items go on? Elsewhere
 * copy=async copies at once. */
bool clconv_local_has_async(const clconv_device *d);

/* ---- Text: local.c ------------------------------------------------------ */

/* For clconv_entry_open(), after clconv_local_emit_functions(). */
#define CLCONV_LOCAL_ATTRIBUTE                                                 \
    "__attribute__((reqd_work_group_size($items, 1, 1)))"

void clconv_local_emit_functions(clconv_emit *e, const clconv_task *t,
                                 const clconv_nest *nest);

/* out = the product over k from block.begin to block.end. Needs sizes and
 * block; declares item and out. */
void clconv_local_emit_product(clconv_emit *e, const clconv_task *t,
                               const clconv_nest *nest);

/* Stores all sums that are in C, at <output>_row + <output>_column, by two
 * statements over long i, an index, and value: four that follow each other in
 * memory as float4, and one as float. */
void clconv_local_emit_walk(clconv_emit *e, const clconv_task *t,
                            const clconv_nest *nest, const char *output,
                            const char *store4, const char *store);

#endif

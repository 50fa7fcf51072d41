/*
 * What the kernels on matrix units share: tunables, one work-group's product
 * of two staged tiles, and what it takes. Where elements come from and go is
 * the nest's (nest.h); a kernel adds <operand>_run (gemm_stage.h):
 *
 *     clconv_gemm_emit_functions(e, t, &nest);
 *     clconv_entry_open(e, t, &pass, CLCONV_GEMM_ATTRIBUTE);
 *     clconv_data_nest_emit_place(e);
 *     clconv_gemm_emit_product(e, t, &nest);  // block.begin to block.end
 *     clconv_gemm_open_walk(e, t, &nest);     // long i, float value
 *     clconv_emit_line(e, "store_dx(dx, i, value, beta$tally);");
 *     clconv_gemm_close_walk(e);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_GEMM_H
#define CLCONV_GEMM_H

#include "gemm_stage.h"
#include "nest.h"
#include "operand.h"
#include "unit.h"

/* Work-items of a group, whatever the unit's lanes. */
#define CLCONV_GEMM_ITEMS 128
#define CLCONV_GEMM_ATTRIBUTE "__attribute__((reqd_work_group_size(128, 1, 1)))"

/* The first rows of params of each such kernel. */
enum {
    CLCONV_GEMM_TILE_M,
    CLCONV_GEMM_TILE_N,
    CLCONV_GEMM_TILE_K,
    CLCONV_GEMM_STAGING,
    CLCONV_GEMM_CAST,
    CLCONV_GEMM_SHAPE,
    CLCONV_GEMM_PARAMS
};

enum { CLCONV_STAGING_VECTOR, CLCONV_STAGING_SCALAR };

#define CLCONV_GEMM_PARAM_ROWS                                                 \
    [CLCONV_GEMM_TILE_M] = {"tile_m", CLCONV_VALUES(64, 128),                  \
                            "rows of the result a work-group"},                \
    [CLCONV_GEMM_TILE_N] = {"tile_n", CLCONV_VALUES(64, 32, 16, 8),            \
                            "columns of the result a work-group"},             \
    [CLCONV_GEMM_TILE_K] = {"tile_k", CLCONV_VALUES(32, 16, 64),               \
                            "terms of the sum staged at a time"},              \
    [CLCONV_GEMM_STAGING] = {"staging", CLCONV_NAMES("vector", "scalar"),      \
                             "how elements move to local memory"},             \
    [CLCONV_GEMM_CAST] = {"cast", CLCONV_CAST_NAMES,                           \
                          "where fp32 operands are rounded"},                  \
    [CLCONV_GEMM_SHAPE] = CLCONV_SHAPE_PARAM

/* The smallest tile. */
#define CLCONV_GEMM_LEAST_M 64
#define CLCONV_GEMM_LEAST_N 8

/* Mixed math, and a unit that this device has or emulates. */
bool clconv_gemm_covers(const clconv_problem *p, const clconv_device *d);

/* The narrowest tile that takes all columns of a group. */
void clconv_gemm_defaults(int64_t columns, int *values);

bool clconv_gemm_legal(const clconv_task *t);

/* Those of operands that a separate cast writes. */
unsigned clconv_gemm_wants_copies(const clconv_task *t, unsigned operands);

/* clconv_kernel.cost of a kernel that computes waste times what a perfect one
 * would, and moves so many bytes besides its tensors. */
double clconv_gemm_cost(const clconv_task *t, double waste, double bytes);

/* <operand>_at, the unit's functions and the staging. */
void clconv_gemm_emit_functions(clconv_emit *e, const clconv_task *t,
                                const clconv_nest *nest);

/* acc = the product over k from block.begin to block.end. Needs sizes and
 * block; declares item, lane, warp and acc. */
void clconv_gemm_emit_product(clconv_emit *e, const clconv_task *t,
                              const clconv_nest *nest);

/* Once a sum of the tile that is in C: long i is its index, value the sum. */
void clconv_gemm_open_walk(clconv_emit *e, const clconv_task *t,
                           const clconv_nest *nest);
void clconv_gemm_close_walk(clconv_emit *e);

#endif

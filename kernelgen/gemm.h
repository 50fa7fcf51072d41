/*
 * What the kernels on matrix units share: tunables, one work-group's product
 * of two staged tiles, and what it takes. A kernel adds where elements come
 * from (block_t, <operand>_at, <operand>_run, see gemm_stage.h) and where sums
 * go:
 *
 *     clconv_gemm_emit_functions(e, t, &a, &b);
 *     clconv_entry_open(e, t, &pass, CLCONV_GEMM_ATTRIBUTE);
 *     clconv_emit_line(e, "block_t block = ...");
 *     clconv_gemm_emit_product(e, t, &a, &b);  // block.begin to block.end
 *     clconv_unit_open_walk(e, &unit_block);
 *     ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_GEMM_H
#define CLCONV_GEMM_H

#include "gemm_stage.h"
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
                          "where fp32 operands are rounded"}

/* What a kernel counts in ints on the device stays below this, so that a last
 * tile still fits. */
#define CLCONV_GEMM_LIMIT (1 << 30)

/* Tiles that cover count elements. */
int64_t clconv_gemm_tiles(int64_t count, int64_t tile);

/* Mixed math, a unit that this device has or emulates, and padded images
 * within CLCONV_GEMM_LIMIT. */
bool clconv_gemm_covers(const clconv_problem *p, const clconv_device *d);

/* The narrowest tile that takes all columns of a group. */
void clconv_gemm_defaults(int64_t columns, int *values);

bool clconv_gemm_legal(const clconv_task *t);

/* Those of operands that a separate cast writes. */
unsigned clconv_gemm_wants_copies(const clconv_task *t, unsigned operands);

clconv_unit_block clconv_gemm_unit_block(const clconv_task *t);

void clconv_gemm_emit_functions(clconv_emit *e, const clconv_task *t,
                                const clconv_stage *a, const clconv_stage *b);

/* acc = the product over k from block.begin to block.end. Needs sizes and
 * block; declares item, lane, warp and acc. */
void clconv_gemm_emit_product(clconv_emit *e, const clconv_task *t,
                              const clconv_stage *a, const clconv_stage *b);

#endif

/*
 * What the kernels on matrix units share: tunables, one work-group's product
 * of two tiles, and what it takes. Operands are read as packed copies (pack.h).
 * A kernel is
 *
 *     ... the nest's functions, of packed operands (nest.h) ...
 *     clconv_gemm_emit_functions(e, t, &tile);
 *     clconv_wgmma_store_emit_functions(e, ...);           (wgmma/store.h)
 *     clconv_gemm_open_entry(e, t, &pass);
 *     ... block ...
 *     clconv_gemm_emit_product(e, t, &tile, advance);
 *     clconv_wgmma_store_emit(e, ...);
 *     clconv_emit_close(e);
 *
 * A stage is tile_k terms of A and B in local memory, of which there are some,
 * taken in turns: while one is multiplied, the next ones are on their way. On
 * sm_80 and later copies go there by themselves (cp.async); before, there are
 * two stages, and the next terms wait in registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_GEMM_H
#define CLCONV_GEMM_H

#include "nest.h"
#include "unit.h"
#include "wgmma.h"

/* The first rows of params of each such kernel. */
enum {
    CLCONV_GEMM_TILE_M,
    CLCONV_GEMM_TILE_N,
    CLCONV_GEMM_TILE_K,
    CLCONV_GEMM_GROUPS,
    CLCONV_GEMM_STAGES,
    CLCONV_GEMM_SHAPE,
    CLCONV_GEMM_PARAMS
};

#define CLCONV_GEMM_PARAM_ROWS                                                 \
    [CLCONV_GEMM_TILE_M] = {"tile_m", CLCONV_VALUES(64, 128, 256),             \
                            "rows of the result a work-group"},                \
    [CLCONV_GEMM_TILE_N] = {"tile_n", CLCONV_VALUES(64, 16, 32, 128, 256),     \
                            "columns of the result a work-group"},             \
    [CLCONV_GEMM_TILE_K] = {"tile_k", CLCONV_VALUES(32, 16, 64),               \
                            "terms of a stage"},                               \
    [CLCONV_GEMM_GROUPS] = {"warpgroups", CLCONV_VALUES(1, 2, 4),              \
                            "times four warps that share a tile"},             \
    [CLCONV_GEMM_STAGES] = {"stages", CLCONV_VALUES(3, 2, 4),                  \
                            "stages of terms in local memory"},                \
    [CLCONV_GEMM_SHAPE] = CLCONV_SHAPE_PARAM

/* The smallest tile. */
#define CLCONV_GEMM_LEAST_M 64
#define CLCONV_GEMM_LEAST_N 16

/* Mixed math, and a unit that this device has or emulates. */
bool clconv_gemm_covers(const clconv_problem *p, const clconv_device *d);

/* What a work-group computes; nest: of packed operands. */
clconv_wgmma_tile clconv_gemm_tile_of(const clconv_task *t,
                                      const clconv_nest *nest);

/* Does it fit? */
bool clconv_gemm_legal(const clconv_task *t, const clconv_wgmma_tile *c);

/* clconv_kernel.cost of a kernel that computes waste times what a perfect one
 * would in so many tiles, those of all parts of a split sum, and moves so many
 * bytes besides its tensors. */
double clconv_gemm_cost(const clconv_task *t, double waste, int64_t tiles,
                        double bytes);

/*
 * Good values without measuring: of a few tiles the one that costs least of
 * those that are legal. tile_k: terms of a stage. split: sets the values that
 * follow from a tile; NULL: there are none. t reads values.
 */
void clconv_gemm_choose(const clconv_task *t, int tile_k,
                        void (*split)(const clconv_task *t, int *values),
                        bool (*legal)(const clconv_task *),
                        double (*cost)(const clconv_task *), int *values);

/* Work-items of a work-group. */
int clconv_gemm_items(const clconv_task *t);

/* Copies and products. */
void clconv_gemm_emit_functions(clconv_emit *e, const clconv_task *t,
                                const clconv_wgmma_tile *c);

void clconv_gemm_open_entry(clconv_emit *e, const clconv_task *t,
                            const clconv_pass *pass);

/*
 * sum = the product over the terms from block.begin to block.end. Needs block,
 * declares item, warpgroup, lane and sum, and sets what
 * clconv_wgmma_store_emit() needs. advance: the statement that moves block on to
 * its next tile_k terms, or NULL if the nest finds terms by number.
 */
void clconv_gemm_emit_product(clconv_emit *e, const clconv_task *t,
                              const clconv_wgmma_tile *c, const char *advance);

#endif

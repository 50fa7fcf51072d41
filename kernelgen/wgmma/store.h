/*
 * Emits how a warpgroup's sums leave: with the functions of a nest, from
 * registers to an output (times the epilogue's power of two, plus beta times
 * the old value, rounded and counted if it is fp16) or to partial sums.
 *
 * Two ways for an output: a fast one where nothing is added or counted, whose
 * stores are as wide as the tensor allows, and one for all else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_STORE_H
#define CLCONV_WGMMA_STORE_H

#include "wgmma.h"

typedef struct clconv_wgmma_target {
    /* NULL: the nest's output; else the statement that declares partial, the
     * float pointer to partial sums, at part_row() + part_column(). */
    const char *partial;
    /* Tiles that are stored together, see clconv_wgmma_deal; 0 or 1: each alone.
     * The output's row m of the part-th is <output>_part_row(&block, &sizes, m,
     * part), next to that of the part before it. */
    int together;
} clconv_wgmma_target;

/* Functions; before the entry point. */
void clconv_wgmma_store_emit_functions(clconv_emit *e, const clconv_task *t,
                                       const clconv_wgmma_tile *c,
                                       const clconv_nest *nest,
                                       const clconv_wgmma_target *to);

/* In the loop over tiles: block, sizes, sum, warpgroup, lane; for an output
 * also beta, its pointer, counts and tally. */
void clconv_wgmma_store_emit(clconv_emit *e, const clconv_task *t,
                             const clconv_wgmma_tile *c, const clconv_nest *nest,
                             const clconv_wgmma_target *to);

/* Sums of a work-item that clconv_wgmma_mend_emit() can work out again. */
#define CLCONV_WGMMA_MOST_MENDED 64

/* Before a store: sums that are no numbers are worked out again, by
 * dx_sum(dy, w, &block, &sizes, row, column), for zeros that stand where a filter
 * has no tap turn what is no number there into one. Warpgroups share out rows. */
void clconv_wgmma_mend_emit(clconv_emit *e);

#endif

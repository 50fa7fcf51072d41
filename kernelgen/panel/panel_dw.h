/*
 * From the sums of bwd_weight_panel's work-items to dW. A work-item has sums
 * of some neighbouring weights of each of tile_v * 16 output channels: vectors
 * of output channels, where dW wants runs of weights, so 16 x 16 of them at a
 * time are transposed. The work-items store dW themselves if the reduction
 * has one share; else they leave
 *
 *     partial[share][group][k_block][weight][tile_v * 16]
 *
 * and a last pass adds the shares, in order.
 *
 *     clconv_panel_dw_shape(&dw, &shape);                      in the shape
 *     clconv_panel_dw_args(p, &pass);                in the main pass
 *     clconv_panel_dw_pass(&dw, p, entry, &shape, &pass);      in passes()
 *     clconv_panel_dw_emit_functions(e, p, &dw);     before the main entry
 *     clconv_panel_dw_emit_store(e, p);              at its end, see there
 *     clconv_panel_dw_emit_pass(e, t, &shape, &pass);          in emit()
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_DW_H
#define CLCONV_PANEL_DW_H

#include "kernel.h"
#include "kernel_shape.h"

typedef struct clconv_panel_dw {
    int tile_v, split_k;
    int64_t k_blocks; /* of a group */
    int64_t weights;  /* of an output channel */
    int64_t offset;   /* of the partials in the scratch, in floats */
} clconv_panel_dw;

/* Floats of the scratch that the partials take. */
int64_t clconv_panel_dw_floats(const clconv_panel_dw *dw,
                               const clconv_problem *p);

/* Adds weights, split_k and partials; k, k_blocks and groups must be there. */
void clconv_panel_dw_shape(const clconv_panel_dw *dw, clconv_shape *s);

/* The arguments of an entry point that stores dW. */
void clconv_panel_dw_args(const clconv_problem *p, clconv_pass *pass);

void clconv_panel_dw_pass(const clconv_panel_dw *dw, const clconv_problem *p,
                          const char *entry, const clconv_shape *s,
                          clconv_pass *pass);

void clconv_panel_dw_emit_functions(clconv_emit *e, const clconv_problem *p,
                                    const clconv_panel_dw *dw);

/* The last lines of the main entry point, which began with
 * clconv_output_emit_tally(). They read share, block (group * k_blocks +
 * k_block), weight (the first), count (of weights) and sums: tile_v vectors
 * of each weight. */
void clconv_panel_dw_emit_store(clconv_emit *e, const clconv_problem *p);

void clconv_panel_dw_emit_pass(clconv_emit *e, const clconv_task *t,
                               const clconv_shape *s, const clconv_pass *pass);

#endif

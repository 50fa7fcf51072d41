/*
 * The multiply-adds of bwd_data_tile: tile_c channels of dX by tile_w vectors
 * of 16 positions, for one phase of rows and one of columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TILE_SUMS_H
#define CLCONV_TILE_SUMS_H

#include "emit.h"

typedef struct clconv_tile_sums {
    int tile_c, tile_w;
    bool written_out; /* r x s taps as text, not as loops; without a stride */
    int r, s;
} clconv_tile_sums;

/*
 * Needs the holes $tile (positions), $tile_sums (of a phase), $plane_type,
 * $filter (R * S) and $run (weights of a c_block for one k), the type axis_t
 * (tile_phase.h), load_dy_plane (tile_pack.h) and, in the shape,
 * channel_stride, group_k and k_block: how many k are summed from zero, then
 * added. Emits
 *
 *     taps_t taps_of(axis_t a, int phase, long unit, long weights)
 * the taps of a phase; unit: elements of a plane from row to row for rows, 1
 * for columns; weights: likewise of the filter. Fields shift and weight are
 * where the first tap is, which the caller of the next applies for the rows.
 *
 *     void sum_phase(plane, weights, taps_t rows, taps_t columns,
 *                    shape_t shape, float *sums)
 * sums[c][position] of all k of the group; plane: of the first of them.
 */
void clconv_tile_sums_emit(clconv_emit *e, const clconv_tile_sums *t);

#endif

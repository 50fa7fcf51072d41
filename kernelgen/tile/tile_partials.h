/*
 * From the sums of bwd_weight_tile to dW: each share of the reduction leaves
 * its part of dW in the scratch, and a last pass adds the shares.
 *
 * Shape: weights (elements of dW), partials (where those of share 0 begin in
 * the scratch, in floats), split_k (shares), group_c, group_k, filter (R * S).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TILE_PARTIALS_H
#define CLCONV_TILE_PARTIALS_H

#include "kernel.h"
#include "kernel_shape.h"

/*
 * Holes: $tile_k, $tile_c, $tile (their product). Emits
 *     void store_partials(__global float *partial, shape_t shape, int k,
 *                         int c, int taps, const float16 *sums)
 * the sums [tap][tile_k][tile_c] of so many taps, lanes added; partial: the
 * group's in the share, at the first tap; k and c: the tile's in the group.
 */
void clconv_tile_partials_emit_store(clconv_emit *e);

/* bwd_weight_tile_sum */
void clconv_tile_partials_pass(const clconv_task *t, const clconv_shape *s,
                               clconv_pass *pass);
void clconv_tile_partials_emit(clconv_emit *e, const clconv_task *t,
                               const clconv_shape *s, const clconv_pass *pass);

#endif

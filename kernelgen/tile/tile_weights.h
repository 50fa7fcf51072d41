/*
 * The weights as bwd_data_tile reads them, in fp32, rounded as W is
 * multiplied, with zeros for channels that are not there:
 *
 *     [group][c_block][k of the group][tile_c][r][s]
 *
 * Shape: groups, group_c, group_k, filter (R * S), c_blocks (of a group), run
 * (tile_c * filter), weights (where they begin in the scratch, in floats);
 * hole $tile_c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TILE_WEIGHTS_H
#define CLCONV_TILE_WEIGHTS_H

#include "kernel.h"
#include "kernel_shape.h"

/* Adds what counting needs; run as above. */
void clconv_tile_weights_shape(const clconv_task *t, int64_t run,
                               clconv_shape *s);

/* bwd_data_tile_pack_w */
void clconv_tile_weights_pass(const clconv_task *t, int64_t c_blocks,
                              const clconv_shape *s, clconv_pass *pass);

void clconv_tile_weights_emit(clconv_emit *e, const clconv_task *t,
                              const clconv_shape *s, const clconv_pass *pass);

#endif

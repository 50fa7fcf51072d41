/*
 * Emits how a warpgroup copies 64 terms of a side to local memory, in pieces
 * of 8 halves: for tensors that the copy unit cannot read. Channels of a group
 * are whole pieces. For a side called a, item being 0 to 127:
 *
 *     spot_t a_rows[spots]; a_begin(&block, &sizes, item, a_rows);
 *     a_stage(tiles, at, dy, &block, &sizes, a_rows, k0, item)
 *         copies terms k0 to k0 + 63 to address at, zero where there is none
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_COPIES_H
#define CLCONV_WGMMA_COPIES_H

#include "side.h"

/* Halves of a line, and terms of a stage. */
#define CLCONV_WGMMA_COPIES_LINE 64

/* Spots that a work-item keeps. */
int clconv_wgmma_copies_spots(const clconv_wgmma_side *s);

/* After the nest's functions, wgmma_matrix and wgmma or wgmma_emulated. */
void clconv_wgmma_copies_emit(clconv_emit *e, const clconv_wgmma_side *s);

#endif

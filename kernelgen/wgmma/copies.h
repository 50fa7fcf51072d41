/*
 * Emits how work-items copy terms of a side to local memory, in pieces of 8
 * halves. Channels of a group are whole pieces. For a side called a:
 *
 *     spot_t a_rows[spots]; a_begin(&block, &sizes, item, a_rows);
 *     a_stage(tiles, at, dy, &block, &sizes, a_rows, k0, item)
 *         copies the terms of a stage from k0 on to address at, zero where
 *         there is none
 *
 * or, where nothing copies by itself, in two steps with other work between:
 *
 *     uint4 a_held[pieces];
 *     a_fetch(a_held, dy, &block, &sizes, a_rows, k0, item)
 *     a_put(tiles, at, a_held, item)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_COPIES_H
#define CLCONV_WGMMA_COPIES_H

#include "side.h"

/* Halves of a line, and terms of a stage, that a warpgroup copies. */
#define CLCONV_WGMMA_COPIES_LINE 64

/* Spots that each of so many work-items keeps; pieces that it copies. */
int clconv_wgmma_copies_spots(const clconv_wgmma_side *s, int items);
int clconv_wgmma_copies_pieces(const clconv_wgmma_side *s, int items);

/* The parts they need, and swizzled(); copies go on by themselves if
 * asynchronous, or are done at once in an emulation. */
void clconv_copies_emit_parts(clconv_emit *e, bool emulated, bool asynchronous);

/* After the nest's functions and the parts. */
void clconv_wgmma_copies_emit(clconv_emit *e, const clconv_wgmma_side *s,
                              int items);
void clconv_wgmma_copies_emit_held(clconv_emit *e, const clconv_wgmma_side *s,
                                   int items);

#endif

/*
 * Emits how a warp loads fragments of A and B from local memory to registers,
 * 16 rows (of B: columns) by 16 terms at a time, as four matrices of 8 x 8
 * halves. How a side lies there is in wgmma/side.h.
 *
 *     void load_a(uint *m, __local const uchar *tiles, uint at, int row, int k,
 *                 int lane)
 *     void load_b(...)
 *         rows from row on and terms from k on of the side at address at, for
 *         a work-item of the warp, lane modulo 32
 *
 * Halves of a register are neighbours along k. Of A, m[0] has the first 8 rows
 * and terms, m[1] the next 8 rows, m[2] and m[3] the next 8 terms of them; of B,
 * m[0] the first 8 columns and terms, m[1] the next 8 terms, m[2] and m[3] the
 * next 8 columns of them: in both the first half is what a unit of 8 terms
 * takes, or the whole what one of 16 terms takes (unit.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_FRAGMENTS_H
#define CLCONV_FRAGMENTS_H

#include "side.h"

/* Rows, columns and terms of a fragment. */
#define CLCONV_FRAGMENT 16

/* The part they need. An emulation reads by the same places. */
void clconv_fragments_emit_parts(clconv_emit *e, bool emulated);

/* After swizzled(). Neighbours of B are rows of the nest, not terms. */
void clconv_fragments_emit(clconv_emit *e, const clconv_wgmma_side *a,
                           const clconv_wgmma_side *b, bool emulated);

#endif

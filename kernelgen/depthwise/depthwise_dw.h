/*
 * The functions that the text of bwd_weight_depthwise calls, in its order:
 *
 *     void find_taps(tap_at, shape)
 *     place_t find_place(c_block, strip, shape)
 *     int hold_rows(ring, line, x, shape, at, row, p)
 *     void see_rows(seen, x, shape, at, first_p, last_p)  if X is counted
 *     int find_lines(row_at, sum_at, shape, p)
 *     void sum_row(row, ring, row_at, sum_at, lines, tap_at, taps, step,
 *                  vectors, sums)
 *     void fold(sums, totals, count)
 *
 * A row of dY is a row_t. NCHW: { dy, i, end, count }, element i of dY's end
 * elements being its first, count elements long; its vectors are used as they
 * lie in dY. NHWC: { d }, where planes_dy(), which is emitted too, has put it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_DEPTHWISE_DW_H
#define CLCONV_DEPTHWISE_DW_H

#include "kernel.h"

/* Needs the type shape_t and the holes of clconv_depthwise_set_holes(). tile:
 * vectors of dY that stay in registers. */
void clconv_depthwise_emit_dw(clconv_emit *e, const clconv_task *t, int tile);

#endif

/*
 * The functions that the text of bwd_weight_depthwise calls, in its order:
 *
 *     void find_taps(tap_at, shape)
 *     place_t find_place(c_block, strip, shape)
 *     int hold_rows(ring, line, x, shape, at, row, p, least, near)
 *     int find_lines(row_at, sum_at, shape, p)
 *     row_dy(d, ...), NCHW; planes_dy(d, ...), NHWC
 *     void sum_row(d, ring, row_at, sum_at, lines, tap_at, taps, step,
 *                  vectors, sums)
 *     void fold(sums, totals, count)
 *     void see_rows(seen, tally, x, shape, at, first_p, last_p, end_h,
 *                   ordinary)                           if X is counted
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

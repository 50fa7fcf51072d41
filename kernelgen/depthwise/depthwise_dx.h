/*
 * The functions that the text of bwd_data_depthwise calls, in its order:
 *
 *     place_t find_place(item, shape)          what a work-item computes
 *     void read_weights(weights, w, shape, at[, line])
 *     phase_t find_phase(left, stride, dilation, taps, step, base)
 *     int hold_rows(ring, dy, shape, at, meet, row)
 *     int find_lines(row_at, tap_at, shape, meet, phase)
 *     void sum_phase(ring, weights, row_at, tap_at, lines, phase, vectors,
 *                    next, to)
 *     void join(from, to, count, step, pitch)  NCHW
 *     void put(dx, i, v, count, beta[, tally])
 *     meet_t next_row(meet, shape)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_DEPTHWISE_DX_H
#define CLCONV_DEPTHWISE_DX_H

#include "kernel.h"

/* Needs the type shape_t and the holes of clconv_depthwise_set_holes(). tile:
 * vectors of sums that stay in registers. */
void clconv_depthwise_emit_dx(clconv_emit *e, const clconv_task *t, int tile);

#endif

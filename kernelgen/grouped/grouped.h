/*
 * What the two kernels for grouped problems on GPUs share. Groups of a few
 * channels are too narrow for tiles of a matrix product, and too wide for what
 * depthwise kernels keep in registers. A work-item multiplies strips of pixels
 * of four channels of X or dX, a quad, by weights or by channels of dY of the
 * same group, four at a time. lanes quads of a work-group lie side by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_GROUPED_H
#define CLCONV_GROUPED_H

#include "kernel.h"
#include "kernel_shape.h"

#define CLCONV_QUAD 4

/* Several groups of whole quads in X and in dY, filters whose taps the text may
 * list, and, if NHWC, these tensors (bits) in vectors of four. */
bool clconv_grouped_covers(const clconv_problem *p, unsigned tensors);

/* Quads of a work-group: a power of two that divides those of X. */
int64_t clconv_grouped_lanes(const clconv_problem *p);

/* Work-groups along the channels. */
int64_t clconv_grouped_blocks(const clconv_problem *p);

/* Members of the shape: those of clconv_strip_add_sizes(), k, blocks, the filter
 * (r, s, stride_h, dilation_h as constants), pad_top, and strides of W:
 * w_image, w_channel, w_tap. */
void clconv_grouped_add_sizes(clconv_shape *s, const clconv_problem *p,
                              int64_t batch);

/* Holes $dy_column (elements from column to column), $lanes, $slots (work-items
 * of a quad), $lws, $taps, $group_c, $group_k, $stride_w; what strip.h's holes
 * are for quads, and its words. */
void clconv_grouped_set_holes(clconv_emit *e, const clconv_task *t, int lws);

/* int id, lane, slot; long group: a work-item's. Work-items side by side read
 * neighbours: quads of a pixel (NHWC), or strips. */
void clconv_grouped_emit_ids(clconv_emit *e, const clconv_problem *p);

/*
 * void strip_<operand>(float4 *to, p, long row, long channel, int step,
 *                      int first, int end): what is multiplied of four
 * channels, channel elements apart, of columns first, first + 1, ... of a row
 * that starts at element row, step elements apart; zeros before column 0 and
 * from end on. columns of them.
 */
void clconv_grouped_emit_strip(clconv_emit *e, const clconv_task *t,
                               clconv_tensor tensor, int64_t columns);

#endif

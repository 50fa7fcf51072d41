/*
 * Strides in the tile kernels. Along one axis a tap t joins output o (of dY)
 * and input i (of X) where i + pad = o * stride + t * dilation. Taps with the
 * same remainder of t * dilation by the stride, a phase, meet the same inputs,
 * every stride-th, and within a phase a tap is a shift: all inputs of a phase
 * as an array of their own, element e of it meets output e - shift.
 *
 * The taps of a phase are step apart: t, t + step, ...; so phase u, for u
 * below step, is that of tap u, if there is such a tap. Without a stride there
 * is one phase, and all is as usual.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TILE_PHASE_H
#define CLCONV_TILE_PHASE_H

#include "kernel_shape.h"
#include "problem.h"

/* Rows or columns. */
typedef struct clconv_tile_axis {
    int64_t in, out, taps; /* H, P, R or W, Q, S */
    int64_t stride, dilation, pad;
    int64_t step;   /* between the taps of a phase */
    int64_t phases; /* that have taps */
    int64_t reach;  /* the largest shift of a tap */
} clconv_tile_axis;

/* Where input and output are the same pixels (one tap, no stride, no padding)
 * an image is one long row: these two say so, h, w, p and q do not. */
clconv_tile_axis clconv_tile_rows(const clconv_problem *p);
clconv_tile_axis clconv_tile_columns(const clconv_problem *p);

/* Taps of the phase that has most of them. */
int64_t clconv_tile_most_taps(const clconv_tile_axis *a);

/* Elements first .. end-1 of a phase's array: inputs that there are and that
 * some tap may read. None if end <= first. */
typedef struct clconv_tile_span {
    int64_t first, end;
} clconv_tile_span;

clconv_tile_span clconv_tile_phase_span(const clconv_tile_axis *a,
                                        int64_t phase);

/* Adds taps_<side>, stride_, dilation_, pad_ and step_; side: "h" or "w". */
void clconv_tile_axis_shape(const clconv_tile_axis *a, const char *side,
                            clconv_shape *s);

/* The type axis_t (in, out, taps, stride, dilation, pad, step) and
 *     axis_t axis_rows(shape_t shape), axis_columns(shape_t shape)
 * for shapes that have both axes, x_rows, x_columns, dy_rows and dy_columns. */
void clconv_tile_axis_emit(clconv_emit *e);

/* After the above: the type span_t (first, count, from: the input that is
 * element first) and
 *     span_t span_of(axis_t a, int phase) */
void clconv_tile_span_emit(clconv_emit *e);

#endif

/*
 * Emits what bwd_data_panel does with the pixels of a tile: where they lie,
 * and how their sums are stored. Reads these members of the shape: dy_image,
 * dy_row, dy_column, dx_image, dx_row, dx_column, dx_channel, stride_h,
 * stride_w.
 *
 *     int place(long position, long positions, long rows, long columns,
 *               shape_t shape, long *in_dy, long *in_dx)
 *
 * looks up the pixels from position on of positions, numbered across rows and
 * images of a phase of rows x columns pixels: their distance from the phase's
 * first pixel in the copy of dY and in dX. Returns how many there are; those
 * past the last lie where the last does.
 *
 *     void store_tile(dx, in_dx, count, channels, shape, sums, beta[, tally])
 *
 * stores the first channels of sums, float16 vectors of one pixel each, at the
 * first count pixels of in_dx.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_STORE_H
#define CLCONV_PANEL_STORE_H

#include "kernel.h"

/* pixels: of a tile. */
void clconv_panel_emit_place(clconv_emit *e, int pixels);

/* Sets the hole $places, the vectors that sums must have: pixels up to a
 * multiple of 16. */
void clconv_panel_emit_store(clconv_emit *e, const clconv_problem *p,
                             int pixels);

#endif

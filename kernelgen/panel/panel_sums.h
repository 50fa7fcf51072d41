/*
 * The multiply-adds of bwd_data_panel: a tile of pixels by 16 channels of dX.
 * Reads group_k, k_block, chain, dy_block and dy_channel of the shape. Emits
 *
 *     taps_t
 * the taps of a phase: how many rows and columns of them, and how far it is
 * from one to the next, in dY (dy_row, dy_column, towards its start) and in
 * the panels (panel_row, panel_column).
 *
 *     void set_steps(shape_t shape, long *steps)
 * CLCONV_PANEL_CHAIN places: how far each k of a chain is from its first in
 * dY. Looked up, not added up: of a sum that grows compilers make one for each
 * pixel, more than there are registers for.
 *
 *     void sum_tile(dy, const long *places, const long *steps, panel,
 *                   shape_t shape, taps_t taps, float16 *sums)
 * sums of all taps and k of a group. dy and panel: the first of both, for the
 * phase's first pixel; places: the distance of each pixel from that one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_PANEL_SUMS_H
#define CLCONV_PANEL_SUMS_H

#include <stdbool.h>

#include "emit.h"

/* The k of a chain of additions, at most. */
#define CLCONV_PANEL_CHAIN 128

/* pixels: of a tile; half_type: are the panels fp16? */
void clconv_panel_emit_sums(clconv_emit *e, int pixels, bool half_type);

#endif
